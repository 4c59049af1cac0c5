//! Rows that are in the history store leave memory, a piece in each turn. Nothing is journaled, and no digest changes.

use super::{Shard, shard_of};
use crate::command::Answer;
use crate::departed::Departures;
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows to drop, the oldest first, each with the count of pieces that were looked at.
#[derive(Default)]
pub(super) struct Departing(VecDeque<(Arc<Departures>, usize)>);

impl Departing {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<R> Shard<R> {
    /// From now on readers find these rows in the history store; they are dropped in later turns.
    pub(super) fn depart(&mut self, departures: Arc<Departures>) -> Answer {
        self.users.set_departed_upto(departures.upto);
        self.departing.0.push_back((departures, 0));
        Answer::Done
    }

    /// Drops the next piece of this shard's users.
    pub(super) fn drop_departed(&mut self) {
        let (index, count) = (self.index, self.count);
        while let Some((departures, looked_at)) = self.departing.0.front_mut() {
            let pieces = departures.pieces[*looked_at..].iter();
            let mut others = pieces.take_while(|(leaving, _)| shard_of(leaving.user, count) != index);
            let skipped = others.by_ref().count();
            let next = departures.pieces.get(*looked_at + skipped);
            *looked_at += skipped + 1;
            if let Some((leaving, sum)) = next {
                self.users.depart_known(leaving, sum);
                return self.note_ended_room();
            }
            self.departing.0.pop_front();
        }
    }
}
