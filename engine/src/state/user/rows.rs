//! `Rows`: a list that rows leave in any order. A row keeps its number, from 0 in the order of appending, and is found by
//! it in constant time. Appending never moves rows, so a user with a hundred thousand orders appends as fast as a new
//! one.
//!
//! ```text
//!   number    0 ··· 15 │ 16 ··· 31 │ ··· │ 640 ··· 655 │ 656 ··· 671 │ 672 ···
//!             old: sorted by number      │ recent: by position      │ last: grows
//! ```
//!
//! A block whose rows have all left is freed. Blocks in use among many freed ones move to the old ones, so the list of the
//! recent ones stays short: an order that rests for weeks keeps one block in memory, not all blocks after it.

/// Rows in a block.
const ROWS_PER_BLOCK: usize = 16;
/// Numbers in a block, which are small.
const NUMBERS_PER_BLOCK: usize = 64;
/// Capacity of a new block; it doubles until the block is full.
const ROWS_AT_FIRST: usize = 4;
/// Count of blocks that grow. Later ones have their full capacity from the start: the unused space is then relatively
/// small.
const BLOCKS_THAT_GROW: usize = 4;

/// A list that rows leave in any order.
#[derive(Clone)]
pub struct Rows<T, const BLOCK: usize = ROWS_PER_BLOCK> {
    /// Full blocks by position, the first is number [`Rows::first`]. A freed block is empty; a block may be shorter than
    /// full if the rows at its end never existed.
    recent: Vec<Vec<Option<T>>>,
    /// The block that grows, stored inline: most accesses are to the newest rows. Empty if its rows have all left.
    last: Vec<Option<T>>,
    /// Blocks before the recent ones.
    old: Option<Box<Old<T>>>,
    /// Number of the first recent block.
    first: u32,
    /// Number of the next row.
    end: u32,
    /// Count of rows that are there.
    len: u32,
    /// Count of freed blocks among the recent ones, and of those before the first in use.
    freed: u32,
    freed_in_front: u32,
}

/// Blocks by their numbers, ascending; none is empty.
#[derive(Clone)]
struct Old<T>(Vec<(u32, Vec<Option<T>>)>);

/// Numbers of rows by numbers of objects, in small blocks.
pub type Numbers = Rows<std::num::NonZeroU32, NUMBERS_PER_BLOCK>;

impl<T, const BLOCK: usize> Rows<T, BLOCK> {
    pub const fn new() -> Self {
        Rows { recent: Vec::new(), last: Vec::new(), old: None, first: 0, end: 0, len: 0, freed: 0, freed_in_front: 0 }
    }

    /// Appends a row and returns its number.
    #[inline]
    pub fn push(&mut self, row: T) -> usize {
        if self.last.len() == self.last.capacity() {
            self.grow();
        }
        let number = self.end as usize;
        self.last.push(Some(row));
        self.end += 1;
        self.len += 1;
        number
    }

    #[cold]
    fn grow(&mut self) {
        match self.end as usize - self.last_begin() {
            // A first row is often the only one.
            0 => self.last.reserve_exact(1),
            len if len == BLOCK => {
                self.close_last();
                // A user with several full blocks continues: the next has its full capacity, so that no row is moved.
                let whole = self.recent.len() >= BLOCKS_THAT_GROW;
                self.last = Vec::with_capacity(if whole { BLOCK } else { ROWS_AT_FIRST });
            }
            len if self.last.len() < len => {
                // All before it have left.
                self.last.reserve_exact((len + 1).next_power_of_two().clamp(ROWS_AT_FIRST, BLOCK));
                self.last.resize_with(len, || None);
            }
            1 if self.recent.is_empty() => self.last.reserve_exact(ROWS_AT_FIRST - 1),
            len => self.last.reserve_exact(len.min(BLOCK - len)),
        }
    }

    /// Appends the first of `coming` rows: reserves space for all of them, as far as the block allows.
    pub(crate) fn push_first_of(&mut self, coming: usize, row: T) -> usize {
        if self.last.len() == self.last.capacity() {
            match self.end as usize - self.last_begin() {
                len if len == BLOCK => {
                    self.close_last();
                    self.last = Vec::with_capacity(coming.clamp(1, BLOCK));
                }
                len if self.last.len() == len => self.last.reserve_exact(coming.clamp(1, BLOCK - len)),
                _ => {}
            }
        }
        self.push(row)
    }

