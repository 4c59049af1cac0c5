//! Equity: points of the full hours and of the present (engine/docs/account.md §5). The test advances the time.

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::json::{at, list, text};
use tests::token::unix_now;
use tests::world::{World, changed, limit, market};

const HOUR: u64 = 3_600;

/// A world whose server time is half past a full hour, and the seconds it is ahead.
fn half_past(users: usize) -> (World, u64) {
    let ahead = 2 * HOUR - unix_now() % HOUR + HOUR / 2;
    let world = World::start_with(users, |place| {
        // Each elapsed hour is full of matching cycles: few of them.
        place.clock_ahead(ahead).set("flags", "match_interval_ms", "60000");
    });
    (world, ahead)
}

/// `count` hours elapse, and a matching cycle: before its first one a process makes no points.
fn pass(world: &mut World, ahead: &mut u64, hours: u64) {
    *ahead += hours * HOUR + 61;
    world.place.clock_ahead(*ahead);
}

/// `cash + value = total, pnl` of each point.
fn shown(points: &Value) -> Vec<String> {
    let row = |point: &Value| {
        let part = |name: &str| text(point, name).to_owned();
        let (cash, value) = (part("/cash_balance"), part("/position_value"));
        format!("{cash} + {value} = {}, {}", part("/total_value"), part("/pnl"))
    };
    list(points, "").iter().map(row).collect()
}

#[test]
fn hours_have_points_that_outlive_the_process() {
    let cases = Cases::of("equity points");
    let (mut world, mut ahead) = half_past(1);
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    assert_eq!(shown(&client.get("/v1/account/equity").expect(200)), ["10000.00 + 0.00 = 10000.00, 0.00"]);
    client.post("/v1/orders", &market(&rain, "BUY", "0.42", "50")).expect(200);
    client.post("/v1/orders", &limit(&rain, "BUY", "0.37", "20")).expect(200);
    let now = "9978.391 + 20.75 = 9999.141, -0.859";
    assert_eq!(shown(&client.get("/v1/account/equity").expect(200)), [now]);
    cases.add(2);
    // The hour is full: the reserved cash is part of it.
    pass(&mut world, &mut ahead, 1);
    let first = world.until("/v1/account/equity", |points| shown(points) == [now, now]);
    assert!(text(&list(&first, "")[0], "/timestamp").ends_with(":00:00Z"), "{first}");
    assert!(text(&list(&first, "")[1], "/timestamp") > text(&list(&first, "")[0], "/timestamp"));
    cases.add(2);
    // Another mark: the past hour keeps its worth, the present and the next hours have the new one.
    world.tape.books(&rain, &[("0.43", "310"), ("0.44", "85")], &[("0.48", "120"), ("0.46", "60.5")]);
    let later = "9978.391 + 22.50 = 10000.891, 0.891";
    world.until("/v1/account/equity", |points| shown(points) == [now, later]);
    pass(&mut world, &mut ahead, 2);
    let before = world.until("/v1/account/equity", |points| shown(points) == [now, later, later, later]);
    let hours: Vec<Value> = list(&before, "").iter().take(3).map(|point| at(point, "/timestamp").clone()).collect();
    cases.add(2);
    // Points survive a kill, and the hours that ended meanwhile are added.
    pass(&mut world, &mut ahead, 2);
    world.crash();
    pass(&mut world, &mut ahead, 0);
    let after = world.until("/v1/account/equity", |points| shown(points) == [now, later, later, later, later, later]);
    let kept: Vec<Value> = list(&after, "").iter().take(3).map(|point| at(point, "/timestamp").clone()).collect();
    assert_eq!(kept, hours);
    cases.add(2);
    // Sections of them.
    let mut client = world.user(0);
    for (query, count) in [("days=1", 6), ("days=90", 6), ("limit=2", 2), ("limit=2200&days=7", 6), ("limit=1", 1)] {
        let points = client.get(&format!("/v1/account/equity?{query}")).expect(200);
        assert_eq!(list(&points, "").len(), count, "{query}");
        let newest = shown(&points);
        assert_eq!(newest.last().map(String::as_str), Some(later), "{query}");
        cases.one();
    }
    // A day later the oldest are out of reach of one day.
    pass(&mut world, &mut ahead, 22);
    let points = world.until("/v1/account/equity?days=1", |points| list(points, "").len() == 25);
    assert_eq!(shown(&points)[0], later);
    cases.one();
}

