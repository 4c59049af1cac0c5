use super::events::BODY_BYTES_MAX;
use super::provider::{Calling, Checkout, Failed, NotGenuine, Notice, Portal, Provider, Reading, Unheeded, Wanted};
use crate::http::jwt;
use crate::http::testing::{Answered, NOW, SECRET, World};
use engine::command::{Answer, BillingEvent, BillingNews, BillingOutcome, Command, Query};
use engine::fact;
use engine::id::{UserId, WalletId};
use engine::mutation::Mutation;
use engine::reject::Reject;
use engine::time::Timestamp;
use engine::user::billing::{Billing, BillingInterval, Product, Sku};
use engine::user::{Tier, Wallet, WalletKind};
use engine::view::UserView;
use host::secret::Secret;
use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;

const ADA: UserId = UserId(1);
/// A user may send more in a second than a test does.
const MANY: &str = "[limits.tiers.free]\nrequests_per_second = 100";

fn nothing(why: Unheeded) -> Reading {
    Reading::Nothing { why, event: "evt_1".to_owned(), kind: "charge.refunded".to_owned() }
}

/// A provider whose calls all have one result, and whose events are words. It does not know ids that begin with `old_`,
/// and does not have the customer `cus_gone`.
struct Words(Result<&'static str, Failed>);

fn notice(user: Option<u64>, name: &str) -> Notice {
    let event = BillingEvent { id: "evt_1".to_owned(), created: NOW, customer: None, news: BillingNews::Nothing };
    Notice { user: user.map(UserId), name: Some(name.to_owned()), kind: "charge.refunded".to_owned(), event }
}

impl Provider for Words {
    fn signature_header(&self) -> &'static str {
        "words-signature"
    }

    fn sells(&self, product: Product, _: BillingInterval) -> bool {
        product != Product::ProPlus
    }

    fn knows(&self, id: &str) -> bool {
        !id.starts_with("old_")
    }

    fn customer<'a>(
        &'a self,
        user: UserId,
        email: Option<&'a str>,
        instead_of: Option<&'a str>,
        now: Timestamp,
    ) -> Calling<'a, String> {
        assert_eq!((user, email, now), (ADA, Some("ada@example.net"), NOW));
        assert!(matches!(instead_of, Some("old_1" | "cus_gone")));
        Box::pin(ready(Ok("cus_1".to_owned())))
    }

    fn checkout(&self, checkout: Checkout) -> Calling<'_, String> {
        let Checkout { user, customer, base, wanted, now } = checkout;
        if customer == "cus_gone" {
            return Box::pin(ready(Err(Failed::NoCustomer)));
        }
        assert_eq!((user, customer.as_str(), base.as_str(), now), (ADA, "cus_1", "http://test", NOW));
        let what = match wanted {
            Wanted::Plan { product, interval, instead_of: None } => format!("{}/{}", product.name(), interval.name()),
            Wanted::Plan { .. } => "change".to_owned(),
            Wanted::Purchase { sku, wallet } => format!("{}/{:?}", sku.name(), wallet.map(|wallet| wallet.0)),
        };
        Box::pin(ready(self.0.map(|host| format!("{host}/{what}"))))
    }

    fn portal<'a>(&'a self, portal: Portal<'a>) -> Calling<'a, String> {
        if portal.customer == "cus_gone" {
            return Box::pin(ready(Err(Failed::NoCustomer)));
        }
        Box::pin(ready(self.0.map(|host| format!("{host}/{}", portal.customer))))
    }

    fn payment_of<'a>(&'a self, _: &'a str) -> Calling<'a, Option<String>> {
        Box::pin(ready(Ok(None)))
    }

    fn refund<'a>(&'a self, _: &'a str, _: usize, _: Timestamp) -> Calling<'a, Option<String>> {
        Box::pin(ready(Ok(None)))
    }

    fn read(&self, body: &[u8], signature: Option<&[u8]>, wall_now: Timestamp) -> Result<Reading, NotGenuine> {
        assert_eq!(wall_now, NOW);
        match (signature, body) {
            (Some(b"good"), b"\"nothing\"") => Ok(nothing(Unheeded::Type)),
            (Some(b"good"), b"\"amount\"") => Ok(nothing(Unheeded::Amount)),
            (Some(b"good"), b"\"named\"") => Ok(Reading::Notice(Box::new(notice(Some(1), "cus_1")))),
            (Some(b"good"), b"\"customer\"") => Ok(Reading::Notice(Box::new(notice(None, "cus_1")))),
            (Some(b"good"), b"\"stranger\"") => Ok(Reading::Notice(Box::new(notice(None, "cus_2")))),
            (Some(b"good"), b"\"other\"") => Ok(Reading::Notice(Box::new(notice(Some(2), "cus_1")))),
            (Some(b"good"), b"\"missing\"") => Ok(Reading::Notice(Box::new(notice(Some(9), "cus_2")))),
            _ => Err(NotGenuine),
        }
    }

    fn confirm(&self, token: &str, _: Timestamp) -> Result<Notice, NotGenuine> {
        if token == "good" { Ok(notice(Some(1), "cus_1")) } else { Err(NotGenuine) }
    }
}

