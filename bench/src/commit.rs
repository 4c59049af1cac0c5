//! Durable groups a second: our log, raw `pwrite` and `fdatasync` of as many bytes, and other logs, in alternating
//! rounds.

use crate::journal::{Journal, RECORD_BYTES, read_back};
use crate::peers;
use crate::raw::{Raw, SYNC_FLOOR, with_short_slice};
use crate::report::{ONE_BY_ONE, Report, Size, nanoseconds, timed};
use hdrhistogram::Histogram;
use std::time::Instant;

const ROUNDS: usize = 9;
/// Groups of ours and of raw writes, in each round.
const TURNS: usize = 20;
/// Records of a group.
const GROUPS: [usize; 3] = [1, 64, 1_024];

pub fn run(size: Size, report: &mut Report) {
    let ((), slice) = with_short_slice(|| GROUPS.into_iter().for_each(|group| measure(group, size, report)));
    report.note("slice of the threads", slice);
    report.rate_note(ONE_BY_ONE);
    report.durability("power: every group is covered by fdatasync, or an equivalent, before the next begins");
    report.not_included("encoding the facts, waiting clients, making segments, a device that acknowledges too early");
}

fn measure(group: usize, size: Size, report: &mut Report) {
    let file_bytes = size.pick(2 << 20, 64 << 20);
    let syncs = size.pick(TURNS, 400);
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut raw = Raw::filled(file_bytes);
    let directory = place.path().join("ours");
    let mut log = Journal::create(&directory, file_bytes);
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
        log.tend();
        let (mut raw_seconds, mut ours) = (0.0, 0.0);
        // In short alternating intervals, so that both run under the same conditions; all of them count, slow ones
        // included.
        for _ in 0..TURNS {
            raw_seconds += times(syncs / TURNS, &mut raw_nanos, || raw.commit(&bytes));
            ours += times(syncs / TURNS, &mut ours_nanos, || log.commit(group));
        }
        ratios.push(raw_seconds / ours);
        rates.push((group * syncs) as f64 / ours);
        for (_, peer, beside, rates) in &mut others {
            let theirs = peer.commit(group, syncs);
            beside.push(theirs / ours);
            rates.push((group * syncs) as f64 / theirs);
        }
    }
    let name = |what: &str| format!("{group} a commit: {what}");
    report.middle(&name("records"), &rates, "a second");
    report.ratio_above(&[(&SYNC_FLOOR, &probes)], &name("beside raw"), ratios);
    for (peer, _, beside, rates) in others {
        report.middle(&name(&format!("records of {}", peer.name)), &rates, "a second");
        report.ratio_above(&[(&SYNC_FLOOR, &probes)], &name(&format!("beside {}", peer.name)), beside);
    }
    report.percentiles(&name("ours"), &ours_nanos);
    report.percentiles(&name("raw"), &raw_nanos);
    log.end();
    let (kept, digest) = read_back(&directory);
    assert_eq!(kept, (size.pick(1, ROUNDS) * syncs * group) as u64, "every record is read back");
    report.computed(digest);
}

/// Seconds of this many commits, one after the other.
fn times(count: usize, nanos: &mut Histogram<u64>, mut commit: impl FnMut()) -> f64 {
    let (seconds, ()) = timed(|| {
        for _ in 0..count {
            let begun = Instant::now();
            commit();
            nanos.saturating_record(begun.elapsed().as_nanos() as u64);
        }
    });
    seconds
}
