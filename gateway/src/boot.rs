//! Recover → start core threads → start the feed → listen; and the way down in reverse.

use crate::app::{App, Edge};
use crate::checkpoint::Keeper;
use crate::clock::Clock;
use crate::commit::{CommitFigures, CommitLane, Committer, Reply};
use crate::config::Config;
use crate::core::Core;
use crate::engine_client::EngineClient;
use crate::http::front::Front;
use crate::http::server::{self, Connections};
use crate::layout::{self, CoreThreads, Machinery, Stops, Wake};
use crate::recover::{self, RecoverError, Recovery};
use crate::thread;
use crate::venue::feed::{FeedFigures, FeedLane, FeedParts};
use crate::venue::{self, VenueError};
use crate::{api, banner, demo};
use engine::book::Books;
use engine::command::Envelope;
use engine::directory::Directory;
use engine::market::catalog::Catalog;
use engine::mutation::codec;
use engine::ring::Ring;
use engine::shard::{Outbox, Room, Shard};
use engine::time::Timestamp;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use wal::{Files, Options, Point, Points, Prepared, Running};

/// Slots of a shard's inbox; a full one is `SERVER_BUSY`.
const INBOX_SLOTS: usize = 4_096;
/// Time for answers to leave after the log has failed.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Why the server does not run (any more).
#[derive(Debug)]
pub enum BootError {
    Recover(RecoverError),
    Venue(VenueError),
    /// A file, thread or socket could not be had; `what` names it.
    Io {
        what: String,
        error: std::io::Error,
    },
    /// The log failed while serving: what was promised stands, the rest is unknown. The next start recovers.
    Journal(String),
    /// The feed ended before the listener opened.
    Feed,
    /// The route table or the brand's names contradict themselves.
    Edge(String),
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootError::Recover(error) => error.fmt(f),
            BootError::Venue(error) => error.fmt(f),
            BootError::Io { what, error } => write!(f, "{what}: {error}"),
            BootError::Journal(why) => write!(f, "the journal failed and serving stopped: {why}"),
            BootError::Edge(why) => f.write_str(why),
            BootError::Feed => f.write_str("the feed stopped before it was ready"),
        }
    }
}

impl std::error::Error for BootError {}

