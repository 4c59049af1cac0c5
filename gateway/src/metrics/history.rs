//! Rows that have ended: how much memory they take, how they move to the history store, and how they are read there.

use super::family::{Family, Writer};
use crate::ended::{Outcome, ReadFigures};
use ::history::EndedStore;
use ::history::filters::OpenFilters;
use engine::shard::bound::EndedBound;
use engine::time::{SECOND, Timestamp};
use journal::mover::MoverFigures;
use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MEMORY: Family = Family::new(
    "papertape_ended_memory_bytes",
    "What ended rows take in memory, estimated from their sizes; the copy of the checkpoints takes as much again",
);
const MEMORY_MAX: Family =
    Family::new("papertape_ended_memory_limit_bytes", "Where placements are refused (history.hot_bytes_max)");
const REFUSED: Family =
    Family::new("papertape_ended_refused_total", "Placements refused at that limit; a batch is one");
const MOVED: Family = Family::new("papertape_ended_moved_total", "Rows that moved to the history store");
const MOVED_LSN: Family = Family::new(
    "papertape_history_moved_lsn",
    "Number of the record up to which rows have moved to the history store; 0: none has",
);
const LAG: Family = Family::new(
    "papertape_history_lag_seconds",
    "Server time since the last record of the last move; absent before the first move of this start",
);
const FAILING: Family =
    Family::new("papertape_history_failing", "1 while rows cannot move to the history store, as of the last attempt");
const BYTES: Family =
    Family::new("papertape_history_table_bytes", "Files of the tables of ended rows in the history store");
const FILTERS: Family =
    Family::new("papertape_history_filter_bytes", "Memory of the filters over names of rows that have left memory");
const LOOK_UPS: Family = Family::new(
    "papertape_look_ups_total",
    "Commands that needed rows which may have left memory: whether some were found, none were, or none could be read",
);
const LOOK_UP: Family =
    Family::new("papertape_look_up_seconds", "From the request of a look-up to its result, waiting included");
const READS: Family =
    Family::new("papertape_ended_reads_total", "Answers that needed rows which have left memory, by their result");
const READ: Family =
    Family::new("papertape_ended_read_seconds", "From the request of such an answer to its result, waiting included");

/// The sources of these figures.
#[derive(Clone)]
pub struct EndedFigures {
    pub bound: Arc<EndedBound>,
    pub mover: Arc<MoverFigures>,
    pub reads: Arc<ReadFigures>,
    pub store: EndedStore,
    pub filters: OpenFilters,
}

pub(super) fn write(figures: Option<&EndedFigures>, now: Timestamp, out: &mut Writer<'_>) -> Result<(), Error> {
    let Some(EndedFigures { bound, mover, reads, store, filters }) = figures else { return Ok(()) };
    let number = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    out.gauge(&MEMORY, bound.bytes())?;
    out.gauge(&MEMORY_MAX, bound.bytes_max())?;
    out.counter(&REFUSED, bound.refused())?;
    let kinds = [("orders", &mover.orders), ("fills", &mover.fills), ("positions", &mover.positions)];
    out.counters_by(&MOVED, "kind", kinds.map(|(kind, count)| (kind, number(count))))?;
    out.gauge(&MOVED_LSN, number(&mover.upto))?;
    let last = Timestamp(number(&mover.succeeded_at));
    let lag = (last != Timestamp(0)).then(|| now.since(last) as f64 / SECOND as f64);
    out.gauges(&LAG, lag.map(|lag| (&[][..], lag)))?;
    out.gauge(&FAILING, u32::from(mover.is_failing.load(Ordering::Relaxed)))?;
    // Absent while the store is being opened or cannot be used.
    out.gauges_by(&BYTES, "table", store.sizes())?;
    out.gauge(&FILTERS, filters.bytes())?;
    for (counts, took, reads) in [(&LOOK_UPS, &LOOK_UP, &reads.look_ups), (&READS, &READ, &reads.answers)] {
        // An answer that found no row is an answer.
        let is_counted = |outcome: &Outcome| counts.name != READS.name || *outcome != Outcome::Nothing;
        let outcomes = Outcome::ALL.into_iter().filter(is_counted);
        out.counters_by(counts, "result", outcomes.map(|outcome| (outcome.name(), reads.of(outcome))))?;
        out.histograms(took, [(&[][..], reads.took.counted())])?;
    }
    Ok(())
}
