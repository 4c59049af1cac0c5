//! Placement, decided: every check that needs no book, in the contract's order; then [`super::enter`].
//!
//! One function serves native, venue-shaped and batch entries. Steps are numbered as in engine/docs/orders.md §2; 1–4 are sound
//! already when the request arrives. A refusal leaves nothing, except that a FOK or FAK that found too little leaves a
//! row which was placed and closed at once.

use crate::amount::{Cash, Price, Qty, floored_shares_for};
use crate::command::{AskedPrice, IdSource, Placement, PlacementTerms, RequestIdentity, Size, Unsound};
use crate::decide::enter::Entry;
use crate::decide::numbers::Numbers;
use crate::decide::take::{Desk, Ground};
use crate::id::{OrderId, WalletId};
use crate::market::catalog::{MarketCell, MarketStatus};
use crate::market::terms::MarketState;
use crate::mutation::Mutation;
use crate::order::{EntryRoute, OrderTerms, OrderType, Quality, Side, TimeInForce};
use crate::reject::Reject;
use crate::rules::{
    EXPIRATION_AHEAD_MAX_US, IMPLICIT_ID_US, OPEN_ORDERS_PER_USER_MAX, Rules, SHARES_PER_ORDER_CEILING,
};
use crate::time::Timestamp;
use crate::user::{Tier, User, WalletKind};

/// What a placement came to when it was not plainly refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The order stands: filled, partly filled, or resting.
    Stands(OrderId),
    /// It left a row and was refused.
    Killed { order: OrderId, reject: Reject },
    /// The same request came before and is remembered by this id; nothing happens now.
    Replay { client_order_id: String },
}

