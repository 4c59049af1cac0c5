//! The base of the process tests: one real `papertape`, a client that shows every byte of an answer, a hand-made
//! market, and a count of the cases that ran.
//!
//! | File | Provides |
//! |---|---|
//! | `binary.rs` | the program, built once |
//! | `server.rs` | the program running: start, banner, kill, drain, output |
//! | `http.rs` | a keep-alive client and raw sends; hides nothing and retries nothing |
//! | `socket.rs` | a WebSocket client; sends any bytes |
//! | `tape.rs` | a hand-made market, written line by line as a recording |
//! | `hours.rs` | a recording of some past hours, of which every row is known |
//! | `world.rs` | a server on that market with users in it |
//! | `exposition.rs` | a strict parser of `GET /metrics` |
//! | `history.rs` | a hand-made history, written into the log of a stopped server |
//! | `payments.rs` | a stand-in of a payment provider |
//! | `receiver.rs` | a receiver of webhooks that answers as the test says |
//! | `token.rs` | identity tokens, right and wrong ones |
//! | `json.rs` | reading answers; money as integers |
//! | `cases.rs` | the count of cases; a table that ran empty is a failure |
//! | `departing.rs` | ended orders that leave memory soon |
//! | `description.rs` | checks every answer against the OpenAPI document |
//! | `frames.rs` | checks frames against the AsyncAPI document |
//! | `chance.rs` | seeded randomness |
//!
//! Nothing here measures time. A test that has to wait waits for a condition, with a bound that only a broken server
//! reaches.

pub mod address;
pub mod binary;
pub mod cases;
pub mod chance;
pub mod departing;
pub mod description;
pub mod exposition;
pub mod frames;
pub mod history;
pub mod hours;
pub mod http;
pub mod json;
pub mod payments;
pub mod receiver;
pub mod server;
pub mod socket;
pub mod tape;
pub mod token;
pub mod world;

use std::time::{Duration, Instant};

/// Longest wait of a test for a prompt event, before the server counts as broken.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `ready` until it returns a value; panics with `what` when [`PATIENCE`] is over.
pub fn eventually<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
