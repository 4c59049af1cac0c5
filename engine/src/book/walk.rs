//! What an order takes from one side of a book, in integers (engine/docs/execution.md §4, §5).
//!
//! A walk gives quantity, price and fee; the order decides whether they suffice.

use crate::amount::{Cash, Price, Qty, average_half_up, exact_notional, notional_half_up};
use crate::book::{BookSide, EffectiveLevel};
use crate::describe::record;
use crate::fee::Charge;

/// The size that one level offers to one user, after the user's depletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    pub price: Price,
    /// From the token's own book, taken first.
    pub own: Qty,
    /// From the complement's book.
    pub mirrored: Qty,
}

/// The size of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Shares, on the grid of 4 decimals; the part off the grid is not taken.
    Shares(Qty),
    /// USD to spend on shares, fees not included; not negative.
    Budget(Cash),
}

record! {
    (Copy)
    /// What a fill took from one level of one book.
    pub struct Taken {
        /// Effective price of the traded instrument.
        pub price: Price,
        pub qty: Qty,
        pub fee: Cash,
        /// The level is in the complement's book, at the complement of `price`.
        pub mirrored: bool,
    }
}

/// The totals of a walk; its levels are in the caller's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    pub filled: Qty,
    /// Σ price × size in exact units of 10⁻¹⁰ USD.
    pub exact: u128,
    /// `exact`, half up to 10⁻⁶ USD.
    pub notional: Cash,
    /// Σ over the levels of each level's rounded fee.
    pub fee: Cash,
    /// Levels touched.
    pub levels: u16,
    /// Prices of the first and of the last level touched.
    pub best: Option<Price>,
    pub worst: Option<Price>,
    /// Whether the whole size was available: every share, or the budget to within one 10⁻⁴ share.
    pub complete: bool,
}

impl From<(Price, Qty)> for Offer {
    fn from((price, own): (Price, Qty)) -> Offer {
        Offer { price, own, mirrored: Qty::ZERO }
    }
}

impl From<&EffectiveLevel> for Offer {
    fn from(level: &EffectiveLevel) -> Offer {
        Offer { price: level.price, own: level.own.size, mirrored: level.mirrored.size }
    }
}

/// Takes the wanted size from `offers`, best first, while a level is within `bound` (touching counts; `None` = no
/// bound). `side` is the side walked: asks for a BUY. Sizes are cut down to 4 decimals; empty levels are skipped.
/// `taken` is cleared and receives one row per level and book; a level from both books has two rows, whose fees add up
/// to the level's.
///
/// # Panics
/// When sizes or amounts exceed those of a ladder (2⁴⁹ units a level) or a budget is negative.
#[inline]
pub fn walk<O: Into<Offer>>(
    offers: impl IntoIterator<Item = O>,
    side: BookSide,
    want: Want,
    bound: Option<Price>,
    rate: impl Charge,
    taken: &mut Vec<Taken>,
) -> Walk {
    taken.clear();
    let bound = bound.map_or(u16::MAX, |bound| side.rank(bound));
    let within = offers.into_iter().map(Into::into).take_while(|offer| side.rank(offer.price) <= bound);
    match want {
        Want::Shares(qty) => walk_shares(within, qty, rate, taken),
        Want::Budget(cash) => walk_budget(within, cash, rate, taken),
    }
}

#[inline]
fn walk_shares(offers: impl Iterator<Item = Offer>, want: Qty, rate: impl Charge, taken: &mut Vec<Taken>) -> Walk {
    let wanted = want.order_steps();
    let (mut left, mut sums) = (wanted, Sums::default());
    for offer in offers {
        let steps = offer.order_steps().min(left);
        if steps > 0 {
            sums.add(&offer, steps, rate, taken);
            left -= steps;
        } else if left == 0 {
            break;
        }
    }
    let filled = Qty((wanted - left) * Qty::ORDER_STEP.0);
    sums.walk(filled, filled == want, taken)
}

