//! Settings for tests: defaults, with overrides from a text.

use super::*;
use toml::{Table, Value};

impl Settings {
    /// All defaults. A test of the process compares them with those that it reads from an empty configuration.
    pub fn defaults() -> Settings {
        let millis = Duration::from_millis;
        let agents =
            ["py_clob_client", "py_clob_client_v2", "rs_clob_client", "@polymarket/clob-client", "NautilusTrader/"];
        Settings {
            server: Server {
                listen: SocketAddr::from(([127, 0, 0, 1], 8_080)),
                hosts: Vec::new(),
                public_url: String::new(),
                drain: millis(10_000),
            },
            http: Http {
                body_bytes_max: 1 << 20,
                connections_max: 10_000,
                connections_per_address_max: 1_000,
                header_timeout: millis(5_000),
                body_timeout: millis(10_000),
                idle_timeout: millis(75_000),
                request_timeout: millis(30_000),
                write_timeout: millis(30_000),
                trusted_proxies: Vec::new(),
                cors_origins: vec!["*".to_owned()],
                upgrade_url: "/pricing".to_owned(),
            },
            data_dir: "papertape-data".into(),
            compat: Compat {
                client_agents: agents.map(str::to_owned).to_vec(),
                trade_ids: false,
                confirmed_trades: false,
                root_mount: true,
                order_version: 2,
                sentinel_allowance: 1_000_000_000_000,
                allowance: Allowance::Auto,
                facade: false,
                address_login: true,
                rehearsal: Rehearsal {
                    mode: Rehearse::Off,
                    accounts: Accounts::Existing,
                    allowances: Allowances::Granted,
                    profile: Profile::Contract,
                },
            },
            local: Some(Local { tier: Tier::Enterprise, balance: Cash::from_dollars(25_000) }),
            brand: Brand::default(),
            auth: Auth { jwt_secrets: Vec::new(), ws_secret: None, server_secret: Secret::new(String::new()) },
            limits: Limits {
                public_ip_per_second: 2,
                public_ip_per_minute: 120,
                callback_ip_per_second: 50,
                callback_ip_per_minute: 1_200,
                bootstrap_per_minute: 1,
                bootstrap_per_hour: 5,
                placements_per_user: 8,
                placements_per_server: 512,
                meter_loopback: false,
                tiers: DEFAULT_TIERS,
            },
            flags: Flags {
                high_freq_updown_enabled: false,
                chart_archive_read_enabled: false,
                feature_simulation_api_enabled: false,
                closed_beta_mode: false,
                paid_keys_enabled: true,
                allowlist_enabled: false,
                cohort_cap: 0,
            },
            keys: Keys {
                free_trade_since: engine::rules::Rules::default().free_trade_since,
                beta_until: None,
                readonly_contained: false,
                realism_self_service: true,
            },
            access: Access { allowlist: Vec::new(), flagged: Vec::new(), disabled_keys: Vec::new() },
            export: Export { max_rows: 100_000 },
            streams: Streams { max_subscriptions: 500, order_events: OrderEvents::Strict },
            billing: Billing {
                is_on: false,
                is_stub: false,
                refund_days: 14,
                refund_text: "Purchases are refunded on request within the window.".to_owned(),
                refund_conditions: vec!["What was bought is taken back as far as it was not used.".to_owned()],
            },
            chat_service: "discord".to_owned(),
            built_from: None,
        }
    }

    /// The defaults with the overrides of `text`, which has the format of the configuration file.
    ///
    /// # Panics
    /// If the text is not TOML, or sets a key that no test has used yet.
    pub fn of_test(text: &str) -> Settings {
        let table: Table = text.parse().expect("TOML");
        let mut settings = Settings::defaults();
        for (section, values) in &table {
            settings.section(section, values);
        }
        // As the process decides: with a trusted proxy, other machines reach a listener on loopback.
        if !settings.server.listen.ip().is_loopback() || !settings.http.trusted_proxies.is_empty() {
            settings.local = None;
            let chosen = table.get("venue").and_then(|values| values.get("address_login"));
            settings.compat.address_login = chosen.is_some_and(flag);
        }
        settings
    }

