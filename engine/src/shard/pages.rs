//! Pages of a user's lists, newest first, over rows in memory and rows that have left it.
//!
//! A page takes one row after the other until it is full. Rows of memory are visited as long as no row that left can be
//! among them ([`walk`]). Mostly the page is then full; if not, it goes on with the rest of both lists, merged by
//! number ([`Part::complete`]). So an answer does not depend on where a row is.

use crate::time::Timestamp;
use crate::user::rows::Rows;
use crate::view::{HistoryPage, VenuePage};
use std::fmt::Debug;
use std::ops::ControlFlow;

/// Time and id of a row. Both ascend together in every list of a user.
pub(super) type Key = (Timestamp, u64);

/// The part of a list that a request is about. Each bound holds for a beginning or for the end of an ascending list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    /// At or after this moment.
    pub from: Timestamp,
    /// This id or a higher one.
    pub first: u64,
    /// Strictly below this key.
    pub below: Key,
    /// A lower id than this.
    pub before: u64,
}

impl Keys {
    pub const ALL: Keys =
        Keys { from: Timestamp(0), first: 0, below: (Timestamp(u64::MAX), u64::MAX), before: u64::MAX };

    /// Of these keys, those below `key`.
    pub fn below(self, key: Option<Key>) -> Keys {
        Keys { below: key.map_or(self.below, |key| self.below.min(key)), ..self }
    }

    /// Of these keys, those with a lower id.
    pub fn before(self, id: Option<u64>) -> Keys {
        Keys { before: id.map_or(self.before, |id| self.before.min(id)), ..self }
    }

    pub fn is_below(&self, key: Key) -> bool {
        key < self.below && key.1 < self.before
    }

    pub fn is_from(&self, key: Key) -> bool {
        key.0 >= self.from && key.1 >= self.first
    }

    /// The id below which the rows of a list begin that are below the upper bounds. `probe` returns the key of the
    /// highest row below an id; `most` is at least the highest id of the list.
    ///
    /// # Errors
    /// Those of `probe`.
    pub fn seek<E>(&self, most: u64, mut probe: impl FnMut(u64) -> Result<Option<Key>, E>) -> Result<u64, E> {
        // Rows below `low` are below the bounds, rows from `high` on are not.
        let (mut low, mut high) = (0, self.before.min(most.saturating_add(1)));
        if self.below == Keys::ALL.below {
            return Ok(high);
        }
        // The whole list is often below the bounds, and a bound is often the key of a row.
        let id = self.below.1;
        let mut likely = [high, id.saturating_add(1), id].into_iter();
        while low < high {
            let at = likely.next().filter(|at| (low + 1..=high).contains(at));
            let at = at.unwrap_or_else(|| low + (high - low).div_ceil(2));
            match probe(at)? {
                Some(key) if key >= self.below => high = key.1.min(at - 1),
                _ => low = at,
            }
        }
        Ok(low)
    }
}

/// Rows of memory within the bounds, newest first.
pub(super) fn newest_first<'a, R>(
    rows: &'a Rows<R>,
    keys: Keys,
    key: impl Fn(&R) -> Key + Copy + 'a,
) -> impl Iterator<Item = &'a R> + 'a {
    let end = rows.partition_point(|row| keys.is_below(key(row)));
    rows.range(0..end).rev().map(|(_, row)| row).take_while(move |row| keys.is_from(key(row)))
}

/// A page that takes the rows of a list, newest first.
pub(super) trait Page {
    type Row: Clone + Debug;

    /// Takes the next row; `row` makes its view, `None` if it does not fit the filter. `Break`: the page ends, and this
    /// row is not on it.
    fn visit(&mut self, key: Key, row: Option<impl FnOnce() -> Self::Row>) -> ControlFlow<()>;

    /// Maximum counts of fitting rows, and of rows, that it takes yet, with the one that ends it. A page without a
    /// bound of rows does not depend on rows that do not fit.
    fn room(&self) -> (usize, Option<usize>);

    /// The page ends here, before it took as many rows as it may: those of memory below are left to the next one. A page
    /// that takes no more rows than it had room for in memory ends by itself.
    fn leave_rest(&mut self) {}

    /// The views on it so far.
    fn rows_mut(&mut self) -> &mut [Self::Row];
}

/// A page that begins after a count of rows.
#[derive(Clone, Debug)]
pub(super) struct Listed<T> {
    skip: usize,
    limit: usize,
    pub rows: Vec<T>,
    pub has_more: bool,
}

impl<T> Listed<T> {
    pub fn new(offset: usize, limit: usize) -> Listed<T> {
        Listed { skip: offset, limit, rows: Vec::new(), has_more: false }
    }
}

