use super::*;
use crate::fold::Folded;
use crate::index::fault;
use crate::row::{Condition, Event, Row};
use crate::sidecar::{Gap, HourFacts, Piece};
use crate::testing::{Chance, HOUR, condition, row, token};
use crate::write::HourWriter;
use engine::backtest::{ArchivedBook, Confidence, Verdict};
use engine::time::{HOUR as HOUR_MICROS, Timestamp};
use std::collections::BTreeMap;

mod changes;
mod removal;

const VENUE: &str = "polymarket";

/// Rows of a token in an hour.
struct Speaks {
    market: u64,
    outcome: u64,
    rows: usize,
}

fn speaks(market: u64, outcome: u64, rows: usize) -> Speaks {
    Speaks { market, outcome, rows }
}

/// Rows of an hour in file order. Several rows have the same millisecond.
fn rows_of(seed: u64, hour: u32, all: &[Speaks]) -> Vec<Row> {
    let mut chance = Chance::seeded(seed);
    let mut rows: Vec<Row> = Vec::new();
    for Speaks { market, outcome, rows: count } in all {
        for _ in 0..*count {
            let mut row = row(&mut chance, 1, 1);
            row.market = condition(*market);
            row.token = token(*market, *outcome);
            // Most of them in the first ten minutes.
            let within = if chance.one_in(4) { 3_600_000 } else { 600_000 };
            row.received = Timestamp::of_hour(hour).plus(chance.below(within) * 1_000);
            row.source = Timestamp::from_millis(row.received.millis() - chance.below(20));
            rows.push(row);
        }
    }
    rows.sort_by(|one, other| {
        (one.market, &one.token, one.received).cmp(&(other.market, &other.token, other.received))
    });
    rows
}

fn sidecar_of(rows: &[Row]) -> Sidecar {
    let millis = |row: &Row| row.received.millis();
    let mut sidecar = Sidecar {
        built_by: "test".to_owned(),
        first_received: rows.iter().map(millis).min(),
        last_received: rows.iter().map(millis).max(),
        ..Sidecar::default()
    };
    sidecar.frames.dropped = Some(0);
    sidecar
}

/// Makes an hour.
fn make(
    store: &Store,
    lock: &Lock,
    hour: u32,
    rows: &[Row],
    mut sidecar: Sidecar,
    facts: HourFacts,
) -> Result<Sidecar, Error> {
    let path = store.begin(lock, VENUE, Hour(hour))?;
    let mut writer = HourWriter::create(&path, Some([hour as u8; 32]))?;
    for row in rows {
        writer.push(row)?;
    }
    sidecar.set_rows(writer.counts());
    let parquet = writer.prepare()?;
    let digest = parquet.written().sha256;
    let index = store.index(lock, VENUE, Hour(hour), &parquet.open()?, digest, &|| false)?.expect("it goes on");
    store.complete(lock, VENUE, Hour(hour), sidecar, facts, Files { parquet, index })
}

fn simple(store: &Store, lock: &Lock, hour: u32, rows: &[Row]) -> Sidecar {
    make(store, lock, hour, rows, sidecar_of(rows), HourFacts::default()).expect("made")
}

/// Every event of each token, in the order of receipt.
type Events = BTreeMap<(Condition, Arc<str>), Vec<Row>>;

fn events_of(hours: &[&[Row]]) -> Events {
    let mut events = Events::new();
    for row in hours.iter().flat_map(|rows| rows.iter()) {
        events.entry((row.market, row.token.clone())).or_default().push(row.clone());
    }
    events
}

