//! Top-ups and bought resets.

use super::*;

#[test]
fn a_top_up_is_there_once_after_a_kill_and_is_no_profit() {
    let cases = Cases::of("top-ups and refunds");
    let (mut world, payments) = paying(|_| {});
    let admin = world.server.admin().expect("there is one");
    let mut payer = Payer::new(&world, &payments, "ada");
    payer.subscribe(&world, "evt_0", "pro_monthly", unix_now());
    let sandbox = payer.session.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).expect(201);
    let sandbox = int(&sandbox, "/id");
    let made = payer.session.post("/v1/keys", &json!({})).expect(201);
    let mut key = world.server.with_key(text(&made, "/raw_key"));
    let (user, customer) = (payer.user, payer.customer.clone());
    let bought = |id: &str, payment: &str, sku: &str, cents: u64| {
        let object = paid(payment, &customer, user, sku, Some(sandbox), cents);
        event(id, "checkout.session.completed", unix_now(), &object)
    };
    let topup = bought("evt_1", "pi_1", "topup_500", 299);
    deliver(&world.server, &topup, 0).expect(200);
    // The process ends between the answer and anything else.
    world.crash();
    payer.session.moved_to(world.server.address());
    key.moved_to(world.server.address());
    let shown = |payer: &mut Payer, balance: &str| {
        let wallet = payer.wallet(sandbox);
        assert_eq!((text(&wallet, "/balance"), text(&wallet, "/baseline")), (balance, "10000.00"), "{wallet}");
    };
    shown(&mut payer, "10500.00");
    // Again, by another event of the same payment, and both again.
    for event in [&topup, &bought("evt_2", "pi_1", "topup_500", 299), &topup] {
        deliver(&world.server, event, 0).expect(200);
        shown(&mut payer, "10500.00");
        cases.one();
    }
    let result = |key: &mut Client, total: &str, starting: &str| {
        let balance = key.get(&format!("/v1/account/balance?wallet_id={sandbox}")).expect(200);
        let figures =
            (text(&balance, "/total_value"), text(&balance, "/starting_balance"), text(&balance, "/unrealized_pnl"));
        assert_eq!(figures, (total, starting, "0.00"), "{balance}");
        let points = key.get(&format!("/v1/account/equity?wallet_id={sandbox}")).expect(200);
        let last = list(&points, "").last().expect("the live point").clone();
        assert_eq!((text(&last, "/total_value"), text(&last, "/pnl")), (total, "0.00"), "{last}");
    };
    result(&mut key, "10500.00", "10500.00");
    // Events that disagree with the list, or are about someone else, change nothing.
    let other = Payer::new(&world, &payments, "bob");
    let object = |payment: &str, customer: &str, user: i64, cents: u64| {
        paid(payment, customer, user, "topup_10000", Some(sandbox), cents)
    };
    let completed = "checkout.session.completed";
    let wrong: Vec<(&str, Value)> = vec![
        ("wrong_amount", event("evt_3", completed, unix_now(), &object("pi_3", &customer, user, 299))),
        ("unknown_price", event("evt_4", completed, unix_now(), &paid("pi_4", &customer, user, "topup_9", None, 299))),
        ("other_customer", event("evt_5", completed, unix_now(), &object("pi_5", &other.customer, user, 999))),
        ("other_customer", event("evt_6", completed, unix_now(), &object("pi_6", "cus_unknown", user, 999))),
        ("unknown_user", event("evt_7", completed, unix_now(), &object("pi_7", "cus_unknown", 4_000_000, 999))),
        ("not_credited", event("evt_8", completed, unix_now(), &object("pi_8", &other.customer, other.user, 999))),
        ("ignored", event("evt_9", "charge.succeeded", unix_now(), &json!({"id": "ch_1"}))),
        ("ignored", event("evt_10", "no.such.type", unix_now(), &json!({}))),
        ("wrong_fields", event("evt_11", "customer.subscription.updated", unix_now(), &json!({"id": 7}))),
    ];
    for (outcome, event) in &wrong {
        let before = counted(admin_of(&world, admin), outcome);
        assert_eq!(deliver(&world.server, event, 0).expect(200), json!({"received": true}), "{event}");
        assert_eq!(counted(admin_of(&world, admin), outcome), before + 1, "{event}");
        shown(&mut payer, "10500.00");
        cases.one();
    }
    // The log names those that an owner can do something about.
    for (outcome, event) in wrong.iter().filter(|(outcome, _)| *outcome != "ignored") {
        let words = [*outcome, text(event, "/id"), text(event, "/type")];
        let is_it = |line: &str| words.iter().all(|word| line.contains(word));
        tests::eventually("a line of the log", || world.server.output().lines().any(is_it).then_some(()));
        cases.one();
    }
    // A part is noted, the whole is taken back, once; before its payment it waits.
    let back = |id: &str, payment: &str, amount, returned| {
        event(id, "charge.refunded", unix_now(), &refunded(payment, &customer, amount, returned))
    };
    for (event, balance) in [
        (back("evt_20", "pi_1", 299, 100), "10500.00"),
        (back("evt_21", "pi_1", 299, 299), "10000.00"),
        (back("evt_21", "pi_1", 299, 299), "10000.00"),
        (back("evt_22", "pi_1", 299, 299), "10000.00"),
        (back("evt_23", "pi_9", 499, 499), "10000.00"),
        (bought("evt_24", "pi_9", "topup_2000", 499), "10000.00"),
        (bought("evt_25", "pi_10", "topup_2000", 499), "12000.00"),
    ] {
        deliver(&world.server, &event, 0).expect(200);
        shown(&mut payer, balance);
        cases.one();
    }
    result(&mut key, "12000.00", "12000.00");
    // Reserved cash is not free: the refund takes what is, and the result stays what was traded.
    let rain = world.markets.rain.clone();
    let mut order = limit(&rain, "BUY", "0.40", "28000");
    order["wallet_id"] = json!(sandbox);
    key.post("/v1/orders", &order).expect(200);
    shown(&mut payer, "800.00");
    deliver(&world.server, &back("evt_26", "pi_10", 499, 499), 0).expect(200);
    shown(&mut payer, "0.00");
    result(&mut key, "11200.00", "11200.00");
    // The log has it all, with and without snapshots.
    let before = payer.session.get("/v1/me/wallets").expect(200);
    world.crash();
    payer.session.moved_to(world.server.address());
    assert_eq!(payer.session.get("/v1/me/wallets").expect(200), before);
    world.server.kill();
    assert_eq!(world.place.digest(), world.place.digest_from_nothing());
    cases.add(6);
}

