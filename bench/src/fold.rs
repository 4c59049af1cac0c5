//! Messages of both venues folded into ladders on one core: a line of a recording is read, decoded, translated, and
//! written to the books; compared with the bare parse of the same texts into borrowed structs.
//!
//! Kalshi: the recorded evening that `PAPERTAPE_VENUE_DATA` names, else generated messages of the same shape.
//! Polymarket: frames generated in the recorded shape, since there is no long recording: a book of each token, then
//! changes of both.

use crate::chance::Chance;
use crate::floor::Floor;
use crate::report::{ONE_BY_ONE, Report, Size, timed};
use engine::book::{BookWriter, Books, publish};
use engine::market::Markets;
use engine::market::catalog::Catalog;
use engine::market::terms::{Listing, MarketState, Venue};
use engine::time::Timestamp;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use venue::skips::Skips;
use venue::tape::{Record, Tape};
use venue::{FeedUpdate, kalshi, polymarket};

const ROUNDS: usize = 7;
/// A quiet machine of the kind for which the goals were set makes 2.0 and 1.2 million; below half of the lesser one the
/// core was shared.
const PARSE_FLOOR: Floor = Floor { of: "parsing alone", least: 600_000.0 };
/// Receive times of generated messages begin here, in ms.
const BEGINS_MS: u64 = 1_786_406_400_000;
const TICKER: &str = "KXMADE-1";
const CONDITION: &str = "0xaa00000000000000000000000000000000000000000000000000000000000001";

