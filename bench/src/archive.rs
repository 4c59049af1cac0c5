//! An hour of a venue from its lines to a book at a moment: build, import, fold, book, replay (gateway/docs/archive.md).
//!
//! References read the same bytes: `serde_json` the lines, the Parquet library the columns, and, with `--peers`, DuckDB
//! the book by the recipe of `tests/clients/sql`.

use crate::chance::Chance;
use crate::hour::{AT_HOUR, MARKETS, built, condition, options, tokens, write_tape};
use crate::peers::duckdb::{self, DuckDb, Question};
use crate::report::{ONE_BY_ONE, Report, Size, nanoseconds, timed};
use archive::fold::Folded;
use archive::index::TimeIndex;
use archive::read::HourFile;
use archive::row::Condition;
use archive::store::{Settings, Store, index_path, sidecar_path};
use engine::backtest::Hour;
use engine::time::{HOUR, Timestamp};
use hdrhistogram::Histogram;
use host::thread::Stop;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Instant;
use venue::Venue as _;
use venue::archive::import::Import;
use venue::archive::replay;
use venue::category::Names;
use venue::replay::{Replay, Speed};

/// The scenario's name; its peer is a program.
pub const NAME: &str = "archive";

const ROUNDS: usize = 5;
/// Memory of the sorts, bytes.
const MEMORY_BYTES: u64 = 256 << 20;
const PARQUET_COLUMNS: usize = 16;
/// Columns that a fold needs: both times, event, levels of both sides, price, size, side.
const FOLD_COLUMNS: [usize; 8] = [0, 1, 3, 5, 6, 7, 8, 9];
/// Books asked of a store that has read some.
const BOOKS: usize = 2_000;

pub fn run(size: Size, report: &mut Report) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let frames = size.pick(2_000, 250_000);
    let tape = place.path().join("tape.ndjson");
    let packed = place.path().join("packed.ndjson.gz");
    write_tape(&tape, Some(&packed), frames);
    report.note("hour", format!("{frames} frames of {MARKETS} markets, {} rows", 2 * frames));
    let mut hour = None;
    let mut ratios = Ratios::default();
    for round in 0..size.pick(1, ROUNDS) {
        let root = place.path().join(format!("built-{round}"));
        let (build, path) = timed(|| built(&tape, &root, MEMORY_BYTES));
        let (parse, lines) = timed(|| parsed(&tape));
        assert_eq!(lines, frames + 2 * MARKETS, "every message is parsed");
        ratios.build.push(parse / build);
        ratios.build_rates.push(2.0 * frames as f64 / build);

        let (columns, values) = timed(|| decoded(&path, &(0..PARQUET_COLUMNS).collect::<Vec<_>>()));
        assert!(values > 2 * frames, "every value is read");
        let other = place.path().join(format!("imported-{round}"));
        let (import, ()) = timed(|| imported(&path, &other));
        ratios.import.push(columns / import);
        ratios.import_rates.push(2.0 * frames as f64 / import);

        let (decode, _) = timed(|| decoded(&path, &FOLD_COLUMNS));
        let (fold, levels) = timed(|| folded(&path));
        let (of_lines, _) = timed(|| replayed(Replay::open(&tape, Speed::Max, false, &Names::default())));
        ratios.fold.push(decode / fold);
        ratios.fold_of_lines.push(of_lines / fold);
        ratios.fold_rates.push(2.0 * frames as f64 / fold);
        report_once(report, round, &path, levels);

        let settings =
            replay::Settings { cache: root.join("cache"), memory_bytes: MEMORY_BYTES, ..replay::Settings::default() };
        let play = || replayed(replay::open(&root, Speed::Max, &settings, &Names::default()));
        // The first time brings the hour into order of time, and keeps it so.
        let (first, _) = timed(play);
        let (of_hours, updates) = timed(play);
        let (of_packed, expected) = timed(|| replayed(Replay::open(&packed, Speed::Max, false, &Names::default())));
        assert!(updates >= 2 * frames && expected >= frames, "{updates} and {expected} updates were played");
        ratios.replay.push(of_packed / of_hours);
        ratios.first_replay.push(of_packed / first);
        hour = Some(root);
    }
    ratios.show(report);
    let hour = hour.expect("a round");
    books(&hour, size, report);
    if report.with_peers() {
        beside_duckdb(&hour, size, report);
    }
    report.rate_note(ONE_BY_ONE);
    report.durability("files of an hour are synced before they get their names");
    report.not_included("sockets, the journal, recording; an hour has one venue and one kind of frame");
}

