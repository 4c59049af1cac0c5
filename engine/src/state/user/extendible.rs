//! `Extendible`: extendible hashing. The newest row for each hash, in buckets of bounded size under a directory; a full
//! bucket is split in two, and no other is moved. Two buckets that are almost empty become one again.
//!
//! A table that doubles moves all entries together, into untouched memory. Users that traded alike did that within a few
//! orders of each other, and all orders after them waited for a tenth of a second. Here a bucket of 512 bytes moves;
//! the directory and the list of buckets still double, and are a tenth of the total.
//!
//! ```text
//!   directory  00 01 10 11     by the first bits of a key, as many as its depth
//!               │  │  └─┬┘
//!   buckets     a  b    c      c has depth 1; when full, it splits by the second bit; the directory stays
//! ```

use ahash::RandomState;
use std::hash::Hash;

/// Slots of a bucket, as powers of two: of a new first bucket, and of any bucket that is split instead of enlarged.
const FIRST_BITS: u32 = 2;
const FULL_BITS: u32 = 6;
/// At most this many of four slots are used, so that a search ends soon.
const TAKEN_OF_FOUR: usize = 3;
/// The two halves of a bucket become one when they have this many rows together: a third of what splits it, so that a few
/// rows that come and go do not split and join it.
const JOINED_MAX: u32 = 1 << FULL_BITS >> 2;
/// Lists of buckets that are shorter keep the places of joined ones.
const PLACES_KEPT: usize = 64;
/// Deepest directory: 4 MiB, for some fifty million rows. Beyond it, as with hashes that share their first bits,
/// buckets are enlarged.
const DEPTH_MAX: u32 = 20;

/// Rows by the hashes of texts. Texts with equal hashes share an entry: it may be the row of another text.
#[derive(Debug, Default)]
pub(crate) struct Extendible {
    hasher: RandomState,
    /// Buckets by the first `depth` bits of a key; empty while there is one bucket.
    directory: Vec<u32>,
    depth: u32,
    buckets: Vec<Bucket>,
    /// Buckets that were joined to others: their places in the list are empty until it is shortened.
    joined: usize,
}

/// Slots by the last bits of a key, open addressing.
#[derive(Debug)]
struct Bucket {
    /// Count of the first bits that all keys in this bucket share.
    depth: u32,
    taken: u32,
    /// Key and row + 1; 0 is free.
    slots: Box<[u64]>,
}

impl Extendible {
    /// The key of a text, or of another value.
    #[inline]
    pub fn key<T: Hash + ?Sized>(&self, text: &T) -> u32 {
        self.hasher.hash_one(text) as u32
    }

    /// The row that was inserted last under this key.
    #[inline]
    pub fn get(&self, key: u32) -> Option<u32> {
        let bucket = self.buckets.get(self.bucket_of(key))?;
        let entry = bucket.slots[bucket.slot_of(key)];
        (entry as u32).checked_sub(1)
    }

    /// Inserts a row; returns the replaced one.
    ///
    /// # Panics
    /// When the row is `u32::MAX`.
    pub fn insert(&mut self, key: u32, row: u32) -> Option<u32> {
        let entry = u64::from(key) << 32 | u64::from(row.checked_add(1).expect("rows are counted by object numbers"));
        if self.buckets.is_empty() {
            self.buckets.push(Bucket::new(0, FIRST_BITS));
        }
        loop {
            let at = self.bucket_of(key);
            let bucket = &mut self.buckets[at];
            let slot = bucket.slot_of(key);
            if bucket.slots[slot] != 0 {
                return (std::mem::replace(&mut bucket.slots[slot], entry) as u32).checked_sub(1);
            }
            if bucket.has_room() {
                bucket.slots[slot] = entry;
                bucket.taken += 1;
                return None;
            }
            self.make_room(at, key);
        }
    }

    /// Removes the entry of this key, if it is this row: an older row was replaced.
    pub fn remove(&mut self, key: u32, row: u32) {
        let at = self.bucket_of(key);
        let Some(bucket) = self.buckets.get_mut(at) else { return };
        let slot = bucket.slot_of(key);
        if (bucket.slots[slot] as u32).checked_sub(1) == Some(row) {
            bucket.remove(slot);
            while self.joins(at, key) {}
            if self.buckets.len() >= PLACES_KEPT && self.joined * 2 >= self.buckets.len() {
                self.shorten();
            }
        }
    }

