//! Alerts by mail, to chats and to webhooks (gateway/docs/integrations.md).

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::json::{at, int, list, text};
use tests::receiver::{Behaviour, Received, Receiver};
use tests::server::ServerDir;
use tests::token::{token, token_with};
use tests::world::{World, limit};

const HOOKS: &str = "/v1/integrations/webhook";
const CHATS: &str = "/v1/integrations/discord";
const PREFERENCES: &str = "/v1/integrations/email/preferences";

/// Targets on loopback, chats without TLS, short pauses between attempts, and time for a slow machine.
fn private(place: &mut ServerDir) {
    place.set("integrations", "allow_private_targets", "true");
    place.set("integrations", "chat_hosts", "[\"127.0.0.1\"]");
    place.set("integrations", "first_retry_ms", "10");
    place.set("integrations", "timeout_ms", "20000");
}

fn with_mail(place: &mut ServerDir) {
    private(place);
    let dir = place.root().join("mail");
    place.set("email", "smtp_url", &format!("\"file:{}\"", dir.display()));
    place.set("email", "from", "\"alerts@example.net\"");
}

/// Adds a target; returns its path.
#[track_caller]
fn add(client: &mut Client, path: &str, body: &Value) -> String {
    let added = client.post(path, body).expect(201);
    format!("{path}/{}", int(&added, "/id"))
}

#[track_caller]
fn one(client: &mut Client, path: &str) -> Value {
    let (list_path, id) = path.rsplit_once('/').expect("a path with an id");
    let all = client.get(list_path).expect(200);
    let found = list(&all, "/subscriptions").iter().find(|row| int(row, "/id").to_string() == id).cloned();
    found.unwrap_or_else(|| panic!("{path} is not in {all}"))
}

/// Waits until the list of deliveries has this many rows; newest first.
#[track_caller]
fn deliveries(client: &mut Client, path: &str, count: usize) -> Vec<Value> {
    eventually("deliveries", || {
        let answer = client.get(&format!("{path}/deliveries")).expect(200);
        Some(list(&answer, "/deliveries").to_vec()).filter(|rows| rows.len() >= count)
    })
}

/// Buys 10 shares at the ask of 0.42.
#[track_caller]
fn buy(world: &World, client: &mut Client) -> Value {
    client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.42", "10")).expect(200)
}

/// Buys 5 shares where there are a thousand.
#[track_caller]
fn fill(world: &World, client: &mut Client) {
    client.post("/v1/orders", &limit(&world.markets.coin, "BUY", "0.50", "5")).expect(200);
}

fn mails(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let whole = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "eml"));
    whole.map(|path| fs::read_to_string(path).expect("a mail is text")).collect()
}

