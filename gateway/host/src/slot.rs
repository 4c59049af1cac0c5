//! The receiver of an answer.

use tokio::sync::oneshot;

/// The receiver of an answer.
#[derive(Debug)]
pub enum Slot<T> {
    /// The thread that runs the command takes its answer from the committer: most answers are there by then, and need
    /// no channel.
    Here,
    /// A request waits on its runtime.
    Request(oneshot::Sender<T>),
    /// A thread (the feed) waits.
    Thread(std::sync::mpsc::SyncSender<T>),
    /// No receiver: the answer is dropped.
    Discard,
}

impl<T> Slot<T> {
    /// Sends the answer to its receiver.
    #[inline]
    pub fn fill(self, answer: T) {
        // The receiver may have given up; the fact holds nevertheless.
        match self {
            Slot::Request(sender) => drop(sender.send(answer)),
            Slot::Thread(sender) => drop(sender.try_send(answer)),
            Slot::Here | Slot::Discard => {}
        }
    }
}
