//! How long client order ids count, across kills: a repeat is a repeat up to the border, and a new order after it, also
//! when the process that placed the first one was killed in between.

use crate::clock::until_a_snapshot;
use serde_json::{Value, json};
use std::ffi::OsString;
use tests::binary::run;
use tests::cases::Cases;
use tests::http::Response;
use tests::json::{at, int};
use tests::server::digest_of;
use tests::world::World;

const HOUR: u64 = 3_600;

fn order(world: &World, quantity: &str) -> Value {
    json!({
        "token_id": world.markets.rain.yes(), "side": "BUY", "order_type": "limit", "quantity": quantity,
        "price": "0.10", "client_order_id": "grid-1",
    })
}

/// The order of a response, and whether it repeats an earlier one.
fn placed(response: &Response) -> (i64, bool) {
    (int(&response.json(), "/order_id"), at(&response.json(), "/is_replay") == &json!(true))
}

#[test]
fn an_id_counts_for_its_hours_across_kills() {
    let cases = Cases::of("requests around the border");
    let mut world = World::start_with(2, |place| {
        place.set("limits", "client_ids_hours", "1");
    });
    let ask = |world: &World, quantity: &str| {
        let body = order(world, quantity);
        world.user(0).post("/v1/orders", &body)
    };
    let by_id = |world: &World| world.user(0).get("/v1/orders/by-client-id/grid-1");
    let first = placed(&ask(&world, "10"));
    assert!(!first.1);
    assert_eq!(placed(&ask(&world, "10")), (first.0, true));
    let mut last = first.0;
    // Seconds from the first start to this one; whether the id counts then.
    for (ahead, counts) in [(0, true), (HOUR / 2, true), (HOUR + 60, false), (HOUR + 120, true), (3 * HOUR, false)] {
        world.server.kill();
        world.place.clock_ahead(ahead);
        world.server = world.place.start();
        let found = by_id(&world);
        assert_eq!(found.status, if counts { 200 } else { 404 }, "{ahead} s ahead");
        if counts {
            let repeated = placed(&ask(&world, if last == first.0 { "10" } else { "11" }));
            assert_eq!(repeated, (last, true), "{ahead} s ahead");
            ask(&world, "12").refused(409, "DUPLICATE_CLIENT_ORDER_ID");
        } else {
            let next = placed(&ask(&world, "11"));
            assert!(next.0 != last && !next.1, "{ahead} s ahead");
            last = next.0;
            assert_eq!(placed(&ask(&world, "11")), (last, true));
        }
        assert_eq!(int(&by_id(&world).expect(200), "/order_id"), last);
        // The order stays when its id names another.
        world.user(0).get(&format!("/v1/orders/{}", first.0)).expect(200);
        cases.one();
    }
    world.server.kill();
    let digest = world.place.digest();
    assert_eq!(world.place.digest_from_nothing(), digest);
    // Another setting changes no state.
    world.place.set("limits", "client_ids_hours", "8760");
    world.server = world.place.start();
    assert_eq!(int(&by_id(&world).expect(200), "/order_id"), last);
    world.server.stop();
    assert_eq!(digest_of(&world.place.data()), world.place.digest_from_nothing());
}

/// The first encoding covers requests, also those that have left the snapshots: then it is refused instead of printing
/// what no other state has.
#[test]
fn the_first_encoding_is_refused_when_requests_have_left() {
    let cases = Cases::of("digests in the first encoding");
    let mut world = World::start_with(1, |place| {
        place.set("limits", "client_ids_hours", "1");
        place.set("journal", "segment_bytes", "1048576").set("journal", "checkpoint_segments", "1");
    });
    placed(&world.user(0).post("/v1/orders", &order(&world, "10")));
    world.server.kill();
    let data = world.place.data();
    let first = |more: &[&str]| {
        let words = ["log", "digest", "--encoding", "1"].iter().chain(more).map(OsString::from);
        run(words.chain([data.clone().into()]))
    };
    let whole = digest_of(&data);
    for more in [&[][..], &["--from-nothing"]] {
        let printed = first(more);
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        assert!(printed.status.success() && text.contains("encoding 1"), "{text}");
        assert!(!text.contains(&whole), "{text}");
        cases.one();
    }
    // After three hours the id does not count, and the next snapshot leaves the request out.
    world.place.clock_ahead(3 * HOUR);
    world.server = world.place.start();
    until_a_snapshot(&world);
    world.server.kill();
    let refused = first(&[]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("have left the snapshots"), "{why}");
    assert!(refused.stdout.is_empty() && digest_of(&data).len() == 64, "the present encoding is printed");
    cases.one();
}