/// By the minute a first session is a curve immediately; a restart drops it, and keeps the hours.
#[test]
fn minutes_are_a_curve_until_the_process_ends() {
    let cases = Cases::of("equity by the minute");
    let (mut world, mut ahead) = half_past(1);
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let minute = "/v1/account/equity?fidelity=minute";
    // Half a minute off the full ones, so that no step crosses two.
    ahead += (90 - (unix_now() + ahead) % 60) % 60;
    ahead += 3 * 60;
    world.place.clock_ahead(ahead);
    let (flat, live) = ("10000.00 + 0.00 = 10000.00, 0.00", "9978.391 + 20.75 = 9999.141, -0.859");
    let is_flat = |points: &Value| shown(points).iter().all(|point| point == flat);
    let session = world.until(minute, |points| is_flat(points) && list(points, "").len() >= 4);
    cases.one();
    client.post("/v1/orders", &market(&rain, "BUY", "0.42", "50")).expect(200);
    let begun = client.get(minute).expect(200);
    let flats = list(&begun, "").len() - 1;
    assert!(flats + 1 >= list(&session, "").len());
    assert_eq!(shown(&begun)[flats], live);
    assert_eq!(shown(&begun)[..flats], vec![flat; flats]);
    cases.add(2);
    ahead += 60;
    world.place.clock_ahead(ahead);
    let after = world.until(minute, |points| shown(points).ends_with(&[live.to_owned(), live.to_owned()]));
    assert_eq!(shown(&after)[..flats], vec![flat; flats]);
    let stamps: Vec<String> = list(&after, "").iter().map(|point| text(point, "/timestamp").to_owned()).collect();
    let (full, last) = stamps.split_at(stamps.len() - 1);
    assert!(full.iter().all(|at| at.ends_with(":00Z")) && full.is_sorted() && *full[full.len() - 1] < *last[0]);
    cases.add(2);
    // Sections of it, and the words in any case.
    for (query, count) in [("limit=2", 2), ("days=1&limit=1", 1), ("limit=2200", stamps.len())] {
        let points = client.get(&format!("{minute}&{query}")).expect(200);
        assert!(list(&points, "").len() >= count && list(&points, "").len() <= count + 1, "{query}: {points}");
        cases.one();
    }
    assert_eq!(shown(&client.get("/v1/account/equity?fidelity=Hour").expect(200)), [live]);
    cases.one();
    // The hour survives a kill; the minutes do not.
    pass(&mut world, &mut ahead, 1);
    world.until("/v1/account/equity", |points| shown(points) == [live, live]);
    world.crash();
    let again = world.until(minute, |points| shown(points).ends_with(&[live.to_owned(), live.to_owned()]));
    let rows = list(&again, "");
    assert!(text(&rows[0], "/timestamp").ends_with(":00:00Z") && rows.len() < 10, "{again}");
    cases.add(2);
}

#[test]
fn wallets_are_worth_their_sum() {
    let cases = Cases::of("equity of wallets");
    let (mut world, mut ahead) = half_past(1);
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let sandbox = client.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).expect(201);
    let id = at(&sandbox, "/id").clone();
    client.post("/v1/orders", &market(&rain, "BUY", "0.42", "50")).expect(200);
    let within = changed(&market(&rain, "BUY", "0.42", "10"), &json!({"wallet_id": id}));
    client.post("/v1/orders", &within).expect(200);
    pass(&mut world, &mut ahead, 1);
    let rows = [
        ("", "9978.391 + 20.75 = 9999.141, -0.859"),
        ("?wallet_id=api", "9978.391 + 20.75 = 9999.141, -0.859"),
        (&format!("?wallet_id={id}"), "24995.6782 + 4.15 = 24999.8282, -0.1718"),
        ("?wallet_id=all", "35974.0692 + 24.90 = 35998.9692, -1.0308"),
    ];
    for (query, worth) in rows {
        world.until(&format!("/v1/account/equity{query}"), |points| shown(points) == [worth, worth]);
        cases.one();
    }
    // Archived: not part of `all` any more, and still readable by its number.
    client.delete(&format!("/v1/me/wallets/{id}")).expect(200);
    let all = client.get("/v1/account/equity?wallet_id=ALL").expect(200);
    assert_eq!(shown(&all)[1], "10978.391 + 20.75 = 10999.141, -0.859");
    let own = client.get(&format!("/v1/account/equity?wallet_id={id}")).expect(200);
    assert_eq!(shown(&own)[1], "24995.6782 + 0.00 = 24995.6782, -4.3218");
    cases.add(2);
}

#[test]
fn wrong_parameters_are_refused() {
    let cases = Cases::of("wrong equity parameters");
    let world = World::start(1);
    let rows = [
        ("days=0", 422, "VALIDATION_FAILED"),
        ("days=91", 422, "VALIDATION_FAILED"),
        ("days=x", 422, "VALIDATION_FAILED"),
        ("days=1.5", 422, "VALIDATION_FAILED"),
        ("fidelity=second", 422, "VALIDATION_FAILED"),
        ("fidelity=", 422, "VALIDATION_FAILED"),
        ("fidelity=minute&days=2", 422, "VALIDATION_FAILED"),
        ("fidelity=minute&days=0", 422, "VALIDATION_FAILED"),
        ("fidelity=minute&limit=2201", 422, "VALIDATION_FAILED"),
        ("fidelity=minute&wallet_id=9", 404, "WALLET_NOT_FOUND"),
        ("limit=0", 422, "VALIDATION_FAILED"),
        ("limit=2201", 422, "VALIDATION_FAILED"),
        ("limit=-1", 422, "VALIDATION_FAILED"),
        ("wallet_id=main", 422, "VALIDATION_FAILED"),
        ("wallet_id=9", 404, "WALLET_NOT_FOUND"),
        ("wallet_id=-1", 404, "WALLET_NOT_FOUND"),
    ];
    for (query, status, code) in rows {
        let answer = world.user(0).get(&format!("/v1/account/equity?{query}"));
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{query}: {}", answer.lossy());
        answer.assert_envelope();
        cases.one();
    }
}
