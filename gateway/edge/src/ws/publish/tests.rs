//! Books that a client folds from the frames of a random feed, compared with the book routes.

use super::*;
use crate::api::testing::{Answered, Town};
use crate::ws::change::Follows;
use crate::ws::news::{Interest, Item, Outlet};
use engine::amount::Qty;
use engine::fact;
use engine::market::mutation::MarketMutation;
use engine::market::terms::{MarketState, Resolution};
use serde_json::Value;
use smallvec::smallvec;
use std::collections::BTreeMap;
use venue::FeedUpdate;
use venue::feed::publish::Publisher;
use venue::feed::{FeedFigures, write};
use wire::testing::Random;

const START: u64 = 1_790_932_445_000_000;
const TOKENS: [&str; 2] = ["81140002", "55200077"];

/// A town whose market is followed.
struct Followed {
    town: Town,
    publisher: Publisher<BookNews>,
    outlet: Arc<Outlet>,
    figures: FeedFigures,
}

impl Followed {
    fn new() -> Followed {
        let town = Town::new();
        let news = town.edge.app.streams.news.clone();
        let outlet = news.claim();
        outlet.add_interest(town.market, Interest::Changes);
        let publisher = Publisher::new(BookNews::new(news, town.catalog.clone()), town.catalog.clone());
        Followed { town, publisher, outlet, figures: FeedFigures::default() }
    }

    fn frame(&self, updates: &[FeedUpdate]) {
        let mut writer = self.town.writer.borrow_mut();
        writer.frame(0, Timestamp(START), |books| {
            for update in updates {
                write(books, &self.town.catalog, &self.figures, update);
            }
        });
        self.publisher.frame(updates, writer.books(), Timestamp(START), |_| false);
    }

    fn fact(&self, fact: &MarketMutation) {
        self.publisher.fact(fact, &mut self.town.writer.borrow_mut(), Timestamp(START));
    }

    /// Every frame about the followed tokens, in the order of the market channel.
    fn frames(&self, follows: Follows) -> Vec<Value> {
        let cell = self.town.catalog.market(self.town.market).expect("listed");
        let (mut frames, mut version) = (Vec::new(), 0);
        while let Some(item) = self.outlet.take().expect("nothing is lost") {
            let Item::Change(change) = item else { continue };
            assert!(change.version >= version, "versions never go back");
            version = change.version;
            let mut push = |frame: &[u8]| frames.push(serde_json::from_slice(frame).expect("JSON"));
            for outcome in follows.outcomes() {
                change.tick_frame(cell, outcome).into_iter().for_each(|frame| push(frame.payload()));
                change.book_frame(cell, outcome).into_iter().for_each(|frame| push(frame.payload()));
            }
            change.levels_frame(cell, follows).into_iter().for_each(|frame| push(frame.payload()));
            for outcome in follows.outcomes() {
                change.top_frame(cell, outcome).into_iter().for_each(|frame| push(frame.payload()));
                change.trade_frames(cell, outcome).for_each(|(_, frame)| push(frame.payload()));
            }
        }
        let now = self.town.books.version(cell.instrument(Outcome::First));
        assert!(frames.is_empty() || version == now, "the last change is as the books are now");
        frames
    }

    fn shown(&self, token: &str) -> Answered {
        self.town.send("GET", &format!("/v1/book?token_id={token}"), "")
    }
}

/// A client's book, folded from the frames about one token.
#[derive(Default)]
struct Folded {
    /// By side and by price in 10⁻⁴, as texts of sizes.
    sides: [BTreeMap<u32, String>; 2],
    hash: String,
    last_trade: String,
    tick: String,
    timestamp: u64,
    best: [Option<String>; 2],
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text, got {value}")).to_owned()
}

/// Before the first trade a frame has an empty text, and a book route has null.
fn last_trade(book: &Value) -> String {
    book["last_trade_price"].as_str().unwrap_or_default().to_owned()
}

