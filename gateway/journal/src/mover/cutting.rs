//! From when on history is kept. The keeper decides it after a move, or after an hour without one, the core journals it, and the store is cut when that
//! record is on the device: readers never miss what the log still has, also after a power cut.

use super::EndedStore;
use engine::command::Answer;
use engine::id::UserId;
use engine::time::UtcDay;
use engine::user::Users;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use wal::{Lsn, Marks};

/// Asks the core to journal that history is kept from this day on. The answer comes with the release of the record.
/// `None`: a queue is full, and it is tried again with the next checkpoint.
pub type AskCut = Box<dyn FnMut(UtcDay) -> Option<Receiver<Answer>> + Send>;

/// How long after a decision the next one is made without a checkpoint: a log that is full, or a server without orders, makes
/// none, and days become old all the same.
const DECIDED_EVERY: Duration = Duration::from_secs(3_600);

pub(super) struct Cutter {
    ask: AskCut,
    asked: Option<Asked>,
    decided_at: Option<Instant>,
    pub(super) every: Duration,
    /// What was journaled, as far as is known.
    from: UtcDay,
}

/// A cut whose record is not on the device yet.
struct Asked {
    day: UtcDay,
    /// As of the last checkpoint.
    users: Vec<UserId>,
    answer: Receiver<Answer>,
    /// The record is released, and is not after this one.
    released: Option<Lsn>,
}

impl Cutter {
    pub fn new(ask: AskCut) -> Cutter {
        Cutter { ask, asked: None, decided_at: None, every: DECIDED_EVERY, from: UtcDay(0) }
    }

    /// Whether no checkpoint has asked for a decision for long.
    pub fn is_due(&self) -> bool {
        self.decided_at.is_none_or(|at| at.elapsed() >= self.every)
    }

    /// Decides whether the history of `users` is to be cut; `known`: from when on it is kept in their state.
    pub fn decide(&mut self, store: &mut dyn EndedStore, users: &Users, known: UtcDay, today: UtcDay) {
        self.decided_at = Some(Instant::now());
        self.from = self.from.max(known);
        if self.from != UtcDay(0) {
            // Rows that have just left may be older.
            store.cut(self.from, users.with_ends_before(self.from));
        }
        if let Some(asked) = &mut self.asked {
            // Rows of more users may have left since.
            asked.users = users.with_ends_before(asked.day);
            return;
        }
        let Some(day) = store.wanted_from(today).filter(|day| *day > self.from) else { return };
        let users = users.with_ends_before(day);
        if !users.is_empty() {
            self.asked = (self.ask)(day).map(|answer| Asked { day, users, answer, released: None });
        }
    }

    /// Cuts what was journaled since. Must be called now and then.
    pub fn turn(&mut self, store: &mut dyn EndedStore, marks: &Marks) {
        let Some(mut asked) = self.asked.take() else { return };
        if asked.released.is_none() {
            asked.released = match asked.answer.try_recv() {
                Err(TryRecvError::Empty) => None,
                Ok(Answer::Done) => Some(marks.appended()),
                // The log is full, or ends.
                Ok(_) | Err(TryRecvError::Disconnected) => return,
            };
        }
        match asked.released {
            Some(released) if released <= marks.synced() => {
                self.from = asked.day;
                store.cut(asked.day, asked.users);
            }
            _ => self.asked = Some(asked),
        }
    }
}
