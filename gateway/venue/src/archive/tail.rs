//! The end of a recording that is being written: its hours that are not made yet, for readers (gateway/docs/archive.md
//! §9).
//!
//! It reads the files of the recording as they grow, from where the hours that are made end, and translates them as the
//! making of an hour does. So a book of these hours is that of the hour when it is made.

use super::hourly::{self, Resumed};
use super::rows::RowMaker;
use super::seal::gap;
use super::tally::Gaps;
use crate::FeedUpdate;
use crate::category::Names;
use crate::replay::{Lines, Recording as _, Stepped};
use crate::tape::{Origin, TapeError};
use ahash::AHashMap;
use archive::row::Condition;
use archive::store::Store;
use archive::unsealed::{Bounds, Unsealed};
use engine::backtest::{ArchivedBook, Hour, HourState};
use engine::market::terms::Listing;
use engine::time::Timestamp;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lines between two chances for a reader.
pub const LINES_AT_ONCE: usize = 4_096;

/// Why the end of a recording cannot be read.
#[derive(Debug)]
pub enum TailError {
    Tape(TapeError),
    Archive(archive::Error),
}

impl std::fmt::Display for TailError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TailError::Tape(error) => error.fmt(f),
            TailError::Archive(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TailError {}

impl From<archive::Error> for TailError {
    fn from(error: archive::Error) -> TailError {
        TailError::Archive(error)
    }
}

/// The hours of a recording that are not made yet.
pub struct Tail {
    store: Arc<Store>,
    folder: PathBuf,
    names: Names,
    bounds: Bounds,
    reading: Option<Reading>,
    /// Everything that was in the files at the last look has been read.
    is_caught_up: bool,
}

/// A market as these hours show it.
#[derive(Debug)]
pub struct TailMarket<'a> {
    pub origin: Origin,
    /// Its tokens that have rows.
    pub tokens: BTreeSet<Arc<str>>,
    /// Its listing, if it was listed in these hours.
    pub listing: Option<&'a Listing>,
}

/// A recording that is read.
struct Reading {
    lines: Lines,
    rows: RowMaker,
    venues: Vec<TailVenue>,
    now: Timestamp,
    hour: u32,
    /// Markets that were listed in these hours, with the hour.
    listings: AHashMap<Condition, (u32, Listing)>,
}

struct TailVenue {
    origin: Origin,
    gaps: Gaps,
    unsealed: Unsealed,
    /// The hour of its last line.
    hour: u32,
    /// Gaps changed since they were handed on.
    has_new_gaps: bool,
}

impl Tail {
    /// Of the recording in a folder, whose hours go to this store. Reads nothing yet.
    pub fn new(store: Arc<Store>, folder: &Path, names: Names, bounds: Bounds) -> Tail {
        Tail { store, folder: folder.to_owned(), names, bounds, reading: None, is_caught_up: false }
    }

    /// Whether it has begun, so that it knows which hours there are.
    pub fn has_begun(&self) -> bool {
        self.reading.is_some()
    }

    /// Whether all that was recorded at the last look has been read.
    pub fn is_caught_up(&self) -> bool {
        self.is_caught_up
    }

    /// Looks for new lines. Does nothing before it has begun.
    pub fn look_again(&mut self) {
        if let Some(reading) = &mut self.reading {
            reading.lines.look_again();
            self.is_caught_up = false;
        }
    }

