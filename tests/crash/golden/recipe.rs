//! Creates golden directories. Run it with the build whose format is to be kept, then commit its output.
//!
//! Three kinds: `stopped` (every kind of fact, a clean stop), `killed` (SIGKILL under load, then half of the last
//! record zeroed, as after a power loss) and `snapshot` (the first segments are recycled, so a start needs the
//! snapshot).

use super::{ORDER_FIELDS, folder, last_lsn, pack, pack_bytes, place_of, seen};
use crate::verbs::exported;
use engine::amount::Cash;
use engine::fact;
use engine::id::OrderId;
use engine::mutation::Mutation;
use engine::time::Timestamp;
use engine::user::{Tier, WalletKind};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::env;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use tests::eventually;
use tests::http::{Client, Request};
use tests::json::{int, list, text};
use tests::server::{ServerDir, User, digest_of};
use tests::token::unix_now;
use tests::world::{World, changed, limit, market};

/// Every kind of fact in a log of this build. A new kind belongs here, with the request that causes it.
const FACTS: [&str; 31] = [
    "UserCreated",
    "GrantSet",
    "WalletOpened",
    "KeyIssued",
    "KeyRenamed",
    "KeyExpiring",
    "KeyRevoked",
    "KeyUsed",
    "OrderPlaced",
    "OrderFilled",
    "OrderRested",
    "OrderClosed",
    "OrderHeld",
    "RequestRemembered",
    "PositionSettled",
    "SafeguardArmed",
    "SafeguardEnded",
    "BaselineRaised",
    "WalletRelabelled",
    "WalletArchived",
    "WalletReset",
    "PositionReset",
    "EquityNoted",
    "MarketListed",
    "MarketStateChanged",
    "TickChanged",
    "EndChanged",
    "MarketResolved",
    "MarketSettled",
    "TapeReached",
    "CleanStop",
];

/// Settings that the tests' histories of a stopped server need.
const SEGMENT_BYTES: u64 = 4 << 20;
const SMALL_SEGMENT_BYTES: u64 = 1 << 20;

/// `GOLDEN_NAME=2026-11-23 cargo test -p tests --test crash golden_directories_are_made -- --ignored --nocapture`
#[test]
#[ignore = "writes a new golden directory"]
fn golden_directories_are_made() {
    let name = env::var("GOLDEN_NAME").expect("GOLDEN_NAME names the new directory, like 2026-11-23");
    let to = folder().join(name);
    fs::create_dir(&to).expect("golden directories are never written again");
    stopped(to.join("stopped"));
    killed(to.join("killed"));
    snapshot(to.join("snapshot"));
}

/// Packs the directory of a stopped server and writes its expectations.
fn keep(to: PathBuf, place: &ServerDir, users: &[User], segment_bytes: u64, torn: bool) {
    let whole_log = place.data().join(format!("{:020}.wal", 1)).exists();
    let digest = digest_of(&place.data());
    let lsn = last_lsn(place);
    pack(&place.data(), &to.join("data"));
    // No process holds the copy.
    fs::remove_file(to.join("data/lock.gz")).expect("a lock");
    pack_bytes(&fs::read(place.root().join("tape.ndjson")).expect("a tape"), &to.join("tape.ndjson.gz"));
    let keys: Vec<Value> = users.iter().map(|user| json!({"user": user.id, "key": user.key})).collect();
    let expected = json!({
        "digest": digest, "digest_encoding": 2, "lsn": lsn, "segment_bytes": segment_bytes, "whole_log": whole_log, "torn": torn, "users": keys
    });
    let text = serde_json::to_string_pretty(&expected).expect("JSON");
    fs::write(to.join("expected.json"), text + "\n").expect("it can be written");
    // The users' view is read from a copy, so that reading leaves no trace in the golden directory.
    let copy = place_of(&to);
    assert_eq!(digest_of(&copy.data()), digest);
    let server = copy.start();
    pack_bytes(seen(&server, users).to_string().as_bytes(), &to.join("seen.json.gz"));
    server.stop();
}

