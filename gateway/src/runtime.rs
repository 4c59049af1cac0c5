//! The threads besides those that own sockets: started in order, stopped in reverse order.

use crate::boot::{BootError, io};
use crate::config::Config;
use crate::layout::{self, Wake};
use crate::listeners::Core;
use crate::listeners::{CommitFigures, CommitLane, Committer, CoreHere, FeedLane, ServerLinks};
use edge::engine_client::EngineClient;
use engine::command::Envelope;
use engine::print::PrintLane;
use engine::ring::Ring;
use engine::rules::FillModel;
use engine::shard::Shard;
use host::clock::Clock;
use host::thread::{self, Stop};
use journal::checkpoint::{Digests, Keeper, LAST_WITHIN};
use journal::commit::Reply;
use journal::paced::{Paced, Rests};
use journal::recover::RecoverError;
use journal::spares::{Covered, Spares};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use venue::feed::FeedParts;
use wal::{Dir, Files, Marks, Prepared, Recovered, Running};

/// Slots of a shard's inbox; a full one is `SERVER_BUSY`.
const INBOX_SLOTS: usize = 4_096;
/// How long a stop waits for the feed.
const END_MAX: Duration = Duration::from_secs(5);
/// How long a stop waits for the last snapshot. The keeper gives up earlier, unless a device that does not respond
/// blocks it.
const LAST_MAX: Duration = Duration::from_secs(7);
const _: () = assert!(LAST_MAX.as_millis() > LAST_WITHIN.as_millis());
/// How often a stop checks whether the last snapshot has ended.
const LAST_CHECK_EVERY: Duration = Duration::from_millis(2);

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

/// The threads besides the IO threads.
pub struct Runtime {
    stops: Stops,
    marks: Marks,
    instance: [u8; 16],
    covered: Covered,
    digests: Digests,
    syncer: JoinHandle<Result<(), wal::Error>>,
    spares: JoinHandle<()>,
    keeper: JoinHandle<Option<Keeper<Paced<Files>>>>,
    core: CoreThreads,
    inboxes: Inboxes,
    prints: Vec<Arc<PrintLane>>,
    lane: CommitLane,
    clock: Clock,
    feed: Option<FeedThread>,
}

/// The stop flags, set one after the other during a stop.
#[derive(Default)]
struct Stops {
    /// Feed and keeper.
    serving: Stop,
    shards: Stop,
    commit: Stop,
    sync: Stop,
    /// Last: with it goes the lock of the directory, to which the keeper may still write.
    spares: Stop,
}

/// The threads of shards and committer.
enum CoreThreads {
    Inline(Rc<RefCell<Core>>),
    Threaded { shards: Vec<JoinHandle<()>>, committer: JoinHandle<()> },
}

struct FeedThread {
    thread: JoinHandle<()>,
    /// Notified when the feed has ended.
    ended: oneshot::Receiver<()>,
}

