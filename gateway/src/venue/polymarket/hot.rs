//! The two messages that come all day, read without serde: changes of levels and whole books, in the form in which the
//! venue sends them. Everything else about them, and all other messages, is read from [`dto`](super::dto).

use crate::venue::loose::{dollars, qty, scaled};
use crate::venue::plain::{Plain, once};
use crate::venue::{BookSide, Level};
use engine::amount::{Price, Qty};
use smallvec::SmallVec;

/// What was read.
pub(super) struct Message<'a> {
    pub(super) timestamp: Option<&'a str>,
    pub(super) what: What<'a>,
}

pub(super) enum What<'a> {
    /// Both tokens of a market, one level each: that is what most frames hold.
    Changes(SmallVec<[Change<'a>; 4]>),
    Book(Book<'a>),
}

/// A level of a token, as it stands now.
pub(super) struct Change<'a> {
    pub(super) token: &'a str,
    pub(super) hash: &'a str,
    pub(super) level: (BookSide, Price, Qty),
    pub(super) top: Option<Top>,
}

/// What the best prices are, where they are told and can be compared.
pub(super) type Top = (Option<Price>, Option<Price>);

/// A whole book; its levels in their order.
pub(super) struct Book<'a> {
    pub(super) token: &'a str,
    pub(super) hash: &'a str,
    pub(super) bids: Vec<Level>,
    pub(super) asks: Vec<Level>,
    pub(super) tick: Option<&'a str>,
}

/// Fields by name, before it is known what they mean together.
#[derive(Default)]
struct Fields<'a> {
    kind: Option<&'a str>,
    token: Option<&'a str>,
    market: Option<&'a str>,
    timestamp: Option<&'a str>,
    hash: Option<&'a str>,
    tick: Option<&'a str>,
    bids: Option<Vec<Level>>,
    asks: Option<Vec<Level>>,
    changes: Option<SmallVec<[Change<'a>; 4]>>,
}

/// Reads a message that is one of the two and has nothing odd about it.
pub(super) fn read(text: &str) -> Option<Message<'_>> {
    let mut fields = Fields::default();
    let mut plain = Plain::new(text)?;
    plain.object(|plain, name| match name {
        "event_type" => once(&mut fields.kind, plain.text()?),
        "asset_id" => once(&mut fields.token, id(plain)?),
        "market" => once(&mut fields.market, plain.text()?),
        "timestamp" => once(&mut fields.timestamp, plain.text()?),
        "hash" => once(&mut fields.hash, plain.text()?),
        "price_changes" => once(&mut fields.changes, changes(plain)?),
        "bids" => once(&mut fields.bids, levels(plain)?),
        "asks" => once(&mut fields.asks, levels(plain)?),
        "tick_size" => once(&mut fields.tick, plain.text()?),
        // Of a book; nobody here asks for it, however often it comes.
        "last_trade_price" => plain.text().map(drop),
        _ => None,
    })?;
    plain.end()?;
    let Fields { kind, token, timestamp, hash, tick, bids, asks, changes, .. } = fields;
    let what = match (kind?, changes, token) {
        // A token or a hash of the message would stand for those that a change lacks.
        ("price_change", Some(changes), None) if hash.is_none() && bids.is_none() && asks.is_none() => {
            What::Changes(changes)
        }
        ("book", None, Some(token)) => {
            What::Book(Book { token, hash: hash.unwrap_or_default(), bids: bids?, asks: asks?, tick })
        }
        _ => return None,
    };
    Some(Message { timestamp, what })
}

/// The id of a token, which is never blank.
#[inline]
fn id<'a>(plain: &mut Plain<'a>) -> Option<&'a str> {
    plain.text().filter(|text| text.as_bytes().first().is_some_and(u8::is_ascii_digit))
}

fn changes<'a>(plain: &mut Plain<'a>) -> Option<SmallVec<[Change<'a>; 4]>> {
    let mut changes = SmallVec::new();
    plain.array(|plain| {
        let (mut token, mut price, mut size, mut side, mut hash) = (None, None, None, None, None);
        let (mut bid, mut ask) = (None, None);
        plain.object(|plain, name| match name {
            "asset_id" => once(&mut token, id(plain)?),
            "price" => once(&mut price, dollars(plain.text()?).ok()?),
            "size" => once(&mut size, qty(plain.text()?).ok()?),
            "side" => once(&mut side, self::side(plain.text()?)?),
            "hash" => once(&mut hash, plain.text()?),
            "best_bid" => once(&mut bid, best(plain.text()?)),
            "best_ask" => once(&mut ask, best(plain.text()?)),
            _ => None,
        })?;
        changes.push(Change {
            token: token?,
            hash: hash.unwrap_or_default(),
            level: (side?, price?, size?),
            top: bid.flatten().zip(ask.flatten()),
        });
        Some(())
    })?;
    Some(changes)
}

fn levels(plain: &mut Plain<'_>) -> Option<Vec<Level>> {
    let mut levels = Vec::new();
    plain.array(|plain| {
        let (mut price, mut size) = (None, None);
        plain.object(|plain, name| match name {
            "price" => once(&mut price, dollars(plain.text()?).ok()?),
            "size" => once(&mut size, qty(plain.text()?).ok()?),
            _ => None,
        })?;
        levels.push((price?, size?));
        Some(())
    })?;
    Some(levels)
}

/// Whose level a change is of.
pub(super) fn side(name: &str) -> Option<BookSide> {
    match name {
        "BUY" | "buy" => Some(BookSide::Bid),
        "SELL" | "sell" => Some(BookSide::Ask),
        _ => None,
    }
}

/// A best price: `None` when it does not say, or nothing that can be compared; 0, 1 and nothing stand for an empty side.
pub(super) fn best(text: &str) -> Option<Option<Price>> {
    const DOLLAR: u64 = 10_000;
    match text.trim() {
        "" => Some(None),
        text => match scaled(text, 4).ok()? {
            0 | DOLLAR => Some(None),
            units => Some(Some(Price(u16::try_from(units).ok().filter(|units| u64::from(*units) < DOLLAR)?))),
        },
    }
}
