//! Fast parser of the two most frequent messages, changes of levels and full books, in the form in which the venue
//! sends them. Other messages and other forms are parsed with [`dto`](super::dto).

use crate::json_scanner::{JsonScanner, once};
use crate::loose::{dollars, qty, scaled};
use crate::{BookSide, Level};
use engine::amount::{Price, Qty};
use smallvec::SmallVec;

/// A parsed message.
pub(super) struct Message<'a> {
    pub(super) timestamp: Option<&'a str>,
    pub(super) content: Content<'a>,
}

pub(super) enum Content<'a> {
    /// Inline for both tokens of a market with one level each, as in most frames.
    Changes(SmallVec<[Change<'a>; 4]>),
    Book(Book<'a>),
}

/// The new size of one level.
pub(super) struct Change<'a> {
    pub(super) token: &'a str,
    pub(super) hash: &'a str,
    pub(super) level: (BookSide, Price, Qty),
    pub(super) top: Option<Top>,
}

/// Best bid and best ask after a change; `None` for an empty side.
pub(super) type Top = (Option<Price>, Option<Price>);

/// A full book; levels in the order of the message.
pub(super) struct Book<'a> {
    pub(super) token: &'a str,
    pub(super) hash: &'a str,
    pub(super) bids: Vec<Level>,
    pub(super) asks: Vec<Level>,
    pub(super) tick: Option<&'a str>,
    /// The text of the last trade's price.
    pub(super) last: Option<&'a str>,
}

/// Fields by name, before they are combined.
#[derive(Default)]
struct Fields<'a> {
    kind: Option<&'a str>,
    token: Option<&'a str>,
    market: Option<&'a str>,
    timestamp: Option<&'a str>,
    hash: Option<&'a str>,
    tick: Option<&'a str>,
    last: Option<&'a str>,
    bids: Option<Vec<Level>>,
    asks: Option<Vec<Level>>,
    changes: Option<SmallVec<[Change<'a>; 4]>>,
}

/// Parses a change or a book in the usual form; `None` for anything else.
pub(super) fn read(text: &str) -> Option<Message<'_>> {
    let mut fields = Fields::default();
    let mut scanner = JsonScanner::new(text)?;
    scanner.object(|scanner, name| match name {
        "event_type" => once(&mut fields.kind, scanner.text()?),
        "asset_id" => once(&mut fields.token, id(scanner)?),
        "market" => once(&mut fields.market, scanner.text()?),
        "timestamp" => once(&mut fields.timestamp, scanner.text()?),
        "hash" => once(&mut fields.hash, scanner.text()?),
        "price_changes" => once(&mut fields.changes, changes(scanner)?),
        "bids" => once(&mut fields.bids, levels(scanner)?),
        "asks" => once(&mut fields.asks, levels(scanner)?),
        "tick_size" => once(&mut fields.tick, scanner.text()?),
        "last_trade_price" => once(&mut fields.last, scanner.text()?),
        _ => None,
    })?;
    scanner.end()?;
    let Fields { kind, token, timestamp, hash, tick, last, bids, asks, changes, .. } = fields;
    let content = match (kind?, changes, token) {
        // Changes without these fields would inherit the token or the hash of the message.
        ("price_change", Some(changes), None) if hash.is_none() && bids.is_none() && asks.is_none() => {
            Content::Changes(changes)
        }
        ("book", None, Some(token)) => {
            Content::Book(Book { token, hash: hash.unwrap_or_default(), bids: bids?, asks: asks?, tick, last })
        }
        _ => return None,
    };
    Some(Message { timestamp, content })
}

/// A token id, which starts with a digit.
#[inline]
fn id<'a>(scanner: &mut JsonScanner<'a>) -> Option<&'a str> {
    scanner.text().filter(|text| is_id(text))
}

#[inline]
fn is_id(text: &str) -> bool {
    text.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

fn changes<'a>(scanner: &mut JsonScanner<'a>) -> Option<SmallVec<[Change<'a>; 4]>> {
    let mut changes = SmallVec::new();
    scanner.array(|scanner| {
        let mut ahead = scanner.clone();
        let change = match as_written(&mut ahead) {
            Some(change) => {
                *scanner = ahead;
                change
            }
            None => by_names(scanner)?,
        };
        changes.push(change);
        Some(())
    })?;
    Some(changes)
}

