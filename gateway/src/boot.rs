//! Recover → start core threads → start the jobs → listen; and the stop in reverse order.

pub use crate::boot_error::BootError;

use crate::admin_listener::Admin;
use crate::backup::Running;
use crate::boot_error::io;
use crate::config::{BillingProvider, Config, Secret};
use crate::directory_venue;
use crate::ended::{EndedReaders, ReadFigures};
use crate::instruments::Instruments;
use crate::jobs::archive::{Keeping, Kept};
use crate::jobs::{self, End, Jobs, OwnParts, Stops};
use crate::layout::Asked;
use crate::listeners::ServerLinks;
use crate::metrics::gather::Sources;
use crate::metrics::history::EndedFigures;
use crate::moving::{self, Needed};
use crate::publishing::Publishing;
use crate::runtime::{Parts, Runtime};
use crate::serving::{Stopping, listen_until_stopped, listening};
use crate::shared_state::Shared;
use crate::uptime::Ask;
use crate::{alerts, banner, billing, check, demo, fitting, rebuild, simulation};
use ::integrations::dispatcher::Known;
use ::simulation::runner::Open;
use edge::app::{App, Edge};
use edge::ended_rows::{EndedRows, HistoryFrom};
use edge::http::auth::{RawKey, uuid_text};
use edge::ws::publish::BookNews;
use engine::book::Books;
use engine::id::{InstrumentId, MarketId};
use engine::market::catalog::Catalog;
use engine::time::Timestamp;
use engine::user::Users;
use history::{EndedStore, History};
use host::clock::Clock;
use host::leap::Leap;
use host::moments::Moments;
use journal::prefault::Loading;
use journal::recover::{self, RecoverError, Recovery};
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use venue::feed::FeedParts;
use venue::replay::Speed;
use venue::{Venue, VenueKind};
use wal::{Files, Lsn, Options, Point, Points};

/// How long the previous owner of the log may take to die, and how often a start checks that.
const OWNER_DIES_WITHIN: Duration = Duration::from_secs(3);
const OWNER_CHECK_EVERY: Duration = Duration::from_millis(20);
/// Runs the server until a signal, and then stops it cleanly.
///
/// # Errors
/// [`BootError`].
pub fn serve(config: Config) -> Result<(), BootError> {
    config.venue.check().map_err(BootError::Venue)?;
    start(config, None, None)
}

/// The server of a back-test with a bot: its clock is that of the recording.
pub struct ForBot {
    pub moments: Arc<Moments>,
    /// Called when the listener is open.
    pub started: Box<dyn FnOnce(Started)>,
}

/// What a bot needs to know of its server.
pub struct Started {
    pub server: SocketAddr,
    pub admin: Option<SocketAddr>,
    pub admin_token: Option<Secret>,
    /// A key of the user `demo`, who has the highest plan.
    pub key: RawKey,
    /// Identifies the recording.
    pub recording: Option<[u8; 32]>,
    /// The markets; those of the first moment are there.
    pub catalog: Arc<Catalog>,
    pub books: Arc<Books>,
}

/// Runs the server of a back-test with a bot until the run is ended. `config` names an empty data directory.
///
/// # Errors
/// [`BootError`].
pub fn serve_bot(config: Config, bot: ForBot) -> Result<(), BootError> {
    config.venue.check().map_err(BootError::Venue)?;
    let wrong = [
        (config.venue.kind != VenueKind::Replay, "the venue of a back-test is a recording (venue.kind = replay)"),
        (config.venue.speed != Speed::Max || config.venue.follow, "a back-test plays its recording at the speed max"),
        (config.engine.shards != 1 || config.server.io_threads != 1, "a back-test has one shard and one IO thread"),
        (config.server.busy_poll, "the threads of a back-test sleep (server.busy_poll = false)"),
        (config.server.clock_ahead_file.is_some(), "the clock of a back-test is that of the recording"),
    ];
    match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, why)) => Err(BootError::Bot(why.to_owned())),
        None => start(config, None, Some(bot)),
    }
}