    /// Joins the bucket of `key` with the other half of the one that it was split from. False if they are not almost
    /// empty.
    fn joins(&mut self, at: usize, key: u32) -> bool {
        let Bucket { depth, taken, .. } = self.buckets[at];
        if depth == 0 || taken > JOINED_MAX {
            return false;
        }
        let entries = 1_usize << (self.depth - depth);
        let first = (key >> (u32::BITS - self.depth)) as usize / entries * entries;
        let other = self.directory[first ^ entries] as usize;
        if self.buckets[other].depth != depth || taken + self.buckets[other].taken > JOINED_MAX {
            return false;
        }
        let mut both = Bucket::new(depth - 1, FULL_BITS);
        self.buckets[at].entries().chain(self.buckets[other].entries()).for_each(|entry| both.put(entry));
        self.buckets[at] = both;
        self.buckets[other].slots = Box::default();
        let first = first & !entries;
        self.directory[first..first + 2 * entries].fill(at as u32);
        self.joined += 1;
        true
    }

    /// Removes the places of joined buckets, and the bits of the directory that tell no two buckets apart. As rare and as
    /// large as the doubling of both lists.
    #[cold]
    fn shorten(&mut self) {
        let mut moved = vec![0; self.buckets.len()];
        let mut left = 0;
        for (bucket, to) in self.buckets.iter().zip(&mut moved) {
            *to = left;
            left += u32::from(!bucket.slots.is_empty());
        }
        self.buckets.retain(|bucket| !bucket.slots.is_empty());
        self.buckets.shrink_to_fit();
        self.joined = 0;
        let depth = self.buckets.iter().map(|bucket| bucket.depth).max().unwrap_or(0);
        let entries = self.directory.iter().step_by(1 << (self.depth - depth));
        self.directory = if depth > 0 { entries.map(|bucket| moved[*bucket as usize]).collect() } else { Vec::new() };
        self.depth = depth;
    }

    #[inline]
    fn bucket_of(&self, key: u32) -> usize {
        // A single bucket has no directory.
        match self.depth {
            0 => 0,
            depth => self.directory[(key >> (u32::BITS - depth)) as usize] as usize,
        }
    }

    /// Enlarges the bucket of `key`, or splits it.
    #[cold]
    fn make_room(&mut self, at: usize, key: u32) {
        let (depth, slots_bits) = (self.buckets[at].depth, self.buckets[at].slots.len().ilog2());
        if slots_bits < FULL_BITS || depth == DEPTH_MAX {
            let mut larger = Bucket::new(depth, slots_bits + 1);
            self.buckets[at].entries().for_each(|entry| larger.put(entry));
            self.buckets[at] = larger;
            return;
        }
        let mut entries = [0; 1 << FULL_BITS];
        entries.copy_from_slice(&self.buckets[at].slots);
        let (lower, mut upper) = (&mut self.buckets[at], Bucket::new(depth + 1, FULL_BITS));
        lower.slots.fill(0);
        (lower.depth, lower.taken) = (depth + 1, 0);
        for entry in entries.into_iter().filter(|entry| *entry != 0) {
            let half = if key_of(entry) << depth >> (u32::BITS - 1) == 0 { &mut *lower } else { &mut upper };
            half.put(entry);
        }
        if depth == self.depth {
            self.directory = match depth {
                0 => vec![0; 2],
                _ => self.directory.iter().flat_map(|bucket| [*bucket; 2]).collect(),
            };
            self.depth += 1;
        }
        let new = u32::try_from(self.buckets.len()).expect("buckets are fewer than keys");
        // The entries of a bucket are adjacent; the upper half becomes the new one's.
        let entries = 1_usize << (self.depth - depth);
        let first = (key >> (u32::BITS - self.depth)) as usize / entries * entries;
        self.directory[first + entries / 2..first + entries].fill(new);
        self.buckets.push(upper);
    }
}

impl Bucket {
    fn new(depth: u32, slots_bits: u32) -> Bucket {
        Bucket { depth, taken: 0, slots: vec![0; 1 << slots_bits].into() }
    }

    /// The slot of the key, or the free slot for it.
    #[inline]
    fn slot_of(&self, key: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key as usize & mask;
        // Terminates: a quarter of the slots is free.
        while self.slots[at] != 0 && key_of(self.slots[at]) != key {
            at = (at + 1) & mask;
        }
        at
    }

