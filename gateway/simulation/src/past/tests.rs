use super::*;
use crate::exports::{ExportFolder, Settings};
use crate::plan::Plan;
use crate::run::{Progress, run};
use crate::testing::{FIRST, Making, Shelf, VENUE, at, book, condition, rising, row, spec, token};
use archive::sidecar::Gap;
use archive::store::{index_path, parquet_path};
use edge::api::simulation::exports::{ExportLayout, Exports as _, NotMade, WantedExport};
use engine::backtest::Confidence;
use engine::rules::Rules;
use host::clock::Clock;
use serde_json::json;
use std::fs;
use venue::archive::tail::Tail;

/// An archive whose server records: the market 1 in four hours that are made, both markets in the hour after them, which
/// is not. The recording lists them with the outcomes `Yes` and `No`.
fn recording() -> (Shelf, Past) {
    let shelf = Shelf::new();
    rising(&shelf, 1, 4);
    let folder = shelf.folder.path().join("tape");
    fs::create_dir(&folder).expect("a folder");
    let hour = Hour(FIRST.0 + 4);
    let mut lines = String::new();
    let mut line = |millis: u64, source: serde_json::Value| {
        let mut line = json!({"r": hour.start().millis() + millis, "v": "polymarket"});
        for (name, value) in source.as_object().expect("fields") {
            line[name] = value.clone();
        }
        lines += &format!("{line}\n");
    };
    for market in [1, 2] {
        let tokens = json!([&*token(market, 0), &*token(market, 1)]).to_string();
        let listed = json!({"id": market.to_string(), "conditionId": condition(market).to_string(),
            "slug": format!("m{market}"), "question": "?", "outcomes": r#"["Yes", "No"]"#, "clobTokenIds": tokens,
            "active": true, "closed": false, "acceptingOrders": true});
        line(5, json!({"u": "/markets", "s": 200, "b": [listed]}));
        for outcome in [0, 1] {
            let book = json!({"event_type": "book", "asset_id": &*token(market, outcome), "timestamp": (hour.start().millis() + 90).to_string(),
                "bids": [{"price": "0.29", "size": "5"}], "asks": [{"price": "0.71", "size": "5"}]});
            line(100, json!({"c": "ws-1", "m": book}));
        }
    }
    fs::write(folder.join(format!("tape-{hour}.ndjson")), lines).expect("a recording");
    let mut tail = Tail::new(shelf.store.clone(), &folder, Names::default(), Default::default());
    tail.begin().expect("it begins");
    let past = shelf.past().with_tail(Arc::new(Mutex::new(tail)));
    (shelf, past)
}