/// As [`serve`], with a venue of the caller instead of the configured one.
///
/// # Errors
/// [`BootError`].
pub fn serve_on(config: Config, venue: Box<dyn Venue>) -> Result<(), BootError> {
    start(config, Some(venue), None)
}

fn start(mut config: Config, venue: Option<Box<dyn Venue>>, bot: Option<ForBot>) -> Result<(), BootError> {
    if bot.is_some() {
        // Nothing leaves the memory of a back-test (gateway/docs/backtest-bot.md §4): a bound would end its trading.
        config.history.hot_bytes_max = u64::MAX;
    }
    let clock = match &bot {
        Some(bot) => bot.moments.clock().clone(),
        None => Clock::ahead_of_wall(config.server.clock_ahead_file.as_deref()),
    };
    let (mut jobs, loading) = (Jobs::default(), Loading::default());
    // A server runs without these, only slower.
    if let Err(error) = jobs.start(jobs::before_recovery(&config, &loading)) {
        tracing::debug!(%error, "memory is not prefaulted");
    }
    let recovery = recovered(&config)?;
    loading.end();
    ::archive::crash_at(config.archive.crash_at);
    config.venue.live.shelf = Some(config.data.dir.join("venue"));
    config.venue.archive.cache = config.archive.dir.join("cache");
    check::check_kept(&config.data.dir, &config.kept_secrets())?;
    if rebuild::finish(&config.data.dir).map_err(io("the history store that was rebuilt"))? {
        tracing::warn!("a rebuild of the history store was interrupted when the new one was complete: it is used");
    }
    let has_records = recovery.report.lsn != Lsn::ZERO;
    let changes = config.complete_secrets_of_a_start(has_records).map_err(io("a secret"))?;
    for change in &changes {
        tracing::warn!("{change}");
    }
    // Created only if there is an admin listener.
    let token = config.admin.listen.map(|_| config.admin_token()).transpose().map_err(io("the admin token"))?;
    let newest = Some(Timestamp(recovery.log.last_time)).filter(|newest| *newest > Timestamp(0));
    let leap = Leap::of_start(&config.data.dir, newest, clock.wall_now(), config.clock.leap_wait)
        .map_err(io(config.data.dir.join("clock_doubted").display().to_string()))?;
    clock.not_before(newest.unwrap_or_default());
    let tokio_runtime = match &bot {
        Some(bot) => host::runtime::runtime_of(&bot.moments),
        None if config.server.busy_poll && host::runtime::may_spin() => host::runtime::sleepless_runtime(),
        None => host::runtime::runtime(),
    };
    let tokio_runtime = tokio_runtime.map_err(io("the runtime"))?;
    let local = tokio::task::LocalSet::new();
    let begun = Begun { clock, leap, recovery, jobs, warnings: changes, token, bot };
    tokio_runtime.block_on(local.run_until(run(config, begun, venue)))
}

/// Recovers the log. A killed process owns it until its memory is freed, which may take a second: a start right after a
/// kill waits for that.
fn recovered(config: &Config) -> Result<Recovery, BootError> {
    let started = Instant::now();
    loop {
        match recover::recover(&config.data.dir, options(config), config.engine.shards) {
            Err(RecoverError::Log(wal::Error::Locked { .. })) if started.elapsed() < OWNER_DIES_WITHIN => {
                std::thread::sleep(OWNER_CHECK_EVERY);
            }
            recovered => return Ok(recovered?),
        }
    }
}

fn options(config: &Config) -> Options {
    let journal = &config.journal;
    Options {
        segment_bytes: journal.segment_bytes,
        spares_count: journal.spares_count,
        reserve_bytes: journal.reserve_bytes,
        points: crash_points(journal.crash_at),
    }
}

/// Ends the process at the crash point that `journal.crash_at` names, if any.
fn crash_points(wanted: Option<(Point, u64)>) -> Points {
    let Some((at, count)) = wanted else { return Points::default() };
    let left = AtomicU64::new(count);
    Points::new(move |point| {
        if point == at && left.fetch_sub(1, Ordering::Relaxed) == 1 {
            std::process::abort();
        }
    })
}

