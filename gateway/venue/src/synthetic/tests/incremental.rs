//! A book that is followed from step to step equals the same book built from scratch, level by level.

use super::super::books::{Book, last_step, next_step, step_length};
use super::super::noise::{Paths, fraction, mix, quantile};
use super::super::work::{self, Kind};
use super::super::world::{Key, Spec, World};
use super::*;
use crate::Level;
use engine::amount::Qty;

const OCCUPIED: [f64; 13] = [0.98, 0.80, 0.75, 0.68, 0.63, 0.59, 0.57, 0.55, 0.53, 0.50, 0.46, 0.43, 0.40];
const SIZES: [(f64, f64); 6] = [(0.0, 0.1), (0.1, 3.0), (0.5, 40.0), (0.9, 280.0), (0.99, 2_000.0), (1.0, 8_000.0)];
const SPREADS: [(f64, f64); 8] =
    [(0.0, 1.0), (0.315, 1.99), (0.498, 2.99), (0.645, 3.99), (0.755, 4.99), (0.844, 5.99), (0.957, 8.99), (1.0, 12.0)];
const WINDOW_SPREADS: [(f64, f64); 4] = [(0.0, 1.0), (0.91, 1.99), (0.98, 2.99), (1.0, 5.0)];
const LIVES: [u64; 6] = [3, 6, 12, 25, 50, 100];

/// Bids and asks, best first.
type Levels = [Vec<Level>; 2];

/// The tick and the book of a market at a moment, built from scratch.
fn from_scratch(spec: &Spec, at: Timestamp) -> (TickSize, Levels) {
    let chance = |at| spec.chance(at, &mut Paths::default());
    let judged = chance(Timestamp(at.0 - at.0 % (20 * SECOND)).max(spec.opens()));
    let is_fine = spec.tick == TickSize(100) && !(0.04..=0.96).contains(&judged);
    let tick = if is_fine { 10 } else { spec.tick.0 };
    let length = step_length(spec, at);
    let ticks = 10_000 / tick;
    let fair = chance(at).clamp(0.0, 1.0) * f64::from(ticks);
    let table = if matches!(spec.key, Key::Window { .. }) { &WINDOW_SPREADS[..] } else { &SPREADS };
    let spread = quantile(table, fraction(mix(mix(spec.seed, 0x5b7e), at.0 / (20 * length)))).floor();
    let spread = match tick {
        1_000 => 1.0,
        100 => spread,
        10 => spread * 2.0 + 1.0,
        _ => spread * 10.0 + 1.0,
    };
    let half = (spread - 1.0) / 2.0;
    let best_bid = (fair - half).floor().clamp(0.0, f64::from(ticks - 1)) as u16;
    let best_ask = ((fair + half).ceil() as u16).clamp(best_bid + 1, ticks);
    let depth = 1.0 + 29.0 * fraction(mix(spec.seed, 0xdee9)).powi(4);
    let level = |side: u64, touch: u16, number: u16| {
        let (distance, price) = (touch.abs_diff(number), number * tick);
        if distance > 30 && !price.is_multiple_of(100) {
            return None;
        }
        let draw = mix(spec.seed, side << 32 | u64::from(price));
        let life = LIVES[(draw % 6) as usize] * length;
        let draw = mix(draw, (at.0 + draw % life) / life);
        if fraction(draw) >= OCCUPIED.get(usize::from(distance)).copied().unwrap_or(0.37) {
            return None;
        }
        let hundredths = (quantile(&SIZES, fraction(mix(draw, 1))) * depth * 100.0) as u64;
        let is_round = mix(draw, 2).is_multiple_of(2);
        let hundredths = if is_round { (hundredths / 500).max(1) * 500 } else { hundredths.max(1) };
        Some((Price(price), Qty(hundredths * 10_000)))
    };
    let bids = (1..=best_bid).rev().filter_map(|number| level(0, best_bid, number)).collect();
    let asks = (best_ask..ticks).filter_map(|number| level(1, best_ask, number)).collect();
    (TickSize(tick), [bids, asks])
}

/// The changes from one book to the next: bids first, best first.
fn differences(before: &Levels, now: &Levels) -> Vec<(BookSide, Level)> {
    let mut differences = Vec::new();
    for (side, (before, now)) in BookSide::BOTH.into_iter().zip(before.iter().zip(now)) {
        let map = |levels: &[Level]| levels.iter().map(|(price, size)| (side.rank(*price), *size)).collect();
        let [before, now]: [BTreeMap<u16, Qty>; 2] = [map(before), map(now)];
        let ranks: std::collections::BTreeSet<u16> = before.keys().chain(now.keys()).copied().collect();
        for rank in ranks.into_iter().filter(|rank| before.get(rank) != now.get(rank)) {
            differences.push((side, (side.price(rank), now.get(&rank).copied().unwrap_or_default())));
        }
    }
    differences
}

/// Counts of the cases that were covered.
#[derive(Debug, Default)]
struct Coverage {
    steps: u64,
    levels: usize,
    /// Steps with another touch, tick or step length than the last one; one-sided books.
    moves: u64,
    ticks: u64,
    lengths: u64,
    one_sided: u64,
    skipped: u64,
    restarts: u64,
}

