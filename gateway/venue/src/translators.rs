//! Shared by live adapters and replay: one translator per venue, and the dispatch of records to them.

use super::FeedUpdate;
use super::category::Names;
use super::kalshi::{self, Sequence};
use super::polymarket;
use super::skips::Skips;
use super::tape::{Origin, Record};
use engine::time::Timestamp;
use std::sync::Arc;

/// The translators of all venues.
pub struct Translators {
    pub kalshi: kalshi::Translate,
    pub polymarket: polymarket::Translate,
}

impl Translators {
    /// Translators without markets; they count what they skip in `skips`.
    pub fn new(sequence: Sequence, skips: &Arc<Skips>, names: &Names) -> Translators {
        Translators {
            kalshi: kalshi::Translate::new(sequence, skips.clone(), names.clone()),
            polymarket: polymarket::Translate::new(skips.clone(), names.clone()),
        }
    }

    /// Appends the updates of a record that arrived on this connection at this time.
    pub fn translate(&mut self, record: &Record<'_>, connection: u8, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let Translators { kalshi, polymarket } = self;
        match record {
            Record::Frame { origin: Origin::Kalshi, body, .. } => kalshi.frame(body, connection, at, updates),
            Record::Frame { origin: Origin::Polymarket, body, .. } => polymarket.frame(body, connection, at, updates),
            Record::Answer { origin: Origin::Kalshi, url, status, body, .. } => {
                kalshi.rest(url, *status, body, at, updates);
            }
            Record::Answer { origin: Origin::Polymarket, url, status, body, .. } => {
                polymarket.rest((url, *status, body), connection, at, updates);
            }
            Record::Gap { origin: Origin::Kalshi, reason, .. } => kalshi.gap(connection, reason, updates),
            Record::Gap { origin: Origin::Polymarket, reason, .. } => polymarket.gap(connection, reason, updates),
        }
    }
}
