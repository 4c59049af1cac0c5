//! State: what the facts about users come to. Rows, and `apply`, which brings a fact into them and cannot fail.
//!
//! | Folder | Holds |
//! |---|---|
//! | [`mutation`] | the facts, and their bytes in the log |
//! | [`order`] | rows of orders and fills, reservations, the index of resting orders |
//! | [`user`] | a user and what it has; `apply` |
//!
//! Nothing here refuses, and nothing reads a rule or a price: that is `decide`. The crate names these modules at its
//! root.

pub mod mutation;
pub mod order;
pub mod user;
