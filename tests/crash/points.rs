//! The process ends itself at each named crash point of the log (`PAPERTAPE_JOURNAL_CRASH_AT=name:n`), under load and
//! in its start.

use crate::kills::tradables;
use crate::reconcile::{Books, reconcile};
use crate::trader::{Tradable, Trader};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::http::{Client, Request};
use tests::server::ServerDir;

/// Name, and the passages at which to end. (Every start includes the first passages of some.)
const POINTS: [(&str, &[u32]); 10] = [
    ("before-append", &[1, 2, 50, 201]),
    ("after-append", &[1, 2, 50, 201]),
    ("before-sync", &[1, 3, 20]),
    ("after-sync", &[1, 3, 20]),
    ("roll", &[1, 2, 3]),
    ("snapshot-write", &[1, 2, 3]),
    ("rename", &[1, 2, 3, 5]),
    ("remove", &[1, 2]),
    ("epoch-write", &[1, 2]),
    ("recovery", &[1, 2]),
];

/// After this time under load a point is considered not passed.
const LOAD_AT_MOST: Duration = Duration::from_secs(20);

/// Points of the directory, which only a log that grows by segments passes.
const NEED_MUCH: [&str; 5] = ["roll", "snapshot-write", "rename", "remove", "epoch-write"];

#[test]
fn every_crash_point_is_safe() {
    let cases = Cases::of("crash points");
    let mut chance = Chance::from_env("CRASH_SEED");
    let mut place = ServerDir::new();
    place.set("venue", "seed", "12").set("flags", "match_interval_ms", "50");
    // Few records per segment, so that rolls, snapshots and removals come often.
    place.set("journal", "segment_bytes", "1048576").set("journal", "checkpoint_segments", "1");
    let mut users = place.seed(3, "enterprise", "100000");
    let filler = users.pop().expect("three users");
    let server = place.start();
    let tradables = Arc::new(tradables(&server, &users[0].key, 1));
    let mut traders: Vec<(Trader, Books)> = users
        .into_iter()
        .map(|user| (Trader::new(user, &server, tradables.clone(), chance.fork()), Books::default()))
        .collect();
    drop(server);
    let mut in_start = 0;
    let mut not_passed = Vec::new();
    for (name, passages) in POINTS {
        for passage in passages {
            let crash_at = format!("{name}:{passage}");
            match place.spawn_with(&[], &[("PAPERTAPE_JOURNAL_CRASH_AT", &crash_at)]).ready() {
                Err(_) => in_start += 1,
                Ok(mut server) => {
                    let filler = NEED_MUCH.contains(&name).then(|| server.with_key(&filler.key));
                    let died = load_until_it_dies(&mut traders, filler.zip(tradables.first()), &mut server);
                    if !died {
                        not_passed.push(crash_at.clone());
                    }
                }
            }
            let verified = place.log("verify");
            assert!(verified.status.success(), "{crash_at}: {}", String::from_utf8_lossy(&verified.stderr));
            let server = place.start();
            for (trader, books) in &mut traders {
                trader.client.moved_to(server.address());
                reconcile(trader, books, false);
            }
            cases.one();
        }
    }
    println!("{in_start} died in their start; not passed: {not_passed:?}");
    assert!(not_passed.is_empty(), "every point was passed as often as requested: {not_passed:?}");
}

/// Fills the log as fast as one client can: batches of resting orders, each with the longest name. `life` makes the
/// names unique to this start.
fn fill_until_it_dies(mut client: Client, token: &str, life: u32) {
    let mut next = 0;
    loop {
        let batch: Vec<Value> = (next..next + 25)
            .map(|n| {
                json!({
                    "token_id": token, "side": "BUY", "order_type": "limit", "price": "0.01", "quantity": "5",
                    "client_order_id": format!("{:-<256}", format!("fill {life} {n}"))
                })
            })
            .collect();
        next += 25;
        // Orders without room are refused, and not needed.
        if client.call(&Request::post("/v1/orders/batch").json(&json!(batch))).is_err() {
            return;
        }
    }
}

/// Trades until the process has ended itself, or kills it if it does not. With a filler, the log rolls over segments.
fn load_until_it_dies(
    traders: &mut [(Trader, Books)],
    filler: Option<(Client, &Tradable)>,
    server: &mut tests::server::Server,
) -> bool {
    std::thread::scope(|scope| {
        let address = server.address();
        let trading: Vec<_> = traders
            .iter_mut()
            .map(|(trader, _)| {
                scope.spawn(move || {
                    trader.client.moved_to(address);
                    trader.trade_until_it_dies();
                })
            })
            .collect();
        if let Some((client, tradable)) = filler {
            let life = server.pid();
            scope.spawn(move || fill_until_it_dies(client, &tradable.token, life));
        }
        let start = Instant::now();
        while !server.is_over() && start.elapsed() < LOAD_AT_MOST {
            std::thread::sleep(Duration::from_millis(5));
        }
        let died = server.is_over();
        server.kill();
        for trader in trading {
            trader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        died
    })
}
