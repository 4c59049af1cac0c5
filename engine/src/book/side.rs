//! The levels of one side in a reader's copy of a book.
//!
//! A copy takes no longer than the read of the ladder: slots are kept packed as in the ladder, in groups of eight that
//! have levels, with their bitmaps. A level is unpacked when it is read.

use crate::amount::{Price, Qty};
use crate::book::BookSide;
use crate::book::depth::Level;
use crate::book::ladder::{Ladder, SHELF_SLOTS, unpacked};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Slots that are copied together: the counter of a loop over single slots costs as much as the copy.
const TOGETHER: usize = 8;

/// The levels of one side, best first.
#[derive(Clone)]
pub struct DepthSide {
    side: BookSide,
    /// Slots of the pieces, and leftovers of earlier copies between and after them.
    slots: Vec<u64>,
    pieces: Vec<Piece>,
    levels: usize,
    step: u16,
    generation: u32,
}

/// The copied part of one shelf.
#[derive(Clone, Copy)]
struct Piece {
    /// Bit n: slot n is a level. Never 0.
    bits: u64,
    /// Rank before slot 0, in steps of the grid.
    base: u16,
    /// Index of slot 0 in the copy, or where it would be.
    start: u32,
}

/// The levels of a side from both ends.
#[derive(Clone)]
pub struct Levels<'a> {
    of: &'a DepthSide,
    /// Pieces between the first one and the last one.
    between: std::slice::Iter<'a, Piece>,
    front: Piece,
    back: Piece,
    left: usize,
}

const NOTHING: Piece = Piece { bits: 0, base: 0, start: 0 };

impl DepthSide {
    pub(super) const fn new(side: BookSide) -> DepthSide {
        DepthSide { side, slots: Vec::new(), pieces: Vec::new(), levels: 0, step: 1, generation: 0 }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.levels
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.levels == 0
    }

    /// All levels, best first.
    #[inline]
    pub fn iter(&self) -> Levels<'_> {
        Levels { of: self, between: self.pieces.iter(), front: NOTHING, back: NOTHING, left: self.levels }
    }

    /// The best level.
    #[inline]
    pub fn first(&self) -> Option<Level> {
        self.iter().next()
    }

    /// The size at a price; 0 where there is no level.
    pub fn size_at(&self, price: Price) -> Qty {
        let rank = self.side.rank(price);
        let place = usize::from(rank / self.step);
        let is_there = |piece: &&Piece| {
            let bit = place.wrapping_sub(usize::from(piece.base) + 1);
            rank.is_multiple_of(self.step) && bit < SHELF_SLOTS && piece.bits >> bit & 1 == 1
        };
        let found = self.pieces.iter().find(is_there);
        found.map_or(Qty::ZERO, |piece| self.level(piece, place - usize::from(piece.base) - 1).size)
    }

    #[inline]
    fn level(&self, piece: &Piece, bit: usize) -> Level {
        let slot = self.slots[piece.start.wrapping_add(bit as u32) as usize];
        let (size, stamp) = unpacked(slot, self.generation);
        let rank = (piece.base + bit as u16 + 1).wrapping_mul(self.step);
        Level { price: self.side.price(rank), size, stamp }
    }

    #[inline]
    fn fold_piece<T>(&self, piece: &Piece, start: T, mut add: impl FnMut(T, Level) -> T) -> T {
        let Piece { mut bits, .. } = *piece;
        let mut sum = start;
        while bits != 0 {
            // Adjacent slots need no bit scan, and their prices no multiplication.
            let first = bits.trailing_zeros();
            let run = (!(bits >> first)).trailing_zeros();
            let at = piece.start.wrapping_add(first) as usize;
            let rank = (piece.base + first as u16 + 1).wrapping_mul(self.step);
            let levels = self.slots[at..at + run as usize].iter().zip(0_u16..).map(|(slot, away)| {
                let (size, stamp) = unpacked(*slot, self.generation);
                let rank = rank.wrapping_add(away.wrapping_mul(self.step));
                Level { price: self.side.price(rank), size, stamp }
            });
            sum = levels.fold(sum, &mut add);
            bits &= (u64::MAX << first).checked_shl(run).unwrap_or(0);
        }
        sum
    }

    /// Copies at most `levels_max` levels. Runs inside a read of the book's sequence; after a torn one the content is
    /// meaningless and must not be read.
    #[inline(always)]
    pub(super) fn refill(&mut self, ladder: &Ladder, levels_max: usize) {
        let DepthSide { slots, pieces, .. } = self;
        pieces.clear();
        let (mut end, mut left) = (0, levels_max);
        (self.step, self.generation) = ladder.shelves_in_use(|base, bits, shelf| {
            let (bits, count) = lowest(bits, left);
            if bits == 0 {
                return false;
            }
            left -= count;
            let first = bits.trailing_zeros() as usize / TOGETHER;
            let last = (u64::BITS - 1 - bits.leading_zeros()) as usize / TOGETHER;
            let room = room(slots, end);
            let (from, _) = shelf.as_chunks::<TOGETHER>();
            let (to, _) = room.as_chunks_mut::<TOGETHER>();
            for (to, from) in to.iter_mut().zip(&from[first..=last]) {
                copy(to, from);
            }
            pieces.push(Piece { bits, base, start: (end as u32).wrapping_sub((first * TOGETHER) as u32) });
            end += (last + 1 - first) * TOGETHER;
            left > 0
        });
        self.levels = levels_max - left;
    }
}

/// The space of one shelf from `end` on.
#[inline(always)]
fn room(slots: &mut Vec<u64>, end: usize) -> &mut [u64; SHELF_SLOTS] {
    if slots.len() < end + SHELF_SLOTS {
        grow(slots, end + SHELF_SLOTS);
    }
    (&mut slots[end..end + SHELF_SLOTS]).try_into().expect("as long as a shelf")
}

