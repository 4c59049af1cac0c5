//! A history store that is damaged, missing, of another log or of another moment than the log, in a server whose ended
//! orders have left memory: a start says so, orders go on, and an answer is the right one or 503 `PERSISTENCE_UNKNOWN`
//! (gateway/docs/history.md §3, §6).

use crate::disk::SmallDisk;
use crate::kills::copy_dir;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tests::binary::run;
use tests::cases::Cases;
use tests::chance::Chance;
use tests::departing::leaving_soon;
use tests::eventually;
use tests::http::{Client, Request, Response};
use tests::json::{int, list, text};
use tests::server::log_of;
use tests::world::{World, changed, limit, market};

/// Rounds of orders that leave before a copy of the data directory.
const ROUNDS: usize = 3;
/// The tail of a journal that is cut off.
const TORN_BYTES: u64 = 60;

/// What a log line says when rows cannot be read.
const SAID: [&str; 2] = ["cannot be read", "cannot be used"];

/// What a user saw of orders that have ended.
#[derive(Clone, Default)]
struct Record {
    /// Status and body by target.
    answers: BTreeMap<String, (u16, String)>,
    /// Bodies with a client order id, and their orders.
    placed: Vec<(Value, i64)>,
}

/// How answers compare with a record.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    equal: usize,
    unknown: usize,
}

impl Record {
    /// Orders of user 0 with every end, all of which end.
    fn live(&mut self, world: &World, round: usize) {
        let (m, mut client) = (&world.markets, world.user(0));
        for number in 0..ROUNDS {
            let id = |kind: &str| json!({"client_order_id": format!("{kind}-{round}-{number}")});
            let rests = changed(&limit(&m.rain, "BUY", "0.30", "10"), &id("rests"));
            let taken = changed(&market(&m.vote, "BUY", "0.66", "10"), &id("taken"));
            let sold = changed(&market(&m.vote, "SELL", "0.01", "10"), &id("sold"));
            for body in [rests, taken, sold] {
                let order = int(&client.post("/v1/orders", &body).expect(200), "/order_id");
                self.placed.push((body, order));
            }
        }
        client.send(&Request::new("DELETE", "/v1/cancel-all")).expect(200);
    }

    fn targets(&self) -> Vec<String> {
        let mut targets: Vec<String> = self.placed.iter().map(|(_, order)| format!("/v1/orders/{order}")).collect();
        let ids = self.placed.iter().map(|(body, _)| text(body, "/client_order_id"));
        targets.extend(ids.map(|id| format!("/v1/orders/by-client-id/{id}")));
        for target in [
            "/v1/orders?limit=200",
            "/v1/orders?status=CANCELLED&limit=2",
            "/v1/orders?status=FILLED&limit=7&offset=3",
            "/v1/account/history?limit=200",
            "/v1/account/positions?status=CLOSED",
            "/v1/export/trades.csv",
        ] {
            targets.push(target.to_owned());
        }
        targets
    }

    fn see(&mut self, client: &mut Client) {
        self.answers.clear();
        for target in self.targets() {
            let answer = client.get(&target);
            assert!(answer.status == 200, "{target}: {}", answer.lossy());
            self.answers.insert(target, shown(&answer));
        }
    }

    /// No answer is wrong, and no request is done twice.
    fn compare(&self, client: &mut Client, case: &str) -> Compared {
        let mut compared = Compared::default();
        for (target, expected) in &self.answers {
            // An answer that was begun may end early, which no client takes for a whole one.
            let Ok(answer) = client.call(&Request::get(target)) else {
                assert!(target.ends_with(".csv"), "{case}: {target} is not answered");
                compared.unknown += 1;
                continue;
            };
            compared.note(&answer, shown(&answer) == *expected, &format!("{case}: {target}"));
        }
        for (body, order) in &self.placed {
            let answer = client.post("/v1/orders", body);
            let is_same = answer.status == 200
                && int(&answer.json(), "/order_id") == *order
                && answer.json()["is_replay"] == json!(true);
            compared.note(&answer, is_same, &format!("{case}: order {order} once more"));
        }
        compared
    }
}

