//! How many rows are in memory, and how many bytes those take that have ended.

use super::{Position, Remembered, User, Users};
use crate::order::{Fill, Order};

/// What an index takes for a row.
const INDEX_BYTES: usize = 4;
/// What a text takes beside its row: an id of some 36 characters, and its place in a block that rows share.
const TEXT_BYTES: usize = 56;
/// What the index of ids takes for one, with the room that it keeps to grow.
const ID_BYTES: usize = 16;

/// Bytes of a row in memory, with its indexes.
const ORDER_BYTES: usize = size_of::<Option<Order>>() + INDEX_BYTES;
const FILL_BYTES: usize = size_of::<Option<Fill>>() + INDEX_BYTES;
const POSITION_BYTES: usize = size_of::<Option<Position>>() + INDEX_BYTES;
const REQUEST_BYTES: usize = size_of::<Option<Remembered>>() + ID_BYTES + TEXT_BYTES;

/// Counts of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub orders: usize,
    pub fills: usize,
    pub positions: usize,
    /// Remembered requests.
    pub requests: usize,
}

impl RowCounts {
    pub(super) fn of(user: &User) -> RowCounts {
        let trading = user.trading();
        RowCounts {
            orders: trading.orders.len(),
            fills: trading.fills.len(),
            positions: trading.positions.len(),
            requests: trading.requests.as_ref().map_or(0, |requests| requests.rows.len()),
        }
    }

    pub(super) fn add(&mut self, other: RowCounts) {
        self.orders += other.orders;
        self.fills += other.fills;
        self.positions += other.positions;
        self.requests += other.requests;
    }

    pub(super) fn remove(&mut self, other: RowCounts) {
        self.orders -= other.orders;
        self.fills -= other.fills;
        self.positions -= other.positions;
        self.requests -= other.requests;
    }

    /// What these rows take in memory: an estimate from their sizes, for ids of some 36 characters.
    pub fn bytes(&self) -> u64 {
        let RowCounts { orders, fills, positions, requests } = *self;
        let bytes = orders * ORDER_BYTES + fills * FILL_BYTES + positions * POSITION_BYTES + requests * REQUEST_BYTES;
        bytes as u64
    }
}

impl Users {
    /// Rows in memory: those that are open, and those that have ended and not left it.
    pub fn rows(&self) -> RowCounts {
        self.indexes.rows
    }

    /// Rows in memory that have ended, while the orders are listed. Fills of open orders count among them, and so do
    /// requests of open orders, as far as there are as many ended orders. O(1).
    #[inline]
    pub fn ended_rows(&self) -> RowCounts {
        let RowCounts { orders, fills, positions, requests } = self.indexes.rows;
        let ended = orders - self.resting().len();
        RowCounts {
            orders: ended,
            fills,
            positions: positions - self.indexes.open_positions,
            requests: requests.min(ended),
        }
    }
}
