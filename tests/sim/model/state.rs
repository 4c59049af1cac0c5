//! The state of the model: users with their wallets, keys, orders, positions and requests, and the markets.
//!
//! Reservations, remainders and an order's status are computed here on every read.

use super::billing::Bought;
use super::expected::ExpectedOrder;
use super::{book, half_up, wallets};
use engine::command::Wallets;
use engine::market::terms::{MarketState, Resolution};
use engine::order::{CloseReason, EntryRoute, Liquidity, OrderType, PriceSource, Side, Status, TimeInForce};
use engine::user::{Permissions, Tier, WalletKind};
use std::collections::BTreeMap;

/// A user of the model.
#[derive(Clone, Debug)]
pub struct User {
    pub id: u64,
    pub sub: Option<String>,
    pub grant: Option<(Tier, Option<u64>)>,
    pub wallets: Vec<Wallet>,
    pub keys: Vec<Key>,
    pub orders: BTreeMap<u64, Order>,
    pub positions: Vec<Position>,
    pub requests: Vec<Request>,
    /// UTC day and accepted orders on it.
    pub quota: (u64, u32),
    pub beats: Vec<Beat>,
    /// Prefixes that were granted, oldest first.
    pub prefixes: Vec<u64>,
    /// Number of the next object, with the count of granted prefixes in the bits from 28 on.
    pub next: u64,
    /// Order facts, the first has number 1.
    pub facts: Vec<Fact>,
    /// Purchases, and the events that were processed.
    pub purchases: Vec<Bought>,
    pub billed: Vec<String>,
}

/// What happened to an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    Placed {
        order: u64,
        rests: bool,
    },
    /// The order's totals after it, and whether it rested before.
    Filled {
        order: u64,
        trade: u64,
        resting: bool,
        filled: i128,
    },
    Closed {
        order: u64,
    },
}

#[derive(Clone, Debug)]
pub struct Wallet {
    pub id: u64,
    pub kind: WalletKind,
    pub label: Option<String>,
    pub baseline: i128,
    pub cash: i128,
    /// Bought cash, less what refunds took back.
    pub deposits: i128,
    /// When cash was bought or taken back.
    pub paid_in_at: Vec<u64>,
    pub generation: u32,
    pub parent: Option<u64>,
    pub opened_at: u64,
    pub archived_at: Option<u64>,
    /// Cash at its opening.
    pub opening: i128,
    /// Worth at full hours that differ from the hour before.
    pub points: Vec<(u64, wallets::Worth)>,
    pub resets: Vec<u64>,
}

#[derive(Clone, Debug)]
pub struct Key {
    pub id: u64,
    pub prefix: String,
    pub name: Option<String>,
    pub tier: Tier,
    pub permissions: Permissions,
    pub created_at: u64,
    pub expires_at: Option<u64>,
    pub revoked_at: Option<u64>,
    pub last_used_at: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Order {
    pub id: u64,
    pub wallet: u64,
    pub token: u32,
    pub side: Side,
    pub order_type: OrderType,
    pub time_in_force: TimeInForce,
    pub limit: u16,
    pub quantity: i128,
    pub amount: Option<i128>,
    pub expiration: Option<u64>,
    pub post_only: bool,
    pub client_order_id: Option<String>,
    pub hash: Option<[u8; 32]>,
    pub route: EntryRoute,
    pub rate: u32,
    pub created_at: u64,
    pub figures: Figures,
    /// Rests without having met a live book: the first one decides whether it takes.
    pub awaiting: bool,
    pub held: bool,
    /// Rested at any time; open until it ends.
    pub resting: bool,
    pub fills: Vec<Fill>,
    pub closed: Option<(CloseReason, u64)>,
    /// Cash in the answer to its placement, for a look-up without its request. `None`: its wallet had a resting BUY,
    /// perhaps itself, that had met no live book.
    pub answered_cash: Option<i128>,
}

/// Figures at placement (engine/docs/execution.md §8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub displayed: Option<i128>,
    pub quote_age_ms: Option<u32>,
    pub spread_bps: Option<u32>,
    pub slippage_bps: Option<u32>,
    pub impact_bps: Option<u32>,
    pub levels: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    pub id: u64,
    pub qty: i128,
    pub notional: i128,
    pub fee: i128,
    pub rate: u32,
    pub liquidity: Liquidity,
    pub source: PriceSource,
    pub at: u64,
}

#[derive(Clone, Debug)]
pub struct Position {
    pub id: u64,
    pub wallet: u64,
    pub token: u32,
    pub qty: i128,
    pub cost: i128,
    pub realized: i128,
    pub closed_at: Option<u64>,
    /// Price per share in 10⁻⁴ USD and amount.
    pub paid_out: Option<(u16, i128)>,
    /// Ended with its wallet's generation.
    pub reset: bool,
}

