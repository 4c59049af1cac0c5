//! Users with ended rows of every kind, and the comparison of what is read with what is in memory.

use super::{EndedOf, EndedStore, EndedWriter};
use crate::store::{Store, StoreError};
use crate::testing::copy_running;
use engine::amount::{Bps, Cash, Price, Qty};
use engine::departed::{Departed as _, EndedOrder, Leaving, put_order, put_position, put_request};
use engine::fact;
use engine::id::{KeyId, MarketId, OrderId, Outcome, PositionId, TradeId, UserId, WalletId};
use engine::mutation::Mutation;
use engine::order::{CloseReason, Fill, Liquidity, Order, OrderTerms, PriceSource, Side};
use engine::time::{Timestamp, UtcDay};
use engine::user::{Permissions, Position, Tier, Users, WalletKind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const START: Timestamp = Timestamp(1_790_000_000_000_000);
pub const LOG: u128 = 0x00c0_ffee_0000_0000_0000_0000_0000_0001;
pub const MARKETS: u64 = 5;
pub const CACHE_BYTES: u64 = 4 << 20;

/// A new store in the folder of a history.
pub fn create(folder: &Path) -> EndedStore {
    drop(Store::open(folder, CACHE_BYTES).expect("a new store"));
    open(folder)
}

pub fn open(folder: &Path) -> EndedStore {
    EndedStore::open(folder, CACHE_BYTES).expect("a sound store")
}

/// Opens the store of a folder, and checks it.
pub fn sound(folder: &Path, what: &str) {
    assert_eq!(crate::check(folder).expect("it can be opened").damages, [], "{what}");
}

/// A copy of a store that is open, as a kill would leave it.
pub fn copied(from: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    copy_running(from, copy.path());
    copy
}

/// Copies of the store in a folder after every step of what `writes` does with its writer, with the names of the steps.
pub fn kills(folder: &Path, writer: &mut EndedWriter, writes: impl FnOnce(&mut EndedWriter)) -> Vec<(String, TempDir)> {
    let copies: Arc<Mutex<Vec<(String, TempDir)>>> = Arc::default();
    let (into, from) = (copies.clone(), folder.to_owned());
    writer.watch = Some(Box::new(move |step| {
        into.lock().expect("not poisoned").push((step.to_owned(), copied(&from)));
        Ok(())
    }));
    writes(writer);
    writer.watch = None;
    std::mem::take(&mut *copies.lock().expect("not poisoned"))
}

/// Makes a writer fail at the first of these steps that it comes to, and only then.
pub fn fail_at(writer: &mut EndedWriter, step: &'static str, kind: std::io::ErrorKind) {
    let mut has_failed = false;
    writer.watch = Some(Box::new(move |at| match at == step && !std::mem::replace(&mut has_failed, true) {
        true => Err(StoreError::Io(std::io::Error::new(kind, "as planned"))),
        false => Ok(()),
    }));
}

/// What is placed.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    pub market: u64,
    pub is_sell: bool,
    pub client_order_id: Option<String>,
    /// The id of the request, if it is not the order's.
    pub request_id: Option<String>,
    pub order_hash: Option<[u8; 32]>,
    /// Shares of each fill.
    pub fills: Vec<u64>,
    /// Cancelled with this many shares unfilled.
    pub rest: u64,
}

/// Users, and which of their rows have ended.
#[derive(Default)]
pub struct World {
    pub users: Users,
    numbers: BTreeMap<UserId, u32>,
    /// The last prefix of a user, if it has others than its own id.
    prefixes: BTreeMap<UserId, UserId>,
    /// Open episodes with their shares and cost.
    held: BTreeMap<(UserId, MarketId), (PositionId, u64, i64)>,
    pub ended: BTreeMap<UserId, (Vec<OrderId>, Vec<PositionId>)>,
    time: u64,
    /// Further µs between two facts.
    step: u64,
    pub dice: u64,
}

impl World {
    pub fn roll(&mut self, below: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % below
    }

    fn now(&mut self) -> Timestamp {
        self.time += 1_737 + self.step;
        START.plus(self.time)
    }

