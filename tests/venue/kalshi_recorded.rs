//! A recorded quarter of an hour, sent again by the stand-in: the books of the live adapter equal those of a replay,
//! and those of the test.

use crate::fake_kalshi::{Fake, scaled};
use crate::kalshi_live::{Scene, expected, listed, right, shown};
use crate::kalshi_tape::tapes;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use tests::cases::Cases;
use tests::eventually;
use tests::server::ServerDir;

/// Messages of the recording that are sent.
const MESSAGES_MAX: usize = 25_000;

/// The recorded messages of the smallest whole tape, with their times.
fn messages(folder: &Path) -> Vec<(u64, Value)> {
    let files = fs::read_dir(folder.join("events")).expect("tapes").map(|entry| entry.expect("an entry"));
    let size = |file: &fs::DirEntry| file.metadata().expect("metadata").len();
    let smallest = files.filter(|file| size(file) > 100_000).min_by_key(size).expect("a tape");
    let lines = BufReader::new(GzDecoder::new(File::open(smallest.path()).expect("a tape"))).lines();
    let row = |line: std::io::Result<String>| -> (u64, Value) {
        let mut row: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        (row["recv_ms"].as_u64().expect("a time"), row["event"].take())
    };
    lines.filter(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).map(row).take(MESSAGES_MAX).collect()
}

#[test]
fn a_recorded_tape_folds_live_as_it_replays() {
    let cases = Cases::of("a recorded tape, live");
    let Some(folder) = tapes() else { return cases.one() };
    let messages = messages(&folder);
    let ticker = messages[0].1["msg"]["market_ticker"].as_str().expect("a ticker").to_owned();
    let event = ticker.rsplit_once('-').expect("an event").0.to_owned();
    let fake = Fake::start();
    fake.event(&event, "Gold in 15 minutes", Some("Commodities"));
    fake.market(&event, &ticker, json!({}));
    let scene = Scene::start(fake, true, |_| {});
    let (fake, mut client) = (&scene.fake, scene.client());
    listed(&mut client, &ticker);
    right(&mut client, fake, &ticker, "at first");
    for (number, (_, message)) in messages.iter().enumerate() {
        fake.retell(&ticker, message);
        if number % 5_000 == 4_999 {
            right(&mut client, fake, &ticker, &format!("after message {number}"));
        }
    }
    right(&mut client, fake, &ticker, "at last");
    assert_eq!(fake.sockets().1, 1, "one connection brought it all");
    cases.add(messages.len());

    let mut place = ServerDir::new();
    let tape = place.root().join("tape.ndjson");
    let mut lines = vec![json!({"r": messages[0].0, "v": "kalshi", "u": format!("/events/{event}"), "s": 200,
        "b": fake.event_answer(&event)})];
    lines.extend(messages.iter().map(|(r, message)| json!({"r": r, "v": "kalshi", "c": "kalshi-0", "m": message})));
    fs::write(&tape, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("a tape");
    place.set("venue", "kind", "\"replay\"");
    let key = place.seed(1, "enterprise", "1").remove(0).key;
    let server = place.start_with(&["--tape", tape.to_str().expect("a path"), "--speed", "max"], &[]);
    let mut replayed = server.with_key(&key);
    let books = expected(&fake.bids(&ticker));
    assert!(books.iter().flatten().all(|side| !side.is_empty()), "{books:?}");
    eventually("the replay", || shown(&mut replayed, &ticker).filter(|(shown, _)| *shown == books));
    cases.one();
    assert_eq!(scaled("-12.34", 2), -1_234);
}
