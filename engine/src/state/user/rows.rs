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
}
