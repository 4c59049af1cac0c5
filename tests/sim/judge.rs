//! Compares model and engine: answers and whole users, field by field.

use crate::model::wallets::Worth;
use crate::model::{Expected, ExpectedOrder, Fact, Fill, Key, Market, Order, Position, User, Wallet};
use crate::store::Rows;
use crate::world::CLIENT_IDS;
use engine::command::{Answer, BatchEntry};
use engine::id::{MarketId, OrderId};
use engine::market::Markets;
use engine::order::{Fill as EngineFill, Order as EngineOrder};
use engine::time::Timestamp;
use engine::user::equity::EquityRow;
use engine::user::{Position as EnginePosition, User as EngineUser, Wallet as EngineWallet};
use engine::view::{FactPage, FactView, Happened, KeyView, OrderView, PositionView};
use std::collections::BTreeMap;

const HOUR: u64 = 3_600_000_000;

type Verdict = Result<(), String>;

macro_rules! same {
    ($($what:expr => $expected:expr, $found:expr;)*) => {$({
        let (expected, found) = (&$expected, &$found);
        if expected != found {
            return Err(format!("{}: {expected:?} is right, found {found:?}", $what));
        }
    })*};
}

/// An answer equals the model's.
pub fn answer(expected: &Expected, found: &Answer) -> Verdict {
    match (expected, found) {
        (Expected::Done, Answer::Done) | (Expected::Created, Answer::Created(_)) => {}
        (Expected::Billed(expected), Answer::Billed(found)) => same!("outcome" => expected, found;),
        (Expected::Refused(expected), Answer::Refused(found)) => same!("refusal" => expected, found;),
        (Expected::Order(expected), Answer::Order(found)) => shown(expected, found)?,
        (Expected::Killed(why, expected), Answer::Killed { reject, order }) => {
            same!("refusal" => why, reject;);
            shown(expected, order)?;
        }
        (Expected::Batch(expected), Answer::Batch(found)) => {
            same!("entries" => expected.len(), found.len(););
            for (expected, found) in expected.iter().zip(found) {
                batch_entry(expected, found)?;
            }
        }
        (Expected::Cancelled(expected), Answer::Cancelled(found)) => {
            let found_ids: Vec<u64> = found.cancelled.iter().map(|id| id.0).collect();
            same!("cancelled" => *expected, found_ids; "not cancellable" => 0, found.not_cancellable.len(););
        }
        (Expected::Beating(expected), Answer::Beating { lapses_at }) => same!("lapse" => *expected, lapses_at.0;),
        (Expected::Key(expected), Answer::Key(found)) => key(expected, found)?,
        (Expected::Rotated(expected, until), Answer::Rotated { replacement, old_expires_at }) => {
            key(expected, replacement)?;
            same!("end of the old key" => *until, old_expires_at.0;);
        }
        (Expected::Keys(expected), Answer::Keys(found)) => {
            same!("keys" => expected.len(), found.len(););
            expected.iter().zip(found).try_for_each(|(expected, found)| key(expected, found))?;
        }
        (Expected::User { wallets, active_keys }, Answer::User(found)) => {
            same!("active keys" => *active_keys, found.active_keys; "wallets" => wallets.len(), found.wallets.len(););
        }
        (Expected::Account { wallets, positions: held, fills, closed, won }, Answer::Account(found)) => {
            same!("wallets" => wallets.len(), found.wallets.len(););
            wallets
                .iter()
                .zip(&found.wallets)
                .try_for_each(|((expected, reserved), found)| wallet(expected, *reserved, found))?;
            positions(held, &found.positions)?;
            same!(
                "fills" => *fills as u64, found.fills_count;
                "closed" => *closed as u64, found.closed_count;
                "won" => *won as u64, found.won_count;
            );
        }
        (Expected::Wallet(expected, reserved), Answer::Wallet(found)) => wallet(expected, *reserved, found)?,
        (Expected::Emptied { wallet: expected, orders, positions }, Answer::Emptied(found)) => {
            wallet(expected, 0, &found.wallet)?;
            same!("orders, positions" => (orders, positions), (&found.orders, &found.positions););
        }
        (Expected::Equity(expected), Answer::Equity(found)) => same!("equity" => *expected, worths(&found.rows);),
        (Expected::Positions(expected), Answer::Positions(found)) => positions(expected, found)?,
        (Expected::Orders { rows, has_more, count }, Answer::Orders(found)) => {
            same!(
                "rows" => rows.len(), found.orders.len();
                "more" => *has_more, found.has_more;
                "count" => Some(*count), found.total_hint;
            );
            rows.iter().zip(&found.orders).try_for_each(|(expected, found)| shown(expected, found))?;
        }
        (Expected::Facts(expected, first, newest), Answer::Facts(found)) => {
            let numbers: Vec<u64> = found.facts.iter().map(|view| view.seq).collect();
            let asked: Vec<u64> = (*first..).take(expected.len()).collect();
            same!(
                "facts" => *expected, facts(found);
                "numbers" => asked, numbers;
                "newest" => *newest, found.newest;
            );
        }
        (Expected::Signed(expected), Answer::SignedOrders(found)) => {
            let found_ids: Vec<Option<u64>> = found.iter().map(|id| id.map(|id| id.0)).collect();
            same!("signed orders" => *expected, found_ids;);
        }
        (Expected::Fills { ids, has_more }, Answer::Fills(found)) => {
            let found_ids: Vec<u64> = found.fills.iter().map(|view| view.fill.id.0).collect();
            same!("fills" => *ids, found_ids; "more" => *has_more, found.has_more;);
        }
        (Expected::Cycled { fills, closed, resting }, Answer::Cycled { fills: f, closed: c, resting: r, .. }) => {
            same!("fills, closed, resting" => (fills, closed, resting), (f, c, r););
        }
        (Expected::Settled { positions, orders }, Answer::Settled { positions: p, orders: o }) => {
            same!("positions, orders" => (positions, orders), (p, o););
        }
        _ => return Err(format!("another kind of answer is right: {expected:?}")),
    }
    Ok(())
}

