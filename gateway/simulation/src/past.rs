//! Markets, hours and books of an archive. All calls block, for milliseconds: files are read.

use ahash::AHashMap;
use archive::row::Condition;
use archive::store::{BookError, Store};
use engine::backtest::{
    ArchivedBook, ArchivedMarket, ArchivedPair, Ends, Hour, HourState, Settled, SettlementSource, Verdict,
};
use engine::id::Outcome;
use engine::market::terms::Listing;
use engine::time::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use venue::archive::catalogue;
use venue::archive::markets::{self, Found, Known};
use venue::archive::settled::{self, Settlement};
use venue::archive::tail::{Tail, TailError, TailMarket};
use venue::category::Names;
use venue::tape::Origin;

/// How old the list of hours may be: other processes import hours, too.
const LIST_AGE_MAX: Duration = Duration::from_secs(10);
/// How long a read waits for the end of the recording, and how often it reads more of it itself.
const TAIL_WAIT_MAX: Duration = Duration::from_secs(2);
const TAIL_READS_MAX: usize = 64;
/// Markets whose hours are remembered.
const SPANS_MAX: usize = 4_096;

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
    /// Hours of this server's recording that are not made yet.
    tail: Option<Arc<Mutex<Tail>>>,
    names: Names,
    listed_at: Mutex<Instant>,
    /// What the venues said, by venue.
    described: Mutex<BTreeMap<String, Arc<Described>>>,
    spans: Mutex<Spans>,
}

/// The hours of markets, as of a version of the store.
#[derive(Default)]
struct Spans {
    version: u64,
    by_market: AHashMap<Condition, Option<Span>>,
}

/// A market in the hours of a venue.
#[derive(Clone, Debug)]
struct Span {
    venue: String,
    hours: Range<Hour>,
    /// What its rows show of it.
    found: Found,
}

impl Span {
    /// With the hours of the same market that are not made yet.
    fn until(mut self, unsealed: Span) -> Span {
        self.hours.end = self.hours.end.max(unsealed.hours.end);
        self.found.tokens.extend(unsealed.found.tokens);
        self
    }
}

/// What is known of a venue's markets besides their rows.
struct Described {
    stamp: Vec<(PathBuf, u64, Option<SystemTime>)>,
    markets: BTreeMap<String, Known>,
    settlements: BTreeMap<Condition, Settlement>,
}

impl Past {
    /// The archive of a store. `names`: categories of the venues' own words.
    pub fn new(store: Arc<Store>, names: Names) -> Past {
        Past {
            store,
            tail: None,
            names,
            listed_at: Mutex::new(Instant::now()),
            described: Mutex::default(),
            spans: Mutex::default(),
        }
    }

