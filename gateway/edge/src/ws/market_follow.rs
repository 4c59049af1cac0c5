//! The subscriptions of one socket of the market channel, and the frames that it gets (gateway/docs/streams.md §1.6,
//! §4.2).
//!
//! A token's `book` is copied after the changes of its market are followed, and changes that the copy contains are not
//! sent. When the queue is full, the queued frames of the market are dropped. Once the peer has read the rest, a full
//! `book` of each token replaces all skipped changes.

use super::batch::{Batch, Best, FrameSelection, best};
use super::change::{BookChange, BookContent, Change, Follows};
use super::close::Close;
use super::frame::{Frame, Frames};
use super::hub::Hub;
use super::market_text;
use super::outbox::{Placed, Tag};
use super::session::{Socket, caught};
use super::shape::market::{MarketResolvedEvent, NewMarketEvent};
use crate::api::books::view::{self, BookCopy};
use ahash::AHashMap;
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::market::catalog::MarketCell;
use engine::market::terms::Resolution;
use engine::time::Timestamp;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use wire::write::separate;

/// Most books of one array (gateway/docs/streams.md §4.2).
pub const BOOKS_PER_ARRAY_MAX: usize = 50;
/// Markets that are sent again before other tasks of the thread run: two books each.
const MARKETS_PER_PAGE: usize = BOOKS_PER_ARRAY_MAX / 2;
/// Tag of frames that are never dropped: initial books, new markets and resolutions. No market has this number.
const PERMANENT: Tag = Tag(u64::MAX);

/// One socket of the market channel.
pub struct Follower {
    socket: Rc<Socket>,
    hub: Rc<Hub>,
    markets: RefCell<AHashMap<MarketId, Rc<Followed>>>,
    /// Number of followed tokens.
    count: Cell<usize>,
    /// Whether the custom events are on.
    custom: Cell<bool>,
    /// Markets that wait for the queue to empty, without duplicates, in order of arrival.
    lagging: RefCell<VecDeque<Rc<Followed>>>,
    /// Whether the queue was empty since catching up last looked.
    drained: Cell<bool>,
    /// Whether a task is catching up.
    catching_up: Cell<bool>,
    /// New markets for which the queue had no room, and those after them.
    unlisted: RefCell<VecDeque<MarketId>>,
}

/// One market that a socket follows.
pub struct Followed {
    pub market: MarketId,
    follower: Weak<Follower>,
    tokens: [Token; 2],
    /// Whether changes are skipped until full books are sent.
    is_lagging: Cell<bool>,
    /// Whether the market is in the follower's list of lagging markets.
    waits: Cell<bool>,
    /// Whether its resolution was sent.
    resolved: Cell<bool>,
}

/// One token of a followed market.
#[derive(Default)]
struct Token {
    follows: Cell<bool>,
    /// Whether the peer has its book, or did not request it.
    has_book: Cell<bool>,
    /// Version of the pair of books: the copy that was sent contains all changes up to it.
    version: Cell<u64>,
    /// Changes up to this number are older than the subscription.
    number: Cell<u64>,
    /// Timestamp of its last `book`, which contains everything before it.
    shown_at: Cell<Timestamp>,
    /// The best prices that were sent last.
    best: Cell<Best>,
}

impl Follower {
    pub fn new(socket: Rc<Socket>, hub: Rc<Hub>) -> Rc<Follower> {
        let follower = Rc::new(Follower {
            socket,
            hub,
            markets: RefCell::default(),
            count: Cell::new(0),
            custom: Cell::new(false),
            lagging: RefCell::default(),
            drained: Cell::new(false),
            catching_up: Cell::new(false),
            unlisted: RefCell::default(),
        });
        let weak = Rc::downgrade(&follower);
        follower.socket.when_drained(move || {
            let Some(follower) = weak.upgrade() else { return };
            follower.drained.set(true);
            if !follower.catching_up.replace(true) {
                tokio::task::spawn_local(follower.catch_up());
            }
        });
        follower
    }

    /// Number of followed tokens.
    pub fn count(&self) -> usize {
        self.count.get()
    }

    pub fn follows(&self, instrument: InstrumentId) -> bool {
        let markets = self.markets.borrow();
        markets.get(&instrument.market()).is_some_and(|market| market.token(instrument.outcome()).follows.get())
    }

    /// Turns the custom events on. They stay on for the life of the socket.
    pub fn enable_custom_events(self: &Rc<Self>) {
        if !self.custom.replace(true) {
            self.hub.follow_listings(self);
        }
    }

