//! Fast parser of the most frequent messages, changes of levels and trades, in the form in which the venue sends them.
//! Other messages and other forms are parsed with [`dto`](super::dto).

use super::book::Side;
use crate::json_scanner::{JsonScanner, once};
use crate::loose::{change, dollars, qty};
use engine::amount::{Price, Qty};
use engine::time::Timestamp;

/// A parsed message.
pub(super) struct Frame<'a> {
    pub(super) kind: &'a str,
    pub(super) sid: Option<u64>,
    pub(super) seq: Option<u64>,
    pub(super) ticker: &'a str,
    pub(super) at: Option<Timestamp>,
    pub(super) content: Content<'a>,
}

pub(super) enum Content<'a> {
    /// A signed change of a bid.
    Delta(Side, Price, i64),
    /// On this token, bought by the taker, with the venue's id.
    Trade(Side, Price, Qty, Option<&'a str>),
}

/// Fields by name, before they are combined.
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
    id: Option<&'a str>,
}

/// Parses a change or a trade in the usual form; `None` for anything else.
pub(super) fn read(text: &str) -> Option<Frame<'_>> {
    let scanner = JsonScanner::new(text)?;
    as_written(scanner.clone()).or_else(|| by_names(scanner))
}

/// Parses a change with its fields in the venue's order: 19 of 20 messages are of this form.
fn as_written(mut scanner: JsonScanner<'_>) -> Option<Frame<'_>> {
    const KIND: &str = "orderbook_delta";
    scanner.literal(r#"{"type":"orderbook_delta","sid":"#)?;
    let sid = scanner.whole()?;
    scanner.literal(r#","seq":"#)?;
    let seq = scanner.whole()?;
    scanner.literal(r#","msg":{"market_ticker":""#)?;
    let ticker = scanner.up_to_quote().filter(|ticker| !ticker.trim().is_empty())?;
    scanner.literal(r#","market_id":""#)?;
    scanner.up_to_quote()?;
    scanner.literal(r#","price_dollars":""#)?;
    let price = dollars(scanner.up_to_quote()?).ok()?;
    scanner.literal(r#","delta_fp":""#)?;
    let change = change(scanner.up_to_quote()?).ok()?;
    scanner.literal(r#","side":""#)?;
    let side = Side::named(scanner.up_to_quote()?)?;
    scanner.literal(r#","ts":""#)?;
    scanner.up_to_quote()?;
    scanner.literal(r#","ts_ms":"#)?;
    let at = Timestamp::from_millis(scanner.whole()?);
    scanner.literal("}}")?;
    scanner.end()?;
    let content = Content::Delta(side, price, change);
    Some(Frame { kind: KIND, sid: Some(sid), seq: Some(seq), ticker, at: Some(at), content })
}

fn by_names(mut scanner: JsonScanner<'_>) -> Option<Frame<'_>> {
    let (mut kind, mut sid, mut seq, mut fields) = (None, None, None, None);
    scanner.object(|scanner, name| match name {
        "type" => once(&mut kind, scanner.text()?),
        "sid" => once(&mut sid, scanner.whole()?),
        "seq" => once(&mut seq, scanner.whole()?),
        "msg" => once(&mut fields, message(scanner)?),
        _ => None,
    })?;
    scanner.end()?;
    let (kind, fields) = (kind?, fields?);
    let Fields { ticker, at, price, change, side, yes_price, no_price, count, taker, id } = fields;
    let content = match kind {
        "orderbook_delta" => Content::Delta(side?, price?, change?),
        "trade" => {
            let price = match taker? {
                Side::Yes => yes_price,
                Side::No => no_price,
            };
            Content::Trade(taker?, price?, count?, id)
        }
        _ => return None,
    };
    Some(Frame { kind, sid, seq, ticker: ticker?, at: at.map(Timestamp::from_millis), content })
}

fn message<'a>(scanner: &mut JsonScanner<'a>) -> Option<Fields<'a>> {
    let mut fields = Fields::default();
    scanner.object(|scanner, name| match name {
        "market_ticker" => once(&mut fields.ticker, scanner.text().filter(|ticker| !ticker.trim().is_empty())?),
        "price_dollars" => once(&mut fields.price, dollars(scanner.text()?).ok()?),
        "delta_fp" => once(&mut fields.change, change(scanner.text()?).ok()?),
        "side" => once(&mut fields.side, Side::named(scanner.text()?)?),
        "ts_ms" => once(&mut fields.at, scanner.whole()?),
        "yes_price_dollars" => once(&mut fields.yes_price, dollars(scanner.text()?).ok()?),
        "no_price_dollars" => once(&mut fields.no_price, dollars(scanner.text()?).ok()?),
        "count_fp" => once(&mut fields.count, qty(scanner.text()?).ok()?),
        "taker_side" => once(&mut fields.taker, Side::named(scanner.text()?)?),
        // Fields that are not used.
        "trade_id" => once(&mut fields.id, scanner.text().filter(|id| !id.trim().is_empty())?),
        "market_id" | "taker_outcome_side" | "taker_book_side" => scanner.text().map(drop),
        "ts" => scanner.text().map(drop).or_else(|| scanner.whole().map(drop)),
        _ => None,
    })?;
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_equally_in_any_order_of_its_fields() {
        let written = r#"{"type":"orderbook_delta","sid":1,"seq":11786132,"msg":{"market_ticker":"KX-1","market_id":"6aee5007","price_dollars":"0.0500","delta_fp":"-86.25","side":"yes","ts":"2026-08-11T00:00:00.000011Z","ts_ms":1786406400000}}"#;
        let (head, msg) = written.split_once(r#","msg":"#).expect("two parts");
        let reordered = format!(r#"{{"msg":{},{}}}"#, msg.strip_suffix('}').expect("an end"), &head[1..]);
        let cases = [
            // text, whether it is in the venue's order
            (written.to_owned(), true),
            (reordered, false),
            (written.replace(":1,", ": 1 , "), false),
            (written.replace(r#""market_id":"6aee5007","#, ""), false),
        ];
        for (text, is_written) in &cases {
            let scanner = JsonScanner::new(text).expect("nothing odd");
            assert_eq!(as_written(scanner.clone()).is_some(), *is_written, "{text}");
            for read in [as_written(scanner.clone()), by_names(scanner), read(text)].into_iter().flatten() {
                let Frame { kind, sid, seq, ticker, at, content: Content::Delta(side, price, change) } = read else {
                    panic!("{text}")
                };
                assert_eq!((kind, sid, seq), ("orderbook_delta", Some(1), Some(11_786_132)), "{text}");
                assert_eq!((ticker, at), ("KX-1", Some(Timestamp::from_millis(1_786_406_400_000))), "{text}");
                assert_eq!((side, price, change), (Side::Yes, Price(500), -86_250_000), "{text}");
            }
            assert!(read(text).is_some(), "{text}");
        }
        let unusual = [
            written.replace("}}", "}} x"),
            written.replace("}}", "},\"sid\":1}"),
            written.replace("KX-1", " "),
            written.replace("0.0500", "0.05005"),
            written.replace("KX-1", "\\u0041"),
            written.replace("yes", "up"),
            written[..written.len() - 1].to_owned(),
        ];
        assert!(unusual.iter().all(|text| read(text).is_none()), "not in the usual form");
        println!("changes in any order: {} cases", cases.len() + unusual.len());
    }
}
