//! The rules of papertape on markets of the past: what an archive covers, what an order of a past moment would have
//! taken, and what a strategy would have earned (gateway/docs/simulation.md).
//!
//! | File | Holds |
//! |---|---|
//! | `hours.rs` | [`Hour`], its [`Verdict`] and [`Confidence`]; the [`Coverage`] of a window |
//! | `book.rs` | [`ArchivedMarket`], [`Ends`], [`ArchivedBook`], [`ArchivedPair`]: values that an archive gives |
//! | `fill.rs` | [`FillModel`], [`fill`]: one order against one archived book |
//! | `strategy.rs` | [`Strategy`], [`Predicate`]: when a back-test enters and leaves |
//! | `job.rs` | [`Job`], [`BookFrame`]: a back-test and what it is fed with |
//! | `source.rs` | [`FrameSource`]: where the frames come from |
//! | `chance.rs` | what a seed draws: phases, delays, haircuts |
//! | `run.rs` | [`run`]: frames in, a report out |
//! | `lane.rs` | the private world of one seed: a shard with one user |
//! | `quotes.rs` | what the strategy sees of the books, read once for all lanes |
//! | `report.rs` | [`Report`], [`Trade`], [`EquityPoint`], [`Comparison`], and the hash of a result |
//! | `samples.rs` | [`Samples`]: pictures of a run for its reader |
//! | `canonical.rs` | the JSON that is hashed |
//!
//! Pure calculations: an archive reads files and makes these values.

mod book;
mod canonical;
mod chance;
mod fill;
mod hours;
mod job;
mod lane;
mod quotes;
mod report;
mod run;
mod samples;
mod source;
mod strategy;

pub use book::{ArchivedBook, ArchivedMarket, ArchivedPair, Ends, Settled, SettlementSource};
pub use chance::{Haircut, Latency};
pub use fill::{FillModel, FillRequest, FillResult, SHARES_MAX, fill};
pub use hours::{COVERAGE_HOURS_MAX, COVERAGE_MIN, Confidence, Coverage, Hour, HourState, NotAnHour, Verdict};
pub use job::{BookChange, BookFrame, Job, JobMarket, ORDERS_MAX, ROWS_MAX, SEEDS_MAX, TICKS_MAX, TickMode, TickPlan};
pub use report::{Comparison, EquityPoint, Part, Reason, Report, Trade};
pub use run::{Failure, join, run, run_part};
pub use samples::{SAMPLES_MAX, Sample, Samples};
pub use source::FrameSource;
pub use strategy::{Field, Move, Operator, PREDICATES_MAX, Predicate, Quote, Strategy, Threshold};
