//! The only reader of the wall clock. Server time never goes back, and leaps ahead only after a confirmation.
//!
//! Server time is the monotonic clock plus an offset that follows the wall clock (gateway/docs/clock.md):
//! - If the wall clock steps back, server time runs at half speed until the wall clock has caught up (standing still
//!   would freeze rate windows and expiries for as long).
//! - If the wall clock leaps ahead by more than [`LEAP_US_MAX`], the offset is kept until the new one has lasted for
//!   [`LEAP_CONFIRMED_AFTER_US`] of monotonic time, so that one wrong reading expires no order.
//!
//! Both are counted and logged.
//!
//! It begins where the journal ends, so a journal that was written while the wall clock was ahead moves it permanently,
//! until an operator sets it back (`papertape clock set-back`). External times (identity tokens) are compared with the
//! wall clock itself: [`Clock::wall_now`].
//!
//! A clock of a recording ([`Clock::of_recording`]) is one clock for server and venue: the feed sets it from moment to
//! moment (`crate::moments`), and it stays there in between. Timers of connections then use [`Clock::steady`].

use engine::time::{SECOND, Timestamp};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The wall clock may gain this much on the monotonic clock between two readings without being doubted.
pub const LEAP_US_MAX: i64 = 10 * SECOND as i64;
/// How long a leap must last before it is accepted.
pub const LEAP_CONFIRMED_AFTER_US: i64 = 60 * SECOND as i64;
/// Smaller steps back are jitter between threads.
const STEP_BACK_US_MIN: i64 = 1_000;

/// Server time. Cheap to clone; all clones are one clock.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
enum Source {
    Wall(Box<Wall>),
    /// Set by tests and by deterministic replays.
    Fake(AtomicU64),
    /// Set by the feed of a recording.
    Recording(Recording),
}

#[derive(Debug)]
struct Recording {
    now: AtomicU64,
    /// A moment of the monotonic clock, and the wall clock then.
    started: Instant,
    began: Timestamp,
}

#[derive(Debug)]
struct Wall {
    started: Instant,
    discipline: Discipline,
    ahead: Option<Ahead>,
}

/// For tests of a running process: server time is ahead of the wall clock by the seconds in a file, which is read at
/// each reading of the clock. A decrease is ignored.
#[derive(Debug)]
struct Ahead {
    file: PathBuf,
    last: AtomicU64,
}

/// Steps of the wall clock since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Anomalies {
    steps_back: u64,
    leaps_ahead: u64,
}

impl Clock {
    /// The wall clock of this machine.
    pub fn wall() -> Clock {
        Clock::ahead_of_wall(None)
    }

    /// The wall clock plus the seconds in `file`: lets a test move the clock by days.
    pub fn ahead_of_wall(file: Option<&Path>) -> Clock {
        let started = Instant::now();
        let discipline = Discipline::new(wall_us());
        let ahead = file.map(|file| Ahead { file: file.to_owned(), last: AtomicU64::new(0) });
        Clock(Arc::new(Source::Wall(Box::new(Wall { started, discipline, ahead }))))
    }

    /// A clock that does not move until [`Clock::set`] moves it.
    pub fn fake(now: Timestamp) -> Clock {
        Clock(Arc::new(Source::Fake(AtomicU64::new(now.0))))
    }

    /// Server time as the feed of a recording sets it; at the start of 1970 until then.
    pub fn of_recording() -> Clock {
        let (started, began) = (Instant::now(), Timestamp(wall_us().max(0) as u64));
        Clock(Arc::new(Source::Recording(Recording { now: AtomicU64::new(0), started, began })))
    }

    /// The time now; never before an earlier result of any clone.
    pub fn now(&self) -> Timestamp {
        match &*self.0 {
            Source::Wall(wall) => {
                let monotonic = wall.started.elapsed().as_micros() as i64;
                let now = Timestamp(wall.discipline.read(monotonic, wall_us()));
                wall.ahead.as_ref().map_or(now, |ahead| ahead.of(now))
            }
            Source::Fake(now) => Timestamp(now.load(Relaxed)),
            Source::Recording(recording) => Timestamp(recording.now.load(Relaxed)),
        }
    }

    /// A time for deadlines and intervals, which passes even if server time stays; comparable with its own readings
    /// only. That of the wall clock and of a test is server time.
    pub fn steady(&self) -> Timestamp {
        match &*self.0 {
            Source::Recording(recording) => recording.steady(),
            Source::Wall(_) | Source::Fake(_) => self.now(),
        }
    }

    /// Server time and [`Clock::steady`], of one reading.
    pub fn both(&self) -> (Timestamp, Timestamp) {
        let now = self.now();
        match &*self.0 {
            Source::Recording(recording) => (now, recording.steady()),
            Source::Wall(_) | Source::Fake(_) => (now, now),
        }
    }

