//! Ended rows of a user: look-ups by key, and scans from the newest, piece by piece. A piece is read whole and the tables
//! are let go, so a slow reader holds up neither a merge nor an opening. Before each look-up and piece the reader asks
//! whether the answer is still wanted.

use super::Hole;
use super::fills::FillRows;
use super::rows::{
    first_object, hash_key, id_hash, key_bytes, market_key, object_key, object_of, request_key, take_head,
    take_order_of, take_request_hash,
};
use super::{EndedStore, Opened};
use crate::store::{Space, StoreError, Value};
use engine::departed::{Departed, EndedOrder, EndedRequest, Sharing, take_order, take_position, take_request};
use engine::id::{MarketId, OrderId, PositionId, TradeId, UserId};
use engine::order::{Fill, Order};
use engine::time::UtcDay;
use engine::user::{Position, Remembered};
use std::ops::Bound;
use std::sync::Arc;

/// Rows of the first piece of a scan, which is often enough; each piece has twice as many as the one before.
const PIECE_ROWS: usize = 16;
const PIECE_ROWS_MAX: usize = 1_024;

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
    pub fn of(&self, user: UserId, upto: u64) -> EndedOf<'static> {
        EndedOf { reader: self.clone(), user, upto, is_given_up: &|| false }
    }
}

/// The ended rows of a user up to one LSN.
#[derive(Clone)]
pub struct EndedOf<'a> {
    reader: EndedReader,
    pub(super) user: UserId,
    upto: u64,
    is_given_up: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> EndedOf<'a> {
    /// The same rows for an answer that may be given up: from then on every read is [`StoreError::GivenUp`]. It is asked
    /// before each look-up and each piece of a scan, of 1,024 rows at most.
    pub fn until<'b>(self, is_given_up: &'b (dyn Fn() -> bool + Sync)) -> EndedOf<'b>
    where
        'a: 'b,
    {
        EndedOf { is_given_up, ..self }
    }

    /// The open tables, for one look-up or piece; `None` if nothing has left memory.
    pub(super) fn opened(&self) -> Result<Option<Arc<Opened>>, StoreError> {
        if self.upto == 0 {
            return Ok(None);
        }
        if (self.is_given_up)() {
            return Err(StoreError::GivenUp);
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

    /// The orders, fills, positions and requests of this user that are missing.
    fn hole(&self) -> Result<Option<Hole>, StoreError> {
        let hole = self.opened()?.and_then(|opened| opened.hole_of(self.user));
        Ok(hole.filter(|hole| hole.newest != 0))
    }

    /// Nothing was found under this id, or one that is not lower: an error if it may be missing.
    fn nothing<T>(&self, id: u64) -> Result<Option<T>, StoreError> {
        // What has a higher id than all rows that had left is not missing.
        match self.hole()?.filter(|hole| id <= hole.newest) {
            Some(hole) => Err(StoreError::Incomplete { upto: hole.upto }),
            None => Ok(None),
        }
    }

    /// What a row has after its head; `None` if it is of a later LSN, or ended before the history that is kept.
    pub(super) fn body<'v>(&self, space: Space, mut value: &'v [u8]) -> Result<Option<&'v [u8]>, StoreError> {
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

    /// The order that another row of that day names, which is of the same day. `None`: that day was cut since that row was
    /// read.
    pub(super) fn named(
        &self,
        id: OrderId,
        day: UtcDay,
        sharing: &mut Sharing,
    ) -> Result<Option<EndedOrder>, StoreError> {
        match self.order_in(id, sharing)? {
            None if self.is_cut(Space::Orders, day) => Ok(None),
            None => Err(damaged(format!("order {id} is named and missing"))),
            found => Ok(found),
        }
    }

    /// The request of an order, under the hash of its id.
    fn request_under(&self, hash: u64, order: OrderId) -> Result<Option<Remembered>, StoreError> {
        let key = request_key(self.user, hash, order);
        self.find(Space::Requests, &key, |body| request(order, body, &mut Sharing::default()))
    }

    /// The rows of a keyspace between two keys, the last first. Both have the same length.
    fn back(&self, space: Space, first: Vec<u8>, end: Bound<Vec<u8>>) -> Back<'_, 'a> {
        let piece = Vec::new();
        Back { of: self, space, first, end, piece, rows: PIECE_ROWS, failed: None, is_over: false, hole: None }
    }

    /// The objects of a keyspace below one, the newest first.
    fn objects(&self, space: Space, before: Option<u64>) -> Back<'_, 'a> {
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
            let order = row.and_then(|row| self.named(OrderId(row.object()?), row.day()?, &mut sharing));
            order.transpose().map(|order| match order {
                Ok(found) if found.order.terms.instrument.market() != market => {
                    Err(damaged(format!("order {} is listed under another market", found.order.id)))
                }
                found => found,
            })
        })
    }
}

