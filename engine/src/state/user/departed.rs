//! Rows that leave memory: orders that have ended, with their fills and remembered requests, and closed positions. They
//! are in the history store by then; what stays here is what the engine itself needs of them ([`DepartedRows`]).
//!
//! Leaving is not a fact: it changes no answer and not the digest, and a replay from nothing keeps all rows. Which rows may
//! leave says [`Users::leaving`].

use super::prefixes::Prefixes;
use super::trading::{Tally, Trading, tally_in, tally_of};
use super::{Position, RowCounts, User, Users};
use crate::bytes::{Bytes, CodecError};
use crate::canonical::{RowHashes, Sum};
use crate::departed::Leaving;
use crate::id::{OBJECT_BITS, OrderId, PositionId, TradeId, UserId, WalletId};
use crate::mutation::packed::{Packer, put_numbers, take_numbers};
use crate::order::row::NO_FILL;
use crate::order::{Order, Side, Status};
use crate::time::{Timestamp, UtcDay};
use std::ops::Range;

/// What is known of a user's rows that have left memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DepartedRows {
    /// The sum of the hashes of all of them: also of requests that left before their orders, because their ids counted no
    /// longer.
    pub(crate) sum: Sum,
    /// Count of orders, fills and positions.
    pub orders: u32,
    pub fills: u32,
    pub positions: u32,
    /// Count of remembered requests that left with their orders.
    pub requests: u32,
    /// Totals of each wallet, without its orders, in wallet order.
    tallies: Vec<(WalletId, Tally)>,
    /// Orders of each wallet, in wallet order.
    ends: Vec<(WalletId, Ends)>,
    newest: Timestamp,
    moved_at: Timestamp,
    /// The first day on which one of the orders or positions ended.
    ended_from: Option<UtcDay>,
    newest_order: u64,
    newest_fill: u64,
    newest_position: u64,
}

/// Counts of orders by how they ended and by side: BUY orders that are filled, cancelled, expired, then SELL orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ends([u32; ENDS_COUNT]);

/// Of either side, as in [`Ends`].
const ENDED: [Status; 3] = [Status::Filled, Status::Cancelled, Status::Expired];
const ENDS_COUNT: usize = 2 * ENDED.len();

impl Ends {
    fn note(&mut self, status: Status, side: Side) {
        let at = ENDED.iter().position(|ended| *ended == status).expect("an order that left has ended");
        self.0[at + if side == Side::Sell { ENDED.len() } else { 0 }] += 1;
    }

    /// The count of orders with this status and side, or of all.
    fn count(&self, status: Option<Status>, side: Option<Side>) -> usize {
        let ends = [Side::Buy, Side::Sell].into_iter().flat_map(|side| ENDED.map(|status| (status, side)));
        let fit = ends.zip(self.0).filter(|((ended, of), _)| {
            status.is_none_or(|status| status == *ended) && side.is_none_or(|side| side == *of)
        });
        fit.map(|(_, count)| count as usize).sum()
    }
}

impl DepartedRows {
    /// The sum of the hashes of requests, while all other rows are there.
    pub(crate) fn of_requests(sum: Sum) -> DepartedRows {
        DepartedRows { sum, ..DepartedRows::default() }
    }

    /// Whether orders or positions have left, not only requests.
    pub(crate) fn has_rows(&self) -> bool {
        self.orders != 0 || self.positions != 0
    }

    /// The count of orders with this status and side, or with any, in the wallets that `is_chosen`. O(wallets).
    pub(crate) fn ended_orders(
        &self,
        status: Option<Status>,
        side: Option<Side>,
        is_chosen: impl Fn(WalletId) -> bool,
    ) -> usize {
        let chosen = self.ends.iter().filter(|(wallet, _)| is_chosen(*wallet));
        chosen.map(|(_, ends)| ends.count(status, side)).sum()
    }

    /// Whether the counts of orders by wallet are those of all orders.
    pub(super) fn counts_orders(&self) -> bool {
        self.ended_orders(None, None, |_| true) == self.orders as usize
    }

    /// The sum of the hashes of all of them (engine/docs/digest.md §1): also of requests that left before their orders,
    /// because their ids counted no longer.
    pub fn sum(&self) -> [u8; 32] {
        self.sum.bytes()
    }

    /// The newest time in any of these rows: a correction of the clock must not be earlier.
    pub fn newest(&self) -> Timestamp {
        self.newest
    }

