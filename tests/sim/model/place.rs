//! Placement in the model: the checks of engine/docs/orders.md §2 in order, one after the other.

use super::book::{Walk, Want, four_decimals, within};
use super::{Expected, ExpectedOrder, Fact, Figures, Fill, Model, Order, Request, User, cents, half_up};
use engine::amount::{Cash, Qty, TickSize};
use engine::book::BookSide;
use engine::command::{IdSource, Placement, PlacementTerms, RequestIdentity, RequestedPrice, Size};
use engine::id::OrderId;
use engine::market::terms::MarketState;
use engine::order::{CloseReason, Liquidity, OrderType, PriceSource, Side, TimeInForce};
use engine::reject::Reject;
use engine::time::Timestamp;
use engine::user::{Tier, WalletKind};

const DAY: u64 = 86_400_000_000;
const QUOTE_AGE_MAX: u64 = 60_000_000;

/// The side of the book that an order takes from.
pub fn needed(side: Side) -> BookSide {
    if side == Side::Buy { BookSide::Ask } else { BookSide::Bid }
}

/// |a − b| ÷ b in 10⁻⁴, half up.
fn deviation(a: i128, b: i128) -> Option<u32> {
    (b > 0).then(|| half_up((a - b).abs() * 10_000, b) as u32)
}

/// Whether a quote of that age is refused, and with which code.
pub fn stale(age_us: Option<u64>) -> Option<Reject> {
    let age = age_us.filter(|age| *age > QUOTE_AGE_MAX)?;
    Some(Reject::StaleQuote { age_ms: age / 1_000, max_age_ms: QUOTE_AGE_MAX / 1_000 })
}

/// Most shares of an order, in 10⁻⁶.
const SHARES_MAX: i128 = 1_000_000_000_000;

impl Model {
    /// Whether resting orders may be matched with the book of this token (engine/docs/execution.md §7, §10).
    pub fn live(&self, token: u32, now: u64) -> bool {
        let age = self.books.age(token, now);
        !self.books.outage && age.is_some() && stale(age).is_none()
    }

    pub(super) fn place(&mut self, owner: u64, placement: &Placement, now: u64) -> Expected {
        match self.try_place(owner, placement, now) {
            Ok(expected) => expected,
            Err(reject) => Expected::Refused(reject),
        }
    }

