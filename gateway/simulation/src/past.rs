//! Markets, hours and books of an archive. All calls block, for milliseconds: files are read.
//!
//! | File | Holds |
//! |---|---|
//! | `spans.rs` | which hours a market is in, and what its rows show of it |
//! | `described.rs` | what the venues said about their markets |
//! | `unmade.rs` | hours of this server's recording that are not made yet |
//! | `listing.rs` | when the hours on disk are listed again |
//!
//! Which hours count is decided here: for reads of a moment all of them ([`Past::hours`], [`Past::books`]), for
//! back-tests and exports those that are made ([`Past::made`]).

mod described;
mod listing;
mod spans;
mod unmade;

use archive::row::Condition;
use archive::store::{BookError, HourEntry, Store};
use described::Descriptions;
use engine::backtest::{
    ArchivedBook, ArchivedMarket, ArchivedPair, Coverage, Ends, Hour, HourState, Settled, SettlementSource, Verdict,
};
use engine::id::Outcome;
use engine::market::terms::Listing;
use engine::time::Timestamp;
use listing::DiskListing;
use parking_lot::Mutex;
use spans::{Span, Spans};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use unmade::{Unmade, UnmadeMarket};
use venue::archive::markets::{self, Found};
use venue::archive::tail::{Tail, TailError};
use venue::category::Names;
use venue::tape::Origin;

/// Why nothing can be read.
#[derive(Debug)]
pub enum PastError {
    /// Other reads took too long.
    Busy,
    /// A file cannot be read.
    Archive(archive::Error),
    /// What the venue said about its markets cannot be read.
    Markets(String),
    /// The end of the recording cannot be read.
    Tail(TailError),
}

