//! Requests: how many of which route ended how, refusals by code, and how long placements and cancels took. Operations
//! of sockets count like the HTTP requests.

use super::family::{Family, Writer};
use edge::app::App;
use std::fmt::Error;

const REQUESTS: Family = Family::new(
    "papertape_requests_total",
    "Requests and socket operations answered, by operation name of the machine description and class of status; \
     unrouted: no such route or method, or a malformed request",
);
const REFUSALS: Family =
    Family::new("papertape_refusals_total", "Requests and socket operations refused, by error code of the contract");
const ACKS: Family = Family::new(
    "papertape_ack_seconds",
    "From the head of an order request read to its response written to the connection; one batch is one request; \
     accepted: a status below 400",
);
const FINDINGS: Family = Family::new(
    "papertape_strict_findings_total",
    "Findings of the rehearsal of the venue's checks in signed orders, by rule and by what the venue would do",
);
const PLACEMENTS: Family =
    Family::new("papertape_placements_in_flight", "Placement requests admitted and not answered yet");
const CONNECTIONS: Family =
    Family::new("papertape_connections_open", "TCP connections open, sockets and streams among them");
const CONNECTIONS_REFUSED: Family =
    Family::new("papertape_connections_refused_total", "TCP connections closed immediately because a cap was reached");

pub(super) fn write(app: &App, out: &mut Writer<'_>) -> Result<(), Error> {
    let front = &app.front;
    if let Some(meters) = &front.meters {
        out.counters(&REQUESTS, meters.requests().iter().map(|(labels, count)| (&labels[..], *count)))?;
        out.counters(&REFUSALS, meters.refusals().iter().map(|(labels, count)| (&labels[..], *count)))?;
        out.histograms(&ACKS, meters.acks().iter().map(|(labels, counted)| (&labels[..], counted.clone())))?;
    }
    out.counters(&FINDINGS, app.rehearsal.counted().iter().map(|(labels, count)| (&labels[..], *count)))?;
    out.gauge(&PLACEMENTS, front.limits.placements_in_flight())?;
    out.gauge(&CONNECTIONS, front.connections.open())?;
    out.counter(&CONNECTIONS_REFUSED, front.connections.refused())
}