fn ticks(price: &str) -> u32 {
    (price.parse::<f64>().expect("a price") * 10_000.0).round() as u32
}

impl Folded {
    fn side(levels: &Value) -> BTreeMap<u32, String> {
        let levels = levels.as_array().expect("levels");
        levels.iter().map(|level| (ticks(&text(&level["price"])), text(&level["size"]))).collect()
    }

    fn whole(&mut self, book: &Value) {
        self.sides = [Folded::side(&book["bids"]), Folded::side(&book["asks"])];
        (self.hash, self.best) = (text(&book["hash"]), [None, None]);
        (self.last_trade, self.tick) = (last_trade(book), text(&book["tick_size"]));
    }

    fn fold(&mut self, frame: &Value, token: &str) {
        let kind = text(&frame["event_type"]);
        let rows = frame["price_changes"].as_array();
        let names = rows.is_some_and(|rows| rows.iter().any(|row| row["asset_id"] == token));
        if !names && frame["asset_id"] != token {
            return;
        }
        let timestamp: u64 = text(&frame["timestamp"]).parse().expect("milliseconds");
        match kind.as_str() {
            "book" => self.whole(frame),
            "price_change" => {
                for change in frame["price_changes"].as_array().expect("an array") {
                    if change["asset_id"] != token {
                        continue;
                    }
                    let side = &mut self.sides[usize::from(change["side"] == "SELL")];
                    let (price, size) = (ticks(&text(&change["price"])), text(&change["size"]));
                    if size == "0" {
                        side.remove(&price)
                    } else {
                        side.insert(price, size)
                    };
                    self.hash = text(&change["hash"]);
                    self.best = [&change["best_bid"], &change["best_ask"]].map(|best| Some(text(best)));
                }
            }
            "best_bid_ask" => {
                let best = [&frame["best_bid"], &frame["best_ask"]];
                let folded = [self.sides[0].last_key_value(), self.sides[1].first_key_value()];
                for (best, folded) in best.into_iter().zip(folded) {
                    assert_eq!(best.as_str().map(ticks), folded.map(|(price, _)| *price), "{frame}");
                }
                assert_eq!(frame["spread"].is_null(), best.iter().any(|best| best.is_null()), "{frame}");
            }
            "last_trade_price" => self.last_trade = text(&frame["price"]),
            "tick_size_change" => {
                assert_eq!(text(&frame["old_tick_size"]), self.tick);
                self.tick = text(&frame["new_tick_size"]);
            }
            other => panic!("{other} is not a frame about a token"),
        }
        assert!(timestamp >= self.timestamp, "time went back: {frame}");
        self.timestamp = timestamp;
    }

    fn is(&self, shown: &Value, traded: bool) {
        let sides = [Folded::side(&shown["bids"]), Folded::side(&shown["asks"])];
        assert_eq!(self.sides, sides);
        assert_eq!((last_trade(shown), text(&shown["tick_size"])), (self.last_trade.clone(), self.tick.clone()));
        if !traded {
            assert_eq!(shown["hash"], self.hash);
        }
        if let [Some(bid), Some(ask)] = &self.best {
            let best = [self.sides[0].last_key_value(), self.sides[1].first_key_value()]
                .map(|best| best.map(|(price, _)| *price));
            assert_eq!([ticks(bid), ticks(ask)], [best[0].unwrap_or(0), best[1].unwrap_or(10_000)]);
        }
    }
}

