//! Common mistakes of operation: a first start, two servers at the same time, repeated and interrupted starts, many
//! connections.

use crate::verbs::fingerprint_of;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;
use tests::binary::{papertape, run};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::eventually;
use tests::http::connect;
use tests::json::{at, int, text};
use tests::server::{ServerDir, Starting};
use tests::token::token;
use tests::world::{World, limit};

/// A killed process holds its lock while its memory is freed.
#[test]
fn a_start_waits_for_an_owner_that_is_dying() {
    let mut world = World::start(1);
    world.server.kill();
    let lock = fs::File::options().write(true).open(world.place.data().join("lock")).expect("it exists");
    lock.lock().expect("its owner is gone");
    let starting = world.place.spawn_with(&[], &[]);
    std::thread::sleep(Duration::from_millis(700));
    drop(lock);
    world.server = starting.ready().expect("it starts as soon as the lock is free");
    connect(world.server.address()).expect("it listens");
}

#[test]
fn a_second_server_names_the_first() {
    let cases = Cases::of("started twice");
    let world = World::start(1);
    // Spare segments are created meanwhile; the comparison covers files from the start.
    let standing =
        || fingerprint_of(&world.place.data(), |path| ["lock", "epoch"].iter().any(|name| path.ends_with(name)));
    let before = standing();
    assert_eq!(before.len(), 2, "lock and epoch");
    let (status, output) = world.place.spawn_with(&[], &[]).ended();
    assert!(!status.success(), "the second server must fail: {output}");
    assert!(output.contains(&world.server.pid().to_string()), "the holder {} is named: {output}", world.server.pid());
    cases.one();
    let data = world.place.data();
    let data = data.as_os_str();
    let config = world.place.config();
    let verbs: [Vec<OsString>; 2] = [
        ["snapshot", "create"].into_iter().map(OsString::from).chain([data.into()]).collect(),
        [
            OsString::from("seed"),
            "--config".into(),
            config.into(),
            "--data-dir".into(),
            data.into(),
            "--users".into(),
            "1".into(),
            "--tier".into(),
            "free".into(),
            "--balance".into(),
            "1".into(),
            "--out".into(),
            world.place.root().join("never.jsonl").into(),
        ]
        .to_vec(),
    ];
    for verb in verbs {
        let output = run(&verb);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(&world.server.pid().to_string()), "{verb:?}: {stderr}");
        cases.one();
    }
    assert!(!world.place.root().join("never.jsonl").exists(), "no keys of users that were not made");
    assert!(standing() == before, "no file of the running server was changed");
    world.user(0).post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.30", "5")).expect(200);
}

#[test]
fn a_start_may_be_broken_off_anywhere() {
    let cases = Cases::of("broken starts");
    let mut chance = Chance::from_env("START_SEED");
    let World { mut server, place, users, .. } = World::start(1);
    server.kill();
    for _ in 0..20 {
        let starting = place.spawn_with(&[], &[]);
        std::thread::sleep(Duration::from_micros(chance.between(0, 80_000) as u64));
        if chance.percent(50) {
            // It may have ended before the signal, or have no handler yet: both are an end.
            let _ = Command::new("sh").args(["-c", &format!("kill -TERM {}", starting.pid())]).status();
            starting.ended();
        } else {
            starting.kill();
        }
        cases.one();
    }
    place.start().with_key(&users[0].key).get("/v1/account/balance").expect(200);
}

