//! Fees (engine/docs/execution.md §5): the taker's by the category of the market, and those of a market that states its
//! own schedule. All in integers, so that they are equal on every machine.

mod tariff;

use crate::amount::{Bps, Cash, Price, Qty};

pub use tariff::{Charge, FeeRounding, FeeSource, Tariff, rebate};

/// Exact units (10⁻¹⁸ USD: size 10⁻⁶ × rate 10⁻⁴ × p 10⁻⁴ × (1 − p) 10⁻⁴) in one step of the rounding, 10⁻⁵ USD.
const EXACT_PER_STEP: u64 = 10_000_000_000_000;
/// The same with the size in steps of the order grid, 10⁻⁴ shares.
const GRID_PER_STEP: u64 = EXACT_PER_STEP / Qty::ORDER_STEP.0;
/// 10⁻⁶ USD in one step of the rounding.
const CASH_PER_STEP: u64 = 10;

/// `shares × rate × p × (1 − p)` for one level, half up to 5 decimals; less is 0. A fill's fee is the sum over the
/// levels it took, because the venue charges each match separately.
///
/// # Panics
/// When `price` is above 1, or the fee above 9·10¹² USD: sizes and rates are bounded at the input.
#[inline]
pub fn taker_fee(qty: Qty, price: Price, rate: Bps) -> Cash {
    let steps = match factor(price, rate).and_then(|factor| qty.0.checked_mul(factor)) {
        Some(exact) if exact <= u64::MAX - EXACT_PER_STEP / 2 => (exact + EXACT_PER_STEP / 2) / EXACT_PER_STEP,
        // Only above some 1 000 shares at a price of 0.5 and 700 bps: 128-bit division is slow, but exact.
        _ => large(qty, price, rate),
    };
    Cash((steps * CASH_PER_STEP) as i64)
}

/// [`taker_fee`] of shares on the order grid, from values that a walk has: `gross` is price × shares in units of
/// 10⁻⁸ USD, not negative. At 700 bps it needs no 128-bit division up to some 50 000 shares at a price of 0.5.
/// Both functions give the same fee.
///
/// # Panics
/// As [`taker_fee`].
#[inline]
pub(crate) fn taker_fee_on_grid(gross: i64, price: Price, rate: Bps) -> Cash {
    // Signed: one overflow check, and room for the half step that is added.
    let rest = i64::from(price.complement().0) * i64::from(rate.0);
    match gross.checked_mul(rest) {
        Some(exact) => Cash(((exact as u64 + GRID_PER_STEP / 2) / GRID_PER_STEP * CASH_PER_STEP) as i64),
        None => large_on_grid(gross, price, rate),
    }
}

#[cold]
#[inline(never)]
fn large_on_grid(gross: i64, price: Price, rate: Bps) -> Cash {
    Cash((large(Qty(gross as u64 / u64::from(price.0) * Qty::ORDER_STEP.0), price, rate) * CASH_PER_STEP) as i64)
}

/// `rate × p × (1 − p)`; `None` when it does not fit.
#[inline]
fn factor(price: Price, rate: Bps) -> Option<u64> {
    (u64::from(price.0) * u64::from(price.complement().0)).checked_mul(u64::from(rate.0))
}

#[cold]
#[inline(never)]
fn large(qty: Qty, price: Price, rate: Bps) -> u64 {
    let square = u128::from(price.0) * u128::from(price.complement().0) * u128::from(rate.0);
    let exact = square.checked_mul(u128::from(qty.0)).expect("27 + 32 + 64 bits");
    let steps = (exact + u128::from(EXACT_PER_STEP / 2)) / u128::from(EXACT_PER_STEP);
    let bounded = steps < (i64::MAX as u128) / u128::from(CASH_PER_STEP);
    assert!(bounded, "a fee is bounded by its order: {} at {} of {}", qty.0, price.0, rate.0);
    steps as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::terms::Category;

    #[test]
    fn fees_of_the_reference() {
        use Category::{Crypto, Geopolitics, Politics, Sports, Unknown};
        for (qty, price, category, fee) in [
            (10_000_000, 6_500, Politics, 91_000),
            (13_000_000, 5_000, Crypto, 227_500),
            (5_000_000, 200, Sports, 2_940),
            (1_000_000, 101, Sports, 300),
            // Below half a step, exactly half a step, and above.
            (100, 100, Sports, 0),
            (20_000, 5_000, Geopolitics, 0),
            (799, 5_000, Unknown, 10),
            (399, 5_000, Unknown, 0),
            (400, 5_000, Unknown, 10),
            (0, 5_000, Unknown, 0),
            (1_000_000, 0, Crypto, 0),
            (1_000_000, 10_000, Crypto, 0),
            // A million shares takes the exact path.
            (1_000_000_000_000, 5_000, Crypto, 17_500_000_000),
        ] {
            let got = taker_fee(Qty(qty), Price(price), category.default_taker_rate());
            assert_eq!(got, Cash(fee), "{qty} at {price} {category:?}");
        }
    }

    /// With these a fee has as many steps as the quantity has units: 0.5 × 0.5 × 40.
    const AS_MANY: (Price, Bps) = (Price(5_000), Bps(400_000));

    #[test]
    fn the_largest_fee_is_computed() {
        let steps = i64::MAX as u64 / 10 - 1;
        assert_eq!(taker_fee(Qty(steps), AS_MANY.0, AS_MANY.1), Cash(9_223_372_036_854_775_790));
    }

    #[test]
    #[should_panic(expected = "a fee is bounded by its order")]
    fn a_larger_fee_panics() {
        taker_fee(Qty(i64::MAX as u64 / 10), AS_MANY.0, AS_MANY.1);
    }

    #[test]
    fn both_paths_agree_at_their_border() {
        for rate in [1, 300, 400, 500, 700, 10_000] {
            for price in [1, 50, 101, 4_999, 5_000, 9_999] {
                let factor = factor(Price(price), Bps(rate)).expect("small");
                let meet = u64::MAX / factor;
                for qty in (meet - 3..meet.saturating_add(3)).chain([meet / 2, meet / 3, 12_345_678]) {
                    let (qty, price, rate) = (Qty(qty.min(1 << 49)), Price(price), Bps(rate));
                    let exact = |qty| Cash((large(qty, price, rate) * 10) as i64);
                    assert_eq!(taker_fee(qty, price, rate), exact(qty));
                    // The grid path reaches the exact one at a hundred times the quantity.
                    for steps in [qty.0 / 100, qty.0, qty.0 / 3].map(|steps| steps.min((1 << 49) / 100)) {
                        let on_grid = taker_fee_on_grid((steps * u64::from(price.0)) as i64, price, rate);
                        assert_eq!(on_grid, exact(Qty(steps * 100)), "{steps} steps at {price:?}, {rate:?}");
                    }
                }
            }
        }
    }
}
