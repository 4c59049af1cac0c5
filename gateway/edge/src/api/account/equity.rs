//! `GET /v1/account/equity`: what the account was worth at each full hour, or each full minute of the last day, and what it
//! is worth now (engine/docs/account.md §5).

use super::marks;
use super::valuation::Valuation;
use crate::api::refuse::unexpected;
use crate::api::wallets::{self, WALLET_ID};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::scalar::{self, Money, words};
use crate::http::schema::{Param, Schema};
use engine::amount::{Cash, nearest};
use engine::command::{Answer, Command, Query, Wallets};
use engine::time::{DAY, HOUR, Timestamp};
use engine::user::equity::EquityRow;
use wire::fields::Params;

const DAYS_MAX: u64 = 90;
const DAYS_DEFAULT: u64 = 7;
const LIMIT_MAX: u64 = 2_200;

words! {
    FidelityName = "hour", "minute";
}

record! {
    /// What wallets were worth at a moment.
    struct EquityPoint {
        timestamp: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:00:00Z"),
            "A full hour or minute; of the last point, now.";
        cash_balance: Money = Money::of("100"), "Cash, what is reserved included.";
        position_value: Money = Money::of("0"), "Open positions at their marks, at their cost where there is none.";
        total_value: Money = Money::of("100");
        pnl: Money = Money::of("0"), "total_value less what the wallets began with.";
    }
}

/// The time between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fidelity {
    Hour,
    Minute,
}

pub const GET: Route = Route::get("/v1/account/equity", "get_equity")
    .about("What the wallets were worth at each full hour, or minute, oldest first; the last point is of this moment.")
    .auth(Auth::Key)
    .needs(Permission::Read)
    .params(&[
        Param::query(
            "days",
            Schema::Integer { min: 1, max: DAYS_MAX as i64 },
            "How far back; 7 where absent. By the minute it is 1 or absent.",
        ),
        Param::query("limit", Schema::Integer { min: 1, max: LIMIT_MAX as i64 }, "The most points; the newest ones."),
        Param::query(
            "fidelity",
            Schema::of::<FidelityName>(),
            "The time between two points; `hour` where absent. `minute` goes back 24 hours, as far as the wallets were \
             followed by the minute, and has the points of the full hours before that.",
        ),
        WALLET_ID,
    ])
    .gives::<Vec<EquityPoint>>(200)
    .fails(&[Code::ValidationFailed, Code::WalletNotFound])
    .run(|call| Box::pin(equity(call)));

async fn equity(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let days = params.integer("days", 1..=DAYS_MAX);
    let fidelity =
        params.choice("fidelity", &[("hour", Fidelity::Hour), ("minute", Fidelity::Minute)]).unwrap_or(Fidelity::Hour);
    if fidelity == Fidelity::Minute && days.is_some_and(|days| days > 1) {
        params.problems.add("query", "days", "less_than_equal", "must be 1 if `fidelity` is `minute`");
    }
    let limit = params.integer("limit", 1..=LIMIT_MAX);
    let wallets = wallets::in_query(&query, &mut params.problems).unwrap_or(Wallets::Api);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let points = match fidelity {
        Fidelity::Hour => Query::Equity { wallets, first: first_hour(call.now, days.unwrap_or(DAYS_DEFAULT)) },
        Fidelity::Minute => Query::EquityByMinute { wallets },
    };
    let view = match call.ask(Command::Query(points)).await? {
        Answer::Equity(view) => view,
        other => return Err(unexpected(&other, call.now)),
    };
    let now = live(&super::valuation(&view.account, marks(&call)), call.reads().clock.now());
    let rows_count = view.rows.len() + 1;
    let skipped = limit.map_or(0, |limit| rows_count.saturating_sub(limit as usize));
    let rows: Vec<_> = view.rows.iter().chain([&now]).skip(skipped).map(EquityPoint::new).collect();
    Ok(Reply::json(&rows))
}

/// The first full hour that is at most `days` days old.
fn first_hour(now: Timestamp, days: u64) -> u32 {
    Timestamp(now.0.saturating_sub(days * DAY).saturating_add(HOUR - 1)).hour()
}

/// The point of this moment.
fn live(valuation: &Valuation, at: Timestamp) -> EquityRow {
    let cash = valuation.available + valuation.reserved;
    EquityRow { at, cash, value: difference(valuation.total, cash), baseline: valuation.starting }
}

impl EquityPoint {
    fn new(row: &EquityRow) -> EquityPoint {
        let total = nearest(i128::from(row.cash.0) + i128::from(row.value.0));
        EquityPoint {
            timestamp: scalar::Timestamp(row.at),
            cash_balance: Money(row.cash),
            position_value: Money(row.value),
            total_value: Money(total),
            pnl: Money(difference(total, row.baseline)),
        }
    }
}

fn difference(from: Cash, less: Cash) -> Cash {
    nearest(i128::from(from.0) - i128::from(less.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_go_back_to_a_full_hour() {
        let nine = Timestamp(1_790_931_600_000_000);
        for (after_us, days, hours_back) in [(0, 1, 24), (1, 1, 23), (HOUR - 1, 1, 23), (0, 7, 168), (1, 90, 2_159)] {
            let first = first_hour(nine.plus(after_us), days);
            assert_eq!(nine.hour() - first, hours_back, "{after_us} µs past nine, {days} days");
        }
        assert_eq!(first_hour(Timestamp(5), 90), 0);
    }
}
