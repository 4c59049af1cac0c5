//! Prints of the venue against resting orders ([`FillModel::Cross`]): one at a time, in the order of the feed, before
//! the next matching cycle.
//!
//! A print of a seller at p fills BUY orders from p + tick on and, because it bought the complement at 1 − p, SELL
//! orders of the complement down to 1 − p − tick; mirrored for a buyer. Each user has the whole print, for the user's
//! orders by price, then by age. Large ones are processed in pieces, like a cycle.
//!
//! An order fills only if a cycle could match it: not while its market is not open, in an outage, with an old quote,
//! past its expiration, or before its first live book. An order placed after the print does not fill either.

use super::cycle::matchable;
use super::{Outbox, Room, Shard};
use crate::amount::{Price, Qty};
use crate::command::Answer;
use crate::decide::cycle::{Met, meet_print};
use crate::decide::take::Ground;
use crate::id::{OrderId, UserId};
use crate::order::{Order, Side};
use crate::print::{Print, PrintLane};
use crate::rules::{CYCLE_ORDERS_PER_TURN_MAX, FillModel, RECORD_SEALED_AT_BYTES};
use std::sync::Arc;

/// The prints of a shard.
pub(super) struct Prints<R> {
    pub(super) lane: Arc<PrintLane>,
    at_hand: Option<AtHand>,
    /// Requests that are answered when no print is left.
    waiting: Vec<R>,
    /// Orders of the current print; its space is reused for the next one.
    batch: Vec<Candidate>,
}

/// A print, and the progress of its orders.
struct AtHand {
    print: Print,
    done: usize,
    /// The current user, and the remaining size for that user.
    owner: Option<UserId>,
    left: Qty,
}

/// An order that the print crossed. Orders meet it in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    owner: UserId,
    /// Distance of the limit from the best possible one, equal for both tokens.
    rank: u16,
    order: OrderId,
}

impl<R> Default for Prints<R> {
    fn default() -> Self {
        Prints { lane: Arc::default(), at_hand: None, waiting: Vec::new(), batch: Vec::new() }
    }
}

impl<R> Prints<R> {
    /// Answers when all prints handed over so far are processed.
    pub fn wait(&mut self, reply: R) {
        self.waiting.push(reply);
    }

    /// Whether there are prints to process.
    pub fn is_running(&self) -> bool {
        self.at_hand.is_some() || !self.waiting.is_empty() || !self.lane.is_empty()
    }

    /// The log has no room for fills: waiting prints are lost.
    pub(super) fn lose_all(&mut self) {
        if self.at_hand.is_none() && self.lane.is_empty() {
            return;
        }
        let popped = std::iter::from_fn(|| self.lane.pop()).count() as u64;
        let at_hand = u64::from(self.at_hand.take().is_some());
        self.lane.lose(popped + at_hand);
    }
}

impl<R> Shard<R> {
    /// The lane in which the feed hands over prints.
    pub fn print_lane(&self) -> Arc<PrintLane> {
        self.prints.lane.clone()
    }

    /// One piece of the waiting prints.
    pub(super) fn meet_prints(&mut self, outbox: &mut impl Outbox<R>) {
        let (rules, books, catalog) = (self.rules.clone(), self.books.clone(), self.catalog.clone());
        let ground = Ground {
            rules: &rules,
            books: &books,
            catalog: &catalog,
            now: self.now,
            outage: books.outage(),
            recording: books.recording_now(),
        };
        let mut budget = CYCLE_ORDERS_PER_TURN_MAX;
        while budget > 0 {
            if outbox.room() != Room::Ample {
                self.prints.lose_all();
                break;
            }
            let Some(mut at_hand) = self.prints.at_hand.take().or_else(|| self.next_print(&ground)) else { break };
            budget = budget.saturating_sub(1 + self.meet_print(&mut at_hand, budget, &ground, outbox));
            if at_hand.done < self.prints.batch.len() {
                self.prints.at_hand = Some(at_hand);
            }
        }
        if self.prints.at_hand.is_none() && self.prints.lane.is_empty() {
            for reply in std::mem::take(&mut self.prints.waiting) {
                outbox.answer(reply, Answer::Done);
            }
        }
    }

    /// The next print, and the orders that it crossed.
    fn next_print(&mut self, ground: &Ground<'_>) -> Option<AtHand> {
        let print = self.prints.lane.pop()?;
        self.prints.batch.clear();
        let crosses = ground.rules.fill_model == FillModel::Cross;
        if let Some(market) = ground.catalog.market(print.instrument.market()).filter(|_| crosses) {
            let (tick, resting) = (market.tick().0, self.users.resting());
            for (print, side) in [print, print.mirrored()].into_iter().flat_map(|p| [(p, Side::Buy), (p, Side::Sell)]) {
                let Some(bound) = print.through(side, tick).filter(|_| matchable(ground, print.instrument)) else {
                    continue;
                };
                let rank = |limit: Price| if side == Side::Buy { limit.complement().0 } else { limit.0 };
                let orders = resting.crossing_at(print.instrument, side, bound);
                self.prints.batch.extend(orders.map(|(limit, order)| Candidate {
                    owner: self.users.owner_of(order.0),
                    rank: rank(limit),
                    order,
                }));
            }
            self.prints.batch.sort_unstable();
        }
        Some(AtHand { print, done: 0, owner: None, left: Qty::ZERO })
    }

    /// At most `budget` orders of the current print. Returns the count of orders visited.
    fn meet_print<O: Outbox<R>>(
        &mut self,
        at_hand: &mut AtHand,
        budget: usize,
        ground: &Ground<'_>,
        outbox: &mut O,
    ) -> usize {
        let batch = std::mem::take(&mut self.prints.batch);
        let first = at_hand.done;
        let most = first + budget;
        while let Some(first) = batch.get(at_hand.done).filter(|_| at_hand.done < most && outbox.room() == Room::Ample)
        {
            let owner = first.owner;
            if at_hand.owner.replace(owner) != Some(owner) {
                at_hand.left = at_hand.print.size.floored_to_order_step();
            }
            let orders = batch[at_hand.done..].iter().take_while(|candidate| candidate.owner == owner);
            for candidate in orders.take(most - at_hand.done) {
                at_hand.done += 1;
                if at_hand.left.is_zero() {
                    continue;
                }
                let user = self.users.get(owner).expect("an order belongs to a user");
                let meets = |order: &&Order| {
                    let known = !order.awaiting_book && order.created_at <= at_hand.print.taken_at;
                    known && order.is_open() && self.may_fill(user, order)
                };
                let open = user.order(candidate.order).filter(meets);
                let Some(order) = open.filter(|order| matchable(ground, order.terms.instrument)) else {
                    continue;
                };
                let from = self.facts.len();
                let (met, qty) = meet_print(ground, user, order, at_hand.left, &mut self.facts);
                if met == Met::Untouched {
                    continue;
                }
                at_hand.left = Qty(at_hand.left.0 - qty.0);
                self.enact(owner, from);
                if self.record.len() >= RECORD_SEALED_AT_BYTES {
                    break;
                }
            }
            self.seal(owner, outbox);
        }
        let looked_at = at_hand.done - first;
        self.prints.batch = batch;
        looked_at
    }
}
