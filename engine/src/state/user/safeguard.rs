//! Heartbeat registrations (engine/docs/orders.md §6). Arming and ending are facts; beats are not: a restart gives
//! every registration a fresh interval.

use crate::time::{MILLISECOND, SECOND, Timestamp};

/// Label of the venue's heartbeat. No client can send it: labels of the native form have no control characters.
pub const VENUE_LABEL: &str = "\u{1}venue";
/// Interval of the venue's heartbeat: with its margin it lapses 10 s after a beat (gateway/docs/venue-clients.md §8).
pub const VENUE_INTERVAL_MS: u32 = 8_000;

/// A heartbeat registration: when it lapses, all open orders are cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Safeguard {
    pub label: Box<str>,
    pub interval_ms: u32,
    /// Time of its lapse. Not journaled, not in snapshots.
    pub lapses_at: Timestamp,
    /// Name of the last beat in the venue's form; `None` after a restart and in the native form. Not journaled, like
    /// `lapses_at`.
    pub beat: Option<[u8; 16]>,
}

/// When a beat at this moment lapses: after the interval and a margin of a quarter of it, at least one second.
pub fn lapses_at(interval_ms: u32, beat: Timestamp) -> Timestamp {
    let interval = u64::from(interval_ms) * MILLISECOND;
    beat.plus(interval + (interval / 4).max(SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_lasts_for_its_interval_and_a_margin() {
        for (interval_ms, lasts_ms) in
            [(1_000, 2_000), (4_000, 5_000), (VENUE_INTERVAL_MS, 10_000), (10_000, 12_500), (60_000, 75_000)]
        {
            assert_eq!(lapses_at(interval_ms, Timestamp(7)), Timestamp(7 + lasts_ms * 1_000));
        }
    }
}
