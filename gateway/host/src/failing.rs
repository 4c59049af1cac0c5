//! A turn that fails repeatedly: what is logged about it, and how long its thread rests.

use crate::thread::Stop;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Sleep after a failure: the first one, and the longest, which each further failure doubles up to.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));

/// Consecutive failed turns. One reason is logged once, so that a failure that lasts for hours does not bury the rest
/// of the log.
#[derive(Debug, Default)]
pub struct Failing {
    turns: u32,
    logged: Option<String>,
}

impl Failing {
    /// Records one more failed turn of a job: logs the error, unless the turn before failed for the same reason, and
    /// rests.
    pub fn again(&mut self, job: &str, error: &impl Display, what: &str, stop: &Stop) {
        let (pause, is_new) = self.note(&error.to_string());
        let again_in_ms = pause.as_millis() as u64;
        if is_new {
            tracing::error!(job, %error, again_in_ms, "{what}");
        } else {
            tracing::debug!(job, %error, again_in_ms, "{what}");
        }
        sleep_through(pause, stop);
    }

    /// How long to sleep after that reason, and whether to log it.
    fn note(&mut self, reason: &str) -> (Duration, bool) {
        let pause = PAUSE.1.min(PAUSE.0.saturating_mul(1 << self.turns.min(16)));
        self.turns += 1;
        let is_new = self.logged.as_deref() != Some(reason);
        if is_new {
            self.logged = Some(reason.to_owned());
        }
        (pause, is_new)
    }
}

/// Sleeps for the whole pause, even if the thread is woken: a wake-up does not repair the cause. A stop ends it.
fn sleep_through(pause: Duration, stop: &Stop) {
    let until = Instant::now() + pause;
    while !stop.is_set()
        && let left = until.saturating_duration_since(Instant::now())
        && !left.is_zero()
    {
        std::thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_failure_is_logged_once_and_rests_longer() {
        let mut failing = Failing::default();
        // The reason, the pause after it in milliseconds, and whether it is logged.
        let rows = [
            ("map spare-1: no memory", 250, true),
            ("map spare-1: no memory", 500, false),
            ("map spare-1: no memory", 1_000, false),
            ("create spare-1: denied", 2_000, true),
            ("create spare-1: denied", 4_000, false),
            ("map spare-1: no memory", 4_000, true),
            ("map spare-1: no memory", 4_000, false),
        ];
        for (at, (reason, pause_ms, logged)) in rows.into_iter().enumerate() {
            assert_eq!(failing.note(reason), (Duration::from_millis(pause_ms), logged), "{at}: {reason}");
        }
        let pauses = (0..100_000).map(|_| failing.note("the same"));
        assert_eq!(pauses.filter(|(pause, logged)| *pause == PAUSE.1 && !logged).count(), 99_999, "for days");
        println!("failures: {} cases", rows.len() + 1);
    }

    /// A thread that is woken all the time sleeps on, and notices a stop immediately.
    #[test]
    fn a_pause_is_slept_through() {
        let (pause, stop) = (Duration::from_millis(100), Stop::new());
        let begun = Instant::now();
        let (sleeper, waking) = (std::thread::current(), Stop::new());
        let until = waking.clone();
        let waker = std::thread::spawn(move || {
            while !until.is_set() {
                sleeper.unpark();
                std::thread::yield_now();
            }
        });
        sleep_through(pause, &stop);
        assert!(begun.elapsed() >= pause);
        stop.set();
        // Hangs if it does not.
        sleep_through(Duration::from_secs(100_000), &stop);
        waking.set();
        waker.join().expect("no panic");
        println!("pauses: 2");
    }
}
