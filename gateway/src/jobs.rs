//! Jobs: all that a server does now and then, beside its orders. The table of them is [`before_recovery`] and
//! [`table`]: a row says how long the job sleeps at most, its priority, what its panic does, and when a stop ends it.
//!
//! Each job has a thread of its own, and all have the same life (`host::job`). Adding one is a file with its `impl Work`
//! and a row of the table; what it may use of the server is [`Server`]. A job must not delay an order: work on files is
//! paced (`journal::paced`).
//!
//! | Job | Work |
//! |---|---|
//! | `prefault` | memory is resident before the allocator needs it (`journal::prefault`) |
//! | `history` | the price history, in memory and in files (`history`) |
//! | `spares` | segments ready for the log; releases those that snapshots cover (`journal::spares`) |
//! | `keeper` | snapshots and digests of the state (`journal::checkpoint`); ended rows move to the history store (`journal::mover`) |
//! | `archive` | hours of the recording become hours of the archive; old ones are removed ([`archive`]) |
//! | `exports` | removes exports of the archive after a day (`simulation::exports`) |
//! | `feed` | polls the venue; books, markets, and the matching cycle (`venue::feed`) |
//! | `football` | facts of football, read again when their files change (`football::folder`) |
//! | `status` | a sample of the uptime in each minute, and the file of incidents ([`crate::uptime`]) |
//! | `backtest` | runs back-tests and removes old rows of them; one for each of `simulation.threads`, and one if that is 0 (`simulation::runner`) |
//! | `alerts` | delivers alerts by mail, to chats and to webhooks (`integrations::dispatcher`) |
//! | `last` | the snapshot of a clean stop; not in the table, since the stop starts it |
//!
//! # Threads and tasks that are not jobs
//!
//! - Shards, committer and sync thread: an order waits for each of them, and each is woken and ended in its own way
//!   (`layout.rs`).
//! - The IO threads and the tasks on them, such as the sweeps of sockets (`edge::ws`): they belong to sockets, whose
//!   state never leaves its thread.
//! - The admin listener and its backups: they sleep until a request comes.
//! - The thread of calls to a payment provider (`billing`): it sleeps until a user wants a page, and ends with the server.
//! - Connections to venues, their crawls, and the recorder: they begin and end with an open venue, which the feed owns.
//! - The writer of log lines: the process has it before a server starts and after it has stopped.

pub mod archive;
mod feed;
mod last;

pub use last::last;

use self::archive::Keeping;
use crate::boot_error::{BootError, io};
use crate::config::Config;
use crate::listeners::ServerLinks;
use crate::uptime::{self, Measuring};
use ::football::folder::{self, Folder};
use ::history::{History, Reader};
use ::integrations::dispatcher::{self, Dispatcher};
use ::simulation::runner::{self, Runner};
use feed::Polling;
use host::job::{Job, JobWaker, RunningJob};
use host::leap::Leap;
use host::thread::Stop;
use journal::checkpoint::Keeper;
use journal::digests::DigestRequests;
use journal::mover::Mover;
use journal::paced::{Paced, Rests};
use journal::prefault::{self, Loading, Prefault};
use journal::spares::{Covered, Spares};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use tokio::sync::oneshot;
use venue::feed::{FeedParts, SLEEP_MAX};
use wal::{Files, Marks, Preparer, Snapshots};

/// Longest sleep of the jobs of the log between two checks.
const LOG_CHECK_EVERY: Duration = Duration::from_millis(250);
/// How often old exports are looked for.
const EXPORTS_CHECK_EVERY: Duration = Duration::from_secs(600);
/// Longest sleep of the history: fills are counted within it.
const FILLS_WITHIN: Duration = Duration::from_secs(1);

/// When a stop ends a job. The phases follow each other in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Before the shards end: the job sends commands or facts. The stop waits for it for a few seconds, and then
    /// continues without it.
    BeforeShards,
    /// After the log has ended: the job reads it. Its flag is set in the phase before, so that no record of the stop
    /// itself is read.
    AfterLog,
    /// After the snapshot of the stop, because the job holds the lock of the directory.
    AfterSnapshot,
    /// After all of these; the stop waits for it.
    Last,
    /// Its flag is set last, and the stop does not wait for the job: it only reads, or leaves nothing that is not whole,
    /// so it may end at any point.
    WithProcess,
}

