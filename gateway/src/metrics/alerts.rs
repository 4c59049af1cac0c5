//! The job that delivers alerts.

use super::family::{Family, Writer};
use integrations::figures::{Figures, Way};
use std::fmt::Error;

const DELIVERED: Family =
    Family::new("papertape_alerts_delivered_total", "Alerts that a mail server, chat or webhook has taken, by channel");
const FAILED: Family =
    Family::new("papertape_alert_attempts_failed_total", "Attempts to deliver that failed, by channel");
const GIVEN_UP: Family = Family::new(
    "papertape_alerts_given_up_total",
    "Alerts whose last attempt failed, or whose target was switched off by it, by channel",
);
const OWED: Family = Family::new("papertape_alerts_owed", "Alerts that wait, counted once for each of their receivers");
const DROPPED: Family =
    Family::new("papertape_alerts_dropped_total", "Alerts that were dropped because their user was owed too many");

pub(super) fn write(figures: &Figures, out: &mut Writer<'_>) -> Result<(), Error> {
    let by_way = |count: fn(&Figures, Way) -> u64| Way::ALL.map(|way| (way.name(), count(figures, way)));
    for (family, rows) in [
        (&DELIVERED, by_way(Figures::delivered)),
        (&FAILED, by_way(Figures::failed)),
        (&GIVEN_UP, by_way(Figures::given_up)),
    ] {
        out.counters_by(family, "channel", rows)?;
    }
    out.gauge(&OWED, figures.owed())?;
    out.counter(&DROPPED, figures.dropped())
}
