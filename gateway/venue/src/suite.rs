//! The guarantees of every venue, checked on the frames that it hands out. Tests pass the frames to a [`Witness`].

use super::{BookSide, FeedUpdate, Frame, Level, Polled, Venue};
use engine::amount::{Price, Qty};
use engine::market::terms::MarketState;
use engine::time::Timestamp;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::PathBuf;

/// Sizes by price.
type Levels = BTreeMap<Price, Qty>;

/// Checks every frame against the guarantees of a venue.
#[derive(Default)]
pub struct Witness {
    tokens: HashMap<String, String>,
    conditions: HashMap<String, [String; 2]>,
    books: HashMap<String, Book>,
    resolved: HashSet<String>,
    last: Timestamp,
    digest: DefaultHasher,
    pub counts: BTreeMap<&'static str, u64>,
    pub frames: u64,
    /// Most levels on one side of a book so far.
    pub levels_max: usize,
    /// Result of each market, its time at the venue, and the time of its frame.
    pub resolutions: BTreeMap<String, (engine::market::terms::Resolution, Timestamp, Timestamp)>,
    pub listings: BTreeMap<String, engine::market::terms::Listing>,
    pub states: BTreeMap<String, MarketState>,
}

#[derive(Default)]
struct Book {
    bids: BTreeMap<Price, Qty>,
    asks: BTreeMap<Price, Qty>,
    synced: bool,
}

impl Witness {
    /// Polls until venue time `until`, in steps of server time, and checks each poll.
    pub fn run(&mut self, venue: &mut dyn Venue, from: Timestamp, until: Timestamp, step: u64) -> Polled {
        let mut now = from;
        loop {
            let polled = venue.poll(now, until, &mut |frame| self.see(&frame));
            assert!(polled.venue_now >= self.last, "venue time is before a frame: {polled:?} {:?}", self.last);
            assert!(polled.venue_now <= until || self.frames <= 1, "a poll exceeds its bound: {polled:?} {until:?}");
            if polled.venue_now >= until {
                return polled;
            }
            now = now.plus(step);
        }
    }

    pub fn see(&mut self, frame: &Frame<'_>) {
        self.frames += 1;
        assert!(frame.received >= self.last, "time goes back: {:?} after {:?}", frame.received, self.last);
        self.last = frame.received;
        frame.received.hash(&mut self.digest);
        let mut touched = Vec::new();
        for update in frame.updates {
            self.hash(update);
            self.update(update, frame.received, &mut touched);
        }
        for token in touched {
            let book = &self.books[&token];
            self.levels_max = self.levels_max.max(book.bids.len()).max(book.asks.len());
            let (bid, ask) = (book.bids.keys().next_back(), book.asks.keys().next());
            assert!(
                bid.zip(ask).is_none_or(|(bid, ask)| bid < ask),
                "a book is crossed after a frame: {token} {bid:?} {ask:?} at {:?}",
                frame.received
            );
        }
    }