/// Decides one placement: pushes the facts it makes and says what it came to. Its texts move into the facts.
pub fn place(
    ground: &Ground<'_>,
    user: &User,
    placement: &mut Placement,
    desk: &mut Desk,
    facts: &mut Vec<Mutation>,
) -> Result<Placed, Reject> {
    let (rules, now) = (ground.rules, ground.now);
    // gateway/docs/wire.md §7, rows 13–15: a replay before the cap, the cap before soundness.
    if let Some(request) = &placement.request
        && is_replay(user, request, now)?
    {
        return Ok(Placed::Replay { client_order_id: request.client_order_id.clone() });
    }
    daily_cap(user, placement.tier, rules, now)?;
    let asked = placement.terms.as_mut().map_err(|Unsound| Reject::Unsound)?;
    sound(asked, placement.route, rules, now)?;

    // 7–10: wallet, market, open, grid.
    let wallet = wallet(user, asked.wallet)?;
    let instrument = asked.instrument.ok_or(Reject::MarketNotFound)?;
    let market = ground.catalog.market(instrument.market()).ok_or(Reject::MarketNotFound)?;
    let opening = opening(market, asked, rules)?;
    let limit = on_grid(market, asked)?;

    // 11–13: size by the displayed price, minimum, holding: account facts come before market weather.
    let (displayed, top) = ground.shown(instrument);
    let (quantity, amount, rounded_from) = expected(&mut asked.size, displayed, limit, rules)?;
    minimum(market, quantity, rules)?;
    if asked.side == Side::Sell {
        let available = user.open_position(wallet, instrument).map_or(Qty::ZERO, |held| held.qty - held.reserved);
        if quantity > available {
            return Err(Reject::InsufficientPosition { available, requested: quantity });
        }
    }

    let mut numbers = Numbers::of(user).ok_or(Reject::Busy)?;
    ground.catalog.stake(market);
    let quote = ground.quote(instrument);
    let mut entry = Entry {
        ground,
        user,
        order: OrderId(numbers.take()),
        numbers,
        terms: OrderTerms {
            wallet,
            key: placement.key,
            instrument,
            side: asked.side,
            order_type: asked.order_type,
            time_in_force: asked.time_in_force,
            limit,
            quantity,
            amount,
            expiration: asked.expiration,
            post_only: asked.post_only,
            client_order_id: shown_id(placement.request.as_ref(), desk),
            route: placement.route,
            fee_rate: rules.fees.rate(market.listing.category),
            marketable: false,
            quality: Quality {
                displayed,
                quote_age_ms: quote.age_ms(),
                stale_quote: quote.warned,
                ..Quality::default()
            },
            rounded_from,
            order_hash: placement
                .order_hash
                .filter(|hash| rules.formats.is_newest() && user.signed_order(hash).is_none()),
        },
        request: placement.request.take(),
    };

    // 14, 15: the weather of the market, for what would fill at once.
    if asked.time_in_force.immediate() {
        if ground.outage || ground.books.unheard() {
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
    if user.open_orders_count() >= OPEN_ORDERS_PER_USER_MAX {
        return Err(Reject::Busy);
    }
    if ground.live(&quote) { entry.take_then_rest(top, desk, facts) } else { entry.rest_untouched(facts) }
}

/// gateway/docs/wire.md §11: whether this very request came before, or why its id cannot be used.
fn is_replay(user: &User, request: &RequestIdentity, now: Timestamp) -> Result<bool, Reject> {
    let Some(known) = user.remembered(&request.client_order_id) else { return Ok(false) };
    let same = known.digest == request.digest;
    match request.source {
        IdSource::Implicit => {
            let left_at = user.order(known.order).map_or(Timestamp(0), |order| order.created_at);
            Ok(same && now.since(left_at) <= IMPLICIT_ID_US)
        }
        _ if same => Ok(true),
        IdSource::Header => Err(Reject::IdempotencyKeyReuse),
        IdSource::Body => Err(Reject::DuplicateClientOrderId),
    }
}

/// gateway/docs/wire.md §8: accepted orders of this UTC day, free tier only.
fn daily_cap(user: &User, tier: Tier, rules: &Rules, now: Timestamp) -> Result<(), Reject> {
    let today = now.day();
    let used = if user.quota.day == today { user.quota.used } else { 0 };
    if tier == Tier::Free && used >= rules.free_daily_orders {
        return Err(Reject::DailyLimit { limit: rules.free_daily_orders, used, resets_at: today.end() });
    }
    Ok(())
}

/// The sender's own id; an implicit one is nobody's business.
fn shown_id(request: Option<&RequestIdentity>, desk: &mut Desk) -> Option<String> {
    let shown = request.filter(|request| request.source != IdSource::Implicit);
    shown.map(|request| desk.text(&request.client_order_id))
}

/// Steps 1–6 as far as they are rules about orders: flags, quantity, post-only type, expiration.
fn sound(asked: &mut PlacementTerms, route: EntryRoute, rules: &Rules, now: Timestamp) -> Result<(), Reject> {
    if asked.order_type == OrderType::Market && asked.time_in_force == TimeInForce::Gtc {
        asked.time_in_force = TimeInForce::Fok;
    }
    let native = matches!(route, EntryRoute::Native | EntryRoute::Batch);
    let gtd = asked.time_in_force == TimeInForce::Gtd;
    let immediate = asked.time_in_force.immediate();
    let budget = matches!(asked.size, Size::Amount(_));
    if (asked.order_type == OrderType::Market && gtd) || (budget && (asked.side == Side::Sell || !immediate)) {
        return Err(Reject::Unsound);
    }
    if gtd && native && !rules.flags.gtd_auto_expiry {
        return Err(Reject::GtdUnsupported);
    }
    match asked.size {
        Size::Shares { qty, .. } if qty.is_zero() => return Err(Reject::InvalidQuantity),
        Size::Shares { qty, .. } if qty > cap(rules) => return Err(Reject::AboveShareCap { cap: cap(rules) }),
        Size::Amount(amount) if amount <= Cash::ZERO => return Err(Reject::InvalidQuantity),
        _ => {}
    }
    if !rules.flags.post_only_enforced {
        asked.post_only = false;
    }
    if asked.post_only && immediate {
        return Err(Reject::PostOnlyType);
    }
    if gtd && asked.expiration.is_none_or(|at| at <= now || at > now.plus(EXPIRATION_AHEAD_MAX_US)) {
        return Err(Reject::InvalidExpiration);
    }
    if gtd && !rules.flags.gtd_auto_expiry {
        // A venue client's GTD rests as GTC as long as nothing expires.
        asked.time_in_force = TimeInForce::Gtc;
    }
    if asked.time_in_force != TimeInForce::Gtd {
        asked.expiration = None;
    }
    Ok(())
}

/// Most shares an order may have; the ceiling keeps every product of it in range whatever is configured.
fn cap(rules: &Rules) -> Qty {
    rules.max_shares_per_order.min(SHARES_PER_ORDER_CEILING)
}

/// 7: the API wallet, or an active one of the user.
fn wallet(user: &User, asked: Option<WalletId>) -> Result<WalletId, Reject> {
    let found = match asked {
        None => user.wallet_of(WalletKind::Api),
        Some(id) => user.wallet(id).filter(|wallet| wallet.is_active()),
    };
    found.map(|wallet| wallet.id).ok_or(Reject::WalletNotFound)
}

/// Whether a market takes orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    Open,
    /// Past its end, unresolved: a market SELL may leave (engine/docs/execution.md §11).
    Exit,
}

/// 9: active, end date ahead; or the emergency exit.
fn opening(market: &MarketCell, asked: &PlacementTerms, rules: &Rules) -> Result<Opening, Reject> {
    let MarketStatus { state, ended, .. } = market.status();
    let sells_at_market = asked.side == Side::Sell && asked.order_type == OrderType::Market;
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

/// 10: a limit lies on the tick grid; a worst price may be anything in (0, 1].
fn on_grid(market: &MarketCell, asked: &PlacementTerms) -> Result<Price, Reject> {
    let tick = market.tick();
    match asked.price {
        AskedPrice::At(price) if asked.order_type == OrderType::Market => {
            if price.0 >= 1 && price <= Price::ONE {
                Ok(price)
            } else {
                Err(Reject::Unsound)
            }
        }
        AskedPrice::At(price) if tick.contains(price) => Ok(price),
        _ => Err(Reject::OffTick { tick }),
    }
}

/// 11: the shares an amount stands for at the displayed price (the worst price where nothing is displayed).
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
                // So many that they cannot be counted, or just too many.
                _ => Err(Reject::AboveShareCap { cap: cap(rules) }),
            }
        }
    }
}

/// 12: the market's minimum; without it anything above one step.
fn minimum(market: &MarketCell, quantity: Qty, rules: &Rules) -> Result<(), Reject> {
    let minimum =
        if rules.flags.min_order_size_enforced { market.tick().min_order_size() } else { Qty(2 * Qty::ORDER_STEP.0) };
    if quantity < minimum { Err(Reject::BelowMinimum { minimum }) } else { Ok(()) }
}
