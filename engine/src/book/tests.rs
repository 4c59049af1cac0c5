//! Books as a whole: the effective book against a slow model, ages and marks, readers against a writer.

use super::chance::Chance;
use super::*;
use crate::amount::{Cash, Qty, TickSize};
use crate::book::ladder::SIZE_MAX;
use crate::id::{InstrumentId, MarketId, Outcome};
use crate::time::{SECOND, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const YES: InstrumentId = InstrumentId(6);
const NO: InstrumentId = InstrumentId(7);
const MARKET: MarketId = MarketId(3);

type Levels = Vec<(Price, Qty)>;

fn levels(levels: &[(u16, u64)]) -> Levels {
    levels.iter().map(|(price, size)| (Price(*price), Qty(*size))).collect()
}

fn books() -> (Arc<Books>, BookWriter) {
    let books = Arc::new(Books::new());
    let writer = books.writer().expect("the first one");
    (books, writer)
}

fn snapshot(writer: &mut BookWriter, token: InstrumentId, bids: &[(u16, u64)], asks: &[(u16, u64)]) -> FrameReport {
    let (bids, asks) = (levels(bids), levels(asks));
    writer.frame(0, Timestamp(1), |frame| frame.snapshot(token, &bids, &asks, Timestamp(1), None))
}

#[test]
fn there_is_one_writer() {
    let (books, _writer) = books();
    assert!(books.writer().is_none());
}

#[test]
fn a_book_is_what_the_frames_left() {
    let (books, mut writer) = books();
    let mut depth = Depth::default();
    assert_eq!(books.copy(YES, 9, &mut depth), Err(Unavailable::Unknown));
    assert_eq!((books.best(YES), books.version(YES)), (Err(Unavailable::Unknown), 0));

    // Levels come in any order; one price is outside of a book, one size is too large.
    let bids = levels(&[(3_900, 5), (4_000, 7), (0, 1), (10_000, 1)]);
    let asks = levels(&[(4_200, u64::MAX), (4_100, 2), (4_155, 3)]);
    let report = writer.frame(2, Timestamp(50), |frame| frame.snapshot(YES, &bids, &asks, Timestamp(40), Some("9f")));
    assert_eq!(report, FrameReport { clamped: 1, refused: 2, settled: 1 });
    books.copy(YES, usize::MAX, &mut depth).expect("known");
    let prices = |levels: &DepthSide| levels.iter().map(|level| (level.price.0, level.size.0)).collect::<Vec<_>>();
    assert_eq!(prices(&depth.bids), [(4_000, 7), (3_900, 5)]);
    assert_eq!(prices(&depth.asks), [(4_100, 2), (4_155, 3), (4_200, SIZE_MAX)]);
    assert_eq!((depth.changed_at, depth.hash), (Timestamp(40), SnapshotHash::new("9f")));
    let top = books.best(YES).expect("known");
    assert_eq!(depth.top, top);
    assert_eq!(top.bid, Some(Quote { price: Price(4_000), size: Qty(7) }));
    assert_eq!(books.best(NO), Err(Unavailable::Unknown), "the complement's own book has not arrived");

    let version = books.version(YES);
    writer.frame(2, Timestamp(60), |frame| {
        frame.delta(
            YES,
            &[(BookSide::Ask, Price(4_100), Qty(0)), (BookSide::Bid, Price(4_000), Qty(8))],
            Timestamp(55),
        );
    });
    books.copy(YES, 1, &mut depth).expect("known");
    assert_eq!((prices(&depth.bids), prices(&depth.asks)), (vec![(4_000, 8)], vec![(4_155, 3)]));
    assert_eq!((depth.changed_at, depth.hash), (Timestamp(55), None), "the book differs from the snapshot");
    assert!(books.version(NO) > version, "the complement's effective book changed too");
    assert_eq!(books.snapshot_hash(YES), None);

    snapshot(&mut writer, YES, &[], &[]);
    let empty = books.best(YES).expect("an empty book is a book");
    assert_eq!((empty.bid, empty.ask), (None, None));
}

/// Only changes up to the levels that decide the comparison of both books settle a pair; the effective book is the same
/// as without this shortcut ([`random_pairs_have_the_effective_book_of_the_model`]).
#[test]
fn changes_of_worse_levels_than_the_deciding_ones_settle_nothing() {
    let cents = |levels: &[u16]| levels.iter().map(|cents| (cents * 100, 5)).collect::<Vec<_>>();
    // Bids of one token, and asks of the other at their complements; cents of a changed bid; whether it settles.
    type Case<'a> = (&'a str, &'a [u16], &'a [u16], u16, u32);
    let cases: [Case<'_>; 9] = [
        ("without a mirror the best level decides", &[40, 39, 38], &[], 39, 0),
        ("a better one", &[40, 39, 38], &[], 41, 1),
        ("the best one", &[40, 39, 38], &[], 40, 1),
        ("the first difference decides", &[40, 39, 38], &[40, 37], 38, 0),
        ("at the difference", &[40, 39, 38], &[40, 37], 39, 1),
        ("mirrors of three levels: a fourth would differ", &[40, 39, 38], &[40, 39, 38], 20, 1),
        ("five equal levels", &[40, 39, 38, 37, 36, 35], &[40, 39, 38, 37, 36, 30], 35, 0),
        ("the fifth of them", &[40, 39, 38, 37, 36, 35], &[40, 39, 38, 37, 36, 30], 36, 1),
        ("an empty side", &[], &[40], 3, 1),
    ];
    for (name, bids, mirrors, changed, settled) in cases {
        let (books, mut writer) = books();
        let asks: Vec<u16> = mirrors.iter().map(|cents| 100 - cents).collect();
        assert_eq!(snapshot(&mut writer, YES, &cents(bids), &[]).settled, 1);
        assert_eq!(snapshot(&mut writer, NO, &[], &cents(&asks)).settled, 1);
        let report = writer.frame(0, Timestamp(2), |frame| {
            frame.delta(YES, &[(BookSide::Bid, Price(changed * 100), Qty(7))], Timestamp(2));
        });
        assert_eq!(report.settled, settled, "{name}");
        let (mut depth, mut effective) = (Depth::default(), Effective::default());
        books.copy(YES, 1, &mut depth).expect("known");
        books.effective(YES, &mut effective).expect("known");
        assert_eq!(
            depth.bids.first().map(|level| level.price),
            books.best(YES).expect("known").bid.map(|bid| bid.price)
        );
        assert_eq!(books.effective_top(YES), Ok(effective.top()), "{name}");
    }
    println!("settled pairs: {} cases", cases.len());
}

