//! Position of a replay, written by the feed and read by `GET /v1/status`.

use super::replay::Speed;
use engine::time::Timestamp;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The progress of a replay.
#[derive(Debug)]
pub struct Playback {
    /// Speed of the recording's clock; `None` if the recording is followed.
    pub speed: Option<Speed>,
    /// Venue time in µs; 0 before the first line.
    at: AtomicU64,
    ended: AtomicBool,
}

impl Playback {
    pub(super) fn new(speed: Option<Speed>) -> Playback {
        Playback { speed, at: AtomicU64::new(0), ended: AtomicBool::new(false) }
    }

    /// Time of the recording's clock; `None` before its first line.
    pub fn at(&self) -> Option<Timestamp> {
        Some(Timestamp(self.at.load(Relaxed))).filter(|at| at.0 > 0)
    }

    /// Whether the last line has been replayed. Its clock continues, so that later settlements of the recording still
    /// happen. A followed recording never ends.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    pub(super) fn note(&self, at: Timestamp, ended: bool) {
        self.at.store(at.0, Relaxed);
        self.ended.store(ended, Relaxed);
    }
}
