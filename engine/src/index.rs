//! Tables that grow during reads: dense by number ([`Table`], [`AppendVec`]) and by hash ([`HashIndex`]).
//!
//! Reads take no lock and never wait. Writes are a cold path: writers of one table queue at a mutex. Entries are never
//! removed, so a reference lives as long as its table. Not offered: removal, shrinking, iteration in hash order.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Total entries of a table's first eight buckets; each further eight buckets have twice as many in total as the eight
/// before, so that at most an eighth of a table is unused.
const FIRST_BUCKETS: usize = 64;
/// Buckets of one size, as a power of two.
const EQUAL_BITS: u32 = 3;
/// Buckets of a table: their total exceeds the entries that a u32 counts.
const BUCKETS: usize = 27 << EQUAL_BITS;
/// Slots of a hash index's first generation, as a power of two.
const FIRST_SLOTS_BITS: usize = 10;
/// Generations of a hash index; each has four times the slots of the previous one, so that a search visits few.
const GENERATIONS: usize = 11;

/// A sparse array by number. An entry is set once and never moves.
pub struct Table<T> {
    buckets: [OnceLock<Box<[OnceLock<T>]>>; BUCKETS],
}

/// A dense array that only grows.
pub struct AppendVec<T> {
    table: Table<T>,
    /// Entries below it are set; stored with `Release` after the entry, loaded with `Acquire` before it.
    len: AtomicU32,
    appending: Mutex<()>,
}

/// Hash → number, open addressing. The caller stores the keys, computes the hash and compares.
///
/// A slot holds 32 bits of hash and the number + 1, 0 is free: one atomic, so an entry is whole or absent. When the
/// newest generation is full, a new one takes further entries; entries never move, so readers need no lock and no entry
/// is stored twice. A search starts in the newest generation and continues in the older ones: most end in the first or
/// second, and a failed search visits all, six for 300,000 entries.
pub struct HashIndex {
    generations: [OnceLock<Box<[AtomicU64]>>; GENERATIONS],
    newest: AtomicU32,
    inserting: Mutex<Counts>,
}

/// Entries of a hash index so far.
struct Counts {
    all: usize,
    in_newest: usize,
}

/// Bucket and offset of entry `index`.
fn place(index: usize) -> (usize, usize) {
    let shifted = index + FIRST_BUCKETS;
    let log = shifted.ilog2();
    let bits = log - EQUAL_BITS;
    let equal = shifted >> bits & ((1 << EQUAL_BITS) - 1);
    (((log - FIRST_BUCKETS.ilog2()) as usize) << EQUAL_BITS | equal, shifted & ((1 << bits) - 1))
}

/// Entries of a bucket.
fn bucket_len(bucket: usize) -> usize {
    FIRST_BUCKETS >> EQUAL_BITS << (bucket >> EQUAL_BITS)
}

impl<T> Table<T> {
    pub const fn new() -> Table<T> {
        Table { buckets: [const { OnceLock::new() }; BUCKETS] }
    }

    /// The entry, if it was set.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        let (bucket, offset) = place(index);
        self.buckets.get(bucket)?.get()?[offset].get()
    }

    /// The entry; `make` sets it if it is absent (once, with concurrent callers too).
    ///
    /// # Panics
    /// When `index` exceeds a u32.
    pub fn get_or_set(&self, index: usize, make: impl FnOnce() -> T) -> &T {
        let (bucket, offset) = place(index);
        let room = self.buckets.get(bucket).expect("entries are numbered in u32");
        room.get_or_init(|| (0..bucket_len(bucket)).map(|_| OnceLock::new()).collect())[offset].get_or_init(make)
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table::new()
    }
}

impl<T> AppendVec<T> {
    pub const fn new() -> AppendVec<T> {
        AppendVec { table: Table::new(), len: AtomicU32::new(0), appending: Mutex::new(()) }
    }

    /// The entry with that number.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index < self.len() { self.table.get(index) } else { None }
    }

    /// Entries so far: all numbers below it can be read.
    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an entry and returns its number.
    ///
    /// # Panics
    /// After 2³² − 65 entries.
    pub fn push(&self, entry: T) -> usize {
        self.push_with(|_| entry)
    }

    /// Adds the entry that `make` returns for its number.
    pub fn push_with(&self, make: impl FnOnce(usize) -> T) -> usize {
        let _one_writer = lock(&self.appending);
        let index = self.len();
        self.table.get_or_set(index, || make(index));
        self.len.store(u32::try_from(index + 1).expect("entries are numbered in u32"), Ordering::Release);
        index
    }

    /// All entries so far, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map(|index| self.table.get(index).expect("entries below len are set"))
    }
}

