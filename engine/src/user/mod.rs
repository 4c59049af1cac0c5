//! A user: keys, wallets, positions, orders, quota, remembered requests. The state of one shard is its [`Users`].

use crate::amount::{Cash, Price, Qty};
use crate::id::{InstrumentId, KeyId, OrderId, PositionId, UserId, WalletId};
use crate::order::{CloseReason, Fill, Order, Status};
use crate::time::{Timestamp, UtcDay};
use ahash::AHashMap;
use bincode::{Decode, Encode};
use wincode::{SchemaRead, SchemaWrite};

/// Plan of a user or key (specification, Limits), in ascending order.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy, PartialOrd, Ord, Hash)]
pub enum Tier {
    Free,
    Pro,
    ProPlus,
    Enterprise,
}

/// What a key may do; `trade` implies `read` (keys.md §1).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy)]
pub enum Permissions {
    Read,
    ReadTrade,
}

/// Wallet kinds (account.md §1.1).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy, PartialOrd, Ord, Hash)]
pub enum WalletKind {
    Main,
    Api,
    Sandbox,
    Competition,
}

/// A user as it stands.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    /// Identity provider's id; `None` for users made in bulk.
    pub sub: Option<Box<str>>,
    pub email: Option<Box<str>>,
    pub created_at: Timestamp,
    /// Number of the next object (wallet, key, order, trade, position) of this user.
    pub next_object: u32,
    /// Number of order facts so far (placed, filled, closed): the wire's `user_seq` (streams.md §1.6).
    pub order_facts: u64,
    pub grant: Option<Grant>,
    pub wallets: Vec<Wallet>,
    pub keys: Vec<ApiKey>,
    /// All orders ever, in id order.
    pub orders: Vec<Order>,
    /// All fills ever, in id order.
    pub fills: Vec<Fill>,
    /// All episodes ever, in id order.
    pub positions: Vec<Position>,
    pub quota: Quota,
    pub remembered: AHashMap<Box<str>, Remembered>,
    pub safeguards: Vec<Safeguard>,
}

/// A tier given to a user by an administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    pub tier: Tier,
    /// `None` = without end.
    pub expires_at: Option<Timestamp>,
}

/// A wallet: cash and what of it is set aside. Its positions are the user's positions with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wallet {
    pub id: WalletId,
    pub kind: WalletKind,
    pub label: Option<Box<str>>,
    /// Cash at creation or at the last reset.
    pub baseline: Cash,
    /// Opening baseline ± fills ± fees + payouts.
    pub cash: Cash,
    /// Σ of the reservations of its open BUY orders.
    pub reserved: Cash,
    pub generation: u32,
    pub parent: Option<WalletId>,
    pub created_at: Timestamp,
    pub archived_at: Option<Timestamp>,
}

impl Wallet {
    /// What can be spent.
    pub fn available(&self) -> Cash {
        self.cash - self.reserved
    }
}

/// An API key; of the secret only its hash is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    pub id: KeyId,
    /// SHA-256 of the whole key, and of its UUID alias.
    pub hash: [u8; 32],
    pub alias_hash: [u8; 32],
    /// First 16 characters of the key.
    pub prefix: Box<str>,
    pub name: Option<Box<str>>,
    pub tier: Tier,
    pub permissions: Permissions,
    pub created_at: Timestamp,
    /// End of the overlap after a rotation. Never set at creation.
    pub expires_at: Option<Timestamp>,
    /// Cutoff of a beta-issued key (keys.md §5): from then on free and read-only.
    pub beta_until: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
}

/// One episode of holding an instrument in a wallet, from first buy to zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub id: PositionId,
    pub wallet: WalletId,
    pub instrument: InstrumentId,
    pub qty: Qty,
    /// Set aside for open SELL orders.
    pub reserved: Qty,
    /// Σ BUY notional of the held shares, fees excluded.
    pub cost: Cash,
    /// Quantity and cost when it was last changed by a buy: the average of a closed row is made of these.
    pub last_open: (Qty, Cash),
    pub realized: Cash,
    pub opened_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    pub settlement: Option<Box<Settlement>>,
}

/// How a position was paid out at resolution (account.md §4, settlements).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub qty: Qty,
    pub cost: Cash,
    pub payout_per_share: Price,
    pub payout: Cash,
    pub at: Timestamp,
}

/// Accepted orders of one UTC day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    pub day: UtcDay,
    pub used: u32,
}

/// A request that left an order row, kept as long as the row (wire.md §11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    pub order: OrderId,
    /// SHA-256 over method, path and canonical body without the id.
    pub digest: [u8; 32],
    pub first: FirstAnswer,
}

/// What the first answer said that later events may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstAnswer {
    pub status: Status,
    pub closed: Option<CloseReason>,
    pub filled: Qty,
    pub notional: Cash,
    pub fee: Cash,
    pub filled_at: Option<Timestamp>,
    /// Available cash of the wallet after the order.
    pub available: Cash,
    /// Quantity and cost of the position after the order.
    pub position: Option<(Qty, Cash)>,
    pub held: bool,
}

/// A heartbeat registration: when it lapses, all open orders are cancelled (trading.md §8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Safeguard {
    pub label: Box<str>,
    pub interval_ms: u32,
    /// When it lapses. Not journaled: beats move it, a restart gives a fresh interval.
    pub lapses_at: Timestamp,
}