/// Compares `cases` books at random moments with folds from the start; returns the number of differences.
fn compare(store: &Store, hours: Range<u32>, events: &Events, cases: usize) -> usize {
    let mut chance = Chance::seeded(60);
    let mut differences = 0;
    for ((market, token), events) in events {
        let mut moments: Vec<u64> = Vec::new();
        let [first, end] = [hours.start, hours.end].map(|hour| Timestamp::of_hour(hour).millis());
        // Moments at which an anchor's last row was received, and one millisecond around them.
        let mut anchors = Vec::new();
        for hour in hours.clone() {
            let entry = store.hour(VENUE, Hour(hour)).expect("an hour");
            let of = store.with_hour(&entry, |_, index| {
                index.token(market, token).map_or(Ok(Vec::new()), |rows| index.anchors(&rows))
            });
            anchors.extend(of.expect("anchors").iter().filter_map(|anchor| anchor.through));
        }
        for _ in 0..cases.div_ceil(events.len()) {
            let base = match chance.below(4) {
                0 if !anchors.is_empty() => anchors[chance.below(anchors.len() as u64) as usize].millis(),
                1 | 2 => events[chance.below(events.len() as u64) as usize].received.millis(),
                _ => first + chance.below(end - first),
            };
            moments.push((base + chance.below(3)).saturating_sub(1).clamp(first, end - 1));
        }
        moments.sort_unstable();
        let (mut folded, mut next) = (Folded::default(), 0);
        for moment in moments {
            let at = Timestamp::from_millis(moment);
            while let Some(row) = events.get(next).filter(|row| row.received <= at) {
                folded.apply(row.received, row.source, &row.event);
                next += 1;
            }
            let expected = folded.is_known().then(|| folded.view());
            let found = match store.book_at(VENUE, market, token, at) {
                Ok(book) => Some(book),
                Err(BookError::NotCovered) => None,
                Err(error) => panic!("{error}"),
            };
            let is_same = match (&expected, &found) {
                (None, None) => true,
                (Some(view), Some(book)) => {
                    (&view.bids, &view.asks, view.crossed_dropped) == (&book.bids, &book.asks, book.crossed_dropped)
                        && book.last_message == folded.last_received()
                }
                _ => false,
            };
            differences += usize::from(!is_same);
        }
    }
    differences
}

/// Two hours; a token that is silent in the second, one that is silent in the first.
fn two_hours() -> [Vec<Row>; 2] {
    let first = [speaks(1, 0, 9_000), speaks(1, 1, 700), speaks(2, 0, 1_500), speaks(3, 0, 30), speaks(3, 1, 1)];
    let second = [speaks(1, 0, 7_000), speaks(1, 1, 800), speaks(2, 0, 1), speaks(4, 0, 600)];
    [rows_of(61, HOUR, &first), rows_of(62, HOUR + 1, &second)]
}

fn open(folder: &Path, books_bytes: u64) -> Store {
    Store::open(folder, Settings { books_bytes, ..Settings::default() }).expect("opened")
}

#[test]
fn a_book_at_a_moment_is_the_fold_from_the_start() {
    const CASES: usize = 100_000;
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 64 << 20);
    let lock = store.lock().expect("the lock");
    let [first, second] = two_hours();
    simple(&store, &lock, HOUR, &first);
    simple(&store, &lock, HOUR + 1, &second);
    let events = events_of(&[&first, &second]);
    let differences = compare(&store, HOUR..HOUR + 2, &events, CASES);
    assert_eq!(differences, 0);
    assert!(store.memory() > 0 && store.memory() <= 64 << 20);
    // With hardly any memory everything is read each time.
    let small = open(folder.path(), 1_000);
    assert_eq!(compare(&small, HOUR..HOUR + 2, &events, 300), 0);
    assert_eq!(small.memory(), 0);
    println!("books at moments: {} cases, and 300 without a cache", CASES.div_ceil(events.len()) * events.len());
}

/// The property finds an anchor that has one row more than it states.
#[test]
fn a_planted_fault_in_anchors_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 64 << 20);
    let lock = store.lock().expect("the lock");
    let [first, second] = two_hours();
    fault::IS_LATE.set(true);
    simple(&store, &lock, HOUR, &first);
    simple(&store, &lock, HOUR + 1, &second);
    fault::IS_LATE.set(false);
    let differences = compare(&store, HOUR..HOUR + 2, &events_of(&[&first, &second]), 10_000);
    assert!(differences > 0, "an anchor one row late was not found");
    println!("planted fault: {differences} cases differ");
}