fn batch_entry(expected: &Expected, found: &BatchEntry) -> Verdict {
    match (expected, found) {
        (Expected::Order(expected), BatchEntry::Placed(found)) => shown(expected, found),
        (Expected::Killed(why, expected), BatchEntry::Killed { reject, order }) => {
            same!("refusal" => why, reject;);
            shown(expected, order)
        }
        (Expected::Refused(expected), BatchEntry::Refused(found)) => {
            same!("refusal" => expected, found;);
            Ok(())
        }
        _ => Err(format!("another kind of entry is right: {expected:?}, found {found:?}")),
    }
}

fn shown(expected: &ExpectedOrder, found: &OrderView) -> Verdict {
    let position = found.position.as_ref().map(|held| (i128::from(held.qty.0), i128::from(held.cost.0)));
    same!(
        "replay" => expected.replay, found.is_replay;
        "position" => expected.position, position;
    );
    if let Some(available) = expected.available {
        same!("available" => available, i128::from(found.available.0););
    }
    result(&expected.order, &found.order)?;
    fills(&expected.order.fills, &found.fills)?;
    // A replay reports the first answer; the order's present value does not matter.
    if expected.replay { Ok(()) } else { standing(&expected.order, &found.order) }
}

fn facts(page: &FactPage) -> Vec<Fact> {
    let summary = |view: &FactView| {
        let order = view.order.id.0;
        match &view.what {
            Happened::Placed { rests } => Fact::Placed { order, rests: *rests },
            Happened::Filled { fill, resting } => {
                let filled = view.order.filled.0.into();
                Fact::Filled { order, trade: fill.id.0, resting: *resting, filled }
            }
            Happened::Closed => Fact::Closed { order },
        }
    };
    page.facts.iter().map(summary).collect()
}

