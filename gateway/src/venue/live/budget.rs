//! How often a venue may be asked: a fifth of what it publishes (upstream.md §2).

use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// Calls are spread evenly: one every `every`, and after a pause a few at once.
pub struct Budget {
    every: Duration,
    /// Calls that may be made at once behind a pause.
    burst: u32,
    /// When the next call would be due if all were spread evenly.
    next: Mutex<Instant>,
}

impl Budget {
    /// `calls` in any `per`, those at once included.
    pub fn new(calls: u32, per: Duration) -> Budget {
        const BURST: u32 = 4;
        let burst = BURST.min(calls.div_ceil(2));
        Budget { every: per / (calls - burst).max(1), burst, next: Mutex::new(Instant::now()) }
    }

    /// Waits until a call may be made.
    pub async fn take(&self) {
        let due = {
            let mut next = self.next.lock().await;
            let earliest = Instant::now().checked_sub(self.every * (self.burst - 1)).unwrap_or(*next);
            let due = (*next).max(earliest);
            *next = due + self.every;
            due
        };
        sleep_until(due).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_more_calls_pass_than_the_budget_says() {
        let budget = Budget::new(100, Duration::from_secs(10));
        let begun = Instant::now();
        let mut taken = Vec::new();
        for calls in 1..=200usize {
            budget.take().await;
            taken.push(Instant::now());
            if let Some(&before) = calls.checked_sub(101).and_then(|at| taken.get(at)) {
                assert!(
                    before.elapsed() >= Duration::from_secs(10),
                    "{calls} calls, 101 of them in {:?}",
                    before.elapsed()
                );
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(21), "and not many fewer: {:?}", begun.elapsed());
        println!("calls within a budget: 200 cases");
    }
}
