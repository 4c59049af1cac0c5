//! One side of one book: a size for every price step, best first.
//!
//! A level is found by its *rank*, the distance from the side's best possible price ([`BookSide::rank`]), so asks and
//! bids share all code. A slot packs the size of a level with a stamp that changes with every change of that level:
//!
//! ```text
//! 63      48 47                                   0        shelf = 64 neighbouring slots + a bitmap of those in use
//! │ stamp  │ size in 10⁻⁶ shares                  │        summary = a bitmap of the shelves in use
//! ```
//!
//! The next level is found by two or three bit scans, at any distance, and a 0.0001 grid takes memory only where levels
//! have been. There are three grids (steps 0.01, 0.001, 0.0001), allocated on demand; a tick uses the coarsest step
//! that contains it. The ladder changes to a finer grid when the tick or a level needs it, and to a coarser one only by
//! a snapshot that fits. The unused grids are empty.
//!
//! All reads and writes are `Relaxed`: a ladder is accessed only inside its book's [`Sequence`], whose file describes
//! the orderings. A torn state can be any mix of old and new values; the readers here terminate on every mix.
//!
//! [`BookSide::rank`]: crate::book::BookSide::rank
//! [`Sequence`]: crate::book::sequence::Sequence

use crate::amount::{Qty, TickSize};
use crate::book::{Part, Stamp};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Steps of the three grids in 10⁻⁴ USD, coarsest first.
const STEPS: [u16; 3] = [100, 10, 1];
/// Slots of a shelf: the bits of its bitmap.
pub(super) const SHELF_SLOTS: usize = 64;
/// Words of the summary: enough for the 157 shelves of the finest grid.
const SUMMARY_WORDS: usize = 3;
/// Bits of a slot that hold the size.
const SIZE_BITS: u32 = 48;
/// Largest size of a level in 10⁻⁶ shares: 281 million shares. Larger ones are clamped.
pub const SIZE_MAX: u64 = (1 << SIZE_BITS) - 1;
/// Ranks of levels are in 1..=this.
pub const RANK_MAX: u16 = 9_999;

/// Sixty-four neighbouring slots.
struct Shelf {
    /// Bit n: slot n has a size.
    occupied: AtomicU64,
    slots: OnceLock<Box<[AtomicU64; SHELF_SLOTS]>>,
}

/// One side of one book. It has one writer, which writes only inside the book's sequence.
#[derive(Default)]
pub struct Ladder {
    /// Index into [`STEPS`] and `grids`.
    grid: AtomicU8,
    /// Number of snapshots, in the upper half of every stamp.
    generation: AtomicU32,
    /// Bit n of all words together: shelf n of the grid in use has an occupied slot.
    summary: [AtomicU64; SUMMARY_WORDS],
    grids: [OnceLock<Box<[Shelf]>>; STEPS.len()],
}

/// A level in the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub rank: u16,
    pub size: Qty,
    pub stamp: Stamp,
}

/// Size and stamp of a slot.
#[inline]
pub(super) fn unpacked(slot: u64, generation: u32) -> (Qty, Stamp) {
    (Qty(slot & SIZE_MAX), Stamp(generation << 16 | (slot >> SIZE_BITS) as u32))
}

impl Slot {
    #[inline]
    fn unpack(rank: u16, slot: u64, generation: u32) -> Slot {
        let (size, stamp) = unpacked(slot, generation);
        Slot { rank, size, stamp }
    }
}

/// The levels of a ladder, best first, for use inside one read of the book's sequence.
pub struct Levels<'a> {
    shelves: &'a [Shelf],
    summary: &'a [AtomicU64; SUMMARY_WORDS],
    step: u16,
    generation: u32,
    /// Current summary word and its remaining bits.
    word: usize,
    shelf_bits: u64,
    /// Rank before the current shelf's first slot, its slots, and its remaining bits.
    base: u16,
    slots: Option<&'a [AtomicU64; SHELF_SLOTS]>,
    slot_bits: u64,
}

/// Index of the coarsest grid that contains all multiples of `unit`.
fn grid_for(unit: u16) -> usize {
    STEPS.iter().position(|step| unit.is_multiple_of(*step)).expect("every unit is a multiple of 1")
}

/// Index of the coarsest grid that contains every price of this tick.
fn grid_of_tick(tick: TickSize) -> usize {
    // Ranks of bids count from 1.00, so the grid must contain the tick's prices and their complements.
    if 10_000_u16.checked_rem(tick.0) == Some(0) { grid_for(tick.0) } else { STEPS.len() - 1 }
}

