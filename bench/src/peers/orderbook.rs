//! orderbook-rs: one book that several threads may change; here one does. It has no users and stores nothing.

use super::BookPeer;
use crate::mixed::{Matched, Operation};
use crate::report::timed;
use orderbook_rs::prelude::{Id, OrderBook, Side, TimeInForce};
use std::hint::black_box;

pub const BOOK: BookPeer = BookPeer { name: "orderbook-rs", run };

fn side(is_bid: bool) -> Side {
    if is_bid { Side::Buy } else { Side::Sell }
}

fn id(index: usize) -> Id {
    Id::from_u64(index as u64 + 1)
}

fn run(operations: &[Operation]) -> (f64, Matched) {
    let book = OrderBook::<()>::new("mixed");
    timed(|| {
        let mut matched = Matched::default();
        for (index, operation) in operations.iter().enumerate() {
            match *black_box(operation) {
                Operation::Rest { is_bid, tick, shares } => {
                    let rested =
                        book.add_limit_order(id(index), tick.into(), shares, side(is_bid), TimeInForce::Gtc, None);
                    drop(black_box(rested.expect("every order rests")));
                }
                Operation::Cancel { of } => {
                    let cancelled = book.cancel_order(id(of)).expect("a book that is open");
                    matched.cancelled += u64::from(black_box(cancelled).is_some());
                }
                Operation::Take { is_buy, shares } => {
                    let taken = book.submit_market_order(id(index), shares, side(is_buy)).expect("there is a book");
                    matched.fills += taken.trades().len() as u64;
                    matched.shares += taken.executed_quantity().expect("no overflow").as_u64();
                }
            }
        }
        matched
    })
}
