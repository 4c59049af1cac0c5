//! Seeded randomness: the seed is printed, and an environment variable sets it to repeat a run.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// A small generator (splitmix64): sufficient for choices, useless for secrets.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn seeded(seed: u64) -> Chance {
        Chance(seed)
    }

    /// Takes the seed from the environment variable `name`, else from the clock, and prints it.
    pub fn from_env(name: &str) -> Chance {
        let seed = match env::var(name) {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}")),
            Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_nanos() as u64,
        };
        println!("seed: {name}={seed}");
        Chance(seed)
    }

    /// Another, independent generator.
    pub fn fork(&mut self) -> Chance {
        Chance(self.draw())
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// 0 ≤ result < `bound`; the small bias of the remainder does not matter here.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "nothing to choose from");
        (self.draw() % bound as u64) as usize
    }

    /// `low` ≤ result ≤ `high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn pick_mut<'a, T>(&mut self, from: &'a mut [T]) -> &'a mut T {
        &mut from[self.below(from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    #[test]
    fn the_same_seed_chooses_the_same() {
        let (mut one, mut two) = (Chance::seeded(7), Chance::seeded(7));
        let ran = (0..1_000).filter(|_| one.between(3, 9) == two.between(3, 9)).count();
        println!("chance: {ran} cases");
        assert_eq!(ran, 1_000);
    }
}