impl Compared {
    fn note(&mut self, answer: &Response, is_equal: bool, what: &str) {
        if is_equal {
            self.equal += 1;
            return;
        }
        assert_eq!((answer.status, answer.code().as_str()), (503, "PERSISTENCE_UNKNOWN"), "{what}: {}", answer.lossy());
        self.unknown += 1;
    }
}

fn shown(answer: &Response) -> (u16, String) {
    (answer.status, answer.lossy())
}

/// Copies of one data directory, of two moments, and what was seen then; one of another server.
struct Copies {
    world: World,
    early: (PathBuf, Record),
    late: (PathBuf, Record),
    foreign: PathBuf,
}

fn copies() -> Copies {
    let mut world = World::start_with(2, leaving_soon);
    let mut taken = Vec::new();
    let mut record = Record::default();
    for (round, name) in ["early", "late"].into_iter().enumerate() {
        record.live(&world, round);
        world.depart_everything(1);
        record.see(&mut world.user(0));
        world.server.stop();
        let copy = world.place.root().join(name);
        copy_dir(&world.place.data(), &copy);
        taken.push((copy, record.clone()));
        world.server = world.place.start();
    }
    let other = World::start_with(2, leaving_soon);
    Record::default().live(&other, 0);
    other.depart_everything(1);
    other.server.stop();
    let foreign = world.place.root().join("foreign");
    copy_dir(&other.place.data(), &foreign);
    world.server.kill();
    let late = taken.pop().expect("two copies");
    Copies { early: taken.pop().expect("two copies"), late, foreign, world }
}

/// Files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

fn verified(data: &Path) -> Output {
    run([OsString::from("history"), "verify".into(), data.into()])
}

/// Replaces a folder by a copy of another one.
fn replace(folder: &Path, by: &Path) {
    fs::remove_dir_all(folder).expect("it can be removed");
    copy_dir(by, folder);
}

/// What a start says, and what it can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// Every answer is the right one.
    All,
    /// None of what has left memory can be read.
    Nothing,
    /// Parts.
    Some,
}

impl Copies {
    /// Starts a changed copy of the early or the late directory. Returns how its answers compare, and whether
    /// `history verify` found something before.
    fn start(&mut self, case: &str, is_late: bool, change: impl FnOnce(&Path), says: &str) -> (Compared, bool) {
        let (copy, record) = if is_late { &self.late } else { &self.early };
        let data = self.world.place.data();
        replace(&data, copy);
        change(&data);
        // A copy: the check finishes what a crash left.
        let checked = self.world.place.root().join("checked");
        copy_dir(&data, &checked);
        let is_found = verified(&checked).status.code() == Some(1);
        fs::remove_dir_all(&checked).expect("it can be removed");
        self.world.server = self.world.place.start();
        let (mut client, world) = (self.world.user(0), &self.world);
        let compared = record.compare(&mut client, case);
        if compared.unknown > 0 {
            let is_said = || SAID.iter().any(|said| world.server.output().contains(said));
            eventually(&format!("{case}: the log says so"), || is_said().then_some(()));
        }
        if !says.is_empty() {
            eventually(&format!("{case}: {says}"), || world.server.output().contains(says).then_some(()));
        }
        // Orders go on: without a name they need no row.
        let order = limit(&world.markets.rain, "BUY", "0.01", "10");
        world.user(1).post("/v1/orders", &order).expect(200);
        client.post("/v1/orders", &order).expect(200);
        let named = client.post("/v1/orders", &changed(&order, &json!({"client_order_id": "never-sent"})));
        assert!(named.status == 200 || named.code() == "PERSISTENCE_UNKNOWN", "{case}: {}", named.lossy());
        self.world.server.kill();
        (compared, is_found)
    }
}