/// An hour that is imported after the next one: the books of the later hour begin with those of the earlier.
#[test]
fn hours_may_come_in_any_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 64 << 20);
    let lock = store.lock().expect("the lock");
    let [first, second] = two_hours();
    simple(&store, &lock, HOUR + 1, &second);
    let before = compare(&store, HOUR + 1..HOUR + 2, &events_of(&[&first, &second]), 700);
    assert!(before > 0, "the earlier hour is not there yet");
    simple(&store, &lock, HOUR, &first);
    let events = events_of(&[&first, &second]);
    assert_eq!(compare(&store, HOUR..HOUR + 2, &events, 7_000), 0);
    assert_eq!(store.verify(Hour(0)..Hour(u32::MAX), Some(&mut NoRaw)).expect("verified"), []);
    println!("hours in another order: {} cases", 7_000);
}

/// Hours that come in any order have the same files: chain, books at their begins, checks and verdicts of markets.
#[test]
fn the_order_of_arrival_changes_no_file() {
    /// More than a book is carried over.
    const HOURS: u32 = 27;
    // A market whose stated prices differ is quarantined, and not carried: most rows state none.
    let is_changing = |row: &Row| matches!(row.event, Event::PriceChange { .. });
    let quiet = |mut row: Row| {
        if let Event::PriceChange { best_bid, best_ask, .. } = &mut row.event {
            (*best_bid, *best_ask) = (None, None);
        }
        row
    };
    let rows = |hour: u32| {
        // Market 1 speaks always, 3 now and then, 2 in the first hour; what it states much later can be compared only with
        // the book of then.
        let speaking = [
            (speaks(1, 0, 40), true),
            (speaks(2, 0, 12), hour == 0),
            (speaks(2, 0, 30), hour == 20 || hour == 26),
            (speaks(3, 1, 20), hour.is_multiple_of(5)),
        ];
        let all: Vec<Speaks> = speaking.into_iter().filter(|(_, does)| *does).map(|(speaks, _)| speaks).collect();
        let rows = rows_of(u64::from(hour) + 500, HOUR + hour, &all).into_iter();
        match hour {
            0 => rows.map(quiet).collect::<Vec<Row>>(),
            _ => rows
                .filter(|row| row.market != condition(2) || is_changing(row))
                .map(|row| if row.market == condition(2) { row } else { quiet(row) })
                .collect(),
        }
    };
    let made = |order: &[u32]| {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path(), 64 << 20);
        let lock = store.lock().expect("the lock");
        for hour in order {
            let rows = rows(*hour);
            // What was dropped is not known, so that best prices decide.
            let mut sidecar = Sidecar { minutes_empty: 0, ..sidecar_of(&rows) };
            sidecar.frames.dropped = None;
            make(&store, &lock, HOUR + hour, &rows, sidecar, HourFacts::default()).expect("made");
        }
        assert_eq!(store.verify(Hour(0)..Hour(u32::MAX), Some(&mut NoRaw)).expect("verified"), []);
        files_of(folder.path())
    };
    let ascending: Vec<u32> = (0..HOURS).collect();
    let expected = made(&ascending);
    let sidecars: Vec<Sidecar> = expected.values().filter_map(|bytes| serde_json::from_slice(bytes).ok()).collect();
    assert_eq!(sidecars.len(), HOURS as usize);
    let of_market =
        |hour: usize| sidecars[hour].exceptions.iter().any(|of| of.condition_id == condition(2).to_string());
    assert!(of_market(20) && sidecars[20].checks.bbo_compared > 0, "{:?}", sidecars[20]);
    assert!(sidecars.iter().skip(1).all(|sidecar| sidecar.checks.carried_tokens > 0));
    assert!(sidecars.windows(2).all(|two| two[1].previous.as_deref() == Some(two[0].digest.as_str())));
    let mut orders = vec![ascending.iter().rev().copied().collect::<Vec<u32>>()];
    // Evens first; and a shuffled order.
    orders.push((0..HOURS).step_by(2).chain((1..HOURS).step_by(2)).collect());
    orders.push((0..HOURS).map(|number| number * 10 % HOURS).collect());
    for order in &orders {
        let found = made(order);
        let differing: Vec<&PathBuf> =
            expected.iter().filter(|(path, bytes)| found.get(*path) != Some(*bytes)).map(|of| of.0).collect();
        assert!(differing.is_empty() && found.len() == expected.len(), "{order:?}: {differing:?}");
    }
    println!("orders of arrival: {} cases of {HOURS} hours", orders.len());
}

/// A check that finds nothing.
struct NoRaw;

