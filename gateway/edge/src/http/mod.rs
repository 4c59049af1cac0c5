//! HTTP: requests in, responses out. It has routes, credentials, limits and codes, and knows nothing of trading.
//!
//! | File | Holds |
//! |---|---|
//! | `pipeline.rs` | the steps that every request takes |
//! | `server.rs`, `server/` | connections; the own reader (`fast_path.rs`) and hyper |
//! | `request_head.rs`, `response_head.rs` | reading and writing of heads |
//! | `router.rs`, `route.rs` | method and path → route; the declaration of a route |
//! | `admission.rs`, `auth.rs`, `limit.rs` | credentials, permissions, limits |
//! | `call.rs`, `reply.rs`, `code.rs` | what handlers get and return; error codes |
//! | `record.rs`, `scalar.rs` | JSON records: text, schema and example from one type |
//! | `turns.rs` | long loops and long lists, in turns with other work |
//! | `openapi.rs`, `components.rs`, `schema.rs` | the description of the routes for machines |

pub mod admission;
pub mod auth;
pub mod body;
pub mod buffer;
pub mod call;
pub mod code;
pub mod cohort;
pub(crate) mod components;
pub mod containment;
pub mod dialect;
pub mod front;
pub mod hosts;
pub mod jwt;
pub mod last_used;
pub mod limit;
pub mod mailbox;
pub mod names;
pub mod openapi;
pub mod pipeline;
pub mod record;
pub mod refusals;
pub mod reply;
pub mod request_head;
pub mod response_head;
pub mod route;
pub mod router;
pub mod scalar;
pub mod schema;
pub mod server;
pub mod ticket;
pub mod turns;
pub mod usage;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
