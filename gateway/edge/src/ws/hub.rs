//! Delivers the feed's news to the sockets and streams of one IO thread.
//!
//! Followers receive every change of a market (the market channel). Watchers receive its price, at most once in
//! [`PRICE_EVERY`], encoded once for all of them. Without followers and watchers nothing runs here.

use super::batch::{Batch, Batches, Delivery};
use super::frame::Frame;
use super::market_follow::{Followed, Follower};
use super::news::{Interest, Item, Lost, Outlet};
use super::price_text::Price;
use super::session::{Socket, caught};
use super::shape::market::{MarketResolvedEvent, NewMarketEvent};
use crate::app::App;
use crate::http::server::write_batch::WriteBatch;
use ahash::{AHashMap, AHashSet};
use engine::id::MarketId;
use engine::market::catalog::MarketCell;
use engine::market::terms::{MarketState, Resolution};
use engine::time::Timestamp;
use std::cell::{Cell, OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

/// Minimum interval between two prices of a market.
pub const PRICE_EVERY: Duration = Duration::from_millis(250);
/// Cost of the frames that one turn delivers, in units of a shared frame: less than a millisecond. Other tasks of the
/// thread run between turns. The limit is small enough that one turn never fills a socket's queue.
const FRAMES_PER_TURN: usize = 4_096;
/// Sockets that are written, and bytes written, before other tasks run: about 200 µs.
const SOCKETS_FLUSHED_PER_TURN: usize = 64;
const BYTES_FLUSHED_PER_TURN: usize = 1 << 20;
const PRICES_PER_TURN: usize = 32;
/// Cost of a frame for one socket, in units of a shared frame.
const OWN_FRAME_COST: usize = 8;

/// A hub with waiting news that makes no turn within this does not deliver, and how often that is checked.
const TURN_WITHIN: Duration = Duration::from_secs(2);
const TURN_CHECK_EVERY: Duration = Duration::from_millis(20);

/// Pause before deliveries continue after a panic.
const PAUSE_AFTER_PANIC: Duration = Duration::from_secs(1);

/// The followers and watchers of one IO thread.
pub struct Hub {
    app: Arc<App>,
    outlet: OnceCell<Arc<Outlet>>,
    /// Turns of deliveries so far.
    turns: Cell<u64>,
    followed: RefCell<AHashMap<MarketId, Vec<Rc<Followed>>>>,
    watched: RefCell<AHashMap<MarketId, Watched>>,
    /// Sockets with frames that only the hub writes, in order of arrival. Frames that arrive before a socket's turn
    /// leave with the same write.
    to_flush: RefCell<VecDeque<Rc<Socket>>>,
    /// Responses of this thread that are not written yet.
    write_batch: Rc<WriteBatch>,
    /// Followers of new markets.
    listing_followers: RefCell<Vec<Rc<Follower>>>,
    /// Markets below this number are known to them.
    listed: Cell<u32>,
    /// Known markets that could not be traded when they were listed. Each is reported when it opens.
    upcoming: RefCell<AHashSet<MarketId>>,
    /// Markets whose price is due, earliest first: the one sent longest ago is due first.
    due: RefCell<BinaryHeap<Reverse<(Instant, MarketId)>>>,
    pacing: Cell<bool>,
    /// A market is due earlier than the one that pacing waits for.
    sooner: Notify,
    last_stream: Cell<u64>,
    /// Lets only one page of initial books be made at a time.
    dumps: Semaphore,
    ending: watch::Sender<bool>,
}

/// The watchers of a market's price.
#[derive(Default)]
struct Watched {
    watchers: Vec<(u64, Rc<dyn Watcher>)>,
    /// The next price is not sent before this time.
    held_until: Option<Instant>,
    /// Whether the market is in `due`.
    is_due: bool,
    /// Whether the price changed since it was last sent. If not, it is due only for watchers that got their previous
    /// price too recently.
    changed: bool,
}

/// Receives prices of markets. Called during deliveries: it must not subscribe or unsubscribe.
pub trait Watcher {
    /// A new price. If not `changed`, it is only for watchers that returned `false` the last time, because their
    /// previous price was too recent to send another.
    fn price(&self, cell: &MarketCell, price: &Rc<Price>, changed: bool) -> bool;
    /// The resolution of the market, with the final price. No prices follow.
    fn resolved(&self, cell: &MarketCell, resolution: Resolution, price: &Rc<Price>);
}

impl Hub {
    pub fn new(app: Arc<App>, write_batch: Rc<WriteBatch>) -> Hub {
        Hub {
            app,
            write_batch,
            to_flush: RefCell::default(),
            outlet: OnceCell::new(),
            turns: Cell::new(0),
            followed: RefCell::default(),
            watched: RefCell::default(),
            listing_followers: RefCell::default(),
            listed: Cell::new(0),
            upcoming: RefCell::default(),
            due: RefCell::default(),
            pacing: Cell::new(false),
            sooner: Notify::new(),
            last_stream: Cell::new(u64::MAX),
            dumps: Semaphore::new(1),
            ending: watch::Sender::new(false),
        }
    }

    /// A number for a watcher that is not a socket. Sockets count up from 1, these count down from the maximum.
    pub fn stream_id(&self) -> u64 {
        self.last_stream.set(self.last_stream.get() - 1);
        self.last_stream.get()
    }

    /// Makes one page of initial books in this socket's turn, then lets other tasks run before the next page of any
    /// socket. So hundreds of subscriptions do not delay an order.
    pub async fn one_page(&self, make: impl FnOnce()) {
        let turn = self.dumps.acquire().await;
        make();
        tokio::task::yield_now().await;
        drop(turn);
    }

    /// Ends the streams that have no close frame, because the server stops.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Becomes true when streams must end.
    pub fn ending(&self) -> watch::Receiver<bool> {
        self.ending.subscribe()
    }

    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// The outlet of this thread. The first call starts the deliveries.
    fn outlet(self: &Rc<Self>) -> &Arc<Outlet> {
        self.outlet.get_or_init(|| {
            let outlet = self.app.streams.news.claim();
            tokio::task::spawn_local(deliver_forever(Rc::clone(self), outlet.clone()));
            outlet
        })
    }

    /// Whether news are delivered: none waits, or some of it is delivered within two seconds.
    pub async fn is_delivering(&self) -> bool {
        let (begun, turns) = (Instant::now(), self.turns.get());
        while self.outlet.get().is_some_and(|outlet| !outlet.is_empty()) && self.turns.get() == turns {
            if begun.elapsed() >= TURN_WITHIN {
                return false;
            }
            tokio::time::sleep(TURN_CHECK_EVERY).await;
        }
        true
    }

    /// From now on `followed` receives every change of the market. Copy its books only after this call.
    pub fn follow(self: &Rc<Self>, followed: &Rc<Followed>) {
        self.outlet().add_interest(followed.market, Interest::Changes);
        self.followed.borrow_mut().entry(followed.market).or_default().push(Rc::clone(followed));
    }

    pub fn unfollow(self: &Rc<Self>, followed: &Rc<Followed>) {
        let mut markets = self.followed.borrow_mut();
        let Some(list) = markets.get_mut(&followed.market) else { return };
        list.retain(|other| !Rc::ptr_eq(other, followed));
        if list.is_empty() {
            markets.remove(&followed.market);
        }
        self.outlet().remove_interest(followed.market, Interest::Changes);
    }

    /// From now on `follower` receives new markets.
    pub fn follow_listings(self: &Rc<Self>, follower: &Rc<Follower>) {
        self.outlet().count_listings(true);
        if self.listing_followers.borrow().is_empty() {
            self.listed.set(self.listed.get().max(self.app.reads.catalog.len() as u32));
            let markets = (0..self.listed.get()).map(MarketId);
            let upcoming = |market: &MarketId| self.app.reads.catalog.market(*market).is_some_and(opens_later);
            *self.upcoming.borrow_mut() = markets.filter(upcoming).collect();
        }
        self.listing_followers.borrow_mut().push(Rc::clone(follower));
    }

    pub fn unfollow_listings(self: &Rc<Self>, follower: &Follower) {
        let mut listing_followers = self.listing_followers.borrow_mut();
        let before = listing_followers.len();
        listing_followers.retain(|other| !std::ptr::eq(&**other, follower));
        for _ in listing_followers.len()..before {
            self.outlet().count_listings(false);
        }
    }

    /// From now on `watcher` receives the market's price. `id` identifies it.
    pub fn watch(self: &Rc<Self>, market: MarketId, id: u64, watcher: Rc<dyn Watcher>) {
        self.outlet().add_interest(market, Interest::Touches);
        self.watched.borrow_mut().entry(market).or_default().watchers.push((id, watcher));
    }

    pub fn unwatch(self: &Rc<Self>, market: MarketId, id: u64) {
        let mut markets = self.watched.borrow_mut();
        let Some(watched) = markets.get_mut(&market) else { return };
        let before = watched.watchers.len();
        watched.watchers.retain(|(other, _)| *other != id);
        for _ in watched.watchers.len()..before {
            self.outlet().remove_interest(market, Interest::Touches);
        }
        if watched.watchers.is_empty() {
            markets.remove(&market);
        }
    }

    /// Queues a socket for a flush. Call it once for each flush that is due.
    pub fn flush_later(&self, socket: &Rc<Socket>) {
        self.to_flush.borrow_mut().push_back(Rc::clone(socket));
    }

    /// Writes to some of the queued sockets. Returns whether none is left.
    fn flush(&self) -> bool {
        // Responses first: there may be thousands of sockets.
        self.write_batch.flush();
        let mut bytes = 0;
        for _ in 0..SOCKETS_FLUSHED_PER_TURN {
            let Some(socket) = self.to_flush.borrow_mut().pop_front() else { return true };
            bytes += socket.flush();
            if bytes > BYTES_FLUSHED_PER_TURN {
                break;
            }
        }
        self.to_flush.borrow().is_empty()
    }

    /// Delivers changes. Returns the cost in shared frames.
    fn deliver_changes(self: &Rc<Self>, mut batch: Batch) -> usize {
        let market = batch.changes()[0].market;
        let mut cost = 0;
        let followed = self.followed.borrow();
        if let (Some(listeners), Some(cell)) = (followed.get(&market), self.app.reads.catalog.market(market)) {
            listeners.iter().for_each(|followed| followed.changes(&mut batch, cell));
            // The frames are made for the first of them.
            cost = OWN_FRAME_COST * batch.changes().len() + listeners.len();
        }
        cost + self.touch(market)
    }

    /// Delivers one piece of news. Returns the cost in shared frames.
    fn deliver(self: &Rc<Self>, item: &Item) -> usize {
        match item {
            Item::Change(change) => self.deliver_changes(Batch::new(vec![change.clone()])),
            Item::Touched(market) => self.touch(*market),
            Item::Listed(market, at) => self.list(*market, *at),
            Item::Opened(market, at) => self.open(*market, *at),
            Item::Resolved(market, resolution, at) => self.resolve(*market, *resolution, *at),
        }
    }

    /// Reports a new market. One that cannot be traded yet is reported when it opens.
    fn list(&self, market: MarketId, at: Timestamp) -> usize {
        let Some(cell) = self.app.reads.catalog.market(market).filter(|_| market.0 >= self.listed.get()) else {
            return 0;
        };
        self.listed.set(market.0 + 1);
        if opens_later(cell) {
            self.upcoming.borrow_mut().insert(market);
            return 0;
        }
        self.send_new_market(cell, at)
    }

    /// Reports a market that has opened, unless it was reported before.
    fn open(&self, market: MarketId, at: Timestamp) -> usize {
        let Some(cell) = self.app.reads.catalog.market(market).filter(|cell| !opens_later(cell)) else { return 0 };
        if self.upcoming.borrow_mut().remove(&market) { self.send_new_market(cell, at) } else { 0 }
    }

    /// Sends a new market to all followers of new markets.
    fn send_new_market(&self, cell: &MarketCell, at: Timestamp) -> usize {
        let frame = Frame::record(&NewMarketEvent::new(cell, at));
        let listing_followers = self.listing_followers.borrow();
        listing_followers.iter().for_each(|follower| follower.listed(cell.id, &frame));
        listing_followers.len()
    }

    fn resolve(&self, market: MarketId, resolution: Resolution, at: Timestamp) -> usize {
        let Some(cell) = self.app.reads.catalog.market(market) else { return 0 };
        let followed = self.followed.borrow();
        let followers = followed.get(&market).map_or(&[][..], Vec::as_slice);
        if !followers.is_empty() {
            let frame = Frame::record(&MarketResolvedEvent::new(cell, resolution, at));
            followers.iter().for_each(|followed| followed.resolved(&frame));
        }
        followers.len() + self.send_resolution(cell, resolution)
    }

    /// Sends the resolution of a market to all watchers of its price. Returns the cost in shared frames.
    fn send_resolution(&self, cell: &MarketCell, resolution: Resolution) -> usize {
        let watched = self.watched.borrow();
        let Some(watchers) = watched.get(&cell.id).map(|watched| &watched.watchers) else { return 0 };
        let price = Rc::new(Price::of(cell, &self.app.reads));
        watchers.iter().for_each(|(_, watcher)| watcher.resolved(cell, resolution, &price));
        FRAMES_PER_TURN / PRICES_PER_TURN + watchers.len() * OWN_FRAME_COST
    }

    /// Sends the price of a market that may have changed, now or after the minimum interval. Returns the cost in shared
    /// frames.
    fn touch(self: &Rc<Self>, market: MarketId) -> usize {
        let now = Instant::now();
        let mut markets = self.watched.borrow_mut();
        let Some(watched) = markets.get_mut(&market) else { return 0 };
        watched.changed = true;
        if watched.is_due {
            return 0;
        }
        match watched.held_until.filter(|until| *until > now) {
            None => self.send_price(watched, market, now),
            Some(until) => {
                watched.is_due = true;
                self.schedule(market, until);
                0
            }
        }
    }

    fn schedule(self: &Rc<Self>, market: MarketId, until: Instant) {
        let mut due = self.due.borrow_mut();
        if due.peek().is_some_and(|Reverse((first, _))| until < *first) {
            self.sooner.notify_one();
        }
        due.push(Reverse((until, market)));
        if !self.pacing.replace(true) {
            tokio::task::spawn_local(pace(Rc::clone(self)));
        }
    }

    /// Sends the price to all watchers. A resolved market has no further prices. Returns the cost in shared frames.
    fn send_price(self: &Rc<Self>, watched: &mut Watched, market: MarketId, now: Instant) -> usize {
        let until = now + PRICE_EVERY;
        (watched.is_due, watched.held_until) = (false, Some(until));
        let changed = std::mem::take(&mut watched.changed);
        let Some(cell) = self.app.reads.catalog.market(market).filter(|cell| cell.resolution().is_none()) else {
            return 0;
        };
        let price = Rc::new(Price::of(cell, &self.app.reads));
        let sent = |(_, watcher): &(u64, Rc<dyn Watcher>)| watcher.price(cell, &price, changed);
        // Calls all watchers, even after one returned false.
        if watched.watchers.iter().filter(|watcher| !sent(watcher)).count() > 0 {
            watched.is_due = true;
            self.schedule(market, until);
        }
        FRAMES_PER_TURN / PRICES_PER_TURN + watched.watchers.len() * OWN_FRAME_COST
    }

    /// Sends full books and prices to all followers and watchers, because updates were lost.
    async fn refresh(self: &Rc<Self>) {
        tracing::warn!(
            "updates were lost because they arrived faster than they were delivered; sending full books to all sockets"
        );
        // This takes long with many markets.
        while !self.flush() {
            tokio::task::yield_now().await;
        }
        let all: Vec<Rc<Followed>> = self.followed.borrow().values().flatten().cloned().collect();
        // No socket receives a change before its new copy of the book.
        all.iter().for_each(|followed| followed.set_lagging());
        if self.listing_followers.borrow().is_empty() {
            self.listed.set(self.app.reads.catalog.len() as u32);
        }
        for market in self.listed.get()..self.app.reads.catalog.len() as u32 {
            if market.is_multiple_of(PRICES_PER_TURN as u32) {
                tokio::task::yield_now().await;
            }
            let market = MarketId(market);
            let at = self.app.reads.catalog.market(market).map_or(Timestamp(0), |cell| cell.listed_at);
            self.list(market, at);
        }
        let upcoming: Vec<MarketId> = self.upcoming.borrow().iter().copied().collect();
        for some in upcoming.chunks(PRICES_PER_TURN) {
            some.iter()
                .for_each(|market| _ = self.open(*market, self.app.reads.books.venue_now(self.app.reads.clock.now())));
            tokio::task::yield_now().await;
        }
        for some in all.chunks(PRICES_PER_TURN) {
            some.iter().for_each(|followed| followed.catch_up());
            tokio::task::yield_now().await;
        }
        let watched: Vec<MarketId> = self.watched.borrow().keys().copied().collect();
        for some in watched.chunks(PRICES_PER_TURN) {
            for market in some {
                self.touch(*market);
                let resolved = self.app.reads.catalog.market(*market).and_then(|cell| Some((cell, cell.resolution()?)));
                if let Some((cell, resolution)) = resolved {
                    self.send_resolution(cell, resolution);
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Whether the market is listed and cannot be traded yet.
fn opens_later(cell: &MarketCell) -> bool {
    cell.state() == MarketState::Upcoming
}

/// Delivers as long as the thread lives. After a panic, everything is sent again and deliveries continue: one panic
/// must not silence every stream of the thread.
async fn deliver_forever(hub: Rc<Hub>, outlet: Arc<Outlet>) {
    while caught(deliver_news(Rc::clone(&hub), outlet.clone())).await.is_err() {
        tokio::time::sleep(PAUSE_AFTER_PANIC).await;
        outlet.lose();
    }
}

/// Delivers the news of the feed. Never returns.
async fn deliver_news(hub: Rc<Hub>, outlet: Arc<Outlet>) {
    let mut batches = Batches::of(&outlet);
    let mut all_flushed = true;
    loop {
        hub.turns.set(hub.turns.get() + 1);
        outlet.note_lag(|| hub.app.reads.clock.now());
        let (mut cost, mut is_all) = (0, false);
        // News wait until all sockets have what was delivered, so that a peer that reads does not lag because
        // other sockets are written first.
        while all_flushed && !is_all && cost < FRAMES_PER_TURN {
            match batches.take_next() {
                Ok(Some(Delivery::Changes(batch))) => cost += hub.deliver_changes(batch).max(1),
                Ok(Some(Delivery::Other(item))) => cost += hub.deliver(&item).max(1),
                Ok(None) => is_all = true,
                Err(Lost) => hub.refresh().await,
            }
        }
        all_flushed = hub.flush();
        if is_all && all_flushed {
            outlet.wait().await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

/// Sends prices whose interval has passed, until none is due.
async fn pace(hub: Rc<Hub>) {
    let _pacing = Pacing(Rc::clone(&hub));
    loop {
        let next = hub.due.borrow().peek().map(|Reverse((until, _))| *until);
        let Some(until) = next else { break };
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(until) => {}
            () = hub.sooner.notified() => continue,
        }
        let now = Instant::now();
        let mut cost = 0;
        while cost < FRAMES_PER_TURN {
            let mut due = hub.due.borrow_mut();
            let Some(first) = due.peek_mut().filter(|first| first.0.0 <= now) else { break };
            let Reverse((until, market)) = PeekMut::pop(first);
            drop(due);
            let mut markets = hub.watched.borrow_mut();
            // The watchers of that time may have left. New ones received the price when they subscribed.
            let is_unchanged = |watched: &&mut Watched| watched.is_due && watched.held_until == Some(until);
            if let Some(watched) = markets.get_mut(&market).filter(is_unchanged) {
                cost += hub.send_price(watched, market, now);
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Records that pacing ended, even by a panic.
struct Pacing(Rc<Hub>);

impl Drop for Pacing {
    fn drop(&mut self) {
        self.0.pacing.set(false);
    }
}
