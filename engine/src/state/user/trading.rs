//! The trading state of a user: orders, fills, positions, remembered requests. Allocated with the first of them, so
//! that an idle user costs no memory for it.

use super::alerts::Alerts;
use super::backtests::Backtests;
use super::departed::DepartedRows;
use super::equity::Equity;
use super::facts::Facts;
use super::idempotency::{Remembered, Requests};
use super::position::Position;
use super::prefixes::Prefixes;
use super::realism::Realism;
use super::rows::{Numbers, Rows};
use super::safeguard::Safeguard;
use super::signed::Signed;
use super::sorted::Sorted;
use crate::amount::{Cash, Qty};
use crate::bytes::CodecError;
use crate::canonical::RowHashes;
use crate::id::{InstrumentId, OrderId, PositionId, TradeId, WalletId};
use crate::order::Order;
use crate::order::row::{Fill, NO_FILL};
use crate::time::Timestamp;
use crate::view::Fills;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Orders, fills, positions and derived indexes.
#[derive(Debug, Default)]
pub(crate) struct Trading {
    pub orders: Rows<Order>,
    pub fills: Rows<Fill>,
    pub positions: Rows<Position>,
    pub safeguards: Vec<Safeguard>,
    pub requests: Option<Box<Requests>>,
    /// Points of the wallets whose value ever differed from their opening cash, in wallet order.
    pub equity: Vec<Equity>,
    /// Resets of wallets, oldest first, the newest [`RESETS_KEPT`] of each.
    pub resets: Vec<(WalletId, Timestamp)>,
    pub backtests: Option<Box<Backtests>>,
    pub alerts: Option<Box<Alerts>>,
    /// Chosen sets, and places in queues; `None` without any.
    pub realism: Option<Box<Realism>>,
    /// The newest order facts.
    pub facts: Facts,
    /// What is known of rows that have left memory.
    pub departed: Option<Box<DepartedRows>>,
    /// Prefixes of the user's ids beside its own.
    pub prefixes: Prefixes,
    /// Derived: row + 1 of an order, fill or position by its object number.
    pub(super) index: Numbers,
    /// Derived: the signed orders by their hashes.
    pub(super) signed: Option<Box<Signed>>,
    /// Derived: row numbers of the open orders.
    pub open: Sorted<u32>,
    /// Derived: the open episodes, by instrument and wallet.
    pub held: Vec<Holding>,
    /// Derived: totals of each wallet, in wallet order.
    tallies: Vec<(WalletId, Tally)>,
}

/// Totals of a wallet, so that no request has to count a long history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// All orders; 0 in the totals of [`DepartedRows`], which counts them by their ends.
    pub orders: u32,
    pub fills: u32,
    /// Episodes that ended at a known price, and those of them with a gain.
    pub closed: u32,
    pub won: u32,
    /// When the last episode was opened; the start of 1970: none was.
    pub opened_at: Timestamp,
}

/// The row of an open episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub instrument: InstrumentId,
    pub wallet: WalletId,
    pub row: u32,
}

/// Resets that are remembered per wallet: as many as a plan allows within its window.
pub(crate) const RESETS_KEPT: usize = 4;

/// The trading state of a user that has never traded.
pub(crate) static NOTHING: Trading = Trading {
    orders: Rows::new(),
    fills: Rows::new(),
    positions: Rows::new(),
    safeguards: Vec::new(),
    requests: None,
    equity: Vec::new(),
    resets: Vec::new(),
    backtests: None,
    alerts: None,
    realism: None,
    facts: Facts::new(),
    departed: None,
    prefixes: Prefixes::new(),
    index: Numbers::new(),
    signed: None,
    open: Sorted::new(),
    held: Vec::new(),
    tallies: Vec::new(),
};

impl Trading {
    /// The row of an order.
    pub fn order_row(&self, id: OrderId) -> Option<usize> {
        let row = self.row(id.0)?;
        self.orders.get(row).is_some_and(|order| order.id == id).then_some(row)
    }

    /// The row where an order should be, unverified.
    pub fn order_row_hint(&self, id: OrderId) -> Option<usize> {
        self.row(id.0)
    }

    /// Prefetches the ends of the lists, where the next rows go.
    pub fn warm(&self) -> usize {
        let order = self.orders.last().map_or(0, |order| order.id.0);
        let fill = self.fills.last().map_or(0, |fill| fill.id.0);
        let index = self.index.last().map_or(0, |row| row.get() as usize);
        let tally = self.tallies.last().map_or(0, |(_, tally)| tally.orders as usize);
        let lists = (order ^ fill) as usize ^ index ^ tally ^ self.open.last().map_or(0, |row| row as usize);
        lists ^ self.facts.warm() ^ self.requests.as_ref().map_or(0, |requests| requests.rows.len())
    }

