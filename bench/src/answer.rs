//! From an order to its journaled answer, in one process and on one thread: decided, remembered by its id, applied,
//! encoded, appended with its checksum, answered. `http` adds a socket and a sync. The stream also has cancels, which
//! are cheaper and reported separately.

use crate::crowd::Crowd;
use crate::journal::Journal;
use crate::report::{ONE_BY_ONE, PREFAULTED, Report, Size};
use crate::steady::{Steady, Timings};
use engine::id::UserId;
use engine::mutation::codec;
use engine::time::Timestamp;
use std::cell::RefCell;

/// Commands between two syncs, which are not timed: with cores to spare another thread syncs.
const PIECE: usize = 4_096;

pub fn run(size: Size, report: &mut Report) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let journal = RefCell::new(Journal::create(&place.path().join("log"), size.pick(1 << 20, 64 << 20)));
    let mut worlds = Vec::new();
    for crowd in [
        Crowd { users: 10, markets: 64, open: size.pick(20, 1_000) },
        Crowd { users: size.pick(20, 1_000), markets: 64, open: size.pick(200, 100_000) },
    ] {
        let record = |owner: UserId, now: Timestamp, payload: &[u8]| {
            journal.borrow_mut().append(codec::VERSION, owner.0, now.0, payload);
        };
        let mut steady = Steady::new(crowd, record).with_ids();
        steady.go(size.pick(100, 100_000));
        let mut timings = Timings::new();
        for _ in 0..size.pick(1, 50) {
            journal.borrow_mut().tend();
            steady.go_one_by_one(size.pick(100, PIECE), &mut timings);
        }
        report.percentiles(&format!("order, {crowd}"), &timings.placements);
        report.percentiles(&format!("cancel, {crowd}"), &timings.cancels);
        report.computed(steady.world.digest());
        // Like a server, this process never frees the memory of its orders: each round uses other memory.
        worlds.push(steady.world);
    }
    report.note(
        "stream",
        "with ids of their own 9 orders of 20 rest and 2 fill over two levels, 9 are cancels".to_owned(),
    );
    report.durability("process: in the mapping, not synced");
    report.rate_note(ONE_BY_ONE);
    report.note("memory", PREFAULTED);
    report.not_included("making the command, any socket, any sync; each figure includes reading the clock");
}
