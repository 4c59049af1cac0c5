//! Placements, one or a batch: decided, committed, told.

use super::{Outbox, Room, Shard, query};
use crate::command::{Answer, BatchEntry, Placement};
use crate::decide::place::{Placed, place};
use crate::decide::take::Ground;
use crate::id::UserId;
use crate::reject::Reject;
use crate::view::OrderView;

impl<R> Shard<R> {
    /// One placement: its own record, whatever it came to.
    pub(super) fn place_one(
        &mut self,
        owner: UserId,
        placement: &mut Placement,
        outbox: &mut impl Outbox<R>,
    ) -> Result<Placed, Reject> {
        let user = self.users.get(owner).ok_or(Reject::UserNotFound)?;
        let ground = Ground {
            rules: &self.rules,
            books: &self.books,
            catalog: &self.catalog,
            now: self.now,
            outage: self.books.outage(),
            recording: self.books.recording_now(),
        };
        let placed = place(&ground, user, placement, &mut self.desk, &mut self.facts);
        match &placed {
            Ok(Placed::Replay { .. }) => {}
            Ok(_) => self.commit(owner, outbox),
            Err(reject) => assert!(self.facts.is_empty(), "a refusal leaves nothing: {reject:?} with {:?}", self.facts),
        }
        placed
    }

    /// What a placement's sender is told. An order's view is large: it is made where the answer is, and not moved there.
    #[inline]
    pub(super) fn told<T>(
        &self,
        owner: UserId,
        placed: Result<Placed, Reject>,
        stands: impl Fn(OrderView) -> T,
        killed: impl Fn(Reject, OrderView) -> T,
        refused: impl Fn(Reject) -> T,
    ) -> T {
        let user = self.users.get(owner);
        let known = |order| user.and_then(|user| Some((user, user.order(order)?)));
        match placed {
            Err(reject) => refused(reject),
            Ok(Placed::Stands(order)) => match known(order) {
                Some((user, order)) => stands(query::order_view(user, order)),
                None => refused(Reject::ExecutionError),
            },
            Ok(Placed::Killed { order, reject }) => match known(order) {
                Some((user, order)) => killed(reject, query::order_view(user, order)),
                None => refused(reject),
            },
            Ok(Placed::Replay { client_order_id }) => match user.map(|user| query::replayed(user, &client_order_id)) {
                Some(BatchEntry::Placed(order)) => stands(order),
                Some(BatchEntry::Killed { reject, order }) => killed(reject, order),
                Some(BatchEntry::Refused(reject)) => refused(reject),
                None => refused(Reject::UserNotFound),
            },
        }
    }

    /// Entries in order, one record each; one that fails does not stop the next.
    pub(super) fn place_batch(
        &mut self,
        owner: UserId,
        placements: Vec<Placement>,
        outbox: &mut impl Outbox<R>,
    ) -> Answer {
        let mut entries = Vec::with_capacity(placements.len());
        // What the server itself fails at (no room in the log, a book that was being written at every try) ends a batch
        // behind its beginning: the rest is refused with it, and no hole is left.
        let mut ended = None;
        for mut placement in placements {
            if ended.is_none() && outbox.room() != Room::Ample {
                ended = Some(Reject::NoRoom);
            }
            let entry = match &ended {
                None => {
                    let placed = self.place_one(owner, &mut placement, outbox);
                    let killed = |reject, order| BatchEntry::Killed { reject, order };
                    self.told(owner, placed, BatchEntry::Placed, killed, BatchEntry::Refused)
                }
                Some(reject) => BatchEntry::Refused(*reject),
            };
            if let BatchEntry::Refused(reject @ Reject::Busy) = &entry {
                ended = Some(*reject);
            }
            entries.push(entry);
        }
        Answer::Batch(entries)
    }
}
