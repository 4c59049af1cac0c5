//! Decides a placement: every check that needs no book, in the documented order; then [`super::enter`].
//!
//! One function serves native, venue-shaped and batch entries. Steps are numbered as in engine/docs/orders.md §2; the
//! caller has checked 1 to 4. A refusal leaves no row, except that a FOK or FAK without enough depth leaves a row that
//! is placed and closed in one record.

use crate::amount::{Cash, Price, Qty, floored_shares_for};
use crate::command::{IdSource, InvalidTerms, Placement, PlacementTerms, RequestIdentity, RequestedPrice, Size};
use crate::decide::enter::Entry;
use crate::decide::numbers::Numbers;
use crate::decide::take::{Desk, Ground};
use crate::id::{KeyId, OrderId, WalletId};
use crate::look_up::Past;
use crate::market::catalog::{MarketCell, MarketStatus};
use crate::market::terms::MarketState;
use crate::mutation::Mutation;
use crate::order::{EntryRoute, OrderTerms, OrderType, Quality, Side, TimeInForce};
use crate::realism::FillTerms;
use crate::reject::Reject;
use crate::rules::{
    EXPIRATION_AHEAD_MAX_US, IMPLICIT_ID_US, OPEN_ORDERS_PER_USER_MAX, Rules, SHARES_PER_ORDER_CEILING,
};
use crate::time::Timestamp;
use crate::user::{Tier, User, WalletKind};

/// The result of a placement that was not refused before it left a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The order exists: filled, partly filled, or resting.
    Accepted(OrderId),
    /// It left a row and was refused.
    Killed { order: OrderId, reject: Reject },
    /// The same request was made before and is remembered by this id; nothing changes.
    Replay { client_order_id: String },
}

/// Decides one placement: pushes its facts and returns its result. Its texts move into the facts.
pub fn place(
    ground: &Ground<'_>,
    past: Past<'_>,
    placement: &mut Placement,
    desk: &mut Desk,
    facts: &mut Vec<Mutation>,
) -> Result<Placed, Reject> {
    let (rules, now, user) = (ground.rules, ground.now, past.user);
    // gateway/docs/wire.md §7, rows 13 to 15: a replay before the cap, the cap before invalid terms.
    if let Some(request) = &placement.request
        && is_replay(past, request, rules, now)?
    {
        return Ok(Placed::Replay { client_order_id: request.client_order_id.clone() });
    }
    if let (Some(request), Some(hash)) = (&placement.request, &placement.order_hash)
        && past.has_signed_as(hash, &request.client_order_id)
    {
        // The id has ended, but the order of this hash has it: the same signed order is sent again.
        return Err(used(request.source));
    }
    let order_hash = placement.order_hash.filter(|hash| rules.formats.is_newest() && !past.has_signed(hash));
    daily_cap(user, placement.tier, rules, now)?;
    if placement.refuses_known_hash && placement.order_hash.is_some_and(|hash| past.has_signed(&hash)) {
        return Err(Reject::OrderHashKnown);
    }
    let terms = placement.terms.as_mut().map_err(|InvalidTerms| Reject::InvalidTerms)?;
    check_terms(terms, placement.route, rules, now)?;

    // 7–10: wallet, market, open, grid.
    let wallet = wallet(user, terms.wallet)?;
    let instrument = terms.instrument.ok_or(Reject::MarketNotFound)?;
    let market = ground.catalog.market(instrument.market()).ok_or(Reject::MarketNotFound)?;
    let opening = opening(market, terms, rules)?;
    let limit = on_grid(market, terms)?;

    // 11–13: size by the displayed price, minimum, holding. Checks of the account precede checks of the market.
    let (displayed, top) = ground.shown(instrument);
    let (quantity, amount, rounded_from) = expected(&mut terms.size, displayed, limit, rules)?;
    minimum(market, quantity, rules)?;
    if terms.side == Side::Sell {
        let available = user.open_position(wallet, instrument).map_or(Qty::ZERO, |held| held.qty - held.reserved);
        if quantity > available {
            return Err(Reject::InsufficientPosition { available, requested: quantity });
        }
    }

    let fill = fill_terms(user, placement.key, rules)?;
    let mut numbers = Numbers::of(user).ok_or(Reject::Busy)?;
    ground.catalog.stake(market);
    let quote = ground.quote(instrument);
    let fee_rate = rules.fees.rate(market.listing.category);
    let mut entry = Entry {
        ground,
        user,
        order: OrderId(numbers.take()),
        numbers,
        terms: OrderTerms {
            wallet,
            key: placement.key,
            instrument,
            side: terms.side,
            order_type: terms.order_type,
            time_in_force: terms.time_in_force,
            limit,
            quantity,
            amount,
            expiration: terms.expiration,
            post_only: terms.post_only,
            client_order_id: shown_id(placement.request.as_ref(), desk),
            route: placement.route,
            fee_rate,
            marketable: false,
            quality: Quality {
                displayed,
                quote_age_ms: quote.age_ms(),
                stale_quote: quote.warned,
                ..Quality::default()
            },
            rounded_from,
            order_hash,
            fill: Some(fill).filter(|fill| *fill != FillTerms::KIND && rules.formats.is_newest()),
        },
        fees: ground.fees(instrument, fee_rate),
        request: placement.request.take(),
    };

    // 14, 15: market conditions, for orders that would fill immediately.
    if terms.time_in_force.immediate() {
        if ground.outage || ground.books.no_contact() {
            return Err(Reject::VenueUnavailable);
        }
        return match opening {
            Opening::Exit if quote.refused.is_some() => entry.exit(facts),
            Opening::Exit => entry.take_at_once(true, desk, facts),
            Opening::Open => match quote.refused {
                Some(stale) => Err(stale),
                None => entry.take_at_once(false, desk, facts),
            },
        };
    }
    let is_full = desk.queues_are_full && fill.model.is_queued();
    if user.open_orders_count() >= OPEN_ORDERS_PER_USER_MAX || is_full {
        return Err(Reject::Busy);
    }
    if ground.live(&quote) { entry.take_then_rest(top, desk, facts) } else { entry.rest_untouched(facts) }
}

