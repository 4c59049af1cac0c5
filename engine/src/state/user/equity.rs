//! The value of a wallet at each full hour (engine/docs/account.md §5): points in time order, stored only where the
//! value changed. An hour without a point has the value of the last point before it; a wallet without points has the
//! value of its opening cash, so an unused wallet costs no memory.
//!
//! ```text
//! opened ───────── days: the last point of a UTC day ───────── hours: all points ──────► now
//! ```
//!
//! All of them stay in memory (gateway/docs/history.md §9 says why), packed (`points`).

use super::points::Points;
use super::{User, Wallet};
use crate::amount::{Cash, nearest};
use crate::bytes::row;
use crate::id::WalletId;
use crate::time::Timestamp;

/// Hours in a UTC day.
const DAY_HOURS: u32 = 24;
/// How long points are kept by the hour: longer than an answer goes back (90 days).
pub const HOURS_KEPT: u32 = 92 * DAY_HOURS;
/// Days before [`HOURS_KEPT`] that keep one point each, their last.
pub const DAYS_KEPT: usize = 366;

/// A wallet at a full hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Hours since 1970.
    pub hour: u32,
    /// Cash, reserved cash included.
    pub cash: Cash,
    /// Value of its open positions; at cost without a mark.
    pub value: Cash,
    /// Baseline of the generation of that hour, and the deposits until then.
    pub baseline: Cash,
}

row!(Point { hour, cash, value, baseline });

/// The points of one wallet, in time order.
#[derive(Clone, Debug)]
pub struct Equity {
    pub wallet: WalletId,
    days: Points,
    hours: Points,
}

row!(Equity { wallet, days, hours });

/// The total of some wallets at a full hour or minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EquityRow {
    /// The full hour or minute.
    pub at: Timestamp,
    pub cash: Cash,
    pub value: Cash,
    pub baseline: Cash,
}

impl Point {
    /// The value of a wallet before its first point: its opening cash.
    pub(crate) fn opening(wallet: &Wallet) -> Point {
        Point { hour: wallet.created_at.hour(), cash: wallet.baseline, value: Cash::ZERO, baseline: wallet.baseline }
    }

    /// Whether the values are equal, without the hour.
    pub(crate) fn same_as(&self, other: &Point) -> bool {
        (self.cash, self.value, self.baseline) == (other.cash, other.value, other.baseline)
    }
}

impl Equity {
    pub(crate) fn new(wallet: WalletId) -> Equity {
        Equity { wallet, days: Points::default(), hours: Points::default() }
    }

    /// All points.
    pub fn points(&self) -> impl Iterator<Item = Point> + '_ {
        self.days.iter().chain(self.hours.iter())
    }

    /// The last point that is not after `hour` and all later ones; some earlier ones may come before it.
    fn since(&self, hour: u32) -> impl Iterator<Item = Point> + '_ {
        self.days.since(hour).chain(self.hours.since(hour))
    }

    pub fn last(&self) -> Option<&Point> {
        self.hours.last().or(self.days.last())
    }

    /// Whether the points ascend.
    pub(crate) fn ascends(&self) -> bool {
        self.points().is_sorted_by(|one, next| one.hour < next.hour)
    }

    /// Removes points of hours after `hour`, which a wrong clock recorded: the newest of them becomes the point of
    /// `hour`.
    pub(crate) fn set_back(&mut self, hour: u32) {
        let mut newest = None;
        for points in [&mut self.hours, &mut self.days] {
            // The newest of all is removed first.
            while points.last().is_some_and(|last| last.hour > hour) {
                let later = points.pop();
                newest = newest.or(later);
            }
        }
        let Some(newest) = newest else { return };
        for points in [&mut self.hours, &mut self.days] {
            if points.last().is_some_and(|last| last.hour == hour) {
                points.pop();
            }
        }
        self.hours.push(Point { hour, ..newest });
    }

    /// Adds the point of a later hour; old points are reduced to one a day, and the oldest are dropped.
    pub(crate) fn push(&mut self, point: Point) {
        assert!(
            self.last().is_none_or(|last| last.hour < point.hour),
            "points of a wallet ascend: hour {} of wallet {} after {:?}",
            point.hour,
            self.wallet,
            self.last()
        );
        self.hours.push(point);
        while let Some(old) = self.hours.first().copied().filter(|first| first.hour + HOURS_KEPT < point.hour) {
            self.hours.pop_first();
            // The last of a day is kept.
            if self.days.last().is_some_and(|last| last.hour / DAY_HOURS == old.hour / DAY_HOURS) {
                self.days.pop();
            }
            self.days.push(old);
        }
        while self.days.len() > DAYS_KEPT {
            self.days.pop_first();
        }
    }
}

