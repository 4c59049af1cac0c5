//! The threads of log and shards: started in order, stopped in reverse order, with the jobs in between.

use crate::boot_error::{BootError, io};
use crate::config::Config;
use crate::jobs::{self, End, Jobs, LogParts};
use crate::layout::{self, Wake};
use crate::listeners::Core;
use crate::listeners::{CommitFigures, CommitLane, Committer, CoreHere, FeedLane};
use edge::engine_client::EngineClient;
use engine::command::Envelope;
use engine::print::PrintLane;
use engine::ring::Ring;
use engine::shard::Shard;
use host::clock::Clock;
use host::job::JobWaker;
use host::thread::Stop;
use journal::checkpoint::{Keeper, LAST_WITHIN};
use journal::commit::Reply;
use journal::digests::Digests;
use journal::paced::Paced;
use journal::recover::RecoverError;
use journal::spares::Covered;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;
use wal::{Dir, Files, Marks, Prepared, Recovered, Running};

/// Slots of a shard's inbox; a full one is `SERVER_BUSY`.
const INBOX_SLOTS: usize = 4_096;
/// How long a stop waits for each job that sends to the shards.
const END_MAX: Duration = Duration::from_secs(5);
/// How long a stop waits for the last snapshot. The keeper gives up earlier, unless a device that does not respond
/// blocks it.
const LAST_MAX: Duration = Duration::from_secs(7);
const _: () = assert!(LAST_MAX.as_millis() > LAST_WITHIN.as_millis());

/// An inbox for each shard.
pub type Inboxes = Arc<[Arc<Ring<Envelope<Reply>>>]>;

/// The parts that [`Runtime::start`] needs.
pub struct Parts<'a> {
    pub config: &'a Config,
    pub clock: &'a Clock,
    pub dir: Dir<Files>,
    /// The log, positioned after its last record.
    pub log: Recovered<Files>,
    pub shards: Vec<Shard<Reply>>,
    pub figures: Arc<CommitFigures>,
}

/// The threads of log and shards.
pub struct Runtime {
    stops: Stops,
    marks: Marks,
    instance: [u8; 16],
    covered: Covered,
    digests: Digests,
    syncer: JoinHandle<Result<(), wal::Error>>,
    /// Gets the keeper when it has ended, unless the state is unsound.
    kept: Receiver<Keeper<Paced<Files>>>,
    core: CoreThreads,
    inboxes: Inboxes,
    prints: Vec<Arc<PrintLane>>,
    lane: CommitLane,
    clock: Clock,
}

/// The stop flags of the threads, set one after the other during a stop.
#[derive(Default)]
struct Stops {
    shards: Stop,
    commit: Stop,
    sync: Stop,
}

/// The threads of shards and committer.
enum CoreThreads {
    Inline(Rc<RefCell<Core>>),
    Threaded { shards: Vec<JoinHandle<()>>, committer: JoinHandle<()> },
}

impl Runtime {
    /// Starts log, shards and committer. The log needs the jobs of the returned parts: without them it gets no spares.
    /// The receiver gets a failure of the log, which is final.
    ///
    /// # Errors
    /// [`BootError`] if a file cannot be opened or a thread cannot be created.
    pub fn start(parts: Parts<'_>) -> Result<(Runtime, LogParts, mpsc::UnboundedReceiver<String>), BootError> {
        let Parts { config, clock, dir, log, shards, figures } = parts;
        let stops = Stops::default();
        // Which thread a sync wakes depends on the layout, which needs the log first.
        let synced = Arc::new(Wake::default());
        let waker = synced.clone();
        let running = dir.start(log, clock.now().0, Box::new(move |_| waker.wake())).map_err(RecoverError::from)?;
        let Running { log, syncer, mut preparer, snapshots, marks, instance, .. } = running;
        let (fatal, failed) = mpsc::unbounded_channel();
        let syncer =
            layout::spawn_syncer(syncer, config.journal.durability, figures.clone(), stops.sync.clone(), fatal)
                .map_err(io("the sync thread"))?;
        let size = config.log_size();
        let formats = config.rules.formats;
        let lane = CommitLane::new(size, figures.clone()).writing(formats.record());
        let mut committer = Committer::new(log, config.journal.durability, formats.record(), size, figures);
        // The last segment may be almost full and no spare left: the first orders must not be refused for lack of room.
        // On a full disk the start continues nevertheless, for reads.
        while committer.is_low() && preparer.turn().map_err(RecoverError::from)? == Prepared::One {}
        let storage = Files::open_existing(&config.data.dir).map_err(RecoverError::from)?;
        let low = JobWaker::default();
        committer.wake_when_low(low.clone());
        let ((digests, requests), (handover, kept)) = (Digests::channel(), sync_channel(1));
        let log = LogParts { storage, preparer, low, snapshots, requests, handover };
        let inboxes: Inboxes = shards.iter().map(|_| Arc::new(Ring::new(INBOX_SLOTS))).collect();
        let prints = shards.iter().map(Shard::print_lane).collect();
        let core = match <[Shard<Reply>; 1]>::try_from(shards) {
            Ok([shard]) => {
                let core = Core::new(shard, committer, inboxes[0].clone(), lane.ring().clone());
                let core = Rc::new(RefCell::new(core));
                layout::drive(core.clone(), inboxes[0].clone(), &lane, &synced, clock.clone());
                CoreThreads::Inline(core)
            }
            Err(shards) => {
                let ring = lane.ring().clone();
                synced.set(Box::new(move || ring.wake()));
                let shards = layout::spawn_shards(shards, &inboxes, &lane, clock, &stops.shards);
                let committer = layout::spawn_committer(committer, &lane, clock, &stops.commit);
                CoreThreads::Threaded {
                    shards: shards.map_err(io("a shard's thread"))?,
                    committer: committer.map_err(io("the committer's thread"))?,
                }
            }
        };
        let clock = clock.clone();
        let covered = Covered::default();
        let runtime =
            Runtime { stops, marks, instance, covered, digests, syncer, kept, core, inboxes, prints, lane, clock };
        Ok((runtime, log, failed))
    }

