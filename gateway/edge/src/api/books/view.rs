//! A book on the wire (gateway/docs/venue-clients.md §1.1): the token's own book as the venue shows it, best level last.
//! Written by hand, since books are read often; see [`super::records`].

use super::text_cache::CacheKey;
use crate::app::Edge;
use crate::reads::Reads;
use engine::amount::{Price, Qty, TickSize};
use engine::book::{Books, Depth, LastPrice, Level, SnapshotHash, Top, Unavailable};
use engine::id::InstrumentId;
use engine::market::catalog::MarketCell;
use engine::time::Timestamp;
use sha1::{Digest as _, Sha1};
use std::cell::RefCell;
use wire::decimal;
use wire::write::{Object, object, string};

thread_local! {
    /// The copy that the answers of this thread are made of, reused so that a read allocates nothing for it.
    static DEPTH: RefCell<Depth> = RefCell::default();
}

/// The place of the digest, which is computed from the fields after it.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000";

/// The last price of a book never traded, as the venue writes it.
const NEVER_TRADED: &[u8] = b"\"\"";

/// A book to write.
#[derive(Clone, Copy)]
pub struct BookRequest<'a> {
    pub cell: &'a MarketCell,
    pub instrument: InstrumentId,
    /// `None`: all levels.
    pub levels_max: Option<usize>,
    /// In the strict dialect a book has the venue's ten fields alone, in the venue's order, because its clients hash the
    /// fields that they get. The last price of a book never traded is an empty text there; in the plain one it is null.
    pub is_strict: bool,
}

/// A token's book at one moment.
#[derive(Clone, Copy)]
pub struct BookCopy<'a> {
    pub cell: &'a MarketCell,
    pub instrument: InstrumentId,
    pub depth: &'a Depth,
    pub last: Option<LastPrice>,
    pub tick: TickSize,
}

/// Writes one book.
///
/// # Errors
/// When no message about the book has arrived, when its market is resolved, or when the feed was writing at every try.
/// Nothing is written then.
pub fn book(out: &mut Vec<u8>, request: BookRequest<'_>, reads: &Reads, now: Timestamp) -> Result<(), Unavailable> {
    let BookRequest { cell, instrument, levels_max, is_strict } = request;
    copied(&reads.books, cell, instrument, levels_max.unwrap_or(usize::MAX), |shown| {
        write(out, shown, reads.books.stale(instrument, now), is_strict);
    })
}

/// The same through the cache of this thread: the text is cached for the next request of the same book.
///
/// # Errors
/// As [`book`].
pub fn cached_book(
    out: &mut Vec<u8>,
    request: BookRequest<'_>,
    edge: &Edge,
    now: Timestamp,
) -> Result<(), Unavailable> {
    let BookRequest { cell, instrument, levels_max, is_strict } = request;
    let (books, texts) = (&edge.app.reads.books, &edge.book_texts);
    // Each is read once: the key of a text has exactly the values that it was made of.
    let (last, tick, stale) = (books.last_price(instrument), cell.tick(), books.stale(instrument, now));
    let key = |version| CacheKey { instrument, levels_max, version, last, tick, stale, is_strict };
    if cell.resolution().is_none() && texts.write(out, &key(books.version(instrument))) {
        return Ok(());
    }
    let from = out.len();
    let version = copied(books, cell, instrument, levels_max.unwrap_or(usize::MAX), |shown| {
        write(out, BookCopy { last, tick, ..shown }, stale, is_strict);
        shown.depth.version
    })?;
    texts.insert(key(version), &out[from..]);
    Ok(())
}

