//! Stalls: intervals of a run in which answers came late. A percentile says how many answers were late; a stall says
//! when, so that it can be compared with the server's log and with other activity of the machine.

use std::time::Duration;

/// Latency from which an answer is late.
pub const LATE: Duration = Duration::from_millis(20);
/// Largest gap between late answers of one stall.
const GAP: Duration = Duration::from_millis(10);
/// Most stalls that are reported one by one.
const REPORTED_MAX: usize = 1_000;

/// Late answers that belong together. Times count from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When the first of them was due, and when the last one came.
    pub from: Duration,
    pub to: Duration,
    pub longest: Duration,
    pub answers: u64,
    /// Longest delay of the client itself during the stall; zero if it was always below a millisecond.
    pub own: Duration,
}

/// All stalls of a run, in order of time.
#[derive(Default)]
pub struct Stalls {
    pub reported: Vec<Stall>,
    /// Stalls after those.
    pub unreported: u64,
    /// The last delay of the client: its begin, end and length.
    own: Option<(Duration, Duration, Duration)>,
    /// End of the last stall, whether or not it is reported.
    end: Option<Duration>,
}

impl Stalls {
    /// Records an answer at `now` to an operation that was due at `due`. Answers are recorded in the order of their
    /// arrival.
    pub fn answered(&mut self, due: Duration, now: Duration) {
        let latency = now.saturating_sub(due);
        if latency < LATE {
            return;
        }
        let goes_on = self.end.is_some_and(|end| due <= end + GAP);
        self.end = Some(now);
        if !goes_on {
            if self.reported.len() == REPORTED_MAX {
                self.unreported += 1;
            } else {
                self.reported.push(Stall { from: due, to: now, longest: latency, answers: 0, own: Duration::ZERO });
            }
        }
        if self.unreported > 0 {
            return;
        }
        let stall = self.reported.last_mut().expect("the current stall");
        stall.from = stall.from.min(due);
        stall.to = stall.to.max(now);
        stall.longest = stall.longest.max(latency);
        stall.answers += 1;
        if let Some((from, to, own)) = self.own
            && from <= stall.to
            && to >= stall.from
        {
            stall.own = stall.own.max(own);
        }
    }

    /// Records that the client handled at `now` what was due at `due`.
    pub fn came(&mut self, due: Duration, now: Duration) {
        let lag = now.saturating_sub(due);
        if lag < Duration::from_millis(1) {
            return;
        }
        // All operations that became due in one delay of the client are recorded at its end: the first one waited
        // longest.
        self.own = match self.own {
            Some((from, to, longest)) if due <= to => Some((from.min(due), now, longest.max(lag))),
            _ => Some((due, now, lag)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn late_answers_that_belong_together_are_one_stall() {
        let mut stalls = Stalls::default();
        // In time, late twice in one stall, in time, late once more, later.
        for (due, now) in [(0, 19), (100, 140), (101, 141), (148, 170), (200, 201), (300, 320)] {
            stalls.answered(millis(due), millis(now));
        }
        let stall = |from, to, longest, answers| Stall {
            from: millis(from),
            to: millis(to),
            longest: millis(longest),
            answers,
            own: Duration::ZERO,
        };
        assert_eq!(stalls.reported, [stall(100, 170, 40, 3), stall(300, 320, 20, 1)]);
        assert_eq!(stalls.unreported, 0);
        println!("stalls: 6 answers");
    }

    #[test]
    fn a_stall_reports_the_client_s_own_delay() {
        let mut stalls = Stalls::default();
        // Due at 100 and 110, and handled by the client at 130: the second waited less.
        stalls.came(millis(100), millis(130));
        stalls.came(millis(110), millis(130));
        stalls.answered(millis(100), millis(131));
        // Long over.
        stalls.answered(millis(500), millis(530));
        assert_eq!(stalls.reported.iter().map(|stall| stall.own).collect::<Vec<_>>(), [millis(30), Duration::ZERO]);
        println!("delays of the client: 2 cases");
    }

    #[test]
    fn the_first_stalls_are_reported_and_the_others_counted() {
        let mut stalls = Stalls::default();
        for number in 0..REPORTED_MAX as u64 + 3 {
            stalls.answered(millis(number * 100), millis(number * 100 + 20));
            stalls.answered(millis(number * 100 + 5), millis(number * 100 + 26));
        }
        assert_eq!((stalls.reported.len(), stalls.unreported), (REPORTED_MAX, 3));
        assert_eq!(stalls.reported.iter().map(|stall| stall.answers).sum::<u64>(), 2 * REPORTED_MAX as u64);
        println!("stalls: {} cases", REPORTED_MAX + 3);
    }
}
