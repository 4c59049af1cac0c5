//! Torn tail or lost data? The table of recovery, and the stale record after a cut.

use crate::fault::Faults;
use crate::planted;
use crate::record;
use crate::tests::{Fact, append, put_changed, recover, snapshot, start, tiny};
use crate::{Dir, Error, Fault, Kind, Lsn, Scan};

const FIRST: &str = "00000000000000000001.wal";

/// A log of one segment. LSN 1 is the start; 2 to 5 are synced, and 6 to 9 prove that; nothing after 5 is synced.
struct Sample {
    world: Faults,
    /// Offset of each record by its LSN.
    offsets: Vec<usize>,
}

fn sample(with_snapshot: bool) -> Sample {
    let world = Faults::new(4);
    let (mut running, _) = start(&world, false).expect("new");
    for number in 2..=9u8 {
        append(&mut running, &[number; 64]);
        if number == 5 {
            running.syncer.turn().expect("no failure");
            if with_snapshot {
                snapshot(&mut running, 0);
            }
        }
    }
    world.kill();
    let mut offsets = vec![0];
    let mut scan = Scan::open_all(&world).expect("log");
    while let Some(entry) = scan.next().expect("record") {
        offsets.push(entry.offset as usize);
    }
    assert_eq!(offsets.len(), 10);
    Sample { world, offsets }
}

/// The expected result of recovery.
#[derive(Debug, PartialEq)]
enum Expected {
    /// The log continues after this LSN; the number of bytes cut.
    Truncated(u64, u64),
    /// Promised records are gone from this LSN on.
    Lost(u64),
}

#[test]
fn the_table() {
    use Expected::{Lost, Truncated};
    type Change = fn(&mut [u8], &[usize]);
    let slot = record::slot_bytes(64) as u64;
    #[rustfmt::skip]
    let table: [(&str, Change, Expected); 17] = [
        ("nothing", |_, _| {}, Truncated(9, 0)),
        ("last byte of the last record", |b, at| b[at[9] + 119] ^= 1, Truncated(8, slot)),
        ("last record has no header", |b, at| b[at[9]..at[9] + 56].fill(0), Truncated(8, slot)),
        ("last record has no payload", |b, at| b[at[9] + 56..at[9] + 120].fill(0), Truncated(8, 51)),
        ("last record gone", |b, at| b[at[9]..].fill(0), Truncated(8, 0)),
        ("two torn in a row", |b, at| { b[at[7] + 60] ^= 1; b[at[8] + 60] ^= 1 }, Truncated(6, 3 * slot)),
        ("hole, good ones after it", |b, at| b[at[7]..at[8]].fill(0), Truncated(6, 3 * slot)),
        ("first unsynced torn, good ones after it", |b, at| b[at[6] + 9] ^= 1, Truncated(5, 4 * slot)),
        ("all unsynced gone", |b, at| b[at[6]..].fill(0), Truncated(5, 0)),
        ("impossible length", |b, at| b[at[8]..at[8] + 4].fill(0xff), Truncated(7, 2 * slot)),
        ("length beyond the segment", |b, at| b[at[8]..at[8] + 4].copy_from_slice(&100_000u32.to_le_bytes()), Truncated(7, 2 * slot)),
        ("length of a header", |b, at| b[at[8]..at[8] + 4].copy_from_slice(&56u32.to_le_bytes()), Truncated(7, 2 * slot)),
        ("bytes after the end", |b, _| b[4000] = 1, Truncated(9, 4001 - 1080)),
        ("last synced torn", |b, at| b[at[5] + 70] ^= 1, Lost(5)),
        ("last synced gone", |b, at| b[at[5]..at[6]].fill(0), Lost(5)),
        ("first record torn", |b, at| b[at[1] + 30] ^= 1, Lost(1)),
        ("synced and half of the rest gone", |b, at| { b[at[4]..at[9]].fill(0) }, Lost(4)),
    ];
    let mut cases = 0;
    for (what, change, expected) in table {
        let sample = sample(false);
        put_changed(&sample.world, FIRST, |bytes| change(bytes, &sample.offsets));
        check(what, &sample.world, &expected);
        cases += 1;
    }
    println!("rows of the table: {cases}");
}