    /// Puts a row at a number that has none. The next row that is appended comes after it.
    ///
    /// # Panics
    /// When the number has a row.
    #[inline]
    pub fn put(&mut self, number: usize, row: T) {
        if number < self.end as usize {
            return self.put_before_end(number, row);
        }
        if number > self.end as usize {
            self.skip_to(number);
        }
        self.push(row);
    }

    #[cold]
    fn put_before_end(&mut self, number: usize, row: T) {
        let (block, slot) = (number / BLOCK, number % BLOCK);
        let at = block.wrapping_sub(self.first as usize);
        let recent_count = self.recent.len();
        let rows = if at < recent_count {
            if self.recent[at].is_empty() {
                self.freed -= 1;
                self.freed_in_front = self.freed_in_front.min(at as u32);
            }
            &mut self.recent[at]
        } else if at == recent_count {
            let len = self.end as usize - self.last_begin();
            self.last.resize_with(len, || None);
            &mut self.last
        } else {
            let old = &mut self.old.get_or_insert_with(|| Box::new(Old(Vec::new()))).0;
            let at = old.binary_search_by_key(&block, |(block, _)| *block as usize).unwrap_or_else(|at| {
                old.insert(at, (block as u32, Vec::with_capacity(BLOCK)));
                at
            });
            &mut old[at].1
        };
        if rows.len() <= slot {
            rows.resize_with(slot + 1, || None);
        }
        let before = rows[slot].replace(row);
        assert!(before.is_none(), "a number has one row: {number}");
        self.len += 1;
    }

    /// Makes `number`, which is after the end, that of the next row. Those before it have none.
    fn skip_to(&mut self, number: usize) {
        let begin = self.last_begin();
        if number - begin <= BLOCK {
            // Without rows it gets its places with the next one.
            let len = number - begin;
            if !self.last.is_empty() {
                if self.last.capacity() < len {
                    self.last.reserve_exact(len.next_power_of_two().min(BLOCK) - self.last.len());
                }
                self.last.resize_with(len, || None);
            }
        } else {
            self.close_last();
            let block = number / BLOCK;
            let gap = block - self.first as usize - self.recent.len();
            if gap > 1 && gap > self.recent.len() {
                self.retire(self.recent.len());
                self.first = block as u32;
            } else {
                (0..gap).for_each(|_| self.close_block(Vec::new()));
            }
        }
        self.end = u32::try_from(number).expect("rows are counted by object numbers");
    }

    /// Number of the first place of the last block.
    #[inline]
    fn last_begin(&self) -> usize {
        (self.first as usize + self.recent.len()) * BLOCK
    }

    /// The last block grows no longer.
    fn close_last(&mut self) {
        let last = std::mem::take(&mut self.last);
        self.close_block(last);
    }

    /// Appends a block to the recent ones; an empty one is freed.
    fn close_block(&mut self, block: Vec<Option<T>>) {
        let is_freed = block.is_empty();
        if is_freed && self.recent.is_empty() {
            self.first += 1;
            return;
        }
        self.recent.push(block);
        if is_freed {
            self.note_freed(self.recent.len() - 1);
        }
    }

    /// The recent block at this position became empty.
    fn note_freed(&mut self, at: usize) {
        self.freed += 1;
        if at == self.freed_in_front as usize {
            let freed = self.recent[at..].iter().take_while(|block| block.is_empty()).count();
            self.freed_in_front += freed as u32;
        }
        // As many were freed since the last time, so that each costs a bounded time.
        if self.freed as usize * 4 > self.recent.len() * 3 {
            self.shorten();
        }
    }

    /// Keeps the longest end of the recent blocks of which half are in use.
    #[cold]
    fn shorten(&mut self) {
        let (mut used, mut kept) = (0, 0);
        for (nth, block) in self.recent.iter().rev().enumerate() {
            used += usize::from(!block.is_empty());
            if used * 2 > nth {
                kept = nth + 1;
            }
        }
        self.retire(self.recent.len() - kept);
    }

