//! Trades of a recording fill resting orders: once, identically at any speed, and not again after a kill.

use super::*;

const FIRST: u64 = 1_786_431_540_000;
const CONDITION: &str = "0xaa00000000000000000000000000000000000000000000000000000000000001";
/// Seconds of the recording.
const LENGTH: u64 = 60;

/// A book that never reaches the order's price. Every third second from the tenth on, one share is sold at 0.38; every
/// fifth second, fifty are sold at 0.40, the limit of the order. Every seventh second there is a trade without a taker
/// side.
fn record(folder: &Path) -> std::path::PathBuf {
    let mut lines = String::new();
    let mut write = |second: u64, kind: &str, text: &str| {
        let at = FIRST + second * 1_000;
        lines += &match kind {
            "rest" => {
                format!("{{\"r\":{at},\"v\":\"polymarket\",\"u\":\"/markets?limit=1\",\"s\":200,\"b\":{text}}}\n")
            }
            _ => format!("{{\"r\":{at},\"v\":\"polymarket\",\"c\":\"1\",\"m\":{text}}}\n"),
        };
    };
    let gamma = format!(
        r#"[{{"id":"1","conditionId":"{CONDITION}","slug":"s","clobTokenIds":"[\"11\",\"12\"]","active":true,"closed":false,"acceptingOrders":true,"orderPriceMinTickSize":0.01,"endDate":"2026-11-03T00:00:00Z"}}]"#
    );
    write(0, "rest", &gamma);
    for second in 0..LENGTH {
        let millis = FIRST + second * 1_000;
        let book = |token: u8, bid: u8, ask: u8| {
            format!(
                r#"{{"event_type":"book","asset_id":"{token}","timestamp":"{millis}","bids":[{{"price":"0.{bid}","size":"100"}}],"asks":[{{"price":"0.{ask}","size":"100"}}]}}"#
            )
        };
        write(second, "market", &format!("[{},{}]", book(11, 30, 60), book(12, 40, 70)));
        let trade = |token: u8, price: &str, side: &str, size: u8| {
            format!(
                r#"{{"event_type":"last_trade_price","asset_id":"{token}","price":"{price}","side":"{side}","size":"{size}","timestamp":"{millis}"}}"#
            )
        };
        if second % 5 == 0 {
            write(second, "market", &trade(11, "0.40", "SELL", 50));
        }
        if second % 7 == 0 {
            write(second, "market", &trade(11, "0.38", "", 1));
        }
        if second >= 10 && second % 3 == 1 {
            write(second, "market", &trade(11, "0.38", "SELL", 1));
            if second % 2 == 0 {
                // The same trade, reported for the other token.
                write(second, "market", &trade(12, "0.62", "BUY", 1));
            }
        }
    }
    let tape = folder.join("tape.jsonl");
    std::fs::write(&tape, lines).expect("a file");
    tape
}

/// Filled shares of the order after the recording. It is replayed at `speed` with a turn every `step_us`; at each
/// second of `kills` the process is killed and restarted.
fn filled(tape: &Path, speed: Speed, step_us: u64, kills: &[u64]) -> u64 {
    let directory = tempfile::tempdir().expect("a directory");
    let start = |now| {
        let replay = Replay::open(tape, speed, false, &Default::default()).expect("a tape");
        let mut life = Life::start(directory.path(), replay, now);
        life.feed.begin().expect("it runs");
        life
    };
    let mut life = start(NOW);
    life.call(create_user());
    let Answer::Order(view) = life.call(super::replayed::limit(&life, "11", 40)) else { panic!("an order") };
    assert!(view.fills.is_empty() && life.books.is_watched(MarketId(0)));
    let ended_at = Timestamp::from_millis(FIRST + (LENGTH - 1) * 1_000);
    let mut kills = kills.iter();
    let mut next = kills.next();
    let mut turns = 0;
    while life.feed.desk.venue_now < ended_at {
        life.clock.set(life.clock.now().plus(step_us));
        life.feed.turn().expect("it runs");
        if next.is_some_and(|second| life.feed.desk.venue_now >= Timestamp::from_millis(FIRST + second * 1_000)) {
            let now = life.clock.now();
            drop(life);
            life = start(now);
            next = kills.next();
        }
        turns += 1;
        assert!(turns < 100_000, "the recording ends");
    }
    let Answer::Order(view) = life.call(Command::Query(Query::Order(view.order.id))) else { panic!("an order") };
    assert_eq!(view.order.fee, Cash::ZERO);
    assert!(view.fills.iter().all(|fill| fill.notional.0 == 400_000), "a share at its limit each");
    view.order.filled.0 / 1_000_000
}