pub fn run(size: Size, report: &mut Report) {
    let count = size.pick(2_000, 300_000);
    let skips = Arc::new(Skips::default());
    let recorded = (size == Size::Full).then(|| recording(count)).flatten();
    let are_made = recorded.is_none();
    let (source, lists, lines) = recorded.unwrap_or_else(|| ("generated".into(), Vec::new(), kalshi_lines(count)));
    report.note("messages of Kalshi", format!("{} lines, {source}", lines.len()));
    let listed = || {
        let mut translate = kalshi::Translate::new(kalshi::Sequence::Ignored, skips.clone(), Default::default());
        let mut known: Vec<Listing> =
            lists.iter().flat_map(|text| translate.metadata(text)).map(|dated| dated.listing).collect();
        let mut updates = Vec::new();
        let made = format!(r#"{{"markets":[{{"ticker":"{TICKER}","title":"t","status":"active"}}]}}"#);
        translate.rest("/markets", 200, &made, Timestamp::from_millis(BEGINS_MS), &mut updates);
        known.extend(listings(updates));
        (translate, known)
    };
    measure("Kalshi", (&lines, are_made), size, report, listed, |translate, body, at, updates| {
        translate.frame(body, 0, at, updates);
    });
    let lines = polymarket_lines(count);
    report.note("messages of Polymarket", format!("{} frames generated in the recorded shape", lines.len()));
    let listed = || {
        let mut translate = polymarket::Translate::new(skips.clone(), Default::default());
        let mut updates = Vec::new();
        let row = format!(
            r#"[{{"id":"1","conditionId":"{CONDITION}","slug":"s","clobTokenIds":"[\"{}\",\"{}\"]","active":true,"closed":false,"acceptingOrders":true}}]"#,
            token(1),
            token(2)
        );
        translate.rest(("/markets", 200, &row), 0, Timestamp::from_millis(BEGINS_MS), &mut updates);
        (translate, listings(updates))
    };
    measure("Polymarket", (&lines, true), size, report, listed, |translate, body, at, updates| {
        translate.frame(body, 0, at, updates);
    });
    report.rate_note(ONE_BY_ONE);
    report.not_included("reading and unpacking files, sockets, the journal, and listeners of changes");
}

/// Folds the lines, alternating with a bare parse of them, each time from nothing. Every generated line is a book
/// message; a recording has other lines, too, the same number each time.
fn measure<T>(
    name: &str,
    (lines, are_made): (&[String], bool),
    size: Size,
    report: &mut Report,
    listed: impl Fn() -> (T, Vec<Listing>),
    frame: impl Fn(&mut T, &str, Timestamp, &mut Vec<FeedUpdate>),
) {
    let (mut ratios, mut rates, mut bare_rates) = (Vec::new(), Vec::new(), Vec::new());
    let mut known = are_made.then_some(lines.len());
    for round in 0..size.pick(1, ROUNDS) {
        let (mut translate, listings) = listed();
        let (mut desk, mut messages) = (Desk::new(&listings), 0);
        let mut fold = || {
            let mut updates = Vec::new();
            for (number, line) in lines.iter().enumerate() {
                let at = Timestamp::from_millis(BEGINS_MS + number as u64);
                let Some(Record::Frame { body, .. }) = Record::parse(line) else { continue };
                updates.clear();
                frame(&mut translate, &body, at, &mut updates);
                let before = desk.written;
                desk.write(&updates, at);
                messages += usize::from(desk.written > before);
            }
        };
        let alone = || lines.iter().filter(|line| is_parsed(line)).count();
        // The order alternates: the first run finds the lines colder in the cache.
        let ((seconds, ()), (bare, parsed)) = match round % 2 {
            0 => (timed(&mut fold), timed(alone)),
            _ => {
                let bare = timed(alone);
                (timed(&mut fold), bare)
            }
        };
        assert_eq!(parsed, lines.len(), "every line is a message");
        let expected = *known.get_or_insert(messages);
        assert_eq!(messages, expected, "{name}: each round counts the same book messages, of {} messages", lines.len());
        if round == 0 {
            report.computed(desk.written.to_le_bytes());
            report.computed(desk.tops());
        }
        ratios.push(seconds / bare);
        rates.push(lines.len() as f64 / seconds);
        bare_rates.push(lines.len() as f64 / bare);
    }
    report.figure(&format!("{name}: messages about books"), known.unwrap_or_default() as f64, "");
    report.middle(&format!("{name}: folded into ladders"), &rates, "messages a second");
    report.middle(&format!("{name}: parsed alone"), &bare_rates, "messages a second");
    let what = format!("{name}: time of a message beside parsing alone");
    report.ratio_above(&[(&PARSE_FLOOR, &bare_rates)], &what, ratios);
}

/// Books and their index, as the feed has them.
pub(crate) struct Desk {
    books: Arc<Books>,
    catalog: Catalog,
    writer: BookWriter,
    /// Updates that were written.
    written: u64,
}

impl Desk {
    pub(crate) fn new(listings: &[Listing]) -> Desk {
        let (books, catalog, mut markets) = (Arc::new(Books::new()), Catalog::new(), Markets::new());
        let mut writer = books.writer().expect("the first writer");
        for listing in listings {
            let at = Timestamp::from_millis(BEGINS_MS);
            for fact in markets.list(&Listing { end: None, ..listing.clone() }, MarketState::Active, at, at) {
                markets.apply(&fact);
                publish(&fact, &catalog, &mut writer);
            }
        }
        Desk { books, catalog, writer, written: 0 }
    }

    pub(crate) fn write(&mut self, updates: &[FeedUpdate], at: Timestamp) {
        let (catalog, written) = (&self.catalog, &mut self.written);
        self.writer.frame(0, at, |books| {
            for update in updates {
                match update {
                    FeedUpdate::BookSnapshot { token, bids, asks, venue_ts, hash } => {
                        let Some(instrument) = catalog.by_token(token) else { continue };
                        books.snapshot(instrument, bids, asks, *venue_ts, hash.as_deref());
                    }
                    FeedUpdate::BookDelta { token, levels, venue_ts } => {
                        let Some(instrument) = catalog.by_token(token) else { continue };
                        books.delta(instrument, levels, *venue_ts);
                    }
                    _ => continue,
                }
                *written += 1;
            }
        });
    }

    /// Best prices of all books.
    pub(crate) fn tops(&self) -> String {
        let tops = self.catalog.iter().map(|market| {
            use engine::id::Outcome::{First, Second};
            format!("{:?}", [First, Second].map(|outcome| self.books.best(market.instrument(outcome))))
        });
        tops.collect()
    }
}

fn listings(updates: Vec<FeedUpdate>) -> Vec<Listing> {
    let listing = |update| match update {
        FeedUpdate::Listed { listing, .. } => Some(*listing),
        _ => None,
    };
    updates.into_iter().filter_map(listing).collect()
}

/// A line of either kind, with the fields of a book.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    event: Option<Event<'a>>,
    #[serde(borrow)]
    m: Option<Change<'a>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a str,
    sid: u64,
    seq: u64,
    #[serde(borrow)]
    msg: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    market_ticker: &'a str,
    price_dollars: Option<&'a str>,
    delta_fp: Option<&'a str>,
    side: Option<&'a str>,
    ts_ms: Option<u64>,
    #[serde(borrow)]
    yes_dollars_fp: Option<Vec<(&'a str, &'a str)>>,
    #[serde(borrow)]
    no_dollars_fp: Option<Vec<(&'a str, &'a str)>>,
}

#[derive(Deserialize)]
struct Change<'a> {
    event_type: &'a str,
    timestamp: &'a str,
    asset_id: Option<&'a str>,
    #[serde(borrow)]
    price_changes: Option<Vec<LevelChange<'a>>>,
    #[serde(borrow)]
    bids: Option<Vec<Level<'a>>>,
    #[serde(borrow)]
    asks: Option<Vec<Level<'a>>>,
}

#[derive(Deserialize)]
struct LevelChange<'a> {
    asset_id: &'a str,
    price: &'a str,
    size: &'a str,
    side: &'a str,
    hash: &'a str,
}

#[derive(Deserialize)]
struct Level<'a> {
    price: &'a str,
    size: &'a str,
}

