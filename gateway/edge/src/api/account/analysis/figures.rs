//! The formulas of the profile analysis (engine/docs/account.md §6), independent of the source of their rows.
//!
//! Sums are exact integers; ratios are `rust_decimal`, rounded half up when they are written. A figure out of the range
//! of a decimal is [`TooLarge`], never a wrong figure.

use crate::http::turns::Turns;
use engine::amount::Cash;
use engine::id::MarketId;
use engine::order::Side;
use engine::time::{DAY, Timestamp};
use engine::user::Position;
use engine::view::FillView;
use rust_decimal::prelude::{Decimal, RoundingStrategy, ToPrimitive as _};
use std::collections::{BTreeMap, HashSet};

/// Distinct trade sizes that are visited before the task yields.
const SIZES_PER_TURN: usize = 16_384;

/// A figure is out of the range of a decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// A figure; `None` where its formula is undefined.
pub type Figure = Result<Option<Decimal>, TooLarge>;

/// Micros as a decimal.
pub fn exact(micros: i128) -> Result<Decimal, TooLarge> {
    Decimal::try_from_i128_with_scale(micros, 6).map_err(|_| TooLarge)
}

/// `part ÷ whole`; `None` by zero.
pub fn ratio(part: i128, whole: i128) -> Figure {
    if whole == 0 {
        return Ok(None);
    }
    exact(part)?.checked_div(exact(whole)?).map(Some).ok_or(TooLarge)
}

/// `part ÷ whole` in percent; `None` by zero.
pub fn percent(part: i128, whole: i128) -> Figure {
    match ratio(part, whole)? {
        Some(ratio) => ratio.checked_mul(Decimal::ONE_HUNDRED).map(Some).ok_or(TooLarge),
        None => Ok(None),
    }
}

/// An amount of USD as cash, rounded half up.
pub fn cash(amount: Decimal) -> Result<Cash, TooLarge> {
    let micros = amount.checked_mul(Decimal::from(1_000_000)).ok_or(TooLarge)?;
    let micros = micros.round_dp_with_strategy(0, RoundingStrategy::MidpointAwayFromZero);
    micros.to_i64().map(Cash).ok_or(TooLarge)
}

/// `total ÷ count` in cash; `None` of none.
pub fn average(total: i128, count: u64) -> Result<Option<Cash>, TooLarge> {
    let average = ratio(total, i128::from(count) * 1_000_000)?;
    average.map(cash).transpose()
}

/// The sums of the fills, which are added newest first.
#[derive(Debug, Default)]
pub struct Trades {
    pub buys: u64,
    pub sells: u64,
    pub volume: i128,
    pub fees: i128,
    /// UTC days with a fill.
    pub days: u64,
    pub first_at: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
    markets: HashSet<MarketId>,
    /// How often each notional occurred.
    sizes: BTreeMap<i64, u64>,
}

impl Trades {
    pub fn add(&mut self, view: &FillView) {
        let FillView { fill, order } = view;
        match order.terms.side {
            Side::Buy => self.buys += 1,
            Side::Sell => self.sells += 1,
        }
        self.volume += i128::from(fill.notional.0);
        self.fees += i128::from(fill.fee.0);
        // Newest first, so a day ends where another one begins.
        if self.first_at.is_none_or(|later| later.0 / DAY != fill.at.0 / DAY) {
            self.days += 1;
        }
        self.first_at = Some(fill.at);
        self.last_at.get_or_insert(fill.at);
        self.markets.insert(order.terms.instrument.market());
        *self.sizes.entry(fill.notional.0).or_default() += 1;
    }

    pub fn count(&self) -> u64 {
        self.buys + self.sells
    }

    pub fn markets_count(&self) -> usize {
        self.markets.len()
    }

    pub fn largest(&self) -> Option<Cash> {
        self.sizes.last_key_value().map(|(size, _)| Cash(*size))
    }

    pub fn smallest(&self) -> Option<Cash> {
        self.sizes.first_key_value().map(|(size, _)| Cash(*size))
    }

    /// The middle one by size, or halfway between the middle two.
    pub async fn median(&self) -> Option<Cash> {
        let (low, high) = (self.count().checked_sub(1)? / 2, self.count() / 2);
        let (mut seen, mut lower) = (0, None);
        let mut turns = Turns::of(SIZES_PER_TURN);
        for (size, count) in &self.sizes {
            turns.work(1).await;
            seen += count;
            if seen > low {
                let lower = *lower.get_or_insert(*size);
                if seen > high {
                    // Notionals are positive, so half up is towards the larger one.
                    return Some(Cash(lower + (size - lower + 1) / 2));
                }
            }
        }
        None
    }
}

