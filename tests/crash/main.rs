//! The real process, killed and damaged.
//!
//! `kills` is the long one: clients under load, `kill -9` at random, and after each start every client compares what
//! the server says with its own memory of what it was told. `points` ends the process at each named place of the log.
//! `damage` changes files behind the server's back. `operations` are the ordinary accidents of running one,
//! `settings` those of setting one up, `seeds` those of making users; `stops` is about what an orderly end leaves behind.

mod damage;
mod kills;
mod memory;
mod money;
mod operations;
mod points;
mod reconcile;
mod seeds;
mod settings;
mod stops;
mod trader;
mod wallets;
