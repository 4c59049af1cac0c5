//! `GET /v1/simulation/quota`: what the plan allows of back-tests, and what is used (gateway/docs/simulation.md §8).

use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::record::record;
use crate::http::reply::{Outcome, Reply};
use crate::http::scalar::{Digits, MarketHours};
use engine::command::{Answer, Command, Query};
use engine::rules::{BacktestCaps, backtest_caps};
use engine::user::BacktestMeter;
use engine::user::key::entitlement;

record! {
    /// Limits of back-tests, and what is used in a calendar month of UTC. A null limit has no bound.
    pub struct BacktestQuota {
        month: Digits = Digits(202_610), "`YYYYMM`.";
        backtests_used: u64 = 1;
        backtests_limit: Option<u64> = Some(100);
        market_hours_used: MarketHours = MarketHours(3_250);
        market_hours_limit: Option<u64> = Some(720);
        max_days: Option<u64> = Some(30), "Days of a window.";
        max_markets: Option<u64> = Some(25), "Markets of a back-test.";
    }
}

/// What the caller may use: by the plan, or by a subscription of the simulation if that has more (gateway/docs/billing.md
/// §2).
pub fn caps(call: &Call) -> BacktestCaps {
    let caller = call.caller();
    let own = call.reads().directory.simulation_plan(caller.user);
    backtest_caps(entitlement(caller.grant, call.now).max(entitlement(own, call.now)))
}

pub async fn quota(call: Call) -> Outcome {
    let month = call.now.month();
    let caps = caps(&call);
    match call.ask(Command::Query(Query::BacktestMeter(month))).await? {
        Answer::BacktestMeter(BacktestMeter { month, jobs, hours }) => Ok(Reply::json(&BacktestQuota {
            month: Digits(month.into()),
            backtests_used: jobs.into(),
            backtests_limit: Some(caps.jobs_per_month),
            market_hours_used: MarketHours(hours),
            market_hours_limit: Some(caps.market_hours_per_month),
            max_days: Some(caps.days),
            max_markets: Some(caps.markets),
        })),
        other => Err(unexpected(&other, call.now)),
    }
}
