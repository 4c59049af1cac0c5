//! The messages that come all day, read without serde: changes of levels and trades, in the form in which the venue
//! sends them. Everything else about them, and all other messages, is read from [`dto`](super::dto).

use super::book::Side;
use crate::loose::{change, dollars, qty};
use crate::plain::{Plain, once};
use crate::trade_id;
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
    Trade(Side, Price, Qty, Option<u64>),
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
    /// Of a trade.
    id: Option<u64>,
}

/// Reads a message that is one of the two and has nothing odd about it.
pub(super) fn read(text: &str) -> Option<Frame<'_>> {
    let plain = Plain::new(text)?;
    as_written(plain.clone()).or_else(|| by_names(plain))
}

/// A change with its fields in the order in which the venue writes them: nineteen of twenty messages are one.
fn as_written(mut plain: Plain<'_>) -> Option<Frame<'_>> {
    const KIND: &str = "orderbook_delta";
    plain.literal(r#"{"type":"orderbook_delta","sid":"#)?;
    let sid = plain.whole()?;
    plain.literal(r#","seq":"#)?;
    let seq = plain.whole()?;
    plain.literal(r#","msg":{"market_ticker":""#)?;
    let ticker = plain.up_to_quote().filter(|ticker| !ticker.trim().is_empty())?;
    plain.literal(r#","market_id":""#)?;
    plain.up_to_quote()?;
    plain.literal(r#","price_dollars":""#)?;
    let price = dollars(plain.up_to_quote()?).ok()?;
    plain.literal(r#","delta_fp":""#)?;
    let change = change(plain.up_to_quote()?).ok()?;
    plain.literal(r#","side":""#)?;
    let side = Side::named(plain.up_to_quote()?)?;
    plain.literal(r#","ts":""#)?;
    plain.up_to_quote()?;
    plain.literal(r#","ts_ms":"#)?;
    let at = Timestamp::from_millis(plain.whole()?);
    plain.literal("}}")?;
    plain.end()?;
    let what = What::Delta(side, price, change);
    Some(Frame { kind: KIND, sid: Some(sid), seq: Some(seq), ticker, at: Some(at), what })
}

fn by_names(mut plain: Plain<'_>) -> Option<Frame<'_>> {
    let (mut kind, mut sid, mut seq, mut fields) = (None, None, None, None);
    plain.object(|plain, name| match name {
        "type" => once(&mut kind, plain.text()?),
        "sid" => once(&mut sid, plain.whole()?),
        "seq" => once(&mut seq, plain.whole()?),
        "msg" => once(&mut fields, message(plain)?),
        _ => None,
    })?;
    plain.end()?;
    let (kind, fields) = (kind?, fields?);
    let Fields { ticker, at, price, change, side, yes_price, no_price, count, taker, id } = fields;
    let what = match kind {
        "orderbook_delta" => What::Delta(side?, price?, change?),
        "trade" => {
            let price = match taker? {
                Side::Yes => yes_price,
                Side::No => no_price,
            };
            What::Trade(taker?, price?, count?, id)
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
        "trade_id" => once(&mut fields.id, trade_id(plain.text().filter(|id| !id.trim().is_empty())?)),
        "market_id" | "taker_outcome_side" | "taker_book_side" => plain.text().map(drop),
        "ts" => plain.text().map(drop).or_else(|| plain.whole().map(drop)),
        _ => None,
    })?;
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_alike_in_any_order_of_its_fields() {
        let written = r#"{"type":"orderbook_delta","sid":1,"seq":11786132,"msg":{"market_ticker":"KX-1","market_id":"6aee5007","price_dollars":"0.0500","delta_fp":"-86.25","side":"yes","ts":"2026-08-11T00:00:00.000011Z","ts_ms":1786406400000}}"#;
        let (head, msg) = written.split_once(r#","msg":"#).expect("two parts");
        let turned = format!(r#"{{"msg":{},{}}}"#, msg.strip_suffix('}').expect("an end"), &head[1..]);
        let cases = [
            // text, whether it is in the venue's order
            (written.to_owned(), true),
            (turned, false),
            (written.replace(":1,", ": 1 , "), false),
            (written.replace(r#""market_id":"6aee5007","#, ""), false),
        ];
        for (text, is_written) in &cases {
            let plain = Plain::new(text).expect("nothing odd");
            assert_eq!(as_written(plain.clone()).is_some(), *is_written, "{text}");
            for read in [as_written(plain.clone()), by_names(plain), read(text)].into_iter().flatten() {
                let Frame { kind, sid, seq, ticker, at, what: What::Delta(side, price, change) } = read else {
                    panic!("{text}")
                };
                assert_eq!((kind, sid, seq), ("orderbook_delta", Some(1), Some(11_786_132)), "{text}");
                assert_eq!((ticker, at), ("KX-1", Some(Timestamp::from_millis(1_786_406_400_000))), "{text}");
                assert_eq!((side, price, change), (Side::Yes, Price(500), -86_250_000), "{text}");
            }
            assert!(read(text).is_some(), "{text}");
        }
        let others = [
            written.replace("}}", "}} x"),
            written.replace("}}", "},\"sid\":1}"),
            written.replace("KX-1", " "),
            written.replace("0.0500", "0.05005"),
            written.replace("KX-1", "\\u0041"),
            written.replace("yes", "up"),
            written[..written.len() - 1].to_owned(),
        ];
        assert!(others.iter().all(|text| read(text).is_none()), "left to others");
        println!("changes in any order: {} cases", cases.len() + others.len());
    }
}