    fn try_place(&mut self, owner: u64, placement: &Placement, now: u64) -> Result<Expected, Reject> {
        let user = self.users[&owner].clone();
        if let Some(replay) = replayed(&user, placement.request.as_ref(), now, self.client_ids)? {
            return Ok(replay);
        }
        let known = placement.order_hash.and_then(|hash| user.signed(&hash));
        if let (Some(request), Some(known)) = (&placement.request, known)
            && known.client_order_id.as_deref() == Some(request.client_order_id.as_str())
        {
            // The same signed order, whose id has ended.
            return Err(match request.source {
                IdSource::Header => Reject::IdempotencyKeyReuse,
                IdSource::Body | IdSource::Implicit => Reject::DuplicateClientOrderId,
            });
        }
        // A hash names one order, for ever.
        let hash = placement.order_hash.filter(|_| self.writes_newest && known.is_none());
        let (day, used) = user.quota;
        let used = if day == now / DAY { used } else { 0 };
        if placement.tier == Tier::Free && used >= self.free_daily_orders {
            let resets_at = Timestamp((now / DAY + 1) * DAY);
            return Err(Reject::DailyLimit { limit: self.free_daily_orders, used, resets_at });
        }
        let mut asked = placement.terms.clone().map_err(|_| Reject::InvalidTerms)?;
        if asked.order_type == OrderType::Market && asked.time_in_force == TimeInForce::Gtc {
            asked.time_in_force = TimeInForce::Fok;
        }
        let immediate = matches!(asked.time_in_force, TimeInForce::Fok | TimeInForce::Fak | TimeInForce::Ioc);
        sound(&asked, immediate, now)?;

        // 7–10.
        let wallet = match asked.wallet {
            None => user.wallet_of(WalletKind::Api),
            Some(id) => user.wallets.iter().find(|wallet| wallet.id == id.0 && wallet.archived_at.is_none()),
        };
        let wallet = wallet.ok_or(Reject::WalletNotFound)?.id;
        let token = asked.instrument.ok_or(Reject::MarketNotFound)?.0;
        let market = self.markets.get(token as usize / 2).cloned().ok_or(Reject::MarketNotFound)?;
        let sells_at_market = asked.side == Side::Sell && asked.order_type == OrderType::Market;
        let may_exit = market.ended
            && sells_at_market
            && matches!(market.state, MarketState::Active | MarketState::Halted | MarketState::Closed);
        let is_open = market.state == MarketState::Active && !market.ended;
        if !is_open && !may_exit {
            return Err(Reject::MarketClosed);
        }
        let limit = match asked.price {
            RequestedPrice::At(price) if asked.order_type == OrderType::Market => price.0,
            RequestedPrice::At(price)
                if price.0 % market.tick == 0 && price.0 >= market.tick && price.0 <= 10_000 - market.tick =>
            {
                price.0
            }
            _ => return Err(Reject::OffTick { tick: TickSize(market.tick) }),
        };

        // 11–13.
        let displayed = self.books.displayed(token);
        let (quantity, amount) = match &asked.size {
            Size::Shares { qty, .. } => (i128::from(qty.0), None),
            Size::Amount(amount) => {
                let price = displayed.filter(|price| *price > 0).unwrap_or(cents(limit));
                let shares = four_decimals(i128::from(amount.0) * 1_000_000 / price);
                if shares == 0 {
                    return Err(Reject::InvalidQuantity);
                }
                if shares > SHARES_MAX {
                    return Err(Reject::AboveShareCap { cap: Qty(SHARES_MAX as u64) });
                }
                (shares, Some(i128::from(amount.0)))
            }
        };
        let minimum = if market.tick <= 10 { 1_000_000 } else { 5_000_000 };
        if quantity < minimum {
            return Err(Reject::BelowMinimum { minimum: Qty(minimum as u64) });
        }
        if asked.side == Side::Sell {
            let available = user.position(wallet, token).map_or(0, |held| held.qty - user.reserved_of(held));
            if quantity > available {
                let requested = Qty(quantity as u64);
                return Err(Reject::InsufficientPosition { available: Qty(available as u64), requested });
            }
        }

        let age = self.books.age(token, now);
        let order = Order {
            id: user.next_id(),
            wallet,
            token,
            side: asked.side,
            order_type: asked.order_type,
            time_in_force: asked.time_in_force,
            limit,
            quantity,
            amount,
            expiration: asked.expiration.filter(|_| asked.time_in_force == TimeInForce::Gtd).map(|at| at.0),
            post_only: asked.post_only,
            client_order_id: placement
                .request
                .as_ref()
                .filter(|request| request.source != IdSource::Implicit)
                .map(|request| request.client_order_id.clone()),
            hash,
            route: placement.route,
            rate: market.rate,
            created_at: now,
            figures: Figures { displayed, quote_age_ms: age.map(|age| (age / 1_000) as u32), ..Figures::default() },
            awaiting: false,
            held: false,
            resting: false,
            fills: Vec::new(),
            closed: None,
            answered_cash: None,
        };
        let done = if immediate {
            self.take_at_once(&user, order, may_exit, now)?
        } else {
            self.take_and_rest(&user, order, now)?
        };
        Ok(self.book(owner, done, placement.request.as_ref(), now))
    }

    /// 14–19 for market, FOK, FAK, IOC.
    fn take_at_once(&self, user: &User, mut order: Order, may_exit: bool, now: u64) -> Result<Done, Reject> {
        if self.books.outage {
            return Err(Reject::VenueUnavailable);
        }
        let side = needed(order.side);
        let empty = self.books.effective(order.token).best(side).is_none();
        match stale(self.books.age(order.token, now)) {
            Some(_) if may_exit => return Ok(Done::exit(user, order, now)),
            Some(stale) => return Err(stale),
            None if empty && may_exit => return Ok(Done::exit(user, order, now)),
            None => {}
        }
        let want = order.amount.map_or(Want::Shares(order.quantity), Want::Budget);
        let walk = self.books.walk(user.id, order.token, side, want, order.limit, order.rate);
        let fok = order.time_in_force == TimeInForce::Fok;
        if walk.filled == 0 || (fok && !walk.complete) {
            let reason = if fok { CloseReason::FokNotFilled } else { CloseReason::FakNoFill };
            let fillable = Qty(walk.filled as u64);
            let (id, requested) = (OrderId(order.id), Qty(order.quantity as u64));
            let limit = engine::amount::Price(order.limit);
            let reject = match reason {
                CloseReason::FokNotFilled => Reject::FokNotFilled { order: id, fillable, requested, limit },
                _ => Reject::NoExecutableDepth { order: Some(id) },
            };
            return Ok(Done {
                order,
                fill: None,
                walk: Walk::default(),
                end: Some(reason),
                rests: None,
                reject: Some(reject),
            });
        }
        let (cost, brings) = (walk.notional + walk.fee, walk.fee - walk.notional);
        affords(user, &order, if order.side == Side::Buy { cost } else { brings.max(0) })?;
        self.judge_figures(&mut order, &walk);
        let end = (!walk.complete).then_some(CloseReason::FakRest);
        let fill = taker_fill(&order, &walk, now);
        Ok(Done { order, fill: Some(fill), walk, end, rests: None, reject: None })
    }

