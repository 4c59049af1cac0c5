//! Faults that tests of this crate turn on to prove that the tests detect them. Outside of tests there are none.

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

    /// Checks neither the previous checksum nor the epoch.
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
