//! `SharedRows`: rows that leave with copies of what refers to them, and are not copied for it.
//!
//! An order that few have something of, such as an id of its sender's own, refers to a row here. Its copy in an answer or a
//! notice refers to the same row, from another thread and for longer than the answer takes. One allocation for each
//! such order would be the only one on its way; so rows lie side by side in blocks, and copies keep their block alive.

use std::sync::{Arc, OnceLock};

/// Rows of a block, once a user has some. The first blocks have fewer: most have one such row, or a thousand.
const ROWS_PER_BLOCK: usize = 16;

/// Where rows are added; it holds none of them alive itself, but for the block that is being filled.
#[derive(Debug)]
pub(crate) struct SharedRows<T> {
    filling: Option<Arc<Block<T>>>,
    taken: u8,
}

/// Room for some rows, each written once.
#[derive(Debug)]
pub(crate) struct Block<T>(Box<[OnceLock<T>]>);

/// A row, and all copies of what refers to it. Equal rows are equal wherever they lie.
#[derive(Debug)]
pub(crate) struct SharedRow<T> {
    block: Arc<Block<T>>,
    at: u8,
}

impl<T> SharedRows<T> {
    pub const fn new() -> SharedRows<T> {
        SharedRows { filling: None, taken: 0 }
    }

    /// Adds a row, which never changes.
    pub fn push(&mut self, row: T) -> SharedRow<T> {
        let at = self.taken;
        let block = match &self.filling {
            Some(block) if usize::from(at) < block.0.len() => block,
            _ => return self.push_first(row),
        };
        self.taken += 1;
        SharedRow::set(block.clone(), at, row)
    }

    /// Reads where the next row goes.
    pub fn warm(&self) -> usize {
        let place = self.filling.as_ref().and_then(|block| block.0.get(usize::from(self.taken)));
        place.is_some_and(|place| place.get().is_some()).into()
    }

    #[cold]
    fn push_first(&mut self, row: T) -> SharedRow<T> {
        let rows = self.filling.as_ref().map_or(1, |full| (full.0.len() * 2).min(ROWS_PER_BLOCK));
        let block = self.filling.insert(Block::of(rows)).clone();
        self.taken = 1;
        SharedRow::set(block, 0, row)
    }
}

impl<T> Default for SharedRows<T> {
    fn default() -> Self {
        SharedRows::new()
    }
}

impl<T> Block<T> {
    fn of(rows: usize) -> Arc<Block<T>> {
        Arc::new(Block((0..rows).map(|_| OnceLock::new()).collect()))
    }

    /// The row at a place that was given out.
    pub fn row(&self, at: u8) -> &T {
        self.0[usize::from(at)].get().expect("a place is given out with its row")
    }
}

impl<T> SharedRow<T> {
    /// A row in a block of its own.
    pub fn alone(row: T) -> SharedRow<T> {
        SharedRow::set(Block::of(1), 0, row)
    }

    fn set(block: Arc<Block<T>>, at: u8, row: T) -> SharedRow<T> {
        let is_free = block.0[usize::from(at)].set(row).is_ok();
        assert!(is_free, "a place is given out once: {at}");
        SharedRow { block, at }
    }

    /// Block and place, for those who have no sixteen bytes for the two.
    pub fn into_parts(self) -> (Arc<Block<T>>, u8) {
        (self.block, self.at)
    }
}

impl<T> std::ops::Deref for SharedRow<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.block.row(self.at)
    }
}

impl<T> Clone for SharedRow<T> {
    fn clone(&self) -> Self {
        SharedRow { block: self.block.clone(), at: self.at }
    }
}

impl<T: PartialEq> PartialEq for SharedRow<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for SharedRow<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_outlive_their_list_and_each_other() {
        let count = 100_u32;
        let mut rows = SharedRows::new();
        let kept: Vec<SharedRow<String>> = (0..count).map(|number| rows.push(number.to_string())).collect();
        drop(rows);
        let copies: Vec<_> = kept.iter().skip(1).step_by(2).cloned().collect();
        let other: Vec<_> = std::thread::spawn(move || copies.into_iter().map(|row| row.len()).collect())
            .join()
            .expect("reads from another thread");
        assert_eq!(other.len(), 50);
        for (number, row) in kept.iter().enumerate() {
            assert_eq!(**row, number.to_string());
            assert_eq!(*row, SharedRow::alone(number.to_string()), "wherever it lies");
            let (block, at) = row.clone().into_parts();
            assert_eq!(block.row(at), &**row);
        }
        println!("rows: {} cases", kept.len());
    }

    #[test]
    fn few_have_little_room_and_many_one_block_for_sixteen() {
        let mut rows = SharedRows::new();
        let mut allocations = Vec::new();
        for number in 0..ROWS_PER_BLOCK * 4 {
            let info = allocation_counter::measure(|| drop(rows.push(number as u64)));
            if info.count_total > 0 {
                assert_eq!(info.count_total, 2, "the block and its rows");
                allocations.push(number);
            }
        }
        assert_eq!(allocations, [0, 1, 3, 7, 15, 31, 47, 63]);
    }
}
