//! Fees against an exact rational: whole numbers as decimal digits, where a division by a power of ten drops digits.

use super::*;
use crate::book::chance::Chance;

/// Decimal digits, the lowest first.
#[derive(Clone, Debug)]
struct Digits(Vec<u8>);

impl Digits {
    fn of(number: u64) -> Digits {
        Digits(number.to_string().bytes().rev().map(|digit| digit - b'0').collect())
    }

    fn times(&self, other: &Digits) -> Digits {
        let mut product = vec![0_u32; self.0.len() + other.0.len() + 1];
        for (low, one) in self.0.iter().enumerate() {
            for (high, two) in other.0.iter().enumerate() {
                product[low + high] += u32::from(*one) * u32::from(*two);
            }
        }
        for at in 0..product.len() - 1 {
            product[at + 1] += product[at] / 10;
            product[at] %= 10;
        }
        Digits(product.into_iter().map(|digit| u8::try_from(digit).expect("carried")).collect())
    }

    /// Without its `count` lowest digits, rounded.
    fn without(&self, count: usize, rounding: FeeRounding) -> u64 {
        let (dropped, kept) = self.0.split_at(count.min(self.0.len()));
        let kept: String = kept.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
        let kept: u64 = if kept.is_empty() { 0 } else { kept.parse().expect("a fee fits") };
        let is_half = count <= self.0.len() && dropped.last().is_some_and(|highest| *highest >= 5);
        let rises = match rounding {
            FeeRounding::HalfUp => is_half,
            FeeRounding::Down => false,
            FeeRounding::UpToFour => dropped.iter().any(|digit| *digit != 0),
        };
        kept + u64::from(rises)
    }
}

/// An exact amount of USD: digits, and how many of them are decimals.
struct Amount(Digits, usize);

impl Amount {
    /// The factors × (p × (1 − p))^exponent; each factor has six decimals. `places`: decimals of `price`.
    fn of(factors: &[u64], price: u64, places: u32, exponent: u16) -> Amount {
        let square = Digits::of(price * (10_u64.pow(places) - price));
        let mut exact = factors.iter().fold(Digits::of(1), |product, factor| product.times(&Digits::of(*factor)));
        for _ in 0..exponent {
            exact = exact.times(&square);
        }
        Amount(exact, 6 * factors.len() + 2 * places as usize * usize::from(exponent))
    }

    /// In 10⁻⁶ USD, rounded to a step, which is in 10⁻⁶ USD, too.
    fn rounded(&self, rounding: FeeRounding, step: u64) -> i64 {
        let kept = 6 - step.ilog10() as usize;
        (self.0.without(self.1 - kept, rounding) * step) as i64
    }
}

const ROUNDINGS: [(FeeRounding, u64); 3] =
    [(FeeRounding::HalfUp, 10), (FeeRounding::Down, 10), (FeeRounding::UpToFour, 100)];

#[test]
fn fees_are_those_of_an_exact_rational() {
    const ROUNDS: u64 = 10_000;
    let (mut chance, mut cases, mut long) = (Chance::new(29), 0, 0);
    for round in 0..ROUNDS {
        let sizes = [1_000, 100_000_000, 10_000_000_000, 1 << 49];
        let qty = Qty(chance.below(sizes[(round % 4) as usize]));
        let rates = [20, 1_000, 100_000, 1_000_001];
        let rate = chance.below(rates[(round / 4 % 4) as usize]);
        let (price, fine) = (Price(chance.below(10_001) as u16), chance.below(1_000_001));
        for exponent in 0..=4 {
            let exact = Amount::of(&[qty.0, rate], price.0.into(), 4, exponent);
            let exact_fine = Amount::of(&[qty.0, rate], fine, 6, exponent);
            for (rounding, step) in ROUNDINGS {
                let tariff = Tariff { rate, exponent, rounding };
                let (of_price, of_fine) = (exact.rounded(rounding, step), exact_fine.rounded(rounding, step));
                assert_eq!(tariff.fee(qty, price), Cash(of_price), "{qty:?} at {price:?} by {tariff:?}");
                assert_eq!(tariff.fee_at(qty, Cash(fine as i64)), Cash(of_fine), "{qty:?} at {fine} by {tariff:?}");
                // In limbs, also where 128 bits suffice.
                let square = u64::from(price.0) * u64::from(price.complement().0);
                let product = Product { factors: [qty.0, rate, 1], square, unit: SQUARE_E8, exponent };
                let in_limbs = product.long(ONE_E6 * step, rounding);
                assert_eq!(in_limbs.map(|steps| (steps * step) as i64), Some(of_price), "{product:?}");
                long += u64::from(product.short(ONE_E6 * step, rounding).is_none());
                if qty.0.is_multiple_of(Qty::ORDER_STEP.0) && price.0 > 0 {
                    let gross = qty.order_steps() as i64 * i64::from(price.0);
                    assert_eq!(tariff.on_grid(gross, price), Cash(of_price), "on the grid");
                }
                cases += 3;
            }
        }
    }
    assert!(long > ROUNDS, "only {long} products need limbs");
    println!("fees against digits: {cases} cases, {long} of them above 128 bits");
}