/// A change of a copied directory.
struct Case {
    name: &'static str,
    is_late: bool,
    change: Box<dyn Fn(&Path)>,
    reads: Reads,
    is_found: bool,
    /// In the log.
    says: &'static str,
}

#[test]
fn a_store_that_does_not_fit_is_found_and_never_answers_wrongly() {
    let cases = Cases::of("stores that do not fit");
    let mut copies = copies();
    let [early, late, foreign] = [&copies.early.0, &copies.late.0, &copies.foreign].map(|data| data.join("history"));
    let case = |name, is_late, reads, is_found, says, change: Box<dyn Fn(&Path)>| Case {
        name,
        is_late,
        change,
        reads,
        is_found,
        says,
    };
    let swapped = |by: &Path| -> Box<dyn Fn(&Path)> {
        let by = by.to_path_buf();
        Box::new(move |data| replace(&data.join("history"), &by))
    };
    let version = |bytes: &'static [u8]| -> Box<dyn Fn(&Path)> {
        Box::new(move |data| fs::write(data.join("history/store/version"), bytes).expect("it can be written"))
    };
    let removed = |name: &'static str| -> Box<dyn Fn(&Path)> {
        Box::new(move |data| fs::remove_dir_all(data.join(name)).expect("it can be removed"))
    };
    let rows = [
        case("unchanged", true, Reads::All, false, "", Box::new(|_| {})),
        case("its own store", true, Reads::All, false, "", swapped(&late)),
        case("without filters", true, Reads::All, false, "", removed("history/filters")),
        case("without a store", true, Reads::Nothing, true, "its ended rows are missing", removed("history/store")),
        case("without a history", true, Reads::Nothing, true, "its ended rows are missing", removed("history")),
        case("of another log", true, Reads::Nothing, true, "those of another log", swapped(&foreign)),
        case("too early for the log", true, Reads::Nothing, true, "its ended rows end at LSN", swapped(&early)),
        case("ahead of the log", false, Reads::Some, true, "its ended rows are of LSN", swapped(&late)),
        case("of a later program", true, Reads::Nothing, true, "later program", version(b"FJL\x04")),
        case("of a much later program", true, Reads::Nothing, true, "later program", version(b"FJL\xff")),
        case("of an earlier engine", true, Reads::Nothing, true, "cannot be used", version(b"FJL\x02")),
        case("of another engine", true, Reads::Nothing, true, "cannot be used", version(b"XYZ\x03")),
    ];
    for Case { name, is_late, change, reads, is_found, says } in rows {
        let (compared, found) = copies.start(name, is_late, change, says);
        println!("{name}: {} answers equal, {} unknown, found by verify: {found}", compared.equal, compared.unknown);
        match reads {
            Reads::All => assert_eq!(compared.unknown, 0, "{name}"),
            Reads::Nothing => assert_eq!(compared.equal, 0, "{name}"),
            Reads::Some => {}
        }
        assert_eq!(found, is_found, "{name}: history verify");
        // No backup without the rows, also not with the empty store that the start has made in place of a lost one.
        let out = copies.world.place.root().join("backup");
        let data = copies.world.place.data();
        let taken = run([OsString::from("backup"), data.into(), "--out".into(), out.clone().into()]);
        let said = String::from_utf8_lossy(&taken.stderr).into_owned();
        assert_eq!(taken.status.success(), reads == Reads::All, "{name}: {said}");
        assert!(taken.status.success() || said.contains("orders that have left memory"), "{name}: {said}");
        let _ = fs::remove_dir_all(out);
        cases.add(compared.equal + compared.unknown + 1);
    }
}

