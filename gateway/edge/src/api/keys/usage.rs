//! `GET /v1/keys/{id}/usage` (`gateway/docs/keys.md §7`). The figures are counted by this process and start at zero
//! with it. `last_used_at` is in the journal and survives a restart.

use super::{key, view};
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Route};
use crate::http::scalar::{self, words};
use crate::http::schema::{Param, Schema};
use crate::http::usage::{BUCKETS_MS, DAYS_MAX, HOURS_MAX, HourRow, RECENT, RecentRow, Report, percentile_ms};
use engine::command::{Answer, Command, Query};
use engine::time::Timestamp;
use engine::user::Tier;
use engine::view::KeyView;
use wire::fields::Params;
use wire::instant;

const DAYS_DEFAULT: u64 = 30;
const HOURS_DEFAULT: u64 = 24;

pub(super) const GET: Route = Route::get("/v1/keys/{id}/usage", "get_key_usage")
    .about(
        "What a key was used for since the server started: requests by day and hour, latency, the last fifty. \
         An operation on `/v1/ws/trade` is a request; handshakes and other frames are none.",
    )
    .auth(Auth::KeyOrJwt)
    .params(&[
        Param::query("hours", Schema::Integer { min: 1, max: HOURS_MAX as i64 }, "Hours to show; default: 24."),
        Param::query("days", Schema::Integer { min: 1, max: DAYS_MAX as i64 }, "Days to show; default: 30."),
    ])
    .gives::<KeyUsage>(200)
    .fails(&[Code::KeyNotFound, Code::ValidationFailed])
    .run(|call| Box::pin(usage(call)));

words! {
    Method = "GET", "HEAD", "POST", "PATCH", "DELETE";
}

record! {
    /// One UTC day of a key.
    struct UsageDay {
        date: String = "2026-10-02".to_owned(), "`YYYY-MM-DD`.";
        requests: u64 = 2;
    }

    /// One hour of a key.
    struct UsageHour {
        hour: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:00:00Z"), "Its beginning.";
        requests: u64 = 2;
        errors: u64 = 1, "Those of them with a status of 400 and more.";
    }

    /// Requests by the milliseconds they took at most.
    struct UsageBuckets {
        #[serde(rename = "50")]
        to_50: u64 = 2;
        #[serde(rename = "100")]
        to_100: u64 = 0;
        #[serde(rename = "250")]
        to_250: u64 = 0;
        #[serde(rename = "500")]
        to_500: u64 = 0;
        #[serde(rename = "1000")]
        to_1000: u64 = 0;
        inf: u64 = 0, "Longer ones.";
    }

    /// How long the requests of the hours shown took, until the head of their answer.
    struct UsageLatency {
        samples: u64 = 2;
        p50_ms: Option<u64> = Some(50), "Upper bound of its bucket; null where that has none.";
        p99_ms: Option<u64> = Some(50), "The same.";
        buckets: UsageBuckets = UsageBuckets::example();
    }

    /// One request.
    struct UsageRequest<'a> {
        status: u16 = 404;
        method: Method = "GET".into();
        route: &'a str = "/v1/orders/{order_id}", "The route's template: no id that was sent.";
        latency_ms: u64 = 1, "Rounded up.";
        at: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:14:05Z"), "When its head was read.";
    }

    /// What a key was used for since the server started.
    struct KeyUsage<'a> {
        key_prefix: &'a str = "svc_live_4f0c9d2";
        days: Vec<UsageDay> = Vec::example(), "Oldest first, today last.";
        month_to_date: u64 = 2, "Requests of this UTC month.";
        monthly_request_cap: u64 = monthly_cap(Tier::Free), "By tier; informative, not enforced.";
        hours: Vec<UsageHour> = Vec::example(), "Oldest first, the present hour last.";
        latency: UsageLatency = UsageLatency::example();
        #[schemars(length(min = 0, max = RECENT))]
        recent: Vec<UsageRequest<'a>> = Vec::example(), "The last fifty requests, newest first.";
    }
}

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
    let report = call.front().usage.report(call.reads().directory.slot(key), days, hours, call.now);
    let tier = view::served(shown, super::moment(&call)).tier;
    Ok(Reply::json(&KeyUsage::new(shown, tier, &report)))
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

impl<'a> KeyUsage<'a> {
    /// `tier` is that of this moment.
    fn new(key: &'a KeyView, tier: Tier, report: &Report) -> KeyUsage<'a> {
        let day = |(day, requests): &(Timestamp, u64)| UsageDay {
            date: instant::ts_text(*day)[..10].to_owned(),
            requests: *requests,
        };
        let hour =
            |row: &HourRow| UsageHour { hour: scalar::Timestamp(row.at), requests: row.requests, errors: row.errors };
        KeyUsage {
            key_prefix: &key.prefix,
            days: report.days.iter().map(day).collect(),
            month_to_date: report.month_to_date,
            monthly_request_cap: monthly_cap(tier),
            hours: report.hours.iter().map(hour).collect(),
            latency: latency(report.latency),
            recent: report.recent.iter().map(request).collect(),
        }
    }
}

/// The latency of these requests by bucket.
fn latency(counts: [u64; BUCKETS_MS.len() + 1]) -> UsageLatency {
    let [to_50, to_100, to_250, to_500, to_1000, inf] = counts;
    UsageLatency {
        samples: counts.iter().sum(),
        p50_ms: percentile_ms(&counts, 50),
        p99_ms: percentile_ms(&counts, 99),
        buckets: UsageBuckets { to_50, to_100, to_250, to_500, to_1000, inf },
    }
}

fn request(row: &RecentRow) -> UsageRequest<'static> {
    let RecentRow { status, method, route, latency_ms, at } = *row;
    UsageRequest { status, method: method.into(), route, latency_ms, at: scalar::Timestamp(at) }
}
