//! Refunds by an administrator, refunds that fail later, and purchases that are known by their page.

use super::*;
use tests::payments::refund;

/// The admin listener with its token.
fn control(world: &World) -> Client {
    let token = fs::read_to_string(world.place.data().join("admin_token")).expect("the server made one");
    let admin = Client::new(world.server.admin().expect("there is one"));
    Client::with_header(admin, "Authorization", &format!("Bearer {token}"))
}

#[test]
fn a_refund_that_fails_gives_back_what_it_took() {
    let cases = Cases::of("refunds that fail");
    let (mut world, payments) = paying(|_| {});
    let mut payer = Payer::new(&world, &payments, "ada");
    payer.subscribe(&world, "evt_0", "pro_monthly", unix_now());
    let sandbox = int(&payer.session.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).expect(201), "/id");
    let (customer, begin) = (payer.customer.clone(), unix_now());
    let object = paid("pi_1", &customer, payer.user, "topup_500", Some(sandbox), 299);
    deliver(&world.server, &event("evt_1", "checkout.session.completed", begin, &object), 0).expect(200);
    let back = |id: &str, at: u64| event(id, "charge.refunded", at, &refunded("pi_1", &customer, 299, 299));
    let fails = |id: &str, kind: &str, of: &str, at: u64| event(id, kind, at, &refund(of, "pi_1", 299, "failed"));
    let rows = [
        (back("evt_2", begin + 1), "10000.00"),
        (fails("evt_3", "refund.failed", "re_1", begin + 2), "10500.00"),
        // The same refund, by the other events of it.
        (fails("evt_4", "refund.updated", "re_1", begin + 2), "10500.00"),
        (fails("evt_5", "charge.refund.updated", "re_1", begin + 3), "10500.00"),
        (fails("evt_3", "refund.failed", "re_1", begin + 2), "10500.00"),
        (event("evt_6", "refund.created", begin + 5, &refund("re_2", "pi_1", 299, "pending")), "10500.00"),
        (event("evt_7", "refund.updated", begin + 6, &refund("re_2", "pi_1", 299, "succeeded")), "10000.00"),
        (back("evt_8", begin + 6), "10000.00"),
        (fails("evt_9", "refund.failed", "re_2", begin + 7), "10500.00"),
        // Of a payment that is not known, or of another service.
        (event("evt_10", "refund.failed", begin, &refund("re_3", "pi_none", 299, "failed")), "10500.00"),
    ];
    for (number, (event, balance)) in rows.iter().enumerate() {
        deliver(&world.server, event, 0).expect(200);
        assert_eq!(text(&payer.wallet(sandbox), "/balance"), *balance, "row {number}: {event}");
        cases.one();
    }
    let before = payer.wallet(sandbox);
    world.crash();
    payer.session.moved_to(world.server.address());
    assert_eq!(payer.wallet(sandbox), before);
    // It can be returned again: not by the answer to the attempts that failed.
    payments.take_calls();
    let body = json!({"user": "ada", "purchase": "pi_1"});
    control(&world).post("/v1/admin/refunds", &body).expect(200);
    deliver(&world.server, &fails("evt_11", "refund.failed", "re_9", begin + 9), 0).expect(200);
    control(&world).post("/v1/admin/refunds", &body).expect(200);
    let calls = payments.take_calls();
    assert_ne!(calls[0].idempotency_key, calls[1].idempotency_key);
    assert_eq!(calls[0].form, calls[1].form);
    world.server.kill();
    assert_eq!(world.place.digest(), world.place.digest_from_nothing());
    cases.add(4);
}

#[test]
fn a_purchase_is_returned_by_the_id_of_its_page() {
    let cases = Cases::of("purchases by their page");
    let (world, payments) = paying(|_| {});
    let payer = Payer::new(&world, &payments, "ada");
    let bought = |id: &str, object: &Value| event(id, "checkout.session.completed", unix_now(), object);
    // The event names no payment: the purchase is known by its page. The other one is known by its payment.
    let mut object = paid("pi_1", &payer.customer, payer.user, "topup_main_reset", None, 299);
    object["payment_intent"] = Value::Null;
    deliver(&world.server, &bought("evt_1", &object), 0).expect(200);
    let other = paid("pi_2", &payer.customer, payer.user, "topup_main_reset", None, 299);
    deliver(&world.server, &bought("evt_2", &other), 0).expect(200);
    payments.take_calls();
    let mut control = control(&world);
    let return_it = |control: &mut Client, purchase: &str| {
        control.post("/v1/admin/refunds", &json!({"user": "ada", "purchase": purchase}))
    };
    let returned = return_it(&mut control, "cs_pi_1").expect(200);
    assert_eq!(text(&returned, "/purchase"), "cs_pi_1");
    let calls = payments.take_calls();
    let sent: Vec<&str> = calls.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(sent, ["/v1/checkout/sessions/cs_pi_1", "/v1/refunds"]);
    assert_eq!(
        (calls[1].form["payment_intent"].as_str(), calls[1].form["metadata[purchase]"].as_str()),
        ("pi_1", "cs_pi_1")
    );
    // The event of the refund names the purchase.
    let mut object = refund("re_1", "pi_1", 299, "succeeded");
    object["metadata"] = json!({"purchase": "cs_pi_1"});
    deliver(&world.server, &event("evt_3", "refund.created", unix_now(), &object), 0).expect(200);
    return_it(&mut control, "cs_pi_1").refused(400, "INVALID_REQUEST");
    assert_eq!(payments.take_calls().len(), 0);
    // By its page, though it is known by its payment.
    return_it(&mut control, "cs_pi_2").expect(200);
    let calls = payments.take_calls();
    assert_eq!((calls.len(), calls[1].form["payment_intent"].as_str()), (2, "pi_2"));
    assert!(!calls[1].form.contains_key("metadata[purchase]"), "its events name the payment");
    // The page of another payment, one that is not there, and what is not an id.
    return_it(&mut control, "cs_pi_3").refused(400, "INVALID_REQUEST");
    return_it(&mut control, "cs_none").refused(502, "UPSTREAM_UNAVAILABLE");
    payments.take_calls();
    return_it(&mut control, "cs_../refunds").refused(502, "UPSTREAM_UNAVAILABLE");
    return_it(&mut control, "pi_3").refused(400, "INVALID_REQUEST");
    assert_eq!(payments.take_calls().len(), 0);
    cases.add(8);
}
