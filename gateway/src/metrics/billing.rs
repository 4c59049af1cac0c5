//! Events of the payment provider, by what became of them.

use super::family::{Family, Writer};
use edge::api::billing::provider::{Counted, Desk};
use std::fmt::Error;

const EVENTS: Family = Family::new(
    "papertape_billing_events_total",
    "Events of the payment provider, by what became of them; the log names each one but applied, repeated, ignored and not_genuine",
);

pub(super) fn write(desk: Option<&Desk>, out: &mut Writer<'_>) -> Result<(), Error> {
    let counts: Vec<(&'static str, u64)> = match desk {
        Some(desk) => desk.counts().collect(),
        None => Counted::ALL.iter().map(|what| (what.name(), 0)).collect(),
    };
    out.counters_by(&EVENTS, "outcome", counts)
}
