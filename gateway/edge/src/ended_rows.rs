//! Rows that have left memory: read for the answers and commands that need them, away from the threads that serve.

use engine::command::{Answer, Envelope};
use engine::look_up::LookUp;
use engine::shard::elsewhere::Elsewhere;
use tokio::sync::oneshot;

/// Completes answers and looks up commands. Shared by all threads; a call returns before it reads.
pub trait EndedRows: Send + Sync {
    /// Completes an answer. It is given up when the receiver is dropped.
    fn complete(&self, elsewhere: Box<Elsewhere>) -> EndedAnswer;

    /// Looks up what a command needs. It is given up when the receiver is dropped.
    fn look_up(&self, look_up: Box<LookUp>) -> FoundCommand;
}

/// The receiver of a completed answer. It is closed if the reader failed.
pub type EndedAnswer = oneshot::Receiver<Result<Answer, Unread>>;

/// The receiver of a command with what was found. It is closed if the reader failed.
pub type FoundCommand = oneshot::Receiver<Result<Envelope<()>, Unread>>;

/// Why rows are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Too many requests wait for a reader (`SERVER_BUSY`).
    Busy,
    /// The rows cannot be read (`PERSISTENCE_UNKNOWN`).
    Unreadable,
}

/// For a process without such rows: none can be read.
#[derive(Clone, Copy, Debug)]
pub struct NoEndedRows;

impl EndedRows for NoEndedRows {
    fn complete(&self, _: Box<Elsewhere>) -> EndedAnswer {
        answered(Err(Unread::Unreadable))
    }

    fn look_up(&self, _: Box<LookUp>) -> FoundCommand {
        answered(Err(Unread::Unreadable))
    }
}

/// A receiver that has its answer.
pub fn answered<T>(answer: Result<T, Unread>) -> oneshot::Receiver<Result<T, Unread>> {
    let (sender, receiver) = oneshot::channel();
    // The receiver is there.
    let _ = sender.send(answer);
    receiver
}