    /// Moves the first `count` recent blocks to the old ones.
    fn retire(&mut self, count: usize) {
        let first = self.first;
        let used = (first..).zip(self.recent.drain(..count)).filter(|(_, block)| !block.is_empty());
        let mut used = used.peekable();
        if used.peek().is_some() {
            self.old.get_or_insert_with(|| Box::new(Old(Vec::new()))).0.extend(used);
        } else {
            drop(used);
        }
        if self.recent.capacity() > 2 * self.recent.len() {
            self.recent.shrink_to_fit();
        }
        self.first += count as u32;
        self.freed = self.recent.iter().filter(|block| block.is_empty()).count() as u32;
        self.freed_in_front = self.recent.iter().take_while(|block| block.is_empty()).count() as u32;
    }

    /// Removes a row. Its number has none from then on; a block without rows is freed.
    pub fn remove(&mut self, number: usize) -> Option<T> {
        let at = (number / BLOCK).wrapping_sub(self.first as usize);
        let recent_count = self.recent.len();
        if at < recent_count {
            let block = &mut self.recent[at];
            let row = block.get_mut(number % BLOCK)?.take()?;
            self.len -= 1;
            if is_without_rows(block) {
                *block = Vec::new();
                self.note_freed(at);
            }
            return Some(row);
        }
        if at == recent_count {
            let row = self.last.get_mut(number % BLOCK)?.take()?;
            self.len -= 1;
            if is_without_rows(&self.last) {
                self.last = Vec::new();
            }
            return Some(row);
        }
        let old = &mut self.old.as_mut()?.0;
        let at = old.binary_search_by_key(&(number / BLOCK), |(block, _)| *block as usize).ok()?;
        let row = old[at].1.get_mut(number % BLOCK)?.take()?;
        self.len -= 1;
        if is_without_rows(&old[at].1) {
            old.remove(at);
            if old.capacity() > 2 * old.len() {
                old.shrink_to_fit();
            }
            if old.is_empty() {
                self.old = None;
            }
        }
        Some(row)
    }