#[test]
fn prints_of_a_recording_fill_once_at_any_speed_and_over_kills() {
    let folder = tempfile::tempdir().expect("a directory");
    let tape = record(folder.path());
    // 10, 13, … 58.
    let expected = 17;
    let real = || "1".parse::<Speed>().expect("a speed");
    let cases = [
        (Speed::Max, SECOND, vec![]),
        (real(), SECOND / 10, vec![]),
        (real(), 7 * SECOND, vec![]),
        ("60".parse().expect("a speed"), SECOND / 50, vec![]),
        (real(), SECOND / 10, vec![13, 16, 31, 32, 58]),
        (Speed::Max, SECOND, vec![11, 40]),
    ];
    for (speed, step_us, kills) in &cases {
        assert_eq!(
            filled(&tape, *speed, *step_us, kills),
            expected,
            "{speed:?}, every {step_us} µs, kills at {kills:?}"
        );
    }
    println!("prints of a recording: {} cases", cases.len());
}

/// A trade of a live venue meets the orders that existed when it arrived, even if the feed takes it later. A repeated
/// report fills nothing more, and a trade without a taker side fills nothing.
#[test]
fn prints_of_a_live_venue_fill_orders_that_existed_at_their_arrival_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = Script::default();
    let mut life = Life::start(directory.path(), script.clone(), NOW);
    life.feed.begin().expect("it runs");
    life.call(create_user());
    // A trade at 0.38 of the first token, or the same reported for the second token.
    let trade = |number: u8, second: bool, sold: bool, at: u64, id: Option<u64>| FeedUpdate::LastTrade {
        token: if second { format!("{number}1") } else { token(number) }.into(),
        price: Price(if second { 6_200 } else { 3_800 }),
        size: Qty(1_000_000),
        taker_buys: sold == second,
        venue_ts: NOW.plus(at),
        id: id.map(|id| id.to_string().into()),
        fee_rate_bps: None,
    };
    let sideless =
        FeedUpdate::SidelessTrade { token: token(1).into(), price: Price(3_800), size: Qty(1_000_000), venue_ts: NOW };
    script.send([listed(1), listed(2), snapshot(1, 3_000, 6_000), snapshot(2, 3_000, 6_000)]);
    life.turn_after(1);
    // No user has an order in this market yet.
    script.send([trade(2, false, true, 1, None), trade(2, false, true, 2, Some(2))]);
    life.turn_after(1);
    let mut orders = [1, 2].map(|number| {
        let Answer::Order(view) = life.call(super::replayed::limit(&life, &token(number), 40)) else {
            panic!("an order")
        };
        (view.order.id, 0)
    });
    let before_the_order = 1;
    let rows = [
        // (age of the frame, update, market, shares that it fills)
        (0, trade(1, false, true, 1, None), 1, 1),
        (0, trade(1, false, false, 2, None), 1, 0),
        (0, sideless, 1, 0),
        (before_the_order, trade(1, false, true, 3, None), 1, 0),
        (0, trade(1, false, true, 4, None), 1, 1),
        (0, trade(1, true, true, 4, None), 1, 0),
        // A third report without an id is another trade.
        (0, trade(1, true, true, 4, None), 1, 1),
        (0, trade(1, false, true, 5, Some(1)), 1, 1),
        (0, trade(1, false, true, 5, Some(1)), 1, 0),
        (0, trade(1, true, true, 6, Some(1)), 1, 0),
        (0, trade(1, false, true, 5, Some(3)), 1, 1),
        // Reported for the other token before the order was placed.
        (0, trade(2, true, true, 1, None), 2, 0),
        (0, trade(2, true, true, 3, Some(2)), 2, 0),
        (0, trade(2, true, true, 3, None), 2, 1),
    ];
    for (row, (waited, update, number, expected)) in rows.iter().enumerate() {
        script.wait(0);
        script.send([snapshot(*number, 3_000, 6_000)]);
        life.feed.turn().expect("it runs");
        script.wait(*waited);
        script.send([update.clone()]);
        life.feed.turn().expect("it runs");
        life.call(Command::MeetPrints);
        let (order, filled) = &mut orders[usize::from(*number) - 1];
        let Answer::Order(view) = life.call(Command::Query(Query::Order(*order))) else { panic!("an order") };
        let shares = view.order.filled.0 / 1_000_000;
        assert_eq!(shares - std::mem::replace(filled, shares), *expected, "row {row}: {update:?}");
    }
    let sideless = life.feed.desk.figures.sideless_prints.load(Ordering::Relaxed);
    assert_eq!(sideless, 1);
    println!("prints of a live venue: {} cases", rows.len());
}

