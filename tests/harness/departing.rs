//! Ended orders that leave memory for the history store within seconds.

use crate::eventually;
use crate::http::Client;
use crate::server::{Server, ServerDir};
use crate::world::{World, changed, limit};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

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
        self.server.depart_everything(&mut self.user(filler), &self.resting());
    }

    /// Returns when `count` more snapshots were made: user `filler` fills the log.
    #[track_caller]
    pub fn make_snapshots(&self, filler: usize, count: usize) {
        let newest = || self.figure("papertape_snapshot_lsn");
        let (mut known, mut left) = (newest(), count);
        self.server.fill_log_until(&mut self.user(filler), &self.resting(), "snapshots", || {
            let now = newest();
            left -= usize::from(std::mem::replace(&mut known, now) != now);
            left == 0
        });
    }

    /// Returns when the log has a record with this LSN: user `filler` fills it.
    #[track_caller]
    pub fn fill_log_to(&self, filler: usize, lsn: u64) {
        self.server.fill_log_until(&mut self.user(filler), &self.resting(), "a longer log", || self.log_end() >= lsn);
    }

    /// The LSN of the newest record.
    #[track_caller]
    pub fn log_end(&self) -> u64 {
        self.figure("papertape_journal_appended_lsn")
    }

    fn resting(&self) -> Value {
        limit(&self.markets.rain, "BUY", "0.01", "10")
    }
}

impl Server {
    /// The same with a client and its order, which rests.
    #[track_caller]
    pub fn depart_everything(&self, filler: &mut Client, order: &Value) {
        // The window is a second of server time.
        std::thread::sleep(Duration::from_millis(1_100));
        self.fill_log_until(filler, order, "no ended order in memory", || {
            self.figure("papertape_orders_open") == self.figure("papertape_orders_in_memory")
        });
    }

    /// Fills the log with orders that rest.
    #[track_caller]
    fn fill_log_until(&self, filler: &mut Client, order: &Value, what: &str, mut is_done: impl FnMut() -> bool) {
        let mut sent = 0;
        let begun = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_micros();
        eventually(what, || {
            if is_done() {
                return Some(());
            }
            let id = |entry: usize| json!({"client_order_id": format!("{:x<250}", format!("{begun}-{sent}-{entry}-"))});
            let entries: Vec<Value> = (0..BATCH).map(|entry| changed(order, &id(entry))).collect();
            sent += 1;
            // It may be busy.
            filler.post("/v1/orders/batch", &json!({"orders": entries}));
            None
        });
    }
}
