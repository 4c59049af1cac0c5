//! Prices, sizes and money: integers with one scale each. Names of functions state their rounding.
//!
//! | Type | Holds | Scale |
//! |---|---|---|
//! | [`Price`] | u16 | 1/10 000 |
//! | [`TickSize`] | u16 | 1/10 000 |
//! | [`Qty`] | u64 | 1/1 000 000 share |
//! | [`Cash`] | i64 | 1/1 000 000 USD |
//! | [`Bps`] | u32 | 1/10 000 |

use wincode::{SchemaRead, SchemaWrite};

/// Price of one share in 1/10 000 USD. Levels of a book and limits of orders are in 1..=9 999; 0 and [`Price::ONE`]
/// occur as payouts per share and as the cap of a market order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct Price(pub u16);

/// The price grid of an instrument, in 1/10 000 USD: 1 000, 100, 10 or 1 today; any divisor of 10 000 is possible
/// (engine/docs/execution.md §13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct TickSize(pub u16);

/// Shares in 1/1 000 000. Quantities of orders are on the 1/10 000 grid ([`Qty::ORDER_STEP`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct Qty(pub u64);

/// USD in 1/1 000 000; negative for debits and losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct Cash(pub i64);

/// A rate in 1/10 000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct Bps(pub u32);

impl Price {
    /// 1.00 USD: the payout of a winning share.
    pub const ONE: Price = Price(10_000);
    /// Lowest and highest price of a book level or a limit.
    pub const LOWEST: Price = Price(1);
    pub const HIGHEST: Price = Price(9_999);

    /// The price of the complement: 1 − p.
    ///
    /// # Panics
    /// When it is above 1.
    #[inline]
    pub fn complement(self) -> Price {
        Price(10_000_u16.checked_sub(self.0).expect("a price is at most 1"))
    }
}

impl TickSize {
    /// Whether `price` is on this grid and in the tradable range [tick, 1 − tick].
    pub fn contains(self, price: Price) -> bool {
        price.0.is_multiple_of(self.0) && price.0 >= self.0 && price.0 <= 10_000 - self.0
    }

    /// Smallest order on a market with this grid: 1 share where the tick is 0.001 or finer, else 5
    /// (engine/docs/execution.md §13).
    pub fn min_order_size(self) -> Qty {
        if self.0 <= 10 { Qty::from_shares(1) } else { Qty::from_shares(5) }
    }
}

impl Qty {
    /// One share.
    pub const SHARE: Qty = Qty(1_000_000);
    /// Grid of order quantities: 1/10 000 share (gateway/docs/wire.md §1).
    pub const ORDER_STEP: Qty = Qty(100);
    pub const ZERO: Qty = Qty(0);

    pub const fn from_shares(shares: u64) -> Qty {
        Qty(shares * 1_000_000)
    }

    /// Rounded down to the order grid of 4 decimals.
    pub const fn floored_to_order_step(self) -> Qty {
        Qty(self.0 - self.0 % Self::ORDER_STEP.0)
    }

    /// Steps of the order grid, rounded down.
    pub const fn order_steps(self) -> u64 {
        self.0 / Self::ORDER_STEP.0
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Cash {
    pub const ZERO: Cash = Cash(0);

    pub const fn from_dollars(dollars: i64) -> Cash {
        Cash(dollars * 1_000_000)
    }
}

macro_rules! arithmetic {
    ($($name:ident),*) => {$(
        impl std::ops::Add for $name {
            type Output = $name;
            /// Overflow is a broken invariant: amounts are bounded where they enter `decide`.
            fn add(self, other: $name) -> $name {
                $name(self.0.checked_add(other.0).expect("amounts were bounded before they were added"))
            }
        }
        impl std::ops::Sub for $name {
            type Output = $name;
            fn sub(self, other: $name) -> $name {
                $name(self.0.checked_sub(other.0).expect("amounts were compared before they were subtracted"))
            }
        }
        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                *self = *self + other;
            }
        }
        impl std::ops::SubAssign for $name {
            fn sub_assign(&mut self, other: $name) {
                *self = *self - other;
            }
        }
        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = $name>>(amounts: I) -> $name {
                amounts.fold($name::default(), |total, amount| total + amount)
            }
        }
    )*};
}
arithmetic!(Qty, Cash);

impl std::ops::Neg for Cash {
    type Output = Cash;
    fn neg(self) -> Cash {
        Cash(-self.0)
    }
}

/// price × quantity in exact units of 10⁻¹⁰ USD; sums of these are rounded once.
pub fn exact_notional(price: Price, qty: Qty) -> u128 {
    u128::from(price.0) * u128::from(qty.0)
}

/// An exact notional (10⁻¹⁰ USD) to cash, half up (engine/docs/execution.md §4).
pub fn notional_half_up(exact: u128) -> Cash {
    cash((exact + 5_000) / 10_000)
}

/// price × quantity rounded up to 10⁻⁶: what a resting BUY reserves (engine/docs/execution.md §6).
pub fn reservation_rounded_up(price: Price, qty: Qty) -> Cash {
    cash(exact_notional(price, qty).div_ceil(10_000))
}

