use super::*;
use crate::archive::replay;
use crate::archive::testing::{built, options};
use crate::replay::{Replay, Speed};
use crate::suite::{Witness, recorded};
use crate::tests::both_venues;
use engine::time::{HOUR, MILLISECOND, SECOND};
use std::fs;
use std::path::PathBuf;

const WALL: Timestamp = Timestamp(1_900_000_000_000_000);

/// A replay of an archive in `root`, with its runs beside it.
fn replay_of(root: &Path) -> Replay {
    replay_from(root, None)
}

fn replay_from(root: &Path, from: Option<u32>) -> Replay {
    let settings = replay::Settings { cache: root.join("cache"), memory_bytes: 64 << 20, from, ..Default::default() };
    replay::open(root, Speed::Max, &settings, &Names::default()).expect("an archive")
}

/// Plays lines and their archive side by side to these times, and compares markets and books. Returns how many books
/// were compared.
fn compare(tape: &Path, mut hours: Replay, times: &[Timestamp]) -> usize {
    let mut lines = Replay::open(tape, Speed::Max, false, &Names::default()).expect("a tape");
    let (mut of_lines, mut of_hours) = (Witness::default(), Witness::default());
    let mut compared = 0;
    for at in times {
        of_lines.run(&mut lines, WALL, *at, HOUR);
        of_hours.run(&mut hours, WALL, *at, HOUR);
        assert_eq!(of_hours.listings, of_lines.listings, "{at:?}");
        assert_eq!(of_hours.states, of_lines.states, "{at:?}");
        let results = |witness: &Witness| -> Vec<_> {
            witness.resolutions.iter().map(|(market, (result, ..))| (market.clone(), *result)).collect()
        };
        assert_eq!(results(&of_hours), results(&of_lines), "{at:?}");
        let (expected, found) = (of_lines.known_books(), of_hours.known_books());
        for (token, book) in &expected {
            assert_eq!(found.get(token), Some(book), "{token} at {at:?}");
        }
        compared += expected.len();
    }
    compared
}

#[test]
fn an_hour_replays_as_its_lines() {
    let mut cases = 0;
    // In one hour, and around the end of one.
    for (start, hours) in [(1_788_000_000_000_u64, 2), (1_788_001_170_000, 4)] {
        let folder = tempfile::tempdir().expect("a folder");
        let tape = folder.path().join("tape.ndjson");
        fs::write(&tape, both_venues(start)).expect("a tape");
        let root = folder.path().join("archive");
        let made = built(&tape, &options(&root));
        assert_eq!(made.len(), hours, "{made:?}");
        for hour in &made {
            assert!(hour.path.starts_with(root.join(hour.origin.name())) && hour.path.is_file(), "{hour:?}");
        }
        let at = |millis: u64| Timestamp::from_millis(start + millis);
        let times: Vec<_> = [25, 30, 130, 29_930, 30_030, 59_999, 60_002, 61_000, 70_000].map(at).to_vec();
        cases += compare(&tape, replay_of(&root), &times);
    }
    println!("hours and their lines: {cases} books");
    assert!(cases >= 50, "{cases}");
}

#[test]
fn a_replay_from_a_later_hour_begins_with_its_books() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tape, root) = (folder.path().join("tape.ndjson"), folder.path().join("archive"));
    let start = 1_788_001_170_000_u64;
    fs::write(&tape, both_venues(start)).expect("a tape");
    let made = built(&tape, &options(&root));
    let later = Timestamp::from_millis(start + 30_000).hour();
    assert_eq!(made.iter().filter(|hour| hour.hour == later).count(), 2, "{made:?}");
    let times: Vec<_> = [30_200, 45_000, 60_002, 70_000].map(|millis| Timestamp::from_millis(start + millis)).to_vec();
    let compared = compare(&tape, replay_from(&root, Some(later)), &times);
    println!("later hours: {compared} books");
    assert!(compared >= 12, "{compared}");
}

