//! What a socket says, driven by hand: no connection, no clock but the paused one.

use super::books::{Books, Change, Hint};
use super::crawl::Questions;
use super::signer::Signer;
use super::{Settings, encoded};
use crate::live::{Pace, Talk};
use engine::time::Timestamp;
use host::clock::Clock;
use rsa::pkcs8::{EncodePrivateKey, LineEnding};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

fn signer() -> Signer {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.pem");
    let private = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1_024).unwrap();
    std::fs::write(&file, private.to_pkcs8_pem(LineEnding::LF).unwrap()).unwrap();
    let settings = Settings { key_id: Some("k".into()), private_key_file: Some(file), ..Settings::default() };
    settings.signer().unwrap().unwrap()
}

/// A conversation and what it said.
struct World {
    books: Books,
    hints: UnboundedReceiver<Hint>,
    out: Vec<String>,
    pace: Pace,
}

impl World {
    fn new() -> World {
        let (sender, hints) = unbounded_channel();
        let (clock, pace) = (Clock::fake(Timestamp::from_secs(1_788_000_000)), Pace::default());
        let books = Books::new("wss://h/trade-api/ws/v2", Arc::new(signer()), clock, pace, true, sender);
        World { books, hints, out: Vec::new(), pace }
    }

    /// Opened with these markets, subscriptions 1 (books), 2 (trades), 3 (lifecycle), and a book of each.
    fn following(tickers: &[&str]) -> World {
        let mut world = World::new();
        for ticker in tickers {
            world.change(Change::Add(vec![(*ticker).into()]));
        }
        world.books.open(&mut world.out);
        let said = world.said();
        for command in &said {
            let channel = command["params"]["channels"][0].as_str().unwrap();
            let sid = ["orderbook_delta", "trade", "market_lifecycle_v2"].iter().position(|name| *name == channel);
            let sid = sid.unwrap() + 1;
            world.hear(&json!({"type": "subscribed", "id": command["id"], "msg": {"channel": channel, "sid": sid}}));
        }
        for (at, ticker) in tickers.iter().enumerate() {
            world.book(ticker, at as u64 + 1);
        }
        assert_eq!(world.said(), [] as [Value; 0]);
        world
    }

    fn hear(&mut self, message: &Value) {
        self.books.hear(&message.to_string(), &mut self.out).unwrap();
    }

    fn book(&mut self, ticker: &str, seq: u64) {
        self.hear(&json!({"type": "orderbook_snapshot", "sid": 1, "seq": seq, "msg": {"market_ticker": ticker}}));
    }

    fn delta(&mut self, ticker: &str, seq: u64) {
        self.hear(&json!({"type": "orderbook_delta", "sid": 1, "seq": seq, "msg": {"market_ticker": ticker}}));
    }

    fn change(&mut self, change: Change) {
        self.books.change(change, &mut self.out);
    }

    fn said(&mut self) -> Vec<Value> {
        self.out.drain(..).map(|text| serde_json::from_str(&text).unwrap()).collect()
    }

