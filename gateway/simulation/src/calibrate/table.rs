//! The figures of each model. Parts of a whole keep both numbers; what people read is made of them at the end.

use super::walk::Walked;
use super::{Comparison, ModelOrder, sign};
use crate::report::text::{change, count};
use engine::amount::{Cash, Qty, average_half_up, nearest};
use engine::chance::{Chance, between};
use engine::time::Timestamp;
use std::ops::RangeInclusive;

/// Resamples of the orders.
pub const RESAMPLES: usize = 1_000;
/// Places of the bounds of the interval among the sorted resamples: 5 and 95 %.
const BOUNDS: [usize; 2] = [RESAMPLES / 20 - 1, RESAMPLES - RESAMPLES / 20 - 1];

/// A part of a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub part: u64,
    pub of: u64,
}

/// A model beside the live orders. Times in µs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub orders: u64,
    /// Orders that filled, at least partly.
    pub both: u64,
    pub only_live: u64,
    pub only_model: u64,
    pub neither: u64,
    /// Orders that the model refused or killed.
    pub refused: u64,
    pub live_shares: Qty,
    pub model_shares: Qty,
    /// Medians from the placement to the first fill, of orders that filled in both.
    pub live_fills_after: Option<u64>,
    pub model_fills_after: Option<u64>,
    /// The absolute difference of these times: median, 90th percentile.
    pub time_error: Option<[u64; 2]>,
    /// The mean absolute difference of average prices, in 10⁻⁶ of the live one.
    pub price_error: Option<u64>,
    pub live_pnl: Cash,
    pub model_pnl: Cash,
    /// The difference, 5th and 95th percentile of the resamples.
    pub interval: [Cash; 2],
    /// Compared orders without a value of their token: they are not in the profits.
    pub unmarked: u64,
    /// Live fills of compared orders without a fee in the file: they count as free.
    pub fees_unknown: u64,
}

impl Part {
    /// With four decimals, half up; `None` of nothing.
    pub fn text(self) -> Option<String> {
        let Part { part, of } = self;
        let (part, of) = (u128::from(part), u128::from(of));
        let scaled = (of > 0).then(|| (2 * part * 10_000 + of) / (2 * of))?;
        Some(format!("{}.{:04}", scaled / 10_000, scaled % 10_000))
    }

    /// Whether this part is larger than another one, exactly; of nothing it is nothing.
    pub fn is_above(self, other: Part) -> bool {
        let Part { part, of } = self;
        match (of, other.of) {
            (0, _) => false,
            (_, 0) => part > 0,
            _ => u128::from(part) * u128::from(other.of) > u128::from(other.part) * u128::from(of),
        }
    }
}

impl Row {
    /// Of the orders that the model filled, those that filled live.
    pub fn precision(&self) -> Part {
        Part { part: self.both, of: self.both + self.only_model }
    }

    /// Of the orders that filled live, those that the model filled.
    pub fn recall(&self) -> Part {
        Part { part: self.both, of: self.both + self.only_live }
    }

    /// Orders of which the model says rightly whether they filled.
    pub fn right(&self) -> Part {
        Part { part: self.both + self.neither, of: self.orders }
    }

    /// Shares of the model per live share.
    pub fn shares(&self) -> Part {
        Part { part: self.model_shares.0, of: self.live_shares.0 }
    }

    /// Profit of the model less that of the live orders.
    pub fn difference(&self) -> Cash {
        nearest(i128::from(self.model_pnl.0) - i128::from(self.live_pnl.0))
    }

