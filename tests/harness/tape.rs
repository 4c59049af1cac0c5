//! A hand-made market, written line by line as a recording (gateway/docs/live-venues.md §7) that a server follows.
//!
//! So a test decides the book and its times, and every fill, fee and payout is known in advance.

use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A growing recording.
pub struct Tape {
    path: PathBuf,
    file: File,
    last_ms: u64,
    /// The time of a line is set by the test, not by the wall clock.
    is_past: bool,
}

/// A binary market as the recording lists it.
#[derive(Clone, Debug)]
pub struct Market {
    pub number: u64,
    pub condition: String,
    /// First and second outcome.
    pub tokens: [String; 2],
    pub outcomes: [String; 2],
    pub slug: String,
    pub question: String,
    pub category: String,
    /// As JSON number text: `0.01`.
    pub tick: f64,
    pub neg_risk: bool,
    /// RFC 3339.
    pub end: String,
    pub accepting: bool,
    pub volume: f64,
}

/// Levels as texts: price and size.
pub type Levels<'a> = &'a [(&'a str, &'a str)];

impl Market {
    /// A market with ids made from its number, open until far in the future.
    pub fn new(number: u64, slug: &str, category: &str, tick: f64) -> Market {
        Market {
            number,
            condition: format!("0x{number:064x}"),
            tokens: [format!("{}{number:04}1", "7".repeat(70)), format!("{}{number:04}2", "8".repeat(70))],
            outcomes: ["Yes".into(), "No".into()],
            slug: slug.into(),
            question: format!("Will {slug} come true?"),
            category: category.into(),
            tick,
            neg_risk: false,
            end: "2038-01-01T00:00:00Z".into(),
            accepting: true,
            volume: 10_000.0 - number as f64,
        }
    }

    pub fn yes(&self) -> &str {
        &self.tokens[0]
    }

    pub fn no(&self) -> &str {
        &self.tokens[1]
    }

    /// The market as the venue's catalogue shows it; `prices` decide a closed one.
    pub fn listed(&self, closed: Option<[&str; 2]>) -> Value {
        let list = |two: &[String; 2]| json!(two).to_string();
        let mut row = json!({
            "id": self.number.to_string(),
            "conditionId": self.condition,
            "questionID": self.condition,
            "slug": self.slug,
            "question": self.question,
            "description": format!("Resolves on {}.", self.slug),
            "outcomes": list(&self.outcomes),
            "clobTokenIds": list(&self.tokens),
            "outcomePrices": "[\"0.5\", \"0.5\"]",
            "category": self.category,
            "orderPriceMinTickSize": self.tick,
            "orderMinSize": 5,
            "negRisk": self.neg_risk,
            "active": true,
            "closed": false,
            "archived": false,
            "acceptingOrders": self.accepting,
            "enableOrderBook": true,
            "startDate": "2026-01-01T00:00:00Z",
            "endDate": self.end,
            "volumeNum": self.volume,
            "volume24hr": self.volume / 10.0,
            "liquidityNum": 500.0
        });
        if let Some([first, second]) = closed {
            row["closed"] = json!(true);
            row["acceptingOrders"] = json!(false);
            row["outcomePrices"] = json!(json!([first, second]).to_string());
            row["umaResolutionStatus"] = json!("resolved");
        }
        row
    }
}

impl Tape {
    /// A new, empty recording at `path`.
    pub fn create(path: &Path) -> Tape {
        let file = OpenOptions::new().create_new(true).append(true).open(path).expect("a tape can be made");
        Tape { path: path.to_path_buf(), file, last_ms: 0, is_past: false }
    }

    /// A recording of the past, which begins at this moment in ms since 1970.
    pub fn of_past(path: &Path, begins_ms: u64) -> Tape {
        Tape { last_ms: begins_ms, is_past: true, ..Tape::create(path) }
    }

