//! The book of a token at a moment, and the hours of a market.

use super::cache::{Key, Value};
use super::{HourEntry, Store, index_path};
use crate::book::{OpenHour, Place};
use crate::error::{Error, Refusal};
use crate::fold::Folded;
use crate::index::{Carried, TimeIndex, TokenRows};
use crate::read::HourFile;
use crate::row::Condition;
use engine::backtest::{ArchivedBook, Confidence, Hour, HourState, Verdict};
use engine::time::Timestamp;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{fmt, io};

/// Books that are read at a time, and how long one more waits.
const READERS_MAX: u32 = 4;
const WAIT_MAX: Duration = Duration::from_secs(2);
/// How many hours a silent token's book is looked for.
pub(crate) const CARRY_HOURS_MAX: u32 = 24;

/// Why there is no book.
#[derive(Debug)]
pub enum BookError {
    /// No usable hour, or no book of the token until the moment.
    NotCovered,
    /// Other reads took too long.
    Busy,
    /// A file is damaged or cannot be read.
    Failed(Error),
}

/// The book of a token that the hours before one ended with.
pub(super) enum CarriedBook {
    Book(Folded),
    /// The hours are there, and do not know it.
    Unknown,
    /// An hour that is not there might know it.
    Absent,
}

/// Books that the hours before one ended with. Where those hours were removed, what the index had from them.
pub(super) struct StoreCarry<'a> {
    pub(super) store: &'a Store,
    pub(super) venue: &'a str,
    pub(super) hour: Hour,
    /// SHA-256 of the Parquet file of the hour before, if that is there.
    pub(super) previous: Option<[u8; 32]>,
    pub(super) old: Option<TimeIndex>,
}

/// Leaves when it is dropped.
struct Reading<'a>(&'a Store);

impl fmt::Display for BookError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BookError::NotCovered => out.write_str("no usable hour has this book"),
            BookError::Busy => out.write_str("too many books are read"),
            BookError::Failed(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for BookError {}

impl From<Error> for BookError {
    fn from(error: Error) -> BookError {
        BookError::Failed(error)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        *self.0.readers.busy.lock() -= 1;
        self.0.readers.free.notify_one();
    }
}

impl Carried for StoreCarry<'_> {
    fn previous(&self) -> [u8; 32] {
        self.previous.or_else(|| Some(self.old.as_ref()?.previous())).unwrap_or_default()
    }

    fn carried(&self, market: &Condition, token: &str) -> Result<Option<Folded>, Error> {
        Ok(match (self.store.carried(self.venue, self.hour, market, token, None)?, &self.old) {
            (CarriedBook::Book(folded), _) => Some(folded),
            (CarriedBook::Absent, Some(old)) => old.opening_state(market, token)?,
            (CarriedBook::Unknown | CarriedBook::Absent, _) => None,
        })
    }
}

impl Store {
    /// The book of a token of this venue at a moment of a sealed hour. Blocks: it is never called by the core thread.
    ///
    /// # Errors
    /// See [`BookError`].
    pub fn book_at(
        &self,
        venue: &str,
        condition: &Condition,
        token: &str,
        at: Timestamp,
    ) -> Result<ArchivedBook, BookError> {
        let _reading = self.begin_read()?;
        let hour = Hour::of(at);
        let version = self.version();
        let book = match self.book_of(venue, hour, condition, token, at) {
            // Files of this hour, or of one before it, were replaced or removed meanwhile, or are quarantined now.
            Err(_) if self.version() != version => self.book_of(venue, hour, condition, token, at)?,
            book => book?,
        };
        book.ok_or(BookError::NotCovered)
    }

    fn book_of(
        &self,
        venue: &str,
        hour: Hour,
        condition: &Condition,
        token: &str,
        at: Timestamp,
    ) -> Result<Option<ArchivedBook>, Error> {
        self.hour(venue, hour).map_or(Ok(None), |entry| self.book_in(&entry, condition, token, at))
    }