    /// When cash or shares were last moved by one of these rows: by a fill, or by the closing of a position.
    pub fn moved_at(&self) -> Option<Timestamp> {
        (self.moved_at != Timestamp(0)).then_some(self.moved_at)
    }

    /// Totals of a wallet, without its orders.
    pub(crate) fn tally(&self, wallet: WalletId) -> Tally {
        tally_of(&self.tallies, wallet)
    }

    /// Totals of each wallet with its orders, in wallet order.
    pub(super) fn totals(&self) -> Vec<(WalletId, Tally)> {
        let mut totals = self.tallies.clone();
        for (wallet, ends) in &self.ends {
            tally_in(&mut totals, *wallet).orders += ends.count(None, None) as u32;
        }
        totals
    }

    /// Whether some of these orders or positions ended before a day.
    pub fn has_ended_before(&self, day: UtcDay) -> bool {
        self.ended_from.is_some_and(|first| first < day)
    }

    fn note_end(&mut self, ended_at: Timestamp) {
        let day = ended_at.day();
        self.ended_from = Some(self.ended_from.map_or(day, |first| first.min(day)));
    }

    /// The highest id of these orders.
    pub fn newest_order(&self) -> Option<OrderId> {
        (self.newest_order != 0).then_some(OrderId(self.newest_order))
    }

    /// The highest id of these fills.
    pub fn newest_fill(&self) -> Option<TradeId> {
        (self.newest_fill != 0).then_some(TradeId(self.newest_fill))
    }

    /// The highest id of these positions.
    pub fn newest_position(&self) -> Option<PositionId> {
        (self.newest_position != 0).then_some(PositionId(self.newest_position))
    }

    fn note_order(&mut self, order: &Order) {
        self.orders += 1;
        self.newest_order = self.newest_order.max(order.id.0);
        ends_in(&mut self.ends, order.terms.wallet).note(order.status(), order.terms.side);
        order.ended_at().into_iter().for_each(|at| self.note_end(at));
        let closed_at = order.closed().map(|(_, at)| at);
        for at in [Some(order.created_at), order.filled_at(), closed_at].into_iter().flatten() {
            self.newest = self.newest.max(at);
        }
    }

    fn note_fill(&mut self, id: TradeId, wallet: WalletId, at: Timestamp) {
        self.fills += 1;
        self.newest_fill = self.newest_fill.max(id.0);
        self.newest = self.newest.max(at);
        self.moved_at = self.moved_at.max(at);
        tally_in(&mut self.tallies, wallet).fills += 1;
    }

    fn note_position(&mut self, position: &Position) {
        self.positions += 1;
        self.newest_position = self.newest_position.max(position.id.0);
        position.closed_at.into_iter().for_each(|at| self.note_end(at));
        let settled_at = position.settlement.as_ref().map(|settled| settled.at);
        for at in [Some(position.opened_at), position.closed_at, settled_at].into_iter().flatten() {
            self.newest = self.newest.max(at);
        }
        self.moved_at = self.moved_at.max(position.closed_at.unwrap_or_default());
        let tally = tally_in(&mut self.tallies, position.wallet);
        tally.note_opened(position.opened_at);
        if position.has_known_exit() {
            tally.note_closed(position.has_won());
        }
    }
}

/// The counts of a wallet in a list in wallet order.
fn ends_in(ends: &mut Vec<(WalletId, Ends)>, wallet: WalletId) -> &mut Ends {
    let at = ends.binary_search_by_key(&wallet, |(of, _)| *of).unwrap_or_else(|at| {
        ends.reserve_exact(1);
        ends.insert(at, (wallet, Ends::default()));
        at
    });
    &mut ends[at].1
}

impl Users {
    /// Drops these rows from memory and returns the sum of the hashes of the orders, fills and positions among them.
    /// Their requests, which leave too, are not in it: another state with the same rows may have forgotten some of them
    /// before, so each state hashes those that it drops.
    ///
    /// Rows that have left before are passed over, so a repeat changes nothing. What left before is known by its id: it is
    /// not in memory, and not above the highest id that left.
    ///
    /// # Panics
    /// When an order or position is open, or was never there; the message names the invariant.
    pub fn depart(&mut self, leaving: &Leaving) -> [u8; 32] {
        self.drop_rows(leaving, None)
    }

    /// The same with the sum that another state returned for these rows, instead of hashing them. If all of them have
    /// left before, nothing changes.
    ///
    /// # Panics
    /// As [`Users::depart`]; also when some of the rows have left and others have not, because the sum would count some
    /// of them twice.
    pub fn depart_known(&mut self, leaving: &Leaving, sum: &[u8; 32]) {
        self.drop_rows(leaving, Some(sum));
    }

