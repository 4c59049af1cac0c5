//! Frames of the market channel (gateway/docs/streams.md §4.2). Books and hashes come from the writers of the book
//! routes, so a stream and a read never differ.

use super::change::Trade;
use crate::api::books::view::{BookCopy, quoted, size, spread};
use engine::amount::{Bps, Price, Qty};
use engine::book::{BookSide, SnapshotHash, Top};
use engine::id::Outcome;
use engine::market::catalog::MarketCell;
use engine::time::Timestamp;
use wire::decimal;
use wire::write::{Object, object};

/// The size of a level after a change; 0 means gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSize {
    pub side: BookSide,
    pub price: Price,
    pub size: Qty,
}

/// The part of `price_change` about one token.
#[derive(Clone, Copy, Debug)]
pub struct TokenLevels<'a> {
    pub outcome: Outcome,
    pub levels: &'a [LevelSize],
    pub hash: SnapshotHash,
    pub top: Top,
}

/// `book`. `at` is its timestamp, never earlier than that of the token's earlier frames.
pub fn book(out: &mut Vec<u8>, shown: BookCopy<'_>, hash: &SnapshotHash, at: Timestamp) {
    object(out, |o| {
        o.word("event_type", "book");
        o.text("asset_id", shown.token());
        o.text("market", &shown.cell.listing.condition);
        timestamp(o, at);
        o.text("hash", hash.as_str());
        shown.sides(o);
        shown.terms(o);
    });
}

/// `price_change`: both outcomes in one frame.
pub fn price_change<'a>(
    out: &mut Vec<u8>,
    cell: &MarketCell,
    moved: impl IntoIterator<Item = TokenLevels<'a>>,
    at: Timestamp,
) {
    object(out, |o| {
        o.word("event_type", "price_change");
        o.text("market", &cell.listing.condition);
        timestamp(o, at);
        let each = |moved: TokenLevels<'a>| moved.levels.iter().map(move |level| (moved, level));
        o.array("price_changes", moved.into_iter().flat_map(each), |out, (moved, level)| {
            object(out, |o| {
                o.text("asset_id", cell.token(moved.outcome));
                o.price("price", level.price);
                size(o, "size", level.size);
                o.word("side", if level.side == BookSide::Bid { "BUY" } else { "SELL" });
                o.text("hash", moved.hash.as_str());
                // An empty side has the venue's marks here, which are not prices.
                match moved.top.bid {
                    Some(bid) => o.price("best_bid", bid.price),
                    None => o.word("best_bid", "0"),
                }
                match moved.top.ask {
                    Some(ask) => o.price("best_ask", ask.price),
                    None => o.word("best_ask", "1"),
                }
            });
        });
    });
}

/// `best_bid_ask`. Fields of an empty side are left out.
pub fn best_bid_ask(out: &mut Vec<u8>, cell: &MarketCell, outcome: Outcome, top: Top, at: Timestamp) {
    object(out, |o| {
        o.word("event_type", "best_bid_ask");
        o.text("market", &cell.listing.condition);
        o.text("asset_id", cell.token(outcome));
        if let Some(bid) = top.bid {
            o.price("best_bid", bid.price);
        }
        if let Some(ask) = top.ask {
            o.price("best_ask", ask.price);
        }
        if let Some(spread) = spread(top) {
            o.price("spread", spread);
        }
        timestamp(o, at);
    });
}

/// `last_trade_price`: a trade at the venue. The feed has no transaction hash, so the frame has no such field.
pub fn last_trade_price(out: &mut Vec<u8>, cell: &MarketCell, outcome: Outcome, changed: &Trade, fee_rate: Bps) {
    let Trade { trade, at, hash, .. } = changed;
    object(out, |o| {
        o.word("event_type", "last_trade_price");
        o.text("market", &cell.listing.condition);
        o.text("asset_id", cell.token(outcome));
        o.price("price", trade.price);
        size(o, "size", trade.size);
        o.word("side", if trade.taker_buys { "BUY" } else { "SELL" });
        quoted(o, "fee_rate_bps", |out| decimal::integer(out, fee_rate.0.into()));
        timestamp(o, *at);
        // The hash of a book covers its last trade. Without it the client's book would have another hash than `GET
        // /v1/book`.
        if let Some(hash) = hash {
            o.text("hash", hash.as_str());
        }
    });
}

fn timestamp(o: &mut Object<'_>, at: Timestamp) {
    quoted(o, "timestamp", |out| decimal::integer(out, at.millis()));
}
