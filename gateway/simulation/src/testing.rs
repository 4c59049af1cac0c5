//! Archives of hand-made and random rows for tests.

use crate::past::Past;
use archive::row::{Condition, Event, Row};
use archive::sidecar::{Gap, HourFacts, Sidecar};
use archive::store::{Files, Lock, Settings, Store};
use archive::write::HourWriter;
use edge::api::simulation::spec::Spec;
use engine::amount::{Price, Qty};
use engine::backtest::Hour;
use engine::book::BookSide;
use engine::time::{MILLISECOND, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;
use venue::category::Names;

pub const VENUE: &str = "polymarket";
/// 2026-09-30T17, the first hour of the tests.
pub const FIRST: Hour = Hour(497_465);

/// An archive in a folder that is removed at the end.
pub struct Shelf {
    pub folder: TempDir,
    pub store: Arc<Store>,
}

/// An hour to make.
pub struct Making {
    pub hour: u32,
    pub rows: Vec<Row>,
    pub gaps: Vec<Gap>,
    pub is_partial: bool,
}

impl Shelf {
    pub fn new() -> Shelf {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("archive"), Settings::default()).expect("an archive");
        Shelf { folder, store: Arc::new(store) }
    }

    /// Makes an hour of these rows, which are brought into the order of a file.
    pub fn make(&self, making: Making) {
        self.make_in(VENUE, making);
    }

    /// The same of this venue.
    pub fn make_in(&self, venue: &str, making: Making) {
        let Making { hour, mut rows, gaps, is_partial } = making;
        let hour = Hour(FIRST.0 + hour);
        rows.sort_by(|one, other| {
            (one.market, &one.token, one.received).cmp(&(other.market, &other.token, other.received))
        });
        let lock = self.store.lock().expect("the lock");
        let path = self.store.begin(&lock, venue, hour).expect("begun");
        let mut writer = HourWriter::create(&path, Some([hour.0 as u8; 32])).expect("a file");
        rows.iter().for_each(|row| writer.push(row).expect("a row"));
        let millis = |row: &Row| row.received.millis();
        let mut sidecar = Sidecar {
            built_by: "test".to_owned(),
            first_received: rows.iter().map(millis).min(),
            last_received: rows.iter().map(millis).max(),
            gaps,
            ..Sidecar::default()
        };
        sidecar.frames.dropped = Some(0);
        sidecar.set_rows(writer.counts());
        let files = files(&self.store, &lock, venue, hour, writer);
        let facts = HourFacts { is_partial, ..HourFacts::default() };
        self.store.complete(&lock, venue, hour, sidecar, facts, files).expect("complete");
    }

    /// A whole hour of these rows.
    pub fn hour(&self, hour: u32, rows: Vec<Row>) {
        self.make(Making { hour, rows, gaps: Vec::new(), is_partial: false });
    }

    pub fn past(&self) -> Past {
        Past::new(self.store.clone(), Names::default())
    }
}

/// The Parquet file of an hour, and its index.
pub fn files(store: &Store, lock: &Lock, venue: &str, hour: Hour, writer: HourWriter) -> Files {
    let parquet = writer.prepare().expect("written");
    let (file, digest) = (parquet.open().expect("Parquet"), parquet.written().sha256);
    let index = store.index(lock, venue, hour, &file, digest, &|| false).expect("in order").expect("it goes on");
    Files { parquet, index }
}

pub fn condition(market: u64) -> Condition {
    let mut id = [0; 32];
    // Their order is not that of the numbers.
    id[..8].copy_from_slice(&market.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    Condition(id)
}

/// The tokens of a market ascend, so the first one is `Token A`.
pub fn token(market: u64, outcome: u64) -> Arc<str> {
    format!("{}{:04}", 10_000 + market, outcome).into()
}

/// A moment, in milliseconds since the first hour began.
pub fn at(millis: u64) -> Timestamp {
    FIRST.start().plus(millis * MILLISECOND)
}

pub fn row(millis: u64, market: u64, outcome: u64, event: Event) -> Row {
    let received = at(millis);
    Row { received, source: received, market: condition(market), token: token(market, outcome), event }
}

fn levels(levels: &[(u16, u64)]) -> Vec<(Price, Qty)> {
    levels.iter().map(|(price, shares)| (Price(*price), Qty::from_shares(*shares))).collect()
}

/// A whole book: prices in 10⁻⁴, sizes in shares.
pub fn book(bids: &[(u16, u64)], asks: &[(u16, u64)]) -> Event {
    Event::Book { bids: levels(bids), asks: levels(asks) }
}

pub fn change(side: BookSide, price: u16, shares: u64) -> Event {
    let size = Qty::from_shares(shares);
    Event::PriceChange { price: Price(price), size, side, best_bid: None, best_ask: None }
}

/// Both tokens of a market, which have a book in each of `hours`: cheap, then dear from minute 30 of the second hour on.
pub fn rising(shelf: &Shelf, market: u64, hours: u32) {
    for hour in 0..hours {
        let start = u64::from(hour) * 3_600_000;
        let mut rows = Vec::new();
        for (minute, bid, ask) in [(0, 2_900, 3_100), (30, if hour == 0 { 2_900 } else { 4_500 }, 4_700)] {
            let ask = if hour == 0 { 3_100 } else { ask };
            let millis = start + minute * 60_000;
            rows.push(row(millis, market, 0, book(&[(bid, 100)], &[(ask, 60)])));
            rows.push(row(millis, market, 1, book(&[(10_000 - ask, 60)], &[(10_000 - bid, 100)])));
        }
        shelf.hour(hour, rows);
    }
}

/// A request for these markets and hours with changed fields.
pub fn spec(markets: &[u64], hours: u32, changes: &Value) -> Spec {
    let time = |hour: u32| wire::instant::ts_text(Hour(FIRST.0 + hour).start());
    let mut body = json!({
        "condition_ids": markets.iter().map(|market| condition(*market).to_string()).collect::<Vec<_>>(),
        "start": time(0), "end": time(hours), "initial_bankroll": "500",
        "strategy": {
            "outcome": "token a", "size": "25",
            "entry": [{"field": "price", "op": "lte", "value": "0.31"}],
            "exit": [{"field": "price", "op": "gte", "value": "0.45"}],
        },
    });
    for (name, value) in changes.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    let text = body.to_string();
    Spec::read(&wire::read::json(text.as_bytes()).expect("JSON"), Timestamp(u64::MAX)).expect("a request")
}

/// A small generator of numbers.
pub struct Chance(u64);

impl Chance {
    pub fn seeded(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound
    }
}