/// Whether a line is a message; all fields are used, so that the compiler drops none.
pub(crate) fn is_parsed(line: &str) -> bool {
    let Ok(Line { event, m }) = serde_json::from_str::<Line<'_>>(line) else { return false };
    let event = event.map(|Event { kind, sid, seq, msg }| {
        let Message { market_ticker, price_dollars, delta_fp, side, ts_ms, yes_dollars_fp, no_dollars_fp } = msg;
        std::hint::black_box((kind, sid, seq, market_ticker, price_dollars, delta_fp, side, ts_ms));
        std::hint::black_box((yes_dollars_fp, no_dollars_fp));
    });
    let m = m.map(|Change { event_type, timestamp, asset_id, price_changes, bids, asks }| {
        for LevelChange { asset_id, price, size, side, hash } in price_changes.into_iter().flatten() {
            std::hint::black_box((asset_id, price, size, side, hash));
        }
        for Level { price, size } in bids.into_iter().chain(asks).flatten() {
            std::hint::black_box((price, size));
        }
        std::hint::black_box((event_type, timestamp, asset_id));
    });
    event.or(m).is_some()
}

/// The first lines of the recorded evening, and its metadata; nothing if the recording is not available.
fn recording(count: usize) -> Option<(String, Vec<String>, Vec<String>)> {
    let folder = PathBuf::from(std::env::var_os("PAPERTAPE_VENUE_DATA")?).join("kalshi_ws");
    let mut tape = Tape::open(&folder, false, Arc::default()).ok()?;
    let metadata = tape.metadata().iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    let mut lines = Vec::with_capacity(count);
    while lines.len() < count
        && let Some(line) = tape.next_line()
    {
        lines.push(line.text.to_owned());
    }
    Some(("recorded depth of one evening".into(), metadata, lines))
}

fn kalshi_lines(count: usize) -> Vec<String> {
    let mut chance = Chance::seeded(3);
    let line = |number: usize| {
        let at = BEGINS_MS + number as u64;
        if number == 0 {
            return format!(
                r#"{{"recv_ms":{at},"event":{{"type":"orderbook_snapshot","sid":1,"seq":1,"msg":{{"market_ticker":"{TICKER}","yes_dollars_fp":[["0.4000","10.00"]],"no_dollars_fp":[["0.5000","10.00"]]}}}}}}"#
            );
        }
        let (price, side) = (1 + chance.below(38), if chance.below(2) == 0 { "yes" } else { "no" });
        format!(
            r#"{{"recv_ms":{at},"event":{{"type":"orderbook_delta","sid":1,"seq":{},"msg":{{"market_ticker":"{TICKER}","market_id":"9b0f6b43-5b68-4f9f-9f02-9a2d1b8ac1a1","price_dollars":"0.{price:02}00","delta_fp":"{}.00","side":"{side}","ts":"2026-08-11T00:00:05.459018Z","ts_ms":{at}}}}}}}"#,
            number + 1,
            1 + chance.below(50)
        )
    };
    (0..count).map(line).collect()
}

pub(crate) fn token(number: usize) -> String {
    format!("{}{number}", "7".repeat(74))
}

fn polymarket_lines(count: usize) -> Vec<String> {
    let mut chance = Chance::seeded(4);
    let venue = Venue::Polymarket.name();
    let book = |at: u64, number: usize| {
        let side = |from: u64, to: u64| -> String {
            let level = |cents| format!(r#"{{"price":"0.{cents:02}","size":"{}"}}"#, 10 + cents);
            (from..to).map(level).collect::<Vec<_>>().join(",")
        };
        let (bids, asks) = (side(1, 40), side(60, 99));
        format!(
            r#"{{"r":{at},"v":"{venue}","c":"c","m":{{"event_type":"book","asset_id":"{}","market":"{CONDITION}","timestamp":"{at}","hash":"{at:x}","bids":[{bids}],"asks":[{asks}]}}}}"#,
            token(number)
        )
    };
    let mut change = |at: u64| {
        let (cents, size) = (1 + chance.below(39), chance.below(900));
        let one = |number: usize, cents: u64, side: &str| {
            format!(
                r#"{{"asset_id":"{}","price":"0.{cents:02}","size":"{size}","side":"{side}","hash":"{at:040x}","best_bid":"0.39","best_ask":"0.6"}}"#,
                token(number)
            )
        };
        format!(
            r#"{{"r":{at},"v":"{venue}","c":"c","m":{{"event_type":"price_change","market":"{CONDITION}","timestamp":"{at}","price_changes":[{},{}]}}}}"#,
            one(1, cents, "BUY"),
            one(2, 100 - cents, "SELL")
        )
    };
    let line = |number: usize| match number {
        0 | 1 => book(BEGINS_MS, number + 1),
        number => change(BEGINS_MS + number as u64),
    };
    (0..count).map(line).collect()
}