    /// Prefetches the index entries of a request with this id.
    pub fn warm_request(&self, id: &str) -> usize {
        self.requests.as_ref().map_or(0, |requests| requests.warm(id))
    }

    /// The row of a position.
    pub fn position_row(&self, id: PositionId) -> Option<usize> {
        let row = self.row(id.0)?;
        self.positions.get(row).is_some_and(|position| position.id == id).then_some(row)
    }

    /// The row of a fill.
    pub fn fill_row(&self, id: TradeId) -> Option<usize> {
        let row = self.row(id.0)?;
        self.fills.get(row).is_some_and(|fill| fill.id == id).then_some(row)
    }

    /// The order with this object number, and its row.
    pub fn order_at(&self, number: u32) -> Option<(usize, &Order)> {
        let row = row_of(self.index.get(number as usize)?);
        self.orders.get(row).filter(|order| self.prefixes.number(order.id.0) == number).map(|order| (row, order))
    }

    /// The fill with this object number, and its row.
    pub fn fill_at(&self, number: u32) -> Option<(usize, &Fill)> {
        let row = row_of(self.index.get(number as usize)?);
        self.fills.get(row).filter(|fill| self.prefixes.number(fill.id.0) == number).map(|fill| (row, fill))
    }

    /// The row of the open episode of an instrument in a wallet.
    pub fn held_row(&self, wallet: WalletId, instrument: InstrumentId) -> Option<usize> {
        self.holding(wallet, instrument).ok().map(|at| self.held[at].row as usize)
    }

    /// The request remembered under `id`, if its order was placed at `since` or later.
    pub fn remembered(&self, id: &str, since: Timestamp) -> Option<&Remembered> {
        let order_of = |row: &Remembered| self.order_row(row.order).map(|row| &self.orders[row]);
        let found = self.requests.as_ref()?.find(id, |row| order_of(row).is_some_and(|order| row.has_id(order, id)))?;
        order_of(found).is_some_and(|order| order.created_at >= since).then_some(found)
    }

    /// When the order of the oldest request in memory was placed.
    pub fn oldest_request(&self) -> Option<Timestamp> {
        let oldest = self.requests.as_ref()?.rows.first()?;
        self.order_row(oldest.order).map(|row| self.orders[row].created_at)
    }

    /// Drops up to `most` requests whose orders were placed before `since`, oldest first. Returns how many.
    pub fn forget_requests(&mut self, since: Timestamp, most: usize) -> usize {
        let Some(mut requests) = self.requests.take() else { return 0 };
        let (mut hashes, mut count) = (RowHashes::default(), 0);
        while count < most
            && let Some((number, oldest)) = requests.rows.at_or_after(0)
            && let Some(row) = self.order_row(oldest.order)
            && self.orders[row].created_at < since
        {
            oldest.hash(&self.orders[row], &mut hashes);
            requests.remove(number, &self.orders[row]);
            count += 1;
        }
        if count > 0 {
            self.departed.get_or_insert_default().sum.add(&hashes.sum.bytes());
        }
        // Its last memory goes with the last request.
        self.requests = Some(requests).filter(|requests| !requests.rows.is_empty());
        count
    }

    /// Adds a new order and returns its row.
    #[inline]
    pub fn push_order(&mut self, order: Order) -> usize {
        let (id, wallet) = (order.id, order.terms.wallet);
        assert!(self.orders.last().is_none_or(|last| last.id < id), "ids of orders ascend: order {id}");
        let row = self.orders.push(order);
        self.set_row(id.0, row);
        self.tally_mut(wallet).orders += 1;
        row
    }

    /// The signed order with this hash.
    pub fn signed(&self, hash: &[u8; 32]) -> Option<&Order> {
        self.signed.as_ref()?.find(hash, |row| self.orders.get(row as usize))
    }

    /// Records that the order in this row has this hash of a signed order.
    pub fn note_signed(&mut self, hash: &[u8; 32], row: u32) {
        self.signed.get_or_insert_default().note(hash, row);
    }

    /// Adds a fill after the earlier ones of its order, which belongs to `wallet`.
    pub fn push_fill(&mut self, fill: Fill, wallet: WalletId) {
        assert!(self.fills.last().is_none_or(|last| last.id < fill.id), "ids of fills ascend: trade {}", fill.id);
        let id = fill.id;
        let row = self.fills.push(fill);
        self.set_row(id.0, row);
        self.tally_mut(wallet).fills += 1;
    }