    fn update(&mut self, update: &FeedUpdate, at: Timestamp, touched: &mut Vec<String>) {
        let kind = match update {
            FeedUpdate::Listed { listing, state } => {
                assert_ne!(*state, MarketState::Resolved, "listed as resolved: {listing:?}");
                let new = self.conditions.insert(listing.condition.clone(), listing.tokens.clone()).is_none();
                assert!(new, "listed twice: {}", listing.condition);
                assert!(listing.condition.len() == 66 && listing.condition.starts_with("0x"), "{}", listing.condition);
                for token in &listing.tokens {
                    assert!(token.len() <= 80 && token.bytes().all(|byte| byte.is_ascii_digit()), "{token}");
                    let other = self.tokens.insert(token.clone(), listing.condition.clone());
                    assert_eq!(other, None, "a token of two markets");
                }
                self.listings.insert(listing.condition.clone(), (**listing).clone());
                self.states.insert(listing.condition.clone(), *state);
                "listed"
            }
            FeedUpdate::StateChanged { condition, state } => {
                self.known(condition);
                assert_ne!(*state, MarketState::Resolved, "resolved by a state change: {condition}");
                assert!(!self.resolved.contains(condition), "changed after its resolution: {condition}");
                self.states.insert(condition.clone(), *state);
                "state"
            }
            FeedUpdate::EndChanged { condition, .. } => {
                self.known(condition);
                "end"
            }
            FeedUpdate::Figures { condition, .. } => {
                self.known(condition);
                "figures"
            }
            FeedUpdate::Stated { condition, .. } => {
                self.known(condition);
                "stated"
            }
            FeedUpdate::LastPrice { token, .. } => {
                assert!(self.books.contains_key(&**token), "a last price without a book: {token}");
                "last"
            }
            FeedUpdate::Strike { condition, .. } => {
                self.known(condition);
                "strike"
            }
            FeedUpdate::TickChanged { condition, .. } => {
                self.known(condition);
                "tick"
            }
            FeedUpdate::Fees { condition, .. } => {
                self.known(condition);
                "fees"
            }
            FeedUpdate::Resolved { condition, resolution, venue_ts } => {
                self.known(condition);
                assert!(self.resolved.insert(condition.clone()), "resolved twice: {condition}");
                self.resolutions.insert(condition.clone(), (*resolution, *venue_ts, at));
                self.states.insert(condition.clone(), MarketState::Resolved);
                "resolved"
            }
            FeedUpdate::BookSnapshot { token, bids, asks, .. } => {
                assert!(self.tokens.contains_key(&**token), "a book of an unlisted token: {token}");
                best_first(bids, |a, b| a > b);
                best_first(asks, |a, b| a < b);
                let levels = |side: &[Level]| side.iter().copied().collect::<BTreeMap<_, _>>();
                let book = Book { bids: levels(bids), asks: levels(asks), synced: true };
                self.books.insert(token.to_string(), book);
                touched.push(token.to_string());
                "snapshot"
            }
            FeedUpdate::BookDelta { token, levels, .. } => {
                let book = self.books.get_mut(&**token).filter(|book| book.synced);
                let book = book.unwrap_or_else(|| panic!("a delta without a snapshot: {token}"));
                for (side, price, size) in levels {
                    in_range(*price);
                    let side = match side {
                        BookSide::Bid => &mut book.bids,
                        BookSide::Ask => &mut book.asks,
                    };
                    if size.is_zero() {
                        side.remove(price)
                    } else {
                        side.insert(*price, *size)
                    };
                }
                touched.push(token.to_string());
                "delta"
            }
            FeedUpdate::LastTrade { token, price, size, .. } | FeedUpdate::SidelessTrade { token, price, size, .. } => {
                assert!(self.tokens.contains_key(&**token), "a trade of an unlisted token: {token}");
                in_range(*price);
                assert!(!size.is_zero());
                "trade"
            }
            FeedUpdate::Top { token, bid, ask } => {
                assert!(self.tokens.contains_key(&**token), "best prices of an unlisted token: {token}");
                bid.iter().chain(ask).for_each(|price| in_range(*price));
                "top"
            }
            FeedUpdate::Spot { micros, at: stated_at, .. } => {
                assert!(*micros > 0 && stated_at.0 > 0, "an empty price: {update:?}");
                "spot"
            }
            FeedUpdate::Gap { tokens, .. } => {
                let books = &mut self.books;
                tokens.iter().filter_map(|token| books.remove(token)).for_each(drop);
                if tokens.is_empty() {
                    books.values_mut().for_each(|book| book.synced = false);
                }
                "gap"
            }
            FeedUpdate::Left { tokens } => {
                tokens.iter().for_each(|token| drop(self.books.remove(token)));
                "left"
            }
        };
        *self.counts.entry(kind).or_default() += 1;
    }

    fn known(&self, condition: &str) {
        assert!(self.conditions.contains_key(condition), "a change of an unlisted market: {condition}");
    }

    /// Asserts that the two books of each market mirror each other.
    pub fn assert_mirrored(&self) {
        let mut checked = 0;
        for tokens in self.conditions.values() {
            let (Some(first), Some(second)) = (self.books.get(&tokens[0]), self.books.get(&tokens[1])) else {
                continue;
            };
            let mirror = |side: &BTreeMap<Price, Qty>| -> BTreeMap<Price, Qty> {
                side.iter().map(|(price, size)| (price.complement(), *size)).collect()
            };
            assert_eq!((&mirror(&first.bids), &mirror(&first.asks)), (&second.asks, &second.bids), "{tokens:?}");
            checked += 1;
        }
        assert!(checked > 0, "no market has two books");
    }

    /// Best bid and ask of a token.
    pub fn touch(&self, token: &str) -> (Option<Price>, Option<Price>) {
        let book = &self.books[token];
        (book.bids.keys().next_back().copied(), book.asks.keys().next().copied())
    }

    /// The books that are known: bids and asks by token.
    pub fn known_books(&self) -> BTreeMap<&str, (&Levels, &Levels)> {
        let known = self.books.iter().filter(|(_, book)| book.synced);
        known.map(|(token, book)| (token.as_str(), (&book.bids, &book.asks))).collect()
    }

