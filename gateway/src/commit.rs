//! The one place where engine and wal meet: records are appended, and what depends on them is released.
//!
//! The engine's [`Outbox`] is a queue of facts and of things that must wait for them. Nothing leaves before the
//! *release mark* has passed the records in front of it: the appended LSN (`process`) or the synced one (`power`).
//! This file knows that a record is bytes and that an answer waits; it knows neither's content.
//!
//! Two outboxes: the [`Committer`] itself where shard and committer share a thread (inline), and a [`CommitLane`]
//! that crosses to the committer's thread (threaded; the feed uses it in both layouts).

use crate::config::Durability;
use crossbeam::utils::CachePadded;
use engine::command::Answer;
use engine::id::UserId;
use engine::notice::Notice;
use engine::ring::Ring;
use engine::shard::{Outbox, Room};
use engine::time::Timestamp;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use tokio::sync::oneshot;
use wal::{Kind, Log, Lsn};

/// Slots of the ring between shards, feed and committer.
const COMMIT_RING_SLOTS: usize = 8_192;
/// Free slots below which a shard is told that there is no room: one command never makes more entries than this.
const COMMIT_RING_MARGIN: usize = 1_024;
/// Bytes of prepared log below which placements are refused, and below which every write is (a record is at most
/// 1 MiB, a sweep a few of them). The space between is the reserve for cancels and revocations (reliability.md 12).
const RESERVE_BYTES: u64 = 8 << 20;
const LAST_BYTES: u64 = 4 << 20;

/// Where an answer goes.
#[derive(Debug)]
pub enum Reply {
    /// A request waits on its runtime.
    Request(oneshot::Sender<Answer>),
    /// A thread (the feed) waits.
    Thread(std::sync::mpsc::SyncSender<Answer>),
    /// Nobody.
    Nobody,
}

impl Reply {
    fn fill(self, answer: Answer) {
        // Whoever asked may have given up; the fact stands all the same.
        match self {
            Reply::Request(sender) => drop(sender.send(answer)),
            Reply::Thread(sender) => drop(sender.try_send(answer)),
            Reply::Nobody => {}
        }
    }
}

/// One entry of the commit ring; order is what makes an answer depend on the records before it.
#[derive(Debug)]
pub enum CommitItem {
    Record { owner: UserId, time: Timestamp, payload: Vec<u8> },
    Notice(Notice),
    Answer { reply: Reply, answer: Answer },
}

/// What waits for the release mark.
enum Held {
    Notice(Notice),
    Answer { reply: Reply, answer: Answer },
}

/// Who hears released notices.
pub trait Listener: Send {
    fn notice(&mut self, notice: &Notice);
}

/// Where the log stands, for health answers and metrics. Plain numbers; nothing is ordered by them.
#[derive(Debug, Default)]
pub struct CommitFigures {
    pub appended: CachePadded<AtomicU64>,
    pub released: CachePadded<AtomicU64>,
    pub last_commit_at: AtomicU64,
    room: AtomicU8,
}

/// Owner of the log: appends, holds, releases.
pub struct Committer {
    log: Log,
    durability: Durability,
    version: u16,
    held: VecDeque<(Lsn, Held)>,
    last_time: u64,
    figures: Arc<CommitFigures>,
    listener: Option<Box<dyn Listener>>,
}

impl Committer {
    /// Takes the log over, positioned behind its last record.
    pub fn new(log: Log, durability: Durability, version: u16, figures: Arc<CommitFigures>) -> Committer {
        let committer =
            Committer { log, durability, version, held: VecDeque::new(), last_time: 0, figures, listener: None };
        committer.publish_room();
        committer
    }

    /// Who is told of notices once they are released.
    pub fn listen(&mut self, listener: Box<dyn Listener>) {
        self.listener = Some(listener);
    }

    /// Takes everything that waits in the ring, then releases what may leave. True when there was anything to do.
    pub fn turn(&mut self, ring: &Ring<CommitItem>) -> bool {
        let mut worked = false;
        while let Some(item) = ring.pop() {
            worked = true;
            match item {
                CommitItem::Record { owner, time, payload } => self.record(owner, time, &payload),
                CommitItem::Notice(notice) => self.notice(notice),
                CommitItem::Answer { reply, answer } => self.answer(reply, answer),
            }
        }
        self.release() || worked
    }

    /// Releases what the release mark has passed. A poisoned log releases nothing ever again: dropping the reply
    /// slots is what tells their owners that the outcome is unknown.
    pub fn release(&mut self) -> bool {
        if self.log.poisoned() {
            self.held.clear();
            return false;
        }
        let mark = self.mark();
        let mut worked = false;
        while self.held.front().is_some_and(|(lsn, _)| *lsn <= mark) {
            let (lsn, held) = self.held.pop_front().expect("front was there");
            assert!(lsn <= mark, "release before the promise: {lsn:?} > {mark:?}");
            self.let_go(held);
            worked = true;
        }
        if worked {
            self.figures.released.store(mark.0, Ordering::Relaxed);
        }
        self.publish_room();
        worked
    }