    /// The next line of a recording of the past is of this moment, if that is later than the last one.
    pub fn go_to(&mut self, moment_ms: u64) {
        self.last_ms = self.last_ms.max(moment_ms - 1);
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lists markets, or repeats their state.
    pub fn list(&mut self, markets: &[&Market]) {
        let rows: Vec<Value> = markets.iter().map(|market| market.listed(None)).collect();
        self.rest("/markets", &json!(rows));
    }

    /// The venue stopped a market with a result: `["1", "0"]`, `["0", "1"]`, `["0.5", "0.5"]`.
    pub fn resolve(&mut self, market: &Market, prices: [&str; 2]) {
        self.rest("/markets", &json!([market.listed(Some(prices))]));
    }

    /// The whole book of the first outcome, and its mirror as the book of the second, in one frame.
    pub fn books(&mut self, market: &Market, bids: Levels, asks: Levels) {
        let mirror = |levels: Levels| -> Vec<(String, String)> {
            levels.iter().map(|(price, size)| (one_minus(price), size.to_string())).collect()
        };
        let (mirrored_bids, mirrored_asks) = (mirror(asks), mirror(bids));
        let own = self.book_frame(market, 0, &texts(bids), &texts(asks));
        let other = self.book_frame(market, 1, &mirrored_bids, &mirrored_asks);
        self.frame(&json!([own, other]));
    }

    /// The whole book of one outcome alone.
    pub fn book(&mut self, market: &Market, outcome: usize, bids: Levels, asks: Levels) {
        let frame = self.book_frame(market, outcome, &texts(bids), &texts(asks));
        self.frame(&json!([frame]));
    }

    /// One level of one outcome: absolute size, "0" deletes. Side is the venue's: BUY = bid.
    pub fn level(&mut self, market: &Market, outcome: usize, side: &str, price: &str, size: &str) {
        self.levels(market, outcome, [(side, price)], size);
    }

    /// Levels of one outcome, by side and price, that get the same size in one frame.
    pub fn levels<'a>(
        &mut self,
        market: &Market,
        outcome: usize,
        levels: impl IntoIterator<Item = (&'a str, &'a str)>,
        size: &str,
    ) {
        let asset_id = &market.tokens[outcome];
        let changes = levels
            .into_iter()
            .map(|(side, price)| json!({"asset_id": asset_id, "price": price, "size": size, "side": side, "hash": ""}));
        let frame = json!({
            "event_type": "price_change",
            "market": market.condition,
            "timestamp": self.now().to_string(),
            "price_changes": changes.collect::<Vec<_>>()
        });
        self.frame(&frame);
    }

    pub fn trade(&mut self, market: &Market, outcome: usize, side: &str, price: &str, size: &str) {
        let frame = json!({
            "event_type": "last_trade_price",
            "market": market.condition,
            "asset_id": market.tokens[outcome],
            "price": price,
            "size": size,
            "side": side,
            "fee_rate_bps": "0",
            "timestamp": self.now().to_string()
        });
        self.frame(&frame);
    }

    pub fn tick(&mut self, market: &Market, old: &str, new: &str) {
        for token in &market.tokens {
            let frame = json!({
                "event_type": "tick_size_change",
                "market": market.condition,
                "asset_id": token,
                "old_tick_size": old,
                "new_tick_size": new,
                "timestamp": self.now().to_string()
            });
            self.frame(&frame);
        }
    }

    /// The connection broke: every token is stale until its next snapshot.
    pub fn gap(&mut self) {
        let line = json!({"r": self.now(), "v": "polymarket", "c": "1", "gap": "a simulated break"});
        self.line(&line.to_string());
    }

    /// Any text as one line, valid or not.
    pub fn line(&mut self, line: &str) {
        // One write, so that a follower rarely sees half of it.
        self.file.write_all(format!("{line}\n").as_bytes()).expect("a tape can be written");
    }

    /// Text without an end of line: an unfinished line.
    pub fn unfinished(&mut self, text: &str) {
        self.file.write_all(text.as_bytes()).expect("a tape can be written");
    }

    pub fn rest(&mut self, path: &str, body: &Value) {
        let line = json!({"r": self.now(), "v": "polymarket", "u": path, "s": 200, "b": body});
        self.line(&line.to_string());
    }

    /// Any message of the venue.
    pub fn frame(&mut self, frame: &Value) {
        let line = json!({"r": self.now(), "v": "polymarket", "c": "1", "m": frame});
        self.line(&line.to_string());
    }

    fn book_frame(
        &mut self,
        market: &Market,
        outcome: usize,
        bids: &[(String, String)],
        asks: &[(String, String)],
    ) -> Value {
        let levels = |levels: &[(String, String)]| -> Value {
            levels.iter().map(|(price, size)| json!({"price": price, "size": size})).collect()
        };
        json!({
            "event_type": "book",
            "market": market.condition,
            "asset_id": market.tokens[outcome],
            "timestamp": self.now().to_string(),
            "hash": format!("{:040x}", self.last_ms),
            "bids": levels(bids),
            "asks": levels(asks)
        })
    }

    /// The time of the next line in ms, later with every call so that the order of lines is the order of time.
    pub fn now(&mut self) -> u64 {
        if self.is_past {
            self.last_ms += 1;
            return self.last_ms;
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis() as u64;
        self.last_ms = wall.max(self.last_ms + 1);
        self.last_ms
    }
}

fn texts(levels: Levels) -> Vec<(String, String)> {
    levels.iter().map(|(price, size)| (price.to_string(), size.to_string())).collect()
}

/// 1 − price, exactly.
fn one_minus(price: &str) -> String {
    let micros = 1_000_000 - crate::json::micros(price);
    let text = format!("0.{micros:06}");
    text.trim_end_matches('0').to_string()
}

#[cfg(test)]
mod tests {
    use super::one_minus;

    #[test]
    fn the_mirror_of_a_price_is_exact() {
        let rows = [("0.4", "0.6"), ("0.41", "0.59"), ("0.999", "0.001"), ("0.0001", "0.9999")];
        for (price, mirrored) in rows {
            assert_eq!(one_minus(price), mirrored);
        }
        println!("mirror: {} cases", rows.len());
    }
}
