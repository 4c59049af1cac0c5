//! Places in the queue of a level: the rules as tables, and their laws over random events.

use super::*;
use crate::book::chance::Chance;

const SECONDS: u64 = SECOND;

fn terms(model: FillModel, n: u16, cancel_share: u32) -> FillTerms {
    FillTerms { model, n, cancel_share: Bps(cancel_share), ..FillTerms::KIND }
}

fn level(size: u64, ahead: u64, terms: FillTerms) -> Level {
    let mut level = Level::new(terms.match_window_ms, Some((Qty(size), 2)), Timestamp(0));
    level.enter(OrderId(1), Place::new(terms, Qty(ahead), SURE, Timestamp(0), 2));
    level
}

fn ahead(level: &Level) -> u64 {
    level.place(OrderId(1)).expect("it is there").ahead.0
}

fn confidence(level: &Level) -> u8 {
    hundredths(level.place(OrderId(1)).expect("it is there").confidence_at(Timestamp(0)))
}

#[test]
fn cancelled_shares_are_split_by_the_terms() {
    let (queue, prob) = (FillModel::Queue, FillModel::QueueProb);
    // (model, n, cancel share, cancelled, ahead, level) → before the order
    let rows = [
        (queue, 1, 0, 40, 60, 100, 0),
        (queue, 1, 10_000, 40, 60, 100, 24),
        (queue, 1, 5_000, 40, 60, 100, 12),
        (queue, 1, 10_000, 40, 100, 100, 40),
        (queue, 1, 10_000, 40, 120, 100, 40),
        (queue, 1, 10_000, 40, 0, 100, 0),
        (queue, 1, 10_000, 40, 50, 0, 0),
        (prob, 1, 0, 40, 50, 100, 20),
        (prob, 2, 0, 40, 50, 100, 20),
        (prob, 3, 0, 40, 50, 100, 20),
        (prob, 1, 0, 40, 25, 100, 10),
        (prob, 2, 0, 40, 25, 100, 4),
        (prob, 3, 0, 40, 25, 100, 1),
        (prob, 1, 0, 40, 75, 100, 30),
        (prob, 2, 0, 40, 75, 100, 36),
        (prob, 3, 0, 40, 75, 100, 38),
        (prob, 2, 0, 40, 100, 100, 40),
        (prob, 2, 0, 40, 130, 100, 40),
        (prob, 3, 0, 40, 0, 100, 0),
        (prob, 3, 0, 40, 0, 0, 0),
        (FillModel::Cross, 2, 10_000, 40, 100, 100, 0),
    ];
    for row @ (model, n, share, cancelled, ahead, level, expected) in rows {
        let moved = cancelled_before(&terms(model, n, share), Qty(cancelled), Qty(ahead), Qty(level));
        // Ratios are rounded down.
        assert!(moved.0 == expected || moved.0 + 1 == expected, "{row:?}: {moved:?}");
    }
    let largest = Qty((1 << 48) - 1);
    for n in 1..=3 {
        for ahead in [Qty(1), Qty(largest.0 / 2), Qty(largest.0 - 1), largest] {
            let moved = cancelled_before(&terms(prob, n, 0), largest, ahead, largest);
            assert!(moved <= ahead, "{n} {ahead:?}");
        }
    }
    println!("cancelled shares: {} cases", rows.len() + 12);
}

#[test]
fn the_odds_are_those_of_exact_fractions_rounded_down() {
    let (mut chance, mut cases) = (Chance::new(5), 0);
    for _ in 0..20_000 {
        let level = 1 + chance.below(1 << 16);
        let ahead = chance.below(level + 1);
        for n in 1..=3_u32 {
            let (before, after) = (u128::from(ahead).pow(n), u128::from(level - ahead).pow(n));
            let exact = (before << 32) / (before + after).max(1);
            let odds = u128::from(odds_before(n, Qty(ahead), Qty(level)));
            assert!(odds <= exact && exact - odds <= 8 * u128::from(n), "{ahead} of {level}, {n}: {odds}, not {exact}");
            cases += 1;
        }
    }
    println!("odds: {cases} cases");
}