fn walk_budget(offers: impl Iterator<Item = Offer>, budget: Cash, rate: impl Charge, taken: &mut Vec<Taken>) -> Walk {
    let mut left = u128::try_from(budget.0).expect("a budget is not negative") * 10_000;
    let (mut filled, mut sums) = (Qty::ZERO, Sums::default());
    // The budget is spent when it does not buy one step of shares at the current price.
    let mut spent = false;
    for offer in offers {
        let step = exact_notional(offer.price, Qty::ORDER_STEP);
        if left < step {
            spent = true;
            break;
        }
        let mut qty = offer.size();
        if exact_notional(offer.price, qty) > left {
            // Less than `qty`, so it fits.
            qty = Qty((left / u128::from(offer.price.0)) as u64).floored_to_order_step();
        }
        if !qty.is_zero() {
            sums.add(&offer, qty.order_steps(), rate, taken);
            left -= exact_notional(offer.price, qty);
            filled += qty;
            spent = left < step;
        }
    }
    sums.walk(filled, spent, taken)
}

impl Offer {
    /// Both parts together, cut down to 4 decimals.
    #[inline]
    pub fn size(&self) -> Qty {
        (self.own + self.mirrored).floored_to_order_step()
    }

    /// The same in steps of the grid.
    #[inline]
    fn order_steps(&self) -> u64 {
        (self.own + self.mirrored).order_steps()
    }
}

/// The sums over the levels.
#[derive(Default)]
struct Sums {
    /// Σ price × size with sizes in steps of the order grid: 10⁻⁸ USD.
    gross: u128,
    fee: Cash,
    levels: u16,
}

impl Sums {
    #[inline]
    fn add(&mut self, offer: &Offer, steps: u64, rate: impl Charge, taken: &mut Vec<Taken>) {
        let (price, qty) = (offer.price, Qty(steps * Qty::ORDER_STEP.0));
        let gross = (steps as i64).checked_mul(price.0.into()).expect("a level has at most 2^49 units");
        let fee = rate.on_grid(gross, price);
        if offer.mirrored.is_zero() || qty <= offer.own {
            taken.push(Taken { price, qty, fee, mirrored: false });
        } else {
            push_parts(offer, qty, fee, rate, taken);
        }
        self.gross += u128::from(gross as u64);
        self.fee += fee;
        self.levels += 1;
    }

    #[inline]
    fn walk(self, filled: Qty, complete: bool, taken: &[Taken]) -> Walk {
        let exact = self.gross * u128::from(Qty::ORDER_STEP.0);
        let notional = match u64::try_from(exact) {
            // 64-bit division by a constant is a multiplication, 128-bit division is a loop.
            Ok(exact) if exact <= u64::MAX - 5_000 => Cash(((exact + 5_000) / 10_000) as i64),
            _ => notional_half_up(exact),
        };
        Walk {
            filled,
            exact,
            notional,
            fee: self.fee,
            levels: self.levels,
            best: taken.first().map(|row| row.price),
            worst: taken.last().map(|row| row.price),
            complete: complete && !filled.is_zero(),
        }
    }
}

impl Walk {
    /// Volume-weighted price: notional ÷ filled, half up to 10⁻⁶ USD a share; `None` when nothing was filled.
    pub fn vwap(&self) -> Option<Cash> {
        average_half_up(self.notional, self.filled)
    }

    /// `impact_bps`: deviation of the average from the best level walked (engine/docs/execution.md §8).
    pub fn impact_bps(&self) -> Option<u32> {
        deviation_bps(self.vwap()?, Cash(i64::from(self.best?.0) * 100))
    }
}

/// The rows of a level that is not filled from the own book alone.
#[inline(never)]
fn push_parts(offer: &Offer, qty: Qty, fee: Cash, rate: impl Charge, taken: &mut Vec<Taken>) {
    let (price, own) = (offer.price, offer.own);
    let own_fee = rate.of(own, price);
    if !own.is_zero() {
        taken.push(Taken { price, qty: own, fee: own_fee, mirrored: false });
    }
    taken.push(Taken { price, qty: qty - own, fee: fee - own_fee, mirrored: true });
}

