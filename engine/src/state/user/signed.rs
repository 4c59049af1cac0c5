//! Signed orders by their EIP-712 hash, their id in the strict dialect. Derived from the orders, which have the hashes,
//! so it is never stored.

use super::keyed::Keyed;
use crate::order::Order;

/// The signed orders of a user: row numbers by the keys of their hashes.
#[derive(Debug, Default)]
pub(crate) struct Signed(Keyed);

impl Signed {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the order in that row of the user's orders.
    pub fn note(&mut self, hash: &[u8; 32], row: u32) {
        self.0.insert(self.0.key(hash), row);
    }

    /// Removes the order in that row, which leaves memory.
    pub fn forget(&mut self, hash: &[u8; 32], row: u32) {
        self.0.remove(self.0.key(hash), row);
    }

    /// The order with this hash; `order` returns a row of the user's orders.
    pub fn find<'a>(&self, hash: &[u8; 32], order: impl Fn(u32) -> Option<&'a Order>) -> Option<&'a Order> {
        let has_it = |row: u32| order(row).is_some_and(|order| order.terms.order_hash() == Some(hash));
        order(self.0.find(self.0.key(hash), has_it)?)
    }
}
