//! Rate limit of calls to a venue: a fifth of the limit that the venue publishes (gateway/docs/live-venues.md §2).

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Spreads calls evenly, one per `every`; after a pause it allows a small burst.
pub struct Budget {
    every: Duration,
    /// Calls that may be made without a wait after a pause.
    burst: u32,
    state: Mutex<State>,
}

struct State {
    /// When the next call would be due if all were spread evenly.
    next: Instant,
    /// No call may be made before this moment, because the venue refused one.
    held_until: Instant,
}

impl Budget {
    /// At most `calls` in any period of `per`, bursts included.
    pub fn new(calls: u32, per: Duration) -> Budget {
        const BURST: u32 = 4;
        let burst = BURST.min(calls.div_ceil(2));
        let state = State { next: Instant::now(), held_until: Instant::now() };
        Budget { every: per / (calls - burst).max(1), burst, state: Mutex::new(state) }
    }

    /// Waits until a call may be made.
    pub async fn take(&self) {
        loop {
            let due = {
                let mut state = self.state.lock();
                let now = Instant::now();
                let earliest = now.checked_sub(self.every * (self.burst - 1)).unwrap_or(state.next);
                // After a hold there is no burst: calls go out one at a time.
                let earliest = if state.held_until > now { state.held_until } else { earliest };
                let due = state.next.max(earliest);
                state.next = due + self.every;
                due
            };
            sleep_until(due).await;
            // A call that was due during a hold waits for a new slot after the hold.
            if self.state.lock().held_until <= Instant::now() {
                return;
            }
        }
    }

    /// The venue refuses calls for `wait`: all calls wait, not only the refused one.
    pub fn hold(&self, wait: Duration) {
        let mut state = self.state.lock();
        state.held_until = state.held_until.max(Instant::now() + wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::task::JoinSet;

    #[tokio::test(start_paused = true)]
    async fn no_more_calls_pass_than_the_budget_says() {
        let budget = Budget::new(100, Duration::from_secs(10));
        let start = Instant::now();
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
        assert!(start.elapsed() < Duration::from_secs(21), "too slow: {:?}", start.elapsed());
        println!("calls within a budget: 200 cases");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_holds_all_calls_and_releases_them_one_at_a_time() {
        let millis = Duration::from_millis;
        let cases = [
            // holds as (at ms, for ms), and the seconds at which the six calls after the first hold are made
            (vec![(0, 5_000)], [5, 6, 7, 8, 9, 10]),
            (vec![(0, 5_000), (0, 2_000)], [5, 6, 7, 8, 9, 10]),
            // A call that is due before the end of a later hold gets a new slot.
            (vec![(0, 2_000), (1_000, 5_000)], [6, 7, 8, 9, 10, 11]),
            (vec![(0, 2_000), (2_500, 4_500)], [2, 7, 8, 9, 10, 11]),
        ];
        for (holds, expected) in &cases {
            // One a second, and a burst of four after a pause.
            let budget = Arc::new(Budget::new(14, Duration::from_secs(10)));
            let start = Instant::now();
            let mut calls = JoinSet::new();
            for (number, (at, wait)) in holds.iter().enumerate() {
                sleep_until(start + millis(*at)).await;
                budget.hold(millis(*wait));
                for _ in expected.iter().filter(|_| number == 0) {
                    let budget = budget.clone();
                    calls.spawn(async move {
                        budget.take().await;
                        start.elapsed().as_secs()
                    });
                }
                tokio::task::yield_now().await;
            }
            let mut made = calls.join_all().await;
            made.sort_unstable();
            assert_eq!(made, expected, "{holds:?}");
        }
        println!("calls after a refusal: {} cases", cases.len());
    }
}
