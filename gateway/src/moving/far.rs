//! Cuts of many days. Usually a cut removes the rows of a day or two, since it follows server time from day to day. One that
//! removes more may be wanted because server time is wrong: the clock of a running server that leaps ahead is accepted after a
//! minute, a start with such a clock after `clock.leap_wait_s`, and what is cut does not come back. So it waits:
//!
//! | A venue | Then |
//! |---|---|
//! | reports a time that agrees with server time | it is cut |
//! | reports another time | it is not cut |
//! | reports none (synthetic, a recording), or is silent | it is cut after a day of this process, as the monotonic clock counts |

use engine::time::{Timestamp, UtcDay};
use host::clock::Clock;
use host::leap::{AGREES_WITHIN, Leap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A cut of the rows of this many days waits for nothing.
const NEAR_DAYS: u32 = 2;
/// How long one of more days waits where no venue reports its time: long enough for an operator to see the warning.
const FAR_WAIT: Duration = Duration::from_secs(86_400);

/// Decides whether a cut waits.
pub struct FarCuts {
    clock: Clock,
    leap: Arc<Leap>,
    /// When a far cut was wanted first, and its day.
    waits: Option<(Instant, UtcDay)>,
    /// It was logged.
    is_known: bool,
}

impl FarCuts {
    pub fn new(clock: Clock, leap: Arc<Leap>) -> FarCuts {
        FarCuts { clock, leap, waits: None, is_known: false }
    }

    /// Whether history may be cut before `day`. `first`: the first day of which there are rows, if there are any.
    pub fn may_cut(&mut self, day: UtcDay, first: Option<UtcDay>) -> bool {
        let agrees = self.leap.venue_now().map(|venue| agree(venue, self.clock.now()));
        self.judge(day, first, agrees, Instant::now())
    }

    /// `agrees`: whether server time agrees with that of a venue, if one reports it.
    fn judge(&mut self, day: UtcDay, first: Option<UtcDay>, agrees: Option<bool>, now: Instant) -> bool {
        let is_near = |from: UtcDay| day.0 <= from.0.saturating_add(NEAR_DAYS);
        if first.is_none_or(is_near) || agrees == Some(true) {
            (self.waits, self.is_known) = (None, false);
            return true;
        }
        // The wait for one day does not count for a much later one.
        self.waits = self.waits.filter(|(_, wanted)| agrees.is_none() && is_near(*wanted));
        if agrees.is_none() {
            let (since, _) = *self.waits.get_or_insert((now, day));
            if now.duration_since(since) >= FAR_WAIT {
                return true;
            }
        }
        if !std::mem::replace(&mut self.is_known, true) {
            tracing::warn!(
                "history is to be cut before {}, which are many days together: this waits until a venue's time agrees with \
                 the clock, or for a day if no venue reports its time. If the clock is wrong, stop the server and correct it \
                 (papertape clock set-back)",
                day.text()
            );
        }
        false
    }
}

fn agree(venue: Timestamp, server: Timestamp) -> bool {
    venue.since(server).max(server.since(venue)) <= AGREES_WITHIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::time::DAY;
    use host::leap::ReportedTime;

    /// Seconds since the first call, the day, the first day with rows, whether a venue's time agrees; whether it may be cut.
    type Call = (u64, u32, Option<u32>, Option<bool>, bool);

    #[test]
    fn a_cut_of_many_days_waits_for_a_day_or_a_venue() {
        let hour = 3_600;
        let (yes, no) = (Some(true), Some(false));
        let cases: [&[Call]; 9] = [
            // From day to day, and without rows.
            &[(0, 101, Some(100), None, true), (1, 102, Some(100), None, true), (2, 365, None, None, true)],
            // A venue decides.
            &[(0, 365, Some(100), yes, true)],
            &[(0, 103, Some(100), no, false), (30 * 24 * hour, 103, Some(100), no, false)],
            // Without one it takes a day.
            &[
                (0, 103, Some(100), None, false),
                (1, 103, Some(100), None, false),
                (24 * hour - 1, 104, Some(100), None, false),
                (24 * hour, 104, Some(100), None, true),
                // The log had no room for it: again.
                (25 * hour, 104, Some(100), None, true),
                // It was cut.
                (25 * hour, 104, Some(104), None, true),
                (26 * hour, 107, Some(104), None, false),
            ],
            // The clock leaps during the wait for an earlier day.
            &[
                (0, 120, Some(100), None, false),
                (23 * hour, 485, Some(100), None, false),
                (24 * hour, 485, Some(100), None, false),
                (46 * hour, 486, Some(100), None, false),
                (47 * hour, 486, Some(100), None, true),
            ],
            // It is corrected before the day is over.
            &[
                (0, 365, Some(100), None, false),
                (hour, 101, Some(100), None, true),
                (24 * hour, 365, Some(100), None, false),
            ],
            // A venue that disagrees ends the wait; when it is silent again, it begins again.
            &[
                (0, 365, Some(100), None, false),
                (23 * hour, 365, Some(100), no, false),
                (24 * hour, 365, Some(100), None, false),
                (47 * hour, 365, Some(100), None, false),
                (48 * hour, 365, Some(100), None, true),
            ],
            &[(0, 365, Some(100), no, false), (1, 365, Some(100), yes, true)],
            &[(0, u32::MAX, Some(u32::MAX - 1), None, true), (0, u32::MAX, Some(0), None, false)],
        ];
        let mut calls = 0;
        for (nth, case) in cases.into_iter().enumerate() {
            let (mut far, started) = (FarCuts::new(Clock::fake(Timestamp(0)), Arc::new(Leap::none())), Instant::now());
            for (seconds, day, first, agrees, expected) in case {
                let now = started + Duration::from_secs(*seconds);
                let found = far.judge(UtcDay(*day), first.map(UtcDay), *agrees, now);
                assert_eq!(found, *expected, "case {nth}, after {seconds} s");
                calls += 1;
            }
        }
        println!("cuts of many days: {} cases, {calls} calls", cases.len());
    }

    #[test]
    fn a_venue_is_asked_for_its_time() {
        let now = Timestamp(1_000 * DAY);
        let mut cases = 0;
        // (what venues report, whether many days may be cut)
        for (reported, may_cut) in [
            (None, false),
            (Some(now), true),
            (Some(Timestamp(now.0 - 365 * DAY)), false),
            (Some(now.plus(365 * DAY)), false),
        ] {
            let venue = Arc::new(ReportedTime::default());
            if let Some(time) = reported {
                venue.report(time);
            }
            let leap = Arc::new(Leap::none().with_venues([venue]));
            let mut far = FarCuts::new(Clock::fake(now), leap);
            assert_eq!(far.may_cut(UtcDay(990), Some(UtcDay(700))), may_cut, "{reported:?}");
            assert!(far.may_cut(UtcDay(702), Some(UtcDay(700))), "{reported:?}");
            cases += 2;
        }
        println!("times of venues: {cases} cases");
    }
}
