//! What a back-test found: figures, trades, points of equity, and the hash that ties them to their inputs
//! (gateway/docs/simulation.md §6.3).

use super::canonical::Canonical;
use super::chance::Latency;
use super::hours::Hour;
use super::job::{Job, TickPlan};
use super::lane::{Ground, Lane, LaneOutcome, Lanes};
use super::samples::{Samples, Taken};
use super::strategy::Predicate;
use crate::amount::{Cash, Qty};
use crate::fee::FeeRounding;
use crate::market::terms::{Category, Resolution};
use crate::order::Side;
use crate::rules::Rules;
use crate::time::Timestamp;

/// A finished back-test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub total_pnl: Cash,
    /// Positions that gained, and all that were closed; `None`: none was closed.
    pub won: Option<(u64, u64)>,
    /// Deepest fall below the running peak, 10⁻⁴ of the peak.
    pub max_drawdown: u64,
    /// Decisions of the first seed, over all markets.
    pub ticks_evaluated: u64,
    pub plan: TickPlan,
    /// A position was paid out.
    pub settlement_scored: bool,
    /// Hours of the window without decisions, by market.
    pub missing: Vec<(usize, Hour)>,
    /// Of the first seed, in the order of time.
    pub trades: Vec<Trade>,
    /// Of the first seed, in the order of time; at least the first and the last moment.
    pub points: Vec<EquityPoint>,
    pub comparison: Comparison,
    pub samples: Samples,
    /// SHA-256 over everything that decides the result, and the result.
    pub hash: [u8; 32],
}

/// An executed order, or a payout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    pub at: Timestamp,
    /// Index in [`Job::markets`].
    pub market: usize,
    pub side: Side,
    pub shares: Qty,
    /// Average in 10⁻⁶ USD a share.
    pub price: Cash,
    pub notional: Cash,
    pub fee: Cash,
    pub reason: Reason,
}

/// Why there is a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Entry,
    Exit,
    Settlement,
}

/// The value of the account at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EquityPoint {
    pub at: Timestamp,
    pub cash: Cash,
    pub position_value: Cash,
}

/// The result beside that of the same strategy without costs, and over all seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// At midpoints, without fees and delays.
    pub naive_pnl: Cash,
    /// Of the first seed.
    pub honest_pnl: Cash,
    pub fills_naive: u64,
    pub fills_honest: u64,
    /// The 5th, 50th and 95th percentile over the seeds by nearest rank; `None` for one seed.
    pub percentiles: Option<[Cash; 3]>,
}

/// Some of the seeds of a run, finished. The part of the first seed has the figures that only that one keeps.
pub struct Part {
    pub(super) plan: TickPlan,
    /// Profit and loss of its seeds.
    pub(super) results: Vec<Cash>,
    pub(super) samples: Taken,
    pub(super) first: First,
    /// Orders of its seeds.
    pub(super) orders: u64,
}

/// What the first seed keeps, and the lane without costs; empty in the parts of other seeds.
#[derive(Default)]
pub(super) struct First {
    pub outcome: LaneOutcome,
    pub naive_pnl: Cash,
    pub fills_naive: u64,
    pub trades: Vec<Trade>,
    pub points: Vec<EquityPoint>,
}

impl Part {
    /// The part of finished lanes.
    pub(super) fn of(ground: &Ground<'_>, mut lanes: Lanes, samples: Taken) -> Part {
        let job = ground.job;
        let pnl = |lane: &Lane| {
            let (cash, positions) = lane.worth(job);
            cash + positions - job.bankroll
        };
        let results = lanes.seeds.iter().map(pnl).collect();
        let first = match &lanes.naive {
            Some(naive) => {
                let (naive_pnl, fills_naive) = (pnl(naive), naive.outcome.fills);
                let first = &mut lanes.seeds[0];
                let (trades, points) = (std::mem::take(&mut first.trades), std::mem::take(&mut first.points));
                First { outcome: first.outcome, naive_pnl, fills_naive, trades, points }
            }
            None => First::default(),
        };
        Part { plan: ground.plan, results, samples, first, orders: ground.orders }
    }
}

impl Reason {
    /// The word in answers.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Entry => "entry",
            Reason::Exit => "exit",
            Reason::Settlement => "settlement",
        }
    }
}

impl EquityPoint {
    pub fn equity(&self) -> Cash {
        self.cash + self.position_value
    }
}

impl Comparison {
    /// What the costs take.
    pub fn gap(&self) -> Cash {
        self.naive_pnl - self.honest_pnl
    }
}

