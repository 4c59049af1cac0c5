//! Fills with their orders, the newest first. A fill names its order, which has the fill. The orders of a piece are read
//! by a scan beside that of the fills, because orders and their fills are mostly neighbours; those that are not are
//! looked up. An order is decoded once for all of its fills in a piece.
//!
//! Fills of one market are found among all fills. The keyspace `by_market` names orders, and an order that rested for long
//! may have the newest fill: one page would need every order of that market, back to the first one.

use super::reader::{Back, EndedOf, Found, fill_order, lacks, order};
use super::rows::{object_key, object_of};
use crate::store::{Space, StoreError, Value};
use engine::departed::{EndedOrder, Sharing};
use engine::id::OrderId;
use engine::order::{Fill, Order};
use engine::time::UtcDay;
use std::cmp::Reverse;
use std::ops::Bound;

/// Orders that the scan passes over to reach one that a fill names: this takes about as long as a look-up.
const PASSED_MAX: usize = 8;

/// A fill with its order, and its number.
type Row = (u64, Result<(Fill, Order), StoreError>);

/// The fills of a user, the newest first. Ends after an error.
pub struct FillRows<'s, 'a> {
    of: &'s EndedOf<'a>,
    rows: Back<'s, 'a>,
    /// What was read and not returned yet.
    ready: std::vec::IntoIter<Row>,
    sharing: Sharing,
    has_begun: bool,
}

impl<'s, 'a> FillRows<'s, 'a> {
    /// `rows`: a scan of the fills.
    pub fn new(of: &'s EndedOf<'a>, rows: Back<'s, 'a>) -> FillRows<'s, 'a> {
        FillRows { of, rows, ready: Vec::new().into_iter(), sharing: Sharing::default(), has_begun: false }
    }

    /// Reads the next fills; of a day that was cut since there may be none. `false`: the list is over.
    fn read(&mut self) -> Result<bool, StoreError> {
        // The first one is often the only one that is asked for.
        let rows = match std::mem::replace(&mut self.has_begun, true) {
            false => Vec::from_iter(self.rows.next().transpose()?),
            true => self.rows.piece()?,
        };
        if rows.is_empty() {
            return Ok(false);
        }
        let mut named: Vec<Named> = Vec::with_capacity(rows.len());
        let mut unreadable = None;
        for row in rows {
            match names(&row) {
                Ok(names) => named.push(names),
                Err(error) => {
                    unreadable = Some(error);
                    break;
                }
            }
        }
        named.sort_unstable_by(|one, other| other.cmp(one));
        let mut found = self.found(&named)?;
        found.sort_unstable_by_key(|(fill, _)| Reverse(*fill));
        // What cannot be read comes after the fills above it.
        found.extend(unreadable.map(|error| (0, Err(error))));
        self.ready = found.into_iter();
        Ok(true)
    }

    /// The fills that name these orders, highest order first; without those of a day that was cut since. Of an order that
    /// cannot be read the newest fill is the error, and the others are left out.
    fn found(&mut self, named: &[Named]) -> Result<Vec<Row>, StoreError> {
        let mut found = Vec::with_capacity(named.len());
        let Some((highest, ..)) = named.first() else { return Ok(found) };
        let mut beside = match named.len() {
            1 => None,
            _ => self.beside(*highest)?,
        };
        for group in named.chunk_by(|one, other| one.0 == other.0) {
            let (id, newest, day) = group[0];
            let scanned = beside.as_mut().and_then(|beside| beside.value(id));
            let ended = match &scanned {
                Some(value) => self.scanned(id, day, value),
                None => self.of.named(id, day, &mut self.sharing),
            };
            match ended {
                Ok(None) => {}
                Ok(Some(EndedOrder { order, fills })) => {
                    let fill = |fill: u64| {
                        let at = fills.binary_search_by_key(&fill, |of| of.id.0);
                        at.map(|at| fills[at].clone()).map_err(|_| lacks(id, fill))
                    };
                    let (last, others) = (group[group.len() - 1].1, &group[..group.len() - 1]);
                    found.extend(others.iter().map(|(_, of, _)| (*of, fill(*of).map(|fill| (fill, order.clone())))));
                    found.push((last, fill(last).map(|fill| (fill, order))));
                }
                Err(error) => found.push((newest, Err(error))),
            }
        }
        Ok(found)
    }

    /// An order that the scan found. `None`: its day was cut.
    fn scanned(&mut self, id: OrderId, day: UtcDay, value: &Value) -> Result<Option<EndedOrder>, StoreError> {
        match self.of.body(Space::Orders, value)? {
            Some(body) => order(id, body, &mut self.sharing).map(Some),
            // Of a later LSN, or cut: the look-up says so.
            None => self.of.named(id, day, &mut self.sharing),
        }
    }

    /// A scan of the orders from this one down; `None` if nothing has left memory.
    fn beside(&self, highest: OrderId) -> Result<Option<Beside<impl Iterator<Item = Scanned> + use<>>>, StoreError> {
        let Some(opened) = self.of.opened()? else { return Ok(None) };
        let (first, last) = (object_key(self.of.user, 0), object_key(self.of.user, highest.0));
        let rows = opened.spaces.scan(Space::Orders, (Bound::Included(&first[..]), Bound::Included(&last[..])));
        Ok(Some(Beside { rows: Some(rows.rev()), at: None }))
    }
}

impl Iterator for FillRows<'_, '_> {
    type Item = Result<(Fill, Order), StoreError>;

    fn next(&mut self) -> Option<Result<(Fill, Order), StoreError>> {
        let (_, row) = loop {
            if let Some(row) = self.ready.next() {
                break row;
            }
            match self.read() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => break (0, Err(error)),
            }
        };
        if row.is_err() {
            self.ready = Vec::new().into_iter();
            self.rows.end();
        }
        Some(row)
    }
}

/// The order, the number, and the day of a fill.
type Named = (OrderId, u64, UtcDay);

fn names(row: &Found) -> Result<Named, StoreError> {
    let fill = row.object()?;
    Ok((fill_order(fill, row.body())?, fill, row.day()?))
}

/// Key and value of a row.
type Scanned = Result<(Value, Value), StoreError>;

/// The orders beside fills: a scan from the highest down.
struct Beside<I> {
    /// `None`: it has ended, or failed.
    rows: Option<I>,
    /// The last row that was read, by its number.
    at: Option<(u64, Value)>,
}

impl<I: Iterator<Item = Scanned>> Beside<I> {
    /// The row of an order that is lower than those before; `None` if the scan does not have it near.
    fn value(&mut self, id: OrderId) -> Option<Value> {
        for _ in 0..=PASSED_MAX {
            if self.at.as_ref().is_some_and(|(at, _)| *at <= id.0) {
                break;
            }
            // A row that cannot be read ends the scan: look-ups say what is wrong with it, if it is needed.
            match self.rows.as_mut().and_then(Iterator::next).and_then(Result::ok) {
                Some((key, value)) => self.at = object_of(&key).map(|at| (at, value)),
                None => {
                    (self.rows, self.at) = (None, None);
                    break;
                }
            }
        }
        self.at.take_if(|(at, _)| *at == id.0).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests;
