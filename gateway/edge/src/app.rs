//! The state that all IO threads share, and the state of one IO thread.

use crate::api::billing::provider::Desk;
use crate::api::books::text_cache::TextCache;
use crate::api::health::{Census, Instruments, Vitals};
use crate::engine_client::EngineClient;
use crate::http::front::Front;
use crate::http::last_used::LastUsed;
use crate::http::server::write_batch::WriteBatch;
use crate::published::Published;
use crate::reads::Reads;
use crate::rehearsal::Rehearsal;
use crate::streams::Streams;
use crate::ws::hub::Hub;
use crate::ws::sockets::Sockets;
use ahash::AHashSet;
use engine::id::UserId;
use engine::time::Timestamp;
use host::leap::Leap;
use host::moments::Moments;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// State shared by all IO threads, grouped by what a handler needs of it.
pub struct App {
    /// Read access: catalogue, books, directory, rules.
    pub reads: Reads,
    /// Settings, limits, keys and secrets.
    pub front: Front,
    /// WebSockets and event streams.
    pub streams: Streams,
    /// The running server.
    pub instance: Instance,
    /// What is shown beside markets and accounts.
    pub published: Published,
    /// Findings of the rehearsal of the venue's checks, and declared addresses.
    pub rehearsal: Arc<Rehearsal>,
    /// The payment provider; `None`: there is none.
    pub billing: Option<Desk>,
    /// The moments of a back-test with a bot; `None` in a server.
    pub moments: Option<Arc<Moments>>,
}

/// The running server, as health, status and metrics report it.
pub struct Instance {
    /// UUID of this copy of the data directory.
    pub id: String,
    pub started_at: Timestamp,
    /// The clock check of this start.
    pub leap: Arc<Leap>,
    /// Figures of the parts outside the edge.
    pub instruments: Box<dyn Instruments>,
    pub census: Census,
}

/// State of one IO thread: the shared state and access to the core. Held in an `Rc`.
pub struct Edge {
    pub app: Arc<App>,
    pub engine: EngineClient,
    /// The sockets that this thread serves.
    pub sockets: Rc<Sockets>,
    /// The markets that its sockets follow.
    pub hub: Rc<Hub>,
    /// Connections with gathered responses that are not written yet.
    pub write_batch: Rc<WriteBatch>,
    /// Uses of keys that are not in the journal yet.
    pub last_used: Rc<LastUsed>,
    /// Users whose addresses are being noted.
    pub noting_email: RefCell<AHashSet<UserId>>,
    /// Cached texts of books.
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
            noting_email: RefCell::default(),
            book_texts: TextCache::default(),
        }
    }
}

impl App {
    /// Figures of the core and the feed, for health and status.
    pub fn vitals(&self) -> Vitals {
        Vitals { connections: self.streams.seats.open() as u64, ..self.instance.instruments.vitals() }
    }
}
