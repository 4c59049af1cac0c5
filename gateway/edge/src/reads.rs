//! What handlers read: the lock-free read sides of the core, and the clock.

use crate::api::integrations::port::Integrations;
use crate::api::simulation::archive::Archive;
use crate::api::simulation::exports::Exports;
use crate::api::simulation::jobs::Jobs;
use crate::ended_rows::EndedRows;
use engine::book::Books;
use engine::book::stretches::PriceHistory;
use engine::directory::Directory;
use engine::id::UserId;
use engine::market::catalog::Catalog;
use engine::market::spot::Spot;
use engine::rules::Rules;
use engine::time::UtcDay;
use host::clock::Clock;
use std::sync::Arc;

/// Read access to the core. A reader takes no lock that a writer holds for longer than a few stores.
pub struct Reads {
    /// Markets and events.
    pub catalog: Arc<Catalog>,
    /// The venue's order books.
    pub books: Arc<Books>,
    /// Users, keys and address logins.
    pub directory: Arc<Directory>,
    /// Fees and limits of orders.
    pub rules: Arc<Rules>,
    pub clock: Clock,
    /// The price history.
    pub history: Box<dyn PriceHistory>,
    /// Orders, fills and positions that have left memory.
    pub ended: Arc<dyn EndedRows>,
    /// Spot prices of the assets of up-or-down markets.
    pub spot: Spot,
    /// Markets of the past; `None`: this server has no archive.
    pub archive: Option<Arc<dyn Archive>>,
    /// The runner of back-tests; `None`: this server has none.
    pub jobs: Option<Arc<dyn Jobs>>,
    /// Exports of the archive; `None`: this server makes none.
    pub exports: Option<Arc<dyn Exports>>,
    /// What sends alerts; `None`: nothing does.
    pub integrations: Option<Arc<dyn Integrations>>,
}

impl Reads {
    /// The first day of the history that answers show to a user; `None`: they show all of it. An answer that lacks a row
    /// because of a cut is made after this says so.
    pub fn history_from(&self, user: UserId) -> Option<UtcDay> {
        self.ended.history_from().and_then(|from| from.of(user))
    }
}
