//! The expected answers.

use super::state::{Fact, Key, Order, Position, Wallet};
use super::wallets;
use engine::command::BillingOutcome;
use engine::reject::Reject;

/// An order as an answer shows it.
#[derive(Clone, Debug)]
pub struct ExpectedOrder {
    pub order: Order,
    /// `None`: the rows do not determine it.
    pub available: Option<i128>,
    /// Quantity and cost of the open position.
    pub position: Option<(i128, i128)>,
    pub replay: bool,
}

/// An expected answer.
#[derive(Clone, Debug)]
pub enum Expected {
    Done,
    Created,
    Refused(Reject),
    Order(Box<ExpectedOrder>),
    Killed(Reject, Box<ExpectedOrder>),
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
    Billed(BillingOutcome),
    /// A wallet with its reserved cash.
    Wallet(Wallet, i128),
    /// An emptied wallet: orders and positions that ended.
    Emptied {
        wallet: Wallet,
        orders: u64,
        positions: u64,
    },
    /// Full hours and the wallets' worth.
    Equity(Vec<(u64, wallets::Worth)>),
    /// Positions with the reserved shares of each.
    Positions(Vec<(Position, i128)>),
    Orders {
        rows: Vec<ExpectedOrder>,
        has_more: bool,
        count: usize,
    },
    /// The requested facts, the number of the first, and of the newest.
    Facts(Vec<Fact>, u64, u64),
    /// Orders with the hashes that were asked for.
    Signed(Vec<Option<u64>>),
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