#[test]
fn damaged_files_of_a_store_never_answer_wrongly() {
    let cases = Cases::of("damaged files of a store");
    let mut chance = Chance::from_env("DAMAGE_SEED");
    let mut copies = copies();
    let history = copies.late.0.join("history");
    let names = files(&history).into_iter().map(|path| {
        let length = path.metadata().expect("it is there").len();
        (path.strip_prefix(&history).expect("it is below").to_path_buf(), length)
    });
    let names: Vec<(PathBuf, u64)> = names.collect();
    let (mut unreadable, mut found, mut starts) = (0, 0, 0);
    for (name, length) in names {
        for damage in ["removed", "cut", "flipped"] {
            if length == 0 && damage != "removed" {
                continue;
            }
            let at = chance.below(length.max(1) as usize) as u64;
            let case = format!("{} {damage} at {at} of {length}", name.display());
            let change = |data: &Path| {
                let path = data.join("history").join(&name);
                let open = || OpenOptions::new().read(true).write(true).open(&path).expect("it can be opened");
                match damage {
                    "removed" => fs::remove_file(&path).expect("it can be removed"),
                    "cut" => open().set_len(at).expect("it can be cut"),
                    _ => flip(&open(), at, 1 << chance.below(8)),
                }
            };
            let (compared, is_found) = copies.start(&case, true, change, "");
            unreadable += usize::from(compared.unknown > 0);
            found += usize::from(is_found);
            starts += 1;
            cases.add(compared.equal + compared.unknown);
        }
    }
    println!("{starts} starts: ended rows could not be read in {unreadable}, verify found {found}");
    assert!(unreadable > 0 && unreadable < starts, "some damage matters, and some does not");
}

fn flip(file: &File, at: u64, bit: u8) {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it can be read");
    file.write_all_at(&[byte[0] ^ bit], at).expect("it can be written");
}

/// The newest journal of the store loses its tail, as when a machine stops during a move.
#[test]
fn a_torn_journal_of_a_store_is_cut() {
    let cases = Cases::of("torn journals of a store");
    let mut copies = copies();
    for torn in [1, 7, TORN_BYTES, 3 * TORN_BYTES] {
        let change = |data: &Path| {
            let journal = files(&data.join("history/store"))
                .into_iter()
                .rfind(|path| path.extension().is_some_and(|of| of == "jnl"));
            let journal =
                OpenOptions::new().read(true).write(true).open(journal.expect("a journal")).expect("it opens");
            let written = written(&journal);
            let zeros = vec![0; torn.min(written) as usize];
            journal.write_all_at(&zeros, written.saturating_sub(torn)).expect("it can be written");
        };
        let (compared, is_found) = copies.start(&format!("torn by {torn} bytes"), true, change, "");
        println!("torn by {torn} bytes: {compared:?}, found by verify: {is_found}");
        cases.add(compared.equal + compared.unknown);
    }
}

/// Bytes up to the last that is not zero.
fn written(file: &File) -> u64 {
    let mut bytes = vec![0; file.metadata().expect("a length").len() as usize];
    file.read_exact_at(&mut bytes, 0).expect("it can be read");
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1)
}

