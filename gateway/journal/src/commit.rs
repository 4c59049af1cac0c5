//! The only place where engine and wal meet: records are appended, and answers that depend on them are released.
//!
//! The engine's [`Outbox`] is a queue of facts and of answers that must wait for them. Nothing leaves before the
//! *release mark* has passed the records before it: the appended LSN (`process`) or the synced one (`power`). Contents
//! of records and answers are opaque here.
//!
//! Two outboxes: the [`Committer`] itself if shard and committer share a thread (inline), and a [`CommitLane`] that
//! sends to the committer's thread (threaded; the feed uses it in both layouts).

mod held;
mod lane;
mod room;
mod waiting;

pub use lane::CommitLane;
pub use room::LogSize;
pub use waiting::Waiting;

use crate::loops::CommitTurns;
use crossbeam::utils::CachePadded;
use engine::command::Answer;
use engine::id::{MARKETS, UserId};
use engine::notice::Notice;
use engine::ring::Ring;
use engine::shard::{Outbox, Room, Shard, shard_of};
use engine::time::Timestamp;
use engine::user::RowCounts;
use held::HeldBack;
use host::histogram::{Micros, Nanos};
use host::job::JobWaker;
use host::slot::Slot;
use room::RoomMarks;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tokio::sync::oneshot;
use wal::record::slot_bytes;
use wal::{Files, Kind, Log, Lsn, Marks, Storage};

/// What an acknowledgement promises (wal/docs/durability.md §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives any death of the process.
    Process,
    /// Survives power loss too.
    Power,
}

/// Where an answer goes.
pub type Reply = Slot<Answer>;

/// An entry of the commit ring. Order makes an answer depend on the records before it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the answer to an order is the most frequent of all")]
pub enum CommitItem {
    Record { owner: UserId, time: Timestamp, payload: Vec<u8> },
    Answer { reply: Reply, answer: Answer },
}

/// An answer that waits for the release mark.
struct Held {
    reply: Reply,
    answer: Answer,
}

/// A user's record that is appended and not released.
#[derive(Clone, Copy)]
struct Unreleased {
    lsn: Lsn,
    owner: UserId,
    made_at: Timestamp,
}

/// Notified of what the committer appends. It must not block: the committer waits for each call.
pub trait CommitListener: Send + Sync + 'static {
    /// An order fact, which may not be released yet. A listener may only report that it came; a monitor must not see
    /// more before its release.
    fn notice(&self, notice: &Notice);

    /// A user is owed alerts that it was not owed before. Their record may not be released yet.
    fn owes(&self, _owner: UserId) {}

    /// The numbers of orders of a shard, after the records of its last command.
    fn orders(&self, shard: usize, count: impl FnOnce() -> OrderCounts);

    /// The histogram for the append after record `after`, if that append is measured.
    fn times_append(&self, after: Lsn) -> Option<&Nanos>;

    /// The histogram for syncs, if they are measured.
    fn times_sync(&self) -> Option<&Micros>;
}

/// Orders of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderCounts {
    /// Resting ones.
    pub open: usize,
    /// These, and those that have ended and not left memory.
    pub in_memory: usize,
    /// Rows that have ended and not left memory.
    pub ended: RowCounts,
}

/// Ignores everything.
impl CommitListener for () {
    fn notice(&self, _: &Notice) {}

    fn orders(&self, _: usize, _: impl FnOnce() -> OrderCounts) {}

    fn times_append(&self, _: Lsn) -> Option<&Nanos> {
        None
    }

    fn times_sync(&self) -> Option<&Micros> {
        None
    }
}

/// State of the log, for health responses and for other threads that check for room. Plain numbers, not used to order
/// memory accesses.
#[derive(Debug, Default)]
pub struct CommitFigures<L = ()> {
    /// Server time of the last record, µs.
    pub last_commit_at: CachePadded<AtomicU64>,
    /// Bytes that the log can certainly take.
    room_bytes: AtomicU64,
    /// Bytes of log that records in the ring will take. Subtracted only after the room without them was published, so
    /// that room less in-flight bytes never exceeds the real room.
    in_flight_bytes: CachePadded<AtomicU64>,
    /// Released records of users, counted by their shard.
    released: OnceLock<Box<[CachePadded<AtomicU64>]>>,
    /// Notified of what goes into the log.
    pub listener: L,
}

impl<L: CommitListener> CommitFigures<L> {
    /// With this listener, and nothing appended yet.
    pub fn with_listener(listener: L) -> CommitFigures<L> {
        CommitFigures {
            last_commit_at: CachePadded::default(),
            room_bytes: AtomicU64::default(),
            in_flight_bytes: CachePadded::default(),
            released: OnceLock::new(),
            listener,
        }
    }

