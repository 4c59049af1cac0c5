//! The state that all IO threads share, and the state of one IO thread.

use crate::api::beta::Cohort;
use crate::api::books::text_cache::TextCache;
use crate::api::health::{Census, Instruments, Vitals};
use crate::engine_client::EngineClient;
use crate::http::front::Front;
use crate::http::last_used::LastUsed;
use crate::http::server::Connections;
use crate::http::server::write_batch::WriteBatch;
use crate::meters::EdgeMeters;
use crate::settings::Settings;
use crate::ws::admit::Seats;
use crate::ws::hub::Hub;
use crate::ws::news::News;
use crate::ws::sockets::Sockets;
use crate::ws::sse::Streams;
use crate::ws::user_frames::UserFrames;
use crate::ws::user_wakeups::UserWakeups;
use engine::book::Books;
use engine::book::stretches::PriceHistory;
use engine::directory::Directory;
use engine::market::catalog::Catalog;
use engine::market::spot::Spot;
use engine::rules::Rules;
use engine::time::Timestamp;
use host::clock::Clock;
use host::leap::Leap;
use std::rc::Rc;
use std::sync::Arc;

/// The state that all threads share: configuration, the lock-free read sides, limits, figures.
pub struct App {
    pub config: Settings,
    pub rules: Arc<Rules>,
    pub catalog: Arc<Catalog>,
    pub books: Arc<Books>,
    pub directory: Arc<Directory>,
    pub clock: Clock,
    /// The clock check of this start.
    pub leap: Arc<Leap>,
    pub front: Front,
    pub connections: Arc<Connections>,
    pub started_at: Timestamp,
    /// A UUID of this copy of the data directory.
    pub instance: String,
    /// Figures of the parts outside the edge.
    pub instruments: Box<dyn Instruments>,
    pub census: Census,
    /// The price history.
    pub history: Box<dyn PriceHistory>,
    pub cohort: Cohort,
    /// Changes from the feed for the streams.
    pub news: Arc<News>,
    /// Seats of open event streams.
    pub streams: Arc<Streams>,
    /// Spot prices of the assets of up-or-down markets.
    pub spot: Spot,
    /// Followers of a user's orders.
    pub user_wakeups: UserWakeups,
    /// Seats of open sockets.
    pub seats: Arc<Seats>,
    /// Frames that sockets of one user share.
    pub user_frames: Arc<UserFrames>,
    /// Counters for a monitor, where metrics are on.
    pub meters: Option<EdgeMeters>,
}

/// The state of one IO thread: the shared state and its way into the core. Held in an `Rc`.
pub struct Edge {
    pub app: Arc<App>,
    pub engine: EngineClient,
    /// The sockets that this thread serves.
    pub sockets: Rc<Sockets>,
    /// Its followers of markets.
    pub hub: Rc<Hub>,
    /// Its connections whose responses are to be written.
    pub write_batch: Rc<WriteBatch>,
    /// Uses of keys that are to be noted.
    pub last_used: Rc<LastUsed>,
    /// Texts of books.
    pub book_texts: TextCache,
}

impl Edge {
    pub fn new(app: Arc<App>, engine: EngineClient) -> Edge {
        let write_batch = Rc::<WriteBatch>::default();
        let hub = Rc::new(Hub::new(app.clone(), Rc::clone(&write_batch)));
        Edge {
            app,
            engine,
            sockets: Rc::default(),
            hub,
            write_batch,
            last_used: Rc::default(),
            book_texts: TextCache::default(),
        }
    }
}

impl App {
    /// Figures of the core and the feed, for health and status.
    pub fn vitals(&self) -> Vitals {
        Vitals { connections: self.seats.open() as u64, ..self.instruments.vitals() }
    }
}
