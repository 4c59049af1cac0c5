//! Random but sound histories for tests: records as `decide` could have made them, and beside them a slow, obvious
//! model of what cash, reservations and holdings must be.

use crate::amount::{Bps, Cash, Price, Qty, exact_notional, notional_half_up, reservation_rounded_up, share_half_up};
use crate::id::{InstrumentId, KeyId, OrderId, PositionId, TradeId, UserId, WalletId};
use crate::mutation::Mutation;
use crate::order::{
    CloseReason, EntryRoute, Liquidity, OrderTerms, OrderType, PriceSource, Quality, Side, Taken, TimeInForce,
};
use crate::time::{HOUR, Timestamp};
use crate::user::{Permissions, Tier, WalletKind};
use std::collections::BTreeMap;

/// A small seeded generator (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// One of `0..below`.
    pub fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn text(&mut self) -> String {
        let len = self.below(30);
        (0..len).map(|_| self.pick(&['a', 'b', '7', '-', 'é', '雨'])).collect()
    }

    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Dice) -> T) -> Option<T> {
        self.chance(50).then(|| make(self))
    }
}

/// What a user must have, kept in plain maps.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelUser {
    next: u32,
    pub cash: BTreeMap<WalletId, i64>,
    pub fees: BTreeMap<WalletId, i64>,
    pub orders: BTreeMap<OrderId, ModelOrder>,
    pub positions: BTreeMap<PositionId, ModelPosition>,
    pub fills: u64,
    pub facts: u64,
    pub keys: Vec<KeyId>,
    pub remembered: Vec<(String, OrderId)>,
    pub armed: BTreeMap<String, u32>,
    /// What came from outside, less what went back: opening cash and resets.
    pub opening: BTreeMap<WalletId, i64>,
    pub baseline: BTreeMap<WalletId, i64>,
    pub archived: Vec<WalletId>,
    pub labels: BTreeMap<WalletId, Option<String>>,
    /// Points: hour, cash, value, baseline.
    pub equity: BTreeMap<WalletId, Vec<(u32, i64, i64, i64)>>,
    opened_at: BTreeMap<WalletId, u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct ModelOrder {
    pub wallet: WalletId,
    pub instrument: InstrumentId,
    pub side: Side,
    pub limit: Price,
    pub qty: u64,
    pub filled: u64,
    pub rests: bool,
    pub awaiting: bool,
    /// Cash of a BUY, shares of a SELL.
    pub reserved: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct ModelPosition {
    pub wallet: WalletId,
    pub instrument: InstrumentId,
    pub qty: u64,
    pub cost: i64,
    pub realized: i64,
    pub open: bool,
}

/// Makes records, one command each.
pub(crate) struct Sample {
    pub dice: Dice,
    pub users: BTreeMap<UserId, ModelUser>,
    pub now: Timestamp,
    users_max: u64,
    instruments: u64,
}

impl ModelUser {
    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    pub fn reserved_cash(&self, wallet: WalletId) -> i64 {
        let open = self.orders.values().filter(|order| order.wallet == wallet && order.side == Side::Buy);
        open.map(|order| order.reserved as i64).sum()
    }

    pub fn reserved_qty(&self, wallet: WalletId, instrument: InstrumentId) -> u64 {
        let open = self.orders.values().filter(|order| order.side == Side::Sell && order.wallet == wallet);
        open.filter(|order| order.instrument == instrument).map(|order| order.reserved).sum()
    }

    fn available(&self, wallet: WalletId) -> i64 {
        self.cash[&wallet] - self.reserved_cash(wallet)
    }

    fn active(&self) -> Vec<WalletId> {
        self.cash.keys().copied().filter(|wallet| !self.archived.contains(wallet)).collect()
    }

    fn held(&self, wallet: WalletId, instrument: InstrumentId) -> Option<PositionId> {
        let mut open = self.positions.iter().filter(|(_, held)| held.open);
        open.find(|(_, held)| held.wallet == wallet && held.instrument == instrument).map(|(id, _)| *id)
    }
}

impl Sample {
    pub fn new(seed: u64, users_max: u64, instruments: u64) -> Sample {
        Sample {
            dice: Dice(seed),
            users: BTreeMap::new(),
            now: Timestamp(1_790_000_000_000_000),
            users_max,
            instruments,
        }
    }

    /// The facts of one more command, and whose they are. Never empty.
    pub fn record(&mut self) -> (UserId, Vec<Mutation>) {
        loop {
            self.now = self.now.plus(self.dice.below(HOUR / 4));
            let new = (self.users.len() as u64) < self.users_max && self.dice.chance(2);
            if self.users.is_empty() || new {
                return self.create();
            }
            let owner = UserId(1 + self.dice.below(self.users.len() as u64));
            let facts = self.act(owner);
            if !facts.is_empty() {
                return (owner, facts);
            }
        }
    }

    fn create(&mut self) -> (UserId, Vec<Mutation>) {
        let owner = UserId(self.users.len() as u64 + 1);
        let at = self.now;
        let mut user = ModelUser::default();
        let mut facts =
            vec![Mutation::UserCreated { sub: self.dice.maybe(Dice::text), email: self.dice.maybe(Dice::text), at }];
        for kind in [WalletKind::Main, WalletKind::Api] {
            facts.push(open_wallet(owner, &mut user, kind, 1_000, at));
        }
        facts.push(issue_key(owner, &mut user, &mut self.dice, at));
        self.users.insert(owner, user);
        (owner, facts)
    }

    fn act(&mut self, owner: UserId) -> Vec<Mutation> {
        let at = self.now;
        let user = self.users.get_mut(&owner).expect("made before");
        let dice = &mut self.dice;
        match dice.below(100) {
            0..45 => {
                let instrument = InstrumentId(dice.below(self.instruments) as u32);
                place(owner, user, dice, instrument, at)
            }
            45..65 => fill_resting(owner, user, dice, at),
            65..85 => close_some(user, dice, at),
            85..88 => settle(user, dice, at),
            88..90 => touch_resting(user, dice, at),
            90 | 91 => touch_wallets(user, dice, at),
            92 if user.active().len() < 4 => vec![open_wallet(owner, user, WalletKind::Sandbox, 500, at)],
            93 => vec![Mutation::GrantSet {
                tier: dice.pick(&[Tier::Free, Tier::Pro, Tier::Enterprise]),
                expires_at: dice.maybe(|dice| at.plus(dice.below(HOUR))),
                at,
            }],
            94..98 => touch_keys(owner, user, dice, at),
            _ => touch_safeguards(user, dice, at),
        }
    }
}

fn open_wallet(owner: UserId, user: &mut ModelUser, kind: WalletKind, dollars: i64, at: Timestamp) -> Mutation {
    let wallet = WalletId(owner.object(user.number()));
    let baseline = Cash::from_dollars(dollars);
    user.cash.insert(wallet, baseline.0);
    user.fees.insert(wallet, 0);
    user.opening.insert(wallet, baseline.0);
    user.baseline.insert(wallet, baseline.0);
    user.labels.insert(wallet, None);
    user.opened_at.insert(wallet, at.hour());
    Mutation::WalletOpened { wallet, kind, label: None, baseline, generation: 1, parent: None, at }
}

/// A wallet gets a name, a point, or an end.
fn touch_wallets(user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let wallet = dice.pick(&user.active());
    match dice.below(6) {
        0 => {
            let label = dice.maybe(Dice::text);
            user.labels.insert(wallet, label.clone());
            vec![Mutation::WalletRelabelled { wallet, label, at }]
        }
        1..5 => {
            let (cash, baseline, hour) = (user.cash[&wallet], user.baseline[&wallet], at.hour());
            let points = user.equity.entry(wallet).or_default();
            if points.last().map_or(user.opened_at[&wallet], |last| last.0) >= hour {
                return Vec::new();
            }
            if points.is_empty() {
                points.push((user.opened_at[&wallet], baseline, 0, baseline));
            }
            let value = Cash(dice.below(1_000_000_000) as i64);
            points.push((hour, cash, value.0, baseline));
            vec![Mutation::EquityNoted { wallet, hour: Timestamp::of_hour(hour), value, at }]
        }
        _ => end_wallet(user, wallet, dice, at),
    }
}

/// Its orders end, its positions close without cash; then it begins anew or is put away.
fn end_wallet(user: &mut ModelUser, wallet: WalletId, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let open: Vec<OrderId> =
        user.orders.iter().filter(|(_, order)| order.rests && order.wallet == wallet).map(|(id, _)| *id).collect();
    let mut facts: Vec<Mutation> =
        open.into_iter().map(|order| close(user, order, CloseReason::BalanceReset, at)).collect();
    for (id, held) in user.positions.iter_mut().filter(|(_, held)| held.open && held.wallet == wallet) {
        (held.qty, held.cost, held.open) = (0, 0, false);
        facts.push(Mutation::PositionReset { position: *id, at });
    }
    // The first two are never put away.
    if user.cash.keys().position(|known| *known == wallet) >= Some(2) {
        user.archived.push(wallet);
        facts.push(Mutation::WalletArchived { wallet, at });
        return facts;
    }
    let (before, baseline) = (user.cash[&wallet], Cash::from_dollars(500 + dice.below(9) as i64));
    let opening = (user.opened_at[&wallet], user.baseline[&wallet], 0, user.baseline[&wallet]);
    let points = user.equity.entry(wallet).or_default();
    if points.is_empty() {
        points.push(opening);
    }
    *user.opening.get_mut(&wallet).expect("as the cash") += baseline.0 - before;
    user.cash.insert(wallet, baseline.0);
    user.baseline.insert(wallet, baseline.0);
    facts.push(Mutation::WalletReset { wallet, baseline, at });
    facts
}

fn issue_key(owner: UserId, user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Mutation {
    let key = KeyId(owner.object(user.number()));
    user.keys.push(key);
    Mutation::KeyIssued {
        key,
        hash: [dice.next() as u8; 32],
        alias_hash: [dice.next() as u8; 32],
        prefix: "svc_live_4f0c9d2".to_owned(),
        name: dice.maybe(Dice::text),
        tier: Tier::Free,
        permissions: Permissions::ReadTrade,
        beta_until: None,
        at,
    }
}

fn touch_keys(owner: UserId, user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let key = dice.pick(&user.keys);
    match dice.below(5) {
        0 => vec![issue_key(owner, user, dice, at)],
        1 => vec![Mutation::KeyRenamed { key, name: dice.maybe(Dice::text), at }],
        2 => vec![Mutation::KeyRevoked { key, at }],
        3 => vec![Mutation::KeyUsed { key, at }],
        _ => {
            let issued = issue_key(owner, user, dice, at);
            let replaced_by = *user.keys.last().expect("just issued");
            vec![issued, Mutation::KeyExpiring { key, expires_at: at.plus(HOUR), replaced_by, at }]
        }
    }
}

fn touch_safeguards(user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let label = dice.pick(&["", "bot", "other"]).to_owned();
    if dice.chance(30) {
        user.armed.remove(&label);
        return vec![Mutation::SafeguardEnded { label, at }];
    }
    let interval_ms = 1_000 + dice.below(59_000) as u32;
    user.armed.insert(label.clone(), interval_ms);
    vec![Mutation::SafeguardArmed { label, interval_ms, at }]
}

/// A new order: killed, filled, partly filled, resting, or several of these.
fn place(
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
    let order = OrderId(owner.object(user.number()));
    let terms = OrderTerms {
        wallet,
        key: user.keys[0],
        instrument,
        side,
        order_type: OrderType::Limit,
        time_in_force,
        limit,
        quantity: Qty(qty),
        amount: None,
        expiration: (time_in_force == TimeInForce::Gtd).then(|| at.plus(HOUR)),
        post_only: dice.chance(10),
        client_order_id: client_order_id.clone(),
        route: EntryRoute::Native,
        fee_rate: Bps(500),
        marketable: dice.chance(50),
        quality: Quality {
            displayed: dice.maybe(|dice| Cash(dice.below(1_000_000) as i64)),
            quote_age_ms: dice.maybe(|dice| dice.next() as u32 / 2),
            spread_bps: dice.maybe(|dice| dice.below(20_000) as u32),
            book_walk_levels: dice.maybe(|dice| dice.below(99) as u16),
            ..Quality::default()
        },
        rounded_from: dice.chance(5).then(|| "1.00001".to_owned()),
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
    let mut facts = vec![Mutation::OrderPlaced { order, terms, counted: part > 0 || !immediate, at }];
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
            facts.push(Mutation::OrderClosed { order, reason, at });
        } else {
            known.rests = true;
            known.awaiting = part == 0 && dice.chance(20);
            facts.push(rest(order, &mut known, dice, at));
            user.orders.insert(order, known);
        }
    }
    if let Some(id) = client_order_id.or_else(|| dice.chance(10).then(|| format!("implicit {order}"))) {
        user.remembered.push((id.clone(), order));
        facts.push(Mutation::RequestRemembered { order, client_order_id: id, digest: [dice.next() as u8; 32] });
    }
    facts
}

/// The reservation of the rest; an order that awaits its book sets its fee aside too.
fn rest(order: OrderId, known: &mut ModelOrder, dice: &mut Dice, at: Timestamp) -> Mutation {
    let unfilled = Qty(known.qty - known.filled);
    known.reserved = match known.side {
        Side::Buy => {
            let fee = if known.awaiting { notional_half_up(exact_notional(known.limit, unfilled)).0 / 20 } else { 0 };
            (reservation_rounded_up(known.limit, unfilled).0 + fee) as u64
        }
        Side::Sell => unfilled.0,
    };
    Mutation::OrderRested {
        order,
        reserved_cash: Cash(if known.side == Side::Buy { known.reserved as i64 } else { 0 }),
        reserved_qty: Qty(if known.side == Side::Sell { known.reserved } else { 0 }),
        awaiting_book: known.awaiting,
        held: dice.chance(20),
        at,
    }
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
        // A BUY maker fill costs what the reservation loses (execution.md §6).
        (true, Side::Buy) if !known.awaiting => Cash((known.reserved - reserved) as i64),
        _ => notional_half_up(exact_notional(known.limit, Qty(qty))),
    };
    let fee = if maker { Cash::ZERO } else { Cash(notional.0 / 20 / 10 * 10) };
    let trade = TradeId(owner.object(user.number()));
    let held = user.held(known.wallet, known.instrument);
    let position = held.unwrap_or_else(|| PositionId(owner.object(user.number())));
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
    Mutation::OrderFilled {
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
    }
}

