//! What a seed draws in a back-test: the phase of the ticks, delays, and the part of each level that is really there.
//!
//! A draw depends on the seed and on what it is for, not on the draws before it, and uses basic operations only: every
//! machine draws the same.

use crate::amount::Qty;
use crate::time::{MILLISECOND, Timestamp};

/// The random numbers of one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance {
    seed: u64,
}

/// The delay between a decision and the book that its order meets. Milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    Constant(u32),
    /// Both ends included.
    Uniform(u32, u32),
    /// 0 < `p50` < `p99` ≤ `max`; longer draws are cut to `max`.
    LogNormal {
        p50: u32,
        p99: u32,
        max: u32,
    },
}

/// The part of a level that may be missing, in 10⁻⁴: at most [`Haircut::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Haircut(pub u16);

/// The uses of draws.
#[derive(Clone, Copy)]
enum Use {
    Phase = 1,
    Latency = 2,
    Level = 3,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency::Constant(0)
    }
}

impl Haircut {
    pub const MAX: Haircut = Haircut(9_000);

    pub fn is_zero(self) -> bool {
        self == Haircut(0)
    }
}

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance { seed }
    }

    /// The offset of the ticks, in whole milliseconds below `step` µs. That of seed 0 is 0.
    pub fn phase(self, step: u64) -> u64 {
        let millis = (step / MILLISECOND).max(1);
        if self.seed == 0 { 0 } else { self.draw(Use::Phase, [0; 3]) % millis * MILLISECOND }
    }

    /// The delay of a decision at `at` in a market, in µs.
    pub fn latency(self, latency: Latency, market: usize, at: Timestamp) -> u64 {
        let drawn = || self.draw(Use::Latency, [market as u64, at.0, 0]);
        match latency {
            Latency::Constant(millis) => u64::from(millis) * MILLISECOND,
            Latency::Uniform(from, to) => {
                let span = u64::from(to - from) * MILLISECOND + 1;
                u64::from(from) * MILLISECOND + scaled(drawn(), span)
            }
            Latency::LogNormal { p50, p99, max } => {
                // 53 bits in the middle of their steps: never 0 and never 1.
                let uniform = ((drawn() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
                let spread = ln(f64::from(p99) / f64::from(p50)) / Z_99;
                let micros = f64::from(p50) * MILLISECOND as f64 * exp(spread * normal_quantile(uniform));
                (micros.min(f64::from(max) * MILLISECOND as f64)) as u64
            }
        }
    }

    /// The part of a level that an order finds. `place` names the level: a level and its mirror in the other token's
    /// book have one name, so that both keep one size.
    pub fn cut(self, haircut: Haircut, market: usize, place: u64, size: Qty) -> Qty {
        if haircut.is_zero() {
            return size;
        }
        let share = self.draw(Use::Level, [market as u64, place, size.0]) >> 32;
        let cut = u128::from(size.0) * u128::from(haircut.0) * u128::from(share) / (10_000 << 32);
        Qty(size.0 - cut as u64)
    }

    /// A number of 64 bits.
    fn draw(self, of: Use, what: [u64; 3]) -> u64 {
        what.into_iter().fold(mixed(self.seed ^ (of as u64) << 56), |state, word| mixed(state ^ word))
    }
}

/// A number below `span` from one of 64 bits.
fn scaled(drawn: u64, span: u64) -> u64 {
    ((u128::from(drawn) * u128::from(span)) >> 64) as u64
}

/// The output function of SplitMix64.
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

/// The normal quantile of 0.99.
const Z_99: f64 = 2.326_347_874_040_841;

/// The normal quantile of `p` in (0, 1), by Acklam's approximation: relative error below 1.2·10⁻⁹.
fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416, 1.0];
    const LOW: f64 = 0.02425;
    if p < LOW {
        let q = (-2.0 * ln(p)).sqrt();
        polynomial(&C, q) / polynomial(&D, q)
    } else if p > 1.0 - LOW {
        -normal_quantile(1.0 - p)
    } else {
        let q = p - 0.5;
        q * polynomial(&A, q * q) / polynomial(&B, q * q)
    }
}

/// A polynomial by its coefficients, the highest power first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// The natural logarithm of a positive normal number. That of the system differs between machines.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1_023;
    let mantissa = f64::from_bits(bits & !(0x7ff << 52) | 1_023 << 52);
    // 2·artanh((m − 1) ÷ (m + 1)), with m in [1, 2).
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let series = (0..20).rev().fold(0.0, |sum, n| sum * square + 1.0 / f64::from(2 * n + 1));
    2.0 * ratio * series + f64::from(exponent) * std::f64::consts::LN_2
}

