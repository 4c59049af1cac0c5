//! Clean stops: no client delays them, and they lose nothing. A stop with a long log writes a snapshot, so that the
//! next start reads next to nothing; a kill while it is written loses nothing. And a kill beside busy neighbours.

use crate::verbs::exported;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tests::cases::Cases;
use tests::chance::Chance;
use tests::eventually;
use tests::http::connect;
use tests::json::{int, list, text};
use tests::server::{Server, ServerDir, signal};
use tests::world::{World, limit};

/// Two records each, more than a stop leaves without a snapshot.
const USERS: usize = 30_000;

/// A place whose log is long and has no snapshot: its segments are too long for one that is due while it runs.
fn place() -> ServerDir {
    let mut place = ServerDir::new();
    place.set("journal", "segment_bytes", "33554432");
    place.seed(USERS, "free", "1");
    place
}

/// Records that a start has read after the newest snapshot.
#[track_caller]
fn records_read(server: &Server) -> usize {
    let line = server.recovered().expect("a start reports its recovery");
    let number = line.split(" records up to ").next().and_then(|before| before.split_whitespace().last());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no count of records in {line:?}"))
}

#[test]
fn a_signal_drains_and_stops_the_server() {
    let cases = Cases::of("clean stops");
    for signal_name in ["TERM", "INT"] {
        let world = World::start_with(1, |place| _ = place.set("http", "header_timeout_ms", "300"));
        let mut client = world.user(0);
        let placed = client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.30", "5")).expect(200);
        // Idle connections, and one with half a request, delay no stop.
        let idle: Vec<_> = (0..5).map(|_| connect(world.server.address()).expect("a connection")).collect();
        let mut half = connect(world.server.address()).expect("a connection");
        std::io::Write::write_all(&mut half, b"GET /v1/he").expect("half a word");
        let World { place, server, users, .. } = world;
        signal(server.pid(), signal_name);
        let (status, output) = server.ended();
        assert_eq!(status.code(), Some(0), "SIG{signal_name}: {status}\n{output}");
        drop((idle, half));
        assert_eq!(place.digest_from_nothing(), place.digest(), "the state at rest equals the log's");
        let before = exported(&place);
        assert_eq!(text(before.last().expect("records"), "/kind"), "CleanStop");
        let server = place.start();
        assert!(server.recovered().is_some_and(|line| line.contains(" 0 bytes cut")), "{}", server.output());
        let again =
            server.with_key(&users[0].key).get(&format!("/v1/orders/{}", int(&placed, "/order_id"))).expect(200);
        assert_eq!(text(&again, "/status"), "PENDING");
        server.stop();
        // A start on a constant market adds only the position of the tape and the use of the key.
        for record in &exported(&place)[before.len()..] {
            for fact in list(record, "/facts") {
                assert!(["TapeReached", "KeyUsed"].contains(&text(fact, "/fact")), "{fact}");
            }
        }
        assert_eq!(place.digest_from_nothing(), place.digest());
        cases.one();
    }
}

#[test]
fn a_clean_stop_under_load_loses_nothing() {
    let cases = Cases::of("ends under load");
    let world = World::start(4);
    let acked: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|user| {
                let mut client = world.user(user);
                let body = limit(&world.markets.rain, "BUY", "0.01", "5");
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    while let Ok(answer) = client.call(&tests::http::Request::post("/v1/orders").json(&body)) {
                        match answer.status {
                            200 => ids.push(int(&answer.json(), "/order_id")),
                            _ => assert_eq!(answer.status, 503, "{}", answer.lossy()),
                        }
                    }
                    ids
                })
            })
            .collect();
        let mut watcher = world.user(0);
        eventually("some load", || {
            (int(&watcher.get("/v1/orders?limit=1").expect(200), "/total_hint") > 20).then_some(())
        });
        world.server.terminate();
        clients.into_iter().map(|client| client.join().expect("a client")).collect()
    });
    let World { place, server, users, .. } = world;
    let (status, output) = server.ended();
    assert_eq!(status.code(), Some(0), "{output}");
    let server = place.start();
    for (user, ids) in users.iter().zip(&acked) {
        let mut client = server.with_key(&user.key);
        for id in ids {
            client.get(&format!("/v1/orders/{id}")).expect(200);
            cases.one();
        }
    }
}

#[test]
fn a_clean_stop_leaves_little_to_read() {
    let cases = Cases::of("last snapshots");
    let mut place = place();
    // With the record of each stop that a start reads, and its own: another snapshot is not worth its time.
    for (shards, least, most) in [(1, 2 * USERS, 4 * USERS), (1, 1, 1), (2, 2, 2_000)] {
        place.set("engine", "shards", &shards.to_string());
        let server = place.start();
        let read = records_read(&server);
        assert!((least..=most).contains(&read), "{read} records: {}", server.output());
        let output = server.output();
        assert!(output.contains(&format!("{USERS} users")), "{output}");
        server.stop();
        assert_eq!(place.digest(), place.digest_from_nothing(), "the snapshot equals the log's state");
        cases.one();
    }
}

/// A partial snapshot of a killed process does not count, and the log has everything.
#[test]
fn a_death_within_the_last_snapshot_takes_nothing() {
    let cases = Cases::of("deaths at the end");
    let mut chance = Chance::from_env("CRASH_SEED");
    let place = place();
    for crash_at in ["snapshot-write:1", "snapshot-write:9"] {
        let server = place.start_with(&[], &[("PAPERTAPE_JOURNAL_CRASH_AT", crash_at)]);
        assert!(records_read(&server) >= 2 * USERS, "{}", server.output());
        server.terminate();
        let (status, output) = server.ended();
        assert!(!status.success(), "{crash_at} was not passed: {status}\n{output}");
        whole(&place);
        cases.one();
    }
    // Anywhere in the last hundred milliseconds or so, from outside.
    for _ in 0..6 {
        let mut server = place.start();
        server.terminate();
        std::thread::sleep(Duration::from_millis(chance.below(150) as u64));
        server.kill();
        whole(&place);
        cases.one();
    }
    let server = place.start();
    assert!(server.output().contains(&format!("{USERS} users")), "{}", server.output());
    server.stop();
    let server = place.start();
    assert!(records_read(&server) <= 2_000, "{}", server.output());
    server.stop();
    cases.one();
}

#[track_caller]
fn whole(place: &ServerDir) {
    let verified = place.log("verify");
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    assert_eq!(place.digest(), place.digest_from_nothing(), "every snapshot equals the log's state");
}

/// A process is gone, and its log unlocked, when each of its threads has run once more: no thread may have a scheduling
/// class that others can starve for longer than a start waits.
#[test]
fn a_killed_server_starts_again_beside_busy_neighbours() {
    let cases = Cases::of("busy neighbours");
    let place = ServerDir::new();
    let is_over = AtomicBool::new(false);
    let neighbours = thread::available_parallelism().map_or(2, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..neighbours {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // The neighbours are ended on every path.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut before = place.start();
            for _ in 0..2 {
                // Only the next start waits for its end.
                signal(before.pid(), "KILL");
                let next = place.spawn_with(&[], &[]).ready();
                before = next.unwrap_or_else(|output| panic!("it did not start; its output:\n{output}"));
                cases.one();
            }
        }));
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| resume_unwind(panic));
    });
}