/// |price − reference| ÷ reference in 10⁻⁴, half up; `None` for a reference of 0. `slippage_bps` uses the displayed
/// price, `impact_bps` the best level (engine/docs/execution.md §8).
pub fn deviation_bps(price: Cash, reference: Cash) -> Option<u32> {
    ratio_bps(price.0.abs_diff(reference.0), u64::try_from(reference.0).ok()?)
}

/// `spread_bps`: (ask − bid) ÷ midpoint in 10⁻⁴, half up; `None` when a side is empty (engine/docs/execution.md §8).
pub fn spread_bps(bid: Option<Price>, ask: Option<Price>) -> Option<u32> {
    let (bid, ask) = (u64::from(bid?.0), u64::from(ask?.0));
    // Twice the spread over twice the midpoint.
    ratio_bps(2 * ask.saturating_sub(bid), bid + ask)
}

fn ratio_bps(part: u64, whole: u64) -> Option<u32> {
    let doubled = u128::from(part) * 20_000 + u128::from(whole);
    doubled.checked_div(2 * u128::from(whole)).map(|bps| u32::try_from(bps).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Bps;
    use crate::book::chance::Chance;
    use crate::fee::taker_fee;
    use rust_decimal::{Decimal, RoundingStrategy::MidpointAwayFromZero, RoundingStrategy::ToZero};

    const SHARE: u64 = 1_000_000;

    /// (price, own shares, mirrored shares) of the asks in these tests, sizes in 10⁻⁶.
    type Level = (u16, u64, u64);

    fn offers(levels: &[Level]) -> Vec<Offer> {
        let offer =
            |(price, own, mirrored): &Level| Offer { price: Price(*price), own: Qty(*own), mirrored: Qty(*mirrored) };
        levels.iter().map(offer).collect()
    }

    #[test]
    fn levels_are_taken_best_first_inside_the_bound() {
        let asks = [(4_100, 10 * SHARE, 0), (4_200, 5 * SHARE, 5 * SHARE), (4_300, 50, 49), (4_400, 0, 7 * SHARE)];
        let shares = |shares: u64| Want::Shares(Qty(shares * SHARE));
        let cash = |micros: i64| Want::Budget(Cash(micros));
        // want, bound → filled in 10⁻⁴ shares, notional in 10⁻⁶ USD, levels, rows, complete
        for (want, bound, filled, notional, levels, rows, complete) in [
            (shares(4), None, 40_000, 1_640_000, 1, 1, true),
            (shares(10), Some(4_100), 100_000, 4_100_000, 1, 1, true),
            (shares(11), Some(4_100), 100_000, 4_100_000, 1, 1, false),
            (shares(11), Some(4_199), 100_000, 4_100_000, 1, 1, false),
            (shares(11), Some(4_200), 110_000, 4_520_000, 2, 2, true),
            (shares(15), None, 150_000, 6_200_000, 2, 2, true),
            (shares(20), None, 200_000, 8_300_000, 2, 3, true),
            (Want::Shares(Qty(150)), None, 1, 41, 1, 1, false),
            (Want::Shares(Qty(99)), None, 0, 0, 0, 0, false),
            (shares(27), None, 270_000, 11_380_000, 3, 4, true),
            (shares(28), None, 270_000, 11_380_000, 3, 4, false),
            (shares(1), Some(4_099), 0, 0, 0, 0, false),
            (shares(0), None, 0, 0, 0, 0, false),
            // Budgets: whole levels, then the last one rounded down to 4 decimals.
            (cash(4_100_000), None, 100_000, 4_100_000, 1, 1, true),
            (cash(4_500_000), None, 109_523, 4_499_966, 2, 2, true),
            (cash(8_300_000), None, 200_000, 8_300_000, 2, 3, true),
            (cash(8_300_043), None, 200_000, 8_300_000, 2, 3, true),
            (cash(8_300_044), None, 200_001, 8_300_044, 3, 4, true),
            (cash(11_380_000), None, 270_000, 11_380_000, 3, 4, true),
            (cash(11_380_043), None, 270_000, 11_380_000, 3, 4, true),
            (cash(11_380_044), None, 270_000, 11_380_000, 3, 4, false),
            (cash(9_000_000), Some(4_200), 200_000, 8_300_000, 2, 3, false),
            (cash(40), None, 0, 0, 0, 0, false),
            (cash(0), None, 0, 0, 0, 0, false),
        ] {
            let mut taken = Vec::new();
            let walk = walk(offers(&asks), BookSide::Ask, want, bound.map(Price), Bps(400), &mut taken);
            let got = (walk.filled.0 / 100, walk.notional.0, walk.levels, taken.len(), walk.complete);
            assert_eq!(got, (filled, notional, levels, rows, complete), "{want:?} within {bound:?}");
            assert_eq!(walk.filled, taken.iter().map(|row| row.qty).sum());
            assert_eq!(walk.fee, taken.iter().map(|row| row.fee).sum());
            assert_eq!(
                (walk.best, walk.worst),
                (taken.first().map(|row| row.price), taken.last().map(|row| row.price))
            );
        }
    }

    #[test]
    fn bids_are_taken_downward_and_touching_counts() {
        let bids = [4_000, 3_900, 3_800].map(|price| (Price(price), Qty(SHARE)));
        for (bound, filled) in [(4_001, 0), (4_000, 1), (3_900, 2), (3_801, 2), (1, 3)] {
            let want = Want::Shares(Qty(9 * SHARE));
            let walk = walk(bids, BookSide::Bid, want, Some(Price(bound)), Bps(0), &mut Vec::new());
            assert_eq!(walk.filled, Qty(filled * SHARE), "down to {bound}");
        }
    }

    #[test]
    fn a_level_from_both_books_is_one_level_with_one_rounded_fee() {
        let mut taken = Vec::new();
        let level = offers(&[(5_000, 1_000_050, 3_000_050)]);
        let walk = walk(level, BookSide::Ask, Want::Shares(Qty(4_000_100)), None, Bps(400), &mut taken);
        assert_eq!((walk.levels, walk.complete), (1, true), "the parts are cut to 4 decimals together");
        let rows: Vec<_> = taken.iter().map(|row| (row.qty.0, row.mirrored)).collect();
        assert_eq!(rows, [(1_000_050, false), (3_000_050, true)]);
        assert_eq!(walk.fee, taker_fee(Qty(4_000_100), Price(5_000), Bps(400)));
    }

    #[test]
    fn notional_is_rounded_alike_below_and_above_64_bits() {
        // In 10⁻⁸ USD: around half of the last unit, and around the largest exact value of 64 bits.
        const HELD: u128 = u64::MAX as u128 / 100;
        for gross in [0, 49, 50, 149, 150].into_iter().chain(HELD - 60..HELD + 60) {
            let walk = Sums { gross, ..Sums::default() }.walk(Qty(100), true, &[]);
            assert_eq!((walk.exact, walk.notional), (gross * 100, Cash(((gross + 50) / 100) as i64)), "{gross}");
        }
    }

    #[test]
    fn quality_figures() {
        let walk =
            Walk { filled: Qty(3 * SHARE), notional: Cash(1_000_000), best: Some(Price(3_300)), ..Walk::default() };
        assert_eq!((walk.vwap(), walk.impact_bps()), (Some(Cash(333_333)), Some(101)));
        assert_eq!((Walk::default().vwap(), Walk::default().impact_bps()), (None, None));
        for (price, reference, bps) in
            [(410_000, 410_000, Some(0)), (420_000, 400_000, Some(500)), (380_020, 400_000, Some(500)), (1, 0, None)]
        {
            assert_eq!(deviation_bps(Cash(price), Cash(reference)), bps, "{price} against {reference}");
        }
        for (bid, ask, bps) in [
            (Some(4_100), Some(4_200), Some(241)),
            (Some(1), Some(9_999), Some(19_996)),
            (None, Some(1), None),
            (Some(1), None, None),
        ] {
            assert_eq!(spread_bps(bid.map(Price), ask.map(Price)), bps, "{bid:?} {ask:?}");
        }
    }

    /// The same in decimal arithmetic, level by level, as in engine/docs/execution.md §4 and §5.
    fn by_decimals(levels: &[Level], want: Want, bound: u16, rate: Bps) -> (Decimal, Decimal, Decimal, usize, bool) {
        let zero = Decimal::ZERO;
        let (mut filled, mut notional, mut fee, mut count) = (zero, zero, zero, 0);
        let (mut wanted, mut budget) = match want {
            Want::Shares(qty) => (Decimal::new(qty.0 as i64, 6), None),
            Want::Budget(cash) => (zero, Some(Decimal::new(cash.0, 6))),
        };
        let mut complete = false;
        for (price, own, mirrored) in levels.iter().filter(|level| level.0 <= bound) {
            let price = Decimal::new(i64::from(*price), 4);
            let size = Decimal::new((own + mirrored) as i64, 6).round_dp_with_strategy(4, ToZero);
            let shares = match budget {
                None => size.min(wanted),
                Some(left) => size.min((left / price).round_dp_with_strategy(4, ToZero)),
            };
            if shares > zero {
                (filled, count) = (filled + shares, count + 1);
                notional += shares * price;
                let rate = Decimal::new(i64::from(rate.0), 4);
                fee += (shares * rate * price * (Decimal::ONE - price)).round_dp_with_strategy(5, MidpointAwayFromZero);
            }
            match &mut budget {
                None => wanted -= shares,
                Some(left) => {
                    *left -= shares * price;
                    complete |= *left < price * Decimal::new(1, 4);
                }
            }
            complete |= budget.is_none() && wanted == zero;
            if complete {
                break;
            }
        }
        let notional = notional.round_dp_with_strategy(6, MidpointAwayFromZero);
        (filled, notional, fee, count, complete && filled > zero)
    }

    #[test]
    fn a_million_walks_agree_with_decimals_to_the_last_unit() {
        const CASES: usize = 1_000_000;
        let (seed, mut chance) = (11, Chance::new(11));
        let (mut taken, mut levels, mut full, mut touched) = (Vec::new(), Vec::<Level>::new(), 0, 0);
        for case in 0..CASES {
            let step = [100, 10, 1][chance.below(3) as usize];
            let mut price = 1 + chance.below(9_000) as u16;
            levels.clear();
            for _ in 0..1 + chance.below(6) {
                let size = |chance: &mut Chance| match chance.below(8) {
                    0 => chance.below(300),
                    1 => chance.below(1_000_000_000_000),
                    2 => chance.below(100) * SHARE,
                    _ => chance.below(100_000_000),
                };
                let mirrored = if chance.one_in(4) { size(&mut chance) } else { 0 };
                levels.push((price, size(&mut chance), mirrored));
                price += step * (1 + chance.below(3) as u16);
                if price > 9_999 {
                    break;
                }
            }
            let total: u64 = levels.iter().map(|level| level.1 + level.2).sum();
            let wanted = 1 + chance.below(total + total / 4 + 2);
            let want = if chance.one_in(2) {
                Want::Shares(Qty(wanted).floored_to_order_step())
            } else {
                Want::Budget(Cash((wanted / 10_000 * u64::from(levels[0].0)) as i64 + chance.below(10_000) as i64))
            };
            let bound = if chance.one_in(3) { levels[chance.below(levels.len() as u64) as usize].0 } else { 9_999 };
            let rate = Bps([0, 300, 400, 500, 700][chance.below(5) as usize]);
            let walk = walk(offers(&levels), BookSide::Ask, want, Some(Price(bound)), rate, &mut taken);
            let got = (
                Decimal::from_i128_with_scale(i128::from(walk.filled.0), 6),
                Decimal::new(walk.notional.0, 6),
                Decimal::new(walk.fee.0, 6),
                usize::from(walk.levels),
                walk.complete,
            );
            let exact = by_decimals(&levels, want, bound, rate);
            assert_eq!(got, exact, "seed {seed}, case {case}: {levels:?} {want:?} within {bound} at {rate:?}");
            full += usize::from(walk.complete);
            touched += usize::from(walk.levels);
        }
        println!("seed {seed}: {CASES} walks over {touched} levels, {full} complete");
        assert!(full > CASES / 10 && full < CASES / 10 * 9);
    }
}
