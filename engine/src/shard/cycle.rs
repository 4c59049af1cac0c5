//! The matching cycle (engine/docs/execution.md §7), in pieces: lapsed heartbeats, expired GTD orders, `hold_reason`,
//! markets that stay closed, then resting orders against changed books.
//!
//! After a start with a doubted clock, the cycle skips what ends by time ([`Sweeps`]).
//!
//! A piece visits at most [`CYCLE_ORDERS_PER_TURN_MAX`] orders and instruments, except for the last step; commands run
//! between two pieces, so each piece reads the orders again. Orders of one user in one book are one record, or several
//! when it grows long. Users never compete: each has the whole book, less the user's own depletion.

use super::{Outbox, Room, Shard};
use crate::book::Books;
use crate::command::{Answer, Sweeps};
use crate::decide::cancel::closed;
use crate::decide::cycle::{Met, meet};
use crate::decide::take::Ground;
use crate::fact;
use crate::id::{InstrumentId, OrderId, UserId};
use crate::market::catalog::Catalog;
use crate::mutation::Mutation;
use crate::order::resting::Resting;
use crate::order::{CloseReason, Order, Side};
use crate::rules::{
    CLOSED_MARKET_GRACE_US, CYCLE_ORDERS_PER_TURN_MAX, FULL_CYCLE_EVERY, RECORD_SEALED_AT_BYTES, Rules,
};
use crate::time::Timestamp;
use crate::user::{User, Users};
use ahash::AHashMap;
use std::collections::VecDeque;

/// Requested cycles, and the state that the next one needs of earlier ones.
pub(super) struct Cycles<R> {
    running: Option<Running<R>>,
    waiting: VecDeque<(Timestamp, Sweeps, R)>,
    /// Count of cycles started: every tenth visits all orders, and the first one.
    count: u64,
    /// Version of the book that resting orders of an instrument met last.
    seen: AHashMap<InstrumentId, u64>,
    /// The version at the visit of the first side of the current instrument; `None`: that visit failed.
    visiting: Option<(InstrumentId, u64)>,
    /// Orders of the current stage, grouped by owner; from `done` on still to be visited.
    batch: Vec<OrderId>,
    done: usize,
}

struct Running<R> {
    venue_now: Timestamp,
    sweeps: Sweeps,
    full: bool,
    /// As they were when the cycle started.
    outage: bool,
    no_contact: bool,
    stage: Stage,
    looked_at: u64,
    fills: u64,
    closed: u64,
    reply: R,
}

/// The position of a cycle; instruments are visited in id order, the one in the variant is the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Lapse,
    Expire,
    Hold(InstrumentId),
    Close(InstrumentId),
    Match(InstrumentId, Side),
    Finished,
}

const FIRST: InstrumentId = InstrumentId(0);

/// Maximum count of instruments in one search; each counts as an order of the piece.
const INSTRUMENTS_PER_SEARCH: usize = 250;

impl<R> Default for Cycles<R> {
    fn default() -> Self {
        Cycles {
            running: None,
            waiting: VecDeque::new(),
            count: 0,
            seen: AHashMap::new(),
            visiting: None,
            batch: Vec::new(),
            done: 0,
        }
    }
}

impl<R> Cycles<R> {
    /// Queues the cycle that is due at this venue time.
    pub fn start(&mut self, venue_now: Timestamp, sweeps: Sweeps, reply: R) {
        self.waiting.push_back((venue_now, sweeps, reply));
    }

    /// Whether a cycle has started since the start of the process.
    pub fn have_begun(&self) -> bool {
        self.count > 0
    }

    /// Whether a cycle is running or waits.
    pub fn is_running(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }

    fn next(&mut self, outage: bool, no_contact: bool) -> Option<Running<R>> {
        if self.running.is_some() {
            return self.running.take();
        }
        let (venue_now, sweeps, reply) = self.waiting.pop_front()?;
        let full = self.count.is_multiple_of(FULL_CYCLE_EVERY);
        self.count += 1;
        self.batch.clear();
        self.done = 0;
        let stage = if sweeps.by_server_time() { Stage::Lapse } else { Stage::Hold(FIRST) };
        Some(Running { venue_now, sweeps, full, outage, no_contact, stage, looked_at: 0, fills: 0, closed: 0, reply })
    }

