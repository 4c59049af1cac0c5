//! Exports of hours with two markets.

use super::*;
use crate::testing;
use archive::events::testing::{event_row, read as events_of};
use archive::row::Event;
use archive::sidecar::{HourFacts, Sidecar};
use archive::store::{Lock, Store, index_path, sidecar_path};
use engine::amount::{Price, Qty};
use engine::backtest::ArchivedMarket;
use engine::book::BookSide;
use engine::time::{HOUR, MILLISECOND, MINUTE};
use tempfile::TempDir;
use venue::category::Names;

const VENUE: &str = "polymarket";
/// 2026-09-30T17.
const FIRST: Hour = Hour(497_441);
const BYTES_MAX: u64 = 1 << 30;
/// Rows of a token in an hour.
const ROWS: u64 = 300;

fn condition(number: u8) -> Condition {
    Condition([number; 32])
}

/// An archive of three hours, and a folder for exports.
struct Lab {
    folder: TempDir,
    store: Arc<Store>,
    lock: Lock,
    past: Arc<Past>,
    /// The rows by hour, in file order.
    hours: Vec<Vec<Row>>,
}

impl Lab {
    fn new() -> Lab {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Arc::new(
            Store::open(&folder.path().join("archive"), archive::store::Settings::default()).expect("an archive"),
        );
        let lock = store.lock().expect("nothing else makes hours");
        let past = Arc::new(Past::new(store.clone(), Names::default()));
        let hours: Vec<Vec<Row>> = (0..3).map(rows).collect();
        let lab = Lab { folder, store, lock, past, hours };
        (0..3).for_each(|hour| lab.put(hour, &lab.hours[hour as usize]));
        lab
    }

    /// Makes an hour of these rows.
    fn put(&self, hour: u32, rows: &[Row]) {
        let hour = Hour(FIRST.0 + hour);
        let path = self.store.begin(&self.lock, VENUE, hour).expect("a folder");
        let mut writer = HourWriter::create(&path, None).expect("created");
        rows.iter().for_each(|row| writer.push(row).expect("in order"));
        let mut sidecar = Sidecar {
            first_received: rows.iter().map(|row| row.received.millis()).min(),
            last_received: rows.iter().map(|row| row.received.millis()).max(),
            ..Sidecar::default()
        };
        sidecar.frames.dropped = Some(0);
        sidecar.set_rows(writer.counts());
        let files = testing::files(&self.store, &self.lock, VENUE, hour, writer);
        self.store.complete(&self.lock, VENUE, hour, sidecar, HourFacts::default(), files).expect("complete");
    }

    fn exports_dir(&self) -> PathBuf {
        self.folder.path().join("exports")
    }

    fn exports(&self, bytes_max: u64) -> ExportFolder {
        let settings = Settings { dir: self.exports_dir(), bytes_max, reserve_bytes: 0 };
        ExportFolder::open(self.past.clone(), settings, Clock::wall()).expect("a folder")
    }

    fn market(&self) -> ArchivedMarket {
        self.past.market(&condition(1).to_string()).expect("it can be read").expect("it is there")
    }

    fn wanted(&self, window: Range<Timestamp>, layout: ExportLayout) -> WantedExport {
        WantedExport { market: self.market(), window, layout }
    }

    /// The rows of these hours in a window: by token, then by receipt, those of the earlier hour first.
    fn expected(&self, hours: &[usize], window: &Range<Timestamp>) -> Vec<Row> {
        let rows = hours.iter().flat_map(|hour| &self.hours[*hour]);
        let mut rows: Vec<Row> =
            rows.filter(|row| row.market == condition(1) && window.contains(&row.received)).cloned().collect();
        rows.sort_by(|one, other| (&one.token, one.received).cmp(&(&other.token, other.received)));
        rows
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.exports_dir()).expect("a folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
        names.sort();
        names
    }
}

