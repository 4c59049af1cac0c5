//! Live venues and their recording; without them these families have no rows.

use super::family::{Family, Writer};
use engine::time::{SECOND, Timestamp};
use std::fmt::Error;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use venue::{Health, Upstream};

const CONNECTIONS: Family = Family::new("papertape_venue_connections", "Sockets to a live venue that are open");
const SUBSCRIBED: Family = Family::new(
    "papertape_venue_subscribed_tokens",
    "Tokens whose books come from a live venue, subscribed on its sockets or polled",
);
const AGE: Family =
    Family::new("papertape_venue_age_seconds", "Since the last message on any connection to a live venue");
const RECONNECTS: Family = Family::new("papertape_venue_reconnects_total", "Sockets to a live venue that were lost");
const FAILURES: Family =
    Family::new("papertape_venue_rest_failures", "Calls to a live venue that failed since the last one that did not");
const SKIPPED: Family = Family::new(
    "papertape_venue_skipped_total",
    "Messages or parts of a venue or a recording that were not used, by reason",
);
const LINES: Family = Family::new("papertape_recording_lines_total", "Lines written to the recording");
const BYTES: Family = Family::new("papertape_recording_bytes_total", "Bytes of these lines before compression");
const DROPPED: Family = Family::new(
    "papertape_recording_dropped_total",
    "Messages of the venue that were not recorded: the disk was slow, full or failing",
);
const GAPS: Family = Family::new(
    "papertape_recording_gaps_total",
    "Gap lines written: lost connections, and connections with messages that were not recorded",
);

pub(super) fn write(upstream: &Upstream, now: Timestamp, out: &mut Writer<'_>) -> Result<(), Error> {
    let read = |figure: &AtomicU64| figure.load(Relaxed);
    let Upstream { venues, skips, recording, playback: _ } = upstream;
    if !venues.is_empty() {
        let labels: Vec<_> = venues.iter().map(|(origin, _)| [("venue", origin.name())]).collect();
        let rows = || labels.iter().map(|labels| &labels[..]).zip(venues.iter().map(|(_, health)| health));
        out.gauges(&CONNECTIONS, rows().map(|(labels, health)| (labels, health.connections.load(Relaxed))))?;
        out.gauges(&SUBSCRIBED, rows().map(|(labels, health)| (labels, read(&health.subscribed_tokens))))?;
        let age = |health: &Health| now.since(Timestamp(read(&health.alive_at))) as f64 / SECOND as f64;
        out.gauges(&AGE, rows().map(|(labels, health)| (labels, age(health))))?;
        out.counters(&RECONNECTS, rows().map(|(labels, health)| (labels, read(&health.reconnects))))?;
        out.gauges(&FAILURES, rows().map(|(labels, health)| (labels, health.rest_failures.load(Relaxed))))?;
    }
    if let Some(skips) = skips {
        let rows: Vec<_> = skips.all().map(|(kind, count)| ([("reason", kind)], count)).collect();
        out.counters(&SKIPPED, rows.iter().map(|(labels, count)| (&labels[..], *count)))?;
    }
    let Some(figures) = recording else { return Ok(()) };
    out.counter(&LINES, read(&figures.lines))?;
    out.counter(&BYTES, read(&figures.bytes))?;
    out.counter(&DROPPED, read(&figures.dropped))?;
    out.counter(&GAPS, read(&figures.gaps))
}
