//! The readers of rows that have left memory: a few threads beside the core. Each completes one answer after the other;
//! without work they sleep.

use edge::ended_rows::{EndedAnswer, EndedRows, Unread, answered};
use engine::command::Answer;
use engine::shard::elsewhere::Elsewhere;
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

    /// Whether they can be read; it may not be known yet.
    ///
    /// # Errors
    /// Why they cannot be read until this process ends.
    fn is_open(&self) -> Result<bool, Self::Error>;

    /// Completes an answer.
    ///
    /// # Errors
    /// Why a row cannot be read.
    fn complete(&self, elsewhere: Elsewhere) -> Result<Answer, Self::Error>;
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
        let shared = Arc::new((source, AtomicBool::new(false)));
        let mut readers = EndedReaders { queue: Arc::default(), threads: Vec::with_capacity(count) };
        for index in 0..count {
            let (queue, shared) = (readers.queue.clone(), shared.clone());
            let run = move || queue.serve(&shared.0, &shared.1);
            readers.threads.push(spawn(&format!("ended-{index}"), run)?);
        }
        Ok(readers)
    }
}

impl EndedRows for EndedReaders {
    fn complete(&self, elsewhere: Box<Elsewhere>) -> EndedAnswer {
        let (answer, receiver) = oneshot::channel();
        let mut waiting = self.queue.waiting.lock();
        if waiting.len() >= WAITING_MAX {
            // Those that nobody waits for make room.
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
    /// Completes answers until the stop.
    fn serve(&self, source: &impl EndedSource, has_failed: &AtomicBool) {
        while let Some(Waiting { elsewhere, asked_at, answer }) = self.next() {
            if answer.is_closed() {
                continue;
            }
            // A panic is a defect of one answer: its receiver is closed, and the reader goes on.
            let read = catch_unwind(AssertUnwindSafe(|| self.read(source, *elsewhere, asked_at)));
            let Ok(read) = read else { continue };
            let is_failure = read.is_err();
            if has_failed.swap(is_failure, Ordering::Relaxed) != is_failure {
                match &read {
                    Err(error) => tracing::warn!(%error, "orders and positions that have left memory cannot be read"),
                    Ok(_) => tracing::info!("orders and positions that have left memory are read again"),
                }
            }
            // The receiver may have given up.
            let _ = answer.send(read.map_err(|_| Unread::Unreadable));
        }
    }

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

    fn read(&self, source: &impl EndedSource, elsewhere: Elsewhere, asked_at: Instant) -> Result<Answer, String> {
        while !source.is_open().map_err(|error| error.to_string())? {
            if asked_at.elapsed() >= OPENS_WITHIN || self.stop.is_set() {
                return Err("the history store is not open yet".to_owned());
            }
            std::thread::sleep(OPEN_CHECK_EVERY);
        }
        source.complete(elsewhere).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