fn wallet_of(client: &mut Client, kind: &str) -> i64 {
    let wallets = client.get("/v1/me/wallets").expect(200);
    let wallet = list(&wallets, "/wallets").iter().find(|wallet| text(wallet, "/kind") == kind).expect("it exists");
    int(wallet, "/id")
}

fn stopped(to: PathBuf) {
    let mut world = World::start_with(3, |place| {
        place.clock_ahead(0).set("flags", "match_interval_ms", "50").set("flags", "api_reset_cooldown_days", "0");
    });
    let m = [&world.markets.rain, &world.markets.vote, &world.markets.coin, &world.markets.treaty].map(Clone::clone);
    let [rain, vote, coin, treaty] = &m;
    let mut client = world.user(0);
    let place = |client: &mut Client, body: &Value| client.post("/v1/orders", body).expect(200);

    // Orders of every type, on both sides, at every tick.
    place(&mut client, &market(rain, "BUY", "0.44", "100"));
    place(&mut client, &market(vote, "BUY", "0.66", "25.5"));
    place(&mut client, &market(treaty, "BUY", "0.1234", "40.1234"));
    place(&mut client, &market(rain, "SELL", "0.40", "30.25"));
    for (force, quantity) in [("FOK", "10"), ("FAK", "2000"), ("GTC", "20")] {
        place(&mut client, &changed(&limit(coin, "BUY", "0.50", quantity), &json!({"time_in_force": force})));
    }
    let refused = changed(&limit(rain, "BUY", "0.42", "900"), &json!({"time_in_force": "FOK", "client_order_id": "k"}));
    client.post("/v1/orders", &refused).refused(400, "FOK_ORDER_NOT_FILLED_ERROR");
    let named = changed(&limit(rain, "BUY", "0.37", "20"), &json!({"client_order_id": "named"}));
    place(&mut client, &named);
    assert_eq!(client.post("/v1/orders", &named).expect(200)["is_replay"], json!(true));
    place(&mut client, &limit(rain, "SELL", "0.95", "15"));
    crate::formats::sign(&world, 1);
    let post_only = json!({"token_id": rain.yes(), "side": "BUY", "price": "0.36", "size": "8", "order_type": "GTC",
        "post_only": true});
    let answer = client.post("/v1/clob/order", &post_only);
    assert_eq!(answer.status, 200, "{}", answer.lossy());
    let gtd = |price: &str, expires: u64| {
        json!({"token_id": rain.yes(), "side": "BUY", "price": price, "size": "9", "order_type": "GTD",
            "expiration": expires.to_string()})
    };
    for (price, expires) in [("0.33", unix_now() + 9 * 365 * 86_400), ("0.34", unix_now() + 600)] {
        let answer = client.post("/v1/clob/order", &gtd(price, expires));
        assert_eq!(answer.status, 200, "{}", answer.lossy());
    }
    let cancelled = place(&mut client, &limit(rain, "BUY", "0.20", "11"));
    client.delete(&format!("/v1/orders/{}", int(&cancelled, "/order_id"))).expect(200);
    let batch: Vec<Value> = (0..5).map(|n| limit(vote, "BUY", &format!("0.50{n}"), "6")).collect();
    client.post("/v1/orders/batch", &json!({"orders": batch})).expect(200);
    let path = format!("/v1/cancel-market-orders?market={}", vote.condition);
    client.send(&Request::post(&path)).expect(200);
    // A resting order is filled by a change of the book.
    let resting = place(&mut client, &limit(coin, "BUY", "0.45", "12"));
    world.tape.level(coin, 0, "SELL", "0.45", "500");
    let id = int(&resting, "/order_id");
    world.until(&format!("/v1/orders/{id}"), |order| text(order, "/status") == "FILLED");

    // Keys and a safeguard.
    for (name, act) in [("kept", ""), ("rotated", "rotate"), ("revoked", "revoke")] {
        let key = int(&client.post("/v1/keys", &json!({"name": name})).expect(201), "/id");
        match act {
            "rotate" => _ = client.post(&format!("/v1/keys/{key}/rotate"), &json!({})).expect(201),
            "revoke" => _ = client.delete(&format!("/v1/keys/{key}")).expect(200),
            _ => _ = client.patch(&format!("/v1/keys/{key}"), &json!({"name": "renamed"})).expect(200),
        }
    }
    client.post("/v1/heartbeats", &json!({"interval_ms": 60_000, "client_label": "bot"})).expect(200);
    client.delete("/v1/heartbeats").expect(200);

    // Wallets: one is used, one renamed and archived, one reset.
    let mut second = world.user(1);
    let mut open = |label: &str| {
        int(&second.post("/v1/me/wallets", &json!({"kind": "SANDBOX", "label": label})).expect(201), "/id")
    };
    let (used, away, reset) = (open("used"), open("away"), open("reset"));
    for (wallet, quantity) in [(used, "10"), (reset, "20")] {
        place(&mut second, &changed(&market(vote, "BUY", "0.66", quantity), &json!({"wallet_id": wallet})));
        place(&mut second, &changed(&limit(rain, "BUY", "0.30", quantity), &json!({"wallet_id": wallet})));
    }
    second.patch(&format!("/v1/me/wallets/{away}"), &json!({"label": "put away"})).expect(200);
    assert_eq!(second.delete(&format!("/v1/me/wallets/{away}")).status, 200);
    second.post(&format!("/v1/me/wallets/{reset}/reset"), &json!({})).expect(200);
    let main = wallet_of(&mut second, "MAIN");
    place(&mut second, &changed(&market(coin, "BUY", "0.50", "5"), &json!({"wallet_id": main})));
    second.post(&format!("/v1/me/wallets/{main}/reset"), &json!({})).expect(200);
    place(&mut second, &market(rain, "BUY", "0.44", "6"));
    place(&mut second, &limit(rain, "BUY", "0.31", "7"));
    second.post("/v1/account/reset-api-balance", &json!({})).expect(200);
    place(&mut second, &limit(rain, "BUY", "0.32", "21"));

    // A new user with an identity token.
    let (mut newcomer, _) = world.newcomer("golden");
    place(&mut newcomer, &limit(rain, "BUY", "0.30", "5"));

    // Markets: resolved and paid out, with another tick, with another end, halted.
    let game = world.markets.game.clone();
    place(&mut client, &market(&game, "BUY", "0.5", "30"));
    place(&mut client, &limit(&game, "BUY", "0.1", "30"));
    world.tape.resolve(&game, ["1", "0"]);
    world.until("/v1/account/settlements", |page| list(page, "/data").len() == 1);
    world.tape.tick(treaty, "0.0001", "0.001");
    let (mut later, mut halted) = (world.markets.silent.clone(), world.markets.bidsonly.clone());
    later.end = "2039-01-01T00:00:00Z".into();
    halted.accepting = false;
    world.tape.list(&[&later, &halted]);

    // Two hours later: points of equity, an expired order.
    world.place.clock_ahead(2 * 3_600);
    eventually("the order to expire and equity to be noted", || {
        let facts: Vec<String> = exported(&world.place)
            .iter()
            .flat_map(|record| list(record, "/facts").to_vec())
            .map(|fact| fact.to_string())
            .collect();
        let noted = |kind: &str| facts.iter().any(|fact| fact.contains(kind));
        (noted("EquityNoted") && noted("GtdExpired")).then_some(())
    });

    // Facts that no request causes are written into the log as a server would: a grant, and an outage.
    let third = world.users[2].id;
    let held = int(&place(&mut world.user(2), &limit(rain, "BUY", "0.29", "9")), "/order_id");
    let World { place, server, mut users, .. } = world;
    server.stop();
    let mut past = tests::history::History::open(&place, third);
    let at = Timestamp::from_secs(unix_now() + 2 * 3_600 + 60);
    let wallet = past.wallet(WalletKind::Api);
    past.happened([
        Mutation::GrantSet(fact::GrantSet { tier: Tier::ProPlus, expires_at: Some(Timestamp(at.0 + 1)), at }),
        Mutation::BaselineRaised(fact::BaselineRaised { wallet, baseline: Cash::from_dollars(12_500), at }),
        Mutation::OrderHeld(fact::OrderHeld { order: OrderId(held as u64), held: true, at }),
    ]);
    past.end();
    let server = place.start();
    users.truncate(3);
    server.with_key(&users[2].key).get("/v1/account/balance").expect(200);
    server.stop();
    has_every_fact(&place);
    keep(to, &place, &users, SEGMENT_BYTES, false);
}

