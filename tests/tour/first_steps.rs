//! The next steps of a newcomer: another venue in the same directory, options that do not fit, a lost key, a server on
//! every address, and the position of a recording.

use std::fs;
use std::process::Output;
use tests::binary::{command, run};
use tests::cases::Cases;
use tests::eventually;
use tests::server::{ServerDir, Starting};
use tests::tape::{Market, Tape};

/// A finished recording of one market.
fn recording(place: &ServerDir) -> std::path::PathBuf {
    let path = place.root().join("tape.ndjson");
    let market = Market::new(1, "rain", "weather", 0.01);
    let mut tape = Tape::create(&path);
    tape.list(&[&market]);
    tape.books(&market, &[("0.40", "100")], &[("0.42", "100")]);
    path
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn another_venue_in_the_same_directory_needs_an_option() {
    let cases = Cases::of("starts");
    let place = ServerDir::new();
    place.start().stop();
    let tape = recording(&place).display().to_string();
    let replay = ["--tape", tape.as_str()];
    // (arguments, whether it starts)
    for (args, starts) in [
        (&[][..], true),
        (&replay[..], false),
        (&[&replay[..], &["--mix-venues"]].concat()[..], true),
        // From now on both are known.
        (&replay[..], true),
        (&[][..], true),
        (&["--venue", "polymarket"][..], false),
    ] {
        match place.spawn_with(args, &[]).ready() {
            Ok(server) => {
                assert!(starts, "{args:?} started:\n{}", server.output());
                server.stop();
            }
            Err(output) => {
                assert!(!starts, "{args:?} did not start:\n{output}");
                for words in ["used with venue", "--data-dir", "--mix-venues"] {
                    assert!(output.contains(words), "{args:?}: {words} in\n{output}");
                }
            }
        }
        cases.one();
    }
    // A directory of an earlier version has no list; the venues are derived from its markets.
    fs::remove_file(place.data().join("venue_kinds")).expect("the list exists");
    let output = place.spawn_with(&["--venue", "kalshi"], &[]).ready().err().expect("refused");
    assert!(output.contains("used with venue polymarket,synthetic"), "{output}");
    fs::write(place.data().join("venue_kinds"), "moon\n").expect("it can be written");
    let output = place.spawn_with(&[], &[]).ready().err().expect("refused");
    assert!(output.contains("venue_kinds: not a list of venues"), "{output}");
    cases.add(2);
}

#[test]
fn a_venue_that_cannot_be_opened_leaves_no_mark() {
    let place = ServerDir::new();
    let args = ["--venue", "replay", "--tape", "/nonexistent"];
    let output = place.spawn_with(&args, &[]).ready().err().expect("there is no such tape");
    assert!(output.contains("/nonexistent"), "{output}");
    place.start().stop();
}

#[test]
fn options_of_a_replay_are_refused_elsewhere() {
    let cases = Cases::of("options");
    // Arguments, a variable, a line of the file under [venue]; the key that is named.
    type Row<'a> = (&'a [&'a str], Option<(&'a str, &'a str)>, Option<&'a str>, &'a str);
    let rows: [Row<'_>; 7] = [
        (&["--speed", "60"], None, None, "venue.speed (command line)"),
        (&["--follow"], None, None, "venue.follow (command line)"),
        (&["--speed", "max", "--venue", "synthetic"], None, None, "venue.speed (command line)"),
        (&[], Some(("PAPERTAPE_VENUE_SPEED", "60")), None, "venue.speed (environment, PAPERTAPE_VENUE_SPEED)"),
        (&[], Some(("PAPERTAPE_VENUE_FOLLOW", "true")), None, "venue.follow (environment, PAPERTAPE_VENUE_FOLLOW)"),
        (&["--config", "own.toml"], None, Some("speed = 60"), "venue.speed (own.toml)"),
        (&["--config", "own.toml"], None, Some("follow = true"), "venue.follow (own.toml)"),
    ];
    for (args, env, line, named) in rows {
        let home = tempfile::tempdir().expect("a directory");
        let file = format!("[venue]\n{}\n", line.unwrap_or_default());
        fs::write(home.path().join("own.toml"), file).expect("written");
        let mut serve = command();
        serve.arg("serve").args(args).envs(env).current_dir(home.path());
        let output = serve.output().expect("it runs");
        let printed = stderr(&output);
        assert!(!output.status.success(), "{args:?} {env:?}");
        assert!(printed.contains("only a replay takes it") && printed.contains(named), "{args:?} {env:?}: {printed}");
        assert!(!home.path().join("papertape-data").exists(), "{args:?} {env:?}: nothing is created");
        cases.one();
    }
    // The default in the help is valid for every venue.
    for speed in ["1x", "1"] {
        ServerDir::new().start_with(&["--speed", speed], &[]).stop();
        cases.one();
    }
}

/// The command that a banner prints works unchanged, in the folder where the server was started.
#[test]
fn the_printed_key_command_works() {
    let cases = Cases::of("commands of banners");
    for (listen, folder) in [("127.0.0.1:0", "data"), ("0.0.0.0:0", "my own data"), ("127.0.0.1:0", "it's mine")] {
        let mut place = ServerDir::new();
        place.unset("auth", "jwt_secret").unset("server", "listen");
        let config = place.config();
        // The second start of a server prints no key.
        let begin = || {
            let mut serve = command();
            serve.arg("serve").arg("--config").arg(&config).args(["--data-dir", folder, "--listen", listen]);
            serve.current_dir(place.root());
            Starting::spawn(serve).ready().unwrap_or_else(|output| panic!("{output}"))
        };
        begin().stop();
        let server = begin();
        let output = server.output();
        let line = output.lines().find(|line| line.trim_start().starts_with("keys ")).expect("a command for a key");
        let printed = line.split('`').find(|text| text.starts_with("papertape key")).expect("a command");
        let typed = printed.replacen("papertape", "\"$PROGRAM\"", 1).replace("NAME", "somebody");
        let mut shell = std::process::Command::new("sh");
        // As `command` does it: without the environment of the test.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PAPERTAPE_")) {
            shell.env_remove(name);
        }
        shell.args(["-c", &typed]).env("PROGRAM", tests::binary::papertape()).current_dir(place.root());
        let made = shell.output().expect("a shell");
        assert!(made.status.success(), "{printed}: {}", stderr(&made));
        let key = String::from_utf8(made.stdout).expect("text").trim().to_owned();
        assert_eq!(server.with_key(&key).get("/v1/me").expect(200)["auth_user_id"], "somebody", "{printed}");
        server.stop();
        cases.one();
    }
}

#[test]
fn a_lost_key_is_replaced() {
    let cases = Cases::of("keys");
    let mut place = ServerDir::new();
    place.unset("auth", "jwt_secret");
    let server = place.start();
    let (config, data) = (place.config().display().to_string(), place.data().display().to_string());
    let address = server.address().to_string();
    let key = |sub: &str| run(["key", "--sub", sub, "--server", &address, "--config", &config, "--data-dir", &data]);
    for sub in ["demo", "somebody-new"] {
        let made = key(sub);
        assert!(made.status.success(), "{sub}: {}", stderr(&made));
        let key = String::from_utf8(made.stdout).expect("text").trim().to_owned();
        let me = server.with_key(&key).get("/v1/me").expect(200);
        assert_eq!(me["auth_user_id"], sub);
        cases.one();
    }
    for _ in 0..3 {
        assert!(key("demo").status.success());
    }
    let sixth = key("demo");
    assert!(stderr(&sixth).contains("created no key: 400"), "{}", stderr(&sixth));
    server.stop();
    let gone = key("demo");
    assert!(stderr(&gone).contains("is the server of this data directory running there?"), "{}", stderr(&gone));
    cases.add(2);
}

#[test]
fn a_server_on_every_address_prints_the_key_command() {
    let cases = Cases::of("starts");
    let mut place = ServerDir::new();
    place.set("server", "listen", "\"0.0.0.0:0\"");
    let server = place.start();
    assert!(server.demo_key().is_none());
    assert!(server.output().contains("papertape key --sub NAME --server 127.0.0.1:"), "{}", server.output());
    server.stop();
    cases.one();
}

#[test]
fn the_status_shows_the_position_of_a_recording() {
    let cases = Cases::of("venues");
    let place = ServerDir::new();
    let tape = recording(&place).display().to_string();
    let server = place.start_with(&["--tape", &tape, "--speed", "max"], &[]);
    let recording = eventually("the recording ends", || {
        let status = server.client().get("/v1/status").expect(200);
        (status["recording"]["ended"] == true).then(|| status["recording"].clone())
    });
    assert_eq!(recording["speed"], "max");
    assert!(recording["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{recording}");
    server.stop();
    let place = ServerDir::new();
    let synthetic = place.start();
    assert!(synthetic.client().get("/v1/status").expect(200)["recording"].is_null());
    synthetic.stop();
    cases.add(2);
}