/// Rows of all kinds from five seconds before an hour to five seconds after it, several in one millisecond.
fn rows(hour: u32) -> Vec<Row> {
    let start = FIRST.start().plus(u64::from(hour) * HOUR);
    let mut rows = Vec::new();
    for market in [1, 2] {
        for token in ["11", "12"] {
            for number in 0..ROWS {
                // Most are near the borders.
                let offset = match number % 3 {
                    0 => number * 16 * MILLISECOND,
                    1 => HOUR + number * 16 * MILLISECOND,
                    _ => 5_000 * MILLISECOND + number * 11 * SECOND,
                };
                let at = Timestamp((start.0 + offset - 5_000 * MILLISECOND) / 100_000 * 100_000);
                let price = Price(100 + (number as u16 * 7 + hour as u16) % 9_000);
                let size = Qty(number * 1_000_003);
                let side = if number % 2 == 0 { BookSide::Bid } else { BookSide::Ask };
                let event = match number % 5 {
                    0 => Event::Book { bids: vec![(Price(4_000), size)], asks: vec![(Price(6_000), Qty(5))] },
                    1 => Event::LastTradePrice {
                        price,
                        size,
                        taker_buys: number % 2 == 0,
                        fee_rate_bps: Some(number as u16),
                        transaction_hash: Some(format!("0x{number}").into()),
                    },
                    2 if number % 4 == 0 => Event::TickSizeChange { old: None, new: engine::amount::TickSize(10) },
                    _ => Event::PriceChange { price, size, side, best_bid: Some(price), best_ask: None },
                };
                rows.push(Row {
                    received: at,
                    source: at,
                    market: condition(market),
                    token: format!("{token}{market}").into(),
                    event,
                });
            }
        }
    }
    rows.sort_by(|one, other| {
        (one.market, &one.token, one.received).cmp(&(other.market, &other.token, other.received))
    });
    rows
}

fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

fn whole() -> Range<Timestamp> {
    FIRST.start()..Hour(FIRST.0 + 3).start()
}

/// The rows of a file with the columns of an hour.
fn hour_rows(path: &Path) -> Vec<Row> {
    let file = HourFile::open(path).expect("a sound file");
    file.all_rows().map(|row| row.expect("a sound row").1).collect()
}

#[test]
fn exports_have_the_rows_of_their_window() {
    let lab = Lab::new();
    let exports = lab.exports(BYTES_MAX);
    let at = |micros: i64| Timestamp((FIRST.start().0 as i64 + micros) as u64);
    let hour = HOUR as i64;
    let windows = [
        whole(),
        // Rows from before the first hour and after the last one.
        at(-5 * SECOND as i64)..at(3 * hour + 6 * SECOND as i64),
        at(0)..at(hour),
        at(hour)..at(2 * hour),
        at(hour - 1)..at(hour + 1),
        at(hour - 2 * SECOND as i64)..at(hour + 2 * SECOND as i64),
        at(20 * MINUTE as i64)..at(20 * MINUTE as i64 + 100_000),
        at(2 * hour + 30 * MINUTE as i64)..at(3 * hour),
        // Nothing was received.
        at(10)..at(11),
    ];
    let (mut cases, mut rows) = (0, 0);
    for window in &windows {
        let expected = lab.expected(&[0, 1, 2], window);
        let [events, hour] = ExportLayout::ALL.map(|layout| {
            let id = run(exports.make(&lab.wanted(window.clone(), layout))).expect("made");
            path(&lab.exports_dir(), id)
        });
        assert!(hour_rows(&hour) == expected, "{window:?}");
        let expected: Vec<_> = expected.iter().map(event_row).collect();
        assert!(events_of(&events).expect("a sound file") == expected, "{window:?}");
        cases += 2;
        rows += 2 * expected.len();
    }
    assert!(rows > 6 * ROWS as usize, "{rows} rows");
    println!("exports: {cases} cases, {rows} rows");
}

