//! Alerts across `kill -9` (gateway/docs/integrations.md §5): what is owed is delivered after the next start, by mail, to
//! a chat and to a webhook, each with one id.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::json::{int, list, text};
use tests::receiver::{Behaviour, Received, Receiver};
use tests::world::{World, limit};

const CHANNELS: [&str; 2] = ["/v1/integrations/webhook", "/v1/integrations/discord"];

fn world(shards: &str) -> World {
    World::start_with(1, |place| {
        place.set("integrations", "allow_private_targets", "true");
        place.set("integrations", "chat_hosts", "[\"127.0.0.1\"]");
        // What failed is tried again by the next start only.
        place.set("integrations", "first_retry_ms", "60000");
        let dir = place.root().join("mail");
        place.set("email", "smtp_url", &format!("\"file:{}\"", dir.display()));
        place.set("engine", "shards", shards);
    })
}

/// Mails about fills: their `Event` lines.
fn fills_by_mail(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let whole = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "eml"));
    let texts = whole.map(|entry| fs::read_to_string(entry.path()).expect("a mail is text"));
    let event =
        |mail: String| mail.lines().find_map(|line| Some(line.strip_prefix("Event: order_filled ")?.to_owned()));
    texts.filter_map(event).collect()
}

fn ids(received: &[Received], event: &str) -> Vec<String> {
    let payloads = received.iter().map(Received::json).filter(|payload| payload["event_type"] == event);
    payloads.map(|payload| text(&payload, "/id").to_owned()).collect()
}

#[test]
fn a_fill_arrives_by_every_channel_after_a_kill() {
    let cases = Cases::of("deliveries after a kill");
    for shards in ["1", "2"] {
        let [hook, chat] = [Receiver::start(Behaviour::Stall), Receiver::start(Behaviour::Stall)];
        let mut world = world(shards);
        let mail = world.place.root().join("mail");
        let (mut client, _) = world.mailed("owed", "trader@example.net");
        for (path, receiver) in CHANNELS.into_iter().zip([&hook, &chat]) {
            let body = json!({"url": receiver.url("/hook"), "event_types": ["order_filled"]});
            client.post(path, &body).expect(201);
        }
        let choice = json!({"preferences": {"order_filled": true}});
        client.patch("/v1/integrations/email/preferences", &choice).expect(200);
        // The folder of mails is away, so that the mail is owed too.
        eventually("the mail of the first key", || fs::read_dir(&mail).ok()?.flatten().next());
        let away = world.place.root().join("away");
        fs::rename(&mail, &away).expect("the folder can be moved");
        let order = client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.42", "10")).expect(200);
        let order = int(&order, "/order_id");
        // Both requests came and are not answered: the server does not know whether they arrived.
        let before = [hook.wait_for(1), chat.wait_for(1)];
        world.server.kill();
        fs::rename(&away, &mail).expect("the folder can be moved");
        hook.set(Behaviour::Status(200));
        chat.set(Behaviour::Status(204));
        world.server = world.place.start();
        client.moved_to(world.server.address());
        let after = [hook.wait_for(2), chat.wait_for(2)];
        let mails = eventually("the mail of the fill", || Some(fills_by_mail(&mail)).filter(|mails| !mails.is_empty()));
        let mut all: BTreeSet<String> = mails.iter().cloned().collect();
        for (before, after) in before.iter().zip(&after) {
            // Twice, with one id.
            let seen = ids(after, "order_filled");
            assert_eq!((seen.len(), ids(before, "order_filled").len()), (2, 1));
            all.extend(seen);
            assert_eq!(before[0].json(), after[1].json(), "the same payload");
            cases.one();
        }
        assert_eq!((mails.len(), all.len()), (1, 1), "{all:?}");
        assert_eq!(int(&after[0][1].json(), "/data/order_id"), order);
        cases.one();
        // It is owed no longer: another kill repeats nothing.
        for path in CHANNELS {
            eventually("what became of it is in the log", || {
                let rows = client.get(path).expect(200);
                (!list(&rows, "/subscriptions")[0]["last_delivery_at"].is_null()).then_some(())
            });
        }
        world.crash();
        client.moved_to(world.server.address());
        client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.42", "10")).expect(200);
        hook.wait_for(3);
        chat.wait_for(3);
        eventually("the second mail", || (fills_by_mail(&mail).len() == 2).then_some(()));
        for receiver in [&hook, &chat] {
            let seen = ids(&receiver.received(), "order_filled");
            assert_eq!((seen.len(), seen.iter().collect::<BTreeSet<_>>().len()), (3, 2), "{shards} shards");
            cases.one();
        }
        // The state at rest, with targets and all, is that of the log.
        world.server.kill();
        assert_eq!(world.place.digest_from_nothing(), world.place.digest());
        cases.one();
    }
}

