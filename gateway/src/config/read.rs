//! Copies values into the parts of [`Config`]: every row of the table goes to its field.

use super::source::Values;
use super::table::{price_key, texts};
use super::*;
use engine::fee::FeeRounding;
use engine::format::Formats;
use engine::market::terms::Category;
use engine::realism::FillModel;
use engine::rules::FeeRates;
use engine::time::HOUR;
use engine::user::Tier;
use engine::user::billing::{BillingInterval, Product};

pub(super) fn server(values: &Values) -> Server {
    Server {
        listen: values.parsed("server.listen"),
        hosts: values.list("server.hosts").to_vec(),
        public_url: values.text("server.public_url").to_owned(),
        io_threads: values.number("server.io_threads"),
        busy_poll: values.boolean("server.busy_poll"),
        drain: values.millis("server.drain_ms"),
        clock_ahead_file: values.path("server.clock_ahead_file"),
    }
}

pub(super) fn log(values: &Values) -> Log {
    Log { level: values.optional_word("log.level"), format: values.word("log.format") }
}

pub(super) fn admin(values: &Values) -> Admin {
    Admin {
        listen: values.optional("admin.listen").map(|_| values.parsed("admin.listen")),
        remote: values.boolean("admin.remote"),
        token_file: values.path("admin.token_file"),
        slow_peer: values.seconds("admin.slow_peer_s"),
    }
}

pub(super) fn http(values: &Values) -> Http {
    Http {
        body_bytes_max: values.number("http.body_bytes_max"),
        connections_max: values.number("http.connections_max"),
        connections_per_address_max: values.number("http.connections_per_address_max"),
        header_timeout: values.millis("http.header_timeout_ms"),
        body_timeout: values.millis("http.body_timeout_ms"),
        idle_timeout: values.millis("http.idle_timeout_ms"),
        request_timeout: values.millis("http.request_timeout_ms"),
        write_timeout: values.millis("http.write_timeout_ms"),
        trusted_proxies: values.list("http.trusted_proxies").iter().filter_map(|text| Network::parse(text)).collect(),
        cors_origins: values.list("http.cors_origins").to_vec(),
        upgrade_url: values.text("http.upgrade_url").to_owned(),
    }
}

pub(super) fn journal(values: &Values) -> Journal {
    Journal {
        durability: values.word("journal.durability"),
        segment_bytes: values.parsed("journal.segment_bytes"),
        spares_count: values.number("journal.spares_count"),
        reserve_bytes: values.number("journal.reserve_bytes"),
        checkpoint_segments: values.number("journal.checkpoint_segments"),
        crash_at: texts::crash_at(values.text("journal.crash_at")),
    }
}

pub(super) fn archive(values: &Values) -> Archive {
    let data_dir = Path::new(values.text("data.dir"));
    Archive {
        dir: values.path("archive.dir").unwrap_or_else(|| data_dir.join("archive")),
        build: values.word("archive.build"),
        seal_after: values.seconds("archive.seal_after_s"),
        threads: values.number("archive.threads"),
        memory_bytes: values.number("archive.memory_bytes"),
        keep_days: values.number("archive.keep_days"),
        raw_keep_days: values.number("archive.raw_keep_days"),
        bytes_max: values.number("archive.bytes_max"),
        books_bytes: values.number("archive.books_bytes"),
        cache_bytes: values.number("archive.cache_bytes"),
        fetch_url: values.optional("archive.fetch_url").map(str::to_owned),
        crash_at: values.number("archive.crash_at"),
    }
}

pub(super) fn brand(values: &Values) -> Brand {
    Brand {
        key_prefix: values.text("brand.key_prefix").to_owned(),
        key_env: values.text("brand.key_env").to_owned(),
        header_prefix: values.text("brand.header_prefix").to_owned(),
        key_header_aliases: values.list("brand.key_header_aliases").to_vec(),
    }
}

pub(super) fn auth(values: &Values) -> Auth {
    Auth {
        jwt_secrets: values.secrets("auth.jwt_secret").to_vec(),
        ws_secret: values.secrets("auth.ws_secret").first().cloned(),
        server_secret: Secret::new(String::new()),
    }
}

pub(super) fn engine(values: &Values) -> Engine {
    Engine { shards: values.number("engine.shards"), prefault_bytes: values.number("engine.prefault_bytes") }
}

