//! How many groups a second become durable: our log, raw `pwrite` and `fdatasync` of as many bytes, and other logs, in
//! turns.

use crate::journal::{Journal, RECORD_BYTES};
use crate::peers;
use crate::raw::{Raw, SYNC_FLOOR, with_short_slice};
use crate::report::{Report, Size, nanoseconds, timed};
use std::time::Instant;

const ROUNDS: usize = 9;
/// Records of a group.
const GROUPS: [usize; 3] = [1, 64, 1_024];

pub fn run(size: Size, report: &mut Report) {
    let ((), slice) = with_short_slice(|| GROUPS.into_iter().for_each(|group| measure(group, size, report)));
    report.note("slice of the threads", slice);
    report.durability("power: every group is covered by fdatasync, or its like, before the next begins");
    report.not_included("encoding the facts, whoever waits, making segments, a device that acknowledges too early");
}

fn measure(group: usize, size: Size, report: &mut Report) {
    let file_bytes = size.pick(1 << 20, 64 << 20);
    let syncs = size.pick(3, 400);
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut raw = Raw::filled(file_bytes);
    let mut log = Journal::create(&place.path().join("ours"), file_bytes);
    let mut others = Vec::new();
    if report.with_peers() {
        for peer in peers::COMMIT {
            others.push((peer, (peer.open)(&place.path().join(peer.name)), Vec::new(), Vec::new()));
        }
    }
    let bytes = vec![0x5a; group * RECORD_BYTES];
    let (mut ratios, mut probes, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ours_nanos, mut raw_nanos) = (nanoseconds(), nanoseconds());
    for _ in 0..size.pick(1, ROUNDS) {
        probes.push(raw.probe());
        let (raw_seconds, ()) = timed(|| {
            for _ in 0..syncs {
                let begun = Instant::now();
                raw.commit(&bytes);
                raw_nanos.saturating_record(begun.elapsed().as_nanos() as u64);
            }
        });
        log.tend();
        let (ours, ()) = timed(|| {
            for _ in 0..syncs {
                let begun = Instant::now();
                log.commit(group);
                ours_nanos.saturating_record(begun.elapsed().as_nanos() as u64);
            }
        });
        ratios.push(raw_seconds / ours);
        rates.push((group * syncs) as f64 / ours);
        for (_, peer, beside, rates) in &mut others {
            let theirs = peer.commit(group, syncs);
            beside.push(theirs / ours);
            rates.push((group * syncs) as f64 / theirs);
        }
    }
    report.computed((group * syncs).to_le_bytes());
    let name = |what: &str| format!("{group} a commit: {what}");
    report.middle(&name("records"), rates, "a second");
    report.ratio_above(&SYNC_FLOOR, &probes, &name("beside raw"), ratios);
    for (peer, _, beside, rates) in others {
        report.middle(&name(&format!("records of {}", peer.name)), rates, "a second");
        report.ratio_above(&SYNC_FLOOR, &probes, &name(&format!("beside {}", peer.name)), beside);
    }
    report.percentiles(&name("ours"), &ours_nanos);
    report.percentiles(&name("raw"), &raw_nanos);
    log.end();
}
