//! Billing (gateway/docs/billing.md): the routes of §1 with a stand-in of the provider, the life of a subscription,
//! purchases and refunds, hostile events, the provider for development, and the verbs of administrators.

mod administrators;
mod customers;
mod purchases;
mod refunds;
mod subscriptions;

use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::process::Output;
use std::time::Duration;
use tests::binary::{command, run};
use tests::cases::Cases;
use tests::exposition::scrape;
use tests::http::{Client, Request, send_raw};
use tests::json::{at, int, list, text};
use tests::payments::{
    Fault, Payments, SECRET_KEY, WEBHOOK_SECRET, deliver, event, paid, refunded, signature, subscription,
};
use tests::server::ServerDir;
use tests::token::{SECRET, claims, sign, unix_now};
use tests::world::{World, limit, market};

const DAY: u64 = 86_400;

/// An identity token that is valid for the next year.
fn lasting(sub: &str) -> String {
    let mut claims = claims(sub);
    claims["exp"] = json!(unix_now() + 366 * DAY);
    claims["email"] = json!(format!("{sub}@example.net"));
    sign(&json!({"alg": "HS256", "typ": "JWT"}), &claims, SECRET.as_bytes())
}

/// A world with the stand-in as its provider.
fn paying(settings: impl FnOnce(&mut ServerDir)) -> (World, Payments) {
    let payments = Payments::start();
    let world = World::start_with(1, |place| {
        payments.settings(place);
        place.set("admin", "listen", "\"127.0.0.1:0\"");
        settings(place);
    });
    (world, payments)
}

/// A user with a session token, the id, and the customer that the first checkout made.
struct Payer {
    session: Client,
    user: i64,
    customer: String,
}

impl Payer {
    fn new(world: &World, payments: &Payments, sub: &str) -> Payer {
        let mut session = world.server.with_token(&lasting(sub));
        let user = int(&session.get("/v1/me").expect(200), "/user_id");
        session.post("/v1/billing/checkout", &plan("pro", "monthly")).expect(200);
        let calls = payments.take_calls();
        assert_eq!((calls[0].path.as_str(), calls.len()), ("/v1/customers", 3));
        let customer = calls[2].form["customer"].clone();
        Payer { session, user, customer }
    }

    /// An active subscription to a plan.
    fn subscribe(&self, world: &World, id: &str, plan: &str, created: u64) {
        let object = subscription("sub_1", &self.customer, self.user, plan, "active", unix_now() + 30 * DAY);
        deliver(&world.server, &event(id, "customer.subscription.updated", created, &object), 0).expect(200);
    }

    fn wallet(&mut self, id: i64) -> Value {
        self.session.get(&format!("/v1/me/wallets/{id}")).expect(200)
    }
}

fn plan(plan: &str, billing: &str) -> Value {
    json!({"plan": plan, "billing": billing, "consent_acknowledged": true})
}

/// What became of events so far, by outcome.
fn counted(admin: SocketAddr, outcome: &str) -> u64 {
    scrape(admin).value("papertape_billing_events_total", &[("outcome", outcome)]) as u64
}

#[test]
fn without_a_provider_only_reads_work() {
    let cases = Cases::of("billing without a provider");
    let world = World::start(1);
    let mut session = world.server.with_token(&lasting("ada"));
    let none = json!({
        "plan": "free", "status": "none", "current_period_end": null, "cancel_at_period_end": false,
        "trial_ends_at": null, "interval": null,
    });
    assert_eq!(session.get("/v1/billing/subscription").expect(200), none);
    let policy = world.public().get("/v1/billing/refund-policy").expect(200);
    assert_eq!((at(&policy, "/version"), at(&policy, "/window_days")), (&json!("1"), &json!(14)));
    assert!(!text(&policy, "/text").is_empty() && !list(&policy, "/conditions").is_empty());
    for path in ["checkout", "topup/checkout", "portal", "webhook"] {
        for mut client in [world.server.with_token(&lasting("ada")), world.user(0), world.public()] {
            client.post(&format!("/v1/billing/{path}"), &json!({})).refused(404, "NOT_FOUND");
            cases.one();
        }
    }
    world.public().get("/v1/billing/confirm/x").refused(404, "NOT_FOUND");
    world.user(0).get("/v1/billing/subscription").refused(401, "MISSING_AUTH");
    world.public().get("/v1/billing/subscription").refused(401, "MISSING_AUTH");
    cases.add(5);
}