/// The admin listener after restarts, which take other ports.
fn admin_of(world: &World, before: SocketAddr) -> SocketAddr {
    world.server.admin().unwrap_or(before)
}

#[test]
fn a_bought_reset_comes_after_those_of_the_plan() {
    let cases = Cases::of("bought resets");
    let (world, payments) = paying(|_| {});
    let mut payer = Payer::new(&world, &payments, "ada");
    let main = int(&list(&payer.session.get("/v1/me/wallets").expect(200), "/wallets")[0], "/id");
    let path = format!("/v1/me/wallets/{main}/reset");
    assert_eq!(int(&payer.session.post(&path, &json!({})).expect(200), "/generation"), 2);
    let refused = payer.session.post(&path, &json!({})).refused(402, "UPGRADE_REQUIRED");
    assert_eq!(text(&refused, "/feature_key"), "wallets.main_resets_per_30d");
    let object = paid("pi_1", &payer.customer, payer.user, "topup_main_reset", None, 299);
    deliver(&world.server, &event("evt_1", "checkout.session.completed", unix_now(), &object), 0).expect(200);
    assert_eq!(int(&payer.session.post(&path, &json!({})).expect(200), "/generation"), 3);
    payer.session.post(&path, &json!({})).refused(402, "UPGRADE_REQUIRED");
    cases.add(4);
}
