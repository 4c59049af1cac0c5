//! The machine under papertape: what touches the operating system and knows nothing of trading.
//!
//! | Module | Holds |
//! |---|---|
//! | [`clock`], [`leap`] | server time; what a start finds about its clock |
//! | [`thread`], [`runtime`], [`failing`] | threads and runtimes, and the rest after a turn that failed |
//! | [`slot`] | where an answer goes |
//! | [`secret`] | values that are shown nowhere |
//! | [`small_file`] | files beside the log, read to a bound |
//! | [`output`] | standard output and standard error |
//! | [`histogram`] | how long something took |
//!
//! May depend on `engine`, of which it uses times, and on `wire`, which writes them. Absent on purpose: users, orders, markets,
//! the log, and everything with an address.

pub mod clock;
pub mod failing;
pub mod histogram;
pub mod leap;
pub mod output;
pub mod runtime;
pub mod secret;
pub mod slot;
pub mod small_file;
pub mod thread;