#[test]
fn every_row_of_the_routes() {
    let cases = Cases::of("rows of billing");
    let (world, payments) = paying(|_| {});
    let mut payer = Payer::new(&world, &payments, "ada");
    let wallets = payer.session.get("/v1/me/wallets").expect(200);
    let (main, api) = (int(&list(&wallets, "/wallets")[0], "/id"), int(&list(&wallets, "/wallets")[1], "/id"));
    payer.subscribe(&world, "evt_1", "pro_monthly", unix_now() - 100);
    let sandbox = payer.session.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).expect(201);
    let gone = payer.session.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).expect(201);
    let (sandbox, gone) = (int(&sandbox, "/id"), int(&gone, "/id"));
    payer.session.delete(&format!("/v1/me/wallets/{gone}")).expect(200);
    // A plan: body, status, code, the wrong field.
    let rows: Vec<(Value, u16, &str, &str)> = vec![
        (json!({}), 422, "VALIDATION_FAILED", "plan"),
        (json!({"plan": "gold", "billing": "monthly"}), 422, "VALIDATION_FAILED", "plan"),
        (json!({"plan": "free", "billing": "monthly"}), 422, "VALIDATION_FAILED", "plan"),
        (json!({"plan": 7, "billing": "monthly"}), 422, "VALIDATION_FAILED", "plan"),
        (json!({"plan": null, "billing": "monthly"}), 422, "VALIDATION_FAILED", "plan"),
        (json!({"plan": "pro_plus"}), 422, "VALIDATION_FAILED", "billing"),
        (json!({"plan": "pro_plus", "billing": "weekly"}), 422, "VALIDATION_FAILED", "billing"),
        (
            json!({"plan": "pro_plus", "billing": "monthly", "consent_acknowledged": "yes"}),
            422,
            "VALIDATION_FAILED",
            "consent_acknowledged",
        ),
        // Fields come before consent, and consent before the plan.
        (json!({"plan": "pro", "billing": "monthly"}), 400, "INVALID_REQUEST", "consent_acknowledged"),
        (
            json!({"plan": "pro", "billing": "monthly", "consent_acknowledged": false}),
            400,
            "INVALID_REQUEST",
            "consent_acknowledged",
        ),
        (plan("pro", "monthly"), 400, "INVALID_REQUEST", "already"),
        (plan("pro", "yearly"), 400, "INVALID_REQUEST", "already"),
    ];
    for (body, status, code, word) in &rows {
        let refused = payer.session.post("/v1/billing/checkout", body).refused(*status, code);
        assert!(text(&refused, "/message").contains(word), "{body}: {refused}");
        cases.one();
    }
    let topup =
        |sku: &str, wallet: Value| json!({"sku": sku, "sandbox_wallet_id": wallet, "consent_acknowledged": true});
    let rows: Vec<(Value, u16, &str)> = vec![
        (json!({"consent_acknowledged": true}), 422, "VALIDATION_FAILED"),
        (topup("topup_1", json!(sandbox)), 422, "VALIDATION_FAILED"),
        (topup("topup_500", json!("x")), 422, "VALIDATION_FAILED"),
        (topup("topup_500", json!(-1)), 422, "VALIDATION_FAILED"),
        (topup("topup_500", json!(1.5)), 422, "VALIDATION_FAILED"),
        (json!({"sku": "topup_500", "sandbox_wallet_id": sandbox}), 400, "INVALID_REQUEST"),
        (topup("topup_500", Value::Null), 400, "INVALID_REQUEST"),
        (topup("topup_main_reset", json!(sandbox)), 400, "INVALID_REQUEST"),
        (topup("topup_500", json!(api)), 400, "INVALID_REQUEST"),
        (topup("topup_500", json!(main)), 400, "INVALID_REQUEST"),
        (topup("topup_500", json!(gone)), 404, "WALLET_NOT_FOUND"),
        (topup("topup_500", json!(7)), 404, "WALLET_NOT_FOUND"),
    ];
    for (body, status, code) in &rows {
        payer.session.post("/v1/billing/topup/checkout", body).refused(*status, code);
        cases.one();
    }
    for path in ["checkout", "topup/checkout"] {
        let path = format!("/v1/billing/{path}");
        payer.session.send(&Request::post(&path).text("application/json", "[]")).refused(400, "INVALID_BODY");
        payer.session.send(&Request::post(&path).text("text/plain", "{}")).refused(415, "HTTP_415");
        world.user(0).post(&path, &json!({})).refused(401, "MISSING_AUTH");
        world.public().post(&path, &json!({})).refused(401, "MISSING_AUTH");
        cases.add(4);
    }
    assert_eq!(payments.take_calls().len(), 0, "nothing of this reached the provider");
    // A user who bought nothing has no portal.
    world.server.with_token(&lasting("bob")).post("/v1/billing/portal", &json!({})).refused(400, "INVALID_REQUEST");
    let url = payer.session.send(&Request::post("/v1/billing/portal")).expect(200);
    assert!(text(&url, "/url").starts_with("https://pay.example.net/p/"), "{url}");
    for body in [topup("topup_2000", json!(sandbox)), topup("topup_main_reset", Value::Null)] {
        let url = payer.session.post("/v1/billing/topup/checkout", &body).expect(200);
        assert!(text(&url, "/url").starts_with("https://pay.example.net/s/"), "{url}");
        cases.one();
    }
    cases.add(2);
}

