//! Controls of a running server for operators: the routes under `/v1/admin/` (gateway/docs/admin.md §1).
//!
//! | File | Holds |
//! |---|---|
//! | `namespace.rs` | the routes: token, method, body, and the one control that runs |
//! | `token.rs` | the admin token |
//! | `node.rs` | [`Node`]: the server as this package sees it; `GET /v1/admin/node` |
//! | `backup.rs` | `POST /v1/admin/backup`: a backup of the running server |
//! | `clock.rs` | `GET /v1/admin/clock`, `POST /v1/admin/clock/step`: the clock, and steps of a back-test with a bot |
//! | `users.rs` | `POST /v1/admin/grants`, `…/wallets`, `…/refunds`: plans, COMPETITION wallets and payments of users |
//! | `realism.rs` | `PUT /v1/admin/keys/{id}/realism`: the set of realism of a key |
//! | `addresses.rs` | `PUT /v1/admin/addresses/{address}`: what an address is, for the rehearsal of the venue's checks |
//! | `notices.rs` | `POST /v1/admin/notices`: a notice to one user, or to all |
//! | `pipe.rs` | bytes from a thread that may block to a connection, and the detection of slow peers |
//! | `deadline.rs` | how long a connection may take, before and after it has shown the token |
//! | `refusal.rs` | why a request is refused |
//!
//! Every route needs the admin token, on loopback, too. Controls run one at a time.
//!
//! May depend on `engine`, for its times, on `wire`, and on `host`, for threads and stop flags. It has no listener, log,
//! or files: `gateway` implements [`Node`], and turns a [`Reply`] or a [`Refusal`] into a response.

mod addresses;
mod backup;
mod clock;
mod deadline;
mod namespace;
mod node;
pub mod notices;
mod pipe;
mod realism;
mod refusal;
mod token;
pub mod users;

pub use addresses::NotDeclared;
pub use clock::{ClockStatus, NoStep, RunStatus};
pub use deadline::{CONNECTION_MAX, Deadline};
pub use namespace::{Namespace, PREFIX, Reply};
pub use node::{Copying, Declaring, Doing, Horizon, Lost, NoBackup, NoRefund, Node, Refunding, Status, Stays, Taken};
pub use pipe::{Stream, Truncated};
pub use refusal::Refusal;
pub use token::Token;
