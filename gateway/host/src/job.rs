//! Jobs: work that a server does now and then, beside its orders.
//!
//! A job has a thread of its own. It makes turns, and sleeps between them until it is woken or a time has passed. All
//! jobs have the same life: the thread starts, makes turns until its stop flag is set or its work is over, and ends the
//! work ([`Work::end`]). A turn that fails is logged with the name of the job and repeated after a pause. A panic ends
//! the process, or only the job if the server can do without it ([`Job::spare`]).

use crate::failing::Failing;
use crate::thread::{self, Stop};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How often [`RunningJob::join_within`] checks whether the job has ended.
const END_CHECK_EVERY: Duration = Duration::from_millis(2);

/// What a job does. Made on the job's thread, or moved there.
pub trait Work {
    /// Why a turn failed.
    type Error: fmt::Display;

    /// The log line of a failed turn; the error and the name of the job are its fields.
    const FAILED: &'static str = "a turn failed";

    /// One turn. Long ones check `stop`, which is set when the job must end.
    ///
    /// # Errors
    /// The job's own. The next turn follows after a pause of 250 ms, which doubles with each failed turn up to 4 s.
    fn take_turn(&mut self, stop: &Stop) -> Result<Next, Self::Error>;

    /// Called once after the last turn.
    fn end(self)
    where
        Self: Sized,
    {
    }

    /// Wakes the job's thread, if other threads do so.
    fn waker(&self) -> Option<&JobWaker> {
        None
    }
}

/// What follows a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next turn follows immediately.
    Again,
    /// Nothing is left to do. The thread sleeps for at most the job's `every`; a wake-up ends the sleep.
    Sleep,
    /// As [`Next::Sleep`], for at most this time.
    SleepFor(Duration),
    /// As [`Next::Sleep`], for a turn that did no work. It does not reset the pauses that grow with failed turns.
    Wait,
    /// There are no further turns.
    Over,
}

/// Ends the sleep of a job's thread. May be cloned and used before the job starts: the first turn then finds everything.
#[derive(Clone, Debug, Default)]
pub struct JobWaker(Arc<OnceLock<Thread>>);

impl JobWaker {
    /// Never blocks. A wake-up during a turn lets the next turn follow without a sleep.
    pub fn wake(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }

    /// From here on this thread is the one that is woken.
    fn begin(&self) {
        // Each waker belongs to one work, and so to one thread.
        let _ = self.0.set(std::thread::current());
    }
}

/// A job that has not started.
pub struct Job {
    name: &'static str,
    run: Box<dyn FnOnce(&Stop) + Send>,
    is_low_priority: bool,
    /// Called after a panic, if the server can do without the job.
    lost: Option<Box<dyn FnOnce() + Send>>,
}

impl Job {
    /// A job whose thread has this name, sleeps for at most `every` between two turns, and does the work that `make`
    /// makes on that thread.
    pub fn new<W: Work>(name: &'static str, every: Duration, make: impl FnOnce() -> W + Send + 'static) -> Job {
        let run = Box::new(move |stop: &Stop| run(name, every, make(), stop));
        Job { name, run, is_low_priority: false, lost: None }
    }

    /// For work that takes seconds of a core and that no client waits for: orders go first.
    pub fn low_priority(self) -> Job {
        Job { is_low_priority: true, ..self }
    }

    /// The server continues after a panic of this job; then `says` is logged, and `lost` is called.
    pub fn spare(self, says: &'static str, lost: impl FnOnce() + Send + 'static) -> Job {
        let name = self.name;
        let lost = move || {
            lost();
            tracing::error!(job = name, "{says}");
        };
        Job { lost: Some(Box::new(lost)), ..self }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Starts the job's thread. `stop` ends the job after its turn; several jobs may have the same flag.
    ///
    /// # Errors
    /// The system's, if no thread can be created.
    pub fn start(self, stop: &Stop) -> io::Result<RunningJob> {
        let Job { name, run, is_low_priority, lost } = self;
        let (ending, ended) = oneshot::channel();
        let stop_of_thread = stop.clone();
        let body = move || {
            // Dropped when the thread ends, in any way.
            let _ending = ending;
            if is_low_priority {
                thread::lower_priority();
            }
            run(&stop_of_thread);
        };
        let thread = match lost {
            Some(lost) => thread::spawn_spare(name, body, lost)?,
            None => thread::spawn(name, body)?,
        };
        Ok(RunningJob { name, stop: stop.clone(), thread, ended })
    }
}

fn run<W: Work>(name: &str, every: Duration, mut work: W, stop: &Stop) {
    if let Some(waker) = work.waker() {
        waker.begin();
    }
    let mut failing = Failing::default();
    while !stop.is_set() {
        let next = match work.take_turn(stop) {
            Ok(next) => next,
            Err(error) => {
                failing.again(name, &error, W::FAILED, stop);
                continue;
            }
        };
        if next != Next::Wait {
            failing = Failing::default();
        }
        match next {
            Next::Again => {}
            Next::Sleep | Next::Wait => std::thread::park_timeout(every),
            Next::SleepFor(time) => std::thread::park_timeout(time.min(every)),
            Next::Over => break,
        }
    }
    work.end();
}

/// A job that was started. Dropping this does not end it.
pub struct RunningJob {
    name: &'static str,
    stop: Stop,
    thread: JoinHandle<()>,
    /// Its sender is dropped when the job has ended.
    ended: oneshot::Receiver<Infallible>,
}

impl RunningJob {
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Sets the stop flag and wakes the thread; does not wait.
    pub fn stop(&self) {
        self.stop.set();
        self.thread.thread().unpark();
    }

    /// Waits until the job has ended, at most this long, while other tasks of this thread run. Returns whether it has.
    pub async fn ended_within(self, time: Duration) -> bool {
        tokio::time::timeout(time, self.ended).await.is_ok()
    }

    /// Blocks until the job has ended. A panic has been logged, or has ended the process.
    pub fn join(self) {
        drop(self.thread.join());
    }

    /// Blocks until the job has ended, at most this long. Returns whether it has.
    pub fn join_within(self, time: Duration) -> bool {
        let started = Instant::now();
        while !self.thread.is_finished() {
            if started.elapsed() >= time {
                return false;
            }
            std::thread::sleep(END_CHECK_EVERY);
        }
        true
    }
}

#[cfg(test)]
mod tests;
