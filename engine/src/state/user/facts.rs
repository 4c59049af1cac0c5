//! `Facts`: the newest order facts of a user, so that an interrupted stream can continue (gateway/docs/streams.md
//! §1.6).
//!
//! Each takes four bytes: the object number of an order or fill, and the kind of event. So it stays when its order leaves
//! memory. A user with numbers of more than 29 bits has a fifth byte for each. Numbers of facts are not stored; the newest
//! has the number `User::order_facts`.

use crate::bytes::CodecError;
use crate::mutation::packed::{Packer, put_numbers, take_number, take_small};
use std::collections::VecDeque;

/// Maximum count of facts per user: far more than one step of a sweep or a matching cycle makes, so that a live reader
/// can keep up. They cost little compared with their orders. Fewer in the unit tests, which must drop some.
pub const FACTS_KEPT: usize = if cfg!(test) { 1_024 } else { 65_536 };

/// The kind of event, and the object number of its order or fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// An order was placed, and its placement left nothing resting.
    Placed {
        order: u32,
    },
    /// An order was placed, and rested after its placement.
    Rested {
        order: u32,
    },
    /// A fill at placement.
    Taken {
        fill: u32,
    },
    /// A fill of an order that rested before.
    Matched {
        fill: u32,
    },
    Closed {
        order: u32,
    },
}

/// A stored fact: the number, and the kind in the lowest three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed(u64);

const KIND_BITS: u32 = 3;

impl Packed {
    fn of(fact: Fact) -> Packed {
        let (number, kind) = match fact {
            Fact::Placed { order } => (order, 0),
            Fact::Rested { order } => (order, 1),
            Fact::Taken { fill } => (fill, 2),
            Fact::Matched { fill } => (fill, 3),
            Fact::Closed { order } => (order, 4),
        };
        Packed(u64::from(number) << KIND_BITS | kind)
    }

    /// The first four bytes, and those above them.
    fn parts(self) -> (u32, u8) {
        (self.0 as u32, (self.0 >> u32::BITS) as u8)
    }

    /// `None`: no build wrote this.
    fn get(self) -> Option<Fact> {
        let number = u32::try_from(self.0 >> KIND_BITS).ok()?;
        Some(match self.0 & ((1 << KIND_BITS) - 1) {
            0 => Fact::Placed { order: number },
            1 => Fact::Rested { order: number },
            2 => Fact::Taken { fill: number },
            3 => Fact::Matched { fill: number },
            4 => Fact::Closed { order: number },
            _ => return None,
        })
    }
}

impl Fact {
    /// The object number of its order or fill.
    pub fn number(self) -> u32 {
        let (Fact::Placed { order: number }
        | Fact::Rested { order: number }
        | Fact::Taken { fill: number }
        | Fact::Matched { fill: number }
        | Fact::Closed { order: number }) = self;
        number
    }

    /// The same event with another number.
    pub fn with_number(self, number: u32) -> Fact {
        match self {
            Fact::Placed { .. } => Fact::Placed { order: number },
            Fact::Rested { .. } => Fact::Rested { order: number },
            Fact::Taken { .. } => Fact::Taken { fill: number },
            Fact::Matched { .. } => Fact::Matched { fill: number },
            Fact::Closed { .. } => Fact::Closed { order: number },
        }
    }
}

/// The newest facts, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The first four bytes of each.
    low: VecDeque<u32>,
    /// The byte above them; `None`: it is 0 in all.
    high: Option<Box<High>>,
}

/// As many bytes as facts.
#[derive(Debug, Default)]
struct High(VecDeque<u8>);

impl Facts {
    pub const fn new() -> Facts {
        Facts { low: VecDeque::new(), high: None }
    }

    pub fn len(&self) -> usize {
        self.low.len()
    }

    /// Prefetches the newest, where the next one goes.
    pub fn warm(&self) -> usize {
        self.low.back().map_or(0, |newest| *newest as usize)
    }

    /// Adds the newest; the oldest may be dropped.
    pub fn push(&mut self, fact: Fact) {
        if self.low.len() == FACTS_KEPT {
            self.low.pop_front();
            self.high.iter_mut().for_each(|high| _ = high.0.pop_front());
        }
        self.add(Packed::of(fact));
    }

    /// Drops all but the newest `count`, and the memory that they had.
    pub fn keep_newest(&mut self, count: usize) {
        let dropped = self.low.len().saturating_sub(count);
        self.low.drain(..dropped);
        self.low.shrink_to_fit();
        if let Some(high) = &mut self.high {
            high.0.drain(..dropped);
            high.0.shrink_to_fit();
        }
    }