#[test]
fn rebates_are_those_of_an_exact_rational() {
    const ROUNDS: u64 = 10_000;
    let (mut chance, mut cases) = (Chance::new(31), 0);
    for _ in 0..ROUNDS {
        let (qty, price) = (Qty(chance.below(1 << 40)), Price(chance.below(10_001) as u16));
        let (rate, rebate_rate) = (chance.below(1_000_001) as u32, chance.below(1_000_001) as u32);
        for exponent in 0..=4 {
            let schedule = FeeSchedule { rate, exponent, taker_only: true, rebate_rate };
            let factors = [qty.0, rate.into(), rebate_rate.into()];
            let exact = Amount::of(&factors, price.0.into(), 4, exponent).rounded(FeeRounding::Down, 1);
            assert_eq!(rebate(&schedule, qty, price), Cash(exact), "{qty:?} at {price:?} by {schedule:?}");
            cases += 1;
        }
    }
    println!("rebates against digits: {cases} cases");
}

#[test]
fn fees_of_known_schedules() {
    use FeeRounding::{Down, HalfUp, UpToFour};
    let cases = [
        // shares in 10⁻⁶, price in 10⁻⁴, rate in 10⁻⁶, exponent, rounding → 10⁻⁶ USD
        ((10_000_000, 6_500, 40_000, 1, HalfUp), 91_000),
        ((100_000_000, 5_000, 70_000, 1, HalfUp), 1_750_000),
        ((100_000_000, 5_000, 250_000, 2, HalfUp), 1_562_500),
        // 0.000299…: half up, and down.
        ((1_000_000, 101, 30_000, 1, HalfUp), 300),
        ((1_000_000, 101, 30_000, 1, Down), 290),
        // 0.0175 and 0.00069… at Kalshi: whole steps of 10⁻⁴, upward.
        ((1_000_000, 5_000, 70_000, 1, UpToFour), 17_500),
        ((1_000_000, 100, 70_000, 1, UpToFour), 700),
        ((1, 5_000, 70_000, 1, UpToFour), 100),
        // Exponent 0: per share, at every price.
        ((3_000_000, 10_000, 10_000, 0, HalfUp), 30_000),
        ((3_000_000, 10_000, 10_000, 1, HalfUp), 0),
        // A rate between two basis points.
        ((1_000_000_000, 5_000, 12_345, 1, HalfUp), 3_086_250),
        ((1_000_000, 5_000, 0, 1, UpToFour), 0),
        ((0, 5_000, 70_000, 1, UpToFour), 0),
    ];
    for ((qty, price, rate, exponent, rounding), fee) in cases {
        let tariff = Tariff { rate, exponent, rounding };
        assert_eq!(tariff.fee(Qty(qty), Price(price)), Cash(fee), "{qty} at {price} by {tariff:?}");
    }
    println!("fees of known schedules: {} cases", cases.len());
}

/// The usual fee takes the fast path, and nothing else does.
#[test]
fn only_half_up_whole_basis_points_are_plain() {
    let cases = [
        (70_000, 1, FeeRounding::HalfUp, Some(Bps(700))),
        (0, 1, FeeRounding::HalfUp, Some(Bps(0))),
        (70_050, 1, FeeRounding::HalfUp, None),
        (70_000, 2, FeeRounding::HalfUp, None),
        (70_000, 0, FeeRounding::HalfUp, None),
        (70_000, 1, FeeRounding::Down, None),
        (70_000, 1, FeeRounding::UpToFour, None),
    ];
    for (rate, exponent, rounding, plain) in cases {
        assert_eq!(Tariff { rate, exponent, rounding }.plain(), plain, "{rate} {exponent} {rounding:?}");
    }
    assert_eq!(Tariff::of_category(Bps(500), FeeRounding::HalfUp).plain(), Some(Bps(500)));
    assert_eq!(Tariff { rate: 12_350, exponent: 1, rounding: FeeRounding::Down }.bps(), Bps(124), "half up");
    println!("fast paths: {} cases", cases.len() + 2);
}

#[test]
#[should_panic(expected = "a fee is bounded by its order")]
fn a_fee_beyond_all_bounds_panics() {
    Tariff { rate: u64::MAX, exponent: 0, rounding: FeeRounding::Down }.fee(Qty(u64::MAX), Price(5_000));
}
