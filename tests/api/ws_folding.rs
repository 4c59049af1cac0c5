//! Folding the frames of the market channel gives the book that REST returns, at any load and for any reader
//! (gateway/docs/streams.md §1.6).

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tests::chance::Chance;
use tests::json::{list, micros, text};
use tests::socket::Socket;
use tests::tape::Market;
use tests::world::World;

/// Changes in one batch: more than the queue of a thread holds.
const BURST: usize = 12_000;

/// A reader's view of one token, folded from its frames.
#[derive(Clone, Default, Debug, PartialEq)]
struct Folded {
    /// Bids and asks: size by price in millionths.
    sides: [BTreeMap<i64, String>; 2],
    hash: String,
    timestamp: u64,
}

impl Folded {
    /// The time of a token's frames never goes back on one socket.
    fn moves_on(&mut self, frame: &Value) {
        let timestamp = text(frame, "/timestamp").parse().expect("milliseconds");
        assert!(timestamp >= self.timestamp, "time went back: {frame}");
        self.timestamp = timestamp;
    }
}

/// A reader of the market channel.
struct Reader {
    socket: Socket,
    books: BTreeMap<String, Folded>,
    frames: usize,
    /// Whole books after the first: sent by the venue as a whole, or instead of skipped changes.
    whole: usize,
    /// Messages sent.
    sent: usize,
}

/// A socket accepts a limited number of messages a second; a reader that reached it reconnects.
const SENT_MAX: usize = 24;

fn side(levels: &Value) -> BTreeMap<i64, String> {
    list(levels, "").iter().map(|level| (micros(text(level, "/price")), text(level, "/size").to_owned())).collect()
}

impl Reader {
    fn open(world: &World) -> Reader {
        let socket = Socket::open(world.server.address(), "/v1/ws/market", &[("X-API-Key", &world.users[0].key)]);
        Reader { socket, books: BTreeMap::new(), frames: 0, whole: 0, sent: 0 }
    }

    fn subscribe(&mut self, token: &str) {
        self.sent += 1;
        self.socket.send(&json!({"operation": "subscribe", "assets_ids": [token]}));
        // Frames of other tokens may come before it.
        loop {
            let frame = self.socket.json();
            self.take(&frame);
            if frame.is_array() {
                return assert!(self.books.contains_key(token), "its book exists");
            }
        }
    }

    fn unsubscribe(&mut self, token: &str) {
        self.sent += 2;
        self.socket.send(&json!({"operation": "unsubscribe", "assets_ids": [token]}));
        self.socket.so_far().iter().for_each(|frame| self.take(frame));
        self.books.remove(token);
    }

    fn whole(&mut self, book: &Value) {
        let folded = Folded {
            sides: [side(&book["bids"]), side(&book["asks"])],
            hash: text(book, "/hash").to_owned(),
            timestamp: text(book, "/timestamp").parse().expect("milliseconds"),
        };
        if let Some(before) = self.books.insert(text(book, "/asset_id").to_owned(), folded.clone()) {
            assert!(folded.timestamp >= before.timestamp, "time went back: {book}");
        }
    }

    fn take(&mut self, frame: &Value) {
        self.frames += 1;
        if frame.is_array() {
            return list(frame, "").iter().for_each(|book| self.whole(book));
        }
        match text(frame, "/event_type") {
            "book" => {
                self.whole += 1;
                assert!(self.books.contains_key(text(frame, "/asset_id")), "it is subscribed: {frame}");
                self.whole(frame);
            }
            "price_change" => {
                for change in list(frame, "/price_changes") {
                    let folded = self.books.get_mut(text(change, "/asset_id")).expect("the book comes first");
                    let side = &mut folded.sides[usize::from(text(change, "/side") == "SELL")];
                    let (price, size) = (micros(text(change, "/price")), text(change, "/size"));
                    if size == "0" {
                        side.remove(&price)
                    } else {
                        side.insert(price, size.to_owned())
                    };
                    folded.hash = text(change, "/hash").to_owned();
                    folded.moves_on(frame);
                }
                // After the frame the best prices are those of the folded book.
                for change in list(frame, "/price_changes") {
                    let [bids, asks] = &self.books[text(change, "/asset_id")].sides;
                    let best = [
                        bids.last_key_value().map_or(0, |(price, _)| *price),
                        asks.first_key_value().map_or(1_000_000, |(price, _)| *price),
                    ];
                    assert_eq!([micros(text(change, "/best_bid")), micros(text(change, "/best_ask"))], best, "{frame}");
                }
            }
            "last_trade_price" => {
                let folded = self.books.get_mut(text(frame, "/asset_id")).expect("the book comes first");
                folded.moves_on(frame);
                // A hash covers the last trade.
                folded.hash = text(frame, "/hash").to_owned();
            }
            other => panic!("{other} was not requested"),
        }
    }

    /// Reads until every book shows `mark` as the size of its lowest bid.
    fn read_to(&mut self, mark: &str) {
        while self.books.values().any(|book| book.sides[0].get(&10_000).is_none_or(|size| size != mark)) {
            let frame = self.socket.json();
            self.take(&frame);
        }
    }
}

/// The book from REST, in the same form.
fn read(world: &World, token: &str) -> Folded {
    let shown = world.public().get(&format!("/v1/book?token_id={token}")).expect(200);
    Folded {
        sides: [side(&shown["bids"]), side(&shown["asks"])],
        hash: text(&shown, "/hash").to_owned(),
        timestamp: text(&shown, "/timestamp").parse().expect("milliseconds"),
    }
}