    /// The steady time from which a deadline counts that begins at `now`, a server time of this moment or of before. In
    /// a recording it begins with this call: server time says nothing about how long a client has waited.
    pub fn deadline_from(&self, now: Timestamp) -> Timestamp {
        match &*self.0 {
            Source::Recording(recording) => recording.steady(),
            Source::Wall(_) | Source::Fake(_) => now,
        }
    }

    /// The wall clock of this machine, independent of server time: it may step back, and leap. For tokens that are
    /// issued elsewhere.
    pub fn wall_now(&self) -> Timestamp {
        match &*self.0 {
            Source::Wall(wall) => Timestamp(wall_us().max(0) as u64).plus(wall.ahead.as_ref().map_or(0, Ahead::micros)),
            Source::Fake(now) => Timestamp(now.load(Relaxed)),
            Source::Recording(_) => Timestamp(wall_us().max(0) as u64),
        }
    }

    /// Makes server time begin no earlier than the newest moment of the journal.
    pub fn not_before(&self, moment: Timestamp) {
        match &*self.0 {
            Source::Wall(wall) => {
                let ahead = wall.ahead.as_ref().map_or(0, Ahead::micros);
                let moment = moment.0.saturating_sub(ahead);
                wall.discipline.not_before(wall.started.elapsed().as_micros() as i64, moment);
            }
            Source::Fake(now) | Source::Recording(Recording { now, .. }) => {
                now.fetch_max(moment.0, Relaxed);
            }
        }
    }

    /// Moves a fake clock, or that of a recording, ahead. Moving it back, or the wall clock, has no effect.
    pub fn set(&self, now: Timestamp) {
        if let Source::Fake(current) | Source::Recording(Recording { now: current, .. }) = &*self.0 {
            current.fetch_max(now.0, Relaxed);
        }
    }
}

impl Recording {
    fn steady(&self) -> Timestamp {
        self.began.plus(self.started.elapsed().as_micros() as u64)
    }
}

impl Ahead {
    /// 0 without a file.
    fn micros(&self) -> u64 {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        text.trim().parse::<u64>().unwrap_or(0).saturating_mul(SECOND)
    }

    fn of(&self, now: Timestamp) -> Timestamp {
        let moved = now.plus(self.micros());
        Timestamp(self.last.fetch_max(moved.0, Relaxed).max(moved.0))
    }
}

fn wall_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// The calculation, without the two clocks that it reads.
#[derive(Debug)]
struct Discipline {
    /// wall − monotonic, as accepted.
    offset: AtomicI64,
    last: AtomicU64,
    /// `slow` holds an open doubt.
    doubting: AtomicBool,
    /// Used only while the wall clock is doubted.
    slow: Mutex<Slow>,
}

#[derive(Debug, Default)]
struct Slow {
    anomalies: Anomalies,
    /// A leap ahead that is not accepted yet: its offset, and the monotonic time since which it has lasted.
    leap: Option<(i64, i64)>,
    /// A step back that is being made up for: monotonic time of the last reading.
    behind_since: Option<i64>,
}

impl Discipline {
    /// A clock that begins at this wall time and monotonic time 0.
    fn new(wall: i64) -> Discipline {
        Discipline {
            offset: AtomicI64::new(wall),
            last: AtomicU64::new(0),
            doubting: AtomicBool::new(false),
            slow: Mutex::default(),
        }
    }

    /// Time continues from `moment` until the wall clock has reached it: at half speed, as after a step back.
    fn not_before(&self, monotonic: i64, moment: u64) {
        self.last.fetch_max(moment, Relaxed);
        self.offset.fetch_max(i64::try_from(moment).unwrap_or(i64::MAX).saturating_sub(monotonic), Relaxed);
    }

    fn read(&self, monotonic: i64, wall: i64) -> u64 {
        let expected = monotonic + self.offset.load(Relaxed);
        let ahead = wall - expected;
        let now = if (-STEP_BACK_US_MIN..=LEAP_US_MAX).contains(&ahead) {
            self.offset.store(wall - monotonic, Relaxed);
            // Read before the swap, which would take the cache line from other readers each time.
            if self.doubting.load(Relaxed) && self.doubting.swap(false, Relaxed) {
                let mut slow = self.slow.lock();
                (slow.leap, slow.behind_since) = (None, None);
            }
            wall
        } else {
            self.doubt(monotonic, wall)
        };
        let now = now.max(0) as u64;
        // `fetch_max` alone orders all readers: each gets at least what any other got before it.
        self.last.fetch_max(now, Relaxed).max(now)
    }

