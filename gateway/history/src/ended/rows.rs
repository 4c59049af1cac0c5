//! Keys and values of ended rows.
//!
//! ```text
//! orders      user, order                  head │ the order as it ended, its fills
//! fills       user, fill                   head │ its order
//! positions   user, position               head │ the closed position
//! requests    user, hash of the id, order  head │ the id if it is not the order's, digest of the body, first answer
//! by_hash     user, hash of the order      head │ its order
//! by_market   user, market, order          head │ hash of the request's id if that is not the order's
//! ```
//!
//! Users and objects take eight bytes of a key, markets four, hashes of client order ids eight, EIP-712 hashes 32; all
//! are big-endian. A head is the version of the row, its lineage index, the LSN of the move that stored it, and the day on
//! which its order or position ended.

use crate::row::write_leb;
pub use crate::store::{Head, day_of, put_head, take_head, take_shortest};
use crate::store::{Space, StoreError};
use engine::departed::{Leaving, put_order, put_position, put_request};
use engine::id::{MarketId, OBJECT_BITS, OrderId, PositionId, UserId};
use engine::order::Order;
use engine::time::UtcDay;
use engine::user::{Position, Remembered, User};
use sha2::{Digest as _, Sha256};

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

/// Appends the order that a fill or a hash belongs to, as its difference from an object of the same user: their highest
/// bits are mostly the same.
pub fn put_order_of(object: u64, order: OrderId, out: &mut Vec<u8>) {
    write_leb(object ^ order.0, out);
}

/// The object from which the order of a hash differs.
pub fn first_object(user: UserId) -> u64 {
    user.0.wrapping_shl(OBJECT_BITS)
}

/// Reads what `put_order_of` wrote.
pub fn take_order_of(object: u64, bytes: &[u8]) -> Option<OrderId> {
    let mut rest = bytes;
    let order = OrderId(object ^ take_shortest(&mut rest)?);
    rest.is_empty().then_some(order)
}

/// Appends the hash of a request's id that is not the order's, by which the order finds its request.
fn put_request_hash(request: Option<&Remembered>, order: &Order, out: &mut Vec<u8>) {
    let own = order.terms.client_order_id();
    if let Some(id) = request.and_then(|request| request.id(order)).filter(|id| Some(*id) != own) {
        out.extend_from_slice(&id_hash(id).to_be_bytes());
    }
}

/// Reads what `put_request_hash` wrote. `None` for other bytes, `Some(None)` without a hash.
pub fn take_request_hash(body: &[u8]) -> Option<Option<u64>> {
    match body {
        [] => Some(None),
        body => Some(Some(u64::from_be_bytes(body.try_into().ok()?))),
    }
}

/// An encoded row.
pub struct Encoded<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    /// The order or position that it belongs to, and when that ended.
    pub of: u64,
    pub day: UtcDay,
}

/// A key without its user, as numbers that sort as its bytes do, and which of the orders or positions it belongs to.
type Entry = ([u64; 4], u32);

/// Encodes the rows of a keyspace that belong to these orders and positions of a user, by ascending keys, and passes them
/// on one by one. Of several rows with one key the newest counts.
///
/// # Errors
/// [`StoreError::NotEnded`] for an order or position that is not in memory or open, and those of `each`.
pub fn encode(
    space: Space,
    user: &User,
    Leaving { orders, positions, .. }: &Leaving,
    lsn: u64,
    mut each: impl FnMut(Encoded<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut entries: Vec<Entry> = Vec::new();
    if space == Space::Positions {
        entries.extend(positions.iter().zip(0..).map(|(id, at)| ([id.0, 0, 0, 0], at)));
    } else {
        for (id, at) in orders.iter().zip(0_u32..) {
            let order = ended_order(user, *id)?;
            match space {
                Space::Positions => {}
                Space::Orders => entries.push(([id.0, 0, 0, 0], at)),
                Space::Fills => {
                    entries.extend(user.fills_of(order).iter().map(|fill| ([fill.id.0, 0, 0, 0], at)));
                }
                Space::Requests => {
                    let request = user.request_of(*id);
                    let hash = request.map(|request| id_hash(request.id(order).unwrap_or_default()));
                    entries.extend(hash.map(|hash| ([hash, id.0, 0, 0], at)));
                }
                Space::ByHash => {
                    let words = |hash: &[u8; 32]| std::array::from_fn(|at| word(&hash[at * 8..]));
                    entries.extend(order.terms.order_hash().map(|hash| (words(hash), at)));
                }
                Space::ByMarket => entries.push(([order.terms.instrument.market().0.into(), id.0, 0, 0], at)),
            }
        }
    }
    entries.sort_unstable();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for (place, (words, at)) in entries.iter().enumerate() {
        if entries.get(place + 1).is_some_and(|(next, _)| next == words) {
            continue;
        }
        key.clear();
        key.extend_from_slice(&user.id.0.to_be_bytes());
        value.clear();
        let at = *at as usize;
        let of = if space == Space::Positions { positions[at].0 } else { orders[at].0 };
        let ended_at = match space {
            Space::Positions => closed_position(user, PositionId(of))?.closed_at,
            _ => ended_order(user, OrderId(of))?.ended_at(),
        };
        let day = ended_at.unwrap_or_default().day();
        put_head(Head { lsn, day }, &mut value);
        match space {
            Space::Positions => put_position(closed_position(user, PositionId(of))?, &mut value),
            Space::Orders => {
                let order = ended_order(user, OrderId(of))?;
                put_order(order, &user.fills_of(order), &mut value);
            }
            Space::Fills => put_order_of(words[0], OrderId(of), &mut value),
            Space::Requests => {
                user.request_of(OrderId(of)).into_iter().for_each(|request| put_request(request, &mut value));
            }
            Space::ByHash => put_order_of(first_object(user.id), OrderId(of), &mut value),
            Space::ByMarket => {
                let order = ended_order(user, OrderId(of))?;
                put_request_hash(user.request_of(order.id), order, &mut value);
            }
        }
        match space {
            Space::Orders | Space::Positions | Space::Fills => put_words(&words[..1], &mut key),
            Space::Requests => put_words(&words[..2], &mut key),
            Space::ByHash => put_words(words, &mut key),
            Space::ByMarket => {
                key.extend_from_slice(&(words[0] as u32).to_be_bytes());
                put_words(&words[1..2], &mut key);
            }
        }
        each(Encoded { key: &key, value: &value, of, day })?;
    }
    Ok(())
}

fn ended_order(user: &User, id: OrderId) -> Result<&Order, StoreError> {
    let order = user.order(id).filter(|order| !order.is_open());
    order.ok_or_else(|| StoreError::NotEnded(format!("order {id}")))
}

fn closed_position(user: &User, id: PositionId) -> Result<&Position, StoreError> {
    let position = user.position(id).filter(|position| !position.is_open());
    position.ok_or_else(|| StoreError::NotEnded(format!("position {id}")))
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn put_words(words: &[u64], key: &mut Vec<u8>) {
    words.iter().for_each(|word| key.extend_from_slice(&word.to_be_bytes()));
}

#[cfg(test)]
mod tests;
