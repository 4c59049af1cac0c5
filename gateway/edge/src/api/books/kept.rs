//! Texts of books, kept until something in them changes: books that many ask for are written once for all who ask
//! between two changes. A text belongs to one version of its book and to all that is shown beside it, so it is never
//! older than what it would be written as.

use engine::amount::TickSize;
use engine::book::LastPrice;
use engine::id::InstrumentId;
use std::cell::RefCell;

/// Texts that a thread keeps; a depth of a book shares its place with those of some other books.
const PLACES: usize = 64;
/// Longer ones are not kept: together they take four megabytes at most, and as much in room to spare.
const BYTES_MAX: usize = 64 << 10;

/// The texts of one thread.
pub struct Texts(RefCell<Box<[Option<Text>; PLACES]>>);

/// All that the text of a book depends on, beside what of its market never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeOf {
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
    made_of: MadeOf,
    bytes: Vec<u8>,
}

impl Texts {
    /// Writes the text that was made of the same, if there is one.
    pub fn write(&self, out: &mut Vec<u8>, made_of: &MadeOf) -> bool {
        match &self.0.borrow()[place(made_of)] {
            Some(text) if text.made_of == *made_of => {
                out.extend_from_slice(&text.bytes);
                true
            }
            _ => false,
        }
    }

    /// Keeps a text in place of the one that was there.
    pub fn keep(&self, made_of: MadeOf, bytes: &[u8]) {
        if bytes.len() > BYTES_MAX {
            return;
        }
        let place = &mut self.0.borrow_mut()[place(&made_of)];
        let mut kept = place.take().map_or_else(Vec::new, |text| text.bytes);
        kept.clear();
        kept.extend_from_slice(bytes);
        *place = Some(Text { made_of, bytes: kept });
    }
}

impl Default for Texts {
    fn default() -> Texts {
        Texts(RefCell::new(Box::new([const { None }; PLACES])))
    }
}

/// A book's depths and dialects lie apart, so that a question for one does not throw out another's text.
fn place(made_of: &MadeOf) -> usize {
    let dialect = if made_of.is_strict { PLACES / 2 } else { 0 };
    (made_of.instrument.0 as usize + made_of.levels_max.map_or(0, |max| max + 1) + dialect) % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::amount::{Price, Qty};
    use engine::book::LastTrade;
    use engine::time::Timestamp;

    #[test]
    fn a_text_is_found_by_all_that_it_is_made_of() {
        let texts = Texts::default();
        let trade = LastTrade { price: Price(4_100), size: Qty(1), taker_buys: true, at: Timestamp(9) };
        let last = LastPrice { price: trade.price, decimals: None, trade: Some(trade) };
        let first = MadeOf {
            instrument: InstrumentId(3),
            levels_max: None,
            version: 8,
            last: Some(last),
            tick: TickSize(100),
            stale: false,
            is_strict: false,
        };
        let others = [
            MadeOf { instrument: InstrumentId(3 + PLACES as u32), ..first },
            MadeOf { levels_max: Some(PLACES - 1), ..first },
            MadeOf { version: 10, ..first },
            MadeOf { last: None, ..first },
            MadeOf { last: Some(LastPrice { decimals: Some(3), ..last }), ..first },
            MadeOf { instrument: InstrumentId(3 + PLACES as u32 / 2), is_strict: true, ..first },
            MadeOf { tick: TickSize(10), ..first },
            MadeOf { stale: true, ..first },
        ];
        let kept = |made_of: &MadeOf| {
            let mut out = b"[".to_vec();
            texts.write(&mut out, made_of).then(|| String::from_utf8(out).expect("as it was kept"))
        };
        assert_eq!(kept(&first), None);
        for other in others {
            texts.keep(first, b"one");
            assert_eq!((kept(&first).as_deref(), kept(&other)), (Some("[one"), None), "{other:?}");
            texts.keep(other, b"another");
            assert_eq!((kept(&first), kept(&other).as_deref()), (None, Some("[another")), "{other:?}");
        }
        let depths = [None, Some(1), Some(5), Some(20)].map(|levels_max| MadeOf { levels_max, ..first });
        depths.iter().for_each(|depth| texts.keep(*depth, b"one"));
        depths.iter().for_each(|depth| texts.keep(MadeOf { is_strict: true, ..*depth }, b"one"));
        assert!(depths.iter().all(|depth| kept(depth).is_some()), "the texts of a book lie beside each other");
        let long = MadeOf { version: 99, ..first };
        texts.keep(long, &[b'x'; BYTES_MAX + 1]);
        assert_eq!(kept(&long), None, "too long to be kept");
        println!("kept texts: {} cases", others.len() + depths.len() + 1);
    }
}
