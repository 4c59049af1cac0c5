//! Who listens to which market on this IO thread, and the handing out of the feed's news.
//!
//! Followers hear every change of a market (the market channel); watchers hear its price, at most once in
//! [`PRICE_EVERY`], made once for all of them. Nothing runs here while nobody listens.

use super::batch::{Batch, Batches, Delivery};
use super::frame::Frame;
use super::market_follow::{Followed, Follower};
use super::market_text;
use super::news::{Interest, Item, Lost, Outlet};
use super::price_text::Price;
use super::session::{Socket, caught};
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

/// A market's price is told at most this often.
pub const PRICE_EVERY: Duration = Duration::from_millis(250);
/// Frames that are handed out, or prices that are made, before others get their turn on the thread: less than a
/// millisecond of them.
/// No socket is handed so many of them in a turn that they fill its queue.
const HANDED_PER_TURN: usize = 4_096;
/// Sockets that are written to before that, and bytes of them: some 200 µs.
const FLUSHED_PER_TURN: usize = 64;
const BYTES_FLUSHED_PER_TURN: usize = 1 << 20;
const PRICES_PER_TURN: usize = 32;
/// What a frame of one's own costs beside one that is shared.
const OWN_FRAME: usize = 8;

/// Before handing out goes on behind a panic.
const REST_AFTER_PANIC: Duration = Duration::from_secs(1);

/// The listeners of one IO thread.
pub struct Hub {
    app: Arc<App>,
    outlet: OnceCell<Arc<Outlet>>,
    followed: RefCell<AHashMap<MarketId, Vec<Rc<Followed>>>>,
    watched: RefCell<AHashMap<MarketId, Watched>>,
    /// Those whose queues hold something that nobody writes but the hub, first come, first served: what comes for one
    /// before his turn leaves with the same write.
    to_flush: RefCell<VecDeque<Rc<Socket>>>,
    /// Answers of the thread that are about to leave.
    write_batch: Rc<WriteBatch>,
    /// Those who hear of new markets.
    curious: RefCell<Vec<Rc<Follower>>>,
    /// Markets below this are no news to them.
    listed: Cell<u32>,
    /// But for these, which could not be traded yet: each is news once it opens.
    upcoming: RefCell<AHashSet<MarketId>>,
    /// Markets whose price is due, soonest first: one that was shown long ago is due before one shown lately, whenever
    /// they were touched.
    due: RefCell<BinaryHeap<Reverse<(Instant, MarketId)>>>,
    pacing: Cell<bool>,
    /// A market is due before the one that pacing waits for.
    sooner: Notify,
    last_stream: Cell<u64>,
    /// Pages of first books are made one at a time, whoever asked.
    dumps: Semaphore,
    ending: watch::Sender<bool>,
}

/// Who watches a price.
#[derive(Default)]
struct Watched {
    watchers: Vec<(u64, Rc<dyn Watcher>)>,
    /// The next price is not told before.
    rests_until: Option<Instant>,
    /// It is among those due.
    is_due: bool,
    /// It changed since it was last shown; else it is due for those alone who were shown it too lately then.
    changed: bool,
}

/// Somebody who watches prices. Called while the hub hands out: it must not subscribe or unsubscribe then.
pub trait Watcher {
    /// Without `changed` it is for those alone who answered `false` the last time: they were shown the price too lately
    /// to be shown another.
    fn price(&self, cell: &MarketCell, price: &Rc<Price>, changed: bool) -> bool;
    /// How the market ended, and the price that shows it; no more prices come behind it.
    fn resolved(&self, cell: &MarketCell, resolution: Resolution, price: &Rc<Price>);
}

