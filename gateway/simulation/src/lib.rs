//! The simulation routes' other side: the ports of `edge::api::simulation` on the archive's files
//! (gateway/docs/simulation.md); and the calibration of fill models (gateway/docs/calibrate.md).
//!
//! | Module | Holds |
//! |---|---|
//! | [`past`] | markets, hours and books of an archive; blocking |
//! | [`reads`] | the same for routes: on other threads, a few at a time |
//! | [`plan`] | a request with an archive: the job of the engine |
//! | [`frames`] | the rows of a job's markets as frames, in the order of receipt |
//! | [`mod@run`] | one run, its progress and its figures |
//! | [`results`] | rows of results as Parquet files |
//! | [`runner`] | runs back-tests one after the other, and journals their ends |
//! | [`report`] | a back-test as a page of HTML, and the parts of pages; pure |
//! | [`calibrate`] | live orders against the fill models, on a recording |
//! | [`exports`] | events of a market as Parquet files in a folder |
//!
//! May depend on `engine`, `wire`, `host`, `archive`, `venue` and `edge`. It writes no answer and reads no request:
//! `edge` does. It makes no hour: `venue::archive` does.

pub mod calibrate;
pub mod exports;
pub mod frames;
pub mod past;
pub mod plan;
pub mod reads;
pub mod report;
pub mod results;
pub mod run;
pub mod runner;
#[cfg(test)]
mod testing;
