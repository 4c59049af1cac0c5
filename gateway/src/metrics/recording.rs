//! The recording of a live venue; without one these families have no rows.

use super::family::{Family, Writer};
use crate::app::App;
use std::fmt::Error;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const LINES: Family = Family::new("papertape_recording_lines_total", "Lines written to the recording");
const BYTES: Family = Family::new("papertape_recording_bytes_total", "What they came to before they are packed");
const DROPPED: Family = Family::new(
    "papertape_recording_dropped_total",
    "Messages of the venue that were not recorded: the disk was slow, full or failing",
);
const GAPS: Family = Family::new(
    "papertape_recording_gaps_total",
    "Gap lines written: connections that were lost, and those of which something was not recorded",
);

pub(super) fn write(app: &App, out: &mut Writer<'_>) -> Result<(), Error> {
    let Some(figures) = &app.recording else { return Ok(()) };
    let read = |figure: &AtomicU64| figure.load(Relaxed);
    out.counter(&LINES, read(&figures.lines))?;
    out.counter(&BYTES, read(&figures.bytes))?;
    out.counter(&DROPPED, read(&figures.dropped))?;
    out.counter(&GAPS, read(&figures.gaps))
}