    /// Makes `orders` the current batch, grouped by owner; the order within an owner stays.
    fn gather(&mut self, users: &Users, orders: impl Iterator<Item = OrderId>) {
        self.batch.clear();
        self.done = 0;
        self.gather_more(users, orders);
    }

    /// Adds orders to a batch of which none was visited; those of an owner come after the owner's others.
    fn gather_more(&mut self, users: &Users, orders: impl Iterator<Item = OrderId>) {
        // Mostly there are none, and a fold over nested lists ends sooner than a reservation for them.
        orders.for_each(|order| self.batch.push(order));
        self.batch.sort_by_key(|order| users.owner_of(order.0));
    }

    fn exhausted(&self) -> bool {
        self.done == self.batch.len()
    }
}

impl<R> Shard<R> {
    /// One piece of the running cycle, or of the next one.
    pub(super) fn cycle(&mut self, outbox: &mut impl Outbox<R>) {
        let Some(mut cycle) = self.cycles.next(self.books.outage(), self.books.no_contact()) else { return };
        self.queues.reach(cycle.venue_now);
        self.last_sweeps = cycle.sweeps;
        let mut budget = CYCLE_ORDERS_PER_TURN_MAX;
        while budget > 0 && cycle.stage != Stage::Finished && outbox.room() != Room::None {
            budget = budget.saturating_sub(match cycle.stage {
                Stage::Lapse => self.lapse(&mut cycle, budget, outbox),
                Stage::Expire => self.expire(&mut cycle, budget, outbox),
                Stage::Hold(from) => self.hold(&mut cycle, from, budget, outbox),
                Stage::Close(from) => self.close(&mut cycle, from, budget, outbox),
                Stage::Match(from, side) => self.match_side(&mut cycle, from, side, budget, outbox),
                Stage::Finished => 0,
            });
        }
        if cycle.stage == Stage::Finished {
            let Running { looked_at, fills, closed, .. } = cycle;
            let resting = self.users.resting().len() as u64;
            outbox.answer(cycle.reply, Answer::Cycled { looked_at, fills, closed, resting });
        } else {
            self.cycles.running = Some(cycle);
        }
    }

    /// Lapsed heartbeats: all open orders of the user end, then the registration.
    fn lapse(&mut self, cycle: &mut Running<R>, budget: usize, outbox: &mut impl Outbox<R>) -> usize {
        let now = self.now;
        let Some(owner) = self.users.lapsed(now).next().map(|(owner, _)| owner) else {
            cycle.stage = Stage::Expire;
            return 0;
        };
        let user = self.users.get(owner).expect("a registration belongs to a user");
        let open = user.open_orders().take(budget);
        self.facts.extend(open.map(|order| closed(order.id, CloseReason::HeartbeatLapsed, now)));
        let closed_count = self.facts.len();
        if closed_count == user.open_orders_count() {
            let lapsed = user.safeguards().iter().filter(|safeguard| safeguard.lapses_at <= now);
            let ended = lapsed.map(|safeguard| {
                Mutation::SafeguardEnded(fact::SafeguardEnded { label: safeguard.label.to_string(), at: now })
            });
            self.facts.extend(ended);
        }
        cycle.closed += closed_count as u64;
        self.commit(owner, outbox);
        closed_count + 1
    }

    /// GTD orders that have reached their expiration.
    fn expire(&mut self, cycle: &mut Running<R>, budget: usize, outbox: &mut impl Outbox<R>) -> usize {
        if self.cycles.exhausted() {
            let resting = self.users.resting();
            if resting.next_expiration().is_none_or(|at| at > self.now) {
                cycle.stage = Stage::Hold(FIRST);
                return 0;
            }
            self.cycles.gather(&self.users, resting.expired(self.now).take(budget));
        }
        self.end_batch(cycle, CloseReason::GtdExpired, budget, outbox)
    }

