//! A start with a doubted clock: ends by server time are deferred until the wait is over.

use super::*;
use engine::time::DAY;

fn ending(number: u8, end: Timestamp) -> FeedUpdate {
    let listing = Listing { end: Some(end), ..listing(number, [&token(number), &format!("{number}1")]) };
    FeedUpdate::Listed { listing: Box::new(listing), state: MarketState::Active }
}

fn resolved(number: u8) -> FeedUpdate {
    FeedUpdate::Resolved { condition: condition(number), resolution: Resolution::Winner(Outcome::First), venue_ts: NOW }
}

#[test]
fn markets_end_and_pay_out_after_the_wait() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = Script::default();
    let mut life = Life::start(directory.path(), script.clone(), NOW);
    life.feed.begin().expect("it runs");
    life.call(create_user());
    script.send([listed(1), snapshot(1, 4_000, 5_000), ending(2, NOW.plus(HOUR)), ending(3, NOW.plus(10 * DAY))]);
    life.turn_after(2);
    life.call(buy(MarketId(0), Outcome::First));
    let bought = life.account();
    assert_eq!((bought.0, life.feed.desk.sweeps()), (1, Sweeps::All));
    drop(life);

    let now = NOW.plus(3 * DAY);
    let judged = |newest| Leap::of(newest, now, Duration::from_secs(3_600));
    let mut life = Life::with_leap(directory.path(), script.clone(), now, &[], judged);
    life.feed.begin().expect("it runs");
    // Listed again or for the first time: not ended, although the doubted clock is past the end.
    script.send([
        resolved(1),
        ending(2, NOW.plus(HOUR)),
        ending(4, NOW.plus(2 * DAY)),
        ending(5, Timestamp(NOW.0 - HOUR)),
    ]);
    for _ in 0..3 {
        life.turn_after(2);
    }
    let ended = |life: &Life| -> Vec<bool> { life.feed.desk.markets.iter().map(|market| market.ended).collect() };
    let has_result = |life: &Life| life.feed.desk.markets.market(MarketId(0)).expect("listed").resolution.is_some();
    assert_eq!(life.feed.desk.sweeps(), Sweeps::None);
    assert_eq!(ended(&life), [false, false, false, false, true], "an end before the newest record counts");
    assert!(!has_result(&life));
    assert_eq!(life.account(), bought);

    life.feed.desk.leap = Arc::new(Leap::none());
    life.turn_after(2);
    assert_eq!(life.feed.desk.sweeps(), Sweeps::All);
    assert_eq!(ended(&life), [false, true, false, true, true]);
    assert!(has_result(&life));
    let (positions, cash) = life.account();
    assert!(positions == 0 && cash > bought.1, "{positions} {cash:?}");
    drop(life);

    // A start with an undoubted clock applies the ends immediately.
    let mut life = Life::start(directory.path(), script.clone(), NOW.plus(11 * DAY));
    life.feed.begin().expect("it runs");
    assert_eq!(ended(&life), [false, true, true, true, true]);
    println!("deferred ends: 5 markets");
}