    fn object(&mut self, user: UserId) -> u64 {
        let number = self.numbers.get_mut(&user).expect("a user");
        *number += 1;
        self.prefixes.get(&user).unwrap_or(&user).object(*number)
    }

    /// From now on the ids of a user's objects have this prefix.
    pub fn extend(&mut self, user: UserId, prefix: UserId) {
        let at = self.now();
        self.apply(user, Mutation::NumbersExtended(fact::NumbersExtended { prefix, at }));
        self.prefixes.insert(user, prefix);
    }

    fn apply(&mut self, user: UserId, fact: Mutation) {
        self.users.apply(user, &fact);
    }

    pub fn add_user(&mut self, id: u64) -> UserId {
        let (user, at) = (UserId(id), self.now());
        self.numbers.insert(user, 0);
        self.apply(user, Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at }));
        let wallet = WalletId(self.object(user));
        self.apply(
            user,
            Mutation::WalletOpened(fact::WalletOpened {
                wallet,
                kind: WalletKind::Api,
                label: None,
                baseline: Cash(1 << 50),
                generation: 1,
                parent: None,
                at,
            }),
        );
        let key = KeyId(self.object(user));
        self.apply(
            user,
            Mutation::KeyIssued(fact::KeyIssued {
                key,
                hash: [id as u8; 32],
                alias_hash: [!(id as u8); 32],
                prefix: "svc_live_4f0c9d2".to_owned(),
                name: None,
                tier: Tier::Free,
                permissions: Permissions::ReadTrade,
                beta_until: None,
                at,
            }),
        );
        self.ended.insert(user, Default::default());
        user
    }

    /// Places an order of all shares of `placed`, which rests or is filled in the same moment.
    fn open(&mut self, user: UserId, placed: &Placed, rests: bool) -> OrderId {
        let order = OrderId(self.object(user));
        let (wallet, key) = (WalletId(user.object(1)), KeyId(user.object(2)));
        let market = MarketId(placed.market as u32);
        let side = if placed.is_sell { Side::Sell } else { Side::Buy };
        let shares = placed.fills.iter().sum::<u64>() + placed.rest;
        let terms = OrderTerms {
            client_order_id: placed.client_order_id.clone(),
            order_hash: placed.order_hash,
            ..OrderTerms::limit(
                wallet,
                key,
                market.instrument(Outcome::First),
                side,
                Price(4_000),
                Qty::from_shares(shares),
            )
        };
        let at = self.now();
        self.apply(user, Mutation::OrderPlaced(fact::OrderPlaced { order, terms, counted: true, at }));
        if rests {
            assert!(!placed.is_sell, "only whole sales are made here");
            let (reserved_cash, reserved_qty, at) = (Cash::ZERO, Qty::ZERO, self.now());
            let (awaiting_book, held) = (false, false);
            let rested = fact::OrderRested { order, reserved_cash, reserved_qty, awaiting_book, held, at };
            self.apply(user, Mutation::OrderRested(rested));
        }
        order
    }

    /// Places an order that rests until [`World::fill_resting`] has filled it.
    pub fn rest(&mut self, user: UserId, market: u64, shares: u64) -> OrderId {
        self.open(user, &Placed { market, rest: shares, ..Placed::default() }, true)
    }

    /// Fills shares of an order that rests.
    pub fn fill_resting(&mut self, user: UserId, order: OrderId, shares: u64) {
        let row = self.users.get(user).and_then(|user| user.order(order)).expect("it is there");
        let market = row.terms.instrument.market();
        self.fill(user, order, market, Side::Buy, shares);
        if self.users.get(user).and_then(|user| user.order(order)).is_some_and(|order| !order.is_open()) {
            self.ended.get_mut(&user).expect("a user").0.push(order);
        }
    }

    /// Places an order that ends, and returns its id.
    pub fn place(&mut self, user: UserId, placed: &Placed) -> OrderId {
        let market = MarketId(placed.market as u32);
        let side = if placed.is_sell { Side::Sell } else { Side::Buy };
        let is_immediate = placed.fills.len() == 1 && placed.rest == 0;
        let order = self.open(user, placed, !is_immediate);
        for shares in &placed.fills {
            self.fill(user, order, market, side, *shares);
        }
        let id = placed.request_id.clone().or_else(|| placed.client_order_id.clone());
        if let Some(client_order_id) = id {
            let digest = std::array::from_fn(|_| self.roll(256) as u8);
            self.apply(user, Mutation::RequestRemembered(fact::RequestRemembered { order, client_order_id, digest }));
        }
        if placed.rest > 0 {
            let (reason, at) = (CloseReason::UserCancelled, self.now());
            self.apply(user, Mutation::OrderClosed(fact::OrderClosed { order, reason, at }));
        }
        self.ended.get_mut(&user).expect("a user").0.push(order);
        order
    }

    fn fill(&mut self, user: UserId, order: OrderId, market: MarketId, side: Side, shares: u64) {
        let trade = TradeId(self.object(user));
        let known = self.held.get(&(user, market)).copied();
        let (position, held, cost) = known.unwrap_or_else(|| (PositionId(self.object(user)), 0, 0));
        let notional = Cash(400_000 * shares as i64);
        let (mut cost_out, left) = (
            Cash::ZERO,
            match side {
                Side::Buy => held + shares,
                Side::Sell => held - shares,
            },
        );
        let mut cost = cost + notional.0;
        if side == Side::Sell {
            cost -= notional.0;
            cost_out = Cash(if left == 0 { cost } else { cost * shares as i64 / held as i64 });
            cost -= cost_out.0;
        }
        let at = self.now();
        let quote_age_ms = (!trade.0.is_multiple_of(3)).then_some(12);
        self.apply(
            user,
            Mutation::OrderFilled(fact::OrderFilled {
                order,
                trade,
                position,
                qty: Qty::from_shares(shares),
                notional,
                fee: Cash(120),
                fee_rate: Bps(500),
                liquidity: Liquidity::Taker,
                source: PriceSource::BookWalk,
                quote_age_ms,
                cost_out,
                reserved_cash: Cash::ZERO,
                reserved_qty: Qty::ZERO,
                levels: Vec::new(),
                at,
                venue_at: None,
            }),
        );
        self.held.insert((user, market), (position, left, cost));
        if left == 0 {
            self.held.remove(&(user, market));
            self.ended.get_mut(&user).expect("a user").1.push(position);
        }
    }

    /// Places an order of some kind.
    pub fn place_any(&mut self, user: UserId) -> OrderId {
        let market = self.roll(MARKETS);
        let number = self.numbers[&user];
        let held = self.held.get(&(user, MarketId(market as u32))).map(|(_, shares, _)| *shares);
        let mut placed = Placed { market, ..Placed::default() };
        match self.roll(4) {
            0 => {}
            1 => placed.client_order_id = Some(format!("grid-{}", self.roll(9))),
            _ => placed.client_order_id = Some(format!("{number:032x}")),
        }
        if self.roll(6) == 0 {
            placed.request_id = Some(format!("implicit-{number}"));
            placed.order_hash = Some(std::array::from_fn(|at| (number >> (at % 4 * 8)) as u8 ^ at as u8));
        }
        match (self.roll(5), held) {
            (0, Some(shares)) => (placed.is_sell, placed.fills) = (true, vec![shares]),
            (1, _) => placed.rest = 1 + self.roll(9),
            (2, _) => (placed.fills, placed.rest) = (vec![2, 1], self.roll(2)),
            _ => placed.fills = vec![1 + self.roll(9)],
        }
        self.place(user, &placed)
    }

    /// Everything that has ended, and everything that leaves with it.
    pub fn all(&self) -> Vec<Leaving> {
        let leaving = |(user, (orders, positions)): (&UserId, &(Vec<OrderId>, Vec<PositionId>))| {
            let (mut orders, mut positions) = (orders.clone(), positions.clone());
            orders.sort();
            positions.sort();
            Leaving { user: *user, orders, positions }
        };
        self.ended.iter().map(leaving).collect()
    }

    /// Some of that: rows whose number is below `of` in hundred.
    pub fn some(&mut self, of: u64) -> Vec<Leaving> {
        let mut all = self.all();
        for leaving in &mut all {
            leaving.orders.retain(|_| self.roll(100) < of);
            leaving.positions.retain(|_| self.roll(100) < of);
        }
        all
    }
}

