//! The slow, obvious twin of the engine: plain maps, no shards, no journal, its own arithmetic, written from
//! contract/trading.md, contract/execution.md, contract/keys.md and contract/wire.md §8 and §11.
//!
//! It is told each command when a shard takes it and says what the answer must be; and it keeps a copy of the user for
//! each record that the command must leave, so that after a crash it can be any of the states that the log may hold.
//! What is set aside is never stored but computed from the open orders; amounts are i128 in the wire's finest units
//! (10⁻⁶ USD, 10⁻⁶ shares, 10⁻⁴ USD a share).

pub mod account;
pub mod book;
pub mod cycle;
pub mod place;
pub mod wallets;

use book::Books;
use engine::command::{Command, Wallets};
use engine::market::terms::{MarketState, Resolution};
use engine::order::{CloseReason, EntryRoute, Liquidity, OrderType, PriceSource, Side, Status, TimeInForce};
use engine::reject::Reject;
use engine::shard::Room;
use engine::user::{Permissions, Tier, WalletKind};
use std::collections::BTreeMap;

/// A user as the model knows it.
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
    /// Number of the next object.
    pub next: u64,
    /// Order facts, the first has number 1.
    pub facts: Vec<Fact>,
}

/// What happened to an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    Placed {
        order: u64,
        rests: bool,
    },
    /// What the order came to with it, and whether it rested before.
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
    pub generation: u32,
    pub parent: Option<u64>,
    pub opened_at: u64,
    pub archived_at: Option<u64>,
    /// Cash at its opening.
    pub opening: i128,
    /// Worth at full hours, where it was another than before.
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
    pub route: EntryRoute,
    pub rate: u32,
    pub created_at: u64,
    pub figures: Figures,
    /// Rests without having met a live book: the first one decides whether it takes.
    pub awaiting: bool,
    pub held: bool,
    /// Rested at any time; open as long as nothing ended it.
    pub resting: bool,
    pub fills: Vec<Fill>,
    pub closed: Option<(CloseReason, u64)>,
}

/// Figures of the moment of placement (execution.md §8).
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

/// A remembered request with what its first answer said.
#[derive(Clone, Debug)]
pub struct Request {
    pub id: String,
    pub digest: [u8; 32],
    /// Shares that stood inside the limit of a killed FOK.
    pub fillable: u64,
    pub first: Shown,
}

/// A heartbeat registration; `lapses_at` is lost with the life of the process.
#[derive(Clone, Debug)]
pub struct Beat {
    pub label: String,
    pub interval_ms: u32,
    pub lapses_at: u64,
}

/// A market as it was published to whoever trades.
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

/// An order as an answer shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    pub order: Order,
    pub available: i128,
    /// Quantity and cost of the open position.
    pub position: Option<(i128, i128)>,
    pub replay: bool,
}

/// What an answer must be.
#[derive(Clone, Debug)]
pub enum Expected {
    Done,
    Created,
    Refused(Reject),
    Order(Box<Shown>),
    Killed(Reject, Box<Shown>),
    Batch(Vec<Expected>),
    /// Orders that were closed, in id order.
    Cancelled(Vec<u64>),
    Beating(u64),
    Key(Key),
    Rotated(Key, u64),
    Keys(Vec<Key>),
    User {
        wallets: Vec<Wallet>,
        active_keys: usize,
    },
    Account {
        wallets: Vec<(Wallet, i128)>,
        positions: Vec<(Position, i128)>,
        fills: usize,
        closed: usize,
        won: usize,
    },
    /// A wallet with what is set aside of its cash.
    Wallet(Wallet, i128),
    /// A wallet that was emptied: orders and positions that ended.
    Emptied {
        wallet: Wallet,
        orders: u64,
        positions: u64,
    },
    /// Full hours and what the wallets were worth.
    Equity(Vec<(u64, wallets::Worth)>),
    /// Positions with what is set aside of each.
    Positions(Vec<(Position, i128)>),
    Orders {
        rows: Vec<Shown>,
        has_more: bool,
        count: usize,
    },
    /// Those asked for, the number of the first, and of the newest.
    Facts(Vec<Fact>, u64, u64),
    /// Trade ids, newest first.
    Fills {
        ids: Vec<u64>,
        has_more: bool,
    },
    Cycled {
        fills: u64,
        closed: u64,
        resting: u64,
    },
    Settled {
        positions: u64,
        orders: u64,
    },
}

/// What a decision stands on besides the state.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Server time of the shard.
    pub now: u64,
    pub room: Room,
}

/// The model of everything that trading depends on.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub users: BTreeMap<u64, User>,
    /// As published.
    pub markets: Vec<Market>,
    pub books: Books,
    /// Daily cap of the free tier.
    pub free_daily_orders: u32,
    /// Time between two resets of an API wallet.
    pub reset_cooldown: u64,
    /// States behind the records that the command at hand must leave, in their order.
    pub records: Vec<(u64, User)>,
}

/// `n ÷ d`, half up, for `n ≥ 0`.
pub fn half_up(n: i128, d: i128) -> i128 {
    assert!(n >= 0, "only amounts that are not negative are rounded");
    (2 * n + d) / (2 * d)
}

