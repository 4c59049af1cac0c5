//! The history store: what has ended, in sorted tables on disk. It holds the server's own price history, midpoints by
//! minute and by hour, and rows that left memory: ended orders with their fills, closed positions, remembered requests.
//!
//! | File | Holds |
//! |---|---|
//! | `recorder.rs` | the feed's half: collects prices and sends them in batches |
//! | `prices.rs` | the open hours in memory, what is written and when, answers to queries |
//! | `row.rs` | keys and values as bytes |
//! | `store.rs` | the tables on disk; the only file that knows their engine |
//! | `store/journal.rs` | the end and the cut of a journal |
//! | `store/spaces.rs` | the keyspaces of ended rows |
//! | `store/loose.rs` | sorted files without their database |
//! | `ended.rs` | ended rows: keys, values, manifest, writer, reader |
//! | `opening.rs` | the opening of the store, in pieces |
//! | `earlier.rs` | takes over the files of the format before the store |
//! | `filters.rs` | which ids and hashes may be among the rows that have left memory |
//! | `files.rs` | the files of the tables at one moment, for a backup |
//! | `check.rs` | sizes and damage of a stopped store |
//! | `rebuilding.rs` | a new store in place of a damaged one |
//!
//! May depend on `engine`, `wire` and `host`. It does not shape responses or interpret requests for charts.
//!
//! The job opens the store in its first turns, and moves the files of earlier programs into it: a start does not wait for
//! that. Until then messages stay in their queue: queries wait as long as they may, and prices are added afterwards.
//!
//! One job owns the store, so neither the core nor the feed waits for a disk: the feed sends batches, a request
//! sends a query and awaits the answer. Batches go before queries; queries whose requester has gone are skipped; beyond
//! `QUERIES_MAX` waiting queries or after `ANSWER_WITHIN` there is no answer. Times are venue time; in a replay, those
//! of the recording. Nothing is promised for the last seconds before a kill, and no failure here stops the server: a
//! panic ends only the history.
//!
//! The price of each market's first outcome is kept; that of the second is its complement. It is the midpoint of the
//! effective book if that is at most 0.10 wide, as for displayed prices (engine/docs/execution.md §2), else the price
//! of a reported trade.

mod check;
mod earlier;
mod ended;
mod files;
pub mod filters;
mod opening;
mod prices;
mod rebuilding;
mod recorder;
mod row;
mod store;
#[cfg(test)]
mod testing;

pub use check::{Checked, Damage, EndedSize, Sizes, TableSize, check, merge, sizes};
pub use earlier::is_earlier;
pub use ended::{
    CrcOf, CutRows, EndedOf, EndedReader, EndedStore, EndedWriter, FreeBytes, Rebuilt, Room, Sources, Upto, UserRows,
    id_hash,
};
pub use engine::book::stretches::{HistoryQuery, PriceHistory, Stretches};
pub use files::{StoreFile, is_store_file, store_files};
pub use prices::set_back;
pub use rebuilding::{copy_prices, rebuild};
pub use recorder::Recorder;
pub use store::{FOLDER, StoreError};

use crossbeam::queue::ArrayQueue;
use earlier::Step;
use engine::amount::Qty;
use engine::book::Books;
use engine::id::{InstrumentId, MarketId};
use engine::notice::{Notice, OrderFact};
use engine::time::Timestamp;
use host::job::{JobWaker, Next, Work};
use host::thread::Stop;
use opening::Opening;
use prices::{MinuteCandle, Prices};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Few changed rows are written immediately, many rows this often.
const FEW_ROWS: usize = 256;
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// Fills that wait to be counted; more are dropped.
const FILLS_MAX: usize = 16_384;
/// Queries that wait at a time.
const QUERIES_MAX: usize = 1_024;
/// How long a request waits for its answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Pause while earlier files are moved and the store does not keep up.
const MOVE_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// Pause while the store is to be opened again, and is in use.
const OPEN_AGAIN_EVERY: Duration = Duration::from_secs(1);

/// A message to the job.
pub enum Message {
    /// A batch of the feed, and the number of batches in flight.
    Prices(Vec<MinuteCandle>, Arc<AtomicUsize>),
    /// The prices that follow were sent in an earlier run, too.
    Replay,
    Find(Query),
}