#[test]
fn crossed_books_are_reported_to_the_feed() {
    let (_books, mut writer) = books();
    for (bid, ask, crossed) in [(4_000, 4_100, false), (4_100, 4_100, true), (4_200, 4_100, true)] {
        snapshot(&mut writer, YES, &[(bid, 1)], &[(ask, 1)]);
        assert_eq!(writer.crossed() == [YES], crossed, "{bid} {ask}");
    }
    writer.frame(0, Timestamp(2), |_| {});
    assert!(writer.crossed().is_empty(), "of the last frame only");
}

#[test]
fn a_tick_change_makes_room_and_keeps_levels_and_stamps() {
    let (books, mut writer) = books();
    snapshot(&mut writer, YES, &[(9_600, 4)], &[(9_700, 5)]);
    let (mut before, mut after) = (Depth::default(), Depth::default());
    books.copy(YES, 9, &mut before).expect("known");
    writer.tick(MARKET, TickSize(10));
    books.copy(YES, 9, &mut after).expect("known");
    assert!(after.version > before.version, "a reader that watches the version reads again");
    before.version = after.version;
    assert_eq!(before, after);
}

/// (own bids, own asks, complement's bids, complement's asks) → (effective bids, effective asks) as (price, own,
/// mirrored).
#[test]
fn mirrors_merge_and_crossed_books() {
    type Side = &'static [(u16, u64)];
    type Merged = &'static [(u16, u64, u64)];
    let rows: [(&str, Side, Side, Side, Side, Merged, Merged); 10] = [
        ("nothing", &[], &[], &[], &[], &[], &[]),
        ("own alone", &[(40, 1)], &[(42, 2)], &[], &[], &[(40, 1, 0)], &[(42, 2, 0)]),
        ("derived", &[], &[], &[(58, 2)], &[(60, 1)], &[(40, 0, 1)], &[(42, 0, 2)]),
        ("mirrors", &[(40, 1)], &[(42, 2)], &[(58, 2)], &[(60, 1)], &[(40, 1, 0)], &[(42, 2, 0)]),
        (
            "mirrors in the best five levels",
            &[(40, 1), (39, 1), (38, 1), (37, 1), (36, 1), (35, 9)],
            &[(42, 2)],
            &[(58, 2)],
            &[(60, 1), (61, 1), (62, 1), (63, 1), (64, 1), (65, 8)],
            &[(40, 1, 0), (39, 1, 0), (38, 1, 0), (37, 1, 0), (36, 1, 0), (35, 9, 0)],
            &[(42, 2, 0)],
        ),
        (
            "one side mirrors, the other has not arrived",
            &[(40, 1)],
            &[],
            &[(58, 2)],
            &[(60, 1)],
            &[(40, 1, 0)],
            &[(42, 0, 2)],
        ),
        (
            "another size: merged, equal prices add up",
            &[(40, 1)],
            &[(42, 2)],
            &[(58, 3), (57, 1)],
            &[(60, 1)],
            &[(40, 1, 0)],
            &[(42, 2, 3), (43, 0, 1)],
        ),
        ("one more level is not a mirror", &[(40, 1), (38, 2)], &[], &[], &[(60, 1)], &[(40, 1, 1), (38, 2, 0)], &[]),
        ("crossed by the complement", &[(40, 1)], &[(42, 2)], &[(60, 9)], &[], &[(40, 1, 0)], &[(42, 2, 0)]),
        ("locked by the complement", &[(40, 1)], &[(43, 2)], &[], &[(57, 1)], &[(40, 1, 0)], &[(43, 2, 0)]),
    ];
    for (name, bids, asks, other_bids, other_asks, merged_bids, merged_asks) in rows {
        let (books, mut writer) = books();
        let cents = |side: Side| side.iter().map(|(price, size)| (price * 100, *size)).collect::<Vec<_>>();
        snapshot(&mut writer, YES, &cents(bids), &cents(asks));
        snapshot(&mut writer, NO, &cents(other_bids), &cents(other_asks));
        let mut effective = Effective::default();
        books.effective(YES, &mut effective).expect("known");
        let got = |levels: &[EffectiveLevel]| {
            levels.iter().map(|l| (l.price.0 / 100, l.own.size.0, l.mirrored.size.0)).collect::<Vec<_>>()
        };
        assert_eq!(
            (got(&effective.bids).as_slice(), got(&effective.asks).as_slice()),
            (merged_bids, merged_asks),
            "{name}"
        );
        assert_eq!(books.effective_top(YES), Ok(effective.top()), "{name}");
        assert_eq!(effective.version, books.version(YES));
        let mut best = Effective::default();
        books.effective_within(YES, Reach::of(BookSide::Ask, 1), &mut best).expect("known");
        assert_eq!((best.bids.first(), best.asks.first()), (effective.bids.first(), effective.asks.first()), "{name}");
        assert!(best.bids.len() <= 1 && best.asks.len() <= 1, "{name}");
        // On a side that is a mirror, the complement's entries are found.
        for (side, mirror_side) in [(BookSide::Bid, BookSide::Ask), (BookSide::Ask, BookSide::Bid)] {
            let (mut own, mut other) = (Depth::default(), Depth::default());
            books.copy(YES, usize::MAX, &mut own).expect("known");
            books.copy(NO, usize::MAX, &mut other).expect("known");
            let best = |depth: &Depth, side: BookSide| -> Vec<_> {
                depth.side(side).iter().take(5).map(|level| (side.rank(level.price), level.size)).collect()
            };
            let are_mirrors = best(&own, side) == best(&other, mirror_side);
            for price in (1..100).map(|cents| Price(cents * 100)) {
                let there = other.side(mirror_side).size_at(price.complement());
                let found = books.mirror(YES, side, price).map(|part| part.size);
                assert_eq!(found, are_mirrors.then_some(there), "{name} at {price:?}");
            }
        }
    }
}