    /// Follows a token from now on. Does not send its book.
    pub fn follow(self: &Rc<Self>, instrument: InstrumentId) {
        let market = instrument.market();
        let known = self.markets.borrow().get(&market).cloned();
        let followed = known.unwrap_or_else(|| {
            let followed = Rc::new(Followed {
                market,
                follower: Rc::downgrade(self),
                tokens: Default::default(),
                is_lagging: Cell::new(false),
                waits: Cell::new(false),
                resolved: Cell::new(false),
            });
            self.hub.follow(&followed);
            self.markets.borrow_mut().insert(market, Rc::clone(&followed));
            followed
        });
        let token = followed.token(instrument.outcome());
        if token.follows.replace(true) {
            return;
        }
        self.count.set(self.count.get() + 1);
        let app = self.hub.app();
        // In this order: changes published after the number is read reach this socket.
        token.number.set(app.streams.news.number());
        token.version.set(app.reads.books.version(instrument));
        token.best.set(Default::default());
        token.shown_at.set(Timestamp(0));
        // A client that did not request the book gets changes without it.
        token.has_book.set(true);
    }

    pub fn unfollow(&self, instrument: InstrumentId) {
        let followed = self.markets.borrow().get(&instrument.market()).cloned();
        let Some(followed) = followed else { return };
        if !followed.token(instrument.outcome()).follows.replace(false) {
            return;
        }
        self.count.set(self.count.get() - 1);
        if followed.tokens.iter().all(|token| !token.follows.get()) {
            self.markets.borrow_mut().remove(&followed.market);
            self.lagging.borrow_mut().retain(|other| !Rc::ptr_eq(other, &followed));
            self.hub.unfollow(&followed);
        }
    }

    /// Sends the books of these tokens, at most [`BOOKS_PER_ARRAY_MAX`], as one array. A token without a book is left
    /// out, and sent when it has one. If the queue has no room, nothing is made, and full books are sent when it is
    /// empty.
    pub fn dump(&self, instruments: &[InstrumentId]) {
        let followed = |instrument: &InstrumentId| self.markets.borrow().get(&instrument.market()).cloned();
        let lag = || instruments.iter().filter_map(followed).for_each(|followed| followed.lag());
        if !self.socket.has_room() {
            return lag();
        }
        let frame = Frame::json(|out| {
            out.push(b'[');
            for (instrument, followed) in instruments.iter().filter_map(|id| Some((id, followed(id)?))) {
                let before = out.len();
                separate(out);
                if !followed.copy(instrument.outcome(), out) {
                    out.truncate(before);
                }
            }
            out.push(b']');
        });
        if !self.socket.offer(PERMANENT, &frame) {
            lag();
        }
    }

    /// A new market.
    pub fn listed(&self, market: MarketId, frame: &Frame) {
        let mut unlisted = self.unlisted.borrow_mut();
        if !unlisted.is_empty() || !self.socket.offer(PERMANENT, frame) {
            unlisted.push_back(market);
        }
    }

    /// Runs when the queue has become empty: sends full books for all skipped changes, page by page, while there is
    /// room.
    async fn catch_up(self: Rc<Self>) {
        let pages = async {
            while self.drained.replace(false) {
                let mut has_more = true;
                while has_more {
                    self.hub.one_page(|| has_more = self.catch_up_page()).await;
                }
            }
        };
        if caught(pages).await.is_err() {
            self.socket.close(Close::INTERNAL);
        }
        self.catching_up.set(false);
    }

    /// Sends one page. Returns whether there are more, and room for them.
    fn catch_up_page(&self) -> bool {
        for _ in 0..MARKETS_PER_PAGE {
            let Some(followed) = self.lagging.borrow_mut().pop_front() else { return self.list_page() };
            followed.waits.set(false);
            if followed.is_lagging.get() {
                followed.catch_up();
            }
            // No room: making further books would be in vain.
            if followed.is_lagging.get() {
                return false;
            }
        }
        true
    }

    /// Sends one page of the new markets that had no room. Returns whether there are more, and room for them.
    fn list_page(&self) -> bool {
        let catalog = &self.hub.app().reads.catalog;
        for _ in 0..MARKETS_PER_PAGE {
            let Some(market) = self.unlisted.borrow().front().copied() else { return false };
            let cell = catalog.market(market).expect("a market that was listed stays");
            if !self.socket.offer(PERMANENT, &Frame::record(&NewMarketEvent::new(cell, cell.listed_at))) {
                return false;
            }
            self.unlisted.borrow_mut().pop_front();
        }
        true
    }