    fn drop_rows(&mut self, leaving: &Leaving, known: Option<&[u8; 32]>) -> [u8; 32] {
        let user = self.get_mut(leaving.user);
        let user = user.unwrap_or_else(|| panic!("rows that leave are of a user of the shard: user {}", leaving.user));
        let (before, rows) = (user.trading().oldest_request(), RowCounts::of(user));
        let sum = match &mut user.trading {
            Some(trading) => trading.depart(leaving, known),
            None => Trading::default().depart(leaving, known),
        };
        let (after, left) = (user.trading().oldest_request(), RowCounts::of(user));
        if before != after {
            if let Some(at) = before {
                self.indexes.remembering.remove(&(at, leaving.user));
            }
            self.indexes.remembering.extend(after.map(|at| (at, leaving.user)));
        }
        self.indexes.rows.remove(rows);
        self.indexes.rows.add(left);
        sum
    }
}

impl Trading {
    fn depart(&mut self, leaving: &Leaving, known: Option<&[u8; 32]>) -> [u8; 32] {
        let ascend =
            leaving.orders.is_sorted_by(|id, next| id < next) && leaving.positions.is_sorted_by(|id, next| id < next);
        assert!(ascend, "rows that leave are named once, ascending: user {}", leaving.user);
        let orders: Vec<usize> = leaving.orders.iter().filter_map(|id| self.leaving_order(*id)).collect();
        let positions: Vec<usize> = leaving.positions.iter().filter_map(|id| self.leaving_position(*id)).collect();
        let (there, all) = (orders.len() + positions.len(), leaving.orders.len() + leaving.positions.len());
        if there == 0 {
            return Sum::default().bytes();
        }
        assert!(known.is_none() || there == all, "rows with a known sum leave together: {there} of {all} are there");
        let mut departed = self.departed.take().unwrap_or_default();
        let (mut hashes, mut of_requests) = (RowHashes::default(), RowHashes::default());
        let mut ids = Vec::new();
        for row in orders {
            if known.is_none() {
                self.hash_order(&self.orders[row], &mut ids, &mut hashes);
            }
            let order = self.orders.remove(row).expect("it was found, and is named once");
            self.index.remove(self.prefixes.number(order.id.0) as usize);
            departed.note_order(&order);
            let mut fill_row = order.last_fill;
            while fill_row != NO_FILL {
                let fill = self.fills.remove(fill_row as usize).expect("a fill leaves with its order");
                self.index.remove(self.prefixes.number(fill.id.0) as usize);
                if known.is_none() {
                    fill.hash(&mut hashes);
                }
                departed.note_fill(fill.id, order.terms.wallet, fill.at);
                fill_row = fill.before;
            }
            if let Some(requests) = &mut self.requests
                && let Some((number, request)) = requests.of_order(order.id)
            {
                request.hash(&order, &mut of_requests);
                requests.remove(number, &order);
                departed.requests += 1;
            }
            if let (Some(signed), Some(hash)) = (&mut self.signed, order.terms.order_hash()) {
                signed.forget(hash, row as u32);
            }
        }
        for row in positions {
            let position = self.positions.remove(row).expect("it was found, and is named once");
            self.index.remove(self.prefixes.number(position.id.0) as usize);
            if known.is_none() {
                position.hash(&mut hashes);
            }
            departed.note_position(&position);
        }
        let sum = known.copied().unwrap_or_else(|| hashes.sum.bytes());
        departed.sum.add(&sum);
        departed.sum.add(&of_requests.sum.bytes());
        self.departed = Some(departed);
        // Their last memory goes with the last row.
        self.requests = self.requests.take().filter(|requests| !requests.rows.is_empty());
        self.signed = self.signed.take().filter(|signed| !signed.is_empty());
        sum
    }

    /// The row of an order that leaves; `None`: it has left before.
    fn leaving_order(&self, id: OrderId) -> Option<usize> {
        let Some(row) = self.order_row(id) else {
            let newest = self.departed.as_ref().and_then(|departed| departed.newest_order());
            assert!(newest >= Some(id), "an order that leaves memory is there, or has left before: order {id}");
            return None;
        };
        assert!(!self.orders[row].is_open(), "an order ends before it leaves memory: order {id}");
        Some(row)
    }