/// A world with that provider and two users, whose shard answers an event with this.
fn world(calls: Result<&'static str, Failed>, billed: Result<BillingOutcome, Reject>) -> World {
    world_with(MANY, calls, billed, "old_1")
}

/// The same with other settings, where ada has this customer at first.
fn world_with(
    settings: &str,
    calls: Result<&'static str, Failed>,
    billed: Result<BillingOutcome, Reject>,
    first: &'static str,
) -> World {
    let world = World::with_billing(settings, &crate::groups::tables(), Box::new(Words(calls)));
    for (user, sub) in [(1, "ada"), (2, "bob")] {
        let sub = Some(sub.to_owned());
        world.note(UserId(user), Mutation::UserCreated(fact::UserCreated { sub, email: None, at: NOW }));
    }
    let customer = Mutation::CustomerNoted(fact::CustomerNoted { customer: "cus_1".to_owned(), at: NOW });
    world.note(ADA, customer);
    let mut old = Billing::default();
    old.customer = Some(first.into());
    let billing = Rc::new(RefCell::new(old));
    world.shard(move |user, command| match command {
        Command::Query(Query::Billing) => Ok(Answer::Billing(Box::new(billing.borrow().clone()))),
        Command::Query(Query::User) => {
            let opened = |id, kind| Wallet::new(WalletId(id), kind, engine::amount::Cash(5), 1, NOW);
            Ok(Answer::User(Box::new(UserView {
                id: user,
                sub: None,
                email: Some("ada@example.net".into()),
                created_at: NOW,
                grant: None,
                active_keys: 0,
                wallets: vec![opened(3, WalletKind::Api), opened(101, WalletKind::Sandbox)],
            })))
        }
        Command::NoteCustomer { customer, instead_of } => {
            assert_eq!(instead_of.as_deref(), Some(first));
            billing.borrow_mut().customer = Some(customer.into());
            Ok(Answer::Billing(Box::new(billing.borrow().clone())))
        }
        Command::Bill(event) => {
            assert_eq!((user, event.id.as_str()), (ADA, "evt_1"));
            Ok(billed.map_or_else(Answer::Refused, Answer::Billed))
        }
        other => panic!("not expected: {other:?}"),
    });
    world
}

fn ask(world: &World, path: &str, body: &str) -> Answered {
    let token = jwt::sign(&Secret::new(SECRET.to_owned()), "ada", None, NOW, 600);
    world.send("POST", path, &[("authorization", &format!("Bearer {token}"))], body)
}

