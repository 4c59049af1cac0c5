//! Rows that have left memory: completes the answers that need them, away from the threads that serve.

use engine::command::Answer;
use engine::shard::elsewhere::Elsewhere;
use tokio::sync::oneshot;

/// Completes answers. Shared by all threads; a call returns before it reads.
pub trait EndedRows: Send + Sync {
    /// Completes an answer. It is given up when the receiver is dropped.
    fn complete(&self, elsewhere: Box<Elsewhere>) -> EndedAnswer;
}

/// The receiver of a completed answer. It is closed if the reader failed.
pub type EndedAnswer = oneshot::Receiver<Result<Answer, Unread>>;

/// Why an answer is not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Too many answers wait (`SERVER_BUSY`).
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
}

/// A receiver that has its answer.
pub fn answered(answer: Result<Answer, Unread>) -> EndedAnswer {
    let (sender, receiver) = oneshot::channel();
    // The receiver is there.
    let _ = sender.send(answer);
    receiver
}
