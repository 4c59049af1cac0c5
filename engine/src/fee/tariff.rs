//! What one side of a match is charged: `shares × rate × (p × (1 − p))^exponent`, rounded.
//!
//! Rates have six decimals, exponents go from 0 to 4. Products are exact: in 128 bits where they fit, else in limbs. So
//! there is one rounding, at the end, and no float.

use super::{taker_fee, taker_fee_on_grid};
use crate::amount::{Bps, Cash, Price, Qty};
use crate::market::terms::{FeeSchedule, Venue};
use wincode::{SchemaRead, SchemaWrite};

/// How the fee of a match is rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum FeeRounding {
    /// To 5 decimals; half a step counts as one.
    #[default]
    HalfUp,
    /// Down to 5 decimals.
    Down,
    /// Up to 4 decimals, as Kalshi charges every match.
    UpToFour,
}

impl FeeRounding {
    /// Those of the configuration, with their names.
    pub const CHOICES: [(FeeRounding, &'static str); 2] =
        [(FeeRounding::HalfUp, "half_up"), (FeeRounding::Down, "down")];

    /// That of a market's own schedule: Kalshi has its own, elsewhere it is the configured one.
    pub fn at(self, venue: Venue) -> FeeRounding {
        if venue == Venue::Kalshi { FeeRounding::UpToFour } else { self }
    }

    /// 10⁻⁶ USD in one step.
    fn step(self) -> u64 {
        match self {
            FeeRounding::HalfUp | FeeRounding::Down => 10,
            FeeRounding::UpToFour => 100,
        }
    }
}

/// What decided the fee of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeeSource {
    /// The schedule that the market states, also if its rate is 0.
    MarketSchedule,
    /// The rate of the market's category.
    CategoryTable,
    /// Nothing is charged: the fill of a maker, an exit at the entry price, a category without a rate.
    None,
}

impl FeeSource {
    pub const ALL: [FeeSource; 3] = [FeeSource::MarketSchedule, FeeSource::CategoryTable, FeeSource::None];

    /// Its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            FeeSource::MarketSchedule => "market_schedule",
            FeeSource::CategoryTable => "category_table",
            FeeSource::None => "none",
        }
    }

    /// That of a fill whose market's schedule did not decide, by its rate.
    pub fn of_table(rate: Bps) -> FeeSource {
        if rate == Bps(0) { FeeSource::None } else { FeeSource::CategoryTable }
    }
}

/// The charge of one side of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tariff {
    /// In 10⁻⁶.
    rate: u64,
    exponent: u16,
    rounding: FeeRounding,
}

/// What a walk needs to charge its levels.
pub trait Charge: Copy {
    /// The fee of `gross` (price × shares in 10⁻⁸ USD, not negative) for shares on the order grid at `price`.
    fn on_grid(self, gross: i64, price: Price) -> Cash;
    /// The fee of any count of shares.
    fn of(self, qty: Qty, price: Price) -> Cash;
}

/// The taker's fee of a category, half up.
impl Charge for Bps {
    #[inline]
    fn on_grid(self, gross: i64, price: Price) -> Cash {
        taker_fee_on_grid(gross, price, self)
    }

    #[inline]
    fn of(self, qty: Qty, price: Price) -> Cash {
        taker_fee(qty, price, self)
    }
}

impl Charge for Tariff {
    fn on_grid(self, gross: i64, price: Price) -> Cash {
        let steps = (gross as u64).checked_div(price.0.into()).unwrap_or(0);
        self.fee(Qty(steps * Qty::ORDER_STEP.0), price)
    }

    fn of(self, qty: Qty, price: Price) -> Cash {
        self.fee(qty, price)
    }
}

/// Millionths in one.
const ONE_E6: u64 = 1_000_000;
/// Price units of 10⁻⁴, and of 10⁻⁶, in one dollar, squared.
const SQUARE_E8: u64 = 100_000_000;
const SQUARE_E12: u64 = 1_000_000_000_000;

impl Tariff {
    /// Charges nothing.
    pub const FREE: Tariff = Tariff { rate: 0, exponent: 1, rounding: FeeRounding::HalfUp };

    /// The taker's of a category.
    pub fn of_category(rate: Bps, rounding: FeeRounding) -> Tariff {
        Tariff { rate: u64::from(rate.0) * 100, exponent: 1, rounding }
    }

    /// By the schedule of a market.
    pub fn of_schedule(schedule: &FeeSchedule, rounding: FeeRounding) -> Tariff {
        Tariff { rate: schedule.rate.into(), exponent: schedule.exponent, rounding }
    }

    /// The rate in basis points, half up.
    pub fn bps(self) -> Bps {
        Bps(u32::try_from((self.rate + 50) / 100).unwrap_or(u32::MAX))
    }

    /// The rate, if the fee is that of [`taker_fee`], which is fast.
    #[inline]
    pub fn plain(self) -> Option<Bps> {
        let is_plain = self.exponent == 1 && self.rounding == FeeRounding::HalfUp && self.rate.is_multiple_of(100);
        is_plain.then(|| self.bps())
    }

    /// The fee of one match.
    ///
    /// # Panics
    /// As [`taker_fee`].
    #[inline]
    pub fn fee(self, qty: Qty, price: Price) -> Cash {
        match self.plain() {
            Some(rate) => taker_fee(qty, price, rate),
            None => self.exact(qty, u64::from(price.0) * u64::from(price.complement().0), SQUARE_E8),
        }
    }