    /// Sets `hold_reason` of every resting order to the outage. While it is unknown whether an outage from before the
    /// start goes on, held orders stay held.
    fn hold(
        &mut self,
        cycle: &mut Running<R>,
        from: InstrumentId,
        budget: usize,
        outbox: &mut impl Outbox<R>,
    ) -> usize {
        if cycle.no_contact && !cycle.outage {
            cycle.stage = Stage::Close(FIRST);
            return 0;
        }
        let mut passed = 0;
        if self.cycles.exhausted() {
            let resting = self.users.resting();
            let search = match resting.is_held(cycle.outage) {
                true => Search { found: SeekResult::Nothing, passed: 0 },
                false => seek(resting, from, |instrument| !resting.is_held_in(instrument, cycle.outage)),
            };
            let Some(instrument) = search.or_next_stage(cycle, Stage::Hold, Stage::Close(FIRST)) else {
                return search.passed;
            };
            passed = search.passed;
            self.cycles.gather(&self.users, resting.orders(instrument));
            cycle.stage = Stage::Hold(InstrumentId(instrument.0 + 1));
        }
        let (held, now) = (cycle.outage, self.now);
        passed
            + self.each_owner(budget.saturating_sub(passed), outbox, |shard, owner, orders| {
                let user = shard.users.get(owner).expect("an order belongs to a user");
                let other = |id: &OrderId| user.order(*id).is_some_and(|order| order.is_open() && order.held != held);
                let facts = orders.iter().copied().filter(other);
                shard.facts.extend(facts.map(|order| Mutation::OrderHeld(fact::OrderHeld { order, held, at: now })));
                shard.enact(owner, 0);
                orders.len()
            })
    }

    /// Unresolved markets that ended a day ago: their orders expire.
    fn close(
        &mut self,
        cycle: &mut Running<R>,
        from: InstrumentId,
        budget: usize,
        outbox: &mut impl Outbox<R>,
    ) -> usize {
        if !cycle.sweeps.by_venue_time() {
            cycle.stage = Stage::Match(FIRST, Side::Buy);
            return 0;
        }
        let mut passed = 0;
        if self.cycles.exhausted() {
            let (catalog, venue_now) = (&self.catalog, cycle.venue_now);
            let over = |instrument: InstrumentId| {
                catalog.market(instrument.market()).is_some_and(|market| {
                    let status = market.status();
                    let grace_ends = market.end().map(|end| end.plus(CLOSED_MARKET_GRACE_US));
                    !status.tradable() && status.resolution.is_none() && grace_ends.is_some_and(|end| end <= venue_now)
                })
            };
            let search = seek(self.users.resting(), from, over);
            let Some(instrument) = search.or_next_stage(cycle, Stage::Close, Stage::Match(FIRST, Side::Buy)) else {
                return search.passed;
            };
            passed = search.passed;
            self.cycles.gather(&self.users, self.users.resting().orders(instrument));
            cycle.stage = Stage::Close(InstrumentId(instrument.0 + 1));
        }
        passed + self.end_batch(cycle, CloseReason::MarketClosed, budget.saturating_sub(passed), outbox)
    }

    /// One side of the next instrument whose resting orders may meet its book.
    fn match_side(
        &mut self,
        cycle: &mut Running<R>,
        from: InstrumentId,
        side: Side,
        budget: usize,
        outbox: &mut impl Outbox<R>,
    ) -> usize {
        if outbox.room() != Room::Ample || cycle.outage || self.books.outage() {
            self.drop_batch();
            cycle.stage = Stage::Finished;
            return 0;
        }
        let (mut passed, is_new) = (0, self.cycles.exhausted());
        if is_new {
            passed = self.gather_touching(cycle, from, side);
            if self.cycles.exhausted() {
                return passed;
            }
        }
        let rules = self.rules.clone();
        let (books, catalog) = (self.books.clone(), self.catalog.clone());
        let ground = ground_of(cycle, &rules, &books, &catalog, self.now);
        if let Some((instrument, side)) = self.terms_of(self.cycles.batch[self.cycles.done]) {
            // Since the last piece the market may have closed, or its quote may have become too old.
            if !is_new && !matchable(&ground, instrument) {
                self.drop_batch();
                return 1;
            }
            // The desk has been used for other books.
            if self.desk.look_deep(&ground, instrument, side).is_err() {
                return budget;
            }
        }
        let (mut fills, mut closed_count) = (0, 0);
        let looked_at = self.each_owner(budget.saturating_sub(passed), outbox, |shard, owner, orders| {
            for (index, id) in orders.iter().enumerate() {
                let user = shard.users.get(owner).expect("an order belongs to a user");
                let meets = |order: &&Order| {
                    order.is_open() && shard.may_fill(user, order) && !shard.queues.is_frozen(order.id)
                };
                let Some(order) = user.order(*id).filter(meets) else { continue };
                let from = shard.facts.len();
                match meet(&ground, user, order, &mut shard.desk, &mut shard.facts) {
                    Ok(Met::Filled) => fills += 1,
                    Ok(Met::Closed) => closed_count += 1,
                    Ok(Met::Untouched | Met::Judged) => {}
                    // The book could not be read: the next cycle visits it again, changed or not.
                    Err(_) => {
                        shard.cycles.seen.remove(&order.terms.instrument);
                        shard.cycles.visiting = None;
                    }
                }
                shard.enact(owner, from);
                if shard.record.len() >= RECORD_SEALED_AT_BYTES {
                    return index + 1;
                }
            }
            orders.len()
        });
        cycle.looked_at += looked_at as u64;
        cycle.fills += fills;
        cycle.closed += closed_count;
        passed + looked_at
    }