    #[inline]
    fn add(&mut self, fact: Packed) {
        let (low, above) = fact.parts();
        self.low.push_back(low);
        if self.high.is_some() || above != 0 {
            self.add_above(above);
        }
    }

    #[cold]
    fn add_above(&mut self, above: u8) {
        let before = self.low.len() - 1;
        let high = &mut self.high.get_or_insert_default().0;
        high.resize(before, 0);
        high.push_back(above);
    }

    /// The order that is being placed rests. Its placement is the newest fact, or the one before its fill.
    pub fn rests(&mut self, order: u32) {
        let placed = Packed::of(Fact::Placed { order });
        let newest = (0..self.low.len()).rev().take(2).find(|at| self.packed(*at) == Some(placed));
        if let Some(at) = newest {
            // Kinds differ in the lowest bits alone.
            self.low[at] = Packed::of(Fact::Rested { order }).parts().0;
        }
    }

    pub fn get(&self, index: usize) -> Option<Fact> {
        self.packed(index)?.get()
    }

    #[inline]
    fn packed(&self, index: usize) -> Option<Packed> {
        let low = *self.low.get(index)?;
        let above = self.high.as_ref().map_or(0, |high| high.0[index]);
        Some(Packed(u64::from(above) << u32::BITS | u64::from(low)))
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = Packed> + '_ {
        (0..self.len()).map(|at| self.packed(at).expect("an index below the length"))
    }

    /// Appends the facts in the packed form of a snapshot, with the numbers that `number` returns.
    pub fn pack(&self, number: impl Fn(Fact) -> u32, packer: &mut Packer) {
        let packed = |fact: Packed| {
            let fact = fact.get().expect("only facts are added");
            Packed::of(fact.with_number(number(fact))).0
        };
        put_numbers(self.iter().map(packed), packer);
    }

    /// The facts with other numbers. `None`: an event is unknown, or has none.
    pub fn with_numbers(self, number: impl Fn(Fact) -> Option<u32>) -> Option<Facts> {
        let mut renamed = Facts { low: VecDeque::with_capacity(self.len()), high: None };
        for fact in self.iter() {
            let fact = fact.get()?;
            renamed.add(Packed::of(fact.with_number(number(fact)?)));
        }
        Some(renamed)
    }

