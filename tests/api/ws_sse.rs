//! The price stream as server-sent events, and its companions (gateway/docs/streams.md §5).

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use tests::cases::Cases;
use tests::http::connect;
use tests::json::{at, list, text};
use tests::server::ServerDir;
use tests::world::World;

/// An open stream.
struct Stream {
    lines: BufReader<TcpStream>,
    head: String,
}

impl Stream {
    fn open(address: std::net::SocketAddr, path: &str, headers: &str) -> Stream {
        let mut stream = connect(address).expect("the server listens");
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept-Encoding: gzip\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).expect("the server takes a head");
        let mut stream = Stream { lines: BufReader::new(stream), head: String::new() };
        while !stream.head.ends_with("\r\n\r\n") {
            let line = stream.line();
            assert!(!line.is_empty(), "the stream ended inside its head");
            stream.head += &line;
        }
        stream
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line in time");
        line
    }

    /// The next line of the body, without the framing of chunks.
    fn text(&mut self) -> String {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "the stream ended");
            // Sizes of chunks and their ends are on lines that end in CR LF.
            if !line.ends_with("\r\n") {
                return line.trim_end_matches('\n').to_owned();
            }
        }
    }

    /// The next event; comments and other fields are skipped.
    fn event(&mut self) -> (String, Value) {
        loop {
            if let Some(name) = self.text().strip_prefix("event: ").map(str::to_owned) {
                let text = self.text();
                let payload = text.strip_prefix("data: ").unwrap_or_else(|| panic!("a payload: {text}"));
                return (name, serde_json::from_str(payload).unwrap_or_else(|error| panic!("{error}: {payload}")));
            }
        }
    }

    fn until(&mut self, name: &str) -> Value {
        loop {
            let (found, payload) = self.event();
            if found == name {
                return payload;
            }
        }
    }
}

#[test]
fn a_stream_begins_with_the_state_and_continues_with_changes() {
    let cases = Cases::of("streams of markets");
    let mut world = World::start(1);
    let (rain, vote) = (world.markets.rain.clone(), world.markets.vote.clone());
    let path = format!("/prices/stream?condition_ids={},0x00,{}&_=17", rain.condition, vote.condition);
    let mut stream = Stream::open(world.server.address(), &path, "");
    let head = stream.head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    for header in [
        "content-type: text/event-stream\r\n",
        "cache-control: no-cache, no-transform\r\n",
        "x-accel-buffering: no\r\n",
    ] {
        assert!(head.contains(header), "{header} in {head}");
        cases.one();
    }
    assert!(!head.contains("content-encoding"), "it is sent uncompressed");
    let padding = stream.text();
    assert!(padding.starts_with(": padding") && padding.len() >= 2_040, "{}", padding.len());
    assert_eq!(stream.text(), "");
    assert_eq!(stream.text(), "retry: 2000");
    let (name, snapshot) = stream.event();
    assert_eq!((name.as_str(), &snapshot["crypto"]), ("snapshot", &json!({})));
    let markets = snapshot["markets"].as_object().expect("an object");
    assert_eq!(markets.len(), 2);
    let price = &markets[&rain.condition];
    assert_eq!((text(price, "/type"), text(price, "/best_bid"), text(price, "/best_ask")), ("price", "0.41", "0.42"));
    cases.one();

    world.tape.level(&rain, 0, "BUY", "0.41", "0");
    let price = stream.until("market_price");
    assert_eq!((text(&price, "/condition_id"), text(&price, "/best_bid")), (rain.condition.as_str(), "0.40"));
    assert!(price.get("type").is_none() && price.get("seq").is_none(), "{price}");
    let (name, book) = stream.event();
    let shown = world.public().get(&format!("/v1/book?token_id={}", rain.yes())).expect(200);
    assert_eq!(name, "orderbook");
    for (field, expected) in [
        ("condition_id", &json!(rain.condition)),
        ("token_id", &json!(rain.yes())),
        ("bids", &shown["bids"]),
        ("asks", &shown["asks"]),
        ("timestamp", &shown["timestamp"]),
        ("hash", &shown["hash"]),
    ] {
        assert_eq!(&book[field], expected, "{field}");
    }
    let (name, book) = stream.event();
    assert_eq!((name.as_str(), text(&book, "/token_id")), ("orderbook", rain.no()));
    cases.one();

    // At most ten levels a side, the best ones.
    let levels: Vec<String> = (10..30).map(|cents| format!("0.{cents}")).collect();
    let bids: Vec<(&str, &str)> = levels.iter().map(|price| (price.as_str(), "5")).collect();
    world.tape.book(&rain, 0, &bids, &[("0.5", "1")]);
    let book = loop {
        let book = stream.until("orderbook");
        if text(&book, "/token_id") == rain.yes() && list(&book, "/asks").len() == 1 {
            break book;
        }
    };
    assert_eq!((list(&book, "/bids").len(), at(&book, "/bids/9/price")), (10, &json!("0.29")));
    cases.one();

    // A heartbeat.
    let alive = stream.until("keepalive");
    assert!(alive["ts"].is_u64() && alive["n"].is_u64());
    cases.one();
}