    fn section(&mut self, section: &str, values: &Value) {
        let Settings { server, http, compat, limits, flags, access, export, .. } = self;
        for (key, value) in values.as_table().expect("a section") {
            let millis = || Duration::from_millis(number(value));
            match (section, key.as_str()) {
                ("server", "listen") => server.listen = text(value).parse().expect("an address"),
                ("server", "hosts") => server.hosts = texts(value),
                ("server", "public_url") => text(value).clone_into(&mut server.public_url),
                ("server", "drain_ms") => server.drain = millis(),
                ("http", "body_bytes_max") => http.body_bytes_max = number(value) as usize,
                ("http", "connections_max") => http.connections_max = number(value) as usize,
                ("http", "connections_per_address_max") => http.connections_per_address_max = number(value) as usize,
                ("http", "header_timeout_ms") => http.header_timeout = millis(),
                ("http", "body_timeout_ms") => http.body_timeout = millis(),
                ("http", "idle_timeout_ms") => http.idle_timeout = millis(),
                ("http", "request_timeout_ms") => http.request_timeout = millis(),
                ("http", "write_timeout_ms") => http.write_timeout = millis(),
                ("http", "cors_origins") => http.cors_origins = texts(value),
                ("http", "trusted_proxies") => {
                    let networks = texts(value).into_iter();
                    http.trusted_proxies =
                        networks.map(|network| Network::parse(&network).expect("a network")).collect();
                }
                ("access", "allowlist") => access.allowlist = texts(value),
                ("access", "flagged") => access.flagged = texts(value),
                ("access", "disabled_keys") => {
                    access.disabled_keys = value.as_array().expect("a list").iter().map(number).collect();
                }
                ("export", "max_rows") => export.max_rows = number(value),
                ("flags", "high_freq_updown_enabled") => flags.high_freq_updown_enabled = flag(value),
                ("flags", "chart_archive_read_enabled") => flags.chart_archive_read_enabled = flag(value),
                ("flags", "feature_simulation_api_enabled") => flags.feature_simulation_api_enabled = flag(value),
                ("flags", "closed_beta_mode") => flags.closed_beta_mode = flag(value),
                ("flags", "paid_keys_enabled") => flags.paid_keys_enabled = flag(value),
                ("flags", "allowlist_enabled") => flags.allowlist_enabled = flag(value),
                ("flags", "cohort_cap") => flags.cohort_cap = number(value),
                ("venue", "address_login") => compat.address_login = flag(value),
                ("venue", "rehearse") => compat.rehearsal.mode = mode(text(value)),
                ("venue", "accounts") => {
                    compat.rehearsal.accounts = if text(value) == "new" { Accounts::New } else { Accounts::Existing };
                }
                ("venue", "allowances") => {
                    compat.rehearsal.allowances =
                        if text(value) == "declared" { Allowances::Declared } else { Allowances::Granted };
                }
                ("venue", "profile") => {
                    let known = Profile::ALL.into_iter().find(|(name, _)| *name == text(value));
                    compat.rehearsal.profile = known.expect("a profile").1;
                }
                ("limits", "public_ip_per_second") => limits.public_ip_per_second = number(value) as u32,
                ("limits", "public_ip_per_minute") => limits.public_ip_per_minute = number(value) as u32,
                ("limits", "callback_ip_per_second") => limits.callback_ip_per_second = number(value) as u32,
                ("limits", "callback_ip_per_minute") => limits.callback_ip_per_minute = number(value) as u32,
                ("limits", "placements_per_user") => limits.placements_per_user = number(value) as u32,
                ("limits", "meter_loopback") => limits.meter_loopback = flag(value),
                ("limits", "tiers") => set_tiers(limits, value),
                _ => panic!("{section}.{key}: add an arm for it to `Settings::section`"),
            }
        }
    }
}

fn set_tiers(all: &mut Limits, values: &Value) {
    for (name, limits) in values.as_table().expect("tiers") {
        let place = TIERS.iter().position(|(_, known)| known == name).expect("a tier");
        let tier = &mut all.tiers[place];
        for (key, value) in limits.as_table().expect("limits of a tier") {
            let field = match key.as_str() {
                "requests_per_second" => &mut tier.requests_per_second,
                "requests_per_minute" => &mut tier.requests_per_minute,
                "max_ws_connections" => &mut tier.max_ws_connections,
                "max_batch_size" => &mut tier.max_batch_size,
                "in_flight" => &mut tier.in_flight,
                _ => panic!("limits.tiers.{name}.{key} is not a limit"),
            };
            *field = number(value) as u32;
        }
    }
}

fn mode(word: &str) -> Rehearse {
    match word {
        "off" => Rehearse::Off,
        "warn" => Rehearse::Warn,
        "enforce" => Rehearse::Enforce,
        other => panic!("{other} is not a mode of the rehearsal"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().expect("a list").iter().map(|value| text(value).to_owned()).collect()
}

fn number(value: &Value) -> u64 {
    value.as_integer().and_then(|number| u64::try_from(number).ok()).expect("a number that is not negative")
}

fn flag(value: &Value) -> bool {
    value.as_bool().expect("true or false")
}
