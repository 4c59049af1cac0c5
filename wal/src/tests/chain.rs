//! The checksum of one record, found without reading the log.

use super::*;
use crate::{record_crc, segments};

#[test]
fn the_checksum_of_every_record_is_found() {
    let world = Faults::new(31);
    let (mut running, _) = start(&world, false).expect("new");
    let mut crcs = vec![(running.log.last_lsn(), running.log.last_crc())];
    for number in 0..120_u8 {
        append(&mut running, &[number; 200]);
        crcs.push((running.log.last_lsn(), running.log.last_crc()));
        if number % 40 == 39 {
            running.syncer.turn().expect("no failure");
            snapshot(&mut running, 0);
        }
    }
    append(&mut running, b"not synced");
    crcs.push((running.log.last_lsn(), running.log.last_crc()));
    let mut cases = 0;
    for (lsn, crc) in &crcs {
        assert_eq!(record_crc(&world, *lsn).expect("a sound log"), Some(*crc), "{lsn}");
        cases += 1;
    }
    let last = running.log.last_lsn();
    for lsn in [Lsn::ZERO, last.next(), Lsn(last.0 + 1_000)] {
        assert_eq!(record_crc(&world, lsn).expect("a sound log"), None, "{lsn}");
        cases += 1;
    }
    // Some are released; a snapshot has that of its record, and the first segment that of the record before it.
    let covered = running.snapshots.covered().expect("readable").expect("two of them");
    running.preparer.recycle(covered).expect("room on the disk");
    let first = segments(&world).expect("readable").first().expect("a segment").first_lsn;
    let snapshots = running.snapshots.list().expect("readable");
    let mut released = 0;
    for (lsn, crc) in &crcs {
        let is_there = lsn.next() >= first || snapshots.contains(lsn);
        assert_eq!(record_crc(&world, *lsn).expect("a sound log"), is_there.then_some(*crc), "{lsn}");
        released += usize::from(!is_there);
        cases += 1;
    }
    assert!(released > 10, "{released}");
    println!("checksums of records: {cases} cases");
}

/// A copy of a log that goes on by itself: the checksums differ from the first record on that differs, although those after
/// it are the same.
#[test]
fn logs_that_part_have_other_checksums() {
    let one = Faults::new(32);
    let (mut running, _) = start(&one, false).expect("new");
    let same = append(&mut running, b"same").0;
    running.syncer.turn().expect("no failure");
    drop(running);
    one.kill();
    let other = one.copy(33);
    let ends = [(&one, b"this way"), (&other, b"that way")].map(|(world, parting)| {
        let (mut running, _) = start(world, false).expect("a sound log");
        let parted = append(&mut running, parting).0;
        (0..9).for_each(|_| _ = append(&mut running, b"same again"));
        running.syncer.turn().expect("no failure");
        (parted, running.log.last_lsn())
    });
    let (parted, last) = ends[0];
    assert!(ends[1] == ends[0] && parted > same);
    for lsn in (1..=last.0).map(Lsn) {
        let crc = |world| record_crc(world, lsn).expect("a sound log").expect("it is there");
        assert_eq!(crc(&one) == crc(&other), lsn < parted, "{lsn}");
    }
    println!("logs that part: {last} cases");
}