#[test]
fn hours_that_are_not_usable_are_left_out() {
    let lab = Lab::new();
    let exports = lab.exports(BYTES_MAX);
    let before = run(exports.make(&lab.wanted(whole(), ExportLayout::V2))).expect("made");
    let middle = lab.store.hour(VENUE, Hour(FIRST.0 + 1)).expect("an hour");
    fs::remove_file(sidecar_path(&middle.path)).expect("it is there");
    lab.store.refresh().expect("listed");
    let id = run(exports.make(&lab.wanted(whole(), ExportLayout::V2))).expect("made");
    assert_ne!(id, before, "another content");
    assert!(hour_rows(&path(&lab.exports_dir(), id)) == lab.expected(&[0, 2], &whole()));
    // One whose index is damaged is quarantined, as a coverage says.
    let last = lab.store.hour(VENUE, Hour(FIRST.0 + 2)).expect("an hour");
    fs::write(index_path(&last.path), "damaged").expect("written");
    lab.store.refresh().expect("listed");
    let id = run(exports.make(&lab.wanted(whole(), ExportLayout::V2))).expect("made");
    assert!(hour_rows(&path(&lab.exports_dir(), id)) == lab.expected(&[0], &whole()));
    println!("left out: 2 hours of 3");
}

#[test]
fn the_same_content_is_made_once() {
    let lab = Lab::new();
    let exports = lab.exports(BYTES_MAX);
    let make = |window: Range<Timestamp>, layout| run(exports.make(&lab.wanted(window, layout))).expect("made");
    let first = make(whole(), ExportLayout::Events);
    let file = path(&lab.exports_dir(), first);
    // A mark that would be lost if it was made again; its day begins again.
    let old = of_the_system(Clock::wall().wall_now()) - KEPT;
    let marked = File::options().append(true).open(&file).expect("it is there");
    io::Write::write_all(&mut &marked, b"mark").expect("written");
    marked.set_modified(old).expect("a time");
    assert_eq!(make(whole(), ExportLayout::Events), first);
    assert!(fs::read(&file).expect("it is there").ends_with(b"mark"));
    assert!(marked.metadata().expect("it is there").modified().expect("a time") > old);
    // Another server, and another process before it, make the same.
    assert_eq!(run(lab.exports(BYTES_MAX).make(&lab.wanted(whole(), ExportLayout::Events))), Ok(first));
    let shorter = FIRST.start()..Timestamp(whole().end.0 - 1);
    let others = [make(shorter.clone(), ExportLayout::Events), make(whole(), ExportLayout::V2)];
    assert!(!others.contains(&first) && others[0] != others[1]);
    // An hour that was replaced is another content; one outside of the window is none of it.
    let window = FIRST.start()..Hour(FIRST.0 + 1).start();
    let before = make(window.clone(), ExportLayout::Events);
    lab.put(2, &lab.hours[2][..700]);
    assert_eq!(make(window.clone(), ExportLayout::Events), before);
    lab.put(0, &lab.hours[0][..500]);
    assert_ne!(make(window, ExportLayout::Events), before);
    println!("equal contents: 8 cases");
}