/// A random update of one token, including prices off every ladder and sizes that are rounded.
fn update(random: &mut Random, token: &str, at: u64) -> FeedUpdate {
    let venue_ts = Timestamp(START + at * 1_000 - random.next() % 5_000);
    let token = token.into();
    let mut price =
        || Price([0, 1, 10_000, 9_999][(random.next() % 4) as usize].max((random.next() % 60 * 100) as u16));
    let prices: Vec<Price> = (0..6).map(|_| price()).collect();
    let mut size = || Qty([0, 1_234_500, u64::MAX, 60_000_000][(random.next() % 4) as usize]);
    match size().0 % 7 {
        0 | 1 => FeedUpdate::BookSnapshot {
            token,
            bids: prices[..3].iter().map(|price| (*price, size())).collect(),
            asks: prices[3..].iter().map(|price| (*price, size())).collect(),
            venue_ts,
            hash: (size().0 == 0).then(|| "9f".into()),
        },
        2 => FeedUpdate::LastTrade {
            token,
            price: Price(4_200),
            size: size(),
            taker_buys: size().0 == 0,
            venue_ts,
            id: None,
            fee_rate_bps: None,
        },
        _ => {
            let sides = [BookSide::Bid, BookSide::Ask];
            let level = |(at, price): (usize, &Price)| (sides[at % 2], *price, size());
            FeedUpdate::BookDelta { token, levels: prices.iter().enumerate().map(level).collect(), venue_ts }
        }
    }
}

#[test]
fn folded_frames_are_the_book_that_is_read() {
    let mut checked = 0;
    for seed in 1..=8 {
        let (mut random, followed) = (Random(seed), Followed::new());
        let mut folded: [Folded; 2] = Default::default();
        for round in 0..150 {
            let count = 1 + random.next() % 3;
            let updates: Vec<FeedUpdate> =
                (0..count).map(|_| update(&mut random, TOKENS[(round % 2) as usize], round)).collect();
            if random.next().is_multiple_of(12) {
                let tick = TickSize([10, 100][(random.next() % 2) as usize]);
                followed.fact(&MarketMutation::TickChanged(fact::TickChanged {
                    market: followed.town.market,
                    tick,
                    at: Timestamp(START),
                }));
            }
            followed.frame(&updates);
            let trades = updates.iter().any(|update| matches!(update, FeedUpdate::LastTrade { .. }));
            let frames = followed.frames(Follows([true, true]));
            for (token, folded) in TOKENS.iter().zip(&mut folded) {
                let shown = followed.shown(token);
                if shown.status != 200 {
                    continue;
                }
                // A socket's first `book` comes from the same copy. Changes before it are not for that socket.
                if !folded.hash.is_empty() {
                    frames.iter().for_each(|frame| folded.fold(frame, token));
                    folded.is(&shown.json(), trades);
                    checked += 1;
                }
                // A trade changes the hash of the book route, and sends no book.
                folded.whole(&shown.json());
            }
        }
    }
    println!("folded books: {checked} compared over 8 seeds");
    assert!(checked > 1_000);
}