    /// Makes the orders that touch the book of the next instrument the current batch, those of one side: of the first
    /// instrument and side that have any. Only best prices are read, and mostly no order touches them. Instruments
    /// whose book has a version that was met, or is not live, are passed. Returns the count of instruments visited.
    fn gather_touching(&mut self, cycle: &mut Running<R>, from: InstrumentId, side: Side) -> usize {
        let ground = ground_of(cycle, &self.rules, &self.books, &self.catalog, self.now);
        let Shard { users, cycles, .. } = self;
        let (resting, mut passed, mut next) = (users.resting(), 0, from);
        for instrument in resting.instruments_from(from).take(INSTRUMENTS_PER_SEARCH) {
            passed += 1;
            next = InstrumentId(instrument.0 + 1);
            // The version before the read: a later change is seen next time. The second side of an instrument belongs
            // to the visit of the first.
            let version = ground.books.version(instrument);
            let is_met = !cycle.full && cycles.seen.get(&instrument) == Some(&version);
            let awaits = resting.awaiting_in(instrument).next().is_some();
            if (is_met && !awaits) || !matchable(&ground, instrument) {
                continue;
            }
            let Ok(sight) = ground.sight(instrument) else { continue };
            let is_second = instrument == from && side == Side::Sell;
            for side in if is_second { &[Side::Sell][..] } else { &[Side::Buy, Side::Sell] } {
                let touching = sight.needed(*side).map(|best| resting.crossing(instrument, *side, best));
                cycles.gather(users, touching.into_iter().flatten());
                if awaits {
                    let touches = |limit| sight.crossed_by(*side, limit);
                    let awaiting = resting.awaiting_in(instrument).filter(|id| {
                        let order = users.order(*id);
                        order.is_some_and(|order| order.terms.side == *side && !touches(order.terms.limit))
                    });
                    cycles.gather_more(users, awaiting);
                }
                match side {
                    Side::Buy => {
                        cycles.visiting = Some((instrument, version));
                        cycle.stage = Stage::Match(instrument, Side::Sell);
                    }
                    Side::Sell => {
                        if let Some((_, first)) = cycles.visiting.filter(|(of, _)| *of == instrument) {
                            cycles.seen.insert(instrument, first);
                        }
                        cycle.stage = Stage::Match(next, Side::Buy);
                    }
                }
                if !cycles.exhausted() {
                    return passed;
                }
            }
        }
        let is_end = passed < INSTRUMENTS_PER_SEARCH;
        cycle.stage = if is_end { Stage::Finished } else { Stage::Match(next, Side::Buy) };
        passed
    }

    /// Whether the order has no end by time due. Due orders are swept before orders are matched, unless that waits or
    /// they became due since.
    pub(super) fn may_fill(&self, user: &User, order: &Order) -> bool {
        let is_alive = order.terms.expiration().is_none_or(|at| at > self.now);
        let has_lapsed = || user.safeguards().iter().any(|safeguard| safeguard.lapses_at <= self.now);
        is_alive && (self.last_sweeps.by_server_time() || !has_lapsed())
    }

    /// Drops the rest of the batch. Its instrument counts as not met, so that a later cycle visits the rest, even if
    /// the book does not change.
    fn drop_batch(&mut self) {
        if let Some((instrument, _)) = self.cycles.batch.get(self.cycles.done).and_then(|next| self.terms_of(*next)) {
            self.cycles.seen.remove(&instrument);
        }
        self.cycles.visiting = None;
        self.cycles.batch.clear();
        self.cycles.done = 0;
    }