    /// The row of a position that leaves; `None`: it has left before.
    fn leaving_position(&self, id: PositionId) -> Option<usize> {
        let Some(row) = self.position_row(id) else {
            let newest = self.departed.as_ref().and_then(|departed| departed.newest_position());
            assert!(newest >= Some(id), "a position that leaves memory is there, or has left before: position {id}");
            return None;
        };
        assert!(!self.positions[row].is_open(), "a position is closed before it leaves memory: position {id}");
        Some(row)
    }
}

/// Numbers of the rows that are there, as ranges: orders, fills, positions.
pub(crate) type Runs = [Vec<Range<usize>>; 3];

/// Counts, times and ids of the section of a snapshot.
const FIGURES_COUNT: usize = 10;

impl User {
    /// Appends the section of a snapshot: the sum, then lists of numbers. They are counts, times and object numbers of
    /// [`DepartedRows`]; five for each wallet; seven for each wallet with orders; for orders, fills and positions the runs
    /// of rows that are there, each as its distance from the run before it and its length, because rows refer to others by
    /// number.
    pub(crate) fn put_departed(&self, departed: &DepartedRows, out: &mut Vec<u8>) {
        let DepartedRows {
            sum,
            orders,
            fills,
            positions,
            requests,
            tallies,
            ends,
            newest,
            moved_at,
            ended_from,
            newest_order,
            newest_fill,
            newest_position,
        } = departed;
        sum.bytes().put(out);
        let mut packer = Packer::onto(out);
        let counts = [*orders, *fills, *positions, *requests].map(u64::from);
        let prefixes = &self.trading().prefixes;
        let ids = [*newest_order, *newest_fill, *newest_position].map(|id| u64::from(prefixes.number(id)));
        let [orders, fills, positions, requests] = counts;
        let [order, fill, position] = ids;
        let ended_from = u64::from(ended_from.unwrap_or_default().0);
        let (newest, moved_at) = (newest.0, moved_at.0);
        let figures: [u64; FIGURES_COUNT] =
            [orders, fills, positions, requests, newest, moved_at, ended_from, order, fill, position];
        put_numbers(figures.into_iter(), &mut packer);
        let of_wallets: Vec<u64> = tallies
            .iter()
            .flat_map(|(wallet, tally)| {
                // Orders are in the next list.
                let Tally { orders: _, fills, closed, won, opened_at } = *tally;
                let [wallet, fills, closed, won] = [prefixes.number(wallet.0), fills, closed, won].map(u64::from);
                [wallet, fills, closed, won, opened_at.0]
            })
            .collect();
        put_numbers(of_wallets.into_iter(), &mut packer);
        let ends: Vec<u64> = ends
            .iter()
            .flat_map(|(wallet, Ends(counts))| std::iter::once(prefixes.number(wallet.0)).chain(*counts).map(u64::from))
            .collect();
        put_numbers(ends.into_iter(), &mut packer);
        let trading = self.trading();
        let (orders, fills, positions) = (trading.orders.runs(), trading.fills.runs(), trading.positions.runs());
        for runs in [steps(orders), steps(fills), steps(positions)] {
            put_numbers(runs.into_iter(), &mut packer);
        }
        packer.end();
    }
}