    /// The figures for people, with their names.
    pub fn figures(&self) -> [(&'static str, String); 17] {
        let part = |part: Part| part.text().unwrap_or_else(none);
        let seconds = |micros: Option<u64>| micros.map_or_else(none, seconds);
        let [median, p90] = self.time_error.map_or([None; 2], |both| both.map(Some));
        [
            ("Orders", count(self.orders)),
            ("Filled in both", count(self.both)),
            ("Only live", count(self.only_live)),
            ("Only in the model", count(self.only_model)),
            ("Neither", count(self.neither)),
            ("Refused by the model", count(self.refused)),
            ("Precision", part(self.precision())),
            ("Recall", part(self.recall())),
            ("Shares, model ÷ live", part(self.shares())),
            ("Time to fill, live, median, s", seconds(self.live_fills_after)),
            ("Time to fill, model, median, s", seconds(self.model_fills_after)),
            ("Its error, median, s", seconds(median)),
            ("Its error, 90th percentile, s", seconds(p90)),
            ("Price error, bps", self.price_error.map_or_else(none, bps)),
            ("Profit, live, USD", change(self.live_pnl)),
            ("Profit, model, USD", change(self.model_pnl)),
            (
                "Difference, USD",
                format!("{} [{}, {}]", change(self.difference()), change(self.interval[0]), change(self.interval[1])),
            ),
        ]
    }
}

fn none() -> String {
    "–".to_owned()
}

/// Milliseconds after the point.
pub fn seconds(micros: u64) -> String {
    let millis = micros / 1_000 + u64::from(micros % 1_000 >= 500);
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}

/// Hundredths after the point, of a part in 10⁻⁶.
pub fn bps(millionths: u64) -> String {
    format!("{}.{:02}", millionths / 100, millionths % 100)
}

/// The value at `part ÷ of` of the sorted values: the nearest rank.
pub fn quantile(mut values: Vec<u64>, part: usize, of: usize) -> Option<u64> {
    values.sort_unstable();
    let rank = (values.len() * part).div_ceil(of);
    values.get(rank.checked_sub(1)?).copied()
}

/// What an order did, live or in a model.
#[derive(Clone, Copy, Debug, Default)]
struct Did {
    shares: Qty,
    notional: i128,
    fees: i128,
    first_fill: Option<Timestamp>,
}

impl Did {
    /// Average price of a share, 10⁻⁶ USD.
    fn price(&self) -> Option<u64> {
        let average = average_half_up(nearest(self.notional / 1_000_000), self.shares)?;
        u64::try_from(average.0).ok()
    }

