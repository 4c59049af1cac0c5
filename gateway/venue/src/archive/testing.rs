//! Archives for tests.

use super::build::{self, Options};
use super::room::Room;
use super::seal::{Place, Sealed};
use crate::category::Names;
use archive::store::{Settings, Store};
use engine::time::Timestamp;
use host::thread::Stop;
use std::path::Path;

/// Options that make all hours in this root.
pub(super) fn options(root: &Path) -> Options {
    let now = Timestamp::from_secs(1_900_000_000);
    let store = Store::open(root, Settings::default()).expect("an archive");
    let place = Place::of(store, Room::of(0), 32 << 20, now).expect("the right to make hours");
    let place = Place { is_recorded: true, ..place };
    Options { place, markets: None, from: None, to: None, threads: 1 }
}

/// Makes the hours of a recording.
pub(super) fn built(tape: &Path, options: &Options) -> Vec<Sealed> {
    let mut hours = Vec::new();
    build::from_lines(tape, options, &Names::default(), &Stop::new(), &mut |hour| hours.push(hour)).expect("hours");
    hours
}