/// engine/docs/execution.md §3 on sorted maps.
fn effective_by_maps(own: &[BTreeMap<u16, u64>; 2], other: &[BTreeMap<u16, u64>; 2]) -> [Vec<(u16, u64, u64)>; 2] {
    // Keys are ranks: ascending is best first on both sides, and 1 − p has the rank of p on the other side.
    let best_five = |side: &BTreeMap<u16, u64>| side.iter().take(5).map(|(k, v)| (*k, *v)).collect::<Vec<_>>();
    let alone = |side: &BTreeMap<u16, u64>| side.iter().map(|(k, v)| (*k, *v, 0)).collect::<Vec<_>>();
    let merged = |side: usize| {
        let (own, mirror) = (&own[side], &other[1 - side]);
        if best_five(own) == best_five(mirror) {
            return alone(own);
        }
        let mut levels: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        own.iter().for_each(|(rank, size)| levels.entry(*rank).or_default().0 += size);
        mirror.iter().for_each(|(rank, size)| levels.entry(*rank).or_default().1 += size);
        levels.into_iter().map(|(rank, (own, mirrored))| (rank, own, mirrored)).collect()
    };
    let sides = [merged(0), merged(1)];
    let (bid, ask) = (sides[0].first(), sides[1].first());
    match (bid, ask) {
        // Ranks of bids count down from 1.00.
        (Some(bid), Some(ask)) if 10_000 - bid.0 >= ask.0 => [alone(&own[0]), alone(&own[1])],
        _ => sides,
    }
}

