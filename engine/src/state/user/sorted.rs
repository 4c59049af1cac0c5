//! `Sorted`: an ordered set of small values, in blocks of bounded size. Inserting and removing move a bounded count of
//! values, and iteration reads arrays. The derived indexes consist of it.

/// Values in a full block: a search in it reads a few cache lines.
const VALUES_PER_BLOCK: usize = 64;

/// A set in ascending order.
#[derive(Clone, Debug)]
pub struct Sorted<T> {
    /// All values, while they fit in one block; else empty.
    alone: Vec<T>,
    /// Allocated with the second block.
    many: Option<Box<Blocks<T>>>,
}

/// Two or more blocks.
#[derive(Clone, Debug)]
struct Blocks<T> {
    /// In one array, so that a search for the block reads no other block: values of the blocks up to n are below
    /// `bounds[n]`, those of later ones are not. One fewer than blocks.
    bounds: Vec<T>,
    /// None is empty. Each is ascending, and all its values are below those of the next.
    blocks: Vec<Vec<T>>,
    len: usize,
}

impl<T: Copy + Ord> Sorted<T> {
    pub const fn new() -> Self {
        Sorted { alone: Vec::new(), many: None }
    }

    /// A set of ascending values.
    ///
    /// # Panics
    /// If they are not strictly ascending.
    pub(crate) fn of_ascending(values: Vec<T>) -> Self {
        assert!(values.is_sorted_by(|value, next| value < next), "the values are not strictly ascending");
        if values.len() <= VALUES_PER_BLOCK {
            return Sorted { alone: values, many: None };
        }
        let blocks: Vec<_> = values.chunks(VALUES_PER_BLOCK).map(<[T]>::to_vec).collect();
        let bounds = blocks[1..].iter().map(|block| block[0]).collect();
        Sorted { alone: Vec::new(), many: Some(Box::new(Blocks { bounds, blocks, len: values.len() })) }
    }

    pub fn len(&self) -> usize {
        self.many.as_ref().map_or(self.alone.len(), |many| many.len)
    }

    pub fn is_empty(&self) -> bool {
        self.alone.is_empty() && self.many.is_none()
    }

    /// Adds `value`; false if it was present.
    pub fn insert(&mut self, value: T) -> bool {
        if let Some(many) = &mut self.many {
            return many.insert(value);
        }
        let inserted = insert_into(&mut self.alone, value);
        if self.alone.len() > VALUES_PER_BLOCK {
            let mut lower = std::mem::take(&mut self.alone);
            let len = lower.len();
            let upper = lower.split_off(VALUES_PER_BLOCK / 2);
            self.many = Some(Box::new(Blocks { bounds: vec![upper[0]], blocks: vec![lower, upper], len }));
        }
        inserted
    }

    /// Removes `value`; false if it was absent.
    pub fn remove(&mut self, value: T) -> bool {
        let Some(many) = &mut self.many else { return remove_from(&mut self.alone, value) };
        let removed = many.remove(value);
        if many.blocks.len() == 1 {
            self.alone = many.blocks.pop().expect("one is left");
            self.many = None;
        }
        removed
    }

    pub fn contains(&self, value: T) -> bool {
        let block = self.many.as_ref().map_or(&self.alone, |many| &many.blocks[many.block_of(value)]);
        block.binary_search(&value).is_ok()
    }

    /// The largest value.
    pub fn last(&self) -> Option<T> {
        self.many.as_ref().and_then(|many| many.blocks.last()).unwrap_or(&self.alone).last().copied()
    }

    /// The values from `least` on, ascending.
    pub fn iter_from(&self, least: T) -> impl Iterator<Item = T> + '_ {
        let (first, later) = match &self.many {
            None => (&self.alone, &[][..]),
            Some(many) => {
                let at = many.block_of(least);
                (&many.blocks[at], &many.blocks[at + 1..])
            }
        };
        let from = first.partition_point(|value| *value < least);
        first[from..].iter().chain(later.iter().flatten()).copied()
    }

    /// All values, ascending, from either end.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + Clone + '_ {
        let blocks = self.many.as_ref().map_or(&[][..], |many| &many.blocks);
        self.alone.iter().chain(blocks.iter().flatten()).copied()
    }
}