impl<T> Default for AppendVec<T> {
    fn default() -> Self {
        AppendVec::new()
    }
}

impl HashIndex {
    pub const fn new() -> HashIndex {
        HashIndex {
            generations: [const { OnceLock::new() }; GENERATIONS],
            newest: AtomicU32::new(0),
            inserting: Mutex::new(Counts { all: 0, in_newest: 0 }),
        }
    }

    /// The number under this hash for which `is_it` is true.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        // Pairs with the `Release` in `open_next`: a reader that sees the generation's number sees its slots.
        let newest = self.newest.load(Ordering::Acquire) as usize;
        let tag = fold(hash);
        self.generations[..=newest].iter().rev().find_map(|slots| probe(slots.get()?, tag, &mut is_it).ok())
    }

    /// As [`HashIndex::find`], with the same work wherever and whether the entry is found: for secrets.
    #[inline]
    pub fn find_evenly(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let newest = self.newest.load(Ordering::Acquire) as usize;
        let tag = fold(hash);
        let generations = self.generations[..=newest].iter().filter_map(OnceLock::get);
        // The start of each search, loaded together: one after the other, each would wait for memory.
        let begins = generations.clone().map(|slots| slots[tag as usize & (slots.len() - 1)].load(Ordering::Relaxed));
        std::hint::black_box(begins.fold(0, |read, entry| read ^ entry));
        generations.fold(None, |found, slots| probe(slots, tag, &mut is_it).ok().or(found))
    }

    /// The number under this hash for which `is_it` is true; otherwise inserts the one that `make` returns. The flag is
    /// true for a new one. Inserts queue; `make` runs inside, so it must not insert into the same index.
    ///
    /// # Panics
    /// When `make` returns `u32::MAX`, or after 2²⁹ entries.
    pub fn find_or_insert(&self, hash: u64, is_it: impl FnMut(u32) -> bool, make: impl FnOnce() -> u32) -> (u32, bool) {
        let mut counts = lock(&self.inserting);
        if let Some(found) = self.find(hash, is_it) {
            return (found, false);
        }
        let tag = fold(hash);
        let mut slots = self.newest();
        // At most 3 of 4 slots are used, so that a failed search ends soon.
        if (counts.in_newest + 1) * 4 > slots.len() * 3 {
            slots = self.open_next();
            counts.in_newest = 0;
        }
        let free = probe(slots, tag, |_| false).expect_err("a predicate that is never true finds no entry");
        let number = make();
        let entry = number.checked_add(1).expect("a slot stores the number + 1, so u32::MAX does not fit");
        // Pairs with the `Acquire` in `probe`: a reader that finds the entry sees all writes before the insert.
        slots[free].store(u64::from(tag) << 32 | u64::from(entry), Ordering::Release);
        counts.all += 1;
        counts.in_newest += 1;
        (number, true)
    }

    /// Entries so far.
    pub fn len(&self) -> usize {
        lock(&self.inserting).all
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn newest(&self) -> &[AtomicU64] {
        let newest = self.newest.load(Ordering::Acquire) as usize;
        self.generations[newest].get_or_init(|| empty_slots(newest))
    }

    /// Publishes the next, empty generation. Only under the lock of `inserting`.
    fn open_next(&self) -> &[AtomicU64] {
        let next = self.newest.load(Ordering::Relaxed) as usize + 1;
        let slots = self.generations[next].get_or_init(|| empty_slots(next));
        self.newest.store(next as u32, Ordering::Release);
        slots
    }
}

impl Default for HashIndex {
    fn default() -> Self {
        HashIndex::new()
    }
}

/// The entry with that tag for which `is_it` is true, else the free slot where the search ended.
#[inline]
fn probe(slots: &[AtomicU64], tag: u32, mut is_it: impl FnMut(u32) -> bool) -> Result<u32, usize> {
    let mask = slots.len() - 1;
    let mut at = tag as usize & mask;
    loop {
        let entry = slots[at].load(Ordering::Acquire);
        if entry == 0 {
            return Err(at);
        }
        if (entry >> 32) as u32 == tag && is_it(entry as u32 - 1) {
            return Ok(entry as u32 - 1);
        }
        // Terminates: a quarter of the slots is free.
        at = (at + 1) & mask;
    }
}

