//! Streams: the sockets of bots (streams.md), under the frame library with a policy of our own.
//!
//! | File | Holds |
//! |---|---|
//! | `session.rs` | one socket from handshake to end: [`Socket`](session::Socket), the seam [`Channel`](session::Channel) |
//! | `sockets.rs` | all open sockets of a thread, and the sweep over them |
//! | `admit.rs` | who opens one, and how many he may have |
//! | `policy.rs` | what a peer's frames must be like |
//! | `reader.rs` | whole messages |
//! | `outbox.rs` | what waits to leave on one socket |
//! | `frame.rs`, `close.rs` | encoded frames; close codes |

pub mod admit;
pub mod close;
pub mod frame;
pub mod outbox;
pub mod policy;
pub mod reader;
pub mod session;
pub mod sockets;
#[cfg(test)]
mod tests;

use crate::http::route::Route;

/// The routes of the channels. They are described as channels are, not among the operations of the REST document.
pub const TABLES: &[&[Route]] = &[];
