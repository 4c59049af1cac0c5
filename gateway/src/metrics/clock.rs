//! Whether the clock can be trusted: the check at this start, and the difference of server time from the wall clock.

use super::family::{Family, Writer};
use edge::app::App;
use engine::time::SECOND;
use host::leap::Sweeping;
use std::fmt::Error;

const LEAP: Family = Family::new(
    "papertape_clock_leap_seconds",
    "Wall clock less newest record at this start, if that gave a warning: more than a day, or below zero; else 0",
);
const WAITING: Family = Family::new(
    "papertape_clock_sweeps_waiting",
    "1 while no order expires and no market ends by server time, after a start whose clock is doubted",
);
const AHEAD: Family = Family::new(
    "papertape_clock_ahead_seconds",
    "Server time less wall clock: far from 0, the journal is in the future",
);

pub(super) fn write(app: &App, out: &mut Writer<'_>) -> Result<(), Error> {
    let (now, wall) = (app.reads.clock.now(), app.reads.clock.wall_now());
    out.gauge(&LEAP, app.instance.leap.seconds())?;
    out.gauge(&WAITING, u32::from(app.instance.leap.sweeping(now) != Sweeping::Running))?;
    out.gauge(&AHEAD, (now.0 as f64 - wall.0 as f64) / SECOND as f64)
}
