mod secrets;

use super::*;
use ::venue::tape::Origin;
use ::venue::{Speed, VenueKind};
use engine::fee::FeeRounding;
use engine::market::terms::Category;
use engine::realism::FillModel;
use engine::rules::FeeRates;
use engine::user::Tier;

fn read(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    Config::read(Some(("papertape.toml", file)), owned(env), owned(flags))
}

fn refused(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    read(file, env, flags).expect_err("this configuration is wrong").to_string()
}

#[test]
fn the_defaults_are_as_documented() {
    let config = Config::defaults();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.data.dir, Path::new("papertape-data"));
    assert_eq!(config.journal.durability, Durability::Process);
    assert_eq!(config.venue.kind, VenueKind::Synthetic);
    assert_eq!(config.compat.client_agents.len(), 5);
    assert!(!config.compat.trade_ids && !config.compat.confirmed_trades);
    assert!(config.compat.root_mount && config.compat.address_login);
    assert_eq!((config.compat.order_version, config.compat.sentinel_allowance), (2, 1_000_000_000_000));
    assert_eq!(config.brand.key_header_aliases, ["MKT_API_KEY", "Mkt-API-Key", "POLY_API_KEY"]);
    assert_eq!(config.limits.tier(Tier::ProPlus), &edge::settings::DEFAULT_TIERS[2]);
    assert_eq!(config.limits.tier(Tier::Free).in_flight, 10);
    assert_eq!(config.limits.placements_per_server, 512);
    assert_eq!(config.rules.free_daily_orders, 100);
    let seconds = |bound: Duration| bound.as_secs();
    assert_eq!((seconds(config.http.header_timeout), seconds(config.http.body_timeout)), (5, 10));
    assert!(config.rules.flags.fok_depth_aware && config.rules.sync_gtc_match);
    assert_eq!(config.rules.fees.rate(Category::Crypto), Bps(700));
    assert_eq!(wire::instant::ts_text(config.keys.free_trade_since), "2026-09-05T00:00:00Z");
}

/// Where fees come from, how they are rounded, and whether makers earn rebates; the previous formats have the table only.
#[test]
fn fees_have_a_source_and_a_rounding() {
    use FeeRates::{Auto, Table};
    use FeeRounding::{Down, HalfUp};
    let cases = [
        ("", (Table, HalfUp, false)),
        ("[fees]\nsource = \"table\"\nrounding = \"half_up\"\nmaker_rebate = \"off\"", (Table, HalfUp, false)),
        ("[fees]\nsource = \"auto\"", (Auto, HalfUp, false)),
        ("[fees]\nsource = \"\"", (Table, HalfUp, false)),
        ("[fees]\nrounding = \"down\"\nmaker_rebate = \"accrue\"", (Table, Down, true)),
        ("[fees]\nsource = \"auto\"\n[journal]\nwrite_formats = \"previous\"", (Table, HalfUp, false)),
    ];
    for (file, expected) in cases {
        let config = read(file, &[], &[]).expect("a configuration");
        let fees = &config.rules.fees;
        assert_eq!((fees.source, fees.rounding, fees.accrues_rebates), expected, "{file}");
        assert_eq!(config.venue.live.follows_fees, expected.0 == Auto, "{file}");
    }
    let wrong =
        [("source", "market"), ("source", "AUTO "), ("rounding", "up"), ("rounding", ""), ("maker_rebate", "on")];
    for (key, value) in wrong {
        let error = refused(&format!("[fees]\n{key} = {value:?}"), &[], &[]);
        assert!(error.contains(&format!("fees.{key}")), "{error}");
    }
    println!("settings of fees: {} cases", cases.len() + wrong.len());
}

