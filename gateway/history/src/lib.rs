//! The server's own history of prices: midpoints by minute and by hour, kept across restarts and kills.
//!
//! | File | Holds |
//! |---|---|
//! | `recorder.rs` | the feed's half: notes prices, hands them over |
//! | `store.rs` | what is in memory and in files |
//! | `trail.rs` | rows of the open hours, appended as they come; a torn end is cut |
//! | `block.rs` | rows as bytes; files of rows that never change again |
//!
//! May depend on `engine`, `wire` and `host`. Absent on purpose: shapes of answers, and what a chart is asked for.
//!
//! One thread owns the store, so neither the core nor the feed waits for a disk: the feed sends batches, a request sends
//! a question and awaits the answer. What the feed brings goes before questions; questions that nobody waits for any more
//! are passed over, and beyond `QUESTIONS_MAX` or after `ANSWER_WITHIN` there is no answer. Times are venue time, in a replay the recording's. Nothing is promised for the last
//! seconds before a kill, and nothing that goes wrong here stops the server: a panic ends the history alone.
//!
//! Kept is the price of each market's first outcome; the second one's is its complement. It is the midpoint of the
//! effective book where that is at most 0.10 wide, as displayed prices are (execution.md §2), else the price of a trade
//! when one is reported.

mod block;
mod recorder;
mod store;
mod trail;

pub use engine::book::stretches::{PriceHistory, Stretches, Wanted};
pub use recorder::Recorder;
pub use store::set_back;

use crossbeam::queue::ArrayQueue;
use engine::amount::Qty;
use engine::book::Books;
use engine::id::{InstrumentId, MarketId};
use engine::notice::{Notice, OrderFact};
use engine::time::Timestamp;
use host::thread;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Heard, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// How long the thread sleeps when nobody speaks to it: fills are taken within it.
const REST: Duration = Duration::from_secs(1);
/// Few changed rows are written at once, many this often.
const FEW_ROWS: usize = 1_024;
const WRITE_EVERY: Duration = Duration::from_secs(10);
/// Fills that wait to be counted; more are forgotten.
const FILLS_MAX: usize = 16_384;
/// Questions that wait at a time.
const QUESTIONS_MAX: usize = 1_024;
/// Whoever asks waits this long.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// What the thread is told.
pub enum Word {
    /// A batch of the feed, and the count of batches underway.
    Heard(Vec<Heard>, Arc<AtomicUsize>),
    Find(Question),
    Stop,
}

/// What somebody waits for.
pub struct Question {
    market: u32,
    /// Unix.
    secs: RangeInclusive<u64>,
    wanted: Wanted,
    answer: oneshot::Sender<Stretches>,
    /// Its place among [`QUESTIONS_MAX`], free again when the question is gone.
    _place: OwnedSemaphorePermit,
}

/// Shares filled on this server, on their way into the history. Whoever fills never waits.
#[derive(Clone, Debug)]
pub struct Fills(Arc<ArrayQueue<(InstrumentId, Qty, Timestamp)>>);

/// The way to ask.
#[derive(Clone)]
pub struct Reader {
    words: Sender<Word>,
    places: Arc<Semaphore>,
    lost: Arc<AtomicBool>,
}

/// The running history.
pub struct History {
    words: Sender<Word>,
    thread: JoinHandle<()>,
}

impl Default for Fills {
    fn default() -> Fills {
        Fills(Arc::new(ArrayQueue::new(FILLS_MAX)))
    }
}

impl Fills {
    /// Counts the shares where the notice tells of a fill.
    pub fn observe(&self, notice: &Notice) {
        if let OrderFact::Filled { instrument, qty, .. } = notice.what {
            // Full: the history is far behind, and a volume in a chart is worth no wait.
            let _ = self.0.push((instrument, qty, notice.at));
        }
    }
}

impl Reader {
    fn new(words: Sender<Word>) -> Reader {
        Reader { words, places: Arc::new(Semaphore::new(QUESTIONS_MAX)), lost: Arc::default() }
    }

    /// As a failed history leaves it.
    #[cfg(any(test, feature = "testing"))]
    pub fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// Takes every place: nobody's question is taken until the permit is gone.
    #[cfg(any(test, feature = "testing"))]
    pub fn full(&self) -> OwnedSemaphorePermit {
        self.places.clone().try_acquire_many_owned(QUESTIONS_MAX as u32).expect("nobody waits")
    }
}

