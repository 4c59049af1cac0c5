//! Placements, single or in a batch: decided, committed, answered.

use super::{Outbox, Room, Shard, query, repeats};
use crate::command::{Answer, BatchEntry, Placement};
use crate::decide::alerts::note_daily_limit;
use crate::decide::numbers;
use crate::decide::place::{Placed, place};
use crate::decide::take::Ground;
use crate::id::UserId;
use crate::look_up::{Findings, Past};
use crate::reject::Reject;
use crate::view::OrderView;

impl<R> Shard<R> {
    /// One placement: one record for any result.
    pub(super) fn place_one(
        &mut self,
        owner: UserId,
        placement: &mut Placement,
        found: Option<&Findings>,
        outbox: &mut impl Outbox<R>,
    ) -> Result<Placed, Reject> {
        let user = self.users.get(owner).ok_or(Reject::UserNotFound)?;
        self.desk.queues_are_full = self.queues.is_full();
        let ground = Ground {
            rules: &self.rules,
            books: &self.books,
            catalog: &self.catalog,
            now: self.now,
            outage: self.books.outage(),
            recording: self.books.recording_now(),
        };
        let placed = place(&ground, Past { user, found }, placement, &mut self.desk, &mut self.facts);
        match &placed {
            Ok(Placed::Replay { .. }) => {}
            Ok(_) => {
                if user.alerts().is_some() {
                    note_daily_limit(user, placement.tier, &self.rules, self.now, &mut self.facts);
                }
                self.commit(owner, outbox);
            }
            Err(reject) => {
                assert!(self.facts.is_empty(), "a refusal leaves nothing: {reject:?} with {:?}", self.facts);
                // A build without prefixes used up the numbers: the next placement has others.
                if *reject == Reject::Busy && numbers::are_ending(user, &self.rules) {
                    self.extend_numbers(owner);
                    self.seal(owner, outbox);
                }
            }
        }
        placed
    }

    /// The answer to a placement. The view of an order is large: it is constructed in its destination, not moved there.
    #[inline]
    pub(super) fn answer_placed<T>(
        &self,
        owner: UserId,
        placed: Result<Placed, Reject>,
        found: Option<&Findings>,
        accepted: impl Fn(OrderView) -> T,
        killed: impl Fn(Reject, OrderView) -> T,
        refused: impl Fn(Reject) -> T,
    ) -> T {
        let user = self.users.get(owner);
        let replayed =
            |id: &str| user.map(|user| repeats::first_answer(Past { user, found }, id, self.rules.ids_since(self.now)));
        let known = |order| user.and_then(|user| Some((user, user.order(order)?)));
        match placed {
            Err(reject) => refused(reject),
            Ok(Placed::Accepted(order)) => match known(order) {
                Some((user, order)) => accepted(query::order_view(user, order)),
                None => refused(Reject::ExecutionError),
            },
            Ok(Placed::Killed { order, reject }) => match known(order) {
                Some((user, order)) => killed(reject, query::order_view(user, order)),
                None => refused(reject),
            },
            Ok(Placed::Replay { client_order_id }) => match replayed(&client_order_id) {
                Some(BatchEntry::Placed(order)) => accepted(order),
                Some(BatchEntry::Killed { reject, order }) => killed(reject, order),
                Some(BatchEntry::Refused(reject)) => refused(reject),
                None => refused(Reject::UserNotFound),
            },
        }
    }

    /// Entries in order, one record each; a failed one does not stop the next.
    pub(super) fn place_batch(
        &mut self,
        owner: UserId,
        placements: Vec<Placement>,
        found: Option<&Findings>,
        outbox: &mut impl Outbox<R>,
    ) -> Answer {
        let mut entries = Vec::with_capacity(placements.len());
        // A failure of the server (no room in the log, a book that was being written at every try) ends a batch: the
        // remaining entries are refused with it, so that there is no gap.
        let mut ended = None;
        for mut placement in placements {
            if ended.is_none() && outbox.room() != Room::Ample {
                ended = Some(Reject::NoRoom);
            }
            let entry = match &ended {
                None => {
                    let placed = self.place_one(owner, &mut placement, found, outbox);
                    let killed = |reject, order| BatchEntry::Killed { reject, order };
                    self.answer_placed(owner, placed, found, BatchEntry::Placed, killed, BatchEntry::Refused)
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
