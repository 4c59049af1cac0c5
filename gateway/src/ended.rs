//! The readers of rows that have left memory: a few threads beside the core. Each completes one answer after the other;
//! without work they sleep.

use edge::ended_rows::{EndedAnswer, EndedRows, Unread, answered};
use engine::command::Answer;
use engine::shard::elsewhere::Elsewhere;
use history::{EndedReader, StoreError};
use host::thread::{Stop, spawn};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Answers that wait for a reader. Each holds a copy of its part from memory, some hundred KiB at most.
const WAITING_MAX: usize = 256;
/// How long an answer waits for a store that is being opened.
const OPENS_WITHIN: Duration = Duration::from_secs(2);
/// How often it looks meanwhile.
const OPEN_CHECK_EVERY: Duration = Duration::from_millis(20);

/// The rows that have left memory.
pub trait EndedSource: Send + Sync + 'static {
    type Error: Display;

    /// Completes an answer.
    ///
    /// # Errors
    /// Why a row cannot be read.
    fn complete(&self, elsewhere: Elsewhere) -> Result<Answer, Self::Error>;

    /// Whether the rows are still being opened, so that they may be read soon.
    fn is_opening(error: &Self::Error) -> bool;
}

impl EndedSource for EndedReader {
    type Error = StoreError;

    fn complete(&self, elsewhere: Elsewhere) -> Result<Answer, StoreError> {
        let rows = self.of(elsewhere.owner(), elsewhere.departed_upto());
        elsewhere.complete(&rows)
    }

    fn is_opening(error: &StoreError) -> bool {
        matches!(error, StoreError::Opening)
    }
}

/// The readers. They end when this is dropped.
pub struct EndedReaders {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<VecDeque<Waiting>>,
    news: Condvar,
    stop: Stop,
}

/// An answer that waits for a reader.
struct Waiting {
    elsewhere: Box<Elsewhere>,
    asked_at: Instant,
    answer: oneshot::Sender<Result<Answer, Unread>>,
}

impl EndedReaders {
    /// Starts `count` readers of `source`.
    ///
    /// # Errors
    /// The system's, if a thread cannot be created.
    pub fn start(count: usize, source: impl EndedSource) -> io::Result<EndedReaders> {
        EndedReaders::waiting(count, source, OPENS_WITHIN)
    }

    /// The same; an answer waits for a source that is being opened for this time.
    fn waiting(count: usize, source: impl EndedSource, opens_within: Duration) -> io::Result<EndedReaders> {
        let mut readers = EndedReaders { queue: Arc::default(), threads: Vec::with_capacity(count) };
        let shared =
            Shared { source, opens_within, is_open: AtomicBool::new(false), has_failed: AtomicBool::new(false) };
        let shared = Arc::new(shared);
        for index in 0..count {
            let (queue, shared) = (readers.queue.clone(), shared.clone());
            readers.threads.push(spawn(&format!("ended-{index}"), move || shared.serve(&queue))?);
        }
        Ok(readers)
    }
}

impl EndedRows for EndedReaders {
    fn complete(&self, elsewhere: Box<Elsewhere>) -> EndedAnswer {
        let (answer, receiver) = oneshot::channel();
        let mut waiting = self.queue.waiting.lock();
        if waiting.len() >= WAITING_MAX {
            // Requests that have given up make room.
            waiting.retain(|waiting| !waiting.answer.is_closed());
        }
        if waiting.len() >= WAITING_MAX {
            return answered(Err(Unread::Busy));
        }
        waiting.push_back(Waiting { elsewhere, asked_at: Instant::now(), answer });
        drop(waiting);
        self.queue.news.notify_one();
        receiver
    }
}

impl Drop for EndedReaders {
    fn drop(&mut self) {
        {
            // Under the lock, so that no reader sleeps without having seen it.
            let mut waiting = self.queue.waiting.lock();
            self.queue.stop.set();
            waiting.clear();
        }
        self.queue.news.notify_all();
        for thread in self.threads.drain(..) {
            // A panic has ended the process.
            let _ = thread.join();
        }
    }
}

impl Queue {
    /// The next answer; `None`: the readers end.
    fn next(&self) -> Option<Waiting> {
        let mut waiting = self.waiting.lock();
        loop {
            if self.stop.is_set() {
                return None;
            }
            if let Some(next) = waiting.pop_front() {
                return Some(next);
            }
            self.news.wait(&mut waiting);
        }
    }
}

/// What the readers share.
struct Shared<S> {
    source: S,
    opens_within: Duration,
    /// It was open when it was last read.
    is_open: AtomicBool,
    /// The last answer was not read.
    has_failed: AtomicBool,
}

impl<S: EndedSource> Shared<S> {
    /// Completes answers until the end.
    fn serve(&self, queue: &Queue) {
        while let Some(Waiting { elsewhere, asked_at, answer }) = queue.next() {
            if answer.is_closed() {
                continue;
            }
            // A panic is a defect of one answer: its receiver is closed, and the reader goes on.
            let read = catch_unwind(AssertUnwindSafe(|| self.read(*elsewhere, asked_at, &queue.stop)));
            let Ok(read) = read else { continue };
            self.note(&read);
            // The receiver may have given up.
            let _ = answer.send(read.map_err(|_| Unread::Unreadable));
        }
    }

    fn read(&self, elsewhere: Elsewhere, asked_at: Instant, stop: &Stop) -> Result<Answer, S::Error> {
        // Only a source that may not be open is asked again, and needs a copy.
        while !self.is_open.load(Ordering::Relaxed) {
            let read = self.source.complete(elsewhere.clone());
            match &read {
                Err(error) if S::is_opening(error) && asked_at.elapsed() < self.opens_within && !stop.is_set() => {
                    std::thread::sleep(OPEN_CHECK_EVERY);
                }
                _ => {
                    self.is_open.store(read.is_ok(), Ordering::Relaxed);
                    return read;
                }
            }
        }
        let read = self.source.complete(elsewhere);
        if read.as_ref().is_err_and(S::is_opening) {
            self.is_open.store(false, Ordering::Relaxed);
        }
        read
    }

    /// Logs the first failure of several, and the end of them.
    fn note(&self, read: &Result<Answer, S::Error>) {
        if self.has_failed.swap(read.is_err(), Ordering::Relaxed) == read.is_err() {
            return;
        }
        match read {
            Err(error) => tracing::warn!(%error, "orders, trades and positions that have left memory cannot be read"),
            Ok(_) => tracing::info!("orders, trades and positions that have left memory are read again"),
        }
    }
}

#[cfg(test)]
mod tests;