#[test]
fn a_page_is_made_for_what_was_asked_for() {
    let sound = world(Ok("https://pay"), Ok(BillingOutcome::Applied));
    let checkout = "/v1/billing/checkout";
    let topup = "/v1/billing/topup/checkout";
    let rows = [
        ("/v1/billing/portal", "", (400, "INVALID_REQUEST"), ""),
        (
            checkout,
            r#"{"plan":"pro","billing":"yearly","consent_acknowledged":true}"#,
            (200, ""),
            "https://pay/pro/yearly",
        ),
        (
            checkout,
            r#"{"plan":"pro_plus","billing":"yearly","consent_acknowledged":true}"#,
            (400, "INVALID_REQUEST"),
            "",
        ),
        (
            topup,
            r#"{"sku":"topup_500","sandbox_wallet_id":101,"consent_acknowledged":true}"#,
            (200, ""),
            "https://pay/topup_500/Some(101)",
        ),
        (
            topup,
            r#"{"sku":"topup_main_reset","consent_acknowledged":true}"#,
            (200, ""),
            "https://pay/topup_main_reset/None",
        ),
        (
            topup,
            r#"{"sku":"topup_500","sandbox_wallet_id":3,"consent_acknowledged":true}"#,
            (400, "INVALID_REQUEST"),
            "",
        ),
        (
            topup,
            r#"{"sku":"topup_500","sandbox_wallet_id":4,"consent_acknowledged":true}"#,
            (404, "WALLET_NOT_FOUND"),
            "",
        ),
        ("/v1/billing/portal", "", (200, ""), "https://pay/cus_1"),
    ];
    println!("pages: {} cases", rows.len());
    for (path, body, code, url) in rows {
        let answered = ask(&sound, path, body);
        assert_eq!(answered.code(), code, "{path} {body}");
        if code.0 == 200 {
            assert_eq!(answered.json(), serde_json::json!({ "url": url }));
        }
    }
    for (failed, code) in [(Failed::Away, (502, "UPSTREAM_UNAVAILABLE")), (Failed::Busy, (503, "SERVER_BUSY"))] {
        let away = world(Err(failed), Ok(BillingOutcome::Applied));
        let body = r#"{"plan":"pro","billing":"monthly","consent_acknowledged":true}"#;
        assert_eq!(ask(&away, checkout, body).code(), code);
        assert_eq!(ask(&away, "/v1/billing/portal", "").code(), code);
    }
}

/// A customer that was deleted at the provider is replaced by the next checkout, once.
#[test]
fn a_customer_that_is_gone_is_replaced() {
    let checkout = r#"{"plan":"pro","billing":"monthly","consent_acknowledged":true}"#;
    let topup = r#"{"sku":"topup_main_reset","consent_acknowledged":true}"#;
    let mut cases = 0;
    for (path, body, page) in [
        ("/v1/billing/checkout", checkout, "pro/monthly"),
        ("/v1/billing/topup/checkout", topup, "topup_main_reset/None"),
    ] {
        let gone = world_with(MANY, Ok("https://pay"), Ok(BillingOutcome::Applied), "cus_gone");
        // The portal makes no customer.
        assert_eq!(ask(&gone, "/v1/billing/portal", "").code(), (400, "INVALID_REQUEST"));
        let answered = ask(&gone, path, body);
        assert_eq!(answered.code(), (200, ""), "{path}");
        assert_eq!(answered.json(), serde_json::json!({"url": format!("https://pay/{page}")}));
        assert_eq!(ask(&gone, "/v1/billing/portal", "").json(), serde_json::json!({"url": "https://pay/cus_1"}));
        // One that is not there either is not replaced again.
        let never = world_with(MANY, Err(Failed::NoCustomer), Ok(BillingOutcome::Applied), "cus_gone");
        assert_eq!(ask(&never, path, body).code(), (502, "UPSTREAM_UNAVAILABLE"), "{path}");
        cases += 4;
    }
    println!("customers that are gone: {cases} cases");
}

