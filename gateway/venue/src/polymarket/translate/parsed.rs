//! Changes and books in a common form, from either parser.

use crate::loose::{Fault, Loose, dollars};
use crate::polymarket::{dto, hot};
use crate::skips::Skips;
use crate::{BookSide, Level};
use engine::amount::{Price, Qty};
use std::borrow::Cow;

/// One change of a level.
#[derive(Debug)]
pub(super) struct ParsedChange<'a> {
    pub(super) token: Option<Cow<'a, str>>,
    /// Empty if there is none.
    pub(super) hash: Cow<'a, str>,
    pub(super) level: Result<(BookSide, Price, Qty), BadLevel>,
    pub(super) top: Option<hot::Top>,
}

/// A level that cannot be applied.
#[derive(Clone, Copy, Debug)]
pub(super) struct BadLevel {
    pub(super) fault: Fault,
    /// A ladder may have this level, so that the book differs from the venue's without it.
    pub(super) is_loss: bool,
}

impl<'a> From<hot::Change<'a>> for ParsedChange<'a> {
    fn from(hot::Change { token, hash, level, top }: hot::Change<'a>) -> ParsedChange<'a> {
        ParsedChange { token: Some(token.into()), hash: filled(hash).into(), level: Ok(level), top }
    }
}

/// A book; `sides` returns bids and asks, ascending, when it is called.
pub(in super::super) struct ParsedBook<'a, S> {
    pub(super) token: Option<Cow<'a, str>>,
    pub(super) hash: Cow<'a, str>,
    pub(super) tick: Option<Cow<'a, str>>,
    /// The text of the last trade's price; blank before the first trade.
    pub(super) last: Option<Cow<'a, str>>,
    pub(super) sides: S,
}

impl<'a> ParsedBook<'a, ()> {
    /// From a message of the lenient parser.
    pub(in super::super) fn of(
        message: &'a dto::Message<'a>,
    ) -> ParsedBook<'a, impl FnOnce(&Skips) -> [Vec<Level>; 2]> {
        let sides = |skips: &Skips| {
            let one = |levels: &Option<Vec<dto::Level<'_>>>, older: &Option<Vec<dto::Level<'_>>>| {
                ascending(side(levels.as_deref().or(older.as_deref()).unwrap_or_default(), skips))
            };
            [one(&message.bids, &message.buys), one(&message.asks, &message.sells)]
        };
        ParsedBook {
            token: message.asset_id.filled(),
            hash: message.hash.filled().unwrap_or_default(),
            tick: (!message.tick_size.is_absent()).then(|| message.tick_size.text().unwrap_or_default()),
            last: message.last_trade_price.text(),
            sides,
        }
    }
}

/// A price, and the number of decimals of its text if it has the form `0.` and digits.
pub(super) fn last_price(text: &str) -> Option<(Price, Option<u8>)> {
    let decimals = text.strip_prefix("0.").and_then(|digits| u8::try_from(digits.len()).ok());
    Some((dollars(text).ok()?, decimals))
}

/// The readable levels of one side, in order.
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

/// Levels sorted by price, one per price; the last one applies.
pub(super) fn ascending(mut levels: Vec<Level>) -> Vec<Level> {
    // The sort is stable: after the reversal the last of equal prices comes first and is kept.
    levels.reverse();
    levels.sort_by_key(|(price, _)| *price);
    levels.dedup_by_key(|(price, _)| *price);
    levels.retain(|(_, size)| !size.is_zero());
    levels
}

/// The best prices after a change; `None` if they are missing or cannot be compared.
pub(super) fn top(change: &dto::Change<'_>) -> Option<hot::Top> {
    let best = |field: Loose<'_>| hot::best(&field.text()?);
    Some((best(change.best_bid)?, best(change.best_ask)?))
}

/// A text; empty if it is blank.
pub(super) fn filled(text: &str) -> &str {
    if text.trim().is_empty() { "" } else { text }
}

pub(super) fn level_change(change: &dto::Change<'_>) -> Result<(BookSide, Price, Qty), BadLevel> {
    // No ladder has such a price, so that nothing is lost without the level.
    let price = change.price.dollars().map_err(|fault| {
        let is_loss = !matches!(fault, Fault::TooFine | Fault::OutOfRange);
        BadLevel { fault, is_loss }
    })?;
    let missed = |fault| BadLevel { fault, is_loss: true };
    let side = change.side.text().as_deref().and_then(hot::side).ok_or(missed(Fault::Missing))?;
    Ok((side, price, change.size.qty().map_err(missed)?))
}
