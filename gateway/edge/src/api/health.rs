//! Health and status (market-data.md §11). Whether the store works is asked of the store: a query takes the road that
//! orders take, so an answer to it was released like theirs.

mod shape;

use crate::app::App;
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::http::route::{RateClass, Route};
use crate::reads::Reads;
use engine::command::{Command, Query};
use engine::id::UserId;
use engine::time::{SECOND, Timestamp};
use hyper::StatusCode;
use parking_lot::Mutex;
use std::path::Path;
use wire::decimal;
use wire::write::Object;

/// The version of the wire (wire.md §12).
pub const API_VERSION: &str = "1.0.0-beta";
/// Files of the data directory that are looked at.
const FILES_MAX: usize = 10_000;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/health", "get_health")
        .about("That the process runs.")
        .rate(RateClass::Exempt)
        .no_store()
        .gives_shape(200, &shape::HEALTH, shape::HEALTH_EXAMPLE)
        .run(|call| Box::pin(health(call))),
    Route::get("/v1/health/live", "get_liveness")
        .about("The same under the name that orchestrators use.")
        .rate(RateClass::Exempt)
        .no_store()
        .gives_shape(200, &shape::HEALTH, shape::HEALTH_EXAMPLE)
        .run(|call| Box::pin(live(call))),
    Route::get("/v1/health/ready", "get_readiness")
        .about("Whether orders can be taken: 503 while the store is unusable or no market is known.")
        .rate(RateClass::Exempt)
        .no_store()
        .gives_shape(200, &shape::READINESS, shape::READINESS_EXAMPLE)
        .gives_shape(503, &shape::READINESS, shape::READINESS_EXAMPLE)
        .run(|call| Box::pin(ready(call))),
    Route::get("/v1/health/version", "get_version")
        .about("What was built.")
        .no_store()
        .gives_shape(200, &shape::VERSION, r#"{"git_sha":"unknown","version":"1.0.0-beta"}"#)
        .run(|call| Box::pin(version(call))),
    Route::get("/v1/status", "get_status")
        .about("How each part of the server is.")
        .no_store()
        .gives_shape(200, &shape::STATUS, shape::STATUS_EXAMPLE)
        .run(|call| Box::pin(status(call))),
];

/// What is told of parts that the edge does not know.
pub trait Instruments: Send + Sync {
    /// Figures of the core and the feed; `connections` is the edge's own.
    fn vitals(&self) -> Vitals;

    /// Where the recording stands that is replayed, if one is.
    fn recording(&self) -> Option<Playback>;
}

/// Where a replayed recording stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Playback {
    /// The recording's clock; `None` before its first line.
    pub at: Option<Timestamp>,
    /// The last line has been played.
    pub has_ended: bool,
    /// The pace of its clock, in words; `None` where the recording is followed as it grows.
    pub speed: Option<String>,
}

/// Figures of the core and the feed, which the process keeps anyway ([`App::vitals`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vitals {
    /// Server time of the last record.
    pub last_commit_at: Option<Timestamp>,
    /// Server time of the last word of the venue, and of the last matching cycle with its length.
    pub last_message_at: Option<Timestamp>,
    pub last_cycle_at: Option<Timestamp>,
    pub last_cycle_us: u64,
    /// Resting orders.
    pub pending_orders: u64,
    /// WebSocket connections of clients.
    pub connections: u64,
    /// Sockets to venues that are open.
    pub upstream_connections: u64,
    /// Tokens whose books come from them; `None` where there are no live venues.
    pub subscribed_tokens: Option<u64>,
}

async fn health(call: Call) -> Outcome {
    Ok(said("ok", &call))
}

async fn live(call: Call) -> Outcome {
    Ok(said("alive", &call))
}

fn said(status: &'static str, call: &Call) -> Reply {
    Reply::object(|o| {
        o.word("status", status);
        o.ts("timestamp", call.now);
        o.word("version", API_VERSION);
        o.text("instance", &call.app().instance.id);
    })
}

