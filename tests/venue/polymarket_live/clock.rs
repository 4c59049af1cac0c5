//! The venue's own time, by the `Date` of its answers, while the machine's clock is doubted.

use super::*;
use engine::time::SECOND;
use journal::recover::{self, Recovery};
use tests::token::unix_now;
use wal::{Options, Running};

const DAY: u64 = 86_400;

fn clock_of(scene: &Scene) -> Value {
    scene.server.client().get("/v1/status").json()["clock"].clone()
}

/// The machine's clock is two days ahead, and the venue contradicts it: nothing expires.
#[test]
fn a_venue_that_contradicts_the_clock_keeps_orders() {
    let cases = Cases::of("clocks that a venue contradicts");
    let (mut scene, market) = Scene::start(|fake, place| {
        place.clock_ahead(0).set("clock", "leap_wait_s", "1");
        fake.list(21)
    });
    scene.shows(&market, "0.40", "0.60");
    let order = json!({"token_id": market.tokens[0], "side": "BUY", "order_type": "limit", "price": "0.30",
                       "quantity": "10", "time_in_force": "GTD", "expiration": unix_now() + 3_600});
    let id = scene.client.post("/v1/orders", &order).expect(200)["order_id"].as_i64().expect("an id");
    let path = format!("/v1/orders/{id}");
    // Ahead; then right again after a log of the future.
    for (ahead, start) in [(2 * DAY, "ahead"), (0, "behind")] {
        scene.place.clock_ahead(ahead);
        scene.restart();
        let clock =
            eventually("the venue's time", || Some(clock_of(&scene)).filter(|clock| !clock["venue_at"].is_null()));
        assert_eq!((text(&clock, "/start"), text(&clock, "/sweeps")), (start, "contradicted"), "{clock}");
        let venue_at: jiff::Timestamp = text(&clock, "/venue_at").parse().expect("a moment");
        assert!(venue_at.as_second().abs_diff(unix_now() as i64) < 60, "{clock}");
        scene.shows(&market, "0.40", "0.60");
        std::thread::sleep(Duration::from_millis(1_500));
        assert_eq!(clock_of(&scene)["sweeps"], "contradicted");
        assert_eq!(scene.client.get(&path).expect(200)["status"], "PENDING");
        eventually("the line in the log", || {
            scene.server.output().contains("the venue's time differs from server time").then_some(())
        });
        cases.one();
    }
    // A corrected clock is not doubted.
    scene.server.kill();
    let data = scene.place.data().into_os_string();
    tests::binary::run_well(["clock".into(), "set-back".into(), data]);
    scene.restart();
    let clock = clock_of(&scene);
    assert_eq!((text(&clock, "/start"), text(&clock, "/sweeps")), ("ok", "running"), "{clock}");
    assert_eq!(scene.client.get(&path).expect(200)["status"], "PENDING");
    cases.one();
}

/// The server was stopped for two days, and the venue agrees with the clock: the wait ends immediately.
#[test]
fn a_venue_that_agrees_with_the_clock_ends_the_wait() {
    let fake = Fake::start();
    let mut place = ServerDir::new();
    fake.configure(&mut place);
    fake.list(21);
    place.set("clock", "leap_wait_s", "3600");
    let then = (unix_now() - 2 * DAY) * SECOND;
    let options = Options { segment_bytes: 2 << 20, spares_count: 1, reserve_bytes: 0, ..Options::default() };
    let Recovery { dir, log, .. } = recover::recover(&place.data(), options, 1).expect("a new log");
    let Running { log, syncer, .. } = dir.start(log, then, Box::new(|_| {})).expect("room");
    drop(log);
    syncer.finish().expect("a sync");
    let server = place.spawn_with(&[], &[]).listening().unwrap_or_else(|output| panic!("{output}"));
    let clock = eventually("the venue's time", || {
        Some(server.client().get("/v1/status").json()["clock"].clone()).filter(|clock| clock["sweeps"] == "running")
    });
    assert_eq!(text(&clock, "/start"), "ahead", "{clock}");
    eventually("the log to report it", || server.output().contains("the wait after this start is over").then_some(()));
    println!("clocks that a venue agrees with: 1 case");
}
