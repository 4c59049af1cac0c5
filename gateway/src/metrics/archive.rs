//! The job that keeps the archive; without it these families have no rows.

use super::family::{Family, Writer};
use crate::jobs::archive::Figures;
use std::fmt::Error;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const HOURS: Family =
    Family::new("papertape_archive_hours_total", "Hours of the recording that became hours of the archive");
const BYTES: Family = Family::new("papertape_archive_bytes_total", "Bytes of the Parquet files of these hours");
const NEWEST: Family = Family::new(
    "papertape_archive_newest_hour_seconds",
    "Unix time of the begin of the newest hour made since this start; 0: none",
);
const BUILDING: Family = Family::new("papertape_archive_building", "1 while hours are made");
const REFUSED: Family = Family::new(
    "papertape_archive_refused_total",
    "Attempts to make hours that were put off because the disk has too little room",
);
const FAILED: Family = Family::new("papertape_archive_failed_total", "Attempts to make hours that failed");
const LATE: Family =
    Family::new("papertape_archive_late_lines_total", "Lines of the recording for hours that were made before");
const REMOVED: Family = Family::new(
    "papertape_archive_removed_total",
    "What retention removed: hour, hours of the archive; raw, files of the recording",
);

pub(super) fn write(figures: Option<&Figures>, out: &mut Writer<'_>) -> Result<(), Error> {
    let Some(figures) = figures else { return Ok(()) };
    let read = |figure: &AtomicU64| figure.load(Relaxed);
    out.counter(&HOURS, read(&figures.hours))?;
    out.counter(&BYTES, read(&figures.bytes))?;
    out.gauge(&NEWEST, read(&figures.newest))?;
    out.gauge(&BUILDING, u64::from(figures.is_building.load(Relaxed)))?;
    out.counter(&REFUSED, read(&figures.refused))?;
    out.counter(&FAILED, read(&figures.failed))?;
    out.counter(&LATE, read(&figures.late))?;
    out.counters_by(&REMOVED, "what", [("hour", read(&figures.removed)), ("raw", read(&figures.raw_removed))])
}