const ENDS: usize = End::WithProcess as usize + 1;

/// The stop flags of the jobs, one for each [`End`].
#[derive(Default)]
pub struct Stops([Stop; ENDS]);

impl Stops {
    pub fn of(&self, end: End) -> &Stop {
        &self.0[end as usize]
    }
}

/// The parts of a server that every job may use.
pub struct Server<'a> {
    pub config: &'a Config,
    /// The marks of the log.
    pub marks: &'a Marks,
    /// What the log may release; for pins.
    pub covered: &'a Covered,
    pub stops: &'a Stops,
    /// The clock check of this start.
    pub leap: &'a Arc<Leap>,
}

/// The parts of the log that belong to its jobs.
pub struct LogParts {
    pub storage: Files,
    pub preparer: Preparer<Files>,
    /// The committer wakes the job that makes spares.
    pub low: JobWaker,
    pub snapshots: Snapshots<Files>,
    pub requests: DigestRequests,
    /// Takes the keeper when it has ended, for the snapshot of the stop.
    pub handover: SyncSender<Keeper<Paced<Files>>>,
}

/// The parts of the other jobs.
pub struct OwnParts {
    pub log: LogParts,
    /// Moves ended rows to the history store; `None`: they stay in memory.
    pub mover: Option<Mover>,
    pub history: History,
    pub reader: Reader,
    pub feed: FeedParts<ServerLinks>,
    /// `None`: there is nothing to keep.
    pub archive: Option<Keeping>,
    /// Notified when the feed's first frames are applied; dropped if it ends before that.
    pub is_fed: oneshot::Sender<()>,
    /// Runs back-tests, if this server does.
    pub runner: Option<Arc<Runner>>,
    /// `None`: there is no provider.
    pub football: Option<Folder>,
    /// `None`: nothing is measured.
    pub status: Option<Measuring>,
    pub alerts: Dispatcher,
}

/// A row of the table.
pub struct Row {
    end: End,
    job: Job,
}

/// Jobs that start before the log is read.
pub fn before_recovery(config: &Config, loading: &Loading) -> Vec<Row> {
    let prefault = Prefault::new(config.engine.prefault_bytes, loading);
    let row = prefault.map(|prefault| {
        let job = Job::new("prefault", prefault::MEMORY_AGAIN, move || prefault);
        // Not of the idle scheduling class: a process has ended, and its log is unlocked, only after each of its
        // threads has run once more.
        let job = job.low_priority().spare(
            "memory is no longer prefaulted; orders may wait for page faults until the server is restarted",
            || {},
        );
        Row { end: End::WithProcess, job }
    });
    row.into_iter().collect()
}

/// All other jobs, in the order of their start.
pub fn table(server: &Server<'_>, own: OwnParts) -> Vec<Row> {
    let OwnParts { log, mover, history, reader, feed, archive: keeping, is_fed, runner, football, status, alerts } =
        own;
    let LogParts { storage, preparer, low, snapshots, requests, handover } = log;
    let spares = spares(server, preparer, low);
    let keeper = keeper(server, storage, snapshots).answering(requests).handed_to(handover);
    let keeper = match mover {
        Some(mover) => keeper.moving(mover),
        None => keeper,
    };
    let lost = "the price history has failed; there are no charts until the server is restarted";
    let history = Job::new("history", FILLS_WITHIN, move || history).spare(lost, move || reader.lose());
    let keeping = keeping.map(|keeping| {
        let lost = "no hours of the archive are made until the server is restarted";
        let job = Job::new("archive", archive::CHECK_EVERY, move || keeping).low_priority().spare(lost, || {});
        Row { end: End::WithProcess, job }
    });
    let exports = crate::simulation::sweep(server.config, &feed.clock).map(|sweep| {
        let job = Job::new("exports", EXPORTS_CHECK_EVERY, move || sweep).low_priority();
        Row { end: End::WithProcess, job: job.spare("old exports stay until the server is restarted", || {}) }
    });
    let football = football.map(|folder| {
        let lost = "facts of football are not read again until the server is restarted";
        let job = Job::new("football", folder::LOOK_EVERY, move || folder).low_priority().spare(lost, || {});
        Row { end: End::WithProcess, job }
    });
    let status = status.map(|measuring| {
        let lost = "the uptime is not measured, and incidents are not read again, until the server is restarted";
        let job = Job::new("status", uptime::LOOK_EVERY, move || measuring).spare(lost, || {});
        Row { end: End::WithProcess, job }
    });
    let mut rows = vec![
        Row { end: End::Last, job: history },
        Row { end: End::AfterSnapshot, job: Job::new("spares", LOG_CHECK_EVERY, move || spares) },
        Row { end: End::AfterLog, job: Job::new("keeper", LOG_CHECK_EVERY, move || keeper).low_priority() },
        Row { end: End::BeforeShards, job: Job::new("feed", SLEEP_MAX, move || Polling::new(feed, is_fed)) },
    ];
    let lost = "no alerts are delivered until the server is restarted";
    let alerts = Job::new("alerts", dispatcher::SLEEP_MAX, move || alerts).low_priority().spare(lost, || {});
    rows.push(Row { end: End::BeforeShards, job: alerts });
    rows.extend(keeping);
    rows.extend(exports);
    rows.extend(football);
    rows.extend(status);
    rows.extend(runner.iter().flat_map(Runner::workers).map(|worker| {
        let lost = "a thread of back-tests has failed; fewer of them run until the server is restarted";
        let job = Job::new("backtest", runner::SLEEP_MAX, move || worker).low_priority().spare(lost, || {});
        Row { end: End::BeforeShards, job }
    }));
    rows
}

