//! Back-tests of a user: what was asked for, what became of it, and the meter of the month (gateway/docs/simulation.md
//! §6). Trades and points of equity are not journaled: they are made again from what was asked for.

use super::User;
use crate::amount::Cash;
use crate::bytes::{Bytes, CodecError, leaf, put_list, row, take_list};
use crate::describe::record;
use crate::fact;
use crate::time::{DAY, Date, Timestamp};
use wincode::{SchemaRead, SchemaWrite};

/// A back-test that has ended is kept this long after its end: then it is not shown any more, and the next creation of its
/// user removes it. µs.
pub const BACKTESTS_KEPT_US: u64 = 90 * DAY;
/// Bytes of what was asked for by all back-tests of a user that are kept, at most.
pub const BACKTEST_REQUESTS_BYTES_MAX: usize = 16 << 20;

/// How a back-test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum BacktestEnd {
    Completed,
    Failed,
    Cancelled,
}

record! {
    /// The result of a back-test.
    pub struct BacktestFigures {
        pub total_pnl: Cash,
        /// Positions that were closed.
        pub closed: u64,
        /// Those of them that gained.
        pub won: u64,
        /// Deepest fall below the running peak, 10⁻⁴ of the peak.
        pub max_drawdown: u64,
        pub trades: u64,
        pub points: u64,
        pub ticks: u64,
        /// Decisions were made at every change of a book, not on a grid.
        pub event_ticks: bool,
        /// Distance of the ticks of a grid, µs.
        pub step: u64,
        /// There were fewer ticks than asked for.
        pub degraded: bool,
        /// A position was paid out.
        pub settlement_scored: bool,
        /// At midpoints, without fees and delays.
        pub naive_pnl: Cash,
        pub fills_naive: u64,
        pub fills_honest: u64,
        /// The 5th, 50th and 95th percentile of the profits over the seeds; empty for one seed.
        pub percentiles: Vec<Cash>,
        /// SHA-256 over inputs and result.
        pub hash: [u8; 32],
    }
}

leaf! { BacktestEnd, BacktestFigures, [u8; 16] }

/// One back-test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backtest {
    /// A random UUID.
    pub id: [u8; 16],
    /// What was asked for, as the API wrote it.
    pub spec: Box<str>,
    /// SHA-256 of the request, and the id that the client gave it.
    pub digest: [u8; 32],
    pub request: Option<Box<str>>,
    /// Charged market hours, in thousandths.
    pub charged: u64,
    pub created_at: Timestamp,
    pub started_at: Date,
    pub ended: Option<BacktestEnded>,
}

row! { Backtest { id, spec, digest, request, charged, created_at, started_at, ended } }

/// The end of a back-test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BacktestEnded {
    pub end: BacktestEnd,
    /// Why it failed.
    pub error: Option<Box<str>>,
    pub figures: Option<BacktestFigures>,
    /// Market hours given back, in thousandths.
    pub refunded: u64,
    pub at: Timestamp,
}

row! { BacktestEnded { end, error, figures, refunded, at } }

/// What a user has used of the latest month with a back-test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BacktestMeter {
    /// `YYYYMM`.
    pub month: u32,
    pub jobs: u32,
    /// Market hours, in thousandths.
    pub hours: u64,
}

row! { BacktestMeter { month, jobs, hours } }

/// The back-tests of a user, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backtests {
    pub(super) jobs: Vec<Backtest>,
    meter: BacktestMeter,
}

impl Bytes for Backtests {
    fn put(&self, out: &mut Vec<u8>) {
        self.meter.put(out);
        put_list(self.jobs.len(), self.jobs.iter(), out);
    }

    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        let mut backtests = Backtests { jobs: Vec::new(), meter: BacktestMeter::take(input)? };
        take_list(input, |job| backtests.jobs.push(job))?;
        let ids = |of: &Backtests| of.jobs.iter().map(|job| job.id).collect::<std::collections::BTreeSet<_>>().len();
        let ascend = backtests.jobs.is_sorted_by_key(|job| job.created_at);
        if !ascend || ids(&backtests) != backtests.jobs.len() {
            return Err(CodecError::Reference);
        }
        Ok(backtests)
    }
}

impl Backtest {
    /// Whether it is not over.
    pub fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Whether it is still kept at `now`: one that is not over always is.
    pub fn is_kept(&self, now: Timestamp) -> bool {
        self.kept_until().is_none_or(|until| now < until)
    }

    /// When it is not kept any more; `None` while it is not over.
    pub fn kept_until(&self) -> Option<Timestamp> {
        self.ended.as_ref().map(|ended| ended.at.plus(BACKTESTS_KEPT_US))
    }

