//! How full the beta is (`gateway/docs/market-data.md §12`).

use crate::http::call::Call;
use crate::http::record::record;
use crate::http::reply::{Outcome, Reply};
use crate::http::route::Route;
use crate::http::scalar::{self, words};

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

async fn status(call: Call) -> Outcome {
    let front = call.front();
    let cap = front.settings.flags.cohort_cap;
    // Without a cap there is no cohort.
    let active = if cap == 0 { 0 } else { front.cohort.active(&call.reads().directory, call.now).await };
    Ok(Reply::json(&CohortStatus {
        cohort_label: if cap == 0 { "open" } else { "beta" }.into(),
        available: cap == 0 || active < cap,
        active,
        cap,
        cutoff: front.settings.keys.beta_until.map(scalar::Timestamp),
        // A full cohort opens when a user leaves it, which cannot be foreseen.
        reopens_at: None,
    }))
}
