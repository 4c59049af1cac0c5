//! The simulation routes' other side: the ports of `edge::api::simulation` on the archive's files
//! (gateway/docs/simulation.md).
//!
//! | Module | Holds |
//! |---|---|
//! | [`past`] | markets, hours and books of an archive; blocking |
//! | [`reads`] | the same for routes: on other threads, a few at a time |
//! | [`report`] | a back-test as a page of HTML; pure |
//! | [`exports`] | events of a market as Parquet files in a folder |
//!
//! May depend on `engine`, `wire`, `host`, `archive`, `venue` and `edge`. It writes no answer and reads no request:
//! `edge` does. It makes no hour: `venue::archive` does.

pub mod exports;
pub mod past;
pub mod reads;
pub mod report;
