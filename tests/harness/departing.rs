//! Ended orders that leave memory for the history store within seconds.

use crate::eventually;
use crate::http::Client;
use crate::server::{Server, ServerDir};
use crate::world::{World, changed, limit};
use serde_json::{Value, json};
use std::time::Duration;

/// Orders of one batch.
const BATCH: usize = 20;

/// Settings with which ended orders leave memory a second after their end, with the next of many checkpoints.
pub fn leaving_soon(place: &mut ServerDir) {
    place.set("history", "hot_seconds", "1").set("history", "hot_rows_max", "16");
    place.set("journal", "segment_bytes", "1048576").set("journal", "checkpoint_segments", "1");
    place.set("admin", "listen", "\"127.0.0.1:0\"");
}

impl World {
    /// Returns when no ended order is in memory: user `filler`, whose orders rest, fills the log until checkpoints have
    /// moved all of them. The settings are those of [`leaving_soon`].
    #[track_caller]
    pub fn depart_everything(&self, filler: usize) {
        self.server.depart_everything(&mut self.user(filler), &limit(&self.markets.rain, "BUY", "0.01", "10"));
    }
}

impl Server {
    /// The same with a client and its order, which rests.
    #[track_caller]
    pub fn depart_everything(&self, filler: &mut Client, order: &Value) {
        // The window is a second of server time.
        std::thread::sleep(Duration::from_millis(1_100));
        let mut sent = 0;
        eventually("no ended order in memory", || {
            let (open, all) = (self.figure("papertape_orders_open"), self.figure("papertape_orders_in_memory"));
            if open == all {
                return Some(());
            }
            let id = |entry: usize| json!({"client_order_id": format!("{:x<250}", format!("{sent}-{entry}-"))});
            let entries: Vec<Value> = (0..BATCH).map(|entry| changed(order, &id(entry))).collect();
            sent += 1;
            // It may be busy.
            filler.post("/v1/orders/batch", &json!({"orders": entries}));
            None
        });
    }
}