/// How orders of a key fill: by the set that was chosen for it, or by that of keys without a choice.
fn fill_terms(user: &User, key: KeyId, rules: &Rules) -> Result<FillTerms, Reject> {
    match user.realism_of(key) {
        None => Ok(rules.realism.chosen_by_default().fill),
        // A start refuses a choice that is not a set of the server.
        Some(name) => rules.realism.get(name).map(|set| set.fill).ok_or(Reject::ExecutionError),
    }
}

/// Whether this request was made before, or the reason why its id cannot be used (gateway/docs/wire.md §11).
fn is_replay(past: Past<'_>, request: &RequestIdentity, rules: &Rules, now: Timestamp) -> Result<bool, Reject> {
    let known = past.remembered(&request.client_order_id, rules.ids_since(now));
    let Some(known) = known else { return Ok(false) };
    let same = known.request.digest == request.digest;
    match request.source {
        IdSource::Implicit => Ok(same && now.since(known.order.created_at) <= IMPLICIT_ID_US),
        _ if same => Ok(true),
        source => Err(used(source)),
    }
}

/// The refusal of an id that another request used.
fn used(source: IdSource) -> Reject {
    match source {
        IdSource::Header => Reject::IdempotencyKeyReuse,
        IdSource::Body | IdSource::Implicit => Reject::DuplicateClientOrderId,
    }
}

/// Accepted orders of this UTC day, free tier only (gateway/docs/wire.md §8).
fn daily_cap(user: &User, tier: Tier, rules: &Rules, now: Timestamp) -> Result<(), Reject> {
    let today = now.day();
    let used = if user.quota.day == today { user.quota.used } else { 0 };
    if tier == Tier::Free && used >= rules.free_daily_orders {
        return Err(Reject::DailyLimit { limit: rules.free_daily_orders, used, resets_at: today.end() });
    }
    Ok(())
}

/// The client's own id; an implicit one is not shown.
fn shown_id(request: Option<&RequestIdentity>, desk: &mut Desk) -> Option<String> {
    let shown = request.filter(|request| request.source != IdSource::Implicit);
    shown.map(|request| desk.text(&request.client_order_id))
}