#[test]
fn random_pairs_have_the_effective_book_of_the_model() {
    let (seed, mut merged, mut mirrored, mut alone) = (3, 0, 0, 0);
    let mut chance = Chance::new(seed);
    let (books, mut writer) = books();
    let (mut effective, mut case) = (Effective::default(), 0);
    while case < 20_000 {
        // Mirrors at first; then the books drift apart, one level at a time.
        let mut model: [[BTreeMap<u16, u64>; 2]; 2] = Default::default();
        let unit = [100, 10, 1][chance.below(3) as usize];
        let middle = 20 * unit + chance.below(10_000 - 40 * unit) / unit * unit;
        for side in [0, 1] {
            let best = if side == 0 { 10_000 - middle } else { middle + unit };
            for level in 0..chance.below(12) {
                let (rank, size) = ((best + level * unit) as u16, 1 + chance.below(3));
                model[0][side].insert(rank, size);
                model[1][1 - side].insert(rank, size);
            }
        }
        let side_of = |side: usize| if side == 0 { BookSide::Bid } else { BookSide::Ask };
        for (token, sides) in [YES, NO].into_iter().zip(&model) {
            let of = |side: usize| -> Vec<(u16, u64)> {
                sides[side].iter().map(|(rank, size)| (side_of(side).price(*rank).0, *size)).collect()
            };
            snapshot(&mut writer, token, &of(0), &of(1));
        }
        for _ in 0..20 {
            case += 1;
            for (token, own) in [(YES, 0), (NO, 1)] {
                books.effective(token, &mut effective).expect("known");
                let expected = effective_by_maps(&model[own], &model[1 - own]);
                for side in [0, 1] {
                    let got = effective.side(side_of(side)).iter();
                    let got = got.map(|l| (side_of(side).rank(l.price), l.own.size.0, l.mirrored.size.0));
                    assert!(got.eq(expected[side].iter().copied()), "seed {seed}, case {case}, side {side}: {model:?}");
                }
                assert_eq!(books.effective_top(token), Ok(effective.top()), "seed {seed}, case {case}");
                let from_both = effective.asks.iter().chain(&effective.bids).any(|l| !l.mirrored.size.is_zero());
                let same = model[own][0] == model[1 - own][1] && model[own][1] == model[1 - own][0];
                *(if from_both {
                    &mut merged
                } else if same {
                    &mut mirrored
                } else {
                    &mut alone
                }) += 1;
            }
            let (token, side) = (chance.below(2) as usize, chance.below(2) as usize);
            let price = (middle + 10 * unit).saturating_sub(chance.below(20) * unit).clamp(unit, 10_000 - unit) as u16;
            let (rank, size) = (side_of(side).rank(Price(price)), chance.below(4));
            model[token][side].insert(rank, size);
            model[token][side].retain(|_, size| *size != 0);
            writer.frame(0, Timestamp(1), |frame| {
                frame.delta([YES, NO][token], &[(side_of(side), Price(price), Qty(size))], Timestamp(1));
            });
        }
    }
    println!("seed {seed}: {case} pairs; {merged} merged, {mirrored} mirrors, {alone} own alone");
    assert!(merged > 1_000 && mirrored > 1_000 && alone > 1_000);
}