/// The results of the positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Of all positions, open ones too.
    pub realized: i128,
    /// Positions with a known exit. As in `portfolio`, one that broke even is neither won nor lost.
    pub closed: u64,
    pub wins: u64,
    pub losses: u64,
    pub profit: i128,
    /// Not negative.
    pub loss: i128,
    pub best: Option<Cash>,
    pub worst: Option<Cash>,
}

impl Outcomes {
    pub fn add(&mut self, position: &Position) {
        self.realized += i128::from(position.realized.0);
        if !position.has_known_exit() {
            return;
        }
        // Over a whole episode this is sells + exit × the rest − buys: the cost of all bought shares was taken out.
        let realized = position.realized;
        self.closed += 1;
        match realized.0 {
            1.. => {
                self.wins += 1;
                self.profit += i128::from(realized.0);
            }
            0 => {}
            _ => {
                self.losses += 1;
                self.loss -= i128::from(realized.0);
            }
        }
        self.best = Some(self.best.map_or(realized, |best| best.max(realized)));
        self.worst = Some(self.worst.map_or(realized, |worst| worst.min(realized)));
    }
}

/// How the invested value is spread.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// Values of the open positions, largest first.
    values: Vec<i128>,
    pub total: i128,
}

impl Spread {
    pub fn of(values: impl IntoIterator<Item = Cash>) -> Spread {
        let mut values: Vec<i128> = values.into_iter().map(|value| i128::from(value.0)).collect();
        values.sort_unstable_by_key(|value| std::cmp::Reverse(*value));
        Spread { total: values.iter().sum(), values }
    }

    /// Percent of the invested value in the `count` largest positions; `None` where nothing is invested.
    pub fn concentration(&self, count: usize) -> Figure {
        percent(self.values.iter().take(count).sum(), self.total)
    }

    /// 1 − Σ weight².
    pub fn diversity(&self) -> Figure {
        let mut score = Decimal::ONE;
        for value in &self.values {
            let Some(weight) = ratio(*value, self.total)? else { return Ok(None) };
            score = score.checked_sub(weight.checked_mul(weight).ok_or(TooLarge)?).ok_or(TooLarge)?;
        }
        Ok((!self.values.is_empty()).then_some(score))
    }

    pub fn average(&self) -> Result<Option<Cash>, TooLarge> {
        average(self.total, self.values.len() as u64)
    }
}

/// Total value at full hours, oldest first.
pub type Points<'a> = &'a [(Timestamp, Cash)];

/// Raises each point by what was paid in after it, up to the last one: then only trading changes the value.
pub fn level(points: &mut [(Timestamp, Cash)], mut deposits: Vec<(Timestamp, Cash)>) {
    let Some(last) = points.last().map(|(at, _)| *at) else { return };
    deposits.retain(|(moved, _)| *moved <= last);
    deposits.sort_unstable();
    let (mut later, mut paid) = (deposits.into_iter().rev().peekable(), 0);
    for (at, value) in points.iter_mut().rev() {
        while let Some((_, amount)) = later.next_if(|(moved, _)| *moved > *at) {
            paid += i128::from(amount.0);
        }
        *value = engine::amount::nearest(i128::from(value.0) + paid);
    }
}

/// The points at `from` and later.
pub fn since(points: Points<'_>, from: Timestamp) -> Points<'_> {
    &points[points.partition_point(|(at, _)| *at < from)..]
}

/// The change from the first to the last point in percent; `None` for fewer than two, and from zero.
pub fn gain(points: Points<'_>) -> Figure {
    match points {
        [(_, first), .., (_, last)] => percent(i128::from(last.0) - i128::from(first.0), i128::from(first.0)),
        _ => Ok(None),
    }
}

/// The deepest fall below the highest earlier value, in percent of that value; `None` for fewer than two points.
pub fn drawdown(points: Points<'_>) -> Figure {
    if points.len() < 2 {
        return Ok(None);
    }
    let (mut peak, mut deepest) = (0_i128, (0_i128, 1_i128));
    for (_, value) in points {
        let value = i128::from(value.0);
        peak = peak.max(value);
        // fall ÷ peak > deepest fall ÷ its peak, without a division.
        if peak > 0 && (peak - value) * deepest.1 > deepest.0 * peak {
            deepest = (peak - value, peak);
        }
    }
    percent(deepest.0, deepest.1)
}

/// The highest and the lowest point; the first among equal ones.
pub fn extremes(points: Points<'_>) -> Option<((Timestamp, Cash), (Timestamp, Cash))> {
    let (mut peak, mut trough) = (*points.first()?, *points.first()?);
    for point in points {
        if point.1 > peak.1 {
            peak = *point;
        }
        if point.1 < trough.1 {
            trough = *point;
        }
    }
    Some((peak, trough))
}

#[cfg(test)]
mod tests;