impl<T: Copy + Ord> Blocks<T> {
    /// The block for `value`.
    fn block_of(&self, value: T) -> usize {
        self.bounds.partition_point(|bound| *bound <= value)
    }

    fn insert(&mut self, value: T) -> bool {
        let at = self.block_of(value);
        let inserted = insert_into(&mut self.blocks[at], value);
        self.len += usize::from(inserted);
        if self.blocks[at].len() > VALUES_PER_BLOCK {
            // Values mostly come in order: then the full block stays full.
            let last = at + 1 == self.blocks.len();
            let upper = self.blocks[at].split_off(if last { VALUES_PER_BLOCK } else { VALUES_PER_BLOCK / 2 });
            self.bounds.insert(at, upper[0]);
            self.blocks.insert(at + 1, upper);
        }
        inserted
    }

    fn remove(&mut self, value: T) -> bool {
        let at = self.block_of(value);
        let removed = remove_from(&mut self.blocks[at], value);
        self.len -= usize::from(removed);
        if self.blocks[at].is_empty() {
            self.blocks.remove(at);
            // The range of the removed block goes to the block before it, or to the next one if it was the first.
            self.bounds.remove(at.saturating_sub(1));
        }
        removed
    }
}

/// Removes `value` from one block; false if it was absent.
fn remove_from<T: Copy + Ord>(block: &mut Vec<T>, value: T) -> bool {
    // The newest value often ends first.
    if block.last() == Some(&value) {
        block.pop();
        return true;
    }
    let Ok(place) = block.binary_search(&value) else { return false };
    block.remove(place);
    true
}

/// Adds `value` to one block; false if it was present.
fn insert_into<T: Copy + Ord>(block: &mut Vec<T>, value: T) -> bool {
    // New ids are the largest of their user, so check the end first.
    if block.last().is_none_or(|last| *last < value) {
        block.push(value);
        return true;
    }
    let Err(place) = block.binary_search(&value) else { return false };
    block.insert(place, value);
    true
}

impl<T: Copy + Ord> Default for Sorted<T> {
    fn default() -> Self {
        Sorted::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_agrees_with_a_tree() {
        let mut state = 7_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for span in [10, 300, 3_000] {
            let (mut sorted, mut tree) = (Sorted::new(), BTreeSet::new());
            for step in 0..20_000_u32 {
                let value = next() % span;
                // Grow first, shrink later, so that splits and empty blocks both occur.
                if (next() % 100 < 60) == (step < 10_000) {
                    assert_eq!(sorted.insert(value), tree.insert(value));
                } else {
                    assert_eq!(sorted.remove(value), tree.remove(&value));
                }
                assert_eq!((sorted.len(), sorted.contains(value)), (tree.len(), tree.contains(&value)));
                let least = next() % (span + 2);
                assert!(sorted.iter_from(least).take(3).eq(tree.range(least..).take(3).copied()), "from {least}");
            }
            assert!(sorted.iter_from(span / 2).eq(tree.range(span / 2..).copied()));
            assert!(sorted.iter().eq(tree.iter().copied()));
            assert!(sorted.iter().rev().eq(tree.iter().rev().copied()));
        }
    }

    #[test]
    fn a_bulk_set_equals_single_inserts() {
        let block = VALUES_PER_BLOCK as u32;
        for count in [0, 1, block - 1, block, block + 1, 2 * block, 2 * block + 1, 1_000] {
            let mut at_once = Sorted::of_ascending((0..count).map(|value| value * 2).collect());
            let mut one_by_one = Sorted::new();
            (0..count).for_each(|value| _ = one_by_one.insert(value * 2));
            for value in 0..2 * count + 2 {
                assert_eq!(at_once.contains(value), one_by_one.contains(value), "{value} of {count}");
                assert_eq!(at_once.insert(value), one_by_one.insert(value), "{value} into {count}");
            }
            assert!(at_once.iter().eq(one_by_one.iter()) && at_once.len() == one_by_one.len());
            (0..count).for_each(|value| assert!(at_once.remove(value)));
        }
    }

    #[test]
    #[should_panic(expected = "the values are not strictly ascending")]
    fn a_value_is_in_a_set_once() {
        Sorted::of_ascending(vec![1, 2, 2]);
    }
}