#[test]
fn quote_age_is_the_later_of_message_and_proof_of_life() {
    let (books, mut writer) = books();
    let second = |n: u64| Timestamp::from_secs(1_000 + n);
    assert_eq!((books.quote_age(YES, second(0)), books.stale(YES, second(0))), (None, true));
    writer.frame(1, second(0), |frame| frame.snapshot(YES, &[], &[], second(0), None));
    assert_eq!(books.quote_age(YES, second(7)), Some(7 * SECOND));
    writer.alive(2, second(5));
    assert_eq!(books.quote_age(YES, second(7)), Some(7 * SECOND), "another connection's life");
    writer.alive(1, second(5));
    writer.alive(1, second(4));
    assert_eq!(books.quote_age(YES, second(7)), Some(2 * SECOND));
    assert_eq!(books.quote_age(YES, second(3)), Some(0), "never negative");
    for (at, stale) in [(35, false), (36, true)] {
        assert_eq!(books.stale(YES, second(at)), stale, "at {at}");
    }

    assert_eq!(books.quote_age(NO, second(7)), Some(2 * SECOND), "no own message: as old as its mirror");

    // A gap: only the token's own messages count, and only a snapshot repairs it.
    writer.gap_connection(2);
    assert!(!books.gap(YES));
    writer.gap_connection(1);
    writer.alive(1, second(20));
    assert_eq!((books.gap(YES), books.quote_age(YES, second(20))), (true, Some(20 * SECOND)));
    writer.frame(1, second(21), |frame| frame.delta(YES, &[], second(21)));
    assert!(books.stale(YES, second(21)), "a change repairs nothing");
    assert_eq!(books.quote_age(YES, second(21)), Some(21 * SECOND), "and reduces no age");
    writer.frame(1, second(22), |frame| frame.snapshot(YES, &[], &[], second(22), None));
    assert_eq!((books.gap(YES), books.stale(YES, second(22))), (false, false));
    writer.gap(YES);
    assert!(books.stale(YES, second(22)));
    writer.frame(1, second(22), |frame| frame.snapshot(YES, &[], &[], second(22), None));

    // A book that is wrong has the maximum age, for both tokens, until a snapshot.
    writer.frame(1, second(22), |frame| frame.snapshot(NO, &[], &[], second(22), None));
    writer.distrust(YES.market());
    for token in [YES, NO] {
        assert!(books.stale(token, second(22)) && books.quote_age(token, second(22)) >= Some(21 * SECOND), "{token:?}");
    }
    writer.frame(1, second(22), |frame| frame.delta(YES, &[], second(22)));
    assert!(books.quote_age(YES, second(22)) >= Some(21 * SECOND), "a change repairs nothing");
    writer.frame(1, second(22), |frame| {
        frame.snapshot(YES, &[], &[], second(22), None);
        frame.snapshot(NO, &[], &[], second(22), None);
    });
    assert_eq!((books.quote_age(YES, second(22)), books.stale(NO, second(22))), (Some(0), false));

    writer.outage(true);
    assert!(books.outage() && books.stale(YES, second(22)));
    writer.outage(false);

    // A recording drives the clock: the server's is ignored.
    assert_eq!(books.venue_now(second(99)), second(99));
    writer.clock(second(30));
    writer.clock(second(29));
    assert_eq!(books.venue_now(second(99)), second(30));
    assert_eq!(books.quote_age(YES, second(99)), Some(8 * SECOND));
}