pub(super) fn limits(values: &Values) -> Limits {
    let mut limits = Limits {
        public_ip_per_second: values.number("limits.public_ip_per_second"),
        public_ip_per_minute: values.number("limits.public_ip_per_minute"),
        callback_ip_per_second: values.number("limits.callback_ip_per_second"),
        callback_ip_per_minute: values.number("limits.callback_ip_per_minute"),
        bootstrap_per_minute: values.number("limits.bootstrap_per_minute"),
        bootstrap_per_hour: values.number("limits.bootstrap_per_hour"),
        placements_per_user: values.number("limits.placements_per_user"),
        placements_per_server: values.number("limits.placements_per_server"),
        meter_loopback: values.boolean("limits.meter_loopback"),
        tiers: edge::settings::DEFAULT_TIERS,
    };
    for ((_, name), tier) in TIERS.iter().zip(&mut limits.tiers) {
        let one = |field: &str| values.number(&format!("limits.tiers.{name}.{field}"));
        *tier = TierLimits {
            requests_per_second: one("requests_per_second"),
            requests_per_minute: one("requests_per_minute"),
            max_ws_connections: one("max_ws_connections"),
            max_batch_size: one("max_batch_size"),
            in_flight: one("in_flight"),
        };
    }
    limits
}

pub(super) fn simulation(values: &Values) -> Simulation {
    Simulation {
        threads: values.number("simulation.threads"),
        job_memory_bytes: values.number("simulation.job_memory_bytes"),
        export_dir: values.path("simulation.export_dir"),
        export_bytes_max: values.number("simulation.export_bytes_max"),
    }
}

pub(super) fn published(values: &Values) -> Published {
    let data_dir = Path::new(values.text("data.dir"));
    Published {
        football_dir: values.text("football.provider").strip_prefix("file:").map(PathBuf::from),
        incidents_file: values.path("status.incidents_file").unwrap_or_else(|| data_dir.join(crate::incidents::FILE)),
    }
}

pub(super) fn email(values: &Values) -> Email {
    Email {
        by: values.optional("email.smtp_url").and_then(MailBy::parse),
        from: values.text("email.from").to_owned(),
        user: values.optional("email.smtp_user").map(str::to_owned),
        password_file: values.path("email.smtp_password_file"),
    }
}

pub(super) fn integrations(values: &Values) -> Integrations {
    Integrations {
        chat_service: values.text("integrations.chat_service").to_owned(),
        chat_hosts: values.list("integrations.chat_hosts").to_vec(),
        allow_private_targets: values.boolean("integrations.allow_private_targets"),
        first_retry: values.millis("integrations.first_retry_ms"),
        timeout: values.millis("integrations.timeout_ms"),
    }
}

pub(super) fn billing(values: &Values) -> Billing {
    let mut prices = Vec::new();
    for product in Product::ALL {
        for interval in BillingInterval::ALL {
            let ids = values.optional(&price_key(product, interval)).into_iter().flat_map(|ids| ids.split(','));
            prices.extend(ids.map(|id| Price { id: id.to_owned(), product, interval }));
        }
    }
    Billing {
        provider: values.word("billing.provider"),
        secret_key: values.secrets("billing.secret_key").first().cloned(),
        webhook_secrets: values.secrets("billing.webhook_secrets").to_vec(),
        stripe_base_url: values.text("billing.stripe_base_url").to_owned(),
        prices,
        success_url: values.text("billing.success_url").to_owned(),
        cancel_url: values.text("billing.cancel_url").to_owned(),
        return_url: values.text("billing.return_url").to_owned(),
        calls_max: values.number("billing.calls_max"),
        refund_days: values.number("billing.refund_days"),
        refund_text: values.text("billing.refund_text").to_owned(),
        refund_conditions: values.list("billing.refund_conditions").to_vec(),
    }
}

impl Word for BillingProvider {
    fn words() -> Vec<(&'static str, BillingProvider)> {
        vec![("none", BillingProvider::None), ("stub", BillingProvider::Stub), ("stripe", BillingProvider::Stripe)]
    }
}

pub(super) fn flags(values: &Values) -> Flags {
    Flags {
        high_freq_updown_enabled: values.boolean("flags.high_freq_updown_enabled"),
        chart_archive_read_enabled: values.boolean("flags.chart_archive_read_enabled"),
        feature_simulation_api_enabled: values.boolean("flags.feature_simulation_api_enabled"),
        closed_beta_mode: values.boolean("flags.closed_beta_mode"),
        paid_keys_enabled: values.boolean("flags.paid_keys_enabled"),
        allowlist_enabled: values.boolean("flags.allowlist_enabled"),
        cohort_cap: values.number("flags.cohort_cap"),
    }
}

