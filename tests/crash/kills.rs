//! `kill -9` at random times under load, many times over, on one data directory.
//!
//! `CRASH_KILLS` sets the number of kills (200), `CRASH_SEED` repeats the choices of a run. The number of shards, the
//! durability and the size of segments change between kills; some kills hit a start, and some ends of the log are torn
//! as by a power loss. The first half keeps the whole log, so that the state can be compared with a replay from
//! nothing; the second makes snapshots and recycles segments.

use crate::money::Account;
use crate::reconcile::{Books, Reconciled, reconcile};
use crate::trader::{Tradable, Trader};
use engine::time::Timestamp;
use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tests::binary::run;
use tests::cases::Cases;
use tests::chance::Chance;
use tests::json::{at, list, micros_at, text};
use tests::server::{Server, ServerDir, digest_of};
use wal::record::slot_bytes;
use wal::{Files, Scan};
use wire::instant::ts_text;

const TRADERS: usize = 6;
/// An hour of server time passes after this many kills, in longer runs after more.
const KILLS_PER_HOUR_MIN: usize = 20;
/// Tables of a store without ended orders.
const PRICE_TABLES: usize = 3;
/// Most hours that a run jumps ahead: markets whose end is further away stay open throughout.
const HOURS_MAX: usize = 24;