#[test]
fn a_trade_explains_a_smaller_level_before_and_after_it() {
    let all = terms(FillModel::Queue, 1, 10_000);
    let at = |millis: u64| Timestamp(millis * MILLISECOND);
    // (time of the smaller level, time and size of the trade) → shares before the order after the window, confidence
    let rows = [
        (5_000, (4_000, 40), 60, 100),
        (5_000, (6_000, 40), 60, 100),
        (5_000, (5_000, 40), 60, 100),
        // Too early or too late: cancelled, too.
        (5_000, (3_999, 40), 37, 85),
        (5_000, (6_001, 40), 20, 85),
        // A part is explained; the other was cancelled.
        (5_000, (5_500, 10), 60, 85),
    ];
    for row @ (shrinks, (prints, size), expected, sure) in rows {
        let mut level = level(100, 100, all);
        let print = |level: &mut Level| {
            level.settle(at(prints), |_| ());
            level.print(Qty(size), at(prints), true);
            assert!(level.take(OrderId(1), Qty(size)).is_some_and(|beyond| beyond.is_zero()));
        };
        if prints <= shrinks {
            print(&mut level);
        }
        level.change(Qty(60), 4, at(shrinks), News::default());
        if prints > shrinks {
            print(&mut level);
        }
        level.settle(at(9_000), |_| ());
        assert_eq!((ahead(&level), confidence(&level), level.due()), (expected, sure, None), "{row:?}");
    }
    println!("explained levels: {} cases", rows.len());
}

#[test]
fn a_trade_without_a_side_moves_nothing_and_explains_with_doubt() {
    let mut level = level(100, 100, terms(FillModel::Queue, 1, 10_000));
    level.print(Qty(40), Timestamp(SECONDS), false);
    assert_eq!((ahead(&level), confidence(&level)), (100, 100));
    level.change(Qty(60), 4, Timestamp(SECONDS), News::default());
    assert_eq!((ahead(&level), confidence(&level)), (100, 85));
    level.settle(Timestamp(9 * SECONDS), |_| ());
    assert_eq!((ahead(&level), confidence(&level)), (60, 85), "at most what is shown");
}

#[test]
fn a_gap_freezes_until_a_snapshot() {
    let mut level = level(100, 80, terms(FillModel::Queue, 1, 0));
    level.freeze(0);
    assert!(!level.is_frozen(), "an earlier book");
    level.freeze(2);
    level.print(Qty(40), Timestamp(1), true);
    assert_eq!((level.take(OrderId(1), Qty(40)), ahead(&level)), (None, 80));
    level.change(Qty(30), 4, Timestamp(2), News::default());
    assert!(level.is_frozen() && ahead(&level) == 80, "a change repairs nothing");
    level.change(Qty(50), 6, Timestamp(3), News { is_snapshot: true, ..News::default() });
    assert_eq!((level.is_frozen(), ahead(&level), confidence(&level)), (false, 50, 50));
    assert_eq!(level.take(OrderId(1), Qty(60)), Some(Qty(10)));
}

#[test]
fn earlier_versions_and_other_rules_say_nothing_of_the_queue() {
    let mut level = level(100, 100, terms(FillModel::QueueProb, 1, 0));
    level.change(Qty(10), 2, Timestamp(1), News::default());
    level.settle(Timestamp(9 * SECONDS), |_| ());
    assert_eq!(ahead(&level), 100, "in the book that was read");
    // The books of both tokens are merged for a moment.
    let rebased = News { is_rebased: true, ..News::default() };
    level.change(Qty(200), 4, Timestamp(10 * SECONDS), rebased);
    level.change(Qty(100), 6, Timestamp(10 * SECONDS + 1), rebased);
    level.settle(Timestamp(19 * SECONDS), |_| ());
    assert_eq!((ahead(&level), confidence(&level)), (100, 100));
    // An order that came after a change did not see it.
    level.change(Qty(50), 8, Timestamp(20 * SECONDS), News::default());
    level.enter(OrderId(2), Place::new(terms(FillModel::QueueProb, 1, 0), Qty(50), SURE, Timestamp(0), 8));
    level.settle(Timestamp(29 * SECONDS), |_| ());
    let second = level.place(OrderId(2)).expect("it is there");
    assert_eq!((second.ahead, hundredths(second.confidence_at(Timestamp(0)))), (Qty(50), 100));
    assert_eq!(confidence(&level), 85);
}

