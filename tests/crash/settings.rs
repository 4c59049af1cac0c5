//! A wrong configuration is refused with its cause; flags override the environment, and the environment overrides the
//! file.

use tests::cases::Cases;
use tests::server::{Server, ServerDir};

#[test]
fn wrong_settings_are_named() {
    let cases = Cases::of("wrong settings");
    // Section, key, value; the text that the message must contain.
    let rows = [
        ("server", "lisen", "\"127.0.0.1:0\"", "server.lisen"),
        ("servers", "listen", "\"127.0.0.1:0\"", "servers"),
        ("server", "listen", "\"nowhere\"", "server.listen"),
        ("server", "listen", "8080", "server.listen"),
        ("auth", "jwt_secret", "\"short\"", "auth.jwt_secret"),
        ("engine", "shards", "0", "engine.shards"),
        ("engine", "shards", "65", "engine.shards"),
        ("engine", "shards", "-1", "engine.shards"),
        ("journal", "durability", "\"perhaps\"", "journal.durability"),
        ("venue", "kind", "\"moon\"", "venue.kind"),
        ("venue", "speed", "0", "venue.speed"),
        ("limits.tiers.free", "requests_per_second", "0", "limits.tiers.free.requests_per_second"),
        ("limits.tiers.gold", "requests_per_second", "1", "limits.tiers.gold"),
        ("limits", "public_ip_per_second", "1000001", "limits.public_ip_per_second"),
        ("flags", "fak_partial_fills", "\"maybe\"", "flags.fak_partial_fills"),
        ("flags", "unknown_flag", "true", "flags.unknown_flag"),
        ("fees", "sports", "-1", "fees.sports"),
        ("brand", "key_env", "\"prod\"", "brand.key_env"),
        ("keys", "free_trade_since", "\"someday\"", "keys.free_trade_since"),
    ];
    for (section, key, value, named) in rows {
        let mut place = ServerDir::new();
        place.set(section, key, value);
        let (status, output) = place.spawn_with(&[], &[]).ended();
        assert!(!status.success(), "{section}.{key} = {value} was taken:\n{output}");
        assert!(output.contains(named), "{named} is not named: {output}");
        assert!(output.contains("allowed"), "the allowed values are not named: {output}");
        assert!(!place.data().exists(), "nothing is created before the settings are valid");
        cases.one();
    }
    for args in [["--speed", "0"], ["--venue", "moon"], ["--durability", "no"], ["--listen", "x"], ["--unknown", "1"]] {
        let (status, output) = ServerDir::new().spawn_with(&args, &[]).ended();
        assert!(!status.success(), "{args:?}: {output}");
        cases.one();
    }
    let (status, output) = ServerDir::new().spawn_with(&[], &[("PAPERTAPE_SERVER_LISEN", "127.0.0.1:0")]).ended();
    assert!(!status.success() && output.to_lowercase().contains("lisen"), "an unknown variable is named: {output}");
    let (status, _) = ServerDir::new().spawn_with(&[], &[("PAPERTAPE_ENGINE_SHARDS", "many")]).ended();
    assert!(!status.success());
    cases.add(2);
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let cases = Cases::of("precedence of settings");
    let mut place = ServerDir::new();
    place.set("journal", "durability", "\"process\"");
    let durability = |server: &Server| {
        let output = server.output().to_lowercase();
        let line =
            output.lines().find(|line| line.trim_start().starts_with("durability")).unwrap_or_default().to_string();
        line.split_whitespace().nth(1).unwrap_or_default().to_string()
    };
    type Given<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);
    let rows: [(Given, &str); 4] = [
        ((&[], &[]), "process"),
        ((&[], &[("PAPERTAPE_JOURNAL_DURABILITY", "power")]), "power"),
        ((&["--durability", "power"], &[]), "power"),
        ((&["--durability", "process"], &[("PAPERTAPE_JOURNAL_DURABILITY", "power")]), "process"),
    ];
    for ((args, env), expected) in rows {
        let server = place.start_with(args, env);
        assert_eq!(durability(&server), expected, "{args:?} {env:?}\n{}", server.output());
        server.stop();
        cases.one();
    }
}
