//! A recording as a venue: it is handed out on the recording's clock (gateway/docs/live-venues.md §7).
//!
//! [`Replay`] is the clock. What it plays is a `Recording`: `Lines` of a tape, or hours of an archive
//! (`archive::replay`).

mod lines;
mod recording;

use super::category::Names;
use super::playback::Playback;
use super::skips::Skips;
use super::tape::TapeError;
use super::{FeedUpdate, Frame, NO_CONNECTION, Polled, Upstream, Venue};
use engine::time::{HOUR, MILLISECOND, Timestamp};
pub(crate) use lines::{Lines, Saved, Stepped};
pub(crate) use recording::Recording;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

/// Most frames that one poll hands out, so that a poll takes a few milliseconds.
const FRAMES_PER_POLL_MAX: usize = 4_096;
/// Interval at which a followed tape is checked: a new line must be read within 100 ms.
const FOLLOW_EVERY: u64 = 40 * MILLISECOND;
/// Longest sleep of a finished replay.
const SLEEP_MAX: u64 = HOUR;

/// The speed of venue time between the lines of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// In thousandths of wall time: 1 000 is the recorded speed.
    Thousandths(NonZeroU32),
    /// Jumps from line to line without waiting.
    Max,
}

impl Speed {
    /// The recorded speed.
    pub const RECORDED: Speed = Speed::Thousandths(NonZeroU32::new(1_000).expect("not zero"));
}

impl std::str::FromStr for Speed {
    type Err = String;

    /// Parses `max`, or a number from 0.001 to 1 000 000 with at most three decimals and an optional `x` after it.
    fn from_str(text: &str) -> Result<Speed, String> {
        if text == "max" {
            return Ok(Speed::Max);
        }
        const THOUSANDTHS_MAX: u64 = 1_000_000_000;
        let of_times = text.strip_suffix('x').filter(|number| number.ends_with(|last: char| last.is_ascii_digit()));
        let number = of_times.unwrap_or(text);
        let thousandths = super::loose::scaled(number, 3).ok().filter(|thousandths| *thousandths <= THOUSANDTHS_MAX);
        match thousandths.and_then(|thousandths| NonZeroU32::new(thousandths as u32)) {
            Some(thousandths) => Ok(Speed::Thousandths(thousandths)),
            None => Err(format!("a speed is `max` or a number from 0.001 to 1000000, not {text:?}")),
        }
    }
}

impl std::fmt::Display for Speed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Speed::Max => f.write_str("max speed"),
            Speed::Thousandths(thousandths) => match (thousandths.get() / 1_000, thousandths.get() % 1_000) {
                (whole, 0) => write!(f, "{whole}x"),
                (whole, part) => write!(f, "{}x", format!("{whole}.{part:03}").trim_end_matches('0')),
            },
        }
    }
}

/// A recording as a venue.
pub struct Replay {
    recording: Box<dyn Recording>,
    speed: Speed,
    follow: bool,
    /// Position of an earlier run: `catch_up` folds up to it.
    resumed: Option<Timestamp>,
    venue_now: Timestamp,
    has_begun: bool,
    /// A wall time and the venue time that belongs to it.
    anchor: Option<(Timestamp, Timestamp)>,
    /// The last line was handed out (of a followed tape: the last one so far).
    at_end: bool,
    updates: Vec<FeedUpdate>,
    skips: Arc<Skips>,
    playback: Arc<Playback>,
}

impl Replay {
    /// Opens a tape; hands out nothing yet. `names` are those of the configuration.
    pub fn open(path: &Path, speed: Speed, follow: bool, names: &Names) -> Result<Replay, TapeError> {
        let skips = Arc::new(Skips::default());
        let lines = Lines::open(path, follow, names, &skips)?;
        Ok(Replay::of(Box::new(lines), speed, follow, skips))
    }

    /// A replay of this recording, which counts in `skips` what it skips.
    pub(crate) fn of(recording: Box<dyn Recording>, speed: Speed, follow: bool, skips: Arc<Skips>) -> Replay {
        Replay {
            at_end: recording.line_at().is_none(),
            recording,
            speed,
            follow,
            resumed: None,
            venue_now: Timestamp::default(),
            has_begun: false,
            anchor: None,
            updates: Vec::new(),
            skips,
            playback: Arc::new(Playback::new((!follow).then_some(speed))),
        }
    }

