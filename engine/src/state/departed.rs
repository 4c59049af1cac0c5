//! Rows that have left memory: ended orders with their fills, closed positions and remembered requests. They are in the
//! history store, which the engine never reads: it says what it needs, and is given what was found.

mod packing;

pub use packing::{Sharing, put_order, put_position, put_request, take_order, take_position, take_request};

use crate::id::{MarketId, OrderId, PositionId, TradeId, UserId};
use crate::order::{Fill, Order};
use crate::time::UtcDay;
use crate::user::{Position, Remembered};

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
    /// Orders, and positions, of a piece at most: to drop one takes some 50 µs.
    pub const PIECE_ROWS: usize = 64;
}

/// The rows of one user that have left memory up to one record of the log. A row that is still in memory, too, is equal
/// to the one there. Rows that ended before a cut of the history are missing; a signed order's hash still finds its order.
pub trait Departed {
    /// Why rows cannot be read.
    type Error;

    /// The first day of the history that is kept; day 0: nothing was cut.
    fn kept_from(&self) -> UtcDay {
        UtcDay(0)
    }

    fn order(&self, id: OrderId) -> Result<Option<EndedOrder>, Self::Error>;

    fn position(&self, id: PositionId) -> Result<Option<Position>, Self::Error>;

    /// Orders below `before`, highest id first; only those of `market`, if there is one.
    fn orders(
        &self,
        market: Option<MarketId>,
        before: Option<OrderId>,
    ) -> impl Iterator<Item = Result<EndedOrder, Self::Error>>;

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
