//! What every IO thread shares, and what one IO thread has for itself.

use crate::api::beta::Cohort;
use crate::api::books::kept::Texts;
use crate::api::health::{Census, Vitals};
use crate::config::Config;
use crate::engine_client::EngineClient;
use crate::http::front::Front;
use crate::http::last_used::LastUsed;
use crate::http::server::Connections;
use crate::http::server::departures::Departures;
use crate::listeners::CommitFigures;
use crate::metrics::edge::EdgeMeters;
use crate::ws::admit::Seats;
use crate::ws::hub::Hub;
use crate::ws::news::News;
use crate::ws::sockets::Sockets;
use crate::ws::sse::Streams;
use crate::ws::user_frames::UserFrames;
use engine::book::Books;
use engine::directory::Directory;
use engine::market::catalog::Catalog;
use engine::market::spot::Spot;
use engine::rules::Rules;
use engine::time::Timestamp;
use history::Reader;
use host::clock::Clock;
use host::leap::Leap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use venue::Upstream;
use venue::feed::FeedFigures;

/// Shared by all threads: configuration, the lock-free read sides, limits, figures.
pub struct App {
    pub config: Config,
    pub rules: Arc<Rules>,
    pub catalog: Arc<Catalog>,
    pub books: Arc<Books>,
    pub directory: Arc<Directory>,
    pub clock: Clock,
    /// What this start found about its clock.
    pub leap: Arc<Leap>,
    pub front: Front,
    pub connections: Arc<Connections>,
    pub started_at: Timestamp,
    /// Which copy of its directory this is: a UUID.
    pub instance: String,
    pub commit: Arc<CommitFigures>,
    pub feed: Arc<FeedFigures>,
    pub census: Census,
    /// Prices as they went.
    pub history: Reader,
    pub cohort: Cohort,
    /// What the feed tells the streams.
    pub news: Arc<News>,
    /// Places of open event streams.
    pub streams: Arc<Streams>,
    /// Prices of what up-or-down markets are about.
    pub spot: Spot,
    /// How it goes with live venues.
    pub upstream: Upstream,
    /// Places of open sockets.
    pub seats: Arc<Seats>,
    /// Frames that sockets of one user share.
    pub user_frames: Arc<UserFrames>,
    /// What the edge counts where a monitor may ask.
    pub meters: Option<EdgeMeters>,
}

/// One IO thread's own: the shared part and its way into the core. Lives in an `Rc`.
pub struct Edge {
    pub app: Arc<App>,
    pub engine: EngineClient,
    /// The sockets that this thread serves.
    pub sockets: Rc<Sockets>,
    /// Its listeners to markets.
    pub hub: Rc<Hub>,
    /// Its answers that are about to leave.
    pub departures: Rc<Departures>,
    /// Its keys' uses that are about to be noted.
    pub last_used: Rc<LastUsed>,
    /// Books as it wrote them last.
    pub book_texts: Texts,
}

impl Edge {
    pub fn new(app: Arc<App>, engine: EngineClient) -> Edge {
        let departures = Rc::<Departures>::default();
        let hub = Rc::new(Hub::new(app.clone(), Rc::clone(&departures)));
        Edge {
            app,
            engine,
            sockets: Rc::default(),
            hub,
            departures,
            last_used: Rc::default(),
            book_texts: Texts::default(),
        }
    }
}

impl App {
    /// Figures of the core and the feed, for health and status.
    pub fn vitals(&self) -> Vitals {
        let number = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let number_of = |figure: &AtomicU32| u64::from(figure.load(Ordering::Relaxed));
        // 0 stands for "never yet".
        let moment = |figure: &AtomicU64| Some(Timestamp(number(figure))).filter(|at| at.0 > 0);
        Vitals {
            last_commit_at: moment(&self.commit.last_commit_at),
            last_message_at: moment(&self.feed.last_frame_at),
            last_cycle_at: moment(&self.feed.last_cycle_at),
            last_cycle_us: number(&self.feed.last_cycle_us),
            pending_orders: number(&self.feed.pending_orders),
            connections: self.seats.open() as u64,
            upstream_connections: self.upstream.venues.iter().map(|(_, health)| number_of(&health.connections)).sum(),
            subscribed_tokens: match self.upstream.venues.as_slice() {
                [] => None,
                venues => Some(venues.iter().map(|(_, health)| number(&health.subscribed_tokens)).sum()),
            },
        }
    }
}