#[test]
fn killed_at_random_nothing_is_lost_and_nothing_happens_twice() {
    let cases = Cases::of("kills");
    let kills: usize = env::var("CRASH_KILLS").map_or(200, |text| text.parse().expect("CRASH_KILLS is a number"));
    let mut chance = Chance::from_env("CRASH_SEED");
    let mut place = ServerDir::new();
    place.set("venue", "seed", "11").set("flags", "match_interval_ms", "50");
    place.set("limits", "placements_per_user", "64");
    let users = place.seed(TRADERS, "enterprise", "100000");
    let mut server = place.start();
    let tradables = Arc::new(tradables(&server, &users[0].key, HOURS_MAX + 1));
    println!("tradable: {} outcomes", tradables.len());
    let mut traders: Vec<(Trader, Books)> = users
        .into_iter()
        .map(|user| (Trader::new(user, &server, tradables.clone(), chance.fork()), Books::default()))
        .collect();
    let mut total = Totals::default();
    let mut hours = 0;
    let kills_per_hour = KILLS_PER_HOUR_MIN.max(kills.div_ceil(HOURS_MAX));
    while cases.count() < kills {
        load_and_kill(&mut traders, &mut server, &mut chance);
        cases.one();
        check_log(&place, &mut total, &mut chance);
        let mut torn = chance.percent(20) && tear(&place, &mut chance);
        // Everything that may change between two starts changes.
        place.set("engine", "shards", &chance.between(1, 3).to_string());
        place.set("journal", "durability", chance.pick::<&str>(&["\"process\"", "\"process\"", "\"power\""]));
        place.set("history", "hot_seconds", chance.pick::<&str>(&["1", "1", "300"]));
        place.set("history", "hot_rows_max", chance.pick::<&str>(&["16", "16", "4096"]));
        if total.whole_log_kills(kills) < cases.count() {
            place.set("journal", "segment_bytes", chance.pick::<&str>(&["1048576", "2097152", "1052672"]));
            place.set("journal", "checkpoint_segments", "1");
        }
        while cases.count() < kills && chance.percent(15) {
            let starting = place.spawn_with(&[], &[]);
            std::thread::sleep(Duration::from_micros(chance.between(0, 120_000) as u64));
            starting.kill();
            cases.one();
            total.kills_in_start += 1;
            // That start may have cut it already.
            torn = false;
        }
        // Occasionally an hour has passed.
        if cases.count() / kills_per_hour > hours {
            hours = cases.count() / kills_per_hour;
            place.clock_ahead(hours as u64 * 3_600);
        }
        server = place.start();
        total.note_recovery(&server, torn);
        let all = cases.count().is_multiple_of(40) || cases.count() >= kills;
        std::thread::scope(|scope| {
            let address = server.address();
            let checks: Vec<_> = traders
                .iter_mut()
                .map(|(trader, books)| {
                    scope.spawn(move || {
                        trader.client.moved_to(address);
                        reconcile(trader, books, all)
                    })
                })
                .collect();
            for check in checks {
                total.add(check.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
    }
    final_accounts(&mut traders);
    let output = server.stop();
    check_log(&place, &mut total, &mut chance);
    println!("after a clean stop the last lines were:\n{output}");
    let answered: u64 = traders.iter().map(|(trader, _)| trader.answered).sum();
    let fills: usize = traders.iter().map(|(_, books)| books.ledger.fills).sum();
    let orders: usize = traders.iter().map(|(trader, _)| trader.memory.by_id.len()).sum();
    println!("{} kills; {answered} requests answered, {orders} orders acknowledged, {fills} fills", cases.count());
    println!("{total}");
    let counts = traders.iter().map(|(trader, _)| trader.wallets.counts());
    let (wallets, points) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!("{wallets} wallets, {points} points of full hours");
    assert!(wallets > 2 * TRADERS, "some wallets were opened");
    assert!(points >= TRADERS * hours, "elapsed hours have their points");
    assert!(total.reconciled.happened > 0 && total.reconciled.not_happened > 0, "kills hit requests");
    assert!(total.from_nothing > 0, "some replays started from nothing");
    if kills >= 200 {
        assert!(total.recycled && total.from_older_snapshot > 0, "the log was long enough to recycle segments");
        assert!(total.torn_bytes > 0, "some ends were torn");
        let tables = fs::read_dir(place.data().join("history/store/keyspaces")).expect("the store is there").count();
        assert!(tables > PRICE_TABLES, "ended orders have left memory");
    }
}

#[derive(Default)]
struct Totals {
    reconciled: Reconciled,
    kills_in_start: usize,
    /// Records that starts replayed, and bytes they cut from torn ends.
    records: u64,
    torn_bytes: u64,
    verified: usize,
    from_nothing: usize,
    from_older_snapshot: usize,
    recycled: bool,
}

impl Totals {
    /// The first kills keep the whole log, for replays from nothing.
    fn whole_log_kills(&self, kills: usize) -> usize {
        kills / 2
    }

    fn add(&mut self, one: Reconciled) {
        self.reconciled.rows += one.rows;
        self.reconciled.happened += one.happened;
        self.reconciled.not_happened += one.not_happened;
    }

    /// The banner reports the recovery, in numbers.
    fn note_recovery(&mut self, server: &Server, torn: bool) {
        let line = server.recovered().unwrap_or_else(|| panic!("no line about the recovery in:\n{}", server.output()));
        let numbers: Vec<u64> = line
            .split(|c: char| !c.is_ascii_digit())
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().expect("digits"))
            .collect();
        assert!(numbers.len() >= 4, "records, LSN, milliseconds, bytes cut: {line}");
        assert!(line.contains("LSN") && line.contains("records") && line.contains("torn"), "{line}");
        assert!(!torn || numbers[3] > 0, "the end was torn: {line}");
        self.records += numbers[0];
        self.torn_bytes += numbers[3];
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Reconciled { rows, happened, not_happened } = self.reconciled;
        writeln!(f, "{} kills hit a start", self.kills_in_start)?;
        writeln!(f, "{} records replayed by starts, {} bytes cut from torn ends", self.records, self.torn_bytes)?;
        writeln!(f, "{rows} rows compared; {happened} unanswered requests had happened, {not_happened} had not")?;
        write!(
            f,
            "{} logs verified; {} digests equal to a replay from nothing, {} to one from the older snapshot",
            self.verified, self.from_nothing, self.from_older_snapshot
        )
    }
}

/// Outcomes with a price on both sides whose market does not end within this many hours of server time: an order for an
/// ended market is refused, and a gap in a batch would then prove nothing.
pub fn tradables(server: &Server, key: &str, hours: usize) -> Vec<Tradable> {
    let mut client = server.with_key(key);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let until = ts_text(Timestamp::from_secs(now + hours as u64 * 3_600));
    let markets = client.get("/v1/markets?limit=200").expect(200);
    let mut found = Vec::new();
    for market in list(&markets, "") {
        let market = client.get(&format!("/v1/markets/{}", text(market, "/condition_id"))).expect(200);
        // Both texts are whole seconds of one form, so they compare like the times.
        if at(&market, "/end_date").as_str().is_some_and(|end| end <= until.as_str()) {
            continue;
        }
        // Of the few with this grid one may be among the first, depending on the hour: the lowest price of these
        // traders is 0.01.
        if text(&market, "/tick_size") == "0.1" {
            continue;
        }
        for token in list(&market, "/clob_token_ids").iter().filter_map(|token| token.as_str()) {
            let answer = client.get(&format!("/v1/spread?token_id={token}"));
            if answer.status != 200 {
                continue;
            }
            let spread = answer.json();
            let (bid, ask) = (text(&spread, "/bid").to_string(), text(&spread, "/ask").to_string());
            found.push(Tradable { token: token.to_string(), bid, ask });
        }
        if found.len() >= 60 {
            break;
        }
    }
    assert!(found.len() >= 10, "the synthetic venue has books");
    found
}

/// All clients trade; at a random time the process is killed.
fn load_and_kill(traders: &mut [(Trader, Books)], server: &mut Server, chance: &mut Chance) {
    let moment = Duration::from_micros(chance.between(1_000, 250_000) as u64);
    std::thread::scope(|scope| {
        let address = server.address();
        let trading: Vec<_> = traders
            .iter_mut()
            .map(|(trader, _)| {
                scope.spawn(move || {
                    trader.client.moved_to(address);
                    trader.trade_until_it_dies();
                })
            })
            .collect();
        // The sleep waits for nothing: the time of the kill is the random input of this test.
        std::thread::sleep(moment);
        server.kill();
        for trader in trading {
            trader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

/// The log of a killed server is intact, and every replay gives one state.
fn check_log(place: &ServerDir, total: &mut Totals, chance: &mut Chance) {
    let verified = place.log("verify");
    assert!(
        verified.status.success(),
        "papertape log verify: {}{}",
        String::from_utf8_lossy(&verified.stdout),
        String::from_utf8_lossy(&verified.stderr)
    );
    total.verified += 1;
    let data = place.data();
    let whole = data.join(format!("{:020}.wal", 1)).exists();
    total.recycled |= !whole;
    if !chance.percent(40) {
        return;
    }
    let digest = digest_of(&data);
    if whole {
        assert_eq!(place.digest_from_nothing(), digest, "a replay from nothing gives another state");
        total.from_nothing += 1;
    }
    // The older snapshot and the log after it give the same state.
    if let Some(newest) = newest_snapshot(&data) {
        let copy = place.root().join("copy");
        copy_dir(&data, &copy);
        fs::remove_file(copy.join(newest)).expect("a copied snapshot can be removed");
        if whole || newest_snapshot(&copy).is_some() {
            assert_eq!(digest_of(&copy), digest, "the older snapshot gives another state");
            total.from_older_snapshot += 1;
        } else {
            assert!(!run([OsString::from("log"), "digest".into(), copy.clone().into()]).status.success());
        }
        fs::remove_dir_all(copy).expect("the copy can be removed");
    }
}

/// Writes garbage after the last record, as if a record was being written when the power failed. False when the segment
/// has no room for it.
fn tear(place: &ServerDir, chance: &mut Chance) -> bool {
    let storage = Files::open_existing(place.data()).expect("a data directory");
    let mut scan = Scan::open_all(&storage).expect("a log");
    let mut end = None;
    while let Some(entry) = scan.next().expect("an intact log") {
        end = Some((entry.file.to_string(), entry.offset + slot_bytes(entry.payload.len()) as u64));
    }
    let (name, at) = end.expect("a log has records");
    let garbage: Vec<u8> = (0..chance.between(1, 300)).map(|_| chance.draw() as u8 | 1).collect();
    let file = OpenOptions::new().write(true).open(place.data().join(name)).expect("a segment can be opened");
    let room = file.metadata().expect("a length").len() - at;
    let fits = room > garbage.len() as u64;
    if fits {
        file.write_all_at(&garbage, at).expect("a segment can be written");
    }
    fits
}

fn newest_snapshot(dir: &Path) -> Option<PathBuf> {
    let names =
        fs::read_dir(dir).expect("a data directory").map(|entry| PathBuf::from(entry.expect("an entry").file_name()));
    names.filter(|name| name.extension().is_some_and(|extension| extension == "snapshot")).max()
}

/// A copy of a data directory, with the permissions that the server requires.
pub fn copy_dir(from: &Path, to: &Path) {
    DirBuilder::new().mode(0o700).create(to).expect("a directory for the copy");
    for entry in fs::read_dir(from).expect("a data directory") {
        let path = entry.expect("an entry").path();
        let copy = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_dir(&path, &copy);
        } else {
            fs::copy(&path, copy).expect("a file can be copied");
        }
    }
}

/// At the end the wallets hold what the fills add up to, and cancelling everything releases all reservations.
fn final_accounts(traders: &mut [(Trader, Books)]) {
    for (trader, books) in traders {
        trader.client.post("/v1/cancel-all?confirm=true", &serde_json::json!({})).expect(200);
        let account = Account::read(&mut trader.client, &mut books.ledger);
        account.check(&books.ledger, &mut trader.client);
        assert_eq!((account.reserved, account.pending.len()), (0, 0));
        let shown = trader.client.get("/v1/account/balance").expect(200);
        assert_eq!(micros_at(&shown, "/balance"), account.balance);
        assert_eq!(at(&shown, "/reserved"), "0.00");
    }
}