    fn has_room(&self) -> bool {
        (self.taken as usize + 1) * 4 <= self.slots.len() * TAKEN_OF_FOUR
    }

    /// Adds an entry whose key is absent.
    fn put(&mut self, entry: u64) {
        let at = self.slot_of(key_of(entry));
        self.slots[at] = entry;
        self.taken += 1;
    }

    /// Frees a slot. Entries that are found by way of it move up.
    fn remove(&mut self, slot: usize) {
        let mask = self.slots.len() - 1;
        let (mut free, mut at) = (slot, (slot + 1) & mask);
        while self.slots[at] != 0 {
            let first = key_of(self.slots[at]) as usize & mask;
            // Its search begins at the free slot or before it.
            if at.wrapping_sub(first) & mask >= at.wrapping_sub(free) & mask {
                self.slots[free] = self.slots[at];
                free = at;
            }
            at = (at + 1) & mask;
        }
        self.slots[free] = 0;
        self.taken -= 1;
    }

    fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        self.slots.iter().copied().filter(|entry| *entry != 0)
    }
}

fn key_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn it_agrees_with_a_hash_map() {
        // Keys that differ in their first bits, in their last bits, in all, and repeated ones.
        const SCRAMBLE: u32 = 0x9e37_79b9;
        type Key = fn(u32) -> u32;
        let kinds: [(&str, Key); 5] = [
            ("first bits", |number| number << 12),
            ("last bits", |number| number),
            ("all bits", |number| number.wrapping_mul(SCRAMBLE)),
            ("again", |number| (number % 777).wrapping_mul(SCRAMBLE)),
            ("one", |_| u32::MAX),
        ];
        let count = 20_000;
        for (name, key) in kinds {
            let (mut rows, mut table) = (Extendible::default(), HashMap::new());
            for row in 0..count {
                let key = key(row);
                assert_eq!(rows.get(key), table.get(&key).copied(), "{name}: {row}");
                assert_eq!(rows.insert(key, row), table.insert(key, row), "{name}: {row}");
                assert_eq!(rows.get(key), Some(row), "{name}: {row}");
            }
            for key in (0..2 * count).map(key) {
                assert_eq!(rows.get(key), table.get(&key).copied(), "{name}");
            }
            let taken: usize = rows.buckets.iter().map(|bucket| bucket.entries().count()).sum();
            assert_eq!(taken, table.len(), "{name}: each key once");
        }
        println!("entries: {} kinds of {count}", kinds.len());
    }

    #[test]
    fn removed_entries_agree_with_a_hash_map() {
        const SCRAMBLE: u32 = 0x9e37_79b9;
        let mut cases = 0;
        // Keys that share a slot, that are spread, and few ones.
        for (name, key) in [
            ("one slot", (|row: u32| row << 12) as fn(u32) -> u32),
            ("adjacent", |row| row),
            ("spread", |row| row.wrapping_mul(SCRAMBLE)),
            ("few", |row| (row % 50).wrapping_mul(SCRAMBLE)),
        ] {
            // Rows leave in the order in which they came, when `kept` newer ones are there.
            for kept in [1, 3, 60, 1_000] {
                let (mut rows, mut table) = (Extendible::default(), HashMap::new());
                for row in 0..5_000_u32 {
                    rows.insert(key(row), row);
                    table.insert(key(row), row);
                    if let Some(old) = row.checked_sub(kept) {
                        rows.remove(key(old), old);
                        if table.get(&key(old)) == Some(&old) {
                            table.remove(&key(old));
                        }
                        assert_eq!(rows.get(key(old)), table.get(&key(old)).copied(), "{name}: {old}");
                        cases += 1;
                    }
                }
                assert!(table.iter().all(|(key, row)| rows.get(*key) == Some(*row)), "{name}, {kept} kept");
                let taken: usize = rows.buckets.iter().map(|bucket| bucket.entries().count()).sum();
                let counted: usize = rows.buckets.iter().map(|bucket| bucket.taken as usize).sum();
                assert_eq!((taken, counted), (table.len(), table.len()), "{name}, {kept} kept");
                // The buckets of spread keys are used again.
                let slots: usize = rows.buckets.iter().map(|bucket| bucket.slots.len()).sum();
                assert!(name != "spread" || slots <= (8 * kept as usize).max(128), "{slots} slots for {kept} rows");
            }
        }
        let mut empty = Extendible::default();
        empty.remove(7, 0);
        println!("removed entries: {cases} cases");
    }

    /// After a burst the memory is that of the rows which are left.
    #[test]
    fn a_burst_that_has_left_takes_no_memory() {
        let count = 100_000_u32;
        let slots = |rows: &Extendible| rows.buckets.iter().map(|bucket| bucket.slots.len()).sum::<usize>();
        let mut cases = 0;
        // Rows that stay: the newest, or some of all ages.
        for kept in [0, 1, 40, 1_000, 20_000] {
            for spread in [false, true] {
                let mut rows = Extendible::default();
                let keys: Vec<u32> = (0..count).map(|row| rows.key(&row.to_string())).collect();
                let mut newest = HashMap::new();
                for (row, key) in (0..).zip(&keys) {
                    rows.insert(*key, row);
                    newest.insert(*key, row);
                }
                let full = (slots(&rows), rows.buckets.len(), rows.directory.len());
                let stays = |row: u32| match (kept, spread) {
                    (0, _) => false,
                    (_, true) => row.is_multiple_of(count / kept),
                    (_, false) => row >= count - kept,
                };
                for (row, key) in (0..).zip(&keys).filter(|(row, _)| !stays(*row)) {
                    rows.remove(*key, row);
                    if newest.get(key) == Some(&row) {
                        newest.remove(key);
                    }
                }
                let name = format!("{kept} of {count}, spread: {spread}");
                assert!(keys.iter().all(|key| rows.get(*key) == newest.get(key).copied()), "{name}");
                // A bucket and its other half have more than a quarter of the slots of one.
                let most = (1 << FULL_BITS) + 8 * kept as usize;
                assert!(slots(&rows) <= most.min(full.0), "{name}: {} slots of {}", slots(&rows), full.0);
                let places = PLACES_KEPT.max(most >> FULL_BITS << 1);
                assert!(rows.buckets.len() <= places.min(full.1), "{name}: {} of {}", rows.buckets.len(), full.1);
                assert!(kept > 40 || rows.directory.len() <= full.2 / 4, "{name}: {}", rows.directory.len());
                // It grows again.
                for (row, key) in (count..).zip(&keys) {
                    rows.insert(*key, row);
                    newest.insert(*key, row);
                }
                assert!(keys.iter().all(|key| rows.get(*key) == newest.get(key).copied()), "{name}: again");
                let taken: usize = rows.buckets.iter().map(|bucket| bucket.entries().count()).sum();
                assert_eq!(taken, newest.len(), "{name}: each key once");
                cases += 1;
            }
        }
        println!("bursts: {cases} cases of {count}");
    }

    /// The memory moved and allocated by one insert is bounded for any count of rows; what doubles is small.
    #[test]
    fn one_insert_moves_one_bucket() {
        let mut rows = Extendible::default();
        let (count, mut slots_before, mut most) = (100_000, 0, 0);
        for row in 0..count {
            rows.insert(rows.key(&row.to_string()), row);
            let slots: usize = rows.buckets.iter().map(|bucket| bucket.slots.len()).sum();
            most = most.max(slots - slots_before);
            slots_before = slots;
        }
        assert_eq!(most, 1 << FULL_BITS, "one more bucket at most");
        let lists = rows.directory.len() * size_of::<u32>() + rows.buckets.len() * size_of::<Bucket>();
        let bytes = slots_before * size_of::<u64>();
        assert!(bytes < 20 * count as usize && lists < bytes / 8, "{bytes} and {lists} bytes for {count} entries");
        println!("entries: {count} in {} buckets, {bytes} bytes, {lists} in lists", rows.buckets.len());
    }

    /// Keys with equal first bits enlarge buckets, not the directory.
    #[test]
    fn the_directory_has_a_bound() {
        let mut rows = Extendible::default();
        let count = 5_000;
        (0..count).for_each(|row| assert_eq!(rows.insert(row, row), None));
        assert!((0..count).all(|row| rows.get(row) == Some(row)));
        assert_eq!((rows.depth, rows.directory.len()), (DEPTH_MAX, 1 << DEPTH_MAX));
        println!("entries: {count} below {DEPTH_MAX} bits");
    }
}
