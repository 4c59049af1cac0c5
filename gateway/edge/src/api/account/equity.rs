//! `GET /v1/account/equity`: what the account was worth at each full hour, or each full minute of the last day, and what it
//! is worth now (account.md §4).

use super::valuation::Balance;
use super::{balance_of, marks};
use crate::api::refuse::unexpected;
use crate::api::wallets::{self, WALLET_ID};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::schema::{MONEY, Param, Schema, Shape, TS, field};
use engine::amount::Cash;
use engine::amount::nearest;
use engine::command::{Answer, Command, Query, Wallets};
use engine::time::{DAY, HOUR, Timestamp};
use engine::user::equity::EquityRow;
use wire::fields::Params;
use wire::write::{array, object};

const DAYS_MAX: u64 = 90;
const DAYS_DEFAULT: u64 = 7;
const LIMIT_MAX: u64 = 2_200;
const ROW_BYTES: usize = 144;

/// What lies between two points.
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
        Param::query("limit", Schema::Integer { min: 1, max: LIMIT_MAX as i64 }, "At most so many, the newest."),
        Param::query(
            "fidelity",
            Schema::Word(&["hour", "minute"]),
            "What lies between two points; `hour` where absent. `minute` goes back 24 hours, as far as the wallets were \
             followed by the minute, and has the points of the full hours before that.",
        ),
        WALLET_ID,
    ])
    .gives_shape(
        200,
        &Schema::Array(&POINT),
        r#"[{"timestamp":"2026-10-02T09:00:00Z","cash_balance":"100.00","position_value":"0.00","total_value":"100.00","pnl":"0.00"}]"#,
    )
    .fails(&[Code::ValidationFailed, Code::WalletNotFound])
    .run(|call| Box::pin(equity(call)));

const POINT: Schema = Schema::Object(&Shape::new(
    "EquityPoint",
    "What wallets were worth at a moment.",
    &[
        field("timestamp", TS, "A full hour or minute; of the last point, now."),
        field("cash_balance", MONEY, "Cash, what is reserved included."),
        field("position_value", MONEY, "Open positions at their marks, at their cost where there is none."),
        field("total_value", MONEY, ""),
        field("pnl", MONEY, "total_value less what the wallets began with."),
    ],
));

async fn equity(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let days = params.integer("days", 1..=DAYS_MAX);
    let fidelity =
        params.choice("fidelity", &[("hour", Fidelity::Hour), ("minute", Fidelity::Minute)]).unwrap_or(Fidelity::Hour);
    if fidelity == Fidelity::Minute && days.is_some_and(|days| days > 1) {
        params.problems.add("query", "days", "less_than_equal", "is above 1, and `fidelity` is `minute`");
    }
    let limit = params.integer("limit", 1..=LIMIT_MAX);
    let wallets = wallets::in_query(&query, &mut params.problems).unwrap_or(Wallets::Api);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let asked = match fidelity {
        Fidelity::Hour => Query::Equity { wallets, first: first_hour(call.now, days.unwrap_or(DAYS_DEFAULT)) },
        Fidelity::Minute => Query::EquityByMinute { wallets },
    };
    let view = match call.ask(Command::Query(asked)).await? {
        Answer::Equity(view) => view,
        other => return Err(unexpected(&other, call.now)),
    };
    let now = live(&balance_of(&view.account, marks(&call)), call.reads().clock.now());
    let rows_count = view.rows.len() + 1;
    let passed_over = limit.map_or(0, |limit| rows_count.saturating_sub(limit as usize));
    let rows = view.rows.iter().chain([&now]).skip(passed_over);
    let mut out = Vec::with_capacity(16 + ROW_BYTES * (rows_count - passed_over));
    array(&mut out, rows, write);
    Ok(Reply::json(out))
}

/// The first full hour that is not older than so many days.
fn first_hour(now: Timestamp, days: u64) -> u32 {
    Timestamp(now.0.saturating_sub(days * DAY).saturating_add(HOUR - 1)).hour()
}

/// The point of this moment.
fn live(balance: &Balance, at: Timestamp) -> EquityRow {
    let cash = balance.available + balance.reserved;
    EquityRow { at, cash, value: difference(balance.total, cash), baseline: balance.starting }
}

fn write(out: &mut Vec<u8>, row: &EquityRow) {
    let total = nearest(i128::from(row.cash.0) + i128::from(row.value.0));
    object(out, |o| {
        o.ts("timestamp", row.at);
        o.money("cash_balance", row.cash);
        o.money("position_value", row.value);
        o.money("total_value", total);
        o.money("pnl", difference(total, row.baseline));
    });
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