    /// Sets the clock to the first line and lists the markets that are known then. Only this step may go past `until`:
    /// there was no market before whose crossing could be missed.
    fn begin(&mut self, frame: &mut dyn FnMut(Frame<'_>)) {
        let Some(first) = self.recording.line_at().filter(|_| !self.has_begun) else { return };
        self.has_begun = true;
        self.venue_now = first;
        self.updates.clear();
        self.recording.begin(first, &mut self.updates);
        if !self.updates.is_empty() {
            frame(Frame { connection: NO_CONNECTION, received: first, is_answer: false, updates: &self.updates });
        }
    }

    /// Time of the next line or change; `None` before the first line.
    fn next_due(&self) -> Option<Timestamp> {
        if !self.has_begun {
            return None;
        }
        let next = match (self.recording.change_at(), self.recording.line_at()) {
            (Some(change), Some(line)) => change.min(line),
            (change, line) => change.or(line)?,
        };
        Some(next.max(self.venue_now))
    }

    /// Hands out the next line or change.
    fn step(&mut self, frame: &mut dyn FnMut(Frame<'_>)) {
        let Some(at) = self.next_due() else { return };
        self.venue_now = at;
        self.updates.clear();
        if let Some(connection) = self.recording.step(at, &mut self.updates) {
            frame(Frame { connection, received: at, is_answer: false, updates: &self.updates });
        }
    }

    /// Whether lines are handed out without waiting for their time.
    fn never_waits(&self) -> bool {
        self.follow || self.speed == Speed::Max
    }

    /// The venue time that the wall clock has reached.
    fn due(&self, server_now: Timestamp) -> Timestamp {
        let Some((wall, venue)) = self.anchor else { return self.venue_now };
        let elapsed = server_now.since(wall);
        match self.speed {
            _ if self.at_end => venue.plus(elapsed),
            Speed::Thousandths(thousandths) if !self.follow => {
                let run = u128::from(elapsed) * u128::from(thousandths.get()) / 1_000;
                venue.plus(u64::try_from(run).unwrap_or(u64::MAX))
            }
            _ => Timestamp(u64::MAX),
        }
    }

    /// The wall time of a venue time; the inverse of [`Replay::due`].
    fn wall_at(&self, venue_at: Timestamp) -> Timestamp {
        let Some((wall, venue)) = self.anchor else { return Timestamp::default() };
        let ahead = venue_at.since(venue);
        match self.speed {
            Speed::Thousandths(thousandths) if !self.at_end => {
                let elapsed = (u128::from(ahead) * 1_000).div_ceil(u128::from(thousandths.get()));
                wall.plus(u64::try_from(elapsed).unwrap_or(u64::MAX))
            }
            _ => wall.plus(ahead),
        }
    }

    /// Notes that the last line was handed out, or that a followed tape has new ones.
    fn mark_end(&mut self, server_now: Timestamp) {
        let at_end = self.has_begun && self.recording.line_at().is_none();
        if at_end && !self.at_end {
            self.anchor = Some((server_now, self.venue_now));
            tracing::info!("the recording has ended; its last books stay as they are");
        }
        self.at_end = at_end;
    }

    /// Publishes the position of the replay for status responses.
    fn note_playback(&self) {
        if self.has_begun {
            self.playback.note(self.venue_now, self.at_end && !self.follow);
        }
    }
}

impl Venue for Replay {
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled {
        self.recording.look_again();
        self.begin(frame);
        if self.has_begun && self.anchor.is_none() {
            self.anchor = Some((server_now, self.venue_now));
        }
        self.mark_end(server_now);
        let mut handed = 0;
        let mut due = self.due(server_now).min(until);
        while self.next_due().is_some_and(|at| at <= due) {
            if handed == FRAMES_PER_POLL_MAX {
                self.note_playback();
                return Polled { venue_now: self.venue_now, wake_at: Some(server_now) };
            }
            self.step(frame);
            handed += 1;
            if self.recording.line_at().is_none() {
                self.mark_end(server_now);
                due = self.due(server_now).min(until);
            }
        }
        self.venue_now = self.venue_now.max(due);
        self.note_playback();
        let stop = self.next_due().map_or(until, |next| next.min(until));
        let wake_at = match self.never_waits() && !self.at_end {
            // Only `until` holds it back.
            true => server_now,
            false => self.wall_at(stop).max(server_now).min(server_now.plus(SLEEP_MAX)),
        };
        let wake_at = if self.follow { wake_at.min(server_now.plus(FOLLOW_EVERY)) } else { wake_at };
        Polled { venue_now: self.venue_now, wake_at: Some(wake_at) }
    }

    fn next_at(&self) -> Option<Timestamp> {
        if self.has_begun { self.next_due() } else { self.recording.line_at() }
    }

    fn drives_clock(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let content = self.recording.describe();
        match self.follow {
            true => format!("replay of {content}, followed as they grow"),
            false => format!("replay of {content} at {}", self.speed),
        }
    }

    fn catch_up(&mut self, server_now: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Timestamp {
        self.recording.look_again();
        self.begin(frame);
        let past = if self.follow { self.recording.line_at().map(|_| Timestamp(u64::MAX)) } else { self.resumed };
        let Some(past) = past else { return self.venue_now };
        while self.next_due().is_some_and(|at| at <= past) && (!self.follow || self.recording.line_at().is_some()) {
            self.step(frame);
        }
        self.venue_now = self.venue_now.max(self.resumed.unwrap_or_default());
        self.mark_end(server_now);
        self.note_playback();
        self.anchor = None;
        self.venue_now
    }

    fn resume(&mut self, first_line: [u8; 32], reached: Timestamp) -> bool {
        let same = self.recording.first_line() == Some(first_line);
        self.resumed = same.then_some(reached);
        same
    }

    fn first_line(&self) -> Option<[u8; 32]> {
        self.recording.first_line()
    }

    fn ages_on_server_time(&self) -> bool {
        self.follow
    }

    fn upstream(&self) -> Upstream {
        let playback = Some(self.playback.clone());
        Upstream { skips: Some(self.skips.clone()), playback, ..Upstream::default() }
    }
}

#[cfg(test)]
mod tests;
