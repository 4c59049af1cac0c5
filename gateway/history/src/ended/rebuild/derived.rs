//! The keyspaces that follow from orders and requests. Their rows come in the order of orders, and have other keys. So they
//! are collected up to a bound, sorted, and ingested as a run; the tables join the runs, as they do the rows of moves.

use super::Rebuilding;
use super::sources::Row;
use crate::ended::manifest::{Addition, row_hash};
use crate::ended::rows::{
    first_object, hash_key, id_hash, key_bytes, market_key, object_key, put_head, put_order_of, take_head,
    take_order_of, user_of,
};
use crate::store::{Head, Space, StoreError};
use engine::departed::{EndedOrder, Sharing, take_order};
use engine::id::{OrderId, UserId};
use engine::order::Order;
use engine::time::UtcDay;
use std::collections::BTreeSet;
use std::ops::Bound;

/// Memory for the rows of a run.
const RUN_BYTES: usize = if cfg!(test) { 48 << 10 } else { 32 << 20 };
/// What a row of a run takes beside its bytes.
const ROW_BYTES: usize = 80;
/// Rows that are decoded with shared memory.
const SHARING_ROWS: u64 = 1 << 16;

/// Rows of one keyspace, in any order.
struct Run {
    space: Space,
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

/// The keyspaces that are being derived.
pub(super) struct Derived {
    fills: Run,
    by_hash: Run,
    by_market: Run,
    /// Users with requests under ids that their orders do not have.
    with_own_ids: BTreeSet<UserId>,
}

impl Derived {
    pub fn new() -> Derived {
        let [fills, by_hash, by_market] =
            [Space::Fills, Space::ByHash, Space::ByMarket].map(|space| Run { space, rows: Vec::new(), bytes: 0 });
        Derived { fills, by_hash, by_market, with_own_ids: BTreeSet::new() }
    }

    /// Notes the request of an order. The order is found under its market, with the hash of the request's id if it does not
    /// have that id itself.
    pub fn request(&mut self, user: UserId, order: &Order, head: Head, hash: u64) {
        if order.terms.client_order_id().map(id_hash) == Some(hash) {
            return;
        }
        self.with_own_ids.insert(user);
        let mut value = head_bytes(head);
        value.extend_from_slice(&hash.to_be_bytes());
        self.by_market.push(market_key(user, order.terms.instrument.market(), order.id), value);
    }

    /// Whether [`Rebuilding::write_requests`] should be called.
    pub fn is_full(&self) -> bool {
        self.by_market.is_full()
    }
}

impl Run {
    fn push(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += key.len() + value.len() + ROW_BYTES;
        self.rows.push((key, value));
    }

    fn is_full(&self) -> bool {
        self.bytes >= RUN_BYTES
    }
}

fn head_bytes(head: Head) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_head(head, &mut bytes);
    bytes
}

