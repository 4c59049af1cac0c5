//! The records of health and status.

use super::{API_VERSION, Markets, Playback};
use crate::http::record::record;
use crate::http::scalar::{Number, Timestamp, words};

words! {
    pub ProcessState = "ok", "alive";
    pub ReadyState = "ok", "degraded";
    pub StoreState = "ok", "unusable";
    pub UpstreamState = "ok", "outage";
    pub LoadState = "ok", "loading";
    pub ServerState = "healthy", "degraded", "down";
    pub CacheState = "not_used";
    pub EngineState = "ok", "down";
    pub VenueState = "live", "outage";
    pub ClockStart = "ok", "ahead", "behind";
    pub Sweeps = "running", "waiting", "contradicted";
}

record! {
    /// A running process.
    pub struct Health<'a> {
        pub status: ProcessState = "ok".into();
        pub timestamp: Timestamp = Timestamp::of("2026-10-02T09:14:05Z");
        pub version: &'a str = API_VERSION;
        pub instance: &'a str = "7d4f6a0e-9c21-4b0e-8f57-2a1c3be0d964",
            "UUID of this copy of the data directory. A restored backup has another one.";
    }

    /// The build.
    pub struct Version<'a> {
        pub git_sha: &'a str = "unknown", "`unknown` unless built from a known commit.";
        pub version: &'a str = API_VERSION, "Of the wire.";
    }

    /// The store.
    pub struct StoreCheck {
        status: StoreState = "ok".into();
        latency_ms: Option<Number> = Some(Number::of("0.3")),
            "How long the store's answer took; null without one.";
    }

    /// The venues.
    pub struct UpstreamCheck {
        pub status: UpstreamState = "ok".into();
        pub last_message_age_ms: Option<u64> = Some(120);
        pub subscribed_tokens: u64 = 1_840;
    }

    /// The catalogue.
    pub struct MarketsCheck {
        pub status: LoadState = "ok".into();
        pub cached_markets: u64 = 920;
    }

    /// The same, for readers of the older shape.
    pub struct CacheCheck {
        pub status: LoadState = "ok".into();
        pub latency_ms: u64 = 0;
        pub cached_markets: u64 = 920;
    }

    /// Each part that orders need.
    pub struct Checks {
        pub database: StoreCheck = StoreCheck::example();
        pub upstream: UpstreamCheck = UpstreamCheck::example();
        pub market_cache: MarketsCheck = MarketsCheck::example();
        pub redis: CacheCheck = CacheCheck::example();
    }

    /// Whether orders can be taken.
    pub struct Readiness {
        pub status: ReadyState = "ok".into();
        pub timestamp: Timestamp = Timestamp::of("2026-10-02T09:15:00Z");
        pub checks: Checks = Checks::example();
    }

    /// The store and its directory.
    pub struct StoreStatus {
        status: StoreState = "ok".into();
        latency_ms: Option<Number> = Some(Number::of("0.3")),
            "How long the store's answer took; null without one.";
        size_bytes: u64 = 201_326_592, "Of the data directory.";
        last_commit_at: Option<Timestamp> = None;
    }

    /// The cache of the older shape.
    pub struct CacheStatus {
        pub status: CacheState = "not_used".into();
    }

    /// The matching engine.
    pub struct EngineStatus {
        pub status: EngineState = "ok".into();
        pub last_cycle_at: Option<Timestamp> = None;
        pub last_cycle_ms: Option<Number> = None;
        pub pending_orders: u64 = 0;
        pub upstream: VenueState = "live".into();
    }

    /// WebSocket connections.
    pub struct SocketStatus {
        pub connections: u64 = 0, "Of clients.";
        pub upstream_connections: u64 = 0, "To venues.";
        pub last_upstream_message_at: Option<Timestamp> = None;
    }

    /// The catalogue.
    pub struct MarketsStatus {
        active: u64 = 280;
        hot: u64 = 12;
        last_sync_at: Option<Timestamp> = None;
    }

    /// The clock and what depends on it.
    pub struct ClockStatus {
        pub start: ClockStart = "ok".into(),
            "The wall clock at this start: `ahead` of the newest record by more than a day (the server was off, or \
             the clock is wrong), or `behind` it (it was wrong then, or is now).";
        pub newest_record_at: Option<Timestamp> = Some(Timestamp::of("2026-10-02T09:10:00Z")),
            "The newest record of before this start.";
        pub wall_at_start: Option<Timestamp> = Some(Timestamp::of("2026-10-02T09:14:48Z")),
            "The wall clock at this start; null for a new directory.";
        pub wall_at: Timestamp = Timestamp::of("2026-10-02T09:15:00Z"),
            "The wall clock now; `timestamp` is server time, which never goes back.";
        pub venue_at: Option<Timestamp> = None, "A live venue's own time, by its last message.";
        pub sweeps: Sweeps = "running".into(),
            "Whether orders expire, heartbeats lapse and markets end by server time: `waiting` for \
             `clock.leap_wait_s`, or for the venue's own time; `contradicted` while that is another one.";
    }

    /// The recording that is replayed.
    pub struct RecordingStatus<'a> {
        at: Option<Timestamp> = Some(Timestamp::of("2026-08-10T22:15:00Z")),
            "The recording's clock; null before its first line.";
        ended: bool = false, "Its last line has been played. Its clock goes on, and its last books stay.";
        speed: Option<&'a str> = Some("60x"), "`max`, or as `60x`; null where it is followed as it grows.";
    }

    /// How each part of the server is.
    pub struct Status<'a> {
        pub status: ServerState = "healthy".into();
        pub timestamp: Timestamp = Timestamp::of("2026-10-02T09:15:00Z");
        pub version: &'a str = API_VERSION;
        pub uptime_seconds: u64 = 12;
        pub database: StoreStatus = StoreStatus::example();
        pub redis: CacheStatus = CacheStatus::example();
        pub matching_engine: EngineStatus = EngineStatus::example();
        pub websocket: SocketStatus = SocketStatus::example();
        pub markets: MarketsStatus = MarketsStatus::example();
        pub clock: ClockStatus = ClockStatus::example(), "Extension: whether the clock can be believed.";
        pub recording: Option<RecordingStatus<'a>> = Some(RecordingStatus::example()),
            "Of a replay; null on other venues.";
    }
}