async fn version(call: Call) -> Outcome {
    Ok(Reply::object(|o| {
        o.word("git_sha", call.front().settings.git_sha());
        o.word("version", API_VERSION);
    }))
}

/// How the parts are.
struct Checked {
    /// The store answered, after so many µs.
    store_us: Option<u64>,
    vitals: Vitals,
    markets: Markets,
    outage: bool,
    /// The price history has failed.
    charts_lost: bool,
}

/// What the catalogue holds, counted at most once a second: probes come as often as they like.
#[derive(Default)]
pub struct Census(Mutex<Option<(Timestamp, Markets)>>);

impl Census {
    fn of(&self, reads: &Reads, now: Timestamp) -> Markets {
        let mut counted = self.0.lock();
        match *counted {
            Some((at, markets)) if now.since(at) < SECOND => markets,
            _ => counted.insert((now, Markets::of(reads, now))).1,
        }
    }
}

/// What the catalogue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Markets {
    known: u64,
    active: u64,
    hot: u64,
    /// Tokens of markets that are not resolved.
    tokens: u64,
    synced_at: Option<Timestamp>,
}

impl Markets {
    fn of(reads: &Reads, now: Timestamp) -> Markets {
        let mut markets = Markets { known: reads.catalog.len() as u64, ..Markets::default() };
        for cell in reads.catalog.iter() {
            let phase = super::markets::view::Phase::of(cell, now);
            markets.active += u64::from(phase.active);
            markets.hot += u64::from(super::markets::view::is_hot(cell));
            markets.tokens += if phase.resolved { 0 } else { 2 };
            markets.synced_at = markets.synced_at.max(cell.figures_at()).max(Some(cell.listed_at));
        }
        markets
    }
}

async fn checked(call: &Call) -> Checked {
    let app = call.app();
    let asked_at = app.reads.clock.now();
    // Any user will do, known or not: what counts is that there is an answer.
    let answer = call.edge.engine.ask(UserId(1), Command::Query(Query::User), asked_at).await;
    Checked {
        store_us: answer.ok().map(|_| app.reads.clock.now().since(asked_at)),
        vitals: app.vitals(),
        markets: app.instance.census.of(&app.reads, call.now),
        outage: app.reads.books.outage(),
        charts_lost: app.reads.history.is_lost(),
    }
}

async fn ready(call: Call) -> Outcome {
    let checked = checked(&call).await;
    let usable = checked.store_us.is_some() && checked.markets.known > 0;
    let reply = Reply::object(|o| {
        o.word("status", if usable && !checked.outage && !checked.charts_lost { "ok" } else { "degraded" });
        o.ts("timestamp", call.now);
        o.object("checks", |o| checks(o, &checked, call.now));
    });
    Ok(if usable { reply } else { reply.with_status(StatusCode::SERVICE_UNAVAILABLE) })
}

fn checks(o: &mut Object<'_>, checked: &Checked, now: Timestamp) {
    let markets = checked.markets;
    let loaded = if markets.known > 0 { "ok" } else { "loading" };
    o.object("database", |o| store(o, checked));
    o.object("upstream", |o| {
        o.word("status", if checked.outage { "outage" } else { "ok" });
        let age = checked.vitals.last_message_at.map(|at| now.since(at) / 1_000);
        o.integer_or_null("last_message_age_ms", age);
        o.integer("subscribed_tokens", checked.vitals.subscribed_tokens.unwrap_or(markets.tokens));
    });
    o.object("market_cache", |o| {
        o.word("status", loaded);
        o.integer("cached_markets", markets.known);
    });
    // For readers of the old shape: the cache is in this process.
    o.object("redis", |o| {
        o.word("status", loaded);
        o.integer("latency_ms", 0);
        o.integer("cached_markets", markets.known);
    });
}

/// Status of the store, and how long its answer took.
fn store(o: &mut Object<'_>, checked: &Checked) {
    o.word("status", if checked.store_us.is_some() { "ok" } else { "unusable" });
    match checked.store_us {
        Some(micros) => millis(o, "latency_ms", micros),
        None => o.null("latency_ms"),
    }
}

