//! A turn that fails again and again: what is told of it, and how long its thread rests.

use crate::thread::Stop;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Sleep behind a failure: the first one, and the longest, which each further failure doubles up to.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));

/// Turns that fail one behind the other. One reason is told once: what goes on for hours is not to bury what else is told.
#[derive(Debug, Default)]
pub struct Failing {
    turns: u32,
    told: Option<String>,
}

impl Failing {
    /// One more turn failed: tells why, unless the one before it failed for the same reason, and rests.
    pub fn again(&mut self, error: &impl Display, what: &str, stop: &Stop) {
        let (pause, is_news) = self.note(&error.to_string());
        let again_in_ms = pause.as_millis() as u64;
        if is_news {
            tracing::error!(%error, again_in_ms, "{what}");
        } else {
            tracing::debug!(%error, again_in_ms, "{what}");
        }
        sleep_through(pause, stop);
    }

    /// How long to sleep behind that reason, and whether to tell it.
    fn note(&mut self, reason: &str) -> (Duration, bool) {
        let pause = PAUSE.1.min(PAUSE.0.saturating_mul(1 << self.turns.min(16)));
        self.turns += 1;
        let is_news = self.told.as_deref() != Some(reason);
        if is_news {
            self.told = Some(reason.to_owned());
        }
        (pause, is_news)
    }
}

/// Sleeps all of it, whoever wakes the thread: nobody has what the turn lacked by that. A stop ends it.
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
    fn what_goes_on_failing_is_told_once_and_rests_longer() {
        let mut failing = Failing::default();
        // The reason, the pause behind it in milliseconds, and whether it is told.
        let rows = [
            ("map spare-1: no memory", 250, true),
            ("map spare-1: no memory", 500, false),
            ("map spare-1: no memory", 1_000, false),
            ("create spare-1: denied", 2_000, true),
            ("create spare-1: denied", 4_000, false),
            ("map spare-1: no memory", 4_000, true),
            ("map spare-1: no memory", 4_000, false),
        ];
        for (at, (reason, pause_ms, told)) in rows.into_iter().enumerate() {
            assert_eq!(failing.note(reason), (Duration::from_millis(pause_ms), told), "{at}: {reason}");
        }
        let pauses = (0..100_000).map(|_| failing.note("the same"));
        assert_eq!(pauses.filter(|(pause, told)| *pause == PAUSE.1 && !told).count(), 99_999, "for days");
        println!("failures: {} cases", rows.len() + 1);
    }

    /// A thread that others wake all the time sleeps on, and hears of a stop at once.
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