    /// Count of rows that are there.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of the next row: the count of rows ever, without removed ones too.
    #[inline]
    pub fn end(&self) -> usize {
        self.end as usize
    }

    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.block(number / BLOCK)?.get(number % BLOCK)?.as_ref()
    }

    /// A block of that number, if it is not freed.
    #[inline]
    fn block(&self, block: usize) -> Option<&[Option<T>]> {
        let at = block.wrapping_sub(self.first as usize);
        match self.recent.get(at) {
            Some(block) => Some(block),
            None if at == self.recent.len() => Some(&self.last),
            None => self.old_block(block),
        }
    }

    fn old_block(&self, block: usize) -> Option<&[Option<T>]> {
        let old = &self.old.as_ref()?.0;
        let at = old.binary_search_by_key(&block, |(block, _)| *block as usize).ok()?;
        Some(&old[at].1)
    }

    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        let at = (number / BLOCK).wrapping_sub(self.first as usize);
        let recent_count = self.recent.len();
        let block = match self.recent.get_mut(at) {
            Some(block) => block,
            None if at == recent_count => &mut self.last,
            None => {
                let old = &mut self.old.as_mut()?.0;
                let at = old.binary_search_by_key(&(number / BLOCK), |(block, _)| *block as usize).ok()?;
                &mut old[at].1
            }
        };
        block.get_mut(number % BLOCK)?.as_mut()
    }

    /// The row with the lowest number.
    pub fn first(&self) -> Option<&T> {
        self.at_or_after(0).map(|(_, row)| row)
    }

    /// The row with the highest number.
    #[inline]
    pub fn last(&self) -> Option<&T> {
        match self.last.last() {
            Some(Some(row)) => Some(row),
            _ => self.before(self.end()).map(|(_, row)| row),
        }
    }

    /// Number of the first row that is not `below`, or the end; rows that are `below` come first.
    pub fn partition_point(&self, below: impl Fn(&T) -> bool) -> usize {
        let all_below = |block: &[Option<T>]| block.iter().rev().flatten().next().is_some_and(&below);
        let first_not = |block: u32, rows: &[Option<T>]| {
            let slot = rows.iter().position(|row| row.as_ref().is_some_and(|row| !below(row)));
            block as usize * BLOCK + slot.expect("its last row is not below")
        };
        if let Some(Old(old)) = self.old.as_deref() {
            let at = old.partition_point(|(_, rows)| all_below(rows));
            if let Some((block, rows)) = old.get(at) {
                return first_not(*block, rows);
            }
        }
        // Freed blocks are passed over, to the next one in use.
        let (mut low, mut high) = (self.freed_in_front as usize, self.recent.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.recent[middle..high].iter().position(|block| !block.is_empty()) {
                Some(passed) if all_below(&self.recent[middle + passed]) => low = middle + passed + 1,
                _ => high = middle,
            }
        }
        // Blocks before `low` are below or freed, and those from there on are not below or freed.
        if let Some(passed) = self.recent[low..].iter().position(|block| !block.is_empty()) {
            return first_not(self.first + (low + passed) as u32, &self.recent[low + passed]);
        }
        let slot = self.last.iter().position(|row| row.as_ref().is_some_and(|row| !below(row)));
        slot.map_or(self.end(), |slot| self.last_begin() + slot)
    }

    /// The row with the lowest number from `number` on, with its number.
    pub fn at_or_after(&self, number: usize) -> Option<(usize, &T)> {
        let mut from = number;
        while from < self.end() {
            let (block, slot) = (from / BLOCK, from % BLOCK);
            let rows = self.block(block).and_then(|rows| rows.get(slot..)).unwrap_or_default();
            if let Some(found) = rows.iter().position(Option::is_some) {
                return rows[found].as_ref().map(|row| (from + found, row));
            }
            from = self.block_in_use_from(block + 1) * BLOCK;
        }
        None
    }

    /// The row with the highest number below `number`, with its number.
    pub fn before(&self, number: usize) -> Option<(usize, &T)> {
        let mut to = number.min(self.end());
        while to > 0 {
            let (block, slot) = ((to - 1) / BLOCK, (to - 1) % BLOCK);
            let rows = self.block(block).unwrap_or_default();
            let rows = &rows[..rows.len().min(slot + 1)];
            if let Some(found) = rows.iter().rposition(Option::is_some) {
                return rows[found].as_ref().map(|row| (block * BLOCK + found, row));
            }
            to = self.block_in_use_below(block).map_or(0, |block| (block + 1) * BLOCK);
        }
        None
    }

    /// Number of the first block from `block` on that is in use; the last one counts.
    fn block_in_use_from(&self, block: usize) -> usize {
        let first = self.first as usize;
        if block < first
            && let Some(Old(old)) = self.old.as_deref()
            && let Some((block, _)) = old.get(old.partition_point(|(of, _)| (*of as usize) < block))
        {
            return *block as usize;
        }
        let from = block.saturating_sub(first).max(self.freed_in_front as usize);
        let passed = self.recent.iter().skip(from).take_while(|block| block.is_empty()).count();
        first + from + passed
    }

    /// Number of the last block below `block` that is in use.
    fn block_in_use_below(&self, block: usize) -> Option<usize> {
        let first = self.first as usize;
        let below = block.saturating_sub(first).min(self.recent.len());
        if let Some(at) = self.recent[..below].iter().rposition(|block| !block.is_empty()) {
            return Some(first + at);
        }
        let old = &self.old.as_deref()?.0;
        let at = old.partition_point(|(of, _)| (*of as usize) < block);
        at.checked_sub(1).map(|at| old[at].0 as usize)
    }

    /// All rows that are there, from either end.
    pub fn iter(&self) -> Iter<'_, T, BLOCK> {
        Iter(self.range(0..self.end()))
    }

    /// The rows with these numbers that are there, with their numbers, from either end.
    pub fn range(&self, numbers: std::ops::Range<usize>) -> Range<'_, T, BLOCK> {
        Range { rows: self, from: numbers.start, to: numbers.end.min(self.end()) }
    }

    /// Numbers of the rows that are there, as ranges: ascending, none touches the next.
    pub fn runs(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut rows = self.range(0..self.end()).map(|(number, _)| number).peekable();
        std::iter::from_fn(move || {
            let begin = rows.next()?;
            let mut end = begin + 1;
            while rows.next_if_eq(&end).is_some() {
                end += 1;
            }
            Some(begin..end)
        })
    }

    /// The rows of this list with the numbers of these runs, and that end. The runs ascend, have as many numbers, and are
    /// before the end.
    pub(crate) fn with_numbers(self, runs: &[std::ops::Range<usize>], end: usize) -> Self {
        let mut list = Rows::new();
        let mut numbers = runs.iter().cloned().flatten();
        for row in self.into_rows() {
            list.put(numbers.next().expect("as many numbers as rows"), row);
        }
        if end > list.end() {
            list.skip_to(end);
        }
        list
    }

    /// Calls `change` with each row that is there.
    pub(crate) fn each_mut(&mut self, mut change: impl FnMut(&mut T)) {
        let old = self.old.iter_mut().flat_map(|old| &mut old.0).flat_map(|(_, rows)| rows);
        old.chain(self.recent.iter_mut().flatten()).chain(&mut self.last).flatten().for_each(&mut change);
    }

    fn into_rows(self) -> impl Iterator<Item = T> {
        let old = self.old.into_iter().flat_map(|old| old.0).flat_map(|(_, rows)| rows);
        old.chain(self.recent.into_iter().flatten()).chain(self.last).flatten()
    }
}

