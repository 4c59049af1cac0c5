//! Places of resting orders in the queues of their levels, from events of the venue in the order of the feed
//! (engine/docs/execution.md §17). Not journaled event by event: a place is noted when its order comes to rest, and
//! then at most once a minute of venue time, so that a restart begins near it.

use super::elsewhere::Asked;
use super::{Outbox, Room, Shard};
use crate::amount::{Price, Qty};
use crate::book::{BookSide, Books, LevelNews};
use crate::command::Answer;
use crate::decide::take::own_side;
use crate::fact;
use crate::id::{InstrumentId, OrderId, Outcome, UserId};
use crate::mutation::Mutation;
use crate::order::{Order, Side};
use crate::print::{Print, SidelessPrint};
use crate::queue::{Level, News, Place, hundredths, of_bps, to_bps};
use crate::realism::FillTerms;
use crate::rules::{CYCLE_ORDERS_PER_TURN_MAX, QUEUED_ORDERS_MAX, Rules};
use crate::time::Timestamp;
use crate::user::Users;
use crate::view::{OrderView, QueueView};
use ahash::AHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Token, side and price in one number, as of resting orders: `instrument << 32 | side << 16 | price`.
type Spot = u64;

/// The places of a shard's orders.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// One level per window of the orders there.
    levels: BTreeMap<Spot, Vec<Level>>,
    /// Where an order is: its spot, and its window in ms.
    orders: AHashMap<OrderId, (Spot, u32)>,
    /// Levels that became smaller, by the end of their wait.
    due: BTreeSet<(Timestamp, Spot, u32)>,
    /// Venue time of the newest event.
    reached: Timestamp,
    /// Orders that moved in the present minute of venue time.
    moved: BTreeSet<OrderId>,
    /// Places at the end of a minute, to be journaled.
    notes: BTreeMap<OrderId, Noted>,
    /// Count of events that were lost before.
    lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct Noted {
    ahead: Qty,
    confidence: u32,
    /// The end of the minute.
    at: Timestamp,
}

fn spot(instrument: InstrumentId, side: Side, price: Price) -> Spot {
    u64::from(instrument.0) << 32 | (side as u64) << 16 | u64::from(price.0)
}

