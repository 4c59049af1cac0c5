//! The ordinary accidents of running a server: started twice, told to stop, disk full.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tests::binary::{papertape, run, run_well};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::eventually;
use tests::http::{Client, connect};
use tests::json::{at, int, list, text};
use tests::server::{Place, Starting, digest_of, signal};
use tests::token::token;
use tests::world::{World, limit, market};

/// Every file of a directory with its bytes and its time of change.
fn fingerprint(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    fingerprint_of(dir, |_| true)
}

/// Those whose names are wanted; the others may come and go while we look.
fn fingerprint_of(dir: &Path, wanted: impl Fn(&Path) -> bool) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| wanted(path) && path.is_file())
        .map(|path| {
            let changed = fs::metadata(&path).expect("it is there").modified().expect("a time");
            (path.clone(), (fs::read(&path).expect("it can be read"), changed))
        })
        .collect()
}

/// A process that was killed holds its lock while its memory goes.
#[test]
fn a_start_waits_for_an_owner_that_is_dying() {
    let mut world = World::start(1);
    world.server.kill();
    let lock = fs::File::options().write(true).open(world.place.data().join("lock")).expect("it is there");
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
    // Segments in reserve are made while we look; what is compared has stood since the start.
    let standing =
        || fingerprint_of(&world.place.data(), |path| ["lock", "epoch"].iter().any(|name| path.ends_with(name)));
    let before = standing();
    assert_eq!(before.len(), 2, "lock and epoch");
    let (status, said) = world.place.spawn_with(&[], &[]).ended();
    assert!(!status.success(), "the second server must fail: {said}");
    assert!(said.contains(&world.server.pid().to_string()), "the holder {} is named: {said}", world.server.pid());
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
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(&world.server.pid().to_string()), "{verb:?}: {said}");
        cases.one();
    }
    assert!(!world.place.root().join("never.jsonl").exists(), "no keys of users that were not made");
    assert!(standing() == before, "nothing of the running server's was touched");
    world.user(0).post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.30", "5")).expect(200);
}

/// The records of the log as `papertape log export` writes them.
fn exported(place: &Place) -> Vec<Value> {
    let exported = String::from_utf8(place.log("export").stdout).expect("UTF-8");
    exported.lines().map(|line| serde_json::from_str(line).expect("export writes JSON lines")).collect()
}

#[test]
fn told_to_stop_it_drains_and_ends_well() {
    let cases = Cases::of("orderly ends");
    for signal_name in ["TERM", "INT"] {
        let world = World::start_with(1, |place| _ = place.set("http", "header_timeout_ms", "300"));
        let mut client = world.user(0);
        let placed = client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.30", "5")).expect(200);
        // Idle connections, and one that has said half a word, hold nobody up.
        let idle: Vec<_> = (0..5).map(|_| connect(world.server.address()).expect("a connection")).collect();
        let mut half = connect(world.server.address()).expect("a connection");
        std::io::Write::write_all(&mut half, b"GET /v1/he").expect("half a word");
        let World { place, server, users, .. } = world;
        signal(server.pid(), signal_name);
        let (status, said) = server.ended();
        assert_eq!(status.code(), Some(0), "SIG{signal_name}: {status}\n{said}");
        drop((idle, half));
        assert_eq!(place.digest_from_nothing(), place.digest(), "the state at rest is what the log says");
        let before = exported(&place);
        assert_eq!(text(before.last().expect("records"), "/kind"), "CleanStop");
        let server = place.start();
        assert!(server.recovered().is_some_and(|line| line.contains(" 0 bytes cut")), "{}", server.said());
        let again =
            server.with_key(&users[0].key).get(&format!("/v1/orders/{}", int(&placed, "/order_id"))).expect(200);
        assert_eq!(text(&again, "/status"), "PENDING");
        server.stop();
        // A start on a still market adds nothing but how far the tape is read and that the key was used.
        for record in &exported(&place)[before.len()..] {
            for fact in list(record, "/facts") {
                let fact = fact.as_str().expect("facts are text");
                assert!(fact.starts_with("TapeReached") || fact.starts_with("KeyUsed"), "{fact}");
            }
        }
        assert_eq!(place.digest_from_nothing(), place.digest());
        cases.one();
    }
}

