//! `Keyed`: rows by the hashes of texts or other values, such as remembered requests by their ids. All rows of a value are
//! found, newest first; the few with other values and equal hashes are distinguished by the caller.

use super::extendible::Extendible;
use std::collections::BTreeMap;
use std::hash::Hash;

/// Numbers of rows by the keys of their values.
#[derive(Debug, Default)]
pub(crate) struct Keyed {
    newest: Extendible,
    /// Row → the row before it with the same key. Few rows have one.
    before: BTreeMap<u32, u32>,
    len: usize,
}

impl Keyed {
    /// The key of a value, as long as a row is there.
    #[inline]
    pub fn key<T: Hash + ?Sized>(&self, value: &T) -> u32 {
        self.newest.key(value)
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a row, which is newer than all others with this key.
    #[inline]
    pub fn insert(&mut self, key: u32, row: u32) {
        self.len += 1;
        if let Some(before) = self.newest.insert(key, row) {
            self.before.insert(row, before);
        }
    }

    /// The newest row with this key.
    #[inline]
    pub fn newest(&self, key: u32) -> Option<u32> {
        self.newest.get(key)
    }

    /// The newest row with this key that `is_it`.
    pub fn find(&self, key: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        std::iter::successors(self.newest(key), |row| self.before.get(row).copied()).find(|row| is_it(*row))
    }

    /// Removes a row with this key; others are found as before.
    pub fn remove(&mut self, key: u32, row: u32) {
        let Some(newest) = self.newest(key) else { return };
        let before = self.before.get(&row).copied();
        if newest == row {
            match before {
                Some(before) => _ = self.newest.insert(key, before),
                None => self.newest.remove(key, row),
            }
        } else {
            let mut rows = std::iter::successors(Some(newest), |row| self.before.get(row).copied());
            let Some(after) = rows.find(|later| self.before.get(later) == Some(&row)) else { return };
            match before {
                Some(before) => _ = self.before.insert(after, before),
                None => _ = self.before.remove(&after),
            }
        }
        self.before.remove(&row);
        self.len -= 1;
        if self.is_empty() {
            *self = Keyed::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::sample::Dice;

    #[test]
    fn rows_leave_in_any_order() {
        let (mut cases, mut dice) = (0, Dice(9));
        // Few keys have many rows each, many keys few.
        for keys in [1, 3, 40, 100_000] {
            let (mut rows, mut known) = (Keyed::default(), Vec::<(u32, u32)>::new());
            for row in 0..3_000_u32 {
                let key = (dice.below(keys) as u32).wrapping_mul(0x9e37_79b9);
                rows.insert(key, row);
                known.push((key, row));
                for _ in 0..dice.below(3) {
                    if !known.is_empty() && known.len() > 20 {
                        let (key, row) = known.remove(dice.below(known.len() as u64) as usize);
                        rows.remove(key, row);
                        rows.remove(key, row);
                    }
                }
                let key = (dice.below(keys) as u32).wrapping_mul(0x9e37_79b9);
                let expected: Vec<u32> = known.iter().rev().filter(|(of, _)| *of == key).map(|(_, row)| *row).collect();
                assert_eq!(rows.newest(key), expected.first().copied());
                let found = std::cell::RefCell::new(Vec::new());
                assert_eq!(
                    rows.find(key, |row| {
                        found.borrow_mut().push(row);
                        false
                    }),
                    None
                );
                assert_eq!(found.into_inner(), expected, "{keys} keys, row {row}");
                assert_eq!(rows.len, known.len());
                cases += 1;
            }
            known.into_iter().for_each(|(key, row)| rows.remove(key, row));
            assert!(rows.is_empty() && rows.before.is_empty());
        }
        println!("keyed rows that leave: {cases} cases");
    }
}
