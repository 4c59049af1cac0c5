//! `Rows`: an append-only list in blocks. Appending never moves what is there, so a user with a hundred thousand
//! orders appends as fast as a new one, and the room left over is at most part of one block.

/// Rows in a full block.
const ROWS_PER_BLOCK: usize = 32;

/// An append-only list; a row is found by its index, in constant time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows<T, const PER_BLOCK: usize = ROWS_PER_BLOCK> {
    /// All full but the last.
    blocks: Vec<Vec<T>>,
}

impl<T, const PER_BLOCK: usize> Rows<T, PER_BLOCK> {
    pub const fn new() -> Self {
        Rows { blocks: Vec::new() }
    }

    /// Adds a row at the end and says its index.
    pub fn push(&mut self, row: T) -> usize {
        let index = self.len();
        match self.blocks.last_mut() {
            Some(block) if block.len() < PER_BLOCK => {
                if block.len() == block.capacity() {
                    // Doubling, but never beyond the block.
                    block.reserve_exact(block.len().min(PER_BLOCK - block.len()));
                }
                block.push(row);
            }
            full => {
                let first = full.is_none();
                if first {
                    self.blocks.reserve_exact(1);
                }
                let mut block = Vec::with_capacity(if first { 1 } else { PER_BLOCK });
                block.push(row);
                self.blocks.push(block);
            }
        }
        index
    }

    pub fn len(&self) -> usize {
        match self.blocks.last() {
            Some(last) => (self.blocks.len() - 1) * PER_BLOCK + last.len(),
            None => 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<&T> {
        self.blocks.get(index / PER_BLOCK)?.get(index % PER_BLOCK)
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.blocks.get_mut(index / PER_BLOCK)?.get_mut(index % PER_BLOCK)
    }

    pub fn last(&self) -> Option<&T> {
        self.blocks.last()?.last()
    }

    /// All rows, from either end.
    pub fn iter(&self) -> std::iter::Flatten<std::slice::Iter<'_, Vec<T>>> {
        self.blocks.iter().flatten()
    }
}

impl<T, const PER_BLOCK: usize> Default for Rows<T, PER_BLOCK> {
    fn default() -> Self {
        Rows::new()
    }
}

impl<T, const PER_BLOCK: usize> std::ops::Index<usize> for Rows<T, PER_BLOCK> {
    type Output = T;
    fn index(&self, index: usize) -> &T {
        &self.blocks[index / PER_BLOCK][index % PER_BLOCK]
    }
}

impl<T, const PER_BLOCK: usize> std::ops::IndexMut<usize> for Rows<T, PER_BLOCK> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.blocks[index / PER_BLOCK][index % PER_BLOCK]
    }
}

impl<'a, T, const PER_BLOCK: usize> IntoIterator for &'a Rows<T, PER_BLOCK> {
    type Item = &'a T;
    type IntoIter = std::iter::Flatten<std::slice::Iter<'a, Vec<T>>>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T, const PER_BLOCK: usize> FromIterator<T> for Rows<T, PER_BLOCK> {
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
    fn rows_behave_like_a_list() {
        let mut rows: Rows<usize, 4> = Rows::new();
        for i in 0..50 {
            assert_eq!(rows.len(), i);
            assert_eq!(rows.push(i * 10), i);
            assert_eq!(rows.last(), Some(&(i * 10)));
        }
        assert_eq!(rows.iter().copied().collect::<Vec<_>>(), (0..50).map(|i| i * 10).collect::<Vec<_>>());
        assert_eq!(rows.iter().next_back(), Some(&490));
        assert_eq!((rows.get(49), rows.get(50)), (Some(&490), None));
        rows[7] = 1;
        assert_eq!(rows[7], 1);
        assert_eq!((&rows).into_iter().count(), 50);
    }
}
