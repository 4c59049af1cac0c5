//! The readers of rows that have left memory: a few threads beside the core. Each serves one request after the other;
//! without work they sleep. Commands go before answers, and one of several readers serves only commands: others of their
//! user wait for them, and each reads a few rows.

mod figures;

pub use figures::{Outcome, ReadFigures, Reads};

use edge::ended_rows::{EndedAnswer, EndedRows, FoundCommand, HistoryFrom, Unread, answered};
use engine::command::{Answer, Command, Envelope};
use engine::look_up::LookUp;
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

/// Answers that wait for a reader, and commands. An answer holds a copy of its part from memory, some hundred KiB at most.
const WAITING_MAX: usize = 256;
/// How long a request waits for a store that is being opened.
const OPENS_WITHIN: Duration = Duration::from_secs(2);
/// How often it looks meanwhile.
const OPEN_CHECK_EVERY: Duration = Duration::from_millis(20);

/// Whether a request is given up: its client has gone, its deadline has passed, or the process ends.
pub type GivenUp<'a> = &'a (dyn Fn() -> bool + Sync);

/// The rows that have left memory.
pub trait EndedSource: Send + Sync + 'static {
    type Error: Display;

    /// Completes an answer, unless it is given up.
    ///
    /// # Errors
    /// Why a row cannot be read.
    fn complete(&self, elsewhere: Elsewhere, is_given_up: GivenUp<'_>) -> Result<Answer, Self::Error>;

    /// Looks up what a command needs, unless it is given up.
    ///
    /// # Errors
    /// Why a row cannot be read.
    fn look_up(&self, look_up: LookUp, is_given_up: GivenUp<'_>) -> Result<Envelope<()>, Self::Error>;

    /// Whether the rows are still being opened, so that they may be read soon.
    fn is_opening(error: &Self::Error) -> bool;

    /// Whether the rows that were asked for are lost permanently, while others are read.
    fn is_lost(error: &Self::Error) -> bool;
}

impl EndedSource for EndedReader {
    type Error = StoreError;

    fn complete(&self, elsewhere: Elsewhere, is_given_up: GivenUp<'_>) -> Result<Answer, StoreError> {
        let rows = self.of(elsewhere.owner(), elsewhere.departed_upto()).until(is_given_up);
        elsewhere.complete(&rows)
    }

    fn look_up(&self, look_up: LookUp, is_given_up: GivenUp<'_>) -> Result<Envelope<()>, StoreError> {
        let rows = self.of(look_up.owner(), look_up.upto()).until(is_given_up);
        look_up.found(&rows)
    }

    fn is_opening(error: &StoreError) -> bool {
        matches!(error, StoreError::Opening)
    }

    fn is_lost(error: &StoreError) -> bool {
        error.is_lost()
    }
}

/// The readers. They end when this is dropped.
pub struct EndedReaders {
    queue: Arc<Queue>,
    figures: Arc<ReadFigures>,
    shown: Arc<HistoryFrom>,
    threads: Vec<JoinHandle<()>>,
}

struct Queue {
    /// Answers that are read at the same time at most: one reader is left to commands, if there are several.
    answers_max: usize,
    waiting: Mutex<Waiting>,
    news: Condvar,
    stop: Stop,
}

/// Requests that wait for a reader.
#[derive(Default)]
struct Waiting {
    commands: VecDeque<Asked<LookUp, Envelope<()>>>,
    answers: VecDeque<Asked<Elsewhere, Answer>>,
    /// Answers that are being read.
    answers_read: usize,
}

/// A request, and where what was read goes.
struct Asked<A, T> {
    what: Box<A>,
    asked_at: Instant,
    receiver: oneshot::Sender<Result<T, Unread>>,
}

/// The next request of a reader.
enum Next {
    Command(Asked<LookUp, Envelope<()>>),
    Answer(Asked<Elsewhere, Answer>),
}

/// Adds a request, if there is room.
fn ask<A, T>(
    waiting: &mut VecDeque<Asked<A, T>>,
    what: Box<A>,
    figures: &Reads,
) -> oneshot::Receiver<Result<T, Unread>> {
    if waiting.len() >= WAITING_MAX {
        // Requests that have given up make room.
        waiting.retain(|asked| !asked.receiver.is_closed());
    }
    if waiting.len() >= WAITING_MAX {
        figures.count(Outcome::Busy);
        return answered(Err(Unread::Busy));
    }
    let (receiver, read) = oneshot::channel();
    waiting.push_back(Asked { what, asked_at: Instant::now(), receiver });
    read
}

impl EndedReaders {
    /// Starts `count` readers of `source`.
    ///
    /// # Errors
    /// The system's, if a thread cannot be created.
    pub fn start(count: usize, source: impl EndedSource, figures: Arc<ReadFigures>) -> io::Result<EndedReaders> {
        EndedReaders::waiting(count, source, figures, OPENS_WITHIN)
    }

    /// Says from when on history is shown.
    pub fn showing(mut self, shown: Arc<HistoryFrom>) -> EndedReaders {
        self.shown = shown;
        self
    }

    /// The same; an answer waits for a source that is being opened for this time.
    fn waiting(
        count: usize,
        source: impl EndedSource,
        figures: Arc<ReadFigures>,
        opens_within: Duration,
    ) -> io::Result<EndedReaders> {
        let mut readers = EndedReaders {
            queue: Arc::new(Queue::new(count)),
            figures: figures.clone(),
            shown: Arc::default(),
            threads: Vec::with_capacity(count),
        };
        let (is_open, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared = Shared { source, opens_within, is_open, has_failed, figures };
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
        let read = ask(&mut self.queue.waiting.lock().answers, elsewhere, &self.figures.answers);
        self.queue.news.notify_one();
        read
    }

    fn look_up(&self, look_up: Box<LookUp>) -> FoundCommand {
        let read = ask(&mut self.queue.waiting.lock().commands, look_up, &self.figures.look_ups);
        self.queue.news.notify_one();
        read
    }

    fn history_from(&self) -> Option<&HistoryFrom> {
        Some(&self.shown)
    }
}

impl Drop for EndedReaders {
    fn drop(&mut self) {
        {
            // Under the lock, so that no reader sleeps without having seen it.
            let mut waiting = self.queue.waiting.lock();
            self.queue.stop.set();
            (waiting.commands, waiting.answers) = Default::default();
        }
        self.queue.news.notify_all();
        for thread in self.threads.drain(..) {
            // A panic has ended the process.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn new(readers: usize) -> Queue {
        Queue {
            answers_max: readers.saturating_sub(1).max(1),
            waiting: Mutex::default(),
            news: Condvar::new(),
            stop: Stop::new(),
        }
    }

    /// An answer was read: its reader takes the next request.
    fn answered(&self) {
        self.waiting.lock().answers_read -= 1;
    }

    /// The next request; `None`: the readers end.
    fn next(&self) -> Option<Next> {
        let mut waiting = self.waiting.lock();
        loop {
            if self.stop.is_set() {
                return None;
            }
            if let Some(command) = waiting.commands.pop_front() {
                return Some(Next::Command(command));
            }
            if waiting.answers_read < self.answers_max
                && let Some(answer) = waiting.answers.pop_front()
            {
                waiting.answers_read += 1;
                return Some(Next::Answer(answer));
            }
            self.news.wait(&mut waiting);
        }
    }
}

/// A method of a source.
type Read<S, A, T> = fn(&S, A, GivenUp<'_>) -> Result<T, <S as EndedSource>::Error>;

/// What the readers share.
struct Shared<S> {
    source: S,
    opens_within: Duration,
    /// It was open when it was last read.
    is_open: AtomicBool,
    /// The last request was not read.
    has_failed: AtomicBool,
    figures: Arc<ReadFigures>,
}

/// Whether a look-up found a row.
fn has_found(found: &Envelope<()>) -> Outcome {
    match &found.command {
        Command::Found(found) if !found.has_rows() => Outcome::Nothing,
        _ => Outcome::Found,
    }
}

impl<S: EndedSource> Shared<S> {
    /// Serves requests until the end.
    fn serve(&self, queue: &Queue) {
        while let Some(next) = queue.next() {
            match next {
                Next::Command(asked) => {
                    self.serve_one(asked, &queue.stop, S::look_up, (&self.figures.look_ups, has_found));
                }
                Next::Answer(asked) => {
                    self.serve_one(asked, &queue.stop, S::complete, (&self.figures.answers, |_| Outcome::Found));
                    queue.answered();
                }
            }
        }
    }

    fn serve_one<A: Clone, T: Send>(
        &self,
        asked: Asked<A, T>,
        stop: &Stop,
        read: Read<S, A, T>,
        (figures, found): (&Reads, fn(&T) -> Outcome),
    ) {
        let Asked { what, asked_at, receiver } = asked;
        let is_given_up = || receiver.is_closed() || stop.is_set();
        if is_given_up() {
            return;
        }
        // A panic is a defect of one request: its receiver is closed, and the reader goes on.
        let read = catch_unwind(AssertUnwindSafe(|| self.read(*what, asked_at, &is_given_up, read)));
        let Ok(read) = read else { return };
        if read.is_err() && is_given_up() {
            return;
        }
        self.note(read.as_ref().err());
        figures.note(read.as_ref().map_or(Outcome::Unreadable, found), asked_at.elapsed());
        // The receiver may have given up.
        let _ = receiver.send(read.map_err(|_| Unread::Unreadable));
    }

    fn read<A: Clone, T>(
        &self,
        what: A,
        asked_at: Instant,
        is_given_up: GivenUp<'_>,
        read: Read<S, A, T>,
    ) -> Result<T, S::Error> {
        // Only a source that may not be open is asked again, and needs a copy.
        while !self.is_open.load(Ordering::Relaxed) {
            let found = read(&self.source, what.clone(), is_given_up);
            match &found {
                Err(error) if S::is_opening(error) && asked_at.elapsed() < self.opens_within && !is_given_up() => {
                    std::thread::sleep(OPEN_CHECK_EVERY);
                }
                _ => {
                    self.is_open.store(found.as_ref().err().is_none_or(S::is_lost), Ordering::Relaxed);
                    return found;
                }
            }
        }
        let found = read(&self.source, what, is_given_up);
        if found.as_ref().is_err_and(S::is_opening) {
            self.is_open.store(false, Ordering::Relaxed);
        }
        found
    }

    /// Logs the first failure of several, and the end of them. That a user's rows are lost says nothing about those of others.
    fn note(&self, failure: Option<&S::Error>) {
        if failure.is_some_and(S::is_lost) {
            return;
        }
        if self.has_failed.swap(failure.is_some(), Ordering::Relaxed) == failure.is_some() {
            return;
        }
        match failure {
            Some(error) => tracing::warn!(%error, "orders, trades and positions that have left memory cannot be read"),
            None => tracing::info!("orders, trades and positions that have left memory are read again"),
        }
    }
}

#[cfg(test)]
mod tests;