/// A remembered request with its first answer.
#[derive(Clone, Debug)]
pub struct Request {
    pub id: String,
    pub digest: [u8; 32],
    /// Shares within the limit of a killed FOK.
    pub fillable: u64,
    pub first: ExpectedOrder,
}

/// A heartbeat registration; `lapses_at` is lost in a restart.
#[derive(Clone, Debug)]
pub struct Beat {
    pub label: String,
    pub interval_ms: u32,
    pub lapses_at: u64,
}

/// A market as published to traders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Market {
    pub tick: u16,
    pub end: Option<u64>,
    pub state: MarketState,
    pub ended: bool,
    pub resolution: Option<Resolution>,
    pub settled: bool,
    pub rate: u32,
}

impl Order {
    pub fn filled(&self) -> i128 {
        self.fills.iter().map(|fill| fill.qty).sum()
    }

    pub fn notional(&self) -> i128 {
        self.fills.iter().map(|fill| fill.notional).sum()
    }

    pub fn fee(&self) -> i128 {
        self.fills.iter().map(|fill| fill.fee).sum()
    }

    pub fn rest(&self) -> i128 {
        (self.quantity - self.filled()).max(0)
    }

    /// engine/docs/orders.md §3.
    pub fn status(&self) -> Status {
        let immediate = matches!(self.time_in_force, TimeInForce::Fok | TimeInForce::Fak | TimeInForce::Ioc);
        match self.closed.map(|(reason, _)| reason) {
            Some(CloseReason::FakRest) => Status::Filled,
            Some(CloseReason::MarketResolved | CloseReason::MarketClosed) => Status::Expired,
            Some(_) => Status::Cancelled,
            None if immediate || self.rest() == 0 => Status::Filled,
            None => Status::Pending,
        }
    }

    pub fn is_open(&self) -> bool {
        self.status() == Status::Pending
    }

    /// Reserved cash (engine/docs/execution.md §6): limit × remainder rounded up, and the taker fee as long as it may
    /// still take.
    pub fn reserved_cash(&self) -> i128 {
        if !self.is_open() || self.side == Side::Sell { 0 } else { self.would_reserve(self.rest(), self.awaiting) }
    }

    /// The reservation of a BUY with this remainder.
    pub fn would_reserve(&self, rest: i128, awaiting: bool) -> i128 {
        let price = i128::from(self.limit) * rest;
        let fee = if awaiting && !self.post_only { book::fee(rest, self.limit, self.rate) } else { 0 };
        (price + 9_999) / 10_000 + fee
    }

    /// Reserved shares.
    pub fn reserved_shares(&self) -> i128 {
        if self.is_open() && self.side == Side::Sell { self.rest() } else { 0 }
    }
}

impl User {
    pub fn new(id: u64, sub: Option<String>) -> User {
        User {
            id,
            sub,
            grant: None,
            wallets: Vec::new(),
            keys: Vec::new(),
            orders: BTreeMap::new(),
            positions: Vec::new(),
            requests: Vec::new(),
            quota: (0, 0),
            beats: Vec::new(),
            prefixes: Vec::new(),
            next: 1,
            facts: Vec::new(),
            purchases: Vec::new(),
            billed: Vec::new(),
        }
    }

    /// The id of the next object (engine/docs/orders.md §8).
    pub fn next_id(&self) -> u64 {
        (self.prefixes.last().unwrap_or(&self.id) << 28) + self.next % (1 << 28)
    }

    /// Uses that id.
    pub fn take_id(&mut self) -> u64 {
        let id = self.next_id();
        self.next += 1;
        id
    }

    pub fn open_orders(&self) -> impl Iterator<Item = &Order> {
        self.orders.values().filter(|order| order.is_open())
    }

    /// Cash of a wallet that open orders reserve.
    pub fn reserved(&self, wallet: u64) -> i128 {
        self.open_orders().filter(|order| order.wallet == wallet).map(Order::reserved_cash).sum()
    }

    pub fn available(&self, wallet: u64) -> i128 {
        let cash = self.wallets.iter().find(|known| known.id == wallet).map_or(0, |known| known.cash);
        cash - self.reserved(wallet)
    }

    pub fn position(&self, wallet: u64, token: u32) -> Option<&Position> {
        let open = |position: &&Position| position.closed_at.is_none();
        self.positions.iter().filter(open).find(|held| (held.wallet, held.token) == (wallet, token))
    }

    /// Shares of a position that open orders reserve.
    pub fn reserved_of(&self, held: &Position) -> i128 {
        let same = |order: &&Order| (order.wallet, order.token) == (held.wallet, held.token);
        if held.closed_at.is_some() { 0 } else { self.open_orders().filter(same).map(Order::reserved_shares).sum() }
    }

