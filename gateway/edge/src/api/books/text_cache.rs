//! A cache of the JSON texts of books: a book that many clients read is written once between two changes. The key of a text
//! is the version of its book and everything else that is shown with it, so a cached text equals the text that would be
//! written.

use engine::amount::TickSize;
use engine::book::LastPrice;
use engine::id::InstrumentId;
use std::cell::RefCell;

/// Texts that a thread caches; a depth of a book shares its entry with those of some other books.
const ENTRIES: usize = 64;
/// Longer texts are not cached: together the others take four megabytes at most, and as much in spare capacity.
const BYTES_MAX: usize = 64 << 10;

/// The cache of one thread.
pub struct TextCache(RefCell<Box<[Option<Text>; ENTRIES]>>);

/// Everything that the text of a book depends on, except what never changes of its market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheKey {
    pub instrument: InstrumentId,
    pub levels_max: Option<usize>,
    /// Of the pair of books.
    pub version: u64,
    pub last: Option<LastPrice>,
    pub tick: TickSize,
    pub stale: bool,
    pub is_strict: bool,
}

struct Text {
    key: CacheKey,
    bytes: Vec<u8>,
}

impl TextCache {
    /// Writes the text of this key to `out`. False when it is not cached.
    pub fn write(&self, out: &mut Vec<u8>, key: &CacheKey) -> bool {
        match &self.0.borrow()[entry_of(key)] {
            Some(text) if text.key == *key => {
                out.extend_from_slice(&text.bytes);
                true
            }
            _ => false,
        }
    }

    /// Caches a text; it replaces the one that has the same entry.
    pub fn insert(&self, key: CacheKey, bytes: &[u8]) {
        if bytes.len() > BYTES_MAX {
            return;
        }
        let entry = &mut self.0.borrow_mut()[entry_of(&key)];
        let mut cached = entry.take().map_or_else(Vec::new, |text| text.bytes);
        cached.clear();
        cached.extend_from_slice(bytes);
        *entry = Some(Text { key, bytes: cached });
    }
}

impl Default for TextCache {
    fn default() -> TextCache {
        TextCache(RefCell::new(Box::new([const { None }; ENTRIES])))
    }
}

/// The depths and dialects of one book have different entries, so that they do not evict each other.
fn entry_of(key: &CacheKey) -> usize {
    let dialect = if key.is_strict { ENTRIES / 2 } else { 0 };
    (key.instrument.0 as usize + key.levels_max.map_or(0, |max| max + 1) + dialect) % ENTRIES
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::amount::{Price, Qty};
    use engine::book::LastTrade;
    use engine::time::Timestamp;

    #[test]
    fn a_text_is_found_by_its_whole_key() {
        let texts = TextCache::default();
        let trade = LastTrade { price: Price(4_100), size: Qty(1), taker_buys: true, at: Timestamp(9) };
        let last = LastPrice { price: trade.price, decimals: None, trade: Some(trade) };
        let first = CacheKey {
            instrument: InstrumentId(3),
            levels_max: None,
            version: 8,
            last: Some(last),
            tick: TickSize(100),
            stale: false,
            is_strict: false,
        };
        let others = [
            CacheKey { instrument: InstrumentId(3 + ENTRIES as u32), ..first },
            CacheKey { levels_max: Some(ENTRIES - 1), ..first },
            CacheKey { version: 10, ..first },
            CacheKey { last: None, ..first },
            CacheKey { last: Some(LastPrice { decimals: Some(3), ..last }), ..first },
            CacheKey { instrument: InstrumentId(3 + ENTRIES as u32 / 2), is_strict: true, ..first },
            CacheKey { tick: TickSize(10), ..first },
            CacheKey { stale: true, ..first },
        ];
        let cached = |key: &CacheKey| {
            let mut out = b"[".to_vec();
            texts.write(&mut out, key).then(|| String::from_utf8(out).expect("UTF-8, as it was inserted"))
        };
        assert_eq!(cached(&first), None);
        for other in others {
            texts.insert(first, b"one");
            assert_eq!((cached(&first).as_deref(), cached(&other)), (Some("[one"), None), "{other:?}");
            texts.insert(other, b"another");
            assert_eq!((cached(&first), cached(&other).as_deref()), (None, Some("[another")), "{other:?}");
        }
        let depths = [None, Some(1), Some(5), Some(20)].map(|levels_max| CacheKey { levels_max, ..first });
        depths.iter().for_each(|depth| texts.insert(*depth, b"one"));
        depths.iter().for_each(|depth| texts.insert(CacheKey { is_strict: true, ..*depth }, b"one"));
        assert!(depths.iter().all(|depth| cached(depth).is_some()), "the texts of a book do not evict each other");
        let long = CacheKey { version: 99, ..first };
        texts.insert(long, &[b'x'; BYTES_MAX + 1]);
        assert_eq!(cached(&long), None, "too long to be cached");
        println!("cached texts: {} cases", others.len() + depths.len() + 1);
    }
}
