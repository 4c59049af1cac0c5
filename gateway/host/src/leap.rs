//! A start at which the machine's clock and the journal disagree: it is logged, and everything that ends by time waits.
//!
//! A clock that is more than [`AHEAD_MAX`] ahead of the newest record may be wrong, or the server was off for that
//! long: a start cannot distinguish the two. A clock that is earlier was wrong then, or is wrong now. Either way the
//! server accepts the clock, is ready and serves. But orders do not expire, heartbeats do not lapse and markets do not
//! end by time until an operator had time to stop the server and to correct the clock or the journal (`papertape clock
//! set-back`):
//!
//! | The venue | The wait ends |
//! |---|---|
//! | reports its own time (live) | as soon as server time agrees; never while they differ or it is silent |
//! | has none (synthetic, a recording) | `clock.leap_wait_s` after the start |
//!
//! With `clock.leap_wait_s = 0` only a live venue's time is waited for. The clock of a recording proves nothing about
//! that of the machine.
//!
//! A start journals its own time immediately, so the next one would find a record of the doubted clock and nothing to
//! doubt. The time that was known before is therefore stored beside the log, in `clock_doubted`, until the wait is
//! over, and each start uses it.

use crate::small_file;
use engine::time::{DAY, SECOND, Timestamp};
use parking_lot::Mutex;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use wire::instant::ts_text;

/// The wall clock may be ahead of the newest record by this much without a warning, in microseconds.
pub const AHEAD_MAX: u64 = DAY;
/// It may be earlier by this much: a correction of the clock while no server runs.
pub const BEHIND_MAX: u64 = SECOND;
/// Server time agrees with a venue's time within this difference: less than the error of a wrong time zone.
pub const AGREES_WITHIN: u64 = 600 * SECOND;

/// The time reported by a live venue: written by its adapter, read where the machine's clock is doubted.
#[derive(Debug, Default)]
pub struct ReportedTime(Mutex<Option<(Timestamp, Instant)>>);

impl ReportedTime {
    /// Records the venue's time.
    pub fn report(&self, time: Timestamp) {
        *self.0.lock() = Some((time, Instant::now()));
    }

    /// The venue's time now, extrapolated from its last report. `None`: it has not reported.
    pub fn now(&self) -> Option<Timestamp> {
        let (time, at) = (*self.0.lock())?;
        Some(time.plus(at.elapsed().as_micros() as u64))
    }
}

/// The wall clock compared with the newest record at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockCheck {
    /// Also if there was no record.
    Agrees,
    Ahead,
    Behind,
}

impl ClockCheck {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            ClockCheck::Agrees => "ok",
            ClockCheck::Ahead => "ahead",
            ClockCheck::Behind => "behind",
        }
    }
}

/// State of the sweeps: whether orders expire, heartbeats lapse and markets end by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweeping {
    Running,
    /// For `clock.leap_wait_s`, or for a report of the venue's time.
    Waiting,
    /// The venue's time differs from server time.
    Contradicted,
}

impl Sweeping {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Sweeping::Running => "running",
            Sweeping::Waiting => "waiting",
            Sweeping::Contradicted => "contradicted",
        }
    }
}

/// The result of the clock check of one start, and whether sweeps wait.
#[derive(Debug)]
pub struct Leap {
    pub found: ClockCheck,
    /// The wall clock at the start, and the time of the newest record before it, if there was one.
    pub wall: Timestamp,
    pub newest: Option<Timestamp>,
    wait: Duration,
    started: Instant,
    /// The live venues, which report their own time.
    venues: Vec<Arc<ReportedTime>>,
    is_over: AtomicBool,
    has_warned: AtomicBool,
    /// Where the doubt is stored, if it is.
    kept_in: Option<PathBuf>,
}

/// Time of the newest record that was written before the clock was doubted: microseconds as a decimal number.
pub const DOUBT_FILE: &str = "clock_doubted";
/// The longest time takes 20 digits.
const DOUBT_BYTES_MAX: u64 = 32;