    pub fn wallet_of(&self, kind: WalletKind) -> Option<&Wallet> {
        self.wallets.iter().find(|wallet| wallet.kind == kind)
    }

    /// engine/docs/account.md §1.
    pub fn wallets_in(&self, which: Wallets) -> Vec<u64> {
        let chosen = |wallet: &&Wallet| match which {
            Wallets::Api => wallet.kind == WalletKind::Api,
            Wallets::All => wallet.archived_at.is_none(),
            Wallets::Any => true,
            Wallets::One(id) => wallet.id == id.0,
        };
        self.wallets.iter().filter(chosen).map(|wallet| wallet.id).collect()
    }

    /// Number of the oldest order fact that is kept (gateway/docs/streams.md §1.6).
    pub fn oldest_fact(&self) -> u64 {
        (self.facts.len() as u64).saturating_sub(1_024) + 1
    }

    /// An order as an answer shows it now.
    pub fn show(&self, id: u64) -> ExpectedOrder {
        let order = self.orders[&id].clone();
        ExpectedOrder {
            available: Some(self.available(order.wallet)),
            position: self.position(order.wallet, order.token).map(|held| (held.qty, held.cost)),
            order,
            replay: false,
        }
    }

    /// The newest request with that id, if the id counts.
    pub fn request(&self, id: &str, now: u64, client_ids: u64) -> Option<&Request> {
        let known = self.requests.iter().rev().find(|known| known.id == *id)?;
        (known.first.order.created_at + client_ids >= now).then_some(known)
    }

    /// The signed order with this hash.
    pub fn signed(&self, hash: &[u8; 32]) -> Option<&Order> {
        self.orders.values().find(|order| order.hash.as_ref() == Some(hash))
    }

    /// A looked-up order: with the cash of its first answer; if its id does not count and its wallet was reset since,
    /// with the present cash.
    pub fn look_up(&self, id: u64, now: u64, client_ids: u64) -> ExpectedOrder {
        let mut shown = self.show(id);
        let order = &shown.order;
        if let Some(known) = self.requests.iter().find(|known| known.first.order.id == id)
            && order.created_at + client_ids >= now
        {
            shown.available = known.first.available;
            return shown;
        }
        let wallet = self.wallets.iter().find(|known| known.id == order.wallet).expect("it is known");
        // The rows do not show which of the two was first.
        let paid_then = |held: &Position| held.wallet == order.wallet && held.closed_at == Some(order.created_at);
        let is_unclear = self.positions.iter().any(paid_then) || wallet.paid_in_at.contains(&order.created_at);
        if is_unclear {
            shown.available = None;
        } else if !wallet.resets.iter().any(|at| *at >= order.created_at) {
            shown.available = order.answered_cash;
        }
        shown
    }

    /// Books one fill: cash, position, order (engine/docs/execution.md §6). `resting`: the order rested before.
    pub fn fill(&mut self, order: u64, fill: Fill, resting: bool) {
        let Order { side, wallet, token, .. } = self.orders[&order];
        let (qty, notional, fee, at) = (fill.qty, fill.notional, fill.fee, fill.at);
        let known = self.orders.get_mut(&order).expect("it is known");
        let trade = fill.id;
        known.fills.push(fill);
        let filled = known.filled();
        self.facts.push(Fact::Filled { order, trade, resting, filled });
        let cash = &mut self.wallets.iter_mut().find(|known| known.id == wallet).expect("it is known").cash;
        *cash += if side == Side::Buy { -notional } else { notional } - fee;
        let open = |held: &&mut Position| (held.wallet, held.token, held.closed_at) == (wallet, token, None);
        if self.position(wallet, token).is_none() {
            let id = self.take_id();
            self.positions.push(Position {
                id,
                wallet,
                token,
                qty: 0,
                cost: 0,
                realized: 0,
                closed_at: None,
                paid_out: None,
                reset: false,
            });
        }
        let held = self.positions.iter_mut().find(open).expect("opened just now");
        if side == Side::Buy {
            held.qty += qty;
            held.cost += notional;
        } else {
            let cost_out = half_up(held.cost * qty, held.qty);
            held.qty -= qty;
            held.cost -= cost_out;
            held.realized += notional - cost_out;
            held.closed_at = (held.qty == 0).then_some(at);
        }
    }

    pub fn close(&mut self, order: u64, reason: CloseReason, at: u64) {
        self.facts.push(Fact::Closed { order });
        let order = self.orders.get_mut(&order).expect("it is known");
        order.closed = Some((reason, at));
        order.awaiting = false;
    }
}