impl Runtime {
    /// Starts log, shards and committer. The receiver gets a failure of the log, which is final.
    ///
    /// # Errors
    /// [`BootError`] if a file cannot be opened or a thread cannot be created.
    pub fn start(parts: Parts<'_>) -> Result<(Runtime, mpsc::UnboundedReceiver<String>), BootError> {
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
        let segments = config.journal.checkpoint_segments as usize;
        let covered = Covered::default();
        let stop = stops.spares.clone();
        let rests = Rests::long(marks.clone(), stop.clone());
        let spares = Spares::new(preparer.resting(size.urgent_bytes(), move || rests.breathe()), covered.clone());
        let spares = thread::spawn("spares", move || spares.run(&stop)).map_err(io("the thread of spares"))?;
        committer.wake_when_low(spares.thread().clone());
        let stop = stops.serving.clone();
        let rests = Rests::new(marks.clone(), stop.clone());
        let storage = Paced { storage, rests: rests.clone() };
        let snapshots = snapshots.through(storage.clone());
        let keeper =
            Keeper::new(storage, snapshots, marks.clone(), segments, covered.clone()).resting(rests).writing(formats);
        let (keeper, digests) = keeper.answering();
        let keeper =
            thread::spawn_low_priority("keeper", move || keeper.run(&stop)).map_err(io("the keeper's thread"))?;
        let inboxes: Inboxes = shards.iter().map(|_| Arc::new(Ring::new(INBOX_SLOTS))).collect();
        let crosses = config.rules.fill_model == FillModel::Cross;
        let prints = shards.iter().filter(|_| crosses).map(Shard::print_lane).collect();
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
        let runtime = Runtime {
            stops,
            marks,
            instance,
            covered,
            digests,
            syncer,
            spares,
            keeper,
            core,
            inboxes,
            prints,
            lane,
            clock,
            feed: None,
        };
        Ok((runtime, failed))
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

    /// What the log may release; for pins.
    pub fn covered(&self) -> &Covered {
        &self.covered
    }

    /// Requests digests of the state.
    pub fn digests(&self) -> &Digests {
        &self.digests
    }

    /// Ends the feed and the keeper when set.
    pub fn stop(&self) -> Stop {
        self.stops.serving.clone()
    }

    /// The inboxes of the threaded layout.
    pub fn inboxes(&self) -> &Inboxes {
        &self.inboxes
    }

    /// Starts the feed and waits until its first frames are applied.
    ///
    /// # Errors
    /// [`BootError::Feed`] if it ended before that, or [`BootError::Io`] without a thread.
    pub async fn start_feed(&mut self, parts: FeedParts<ServerLinks>) -> Result<(), BootError> {
        let (ready, is_ready) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let thread = layout::spawn_feed(parts, ready, ending).map_err(io("the feed's thread"))?;
        self.feed = Some(FeedThread { thread, ended });
        is_ready.await.map_err(|_| BootError::Feed)
    }

    /// Stops in order: feed, shards, committer with the clean-stop record, last sync, last snapshot.
    ///
    /// # Errors
    /// [`BootError::Journal`] if the last sync failed: records that it should have made durable may be lost.
    pub async fn end(self) -> Result<(), BootError> {
        let Runtime { stops, marks, syncer, spares, keeper, core, inboxes, lane, clock, feed, .. } = self;
        stops.serving.set();
        if let Some(FeedThread { thread, ended }) = feed {
            thread.thread().unpark();
            // The feed's last record still passes through the core, which may run on this thread.
            if tokio::time::timeout(END_MAX, ended).await.is_err() {
                tracing::warn!("the feed did not end in time; the stop continues without it");
            }
        }
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
        keeper.thread().unpark();
        if let Ok(Some(keeper)) = keeper.join()
            && !write_last(keeper)
        {
            // The thread of spares keeps the lock until the process ends: another process must not write meanwhile.
            return synced;
        }
        stops.spares.set();
        spares.thread().unpark();
        drop(spares.join());
        synced
    }
}

/// The last snapshot of a clean stop. The stop waits for it, so its thread has normal priority. Returns false if that
/// did not end in time and still runs.
fn write_last(mut keeper: Keeper<Paced<Files>>) -> bool {
    let last = thread::spawn("last", move || match keeper.last() {
        Ok(true) => tracing::info!("a snapshot was written for the next start"),
        Ok(false) => {}
        Err(error) => tracing::warn!(%error, "no snapshot at the stop: the next start reads more of the log"),
    });
    // Without a thread there is no snapshot, but the log has everything.
    let Ok(last) = last else { return true };
    let started = Instant::now();
    while !last.is_finished() {
        if started.elapsed() >= LAST_MAX {
            tracing::warn!("the snapshot at the stop did not end in time; the next start reads more of the log");
            return false;
        }
        std::thread::sleep(LAST_CHECK_EVERY);
    }
    true
}
