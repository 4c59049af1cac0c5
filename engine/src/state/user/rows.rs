//! `Rows`: an append-only list in blocks. Appending never moves rows, so a user with a hundred thousand orders appends
//! as fast as a new one, and the unused space is at most part of one block.

/// Rows in a full block.
const ROWS_PER_BLOCK: usize = 16;
/// The same for numbers, which are small.
const NUMBERS_PER_BLOCK: usize = 1_024;
/// Capacity of a new block; it doubles until the block is full.
const ROWS_AT_FIRST: usize = 4;
/// Count of blocks that grow. Later ones have their full capacity from the start: the unused space is then relatively
/// small.
const BLOCKS_THAT_GROW: usize = 4;

/// An append-only list; a row is found by its index, in constant time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows<T, const BLOCK: usize = ROWS_PER_BLOCK> {
    full: Vec<Vec<T>>,
    /// The block that grows, stored inline: most accesses are to the newest rows.
    last: Vec<T>,
}

/// Numbers of rows.
pub type Numbers = Rows<u32, NUMBERS_PER_BLOCK>;

impl<T, const BLOCK: usize> Rows<T, BLOCK> {
    pub const fn new() -> Self {
        Rows { full: Vec::new(), last: Vec::new() }
    }

    /// Appends a row and returns its index.
    #[inline]
    pub fn push(&mut self, row: T) -> usize {
        let index = self.len();
        if self.last.len() == self.last.capacity() {
            self.grow();
        }
        self.last.push(row);
        index
    }

    #[cold]
    fn grow(&mut self) {
        match self.last.len() {
            // A first row is often the only one.
            0 => self.last.reserve_exact(1),
            1 if self.full.is_empty() => self.last.reserve_exact(ROWS_AT_FIRST - 1),
            len if len == BLOCK => {
                // A user with several full blocks continues: the next has its full capacity, so that no row is moved.
                let whole = self.full.len() + 1 >= BLOCKS_THAT_GROW;
                let next = Vec::with_capacity(if whole { BLOCK } else { ROWS_AT_FIRST });
                self.full.push(std::mem::replace(&mut self.last, next));
            }
            len => self.last.reserve_exact(len.min(BLOCK - len)),
        }
    }