impl DepartedRows {
    /// Reads what [`User::put_departed`] wrote for a user with these prefixes and this next object number, and of which these
    /// rows are there: orders, fills, positions.
    ///
    /// # Errors
    /// [`CodecError`]; [`CodecError::Reference`] when the numbers contradict each other.
    pub(crate) fn take(
        input: &mut &[u8],
        owner: UserId,
        (prefixes, next_object): (&Prefixes, u32),
        there: [usize; 3],
    ) -> Result<(DepartedRows, Runs), CodecError> {
        let sum = Sum::of_bytes(&Bytes::take(input)?);
        let figures = <[u64; FIGURES_COUNT]>::try_from(take_numbers(input)?).map_err(|_| CodecError::Length)?;
        let [orders, fills, positions, requests, newest, moved_at, ended_from, order, fill, position] = figures;
        let numbers = (prefixes.granted().len() as u64 + 1) << OBJECT_BITS;
        let counted = |of: u64| u32::try_from(of).ok().filter(|_| of < numbers).ok_or(CodecError::Reference);
        // 0 is not an object's number.
        let id = |number: u64, rows: u64| match u32::try_from(number).ok() {
            Some(0) if rows == 0 => Ok(0),
            Some(number) if number != 0 && number < next_object && rows != 0 => Ok(prefixes.object(owner, number)),
            _ => Err(CodecError::Reference),
        };
        let mut departed = DepartedRows {
            sum,
            orders: counted(orders)?,
            fills: counted(fills)?,
            positions: counted(positions)?,
            requests: counted(requests)?,
            tallies: Vec::new(),
            ends: Vec::new(),
            newest: Timestamp(newest),
            moved_at: Timestamp(moved_at),
            ended_from: Some(UtcDay(u32::try_from(ended_from).map_err(|_| CodecError::Reference)?)),
            newest_order: id(order, orders)?,
            newest_fill: id(fill, fills)?,
            newest_position: id(position, positions)?,
        };
        let of_wallets = take_numbers(input)?;
        let (of_wallets, rest) = of_wallets.as_chunks::<5>();
        let (mut sums, mut opened) = ([0_u64; 2], 0);
        for [wallet, fills, closed, won, opened_at] in of_wallets {
            let wallet = WalletId(id(*wallet, 1)?);
            let [fills_count, closed_count, won] = [counted(*fills)?, counted(*closed)?, counted(*won)?];
            let opened_at = Timestamp(*opened_at);
            let tally = Tally { orders: 0, fills: fills_count, closed: closed_count, won, opened_at };
            let ascends = departed.tallies.last().is_none_or(|(last, _)| *last < wallet);
            if !ascends || tally.won > tally.closed || tally == Tally::default() {
                return Err(CodecError::Reference);
            }
            sums = [sums[0] + fills, sums[1] + closed];
            opened += u64::from(opened_at != Timestamp(0));
            departed.tallies.push((wallet, tally));
        }
        let ends = take_numbers(input)?;
        let (ends, more) = ends.as_chunks::<{ 1 + ENDS_COUNT }>();
        for [wallet, counts @ ..] in ends {
            let (wallet, mut known) = (WalletId(id(*wallet, 1)?), Ends::default());
            for (known, count) in known.0.iter_mut().zip(counts) {
                *known = counted(*count)?;
            }
            if departed.ends.last().is_some_and(|(last, _)| *last >= wallet) || known == Ends::default() {
                return Err(CodecError::Reference);
            }
            departed.ends.push((wallet, known));
        }
        let fits = departed.counts_orders()
            && more.is_empty()
            && departed.has_rows()
            && requests <= orders
            && sums[0] == fills
            && sums[1] <= positions
            && opened <= positions;
        let newest = departed.newest;
        let is_after = newest < departed.moved_at
            || departed.tallies.iter().any(|(_, tally)| tally.opened_at > newest)
            || departed.ended_from.is_some_and(|first| first > newest.day());
        if !fits || !rest.is_empty() || is_after {
            return Err(CodecError::Reference);
        }
        let ends = [orders, fills, positions].map(|departed| departed as usize);
        let mut runs = Runs::default();
        for ((runs, departed), there) in runs.iter_mut().zip(ends).zip(there) {
            // Rows are counted by numbers of 32 bits.
            let end =
                departed.checked_add(there).filter(|end| *end < u32::MAX as usize).ok_or(CodecError::Reference)?;
            *runs = taken_runs(input, there, end)?;
        }
        Ok((departed, runs))
    }
}

/// Runs as distances and lengths.
fn steps(runs: impl Iterator<Item = Range<usize>>) -> Vec<u64> {
    let mut before = 0;
    let step = |run: Range<usize>| {
        let distance = run.start - std::mem::replace(&mut before, run.end);
        [distance as u64, run.len() as u64]
    };
    runs.flat_map(step).collect()
}

/// The runs of `there` rows whose numbers are below `end`.
fn taken_runs(input: &mut &[u8], there: usize, end: usize) -> Result<Vec<Range<usize>>, CodecError> {
    let numbers = take_numbers(input)?;
    let (steps, rest) = numbers.as_chunks::<2>();
    let (mut runs, mut before, mut count) = (Vec::with_capacity(steps.len()), 0_usize, 0);
    for [distance, length] in steps {
        let begin = before.checked_add(*distance as usize).ok_or(CodecError::Reference)?;
        let next = begin.checked_add(*length as usize).filter(|next| *next <= end).ok_or(CodecError::Reference)?;
        // One that touches the run before it, or without rows, would be written with other bytes.
        if *length == 0 || (*distance == 0 && !runs.is_empty()) {
            return Err(CodecError::Reference);
        }
        count += *length as usize;
        runs.push(begin..next);
        before = next;
    }
    if rest.is_empty() && count == there { Ok(runs) } else { Err(CodecError::Reference) }
}

#[cfg(test)]
mod tests;