#[test]
fn a_second_build_changes_nothing_and_another_content_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tape, root) = (folder.path().join("tape.ndjson"), folder.path().join("archive"));
    let text = both_venues(1_788_001_170_000);
    fs::write(&tape, &text).expect("a tape");
    let first = built(&tape, &options(&root));
    let contents =
        |made: &[Sealed]| -> Vec<Vec<u8>> { made.iter().map(|hour| fs::read(&hour.path).expect("an hour")).collect() };
    let before = contents(&first);
    let again = built(&tape, &options(&root));
    assert!(first.iter().all(|hour| hour.is_new) && again.iter().all(|hour| !hour.is_new), "{again:?}");
    // Packed lines are the same lines.
    let packed = folder.path().join("packed.ndjson.gz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).expect("memory");
    fs::write(&packed, gzip.finish().expect("memory")).expect("a tape");
    assert!(built(&packed, &options(&root)).iter().all(|hour| !hour.is_new));
    // A line less in the second hour.
    let shorter = text.lines().filter(|line| !line.contains("gap")).collect::<Vec<_>>().join("\n");
    fs::write(&tape, shorter).expect("a tape");
    let (names, stop) = (Names::default(), Stop::new());
    let error = from_lines(&tape, &options(&root), &names, &stop, &mut |_| {}).expect_err("another content");
    assert!(error.to_string().contains("--replace"), "{error}");
    assert_eq!(contents(&first), before);
    let mut replacing = options(&root);
    replacing.place.replace = true;
    assert!(built(&tape, &replacing).iter().any(|hour| hour.is_new));
    // A stop leaves no part of an hour.
    stop.set();
    let other = folder.path().join("other");
    let mut long = text.clone();
    long += "\n";
    long += &text.lines().skip(4).collect::<Vec<_>>().join("\n");
    fs::write(&tape, long).expect("a tape");
    assert!(matches!(from_lines(&tape, &options(&other), &names, &stop, &mut |_| {}), Err(BuildError::Stopped)));
    assert_eq!(super::super::hours::parquet_files(&root.join("polymarket")).expect("files").len(), 2);
    assert!(!other.exists() || super::super::hours::parquet_files(&other).expect("files").is_empty());
}

#[test]
fn only_the_wanted_hours_and_markets_are_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tape, root) = (folder.path().join("tape.ndjson"), folder.path().join("archive"));
    fs::write(&tape, both_venues(1_788_001_170_000)).expect("a tape");
    let later = Timestamp::from_millis(1_788_001_200_000).hour();
    let polymarket = Condition::parse("0xaa00000000000000000000000000000000000000000000000000000000000001");
    let cases = [
        // from, to, one market, hours (of the selection: those with its rows), whether Kalshi has rows
        (Some(later), None, None, 2, true),
        (None, Some(later - 1), None, 2, true),
        (Some(later + 1), None, None, 0, true),
        (None, None, polymarket, 2, false),
    ];
    for (number, (from, to, market, hours, has_kalshi)) in cases.into_iter().enumerate() {
        let root = root.join(number.to_string());
        let mut options = Options { from, to, ..options(&root) };
        options.markets = market.map(|market| [market].into());
        let made = built(&tape, &options);
        assert_eq!(made.len(), hours, "case {number}: {made:?}");
        // Those of the other venue have no row of the market.
        let again = from_lines(&tape, &options, &Names::default(), &Stop::new(), &mut |hour| assert!(!hour.is_new));
        assert_eq!(again.expect("they are there"), if market.is_some() { 2 } else { 0 }, "case {number}");
        let rows = |origin: Origin| made.iter().filter(|hour| hour.origin == origin).map(|hour| hour.rows).sum::<u64>();
        assert_eq!(
            rows(Origin::of(engine::market::terms::Venue::Polymarket).expect("a live venue")) > 0,
            hours > 0,
            "case {number}"
        );
        assert_eq!(
            rows(Origin::of(engine::market::terms::Venue::Kalshi).expect("a live venue")) > 0,
            hours > 0 && has_kalshi,
            "case {number}"
        );
    }
    // A market that the recording does not have: nothing is made.
    let root = root.join("absent");
    let mut options = options(&root);
    options.markets = Some([Condition([9; 32])].into());
    let mut made = Vec::new();
    let done = from_lines(&tape, &options, &Names::default(), &Stop::new(), &mut |hour| made.push(hour));
    let error = done.expect_err("no row").to_string();
    assert_eq!(error, format!("{}: no row is of a market that --markets names", tape.display()));
    assert!(made.is_empty(), "{made:?}");
    println!("selections: {} cases", cases.len() + 1);
}