    /// The fee at a price between the steps of the grid, in 10⁻⁶ USD a share; a price out of bounds is taken as 0 or 1.
    ///
    /// # Panics
    /// As [`taker_fee`].
    pub fn fee_at(self, qty: Qty, price: Cash) -> Cash {
        let price = price.0.clamp(0, ONE_E6 as i64) as u64;
        self.exact(qty, price * (ONE_E6 - price), SQUARE_E12)
    }

    /// `square` ÷ `unit` is p × (1 − p).
    fn exact(self, qty: Qty, square: u64, unit: u64) -> Cash {
        let step = self.rounding.step();
        // 10⁻⁶ shares × 10⁻⁶ of rate are 10⁻¹² USD.
        let product = Product { factors: [qty.0, self.rate, 1], square, unit, exponent: self.exponent };
        let steps = product.over(ONE_E6 * step, self.rounding);
        cash(steps, step, qty)
    }
}

/// What the maker of a match gets back: the unrounded fee of the schedule × its rebate rate, down to 10⁻⁶ USD.
///
/// # Panics
/// As [`taker_fee`].
pub fn rebate(schedule: &FeeSchedule, qty: Qty, price: Price) -> Cash {
    let square = u64::from(price.0) * u64::from(price.complement().0);
    let factors = [qty.0, schedule.rate.into(), schedule.rebate_rate.into()];
    let product = Product { factors, square, unit: SQUARE_E8, exponent: schedule.exponent };
    cash(product.over(ONE_E6 * ONE_E6, FeeRounding::Down), 1, qty)
}

fn cash(steps: Option<u64>, step: u64, qty: Qty) -> Cash {
    let cash = steps.and_then(|steps| i64::try_from(steps.checked_mul(step)?).ok());
    Cash(cash.unwrap_or_else(|| panic!("a fee is bounded by its order: {} shares", qty.0)))
}

/// The product of the factors and of (`square` ÷ `unit`)^`exponent`.
#[derive(Clone, Copy, Debug)]
struct Product {
    factors: [u64; 3],
    square: u64,
    unit: u64,
    exponent: u16,
}

impl Product {
    /// Divided by `divisor`, which is even, and rounded; `None`: above 64 bits.
    fn over(self, divisor: u64, rounding: FeeRounding) -> Option<u64> {
        match self.short(divisor, rounding) {
            Some(short) => Some(short),
            None => self.long(divisor, rounding),
        }
    }

    /// In 128 bits; `None`: a product has more.
    fn short(self, divisor: u64, rounding: FeeRounding) -> Option<u64> {
        let (mut exact, mut step) = (1_u128, u128::from(divisor));
        for factor in self.factors {
            exact = exact.checked_mul(factor.into())?;
        }
        for _ in 0..self.exponent {
            exact = exact.checked_mul(self.square.into())?;
            step = step.checked_mul(self.unit.into())?;
        }
        let added = match rounding {
            FeeRounding::HalfUp => step / 2,
            FeeRounding::Down => 0,
            FeeRounding::UpToFour => step - 1,
        };
        u64::try_from(exact.checked_add(added)? / step).ok()
    }

    /// In limbs. A quotient by a product is the quotient by its factors one after the other, each rounded down.
    #[cold]
    fn long(self, divisor: u64, rounding: FeeRounding) -> Option<u64> {
        let (mut exact, mut step) = (Limbs::of(1), Limbs::of(divisor));
        self.factors.iter().for_each(|factor| exact.multiply(*factor));
        for _ in 0..self.exponent {
            exact.multiply(self.square);
            step.multiply(self.unit);
        }
        match rounding {
            FeeRounding::Down => {}
            FeeRounding::HalfUp => {
                step.divide(2);
                exact.add(&step);
            }
            FeeRounding::UpToFour => {
                exact.add(&step);
                exact.subtract_one();
            }
        }
        exact.divide(divisor);
        for _ in 0..self.exponent {
            exact.divide(self.unit);
        }
        exact.small()
    }
}

/// A whole number of 512 bits, the lowest 64 first. Three factors and four squares have at most 448.
struct Limbs([u64; 8]);

impl Limbs {
    fn of(number: u64) -> Limbs {
        Limbs([number, 0, 0, 0, 0, 0, 0, 0])
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0;
        for limb in &mut self.0 {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            (*limb, carry) = (product as u64, product >> 64);
        }
    }

    fn add(&mut self, other: &Limbs) {
        let mut carry = 0;
        for (limb, more) in self.0.iter_mut().zip(other.0) {
            let sum = u128::from(*limb) + u128::from(more) + carry;
            (*limb, carry) = (sum as u64, sum >> 64);
        }
    }

    /// Of a number above 0.
    fn subtract_one(&mut self) {
        for limb in &mut self.0 {
            let (less, borrows) = limb.overflowing_sub(1);
            *limb = less;
            if !borrows {
                break;
            }
        }
    }

    /// Rounded down.
    fn divide(&mut self, divisor: u64) {
        let mut rest = 0;
        for limb in self.0.iter_mut().rev() {
            let part = rest << 64 | u128::from(*limb);
            *limb = (part / u128::from(divisor)) as u64;
            rest = part % u128::from(divisor);
        }
    }

    fn small(&self) -> Option<u64> {
        self.0[1..].iter().all(|limb| *limb == 0).then_some(self.0[0])
    }
}

#[cfg(test)]
mod tests;