    /// What was said, as `command channel-or-action tickers`.
    fn brief(&mut self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let brief = |command: &Value| {
            let params = &command["params"];
            let mut tickers: Vec<String> =
                params["market_tickers"].as_array().into_iter().flatten().map(text).collect();
            tickers.sort();
            let what = if params["action"].is_null() { text(&params["channels"][0]) } else { text(&params["action"]) };
            format!("{what} {} {}", params["sids"][0], tickers.join(","))
        };
        self.said().iter().map(brief).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn markets_are_subscribed_in_pieces_once_the_venue_named_the_subscription() {
    let mut world = World::new();
    assert!(!world.books.listens());
    for number in 0..450 {
        world.change(Change::Add(vec![format!("M{number:03}")]));
    }
    assert!(world.books.listens() && world.out.is_empty(), "it is not open");
    world.books.open(&mut world.out);
    let said = world.said();
    let shape = |said: &[Value]| -> Vec<(String, usize)> {
        said.iter()
            .map(|command| {
                let params = &command["params"];
                let what = [&params["channels"][0], &params["action"]].into_iter().find_map(Value::as_str).unwrap();
                (what.to_owned(), params["market_tickers"].as_array().map_or(0, Vec::len))
            })
            .collect()
    };
    let expected = [("market_lifecycle_v2", 0), ("orderbook_delta", 200), ("trade", 200)];
    assert_eq!(shape(&said), expected.map(|(what, count)| (what.to_owned(), count)));
    world.change(Change::Add(vec!["M450".into()]));
    assert_eq!(world.said(), [] as [Value; 0], "it waits for the number");
    world.hear(&json!({"type": "subscribed", "id": said[1]["id"], "msg": {"channel": "orderbook_delta", "sid": 7}}));
    let more = world.said();
    assert_eq!(shape(&more), [("add_markets".to_owned(), 200), ("add_markets".to_owned(), 51)]);
    assert!(more.iter().all(|command| command["params"]["sids"] == json!([7])), "{more:?}");
    world.hear(&json!({"type": "subscribed", "id": said[2]["id"], "msg": {"channel": "trade", "sid": 8}}));
    world.said();
    world.change(Change::Remove("M450".into()));
    assert_eq!(world.brief(), ["delete_markets 7 M450", "delete_markets 8 M450"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_missed_is_asked_for_anew() {
    let mut world = World::following(&["A", "B"]);
    // Numbers that go on, repeat, and belong to other subscriptions or answers.
    world.delta("A", 3);
    world.delta("A", 3);
    world.hear(&json!({"type": "ok", "id": 99, "sid": 1, "seq": 2, "msg": {}}));
    world.hear(&json!({"type": "trade", "sid": 2, "seq": 10, "msg": {"market_ticker": "A"}}));
    world.hear(&json!({"type": "trade", "sid": 2, "seq": 12, "msg": {"market_ticker": "A"}}));
    assert_eq!((world.brief(), world.books.missed()), (Vec::new(), None));
    // A hole loses both, and the recording is told so, once.
    tokio::time::advance(world.pace.retry_first).await;
    world.delta("A", 5);
    assert_eq!(world.brief(), ["get_snapshot 1 A,B"]);
    assert_eq!([world.books.missed(), world.books.missed()], [Some("sequence gap"), None]);
    world.book("A", 6);
    world.book("B", 7);
    tokio::time::advance(world.pace.retry_first).await;
    world.change(Change::Resync("B".into()));
    assert_eq!(world.brief(), ["get_snapshot 1 B"]);
    world.change(Change::Resync("B".into()));
    world.change(Change::Resync("UNKNOWN".into()));
    assert_eq!(world.brief(), [""; 0], "not twice at once");
    // What does not come is asked for again.
    tokio::time::advance(world.pace.silent_after / 4).await;
    world.change(Change::Look);
    assert_eq!(world.brief(), ["get_snapshot 1 B"]);
    world.book("B", 8);
    world.change(Change::Look);
    assert_eq!(world.brief(), [""; 0]);
    // Where nothing comes, one book is asked for, so that silence means death.
    tokio::time::advance(world.pace.silent_after / 2).await;
    world.change(Change::Look);
    let asked = world.brief();
    assert!(asked == ["get_snapshot 1 A"] || asked == ["get_snapshot 1 B"], "{asked:?}");
    // Holes without an end break the connection.
    let mut broken = false;
    for seq in (10..40).step_by(2) {
        let delta = json!({"type": "orderbook_delta", "sid": 1, "seq": seq, "msg": {"market_ticker": "A"}});
        broken |= world.books.hear(&delta.to_string(), &mut world.out).is_err();
    }
    assert!(broken);
    // And a new one begins with new numbers and all markets.
    world.out.clear();
    world.books.open(&mut world.out);
    assert_eq!(world.brief(), ["market_lifecycle_v2 null ", "orderbook_delta null A,B", "trade null A,B"]);
}

#[tokio::test(start_paused = true)]
async fn errors_are_answered_by_their_number() {
    // An error to the first subscription of books, what is said then, and whether the connection ends.
    for (code, said, ends) in [
        (6, vec![], true),
        (7, vec![], true),
        (8, vec![], true),
        (9, vec![], true),
        (16, vec!["orderbook_delta null A,B"], false),
        (17, vec!["orderbook_delta null A,B"], false),
    ] {
        let mut world = World::new();
        for ticker in ["A", "B", "C", "D"] {
            world.change(Change::Add(vec![ticker.into()]));
        }
        world.books.open(&mut world.out);
        let commands = world.said();
        let error = json!({"type": "error", "id": commands[1]["id"], "msg": {"code": code, "msg": "no"}});
        let ended = world.books.hear(&error.to_string(), &mut world.out).is_err();
        assert_eq!((world.brief(), ended), (said.iter().map(ToString::to_string).collect(), ends), "{code}");
        assert_eq!(world.books.listens(), code != 8, "{code}");
    }
    // A channel that the venue does not have is gone without.
    let mut world = World::new();
    world.change(Change::Add(vec!["A".into()]));
    world.books.open(&mut world.out);
    let commands = world.said();
    world.hear(&json!({"type": "error", "id": commands[2]["id"], "msg": {"code": 8, "msg": "no"}}));
    world.hear(&json!({"type": "error", "msg": {"code": 5, "msg": "what?"}}));
    world.hear(&json!({"type": "error", "id": "x", "msg": "text"}));
    world.change(Change::Add(vec!["B".into()]));
    world.hear(&json!({"type": "subscribed", "id": commands[1]["id"], "msg": {"sid": 1}}));
    assert_eq!(world.brief(), ["add_markets 1 B"]);
    println!("errors: 9 cases");
}

#[tokio::test(start_paused = true)]
async fn a_market_that_the_venue_does_not_take_leaves_the_others_alone() {
    let mut world = World::following(&["A"]);
    world.change(Change::Add(vec!["BAD".into()]));
    let said = world.said();
    assert_eq!(said.len(), 2, "{said:?}");
    for command in &said {
        world.hear(&json!({"type": "error", "id": command["id"], "msg": {"code": 16, "msg": "market not found"}}));
    }
    assert_eq!(world.brief(), [""; 0]);
    world.change(Change::Look);
    assert_eq!(world.brief(), [""; 0], "not at once again");
    tokio::time::advance(world.pace.silent_after).await;
    world.delta("A", 2);
    world.change(Change::Look);
    assert_eq!(world.brief(), ["add_markets 1 BAD", "add_markets 2 BAD"]);
    // A book of it alone would never change.
    world.change(Change::Resync("BAD".into()));
    assert_eq!(world.brief(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn lifecycle_messages_hint_at_what_should_be_asked() {
    let mut world = World::following(&["A"]);
    let lifecycle = |kind: &str, more: Value| {
        let mut msg = json!({"market_ticker": "T", "event_type": kind});
        msg.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": "market_lifecycle_v2", "sid": 3, "msg": msg})
    };
    let metadata = json!({"additional_metadata": {"event_ticker": "E", "title": "New?"}});
    let event = json!({"type": "event_lifecycle", "sid": 3, "msg": {"event_ticker": "E2"}});
    let cases = [
        (lifecycle("created", metadata), Some(Hint::Event("E".into()))),
        (lifecycle("created", json!({})), None),
        (lifecycle("activated", json!({})), None),
        (lifecycle("close_date_updated", json!({})), None),
        (lifecycle("determined", json!({})), Some(Hint::Market("T".into()))),
        (lifecycle("settled", json!({})), Some(Hint::Market("T".into()))),
        (lifecycle("price_level_structure_updated", json!({})), Some(Hint::Market("T".into()))),
        (event, Some(Hint::Event("E2".into()))),
    ];
    for (message, hint) in &cases {
        world.hear(message);
        assert_eq!(world.hints.try_recv().ok(), *hint, "{message}");
    }
    // What cannot be read is left to the translator; a change without a market spoils all books.
    for (text, ends) in [
        ("", false),
        ("{", false),
        ("[]", false),
        ("[{\"type\":7}]", false),
        ("{\"type\":\"orderbook_delta\",\"msg\":[]}", true),
        ("[{\"type\":\"orderbook_delta\",\"msg\":{\"market_ticker\":\"\"}}]", true),
        ("{\"type\":\"orderbook_snapshot\",\"sid\":{},\"seq\":1e400,\"msg\":null}", false),
        ("{\"type\":\"error\",\"id\":-1,\"msg\":{\"code\":[]}}", false),
    ] {
        assert_eq!(world.books.hear(text, &mut world.out).is_err(), ends, "{text}");
    }
    println!("hints: {} cases", cases.len() + 8);
}

#[test]
fn questions_name_each_market_once_and_fit_a_call() {
    let questions = Questions::default();
    let tickers: Vec<String> = (0..500).map(|number| format!("KXLONGISH-26NOV22-{number:03} &")).collect();
    questions.ask(tickers.iter().cloned());
    questions.ask(tickers.iter().cloned());
    let (mut named, mut calls) = (0, 0);
    while let Some(path) = questions.next() {
        assert!(path.len() <= 2_000 && !path.contains([' ', '&']) || path.contains("&tickers="), "{path}");
        named += path.split(',').count();
        calls += 1;
    }
    assert_eq!(named, 500);
    assert!(calls > 5, "{calls}");
    for (text, expected) in [("KXA-1.5_x~", "KXA-1.5_x~"), ("a b/ü&", "a%20b%2F%C3%BC%26"), ("", "")] {
        assert_eq!(encoded(text), expected);
    }
    println!("questions: {calls} calls");
}