#[test]
fn a_file_beyond_the_bound_is_not_made() {
    let lab = Lab::new();
    for layout in ExportLayout::ALL {
        let id = run(lab.exports(BYTES_MAX).make(&lab.wanted(whole(), layout))).expect("made");
        let bytes = fs::metadata(path(&lab.exports_dir(), id)).expect("it is there").len();
        fs::remove_file(path(&lab.exports_dir(), id)).expect("it is there");
        let small = lab.exports(bytes - 1);
        // The second time it is known.
        for known in [0, 1] {
            assert_eq!(small.maker.too_large.lock().len(), known);
            assert_eq!(run(small.make(&lab.wanted(whole(), layout))), Err(NotMade::TooLarge(bytes - 1)));
            assert_eq!(lab.files(), [""; 0], "nothing is left");
        }
        assert_eq!(run(lab.exports(bytes).make(&lab.wanted(whole(), layout))), Ok(id));
        fs::remove_file(path(&lab.exports_dir(), id)).expect("it is there");
    }
    // The list of them has a bound.
    let small = lab.exports(100);
    let known = |number: usize| ExportId([number as u8; 32]);
    small.maker.too_large.lock().extend((0..TOO_LARGE_MAX).map(known));
    assert_eq!(run(small.make(&lab.wanted(whole(), ExportLayout::Events))), Err(NotMade::TooLarge(100)));
    let too_large = small.maker.too_large.lock();
    assert_eq!((too_large.len(), too_large.front()), (TOO_LARGE_MAX, Some(&known(1))), "the oldest one is forgotten");
    println!("bounds: 7 cases");
}

#[test]
fn a_full_disk_refuses() {
    let lab = Lab::new();
    let settings = Settings { dir: lab.exports_dir(), bytes_max: BYTES_MAX, reserve_bytes: u64::MAX };
    let exports = ExportFolder::open(lab.past.clone(), settings, Clock::wall()).expect("a folder");
    assert_eq!(run(exports.make(&lab.wanted(whole(), ExportLayout::Events))), Err(NotMade::Unreachable));
    assert_eq!(lab.files(), [""; 0]);
}

#[test]
fn what_a_kill_left_is_replaced() {
    let lab = Lab::new();
    let exports = lab.exports(BYTES_MAX);
    let mut cases = 0;
    for layout in ExportLayout::ALL {
        let wanted = lab.wanted(whole(), layout);
        let id = run(exports.make(&wanted)).expect("made");
        let made = path(&lab.exports_dir(), id);
        let bytes = fs::read(&made).expect("it is there");
        let making = made.with_extension("parquet.making");
        // Killed while it was written: half of it, more than it, or a link that leads elsewhere.
        let elsewhere = lab.folder.path().join("elsewhere");
        for left in [&bytes[..bytes.len() / 2], &[bytes.as_slice(), b"more"].concat(), b""] {
            fs::remove_file(&made).expect("it is there");
            match left {
                b"" => std::os::unix::fs::symlink(&elsewhere, &making).expect("a link"),
                left => fs::write(&making, left).expect("written"),
            }
            assert!(run(exports.open(id)).expect("no failure").is_none(), "it is not there before it is whole");
            assert_eq!(run(exports.make(&wanted)), Ok(id));
            assert!(fs::read(&made).expect("it is there") == bytes && !making.exists() && !elsewhere.exists());
            cases += 1;
        }
    }
    println!("kills: {cases} cases");
}

#[test]
fn a_request_does_not_wait_forever() {
    let lab = Lab::new();
    let exports = lab.exports(BYTES_MAX);
    let impatient = ExportFolder { maker: exports.maker.clone(), place: exports.place.clone(), wait: Duration::ZERO };
    let wanted = lab.wanted(whole(), ExportLayout::Events);
    run(async {
        // Another export is being made.
        let place = exports.place.clone().acquire_owned().await.expect("it is open");
        assert_eq!(impatient.make(&wanted).await, Err(NotMade::NotYet));
        drop(place);
        let id = exports.make(&wanted).await.expect("made");
        // One that was made before needs no place.
        let _place = exports.place.clone().acquire_owned().await.expect("it is open");
        assert_eq!(exports.make(&wanted).await, Ok(id));
    });
    // One that nothing waits for is made to its end.
    let wanted = lab.wanted(whole(), ExportLayout::V2);
    run(async {
        let Ok(Planned::Plan(plan)) = exports.maker.plan(wanted.clone()) else { panic!("it is not made yet") };
        let place = exports.place.clone().acquire_owned().await.expect("it is open");
        let id = plan.id;
        drop(exports.start(plan, place).expect("a thread"));
        // The place is free when it has ended.
        drop(exports.place.clone().acquire_owned().await.expect("it is open"));
        assert!(path(&lab.exports_dir(), id).exists());
        assert_eq!(exports.make(&wanted).await, Ok(id));
    });
    println!("waits: 4 cases");
}

