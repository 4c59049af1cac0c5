//! Prints: trades of the venue, from the feed to the resting orders of one shard.
//!
//! The feed passes only prints of watched markets, those with a resting order
//! ([`Books::is_watched`](crate::book::Books::is_watched)), in order of arrival. A lane is bounded: prints that do not
//! fit are counted and lost, and an order that one would have filled stays unchanged.

use crate::amount::{Price, Qty};
use crate::id::InstrumentId;
use crate::order::Side;
use crate::time::Timestamp;
use crossbeam::queue::SegQueue;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};

/// Maximum count of prints in one lane.
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
}

/// The lane of prints into one shard: the feed pushes, the shard pops.
#[derive(Debug, Default)]
pub struct PrintLane {
    queue: SegQueue<Print>,
    waiting: AtomicUsize,
    lost: AtomicU64,
}

impl Print {
    /// The same trade for the complement: a seller at p bought the complement at 1 − p.
    pub fn mirrored(self) -> Print {
        let taker = self.taker.opposite();
        Print { instrument: self.instrument.complement(), price: self.price.complement(), taker, ..self }
    }

    /// The worst limit of an order on `side` of this token that the trade crossed by a tick or more; `None`: there is
    /// none, or the taker was on that side.
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
    /// Appends a print. False: the lane is full, and the print is lost.
    pub fn push(&self, print: Print) -> bool {
        // One producer: nothing is pushed between the check and the push.
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

    /// Count of prints that met no order because the lane or the log was full.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Counts prints that are dropped.
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
        println!("{} prints", PRINTS_WAITING_MAX + 5);
    }
}