    /// The book of a token at the begin of an hour: that which an earlier hour ended with. `None`: there is none, or it
    /// is unknown.
    ///
    /// # Errors
    /// A file is damaged or cannot be read.
    pub fn opening(&self, entry: &HourEntry, condition: &Condition, token: &str) -> Result<Option<Folded>, Error> {
        let open = self.open_hour(entry)?;
        if open.index.token(condition, token).is_some() {
            // What the index has stays after the hours before were removed.
            let opening = self.noting(entry, open.index.opening_state(condition, token))?;
            return Ok(opening.filter(Folded::is_known));
        }
        Ok(match self.carried(&entry.venue, entry.hour, condition, token, None)? {
            CarriedBook::Book(folded) => Some(folded),
            CarriedBook::Unknown | CarriedBook::Absent => None,
        })
    }

    fn begin_read(&self) -> Result<Reading<'_>, BookError> {
        let until = Instant::now() + WAIT_MAX;
        let mut busy = self.readers.busy.lock();
        while *busy >= READERS_MAX {
            if self.readers.free.wait_until(&mut busy, until).timed_out() {
                return Err(BookError::Busy);
            }
        }
        *busy += 1;
        Ok(Reading(self))
    }

    fn book_in(
        &self,
        entry: &HourEntry,
        condition: &Condition,
        token: &str,
        at: Timestamp,
    ) -> Result<Option<ArchivedBook>, Error> {
        let Ok(sidecar) = entry.sidecar() else { return Ok(None) };
        let verdict = sidecar.verdict_of(condition);
        let millis = at.millis();
        let is_inside = sidecar.first_received.is_some_and(|first| first <= millis)
            && sidecar.last_received.is_some_and(|last| millis <= last);
        if !verdict.is_usable() || (verdict == Verdict::Partial && !is_inside) {
            return Ok(None);
        }
        let open = self.open_hour(entry)?;
        let here = match open.index.token(condition, token) {
            Some(rows) => self.folded_in(entry, &open, &rows, at)?,
            None => None,
        };
        // Of the hour alone: the fold goes on counting over hours.
        let deduped = match &here {
            Some(folded) if folded.deduped() > 0 => {
                let opening = self.noting(entry, open.index.opening_state(condition, token))?;
                folded.deduped().saturating_sub(opening.map_or(0, |opening| opening.deduped()))
            }
            _ => 0,
        };
        let folded = match here {
            Some(folded) => Some(folded),
            None => match self.carried(&entry.venue, entry.hour, condition, token, Some(at))? {
                CarriedBook::Book(folded) => Some(folded),
                CarriedBook::Unknown | CarriedBook::Absent => None,
            },
        };
        let Some(folded) = folded.filter(Folded::is_known) else { return Ok(None) };
        let view = folded.view();
        let is_stale = self.is_stale(entry, token, &folded, at);
        Ok(Some(ArchivedBook {
            bids: view.bids,
            asks: view.asks,
            last_message: folded.last_received(),
            hour: entry.hour,
            verdict,
            confidence: Confidence::of(verdict, true),
            is_stale,
            crossed_dropped: view.crossed_dropped,
            deduped,
        }))
    }

    /// The folded book of a token in an hour; `None`: the hour does not know it until the moment.
    fn folded_in(
        &self,
        entry: &HourEntry,
        open: &Arc<OpenHour>,
        token: &TokenRows,
        at: Timestamp,
    ) -> Result<Option<Folded>, Error> {
        let folded = match self.noting(entry, open.place(token, at))? {
            Place::Before => return Ok(None),
            Place::Anchor(anchor) => self.noting(entry, open.index.state(&anchor))?,
            Place::Segment { number, from, rows } => {
                let key = Key::Segment(entry.number, token.number as u32, number);
                let segment = match self.cache.get(key) {
                    Some(Value::Segment(segment)) => segment,
                    _ => {
                        self.ask_for_check(entry);
                        let segment = Arc::new(self.noting(entry, open.segment(from, rows))?);
                        self.cache.put(key, Value::Segment(segment.clone()), segment.bytes());
                        segment
                    }
                };
                segment.at(at)
            }
        };
        // Rows of up to five seconds after an hour are in its file, so its last book may be of the future.
        Ok((folded.last_received() <= at).then_some(folded))
    }

    /// The book that the hours before `hour` ended with: of the latest that has rows of the token, at most 24 back, and
    /// no gap, bad or missing hour since. `at`: only what was received until then.
    pub(super) fn carried(
        &self,
        venue: &str,
        hour: Hour,
        condition: &Condition,
        token: &str,
        at: Option<Timestamp>,
    ) -> Result<CarriedBook, Error> {
        for back in 1..=CARRY_HOURS_MAX {
            let Some(entry) = hour.0.checked_sub(back).and_then(|hour| self.hour(venue, Hour(hour))) else {
                return Ok(CarriedBook::Absent);
            };
            let Ok(sidecar) = entry.sidecar() else { break };
            let verdict = sidecar.verdict_of(condition);
            // A recording that ends in an hour, or begins there, may have missed messages at its end.
            let ends_early = verdict == Verdict::Partial && !self.continues(&entry);
            if !verdict.is_usable() || ends_early {
                break;
            }
            let folded = match self.last_book(&entry, condition, token, at) {
                // It turned out to be damaged, so it is quarantined as those above.
                Err(Error::Refused(..)) if entry.sidecar().is_err() => break,
                folded => folded?,
            };
            let Some(folded) = folded else {
                // Silent, but its book may have become unknown.
                if entry.has_gap(token, 0, u64::MAX) {
                    break;
                }
                continue;
            };
            let is_sound = folded.is_known() && !entry.has_gap(token, folded.snapshot_received().millis(), u64::MAX);
            return Ok(if is_sound { CarriedBook::Book(folded) } else { CarriedBook::Unknown });
        }
        Ok(CarriedBook::Unknown)
    }

    /// The book that an hour ended with, or had at a moment; `None`: the token has no rows in it, or not until then.
    fn last_book(
        &self,
        entry: &HourEntry,
        condition: &Condition,
        token: &str,
        at: Option<Timestamp>,
    ) -> Result<Option<Folded>, Error> {
        let open = self.open_hour(entry)?;
        match (open.index.token(condition, token), at) {
            (None, _) => Ok(None),
            (Some(rows), Some(at)) => self.folded_in(entry, &open, &rows, at),
            (Some(_), None) => self.noting(entry, open.index.end_state(condition, token)),
        }
    }

    /// Whether a partial hour lasts to its end: its last message is in its last minute.
    fn continues(&self, entry: &HourEntry) -> bool {
        entry.sidecar().is_ok_and(|sidecar| sidecar.recorded(entry.hour).1.is_none())
    }

    /// Whether a gap of the token began after its last whole book and until the moment.
    fn is_stale(&self, entry: &HourEntry, token: &str, folded: &Folded, at: Timestamp) -> bool {
        let since = folded.snapshot_received();
        let first = Hour(Hour::of(since).0.max(entry.hour.0.saturating_sub(CARRY_HOURS_MAX)));
        let hours = self.entries(&entry.venue, first..entry.hour.next());
        hours.iter().any(|entry| entry.sidecar().is_ok() && entry.has_gap(token, since.millis(), at.millis()))
    }

    /// Opens the files of an hour.
    pub(super) fn open_hour(&self, entry: &HourEntry) -> Result<Arc<OpenHour>, Error> {
        let key = Key::Hour(entry.number);
        if let Some(Value::Hour(open)) = self.cache.get(key) {
            return Ok(open);
        }
        let open = Arc::new(self.noting(entry, self.open_files(entry))?);
        let bytes = open.index.memory() + open.file.memory();
        self.cache.put(key, Value::Hour(open.clone()), bytes);
        Ok(open)
    }

    fn open_files(&self, entry: &HourEntry) -> Result<OpenHour, Error> {
        let index = TimeIndex::open(&index_path(&entry.path))?;
        let file = HourFile::open(&entry.path)?;
        let digest = entry.stated().map(|sidecar| sidecar.parquet.sha256.clone()).unwrap_or_default();
        if crate::hex(&index.parquet()) != digest
            || index.row_count() != file.row_count()
            || index.hour() != entry.hour.0
        {
            let refusal = Refusal::new("the time index is of another file");
            return Err(Error::Refused(index_path(&entry.path), refusal));
        }
        Ok(OpenHour { file, index })
    }

    /// Passes on what a read of an hour's files gave. A damaged file makes the hour quarantined; if the files are not
    /// those that were listed, the hour is listed again instead.
    pub(super) fn noting<T>(&self, entry: &HourEntry, read: Result<T, Error>) -> Result<T, Error> {
        let damage = match &read {
            Err(Error::Refused(path, refusal)) => Some((path, refusal.clone())),
            Err(Error::Io(path, error)) if error.kind() == io::ErrorKind::NotFound => {
                Some((path, Refusal::new("the file is missing")))
            }
            _ => None,
        };
        if let Some((path, refusal)) = damage {
            let is_own = *path == entry.path || *path == index_path(&entry.path);
            if is_own && !entry.is_as_listed() {
                self.refresh_hour(&entry.venue, entry.hour)?;
            } else if is_own && entry.note_damage(path, &refusal) {
                self.cache.forget(entry.number);
                self.version.fetch_add(1, Ordering::Release);
            }
        }
        read
    }

    /// Rows of an hour are read: its files are compared with their digests, in the background.
    fn ask_for_check(&self, entry: &HourEntry) {
        if !entry.found.is_asked.load(Ordering::Relaxed)
            && let Some(entry) = self.hour(&entry.venue, entry.hour).filter(|known| known.number == entry.number)
        {
            self.checker.ask(&entry);
        }
    }

    /// The tokens of a market that an hour has, ascending.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn tokens(&self, entry: &HourEntry, condition: &Condition) -> Result<Vec<TokenRows>, Error> {
        Ok(self.open_hour(entry)?.index.tokens_of(condition))
    }

    /// The open Parquet file of an hour; its rows are read by the range of a token.
    ///
    /// # Errors
    /// It is damaged.
    pub fn with_hour<T>(
        &self,
        entry: &HourEntry,
        read: impl FnOnce(&HourFile, &TimeIndex) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let open = self.open_hour(entry)?;
        let found = self.noting(entry, read(&open.file, &open.index));
        if open.file.is_read() {
            self.ask_for_check(entry);
        }
        found
    }

    /// The states of a market of this venue in a range of hours, ascending; hours without data are left out. A market
    /// without rows in an hour has that hour's verdict if its books are carried into it. An hour whose index is damaged
    /// may have had the market: it is quarantined for every market of its venue, and for no other.
    pub fn hours(&self, venue: &str, condition: &Condition, range: Range<Hour>) -> Vec<HourState> {
        let mut states: Vec<HourState> = Vec::new();
        let first = Hour(range.start.0.saturating_sub(CARRY_HOURS_MAX));
        // The last hour with rows, and the hour before this one, if the chain from the former is unbroken.
        let mut chain: Option<(Hour, Hour)> = None;
        for entry in self.entries(venue, first..range.end) {
            let hour = entry.hour;
            let is_next = chain.is_some_and(|(_, before)| before.next() == hour);
            chain = chain.filter(|(spoke, _)| is_next && hour.0 - spoke.0 <= CARRY_HOURS_MAX);
            let has_rows = self.has_market(&entry, condition);
            let verdict = entry.sidecar().map_or(Verdict::Quarantined, |sidecar| sidecar.verdict_of(condition));
            let is_known = has_rows != Some(false) || chain.is_some();
            let verdict = if has_rows.is_none() { Verdict::Quarantined } else { verdict };
            chain = match (verdict.is_usable(), has_rows) {
                (true, Some(true)) => Some((hour, hour)),
                (true, _) => chain.map(|(spoke, _)| (spoke, hour)),
                (false, _) => None,
            };
            if is_known && range.contains(&hour) {
                states.push(HourState::new(hour, verdict, true));
            }
        }
        states
    }

    /// Whether a market has rows in an hour; `None`: the index is damaged.
    pub fn has_market(&self, entry: &HourEntry, condition: &Condition) -> Option<bool> {
        match self.cache.get(Key::Hour(entry.number)) {
            Some(Value::Hour(open)) => Some(open.index.has_market(condition)),
            _ => self.noting(entry, TimeIndex::probe(&index_path(&entry.path), condition)).ok(),
        }
    }
}
