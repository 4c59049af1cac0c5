//! Prints: trades of the venue, from the feed to the resting orders of one shard, and with them what happens at levels
//! at which orders wait in a queue.
//!
//! The feed passes only prints of watched markets, those with a resting order
//! ([`Books::is_watched`](crate::book::Books::is_watched)), and changes of watched levels, in order of arrival. A lane is
//! bounded: what does not fit is counted and lost. An order that a lost print would have filled stays unchanged; the
//! places of orders in their queues are then unknown until the next whole book.

use crate::amount::{Price, Qty};
use crate::book::LevelNews;
use crate::id::InstrumentId;
use crate::order::Side;
use crate::realism::FillModel;
use crate::time::Timestamp;
use crossbeam::queue::SegQueue;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};

/// Maximum count of prints and other events in one lane.
pub const PRINTS_WAITING_MAX: usize = 65_536;

/// A trade at the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// The traded token.
    pub instrument: InstrumentId,
    pub price: Price,
    pub size: Qty,
    /// The taker's side, as the venue states it: a trade without a stated side is not a print.
    pub taker: Side,
    /// Server time of its arrival; for a recording, the time at which the feed read it. Orders placed later never meet
    /// it.
    pub taken_at: Timestamp,
    /// Venue time of its arrival.
    pub at: Timestamp,
}

/// A trade whose taker's side the venue does not state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidelessPrint {
    pub instrument: InstrumentId,
    pub price: Price,
    pub size: Qty,
    /// Venue time of its arrival.
    pub at: Timestamp,
}

/// An event at the venue for the resting orders of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Print(Print),
    Sideless(SidelessPrint),
    Level(LevelNews),
    /// A trade of an order that a calibration compares: a recording has it only because the order was there. It takes
    /// nothing from what is before an order in its queue and explains no smaller level, but it may fill.
    Own(Print),
}

/// What filled an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// The book at its placement, or its first live book.
    Walk,
    /// The book reached its limit while it rested.
    #[default]
    Crossed,
    /// A trade beyond its limit.
    Through,
    /// A trade at its limit, past what was before it.
    Print,
}

/// The lane of events into one shard: the feed pushes, the shard pops.
#[derive(Debug, Default)]
pub struct PrintLane {
    queue: SegQueue<Event>,
    waiting: AtomicUsize,
    lost: AtomicU64,
    events_lost: AtomicU64,
    watched: AtomicUsize,
    fills: [[AtomicU64; Evidence::ALL.len()]; FillModel::ALL.len()],
}

impl Evidence {
    pub const ALL: [Evidence; 4] = [Evidence::Walk, Evidence::Crossed, Evidence::Through, Evidence::Print];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::Walk => "walk",
            Evidence::Crossed => "crossed",
            Evidence::Through => "through",
            Evidence::Print => "print",
        }
    }
}

impl From<Print> for Event {
    fn from(print: Print) -> Event {
        Event::Print(print)
    }
}

impl Print {
    /// The same trade for the complement: a seller at p bought the complement at 1 − p.
    pub fn mirrored(self) -> Print {
        let taker = self.taker.opposite();
        Print { instrument: self.instrument.complement(), price: self.price.complement(), taker, ..self }
    }

    /// The worst limit of an order on `side` of this token that the trade crossed by `step` or more; `None`: there is
    /// none, or the taker was on that side.
    pub fn through(&self, side: Side, step: u16) -> Option<Price> {
        if self.taker == side {
            return None;
        }
        match side {
            Side::Buy => self.price.0.checked_add(step).filter(|limit| *limit < Price::ONE.0).map(Price),
            Side::Sell => self.price.0.checked_sub(step).filter(|limit| *limit > 0).map(Price),
        }
    }
}

impl PrintLane {
    /// Appends a print or another event. False: the lane is full, and the event is lost.
    pub fn push(&self, event: impl Into<Event>) -> bool {
        let event = event.into();
        // One producer: nothing is pushed between the check and the push.
        if self.waiting.load(Relaxed) >= PRINTS_WAITING_MAX {
            self.lose_one(event);
            return false;
        }
        self.queue.push(event);
        self.waiting.fetch_add(1, Ordering::Release);
        true
    }

