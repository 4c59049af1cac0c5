//! Golden data directories: written once by an older build, kept permanently, and read by every later one.
//!
//! `golden/NAME/KIND` holds a data directory (each file gzipped), the tape of its markets, `expected.json` (digest
//! and its encoding, last LSN, users) and `seen.json.gz` (what the users saw). A build that reads them differently breaks existing
//! directories. They are never written again; a new format gets a new NAME beside them:
//!
//! ```text
//! GOLDEN_NAME=2026-11-23 cargo test -p tests --test crash golden_directories_are_made -- --ignored --nocapture
//! ```

mod recipe;

use crate::digest::recomputed;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tests::binary::{run, run_well, workspace};
use tests::cases::Cases;
use tests::departing::leaving_soon;
use tests::http::{Client, Request};
use tests::json::{at, int, list, text};
use tests::server::{Server, ServerDir, User};

/// The fields of an order with the same meaning in every build.
const ORDER_FIELDS: [&str; 13] = [
    "order_id",
    "wallet_id",
    "token_id",
    "side",
    "order_type",
    "limit_price",
    "quantity",
    "filled_quantity",
    "time_in_force",
    "status",
    "client_order_id",
    "expiration",
    "post_only",
];

const POSITION_FIELDS: [&str; 4] = ["id", "token_id", "quantity", "status"];
const WALLET_FIELDS: [&str; 7] = ["id", "kind", "label", "balance", "baseline", "status", "generation"];

/// Their digests in encoding 2, with which their builds did not compute any.
const DIGESTS: [(&str, &str); 3] = [
    ("2026-11-23/killed", "22fb161c63ff10c8b6d74c2640586b2f7d34561b47335d3491bb734830316ea6"),
    ("2026-11-23/snapshot", "1e83c67c90404686e8b3f78e34fe8faa019cd434754645c66510c116814fe459"),
    ("2026-11-23/stopped", "b049b77274bd0731e582869053b272ebbb0d953bf2c8ad41d822d200ccb34956"),
];

fn folder() -> PathBuf {
    workspace().join("tests/crash/golden")
}

/// A place with settings for a golden directory: its markets come from a tape beside the data. The tape's books are too
/// old to trade on, so nothing fills after a start.
pub fn place_of(directory: &Path) -> ServerDir {
    let mut place = ServerDir::new();
    unpack(directory, place.root());
    let tape = place.root().join("tape.ndjson");
    place.set("venue", "kind", "\"replay\"").set("venue", "tape", &format!("{tape:?}")).set("venue", "follow", "true");
    let expected = expected_of(directory);
    place.set("journal", "segment_bytes", &int(&expected, "/segment_bytes").to_string());
    place
}

pub fn expected_of(directory: &Path) -> Value {
    let bytes = fs::read(directory.join("expected.json")).expect("a golden directory has expectations");
    serde_json::from_slice(&bytes).expect("expectations are JSON")
}

/// What the users of a running server see of their history, in the fields that every build has.
fn seen(server: &Server, users: &[User]) -> Value {
    let rows = users.iter().map(|user| {
        let mut client = server.with_key(&user.key);
        let wallets = client.get("/v1/me/wallets?include_archived=true&limit=200").expect(200);
        let wallets = list(&wallets, "/wallets");
        let accounts: Vec<Value> = wallets
            .iter()
            .map(|wallet| {
                let balance =
                    client.get(&format!("/v1/account/balance?wallet_id={}", int(wallet, "/id"))).expect(200);
                let positions =
                    client.get(&format!("/v1/account/positions?wallet_id={}", int(wallet, "/id"))).expect(200);
                json!({
                    "wallet": picked(wallet, &WALLET_FIELDS),
                    "reserved": at(&balance, "/reserved"),
                    "positions": list(&positions, "").iter().map(|row| picked(row, &POSITION_FIELDS)).collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({"user": user.id, "accounts": accounts, "orders": orders(&mut client)})
    });
    rows.collect()
}

/// All orders of a user, newest first.
fn orders(client: &mut Client) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/orders?wallet_id=all&limit=200{cursor}")).expect(200);
        rows.extend(list(&page, "/orders").iter().map(|row| picked(row, &ORDER_FIELDS)));
        match text(&page, "/next_cursor") {
            "" | "LTE=" => return rows,
            next => cursor = format!("&cursor={next}"),
        }
    }
}

fn picked(row: &Value, fields: &[&str]) -> Value {
    fields.iter().map(|field| (field.to_string(), at(row, &format!("/{field}")).clone())).collect()
}

/// The last LSN in the log, as `papertape log export` shows it.
fn last_lsn(place: &ServerDir) -> i64 {
    let exported = String::from_utf8(place.log("export").stdout).expect("UTF-8");
    let last: Value =
        serde_json::from_str(exported.lines().last().expect("records")).expect("export writes JSON lines");
    int(&last, "/lsn")
}

/// Every file below `from`, gzipped, into the same places below `to`.
fn pack(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder can be read") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            pack(&path, &to.join(&name));
        } else {
            pack_bytes(&fs::read(&path).expect("a file can be read"), &to.join(format!("{name}.gz")));
        }
    }
}