impl RawCheck for NoRaw {
    fn check(&mut self, _: &HourEntry, _: &Sidecar, _: &crate::read::HourFile) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }
}

/// A whole book of one level in the given millisecond.
fn book_row(market: u64, hour: u32, millis: u64) -> Row {
    let mut chance = Chance::seeded(70);
    let mut row = row(&mut chance, 1, 1);
    row.market = condition(market);
    row.token = token(market, 0);
    row.received = Timestamp::of_hour(hour).plus(millis * 1_000);
    row.source = row.received;
    let level = (engine::amount::Price(5_000), engine::amount::Qty(7));
    row.event = crate::row::Event::Book { bids: vec![level], asks: Vec::new() };
    row
}

fn find(store: &Store, market: u64, hour: u32, millis: u64) -> Option<ArchivedBook> {
    let at = Timestamp::of_hour(hour).plus(millis * 1_000);
    store.book_at(VENUE, &condition(market), &token(market, 0), at).ok()
}

#[test]
fn books_are_carried_only_over_unbroken_hours() {
    let gap = |tokens: Option<Vec<String>>, millis: u64| {
        let from = Timestamp::of_hour(HOUR).millis() + millis;
        Gap { from, to: from + 1_000, tokens, ..Gap::default() }
    };
    let other = || Some(vec!["12345".to_owned()]);
    let own = || Some(vec![token(1, 0).to_string()]);
    // Name, gaps of the first hour, whether it is partial, hours that are missing, and up to which hour it is carried.
    type Case = (&'static str, Vec<Gap>, bool, &'static [u32], u32);
    let cases: Vec<Case> = vec![
        ("unbroken", vec![], false, &[], 24),
        ("a gap before the book", vec![gap(None, 10)], false, &[], 24),
        ("a gap after the book", vec![gap(None, 5_000)], false, &[], 0),
        ("a gap of the token", vec![gap(own(), 5_000)], false, &[], 0),
        ("a gap of another token", vec![gap(other(), 5_000)], false, &[], 24),
        ("a missing hour", vec![], false, &[3], 2),
        ("a recording that ends", vec![], true, &[], 0),
    ];
    let mut checked = 0;
    for (name, gaps, is_partial, missing, carried) in &cases {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path(), 64 << 20);
        let lock = store.lock().expect("the lock");
        for number in (0..27).filter(|number| !missing.contains(number)) {
            let rows = match number {
                0 => vec![book_row(1, HOUR, 1_000), book_row(2, HOUR, 2_000)],
                _ => vec![book_row(2, HOUR + number, 1_000)],
            };
            let mut sidecar = sidecar_of(&rows);
            if number == 0 {
                sidecar.gaps = gaps.clone();
            }
            let facts = HourFacts { is_partial: *is_partial && number == 0, is_merged: false };
            make(&store, &lock, HOUR + number, &rows, sidecar, facts).expect("made");
        }
        for number in (1..27).filter(|number| !missing.contains(number)) {
            let found = find(&store, 1, HOUR + number, 500);
            assert_eq!(found.is_some(), number <= *carried, "{name}, {number} hours later");
            let states = store.hours(VENUE, &condition(1), Hour(HOUR + number)..Hour(HOUR + number + 1));
            if gaps.is_empty() && !is_partial {
                assert_eq!(states.len(), usize::from(number <= *carried), "{name}, {number}");
            }
            checked += 1;
        }
    }
    println!("carried books: {checked} cases");
}

