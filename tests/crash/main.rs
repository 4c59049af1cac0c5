//! The real process, killed and damaged.
//!
//! `kills` is the long one: clients under load, `kill -9` at random, and after each start every client compares what
//! the server says with its own memory of what it was told. `points` ends the process at each named place of the log.
//! `golden` are directories that older builds left. `damage` changes files behind the server's back. `operations` are
//! the ordinary accidents of running one, `settings` those of setting one up, `seeds` those of making users, `disk` is a
//! full one; `formats` writes one directory in several formats; `verbs` look at what a server leaves behind, `stops` is about its orderly ends, `outputs` about standard
//! streams that take nothing, `backups` and `live_backups` about what comes back out of a backup, and `clock` about machines
//! whose clock was wrong.

mod backups;
mod clock;
mod damage;
mod disk;
mod formats;
mod golden;
mod kills;
mod live_backups;
mod memory;
mod money;
mod operations;
mod outputs;
mod points;
mod reconcile;
mod seeds;
mod settings;
mod stops;
mod trader;
mod verbs;
mod wallets;
