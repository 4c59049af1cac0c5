use super::*;
use crate::skips::Skip;
use crate::suite::{Witness, broken, recorded};
use crate::tape::{Record, Tape, UNNAMED};
use engine::id::Outcome;
use engine::market::terms::{MarketState, Resolution};
use engine::time::SECOND;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

const FOREVER: Timestamp = Timestamp(u64::MAX);
/// 2026-09-01T07:59:00Z, a minute before the market of the fixture opens.
const START_MS: u64 = 1_788_249_540_000;
const METADATA: &str = include_str!("../kalshi/fixtures/metadata.json");

fn event(at_ms: u64, kind: &str, msg: &str) -> String {
    format!(
        r#"{{"recv_ms":{at_ms},"event":{{"type":"{kind}","sid":1,"seq":1,"msg":{{"market_ticker":"KXRAIN-26SEP01-T1",{msg}}}}}}}"#
    )
}

fn delta(at_ms: u64, change: &str) -> String {
    event(
        at_ms,
        "orderbook_delta",
        &format!(r#""price_dollars":"0.4000","delta_fp":"{change}","side":"yes","ts_ms":{at_ms}"#),
    )
}

/// A small recording in the Kalshi layout: a snapshot and `count` changes, one a second, in two files.
fn small_tape(count: u64) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_path_buf();
    std::fs::create_dir(path.join("events")).unwrap();
    std::fs::create_dir(path.join("metadata")).unwrap();
    std::fs::write(path.join("metadata/rain.json"), METADATA).unwrap();
    let mut files = [String::new(), String::new()];
    files[0] += &(event(START_MS, "orderbook_snapshot", r#""yes_dollars_fp":[["0.4000","1.00"]]"#) + "\n");
    for number in 1..=count {
        files[number as usize % 2] += &(delta(START_MS + number * 1_000, "1.00") + "\n");
    }
    std::fs::write(path.join("events/a.ndjson"), &files[0]).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(files[1].as_bytes()).unwrap();
    std::fs::write(path.join("events/b.ndjson.gz"), packed.finish().unwrap()).unwrap();
    (folder, path)
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(START_MS).plus(seconds * SECOND)
}

#[test]
fn time_runs_between_lines_with_the_wall_clock_times_speed() {
    let (_folder, path) = small_tape(100);
    let wall = Timestamp::from_secs(1_900_000_000);
    for (speed, after) in [("1", 10), ("4", 40), ("0.5", 5), ("60", 100)] {
        let mut replay = Replay::open(&path, speed.parse().unwrap(), false, &Default::default()).unwrap();
        let mut witness = Witness::default();
        let first = replay.poll(wall, FOREVER, &mut |frame| witness.see(&frame));
        assert_eq!(first.venue_now, at(0));
        assert!(first.wake_at.unwrap() > wall);
        let later = replay.poll(wall.plus(10 * SECOND), FOREVER, &mut |frame| witness.see(&frame));
        assert_eq!(later.venue_now, at(after), "{speed}");
        assert_eq!(witness.count("delta"), after * 2, "{speed}");
        // A poll at the returned time finds something.
        let next = replay.poll(later.wake_at.unwrap(), FOREVER, &mut |frame| witness.see(&frame));
        assert!(next.venue_now > later.venue_now, "{speed}: {next:?}");
    }
}

#[test]
fn after_the_last_line_time_continues_and_markets_change() {
    let (_folder, path) = small_tape(100);
    for speed in ["max", "1000"] {
        let mut replay = Replay::open(&path, speed.parse().unwrap(), false, &Default::default()).unwrap();
        let mut witness = Witness::default();
        let mut wall = Timestamp::from_secs(1_900_000_000);
        witness.run(&mut replay, wall, at(100), SECOND);
        let condition = witness.listings.keys().next().unwrap().clone();
        assert_eq!(witness.states[&condition], MarketState::Active);
        wall = wall.plus(100 * SECOND);
        // The end was reached within the last second of wall time.
        let polled = replay.poll(wall.plus(SECOND), FOREVER, &mut |frame| witness.see(&frame));
        let then = polled.venue_now;
        let polled = replay.poll(wall.plus(61 * SECOND), FOREVER, &mut |frame| witness.see(&frame));
        assert_eq!(polled.venue_now.since(then), 60 * SECOND, "{speed}");
        assert_eq!(polled.wake_at, Some(wall.plus(61 * SECOND + HOUR)), "{speed}");
        // Closes at 20:00:00 and settles at 20:05:30.25, long after the tape.
        let closes = crate::loose::instant("2026-09-01T20:00:00Z").unwrap();
        let settles = crate::loose::instant("2026-09-01T20:05:30.25Z").unwrap();
        let ahead = |moment: Timestamp| wall.plus(61 * SECOND + moment.since(polled.venue_now));
        for (moment, state) in [
            (Timestamp(closes.0 - 1), MarketState::Active),
            (closes, MarketState::Closed),
            (Timestamp(settles.0 - 1), MarketState::Closed),
            (settles, MarketState::Resolved),
        ] {
            replay.poll(ahead(moment), FOREVER, &mut |frame| witness.see(&frame));
            assert_eq!(witness.states[&condition], state, "{speed} {moment:?}");
        }
        assert_eq!(witness.resolutions[&condition], (Resolution::Winner(Outcome::Second), settles, settles));
    }
}

#[test]
fn no_poll_goes_past_its_bound_at_any_speed() {
    let (_folder, path) = small_tape(100);
    let mut digests = Vec::new();
    for speed in ["1", "7.5", "1000000", "max"] {
        let mut replay = Replay::open(&path, speed.parse().unwrap(), false, &Default::default()).unwrap();
        let mut witness = Witness::default();
        let mut wall = Timestamp::from_secs(1_900_000_000);
        for second in 0..=100 {
            let bound = at(second);
            let polled = witness.run(&mut replay, wall, bound, SECOND / 10);
            assert_eq!(polled.venue_now, bound, "{speed}");
            assert_eq!(witness.count("delta"), second * 2, "{speed}");
            wall = wall.plus(SECOND * 10);
        }
        digests.push(witness.digest());
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "the digests depend on the speed");
}

#[test]
fn a_restart_continues_at_the_journaled_position() {
    let (_folder, path) = small_tape(100);
    let wall = Timestamp::from_secs(1_900_000_000);
    let mut whole = Witness::default();
    whole.run(&mut Replay::open(&path, Speed::Max, false, &Default::default()).unwrap(), wall, at(100), SECOND);

    let mut replay = Replay::open(&path, Speed::RECORDED, false, &Default::default()).unwrap();
    let first_line = replay.first_line().expect("the tape has lines");
    assert!(!replay.resume([7; 32], at(50)), "another tape");
    assert!(replay.resume(first_line, at(50).plus(1)));
    let mut again = Witness::default();
    assert_eq!(replay.catch_up(wall, &mut |frame| again.see(&frame)), at(50).plus(1));
    assert_eq!(again.count("delta"), 100);
    let polled = replay.poll(wall.plus(5 * SECOND), FOREVER, &mut |frame| again.see(&frame));
    assert_eq!((polled.venue_now, again.count("delta")), (at(50).plus(1), 100), "the clock starts with the first poll");
    replay.poll(wall.plus(65 * SECOND), FOREVER, &mut |frame| again.see(&frame));
    assert_eq!(again.digest(), whole.digest());

    // Another tape starts at its beginning.
    let mut replay = Replay::open(&path, Speed::RECORDED, false, &Default::default()).unwrap();
    assert!(!replay.resume([7; 32], at(50)));
    assert_eq!(replay.catch_up(wall, &mut |_| {}), at(0));
}

#[test]
fn a_followed_tape_is_read_as_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::create_dir(path.join("events")).unwrap();
    std::fs::create_dir(path.join("metadata")).unwrap();
    std::fs::write(path.join("metadata/rain.json"), METADATA).unwrap();
    let wall = Timestamp::from_secs(1_900_000_000);
    let mut replay = Replay::open(path, Speed::Max, true, &Default::default()).unwrap();
    let mut witness = Witness::default();
    assert_eq!(replay.first_line(), None);
    let polled = replay.poll(wall, FOREVER, &mut |frame| witness.see(&frame));
    assert_eq!(witness.frames, 0);
    assert!(polled.wake_at.unwrap() <= wall.plus(100 * MILLISECOND));

    let mut file = std::fs::File::create(path.join("events/a.ndjson")).unwrap();
    writeln!(file, "{}", event(START_MS, "orderbook_snapshot", r#""yes_dollars_fp":[["0.4000","1.00"]]"#)).unwrap();
    let line = delta(START_MS + 1_000, "1.00");
    let (begin, rest) = line.split_at(60);
    write!(file, "{begin}").unwrap();
    let mut poll = |seconds: u64, witness: &mut Witness| {
        replay.poll(wall.plus(seconds * SECOND), FOREVER, &mut |frame| witness.see(&frame)).venue_now
    };
    assert_eq!(poll(10, &mut witness), at(0));
    assert_eq!(witness.count("snapshot"), 2);
    // Venue time continues; the incomplete line is waited for.
    assert_eq!(poll(13, &mut witness), at(3));
    writeln!(file, "{rest}").unwrap();
    assert_eq!(poll(13, &mut witness), at(3), "never backwards");
    assert_eq!(witness.count("delta"), 2);
    // A new file that is already packed; the first one is packed too and must not be read again.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writeln!(packed, "{}", delta(START_MS + 20_000, "1.00")).unwrap();
    std::fs::write(path.join("events/b.ndjson.gz"), packed.finish().unwrap()).unwrap();
    std::fs::rename(path.join("events/a.ndjson"), path.join("events/a.ndjson.gz")).unwrap();
    writeln!(file, "{}", delta(START_MS + 19_000, "1.00")).unwrap();
    assert_eq!(poll(14, &mut witness), at(20));
    assert_eq!(witness.count("delta"), 6);
    assert_eq!(poll(15, &mut witness), at(21));
    assert_eq!(witness.count("delta"), 6);

    // Opened again, all lines are handed out in the first step.
    let mut replay = Replay::open(path, Speed::Max, true, &Default::default()).unwrap();
    let mut again = Witness::default();
    replay.resume(replay.first_line().unwrap(), at(1));
    assert_eq!(replay.catch_up(wall, &mut |frame| again.see(&frame)), at(20));
    assert_eq!(again.count("delta"), 6);
    assert_eq!(replay.poll(wall.plus(SECOND), FOREVER, &mut |frame| again.see(&frame)).venue_now, at(20));
    assert_eq!(replay.poll(wall.plus(3 * SECOND), FOREVER, &mut |frame| again.see(&frame)).venue_now, at(22));
    assert!(replay.ages_on_server_time() && replay.drives_clock());
}

#[test]
fn lines_of_two_venues_and_their_gaps_go_to_their_translators() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape.ndjson");
    let listing = r#"{"market":{"ticker":"KX-1","status":"active","close_time":"2026-10-01T00:00:00Z"}}"#;
    let snapshot = r#"{"type":"orderbook_snapshot","msg":{"market_ticker":"KX-1","yes_dollars_fp":[["0.4","1"]]}}"#;
    let lines = [
        format!(r#"{{"r":1000,"v":"kalshi","c":"ws-1","m":{snapshot}}}"#),
        format!(r#"{{"r":2000,"v":"kalshi","u":"https://host/x/markets/KX-1","s":200,"b":{listing}}}"#),
        format!(r#"{{"v":"kalshi","r":3000,"note":1,"c":"ws-1","m":[{snapshot}]}}"#),
        r#"{"r":4000,"v":"kalshi","c":"ws-1","gap":"reconnect"}"#.into(),
        format!(r#"{{"r":5000,"v":"kalshi","c":"ws-2","m":{snapshot}}}"#),
        "not a line".into(),
        r#"{"r":6000,"v":"elsewhere","m":{}}"#.into(),
        r#"{"r":7000,"v":"kalshi"}"#.into(),
        String::new(),
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let mut replay = Replay::open(&path, Speed::Max, false, &Default::default()).unwrap();
    let (mut witness, mut connections) = (Witness::default(), Vec::new());
    replay.poll(Timestamp::from_secs(1), FOREVER, &mut |frame| {
        connections.push(frame.connection);
        witness.see(&frame);
    });
    assert_eq!(connections, [0, 1, 0, 0, 2]);
    assert_eq!((witness.count("listed"), witness.count("snapshot"), witness.count("gap")), (1, 4, 1));
    assert_eq!((replay.skips.get(Skip::Unlisted), replay.skips.get(Skip::UnknownLine)), (1, 3));
}

/// Broken lines of every form in one file: none stops the replay, and each is counted or still readable.
#[test]
fn no_broken_line_stops_the_replay() {
    let frame = event(START_MS, "orderbook_snapshot", r#""yes_dollars_fp":[["0.4000","1.00"]]"#);
    let lines = [
        frame.clone(),
        r#"{"r":1788249540000,"v":"polymarket","c":"x","m":{"event_type":"book","asset_id":"1","bids":[]}}"#.into(),
        r#"{"r":1788249540000,"v":"kalshi","u":"/markets/KX-1","s":200,"b":{"market":{"ticker":"KX-1","status":"active"}}}"#.into(),
        r#"{"r":1788249540000,"v":"kalshi","c":"ws-1","gap":"reconnect"}"#.into(),
    ];
    let cases: Vec<String> = lines.iter().flat_map(|line| broken(line)).map(|case| case.replace('\n', " ")).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape.ndjson");
    std::fs::write(&path, format!("{frame}\n{}\n{frame}", cases.join("\n"))).unwrap();
    let mut replay = Replay::open(&path, Speed::Max, false, &Default::default()).unwrap();
    let mut frames = 0;
    while !replay.at_end {
        replay.poll(Timestamp::from_secs(1), FOREVER, &mut |_| frames += 1);
    }
    let counted = replay.skips.total();
    println!("{} broken lines, {frames} frames, {counted} skips counted", cases.len());
    assert!(cases.len() > 1_000 && counted > 900, "{} cases, {counted} counted", cases.len());
}

/// The recorded Kalshi tapes: every message is folded, no size falls below zero, no book is crossed, and every market
/// of the metadata is resolved at its time.
#[test]
fn the_recorded_tapes_fold_without_loss_and_resolve_on_time() {
    const MESSAGES: u64 = 949_653;
    let Some(path) = recorded("kalshi_ws") else { return };
    let wall = Timestamp::from_secs(1_900_000_000);
    let expected = settlements(&path);
    let last = expected.values().map(|(at, _)| *at).max().unwrap();
    let mut digests = Vec::new();
    for _ in 0..2 {
        let mut replay = Replay::open(&path, Speed::Max, false, &Default::default()).unwrap();
        let mut witness = Witness::default();
        // After the last line the clock follows the wall clock: about 36 hours to the last settlement.
        witness.run(&mut replay, wall, last, HOUR);
        assert_eq!(replay.skips.nonzero().collect::<Vec<_>>(), []);
        let folded = witness.count("delta") / 2 + witness.count("snapshot") / 2 + witness.count("trade");
        println!("{folded} messages folded, {} frames: {:?}", witness.frames, witness.counts);
        assert_eq!(folded, MESSAGES);
        assert_eq!(witness.count("gap"), 0);
        witness.assert_mirrored();
        assert_eq!(witness.resolutions.len(), expected.len());
        for (condition, (resolution, venue_ts, seen_at)) in &witness.resolutions {
            let (at, winner) = expected[&witness.listings[condition].venue_market_id];
            assert_eq!((*resolution, *venue_ts), (Resolution::Winner(winner), at));
            assert!(*seen_at == at || at < Timestamp::from_millis(1_786_399_000_000), "{seen_at:?} {at:?}");
        }
        digests.push(witness.digest());
    }
    assert_eq!(digests[0], digests[1]);
}

/// Settlement times and winners of the metadata, read without the code under test.
fn settlements(path: &Path) -> BTreeMap<String, (Timestamp, Outcome)> {
    let files = std::fs::read_dir(path.join("metadata")).unwrap().map(|entry| entry.unwrap().path());
    let rows = files.flat_map(|path| {
        let file: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let markets = file["response"]["markets"].as_array().unwrap().clone();
        markets.into_iter().map(|market| {
            let moment: jiff::Timestamp = market["settlement_ts"].as_str().unwrap().parse().unwrap();
            let winner = if market["result"] == "yes" { Outcome::First } else { Outcome::Second };
            let ticker = market["ticker"].as_str().unwrap().to_string();
            (ticker, (Timestamp(moment.as_microsecond() as u64), winner))
        })
    });
    rows.collect()
}

/// The rate of translating lines into updates.
/// `PAPERTAPE_VENUE_DATA=… cargo test --release -p venue --lib rate_of_decoding -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn rate_of_decoding() {
    let Some(path) = recorded("kalshi_ws") else { return };
    let skips = Arc::new(Skips::default());
    let mut lines = Vec::new();
    let mut tape = Tape::open(&path, false, skips.clone()).unwrap();
    let begin = std::time::Instant::now();
    while let Some(line) = tape.next_line() {
        lines.push(line.text.to_string());
    }
    let merged = begin.elapsed();

    let begin = std::time::Instant::now();
    let mut parsed = 0_u64;
    for line in &lines {
        #[derive(serde::Deserialize)]
        struct Whole<'a> {
            recv_ms: u64,
            #[serde(borrow)]
            event: Plain<'a>,
        }
        #[derive(serde::Deserialize)]
        struct Plain<'a> {
            seq: u64,
            #[serde(borrow)]
            msg: Message<'a>,
        }
        #[derive(serde::Deserialize)]
        struct Message<'a> {
            market_ticker: &'a str,
            price_dollars: Option<&'a str>,
            delta_fp: Option<&'a str>,
            side: Option<&'a str>,
            ts_ms: Option<u64>,
        }
        let whole: Whole<'_> = serde_json::from_str(line).unwrap();
        let msg = whole.event.msg;
        parsed += whole.recv_ms + whole.event.seq + msg.ts_ms.unwrap_or(0) + msg.market_ticker.len() as u64;
        parsed +=
            [msg.price_dollars, msg.delta_fp, msg.side].iter().flatten().map(|text| text.len() as u64).sum::<u64>();
    }
    let floor = begin.elapsed();

    let mut recording = Lines::open(&path, false, &Default::default(), &skips).unwrap();
    let mut updates = Vec::new();
    let begin = std::time::Instant::now();
    for line in &lines {
        updates.clear();
        if let Some(Record::Frame { body, .. }) = Record::parse(line) {
            recording.translators.of(UNNAMED).frame(&body, 0, Timestamp::default(), &mut updates);
        }
    }
    let decoded = begin.elapsed();

    let mut replay = Replay::open(&path, Speed::Max, false, &Default::default()).unwrap();
    let begin = std::time::Instant::now();
    let mut counted = 0;
    while !replay.at_end {
        replay.poll(Timestamp::from_secs(1_900_000_000), FOREVER, &mut |frame| counted += frame.updates.len());
    }
    let whole = begin.elapsed();
    let rate = |elapsed: std::time::Duration| lines.len() as f64 / elapsed.as_secs_f64();
    println!("{} lines, {counted} updates (check {parsed})", lines.len());
    println!("gunzip, split and merge: {merged:?}, {:.0}/s", rate(merged));
    println!("serde_json into borrowed structs: {floor:?}, {:.0}/s", rate(floor));
    println!("line to updates: {decoded:?}, {:.0}/s", rate(decoded));
    println!("whole replay: {whole:?}, {:.0}/s", rate(whole));
}