    /// Whether anything waits for a sync.
    pub fn waits(&self) -> bool {
        !self.held.is_empty()
    }

    /// Writes the clean-stop record; the last thing before the log is dropped.
    pub fn stop(mut self, now: Timestamp) -> Log {
        let time = self.monotone(now);
        // Without room there is no clean-stop mark: the next start then reads a log that just ends, which is sound.
        let _ = self.log.append(Kind::CleanStop, self.version, 0, time, &[]);
        self.log
    }

    fn mark(&self) -> Lsn {
        match self.durability {
            Durability::Process => self.log.appended(),
            Durability::Power => self.log.synced(),
        }
    }

    fn hold(&mut self, held: Held) {
        let depends_on = self.log.appended();
        if self.held.is_empty() && depends_on <= self.mark() && !self.log.poisoned() {
            self.let_go(held);
        } else {
            self.held.push_back((depends_on, held));
        }
    }

    fn let_go(&mut self, held: Held) {
        match held {
            Held::Answer { reply, answer } => reply.fill(answer),
            Held::Notice(notice) => {
                if let Some(listener) = &mut self.listener {
                    listener.notice(&notice);
                }
            }
        }
    }

    /// Journal time never goes backwards, whichever shard a record comes from.
    fn monotone(&mut self, time: Timestamp) -> u64 {
        self.last_time = self.last_time.max(time.0);
        self.last_time
    }

    fn publish_room(&self) {
        self.figures.room.store(self.room() as u8, Ordering::Relaxed);
        self.figures.appended.store(self.log.appended().0, Ordering::Relaxed);
    }
}

impl Outbox<Reply> for Committer {
    fn room(&self) -> Room {
        match self.log.room_bytes() {
            _ if self.log.poisoned() => Room::None,
            bytes if bytes < LAST_BYTES => Room::None,
            bytes if bytes < RESERVE_BYTES => Room::ReserveOnly,
            _ => Room::Ample,
        }
    }

    fn record(&mut self, owner: UserId, time: Timestamp, payload: &[u8]) {
        let time = self.monotone(time);
        let appended = self.log.append(Kind::Mutations, self.version, owner.0, time, payload);
        // The state already shows the fact, so a log that lacks it must not live on.
        let lsn = appended.expect("room was asked for before the command was decided");
        self.figures.appended.store(lsn.0, Ordering::Relaxed);
        self.figures.last_commit_at.store(time, Ordering::Relaxed);
    }

    fn notice(&mut self, notice: Notice) {
        self.hold(Held::Notice(notice));
    }

    fn answer(&mut self, reply: Reply, answer: Answer) {
        self.hold(Held::Answer { reply, answer });
    }
}

/// The way to a committer on another thread.
#[derive(Clone)]
pub struct CommitLane {
    ring: Arc<Ring<CommitItem>>,
    figures: Arc<CommitFigures>,
}

impl CommitLane {
    pub fn new(figures: Arc<CommitFigures>) -> CommitLane {
        CommitLane { ring: Arc::new(Ring::new(COMMIT_RING_SLOTS)), figures }
    }

    pub fn ring(&self) -> &Arc<Ring<CommitItem>> {
        &self.ring
    }

    /// Puts an entry into the ring. It has room: `room` was asked before the command began, and the margin is larger
    /// than what one command makes; should several shards meet in the last slots, the committer drains them meanwhile.
    fn push(&self, item: CommitItem) {
        let mut item = item;
        while let Err(back) = self.ring.push(item) {
            item = back;
            std::thread::yield_now();
        }
    }
}

impl Outbox<Reply> for CommitLane {
    fn room(&self) -> Room {
        if COMMIT_RING_SLOTS - self.ring.len() < COMMIT_RING_MARGIN {
            return Room::None;
        }
        match self.figures.room.load(Ordering::Relaxed) {
            ample if ample == Room::Ample as u8 => Room::Ample,
            reserve if reserve == Room::ReserveOnly as u8 => Room::ReserveOnly,
            _ => Room::None,
        }
    }

    fn record(&mut self, owner: UserId, time: Timestamp, payload: &[u8]) {
        self.push(CommitItem::Record { owner, time, payload: payload.to_vec() });
    }

    fn notice(&mut self, notice: Notice) {
        self.push(CommitItem::Notice(notice));
    }

    fn answer(&mut self, reply: Reply, answer: Answer) {
        self.push(CommitItem::Answer { reply, answer });
    }
}