    /// Opens an episode.
    pub fn push_position(&mut self, position: Position) -> usize {
        let id = position.id;
        assert!(self.positions.last().is_none_or(|last| last.id < id), "ids of positions ascend: position {id}");
        let at = self.holding(position.wallet, position.instrument);
        let at = at.expect_err("one open episode per wallet and instrument");
        let row = self.positions.end();
        self.held.insert(at, Holding { instrument: position.instrument, wallet: position.wallet, row: row as u32 });
        self.tally_mut(position.wallet).note_opened(position.opened_at);
        self.positions.push(position);
        self.set_row(id.0, row);
        row
    }

    /// The totals of a wallet.
    pub fn tally(&self, wallet: WalletId) -> Tally {
        tally_of(&self.tallies, wallet)
    }

    /// Limits times of the totals to at most `at`.
    pub fn set_tallies_back(&mut self, at: Timestamp) {
        self.tallies.iter_mut().for_each(|(_, tally)| tally.opened_at = tally.opened_at.min(at));
    }

    fn tally_mut(&mut self, wallet: WalletId) -> &mut Tally {
        tally_in(&mut self.tallies, wallet)
    }

    /// The points of a wallet.
    pub fn equity_mut(&mut self, wallet: WalletId) -> &mut Equity {
        let at = self.equity.binary_search_by_key(&wallet, |equity| equity.wallet).unwrap_or_else(|at| {
            self.equity.reserve_exact(1);
            self.equity.insert(at, Equity::new(wallet));
            at
        });
        &mut self.equity[at]
    }

    /// Changes what is known of sets and queues.
    pub fn change_realism(&mut self, change: impl FnOnce(&mut Realism)) {
        let mut realism = self.realism.take().unwrap_or_default();
        change(&mut realism);
        self.realism = Some(realism).filter(|realism| !realism.is_empty());
    }

    /// An order has ended, and with it its place in a queue.
    pub fn drop_queue_note(&mut self, order: OrderId) {
        if self.realism.is_some() {
            self.change_realism(|realism| realism.drop_note(order));
        }
    }

    /// Records a reset of a wallet.
    pub fn push_reset(&mut self, wallet: WalletId, at: Timestamp) {
        self.resets.push((wallet, at));
        let mut older = self.resets.iter().enumerate().rev().filter(|(_, (of, _))| *of == wallet).map(|(row, _)| row);
        if let Some(forgotten) = older.nth(RESETS_KEPT) {
            self.resets.remove(forgotten);
        }
    }

    /// Removes an ended episode; its gain is final.
    pub fn drop_holding(&mut self, wallet: WalletId, instrument: InstrumentId) {
        let at = self.holding(wallet, instrument).expect("an ending episode is open");
        let row = self.held.remove(at).row as usize;
        let (known, won) = (self.positions[row].has_known_exit(), self.positions[row].has_won());
        if known {
            self.tally_mut(wallet).note_closed(won);
        }
    }

    /// The fills of an order, in time order.
    pub fn fills_of(&self, order: &Order) -> Fills {
        let mut row = order.last_fill;
        if row == NO_FILL {
            return Fills::None;
        }
        let last = &self.fills[row as usize];
        if last.before == NO_FILL {
            return Fills::One(last.clone());
        }
        let mut fills = Vec::new();
        while row != NO_FILL {
            let fill = &self.fills[row as usize];
            fills.push(fill.clone());
            row = fill.before;
        }
        fills.reverse();
        Fills::Many(fills)
    }

    /// Whether the user has neither orders, positions, points of equity nor resets, no back-test, no
    /// alerts, no armed heartbeat and no prefix beside its id, and has had no order.
    pub fn is_empty(&self) -> bool {
        let traded = !self.orders.is_empty() || !self.positions.is_empty() || self.departed.is_some();
        let noted = !self.safeguards.is_empty() || !self.equity.is_empty() || !self.resets.is_empty();
        let kept = self.backtests.is_some() || self.alerts.is_some() || self.realism.is_some();
        !traded && !noted && !kept && self.prefixes.granted().is_empty()
    }