    /// Market hours that stay charged, in thousandths.
    pub fn net_charge(&self) -> u64 {
        self.charged - self.ended.as_ref().map_or(0, |ended| ended.refunded)
    }
}

impl BacktestMeter {
    /// The part of `month`, `YYYYMM`.
    pub fn of(self, month: u32) -> BacktestMeter {
        if self.month == month { self } else { BacktestMeter { month, ..BacktestMeter::default() } }
    }
}

impl User {
    /// All back-tests in memory, oldest first, also those that are not kept any more and not removed yet.
    pub fn backtests(&self) -> &[Backtest] {
        self.trading().backtests.as_ref().map_or(&[], |backtests| &backtests.jobs)
    }

    /// Those of them that are kept at `now`.
    pub fn backtests_kept(&self, now: Timestamp) -> impl DoubleEndedIterator<Item = &Backtest> {
        self.backtests().iter().filter(move |job| job.is_kept(now))
    }

    /// One of all in memory.
    pub fn backtest(&self, id: [u8; 16]) -> Option<&Backtest> {
        self.backtests().iter().find(|job| job.id == id)
    }

    /// What was used in a month, `YYYYMM`.
    pub fn backtest_meter(&self, month: u32) -> BacktestMeter {
        self.trading().backtests.as_ref().map_or_else(BacktestMeter::default, |backtests| backtests.meter).of(month)
    }

    pub(super) fn create_backtest(&mut self, created: &fact::BacktestCreated) {
        let fact::BacktestCreated { job, spec, digest, request, charged, at } = created;
        let backtests = self.trading_mut().backtests.get_or_insert_default();
        backtests.jobs.retain(|job| job.is_kept(*at));
        assert!(backtests.jobs.iter().all(|known| known.id != *job), "a back-test is created once");
        let mut meter = backtests.meter.of(at.month());
        meter.jobs += 1;
        meter.hours += charged;
        backtests.meter = meter;
        backtests.jobs.push(Backtest {
            id: *job,
            spec: spec.as_str().into(),
            digest: *digest,
            request: request.as_deref().map(Box::from),
            charged: *charged,
            created_at: *at,
            started_at: Date::NONE,
            ended: None,
        });
    }

    pub(super) fn start_backtest(&mut self, job: [u8; 16], at: Timestamp) {
        self.backtest_mut(job).started_at = Some(at).into();
    }

    pub(super) fn end_backtest(&mut self, ended: &fact::BacktestEnded) {
        let fact::BacktestEnded { job, end, error, figures, refunded, at } = ended;
        let row = self.backtest_mut(*job);
        assert!(row.is_open() && *refunded <= row.charged, "a back-test ends once, and gives back what it was charged");
        row.ended = Some(BacktestEnded {
            end: *end,
            error: error.as_deref().map(Box::from),
            figures: figures.as_deref().cloned(),
            refunded: *refunded,
            at: *at,
        });
        let month = row.created_at.month();
        let backtests = self.trading_mut().backtests.as_mut().expect("it has a back-test");
        // A later month has a meter of its own.
        if backtests.meter.month == month {
            backtests.meter.hours = backtests.meter.hours.saturating_sub(*refunded);
        }
    }

    fn backtest_mut(&mut self, job: [u8; 16]) -> &mut Backtest {
        let backtests = self.trading_mut().backtests.as_mut();
        let jobs = backtests.map(|backtests| &mut backtests.jobs);
        jobs.and_then(|jobs| jobs.iter_mut().find(|known| known.id == job)).expect("it was created before")
    }
}

