//! Health and status (gateway/docs/market-data.md §11). Readiness asks the store itself: a query takes the same path as
//! an order, so its answer shows that orders are answered.

mod view;

use crate::app::Edge;
use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::http::route::{RateClass, Route};
use crate::http::scalar;
use crate::reads::Reads;
use engine::command::{Command, Query};
use engine::id::UserId;
use engine::time::{SECOND, Timestamp};
use hyper::StatusCode;
use parking_lot::Mutex;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::SyncSender;
use tokio::sync::mpsc;
use view::{
    CacheCheck, CacheStatus, Checks, ClockStatus, EngineStatus, Health, MarketsCheck, Readiness, SocketStatus, Status,
    StoreCheck, StoreStatus, UpstreamCheck, Version, millis,
};

/// The version of the wire (gateway/docs/wire.md §12).
pub const API_VERSION: &str = "1.0.0-beta";
/// The most files of the data directory that are counted.
const FILES_MAX: usize = 10_000;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/health", "get_health")
        .about("Reports that the process runs.")
        .rate(RateClass::Exempt)
        .no_store()
        .gives::<Health<'_>>(200)
        .answer(health),
    Route::get("/v1/health/live", "get_liveness")
        .about("The same under the name that orchestrators use.")
        .rate(RateClass::Exempt)
        .no_store()
        .gives::<Health<'_>>(200)
        .answer(live),
    Route::get("/v1/health/ready", "get_readiness")
        .about("Whether orders can be taken: 503 while the store is unusable or no market is known.")
        .rate(RateClass::Exempt)
        .no_store()
        .gives::<Readiness>(200)
        .gives::<Readiness>(503)
        .run(|call| Box::pin(ready(call))),
    Route::get("/v1/health/version", "get_version")
        .about("What was built.")
        .no_store()
        .gives::<Version<'_>>(200)
        .answer(version),
    Route::get("/v1/status", "get_status")
        .about("How each part of the server is.")
        .no_store()
        .gives::<Status<'_>>(200)
        .run(|call| Box::pin(status(call))),
];

/// Reports on parts outside the edge.
pub trait Instruments: Send + Sync {
    /// Figures of the core and the feed; `connections` is the edge's own.
    fn vitals(&self) -> Vitals;

    /// The position in the recording that is replayed, if one is.
    fn recording(&self) -> Option<Playback>;
}

/// The position in a replayed recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Playback {
    /// The recording's clock; `None` before its first line.
    pub at: Option<Timestamp>,
    /// The last line has been played.
    pub has_ended: bool,
    /// The pace of its clock, in words; `None` where the recording is followed as it grows.
    pub speed: Option<String>,
}

/// Figures of the core and the feed, which the process keeps anyway ([`crate::app::App::vitals`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vitals {
    /// Server time of the last record.
    pub last_commit_at: Option<Timestamp>,
    /// Server time of the last message of the venue, and of the last matching cycle with its length.
    pub last_message_at: Option<Timestamp>,
    pub last_cycle_at: Option<Timestamp>,
    pub last_cycle_us: u64,
    /// Resting orders.
    pub pending_orders: u64,
    /// Ended orders fill the memory for them, so placements are refused.
    pub ended_full: bool,
    /// WebSocket connections of clients.
    pub connections: u64,
    /// Sockets to venues that are open.
    pub upstream_connections: u64,
    /// Tokens whose books come from them; `None` where there are no live venues.
    pub subscribed_tokens: Option<u64>,
}

fn health(call: &Call) -> Outcome {
    Ok(process("ok", call))
}

fn live(call: &Call) -> Outcome {
    Ok(process("alive", call))
}

fn process(status: &'static str, call: &Call) -> Reply {
    Reply::json(&Health {
        status: status.into(),
        timestamp: scalar::Timestamp(call.now),
        version: API_VERSION,
        instance: &call.instance().id,
    })
}

fn version(call: &Call) -> Outcome {
    Ok(Reply::json(&Version { git_sha: call.front().settings.git_sha(), version: API_VERSION }))
}

/// The state of the parts.
struct Checked {
    /// How long the store's answer took; `None` without one.
    store_us: Option<u64>,
    vitals: Vitals,
    markets: Markets,
    outage: bool,
    /// The price history has failed.
    charts_lost: bool,
}

/// What the catalogue holds, counted at most once a second, since probes may be frequent.
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

impl Checked {
    /// The store answers, so orders are taken.
    fn has_store(&self) -> bool {
        self.store_us.is_some()
    }

    /// Markets are known, and their venue is there.
    fn has_market_data(&self) -> bool {
        !self.outage && self.markets.known > 0
    }

    /// Something is refused or missing, and the rest works.
    fn is_degraded(&self) -> bool {
        !self.has_market_data() || self.charts_lost || self.vitals.ended_full
    }
}

async fn checked(edge: &Edge, now: Timestamp) -> Checked {
    let reads = &edge.app.reads;
    let sent_at = reads.clock.now();
    // The user need not exist: any answer shows that the store works.
    let answer = edge.engine.ask(UserId(1), Command::Query(Query::User), sent_at).await;
    Checked {
        store_us: answer.ok().map(|_| reads.clock.now().since(sent_at)),
        vitals: edge.app.vitals(),
        markets: edge.app.instance.census.of(reads, now),
        outage: reads.books.outage(),
        charts_lost: reads.history.is_lost(),
    }
}

