//! The users of the beta cohort, counted (`gateway/docs/market-data.md §12`).

use engine::directory::Directory;
use engine::time::{SECOND, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How long a count is shown.
const SHOWN_FOR_US: u64 = 10 * SECOND;
/// Users that are looked at before others get their turn: some tens of nanoseconds each.
const USERS_PER_PIECE: u64 = 10_000;

/// The last count of the cohort. A cold one says 0, because counting starts with the first request.
#[derive(Debug, Default)]
pub struct Cohort {
    counted_at: AtomicU64,
    active: AtomicU64,
}

impl Cohort {
    /// Users who hold a working key, as counted at most ten seconds ago.
    pub async fn active(&self, directory: &Directory, now: Timestamp) -> u64 {
        let counted_at = self.counted_at.load(Relaxed);
        if counted_at > 0 && now.0 < counted_at + SHOWN_FOR_US {
            return self.active.load(Relaxed);
        }
        let (mut active, mut from) = (0, 1);
        loop {
            let to = from + USERS_PER_PIECE;
            active += directory.holders_between(from..to, now) as u64;
            if to > directory.users_count() as u64 {
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
