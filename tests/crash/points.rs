//! The process ends itself at each named place of the log (`PAPERTAPE_JOURNAL_CRASH_AT=name:n`), under load and in its start.

use crate::kills::tradables;
use crate::reconcile::{Books, reconcile};
use crate::trader::Trader;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::server::Place;

/// Name, and the passages at which to end.
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

/// After so long under load a point is not going to be passed any more.
const LOAD_AT_MOST: Duration = Duration::from_secs(4);

#[test]
fn every_named_place_is_a_good_place_to_die() {
    let cases = Cases::of("crash points");
    let mut chance = Chance::from_env("CRASH_SEED");
    let mut place = Place::new();
    place.set("venue", "seed", "12").set("flags", "match_interval_ms", "50");
    // Few records per segment, so that rolls, snapshots and removals come often.
    place.set("journal", "segment_bytes", "1048576").set("journal", "checkpoint_segments", "1");
    let users = place.seed(2, "enterprise", "100000");
    let server = place.start();
    let tradables = Arc::new(tradables(&server, &users[0].key));
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
                    let died = load_until_it_dies(&mut traders, &mut server);
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
    assert!(not_passed.len() < cases.count() / 3, "most places were passed: {not_passed:?}");
}

/// Trades until the process has ended itself, or kills it when it does not.
fn load_until_it_dies(traders: &mut [(Trader, Books)], server: &mut tests::server::Server) -> bool {
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
