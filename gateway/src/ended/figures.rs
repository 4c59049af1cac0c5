//! What the readers of rows that have left memory did since the start: relaxed counters, one or two for each request.

use host::histogram::Micros;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How a request for rows ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A look-up found a row, or an answer was completed.
    Found,
    /// A look-up found no row.
    Nothing,
    /// The rows cannot be read.
    Unreadable,
    /// Too many requests waited.
    Busy,
}

impl Outcome {
    pub const ALL: [Outcome; 4] = [Outcome::Found, Outcome::Nothing, Outcome::Unreadable, Outcome::Busy];

    pub fn name(self) -> &'static str {
        match self {
            Outcome::Found => "found",
            Outcome::Nothing => "nothing",
            Outcome::Unreadable => "unreadable",
            Outcome::Busy => "busy",
        }
    }
}

/// Requests of one kind.
#[derive(Debug, Default)]
pub struct Reads {
    /// From the request to its result, waiting included; of those that were read.
    pub took: Micros,
    counts: [AtomicU64; Outcome::ALL.len()],
}

impl Reads {
    pub fn note(&self, outcome: Outcome, took: Duration) {
        self.count(outcome);
        self.took.note(took);
    }

    /// Counts a request that was not read.
    pub fn count(&self, outcome: Outcome) {
        self.counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn of(&self, outcome: Outcome) -> u64 {
        self.counts[outcome as usize].load(Ordering::Relaxed)
    }
}

/// All requests.
#[derive(Debug, Default)]
pub struct ReadFigures {
    /// Look-ups for commands.
    pub look_ups: Reads,
    /// Answers that were completed.
    pub answers: Reads,
}
