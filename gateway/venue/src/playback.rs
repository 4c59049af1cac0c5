//! Where a replayed recording stands, written by the feed and read by `GET /v1/status`.

use super::replay::Speed;
use engine::time::Timestamp;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The progress of a replay.
#[derive(Debug)]
pub struct Playback {
    /// Pace of the recording's clock; `None` where the recording is followed as it grows.
    pub speed: Option<Speed>,
    /// Venue time in µs; 0 before the first line.
    at: AtomicU64,
    ended: AtomicBool,
}

impl Playback {
    pub(super) fn new(speed: Option<Speed>) -> Playback {
        Playback { speed, at: AtomicU64::new(0), ended: AtomicBool::new(false) }
    }

    /// The recording's clock, or `None` before its first line.
    pub fn at(&self) -> Option<Timestamp> {
        Some(Timestamp(self.at.load(Relaxed))).filter(|at| at.0 > 0)
    }

    /// Whether the last line has been played. Markets that the recording settles later still settle, as its clock
    /// goes on. A followed recording never ends.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    pub(super) fn note(&self, at: Timestamp, ended: bool) {
        self.at.store(at.0, Relaxed);
        self.ended.store(ended, Relaxed);
    }
}
