//! The sections: each setting with its default and its range.

use super::*;
use engine::format::Formats;
use engine::market::terms::Category;
use engine::rules::FillModel;

pub(super) fn engine(source: &mut Source) -> Engine {
    Engine {
        shards: source.integer("engine.shards", default_shards(), 1..=64) as usize,
        prefault_bytes: source.integer("engine.prefault_bytes", journal::prefault::AHEAD_BYTES as u64, 0..=1 << 30)
            as usize,
    }
}

/// One shard up to four cores, then half the cores.
fn default_shards() -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    if cores <= 4 { 1 } else { (cores / 2).min(64) }
}

pub(super) fn path(source: &mut Source, key: &str) -> Option<PathBuf> {
    // The one path that there is always: an empty one would be that of no folder.
    let (default, allowed) = match key {
        "data.dir" => (super::DATA_DIR, "the path of a folder (without the setting it is papertape-data)"),
        _ => ("", "a path"),
    };
    let text = source.text(key, default, allowed, |text| default.is_empty() || !text.is_empty());
    (!text.is_empty()).then(|| text.into())
}

pub(super) fn millis(source: &mut Source, key: &str, default: u64, range: std::ops::RangeInclusive<u64>) -> Duration {
    Duration::from_millis(source.integer(key, default, range))
}

pub(super) fn server(source: &mut Source) -> Server {
    let listen = SocketAddr::from(([127, 0, 0, 1], 8_080));
    Server {
        listen: source.parsed(
            "server.listen",
            listen,
            "an address with a port, like 127.0.0.1:8080",
            |text| text.parse().ok(),
            SocketAddr::to_string,
        ),
        hosts: source.list("server.hosts", Vec::new(), "a list of host names without a port", host, String::clone),
        io_threads: source.integer("server.io_threads", 1, 1..=64) as usize,
        busy_poll: source.boolean("server.busy_poll", false),
        drain: millis(source, "server.drain_ms", 10_000, 0..=600_000),
        clock_ahead_file: path(source, "server.clock_ahead_file"),
    }
}

pub(super) fn log(source: &mut Source) -> Log {
    let level = |text: &str| match text {
        "" => Some(None),
        text => LogLevel::ALL.into_iter().find(|level| level.name() == text).map(Some),
    };
    let format = |text: &str| match text {
        "auto" => Some(LogFormat::Auto),
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    };
    let show = |level: &Option<LogLevel>| level.map_or_else(String::new, |level| level.name().to_owned());
    Log {
        level: source.parsed("log.level", None, "off, error, warn, info, debug or trace", level, show),
        format: source.parsed("log.format", LogFormat::Auto, "auto, text or json", format, |format| {
            format!("{format:?}").to_lowercase()
        }),
    }
}

/// A host name as a list of them may hold it.
fn host(text: &str) -> Option<String> {
    let sound = (1..=253).contains(&text.len())
        && !text.starts_with('.')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    sound.then(|| text.trim_end_matches('.').to_owned())
}

pub(super) fn admin(source: &mut Source) -> Admin {
    let parse = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
    let show = |listen: &Option<SocketAddr>| listen.map_or_else(|| "none".to_owned(), |listen| listen.to_string());
    let allowed = "an address with a port, like 127.0.0.1:9464; \"\" for none";
    Admin {
        listen: source.parsed("admin.listen", None, allowed, parse, show),
        remote: source.boolean("admin.remote", false),
        token_file: path(source, "admin.token_file"),
        slow_peer: Duration::from_secs(source.integer("admin.slow_peer_s", 60, 1..=3_600)),
    }
}

pub(super) fn http(source: &mut Source) -> Http {
    Http {
        body_bytes_max: source.integer("http.body_bytes_max", 1 << 20, 1_024..=64 << 20) as usize,
        connections_max: source.integer("http.connections_max", 10_000, 1..=1_000_000) as usize,
        connections_per_address_max: source.integer("http.connections_per_address_max", 1_000, 1..=1_000_000) as usize,
        header_timeout: millis(source, "http.header_timeout_ms", 5_000, 10..=5_000),
        body_timeout: millis(source, "http.body_timeout_ms", 10_000, 10..=10_000),
        idle_timeout: millis(source, "http.idle_timeout_ms", 75_000, 10..=3_600_000),
        request_timeout: millis(source, "http.request_timeout_ms", 30_000, 100..=600_000),
        write_timeout: millis(source, "http.write_timeout_ms", 30_000, 10..=600_000),
        trusted_proxies: source.list(
            "http.trusted_proxies",
            Vec::new(),
            "a list of addresses and CIDR networks",
            Network::parse,
            Network::show,
        ),
        cors_origins: source.list(
            "http.cors_origins",
            vec!["*".to_owned()],
            "[\"*\"] or a list of origins like https://example.net",
            |text| {
                let sound = text == "*" || (text.contains("://") && !text.ends_with('/') && text.is_ascii());
                sound.then(|| text.to_owned())
            },
            String::clone,
        ),
        upgrade_url: source.text("http.upgrade_url", "/pricing", "a text without control characters", printable),
    }
}