/// What is owed is in a snapshot too, and what was removed is not.
#[test]
fn what_is_owed_survives_a_clean_stop() {
    let cases = Cases::of("clean stops");
    let hook = Receiver::start(Behaviour::Status(503));
    let world = world("1");
    let mut client = world.user(0);
    let body = json!({"url": hook.url("/hook"), "event_types": ["order_filled"]});
    let kept = int(&client.post(CHANNELS[0], &body).expect(201), "/id");
    let removed = int(&client.post(CHANNELS[0], &body).expect(201), "/id");
    client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.42", "10")).expect(200);
    hook.wait_for(2);
    client.delete(&format!("{}/{removed}", CHANNELS[0])).expect(200);
    eventually("the failure is in the log", || {
        let rows = client.get(CHANNELS[0]).expect(200);
        (int(&rows, "/subscriptions/0/failures") == 1).then_some(())
    });
    let World { place, server, users, .. } = world;
    server.stop();
    hook.set(Behaviour::Status(200));
    let server = place.start();
    let got = hook.wait_for(3);
    let seen: BTreeSet<String> = ids(&got, "order_filled").into_iter().collect();
    assert_eq!((got.len(), seen.len()), (3, 1));
    let mut client = server.with_key(&users[0].key);
    let rows = eventually("the delivery is in the log", || {
        let rows = client.get(CHANNELS[0]).expect(200);
        Some(rows).filter(|rows: &Value| rows["subscriptions"][0]["failures"] == 0)
    });
    assert_eq!(list(&rows, "/subscriptions").len(), 1);
    assert_eq!(int(&rows, "/subscriptions/0/id"), kept);
    cases.add(3);
}

/// A notice that was acknowledged, to one user and to all, arrives although the server is killed before it does.
#[test]
fn a_notice_survives_a_kill() {
    let cases = Cases::of("notices after a kill");
    for is_to_all in [false, true] {
        let hook = Receiver::start(Behaviour::Stall);
        let mut world = world("2");
        world.server.kill();
        world.place.set("admin", "listen", "\"127.0.0.1:0\"");
        world.server = world.place.start();
        world.user(0).post(CHANNELS[0], &json!({"url": hook.url("/hook")})).expect(201);
        let token = fs::read_to_string(world.place.data().join("admin_token")).expect("the server made one");
        let mut operator = Client::with_token(world.server.admin().expect("there is one"), &token);
        let body = match is_to_all {
            true => json!({"all": true, "text": "Tonight."}),
            false => json!({"user": world.users[0].id, "text": "Tonight."}),
        };
        let given = operator.post("/v1/admin/notices", &body).expect(200);
        assert_eq!(int(&given, "/owed"), 1, "{given}");
        // It came, and is not answered.
        let before = hook.wait_for(1);
        world.server.kill();
        hook.set(Behaviour::Status(200));
        world.server = world.place.start();
        let after = hook.wait_for(2);
        assert_eq!(ids(&after, "system_notice").len(), 2);
        assert_eq!(before[0].json(), after[1].json(), "the same payload");
        assert_eq!(text(&after[1].json(), "/data/text"), "Tonight.");
        world.server.kill();
        assert_eq!(world.place.digest_from_nothing(), world.place.digest());
        cases.add(2);
    }
}