    /// Takes the oldest event.
    pub fn pop(&self) -> Option<Event> {
        if self.is_empty() {
            return None;
        }
        let event = self.queue.pop()?;
        self.waiting.fetch_sub(1, Relaxed);
        Some(event)
    }

    /// Events in the lane.
    pub fn len(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Count of prints that met no order because the lane or the log was full.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Counts prints that are dropped.
    pub fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Relaxed);
    }

    /// Counts an event that is dropped.
    pub fn lose_one(&self, event: Event) {
        match event {
            Event::Print(_) | Event::Own(_) => self.lose(1),
            Event::Sideless(_) | Event::Level(_) => {
                self.events_lost.fetch_add(1, Relaxed);
            }
        }
    }

    /// Count of other events that were dropped.
    pub fn events_lost(&self) -> u64 {
        self.events_lost.load(Relaxed)
    }

    /// Levels that the shard watches, as it reported last.
    pub fn watched_levels(&self) -> usize {
        self.watched.load(Relaxed)
    }

    /// Reports how many levels the shard watches.
    pub(crate) fn watch(&self, levels: usize) {
        self.watched.store(levels, Relaxed);
    }

    /// Count of fills in the shard of orders of a model, by what filled them.
    pub fn fills(&self, model: FillModel, evidence: Evidence) -> u64 {
        self.fills[model as usize][evidence as usize].load(Relaxed)
    }

    /// Counts a fill.
    pub(crate) fn note_fill(&self, model: FillModel, evidence: Evidence) {
        self.fills[model as usize][evidence as usize].fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(price: u16, taker: Side) -> Print {
        let at = Timestamp(0);
        Print { instrument: InstrumentId(6), price: Price(price), size: Qty(1), taker, taken_at: at, at }
    }

    #[test]
    fn a_print_goes_through_limits_a_tick_away_on_the_side_that_it_traded_with() {
        use Side::{Buy, Sell};
        for (price, taker, tick, buys, sells) in [
            (4_000, Sell, 100, Some(4_100), None),
            (4_000, Buy, 100, None, Some(3_900)),
            (4_000, Sell, 10, Some(4_010), None),
            (9_900, Sell, 100, None, None),
            (100, Buy, 100, None, None),
            (9_999, Sell, 1, None, None),
            (1, Buy, 1, None, None),
        ] {
            let print = print(price, taker);
            let through = [Buy, Sell].map(|side| print.through(side, tick).map(|limit| limit.0));
            assert_eq!(through, [buys, sells], "{print:?}");
            assert_eq!(print.mirrored().mirrored(), print);
            // A limit of the complement is 1 minus the price.
            let mirrored = [Sell, Buy].map(|side| print.mirrored().through(side, tick).map(|at| at.complement().0));
            assert_eq!(mirrored, [buys, sells], "{print:?}");
        }
    }

    #[test]
    fn a_full_lane_loses_and_counts() {
        let lane = PrintLane::default();
        let pushed = (0..PRINTS_WAITING_MAX + 3).filter(|_| lane.push(print(4_000, Side::Sell))).count();
        assert_eq!((pushed, lane.lost(), lane.is_empty()), (PRINTS_WAITING_MAX, 3, false));
        assert!(lane.pop().is_some() && lane.push(print(4_000, Side::Sell)) && !lane.push(print(4_000, Side::Sell)));
        assert_eq!((std::iter::from_fn(|| lane.pop()).count(), lane.is_empty()), (PRINTS_WAITING_MAX, true));
        assert_eq!((lane.lost(), lane.events_lost()), (4, 0));
        lane.lose_one(Event::Level(LevelNews::Gap { instrument: InstrumentId(6), version: 2 }));
        assert_eq!((lane.lost(), lane.events_lost(), lane.len()), (4, 1, 0));
        println!("{} prints", PRINTS_WAITING_MAX + 5);
    }
}
