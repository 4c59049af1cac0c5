//! The real process, killed and damaged.
//!
//! `kills` is the long one: clients under load, `kill -9` at random times, and after each start every client compares
//! the server's answers with its own record of earlier ones. `points` ends the process at each named crash point of the
//! log. `golden` are directories of older builds. `damage` changes files while the server is stopped. `operations` are
//! common mistakes of operation, `settings` those of configuration, `seeds` those of creating users, `disk` is a full
//! disk; `formats` writes one directory in several formats; `verbs` inspect the files of a server, `history` is its
//! history store, `ended_store` damages that after orders have left memory, `stops` are clean stops, `outputs` are blocked standard streams, `backups` and `live_backups` restore backups, `clock` covers machines
//! with a wrong clock, `archive` kills imports, `billing` events of a payment provider, `alerts` are deliveries that were
//! owed, `digest` recomputes the digest of a directory from its exported log, and `ids` are
//! client order ids at the end of their time.

mod alerts;
mod archive;
mod backups;
mod billing;
mod clock;
mod damage;
mod digest;
mod disk;
mod ended_store;
mod formats;
mod golden;
mod history;
mod ids;
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
mod uptime;
mod verbs;
mod wallets;
