//! News of the feed for the streams, and the interests of the streams in them.
//!
//! ```text
//!   feed: ladders written ─► fence ─► any interest? ─► News::change ─► outlet of each interested IO thread
//!   hub:  interest added  ─► fence ─► book copied ─► changes that the copy does not contain
//! ```
//!
//! Either the feed sees the interest, or the copy contains the change, so nothing is lost in between. Without
//! interests, news cost the feed one load. The feed never waits: a full outlet is marked as having lost news, and its
//! thread then sends full books to all sockets.

use super::change::Change;
use crossbeam::queue::ArrayQueue;
use engine::id::{InstrumentId, MarketId};
use engine::index::Table;
use engine::market::terms::Resolution;
use engine::rules::FeeTable;
use engine::time::Timestamp;
use host::histogram::Micros;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed, fence};
use tokio::sync::Notify;

/// Most news in the outlet of one IO thread.
const OUTLET_SLOTS: usize = 8_192;

/// A piece of news.
#[derive(Clone, Debug)]
pub enum Item {
    /// The books of a market changed, or its tick did, or it traded.
    Change(Arc<Change>),
    /// A figure in a market's price changed.
    Touched(MarketId),
    /// A market was listed.
    Listed(MarketId, Timestamp),
    /// A market that was listed before it could be traded is open now.
    Opened(MarketId, Timestamp),
    Resolved(MarketId, Resolution, Timestamp),
}

/// The kind of news that a socket wants of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Every change.
    Changes,
    /// That there was a change.
    Touches,
}

/// The news of the process.
pub struct News {
    outlets: Box<[Arc<Outlet>]>,
    claimed: AtomicUsize,
    /// Interests of all outlets, including those in new markets.
    interests: Arc<AtomicU32>,
    /// Number of published changes.
    number: AtomicU64,
    /// By market: the latest timestamp in frames about each of its tokens, in µs.
    times: Table<[AtomicU64; 2]>,
    meters: Arc<FanOut>,
    pub fees: FeeTable,
}

/// The news for one IO thread, which is the only consumer.
pub struct Outlet {
    queue: ArrayQueue<Item>,
    lost: AtomicBool,
    wakeup: Notify,
    /// Whether the consumer must be woken by [`News::ring`].
    wakes_later: AtomicBool,
    demand: Table<Demand>,
    /// Number of followers of new markets.
    listing_followers: AtomicU32,
    interests: Arc<AtomicU32>,
    /// When the feed took the frame of the oldest news in the queue, in µs; 0 if the queue is empty or nothing is
    /// measured.
    since: AtomicU64,
    meters: Arc<FanOut>,
}

/// Figures about the delivery of news.
#[derive(Debug, Default)]
struct FanOut {
    is_timed: AtomicBool,
    /// When the feed took the frame that it is publishing, in µs; 0 if there is none or nothing is measured.
    frame_at: AtomicU64,
    /// Whether wake-ups wait for [`News::ring`].
    gathers: AtomicBool,
    lag: Micros,
    lost: AtomicU64,
}

/// Interests of one thread in one market.
#[derive(Default)]
struct Demand {
    changes: AtomicU32,
    touches: AtomicU32,
}

impl News {
    /// News for this many IO threads.
    pub fn new(threads_count: usize, fees: FeeTable) -> News {
        News::with_slots(threads_count, fees, OUTLET_SLOTS)
    }

    fn with_slots(threads_count: usize, fees: FeeTable, slots: usize) -> News {
        let interests = Arc::new(AtomicU32::new(0));
        let meters: Arc<FanOut> = Arc::default();
        let outlet = |_| {
            Arc::new(Outlet {
                queue: ArrayQueue::new(slots),
                lost: AtomicBool::new(false),
                wakeup: Notify::new(),
                wakes_later: AtomicBool::new(false),
                demand: Table::new(),
                listing_followers: AtomicU32::new(0),
                interests: interests.clone(),
                since: AtomicU64::new(0),
                meters: meters.clone(),
            })
        };
        let outlets = (0..threads_count).map(outlet).collect();
        News {
            outlets,
            claimed: AtomicUsize::new(0),
            interests,
            number: AtomicU64::new(0),
            times: Table::new(),
            meters,
            fees,
        }
    }

    /// Starts to measure the delay of deliveries.
    pub fn time_fan_out(&self) {
        self.meters.is_timed.store(true, Relaxed);
    }

