//! What is shown beside markets and accounts: samples of the uptime, and files of the operator.

use super::family::{Family, Writer};
use crate::instruments::Instruments;
use std::fmt::Error;

const MINUTES: Family = Family::new(
    "papertape_service_minutes_total",
    "Minutes since this start that each part of the server was measured as up and as down",
);
const BROKEN: Family = Family::new(
    "papertape_published_file_broken",
    "1 while a file of the operator is broken, and what it held before is shown",
);

pub(super) fn write(instruments: &Instruments, out: &mut Writer<'_>) -> Result<(), Error> {
    let Instruments { football, measurements, .. } = instruments;
    let minutes: Vec<_> = measurements.iter().flat_map(|measured| measured.minutes()).collect();
    let rows = minutes.iter().map(|(service, state, count)| ([("service", *service), ("state", *state)], *count));
    let rows: Vec<_> = rows.collect();
    out.counters(&MINUTES, rows.iter().map(|(labels, count)| (&labels[..], *count)))?;
    let of_football = football.iter().flat_map(|almanac| almanac.broken()).map(|(kind, broken)| (kind.name(), broken));
    let incidents = measurements.iter().map(|measured| ("incidents", measured.incidents_are_broken()));
    let files = incidents.chain(of_football);
    out.gauges_by(&BROKEN, "file", files.map(|(file, broken)| (file, u64::from(broken))))
}
