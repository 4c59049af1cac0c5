//! The table of settings: each key once, with its type, default, bounds and meaning, in reading order.
//!
//! The rows are in the file of their section; `.github/CONTRIBUTING.md` §4.7 lists the steps of a new setting. The
//! reference (`gateway/docs/settings.md`), error texts, help and the start-up print come from the row.

mod accounts;
mod billing;
mod integrations;
mod published;
mod rules;
mod server;
mod simulation;
pub(super) mod texts;
mod venue;

use super::setting::Setting;
pub(super) use billing::price_key;
use std::sync::LazyLock;
pub(super) use venue::is_own_machine_only;

/// The sections of the configuration, in the order of the rows, each with its description.
pub(super) const SECTIONS: [(&str, &str); 29] = [
    ("server", "The listener of the wire and the threads that serve it."),
    ("clock", "What a start does when the clock of the machine and the journal disagree."),
    ("log", "Log lines on standard error."),
    ("admin", "A second listener, for monitors and operators. It serves `/metrics` and `/v1/admin/`."),
    ("http", "Bounds of requests and connections."),
    ("data", "The data directory."),
    ("journal", "The write-ahead log."),
    ("archive", "Hours of recorded market data."),
    ("history", "The store of what has ended: prices by minute and hour."),
    ("venue", "Market data, and how clients of the venue's own kind are answered."),
    ("local", "Accounts that an address makes on a server that only its own machine reaches."),
    ("brand", "Names in keys and headers."),
    ("auth", "Secrets. Start-up lines and errors never show one."),
    ("engine", "Threads and memory of the core."),
    ("limits", "Rates and counts. The limits of a tier are in `[limits.tiers.<tier>]`."),
    ("flags", "Rules of orders and gates of routes."),
    ("realism", "When resting orders fill."),
    ("fees", "Taker fees by category, in basis points of price × (1 − price), and what comes before them."),
    ("keys", "Which keys may trade, and until when."),
    ("access", "Accounts and keys by name."),
    ("book", "Books without news."),
    ("export", "CSV exports."),
    ("streams", "Sockets."),
    ("simulation", "Back-tests and exports."),
    ("football", "Facts of football."),
    ("status", "What the status routes report."),
    ("billing", "Payments, and the texts about them."),
    ("email", "Alerts by mail."),
    ("integrations", "Alerts to chats and webhooks."),
];

/// Every setting.
pub fn settings() -> &'static [Setting] {
    static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
        let parts = [
            server::rows(),
            venue::rows(),
            accounts::rows(),
            rules::rows(),
            simulation::rows(),
            published::rows(),
            billing::rows(),
            integrations::rows(),
        ];
        parts.into_iter().flatten().collect()
    });
    &SETTINGS
}
