//! Which hours of an archive a market is in, and what its rows show of it. An hour is searched for a market one time. What was
//! found is remembered with the hour's files, so a change of the archive costs a look at the hours that changed.

use super::PastError;
use ahash::AHashMap;
use archive::row::Condition;
use archive::store::{HourEntry, Store};
use engine::backtest::Hour;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::{Arc, Weak};
use venue::archive::markets::Found;
use venue::tape::Origin;

/// Looks that are remembered, of about 24 bytes each; a market counts as some more. Above it all are forgotten.
const LOOKS_MAX: usize = 1 << 20;
const MARKET_LOOKS: usize = 8;

/// A market in the hours of a venue that are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub origin: Origin,
    /// From the first hour with rows of it until the last one.
    pub hours: Range<Hour>,
}

/// The hours of the markets that were asked about.
#[derive(Default)]
pub(super) struct Spans {
    remembered: Mutex<Remembered>,
}

#[derive(Default)]
struct Remembered {
    markets: AHashMap<Condition, Arc<Mutex<MarketHours>>>,
    looks: usize,
}

/// The hours of a market, as of a version of the store.
#[derive(Default)]
struct MarketHours {
    version: Option<u64>,
    /// By venue, until the one that has it. Empty if none has it: an unknown market costs no memory.
    venues: Vec<(Origin, Vec<Look>)>,
    span: Option<Span>,
}

/// What one hour has of a market.
#[derive(Clone)]
struct Look {
    hour: Hour,
    /// The same files are the same entry.
    files: Weak<HourEntry>,
    has_rows: bool,
    /// What its rows show, if that was asked for. Hours that show the same share it.
    shown: Option<Arc<Found>>,
}

impl Spans {
    /// The hours of a market; `None`: no hour has it.
    pub fn find(&self, store: &Store, market: &Condition) -> Option<Span> {
        self.with_hours(store, market, |hours| hours.span.clone())
    }

    /// What the rows of a market show of it: its tokens, and the grid of the books at the ends of its hours.
    ///
    /// # Errors
    /// A file is damaged or cannot be read.
    pub fn found(&self, store: &Store, market: &Condition, origin: Origin) -> Result<Found, PastError> {
        self.with_hours(store, market, |hours| {
            let of_venue = hours.venues.iter_mut().find(|(of, _)| *of == origin);
            let mut all = Found::of(origin);
            let mut last: Option<Arc<Found>> = None;
            for look in of_venue.into_iter().flat_map(|(_, looks)| looks).filter(|look| look.has_rows) {
                let shown = match &look.shown {
                    Some(shown) => shown.clone(),
                    None => {
                        // One that was removed meanwhile shows nothing.
                        let Some(entry) = look.files.upgrade() else { continue };
                        let shown = read(store, &entry, market, origin)?;
                        last.filter(|last| **last == shown).unwrap_or_else(|| Arc::new(shown))
                    }
                };
                all.tokens.extend(shown.tokens.iter().cloned());
                all.tick = all.tick.min(shown.tick);
                look.shown = Some(shown.clone());
                last = Some(shown);
            }
            Ok(all)
        })
    }

    /// Uses the hours of a market as of now. Other markets are not delayed by what has to be read.
    fn with_hours<T>(&self, store: &Store, market: &Condition, take: impl FnOnce(&mut MarketHours) -> T) -> T {
        let of_market = {
            let mut remembered = self.remembered.lock();
            let Remembered { markets, looks } = &mut *remembered;
            let new = || {
                *looks += MARKET_LOOKS;
                Arc::default()
            };
            markets.entry(*market).or_insert_with(new).clone()
        };
        let mut hours = of_market.lock();
        let before = hours.looks();
        hours.renew(store, market);
        let now = hours.looks();
        if before != now {
            let mut remembered = self.remembered.lock();
            remembered.looks = remembered.looks.saturating_sub(before) + now;
            if remembered.looks > LOOKS_MAX {
                *remembered = Remembered::default();
            }
        }
        take(&mut hours)
    }
}

impl MarketHours {
    fn looks(&self) -> usize {
        self.venues.iter().map(|(_, looks)| looks.len()).sum()
    }

    /// Looks at the hours that changed since the last time.
    fn renew(&mut self, store: &Store, market: &Condition) {
        let version = store.version();
        if self.version == Some(version) {
            return;
        }
        let mut known = std::mem::take(&mut self.venues);
        self.span = None;
        for origin in store.venues().iter().filter_map(|venue| Origin::named(venue)) {
            let known = known.iter_mut().find(|(of, _)| *of == origin).map(|(_, looks)| std::mem::take(looks));
            let looks = look(store, store.all(origin.name()), market, known.unwrap_or_default());
            self.span = span(origin, &looks);
            self.venues.push((origin, looks));
            if self.span.is_some() {
                break;
            }
        }
        if self.span.is_none() {
            self.venues = Vec::new();
        }
        self.version = Some(version);
    }
}

/// Looks at these hours, except at those whose look is known. Both ascend.
fn look(store: &Store, entries: Vec<Arc<HourEntry>>, market: &Condition, known: Vec<Look>) -> Vec<Look> {
    let mut known = known.into_iter().peekable();
    let mut looks = Vec::with_capacity(entries.len());
    for entry in entries {
        while known.next_if(|look| look.hour < entry.hour).is_some() {}
        let files = Arc::downgrade(&entry);
        if let Some(look) = known.next_if(|look| Weak::ptr_eq(&look.files, &files)) {
            looks.push(look);
        } else if let Some(has_rows) = store.has_market(&entry, market) {
            looks.push(Look { hour: entry.hour, files, has_rows, shown: None });
        }
        // One whose index is damaged shows nothing; it may be mended.
    }
    looks
}

fn span(origin: Origin, looks: &[Look]) -> Option<Span> {
    let mut hours = looks.iter().filter(|look| look.has_rows).map(|look| look.hour);
    let first = hours.next()?;
    Some(Span { origin, hours: first..hours.next_back().unwrap_or(first).next() })
}

/// What an hour shows of a market. A quarantined one shows nothing.
fn read(store: &Store, entry: &HourEntry, market: &Condition, origin: Origin) -> Result<Found, PastError> {
    let mut found = Found::of(origin);
    if entry.sidecar().is_err() {
        return Ok(found);
    }
    store.with_hour(entry, |_, index| {
        for rows in index.tokens_of(market) {
            if let Some(book) = index.end_state(market, &rows.token)? {
                let view = book.view();
                found.prices(view.bids.iter().chain(&view.asks).map(|(price, _)| *price));
            }
            found.tokens.insert(rows.token.as_str().into());
        }
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests;
