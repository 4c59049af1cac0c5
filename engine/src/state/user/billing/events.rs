//! Events of the payment provider that were processed.

use super::Billing;
use crate::bytes::row;
use crate::time::{DAY, Timestamp};

/// Processed events that are remembered: the newest, and for how long, µs.
pub const EVENTS_KEPT: usize = 256;
pub const EVENTS_KEPT_US: u64 = 30 * DAY;

/// A processed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownEvent {
    /// When the provider made it.
    pub created: Timestamp,
    pub id: Box<str>,
}

row! { KnownEvent { created, id } }

impl Billing {
    /// Whether an event was processed.
    pub fn knows(&self, event: &str) -> bool {
        self.events.iter().any(|known| *known.id == *event)
    }

    pub(super) fn note_event(&mut self, event: &str, created: Timestamp, at: Timestamp) {
        let row = self.events.binary_search_by(|known| (known.created, &*known.id).cmp(&(created, event)));
        if let Err(row) = row {
            self.events.insert(row, KnownEvent { created, id: event.into() });
        }
        self.events.retain(|known| at.since(known.created) < EVENTS_KEPT_US);
        let surplus = self.events.len().saturating_sub(EVENTS_KEPT);
        self.events.drain(..surplus);
    }
}