#[test]
fn the_provider_is_asked_for_what_is_listed() {
    let cases = Cases::of("calls to the provider");
    let prices = "\"price_pro_yearly,price_pro_old\"";
    let (world, payments) = paying(|place| _ = place.set("billing", "price_pro_yearly", prices));
    let mut session = world.server.with_token(&lasting("ada"));
    let user = int(&session.get("/v1/me").expect(200), "/user_id");
    let number = user.to_string();
    // The client names a plan; an amount or a price of it is not looked at.
    let mut body = plan("pro", "yearly");
    body["amount"] = json!(1);
    body["price"] = json!("price_mine");
    session.post("/v1/billing/checkout", &body).expect(200);
    let calls = payments.take_calls();
    let sent: Vec<(&str, &str)> = calls.iter().map(|call| (call.method.as_str(), call.path.as_str())).collect();
    let sessions = "/v1/checkout/sessions";
    assert_eq!(sent, [("POST", "/v1/customers"), ("GET", sessions), ("POST", sessions)]);
    let has = |form: &std::collections::BTreeMap<String, String>, fields: &[(&str, &str)]| {
        for (name, value) in fields {
            assert_eq!(form.get(*name).map(String::as_str), Some(*value), "{name} of {form:?}");
            cases.one();
        }
        assert_eq!(form.len(), fields.len(), "{form:?}");
    };
    has(&calls[0].form, &[("metadata[user_id]", &number), ("email", "ada@example.net")]);
    let customer = calls[2].form["customer"].clone();
    assert_eq!((calls[1].query["customer"].as_str(), calls[1].query["status"].as_str()), (&*customer, "open"));
    let always = [
        ("client_reference_id", number.as_str()),
        ("metadata[user_id]", &number),
        ("success_url", "https://paper.example/success"),
        ("cancel_url", "https://paper.example/cancel"),
        ("line_items[0][quantity]", "1"),
        ("customer", &customer),
    ];
    let plan_fields = [
        ("mode", "subscription"),
        ("line_items[0][price]", "price_pro_yearly"),
        ("metadata[plan]", "pro"),
        ("subscription_data[metadata][user_id]", &number),
    ];
    has(&calls[2].form, &[&always[..], &plan_fields].concat());
    for call in &calls {
        assert_eq!(call.authorization, format!("Bearer {SECRET_KEY}"));
        let len = if call.method == "GET" { 0 } else { 32 };
        assert_eq!(call.idempotency_key.len(), len, "each attempt has a name");
    }
    assert_ne!(calls[0].idempotency_key, calls[2].idempotency_key);
    // The customer is known from now on.
    session
        .post("/v1/billing/topup/checkout", &json!({"sku": "topup_main_reset", "consent_acknowledged": true}))
        .expect(200);
    let calls = payments.take_calls();
    assert_eq!(calls.len(), 1);
    let purchase_fields = [
        ("mode", "payment"),
        ("line_items[0][price_data][currency]", "usd"),
        ("line_items[0][price_data][unit_amount]", "299"),
        ("line_items[0][price_data][product_data][name]", "topup_main_reset"),
        ("metadata[sku]", "topup_main_reset"),
        ("payment_intent_data[metadata][user_id]", &number),
    ];
    has(&calls[0].form, &[&always[..], &purchase_fields].concat());
    // Another plan changes the living subscription, which is of a price that is not sold any more.
    let object = subscription("sub_1", &customer, user, "pro_old", "active", unix_now() + DAY);
    deliver(&world.server, &event("evt_1", "customer.subscription.created", unix_now(), &object), 0).expect(200);
    session.post("/v1/billing/checkout", &plan("pro_plus", "monthly")).expect(200);
    let calls = payments.take_calls();
    let sent: Vec<(&str, &str)> = calls.iter().map(|call| (call.method.as_str(), call.path.as_str())).collect();
    assert_eq!(sent, [("GET", "/v1/subscriptions/sub_1"), ("POST", "/v1/billing_portal/sessions")]);
    let confirm = "flow_data[subscription_update_confirm]";
    has(
        &calls[1].form,
        &[
            ("customer", &customer),
            ("return_url", "https://paper.example/return"),
            ("flow_data[type]", "subscription_update_confirm"),
            (&format!("{confirm}[subscription]"), "sub_1"),
            (&format!("{confirm}[items][0][id]"), "si_1"),
            (&format!("{confirm}[items][0][price]"), "price_pro_plus_monthly"),
            (&format!("{confirm}[items][0][quantity]"), "1"),
        ],
    );
    // A plan of the simulation is beside it.
    session.post("/v1/billing/checkout", &plan("backtesting_pro", "monthly")).expect(200);
    let page = payments.take_calls().pop().expect("a page");
    assert_eq!(page.form["line_items[0][price]"], "price_backtesting_pro_monthly");
    cases.add(8);
}

