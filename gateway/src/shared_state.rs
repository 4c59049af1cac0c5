//! State shared by the threads of a server, and the application that the IO threads make of it.

use crate::boot_error::BootError;
use crate::config::Config;
use crate::instruments::Instruments;
use crate::listeners::{CommitFigures, Listeners};
use crate::metrics::journal::JournalMeters;
use crate::simulation;
use ::integrations::figures::Figures as AlertFigures;
use ::integrations::sender::Sender;
use ::simulation::past::Past;
use ::simulation::reads::Reads as ReadsOfPast;
use ::simulation::runner::Runner;
use edge::api::health::Census;
use edge::api::integrations::port::Integrations;
use edge::api::simulation::archive::Archive;
use edge::api::simulation::jobs::Jobs as Backtests;
use edge::app::{App, Instance};
use edge::ended_rows::{EndedRows, HistoryFrom, NoEndedRows};
use edge::http::front::Front;
use edge::meters::EdgeMeters;
use edge::published::Published;
use edge::reads::Reads;
use edge::rehearsal::Rehearsal;
use edge::streams::Streams;
use edge::ws::news::News;
use engine::book::Books;
use engine::directory::Directory;
use engine::market::catalog::Catalog;
use engine::market::spot::Spot;
use engine::rules::Rules;
use engine::shard::Shard;
use engine::shard::bound::EndedBound;
use engine::time::Timestamp;
use engine::user::Users;
use history::Reader;
use history::filters::OpenFilters;
use host::clock::Clock;
use host::leap::Leap;
use journal::commit::Reply;
use std::sync::Arc;
use venue::feed::FeedFigures;

/// State shared by the threads.
pub struct Shared {
    pub catalog: Arc<Catalog>,
    pub books: Arc<Books>,
    pub directory: Arc<Directory>,
    pub rules: Arc<Rules>,
    pub commit: Arc<CommitFigures>,
    pub feed: Arc<FeedFigures>,
    pub news: Arc<News>,
    pub spot: Spot,
    /// The archive, and the runner of back-tests on it.
    pub past: Option<Arc<Past>>,
    pub runner: Option<Arc<Runner>>,
    /// Counts of alerts, and what the routes of alerts ask.
    pub alerts: Arc<AlertFigures>,
    pub sender: Option<Arc<Sender>>,
    /// Over the names of orders that have left memory; the mover opens them.
    pub filters: OpenFilters,
    /// Orders, fills and positions that have left memory.
    pub ended: Arc<dyn EndedRows>,
    /// Of memory for ended rows.
    pub ended_bound: Arc<EndedBound>,
    /// From when on they are shown.
    pub history_from: Arc<HistoryFrom>,
    /// Findings of the rehearsal of the venue's checks, and declared addresses.
    pub rehearsal: Arc<Rehearsal>,
}

impl Shared {
    pub fn new(config: &Config) -> Shared {
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
            filters: OpenFilters::default(),
            ended: Arc::new(NoEndedRows),
            ended_bound: Arc::new(EndedBound::new(config.history.hot_bytes_max, config.engine.shards)),
            history_from: Arc::default(),
            rehearsal: Arc::default(),
        }
    }

    /// The shards of the recovered users, as of the newest moment of the journal; adds the users to the directory.
    pub fn shards(&self, users: Vec<Users>, newest: Timestamp, now: Timestamp) -> Vec<Shard<Reply>> {
        let count = users.len();
        let shard = |(index, mut users): (usize, Users)| {
            users.iter().for_each(|user| self.directory.add_user(user));
            // An armed heartbeat gets a new interval: its beats were not journaled.
            users.refresh_safeguards(now);
            let (rules, books) = (self.rules.clone(), self.books.clone());
            let (catalog, directory) = (self.catalog.clone(), self.directory.clone());
            let mut shard = Shard::new(index, count, users, rules, books, catalog, directory);
            shard.resume(newest);
            shard.filter_with(Arc::new(self.filters.clone()));
            shard.bound_ended(self.ended_bound.clone());
            shard.count_from(self.history_from.kept_from());
            shard
        };
        users.into_iter().enumerate().map(shard).collect()
    }

    pub fn app(
        self,
        config: &Config,
        clock: Clock,
        leap: Arc<Leap>,
        history: Reader,
        instruments: Instruments,
        instance: String,
    ) -> Result<App, BootError> {
        let Shared {
            catalog, books, directory, rules, commit, news, spot, past, runner, sender, ended, rehearsal, ..
        } = self;
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
                ended,
                spot,
                archive: past.map(|past| Arc::new(ReadsOfPast::new(past)) as Arc<dyn Archive>),
                jobs: runner.map(|runner| runner as Arc<dyn Backtests>),
                exports,
                integrations: sender.map(|sender| sender as Arc<dyn Integrations>),
            },
            published: Published::default(),
            rehearsal,
            billing: None,
            moments: None,
        })
    }
}