    /// Appends the first of `coming` rows: reserves space for all of them, as far as the block allows.
    pub(crate) fn push_first_of(&mut self, coming: usize, row: T) -> usize {
        if self.last.len() == self.last.capacity() {
            if self.last.len() == BLOCK {
                let next = Vec::with_capacity(coming.clamp(1, BLOCK));
                self.full.push(std::mem::replace(&mut self.last, next));
            } else {
                self.last.reserve_exact(coming.clamp(1, BLOCK - self.last.len()));
            }
        }
        self.push(row)
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.full.len() * BLOCK + self.last.len()
    }

    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        match self.full.get(index / BLOCK) {
            Some(block) => block.get(index % BLOCK),
            None => self.last.get(index.checked_sub(self.full.len() * BLOCK)?),
        }
    }

    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let full_count = self.full.len();
        match self.full.get_mut(index / BLOCK) {
            Some(block) => block.get_mut(index % BLOCK),
            None => self.last.get_mut(index.checked_sub(full_count * BLOCK)?),
        }
    }

    pub fn last(&self) -> Option<&T> {
        self.last.last()
    }

    /// The count of rows before the first that is not `below`; rows that are `below` come first.
    pub fn partition_point(&self, below: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if below(&self[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// All rows, from either end.
    pub fn iter(&self) -> Iter<'_, T> {
        self.full.iter().flatten().chain(&self.last)
    }
}

impl<T, const BLOCK: usize> Rows<T, BLOCK> {
    /// Drops the rows of a full block; its place stays.
    fn empty_block(&mut self, block: usize) {
        self.full[block] = Vec::new();
    }

    /// Removes the first `count` blocks: the indexes of all other rows are smaller afterwards.
    fn remove_blocks(&mut self, count: usize) {
        self.full.drain(..count);
    }
}

/// Emptied blocks that are removed together, at least, if they are half of all: so removing one moves few others.
const BLOCKS_REMOVED: usize = 64;

/// Rows that are dropped oldest first, while others are appended. A row is found by its number, which it keeps.
#[derive(Debug)]
pub struct Aging<T, const BLOCK: usize = ROWS_PER_BLOCK> {
    rows: Rows<T, BLOCK>,
    /// Number of the first row in `rows`: dropped ones in front of it have no place.
    first: usize,
    /// Number of the oldest row that is not dropped.
    oldest: usize,
}

impl<T, const BLOCK: usize> Aging<T, BLOCK> {
    /// Appends a row and returns its number.
    #[inline]
    pub fn push(&mut self, row: T) -> usize {
        self.first + self.rows.push(row)
    }

    /// Drops the oldest row, if there is one. Memory is released block by block.
    pub fn drop_oldest(&mut self) {
        if self.is_empty() {
            return;
        }
        self.oldest += 1;
        let dropped = self.oldest - self.first;
        // With the first row of the next block, because the last block grows.
        let emptied = (dropped - 1) / BLOCK;
        if dropped % BLOCK == 1 && emptied > 0 {
            self.rows.empty_block(emptied - 1);
            if emptied >= BLOCKS_REMOVED && emptied * 2 >= self.rows.full.len() {
                self.rows.remove_blocks(emptied);
                self.first += emptied * BLOCK;
            }
        }
    }

    /// Numbers of the rows that are not dropped.
    pub fn numbers(&self) -> std::ops::Range<usize> {
        self.oldest..self.first + self.rows.len()
    }

    pub fn len(&self) -> usize {
        self.numbers().len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.oldest == self.first + self.rows.len()
    }

    /// The row with that number, unless it was dropped.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        if number < self.oldest {
            return None;
        }
        self.rows.get(number - self.first)
    }

    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        if number < self.oldest {
            return None;
        }
        self.rows.get_mut(number - self.first)
    }

    pub fn oldest(&self) -> Option<&T> {
        self.get(self.oldest)
    }

    /// The newest, unless it was dropped.
    pub fn last(&self) -> Option<&T> {
        self.rows.last().filter(|_| !self.is_empty())
    }

    /// All rows, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> + '_ {
        self.numbers().filter_map(|number| self.get(number))
    }
}

impl<T, const BLOCK: usize> Default for Aging<T, BLOCK> {
    fn default() -> Self {
        Rows::new().into()
    }
}

impl<T, const BLOCK: usize> From<Rows<T, BLOCK>> for Aging<T, BLOCK> {
    fn from(rows: Rows<T, BLOCK>) -> Self {
        Aging { rows, first: 0, oldest: 0 }
    }
}

/// Numbers that are dropped oldest first.
pub type AgingNumbers = Aging<u32, NUMBERS_PER_BLOCK>;

/// Rows from either end.
pub type Iter<'a, T> = std::iter::Chain<std::iter::Flatten<std::slice::Iter<'a, Vec<T>>>, std::slice::Iter<'a, T>>;

impl<T, const BLOCK: usize> Default for Rows<T, BLOCK> {
    fn default() -> Self {
        Rows::new()
    }
}

impl<T, const BLOCK: usize> std::ops::Index<usize> for Rows<T, BLOCK> {
    type Output = T;
    #[inline]
    fn index(&self, index: usize) -> &T {
        self.get(index).expect("row indexes are those returned by push")
    }
}

impl<T, const BLOCK: usize> std::ops::IndexMut<usize> for Rows<T, BLOCK> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).expect("row indexes are those returned by push")
    }
}

impl<'a, T, const BLOCK: usize> IntoIterator for &'a Rows<T, BLOCK> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;
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
mod tests {
    use super::*;