/// The parts of a server that a start makes first.
struct Begun {
    clock: Clock,
    leap: Leap,
    recovery: Recovery,
    jobs: Jobs,
    warnings: Vec<String>,
    /// The admin token, if there is an admin listener.
    token: Option<Secret>,
    bot: Option<ForBot>,
}

/// The identity of the log in this directory, which is there.
fn identity(config: &Config) -> Result<u128, BootError> {
    let storage = Files::open_existing(&config.data.dir).map_err(RecoverError::from)?;
    let origin = wal::origin(&storage).map_err(RecoverError::from)?.expect("a log that was started has an origin");
    Ok(u128::from_be_bytes(origin.directory))
}

/// The readers of rows that have left memory.
fn ended_rows(
    config: &Config,
    store: &EndedStore,
    figures: Arc<ReadFigures>,
    shown: &Arc<HistoryFrom>,
) -> Result<(Arc<dyn EndedRows>, u128), BootError> {
    let log = identity(config)?;
    let readers = EndedReaders::start(config.history.readers, store.reader(log), figures);
    let readers = readers.map_err(io("a thread that reads ended rows"))?;
    Ok((Arc::new(readers.showing(shown.clone())), log))
}

async fn run(config: Config, begun: Begun, venue: Option<Box<dyn Venue>>) -> Result<(), BootError> {
    let Begun { clock, leap, recovery, mut jobs, mut warnings, token, bot } = begun;
    let moments = bot.as_ref().map(|bot| bot.moments.clone());
    let (listener, address) = listening("server.listen", config.server.listen)?;
    let admin = config.admin.listen.map(|listen| listening("admin.listen", listen)).transpose()?;
    let venue = match venue {
        Some(venue) => venue,
        None => {
            let venue = venue::open(&config.venue, &clock).map_err(BootError::Venue)?;
            // After the venue: one that cannot be opened leaves no mark on the directory.
            let (dir, chosen) = (&config.data.dir, &config.venue);
            directory_venue::claim(dir, chosen.kind, chosen.mix, recovery.state.markets.iter())
                .map_err(io(dir.join("venue_kinds").display().to_string()))?
                .map_err(BootError::OtherVenue)?;
            venue
        }
    };
    if bot.is_some() {
        clock.set(venue.next_at().ok_or_else(|| BootError::Bot("the recording is empty".to_owned()))?);
    }
    let (venue_line, recording) = (venue.describe(), venue.first_line());
    let upstream = venue.upstream();
    let leap = Arc::new(leap.with_venues(upstream.venues.iter().map(|(_, health)| health.time.clone())));
    if let Some(warning) = leap.warning(&config.data.dir) {
        tracing::warn!(leap_seconds = leap.seconds(), "{warning}");
        warnings.push(warning);
    }
    let Recovery { dir, log, state, report } = recovery;

    let is_recording = upstream.recording.is_some();
    let kept = Kept::open(&config, is_recording);
    let mut shared = Shared::new(&config);
    if let Some((key, set)) = state.unknown_realism(&config.rules.realism) {
        let sets = config.rules.realism.names();
        return Err(BootError::Realism(format!(
            "realism.sets: the set {set:?} was chosen for key {key}, and is not one of {sets}; define it again, start, and choose another one"
        )));
    }
    let (stakes, open) = (stakes(&state.users), Open::of(&state.users));
    let known = Known::of(&state.users);
    let kept_plans = billing::kept_plans(&config, &state.users);
    let departed_upto = state.users.iter().map(Users::departed_upto).max().unwrap_or(0);
    let history_from = state.markets.history_from();
    let shown = shared.history_from.clone();
    shown.set(history_from, state.users.iter().flat_map(|users| users.with_ends_before(history_from)));
    for (address, declared) in state.markets.addresses() {
        shared.rehearsal.addresses.set(*address, *declared);
    }
    let shards = shared.shards(state.users, Timestamp(log.last_time), clock.now());
    let figures = shared.commit.clone();
    let last_lsn = log.last_lsn.0;
    let parts = Parts { config: &config, clock: &clock, dir, log, shards, figures };
    let (history, recorder, reader) = History::open(
        Some(config.data.dir.join("history")),
        config.history.cache_bytes,
        shared.books.clone(),
        shared.commit.listener.fills.clone(),
    );
    let store = history.ended();
    // The job opens it later.
    let storage = Files::open_existing(&config.data.dir).map_err(RecoverError::from)?;
    store.compare_with(fitting::checksums(storage, last_lsn));
    let (runtime, log, failed) = Runtime::start(parts)?;
    store.hide_before(history_from);
    let identity;
    let ended = EndedFigures {
        bound: shared.ended_bound.clone(),
        mover: Arc::default(),
        reads: Arc::default(),
        store: store.clone(),
        filters: shared.filters.clone(),
    };
    (shared.ended, identity) = match ended_rows(&config, &store, ended.reads.clone(), &shown) {
        Ok(ended) => ended,
        Err(error) => {
            runtime.end(jobs).await?;
            return Err(error);
        }
    };
    let needed = Needed { log: identity, upto: departed_upto, end: last_lsn };
    // The result of a back-test is read from the state, so nothing leaves it.
    let stop = jobs.stops().of(End::BeforeShards).clone();
    let mover = bot.is_none().then(|| {
        moving::mover(&config, &ended, needed, runtime.inboxes(), &clock, (shown.clone(), leap.clone(), &stop))
    });
    let feed = FeedParts::<ServerLinks> {
        venue,
        markets: state.markets,
        catalog: shared.catalog.clone(),
        writer: shared.books.writer().expect("the only writer has not been taken before"),
        lane: runtime.feed_lane(),
        clock: clock.clone(),
        stop: jobs.stops().of(End::BeforeShards).clone(),
        figures: shared.feed.clone(),
        match_interval_us: shared.rules.match_interval_us,
        recorder,
        listener: BookNews::new(shared.news.clone(), shared.catalog.clone()),
        pace: config.venue.live.pace,
        stakes,
        spot: shared.spot.clone(),
        leap: leap.clone(),
        moments: moments.clone(),
        follows_fees: shared.rules.follows_schedules(),
    };
    let (is_fed, fed) = oneshot::channel();
    let mut keeping = kept.keeping(&config, is_recording, &clock);
    shared.past = kept.store.as_ref().and_then(|store| {
        let tail = keeping.as_mut().filter(|_| config.flags.feature_simulation_api_enabled).and_then(Keeping::tail);
        simulation::past(&config, store.clone(), tail)
    });
    shared.runner = shared
        .past
        .clone()
        .map(|past| simulation::runner(&config, past, shared.rules.clone(), runtime.inboxes(), clock.clone(), open));
    let runner = shared.runner.clone();
    let (asks, asked): (Vec<Ask>, Vec<Asked>) = (0..config.server.io_threads).map(|_| mpsc::channel(1)).unzip();
    // A server of a back-test shows nothing but its markets.
    let publishing = if bot.is_none() { Publishing::open(&config, &clock, asks) } else { Publishing::default() };
    let shown = publishing.shown();
    let (listed, is_listed) = watch::channel(false);
    let needs = alerts::Needs {
        inboxes: runtime.inboxes(),
        ended: &shared.ended,
        clock: &clock,
        catalog: &shared.catalog,
        is_listed,
        owing: &shared.commit.listener.owing,
        known,
        figures: shared.alerts.clone(),
    };
    let (sender, dispatcher) = match alerts::open(&config, needs) {
        Ok(alerts) => alerts,
        Err(error) => {
            runtime.end(jobs).await?;
            return Err(error);
        }
    };
    shared.sender = Some(sender);
    let own = OwnParts {
        log,
        mover,
        history,
        reader: reader.clone(),
        feed,
        archive: keeping,
        is_fed,
        runner,
        football: publishing.football,
        status: publishing.status,
        alerts: dispatcher,
    };
    let (marks, covered, stops) = (runtime.marks(), runtime.covered(), jobs.stops());
    let rows = jobs::table(&jobs::Server { config: &config, marks, covered, stops, leap: &leap }, own);
    let started = match jobs.start(rows) {
        Ok(()) => fed.await.map_err(|_| BootError::Feed),
        failed => failed,
    };
    if let Err(error) = started {
        runtime.end(jobs).await?;
        return Err(error);
    }
    listed.send_replace(true);
    let instance = uuid_text(&runtime.instance()).to_string();
    let instruments = Instruments {
        commit: shared.commit.clone(),
        feed: shared.feed.clone(),
        upstream,
        archive: kept.figures.clone(),
        football: shown.almanac.clone(),
        measurements: shown.measurements.clone(),
        alerts: shared.alerts.clone(),
        ended: Some(ended),
    };
    let app = shared.app(&config, clock, leap, reader, instruments.clone(), instance)?;
    let desk = billing::desk(&config).map_err(io("the thread of calls to the payment provider"))?;
    if config.billing.provider == BillingProvider::Stub {
        tracing::warn!("{}", billing::STUB_WARNING);
        warnings.push(billing::STUB_WARNING.to_owned());
    }
    let app = App { moments: moments.clone(), published: shown.published(), billing: desk, ..app };
    let config = Arc::new(config);
    let client = runtime.client().with_ended(app.reads.ended.clone());
    let edge = Rc::new(Edge::new(Arc::new(app), client));
    // The demo user's key: only without users, and only if no other machine can reach the listener.
    let is_first_start = report.users == 0 && address.ip().is_loopback();
    let demo = if is_first_start { demo::create(&edge).await } else { None };
    let admin_address = admin.as_ref().map(|(_, address)| *address);
    let admin = match (admin, &token) {
        (Some((listener, _)), Some(token)) => {
            let sources = Sources {
                config: config.clone(),
                app: edge.app.clone(),
                instruments,
                marks: runtime.marks().clone(),
                lane: runtime.feed_lane(),
                inboxes: runtime.inboxes().clone(),
                report,
            };
            Some(start_admin(listener, token, sources, &store, &runtime, jobs.stops())?)
        }
        _ => None,
    };
    match bot {
        Some(ForBot { moments, started }) => {
            moments.serve_here().map_err(io("the file of a thread"))?;
            let key = demo.ok_or_else(|| BootError::Bot("the user of the bot could not be created".to_owned()))?;
            let (catalog, books) = (edge.app.reads.catalog.clone(), edge.app.reads.books.clone());
            let (server, admin, admin_token) = (address, admin_address, token);
            started(Started { server, admin, admin_token, key, recording, catalog, books });
        }
        None => {
            let addresses = banner::Addresses { server: address, admin: admin_address };
            banner::print(&config, &edge.app.reads, addresses, &venue_line, &report, &warnings, demo.as_ref());
        }
    }
    let stopping = Stopping { failed, moments };
    // Readiness does not wait for them: there may be thousands.
    let giving = billing::give_kept_plans(edge.engine.clone(), edge.app.reads.clock.clone(), kept_plans);
    let giving = tokio::task::spawn_local(giving);
    let served = listen_until_stopped(listener, asked, edge, &runtime, stopping).await;
    giving.abort();
    if let Some(admin) = admin {
        admin.end();
    }
    served?;
    runtime.end(jobs).await
}

/// Markets with an open position or order of any user.
fn stakes(users: &[Users]) -> Vec<MarketId> {
    let mut markets = BTreeSet::new();
    for user in users.iter().flat_map(Users::iter) {
        let held = user.positions().iter().filter(|position| position.is_open()).map(|position| position.instrument);
        markets.extend(held.chain(user.open_orders().map(|order| order.terms.instrument)).map(InstrumentId::market));
    }
    markets.into_iter().collect()
}

/// Starts the listener for monitors and operators.
fn start_admin(
    listener: TcpListener,
    token: &Secret,
    sources: Sources,
    ended: &EndedStore,
    runtime: &Runtime,
    stops: &Stops,
) -> Result<Admin, BootError> {
    let running = Running {
        ended: ended.clone(),
        directory: sources.config.data.dir.clone(),
        marks: runtime.marks().clone(),
        covered: runtime.covered().clone(),
        digests: runtime.digests().clone(),
        stop: stops.of(End::BeforeShards).clone(),
    };
    Admin::start(listener, sources, token, running).map_err(io("the thread of the admin listener"))
}