/// The folder follows the data directory; an address is public and encrypted, or of this machine.
#[test]
fn the_archive_has_its_folder_and_an_address() {
    let archive = |file: &str| read(file, &[], &[]).expect("a configuration").archive;
    let defaults = Config::defaults().archive;
    assert_eq!((defaults.dir.as_path(), defaults.build), (Path::new("papertape-data/archive"), ArchiveBuild::Auto));
    assert_eq!((defaults.seal_after.as_secs(), defaults.memory_bytes), (600, 512 << 20));
    assert_eq!(archive("[data]\ndir = \"d\"").dir, Path::new("d/archive"));
    assert_eq!(archive("[data]\ndir = \"d\"\n[archive]\ndir = \"a\"\nbuild = \"off\"").dir, Path::new("a"));
    let address = |text: &str| read(&format!("[archive]\nfetch_url = {text:?}"), &[], &[]);
    for (text, expected) in [
        ("", None),
        ("https://example.org", Some("https://example.org")),
        ("https://example.org:8443/hours/", Some("https://example.org:8443/hours")),
        ("http://127.0.0.1:9000/x", Some("http://127.0.0.1:9000/x")),
        ("http://[::1]:9000", Some("http://[::1]:9000")),
        ("http://[::1]", Some("http://[::1]")),
        ("http://localhost", Some("http://localhost")),
    ] {
        assert_eq!(address(text).expect(text).archive.fetch_url.as_deref(), expected, "{text}");
    }
    for text in [
        "example.org",
        "http://example.org",
        "http://127.0.0.1@example.org/",
        "http://127.0.0.1.example.org",
        "ftp://127.0.0.1",
        "https://",
        "https:///x",
        "https://example.org/?x",
        "https://example.org/ x",
    ] {
        assert!(address(text).is_err_and(|error| error.to_string().contains("archive.fetch_url")), "{text}");
    }
    println!("archive settings: 20 cases");
}