#[test]
fn tokens_of_single_responses_age_separately() {
    let (books, mut writer) = books();
    let (one, other) = (MarketId(0).instrument(Outcome::First), MarketId(1).instrument(Outcome::First));
    let second = |second: u64| Timestamp(second * SECOND);
    for (token, at) in [(one, 1), (other, 5)] {
        writer.frame(SINGLE_ANSWERS, second(at), |frame| frame.snapshot(token, &[], &[], second(at), None));
    }
    writer.alive(SINGLE_ANSWERS, second(8));
    assert_eq!(books.quote_age(one, second(9)), Some(8 * SECOND));
    assert_eq!(books.quote_age(other, second(9)), Some(4 * SECOND));
}

#[test]
fn a_response_on_behalf_of_a_connection_renews_only_the_tokens_it_names() {
    let (books, mut writer) = books();
    let (one, other) = (MarketId(0).instrument(Outcome::First), MarketId(1).instrument(Outcome::First));
    let second = |second: u64| Timestamp(second * SECOND);
    for token in [one, other] {
        writer.frame(3, second(1), |frame| frame.snapshot(token, &[], &[], second(1), None));
    }
    writer.answer(3, second(8), |frame| frame.snapshot(one, &[], &[], second(8), None));
    let ages = |now: u64| [one, other].map(|token| books.quote_age(token, second(now)).map(|age| age / SECOND));
    assert_eq!(ages(9), [Some(1), Some(8)], "the other is as old as its connection's last frame");
    let last = |token| books.book(token).and_then(|book| book.last_message());
    assert_eq!((last(one), last(other)), (Some((second(8), 3)), Some((second(1), 3))));
    writer.alive(3, second(10));
    assert_eq!(ages(12), [Some(2), Some(2)], "the connection renews both");
    writer.gap_connection(3);
    assert!(books.stale(one, second(12)), "and its end makes both stale");
    assert_eq!(last(MarketId(2).instrument(Outcome::First)), None);
    println!("responses on behalf of a connection: 5 cases");
}

#[test]
fn a_mark_is_midpoint_then_trade_then_display() {
    let (books, mut writer) = books();
    assert_eq!(books.mark(YES), None);
    let stated = Stated { shown: [Some(Cash(300_050)), None], last: [None; 2] };
    assert!(writer.stated(YES.market(), &stated) && !writer.stated(YES.market(), &stated), "new once");
    let mark = |source, price| Some(Mark { price: Cash(price), source });
    assert_eq!(books.mark(YES), mark(MarkSource::Display, 300_050));
    let trade = LastTrade { price: Price(4_444), size: Qty(9), taker_buys: true, at: Timestamp(5) };
    writer.frame(0, Timestamp(1), |frame| frame.trade(YES, trade));
    assert_eq!((books.last_trade(YES), books.last_trade(NO)), (Some(trade), None));
    assert_eq!(books.mark(YES), mark(MarkSource::LastTrade, 444_400));
    assert_eq!(books.displayed(YES), Some(Cash(444_400)));
    for (bids, asks, expected) in [
        (vec![(4_000, 1)], vec![], mark(MarkSource::LastTrade, 444_400)),
        (vec![(4_000, 1)], vec![(5_001, 1)], mark(MarkSource::LastTrade, 444_400)),
        (vec![(4_000, 1)], vec![(5_000, 1)], mark(MarkSource::Midpoint, 450_000)),
        (vec![(4_001, 1)], vec![(4_002, 1)], mark(MarkSource::Midpoint, 400_150)),
    ] {
        snapshot(&mut writer, YES, &bids, &asks);
        assert_eq!(books.mark(YES), expected, "{bids:?} {asks:?}");
    }
    // The complement's bid of 0.59 is an ask of 0.41.
    snapshot(&mut writer, YES, &[(4_000, 1)], &[(5_001, 1)]);
    snapshot(&mut writer, NO, &[(5_900, 1)], &[]);
    assert_eq!(books.mark(YES), mark(MarkSource::Midpoint, 405_000));
    assert_eq!(books.mark(NO), mark(MarkSource::Midpoint, 595_000));
}