/// Users with this many ended orders each.
pub fn world(seed: u64, users: u64, orders: u64) -> World {
    let mut world = World { dice: seed, ..World::default() };
    for id in 1..=users {
        let user = world.add_user(id * 3);
        for _ in 0..orders {
            world.place_any(user);
        }
    }
    world
}

/// The same with `step` µs between two facts; all users place orders from the first day to the last.
pub fn world_of_days(seed: u64, users: u64, orders: u64, step: u64) -> World {
    let mut world = World { dice: seed, step, ..World::default() };
    let users: Vec<UserId> = (1..=users).map(|id| world.add_user(id * 3)).collect();
    for _ in 0..orders {
        for user in &users {
            world.place_any(*user);
        }
    }
    world
}

/// The first and the last day on which orders ended.
pub fn days(world: &World) -> (UtcDay, UtcDay) {
    let ends = world.users.iter().flat_map(|user| user.orders().iter()).filter_map(|order| order.ended_at());
    let days: Vec<UtcDay> = ends.map(Timestamp::day).collect();
    (*days.iter().min().expect("orders"), *days.iter().max().expect("orders"))
}

/// Of these rows, those that ended on a day or later.
pub fn kept(world: &World, left: &[Leaving], day: UtcDay) -> Vec<Leaving> {
    let mut kept = left.to_vec();
    for leaving in &mut kept {
        let user = world.users.get(leaving.user).expect("a user");
        let is_kept = |at: Option<Timestamp>| at.expect("it has ended").day() >= day;
        leaving.orders.retain(|id| is_kept(user.order(*id).expect("it is there").ended_at()));
        leaving.positions.retain(|id| is_kept(user.position(*id).expect("it is there").closed_at));
    }
    kept
}

