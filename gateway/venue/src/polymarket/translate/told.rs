//! Changes and books as they were told, whatever their form.

use crate::loose::{Fault, Loose, dollars};
use crate::polymarket::{dto, hot};
use crate::skips::Skips;
use crate::{BookSide, Level};
use engine::amount::{Price, Qty};
use std::borrow::Cow;

/// One change as it was told, whatever its form.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub(super) token: Option<Cow<'a, str>>,
    /// Empty where there is none.
    pub(super) hash: Cow<'a, str>,
    pub(super) level: Result<(BookSide, Price, Qty), Odd>,
    pub(super) top: Option<hot::Top>,
}

/// A level that cannot be taken over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Odd {
    pub(super) fault: Fault,
    /// It may be one that a book here holds: without it the book is not the venue's any more.
    pub(super) is_missed: bool,
}

impl<'a> From<hot::Change<'a>> for Told<'a> {
    fn from(hot::Change { token, hash, level, top }: hot::Change<'a>) -> Told<'a> {
        Told { token: Some(token.into()), hash: filled(hash).into(), level: Ok(level), top }
    }
}

/// A book as it was told, whatever its form; `sides` gives bids and asks, ascending, when it comes to that.
pub(in super::super) struct BookTold<'a, S> {
    pub(super) token: Option<Cow<'a, str>>,
    pub(super) hash: Cow<'a, str>,
    pub(super) tick: Option<Cow<'a, str>>,
    /// The price of the last trade as it was written; blank before the first one.
    pub(super) last: Option<Cow<'a, str>>,
    pub(super) sides: S,
}

impl<'a> BookTold<'a, ()> {
    /// From a message in the loose form.
    pub(in super::super) fn of(message: &'a dto::Message<'a>) -> BookTold<'a, impl FnOnce(&Skips) -> [Vec<Level>; 2]> {
        let sides = |skips: &Skips| {
            let one = |levels: &Option<Vec<dto::Level<'_>>>, older: &Option<Vec<dto::Level<'_>>>| {
                ascending(side(levels.as_deref().or(older.as_deref()).unwrap_or_default(), skips))
            };
            [one(&message.bids, &message.buys), one(&message.asks, &message.sells)]
        };
        BookTold {
            token: message.asset_id.filled(),
            hash: message.hash.filled().unwrap_or_default(),
            tick: (!message.tick_size.is_absent()).then(|| message.tick_size.text().unwrap_or_default()),
            last: message.last_trade_price.text(),
            sides,
        }
    }
}

/// A price and the decimals of its text, where the text is one of ours: `0.` and digits.
pub(super) fn last_price(text: &str) -> Option<(Price, Option<u8>)> {
    let decimals = text.strip_prefix("0.").and_then(|digits| u8::try_from(digits.len()).ok());
    Some((dollars(text).ok()?, decimals))
}

/// Levels of one side that can be read, in the order in which they were told.
fn side(rows: &[dto::Level<'_>], skips: &Skips) -> Vec<Level> {
    let mut levels = Vec::with_capacity(rows.len());
    for row in rows {
        match (row.price.dollars(), row.size.qty()) {
            (Ok(price), Ok(size)) => levels.push((price, size)),
            (Err(fault), _) | (_, Err(fault)) => skips.count(fault.into(), || format!("{row:?}")),
        }
    }
    levels
}

/// Levels by price, each price once; the last one told counts.
pub(super) fn ascending(mut levels: Vec<Level>) -> Vec<Level> {
    // Stable, and from the back: of equal prices the one told last comes first and stays.
    levels.reverse();
    levels.sort_by_key(|(price, _)| *price);
    levels.dedup_by_key(|(price, _)| *price);
    levels.retain(|(_, size)| !size.is_zero());
    levels
}

/// What a change says the best prices are behind it; `None` when it does not say, or nothing that can be compared.
pub(super) fn top(change: &dto::Change<'_>) -> Option<hot::Top> {
    let best = |field: Loose<'_>| hot::best(&field.text()?);
    Some((best(change.best_bid)?, best(change.best_ask)?))
}

/// A text, or nothing where it is blank.
pub(super) fn filled(text: &str) -> &str {
    if text.trim().is_empty() { "" } else { text }
}

pub(super) fn level_change(change: &dto::Change<'_>) -> Result<(BookSide, Price, Qty), Odd> {
    // A price that no book here holds: nothing is missed without its level.
    let price = change.price.dollars().map_err(|fault| {
        let is_missed = !matches!(fault, Fault::TooFine | Fault::OutOfRange);
        Odd { fault, is_missed }
    })?;
    let missed = |fault| Odd { fault, is_missed: true };
    let side = change.side.text().as_deref().and_then(hot::side).ok_or(missed(Fault::Missing))?;
    Ok((side, price, change.size.qty().map_err(missed)?))
}