/// Milliseconds as a number with up to three decimals.
fn millis(o: &mut Object<'_>, name: &str, micros: u64) {
    decimal::vol(o.name(name), micros.saturating_mul(1_000));
}

async fn status(call: Call) -> Outcome {
    let checked = checked(&call).await;
    let app = call.app();
    let mut files_left = FILES_MAX;
    let size = bytes_in(&app.front.settings.data_dir, &mut files_left);
    let word = match &checked {
        Checked { store_us: None, .. } => "down",
        checked if checked.outage || checked.charts_lost || checked.markets.known == 0 => "degraded",
        _ => "healthy",
    };
    let Checked { vitals, markets, outage, .. } = checked;
    Ok(Reply::object(|o| {
        o.word("status", word);
        o.ts("timestamp", call.now);
        o.word("version", API_VERSION);
        o.integer("uptime_seconds", call.now.since(app.instance.started_at) / SECOND);
        o.object("database", |o| {
            store(o, &checked);
            o.integer("size_bytes", size);
            o.ts_or_null("last_commit_at", vitals.last_commit_at);
        });
        o.object("redis", |o| o.word("status", "not_used"));
        o.object("matching_engine", |o| {
            o.word("status", if checked.store_us.is_some() { "ok" } else { "down" });
            o.ts_or_null("last_cycle_at", vitals.last_cycle_at);
            match vitals.last_cycle_at {
                Some(_) => millis(o, "last_cycle_ms", vitals.last_cycle_us),
                None => o.null("last_cycle_ms"),
            }
            o.integer("pending_orders", vitals.pending_orders);
            o.word("upstream", if outage { "outage" } else { "live" });
        });
        o.object("websocket", |o| {
            o.integer("connections", vitals.connections);
            o.integer("upstream_connections", vitals.upstream_connections);
            o.ts_or_null("last_upstream_message_at", vitals.last_message_at);
        });
        o.object("markets", |o| {
            o.integer("active", markets.active);
            o.integer("hot", markets.hot);
            o.ts_or_null("last_sync_at", markets.synced_at);
        });
        o.object("clock", |o| clock(o, app));
        match app.instance.instruments.recording() {
            Some(playback) => o.object("recording", |o| recording(o, &playback)),
            None => o.null("recording"),
        }
    }))
}

/// What this start found about its clock, and whether time ends anything.
fn clock(o: &mut Object<'_>, app: &App) {
    let leap = &app.instance.leap;
    o.word("start", leap.found.name());
    o.ts_or_null("newest_record_at", leap.newest);
    o.ts_or_null("wall_at_start", leap.newest.map(|_| leap.wall));
    o.ts("wall_at", app.reads.clock.wall_now());
    o.ts_or_null("venue_at", leap.venue_now());
    o.word("sweeps", leap.sweeping(app.reads.clock.now()).name());
}

/// Where the replayed recording stands.
fn recording(o: &mut Object<'_>, playback: &Playback) {
    o.ts_or_null("at", playback.at);
    o.boolean("ended", playback.has_ended);
    match &playback.speed {
        Some(speed) => o.text("speed", speed),
        None => o.null("speed"),
    }
}

