//! A user: keys, wallets, positions, orders, quota, remembered requests. The state of one shard is its [`Users`].
//!
//! Rows are in lists that ended ones leave ([`rows`], [`departed`]), parts of them in blocks of the shard that answers
//! share (`shared_rows`); they are found by number (`trading`, `prefixes`), by text (`keyed`) or in order ([`sorted`]).
//!
//! State changes only by [`Users::apply`], one fact at a time. It refuses nothing: a fact that violates an invariant of
//! money, shares or ids ends the process with the name of the invariant.

pub mod alerts;
mod apply;
pub mod backtests;
pub mod billing;
mod canonical;
mod counts;
pub mod departed;
pub mod equity;
pub(crate) mod extendible;
pub mod facts;
pub mod idempotency;
pub(crate) mod indexes;
pub mod key;
mod keyed;
mod leaving;
pub mod ledger;
pub(crate) mod placement_cash;
mod points;
pub mod position;
pub(crate) mod prefixes;
pub mod quota;
pub mod realism;
pub mod rebates;
pub mod rows;
pub mod safeguard;
#[cfg(test)]
pub(crate) mod sample;
mod set_back;
pub(crate) mod shared_rows;
mod signed;
pub mod sorted;
pub(crate) mod trading;
pub mod users;
pub mod wallet;

use crate::command::Wallets;
use crate::id::{InstrumentId, KeyId, OrderId, PositionId, UserId, WalletId};
use crate::order::{Fill, Order};
use crate::time::Timestamp;
use crate::view::Fills;
use facts::Fact;
use rows::Rows;
use trading::{NOTHING, Trading};

pub use alerts::{Alert, AlertTarget, Alerts};
pub use backtests::{Backtest, BacktestMeter};
pub use billing::Billing;
pub use canonical::RowSum;
pub use counts::RowCounts;
pub use departed::DepartedRows;
pub use idempotency::{FirstAnswer, Remembered};
pub use key::{ApiKey, Grant, Permissions, Prefix, Tier};
pub use position::{Position, Settlement};
pub use quota::Quota;
pub use realism::QueueNote;
pub use rebates::Rebates;
pub use safeguard::Safeguard;
pub use users::Users;
pub use wallet::{Wallet, WalletKind, WalletRare};

/// Number of a user's first object.
pub const FIRST_OBJECT: u32 = 1;

/// A user.
#[derive(Debug)]
pub struct User {
    pub id: UserId,
    pub created_at: Timestamp,
    /// Count of order facts (placed, filled, closed): the API's `user_seq` (gateway/docs/streams.md §1.6).
    pub order_facts: u64,
    /// The plan that an administrator gave; [`User::standing`] is the one in force.
    pub grant: Option<Grant>,
    pub wallets: Vec<Wallet>,
    pub keys: Vec<ApiKey>,
    pub quota: Quota,
    /// Number of the next object (wallet, key, order, trade, position) of this user, over all prefixes of its ids
    /// (`prefixes.rs`).
    pub next_object: u32,
    /// Derived: a wallet may need a point at the next full hour.
    pub(crate) watched: bool,
    pub(crate) identity: Option<Box<Identity>>,
    pub(crate) trading: Option<Box<Trading>>,
    pub(crate) billing: Option<Box<Billing>>,
}

/// The row that an order fact is about, with its number in its list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FactRow<'a> {
    Order(usize, &'a Order),
    /// With its order.
    Fill(usize, &'a Fill, &'a Order),
    /// It has left memory.
    Departed,
}

/// The identity of the user at an identity provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub sub: Option<Box<str>>,
    pub email: Option<Box<str>>,
}

impl User {
    /// The identity provider's id; `None` for users created in bulk.
    pub fn sub(&self) -> Option<&str> {
        self.identity.as_ref()?.sub.as_deref()
    }

    pub fn email(&self) -> Option<&str> {
        self.identity.as_ref()?.email.as_deref()
    }

    /// The orders in memory, in id order.
    pub fn orders(&self) -> &Rows<Order> {
        &self.trading().orders
    }

    /// The fills in memory, in id order.
    pub fn fills(&self) -> &Rows<Fill> {
        &self.trading().fills
    }

    /// The episodes in memory, in id order.
    pub fn positions(&self) -> &Rows<Position> {
        &self.trading().positions
    }