/// A writer changes many levels of both tokens in each frame, on all three grids, so that in every published state all
/// sizes are the frame's number and the tokens mirror each other; a reader must never see another state.
#[test]
fn readers_never_see_half_a_frame() {
    const FRAMES: u64 = 60_000;
    let (books, mut writer) = books();
    let done = AtomicBool::new(false);
    let all_levels = |number: u64, unit: u16| -> [Levels; 2] {
        let count = (1 + number % 30) as u16;
        let side = |price: &dyn Fn(u16) -> u16| (1..=count).map(|n| (Price(price(n)), Qty(number))).collect();
        [side(&|n| 5_000 - n * unit), side(&|n| 5_000 + n * unit)]
    };
    let mirror =
        |levels: &Levels| -> Levels { levels.iter().map(|(price, size)| (price.complement(), *size)).collect() };
    let [bids, asks] = all_levels(1, 100);
    writer.frame(0, Timestamp(1), |frame| {
        frame.snapshot(YES, &bids, &asks, Timestamp(1), Some("1"));
        frame.snapshot(NO, &mirror(&asks), &mirror(&bids), Timestamp(1), Some("1"));
    });
    let (copies, refused) = std::thread::scope(|scope| {
        let read = |seed: u64| {
            let (books, done) = (&books, &done);
            move || {
                let (mut depth, mut effective, mut chance) =
                    (Depth::default(), Effective::default(), Chance::new(seed));
                let (mut copies, mut refused) = (0_u64, 0_u64);
                while !done.load(Ordering::Relaxed) || copies == 0 {
                    let token = if chance.one_in(2) { YES } else { NO };
                    let copied = match chance.below(3) {
                        0 => books.copy(token, usize::MAX, &mut depth).map(|()| {
                            let number = depth.changed_at.0;
                            let whole =
                                depth.bids.len() as u64 == 1 + number % 30 && depth.bids.len() == depth.asks.len();
                            let same = depth.bids.iter().chain(depth.asks.iter()).all(|level| level.size.0 == number);
                            assert!(whole && same, "torn: {depth:?}");
                            let best =
                                |levels: &DepthSide| levels.first().map(|l| Quote { price: l.price, size: l.size });
                            assert_eq!((depth.top.bid, depth.top.ask), (best(&depth.bids), best(&depth.asks)));
                            assert!(depth.hash.is_none_or(|hash| hash.as_str() == number.to_string()), "{depth:?}");
                        }),
                        1 => books.effective(token, &mut effective).map(|()| {
                            let number = effective.bids[0].own.size.0;
                            let whole = effective.bids.len() as u64 == 1 + number % 30;
                            let levels = effective.bids.iter().chain(&effective.asks);
                            let mut alone =
                                levels.map(|level| level.own.size.0 == number && level.mirrored.size.is_zero());
                            assert!(whole && alone.all(|alone| alone), "torn: {effective:?}");
                            assert_eq!(effective.bids.len(), effective.asks.len(), "torn: {effective:?}");
                        }),
                        _ => books.effective_top(token).map(|top| {
                            let (bid, ask) = (top.bid.expect("both sides"), top.ask.expect("both sides"));
                            assert_eq!(bid.complement(), ask, "torn: {top:?}");
                        }),
                    };
                    match copied {
                        Ok(()) => copies += 1,
                        Err(Unavailable::Contended) => refused += 1,
                        Err(Unavailable::Unknown) => panic!("known from the start"),
                    }
                }
                (copies, refused)
            }
        };
        let readers = [scope.spawn(read(1)), scope.spawn(read(2))];
        let (mut unit, mut last) = (100, 1);
        for number in 2..FRAMES {
            // Snapshots change the grid; changes between them remove all levels and add new ones.
            let replace = number % 16 == 0;
            let gone = all_levels(last, unit);
            if replace {
                unit = [100, 10, 1][(number / 16 % 3) as usize];
                writer.tick(MARKET, TickSize(if number % 48 == 0 { 1 } else { 100 }));
            }
            let [bids, asks] = all_levels(number, unit);
            writer.frame(0, Timestamp(number), |frame| {
                if replace {
                    let hash = number.to_string();
                    frame.snapshot(YES, &bids, &asks, Timestamp(number), Some(&hash));
                    frame.snapshot(NO, &mirror(&asks), &mirror(&bids), Timestamp(number), Some(&hash));
                    return;
                }
                let of = |side, levels: &Levels, size: &dyn Fn(Qty) -> Qty| -> Vec<(BookSide, Price, Qty)> {
                    levels.iter().map(|(price, qty)| (side, *price, size(*qty))).collect()
                };
                let none = |_: Qty| Qty::ZERO;
                for (token, sides) in [(YES, [&gone[0], &gone[1]]), (NO, [&mirror(&gone[1]), &mirror(&gone[0])])] {
                    frame.delta(token, &of(BookSide::Bid, sides[0], &none), Timestamp(number));
                    frame.delta(token, &of(BookSide::Ask, sides[1], &none), Timestamp(number));
                }
                for (token, sides) in [(NO, [&mirror(&asks), &mirror(&bids)]), (YES, [&bids, &asks])] {
                    frame.delta(token, &of(BookSide::Bid, sides[0], &|size| size), Timestamp(number));
                    frame.delta(token, &of(BookSide::Ask, sides[1], &|size| size), Timestamp(number));
                }
            });
            last = number;
        }
        done.store(true, Ordering::Relaxed);
        readers
            .map(|reader| reader.join().expect("nothing was torn"))
            .iter()
            .fold((0, 0), |sum, r| (sum.0 + r.0, sum.1 + r.1))
    });
    println!("{copies} copies during {FRAMES} frames, {refused} refused, none torn");
    assert!(copies > 0);
}

