//! What a book keeps from step to step decides nothing: beside it the same book is worked out from nothing, level by level.

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

/// The tick and the book of a market at a moment.
fn from_nothing(spec: &Spec, at: Timestamp) -> (TickSize, Levels) {
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

/// What led from one book to the next: the bids first, best first.
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

/// What was met on the way.
#[derive(Debug, Default)]
struct Met {
    steps: u64,
    levels: usize,
    /// Steps with another touch, with another tick, with another length than the one before; one-sided books.
    moves: u64,
    ticks: u64,
    lengths: u64,
    one_sided: u64,
    passed_over: u64,
    restarts: u64,
}

/// Follows one market for so many steps, with steps that are passed over and restarts between them; the first step that
/// is not what is worked out from nothing.
fn compare(spec: &Spec, from: Timestamp, steps: u64, met: &mut Met, meddle: impl Fn(&mut Book)) -> Result<(), String> {
    let mut book = Book::default();
    let (mut at, mut before) = (last_step(spec, from.max(spec.opens())), Levels::default());
    let (mut tick, mut length) = (book.tick(spec, at), step_length(spec, at));
    for step in 0..steps {
        let draw = mix(mix(spec.seed, 0x7e57), step);
        if draw.is_multiple_of(97) {
            book = Book::default();
            before = Levels::default();
            met.restarts += 1;
        }
        let mut changes = Vec::new();
        book.follow(spec, at, |side, level| changes.push((side, level)));
        let (expected_tick, expected) = from_nothing(spec, at);
        let (levels, is_tick) = (book.levels(), book.tick(spec, at));
        if (is_tick, &levels) != (expected_tick, &expected) {
            return Err(format!("{:?} at {at:?}: {levels:?} is {expected:?}", spec.key));
        }
        let differences = differences(&before, &expected);
        if changes != differences {
            return Err(format!("{:?} at {at:?}: {changes:?} are {differences:?}", spec.key));
        }
        let best = |levels: &Levels| levels.each_ref().map(|side| side.first().map(|(price, _)| *price));
        met.steps += 1;
        met.levels += levels[0].len() + levels[1].len();
        met.moves += u64::from(best(&before) != best(&levels));
        met.ticks += u64::from(tick != is_tick);
        met.one_sided += u64::from(levels.iter().any(Vec::is_empty));
        met.lengths += u64::from(length != step_length(spec, at));
        (tick, length, before) = (is_tick, step_length(spec, at), levels);
        let passed_over = if draw.is_multiple_of(7) { draw % (300 * length) } else { 0 };
        met.passed_over += u64::from(passed_over > 0);
        let Some(next) = next_step(spec, at.plus(passed_over)) else { break };
        at = next;
        meddle(&mut book);
    }
    Ok(())
}

/// Markets of all kinds and ticks, some of each, with the moments from which they are followed: now, across the start of
/// windows, and up to the end.
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
fn a_book_that_is_kept_is_the_one_that_is_worked_out_from_nothing() {
    let mut met = Met::default();
    let mut kinds = std::collections::BTreeSet::new();
    for (seed, liveliness) in [(1, 1), (1, 10), (2, 10), (77, 1), (77, 100)] {
        for (spec, from) in markets(seed, liveliness) {
            kinds.insert((matches!(spec.key, Key::Window { .. }), spec.tick.0));
            compare(&spec, from, 80, &mut met, |_| {}).unwrap_or_else(|why| panic!("seed {seed}, {liveliness}: {why}"));
        }
    }
    println!("{met:?}, {kinds:?}");
    assert_eq!(kinds, [(true, 100), (false, 1), (false, 10), (false, 100), (false, 1_000)].into());
    let seen = [met.moves, met.ticks, met.lengths, met.one_sided, met.passed_over, met.restarts];
    assert!(met.steps > 50_000 && seen.iter().all(|count| *count > 50), "{met:?}");
}

#[test]
fn a_level_that_is_kept_too_long_is_found() {
    let mut found = 0;
    let followed = markets(2, 10);
    for (spec, from) in &followed {
        found += u32::from(compare(spec, *from, 80, &mut Met::default(), |book| book.bids.keep_one_longer()).is_err());
        found += u32::from(compare(spec, *from, 80, &mut Met::default(), |book| book.asks.keep_one_longer()).is_err());
    }
    println!("{found} of {}", 2 * followed.len());
    assert!(found as usize > followed.len(), "{found} of {}", 2 * followed.len());
}

#[test]
fn a_step_draws_the_levels_whose_life_has_ended_and_no_others() {
    let world = World { seed: 42, liveliness: 10 };
    let specs = World::series().flat_map(|series| world.listed(series, NOW, 0)).filter_map(|key| world.spec(key));
    let (mut steps, mut drawn, mut chances, mut levels) = (0, 0, 0, 0);
    for spec in specs.filter(|spec| spec.start <= NOW) {
        let mut book = Book::default();
        book.follow(&spec, last_step(&spec, NOW), |_, _| {});
        let _begun = [Kind::Levels, Kind::Chances].map(work::take);
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
    println!("{steps} steps: {drawn:.1} levels drawn a step of {levels:.1} that stand, {chances} fair prices");
    // A hundred prices can have a level, and one in nine ends its life with a step.
    assert!((5.0..25.0).contains(&drawn), "{drawn} levels drawn a step");
    // One a step, and one each 20 s for the tick.
    assert!(chances < steps + steps / 4, "{chances} fair prices in {steps} steps");
}