impl From<RecoverError> for BootError {
    fn from(error: RecoverError) -> BootError {
        BootError::Recover(error)
    }
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> BootError {
    let what = what.into();
    |error| BootError::Io { what, error }
}

/// Runs the server until a signal, and then its orderly end.
///
/// # Errors
/// [`BootError`].
pub fn serve(mut config: Config) -> Result<(), BootError> {
    config.venue.check().map_err(BootError::Venue)?;
    let clock = Clock::wall();
    let recovery = recover::recover(&config.data.dir, options(&config), config.engine.shards)?;
    config.complete_secrets().map_err(io("the identity secret"))?;
    clock.not_before(Timestamp(recovery.log.last_time));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(61)
        .build()
        .map_err(io("the runtime"))?;
    let local = tokio::task::LocalSet::new();
    runtime.block_on(local.run_until(run(config, clock, recovery)))
}

fn options(config: &Config) -> Options {
    let journal = &config.journal;
    Options {
        segment_bytes: journal.segment_bytes,
        spares_count: journal.spares_count,
        reserve_bytes: journal.reserve_bytes,
        points: crash_points(),
    }
}

/// For crash tests: `PAPERTAPE_CRASH_AT=roll:3` kills the process when that point is passed for the third time.
fn crash_points() -> Points {
    let Ok(wanted) = std::env::var("PAPERTAPE_CRASH_AT") else { return Points::default() };
    let (name, count) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    let Some(at) = Point::ALL.into_iter().find(|point| point.name() == name) else { return Points::default() };
    let left = AtomicU64::new(count.parse().unwrap_or(1));
    Points::new(move |point| {
        if point == at && left.fetch_sub(1, Ordering::Relaxed) == 1 {
            std::process::abort();
        }
    })
}

async fn run(config: Config, clock: Clock, recovery: Recovery) -> Result<(), BootError> {
    let listen = config.server.listen;
    let listener = TcpListener::bind(listen).await.map_err(io(format!("listening on {listen}")))?;
    let address = listener.local_addr().map_err(io("the listener's address"))?;
    let venue = venue::open(&config.venue, clock.now()).map_err(BootError::Venue)?;
    let venue_line = venue.describe();
    let Recovery { dir, log, state, report } = recovery;

    let books = Arc::new(Books::with_stale_after(config.book.stale_after.as_micros() as u64));
    let catalog = Arc::new(Catalog::new());
    let directory = Arc::new(Directory::new());
    state.users.iter().flat_map(|users| users.iter()).for_each(|user| directory.add_user(user));
    let rules = Arc::new(config.rules.clone());
    let commit_figures = Arc::new(CommitFigures::default());
    let feed_figures = Arc::new(FeedFigures::default());
    let stops = Stops::default();

    // Which thread hears of a sync depends on the layout, which needs the log first.
    let synced = Arc::new(Wake::default());
    let (fatal, mut failed) = mpsc::unbounded_channel::<String>();
    let waker = synced.clone();
    let running = dir.start(log, clock.now().0, Box::new(move |_| waker.wake())).map_err(RecoverError::from)?;
    let Running { log, syncer, mut preparer, snapshots, marks, .. } = running;
    let syncer = layout::spawn_syncer(syncer, stops.sync.clone(), fatal).map_err(io("the sync thread"))?;
    let size = (config.journal.segment_bytes, config.journal.spares_count);
    let lane = CommitLane::new(size, commit_figures.clone());
    let mut committer = Committer::new(log, config.journal.durability, codec::VERSION, size, commit_figures.clone());
    // The last segment may be all but full and no spare left over: who is let in is not to hear that there is no room.
    // On a full disk the start goes on all the same, for reads.
    while committer.room() != Room::Ample && preparer.turn().map_err(RecoverError::from)? == Prepared::One {}
    let storage = Files::open_existing(&config.data.dir).map_err(RecoverError::from)?;
    let keeper = Keeper::new(storage, preparer, snapshots, marks.clone(), config.journal.checkpoint_segments as usize);
    let keeper_stop = stops.serving.clone();
    let keeper = thread::spawn("keeper", move || keeper.run(&keeper_stop)).map_err(io("the keeper's thread"))?;

    committer.wake_when_low(keeper.thread().clone());
    let count = config.engine.shards;
    let inboxes: Vec<Arc<Ring<Envelope<Reply>>>> = (0..count).map(|_| Arc::new(Ring::new(INBOX_SLOTS))).collect();
    let now = clock.now();
    let mut shards: Vec<Shard<Reply>> = state
        .users
        .into_iter()
        .enumerate()
        .map(|(index, mut users)| {
            // An armed heartbeat gets a fresh interval: its beats were not journaled.
            users.refresh_safeguards(now);
            Shard::new(index, count, users, rules.clone(), books.clone(), catalog.clone(), directory.clone())
        })
        .collect();

    let (engine, core) = if count == 1 {
        let shard = shards.pop().expect("there is one shard");
        let core = Core::new(shard, committer, inboxes[0].clone(), lane.ring().clone());
        let core = Rc::new(RefCell::new(core));
        layout::drive(core.clone(), inboxes[0].clone(), &lane, &synced, clock.clone());
        (EngineClient::inline(core.clone(), clock.clone()), CoreThreads::Inline(core))
    } else {
        let ring = lane.ring().clone();
        synced.set(Box::new(move || ring.wake()));
        let shards =
            layout::spawn_shards(shards, &inboxes, &lane, &clock, &stops.shards).map_err(io("a shard's thread"))?;
        let committer =
            layout::spawn_committer(committer, &lane, &clock, &stops.commit).map_err(io("the committer's thread"))?;
        (EngineClient::threaded(inboxes.clone().into(), clock.clone()), CoreThreads::Threaded { shards, committer })
    };

    let parts = FeedParts {
        venue,
        markets: state.markets,
        catalog: catalog.clone(),
        writer: books.writer().expect("nobody has asked for the one writer before"),
        lane: FeedLane { commits: lane.clone(), inboxes: inboxes.clone() },
        clock: clock.clone(),
        stop: stops.serving.clone(),
        figures: feed_figures.clone(),
        match_interval_us: rules.match_interval_us,
    };
    let (ready, is_ready) = oneshot::channel();
    let (ended, feed_ended) = oneshot::channel();
    let feed = layout::spawn_feed(parts, ready, ended).map_err(io("the feed's thread"))?;
    let machinery = Machinery { stops, marks, feed, feed_ended, keeper, syncer, core, inboxes, lane };
    if is_ready.await.is_err() {
        machinery.end(&clock).await;
        return Err(BootError::Feed);
    }

    let app = App {
        front: Front::new(&config, api::GROUPS).map_err(BootError::Edge)?,
        connections: Arc::new(Connections::new(&config)),
        rules,
        catalog,
        books,
        directory,
        clock: clock.clone(),
        started_at: clock.now(),
        commit: commit_figures,
        feed: feed_figures,
        config,
    };
    let edge = Rc::new(Edge { app: Arc::new(app), engine });
    // A newcomer's key: only in an empty directory, and only where nobody else can reach it.
    let newcomer = report.lsn == wal::Lsn::ZERO && address.ip().is_loopback();
    let demo = if newcomer { demo::create(&edge).await } else { None };
    banner::print(&edge.app, address, &venue_line, &report, demo.as_ref());

    let (end, ending) = watch::channel(false);
    let connections = edge.app.connections.clone();
    let serving = tokio::task::spawn_local(server::serve(listener, edge, connections, ending));
    let mut terminate = signal(SignalKind::terminate()).map_err(io("the handler of SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io("the handler of SIGINT"))?;
    let failure = tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        why = failed.recv() => why,
    };
    if let Some(why) = failure {
        // Whoever waits hears that the outcome is unknown; then nothing more can be said.
        tokio::time::sleep(LAST_WORDS).await;
        return Err(BootError::Journal(why));
    }
    tracing::info!("stopping: requests in flight are answered, new ones are not taken");
    // The receiver is gone only when serving has ended by itself.
    let _ = end.send(true);
    let cut_off = serving.await.unwrap_or(0);
    if cut_off > 0 {
        tracing::warn!(cut_off, "connections did not end in time");
    }
    machinery.end(&clock).await;
    Ok(())
}