fn empty_slots(generation: usize) -> Box<[AtomicU64]> {
    (0..1_usize << (FIRST_SLOTS_BITS + 2 * generation)).map(|_| AtomicU64::new(0)).collect()
}

/// The hash in 32 bits, the size of a slot's tag.
fn fold(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

/// A writer that panicked left its table unchanged or with one more entry: both are valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        let mut last = (0, usize::MAX);
        for index in 0..100_000 {
            let (bucket, offset) = place(index);
            let next = if bucket == last.0 { last.1.wrapping_add(1) } else { 0 };
            assert!(bucket == last.0 || (bucket == last.0 + 1 && last.1 + 1 == bucket_len(last.0)), "{index}");
            assert!(offset < bucket_len(bucket) && bucket_len(bucket) <= 8 + index / 8, "{index}: few unused entries");
            assert_eq!(offset, next, "{index}");
            last = (bucket, offset);
        }
        assert!(place(u32::MAX as usize).0 < BUCKETS);
    }

    #[test]
    fn entries_stay_and_gaps_are_gaps() {
        let table = Table::new();
        for index in [0, 63, 64, 5_000] {
            assert_eq!(table.get(index), None);
            assert_eq!(*table.get_or_set(index, || index * 2), index * 2);
            assert_eq!(*table.get_or_set(index, || 0), index * 2, "set once");
        }
        assert_eq!(table.get(1), None);
        assert_eq!(table.get(1 << 40), None);

        let list = AppendVec::new();
        for index in 0..1_000 {
            assert_eq!(list.push(index), index);
        }
        assert_eq!((list.len(), list.get(999), list.get(1_000)), (1_000, Some(&999), None));
        assert!(list.iter().copied().eq(0..1_000));
    }

    /// Keys with few different hashes, so that clusters, equal tags and growth all occur.
    #[test]
    fn what_was_inserted_is_found_and_nothing_else() {
        for spread in [1_u64, 7, 1_000, u64::MAX] {
            let hash = |key: u32| u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) % spread;
            let (keys, index) = (AppendVec::new(), HashIndex::new());
            let count = if spread < 100 { 500 } else { 20_000 };
            for key in 0..count {
                let insert = || {
                    index.find_or_insert(hash(key), |n| keys.get(n as usize) == Some(&key), || keys.push(key) as u32)
                };
                assert_eq!(insert(), (key, true));
                assert_eq!(insert(), (key, false));
            }
            for key in 0..count {
                let is_it = |n: u32| keys.get(n as usize) == Some(&key);
                assert_eq!((index.find(hash(key), is_it), index.find_evenly(hash(key), is_it)), (Some(key), Some(key)));
            }
            let is_it = |n: u32| keys.get(n as usize) == Some(&count);
            assert_eq!((index.find(hash(count), is_it), index.find_evenly(hash(count), is_it)), (None, None));
            assert_eq!(index.len(), count as usize);
        }
    }

    #[test]
    fn readers_find_everything_published_before_while_the_index_grows() {
        const COUNT: u32 = 200_000;
        let (keys, index, done) = (AppendVec::<u64>::new(), HashIndex::new(), AtomicBool::new(false));
        let published = AtomicU32::new(0);
        let hash = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let looked_up = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut looked_up = 0_u64;
                while !done.load(Ordering::Acquire) {
                    let known = published.load(Ordering::Acquire);
                    if known == 0 {
                        continue;
                    }
                    let key = u64::from((looked_up * 7_919) as u32 % known);
                    let found = index.find(hash(key), |n| keys.get(n as usize) == Some(&key));
                    assert_eq!(found, Some(key as u32), "published before: {known}");
                    looked_up += 1;
                }
                looked_up
            });
            for key in 0..COUNT {
                index.find_or_insert(hash(u64::from(key)), |_| false, || keys.push(u64::from(key)) as u32);
                published.store(key + 1, Ordering::Release);
            }
            done.store(true, Ordering::Release);
            reader.join().expect("the reader found everything")
        });
        println!("{looked_up} look-ups during {COUNT} inserts");
        assert!(looked_up > 0);
    }
}