    /// The engine's client for the thread that called [`Runtime::start`].
    pub fn client(&self) -> EngineClient {
        match &self.core {
            CoreThreads::Inline(core) => EngineClient::inline(Rc::new(CoreHere(core.clone())), self.clock.clone()),
            CoreThreads::Threaded { .. } => EngineClient::threaded(self.inboxes.clone(), self.clock.clone()),
        }
    }

    /// The feed's connection to log and shards.
    pub fn feed_lane(&self) -> FeedLane {
        let ring = self.lane.ring().clone();
        FeedLane {
            commits: self.lane.clone(),
            payload_bytes_max: self.lane.payload_bytes_max(),
            wake_log: Arc::new(move || ring.wake()),
            inboxes: self.inboxes.to_vec(),
            prints: self.prints.clone(),
        }
    }

    /// The marks of the log.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Which copy of the directory this is.
    pub fn instance(&self) -> [u8; 16] {
        self.instance
    }

    /// The part of the log that snapshots cover, which the log may remove. A backup pins what it still needs.
    pub fn covered(&self) -> &Covered {
        &self.covered
    }

    /// Requests digests of the state.
    pub fn digests(&self) -> &Digests {
        &self.digests
    }

    /// The inboxes of the threaded layout.
    pub fn inboxes(&self) -> &Inboxes {
        &self.inboxes
    }

    /// Stops in order: jobs that send to the shards, shards, committer with the clean-stop record, last sync, the
    /// keeper, last snapshot, other jobs.
    ///
    /// # Errors
    /// [`BootError::Journal`] if the last sync failed: records that it should have made durable may be lost.
    pub async fn end(self, mut jobs: Jobs) -> Result<(), BootError> {
        let Runtime { stops, marks, syncer, kept, core, inboxes, lane, clock, .. } = self;
        jobs.stop(End::AfterLog);
        // The feed's last record still passes through the core, which may run on this thread.
        jobs.end_within(End::BeforeShards, END_MAX).await;
        stops.shards.set();
        inboxes.iter().for_each(|inbox| inbox.wake());
        match core {
            CoreThreads::Inline(core) => core.borrow_mut().stop(clock.now()),
            CoreThreads::Threaded { shards, committer } => {
                // A panic in one of them has aborted the process.
                shards.into_iter().for_each(|shard| drop(shard.join()));
                stops.commit.set();
                lane.ring().wake();
                drop(committer.join());
            }
        }
        stops.sync.set();
        marks.wake();
        // A panic of the thread has aborted the process.
        let synced = syncer.join().unwrap_or(Ok(())).map_err(|error| BootError::Journal(error.to_string()));
        jobs.end(End::AfterLog);
        // If the snapshot is still being written, the lock is kept until the process ends: another process must not
        // write meanwhile.
        if kept.try_recv().ok().is_none_or(write_last) {
            jobs.end(End::AfterSnapshot);
        }
        jobs.end(End::Last);
        synced
    }
}

/// Writes the last snapshot of a clean stop. Returns false if that did not end in time and still runs.
fn write_last(keeper: Keeper<Paced<Files>>) -> bool {
    // Without a thread there is no snapshot, but the log has everything.
    let Ok(last) = jobs::last(keeper).start(&Stop::new()) else { return true };
    let is_over = last.join_within(LAST_MAX);
    if !is_over {
        tracing::warn!("the snapshot at the stop did not end in time; the next start reads more of the log");
    }
    is_over
}