#[test]
fn files_are_removed_after_a_day() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings { dir: folder.path().to_owned(), bytes_max: 0, reserve_bytes: 0 };
    let sweep = Sweep::new(&settings, Clock::wall());
    let now = of_the_system(Clock::wall().wall_now());
    let id = ExportId([0xab; 32]);
    let second = Duration::from_secs(1);
    let cases = [
        (format!("{id}.parquet"), KEPT, true),
        (format!("{}.parquet", ExportId([1; 32])), KEPT - second, false),
        (format!("{}.parquet", ExportId([2; 32])), Duration::ZERO, false),
        (format!("{id}.parquet.making"), KEPT, true),
        (format!("{}.parquet.making", ExportId([1; 32])), KEPT - second, false),
        // Files of others.
        ("notes.parquet".to_owned(), 2 * KEPT, false),
        (format!("{id}"), 2 * KEPT, false),
        (format!("{id}.parquet.bak"), 2 * KEPT, false),
        (format!("{}.parquet", id.to_string().to_uppercase()), 2 * KEPT, false),
        (format!("x{id}.parquet"), 2 * KEPT, false),
    ];
    for (name, age, _) in &cases {
        let file = File::create(folder.path().join(name)).expect("created");
        file.set_modified(now - *age).expect("a time");
    }
    // Of a clock that was ahead.
    let future = format!("{}.parquet", ExportId([3; 32]));
    File::create(folder.path().join(&future)).and_then(|file| file.set_modified(now + KEPT)).expect("created");
    fs::create_dir(folder.path().join(format!("{}.parquet", ExportId([4; 32])))).expect("a folder");
    assert_eq!(sweep.sweep(now).expect("swept"), 2);
    for (name, age, is_removed) in &cases {
        assert_eq!(folder.path().join(name).exists(), !is_removed, "{name} {age:?}");
    }
    assert!(folder.path().join(future).exists());
    // Before the first export there is no folder.
    let none = Sweep { dir: folder.path().join("none"), ..sweep };
    assert_eq!(none.sweep(now).expect("nothing to do"), 0);
    println!("removals: {} cases", cases.len() + 1);
}

#[test]
fn an_open_export_is_read_by_pieces() {
    let lab = Lab::new();
    let exports = lab.exports(BYTES_MAX);
    run(async {
        let id = exports.make(&lab.wanted(whole(), ExportLayout::V2)).await.expect("made");
        let made = path(&lab.exports_dir(), id);
        let bytes = fs::read(&made).expect("it is there");
        let open = exports.open(id).await.expect("no failure").expect("it is there");
        fs::remove_file(&made).expect("it is there");
        assert_eq!(open.bytes(), bytes.len() as u64);
        let len = bytes.len();
        for (at, count) in [(0, len), (0, 1), (len - 1, 1), (len / 2, 100), (len, 0)] {
            assert_eq!(open.read(at as u64, count).await, Ok(bytes[at..at + count].to_vec()), "{at} {count}");
        }
        // Beyond its end.
        assert_eq!(open.read(len as u64, 1).await, Err(Unreachable));
        assert!(exports.open(id).await.expect("no failure").is_none(), "it was removed");
        // Neither links nor folders are exports.
        let secret = lab.folder.path().join("secret");
        fs::write(&secret, "secret").expect("written");
        std::os::unix::fs::symlink(&secret, &made).expect("a link");
        assert!(exports.open(id).await.expect("no failure").is_none());
        fs::remove_file(&made).expect("a link");
        fs::create_dir(&made).expect("a folder");
        assert!(exports.open(id).await.expect("no failure").is_none());
    });
    println!("reads: 9 cases");
}