    pub fn order(&self, id: OrderId) -> Option<&Order> {
        self.trading().order_row(id).map(|row| &self.trading().orders[row])
    }

    /// Whether rows have left memory, so that only the sum of their hashes is known: orders and positions, or requests
    /// whose ids count no longer.
    pub fn has_departed_rows(&self) -> bool {
        self.trading().departed.is_some()
    }

    /// What is known of the orders and positions that have left memory; `None`: all are there.
    pub fn departed(&self) -> Option<&DepartedRows> {
        self.trading().departed.as_deref().filter(|departed| departed.has_rows())
    }

    /// The remembered request that left this order, if it is in memory.
    pub fn request_of(&self, order: OrderId) -> Option<&Remembered> {
        self.trading().requests.as_ref()?.of_order(order).map(|(_, request)| request)
    }

    /// The row that an order fact is about.
    pub(crate) fn row_of(&self, fact: Fact) -> FactRow<'_> {
        let trading = self.trading();
        let found = match fact {
            Fact::Placed { order } | Fact::Rested { order } | Fact::Closed { order } => {
                trading.order_at(order).map(|(row, order)| FactRow::Order(row, order))
            }
            Fact::Taken { fill } | Fact::Matched { fill } => trading.fill_at(fill).and_then(|(row, fill)| {
                let order = trading.order_row(fill.order)?;
                Some(FactRow::Fill(row, fill, &trading.orders[order]))
            }),
        };
        found.unwrap_or(FactRow::Departed)
    }

    /// The signed order with this EIP-712 hash.
    pub fn signed_order(&self, hash: &[u8; 32]) -> Option<&Order> {
        self.trading().signed(hash)
    }

    pub fn position(&self, id: PositionId) -> Option<&Position> {
        self.trading().position_row(id).map(|row| &self.trading().positions[row])
    }

    /// Resting orders, in id order, from either end.
    pub fn open_orders(&self) -> impl DoubleEndedIterator<Item = &Order> + Clone + '_ {
        let trading = self.trading();
        trading.open.iter().map(|row| &trading.orders[row as usize])
    }

    /// Row numbers of the resting orders in [`User::orders`], ascending, from either end.
    pub fn open_rows(&self) -> impl DoubleEndedIterator<Item = usize> + Clone + '_ {
        self.trading().open.iter().map(|row| row as usize)
    }

    pub fn open_orders_count(&self) -> usize {
        self.trading().open.len()
    }

    /// The fills of an order, in time order.
    pub fn fills_of(&self, order: &Order) -> Fills {
        self.trading().fills_of(order)
    }

    /// Number of the oldest retained order fact; one above the newest if there is none.
    pub fn oldest_fact(&self) -> u64 {
        self.order_facts + 1 - self.trading().facts.len() as u64
    }

    /// Count of retained order facts.
    pub(crate) fn order_facts_kept(&self) -> usize {
        self.trading().facts.len()
    }

    /// Whether the newest order fact is a fill of an order that rested before.
    pub(crate) fn last_fill_was_resting(&self) -> bool {
        let facts = &self.trading().facts;
        matches!(facts.len().checked_sub(1).and_then(|last| facts.get(last)), Some(Fact::Matched { .. }))
    }

    /// The open episode of an instrument in a wallet.
    pub fn open_position(&self, wallet: WalletId, instrument: InstrumentId) -> Option<&Position> {
        let trading = self.trading();
        trading.held_row(wallet, instrument).map(|row| &trading.positions[row])
    }

    /// Open episodes, by instrument, then wallet.
    pub fn open_positions(&self) -> impl DoubleEndedIterator<Item = &Position> + Clone + '_ {
        let trading = self.trading();
        trading.held.iter().map(|holding| &trading.positions[holding.row as usize])
    }

    pub fn wallet(&self, id: WalletId) -> Option<&Wallet> {
        // In id order, as they were opened.
        self.wallets.binary_search_by_key(&id, |wallet| wallet.id).ok().map(|at| &self.wallets[at])
    }

    /// The active wallet of a kind; the oldest if there are several. A user has one MAIN and one API wallet, which are
    /// opened first.
    pub fn wallet_of(&self, kind: WalletKind) -> Option<&Wallet> {
        self.wallets.iter().find(|wallet| wallet.kind == kind && wallet.is_active())
    }

    /// Times of a wallet's resets: the newest `trading::RESETS_KEPT`.
    pub fn resets(&self, wallet: WalletId) -> impl Iterator<Item = Timestamp> + '_ {
        self.trading().resets.iter().filter(move |(of, _)| *of == wallet).map(|(_, at)| *at)
    }

    /// The wallets of a request. Empty for a wallet that is not the user's.
    pub fn wallets_in(&self, which: Wallets) -> impl Iterator<Item = &Wallet> + Clone + '_ {
        self.wallets.iter().filter(move |wallet| match which {
            Wallets::Api => wallet.kind == WalletKind::Api && wallet.is_active(),
            Wallets::All => wallet.is_active(),
            Wallets::One(id) => wallet.id == id,
            Wallets::Any => true,
        })
    }

    /// Keys that count for the limit of active keys.
    pub fn active_keys_count(&self) -> usize {
        self.keys.iter().filter(|key| key.counts_as_active()).count()
    }

    /// A key of the user, revoked ones too.
    pub fn key(&self, id: KeyId) -> Option<&ApiKey> {
        // In id order, as they were issued.
        self.keys.binary_search_by_key(&id, |key| key.id).ok().map(|at| &self.keys[at])
    }

    /// The present plan.
    pub fn entitlement(&self, now: Timestamp) -> Tier {
        key::entitlement(self.standing(now), now)
    }

    /// The grant or subscription in force, or one that has ended (gateway/docs/keys.md §3).
    pub fn standing(&self, now: Timestamp) -> Option<Grant> {
        key::standing(self.grant, self.plan(), now)
    }

    /// The effective tier and permissions of a key of this user.
    pub fn effective(&self, key: &ApiKey, free_trade_since: Timestamp, now: Timestamp) -> key::Effective {
        let stored = (key.tier, key.permissions);
        key::effective(stored, key.created_at, key.beta_until.get(), self.standing(now), free_trade_since, now)
    }

    /// The request remembered under an id, if its order was placed at `since` or later
    /// ([`crate::rules::Rules::ids_since`]).
    pub fn remembered(&self, client_order_id: &str, since: Timestamp) -> Option<&Remembered> {
        self.trading().remembered(client_order_id, since)
    }

    /// The name of the set of realism that was chosen for a key.
    #[inline]
    pub fn realism_of(&self, key: KeyId) -> Option<&str> {
        self.trading().realism.as_ref()?.set_of(key)
    }

    /// The keys with a chosen set of realism, and its name.
    pub fn realism_choices(&self) -> impl Iterator<Item = (KeyId, &str)> + '_ {
        self.trading().realism.iter().flat_map(|realism| realism.choices())
    }

    /// The last journaled place of a resting order in the queue of its level.
    pub fn queue_note(&self, order: OrderId) -> Option<&QueueNote> {
        self.trading().realism.as_ref()?.note_of(order)
    }

    /// Armed heartbeats, in the order of arming.
    pub fn safeguards(&self) -> &[Safeguard] {
        &self.trading().safeguards
    }

    pub(crate) fn trading(&self) -> &Trading {
        self.trading.as_deref().unwrap_or(&NOTHING)
    }

    pub(crate) fn trading_mut(&mut self) -> &mut Trading {
        self.trading.get_or_insert_default()
    }

    fn note_email(&mut self, email: &str) {
        let identity = self.identity.get_or_insert_with(|| Box::new(Identity { sub: None, email: None }));
        identity.email = Some(email.into());
    }

    /// A user without any objects.
    pub(crate) fn new(id: UserId, sub: Option<&str>, email: Option<&str>, at: Timestamp) -> User {
        let identity = Identity { sub: sub.map(Box::from), email: email.map(Box::from) };
        let known = identity.sub.is_some() || identity.email.is_some();
        User {
            id,
            created_at: at,
            order_facts: 0,
            grant: None,
            wallets: Vec::new(),
            keys: Vec::new(),
            quota: Quota::default(),
            next_object: FIRST_OBJECT,
            watched: false,
            identity: known.then(|| Box::new(identity)),
            trading: None,
            billing: None,
        }
    }
}

#[cfg(test)]
mod tests;