#[test]
fn books_know_their_hour() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 64 << 20);
    let lock = store.lock().expect("the lock");
    let rows = [book_row(1, HOUR, 1_000), book_row(1, HOUR, 90_000), book_row(2, HOUR, 1_000)];
    let mut sidecar = sidecar_of(&rows);
    let start = Timestamp::of_hour(HOUR).millis();
    let gap = |from: u64, market: u64| Gap {
        from: start + from,
        to: start + from + 100,
        tokens: Some(vec![token(market, 0).to_string()]),
        ..Gap::default()
    };
    sidecar.gaps = vec![gap(60_000, 1), gap(2_000, 2)];
    make(&store, &lock, HOUR, &rows, sidecar, HourFacts { is_partial: true, is_merged: false }).expect("made");
    // Market, moment, and the expected staleness.
    let cases = [
        (1, 999, None),
        (1, 1_000, Some(false)),
        (1, 59_999, Some(false)),
        (1, 60_000, Some(true)),
        (1, 89_999, Some(true)),
        (1, 90_000, Some(false)),
        // The recording ended.
        (1, 90_001, None),
        (2, 1_999, Some(false)),
        (2, 80_000, Some(true)),
        (3, 80_000, None),
    ];
    for (market, millis, expected) in cases {
        let found = find(&store, market, HOUR, millis);
        assert_eq!(found.as_ref().map(|book| book.is_stale), expected, "{market} {millis}");
        if let Some(book) = found {
            assert_eq!((book.hour, book.verdict, book.confidence), (Hour(HOUR), Verdict::Partial, Confidence::Low));
        }
    }
    println!("books of an hour: {} cases", cases.len());
}

#[test]
fn damaged_hours_are_quarantined() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 64 << 20);
    let lock = store.lock().expect("the lock");
    let rows = rows_of(71, HOUR, &[speaks(1, 0, 900)]);
    simple(&store, &lock, HOUR, &rows);
    let path = parquet_path(store.root(), VENUE, Hour(HOUR));
    let good: Vec<(PathBuf, Vec<u8>)> = [path.clone(), index_path(&path), sidecar_path(&path)]
        .map(|path| (path.clone(), fs::read(&path).expect("read")))
        .into();
    let at = rows[800].received;
    // What a read does not find, the comparison of digests does.
    let is_there = || {
        let is_there = store.book_at(VENUE, &condition(1), &rows[0].token, at).is_ok();
        store.checker.finish();
        let is_valid =
            store.hours(VENUE, &condition(1), Hour(HOUR)..Hour(HOUR + 1)).iter().any(|state| state.verdict.is_usable());
        assert!(is_there || !is_valid, "reads and coverage agree");
        is_valid && store.book_at(VENUE, &condition(1), &rows[0].token, at).is_ok()
    };
    assert!(is_there());
    let verify = || store.verify(Hour(0)..Hour(u32::MAX), Some(&mut NoRaw)).expect("verified").len();
    let is_intact =
        || store.hour(VENUE, Hour(HOUR)).is_some_and(|entry| store.is_intact(&entry).expect("files that can be read"));
    assert!(verify() == 0 && is_intact());
    let mut cases = 0;
    for (number, (path, bytes)) in good.iter().enumerate() {
        for damage in 0..3 {
            let mut damaged = bytes.clone();
            match damage {
                0 => damaged.clear(),
                1 => damaged.truncate(bytes.len() - 7),
                _ => damaged[bytes.len() / 2] ^= 0x55,
            }
            fs::write(path, &damaged).expect("written");
            store.refresh().expect("listed");
            assert!(!is_there(), "file {number}, damage {damage}");
            assert!(verify() > 0 && !is_intact(), "file {number}, damage {damage}");
            fs::write(path, bytes).expect("written");
            store.refresh().expect("listed");
            assert!(is_there() && verify() == 0 && is_intact(), "file {number}, damage {damage}: repaired");
            cases += 1;
        }
        fs::remove_file(path).expect("removed");
        store.refresh().expect("listed");
        assert!(!is_there() && !is_intact(), "file {number} is gone");
        // One problem names one file, once.
        assert_eq!(verify(), usize::from(number > 0), "file {number} is gone");
        let verdicts: Vec<Verdict> =
            store.hours(VENUE, &condition(1), Hour(HOUR)..Hour(HOUR + 1)).iter().map(|state| state.verdict).collect();
        assert_eq!(verdicts, if number == 0 { vec![] } else { vec![Verdict::Quarantined] }, "file {number} is gone");
        fs::write(path, bytes).expect("written");
        store.refresh().expect("listed");
        cases += 1;
    }
    println!("damaged hours: {cases} cases");
}