impl Report {
    /// The report of all parts of a run.
    pub(super) fn of(job: &Job, rules: &Rules, mut parts: Vec<Part>) -> Report {
        let mut results: Vec<Cash> = parts.iter().flat_map(|part| part.results.iter().copied()).collect();
        let samples = Samples::of(parts.iter_mut().map(|part| std::mem::take(&mut part.samples)).collect());
        let Part { plan, first: First { outcome, naive_pnl, fills_naive, trades, points }, .. } = parts.swap_remove(0);
        let comparison = Comparison {
            naive_pnl,
            honest_pnl: results[0],
            fills_naive,
            fills_honest: outcome.fills,
            percentiles: percentiles(&mut results),
        };
        let missing = |(market, of): (usize, &super::job::JobMarket)| {
            of.coverage.missing_periods().map(move |hour| (market, hour)).collect::<Vec<_>>()
        };
        let mut report = Report {
            total_pnl: comparison.honest_pnl,
            won: (outcome.closed > 0).then_some((outcome.won, outcome.closed)),
            max_drawdown: outcome.drawdown,
            ticks_evaluated: outcome.ticks,
            plan,
            settlement_scored: outcome.is_scored,
            missing: job.markets.iter().enumerate().flat_map(missing).collect(),
            trades,
            points,
            comparison,
            samples,
            hash: [0; 32],
        };
        report.hash = report.document(job, rules).sha256();
        report
    }

    /// The document that is hashed: no wall time, no id, nothing of the machine.
    fn document(&self, job: &Job, rules: &Rules) -> Canonical {
        use Canonical::{Integer, List, Null};
        let trade = |trade: &Trade| {
            Canonical::object([
                ("at_us", Integer(trade.at.0.into())),
                ("market", Integer(trade.market as i128)),
                ("side", Canonical::text(side(trade.side))),
                ("shares_e6", Integer(trade.shares.0.into())),
                ("notional_e6", Integer(trade.notional.0.into())),
                ("fee_e6", Integer(trade.fee.0.into())),
                ("reason", Canonical::text(trade.reason.name())),
            ])
        };
        let point = |point: &EquityPoint| {
            let figures = [i128::from(point.at.0), point.cash.0.into(), point.position_value.0.into()];
            List(figures.map(Integer).into())
        };
        let Comparison { naive_pnl, honest_pnl, fills_naive, fills_honest, percentiles } = self.comparison;
        let percentiles = percentiles.map_or(Null, |cash| List(cash.map(|cash| Integer(cash.0.into())).into()));
        let fees = Category::ALL
            .map(|category| (category.name().unwrap_or("unknown"), Integer(rules.fees.rate(category).0.into())));
        Canonical::object([
            ("version", Integer(1)),
            ("spec", spec(job)),
            ("markets", List(job.markets.iter().map(|of| market(of, job.end)).collect())),
            ("fees_bps", Canonical::object(fees)),
            ("rules", rules_of(rules)),
            ("trades", List(self.trades.iter().map(trade).collect())),
            ("equity", List(self.points.iter().map(point).collect())),
            (
                "result",
                Canonical::object([
                    ("naive_pnl_e6", Integer(naive_pnl.0.into())),
                    ("honest_pnl_e6", Integer(honest_pnl.0.into())),
                    ("fills_naive", Integer(fills_naive.into())),
                    ("fills_honest", Integer(fills_honest.into())),
                    ("percentiles_e6", percentiles),
                    ("ticks", Integer(self.ticks_evaluated.into())),
                    ("step_us", Integer(self.plan.step.into())),
                    ("mode", Canonical::text(self.plan.mode.name())),
                ]),
            ),
        ])
    }
}

/// Percentiles by nearest rank, of two results or more.
pub(super) fn percentiles(results: &mut [Cash]) -> Option<[Cash; 3]> {
    if results.len() < 2 {
        return None;
    }
    results.sort_unstable();
    Some([5, 50, 95].map(|percent| results[(results.len() * percent).div_ceil(100).max(1) - 1]))
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Buy => "BUY",
        Side::Sell => "SELL",
    }
}