fn has_every_fact(place: &ServerDir) {
    let mut found = BTreeSet::new();
    for record in exported(place) {
        found.insert(text(&record, "/kind").to_string());
        for fact in list(&record, "/facts") {
            found.insert(text(fact, "/fact").to_string());
        }
    }
    let missing: Vec<&&str> = FACTS.iter().filter(|fact| !found.contains(**fact)).collect();
    assert!(missing.is_empty(), "no record of this kind: {missing:?}");
    let new: Vec<&String> = found
        .iter()
        .filter(|fact| {
            !FACTS.contains(&fact.as_str()) && !["Mutations", "EpochStart", "Padding"].contains(&fact.as_str())
        })
        .collect();
    assert!(new.is_empty(), "kinds that the recipe lacks: {new:?}");
    println!("{} kinds of facts, {} fields of an order", FACTS.len(), ORDER_FIELDS.len());
}

fn killed(to: PathBuf) {
    let mut world = World::start(2);
    let bodies = [limit(&world.markets.rain, "BUY", "0.30", "5"), market(&world.markets.vote, "BUY", "0.66", "5")];
    let clients: Vec<_> = (0..2)
        .map(|user| {
            let (mut client, body) = (world.user(user), bodies[user].clone());
            std::thread::spawn(move || while client.call(&Request::post("/v1/orders").json(&body)).is_ok() {})
        })
        .collect();
    let mut watcher = world.user(0);
    eventually("some load", || {
        (int(&watcher.get("/v1/orders?limit=1").expect(200), "/total_hint") > 100).then_some(())
    });
    world.server.kill();
    for client in clients {
        client.join().expect("a client");
    }
    // The last record is acknowledged under `process` and may be lost in a power failure: here half of it is.
    let path = world.place.data().join(format!("{:020}.wal", 1));
    let bytes = fs::read(&path).expect("a segment");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("records") + 1;
    let file = OpenOptions::new().write(true).open(&path).expect("a segment");
    file.write_all_at(&[0; 40], end as u64 - 40).expect("it can be torn");
    keep(to, &world.place, &world.users, SEGMENT_BYTES, true);
}

