//! A row as bytes, without receipt and token, which are its key. The bytes never leave the process but for runs, which
//! have checksums; missing bytes read as zero.

use crate::row::{Event, Row};
use crate::varint::{Reader, put, put_signed};
use engine::amount::{Price, Qty, TickSize};
use engine::book::BookSide;
use engine::time::Timestamp;

/// Bytes of the length before a record.
pub(crate) const HEAD_BYTES: usize = 4;

const BOOK: u8 = 0;
const CHANGE: u8 = 1;
const TRADE: u8 = 2;
const TICK: u8 = 3;
/// Flags beside the kind: the side, and which optional values follow.
const IS_BID: u8 = 4;
const HAS_FIRST: u8 = 8;
const HAS_SECOND: u8 = 16;

/// Appends a record with its length before it.
pub(crate) fn write(row: &Row, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    let late = row.received.millis() as i64 - row.source.millis() as i64;
    match &row.event {
        Event::Book { bids, asks } => {
            out.push(BOOK);
            put_signed(out, late);
            for side in [bids, asks] {
                put(out, side.len() as u64);
                for (price, size) in side {
                    put(out, price.0.into());
                    put(out, size.0);
                }
            }
        }
        Event::PriceChange { price, size, side, best_bid, best_ask } => {
            out.push(CHANGE | flag(IS_BID, *side == BookSide::Bid) | both(best_bid.is_some(), best_ask.is_some()));
            put_signed(out, late);
            level(out, *price, *size);
            best_bid.iter().chain(best_ask).for_each(|price| put(out, price.0.into()));
        }
        Event::LastTradePrice { price, size, taker_buys, fee_rate_bps, transaction_hash } => {
            out.push(TRADE | flag(IS_BID, *taker_buys) | both(fee_rate_bps.is_some(), transaction_hash.is_some()));
            put_signed(out, late);
            level(out, *price, *size);
            fee_rate_bps.iter().for_each(|rate| put(out, (*rate).into()));
            // The rest of the record.
            transaction_hash.iter().for_each(|hash| out.extend_from_slice(hash.as_bytes()));
        }
        Event::TickSizeChange { old, new } => {
            out.push(TICK | both(old.is_some(), false));
            put_signed(out, late);
            old.iter().chain([new]).for_each(|tick| put(out, tick.0.into()));
        }
    }
    let len = (out.len() - start - HEAD_BYTES) as u32;
    out[start..start + HEAD_BYTES].copy_from_slice(&len.to_le_bytes());
}

/// The record that was written at a position.
pub(crate) fn at(records: &[u8], at: usize) -> &[u8] {
    let len = u32::from_le_bytes([records[at], records[at + 1], records[at + 2], records[at + 3]]) as usize;
    &records[at + HEAD_BYTES..at + HEAD_BYTES + len]
}

/// The venue's time and the event of a record.
pub(crate) fn read(record: &[u8], received: Timestamp) -> (Timestamp, Event) {
    let mut reader = Record(Reader::new(record));
    let head = reader.0.byte().unwrap_or(0);
    let has = |flag: u8| head & flag != 0;
    let late = reader.0.signed().unwrap_or(0);
    let source = Timestamp::from_millis((received.millis() as i64).wrapping_sub(late).max(0) as u64);
    let event = match head & 3 {
        BOOK => Event::Book { bids: reader.side(), asks: reader.side() },
        CHANGE => Event::PriceChange {
            price: reader.price(),
            size: Qty(reader.number()),
            side: if has(IS_BID) { BookSide::Bid } else { BookSide::Ask },
            best_bid: has(HAS_FIRST).then(|| reader.price()),
            best_ask: has(HAS_SECOND).then(|| reader.price()),
        },
        TRADE => Event::LastTradePrice {
            price: reader.price(),
            size: Qty(reader.number()),
            taker_buys: has(IS_BID),
            fee_rate_bps: has(HAS_FIRST).then(|| reader.number() as u16),
            transaction_hash: has(HAS_SECOND).then(|| String::from_utf8_lossy(reader.0.rest()).into()),
        },
        _ => Event::TickSizeChange {
            old: has(HAS_FIRST).then(|| TickSize(reader.number() as u16)),
            new: TickSize(reader.number() as u16),
        },
    };
    (source, event)
}

/// Reads numbers of a record.
struct Record<'a>(Reader<'a>);

impl Record<'_> {
    fn number(&mut self) -> u64 {
        self.0.number().unwrap_or(0)
    }

    fn price(&mut self) -> Price {
        Price(self.number() as u16)
    }

    fn side(&mut self) -> Vec<(Price, Qty)> {
        let count = (self.number() as usize).min(self.0.left());
        (0..count).map(|_| (self.price(), Qty(self.number()))).collect()
    }
}

fn flag(flag: u8, is_set: bool) -> u8 {
    if is_set { flag } else { 0 }
}

fn both(first: bool, second: bool) -> u8 {
    flag(HAS_FIRST, first) | flag(HAS_SECOND, second)
}

fn level(out: &mut Vec<u8>, price: Price, size: Qty) {
    put(out, price.0.into());
    put(out, size.0);
}