/// Bytes of the files in a directory and below it. What cannot be read counts nothing; links are not followed.
pub fn bytes_in(dir: &Path, files_left: &mut usize) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let mut bytes = 0;
    for entry in entries.flatten() {
        if *files_left == 0 {
            break;
        }
        *files_left -= 1;
        match entry.metadata() {
            Ok(found) if found.is_dir() => bytes += bytes_in(&entry.path(), files_left),
            Ok(found) => bytes += found.len(),
            Err(_) => {}
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testing::{Text as _, Town, shows};
    use crate::engine_client::Late;
    use engine::command::Answer;
    use engine::reject::Reject;

    #[test]
    fn health_is_told_in_three_forms() {
        let town = Town::new();
        town.shard(|_, _| Ok(Answer::Refused(Reject::UserNotFound)));
        for (target, expected) in [
            ("/v1/health", shape::HEALTH_EXAMPLE.to_owned()),
            ("/v1/health/live", shape::HEALTH_EXAMPLE.replace("ok", "alive")),
        ] {
            let answer = town.send("GET", target, "");
            assert_eq!((answer.status, answer.text()), (200, expected.as_str()));
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
        let answer = town.send("GET", "/v1/health/ready", "");
        assert_eq!(answer.status, 200);
        let expected = concat!(
            r#"{"status":"ok","timestamp":"2026-10-02T09:14:05Z","checks":{"#,
            r#""database":{"status":"ok","latency_ms":0},"upstream":{"status":"ok","subscribed_tokens":6},"#,
            r#""market_cache":{"status":"ok","cached_markets":3},"#,
            r#""redis":{"status":"ok","latency_ms":0,"cached_markets":3}}}"#
        );
        shows(answer.text().as_bytes(), expected);
        shows(town.send("GET", "/v1/health/version", "").text().as_bytes(), r#"{"version":"1.0.0-beta"}"#);
    }

    #[test]
    fn a_store_that_does_not_answer_is_not_ready() {
        let town = Town::new();
        town.shard(|_, _| Err(Late::Unknown));
        let answer = town.send("GET", "/v1/health/ready", "");
        assert_eq!((answer.status, answer.header("x-svc-code")), (503, Some("HTTP_503")));
        let expected = r#"{"status":"degraded","checks":{"database":{"status":"unusable","latency_ms":null}}}"#;
        shows(answer.text().as_bytes(), expected);
        shows(town.send("GET", "/v1/status", "").text().as_bytes(), r#"{"status":"down"}"#);
        // The process runs all the same.
        assert_eq!(town.send("GET", "/v1/health", "").status, 200);
    }

    #[test]
    fn a_lost_history_degrades_and_refuses_nothing() {
        let town = Town::new();
        town.shard(|_, _| Ok(Answer::Refused(Reject::UserNotFound)));
        town.past.reader.lose();
        for target in ["/v1/health/ready", "/v1/status"] {
            let answer = town.send("GET", target, "");
            assert_eq!(answer.status, 200, "{target}");
            shows(answer.text().as_bytes(), r#"{"status":"degraded"}"#);
        }
    }

    #[test]
    fn an_outage_degrades_and_refuses_nothing() {
        let town = Town::new();
        town.shard(|_, _| Ok(Answer::Refused(Reject::UserNotFound)));
        town.writer.borrow_mut().outage(true);
        let answer = town.send("GET", "/v1/health/ready", "");
        assert_eq!(answer.status, 200);
        shows(answer.text().as_bytes(), r#"{"status":"degraded","checks":{"upstream":{"status":"outage"}}}"#);
        let expected = concat!(
            r#"{"status":"degraded","version":"1.0.0-beta","uptime_seconds":0,"database":{"status":"ok"},"#,
            r#""redis":{"status":"not_used"},"matching_engine":{"status":"ok","upstream":"outage"},"#,
            r#""websocket":{"connections":0},"markets":{"active":3,"hot":1,"last_sync_at":"2026-10-02T09:14:05Z"}}"#
        );
        shows(town.send("GET", "/v1/status", "").text().as_bytes(), expected);
    }

    #[test]
    fn latencies_are_milliseconds_with_decimals() {
        for (micros, expected) in [(0, "0"), (300, "0.3"), (12_345, "12.345"), (2_000, "2")] {
            let mut out = Vec::new();
            wire::write::object(&mut out, |o| millis(o, "x", micros));
            assert_eq!(String::from_utf8(out).unwrap(), format!(r#"{{"x":{expected}}}"#));
        }
    }

    #[test]
    fn a_directory_is_as_large_as_its_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), [0; 100]).unwrap();
        std::fs::create_dir(dir.path().join("b")).unwrap();
        std::fs::write(dir.path().join("b/c"), [0; 23]).unwrap();
        assert_eq!(bytes_in(dir.path(), &mut 100), 123);
        assert_eq!(bytes_in(&dir.path().join("none"), &mut 100), 0);
    }
}
