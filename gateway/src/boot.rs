//! Recover → start core threads → start the jobs → listen; and the stop in reverse order.

use crate::admin_listener::Admin;
use crate::backup::Running;
use crate::config::{BillingProvider, Config, Secret};
use crate::directory_venue::{self, OtherVenue};
use crate::instruments::Instruments;
use crate::jobs::archive::{Keeping, Kept};
use crate::jobs::{self, End, Jobs, OwnParts, Stops};
use crate::layout::{self, Asked};
use crate::listeners::{CommitFigures, Listeners, ServerLinks};
use crate::metrics::gather::Sources;
use crate::metrics::journal::JournalMeters;
use crate::runtime::{Parts, Runtime};
use crate::uptime::{Ask, Measuring};
use crate::{alerts, banner, billing, check, demo, simulation};
use ::football::folder::Folder;
use ::integrations::dispatcher::Known;
use ::integrations::figures::Figures as AlertFigures;
use ::integrations::sender::Sender;
use ::simulation::past::Past;
use ::simulation::reads::Reads as ReadsOfPast;
use ::simulation::runner::{Open, Runner};
use edge::api::health::{Census, measure_when_asked};
use edge::api::integrations::port::Integrations;
use edge::api::simulation::archive::Archive;
use edge::api::simulation::jobs::Jobs as Backtests;
use edge::app::{App, Edge, Instance};
use edge::http::auth::{RawKey, uuid_text};
use edge::http::front::Front;
use edge::http::server;
use edge::meters::EdgeMeters;
use edge::published::Published;
use edge::reads::Reads;
use edge::streams::Streams;
use edge::ws::news::News;
use edge::ws::publish::BookNews;
use engine::book::Books;
use engine::directory::Directory;
use engine::id::{InstrumentId, MarketId};
use engine::market::catalog::Catalog;
use engine::market::spot::Spot;
use engine::rules::Rules;
use engine::shard::Shard;
use engine::time::Timestamp;
use engine::user::Users;
use history::{History, Reader};
use host::clock::Clock;
use host::leap::Leap;
use host::moments::Moments;
use journal::commit::Reply;
use journal::prefault::Loading;
use journal::recover::{self, RecoverError, Recovery};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use venue::feed::{FeedFigures, FeedParts};
use venue::replay::Speed;
use venue::{Venue, VenueError, VenueKind};
use wal::{Lsn, Options, Point, Points};

/// Time for responses to leave after the log has failed.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long the previous owner of the log may take to die, and how often a start checks that.
const OWNER_DIES_WITHIN: Duration = Duration::from_secs(3);
const OWNER_CHECK_EVERY: Duration = Duration::from_millis(20);
/// Connections in the listener's backlog; the system may have a lower bound.
const BACKLOG_MAX: i32 = 4_096;

/// Why the server does not run, or stopped.
#[derive(Debug)]
pub enum BootError {
    Recover(RecoverError),
    Venue(VenueError),
    /// A file, thread or socket could not be opened or created; `what` names it.
    Io {
        what: String,
        error: std::io::Error,
    },
    /// The log failed while serving: acknowledged writes are safe, the outcome of others is unknown. The next start
    /// recovers.
    Journal(String),
    /// The data directory was used with another venue.
    OtherVenue(OtherVenue),
    /// The feed ended before the listener opened.
    Feed,
    /// The route table or the brand's names are inconsistent.
    Edge(String),
    /// Alerts cannot be sent with these settings.
    Alerts(String),
    /// A back-test with a bot cannot be made of this configuration, or its recording is empty.
    Bot(String),
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootError::Recover(error) => error.fmt(f),
            BootError::Venue(error) => error.fmt(f),
            BootError::OtherVenue(error) => error.fmt(f),
            BootError::Io { what, error } => write!(f, "{what}: {error}"),
            BootError::Journal(why) => {
                write!(f, "the journal failed and the server stopped: {why}; the next start recovers")
            }
            BootError::Edge(why) | BootError::Alerts(why) | BootError::Bot(why) => f.write_str(why),
            BootError::Feed => {
                f.write_str("the feed stopped before it was ready; the log lines before this one say why")
            }
        }
    }
}

impl std::error::Error for BootError {}

impl From<RecoverError> for BootError {
    fn from(error: RecoverError) -> BootError {
        BootError::Recover(error)
    }
}