    /// The delay of deliveries, if it is measured.
    pub fn lag(&self) -> Option<&Micros> {
        self.meters.is_timed.load(Relaxed).then_some(&self.meters.lag)
    }

    /// News that did not fit into an outlet, for all threads.
    pub fn lost(&self) -> u64 {
        self.meters.lost.load(Relaxed)
    }

    /// News in all outlets.
    pub fn waiting(&self) -> usize {
        self.outlets.iter().map(|outlet| outlet.queue.len()).sum()
    }

    /// The outlet of the calling IO thread; each is returned once.
    ///
    /// # Panics
    /// If there are more calls than threads.
    pub fn claim(&self) -> Arc<Outlet> {
        self.outlets[self.claimed.fetch_add(1, Relaxed)].clone()
    }

    /// Number of published changes. What is read after a call, once the interest is added, contains all of them.
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// The latest timestamp in frames about a token.
    pub fn last_time(&self, instrument: InstrumentId) -> Timestamp {
        let times = self.times.get(instrument.market().0 as usize);
        Timestamp(times.map_or(0, |times| times[instrument.outcome() as usize].load(Relaxed)))
    }

    /// Returns the timestamp for a frame about the token: `at`, or the latest one if that is later.
    pub fn advance_time(&self, instrument: InstrumentId, at: Timestamp) -> Timestamp {
        let times = self.times.get_or_set(instrument.market().0 as usize, Default::default);
        let latest = &times[instrument.outcome() as usize];
        Timestamp(latest.fetch_max(at.0, Relaxed).max(at.0))
    }
}

/// Methods of the feed's thread.
impl News {
    /// Whether there is any interest. The feed checks after every write of a ladder.
    pub fn has_interest(&self) -> bool {
        // Pairs with the fence in `Outlet::add_interest`.
        fence(Ordering::SeqCst);
        self.interests.load(Relaxed) != 0
    }

    /// News until [`News::end_frame`] belong to a frame that the feed took at `at`.
    pub fn begin_frame(&self, at: Timestamp) {
        if self.meters.is_timed.load(Relaxed) {
            self.meters.frame_at.store(at.0, Relaxed);
        }
    }

    pub fn end_frame(&self) {
        self.meters.frame_at.store(0, Relaxed);
    }

    /// From now on consumers are not woken before [`News::ring`], so that changes that arrive together are delivered
    /// together. An IO thread that is woken by the first of eight changes would write to all its sockets twice.
    pub fn gather(&self) {
        self.meters.gathers.store(true, Relaxed);
    }

    /// Wakes the consumers with new news. If `gathers`, wake-ups wait for the next call, else each piece of news causes
    /// one.
    pub fn ring(&self, gathers: bool) {
        self.meters.gathers.store(gathers, Relaxed);
        for outlet in self.outlets.iter().filter(|outlet| outlet.wakes_later.load(Relaxed)) {
            outlet.wakes_later.store(false, Relaxed);
            outlet.wakeup.notify_one();
        }
    }

    /// Whether there is any interest in this market.
    pub fn has_interest_in(&self, market: MarketId) -> bool {
        self.outlets
            .iter()
            .any(|outlet| outlet.wants(market, Interest::Changes) || outlet.wants(market, Interest::Touches))
    }

    /// Whether there is an interest in every change of this market.
    pub fn followed(&self, market: MarketId) -> bool {
        self.outlets.iter().any(|outlet| outlet.wants(market, Interest::Changes))
    }

    /// The number of the next change.
    pub fn next_number(&self) -> u64 {
        self.number.load(Relaxed) + 1
    }

    /// Publishes a change to all interested threads.
    pub fn change(&self, change: Change) {
        let (market, change) = (change.market, Arc::new(change));
        // Pairs with `News::number`.
        self.number.store(change.number, Ordering::Release);
        for outlet in &self.outlets {
            if outlet.wants(market, Interest::Changes) {
                outlet.push(Item::Change(change.clone()));
            } else if outlet.wants(market, Interest::Touches) {
                outlet.push(Item::Touched(market));
            }
        }
    }

    /// Publishes that a figure in this market's price changed.
    pub fn touched(&self, market: MarketId) {
        for outlet in self.outlets.iter().filter(|outlet| outlet.wants(market, Interest::Touches)) {
            outlet.push(Item::Touched(market));
        }
    }

