//! Seeded chance (engine/docs/execution.md §16): the nth draw belongs to the nth event of its scope. The same seed,
//! purpose, scope and number give the same draw on every machine.
//!
//! A purpose is a word, so that two uses of one scope do not share draws. The log has outcomes and no draws: a replay
//! needs no seed. The number of a scope's events has to survive a restart where its draws do.

use crate::amount::Bps;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use sha2::{Digest as _, Sha256};

/// Words of a block of the cipher: each draw has a block of its own.
const BLOCK_WORDS: u128 = 16;
/// All draws are equally likely: this is one more than the largest.
const DRAWS: u128 = 1 << 64;

/// The draws of a scope: ChaCha8 of SHA-256(seed ‖ purpose ‖ scope), numbers little-endian.
#[derive(Clone, Debug)]
pub struct Chance {
    blocks: ChaCha8Rng,
}

impl Chance {
    pub fn new(seed: u64, purpose: &str, scope: u64) -> Chance {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update(purpose);
        hash.update(scope.to_le_bytes());
        Chance { blocks: ChaCha8Rng::from_seed(hash.finalize().into()) }
    }

    /// The nth draw, from 0: equally likely 64 bits. Any order of numbers gives the same draws.
    pub fn draw(&mut self, number: u64) -> u64 {
        self.blocks.set_word_pos(u128::from(number) * BLOCK_WORDS);
        self.blocks.next_u64()
    }
}

/// A number from `low` to `high`, both included, with equal odds up to 2⁻⁶⁴ × (`high` − `low`). `low` if the bounds are
/// in the wrong order.
pub fn between(draw: u64, low: u64, high: u64) -> u64 {
    let span = u128::from(high.saturating_sub(low)) + 1;
    // Below span, which fits: low + span - 1 = high.
    low + (u128::from(draw) * span / DRAWS) as u64
}

/// Whether something happens that happens in this part of all cases.
pub fn happens(draw: u64, share: Bps) -> bool {
    between(draw, 0, 9_999) < u64::from(share.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_seed_purpose_scope_and_number_only() {
        let draws = |seed, purpose, scope| {
            let mut chance = Chance::new(seed, purpose, scope);
            (0..100).map(|number| chance.draw(number)).collect::<Vec<_>>()
        };
        let first = draws(7, "settlement", 3);
        let mut chance = Chance::new(7, "settlement", 3);
        let backwards: Vec<_> = (0..100).rev().map(|number| chance.draw(number)).collect();
        assert_eq!(backwards.into_iter().rev().collect::<Vec<_>>(), first);
        for (seed, purpose, scope) in [(8, "settlement", 3), (7, "order_in", 3), (7, "settlement", 4)] {
            let equal = draws(seed, purpose, scope).iter().zip(&first).filter(|(one, other)| one == other).count();
            assert_eq!(equal, 0, "{seed} {purpose} {scope}");
        }
        // The last number is a block, too.
        assert_ne!(chance.draw(u64::MAX), chance.draw(u64::MAX - 1));
        println!("draws: {} cases", 2 * first.len() + 3);
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let rows = [
            (0, 5, 9, 5),
            (u64::MAX, 5, 9, 9),
            (u64::MAX, 0, u64::MAX, u64::MAX),
            (0, 0, u64::MAX, 0),
            (1 << 63, 0, 1, 1),
            ((1 << 63) - 1, 0, 1, 0),
            (u64::MAX, 4, 4, 4),
            (u64::MAX, 9, 5, 9),
        ];
        for (draw, low, high, expected) in rows {
            assert_eq!(between(draw, low, high), expected, "{draw} in {low}..={high}");
        }
        println!("bounds: {} cases", rows.len());
    }

    #[test]
    fn shares_are_those_asked_for() {
        let mut chance = Chance::new(1, "test", 0);
        let draws: Vec<_> = (0..100_000).map(|number| chance.draw(number)).collect();
        for (share, least, most) in [(0, 0, 0), (1, 1, 30), (200, 1_850, 2_150), (5_000, 49_300, 50_700)] {
            let count = draws.iter().filter(|draw| happens(**draw, Bps(share))).count();
            assert!((least..=most).contains(&count), "{share}: {count}");
        }
        assert!(draws.iter().all(|draw| happens(*draw, Bps(10_000))));
        println!("shares: {} draws", draws.len() * 5);
    }
}
