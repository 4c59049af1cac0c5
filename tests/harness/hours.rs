//! A recording of some past hours with a known content: whole books, changes with their best prices, trades, a finer grid
//! and a gap.

use crate::chance::Chance;
use crate::tape::{Market, Tape};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// 2026-08-11T00:00:00Z.
pub const FIRST_MS: u64 = 1_786_406_400_000;
pub const HOUR_MS: u64 = 3_600_000;
/// The first of the hours, as texts have it.
pub const FIRST_HOUR: &str = "2026-08-11T00";

/// The book of a first outcome: sizes by price in hundredths.
#[derive(Default)]
struct Book {
    bids: BTreeMap<u32, u32>,
    asks: BTreeMap<u32, u32>,
}

/// The text of a price in hundredths.
fn cents(price: u32) -> String {
    format!("0.{price:02}")
}

impl Book {
    fn best(&self) -> [String; 2] {
        let text = |price: Option<&u32>, empty: &str| price.map_or_else(|| empty.to_owned(), |price| cents(*price));
        [text(self.bids.keys().next_back(), "0"), text(self.asks.keys().next(), "1")]
    }

    /// The best prices of the second outcome.
    fn other_best(&self) -> [String; 2] {
        let text =
            |price: Option<&u32>, empty: &str| price.map_or_else(|| empty.to_owned(), |price| cents(100 - *price));
        [text(self.asks.keys().next(), "0"), text(self.bids.keys().next_back(), "1")]
    }

    fn tell(&self, tape: &mut Tape, market: &Market) {
        let side = |levels: &BTreeMap<u32, u32>| -> Vec<(String, String)> {
            levels.iter().map(|(price, size)| (cents(*price), size.to_string())).collect()
        };
        let (bids, asks) = (side(&self.bids), side(&self.asks));
        tape.books(market, &texts(&bids), &texts(&asks));
    }
}

fn texts(levels: &[(String, String)]) -> Vec<(&str, &str)> {
    levels.iter().map(|(price, size)| (price.as_str(), size.as_str())).collect()
}

/// Writes a recording that begins at [`FIRST_MS`], with this many changes in each hour. Returns its markets.
pub fn record(path: &Path, chance: &mut Chance, hours: u64, changes: u64) -> Vec<Market> {
    let markets = vec![Market::new(1, "rain", "weather", 0.01), Market::new(2, "snow", "weather", 0.01)];
    let mut books: Vec<Book> = markets.iter().map(|_| Book::default()).collect();
    let mut tape = Tape::of_past(path, FIRST_MS + 1_000);
    tape.list(&markets.iter().collect::<Vec<_>>());
    for hour in 0..hours {
        let begins = FIRST_MS + hour * HOUR_MS;
        tape.go_to(begins + 2_000);
        for (market, book) in markets.iter().zip(&mut books) {
            book.bids.insert(30, 100);
            book.asks.insert(50, 100);
            book.tell(&mut tape, market);
        }
        for number in 0..changes {
            tape.go_to(begins + 5_000 + number * 3_590_000 / changes);
            let at = chance.below(markets.len());
            change(&mut tape, chance, &markets[at], &mut books[at]);
            if number == changes / 2 && hour == 1 {
                tape.gap();
                let later = tape.now() + 5_000;
                tape.go_to(later);
                markets.iter().zip(&books).for_each(|(market, book)| book.tell(&mut tape, market));
            }
        }
    }
    tape.tick(&markets[0], "0.01", "0.001");
    markets
}

/// A change of a level of both outcomes, or a trade.
fn change(tape: &mut Tape, chance: &mut Chance, market: &Market, book: &mut Book) {
    let is_bid = chance.percent(50);
    if chance.percent(15) {
        let [bid, ask] = book.best();
        let (side, price) = if is_bid { ("BUY", ask) } else { ("SELL", bid) };
        if price != "0" && price != "1" {
            tape.trade(market, 0, side, &price, &format!("{}.5", chance.between(1, 90)));
        }
        return;
    }
    // Bids are below all asks.
    let (side, price) =
        if is_bid { (&mut book.bids, chance.between(20, 39)) } else { (&mut book.asks, chance.between(41, 60)) };
    let price = price as u32;
    let size = if chance.percent(30) { 0 } else { chance.between(1, 500) as u32 };
    side.insert(price, size);
    side.retain(|_, size| *size > 0);
    let at = tape.now();
    let entry = |token: &str, price: u32, side: &str, best: [String; 2]| {
        json!({
            "asset_id": token, "price": cents(price), "size": size.to_string(), "side": side,
            "best_bid": best[0], "best_ask": best[1], "hash": format!("{at:x}{token}"),
        })
    };
    let sides = if is_bid { ["BUY", "SELL"] } else { ["SELL", "BUY"] };
    let changes = [
        entry(market.yes(), price, sides[0], book.best()),
        entry(market.no(), 100 - price, sides[1], book.other_best()),
    ];
    tape.frame(&json!({
        "event_type": "price_change", "market": market.condition, "timestamp": at.to_string(), "price_changes": changes,
    }));
}