    /// All levels of a token: bids and asks.
    pub fn levels(&self, token: &str) -> (&Levels, &Levels) {
        let book = &self.books[token];
        (&book.bids, &book.asks)
    }

    fn hash(&mut self, update: &FeedUpdate) {
        match update {
            // Nearly all updates are deltas; formatting them would take most of a test's time.
            FeedUpdate::BookDelta { token, levels, venue_ts } => {
                (token, venue_ts).hash(&mut self.digest);
                for (side, price, size) in levels {
                    (*side == BookSide::Bid, price, size).hash(&mut self.digest);
                }
            }
            other => format!("{other:?}").hash(&mut self.digest),
        }
    }

    /// A hash of all frames.
    pub fn digest(&self) -> u64 {
        self.digest.finish()
    }

    pub fn count(&self, kind: &str) -> u64 {
        self.counts.get(kind).copied().unwrap_or(0)
    }
}

fn best_first(levels: &[Level], better: impl Fn(Price, Price) -> bool) {
    for (price, size) in levels {
        in_range(*price);
        assert!(!size.is_zero(), "a snapshot with an empty level");
    }
    assert!(levels.windows(2).all(|pair| better(pair[0].0, pair[1].0)), "not sorted best first: {levels:?}");
}

fn in_range(price: Price) {
    assert!(price >= Price::LOWEST && price <= Price::HIGHEST, "a price outside (0, 1): {price:?}");
}

/// The folder of recorded venue data; `None`, with a message, if it is missing. With `PAPERTAPE_REQUIRE_VENUE_DATA`
/// set, a missing folder fails the test.
pub fn recorded(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PAPERTAPE_VENUE_DATA").map(PathBuf::from);
    let root = root.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/venue"));
    let path = root.join(part);
    if path.exists() {
        return Some(path);
    }
    let required = std::env::var_os("PAPERTAPE_REQUIRE_VENUE_DATA").is_some();
    assert!(!required, "PAPERTAPE_REQUIRE_VENUE_DATA is set, but {} is missing", path.display());
    // Written to stderr directly: output of the macros is shown only for failing tests.
    let test = std::thread::current().name().unwrap_or("a test").to_string();
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: no recorded venue data at {}", path.display());
    None
}

/// Broken variants of a well-formed payload: truncated, wrong types, huge numbers and texts, deep nesting.
pub fn broken(payload: &str) -> Vec<String> {
    let mut cases: Vec<String> = (0..payload.len())
        .step_by((payload.len() / 400).max(1))
        .filter(|at| payload.is_char_boundary(*at))
        .map(|at| payload[..at].to_string())
        .collect();
    let value: serde_json::Value = serde_json::from_str(payload).expect("a fixture is well-formed");
    let mut paths = Vec::new();
    leaves(&value, &mut Vec::new(), &mut paths);
    let digits = "9".repeat(400);
    let replacements = [
        "null".to_string(),
        "true".into(),
        "-1".into(),
        "1e400".into(),
        "1e-400".into(),
        digits.clone(),
        format!("\"{digits}\""),
        "\"\"".into(),
        "\"\\u0000\\ud83d\\ude00\"".into(),
        "\"NaN\"".into(),
        "[]".into(),
        "{}".into(),
        "[[[]]]".into(),
        "[null,null]".into(),
        "\"[\\\"a\\\"\"".into(),
        format!("{}{}", "[".repeat(500), "]".repeat(500)),
        format!("\"{}\"", "x".repeat(100_000)),
    ];
    const MARK: &str = "\u{1}replaced\u{1}";
    // The mark as serde escapes it.
    let written = serde_json::to_string(MARK).expect("a text");
    for path in paths.iter().take(120) {
        let mut marked = value.clone();
        if let Some(leaf) = marked.pointer_mut(path) {
            *leaf = MARK.into();
            let text = marked.to_string();
            cases.extend(replacements.iter().map(|with| text.replace(&written, with)));
        }
    }
    cases.extend(["", " ", "null", "0", "\"\"", "[]", "{}", "[1]", "[{}]", "[[", "\u{feff}{}"].map(String::from));
    cases
}

fn leaves(value: &serde_json::Value, path: &mut Vec<String>, paths: &mut Vec<String>) {
    paths.push(path.iter().map(|part| format!("/{part}")).collect());
    let mut inside = |key: String, value| {
        path.push(key);
        leaves(value, path, paths);
        path.pop();
    };
    match value {
        serde_json::Value::Array(values) => {
            values.iter().take(3).enumerate().for_each(|(at, value)| inside(at.to_string(), value))
        }
        serde_json::Value::Object(fields) => fields.iter().for_each(|(key, value)| inside(key.clone(), value)),
        _ => {}
    }
}
