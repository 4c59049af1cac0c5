//! Texts of the wire and our integers, in both directions. Knows formats, not meanings.
pub mod cursor;
pub mod decimal;
pub mod fields;
pub mod instant;
pub mod query;
pub mod read;
pub mod write;

#[cfg(test)]
pub(crate) mod tests {
    /// A seeded stream of numbers (splitmix64) for tests of properties.
    pub(crate) struct Random(pub(crate) u64);

    impl Random {
        pub(crate) fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }
    }
}
