//! `GET /v1/keys/{id}/usage` (keys.md §7). The figures are those of this process: they begin anew with a start of the
//! server. `last_used_at` is in the journal, and stays.

use super::{key, view};
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Route};
use crate::http::schema::{INTEGER, Param, Schema, Shape, TEXT, TS, field};
use crate::http::usage::{BUCKETS_MS, DAYS_MAX, HOURS_MAX, RecentRow, Report, percentile_ms};
use engine::command::{Answer, Command, Query};
use engine::user::Tier;
use engine::view::KeyView;
use wire::fields::Params;
use wire::instant;
use wire::write::{Object, object};

const DAYS_DEFAULT: u64 = 30;
const HOURS_DEFAULT: u64 = 24;

pub(super) const GET: Route = Route::get("/v1/keys/{id}/usage", "get_key_usage")
    .about(
        "What a key was used for since the server started: requests by day and hour, latency, the last fifty. \
         An operation on `/v1/ws/trade` is a request; handshakes and other frames are none.",
    )
    .auth(Auth::KeyOrJwt)
    .params(&[
        Param::query("hours", Schema::Integer { min: 1, max: HOURS_MAX as i64 }, "Hours to show; 24 without it."),
        Param::query("days", Schema::Integer { min: 1, max: DAYS_MAX as i64 }, "Days to show; 30 without it."),
    ])
    .gives(200, &Schema::Object(&USAGE), EXAMPLE)
    .fails(&[Code::KeyNotFound, Code::ValidationFailed])
    .run(|call| Box::pin(usage(call)));

const DAY: Shape = Shape::new(
    "UsageDay",
    "One UTC day of a key.",
    &[field("date", TEXT, "`YYYY-MM-DD`."), field("requests", INTEGER, "")],
);
const HOUR: Shape = Shape::new(
    "UsageHour",
    "One hour of a key.",
    &[
        field("hour", TS, "Its beginning."),
        field("requests", INTEGER, ""),
        field("errors", INTEGER, "Those of them with a status of 400 and more."),
    ],
);
const BUCKETS: Shape = Shape::new(
    "UsageBuckets",
    "Requests by the milliseconds they took at most.",
    &[
        field("50", INTEGER, ""),
        field("100", INTEGER, ""),
        field("250", INTEGER, ""),
        field("500", INTEGER, ""),
        field("1000", INTEGER, ""),
        field("inf", INTEGER, "Longer ones."),
    ],
);
const LATENCY: Shape = Shape::new(
    "UsageLatency",
    "How long the requests of the hours shown took, until the head of their answer.",
    &[
        field("samples", INTEGER, ""),
        field("p50_ms", Schema::Nullable(&INTEGER), "Upper bound of its bucket; null where that has none."),
        field("p99_ms", Schema::Nullable(&INTEGER), "The same."),
        field("buckets", Schema::Object(&BUCKETS), ""),
    ],
);
const RECENT: Shape = Shape::new(
    "UsageRequest",
    "One request.",
    &[
        field("status", INTEGER, ""),
        field("method", Schema::Word(&["GET", "HEAD", "POST", "PATCH", "DELETE"]), ""),
        field("route", TEXT, "The route's template: no id that was sent."),
        field("latency_ms", INTEGER, "Rounded up."),
        field("at", TS, "When its head was read."),
    ],
);
const USAGE: Shape = Shape::new(
    "KeyUsage",
    "What a key was used for since the server started.",
    &[
        field("key_prefix", TEXT, ""),
        field("days", Schema::Array(&Schema::Object(&DAY)), "Oldest first, today last."),
        field("month_to_date", INTEGER, "Requests of this UTC month."),
        field("monthly_request_cap", INTEGER, "By tier; informative, not enforced."),
        field("hours", Schema::Array(&Schema::Object(&HOUR)), "Oldest first, the present hour last."),
        field("latency", Schema::Object(&LATENCY), ""),
        field(
            "recent",
            Schema::List { of: &Schema::Object(&RECENT), min: 0, max: 50 },
            "The last fifty requests, newest first.",
        ),
    ],
);
const EXAMPLE: &str = r#"{"key_prefix":"svc_live_4f0c9d2","days":[{"date":"2026-10-02","requests":2}],"month_to_date":2,
"monthly_request_cap":100000,"hours":[{"hour":"2026-10-02T09:00:00Z","requests":2,"errors":1}],
"latency":{"samples":2,"p50_ms":50,"p99_ms":50,"buckets":{"50":2,"100":0,"250":0,"500":0,"1000":0,"inf":0}},
"recent":[{"status":404,"method":"GET","route":"/v1/orders/{order_id}","latency_ms":1,"at":"2026-10-02T09:14:05Z"}]}"#;

async fn usage(call: Call) -> Outcome {
    let key = key(&call)?;
    let query = call.query();
    let mut params = Params::new(&query);
    let hours = params.integer("hours", 1..=HOURS_MAX).unwrap_or(HOURS_DEFAULT);
    let days = params.integer("days", 1..=DAYS_MAX).unwrap_or(DAYS_DEFAULT);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let keys = match call.ask(Command::Query(Query::Keys)).await? {
        Answer::Keys(keys) => keys,
        other => return Err(unexpected(&other, call.now)),
    };
    let shown = keys.iter().find(|shown| shown.id == key).ok_or(Code::KeyNotFound)?;
    let app = call.app();
    let report = app.front.usage.report(app.reads.directory.slot(key), days, hours, call.now);
    let tier = view::served_tier(shown, super::moment(&call));
    let mut out = Vec::with_capacity(4_096);
    object(&mut out, |o| fields(o, shown, tier, &report));
    Ok(Reply::json(out))
}

/// Requests a month that a tier is meant for.
fn monthly_cap(tier: Tier) -> u64 {
    match tier {
        Tier::Free => 100_000,
        Tier::Pro => 1_000_000,
        Tier::ProPlus => 5_000_000,
        Tier::Enterprise => 50_000_000,
    }
}

fn fields(o: &mut Object<'_>, key: &KeyView, tier: Tier, report: &Report) {
    o.text("key_prefix", &key.prefix);
    o.array("days", &report.days, |out, (day, requests)| {
        object(out, |o| {
            o.text("date", &instant::ts_text(*day)[..10]);
            o.integer("requests", *requests);
        });
    });
    o.integer("month_to_date", report.month_to_date);
    o.integer("monthly_request_cap", monthly_cap(tier));
    o.array("hours", &report.hours, |out, hour| {
        object(out, |o| {
            o.ts("hour", hour.at);
            o.integer("requests", hour.requests);
            o.integer("errors", hour.errors);
        });
    });
    o.object("latency", |o| {
        o.integer("samples", report.latency.iter().sum());
        o.integer_or_null("p50_ms", percentile_ms(&report.latency, 50));
        o.integer_or_null("p99_ms", percentile_ms(&report.latency, 99));
        o.object("buckets", |o| {
            for (bound, count) in BUCKETS_MS.iter().zip(report.latency) {
                o.integer(&bound.to_string(), count);
            }
            o.integer("inf", report.latency[BUCKETS_MS.len()]);
        });
    });
    o.array("recent", &report.recent, |out, row| object(out, |o| request(o, row)));
}

fn request(o: &mut Object<'_>, row: &RecentRow) {
    o.integer("status", row.status.into());
    o.word("method", row.method);
    o.text("route", row.route);
    o.integer("latency_ms", row.latency_ms);
    o.ts("at", row.at);
}
