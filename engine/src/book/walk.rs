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
    let (mut walk, mut left) = (Walk::default(), want);
    for offer in offers {
        if left.is_zero() {
            break;
        }
        let qty = offer.size().min(left);
        if !qty.is_zero() {
            walk.add(&offer, qty, rate, taken);
            left = Qty(left.0 - qty.0);
        }
    }
    walk.finished(left.is_zero())
}

fn walk_budget(offers: impl Iterator<Item = Offer>, budget: Cash, rate: Bps, taken: &mut Vec<Taken>) -> Walk {
    let budget = u128::try_from(budget.0).expect("a budget is not negative") * 10_000;
    let step = |price: Price| exact_notional(price, Qty::ORDER_STEP);
    let mut walk = Walk::default();
    for offer in offers {
        let (left, size) = (budget - walk.exact, offer.size());
        if left < step(offer.price) {
            return walk.finished(true);
        }
        if size.is_zero() {
            continue;
        }
        let affordable = u64::try_from(left / u128::from(offer.price.0)).unwrap_or(u64::MAX);
        walk.add(&offer, size.min(Qty(affordable).floored_to_order_step()), rate, taken);
    }
    let left = budget - walk.exact;
    let spent = walk.worst.is_some_and(|worst| left < step(worst));
    walk.finished(spent)
}

impl Offer {
    /// Both parts together, cut down to 4 decimals.
    #[inline]
    pub fn size(&self) -> Qty {
        (self.own + self.mirrored).floored_to_order_step()
    }
}

impl Walk {
    #[inline]
    fn add(&mut self, offer: &Offer, qty: Qty, rate: Bps, taken: &mut Vec<Taken>) {
        let price = offer.price;
        let fee = taker_fee(qty, price, rate);
        let own = qty.min(offer.own);
        if own == qty {
            taken.push(Taken { price, qty, fee, mirrored: false });
        } else {
            push_parts(price, own, qty, fee, rate, taken);
        }
        self.filled += qty;
        self.exact += exact_notional(price, qty);
        self.fee += fee;
        self.levels += 1;
        self.best = self.best.or(Some(price));
        self.worst = Some(price);
    }

    #[inline]
    fn finished(mut self, complete: bool) -> Walk {
        self.notional = match u64::try_from(self.exact) {
            Ok(exact) if exact <= u64::MAX - 5_000 => Cash(((exact + 5_000) / 10_000) as i64),
            _ => notional_half_up(self.exact),
        };
        self.complete = complete && !self.filled.is_zero();
        self
    }

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
fn push_parts(price: Price, own: Qty, qty: Qty, fee: Cash, rate: Bps, taken: &mut Vec<Taken>) {
    let own_fee = if own.is_zero() { Cash::ZERO } else { taker_fee(own, price, rate) };
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