/// `amount × part ÷ whole`, half up, for `0 ≤ part ≤ whole`: the cost that a sale takes out (engine/docs/account.md
/// §3).
pub fn share_half_up(amount: Cash, part: Qty, whole: Qty) -> Cash {
    assert!(part <= whole && whole.0 > 0, "a part of a holding: {} of {}", part.0, whole.0);
    let product = i128::from(amount.0) * i128::from(part.0);
    let whole = i128::from(whole.0);
    Cash(i64::try_from((2 * product + whole).div_euclid(2 * whole)).expect("a share is not larger than its whole"))
}

/// `cash ÷ quantity` in 10⁻⁶ USD a share, half up: averages and volume-weighted prices (gateway/docs/wire.md §1, at
/// most 6 decimals). `None` for a quantity of zero.
pub fn average_half_up(cash: Cash, qty: Qty) -> Option<Cash> {
    let qty = i128::from(qty.0);
    (qty > 0).then(|| {
        let numerator = 2 * i128::from(cash.0) * 1_000_000 + qty;
        Cash(i64::try_from(numerator.div_euclid(2 * qty)).expect("an average price is small"))
    })
}

/// The shares that `amount` buys at `price` (10⁻⁶ USD a share), rounded down to the order grid of 4 decimals; `None`
/// for a price of zero or less, or on overflow.
pub fn floored_shares_for(amount: Cash, price: Cash) -> Option<Qty> {
    let (amount, price) = (u128::try_from(amount.0).ok()?, u128::try_from(price.0).ok().filter(|price| *price > 0)?);
    u64::try_from(amount * 1_000_000 / price).ok().map(|qty| Qty(qty).floored_to_order_step())
}

fn cash(units: u128) -> Cash {
    Cash(i64::try_from(units).expect("one order is at most a million shares below one dollar"))
}

/// The nearest representable amount: sums are computed wide and clamped.
pub fn nearest(micros: i128) -> Cash {
    Cash(micros.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_contains_its_grid_inside_the_tradable_range() {
        for (tick, price, on_grid) in [
            (100, 100, true),
            (100, 9_900, true),
            (100, 9_901, false),
            (100, 0, false),
            (100, 10_000, false),
            (1_000, 500, false),
            (10, 10, true),
            (1, 9_999, true),
            (50, 4_150, true),
        ] {
            assert_eq!(TickSize(tick).contains(Price(price)), on_grid, "{tick} {price}");
        }
    }

    #[test]
    fn a_fine_grid_takes_single_shares() {
        for (tick, shares) in [(1, 1), (5, 1), (10, 1), (11, 5), (25, 5), (50, 5), (100, 5), (1_000, 5)] {
            assert_eq!(TickSize(tick).min_order_size(), Qty(shares * 1_000_000), "{tick}");
        }
    }

    #[test]
    fn dollars_and_debits() {
        for (dollars, micros) in [(0, 0), (1, 1_000_000), (-3, -3_000_000), (100_000, 100_000_000_000)] {
            assert_eq!(Cash::from_dollars(dollars), Cash(micros));
            assert_eq!(-Cash(micros), Cash(0) - Cash(micros));
        }
    }

    #[test]
    fn an_amount_buys_whole_steps_of_the_grid() {
        for (amount, price, shares) in [
            (10_000_000, 410_000, Some(24_390_200)),
            (1, 1, Some(1_000_000)),
            (0, 1, Some(0)),
            (49, 490_000, Some(100)),
            (48, 490_000, Some(0)),
            (1, 0, None),
            (1, -1, None),
            (-1, 1, None),
            (i64::MAX, 1_000_000, Some(i64::MAX as u64 / 100 * 100)),
            (i64::MAX, 1, None),
        ] {
            assert_eq!(floored_shares_for(Cash(amount), Cash(price)), shares.map(Qty), "{amount} at {price}");
        }
    }

    #[test]
    fn a_wide_sum_is_clamped_to_an_amount() {
        let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
        for (micros, amount) in [(0, 0), (-7, -7), (most, i64::MAX), (most + 1, i64::MAX), (least - 1, i64::MIN)] {
            assert_eq!(nearest(micros), Cash(amount), "{micros}");
        }
    }

    #[test]
    fn functions_round_as_their_names_state() {
        assert_eq!(notional_half_up(4_999), Cash(0));
        assert_eq!(notional_half_up(5_000), Cash(1));
        assert_eq!(reservation_rounded_up(Price(3_700), Qty(1)), Cash(1));
        assert_eq!(reservation_rounded_up(Price(3_700), Qty::from_shares(20)), Cash(7_400_000));
        assert_eq!(share_half_up(Cash(10), Qty(1), Qty(4)), Cash(3));
        assert_eq!(share_half_up(Cash(10), Qty(4), Qty(4)), Cash(10));
        assert_eq!(average_half_up(Cash(1), Qty(3)), Some(Cash(333_333)));
        assert_eq!(average_half_up(Cash(2), Qty(3)), Some(Cash(666_667)));
        assert_eq!(average_half_up(Cash(2), Qty(0)), None);
    }
}
