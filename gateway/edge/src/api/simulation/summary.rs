//! Records of back-tests (gateway/docs/simulation.md §6).

use super::jobs::{JobProgress, JobTrade};
use super::provenance::FillModelName;
use super::spec::{Spec, TickModeName};
use crate::api::clob::ids::uuid_text;
use crate::api::orders::words::{SideName, side};
use crate::http::record::{ByName, record};
use crate::http::scalar::{
    ConditionId, MarketHours, MoneyIn2, MoneyIn4, Percentage, PriceIn4, Progress, Rate, SharesIn4, Timestamp, TokenId,
    Uuid, words,
};
use engine::amount::Cash;
use engine::backtest::{EquityPoint, Reason, TICKS_MAX};
use engine::time::SECOND;
use engine::user::Backtest;
use engine::user::backtests::{BacktestEnd, BacktestFigures};
use std::borrow::Cow;
use wire::decimal;

words! {
    pub JobStatus = "pending", "running", "completed", "failed", "cancelled";
    pub ReasonName = "entry", "exit", "settlement";
}

const CONDITION: &str = "0x5151515151515151515151515151515151515151515151515151515151515151";
const JOB: &str = "0d0b7a1e-5f0e-4c55-9a51-2f1f6f2c9d11";

record! {
    /// A back-test. Figures are null until it is completed.
    pub struct BacktestSummary<'a> {
        job_id: Uuid<'a> = JOB.into();
        status: JobStatus = "completed".into();
        condition_ids: Vec<ConditionId<'a>> = vec![CONDITION.into()];
        start: Timestamp = Timestamp::of("2026-09-30T17:00:00Z");
        end: Timestamp = Timestamp::of("2026-09-30T19:00:00Z");
        fill_model: FillModelName = "depth_walk".into();
        created_at: Timestamp = Timestamp::of("2026-10-02T09:00:00Z");
        started_at: Option<Timestamp> = Some(Timestamp::of("2026-10-02T09:00:01Z"));
        completed_at: Option<Timestamp> = Some(Timestamp::of("2026-10-02T09:00:03Z")), "When it ended, in any way.";
        error_message: Option<Cow<'a, str>> = None, "Why it failed.";
        initial_bankroll: Option<MoneyIn2> = Some(MoneyIn2::of("500"));
        total_pnl: Option<MoneyIn2> = Some(MoneyIn2::of("2.92"));
        total_return_pct: Option<Percentage<'a>> = Some("0.58".into());
        win_rate: Option<Rate<'a>> = Some("100.0%".into()), "Of the closed positions; null also without any.";
        max_drawdown: Option<Percentage<'a>> = Some("0.40".into()), "Deepest fall below the running peak.";
        num_trades: Option<u64> = Some(2);
        market_hours_charged: Option<MarketHours> = Some(MarketHours(2_000)), "What stays charged.";
        settlement_scored: bool = false, "A position was paid out.";
        tick_mode: Option<TickModeName> = Some("grid".into());
        ticks_evaluated: Option<u64> = Some(120);
        tick_degraded: bool = false, "There were fewer decisions than asked for.";
        tick_notice: Option<Cow<'a, str>> = None;
        is_replay: bool = false, "It was created by an earlier request with the same key.";
        universe_eligible: bool = true;
        token_ids: Option<ByName<Cow<'a, str>, TokenId<'a>>> = None, "Tokens that were named, by market.";
        progress: Progress = Progress(1_000);
        hours_done: Option<u64> = None, "While it runs.";
        hours_total: Option<u64> = None, "While it runs.";
        comparison: Option<BacktestComparison> = Some(BacktestComparison::example());
        result_hash: Option<Cow<'a, str>> =
            Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into()),
            "SHA-256 over everything that decides the result, and the result.";
    }

    /// The result beside that of the same strategy at midpoints without fees and delays, and over all seeds.
    pub struct BacktestComparison {
        naive_pnl: MoneyIn2 = MoneyIn2::of("4.00");
        honest_pnl: MoneyIn2 = MoneyIn2::of("2.92"), "Of the first seed.";
        gap: MoneyIn2 = MoneyIn2::of("1.08");
        p5: Option<MoneyIn2> = None, "Null for one seed.";
        p50: Option<MoneyIn2> = None;
        p95: Option<MoneyIn2> = None;
        fills_naive: u64 = 2;
        fills_honest: u64 = 2;
    }

    /// A page of back-tests.
    pub struct BacktestPage<'a> {
        pub data: Vec<BacktestSummary<'a>> = vec![BacktestSummary::example()];
        pub next_cursor: Option<String> = None, "Null: this is the last page.";
    }

    /// A trade of a back-test.
    pub struct BacktestTrade<'a> {
        ts: Timestamp = Timestamp::of("2026-09-30T17:22:00Z");
        condition_id: ConditionId<'a> = CONDITION.into();
        side: SideName = "BUY".into();
        outcome: Cow<'a, str> = "Yes".into(), "The outcome that was traded.";
        shares: SharesIn4 = SharesIn4::of("25");
        price: PriceIn4 = PriceIn4::of("0.31");
        fee: MoneyIn4 = MoneyIn4::of("0.2674");
        fill_model: FillModelName = "depth_walk".into();
        reason: ReasonName = "entry".into();
    }

    /// A page of trades.
    pub struct BacktestTradePage<'a> {
        pub data: Vec<BacktestTrade<'a>> = vec![BacktestTrade::example()];
        pub next_cursor: Option<String> = None, "Null: this is the last page.";
    }

    /// The value of the account at a moment of a back-test.
    pub struct BacktestPoint {
        ts: Timestamp = Timestamp::of("2026-09-30T17:22:00Z");
        equity: MoneyIn2 = MoneyIn2::of("499.48");
        cash: MoneyIn2 = MoneyIn2::of("491.98");
        position_value: MoneyIn2 = MoneyIn2::of("7.50");
    }

    /// A page of points.
    pub struct BacktestPointPage<'a> {
        pub data: Vec<BacktestPoint> = vec![BacktestPoint::example()];
        pub next_cursor: Option<Cow<'a, str>> = None, "Null: this is the last page.";
    }
}