impl Hub {
    pub fn new(app: Arc<App>, write_batch: Rc<WriteBatch>) -> Hub {
        Hub {
            app,
            write_batch,
            to_flush: RefCell::default(),
            outlet: OnceCell::new(),
            followed: RefCell::default(),
            watched: RefCell::default(),
            curious: RefCell::default(),
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

    /// A number for a watcher that is no socket; sockets count from below.
    pub fn stream_id(&self) -> u64 {
        self.last_stream.set(self.last_stream.get() - 1);
        self.last_stream.get()
    }

    /// Makes one page of first books when it is this socket's turn, and gives everybody else on the thread theirs before
    /// the next page, of whichever socket: hundreds that subscribe at once must not hold up an order.
    pub async fn one_page(&self, make: impl FnOnce()) {
        let turn = self.dumps.acquire().await;
        make();
        tokio::task::yield_now().await;
        drop(turn);
    }

    /// Streams that know no close frame end now: the server goes down.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Turns true when streams must end.
    pub fn ending(&self) -> watch::Receiver<bool> {
        self.ending.subscribe()
    }

    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// The way of the news to this thread; handing out begins with the first who asks.
    fn outlet(self: &Rc<Self>) -> &Arc<Outlet> {
        self.outlet.get_or_init(|| {
            let outlet = self.app.streams.news.claim();
            tokio::task::spawn_local(always_hand_out(Rc::clone(self), outlet.clone()));
            outlet
        })
    }

    /// From now on every change of the market comes to `followed`. Its books are to be copied after this.
    pub fn follow(self: &Rc<Self>, followed: &Rc<Followed>) {
        self.outlet().count(followed.market, Interest::Changes);
        self.followed.borrow_mut().entry(followed.market).or_default().push(Rc::clone(followed));
    }

    pub fn unfollow(self: &Rc<Self>, followed: &Rc<Followed>) {
        let mut markets = self.followed.borrow_mut();
        let Some(list) = markets.get_mut(&followed.market) else { return };
        list.retain(|other| !Rc::ptr_eq(other, followed));
        if list.is_empty() {
            markets.remove(&followed.market);
        }
        self.outlet().uncount(followed.market, Interest::Changes);
    }

    /// From now on `follower` hears of new markets.
    pub fn be_curious(self: &Rc<Self>, follower: &Rc<Follower>) {
        self.outlet().count_curious(true);
        if self.curious.borrow().is_empty() {
            self.listed.set(self.listed.get().max(self.app.reads.catalog.len() as u32));
            let markets = (0..self.listed.get()).map(MarketId);
            let upcoming = |market: &MarketId| self.app.reads.catalog.market(*market).is_some_and(opens_later);
            *self.upcoming.borrow_mut() = markets.filter(upcoming).collect();
        }
        self.curious.borrow_mut().push(Rc::clone(follower));
    }

    pub fn cease_to_be_curious(self: &Rc<Self>, follower: &Follower) {
        let mut curious = self.curious.borrow_mut();
        let before = curious.len();
        curious.retain(|other| !std::ptr::eq(&**other, follower));
        for _ in curious.len()..before {
            self.outlet().count_curious(false);
        }
    }

    /// From now on the market's price comes to `watcher`, which names itself by `id`.
    pub fn watch(self: &Rc<Self>, market: MarketId, id: u64, watcher: Rc<dyn Watcher>) {
        self.outlet().count(market, Interest::Touches);
        self.watched.borrow_mut().entry(market).or_default().watchers.push((id, watcher));
    }

    pub fn unwatch(self: &Rc<Self>, market: MarketId, id: u64) {
        let mut markets = self.watched.borrow_mut();
        let Some(watched) = markets.get_mut(&market) else { return };
        let before = watched.watchers.len();
        watched.watchers.retain(|(other, _)| *other != id);
        for _ in watched.watchers.len()..before {
            self.outlet().uncount(market, Interest::Touches);
        }
        if watched.watchers.is_empty() {
            markets.remove(&market);
        }
    }

    /// A socket's queue has to be flushed, once.
    pub fn flush_later(&self, socket: &Rc<Socket>) {
        self.to_flush.borrow_mut().push_back(Rc::clone(socket));
    }

    /// Writes to some of those who wait for it; true when nobody does any more.
    fn flush(&self) -> bool {
        // Answers go first: of listeners there may be thousands.
        self.write_batch.flush();
        let mut bytes = 0;
        for _ in 0..FLUSHED_PER_TURN {
            let Some(socket) = self.to_flush.borrow_mut().pop_front() else { return true };
            bytes += socket.flush();
            if bytes > BYTES_FLUSHED_PER_TURN {
                break;
            }
        }
        self.to_flush.borrow().is_empty()
    }

    /// Hands changes out; answers what that cost, in shared frames.
    fn take_changes(self: &Rc<Self>, mut batch: Batch) -> usize {
        let market = batch.changes()[0].market;
        let mut handed = 0;
        let followed = self.followed.borrow();
        if let (Some(listeners), Some(cell)) = (followed.get(&market), self.app.reads.catalog.market(market)) {
            listeners.iter().for_each(|followed| followed.changes(&mut batch, cell));
            // Their frames are made for the first of them.
            handed = OWN_FRAME * batch.changes().len() + listeners.len();
        }
        handed + self.touch(market)
    }

    /// Hands one piece of news out; answers to how many.
    fn take(self: &Rc<Self>, item: &Item) -> usize {
        match item {
            Item::Change(change) => self.take_changes(Batch::new(vec![change.clone()])),
            Item::Touched(market) => self.touch(*market),
            Item::Listed(market, at) => self.list(*market, *at),
            Item::Opened(market, at) => self.open(*market, *at),
            Item::Resolved(market, resolution, at) => self.resolve(*market, *resolution, *at),
        }
    }

    /// A market came; one that cannot be traded yet is new when it opens.
    fn list(&self, market: MarketId, at: Timestamp) -> usize {
        let Some(cell) = self.app.reads.catalog.market(market).filter(|_| market.0 >= self.listed.get()) else {
            return 0;
        };
        self.listed.set(market.0 + 1);
        if opens_later(cell) {
            self.upcoming.borrow_mut().insert(market);
            return 0;
        }
        self.show_new(cell, at)
    }

    /// A market may have opened.
    fn open(&self, market: MarketId, at: Timestamp) -> usize {
        let Some(cell) = self.app.reads.catalog.market(market).filter(|cell| !opens_later(cell)) else { return 0 };
        if self.upcoming.borrow_mut().remove(&market) { self.show_new(cell, at) } else { 0 }
    }

    /// Tells of a new market to all who want to hear of them.
    fn show_new(&self, cell: &MarketCell, at: Timestamp) -> usize {
        let frame = Frame::json(|out| market_text::new_market(out, cell, at));
        let curious = self.curious.borrow();
        curious.iter().for_each(|follower| follower.listed(cell.id, &frame));
        curious.len()
    }

    fn resolve(&self, market: MarketId, resolution: Resolution, at: Timestamp) -> usize {
        let Some(cell) = self.app.reads.catalog.market(market) else { return 0 };
        let followed = self.followed.borrow();
        let followers = followed.get(&market).map_or(&[][..], Vec::as_slice);
        if !followers.is_empty() {
            let frame = Frame::json(|out| market_text::market_resolved(out, cell, resolution, at));
            followers.iter().for_each(|followed| followed.resolved(&frame));
        }
        followers.len() + self.show_end(cell, resolution)
    }

    /// Tells how a market ended to all who watch its price; answers what that cost, in shared frames.
    fn show_end(&self, cell: &MarketCell, resolution: Resolution) -> usize {
        let watched = self.watched.borrow();
        let Some(watchers) = watched.get(&cell.id).map(|watched| &watched.watchers) else { return 0 };
        let price = Rc::new(Price::of(cell, &self.app.reads));
        watchers.iter().for_each(|(_, watcher)| watcher.resolved(cell, resolution, &price));
        HANDED_PER_TURN / PRICES_PER_TURN + watchers.len() * OWN_FRAME
    }

    /// A market's price may have changed: it is told now, or when it has rested. Answers what that cost, in frames.
    fn touch(self: &Rc<Self>, market: MarketId) -> usize {
        let now = Instant::now();
        let mut markets = self.watched.borrow_mut();
        let Some(watched) = markets.get_mut(&market) else { return 0 };
        watched.changed = true;
        if watched.is_due {
            return 0;
        }
        match watched.rests_until.filter(|until| *until > now) {
            None => self.show(watched, market, now),
            Some(until) => {
                watched.is_due = true;
                self.show_later(market, until);
                0
            }
        }
    }

    fn show_later(self: &Rc<Self>, market: MarketId, until: Instant) {
        let mut due = self.due.borrow_mut();
        if due.peek().is_some_and(|Reverse((first, _))| until < *first) {
            self.sooner.notify_one();
        }
        due.push(Reverse((until, market)));
        if !self.pacing.replace(true) {
            tokio::task::spawn_local(pace(Rc::clone(self)));
        }
    }

    /// Tells the price to all who watch it, and answers what that cost, in shared frames. A resolved market has none any
    /// more.
    fn show(self: &Rc<Self>, watched: &mut Watched, market: MarketId, now: Instant) -> usize {
        let until = now + PRICE_EVERY;
        (watched.is_due, watched.rests_until) = (false, Some(until));
        let changed = std::mem::take(&mut watched.changed);
        let Some(cell) = self.app.reads.catalog.market(market).filter(|cell| cell.resolution().is_none()) else {
            return 0;
        };
        let price = Rc::new(Price::of(cell, &self.app.reads));
        let told = |(_, watcher): &(u64, Rc<dyn Watcher>)| watcher.price(cell, &price, changed);
        // Everybody is told, whoever is not.
        if watched.watchers.iter().filter(|watcher| !told(watcher)).count() > 0 {
            watched.is_due = true;
            self.show_later(market, until);
        }
        HANDED_PER_TURN / PRICES_PER_TURN + watched.watchers.len() * OWN_FRAME
    }

    /// Shows everybody everything afresh, since some news are lost.
    async fn refresh(self: &Rc<Self>) {
        tracing::warn!("news came faster than they were handed out: every listener is shown his books afresh");
        // It takes long where there are many markets.
        while !self.flush() {
            tokio::task::yield_now().await;
        }
        let all: Vec<Rc<Followed>> = self.followed.borrow().values().flatten().cloned().collect();
        // None of them hears a change before his own copy is made.
        all.iter().for_each(|followed| followed.fall_behind());
        if self.curious.borrow().is_empty() {
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
                    self.show_end(cell, resolution);
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

/// It is listed and cannot be traded yet.
fn opens_later(cell: &MarketCell) -> bool {
    cell.state() == MarketState::Upcoming
}

/// Hands out for as long as the thread lives. What panics there must not silence every stream of the thread: the listeners
/// are shown everything afresh, and it goes on.
async fn always_hand_out(hub: Rc<Hub>, outlet: Arc<Outlet>) {
    while caught(hand_out(Rc::clone(&hub), outlet.clone())).await.is_err() {
        tokio::time::sleep(REST_AFTER_PANIC).await;
        outlet.lose();
    }
}

/// Hands out what the feed tells, for ever.
async fn hand_out(hub: Rc<Hub>, outlet: Arc<Outlet>) {
    let mut batches = Batches::of(&outlet);
    let mut all_flushed = true;
    loop {
        outlet.note_lag(|| hub.app.reads.clock.now());
        let (mut handed, mut is_all) = (0, false);
        // Who reads is not to fall behind because others are written to first: news wait until all have what was handed out.
        while all_flushed && !is_all && handed < HANDED_PER_TURN {
            match batches.take_next() {
                Ok(Some(Delivery::Changes(batch))) => handed += hub.take_changes(batch).max(1),
                Ok(Some(Delivery::Other(item))) => handed += hub.take(&item).max(1),
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

/// Tells prices when they have rested, until none is due.
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
        let mut handed = 0;
        while handed < HANDED_PER_TURN {
            let mut due = hub.due.borrow_mut();
            let Some(first) = due.peek_mut().filter(|first| first.0.0 <= now) else { break };
            let Reverse((until, market)) = PeekMut::pop(first);
            drop(due);
            let mut markets = hub.watched.borrow_mut();
            // Those who watched it may have left and others come, who were shown it then.
            let as_it_was = |watched: &&mut Watched| watched.is_due && watched.rests_until == Some(until);
            if let Some(watched) = markets.get_mut(&market).filter(as_it_was) {
                handed += hub.show(watched, market, now);
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Says that nobody paces any more, however it ended.
struct Pacing(Rc<Hub>);

impl Drop for Pacing {
    fn drop(&mut self) {
        self.0.pacing.set(false);
    }
}