/// Reads of a moment use hours that are not made yet; back-tests and exports do not.
#[test]
fn hours_that_are_not_made_are_missing_for_back_tests_and_exports() {
    let (shelf, past) = recording();
    let past = Arc::new(past);
    let settings = Settings { dir: shelf.folder.path().join("exports"), bytes_max: 1 << 30, reserve_bytes: 0 };
    let exports = ExportFolder::open(past.clone(), settings, Clock::wall()).expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // Market; hours of the window; usable hours of all, of those that are made; the end of a back-test; is there an export?
    type Row = (u64, Range<u32>, u64, u64, Result<usize, &'static str>, bool);
    let rows: [Row; 7] = [
        (1, 0..4, 4, 4, Ok(0), true),
        // Four of five are enough: the fifth has no decisions.
        (1, 0..5, 5, 4, Ok(1), true),
        (1, 1..5, 4, 3, Err("hours_gone"), true),
        (1, 4..5, 1, 0, Err("hours_gone"), true),
        (1, 4..6, 1, 0, Err("hours_gone"), true),
        (2, 4..5, 1, 0, Err("market_unknown"), false),
        (3, 0..5, 0, 0, Err("market_unknown"), false),
    ];
    for (market, hours, all, made, end, is_exported) in &rows {
        let what = format!("market {market}, hours {hours:?}");
        let window = Hour(FIRST.0 + hours.start)..Hour(FIRST.0 + hours.end);
        let id = condition(*market).to_string();
        let known = past.market(&id).expect("it can be read");
        let usable = known.as_ref().map_or(0, |known| {
            Coverage::of(window.clone(), past.hours(known, window.clone()).expect("it can be read")).available()
        });
        assert_eq!(usable, *all, "{what}");
        let found = past.made(&id, window.clone()).expect("it can be read");
        assert_eq!(found.is_some(), known.is_some(), "{what}");
        if let Some(Made { coverage, entries, .. }) = found {
            assert_eq!((coverage.available(), coverage.asked()), (*made, u64::from(hours.end - hours.start)), "{what}");
            assert_eq!(coverage.count(Verdict::Partial), 0, "{what}");
            assert!(
                entries.iter().map(|entry| entry.hour.0).eq(window.clone().start.0..window.start.0 + *made as u32),
                "{what}"
            );
        }
        let start = wire::instant::ts_text(window.start.start());
        let spec = spec(&[*market], hours.end, &json!({"start": start}));
        let ended = Plan::of(&spec, &past, &|| true).map_err(|error| error.name()).map(|plan| {
            let (progress, memory_bytes) = (Progress::default(), 64 << 20);
            let report = run(&plan, past.store(), &Rules::default(), memory_bytes, &progress, &|| true);
            report.expect("a report").missing.len()
        });
        assert_eq!(ended, *end, "{what}");
        let Some(known) = known else { continue };
        let wanted = WantedExport {
            market: known,
            window: window.start.start()..window.end.start(),
            layout: ExportLayout::Events,
        };
        let exported = runtime.block_on(exports.make(&wanted)).map(drop);
        assert_eq!(exported, if *is_exported { Ok(()) } else { Err(NotMade::Unreachable) }, "{what}");
    }
    println!("hours that are not made: {} rows", rows.len());
}

/// What a back-test is about does not change with the lines of a recording: its result is that of the command, which reads
/// none.
#[test]
fn a_market_of_a_back_test_is_that_of_the_hours_that_are_made() {
    let (shelf, past) = recording();
    let window = FIRST..Hour(FIRST.0 + 5);
    let id = condition(1).to_string();
    let [made, alone] =
        [&past, &shelf.past()].map(|past| past.made(&id, window.clone()).expect("read").expect("known"));
    assert_eq!((&made.market, &made.coverage), (&alone.market, &alone.coverage));
    assert_eq!(made.market.outcomes.each_ref().map(|label| &**label), ["Token A", "Token B"]);
    assert_eq!(made.market.hours, FIRST..Hour(FIRST.0 + 4));
    let known = past.market(&id).expect("it can be read").expect("it is known");
    assert_eq!(known.outcomes.each_ref().map(|label| &**label), ["Yes", "No"]);
    assert_eq!((&known.tokens, known.hours), (&made.market.tokens, FIRST..Hour(FIRST.0 + 5)));
}

/// Files of the hour that is being written, as a build by hand makes them: coverage and books have one answer, that of the
/// recording. Files of a whole hour count.
#[test]
fn files_of_an_open_hour_change_no_answer() {
    const OPEN: u32 = 4;
    const MINUTE: u64 = 60_000;
    let begin = u64::from(OPEN) * 60 * MINUTE;
    let gap = |minutes: u64| {
        let from = FIRST.start().millis() + begin + MINUTE;
        Gap { from, to: from + minutes * MINUTE, reason: "closed".to_owned(), ..Gap::default() }
    };
    let moments = [begin + 50, begin + 100, begin + 30 * MINUTE, begin + 60 * MINUTE - 1];
    // The hour of the files, whether they are of a part, the gap in minutes; state and confidence of the open hour.
    type Row = (Option<u32>, bool, Option<u64>, Verdict, Confidence);
    let rows: [Row; 6] = [
        (None, false, None, Verdict::Partial, Confidence::Provisional),
        (Some(OPEN), true, None, Verdict::Partial, Confidence::Provisional),
        (Some(OPEN), true, Some(5), Verdict::Partial, Confidence::Provisional),
        // An open gap lasts to the end of the hour in the files.
        (Some(OPEN), true, Some(55), Verdict::Partial, Confidence::Provisional),
        (Some(OPEN), false, None, Verdict::Valid, Confidence::High),
        // Of a later hour only.
        (Some(OPEN + 1), true, None, Verdict::Partial, Confidence::Provisional),
    ];
    let mut books = 0;
    for (made, is_partial, minutes, verdict, confidence) in rows {
        let (shelf, past) = recording();
        if let Some(hour) = made {
            let millis = u64::from(hour) * 60 * MINUTE + 100;
            let events = [0, 1].map(|outcome| row(millis, 1, outcome, book(&[(2_900, 5)], &[(7_100, 5)])));
            shelf.make(Making { hour, rows: events.into(), gaps: minutes.map(gap).into_iter().collect(), is_partial });
        }
        let what = format!("{made:?} {is_partial} {minutes:?}");
        let market = past.market(&condition(1).to_string()).expect("it can be read").expect("it is known");
        let open = Hour(FIRST.0 + OPEN);
        let states = past.hours(&market, FIRST..open.next().next()).expect("it can be read");
        assert!(states.is_sorted_by(|one, next| one.hour < next.hour), "{what}: {states:?}");
        let found: Vec<_> = states.iter().filter(|state| state.hour == open).collect();
        let [state] = found.as_slice() else { panic!("{what}: {states:?}") };
        assert_eq!((state.verdict, state.confidence), (verdict, confidence), "{what}");
        for millis in moments {
            let at = FIRST.start().plus(millis * engine::time::MILLISECOND);
            let pair = past.books(&market, Outcome::First, at).expect("it can be read");
            let own = pair.unwrap_or_else(|| panic!("{what}: no book at {millis}")).own;
            assert_eq!((own.verdict, own.confidence), (verdict, confidence), "{what} at {millis}");
            books += 1;
        }
    }
    println!("files of an open hour: {} cases, {books} books", rows.len());
}

/// A damaged index quarantines its hour for the markets of its venue. Markets of another venue are not affected.
#[test]
fn a_damaged_hour_is_of_its_venue_alone() {
    const OTHER: &str = "kalshi";
    let verdicts = |past: &Past, market: u64| -> Vec<Verdict> {
        let known = past.market(&condition(market).to_string()).expect("it can be read").expect("it is known");
        let states = past.hours(&known, FIRST..Hour(FIRST.0 + 2)).expect("it can be read");
        states.iter().map(|state| state.verdict).collect()
    };
    let (good, damaged) = ([Verdict::Valid; 2], [Verdict::Valid, Verdict::Quarantined]);
    // The venue whose second hour is damaged; the verdicts of the market 1 of one venue, of the market 2 of the other.
    let rows = [(None, good, good), (Some(OTHER), good, damaged), (Some(VENUE), damaged, good)];
    for (venue, first, second) in &rows {
        let shelf = Shelf::new();
        rising(&shelf, 1, 2);
        for hour in 0..2 {
            let spoken = row(u64::from(hour) * 3_600_000, 2, 0, book(&[(2_900, 5)], &[(3_100, 5)]));
            shelf.make_in(OTHER, Making { hour, rows: vec![spoken], gaps: Vec::new(), is_partial: false });
        }
        if let Some(venue) = venue {
            let index = index_path(&parquet_path(shelf.store.root(), venue, Hour(FIRST.0 + 1)));
            fs::write(index, "no index").expect("written");
            shelf.store.refresh().expect("listed");
        }
        let past = shelf.past();
        for (market, expected) in [(1, first), (2, second)] {
            // The first read finds the damage, the second one knows it.
            for _ in 0..2 {
                assert_eq!(verdicts(&past, market), expected, "{venue:?}, market {market}");
                let known = past.market(&condition(market).to_string()).expect("it can be read").expect("known");
                let found = past.books(&known, Outcome::First, at(3_600_000 + 60_000));
                let is_there = found.is_ok_and(|pair| pair.is_some());
                assert_eq!(is_there, expected[1].is_usable(), "{venue:?}, market {market}");
            }
        }
    }
    println!("damaged hours of two venues: {} rows", rows.len());
}