/// A hundred shares are shown at 0.40, then two hundred, of which eighty are cancelled. From the fifth second on seven are
/// sold there each second, and the level shrinks by them.
fn record_queue(folder: &Path) -> std::path::PathBuf {
    let mut lines = String::new();
    let at = |second: u64| FIRST + if second == 0 { 0 } else { (QUIET + second) * 1_000 };
    let gamma = format!(
        r#"[{{"id":"1","conditionId":"{CONDITION}","slug":"s","clobTokenIds":"[\"11\",\"12\"]","active":true,"closed":false,"acceptingOrders":true,"orderPriceMinTickSize":0.01,"endDate":"2026-11-03T00:00:00Z"}}]"#
    );
    lines += &format!("{{\"r\":{},\"v\":\"polymarket\",\"u\":\"/markets?limit=1\",\"s\":200,\"b\":{gamma}}}\n", at(0));
    let mut write = |second: u64, text: &str| {
        lines += &format!("{{\"r\":{},\"v\":\"polymarket\",\"c\":\"1\",\"m\":{text}}}\n", at(second));
    };
    let book = r#"[{"event_type":"book","asset_id":"11","timestamp":"1786431540000","bids":[{"price":"0.40","size":"100"},{"price":"0.30","size":"100"}],"asks":[{"price":"0.60","size":"100"}]}]"#;
    write(0, book);
    for second in (1..QUEUE_LENGTH).filter(|second| !(3..5).contains(second)) {
        let millis = at(second);
        let shown = match second {
            1 => 200,
            2 => 120,
            _ => 120 - 7 * (second - 4),
        };
        if second > 2 {
            write(
                second,
                &format!(
                    r#"{{"event_type":"last_trade_price","asset_id":"11","price":"0.40","side":"SELL","size":"7","timestamp":"{millis}"}}"#
                ),
            );
        }
        write(
            second,
            &format!(
                r#"{{"event_type":"price_change","market":"{CONDITION}","timestamp":"{millis}","price_changes":[{{"asset_id":"11","price":"0.40","size":"{shown}","side":"BUY","hash":""}}]}}"#
            ),
        );
    }
    let tape = folder.join("queue.jsonl");
    std::fs::write(&tape, lines).expect("a file");
    tape
}

/// Seconds of the recording, after those in which nothing happens to the book.
const QUEUE_LENGTH: u64 = 21;
/// The first cycle is within them. At full speed the feed begins with everything up to it, so the order finds the same book
/// at every speed.
const QUIET: u64 = 3;

/// Filled shares of an order of thirty under a set of realism after the recording; at second `kill` the process is killed
/// and restarted.
fn filled_from_queue(tape: &Path, set: &str, speed: Speed, step_us: u64, kill: Option<u64>) -> u64 {
    let directory = tempfile::tempdir().expect("a directory");
    let start = |now| {
        let replay = Replay::open(tape, speed, false, &Default::default()).expect("a tape");
        let mut life = Life::start(directory.path(), replay, now);
        life.feed.begin().expect("it runs");
        life
    };
    let mut life = start(NOW);
    life.call(create_user());
    let secret = Secret { hash: [1; 32], alias_hash: [2; 32], prefix: "svc_live_0000000".to_owned() };
    let issue = IssueKey { secret, name: None, tier: None, permissions: None, bootstrap: false, by: None };
    let Answer::Key(key) = life.call(Command::IssueKey(issue)) else { panic!("a key") };
    let chosen = life.call(Command::ChooseRealism { key: key.id, set: Some(set.to_owned()) });
    assert!(matches!(chosen, Answer::Key(_)), "{chosen:?}");
    let Command::Place(mut placement) = super::replayed::limit(&life, "11", 40) else { panic!("an order") };
    placement.key = key.id;
    let Answer::Order(view) = life.call(Command::Place(placement)) else { panic!("an order") };
    let ended_at = Timestamp::from_millis(FIRST + (QUIET + QUEUE_LENGTH - 1) * 1_000);
    let (mut kill, mut turns) = (kill, 0);
    while life.feed.desk.venue_now < ended_at {
        life.clock.set(life.clock.now().plus(step_us));
        life.feed.turn().expect("it runs");
        if kill.is_some_and(|second| life.feed.desk.venue_now >= Timestamp::from_millis(FIRST + second * 1_000)) {
            let now = life.clock.now();
            drop(life);
            life = start(now);
            kill = None;
        }
        turns += 1;
        assert!(turns < 100_000, "the recording ends");
    }
    let Answer::Order(view) = life.call(Command::Query(Query::Order(view.order.id))) else { panic!("an order") };
    view.order.filled.0 / 1_000_000
}

#[test]
fn an_order_waits_in_the_queue_of_a_recording_at_any_speed() {
    let folder = tempfile::tempdir().expect("a directory");
    let tape = record_queue(folder.path());
    let real = || "1".parse::<Speed>().expect("a speed");
    let mut cases = 0;
    let mut by_set = Vec::new();
    for set in ["brutal", "thin", "venue"] {
        let filled = filled_from_queue(&tape, set, Speed::Max, SECOND, None);
        for (speed, step_us) in
            [(real(), SECOND / 10), (real(), 7 * SECOND), ("60".parse().expect("a speed"), SECOND / 50)]
        {
            assert_eq!(filled_from_queue(&tape, set, speed, step_us, None), filled, "{set} at {speed:?}");
            cases += 1;
        }
        // After a kill more counts as before the order.
        let killed = filled_from_queue(&tape, set, real(), SECOND / 10, Some(9));
        assert!(killed <= filled, "{set}: {killed} of {filled}");
        by_set.push(filled);
        cases += 2;
    }
    // 16 trades of 7 shares, after the hundred that were there.
    // Half of the cancelled ones were before it, by the odds.
    assert_eq!(by_set, [0, 12, 30]);
    println!("queues of a recording: {cases} cases");
}
