//! How often a venue may be asked: a fifth of what it publishes (upstream.md §2).

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Calls are spread evenly: one every `every`, and after a pause a few at once.
pub struct Budget {
    every: Duration,
    /// Calls that may be made at once behind a pause.
    burst: u32,
    state: Mutex<State>,
}

struct State {
    /// When the next call would be due if all were spread evenly.
    next: Instant,
    /// Until then the venue wants no call at all.
    held_until: Instant,
}

impl Budget {
    /// `calls` in any `per`, those at once included.
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
                // Behind a hold they come one by one: who was refused does not come back with a burst.
                let earliest = if state.held_until > now { state.held_until } else { earliest };
                let due = state.next.max(earliest);
                state.next = due + self.every;
                due
            };
            sleep_until(due).await;
            // Whoever had a place when the venue refused another gets a new one behind the hold.
            if self.state.lock().held_until <= Instant::now() {
                return;
            }
        }
    }

    /// The venue refuses calls for so long: all of them wait, not only the one that was told.
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

    #[tokio::test(start_paused = true)]
    async fn a_refusal_holds_all_calls_and_lets_them_go_one_by_one() {
        let millis = Duration::from_millis;
        let cases = [
            // holds at so many ms for so many ms, and the seconds at which the six calls behind the first are made
            (vec![(0, 5_000)], [5, 6, 7, 8, 9, 10]),
            (vec![(0, 5_000), (0, 2_000)], [5, 6, 7, 8, 9, 10]),
            // Whoever has a place before the end of a later hold gets a new one.
            (vec![(0, 2_000), (1_000, 5_000)], [6, 7, 8, 9, 10, 11]),
            (vec![(0, 2_000), (2_500, 4_500)], [2, 7, 8, 9, 10, 11]),
        ];
        for (holds, expected) in &cases {
            // One a second, and four at once behind a pause.
            let budget = Arc::new(Budget::new(14, Duration::from_secs(10)));
            let begun = Instant::now();
            let mut calls = JoinSet::new();
            for (number, (at, wait)) in holds.iter().enumerate() {
                sleep_until(begun + millis(*at)).await;
                budget.hold(millis(*wait));
                for _ in expected.iter().filter(|_| number == 0) {
                    let budget = budget.clone();
                    calls.spawn(async move {
                        budget.take().await;
                        begun.elapsed().as_secs()
                    });
                }
                tokio::task::yield_now().await;
            }
            let mut made = calls.join_all().await;
            made.sort_unstable();
            assert_eq!(made, expected, "{holds:?}");
        }
        println!("calls behind a refusal: {} cases", cases.len());
    }
}
