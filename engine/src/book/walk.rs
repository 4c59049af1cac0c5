//! What an order takes from one side of a book: pure integers (execution.md §4, §5).
//!
//! A walk says how much, at what price, with what fee; whether that is good enough is the order's business.

use crate::amount::{Bps, Cash, Price, Qty, average_half_up, exact_notional, notional_half_up};
use crate::book::{BookSide, EffectiveLevel};
use crate::order::Taken;
use crate::order::fee::taker_fee;

/// What one level offers to one user: what is left of it after the user's own depletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    pub price: Price,
    /// From the token's own book, taken first.
    pub own: Qty,
    /// From the complement's book.
    pub mirrored: Qty,
}

/// How much is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Shares, on the 4-decimals grid.
    Shares(Qty),
    /// USD to spend on shares, fees not included; not negative.
    Budget(Cash),
}

/// What was taken; the levels one by one are in the caller's buffer.
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
    /// Price of the first and of the last level touched.
    pub best: Option<Price>,
    pub worst: Option<Price>,
    /// All that was wanted was there: every share, or the budget to within one 10⁻⁴ share.
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

/// Takes from `offers`, best first, what is wanted, as long as a level lies within `bound` (touching counts; `None` =
/// no bound). `side` is the side walked: asks for a BUY. Sizes are cut down to 4 decimals; a level of which nothing is
/// left is passed over. `taken` is cleared and then holds one row per level and book; a level that came from both books
/// has two rows, whose fees add up to the level's.
///
/// # Panics
/// When sizes or amounts are beyond what a ladder can hold (2⁴⁹ units a level) or a budget is negative.
#[inline]
pub fn walk<O: Into<Offer>>(
    offers: impl IntoIterator<Item = O>,
    side: BookSide,
    want: Want,
    bound: Option<Price>,
    rate: Bps,
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
fn walk_shares(offers: impl Iterator<Item = Offer>, want: Qty, rate: Bps, taken: &mut Vec<Taken>) -> Walk {
    let (mut left, mut sums) = (want, Sums::default());
    for offer in offers {
        let qty = offer.size().min(left);
        if !qty.is_zero() {
            sums.add(&offer, qty, rate, taken);
            left = Qty(left.0 - qty.0);
        } else if left.is_zero() {
            break;
        }
    }
    sums.walk(Qty(want.0 - left.0), left.is_zero(), taken)
}

fn walk_budget(offers: impl Iterator<Item = Offer>, budget: Cash, rate: Bps, taken: &mut Vec<Taken>) -> Walk {
    let mut left = u128::try_from(budget.0).expect("a budget is not negative") * 10_000;
    let (mut filled, mut sums) = (Qty::ZERO, Sums::default());
    // The budget is spent when it does not buy one step of shares at the last price looked at.
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
            sums.add(&offer, qty, rate, taken);
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
}

/// What adds up over the levels.
#[derive(Default)]
struct Sums {
    exact: u128,
    fee: Cash,
    levels: u16,
}

impl Sums {
    #[inline]
    fn add(&mut self, offer: &Offer, qty: Qty, rate: Bps, taken: &mut Vec<Taken>) {
        let price = offer.price;
        let fee = taker_fee(qty, price, rate);
        if qty <= offer.own {
            taken.push(Taken { price, qty, fee, mirrored: false });
        } else {
            push_parts(offer, qty, fee, rate, taken);
        }
        self.exact += exact_notional(price, qty);
        self.fee += fee;
        self.levels += 1;
    }

    #[inline]
    fn walk(self, filled: Qty, complete: bool, taken: &[Taken]) -> Walk {
        let notional = match u64::try_from(self.exact) {
            // 64-bit division by a constant is a multiplication, 128-bit division is a loop.
            Ok(exact) if exact <= u64::MAX - 5_000 => Cash(((exact + 5_000) / 10_000) as i64),
            _ => notional_half_up(self.exact),
        };
        Walk {
            filled,
            exact: self.exact,
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

    /// `impact_bps`: how far the average lies from the best level walked (execution.md §8).
    pub fn impact_bps(&self) -> Option<u32> {
        deviation_bps(self.vwap()?, Cash(i64::from(self.best?.0) * 100))
    }
}

/// The rows of a level that is not filled from the own book alone.
#[inline(never)]
fn push_parts(offer: &Offer, qty: Qty, fee: Cash, rate: Bps, taken: &mut Vec<Taken>) {
    let (price, own) = (offer.price, offer.own);
    let own_fee = taker_fee(own, price, rate);
    if !own.is_zero() {
        taken.push(Taken { price, qty: own, fee: own_fee, mirrored: false });
    }
    taken.push(Taken { price, qty: qty - own, fee: fee - own_fee, mirrored: true });
}

/// |price − reference| ÷ reference in 10⁻⁴, half up; `None` for a reference of 0. `slippage_bps` against the displayed
/// price, `impact_bps` against the best level (execution.md §8).
pub fn deviation_bps(price: Cash, reference: Cash) -> Option<u32> {
    ratio_bps(price.0.abs_diff(reference.0), u64::try_from(reference.0).ok()?)
}

/// `spread_bps`: (ask − bid) ÷ midpoint in 10⁻⁴, half up; `None` when a side is empty (execution.md §8).
pub fn spread_bps(bid: Option<Price>, ask: Option<Price>) -> Option<u32> {
    let (bid, ask) = (u64::from(bid?.0), u64::from(ask?.0));
    // Twice the spread over twice the midpoint.
    ratio_bps(2 * ask.saturating_sub(bid), bid + ask)
}

fn ratio_bps(part: u64, whole: u64) -> Option<u32> {
    let doubled = u128::from(part) * 20_000 + u128::from(whole);
    doubled.checked_div(2 * u128::from(whole)).map(|bps| u32::try_from(bps).unwrap_or(u32::MAX))
}
