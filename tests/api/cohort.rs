//! The size of the beta cohort (gateway/docs/market-data.md §12).

use serde_json::json;
use tests::cases::Cases;
use tests::token::token;
use tests::world::World;

const PATH: &str = "/api/beta/cohort-status";

#[test]
fn the_cohort_is_counted() {
    let cases = Cases::of("cohort status");
    let world = World::start(1);
    let open = json!({
        "cohort_label": "open", "available": true, "active": 0, "cap": 0, "cutoff": null, "reopens_at": null
    });
    let answer = world.public().get(PATH);
    assert_eq!((answer.expect(200), answer.header("Cache-Control")), (open, Some("public, max-age=5")));
    answer.assert_request_id();
    assert_eq!(world.public().post(PATH, &json!({})).status, 405);
    cases.add(2);

    let mut world = World::start_with(2, |place| {
        place.set("flags", "cohort_cap", "3").set("keys", "beta_until", "\"2099-01-01\"").clock_ahead(0);
    });
    let status = |active: u64, available: bool| {
        json!({
            "cohort_label": "beta", "available": available, "active": active, "cap": 3,
            "cutoff": "2099-01-01T00:00:00Z", "reopens_at": null
        })
    };
    assert_eq!(world.public().get(PATH).expect(200), status(2, true));
    world.newcomer("the third");
    // A count is cached for ten seconds.
    world.place.clock_ahead(60);
    assert_eq!(world.public().get(PATH).expect(200), status(3, false));
    world.server.with_token(&token("the fourth")).post("/v1/keys/bootstrap", &json!({})).refused(409, "COHORT_FULL");
    world.user(0).get(PATH).expect(200);
    cases.add(4);
}
