//! The state of the connections to one venue: written by its adapter, read by the feed and by health responses.

use engine::time::Timestamp;
use host::leap::ReportedTime;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Failed REST calls in a row that mean an outage while no socket is open (engine/docs/execution.md §10).
const REST_FAILURES_MAX: u32 = 5;

/// Independent counters; no other memory access is ordered by them.
#[derive(Debug, Default)]
pub struct Health {
    /// Open sockets, and tokens that are subscribed on them (or polled, where there is no socket).
    pub connections: AtomicU32,
    pub subscribed_tokens: AtomicU64,
    /// Server time of the last sign of life of any connection; until the first one, the time of the start.
    pub alive_at: AtomicU64,
    /// A connection has shown a sign of life.
    has_lived: AtomicBool,
    /// REST calls that failed since the last success.
    pub rest_failures: AtomicU32,
    /// Connections that were lost since the start.
    pub reconnects: AtomicU64,
    /// The venue's own time.
    pub time: Arc<ReportedTime>,
}

impl Health {
    /// Silence counts from `now`.
    pub fn starting(now: Timestamp) -> Health {
        let health = Health::default();
        health.alive_at.store(now.0, Relaxed);
        health
    }

    /// Records a sign of life of a connection.
    pub fn alive(&self, now: Timestamp) {
        self.alive_at.fetch_max(now.0, Relaxed);
        self.has_lived.store(true, Relaxed);
    }

    /// Whether a connection has shown a sign of life since the start.
    pub fn was_alive(&self) -> bool {
        self.has_lived.load(Relaxed)
    }

    /// Whether the venue is out (engine/docs/execution.md §10).
    pub fn is_out(&self, now: Timestamp, outage_after_us: u64) -> bool {
        let silent = now.since(Timestamp(self.alive_at.load(Relaxed))) > outage_after_us;
        let unanswered = self.connections.load(Relaxed) == 0 && self.rest_failures.load(Relaxed) >= REST_FAILURES_MAX;
        silent || unanswered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::time::SECOND;

    #[test]
    fn an_outage_is_silence_or_failing_calls_without_a_socket() {
        let cases = [
            // open sockets, failures in a row, seconds since the last sign of life, out
            (1, 0, 0, false),
            (1, 0, 15, false),
            (1, 0, 16, true),
            (1, 9, 1, false),
            (0, 4, 1, false),
            (0, 5, 1, true),
            (0, 0, 16, true),
        ];
        for (sockets, failures, silent, out) in cases {
            let start = Timestamp(1_000 * SECOND);
            let health = Health::starting(start);
            health.connections.store(sockets, Relaxed);
            health.rest_failures.store(failures, Relaxed);
            let now = start.plus(silent * SECOND);
            assert_eq!(health.is_out(now, 15 * SECOND), out, "{sockets} {failures} {silent}");
        }
        let health = Health::starting(Timestamp(1_000 * SECOND));
        assert!(!health.was_alive(), "a start is not a sign of life");
        health.alive(Timestamp(999 * SECOND));
        assert!(health.was_alive());
        println!("outages: {} cases", cases.len() + 2);
    }
}