/// The past of an order, and its terms.
fn result(expected: &Order, found: &EngineOrder) -> Verdict {
    let (terms, quality) = (&found.terms, found.terms.quality());
    let filled_at = expected.fills.last().map(|fill| fill.at);
    same!(
        "order" => expected.id, found.id.0;
        "status" => expected.status(), found.status();
        "filled" => expected.filled(), i128::from(found.filled.0);
        "notional" => expected.notional(), i128::from(found.notional.0);
        "fee" => expected.fee(), i128::from(found.fee.0);
        "filled at" => filled_at, found.filled_at().map(|at| at.0);
        "closed" => expected.closed, found.closed().map(|(reason, at)| (reason, at.0));
        "wallet" => expected.wallet, terms.wallet.0;
        "token" => expected.token, terms.instrument.0;
        "side" => expected.side, terms.side;
        "type" => expected.order_type, terms.order_type;
        "time in force" => expected.time_in_force, terms.time_in_force;
        "limit" => expected.limit, terms.limit.0;
        "quantity" => expected.quantity, i128::from(terms.quantity.0);
        "amount" => expected.amount, terms.amount().map(|amount| i128::from(amount.0));
        "expiration" => expected.expiration, terms.expiration().map(|at| at.0);
        "post only" => expected.post_only, terms.post_only;
        "client order id" => expected.client_order_id.as_deref(), terms.client_order_id();
        "hash" => expected.hash.as_ref(), terms.order_hash();
        "route" => expected.route, terms.route;
        "rate" => expected.rate, terms.fee_rate.0;
        "created" => expected.created_at, found.created_at.0;
        "displayed" => expected.figures.displayed, quality.displayed.map(|price| i128::from(price.0));
        "quote age" => expected.figures.quote_age_ms, quality.quote_age_ms;
        "spread" => expected.figures.spread_bps, quality.spread_bps;
        "slippage" => expected.figures.slippage_bps, quality.slippage_bps;
        "impact" => expected.figures.impact_bps, quality.impact_bps;
        "levels" => expected.figures.levels, quality.book_walk_levels;
    );
    Ok(())
}

/// The open part of an order.
fn standing(expected: &Order, found: &EngineOrder) -> Verdict {
    same!(
        "reserved cash" => expected.reserved_cash(), i128::from(found.reserved_cash().0);
        "reserved shares" => expected.reserved_shares(), i128::from(found.reserved_qty().0);
        "awaiting a book" => expected.awaiting, found.awaiting_book;
        "held" => expected.held, found.held;
    );
    Ok(())
}

fn fills(expected: &[Fill], found: &[EngineFill]) -> Verdict {
    let found: Vec<Fill> = found
        .iter()
        .map(|fill| Fill {
            id: fill.id.0,
            qty: fill.qty.0.into(),
            notional: fill.notional.0.into(),
            fee: fill.fee.0.into(),
            rate: fill.fee_rate.0,
            liquidity: fill.liquidity,
            source: fill.source,
            at: fill.at.0,
        })
        .collect();
    same!("fills" => expected, found.as_slice(););
    Ok(())
}

fn key(expected: &Key, found: &KeyView) -> Verdict {
    same!(
        "key" => expected.id, found.id.0;
        "prefix" => expected.prefix.as_str(), &*found.prefix;
        "name" => expected.name.as_deref(), found.name.as_deref();
        "tier" => expected.tier, found.tier;
        "permissions" => expected.permissions, found.permissions;
        "created" => expected.created_at, found.created_at.0;
        "expires" => expected.expires_at, found.expires_at.map(|at| at.0);
        "last used" => expected.last_used_at, found.last_used_at.map(|at| at.0);
    );
    Ok(())
}

fn wallet(expected: &Wallet, reserved: i128, found: &EngineWallet) -> Verdict {
    same!(
        "wallet" => expected.id, found.id.0;
        "kind" => expected.kind, found.kind;
        "label" => expected.label.as_deref(), found.label();
        "generation" => expected.generation, found.generation;
        "parent" => expected.parent, found.parent().map(|parent| parent.0);
        "opened" => expected.opened_at, found.created_at.0;
        "archived" => expected.archived_at, found.archived_at().map(|at| at.0);
        "baseline" => expected.baseline, i128::from(found.baseline.0);
        "cash" => expected.cash, i128::from(found.cash.0);
        "deposits" => expected.deposits, i128::from(found.deposits().0);
        "reserved" => reserved, i128::from(found.reserved.0);
    );
    Ok(())
}

fn worths(rows: &[EquityRow]) -> Vec<(u64, Worth)> {
    let worth = |row: &EquityRow| (row.cash.0.into(), row.value.0.into(), row.baseline.0.into());
    rows.iter().map(|row| (u64::from(row.at.hour()), worth(row))).collect()
}