    #[test]
    fn rows_behave_like_a_vec() {
        let mut rows: Rows<usize> = Rows::new();
        for i in 0..50 {
            assert_eq!(rows.len(), i);
            assert_eq!(rows.push(i * 10), i);
            assert_eq!(rows.last(), Some(&(i * 10)));
        }
        assert_eq!(rows.iter().copied().collect::<Vec<_>>(), (0..50).map(|i| i * 10).collect::<Vec<_>>());
        assert_eq!(rows.iter().next_back(), Some(&490));
        assert_eq!((rows.get(49), rows.get(50)), (Some(&490), None));
        for below in [0, 1, 17, 50] {
            assert_eq!(rows.partition_point(|row| *row < below * 10), below);
        }
        rows[7] = 1;
        assert_eq!(rows[7], 1);
        assert_eq!((&rows).into_iter().count(), 50);
        // Reserving changes nothing else, for any count.
        for coming in [0, 1, 5, 16, 17, 40, 100] {
            let (mut roomy, mut grown) = (Rows::<_>::new(), Rows::<_>::new());
            for i in 0..40_usize {
                assert_eq!((roomy.push_first_of(coming.max(i) - i, i), grown.push(i)), (i, i));
                assert_eq!(roomy.last(), grown.last());
            }
            assert_eq!(roomy.iter().collect::<Vec<_>>(), grown.iter().collect::<Vec<_>>(), "{coming}");
        }
        // The same with blocks of another size.
        let count = 6 * NUMBERS_PER_BLOCK as u32 + 5;
        let mut numbers = Numbers::new();
        (0..count).for_each(|number| assert_eq!(numbers.push(number), number as usize));
        assert!(numbers.iter().copied().eq(0..count) && numbers.last() == Some(&(count - 1)));
        assert!((0..count).all(|number| numbers[number as usize] == number) && numbers.get(count as usize).is_none());
    }

    #[test]
    fn rows_are_dropped_oldest_first_and_keep_their_numbers() {
        use std::collections::VecDeque;
        let (mut cases, mut dice) = (0, crate::user::sample::Dice(3));
        // Appended and dropped in each round, of ten.
        for (appended, dropped) in [(10, 0), (10, 10), (0, 10), (7, 5), (9, 9), (5, 7)] {
            let (mut rows, mut known) = (Aging::<(usize, std::rc::Rc<()>)>::default(), VecDeque::new());
            let (alive, mut next) = (std::rc::Rc::new(()), 0);
            for round in 0..8_000 {
                if dice.below(10) < appended {
                    assert_eq!(rows.push((next, alive.clone())), next);
                    known.push_back(next);
                    next += 1;
                }
                if dice.below(10) < dropped {
                    rows.drop_oldest();
                    known.pop_front();
                }
                assert_eq!((rows.len(), rows.is_empty()), (known.len(), known.is_empty()));
                assert_eq!(rows.oldest().map(|row| row.0), known.front().copied());
                assert_eq!(rows.last().map(|row| row.0), known.back().copied());
                let number = dice.below(next as u64 + 2) as usize;
                let found = known.contains(&number).then_some(number);
                assert_eq!(rows.get(number).map(|row| row.0), found, "{number} in round {round}");
                assert_eq!(rows.get_mut(number).map(|row| row.0), found);
                cases += 1;
            }
            assert!(rows.iter().map(|row| row.0).eq(known.iter().copied()));
            // Dropped rows are released, but for those of a block that is not full or not dropped whole.
            let kept = std::rc::Rc::strong_count(&alive) - 1;
            assert!((known.len()..known.len() + 2 * ROWS_PER_BLOCK).contains(&kept), "{kept} of {}", known.len());
            let places = rows.rows.full.len();
            assert!(places <= 2 * (known.len() / ROWS_PER_BLOCK + BLOCKS_REMOVED), "{places} of {}", known.len());
            while !rows.is_empty() {
                rows.drop_oldest();
            }
            rows.drop_oldest();
            assert_eq!((rows.push((next, alive.clone())), rows.len()), (next, 1), "numbers go on");
        }
        println!("dropped rows: {cases} cases");
    }
}