    /// Ends all subscriptions when the socket is gone.
    pub fn end(&self) {
        let markets = std::mem::take(&mut *self.markets.borrow_mut());
        markets.values().for_each(|followed| self.hub.unfollow(followed));
        if self.custom.get() {
            self.hub.unfollow_listings(self);
        }
    }
}

impl Followed {
    fn token(&self, outcome: Outcome) -> &Token {
        &self.tokens[outcome as usize]
    }

    fn tag(&self) -> Tag {
        Tag(u64::from(self.market.0))
    }

    /// Sends the changes of a batch that concern followed tokens and are not in their books already.
    pub fn changes(&self, batch: &mut Batch, cell: &MarketCell) {
        let Some(follower) = self.follower.upgrade().filter(|_| !self.is_lagging.get()) else { return };
        let sent = match self.selection(&follower, batch) {
            Some(selection) => self.send_shared(&follower, selection, batch, cell),
            None => {
                let give = |frame: &Frame| self.place(&follower, &frame.into());
                batch.changes().iter().all(|change| self.send(&follower, change, cell, give))
            }
        };
        if !sent {
            self.lag();
        }
    }

    /// The selection of frames if the whole batch is new to this socket. `None`: its frames must be made for it alone.
    fn selection(&self, follower: &Follower, batch: &Batch) -> Option<FrameSelection> {
        let [first, second] = &self.tokens;
        let gets_all = |token: &Token| {
            !token.follows.get()
                || token.has_book.get()
                    && batch.is_new_after(token.number.get(), token.version.get(), token.shown_at.get())
        };
        let selection = || FrameSelection {
            follows: Follows([first.follows.get(), second.follows.get()]),
            bests: follower.custom.get().then(|| [first.best.get(), second.best.get()]),
        };
        (gets_all(first) && gets_all(second)).then(selection)
    }

    /// Sends the frames that all sockets with this selection get. Returns false without room.
    fn send_shared(
        &self,
        follower: &Follower,
        selection: FrameSelection,
        batch: &mut Batch,
        cell: &MarketCell,
    ) -> bool {
        if batch.made(&selection).is_none() {
            let mut frames = Vec::with_capacity(batch.changes().len());
            for change in batch.changes() {
                self.send(follower, change, cell, |frame| {
                    frames.push(frame.clone());
                    true
                });
            }
            batch.make(selection, &frames);
        }
        for outcome in selection.follows.outcomes() {
            if let Some(best) = batch.best(outcome) {
                self.token(outcome).best.set(best);
            }
        }
        batch.made(&selection).is_none_or(|pieces| pieces.iter().all(|frames| self.place(follower, frames)))
    }

    /// Queues frames that the hub writes. Returns false without room.
    fn place(&self, follower: &Follower, frames: &Frames) -> bool {
        let placed = follower.socket.place(self.tag(), frames);
        if placed == Placed::ToFlush {
            follower.hub.flush_later(&follower.socket);
        }
        placed != Placed::Refused
    }

    /// Passes the frames of a change to `give`. Returns false if a frame had no room.
    fn send(
        &self,
        follower: &Follower,
        change: &Change,
        cell: &MarketCell,
        mut give: impl FnMut(&Frame) -> bool,
    ) -> bool {
        let [first, second] = &self.tokens;
        let is_new = |token: &Token| token.follows.get() && change.number > token.number.get();
        let moved = |token: &Token| token.follows.get() && change.version > token.version.get();
        let (events, moved) = (Follows([is_new(first), is_new(second)]), Follows([moved(first), moved(second)]));
        for outcome in events.outcomes() {
            let is_news = change.token(outcome).at >= self.token(outcome).shown_at.get();
            if is_news && !change.tick_frame(cell, outcome).is_none_or(&mut give) {
                return false;
            }
        }
        let mut levels = moved;
        for outcome in moved.outcomes() {
            let (token, book) = (self.token(outcome), &change.token(outcome).book);
            match book {
                Some(BookChange { content: BookContent::Whole { .. }, .. }) => token.has_book.set(true),
                // The first change of a book that the peer does not have: the full book comes first.
                Some(_) if !token.has_book.get() => {
                    levels.0[outcome as usize] = false;
                    if !self.book(follower, outcome) {
                        return false;
                    }
                    continue;
                }
                Some(_) => {}
                None => continue,
            }
            if !change.book_frame(cell, outcome).is_none_or(&mut give) {
                return false;
            }
        }
        if !change.levels_frame(cell, levels).is_none_or(&mut give) {
            return false;
        }
        for outcome in moved.outcomes() {
            let (token, Some(book)) = (self.token(outcome), &change.token(outcome).book) else { continue };
            let changed = token.best.replace(best(book.top)) != best(book.top);
            if changed && follower.custom.get() && !change.top_frame(cell, outcome).is_none_or(&mut give) {
                return false;
            }
        }
        events.outcomes().all(|outcome| {
            let shown_at = self.token(outcome).shown_at.get();
            let mut news = change.trade_frames(cell, outcome).filter(|(at, _)| *at >= shown_at);
            news.all(|(_, frame)| give(frame))
        })
    }