/// Off by default; never on the server's own port.
#[test]
fn the_admin_listener_is_optional() {
    assert_eq!(Config::defaults().admin.listen, None);
    for (file, expected) in [
        ("[admin]\nlisten = \"\"", None),
        ("[admin]\nlisten = \"127.0.0.1:9464\"", Some("127.0.0.1:9464")),
        ("[admin]\nlisten = \"[::1]:0\"", Some("[::1]:0")),
        ("[admin]\nlisten = \"0.0.0.0:9464\"\nremote = true\ntoken_file = \"t\"", Some("0.0.0.0:9464")),
        ("[admin]\nlisten = \"127.0.0.1:9464\"\nremote = true", Some("127.0.0.1:9464")),
        ("[admin]\nremote = true\ntoken_file = \"t\"", None),
        ("[server]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"", Some("127.0.0.1:0")),
    ] {
        let listen = read(file, &[], &[]).unwrap().admin.listen.map(|listen| listen.to_string());
        assert_eq!(listen.as_deref(), expected, "{file}");
    }
    let same = "admin.listen: allowed is another port than 8080, that of server.listen";
    let open =
        "admin.listen: allowed is an address that others reach only with admin.remote = true and an admin.token_file";
    let odd = "admin.listen (papertape.toml): allowed is an address with a port, like 127.0.0.1:9464; \"\" for none";
    for (file, expected) in [
        ("[admin]\nlisten = \"127.0.0.1:8080\"", same),
        ("[admin]\nlisten = \"0.0.0.0:8080\"\nremote = true\ntoken_file = \"t\"", same),
        ("[admin]\nlisten = \"0.0.0.0:9464\"", open),
        ("[admin]\nlisten = \"[::]:9464\"\nremote = true", open),
        ("[admin]\nlisten = \"192.0.2.1:9464\"\ntoken_file = \"t\"", open),
        ("[admin]\nlisten = \"0.0.0.0:9464\"\nremote = false\ntoken_file = \"t\"", open),
        ("[server]\nlisten = \"0.0.0.0:8080\"\n[admin]\nlisten = \"127.0.0.1:8080\"", same),
        ("[admin]\nlisten = \"9464\"", odd),
        ("[admin]\nlisten = 9464", odd),
        ("[admin]\nlisten = \"localhost:9464\"", odd),
        ("[admin]\nlisten = \"127.0.0.1:99999\"", odd),
        ("[admin]\nlisten = true", odd),
        (
            "[admin]\nport = 9464",
            "admin.port (papertape.toml): unknown key; allowed are admin.listen, admin.remote, admin.token_file, \
             admin.slow_peer_s",
        ),
    ] {
        assert_eq!(refused(file, &[], &[]), expected, "{file}");
    }
    println!("admin listeners: 21 cases");
}

/// Only if no other machine can connect, unless it is set explicitly.
#[test]
fn addresses_log_in_on_loopback() {
    for (file, expected) in [
        ("[server]\nlisten = \"127.0.0.1:1\"", true),
        ("[server]\nlisten = \"[::1]:1\"", true),
        ("[server]\nlisten = \"0.0.0.0:1\"", false),
        ("[server]\nlisten = \"192.168.0.1:1\"", false),
        ("[http]\ntrusted_proxies = [\"127.0.0.1\"]", false),
        // A name with a dot comes through a proxy.
        ("[server]\nhosts = [\"trade.example.com\"]", false),
        ("[server]\nhosts = []", true),
        ("[server]\nhosts = [\"trade.example.com\"]\n[venue]\naddress_login = true", true),
        ("[venue]\naddress_login = false", false),
        ("[server]\nlisten = \"0.0.0.0:1\"\n[venue]\naddress_login = true", true),
        ("[server]\nlisten = \"0.0.0.0:1\"\n[venue]\naddress_login = \"auto\"", false),
    ] {
        assert_eq!(read(file, &[], &[]).unwrap().compat.address_login, expected, "{file}");
    }
}

/// The plan of `[local]` is for a server that no other machine reaches, however addresses are admitted.
#[test]
fn the_plan_of_addresses_is_local() {
    let (enterprise, pro) = (Some((Tier::Enterprise, 25_000_000_000)), Some((Tier::Pro, 500_000)));
    for (file, expected) in [
        ("", enterprise),
        ("[server]\nlisten = \"[::1]:1\"", enterprise),
        ("[local]\ntier = \"pro\"\nbalance = \"0.5\"", pro),
        ("[server]\nlisten = \"0.0.0.0:1\"\n[venue]\naddress_login = true\n[local]\ntier = \"pro\"", None),
        ("[http]\ntrusted_proxies = [\"127.0.0.1\"]\n[venue]\naddress_login = true", None),
        ("[server]\nhosts = [\"trade.example.com\"]\n[venue]\naddress_login = true", None),
    ] {
        let local = read(file, &[], &[]).unwrap().local;
        assert_eq!(local.map(|local| (local.tier, local.balance.0)), expected, "{file}");
    }
}

#[test]
fn later_layers_win() {
    let file =
        "[server]\nlisten = \"127.0.0.1:1\"\n[limits]\npublic_ip_per_second = 7\n[limits.tiers.free]\nin_flight = 3\n";
    let config = read(
        file,
        &[("PAPERTAPE_SERVER_LISTEN", "127.0.0.1:2"), ("PAPERTAPE_LIMITS_TIERS_FREE_IN_FLIGHT", "4"), ("HOME", "/")],
        &[("server.listen", "127.0.0.1:3")],
    )
    .unwrap();
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(config.limits.public_ip_per_second, 7);
    assert_eq!(config.limits.tier(Tier::Free).in_flight, 4);
    let line = |text: &str| config.lines.iter().any(|line| line == text);
    assert!(line("server.listen = 127.0.0.1:3 (command line)"), "{:#?}", config.lines);
    assert!(line("limits.public_ip_per_second = 7 (papertape.toml)"));
    assert!(line("limits.tiers.free.in_flight = 4 (environment, PAPERTAPE_LIMITS_TIERS_FREE_IN_FLIGHT)"));
}

/// Configuration files of earlier versions have `true` or `false`.
#[test]
fn order_events_are_a_word_or_the_former_switch() {
    assert_eq!(Config::defaults().streams.order_events, OrderEvents::Strict);
    let mut cases = 1;
    for (file, env, expected, shown) in [
        ("order_events = \"strict\"", None, OrderEvents::Strict, "strict"),
        ("order_events = \"all\"", None, OrderEvents::All, "all"),
        ("order_events = \"off\"", None, OrderEvents::Off, "off"),
        ("order_events = true", None, OrderEvents::All, "all"),
        ("order_events = false", None, OrderEvents::Off, "off"),
        ("", Some("true"), OrderEvents::All, "all"),
        ("order_events = \"all\"", Some("strict"), OrderEvents::Strict, "strict"),
    ] {
        let env: Vec<(&str, &str)> = env.map(|text| ("PAPERTAPE_STREAMS_ORDER_EVENTS", text)).into_iter().collect();
        let config = read(&format!("[streams]\n{file}"), &env, &[]).unwrap();
        assert_eq!(config.streams.order_events, expected, "{file} {env:?}");
        let line = format!("streams.order_events = {shown} (");
        assert!(config.lines.iter().any(|shown| shown.starts_with(&line)), "{line} in {:?}", config.lines);
        cases += 1;
    }
    println!("{cases} cases");
}

#[test]
fn every_kind_of_value_is_read() {
    let config = read(
        r#"
        [venue]
        kind = "replay"
        tape = "/tapes"
        speed = 60
        [flags]
        order_semantics_v2_enabled = false
        gtd_auto_expiry = true
        fok_depth_aware = "auto"
        depletion_scope = "limit_only"
        [realism]
        fill_model = "touch"
        [fees]
        sports = 0
        [fees.category_map]
        Esports = "sports"
        [keys]
        free_trade_since = 2026-01-02
        beta_until = "2026-10-01T12:00:00Z"
        [access]
        disabled_keys = [268435457]
        flagged = ["9b1f", "42"]
        [http]
        trusted_proxies = ["10.0.0.0/8", "::1"]
        cors_origins = []
        [auth]
        jwt_secret = ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"]
        ws_secret = "0123456789abcdef0123456789abcdeF"
        "#,
        &[("PAPERTAPE_FEES_CATEGORY_MAP_NFT", "crypto"), ("PAPERTAPE_VENUE_FOLLOW", "TRUE")],
        &[("venue.speed", "max"), ("venue.trade_ids", "real")],
    )
    .unwrap();
    assert_eq!((config.venue.speed, config.venue.follow), (Speed::Max, true));
    assert!(config.compat.trade_ids);
    let flags = config.rules.flags;
    assert!(flags.gtd_auto_expiry && !flags.fok_depth_aware && !flags.post_only_enforced);
    assert!(!config.rules.depletion_covers_market_orders);
    let kind = config.rules.realism.get("kind").expect("built in").fill.model;
    assert_eq!((kind, &*config.rules.realism.chosen_by_default().name), (FillModel::Touch, "kind"));
    assert_eq!(config.rules.fees.rate(Category::Sports), Bps(0));
    for (name, category) in [("esports", Some(Category::Sports)), ("NFT", Some(Category::Crypto)), ("chess", None)] {
        assert_eq!(config.venue.categories.named(name), category, "{name}");
    }
    assert_eq!(config.access.disabled_keys, [268_435_457]);
    assert_eq!(config.access.flagged, ["9b1f", "42"]);
    assert!(config.keys.beta_until.is_some() && config.http.cors_origins.is_empty());
    assert_eq!((config.auth.jwt_secrets.len(), config.auth.ws_secret.is_some()), (2, true));
    let shown = format!("{:?} {:?}", config.lines, config.auth);
    assert!(!shown.contains("0123456789abcdef"), "{shown}");
}

#[test]
fn sets_of_realism_are_a_base_and_single_settings() {
    let config = read(
        r#"
        [realism]
        default = "mine"
        [realism.sets.mine]
        base = "theirs"
        cancel_share = 0.25
        [realism.sets.theirs]
        base = "venue"
        n = 3
        depth_share = "0.5"
        match_window_ms = 0
        [realism.sets.slow]
        base = "kind"
        fill_model = "through"
        half_life_s = 86400
        "#,
        &[("PAPERTAPE_REALISM_SETS_THEIRS_HALF_LIFE_S", "7"), ("PAPERTAPE_REALISM_SETS_ENV_BASE", "thin")],
        &[],
    )
    .unwrap();
    let sets = &config.rules.realism;
    assert_eq!((sets.iter().count(), &*sets.chosen_by_default().name), (8, "mine"));
    let of = |name: &str| {
        let fill = sets.get(name).expect("it is set").fill;
        (fill.model, fill.n, fill.cancel_share.0, fill.depth_share.0, fill.match_window_ms, fill.half_life_s)
    };
    let rows = [
        ("mine", (FillModel::QueueProb, 3, 2_500, 5_000, 0, 7)),
        ("theirs", (FillModel::QueueProb, 3, 0, 5_000, 0, 7)),
        ("slow", (FillModel::Through, 2, 0, 10_000, 1_000, 86_400)),
        ("env", (FillModel::Queue, 2, 0, 5_000, 1_000, 60)),
        ("kind", (FillModel::Cross, 2, 0, 10_000, 1_000, 60)),
    ];
    for (name, expected) in rows {
        assert_eq!(of(name), expected, "{name}");
    }
    assert!(config.keys.realism_self_service);
    let remote = read("[server]\nlisten = \"0.0.0.0:1\"", &[], &[]).unwrap();
    assert!(!remote.keys.realism_self_service, "others reach it");
    println!("sets of realism: {} cases", rows.len());
}

/// Settings of a replay are refused elsewhere, in any layer, unless they are at their defaults.
#[test]
fn a_start_without_a_replay_refuses_its_settings() {
    type Row<'a> = (&'a str, Option<(&'a str, &'a str)>, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let rows: [Row<'_>; 13] = [
        ("", None, &[], &[]),
        ("[venue]\nspeed = 60", None, &[], &["venue.speed (papertape.toml): only a replay takes it"]),
        ("[venue]\nspeed = \"max\"\nkind = \"kalshi\"", None, &[], &["venue.speed (papertape.toml)"]),
        ("", Some(("PAPERTAPE_VENUE_SPEED", "2")), &[], &["venue.speed (environment, PAPERTAPE_VENUE_SPEED)"]),
        ("", None, &[("venue.speed", "0.5")], &["venue.speed (command line)"]),
        (
            "[venue]\nfollow = true",
            None,
            &[("venue.speed", "2x")],
            &["venue.speed (command", "venue.follow (papertape"],
        ),
        ("", Some(("PAPERTAPE_VENUE_FOLLOW", "true")), &[], &["venue.follow (environment, PAPERTAPE_VENUE_FOLLOW)"]),
        // The default, as it is shown and as it is written.
        ("", None, &[("venue.speed", "1x")], &[]),
        ("[venue]\nspeed = 1", Some(("PAPERTAPE_VENUE_SPEED", "1.000")), &[], &[]),
        ("[venue]\nspeed = \"1.0\"\nfollow = false", None, &[], &[]),
        ("[venue]\nspeed = 60", None, &[("venue.speed", "1")], &[]),
        ("[venue]\nspeed = 60\nkind = \"replay\"", None, &[], &[]),
        ("[venue]\nspeed = \"60x\"\nfollow = true", None, &[("venue.kind", "replay")], &[]),
    ];
    for (file, env, flags, expected) in rows {
        let config = read(file, env.as_slice(), flags).expect("each value is in its range");
        let problems = config.check_of_a_start().err().map_or(Vec::new(), |ConfigError(problems)| problems);
        assert_eq!(problems.len(), expected.len(), "{file} {env:?} {flags:?}: {problems:?}");
        for (line, begins) in problems.iter().zip(expected) {
            assert!(line.starts_with(begins) && line.contains("--tape PATH"), "{file} {env:?} {flags:?}: {line}");
        }
    }
    for wrong in ["x", "1xx", "1 x", "maxx", "-1x", "0x"] {
        assert!(read("", &[("PAPERTAPE_VENUE_SPEED", wrong)], &[]).is_err(), "{wrong}");
    }
    println!("settings of a replay: {} cases", rows.len() + 6);
}

#[test]
fn errors_name_the_key_and_the_allowed_values() {
    for (file, env, expected) in [
        (
            "[data]\ndir = \"\"",
            vec![],
            "data.dir (papertape.toml): allowed is the path of a folder (without the setting it is papertape-data)",
        ),
        ("", vec![("PAPERTAPE_DATA_DIR", "")], "data.dir (environment, PAPERTAPE_DATA_DIR): allowed is the path of a"),
        (
            "[server]\nlissten = \"x\"",
            vec![],
            "server.lissten (papertape.toml): unknown key; allowed are server.listen",
        ),
        (
            "[nonsense]\na = 1",
            vec![],
            "nonsense.a (papertape.toml): unknown key; allowed are [access], [admin], [archive], [auth]",
        ),
        (
            "",
            vec![("PAPERTAPE_SERVER_LISSTEN", "x")],
            "PAPERTAPE_SERVER_LISSTEN (environment): unknown key; allowed are PAPERTAPE_SERVER_LISTEN",
        ),
        // Only the keys of the same section.
        (
            "[limits.tiers.gold]\nin_flight = 1",
            vec![],
            "unknown key; allowed are limits.tiers.free.*, limits.tiers.pro.*, limits.tiers.pro_plus.*, \
             limits.tiers.enterprise.*",
        ),
        (
            "[limits.tiers.free]\nflights = 1",
            vec![],
            "unknown key; allowed are limits.tiers.free.requests_per_second, ",
        ),
        (
            "",
            vec![("PAPERTAPE_LIMITS_TIERS_GOLD_IN_FLIGHT", "1")],
            "unknown key; allowed are PAPERTAPE_LIMITS_TIERS_FREE_*, PAPERTAPE_LIMITS_TIERS_PRO_*",
        ),
        ("", vec![("PAPERTAPE_NONSENSE", "1")], "unknown key; allowed are PAPERTAPE_ACCESS_*, PAPERTAPE_ADMIN_*"),
        ("", vec![("PAPERTAPE_LIMITS_PUBLIC_IP_PER_SECOND", "0")], "an integer from 1 to 1000000"),
        (
            "[limits]\npublic_ip_per_minute = -1",
            vec![],
            "limits.public_ip_per_minute (papertape.toml): allowed is an integer from 1 to 1000000",
        ),
        ("[limits]\npublic_ip_per_minute = \"5\"", vec![], "an integer from 1 to 1000000"),
        (
            "[limits]\ncallback_ip_per_second = 0",
            vec![],
            "limits.callback_ip_per_second (papertape.toml): allowed is an integer from 1 to 1000000",
        ),
        (
            "[limits]\ncallback_ip_per_minute = 1000001",
            vec![],
            "limits.callback_ip_per_minute (papertape.toml): allowed is an integer from 1 to 1000000",
        ),
        // Longer than an integer of TOML may be.
        (
            "[limits]\npublic_ip_per_minute = 99999999999999999999",
            vec![],
            "limits.public_ip_per_minute (papertape.toml): allowed is an integer from 1 to 1000000",
        ),
        (
            "[limits]\npublic_ip_per_minute = 1e999",
            vec![],
            "limits.public_ip_per_minute (papertape.toml): allowed is an integer from 1 to 1000000",
        ),
        (
            "[venue]\nspeed = -1_0e9_99",
            vec![],
            "venue.speed (papertape.toml): allowed is a number from 0.001 to 1000000",
        ),
        ("limits = { public_ip_per_minute = -0x0 }", vec![], "papertape.toml: TOML parse error at line 1"),
        (
            "limits = { tiers.pro = { in_flight = 0xffff_ffff_ffff_ffff_ff } }",
            vec![],
            "limits.tiers.pro.in_flight (papertape.toml): allowed is an integer from ",
        ),
        (
            "[venue]\nspeed = 99999999999999999999",
            vec![],
            "venue.speed (papertape.toml): allowed is a number from 0.001 to 1000000",
        ),
        // Nor is it a text, a list or a switch.
        (
            "[auth]\nws_secret = 99999999999999999999999999999999999",
            vec![],
            "auth.ws_secret (papertape.toml): allowed is a text of at least 32 bytes",
        ),
        (
            "[auth]\njwt_secret = [99999999999999999999999999999999999]",
            vec![],
            "auth.jwt_secret (papertape.toml): allowed is a text, or a list of texts, of at least 32 bytes each",
        ),
        ("[venue]\nfollow = 99999999999999999999", vec![], "venue.follow (papertape.toml): allowed is true or false"),
        (
            "[flags]\nfak_partial_fills = \"maybe\"",
            vec![],
            "flags.fak_partial_fills (papertape.toml): allowed is auto, true or false",
        ),
        ("[journal]\ndurability = \"none\"", vec![], "allowed is process or power"),
        (
            "[journal]\nspares_count = 1",
            vec![],
            "journal.spares_count (papertape.toml): allowed is an integer from 2 to 8",
        ),
        ("[venue]\ntrade_ids = \"some\"", vec![], "none or real"),
        (
            "[streams]\norder_events = \"some\"",
            vec![],
            "streams.order_events (papertape.toml): allowed is strict, all or off",
        ),
        ("[streams]\norder_events = 1", vec![], "streams.order_events (papertape.toml): allowed is strict, all or off"),
        ("[venue]\nallowance = \"none\"", vec![], "auto, sentinel or real"),
        ("[local]\ntier = \"gold\"", vec![], "free, pro, pro_plus or enterprise"),
        ("[local]\nbalance = \"-1\"", vec![], "a text of USD from 0 to 1000000000"),
        ("[local]\nbalance = \"1000000000.01\"", vec![], "a text of USD from 0 to 1000000000"),
        ("[local]\nbalance = \"0.0000001\"", vec![], "a text of USD from 0 to 1000000000"),
        ("[realism]\nfill_model = \"queue\"", vec![], "realism.fill_model (papertape.toml): allowed is cross or touch"),
        ("[realism]\ndefault = \"mine\"", vec![], "realism.default: allowed is kind, venue, thin, brutal"),
        (
            "[realism]\ndefault = \"thin\"\n[journal]\nwrite_formats = \"previous\"",
            vec![],
            "realism.default: allowed is kind while journal.write_formats = previous",
        ),
        ("[realism]\ndefault = \"\"", vec![], "realism.default (papertape.toml): allowed is the name of a set"),
        (
            "[realism.sets.mine]\nn = 2",
            vec![],
            "realism.sets.mine.base: must be set; allowed is kind, venue, thin, brutal",
        ),
        (
            "[realism.sets.a]\nbase = \"b\"\n[realism.sets.b]\nbase = \"a\"",
            vec![],
            "realism.sets.b.base: allowed is kind, ",
        ),
        ("[realism.sets.venue]\nbase = \"kind\"", vec![], "realism.sets.venue: allowed is another name"),
        ("[realism.sets.Mine]\nbase = \"kind\"", vec![], "realism.sets.Mine.base: unknown key"),
        ("[realism.sets.mine]\nbase = \"kind\"\nlatency = 5", vec![], "realism.sets.mine.latency: unknown key"),
        (
            "[realism.sets.mine]\nbase = \"kind\"\nn = 4",
            vec![],
            "realism.sets.mine.n: allowed is an integer from 1 to 3",
        ),
        (
            "[realism.sets.mine]\nbase = \"kind\"\nfill_model = \"Queue\"",
            vec![],
            "realism.sets.mine.fill_model: allowed is touch, cross, through, queue, queue_prob",
        ),
        (
            "[realism.sets.mine]\nbase = \"kind\"\ndepth_share = 0.001",
            vec![],
            "realism.sets.mine.depth_share: allowed is a number from 0.01 to 1",
        ),
        ("[realism.sets.mine]\nbase = \"kind\"\ncancel_share = nan", vec![], "realism.sets.mine.cancel_share"),
        ("[realism.sets.mine]\nbase = \"kind\"\nhalf_life_s = 0", vec![], "an integer from 1 to 86400"),
        ("[venue]\nclient_agents = [\"\"]", vec![], "a list of beginnings of User-Agent texts, none empty"),
        ("[venue]\nspeed = 0", vec![], "a number from 0.001 to 1000000 with at most three decimals, or max"),
        (
            "[engine]\nshards = 1\n[server]\nio_threads = 2",
            vec![],
            "server.io_threads: allowed is 1 while engine.shards is 1",
        ),
        (
            "[server]\nlisten = \"0.0.0.0:1\"\nclock_ahead_file = \"ahead\"",
            vec![],
            "server.clock_ahead_file: for tests, and allowed only where server.listen is loopback",
        ),
        ("[history]\nkeep_days = 3", vec![], "history.keep_days: allowed is 0, or 4 and more"),
        (
            "[history]\nkeep_days = 7\n[limits]\nclient_ids_hours = 168",
            vec![],
            "history.keep_days: allowed is 0, or 8 and more",
        ),
        ("[history]\ndisk_bytes_max = 67108863", vec![], "history.disk_bytes_max: allowed is 0, or 67108864 and more"),
        (
            "[engine]\nshards = 8\n[journal]\nsegment_bytes = 1048576",
            vec![],
            "journal.segment_bytes: too small for this number of engine.shards",
        ),
        (
            "[auth]\njwt_secret = \"short\"",
            vec![],
            "auth.jwt_secret (papertape.toml): allowed is a text, or a list of texts, of at least 32 bytes each",
        ),
        (
            "[auth]\nws_secret = \"short\"",
            vec![],
            "auth.ws_secret (papertape.toml): allowed is a text of at least 32 bytes",
        ),
        (
            "[auth]\nws_secret = [\"0123456789abcdef0123456789abcdef\"]",
            vec![],
            "allowed is a text of at least 32 bytes",
        ),
        (
            "[fees.category_map]\nx = \"nothing\"",
            vec![],
            "fees.category_map.x (papertape.toml): allowed is the name of a fee category",
        ),
        ("[http]\ntrusted_proxies = [\"10.0.0.0/33\"]", vec![], "http.trusted_proxies"),
        ("[server\n", vec![], "papertape.toml: "),
        ("server = 5", vec![], "server (papertape.toml): allowed is a section with server.listen, "),
        (
            "[limits.tiers]\nenterprise = 5",
            vec![],
            "limits.tiers.enterprise (papertape.toml): allowed is a section with \
             limits.tiers.enterprise.requests_per_second, ",
        ),
    ] {
        let error = refused(file, &env, &[]);
        assert!(error.contains(expected), "{file:?} {env:?}: {error}");
        assert!(!error.contains("\"short\""), "a secret is not repeated: {error}");
    }
    assert!(refused("", &[], &[("no.such", "1")]).contains("no.such (command line): unknown key"));
    // Also in a layer that is overruled.
    let overruled = refused("[server]\nlisten = 5", &[], &[("server.listen", "127.0.0.1:1")]);
    assert!(overruled.contains("server.listen (papertape.toml): allowed is"), "{overruled}");
    // All errors are reported together.
    let gold = refused("[limits.tiers.gold]\nin_flight = 1", &[], &[]);
    assert!(!gold.contains("requests_per_second") && !gold.contains("public_ip"), "{gold}");
    assert_eq!(refused("[server]\na = 1\nb = 2\nlisten = 3", &[], &[]).lines().count(), 3);
}

#[test]
fn networks_contain_addresses() {
    for (network, address, inside) in [
        ("10.0.0.0/8", "10.255.0.1", true),
        ("10.0.0.0/8", "11.0.0.1", false),
        ("10.0.0.0/8", "::ffff:10.0.0.1", true),
        ("127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1", "127.0.0.2", false),
        ("0.0.0.0/0", "1.2.3.4", true),
        ("0.0.0.0/0", "::1", false),
        ("::/0", "2001:db8::1", true),
        ("2001:db8::/32", "2001:db8:1::1", true),
        ("2001:db8::/32", "2001:db9::1", false),
    ] {
        let network = Network::parse(network).unwrap();
        assert_eq!(network.contains(address.parse().unwrap()), inside, "{network:?} {address}");
    }
    assert_eq!(Network::parse("10.0.0.0/33"), None);
    assert_eq!(Network::parse("x"), None);
}

#[test]
fn variables_of_tests_and_cargo_are_not_settings() {
    for name in ["PAPERTAPE_GIT_SHA", "PAPERTAPE_SEED", "PAPERTAPE_VENUE_DATA"] {
        assert!(read("", &[(name, "x")], &[]).is_ok(), "{name}");
    }
}

/// Only opening the venue needs all of its settings: the other commands work with the same file.
#[test]
fn a_replay_without_a_tape_is_refused_when_it_is_opened() {
    let without = read("[venue]\nkind = \"replay\"", &[], &[]).expect("enough for all but serving");
    let why = without.venue.check().expect_err("nothing to replay").to_string();
    assert_eq!(why, "venue.tape: venue.kind = replay needs the path of a tape");
    let with = read("[venue]\nkind = \"replay\"\ntape = \"/tapes\"", &[], &[]).expect("right settings");
    assert!(with.venue.check().is_ok() && Config::defaults().venue.check().is_ok());
}

/// The edge's tests use its defaults without this table; they are those of a first start.
#[test]
fn the_edges_defaults_of_tests_are_those_of_the_table() {
    let of_tests = edge::settings::Settings::defaults();
    assert_eq!(format!("{of_tests:#?}"), format!("{:#?}", Config::defaults().edge()));
}

/// The committed reference matches the table.
#[test]
fn the_reference_is_the_table() {
    let committed = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/settings.md")).unwrap();
    assert!(
        committed == markdown(),
        "run: cargo build && target/debug/papertape settings --markdown > gateway/docs/settings.md"
    );
    println!("settings in the reference: {}", settings().len());
}

/// A row without a reader would be a setting without effect; its key is in the source of a reader.
#[test]
fn every_row_is_complete() {
    let readers = [
        include_str!("../config.rs"),
        include_str!("read.rs"),
        include_str!("venue.rs"),
        include_str!("compat.rs"),
        include_str!("local.rs"),
        include_str!("realism.rs"),
    ]
    .concat();
    let mut keys = std::collections::BTreeSet::new();
    for setting in settings() {
        let key = setting.key();
        assert!(keys.insert(key.clone()), "{key} has two rows");
        let (section, _) = key.split_once('.').expect("a section");
        assert!(table::SECTIONS.iter().any(|(name, _)| *name == section), "{key}: its section has no heading");
        let quoted = format!("\"{}\"", key.trim_end_matches(".*"));
        // Read by a composed name, or by other rows. The reader of a venue's rows is made from them.
        let is_read_otherwise = key.starts_with("limits.tiers.")
            || section == "fees"
            || key.starts_with("billing.price_")
            || key == "flags.order_semantics_v2_enabled"
            || Origin::all().any(|origin| key.starts_with(&format!("venue.{}.", origin.name())));
        assert!(readers.contains(&quoted) || is_read_otherwise, "{key} is read nowhere");
        assert!(setting.meaning().ends_with('.') || setting.meaning().ends_with('…'), "{key}: {}", setting.meaning());
        assert!(!setting.allowed().is_empty() && !setting.what().is_empty(), "{key}");
        assert!(setting.variable().starts_with("PAPERTAPE_"), "{key}");
    }
    println!("rows of settings: {}", keys.len());
}

/// The defaults in the reference may be written in a file, and change nothing.
#[test]
fn the_defaults_of_the_reference_are_allowed() {
    let plain = format!("{:?}", Config { lines: Vec::new(), ..Config::defaults() });
    let mut cases = 0;
    for setting in settings().iter().filter(|setting| !setting.default_text().is_empty()) {
        let config = read("", &[], &[(&setting.key(), &setting.default_text())]);
        let config = Config { lines: Vec::new(), ..config.unwrap_or_else(|error| panic!("{error}")) };
        assert_eq!(format!("{config:?}"), plain, "{}", setting.key());
        cases += 1;
    }
    println!("defaults: {cases} cases");
}
