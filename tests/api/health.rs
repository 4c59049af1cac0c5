//! Health and status (gateway/docs/market-data.md §11).

use std::path::Path;
use std::process::Command;
use tests::binary::workspace;
use tests::cases::Cases;
use tests::json::{at, int, list, text};
use tests::world::World;

#[test]
fn health_reports_live_and_ready() {
    let cases = Cases::of("health");
    let world = World::start(0);
    for (path, status) in [("/v1/health", "ok"), ("/v1/health/live", "alive"), ("/v1/health/ready", "ok")] {
        let body = world.public().get(path).expect(200);
        assert_eq!(text(&body, "/status"), status, "{path}");
        assert!(text(&body, "/timestamp").ends_with('Z'));
        if path != "/v1/health/ready" {
            assert_eq!(text(&body, "/version"), "1.0.0-beta");
        }
        cases.one();
    }
    let ready = world.public().get("/v1/health/ready").expect(200);
    for check in ["database", "upstream", "market_cache", "redis"] {
        assert_eq!(text(&ready, &format!("/checks/{check}/status")), "ok");
        cases.one();
    }
    assert!(at(&ready, "/checks/database/latency_ms").is_number());
    assert!(int(&ready, "/checks/upstream/subscribed_tokens") >= 2);
    let markets = int(&ready, "/checks/market_cache/cached_markets");
    assert_eq!(markets, world.markets.all().len() as i64);
    assert_eq!(int(&ready, "/checks/redis/cached_markets"), markets);
}

/// A program built in a clone names its commit; elsewhere it has none.
#[test]
fn the_version_names_the_commit() {
    let cases = Cases::of("versions");
    let world = World::start(0);
    let body = world.public().get("/v1/health/version").expect(200);
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(workspace()).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let root = git(&["rev-parse", "--show-toplevel"])
        .filter(|root| Path::new(root).canonicalize().ok() == workspace().canonicalize().ok());
    let head = root.and_then(|_| git(&["rev-parse", "HEAD"]));
    // A program that was built before is of another commit.
    if std::env::var_os("PAPERTAPE_BINARY").is_none() {
        assert_eq!(text(&body, "/git_sha"), head.as_deref().unwrap_or("unknown"));
        cases.one();
    }
}

/// A busy-polling server answers as others do, and stops cleanly.
#[test]
fn a_sleepless_server_answers_and_ends() {
    let cases = Cases::of("busy polling");
    let place = tests::server::ServerDir::new();
    for (args, env) in [(&["--busy-poll"][..], &[][..]), (&[][..], &[("PAPERTAPE_SERVER_BUSY_POLL", "true")][..])] {
        let server = place.start_with(args, env);
        let mut client = server.client();
        for _ in 0..20 {
            client.get("/v1/health/ready").expect(200);
            cases.one();
        }
        assert!(server.stop().contains("server.busy_poll = true"), "the configuration shows it");
        cases.one();
    }
}

#[test]
fn status_shows_the_parts() {
    let cases = Cases::of("status");
    let world = World::start(0);
    let body = world.public().get("/v1/status").expect(200);
    assert_eq!(text(&body, "/status"), "healthy");
    assert_eq!(text(&body, "/version"), "1.0.0-beta");
    assert!(at(&body, "/uptime_seconds").is_number());
    assert_eq!(text(&body, "/redis/status"), "not_used");
    let fields = [
        "/database/status",
        "/database/latency_ms",
        "/database/size_bytes",
        "/database/last_commit_at",
        "/matching_engine/status",
        "/matching_engine/last_cycle_at",
        "/matching_engine/last_cycle_ms",
        "/matching_engine/pending_orders",
        "/matching_engine/upstream",
        "/websocket/connections",
        "/websocket/upstream_connections",
        "/websocket/last_upstream_message_at",
        "/markets/active",
        "/markets/hot",
        "/markets/last_sync_at",
    ];
    for field in fields {
        at(&body, field);
        cases.one();
    }
    assert_eq!(text(&body, "/matching_engine/upstream"), "live", "a recording is never an outage");
}

#[test]
fn health_is_not_metered() {
    let cases = Cases::of("unmetered health");
    let world = World::start_with(0, |place| {
        place.set("limits", "public_ip_per_second", "1").set("limits", "public_ip_per_minute", "1");
        place.set("limits", "meter_loopback", "true");
    });
    for _ in 0..20 {
        for path in ["/v1/health", "/v1/health/live", "/v1/health/ready"] {
            world.public().get(path).expect(200);
            cases.one();
        }
    }
    let book = format!("/v1/book?token_id={}", world.markets.rain.yes());
    let statuses: Vec<u16> = (0..3).map(|_| world.public().get(&book).status).collect();
    assert!(statuses.contains(&429), "other public reads are metered: {statuses:?}");
    cases.add(list(&serde_json::json!(statuses), "").len());
}
