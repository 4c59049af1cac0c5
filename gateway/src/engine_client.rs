//! Ask a user's shard: choose it, hand the command over, wait for the released answer, and say what a late one means.

use crate::clock::Clock;
use crate::commit::Reply;
use crate::core::Core;
use engine::command::{Answer, Command, Envelope};
use engine::id::UserId;
use engine::reject::Reject;
use engine::ring::Ring;
use engine::shard::shard_of;
use engine::time::{SECOND, Timestamp};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Time from reading a request to its answer (trading.md §9).
pub const ANSWER_DEADLINE_US: u64 = 10 * SECOND;

/// Why there is no answer in time.
#[derive(Debug)]
pub enum Late {
    /// The shard's queue is full: nothing happened (`SERVER_BUSY`).
    Busy,
    /// Begun, and its commit is not confirmed: the sender must look the order up (`PERSISTENCE_UNKNOWN`).
    Unknown,
    /// Committed, but after the deadline (`DEADLINE_OVERSHOT_BUT_PERSISTED`).
    Overshot(Answer),
}

/// The way into the core from one IO thread. Cheap to clone.
#[derive(Clone)]
pub struct EngineClient {
    lane: Lane,
    clock: Clock,
}

#[derive(Clone)]
enum Lane {
    /// Shard and committer live on this very thread: a command is one call.
    Inline(Rc<RefCell<Core>>),
    /// One inbox per shard thread.
    Threaded(Arc<[Arc<Ring<Envelope<Reply>>>]>),
    /// Answers made by a test.
    #[cfg(test)]
    Canned(Canned),
}

/// What a test answers in a shard's place.
#[cfg(test)]
pub type Canned = Rc<dyn Fn(UserId, Command) -> Result<Answer, Late>>;

impl EngineClient {
    /// The core on this thread.
    pub fn inline(core: Rc<RefCell<Core>>, clock: Clock) -> EngineClient {
        EngineClient { lane: Lane::Inline(core), clock }
    }

    /// Shard threads behind their inboxes.
    pub fn threaded(inboxes: Arc<[Arc<Ring<Envelope<Reply>>>]>, clock: Clock) -> EngineClient {
        EngineClient { lane: Lane::Threaded(inboxes), clock }
    }

    /// Answers made by a test.
    #[cfg(test)]
    pub fn canned(answer: Canned) -> EngineClient {
        EngineClient { lane: Lane::Canned(answer), clock: Clock::wall() }
    }

    /// Asks the shard of `owner`; `received_at` is when the request was read.
    ///
    /// # Errors
    /// [`Late`] when no answer was released within [`ANSWER_DEADLINE_US`], or none ever will be.
    pub async fn ask(&self, owner: UserId, command: Command, received_at: Timestamp) -> Result<Answer, Late> {
        let changes = !matches!(command, Command::Query(_));
        let (sender, receiver) = oneshot::channel();
        let envelope = Envelope { owner, command, received_at, reply: Reply::Request(sender) };
        match &self.lane {
            Lane::Inline(core) => core.borrow_mut().take(envelope, self.clock.now()),
            Lane::Threaded(inboxes) => {
                let inbox = &inboxes[shard_of(owner, inboxes.len())];
                if inbox.push(envelope).is_err() {
                    return Err(Late::Busy);
                }
            }
            #[cfg(test)]
            Lane::Canned(answer) => return answer(owner, envelope.command),
        }
        let answer = self.wait(receiver, received_at).await?;
        let overshot = self.clock.now().since(received_at) > ANSWER_DEADLINE_US;
        match answer {
            Answer::Refused(Reject::NoRoom | Reject::Busy) => Err(Late::Busy),
            // A refusal had no effect, so there is nothing that a late answer could hide.
            answer if overshot && changes && !matches!(answer, Answer::Refused(_)) => Err(Late::Overshot(answer)),
            answer => Ok(answer),
        }
    }

    async fn wait(&self, mut receiver: oneshot::Receiver<Answer>, received_at: Timestamp) -> Result<Answer, Late> {
        // The usual case: answered within the call above, no timer needed.
        if let Ok(answer) = receiver.try_recv() {
            return Ok(answer);
        }
        let left = ANSWER_DEADLINE_US.saturating_sub(self.clock.now().since(received_at));
        match tokio::time::timeout(Duration::from_micros(left), receiver).await {
            Ok(Ok(answer)) => Ok(answer),
            // The slot was dropped: the log is poisoned, or the core is gone.
            Ok(Err(_)) | Err(_) => Err(Late::Unknown),
        }
    }
}