    pub fn listed(&self, market: MarketId, at: Timestamp) {
        self.listing_followers().for_each(|outlet| outlet.push(Item::Listed(market, at)));
    }

    pub fn opened(&self, market: MarketId, at: Timestamp) {
        self.listing_followers().for_each(|outlet| outlet.push(Item::Opened(market, at)));
    }

    /// Outlets with followers of new markets.
    fn listing_followers(&self) -> impl Iterator<Item = &Arc<Outlet>> {
        self.outlets.iter().filter(|outlet| outlet.listing_followers.load(Relaxed) != 0)
    }

    pub fn resolved(&self, market: MarketId, resolution: Resolution, at: Timestamp) {
        let wants =
            |outlet: &&Arc<Outlet>| outlet.wants(market, Interest::Changes) || outlet.wants(market, Interest::Touches);
        self.outlets.iter().filter(wants).for_each(|outlet| outlet.push(Item::Resolved(market, resolution, at)));
    }
}

impl Outlet {
    fn wants(&self, market: MarketId, what: Interest) -> bool {
        self.demand.get(market.0 as usize).is_some_and(|demand| demand.of(what).load(Relaxed) != 0)
    }

    fn push(&self, item: Item) {
        let frame_at = self.meters.frame_at.load(Relaxed);
        // Set before the push: a consumer that takes the item first would otherwise leave a time for an empty queue.
        if frame_at != 0 && self.since.load(Relaxed) == 0 {
            self.since.store(frame_at, Relaxed);
        }
        if self.queue.push(item).is_err() {
            self.meters.lost.fetch_add(1, Relaxed);
            // Pairs with the swap in `Outlet::take`.
            self.lost.store(true, Ordering::Release);
        }
        if self.meters.gathers.load(Relaxed) {
            self.wakes_later.store(true, Relaxed);
        } else {
            self.wakeup.notify_one();
        }
    }

    /// Adds an interest in this market. What is read after the call and what is published after it leave no gap.
    pub fn add_interest(&self, market: MarketId, what: Interest) {
        self.demand.get_or_set(market.0 as usize, Demand::default).of(what).fetch_add(1, Relaxed);
        self.interests.fetch_add(1, Relaxed);
        // Pairs with the fence in `News::has_interest`.
        fence(Ordering::SeqCst);
    }

    /// Removes an interest.
    pub fn remove_interest(&self, market: MarketId, what: Interest) {
        self.demand.get_or_set(market.0 as usize, Demand::default).of(what).fetch_sub(1, Relaxed);
        self.interests.fetch_sub(1, Relaxed);
    }

    /// Adds or removes a follower of new markets.
    pub fn count_listings(&self, more: bool) {
        for counter in [&self.listing_followers, &*self.interests] {
            if more {
                counter.fetch_add(1, Relaxed)
            } else {
                counter.fetch_sub(1, Relaxed)
            };
        }
        fence(Ordering::SeqCst);
    }

    /// The next piece of news. `Err`: some were lost, and the others are removed from the queue. What is read after
    /// that is newer than all of them.
    pub fn take(&self) -> Result<Option<Item>, Lost> {
        if self.lost.load(Relaxed) {
            while self.queue.pop().is_some() {}
            // Pairs with the store in `Outlet::push`: what the feed wrote before it is visible from here on.
            self.lost.swap(false, Ordering::AcqRel);
            return Err(Lost);
        }
        Ok(self.queue.pop())
    }

    /// Whether no news waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Records how long the oldest news waited, if that is measured. Called when they are delivered.
    pub fn note_lag(&self, now: impl FnOnce() -> Timestamp) {
        if self.since.load(Relaxed) != 0 {
            let since = self.since.swap(0, Relaxed);
            self.meters.lag.note_us(now().since(Timestamp(since)));
        }
    }

    /// Marks news as lost, which the next [`Outlet::take`] reports.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.wakeup.notify_one();
    }

    /// Waits until there may be news.
    pub async fn wait(&self) {
        self.wakeup.notified().await;
    }
}

/// Some news did not fit into the outlet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl Demand {
    fn of(&self, what: Interest) -> &AtomicU32 {
        match what {
            Interest::Changes => &self.changes,
            Interest::Touches => &self.touches,
        }
    }
}

impl std::fmt::Debug for News {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("News").field("number", &self.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
