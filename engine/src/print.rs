//! Prints: trades of the venue on their way from the feed to the resting orders of one shard.
//!
//! The feed hands over only prints of watched markets, those in which some order rests
//! ([`Books::is_watched`](crate::book::Books::is_watched)), in the order in which they came. A lane is bounded: what does
//! not fit is counted and lost, and an order that it would have filled stays as it is.

use crate::amount::{Price, Qty};
use crate::id::InstrumentId;
use crate::order::Side;
use crate::time::Timestamp;
use crossbeam::queue::SegQueue;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};

/// Prints that wait in one lane at most.
pub const PRINTS_WAITING_MAX: usize = 65_536;

/// A trade at the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// The token that was traded.
    pub instrument: InstrumentId,
    pub price: Price,
    pub size: Qty,
    /// What the taker did, as the venue states it: a trade whose side is not stated is no print.
    pub taker: Side,
    /// Server time at which it came; of a recording, at which the feed took it. Orders placed later never meet it.
    pub taken_at: Timestamp,
}

/// The way of prints into one shard: the feed pushes, the shard pops.
#[derive(Debug, Default)]
pub struct PrintLane {
    queue: SegQueue<Print>,
    waiting: AtomicUsize,
    lost: AtomicU64,
}

impl Print {
    /// The same trade in the words of the complement: a seller at p bought the complement at 1 − p.
    pub fn mirrored(self) -> Print {
        let taker = self.taker.opposite();
        Print { instrument: self.instrument.complement(), price: self.price.complement(), taker, ..self }
    }

    /// The worst limit of an order on `side` of this token that the trade went through by a tick or more; `None`: there is
    /// none, or the taker was on that side itself.
    pub fn through(&self, side: Side, tick: u16) -> Option<Price> {
        if self.taker == side {
            return None;
        }
        match side {
            Side::Buy => self.price.0.checked_add(tick).filter(|limit| *limit < Price::ONE.0).map(Price),
            Side::Sell => self.price.0.checked_sub(tick).filter(|limit| *limit > 0).map(Price),
        }
    }
}

impl PrintLane {
    /// Hands a print over. False: the lane is full, and the print is lost.
    pub fn push(&self, print: Print) -> bool {
        // One producer: nothing is pushed between the look and the push.
        if self.waiting.load(Relaxed) >= PRINTS_WAITING_MAX {
            self.lose(1);
            return false;
        }
        self.queue.push(print);
        self.waiting.fetch_add(1, Ordering::Release);
        true
    }

    /// Takes the oldest print.
    pub fn pop(&self) -> Option<Print> {
        if self.is_empty() {
            return None;
        }
        let print = self.queue.pop()?;
        self.waiting.fetch_sub(1, Relaxed);
        Some(print)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Prints that met no order, since the lane or the log was full.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Counts prints that are given up.
    pub fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(price: u16, taker: Side) -> Print {
        Print { instrument: InstrumentId(6), price: Price(price), size: Qty(1), taker, taken_at: Timestamp(0) }
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
            // A limit of the complement means the rest of a dollar.
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
        println!("{} prints", PRINTS_WAITING_MAX + 5);
    }
}