#[test]
fn one_page_is_made_for_a_user_at_a_time() {
    let world = world(Ok("https://pay"), Ok(BillingOutcome::Applied));
    let body = r#"{"plan":"pro","billing":"monthly","consent_acknowledged":true}"#;
    let desk = world.edge.app.billing.as_ref().expect("it has one");
    let turn = desk.turn(ADA).expect("it is free");
    assert!(desk.turn(UserId(2)).is_some(), "another user has a turn of its own");
    assert_eq!(ask(&world, "/v1/billing/checkout", body).code(), (503, "SERVER_BUSY"));
    drop(turn);
    for path in ["/v1/billing/checkout", "/v1/billing/portal"] {
        assert_eq!(ask(&world, path, body).code(), (200, ""), "{path}");
    }
    let turn = desk.turn(ADA).expect("an answered request gives it back");
    assert_eq!(ask(&world, "/v1/billing/portal", "").code(), (503, "SERVER_BUSY"));
    drop(turn);
}

#[test]
fn an_event_goes_to_its_user_and_is_counted() {
    use BillingOutcome::{Applied, NotCredited, OtherCustomer, Repeated, SecondSubscription, UnknownPrice};
    let (ok, bad, busy) = ((200, ""), (400, "INVALID_REQUEST"), (503, "SERVER_BUSY"));
    // Body, signature, what the shard says, the answer, the label of the count.
    type Row<'a> = (&'a str, &'a str, Result<BillingOutcome, Reject>, (u16, &'a str), &'a str);
    let rows: Vec<Row<'_>> = vec![
        ("\"named\"", "good", Ok(Applied), ok, "applied"),
        ("\"customer\"", "good", Ok(Applied), ok, "applied"),
        ("\"named\"", "good", Ok(Repeated), ok, "repeated"),
        ("\"named\"", "good", Ok(OtherCustomer), ok, "other_customer"),
        ("\"named\"", "good", Ok(NotCredited), ok, "not_credited"),
        ("\"named\"", "good", Ok(UnknownPrice), ok, "unknown_price"),
        ("\"named\"", "good", Ok(SecondSubscription), ok, "second_subscription"),
        ("\"named\"", "good", Err(Reject::InvalidTerms), ok, "wrong_fields"),
        ("\"named\"", "good", Err(Reject::Busy), busy, "unavailable"),
        ("\"named\"", "good", Err(Reject::NoRoom), busy, "unavailable"),
        ("\"named\"", "good", Err(Reject::NoBillingStore), busy, "unavailable"),
        ("\"nothing\"", "good", Ok(Applied), ok, "ignored"),
        ("\"amount\"", "good", Ok(Applied), ok, "wrong_amount"),
        ("\"stranger\"", "good", Ok(Applied), ok, "unknown_user"),
        ("\"missing\"", "good", Ok(Applied), ok, "unknown_user"),
        ("\"other\"", "good", Ok(Applied), ok, "other_customer"),
        ("\"named\"", "bad", Ok(Applied), bad, "not_genuine"),
        ("\"named\"", "", Ok(Applied), bad, "not_genuine"),
        ("\"x\"", "good", Ok(Applied), bad, "not_genuine"),
    ];
    println!("events: {} cases", rows.len());
    for (body, signature, billed, code, label) in rows {
        let world = world(Ok("https://pay"), billed);
        // A key of a user is not looked at.
        let key = world.key(Tier::Free, engine::user::Permissions::ReadTrade);
        let headers: &[(&str, &str)] = &[("words-signature", signature), ("x-api-key", &key)];
        let answered = world.send("POST", "/v1/billing/webhook", headers, body);
        assert_eq!(answered.code(), code, "{body} {signature} {billed:?}");
        assert_eq!(answered.header("x-ratelimit-limit"), None, "it counts against no user");
        let desk = world.edge.app.billing.as_ref().expect("it has one");
        let counts: Vec<(&str, u64)> = desk.counts().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counts, [(label, 1)], "{body} {signature} {billed:?}");
    }
    // Two signatures are none.
    let world = world(Ok("https://pay"), Ok(Applied));
    let twice = world.send("POST", "/v1/billing/webhook", &[("words-signature", "good"); 2], "\"named\"");
    assert_eq!(twice.code(), bad);
    // The longest body is read, and is not an event; one byte more is refused.
    for (bytes, code) in [(BODY_BYTES_MAX, bad), (BODY_BYTES_MAX + 1, (413, "HTTP_413"))] {
        let body = "7".repeat(bytes);
        let answered = world.send("POST", "/v1/billing/webhook", &[("words-signature", "good")], &body);
        assert_eq!(answered.code(), code, "{bytes}");
    }
}