impl PriceHistory for Reader {
    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// `None` while too many wait, where the answer takes too long (the disk does not answer), and while the process is ending.
    fn find(
        &self,
        market: MarketId,
        secs: RangeInclusive<u64>,
        wanted: Wanted,
    ) -> Pin<Box<dyn Future<Output = Option<Stretches>> + '_>> {
        Box::pin(async move {
            let place = self.places.clone().try_acquire_owned().ok()?;
            let (answer, found) = oneshot::channel();
            self.words.send(Word::Find(Question { market: market.0, secs, wanted, answer, _place: place })).ok()?;
            tokio::time::timeout(ANSWER_WITHIN, found).await.ok()?.ok()
        })
    }
}

impl History {
    /// Starts the history of a directory; without one it is in memory alone.
    ///
    /// # Errors
    /// The system's, when no thread can be made.
    pub fn start(
        dir: Option<PathBuf>,
        books: Arc<Books>,
        fills: Fills,
    ) -> std::io::Result<(History, Recorder, Reader)> {
        let store = Store::open(dir.as_deref());
        let known_to = store.newest().map_or(Timestamp(0), |minute| Timestamp::from_secs(u64::from(minute) * 60));
        let keeper = Keeper::new(store, books, fills);
        let (history, reader) = History::run(move |told| keeper.run(told))?;
        let recorder = Recorder::new(history.words.clone(), known_to);
        Ok((history, recorder, reader))
    }

    /// A panic in `keep` ends the history and nothing else: what is told then goes nowhere, and questions have no answer.
    fn run(keep: impl FnOnce(&Receiver<Word>) + Send + 'static) -> std::io::Result<(History, Reader)> {
        let (words, told) = channel();
        let reader = Reader::new(words.clone());
        let lost = reader.lost.clone();
        let lost = move || {
            lost.store(true, Ordering::Relaxed);
            tracing::error!("the price history has failed; there are no charts until the next start");
        };
        let thread = thread::spawn_spare("history", move || keep(&told), lost)?;
        Ok((History { words, thread }, reader))
    }

    /// Writes what is left and ends.
    pub fn end(self) {
        let _ = self.words.send(Word::Stop);
        // A panic there has been told.
        drop(self.thread.join());
    }
}

/// The thread's own.
struct Keeper {
    store: Store,
    books: Arc<Books>,
    fills: Fills,
    written: Instant,
    /// Questions, the oldest first.
    waiting: VecDeque<Question>,
}

impl Keeper {
    fn new(store: Store, books: Arc<Books>, fills: Fills) -> Keeper {
        Keeper { store, books, fills, written: Instant::now(), waiting: VecDeque::new() }
    }

    fn run(mut self, told: &Receiver<Word>) {
        loop {
            // Questions wait until nothing else is to be done.
            let word = match self.waiting.is_empty() {
                true => told.recv_timeout(REST),
                false => told.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                }),
            };
            match word {
                Ok(Word::Heard(heard, underway)) => {
                    self.store.add(&heard);
                    underway.fetch_sub(1, Ordering::Relaxed);
                    // Behind the prices: a fill finds the row of its minute.
                    self.count_fills();
                    self.write(false);
                }
                Ok(Word::Find(question)) => self.waiting.push_back(question),
                Err(RecvTimeoutError::Timeout) => {
                    self.count_fills();
                    self.answer();
                    self.write(false);
                }
                Ok(Word::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    self.count_fills();
                    return self.write(true);
                }
            }
        }
    }

    /// Answers the oldest question that somebody still waits for.
    fn answer(&mut self) {
        while let Some(Question { market, secs, wanted, answer, .. }) = self.waiting.pop_front() {
            if answer.is_closed() {
                continue;
            }
            let found = self.store.find(market, secs, wanted.grid.secs());
            let (points, grid) = wanted.of(&found.buckets);
            // He may have gone meanwhile.
            let _ = answer.send(Stretches { points, grid, broken: found.broken });
            return;
        }
    }

    fn count_fills(&mut self) {
        while let Some((instrument, shares, at)) = self.fills.0.pop() {
            let minute = u32::try_from(self.books.venue_now(at).secs() / 60).unwrap_or(u32::MAX);
            self.store.fill(instrument.market().0, instrument.outcome(), shares, minute);
        }
    }

    fn write(&mut self, last: bool) {
        if last || self.store.unwritten() <= FEW_ROWS || self.written.elapsed() >= WRITE_EVERY {
            self.store.write();
            self.written = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests;
