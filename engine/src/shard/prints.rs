//! Prints of the venue against resting orders ([`FillModel::Cross`]): one print after the other, in the order of the feed,
//! and before the next matching cycle.
//!
//! A print that a seller took at p fills BUY orders from p + tick on, and, since it bought the complement at 1 − p, SELL
//! orders of the complement down to 1 − p − tick; mirrored for a buyer. Each user has the whole print, for their orders by
//! price, then by age. Large ones are worked off in pieces, as a cycle is.
//!
//! No order fills that would not be matched in a cycle either: market not open, outage, quote too old, past its
//! expiration, or still waiting for its first live book. Neither does one that was placed after the print.

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

/// What a shard knows of prints.
pub(super) struct Prints<R> {
    pub(super) lane: Arc<PrintLane>,
    at_hand: Option<AtHand>,
    /// Who waits until none is left.
    waiting: Vec<R>,
    /// Orders of the print at hand; its room stays for the next one.
    batch: Vec<Candidate>,
}

/// A print, and how far its orders have met it.
struct AtHand {
    print: Print,
    done: usize,
    /// The user at work, and what is left to them.
    owner: Option<UserId>,
    left: Qty,
}

/// An order that a print went through. In this order they meet it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    owner: UserId,
    /// Distance of the limit from the best one there can be, in the words of either token.
    rank: u16,
    order: OrderId,
}

impl<R> Default for Prints<R> {
    fn default() -> Self {
        Prints { lane: Arc::default(), at_hand: None, waiting: Vec::new(), batch: Vec::new() }
    }
}

impl<R> Prints<R> {
    /// Answers once every print handed over so far is worked off.
    pub fn wait(&mut self, reply: R) {
        self.waiting.push(reply);
    }

    /// Whether there is anything to do.
    pub fn is_running(&self) -> bool {
        self.at_hand.is_some() || !self.waiting.is_empty() || !self.lane.is_empty()
    }

    /// The log has no room for fills: what waits is lost.
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
    /// Where the feed hands prints over.
    pub fn print_lane(&self) -> Arc<PrintLane> {
        self.prints.lane.clone()
    }

    /// One piece of the prints that wait.
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

    /// The next print, and the orders that it went through.
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
                    owner: UserId::of_object(order.0),
                    rank: rank(limit),
                    order,
                }));
            }
            self.prints.batch.sort_unstable();
        }
        Some(AtHand { print, done: 0, owner: None, left: Qty::ZERO })
    }

    /// At most `budget` orders of the print at hand. Answers how many were looked at.
    fn meet_print<O: Outbox<R>>(
        &mut self,
        at_hand: &mut AtHand,
        budget: usize,
        ground: &Ground<'_>,
        outbox: &mut O,
    ) -> usize {
        let batch = std::mem::take(&mut self.prints.batch);
        let begun_at = at_hand.done;
        let most = begun_at + budget;
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
                let user = self.users.get(owner).expect("an order is of a user");
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
        let looked_at = at_hand.done - begun_at;
        self.prints.batch = batch;
        looked_at
    }
}
