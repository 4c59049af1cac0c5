//! What every IO thread shares, and what one IO thread has for itself.

use crate::clock::Clock;
use crate::commit::CommitFigures;
use crate::config::Config;
use crate::engine_client::EngineClient;
use crate::http::front::Front;
use crate::http::server::Connections;
use crate::venue::feed::FeedFigures;
use engine::book::Books;
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
    pub connections: Arc<Connections>,
    pub started_at: Timestamp,
    pub commit: Arc<CommitFigures>,
    pub feed: Arc<FeedFigures>,
}

/// One IO thread's own: the shared part and its way into the core. Lives in an `Rc`.
pub struct Edge {
    pub app: Arc<App>,
    pub engine: EngineClient,
}
