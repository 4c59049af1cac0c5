//! Timeouts and intervals of live adapters. The defaults are those of gateway/docs/live-venues.md; tests and unusual
//! networks set others.

use std::time::Duration;

/// Durations that adapters use. The sections are those of gateway/docs/live-venues.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// A socket with subscriptions that carries no text for this long is dead, even if it sends pongs (§5).
    pub silent_after: Duration,
    /// When no message about a token arrives for this long, its book is requested: the subscription may be lost (§5).
    pub quiet_after: Duration,
    /// First and longest wait before a lost connection is opened again; the wait doubles in between (§5).
    pub reconnect_first: Duration,
    pub reconnect_max: Duration,
    /// First wait before a REST call that failed with 425, 429 or 5xx is repeated; the wait doubles (§3.1).
    pub retry_first: Duration,
    /// Timeout of one REST call.
    pub call_timeout: Duration,
    /// Interval between reads of the newest markets, and between reads of the most traded ones (§2).
    pub newest_every: Duration,
    pub traded_every: Duration,
    /// Interval between reads of markets that have ended or that users trade (§2, engine/docs/execution.md §12).
    pub standing_every: Duration,
    /// The venue is out when no connection lives for this long (engine/docs/execution.md §10).
    pub outage_after: Duration,
    /// How long a book may stay crossed, or differ from its mirror, before it is requested again (§5).
    pub crossed_max: Duration,
    pub mirror_max: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            silent_after: Duration::from_secs(30),
            quiet_after: Duration::from_secs(120),
            reconnect_first: Duration::from_millis(250),
            reconnect_max: Duration::from_secs(30),
            retry_first: Duration::from_secs(1),
            call_timeout: Duration::from_secs(30),
            newest_every: Duration::from_secs(30),
            traded_every: Duration::from_secs(300),
            standing_every: Duration::from_secs(30),
            outage_after: Duration::from_secs(15),
            crossed_max: Duration::from_secs(2),
            mirror_max: Duration::from_secs(5),
        }
    }
}
