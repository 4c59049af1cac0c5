//! How full the beta is (`gateway/docs/market-data.md §12`).

use crate::http::call::Call;
use crate::http::record::record;
use crate::http::reply::{Outcome, Reply};
use crate::http::route::Route;
use crate::http::scalar::{self, words};
use crate::reads::Reads;
use engine::time::{SECOND, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How long a count is shown.
const SHOWN_FOR_US: u64 = 10 * SECOND;
/// Users that are looked at before others get their turn: some tens of nanoseconds each.
const USERS_PER_PIECE: u64 = 10_000;

words! {
    CohortLabel = "open", "beta";
}

record! {
    /// How full the beta is.
    struct CohortStatus {
        cohort_label: CohortLabel = "open".into(), "`open` while there is no cap.";
        available: bool = true, "A newcomer would get a key.";
        active: u64 = 0, "Users with a working key, counted at most ten seconds ago; 0 without a cap.";
        cap: u64 = 0, "0: none.";
        cutoff: Option<scalar::Timestamp> = None, "When keys issued now become free and read-only.";
        reopens_at: Option<scalar::Timestamp> = None, "Unknown, hence null.";
    }
}

pub const ROUTES: &[Route] = &[Route::get("/api/beta/cohort-status", "get_cohort_status")
    .about("Whether the beta takes newcomers.")
    .gives::<CohortStatus>(200)
    .run(|call| Box::pin(status(call)))];

/// The last count of the cohort. A cold one says 0, because counting starts with the first request.
#[derive(Debug, Default)]
pub struct Cohort {
    counted_at: AtomicU64,
    active: AtomicU64,
}

async fn status(call: Call) -> Outcome {
    let app = call.app();
    let cap = app.front.settings.flags.cohort_cap;
    // Without a cap there is no cohort.
    let active = if cap == 0 { 0 } else { app.instance.cohort.active(&app.reads, call.now).await };
    Ok(Reply::json(&CohortStatus {
        cohort_label: if cap == 0 { "open" } else { "beta" }.into(),
        available: cap == 0 || active < cap,
        active,
        cap,
        cutoff: app.front.settings.keys.beta_until.map(scalar::Timestamp),
        // A full cohort opens when a user leaves it, which cannot be foreseen.
        reopens_at: None,
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
