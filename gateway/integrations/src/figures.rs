//! Counts of deliveries, for monitors.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Ways that alerts take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Mail,
    Chat,
    Webhook,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Mail, Way::Chat, Way::Webhook];

    pub fn name(self) -> &'static str {
        match self {
            Way::Mail => "mail",
            Way::Chat => "chat",
            Way::Webhook => "webhook",
        }
    }
}

/// Counts since the start of the server.
#[derive(Debug, Default)]
pub struct Figures {
    ways: [WayFigures; 3],
    /// Alerts that wait, of the users that the dispatcher knows.
    owed: AtomicU64,
    /// Alerts that were dropped because too many waited.
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct WayFigures {
    delivered: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
}

impl Figures {
    pub(crate) fn note_delivered(&self, way: Way) {
        self.ways[way as usize].delivered.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_failed(&self, way: Way, gives_up: bool) {
        self.ways[way as usize].failed.fetch_add(1, Relaxed);
        self.ways[way as usize].given_up.fetch_add(u64::from(gives_up), Relaxed);
    }

    pub(crate) fn set_owed(&self, owed: u64) {
        self.owed.store(owed, Relaxed);
    }

    pub(crate) fn note_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Relaxed);
    }

    /// Alerts that reached their receiver.
    pub fn delivered(&self, way: Way) -> u64 {
        self.ways[way as usize].delivered.load(Relaxed)
    }

    /// Attempts that failed.
    pub fn failed(&self, way: Way) -> u64 {
        self.ways[way as usize].failed.load(Relaxed)
    }

    /// Alerts whose last attempt failed.
    pub fn given_up(&self, way: Way) -> u64 {
        self.ways[way as usize].given_up.load(Relaxed)
    }

    pub fn owed(&self) -> u64 {
        self.owed.load(Relaxed)
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}