    /// The same with the hours of a recording that are not made yet.
    pub fn with_tail(self, tail: Arc<Mutex<Tail>>) -> Past {
        Past { tail: Some(tail), ..self }
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The market with that condition id; `None`: the archive has no hour of it.
    ///
    /// # Errors
    /// [`PastError`].
    pub fn market(&self, condition: &str) -> Result<Option<ArchivedMarket>, PastError> {
        let Some(id) = Condition::parse(condition) else { return Ok(None) };
        self.list_again()?;
        let (span, listed) = match self.tail_market(&id)? {
            Some((unsealed, listed)) => (self.span(&id)?.map_or(unsealed.clone(), |span| span.until(unsealed)), listed),
            None => match self.span(&id)? {
                Some(span) => (span, None),
                None => return Ok(None),
            },
        };
        let described = self.described(&span.venue)?;
        let known = described.markets.get(condition);
        let listing = known.map(|known| known.listing.clone()).or(listed);
        let Some(listing) = listing.or_else(|| markets::list_by_rows(id, &span.found)) else {
            return Ok(None);
        };
        let given = described.settlements.get(&id);
        let settlement = known.and_then(|known| known.resolution).map(|(resolution, at)| Settled {
            resolution,
            at,
            source: SettlementSource::Upstream,
        });
        let imported = || {
            given.map(|given| Settled { resolution: given.resolution, at: given.at, source: SettlementSource::Import })
        };
        let ends = known.map_or_else(|| Ends::of(listing.end), |known| known.ends.clone());
        Ok(Some(archived(listing, ends, settlement.or_else(imported), span.hours)))
    }

    /// The venue that a market is of; `None`: the archive has no hour of it.
    ///
    /// # Errors
    /// [`PastError`].
    pub fn venue(&self, condition: &Condition) -> Result<Option<String>, PastError> {
        Ok(self.span(condition)?.map(|span| span.venue))
    }

    /// The states of a market's hours within a window; hours without data are left out.
    ///
    /// # Errors
    /// [`PastError`].
    pub fn hours(&self, market: &ArchivedMarket, window: Range<Hour>) -> Result<Vec<HourState>, PastError> {
        let Some(id) = Condition::parse(&market.condition) else { return Ok(Vec::new()) };
        let mut states = self.store.hours(&id, window.clone())?;
        let sealed_end = states.last().map_or(Hour(0), |state| state.hour.next());
        let mut unsealed = Vec::new();
        self.with_tail_now(|tail| {
            let range = tail.all_hours();
            for hour in (range.start.0.max(window.start.0)..range.end.0.min(window.end.0)).map(Hour) {
                let last = Timestamp(Timestamp::of_hour(hour.next().0).0 - 1);
                let has_book = |token: &Arc<str>| Ok::<_, PastError>(tail.book_at(&id, token, last)?.is_some());
                // A market without rows has the books that are carried into the hour.
                if !tail.hours(&id, hour..hour.next()).is_empty()
                    || has_book(&market.tokens[0])?
                    || has_book(&market.tokens[1])?
                {
                    unsealed.push(HourState::new(hour, Verdict::Partial, false));
                }
            }
            Ok(())
        })?;
        states.extend(unsealed.into_iter().filter(|state| sealed_end <= state.hour));
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
        let book = |outcome: Outcome| self.book(&id, &market.tokens[outcome as usize], at);
        let Some(own) = book(outcome)? else { return Ok(None) };
        Ok(Some(ArchivedPair { own, complement: book(outcome.other())? }))
    }

    fn book(&self, market: &Condition, token: &str, at: Timestamp) -> Result<Option<ArchivedBook>, PastError> {
        match self.store.book_at(market, token, at) {
            Ok(book) => Ok(Some(book)),
            Err(BookError::NotCovered) => {
                let book = self.with_tail_now(|tail| match tail.all_hours().contains(&Hour::of(at)) {
                    // After a start its first lines take a while.
                    true if !tail.is_caught_up() => Err(PastError::Busy),
                    true => Ok(tail.book_at(market, token, at)?),
                    false => Ok(None),
                })?;
                Ok(book.flatten())
            }
            Err(BookError::Busy) => Err(PastError::Busy),
            Err(BookError::Failed(error)) => Err(error.into()),
        }
    }

    /// Reads the hours that are not made, with the lines until now; `None`: there are none.
    fn with_tail_now<T>(&self, read: impl FnOnce(&Tail) -> Result<T, PastError>) -> Result<Option<T>, PastError> {
        let Some(tail) = &self.tail else { return Ok(None) };
        let mut tail = tail.try_lock_for(TAIL_WAIT_MAX).ok_or(PastError::Busy)?;
        if !tail.has_begun() {
            return Ok(None);
        }
        tail.look_again();
        for _ in 0..TAIL_READS_MAX {
            if !tail.read_some()? {
                break;
            }
        }
        read(&tail).map(Some)
    }

    /// A market of the hours that are not made, as they show it, and its listing if it was listed in them.
    fn tail_market(&self, market: &Condition) -> Result<Option<(Span, Option<Listing>)>, PastError> {
        let found = self.with_tail_now(|tail| {
            let Some(TailMarket { origin, tokens, listing }) = tail.market(market) else { return Ok(None) };
            let found = Found { tokens, ..Found::of(origin) };
            let span = Span { venue: origin.name().to_owned(), hours: tail.range(origin.name()), found };
            Ok(Some((span, listing.cloned())))
        })?;
        Ok(found.flatten())
    }

    /// Lists the hours on disk again if the list is old.
    fn list_again(&self) -> Result<(), PastError> {
        let mut listed_at = self.listed_at.lock();
        if listed_at.elapsed() >= LIST_AGE_MAX {
            *listed_at = Instant::now();
            drop(listed_at);
            self.store.refresh()?;
        }
        Ok(())
    }

    /// The hours of a market, remembered until the store changes.
    fn span(&self, market: &Condition) -> Result<Option<Span>, PastError> {
        let version = self.store.version();
        {
            let mut spans = self.spans.lock();
            if spans.version != version || spans.by_market.len() > SPANS_MAX {
                *spans = Spans { version, by_market: AHashMap::new() };
            }
            if let Some(span) = spans.by_market.get(market) {
                return Ok(span.clone());
            }
        }
        let span = self.find_span(market)?;
        let mut spans = self.spans.lock();
        if spans.version == version {
            spans.by_market.insert(*market, span.clone());
        }
        Ok(span)
    }

    fn find_span(&self, market: &Condition) -> Result<Option<Span>, PastError> {
        for venue in self.store.venues() {
            let Some(origin) = Origin::named(&venue) else { continue };
            let mut span: Option<Span> = None;
            for entry in self.store.all(&venue) {
                if self.store.has_market(&entry, market) != Some(true) {
                    continue;
                }
                let span = span.get_or_insert_with(|| Span {
                    venue: venue.clone(),
                    hours: entry.hour..entry.hour,
                    found: Found::of(origin),
                });
                span.hours.end = entry.hour.next();
                // A quarantined hour shows nothing of its market.
                if entry.sidecar().is_err() {
                    continue;
                }
                self.store.with_hour(&entry, |_, index| {
                    for rows in index.tokens_of(market) {
                        if let Some(book) = index.end_state(market, &rows.token)? {
                            let view = book.view();
                            span.found.prices(view.bids.iter().chain(&view.asks).map(|(price, _)| *price));
                        }
                        span.found.tokens.insert(rows.token.as_str().into());
                    }
                    Ok(())
                })?;
            }
            if span.is_some() {
                return Ok(span);
            }
        }
        Ok(None)
    }

    /// What is known of a venue's markets, read again when its files have changed.
    fn described(&self, venue: &str) -> Result<Arc<Described>, PastError> {
        let folder = self.store.root().join(venue);
        let stamp = stamp(&catalogue::folder(&folder));
        if let Some(known) = self.described.lock().get(venue).filter(|known| known.stamp == stamp) {
            return Ok(known.clone());
        }
        let markets = markets::known(&folder, &self.names).map_err(|error| PastError::Markets(error.to_string()))?;
        let given = settled::file(&folder);
        let settlements = match given.exists() {
            true => settled::read(&given).map_err(PastError::Markets)?,
            false => BTreeMap::new(),
        };
        let described = Arc::new(Described { stamp, markets, settlements });
        self.described.lock().insert(venue.to_owned(), described.clone());
        Ok(described)
    }
}

/// Names, sizes and times of the files of a folder.
fn stamp(folder: &Path) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut stamp: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let metadata = entry.metadata().ok()?;
            Some((entry.path(), metadata.len(), metadata.modified().ok()))
        })
        .collect();
    stamp.sort();
    stamp
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