#[test]
fn a_first_start_is_ready_to_be_tried() {
    let cases = Cases::of("first starts");
    let mut place = ServerDir::new();
    let server = place.start();
    let output = server.output();
    for word in [&server.address().to_string(), place.data().to_str().expect("a path"), "process", "curl", "synthetic"]
    {
        assert!(output.to_lowercase().contains(&word.to_lowercase()), "{word:?} is missing in the banner:\n{output}");
        cases.one();
    }
    let key = server.demo_key().unwrap_or_else(|| panic!("no demo key in\n{output}"));
    let me = server.with_key(&key).get("/v1/me").expect(200);
    assert_eq!(text(&me, "/auth_user_id"), "demo");
    // The printed command works unchanged (the tool itself may be missing where tests run).
    if let Some(line) = output.lines().position(|line| line.trim_start().starts_with("curl ")) {
        let lines: Vec<&str> = output.lines().skip(line).collect();
        let mut shown = String::new();
        for line in lines {
            shown.push_str(line.trim_end_matches('\\'));
            if !line.ends_with('\\') {
                break;
            }
        }
        if let Ok(output) = Command::new("sh").args(["-c", &shown]).output()
            && output.status.success()
        {
            let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
            assert_eq!(text(&answer, "/status"), "FILLED", "{shown} gave {answer}");
            cases.one();
        }
    }
    server.stop();
    // Only in an empty directory.
    let server = place.start();
    assert_eq!(server.demo_key(), None);
    assert!(server.recovered().is_some());
    server.stop();
    // And only on a listener that no other machine can reach.
    fs::remove_dir_all(place.data()).expect("the directory can be removed");
    place.set("server", "listen", "\"0.0.0.0:0\"");
    let output = place.start().stop();
    assert!(output.contains("0.0.0.0:") && !output.contains("svc_live_"), "{output}");
    cases.add(4);
}

#[test]
fn a_stored_secret_is_made_once_and_readable_by_its_owner_alone() {
    let cases = Cases::of("kept secrets");
    let mut place = ServerDir::new();
    place.unset("auth", "jwt_secret");
    let server = place.start();
    let config = place.config();
    let make = || {
        let args: [OsString; 5] =
            ["token".into(), "--sub".into(), "someone".into(), "--config".into(), config.clone().into()];
        let mut command = tests::binary::command();
        command.args(args).env("PAPERTAPE_DATA_DIR", place.data());
        String::from_utf8(command.output().expect("papertape token").stdout).expect("UTF-8")
    };
    let token = make();
    let first = server.with_token(token.trim()).get("/v1/me").expect(200);
    server.stop();
    let server = place.start();
    let second = server.with_token(token.trim()).get("/v1/me").expect(200);
    assert_eq!(int(&first, "/user_id"), int(&second, "/user_id"));
    for entry in fs::read_dir(place.data()).expect("a data directory") {
        let path = entry.expect("an entry").path();
        assert_eq!(fs::metadata(&path).expect("it exists").permissions().mode() & 0o77, 0, "{}", path.display());
        cases.one();
    }
}

#[test]
fn too_many_connections_are_survived() {
    let cases = Cases::of("file descriptors");
    let World { place, server, users, .. } = World::start(1);
    server.stop();
    let mut limited = Command::new("sh");
    limited.arg("-c").arg("ulimit -n 64; exec \"$0\" serve --config \"$1\" --data-dir \"$2\"");
    limited.arg(papertape()).arg(place.config()).arg(place.data());
    let server = Starting::spawn(limited).ready().unwrap_or_else(|output| panic!("{output}"));
    let crowd: Vec<_> = (0..200).filter_map(|_| connect(server.address()).ok()).collect();
    cases.add(crowd.len());
    drop(crowd);
    eventually("service after the crowd", || {
        let answer = server.with_key(&users[0].key).call(&tests::http::Request::get("/v1/account/balance"));
        answer.is_ok_and(|answer| answer.status == 200).then_some(())
    });
    server.stop();
}

#[test]
fn a_grown_identity_survives() {
    let cases = Cases::of("identities through starts");
    let mut world = World::start(0);
    let mut known = Vec::new();
    for n in 0..6 {
        let token = token(&format!("person {n}"));
        let me = world.server.with_token(&token).get("/v1/me").expect(200);
        known.push((token, int(&me, "/user_id")));
        world.crash();
        for (token, id) in &known {
            let me = world.server.with_token(token).get("/v1/me").expect(200);
            assert_eq!((int(&me, "/user_id"), at(&me, "/key_count")), (*id, &json!(0)));
            cases.one();
        }
    }
}
