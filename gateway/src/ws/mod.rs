//! Streams: sockets and what is said on them (streams.md).
//!
//! | File | Holds |
//! |---|---|
//! | `trade.rs` | order entry: operations that run their REST twins' own routes |
//! | `asyncapi.rs` | what a channel is for machines, and the AsyncAPI document of all |
//! | `shape/` | the frames of each channel |

pub mod asyncapi;
pub mod shape;
pub mod trade;
