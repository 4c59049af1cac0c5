//! What answers are made of: copies of state as of one moment. Marks and market texts are the gateway's to add.

use crate::amount::{Cash, Qty};
use crate::id::{KeyId, OrderId, UserId};
use crate::order::{Fill, Order};
use crate::time::Timestamp;
use crate::user::equity::EquityRow;
use crate::user::{Grant, Permissions, Position, Tier, Wallet};

/// An order with what its answer shows beside it (trading.md §2, §3).
#[derive(Clone, Debug)]
pub struct OrderView {
    pub order: Order,
    /// In time order.
    pub fills: Fills,
    /// Available cash of the wallet: behind the command that is answered; of an order that is looked up, behind its placement.
    pub available: Cash,
    /// The open episode of the order's instrument in its wallet.
    pub position: Option<Position>,
    /// An idempotent replay: figures are those of the first answer.
    pub is_replay: bool,
}

/// The fills of an order, in time order. A placement has at most one, and that needs no allocation.
#[derive(Clone, Debug, Default)]
pub enum Fills {
    #[default]
    None,
    One(Fill),
    Many(Vec<Fill>),
}

impl std::ops::Deref for Fills {
    type Target = [Fill];
    fn deref(&self) -> &[Fill] {
        match self {
            Fills::None => &[],
            Fills::One(fill) => std::slice::from_ref(fill),
            Fills::Many(fills) => fills,
        }
    }
}

impl FromIterator<Fill> for Fills {
    fn from_iter<I: IntoIterator<Item = Fill>>(fills: I) -> Fills {
        let mut fills = fills.into_iter();
        match (fills.next(), fills.next()) {
            (None, _) => Fills::None,
            (Some(one), None) => Fills::One(one),
            (Some(one), Some(two)) => Fills::Many([one, two].into_iter().chain(fills).collect()),
        }
    }
}

/// One page of orders, newest first.
#[derive(Clone, Debug)]
pub struct OrderPage {
    pub orders: Vec<OrderView>,
    pub has_more: bool,
    /// Exact count of matches when at most 10 000.
    pub total_hint: Option<usize>,
}

/// A fill with its order.
#[derive(Clone, Debug)]
pub struct FillView {
    pub fill: Fill,
    pub order: Order,
}

/// One page of the trade history, newest first.
#[derive(Clone, Debug)]
pub struct FillPage {
    pub fills: Vec<FillView>,
    pub has_more: bool,
}

/// An order fact (streams.md §1.6).
#[derive(Clone, Debug)]
pub struct FactView {
    /// The wire's `user_seq`.
    pub seq: u64,
    /// Its fills, its end and the status that follows are those behind this fact. An immediate order that was only placed
    /// has no status yet.
    pub order: Order,
    pub what: Happened,
}

/// What happened to the order.
#[derive(Clone, Debug)]
pub enum Happened {
    /// `rests`: its placement ended with it resting.
    Placed {
        rests: bool,
    },
    /// `resting`: the order rested before; else the fill is of its placement.
    Filled {
        fill: Fill,
        resting: bool,
    },
    Closed,
}

/// Order facts of a user, oldest first.
#[derive(Clone, Debug)]
pub struct FactPage {
    /// Without holes. There are more as long as the last is not the newest.
    pub facts: Vec<FactView>,
    /// Number of the oldest fact that is still known; one above `newest` where none is.
    pub oldest: u64,
    /// Number of the newest fact; 0: there was none.
    pub newest: u64,
}

/// One page of a longer walk over a user's history.
#[derive(Clone, Debug)]
pub struct HistoryPage<T> {
    pub rows: Vec<T>,
    /// The next page is below this id; `None`: this was the last. A page without rows may have one.
    pub next: Option<u64>,
}

/// A page of a venue-shaped list, or a part of one: a query looks at so many rows at most.
#[derive(Clone, Debug)]
pub struct VenuePage<T> {
    pub rows: Vec<T>,
    /// The rows after this key were not looked at yet; `None` at the end of the list.
    pub more_after: Option<(Timestamp, u64)>,
}

/// Wallets and their open positions.
#[derive(Clone, Debug)]
pub struct AccountView {
    pub wallets: Vec<Wallet>,
    pub positions: Vec<PositionView>,
    /// Fills in these wallets.
    pub fills_count: u64,
    /// Closed positions with a known exit, and those of them that won (exit above average entry).
    pub closed_count: u64,
    pub won_count: u64,
}

/// Wallets as they stand, and what they were worth at full hours or minutes, oldest first.
#[derive(Clone, Debug)]
pub struct EquityView {
    pub account: AccountView,
    pub rows: Vec<EquityRow>,
}

/// A wallet that was emptied, as it is now; of a SANDBOX wallet that was reset, the one that follows it.
#[derive(Clone, Debug)]
pub struct EmptiedWallet {
    pub wallet: Wallet,
    /// Orders that ended, positions that were closed.
    pub orders: u64,
    pub positions: u64,
}

/// A position; the average of a closed one is that of its last open state.
#[derive(Clone, Debug)]
pub struct PositionView {
    pub position: Position,
    /// 10⁻⁶ USD a share.
    pub average: Option<Cash>,
}

/// An API key as the wire may show it: no hash.
#[derive(Clone, Debug)]
pub struct KeyView {
    pub id: KeyId,
    pub prefix: Box<str>,
    pub name: Option<Box<str>>,
    /// Stored tier and permissions; what is effective depends on the entitlement of the moment.
    pub tier: Tier,
    pub permissions: Permissions,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub beta_until: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
}

/// The user row.
#[derive(Clone, Debug)]
pub struct UserView {
    pub id: UserId,
    pub sub: Option<Box<str>>,
    pub email: Option<Box<str>>,
    pub created_at: Timestamp,
    pub grant: Option<Grant>,
    /// Active keys: not revoked, not expired, not the old half of a rotation.
    pub active_keys: usize,
    pub wallets: Vec<Wallet>,
}

/// Outcome of a sweep.
#[derive(Clone, Debug, Default)]
pub struct CancelledOrders {
    pub cancelled: Vec<OrderId>,
    pub not_cancellable: Vec<OrderId>,
    /// No orders of the user. Only sweeps of named orders have them.
    pub not_found: Vec<OrderId>,
    /// Wallet-independent shares and cash that became free, for the log line.
    pub released: (Qty, Cash),
}
