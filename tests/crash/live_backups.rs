//! Backups of a running server: an order that was acknowledged before a backup is in it while the log grows and
//! recycles segments. If either side is killed, the server's directory is intact and a partial backup is not accepted.

use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tests::binary::{command, run};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::eventually;
use tests::http::{Client, Request};
use tests::json::{at, int, list, text};
use tests::server::{Server, ServerDir, Starting, User, digest_of, signal};
use tests::world::{World, changed, limit};

/// Orders of a batch of the load, and the length of their names, so that a few thousand fill a segment.
const BATCH: usize = 20;
const NAME_CHARS: usize = 250;

/// A world whose log has small segments and recycles them as soon as it may.
fn busy(users: usize, settings: impl FnOnce(&mut ServerDir)) -> World {
    World::start_with(users, |place| {
        place.set("admin", "listen", "\"127.0.0.1:0\"");
        place.set("journal", "segment_bytes", "1048576").set("journal", "checkpoint_segments", "1");
        settings(place);
    })
}

/// An acknowledged order: its user, its name, and its id.
#[derive(Clone, Debug)]
struct Acked {
    user: usize,
    name: String,
    order: i64,
}

/// Places orders of one user until the server or the test ends.
fn trade(user: usize, mut client: Client, body: &Value, round: usize, is_over: &AtomicBool, acked: &Mutex<Vec<Acked>>) {
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let names: Vec<String> =
            (0..BATCH).map(|entry| format!("{:x<NAME_CHARS$}", format!("{user}-{round}-{number}-{entry}-"))).collect();
        let entries: Vec<Value> = names.iter().map(|name| changed(body, &json!({"client_order_id": name}))).collect();
        let Ok(answer) = client.call(&Request::post("/v1/orders/batch").json(&json!({"orders": entries}))) else {
            return;
        };
        if answer.status == 503 {
            continue;
        }
        let body = answer.expect(200);
        let placed = names.into_iter().zip(list(&body, "/results")).filter(|(_, result)| int(result, "/order_id") > 0);
        let placed = placed.map(|(name, result)| Acked { user, name, order: int(result, "/order_id") });
        acked.lock().unwrap().extend(placed);
    }
}

/// Ends the load with its scope, on every path out of it.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A process that does not outlive its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The numbers in the names of files with that extension.
fn numbers(data: &Path, ending: &str) -> Vec<u64> {
    let inside = fs::read_dir(data).expect("a directory").flatten();
    let names = inside.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(ending)?.parse().ok()).collect()
}

/// The first record that the log still has.
fn first_record(data: &Path) -> u64 {
    numbers(data, ".wal").into_iter().min().expect("there is a segment")
}

/// The file of incidents, which is copied unchanged, although the server does not read one of that length: a backup
/// takes longer.
fn put_bulk(data: &Path, bytes: u64) {
    let bulk = File::create(data.join("incidents.json")).expect("the data directory is a folder");
    bulk.set_len(bytes).expect("a sparse file takes no room");
}

fn backup_of(admin: SocketAddr, data: &Path, out: &Path) -> Command {
    let mut backup = command();
    backup.arg("backup").arg("--admin").arg(format!("http://{admin}"));
    backup.arg("--token-file").arg(data.join("admin_token")).arg("--out").arg(out);
    backup
}

fn restore(from: &Path, out: &Path) -> Output {
    run([OsString::from("restore"), from.into(), "--out".into(), out.into()])
}

fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A server of that place on another directory.
fn serve(place: &ServerDir, data: &Path) -> Server {
    let args: Vec<OsString> = place.serve_command().get_args().map(OsString::from).collect();
    let at = args.iter().position(|arg| arg == "--data-dir").expect("the harness names it");
    let mut serve = command();
    serve.args(&args[..=at]).arg(data).args(&args[at + 2..]).current_dir(place.root());
    Starting::spawn(serve).ready().unwrap_or_else(|output| panic!("{output}"))
}

/// The orders have the ids that the client received.
fn compare(server: &Server, users: &[User], acked: &[Acked]) {
    for Acked { user, name, order } in acked {
        let found = server.with_key(&users[*user].key).get(&format!("/v1/orders/by-client-id/{name}")).expect(200);
        assert_eq!(int(&found, "/order_id"), *order, "{name}");
    }
}