impl BacktestSummary<'_> {
    /// A back-test and what was asked for; `progress` while it runs.
    pub fn new(
        job: &Backtest,
        spec: &Spec,
        progress: Option<JobProgress>,
        is_replay: bool,
    ) -> BacktestSummary<'static> {
        let end = job.ended.as_ref();
        let figures = end.and_then(|ended| ended.figures.as_ref());
        let status = match end.map(|ended| ended.end) {
            Some(BacktestEnd::Completed) => "completed",
            Some(BacktestEnd::Failed) => "failed",
            Some(BacktestEnd::Cancelled) => "cancelled",
            None if job.started_at.is_some() => "running",
            None => "pending",
        };
        let running = progress.filter(|_| status == "running");
        let done = match status {
            "completed" => 1_000,
            _ => running.map_or(0, |running| u64::from(running.done.min(1_000))),
        };
        let token = |(market, token): &(String, String)| (Cow::Owned(market.clone()), TokenId::from(token.clone()));
        BacktestSummary {
            job_id: uuid_text(&job.id).into(),
            status: status.into(),
            condition_ids: spec.conditions.iter().map(|id| id.clone().into()).collect(),
            start: Timestamp(spec.start),
            end: Timestamp(spec.end),
            fill_model: spec.strategy.model.into(),
            created_at: Timestamp(job.created_at),
            started_at: job.started_at.get().map(Timestamp),
            completed_at: end.map(|ended| Timestamp(ended.at)),
            error_message: end.and_then(|ended| Some(Cow::Owned(ended.error.as_deref()?.to_owned()))),
            initial_bankroll: Some(MoneyIn2(spec.bankroll)),
            total_pnl: figures.map(|of| MoneyIn2(of.total_pnl)),
            total_return_pct: figures.map(|of| return_pct(of.total_pnl, spec.bankroll)),
            win_rate: figures.and_then(win_rate),
            max_drawdown: figures.map(|of| percent(of.max_drawdown as i128)),
            num_trades: figures.map(|of| of.trades),
            market_hours_charged: Some(MarketHours(job.net_charge())),
            settlement_scored: figures.is_some_and(|of| of.settlement_scored),
            tick_mode: figures.map(|of| if of.event_ticks { "event" } else { "grid" }.into()),
            ticks_evaluated: figures.map(|of| of.ticks),
            tick_degraded: figures.is_some_and(|of| of.degraded),
            tick_notice: figures.filter(|of| of.degraded).map(|of| notice(of.step).into()),
            is_replay,
            // A market below the minimum is refused at the creation.
            universe_eligible: true,
            token_ids: (!spec.tokens.is_empty()).then(|| ByName(spec.tokens.iter().map(token).collect())),
            progress: Progress(done),
            hours_done: running.map(|running| running.hours_done),
            hours_total: running.map(|running| running.hours_total),
            comparison: figures.map(BacktestComparison::new),
            result_hash: figures.map(|of| of.hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()),
        }
    }
}

