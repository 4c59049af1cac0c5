//! Books, users and orders of papertape: a pure calculation.
pub mod amount;
pub mod id;
pub mod market;
pub mod time;