fn positions(expected: &[(Position, i128)], found: &[PositionView]) -> Verdict {
    same!("positions" => expected.len(), found.len(););
    let mut pairs = expected.iter().zip(found);
    pairs.try_for_each(|((expected, reserved), found)| position(expected, *reserved, &found.position))
}

fn position(expected: &Position, reserved: i128, found: &EnginePosition) -> Verdict {
    let paid_out = found.settlement.as_ref().map(|paid| (paid.payout_per_share.0, i128::from(paid.payout.0)));
    same!(
        "position" => expected.id, found.id.0;
        "wallet" => expected.wallet, found.wallet.0;
        "token" => expected.token, found.instrument.0;
        "held" => expected.qty, i128::from(found.qty.0);
        "reserved shares" => reserved, i128::from(found.reserved.0);
        "cost" => expected.cost, i128::from(found.cost.0);
        "realized" => expected.realized, i128::from(found.realized.0);
        "closed" => expected.closed_at, found.closed_at.map(|at| at.0);
        "paid out" => expected.paid_out, paid_out;
        "reset" => expected.reset, found.is_reset;
    );
    Ok(())
}

/// A whole user: rows in memory, and those that have left it. `live`: also compares values that a restart drops.
pub fn user(expected: &User, found: &EngineUser, left: &Rows<'_>, now: u64, live: bool) -> Verdict {
    let counts = found.departed().map_or([0; 3], |gone| [gone.orders, gone.fills, gone.positions]);
    let [orders_left, fills_left, positions_left] = counts.map(|count| count as usize);
    let fills_count: usize = expected.orders.values().map(|order| order.fills.len()).sum();
    let prefixes: Vec<u64> = found.granted_prefixes().iter().map(|prefix| prefix.0).collect();
    same!(
        "sub" => expected.sub.as_deref(), found.sub();
        "grant" => expected.grant, found.grant.map(|grant| (grant.tier, grant.expires_at.map(|at| at.0)));
        "quota" => expected.quota, (u64::from(found.quota.day.0), found.quota.used);
        "order facts" => expected.facts.len() as u64, found.order_facts;
        "oldest order fact" => expected.oldest_fact(), found.oldest_fact();
        "prefixes" => expected.prefixes, prefixes;
        "next object" => expected.next, u64::from(found.next_object);
        "wallets" => expected.wallets.len(), found.wallets.len();
        "keys" => expected.keys.len(), found.keys.len();
        "orders" => expected.orders.len(), found.orders().len() + orders_left;
        "fills" => fills_count, found.fills().len() + fills_left;
        "positions" => expected.positions.len(), found.positions().len() + positions_left;
        "open orders" => expected.open_orders().count(), found.open_orders_count();
        "beats" => expected.beats.len(), found.safeguards().len();
    );
    let whole = found;
    for (expected_wallet, found) in expected.wallets.iter().zip(&found.wallets) {
        wallet(expected_wallet, expected.reserved(expected_wallet.id), found)?;
        // From its opening to an hour after all points.
        let (first, last) = (expected_wallet.opened_at / HOUR, expected_wallet.points.last());
        let last = last.map_or(first, |(hour, _)| *hour) + 1;
        let rows = expected.equity(&[expected_wallet.id], first, last);
        let hours = |hour: u64| u32::try_from(hour).expect("hours since 1970");
        let found_rows = worths(&whole.equity_rows([found].into_iter(), hours(first), hours(last)));
        same!(format!("equity of wallet {}", expected_wallet.id) => rows, found_rows;);
        let kept: Vec<u64> = expected_wallet.resets.iter().rev().take(4).rev().copied().collect();
        same!("resets" => kept, whole.resets(found.id).map(|at| at.0).collect::<Vec<_>>(););
    }
    for (expected, found) in expected.keys.iter().zip(&found.keys) {
        same!(
            "key" => expected.id, found.id.0;
            "key's name" => expected.name.as_deref(), found.name.as_deref();
            "key's tier" => (expected.tier, expected.permissions), (found.tier, found.permissions);
            "key's end" => expected.expires_at, found.expires_at.get().map(|at| at.0);
            "key revoked" => expected.revoked_at, found.revoked_at.get().map(|at| at.0);
            "key used" => expected.last_used_at, found.last_used_at.get().map(|at| at.0);
        );
    }
    orders(expected, found, left)?;
    held(expected, found, left)?;
    let mut seq = expected.oldest_fact() - 1;
    while seq < expected.facts.len() as u64 {
        let page = facts(&engine::shard::facts::page(found, seq, usize::MAX));
        same!(format!("order facts after {seq}") => expected.facts[seq as usize..][..page.len()], page[..];);
        seq += page.len() as u64;
        if page.is_empty() {
            // The next one is about an order that has left.
            let (Fact::Placed { order, .. } | Fact::Filled { order, .. } | Fact::Closed { order }) =
                &expected.facts[seq as usize];
            let where_it_is = (found.order(OrderId(*order)).is_some(), left.has_order(*order));
            same!(format!("order {order} in memory, in the store") => (false, true), where_it_is;);
            seq += 1;
        }
    }
    for request in &expected.requests {
        // Of several with one id the newest counts.
        let newest = expected.request(&request.id, now, CLIENT_IDS);
        let since = now.saturating_sub(CLIENT_IDS);
        let here = found.remembered(&request.id, Timestamp(since)).map(|known| (known.order.0, known.digest));
        let gone = left.newest_request(&request.id).filter(|(gone, _)| gone.order.created_at.0 >= since);
        let known = here.max(gone.map(|(gone, known)| (gone.order.id.0, known.digest)));
        same!(format!("request {}", request.id) => newest.map(|known| (known.first.order.id, known.digest)), known;);
    }
    for (expected, found) in expected.beats.iter().zip(found.safeguards()) {
        same!("beat" => (expected.label.as_str(), expected.interval_ms), (&*found.label, found.interval_ms););
        if live {
            same!("lapse" => expected.lapses_at, found.lapses_at.0;);
        }
    }
    Ok(())
}

