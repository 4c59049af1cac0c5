//! matchcore: one book on one thread; commands in, outcomes out. It has no users and stores nothing.

use super::BookPeer;
use crate::mixed::{Matched, Operation};
use crate::report::timed;
use matchcore::{
    CancelCmd, Command, CommandKind, CommandMeta, CommandOutcome, CommandReport, LimitOrder, MarketOrder, NewOrder,
    OrderBook, OrderFlags, OrderId, OrderKind, Price, Quantity, QuantityPolicy, SequenceNumber, Side, SubmitCmd,
    TimeInForce, Timestamp,
};
use std::hint::black_box;

pub const BOOK: BookPeer = BookPeer { name: "matchcore", run };

fn side(is_bid: bool) -> Side {
    if is_bid { Side::Buy } else { Side::Sell }
}

fn command(index: usize, operation: Operation) -> Command {
    let submit = |order| CommandKind::Submit(SubmitCmd { order });
    let kind = match operation {
        Operation::Rest { is_bid, tick, shares } => {
            let quantity = QuantityPolicy::Standard { quantity: Quantity(shares) };
            let flags = OrderFlags::new(side(is_bid), false, TimeInForce::Gtc);
            submit(NewOrder::Limit(LimitOrder::new(Price(tick.into()), quantity, flags)))
        }
        // An order's id is the number of the command that made it.
        Operation::Cancel { of } => {
            CommandKind::Cancel(CancelCmd { order_id: OrderId(of as u64), order_kind: OrderKind::Limit })
        }
        Operation::Take { is_buy, shares } => {
            submit(NewOrder::Market(MarketOrder::new(Quantity(shares), side(is_buy), false)))
        }
    };
    let number = index as u64;
    Command { meta: CommandMeta { sequence_number: SequenceNumber(number), timestamp: Timestamp(number) }, kind }
}

fn run(operations: &[Operation]) -> (f64, Matched) {
    let commands: Vec<_> = operations.iter().enumerate().map(|(index, operation)| command(index, *operation)).collect();
    let mut book = OrderBook::new("mixed");
    timed(|| {
        let mut matched = Matched::default();
        for command in &commands {
            match black_box(book.execute(black_box(command))) {
                CommandOutcome::Applied(CommandReport::Submit(effects)) => {
                    if let Some(result) = effects.target_order().match_result() {
                        matched.fills += result.trades().len() as u64;
                        matched.shares += result.executed_quantity().0;
                    }
                }
                CommandOutcome::Applied(_) => matched.cancelled += 1,
                // Of an order that does not exist any more.
                CommandOutcome::Rejected(_) => {}
            }
        }
        matched
    })
}