    /// Derives the indexes of rows from a snapshot.
    pub fn derive(&mut self) -> Result<(), CodecError> {
        let ascend = self.orders.iter().is_sorted_by(|order, next| order.id < next.id)
            && self.fills.iter().is_sorted_by(|fill, next| fill.id < next.id)
            && self.positions.iter().is_sorted_by(|position, next| position.id < next.id);
        if !ascend {
            return Err(CodecError::Reference);
        }
        let Trading { orders, fills, positions, prefixes, index, .. } = self;
        let is_fill = |row: u32| row == NO_FILL || fills.get(row as usize).is_some();
        let is_before = |row: u32, next: usize| row == NO_FILL || (row as usize) < next;
        let links_before = |(row, fill): (usize, &Fill)| is_before(fill.before, row) && is_fill(fill.before);
        if !orders.iter().all(|order| is_fill(order.last_fill)) || !fills.range(0..fills.end()).all(links_before) {
            return Err(CodecError::Reference);
        }
        // In the order of their numbers, as they were assigned.
        let mut of_orders = orders.range(0..orders.end()).map(|(row, order)| (order.id.0, row));
        let mut of_fills = fills.range(0..fills.end()).map(|(row, fill)| (fill.id.0, row));
        let mut of_positions = positions.range(0..positions.end()).map(|(row, held)| (held.id.0, row));
        let mut next = [of_orders.next(), of_fills.next(), of_positions.next()];
        while let Some(least) = (0..next.len()).filter(|at| next[*at].is_some()).min_by_key(|at| next[*at]) {
            let (object, row) = next[least].expect("it was chosen");
            let number = prefixes.number(object);
            if index.get(number as usize).is_some() {
                return Err(CodecError::Reference);
            }
            set_row(index, number, row);
            next[least] = match least {
                0 => of_orders.next(),
                1 => of_fills.next(),
                _ => of_positions.next(),
            };
        }
        for (row, order) in self.orders.range(0..self.orders.end()) {
            if order.resting {
                self.open.insert(row as u32);
            }
            if let Some(hash) = order.terms.order_hash() {
                self.signed.get_or_insert_default().note(hash, row as u32);
            }
        }
        for (row, position) in self.positions.range(0..self.positions.end()) {
            let (wallet, instrument) = (position.wallet, position.instrument);
            if position.is_open()
                && let Err(at) = self.holding(wallet, instrument)
            {
                self.held.insert(at, Holding { instrument, wallet, row: row as u32 });
            }
        }
        self.tallies = self.counted().ok_or(CodecError::Reference)?;
        Ok(())
    }

    /// The totals, counted row by row, with those of departed rows. `None`: a fill has no order.
    fn counted(&self) -> Option<Vec<(WalletId, Tally)>> {
        let mut counted = self.departed.as_ref().map_or_else(Vec::new, |departed| departed.totals());
        for order in &self.orders {
            tally_in(&mut counted, order.terms.wallet).orders += 1;
        }
        for fill in &self.fills {
            tally_in(&mut counted, self.orders[self.order_row(fill.order)?].terms.wallet).fills += 1;
        }
        for position in &self.positions {
            let tally = tally_in(&mut counted, position.wallet);
            tally.note_opened(position.opened_at);
            if position.has_known_exit() {
                tally.note_closed(position.has_won());
            }
        }
        Some(counted)
    }