fn check(what: &str, world: &Faults, expected: &Expected) {
    let dir = Dir::open(world.clone(), tiny()).expect("open");
    match (recover(&dir, false), expected) {
        (Ok((_, recovered)), Expected::Truncated(last, bytes)) => {
            assert_eq!((recovered.last_lsn.0, recovered.bytes_cut), (*last, *bytes), "{what}");
            // The second time there is nothing left to cut.
            let (_, again) = recover(&dir, false).expect("it was repaired");
            assert_eq!((again.last_lsn.0, again.bytes_cut), (*last, 0), "{what}, again");
        }
        (Err(Error::Lost(loss)), Expected::Lost(lsn)) => {
            assert_eq!((loss.lsn.0, loss.file.as_str()), (*lsn, FIRST), "{what}");
            assert!(loss.synced >= loss.lsn, "{what}");
        }
        (Ok((_, recovered)), _) => panic!("{what}: continued after {}", recovered.last_lsn),
        (Err(error), _) => panic!("{what}: {error}"),
    }
}

/// Changes a byte of a record of 64 bytes and corrects its checksum.
fn put_resealed(world: &Faults, at: usize, byte: usize, value: u8) {
    put_changed(world, FIRST, |bytes| {
        let slot = &mut bytes[at..at + record::HEADER_BYTES + 64];
        slot[byte] = value;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&slot[..4]), &slot[8..]);
        slot[4..8].copy_from_slice(&crc.to_le_bytes());
    });
}

/// A whole record that this program cannot read was written by a newer one. It must not be cut off, synced or not.
#[test]
fn records_of_a_newer_program_are_refused_and_stay() {
    type Expected = fn(u64) -> Fault;
    let kind: (usize, Expected) = (50, |offset| Fault::Kind { found: 9, offset });
    let reserved: (usize, Expected) = (52, |offset| Fault::Reserved { offset });
    let mut cases = 0;
    for (byte, expected) in [kind, reserved] {
        for lsn in [2, 5, 6, 9] {
            let sample = sample(false);
            let at = sample.offsets[lsn];
            put_resealed(&sample.world, at, byte, 9);
            let before = sample.world.contents(FIRST);
            let dir = Dir::open(sample.world.clone(), tiny()).expect("open");
            match recover(&dir, false).map(|(_, recovered)| recovered.last_lsn) {
                Err(Error::Format { file, fault }) => assert_eq!((file.as_str(), fault), (FIRST, expected(at as u64))),
                other => panic!("byte {byte} of {lsn}: {other:?}"),
            }
            assert_eq!(sample.world.contents(FIRST), before, "byte {byte} of {lsn}: nothing was changed");
            cases += 1;
        }
    }
    println!("records of a newer program: {cases} cases");
}