#[test]
fn batches_come_to_those_in_the_background() {
    let mut world = World::start(1);
    let rain = world.markets.rain.clone();
    let path = format!("/v1/prices/stream?condition_ids={}&background=true", rain.condition);
    let mut stream = Stream::open(world.server.address(), &path, "");
    assert_eq!(stream.event().0, "snapshot");
    world.tape.level(&rain, 0, "BUY", "0.41", "0");
    let batch = stream.until("market_price_batch");
    assert_eq!((&batch["count"], text(&batch, "/updates/0/best_bid")), (&json!(1), "0.40"));
    let (name, books) = stream.event();
    assert_eq!((name.as_str(), &books["count"], list(&books, "/updates").len()), ("orderbook_batch", &json!(2), 2));
    println!("batches: 2 cases");
}

/// The synthetic venue's own underlying is the only source of spot prices.
#[test]
fn symbols_with_a_source_are_sent() {
    let cases = Cases::of("spot prices");
    let place = ServerDir::new();
    let server = place.start();
    let mut stream =
        Stream::open(server.address(), "/prices/stream?crypto=BTCUSDT,eth,DOGE,btc&crypto_source=chainlink", "");
    let snapshot = stream.until("snapshot");
    let symbols: Vec<&String> = snapshot["crypto"].as_object().expect("an object").keys().collect();
    assert_eq!(symbols, ["BTC", "ETH"]);
    for _ in 0..4 {
        let price = stream.until("crypto_price");
        assert!(["BTC", "ETH"].contains(&text(&price, "/symbol")), "{price}");
        assert!(price["price"].as_f64().is_some_and(|price| price > 100.0), "{price}");
        assert_eq!((text(&price, "/source"), price.as_object().map(|o| o.len())), ("chainlink", Some(4)));
        cases.one();
    }
    let mut batches = Stream::open(server.address(), "/prices/stream?crypto=SOL,XRP&background=true", "");
    let batch = batches.until("crypto_price_batch");
    assert_eq!((&batch["count"], list(&batch, "/updates").len()), (&json!(2), 2));
    cases.one();
    // A family without a source.
    let mut silent = Stream::open(server.address(), "/prices/stream?crypto=BTC&crypto_source=binance", "");
    assert_eq!(silent.until("snapshot")["crypto"], json!({}));
    assert_eq!(silent.event().0, "keepalive");
    cases.one();
    tests::description::watch();
    let all = server.client().get("/v1/prices/live").expect(200);
    assert_eq!(all["supported_symbols"], json!(["BTC", "ETH", "SOL", "XRP"]));
    for symbol in ["BTC", "ethusdt", "sol%2Fusd", "XRP"] {
        server.client().get(&format!("/v1/prices/live/{symbol}")).expect(200);
        cases.one();
    }
    server.client().get("/v1/prices/live/DOGE").refused(404, "NOT_FOUND");
    server.client().get("/v1/prices/live/BTC?source=binance").refused(404, "NOT_FOUND");
    // An open window has its price to beat.
    let key = server.demo_key().expect("a first start");
    let windows = server.with_key(&key).get("/v1/markets/updown?interval=1H").expect(200);
    let open = list(&windows, "/markets").iter().find(|row| row["event_metadata_ptb"].is_string());
    let open = open.expect("an hour's window is always open");
    let condition = text(open, "/condition_id");
    let to_beat = server.client().get(&format!("/prices/ptb/{condition}")).expect(200);
    assert_eq!((&to_beat["asset"], &to_beat["start_date"]), (&open["asset"], &open["start_date"]));
    let expected: f64 = text(open, "/event_metadata_ptb").parse().expect("a number");
    assert_eq!(to_beat["price"].as_f64(), Some(expected));
    cases.one();
}

#[test]
fn streams_are_counted_by_address_and_by_key() {
    let cases = Cases::of("caps of streams");
    let world = World::start_with(1, |place| {
        place.set("limits", "meter_loopback", "true");
        place.set("limits", "public_ip_per_second", "100000").set("limits", "public_ip_per_minute", "1000000");
    });
    let path = format!("/prices/stream?condition_ids={}", world.markets.rain.condition);
    let address = world.server.address();
    let mut open: Vec<Stream> = (0..5).map(|_| Stream::open(address, &path, "")).collect();
    assert!(open.iter().all(|stream| stream.head.starts_with("HTTP/1.1 200 ")));
    let refused = Stream::open(address, &path, "");
    assert!(refused.head.starts_with("HTTP/1.1 429 "), "{}", refused.head);
    cases.one();
    // With a key its tier's cap counts.
    let made = world.server.with_token(&tests::token::token("free")).post("/v1/keys/bootstrap", &json!({})).expect(201);
    let key = format!("X-API-Key: {}\r\n", text(&made, "/raw_key"));
    let keyed = Stream::open(address, &path, &key);
    assert!(keyed.head.starts_with("HTTP/1.1 200 "), "{}", keyed.head);
    let refused = Stream::open(address, &path, &key);
    assert!(refused.head.starts_with("HTTP/1.1 429 "), "{}", refused.head);
    cases.one();
    // One that ends makes room.
    open.pop();
    let again = tests::eventually("room for a stream", || {
        Some(Stream::open(address, &path, "")).filter(|stream| stream.head.starts_with("HTTP/1.1 200 "))
    });
    drop(again);
    cases.one();
}

#[test]
fn a_stream_ends_with_its_server() {
    let world = World::start(1);
    let path = format!("/prices/stream?condition_ids={}", world.markets.rain.condition);
    let mut stream = Stream::open(world.server.address(), &path, "");
    stream.until("snapshot");
    let output = world.server.stop();
    assert!(!output.contains("did not end in time"), "{output}");
    println!("ended streams: 1 case");
}