impl<T: Clone + Debug> Page for Listed<T> {
    type Row = T;

    fn visit(&mut self, _: Key, row: Option<impl FnOnce() -> T>) -> ControlFlow<()> {
        let Some(row) = row else { return ControlFlow::Continue(()) };
        if self.skip > 0 {
            self.skip -= 1;
        } else if self.rows.len() < self.limit {
            self.rows.push(row());
        } else {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn room(&self) -> (usize, Option<usize>) {
        (self.skip.saturating_add(self.limit - self.rows.len()).saturating_add(1), None)
    }

    fn rows_mut(&mut self) -> &mut [T] {
        &mut self.rows
    }
}

/// A page of a traversal: it ends after a bounded count of rows, so it may be empty without being the last one.
#[derive(Clone, Debug)]
pub(super) struct Stretch<T> {
    limit: usize,
    /// Rows that may be visited yet.
    visits: usize,
    /// It ends before a lower id than this.
    floor: u64,
    rows: Vec<T>,
    /// Id of the last row.
    last: Option<u64>,
    next: Option<u64>,
}

impl<T> Stretch<T> {
    pub fn new(limit: usize, visits: usize) -> Stretch<T> {
        Stretch { limit, visits, floor: 0, rows: Vec::new(), last: None, next: None }
    }

    pub fn into_page(self) -> HistoryPage<T> {
        HistoryPage { rows: self.rows, next: self.next }
    }
}

impl<T: Clone + Debug> Page for Stretch<T> {
    type Row = T;

    fn visit(&mut self, key: Key, row: Option<impl FnOnce() -> T>) -> ControlFlow<()> {
        if self.rows.len() == self.limit || self.visits == 0 || key.1 < self.floor {
            self.next = self.last;
            return ControlFlow::Break(());
        }
        self.visits -= 1;
        self.rows.extend(row.map(|row| row()));
        self.last = Some(key.1);
        ControlFlow::Continue(())
    }

    fn room(&self) -> (usize, Option<usize>) {
        ((self.limit - self.rows.len()).saturating_add(1), Some(self.visits + 1))
    }

    fn leave_rest(&mut self) {
        self.next = self.last;
    }

    fn rows_mut(&mut self) -> &mut [T] {
        &mut self.rows
    }
}

/// A page of a venue-shaped list: it goes on until one more row fits, which shows that the list continues.
#[derive(Clone, Debug)]
pub(super) struct VenueList<T> {
    limit: usize,
    /// Rows that may be visited yet.
    visits: usize,
    rows: Vec<T>,
    /// Key of the last row.
    last: Option<Key>,
    more_after: Option<Key>,
}

impl<T> VenueList<T> {
    pub fn new(limit: usize, visits: usize) -> VenueList<T> {
        VenueList { limit, visits, rows: Vec::with_capacity(limit.min(128)), last: None, more_after: None }
    }

    pub fn into_page(self) -> VenuePage<T> {
        VenuePage { rows: self.rows, more_after: self.more_after }
    }
}

impl<T: Clone + Debug> Page for VenueList<T> {
    type Row = T;

    fn visit(&mut self, key: Key, row: Option<impl FnOnce() -> T>) -> ControlFlow<()> {
        if self.visits == 0 || row.is_some() && self.rows.len() == self.limit {
            self.more_after = self.last;
            return ControlFlow::Break(());
        }
        self.visits -= 1;
        self.rows.extend(row.map(|row| row()));
        self.last = Some(key);
        ControlFlow::Continue(())
    }

    fn room(&self) -> (usize, Option<usize>) {
        ((self.limit - self.rows.len()).saturating_add(1), Some(self.visits + 1))
    }

    fn rows_mut(&mut self) -> &mut [T] {
        &mut self.rows
    }
}

/// A page from memory: whole, or the part of it above all rows that left.
#[derive(Clone, Debug)]
pub(super) enum Paged<P: Page> {
    Whole(P),
    Part(Part<P>),
}

/// A page that goes on with rows that left, and with those of memory among them.
#[derive(Clone, Debug)]
pub(super) struct Part<P: Page> {
    page: P,
    keys: Keys,
    /// No row with a higher id has left.
    gone: u64,
    /// Newest first; as many as the page can take.
    seen: Vec<Seen<P::Row>>,
    /// Memory has no rows of the page with lower ids than those, if it is 0; otherwise those end with this id.
    seen_to: u64,
}

/// A row of memory that a page may visit.
#[derive(Clone, Debug)]
struct Seen<T> {
    key: Key,
    /// `None`: it does not fit.
    row: Option<T>,
}

/// Fills a page with rows of memory, which come newest first and are within `keys`. `gone`: the highest id of a row of
/// this list that has left, if one within `keys` may have.
pub(super) fn walk<P: Page, R>(
    mut page: P,
    keys: Keys,
    gone: Option<u64>,
    rows: impl Iterator<Item = R>,
    key: impl Fn(&R) -> Key,
    fits: impl Fn(&R) -> bool,
    view: impl Fn(R) -> P::Row,
) -> Paged<P> {
    let mut rows = rows.peekable();
    while let Some(row) = rows.next_if(|row| gone.is_none_or(|gone| key(row).1 > gone)) {
        if page.visit(key(&row), fits(&row).then_some(|| view(row))).is_break() {
            return Paged::Whole(page);
        }
    }
    let Some(gone) = gone else { return Paged::Whole(page) };
    let (mut fitting, mut visits) = page.room();
    let (is_bounded, mut seen) = (visits.is_some(), Vec::new());
    let (mut seen_to, mut lowest) = (0, gone);
    for row in rows {
        if fitting == 0 || visits == Some(0) {
            seen_to = lowest;
            break;
        }
        let (key, fits) = (key(&row), fits(&row));
        lowest = key.1;
        fitting -= usize::from(fits);
        visits = visits.map(|visits| visits - 1);
        if fits || is_bounded {
            seen.push(Seen { key, row: fits.then(|| view(row)) });
        }
    }
    Paged::Part(Part { page, keys, gone, seen, seen_to })
}

impl<T: Clone + Debug> Paged<Stretch<T>> {
    /// A page that goes on with rows that left has up to `limit` rows, if that is more, but none below rows of memory
    /// that were not visited.
    pub fn widened(mut self, limit: usize) -> Self {
        if let Paged::Part(Part { page, seen_to, .. }) = &mut self {
            page.limit = page.limit.max(limit);
            page.floor = *seen_to;
        }
        self
    }
}

impl<P: Page> Paged<P> {
    /// The views of rows of memory.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut P::Row> + '_ {
        let (page, seen) = match self {
            Paged::Whole(page) => (page, None),
            Paged::Part(Part { page, seen, .. }) => (page, Some(seen)),
        };
        page.rows_mut().iter_mut().chain(seen.into_iter().flatten().filter_map(|seen| seen.row.as_mut()))
    }

    /// The page, if no row that left is needed.
    pub fn whole(self) -> Result<P, Paged<P>> {
        match self {
            Paged::Whole(page) => Ok(page),
            part @ Paged::Part(_) => Err(part),
        }
    }

    /// The page with the rows that have left. `departed` returns those below an id, highest first.
    ///
    /// # Errors
    /// Those of `departed`.
    pub fn complete<R, E, I: Iterator<Item = Result<R, E>>>(
        self,
        departed: impl Fn(u64) -> I,
        key: impl Fn(&R) -> Key,
        fits: impl Fn(&R) -> bool,
        view: impl Fn(R) -> P::Row,
    ) -> Result<P, E> {
        let Part { mut page, keys, gone, seen, seen_to } = match self {
            Paged::Whole(page) => return Ok(page),
            Paged::Part(part) => part,
        };
        let probe = |before| Ok(departed(before).next().transpose()?.map(|row| key(&row)));
        let mut departed = departed(keys.seek(gone, probe)?);
        let mut next = || -> Result<Option<R>, E> {
            let row = departed.next().transpose()?;
            Ok(row.filter(|row| keys.is_from(key(row))))
        };
        let (mut seen, mut left) = (seen.into_iter().peekable(), next()?);
        loop {
            let id = left.as_ref().map(|row| key(row).1);
            let visited = match seen.next_if(|seen| id.is_none_or(|id| seen.key.1 >= id)) {
                Some(known) => {
                    // A row of memory is at least as new as the one that left.
                    if id == Some(known.key.1) {
                        left = next()?;
                    }
                    page.visit(known.key, known.row.map(|row| || row))
                }
                None => {
                    let Some(row) = left.take() else {
                        // A longer page has room after the last row that left, and memory has more rows.
                        if seen_to > 0 {
                            page.leave_rest();
                        }
                        return Ok(page);
                    };
                    let visited = page.visit(key(&row), fits(&row).then_some(|| view(row)));
                    if visited.is_continue() {
                        left = next()?;
                    }
                    visited
                }
            };
            if visited.is_break() {
                return Ok(page);
            }
        }
    }
}

#[cfg(test)]
mod tests;