/// An error of the system, with the name of the file, thread or socket.
pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> BootError {
    let what = what.into();
    |error| BootError::Io { what, error }
}

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
    let (stakes, open) = (stakes(&state.users), Open::of(&state.users));
    let known = Known::of(&state.users);
    let kept_plans = billing::kept_plans(&config, &state.users);
    let shards = shared.shards(state.users, Timestamp(log.last_time), clock.now());
    let figures = shared.commit.clone();
    let parts = Parts { config: &config, clock: &clock, dir, log, shards, figures };
    let (history, recorder, reader) = History::open(
        Some(config.data.dir.join("history")),
        config.history.cache_bytes,
        shared.books.clone(),
        shared.commit.listener.fills.clone(),
    );
    let (runtime, log, failed) = Runtime::start(parts)?;
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
    let football = config.published.football_dir.as_deref().filter(|_| bot.is_none()).map(Folder::open);
    let status = bot.is_none().then(|| {
        let (dir, incidents) = (&config.data.dir, &config.published.incidents_file);
        Measuring::open(dir, incidents, clock.clone(), asks, config.engine.shards == 1)
    });
    let (almanac, measurements) =
        (football.as_ref().map(Folder::almanac), status.as_ref().map(Measuring::measurements));
    let needs = alerts::Needs {
        inboxes: runtime.inboxes(),
        clock: &clock,
        catalog: &shared.catalog,
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
        history,
        reader: reader.clone(),
        feed,
        archive: keeping,
        is_fed,
        runner,
        football,
        status,
        alerts: dispatcher,
    };
    let (marks, covered, stops) = (runtime.marks(), runtime.covered(), jobs.stops());
    let rows = jobs::table(&jobs::Server { config: &config, marks, covered, stops }, own);
    let started = match jobs.start(rows) {
        Ok(()) => fed.await.map_err(|_| BootError::Feed),
        failed => failed,
    };
    if let Err(error) = started {
        runtime.end(jobs).await?;
        return Err(error);
    }
    let instance = uuid_text(&runtime.instance()).to_string();
    let instruments = Instruments {
        commit: shared.commit.clone(),
        feed: shared.feed.clone(),
        upstream,
        archive: kept.figures.clone(),
        football: almanac.clone(),
        measurements: measurements.clone(),
        alerts: shared.alerts.clone(),
    };
    let published = Published {
        football: almanac.map(|almanac| almanac as Arc<dyn edge::api::football::facts::Football>),
        uptime: measurements.clone().map(|measured| measured as Arc<dyn edge::api::status::Uptime>),
        incidents: measurements.map(|measured| measured as Arc<dyn edge::api::status::Incidents>),
    };
    let app = shared.app(&config, clock, leap, reader, instruments.clone(), instance)?;
    let desk = billing::desk(&config).map_err(io("the thread of calls to the payment provider"))?;
    if config.billing.provider == BillingProvider::Stub {
        tracing::warn!("{}", billing::STUB_WARNING);
        warnings.push(billing::STUB_WARNING.to_owned());
    }
    let app = App { moments: moments.clone(), published, billing: desk, ..app };
    let config = Arc::new(config);
    let edge = Rc::new(Edge::new(Arc::new(app), runtime.client()));
    billing::give_kept_plans(&edge, kept_plans).await;
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
            Some(start_admin(listener, token, sources, &runtime, jobs.stops())?)
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
    let served = listen_until_stopped(listener, asked, edge, &runtime, stopping).await;
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

/// A listener on the address of a setting, and its actual address.
fn listening(setting: &str, listen: SocketAddr) -> Result<(TcpListener, SocketAddr), BootError> {
    let listener = TcpListener::bind(listen).map_err(io(format!("listening on {listen} ({setting})")))?;
    // With a shorter backlog, clients of a burst of connections would wait a second for their second attempt.
    rustix::net::listen(&listener, BACKLOG_MAX).map_err(|error| io("the listener")(error.into()))?;
    let address = listener.local_addr().map_err(io("the listener's address"))?;
    listener.set_nonblocking(true).map_err(io("the listener"))?;
    if setting == "admin.listen" && !address.ip().is_loopback() {
        tracing::warn!(%address, "the metrics of the admin listener need no token: every client that reaches this \
            address can read them");
    }
    Ok((listener, address))
}

/// Starts the listener for monitors and operators.
fn start_admin(
    listener: TcpListener,
    token: &Secret,
    sources: Sources,
    runtime: &Runtime,
    stops: &Stops,
) -> Result<Admin, BootError> {
    let running = Running {
        directory: sources.config.data.dir.clone(),
        marks: runtime.marks().clone(),
        covered: runtime.covered().clone(),
        digests: runtime.digests().clone(),
        stop: stops.of(End::BeforeShards).clone(),
    };
    Admin::start(listener, sources, token, running).map_err(io("the thread of the admin listener"))
}

/// State shared by the threads.
struct Shared {
    catalog: Arc<Catalog>,
    books: Arc<Books>,
    directory: Arc<Directory>,
    rules: Arc<Rules>,
    commit: Arc<CommitFigures>,
    feed: Arc<FeedFigures>,
    news: Arc<News>,
    spot: Spot,
    /// The archive, and the runner of back-tests on it.
    past: Option<Arc<Past>>,
    runner: Option<Arc<Runner>>,
    /// Counts of alerts, and what the routes of alerts ask.
    alerts: Arc<AlertFigures>,
    sender: Option<Arc<Sender>>,
}