fn shelves_of(grid: usize) -> Box<[Shelf]> {
    let slots = usize::from(10_000 / STEPS[grid]) - 1;
    (0..slots.div_ceil(SHELF_SLOTS)).map(|_| Shelf { occupied: AtomicU64::new(0), slots: OnceLock::new() }).collect()
}

impl Shelf {
    fn slots(&self) -> &[AtomicU64; SHELF_SLOTS] {
        self.slots.get_or_init(|| Box::new(std::array::from_fn(|_| AtomicU64::new(0))))
    }
}

// The writer's half.
impl Ladder {
    pub fn new() -> Ladder {
        Ladder::default()
    }

    /// Gives every price of `tick` a slot; never makes the grid coarser.
    pub fn fit_tick(&self, tick: TickSize) {
        self.refine(grid_of_tick(tick));
    }

    /// Sets one level to an absolute size, 0 = removed. Returns whether the size was clamped to [`SIZE_MAX`].
    ///
    /// # Panics
    /// When `rank` is not in 1..=9 999.
    pub fn set(&self, rank: u16, size: Qty) -> bool {
        assert!((1..=RANK_MAX).contains(&rank), "ranks are in 1..=9999, got {rank}");
        if size.is_zero() && !rank.is_multiple_of(STEPS[usize::from(self.grid.load(Relaxed))]) {
            return false;
        }
        let finest = grid_for(rank);
        if finest > usize::from(self.grid.load(Relaxed)) {
            self.refine(finest);
        }
        let grid = usize::from(self.grid.load(Relaxed));
        let shelves = self.shelves(grid);
        let index = usize::from(rank / STEPS[grid]) - 1;
        let (number, bit) = (index / SHELF_SLOTS, index % SHELF_SLOTS);
        let shelf = &shelves[number];
        if size.is_zero() && shelf.slots.get().is_none() {
            return false;
        }
        let slot = &shelf.slots()[bit];
        let stamp = ((slot.load(Relaxed) >> SIZE_BITS) as u16).wrapping_add(1);
        if stamp == 0 {
            // The level's stamps start over: a new generation keeps them different from all earlier ones.
            self.generation.store(self.generation.load(Relaxed).wrapping_add(1), Relaxed);
        }
        let clamped = size.0.min(SIZE_MAX);
        slot.store(u64::from(stamp) << SIZE_BITS | clamped, Relaxed);
        self.mark(shelf, number, bit, clamped != 0);
        clamped != size.0
    }

    /// Replaces all levels (rank, size) by a snapshot; every stamp of the side changes. Of two levels of the same rank
    /// the later one is used. The grid becomes the coarsest that contains the tick and all levels. Returns the count of
    /// sizes clamped to [`SIZE_MAX`].
    pub fn replace(&self, tick: TickSize, levels: impl Iterator<Item = (u16, Qty)> + Clone) -> u32 {
        self.clear();
        self.generation.store(self.generation.load(Relaxed).wrapping_add(1), Relaxed);
        let grid = levels.clone().map(|(rank, _)| grid_for(rank)).fold(grid_of_tick(tick), usize::max);
        self.grid.store(grid as u8, Relaxed);
        levels.map(|(rank, size)| u32::from(self.set(rank, size))).sum()
    }

    /// Removes all levels. Stamps stay, so that a level that returns has a new one.
    fn clear(&self) {
        let Some(shelves) = self.grids[usize::from(self.grid.load(Relaxed))].get() else { return };
        for shelf in shelves.iter() {
            let mut bits = shelf.occupied.load(Relaxed);
            while bits != 0 {
                let slot = &shelf.slots()[bits.trailing_zeros() as usize];
                slot.store(slot.load(Relaxed) & !SIZE_MAX, Relaxed);
                bits &= bits - 1;
            }
            shelf.occupied.store(0, Relaxed);
        }
        self.summary.iter().for_each(|word| word.store(0, Relaxed));
    }