    /// 16–19 for GTC and GTD.
    fn take_and_rest(&self, user: &User, mut order: Order, now: u64) -> Result<Done, Reject> {
        let mut resting = Done {
            order: order.clone(),
            fill: None,
            walk: Walk::default(),
            end: None,
            rests: Some((false, self.books.outage)),
            reject: None,
        };
        let buys = order.side == Side::Buy;
        if !self.live(order.token, now) {
            affords(user, &order, if buys { order.would_reserve(order.quantity, true) } else { 0 })?;
            resting.rests = Some((true, self.books.outage));
            return Ok(resting);
        }
        let side = needed(order.side);
        if order.post_only {
            let best = self.books.effective(order.token).best(side);
            if best.is_some_and(|best| within(side, best, order.limit)) {
                return Err(Reject::PostOnlyWouldCross);
            }
        }
        let walk = self.books.walk(user.id, order.token, side, Want::Shares(order.quantity), order.limit, order.rate);
        if walk.filled == 0 || order.post_only {
            affords(user, &order, if buys { order.would_reserve(order.quantity, false) } else { 0 })?;
            return Ok(resting);
        }
        let rest = order.quantity - walk.filled;
        let (cost, brings) = (walk.notional + walk.fee + order.would_reserve(rest, false), walk.fee - walk.notional);
        affords(user, &order, if buys { cost } else { brings.max(0) })?;
        self.judge_figures(&mut order, &walk);
        let fill = taker_fill(&order, &walk, now);
        let rests = (rest > 0).then_some((false, false));
        Ok(Done { order, fill: Some(fill), walk, end: None, rests, reject: None })
    }

    /// engine/docs/execution.md §8.
    fn judge_figures(&self, order: &mut Order, walk: &Walk) {
        let book = self.books.effective(order.token);
        let average = half_up(walk.notional * 1_000_000, walk.filled);
        let spread = |bid: u16, ask: u16| {
            half_up(20_000 * (i128::from(ask) - i128::from(bid)).max(0), i128::from(bid) + i128::from(ask)) as u32
        };
        let figures = &mut order.figures;
        figures.spread_bps = book.best(BookSide::Bid).zip(book.best(BookSide::Ask)).map(|(bid, ask)| spread(bid, ask));
        let at_market = order.order_type == OrderType::Market;
        figures.slippage_bps = figures.displayed.filter(|_| at_market).and_then(|shown| deviation(average, shown));
        figures.impact_bps = deviation(average, cents(walk.rows[0].0));
        figures.levels = Some(walk.rows.len() as u16);
    }

    /// 20: all of its facts are one record.
    fn book(&mut self, owner: u64, done: Done, request: Option<&RequestIdentity>, now: u64) -> Expected {
        let Done { mut order, fill, walk, end, rests, reject } = done;
        let id = order.id;
        let user = self.users.get_mut(&owner).expect("checked by the caller");
        user.take_id();
        user.facts.push(Fact::Placed { order: id, rests: rests.is_some() });
        if let Some((awaiting, held)) = rests {
            (order.resting, order.awaiting, order.held) = (true, awaiting, held);
        }
        if reject.is_none() {
            let used = if user.quota.0 == now / DAY { user.quota.1 } else { 0 };
            user.quota = (now / DAY, used + 1);
        }
        let (token, side) = (order.token, needed(order.side));
        user.orders.insert(id, order);
        if let Some(mut fill) = fill {
            fill.id = user.take_id();
            user.fill(id, fill, false);
            self.books.deplete(owner, token, side, &walk);
        }
        if let Some(reason) = end {
            user.close(id, reason, now);
        }
        let shown = user.show(id);
        let wallet = shown.order.wallet;
        let is_vague = |other: &Order| other.wallet == wallet && other.awaiting && other.side == Side::Buy;
        if !user.open_orders().any(is_vague) {
            user.orders.get_mut(&id).expect("it was placed").answered_cash = shown.available;
        }
        if let Some(request) = request {
            let (id, digest) = (request.client_order_id.clone(), request.digest);
            let fillable = match reject {
                Some(Reject::FokNotFilled { fillable, .. }) => fillable.0,
                _ => 0,
            };
            user.requests.push(Request { id, digest, fillable, first: shown.clone() });
        }
        self.record(owner);
        match reject {
            Some(reject) => Expected::Killed(reject, Box::new(shown)),
            None => Expected::Order(Box::new(shown)),
        }
    }
}