impl Queues {
    /// The places of recovered orders: those that were noted last, with half of the confidence. An order whose book is
    /// not known waits for it.
    pub fn recovered(users: &Users, rules: &Rules, books: &Books) -> Queues {
        let mut queues = Queues::default();
        for user in users.unordered() {
            for order in user.open_orders().filter(|order| !order.awaiting_book) {
                let fill = rules.fill_of(&order.terms);
                if !fill.model.is_queued() {
                    continue;
                }
                let terms = &order.terms;
                let shown = books.shown_at(terms.instrument, own_side(terms.side), terms.limit).ok();
                let (ahead, confidence, since) = match user.queue_note(order.id) {
                    Some(note) => (note.ahead, of_bps(note.confidence), note.venue_time()),
                    None => (Qty(u64::MAX), 0, order.created_at),
                };
                let (ahead, confidence) = match shown {
                    Some((size, _)) => (ahead.min(size), confidence / 2),
                    None => (ahead, confidence),
                };
                queues.enter(books, order, fill, (ahead, confidence, since));
            }
        }
        queues
    }

    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.orders.len() >= QUEUED_ORDERS_MAX
    }

    /// Count of levels that are watched.
    pub fn levels_count(&self) -> usize {
        self.levels.len()
    }

    /// An order has come to rest with this many shares before it, of this confidence at this venue time. One that is
    /// known stays where it is.
    pub fn enter(&mut self, books: &Books, order: &Order, fill: FillTerms, place: (Qty, u32, Timestamp)) {
        let terms = &order.terms;
        let (at, side, window) =
            (spot(terms.instrument, terms.side, terms.limit), own_side(terms.side), fill.match_window_ms);
        if self.orders.contains_key(&order.id) {
            return;
        }
        self.orders.insert(order.id, (at, window));
        let levels = self.levels.entry(at).or_insert_with(|| {
            books.watch_level(terms.instrument, side, terms.limit, true);
            Vec::new()
        });
        // After the mark: a change that the feed did not report is in this size.
        let shown = books.shown_at(terms.instrument, side, terms.limit).ok();
        let known = levels.iter().position(|level| level.window_ms() == window);
        let level = match known {
            Some(known) => &mut levels[known],
            None => {
                // A book with a gap says nothing until it is repaired.
                let mut level = Level::new(window, shown, place.2);
                if books.gap(terms.instrument) {
                    level.freeze(u64::MAX);
                }
                levels.push(level);
                levels.last_mut().expect("pushed just now")
            }
        };
        let (ahead, confidence, since) = place;
        let version = shown.map_or(0, |(_, version)| version);
        level.enter(order.id, Place::new(fill, ahead, confidence, since, version));
    }

    /// An order has ended.
    pub fn leave(&mut self, books: &Books, order: OrderId) {
        let Some((at, window)) = self.orders.remove(&order) else { return };
        self.moved.remove(&order);
        self.notes.remove(&order);
        let Some(levels) = self.levels.get_mut(&at) else { return };
        levels.iter_mut().filter(|level| level.window_ms() == window).for_each(|level| level.leave(order));
        levels.retain(|level| !level.is_empty());
        if levels.is_empty() {
            self.levels.remove(&at);
            let (instrument, side) = (InstrumentId((at >> 32) as u32), side_of(at));
            books.watch_level(instrument, own_side(side), Price(at as u16), false);
        }
    }

    /// Whether the level of an order is not known: nothing fills it.
    pub fn is_frozen(&self, order: OrderId) -> bool {
        self.level_of(order).is_some_and(Level::is_frozen)
    }

    /// The place of an order at a venue time.
    pub fn view(&self, books: &Books, order: &Order, now: Timestamp) -> Option<QueueView> {
        let (place, terms) = (self.level_of(order.id)?.place(order.id)?, &order.terms);
        let shown = books.shown_at(terms.instrument, own_side(terms.side), terms.limit);
        let confidence = hundredths(place.confidence_at(now));
        Some(QueueView { ahead: place.ahead, total: shown.ok().map(|(size, _)| size), confidence })
    }

    fn level_of(&self, order: OrderId) -> Option<&Level> {
        let (at, window) = self.orders.get(&order)?;
        self.levels.get(at)?.iter().find(|level| level.window_ms() == *window)
    }

    /// Events were lost, of any level: `count` so far.
    pub fn note_lost(&mut self, count: u64) {
        if std::mem::replace(&mut self.lost, count) != count {
            self.levels.values_mut().flatten().for_each(|level| level.freeze(u64::MAX));
            self.due.clear();
        }
    }

    /// A watched level has changed, or its book has a gap.
    pub fn note(&mut self, news: LevelNews) {
        let change = match news {
            LevelNews::Changed(change) => change,
            LevelNews::Gap { instrument, version } => {
                let (from, to) = (u64::from(instrument.0) << 32, (u64::from(instrument.0) + 1) << 32);
                return self
                    .levels
                    .range_mut(from..to)
                    .flat_map(|(_, levels)| levels)
                    .for_each(|level| level.freeze(version));
            }
        };
        self.reach(change.at);
        for outcome in [Outcome::First, Outcome::Second] {
            let (side, price, size) = change.of(outcome);
            let side = if side == BookSide::Bid { Side::Buy } else { Side::Sell };
            let at = spot(change.market.instrument(outcome), side, price);
            let news = News { is_rebased: change.is_rebased, is_snapshot: change.is_snapshot[outcome as usize] };
            for level in self.levels.get_mut(&at).into_iter().flatten() {
                level.change(size, change.version, change.at, news);
                self.due.extend(level.due().map(|due| (due, at, level.window_ms())));
            }
        }
    }

    /// A trade explains smaller levels at its price. The places of orders move by [`Queues::take`].
    pub fn print(&mut self, print: &Print) {
        if self.is_empty() {
            return;
        }
        self.reach(print.at);
        for Print { instrument, price, size, taker, at, .. } in [*print, print.mirrored()] {
            let levels = self.levels.get_mut(&spot(instrument, taker.opposite(), price));
            levels.into_iter().flatten().for_each(|level| level.print(size, at, true));
        }
    }

    /// A trade without a side explains smaller levels on either.
    pub fn print_sideless(&mut self, print: SidelessPrint) {
        if self.is_empty() {
            return;
        }
        self.reach(print.at);
        let SidelessPrint { instrument, price, size, at } = print;
        for (instrument, price) in [(instrument, price), (instrument.complement(), price.complement())] {
            for side in [Side::Buy, Side::Sell] {
                let levels = self.levels.get_mut(&spot(instrument, side, price));
                levels.into_iter().flatten().for_each(|level| level.print(size, at, false));
            }
        }
    }

    /// A trade at the limit of an order takes from what is before it. Returns the shares that pass it; `None`: it has no
    /// place, or its level is not known.
    pub fn take(&mut self, order: OrderId, size: Qty) -> Option<Qty> {
        let (at, window) = self.orders.get(&order)?;
        let level = self.levels.get_mut(at)?.iter_mut().find(|level| level.window_ms() == *window)?;
        let beyond = level.take(order, size)?;
        if beyond != size {
            self.moved.insert(order);
        }
        Some(beyond)
    }

    /// The shares of a trade at the limit of an order that would pass it; `None` as in [`Queues::take`]. No place moves.
    pub fn beyond(&self, order: OrderId, size: Qty) -> Option<Qty> {
        self.level_of(order)?.beyond(order, size)
    }

    /// Venue time has reached this moment: waits end, and a new minute may begin.
    pub fn reach(&mut self, at: Timestamp) {
        if at <= self.reached {
            return;
        }
        if at.minute() > self.reached.minute() {
            let end = Timestamp::of_minute(at.minute());
            for order in std::mem::take(&mut self.moved) {
                if let Some(place) = self.level_of(order).and_then(|level| level.place(order)) {
                    let noted = Noted { ahead: place.ahead, confidence: place.confidence_at(end), at: end };
                    self.notes.insert(order, noted);
                }
            }
        }
        self.reached = at;
        while let Some(next) = self.due.first().copied().filter(|(due, ..)| *due <= at) {
            self.due.remove(&next);
            let (_, spot, window) = next;
            let levels = self.levels.get_mut(&spot).into_iter().flatten();
            for level in levels.filter(|level| level.window_ms() == window) {
                level.settle(at, |order| {
                    self.moved.insert(order);
                });
                self.due.extend(level.due().map(|due| (due, spot, window)));
            }
        }
    }
}

