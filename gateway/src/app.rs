//! What every IO thread shares, and what one IO thread has for itself.

use crate::clock::Clock;
use crate::config::Config;
use crate::engine_client::EngineClient;
use crate::http::front::Front;
use engine::book::registry::Books;
use engine::directory::Directory;
use engine::market::catalog::Catalog;
use engine::rules::Rules;
use engine::time::Timestamp;
use std::sync::Arc;

/// Shared by all threads: configuration, the lock-free read sides, limits, figures.
pub struct App {
    pub config: Config,
    pub rules: Arc<Rules>,
    pub catalog: Arc<Catalog>,
    pub books: Arc<Books>,
    pub directory: Arc<Directory>,
    pub clock: Clock,
    pub front: Front,
    pub started_at: Timestamp,
}

/// One IO thread's own: the shared part and its way into the core. Lives in an `Rc`.
pub struct Edge {
    pub app: Arc<App>,
    pub engine: EngineClient,
}

impl App {
    /// Figures of the core and the feed, for health and status.
    pub fn vitals(&self) -> crate::api::health::Vitals {
        crate::api::health::Vitals::default()
    }
}
