//! What every IO thread shares, and what one IO thread has for itself.

use crate::api::beta::Cohort;
use crate::api::books::kept::Texts;
use crate::api::health::{Census, Instruments, Vitals};
use crate::engine_client::EngineClient;
use crate::http::front::Front;
use crate::http::last_used::LastUsed;
use crate::http::server::Connections;
use crate::http::server::departures::Departures;
use crate::meters::EdgeMeters;
use crate::settings::Settings;
use crate::ws::admit::Seats;
use crate::ws::bells::Bells;
use crate::ws::hub::Hub;
use crate::ws::news::News;
use crate::ws::sockets::Sockets;
use crate::ws::sse::Streams;
use crate::ws::user_frames::UserFrames;
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
    pub bells: Bells,
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
        Vitals { connections: self.seats.open() as u64, ..self.instruments.vitals() }
    }
}
