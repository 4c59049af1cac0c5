//! Finds books without a message for a long time (gateway/docs/live-venues.md §5). On a live connection the market may
//! be calm, or the venue may have lost the subscription without a notice. A few books at a time are requested; if the
//! venue's book differs from the folded one, the market is subscribed again.
//!
//! The levels are compared: the venue's hash also covers the time and the last trade.

use super::{Desk, Links};
use crate::live::Pace;
use crate::{FeedUpdate, Frame, Level};
use engine::amount::Qty;
use engine::book::ladder::SIZE_MAX;
use engine::book::{Books, Depth, DepthSide, SINGLE_ANSWERS};
use engine::id::{MarketId, Outcome};
use engine::market::catalog::Catalog;
use engine::market::terms::Venue;
use engine::time::Timestamp;

/// Checks per `quiet_after`, most markets in one check, and most markets that one check looks at.
const CHECKS: u64 = 60;
const MARKETS_MAX: usize = 50;
const SCANNED_MAX: usize = 10_000;

/// Which markets to check next.
pub(super) struct Quiet {
    after_us: u64,
    next: Timestamp,
    /// Every other check is reserved for markets that users trade.
    staked: Vec<MarketId>,
    is_for_staked: bool,
    /// Where the next check begins, among traded markets and among all.
    cursors: [usize; 2],
    enabled: bool,
}

impl Quiet {
    pub(super) fn new(pace: &Pace, is_live: bool) -> Quiet {
        Quiet {
            after_us: pace.quiet_after.as_micros() as u64,
            next: Timestamp::default(),
            staked: Vec::new(),
            is_for_staked: false,
            cursors: [0; 2],
            enabled: is_live,
        }
    }

    /// Sets the markets that users trade.
    pub(super) fn staked(&mut self, markets: Vec<MarketId>) {
        self.staked = markets;
    }

    /// The markets to check now, all of one connection, so that one call suffices.
    pub(super) fn turn(&mut self, catalog: &Catalog, books: &Books, now: Timestamp) -> Vec<MarketId> {
        if !self.enabled || now < self.next {
            return Vec::new();
        }
        self.next = now.plus((self.after_us / CHECKS).max(1));
        self.is_for_staked = !self.is_for_staked && !self.staked.is_empty();
        let (count, cursor) = match self.is_for_staked {
            true => (self.staked.len(), self.cursors[0]),
            false => (catalog.len(), self.cursors[1]),
        };
        let (mut quiet, mut of, mut other) = (Vec::new(), None, None);
        let mut reached = cursor;
        for step in 0..count.min(SCANNED_MAX) {
            let at = (cursor + step) % count;
            let market = if self.is_for_staked { self.staked[at] } else { MarketId(at as u32) };
            reached = at + 1;
            let Some(connection) = self.silent_on(catalog, books, market, now) else { continue };
            match of {
                Some(of) if of != connection => drop(other.get_or_insert(at)),
                _ => {
                    of = Some(connection);
                    quiet.push(market);
                    if quiet.len() == MARKETS_MAX {
                        break;
                    }
                }
            }
        }
        // The next check begins with the first market of another connection.
        self.cursors[usize::from(!self.is_for_staked)] = other.unwrap_or(reached);
        quiet
    }

    /// The connection of a market, if its book is sound and had no message for a long time.
    fn silent_on(&self, catalog: &Catalog, books: &Books, market: MarketId, now: Timestamp) -> Option<u16> {
        let cell = catalog.market(market)?;
        if cell.listing.venue != Venue::Polymarket || cell.resolution().is_some() {
            return None;
        }
        let book = books.book(market.instrument(Outcome::First))?;
        let (at, connection) = book.last_message()?;
        (!book.gap() && self.is_long(at, now)).then_some(connection)
    }

    fn is_long(&self, at: Timestamp, now: Timestamp) -> bool {
        now.since(at) >= self.after_us
    }
}

impl<L: Links> Desk<L> {
    /// Looks at a response before it is applied, for books that changed without a message of their socket.
    pub(super) fn find_lost(&mut self, frame: &Frame<'_>) {
        if !frame.is_answer || frame.connection == SINGLE_ANSWERS {
            return;
        }
        let books = self.writer.books();
        for update in frame.updates {
            let FeedUpdate::BookSnapshot { token, bids, asks, .. } = update else { continue };
            let Some(instrument) = self.catalog.by_token(token) else { continue };
            let Some(book) = books.book(instrument).filter(|book| !book.gap()) else { continue };
            if !book.last_message().is_some_and(|(at, _)| self.quiet.is_long(at, frame.received)) {
                continue;
            }
            let mut depth = Depth::default();
            if book.copy(usize::MAX, &mut depth).is_ok() && !(same(&depth.bids, bids) && same(&depth.asks, asks)) {
                self.lost.push(instrument.market());
            }
        }
        self.lost.dedup();
    }
}

/// Whether a side of a ladder equals the venue's levels, with sizes clamped as a ladder does.
fn same(shown: &DepthSide, reported: &[Level]) -> bool {
    let held = reported.iter().map(|(price, size)| (*price, Qty(size.0.min(SIZE_MAX))));
    shown.iter().map(|level| (level.price, level.size)).eq(held)
}