/// Parses a change with its fields in the venue's order, as nearly all are.
#[inline]
fn as_written<'a>(scanner: &mut JsonScanner<'a>) -> Option<Change<'a>> {
    scanner.literal(r#"{"asset_id":""#)?;
    let token = scanner.up_to_quote().filter(|text| is_id(text))?;
    scanner.literal(r#","price":""#)?;
    let price = dollars(scanner.up_to_quote()?).ok()?;
    // The venue's documentation and recorded messages differ in the order of these two.
    let (size, side) = match scanner.literal(r#","size":""#) {
        Some(()) => {
            let size = scanner.up_to_quote()?;
            scanner.literal(r#","side":""#)?;
            (size, scanner.up_to_quote()?)
        }
        None => {
            scanner.literal(r#","side":""#)?;
            let side = scanner.up_to_quote()?;
            scanner.literal(r#","size":""#)?;
            (scanner.up_to_quote()?, side)
        }
    };
    let (size, side) = (qty(size).ok()?, self::side(side)?);
    scanner.literal(r#","hash":""#)?;
    let hash = scanner.up_to_quote()?;
    scanner.literal(r#","best_bid":""#)?;
    let bid = best(scanner.up_to_quote()?);
    scanner.literal(r#","best_ask":""#)?;
    let ask = best(scanner.up_to_quote()?);
    scanner.literal("}")?;
    Some(Change { token, hash, level: (side, price, size), top: bid.zip(ask) })
}

fn by_names<'a>(scanner: &mut JsonScanner<'a>) -> Option<Change<'a>> {
    let (mut token, mut price, mut size, mut side, mut hash) = (None, None, None, None, None);
    let (mut bid, mut ask) = (None, None);
    scanner.object(|scanner, name| match name {
        "asset_id" => once(&mut token, id(scanner)?),
        "price" => once(&mut price, dollars(scanner.text()?).ok()?),
        "size" => once(&mut size, qty(scanner.text()?).ok()?),
        "side" => once(&mut side, self::side(scanner.text()?)?),
        "hash" => once(&mut hash, scanner.text()?),
        "best_bid" => once(&mut bid, best(scanner.text()?)),
        "best_ask" => once(&mut ask, best(scanner.text()?)),
        _ => None,
    })?;
    Some(Change {
        token: token?,
        hash: hash.unwrap_or_default(),
        level: (side?, price?, size?),
        top: bid.flatten().zip(ask.flatten()),
    })
}

fn levels(scanner: &mut JsonScanner<'_>) -> Option<Vec<Level>> {
    let mut levels = Vec::new();
    scanner.array(|scanner| {
        let (mut price, mut size) = (None, None);
        scanner.object(|scanner, name| match name {
            "price" => once(&mut price, dollars(scanner.text()?).ok()?),
            "size" => once(&mut size, qty(scanner.text()?).ok()?),
            _ => None,
        })?;
        levels.push((price?, size?));
        Some(())
    })?;
    Some(levels)
}

/// The book side of a change.
pub(super) fn side(name: &str) -> Option<BookSide> {
    match name {
        "BUY" | "buy" => Some(BookSide::Bid),
        "SELL" | "sell" => Some(BookSide::Ask),
        _ => None,
    }
}

/// A best price; outer `None` if it cannot be compared, inner `None` (0, 1 or blank) for an empty side.
pub(super) fn best(text: &str) -> Option<Option<Price>> {
    const DOLLAR: u64 = 10_000;
    match scaled(text, 4) {
        Ok(0 | DOLLAR) => Some(None),
        Ok(units) => Some(Some(Price(u16::try_from(units).ok().filter(|units| u64::from(*units) < DOLLAR)?))),
        Err(_) => text.trim().is_empty().then_some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::testing::Random;

    const WRITTEN: &str = r#"{"asset_id":"7","price":"0.514","size":"215.08","side":"SELL","hash":"bf3","best_bid":"0.5","best_ask":"1"}"#;

    /// The result of each parser, and whether it read the whole text.
    fn both(text: &str) -> [Option<(String, bool)>; 2] {
        let summary = |change: Option<Change<'_>>, scanner: JsonScanner<'_>| {
            let Change { token, hash, level, top } = change?;
            Some((format!("{token} {hash} {level:?} {top:?}"), scanner.end().is_some()))
        };
        let Some(scanner) = JsonScanner::new(text) else { return [None, None] };
        let (mut short, mut long) = (scanner.clone(), scanner);
        let (written, named) = (as_written(&mut short), by_names(&mut long));
        [summary(written, short), summary(named, long)]
    }

    #[test]
    fn a_change_is_read_equally_in_any_order_of_its_fields() {
        let recorded = WRITTEN.replace(r#""size":"215.08","side":"SELL""#, r#""side":"SELL","size":"215.08""#);
        let reordered = WRITTEN.replace(r#""asset_id":"7","price":"0.514""#, r#""price":"0.514","asset_id":"7""#);
        let cases = [
            // text, whether it is in an order of the venue
            (WRITTEN.to_owned(), true),
            (recorded, true),
            (reordered, false),
            (WRITTEN.replace(":\"7\",", ": \"7\" , "), false),
            (WRITTEN.replace(r#","hash":"bf3""#, ""), false),
            (WRITTEN.replace(r#","best_bid":"0.5""#, ""), false),
        ];
        for (text, is_written) in &cases {
            let [written, named] = both(text);
            assert_eq!(written.is_some(), *is_written, "{text}");
            assert!(named.is_some(), "{text}");
            assert!(written.is_none_or(|written| Some(written) == named), "{text}");
            let message = format!(r#"{{"event_type":"price_change","price_changes":[{text}]}}"#);
            let Some(Message { content: Content::Changes(changes), .. }) = read(&message) else { panic!("{text}") };
            let [Change { token, level, .. }] = &changes[..] else { panic!("{text}") };
            assert_eq!((*token, *level), ("7", (BookSide::Ask, Price(5_140), Qty(215_080_000))), "{text}");
        }
        println!("changes in any order: {} cases", cases.len());
    }

    /// The parser by order accepts only what the parser by names accepts, with the same result.
    #[test]
    fn random_changes_are_read_equally_by_both_parsers() {
        const ROUNDS: usize = 100_000;
        const VALUES: [&str; 12] =
            ["7", "0.5", "1", "0", "", " 0.4", "0.00005", "BUY", "SELL", "up", "9.123456", "1e2"];
        const NAMES: [&str; 8] = ["asset_id", "price", "size", "side", "hash", "best_bid", "best_ask", "else"];
        let mut random = Random(29);
        let mut pick = |count: usize| (random.next() % count as u64) as usize;
        let (mut accepted, mut both_ways) = (0, 0);
        for _ in 0..ROUNDS {
            let mut fields: Vec<_> = [
                ("asset_id", "7"),
                ("price", "0.4"),
                ("size", "3"),
                ("side", "BUY"),
                ("hash", "ab"),
                ("best_bid", "0.4"),
                ("best_ask", "0.6"),
            ]
            .into();
            for _ in 0..pick(3) {
                let (at, other) = (pick(fields.len()), pick(fields.len()));
                match pick(5) {
                    0 => fields.swap(at, other),
                    1 => fields[at].0 = NAMES[pick(NAMES.len())],
                    2 if fields.len() > 2 => drop(fields.remove(at)),
                    _ => fields[at].1 = VALUES[pick(VALUES.len())],
                }
            }
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!(r#""{name}":"{value}""#)).collect();
            let mut text = format!("{{{}}}", fields.join(","));
            if pick(4) == 0 {
                let at = pick(text.len());
                match pick(3) {
                    0 => text.insert(at, [' ', ',', '"', '}', '{', ':'][pick(6)]),
                    1 => drop(text.remove(at)),
                    _ => text.truncate(at),
                }
            }
            let [written, named] = both(&text);
            accepted += usize::from(named.is_some());
            if let Some(written) = written {
                assert_eq!(Some(written), named, "{text}");
                both_ways += 1;
            }
        }
        assert!(both_ways > ROUNDS / 5 && accepted > both_ways, "{both_ways} and {accepted} of {ROUNDS} were accepted");
        println!("random changes: {ROUNDS} cases, {accepted} of them accepted, {both_ways} by both ways");
    }
}
