//! What the process tests stand on: one real `papertape`, a client that sees every byte of an answer, a hand-made
//! market, and a count of the cases that ran.
//!
//! | File | Gives |
//! |---|---|
//! | `binary.rs` | the program, built once |
//! | `server.rs` | the program running: start, banner, kill, drain, what it printed |
//! | `http.rs` | a keep-alive client and raw sends; hides nothing and repeats nothing |
//! | `socket.rs` | a WebSocket client; sends any bytes |
//! | `tape.rs` | a market of our own, written line by line as a recording |
//! | `world.rs` | a server on that market with users in it |
//! | `exposition.rs` | what `GET /metrics` says, read strictly |
//! | `history.rs` | a past of our own, written into the log of a stopped server |
//! | `token.rs` | identity tokens, right and wrong ones |
//! | `json.rs` | reading answers; money as integers |
//! | `cases.rs` | the count of cases; a table that ran empty is a failure |
//! | `description.rs` | every answer held against the machine description |
//! | `frames.rs` | frames held against the description of the streams |
//! | `chance.rs` | seeded randomness |
//!
//! Nothing here measures time. Where a test has to wait it waits for a condition, with a bound that only a broken
//! server reaches.

pub mod address;
pub mod binary;
pub mod cases;
pub mod chance;
pub mod description;
pub mod exposition;
pub mod frames;
pub mod history;
pub mod http;
pub mod json;
pub mod server;
pub mod socket;
pub mod tape;
pub mod token;
pub mod world;

use std::time::{Duration, Instant};

/// How long a test waits for something that should come at once, before it calls the server broken.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks `ready` until it has an answer; panics with `what` when [`PATIENCE`] is over.
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
