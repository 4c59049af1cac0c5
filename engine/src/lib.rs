//! Books, users and orders of papertape: a pure calculation.
pub mod amount;
pub mod command;
pub mod id;
pub mod market;
pub mod mutation;
pub mod notice;
pub mod order;
pub mod reject;
pub mod rules;
pub mod shard;
pub mod time;
pub mod user;
pub mod view;