pub(super) fn journal(source: &mut Source) -> Journal {
    let parse = |text: &str| match text {
        "process" => Some(Durability::Process),
        "power" => Some(Durability::Power),
        _ => None,
    };
    let show = |durability: &Durability| format!("{durability:?}").to_lowercase();
    Journal {
        durability: source.parsed("journal.durability", Durability::Process, "process or power", parse, show),
        segment_bytes: source.parsed(
            "journal.segment_bytes",
            64 << 20,
            "a multiple of 4096 from 1048576 to 1073741824",
            |text| {
                text.parse()
                    .ok()
                    .filter(|bytes: &u64| (1 << 20..=1 << 30).contains(bytes) && bytes.is_multiple_of(4_096))
            },
            u64::to_string,
        ),
        // One spare of the smallest length would hold the longest record, and no reserve beside it.
        spares_count: source.integer("journal.spares_count", 2, 2..=8) as u32,
        reserve_bytes: source.integer("journal.reserve_bytes", 256 << 20, 0..=1 << 50),
        checkpoint_segments: source.integer("journal.checkpoint_segments", 4, 1..=1_000) as u32,
        write_formats: source.parsed(
            "journal.write_formats",
            Formats::Newest,
            "newest or previous",
            |text| match text {
                "newest" => Some(Formats::Newest),
                "previous" => Some(Formats::Previous),
                _ => None,
            },
            |formats| format!("{formats:?}").to_lowercase(),
        ),
        crash_at: source.parsed(
            "journal.crash_at",
            None,
            "empty, or a place of the log with a count, like roll:3",
            |text| if text.is_empty() { Some(None) } else { crash_at(text).map(Some) },
            |at| at.map_or_else(String::new, |(point, count)| format!("{}:{count}", point.name())),
        ),
    }
}

fn crash_at(text: &str) -> Option<(Point, u64)> {
    let (name, count) = text.split_once(':')?;
    let point = Point::ALL.into_iter().find(|point| point.name() == name)?;
    count.parse().ok().filter(|count| *count > 0).map(|count| (point, count))
}

