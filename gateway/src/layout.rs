//! Which thread runs what. Two layouts (gateway/docs/decisions.md §14): inline, where shard and committer share the
//! thread that reads the sockets, and threaded, with a thread for each shard and one for the committer. In both, only
//! the sync thread waits for the disk. Segments, snapshots, books and markets are the work of jobs (`jobs.rs`).

use crate::listeners::Core;
use crate::listeners::{CommitFigures, CommitLane, Committer};
use edge::api::health::{Measured, measure_when_asked};
use edge::app::{App, Edge};
use edge::engine_client::EngineClient;
use edge::http::server;
use engine::command::Envelope;
use engine::ring::Ring;
use engine::shard::Shard;
use host::clock::Clock;
use host::thread::{self, Stop};
use journal::commit::CommitListener as _;
use journal::commit::Durability;
use journal::commit::Reply;
use journal::core::WAITING_CHECK_EVERY;
use journal::loops::{self, SyncTurns};
use std::cell::RefCell;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, watch};
use wal::{Files, Progress, Syncer};

/// Longest sleep of a thread that waits for work: a stop is noticed within it.
const PARK_MAX: Duration = Duration::from_millis(250);

/// Rest of the sync thread after a sync that no response waits for (`process`). A sync makes pages read-only and
/// interrupts every core: without a rest each order would pay for both. A loss of power loses only what `process` never
/// promised to keep: the rest, a sync on either side of it, and, of a busy log, the last page, for up to
/// [`wal::LEFT_TURNS_MAX`] rests.
const SYNC_REST: Duration = Duration::from_millis(5);

