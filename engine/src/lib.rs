//! Books, users and orders of papertape: a pure calculation.
pub mod amount;
pub mod book;
pub mod command;
pub mod directory;
pub mod id;
pub mod index;
pub mod market;
pub mod mutation;
pub mod notice;
pub mod order;
pub mod reject;
pub mod ring;
pub mod rules;
pub mod shard;
pub mod time;
pub mod user;
pub mod view;
