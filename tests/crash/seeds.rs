//! `papertape seed`: its users exist as requested; an interrupted seed leaves no keys file, since a partial one would
//! look complete.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use tests::binary::{command, run};
use tests::cases::Cases;
use tests::eventually;
use tests::json::{int, text};
use tests::server::{ServerDir, signal};

/// More users than are made before the signal.
const MANY: &str = "5000000";

fn seed(place: &ServerDir, users: &str, out: &str) -> Child {
    let args: [OsString; 13] = [
        "seed".into(),
        "--config".into(),
        place.config().into(),
        "--data-dir".into(),
        place.data().into(),
        "--users".into(),
        users.into(),
        "--tier".into(),
        "free".into(),
        "--balance".into(),
        "1".into(),
        "--out".into(),
        place.root().join(out).into(),
    ];
    command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("papertape can be started")
}

/// Files whose names begin like that of the keys.
fn files(place: &ServerDir) -> Vec<String> {
    let names = fs::read_dir(place.root()).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.starts_with("keys")).collect()
}

#[test]
fn keys_are_all_there_or_not_at_all() {
    let cases = Cases::of("interrupted seeds");
    let mut place = ServerDir::new();
    place.set("journal", "segment_bytes", "33554432");
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let running = seed(&place, MANY, "keys.jsonl");
        let pid = running.id();
        eventually("some keys", || {
            let written =
                files(&place).iter().any(|name| fs::metadata(place.root().join(name)).is_ok_and(|of| of.len() > 0));
            written.then_some(())
        });
        assert!(!files(&place).contains(&"keys.jsonl".to_owned()), "not before it is complete");
        signal(pid, name);
        let output = running.wait_with_output().expect("a child can be waited for");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "SIG{name}: {stderr}");
        assert!(
            stderr.contains(&format!("interrupted by SIG{name}; ")) && stderr.contains("users were created"),
            "{stderr}"
        );
        assert_eq!(files(&place), Vec::<String>::new(), "no temporary file is left");
        cases.one();
    }
    // The directory continues from its state, and completed users exist.
    let output = seed(&place, "3", "keys.jsonl").wait_with_output().expect("a child can be waited for");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let keys = place.root().join("keys.jsonl");
    let text = fs::read_to_string(&keys).expect("it exists");
    assert_eq!(text.lines().count(), 3);
    assert_eq!(fs::metadata(&keys).expect("it exists").permissions().mode() & 0o777, 0o600, "the file's mode is 0600");
    cases.one();
    // Keys exist only in the file, so it is never overwritten.
    let output = seed(&place, "3", "keys.jsonl").wait_with_output().expect("a child can be waited for");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && stderr.contains("keys.jsonl: "), "{stderr}");
    assert_eq!((fs::read_to_string(&keys).expect("it exists"), files(&place).len()), (text, 1));
    cases.one();
}

#[test]
fn seeded_users_exist_as_requested() {
    let cases = Cases::of("seeds");
    let place = ServerDir::new();
    for (users, tier, balance, shown) in
        [(3, "free", "12.345678", "12.345678"), (500, "pro_plus", "1", "1.00"), (2, "enterprise", "0", "0.00")]
    {
        let made = place.seed(users, tier, balance);
        let server = place.start();
        for user in made.iter().step_by(97.min(users)) {
            let me = server.with_key(&user.key).get("/v1/me").expect(200);
            assert_eq!((int(&me, "/user_id"), text(&me, "/tier"), text(&me, "/balance")), (user.id, tier, shown));
            cases.one();
        }
        assert_eq!(server.demo_key(), None, "the directory was not empty");
        let stderr = server.output();
        assert!(
            !stderr.contains("server_secret"),
            "the first seed created the secrets, and no later one changed them: {stderr}"
        );
        server.stop();
    }
    for (users, tier, balance) in [
        ("0", "free", "1"),
        ("x", "free", "1"),
        ("1", "gold", "1"),
        ("1", "free", "-1"),
        ("1", "free", "1e3"),
        ("1", "free", "0.0000001"),
        // More than a wallet may hold if it wins.
        ("1", "free", "500000000001"),
        ("1", "free", "9223372036854.775807"),
    ] {
        let out = place.root().join("wrong.jsonl");
        let output = run([
            OsString::from("seed"),
            "--data-dir".into(),
            place.data().into(),
            "--users".into(),
            users.into(),
            "--tier".into(),
            tier.into(),
            format!("--balance={balance}").into(),
            "--out".into(),
            out.clone().into(),
        ]);
        assert!(!output.status.success(), "{users} {tier} {balance}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(users == "1" || stderr.contains("10000000"), "the bounds: {stderr}");
        assert!(!out.exists(), "{users} {tier} {balance}: no file for nothing");
        cases.one();
    }
}
