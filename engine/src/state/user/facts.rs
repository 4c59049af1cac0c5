//! `Facts`: the newest order facts of a user, so that an interrupted stream can continue (gateway/docs/streams.md
//! §1.6).
//!
//! Each takes four bytes: the object number of an order or fill, and the kind of event. So it stays when its order leaves
//! memory. Numbers of facts are not stored; the newest has the number `User::order_facts`.

use crate::bytes::CodecError;
use crate::mutation::packed::{Packer, put_numbers, take_small};
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
struct Packed(u32);

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
        assert!(number < 1 << (u32::BITS - KIND_BITS), "object numbers have 28 bits: {number}");
        Packed(number << KIND_BITS | kind)
    }

    /// `None`: no build wrote this.
    fn get(self) -> Option<Fact> {
        let number = self.0 >> KIND_BITS;
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
pub(crate) struct Facts(VecDeque<Packed>);

impl Facts {
    pub const fn new() -> Facts {
        Facts(VecDeque::new())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Prefetches the newest, where the next one goes.
    pub fn warm(&self) -> usize {
        self.0.back().map_or(0, |newest| newest.0 as usize)
    }

    /// Adds the newest; the oldest may be dropped.
    pub fn push(&mut self, fact: Fact) {
        if self.0.len() == FACTS_KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Packed::of(fact));
    }

    /// The order that is being placed rests. Its placement is the newest fact, or the one before its fill.
    pub fn rests(&mut self, order: u32) {
        let placed = Packed::of(Fact::Placed { order });
        if let Some(newest) = self.0.iter_mut().rev().take(2).find(|fact| **fact == placed) {
            *newest = Packed::of(Fact::Rested { order });
        }
    }

    pub fn get(&self, index: usize) -> Option<Fact> {
        self.0.get(index)?.get()
    }

    /// Appends the facts in the packed form of a snapshot, with the numbers that `number` returns.
    pub fn pack(&self, number: impl Fn(Fact) -> u32, packer: &mut Packer) {
        let packed = |fact: &Packed| {
            let fact = fact.get().expect("only facts are added");
            Packed::of(fact.with_number(number(fact))).0.into()
        };
        put_numbers(self.0.iter().map(packed), packer);
    }

    /// The facts with other numbers. `None`: an event is unknown, or has none.
    pub fn with_numbers(self, number: impl Fn(Fact) -> Option<u32>) -> Option<Facts> {
        let renamed = |fact: Packed| {
            let fact = fact.get()?;
            Some(Packed::of(fact.with_number(number(fact)?)))
        };
        self.0.into_iter().map(renamed).collect::<Option<_>>().map(Facts)
    }

    /// Reads what [`Facts::pack`] wrote. Events are verified by [`Facts::with_numbers`].
    pub fn unpack(input: &mut &[u8]) -> Result<Facts, CodecError> {
        let count = take_small::<usize>(input)?;
        if count > FACTS_KEPT.min(input.len()) {
            return Err(CodecError::Length);
        }
        (0..count).map(|_| take_small(input).map(Packed)).collect::<Result<_, _>>().map(Facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
