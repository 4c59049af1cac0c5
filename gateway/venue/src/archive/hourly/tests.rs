use super::*;
use crate::archive::testing::{built, options};
use crate::kalshi::metadata::lasting;
use crate::suite::recorded;
use crate::tape::{Record, Tape, UNNAMED};
use crate::tests::both_venues;
use engine::time::MINUTE;
use serde_json::json;
use std::fs;

/// 2026-08-29T10 in UTC.
pub(in crate::archive) const FIRST: u32 = 496_666;
pub(in crate::archive) const HOURS: u32 = 7;

/// A small generator of numbers.
pub(in crate::archive) struct Chance(pub(in crate::archive) u64);

impl Chance {
    pub(in crate::archive) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound
    }

    pub(in crate::archive) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

fn name_of_hour(hour: u32, part: u32) -> String {
    match part {
        1 => format!("tape-{}.ndjson", Hour(hour)),
        part => format!("tape-{}_{part:02}.ndjson", Hour(hour)),
    }
}

fn condition(market: u64) -> String {
    format!("0x{market:064x}")
}

/// The lines of one hour, by chance: what venues send, and what goes wrong.
fn hour_lines(chance: &mut Chance, hour: u32) -> Vec<String> {
    let begin = Timestamp::of_hour(hour).millis();
    let mut lines = Vec::new();
    let mut at = begin;
    let count = if chance.one_in(6) { 0 } else { 40 + chance.below(120) };
    for _ in 0..count {
        at = (at + chance.below(60_000)).min(begin + 3_599_999);
        // Some lines are received before the one before them.
        let r = if chance.one_in(12) && lines.len() > 2 { at.saturating_sub(chance.below(5_000)) } else { at };
        let market = chance.below(3) + 1;
        let token = market * 10 + chance.below(2);
        // Messages are late, repeated, or from before the last book.
        let stamp = r.saturating_sub([0, 3, 20, 4_000][chance.below(4) as usize]);
        let (price, size) = (chance.below(9) + 1, chance.below(4));
        let connection = ["ws-1", "ws-2"][chance.below(2) as usize];
        let frame = |body: String| format!(r#"{{"r":{r},"v":"polymarket","c":"{connection}","m":{body}}}"#);
        let answer = |venue: &str, url: &str, body: String| {
            format!(r#"{{"r":{r},"v":"{venue}","u":"{url}","s":200,"b":{body}}}"#)
        };
        let book = format!(
            r#""asset_id":"{token}","timestamp":"{stamp}","hash":"h{size}","bids":[{{"price":"0.0{price}","size":"5"}}],"asks":[{{"price":"0.4","size":"{}"}}]"#,
            size + 1
        );
        let ticker = format!("KX-{}", chance.below(2) + 1);
        let kalshi = |body: String| format!(r#"{{"r":{r},"v":"kalshi","c":"k-{}","m":{body}}}"#, size % 2);
        lines.push(match chance.below(24) {
            0 | 1 => frame(format!(r#"{{"event_type":"book",{book}}}"#)),
            2 => answer("polymarket", &format!("/book?token_id={token}"), format!("{{{book}}}")),
            3..=9 => frame(format!(
                r#"{{"event_type":"price_change","timestamp":"{stamp}","price_changes":[{{"asset_id":"{token}","price":"0.0{price}","size":"{size}","side":"BUY","hash":"c{price}{size}","best_bid":"0.09","best_ask":"0.4"}}]}}"#
            )),
            10 => frame(format!(
                r#"{{"event_type":"last_trade_price","asset_id":"{token}","price":"0.4","size":"2","side":"BUY","timestamp":"{stamp}"}}"#
            )),
            11 => frame(format!(
                r#"{{"event_type":"tick_size_change","asset_id":"{token}","old_tick_size":"0.01","new_tick_size":"{}"}}"#,
                ["0.01", "0.001"][chance.below(2) as usize]
            )),
            12 => format!(r#"{{"r":{r},"v":"polymarket","c":"{connection}","gap":"closed by the venue"}}"#),
            13 => "no line of a recording".to_owned(),
            14 => frame(r#"{"event_type":"book","asset_id":"77","bids":[],"asks":[]}"#.to_owned()),
            15 => {
                let state = if chance.one_in(8) { r#""closed":true,"outcomePrices":"[\"0\",\"1\"]","umaResolutionStatus":"resolved""# } else { r#""closed":false,"acceptingOrders":true,"endDate":"2026-11-03T00:00:00Z""# };
                let tokens = format!(r#"[\"{}\",\"{}\"]"#, market * 10, market * 10 + 1);
                answer(
                    "polymarket",
                    "/markets?limit=1",
                    format!(r#"[{{"id":"{market}","conditionId":"{}","slug":"s{market}","clobTokenIds":"{tokens}","active":true,{state}}}]"#, condition(market)),
                )
            }
            16 => answer("kalshi", "/trade-api/v2/markets", format!(r#"{{"markets":[{{"ticker":"{ticker}","status":"active","close_time":"2026-10-01T00:00:00Z"}}]}}"#)),
            17 => kalshi(format!(
                r#"{{"type":"orderbook_snapshot","sid":1,"seq":{size},"msg":{{"market_ticker":"{ticker}","yes_dollars_fp":[["0.4","9"]],"no_dollars_fp":[["0.5","9"]]}}}}"#
            )),
            18..=21 => kalshi(format!(
                r#"{{"type":"orderbook_delta","sid":1,"seq":{price},"msg":{{"market_ticker":"{ticker}","price_dollars":"0.4","delta_fp":"{}","side":"yes","ts_ms":{stamp}}}}}"#,
                [1, 2, -1, -3][size as usize]
            )),
            22 => format!(r#"{{"r":{r},"v":"kalshi","c":"k-0","gap":"the disk could not follow"}}"#),
            _ => frame("{\"event_type\":".to_owned()),
        });
    }
    lines
}

/// The files of a recording of some hours, each with its text, in order of time. With parts, some hours have a second
/// file, as after a clock that was set back.
pub(in crate::archive) fn recording(chance: &mut Chance, has_parts: bool) -> Vec<(u32, String, String)> {
    let mut files = Vec::new();
    for hour in FIRST..FIRST + HOURS {
        let mut lines = hour_lines(chance, hour);
        if hour == FIRST || hour == FIRST + HOURS - 1 {
            // A line that both runs have at their ends.
            let r = Timestamp::of_hour(hour).millis() + 1;
            lines.insert(0, format!(r#"{{"r":{r},"v":"polymarket","c":"ws-1","gap":"begun"}}"#));
        }
        let mut parts = vec![lines];
        if chance.one_in(4) && has_parts {
            let middle = parts[0].len() / 2;
            let second = parts[0].split_off(middle);
            parts.push(second);
        }
        for (part, lines) in (1..).zip(parts) {
            let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            if chance.one_in(4) {
                let r = Timestamp::of_hour(hour).millis() + 3_599_999;
                text += &format!(r#"{{"r":{r},"v":"polymarket","c":"torn","m":{{"eve"#);
            }
            files.push((hour, name_of_hour(hour, part), text));
        }
    }
    files
}

/// The files of an archive's hours by name, those of the last hour left out: a pass that ends there cannot know how it
/// continues.
fn hours_of(root: &Path, last: u32) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<PathBuf> =
        ["polymarket", "kalshi"].map(|venue| root.join(venue)).into_iter().filter(|path| path.is_dir()).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            if path.is_dir() {
                folders.extend((name != "markets").then_some(path));
            } else if !name.contains(&Hour(last).to_string()) {
                found.insert(path.strip_prefix(root).expect("inside").to_owned(), fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

pub(in crate::archive) fn write(folder: &Path, files: &[(u32, String, String)], until: u32) {
    fs::create_dir_all(folder).expect("a folder");
    for (hour, name, text) in files.iter().filter(|(hour, ..)| *hour <= until) {
        // The hour being written may end within a line.
        let text = if *hour == until { &text[..text.len() / 2] } else { text.as_str() };
        fs::write(folder.join(name), text).expect("a file");
    }
}

pub(in crate::archive) fn due(folder: &Path, root: &Path, until: u32) -> (Vec<Sealed>, Done) {
    let mut made = Vec::new();
    let options = options(root);
    let done = make_due(folder, Hour(until), &options, &Names::default(), &Stop::new(), &mut |hour| made.push(hour));
    (made, done.expect("hours"))
}

fn assert_same(expected: &BTreeMap<PathBuf, Vec<u8>>, found: &BTreeMap<PathBuf, Vec<u8>>, what: &str) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{what}");
    for (path, bytes) in expected {
        if found[path] != *bytes {
            let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(4_000)]).into_owned();
            panic!("{what}: {}\n{}\n{}", path.display(), shown(bytes), shown(&found[path]));
        }
    }
}

/// Makes the hours one by one, as the recording grows, and compares them with those of one pass.
fn compare(files: &[(u32, String, String)], lost_state: Option<u32>, what: &str) -> usize {
    let place = tempfile::tempdir().expect("a folder");
    let (whole, growing) = (place.path().join("whole"), place.path().join("growing"));
    let [of_pass, of_hours, of_backlog] = ["pass", "hours", "backlog"].map(|name| place.path().join(name));
    let (first, last) = (files[0].0, files[files.len() - 1].0);
    write(&whole, files, last + 1);
    built(&whole, &options(&of_pass));
    let expected = hours_of(&of_pass, last);
    for until in first..=last {
        write(&growing, files, until);
        due(&growing, &of_hours, until);
        // The first hour may have no whole line yet.
        assert!(reached(&of_hours) == Some(Hour(until)) || until == first, "{what}");
        if lost_state == Some(until) {
            let _ = fs::remove_file(of_hours.join(NAME));
        }
    }
    assert_same(&expected, &hours_of(&of_hours, last), what);
    // Again, nothing is made; and a run over what was left is the same.
    let (made, done) = due(&growing, &of_hours, last);
    assert!(made.iter().all(|hour| !hour.is_new) && done.foreign.is_empty(), "{what}: {made:?}");
    due(&whole, &of_backlog, last);
    assert_same(&expected, &hours_of(&of_backlog, last), what);
    let problems = options(&of_hours).place.store.verify(Hour(0)..Hour(u32::MAX), None).expect("verified");
    assert_eq!(problems, [], "{what}");
    expected.len()
}

#[test]
fn an_hour_after_the_other_is_as_one_pass() {
    const RECORDINGS: u64 = 24;
    let mut compared = 0;
    for seed in 1..=RECORDINGS {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let files = recording(&mut chance, true);
        let lost_state = chance.one_in(3).then(|| FIRST + 1 + chance.below(u64::from(HOURS) - 1) as u32);
        compared += compare(&files, lost_state, &format!("seed {seed}"));
    }
    println!("hours one by one: {RECORDINGS} recordings, {compared} files");
    assert!(compared > 500, "{compared}");
}

/// Recorded markets as the files of a recorder.
#[test]
fn recorded_hours_one_by_one_are_as_one_pass() {
    const TAPES: usize = 3;
    let Some(path) = recorded("kalshi_ws") else { return };
    let place = tempfile::tempdir().expect("a folder");
    let mut events: Vec<PathBuf> =
        fs::read_dir(path.join("events")).expect("files").map(|entry| entry.expect("a file").path()).collect();
    events.sort_by_key(|file| fs::metadata(file).expect("a file").len());
    for file in events.iter().take(TAPES) {
        fs::copy(file, place.path().join(file.file_name().expect("a name"))).expect("a copy");
    }
    let mut tape = Tape::open(place.path(), false, Arc::default()).expect("a tape");
    let first = tape.next_at().expect("lines");
    let mut lines = Vec::new();
    for entry in fs::read_dir(path.join("metadata")).expect("files") {
        let text = fs::read_to_string(entry.expect("a file").path()).expect("a text");
        for (at, url, body) in lasting(&text, first) {
            let at = at.max(first).millis();
            lines.push((at, json!({"r": at, "v": UNNAMED.name(), "u": url, "s": 200, "b": body}).to_string()));
        }
    }
    while let Some(line) = tape.next_line() {
        lines.push((line.received.millis(), line.text.to_owned()));
    }
    lines.sort_by_key(|(at, _)| *at);
    let mut files: Vec<(u32, String, String)> = Vec::new();
    for (at, line) in &lines {
        let hour = Timestamp::from_millis(*at).hour();
        if files.last().is_none_or(|(last, ..)| *last != hour) {
            files.push((hour, name_of_hour(hour, 1), String::new()));
        }
        let text = &mut files.last_mut().expect("a file").2;
        text.push_str(line);
        text.push('\n');
    }
    let compared = compare(&files, None, "recorded");
    println!("recorded hours one by one: {} lines, {compared} files", lines.len());
    assert!(compared > 3 && lines.len() > 10_000, "{compared} files, {} lines", lines.len());
}

/// After each line of a recording: what is saved and restored translates the next lines as what goes on.
#[test]
fn restored_translators_continue() {
    let place = tempfile::tempdir().expect("a folder");
    let mut chance = Chance(7);
    let mut text = both_venues(1_788_000_000_000);
    for hour in 0..3 {
        text += &hour_lines(&mut chance, FIRST + 24 + hour).iter().map(|line| format!("{line}\n")).collect::<String>();
    }
    let path = place.path().join("tape.ndjson");
    fs::write(&path, &text).expect("a tape");
    let open = || Lines::open(&path, false, &Names::default(), &Arc::default()).expect("a tape");
    let (mut whole, mut steps, mut restored) = (open(), 0, 0);
    while let Some(at) = whole.line_at() {
        let saved = whole.save().expect("small");
        let part = Part {
            path: path.clone(),
            skip: whole.tape().taken().next().and_then(|of| of.1).unwrap_or(0),
            grows: false,
        };
        let again = Lines::of_parts(vec![part], &Names::default(), &Arc::default(), Some(&saved));
        let mut again = again.expect("it was saved");
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        whole.step(at, &mut expected);
        assert_eq!(again.line_at(), Some(at), "line {steps}");
        again.step(at, &mut found);
        assert_eq!(found, expected, "line {steps}");
        restored += expected.len();
        steps += 1;
    }
    println!("restored translators: {steps} lines, {restored} updates");
    assert!(steps > 100 && restored > 100, "{steps} {restored}");
}

#[test]
fn damaged_states_are_not_used() {
    let place = tempfile::tempdir().expect("a folder");
    let (folder, root) = (place.path().join("tape"), place.path().join("archive"));
    let files = recording(&mut Chance(3), true);
    write(&folder, &files, FIRST + 3);
    due(&folder, &root, FIRST + 3);
    let bytes = fs::read(root.join(NAME)).expect("a state");
    assert!(State::of(&bytes).is_some());
    let mut cases = 0;
    for at in (0..bytes.len()).step_by((bytes.len() / 300).max(1)) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x41;
        assert!(State::of(&flipped).is_none() && State::of(&bytes[..at]).is_none(), "byte {at}");
        // With a digest that fits it may be read, but nothing panics, and no length allocates more than it has.
        if at > MAGIC.len() + DIGEST_BYTES {
            let body = &flipped[MAGIC.len() + DIGEST_BYTES..];
            let digest = Sha256::digest(body);
            let file = [&MAGIC[..], &digest[..], body].concat();
            if let Some(state) = State::of(&file) {
                let _ = Lines::of_parts(Vec::new(), &Names::default(), &Arc::default(), Some(&state.lines));
            }
        }
        cases += 3;
    }
    // A damaged file costs a pass over the recording.
    fs::write(root.join(NAME), &bytes[..bytes.len() / 2]).expect("written");
    assert_eq!(reached(&root), None);
    let (made, _) = due(&folder, &root, FIRST + 3);
    assert!(!made.is_empty() && made.iter().all(|hour| !hour.is_new), "{made:?}");
    assert_eq!(fs::read(root.join(NAME)).expect("a state").len(), bytes.len());
    println!("damaged states: {cases} cases");
}

#[test]
fn late_and_foreign_hours_are_counted_and_stay() {
    let place = tempfile::tempdir().expect("a folder");
    let (folder, root) = (place.path().join("tape"), place.path().join("archive"));
    fs::create_dir_all(&folder).expect("a folder");
    let start = Timestamp::of_hour(FIRST).millis() + 30 * MINUTE / 1_000;
    let text = both_venues(start);
    fs::write(folder.join(name_of_hour(FIRST, 1)), &text).expect("a file");
    let (made, done) = due(&folder, &root, FIRST + 1);
    assert_eq!((made.len(), done.late), (2, 0), "{made:?}");
    let before = hours_of(&root, 0);
    // The clock was set back after the hour was made: its lines count for the next hour.
    let late: Vec<&str> = text.lines().filter(|line| line.contains("price_change") || line.contains("book")).collect();
    fs::write(folder.join(name_of_hour(FIRST, 2)), late.join("\n") + "\n").expect("a file");
    fs::write(folder.join(name_of_hour(FIRST + 1, 1)), both_venues(start + 3_600_000)).expect("a file");
    let (made, done) = due(&folder, &root, FIRST + 2);
    assert_eq!((made.len(), done.late), (2, late.len() as u64), "{made:?}");
    let after = hours_of(&root, FIRST + 1);
    assert_same(&before, &after, "made hours stay");
    // An hour from elsewhere is not replaced; one that was made of a part of the recording is.
    let partly = place.path().join("part.ndjson");
    fs::write(&partly, text.lines().take(8).map(|line| format!("{line}\n")).collect::<String>()).expect("a file");
    for (is_recorded, stays) in [(false, true), (true, false)] {
        let root = place.path().join(format!("kept-{is_recorded}"));
        let mut replacing = options(&root);
        replacing.place.is_recorded = is_recorded;
        assert!(built(&partly, &replacing).iter().all(|hour| hour.is_new));
        replacing.place.is_recorded = true;
        replacing.place.replaces_recorded = true;
        let mut made = Vec::new();
        let done = make_due(&folder, Hour(FIRST + 2), &replacing, &Names::default(), &Stop::new(), &mut |hour| {
            made.push(hour)
        });
        let done = done.expect("hours");
        assert_eq!(!done.foreign.is_empty(), stays, "{done:?}");
        assert_eq!(made.iter().filter(|hour| hour.hour == FIRST && hour.is_new).count() < 2, stays, "{made:?}");
    }
    println!("late and foreign hours: 4 cases");
}

#[test]
fn without_its_oldest_files_a_recording_goes_on_with_the_markets_of_the_archive() {
    let place = tempfile::tempdir().expect("a folder");
    let (folder, root) = (place.path().join("tape"), place.path().join("archive"));
    fs::create_dir_all(&folder).expect("a folder");
    let start = Timestamp::of_hour(FIRST).millis();
    fs::write(folder.join(name_of_hour(FIRST, 1)), both_venues(start)).expect("a file");
    due(&folder, &root, FIRST + 1);
    fs::remove_file(folder.join(name_of_hour(FIRST, 1))).expect("removed");
    fs::remove_file(root.join(NAME)).expect("removed");
    // Only books and changes: no line lists a market.
    let text = both_venues(start + 3_600_000);
    let is_listing = |line: &str| Record::parse(line).is_some_and(|record| matches!(record, Record::Answer { .. }));
    let lines: String = text.lines().filter(|line| !is_listing(line)).map(|line| format!("{line}\n")).collect();
    fs::write(folder.join(name_of_hour(FIRST + 1, 1)), lines).expect("a file");
    let (made, _) = due(&folder, &root, FIRST + 2);
    let rows: u64 = made.iter().filter(|hour| hour.hour == FIRST + 1).map(|hour| hour.rows).sum();
    assert!(made.len() == 2 && rows > 10, "{made:?}");
    println!("recordings without their begin: {rows} rows");
}
