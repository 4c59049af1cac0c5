//! The protocol of a socket without a connection and with a paused clock.

use super::books::{Books, Change, Hint};
use super::crawl::StatusQueue;
use super::signer::Signer;
use super::{Settings, encoded};
use crate::live::{Pace, Protocol};
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

/// The state of a socket and the texts that it sent.
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

    /// An open socket with these markets, subscriptions 1 (books), 2 (trades), 3 (lifecycle), and a snapshot of each
    /// market.
    fn following(tickers: &[&str]) -> World {
        let mut world = World::new();
        for ticker in tickers {
            world.change(Change::Add(vec![(*ticker).into()]));
        }
        world.books.open(&mut world.out);
        let sent = world.sent();
        for command in &sent {
            let channel = command["params"]["channels"][0].as_str().unwrap();
            let sid = ["orderbook_delta", "trade", "market_lifecycle_v2"].iter().position(|name| *name == channel);
            let sid = sid.unwrap() + 1;
            world.receive(&json!({"type": "subscribed", "id": command["id"], "msg": {"channel": channel, "sid": sid}}));
        }
        for (at, ticker) in tickers.iter().enumerate() {
            world.book(ticker, at as u64 + 1);
        }
        assert_eq!(world.sent(), [] as [Value; 0]);
        world
    }

    fn receive(&mut self, message: &Value) {
        self.books.receive(&message.to_string(), &mut self.out).unwrap();
    }

    fn book(&mut self, ticker: &str, seq: u64) {
        self.receive(&json!({"type": "orderbook_snapshot", "sid": 1, "seq": seq, "msg": {"market_ticker": ticker}}));
    }

    fn delta(&mut self, ticker: &str, seq: u64) {
        self.receive(&json!({"type": "orderbook_delta", "sid": 1, "seq": seq, "msg": {"market_ticker": ticker}}));
    }

    fn change(&mut self, change: Change) {
        self.books.change(change, &mut self.out);
    }

    fn sent(&mut self) -> Vec<Value> {
        self.out.drain(..).map(|text| serde_json::from_str(&text).unwrap()).collect()
    }

    /// The sent commands, as `channel-or-action subscription tickers`.
    fn brief(&mut self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let brief = |command: &Value| {
            let params = &command["params"];
            let mut tickers: Vec<String> =
                params["market_tickers"].as_array().into_iter().flatten().map(text).collect();
            tickers.sort();
            let name = if params["action"].is_null() { text(&params["channels"][0]) } else { text(&params["action"]) };
            format!("{name} {} {}", params["sids"][0], tickers.join(","))
        };
        self.sent().iter().map(brief).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn markets_are_subscribed_in_parts_once_the_subscription_has_a_number() {
    let mut world = World::new();
    assert!(!world.books.is_subscribed());
    for number in 0..450 {
        world.change(Change::Add(vec![format!("M{number:03}")]));
    }
    assert!(world.books.is_subscribed() && world.out.is_empty(), "texts before the socket is open");
    world.books.open(&mut world.out);
    let sent = world.sent();
    let shape = |sent: &[Value]| -> Vec<(String, usize)> {
        sent.iter()
            .map(|command| {
                let params = &command["params"];
                let name = [&params["channels"][0], &params["action"]].into_iter().find_map(Value::as_str).unwrap();
                (name.to_owned(), params["market_tickers"].as_array().map_or(0, Vec::len))
            })
            .collect()
    };
    let expected = [("market_lifecycle_v2", 0), ("orderbook_delta", 200), ("trade", 200)];
    assert_eq!(shape(&sent), expected.map(|(name, count)| (name.to_owned(), count)));
    world.change(Change::Add(vec!["M450".into()]));
    assert_eq!(world.sent(), [] as [Value; 0], "the number of the subscription is not known yet");
    world.receive(&json!({"type": "subscribed", "id": sent[1]["id"], "msg": {"channel": "orderbook_delta", "sid": 7}}));
    let more = world.sent();
    assert_eq!(shape(&more), [("add_markets".to_owned(), 200), ("add_markets".to_owned(), 51)]);
    assert!(more.iter().all(|command| command["params"]["sids"] == json!([7])), "{more:?}");
    world.receive(&json!({"type": "subscribed", "id": sent[2]["id"], "msg": {"channel": "trade", "sid": 8}}));
    world.sent();
    world.change(Change::Remove("M450".into()));
    assert_eq!(world.brief(), ["delete_markets 7 M450", "delete_markets 8 M450"]);
}

#[tokio::test(start_paused = true)]
async fn lost_books_are_requested_again() {
    let mut world = World::following(&["A", "B"]);
    // Numbers that continue, repeat, or belong to other subscriptions or responses.
    world.delta("A", 3);
    world.delta("A", 3);
    world.receive(&json!({"type": "ok", "id": 99, "sid": 1, "seq": 2, "msg": {}}));
    world.receive(&json!({"type": "trade", "sid": 2, "seq": 10, "msg": {"market_ticker": "A"}}));
    world.receive(&json!({"type": "trade", "sid": 2, "seq": 12, "msg": {"market_ticker": "A"}}));
    assert_eq!((world.brief(), world.books.missed()), (Vec::new(), None));
    // A gap loses both books, and the recording gets one gap line.
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
    assert_eq!(world.brief(), [""; 0], "requested twice");
    // A missing response is requested again.
    tokio::time::advance(world.pace.silent_after / 4).await;
    world.change(Change::Tick);
    assert_eq!(world.brief(), ["get_snapshot 1 B"]);
    world.book("B", 8);
    world.change(Change::Tick);
    assert_eq!(world.brief(), [""; 0]);
    // When nothing arrives, one book is requested, so that silence means a dead connection.
    tokio::time::advance(world.pace.silent_after / 2).await;
    world.change(Change::Tick);
    let requested = world.brief();
    assert!(requested == ["get_snapshot 1 A"] || requested == ["get_snapshot 1 B"], "{requested:?}");
    // Repeated gaps break the connection.
    let mut broken = false;
    for seq in (10..40).step_by(2) {
        let delta = json!({"type": "orderbook_delta", "sid": 1, "seq": seq, "msg": {"market_ticker": "A"}});
        broken |= world.books.receive(&delta.to_string(), &mut world.out).is_err();
    }
    assert!(broken);
    // A new connection starts with new numbers and all markets.
    world.out.clear();
    world.books.open(&mut world.out);
    assert_eq!(world.brief(), ["market_lifecycle_v2 null ", "orderbook_delta null A,B", "trade null A,B"]);
}

#[tokio::test(start_paused = true)]
async fn errors_are_handled_by_their_code() {
    // The code of an error to the first subscription of books, the commands sent after it, and whether the connection
    // ends.
    for (code, sent, ends) in [
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
        let commands = world.sent();
        let error = json!({"type": "error", "id": commands[1]["id"], "msg": {"code": code, "msg": "no"}});
        let ended = world.books.receive(&error.to_string(), &mut world.out).is_err();
        assert_eq!((world.brief(), ended), (sent.iter().map(ToString::to_string).collect(), ends), "{code}");
        assert_eq!(world.books.is_subscribed(), code != 8, "{code}");
    }
    // A channel that the venue does not offer is left out.
    let mut world = World::new();
    world.change(Change::Add(vec!["A".into()]));
    world.books.open(&mut world.out);
    let commands = world.sent();
    world.receive(&json!({"type": "error", "id": commands[2]["id"], "msg": {"code": 8, "msg": "no"}}));
    world.receive(&json!({"type": "error", "msg": {"code": 5, "msg": "name?"}}));
    world.receive(&json!({"type": "error", "id": "x", "msg": "text"}));
    world.change(Change::Add(vec!["B".into()]));
    world.receive(&json!({"type": "subscribed", "id": commands[1]["id"], "msg": {"sid": 1}}));
    assert_eq!(world.brief(), ["add_markets 1 B"]);
    println!("errors: 9 cases");
}

#[tokio::test(start_paused = true)]
async fn a_refused_market_does_not_affect_the_others() {
    let mut world = World::following(&["A"]);
    world.change(Change::Add(vec!["BAD".into()]));
    let sent = world.sent();
    assert_eq!(sent.len(), 2, "{sent:?}");
    for command in &sent {
        world.receive(&json!({"type": "error", "id": command["id"], "msg": {"code": 16, "msg": "market not found"}}));
    }
    assert_eq!(world.brief(), [""; 0]);
    world.change(Change::Tick);
    assert_eq!(world.brief(), [""; 0], "retried too early");
    tokio::time::advance(world.pace.silent_after).await;
    world.delta("A", 2);
    world.change(Change::Tick);
    assert_eq!(world.brief(), ["add_markets 1 BAD", "add_markets 2 BAD"]);
    // A snapshot without a subscription would never change.
    world.change(Change::Resync("BAD".into()));
    assert_eq!(world.brief(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn lifecycle_messages_become_hints() {
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
        world.receive(message);
        assert_eq!(world.hints.try_recv().ok(), *hint, "{message}");
    }
    // The translator handles unreadable messages; a change without a market affects all books.
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
        assert_eq!(world.books.receive(text, &mut world.out).is_err(), ends, "{text}");
    }
    println!("hints: {} cases", cases.len() + 8);
}

#[test]
fn a_status_call_names_each_market_once_and_fits_its_length() {
    let status = StatusQueue::default();
    let tickers: Vec<String> = (0..500).map(|number| format!("KXLONGISH-26NOV22-{number:03} &")).collect();
    status.push(tickers.iter().cloned());
    status.push(tickers.iter().cloned());
    let (mut named, mut calls) = (0, 0);
    while let Some(path) = status.next() {
        assert!(path.len() <= 2_000 && !path.contains([' ', '&']) || path.contains("&tickers="), "{path}");
        named += path.split(',').count();
        calls += 1;
    }
    assert_eq!(named, 500);
    assert!(calls > 5, "{calls}");
    for (text, expected) in [("KXA-1.5_x~", "KXA-1.5_x~"), ("a b/ü&", "a%20b%2F%C3%BC%26"), ("", "")] {
        assert_eq!(encoded(text), expected);
    }
    println!("status: {calls} calls");
}
