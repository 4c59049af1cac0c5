//! Streams: what clients hear of markets and of their own orders without asking (streams.md).
//!
//! | File | Holds |
//! |---|---|
//! | `news.rs` | what the feed tells: one bounded queue for each IO thread, and who is interested in what |
//! | `change.rs` | one change of a market's books, and the frames that all subscribers share |
//! | `market_text.rs` | the frames of the market channel as texts |

pub mod change;
pub mod market_text;
pub mod news;