/// Calls `look` with a copy of the book of a token, at most `levels_max` levels a side.
///
/// # Errors
/// As [`book`].
pub fn copied<T>(
    books: &Books,
    cell: &MarketCell,
    instrument: InstrumentId,
    levels_max: usize,
    look: impl FnOnce(BookCopy<'_>) -> T,
) -> Result<T, Unavailable> {
    if cell.resolution().is_some() {
        return Err(Unavailable::Unknown);
    }
    DEPTH.with_borrow_mut(|depth| {
        books.copy(instrument, levels_max, depth)?;
        let (last, tick) = (books.last_price(instrument), cell.tick());
        Ok(look(BookCopy { cell, instrument, depth, last, tick }))
    })
}

fn write(out: &mut Vec<u8>, shown: BookCopy<'_>, stale: bool, is_strict: bool) {
    let BookCopy { cell, depth, .. } = shown;
    object(out, |o| {
        if is_strict {
            o.text("market", &cell.listing.condition);
            o.text("asset_id", shown.token());
            shown.timestamp(o);
            shown.hashed(o);
            return;
        }
        o.text("token_id", shown.token());
        o.text("asset_id", shown.token());
        o.text("market", &cell.listing.condition);
        shown.hashed(o);
        if shown.last.is_none() {
            // The digest is of the venue's text, an empty one, in both dialects.
            let out = o.out();
            out.truncate(out.len() - NEVER_TRADED.len());
            out.extend_from_slice(b"null");
        }
        o.or_null("mid", depth.top.midpoint(), Object::average);
        o.or_null("spread", spread(depth.top), Object::price);
        shown.timestamp(o);
        o.boolean("stale", stale);
        o.word("source", "clob");
    });
}

impl BookCopy<'_> {
    pub fn token(&self) -> &str {
        self.cell.token(self.instrument.outcome())
    }

    /// The hash of the whole book: SHA-1 over the venue's ten fields as they are shown here, in the venue's order and
    /// with an empty hash. It is the venue's own hash where the venue writes its numbers as they are written here, and it
    /// can be recomputed from the answer in any case.
    pub fn hash(&self) -> SnapshotHash {
        let levels = self.depth.bids.len() + self.depth.asks.len();
        let mut fields = Vec::with_capacity(128 + 40 * levels);
        // The fields begin with a comma, as after any field.
        fields.push(b'"');
        let mut o = Object::going_on(&mut fields);
        self.sides(&mut o);
        self.terms(&mut o);
        self.digest_of(&fields[1..])
    }

    /// `"hash"`, and the fields that the venue has after it.
    fn hashed(&self, o: &mut Object<'_>) {
        let hash_at = o.name("hash").len() + 1;
        let out = o.out();
        string(out, NO_DIGEST);
        let fields_at = out.len();
        self.sides(o);
        self.terms(o);
        let out = o.out();
        let digest = self.digest_of(&out[fields_at..]);
        out[hash_at..hash_at + NO_DIGEST.len()].copy_from_slice(digest.as_str().as_bytes());
    }

    /// The same where the fields from the sides on are written already, with the comma before them.
    fn digest_of(&self, fields: &[u8]) -> SnapshotHash {
        let mut head = Vec::with_capacity(256);
        object(&mut head, |o| {
            o.text("market", &self.cell.listing.condition);
            o.text("asset_id", self.token());
            self.timestamp(o);
            o.word("hash", "");
        });
        let hash = Sha1::new().chain_update(&head[..head.len() - 1]).chain_update(fields).chain_update(b"}").finalize();
        let mut hex = [0; 40];
        for (digits, byte) in hex.chunks_exact_mut(2).zip(hash) {
            let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
            digits.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        let hex = std::str::from_utf8(&hex).expect("digits");
        SnapshotHash::new(hex).expect("forty digits")
    }

    /// `"bids"` ascending, `"asks"` descending: the best are last.
    pub fn sides(&self, o: &mut Object<'_>) {
        o.array("bids", self.depth.bids.iter().rev(), level);
        o.array("asks", self.depth.asks.iter().rev(), level);
    }

    /// The same of the best levels only.
    pub fn best_levels(&self, o: &mut Object<'_>, levels_max: usize) {
        o.array("bids", self.depth.bids.iter().take(levels_max).rev(), level);
        o.array("asks", self.depth.asks.iter().take(levels_max).rev(), level);
    }

    /// `"min_order_size"`, `"tick_size"`, `"neg_risk"`, `"last_trade_price"`.
    pub fn terms(&self, o: &mut Object<'_>) {
        let minimum = self.cell.listing.min_order_size.unwrap_or_else(|| self.tick.min_order_size());
        size(o, "min_order_size", minimum);
        quoted(o, "tick_size", |out| decimal::tick(out, self.tick));
        o.boolean("neg_risk", self.cell.listing.neg_risk);
        match self.last {
            Some(LastPrice { price, decimals: Some(decimals), .. }) => {
                quoted(o, "last_trade_price", |out| decimal::price_with(out, price, decimals));
            }
            Some(last) => o.price("last_trade_price", last.price),
            None => o.name("last_trade_price").extend_from_slice(NEVER_TRADED),
        }
    }

    /// `"timestamp"`: the last change, in milliseconds.
    pub fn timestamp(&self, o: &mut Object<'_>) {
        quoted(o, "timestamp", |out| decimal::integer(out, self.depth.changed_at.millis()));
    }
}

/// A level as an object of two texts.
fn level(out: &mut Vec<u8>, level: Level) {
    out.extend_from_slice(b"{\"price\":\"");
    decimal::price(out, level.price);
    out.extend_from_slice(b"\",\"size\":\"");
    decimal::size(out, level.size);
    out.extend_from_slice(b"\"}");
}

/// The venue's own minimum where it names one. No order is refused by it (engine/docs/execution.md §13).
pub fn min_order_size(cell: &MarketCell) -> Qty {
    cell.listing.min_order_size.unwrap_or_else(|| cell.tick().min_order_size())
}

/// A size as a text, whole.
pub fn size(o: &mut Object<'_>, name: &str, size: Qty) {
    quoted(o, name, |out| decimal::size(out, size));
}

/// A text made by `write`, without escapes.
pub fn quoted(o: &mut Object<'_>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    let out = o.name(name);
    out.push(b'"');
    write(out);
    out.push(b'"');
}

/// Best ask less best bid; `None` when a side is empty.
pub fn spread(top: Top) -> Option<Price> {
    Some(Price(top.ask?.price.0.saturating_sub(top.bid?.price.0)))
}
