//! Inbound frames: how many are read in a turn, how many a peer may send in a second, and heartbeats in all their forms
//! (gateway/docs/streams.md §1.3, §1.5).

use crate::ws::frame::Frame;
use crate::ws::shape::Pong;
use engine::time::Timestamp;
use wire::read;
use wire::value::Value;

/// Frames and bytes of one socket that are read before other tasks of the thread run, including its writer.
const FRAMES_PER_TURN: u32 = 32;
const BYTES_PER_TURN: usize = 64 << 10;
/// Inbound frames of one second, including pings (gateway/docs/streams.md §1.3).
const FRAMES_PER_SECOND_MAX: u32 = 30;
/// Invalid frames over the life of a socket.
pub(super) const BAD_FRAMES_MAX: u32 = 20;

/// What was read since other tasks ran. Without turns, a peer that sends without a pause would keep the thread: its
/// bytes are in buffers already, so reading them never waits.
#[derive(Default)]
pub(super) struct Turn {
    frames: u32,
    bytes: usize,
}

impl Turn {
    /// Counts a frame, and lets other tasks run if the turn is over. Not after each frame, so that responses are
    /// written together.
    pub(super) async fn read(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes;
        if self.frames > FRAMES_PER_TURN || self.bytes > BYTES_PER_TURN {
            *self = Turn { frames: 1, bytes };
            tokio::task::yield_now().await;
        }
    }
}

/// What a peer has sent so far.
#[derive(Default)]
pub(super) struct Inbound {
    second: u64,
    frames: u32,
    /// Invalid frames.
    pub(super) bad: u32,
}

impl Inbound {
    /// Counts a frame. Returns false if it exceeds the rate.
    pub(super) fn takes(&mut self, now: Timestamp) -> bool {
        if self.second != now.secs() {
            (self.second, self.frames) = (now.secs(), 0);
        }
        self.frames += 1;
        self.frames <= FRAMES_PER_SECOND_MAX
    }
}

/// A heartbeat in the text of a message (gateway/docs/streams.md §1.5).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heartbeat {
    Answered(Frame),
    Ignored,
    None,
}

/// Longest text that is checked for a JSON heartbeat.
const HEARTBEAT_BYTES_MAX: usize = 256;

pub(super) fn heartbeat(text: &str, now: Timestamp) -> Heartbeat {
    match text.trim() {
        "PING" => return Heartbeat::Answered(Frame::text(b"PONG")),
        "PONG" | "{}" => return Heartbeat::Ignored,
        _ => {}
    }
    if text.len() > HEARTBEAT_BYTES_MAX || !text.contains("ping") {
        return Heartbeat::None;
    }
    let Ok(value) = read::json(text.as_bytes()) else { return Heartbeat::None };
    let is_ping = |name| matches!(value.get(name), Some(Value::Text(word)) if word == "ping");
    if !is_ping("action") && !is_ping("type") {
        return Heartbeat::None;
    }
    Heartbeat::Answered(Frame::record(&Pong::new(now)))
}