    /// Profit at this value of a share, in 10⁻¹² USD.
    fn profit(&self, sign: i128, mark: Cash) -> i128 {
        let value = i128::from(mark.0) * i128::from(self.shares.0);
        sign * (value - self.notional) - self.fees * 1_000_000
    }
}

/// The rows of a comparison.
pub(super) fn rows(of: &Comparison<'_>, walked: &Walked) -> Vec<Row> {
    let numbers: Vec<usize> = (0..of.orders.len()).filter(|number| walked.left_out[*number].is_none()).collect();
    let live: Vec<Did> = numbers.iter().map(|number| live(of, *number)).collect();
    let mut rows = Vec::new();
    let mut differences: Vec<Vec<i128>> = Vec::new();
    for ran in &walked.models {
        let model: Vec<Did> = numbers.iter().map(|number| modelled(&ran[*number])).collect();
        let mut row = Row { orders: numbers.len() as u64, ..Row::default() };
        let (mut live_pnl, mut model_pnl, mut of_orders) = (0, 0, Vec::with_capacity(numbers.len()));
        let mut spans = Spans::default();
        for (number, (live, model)) in numbers.iter().zip(live.iter().zip(&model)) {
            let order = &of.orders[*number];
            let count = match (live.first_fill, model.first_fill) {
                (Some(_), Some(_)) => &mut row.both,
                (Some(_), None) => &mut row.only_live,
                (None, Some(_)) => &mut row.only_model,
                (None, None) => &mut row.neither,
            };
            *count += 1;
            row.refused += u64::from(ran[*number].refused.is_some());
            row.live_shares = together(row.live_shares, live.shares);
            row.model_shares = together(row.model_shares, model.shares);
            row.fees_unknown += order.fills.iter().filter(|fill| fill.fee.is_none()).count() as u64;
            spans.add(of.entered_at(order), live, model);
            match walked.marks[*number] {
                Some(mark) => {
                    let [live, model] = [live, model].map(|did| did.profit(sign(order.side), mark));
                    live_pnl += live;
                    model_pnl += model;
                    of_orders.push(model - live);
                }
                None => {
                    row.unmarked += 1;
                    of_orders.push(0);
                }
            }
        }
        spans.end(&mut row);
        (row.live_pnl, row.model_pnl) = (dollars(live_pnl), dollars(model_pnl));
        rows.push(row);
        differences.push(of_orders);
    }
    for (row, interval) in rows.iter_mut().zip(intervals(of.seed, &differences)) {
        row.interval = [*interval.start(), *interval.end()];
    }
    rows
}

/// The sum, or the largest number of shares.
fn together(one: Qty, other: Qty) -> Qty {
    Qty(one.0.saturating_add(other.0))
}

fn live(of: &Comparison<'_>, number: usize) -> Did {
    let mut did = Did::default();
    for fill in &of.orders[number].fills {
        did.shares += fill.size;
        did.notional += i128::from(fill.price.0) * i128::from(fill.size.0);
        did.fees += i128::from(fill.fee.unwrap_or_default().0);
        did.first_fill.get_or_insert(fill.at);
    }
    did
}

fn modelled(order: &ModelOrder) -> Did {
    let mut did = Did::default();
    for fill in &order.fills {
        did.shares += fill.size;
        did.notional += i128::from(fill.notional.0) * 1_000_000;
        did.fees += i128::from(fill.fee.0);
        did.first_fill.get_or_insert(fill.at);
    }
    did
}

/// Times and prices of the orders that filled in both.
#[derive(Default)]
struct Spans {
    live: Vec<u64>,
    model: Vec<u64>,
    errors: Vec<u64>,
    prices: Vec<u64>,
}

impl Spans {
    fn add(&mut self, entered_at: Timestamp, live: &Did, model: &Did) {
        let (Some(live_at), Some(model_at)) = (live.first_fill, model.first_fill) else { return };
        self.live.push(live_at.since(entered_at));
        self.model.push(model_at.since(entered_at));
        self.errors.push(live_at.since(model_at).max(model_at.since(live_at)));
        if let (Some(live), Some(model)) = (live.price().filter(|price| *price > 0), model.price()) {
            self.prices.push((2 * live.abs_diff(model) * 1_000_000 + live) / (2 * live));
        }
    }

    fn end(self, row: &mut Row) {
        row.live_fills_after = quantile(self.live, 1, 2);
        row.model_fills_after = quantile(self.model, 1, 2);
        row.time_error = quantile(self.errors.clone(), 1, 2).zip(quantile(self.errors, 9, 10)).map(<[u64; 2]>::from);
        let (sum, count) =
            (self.prices.iter().map(|error| u128::from(*error)).sum::<u128>(), self.prices.len() as u128);
        row.price_error = (count > 0).then(|| ((2 * sum + count) / (2 * count)) as u64);
    }
}

/// 10⁻¹² USD in 10⁻⁶, half away from zero.
fn dollars(exact: i128) -> Cash {
    let half = if exact < 0 { -500_000 } else { 500_000 };
    nearest((exact + half) / 1_000_000)
}

/// The interval of each model's difference: orders are drawn with replacement, the same ones for all models.
fn intervals(seed: u64, differences: &[Vec<i128>]) -> Vec<RangeInclusive<Cash>> {
    let orders_count = differences.first().map_or(0, Vec::len);
    let mut sums = vec![Vec::with_capacity(RESAMPLES); differences.len()];
    let mut chance = Chance::new(seed, "calibrate", orders_count as u64);
    let mut drawn = vec![0_usize; orders_count];
    for resample in 0..RESAMPLES {
        for (place, drawn) in drawn.iter_mut().enumerate() {
            let draw = chance.draw((resample * orders_count + place) as u64);
            *drawn = between(draw, 0, orders_count as u64 - 1) as usize;
        }
        for (sums, differences) in sums.iter_mut().zip(differences) {
            sums.push(drawn.iter().map(|order| differences[*order]).sum::<i128>());
        }
    }
    let interval = |mut sums: Vec<i128>| {
        sums.sort_unstable();
        let [low, high] = BOUNDS.map(|place| dollars(sums[place]));
        low..=high
    };
    sums.into_iter().map(interval).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let values: Vec<u64> = (1..=10).rev().collect();
        let cases = [
            (vec![], 1, 2, None),
            (vec![7], 1, 2, Some(7)),
            (vec![7], 9, 10, Some(7)),
            (vec![9, 1], 1, 2, Some(1)),
            (vec![3, 1, 2], 1, 2, Some(2)),
            (values.clone(), 1, 2, Some(5)),
            (values.clone(), 9, 10, Some(9)),
            (values, 1, 1, Some(10)),
        ];
        for (values, part, of, expected) in cases.clone() {
            assert_eq!(quantile(values, part, of), expected);
        }
        println!("quantiles: {} cases", cases.len());
    }

