//! One filter: a blocked Bloom filter. A name sets one bit in each of the eight words of one block, which is one cache
//! line. Bits are only ever set, so readers need no lock.

use engine::id::UserId;
use engine::look_up::filters::{Kind, mix};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Words of a block.
const WORDS: usize = 8;
pub const BLOCK_BYTES: usize = WORDS * 8;

/// One cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Block([AtomicU64; WORDS]);

/// The filter of a span of hours.
#[derive(Debug)]
pub struct Span {
    blocks: Box<[Block]>,
    /// The newest hour of a name.
    last_hour: AtomicU32,
}

/// Where a name is in every filter.
pub fn place_of(user: UserId, kind: Kind, hash: u64) -> u64 {
    mix(hash ^ mix(user.0 << 1 | kind as u64))
}

impl Span {
    /// A filter without names, of at least this many bits.
    pub fn new(bits: u64) -> Span {
        let count = Span::bytes_for(bits) as usize / BLOCK_BYTES;
        Span { blocks: (0..count).map(|_| Block::default()).collect(), last_hour: AtomicU32::new(0) }
    }

    /// Bytes of a filter of at least this many bits.
    pub fn bytes_for(bits: u64) -> u64 {
        bits.div_ceil(8 * BLOCK_BYTES as u64).max(1) * BLOCK_BYTES as u64
    }

    /// A filter from its bytes, of which there is a whole number of blocks.
    pub fn of_bytes(bytes: &[u8], last_hour: u32) -> Option<Span> {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        if blocks.is_empty() || !rest.is_empty() {
            return None;
        }
        let block = |bytes: &[u8; BLOCK_BYTES]| {
            let mut block = Block::default();
            for (word, bytes) in block.0.iter_mut().zip(bytes.as_chunks().0) {
                *word = AtomicU64::new(u64::from_le_bytes(*bytes));
            }
            block
        };
        Some(Span { blocks: blocks.iter().map(block).collect(), last_hour: AtomicU32::new(last_hour) })
    }

    /// Its bytes, block by block.
    pub fn chunks(&self) -> impl Iterator<Item = [u8; BLOCK_BYTES]> {
        self.blocks.iter().map(|block| {
            let mut bytes = [0; BLOCK_BYTES];
            for (word, bytes) in block.0.iter().zip(bytes.as_chunks_mut().0) {
                *bytes = word.load(Relaxed).to_le_bytes();
            }
            bytes
        })
    }

    pub fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_BYTES as u64
    }

    /// The newest hour of a name; 0 without names.
    pub fn last_hour(&self) -> u32 {
        self.last_hour.load(Relaxed)
    }

    /// Adds a name of an order that was placed in this hour.
    pub fn add(&self, place: u64, hour: u32) {
        let (block, bits) = self.spot(place);
        for (word, bit) in block.0.iter().zip(bits) {
            word.fetch_or(bit, Relaxed);
        }
        self.last_hour.fetch_max(hour, Relaxed);
    }

    /// Whether a name may have been added.
    pub fn may_have(&self, place: u64) -> bool {
        let (block, bits) = self.spot(place);
        block.0.iter().zip(bits).all(|(word, bit)| word.load(Relaxed) & bit != 0)
    }

    /// The block of a name, and its bit in each word.
    fn spot(&self, place: u64) -> (&Block, [u64; WORDS]) {
        let block = ((u128::from(place) * self.blocks.len() as u128) >> 64) as usize;
        // The block has used the high bits.
        let bits = mix(place);
        (&self.blocks[block], std::array::from_fn(|word| 1 << (bits >> (6 * word) & 63)))
    }
}
