//! Signed orders by their EIP-712 hash, their id in the strict dialect. Derived from the orders, which have the hashes,
//! so it is never stored.

use super::extendible::Extendible;
use super::rows::Numbers;
use crate::order::Order;

/// The signed orders of a user.
#[derive(Debug, Default)]
pub(crate) struct Signed {
    /// Rows of the user's orders, ascending.
    rows: Numbers,
    /// Key of a hash → the newest of [`Signed::rows`] with it. The few with equal keys are distinguished by their
    /// orders.
    newest: Extendible,
    /// For each of [`Signed::rows`] the previous one with the same key, or [`NONE`].
    before: Numbers,
}

const NONE: u32 = u32::MAX;

impl Signed {
    /// Adds the order in that row of the user's orders.
    pub fn note(&mut self, hash: &[u8; 32], row: u32) {
        let at = self.rows.push(row) as u32;
        let before = self.newest.insert(self.newest.key(hash), at);
        self.before.push(before.unwrap_or(NONE));
    }

    /// The order with this hash; `order` returns a row of the user's orders.
    pub fn find<'a>(&self, hash: &[u8; 32], order: impl Fn(u32) -> Option<&'a Order>) -> Option<&'a Order> {
        let mut at = self.newest.get(self.newest.key(hash))?;
        while at != NONE {
            let found = order(self.rows[at as usize]).filter(|order| order.terms.order_hash() == Some(hash));
            if found.is_some() {
                return found;
            }
            at = self.before[at as usize];
        }
        None
    }
}