/// All orders of a user. One that is in memory as well as in the store counts as in memory.
fn orders(expected: &User, found: &EngineUser, left: &Rows<'_>) -> Verdict {
    let gone = left.all_orders().filter(|gone| found.order(gone.order.id).is_none());
    let mut all: BTreeMap<u64, (&EngineOrder, Option<&[EngineFill]>)> =
        gone.map(|gone| (gone.order.id.0, (&gone.order, Some(&gone.fills[..])))).collect();
    all.extend(found.orders().iter().map(|order| (order.id.0, (order, None))));
    for (expected, (row, gone)) in expected.orders.values().zip(all.values()) {
        let of_memory = gone.is_none().then(|| found.fills_of(row));
        result(expected, row)
            .and_then(|()| standing(expected, row))
            .and_then(|()| fills(&expected.fills, gone.or(of_memory.as_deref()).unwrap_or_default()))
            .map_err(|why| format!("order {}: {why}", expected.id))?;
    }
    same!("orders in memory and store" => expected.orders.len(), all.len(););
    Ok(())
}

/// All positions of a user.
fn held(expected: &User, found: &EngineUser, left: &Rows<'_>) -> Verdict {
    let mut all: BTreeMap<u64, &EnginePosition> = left.all_positions().map(|gone| (gone.id.0, gone)).collect();
    all.extend(found.positions().iter().map(|held| (held.id.0, held)));
    for (held, found) in expected.positions.iter().zip(all.values()) {
        position(held, expected.reserved_of(held), found)?;
    }
    same!("positions in memory and store" => expected.positions.len(), all.len(););
    Ok(())
}

/// All markets.
pub fn markets(expected: &[Market], found: &Markets) -> Verdict {
    same!("markets" => expected.len(), found.len(););
    for (index, expected) in expected.iter().enumerate() {
        let found = found.market(MarketId(index as u32)).expect("counted above");
        same!(
            format!("market {index}") => expected,
            &Market {
                tick: found.tick.0,
                end: found.end.map(|at| at.0),
                state: found.state,
                ended: found.ended,
                resolution: found.resolution.map(|(resolution, _)| resolution),
                settled: found.settled_at.is_some(),
                rate: expected.rate,
            };
        );
    }
    Ok(())
}