/// Nothing, not even a crash, stores bytes after the last record of a full segment. Such bytes are refused, and the
/// override clears them without losing a record.
#[test]
fn bytes_after_a_full_segment_are_refused() {
    let world = Faults::new(7);
    let (mut running, _) = start(&world, false).expect("new");
    let mut last = Lsn::ZERO;
    for number in 0..60 {
        last = append(&mut running, &[number; 100]).0;
        running.syncer.turn().expect("no failure");
    }
    world.kill();
    let end = world.contents(FIRST).expect("there").len() - 1;
    put_changed(&world, FIRST, |bytes| bytes[end] = 1);
    let found = |accept_loss| {
        let dir = Dir::open(world.clone(), tiny())?;
        recover(&dir, accept_loss).map(|(_, recovered)| recovered.last_lsn)
    };
    match found(false) {
        Err(Error::Format { file, fault: Fault::Trailing { offset } }) => {
            assert_eq!((file.as_str(), offset), (FIRST, end as u64));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(found(true).expect("with the override"), last);
    assert_eq!(world.contents(FIRST).expect("there")[end], 0, "cleared");
    assert_eq!(found(false).expect("without the override"), last);
}

/// A whole record with the right number that follows another one, or that an earlier start wrote, does not belong to
/// this log.
#[test]
fn a_record_follows_by_its_chain_and_by_its_epoch() {
    for (what, byte, value) in [("another record's follower", 44, 0xa5), ("an earlier start's", 40, 0)] {
        let sample = sample(false);
        put_resealed(&sample.world, sample.offsets[9], byte, value);
        check(what, &sample.world, &Expected::Truncated(8, record::slot_bytes(64) as u64));
    }
}

#[test]
fn proof_of_a_sync_may_come_from_elsewhere() {
    // Everything after record 4 is zero: the log itself proves nothing any more.
    let gone = |sample: &Sample| {
        put_changed(&sample.world, FIRST, |bytes| bytes[sample.offsets[5]..].fill(0));
    };
    let plain = sample(false);
    gone(&plain);
    check("no proof", &plain.world, &Expected::Truncated(4, 0));

    let covered = sample(true);
    gone(&covered);
    check("a snapshot", &covered.world, &Expected::Lost(5));

    // The snapshot is damaged, and its name still proves that there was one.
    let damaged = sample(true);
    gone(&damaged);
    put_changed(&damaged.world, "00000000000000000005.snapshot", |bytes| bytes[60] ^= 1);
    check("a damaged snapshot", &damaged.world, &Expected::Lost(5));

    // The only proof is the last record of a clean stop, which ends in zeros.
    let world = Faults::new(6);
    let (mut running, _) = start(&world, false).expect("new");
    append(&mut running, &[2; 64]);
    running.syncer.turn().expect("no failure");
    running.log.append_clean_stop(5).expect("room");
    world.kill();
    put_changed(&world, FIRST, |bytes| bytes[64 + 56 + 70] ^= 1);
    check("a clean stop", &world, &Expected::Lost(2));

    let stopped = sample(false);
    let (mut running, _) = start(&stopped.world, false).expect("whole");
    running.log.append_clean_stop(5).expect("room");
    running.syncer.finish().expect("no failure");
    stopped.world.kill();
    put_changed(&stopped.world, FIRST, |bytes| bytes[stopped.offsets[9]..].fill(0));
    check("the floor of a clean stop", &stopped.world, &Expected::Lost(9));
}

#[test]
fn a_clean_stop_is_distinguished_from_a_crash() {
    let sample = sample(false);
    let dir = Dir::open(sample.world.clone(), tiny()).expect("open");
    let (_, recovered) = recover(&dir, false).expect("whole");
    assert!(!recovered.clean_stop);
    let mut running = dir.start(recovered, 1, Box::new(|_| {})).expect("start");
    running.log.append_clean_stop(5).expect("room");
    running.syncer.finish().expect("no failure");
    sample.world.kill();
    let dir = Dir::open(sample.world.clone(), tiny()).expect("open");
    let (_, recovered) = recover(&dir, false).expect("whole");
    assert!(recovered.clean_stop);
    assert_eq!((recovered.last_epoch, recovered.segments), (2, 1));
}

/// Record 3 is torn, 4 to 6 reached the disk. Recovery cuts at 3, and new records 3 and 4 are appended that end exactly
/// where the old 5 begins. The process dies again. The old 5 and 6 must not come back as their followers.
///
/// Returns what is found in the end, and what was appended.
fn stale_records() -> (Vec<Fact>, Vec<Fact>) {
    let world = Faults::new(5);
    let (mut running, _) = start(&world, false).expect("new");
    append(&mut running, &[2; 64]);
    running.syncer.turn().expect("no failure");
    for number in 3..=6u8 {
        append(&mut running, &[number; 64]);
    }
    world.kill();
    let torn_at = 64 + record::slot_bytes(0) + record::slot_bytes(64);
    put_changed(&world, FIRST, |bytes| bytes[torn_at + 60] ^= 1);

    let (mut running, mut facts) = start(&world, false).expect("a torn tail");
    assert_eq!(facts.last().expect("two records").0, Lsn(2));
    facts.push((Lsn(3), Kind::EpochStart, Vec::new()));
    let room = 2 * record::slot_bytes(64) - record::slot_bytes(0);
    facts.push(append(&mut running, &vec![9; room - record::HEADER_BYTES]));
    world.kill();
    let (_, found) = start(&world, false).expect("whole");
    (found, facts)
}

#[test]
fn stale_records_do_not_come_back() {
    let (found, appended) = stale_records();
    assert_eq!(found, appended);

    // Without the zeroing, chain and epoch still reject them.
    planted::SKIP_ZEROING.set(true);
    let (found, appended) = stale_records();
    assert_eq!(found, appended);

    // Without both they do come back: the danger is real, and this test detects it.
    planted::SKIP_CHAIN.set(true);
    let (found, appended) = stale_records();
    planted::SKIP_CHAIN.set(false);
    planted::SKIP_ZEROING.set(false);
    assert_eq!(found.len(), appended.len() + 2, "checksum and LSN alone accept the old 5 and 6");
}