/// An hour of the server's own recording is partial until it is over, also in its last minute.
#[test]
fn an_open_hour_is_partial() {
    let folder = tempfile::tempdir().expect("a folder");
    let tape = folder.path().join("tape.ndjson");
    let begin = 1_788_001_200_000;
    let lines = [10_000, 3_570_000].map(|at| format!(r#"{{"r":{},"v":"polymarket","c":"a","gap":"g"}}"#, begin + at));
    fs::write(&tape, lines.join("\n")).expect("a tape");
    // The folder of the archive, the clock, whether this server recorded the lines, the verdict.
    let cases = [
        ("one", 3_570_001, true, "partial"),
        ("two", 3_599_999, true, "partial"),
        // The same lines, built again.
        ("two", 3_599_999, true, "partial"),
        ("two", 3_600_000, true, "valid"),
        ("two", 3_599_999, true, "valid"),
        ("three", 3_600_000, true, "valid"),
        ("four", 3_570_001, false, "valid"),
    ];
    for (number, (root, now, is_recorded, verdict)) in cases.into_iter().enumerate() {
        let mut options = options(&folder.path().join(root));
        options.place.now = Timestamp::from_millis(begin + now);
        options.place.is_recorded = is_recorded;
        let made = built(&tape, &options);
        assert_eq!(made.iter().map(|hour| hour.verdict.as_str()).collect::<Vec<_>>(), [verdict], "case {number}");
    }
    println!("open hours: {} cases", cases.len());
}

#[test]
fn a_restart_within_an_hour_continues_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tape, root) = (folder.path().join("tape.ndjson"), folder.path().join("archive"));
    let start = 1_788_001_170_000;
    fs::write(&tape, both_venues(start)).expect("a tape");
    built(&tape, &options(&root));
    let end = Timestamp::from_millis(start + 70_000);
    let mut whole = Witness::default();
    whole.run(&mut replay_of(&root), WALL, end, SECOND);
    let mut cases = 0;
    // The first row is 20 ms after the first line.
    for millis in [20, 30, 12_345, 29_999, 30_000, 45_678, 60_001] {
        let reached = Timestamp::from_millis(start + millis);
        let mut replay = replay_of(&root);
        let identity = crate::Venue::first_line(&replay).expect("hours have an identity");
        assert!(!crate::Venue::resume(&mut replay, [7; 32], reached), "another archive");
        assert!(crate::Venue::resume(&mut replay, identity, reached));
        let mut again = Witness::default();
        let at = crate::Venue::catch_up(&mut replay, WALL, &mut |frame| again.see(&frame));
        assert_eq!(at, reached);
        again.run(&mut replay, WALL, end, SECOND);
        assert_eq!(again.digest(), whole.digest(), "{millis}");
        cases += 1;
    }
    println!("restarts: {cases} cases");
}

