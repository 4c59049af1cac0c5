//! What every IO thread shares, and what one IO thread has for itself.

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

/// Shared by all threads: configuration, the lock-free read sides, limits, figures.
pub struct App {
    pub config: Settings,
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
    /// What is told of parts that the edge does not know.
    pub instruments: Box<dyn Instruments>,
    pub census: Census,
    /// Prices as they went.
    pub history: Box<dyn PriceHistory>,
    pub cohort: Cohort,
    /// What the feed tells the streams.
    pub news: Arc<News>,
    /// Places of open event streams.
    pub streams: Arc<Streams>,
    /// Prices of what up-or-down markets are about.
    pub spot: Spot,
    /// Whoever follows a user's orders.
    pub user_wakeups: UserWakeups,
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
    pub write_batch: Rc<WriteBatch>,
    /// Its keys' uses that are about to be noted.
    pub last_used: Rc<LastUsed>,
    /// Books as it wrote them last.
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
