//! Own rests in levels, and own fills among trades.

use super::super::orders::Kind;
use super::*;
use engine::amount::Cash;
use engine::time::MILLISECOND;

const FIRST: InstrumentId = InstrumentId(6);
const SECOND: InstrumentId = InstrumentId(7);

fn at(millis: u64) -> Timestamp {
    Timestamp(1_788_220_800_000_000 + millis * MILLISECOND)
}

fn shares(shares: u64) -> Qty {
    Qty::from_shares(shares)
}

fn fill(millis: u64, size: u64, hash: Option<&str>) -> LiveFill {
    let (price, size, hash) = (Cash(400_000), shares(size), hash.map(str::to_owned));
    LiveFill { id: format!("F{millis}"), at: at(millis), price, size, fee: None, hash }
}

/// A BUY of ten at 0.40, sent at 9.95 s and acknowledged at 10 s.
fn order(fills: Vec<LiveFill>, cancelled: Option<u64>) -> LiveOrder {
    LiveOrder {
        id: "o".to_owned(),
        token: "1".to_owned(),
        side: Side::Buy,
        kind: Kind::Gtc,
        price: Price(4_000),
        size: shares(10),
        post_only: false,
        sent_at: at(9_950),
        acked_at: Some(at(10_000)),
        cancelled_at: cancelled.map(at),
        fills,
    }
}

/// What is left of the level after the venue shows a size at a time, or after a time without news (size 0 of `None`).
fn left(own: &mut Own, millis: u64, size: Option<u64>) -> u64 {
    match size {
        Some(size) => {
            let size = shares(size);
            let bid = FeedUpdate::BookDelta {
                token: "1".into(),
                levels: [(BookSide::Bid, Price(4_000), size)].into_iter().collect(),
                venue_ts: at(millis),
            };
            let mirror = FeedUpdate::BookSnapshot {
                token: "2".into(),
                bids: Vec::new(),
                asks: vec![(Price(6_000), size)],
                venue_ts: at(millis),
                hash: None,
            };
            own.observe(FIRST, &bid);
            own.observe(SECOND, &mirror);
            own.recognise(at(millis));
            let of_first = own.without(FIRST, BookSide::Bid, Price(4_000), size);
            assert_eq!(own.without(SECOND, BookSide::Ask, Price(6_000), size), of_first);
            // Neither the other side nor another price is one of its levels.
            assert_eq!(own.without(FIRST, BookSide::Ask, Price(4_000), size), size);
            assert_eq!(own.without(FIRST, BookSide::Bid, Price(4_001), size), size);
            of_first.0 / Qty::SHARE.0
        }
        None => {
            own.pass(at(millis));
            let moved = own.moved();
            moved
                .iter()
                .find(|(instrument, ..)| *instrument == FIRST)
                .map_or(u64::MAX, |(.., size)| size.0 / Qty::SHARE.0)
        }
    }
}

#[test]
fn a_rest_comes_off_its_level_while_it_is_there() {
    let whole = || order(vec![fill(20_000, 4, None)], Some(30_000));
    // Time, size that the venue shows (`None`: no news), what is left of it (the largest number: nothing has moved).
    type Row = (u64, Option<u64>, u64);
    let nothing = u64::MAX;
    let cases: Vec<(&str, LiveOrder, Vec<Row>)> = vec![
        (
            "each change is shown",
            whole(),
            vec![
                (1_000, Some(100), 100),
                (9_980, Some(110), 100),
                (15_000, Some(130), 120),
                (19_900, Some(126), 120),
                (30_100, Some(120), 120),
                (40_000, Some(110), 110),
                (50_000, None, nothing),
            ],
        ),
        (
            "none is shown: the times of the file count, and two seconds",
            whole(),
            vec![
                (1_000, Some(100), 100),
                (11_999, None, nothing),
                (12_000, None, 90),
                (21_999, None, nothing),
                (22_000, None, 94),
                (32_000, None, 100),
            ],
        ),
        (
            "the venue shows it with others, and not before it was sent",
            whole(),
            vec![(1_000, Some(100), 100), (9_000, Some(110), 110), (10_500, Some(150), 140), (20_000, Some(120), 114)],
        ),
        (
            "a smaller growth is not its own",
            whole(),
            vec![(1_000, Some(100), 100), (10_000, Some(109), 109), (10_500, Some(119), 109)],
        ),
        (
            "what it took at its placement never rests",
            order(vec![fill(10_000, 7, None)], Some(30_000)),
            vec![(1_000, Some(100), 100), (10_000, Some(103), 100), (30_000, Some(100), 100)],
        ),
        (
            "without an end it stays",
            order(Vec::new(), None),
            vec![(1_000, Some(100), 100), (10_000, Some(110), 100), (90_000, Some(60), 50), (99_000, Some(4), 0)],
        ),
        (
            "an immediate order never rests",
            LiveOrder { kind: Kind::Fak, ..order(Vec::new(), None) },
            vec![(1_000, Some(100), 100), (10_000, Some(110), 110), (20_000, None, nothing)],
        ),
        (
            "the first book says nothing about a change",
            whole(),
            vec![(10_000, Some(110), 110), (12_000, None, 100), (20_000, Some(106), 100)],
        ),
    ];
    let mut rows_count = 0;
    for (name, order, rows) in &cases {
        let mut own = Own::default();
        own.add(order, FIRST, at(10_000));
        for (millis, size, expected) in rows {
            assert_eq!(left(&mut own, *millis, *size), *expected, "{name}, at {millis}");
            rows_count += 1;
        }
    }
    println!("own rests: {} cases, {rows_count} rows", cases.len());
}