/// Both tokens get a bid of this size at 0.01: the last change.
fn mark(world: &mut World, markets: &[Market], mark: &str) {
    for market in markets {
        world.tape.level(market, 0, "BUY", "0.01", mark);
        world.tape.level(market, 1, "BUY", "0.01", mark);
    }
}

#[test]
fn folded_frames_are_the_book_that_is_read() {
    let mut chance = Chance::from_env("STREAM_SEED");
    folds(&mut World::start(1), &mut chance, 40);
    // Readers on several threads, each with its own queue of changes.
    let mut threaded = World::start_with(1, |place| {
        place.set("engine", "shards", "2").set("server", "io_threads", "2");
    });
    folds(&mut threaded, &mut chance, 20);
}

fn folds(world: &mut World, chance: &mut Chance, rounds: usize) {
    let markets = [world.markets.rain.clone(), world.markets.vote.clone(), world.markets.coin.clone()];
    let tokens: Vec<String> = markets.iter().flat_map(|market| market.tokens.clone()).collect();
    let mut readers: Vec<Reader> = (0..4).map(|_| Reader::open(world)).collect();
    let (mut compared, mut reconnects) = (0, 0);
    for round in 0..rounds {
        // What readers do.
        for reader in &mut readers {
            for _ in 0..chance.below(3) {
                let token = chance.pick(&tokens);
                if reader.books.contains_key(token) && chance.percent(40) {
                    reader.unsubscribe(token);
                } else {
                    reader.subscribe(token);
                }
            }
            if chance.percent(8) || reader.sent > SENT_MAX {
                *reader = Reader::open(world);
                reconnects += 1;
            }
        }
        // What the venue sends meanwhile.
        let changes = if round == rounds / 2 { BURST } else { chance.between(1, 80) };
        for _ in 0..changes {
            let market = chance.pick(&markets);
            let price = format!("0.{:02}", chance.between(2, 98));
            match chance.below(20) {
                0 => world.tape.books(
                    market,
                    &[("0.30", "7"), (&format!("0.{:02}", chance.between(10, 40)), "3")],
                    &[("0.7", "11")],
                ),
                1 => world.tape.book(market, chance.below(2), &[("0.2", "8")], &[]),
                2 => world.tape.trade(market, chance.below(2), "BUY", &price, "2"),
                _ => {
                    let size = ["0", "1", "2.5", "1000000"][chance.below(4)];
                    let side = ["BUY", "SELL"][chance.below(2)];
                    world.tape.level(market, chance.below(2), side, &price, size);
                }
            }
        }
        let size = (round + 1).to_string();
        mark(world, &markets, &size);
        // Some readers pause for a few rounds.
        for reader in &mut readers {
            if chance.percent(70) || round + 1 == rounds {
                reader.read_to(&size);
                let now: BTreeSet<&String> = reader.books.keys().collect();
                for token in now {
                    let shown = read(world, token);
                    let folded = &reader.books[token];
                    assert_eq!((&folded.sides, &folded.hash), (&shown.sides, &shown.hash), "round {round}");
                    compared += 1;
                }
            }
        }
    }
    let frames: usize = readers.iter().map(|reader| reader.frames).sum();
    println!("folded: {compared} books compared, {frames} frames, {reconnects} reconnects");
    assert!(compared > rounds, "something was compared");
}

/// A reader that stops reading affects no other reader; when it continues it gets whole books for what it missed.
#[test]
fn a_reader_that_stalled_gets_fresh_books() {
    const FRAMES: usize = 600;
    let mut world = World::start(1);
    let market = world.markets.rain.clone();
    let (mut stalled, mut lively) = (Reader::open(&world), Reader::open(&world));
    for token in &market.tokens {
        stalled.subscribe(token);
        lively.subscribe(token);
    }
    // Level by level, so that a whole book can only be a replacement of skipped changes; many levels a frame, so that
    // the buffers of the system are soon full.
    let price = |cents: u32| format!("0.{cents:02}");
    let levels: Vec<_> = (2..50).map(|cents| ("BUY", price(cents))).collect();
    let levels: Vec<_> = levels.into_iter().chain((51..99).map(|cents| ("SELL", price(cents)))).collect();
    for number in 0..FRAMES {
        let size = format!("{}.123456", 1_000 + number);
        let levels = levels.iter().map(|(side, price)| (*side, price.as_str()));
        world.tape.levels(&market, number % 2, levels, &size);
        // A reader that keeps reading must not need whole books: the venue waits for it.
        if number % 50 == 49 {
            mark(&mut world, std::slice::from_ref(&market), &number.to_string());
            lively.read_to(&number.to_string());
        }
    }
    mark(&mut world, std::slice::from_ref(&market), "17");
    lively.read_to("17");
    stalled.read_to("17");
    for token in &market.tokens {
        let shown = read(&world, token);
        for reader in [&stalled, &lively] {
            assert_eq!((&reader.books[token].sides, &reader.books[token].hash), (&shown.sides, &shown.hash));
        }
    }
    println!("stalled: {} frames, {} of them books, where {} came", stalled.frames, stalled.whole, lively.frames);
    assert_eq!(lively.whole, 0, "nothing was skipped for the reader that reads");
    assert!(stalled.whole > 0, "skipped changes were replaced by whole books");
    assert!(stalled.frames < lively.frames, "{} of {}", stalled.frames, lively.frames);
}
