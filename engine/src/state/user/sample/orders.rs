//! Orders of a sampled history: placed, filled, resting, closed.

use super::{Dice, ModelOrder, ModelPosition, ModelUser};
use crate::amount::{Bps, Cash, Price, Qty, exact_notional, notional_half_up, reservation_rounded_up, share_half_up};
use crate::fact;
use crate::id::{InstrumentId, OrderId, PositionId, TradeId, UserId};
use crate::mutation::Mutation;
use crate::order::{CloseReason, Liquidity, OrderTerms, PriceSource, Quality, Side, Taken, TimeInForce};
use crate::realism::{FillModel, FillTerms};
use crate::time::{HOUR, Timestamp};

/// A new order: killed, filled, partly filled, resting, or several of these.
pub(super) fn place(
    owner: UserId,
    user: &mut ModelUser,
    dice: &mut Dice,
    instrument: InstrumentId,
    at: Timestamp,
) -> Vec<Mutation> {
    let wallet = dice.pick(&user.active());
    let side = dice.pick(&[Side::Buy, Side::Buy, Side::Sell]);
    let limit = Price(100 * (1 + dice.below(99)) as u16);
    let mut qty = 100 * (1 + dice.below(200_000));
    if side == Side::Sell {
        let held = user.held(wallet, instrument).map_or(0, |held| user.positions[&held].qty);
        let free = held - user.reserved_qty(wallet, instrument);
        qty = qty.min(free);
        if dice.chance(20) {
            qty = free;
        }
    } else if reservation_rounded_up(limit, Qty(2 * qty)).0 > user.available(wallet) {
        return Vec::new();
    }
    if qty == 0 {
        return Vec::new();
    }
    let time_in_force = dice.pick(&[
        TimeInForce::Gtc,
        TimeInForce::Gtc,
        TimeInForce::Gtd,
        TimeInForce::Fok,
        TimeInForce::Fak,
        TimeInForce::Ioc,
    ]);
    let immediate = time_in_force.immediate();
    let client_order_id = dice.maybe(|dice| format!("{}-{}", dice.text(), user.orders.len()));
    let order = OrderId(user.object(owner));
    let terms = OrderTerms {
        time_in_force,
        expiration: (time_in_force == TimeInForce::Gtd).then(|| at.plus(HOUR)),
        post_only: dice.chance(10),
        client_order_id: client_order_id.clone(),
        marketable: dice.chance(50),
        quality: Quality {
            displayed: dice.maybe(|dice| Cash(dice.below(1_000_000) as i64)),
            quote_age_ms: dice.maybe(|dice| dice.next() as u32 / 2),
            spread_bps: dice.maybe(|dice| dice.below(20_000) as u32),
            slippage_bps: dice.maybe(|dice| dice.below(20_000) as u32),
            impact_bps: dice.maybe(|dice| dice.below(20_000) as u32),
            book_walk_levels: dice.maybe(|dice| dice.below(99) as u16),
            fillable: dice.chance(10).then(|| Qty(dice.below(1_000_000))),
            high_slippage: dice.chance(20),
            stale_quote: dice.chance(20),
        },
        rounded_from: dice.chance(5).then(|| "1.00001".to_owned()),
        order_hash: dice.chance(10).then(|| std::array::from_fn(|at| (order.0 >> (at % 8 * 8)) as u8)),
        fill: order.0.is_multiple_of(5).then(|| FillTerms {
            model: FillModel::ALL[(order.0 / 5) as usize % FillModel::ALL.len()],
            ..FillTerms::KIND
        }),
        ..OrderTerms::limit(wallet, user.keys[0], instrument, side, limit, Qty(qty))
    };
    let mut known =
        ModelOrder { wallet, instrument, side, limit, qty, filled: 0, rests: false, awaiting: false, reserved: 0 };
    let part = match dice.below(3) {
        0 => 0,
        1 => qty,
        _ => dice.below(qty + 1),
    };
    let part = if time_in_force == TimeInForce::Fok && part < qty { 0 } else { part };
    user.facts += 1;
    let mut facts =
        vec![Mutation::OrderPlaced(fact::OrderPlaced { order, terms, counted: part > 0 || !immediate, at })];
    user.orders.insert(order, known.clone());
    if part > 0 {
        facts.push(fill(owner, user, dice, order, part, Liquidity::Taker, at));
        known = user.orders[&order].clone();
    }
    if known.filled < qty {
        if immediate {
            let reason = match (time_in_force, part) {
                (TimeInForce::Fok, _) => CloseReason::FokNotFilled,
                (_, 0) => CloseReason::FakNoFill,
                _ => CloseReason::FakRest,
            };
            user.facts += 1;
            facts.push(Mutation::OrderClosed(fact::OrderClosed { order, reason, at }));
        } else {
            known.rests = true;
            known.awaiting = part == 0 && dice.chance(20);
            facts.push(rest(order, &mut known, dice, at));
            user.orders.insert(order, known);
        }
    }
    if let Some(id) = client_order_id.or_else(|| dice.chance(10).then(|| format!("implicit {order}"))) {
        user.remembered.push((id.clone(), order));
        facts.push(Mutation::RequestRemembered(fact::RequestRemembered {
            order,
            client_order_id: id,
            digest: [dice.next() as u8; 32],
        }));
    }
    facts
}