/// The time that an earlier start knew before it doubted the clock, if its wait never ended.
///
/// # Errors
/// The file cannot be read, or does not hold a time.
pub fn doubted(dir: &Path) -> io::Result<Option<Timestamp>> {
    let text = match small_file::text(&dir.join(DOUBT_FILE), DOUBT_BYTES_MAX + 1) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let time = Some(text.trim()).filter(|text| text.len() as u64 <= DOUBT_BYTES_MAX).and_then(|text| text.parse().ok());
    let wrong =
        || io::Error::new(io::ErrorKind::InvalidData, "does not hold a time; remove the file if the clock is right");
    time.map(|time| Some(Timestamp(time))).ok_or_else(wrong)
}

/// Stores the known time, durably.
///
/// # Errors
/// The system's.
pub fn keep_doubt(dir: &Path, known: Timestamp) -> io::Result<()> {
    // The log removes leftovers of this name.
    let making = dir.join(format!("{DOUBT_FILE}.making"));
    let mut file = File::create(&making)?;
    writeln!(file, "{}", known.0)?;
    file.sync_all()?;
    fs::rename(&making, dir.join(DOUBT_FILE))?;
    File::open(dir)?.sync_all()
}

/// Removes the stored doubt.
///
/// # Errors
/// The system's; it is not an error if there was no doubt.
pub fn forget_doubt(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join(DOUBT_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Leap {
    /// Checks the clock at the start of a directory whose newest record has the time `newest`, and stores a doubt there
    /// before anything with the doubted time is written.
    ///
    /// # Errors
    /// The system's, and [`doubted`]'s.
    pub fn of_start(dir: &Path, newest: Option<Timestamp>, wall: Timestamp, wait: Duration) -> io::Result<Leap> {
        let earlier = doubted(dir)?;
        let known = newest.map(|newest| match earlier {
            Some(earlier) if newest.since(wall) <= BEHIND_MAX => earlier.min(newest),
            _ => newest,
        });
        let mut leap = Leap::of(known, wall, wait);
        match known {
            Some(known) if leap.found == ClockCheck::Ahead => keep_doubt(dir, known)?,
            // A journal of the future is doubted anyway; the time that was known before it stays known.
            _ if leap.found == ClockCheck::Behind => {}
            _ => forget_doubt(dir)?,
        }
        leap.kept_in = Some(dir.to_owned());
        Ok(leap)
    }

    /// Checks the clock at a start: `newest` is the time of the newest record.
    pub fn of(newest: Option<Timestamp>, wall: Timestamp, wait: Duration) -> Leap {
        let found = match newest {
            Some(newest) if wall.since(newest) > AHEAD_MAX => ClockCheck::Ahead,
            Some(newest) if newest.since(wall) > BEHIND_MAX => ClockCheck::Behind,
            _ => ClockCheck::Agrees,
        };
        Leap {
            found,
            wall,
            newest,
            wait,
            started: Instant::now(),
            venues: Vec::new(),
            is_over: AtomicBool::new(found == ClockCheck::Agrees || wait.is_zero()),
            has_warned: AtomicBool::new(false),
            kept_in: None,
        }
    }

    /// A start without a doubt.
    pub fn none() -> Leap {
        Leap::of(None, Timestamp(0), Duration::ZERO)
    }

    /// Adds live venues, whose own time decides. The wait counts from here.
    pub fn with_venues(self, venues: impl IntoIterator<Item = Arc<ReportedTime>>) -> Leap {
        let venues: Vec<_> = venues.into_iter().collect();
        let is_over = self.found == ClockCheck::Agrees || (self.wait.is_zero() && venues.is_empty());
        let leap = Leap { venues, started: Instant::now(), is_over: AtomicBool::new(is_over), ..self };
        if is_over {
            leap.forget();
        }
        leap
    }

    /// The next start has nothing to doubt.
    fn forget(&self) {
        if let Some(Err(error)) = self.kept_in.as_deref().map(forget_doubt) {
            tracing::warn!(%error, file = DOUBT_FILE, "the file of a resolved clock doubt could not be removed: the \
                next start waits again; remove the file");
        }
    }

    /// Whether the clock is in doubt: the wait is not over.
    pub fn is_in_doubt(&self) -> bool {
        !self.is_over.load(Relaxed)
    }

    /// By how many seconds the wall clock was ahead of the newest record at the start; negative if it was earlier, and 0
    /// if the difference is small.
    pub fn seconds(&self) -> i64 {
        let newest = self.newest.unwrap_or(self.wall);
        match self.found {
            ClockCheck::Agrees => 0,
            ClockCheck::Ahead => self.wall.since(newest).div_euclid(SECOND) as i64,
            ClockCheck::Behind => -(newest.since(self.wall).div_euclid(SECOND) as i64),
        }
    }

    /// The latest time that a venue reports.
    pub fn venue_now(&self) -> Option<Timestamp> {
        self.venues.iter().filter_map(|venue| venue.now()).max()
    }

    /// Whether time may end anything at `now`, server time.
    pub fn sweeping(&self, now: Timestamp) -> Sweeping {
        if self.is_over.load(Relaxed) {
            return Sweeping::Running;
        }
        judged(self.started.elapsed() >= self.wait, !self.venues.is_empty(), self.venue_now(), now)
    }

    /// Whether sweeps wait, for the feed, which checks at each turn: the end of the wait is permanent and logged once.
    pub fn waits(&self, now: Timestamp) -> bool {
        if self.is_over.load(Relaxed) {
            return false;
        }
        match self.sweeping(now) {
            Sweeping::Running => {
                tracing::info!("the wait after this start is over: orders expire and markets end by server time again");
                self.is_over.store(true, Relaxed);
                self.forget();
            }
            Sweeping::Contradicted if !self.has_warned.swap(true, Relaxed) => {
                let (server, venue) = (ts_text(now), self.venue_now().map(ts_text).unwrap_or_default());
                tracing::warn!(
                    server,
                    venue,
                    "the venue's time differs from server time: orders do not expire and markets do not end \
                     until they agree. Correct the machine's clock; if the journal is ahead of it, stop the server and \
                     run `papertape clock set-back`"
                );
            }
            Sweeping::Contradicted | Sweeping::Waiting => {}
        }
        !self.is_over.load(Relaxed)
    }

    /// The warning for the log of a start, if there is one.
    pub fn warning(&self, dir: &Path) -> Option<String> {
        let (wall, newest) = (ts_text(self.wall), ts_text(self.newest?));
        let dir = dir.display();
        let wait = match (self.wait.as_secs(), self.venues.is_empty()) {
            (0, true) => "Orders expire and markets end by it immediately (clock.leap_wait_s = 0)".to_owned(),
            (seconds, true) => format!("For {seconds} s (clock.leap_wait_s) no order expires and no market ends by it"),
            (_, false) => "No order expires and no market ends by it until a venue's own time agrees".to_owned(),
        };
        match self.found {
            ClockCheck::Agrees => None,
            ClockCheck::Ahead => Some(format!(
                "the wall clock says {wall}, and the newest record is of {newest}, {} before. If this server was off \
                 for that \
                 long, nothing is wrong. If the clock is wrong, stop the server, correct the clock, and run \
                 `papertape clock \
                 set-back {dir}` before the next start. {wait}",
                span(self.seconds().unsigned_abs()),
            )),
            ClockCheck::Behind => Some(format!(
                "the wall clock says {wall}, and the newest record is of {newest}, {} after that. Server time \
                 continues from \
                 the record, at half speed, until the wall clock has reached it. If the clock is right, stop the \
                 server and \
                 run `papertape clock set-back {dir}` before the next start. If it is wrong, correct it. {wait}",
                span(self.seconds().unsigned_abs()),
            )),
        }
    }
}

/// The table at the top of this file, after a leap.
fn judged(has_waited: bool, is_live: bool, venue_now: Option<Timestamp>, now: Timestamp) -> Sweeping {
    match venue_now {
        Some(venue) if venue.since(now).max(now.since(venue)) <= AGREES_WITHIN => Sweeping::Running,
        Some(_) => Sweeping::Contradicted,
        None if is_live || !has_waited => Sweeping::Waiting,
        None => Sweeping::Running,
    }
}

/// A time span in words.
fn span(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_790_932_445_000_000);

    fn moved(by: i64) -> Timestamp {
        Timestamp(NOW.0.saturating_add_signed(by))
    }

    #[test]
    fn a_clock_is_doubted_a_day_ahead_of_the_newest_record_or_before_it() {
        let (day, second) = (DAY as i64, SECOND as i64);
        // (wall clock − newest record, found, seconds)
        for (ahead, found, seconds) in [
            (0, ClockCheck::Agrees, 0),
            (day, ClockCheck::Agrees, 0),
            (day + 1, ClockCheck::Ahead, 86_400),
            (365 * day, ClockCheck::Ahead, 365 * 86_400),
            (-second, ClockCheck::Agrees, 0),
            (-second - 1, ClockCheck::Behind, -1),
            (-365 * day, ClockCheck::Behind, -365 * 86_400),
        ] {
            let leap = Leap::of(Some(NOW), moved(ahead), Duration::from_secs(60));
            assert_eq!((leap.found, leap.seconds()), (found, seconds), "{ahead}");
            assert_eq!(leap.waits(NOW), found != ClockCheck::Agrees, "{ahead}");
            assert_eq!(leap.warning(Path::new("d")).is_some(), found != ClockCheck::Agrees, "{ahead}");
            // No wait is configured.
            let leap = Leap::of(Some(NOW), moved(ahead), Duration::ZERO);
            assert_eq!((leap.found, leap.waits(NOW)), (found, false), "{ahead}");
        }
        // A new directory, and the edges of time.
        assert_eq!(Leap::of(None, NOW, Duration::from_secs(60)).found, ClockCheck::Agrees);
        assert_eq!(Leap::of(Some(Timestamp(u64::MAX)), NOW, Duration::ZERO).found, ClockCheck::Behind);
        assert_eq!(Leap::of(Some(Timestamp(1)), Timestamp(u64::MAX), Duration::ZERO).found, ClockCheck::Ahead);
        println!("starts: 10 cases");
    }

    /// Each start journals its own time, but the next one still doubts the clock until a wait was over.
    #[test]
    fn a_doubt_survives_restarts() {
        let dir = tempfile::tempdir().expect("a directory");
        let (day, hour) = (DAY as i64, 3_600 * SECOND as i64);
        let (none, minute) = (Duration::ZERO, Duration::from_secs(60));
        let (mut newest, mut cases) = (NOW, 0);
        // (the wall clock, the wait, found, by how many days, whether its wait is completed)
        for (wall, wait, found, days, is_sat_out) in [
            (hour, minute, ClockCheck::Agrees, 0, false),
            (100 * day, minute, ClockCheck::Ahead, 99, false),
            (100 * day + hour, minute, ClockCheck::Ahead, 100, false),
            // Corrected without a correction of the journal, and wrong again.
            (2 * hour, minute, ClockCheck::Behind, -99, false),
            (100 * day + 2 * hour, minute, ClockCheck::Ahead, 100, true),
            (100 * day + 3 * hour, minute, ClockCheck::Agrees, 0, false),
            (200 * day, minute, ClockCheck::Ahead, 99, false),
            (200 * day + hour, none, ClockCheck::Ahead, 99, false),
            (200 * day + 2 * hour, minute, ClockCheck::Agrees, 0, false),
        ] {
            let leap = Leap::of_start(dir.path(), Some(newest), moved(wall), wait).expect("a sound directory");
            assert_eq!((leap.found, leap.seconds() / 86_400), (found, days), "{wall}: {leap:?}");
            let venue = Arc::new(ReportedTime::default());
            venue.report(leap.wall);
            let leap = leap.with_venues(is_sat_out.then_some(venue));
            assert_eq!(leap.waits(leap.wall), found != ClockCheck::Agrees && !is_sat_out && !wait.is_zero(), "{wall}");
            newest = newest.max(moved(wall));
            cases += 1;
        }
        for text in ["", "x", "-1", "18446744073709551616", "1 2", &"0".repeat(33)] {
            std::fs::write(dir.path().join(DOUBT_FILE), text).expect("written");
            let refused = Leap::of_start(dir.path(), Some(NOW), NOW, minute).expect_err("no time");
            assert!(refused.to_string().contains("remove the file"), "{text:?}: {refused}");
            cases += 1;
        }
        forget_doubt(dir.path()).and_then(|()| forget_doubt(dir.path())).expect("no doubt is not an error");
        println!("doubts: {cases} cases");
    }

    #[test]
    fn a_venues_own_time_ends_the_wait_or_keeps_it() {
        use Sweeping::{Contradicted, Running, Waiting};
        let agrees = AGREES_WITHIN as i64;
        // (waited, live, what the venue reports, state of the sweeps)
        let rows = [
            (false, false, None, Waiting),
            (true, false, None, Running),
            (false, true, None, Waiting),
            (true, true, None, Waiting),
            (false, true, Some(0), Running),
            (true, true, Some(0), Running),
            (false, true, Some(agrees), Running),
            (false, true, Some(-agrees), Running),
            (true, true, Some(agrees + 1), Contradicted),
            (true, true, Some(-agrees - 1), Contradicted),
            (false, true, Some(-365 * DAY as i64), Contradicted),
        ];
        for (waited, live, venue, expected) in rows {
            let venue = venue.map(moved);
            assert_eq!(judged(waited, live, venue, NOW), expected, "{waited} {live} {venue:?}");
        }
        println!("waits: {} cases", rows.len());
    }

    #[test]
    fn a_venues_time_ends_the_wait_permanently() {
        let venue = Arc::new(ReportedTime::default());
        let leap = Leap::of(Some(NOW), moved(2 * DAY as i64), Duration::from_secs(3_600)).with_venues([venue.clone()]);
        assert!(leap.waits(leap.wall) && leap.sweeping(leap.wall) == Sweeping::Waiting);
        venue.report(NOW);
        assert!(leap.waits(leap.wall) && leap.sweeping(leap.wall) == Sweeping::Contradicted);
        venue.report(leap.wall);
        assert_eq!(leap.sweeping(leap.wall), Sweeping::Running);
        assert!(!leap.waits(leap.wall));
        venue.report(NOW);
        assert!(!leap.waits(leap.wall) && leap.sweeping(leap.wall) == Sweeping::Running);
    }

    #[test]
    fn a_venue_is_waited_for_even_without_a_configured_wait() {
        let venue = Arc::new(ReportedTime::default());
        let leap = Leap::of(Some(NOW), moved(2 * DAY as i64), Duration::ZERO).with_venues([venue.clone()]);
        assert!(
            leap.waits(leap.wall) && leap.warning(Path::new("d")).is_some_and(|text| text.contains("own time agrees"))
        );
        venue.report(leap.wall);
        assert!(!leap.waits(leap.wall));
    }

    #[test]
    fn the_warning_names_both_times_and_what_to_do() {
        let wait = Duration::from_secs(60);
        let ahead = Leap::of(Some(NOW), moved(9 * DAY as i64), wait).warning(Path::new("some/place")).expect("a leap");
        let behind = Leap::of(Some(NOW), moved(-90 * SECOND as i64), wait).warning(Path::new("d")).expect("a leap");
        for (text, parts) in [
            (
                &ahead,
                &[
                    "2026-10-11T09:14:05Z",
                    "2026-10-02T09:14:05Z, 9 days before",
                    "If this server was off for that long, nothing is wrong",
                    "papertape clock set-back some/place",
                    "For 60 s",
                ][..],
            ),
            (
                &behind,
                &["2026-10-02T09:12:35Z", "2026-10-02T09:14:05Z, 90 seconds after that", "half speed", "set-back d"],
            ),
        ] {
            for part in parts {
                assert!(text.contains(part), "{part:?} is not in {text:?}");
            }
        }
        let live = Leap::of(Some(NOW), moved(9 * DAY as i64), wait).with_venues([Arc::new(ReportedTime::default())]);
        assert!(live.warning(Path::new("d")).is_some_and(|text| text.contains("until a venue's own time agrees")));
        for (seconds, text) in
            [(1, "1 second"), (119, "119 seconds"), (120, "2 minutes"), (7_200, "2 hours"), (172_800, "2 days")]
        {
            assert_eq!(span(seconds), text);
        }
    }
}