#[test]
fn a_provider_that_is_away_stops_nothing_else() {
    let cases = Cases::of("a provider that is away");
    let (world, payments) = paying(|place| _ = place.set("billing", "calls_max", "1"));
    let mut payer = Payer::new(&world, &payments, "ada");
    let rain = world.markets.rain.clone();
    let faults = [
        Fault::Status(500),
        Fault::Status(402),
        Fault::Status(301),
        Fault::Body("{".to_owned()),
        Fault::Body("{}".to_owned()),
        Fault::Body(json!({"url": "javascript:alert(1)"}).to_string()),
        Fault::Body(json!({"url": 7}).to_string()),
        Fault::Body("x".repeat(2 << 20)),
    ];
    for fault in faults {
        payments.fail(Some(fault));
        let refused = payer.session.post("/v1/billing/checkout", &plan("pro", "monthly"));
        refused.refused(502, "UPSTREAM_UNAVAILABLE");
        cases.one();
    }
    // One call is in flight: the next one is refused immediately, and orders go on.
    payments.take_calls();
    payments.fail(Some(Fault::Late(Duration::from_secs(4))));
    let (address, token) = (world.server.address(), lasting("ada"));
    let slow = std::thread::spawn(move || {
        Client::with_token(address, &token).post("/v1/billing/checkout", &plan("pro", "monthly")).status
    });
    tests::eventually("the call to arrive", || (!payments.take_calls().is_empty()).then_some(()));
    payer.session.post("/v1/billing/portal", &json!({})).refused(503, "SERVER_BUSY");
    let mut bob = world.server.with_token(&lasting("bob"));
    bob.post("/v1/billing/checkout", &plan("pro", "monthly")).refused(503, "SERVER_BUSY");
    for _ in 0..20 {
        world.user(0).post("/v1/orders", &limit(&rain, "BUY", "0.10", "10")).expect(200);
        cases.one();
    }
    assert_eq!(slow.join().expect("no panic"), 200);
    // An answer that comes too late, and none at all.
    payments.fail(Some(Fault::Late(Duration::from_secs(20))));
    payer.session.post("/v1/billing/portal", &json!({})).refused(502, "UPSTREAM_UNAVAILABLE");
    drop(payments);
    payer.session.post("/v1/billing/portal", &json!({})).refused(502, "UPSTREAM_UNAVAILABLE");
    let printed = world.server.output();
    assert!(!printed.contains(SECRET_KEY) && !printed.contains(WEBHOOK_SECRET), "secrets are never logged");
    assert!(printed.contains("a call to the payment provider failed"), "{printed}");
    cases.add(5);
}

