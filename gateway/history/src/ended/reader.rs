//! Ended rows of a user: look-ups by key, and scans from the newest, piece by piece. A piece is read whole and the tables
//! are let go, so a slow reader holds up neither a merge nor an opening.

use super::rows::{
    first_object, hash_key, id_hash, key_bytes, market_key, object_key, object_of, request_key, take_head,
    take_order_of,
};
use super::{EndedStore, Opened};
use crate::store::{Space, StoreError, Value};
use engine::departed::{Departed, EndedOrder, EndedRequest, Sharing, take_order, take_position, take_request};
use engine::id::{MarketId, OrderId, PositionId, TradeId, UserId};
use engine::order::{Fill, Order};
use engine::time::UtcDay;
use engine::user::Position;
use std::ops::Bound;
use std::sync::Arc;

/// Rows of the first piece of a scan, which is often enough; each piece has twice as many as the one before.
const PIECE_ROWS: usize = 16;
const PIECE_ROWS_MAX: usize = 256;

/// Reads ended rows. Copies read the same ones.
#[derive(Clone)]
pub struct EndedReader {
    store: EndedStore,
    log: u128,
}

impl EndedReader {
    pub(super) fn new(store: EndedStore, log: u128) -> EndedReader {
        EndedReader { store, log }
    }

    /// The rows of a user that have left memory up to LSN `upto`; 0: none have, and the store is not asked.
    pub fn of(&self, user: UserId, upto: u64) -> EndedOf {
        EndedOf { reader: self.clone(), user, upto }
    }
}

/// The ended rows of a user up to one LSN.
#[derive(Clone)]
pub struct EndedOf {
    reader: EndedReader,
    user: UserId,
    upto: u64,
}

impl EndedOf {
    /// The open tables, for one look-up or piece; `None` if nothing has left memory.
    fn opened(&self) -> Result<Option<Arc<Opened>>, StoreError> {
        if self.upto == 0 {
            return Ok(None);
        }
        let opened = self.reader.store.opened()?;
        let manifest = opened.manifest().ok_or(StoreError::Missing)?;
        if manifest.log != self.reader.log {
            return Err(StoreError::Foreign);
        }
        if manifest.upto < self.upto {
            return Err(StoreError::Behind { upto: manifest.upto, needed: self.upto });
        }
        Ok(Some(opened))
    }

    /// What a row has after its head; `None` if it is of a later LSN, or ended before the history that is kept.
    fn body<'a>(&self, space: Space, mut value: &'a [u8]) -> Result<Option<&'a [u8]>, StoreError> {
        let head = take_head(&mut value)?;
        Ok((head.lsn <= self.upto && !self.is_cut(space, head.day)).then_some(value))
    }

    /// Whether rows of that day are not kept.
    fn is_cut(&self, space: Space, day: UtcDay) -> bool {
        space.is_cut() && day < self.reader.store.shown_from()
    }

    /// Looks up a row, and decodes what it has after its head.
    fn find<T>(
        &self,
        space: Space,
        key: &[u8],
        decode: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let Some(value) = self.opened()?.map(|opened| opened.spaces.get(space, key)).transpose()?.flatten() else {
            return Ok(None);
        };
        self.body(space, &value)?.map(decode).transpose()
    }

    fn order_in(&self, id: OrderId, sharing: &mut Sharing) -> Result<Option<EndedOrder>, StoreError> {
        self.find(Space::Orders, &object_key(self.user, id.0), |body| order(id, body, sharing))
    }

    /// The order that another row names, which is of the same day. `None`: that day was cut since that row was read.
    fn named(&self, id: OrderId, row: &Found, sharing: &mut Sharing) -> Result<Option<EndedOrder>, StoreError> {
        match self.order_in(id, sharing)? {
            None if self.is_cut(Space::Orders, row.day()?) => Ok(None),
            None => Err(damaged(format!("order {id} is named and missing"))),
            found => Ok(found),
        }
    }

    /// The rows of a keyspace between two keys, the last first. Both have the same length.
    fn back(&self, space: Space, first: Vec<u8>, end: Bound<Vec<u8>>) -> Back<'_> {
        Back { of: self, space, first, end, piece: Vec::new(), rows: PIECE_ROWS, failed: None, is_over: false }
    }

    /// The objects of a keyspace below one, the newest first.
    fn objects(&self, space: Space, before: Option<u64>) -> Back<'_> {
        let end = match before {
            Some(before) => Bound::Excluded(object_key(self.user, before)),
            None => Bound::Included(object_key(self.user, u64::MAX)),
        };
        self.back(space, object_key(self.user, 0), end)
    }

    fn all_orders(&self, before: Option<OrderId>) -> impl Iterator<Item = Result<EndedOrder, StoreError>> + '_ {
        let mut sharing = Sharing::default();
        self.objects(Space::Orders, before.map(|before| before.0)).map(move |row| {
            let row = row?;
            order(OrderId(row.object()?), row.body(), &mut sharing)
        })
    }

    fn orders_in(
        &self,
        market: MarketId,
        before: Option<OrderId>,
    ) -> impl Iterator<Item = Result<EndedOrder, StoreError>> + '_ {
        let mut sharing = Sharing::default();
        let end = match before {
            Some(before) => Bound::Excluded(market_key(self.user, market, before)),
            None => Bound::Included(market_key(self.user, market, OrderId(u64::MAX))),
        };
        let rows = self.back(Space::ByMarket, market_key(self.user, market, OrderId(0)), end);
        rows.filter_map(move |row| {
            let order = row.and_then(|row| self.named(OrderId(row.object()?), &row, &mut sharing));
            order.transpose().map(|order| match order {
                Ok(found) if found.order.terms.instrument.market() != market => {
                    Err(damaged(format!("order {} is listed under another market", found.order.id)))
                }
                found => found,
            })
        })
    }
}