/// Parts of a recording that overlap: what they have in common counts once.
#[test]
fn overlapping_parts_make_the_hour_of_the_whole() {
    const BEGIN: u64 = 1_788_000_000_000;
    let line = |at: u64, rest: String| format!(r#"{{"r":{},"v":"kalshi",{rest}}}"#, BEGIN + at);
    let message = |at: u64, seq: u64, kind: &str, msg: String| {
        line(
            at,
            format!(r#""c":"k","m":{{"type":"{kind}","sid":1,"seq":{seq},"msg":{{"market_ticker":"KX-1",{msg}}}}}"#),
        )
    };
    let snapshot = |at: u64, seq: u64, size: u64| {
        message(at, seq, "orderbook_snapshot", format!(r#""yes_dollars_fp":[["0.4","{size}"]],"no_dollars_fp":[]"#))
    };
    let delta = |at: u64, seq: u64| {
        let msg = format!(r#""price_dollars":"0.4","delta_fp":"{seq}.00","side":"yes","ts_ms":{}"#, BEGIN + at);
        message(at, seq, "orderbook_delta", msg)
    };
    let trade = |at: u64, seq: u64| {
        let msg = format!(
            r#""trade_id":"t{seq}","yes_price_dollars":"0.4","no_price_dollars":"0.6","count_fp":"1","taker_side":"yes","ts_ms":{}"#,
            BEGIN + at
        );
        message(at, seq, "trade", msg)
    };
    let markets = r#"{"markets":[{"ticker":"KX-1","status":"active","close_time":"2026-10-01T00:00:00Z"}]}"#;
    let lines = [
        line(0, format!(r#""u":"/markets","s":200,"b":{markets}"#)),
        snapshot(10, 1, 100),
        delta(20, 2),
        // Several in one millisecond, with a snapshot and a gap among them.
        delta(30, 3),
        snapshot(30, 4, 200),
        delta(30, 5),
        trade(30, 6),
        delta(40, 7),
        line(50, r#""c":"k","gap":"reconnect""#.into()),
        // A new start counts from the same numbers, and sends the same book.
        snapshot(50, 1, 100),
        delta(50, 2),
        delta(60, 3),
        trade(60, 4),
    ];
    let count = lines.len();
    // The lines of two or three parts.
    let parts: Vec<Vec<std::ops::Range<usize>>> = vec![
        vec![0..count, 0..count],
        vec![0..count, 2..5],
        vec![0..6, 3..count],
        vec![0..7, 5..count],
        vec![0..10, 7..count],
        vec![0..11, 9..count],
        vec![0..12, 11..count],
        vec![0..5, 2..9, 6..count],
        vec![0..count, 0..1, 12..count],
    ];
    let rows_of = |parts: &[std::ops::Range<usize>]| {
        let folder = tempfile::tempdir().expect("a folder");
        let tape = folder.path().join("tape");
        fs::create_dir(&tape).expect("a folder");
        for (number, part) in parts.iter().enumerate() {
            let text = lines[part.clone()].join("\n");
            fs::write(tape.join(format!("tape-2026-08-29T00_{number:02}.ndjson")), text).expect("a part");
        }
        let made = built(&tape, &options(&folder.path().join("archive")));
        let [hour] = made.as_slice() else { panic!("{made:?}") };
        let sidecar = archive::sidecar::Sidecar::read(&archive::store::sidecar_path(&hour.path)).expect("a sidecar");
        let file = archive::read::HourFile::open(&hour.path).expect("an hour");
        let rows: Vec<Row> = file.all_rows().map(|row| row.expect("a row").1).collect();
        (rows, sidecar.checks.deduped)
    };
    let whole: std::ops::Range<usize> = 0..count;
    let (expected, none) = rows_of(&[whole]);
    assert_eq!(none, 0);
    // The books at the end.
    let books = |rows: &[Row]| {
        let mut folded: std::collections::BTreeMap<Arc<str>, archive::fold::Folded> = Default::default();
        for row in rows {
            folded.entry(row.token.clone()).or_default().apply(row.received, row.source, &row.event);
        }
        folded.values().map(|book| book.view().bids).collect::<Vec<_>>()
    };
    for parts in &parts {
        let (rows, deduped) = rows_of(parts);
        assert!(deduped > 0, "{parts:?}");
        assert_eq!(books(&rows), books(&expected), "{parts:?}");
        let trades = |rows: &[Row]| {
            rows.iter().filter(|row| matches!(row.event, archive::row::Event::LastTradePrice { .. })).count()
        };
        assert_eq!(trades(&rows), trades(&expected), "{parts:?}");
        // Only what is around a gap that comes twice may be there twice, as whole books.
        let gaps = parts.iter().filter(|part| part.contains(&8)).count();
        assert!(rows == expected || gaps > 1, "{parts:?}: {rows:#?}");
    }
    println!("overlapping parts: {} cases", parts.len());
}

/// Recorded markets: an archive of some of the tapes, and the tapes themselves.
#[test]
fn recorded_hours_replay_as_their_lines() {
    const TAPES: usize = 3;
    let Some(path) = recorded("kalshi_ws") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let tape = folder.path().join("tape");
    for part in ["events", "metadata"] {
        fs::create_dir_all(tape.join(part)).expect("a folder");
        let mut files: Vec<PathBuf> =
            fs::read_dir(path.join(part)).expect("files").map(|entry| entry.expect("a file").path()).collect();
        let size = |file: &PathBuf| fs::metadata(file).expect("a file").len();
        files.sort_by_key(size);
        let few = if part == "events" { TAPES } else { usize::MAX };
        for file in files.into_iter().take(few) {
            fs::copy(&file, tape.join(part).join(file.file_name().expect("a name"))).expect("a copy");
        }
    }
    let root = folder.path().join("archive");
    let made = built(&tape, &options(&root));
    let rows: u64 = made.iter().map(|hour| hour.rows).sum();
    let first = Lines::open(&tape, false, &Names::default(), &Arc::default()).expect("a tape").line_at();
    let first = first.expect("lines");
    let last = made.iter().map(|hour| Timestamp::of_hour(hour.hour + 1)).max().expect("hours");
    let step = last.since(first) / 40 / MILLISECOND * MILLISECOND;
    let mut times: Vec<Timestamp> = (1..=40).map(|number| first.plus(number * step)).collect();
    // The last settlement is a day later.
    times.push(last.plus(48 * HOUR));
    let compared = compare(&tape, replay_of(&root), &times);
    println!("recorded hours: {} hours, {rows} rows, {compared} books", made.len());
    assert!(compared > 0 && rows > 10_000, "{compared} books, {rows} rows");
}

/// A build ends before the first hour for which there is no room, and goes on later.
#[test]
fn a_build_needs_room() {
    use crate::archive::room::Room;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    const HOURS: u64 = 4;
    let folder = tempfile::tempdir().expect("a folder");
    let tape = folder.path().join("tape.ndjson");
    fs::write(&tape, both_venues(1_788_001_170_000)).expect("a tape");
    for times in 0..=HOURS {
        let root = folder.path().join(format!("archive-{times}"));
        let mut options = options(&root);
        let asked = AtomicU64::new(0);
        let measure = move |_: &Path| Ok(if asked.fetch_add(1, Relaxed) < times { 100 } else { 99 });
        options.place.room = Room::measured(100, measure);
        let mut made = Vec::new();
        let done = from_lines(&tape, &options, &Names::default(), &Stop::new(), &mut |hour| made.push(hour));
        assert_eq!(made.len() as u64, times, "{made:?}");
        match done {
            Ok(left_out) => assert_eq!((times, left_out), (HOURS, 0)),
            Err(error) => assert!(error.to_string().contains("the disk has 99 free bytes"), "{error}"),
        }
        // Later there is room.
        drop(options);
        let again = built(&tape, &crate::archive::testing::options(&root));
        assert_eq!(again.iter().filter(|hour| hour.is_new).count() as u64, HOURS - times, "{again:?}");
    }
    println!("builds and room: {} cases", HOURS + 1);
}