/// What could not be written is refused before the provider is asked.
#[test]
fn with_the_previous_format_nothing_is_sold_or_returned() {
    let cases = Cases::of("billing under the previous format");
    let (mut world, payments) = paying(|_| {});
    let mut payer = Payer::new(&world, &payments, "ada");
    let object = paid("pi_1", &payer.customer, payer.user, "topup_main_reset", None, 299);
    let bought = event("evt_1", "checkout.session.completed", unix_now(), &object);
    deliver(&world.server, &bought, 0).expect(200);
    let mut bob = world.server.with_token(&lasting("bob"));
    bob.get("/v1/me").expect(200);
    world.place.set("journal", "write_formats", "\"previous\"");
    world.crash();
    for session in [&mut payer.session, &mut bob] {
        session.moved_to(world.server.address());
        session.post("/v1/billing/checkout", &plan("pro", "monthly")).refused(503, "SERVER_BUSY");
        let reset = json!({"sku": "topup_main_reset", "consent_acknowledged": true});
        session.post("/v1/billing/topup/checkout", &reset).refused(503, "SERVER_BUSY");
        cases.add(2);
    }
    let token = fs::read_to_string(world.place.data().join("admin_token")).expect("the server made one");
    let admin = Client::new(world.server.admin().expect("there is one"));
    let mut control = Client::with_header(admin, "Authorization", &format!("Bearer {token}"));
    let refund = json!({"user": "ada", "purchase": "pi_1"});
    control.post("/v1/admin/refunds", &refund).refused(503, "SERVER_BUSY");
    assert_eq!(payments.take_calls().len(), 0, "nothing of this reached the provider");
    let object = refunded("pi_1", &payer.customer, 299, 299);
    let event = event("evt_2", "charge.refunded", unix_now(), &object);
    deliver(&world.server, &event, 0).refused(503, "SERVER_BUSY");
    // With the newest format again, all of it works.
    world.place.set("journal", "write_formats", "\"newest\"");
    world.crash();
    payer.session.moved_to(world.server.address());
    payer.session.post("/v1/billing/checkout", &plan("pro", "monthly")).expect(200);
    let admin = Client::new(world.server.admin().expect("there is one"));
    let mut control = Client::with_header(admin, "Authorization", &format!("Bearer {token}"));
    control.post("/v1/admin/refunds", &refund).expect(200);
    deliver(&world.server, &event, 0).expect(200);
    control.post("/v1/admin/refunds", &refund).refused(400, "INVALID_REQUEST");
    cases.add(6);
}

