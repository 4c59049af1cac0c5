//! How patient live adapters are. The defaults are upstream.md's; tests and unusual networks set others.

use std::time::Duration;

/// Lengths of time that adapters go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// A socket with subscriptions that brings no text for so long is dead, whatever pongs it sends (§5).
    pub silent_after: Duration,
    /// A token of which a socket brings nothing for so long is asked about: its subscription may be lost (§5).
    pub quiet_after: Duration,
    /// First and longest wait before a lost connection is tried again; it doubles in between (§5).
    pub reconnect_first: Duration,
    pub reconnect_max: Duration,
    /// First wait before a REST call that met 425, 429 or 5xx is made again; it doubles (§3.1).
    pub retry_first: Duration,
    /// How long one REST call may take.
    pub call_timeout: Duration,
    /// How often the newest markets are looked for, and the most traded ones (§2).
    pub newest_every: Duration,
    pub traded_every: Duration,
    /// How often markets are asked about that have ended or that somebody here trades (§2, execution.md §12).
    pub standing_every: Duration,
    /// Without any live connection for so long the venue is out (execution.md §10).
    pub outage_after: Duration,
    /// How long a book may stay crossed, or disagree with its mirror, before it is asked for anew (§5).
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
