//! The shapes of health and status for the machine description (market-data.md §11).

use crate::http::schema::{BOOLEAN, Field, INTEGER, Schema, Shape, TEXT, TEXT_OR_NULL, TS, TS_OR_NULL, field};

pub const HEALTH: Schema = Schema::Object(&Shape::new(
    "Health",
    "",
    &[
        field("status", Schema::Word(&["ok", "alive"]), ""),
        field("timestamp", TS, ""),
        field("version", TEXT, ""),
        field(
            "instance",
            TEXT,
            "A UUID: which copy of its data directory the server runs on. A restored one is another.",
        ),
    ],
));
pub const HEALTH_EXAMPLE: &str = concat!(
    r#"{"status":"ok","timestamp":"2026-10-02T09:14:05Z","version":"1.0.0-beta","#,
    r#""instance":"7d4f6a0e-9c21-4b0e-8f57-2a1c3be0d964"}"#
);
pub const VERSION: Schema = Schema::Object(&Shape::new(
    "Version",
    "",
    &[field("git_sha", TEXT, "`unknown` unless built from a known commit."), field("version", TEXT, "Of the wire.")],
));
const MILLISECONDS: Schema = Schema::Nullable(&Schema::Number);
const STORE_STATUS: Field = field("status", Schema::Word(&["ok", "unusable"]), "");
const STORE_LATENCY: Field = field("latency_ms", MILLISECONDS, "How long the store's answer took; null without one.");
pub const READINESS: Schema = Schema::Object(&Shape::new(
    "Readiness",
    "",
    &[
        field("status", Schema::Word(&["ok", "degraded"]), ""),
        field("timestamp", TS, ""),
        field(
            "checks",
            Schema::Object(&Shape::new(
                "Checks",
                "",
                &[
                    field(
                        "database",
                        Schema::Object(&Shape::new("StoreCheck", "", &[STORE_STATUS, STORE_LATENCY])),
                        "",
                    ),
                    field(
                        "upstream",
                        Schema::Object(&Shape::new(
                            "UpstreamCheck",
                            "",
                            &[
                                field("status", Schema::Word(&["ok", "outage"]), ""),
                                field("last_message_age_ms", Schema::Nullable(&INTEGER), ""),
                                field("subscribed_tokens", INTEGER, ""),
                            ],
                        )),
                        "",
                    ),
                    field(
                        "market_cache",
                        Schema::Object(&Shape::new(
                            "MarketsCheck",
                            "",
                            &[field("status", LOADED, ""), field("cached_markets", INTEGER, "")],
                        )),
                        "",
                    ),
                    field(
                        "redis",
                        Schema::Object(&Shape::new(
                            "CacheCheck",
                            "The same, for readers of the older shape.",
                            &[
                                field("status", LOADED, ""),
                                field("latency_ms", INTEGER, ""),
                                field("cached_markets", INTEGER, ""),
                            ],
                        )),
                        "",
                    ),
                ],
            )),
            "",
        ),
    ],
));
const LOADED: Schema = Schema::Word(&["ok", "loading"]);
pub const READINESS_EXAMPLE: &str = concat!(
    r#"{"status":"ok","timestamp":"2026-10-02T09:15:00Z","checks":{"database":{"status":"ok","latency_ms":0.3},"#,
    r#""upstream":{"status":"ok","last_message_age_ms":120,"subscribed_tokens":1840},"#,
    r#""market_cache":{"status":"ok","cached_markets":920},"#,
    r#""redis":{"status":"ok","latency_ms":0,"cached_markets":920}}}"#
);
pub const STATUS: Schema = Schema::Object(&Shape::new(
    "Status",
    "",
    &[
        field("status", Schema::Word(&["healthy", "degraded", "down"]), ""),
        field("timestamp", TS, ""),
        field("version", TEXT, ""),
        field("uptime_seconds", INTEGER, ""),
        field(
            "database",
            Schema::Object(&Shape::new(
                "StoreStatus",
                "",
                &[
                    STORE_STATUS,
                    STORE_LATENCY,
                    field("size_bytes", INTEGER, "Of the data directory."),
                    field("last_commit_at", TS_OR_NULL, ""),
                ],
            )),
            "",
        ),
        field(
            "redis",
            Schema::Object(&Shape::new("CacheStatus", "", &[field("status", Schema::Word(&["not_used"]), "")])),
            "",
        ),
        field(
            "matching_engine",
            Schema::Object(&Shape::new(
                "EngineStatus",
                "",
                &[
                    field("status", Schema::Word(&["ok", "down"]), ""),
                    field("last_cycle_at", TS_OR_NULL, ""),
                    field("last_cycle_ms", MILLISECONDS, ""),
                    field("pending_orders", INTEGER, ""),
                    field("upstream", Schema::Word(&["live", "outage"]), ""),
                ],
            )),
            "",
        ),
        field(
            "websocket",
            Schema::Object(&Shape::new(
                "SocketStatus",
                "",
                &[
                    field("connections", INTEGER, "Of clients."),
                    field("upstream_connections", INTEGER, "To venues."),
                    field("last_upstream_message_at", TS_OR_NULL, ""),
                ],
            )),
            "",
        ),
        field(
            "markets",
            Schema::Object(&Shape::new(
                "MarketsStatus",
                "",
                &[field("active", INTEGER, ""), field("hot", INTEGER, ""), field("last_sync_at", TS_OR_NULL, "")],
            )),
            "",
        ),
        field(
            "clock",
            Schema::Object(&Shape::new(
                "ClockStatus",
                "",
                &[
                    field(
                        "start",
                        Schema::Word(&["ok", "ahead", "behind"]),
                        "The wall clock at this start: `ahead` of the newest record by more than a day (the server was off, or \
                         the clock is wrong), or `behind` it (it was wrong then, or is now).",
                    ),
                    field("newest_record_at", TS_OR_NULL, "The newest record of before this start."),
                    field("wall_at_start", TS_OR_NULL, "The wall clock at this start; null for a new directory."),
                    field("wall_at", TS, "The wall clock now; `timestamp` is server time, which never goes back."),
                    field("venue_at", TS_OR_NULL, "A live venue's own time, by what it told last."),
                    field(
                        "sweeps",
                        Schema::Word(&["running", "waiting", "contradicted"]),
                        "Whether orders expire, heartbeats lapse and markets end by server time: `waiting` for \
                         `clock.leap_wait_s`, or for the venue's own time; `contradicted` while that is another one.",
                    ),
                ],
            )),
            "Extension: whether the clock can be believed.",
        ),
        field(
            "recording",
            Schema::Nullable(&Schema::Object(&Shape::new(
                "RecordingStatus",
                "",
                &[
                    field("at", TS_OR_NULL, "The recording's clock; null before its first line."),
                    field(
                        "ended",
                        BOOLEAN,
                        "Its last line has been played. Its clock goes on, and its last books stay.",
                    ),
                    field("speed", TEXT_OR_NULL, "`max`, or as `60x`; null where it is followed as it grows."),
                ],
            ))),
            "Of a replay; null on other venues.",
        ),
    ],
));
pub const STATUS_EXAMPLE: &str = concat!(
    r#"{"status":"healthy","timestamp":"2026-10-02T09:15:00Z","version":"1.0.0-beta","uptime_seconds":12,"#,
    r#""database":{"status":"ok","latency_ms":0.3,"size_bytes":201326592,"last_commit_at":null},"#,
    r#""redis":{"status":"not_used"},"matching_engine":{"status":"ok","last_cycle_at":null,"last_cycle_ms":null,"#,
    r#""pending_orders":0,"upstream":"live"},"websocket":{"connections":0,"upstream_connections":0,"#,
    r#""last_upstream_message_at":null},"markets":{"active":280,"hot":12,"last_sync_at":null},"#,
    r#""clock":{"start":"ok","newest_record_at":"2026-10-02T09:10:00Z","wall_at_start":"2026-10-02T09:14:48Z","#,
    r#""wall_at":"2026-10-02T09:15:00Z","venue_at":null,"sweeps":"running"},"#,
    r#""recording":{"at":"2026-08-10T22:15:00Z","ended":false,"speed":"60x"}}"#
);
