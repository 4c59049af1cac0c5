//! Shard and committer on one thread: the inline layout (house.md §1). A request is decided, journaled and released
//! in one call on the thread that read it; what comes from other threads (feed, sync) arrives through the rings and
//! is worked off by [`Core::turn`].

use crate::commit::{CommitItem, CommitListener, Committer, Reply, Waiting};
use engine::command::{Answer, Command, Envelope};
use engine::id::UserId;
use engine::ring::Ring;
use engine::shard::Shard;
use engine::time::Timestamp;
use host::thread::guard;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use wal::Files;

/// How often a shard looks through the commands that wait for the log to move: some are refused when they waited too long.
pub const LINE_LOOK: Duration = Duration::from_millis(20);

/// One shard with the committer it appends to.
pub struct Core<L = ()> {
    shard: Shard<Reply>,
    committer: Committer<Files, L>,
    /// What the feed asks of the shard, and what it journals itself.
    inbox: Arc<Ring<Envelope<Reply>>>,
    commits: Arc<Ring<CommitItem>>,
}

impl<L: CommitListener> Core<L> {
    pub fn new(
        shard: Shard<Reply>,
        committer: Committer<Files, L>,
        inbox: Arc<Ring<Envelope<Reply>>>,
        commits: Arc<Ring<CommitItem>>,
    ) -> Core<L> {
        committer.figures().look_at(&shard);
        Core { shard, committer, inbox, commits }
    }

    /// Runs one command; its answer is released before this returns where the promise is already kept. Whoever gives the
    /// turns is woken when the command is larger than one.
    pub fn take(&mut self, envelope: Envelope<Reply>, now: Timestamp) {
        guard(|| self.shard.take(envelope, now, &mut self.committer));
        self.committer.figures().look_at(&self.shard);
        if self.shard.has_work() || self.shard.holds_up() {
            self.inbox.wake();
        }
    }

    /// As [`Shard::warm`].
    pub fn warm(&self, owner: UserId) {
        self.shard.warm(owner);
    }

    /// Runs one command that is answered before its run is over; its answer, else where it comes to once it is released.
    ///
    /// # Errors
    /// Where to wait.
    pub fn ask(
        &mut self,
        owner: UserId,
        command: Command,
        now: Timestamp,
    ) -> Result<Answer, oneshot::Receiver<Answer>> {
        // In one piece: an answer that nobody claims would be the next one's.
        guard(|| {
            self.take(Envelope { owner, command, received_at: now, reply: Reply::Here }, now);
            if let Some(reply @ Reply::Here) = self.shard.last_held_up() {
                let (sender, receiver) = oneshot::channel();
                *reply = Reply::Request(sender);
                return Err(receiver);
            }
            self.committer.claim()
        })
    }

    /// Works off what other threads sent and what is due, a bounded piece of it. True when there is more.
    pub fn turn(&mut self, now: Timestamp) -> bool {
        guard(|| {
            // Records of the feed first: a listing stands in the log before anything that names it.
            self.committer.turn(&self.commits);
            let more = self.shard.turn(&self.inbox, now, &mut self.committer);
            self.committer.figures().look_at(&self.shard);
            self.committer.release();
            more || !self.commits.is_empty()
        })
    }

    /// Whether commands wait for the log to move: [`Core::turn`] is to be called within [`LINE_LOOK`].
    pub fn holds_up(&self) -> bool {
        self.shard.holds_up()
    }

    /// Whether anything waits for a sync, to be asked from the sync thread.
    pub fn waiting(&self) -> Waiting {
        self.committer.waiting()
    }

    /// Writes the clean-stop record: the last thing.
    pub fn stop(&mut self, now: Timestamp) {
        self.committer.stop(now);
    }
}
