//! Shard and committer on one thread: the inline layout (gateway/docs/decisions.md §14). A request is decided,
//! journaled and released in one call on the thread that read it. Work from other threads (feed, sync) arrives through
//! the rings and is done by [`Core::turn`].

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

/// How often a shard checks the commands that wait for the log: some are refused after waiting too long.
pub const WAITING_CHECK_EVERY: Duration = Duration::from_millis(20);

/// A shard with the committer that it appends to.
pub struct Core<L = ()> {
    shard: Shard<Reply>,
    committer: Committer<Files, L>,
    /// Commands of the feed for the shard, and records that the feed journals itself.
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
        committer.figures().note_orders(&shard);
        Core { shard, committer, inbox, commits }
    }

    /// Runs one command; its answer is released before this returns if its promise already holds. The thread that calls
    /// [`Core::turn`] is woken if the command needs more than one turn.
    pub fn take(&mut self, envelope: Envelope<Reply>, now: Timestamp) {
        guard(|| self.shard.take(envelope, now, &mut self.committer));
        self.committer.figures().note_orders(&self.shard);
        if self.shard.has_work() || self.shard.holds_up() {
            guard(|| self.shard.note_taken(1));
            self.inbox.wake();
        }
    }

    /// As [`Shard::warm`].
    pub fn warm(&self, owner: UserId) {
        self.shard.warm(owner);
    }

    /// Runs one command whose answer is made during its run. Returns the answer, or a receiver if it is not released
    /// yet.
    ///
    /// # Errors
    /// The receiver to wait on.
    pub fn ask(
        &mut self,
        owner: UserId,
        command: Command,
        now: Timestamp,
    ) -> Result<Answer, oneshot::Receiver<Answer>> {
        // In one guarded piece: an unclaimed answer would be taken for that of the next command.
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

    /// Does a bounded part of what other threads sent and what is due. Returns whether there is more.
    pub fn turn(&mut self, now: Timestamp) -> bool {
        guard(|| {
            // Records of the feed first: a listing is in the log before anything that refers to it.
            self.committer.turn(&self.commits);
            let more = self.shard.turn(&self.inbox, now, &mut self.committer);
            self.committer.figures().note_orders(&self.shard);
            self.committer.release();
            more || !self.commits.is_empty()
        })
    }

    /// Whether commands wait for the log: [`Core::turn`] must then be called within [`WAITING_CHECK_EVERY`].
    pub fn holds_up(&self) -> bool {
        self.shard.holds_up()
    }

    /// Whether an answer waits for a sync, to be read by the sync thread.
    pub fn waiting(&self) -> Waiting {
        self.committer.waiting()
    }

    /// Appends the clean-stop record, the last one.
    pub fn stop(&mut self, now: Timestamp) {
        self.committer.stop(now);
    }
}