/// Fees, rollout flags and bounds for the engine.
pub(super) fn rules(values: &Values) -> Rules {
    Rules {
        fees: fees(values),
        flags: RolloutFlags {
            fak_partial_fills: values.boolean("flags.fak_partial_fills"),
            fok_depth_aware: values.boolean("flags.fok_depth_aware"),
            gtd_auto_expiry: values.boolean("flags.gtd_auto_expiry"),
            post_only_enforced: values.boolean("flags.post_only_enforced"),
            min_order_size_enforced: values.boolean("flags.min_order_size_enforced"),
            book_impact_depletion: values.boolean("flags.book_impact_depletion"),
            maker_fill_at_limit: values.boolean("flags.maker_fill_at_limit"),
        },
        formats: values.word("journal.write_formats"),
        max_shares_per_order: Qty::from_shares(values.number("flags.max_shares_per_order")),
        quote_age_max_us: values.number::<u64>("flags.trade_quote_max_age_ms") * MILLISECOND,
        quote_age_enforced: values.boolean("flags.trade_quote_max_age_enforce"),
        warn_slippage_bps: values.number("flags.warn_slippage_bps"),
        match_interval_us: values.number::<u64>("flags.match_interval_ms") * MILLISECOND,
        fok_shortfall: Qty::from_shares(values.number("flags.fok_shortfall_tolerance_shares")),
        require_book_depth: values.boolean("flags.trade_require_book_depth"),
        emergency_exit: values.boolean("flags.emergency_exit_enabled"),
        sync_gtc_match: values.boolean("flags.sync_gtc_match"),
        depletion_covers_market_orders: values.text("flags.depletion_scope") == "all",
        free_daily_orders: values.number("limits.free_daily_orders"),
        client_ids_us: values.number::<u64>("limits.client_ids_hours") * HOUR,
        api_reset_cooldown_us: values.number::<u64>("flags.api_reset_cooldown_days") * engine::time::DAY,
        free_trade_since: values.moment("keys.free_trade_since").unwrap_or_default(),
        beta_until: values.moment("keys.beta_until"),
        mails: !values.text("email.smtp_url").is_empty(),
        ..Rules::default()
    }
}

fn fees(values: &Values) -> FeeTable {
    let mut fees = FeeTable::default();
    for category in Category::ALL {
        let name = category.name().unwrap_or("unknown");
        fees.set(category, Bps(values.number(&format!("fees.{name}"))));
    }
    let source: Option<FeeRates> = values.optional_word("fees.source");
    // The previous formats have no place for the fees that markets state.
    let has_schedules = values.word::<Formats>("journal.write_formats").is_newest();
    fees.source = source.filter(|_| has_schedules).unwrap_or_default();
    fees.rounding = values.word("fees.rounding");
    fees.accrues_rebates = values.text("fees.maker_rebate") == "accrue";
    fees
}

pub(super) fn keys(values: &Values, rules: &Rules) -> Keys {
    Keys {
        free_trade_since: rules.free_trade_since,
        beta_until: rules.beta_until,
        readonly_contained: values.boolean("keys.readonly_contained"),
        realism_self_service: values.boolean("realism.self_service"),
    }
}

pub(super) fn access(values: &Values) -> Access {
    Access {
        allowlist: values.list("access.allowlist").to_vec(),
        flagged: values.list("access.flagged").to_vec(),
        disabled_keys: values.list("access.disabled_keys").iter().filter_map(|id| id.parse().ok()).collect(),
    }
}

pub(super) fn streams(values: &Values) -> Streams {
    Streams {
        max_subscriptions: values.number("streams.max_subscriptions"),
        order_events: values.word("streams.order_events"),
    }
}

impl Word for LogLevel {
    fn words() -> Vec<(&'static str, LogLevel)> {
        LogLevel::ALL.into_iter().map(|level| (level.name(), level)).collect()
    }
}

impl Word for LogFormat {
    fn words() -> Vec<(&'static str, LogFormat)> {
        vec![("auto", LogFormat::Auto), ("text", LogFormat::Text), ("json", LogFormat::Json)]
    }
}

impl Word for FeeRates {
    fn words() -> Vec<(&'static str, FeeRates)> {
        FeeRates::ALL.into_iter().map(|source| (source.name(), source)).collect()
    }
}

impl Word for FeeRounding {
    fn words() -> Vec<(&'static str, FeeRounding)> {
        FeeRounding::CHOICES.into_iter().map(|(rounding, name)| (name, rounding)).collect()
    }
}

impl Word for Formats {
    fn words() -> Vec<(&'static str, Formats)> {
        vec![("newest", Formats::Newest), ("previous", Formats::Previous)]
    }
}

impl Word for ArchiveBuild {
    fn words() -> Vec<(&'static str, ArchiveBuild)> {
        vec![("auto", ArchiveBuild::Auto), ("off", ArchiveBuild::Off)]
    }
}

impl Word for Durability {
    fn words() -> Vec<(&'static str, Durability)> {
        vec![("process", Durability::Process), ("power", Durability::Power)]
    }
}

impl Word for OrderEvents {
    fn words() -> Vec<(&'static str, OrderEvents)> {
        vec![("strict", OrderEvents::Strict), ("all", OrderEvents::All), ("off", OrderEvents::Off)]
    }
}

impl Word for Tier {
    fn words() -> Vec<(&'static str, Tier)> {
        TIERS.into_iter().map(|(tier, name)| (name, tier)).collect()
    }
}

impl Word for FillModel {
    fn words() -> Vec<(&'static str, FillModel)> {
        [FillModel::Cross, FillModel::Touch].into_iter().map(|model| (model.name(), model)).collect()
    }
}
