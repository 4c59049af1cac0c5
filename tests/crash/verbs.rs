//! The read-only verbs: `papertape log` and `papertape snapshot`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use tests::binary::{run, run_well};
use tests::cases::Cases;
use tests::json::int;
use tests::server::{ServerDir, digest_of};
use tests::world::{World, market};

/// Every file of a directory with its bytes and its time of change.
fn fingerprint(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    fingerprint_of(dir, |_| true)
}

/// The files with these names; the others may appear and disappear meanwhile.
pub fn fingerprint_of(
    dir: &Path,
    wanted: impl Fn(&Path) -> bool,
) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| wanted(path) && path.is_file())
        .map(|path| {
            let changed = fs::metadata(&path).expect("it exists").modified().expect("a time");
            (path.clone(), (fs::read(&path).expect("it can be read"), changed))
        })
        .collect()
}

/// The records of the log as `papertape log export` writes them.
pub fn exported(place: &ServerDir) -> Vec<Value> {
    let exported = String::from_utf8(place.log("export").stdout).expect("UTF-8");
    exported.lines().map(|line| serde_json::from_str(line).expect("export writes JSON lines")).collect()
}

#[test]
fn the_log_verbs_are_read_only() {
    let cases = Cases::of("log verbs");
    let world = World::start(1);
    let mut client = world.user(0);
    for _ in 0..5 {
        client.post("/v1/orders", &market(&world.markets.vote, "BUY", "0.65", "5")).expect(200);
    }
    let World { place, mut server, .. } = world;
    let data = place.data();
    for running in [true, false] {
        if !running {
            server.kill();
        }
        // A running server creates and renames files meanwhile.
        let before = (!running).then(|| fingerprint(&data));
        for verb in ["inspect", "verify", "digest", "export"] {
            let output = place.log(verb);
            assert!(output.status.success(), "{verb}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(!output.stdout.is_empty(), "{verb} says something");
            cases.one();
        }
        if let Some(before) = before {
            assert_eq!(fingerprint(&data), before, "the log verbs wrote into the directory");
        }
    }
    let mut expected_lsn = None;
    for record in exported(&place) {
        let lsn = int(&record, "/lsn");
        assert!(expected_lsn.is_none_or(|expected| expected == lsn), "records are dense: {lsn}");
        expected_lsn = Some(lsn + 1);
        cases.one();
    }
    let missing = run([OsString::from("log"), "verify".into(), place.root().join("nowhere").into()]);
    assert!(!missing.status.success() && !place.root().join("nowhere").exists());
}

#[test]
fn snapshots_are_made_listed_and_verified() {
    let cases = Cases::of("snapshots");
    let World { mut server, place, users, .. } = World::start(2);
    server.kill();
    let data = place.data();
    let snapshot = |verb: &str| run_well([OsString::from("snapshot"), verb.into(), data.clone().into()]);
    let before = digest_of(&data);
    snapshot("create");
    assert!(!snapshot("list").trim().is_empty());
    assert!(snapshot("verify").contains(&before), "a snapshot carries the digest of the state");
    assert_eq!(digest_of(&data), before);
    let server = place.start();
    for user in &users {
        server.with_key(&user.key).get("/v1/account/balance").expect(200);
        cases.one();
    }
    server.stop();
    // A changed byte of it is detected.
    let path = fs::read_dir(&data)
        .expect("a data directory")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "snapshot"))
        .expect("a snapshot");
    let whole = fs::read(&path).expect("a snapshot can be read");
    for at in [0, 8, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        fs::write(&path, bytes).expect("a snapshot can be written");
        let verified = run([OsString::from("snapshot"), "verify".into(), data.clone().into()]);
        assert!(
            !verified.status.success(),
            "byte {at} of {} is damaged: {}",
            path.display(),
            String::from_utf8_lossy(&verified.stdout)
        );
        cases.one();
    }
    // The log is complete from its beginning, so a start does without the snapshot, with the same state.
    let server = place.start();
    server.with_key(&users[0].key).get("/v1/account/balance").expect(200);
}