/// Follows one market for `steps` steps, with skipped steps and restarts. Returns the first step whose book differs
/// from the one built from scratch.
fn compare(
    spec: &Spec,
    from: Timestamp,
    steps: u64,
    coverage: &mut Coverage,
    tamper: impl Fn(&mut Book),
) -> Result<(), String> {
    let mut book = Book::default();
    let (mut at, mut before) = (last_step(spec, from.max(spec.opens())), Levels::default());
    let (mut tick, mut length) = (book.tick(spec, at), step_length(spec, at));
    for step in 0..steps {
        let draw = mix(mix(spec.seed, 0x7e57), step);
        if draw.is_multiple_of(97) {
            book = Book::default();
            before = Levels::default();
            coverage.restarts += 1;
        }
        let mut changes = Vec::new();
        book.follow(spec, at, |side, level| changes.push((side, level)));
        let (expected_tick, expected) = from_scratch(spec, at);
        let (levels, current_tick) = (book.levels(), book.tick(spec, at));
        if (current_tick, &levels) != (expected_tick, &expected) {
            return Err(format!("{:?} at {at:?}: {levels:?} is {expected:?}", spec.key));
        }
        let differences = differences(&before, &expected);
        if changes != differences {
            return Err(format!("{:?} at {at:?}: {changes:?} are {differences:?}", spec.key));
        }
        let best = |levels: &Levels| levels.each_ref().map(|side| side.first().map(|(price, _)| *price));
        coverage.steps += 1;
        coverage.levels += levels[0].len() + levels[1].len();
        coverage.moves += u64::from(best(&before) != best(&levels));
        coverage.ticks += u64::from(tick != current_tick);
        coverage.one_sided += u64::from(levels.iter().any(Vec::is_empty));
        coverage.lengths += u64::from(length != step_length(spec, at));
        (tick, length, before) = (current_tick, step_length(spec, at), levels);
        let skipped = if draw.is_multiple_of(7) { draw % (300 * length) } else { 0 };
        coverage.skipped += u64::from(skipped > 0);
        let Some(next) = next_step(spec, at.plus(skipped)) else { break };
        at = next;
        tamper(&mut book);
    }
    Ok(())
}

/// Markets of all kinds and ticks, with the times from which they are followed: now, before the start of windows, and
/// shortly before the end.
fn markets(seed: u64, liveliness: u64) -> Vec<(Spec, Timestamp)> {
    let world = World { seed, liveliness };
    let specs = World::series().flat_map(|series| world.listed(series, NOW, 0)).filter_map(|key| world.spec(key));
    let mut followed = Vec::new();
    for (number, spec) in specs.enumerate() {
        let length = step_length(&spec, spec.start);
        let late = Timestamp(spec.end.0 - 60 * length);
        let froms = match spec.key {
            Key::Window { .. } => vec![spec.opens().max(Timestamp(spec.start.0 - 30 * SECOND)), late],
            Key::Plain { .. } if number % 4 == 0 => vec![NOW.max(spec.start), late],
            Key::Plain { .. } => vec![NOW.max(spec.start)],
        };
        followed.extend(froms.into_iter().map(|from| (spec.clone(), from)));
    }
    followed
}

#[test]
fn a_followed_book_equals_one_built_from_scratch() {
    let mut coverage = Coverage::default();
    let mut kinds = std::collections::BTreeSet::new();
    for (seed, liveliness) in [(1, 1), (1, 10), (2, 10), (77, 1), (77, 100)] {
        for (spec, from) in markets(seed, liveliness) {
            kinds.insert((matches!(spec.key, Key::Window { .. }), spec.tick.0));
            compare(&spec, from, 80, &mut coverage, |_| {})
                .unwrap_or_else(|why| panic!("seed {seed}, {liveliness}: {why}"));
        }
    }
    println!("{coverage:?}, {kinds:?}");
    assert_eq!(kinds, [(true, 100), (false, 1), (false, 10), (false, 100), (false, 1_000)].into());
    let seen =
        [coverage.moves, coverage.ticks, coverage.lengths, coverage.one_sided, coverage.skipped, coverage.restarts];
    assert!(coverage.steps > 50_000 && seen.iter().all(|count| *count > 50), "{coverage:?}");
}

#[test]
fn a_level_that_is_kept_too_long_is_detected() {
    let mut found = 0;
    let followed = markets(2, 10);
    for (spec, from) in &followed {
        found += u32::from(
            compare(spec, *from, 80, &mut Coverage::default(), |book| book.bids.keep_one_too_long()).is_err(),
        );
        found += u32::from(
            compare(spec, *from, 80, &mut Coverage::default(), |book| book.asks.keep_one_too_long()).is_err(),
        );
    }
    println!("{found} of {}", 2 * followed.len());
    assert!(found as usize > followed.len(), "{found} of {}", 2 * followed.len());
}

#[test]
fn a_step_draws_only_levels_whose_lifetime_has_ended() {
    let world = World { seed: 42, liveliness: 10 };
    let specs = World::series().flat_map(|series| world.listed(series, NOW, 0)).filter_map(|key| world.spec(key));
    let (mut steps, mut drawn, mut chances, mut levels) = (0, 0, 0, 0);
    for spec in specs.filter(|spec| spec.start <= NOW) {
        let mut book = Book::default();
        book.follow(&spec, last_step(&spec, NOW), |_, _| {});
        let _before = [Kind::Levels, Kind::Chances].map(work::take);
        let mut at = NOW;
        for _ in 0..50 {
            let Some(next) = next_step(&spec, at) else { break };
            at = next;
            book.follow(&spec, at, |_, _| {});
            steps += 1;
            let all = book.levels();
            levels += all[0].len() + all[1].len();
        }
        drawn += work::take(Kind::Levels);
        chances += work::take(Kind::Chances);
    }
    let [drawn, levels] = [drawn, levels].map(|count| count as f64 / steps as f64);
    println!("{steps} steps: {drawn:.1} levels drawn a step of {levels:.1} in the books, {chances} fair prices");
    // A hundred prices may have a level, and one in nine ends its lifetime per step.
    assert!((5.0..25.0).contains(&drawn), "{drawn} levels drawn a step");
    // One per step, and one per 20 s for the tick.
    assert!(chances < steps + steps / 4, "{chances} fair prices in {steps} steps");
}