    /// Counters of released records, one for each shard of a log of that size.
    fn released(&self, size: LogSize) -> &[CachePadded<AtomicU64>] {
        self.released.get_or_init(|| (1..size.writers_count).map(|_| CachePadded::default()).collect())
    }

    /// Reports the numbers of orders of a shard to the listener, after the records of its last command.
    pub fn note_orders(&self, shard: &Shard<Reply>) {
        self.listener.orders(shard.place().0, || OrderCounts {
            open: shard.users().resting().len(),
            in_memory: shard.users().orders_count(),
            ended: shard.users().ended_rows(),
        });
    }
}

/// Owner of the log: appends, holds, releases.
pub struct Committer<S: Storage = Files, L = ()> {
    log: Log<S>,
    marks: Marks,
    durability: Durability,
    /// Format of the payloads.
    version: u16,
    held: HeldBack<Held>,
    /// Records of users, from the oldest one that may be unreleased.
    unreleased: VecDeque<Unreleased>,
    size: LogSize,
    /// Released to [`Reply::Here`] and not claimed yet.
    here: Option<Answer>,
    waiting: Waiting,
    room_marks: RoomMarks,
    preparer: JobWaker,
    figures: Arc<CommitFigures<L>>,
}

impl<S: Storage, L: CommitListener> Committer<S, L> {
    /// Takes over the log, positioned after its last record.
    pub fn new(
        log: Log<S>,
        durability: Durability,
        version: u16,
        size: LogSize,
        figures: Arc<CommitFigures<L>>,
    ) -> Committer<S, L> {
        let committer = Committer {
            marks: log.marks(),
            log,
            durability,
            version,
            held: HeldBack::default(),
            unreleased: VecDeque::new(),
            size,
            here: None,
            waiting: Waiting::default(),
            room_marks: RoomMarks::checked(size),
            preparer: JobWaker::default(),
            figures,
        };
        committer.publish_room();
        committer
    }

    /// The job that prepares segments is woken after one was used.
    pub fn wake_when_low(&mut self, preparer: JobWaker) {
        self.preparer = preparer;
    }

    /// Whether placements are refused, or soon would be, for want of prepared log.
    pub fn is_low(&self) -> bool {
        self.log.room(self.room_marks.record_bytes_max) < self.room_marks.low_bytes
    }

    /// The newest record in the log.
    pub fn appended(&self) -> Lsn {
        self.log.last_lsn()
    }

    /// State of the log.
    pub fn figures(&self) -> &CommitFigures<L> {
        &self.figures
    }

    /// Whether an answer waits for a sync, to be read by the sync thread.
    pub fn waiting(&self) -> Waiting {
        self.waiting.clone()
    }

    /// Takes all entries of the ring, then releases what may leave. Returns whether there was anything to do.
    pub fn turn(&mut self, ring: &Ring<CommitItem>) -> bool {
        let (mut worked, mut taken_bytes) = (false, 0);
        while let Some(item) = ring.pop() {
            worked = true;
            match item {
                CommitItem::Record { owner, time, payload } => {
                    self.record(owner, time, &payload);
                    taken_bytes += slot_bytes(payload.len()) as u64;
                }
                CommitItem::Answer { reply, answer } => self.answer(reply, answer),
            }
        }
        let released = self.release();
        // Pairs with the Acquire in `CommitLane::room`: a thread that sees these subtracted sees the room published by
        // `release`.
        self.figures.in_flight_bytes.fetch_sub(taken_bytes, Ordering::Release);
        released || worked
    }

    /// Releases what the release mark has passed. With `power` a poisoned log releases nothing more: the dropped reply
    /// slots report to their owners that the outcome is unknown.
    pub fn release(&mut self) -> bool {
        let mark = self.mark();
        let mut worked = false;
        while let Some(held) = self.held.pop(mark) {
            self.fill(held);
            worked = true;
        }
        if self.marks.is_poisoned() {
            self.held.clear();
        }
        self.note_released();
        if self.held.is_empty() && worked {
            self.waiting.end();
        }
        self.publish_room();
        worked
    }

    /// Whether [`Committer::release`] would find anything to do.
    pub fn can_release(&self) -> bool {
        let mark = self.mark();
        self.held.can_release(mark)
            || self.unreleased.front().is_some_and(|record| record.lsn <= mark)
            || (self.marks.is_poisoned() && !self.held.is_empty())
    }

    /// The answer to the command that was just run with [`Reply::Here`], or a receiver if it is not released yet. The
    /// answer to such a command is made before its run ends, released or not.
    ///
    /// # Errors
    /// The receiver to wait on.
    pub fn claim(&mut self) -> Result<Answer, oneshot::Receiver<Answer>> {
        if let Some(answer) = self.here.take() {
            return Ok(answer);
        }
        // The sender is dropped if a poisoned log has dropped the answer.
        let (sender, receiver) = oneshot::channel();
        if let Some(Held { reply: reply @ Reply::Here, .. }) = self.held.last_mut() {
            *reply = Reply::Request(sender);
        }
        Err(receiver)
    }

