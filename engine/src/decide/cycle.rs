//! One resting order against the present book (engine/docs/execution.md §7): maker at its own limit, or, on the first
//! live book of an order that rested without one, taker at walked prices (§10). Also against a print that crossed its
//! limit: maker at its own limit. `shard/cycle.rs` and `shard/prints.rs` choose the orders.

use crate::amount::{Cash, Price, Qty, exact_notional, notional_half_up};
use crate::decide::cancel::closed;
use crate::decide::fill::{Booking, BySchedule, Execution, filled};
use crate::decide::numbers::Numbers;
use crate::decide::queued::queue_noted;
use crate::decide::take::{Desk, Ground, Taking, Walked, Want};
use crate::fact;
use crate::fee::Tariff;
use crate::mutation::Mutation;
use crate::order::reservation::{Reservation, as_maker, reservation};
use crate::order::{CloseReason, Liquidity, Order, OrderType, PriceSource, Side};
use crate::realism::{FillModel, FillTerms};
use crate::reject::Reject;
use crate::rules::Fees;
use crate::user::User;

/// The result of an order in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// No change.
    Untouched,
    /// It met its first live book, took nothing, and is a maker from now on.
    Judged,
    Filled,
    /// Its reservation did not cover its cost.
    Closed,
}

/// Decides what an open order takes from the last copied book of the desk.
pub fn meet(
    ground: &Ground<'_>,
    user: &User,
    order: &Order,
    desk: &mut Desk,
    facts: &mut Vec<Mutation>,
) -> Result<Met, Reject> {
    let (terms, rest) = (&order.terms, order.unfilled());
    let taker = order.awaiting_book && !terms.post_only;
    // One reading: the market may state other fees meanwhile.
    let fees = ground.fees(terms.instrument, terms.fee_rate);
    let fill = ground.rules.fill_of(terms);
    let Some(bound) = bound(ground, order, taker, fill.model) else { return Ok(Met::Untouched) };
    let taking = Taking {
        instrument: terms.instrument,
        side: terms.side,
        want: Want::Shares(rest),
        bound,
        tariff: match taker {
            true => fees.taker,
            // One match at the own limit: its fee is not that of the levels.
            false if ground.rules.flags.maker_fill_at_limit => Tariff::FREE,
            false => fees.maker,
        },
        market: terms.order_type == OrderType::Market,
        beyond_depth: false,
        depth_share: fill.depth_share,
    };
    let walked = desk.take(ground, user.id, &taking)?;
    if walked.filled.is_zero() {
        desk.leave(walked);
        if !order.awaiting_book {
            return Ok(Met::Untouched);
        }
        let set_aside = resting(order, rest, &fees);
        if set_aside.cash > free(user, order) {
            // The fees have risen since it was accepted.
            facts.push(closed(order.id, CloseReason::AutoCancelled, ground.now));
            return Ok(Met::Closed);
        }
        let queued = queued(ground, order, fill)?;
        facts.push(rested(ground, order, set_aside));
        facts.extend(queued);
        return Ok(Met::Judged);
    }
    let after = resting(order, rest - walked.filled, &fees);
    let queued = if order.awaiting_book && walked.filled < rest { queued(ground, order, fill) } else { Ok(None) };
    let queued = match queued {
        Ok(queued) => queued,
        Err(reject) => {
            desk.leave(walked);
            return Err(reject);
        }
    };
    let execution =
        if taker { as_taker(ground, order, walked, &fees) } else { as_resting(ground, order, walked, &fees) };
    let met = book(ground, user, order, execution, after, facts);
    if met == Met::Filled {
        facts.extend(queued);
    }
    Ok(met)
}

/// The worst price at which an order fills from the book: its limit, or with the model `through`, once it is a maker,
/// one tick beyond. `None`: there is no such price.
fn bound(ground: &Ground<'_>, order: &Order, taker: bool, model: FillModel) -> Option<Price> {
    let (side, limit) = (order.terms.side, order.terms.limit);
    if taker || model != FillModel::Through {
        return Some(limit);
    }
    let tick = ground.catalog.market(order.terms.instrument.market())?.tick().0;
    match side {
        Side::Buy => limit.0.checked_sub(tick).filter(|price| *price > 0).map(Price),
        Side::Sell => limit.0.checked_add(tick).filter(|price| *price < Price::ONE.0).map(Price),
    }
}

/// The place of an order that has met its first live book.
fn queued(ground: &Ground<'_>, order: &Order, fill: FillTerms) -> Result<Option<Mutation>, Reject> {
    queue_noted(ground, order.id, (order.terms.instrument, order.terms.side, order.terms.limit), fill)
}

