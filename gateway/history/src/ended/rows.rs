//! Keys and values of ended rows.
//!
//! ```text
//! orders      user, order                  head │ the order as it ended, its fills
//! fills       user, fill                   head │ its order
//! positions   user, position               head │ the closed position
//! requests    user, hash of the id, order  head │ the id if it is not the order's, digest of the body, first answer
//! by_hash     user, hash of the order      head │ its order
//! by_market   user, market, order          head
//! ```
//!
//! Users and objects take eight bytes of a key, markets four, hashes of client order ids eight, EIP-712 hashes 32; all
//! are big-endian. A head is the version of the row, its lineage index, and the LSN of the move that stored it.

use crate::row::{read_leb, write_leb};
use crate::store::{Space, StoreError};
use engine::departed::{put_order, put_position, put_request, requests_of};
use engine::id::{MarketId, OrderId, UserId};
use engine::user::User;
use sha2::{Digest as _, Sha256};
use std::ops::Range;

/// Version of every row.
const VERSION: u8 = 1;
/// Index of the lineage to which all rows belong today.
const LINEAGE: u64 = 0;

/// Appends a head.
pub fn put_head(lsn: u64, out: &mut Vec<u8>) {
    out.push(VERSION);
    write_leb(LINEAGE, out);
    write_leb(lsn, out);
}

/// Takes a head from the front, and returns its LSN.
///
/// # Errors
/// [`StoreError::Later`] for a later version or another lineage, [`StoreError::Damaged`] for bytes that are no head.
pub fn take_head(value: &mut &[u8]) -> Result<u64, StoreError> {
    let bytes = *value;
    let damaged = || StoreError::Damaged("a row without a head".to_owned());
    let (&version, mut rest) = bytes.split_first().ok_or_else(damaged)?;
    if version > VERSION {
        return Err(StoreError::Later(format!("version {version} of a row")));
    }
    let lineage = read_leb(&mut rest).ok_or_else(damaged)?;
    if lineage != LINEAGE {
        return Err(StoreError::Later("a row of another lineage".to_owned()));
    }
    let lsn = read_leb(&mut rest).ok_or_else(damaged)?;
    let mut again = Vec::with_capacity(bytes.len() - rest.len());
    put_head(lsn, &mut again);
    if again != bytes[..bytes.len() - rest.len()] {
        return Err(damaged());
    }
    *value = rest;
    Ok(lsn)
}

/// The number in the key of a client order id. It is the same in every build; ids with equal numbers are distinguished by
/// their text.
pub fn id_hash(client_order_id: &str) -> u64 {
    let digest = Sha256::digest(client_order_id.as_bytes());
    u64::from_be_bytes(digest[..8].try_into().expect("eight bytes"))
}

/// The key of an order, a fill or a position.
pub fn object_key(user: UserId, object: u64) -> Vec<u8> {
    [user.0.to_be_bytes(), object.to_be_bytes()].concat()
}

pub fn request_key(user: UserId, hash: u64, order: OrderId) -> Vec<u8> {
    [user.0.to_be_bytes(), hash.to_be_bytes(), order.0.to_be_bytes()].concat()
}

pub fn hash_key(user: UserId, hash: &[u8; 32]) -> Vec<u8> {
    [&user.0.to_be_bytes()[..], hash].concat()
}

pub fn market_key(user: UserId, market: MarketId, order: OrderId) -> Vec<u8> {
    [&user.0.to_be_bytes()[..], &market.0.to_be_bytes(), &order.0.to_be_bytes()].concat()
}

/// The user in a key.
pub fn user_of(key: &[u8]) -> Option<UserId> {
    Some(UserId(u64::from_be_bytes(*key.first_chunk()?)))
}

/// The object that a key ends with.
pub fn object_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*key.last_chunk()?))
}

/// Bytes of a key.
pub fn key_bytes(space: Space) -> usize {
    match space {
        Space::Orders | Space::Fills | Space::Positions => 16,
        Space::Requests => 24,
        Space::ByHash => 40,
        Space::ByMarket => 20,
    }
}

/// Appends the order that a fill or a hash belongs to, as its distance from another object.
fn put_order_of(from: u64, order: OrderId, out: &mut Vec<u8>) {
    write_leb(from.wrapping_sub(order.0), out);
}

