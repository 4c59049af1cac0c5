//! The parts of answers: copies of state at one moment. The gateway adds marks and market texts.

use crate::amount::{Cash, Qty};
use crate::id::{KeyId, MarketId, OrderId, UserId, WalletId};
use crate::order::{Fill, Order};
use crate::time::Timestamp;
use crate::user::alerts::AlertKinds;
use crate::user::equity::EquityRow;
use crate::user::{Alert, AlertTarget, Backtest, Grant, Permissions, Position, Tier, Wallet};

/// An order with the figures of its answer (gateway/docs/trading.md §2, §3).
#[derive(Clone, Debug)]
pub struct OrderView {
    pub order: Order,
    /// In time order.
    pub fills: Fills,
    /// Available cash of the wallet: after the command; in a lookup, after the order's placement.
    pub available: Cash,
    /// The open episode of the order's instrument in its wallet.
    pub position: Option<Position>,
    /// An idempotent replay: the figures are those of the first answer.
    pub is_replay: bool,
    /// Its present place in the queue of its level; only in reads, and of an order that has one.
    pub queue: Option<QueueView>,
}

/// The place of a resting order in the queue of its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// Shares of the venue before it.
    pub ahead: Qty,
    /// Shares that its level shows now; `None`: the book is not known.
    pub total: Option<Qty>,
    /// How sure that is, in hundredths.
    pub confidence: u8,
}

/// The fills of an order, in time order. The fill of a placement, at most one, needs no allocation.
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

/// An order fact (gateway/docs/streams.md §1.6).
#[derive(Clone, Debug)]
pub struct FactView {
    /// The wire's `user_seq`.
    pub seq: u64,
    /// The order after this fact: fills, end and derived status. An immediate order that was only placed has no status
    /// yet.
    pub order: Order,
    pub what: Happened,
}

/// The event of an order fact.
#[derive(Clone, Debug)]
pub enum Happened {
    /// `rests`: the order rested after its placement.
    Placed {
        rests: bool,
    },
    /// `resting`: the order rested before this fill; otherwise the fill belongs to its placement.
    Filled {
        fill: Fill,
        resting: bool,
    },
    Closed,
}

/// Order facts of a user, oldest first.
#[derive(Clone, Debug)]
pub struct FactPage {
    /// Without gaps. There are more if the last one is not the newest.
    pub facts: Vec<FactView>,
    /// Number of the oldest retained fact; `newest + 1` if there is none.
    pub oldest: u64,
    /// Number of the newest fact; 0: there is none.
    pub newest: u64,
}

/// One page of a traversal of a user's history.
#[derive(Clone, Debug)]
pub struct HistoryPage<T> {
    pub rows: Vec<T>,
    /// The next page is below this id; `None`: this is the last page. A page without rows may have one.
    pub next: Option<u64>,
}

/// A page of a venue-shaped list, or a part of one: one query visits a bounded count of rows.
#[derive(Clone, Debug)]
pub struct VenuePage<T> {
    pub rows: Vec<T>,
    /// Rows after this key were not visited; `None` at the end of the list.
    pub more_after: Option<(Timestamp, u64)>,
}

/// Wallets and their open positions.
#[derive(Clone, Debug)]
pub struct AccountView {
    pub wallets: Vec<Wallet>,
    pub positions: Vec<PositionView>,
    /// Fills in these wallets.
    pub fills_count: u64,
    /// Closed positions with a known exit, and the winners among them (exit above average entry).
    pub closed_count: u64,
    pub won_count: u64,
}

/// Wallets, and their values at full hours or minutes, oldest first.
#[derive(Clone, Debug)]
pub struct EquityView {
    pub account: AccountView,
    pub rows: Vec<EquityRow>,
}

/// A wallet after it was emptied; for the reset of a SANDBOX wallet, its successor.
#[derive(Clone, Debug)]
pub struct EmptiedWallet {
    pub wallet: Wallet,
    /// Orders ended, positions closed.
    pub orders: u64,
    pub positions: u64,
}

/// A position. A closed one has the average of its last open state.
#[derive(Clone, Debug)]
pub struct PositionView {
    pub position: Position,
    /// 10⁻⁶ USD a share.
    pub average: Option<Cash>,
}

/// An API key without its hash.
#[derive(Clone, Debug)]
pub struct KeyView {
    pub id: KeyId,
    pub prefix: Box<str>,
    pub name: Option<Box<str>>,
    /// Stored tier and permissions; the effective ones depend on the entitlement of the moment.
    pub tier: Tier,
    pub permissions: Permissions,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub beta_until: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    /// The set of realism that was chosen for it; `None`: the one of keys without a choice.
    pub realism: Option<Box<str>>,
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

/// The alerts of a user: what goes where, and how much is owed.
#[derive(Clone, Debug)]
pub struct AlertsView {
    /// Where mail goes.
    pub email: Option<Box<str>>,
    /// Kinds that go by mail.
    pub mail: AlertKinds,
    pub owed_by_mail: usize,
    /// In id order.
    pub targets: Vec<TargetView>,
    /// Alerts that were dropped at the bound.
    pub dropped: u64,
}

/// A target with the count of alerts that are owed to it.
#[derive(Clone, Debug)]
pub struct TargetView {
    pub target: AlertTarget,
    pub owed: usize,
}

/// An alert that is owed, with everything that a delivery needs.
#[derive(Clone, Debug)]
pub struct OwedAlert {
    pub alert: Alert,
    pub about: AboutView,
    /// Where mail goes.
    pub email: Option<Box<str>>,
    /// `None`: it is owed by mail.
    pub target: Option<AlertTarget>,
}

/// The objects of an alert.
#[derive(Clone, Debug)]
pub enum AboutView {
    Order(Box<Order>),
    Fill(Box<FillView>),
    Position(Box<Position>),
    Market(MarketId),
    DailyLimit {
        limit: u32,
        resets_at: Timestamp,
    },
    Balance {
        wallet: WalletId,
        available: Cash,
        baseline: Cash,
    },
    Key(Box<KeyView>),
    Rotation {
        old: KeyId,
        new: Box<KeyView>,
    },
    /// `job`: it is not kept any more if absent.
    Backtest {
        id: [u8; 16],
        job: Option<Box<Backtest>>,
    },
    /// The text of a notice.
    Notice(Box<str>),
    /// The user has no such object.
    Gone,
}

/// Result of a sweep.
#[derive(Clone, Debug, Default)]
pub struct CancelledOrders {
    pub cancelled: Vec<OrderId>,
    pub not_cancellable: Vec<OrderId>,
    /// Ids that are not orders of the user. Only in sweeps of named orders.
    pub not_found: Vec<OrderId>,
    /// Shares and cash released in all wallets, for the log line.
    pub released: (Qty, Cash),
}