impl fmt::Display for PastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PastError::Busy => f.write_str("too many books are read"),
            PastError::Archive(error) => error.fmt(f),
            PastError::Markets(reason) => f.write_str(reason),
            PastError::Tail(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PastError {}

impl From<TailError> for PastError {
    fn from(error: TailError) -> PastError {
        PastError::Tail(error)
    }
}

impl From<archive::Error> for PastError {
    fn from(error: archive::Error) -> PastError {
        PastError::Archive(error)
    }
}

/// An archive as simulations read it.
pub struct Past {
    store: Arc<Store>,
    unmade: Option<Unmade>,
    listing: DiskListing,
    descriptions: Descriptions,
    spans: Spans,
}

/// A market with the hours of a window that are made: what back-tests and exports use. An hour that is not made yet is
/// missing here.
pub struct Made {
    pub market: ArchivedMarket,
    pub coverage: Coverage,
    /// The files of the usable hours, ascending.
    pub entries: Vec<Arc<HourEntry>>,
}

impl Past {
    /// The archive of a store. `names`: categories of the venues' own words.
    pub fn new(store: Arc<Store>, names: Names) -> Past {
        Past {
            store,
            unmade: None,
            listing: DiskListing::default(),
            descriptions: Descriptions::new(names),
            spans: Spans::default(),
        }
    }

    /// The same with the hours of a recording that are not made yet.
    pub fn with_tail(self, tail: Arc<Mutex<Tail>>) -> Past {
        Past { unmade: Some(Unmade::new(tail)), ..self }
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The market with that condition id, as all hours show it; `None`: the archive has no hour of it.
    ///
    /// # Errors
    /// [`PastError`].
    pub fn market(&self, condition: &str) -> Result<Option<ArchivedMarket>, PastError> {
        let Some(id) = Condition::parse(condition) else { return Ok(None) };
        let unmade = match &self.unmade {
            Some(unmade) => unmade.market(&id)?,
            None => None,
        };
        let span = self.span(&id)?;
        self.archived(id, span, unmade)
    }

    /// The market with that condition id and its hours of a window, as far as they are made; `None`: the archive has no
    /// hour of it, made or not.
    ///
    /// # Errors
    /// [`PastError`].
    pub fn made(&self, condition: &str, window: Range<Hour>) -> Result<Option<Made>, PastError> {
        let Some(id) = Condition::parse(condition) else { return Ok(None) };
        let Some(span) = self.span(&id)? else {
            let market = self.market(condition)?;
            return Ok(market.map(|market| Made { market, coverage: Coverage::of(window, []), entries: Vec::new() }));
        };
        let origin = span.origin;
        let Some(market) = self.archived(id, Some(span), None)? else { return Ok(None) };
        let (mut states, mut entries) = (self.store.hours(origin.name(), &id, window.clone()), Vec::new());
        // One that was removed since the list was made is missing.
        states.retain(|state| {
            let entry = state.verdict.is_usable().then(|| self.store.hour(origin.name(), state.hour));
            entries.extend(entry.clone().flatten());
            entry.is_none_or(|entry| entry.is_some())
        });
        Ok(Some(Made { market, coverage: Coverage::of(window, states), entries }))
    }

    /// The venue that a market is of; `None`: the archive has no hour of it that is made.
    ///
    /// # Errors
    /// [`PastError`].
    pub fn venue(&self, condition: &Condition) -> Result<Option<&'static str>, PastError> {
        Ok(self.span(condition)?.map(|span| span.origin.name()))
    }

    /// The states of a market's hours within a window, also of those that are not made; hours without data are left out.
    /// Of an hour that the recording still has, files that were made of a part of it do not count, as for [`Past::books`].
    ///
    /// # Errors
    /// [`PastError`].
    pub fn hours(&self, market: &ArchivedMarket, window: Range<Hour>) -> Result<Vec<HourState>, PastError> {
        let Some(id) = Condition::parse(&market.condition) else { return Ok(Vec::new()) };
        let origin = self.origin(&id)?;
        let mut states = origin.map_or(Vec::new(), |origin| self.store.hours(origin.name(), &id, window.clone()));
        if let Some(unmade) = &self.unmade {
            let mut unmade = unmade.hours(&id, &market.tokens, window)?;
            unmade.retain(|of_lines| !states.iter().any(|made| made.hour == of_lines.hour && is_whole(made.verdict)));
            states.retain(|made| !unmade.iter().any(|of_lines| of_lines.hour == made.hour));
            states.extend(unmade);
            states.sort_by_key(|state| state.hour);
        }
        Ok(states)
    }

    /// The books of a market at a moment, from the view of `outcome`; `None`: the archive does not cover that moment.
    ///
    /// # Errors
    /// [`PastError`].
    pub fn books(
        &self,
        market: &ArchivedMarket,
        outcome: Outcome,
        at: Timestamp,
    ) -> Result<Option<ArchivedPair>, PastError> {
        let Some(id) = Condition::parse(&market.condition) else { return Ok(None) };
        let venue = self.venue(&id)?;
        let book = |outcome: Outcome| self.book(venue, &id, &market.tokens[outcome as usize], at);
        let Some(own) = book(outcome)? else { return Ok(None) };
        Ok(Some(ArchivedPair { own, complement: book(outcome.other())? }))
    }

    /// `venue`: that of the hours that are made.
    fn book(
        &self,
        venue: Option<&str>,
        market: &Condition,
        token: &str,
        at: Timestamp,
    ) -> Result<Option<ArchivedBook>, PastError> {
        let made = match venue.map(|venue| self.store.book_at(venue, market, token, at)) {
            Some(Ok(book)) => Some(book),
            None | Some(Err(BookError::NotCovered)) => None,
            Some(Err(BookError::Busy)) => return Err(PastError::Busy),
            Some(Err(BookError::Failed(error))) => return Err(error.into()),
        };
        match &self.unmade {
            Some(unmade) if !made.as_ref().is_some_and(|book| is_whole(book.verdict)) => {
                Ok(unmade.book(market, token, at)?.or(made))
            }
            _ => Ok(made),
        }
    }

    /// The venue that a market is of, in hours that are made or not.
    fn origin(&self, market: &Condition) -> Result<Option<Origin>, PastError> {
        match (self.span(market)?, &self.unmade) {
            (Some(span), _) => Ok(Some(span.origin)),
            (None, Some(unmade)) => Ok(unmade.market(market)?.map(|of| of.origin)),
            (None, None) => Ok(None),
        }
    }

    /// The hours of a market that are made.
    fn span(&self, market: &Condition) -> Result<Option<Span>, PastError> {
        self.listing.renew(&self.store)?;
        Ok(self.spans.find(&self.store, market))
    }

    /// A market of the hours that are made, of those that are not, or of both.
    fn archived(
        &self,
        id: Condition,
        span: Option<Span>,
        unmade: Option<UnmadeMarket>,
    ) -> Result<Option<ArchivedMarket>, PastError> {
        let origins = [span.as_ref().map(|span| span.origin), unmade.as_ref().map(|unmade| unmade.origin)];
        let Some(origin) = origins.into_iter().flatten().next() else { return Ok(None) };
        let described = self.descriptions.of(&self.store, origin)?;
        let known = described.markets.get(id.to_string().as_str());
        let listing = match known.map(|known| known.listing.clone()) {
            None => unmade.as_ref().and_then(|unmade| unmade.listing.clone()),
            listing => listing,
        };
        let listing = match listing {
            None => markets::list_by_rows(id, &self.found(&id, origin, unmade.as_ref())?),
            listing => listing,
        };
        let Some(listing) = listing else { return Ok(None) };
        let upstream = known.and_then(|known| known.resolution).map(|(resolution, at)| Settled {
            resolution,
            at,
            source: SettlementSource::Upstream,
        });
        let imported = described.settlements.get(&id).map(|given| Settled {
            resolution: given.resolution,
            at: given.at,
            source: SettlementSource::Import,
        });
        let hours = match (span, unmade) {
            (Some(span), Some(unmade)) => span.hours.start..span.hours.end.max(unmade.hours.end),
            (Some(Span { hours, .. }), None) | (None, Some(UnmadeMarket { hours, .. })) => hours,
            (None, None) => return Ok(None),
        };
        let ends = known.map_or_else(|| Ends::of(listing.end), |known| known.ends.clone());
        Ok(Some(archived(listing, ends, upstream.or(imported), hours)))
    }

    /// What rows show of a market that the venue did not describe.
    fn found(&self, id: &Condition, origin: Origin, unmade: Option<&UnmadeMarket>) -> Result<Found, PastError> {
        let mut found = self.spans.found(&self.store, id, origin)?;
        found.tokens.extend(unmade.into_iter().flat_map(|unmade| unmade.tokens.iter().cloned()));
        Ok(found)
    }
}

/// Whether the files of an hour are used although the recording still has its lines: they are not of a part of it.
fn is_whole(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Valid | Verdict::Degraded)
}

fn archived(listing: Listing, end: Ends, settlement: Option<Settled>, hours: Range<Hour>) -> ArchivedMarket {
    let Listing { condition, tokens, outcomes, category, tick, .. } = listing;
    ArchivedMarket {
        condition: condition.into(),
        tokens: tokens.map(Arc::from),
        outcomes: outcomes.map(Arc::from),
        category,
        tick,
        end,
        settlement,
        hours,
    }
}

#[cfg(test)]
mod tests;
