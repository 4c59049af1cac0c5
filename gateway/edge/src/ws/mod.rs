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
//! | `news.rs` | what the feed tells: one bounded queue for each IO thread, and who is interested in what |
//! | `change.rs` | one change of a market's books, and the frames that all subscribers share |
//! | `batch.rs` | changes of one market that came together, put together once for all who hear all of them |
//! | `hub.rs` | who listens to what on a thread; hands the news out |
//! | `market.rs`, `market_follow.rs`, `market_text.rs` | the market channel: messages; what a socket is sent; frames |
//! | `prices.rs`, `price_text.rs` | the price channel and its frame |
//! | `user_wakeups.rs`, `follow.rs` | wake-ups of the followers of a user; the order facts of a user from any number on, each once |
//! | `executions.rs`, `user.rs`, `user_text.rs` | the two channels of a user's own orders |
//! | `user_frames.rs` | frames of the user channel, encoded once for all sockets of a user that show them alike |
//! | `live/` | spot prices, as they are and as they change |
//! | `sse.rs` | the price stream as server-sent events |
//! | `trade.rs` | order entry: operations that run their REST twins' own routes |
//! | `asyncapi.rs` | what a channel is for machines, and the AsyncAPI document of all |
//! | `shape/` | the frames of each channel |

pub mod admit;
pub mod asyncapi;
pub mod batch;
pub mod change;
pub mod close;
pub mod executions;
pub mod follow;
pub mod frame;
pub mod hub;
pub mod live;
pub mod market;
pub mod market_follow;
pub mod market_text;
pub mod news;
pub mod outbox;
pub mod policy;
pub mod price_text;
pub mod prices;
pub mod publish;
pub mod reader;
pub mod session;
pub mod shape;
pub mod sockets;
pub mod sse;
#[cfg(test)]
mod tests;
pub mod trade;
pub mod user;
pub mod user_frames;
pub mod user_text;
pub mod user_wakeups;

use crate::http::route::Route;

/// The routes of the channels. They are described as channels are, not among the operations of the REST document.
pub const TABLES: &[&[Route]] = &[market::ROUTES, prices::ROUTES, executions::ROUTES, user::ROUTES, trade::ROUTES];