#[test]
fn a_confidence_halves_each_half_life() {
    let rows = [
        (0, 60, 100),
        (60 * SECONDS, 60, 50),
        (30 * SECONDS, 60, 71),
        (15 * SECONDS, 60, 84),
        (120 * SECONDS, 60, 25),
        (90 * SECONDS, 60, 35),
        (59_999_999, 60, 51),
        (3_600 * SECONDS, 60, 0),
        (u64::MAX, 86_400, 0),
        (86_400 * SECONDS, 86_400, 50),
        (SECONDS, 1, 50),
    ];
    for (elapsed, half_life, expected) in rows {
        assert_eq!(hundredths(decayed(SURE, elapsed, half_life)), expected, "{elapsed} µs of {half_life} s");
    }
    let mut before = SURE;
    for elapsed in (0..200 * SECONDS).step_by(100_000) {
        let now = decayed(SURE, elapsed, 60);
        assert!(now <= before, "never more: {elapsed}");
        before = now;
    }
    for bps in 0..=10_000 {
        assert_eq!(to_bps(of_bps(Bps(bps))), Bps(bps));
    }
    println!("confidences: {} cases", rows.len() + 2_000 + 10_001);
}

/// What happens at a level.
#[derive(Clone, Copy, Debug)]
enum Event {
    Size(u64, News),
    Print(u64, bool),
    Gap,
    Wait(u64),
}

fn draw(chance: &mut Chance) -> Vec<Event> {
    (0..4 + chance.below(30))
        .map(|_| match chance.below(20) {
            0..8 => Event::Size(chance.below(1_000), News::default()),
            8 => Event::Size(chance.below(1_000), News { is_rebased: true, is_snapshot: false }),
            9 | 10 => Event::Size(chance.below(1_000), News { is_rebased: false, is_snapshot: true }),
            11..16 => Event::Print(1 + chance.below(400), chance.below(4) != 0),
            16 => Event::Gap,
            _ => Event::Wait(chance.below(3_000)),
        })
        .collect()
}

/// Never negative, never more, at most the level once every window is over; the older of two orders of one size has
/// never more before it; less is before an order with a larger `cancel_share`, and never more with the odds than with
/// none.
#[test]
fn places_only_move_forward() {
    let (mut chance, mut steps) = (Chance::new(17), 0_u64);
    for feed in 0..20_000 {
        let events = draw(&mut chance);
        let start = 1 + chance.below(1_000);
        let models = [
            terms(FillModel::Queue, 1, 0),
            terms(FillModel::Queue, 1, 4_000),
            terms(FillModel::Queue, 1, 10_000),
            terms(FillModel::QueueProb, 1 + chance.below(3) as u16, 0),
        ];
        let mut levels = models.map(|terms| level(start, start, terms));
        let (mut at, mut version, mut before) = (Timestamp(1), 2, [start; 4]);
        for event in &events {
            at = at.plus(1);
            version += 2;
            for level in &mut levels {
                if let Event::Wait(millis) = event {
                    level.settle(at.plus(millis * MILLISECOND), |_| ());
                }
                level.settle(at, |_| ());
                match *event {
                    Event::Size(size, news) => level.change(Qty(size), version, at, news),
                    Event::Print(size, is_stated) => {
                        level.print(Qty(size), at, is_stated);
                        if is_stated {
                            let _ = level.take(OrderId(1), Qty(size));
                        }
                    }
                    Event::Gap => level.freeze(version),
                    Event::Wait(_) => {}
                }
            }
            if let Event::Wait(millis) = event {
                at = at.plus(millis * MILLISECOND);
            }
            let now = [0, 1, 2, 3].map(|of: usize| ahead(&levels[of]));
            assert!((0..4).all(|of| now[of] <= before[of]), "feed {feed}: {events:?} {now:?} {before:?}");
            assert!(
                now[1] <= now[0] + 1 && now[2] <= now[1] + 1 && now[3] <= now[0],
                "feed {feed}: {events:?} {now:?}"
            );
            for (of, level) in
                levels.iter().enumerate().filter(|(_, level)| level.due().is_none() && !level.is_frozen())
            {
                assert!(now[of] <= level.size.0, "feed {feed}: {events:?} {now:?}");
            }
            before = now;
            steps += 1;
        }
    }
    println!("places: {steps} cases");
}
