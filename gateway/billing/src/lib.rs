//! The payment provider of a server (gateway/docs/billing.md §7), as the port of the edge asks for it.
//!
//! | File | Holds |
//! |---|---|
//! | `stripe.rs` | the provider `stripe`: which call makes which page |
//! | `calls.rs` | the thread of the calls, their bounds, and one exchange over HTTP |
//! | `signature.rs` | the signature of an event |
//! | `event.rs` | an event of the provider as an event of the engine |
//! | `hex.rs` | hexadecimal digits |
//! | `stub.rs` | the provider `stub`, for development: signed links to this server |
//!
//! May depend on `engine`, `wire`, `host`, and the port of `edge`. Amounts are those of the engine's price list; nothing
//! that a client or the provider sends is used as one.

mod calls;
pub mod event;
mod hex;
pub mod signature;
pub mod stripe;
pub mod stub;

pub use event::Price;
pub use stripe::{Settings, Stripe};
pub use stub::Stub;