/// The result of an accepted placement.
struct Done {
    order: Order,
    fill: Option<Fill>,
    walk: Walk,
    end: Option<CloseReason>,
    /// Awaiting a book, held.
    rests: Option<(bool, bool)>,
    reject: Option<Reject>,
}

impl Done {
    /// engine/docs/execution.md §11: out at the average entry price.
    fn exit(user: &User, order: Order, now: u64) -> Done {
        let held = user.position(order.wallet, order.token).expect("a SELL of what is not held was refused");
        let fill = Fill {
            id: 0,
            qty: order.quantity,
            notional: half_up(held.cost * order.quantity, held.qty),
            fee: 0,
            rate: 0,
            liquidity: Liquidity::Taker,
            source: PriceSource::EmergencyExitEntryPricePostExpiry,
            at: now,
        };
        Done { order, fill: Some(fill), walk: Walk::default(), end: None, rests: None, reject: None }
    }
}

fn taker_fill(order: &Order, walk: &Walk, now: u64) -> Fill {
    Fill {
        id: 0,
        qty: walk.filled,
        notional: walk.notional,
        fee: walk.fee,
        rate: order.rate,
        liquidity: Liquidity::Taker,
        source: PriceSource::BookWalk,
        at: now,
    }
}

fn affords(user: &User, order: &Order, required: i128) -> Result<(), Reject> {
    let available = user.available(order.wallet);
    if required <= available {
        return Ok(());
    }
    Err(Reject::InsufficientBalance { available: Cash(available as i64), required: Cash(required as i64) })
}

/// Steps 1–6.
fn sound(asked: &PlacementTerms, immediate: bool, now: u64) -> Result<(), Reject> {
    let budget = matches!(asked.size, Size::Amount(_));
    let gtd = asked.time_in_force == TimeInForce::Gtd;
    if (asked.order_type == OrderType::Market && gtd) || (budget && (asked.side == Side::Sell || !immediate)) {
        return Err(Reject::InvalidTerms);
    }
    match asked.size {
        Size::Shares { qty, .. } if qty.0 == 0 => return Err(Reject::InvalidQuantity),
        Size::Shares { qty, .. } if i128::from(qty.0) > SHARES_MAX => {
            return Err(Reject::AboveShareCap { cap: Qty(SHARES_MAX as u64) });
        }
        Size::Amount(amount) if amount.0 <= 0 => return Err(Reject::InvalidQuantity),
        _ => {}
    }
    if asked.post_only && immediate {
        return Err(Reject::PostOnlyType);
    }
    if gtd && asked.expiration.is_none_or(|at| at.0 <= now) {
        return Err(Reject::InvalidExpiration);
    }
    Ok(())
}

/// gateway/docs/wire.md §11: the first answer, if the same request came before.
fn replayed(
    user: &User,
    request: Option<&RequestIdentity>,
    now: u64,
    client_ids: u64,
) -> Result<Option<Expected>, Reject> {
    let Some(request) = request else { return Ok(None) };
    let Some(known) = user.request(&request.client_order_id, now, client_ids) else { return Ok(None) };
    let same = known.digest == request.digest;
    match request.source {
        IdSource::Implicit if !same || now - known.first.order.created_at > 600_000_000 => return Ok(None),
        IdSource::Header if !same => return Err(Reject::IdempotencyKeyReuse),
        IdSource::Body if !same => return Err(Reject::DuplicateClientOrderId),
        _ => {}
    }
    let mut then = ExpectedOrder { replay: true, ..known.first.clone() };
    let order = &mut then.order;
    // Figures of the walk are not repeated.
    (order.figures.spread_bps, order.figures.impact_bps, order.figures.levels) = (None, None, None);
    let (id, requested) = (OrderId(order.id), Qty(order.quantity as u64));
    let limit = engine::amount::Price(order.limit);
    Ok(Some(match order.closed.map(|(reason, _)| reason) {
        Some(CloseReason::FokNotFilled) => {
            let fillable = Qty(known.fillable);
            Expected::Killed(Reject::FokNotFilled { order: id, fillable, requested, limit }, Box::new(then))
        }
        Some(CloseReason::FakNoFill) => Expected::Killed(Reject::NoExecutableDepth { order: Some(id) }, Box::new(then)),
        _ => Expected::Order(Box::new(then)),
    }))
}