    /// Changes to grid `to` if it is finer. All stamps move along, also those of empty slots: a level that returns must
    /// not get a stamp that it had on either grid.
    fn refine(&self, to: usize) {
        let from = usize::from(self.grid.load(Relaxed));
        if to <= from {
            return;
        }
        let moved: Vec<(usize, u64)> = self.grids[from].get().map_or(Vec::new(), |shelves| {
            let ratio = usize::from(STEPS[from] / STEPS[to]);
            let slots = shelves.iter().enumerate().filter_map(|(number, shelf)| Some((number, shelf.slots.get()?)));
            slots
                .flat_map(|(number, slots)| {
                    slots.iter().enumerate().map(move |(bit, slot)| {
                        let index = number * SHELF_SLOTS + bit;
                        ((index + 1) * ratio - 1, slot.load(Relaxed))
                    })
                })
                .filter(|(_, slot)| *slot != 0)
                .collect()
        });
        self.clear();
        self.grid.store(to as u8, Relaxed);
        let shelves = self.shelves(to);
        for (index, slot) in moved {
            let (number, bit) = (index / SHELF_SLOTS, index % SHELF_SLOTS);
            shelves[number].slots()[bit].store(slot, Relaxed);
            self.mark(&shelves[number], number, bit, slot & SIZE_MAX != 0);
        }
    }

    fn shelves(&self, grid: usize) -> &[Shelf] {
        self.grids[grid].get_or_init(|| shelves_of(grid))
    }

    /// Sets or clears a slot's bit in both bitmaps.
    fn mark(&self, shelf: &Shelf, number: usize, bit: usize, occupied: bool) {
        let bits = with_bit(shelf.occupied.load(Relaxed), bit, occupied);
        shelf.occupied.store(bits, Relaxed);
        let word = &self.summary[number / 64];
        word.store(with_bit(word.load(Relaxed), number % 64, bits != 0), Relaxed);
    }
}

fn with_bit(bits: u64, bit: usize, on: bool) -> u64 {
    if on { bits | 1 << bit } else { bits & !(1 << bit) }
}

// The reader's half.
impl Ladder {
    /// The levels, best first.
    #[inline(always)]
    pub fn levels(&self) -> Levels<'_> {
        // A torn read can find the number of a grid before the grid; it is empty then, and the version shows the tear.
        let grid = usize::from(self.grid.load(Relaxed)).min(STEPS.len() - 1);
        Levels {
            shelves: self.grids[grid].get().map_or(&[], |shelves| shelves),
            summary: &self.summary,
            step: STEPS[grid],
            generation: self.generation.load(Relaxed),
            word: 0,
            shelf_bits: self.summary[0].load(Relaxed),
            base: 0,
            slots: None,
            slot_bits: 0,
        }
    }

    /// Appends `make` of each of the best `levels_max` levels, best first: a faster [`Ladder::levels`].
    #[inline]
    pub fn copy<T>(&self, levels_max: usize, out: &mut Vec<T>, make: impl Fn(Slot) -> T) {
        let (mut levels, mut left) = (self.levels(), levels_max);
        let (step, generation) = (levels.step, levels.generation);
        while left > 0 && levels.next_shelf() {
            let Some(slots) = levels.slots else { continue };
            let (mut bits, base) = (levels.slot_bits, levels.base);
            let first = bits.trailing_zeros() as usize;
            let run = (!(bits >> first)).trailing_zeros() as usize;
            let count;
            // Iterators of known length append without a capacity check per level.
            if run >= left || bits >> first >> (run - 1) == 1 {
                // Adjacent slots, as near the best price of most books: no bit scan needed.
                count = run.min(left);
                let mut rank = (base + first as u16).wrapping_mul(step);
                out.extend(slots[first..first + count].iter().map(|slot| {
                    rank = rank.wrapping_add(step);
                    make(Slot::unpack(rank, slot.load(Relaxed), generation))
                }));
            } else {
                count = left.min(bits.count_ones() as usize);
                out.extend((0..count).map(|_| {
                    let bit = bits.trailing_zeros() as usize % SHELF_SLOTS;
                    bits &= bits.wrapping_sub(1);
                    let rank = (base + bit as u16 + 1).wrapping_mul(step);
                    make(Slot::unpack(rank, slots[bit].load(Relaxed), generation))
                }));
            }
            left -= count;
        }
    }

    /// Passes the shelves that have levels to `each`, best first, while it returns true: the rank before the first slot
    /// in steps of the grid, a bitmap of the slots in use (never 0), and the slots. Returns the step and generation of
    /// all of them.
    #[inline(always)]
    pub fn shelves_in_use(&self, mut each: impl FnMut(u16, u64, &[AtomicU64; SHELF_SLOTS]) -> bool) -> (u16, u32) {
        let mut levels = self.levels();
        while levels.next_shelf() {
            if let Some(slots) = levels.slots
                && !each(levels.base, levels.slot_bits, slots)
            {
                break;
            }
        }
        (levels.step, levels.generation)
    }

    /// Size and stamp at a rank; a rank without a slot has no size and the stamp of its side's snapshot.
    pub fn part(&self, rank: u16) -> Part {
        let levels = self.levels();
        let place = usize::from(rank / levels.step);
        let shelf = place.checked_sub(1).filter(|_| rank.is_multiple_of(levels.step));
        let slots = shelf.and_then(|index| Some((levels.shelves.get(index / SHELF_SLOTS)?.slots.get()?, index)));
        let slot = slots.map_or(0, |(slots, index)| slots[index % SHELF_SLOTS].load(Relaxed));
        let (size, stamp) = unpacked(slot, levels.generation);
        Part { size, stamp }
    }

    /// The best level.
    #[inline]
    pub fn best(&self) -> Option<Slot> {
        self.levels().next()
    }
}

