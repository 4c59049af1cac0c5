//! The slow, obvious twin of the engine: plain maps, no shards, no log, its own arithmetic, written from
//! engine/docs/orders.md, engine/docs/execution.md, gateway/docs/keys.md and gateway/docs/wire.md §8 and §11.
//!
//! It receives each command when a shard takes it and returns the right answer; and it keeps a copy of the user for
//! each record that the command must write, so that after a crash it can be any of the states that the log may hold.
//! Reservations are never stored but computed from the open orders; amounts are i128 in the wire's finest units (10⁻⁶
//! USD, 10⁻⁶ shares, 10⁻⁴ USD a share).

pub mod account;
pub mod billing;
pub mod book;
pub mod cycle;
pub mod expected;
pub mod place;
pub mod print;
pub mod state;
pub mod wallets;

use book::Books;
use engine::command::{Command, Wallets};
use engine::order::CloseReason;
use engine::reject::Reject;
use engine::shard::Room;
pub use expected::{Expected, ExpectedOrder};
pub use state::{Beat, Fact, Figures, Fill, Key, Market, Order, Position, Request, User, Wallet};
use std::collections::{BTreeMap, VecDeque};

/// Inputs of a decision besides the state.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Server time of the shard.
    pub now: u64,
    pub room: Room,
}

/// The model of all state that trading depends on.
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
    /// How long client order ids count.
    pub client_ids: u64,
    /// Servers that write the newest format have billing, and keep the hashes of signed orders.
    pub writes_newest: bool,
    /// Object numbers of a prefix that are used before the next one is granted; `None`: none is.
    pub numbers_per_prefix: Option<u64>,
    /// Prefixes that the server granted in the current turn, by user: which ids those are is up to it.
    pub granted: BTreeMap<u64, VecDeque<u64>>,
    /// States after the records that the current command must write, in order.
    pub records: Vec<(u64, User)>,
}

/// Prefixes of a user at most.
const PREFIXES_MAX: usize = 15;

/// `n ÷ d`, half up, for `n ≥ 0`.
pub fn half_up(n: i128, d: i128) -> i128 {
    assert!(n >= 0, "only amounts that are not negative are rounded");
    (2 * n + d) / (2 * d)
}

/// A price of the 10⁻⁴ grid in 10⁻⁶ USD.
pub fn cents(price: u16) -> i128 {
    i128::from(price) * 100
}

impl Model {
    pub fn new(free_daily_orders: u32, reset_cooldown: u64, client_ids: u64, writes_newest: bool) -> Model {
        Model { free_daily_orders, reset_cooldown, client_ids, writes_newest, ..Model::default() }
    }

    pub fn user(&self, id: u64) -> Option<&User> {
        self.users.get(&id)
    }

    /// The changes so far of this user are one record.
    fn record(&mut self, owner: u64) {
        let user = self.users.get_mut(&owner).expect("it has changed");
        let ends = self.numbers_per_prefix.is_some_and(|most| user.next % (1 << 28) >= most);
        if ends && user.prefixes.len() < PREFIXES_MAX {
            let granted = self.granted.get_mut(&owner).and_then(VecDeque::pop_front);
            // Without one the process has died, or is wrong.
            user.prefixes.push(granted.unwrap_or((1 << 30) + user.prefixes.len() as u64));
            user.next = (user.prefixes.len() as u64) << 28;
        }
        let user = user.clone();
        self.records.push((owner, user));
    }

    /// A restart with these users: state outside of the log is lost.
    pub fn restart(&mut self, users: BTreeMap<u64, User>, markets: Vec<Market>) {
        (self.users, self.markets, self.books) = (users, markets, Books::default());
        self.records.clear();
        self.granted.clear();
    }

    /// The first time of a shard: all its heartbeats get a fresh interval (engine/docs/orders.md §6).
    pub fn refresh_beats(&mut self, of_shard: impl Fn(u64) -> bool, now: u64) {
        for user in self.users.values_mut().filter(|user| of_shard(user.id)) {
            for beat in &mut user.beats {
                beat.lapses_at = lapse(beat.interval_ms, now);
            }
        }
    }

    /// Why a command does not begin.
    pub fn refuses(&self, owner: u64, command: &Command, moment: Moment, waited_us: u64) -> Option<Reject> {
        let Moment { now, room } = moment;
        // On a full disk, commands that only reduce risk continue from a reserve.
        let enough = match command {
            Command::Query(_) | Command::NoteKeyUsed { .. } => true,
            Command::Place(_)
            | Command::PlaceBatch(_)
            | Command::CreateUser(_)
            | Command::IssueKey(_)
            | Command::RotateKey { .. }
            | Command::OpenWallet { .. }
            | Command::Bill(_)
            | Command::ResetWallet { .. }
            | Command::ResetApiWallet { .. } => room == Room::Ample,
            _ => room != Room::None,
        };
        // A command that waited longer than 2 s never begins (engine/docs/orders.md §4).
        let background = matches!(command, Command::Query(_) | Command::NoteKeyUsed { .. });
        if waited_us > 2_000_000 && !background {
            return Some(Reject::WaitedTooLong);
        }
        if !enough {
            return Some(Reject::NoRoom);
        }
        self.ended_key(owner, command, now)
    }

    /// One command of one user, as its shard takes it. `waited_us` since it was read.
    pub fn take(&mut self, owner: u64, command: &Command, moment: Moment, waited_us: u64) -> Expected {
        if let Some(refused) = self.refuses(owner, command, moment, waited_us) {
            return Expected::Refused(refused);
        }
        let now = moment.now;
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
            // A repeated heartbeat is not a fact.
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

/// When a heartbeat at this time lapses: engine/docs/orders.md §6.
fn lapse(interval_ms: u32, now: u64) -> u64 {
    let interval = u64::from(interval_ms);
    now + 1_000 * (interval + (interval / 4).max(1_000))
}
