//! The operating system's part of papertape: everything here is independent of trading.
//!
//! | Module | Holds |
//! |---|---|
//! | [`clock`], [`leap`] | server time; the check of the clock at a start |
//! | [`moments`] | one clock for server, recording and bot: when it may move |
//! | [`thread`], [`runtime`] | threads and runtimes |
//! | [`job`], `failing` | work that is done now and then; the pause after a failed turn |
//! | [`slot`] | the receiver of an answer |
//! | [`secret`] | values that are never printed |
//! | [`small_file`] | files beside the log, read to a bound |
//! | [`watched_file`] | files that an operator edits, read again when they change |
//! | [`output`] | standard output and standard error |
//! | [`histogram`] | counts of durations |
//!
//! May depend on `engine`, for its times, and on `wire`, which writes them. It has no users, orders, markets, log, or
//! network addresses.

pub mod clock;
mod failing;
pub mod histogram;
pub mod job;
pub mod leap;
pub mod moments;
pub mod output;
pub mod runtime;
pub mod secret;
pub mod slot;
pub mod small_file;
pub mod thread;
pub mod watched_file;
