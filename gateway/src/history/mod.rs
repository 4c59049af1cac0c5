//! The server's own history of prices: midpoints by minute and by hour, kept across restarts and kills.
//!
//! | File | Holds |
//! |---|---|
//! | `recorder.rs` | the feed's half: notes prices, hands them over |
//! | `store.rs` | what is in memory and in files |
//! | `trail.rs` | rows of the open hours, appended as they come; a torn end is cut |
//! | `block.rs` | rows as bytes; files of rows that never change again |
//!
//! One thread owns the store, so neither the core nor the feed waits for a disk: the feed sends batches, a request sends
//! a question and awaits the answer. Times are venue time, in a replay the recording's. Nothing is promised for the last
//! seconds before a kill, and nothing that goes wrong here stops the server.
//!
//! Kept is the price of each market's first outcome; the second one's is its complement. It is the midpoint of the
//! effective book where that is at most 0.10 wide, as displayed prices are (execution.md §2), else the price of a trade
//! when one is reported.

mod block;
mod recorder;
mod store;
mod trail;

pub use recorder::Recorder;
pub use store::Found;

use crate::thread;
use crossbeam::queue::ArrayQueue;
use engine::amount::Qty;
use engine::book::Books;
use engine::id::{InstrumentId, MarketId};
use engine::notice::{Notice, OrderFact};
use engine::time::Timestamp;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Heard, Store};
use tokio::sync::oneshot;

/// How long the thread sleeps when nobody speaks to it: fills are taken within it.
const REST: Duration = Duration::from_secs(1);
/// Few changed rows are written at once, many this often.
const FEW_ROWS: usize = 1_024;
const WRITE_EVERY: Duration = Duration::from_secs(10);
/// Fills that wait to be counted; more are forgotten.
const FILLS_MAX: usize = 16_384;

/// What the thread is told.
pub enum Word {
    /// A batch of the feed, and the count of batches underway.
    Heard(Vec<Heard>, Arc<AtomicUsize>),
    Find {
        market: u32,
        secs: RangeInclusive<u64>,
        step: u64,
        answer: oneshot::Sender<Found>,
    },
    Stop,
}

/// Shares filled on this server, on their way into the history. Whoever fills never waits.
#[derive(Clone, Debug)]
pub struct Fills(Arc<ArrayQueue<(InstrumentId, Qty, Timestamp)>>);

/// The way to ask.
#[derive(Clone)]
pub struct Reader(Sender<Word>);

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
    /// What there is of a market's first outcome with a start within `secs` (unix), to be folded into stretches of
    /// `step` seconds. `None` while the process is ending.
    pub async fn find(&self, market: MarketId, secs: RangeInclusive<u64>, step: u64) -> Option<Found> {
        let (answer, found) = oneshot::channel();
        self.0.send(Word::Find { market: market.0, secs, step, answer }).ok()?;
        found.await.ok()
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
        let (words, told) = channel();
        let store = Store::open(dir.as_deref());
        let known_to = store.newest().map_or(Timestamp(0), |minute| Timestamp::from_secs(u64::from(minute) * 60));
        let keeper = Keeper { store, books, fills, written: Instant::now() };
        let thread = thread::spawn("history", move || keeper.run(&told))?;
        let history = History { words: words.clone(), thread };
        Ok((history, Recorder::new(words.clone(), known_to), Reader(words)))
    }

    /// Writes what is left and ends.
    pub fn end(self) {
        let _ = self.words.send(Word::Stop);
        // A panic there has aborted the process.
        drop(self.thread.join());
    }
}

/// The thread's own.
struct Keeper {
    store: Store,
    books: Arc<Books>,
    fills: Fills,
    written: Instant,
}

impl Keeper {
    fn run(mut self, told: &Receiver<Word>) {
        loop {
            let word = told.recv_timeout(REST);
            self.count_fills();
            match word {
                Ok(Word::Heard(heard, underway)) => {
                    self.store.add(&heard);
                    underway.fetch_sub(1, Ordering::Relaxed);
                    self.write(false);
                }
                Ok(Word::Find { market, secs, step, answer }) => {
                    // Nobody waits for it any more when the connection is gone.
                    let _ = answer.send(self.store.find(market, secs, step));
                }
                Err(RecvTimeoutError::Timeout) => self.write(false),
                Ok(Word::Stop) | Err(RecvTimeoutError::Disconnected) => return self.write(true),
            }
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