/// Called by the sync thread after a sync; set once the layout is known.
#[derive(Default)]
pub struct Wake(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl Wake {
    pub fn set(&self, wake: Box<dyn Fn() + Send + Sync>) {
        assert!(self.0.set(wake).is_ok(), "the waker must be set once");
    }

    pub fn wake(&self) {
        if let Some(wake) = self.0.get() {
            wake();
        }
    }
}

/// The only thread that waits for the disk. The first failure is final and sent to `fatal`; the thread's result is
/// whether the last sync, that of a clean stop, failed.
///
/// # Errors
/// The system's, if no thread can be created. Likewise for the functions below.
pub fn spawn_syncer(
    syncer: Syncer<Files>,
    durability: Durability,
    figures: Arc<CommitFigures>,
    stop: Stop,
    fatal: mpsc::UnboundedSender<String>,
) -> io::Result<JoinHandle<Result<(), wal::Error>>> {
    thread::spawn("sync", move || {
        wal::take_short_slice();
        let mut syncing = Syncing { syncer, durability, figures, progress: Progress::Idle };
        loops::sync(&mut syncing, || stop.is_set()).inspect_err(|error| {
            tracing::error!(%error, "the log could not be made durable; the server stops, and the next start recovers");
            // The receiver is gone only when the process is ending anyway.
            let _ = fatal.send(error.to_string());
        })?;
        syncing
            .syncer
            .finish()
            .map(drop)
            .inspect_err(|error| tracing::error!(%error, "the last sync failed; the next start recovers"))
    })
}

/// The state of the sync thread.
struct Syncing {
    syncer: Syncer<Files>,
    durability: Durability,
    figures: Arc<CommitFigures>,
    /// The result of the last turn.
    progress: Progress,
}

impl SyncTurns for Syncing {
    type Error = wal::Error;

    fn turn(&mut self) -> Result<(), wal::Error> {
        let timed = self.figures.listener.times_sync().map(|timer| (timer, Instant::now()));
        self.progress = match self.durability {
            // No response waits for these syncs, so no append should wait for one.
            Durability::Process => self.syncer.turn_of_full_pages()?,
            Durability::Power => self.syncer.turn()?,
        };
        if let (Some((timer, started)), Progress::Synced(_)) = (timed, self.progress) {
            timer.note(started.elapsed());
        }
        Ok(())
    }

    fn rest(&mut self) {
        match (self.progress, self.durability) {
            (Progress::Synced(_) | Progress::Left, Durability::Process) => std::thread::sleep(SYNC_REST),
            _ => self.syncer.wait(PARK_MAX),
        }
    }
}

/// One thread for each shard.
pub fn spawn_shards(
    shards: Vec<Shard<Reply>>,
    inboxes: &[Arc<Ring<Envelope<Reply>>>],
    lane: &CommitLane,
    clock: &Clock,
    stop: &Stop,
) -> io::Result<Vec<JoinHandle<()>>> {
    let shards = shards.into_iter().zip(inboxes).enumerate();
    shards
        .map(|(index, (mut shard, inbox))| {
            let (inbox, mut lane, clock, stop) = (inbox.clone(), lane.of_shard(index), clock.clone(), stop.clone());
            thread::spawn(&format!("shard-{index}"), move || {
                while !stop.is_set() {
                    let more = shard.turn(&inbox, clock.now(), &mut lane);
                    lane.figures().note_orders(&shard);
                    if !more {
                        inbox.wait(if shard.holds_up() { WAITING_CHECK_EVERY } else { PARK_MAX });
                    }
                }
            })
        })
        .collect()
}

/// The thread that owns the log in the threaded layout. Ends with the clean-stop record.
pub fn spawn_committer(
    mut committer: Committer,
    lane: &CommitLane,
    clock: &Clock,
    stop: &Stop,
) -> io::Result<JoinHandle<()>> {
    let (ring, clock, stop) = (lane.ring().clone(), clock.clone(), stop.clone());
    thread::spawn("commit", move || {
        loops::commit(&mut committer, &ring, PARK_MAX, || stop.is_set());
        committer.stop(clock.now());
    })
}

/// The task that runs turns of the inline core for work of other threads, and for syncs that requests wait for.
pub fn drive(
    core: Rc<RefCell<Core>>,
    inbox: Arc<Ring<Envelope<Reply>>>,
    lane: &CommitLane,
    synced: &Wake,
    clock: Clock,
) {
    let notify = Arc::new(Notify::new());
    let wake = |notify: Arc<Notify>| Box::new(move || notify.notify_one()) as Box<dyn Fn() + Send + Sync>;
    inbox.set_waker(wake(notify.clone()));
    lane.ring().set_waker(wake(notify.clone()));
    // A sync wakes the core only if a request waits for one.
    let waiting = core.borrow().waiting();
    synced.set({
        let notify = notify.clone();
        Box::new(move || {
            if waiting.any() {
                notify.notify_one();
            }
        })
    });
    let commits = lane.ring().clone();
    tokio::task::spawn_local(async move {
        loop {
            if core.borrow_mut().turn(clock.now()) {
                // Sockets are served between two pieces of background work.
                tokio::task::yield_now().await;
                continue;
            }
            if inbox.arm() && commits.arm() {
                let holds_up = core.borrow().holds_up();
                let news = notify.notified();
                match holds_up {
                    // In both cases the waiting commands are checked.
                    true => drop(tokio::time::timeout(WAITING_CHECK_EVERY, news).await),
                    false => news.await,
                }
            }
        }
    });
}

/// Requests of measures to one IO thread.
pub type Asked = mpsc::Receiver<std::sync::mpsc::SyncSender<Measured>>;

/// Further threads that own sockets, besides the one that runs boot: one for each receiver of requests of measures.
/// Each returns how many connections it cut off.
pub fn spawn_io(
    asked: Vec<Asked>,
    listener: &TcpListener,
    app: &Arc<App>,
    inboxes: &Arc<[Arc<Ring<Envelope<Reply>>>]>,
    ending: &watch::Receiver<bool>,
) -> io::Result<Vec<JoinHandle<io::Result<usize>>>> {
    let spawn = |(index, asked): (usize, Asked)| {
        let index = index + 1;
        let (listener, app) = (listener.try_clone()?, app.clone());
        let (inboxes, ending) = (inboxes.clone(), ending.clone());
        thread::spawn(&format!("io-{index}"), move || {
            let engine = EngineClient::threaded(inboxes, app.reads.clock.clone());
            let engine = engine.with_ended(app.reads.ended.clone());
            let connections = app.front.connections.clone();
            let serving = async {
                let (listener, edge) = (tokio::net::TcpListener::from_std(listener)?, Rc::new(Edge::new(app, engine)));
                tokio::task::spawn_local(measure_when_asked(edge.clone(), asked));
                Ok(server::serve(listener, edge, connections, ending).await)
            };
            tokio::task::LocalSet::new().block_on(&host::runtime::runtime()?, serving)
        })
    };
    asked.into_iter().enumerate().map(spawn).collect()
}

#[cfg(test)]
mod tests;
