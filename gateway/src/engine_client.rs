//! Ask a user's shard.
use engine::command::{Answer, Command};
use engine::id::UserId;
use engine::time::Timestamp;
use std::rc::Rc;

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

/// What a canned shard answers.
pub type Canned = Rc<dyn Fn(UserId, Command) -> Result<Answer, Late>>;

#[derive(Clone)]
pub struct EngineClient {
    lane: Lane,
}

#[derive(Clone)]
enum Lane {
    /// Answers made by a test.
    Canned(Canned),
}

impl EngineClient {
    /// Answers made by a test.
    pub fn canned(answer: Canned) -> EngineClient {
        EngineClient { lane: Lane::Canned(answer) }
    }

    pub async fn ask(&self, owner: UserId, command: Command, _received_at: Timestamp) -> Result<Answer, Late> {
        match &self.lane {
            Lane::Canned(answer) => answer(owner, command),
        }
    }
}