/// A store that is ahead of an older log stays so when that log has grown past it: rows of the other course of events
/// are never shown.
#[test]
fn a_store_of_another_course_of_events_stays_hidden() {
    let cases = Cases::of("stores of another course of events");
    let mut copies = copies();
    let late = copies.late.0.join("history");
    let (early, record) = copies.early.clone();
    let world = &mut copies.world;
    replace(&world.place.data(), &early);
    let ahead = {
        let last = |data: &Path| {
            let exported = String::from_utf8(log_of(data, "export").stdout).expect("UTF-8");
            let last: Value = serde_json::from_str(exported.lines().last().expect("records")).expect("JSON lines");
            int(&last, "/lsn") as usize
        };
        last(&copies.late.0) - last(&early)
    };
    // The same log goes another way, with windows in which nothing leaves.
    world.place.set("history", "hot_seconds", "3600").set("history", "hot_rows_max", "4096");
    world.server = world.place.start();
    place_many(world, "another-way", ahead + 50);
    world.user(1).send(&Request::new("DELETE", "/v1/cancel-all"));
    world.server.kill();
    replace(&world.place.data().join("history"), &late);
    leaving_soon(&mut world.place);
    world.server = world.place.start();
    for (round, case) in ["after the swap", "after moves", "after a start"].into_iter().enumerate() {
        for kind in ["rests", "taken", "sold"] {
            // Of the other way.
            let answer = world.user(0).get(&format!("/v1/orders/by-client-id/{kind}-1-0"));
            assert!(answer.status == 404 || answer.code() == "PERSISTENCE_UNKNOWN", "{case}: {}", answer.lossy());
        }
        let compared = record.compare(&mut world.user(0), case);
        println!("{case}: {} answers equal, {} unknown", compared.equal, compared.unknown);
        cases.add(compared.equal + compared.unknown);
        match round {
            0 => {
                // Its rows of before the copy would be right, but the log has another record where its last ones moved.
                assert_eq!(compared.equal, 0);
                let said = "another copy of this one";
                eventually(said, || world.server.output().contains(said).then_some(()));
                place_many(world, "after-the-swap", 8_000);
                let said = "ended orders cannot move to the history store";
                eventually(said, || world.server.output().contains(said).then_some(()));
            }
            1 => world.crash(),
            _ => {}
        }
    }
}

/// User 1 places orders that rest, each of them once.
fn place_many(world: &World, name: &str, count: usize) {
    let (mut client, order) = (world.user(1), limit(&world.markets.rain, "BUY", "0.01", "10"));
    let mut placed = 0;
    while placed < count {
        let id = |entry: usize| json!({"client_order_id": format!("{:x<250}", format!("{name}-{placed}-{entry}-"))});
        let entries: Vec<Value> = (0..25).map(|entry| changed(&order, &id(entry))).collect();
        let answer = client.post("/v1/orders/batch", &json!({"orders": entries}));
        if answer.status == 200 {
            let json = answer.json();
            placed += list(&json, "/results").iter().filter(|row| int(row, "/order_id") > 0).count();
        }
    }
}

/// A plain copy of a running server's directory: it starts and is right, or is refused.
#[test]
fn a_copy_of_a_running_directory_is_right_or_refused() {
    let cases = Cases::of("copies of a running directory");
    let mut world = World::start_with(2, leaving_soon);
    let mut record = Record::default();
    let (copies, mut started, mut refused) = (6, 0, 0);
    for round in 0..copies {
        record.live(&world, round);
        if round % 2 == 0 {
            world.depart_everything(1);
        }
        record.see(&mut world.user(0));
        let copy = world.place.root().join("copy");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stopping = Stopping(&stop);
            // Rows leave, segments are recycled and tables are merged meanwhile.
            scope.spawn(|| keep_moving(&world, &stop));
            std::thread::sleep(Duration::from_millis(200));
            copy_running(&world.place.data(), &copy);
        });
        world.server.kill();
        let original = world.place.root().join("original");
        fs::rename(world.place.data(), &original).expect("it can be renamed");
        fs::rename(&copy, world.place.data()).expect("it can be renamed");
        match world.place.spawn_with(&[], &[]).ready() {
            Err(said) => {
                assert!(!said.contains("panicked"), "{said}");
                refused += 1;
                cases.one();
            }
            Ok(server) => {
                let mut client = server.with_key(&world.users[0].key);
                let compared = record.compare(&mut client, &format!("copy {round}"));
                started += 1;
                cases.add(compared.equal + compared.unknown);
            }
        }
        fs::remove_dir_all(world.place.data()).expect("it can be removed");
        fs::rename(&original, world.place.data()).expect("it can be renamed");
        world.server = world.place.start();
    }
    println!("{copies} copies: {started} started, {refused} were refused");
}