#[cold]
fn grow(slots: &mut Vec<u64>, length: usize) {
    slots.resize(length, 0);
}

#[inline(always)]
fn copy(to: &mut [u64; TOGETHER], from: &[AtomicU64; TOGETHER]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.load(Relaxed);
    }
}

/// The lowest `most` of these bits, and their count.
#[inline(always)]
fn lowest(bits: u64, most: usize) -> (u64, usize) {
    let first = bits.trailing_zeros();
    let run = (!(bits >> (first % 64))).trailing_zeros() as usize;
    if run >= most {
        // Adjacent bits, as near the best price of most books.
        let beyond = (u64::MAX << (first % 64)).checked_shl(most as u32).unwrap_or(0);
        return (bits & !beyond, most);
    }
    let count = bits.count_ones() as usize;
    if count <= most {
        return (bits, count);
    }
    let beyond = (0..most).fold(bits, |bits, _| bits & bits.wrapping_sub(1));
    (bits & !beyond, most)
}

impl Iterator for Levels<'_> {
    type Item = Level;

    #[inline]
    fn next(&mut self) -> Option<Level> {
        if self.front.bits == 0 {
            match self.between.next() {
                Some(piece) => self.front = *piece,
                // The rest is in the last one.
                None => std::mem::swap(&mut self.front, &mut self.back),
            }
        }
        let bits = self.front.bits;
        if bits == 0 {
            return None;
        }
        self.front.bits = bits & (bits - 1);
        self.left -= 1;
        Some(self.of.level(&self.front, bits.trailing_zeros() as usize))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }

    #[inline]
    fn fold<T, F: FnMut(T, Level) -> T>(self, start: T, mut add: F) -> T {
        let Levels { of, between, front, back, .. } = self;
        let all = std::iter::once(&front).chain(between).chain(std::iter::once(&back));
        all.fold(start, |sum, piece| of.fold_piece(piece, sum, &mut add))
    }
}

impl DoubleEndedIterator for Levels<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Level> {
        if self.back.bits == 0 {
            match self.between.next_back() {
                Some(piece) => self.back = *piece,
                None => std::mem::swap(&mut self.front, &mut self.back),
            }
        }
        let bits = self.back.bits;
        if bits == 0 {
            return None;
        }
        let bit = (u64::BITS - 1 - bits.leading_zeros()) as usize;
        self.back.bits = bits & !(1 << bit);
        self.left -= 1;
        Some(self.of.level(&self.back, bit))
    }
}

impl ExactSizeIterator for Levels<'_> {}

impl<'a> IntoIterator for &'a DepthSide {
    type Item = Level;
    type IntoIter = Levels<'a>;

    fn into_iter(self) -> Levels<'a> {
        self.iter()
    }
}

impl PartialEq for DepthSide {
    fn eq(&self, other: &DepthSide) -> bool {
        self.iter().eq(other)
    }
}

impl Eq for DepthSide {}

impl std::fmt::Debug for DepthSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::TickSize;
    use crate::book::chance::Chance;

    /// One copy is refilled from ladders of every grid, sparse and full.
    #[test]
    fn a_copy_is_the_best_levels_from_both_ends() {
        let (seed, mut compared) = (11, 0_u64);
        println!("seed {seed}");
        let mut chance = Chance::new(seed);
        for side in BookSide::BOTH {
            let mut copy = DepthSide::new(side);
            for round in 0..300 {
                let unit = [100, 10, 1][round % 3];
                let (most, every) = (9_999 / unit, 1 + chance.below(40));
                let ladder = Ladder::new();
                let ranks = (1..=most).filter(|_| chance.one_in(every)).collect::<Vec<_>>();
                let levels = ranks.iter().map(|rank| ((rank * unit) as u16, Qty(1 + rank % 97)));
                ladder.replace(TickSize(unit as u16), levels);
                for most in [0, 1, 7, 8, 63, 64, 65, 500, usize::MAX] {
                    let slots = ladder.levels().take(most);
                    let expected: Vec<Level> = slots
                        .map(|slot| Level { price: side.price(slot.rank), size: slot.size, stamp: slot.stamp })
                        .collect();
                    copy.refill(&ladder, most);
                    assert_eq!((copy.len(), copy.is_empty()), (expected.len(), expected.is_empty()));
                    assert!(copy.iter().eq(expected.iter().copied()), "{copy:?} for {expected:?}");
                    assert!(copy.iter().rev().eq(expected.iter().rev().copied()));
                    let mut folded = Vec::new();
                    copy.iter().for_each(|level| folded.push(level));
                    assert_eq!(folded, expected);
                    assert_eq!(copy.first(), expected.first().copied());
                    compared += expected.len() as u64;
                    let (mut both, mut left) = (copy.iter(), expected.as_slice());
                    while let [first, rest @ ..] = left {
                        left = rest;
                        assert_eq!((both.len(), both.next()), (rest.len() + 1, Some(*first)));
                        let [rest @ .., last] = left else { break };
                        left = rest;
                        assert_eq!(both.next_back(), Some(*last));
                    }
                    assert_eq!((both.next(), both.next_back()), (None, None));
                }
                for _ in 0..50 {
                    let known =
                        ranks.get(chance.below(1 + ranks.len() as u64) as usize).map(|rank| (rank * unit) as u16);
                    let rank = known.unwrap_or_else(|| 1 + chance.below(9_999) as u16);
                    let there = ladder.levels().find(|slot| slot.rank == rank).map_or(Qty::ZERO, |slot| slot.size);
                    assert_eq!(copy.size_at(side.price(rank)), there, "rank {rank}");
                }
            }
        }
        println!("{compared} levels compared");
    }
}
