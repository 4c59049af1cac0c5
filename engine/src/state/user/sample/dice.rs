//! A pseudo-random generator with a seed.

/// A small seeded generator (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// One of `0..below`.
    pub fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn text(&mut self) -> String {
        let len = self.below(30);
        (0..len).map(|_| self.pick(&['a', 'b', '7', '-', 'é', '雨'])).collect()
    }

    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Dice) -> T) -> Option<T> {
        self.chance(50).then(|| make(self))
    }
}