impl StoreCheck {
    /// `store_us`: how long the store's answer took, if there was one.
    pub fn new(store_us: Option<u64>) -> StoreCheck {
        let status = if store_us.is_some() { "ok" } else { "unusable" };
        StoreCheck { status: status.into(), latency_ms: store_us.map(millis) }
    }
}

impl StoreStatus {
    pub fn new(store_us: Option<u64>, size_bytes: u64, last_commit_at: Option<Timestamp>) -> StoreStatus {
        let StoreCheck { status, latency_ms } = StoreCheck::new(store_us);
        StoreStatus { status, latency_ms, size_bytes, last_commit_at }
    }
}

impl From<Markets> for MarketsStatus {
    fn from(markets: Markets) -> MarketsStatus {
        let Markets { active, hot, synced_at, .. } = markets;
        MarketsStatus { active, hot, last_sync_at: synced_at.map(Timestamp) }
    }
}

impl<'a> From<&'a Playback> for RecordingStatus<'a> {
    fn from(playback: &'a Playback) -> RecordingStatus<'a> {
        let Playback { at, has_ended, speed } = playback;
        RecordingStatus { at: at.map(Timestamp), ended: *has_ended, speed: speed.as_deref() }
    }
}

/// Milliseconds with up to three decimals.
pub fn millis(micros: u64) -> Number {
    Number(i64::try_from(micros.saturating_mul(1_000)).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_milliseconds_with_decimals() {
        for (micros, expected) in [(0, "0"), (300, "0.3"), (12_345, "12.345"), (2_000, "2")] {
            assert_eq!(serde_json::to_string(&millis(micros)).expect("a number"), expected);
        }
    }
}
