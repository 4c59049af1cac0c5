//! State: the result of all facts about users. Rows, and `apply`, which applies a fact to them and cannot fail.
//!
//! | Folder | Holds |
//! |---|---|
//! | [`mutation`] | the facts, and their bytes in the log |
//! | [`order`] | rows of orders and fills, reservations, the index of resting orders |
//! | [`user`] | a user with all rows; `apply` |
//! | [`departed`] | rows that have left memory, and how they are read |
//!
//! Nothing here refuses, and nothing reads a rule or a price: that is `decide`. The crate re-exports these modules at
//! its root.

pub mod departed;
pub mod mutation;
pub mod order;
pub mod user;