/// Decides what an open order takes from a print that crossed its limit, of which `left` remains for its user. It does
/// not use the book, so it depletes nothing.
pub fn meet_print(ground: &Ground<'_>, user: &User, order: &Order, left: Qty, facts: &mut Vec<Mutation>) -> (Met, Qty) {
    let terms = &order.terms;
    let qty = order.unfilled().min(left).floored_to_order_step();
    if qty.is_zero() {
        return (Met::Untouched, Qty::ZERO);
    }
    let fees = ground.fees(terms.instrument, terms.fee_rate);
    let after = resting(order, order.unfilled() - qty, &fees);
    let execution = Execution {
        qty,
        notional: at_limit(order, qty),
        fee: fees.maker.fee(qty, terms.limit),
        fee_rate: fees.maker.bps(),
        by_schedule: BySchedule::of_maker(&fees, ground.rules.fees.accrues_rebates, qty, terms.limit),
        liquidity: Liquidity::Maker,
        source: PriceSource::MatchingEngine,
        quote_age_ms: ground.quote(terms.instrument).age_ms(),
        levels: Vec::new(),
    };
    match book(ground, user, order, execution, after, facts) {
        Met::Filled => (Met::Filled, qty),
        met => (met, Qty::ZERO),
    }
}

/// Posts a fill if the reservation covers it.
fn book(
    ground: &Ground<'_>,
    user: &User,
    order: &Order,
    execution: Execution,
    after: Reservation,
    facts: &mut Vec<Mutation>,
) -> Met {
    let (terms, left) = (&order.terms, order.unfilled() - execution.qty);
    if !covered(user, order, &execution, after) {
        facts.push(closed(order.id, CloseReason::AutoCancelled, ground.now));
        return Met::Closed;
    }
    let booking =
        Booking { order: order.id, wallet: terms.wallet, instrument: terms.instrument, side: terms.side, rest: after };
    let by_schedule = execution.by_schedule;
    let fill = Numbers::of(user).and_then(|mut numbers| filled(ground, user, booking, execution, &mut numbers));
    let Some((fill, trade)) = fill else {
        // Ids or amounts would exceed their range: the order ends, as it can never be filled.
        facts.push(closed(order.id, CloseReason::ExecutionFailed, ground.now));
        return Met::Closed;
    };
    facts.push(fill);
    by_schedule.note(trade, terms.wallet, ground, facts);
    if order.awaiting_book && !left.is_zero() {
        facts.push(rested(ground, order, after));
    }
    Met::Filled
}

/// Whether the order's reservation and free cash cover the cost of the fill and the new reservation.
fn covered(user: &User, order: &Order, execution: &Execution, after: Reservation) -> bool {
    execution.required(order.terms.side, after) <= free(user, order)
}

/// The free cash of the order's wallet, with its own reservation.
fn free(user: &User, order: &Order) -> Cash {
    let free = user.wallet(order.terms.wallet).map_or(Cash::ZERO, |wallet| wallet.available());
    free + order.reserved_cash()
}

/// The reservation of the unfilled `rest` of a resting order.
fn resting(order: &Order, rest: Qty, fees: &Fees) -> Reservation {
    reservation(order.terms.side, order.terms.limit, rest, fees.maker)
}

fn as_taker(ground: &Ground<'_>, order: &Order, walked: Walked, fees: &Fees) -> Execution {
    Execution {
        qty: walked.filled,
        notional: walked.notional,
        fee: walked.fee,
        fee_rate: fees.taker.bps(),
        by_schedule: BySchedule::of_taker(fees),
        liquidity: Liquidity::Taker,
        source: PriceSource::BookWalk,
        quote_age_ms: ground.quote(order.terms.instrument).age_ms(),
        levels: walked.taken,
    }
}

/// At the own limit: a BUY costs exactly the decrease of its reservation, a SELL brings limit × shares half up. With
/// `maker_fill_at_limit` off at the walked price; the difference to the reservation is released. A maker that pays is
/// charged at the same price.
fn as_resting(ground: &Ground<'_>, order: &Order, walked: Walked, fees: &Fees) -> Execution {
    let (terms, at_own_limit) = (&order.terms, ground.rules.flags.maker_fill_at_limit);
    let at_limit = at_limit(order, walked.filled);
    let notional = match (at_own_limit, terms.side) {
        (true, _) => at_limit,
        (false, Side::Buy) => walked.notional.min(at_limit),
        (false, Side::Sell) => walked.notional,
    };
    Execution {
        qty: walked.filled,
        notional,
        fee: if at_own_limit { fees.maker.fee(walked.filled, terms.limit) } else { walked.fee },
        fee_rate: fees.maker.bps(),
        by_schedule: BySchedule::of_maker(fees, ground.rules.fees.accrues_rebates, walked.filled, terms.limit),
        liquidity: Liquidity::Maker,
        source: PriceSource::MatchingEngine,
        quote_age_ms: ground.quote(terms.instrument).age_ms(),
        levels: walked.taken,
    }
}

/// Cost or proceeds of a fill at the own limit: for a BUY the decrease of its reservation without fees, for a SELL
/// limit × shares half up.
fn at_limit(order: &Order, qty: Qty) -> Cash {
    match order.terms.side {
        Side::Buy => {
            let (terms, rest) = (&order.terms, order.unfilled());
            as_maker(terms, rest).cash - as_maker(terms, rest - qty).cash
        }
        Side::Sell => notional_half_up(exact_notional(order.terms.limit, qty)),
    }
}

fn rested(ground: &Ground<'_>, order: &Order, set_aside: Reservation) -> Mutation {
    Mutation::OrderRested(fact::OrderRested {
        order: order.id,
        reserved_cash: set_aside.cash,
        reserved_qty: set_aside.qty,
        awaiting_book: false,
        held: false,
        at: ground.now,
    })
}