impl Departed for EndedOf<'_> {
    type Error = StoreError;

    fn kept_from(&self) -> UtcDay {
        self.reader.store.shown_from()
    }

    fn order(&self, id: OrderId) -> Result<Option<EndedOrder>, StoreError> {
        match self.order_in(id, &mut Sharing::default())? {
            None => self.nothing(id.0),
            found => Ok(found),
        }
    }

    fn left(&self, id: OrderId) -> Result<Option<EndedOrder>, StoreError> {
        let missing = || damaged(format!("order {id} has left memory and is missing"));
        match self.order(id)? {
            // Days that were cut since are not kept.
            None if self.kept_from() == UtcDay(0) => Err(missing()),
            found => Ok(found),
        }
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, StoreError> {
        match self.find(Space::Positions, &object_key(self.user, id.0), |body| position(id, body))? {
            None => self.nothing(id.0),
            found => Ok(found),
        }
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

    fn fill(&self, id: TradeId) -> Result<Option<(Fill, Order)>, StoreError> {
        let order = self.find(Space::Fills, &object_key(self.user, id.0), |body| fill_order(id.0, body))?;
        let Some(order) = order else { return self.nothing(id.0) };
        let Some(EndedOrder { order, fills }) = self.order_in(order, &mut Sharing::default())? else {
            // The day of both may have been cut since the fill was read.
            let is_there = self.find(Space::Fills, &object_key(self.user, id.0), |_| Ok(()))?.is_some();
            return if is_there { Err(damaged(format!("order {order} is named and missing"))) } else { Ok(None) };
        };
        let fill = fills.into_iter().find(|fill| fill.id == id);
        let fill = fill.ok_or_else(|| lacks(order.id, id.0))?;
        Ok(Some((fill, order)))
    }

    fn left_fill(&self, id: TradeId) -> Result<Option<(Fill, Order)>, StoreError> {
        let missing = || damaged(format!("fill {id} has left memory and is missing"));
        match self.fill(id)? {
            None if self.kept_from() == UtcDay(0) => Err(missing()),
            found => Ok(found),
        }
    }

    fn fills(&self, before: Option<TradeId>) -> impl Iterator<Item = Result<(Fill, Order), StoreError>> {
        FillRows::new(self, self.objects(Space::Fills, before.map(|before| before.0)))
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
            let request = request(id, row.body(), &mut sharing)?;
            let Some(order) = self.named(id, row.day()?, &mut sharing)? else { continue };
            let found = EndedRequest { request, order };
            // Another id may have the same hash.
            if found.id() == Some(client_order_id) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn request_of(&self, order: &Order) -> Result<Option<Remembered>, StoreError> {
        if let Some(id) = order.terms.client_order_id()
            && let Some(found) = self.request_under(id_hash(id), order.id)?
        {
            return Ok(Some(found));
        }
        // A signed order's request has an id that the order does not have.
        let key = market_key(self.user, order.terms.instrument.market(), order.id);
        let unreadable = || damaged(format!("the request of order {} cannot be found", order.id));
        let hash = self.find(Space::ByMarket, &key, |body| take_request_hash(body).ok_or_else(unreadable))?;
        match hash.flatten() {
            Some(hash) => self.request_under(hash, order.id)?.ok_or_else(unreadable).map(Some),
            None => self.nothing(order.id.0),
        }
    }

    fn signed_order(&self, hash: &[u8; 32]) -> Result<Option<OrderId>, StoreError> {
        let found = self.find(Space::ByHash, &hash_key(self.user, hash), |body| {
            take_order_of(first_object(self.user), body)
                .ok_or_else(|| damaged("a hash of an order cannot be read".to_owned()))
        })?;
        if found.is_none()
            && let Some(hole) = self.opened()?.and_then(|opened| opened.hole_of(self.user))
            && hole.has_hashes
        {
            return Err(StoreError::Incomplete { upto: hole.upto });
        }
        Ok(found)
    }
}

/// The order of a fill.
pub(super) fn fill_order(fill: u64, body: &[u8]) -> Result<OrderId, StoreError> {
    take_order_of(fill, body).ok_or_else(|| damaged(format!("fill {fill} cannot be read")))
}

/// An order without the fill that names it.
pub(super) fn lacks(order: OrderId, fill: u64) -> StoreError {
    damaged(format!("order {order} lacks its fill {fill}"))
}

pub(super) fn order(id: OrderId, body: &[u8], sharing: &mut Sharing) -> Result<EndedOrder, StoreError> {
    let read = take_order(body, sharing).ok().filter(|read| read.order.id == id);
    read.ok_or_else(|| damaged(format!("order {id} cannot be read")))
}

fn request(order: OrderId, body: &[u8], sharing: &mut Sharing) -> Result<Remembered, StoreError> {
    let read = take_request(body, sharing).ok().filter(|read| read.order == order);
    read.ok_or_else(|| damaged(format!("the request of order {order} cannot be read")))
}

fn position(id: PositionId, body: &[u8]) -> Result<Position, StoreError> {
    let read = take_position(body).ok().filter(|read| read.id == id);
    read.ok_or_else(|| damaged(format!("position {id} cannot be read")))
}

fn damaged(why: String) -> StoreError {
    StoreError::Damaged(why)
}

/// A scan from the last key to the first.
pub(super) struct Back<'s, 'a> {
    of: &'s EndedOf<'a>,
    space: Space,
    first: Vec<u8>,
    end: Bound<Vec<u8>>,
    /// What was read and not returned yet, the next row last.
    piece: Vec<Found>,
    /// Rows of the next piece.
    rows: usize,
    failed: Option<StoreError>,
    is_over: bool,
    /// Rows that are missing of the user.
    hole: Option<Hole>,
}

/// A row of a scan.
pub(super) struct Found {
    space: Space,
    key: Value,
    value: Value,
    /// Where its body begins.
    body: usize,
}

impl Found {
    pub(super) fn object(&self) -> Result<u64, StoreError> {
        let object = object_of(&self.key).filter(|_| self.key.len() == key_bytes(self.space));
        object.ok_or_else(|| damaged(format!("{} has a key of {} bytes", self.space.name(), self.key.len())))
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.value[self.body..]
    }

    pub(super) fn day(&self) -> Result<UtcDay, StoreError> {
        Ok(take_head(&mut &self.value[..])?.day)
    }
}

impl Back<'_, '_> {
    /// The rest of the piece that was read, or the next one, the last key first; empty at the end.
    ///
    /// # Errors
    /// [`StoreError`] if the next row is one.
    pub(super) fn piece(&mut self) -> Result<Vec<Found>, StoreError> {
        let mut rows = Vec::from_iter(self.next().transpose()?);
        while let Some(found) = self.piece.pop() {
            match self.before_hole(found) {
                Ok(found) => rows.push(found),
                Err(error) => self.failed = Some(error),
            }
        }
        Ok(rows)
    }

    /// Nothing comes after what was returned.
    pub(super) fn end(&mut self) {
        self.piece.clear();
        (self.failed, self.hole, self.is_over) = (None, None, true);
    }

    /// A row that no missing one is before.
    fn before_hole(&mut self, found: Found) -> Result<Found, StoreError> {
        let Some(hole) = &self.hole else { return Ok(found) };
        if found.object()? > hole.newest {
            return Ok(found);
        }
        self.piece.clear();
        self.is_over = true;
        let upto = hole.upto;
        self.hole = None;
        Err(StoreError::Incomplete { upto })
    }

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
        self.hole = self.of.hole()?;
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
impl Iterator for Back<'_, '_> {
    type Item = Result<Found, StoreError>;

    fn next(&mut self) -> Option<Result<Found, StoreError>> {
        loop {
            if let Some(found) = self.piece.pop() {
                return Some(self.before_hole(found));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            if self.is_over {
                // What is missing would follow.
                let hole = self.hole.take()?;
                return Some(Err(StoreError::Incomplete { upto: hole.upto }));
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
