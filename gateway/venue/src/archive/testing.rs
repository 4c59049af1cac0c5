//! Archives for tests.

use super::build::{self, Options};
use super::room::Room;
use super::seal::{Place, Sealed};
use crate::category::Names;
use archive::store::{Settings, Store};
use engine::time::Timestamp;
use host::thread::Stop;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a test waits for the lock of its archive.
const PATIENCE: Duration = Duration::from_secs(60);

/// Options that make all hours in this root.
pub(super) fn options(root: &Path) -> Options {
    let now = Timestamp::from_secs(1_900_000_000);
    let begun = Instant::now();
    let place = loop {
        // A program that another test starts at this moment has the lock of the one before until it runs.
        let store = Store::open(root, Settings::default()).expect("an archive");
        match Place::of(store, Room::of(0), 32 << 20, now) {
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            place => break place.expect("the right to make hours"),
        }
    };
    let place = Place { is_recorded: true, ..place };
    Options { place, markets: None, from: None, to: None, threads: 1 }
}

/// Makes the hours of a recording.
pub(super) fn built(tape: &Path, options: &Options) -> Vec<Sealed> {
    let mut hours = Vec::new();
    build::from_lines(tape, options, &Names::default(), &Stop::new(), &mut |hour| hours.push(hour)).expect("hours");
    hours
}