#[test]
fn two_orders_in_a_level_count_together() {
    let mut own = Own::default();
    own.add(&order(Vec::new(), Some(30_000)), FIRST, at(10_000));
    // The sale of the other token at 0.60 is the same level.
    let sale = LiveOrder { side: Side::Sell, price: Price(6_000), ..order(Vec::new(), Some(40_000)) };
    own.add(&sale, SECOND, at(10_000));
    let rows = [(1_000, 100, 100), (10_000, 120, 100), (30_000, 110, 100), (40_000, 100, 100)];
    for (millis, size, expected) in rows {
        assert_eq!(left(&mut own, millis, Some(size)), expected, "at {millis}");
    }
    println!("two orders: {} rows", rows.len());
}

#[test]
fn a_fill_is_found_once_among_the_trades() {
    // Instrument, price, size, id, time; what of it is own. Each case begins with fills of 4 at 20 s and of 6 at 21 s.
    type Trade = (InstrumentId, u16, u64, Option<&'static str>, u64, u64);
    type Case = (&'static str, [Option<&'static str>; 2], Vec<Trade>);
    let cases: Vec<Case> = vec![
        ("by terms", [None, None], vec![(FIRST, 4_000, 4, None, 21_900, 4), (FIRST, 4_000, 4, None, 21_900, 0)]),
        (
            "of the complement",
            [None, None],
            vec![(SECOND, 6_000, 4, None, 20_000, 4), (SECOND, 6_000, 6, None, 22_000, 6)],
        ),
        (
            "other terms",
            [None, None],
            vec![
                (FIRST, 4_000, 5, None, 20_000, 0),
                (FIRST, 4_100, 4, None, 20_000, 0),
                (SECOND, 4_000, 4, None, 20_000, 0),
                (InstrumentId(8), 4_000, 4, None, 20_000, 0),
                (FIRST, 4_000, 4, None, 22_001, 0),
                (FIRST, 4_000, 4, None, 17_999, 0),
                (FIRST, 4_000, 4, None, 18_000, 4),
            ],
        ),
        (
            "by the transaction, at any time, with a part of others",
            [Some("0xab"), Some("0xab")],
            vec![(FIRST, 4_000, 30, Some("0xAB"), 90_000, 10), (FIRST, 4_000, 30, Some("0xAB"), 90_000, 0)],
        ),
        (
            "by the transaction, in two trades",
            [Some("0xab"), Some("0xcd")],
            vec![
                (FIRST, 4_000, 3, Some("0xab"), 20_000, 3),
                (FIRST, 4_000, 3, Some("0xab"), 20_000, 1),
                (FIRST, 4_000, 6, Some("0xcd"), 20_000, 6),
            ],
        ),
        ("another transaction", [Some("0xab"), Some("0xcd")], vec![(FIRST, 4_000, 4, Some("0xef"), 20_000, 0)]),
        ("an id and none in the file", [None, None], vec![(FIRST, 4_000, 4, Some("0xef"), 20_000, 4)]),
        ("none and a hash in the file", [Some("0xab"), None], vec![(FIRST, 4_000, 4, None, 20_000, 4)]),
        ("by the id of the fill", [None, None], vec![(FIRST, 4_000, 9, Some("f20000"), 90_000, 4)]),
    ];
    let mut trades_count = 0;
    for (name, [first, second], trades) in &cases {
        let mut own = Own::default();
        own.add(&order(vec![fill(20_000, 4, *first), fill(21_000, 6, *second)], None), FIRST, at(10_000));
        for (number, (instrument, price, size, id, millis, expected)) in trades.iter().enumerate() {
            let times = [at(*millis), at(*millis)];
            let part = own.part_of(*instrument, Price(*price), shares(*size), *id, times);
            assert_eq!(part, shares(*expected), "{name}, trade {number}");
            trades_count += 1;
        }
    }
    println!("own fills: {} cases, {trades_count} trades", cases.len());
}