#[test]
fn an_orderly_end_under_load_loses_nothing() {
    let cases = Cases::of("ends under load");
    let world = World::start(4);
    let acked: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|user| {
                let mut client = world.user(user);
                let body = limit(&world.markets.rain, "BUY", "0.01", "5");
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    while let Ok(answer) = client.call(&tests::http::Request::post("/v1/orders").json(&body)) {
                        match answer.status {
                            200 => ids.push(int(&answer.json(), "/order_id")),
                            _ => assert_eq!(answer.status, 503, "{}", answer.lossy()),
                        }
                    }
                    ids
                })
            })
            .collect();
        let mut watcher = world.user(0);
        eventually("some load", || {
            (int(&watcher.get("/v1/orders?limit=1").expect(200), "/total_hint") > 20).then_some(())
        });
        world.server.terminate();
        clients.into_iter().map(|client| client.join().expect("a client")).collect()
    });
    let World { place, server, users, .. } = world;
    let (status, said) = server.ended();
    assert_eq!(status.code(), Some(0), "{said}");
    let server = place.start();
    for (user, ids) in users.iter().zip(&acked) {
        let mut client = server.with_key(&user.key);
        for id in ids {
            client.get(&format!("/v1/orders/{id}")).expect(200);
            cases.one();
        }
    }
}

