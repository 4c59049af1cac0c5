//! Faults between the live adapter of Kalshi and the venue: on the socket, with the credentials, in answers. The server
//! continues, and its book is right or stale.

use crate::fake_kalshi::{Fake, Fault, Mute, delta, strange_key_file};
use crate::kalshi_live::{RAIN, Scene, expected, listed, place, rain, right, right_after_listing, shown};
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;

#[test]
fn after_any_socket_fault_the_book_is_right_again() {
    let cases = Cases::of("faults of a socket");
    let scene = Scene::start(rain(), true, |_| {});
    let (fake, mut client) = (&scene.fake, scene.client());
    listed(&mut client, RAIN);
    right(&mut client, fake, RAIN, "at first");
    let wrong = |key: &str, value: Value| {
        let mut message = delta(RAIN, 0, 4_000, 100);
        message["msg"][key] = value;
        message
    };
    let stale = |client: &mut Client| {
        eventually("a stale book", || shown(client, RAIN).filter(|(_, fresh)| !fresh).map(drop));
    };
    type Row<'a> = (&'a str, &'a dyn Fn(&mut Client));
    let rows: [Row<'_>; 24] = [
        ("a lost frame", &|_| {
            fake.change_lost(RAIN, 0, 4_000, 100);
            fake.change(RAIN, 1, 5_000, 100);
        }),
        ("lost frames again and again", &|_| {
            for _ in 0..12 {
                fake.change_lost(RAIN, 0, 4_000, 100);
                fake.change(RAIN, 1, 5_000, 100);
            }
        }),
        ("a frame twice", &|_| fake.change_twice(RAIN, 0, 4_000, 100)),
        ("a change below zero", &|_| fake.lie(RAIN, &delta(RAIN, 0, 4_000, -99_999_999))),
        ("a change of nothing known", &|_| fake.lie(RAIN, &delta("KXNOBODY", 0, 4_000, 100))),
        ("a change that is not a number", &|_| fake.lie(RAIN, &wrong("delta_fp", json!({})))),
        ("a huge change", &|_| fake.lie(RAIN, &wrong("delta_fp", json!("9e99")))),
        ("an unknown side", &|_| fake.lie(RAIN, &wrong("side", json!("maybe")))),
        ("an unknown price", &|_| fake.lie(RAIN, &wrong("price_dollars", json!("cheap")))),
        ("a price finer than the grid", &|_| fake.lie(RAIN, &wrong("price_dollars", json!("0.40005")))),
        ("a price of a dollar", &|_| fake.lie(RAIN, &wrong("price_dollars", json!("1.0000")))),
        ("a change of no market", &|_| fake.lie(RAIN, &wrong("market_ticker", json!("")))),
        ("broken JSON", &|_| ["{", "[", "", "\"text\"", "[7]", "null"].iter().for_each(|text| fake.say(text))),
        ("unknown types", &|_| {
            fake.say(r#"{"type":"weather","sid":1,"msg":{}}"#);
            fake.say(r#"{"type":7}"#);
        }),
        ("errors without a command", &|_| {
            fake.say(r#"{"type":"error","id":7000,"msg":{"code":17,"msg":"internal error"}}"#);
            fake.say(r#"{"type":"error","msg":"x"}"#);
        }),
        ("an error that ends the session", &|_| fake.say(r#"{"type":"error","msg":{"code":9,"msg":"authenticate"}}"#)),
        ("an unreadable book", &|_| {
            fake.say(
                &json!({"type": "orderbook_snapshot", "msg": {"market_ticker": RAIN, "yes_dollars_fp": 7}}).to_string(),
            );
        }),
        ("a book in cents", &|_| {
            fake.book(RAIN, &[(4_000, 50_000), (3_900, 1_200)], &[(5_000, 700)]);
            let msg = json!({"market_ticker": RAIN, "yes": [[39, 12], [40, 500]], "no": [[50, 7]]});
            fake.say(&json!({"type": "orderbook_snapshot", "msg": msg}).to_string());
        }),
        ("one side empty", &|_| fake.change(RAIN, 1, 5_000, -700)),
        ("an empty book", &|_| {
            fake.change(RAIN, 0, 4_000, -50_000);
            fake.change(RAIN, 0, 3_900, -1_200);
        }),
        ("a closed socket", &|_| {
            fake.change(RAIN, 1, 5_000, 700);
            fake.close();
        }),
        ("silence", &|client| {
            fake.mute(Mute::Silent);
            fake.change(RAIN, 0, 4_000, 100);
            stale(client);
            fake.mute(Mute::No);
        }),
        ("a socket whose other end is gone", &|client| {
            fake.mute(Mute::HalfOpen);
            fake.change(RAIN, 0, 4_000, 100);
            stale(client);
            fake.mute(Mute::No);
        }),
        ("refused handshakes", &|client| {
            fake.refuse(true);
            fake.close();
            let before = fake.sockets().2;
            eventually("more handshakes", || (fake.sockets().2 >= before + 3).then_some(()));
            stale(client);
            fake.refuse(false);
        }),
    ];
    for (name, fault) in &rows {
        fault(&mut client);
        right(&mut client, fake, RAIN, name);
        fake.change(RAIN, 0, 1_000, 100);
        right(&mut client, fake, RAIN, &format!("{name}, and then a change"));
        fake.change(RAIN, 0, 1_000, -100);
        cases.one();
    }
    assert!(fake.commands("get_snapshot") >= 5, "whole books were requested again");
    let quiet = fake.sockets().1;
    // A socket without messages is not dead: it answers pings.
    let asked = fake.commands("get_snapshot");
    eventually("a ping during the silence", || (fake.commands("get_snapshot") > asked + 2).then_some(()));
    assert_eq!(fake.sockets().1, quiet);
    cases.one();
}

#[test]
fn strange_keys_and_half_credentials() {
    let cases = Cases::of("credentials");
    // An unknown key: logged once, retried, and books come from REST meanwhile.
    let fake = rain();
    let scene = Scene::start(fake, true, |place| {
        let file = strange_key_file(place.root());
        place.set("venue.kalshi", "private_key_file", &format!("{file:?}"));
        place.set("venue", "outage_after_ms", "1000");
    });
    let (fake, mut client) = (&scene.fake, scene.client());
    listed(&mut client, RAIN);
    eventually("handshakes", || (fake.sockets().2 >= 5).then_some(()));
    right(&mut client, fake, RAIN, "requested");
    assert_eq!(fake.sockets().1, 0);
    let output = scene.server.output();
    assert_eq!(output.matches("401 Unauthorized").count(), 1, "{output}");
    assert!(!output.contains("PRIVATE"), "{output}");
    drop(scene);
    // Half of the credentials, or unusable ones: no start, and the setting is named.
    for (key_id, file, named) in [
        ("", Some("kalshi.pem"), "venue.kalshi.key_id"),
        ("k", None, "venue.kalshi.private_key_file"),
        ("k", Some("missing.pem"), "venue.kalshi.private_key_file"),
        ("k", Some("papertape.toml"), "venue.kalshi.private_key_file"),
    ] {
        let fake = Fake::start();
        let mut place = place(&fake, true);
        place.unset("venue.kalshi", "key_id").unset("venue.kalshi", "private_key_file");
        if !key_id.is_empty() {
            place.set("venue.kalshi", "key_id", &format!("{key_id:?}"));
        }
        if let Some(file) = file {
            let path = place.root().join(file);
            place.set("venue.kalshi", "private_key_file", &format!("{path:?}"));
        }
        let (status, output) = place.spawn_with(&[], &[]).ended();
        assert!(!status.success() && output.contains(named), "{key_id} {file:?}: {output}");
        cases.one();
    }
    cases.add(3);
}

#[test]
fn bad_answers_of_a_venue_are_requested_again() {
    let cases = Cases::of("faults of REST");
    let bad = [
        Fault::Status(500),
        Fault::Status(425),
        Fault::TooMany,
        Fault::Status(503),
        Fault::Status(404),
        Fault::Slow(std::time::Duration::from_millis(600)),
        Fault::Body("{".into()),
        Fault::Body("[]".into()),
        Fault::Body(r#"{"events":[{"event_ticker":5,"markets":"x"},7,{"event_ticker":"E","markets":[{"ticker":[]}]}],"cursor":7}"#.into()),
        Fault::Body(format!(r#"{{"events":[],"cursor":"{}"}}"#, "9".repeat(400))),
    ];
    let fake = rain();
    for fault in &bad {
        fake.fault("/events?", 1, fault.clone());
    }
    let scene = Scene::start(fake, false, |_| {});
    let (fake, mut client) = (&scene.fake, scene.client());
    eventually("all faults", || (fake.faults_left() == 0).then_some(()));
    right_after_listing(&mut client, fake, RAIN);
    cases.add(bad.len());
    // The same for a book: it is right, or as old as its last answer.
    let bad = [
        Fault::Status(500),
        Fault::TooMany,
        Fault::Body(r#"{"orderbook_fp":7}"#.into()),
        Fault::Body(r#"{"orderbook_fp":{"yes_dollars":7}}"#.into()),
        Fault::Body(r#"{"orderbook_fp":{"yes_dollars":[["0.4000"]],"no_dollars":null}}"#.into()),
        Fault::Body(r#"{"orderbook_fp":{"yes_dollars":[["0.4000","x"]],"no_dollars":null}}"#.into()),
        Fault::Body("null".into()),
    ];
    for fault in bad {
        fake.fault("/orderbook", 1, fault.clone());
        eventually("the fault", || {
            if let Some((books, true)) = shown(&mut client, RAIN) {
                assert_eq!(books, expected(&fake.bids(RAIN)), "{fault:?}");
            }
            (fake.faults_left() == 0).then_some(())
        });
        right(&mut client, fake, RAIN, &format!("{fault:?}"));
        cases.one();
    }
}