impl User {
    /// The points of a wallet; `None`: it has none yet.
    pub fn equity(&self, wallet: WalletId) -> Option<&Equity> {
        let equity = &self.trading().equity;
        equity.binary_search_by_key(&wallet, |equity| equity.wallet).ok().map(|at| &equity[at])
    }

    /// The last point of a wallet, or its opening cash.
    pub(crate) fn last_point(&self, wallet: &Wallet) -> Point {
        self.equity(wallet.id).and_then(Equity::last).copied().unwrap_or_else(|| Point::opening(wallet))
    }

    /// Whether cash or shares of a wallet have moved since a moment.
    pub(crate) fn moved_since(&self, moment: Timestamp) -> bool {
        let trading = self.trading();
        trading.fills.last().is_some_and(|fill| fill.at >= moment)
            || self.departed().is_some_and(|departed| departed.moved_at().is_some_and(|at| at >= moment))
            || trading.resets.last().is_some_and(|(_, at)| *at >= moment)
            || trading.positions.iter().any(|position| position.closed_at.is_some_and(|at| at >= moment))
            || self.billed_since(moment)
            || self.paid_rebates_since(moment)
    }

    /// The total of these wallets at each full hour from `first` to `last`, both included; hours before the first of
    /// them was opened are left out.
    pub fn equity_rows<'a>(
        &'a self,
        wallets: impl Iterator<Item = &'a Wallet>,
        first: u32,
        last: u32,
    ) -> Vec<EquityRow> {
        let mut sums = Sums::new((last + 1).saturating_sub(first) as usize);
        for wallet in wallets {
            // Its first full hour is the one after its opening.
            let from = first.max(wallet.created_at.hour() + 1);
            let mut points = self.equity(wallet.id).into_iter().flat_map(|equity| equity.since(from)).peekable();
            let mut standing = Point::opening(wallet);
            for hour in from..=last {
                while let Some(point) = points.next_if(|point| point.hour <= hour) {
                    standing = point;
                }
                sums.add((hour - first) as usize, standing.cash, standing.value, standing.baseline);
            }
        }
        sums.rows(|nth| Timestamp::of_hour(first + nth as u32)).collect()
    }
}

/// Rows that are summed wallet by wallet.
pub(crate) struct Sums(Vec<Option<[i128; 3]>>);

impl Sums {
    /// `rows_count` rows without a wallet.
    pub fn new(rows_count: usize) -> Sums {
        Sums(vec![None; rows_count])
    }

    /// Adds the value of one wallet to a row.
    pub fn add(&mut self, nth: usize, cash: Cash, value: Cash, baseline: Cash) {
        let sums = self.0[nth].get_or_insert_default();
        for (sum, more) in sums.iter_mut().zip([cash, value, baseline]) {
            *sum += i128::from(more.0);
        }
    }