/// Sends messages to the job, and wakes it.
#[derive(Clone)]
struct Messages {
    queue: Sender<Message>,
    waker: JobWaker,
}

impl Messages {
    /// Messages and their receiver.
    fn channel() -> (Messages, Receiver<Message>) {
        let (queue, receiver) = channel();
        (Messages { queue, waker: JobWaker::default() }, receiver)
    }

    /// Returns `None` if the job has ended.
    fn send(&self, message: Message) -> Option<()> {
        self.queue.send(message).ok()?;
        self.waker.wake();
        Some(())
    }
}

/// A request for the prices of a market.
pub struct Query {
    market: u32,
    /// Unix.
    secs: RangeInclusive<u64>,
    wanted: HistoryQuery,
    answer: oneshot::Sender<Stretches>,
    /// Its permit among [`QUERIES_MAX`], returned when the query is dropped.
    _permit: OwnedSemaphorePermit,
}

/// Shares filled on this server, on their way into the history. Adding a fill never blocks.
#[derive(Clone, Debug)]
pub struct Fills(Arc<ArrayQueue<(InstrumentId, Qty, Timestamp)>>);

/// Sends queries to the history.
#[derive(Clone)]
pub struct Reader {
    messages: Messages,
    permits: Arc<Semaphore>,
    lost: Arc<AtomicBool>,
}

impl Default for Fills {
    fn default() -> Fills {
        Fills(Arc::new(ArrayQueue::new(FILLS_MAX)))
    }
}

impl Fills {
    /// Counts the shares if the notice is a fill.
    pub fn observe(&self, notice: &Notice) {
        if let OrderFact::Filled { instrument, qty, .. } = notice.what {
            // Full: the history is slow, and a volume in a chart is not worth a wait.
            let _ = self.0.push((instrument, qty, notice.at));
        }
    }
}

impl Reader {
    fn new(messages: Messages) -> Reader {
        Reader { messages, permits: Arc::new(Semaphore::new(QUERIES_MAX)), lost: Arc::default() }
    }

    /// The history has failed: its job panicked.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// Takes every permit: no query is accepted until the returned permit is dropped.
    #[cfg(any(test, feature = "testing"))]
    pub fn full(&self) -> OwnedSemaphorePermit {
        self.permits.clone().try_acquire_many_owned(QUERIES_MAX as u32).expect("no query waits")
    }
}

impl PriceHistory for Reader {
    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// `None` if too many queries wait, if the answer takes too long (the disk does not respond), and while the process
    /// ends.
    fn find(
        &self,
        market: MarketId,
        secs: RangeInclusive<u64>,
        wanted: HistoryQuery,
    ) -> Pin<Box<dyn Future<Output = Option<Stretches>> + '_>> {
        Box::pin(async move {
            let permit = self.permits.clone().try_acquire_owned().ok()?;
            let (answer, found) = oneshot::channel();
            self.messages.send(Message::Find(Query { market: market.0, secs, wanted, answer, _permit: permit }))?;
            tokio::time::timeout(ANSWER_WITHIN, found).await.ok()?.ok()
        })
    }
}

/// The job that keeps the history. It counts fills after each message, and whenever it has slept.
pub struct History {
    /// The store is not open yet.
    opening: Option<Opening>,
    prices: Prices,
    ended: EndedStore,
    /// The newest minute that the store had when it was opened; the recorder has its start in seconds.
    known: u32,
    known_to: Arc<AtomicU64>,
    /// Prices before that minute are skipped.
    is_replay: bool,
    /// Shares filled while the store is not open, by minute and token.
    held: BTreeMap<(u32, InstrumentId), Qty>,
    books: Arc<Books>,
    fills: Fills,
    messages: Receiver<Message>,
    waker: JobWaker,
    written: Instant,
    /// Queries, the oldest first.
    waiting: VecDeque<Query>,
}

