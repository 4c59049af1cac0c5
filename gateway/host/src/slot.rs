//! Where an answer goes: the end of a hand-off that its asker waits at.

use tokio::sync::oneshot;

/// Where an answer goes.
#[derive(Debug)]
pub enum Slot<T> {
    /// Whoever runs the command takes its answer from the committer: most are there by then, and need no channel.
    Here,
    /// A request waits on its runtime.
    Request(oneshot::Sender<T>),
    /// A thread (the feed) waits.
    Thread(std::sync::mpsc::SyncSender<T>),
    /// Nobody.
    Nobody,
}

impl<T> Slot<T> {
    /// Hands the answer over.
    #[inline]
    pub fn fill(self, answer: T) {
        // Whoever asked may have given up; the fact stands all the same.
        match self {
            Slot::Request(sender) => drop(sender.send(answer)),
            Slot::Thread(sender) => drop(sender.try_send(answer)),
            Slot::Here | Slot::Nobody => {}
        }
    }
}