fn pack_bytes(bytes: &[u8], to: &Path) {
    let file = File::create_new(to).expect("golden files are never replaced");
    let mut packed = GzEncoder::new(file, Compression::best());
    packed.write_all(bytes).expect("it can be packed");
    packed.finish().expect("it can be packed");
}

/// The files of a data directory belong to their owner alone, unlike in a checkout.
fn unpack(from: &Path, to: &Path) {
    DirBuilder::new().recursive(true).mode(0o700).create(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder can be read") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            unpack(&path, &to.join(&name));
        } else if let Some(name) = name.strip_suffix(".gz") {
            let mut bytes = Vec::new();
            GzDecoder::new(File::open(&path).expect("it can be opened")).read_to_end(&mut bytes).expect("it is gzip");
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to.join(name));
            made.and_then(|mut file| file.write_all(&bytes)).expect("it can be unpacked");
        }
    }
}

/// `golden/NAME/KIND`, all of them.
pub fn directories() -> Vec<PathBuf> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder can be read").map(|entry| entry.expect("an entry").path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut found: Vec<PathBuf> = below(&folder()).iter().flat_map(|name| below(name)).collect();
    found.sort();
    found
}

/// `papertape log digest` with these arguments.
fn digest_in(place: &ServerDir, arguments: &[&str]) -> String {
    let words = ["log", "digest"].iter().chain(arguments).map(OsString::from).chain([place.data().into()]);
    let printed = run_well(words.collect::<Vec<_>>());
    printed.split_once("  ").expect("a digest, then its LSN and encoding").0.to_owned()
}

fn users_of(expected: &Value) -> Vec<User> {
    let users = list(expected, "/users").iter();
    users.map(|user| User { id: int(user, "/user"), key: text(user, "/key").to_string() }).collect()
}

/// This build reads what older ones wrote: completely, to the same digest, with the same money and the same orders.
#[test]
fn directories_of_older_builds_start_the_same() {
    let cases = Cases::of("golden directories");
    for directory in directories() {
        let name = directory.strip_prefix(folder()).expect("it exists").display().to_string();
        let expected = expected_of(&directory);
        let place = place_of(&directory);
        let verified = place.log("verify");
        assert!(verified.status.success(), "{name}: {}", String::from_utf8_lossy(&verified.stderr));
        assert_eq!(last_lsn(&place), int(&expected, "/lsn"), "{name}: the last record");
        // Earlier builds named no encoding.
        let encoding = expected["digest_encoding"].as_u64().unwrap_or(1).to_string();
        let known = DIGESTS.iter().find(|(of, _)| *of == name).map(|(_, digest)| *digest);
        let known = known.or((encoding == "2").then(|| text(&expected, "/digest")));
        assert_eq!(Some(place.digest().as_str()), known, "{name}: the digest");
        let first = |more: &[&str]| digest_in(&place, &[&["--encoding", &encoding][..], more].concat());
        assert_eq!(first(&[]), text(&expected, "/digest"), "{name}: the digest that its build computed");
        if at(&expected, "/whole_log") == &json!(true) {
            assert_eq!(first(&["--from-nothing"]), text(&expected, "/digest"), "{name}: from nothing");
            assert_eq!(Some(place.digest_from_nothing().as_str()), known, "{name}: the digest from nothing");
        }
        let users = users_of(&expected);
        let server = place.start();
        let recovered = server.recovered().unwrap_or_default();
        let clean = recovered.contains(" 0 bytes cut");
        assert_eq!(clean, at(&expected, "/torn") == &json!(false), "{name}: {recovered}");
        let seen = seen(&server, &users);
        let then = fs::read(place.root().join("seen.json")).expect("what was seen");
        let then: Value = serde_json::from_slice(&then).expect("JSON");
        assert_eq!((list(&seen, "").len(), list(&then, "").len()), (users.len(), users.len()), "{name}: users");
        for (now, then) in list(&seen, "").iter().zip(list(&then, "")) {
            assert_eq!(at(now, "/accounts"), at(then, "/accounts"), "{name}: accounts of user {}", at(then, "/user"));
            for (now, then) in list(now, "/orders").iter().zip(list(then, "/orders")) {
                assert_eq!(now, then, "{name}");
                cases.one();
            }
            assert_eq!(list(now, "/orders").len(), list(then, "/orders").len(), "{name}: orders");
        }
        server.stop();
        let verified = place.log("verify");
        assert!(verified.status.success(), "{name}, continued: {}", String::from_utf8_lossy(&verified.stderr));
        cases.one();
    }
}

