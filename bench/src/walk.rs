//! A taker's walk of ten levels with fees, compared with the same in decimal arithmetic.

use crate::chance::Chance;
use crate::floor::Floor;
use crate::report::{ONE_BY_ONE, Report, Size, timed};
use engine::amount::{Bps, Cash, Price, Qty};
use engine::book::{BookSide, Want, walk};
use rust_decimal::{Decimal, RoundingStrategy};
use std::hint::black_box;

const LEVELS: usize = 10;
const ROUNDS: usize = 5;
/// Decimal arithmetic that rounds the fee of each level walks ten levels in 0.84 µs on a quiet core; below a third of
/// that rate the core was shared.
const DECIMAL_FLOOR: Floor = Floor { of: "the walk in decimals", least: 400_000.0 };
/// Fee rate of the crypto category.
const RATE: Bps = Bps(700);

struct Case {
    levels: [(Price, Qty); LEVELS],
    want: Qty,
}

pub fn run(size: Size, report: &mut Report) {
    let mut chance = Chance::seeded(11);
    let cases: Vec<Case> = (0..1_000).map(|_| case(&mut chance)).collect();
    for case in cases.iter().take(size.pick(100, 1_000)) {
        let (ours, theirs) = (integers(case, &mut Vec::new()), decimals(case));
        assert_eq!(ours, theirs, "the two arithmetics agree to the last unit");
        report.computed(ours.0.0.to_le_bytes());
        report.computed(ours.1.0.to_le_bytes());
    }
    let times = size.pick(2, 400);
    let mut taken = Vec::with_capacity(LEVELS);
    let (mut ratios, mut theirs_rates, mut best) = (Vec::new(), Vec::new(), f64::MAX);
    for _ in 0..ROUNDS {
        let count = (times * cases.len()) as f64;
        let (ours, ()) = timed(|| {
            for _ in 0..times {
                for case in &cases {
                    black_box(integers(black_box(case), &mut taken));
                }
            }
        });
        let fewer = (times / 10).max(1);
        let (theirs, ()) = timed(|| {
            for _ in 0..fewer {
                for case in &cases {
                    black_box(decimals(black_box(case)));
                }
            }
        });
        best = best.min(ours * 1e9 / count);
        ratios.push((theirs / fewer as f64) / (ours / times as f64));
        theirs_rates.push((fewer * cases.len()) as f64 / theirs);
    }
    report.figure("ten levels with fees, least of five", best, "ns");
    report.ratio_above(&[(&DECIMAL_FLOOR, &theirs_rates)], "rust_decimal beside it", ratios);
    report.rate_note(ONE_BY_ONE);
    report.not_included("reading the book, depletion, the ledger");
}

fn case(chance: &mut Chance) -> Case {
    let first = 100 + chance.below(4_000) as u16;
    let mut levels = [(Price(0), Qty::ZERO); LEVELS];
    for (index, level) in levels.iter_mut().enumerate() {
        *level = (Price(first + 37 * index as u16), Qty(100 * (1 + chance.below(5_000_000))));
    }
    let all: u64 = levels.iter().map(|(_, size)| size.0).sum();
    // The tenth level is always reached.
    let last = levels[LEVELS - 1].1.0;
    Case { levels, want: Qty(all - last + 100 * (1 + chance.below(last / 100))) }
}

fn integers(case: &Case, taken: &mut Vec<engine::order::Taken>) -> (Cash, Cash) {
    let walked = walk(case.levels.iter().copied(), BookSide::Ask, Want::Shares(case.want), None, RATE, taken);
    (walked.notional, walked.fee)
}

/// engine/docs/execution.md §4 and §5, literally.
fn decimals(case: &Case) -> (Cash, Cash) {
    let rate = Decimal::new(i64::from(RATE.0), 4);
    let mut left = Decimal::new(case.want.0 as i64, 6);
    let (mut notional, mut fee) = (Decimal::ZERO, Decimal::ZERO);
    for (price, size) in case.levels {
        let (price, size) = (Decimal::new(i64::from(price.0), 4), Decimal::new(size.0 as i64, 6));
        let shares = size.min(left);
        notional += price * shares;
        let charge = shares * rate * price * (Decimal::ONE - price);
        fee += charge.round_dp_with_strategy(5, RoundingStrategy::MidpointAwayFromZero);
        left -= shares;
        if left.is_zero() {
            break;
        }
    }
    let cash = |amount: Decimal| {
        let units = amount.round_dp_with_strategy(6, RoundingStrategy::MidpointAwayFromZero) * Decimal::from(1_000_000);
        Cash(i64::try_from(units).expect("a million shares below one dollar each"))
    };
    (cash(notional), cash(fee))
}