#[test]
fn only_a_signed_event_is_read() {
    let cases = Cases::of("signatures of the webhook");
    let (world, payments) = paying(|_| {});
    let admin = world.server.admin().expect("there is one");
    let payer = Payer::new(&world, &payments, "ada");
    let object = subscription("sub_1", &payer.customer, payer.user, "pro_monthly", "active", unix_now() + DAY);
    let body = event("evt_1", "customer.subscription.created", unix_now(), &object).to_string();
    let now = unix_now();
    let send = |body: &str, headers: &[&str]| {
        let mut request = Request::post("/v1/billing/webhook").text("application/json", body);
        for header in headers {
            request = request.header("Stripe-Signature", header);
        }
        world.public().send(&request)
    };
    let good = signature(&body, now);
    let digits = good.split_once("v1=").expect("it has one").1.to_owned();
    let flipped = format!("t={now},v1={}{}", if digits.starts_with('0') { "1" } else { "0" }, &digits[1..]);
    let many = format!("t={now},{}v1={digits}", "v1=00,".repeat(2_000));
    let rows: Vec<(&str, Vec<&str>)> = vec![
        (&body, vec![]),
        (&body, vec![""]),
        (&body, vec!["t=1,v1=2"]),
        (&body, vec![&flipped]),
        (&body, vec![&good, &good]),
        (&body, vec![&many]),
        ("{}", vec![&good]),
        ("", vec![&good]),
    ];
    let (mut refused, before) = (0, counted(admin, "not_genuine"));
    for (body, headers) in &rows {
        send(body, headers).refused(400, "INVALID_REQUEST");
        refused += 1;
        cases.one();
    }
    // The clock of the server goes on meanwhile: the exact bounds are rows of the unit test of signatures.
    for (secs, accepted) in [(-301_i64, false), (420, false), (-180, true), (180, true)] {
        let header = signature(&body, unix_now().saturating_add_signed(secs));
        let answer = send(&body, &[&header]);
        match accepted {
            true => _ = answer.expect(200),
            false => {
                answer.refused(400, "INVALID_REQUEST");
                refused += 1;
            }
        }
        cases.one();
    }
    // Signed, but no event.
    for body in ["{}", "[]", "7", "{\"id\":\"evt_1\"}", "{"] {
        send(body, &[&signature(body, now)]).refused(400, "INVALID_REQUEST");
        refused += 1;
        cases.one();
    }
    assert_eq!(counted(admin, "not_genuine"), before + refused);
    // Ten megabytes are refused by their declared length, and without one after the first.
    let large = "x".repeat(10 << 20);
    let answer = send_raw(
        world.server.address(),
        format!("POST /v1/billing/webhook HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", large.len()).as_bytes(),
    );
    assert_eq!(answer.response.expect("an answer").status, 413);
    let mut chunked = b"POST /v1/billing/webhook HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    chunked.extend_from_slice(format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len()).as_bytes());
    let answer = send_raw(world.server.address(), &chunked);
    assert_eq!(answer.response.expect("an answer").status, 413);
    world.public().get("/v1/health").expect(200);
    cases.add(3);
}

#[test]
fn the_stub_applies_a_purchase_at_once() {
    let cases = Cases::of("the provider for development");
    let mut world = World::start_with(1, |place| _ = place.set("billing", "provider", "\"stub\"").clock_ahead(0));
    assert!(world.server.output().contains("for development only"), "the banner warns");
    let mut session = world.server.with_token(&lasting("ada"));
    let follow = |world: &World, url: &Value| {
        let url = text(url, "/url");
        let path = url.strip_prefix(&format!("http://{}", world.server.address())).expect("a link to this server");
        world.public().get(path)
    };
    let looked = |world: &World, url: &Value| {
        let path = text(url, "/url").split("/v1/").nth(1).expect("a path");
        world.public().send(&Request::new("HEAD", &format!("/v1/{path}"))).status
    };
    session.post("/v1/billing/portal", &json!({})).refused(400, "INVALID_REQUEST");
    let url = session.post("/v1/billing/checkout", &plan("pro", "monthly")).expect(200);
    assert_eq!(looked(&world, &url), 200);
    assert_eq!(text(&session.get("/v1/billing/subscription").expect(200), "/plan"), "free");
    follow(&world, &url).expect(200);
    let shown = session.get("/v1/billing/subscription").expect(200);
    assert_eq!((text(&shown, "/plan"), text(&shown, "/status")), ("pro", "active"));
    follow(&world, &url).refused(400, "INVALID_REQUEST");
    assert_eq!(looked(&world, &url), 400, "a used link");
    let sandbox = session.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).expect(201);
    let sandbox = int(&sandbox, "/id");
    let body = json!({"sku": "topup_10000", "sandbox_wallet_id": sandbox, "consent_acknowledged": true});
    let (url, late) = (
        session.post("/v1/billing/topup/checkout", &body).expect(200),
        session.post("/v1/billing/topup/checkout", &body).expect(200),
    );
    follow(&world, &url).expect(200);
    assert_eq!(text(&session.get(&format!("/v1/me/wallets/{sandbox}")).expect(200), "/balance"), "20000.00");
    // Used once, also after a restart.
    world.crash();
    session.moved_to(world.server.address());
    let again = text(&url, "/url").split("/v1/").nth(1).expect("a path").to_owned();
    world.public().get(&format!("/v1/{again}")).refused(400, "INVALID_REQUEST");
    for path in ["x", "", "AAAA", &again[..again.len() - 2]] {
        let path = path.trim_start_matches("billing/confirm/");
        let answer = world.public().get(&format!("/v1/billing/confirm/{path}"));
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.lossy());
        cases.one();
    }
    // After half an hour a link is over.
    world.place.clock_ahead(1_800);
    let late = text(&late, "/url").split("/v1/").nth(1).expect("a path").to_owned();
    world.public().get(&format!("/v1/{late}")).refused(400, "INVALID_REQUEST");
    assert_eq!(text(&session.get(&format!("/v1/me/wallets/{sandbox}")).expect(200), "/balance"), "20000.00");
    // A better plan, and the end of it.
    let url = session.post("/v1/billing/checkout", &plan("pro_plus", "yearly")).expect(200);
    follow(&world, &url).expect(200);
    assert_eq!(text(&session.get("/v1/account/me/entitlements").expect(200), "/plan"), "pro_plus");
    let url = session.post("/v1/billing/portal", &json!({})).expect(200);
    follow(&world, &url).expect(200);
    assert_eq!(text(&session.get("/v1/billing/subscription").expect(200), "/status"), "canceled");
    let entitled = session.get("/v1/account/me/entitlements").expect(200);
    assert_eq!((text(&entitled, "/plan"), text(&entitled, "/source")), ("free", "default"));
    // Without an event a plan holds for a week after its period; then it has ended for every route, and is sold again.
    let url = session.post("/v1/billing/checkout", &plan("pro", "monthly")).expect(200);
    follow(&world, &url).expect(200);
    for (days, status, entitled, sold) in
        [(29, "active", "pro", false), (31, "past_due", "pro", false), (38, "canceled", "free", true)]
    {
        world.place.clock_ahead(1_800 + days * DAY);
        assert_eq!(text(&session.get("/v1/billing/subscription").expect(200), "/status"), status, "day {days}");
        assert_eq!(text(&session.get("/v1/account/me/entitlements").expect(200), "/plan"), entitled, "day {days}");
        let page = session.post("/v1/billing/checkout", &plan("pro", "monthly"));
        assert_eq!(page.status, if sold { 200 } else { 400 }, "day {days}");
        cases.one();
    }
    let url = session.post("/v1/billing/checkout", &plan("pro", "monthly")).expect(200);
    follow(&world, &url).expect(200);
    assert_eq!(text(&session.get("/v1/billing/subscription").expect(200), "/status"), "active");
    assert_eq!(text(&session.get("/v1/account/me/entitlements").expect(200), "/plan"), "pro");
    cases.add(18);
}