impl Shared {
    fn new(config: &Config) -> Shared {
        let news = News::new(config.server.io_threads, config.rules.fees.clone());
        let mut listeners = Listeners::default();
        // Without an admin listener nothing is counted or timed, since no client could read it.
        if config.admin.listen.is_some() {
            listeners.meters = Some(JournalMeters::new(config.engine.shards));
            news.time_fan_out();
        }
        Shared {
            catalog: Arc::new(Catalog::new()),
            books: Arc::new(Books::with_stale_after(config.book.stale_after.as_micros() as u64)),
            directory: Arc::new(Directory::new()),
            rules: Arc::new(config.rules.clone()),
            commit: Arc::new(CommitFigures::with_listener(listeners)),
            feed: Arc::default(),
            news: Arc::new(news),
            spot: venue::spot::of(&config.venue),
            past: None,
            runner: None,
            alerts: Arc::default(),
            sender: None,
        }
    }

    /// The shards of the recovered users, as of the newest moment of the journal; adds the users to the directory.
    fn shards(&self, users: Vec<Users>, newest: Timestamp, now: Timestamp) -> Vec<Shard<Reply>> {
        let count = users.len();
        let shard = |(index, mut users): (usize, Users)| {
            users.iter().for_each(|user| self.directory.add_user(user));
            // An armed heartbeat gets a new interval: its beats were not journaled.
            users.refresh_safeguards(now);
            let (rules, books) = (self.rules.clone(), self.books.clone());
            let (catalog, directory) = (self.catalog.clone(), self.directory.clone());
            let mut shard = Shard::new(index, count, users, rules, books, catalog, directory);
            shard.resume(newest);
            shard
        };
        users.into_iter().enumerate().map(shard).collect()
    }

    fn app(
        self,
        config: &Config,
        clock: Clock,
        leap: Arc<Leap>,
        history: Reader,
        instruments: Instruments,
        instance: String,
    ) -> Result<App, BootError> {
        let Shared { catalog, books, directory, rules, commit, news, spot, past, runner, sender, .. } = self;
        let exports = past.as_ref().and_then(|past| simulation::exports(config, past, &clock));
        let mut front = Front::new(config.edge(), &edge::groups::tables()).map_err(BootError::Edge)?;
        front.meters = config.admin.listen.map(|_| EdgeMeters::new(front.usage.routes()));
        Ok(App {
            front,
            instance: Instance {
                id: instance,
                started_at: clock.now(),
                leap,
                instruments: Box::new(instruments),
                census: Census::default(),
            },
            streams: Streams {
                news,
                seats: Arc::default(),
                events: Arc::default(),
                user_wakeups: commit.listener.user_wakeups.clone(),
                user_frames: Arc::default(),
            },
            reads: Reads {
                catalog,
                books,
                directory,
                rules,
                clock,
                history: Box::new(history),
                spot,
                archive: past.map(|past| Arc::new(ReadsOfPast::new(past)) as Arc<dyn Archive>),
                jobs: runner.map(|runner| runner as Arc<dyn Backtests>),
                exports,
                integrations: sender.map(|sender| sender as Arc<dyn Integrations>),
            },
            published: Published::default(),
            billing: None,
            moments: None,
        })
    }
}

/// What stops a server besides a signal: a failure of the log, and the end of a back-test.
struct Stopping {
    failed: mpsc::UnboundedReceiver<String>,
    moments: Option<Arc<Moments>>,
}

/// Serves until a signal comes, the log fails, or the back-test ends. `asked`: requests of measures for each IO thread.
async fn listen_until_stopped(
    listener: TcpListener,
    mut asked: Vec<Asked>,
    edge: Rc<Edge>,
    runtime: &Runtime,
    Stopping { mut failed, moments }: Stopping,
) -> Result<(), BootError> {
    let (end, ending) = watch::channel(false);
    let app = edge.app.clone();
    if let Some(asked) = asked.pop() {
        tokio::task::spawn_local(measure_when_asked(edge.clone(), asked));
    }
    let io_threads =
        layout::spawn_io(asked, &listener, &app, runtime.inboxes(), &ending).map_err(io("a thread for sockets"))?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(io("the listener"))?;
    let serving = tokio::task::spawn_local(server::serve(listener, edge, app.front.connections.clone(), ending));
    let mut terminate = signal(SignalKind::terminate()).map_err(io("the handler of SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io("the handler of SIGINT"))?;
    let ended = async {
        match moments {
            Some(moments) => moments.ended().await,
            None => std::future::pending().await,
        }
    };
    let failure = tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        () = ended => None,
        why = failed.recv() => why,
    };
    if let Some(why) = failure {
        // Waiting requests get the response that their outcome is unknown; after that there are no responses.
        tokio::time::sleep(LAST_WORDS).await;
        return Err(BootError::Journal(why));
    }
    tracing::info!("stopping: requests in flight are finished, new ones are refused");
    // The receivers are gone only if serving has ended on its own.
    let _ = end.send(true);
    let mut cut_off = serving.await.unwrap_or(0);
    for thread in io_threads {
        // A panic of the thread has aborted the process.
        cut_off += thread.join().map_or(Ok(0), |served| served).unwrap_or(0);
    }
    if cut_off > 0 {
        tracing::warn!(cut_off, "connections were closed because they did not end in time");
    }
    Ok(())
}