impl Rebuilding<'_> {
    /// Writes what was noted of requests.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) fn write_requests(&mut self) -> Result<(), StoreError> {
        let mut derived = std::mem::replace(&mut self.derived, Derived::new());
        let written = self.write_run(&mut derived.by_market);
        self.derived = derived;
        written
    }

    /// Fills the keyspaces that follow from the orders of the new store, and from the requests that were noted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) fn derive(&mut self) -> Result<(), StoreError> {
        self.write_requests()?;
        let mut derived = std::mem::replace(&mut self.derived, Derived::new());
        let (mut sharing, mut rows) = (Sharing::default(), 0);
        for row in self.spaces.scan(Space::Orders, (Bound::Unbounded, Bound::Unbounded)) {
            let (key, value) = row?;
            let mut body = &value[..];
            let head = take_head(&mut body)?;
            let user = user_of(&key).ok_or_else(|| StoreError::Damaged("an order without a user".to_owned()))?;
            let ended = take_order(body, &mut sharing);
            let ended = ended.map_err(|error| StoreError::Damaged(error.to_string()))?;
            self.order_rows(user, head, &ended, &mut derived)?;
            rows += 1;
            if rows % SHARING_ROWS == 0 {
                sharing = Sharing::default();
            }
        }
        [&mut derived.fills, &mut derived.by_hash, &mut derived.by_market]
            .into_iter()
            .try_for_each(|run| self.write_run(run))
    }

    /// Adds what follows from an order.
    fn order_rows(
        &mut self,
        user: UserId,
        head: Head,
        EndedOrder { order, fills }: &EndedOrder,
        derived: &mut Derived,
    ) -> Result<(), StoreError> {
        for fill in fills {
            let mut value = head_bytes(head);
            put_order_of(fill.id.0, order.id, &mut value);
            derived.fills.push(object_key(user, fill.id.0), value);
        }
        if let Some(hash) = order.terms.order_hash() {
            let mut value = head_bytes(head);
            put_order_of(first_object(user), order.id, &mut value);
            derived.by_hash.push(hash_key(user, hash), value);
        }
        let key = market_key(user, order.terms.instrument.market(), order.id);
        // With the hash of its request it is there.
        let has_row = derived.with_own_ids.contains(&user) && self.spaces.get(Space::ByMarket, &key)?.is_some();
        if !has_row {
            derived.by_market.push(key, head_bytes(head));
        }
        for run in [&mut derived.fills, &mut derived.by_hash, &mut derived.by_market] {
            if run.is_full() {
                self.write_run(run)?;
            }
        }
        Ok(())
    }

    /// Writes the rows of a run, which is empty then. Of several rows with one hash that of the highest order counts.
    fn write_run(&mut self, run: &mut Run) -> Result<(), StoreError> {
        let space = run.space;
        run.bytes = 0;
        let mut rows = std::mem::take(&mut run.rows);
        // Stable, and orders ascend: of equal keys the last is that of the highest order.
        rows.sort_by(|(key, _), (other, _)| key.cmp(other));
        let (spaces, mut addition) = (self.spaces, Addition::default());
        spaces.ingest(space, |write| {
            for (at, (key, value)) in rows.iter().enumerate() {
                if rows.get(at + 1).is_some_and(|(next, _)| next == key) {
                    continue;
                }
                let found = if may_be_there(space, value)? { spaces.get(space, key)? } else { None };
                if space == Space::ByHash
                    && let Some(found) = &found
                    && hashed_order(key, found)? >= hashed_order(key, value)?
                {
                    continue;
                }
                let replaced =
                    found.map(|found| Ok::<_, StoreError>((row_hash(key, &found), day(&found)?))).transpose()?;
                write(key, value)?;
                addition.add(key, row_hash(key, value), day(value)?, replaced);
            }
            Ok(())
        })?;
        self.manifest.add(space, addition)
    }

    /// Writes the hashes of signed orders of days that were cut, which have no order any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) fn add_cut_hashes(&mut self, rows: impl Iterator<Item = Row>, upto: u64) -> Result<(), StoreError> {
        let mut rows = rows;
        self.fill(Space::ByHash, |of| rows.find(|(key, value)| of.is_cut_hash(key, value, upto)).map(Ok))
    }

    /// Whether it is one of them. Those of days that are kept are counted, and follow from their orders.
    fn is_cut_hash(&mut self, key: &[u8], value: &[u8], upto: u64) -> bool {
        let day_of_departed = || {
            let head = take_head(&mut &value[..]).ok().filter(|head| head.lsn <= upto)?;
            let order = hashed_order(key, value).ok()?;
            let user = self.state.get(user_of(key)?)?;
            let has_left = user.order(order).is_none() && Some(order) <= user.departed()?.newest_order();
            has_left.then_some(head.day)
        };
        let Some(day) = day_of_departed() else { return false };
        let is_cut = day < self.manifest.kept_from;
        self.kept_hashes += u64::from(!is_cut);
        is_cut
    }
}

/// Whether an earlier run may have the key: a hash may be that of several orders, and an order may have been placed by
/// several requests.
fn may_be_there(space: Space, value: &[u8]) -> Result<bool, StoreError> {
    let mut body = value;
    take_head(&mut body)?;
    Ok(space == Space::ByHash || space == Space::ByMarket && !body.is_empty())
}

/// The order of a row of `by_hash`.
fn hashed_order(key: &[u8], value: &[u8]) -> Result<OrderId, StoreError> {
    let mut body = value;
    take_head(&mut body)?;
    let order = user_of(key)
        .filter(|_| key.len() == key_bytes(Space::ByHash))
        .and_then(|user| take_order_of(first_object(user), body));
    order.ok_or_else(|| StoreError::Damaged("a hash of an order cannot be read".to_owned()))
}

fn day(value: &[u8]) -> Result<UtcDay, StoreError> {
    Ok(take_head(&mut &value[..])?.day)
}
