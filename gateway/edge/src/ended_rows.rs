//! Rows that have left memory: read for the answers and commands that need them, away from the threads that serve.

use ahash::AHashSet;
use engine::command::{Answer, Envelope};
use engine::departed::KeptFrom;
use engine::id::UserId;
use engine::look_up::LookUp;
use engine::shard::elsewhere::Elsewhere;
use engine::time::UtcDay;
use parking_lot::RwLock;
use tokio::sync::oneshot;

/// Completes answers and looks up commands. Shared by all threads; a call returns before it reads.
pub trait EndedRows: Send + Sync {
    /// Completes an answer. It is given up when the receiver is dropped.
    fn complete(&self, elsewhere: Box<Elsewhere>) -> EndedAnswer;

    /// Looks up what a command needs. It is given up when the receiver is dropped.
    fn look_up(&self, look_up: Box<LookUp>) -> FoundCommand;

    /// From when on answers show history. `None`: they show all of it.
    fn history_from(&self) -> Option<&HistoryFrom> {
        None
    }
}

/// From when on the history of users is shown: rows that ended before that day, and have left memory, are not.
#[derive(Debug, Default)]
pub struct HistoryFrom {
    day: KeptFrom,
    /// Users who have such rows.
    users: RwLock<AHashSet<UserId>>,
}

impl HistoryFrom {
    /// History was cut, or more of these rows have left memory.
    pub fn set(&self, day: UtcDay, users: impl IntoIterator<Item = UserId>) {
        let users = users.into_iter().collect();
        let mut known = self.users.write();
        *known = users;
        self.day.raise(day);
    }

    /// The first day that is shown of any history; day 0: all days are.
    pub fn day(&self) -> UtcDay {
        self.day.get()
    }

    /// The same, which follows.
    pub fn kept_from(&self) -> KeptFrom {
        self.day.clone()
    }

    /// That of a user; `None`: all of the history is shown.
    pub fn of(&self, user: UserId) -> Option<UtcDay> {
        // Mostly nothing was cut, and no lock is needed.
        if self.day() == UtcDay(0) {
            return None;
        }
        let users = self.users.read();
        users.contains(&user).then(|| self.day())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_shown_from_a_day_to_those_who_miss_some() {
        let shown = HistoryFrom::default();
        let of = |shown: &HistoryFrom| [1, 2, 3].map(|user| shown.of(UserId(user)).map(|day| day.0));
        assert_eq!((shown.day(), of(&shown)), (UtcDay(0), [None; 3]));
        let mut cases = 1;
        let (one, none) = (vec![UserId(1)], Vec::new());
        for (day, users, expected) in [
            (0, none.clone(), [None; 3]),
            (7, one.clone(), [Some(7), None, None]),
            (7, vec![UserId(1), UserId(3)], [Some(7), None, Some(7)]),
            // The latest day counts.
            (5, one, [Some(7), None, None]),
            (9, none, [None; 3]),
        ] {
            shown.set(UtcDay(day), users);
            assert_eq!(of(&shown), expected, "{day}");
            cases += 1;
        }
        assert_eq!(shown.day(), UtcDay(9));
        println!("shown histories: {cases} cases");
    }
}