#[cfg(test)]
impl Queues {
    /// Every order is the first of its level: no order fills earlier.
    pub fn put_first(&mut self) {
        self.levels.values_mut().flatten().for_each(Level::put_first);
    }
}

fn side_of(at: Spot) -> Side {
    if at >> 16 & 1 == Side::Buy as u64 { Side::Buy } else { Side::Sell }
}

impl<R> Shard<R> {
    /// Adds the present places of orders to an answer.
    pub(super) fn show_queues(&self, asked: &mut Asked) {
        if self.queues.is_empty() {
            return;
        }
        let now = self.books.recording_now().unwrap_or(self.now);
        let show = |view: &mut OrderView| view.queue = self.queues.view(&self.books, &view.order, now);
        match asked {
            Ok(Answer::Order(view)) => show(view),
            Ok(Answer::Orders(page)) => page.orders.iter_mut().for_each(show),
            Ok(Answer::VenueOrders(page)) => page.rows.iter_mut().for_each(show),
            Ok(_) => {}
            Err(rest) => rest.each_order(show),
        }
    }

    /// Journals some of the places that moved in the last minute, while the log has ample room.
    pub(super) fn note_queues(&mut self, outbox: &mut impl Outbox<R>) {
        let is_recording = self.books.recording_now().is_some();
        for _ in 0..CYCLE_ORDERS_PER_TURN_MAX {
            if outbox.room() != Room::Ample {
                break;
            }
            let Some((order, Noted { ahead, confidence, at })) = self.queues.notes.pop_first() else { break };
            let owner = UserId::of_object(order.0);
            if self.users.order(order).is_some_and(Order::is_open) {
                let (confidence, venue_at) = (to_bps(confidence), is_recording.then_some(at));
                let noted = fact::QueueNoted { order, ahead, confidence, at: self.now, venue_at };
                self.facts.push(Mutation::QueueNoted(noted));
            }
            let is_last_of_owner =
                self.queues.notes.first_key_value().is_none_or(|(next, _)| UserId::of_object(next.0) != owner);
            if is_last_of_owner && !self.facts.is_empty() {
                self.commit(owner, outbox);
            }
        }
        // The bound, or the end of the room, may be within the orders of one user.
        if let Some(Mutation::QueueNoted(noted)) = self.facts.last() {
            let owner = UserId::of_object(noted.order.0);
            self.commit(owner, outbox);
        }
    }
}
