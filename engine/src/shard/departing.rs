//! Rows that are in the history store leave memory, a piece in each turn. Nothing is journaled, and no digest changes.
//! That the oldest of them are not kept any more is a fact, and so is what an administrator declares about an address:
//! one shard journals both for the server.

use super::{Outbox, Room, Shard, shard_of};
use crate::command::Answer;
use crate::departed::Departures;
use crate::fact;
use crate::id::MARKETS;
use crate::market::mutation::MarketMutation;
use crate::mutation::codec;
use crate::rehearsal::DeclaredAddress;
use crate::reject::Reject;
use crate::time::UtcDay;
use std::collections::VecDeque;
use std::sync::Arc;

/// Commands after which a piece leaves although more of them wait: rows leave faster than new orders end.
const COMMANDS_PER_PIECE: usize = 16;

/// Rows to drop.
#[derive(Default)]
pub(super) struct Departing {
    /// The oldest first, each with the count of pieces that were looked at.
    due: VecDeque<(Arc<Departures>, usize)>,
    /// Commands since the last piece.
    taken: usize,
}

impl Departing {
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

impl<R> Shard<R> {
    /// From now on readers find these rows in the history store; they are dropped in later turns.
    pub(super) fn depart(&mut self, departures: Arc<Departures>) -> Answer {
        self.users.set_departed_upto(departures.upto);
        self.departing.due.push_back((departures, 0));
        Answer::Done
    }

    /// Journals that history is kept from this day on. It may use the reserve: what is cut makes room on the disk.
    pub(super) fn cut_history(&mut self, day: UtcDay, outbox: &mut impl Outbox<R>) -> Answer {
        if outbox.room() == Room::None {
            return Answer::Refused(Reject::NoRoom);
        }
        let fact = MarketMutation::HistoryCut(fact::HistoryCut { day: day.0, at: self.now });
        let mut payload = Vec::new();
        codec::encode(outbox.version(), &[fact], &mut payload);
        outbox.record(MARKETS, self.now, &payload);
        Answer::Done
    }

    /// Commands were taken, and others wait, so that larger work may not come for long: a piece leaves for every
    /// `COMMANDS_PER_PIECE` of them.
    #[inline]
    pub fn note_taken(&mut self, commands: usize) {
        if self.departing.is_empty() {
            return;
        }
        self.departing.taken += commands;
        if self.departing.taken >= COMMANDS_PER_PIECE {
            self.drop_departed();
        }
    }

    /// Journals what an administrator declares about an address.
    pub(super) fn declare_address(
        &mut self,
        address: [u8; 20],
        declared: DeclaredAddress,
        outbox: &mut impl Outbox<R>,
    ) -> Answer {
        // An earlier format does not have the fact.
        if outbox.room() != Room::Ample || outbox.version() != codec::VERSION {
            return Answer::Refused(Reject::NoRoom);
        }
        let fact = MarketMutation::AddressDeclared(fact::AddressDeclared { address, declared, at: self.now });
        let mut payload = Vec::new();
        codec::encode(outbox.version(), &[fact], &mut payload);
        outbox.record(MARKETS, self.now, &payload);
        Answer::Done
    }

    /// Drops the next piece of this shard's users.
    pub(super) fn drop_departed(&mut self) {
        let (index, count) = (self.index, self.count);
        self.departing.taken = 0;
        while let Some((departures, looked_at)) = self.departing.due.front_mut() {
            let pieces = departures.pieces[*looked_at..].iter();
            let mut others = pieces.take_while(|(leaving, _)| shard_of(leaving.user, count) != index);
            let skipped = others.by_ref().count();
            let next = departures.pieces.get(*looked_at + skipped);
            *looked_at += skipped + 1;
            if let Some((leaving, sum)) = next {
                self.users.depart_known(leaving, sum);
                return self.note_ended_room();
            }
            self.departing.due.pop_front();
        }
    }
}
