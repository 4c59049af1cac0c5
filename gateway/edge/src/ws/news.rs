//! What the feed tells the streams, and who wants to hear it.
//!
//! ```text
//!   feed: ladders written ─► fence ─► is anybody interested? ─► News::change ─► outlet of each IO thread that is
//!   hub:  interest counted ─► fence ─► book copied ─► changes that the copy does not hold already
//! ```
//!
//! Either the feed sees the interest, or the copy holds the change: nothing is lost between. While nobody listens, news
//! cost the feed one load. It never waits: an outlet that is full is marked as having lost something, and its thread
//! then shows every listener everything afresh.

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

/// News that wait for one IO thread at most.
const OUTLET_SLOTS: usize = 8_192;

/// One piece of news.
#[derive(Clone, Debug)]
pub enum Item {
    /// The books of a market changed, or it was traded, or its tick changed.
    Change(Arc<Change>),
    /// Something that a price shows has changed.
    Touched(MarketId),
    /// A market is listed.
    Listed(MarketId, Timestamp),
    /// It was listed before it could be traded; now it can.
    Opened(MarketId, Timestamp),
    Resolved(MarketId, Resolution, Timestamp),
}

/// What a listener wants to hear of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Every change.
    Changes,
    /// That there was one.
    Touches,
}

/// The news of one process.
pub struct News {
    outlets: Box<[Arc<Outlet>]>,
    claimed: AtomicUsize,
    /// Interests of all outlets, those in new markets too.
    interests: Arc<AtomicU32>,
    /// Changes told so far.
    number: AtomicU64,
    /// By market: the latest time that frames about each of its tokens carried, µs.
    times: Table<[AtomicU64; 2]>,
    meters: Arc<FanOut>,
    pub fees: FeeTable,
}

/// The news for one IO thread, which alone takes from it.
pub struct Outlet {
    queue: ArrayQueue<Item>,
    lost: AtomicBool,
    bell: Notify,
    /// The bell is to ring once what comes together was told.
    rings_later: AtomicBool,
    wanted: Table<Demand>,
    /// Listeners to new markets.
    curious: AtomicU32,
    interests: Arc<AtomicU32>,
    /// When the frame was taken that the oldest news are of; 0: nobody looks, or nothing waits.
    since: AtomicU64,
    meters: Arc<FanOut>,
}

/// How the handing out goes.
#[derive(Debug, Default)]
struct FanOut {
    is_timed: AtomicBool,
    /// When the feed took the frame it is about to tell of, µs; 0: it tells of none, or nobody looks.
    frame_at: AtomicU64,
    /// Bells wait for [`News::ring`].
    gathers: AtomicBool,
    lag: Micros,
    lost: AtomicU64,
}

/// How many listeners want what of one market.
#[derive(Default)]
struct Demand {
    changes: AtomicU32,
    touches: AtomicU32,
}

impl News {
    /// News for so many IO threads.
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
                bell: Notify::new(),
                rings_later: AtomicBool::new(false),
                wanted: Table::new(),
                curious: AtomicU32::new(0),
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

    /// From now on the handing out is timed.
    pub fn time_fan_out(&self) {
        self.meters.is_timed.store(true, Relaxed);
    }

    /// How long news waited, where that is timed.
    pub fn lag(&self) -> Option<&Micros> {
        self.meters.is_timed.load(Relaxed).then_some(&self.meters.lag)
    }

    /// News that did not fit, of all threads.
    pub fn lost(&self) -> u64 {
        self.meters.lost.load(Relaxed)
    }

    /// News that wait now, of all threads.
    pub fn waiting(&self) -> usize {
        self.outlets.iter().map(|outlet| outlet.queue.len()).sum()
    }

    /// The outlet of the IO thread that asks: each is given out once.
    ///
    /// # Panics
    /// When more threads ask than there are.
    pub fn claim(&self) -> Arc<Outlet> {
        self.outlets[self.claimed.fetch_add(1, Relaxed)].clone()
    }

    /// Changes told so far. What a listener who has counted its interest reads afterwards holds all of them.
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// The latest time that frames about a token carried.
    pub fn last_time(&self, instrument: InstrumentId) -> Timestamp {
        let times = self.times.get(instrument.market().0 as usize);
        Timestamp(times.map_or(0, |times| times[instrument.outcome() as usize].load(Relaxed)))
    }

    /// A frame about the token will carry `at`: what it shall say, which is never before what was said.
    pub fn advance_time(&self, instrument: InstrumentId, at: Timestamp) -> Timestamp {
        let times = self.times.get_or_set(instrument.market().0 as usize, Default::default);
        let latest = &times[instrument.outcome() as usize];
        Timestamp(latest.fetch_max(at.0, Relaxed).max(at.0))
    }
}

/// The feed's half: one thread.
impl News {
    /// Whether anybody listens to anything. Asked behind every write of a ladder that is told of.
    pub fn anybody(&self) -> bool {
        // Pairs with the fence in `Outlet::count`.
        fence(Ordering::SeqCst);
        self.interests.load(Relaxed) != 0
    }

    /// What is told until [`News::end_frame`] is of a frame that was taken at `at`.
    pub fn begin_frame(&self, at: Timestamp) {
        if self.meters.is_timed.load(Relaxed) {
            self.meters.frame_at.store(at.0, Relaxed);
        }
    }

    pub fn end_frame(&self) {
        self.meters.frame_at.store(0, Relaxed);
    }

    /// From now on nobody is woken before [`News::ring`], so that what comes together is heard together: an IO thread that
    /// is woken by the first of eight changes writes to everybody twice.
    pub fn gather(&self) {
        self.meters.gathers.store(true, Relaxed);
    }

