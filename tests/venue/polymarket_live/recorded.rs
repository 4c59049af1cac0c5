//! Recorded messages of the venue, sent again by the stand-in.

use super::*;
use std::io::Read;
use std::path::PathBuf;
use tests::world::changed;

/// A file or folder of the recordings, or `None` after reporting that it is missing.
fn recording(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PAPERTAPE_VENUE_DATA");
    let root = root.map_or_else(|| tests::binary::workspace().join("../shared/data/venue"), PathBuf::from);
    let path = root.join(path);
    if path.exists() {
        return Some(path);
    }
    let required = std::env::var_os("PAPERTAPE_REQUIRE_VENUE_DATA").is_some_and(|value| value != "0");
    assert!(!required, "recordings are required and not at {}", path.display());
    tests::binary::skipped(&format!("no recording at {}", path.display()));
    None
}

fn recorded_windows() -> Option<Vec<Value>> {
    let file = std::fs::File::open(recording("polymarket_gamma/BTC-5m-markets-2026-07-24.jsonl.gz")?).expect("a file");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("a recording can be read");
    let row = |line: &str| serde_json::from_str::<Value>(line).expect("a line of JSON")["raw"].clone();
    Some(text.lines().take(40).map(row).collect())
}

#[test]
fn recorded_windows_end_as_they_did() {
    let cases = Cases::of("recorded windows");
    let Some(rows) = recorded_windows() else { return cases.one() };
    let (mut scene, ()) = Scene::start(|fake, _| {
        for row in &rows {
            let open = json!({"closed": false, "acceptingOrders": true, "outcomePrices": "[\"0.5\", \"0.5\"]",
                              "umaResolutionStatus": null, "automaticallyResolved": null});
            fake.list_row(changed(row, &open));
        }
    });
    let path = |row: &Value| format!("/v1/markets/{}", text(row, "/conditionId"));
    for row in &rows {
        eventually(text(row, "/slug"), || (scene.client.get(&path(row)).status == 200).then_some(()));
    }
    rows.iter().for_each(|row| scene.fake.list_row(row.clone()));
    for row in &rows {
        let winner = if text(row, "/outcomePrices").starts_with("[\"1\"") { "Up" } else { "Down" };
        eventually(text(row, "/slug"), || {
            let detail = scene.client.get(&path(row)).expect(200);
            (at(&detail, "/resolved_outcome") == winner).then_some(())
        });
        cases.one();
    }
}

/// Recorded messages in the order of this test. They are of all years, so none is dated: each counts from its arrival.
const MESSAGES: [&str; 13] = [
    "ws/book.json",
    "ws/price_change.json",
    "ws/last_trade_price.json",
    "test_data/ws_book_snapshot.json",
    "test_data/ws_quotes.json",
    "ws/price_change_v2.json",
    "test_data/ws_market_book_msg.json",
    "test_data/ws_market_price_change_msg.json",
    "test_data/ws_market_last_trade_msg.json",
    "test_data/ws_last_trade.json",
    "ws/tick_size_change.json",
    "test_data/ws_market_tick_size_msg.json",
    "test_data/ws_tick_size_change.json",
];

/// Levels of the books of these tokens as a server shows them.
fn books(client: &mut Client, tokens: &[String]) -> Vec<Value> {
    let book = |token: &String| {
        let answer = client.get(&format!("/v1/book?token_id={token}"));
        let book = answer.json();
        json!([at(&book, "/bids"), at(&book, "/asks"), at(&book, "/last_trade_price")])
    };
    tokens.iter().map(book).collect()
}

#[test]
fn recorded_messages_fold_live_as_they_replay() {
    let cases = Cases::of("recorded messages, live");
    let Some(folder) = recording("adapter_samples") else { return cases.one() };
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(folder.join(name)).expect("a sample");
        serde_json::from_str(&text.replace("\"timestamp\"", "\"recorded\"")).expect("JSON")
    };
    let messages = MESSAGES.map(read);
    // The two tokens of one recorded market; the complement of any other has no messages.
    let pair = [
        "71321045679252212594626385532706912750332728571942532289631379312455583992563",
        "52114319501245915516055106046884209969926127482827954674443846427813813222426",
    ];
    let mut markets = vec![Market { tokens: pair.map(String::from), ..Market::new(91) }];
    for message in &messages {
        let token = message["asset_id"].as_str().unwrap_or(pair[0]);
        if !markets.iter().any(|market| market.tokens[0] == token) {
            let market = Market::new(91 + markets.len() as u64);
            let tokens = [token.to_owned(), market.tokens[1].clone()];
            markets.push(Market { tokens, ..market });
        }
    }
    // The last one marks the arrival of all others.
    let last = Market::new(99);
    markets.push(last.clone());
    let tokens: Vec<String> = markets.iter().map(|market| market.tokens[0].clone()).chain([pair[1].into()]).collect();
    let book = |token: &String, bids: Value| json!({"event_type": "book", "asset_id": token, "bids": bids, "asks": []});
    // Changes follow a book; not all recorded changes came with theirs.
    let mut frames: Vec<Value> = tokens.iter().map(|token| book(token, json!([]))).collect();
    frames.extend(messages.iter().cloned());
    frames.push(book(&last.tokens[0], json!([{"price": "0.5", "size": "1"}])));

    let (mut scene, ()) = Scene::start(|fake, place| {
        // Nothing is requested meanwhile.
        place.set("venue", "silent_after_ms", "30000");
        fake.dumps(false);
        markets.iter().for_each(|market| fake.list_as(market, &format!("recorded-{}", market.number), json!({})));
    });
    eventually("their subscriptions", || {
        markets.iter().all(|market| scene.fake.subscriptions(market).0 == 1).then_some(())
    });
    frames.iter().for_each(|frame| scene.fake.say(&markets[0], &frame.to_string()));
    scene.shows(&last, "0.50", "none");
    let live = books(&mut scene.client, &tokens);
    let levels: usize = live.iter().map(|book| list(book, "/0").len() + list(book, "/1").len()).sum();
    assert!(levels > 100, "{levels} levels: {live:?}");

    let mut place = ServerDir::new();
    let tape = place.root().join("tape.ndjson");
    let rows: Vec<Value> = markets.iter().map(|market| scene.fake.row(market)).collect();
    let r = 1_788_000_000_000_u64;
    let mut lines = vec![json!({"r": r, "v": "polymarket", "u": "/markets", "s": 200, "b": rows})];
    let frame = |(number, frame): (usize, &Value)| json!({"r": r + 10 * (number as u64 + 1), "v": "polymarket", "c": "market-0", "m": frame});
    lines.extend(frames.iter().enumerate().map(frame));
    std::fs::write(&tape, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("a tape");
    place.set("venue", "kind", "\"replay\"");
    let key = place.seed(1, "enterprise", "1").remove(0).key;
    let server = place.start_with(&["--tape", tape.to_str().expect("a path"), "--speed", "max"], &[]);
    let mut replayed = server.with_key(&key);
    let end = books(&mut scene.client, &last.tokens[..1]);
    eventually("the end of the tape", || (books(&mut replayed, &last.tokens[..1]) == end).then_some(()));
    for ((token, live), replayed) in tokens.iter().zip(&live).zip(books(&mut replayed, &tokens)) {
        assert_eq!(*live, replayed, "{token}");
        cases.one();
    }
}
