//! Prints of the venue against resting orders: one at a time, in the order of the feed, before the next matching cycle.
//!
//! A print of a seller at p fills BUY orders from p + tick on (those with a place in a queue from above p on) and,
//! because it bought the complement at 1 − p, SELL orders of the complement down to 1 − p − tick; mirrored for a buyer.
//! At p itself it takes from what is before an order in a queue, then fills the order. Each user has the whole print,
//! for the user's orders by price, then by age. Large ones are processed in pieces, like a cycle.
//!
//! Other events of the lane move places in queues (`queues.rs`) and fill nothing.
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
use crate::print::{Event, Evidence, Print, PrintLane};
use crate::realism::FillModel;
use crate::rules::{CYCLE_ORDERS_PER_TURN_MAX, RECORD_SEALED_AT_BYTES};
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
    /// It moves no place in a queue.
    is_own: bool,
    done: usize,
    /// The current user, and the remaining size for that user.
    owner: Option<UserId>,
    left: Qty,
    /// An order of the user at the price itself was not filled whole: none after it is.
    is_held_up: bool,
}

/// How a print reaches an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Not,
    Beyond,
    /// Its limit is the price of the print, and it has a place in a queue.
    At,
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
        std::iter::from_fn(|| self.lane.pop()).for_each(|event| self.lane.lose_one(event));
        self.lane.lose(u64::from(self.at_hand.take().is_some()));
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
            }
            self.queues.note_lost(self.prints.lane.lost() + self.prints.lane.events_lost());
            let mut at_hand = match self.prints.at_hand.take() {
                Some(at_hand) => at_hand,
                None => match self.prints.lane.pop() {
                    None => break,
                    Some(Event::Print(print)) => self.next_print(print, false, &ground),
                    Some(Event::Own(print)) => self.next_print(print, true, &ground),
                    Some(other) => {
                        match other {
                            Event::Level(news) => self.queues.note(news),
                            Event::Sideless(print) => self.queues.print_sideless(print),
                            Event::Print(_) | Event::Own(_) => unreachable!("taken above"),
                        }
                        budget -= 1;
                        continue;
                    }
                },
            };
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

    /// The orders that a print may reach.
    fn next_print(&mut self, print: Print, is_own: bool, ground: &Ground<'_>) -> AtHand {
        match is_own {
            true => self.queues.reach(print.at),
            false => self.queues.print(&print),
        }
        self.prints.batch.clear();
        if let Some(market) = ground.catalog.market(print.instrument.market()) {
            // An order in a queue is reached at its limit, another one a tick beyond.
            let step = if self.queues.is_empty() { market.tick().0 } else { 0 };
            let resting = self.users.resting();
            for (print, side) in [print, print.mirrored()].into_iter().flat_map(|p| [(p, Side::Buy), (p, Side::Sell)]) {
                let Some(bound) = print.through(side, step).filter(|_| matchable(ground, print.instrument)) else {
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
        AtHand { print, is_own, done: 0, owner: None, left: Qty::ZERO, is_held_up: false }
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
                at_hand.is_held_up = false;
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
                let reach = reach(ground, order, &at_hand.print);
                let left = match reach {
                    Reach::Not => continue,
                    Reach::Beyond if self.queues.is_frozen(order.id) => continue,
                    Reach::Beyond => at_hand.left,
                    Reach::At => {
                        let beyond = match at_hand.is_own {
                            true => self.queues.beyond(order.id, at_hand.left),
                            false => self.queues.take(order.id, at_hand.left),
                        };
                        match beyond {
                            None => continue,
                            Some(_) if at_hand.is_held_up => continue,
                            Some(beyond) => beyond,
                        }
                    }
                };
                let from = self.facts.len();
                let rest = order.unfilled();
                let (met, qty) = meet_print(ground, user, order, left, &mut self.facts);
                at_hand.is_held_up |= reach == Reach::At && met != Met::Closed && qty < rest;
                if met == Met::Untouched {
                    continue;
                }
                at_hand.left = Qty(at_hand.left.0 - qty.0);
                self.evidence = if reach == Reach::At { Evidence::Print } else { Evidence::Through };
                self.enact(owner, from);
                self.evidence = Evidence::Crossed;
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

/// How a print reaches an order on the other side of its taker, by the model of the order.
fn reach(ground: &Ground<'_>, order: &Order, print: &Print) -> Reach {
    let terms = &order.terms;
    let print = if terms.instrument == print.instrument { *print } else { print.mirrored() };
    let beyond = match terms.side {
        Side::Buy => terms.limit.0.checked_sub(print.price.0),
        Side::Sell => print.price.0.checked_sub(terms.limit.0),
    };
    let Some(beyond) = beyond.filter(|_| print.taker != terms.side) else { return Reach::Not };
    let tick = || ground.catalog.market(terms.instrument.market()).map_or(u16::MAX, |market| market.tick().0);
    match ground.rules.fill_of(terms).model {
        FillModel::Touch => Reach::Not,
        FillModel::Cross | FillModel::Through if beyond >= tick() => Reach::Beyond,
        FillModel::Cross | FillModel::Through => Reach::Not,
        FillModel::Queue | FillModel::QueueProb if beyond > 0 => Reach::Beyond,
        FillModel::Queue | FillModel::QueueProb => Reach::At,
    }
}