impl Departed for EndedOf {
    type Error = StoreError;

    fn kept_from(&self) -> UtcDay {
        self.reader.store.shown_from()
    }

    fn order(&self, id: OrderId) -> Result<Option<EndedOrder>, StoreError> {
        self.order_in(id, &mut Sharing::default())
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, StoreError> {
        self.find(Space::Positions, &object_key(self.user, id.0), |body| position(id, body))
    }

    fn orders(
        &self,
        market: Option<MarketId>,
        before: Option<OrderId>,
    ) -> impl Iterator<Item = Result<EndedOrder, StoreError>> {
        let all = market.is_none().then(|| self.all_orders(before));
        let listed = market.map(|market| self.orders_in(market, before));
        all.into_iter().flatten().chain(listed.into_iter().flatten())
    }

    fn fills(&self, before: Option<TradeId>) -> impl Iterator<Item = Result<(Fill, Order), StoreError>> {
        let mut sharing = Sharing::default();
        // Fills beside each other are mostly of one order.
        let mut last: Option<EndedOrder> = None;
        let mut read = move |row: Found| {
            let id = row.object()?;
            let order = take_order_of(id, row.body()).ok_or_else(|| damaged(format!("fill {id} cannot be read")))?;
            if last.as_ref().is_none_or(|last| last.order.id != order) {
                last = self.named(order, &row, &mut sharing)?;
            }
            let Some(of) = last.as_ref() else { return Ok(None) };
            let fill = of.fills.iter().find(|fill| fill.id.0 == id);
            let fill = fill.ok_or_else(|| damaged(format!("order {order} lacks its fill {id}")))?;
            Ok(Some((fill.clone(), of.order.clone())))
        };
        let rows = self.objects(Space::Fills, before.map(|before| before.0));
        rows.filter_map(move |row| row.and_then(&mut read).transpose())
    }

    fn positions(&self, before: Option<PositionId>) -> impl Iterator<Item = Result<Position, StoreError>> {
        self.objects(Space::Positions, before.map(|before| before.0)).map(|row| {
            let row = row?;
            position(PositionId(row.object()?), row.body())
        })
    }

    fn request(&self, client_order_id: &str) -> Result<Option<EndedRequest>, StoreError> {
        let (hash, mut sharing) = (id_hash(client_order_id), Sharing::default());
        let end = Bound::Included(request_key(self.user, hash, OrderId(u64::MAX)));
        for row in self.back(Space::Requests, request_key(self.user, hash, OrderId(0)), end) {
            let row = row?;
            let id = OrderId(row.object()?);
            let request = take_request(row.body(), &mut sharing)
                .ok()
                .filter(|request| request.order == id)
                .ok_or_else(|| damaged(format!("the request of order {id} cannot be read")))?;
            let Some(order) = self.named(id, &row, &mut sharing)? else { continue };
            let found = EndedRequest { request, order };
            // Another id may have the same hash.
            if found.id() == Some(client_order_id) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn signed_order(&self, hash: &[u8; 32]) -> Result<Option<OrderId>, StoreError> {
        self.find(Space::ByHash, &hash_key(self.user, hash), |body| {
            take_order_of(first_object(self.user), body)
                .ok_or_else(|| damaged("a hash of an order cannot be read".to_owned()))
        })
    }
}

fn order(id: OrderId, body: &[u8], sharing: &mut Sharing) -> Result<EndedOrder, StoreError> {
    let read = take_order(body, sharing).ok().filter(|read| read.order.id == id);
    read.ok_or_else(|| damaged(format!("order {id} cannot be read")))
}

fn position(id: PositionId, body: &[u8]) -> Result<Position, StoreError> {
    let read = take_position(body).ok().filter(|read| read.id == id);
    read.ok_or_else(|| damaged(format!("position {id} cannot be read")))
}

fn damaged(why: String) -> StoreError {
    StoreError::Damaged(why)
}

/// A scan from the last key to the first.
struct Back<'a> {
    of: &'a EndedOf,
    space: Space,
    first: Vec<u8>,
    end: Bound<Vec<u8>>,
    /// What was read and not returned yet, the next row last.
    piece: Vec<Found>,
    /// Rows of the next piece.
    rows: usize,
    failed: Option<StoreError>,
    is_over: bool,
}

/// A row of a scan.
struct Found {
    space: Space,
    key: Value,
    value: Value,
    /// Where its body begins.
    body: usize,
}

impl Found {
    fn object(&self) -> Result<u64, StoreError> {
        let object = object_of(&self.key).filter(|_| self.key.len() == key_bytes(self.space));
        object.ok_or_else(|| damaged(format!("{} has a key of {} bytes", self.space.name(), self.key.len())))
    }

    fn body(&self) -> &[u8] {
        &self.value[self.body..]
    }

    fn day(&self) -> Result<UtcDay, StoreError> {
        Ok(take_head(&mut &self.value[..])?.day)
    }
}

impl Back<'_> {
    /// Reads a piece.
    fn read(&mut self) -> Result<(), StoreError> {
        let is_empty = match &self.end {
            Bound::Excluded(end) => *end <= self.first,
            Bound::Included(end) => *end < self.first,
            Bound::Unbounded => false,
        };
        let Some(opened) = self.of.opened()?.filter(|_| !is_empty) else {
            self.is_over = true;
            return Ok(());
        };
        let keys = (Bound::Included(&self.first[..]), self.end.as_ref().map(|end| &end[..]));
        let mut last = None;
        for row in opened.spaces.scan(self.space, keys).rev().take(self.rows) {
            let (key, value) = row?;
            let body = self.of.body(self.space, &value)?.map(|body| value.len() - body.len());
            last = Some(key.clone());
            self.piece.extend(body.map(|body| Found { space: self.space, key, value, body }));
        }
        match last {
            // Also if all of them are of a later LSN, or not kept.
            Some(last) => self.end = Bound::Excluded(last.to_vec()),
            None => self.is_over = true,
        }
        self.rows = (self.rows * 2).min(PIECE_ROWS_MAX);
        Ok(())
    }
}

/// Ends after an error.
impl Iterator for Back<'_> {
    type Item = Result<Found, StoreError>;

    fn next(&mut self) -> Option<Result<Found, StoreError>> {
        loop {
            if let Some(found) = self.piece.pop() {
                return Some(Ok(found));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.read() {
                // After the rows that were read before it.
                self.failed = Some(error);
                self.is_over = true;
            }
            self.piece.reverse();
        }
    }
}