fn notice(step: u64) -> String {
    format!("A run has at most {TICKS_MAX} ticks: these are {} s apart.", step / SECOND)
}

impl BacktestComparison {
    fn new(figures: &BacktestFigures) -> BacktestComparison {
        let percentile = |at: usize| figures.percentiles.get(at).copied().map(MoneyIn2);
        BacktestComparison {
            naive_pnl: MoneyIn2(figures.naive_pnl),
            honest_pnl: MoneyIn2(figures.total_pnl),
            gap: MoneyIn2(figures.naive_pnl - figures.total_pnl),
            p5: percentile(0),
            p50: percentile(1),
            p95: percentile(2),
            fills_naive: figures.fills_naive,
            fills_honest: figures.fills_honest,
        }
    }
}

impl BacktestTrade<'_> {
    pub fn new(of: &JobTrade, spec: &Spec) -> BacktestTrade<'static> {
        let trade = &of.trade;
        BacktestTrade {
            ts: Timestamp(trade.at),
            condition_id: spec.conditions.get(trade.market).cloned().unwrap_or_default().into(),
            side: side(trade.side).into(),
            outcome: of.outcome.to_string().into(),
            shares: SharesIn4(trade.shares),
            price: PriceIn4(trade.price),
            fee: MoneyIn4(trade.fee),
            fill_model: spec.strategy.model.into(),
            reason: Reason::name(trade.reason).into(),
        }
    }
}

impl BacktestPoint {
    pub fn new(point: &EquityPoint) -> BacktestPoint {
        BacktestPoint {
            ts: Timestamp(point.at),
            equity: MoneyIn2(point.equity()),
            cash: MoneyIn2(point.cash),
            position_value: MoneyIn2(point.position_value),
        }
    }
}

/// A percentage in hundredths as a text.
fn percent(hundredths: i128) -> Percentage<'static> {
    let micros = i64::try_from(hundredths * 10_000).unwrap_or(i64::MAX);
    decimal::text(|out| decimal::exactly::<2>(out, micros)).into()
}

/// The return in percent, a half of the last digit away from zero.
fn return_pct(pnl: Cash, bankroll: Cash) -> Percentage<'static> {
    let (pnl, bankroll) = (i128::from(pnl.0), i128::from(bankroll.0.max(1)));
    let magnitude = (pnl.abs() * 20_000 + bankroll) / (2 * bankroll);
    percent(magnitude * pnl.signum())
}

fn win_rate(figures: &BacktestFigures) -> Option<Rate<'static>> {
    (figures.closed > 0).then(|| decimal::text(|out| decimal::win_rate(out, figures.won, figures.closed)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_two_decimals() {
        let of = |pnl, bankroll| return_pct(Cash(pnl), Cash(bankroll)).0.into_owned();
        for (pnl, bankroll, text) in [
            (2_923_240, 500_000_000, "0.58"),
            (-2_923_240, 500_000_000, "-0.58"),
            (25_000, 500_000_000, "0.01"),
            (24_999, 500_000_000, "0.00"),
            (-24_999, 500_000_000, "0.00"),
            (5_000_000_000, 500_000_000, "1000.00"),
        ] {
            assert_eq!(of(pnl, bankroll), text, "{pnl} of {bankroll}");
        }
        assert_eq!(percent(40).0, "0.40");
    }
}