    /// Reads what [`Facts::pack`] wrote. Events are verified by [`Facts::with_numbers`].
    pub fn unpack(input: &mut &[u8]) -> Result<Facts, CodecError> {
        let count = take_small::<usize>(input)?;
        if count > FACTS_KEPT.min(input.len()) {
            return Err(CodecError::Length);
        }
        let mut facts = Facts { low: VecDeque::with_capacity(count), high: None };
        for _ in 0..count {
            let packed = take_number(input)?;
            if packed >> (u32::BITS + KIND_BITS) != 0 {
                return Err(CodecError::Variant);
            }
            facts.add(Packed(packed));
        }
        Ok(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_facts_stay() {
        let mut cases = 0;
        for above in [0, 1_u32 << 29] {
            for (count, kept) in [(0, 0), (5, 0), (5, 3), (5, 5), (5, 9), (FACTS_KEPT, 1)] {
                let mut facts = Facts::new();
                (0..count as u32).for_each(|order| facts.push(Fact::Closed { order: above + order }));
                facts.keep_newest(kept);
                let there: Vec<_> = (0..facts.len()).map(|at| facts.get(at).expect("there").number()).collect();
                let expected: Vec<_> = (count.saturating_sub(kept)..count).map(|order| above + order as u32).collect();
                assert_eq!(there, expected, "{kept} of {count}");
                facts.push(Fact::Placed { order: 7 });
                assert_eq!(facts.get(facts.len() - 1), Some(Fact::Placed { order: 7 }));
                cases += 1;
            }
        }
        println!("facts that stay: {cases} cases");
    }

    #[test]
    fn the_newest_are_retained() {
        let mut facts = Facts::new();
        for row in 0..3 * FACTS_KEPT as u32 {
            facts.push(Fact::Placed { order: row });
            facts.push(Fact::Taken { fill: row });
            facts.rests(row);
            assert_eq!(facts.len(), FACTS_KEPT.min(2 * (row as usize + 1)));
            assert_eq!(facts.get(facts.len() - 1), Some(Fact::Taken { fill: row }));
            assert_eq!(facts.get(facts.len() - 2), Some(Fact::Rested { order: row }));
        }
        assert_eq!(facts.get(0), Some(Fact::Rested { order: 2 * FACTS_KEPT as u32 + FACTS_KEPT as u32 / 2 }));
        assert_eq!(facts.get(FACTS_KEPT), None);
    }

    /// The same facts with numbers of all lengths, and others dropped before them.
    #[test]
    fn numbers_of_more_bits_are_kept() {
        let mut cases = 0;
        for dropped in [0, 1, 5, FACTS_KEPT] {
            let (mut facts, mut expected) = (Facts::new(), VecDeque::new());
            let mut push = |fact| {
                facts.push(fact);
                expected.push_back(fact);
            };
            (0..dropped as u32).for_each(|fill| push(Fact::Matched { fill }));
            for number in (0..u32::BITS).flat_map(|bit| [1 << bit, (1_u32 << bit) - 1]).chain([u32::MAX, 0, 7]) {
                push(Fact::Placed { order: number });
                push(Fact::Taken { fill: number });
                push(Fact::Closed { order: number });
            }
            expected.drain(..expected.len().saturating_sub(FACTS_KEPT));
            assert_eq!(facts.len(), expected.len());
            assert!((0..facts.len()).all(|at| facts.get(at) == Some(expected[at])), "{dropped}");
            let mut bytes = Vec::new();
            let mut packer = Packer::onto(&mut bytes);
            facts.pack(Fact::number, &mut packer);
            packer.end();
            let read = Facts::unpack(&mut &bytes[..]).expect("just written");
            assert!((0..facts.len()).all(|at| read.get(at) == Some(expected[at])), "{dropped}");
            let renamed = read.with_numbers(|fact| Some(!fact.number())).expect("each has a number");
            let negated = |fact: Fact| fact.with_number(!fact.number());
            assert!((0..facts.len()).all(|at| renamed.get(at) == Some(negated(expected[at]))), "{dropped}");
            cases += facts.len();
        }
        let mut facts = Facts::new();
        facts.push(Fact::Placed { order: 5 });
        facts.push(Fact::Placed { order: 5 | 1 << 29 });
        facts.rests(5 | 1 << 29);
        assert_eq!(
            [facts.get(0), facts.get(1)],
            [Some(Fact::Placed { order: 5 }), Some(Fact::Rested { order: 5 | 1 << 29 })]
        );
        // A number of 33 bits.
        let beyond = [1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
        assert!(matches!(Facts::unpack(&mut &beyond[..]), Err(CodecError::Variant)));
        println!("numbers of order facts: {} cases", cases + 3);
    }

    #[test]
    fn bytes_are_the_facts_or_an_error() {
        let all = [
            Fact::Placed { order: 0 },
            Fact::Rested { order: 1 },
            Fact::Taken { fill: 2 },
            Fact::Matched { fill: 3 },
            Fact::Closed { order: 4 },
        ];
        let mut facts = Facts::new();
        all.iter().for_each(|fact| facts.push(*fact));
        let mut packed = Vec::new();
        let mut packer = Packer::onto(&mut packed);
        facts.pack(Fact::number, &mut packer);
        packer.end();
        // Golden: the length, then number × 8 + kind.
        assert_eq!(packed, [5, 0, 9, 18, 27, 36]);
        let read = Facts::unpack(&mut &packed[..]).expect("just written");
        assert!((0..all.len()).all(|at| read.get(at) == Some(all[at])));
        // Other numbers, and back again.
        let mut moved = Vec::new();
        let mut packer = Packer::onto(&mut moved);
        facts.pack(|fact| fact.number() + 7, &mut packer);
        packer.end();
        assert_eq!(moved, [5, 56, 65, 74, 83, 92]);
        let back =
            Facts::unpack(&mut &moved[..]).expect("just written").with_numbers(|fact| fact.number().checked_sub(7));
        let back = back.expect("each has a number");
        assert!((0..all.len()).all(|at| back.get(at) == Some(all[at])));
        assert!(back.with_numbers(|fact| fact.number().checked_sub(1)).is_none(), "the first has none");
        let mut unknown = packed.clone();
        unknown[1] = 5;
        let unknown = Facts::unpack(&mut &unknown[..]).expect("decoded before it is checked");
        assert!(unknown.with_numbers(|fact| Some(fact.number())).is_none());
        assert!(matches!(Facts::unpack(&mut &packed[..5]), Err(CodecError::Length)));
        packed[0] = 6;
        assert!(matches!(Facts::unpack(&mut &packed[..]), Err(CodecError::Length)));
    }
}