    /// The rows with a wallet; `at` gives the moment of a row.
    pub fn rows(self, at: impl Fn(usize) -> Timestamp) -> impl Iterator<Item = EquityRow> {
        let rows = self.0.into_iter().enumerate().filter_map(|(nth, sums)| Some((nth, sums?.map(nearest))));
        rows.map(move |(nth, [cash, value, baseline])| EquityRow { at: at(nth), cash, value, baseline })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Bytes;
    use crate::user::sample::Dice;

    fn point(hour: u32) -> Point {
        Point { hour, cash: Cash(i64::from(hour)), value: Cash::ZERO, baseline: Cash(5) }
    }

    #[test]
    fn old_points_are_reduced_to_one_a_day_and_then_dropped() {
        let mut equity = Equity::new(WalletId(1));
        let last = DAY_HOURS * 800;
        for hour in 0..=last {
            equity.push(point(hour));
        }
        assert_eq!(equity.hours.len() as u32, HOURS_KEPT + 1);
        assert_eq!(equity.hours.first().map(|first| first.hour), Some(last - HOURS_KEPT));
        assert_eq!(equity.days.len(), DAYS_KEPT);
        // Each is the last of its day, and they meet the hours without a gap.
        assert_eq!(equity.days.last().map(|day| day.hour), Some(last - HOURS_KEPT - 1));
        let days: Vec<u32> = equity.days.iter().map(|day| day.hour).collect();
        assert!(days.windows(2).all(|two| two[1] - two[0] == DAY_HOURS), "{days:?}");
        assert!(equity.ascends());
        assert_eq!(equity.last(), Some(&point(last)));
    }

    #[test]
    fn points_far_apart_are_unchanged() {
        let mut equity = Equity::new(WalletId(1));
        for day in 0..10 {
            equity.push(point(day * 40 * DAY_HOURS));
        }
        let hours: Vec<u32> = equity.points().map(|point| point.hour / (40 * DAY_HOURS)).collect();
        assert_eq!(hours, (0..10).collect::<Vec<_>>());
    }

    /// What a wallet takes after years of changing points, at any moment: the bound of gateway/docs/history.md §9.
    #[test]
    fn all_points_of_a_wallet_take_few_bytes() {
        let mut cases = 0;
        // 17,000 USD.
        let much = 17_000_000_000;
        // (hours from point to point, largest change of an amount, points that are kept, bytes at most)
        for (step, change, points_count, bytes_max) in [
            (1, 100_000_000, 2_575, 28 << 10),
            (1, much, 2_575, 34 << 10),
            (1, i64::MAX, 2_575, 96 << 10),
            (50, much, 411, 10 << 10),
            (1_000, much, 369, 8 << 10),
        ] {
            let mut dice = Dice(step.into());
            let mut amount = |from: Cash, hour: u32| match change {
                // As far as it goes: the longest step, from hour to hour and from day to day.
                i64::MAX if (hour + hour / DAY_HOURS).is_multiple_of(2) => Cash::ZERO,
                i64::MAX => Cash(i64::MIN),
                _ => Cash(from.0 + dice.below(2 * change as u64 + 1) as i64 - change),
            };
            let (mut equity, mut last, mut most) = (Equity::new(WalletId(1)), Point::default(), 0);
            let full = HOURS_KEPT / step + DAYS_KEPT as u32 * DAY_HOURS.div_ceil(step);
            for nth in 0..full + 300 {
                let hour = last.hour + step;
                let (cash, value) = (amount(last.cash, hour), amount(last.value, hour));
                let baseline = if change == i64::MAX { cash } else { last.baseline };
                last = Point { hour, cash, value, baseline };
                equity.push(last);
                if nth >= full {
                    let bytes = size_of::<Equity>() + equity.days.bytes() + equity.hours.bytes();
                    assert!(bytes <= bytes_max, "{bytes} bytes after {nth} points, a step of {step} hours");
                    most = most.max(bytes);
                    cases += 1;
                }
            }
            let mut snapshot = Vec::new();
            equity.put(&mut snapshot);
            assert!(snapshot.len() <= 71 << 10, "{} bytes in a snapshot", snapshot.len());
            let kept = equity.points().count();
            println!("{kept} points, {step} hours apart, changes up to {change}: {most} bytes");
            assert_eq!(kept, points_count);
        }
        // The bytes are those that are allocated.
        let mut made = None;
        let info = allocation_counter::measure(|| {
            let mut equity = Equity::new(WalletId(1));
            (0..3_000).for_each(|hour| equity.push(point(hour)));
            made = Some(equity);
        });
        let equity = made.expect("just made");
        assert_eq!(info.bytes_current, (equity.days.bytes() + equity.hours.bytes()) as i64);
        println!("memory of points: {cases} cases");
    }

    /// From any hour on the same point counts as when all are read.
    #[test]
    fn points_since_an_hour_begin_with_the_one_that_counts() {
        let mut cases = 0;
        for (seed, step_max) in [(1, 2), (2, 60), (3, 600)] {
            let (mut dice, mut equity, mut hour) = (Dice(seed), Equity::new(WalletId(1)), 0);
            for _ in 0..3_000 {
                hour += 1 + dice.below(step_max) as u32;
                equity.push(point(hour));
            }
            let all: Vec<Point> = equity.points().collect();
            for _ in 0..300 {
                let at = dice.below(u64::from(hour) + 50) as u32;
                let found = equity.since(at).take_while(|point| point.hour <= at).last();
                let begun = all.partition_point(|point| point.hour <= at);
                assert_eq!(found, begun.checked_sub(1).map(|nth| all[nth]), "hour {at}");
                assert!(equity.since(at).skip_while(|point| point.hour <= at).eq(all[begun..].iter().copied()));
                cases += 1;
            }
        }
        println!("points since an hour: {cases} cases");
    }

    #[test]
    #[should_panic(expected = "points of a wallet ascend")]
    fn an_hour_has_one_point() {
        let mut equity = Equity::new(WalletId(1));
        equity.push(point(7));
        equity.push(point(7));
    }
}
