//! Answers that wait for the release mark. `tests/shuttle` compiles this file.

use std::collections::VecDeque;
use wal::Lsn;

/// Answers in the order in which they may leave, each with the record that it depends on.
#[derive(Debug)]
pub struct HeldBack<T>(VecDeque<(Lsn, T)>);

impl<T> Default for HeldBack<T> {
    fn default() -> HeldBack<T> {
        HeldBack(VecDeque::new())
    }
}

impl<T> HeldBack<T> {
    /// Whether an answer that depends on this record may leave immediately: its promise holds, and no other answer
    /// waits.
    #[inline]
    pub fn lets_pass(&self, depends_on: Lsn, mark: Lsn) -> bool {
        self.0.is_empty() && depends_on <= mark
    }

    /// Adds an answer after the others.
    #[inline]
    pub fn push(&mut self, depends_on: Lsn, held: T) {
        self.0.push_back((depends_on, held));
    }

    /// Whether [`HeldBack::pop`] would return an answer.
    #[inline]
    pub fn can_release(&self, mark: Lsn) -> bool {
        self.0.front().is_some_and(|(lsn, _)| *lsn <= mark)
    }

    /// The oldest answer, if the mark has passed the record that it depends on.
    #[inline]
    pub fn pop(&mut self, mark: Lsn) -> Option<T> {
        if !self.can_release(mark) {
            return None;
        }
        let (lsn, held) = self.0.pop_front()?;
        assert!(lsn <= mark, "nothing may be released before its promise holds: {lsn} > {mark}");
        Some(held)
    }

    /// The newest answer.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.0.back_mut().map(|(_, held)| held)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops all answers: their promise cannot be kept any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