fn order_bytes(order: &Order, fills: &[Fill]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_order(order, fills, &mut bytes);
    bytes
}

fn bytes_of(order: &EndedOrder) -> Vec<u8> {
    order_bytes(&order.order, &order.fills)
}

fn position_bytes(position: &Position) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_position(position, &mut bytes);
    bytes
}

fn all<T>(rows: impl Iterator<Item = Result<T, StoreError>>) -> Vec<T> {
    rows.map(|row| row.expect("readable")).collect()
}

/// Compares every answer about a user's moved rows with those in memory. Returns how many were compared.
pub fn agrees(world: &World, of: &EndedOf<'_>, user: UserId, orders: &BTreeSet<OrderId>, what: &str) -> usize {
    let hot = world.users.get(user).expect("a user");
    let mut cases = 0;
    let expected = |id: &OrderId| {
        let order = hot.order(*id).expect("it is there");
        order_bytes(order, &hot.fills_of(order))
    };
    let newest_first = || orders.iter().rev();
    for id in hot.orders().iter().map(|order| order.id) {
        let found = of.order(id).expect("readable").map(|found| bytes_of(&found));
        assert_eq!(found, orders.contains(&id).then(|| expected(&id)), "{what}: order {id}");
        cases += 1;
    }
    let befores = [None, newest_first().nth(3).copied(), orders.first().copied(), Some(OrderId(0))];
    for before in befores {
        let is_before = |id: &&OrderId| before.is_none_or(|before| **id < before);
        let found: Vec<_> = all(of.orders(None, before)).iter().map(bytes_of).collect();
        assert_eq!(found, newest_first().filter(is_before).map(expected).collect::<Vec<_>>(), "{what}: {before:?}");
        cases += found.len() + 1;
        for market in 0..MARKETS as u32 {
            let is_of = |id: &&OrderId| {
                hot.order(**id).is_some_and(|order| order.terms.instrument.market() == MarketId(market))
            };
            let found: Vec<_> = all(of.orders(Some(MarketId(market)), before)).iter().map(bytes_of).collect();
            let listed: Vec<_> = newest_first().filter(is_before).filter(is_of).map(expected).collect();
            assert_eq!(found, listed, "{what}: {before:?} in market {market}");
            cases += found.len() + 1;
        }
    }
    let fills: Vec<&Fill> = hot.fills().iter().filter(|fill| orders.contains(&fill.order)).collect();
    for before in [None, fills.get(fills.len() / 2).map(|fill| fill.id), Some(TradeId(0))] {
        let found: Vec<_> = all(of.fills(before)).iter().map(|(fill, order)| (fill.id, order.id)).collect();
        let listed = fills.iter().rev().filter(|fill| before.is_none_or(|before| fill.id < before));
        assert_eq!(found, listed.map(|fill| (fill.id, fill.order)).collect::<Vec<_>>(), "{what}: fills, {before:?}");
        cases += found.len() + 1;
    }
    for fill in hot.fills() {
        let found = of.fill(fill.id).expect("readable").map(|(found, order)| (found.id, found.qty, order.id));
        let expected = orders.contains(&fill.order).then_some((fill.id, fill.qty, fill.order));
        assert_eq!(found, expected, "{what}: fill {}", fill.id);
        cases += 1;
    }
    // The newest order of each id that was moved, and each hash.
    let ids: Vec<OrderId> = orders.iter().copied().collect();
    let mut newest: BTreeMap<String, (OrderId, Vec<u8>)> = BTreeMap::new();
    for id in &ids {
        let order = hot.order(*id).expect("it is there");
        let known = of.request_of(order).expect("readable");
        assert_eq!(known.as_ref(), hot.request_of(*id), "{what}: the request of order {id}");
        cases += 1;
        if let Some(request) = hot.request_of(*id) {
            let mut bytes = Vec::new();
            put_request(request, &mut bytes);
            newest.insert(request.id(order).expect("it has one").to_owned(), (*id, bytes));
        }
        if let Some(hash) = order.terms.order_hash() {
            assert_eq!(of.signed_order(hash).expect("readable"), Some(*id), "{what}: a hash");
            cases += 1;
        }
    }
    for (text, expected) in &newest {
        let found = of.request(text).expect("readable").expect("it was moved");
        let mut bytes = Vec::new();
        put_request(&found.request, &mut bytes);
        assert_eq!((found.order.order.id, bytes), *expected, "{what}: {text}");
        cases += 1;
    }
    assert_eq!(of.request("never sent").expect("readable"), None);
    assert_eq!(of.signed_order(&[0xee; 32]).expect("readable"), None);
    cases
}