/// A price of the 10⁻⁴ grid in 10⁻⁶ USD.
pub fn cents(price: u16) -> i128 {
    i128::from(price) * 100
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

    /// trading.md §6.
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

    /// Cash set aside (execution.md §6): limit × rest rounded up, and the taker fee as long as it may still take.
    pub fn reserved_cash(&self) -> i128 {
        if !self.is_open() || self.side == Side::Sell { 0 } else { self.would_reserve(self.rest(), self.awaiting) }
    }

    /// What a BUY with this rest sets aside.
    pub fn would_reserve(&self, rest: i128, awaiting: bool) -> i128 {
        let price = i128::from(self.limit) * rest;
        let fee = if awaiting && !self.post_only { book::fee(rest, self.limit, self.rate) } else { 0 };
        (price + 9_999) / 10_000 + fee
    }

    /// Shares set aside.
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
            next: 1,
            facts: Vec::new(),
        }
    }

    /// The id of the next object (house.md §6).
    pub fn take_id(&mut self) -> u64 {
        self.next += 1;
        (self.id << 28) + self.next - 1
    }

    pub fn open_orders(&self) -> impl Iterator<Item = &Order> {
        self.orders.values().filter(|order| order.is_open())
    }

    /// Cash of a wallet that open orders have set aside.
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

    /// Shares of a position that open orders have set aside.
    pub fn reserved_of(&self, held: &Position) -> i128 {
        let same = |order: &&Order| (order.wallet, order.token) == (held.wallet, held.token);
        if held.closed_at.is_some() { 0 } else { self.open_orders().filter(same).map(Order::reserved_shares).sum() }
    }

    pub fn wallet_of(&self, kind: WalletKind) -> Option<&Wallet> {
        self.wallets.iter().find(|wallet| wallet.kind == kind)
    }

    /// account.md §1.4.
    pub fn wallets_in(&self, which: Wallets) -> Vec<u64> {
        let chosen = |wallet: &&Wallet| match which {
            Wallets::Api => wallet.kind == WalletKind::Api,
            Wallets::All => wallet.archived_at.is_none(),
            Wallets::Any => true,
            Wallets::One(id) => wallet.id == id.0,
        };
        self.wallets.iter().filter(chosen).map(|wallet| wallet.id).collect()
    }

    /// Number of the oldest order fact that is kept (streams.md §1.6).
    pub fn oldest_fact(&self) -> u64 {
        (self.facts.len() as u64).saturating_sub(1_024) + 1
    }

    /// An order as an answer shows it now.
    pub fn show(&self, id: u64) -> Shown {
        let order = self.orders[&id].clone();
        Shown {
            available: self.available(order.wallet),
            position: self.position(order.wallet, order.token).map(|held| (held.qty, held.cost)),
            order,
            replay: false,
        }
    }

    /// Books one fill: cash, position, order (execution.md §6). `resting`: the order rested before.
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

impl Model {
    pub fn new(free_daily_orders: u32, reset_cooldown: u64) -> Model {
        Model { free_daily_orders, reset_cooldown, ..Model::default() }
    }

    pub fn user(&self, id: u64) -> Option<&User> {
        self.users.get(&id)
    }

    /// What was done to this user is one record.
    fn record(&mut self, owner: u64) {
        let user = self.users[&owner].clone();
        self.records.push((owner, user));
    }

    /// The process begins anew with these users: what is not journaled is gone.
    pub fn restart(&mut self, users: BTreeMap<u64, User>, markets: Vec<Market>) {
        (self.users, self.markets, self.books) = (users, markets, Books::default());
        self.records.clear();
    }

    /// A shard saw its first moment: all its heartbeats get a fresh interval (trading.md §8).
    pub fn refresh_beats(&mut self, of_shard: impl Fn(u64) -> bool, now: u64) {
        for user in self.users.values_mut().filter(|user| of_shard(user.id)) {
            for beat in &mut user.beats {
                beat.lapses_at = lapse(beat.interval_ms, now);
            }
        }
    }

