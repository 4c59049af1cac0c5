//! Books of which nothing was heard for long (upstream.md §5). On a connection that lives the market may just be calm, or
//! the venue may have lost its subscription without a word. A few at a time are asked about, and where the venue shows
//! another book than was folded here, the market is to be subscribed anew.
//!
//! The books themselves are compared: the venue's hash is also made of its time and its last trade.

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

/// Looks within the length of time that is long, the markets that one asks about, and those that it passes over.
const LOOKS: u64 = 60;
const ASKED_MAX: usize = 50;
const PASSED_MAX: usize = 10_000;

/// Whose turn it is to be asked about.
pub(super) struct Quiet {
    after_us: u64,
    next: Timestamp,
    /// Markets that are traded here have every other look.
    staked: Vec<MarketId>,
    is_for_staked: bool,
    /// Where the next look begins: among those, and among all.
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

    /// These are the markets that are traded here.
    pub(super) fn staked(&mut self, markets: Vec<MarketId>) {
        self.staked = markets;
    }

    /// Markets to ask about now, all of one connection, so that it is one call.
    pub(super) fn turn(&mut self, catalog: &Catalog, books: &Books, now: Timestamp) -> Vec<MarketId> {
        if !self.enabled || now < self.next {
            return Vec::new();
        }
        self.next = now.plus((self.after_us / LOOKS).max(1));
        self.is_for_staked = !self.is_for_staked && !self.staked.is_empty();
        let (count, cursor) = match self.is_for_staked {
            true => (self.staked.len(), self.cursors[0]),
            false => (catalog.len(), self.cursors[1]),
        };
        let (mut quiet, mut of, mut other) = (Vec::new(), None, None);
        let mut reached = cursor;
        for step in 0..count.min(PASSED_MAX) {
            let at = (cursor + step) % count;
            let market = if self.is_for_staked { self.staked[at] } else { MarketId(at as u32) };
            reached = at + 1;
            let Some(connection) = self.since(catalog, books, market, now) else { continue };
            match of {
                Some(of) if of != connection => drop(other.get_or_insert(at)),
                _ => {
                    of = Some(connection);
                    quiet.push(market);
                    if quiet.len() == ASKED_MAX {
                        break;
                    }
                }
            }
        }
        // The first one of another connection begins the next look.
        self.cursors[usize::from(!self.is_for_staked)] = other.unwrap_or(reached);
        quiet
    }

    /// The connection of a market of which nothing was heard for long, though its book is good as far as is known.
    fn since(&self, catalog: &Catalog, books: &Books, market: MarketId, now: Timestamp) -> Option<u16> {
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
    /// Sees an answer before it is applied: a book that has changed without a word of its socket.
    pub(super) fn notice_lost(&mut self, frame: &Frame<'_>) {
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

/// Whether a side of a ladder is what the venue tells: sizes as far as a ladder holds them.
fn same(shown: &DepthSide, told: &[Level]) -> bool {
    let held = told.iter().map(|(price, size)| (*price, Qty(size.0.min(SIZE_MAX))));
    shown.iter().map(|level| (level.price, level.size)).eq(held)
}
