//! What the server tells of itself to a monitor: `GET /metrics` on the admin listener (`[admin] listen`).
//!
//! Counters and histograms are plain atomics where the events are; they exist, and clocks are looked at for them, only
//! where the listener does. All else is read from what the parts know anyway, when somebody asks.
//!
//! | File | Holds |
//! |---|---|
//! | `gather.rs` | all families in order, and the wait for what they tell to be durable |
//! | `edge.rs` | requests, refusals, how long placements and cancels took |
//! | `journal.rs` | the log, recovery, order facts |
//! | `feed.rs` | the venue and the books |
//! | `upstream.rs` | live venues: connections, what was skipped, what is recorded |
//! | `streams.rs` | sockets and the handing out of news |
//! | `clock.rs` | whether the clock can be believed |
//! | `system.rs` | what the kernel knows of this program |
//! | `histogram.rs`, `family.rs` | durations in buckets; names, labels and rows |

mod clock;
mod edge;
mod family;
mod feed;
pub mod gather;
pub mod journal;
mod streams;
mod system;
mod upstream;
