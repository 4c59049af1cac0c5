//! Hours of this server's recording that are not made yet (gateway/docs/archive.md §9): reads of a moment use them,
//! back-tests and exports do not.

use super::PastError;
use archive::row::Condition;
use engine::backtest::{ArchivedBook, Hour, HourState, Verdict};
use engine::market::terms::Listing;
use engine::time::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use venue::archive::tail::{Tail, TailMarket};
use venue::tape::Origin;

/// How long a read waits for the end of the recording, and how often it reads more of it itself.
const WAIT_MAX: Duration = Duration::from_secs(2);
const READS_MAX: usize = 64;

/// The end of a recording, as simulations read it.
pub(super) struct Unmade {
    tail: Arc<Mutex<Tail>>,
}

/// A market of these hours.
pub(super) struct UnmadeMarket {
    pub origin: Origin,
    /// Those of its venue.
    pub hours: Range<Hour>,
    /// Its tokens that have rows.
    pub tokens: BTreeSet<Arc<str>>,
    /// Its listing, if it was listed in these hours.
    pub listing: Option<Listing>,
}

impl Unmade {
    pub fn new(tail: Arc<Mutex<Tail>>) -> Unmade {
        Unmade { tail }
    }

    /// Reads these hours, with the lines until now; `None`: there are none.
    fn with_lines<T>(&self, read: impl FnOnce(&Tail) -> Result<T, PastError>) -> Result<Option<T>, PastError> {
        let mut tail = self.tail.try_lock_for(WAIT_MAX).ok_or(PastError::Busy)?;
        if !tail.has_begun() {
            return Ok(None);
        }
        tail.look_again();
        for _ in 0..READS_MAX {
            if !tail.read_some()? {
                break;
            }
        }
        read(&tail).map(Some)
    }

    /// A market as these hours show it; `None`: they have no row of it.
    pub fn market(&self, market: &Condition) -> Result<Option<UnmadeMarket>, PastError> {
        let found = self.with_lines(|tail| {
            let Some(TailMarket { origin, tokens, listing }) = tail.market(market) else { return Ok(None) };
            let hours = tail.range(origin.name());
            Ok(Some(UnmadeMarket { origin, hours, tokens, listing: listing.cloned() }))
        })?;
        Ok(found.flatten())
    }

    /// The states of a market's hours within a window. A market without rows has the books that are carried into an hour.
    pub fn hours(
        &self,
        market: &Condition,
        tokens: &[Arc<str>; 2],
        window: Range<Hour>,
    ) -> Result<Vec<HourState>, PastError> {
        let states = self.with_lines(|tail| {
            let (range, mut states) = (tail.all_hours(), Vec::new());
            for hour in (range.start.0.max(window.start.0)..range.end.0.min(window.end.0)).map(Hour) {
                let last = Timestamp(hour.end().0 - 1);
                let has_book = |token: &Arc<str>| Ok::<_, PastError>(tail.book_at(market, token, last)?.is_some());
                if !tail.hours(market, hour..hour.next()).is_empty() || has_book(&tokens[0])? || has_book(&tokens[1])? {
                    states.push(HourState::new(hour, Verdict::Partial, false));
                }
            }
            Ok(states)
        })?;
        Ok(states.unwrap_or_default())
    }

    /// The book of a token at a moment; `None`: these hours do not cover it.
    pub fn book(&self, market: &Condition, token: &str, at: Timestamp) -> Result<Option<ArchivedBook>, PastError> {
        let book = self.with_lines(|tail| match tail.all_hours().contains(&Hour::of(at)) {
            // After a start its first lines take a while.
            true if !tail.is_caught_up() => Err(PastError::Busy),
            true => Ok(tail.book_at(market, token, at)?),
            false => Ok(None),
        })?;
        Ok(book.flatten())
    }
}
