//! The messages that come all day, read without serde: changes of levels and trades, in the form in which the venue
//! sends them. Everything else about them, and all other messages, is read from [`dto`](super::dto).

use super::book::Side;
use crate::venue::loose::{change, dollars, qty};
use crate::venue::plain::{Plain, once};
use engine::amount::{Price, Qty};
use engine::time::Timestamp;

/// What was read.
pub(super) struct Frame<'a> {
    pub(super) kind: &'a str,
    pub(super) sid: Option<u64>,
    pub(super) seq: Option<u64>,
    pub(super) ticker: &'a str,
    pub(super) at: Option<Timestamp>,
    pub(super) what: What,
}

pub(super) enum What {
    /// A signed change of a bid.
    Delta(Side, Price, i64),
    /// Of this token, bought by the taker.
    Trade(Side, Price, Qty),
}

/// Fields by name, before it is known what they mean together.
#[derive(Default)]
struct Fields<'a> {
    ticker: Option<&'a str>,
    at: Option<u64>,
    price: Option<Price>,
    change: Option<i64>,
    side: Option<Side>,
    yes_price: Option<Price>,
    no_price: Option<Price>,
    count: Option<Qty>,
    taker: Option<Side>,
}

/// Reads a message that is one of the two and has nothing odd about it.
pub(super) fn read(text: &str) -> Option<Frame<'_>> {
    let (mut kind, mut sid, mut seq, mut fields) = (None, None, None, None);
    let mut plain = Plain::new(text)?;
    plain.object(|plain, name| match name {
        "type" => once(&mut kind, plain.text()?),
        "sid" => once(&mut sid, plain.whole()?),
        "seq" => once(&mut seq, plain.whole()?),
        "msg" => once(&mut fields, message(plain)?),
        _ => None,
    })?;
    plain.end()?;
    let (kind, fields) = (kind?, fields?);
    let Fields { ticker, at, price, change, side, yes_price, no_price, count, taker } = fields;
    let what = match kind {
        "orderbook_delta" => What::Delta(side?, price?, change?),
        "trade" => {
            let price = match taker? {
                Side::Yes => yes_price,
                Side::No => no_price,
            };
            What::Trade(taker?, price?, count?)
        }
        _ => return None,
    };
    Some(Frame { kind, sid, seq, ticker: ticker?, at: at.map(Timestamp::from_millis), what })
}

fn message<'a>(plain: &mut Plain<'a>) -> Option<Fields<'a>> {
    let mut fields = Fields::default();
    plain.object(|plain, name| match name {
        "market_ticker" => once(&mut fields.ticker, plain.text().filter(|ticker| !ticker.trim().is_empty())?),
        "price_dollars" => once(&mut fields.price, dollars(plain.text()?).ok()?),
        "delta_fp" => once(&mut fields.change, change(plain.text()?).ok()?),
        "side" => once(&mut fields.side, Side::named(plain.text()?)?),
        "ts_ms" => once(&mut fields.at, plain.whole()?),
        "yes_price_dollars" => once(&mut fields.yes_price, dollars(plain.text()?).ok()?),
        "no_price_dollars" => once(&mut fields.no_price, dollars(plain.text()?).ok()?),
        "count_fp" => once(&mut fields.count, qty(plain.text()?).ok()?),
        "taker_side" => once(&mut fields.taker, Side::named(plain.text()?)?),
        // Nobody here asks for them, however often they come.
        "market_id" | "trade_id" | "taker_outcome_side" | "taker_book_side" => plain.text().map(drop),
        "ts" => plain.text().map(drop).or_else(|| plain.whole().map(drop)),
        _ => None,
    })?;
    Some(fields)
}