/// Runs a verb on the place of a world.
fn verb(world: &World, args: &[&str]) -> Output {
    let mut verb = command();
    verb.args(args).arg("--config").arg(world.place.config()).arg("--data-dir").arg(world.place.data());
    verb.output().expect("papertape can be run")
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_start_with_half_a_provider_is_refused() {
    let cases = Cases::of("settings of billing");
    let payments = Payments::start();
    for (key, value) in [
        ("secret_key", None),
        ("webhook_secrets", None),
        ("success_url", None),
        ("cancel_url", None),
        ("return_url", None),
        ("secret_key", Some("\"short\"")),
        ("stripe_base_url", Some("\"http://pay.example.net\"")),
        ("stripe_base_url", Some("\"\"")),
        ("provider", Some("\"paypal\"")),
        ("calls_max", Some("0")),
        ("price_pro_monthly", Some("\"a b\"")),
        ("price_pro_monthly", Some("\"a,,b\"")),
    ] {
        let mut place = ServerDir::new();
        payments.settings(&mut place);
        match value {
            Some(value) => _ = place.set("billing", key, value),
            None => _ = place.unset("billing", key),
        }
        let output = run([OsString::from("settings"), "--config".into(), place.config().into()]);
        assert!(
            !output.status.success() && printed(&output).contains(&format!("billing.{key}")),
            "{}",
            printed(&output)
        );
        cases.one();
    }
    let mut place = ServerDir::new();
    payments.settings(&mut place);
    let output = run([OsString::from("settings"), "--config".into(), place.config().into()]);
    let shown = printed(&output);
    assert!(output.status.success() && shown.contains("billing.secret_key"), "{shown}");
    assert!(!shown.contains(SECRET_KEY) && !shown.contains(WEBHOOK_SECRET), "secrets are not shown");
    cases.one();
}