/// What is computed is the same in each round.
fn report_once(report: &mut Report, round: usize, path: &Path, levels: usize) {
    if round == 0 {
        report.computed(levels.to_le_bytes());
        let bytes = |path: &Path| fs::metadata(path).expect("a file").len() as f64;
        report.figure("Parquet of the hour", bytes(path), "bytes");
        report.figure("index of the hour", bytes(&index_path(path)), "bytes");
        report.figure("sidecar of the hour", bytes(&sidecar_path(path)), "bytes");
    }
}

#[derive(Default)]
struct Ratios {
    build: Vec<f64>,
    build_rates: Vec<f64>,
    import: Vec<f64>,
    import_rates: Vec<f64>,
    fold: Vec<f64>,
    fold_of_lines: Vec<f64>,
    fold_rates: Vec<f64>,
    replay: Vec<f64>,
    first_replay: Vec<f64>,
}

impl Ratios {
    fn show(self, report: &mut Report) {
        report.middle("import with digest and index", &self.import_rates, "rows a second");
        report.ratio_to_itself("import beside reading all columns", self.import);
        report.middle("built from lines", &self.build_rates, "rows a second");
        report.ratio_to_itself("build beside parsing the lines", self.build);
        report.middle("folded from Parquet", &self.fold_rates, "rows a second");
        report.ratio_to_itself("fold beside decoding eight columns", self.fold);
        report.ratio_to_itself("fold beside the hour's lines", self.fold_of_lines);
        report.ratio_to_itself("replay beside packed lines", self.replay);
        report.ratio_to_itself("first replay, with ordering, beside packed lines", self.first_replay);
    }
}

fn imported(path: &Path, root: &Path) {
    let import = Import { options: options(root, MEMORY_BYTES), is_linked: false, catalogue: None, settlements: None };
    let mut count = 0;
    let imported = import.run(path, &Names::default(), &Stop::new(), &mut |_| count += 1);
    assert!(imported.refused.is_empty(), "an hour: {imported:?}");
    assert_eq!(count, 1, "one file is one hour");
}

/// Parses every line alone; returns the count of messages.
fn parsed(tape: &Path) -> usize {
    let lines = BufReader::new(File::open(tape).expect("a tape")).lines();
    lines.map(|line| line.expect("a line")).filter(|line| crate::fold::is_parsed(line)).count()
}

/// Reads columns with the Parquet library alone; returns the count of values.
fn decoded(path: &Path, columns: &[usize]) -> usize {
    let file = SerializedFileReader::new(File::open(path).expect("an hour")).expect("Parquet");
    let mut values = 0;
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).expect("a row group");
        for column in columns {
            values += match group.get_column_reader(*column).expect("a column") {
                ColumnReader::BoolColumnReader(reader) => drained(reader),
                ColumnReader::Int32ColumnReader(reader) => drained(reader),
                ColumnReader::Int64ColumnReader(reader) => drained(reader),
                ColumnReader::Int96ColumnReader(reader) => drained(reader),
                ColumnReader::FloatColumnReader(reader) => drained(reader),
                ColumnReader::DoubleColumnReader(reader) => drained(reader),
                ColumnReader::ByteArrayColumnReader(reader) => drained(reader),
                ColumnReader::FixedLenByteArrayColumnReader(reader) => drained(reader),
            };
        }
    }
    values
}

fn drained<T: DataType>(mut reader: ColumnReaderImpl<T>) -> usize {
    const BATCH: usize = 8_192;
    let (mut values, mut levels, mut count) = (Vec::new(), Vec::new(), 0);
    loop {
        values.clear();
        levels.clear();
        let (records, ..) = reader.read_records(BATCH, Some(&mut levels), None, &mut values).expect("values");
        if records == 0 {
            return count;
        }
        count += records;
        std::hint::black_box(&values);
    }
}