/// Reads what `put_order_of` wrote.
pub fn take_order_of(from: u64, bytes: &[u8]) -> Option<OrderId> {
    let mut rest = bytes;
    let order = OrderId(from.wrapping_sub(read_leb(&mut rest)?));
    let mut again = Vec::new();
    put_order_of(from, order, &mut again);
    (again == bytes).then_some(order)
}

/// Encoded rows of one user and keyspace, with ascending keys.
#[derive(Default)]
pub struct Rows {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

struct Row {
    key: Range<usize>,
    value: Range<usize>,
    /// The order or position that it belongs to.
    of: u64,
}

/// One of [`Rows`].
pub struct Encoded<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    /// The order or position that it belongs to.
    pub of: u64,
}

impl Rows {
    fn push(&mut self, of: u64, key: &[u8], put: impl FnOnce(&mut Vec<u8>)) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        put(&mut self.bytes);
        self.rows.push(Row { key: from..middle, value: middle..self.bytes.len(), of });
    }

    /// The rows of a keyspace that belong to these orders and positions of a user, instead of those before.
    ///
    /// # Errors
    /// [`StoreError::NotEnded`] for an order or position that is not in memory or open.
    pub fn fill(
        &mut self,
        space: Space,
        user: &User,
        orders: &[OrderId],
        positions: &[engine::id::PositionId],
        lsn: u64,
    ) -> Result<(), StoreError> {
        self.bytes.clear();
        self.rows.clear();
        let owner = user.id;
        if space == Space::Positions {
            for id in positions {
                let position = user.position(*id).filter(|position| !position.is_open());
                let position = position.ok_or_else(|| StoreError::NotEnded(format!("position {id}")))?;
                self.push(id.0, &object_key(owner, id.0), |out| {
                    put_head(lsn, out);
                    put_position(position, out);
                });
            }
            return Ok(self.sort());
        }
        let requests = if space == Space::Requests { requests_of(user, orders) } else { Vec::new() };
        for (at, id) in orders.iter().enumerate() {
            let order = user.order(*id).filter(|order| !order.is_open());
            let order = order.ok_or_else(|| StoreError::NotEnded(format!("order {id}")))?;
            match space {
                Space::Positions => {}
                Space::Orders => self.push(id.0, &object_key(owner, id.0), |out| {
                    put_head(lsn, out);
                    put_order(order, &user.fills_of(order), out);
                }),
                Space::Fills => {
                    for fill in &*user.fills_of(order) {
                        self.push(id.0, &object_key(owner, fill.id.0), |out| {
                            put_head(lsn, out);
                            put_order_of(fill.id.0, *id, out);
                        });
                    }
                }
                Space::Requests => {
                    let Some(request) = requests[at] else { continue };
                    let hash = id_hash(request.id(order).unwrap_or_default());
                    self.push(id.0, &request_key(owner, hash, *id), |out| {
                        put_head(lsn, out);
                        put_request(request, out);
                    });
                }
                Space::ByHash => {
                    let Some(hash) = order.terms.order_hash() else { continue };
                    self.push(id.0, &hash_key(owner, hash), |out| {
                        put_head(lsn, out);
                        put_order_of(u64::MAX, *id, out);
                    });
                }
                Space::ByMarket => {
                    let key = market_key(owner, order.terms.instrument.market(), *id);
                    self.push(id.0, &key, |out| put_head(lsn, out));
                }
            }
        }
        Ok(self.sort())
    }

    /// Sorts by key. Of several rows with one key the newest stays.
    fn sort(&mut self) {
        let Rows { bytes, rows } = self;
        rows.sort_by(|row, other| bytes[row.key.clone()].cmp(&bytes[other.key.clone()]).then(other.of.cmp(&row.of)));
        rows.dedup_by(|row, before| bytes[row.key.clone()] == bytes[before.key.clone()]);
    }

    pub fn iter(&self) -> impl Iterator<Item = Encoded<'_>> {
        let encoded = |row: &Row| Encoded {
            key: &self.bytes[row.key.clone()],
            value: &self.bytes[row.value.clone()],
            of: row.of,
        };
        self.rows.iter().map(move |row| encoded(row))
    }
}

#[cfg(test)]
mod tests;