fn snapshot(to: PathBuf) {
    let mut world = World::start_with(2, |place| {
        place.set("journal", "segment_bytes", &SMALL_SEGMENT_BYTES.to_string());
        place.set("journal", "checkpoint_segments", "1");
    });
    let mut client = world.user(0);
    client.post("/v1/orders", &market(&world.markets.rain, "BUY", "0.44", "50")).expect(200);
    let first = world.place.data().join(format!("{:020}.wal", 1));
    let mut next = 0;
    eventually("the first segment to be recycled", || {
        let batch: Vec<Value> = (next..next + 25)
            .map(|n| {
                let name = format!("{:-<256}", format!("fill {n}"));
                changed(&limit(&world.markets.rain, "BUY", "0.01", "5"), &json!({"client_order_id": name}))
            })
            .collect();
        next += 25;
        client.post("/v1/orders/batch", &json!({"orders": batch})).expect(200);
        client.send(&Request::post("/v1/cancel-all?confirm=true")).expect(200);
        (!first.exists()).then_some(())
    });
    // Records after the newest snapshot, of another user as well.
    for user in 0..2 {
        let mut client = world.user(user);
        client.post("/v1/orders", &market(&world.markets.vote, "BUY", "0.66", "7")).expect(200);
        client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.33", "12")).expect(200);
    }
    world.server.kill();
    keep(to, &world.place, &world.users, SMALL_SEGMENT_BYTES, false);
}
