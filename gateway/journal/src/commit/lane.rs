//! The way to a committer on another thread.

use super::room::RoomMarks;
use super::{CommitFigures, CommitItem, CommitListener, LogSize, Reply};
use engine::command::Answer;
use engine::id::{MARKETS, UserId};
use engine::mutation::codec;
use engine::notice::Notice;
use engine::ring::Ring;
use engine::shard::{Outbox, Room};
use engine::time::Timestamp;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::record::{ALIGN_BYTES, slot_bytes};

/// Slots of the ring between shards, feed and committer.
const COMMIT_RING_SLOTS: usize = 8_192;
/// Below this many free slots a shard has no room: one command never makes more entries.
const COMMIT_RING_MARGIN: usize = 1_024;
/// The queue to a committer on another thread.
pub struct CommitLane<L = ()> {
    ring: Arc<Ring<CommitItem>>,
    room_marks: RoomMarks,
    figures: Arc<CommitFigures<L>>,
    size: LogSize,
    /// Format of the records that the committer appends.
    version: u16,
    /// The shard that uses it; `None`: unreleased records are not tracked.
    shard: Option<usize>,
    /// Records of users that may be unreleased, oldest first, and the number released before them.
    unreleased: VecDeque<(UserId, Timestamp)>,
    released: u64,
}

impl<L> Clone for CommitLane<L> {
    fn clone(&self) -> CommitLane<L> {
        CommitLane {
            ring: self.ring.clone(),
            room_marks: self.room_marks,
            figures: self.figures.clone(),
            size: self.size,
            version: self.version,
            shard: self.shard,
            unreleased: self.unreleased.clone(),
            released: self.released,
        }
    }
}

impl<L: CommitListener> CommitLane<L> {
    /// A lane to the committer that was made with the same size and figures.
    pub fn new(size: LogSize, figures: Arc<CommitFigures<L>>) -> CommitLane<L> {
        let room_marks = RoomMarks::checked(size);
        CommitLane {
            ring: Arc::new(Ring::new(COMMIT_RING_SLOTS)),
            room_marks,
            figures,
            size,
            version: codec::VERSION,
            shard: None,
            unreleased: VecDeque::new(),
            released: 0,
        }
    }

    /// The same lane to a committer that appends records of this format.
    pub fn writing(self, version: u16) -> CommitLane<L> {
        CommitLane { version, ..self }
    }

    /// The same lane for one shard. Only the shard of their users may send records through it.
    pub fn of_shard(&self, index: usize) -> CommitLane<L> {
        CommitLane { shard: Some(index), ..self.clone() }
    }

    /// Forgets the records that the committer has released.
    fn note_released(&mut self) {
        let Some(shard) = self.shard else { return };
        let released = self.figures.released(self.size)[shard].load(Ordering::Relaxed);
        while self.released < released && self.unreleased.pop_front().is_some() {
            self.released += 1;
        }
    }

    /// The ring to the committer, first in, first out.
    pub fn ring(&self) -> &Arc<Ring<CommitItem>> {
        &self.ring
    }

    /// State of the log.
    pub fn figures(&self) -> &CommitFigures<L> {
        &self.figures
    }

    /// Bytes that the log can certainly take, as last published by the committer.
    pub fn room_bytes(&self) -> u64 {
        self.figures.room_bytes.load(Ordering::Relaxed)
    }

    /// Longest payload of one record that `room` accounts for, in bytes.
    pub fn payload_bytes_max(&self) -> usize {
        self.room_marks.record_bytes_max - slot_bytes(0) - ALIGN_BYTES
    }

    /// Puts an entry into the ring. There is room: `room` was checked before the command began, and the margin is
    /// larger than what one command makes. If several shards compete for the last slots, the committer drains the ring
    /// meanwhile.
    fn push(&self, item: CommitItem) {
        let mut item = item;
        while let Err(back) = self.ring.push(item) {
            item = back;
            std::thread::yield_now();
        }
    }
}

impl<L: CommitListener> Outbox<Reply> for CommitLane<L> {
    fn version(&self) -> u16 {
        self.version
    }

    fn room(&self) -> Room {
        if COMMIT_RING_SLOTS - self.ring.len() < COMMIT_RING_MARGIN {
            return Room::None;
        }
        let in_flight_bytes = self.figures.in_flight_bytes.load(Ordering::Acquire);
        self.room_marks.room(self.figures.room_bytes.load(Ordering::Relaxed).saturating_sub(in_flight_bytes))
    }

    fn record(&mut self, owner: UserId, time: Timestamp, payload: &[u8]) {
        self.figures.in_flight_bytes.fetch_add(slot_bytes(payload.len()) as u64, Ordering::Relaxed);
        self.push(CommitItem::Record { owner, time, payload: payload.to_vec() });
        if self.shard.is_some() && owner != MARKETS {
            self.note_released();
            self.unreleased.push_back((owner, time));
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.figures.listener.notice(&notice);
    }

    fn owes(&mut self, owner: UserId) {
        self.figures.listener.owes(owner);
    }

    fn answer(&mut self, reply: Reply, answer: Answer) {
        self.push(CommitItem::Answer { reply, answer });
    }

    fn answer_at_once(&mut self, reply: Reply, answer: Answer) {
        reply.fill(answer);
    }

    fn oldest_unreleased(&mut self) -> Option<Timestamp> {
        if self.unreleased.is_empty() {
            return None;
        }
        self.note_released();
        self.unreleased.front().map(|(_, made_at)| *made_at)
    }

    fn oldest_unreleased_of(&mut self, owner: UserId) -> Option<Timestamp> {
        self.unreleased.iter().find(|(of, _)| *of == owner).map(|(_, made_at)| *made_at)
    }
}