fn is_without_rows<T>(block: &[Option<T>]) -> bool {
    block.iter().all(Option::is_none)
}

/// Rows with their numbers, from either end.
pub struct Range<'a, T, const BLOCK: usize> {
    rows: &'a Rows<T, BLOCK>,
    from: usize,
    to: usize,
}

impl<'a, T, const BLOCK: usize> Iterator for Range<'a, T, BLOCK> {
    type Item = (usize, &'a T);
    fn next(&mut self) -> Option<(usize, &'a T)> {
        let found = self.rows.at_or_after(self.from).filter(|(number, _)| *number < self.to);
        self.from = found.map_or(self.to, |(number, _)| number + 1);
        found
    }
}

impl<T, const BLOCK: usize> DoubleEndedIterator for Range<'_, T, BLOCK> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let found = self.rows.before(self.to).filter(|(number, _)| *number >= self.from);
        self.to = found.map_or(self.from, |(number, _)| number);
        found
    }
}

impl<T, const BLOCK: usize> Clone for Range<'_, T, BLOCK> {
    fn clone(&self) -> Self {
        Range { rows: self.rows, from: self.from, to: self.to }
    }
}

/// Rows from either end.
pub struct Iter<'a, T, const BLOCK: usize = ROWS_PER_BLOCK>(Range<'a, T, BLOCK>);

impl<'a, T, const BLOCK: usize> Iterator for Iter<'a, T, BLOCK> {
    type Item = &'a T;
    fn next(&mut self) -> Option<&'a T> {
        self.0.next().map(|(_, row)| row)
    }
}

impl<T, const BLOCK: usize> DoubleEndedIterator for Iter<'_, T, BLOCK> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(_, row)| row)
    }
}

impl<T, const BLOCK: usize> Clone for Iter<'_, T, BLOCK> {
    fn clone(&self) -> Self {
        Iter(self.0.clone())
    }
}

impl<T, const BLOCK: usize> Default for Rows<T, BLOCK> {
    fn default() -> Self {
        Rows::new()
    }
}

/// Lists are equal if they have the same rows with the same numbers, in any blocks.
impl<T: PartialEq, const BLOCK: usize> PartialEq for Rows<T, BLOCK> {
    fn eq(&self, other: &Self) -> bool {
        self.end == other.end && self.range(0..self.end()).eq(other.range(0..other.end()))
    }
}

impl<T: Eq, const BLOCK: usize> Eq for Rows<T, BLOCK> {}

impl<T: std::fmt::Debug, const BLOCK: usize> std::fmt::Debug for Rows<T, BLOCK> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.range(0..self.end())).finish()
    }
}

impl<T, const BLOCK: usize> std::ops::Index<usize> for Rows<T, BLOCK> {
    type Output = T;
    #[inline]
    fn index(&self, number: usize) -> &T {
        self.get(number).expect("row numbers are those of rows that are there")
    }
}

impl<T, const BLOCK: usize> std::ops::IndexMut<usize> for Rows<T, BLOCK> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        self.get_mut(number).expect("row numbers are those of rows that are there")
    }
}

impl<'a, T, const BLOCK: usize> IntoIterator for &'a Rows<T, BLOCK> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T, BLOCK>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T, const BLOCK: usize> FromIterator<T> for Rows<T, BLOCK> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        let mut list = Rows::new();
        for row in rows {
            list.push(row);
        }
        list
    }
}

#[cfg(test)]
mod tests;