fn spares(server: &Server<'_>, preparer: Preparer<Files>, low: JobWaker) -> Spares {
    let rests = Rests::long(server.marks.clone(), server.stops.of(End::AfterSnapshot).clone());
    let preparer = preparer.resting(server.config.log_size().urgent_bytes(), move || rests.breathe());
    Spares::new(preparer, server.covered.clone()).woken_by(low)
}

fn keeper(server: &Server<'_>, storage: Files, snapshots: Snapshots<Files>) -> Keeper<Paced<Files>> {
    let Server { config, marks, covered, stops, leap } = *server;
    let rests = Rests::new(marks.clone(), stops.of(End::AfterLog).clone());
    let storage = Paced { storage, rests: rests.clone() };
    let snapshots = snapshots.through(storage.clone());
    let segments = config.journal.checkpoint_segments as usize;
    let keeper = Keeper::new(storage, snapshots, marks.clone(), segments, covered.clone());
    let keeper = keeper.resting(rests).writing(config.rules.formats);
    keeper.forgetting(config.rules.client_ids_us).doubting(leap.clone())
}

/// The jobs that run.
#[derive(Default)]
pub struct Jobs {
    stops: Stops,
    running: Vec<(End, RunningJob)>,
}

impl Jobs {
    pub fn stops(&self) -> &Stops {
        &self.stops
    }

    /// Starts the jobs of these rows in their order.
    ///
    /// # Errors
    /// [`BootError::Io`] if a thread cannot be created; the jobs before it run.
    pub fn start(&mut self, rows: Vec<Row>) -> Result<(), BootError> {
        for Row { end, job } in rows {
            let what = format!("the thread of the job {}", job.name());
            self.running.push((end, job.start(self.stops.of(end)).map_err(io(what))?));
        }
        Ok(())
    }

    /// Sets the flag of a phase and wakes its jobs; does not wait for them.
    pub fn stop(&self, end: End) {
        self.stops.of(end).set();
        self.running.iter().filter(|(of, _)| *of == end).for_each(|(_, job)| job.stop());
    }

    /// Stops the jobs of a phase, and waits for each at most `time` while other tasks of this thread run.
    pub async fn end_within(&mut self, end: End, time: Duration) {
        self.stop(end);
        for job in self.taken(end) {
            let name = job.name();
            if !job.ended_within(time).await {
                tracing::warn!(job = name, "a job did not end in time; the stop continues without it");
            }
        }
    }

    /// Stops the jobs of a phase, and blocks until they have ended.
    pub fn end(&mut self, end: End) {
        self.stop(end);
        self.taken(end).into_iter().for_each(RunningJob::join);
    }

    fn taken(&mut self, end: End) -> Vec<RunningJob> {
        self.running.extract_if(.., |(of, _)| *of == end).map(|(_, job)| job).collect()
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop(End::WithProcess);
    }
}

#[cfg(test)]
mod tests;