/// The reservation of the rest; an order that awaits its book also reserves its fee.
fn rest(order: OrderId, known: &mut ModelOrder, dice: &mut Dice, at: Timestamp) -> Mutation {
    let unfilled = Qty(known.qty - known.filled);
    known.reserved = match known.side {
        Side::Buy => {
            let fee = if known.awaiting { notional_half_up(exact_notional(known.limit, unfilled)).0 / 20 } else { 0 };
            (reservation_rounded_up(known.limit, unfilled).0 + fee) as u64
        }
        Side::Sell => unfilled.0,
    };
    Mutation::OrderRested(fact::OrderRested {
        order,
        reserved_cash: Cash(if known.side == Side::Buy { known.reserved as i64 } else { 0 }),
        reserved_qty: Qty(if known.side == Side::Sell { known.reserved } else { 0 }),
        awaiting_book: known.awaiting,
        held: dice.chance(20),
        at,
    })
}

/// One fill of `qty`, inside the limit of its order.
fn fill(
    owner: UserId,
    user: &mut ModelUser,
    dice: &mut Dice,
    order: OrderId,
    qty: u64,
    liquidity: Liquidity,
    at: Timestamp,
) -> Mutation {
    let mut known = user.orders[&order].clone();
    let maker = liquidity == Liquidity::Maker;
    known.filled += qty;
    let unfilled = Qty(known.qty - known.filled);
    let reserved = match (known.rests, known.side) {
        (false, _) => 0,
        (true, Side::Buy) => reservation_rounded_up(known.limit, unfilled).0 as u64,
        (true, Side::Sell) => unfilled.0,
    };
    let notional = match (maker, known.side) {
        // A BUY maker fill costs the decrease of its reservation (engine/docs/execution.md §6).
        (true, Side::Buy) if !known.awaiting => Cash((known.reserved - reserved) as i64),
        _ => notional_half_up(exact_notional(known.limit, Qty(qty))),
    };
    let fee = if maker { Cash::ZERO } else { Cash(notional.0 / 20 / 10 * 10) };
    let trade = TradeId(user.object(owner));
    let held = user.held(known.wallet, known.instrument);
    let position = held.unwrap_or_else(|| PositionId(user.object(owner)));
    let entry = user.positions.entry(position).or_insert(ModelPosition {
        wallet: known.wallet,
        instrument: known.instrument,
        qty: 0,
        cost: 0,
        realized: 0,
        open: true,
    });
    let mut cost_out = Cash::ZERO;
    let cash = user.cash.get_mut(&known.wallet).expect("an order has a wallet");
    match known.side {
        Side::Buy => {
            *cash -= notional.0 + fee.0;
            entry.qty += qty;
            entry.cost += notional.0;
        }
        Side::Sell => {
            *cash += notional.0 - fee.0;
            cost_out = share_half_up(Cash(entry.cost), Qty(qty), Qty(entry.qty));
            entry.qty -= qty;
            entry.cost -= cost_out.0;
            entry.realized += notional.0 - cost_out.0;
            entry.open = entry.qty > 0;
        }
    }
    *user.fees.get_mut(&known.wallet).expect("as the cash") += fee.0;
    known.reserved = reserved;
    known.rests &= !unfilled.is_zero();
    user.fills += 1;
    user.facts += 1;
    let (side, limit) = (known.side, known.limit);
    user.orders.insert(order, known);
    Mutation::OrderFilled(fact::OrderFilled {
        order,
        trade,
        position,
        qty: Qty(qty),
        notional,
        fee,
        fee_rate: Bps(if maker { 0 } else { 500 }),
        liquidity,
        source: if maker { PriceSource::MatchingEngine } else { PriceSource::BookWalk },
        quote_age_ms: dice.maybe(|dice| dice.below(1_000) as u32),
        cost_out,
        reserved_cash: Cash(if side == Side::Buy { reserved as i64 } else { 0 }),
        reserved_qty: Qty(if side == Side::Sell { reserved } else { 0 }),
        levels: vec![Taken { price: limit, qty: Qty(qty), fee, mirrored: dice.chance(10) }],
        at,
        venue_at: dice.chance(30).then_some(Timestamp(at.0 / 2)),
    })
}

fn open_order(user: &ModelUser, dice: &mut Dice) -> Option<OrderId> {
    let open: Vec<OrderId> = user.orders.iter().filter(|(_, order)| order.rests).map(|(id, _)| *id).collect();
    (!open.is_empty()).then(|| dice.pick(&open))
}

pub(super) fn fill_resting(owner: UserId, user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let Some(order) = open_order(user, dice) else { return Vec::new() };
    let unfilled = user.orders[&order].qty - user.orders[&order].filled;
    let qty = if dice.chance(50) { unfilled } else { 1 + dice.below(unfilled) };
    vec![fill(owner, user, dice, order, qty, Liquidity::Maker, at)]
}

pub(super) fn close(user: &mut ModelUser, order: OrderId, reason: CloseReason, at: Timestamp) -> Mutation {
    let known = user.orders.get_mut(&order).expect("it is open");
    (known.rests, known.reserved) = (false, 0);
    user.facts += 1;
    Mutation::OrderClosed(fact::OrderClosed { order, reason, at })
}

pub(super) fn close_some(user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let count = 1 + dice.below(3);
    let mut facts = Vec::new();
    for _ in 0..count {
        if let Some(order) = open_order(user, dice) {
            let reasons = [CloseReason::UserCancelled, CloseReason::GtdExpired, CloseReason::MarketClosed];
            facts.push(close(user, order, dice.pick(&reasons), at));
        }
    }
    facts
}

/// A hold begins or ends, or an order meets its first book.
pub(super) fn touch_resting(user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let Some(order) = open_order(user, dice) else { return Vec::new() };
    if !user.orders[&order].awaiting {
        return vec![Mutation::OrderHeld(fact::OrderHeld { order, held: dice.chance(50), at })];
    }
    let mut known = user.orders[&order].clone();
    known.awaiting = false;
    let rested = rest(order, &mut known, dice, at);
    user.orders.insert(order, known);
    vec![rested]
}