    /// Wakes who was told something meanwhile; and from now on, unless the feed still `gathers`, at each piece of news.
    pub fn ring(&self, gathers: bool) {
        self.meters.gathers.store(gathers, Relaxed);
        for outlet in self.outlets.iter().filter(|outlet| outlet.rings_later.load(Relaxed)) {
            outlet.rings_later.store(false, Relaxed);
            outlet.bell.notify_one();
        }
    }

    /// Whether anybody wants to hear of this market at all.
    pub fn wanted(&self, market: MarketId) -> bool {
        self.outlets
            .iter()
            .any(|outlet| outlet.wants(market, Interest::Changes) || outlet.wants(market, Interest::Touches))
    }

    /// Whether anybody wants every change of this market.
    pub fn followed(&self, market: MarketId) -> bool {
        self.outlets.iter().any(|outlet| outlet.wants(market, Interest::Changes))
    }

    /// The number of the change in the making.
    pub fn next_number(&self) -> u64 {
        self.number.load(Relaxed) + 1
    }

    /// Tells of a change to whom it may concern.
    pub fn change(&self, change: Change) {
        let (market, change) = (change.market, Arc::new(change));
        // Pairs with `News::number`.
        self.number.store(change.number, Ordering::Release);
        for outlet in &self.outlets {
            if outlet.wants(market, Interest::Changes) {
                outlet.tell(Item::Change(change.clone()));
            } else if outlet.wants(market, Interest::Touches) {
                outlet.tell(Item::Touched(market));
            }
        }
    }

    /// Something that a price of this market shows has changed.
    pub fn touched(&self, market: MarketId) {
        for outlet in self.outlets.iter().filter(|outlet| outlet.wants(market, Interest::Touches)) {
            outlet.tell(Item::Touched(market));
        }
    }

    pub fn listed(&self, market: MarketId, at: Timestamp) {
        self.curious().for_each(|outlet| outlet.tell(Item::Listed(market, at)));
    }

    pub fn opened(&self, market: MarketId, at: Timestamp) {
        self.curious().for_each(|outlet| outlet.tell(Item::Opened(market, at)));
    }

    /// Where somebody hears of new markets.
    fn curious(&self) -> impl Iterator<Item = &Arc<Outlet>> {
        self.outlets.iter().filter(|outlet| outlet.curious.load(Relaxed) != 0)
    }

    pub fn resolved(&self, market: MarketId, resolution: Resolution, at: Timestamp) {
        let wants =
            |outlet: &&Arc<Outlet>| outlet.wants(market, Interest::Changes) || outlet.wants(market, Interest::Touches);
        self.outlets.iter().filter(wants).for_each(|outlet| outlet.tell(Item::Resolved(market, resolution, at)));
    }
}

impl Outlet {
    fn wants(&self, market: MarketId, what: Interest) -> bool {
        self.wanted.get(market.0 as usize).is_some_and(|wanted| wanted.of(what).load(Relaxed) != 0)
    }

    fn tell(&self, item: Item) {
        let frame_at = self.meters.frame_at.load(Relaxed);
        // Said before the news are there: what is said behind them could lie here until others come.
        if frame_at != 0 && self.since.load(Relaxed) == 0 {
            self.since.store(frame_at, Relaxed);
        }
        if self.queue.push(item).is_err() {
            self.meters.lost.fetch_add(1, Relaxed);
            // Pairs with the swap in `Outlet::take`.
            self.lost.store(true, Ordering::Release);
        }
        if self.meters.gathers.load(Relaxed) {
            self.rings_later.store(true, Relaxed);
        } else {
            self.bell.notify_one();
        }
    }

    /// One more listener to this market. What is read afterwards and what is told from now on leave no gap.
    pub fn count(&self, market: MarketId, what: Interest) {
        self.wanted.get_or_set(market.0 as usize, Demand::default).of(what).fetch_add(1, Relaxed);
        self.interests.fetch_add(1, Relaxed);
        // Pairs with the fence in `News::anybody`.
        fence(Ordering::SeqCst);
    }

    /// One listener less.
    pub fn uncount(&self, market: MarketId, what: Interest) {
        self.wanted.get_or_set(market.0 as usize, Demand::default).of(what).fetch_sub(1, Relaxed);
        self.interests.fetch_sub(1, Relaxed);
    }

    /// One more listener to new markets, or one less.
    pub fn count_curious(&self, more: bool) {
        for counter in [&self.curious, &*self.interests] {
            if more {
                counter.fetch_add(1, Relaxed)
            } else {
                counter.fetch_sub(1, Relaxed)
            };
        }
        fence(Ordering::SeqCst);
    }

    /// The next piece of news. `Err` says that some were lost: what is read from now on is newer than all of them, and
    /// those that waited are gone too.
    pub fn take(&self) -> Result<Option<Item>, Lost> {
        if self.lost.load(Relaxed) {
            while self.queue.pop().is_some() {}
            // Pairs with the store in `Outlet::tell`: what the feed wrote before it is seen by whoever reads now.
            self.lost.swap(false, Ordering::AcqRel);
            return Err(Lost);
        }
        Ok(self.queue.pop())
    }

    /// What waits is handed out now: notes how long the oldest of it waited, where that is timed.
    pub fn note_lag(&self, now: impl FnOnce() -> Timestamp) {
        if self.since.load(Relaxed) != 0 {
            let since = self.since.swap(0, Relaxed);
            self.meters.lag.note_us(now().since(Timestamp(since)));
        }
    }

    /// Something was lost on the way: the next [`Outlet::take`] says so.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    /// Waits until there may be news.
    pub async fn wait(&self) {
        self.bell.notified().await;
    }
}

/// Some news did not fit.
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
