//! The names of ended orders, of all users: what filters are made of again.

use super::EndedStore;
use super::rows::{first_object, key_bytes, object_key, object_of, take_head, take_order_of, user_of};
use crate::store::{Space, StoreError, Value};
use engine::departed::{Sharing, take_order, take_request};
use engine::id::{OrderId, UserId};
use engine::look_up::filters::{FilterKey, Kind, id_hash, order_hash};
use engine::order::Order;
use engine::time::UtcDay;
use std::ops::Bound;

/// Rows that are read together: the tables are let go in between.
const PIECE_ROWS: usize = 1_024;

impl EndedStore {
    /// The names of the ended orders up to LSN `upto`: the ids of their remembered requests, then the hashes of signed
    /// ones. Each order is looked up for its hour, so it takes some microseconds a name.
    ///
    /// Ends after an error; a named order that is missing is one.
    pub fn names(&self, upto: u64) -> impl Iterator<Item = Result<FilterKey, StoreError>> + use<> {
        let names =
            |space| Names { store: self.clone(), upto, space, from: Bound::Unbounded, piece: Vec::new().into_iter() };
        names(Space::Requests).chain(names(Space::ByHash))
    }
}

/// A scan of one keyspace, piece by piece.
struct Names {
    store: EndedStore,
    upto: u64,
    space: Space,
    /// Where the next piece begins.
    from: Bound<Vec<u8>>,
    piece: std::vec::IntoIter<FilterKey>,
}

impl Names {
    /// Reads a piece; empty at the end.
    fn read(&mut self) -> Result<Vec<FilterKey>, StoreError> {
        let opened = self.store.opened()?;
        let mut sharing = Sharing::default();
        loop {
            let (mut names, mut last) = (Vec::new(), None);
            let from = self.from.as_ref().map(Vec::as_slice);
            for row in opened.spaces.scan(self.space, (from, Bound::Unbounded)).take(PIECE_ROWS) {
                let (key, value) = row?;
                let mut body = &value[..];
                let head = take_head(&mut body)?;
                let is_cut = head.day < self.store.shown_from();
                if head.lsn <= self.upto && !(is_cut && self.space.is_cut()) {
                    let user = user_of(&key).ok_or_else(|| self.damaged())?;
                    let order = self.order(user, &key, body)?;
                    let stored = opened.spaces.get(Space::Orders, &object_key(user, order.0))?;
                    let ended = match stored {
                        Some(stored) if !is_cut => {
                            let mut stored = &stored[..];
                            take_head(&mut stored)?;
                            Some(take_order(stored, &mut sharing).map_err(|_| self.damaged())?)
                        }
                        // Of the order of a hash only the day is known then. A merge may have removed it just now.
                        _ if head.day < self.store.shown_from() => None,
                        _ => return Err(self.damaged()),
                    };
                    let order = ended.as_ref().map(|ended| &ended.order);
                    names.extend(self.name(user, &key, body, (order, head.day), &mut sharing)?);
                }
                last = Some(key);
            }
            let Some(last) = last else { return Ok(Vec::new()) };
            self.from = Bound::Excluded(last.to_vec());
            // All of them may be of a later LSN.
            if !names.is_empty() {
                return Ok(names);
            }
        }
    }

    /// The order that a row belongs to.
    fn order(&self, user: UserId, key: &Value, body: &[u8]) -> Result<OrderId, StoreError> {
        let order = match self.space {
            Space::ByHash => take_order_of(first_object(user), body),
            _ => object_of(key).map(OrderId),
        };
        order.filter(|_| key.len() == key_bytes(self.space)).ok_or_else(|| self.damaged())
    }

    fn name(
        &self,
        user: UserId,
        key: &Value,
        body: &[u8],
        (order, day): (Option<&Order>, UtcDay),
        sharing: &mut Sharing,
    ) -> Result<Option<FilterKey>, StoreError> {
        let (kind, hash) = match self.space {
            Space::ByHash => {
                let hash = key.last_chunk::<32>().ok_or_else(|| self.damaged())?;
                (Kind::OrderHash, order_hash(hash))
            }
            _ => {
                let request = take_request(body, sharing).map_err(|_| self.damaged())?;
                let Some(id) = order.and_then(|order| request.id(order)) else { return Ok(None) };
                (Kind::ClientOrderId, id_hash(id))
            }
        };
        let at = order.map_or(day.start(), |order| order.created_at);
        Ok(Some(FilterKey { user, kind, hash, hour: at.hour() }))
    }

    fn damaged(&self) -> StoreError {
        StoreError::Damaged(format!("a row of {} cannot be read, or its order", self.space.name()))
    }
}

impl Iterator for Names {
    type Item = Result<FilterKey, StoreError>;

    fn next(&mut self) -> Option<Result<FilterKey, StoreError>> {
        if let Some(name) = self.piece.next() {
            return Some(Ok(name));
        }
        match self.read() {
            Ok(names) => {
                self.piece = names.into_iter();
                self.piece.next().map(Ok)
            }
            Err(error) => {
                // Nothing is beyond it.
                self.from = Bound::Excluded(vec![u8::MAX; key_bytes(self.space)]);
                Some(Err(error))
            }
        }
    }
}