    /// Checks the invariants of this user's orders, fills and positions. Returns the first violation.
    pub fn check(&self) -> Result<(), String> {
        let mut fills = 0;
        let mut reserved = BTreeMap::<usize, Qty>::new();
        for (row, order) in self.orders.range(0..self.orders.end()) {
            let id = order.id;
            if self.order_row(id) != Some(row) {
                return Err(format!("an order is found by its id: order {id}"));
            }
            let of_order = self.fills_of(order);
            let mut filled = (Qty::ZERO, Cash::ZERO, Cash::ZERO);
            for fill in of_order.iter() {
                if fill.order != id {
                    return Err(format!("a fill is linked to its order: fill {}, order {id}", fill.id));
                }
                filled = (filled.0 + fill.qty, filled.1 + fill.notional, filled.2 + fill.fee);
            }
            if (order.filled, order.notional, order.fee) != filled {
                return Err(format!("filled = Σ fills: order {id}"));
            }
            fills += of_order.len();
            if order.is_open() != order.resting || order.resting != self.open.contains(row as u32) {
                return Err(format!("an order is open as long as it rests: order {id}"));
            }
            if !order.is_open() && (order.reserved_cash(), order.reserved_qty()) != (Cash::ZERO, Qty::ZERO) {
                return Err(format!("nothing is reserved for an order that ended: order {id}"));
            }
            if !order.reserved_qty().is_zero() {
                let held = self.held_row(order.terms.wallet, order.terms.instrument);
                *reserved
                    .entry(held.ok_or_else(|| format!("a resting SELL holds shares: order {id}"))?)
                    .or_default() += order.reserved_qty();
            }
        }
        if fills != self.fills.len() {
            return Err(format!("every fill is linked to its order: {fills} of {}", self.fills.len()));
        }
        if let Some((_, fill)) =
            self.fills.range(0..self.fills.end()).find(|(row, fill)| self.fill_row(fill.id) != Some(*row))
        {
            return Err(format!("a fill is found by its id: fill {}", fill.id));
        }
        let counted = self.counted().unwrap_or_default();
        if counted.len() != self.tallies.len() || counted.iter().any(|(of, tally)| self.tally(*of) != *tally) {
            return Err(format!("tallies equal the counts of the rows: {:?}, not {counted:?}", self.tallies));
        }
        for (row, position) in self.positions.range(0..self.positions.end()) {
            let id = position.id;
            let reserved = reserved.get(&row).copied().unwrap_or_default();
            if position.reserved != reserved || position.reserved > position.qty {
                return Err(format!("reserved shares = Σ open SELL orders ≤ held shares: position {id}"));
            }
            if position.is_open() == position.qty.is_zero() || position.cost < Cash::ZERO {
                return Err(format!("a position is open as long as it holds shares, at a cost ≥ 0: position {id}"));
            }
            let held = self.held_row(position.wallet, position.instrument) == Some(row);
            if self.position_row(id) != Some(row) || held != position.is_open() {
                return Err(format!("a position is found by its id, an open one by its instrument: position {id}"));
            }
        }
        let left = self.departed.as_ref().map_or([0; 3], |left| [left.orders, left.fills, left.positions]);
        let ends = [self.orders.end(), self.fills.end(), self.positions.end()];
        let there = [self.orders.len(), self.fills.len(), self.positions.len()];
        if ends.into_iter().zip(there).map(|(end, there)| end - there).ne(left.map(|left| left as usize)) {
            return Err(format!(
                "numbers count the rows that are there and those that left: {ends:?}, {there:?}, {left:?}"
            ));
        }
        if self.departed.as_ref().is_some_and(|left| !left.counts_orders()) {
            return Err("orders that left are counted by wallet".to_owned());
        }
        if self.index.len() != self.orders.len() + self.fills.len() + self.positions.len() {
            return Err(format!("the index has the rows that are there, and no others: {}", self.index.len()));
        }
        Ok(())
    }

    fn row(&self, object: u64) -> Option<usize> {
        self.index.get(self.prefixes.number(object) as usize).map(row_of)
    }

    #[inline]
    fn set_row(&mut self, object: u64, row: usize) {
        let number = self.prefixes.number(object);
        set_row(&mut self.index, number, row);
    }

    fn holding(&self, wallet: WalletId, instrument: InstrumentId) -> Result<usize, usize> {
        self.held.binary_search_by_key(&(instrument, wallet), |holding| (holding.instrument, holding.wallet))
    }
}

impl Tally {
    /// Adds an episode that was opened.
    pub(super) fn note_opened(&mut self, at: Timestamp) {
        self.opened_at = self.opened_at.max(at);
    }

    /// Adds an episode that ended at a known price.
    pub(super) fn note_closed(&mut self, has_won: bool) {
        self.closed += 1;
        self.won += u32::from(has_won);
    }
}

/// The totals of a wallet in a list in wallet order.
pub(super) fn tally_of(tallies: &[(WalletId, Tally)], wallet: WalletId) -> Tally {
    let at = tallies.binary_search_by_key(&wallet, |(of, _)| *of);
    at.map_or_else(|_| Tally::default(), |at| tallies[at].1)
}

/// The same, to change them; added if they are missing.
pub(super) fn tally_in(tallies: &mut Vec<(WalletId, Tally)>, wallet: WalletId) -> &mut Tally {
    let at = tallies.binary_search_by_key(&wallet, |(of, _)| *of).unwrap_or_else(|at| {
        tallies.reserve_exact(1);
        tallies.insert(at, (wallet, Tally::default()));
        at
    });
    &mut tallies[at].1
}

/// Records the row of an object number.
#[inline]
fn set_row(index: &mut Numbers, number: u32, row: usize) {
    let entry = NonZeroU32::new(row as u32 + 1).expect("rows are counted by object numbers");
    index.put(number as usize, entry);
}

fn row_of(entry: &NonZeroU32) -> usize {
    entry.get() as usize - 1
}