#[test]
fn a_frame_has_the_followed_tokens_only() {
    let followed = Followed::new();
    let (at, size) = (Timestamp(START + 1_000_000), Qty(55_000_000));
    let delta = |token: &str, levels| FeedUpdate::BookDelta { token: token.into(), levels, venue_ts: at };
    let trade = |token: &str| FeedUpdate::LastTrade {
        token: token.into(),
        price: Price(4_200),
        size: Qty(2_500_000),
        taker_buys: false,
        venue_ts: at,
        id: None,
        fee_rate_bps: None,
    };
    let condition = followed.town.condition().to_owned();
    let say = || {
        followed.frame(&[
            delta(TOKENS[0], smallvec![(BookSide::Bid, Price(4_100), size), (BookSide::Bid, Price(4_100), Qty(0))]),
            delta(TOKENS[1], smallvec![(BookSide::Ask, Price(5_900), size)]),
            trade(TOKENS[1]),
        ]);
    };
    let mut cases = 0;
    for (follows, changed) in [
        ([true, false], vec![(TOKENS[0], "0.41", "0", "BUY", "0.40", "0.42")]),
        ([false, true], vec![(TOKENS[1], "0.59", "55", "SELL", "0", "0.59")]),
        (
            [true, true],
            vec![(TOKENS[0], "0.41", "0", "BUY", "0.40", "0.42"), (TOKENS[1], "0.59", "55", "SELL", "0", "0.59")],
        ),
    ] {
        say();
        let frames = followed.frames(Follows(follows));
        let hash = |token| followed.shown(token).json()["hash"].clone();
        let rows: Vec<Value> = changed
            .iter()
            .map(|(token, price, size, side, bid, ask)| {
                serde_json::json!({"asset_id": token, "price": price, "size": size, "side": side, "hash": hash(token),
                    "best_bid": bid, "best_ask": ask})
            })
            .collect();
        let mut expected = vec![serde_json::json!({"event_type": "price_change", "market": condition,
            "timestamp": "1790932446000", "price_changes": rows})];
        if follows[0] {
            expected.push(serde_json::json!({"event_type": "best_bid_ask", "market": condition, "asset_id": TOKENS[0],
                "best_bid": "0.40", "best_ask": "0.42", "spread": "0.02", "timestamp": "1790932446000"}));
        }
        if follows[1] {
            expected.push(serde_json::json!({"event_type": "best_bid_ask", "market": condition, "asset_id": TOKENS[1],
                "best_ask": "0.59", "timestamp": "1790932446000"}));
            expected.push(serde_json::json!({"event_type": "last_trade_price", "market": condition,
                "asset_id": TOKENS[1], "price": "0.42", "size": "2.5", "side": "SELL", "fee_rate_bps": "500",
                "timestamp": "1790932446000", "hash": hash(TOKENS[1])}));
        }
        assert_eq!(frames, expected);
        cases += 1;
    }
    println!("restricted frames: {cases} cases");
}

#[test]
fn a_tick_change_sends_the_book_again_and_a_resolved_market_nothing() {
    let followed = Followed::new();
    let market = followed.town.market;
    followed.fact(&MarketMutation::TickChanged(fact::TickChanged { market, tick: TickSize(10), at: Timestamp(START) }));
    let frames = followed.frames(Follows([true, true]));
    let kinds: Vec<_> = frames.iter().map(|frame| (text(&frame["event_type"]), text(&frame["asset_id"]))).collect();
    let expected = [
        ("tick_size_change", TOKENS[0]),
        ("book", TOKENS[0]),
        ("best_bid_ask", TOKENS[0]),
        ("tick_size_change", TOKENS[1]),
    ];
    let expected = |at: usize| (expected[at].0.to_owned(), expected[at].1.to_owned());
    // The second token has no book of its own.
    assert_eq!(kinds, [expected(0), expected(1), expected(3), expected(2)]);
    assert_eq!((&frames[0]["old_tick_size"], &frames[0]["new_tick_size"]), (&"0.01".into(), &"0.001".into()));
    assert_eq!(
        (&frames[1]["tick_size"], &frames[1]["hash"]),
        (&"0.001".into(), &followed.shown(TOKENS[0]).json()["hash"])
    );

    let state = MarketState::Halted;
    followed.fact(&MarketMutation::MarketStateChanged(fact::MarketStateChanged {
        market,
        state,
        ended: true,
        at: Timestamp(START),
    }));
    assert!(followed.frames(Follows([true, true])).is_empty(), "a new state does not change a book");
    let resolution = Resolution::Winner(Outcome::Second);
    followed.fact(&MarketMutation::MarketResolved(fact::MarketResolved { market, resolution, at: Timestamp(START) }));
    let Ok(Some(Item::Resolved(resolved, Resolution::Winner(Outcome::Second), _))) = followed.outlet.take() else {
        panic!("a resolution is published")
    };
    assert_eq!(resolved, market);
    let bids = vec![(Price(4_000), Qty(1_000_000))];
    let snapshot = FeedUpdate::BookSnapshot {
        token: TOKENS[0].into(),
        bids,
        asks: Vec::new(),
        venue_ts: Timestamp(START),
        hash: None,
    };
    followed.frame(&[snapshot]);
    assert!(followed.outlet.take().expect("nothing is lost").is_none(), "a resolved market has no book");
}