/// While another process makes hours, the refusal names the folder and what to do.
#[test]
fn one_process_makes_hours_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (open(folder.path(), 1 << 20), open(folder.path(), 1 << 20));
    let lock = one.lock().expect("the lock");
    let Err(Error::Io(path, error)) = other.lock().map(drop) else { panic!("two locks") };
    assert_eq!((path.as_path(), error.kind()), (folder.path(), io::ErrorKind::WouldBlock));
    let text = Error::Io(path, error).to_string();
    for part in ["another process makes or removes hours in this archive", "run the command again", "archive.lock"] {
        assert!(text.contains(part), "{text}");
    }
    drop(lock);
    assert!(other.lock().is_ok());
    println!("locks: 3 cases");
}

/// This many milliseconds after the hour began.
fn files_of(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in entries(&folder).expect("a folder") {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(root).expect("inside").to_owned(), fs::read(&path).expect("read"));
            }
        }
    }
    found
}

fn millis(millis: u64) -> Option<Timestamp> {
    Some(Timestamp::of_hour(HOUR).plus(millis * 1_000))
}

/// A lost or damaged index is made again from the Parquet file, unless that is damaged, too.
#[test]
fn indexes_are_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 64 << 20);
    let lock = store.lock().expect("the lock");
    // States of several blocks.
    let first = large_books();
    simple(&store, &lock, HOUR, &first);
    simple(&store, &lock, HOUR + 1, &[book_row(1, HOUR + 1, 1_000), book_row(2, HOUR + 1, 1_000)]);
    let whole = files_of(folder.path());
    let parquet = parquet_path(store.root(), VENUE, Hour(HOUR));
    let index = index_path(&parquet);
    let good = fs::read(&index).expect("read");
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    // Whether the damage is seen only by who reads that part: a state, just before the checksums.
    let states = good.len() - 4 * (good.len() / (64 << 10) + 2) - 1;
    let cases = [
        (None, false),
        (Some(good[..100].to_vec()), false),
        (Some(flipped(9)), false),
        (Some(flipped(200)), false),
        (Some(flipped(good.len() - 1)), false),
        (Some(flipped(states)), true),
    ];
    let damage = |bytes: &Option<Vec<u8>>| {
        match bytes {
            Some(bytes) => fs::write(&index, bytes).expect("written"),
            None => fs::remove_file(&index).expect("removed"),
        }
        store.refresh().expect("listed");
    };
    for (number, (bytes, is_hidden)) in cases.iter().enumerate() {
        damage(bytes);
        if *is_hidden {
            assert_eq!(store.mend(&lock).expect("mended"), 0, "case {number}");
            // Rows are read, so that digests are compared.
            let row = &first[20];
            drop(store.book_at(VENUE, &row.market, &row.token, row.received));
            store.checker.finish();
        }
        assert_eq!(store.mend(&lock).expect("mended"), 1, "case {number}");
        assert_eq!(store.mend(&lock).expect("mended"), 0, "case {number}: once");
        assert_eq!(files_of(folder.path()), whole, "case {number}");
        assert!(store.hour(VENUE, Hour(HOUR)).is_some_and(|entry| entry.sidecar().is_ok()), "case {number}");
    }
    // The same after a kill.
    damage(&None);
    store.recover(&lock).expect("recovered");
    assert_eq!(files_of(folder.path()), whole);
    let mut bytes = fs::read(&parquet).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&parquet, bytes).expect("written");
    damage(&None);
    assert_eq!(store.mend(&lock).expect("nothing to do"), 0);
    let refusal = store.hour(VENUE, Hour(HOUR)).expect("an hour").sidecar().expect_err("quarantined");
    assert!(refusal.reason.contains("another digest"), "{refusal}");
    assert!(!index.exists());
    println!("indexes made again: {} cases", cases.len() + 2);
}

/// Whole books of 9,998 levels on both sides.
fn large_books() -> Vec<Row> {
    let level = |price: u16| (engine::amount::Price(price), engine::amount::Qty(1));
    (0..40)
        .map(|number| {
            let event = Event::Book { bids: (1..9_999).map(level).collect(), asks: (1..9_999).map(level).collect() };
            Row { event, ..book_row(1, HOUR, number) }
        })
        .collect()
}