/// What was asked for.
fn spec(job: &Job) -> Canonical {
    use Canonical::{Integer, List};
    let predicates = |predicates: &[Predicate]| {
        let predicate = |of: &Predicate| {
            Canonical::object([
                ("field", Canonical::text(of.field.name())),
                ("op", Canonical::text(of.operator.name())),
                ("value_e12", Integer(of.value.0)),
            ])
        };
        List(predicates.iter().map(predicate).collect())
    };
    let latency = match job.latency {
        Latency::Constant(millis) => List([millis].map(|millis| Integer(millis.into())).into()),
        Latency::Uniform(from, to) => List([from, to].map(|millis| Integer(millis.into())).into()),
        Latency::LogNormal { p50, p99, max } => List([p50, p99, max].map(|millis| Integer(millis.into())).into()),
    };
    let strategy = &job.strategy;
    Canonical::object([
        ("start_us", Integer(job.start.0.into())),
        ("end_us", Integer(job.end.0.into())),
        ("bankroll_e6", Integer(job.bankroll.0.into())),
        ("tick_mode", Canonical::text(job.tick_mode.name())),
        ("seed", Integer(job.seed.into())),
        ("seeds", Integer(job.seeds.into())),
        ("latency_ms", latency),
        ("haircut_e4", Integer(job.haircut.0.into())),
        ("side", Canonical::text(side(strategy.side))),
        ("outcome", Canonical::text(&strategy.outcome)),
        ("size_e6", Integer(strategy.size.0.into())),
        ("fill_model", Canonical::text(strategy.model.name())),
        ("entry", predicates(&strategy.entry)),
        ("exit", predicates(&strategy.exit)),
    ])
}

/// One market with the hours that were used.
fn market(of: &super::job::JobMarket, until: Timestamp) -> Canonical {
    use Canonical::{Integer, List, Null};
    let market = &of.market;
    let hours = of.digests.iter().map(|(hour, digest)| (hour.to_string(), Canonical::hex(digest)));
    let verdicts = of.coverage.hours.iter().map(|state| Canonical::text(state.verdict.name()));
    let settlement = market.settlement.map_or(Null, |settled| {
        let result = match settled.resolution {
            Resolution::Winner(outcome) => Integer(outcome as i128),
            Resolution::Split => Canonical::text("split"),
        };
        Canonical::object([("at_us", Integer(settled.at.0.into())), ("winner", result)])
    });
    // What was stated later than the first end is part of the document where there is something.
    let mut ends = market.end.until(until);
    let first = ends.next().and_then(|(_, end)| end);
    let end = |end: Option<Timestamp>| end.map_or(Null, |end| Integer(end.0.into()));
    let moved: Vec<_> = ends.map(|(at, to)| List([Integer(at.0.into()), end(to)].into())).collect();
    let moved = (!moved.is_empty()).then_some(("end_moved_us", List(moved)));
    let members = [
        ("condition", Canonical::text(&market.condition)),
        ("tokens", List(market.tokens.iter().map(|token| Canonical::text(token)).collect())),
        ("outcome", Integer(of.outcome as i128)),
        ("category", market.category.name().map_or(Null, Canonical::text)),
        ("tick_e4", Integer(market.tick.0.into())),
        ("end_us", end(first)),
        ("settlement", settlement),
        ("verdicts", List(verdicts.collect())),
        ("hours", Canonical::Object(hours.collect())),
    ];
    Canonical::Object(members.into_iter().chain(moved).map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The rules that decide market orders.
fn rules_of(rules: &Rules) -> Canonical {
    use Canonical::{Boolean, Integer};
    // Absent with the usual rounding, so that results of before keep their hash.
    let rounding = (rules.fees.rounding == FeeRounding::Down).then(|| ("fee_rounding", Canonical::text("down")));
    let rows = [
        ("fak_partial_fills", Boolean(rules.flags.fak_partial_fills)),
        ("min_order_size_enforced", Boolean(rules.flags.min_order_size_enforced)),
        ("max_shares_e6", Integer(rules.max_shares_per_order.0.into())),
        ("quote_age_enforced", Boolean(rules.quote_age_enforced)),
        ("quote_age_max_us", Integer(rules.quote_age_max_us.into())),
        ("require_book_depth", Boolean(rules.require_book_depth)),
        ("emergency_exit", Boolean(rules.emergency_exit)),
    ];
    Canonical::object(rows.into_iter().chain(rounding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let of = |count: i64| percentiles(&mut (1..=count).rev().map(Cash).collect::<Vec<_>>());
        for (count, expected) in [
            (0, None),
            (1, None),
            (2, Some([1, 1, 2])),
            (3, Some([1, 2, 3])),
            (20, Some([1, 10, 19])),
            (100, Some([5, 50, 95])),
            (256, Some([13, 128, 244])),
        ] {
            assert_eq!(of(count), expected.map(|cash| cash.map(Cash)), "{count}");
        }
    }
}