#[test]
fn a_start_may_be_broken_off_anywhere() {
    let cases = Cases::of("broken starts");
    let mut chance = Chance::from_env("START_SEED");
    let World { mut server, place, users, .. } = World::start(1);
    server.kill();
    for _ in 0..20 {
        let starting = place.spawn_with(&[], &[]);
        std::thread::sleep(std::time::Duration::from_micros(chance.between(0, 80_000) as u64));
        if chance.percent(50) {
            // It may be over before the signal comes, or have no ears yet: both are an end.
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
fn the_log_verbs_only_look() {
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
        // A running server makes and names files meanwhile.
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
    // One byte of it changed is seen.
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
    // The log is whole from its beginning, so the start does without it, and says the same.
    let server = place.start();
    server.with_key(&users[0].key).get("/v1/account/balance").expect(200);
}

#[test]
fn a_first_start_is_ready_to_be_tried() {
    let cases = Cases::of("first starts");
    let mut place = Place::new();
    let server = place.start();
    let said = server.said();
    for word in [&server.address().to_string(), place.data().to_str().expect("a path"), "process", "curl", "synthetic"]
    {
        assert!(said.to_lowercase().contains(&word.to_lowercase()), "{word:?} is missing in the banner:\n{said}");
        cases.one();
    }
    let key = server.demo_key().unwrap_or_else(|| panic!("no demo key in\n{said}"));
    let me = server.with_key(&key).get("/v1/me").expect(200);
    assert_eq!(text(&me, "/auth_user_id"), "demo");
    // The line that is shown works as it stands (the tool itself may be missing where tests run).
    if let Some(line) = said.lines().position(|line| line.trim_start().starts_with("curl ")) {
        let lines: Vec<&str> = said.lines().skip(line).collect();
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
    // And only where nobody else can reach it.
    fs::remove_dir_all(place.data()).expect("the directory can be removed");
    place.set("server", "listen", "\"0.0.0.0:0\"");
    let starting = place.spawn_with(&[], &[]);
    let said = std::thread::scope(|scope| {
        let pid = starting.pid();
        let ended = scope.spawn(move || starting.ended());
        std::thread::sleep(std::time::Duration::from_secs(2));
        signal(pid, "TERM");
        ended.join().expect("an end").1
    });
    assert!(said.contains("0.0.0.0:") && !said.contains("svc_live_"), "{said}");
    cases.add(4);
}

#[test]
fn a_kept_secret_is_made_once_and_for_nobody_else() {
    let cases = Cases::of("kept secrets");
    let mut place = Place::new();
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
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o77, 0, "{}", path.display());
        cases.one();
    }
}

/// A small file system in memory; `None` where it may not be mounted.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<SmallDisk> {
        fs::create_dir(at).expect("a mount point");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| SmallDisk(at.to_path_buf()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_refuses_orders_and_nothing_else() {
    let cases = Cases::of("full disk");
    let mut place = Place::new();
    let Some(disk) = SmallDisk::mount(&place.root().join("disk")) else {
        println!("skipped: no small file system can be mounted here");
        cases.one();
        return;
    };
    let data = disk.0.join("data");
    place.set("data", "dir", &format!("{:?}", data)).set("journal", "segment_bytes", "1048576");
    place.set("journal", "reserve_bytes", "4194304").set("venue", "seed", "5");
    let mut serve = tests::binary::command();
    serve.arg("serve").arg("--config").arg(place.config());
    let server = Starting::spawn(serve).ready().expect("it starts on an empty disk");
    let key = server.demo_key().expect("the demo key");
    let mut client = server.with_key(&key);
    let markets = client.get("/v1/markets?limit=1").expect(200);
    let order = json!({
        "token_id": text(&markets, "/0/clob_token_ids/0"), "side": "BUY", "order_type": "limit", "price": "0.01",
        "quantity": "5", "time_in_force": "GTC"
    });
    let key_to_revoke = int(&client.post("/v1/keys", &json!({})).expect(201), "/id");
    // Somebody else fills the disk.
    let filler = disk.0.join("filler");
    let _ = Command::new("dd")
        .args(["if=/dev/zero", "bs=64k", "count=1000"])
        .arg(format!("of={}", filler.display()))
        .output();
    let mut placed = Vec::new();
    // A segment of a mebibyte holds some thousand orders, fewer when their names are long; three are prepared.
    let refused = (0..20_000).find_map(|n| {
        let mut order = order.clone();
        order["client_order_id"] = json!(format!("{n:0>256}"));
        let answer = client.post("/v1/orders", &order);
        if answer.status != 200 {
            return Some(answer);
        }
        placed.push(int(&answer.json(), "/order_id"));
        None
    });
    let refused = refused.expect("a refusal");
    refused.refused(503, "SERVER_BUSY");
    assert_eq!(refused.header("Retry-After"), Some("1"));
    println!("{} orders found room before the refusal", placed.len());
    cases.add(placed.len());
    // Nothing of a refused order is there; everything else goes on.
    let mut reader: Client = server.with_key(&key);
    assert_eq!(int(&reader.get("/v1/orders?limit=1").expect(200), "/total_hint") as usize, placed.len());
    reader.get("/v1/account/balance").expect(200);
    reader.get("/v1/health").expect(200);
    for id in placed.iter().rev().take(20) {
        let cancelled = reader.delete(&format!("/v1/orders/{id}")).expect(200);
        assert_eq!(text(&cancelled, "/status"), "CANCELLED");
        cases.one();
    }
    reader.delete(&format!("/v1/keys/{key_to_revoke}")).expect(200);
    reader.post("/v1/orders", &order).refused(503, "SERVER_BUSY");
    reader.post("/v1/orders/batch", &json!([order])).refused(503, "SERVER_BUSY");
    // Back to normal by itself.
    fs::remove_file(&filler).expect("the filler can be removed");
    eventually("room again", || (reader.post("/v1/orders", &order).status == 200).then_some(()));
    // And what was acknowledged on the full disk is there after a crash.
    let mut server = server;
    server.kill();
    let mut serve = tests::binary::command();
    serve.arg("serve").arg("--config").arg(place.config());
    let server = Starting::spawn(serve).ready().expect("it starts again");
    let mut reader = server.with_key(&key);
    for (n, id) in placed.iter().rev().enumerate().take(40) {
        let row = reader.get(&format!("/v1/orders/{id}")).expect(200);
        assert_eq!(text(&row, "/status"), if n < 20 { "CANCELLED" } else { "PENDING" });
        cases.one();
    }
    let keys = reader.get("/v1/keys").expect(200);
    assert!(list(&keys, "").iter().all(|row| int(row, "/id") != key_to_revoke), "a revocation is never lost");
    drop(server);
}

#[test]
fn too_many_connections_are_survived() {
    let cases = Cases::of("file descriptors");
    let World { place, server, users, .. } = World::start(1);
    server.stop();
    let mut limited = Command::new("sh");
    limited.arg("-c").arg("ulimit -n 64; exec \"$0\" serve --config \"$1\" --data-dir \"$2\"");
    limited.arg(papertape()).arg(place.config()).arg(place.data());
    let server = Starting::spawn(limited).ready().unwrap_or_else(|said| panic!("{said}"));
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
fn seeded_users_are_there_with_what_was_asked_for() {
    let cases = Cases::of("seeds");
    let place = Place::new();
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
        server.stop();
    }
    for (users, tier, balance) in [
        ("0", "free", "1"),
        ("x", "free", "1"),
        ("1", "gold", "1"),
        ("1", "free", "-1"),
        ("1", "free", "1e3"),
        ("1", "free", "0.0000001"),
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
        assert!(!out.exists(), "{users} {tier} {balance}: no file for nothing");
        cases.one();
    }
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