impl Backtests {
    /// No past time is later than `at`.
    pub(super) fn set_back(&mut self, at: Timestamp) {
        self.meter.month = self.meter.month.min(at.month());
        for job in &mut self.jobs {
            job.created_at = job.created_at.min(at);
            job.started_at = job.started_at.get().map(|started| started.min(at)).into();
            if let Some(ended) = &mut job.ended {
                ended.at = ended.at.min(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::HOUR;

    /// 2026-10-02T09:15:00Z.
    const NOW: Timestamp = Timestamp(1_790_932_500_000_000);

    fn created(number: u8, charged: u64, at: Timestamp) -> fact::BacktestCreated {
        fact::BacktestCreated {
            job: [number; 16],
            spec: format!("{{\"n\":{number}}}"),
            digest: [number; 32],
            request: Some(format!("key-{number}")),
            charged,
            at,
        }
    }

    fn ended(number: u8, refunded: u64, at: Timestamp) -> fact::BacktestEnded {
        let (end, error) = (BacktestEnd::Failed, Some("time_limit".to_owned()));
        fact::BacktestEnded { job: [number; 16], end, error, figures: None, refunded, at }
    }

    fn user() -> User {
        User::new(crate::id::UserId(1), None, None, NOW)
    }

    fn meter(month: u32, jobs: u32, hours: u64) -> BacktestMeter {
        BacktestMeter { month, jobs, hours }
    }

    #[test]
    fn a_month_has_its_own_meter() {
        let mut user = user();
        assert_eq!(user.backtest_meter(202_610), meter(202_610, 0, 0));
        user.create_backtest(&created(1, 2_000, NOW));
        user.create_backtest(&created(2, 500, NOW.plus(HOUR)));
        assert_eq!(user.backtest_meter(202_610), meter(202_610, 2, 2_500));
        assert_eq!(user.backtest_meter(202_611), meter(202_611, 0, 0));
        user.start_backtest([1; 16], NOW.plus(1));
        user.end_backtest(&ended(1, 1_500, NOW.plus(2)));
        assert_eq!(user.backtest_meter(202_610), meter(202_610, 2, 1_000), "a job counts, its hours are given back");
        assert_eq!(user.backtest([1; 16]).map(Backtest::net_charge), Some(500));
        // A back-test of an earlier month gives nothing back to this one.
        let november = NOW.plus(30 * DAY);
        user.create_backtest(&created(3, 100, november));
        user.end_backtest(&ended(2, 500, november));
        assert_eq!(user.backtest_meter(202_611), meter(202_611, 1, 100));
    }

    #[test]
    fn back_tests_are_kept_for_ninety_days() {
        let mut user = user();
        user.create_backtest(&created(1, 1, NOW));
        user.create_backtest(&created(2, 1, NOW));
        user.create_backtest(&created(3, 1, NOW));
        user.end_backtest(&ended(1, 0, NOW));
        user.end_backtest(&ended(3, 0, NOW.plus(DAY)));
        let ids = |user: &User| user.backtests().iter().map(|job| job.id[0]).collect::<Vec<_>>();
        user.create_backtest(&created(4, 1, NOW.plus(BACKTESTS_KEPT_US - 1)));
        assert_eq!(ids(&user), [1, 2, 3, 4]);
        user.create_backtest(&created(5, 1, NOW.plus(BACKTESTS_KEPT_US)));
        assert_eq!(ids(&user), [2, 3, 4, 5], "an open one stays, and one that ended later");
        user.create_backtest(&created(6, 1, NOW.plus(DAY + BACKTESTS_KEPT_US)));
        assert_eq!(ids(&user), [2, 4, 5, 6]);
    }

    #[test]
    fn bytes_are_read_back_and_checked() {
        let mut user = user();
        user.create_backtest(&created(1, 2_000, NOW));
        user.create_backtest(&created(2, 0, NOW));
        user.start_backtest([1; 16], NOW);
        let figures = BacktestFigures {
            total_pnl: Cash(-1),
            closed: 2,
            won: 1,
            max_drawdown: 40,
            trades: 4,
            points: 9,
            ticks: 120,
            event_ticks: false,
            step: 60,
            degraded: true,
            settlement_scored: false,
            naive_pnl: Cash(5),
            fills_naive: 3,
            fills_honest: 4,
            percentiles: vec![Cash(1), Cash(2), Cash(3)],
            hash: [9; 32],
        };
        let end = BacktestEnd::Completed;
        let done = fact::BacktestEnded { end, error: None, figures: Some(Box::new(figures)), ..ended(1, 0, NOW) };
        user.end_backtest(&done);
        let backtests = user.trading().backtests.as_deref().expect("it has some").clone();
        let mut bytes = Vec::new();
        backtests.put(&mut bytes);
        assert_eq!(Backtests::take(&mut &bytes[..]), Ok(backtests.clone()));
        for len in 0..bytes.len() {
            assert!(Backtests::take(&mut &bytes[..len]).is_err(), "{len}");
        }
        // Twice the same, and out of order.
        let mut twice = backtests.clone();
        twice.jobs[1].id = [1; 16];
        let mut late = backtests;
        late.jobs[0].created_at = NOW.plus(1);
        for wrong in [twice, late] {
            let mut bytes = Vec::new();
            wrong.put(&mut bytes);
            assert_eq!(Backtests::take(&mut &bytes[..]), Err(CodecError::Reference));
        }
        println!("back-tests: {} cut lengths", bytes.len());
    }

    #[test]
    #[should_panic(expected = "a back-test ends once")]
    fn an_end_is_final() {
        let mut user = user();
        user.create_backtest(&created(1, 10, NOW));
        user.end_backtest(&ended(1, 10, NOW));
        user.end_backtest(&ended(1, 0, NOW));
    }
}