/// The parts of steps 1 to 6 that are rules of orders: flags, quantity, post-only type, expiration.
fn check_terms(terms: &mut PlacementTerms, route: EntryRoute, rules: &Rules, now: Timestamp) -> Result<(), Reject> {
    if terms.order_type == OrderType::Market && terms.time_in_force == TimeInForce::Gtc {
        terms.time_in_force = TimeInForce::Fok;
    }
    let native = matches!(route, EntryRoute::Native | EntryRoute::Batch);
    let gtd = terms.time_in_force == TimeInForce::Gtd;
    let immediate = terms.time_in_force.immediate();
    let budget = matches!(terms.size, Size::Amount(_));
    if (terms.order_type == OrderType::Market && gtd) || (budget && (terms.side == Side::Sell || !immediate)) {
        return Err(Reject::InvalidTerms);
    }
    if gtd && native && !rules.flags.gtd_auto_expiry {
        return Err(Reject::GtdUnsupported);
    }
    match terms.size {
        Size::Shares { qty, .. } if qty.is_zero() => return Err(Reject::InvalidQuantity),
        Size::Shares { qty, .. } if qty > cap(rules) => return Err(Reject::AboveShareCap { cap: cap(rules) }),
        Size::Amount(amount) if amount <= Cash::ZERO => return Err(Reject::InvalidQuantity),
        _ => {}
    }
    if !rules.flags.post_only_enforced {
        terms.post_only = false;
    }
    if terms.post_only && immediate {
        return Err(Reject::PostOnlyType);
    }
    if gtd && terms.expiration.is_none_or(|at| at <= now || at > now.plus(EXPIRATION_AHEAD_MAX_US)) {
        return Err(Reject::InvalidExpiration);
    }
    if gtd && !rules.flags.gtd_auto_expiry {
        // A venue client's GTD rests as GTC while orders do not expire.
        terms.time_in_force = TimeInForce::Gtc;
    }
    if terms.time_in_force != TimeInForce::Gtd {
        terms.expiration = None;
    }
    Ok(())
}

/// Maximum shares of an order; the ceiling keeps its products in range for any configuration.
fn cap(rules: &Rules) -> Qty {
    rules.max_shares_per_order.min(SHARES_PER_ORDER_CEILING)
}

/// 7: the API wallet, or an active one of the user.
fn wallet(user: &User, terms: Option<WalletId>) -> Result<WalletId, Reject> {
    let found = match terms {
        None => user.wallet_of(WalletKind::Api),
        Some(id) => user.wallet(id).filter(|wallet| wallet.is_active()),
    };
    found.map(|wallet| wallet.id).ok_or(Reject::WalletNotFound)
}

/// Whether a market accepts orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    Open,
    /// Past its end, unresolved: a market SELL may exit (engine/docs/execution.md §11).
    Exit,
}

/// 9: active, end date ahead; or the emergency exit.
fn opening(market: &MarketCell, terms: &PlacementTerms, rules: &Rules) -> Result<Opening, Reject> {
    let MarketStatus { state, ended, .. } = market.status();
    let sells_at_market = terms.side == Side::Sell && terms.order_type == OrderType::Market;
    match state {
        MarketState::Active if !ended => Ok(Opening::Open),
        MarketState::Active | MarketState::Halted | MarketState::Closed
            if ended && sells_at_market && rules.emergency_exit =>
        {
            Ok(Opening::Exit)
        }
        _ => Err(Reject::MarketClosed),
    }
}

/// 10: a limit is on the tick grid; a worst price is any value in (0, 1].
fn on_grid(market: &MarketCell, terms: &PlacementTerms) -> Result<Price, Reject> {
    let tick = market.tick();
    match terms.price {
        RequestedPrice::At(price) if terms.order_type == OrderType::Market => {
            if price.0 >= 1 && price <= Price::ONE {
                Ok(price)
            } else {
                Err(Reject::InvalidTerms)
            }
        }
        RequestedPrice::At(price) if tick.contains(price) => Ok(price),
        _ => Err(Reject::OffTick { tick }),
    }
}

/// 11: the shares that an amount buys at the displayed price (at the worst price if there is none).
fn expected(
    size: &mut Size,
    displayed: Option<Cash>,
    limit: Price,
    rules: &Rules,
) -> Result<(Qty, Option<Cash>, Option<String>), Reject> {
    match size {
        Size::Shares { qty, rounded_from } => Ok((*qty, None, rounded_from.take())),
        Size::Amount(amount) => {
            let amount = *amount;
            let price = displayed.filter(|shown| *shown > Cash::ZERO).unwrap_or(super::quality::per_share(limit));
            match floored_shares_for(amount, price) {
                Some(Qty::ZERO) => Err(Reject::InvalidQuantity),
                Some(qty) if qty <= cap(rules) => Ok((qty, Some(amount), None)),
                // Too many, or an overflow.
                _ => Err(Reject::AboveShareCap { cap: cap(rules) }),
            }
        }
    }
}

/// 12: the market's minimum; with it off, at least one step.
fn minimum(market: &MarketCell, quantity: Qty, rules: &Rules) -> Result<(), Reject> {
    let minimum =
        if rules.flags.min_order_size_enforced { market.tick().min_order_size() } else { Qty(2 * Qty::ORDER_STEP.0) };
    if quantity < minimum { Err(Reject::BelowMinimum { minimum }) } else { Ok(()) }
}