/// Stated last trades and received trades, in their order.
#[test]
fn the_last_price_is_the_newest_one() {
    enum Message {
        Trade(u16, u64),
        Book(u16, Option<u8>, u64),
        Row(u16),
    }
    use Message::*;
    /// Price, decimals of its text, and whether a trade was seen.
    type Last = Option<(u16, Option<u8>, bool)>;
    let cases: [(&str, Vec<Message>, Last); 9] = [
        ("no price", vec![], None),
        ("a row", vec![Row(4_100)], Some((4_100, None, false))),
        ("a later row", vec![Row(4_100), Row(4_200)], Some((4_200, None, false))),
        ("a book after a row", vec![Row(4_100), Book(4_200, Some(3), 5)], Some((4_200, Some(3), false))),
        ("a row lags", vec![Book(4_200, Some(3), 5), Row(4_100)], Some((4_200, Some(3), false))),
        ("a trade", vec![Book(4_200, Some(3), 5), Trade(4_300, 6), Row(4_100)], Some((4_300, None, true))),
        ("a book of the trade", vec![Trade(4_300, 6), Book(4_300, Some(2), 6)], Some((4_300, Some(2), true))),
        ("an older book", vec![Trade(4_300, 6), Book(4_200, Some(2), 5)], Some((4_300, None, true))),
        ("a newer book", vec![Trade(4_300, 6), Book(4_400, None, 7)], Some((4_400, None, false))),
    ];
    for (case, messages, expected) in cases {
        let (books, mut writer) = books();
        for message in messages {
            match message {
                Trade(price, at) => {
                    let trade = LastTrade { price: Price(price), size: Qty(9), taker_buys: true, at: Timestamp(at) };
                    writer.frame(0, Timestamp(at), |frame| frame.trade(YES, trade));
                }
                Book(price, decimals, at) => drop(writer.frame(0, Timestamp(at), |frame| {
                    frame.snapshot(YES, &[], &[], Timestamp(at), None);
                    frame.last_price(YES, Price(price), decimals, Timestamp(at));
                })),
                Row(price) => {
                    writer.stated(YES.market(), &Stated { shown: [None; 2], last: [Some(Price(price)), None] });
                }
            }
        }
        let last = books.last_price(YES);
        let seen = last.map(|last| (last.price.0, last.decimals, last.trade.is_some()));
        assert_eq!(seen, expected, "{case}");
        assert_eq!(books.displayed(YES), expected.map(|(price, ..)| Cash(i64::from(price) * 100)), "{case}");
        assert_eq!((books.last_price(NO), books.displayed(NO)), (None, None), "{case}");
    }
    let (books, mut writer) = books();
    for placeholder in [0, 1_000_000, -1, i64::MAX] {
        writer.stated(YES.market(), &Stated { shown: [Some(Cash(placeholder)), None], last: [None; 2] });
        assert_eq!(books.display(YES), None, "{placeholder} is not a price between 0 and 1");
    }
    println!("last prices: 13 cases");
}