/// The lines of `papertape log export`.
fn exported(place: &ServerDir) -> Vec<String> {
    let exported = String::from_utf8(place.log("export").stdout).expect("UTF-8");
    exported.lines().map(str::to_owned).collect()
}

/// What the users saw, without orders that are newer than theirs of before, and without the account of the one that
/// placed those.
fn seen_before(seen: &Value, before: &Value, filler: i64) -> Value {
    let users = list(seen, "").iter().zip(list(before, "")).map(|(user, before)| {
        let newest = list(before, "/orders").first().map_or(0, |order| int(order, "/order_id"));
        let orders = list(user, "/orders").iter().filter(|order| int(order, "/order_id") <= newest);
        let accounts = if int(user, "/user") == filler { &Value::Null } else { at(user, "/accounts") };
        json!({"user": at(user, "/user"), "accounts": accounts, "orders": orders.collect::<Vec<_>>()})
    });
    users.collect()
}

/// The rows of older builds leave memory. Users see the same; the digest is that of the whole log, in which nothing has
/// left; and the way back is whole: the exported log begins with the lines of before, and an outsider makes the digest
/// of it.
#[test]
fn rows_of_older_builds_leave_memory() {
    let cases = Cases::of("golden directories whose rows leave memory");
    let mut whole_logs = 0;
    for directory in directories() {
        let name = directory.strip_prefix(folder()).expect("it exists").display().to_string();
        let expected = expected_of(&directory);
        let mut place = place_of(&directory);
        let lines = exported(&place);
        leaving_soon(&mut place);
        // The directory is days old, so the clock is in doubt for a while, and nothing leaves.
        place.set("clock", "leap_wait_s", "0");
        let server = place.start();
        // Nothing of those with a key that trades expires later.
        let cancel = Request::new("DELETE", "/v1/cancel-all?wallet_id=all");
        let may_trade = |user: &User| server.with_key(&user.key).send(&cancel).status == 200;
        let users: Vec<User> = users_of(&expected).into_iter().filter(may_trade).collect();
        let before = seen(&server, &users);
        let filler = users.last().expect("users");
        let mut client = server.with_key(&filler.key);
        let order = accepted(&mut client, &name);
        let ended = server.figure("papertape_orders_in_memory") - server.figure("papertape_orders_open");
        server.depart_everything(&mut client, &order);
        assert!(ended > 0, "{name}: some orders have ended");
        let shown = |server: &Server| seen_before(&seen(server, &users), &before, filler.id);
        let expected_now = seen_before(&before, &before, filler.id);
        assert_eq!(shown(&server), expected_now, "{name}: after the rows have left");
        cases.add(ended as usize);
        drop(client);
        let mut server = server;
        server.kill();
        if place.data().join(format!("{:020}.wal", 1)).exists() {
            assert_eq!(place.digest_from_nothing(), place.digest(), "{name}: the digest");
            assert_eq!(exported(&place)[..lines.len()], lines, "{name}: the exported log");
            recomputed(&place, &name);
            whole_logs += 1;
        }
        for formats in ["newest", "previous", "newest"] {
            // A start from snapshot and store; the previous formats cannot hold it, and do not lose it.
            server.kill();
            place.set("journal", "write_formats", &format!("{formats:?}"));
            server = place.start();
            assert_eq!(shown(&server), expected_now, "{name}: after a start with formats {formats}");
            cases.one();
        }
        server.kill();
        let verified = run([OsString::from("history"), "verify".into(), place.data().into()]);
        assert!(verified.status.success(), "{name}: {}", String::from_utf8_lossy(&verified.stderr));
        cases.one();
    }
    // How far the log had grown when the last row left is up to the machine.
    println!("{whole_logs} of them with the whole log");
}

/// An order that is accepted and rests.
fn accepted(client: &mut Client, name: &str) -> Value {
    let markets = client.get("/v1/markets?limit=200").expect(200);
    for market in list(&markets, "") {
        let token = at(market, "/clob_token_ids/0");
        let order = json!({
            "token_id": token, "side": "BUY", "order_type": "limit", "price": "0.1", "quantity": "5",
            "time_in_force": "GTC",
        });
        if client.post("/v1/orders", &order).status == 200 {
            return order;
        }
    }
    panic!("{name}: no market takes an order")
}