    /// Sends the resolution of the market.
    pub fn resolved(&self, frame: &Frame) {
        let Some(follower) = self.follower.upgrade().filter(|_| !self.is_lagging.get()) else { return };
        if self.resolved.replace(true) || !follower.custom.get() {
            return;
        }
        if !follower.socket.offer(PERMANENT, frame) {
            self.resolved.set(false);
            self.lag();
        }
    }

    /// Skips changes until [`Followed::catch_up`] sends full books.
    pub fn set_lagging(&self) {
        self.is_lagging.set(true);
    }

    /// The queue is full: drops the queued frames of this market. Full books are sent when the queue is empty.
    fn lag(&self) {
        self.set_lagging();
        let Some(follower) = self.follower.upgrade() else { return };
        follower.socket.withdraw(self.tag());
        if !self.waits.replace(true) {
            let me = follower.markets.borrow().get(&self.market).cloned();
            follower.lagging.borrow_mut().extend(me);
        }
    }

    /// Sends full books, and the resolution if it was skipped.
    pub fn catch_up(&self) {
        let Some(follower) = self.follower.upgrade() else { return };
        self.is_lagging.set(false);
        let outcomes = [Outcome::First, Outcome::Second];
        let sent =
            outcomes.into_iter().all(|outcome| !self.token(outcome).follows.get() || self.book(&follower, outcome));
        if !sent {
            return self.lag();
        }
        let app = follower.hub.app();
        let follows = self.tokens.iter().any(|token| token.follows.get());
        if let Some(cell) = app.reads.catalog.market(self.market).filter(|_| follows)
            && let Some(resolution) = cell.resolution()
        {
            self.resolved(&resolved_frame(&follower, cell, resolution));
        }
    }

    /// Sends one full book, if there is one. Returns false without room.
    fn book(&self, follower: &Follower, outcome: Outcome) -> bool {
        let mut is_there = false;
        let frame = Frame::json(|out| is_there = self.copy(outcome, out));
        !is_there || follower.socket.offer(self.tag(), &frame)
    }

    /// Writes the current book of a token. Changes that it contains are not sent afterwards. Returns false, and writes
    /// nothing, without a book or a follower.
    fn copy(&self, outcome: Outcome, out: &mut Vec<u8>) -> bool {
        let (Some(follower), token) = (self.follower.upgrade(), self.token(outcome)) else { return false };
        let app = follower.hub.app();
        let Some(cell) = app.reads.catalog.market(self.market) else { return false };
        let instrument = cell.instrument(outcome);
        // Read before the copy: changes that are not in the copy have this time or a later one.
        let latest = app.streams.news.last_time(instrument);
        let write = |shown: BookCopy<'_>| {
            let at = latest.max(shown.depth.changed_at);
            app.streams.news.advance_time(instrument, at);
            token.shown_at.set(at);
            market_text::book(out, shown, &shown.hash(), at);
            token.version.set(shown.depth.version);
            token.best.set(best(shown.depth.top));
        };
        let written = view::copied(&app.reads.books, cell, instrument, usize::MAX, write).is_ok();
        token.has_book.set(written);
        written
    }
}

/// `market_resolved` for a socket that missed it.
fn resolved_frame(follower: &Follower, cell: &MarketCell, resolution: Resolution) -> Frame {
    let app = follower.hub.app();
    let latest = [Outcome::First, Outcome::Second].map(|outcome| app.streams.news.last_time(cell.instrument(outcome)));
    let now = app.reads.books.venue_now(app.reads.clock.now());
    let at = latest.into_iter().fold(now, Ord::max);
    Frame::record(&MarketResolvedEvent::new(cell, resolution, at))
}

#[cfg(test)]
mod tests;
