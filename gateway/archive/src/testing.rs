//! Rows and chance for tests.

use crate::row::{Condition, Event, Row};
use engine::amount::{Price, Qty, TickSize};
use engine::book::BookSide;
use engine::time::Timestamp;
use std::sync::Arc;

/// The start of the hour of the tests: 2026-09-30T17.
pub(crate) const HOUR: u32 = 497_465;

/// A small generator of numbers.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn seeded(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.draw() >> 16) % bound
    }

    pub(crate) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

pub(crate) fn condition(number: u64) -> Condition {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    Condition(id)
}

/// The id of a token: some are long, some have leading zeros.
pub(crate) fn token(market: u64, outcome: u64) -> Arc<str> {
    let number = market * 2 + outcome;
    match number % 3 {
        0 => format!("{number}"),
        1 => format!("00{number}"),
        _ => format!("{}{number:07}", "8".repeat(70)),
    }
    .into()
}

fn levels(chance: &mut Chance, count: u64) -> Vec<(Price, Qty)> {
    (0..count).map(|_| (price(chance), size(chance))).collect()
}

pub(crate) fn price(chance: &mut Chance) -> Price {
    Price(1 + chance.below(9_999) as u16)
}

pub(crate) fn size(chance: &mut Chance) -> Qty {
    match chance.below(6) {
        0 => Qty(0),
        1 => crate::row::SIZE_MAX,
        _ => Qty(chance.below(1_000_000_000)),
    }
}

/// Any row of the hour: `markets` with two tokens each, received in `millis` different milliseconds.
pub(crate) fn row(chance: &mut Chance, markets: u64, millis: u64) -> Row {
    let market = chance.below(markets);
    let received = Timestamp::of_hour(HOUR).plus(chance.below(millis) * 1_000);
    let source = Timestamp::from_millis(received.millis() + 40 - chance.below(100));
    let event = match chance.below(8) {
        0 => {
            let (bids, asks) = (chance.below(6), chance.below(6));
            Event::Book { bids: levels(chance, bids), asks: levels(chance, asks) }
        }
        1 => Event::LastTradePrice {
            price: price(chance),
            size: size(chance),
            taker_buys: chance.one_in(2),
            fee_rate_bps: chance.one_in(2).then(|| chance.below(65_536) as u16),
            transaction_hash: chance.one_in(2).then(|| format!("0x{:064x}", chance.draw()).into()),
        },
        2 => Event::TickSizeChange {
            old: chance.one_in(2).then_some(TickSize(100)),
            new: TickSize(1 + chance.below(10_000) as u16),
        },
        _ => Event::PriceChange {
            price: price(chance),
            size: size(chance),
            side: if chance.one_in(2) { BookSide::Bid } else { BookSide::Ask },
            best_bid: chance.one_in(2).then(|| price(chance)),
            best_ask: chance.one_in(2).then(|| price(chance)),
        },
    };
    Row { received, source, market: condition(market), token: token(market, chance.below(2)), event }
}