/// Folds every token of an hour, whose rows its index names; returns the count of levels at its end.
fn folded(path: &Path) -> usize {
    let file = HourFile::open(path).expect("an hour");
    let index = TimeIndex::open(&index_path(path)).expect("an index");
    let (mut book, mut levels) = (Folded::default(), 0);
    let mut end = |book: &mut Folded| {
        let view = std::mem::take(book).view();
        levels += view.bids.len() + view.asks.len();
    };
    let mut tokens = index.tokens().map(|token| token.rows.end);
    let mut last = tokens.next().unwrap_or(0);
    let rows = file.changes(0..file.row_count(), |row, received, source, change| {
        while row >= last {
            end(&mut book);
            last = tokens.next().unwrap_or(u64::MAX);
        }
        book.apply_change(received, source, change);
        Ok(())
    });
    rows.expect("rows");
    end(&mut book);
    levels
}

/// Plays a recording to its end; returns the count of updates.
fn replayed<E: std::fmt::Debug>(opened: Result<Replay, E>) -> usize {
    let mut replay = opened.expect("a recording");
    let (mut now, until, mut count) = (Timestamp::from_secs(1_900_000_000), Timestamp::of_hour(AT_HOUR + 1), 0);
    while replay.poll(now, until, &mut |frame| count += frame.updates.len()).venue_now < until {
        now = now.plus(1_000);
    }
    count
}

/// Books at moments of the busiest token, in a store that has read nothing and in one that has.
fn books(root: &Path, size: Size, report: &mut Report) {
    let market = Condition::parse(&condition(0)).expect("an id");
    let [token, _] = tokens(0);
    let begins = Hour(AT_HOUR).start();
    let mut chance = Chance::seeded(25);
    let mut moment = || begins.plus(HOUR / 100 + chance.below(HOUR / 100 * 90));
    let (mut cold, mut warm) = (nanoseconds(), nanoseconds());
    let note = |into: &mut Histogram<u64>, begun: Instant| into.saturating_record(begun.elapsed().as_nanos() as u64);
    for _ in 0..size.pick(3, 50) {
        let store = Store::open(root, Settings::default()).expect("an archive");
        let at = moment();
        let begun = Instant::now();
        let book = store.book_at("polymarket", &market, &token, at).expect("a book");
        note(&mut cold, begun);
        assert!(!book.is_empty(), "the book has levels");
    }
    let store = Store::open(root, Settings::default()).expect("an archive");
    for number in 0..size.pick(20, BOOKS) {
        let at = moment();
        let begun = Instant::now();
        let book = store.book_at("polymarket", &market, &token, at).expect("a book");
        if number > size.pick(2, BOOKS / 10) {
            note(&mut warm, begun);
        }
        if number < 20 {
            report.computed(format!("{:?}{:?}", book.bids, book.asks));
        }
    }
    report.percentiles("book at a moment, cold", &cold);
    report.percentiles("book at a moment, warm", &warm);
    report.figure("p99, cold", cold.value_at_quantile(0.99) as f64 / 1e6, "ms");
    report.figure("p99, warm", warm.value_at_quantile(0.99) as f64 / 1e6, "ms");
}

/// A book at a moment from a store that has read nothing, beside a connection of DuckDB that has read nothing.
fn beside_duckdb(root: &Path, size: Size, report: &mut Report) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut peer = match DuckDb::install(place.path()) {
        Ok(peer) => peer,
        Err(why) => return report.failed(format!("{}: {why}", duckdb::NAME)),
    };
    let market = Condition::parse(&condition(0)).expect("an id");
    let [token, _] = tokens(0);
    let mut chance = Chance::seeded(26);
    let mut ratios = Vec::new();
    for _ in 0..size.pick(2, 4 * ROUNDS) {
        // The recipe counts in milliseconds.
        let at_ms = Hour(AT_HOUR).start().plus(HOUR / 100 + chance.below(HOUR / 100 * 90)).millis();
        let (ours, book) = timed(|| {
            let store = Store::open(root, Settings::default()).expect("an archive");
            store.book_at("polymarket", &market, &token, Timestamp(at_ms * 1_000)).expect("a book")
        });
        let glob = root.join("polymarket/*/*/*/*.parquet");
        let answer = peer.ask(&Question { files: &glob, market: &condition(0), token: &token, at_ms });
        assert_eq!(answer.levels, book.bids.len() + book.asks.len(), "both have the same book");
        ratios.push(answer.seconds / ours);
    }
    report.ratio_to_itself(&format!("book, cold, beside {}", duckdb::NAME), ratios);
}
