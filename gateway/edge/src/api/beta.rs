//! How full the beta is (market-data.md §12).

use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::http::route::Route;
use crate::http::schema::{INTEGER, Schema, Shape, TS_OR_NULL, field};
use crate::reads::Reads;
use engine::time::{SECOND, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How long a count is shown.
const SHOWN_FOR_US: u64 = 10 * SECOND;
/// Users that are looked at before others get their turn: some tens of nanoseconds each.
const USERS_PER_PIECE: u64 = 10_000;

const STATUS: Shape = Shape::new(
    "CohortStatus",
    "How full the beta is.",
    &[
        field("cohort_label", Schema::Word(&["open", "beta"]), "`open` while there is no cap."),
        field("available", Schema::Boolean, "A newcomer would get a key."),
        field("active", INTEGER, "Users with a working key, counted at most ten seconds ago; 0 without a cap."),
        field("cap", INTEGER, "0: none."),
        field("cutoff", TS_OR_NULL, "When keys issued now become free and read-only."),
        field("reopens_at", TS_OR_NULL, "Unknown, hence null."),
    ],
);
const EXAMPLE: &str = r#"{"cohort_label":"open","available":true,"active":0,"cap":0,"cutoff":null,"reopens_at":null}"#;

pub const ROUTES: &[Route] = &[Route::get("/api/beta/cohort-status", "get_cohort_status")
    .about("Whether the beta takes newcomers.")
    .gives(200, &Schema::Object(&STATUS), EXAMPLE)
    .run(|call| Box::pin(status(call)))];

/// The last count of the cohort. A cold one says 0, so that nobody is counted before anybody asks.
#[derive(Debug, Default)]
pub struct Cohort {
    counted_at: AtomicU64,
    active: AtomicU64,
}

async fn status(call: Call) -> Outcome {
    let app = call.app();
    let cap = app.front.settings.flags.cohort_cap;
    // Without a cap there is no cohort that anybody belongs to.
    let active = if cap == 0 { 0 } else { app.instance.cohort.active(&app.reads, call.now).await };
    Ok(Reply::object(|o| {
        o.word("cohort_label", if cap == 0 { "open" } else { "beta" });
        o.boolean("available", cap == 0 || active < cap);
        o.integer("active", active);
        o.integer("cap", cap);
        o.ts_or_null("cutoff", app.front.settings.keys.beta_until);
        // A full cohort opens when somebody leaves it, which nobody knows.
        o.null("reopens_at");
    }))
}

impl Cohort {
    /// Users who hold a working key, as counted at most ten seconds ago.
    async fn active(&self, reads: &Reads, now: Timestamp) -> u64 {
        let counted_at = self.counted_at.load(Relaxed);
        if counted_at > 0 && now.0 < counted_at + SHOWN_FOR_US {
            return self.active.load(Relaxed);
        }
        let (mut active, mut from) = (0, 1);
        loop {
            let to = from + USERS_PER_PIECE;
            active += reads.directory.holders_between(from..to, now) as u64;
            if to > reads.directory.users_count() as u64 {
                break;
            }
            from = to;
            tokio::task::yield_now().await;
        }
        self.active.store(active, Relaxed);
        self.counted_at.store(now.0, Relaxed);
        active
    }
}