#[test]
fn what_was_acknowledged_before_is_in_it() {
    let cases = Cases::of("backups under load");
    for (shards, durability) in [("1", "\"process\""), ("2", "\"power\"")] {
        let world = busy(3, |place| {
            place.set("engine", "shards", shards).set("journal", "durability", durability);
        });
        let (data, root) = (world.place.data(), world.place.root().to_owned());
        let admin = world.server.admin().expect("the banner has the address");
        let token = fs::read_to_string(data.join("admin_token")).expect("the server created one");
        let (acked, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let body = limit(&world.markets.rain, "BUY", "0.01", "5");
        let taken: Vec<(PathBuf, Vec<Acked>)> = std::thread::scope(|scope| {
            for user in 0..world.users.len() {
                let (client, body, is_over, acked) = (world.user(user), &body, &is_over, &acked);
                scope.spawn(move || trade(user, client, body, 0, is_over, acked));
            }
            let _over = Over(&is_over);
            let taken = ["one", "two.tar", "three.tar"].into_iter().map(|name| {
                // Pins are released: under this load the log continues to recycle segments, also after a backup.
                let first = first_record(&data);
                eventually("a segment to be recycled", || (first_record(&data) > first).then_some(()));
                let before: Vec<Acked> = acked.lock().unwrap().clone();
                let out = root.join(name);
                let output = backup_of(admin, &data, &out).output().expect("papertape can be run");
                assert!(output.status.success(), "{}\n{}", output_text(&output), world.server.output());
                (out, before)
            });
            taken.collect()
        });
        let acked = acked.into_inner().unwrap();
        let mut operator = Client::with_token(admin, &token);
        let node = operator.get("/v1/admin/node").expect(200);
        assert!(int(&node, "/horizon/lsn") > 1 && at(&node, "/horizon/at").is_string(), "{node}");
        assert!(int(&node, "/horizon/lsn") <= int(&node, "/lsn/snapshot"), "{node}");
        let instance = text(&node, "/instance").to_owned();
        let World { place, server, users, .. } = world;
        drop(server);
        let verified = place.log("verify");
        assert!(verified.status.success(), "{}", output_text(&verified));
        for (number, (from, before)) in taken.iter().enumerate() {
            let out = root.join(format!("restored-{number}"));
            let restored = restore(from, &out);
            assert!(restored.status.success(), "{}", output_text(&restored));
            assert!(output_text(&restored).contains(&digest_of(&out)), "the digest is that of the manifest");
            assert!(!out.join("server_secret").exists() && !out.join("admin_token").exists(), "no secrets");
            let server = serve(&place, &out);
            assert!(before.len() > BATCH, "{} orders before the call", before.len());
            let newest = &before[before.len() - 3 * BATCH..];
            let every: Vec<Acked> = before.iter().step_by(before.len().div_ceil(150)).cloned().collect();
            compare(&server, &users, &every);
            compare(&server, &users, newest);
            let admin = server.admin().expect("the banner has the address");
            let token = fs::read_to_string(out.join("admin_token")).expect("the server created one");
            let node = Client::with_token(admin, &token).get("/v1/admin/node").expect(200);
            assert_ne!(text(&node, "/instance"), instance, "it is another one");
            server.stop();
            println!("{} orders before the call, {} compared", before.len(), every.len() + newest.len());
            cases.one();
        }
        println!("{} orders acknowledged in all", acked.len());
    }
}

/// A running backup; its tar stream goes into a file, or its result is beside it.
fn begin(admin: SocketAddr, data: &Path, out: &Path, is_stream: bool) -> Child {
    let mut backup = backup_of(admin, data, if is_stream { Path::new("-") } else { out });
    if is_stream {
        backup.stdout(File::create(out).expect("a new file"));
    } else {
        backup.stdout(Stdio::null());
    }
    backup.stderr(Stdio::null()).spawn().expect("papertape can be run")
}

/// Path of an incomplete backup.
fn making_of(out: &Path, is_stream: bool) -> PathBuf {
    let mut name = out.file_name().expect("a name").to_owned();
    if !is_stream {
        name.push(".making");
    }
    out.with_file_name(name)
}

/// Bytes of a file, or of all files in a folder.
fn bytes_at(path: &Path) -> u64 {
    match fs::read_dir(path) {
        Ok(inside) => inside.flatten().map(|entry| bytes_at(&entry.path())).sum(),
        Err(_) => fs::metadata(path).map_or(0, |found| found.len()),
    }
}

/// While a backup runs no segment is recycled, however many snapshots would allow it; after it they are.
#[test]
fn segments_stay_until_the_backup_has_ended() {
    let cases = Cases::of("snapshots beside a backup");
    // More than the socket buffers of a stopped peer.
    const BULK_BYTES: u64 = 32 << 20;
    let world = busy(2, |place| _ = place.set("admin", "slow_peer_s", "3600"));
    let (data, root) = (world.place.data(), world.place.root().to_owned());
    let admin = world.server.admin().expect("the banner has the address");
    let body = limit(&world.markets.rain, "BUY", "0.01", "5");
    let (acked, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    put_bulk(&data, BULK_BYTES);
    let out = root.join("out.tar");
    std::thread::scope(|scope| {
        for user in 0..world.users.len() {
            let (client, body, is_over, acked) = (world.user(user), &body, &is_over, &acked);
            scope.spawn(move || trade(user, client, body, 0, is_over, acked));
        }
        let _over = Over(&is_over);
        eventually("a segment to be recycled", || (first_record(&data) > 1).then_some(()));
        let mut child = Ended(begin(admin, &data, &out, false));
        eventually("the stream", || (bytes_at(&making_of(&out, false)) > 0).then_some(()));
        signal(child.0.id(), "STOP");
        let first = first_record(&data);
        for _ in 0..4 {
            let newest = numbers(&data, ".snapshot").into_iter().max();
            eventually("a snapshot", || (numbers(&data, ".snapshot").into_iter().max() > newest).then_some(()));
            assert_eq!(first_record(&data), first, "a segment was recycled");
            cases.one();
        }
        assert!(child.0.try_wait().expect("a child can be waited for").is_none(), "it has not ended");
        signal(child.0.id(), "CONT");
        assert!(child.0.wait().expect("a child can be waited for").success(), "{}", world.server.output());
        eventually("a segment to be recycled", || (first_record(&data) > first).then_some(()));
    });
    let again = root.join("again");
    let restored = restore(&out, &again);
    assert!(
        restored.status.success() && output_text(&restored).contains(&digest_of(&again)),
        "{}",
        output_text(&restored)
    );
}

#[test]
fn a_kill_of_either_side_leaves_both_intact() {
    const ROUNDS: usize = 18;
    let cases = Cases::of("live backups killed");
    let mut world = busy(2, |_| {});
    let (data, root) = (world.place.data(), world.place.root().to_owned());
    let mut chance = Chance::from_env("BACKUP_SEED");
    let body = limit(&world.markets.rain, "BUY", "0.01", "5");
    let acked = Mutex::new(Vec::new());
    // Most kills hit the stream.
    put_bulk(&data, 8 << 20);
    let (mut whole, mut partial, mut none, mut longest_us, mut in_stream) = (0, 0, 0, 0, 0);
    let mut longest_bytes = 0;
    for round in 0..ROUNDS {
        let admin = world.server.admin().expect("the banner has the address");
        let (kills_server, is_stream) = (round % 2 == 0, round % 3 == 0);
        let out = root.join(if round % 3 == 1 { format!("killed-{round}") } else { format!("killed-{round}.tar") });
        let is_over = AtomicBool::new(false);
        let clients: Vec<Client> = (0..world.users.len()).map(|user| world.user(user)).collect();
        let server = &mut world.server;
        std::thread::scope(|scope| {
            for (user, client) in clients.into_iter().enumerate() {
                let (body, is_over, acked) = (&body, &is_over, &acked);
                scope.spawn(move || trade(user, client, body, round, is_over, acked));
            }
            let _over = Over(&is_over);
            let begun = Instant::now();
            let mut child = begin(admin, &data, &out, is_stream);
            if round < 2 {
                // Duration of a backup without a kill.
                assert!(child.wait().expect("a child can be waited for").success(), "{}", server.output());
                longest_us = longest_us.max(begun.elapsed().as_micros() as usize);
                longest_bytes = longest_bytes.max(bytes_at(&out));
            } else if !is_stream && chance.percent(60) {
                std::thread::sleep(Duration::from_micros(chance.below(longest_us * 5 / 4) as u64));
            } else {
                // In the stream, which is the shorter part.
                let (making, wanted) = (making_of(&out, is_stream), chance.below(longest_bytes as usize) as u64);
                while bytes_at(&making) <= wanted && child.try_wait().expect("a child can be waited for").is_none() {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
            if kills_server {
                server.kill();
            } else {
                let _ = child.kill();
            }
            let _ = child.wait();
        });
        if kills_server {
            let verified = world.place.log("verify");
            assert!(verified.status.success(), "{}", output_text(&verified));
            world.server = world.place.start();
        }
        // A backup with its final name is complete; a stream is checked by the restore.
        let again = root.join(format!("again-{round}"));
        if out.exists() {
            let restored = restore(&out, &again);
            match restored.status.code() {
                Some(0) => {
                    assert!(output_text(&restored).contains(&digest_of(&again)));
                    whole += 1;
                }
                code => {
                    assert!(is_stream && code == Some(1), "{}: {}", out.display(), output_text(&restored));
                    assert!(!again.exists(), "something is left");
                    partial += 1;
                    in_stream += u32::from(fs::metadata(&out).expect("it exists").len() > 0);
                }
            }
        } else {
            none += 1;
        }
        cases.one();
    }
    // The server has released the pins of killed backups: it recycles segments, and the next backup is complete.
    let acked = acked.into_inner().unwrap();
    let admin = world.server.admin().expect("the banner has the address");
    let first = first_record(&data);
    let (is_over, more) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let (client, is_over, body, more) = (world.user(0), &is_over, &body, &more);
        scope.spawn(move || trade(0, client, body, ROUNDS, is_over, more));
        let _over = Over(is_over);
        eventually("a segment to be recycled", || (first_record(&data) > first).then_some(()));
    });
    let out = root.join("last.tar");
    let output = backup_of(admin, &data, &out).output().expect("papertape can be run");
    assert!(output.status.success(), "{}\n{}", output_text(&output), world.server.output());
    let again = root.join("last");
    assert!(restore(&out, &again).status.success());
    let server = serve(&world.place, &again);
    let every: Vec<Acked> = acked.iter().step_by(acked.len().div_ceil(200)).cloned().collect();
    compare(&server, &world.users, &every);
    println!(
        "{whole} whole, {partial} partial, {in_stream} of them not empty, {none} without a trace; {} orders compared",
        every.len()
    );
    assert!(partial + none > 0 && in_stream > 0, "some were killed in the middle");
}

/// The command's error when a server cannot be backed up.
#[test]
fn a_backup_that_is_refused_leaves_nothing() {
    let cases = Cases::of("refused backups");
    let world = busy(1, |_| {});
    let (data, root) = (world.place.data(), world.place.root().to_owned());
    let admin = world.server.admin().expect("the banner has the address");
    let url = format!("http://{admin}");
    let (token, wrong) = (data.join("admin_token"), root.join("wrong"));
    fs::write(&wrong, "z".repeat(40)).expect("written");
    let closed = { std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address") };
    let (closed, server) = (format!("http://{closed}"), format!("http://{}", world.server.address()));
    let (https, nowhere) = (url.replace("http", "https"), root.join("nowhere"));
    for (url, file, code, expected) in [
        (&url, &wrong, 1, "INVALID_TOKEN"),
        (&closed, &token, 1, "refused"),
        (&server, &token, 1, "NOT_FOUND"),
        (&https, &token, 2, "http://127.0.0.1:9464"),
        (&url, &nowhere, 2, "nowhere"),
    ] {
        for name in ["out", "out.tar"] {
            let mut backup = command();
            backup
                .args(["backup", "--admin", url.as_str(), "--token-file"])
                .arg(file)
                .arg("--out")
                .arg(root.join(name));
            let output = backup.output().expect("papertape can be run");
            assert_eq!(output.status.code(), Some(code), "{url}: {}", output_text(&output));
            assert!(output_text(&output).contains(expected), "{url}: {}", output_text(&output));
            assert!(!root.join(name).exists() && !root.join(format!("{name}.making")).exists(), "{url}");
            cases.one();
        }
    }
    // Either a directory or a server.
    let words = |words: &[&str]| run(words.iter().map(OsString::from));
    for args in [
        &["backup", "--out", "x"][..],
        &["backup", "papertape-data", "--admin", &url, "--token-file", "f", "--out", "x"],
        &["backup", "--admin", &url, "--out", "x"],
        &["backup", "papertape-data", "--token-file", "f", "--out", "x"],
    ] {
        assert_eq!(words(args).status.code(), Some(2), "{args:?}");
        cases.one();
    }
    // Secrets are included on request.
    let out = root.join("with");
    let output = backup_of(admin, &data, &out).arg("--with-secrets").output().expect("papertape can be run");
    assert!(output.status.success() && out.join("server_secret").exists(), "{}", output_text(&output));
    assert!(!out.join("admin_token").exists(), "the token is of this server alone");
    cases.one();
}
