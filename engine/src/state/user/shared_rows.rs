//! `SharedRows`: rows that an order shares with its copies.
//!
//! Rare fields of an order, such as the client's id, are not in its row; the row refers to them. The order's copy in an
//! answer or a notice refers to the same fields, from another thread, and may outlive the answer. An allocation for
//! each such order would be the only one of a placement, so these rows are adjacent in blocks, which live as long as
//! they are referred to.
//!
//! The users of a shard fill the same blocks, in the order of time: the next slot is in the cache for any user, and no
//! user wastes space. Orders live as long as their users, so it does not matter which of them keeps a block alive. The
//! price: all copies of rows of one block share a reference count, which other threads decrement.

use crate::order::row::Rare;
use crate::order::text::Text;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Rows of a block.
const ROWS_PER_BLOCK: usize = 16;

/// The shared rows of the users of a shard.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Rare fields of orders.
    pub rares: SharedRows<Rare>,
    /// Ids of requests that differ from their orders' ids.
    pub ids: SharedRows<Text>,
}

/// Appends rows. It keeps no list of them: a reference keeps a row alive.
#[derive(Debug)]
pub(crate) struct SharedRows<T> {
    filling: Option<Arc<Block<T>>>,
    taken: u8,
}

/// Space for some rows, each written once.
#[derive(Debug)]
pub(crate) struct Block<T>(Box<[OnceLock<T>]>);

/// A reference to a row; copies refer to the same row. Equality is that of the rows.
pub(crate) struct SharedRow<T> {
    block: Arc<Block<T>>,
    at: u8,
}

impl<T> SharedRows<T> {
    pub const fn new() -> SharedRows<T> {
        SharedRows { filling: None, taken: 0 }
    }

    /// Adds an immutable row.
    pub fn push(&mut self, row: T) -> SharedRow<T> {
        let at = self.taken;
        let block = match &self.filling {
            Some(block) if usize::from(at) < block.0.len() => block,
            _ => return self.push_first(row),
        };
        self.taken += 1;
        SharedRow::set(block.clone(), at, row)
    }

    #[cold]
    fn push_first(&mut self, row: T) -> SharedRow<T> {
        let block = self.filling.insert(Block::of(ROWS_PER_BLOCK)).clone();
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

    /// The row at an assigned index.
    pub fn row(&self, at: u8) -> &T {
        self.0[usize::from(at)].get().expect("an index is assigned with its row")
    }
}

impl<T> SharedRow<T> {
    /// A row in a block with no other rows.
    #[cfg(test)]
    pub fn alone(row: T) -> SharedRow<T> {
        SharedRow::set(Block::of(1), 0, row)
    }

    fn set(block: Arc<Block<T>>, at: u8, row: T) -> SharedRow<T> {
        let is_free = block.0[usize::from(at)].set(row).is_ok();
        assert!(is_free, "an index is assigned once: {at}");
        SharedRow { block, at }
    }

    /// Block and index, for structs without sixteen bytes for the two.
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

/// Formats the row.
impl<T: fmt::Debug> fmt::Debug for SharedRow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
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
        let (read, copies) = std::sync::mpsc::channel::<(u32, SharedRow<String>)>();
        // Reads the received rows while the next slots of the same blocks are written.
        let reader = std::thread::spawn(move || {
            let mut seen = Vec::new();
            for (number, row) in copies {
                assert_eq!(*row, number.to_string());
                seen.push((number, row));
            }
            seen
        });
        for number in 0..count {
            let row = rows.push(number.to_string());
            assert_eq!(row, SharedRow::alone(number.to_string()), "in any block");
            assert_eq!(format!("{row:?}"), format!("\"{number}\""));
            let (block, at) = row.clone().into_parts();
            assert_eq!(block.row(at), &*row);
            // Of each block some rows have no other copy than the reader's, and some have none.
            if number % 3 != 0 {
                read.send((number, row)).expect("the reader is running");
            }
        }
        drop((rows, read));
        let seen = reader.join().expect("each row had its value");
        for (number, row) in &seen {
            assert_eq!(**row, number.to_string(), "after all other copies were dropped");
        }
        println!("rows: {} cases", seen.len());
        assert_eq!(seen.len(), 66);
    }

    #[test]
    fn one_row_in_sixteen_allocates() {
        let mut rows = SharedRows::new();
        let mut allocations = Vec::new();
        for number in 0..ROWS_PER_BLOCK * 4 {
            let info = allocation_counter::measure(|| drop(rows.push(number as u64)));
            if info.count_total > 0 {
                assert_eq!(info.count_total, 2, "the block and its rows");
                allocations.push(number);
            }
        }
        assert_eq!(allocations, [0, 16, 32, 48]);
    }
}