fn open_order(user: &ModelUser, dice: &mut Dice) -> Option<OrderId> {
    let open: Vec<OrderId> = user.orders.iter().filter(|(_, order)| order.rests).map(|(id, _)| *id).collect();
    (!open.is_empty()).then(|| dice.pick(&open))
}

fn fill_resting(owner: UserId, user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let Some(order) = open_order(user, dice) else { return Vec::new() };
    let unfilled = user.orders[&order].qty - user.orders[&order].filled;
    let qty = if dice.chance(50) { unfilled } else { 1 + dice.below(unfilled) };
    vec![fill(owner, user, dice, order, qty, Liquidity::Maker, at)]
}

fn close(user: &mut ModelUser, order: OrderId, reason: CloseReason, at: Timestamp) -> Mutation {
    let known = user.orders.get_mut(&order).expect("it is open");
    (known.rests, known.reserved) = (false, 0);
    user.facts += 1;
    Mutation::OrderClosed { order, reason, at }
}

fn close_some(user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
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

/// A hold begins or ends, or an order has met its book.
fn touch_resting(user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let Some(order) = open_order(user, dice) else { return Vec::new() };
    if !user.orders[&order].awaiting {
        return vec![Mutation::OrderHeld { order, held: dice.chance(50), at }];
    }
    let mut known = user.orders[&order].clone();
    known.awaiting = false;
    let rested = rest(order, &mut known, dice, at);
    user.orders.insert(order, known);
    vec![rested]
}

/// The market of one of the user's open positions resolves.
fn settle(user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let open: Vec<InstrumentId> =
        user.positions.values().filter(|held| held.open).map(|held| held.instrument).collect();
    if open.is_empty() {
        return Vec::new();
    }
    let market = dice.pick(&open).market();
    let concerned: Vec<OrderId> = user
        .orders
        .iter()
        .filter(|(_, order)| order.rests && order.instrument.market() == market)
        .map(|(id, _)| *id)
        .collect();
    let mut facts: Vec<Mutation> =
        concerned.into_iter().map(|order| close(user, order, CloseReason::MarketResolved, at)).collect();
    for (id, held) in user.positions.iter_mut().filter(|(_, held)| held.open && held.instrument.market() == market) {
        let payout_per_share = dice.pick(&[Price(0), Price(5_000), Price::ONE]);
        let payout = notional_half_up(exact_notional(payout_per_share, Qty(held.qty)));
        *user.cash.get_mut(&held.wallet).expect("a position has a wallet") += payout.0;
        held.realized += payout.0 - held.cost;
        (held.qty, held.cost, held.open) = (0, 0, false);
        facts.push(Mutation::PositionSettled { position: *id, payout_per_share, payout, at });
    }
    facts
}