/// A program that only looks at a link asks with `HEAD`.
#[test]
fn a_link_is_applied_by_get_alone() {
    let (ok, bad) = ((200, ""), (400, "INVALID_REQUEST"));
    let applied = |world: &World| {
        let desk = world.edge.app.billing.as_ref().expect("it has one");
        desk.counts().find(|(name, _)| *name == "applied").map(|(_, count)| count)
    };
    // Method, token, the answer, links that were applied so far.
    let rows = [
        ("HEAD", "good", ok, 0),
        ("HEAD", "bad", bad, 0),
        ("POST", "good", (405, "HTTP_405"), 0),
        ("GET", "bad", bad, 0),
        ("GET", "good", ok, 1),
        ("HEAD", "good", ok, 1),
    ];
    let world = world(Ok("https://pay"), Ok(BillingOutcome::Applied));
    for (method, token, code, count) in rows {
        let answered = world.send(method, &format!("/v1/billing/confirm/{token}"), &[], "");
        assert_eq!((answered.code(), applied(&world)), (code, Some(count)), "{method} {token}");
        assert!(method != "HEAD" || answered.body.is_empty(), "{method} {token}");
    }
    let used = self::world(Ok("https://pay"), Ok(BillingOutcome::Repeated));
    assert_eq!(used.send("GET", "/v1/billing/confirm/good", &[], "").code(), bad, "a link works once");
    println!("links: {} cases", rows.len() + 1);
}

#[test]
fn an_address_has_windows_of_its_own_for_events() {
    // Settings, and how many of sixty in one second are taken.
    let rows = [
        ("", 50),
        ("[limits]\ncallback_ip_per_second = 7", 7),
        ("[limits]\ncallback_ip_per_minute = 20", 20),
        ("[limits]\ncallback_ip_per_second = 1000", 60),
    ];
    println!("windows of events: {} cases", rows.len());
    for (settings, count) in rows {
        let (calls, billed) = (Ok("https://pay"), Ok(BillingOutcome::Applied));
        let world = world_with(&format!("{settings}\n{MANY}"), calls, billed, "old_1");
        let send = || world.send("POST", "/v1/billing/webhook", &[("words-signature", "good")], "\"nothing\"").code().0;
        let answers: Vec<u16> = (0..60).map(|_| send()).collect();
        let (taken, refused) = answers.split_at(count);
        assert!(taken.iter().all(|status| *status == 200), "{settings}: {answers:?}");
        assert!(refused.iter().all(|status| *status == 429), "{settings}: {answers:?}");
        // The windows of other public routes are untouched.
        assert_eq!(world.send("GET", "/v1/billing/refund-policy", &[], "").code().0, 200);
    }
}

/// The price list of the engine is that of the description.
#[test]
fn every_product_has_its_name() {
    let products: Vec<&str> = Product::ALL.iter().map(|product| product.name()).collect();
    assert_eq!(products, ["pro", "pro_plus", "backtesting_starter", "backtesting_pro"]);
    let skus: Vec<(&str, u64, i64)> =
        Sku::ALL.iter().map(|sku| (sku.name(), sku.cents(), sku.credit().0 / 1_000_000)).collect();
    let expected = [
        ("topup_500", 299, 500),
        ("topup_2000", 499, 2_000),
        ("topup_10000", 999, 10_000),
        ("topup_main_reset", 299, 0),
    ];
    assert_eq!(skus, expected);
}