    #[test]
    fn parts_and_numbers_are_rounded_half_up() {
        let part = |part, of| Part { part, of };
        let texts = [
            (part(0, 0).text(), None),
            (part(1, 3).text(), Some("0.3333")),
            (part(2, 3).text(), Some("0.6667")),
            (part(5, 4).text(), Some("1.2500")),
            (part(1, 20_000).text(), Some("0.0001")),
            (part(u64::MAX, u64::MAX).text(), Some("1.0000")),
            (Some(seconds(1_499)), Some("0.001")),
            (Some(seconds(61_000_500)), Some("61.001")),
            (Some(bps(12_345)), Some("123.45")),
        ];
        for (text, expected) in &texts {
            assert_eq!(text.as_deref(), *expected);
        }
        let above = [
            (part(1, 2), part(1, 3), true),
            (part(1, 3), part(1, 2), false),
            (part(1, 2), part(2, 4), false),
            (part(0, 0), part(0, 0), false),
            (part(1, 1), part(0, 0), true),
            (part(u64::MAX, u64::MAX - 1), part(1, 1), true),
        ];
        for (one, other, expected) in above {
            assert_eq!(one.is_above(other), expected, "{one:?} {other:?}");
        }
        let dollars_cases = [(499_999, 0), (500_000, 1), (-500_000, -1), (-499_999, 0), (i128::MAX / 2, i64::MAX)];
        for (exact, expected) in dollars_cases {
            assert_eq!(dollars(exact).0, expected, "{exact}");
        }
        println!("numbers: {} cases", texts.len() + above.len() + dollars_cases.len());
    }

    #[test]
    fn the_interval_holds_the_sum_and_depends_on_the_seed_only() {
        let even = vec![1_000_000_000_000_i128; 50];
        let uneven: Vec<i128> = (0..50).map(|order| i128::from(order % 2 == 0) * 10_000_000_000_000).collect();
        let both = intervals(7, &[even.clone(), uneven.clone()]);
        assert_eq!((both[0].start().0, both[0].end().0), (50_000_000, 50_000_000), "nothing varies");
        let sum = Cash(250_000_000);
        assert!(both[1].contains(&sum) && both[1].start() < &sum && &sum < both[1].end(), "{both:?}");
        assert_eq!(intervals(7, &[even.clone(), uneven.clone()]), both);
        assert_ne!(intervals(8, &[even, uneven]), both);
        // The standard error of the sum is about 35 dollars: the bounds are 1.64 of it away.
        let width = both[1].end().0 - both[1].start().0;
        assert!((80_000_000..150_000_000).contains(&width), "{width}");
        assert!(intervals(7, &[]).is_empty());
        assert_eq!(intervals(7, &[Vec::new()]), [Cash(0)..=Cash(0)]);
        println!("intervals: 6 cases");
    }
}
