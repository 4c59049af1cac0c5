//! Mistakes that a test of this crate makes on purpose, to see that the tests would notice them. Outside of tests: none.

#[cfg(test)]
pub(crate) use made::*;
#[cfg(not(test))]
pub(crate) use none::*;

#[cfg(test)]
mod made {
    use std::cell::Cell;

    thread_local! {
        pub(crate) static SKIP_CHAIN: Cell<bool> = const { Cell::new(false) };
        pub(crate) static SKIP_ZEROING: Cell<bool> = const { Cell::new(false) };
    }

    /// Neither previous checksum nor epoch is looked at.
    pub(crate) fn skips_chain() -> bool {
        SKIP_CHAIN.get()
    }

    pub(crate) fn skips_zeroing() -> bool {
        SKIP_ZEROING.get()
    }
}

#[cfg(not(test))]
mod none {
    #[inline(always)]
    pub(crate) const fn skips_chain() -> bool {
        false
    }

    pub(crate) const fn skips_zeroing() -> bool {
        false
    }
}