    /// Closes every order of the batch that is still open.
    fn end_batch(
        &mut self,
        cycle: &mut Running<R>,
        reason: CloseReason,
        budget: usize,
        outbox: &mut impl Outbox<R>,
    ) -> usize {
        let now = self.now;
        let mut closed_count = 0;
        let looked_at = self.each_owner(budget, outbox, |shard, owner, orders| {
            let user = shard.users.get(owner).expect("an order belongs to a user");
            let open = |id: &OrderId| user.order(*id).is_some_and(|order| order.is_open());
            shard.facts.extend(orders.iter().copied().filter(open).map(|id| closed(id, reason, now)));
            closed_count += shard.facts.len() as u64;
            shard.enact(owner, 0);
            orders.len()
        });
        cycle.closed += closed_count;
        looked_at
    }

    /// Continues the batch, owner by owner, for at most `budget` orders and while there is room. `decide` leaves
    /// applied facts, which become the owner's record, and returns the count of orders it processed; it is called again
    /// for the rest. Returns the count of orders visited.
    fn each_owner<O: Outbox<R>>(
        &mut self,
        budget: usize,
        outbox: &mut O,
        mut decide: impl FnMut(&mut Self, UserId, &[OrderId]) -> usize,
    ) -> usize {
        let batch = std::mem::take(&mut self.cycles.batch);
        let start = self.cycles.done;
        while let Some(first) = batch.get(self.cycles.done) {
            let left = budget - (self.cycles.done - start);
            if left == 0 || outbox.room() == Room::None {
                break;
            }
            let owner = self.users.owner_of(first.0);
            let orders = &batch[self.cycles.done..];
            let same = orders.iter().take(left).take_while(|order| self.users.owner_of(order.0) == owner).count();
            let came_to = decide(self, owner, &orders[..same]);
            self.seal(owner, outbox);
            self.cycles.done += came_to;
        }
        let looked_at = self.cycles.done - start;
        self.cycles.batch = batch;
        looked_at
    }

    fn terms_of(&self, order: OrderId) -> Option<(InstrumentId, Side)> {
        let order = self.users.order(order)?;
        Some((order.terms.instrument, order.terms.side))
    }
}

/// The ground of the orders of a cycle.
fn ground_of<'a, R>(
    cycle: &Running<R>,
    rules: &'a Rules,
    books: &'a Books,
    catalog: &'a Catalog,
    now: Timestamp,
) -> Ground<'a> {
    Ground {
        rules,
        books,
        catalog,
        now,
        outage: cycle.outage,
        // A cycle uses the moment at which it was due, even if the recording has advanced since.
        recording: books.recording_now().map(|_| cycle.venue_now),
    }
}

/// The result of a search over some instruments, and the count of instruments visited.
struct Search {
    found: SeekResult,
    passed: usize,
}

enum SeekResult {
    Found(InstrumentId),
    /// None of these: the next search starts here.
    Further(InstrumentId),
    /// There are no more.
    Nothing,
}

impl Search {
    /// The instrument found. Otherwise sets the next stage: `stage` to search on, or `after` at the end.
    fn or_next_stage<R>(
        &self,
        cycle: &mut Running<R>,
        stage: impl Fn(InstrumentId) -> Stage,
        after: Stage,
    ) -> Option<InstrumentId> {
        cycle.stage = match self.found {
            SeekResult::Found(instrument) => return Some(instrument),
            SeekResult::Further(from) => stage(from),
            SeekResult::Nothing => after,
        };
        None
    }
}

/// The first instrument with resting orders that fits, from `from` on, among the next few.
fn seek(resting: &Resting, from: InstrumentId, fits: impl Fn(InstrumentId) -> bool) -> Search {
    let (mut passed, mut next) = (0, from);
    for instrument in resting.instruments_from(from).take(INSTRUMENTS_PER_SEARCH) {
        passed += 1;
        if fits(instrument) {
            return Search { found: SeekResult::Found(instrument), passed };
        }
        next = InstrumentId(instrument.0 + 1);
    }
    let found = if passed < INSTRUMENTS_PER_SEARCH { SeekResult::Nothing } else { SeekResult::Further(next) };
    Search { found, passed }
}

/// Whether resting orders of an instrument may match now: its market is open, its book live.
pub(super) fn matchable(ground: &Ground<'_>, instrument: InstrumentId) -> bool {
    ground.catalog.market(instrument.market()).is_some_and(|market| market.tradable())
        && ground.live(&ground.quote(instrument))
}