/// The same for positions.
pub fn positions_agree(
    world: &World,
    of: &EndedOf<'_>,
    user: UserId,
    positions: &BTreeSet<PositionId>,
    what: &str,
) -> usize {
    let hot = world.users.get(user).expect("a user");
    let expected = |id: &PositionId| position_bytes(hot.position(*id).expect("it is there"));
    for id in hot.positions().iter().map(|position| position.id) {
        let found = of.position(id).expect("readable").map(|found| position_bytes(&found));
        assert_eq!(found, positions.contains(&id).then(|| expected(&id)), "{what}: position {id}");
    }
    for before in [None, positions.last().copied(), Some(PositionId(0))] {
        let found: Vec<_> = all(of.positions(before)).iter().map(position_bytes).collect();
        let listed = positions.iter().rev().filter(|id| before.is_none_or(|before| **id < before));
        assert_eq!(found, listed.map(expected).collect::<Vec<_>>(), "{what}: positions, {before:?}");
    }
    hot.positions().len() + 3
}

/// Everything of the rows that left.
pub fn all_agree(world: &World, of: impl Fn(UserId) -> EndedOf<'static>, left: &[Leaving], what: &str) -> usize {
    let mut cases = 0;
    for user in world.users.iter() {
        let leaving = left.iter().filter(|leaving| leaving.user == user.id);
        let orders = leaving.clone().flat_map(|leaving| leaving.orders.iter().copied()).collect();
        let positions = leaving.flat_map(|leaving| leaving.positions.iter().copied()).collect();
        cases += agrees(world, &of(user.id), user.id, &orders, what);
        cases += positions_agree(world, &of(user.id), user.id, &positions, what);
    }
    cases
}