impl History {
    /// The history of a directory, which the job opens; without a directory it is kept only in memory. `cache_bytes` of
    /// what was read from the disk stay in memory.
    pub fn open(
        dir: Option<PathBuf>,
        cache_bytes: u64,
        books: Arc<Books>,
        fills: Fills,
    ) -> (History, Recorder, Reader) {
        let ((messages, receiver), known_to) = (Messages::channel(), Arc::default());
        let ended = if dir.is_some() { EndedStore::opening() } else { EndedStore::missing() };
        let ended = ended.waking(messages.waker.clone());
        let history = History {
            opening: dir.map(|dir| Opening::new(dir, cache_bytes, ended.clone())),
            prices: Prices::in_memory(),
            ended,
            known: 0,
            known_to: Arc::clone(&known_to),
            is_replay: false,
            held: BTreeMap::new(),
            books,
            fills,
            messages: receiver,
            waker: messages.waker.clone(),
            written: Instant::now(),
            waiting: VecDeque::new(),
        };
        (history, Recorder::new(messages.clone(), known_to), Reader::new(messages))
    }

    /// The ended rows, which can be read and written when the job has opened the store.
    pub fn ended(&self) -> EndedStore {
        self.ended.clone()
    }

    /// Begins with what was opened.
    fn begin(&mut self, opened: Opening) {
        self.prices = opened.end();
        self.known = self.prices.newest().unwrap_or(0);
        self.known_to.store(u64::from(self.known) * 60, Ordering::Relaxed);
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Replay => self.is_replay = true,
            Message::Prices(mut candles, in_flight) => {
                candles.retain(|candle| !self.is_replay || candle.minute >= self.known);
                self.prices.add(&candles);
                in_flight.fetch_sub(1, Ordering::Relaxed);
                // After the prices, so that a fill finds the row of its minute.
                self.count_fills();
                self.write();
            }
            Message::Find(query) => self.waiting.push_back(query),
        }
    }

    /// Answers the oldest query whose requester still waits.
    fn answer(&mut self) {
        while let Some(Query { market, secs, wanted, answer, .. }) = self.waiting.pop_front() {
            if answer.is_closed() {
                continue;
            }
            let found = self.prices.find(market, secs, wanted.grid.secs());
            let (points, grid) = wanted.of(&found.buckets);
            // The requester may have gone meanwhile.
            let _ = answer.send(Stretches { points, grid, broken: found.broken });
            return;
        }
    }

    fn count_fills(&mut self) {
        while let Some((instrument, shares, at)) = self.fills.0.pop() {
            let minute = u32::try_from(self.books.venue_now(at).secs() / 60).unwrap_or(u32::MAX);
            let held = self.held.entry((minute, instrument)).or_default();
            held.0 = held.0.saturating_add(shares.0);
        }
        if self.opening.is_none() {
            for ((minute, instrument), shares) in std::mem::take(&mut self.held) {
                self.prices.fill(instrument.market().0, instrument.outcome(), shares, minute);
            }
        }
    }

    fn write(&mut self) {
        let is_due = self.prices.has_ended_hours() || self.written.elapsed() >= WRITE_EVERY;
        if self.prices.unwritten() <= FEW_ROWS || is_due {
            self.prices.write();
            self.written = Instant::now();
        }
    }
}

impl Work for History {
    type Error = Infallible;

    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        if let Some(mut opening) = self.opening.take() {
            let step = opening.step();
            if step == Step::Over {
                self.begin(opening);
                return Ok(Next::Again);
            }
            self.opening = Some(opening);
            self.count_fills();
            return Ok(if step == Step::Wait { Next::SleepFor(MOVE_AGAIN_AFTER) } else { Next::Again });
        }
        if let Ok(message) = self.messages.try_recv() {
            self.take(message);
            return Ok(Next::Again);
        }
        // Queries wait until there is nothing else to do.
        self.count_fills();
        self.answer();
        self.write();
        let opens_again = self.prices.open_again();
        if let Err(error) = self.ended.start_spare() {
            tracing::warn!(%error, "what was cut of the history cannot be removed from the disk: no thread can be created");
        }
        Ok(match self.waiting.is_empty() {
            false => Next::Again,
            true if opens_again => Next::SleepFor(OPEN_AGAIN_EVERY),
            true => Next::Sleep,
        })
    }

    /// Writes the remaining rows, and makes everything durable.
    fn end(mut self) {
        if let Some(mut opening) = self.opening.take() {
            // The first step opens the store.
            opening.step();
            self.begin(opening);
        }
        while let Ok(message) = self.messages.try_recv() {
            self.take(message);
        }
        self.count_fills();
        self.prices.end();
    }

    fn waker(&self) -> Option<&JobWaker> {
        Some(&self.waker)
    }
}

#[cfg(test)]
mod tests;