pub(super) fn brand(source: &mut Source) -> Brand {
    let word = |text: &str| {
        (1..=16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let token = |text: &str| {
        !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    Brand {
        key_prefix: source.text("brand.key_prefix", "svc", "1 to 16 lower-case letters and digits", word),
        key_env: source.text("brand.key_env", "live", "live or test", |text| matches!(text, "live" | "test")),
        header_prefix: source.text("brand.header_prefix", "X-Svc", "letters, digits and -, at most 64", token),
        key_header_aliases: source.list(
            "brand.key_header_aliases",
            ["MKT_API_KEY", "Mkt-API-Key", "POLY_API_KEY"].map(str::to_owned).to_vec(),
            "a list of header names",
            |text| token(text).then(|| text.to_owned()),
            String::clone,
        ),
    }
}

pub(super) fn auth(source: &mut Source) -> Auth {
    Auth {
        jwt_secrets: source.secrets("auth.jwt_secret"),
        ws_secret: source.secret("auth.ws_secret"),
        server_secret: Secret::new(String::new()),
    }
}

pub(super) fn streams(source: &mut Source) -> Streams {
    // `true` and `false`: what this setting was before.
    let words = [
        ("strict", OrderEvents::Strict),
        ("all", OrderEvents::All),
        ("off", OrderEvents::Off),
        ("true", OrderEvents::All),
        ("false", OrderEvents::Off),
    ];
    Streams {
        max_subscriptions: source.integer("streams.max_subscriptions", 500, SUBSCRIPTIONS_MAX as u64..=100_000)
            as usize,
        order_events: source.choice("streams.order_events", OrderEvents::Strict, "strict, all or off", &words),
    }
}

pub(super) fn limits(source: &mut Source) -> Limits {
    let mut one = |key: &str, default: u64| source.integer(&format!("limits.{key}"), default, 1..=1_000_000) as u32;
    let mut limits = Limits {
        public_ip_per_second: one("public_ip_per_second", 2),
        public_ip_per_minute: one("public_ip_per_minute", 120),
        bootstrap_per_minute: one("bootstrap_per_minute", 1),
        bootstrap_per_hour: one("bootstrap_per_hour", 5),
        placements_per_user: one("placements_per_user", 8),
        placements_per_server: one("placements_per_server", 512),
        meter_loopback: false,
        tiers: edge::settings::DEFAULT_TIERS,
    };
    for ((_, name), tier) in TIERS.iter().zip(&mut limits.tiers) {
        let mut one = |field: &str, default: u32| one(&format!("tiers.{name}.{field}"), default.into());
        *tier = TierLimits {
            requests_per_second: one("requests_per_second", tier.requests_per_second),
            requests_per_minute: one("requests_per_minute", tier.requests_per_minute),
            max_ws_connections: one("max_ws_connections", tier.max_ws_connections),
            max_batch_size: one("max_batch_size", tier.max_batch_size),
            in_flight: one("in_flight", tier.in_flight),
        };
    }
    limits.meter_loopback = source.boolean("limits.meter_loopback", false);
    limits
}

pub(super) fn flags(source: &mut Source) -> Flags {
    Flags {
        high_freq_updown_enabled: source.boolean("flags.high_freq_updown_enabled", false),
        chart_archive_read_enabled: source.boolean("flags.chart_archive_read_enabled", false),
        feature_simulation_api_enabled: source.boolean("flags.feature_simulation_api_enabled", false),
        closed_beta_mode: source.boolean("flags.closed_beta_mode", false),
        paid_keys_enabled: source.boolean("flags.paid_keys_enabled", true),
        allowlist_enabled: source.boolean("flags.allowlist_enabled", false),
        cohort_cap: source.integer("flags.cohort_cap", 0, 0..=1_000_000_000),
    }
}

/// The limits that are rules of the engine: a day's orders of the free tier (wire.md §12).
pub(super) fn rule_limits(source: &mut Source, rules: &mut Rules) {
    let default = rules.free_daily_orders.into();
    rules.free_daily_orders = source.integer("limits.free_daily_orders", default, 1..=1_000_000_000) as u32;
}

/// The flags of execution.md §1 that are rules of the engine.
pub(super) fn rule_flags(source: &mut Source, rules: &mut Rules) {
    let umbrella = source.boolean("flags.order_semantics_v2_enabled", true);
    let mut switch = |name: &str| source.switch(&format!("flags.{name}"), umbrella);
    rules.flags = RolloutFlags {
        fak_partial_fills: switch("fak_partial_fills"),
        fok_depth_aware: switch("fok_depth_aware"),
        gtd_auto_expiry: switch("gtd_auto_expiry"),
        post_only_enforced: switch("post_only_enforced"),
        min_order_size_enforced: switch("min_order_size_enforced"),
        book_impact_depletion: switch("book_impact_depletion"),
        maker_fill_at_limit: switch("maker_fill_at_limit"),
    };
    rules.depletion_covers_market_orders = source.parsed(
        "flags.depletion_scope",
        true,
        "all or limit_only",
        |text| match text {
            "all" => Some(true),
            "limit_only" => Some(false),
            _ => None,
        },
        |all| if *all { "all".to_owned() } else { "limit_only".to_owned() },
    );
    rules.require_book_depth = source.boolean("flags.trade_require_book_depth", true);
    rules.quote_age_max_us = source.integer("flags.trade_quote_max_age_ms", 60_000, 1..=86_400_000) * MILLISECOND;
    rules.quote_age_enforced = source.boolean("flags.trade_quote_max_age_enforce", true);
    rules.emergency_exit = source.boolean("flags.emergency_exit_enabled", true);
    rules.fok_shortfall = Qty::from_shares(source.integer("flags.fok_shortfall_tolerance_shares", 0, 0..=1_000));
    rules.sync_gtc_match = source.boolean("flags.sync_gtc_match", true);
    rules.warn_slippage_bps = source.integer("flags.warn_slippage_bps", 500, 0..=1_000_000) as u32;
    rules.api_reset_cooldown_us = source.integer("flags.api_reset_cooldown_days", 0, 0..=365) * engine::time::DAY;
    rules.match_interval_us = source.integer("flags.match_interval_ms", 1_000, 10..=60_000) * MILLISECOND;
    rules.max_shares_per_order =
        Qty::from_shares(source.integer("flags.max_shares_per_order", 1_000_000, 1..=1_000_000_000));
}

/// When resting orders fill (`[realism]`).
pub(super) fn realism(source: &mut Source, rules: &mut Rules) {
    rules.fill_model = source.parsed(
        "realism.fill_model",
        rules.fill_model,
        "cross or touch",
        |text| FillModel::ALL.into_iter().find(|model| model.name() == text),
        |model| model.name().to_owned(),
    );
}

pub(super) fn fees(source: &mut Source) -> FeeTable {
    let mut fees = FeeTable::default();
    for category in Category::ALL {
        let name = category.name().unwrap_or("unknown");
        let rate = source.integer(&format!("fees.{name}"), fees.rate(category).0.into(), 0..=10_000);
        fees.set(category, Bps(rate as u32));
    }
    fees
}

pub(super) fn keys(source: &mut Source) -> Keys {
    let default = Rules::default().free_trade_since;
    Keys {
        free_trade_since: source.moment("keys.free_trade_since", Some(default)).unwrap_or_default(),
        beta_until: source.moment("keys.beta_until", None),
        readonly_contained: source.boolean("keys.readonly_contained", false),
    }
}

pub(super) fn access(source: &mut Source) -> Access {
    let account = |text: &str| (!text.is_empty() && text.len() <= 128).then(|| text.to_owned());
    let allowed = "a list of JWT subjects and user ids";
    Access {
        allowlist: source.list("access.allowlist", Vec::new(), allowed, account, String::clone),
        flagged: source.list("access.flagged", Vec::new(), allowed, account, String::clone),
        disabled_keys: source.list(
            "access.disabled_keys",
            Vec::new(),
            "a list of key ids",
            |text| text.parse().ok(),
            u64::to_string,
        ),
    }
}

fn printable(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