/// Sets a flag at its end, also at that of a panic.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// User 1 places orders that end, until `stop` is set.
fn keep_moving(world: &World, stop: &AtomicBool) {
    let mut client = world.user(1);
    let order = limit(&world.markets.rain, "BUY", "0.01", "10");
    let pid = world.server.pid();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let id =
            |entry: usize| json!({"client_order_id": format!("{:x<250}", format!("moves-{pid}-{number}-{entry}-"))});
        let entries: Vec<Value> = (0..20).map(|entry| changed(&order, &id(entry))).collect();
        client.post("/v1/orders/batch", &json!({"orders": entries}));
        client.send(&Request::new("DELETE", "/v1/cancel-all"));
    }
}

/// As `cp -r` does it: files that vanish are passed over.
fn copy_running(from: &Path, to: &Path) {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().mode(0o700).create(to).expect("a directory for the copy");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_running(&path, &copy);
        } else {
            // It may have been renamed or removed meanwhile.
            _ = fs::copy(&path, copy);
        }
    }
}

/// The disk fills up while rows leave, again and again; nothing is lost, and in the end everything leaves.
#[test]
fn a_full_disk_during_moves_loses_nothing() {
    let cases = Cases::of("full disk during moves");
    let mut disk = None;
    let mut world = World::start_with(2, |place| {
        leaving_soon(place);
        place.set("journal", "reserve_bytes", "2097152");
        // A move wants 64 MiB free beside the reserve.
        disk = SmallDisk::mount(&place.data(), 192);
    });
    // Dropped before the world, whose folder it is in.
    let Some(disk) = disk else {
        tests::binary::skipped("no small file system can be mounted here");
        cases.one();
        return;
    };
    let mut record = Record::default();
    let (mut chance, mut full) = (Chance::from_env("DISK_SEED"), 0);
    let filler = disk.path().join("filler");
    for round in 0..4 {
        eventually("room for orders", || {
            let order = limit(&world.markets.rain, "BUY", "0.01", "10");
            (world.user(1).post("/v1/orders", &order).status == 200).then_some(())
        });
        record.live(&world, round);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stopping = Stopping(&stop);
            scope.spawn(|| keep_moving(&world, &stop));
            for _ in 0..6 {
                full += usize::from(fill(&filler));
                std::thread::sleep(Duration::from_millis(chance.between(50, 400) as u64));
                fs::remove_file(&filler).expect("it can be removed");
                std::thread::sleep(Duration::from_millis(chance.between(20, 200) as u64));
            }
        });
        if round % 2 == 1 {
            world.crash();
        }
        for (_, order) in &record.placed {
            let answer = world.user(0).get(&format!("/v1/orders/{order}"));
            assert!(answer.status == 200 || answer.code() == "PERSISTENCE_UNKNOWN", "{}", answer.lossy());
            cases.one();
        }
    }
    // A sync that failed ends the moves of its process.
    world.crash();
    world.depart_everything(1);
    let mut client = world.user(0);
    let shown = client.get("/v1/orders?limit=200").expect(200);
    let ids: Vec<i64> = list(&shown, "/orders").iter().map(|row| int(row, "/order_id")).collect();
    let placed: Vec<i64> = record.placed.iter().rev().map(|(_, order)| *order).collect();
    assert_eq!(ids, placed, "all orders, once");
    for (body, order) in &record.placed {
        let again = client.post("/v1/orders", body).expect(200);
        assert_eq!((int(&again, "/order_id"), &again["is_replay"]), (*order, &json!(true)));
        cases.one();
    }
    drop(client);
    world.server.stop();
    let verified = verified(&world.place.data());
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    println!("the disk was full {full} times");
    assert!(full > 0, "the disk was never full");
}

/// Fills the disk. Returns whether that ended with an error.
fn fill(path: &Path) -> bool {
    use std::io::Write as _;
    let mut file = File::create(path).expect("a file can be made");
    let block = [0; 1 << 14];
    (0..1 << 15).any(|_| file.write_all(&block).is_err())
}
