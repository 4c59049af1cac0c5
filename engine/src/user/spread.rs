//! `Spread`: the newest row under a hash, in pages of bounded size. A full page is split in two and nothing else moves, so
//! noting a row costs a short move whatever the size.
//!
//! A table that doubles moves everything at once, into memory that nobody has touched yet. Users who traded alike did that
//! within a few orders of each other, and all orders behind them waited for a tenth of a second.
//!
//! ```text
//!   places  00 01 10 11        by the first bits of a key, as many as the deepest page looks at
//!            │  │  └─┬┘
//!   pages    a  b    c         c looks at one bit; when it is full, its rows go by the second, and `places` stays
//! ```

use ahash::RandomState;

/// Slots of a page, as powers of two: of the first one when it is new, and of any when it is split instead of made larger.
const FIRST_BITS: u32 = 2;
const FULL_BITS: u32 = 6;
/// At most so many of four slots are taken, so that a search ends soon.
const TAKEN_OF_FOUR: usize = 3;

/// Rows by the hashes of texts. Texts that share one share an entry: what it says is a row with this text, or with another.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    hasher: RandomState,
    /// Pages by the first `bits` bits of a key; empty while there is one page.
    places: Vec<u32>,
    bits: u32,
    pages: Vec<Page>,
}

/// Slots by the last bits of a key, open addressing.
#[derive(Debug)]
struct Page {
    /// The first bits of a key that all of this page share.
    bits: u32,
    taken: u32,
    /// Key and row + 1; 0 is free.
    slots: Box<[u64]>,
}

impl Spread {
    /// The key of a text.
    #[inline]
    pub fn key(&self, text: &str) -> u32 {
        self.hasher.hash_one(text) as u32
    }

    /// The row that was noted last under this key.
    #[inline]
    pub fn get(&self, key: u32) -> Option<u32> {
        let page = self.pages.get(self.page_of(key))?;
        let entry = page.slots[page.slot_of(key)];
        (entry as u32).checked_sub(1)
    }

    /// Notes a row; says which one was there.
    ///
    /// # Panics
    /// When the row is `u32::MAX`.
    pub fn insert(&mut self, key: u32, row: u32) -> Option<u32> {
        let entry = u64::from(key) << 32 | u64::from(row.checked_add(1).expect("rows are counted by object numbers"));
        if self.pages.is_empty() {
            self.pages.push(Page::new(0, FIRST_BITS));
        }
        loop {
            let at = self.page_of(key);
            let page = &mut self.pages[at];
            let slot = page.slot_of(key);
            if page.slots[slot] != 0 {
                return (std::mem::replace(&mut page.slots[slot], entry) as u32).checked_sub(1);
            }
            if page.has_room() {
                page.slots[slot] = entry;
                page.taken += 1;
                return None;
            }
            self.make_room(at, key);
        }
    }

    #[inline]
    fn page_of(&self, key: u32) -> usize {
        // Of one page there are no places.
        match self.bits {
            0 => 0,
            bits => self.places[(key >> (u32::BITS - bits)) as usize] as usize,
        }
    }

    /// Makes the page where `key` goes larger, or two of it.
    #[cold]
    fn make_room(&mut self, at: usize, key: u32) {
        let (bits, slots_bits) = (self.pages[at].bits, self.pages[at].slots.len().ilog2());
        if slots_bits < FULL_BITS {
            let mut larger = Page::new(bits, slots_bits + 1);
            self.pages[at].entries().for_each(|entry| larger.put(entry));
            self.pages[at] = larger;
            return;
        }
        let mut entries = [0; 1 << FULL_BITS];
        entries.copy_from_slice(&self.pages[at].slots);
        let (lower, mut upper) = (&mut self.pages[at], Page::new(bits + 1, FULL_BITS));
        lower.slots.fill(0);
        (lower.bits, lower.taken) = (bits + 1, 0);
        for entry in entries.into_iter().filter(|entry| *entry != 0) {
            // A page that looks at all bits has one key, so none that is full does.
            let half = if key_of(entry) << bits >> (u32::BITS - 1) == 0 { &mut *lower } else { &mut upper };
            half.put(entry);
        }
        if bits == self.bits {
            self.places = match bits {
                0 => vec![0; 2],
                _ => self.places.iter().flat_map(|page| [*page; 2]).collect(),
            };
            self.bits += 1;
        }
        let new = u32::try_from(self.pages.len()).expect("there are fewer pages than keys");
        // The places of a page stand side by side; the upper half of them is the new one's.
        let stand = 1_usize << (self.bits - bits);
        let first = (key >> (u32::BITS - self.bits)) as usize / stand * stand;
        self.places[first + stand / 2..first + stand].fill(new);
        self.pages.push(upper);
    }
}

impl Page {
    fn new(bits: u32, slots_bits: u32) -> Page {
        Page { bits, taken: 0, slots: vec![0; 1 << slots_bits].into() }
    }

    /// Where the key is, or the free slot where it would go.
    #[inline]
    fn slot_of(&self, key: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key as usize & mask;
        // Ends: a quarter of the slots is free.
        while self.slots[at] != 0 && key_of(self.slots[at]) != key {
            at = (at + 1) & mask;
        }
        at
    }

    fn has_room(&self) -> bool {
        (self.taken as usize + 1) * 4 <= self.slots.len() * TAKEN_OF_FOUR
    }

    /// Adds an entry whose key is not there.
    fn put(&mut self, entry: u64) {
        let at = self.slot_of(key_of(entry));
        self.slots[at] = entry;
        self.taken += 1;
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
    fn it_agrees_with_a_table() {
        // Keys that differ in their first bits, in their last bits, in all, and such that come again.
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
            let (mut spread, mut table) = (Spread::default(), HashMap::new());
            for row in 0..count {
                let key = key(row);
                assert_eq!(spread.get(key), table.get(&key).copied(), "{name}: {row}");
                assert_eq!(spread.insert(key, row), table.insert(key, row), "{name}: {row}");
                assert_eq!(spread.get(key), Some(row), "{name}: {row}");
            }
            for key in (0..2 * count).map(key) {
                assert_eq!(spread.get(key), table.get(&key).copied(), "{name}");
            }
            let taken: usize = spread.pages.iter().map(|page| page.entries().count()).sum();
            assert_eq!(taken, table.len(), "{name}: each key once");
        }
        println!("entries: {} kinds of {count}", kinds.len());
    }

    /// What one insert moves and makes is bounded, however many there are: a page, and places of it.
    #[test]
    fn nothing_grows_as_a_whole() {
        let mut spread = Spread::default();
        let (count, mut slots_before, mut most) = (100_000, 0, 0);
        for row in 0..count {
            spread.insert(spread.key(&row.to_string()), row);
            let slots: usize = spread.pages.iter().map(|page| page.slots.len()).sum();
            most = most.max(slots - slots_before);
            slots_before = slots;
        }
        assert_eq!(most, 1 << FULL_BITS, "one more page at most");
        let bytes = slots_before * 8 + spread.places.len() * 4;
        assert!(bytes < 20 * count as usize, "{bytes} bytes for {count} entries");
        assert!(spread.places.len() < count as usize / 2, "{} places", spread.places.len());
        println!("entries: {count} in {} pages, {} places, {bytes} bytes", spread.pages.len(), spread.places.len());
    }
}