impl Levels<'_> {
    /// Moves to the next shelf in use, which leaves at least one bit in `slot_bits`; `false` at the end. Terminates
    /// because each call advances in the bitmap.
    #[inline(always)]
    fn next_shelf(&mut self) -> bool {
        loop {
            while self.shelf_bits == 0 {
                self.word += 1;
                match self.summary.get(self.word) {
                    Some(word) => self.shelf_bits = word.load(Relaxed),
                    None => {
                        self.word = SUMMARY_WORDS;
                        return false;
                    }
                }
            }
            let number = self.word * 64 + self.shelf_bits.trailing_zeros() as usize;
            self.shelf_bits &= self.shelf_bits - 1;
            if let Some(shelf) = self.shelves.get(number)
                && let Some(slots) = shelf.slots.get()
            {
                self.slots = Some(slots);
                self.slot_bits = shelf.occupied.load(Relaxed);
                self.base = (number * SHELF_SLOTS) as u16;
                // Empty only in a torn read.
                if self.slot_bits != 0 {
                    return true;
                }
            }
        }
    }
}

impl Iterator for Levels<'_> {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        if self.slot_bits == 0 && !self.next_shelf() {
            return None;
        }
        let bit = self.slot_bits.trailing_zeros() as usize;
        self.slot_bits &= self.slot_bits - 1;
        let rank = (self.base + bit as u16 + 1).wrapping_mul(self.step);
        Some(Slot::unpack(rank, self.slots?[bit].load(Relaxed), self.generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::chance::Chance;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn a_tick_is_served_by_the_coarsest_step_that_contains_it() {
        for (tick, step) in [
            (1_000, 100),
            (500, 100),
            (100, 100),
            (50, 10),
            (20, 10),
            (10, 10),
            (25, 1),
            (5, 1),
            (1, 1),
            // Not a tick that a venue should send: the finest grid contains every price.
            (0, 1),
            (3, 1),
            (300, 1),
        ] {
            assert_eq!(STEPS[grid_of_tick(TickSize(tick))], step, "tick {tick}");
        }
        for (rank, step) in [(100, 100), (9_900, 100), (110, 10), (4_155, 1), (9_999, 1)] {
            assert_eq!(STEPS[grid_for(rank)], step, "rank {rank}");
        }
    }

    fn step_of(ladder: &Ladder) -> u16 {
        STEPS[usize::from(ladder.grid.load(Relaxed))]
    }

    #[test]
    fn finer_when_a_level_or_the_tick_needs_it_coarser_only_by_a_snapshot_that_fits() {
        let (ladder, share) = (Ladder::new(), Qty::SHARE);
        ladder.replace(TickSize(100), [(4_100, share)].into_iter());
        assert_eq!(step_of(&ladder), 100);
        ladder.set(4_150, Qty::ZERO);
        assert_eq!(step_of(&ladder), 100, "removing an absent level needs no slot");
        ladder.set(4_150, share);
        assert_eq!(step_of(&ladder), 10);
        ladder.fit_tick(TickSize(1));
        assert_eq!(step_of(&ladder), 1);
        ladder.set(4_150, Qty::ZERO);
        ladder.fit_tick(TickSize(100));
        assert_eq!(step_of(&ladder), 1, "a coarser tick alone changes nothing");
        ladder.replace(TickSize(100), [(4_100, share), (4_155, share)].into_iter());
        assert_eq!(step_of(&ladder), 1, "a level does not fit");
        ladder.replace(TickSize(10), [(4_100, share)].into_iter());
        assert_eq!(step_of(&ladder), 10, "the tick is finer than the levels");
        ladder.replace(TickSize(100), [(4_100, share)].into_iter());
        assert_eq!(step_of(&ladder), 100);
        assert_eq!(ladder.levels().map(|slot| (slot.rank, slot.size)).collect::<Vec<_>>(), [(4_100, share)]);
    }

    #[test]
    fn sizes_beyond_48_bits_are_clamped_and_reported() {
        let ladder = Ladder::new();
        assert!(!ladder.set(1, Qty(SIZE_MAX)));
        assert!(ladder.set(2, Qty(SIZE_MAX + 1)));
        assert_eq!(ladder.replace(TickSize(1), [(3, Qty(u64::MAX)), (4, Qty(1)), (5, Qty(1 << 48))].into_iter()), 2);
        assert!(ladder.levels().map(|slot| slot.size.0).eq([SIZE_MAX, 1, SIZE_MAX]));
    }

    #[test]
    fn stamps_do_not_repeat_when_the_counter_of_a_slot_wraps() {
        let (ladder, mut seen) = (Ladder::new(), BTreeSet::new());
        for change in 0..200_000_u64 {
            ladder.set(100, Qty(change % 3));
            if let Some(slot) = ladder.best() {
                assert!(seen.insert(slot.stamp.0), "change {change}: {:?}", slot.stamp);
            }
        }
    }

    /// Random writes against a map. A level's (rank, stamp) must be new whenever the venue sets it, and otherwise
    /// unchanged.
    #[test]
    fn a_ladder_is_a_sorted_map() {
        let (seed, mut steps, mut levels_seen) = (7, 0_u64, 0_u64);
        println!("seed {seed}");
        let mut chance = Chance::new(seed);
        for _ in 0..60 {
            let ladder = Ladder::new();
            let mut model: BTreeMap<u16, (u64, Stamp)> = BTreeMap::new();
            let mut ever: BTreeSet<(u16, Stamp)> = BTreeSet::new();
            let unit = [100, 100, 10, 1][chance.below(4) as usize];
            let rank = |chance: &mut Chance| {
                let unit = if chance.one_in(50) { 1 } else { unit };
                ((1 + chance.below(9_999 / unit)) * unit) as u16
            };
            for _ in 0..300 {
                steps += 1;
                let mut set = Vec::new();
                match chance.below(20) {
                    0 => {
                        let tick = TickSize([1_000, 100, 50, 10, 1][chance.below(5) as usize]);
                        let count = chance.below(60);
                        let levels: Vec<(u16, Qty)> =
                            (0..count).map(|_| (rank(&mut chance), Qty(chance.below(1_000)))).collect();
                        ladder.replace(tick, levels.iter().copied());
                        model.clear();
                        set = levels;
                    }
                    1 => ladder.fit_tick(TickSize([100, 10, 1][chance.below(3) as usize])),
                    _ => {
                        let known = model.keys().nth(chance.below(model.len().max(1) as u64) as usize).copied();
                        let rank = known.filter(|_| chance.one_in(2)).unwrap_or_else(|| rank(&mut chance));
                        let size = Qty(if chance.one_in(3) { 0 } else { chance.below(1_000) });
                        ladder.set(rank, size);
                        set.push((rank, size));
                    }
                }
                for (rank, size) in &set {
                    model.insert(*rank, (size.0, Stamp(u32::MAX)));
                }
                model.retain(|_, (size, _)| *size != 0);
                let levels: Vec<Slot> = ladder.levels().collect();
                assert!(levels.iter().map(|slot| (slot.rank, slot.size.0)).eq(model.iter().map(|(r, l)| (*r, l.0))));
                for slot in &levels {
                    let known = model.get_mut(&slot.rank).expect("just compared");
                    if set.iter().any(|(rank, _)| *rank == slot.rank) {
                        assert!(ever.insert((slot.rank, slot.stamp)), "a stamp was used twice: {slot:?}");
                        known.1 = slot.stamp;
                    }
                    assert_eq!(known.1, slot.stamp, "a stamp changed without a write: {slot:?}");
                }
                levels_seen += levels.len() as u64;
                assert_eq!(ladder.best(), levels.first().copied());
                for most in [0, 1, 7, 64, usize::MAX] {
                    let mut copy = Vec::new();
                    ladder.copy(most, &mut copy, |slot| slot);
                    assert_eq!(copy, levels[..levels.len().min(most)]);
                }
            }
        }
        println!("{steps} changes, {levels_seen} levels compared");
    }
}