    /// Appends the clean-stop record, the last one.
    pub fn stop(&mut self, now: Timestamp) {
        let time = self.monotone(now);
        // Without room there is no clean-stop mark: the next start reads a log that just ends, which is correct.
        let _ = self.log.append_clean_stop(time);
    }

    /// The LSN up to which the configured promise holds.
    fn mark(&self) -> Lsn {
        match self.durability {
            // Records of a failed sync are in the mapping, and survive the death of the process.
            Durability::Process => self.log.last_lsn(),
            Durability::Power => self.marks.synced(),
        }
    }

    /// Forgets the records that the release mark has passed, and counts them for their shards.
    fn note_released(&mut self) {
        let mark = self.mark();
        while let Some(&Unreleased { lsn, owner, .. }) = self.unreleased.front()
            && lsn <= mark
        {
            self.unreleased.pop_front();
            self.count_released(owner);
        }
    }

    fn count_released(&self, owner: UserId) {
        let released = self.figures.released(self.size);
        // Only one thread counts.
        let count = &released[shard_of(owner, released.len())];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn hold(&mut self, held: Held) {
        let depends_on = self.log.last_lsn();
        if self.held.lets_pass(depends_on, self.mark()) {
            return self.fill(held);
        }
        self.held.push(depends_on, held);
        self.waiting.begin();
        if self.mark() >= depends_on {
            self.release();
        }
    }

    fn fill(&mut self, held: Held) {
        match held.reply {
            Reply::Here => {
                assert!(self.here.is_none(), "an answer must be claimed before the next command runs");
                self.here = Some(held.answer);
            }
            reply => reply.fill(held.answer),
        }
    }

    /// Journal time never goes back, over the records of all shards.
    fn monotone(&self, time: Timestamp) -> u64 {
        time.0.max(self.log.last_time())
    }

    fn publish_room(&self) {
        let room_bytes = self.log.room(self.room_marks.record_bytes_max);
        self.figures.room_bytes.store(room_bytes, Ordering::Relaxed);
        if room_bytes < self.room_marks.full_bytes {
            self.preparer.wake();
        }
    }
}

impl<S: Storage, L: CommitListener> CommitTurns for Committer<S, L> {
    type Item = CommitItem;

    fn turn(&mut self, ring: &Ring<CommitItem>) -> bool {
        Committer::turn(self, ring)
    }

    fn can_release(&self) -> bool {
        Committer::can_release(self)
    }
}

impl<S: Storage, L: CommitListener> Outbox<Reply> for Committer<S, L> {
    fn room(&self) -> Room {
        let room_bytes = self.log.room(self.room_marks.record_bytes_max);
        // Records that the feed has sent and this thread has not taken yet.
        let in_flight_bytes = self.figures.in_flight_bytes.load(Ordering::Relaxed);
        self.room_marks.room(room_bytes.saturating_sub(in_flight_bytes))
    }

    fn version(&self) -> u16 {
        self.version
    }

    fn record(&mut self, owner: UserId, made_at: Timestamp, payload: &[u8]) {
        let time = self.monotone(made_at);
        let timer = self.figures.listener.times_append(self.log.last_lsn());
        let timed = timer.map(|timer| (timer, Instant::now()));
        let appended = self.log.append(Kind::Mutations, self.version, owner.0, time, payload);
        // The state already contains the fact, so the process must not continue if the log lacks it.
        appended.expect("room was checked before the command was decided");
        if let Some((timer, started)) = timed {
            timer.note(started.elapsed());
        }
        self.figures.last_commit_at.store(time, Ordering::Relaxed);
        if owner == MARKETS {
            return;
        }
        match self.durability {
            // Released when appended.
            Durability::Process => self.count_released(owner),
            Durability::Power => {
                self.note_released();
                self.unreleased.push_back(Unreleased { lsn: self.log.last_lsn(), owner, made_at });
            }
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.figures.listener.notice(&notice);
    }

    fn owes(&mut self, owner: UserId) {
        self.figures.listener.owes(owner);
    }

    fn answer(&mut self, reply: Reply, answer: Answer) {
        self.hold(Held { reply, answer });
    }

    fn answer_at_once(&mut self, reply: Reply, answer: Answer) {
        self.fill(Held { reply, answer });
    }

    fn oldest_unreleased(&mut self) -> Option<Timestamp> {
        if self.unreleased.is_empty() {
            return None;
        }
        self.note_released();
        self.unreleased.front().map(|first| first.made_at)
    }

    fn oldest_unreleased_of(&mut self, owner: UserId) -> Option<Timestamp> {
        self.unreleased.iter().find(|record| record.owner == owner).map(|record| record.made_at)
    }
}

#[cfg(test)]
mod tests;