/// Whether the parts of the server work, by the checks of `/v1/status` (gateway/docs/status.md §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    pub market_data: bool,
    pub matching_engine: bool,
    /// What waits for the sockets of the thread is delivered.
    pub websocket: bool,
}

/// Measures on an IO thread as often as another thread asks for it, until that one has gone. An answer shows that the
/// thread serves its connections.
pub async fn measure_when_asked(edge: Rc<Edge>, mut asked: mpsc::Receiver<SyncSender<Measured>>) {
    while let Some(answer) = asked.recv().await {
        let checked = checked(&edge, edge.app.reads.clock.now()).await;
        let measured = Measured {
            market_data: checked.has_market_data(),
            matching_engine: checked.has_store(),
            websocket: edge.hub.is_delivering().await,
        };
        // Without a receiver the answer came too late.
        let _ = answer.try_send(measured);
    }
}

async fn ready(call: Call) -> Outcome {
    let checked = checked(&call.edge, call.now).await;
    let usable = checked.store_us.is_some() && checked.markets.known > 0;
    let status = if usable && !checked.is_degraded() { "ok" } else { "degraded" };
    let reply = Reply::json(&Readiness {
        status: status.into(),
        timestamp: scalar::Timestamp(call.now),
        checks: checks(&checked, call.now),
    });
    Ok(if usable { reply } else { reply.with_status(StatusCode::SERVICE_UNAVAILABLE) })
}

fn checks(checked: &Checked, now: Timestamp) -> Checks {
    let Checked { vitals, markets, .. } = checked;
    let loaded = if markets.known > 0 { "ok" } else { "loading" }.into();
    Checks {
        database: StoreCheck::new(checked.store_us),
        upstream: UpstreamCheck {
            status: if checked.outage { "outage" } else { "ok" }.into(),
            last_message_age_ms: vitals.last_message_at.map(|at| now.since(at) / 1_000),
            subscribed_tokens: vitals.subscribed_tokens.unwrap_or(markets.tokens),
        },
        market_cache: MarketsCheck { status: loaded, cached_markets: markets.known },
        // For readers of the old shape: the cache is in this process.
        redis: CacheCheck { status: loaded, latency_ms: 0, cached_markets: markets.known },
    }
}

async fn status(call: Call) -> Outcome {
    let checked = checked(&call.edge, call.now).await;
    let mut files_left = FILES_MAX;
    let size = bytes_in(&call.front().settings.data_dir, &mut files_left);
    let word = match &checked {
        checked if !checked.has_store() => "down",
        checked if checked.is_degraded() => "degraded",
        _ => "healthy",
    };
    let Checked { store_us, vitals, markets, outage, .. } = checked;
    let playback = call.instance().instruments.recording();
    Ok(Reply::json(&Status {
        status: word.into(),
        timestamp: scalar::Timestamp(call.now),
        version: API_VERSION,
        uptime_seconds: call.now.since(call.instance().started_at) / SECOND,
        database: StoreStatus::new(store_us, size, vitals.last_commit_at.map(scalar::Timestamp)),
        redis: CacheStatus { status: "not_used".into() },
        matching_engine: EngineStatus {
            status: if store_us.is_some() { "ok" } else { "down" }.into(),
            last_cycle_at: vitals.last_cycle_at.map(scalar::Timestamp),
            last_cycle_ms: vitals.last_cycle_at.map(|_| millis(vitals.last_cycle_us)),
            pending_orders: vitals.pending_orders,
            upstream: if outage { "outage" } else { "live" }.into(),
        },
        websocket: SocketStatus {
            connections: vitals.connections,
            upstream_connections: vitals.upstream_connections,
            last_upstream_message_at: vitals.last_message_at.map(scalar::Timestamp),
        },
        markets: markets.into(),
        clock: clock(&call),
        recording: playback.as_ref().map(Into::into),
    }))
}

/// What this start found about its clock, and whether anything ends by it.
fn clock(call: &Call) -> ClockStatus {
    let (leap, clock) = (&call.instance().leap, &call.reads().clock);
    ClockStatus {
        start: leap.found.name().into(),
        newest_record_at: leap.newest.map(scalar::Timestamp),
        wall_at_start: leap.newest.map(|_| scalar::Timestamp(leap.wall)),
        wall_at: scalar::Timestamp(clock.wall_now()),
        venue_at: leap.venue_now().map(scalar::Timestamp),
        sweeps: leap.sweeping(clock.now()).name().into(),
    }
}

/// Bytes of the files in a directory and below it. Unreadable entries count nothing; links are not followed. Counts at
/// most `files_left` entries, and reduces it by their number.
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
    use crate::engine_client::AskError;
    use crate::http::record::Record as _;
    use engine::command::Answer;
    use engine::reject::Reject;

    #[test]
    fn health_has_three_forms() {
        let town = Town::new();
        town.shard(|_, _| Ok(Answer::Refused(Reject::UserNotFound)));
        let example = serde_json::to_string(&Health::example()).expect("a record");
        for (target, expected) in [("/v1/health/live", example.replace("ok", "alive")), ("/v1/health", example)] {
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
        town.shard(|_, _| Err(AskError::Unknown));
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
    fn a_directory_is_as_large_as_its_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), [0; 100]).unwrap();
        std::fs::create_dir(dir.path().join("b")).unwrap();
        std::fs::write(dir.path().join("b/c"), [0; 23]).unwrap();
        assert_eq!(bytes_in(dir.path(), &mut 100), 123);
        assert_eq!(bytes_in(&dir.path().join("none"), &mut 100), 0);
    }
}