    /// One command of one user, as its shard takes it. `waited_us` since it was read.
    pub fn take(&mut self, owner: u64, command: &Command, moment: Moment, waited_us: u64) -> Expected {
        let Moment { now, room } = moment;
        // House rule: what only makes things safer goes on from a reserve when the disk is full.
        let enough = match command {
            Command::Query(_) | Command::NoteKeyUsed { .. } => true,
            Command::Place(_)
            | Command::PlaceBatch(_)
            | Command::CreateUser(_)
            | Command::IssueKey(_)
            | Command::RotateKey { .. }
            | Command::OpenWallet { .. }
            | Command::ResetWallet { .. }
            | Command::ResetApiWallet { .. } => room == Room::Ample,
            _ => room != Room::None,
        };
        // trading.md §9: what waited longer than 2 s never begins.
        let background = matches!(command, Command::Query(_) | Command::NoteKeyUsed { .. });
        if waited_us > 2_000_000 && !background {
            return Expected::Refused(Reject::WaitedTooLong);
        }
        if !enough {
            return Expected::Refused(Reject::NoRoom);
        }
        if let Some(ended) = self.ended_key(owner, command, now) {
            return Expected::Refused(ended);
        }
        if let Command::CreateUser(asked) = command {
            self.create(owner, asked, now);
            return Expected::Created;
        }
        if !self.users.contains_key(&owner) {
            let batch = |entries: usize| Expected::Batch(vec![Expected::Refused(Reject::UserNotFound); entries]);
            return match command {
                Command::PlaceBatch(placements) => batch(placements.len()),
                _ => Expected::Refused(Reject::UserNotFound),
            };
        }
        match command {
            Command::Place(placement) => self.place(owner, placement, now),
            Command::PlaceBatch(placements) => {
                Expected::Batch(placements.iter().map(|placement| self.place(owner, placement, now)).collect())
            }
            Command::Cancel { order } => self.cancel(owner, order.0, now),
            Command::CancelAll { wallets } => self.sweep(owner, CloseReason::CancelAll, *wallets, |_| true, now),
            Command::CancelMarket { market, instrument, wallets } => {
                let covers = |token: u32| {
                    (market.is_some() || instrument.is_some())
                        && market.is_none_or(|market| market.0 == token / 2)
                        && instrument.is_none_or(|instrument| instrument.0 == token)
                };
                self.sweep(owner, CloseReason::CancelMarket, *wallets, covers, now)
            }
            Command::Beat { label, interval_ms } => self.beat(owner, label, *interval_ms, now),
            Command::EndBeats => {
                let user = self.users.get_mut(&owner).expect("checked above");
                if !std::mem::take(&mut user.beats).is_empty() {
                    self.record(owner);
                }
                Expected::Done
            }
            Command::Query(query) => self.look(owner, query, now),
            other => self.account_command(owner, other, moment),
        }
    }

    /// A key that trades or makes keys must not have ended.
    fn ended_key(&self, owner: u64, command: &Command, now: u64) -> Option<Reject> {
        let asking = match command {
            Command::Place(placement) => placement.key,
            Command::PlaceBatch(placements) => placements.first()?.key,
            Command::IssueKey(asked) => asked.by?,
            Command::RotateKey { by, .. }
            | Command::OpenWallet { by, .. }
            | Command::ResetWallet { by, .. }
            | Command::ResetApiWallet { by } => (*by)?,
            _ => return None,
        };
        let key = self.users.get(&owner)?.keys.iter().find(|key| key.id == asking.0)?;
        if key.revoked_at.is_some() {
            return Some(Reject::KeyRevoked);
        }
        key.expires_at.is_some_and(|at| at <= now).then_some(Reject::KeyExpired)
    }

    fn cancel(&mut self, owner: u64, order: u64, now: u64) -> Expected {
        let user = self.users.get_mut(&owner).expect("checked by the caller");
        match user.orders.get(&order) {
            None => Expected::Refused(Reject::OrderNotFound),
            Some(known) if !known.is_open() => Expected::Refused(Reject::OrderNotCancellable),
            Some(_) => {
                user.close(order, CloseReason::UserCancelled, now);
                let shown = user.show(order);
                self.record(owner);
                Expected::Order(Box::new(shown))
            }
        }
    }

    fn sweep(
        &mut self,
        owner: u64,
        reason: CloseReason,
        wallets: Wallets,
        covers: impl Fn(u32) -> bool,
        now: u64,
    ) -> Expected {
        let user = self.users.get_mut(&owner).expect("checked by the caller");
        let chosen = user.wallets_in(wallets);
        if matches!(wallets, Wallets::One(_)) && chosen.is_empty() {
            return Expected::Refused(Reject::WalletNotFound);
        }
        let covered = |order: &&Order| covers(order.token) && chosen.contains(&order.wallet);
        let swept: Vec<u64> = user.open_orders().filter(covered).map(|order| order.id).collect();
        swept.iter().for_each(|order| user.close(*order, reason, now));
        if !swept.is_empty() {
            self.record(owner);
        }
        Expected::Cancelled(swept)
    }

    fn beat(&mut self, owner: u64, label: &str, interval_ms: u32, now: u64) -> Expected {
        let user = self.users.get_mut(&owner).expect("checked by the caller");
        let lapses_at = lapse(interval_ms, now);
        let armed = Beat { label: label.to_owned(), interval_ms, lapses_at };
        let count = user.beats.len();
        match user.beats.iter_mut().find(|beat| beat.label == label) {
            // A mere beat is no fact.
            Some(beat) if beat.interval_ms == interval_ms => beat.lapses_at = lapses_at,
            Some(beat) => {
                *beat = armed;
                self.record(owner);
            }
            None if count >= 16 => return Expected::Refused(Reject::Busy),
            None => {
                user.beats.push(armed);
                self.record(owner);
            }
        }
        Expected::Beating(lapses_at)
    }
}

/// When a beat of this moment lapses: trading.md §8.
fn lapse(interval_ms: u32, now: u64) -> u64 {
    let interval = u64::from(interval_ms);
    now + 1_000 * (interval + (interval / 4).max(1_000))
}
