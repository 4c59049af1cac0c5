//! Rows that have left memory: ended orders with their fills, closed positions and remembered requests. They are in the
//! history store, which the engine never reads: it says what it needs, and is given what was found.

mod packing;

pub use packing::{Sharing, put_order, put_position, put_request, take_order, take_position, take_request};

use crate::id::{MarketId, OrderId, PositionId, TradeId, UserId};
use crate::order::{Fill, Order};
use crate::time::UtcDay;
pub use crate::user::RowSum;
use crate::user::{Position, Remembered};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An order that has ended, with its fills in time order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedOrder {
    pub order: Order,
    pub fills: Vec<Fill>,
}

/// A remembered request whose order has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRequest {
    pub request: Remembered,
    pub order: EndedOrder,
}

/// The rows of one user that leave memory together. Their fills and remembered requests leave with the orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    pub user: UserId,
    /// Ascending.
    pub orders: Vec<OrderId>,
    /// Ascending.
    pub positions: Vec<PositionId>,
}

/// The first day of the history that is kept: rows that ended before it and have left memory are not shown. It never goes
/// back. Clones are the same day; it may still be an earlier one after the record that cut the history.
#[derive(Clone, Debug, Default)]
pub struct KeptFrom(Arc<AtomicU32>);

impl KeptFrom {
    /// Day 0: nothing was cut.
    pub fn get(&self) -> UtcDay {
        UtcDay(self.0.load(Ordering::Acquire))
    }

    /// History is kept from this day on, if it is later than before.
    pub fn raise(&self, day: UtcDay) {
        self.0.fetch_max(day.0, Ordering::Release);
    }
}

/// Rows that are safe in the history store: memory may drop them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departures {
    /// LSN of the last record of the state that they were taken from.
    pub upto: u64,
    /// Rows in pieces of a bounded count ([`Departures::PIECE_ROWS`]), each with the sum of their hashes
    /// (engine/docs/digest.md §1).
    pub pieces: Vec<(Leaving, [u8; 32])>,
}

impl Departures {
    /// Rows of a piece at most, unless one order has more fills: to drop one takes some 50 µs.
    pub const PIECE_ROWS: usize = 64;
}

/// The rows of one user that have left memory up to one record of the log. A row that is still in memory, too, is equal
/// to the one there. Rows that ended before a cut of the history are missing; a signed order's hash still finds its order.
pub trait Departed {
    /// Why rows cannot be read.
    type Error;

    /// Whether the rows that were asked for are lost permanently, while others can be read.
    fn is_lost(_: &Self::Error) -> bool {
        false
    }

    /// The first day of the history that is kept; day 0: nothing was cut.
    fn kept_from(&self) -> UtcDay {
        UtcDay(0)
    }

    fn order(&self, id: OrderId) -> Result<Option<EndedOrder>, Self::Error>;

    /// An order that memory knows to have left it. `None`: it is not kept any more. An implementation that can tell that
    /// from a row that is missing returns an error for the latter.
    fn left(&self, id: OrderId) -> Result<Option<EndedOrder>, Self::Error> {
        self.order(id)
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, Self::Error>;

    /// Orders below `before`, highest id first; only those of `market`, if there is one.
    fn orders(
        &self,
        market: Option<MarketId>,
        before: Option<OrderId>,
    ) -> impl Iterator<Item = Result<EndedOrder, Self::Error>>;

    /// A fill with its order. Implementations that find it without reading others do so.
    fn fill(&self, id: TradeId) -> Result<Option<(Fill, Order)>, Self::Error> {
        let row = self.fills(Some(TradeId(id.0.saturating_add(1)))).next().transpose()?;
        Ok(row.filter(|(fill, _)| fill.id == id))
    }

    /// A fill that memory knows to have left it with its order, as [`Departed::left`].
    fn left_fill(&self, id: TradeId) -> Result<Option<(Fill, Order)>, Self::Error> {
        self.fill(id)
    }

    /// Fills below `before` with their orders, highest id first.
    fn fills(&self, before: Option<TradeId>) -> impl Iterator<Item = Result<(Fill, Order), Self::Error>>;

    /// Closed positions below `before`, highest id first.
    fn positions(&self, before: Option<PositionId>) -> impl Iterator<Item = Result<Position, Self::Error>>;

    /// The newest request that was remembered under this id.
    fn request(&self, client_order_id: &str) -> Result<Option<EndedRequest>, Self::Error>;

    /// The request that placed this order, which has left memory, if it was remembered until then. Implementations that
    /// find requests of signed orders, which have ids that the order does not have, find those too.
    fn request_of(&self, order: &Order) -> Result<Option<Remembered>, Self::Error> {
        let Some(id) = order.terms.client_order_id() else { return Ok(None) };
        let known = self.request(id)?.filter(|known| known.request.order == order.id);
        Ok(known.map(|known| known.request))
    }

    /// The signed order with this EIP-712 hash.
    fn signed_order(&self, hash: &[u8; 32]) -> Result<Option<OrderId>, Self::Error>;
}