/// Each open hour has two files.
#[test]
fn open_hours_are_bounded() {
    const HOURS: u32 = 140;
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 64 << 20);
    let lock = store.lock().expect("the lock");
    for number in 0..HOURS {
        simple(&store, &lock, HOUR + number, &[book_row(1, HOUR + number, 1_000)]);
    }
    for number in 0..HOURS {
        assert!(find(&store, 1, HOUR + number, 2_000).is_some());
        assert!(store.cache.hours() <= cache::HOURS_MAX);
    }
    assert_eq!(store.cache.hours(), cache::HOURS_MAX);
    let entry = store.hour(VENUE, Hour(HOUR + HOURS - 1)).expect("an hour");
    let bytes = store.with_hour(&entry, |file, index| Ok(file.memory() + index.memory())).expect("opened");
    assert!(store.memory() >= bytes / 2 * cache::HOURS_MAX, "{} and {bytes} each", store.memory());
    println!("open hours: {HOURS} cases");
}

/// Anchors are so close that a reader takes the rows between two of them, however large the books are.
#[test]
fn segments_of_large_books_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 64 << 20);
    let lock = store.lock().expect("the lock");
    let rows = large_books();
    simple(&store, &lock, HOUR, &rows);
    let entry = store.hour(VENUE, Hour(HOUR)).expect("an hour");
    let open = store.open_hour(&entry).expect("opened");
    let token = open.index.token(&condition(1), &token(1, 0)).expect("a token");
    let mut from = None;
    let mut segments = 0;
    for anchor in open.index.anchors(&token).expect("anchors") {
        let start = from.map_or(token.rows.start, |from: crate::index::Anchor| from.row);
        let segment = open.segment(from, start..anchor.row).expect("a segment");
        // One row, and the book before the first, beyond the bound.
        assert!(segment.bytes() <= crate::book::SEGMENT_BYTES + 700_000, "{}", segment.bytes());
        from = Some(anchor);
        segments += 1;
    }
    assert!(segments > 5, "{segments}");
    println!("segments of large books: {segments} cases");
}

#[test]
fn repetitions_are_those_of_the_hour() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 64 << 20);
    let lock = store.lock().expect("the lock");
    let repeated = |hour: u32, times: u64| -> Vec<Row> {
        let first = book_row(1, hour, 1_000);
        (0..times).map(|number| Row { received: first.received.plus(number * 1_000), ..first.clone() }).collect()
    };
    simple(&store, &lock, HOUR, &repeated(HOUR, 4));
    simple(&store, &lock, HOUR + 1, &repeated(HOUR + 1, 3));
    // The token is silent in the last one.
    simple(&store, &lock, HOUR + 2, &[book_row(2, HOUR + 2, 1_000)]);
    let cases = [(0, 1_000, 0), (0, 1_002, 2), (0, 9_000, 3), (1, 500, 0), (1, 1_000, 0), (1, 9_000, 2), (2, 9_000, 0)];
    for (number, millis, expected) in cases {
        let book = find(&store, 1, HOUR + number, millis).expect("a book");
        assert_eq!(book.deduped, expected, "{number} {millis}");
    }
    println!("repetitions of hours: {} cases", cases.len());
}

#[test]
fn strange_folders_are_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["Poly", "polymarket/2026/09/30", "polymarket/x/09/30", "cache/2026/09/30", "polymarket/2026/10/01"] {
        fs::create_dir_all(at(name)).expect("a folder");
    }
    let name = "polymarket_orderbook_2026-09-30T17.parquet";
    for path in ["Poly", "polymarket/x/09/30", "cache/2026/09/30", "polymarket/2026/10/01"] {
        fs::write(at(path).join(name), "x").expect("written");
    }
    std::os::unix::fs::symlink("/dev/zero", at("polymarket/2026/09/30").join(name)).expect("a link");
    let store = open(folder.path(), 1_000);
    assert_eq!((store.venues(), store.bytes()), (vec!["polymarket".to_owned()], 0));
    assert!(store.all(VENUE).is_empty());
    assert!(matches!(store.book_at(VENUE, &condition(1), "1", Timestamp(HOUR_MICROS)), Err(BookError::NotCovered)));
    let lock = store.lock().expect("the lock");
    assert!(store.begin(&lock, "../x", Hour(1)).is_err());
    assert_eq!(
        store.hour(VENUE, Hour(1)).map(|entry| entry.state().map(|of| of.parquet.clone())),
        None::<Result<Piece, String>>
    );
    println!("strange folders: 6 cases");
}