    /// Begins where the hours that are made end, unless it has begun.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn begin(&mut self) -> Result<(), TailError> {
        if self.reading.is_none() {
            self.reading = Some(self.opened()?);
            self.is_caught_up = false;
        }
        Ok(())
    }

    /// Forgets everything; it may begin again.
    pub fn end(&mut self) {
        self.reading = None;
        self.is_caught_up = false;
    }

    fn opened(&self) -> Result<Reading, TailError> {
        let Resumed { lines, rows, venues, now, hour } =
            hourly::resume(&self.folder, self.store.root(), &self.names).map_err(TailError::Tape)?;
        let venues = venues.into_iter().map(|(origin, gaps)| self.venue(origin, gaps)).collect::<Result<_, _>>()?;
        Ok(Reading { lines, rows, venues, now, hour, listings: AHashMap::new() })
    }

    fn venue(&self, origin: Origin, gaps: Gaps) -> Result<TailVenue, TailError> {
        let unsealed = Unsealed::new(self.store.clone(), origin.name(), self.bounds)?;
        Ok(TailVenue { origin, gaps, unsealed, hour: 0, has_new_gaps: false })
    }

    /// Reads some of the new lines; true: there are more.
    ///
    /// # Errors
    /// An hour of the archive cannot be read, or there is no room for the rows. Then it has to begin again.
    pub fn read_some(&mut self) -> Result<bool, TailError> {
        let Some(mut reading) = self.reading.take() else { return Ok(false) };
        self.is_caught_up = false;
        let (mut updates, mut rows) = (Vec::new(), Vec::new());
        for _ in 0..LINES_AT_ONCE {
            let Some(at) = reading.lines.line_at() else {
                self.is_caught_up = true;
                break;
            };
            let now = reading.now.max(at);
            if reading.hour < now.hour() {
                reading.end_hour(now.hour());
            }
            reading.now = now;
            updates.clear();
            rows.clear();
            let stepped = match reading.lines.advance(now, &mut updates) {
                Stepped::Line { connection, record, .. } => {
                    Some((record.origin(), connection, record.connection().to_owned()))
                }
                Stepped::Change | Stepped::Unknown => None,
            };
            reading.rows.frame(&updates, now, &mut rows);
            let Some((origin, connection, name)) = stepped else { continue };
            for update in &updates {
                if let FeedUpdate::Listed { listing, .. } = update
                    && let Some(condition) = Condition::parse(&listing.condition)
                {
                    reading.listings.insert(condition, (now.hour(), (**listing).clone()));
                }
            }
            if !reading.venues.iter().any(|venue| venue.origin == origin) {
                reading.venues.push(self.venue(origin, Gaps::default())?);
            }
            let Some(venue) = reading.venues.iter_mut().find(|venue| venue.origin == origin) else { continue };
            if venue.hour < now.hour() {
                venue.hour = now.hour();
                // The hour exists; its open gaps begin with it.
                venue.has_new_gaps = true;
            }
            venue.gaps.note(connection, &name, &updates, now);
            venue.has_new_gaps |= updates.iter().any(|update| matches!(update, FeedUpdate::Gap { .. }));
            for row in &rows {
                venue.unsealed.push(row)?;
            }
        }
        reading.hand_on_gaps();
        self.reading = Some(reading);
        Ok(!self.is_caught_up)
    }

    /// Drops hours that are made: those before this one.
    pub fn forget_before(&mut self, hour: Hour) {
        if let Some(reading) = &mut self.reading {
            reading.listings.retain(|_, (listed_in, _)| hour.0 <= *listed_in);
        }
        for venue in self.reading.iter_mut().flat_map(|reading| &mut reading.venues) {
            venue.unsealed.forget_before(hour.0);
        }
    }

    fn venues(&self) -> impl Iterator<Item = &TailVenue> {
        self.reading.iter().flat_map(|reading| &reading.venues)
    }

    /// The hours of a venue that are not made.
    pub fn range(&self, venue: &str) -> Range<Hour> {
        let of = self.venues().find(|of| of.origin.name() == venue);
        of.map_or(Hour(0)..Hour(0), |of| of.unsealed.range())
    }

    /// The hours of all venues that are not made.
    pub fn all_hours(&self) -> Range<Hour> {
        let ranges = || self.venues().map(|venue| venue.unsealed.range()).filter(|range| !range.is_empty());
        let first = ranges().map(|range| range.start).min().unwrap_or_default();
        first..ranges().map(|range| range.end).max().unwrap_or_default()
    }

    /// A market that has rows in these hours.
    pub fn market(&self, market: &Condition) -> Option<TailMarket<'_>> {
        let listing =
            self.reading.as_ref().and_then(|reading| reading.listings.get(market)).map(|(_, listing)| listing);
        let mut found = self.venues().map(|venue| (venue.origin, venue.unsealed.tokens(market)));
        let (origin, tokens) = found.find(|(_, tokens)| !tokens.is_empty())?;
        Some(TailMarket { origin, tokens, listing })
    }

    /// The book of a token at a moment of these hours; `None`: it is not known, or not recorded until then.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn book_at(&self, market: &Condition, token: &str, at: Timestamp) -> Result<Option<ArchivedBook>, TailError> {
        for venue in self.venues() {
            if let Some(book) = venue.unsealed.book_at(market, token, at)? {
                return Ok(Some(book));
            }
        }
        Ok(None)
    }

    /// The states of a market in those of these hours that are in a range.
    pub fn hours(&self, market: &Condition, range: Range<Hour>) -> Vec<HourState> {
        self.venues().flat_map(|venue| venue.unsealed.hours(market, range.clone())).collect()
    }

    /// Bytes of anchors and rows in memory.
    pub fn memory(&self) -> usize {
        self.venues().map(|venue| venue.unsealed.memory()).sum()
    }
}

impl Reading {
    /// Hands on the gaps of the hour that ends, and begins another one.
    fn end_hour(&mut self, next: u32) {
        let [begins, ends] = [self.hour, self.hour + 1].map(Timestamp::of_hour);
        for TailVenue { gaps, unsealed, hour, has_new_gaps, .. } in &mut self.venues {
            let gaps = gaps.end_hour(begins, ends);
            // An hour without a line of the venue is not made.
            if *hour == self.hour {
                unsealed.set_gaps(self.hour, gaps.iter().map(gap).collect());
            }
            *has_new_gaps = false;
        }
        self.hour = next;
    }

    fn hand_on_gaps(&mut self) {
        let begins = Timestamp::of_hour(self.hour);
        for TailVenue { gaps, unsealed, has_new_gaps, .. } in &mut self.venues {
            if std::mem::take(has_new_gaps) {
                unsealed.set_gaps(self.hour, gaps.so_far(begins).iter().map(gap).collect());
            }
        }
    }
}

#[cfg(test)]
mod tests;