    fn doubt(&self, monotonic: i64, wall: i64) -> i64 {
        let mut slow = self.slow.lock();
        self.doubting.store(true, Relaxed);
        let accepted = self.offset.load(Relaxed);
        let claimed = wall - monotonic;
        let offset = if claimed > accepted {
            slow.behind_since = None;
            match slow.leap {
                Some((offset, since)) if (claimed - offset).abs() <= LEAP_US_MAX => {
                    if monotonic - since >= LEAP_CONFIRMED_AFTER_US {
                        slow.leap = None;
                        claimed
                    } else {
                        accepted
                    }
                }
                _ => {
                    slow.anomalies.leaps_ahead += 1;
                    let (seconds, seen) = ((claimed - accepted) / SECOND as i64, slow.anomalies.leaps_ahead);
                    tracing::warn!(
                        seconds,
                        seen,
                        "the wall clock leapt ahead; server time follows if that lasts for a minute"
                    );
                    slow.leap = Some((claimed, monotonic));
                    accepted
                }
            }
        } else {
            slow.leap = None;
            let since = slow.behind_since.unwrap_or_else(|| {
                slow.anomalies.steps_back += 1;
                let (seconds, seen) = ((accepted - claimed) / SECOND as i64, slow.anomalies.steps_back);
                // A smaller difference is what a thread loses between the readings of the two clocks.
                if seconds > 0 {
                    tracing::warn!(
                        seconds,
                        seen,
                        "the wall clock stepped back: server time runs at half speed until it has caught up"
                    );
                }
                monotonic
            });
            let slower = accepted - (monotonic - since).max(0) / 2;
            if slower <= claimed {
                slow.behind_since = None;
                claimed
            } else {
                slow.behind_since = Some(monotonic);
                slower
            }
        };
        self.offset.store(offset, Relaxed);
        monotonic + offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = SECOND as i64;

    fn anomalies(clock: &Discipline) -> (u64, u64) {
        let anomalies = clock.slow.lock().anomalies;
        (anomalies.steps_back, anomalies.leaps_ahead)
    }

    #[test]
    fn follows_a_wall_clock_that_drifts() {
        let clock = Discipline::new(1_000 * S);
        assert_eq!(clock.read(S, 1_001 * S), 1_001 * SECOND);
        assert_eq!(clock.read(10 * S, 1_012 * S), 1_012 * SECOND);
        assert_eq!(anomalies(&clock), (0, 0));
    }

    #[test]
    fn runs_at_half_speed_after_a_step_back() {
        let clock = Discipline::new(1_000 * S);
        assert_eq!(clock.read(10 * S, 1_010 * S), 1_010 * SECOND);
        // An hour back; 4 s later it is 2 s later, and once the wall clock is met again it is followed.
        assert_eq!(clock.read(10 * S, 1_010 * S - 3_600 * S), 1_010 * SECOND);
        assert_eq!(clock.read(14 * S, 1_014 * S - 3_600 * S), 1_012 * SECOND);
        let met = clock.read(10_000 * S, 6_400 * S + 1_000 * S);
        assert_eq!(met, 7_400 * SECOND);
        assert_eq!(anomalies(&clock), (1, 0));
    }

    #[test]
    fn continues_from_a_journal_that_is_ahead_of_the_wall_clock() {
        let clock = Discipline::new(1_000 * S);
        clock.not_before(0, 4_600 * SECOND);
        assert_eq!(clock.read(0, 1_000 * S), 4_600 * SECOND);
        // An hour ahead: it moves, at half speed, until the wall clock is met.
        assert_eq!(clock.read(100 * S, 1_100 * S), 4_650 * SECOND);
        assert_eq!(clock.read(10_000 * S, 11_000 * S), 11_000 * SECOND);
        assert_eq!(anomalies(&clock), (1, 0));
        // A journal of the past changes nothing.
        clock.not_before(10_000 * S, 5);
        assert_eq!(clock.read(10_001 * S, 11_001 * S), 11_001 * SECOND);
    }

    #[test]
    fn doubts_a_leap_ahead_until_it_has_lasted() {
        let clock = Discipline::new(0);
        let leap = 86_400 * S;
        assert_eq!(clock.read(S, S), SECOND);
        assert_eq!(clock.read(2 * S, 2 * S + leap), 2 * SECOND);
        assert_eq!(clock.read(30 * S, 30 * S + leap), 30 * SECOND);
        assert_eq!(clock.read(61 * S, 61 * S + leap), 61 * SECOND);
        assert_eq!(clock.read(62 * S, 62 * S + leap), (62 * S + leap) as u64);
        assert_eq!(anomalies(&clock), (0, 1));
        // A leap that ends again was never accepted.
        let clock = Discipline::new(0);
        clock.read(S, S + leap);
        assert_eq!(clock.read(2 * S, 2 * S), 2 * SECOND);
        assert_eq!(clock.read(70 * S, 70 * S + leap), 70 * SECOND);
        assert_eq!(anomalies(&clock), (0, 2));
    }

    #[test]
    fn never_goes_back_whatever_the_wall_clock_does() {
        let mut random = wire::testing::Random(17);
        let clock = Discipline::new(1_790_000_000 * S);
        let (mut monotonic, mut last) = (0i64, 0);
        for _ in 0..100_000 {
            monotonic += (random.next() % 2_000_000) as i64;
            let jump = match random.next() % 50 {
                0 => (random.next() % 100_000) as i64 * S - 50_000 * S,
                _ => (random.next() % 2_000) as i64 - 1_000,
            };
            let now = clock.read(monotonic, 1_790_000_000 * S + monotonic + jump);
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
    }

    #[test]
    fn a_file_moves_the_wall_clock_ahead() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("ahead");
        let (clock, today) = (Clock::ahead_of_wall(Some(&file)), Clock::wall());
        let hours_ahead = |clock: &Clock| clock.now().since(today.now()) / (3_600 * SECOND);
        // (the text of the file, whole hours ahead)
        for (text, hours) in [("", 0), ("7201", 2), ("86401\n", 24), ("no number", 24), ("5", 24)] {
            std::fs::write(&file, text).expect("it can be written");
            assert!((hours..=hours + 1).contains(&hours_ahead(&clock)), "{text:?}: {}", hours_ahead(&clock));
        }
        // A journal of such a run does not move the next run twice as far.
        std::fs::write(&file, "86401").expect("it can be written");
        let next = Clock::ahead_of_wall(Some(&file));
        next.not_before(clock.now());
        assert!((23..=25).contains(&hours_ahead(&next)), "{}", hours_ahead(&next));
    }

    #[test]
    fn the_wall_clock_is_unchanged_after_a_journal_of_the_future() {
        let clock = Clock::wall();
        let year = 365 * 86_400 * SECOND;
        clock.not_before(clock.now().plus(year));
        let (server, wall) = (clock.now(), clock.wall_now());
        assert!(server.since(wall) > year - 60 * SECOND, "{server:?} and {wall:?}");
        // A test moves both.
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("ahead");
        let moved = Clock::ahead_of_wall(Some(&file));
        for (text, hours) in [("86460", 24), ("0", 0)] {
            std::fs::write(&file, text).expect("it can be written");
            let ahead = moved.wall_now().since(clock.wall_now()) / (3_600 * SECOND);
            assert!((hours..=hours + 1).contains(&ahead), "{text}: {ahead}");
        }
        assert_eq!(Clock::fake(Timestamp(5)).wall_now(), Timestamp(5));
    }

    #[test]
    fn a_recording_has_one_clock_besides_wall_and_steady_time() {
        let (clock, wall) = (Clock::of_recording(), Clock::wall());
        assert_eq!(clock.now(), Timestamp(0));
        let mut last = clock.steady();
        // (set to, server time)
        for (set, now) in [(7, 7), (3, 7), (7, 7), (90, 90)] {
            clock.set(Timestamp(set));
            assert_eq!(clock.clone().now(), Timestamp(now), "set to {set}");
            let (server, steady) = clock.both();
            assert_eq!(server, Timestamp(now));
            assert!(steady >= last, "{steady:?} after {last:?}");
            assert!(clock.deadline_from(server) >= steady);
            last = steady;
        }
        let apart = |a: Timestamp, b: Timestamp| a.since(b).max(b.since(a)) / (3_600 * SECOND);
        assert_eq!((apart(clock.wall_now(), wall.now()), apart(clock.steady(), wall.now())), (0, 0));
        // The other clocks have one time.
        let fake = Clock::fake(Timestamp(5));
        assert_eq!((fake.steady(), fake.both()), (Timestamp(5), (Timestamp(5), Timestamp(5))));
        assert_eq!(fake.deadline_from(Timestamp(2)), Timestamp(2));
        assert_eq!(wall.deadline_from(Timestamp(2)), Timestamp(2));
    }

    #[test]
    fn the_wall_clock_is_current_and_a_fake_one_stands_still() {
        let now = Clock::wall().now();
        assert!(now.secs() > 1_700_000_000, "{now:?}");
        let fake = Clock::fake(Timestamp(5));
        fake.set(Timestamp(9));
        fake.set(Timestamp(7));
        assert_eq!(fake.clone().now(), Timestamp(9));
    }
}