/// RFC 2104 over SHA-256, written again.
fn hmac(secret: &[u8], message: &[u8]) -> String {
    let mut key = [0_u8; 64];
    key[..secret.len()].copy_from_slice(secret);
    let inner = Sha256::new().chain_update(key.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    let outer = Sha256::new().chain_update(key.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn either_credential_reads_and_chooses() {
    let cases = Cases::of("credentials");
    let world = World::start(1);
    let token = token("either");
    let (mut by_key, _) = world.newcomer("either");
    let mut by_token = world.server.with_token(&token);
    for client in [&mut by_key, &mut by_token] {
        assert_eq!(client.get(HOOKS).expect(200), json!({"subscriptions": []}));
        assert_eq!(client.get(CHATS).expect(200), json!({"subscriptions": []}));
        let preferences = client.get(PREFERENCES).expect(200);
        assert_eq!((at(&preferences, "/email"), list(&preferences, "/preferences").len()), (&Value::Null, 12));
        client.patch(PREFERENCES, &json!({"preferences": {"order_filled": true}})).expect(200);
        client.post(HOOKS, &json!({"url": "https://hooks.example.net/"})).refused(402, "UPGRADE_REQUIRED");
        cases.add(5);
    }
    for path in [HOOKS, CHATS, PREFERENCES] {
        world.public().get(path).refused(401, "MISSING_AUTH");
        cases.one();
    }
}

#[test]
fn addresses_of_this_network_are_refused() {
    let cases = Cases::of("refused addresses");
    let receiver = Receiver::start(Behaviour::Status(200));
    let world = World::start_with(1, |place| _ = place.set("integrations", "chat_hosts", "[\"discord.com\"]"));
    let mut client = world.user(0);
    let port = receiver.url("").rsplit_once(':').expect("a port").1.to_owned();
    let own = receiver.url("/hook");
    let named = format!("http://localhost:{port}/hook");
    let short = format!("http://127.1:{port}/hook");
    let number = format!("http://2130706433:{port}/hook");
    let mapped = format!("http://[::ffff:127.0.0.1]:{port}/hook");
    for (path, url) in [
        (HOOKS, own.as_str()),
        (HOOKS, named.as_str()),
        (HOOKS, short.as_str()),
        (HOOKS, number.as_str()),
        (HOOKS, mapped.as_str()),
        (HOOKS, "http://169.254.169.254/latest/meta-data"),
        (HOOKS, "http://10.0.0.1/"),
        (HOOKS, "http://[fd00::1]/"),
        (HOOKS, "http://[64:ff9b::a00:1]/"),
        (HOOKS, "http://0.0.0.0/"),
        (HOOKS, "ftp://hooks.example.net/"),
        (HOOKS, "hooks.example.net"),
        (HOOKS, "https://user:pass@hooks.example.net/"),
        (HOOKS, "https://no-such-host.invalid/"),
        (CHATS, "http://discord.com/api/webhooks/1/a"),
        (CHATS, "https://discord.com.example.net/api/webhooks/1/a"),
        (CHATS, "https://hooks.example.net/"),
        (CHATS, own.as_str()),
        (CHATS, " https://discord.com/api/webhooks/1/a"),
        (CHATS, "https://discord.com/api/\r\nX: y"),
        (CHATS, "https://discord.com:0/api/webhooks/1/a"),
    ] {
        client.post(path, &json!({"url": url})).refused(400, "INVALID_REQUEST");
        cases.one();
    }
    assert_eq!(receiver.connections(), 0, "no connection is made to look");
    // A chat is taken by its host alone.
    add(&mut client, CHATS, &json!({"url": "https://discord.com/api/webhooks/1001/k9Qz"}));
    let chat = client.get(CHATS).expect(200);
    assert_eq!(text(&chat, "/subscriptions/0/url_masked"), "discord.com/…k9Qz");
}

#[test]
fn a_target_that_was_allowed_is_checked_at_each_connection() {
    let cases = Cases::of("later rules");
    let receiver = Receiver::start(Behaviour::Status(200));
    let mut world = World::start_with(1, private);
    let mut client = world.user(0);
    let hook = add(&mut client, HOOKS, &json!({"url": receiver.url("/hook")}));
    let port = receiver.url("").rsplit_once(':').expect("a port").1.to_owned();
    let named = add(&mut client, HOOKS, &json!({"url": format!("http://localhost:{port}/hook")}));
    client.post(&format!("{hook}/test"), &Value::Null).expect(200);
    let before = receiver.connections();
    world.server.kill();
    world.place.set("integrations", "allow_private_targets", "false");
    world.server = world.place.start();
    let mut client = world.user(0);
    for path in [&hook, &named] {
        client.post(&format!("{path}/test"), &Value::Null).refused(502, "UPSTREAM_UNAVAILABLE");
        cases.one();
    }
    assert_eq!(receiver.connections(), before);
}

#[test]
fn a_fill_arrives_signed_with_its_order() {
    let cases = Cases::of("payloads");
    let receiver = Receiver::start(Behaviour::Status(204));
    let world = World::start_with(1, private);
    let mut client = world.user(0);
    let secret = "a secret of thirty-two bytes ...";
    let kinds = json!(["order_filled", "order_partially_filled", "order_cancelled"]);
    let hook =
        add(&mut client, HOOKS, &json!({"url": receiver.url("/hook?a=b"), "secret": secret, "event_types": kinds}));
    let order = buy(&world, &mut client);
    let [first] = &receiver.wait_for(1)[..] else { panic!("one request") };
    assert_eq!(first.line, "POST /hook?a=b HTTP/1.1");
    assert_eq!(first.header("content-type"), Some("application/json"));
    let signature = first.header("x-svc-signature").expect("it is signed");
    let (time, hex) = signature.split_once(",v1=").expect("a time and a signature");
    let seconds = time.strip_prefix("t=").expect("a time");
    let signed = [format!("{seconds}.").as_bytes(), &first.body].concat();
    assert_eq!(hex, hmac(secret.as_bytes(), &signed));
    let payload = first.json();
    let names: Vec<&String> = payload.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["id", "event_type", "created_at", "user_id", "data"]);
    assert_eq!((text(&payload, "/event_type"), int(&payload, "/user_id")), ("order_filled", world.users[0].id));
    let market = &world.markets.rain;
    assert_eq!(
        at(&payload, "/data"),
        &json!({
            "order_id": int(&order, "/order_id"), "client_order_id": null, "market_id": market.condition,
            "question": market.question, "outcome": "Yes", "side": "BUY", "price": "0.42", "quantity": "10",
            "notional": "4.20", "fee": text(&order, "/fee"), "status": "FILLED", "cancelled_reason": null
        })
    );
    cases.one();
    // 50.5 of 100 are filled immediately, the rest is cancelled.
    let body = tests::world::changed(&limit(market, "BUY", "0.42", "100"), &json!({"client_order_id": "grid-7"}));
    let order = client.post("/v1/orders", &body).expect(200);
    let id = int(&order, "/order_id");
    client.delete(&format!("/v1/orders/{id}")).expect(200);
    let partial = receiver.wait_for_event("order_partially_filled");
    assert_eq!((text(&partial, "/data/status"), text(&partial, "/data/quantity")), ("PENDING", "50.5"));
    let cancelled = receiver.wait_for_event("order_cancelled");
    assert_eq!((int(&cancelled, "/data/order_id"), text(&cancelled, "/data/client_order_id")), (id, "grid-7"));
    assert_eq!((text(&cancelled, "/data/price"), text(&cancelled, "/data/quantity")), ("0.42", "100"));
    let end = (text(&cancelled, "/data/status"), text(&cancelled, "/data/cancelled_reason"));
    assert_eq!(end, ("CANCELLED", "user_cancelled"));
    cases.add(2);
    // Each has its own id, and the list of deliveries names them.
    let ids: BTreeSet<String> = receiver.received().iter().map(|got| text(&got.json(), "/id").to_owned()).collect();
    assert_eq!(ids.len(), 3);
    let rows = deliveries(&mut client, &hook, 3);
    for row in &rows {
        assert!(ids.contains(text(row, "/event_id")), "{row}");
        assert_eq!((text(row, "/outcome"), int(row, "/attempt"), int(row, "/http_status")), ("delivered", 1, 204));
        cases.one();
    }
    let row = one(&mut client, &hook);
    assert!(!at(&row, "/last_delivery_at").is_null() && at(&row, "/last_error").is_null(), "{row}");
}

#[test]
fn settlements_keys_and_resolutions_arrive() {
    let cases = Cases::of("other events");
    let receiver = Receiver::start(Behaviour::Status(200));
    let mut world = World::start_with(1, private);
    let mut client = world.user(0);
    add(&mut client, HOOKS, &json!({"url": receiver.url("/hook")}));
    buy(&world, &mut client);
    // An order that rests when the market is resolved.
    client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.10", "10")).expect(200);
    let key = client.post("/v1/keys", &json!({"name": "second"})).expect(201);
    let rotated = client.post(&format!("/v1/keys/{}/rotate", int(&key, "/id")), &Value::Null).expect(201);
    let created = receiver.wait_for_event("key_created");
    assert_eq!((int(&created, "/data/key_id"), text(&created, "/data/name")), (int(&key, "/id"), "second"));
    let replaced = receiver.wait_for_event("key_rotated");
    let ids = (int(&replaced, "/data/key_id"), int(&replaced, "/data/replaces_key_id"));
    assert_eq!(ids, (int(&rotated, "/id"), int(&key, "/id")));
    let rain = world.markets.rain.condition.clone();
    world.tape.resolve(&world.markets.rain, ["1", "0"]);
    let resolved = receiver.wait_for_event("market_resolved_watch");
    assert_eq!((text(&resolved, "/data/market_id"), text(&resolved, "/data/resolved_outcome")), (rain.as_str(), "Yes"));
    let settled = receiver.wait_for_event("position_settled");
    let rows = client.get("/v1/account/settlements").expect(200);
    assert_eq!(at(&settled, "/data"), at(&rows, "/data/0"), "the row of the account");
    let expired = receiver.wait_for_event("order_expired");
    assert_eq!(text(&expired, "/data/cancelled_reason"), "market_resolved");
    let kinds: Vec<String> =
        receiver.received().iter().map(|got| text(&got.json(), "/event_type").to_owned()).collect();
    for (kind, count) in [("market_resolved_watch", 1), ("key_created", 1), ("key_rotated", 1), ("position_settled", 1)]
    {
        assert_eq!(kinds.iter().filter(|other| *other == kind).count(), count, "{kind} in {kinds:?}");
        cases.one();
    }
}

#[test]
fn what_fails_is_repeated_given_up_and_switched_off() {
    let cases = Cases::of("failures");
    let world = World::start_with(1, |place| {
        private(place);
        place.set("integrations", "timeout_ms", "2000");
    });
    let mut client = world.user(0);
    let elsewhere = Receiver::start(Behaviour::Status(200));
    // (how it fails, a part of the error, the status)
    for (behaviour, words, status) in [
        (Behaviour::Status(500), "answered 500", Some(500)),
        (Behaviour::Status(301), "answered 301", Some(301)),
        (Behaviour::Redirect(elsewhere.url("/private")), "redirects are not followed", Some(307)),
        (Behaviour::Stall, "no answer within 2000 ms", None),
        (Behaviour::Cut, "broke the connection", None),
        (Behaviour::Garbage, "broke the connection", None),
    ] {
        let receiver = Receiver::start(behaviour.clone());
        let hook = add(&mut client, HOOKS, &json!({"url": receiver.url("/hook"), "event_types": ["order_filled"]}));
        // Orders go on meanwhile.
        fill(&world, &mut client);
        let rows = deliveries(&mut client, &hook, 5);
        assert_eq!(receiver.received().len(), 5, "{behaviour:?}");
        let ids: BTreeSet<Vec<u8>> = receiver.received().into_iter().map(|got: Received| got.body).collect();
        assert_eq!(ids.len(), 1, "each attempt is the same");
        let outcomes: Vec<(&str, i64)> = rows.iter().map(|row| (text(row, "/outcome"), int(row, "/attempt"))).collect();
        assert_eq!(outcomes, [("given_up", 5), ("failed", 4), ("failed", 3), ("failed", 2), ("failed", 1)]);
        assert!(text(&rows[0], "/error").contains(words), "{behaviour:?}: {}", rows[0]);
        assert_eq!(at(&rows[0], "/http_status"), &json!(status), "{behaviour:?}");
        let row = eventually("the state of the target", || {
            Some(one(&mut client, &hook)).filter(|row| int(row, "/failures") == 5)
        });
        assert!(at(&row, "/enabled") == &json!(true) && text(&row, "/last_error").contains(words), "{row}");
        // The next one is tried from the start, and ends the row of failures.
        receiver.set(Behaviour::Status(200));
        fill(&world, &mut client);
        deliveries(&mut client, &hook, 6);
        let row = eventually("a delivery", || {
            Some(one(&mut client, &hook)).filter(|row| !at(row, "/last_delivery_at").is_null())
        });
        assert_eq!((int(&row, "/failures"), at(&row, "/last_error")), (0, &Value::Null));
        client.delete(&hook).expect(200);
        cases.add(6);
    }
    assert_eq!(elsewhere.connections(), 0, "no redirect was followed");
    // A target that is gone.
    let receiver = Receiver::start(Behaviour::Status(410));
    let hook = add(&mut client, HOOKS, &json!({"url": receiver.url("/hook"), "event_types": ["order_filled"]}));
    fill(&world, &mut client);
    let rows = deliveries(&mut client, &hook, 1);
    assert_eq!((text(&rows[0], "/outcome"), int(&rows[0], "/http_status")), ("disabled", 410));
    eventually("it is switched off", || (at(&one(&mut client, &hook), "/enabled") == &json!(false)).then_some(()));
    assert_eq!(receiver.received().len(), 1);
    cases.one();
    client.delete(&hook).expect(200);
    // One that fails twenty times in a row: four alerts with five attempts each.
    let receiver = Receiver::start(Behaviour::Status(503));
    let hook = add(&mut client, HOOKS, &json!({"url": receiver.url("/hook"), "event_types": ["order_cancelled"]}));
    for _ in 0..5 {
        let order = client.post("/v1/orders", &limit(&world.markets.vote, "BUY", "0.1", "10")).expect(200);
        client.delete(&format!("/v1/orders/{}", int(&order, "/order_id"))).expect(200);
    }
    let row = eventually("it is switched off", || {
        Some(one(&mut client, &hook)).filter(|row| at(row, "/enabled") == &json!(false))
    });
    assert_eq!((int(&row, "/failures"), receiver.received().len()), (20, 20));
    let rows = deliveries(&mut client, &hook, 20);
    assert_eq!(text(&rows[0], "/outcome"), "disabled");
    let waiting = client.get(&format!("{hook}/deliveries")).expect(200);
    assert_eq!(int(&waiting, "/owed"), 0, "what it was owed is dropped");
    // On again, it begins with what happens then.
    receiver.set(Behaviour::Status(200));
    let row = client.patch(&hook, &json!({"enabled": true})).expect(200);
    assert_eq!((int(&row, "/failures"), at(&row, "/enabled")), (0, &json!(true)));
    let order = client.post("/v1/orders", &limit(&world.markets.vote, "BUY", "0.1", "10")).expect(200);
    client.delete(&format!("/v1/orders/{}", int(&order, "/order_id"))).expect(200);
    let rows = deliveries(&mut client, &hook, 21);
    assert_eq!((text(&rows[0], "/outcome"), receiver.received().len()), ("delivered", 21));
    cases.add(4);
}

#[test]
fn the_head_of_an_answer_decides() {
    let receiver = Receiver::start(Behaviour::Large(10 << 20));
    let world = World::start_with(1, private);
    let mut client = world.user(0);
    let hook = add(&mut client, HOOKS, &json!({"url": receiver.url("/hook")}));
    client.post(&format!("{hook}/test"), &Value::Null).expect(200);
    for behaviour in [Behaviour::CutInBody, Behaviour::StallInBody] {
        receiver.set(behaviour);
        client.post(&format!("{hook}/test"), &Value::Null).expect(200);
    }
    // The buffers of both sockets take a part that was not read.
    assert!(receiver.sent() < 9 << 20, "{} bytes were taken", receiver.sent());
    println!("{} bytes were sent", receiver.sent());
}

#[test]
fn a_target_that_stalls_delays_neither_orders_nor_others() {
    let cases = Cases::of("stalls");
    let (stalls, works) = (Receiver::start(Behaviour::Stall), Receiver::start(Behaviour::Status(200)));
    let world = World::start_with(2, |place| {
        private(place);
        // Longer than the test waits for the others.
        place.set("integrations", "timeout_ms", "25000");
    });
    let mut client = world.user(0);
    let slow = add(&mut client, HOOKS, &json!({"url": stalls.url("/hook"), "event_types": ["order_filled"]}));
    add(&mut client, HOOKS, &json!({"url": works.url("/hook"), "event_types": ["order_filled"]}));
    add(&mut client, CHATS, &json!({"url": works.url("/chat"), "event_types": ["order_filled"]}));
    for count in 1..=5 {
        client.post("/v1/orders", &limit(&world.markets.vote, "BUY", "0.65", "5")).expect(200);
        let got = works.wait_for(2 * count);
        assert_eq!(got.iter().filter(|got| got.line.contains("/chat")).count(), count);
        cases.one();
    }
    assert_eq!(stalls.received().len(), 1, "one is in flight");
    let waiting = client.get(&format!("{slow}/deliveries")).expect(200);
    assert_eq!((int(&waiting, "/owed"), list(&waiting, "/deliveries").len()), (5, 0));
    // It is removed with what it is owed.
    client.delete(&slow).expect(200);
    stalls.set(Behaviour::Status(200));
    client.get(&format!("{slow}/deliveries")).refused(404, "NOT_FOUND");
}

#[test]
fn chats_get_one_harmless_line() {
    let cases = Cases::of("chat lines");
    let receiver = Receiver::start(Behaviour::Status(204));
    let world = World::start_with(1, private);
    let mut client = world.user(0);
    let chat = add(&mut client, CHATS, &json!({"url": receiver.url("/api/webhooks/1/a"), "label": "fills"}));
    client.post(&format!("{chat}/test"), &Value::Null).expect(200);
    let order = buy(&world, &mut client);
    // A hostile name of a key.
    client.post("/v1/keys", &json!({"name": "@everyone **x**\n[a](http://b)"})).expect(201);
    let got = receiver.wait_for(3);
    let payloads: Vec<Value> = got.iter().map(Received::json).collect();
    for payload in &payloads {
        let line = text(payload, "/content");
        assert!(line.chars().count() <= 2_000 && !line.contains('\n') && !line.contains("@everyone"), "{line}");
        assert_eq!(
            (at(payload, "/text"), at(payload, "/allowed_mentions")),
            (at(payload, "/content"), &json!({"parse": []}))
        );
        cases.one();
    }
    let filled = payloads.iter().find(|payload| text(payload, "/event_type") == "order_filled").expect("the fill");
    assert_eq!(int(filled, "/order_id"), int(&order, "/order_id"));
    assert_eq!(text(filled, "/market_id"), world.markets.rain.condition);
    assert!(text(filled, "/content").contains("BUY 10 Yes at 0.42"), "{filled}");
}

#[test]
fn mail_is_written_as_whole_files() {
    let cases = Cases::of("mails");
    let mut world = World::start_with(1, with_mail);
    let out = world.place.root().join("mail");
    let (mut client, token) = world.mailed("mailed", "trader@example.net");
    // The first key is an alert by default.
    let first = eventually("the first mail", || mails(&out).into_iter().next());
    assert!(first.contains("Subject: An API key was created") && first.contains("To: trader@example.net"), "{first}");
    client.patch(PREFERENCES, &json!({"preferences": {"order_filled": true, "key_created": false}})).expect(200);
    let order = buy(&world, &mut client);
    client.post("/v1/keys", &json!({})).expect(201);
    eventually("the mail of the fill", || (mails(&out).len() == 2).then_some(()));
    let fill = mails(&out).into_iter().find(|mail| mail.contains("An order was filled")).expect("the fill");
    let id = int(&order, "/order_id");
    assert!(fill.contains(&format!("Order {id} filled: BUY 10 Yes at 0.42")), "{fill}");
    assert!(fill.contains("Content-Type: text/plain; charset=utf-8") && fill.contains("Auto-Submitted"), "{fill}");
    cases.add(2);
    // A test goes out immediately, once a minute.
    let sent = world.server.with_token(&token).post("/v1/integrations/email/test", &Value::Null).expect(200);
    assert_eq!((text(&sent, "/status"), text(&sent, "/email")), ("sent", "trader@example.net"));
    let message_id = format!("Message-ID: <{}>", text(&sent, "/message_id"));
    assert!(mails(&out).iter().any(|mail| mail.contains(&message_id)));
    let refused = client.post("/v1/integrations/email/test", &Value::Null);
    refused.refused(429, "RATE_LIMIT_EXCEEDED");
    assert!(refused.header("Retry-After").is_some_and(|after| after.parse::<u64>().is_ok_and(|after| after <= 60)));
    // A user without an address.
    world.user(0).post("/v1/integrations/email/test", &Value::Null).refused(400, "INVALID_REQUEST");
    cases.add(3);
}

#[test]
fn an_unverified_address_gets_no_mail() {
    let cases = Cases::of("verified addresses");
    let world = World::start_with(0, with_mail);
    let email = "trader@example.net";
    let claim = |verified: &Value| vec![("email", json!(email)), ("email_verified", verified.clone())];
    for (sub, more, is_verified) in [
        ("no claim", vec![("email", json!(email))], true),
        ("true", claim(&json!(true)), true),
        ("false", claim(&json!(false)), false),
        ("false as text", claim(&json!("false")), false),
        ("a number", claim(&json!(1)), false),
        ("no address", vec![("email_verified", json!(true))], false),
        ("a machine", vec![("email", json!("a@[127.0.0.1]"))], false),
        ("a quoted name", vec![("email", json!("\"<x>\"@y.z"))], false),
        ("two lines", vec![("email", json!("a@b.example\r\nBcc: trader@example.net"))], false),
    ] {
        let mut client = world.server.with_token(&token_with(sub, &more));
        let shown = client.get(PREFERENCES).expect(200);
        let address = if is_verified { json!(email) } else { Value::Null };
        assert_eq!((at(&shown, "/email"), at(&shown, "/email_verified")), (&address, &json!(is_verified)), "{sub}");
        assert_eq!(at(&client.get("/v1/me").expect(200), "/email"), &address, "{sub}");
        let sent = client.post("/v1/integrations/email/test", &Value::Null);
        if is_verified {
            sent.expect(200);
        } else {
            sent.refused(400, "INVALID_REQUEST");
        }
        cases.one();
    }
    assert_eq!(mails(&world.place.root().join("mail")).len(), 2);
}

/// An account without an address gets the first verified one of its later tokens, and keeps it.
#[test]
fn a_later_token_brings_the_address() {
    let cases = Cases::of("addresses of later tokens");
    let mut world = World::start_with(0, with_mail);
    let claims = |email: &str, verified: bool| vec![("email", json!(email)), ("email_verified", json!(verified))];
    let rows = [
        (claims("trader@example.net", false), Value::Null),
        (vec![], Value::Null),
        (claims("trader@example.net", true), json!("trader@example.net")),
        (claims("other@example.net", true), json!("trader@example.net")),
        (claims("trader@example.net", false), json!("trader@example.net")),
    ];
    let addresses = |world: &World, more: &[(&str, Value)]| {
        let mut client = world.server.with_token(&token_with("late", more));
        ["/v1/me", PREFERENCES].map(|route| at(&client.get(route).expect(200), "/email").clone())
    };
    for (more, expected) in &rows {
        // The requests that bring it do not wait for it.
        let first = addresses(&world, more);
        assert!(first.iter().all(|shown| shown.is_null() || shown == expected), "{more:?}: {first:?}");
        eventually("the address", || addresses(&world, &[]).iter().all(|shown| shown == expected).then_some(()));
        cases.one();
    }
    // It is in the log, and mail goes there.
    world.crash();
    assert_eq!(addresses(&world, &[]), ["trader@example.net", "trader@example.net"].map(Value::from));
    world.server.with_token(&token_with("late", &[])).post("/v1/keys/bootstrap", &json!({})).expect(201);
    let out = world.place.root().join("mail");
    let first = eventually("the first mail", || mails(&out).into_iter().next());
    assert!(first.contains("To: trader@example.net"), "{first}");
    world.server.kill();
    assert_eq!(world.place.digest_from_nothing(), world.place.digest());
    cases.add(3);
}

#[test]
fn without_a_mailer_there_is_no_test_and_nothing_waits() {
    let mut world = World::start_with(0, |place| _ = place.set("admin", "listen", "\"127.0.0.1:0\""));
    let (mut client, _) = world.mailed("silent", "silent@example.net");
    client.post("/v1/integrations/email/test", &Value::Null).refused(404, "NOT_FOUND");
    let given_up = |world: &World| world.figure("papertape_alerts_given_up_total{channel=\"mail\"}");
    assert_eq!(given_up(&world), 0, "the first key was not owed");
    client.patch(PREFERENCES, &json!({"preferences": {"order_filled": true}})).expect(200);
    buy(&world, &mut client);
    eventually("the mail is given up", || (given_up(&world) == 1).then_some(()));
    eventually("nothing waits", || (world.figure("papertape_alerts_owed") == 0).then_some(()));
}

#[test]
fn the_name_of_the_chat_service_is_a_setting() {
    let world = World::start_with(1, |place| {
        place.set("integrations", "chat_service", "\"slack\"");
    });
    let mut client = world.user(0);
    assert_eq!(client.get("/v1/integrations/slack").expect(200), json!({"subscriptions": []}));
    client.get(CHATS).refused(404, "NOT_FOUND");
    client.post(CHATS, &json!({"url": "https://discord.com/"})).refused(404, "NOT_FOUND");
}
