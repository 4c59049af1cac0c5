//! `Sorted`: a set of small values in order, in blocks of bounded size. Inserting and removing cost a short move
//! whatever the size, and walking it is walking arrays. It holds what the derived indexes are made of.

/// Values in a full block.
const VALUES_PER_BLOCK: usize = 128;

/// A set in ascending order.
#[derive(Clone, Debug)]
pub struct Sorted<T> {
    /// Each ascending, and all of one below all of the next; none is empty, except one that is alone.
    blocks: Vec<Vec<T>>,
    len: usize,
}

impl<T: Copy + Ord> Sorted<T> {
    pub const fn new() -> Self {
        Sorted { blocks: Vec::new(), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds `value`; false when it was there.
    pub fn insert(&mut self, value: T) -> bool {
        // New ids are the largest of their user, so the end is the place to look first.
        match self.blocks.last_mut() {
            None => self.blocks.push(vec![value]),
            Some(block) if block.last().is_none_or(|last| *last < value) => {
                if block.len() < VALUES_PER_BLOCK {
                    block.push(value);
                } else {
                    let mut next = Vec::with_capacity(VALUES_PER_BLOCK);
                    next.push(value);
                    self.blocks.push(next);
                }
            }
            Some(_) => {
                let at = self.block_of(value);
                let block = &mut self.blocks[at];
                let Err(place) = block.binary_search(&value) else { return false };
                block.insert(place, value);
                if block.len() > VALUES_PER_BLOCK {
                    let upper = block.split_off(VALUES_PER_BLOCK / 2);
                    self.blocks.insert(at + 1, upper);
                }
            }
        }
        self.len += 1;
        true
    }

    /// Takes `value` out; false when it was not there.
    pub fn remove(&mut self, value: T) -> bool {
        let at = self.block_of(value);
        let Some(block) = self.blocks.get_mut(at) else { return false };
        let Ok(place) = block.binary_search(&value) else { return false };
        block.remove(place);
        if block.is_empty() && self.blocks.len() > 1 {
            self.blocks.remove(at);
        }
        self.len -= 1;
        true
    }

    pub fn contains(&self, value: T) -> bool {
        self.blocks.get(self.block_of(value)).is_some_and(|block| block.binary_search(&value).is_ok())
    }

    /// All values, ascending, from either end.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + Clone + '_ {
        self.blocks.iter().flatten().copied()
    }

    /// The block that holds `value` if any does.
    fn block_of(&self, value: T) -> usize {
        if self.blocks.len() == 1 {
            return 0;
        }
        self.blocks.partition_point(|block| block.last().is_some_and(|last| *last < value))
    }
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
            }
            assert!(sorted.iter().eq(tree.iter().copied()));
            assert!(sorted.iter().rev().eq(tree.iter().rev().copied()));
        }
    }
}
