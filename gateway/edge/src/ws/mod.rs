//! WebSocket channels and server-sent events (gateway/docs/streams.md). A frame library reads frames, after checks of
//! our own.
//!
//! | File | Holds |
//! |---|---|
//! | `session.rs` | one socket from handshake to end: [`Socket`](session::Socket), the seam [`Channel`](session::Channel) |
//! | `sockets.rs` | all open sockets of a thread, and the sweep over them |
//! | `admit.rs` | admission of sockets, and their caps |
//! | `policy.rs` | checks of a peer's frames |
//! | `reader.rs` | complete messages |
//! | `outbox.rs` | the queue of one socket |
//! | `frame.rs`, `close.rs` | encoded frames; close codes |
//! | `news.rs` | news of the feed: one bounded queue for each IO thread, and the interests of its sockets |
//! | `change.rs` | one change of a market's books, with frames that all subscribers share |
//! | `batch.rs` | changes of one market that arrived together, put together once for all sockets that get all of them |
//! | `hub.rs` | followers and watchers of a thread; delivers the news |
//! | `market.rs`, `market_follow.rs`, `market_text.rs` | the market channel: messages; subscriptions; frames |
//! | `prices.rs`, `price_text.rs` | the price channel and its frame |
//! | `user_wakeups.rs`, `follow.rs` | wake-ups of the followers of a user; the order facts of a user from any number
//! on, each once |
//! | `executions.rs`, `user.rs`, `user_text.rs` | the two channels of a user's own orders |
//! | `user_frames.rs` | frames of the user channel, encoded once for all sockets of a user with the same style |
//! | `live/` | spot prices, their newest values and their changes |
//! | `sse.rs` | the price stream as server-sent events |
//! | `trade.rs` | order entry: operations that run the handlers of their REST twins |
//! | `asyncapi.rs` | the description of channels, and the AsyncAPI document |
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

/// Routes of the channels. AsyncAPI describes them, not OpenAPI.
pub const TABLES: &[&[Route]] = &[market::ROUTES, prices::ROUTES, executions::ROUTES, user::ROUTES, trade::ROUTES];
