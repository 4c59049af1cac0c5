//! Metrics of the server for a monitor: `GET /metrics` on the admin listener (`[admin] listen`).
//!
//! Counters and histograms are plain atomics where the events are; they exist, and clocks are read for them, only with
//! an admin listener. Everything else is read from the parts of the server when it is requested.
//!
//! | File | Holds |
//! |---|---|
//! | `gather.rs` | all families in order, and the wait until their figures are durable |
//! | `edge.rs` | requests, refusals, how long placements and cancels took |
//! | `journal.rs` | the log, recovery, order facts |
//! | `feed.rs` | the venue and the books |
//! | `upstream.rs` | live venues: connections, skipped messages, recordings |
//! | `archive.rs` | the job that keeps the archive |
//! | `history.rs` | ended rows: memory, moves, reads |
//! | `alerts.rs` | the job that delivers alerts |
//! | `streams.rs` | sockets and the fan-out of updates |
//! | `clock.rs` | whether the clock can be trusted |
//! | `published.rs` | the uptime, and files of the operator |
//! | `system.rs` | the kernel's figures of this process |
//! | `histogram.rs`, `family.rs` | durations in buckets; names, labels and rows |

mod alerts;
mod archive;
mod billing;
mod clock;
mod edge;
mod family;
mod feed;
pub mod gather;
pub mod history;
pub mod journal;
mod published;
mod streams;
mod system;
mod upstream;
