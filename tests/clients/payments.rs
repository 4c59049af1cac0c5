//! localstripe, another implementation of the payment provider, as the provider of a server (gateway/docs/billing.md §7):
//! customers, subscriptions and their end, refunds, and the signatures of its events. It has no checkout and no portal,
//! which a stand-in has (`tests/harness/payments.rs`).

use crate::programs::Clients;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use tests::binary::command;
use tests::cases::Cases;
use tests::eventually;
use tests::http::{Client, Request, connect};
use tests::json::{int, list, text};
use tests::payments::{Payments, SECRET_KEY, WEBHOOK_SECRET, deliver, event, paid};
use tests::token::{token, unix_now};
use tests::world::World;

/// A running localstripe; killed when dropped.
struct Local {
    child: Child,
    address: SocketAddr,
}

impl Local {
    fn start(clients: &Clients, folder: &std::path::Path) -> Local {
        // The port is free again when it starts.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let mut local: Command = clients.python("python");
        local.args(["-m", "localstripe", "--from-scratch", "--port", &port.to_string()]).current_dir(folder);
        // It keeps its state in a file of its temporary folder.
        local.env("TMPDIR", folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = local.spawn().expect("localstripe can be started");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        eventually("localstripe to listen", || connect(address).ok());
        Local { child, address }
    }

    /// One call of its own interface with a form.
    fn call(&self, method: &str, path: &str, form: &[(&str, &str)]) -> Value {
        let text = form.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
        let mut request = Request::new(method, path).header("Authorization", &format!("Bearer {SECRET_KEY}"));
        if !form.is_empty() {
            request = request.text("application/x-www-form-urlencoded", &text);
        }
        let answer = Client::new(self.address).send(&request);
        assert_eq!(answer.status, 200, "{method} {path} {text}: {}", answer.lossy());
        serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn another_implementation_of_the_provider_agrees() {
    let Some(clients) = Clients::fetched() else { return };
    let cases = Cases::of("localstripe");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let local = Local::start(&clients, folder.path());
    // The settings of the stand-in, with another address.
    let stand_in = Payments::start();
    let world = World::start_with(0, |place| {
        stand_in.settings(place);
        place.set("billing", "stripe_base_url", &format!("\"http://{}\"", local.address));
        place.set("admin", "listen", "\"127.0.0.1:0\"");
    });
    let url = format!("http://{}/v1/billing/webhook", world.server.address());
    local.call("POST", "/_config/webhooks/papertape", &[("url", &url), ("secret", WEBHOOK_SECRET)]);
    for (plan, cents) in [("price_pro_monthly", "2900"), ("price_pro_plus_monthly", "9900")] {
        let fields =
            [("id", plan), ("amount", cents), ("currency", "usd"), ("interval", "month"), ("product[name]", plan)];
        local.call("POST", "/v1/plans", &fields);
    }
    let mut session = world.server.with_token(&token("ada"));
    let user = int(&session.get("/v1/me").expect(200), "/user_id").to_string();
    // It makes the customer, and has no checkout.
    let plan = |plan: &str| json!({"plan": plan, "billing": "monthly", "consent_acknowledged": true});
    session.post("/v1/billing/checkout", &plan("pro")).refused(502, "UPSTREAM_UNAVAILABLE");
    let customers = local.call("GET", "/v1/customers", &[]);
    let customer = list(&customers, "/data")[0].clone();
    assert_eq!(text(&customer, "/metadata/user_id"), user);
    let customer = text(&customer, "/id").to_owned();
    session.post("/v1/billing/checkout", &plan("pro")).refused(502, "UPSTREAM_UNAVAILABLE");
    assert_eq!(list(&local.call("GET", "/v1/customers", &[]), "/data").len(), 1, "it is kept");
    cases.add(4);
    // A subscription is made and paid: its signed events come.
    let card = [
        ("card[number]", "4242424242424242"),
        ("card[exp_month]", "12"),
        ("card[exp_year]", "2030"),
        ("card[cvc]", "123"),
    ];
    let source = local.call("POST", "/v1/tokens", &card);
    let sources = format!("/v1/customers/{customer}/sources");
    let card = local.call("POST", &sources, &[("source", text(&source, "/id"))]);
    let fields =
        [("customer", customer.as_str()), ("items[0][plan]", "price_pro_monthly"), ("metadata[user_id]", &user)];
    let made = local.call("POST", "/v1/subscriptions", &fields);
    let subscription = text(&made, "/id").to_owned();
    let status = |session: &mut Client, wanted: &str| {
        eventually(wanted, || {
            let shown = session.get("/v1/billing/subscription").expect(200);
            (text(&shown, "/status") == wanted).then_some(shown)
        })
    };
    let shown = status(&mut session, "active");
    assert_eq!((text(&shown, "/plan"), text(&shown, "/interval")), ("pro", "monthly"));
    let period_end = made["current_period_end"].as_u64().expect("seconds");
    let expected = wire::instant::ts_text(engine::time::Timestamp::from_secs(period_end));
    assert_eq!(text(&shown, "/current_period_end"), expected);
    assert_eq!(text(&session.get("/v1/account/me/entitlements").expect(200), "/plan"), "pro");
    // A change reads the subscription there before it asks for a page.
    session.post("/v1/billing/checkout", &plan("pro_plus")).refused(502, "UPSTREAM_UNAVAILABLE");
    let is_logged = || world.server.output().contains("portal session").then_some(());
    eventually("the line of the page that failed", is_logged);
    cases.add(5);
    // A payment is returned by an administrator.
    let sandbox = session.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).expect(201);
    let wallet = int(&sandbox, "/id");
    let fields =
        [("amount", "299"), ("currency", "usd"), ("customer", customer.as_str()), ("source", text(&card, "/id"))];
    let charge = local.call("POST", "/v1/charges", &fields);
    let payment = text(&charge, "/id").to_owned();
    assert_eq!(text(&charge, "/status"), "succeeded");
    let bought = paid(&payment, &customer, user.parse().expect("an id"), "topup_500", Some(wallet), 299);
    deliver(&world.server, &event("evt_own", "checkout.session.completed", unix_now(), &bought), 0).expect(200);
    let admin = format!("http://{}", world.server.admin().expect("there is one"));
    let token_file = world.place.data().join("admin_token");
    let refund = |purchase: &str| {
        let mut refund = command();
        refund.args(["refund", "--user", "ada", "--purchase", purchase, "--admin", &admin, "--token-file"]);
        refund.arg(&token_file).arg("--data-dir").arg(world.place.data());
        refund.output().expect("papertape can be run")
    };
    let output = refund(&payment);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let charge = local.call("GET", &format!("/v1/charges/{payment}"), &[]);
    assert_eq!((charge["amount_refunded"].as_u64(), charge["refunded"].as_bool()), (Some(299), Some(true)));
    assert!(!refund("pi_unknown").status.success(), "the user made no such purchase");
    // It sends no event of a refund: its own object, signed here.
    let event = event("evt_refund", "charge.refunded", unix_now(), &charge);
    deliver(&world.server, &event, 0).expect(200);
    let shown = session.get(&format!("/v1/me/wallets/{wallet}")).expect(200);
    assert_eq!(text(&shown, "/balance"), "10000.00", "what was bought is taken back");
    assert!(!refund(&payment).status.success(), "it was returned already");
    cases.add(5);
    // The end.
    local.call("DELETE", &format!("/v1/subscriptions/{subscription}"), &[]);
    status(&mut session, "canceled");
    assert_eq!(text(&session.get("/v1/account/me/entitlements").expect(200), "/plan"), "free");
    cases.add(2);
}