/// The exponential function of a number of small magnitude.
fn exp(x: f64) -> f64 {
    // Halved until the series converges fast, then squared as often.
    let halvings = 10;
    let small = x / f64::from(1 << halvings);
    let series = (1..=12).rev().fold(1.0, |sum, n| 1.0 + sum * small / f64::from(n));
    (0..halvings).fold(series, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MINUTE;

    #[test]
    fn functions_agree_with_those_of_the_system() {
        let mut count = 0;
        for step in 1..2_000 {
            let x = f64::from(step) / 100.0;
            assert!((ln(x) - x.ln()).abs() < 1e-12, "ln {x}");
            for x in [x, -x] {
                assert!((exp(x) / x.exp() - 1.0).abs() < 1e-11, "exp {x}");
            }
            count += 3;
        }
        for (p, z) in [(0.5, 0.0), (0.99, Z_99), (0.01, -Z_99), (0.001, -3.090_232_306_167_813), (0.841_344_746, 1.0)] {
            assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}");
            count += 1;
        }
        println!("functions: {count} cases");
    }

    #[test]
    fn latencies_have_their_distributions() {
        let (chance, count) = (Chance::new(7), 20_000_u64);
        let drawn = |latency| {
            let mut drawn: Vec<u64> =
                (0..count).map(|at| chance.latency(latency, 1, Timestamp(at * MINUTE)) / MILLISECOND).collect();
            drawn.sort_unstable();
            drawn
        };
        let quantile = |drawn: &[u64], part: f64| drawn[(part * count as f64) as usize];
        assert_eq!(drawn(Latency::Constant(60_000)), vec![60_000; count as usize]);
        let uniform = drawn(Latency::Uniform(100, 200));
        assert!(uniform[0] >= 100 && uniform[uniform.len() - 1] <= 200);
        assert!((145..155).contains(&quantile(&uniform, 0.5)), "{}", quantile(&uniform, 0.5));
        assert_eq!(drawn(Latency::Uniform(5, 5))[0], 5);
        let normal = drawn(Latency::LogNormal { p50: 60, p99: 250, max: 300 });
        assert!((57..63).contains(&quantile(&normal, 0.5)), "{}", quantile(&normal, 0.5));
        assert!((230..270).contains(&quantile(&normal, 0.99)), "{}", quantile(&normal, 0.99));
        assert_eq!(normal[normal.len() - 1], 300);
        println!("latencies: 4 distributions of {count}");
    }

    #[test]
    fn draws_depend_on_their_seed_and_their_purpose_alone() {
        let at = Timestamp(5 * MINUTE);
        let draws = |chance: Chance| {
            let latency = Latency::Uniform(0, 10_000);
            let cut = chance.cut(Haircut(5_000), 0, 3, Qty(1_000_000_000));
            (chance.phase(MINUTE), chance.latency(latency, 0, at), chance.latency(latency, 1, at), cut.0)
        };
        assert_eq!(draws(Chance::new(3)), draws(Chance::new(3)));
        let (one, two) = (draws(Chance::new(3)), draws(Chance::new(4)));
        assert!(one.0 != two.0 && one.1 != two.1 && one.3 != two.3 && one.1 != one.2);
        assert_eq!(Chance::new(0).phase(MINUTE), 0);
        assert!((1..200).all(|seed| Chance::new(seed).phase(MINUTE) < MINUTE));
        // Written down, so that every machine and every build draws the same.
        assert_eq!(mixed(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn a_haircut_leaves_at_least_its_complement() {
        let (size, mut total) = (Qty(1_000_000_000), 0);
        let count = 1_000;
        for seed in 0..count {
            let left = Chance::new(seed).cut(Haircut(4_000), 2, 77, size);
            assert!(left >= Qty(600_000_000) && left <= size, "{seed}: {left:?}");
            total += left.0 / count;
        }
        assert!((790_000_000..810_000_000).contains(&total), "{total}");
        let most = Qty(u64::MAX >> 15);
        assert_eq!(Chance::new(1).cut(Haircut(0), 0, 0, most), most);
        assert!(Chance::new(1).cut(Haircut::MAX, 0, 0, most).0 >= most.0 / 10);
        println!("haircuts: {count} seeds");
    }
}
