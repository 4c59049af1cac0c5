//! What a log continues with after an operator accepted a loss, and after an interrupted first start.

use super::*;
use crate::contents::read_contents;
use crate::segment::SegmentHeader;
use crate::{Fault, Scan, segment_name, segments, snapshot_name};

/// A log of several segments, all of it synced, with snapshots at these LSNs.
fn sample(snapshots: &[u64]) -> Faults {
    let world = Faults::new(1);
    let (mut running, _) = start(&world, false).expect("new");
    for lsn in 2..=40u64 {
        append(&mut running, &[lsn as u8; 300]);
        running.syncer.turn().expect("no failure");
        if snapshots.contains(&lsn) {
            snapshot(&mut running, 0);
        }
    }
    world.kill();
    world
}

/// Changes a byte in the middle of a record.
fn tear(world: &Faults, lsn: u64) {
    let mut scan = Scan::open_all(world).expect("a log");
    let (name, at) = loop {
        let entry = scan.next().expect("whole").expect("it is there");
        if entry.lsn == Lsn(lsn) {
            break (entry.file.to_owned(), entry.offset as usize);
        }
    };
    put_changed(world, &name, |bytes| bytes[at + 60] ^= 1);
}

fn damage_header(world: &Faults, name: &str) {
    put_changed(world, name, |bytes| bytes[20] ^= 1);
}

fn take(world: &Faults, names: &[String]) {
    names.iter().for_each(|name| drop(world.take(name).expect("there")));
}

#[test]
fn an_accepted_loss_keeps_the_remaining_records() {
    let names: Vec<String> = segments(&sample(&[])).expect("a log").into_iter().map(|segment| segment.name).collect();
    let second = segments(&sample(&[])).expect("a log")[1].first_lsn.0;
    assert!(names.len() > 3 && second > 10, "{names:?}");
    type Change = fn(&Faults, &[String]);
    // Snapshots, change → the LSN it continues after, number of records replayed, segments that stay, and snapshots
    // that are set aside.
    type Row<'a> = (&'static str, &'a [u64], Change, u64, u64, usize, &'a [u64]);
    let table: [Row; 9] = [
        ("the first segment is gone", &[], |w, of| take(w, &of[..1]), 0, 0, 0, &[]),
        ("its header is damaged", &[], |w, of| damage_header(w, &of[0]), 0, 0, 0, &[]),
        ("the segments after a snapshot are gone", &[second - 1], |w, of| take(w, &of[..2]), second - 1, 0, 0, &[]),
        (
            "its header is damaged, after a snapshot",
            &[second - 1],
            |w, of| damage_header(w, &of[1]),
            second - 1,
            0,
            0,
            &[],
        ),
        ("the log ends before the snapshot", &[second + 2], |w, of| take(w, &of[1..]), second + 2, 0, 0, &[]),
        ("a record is torn after a snapshot", &[5], |w, _| tear(w, 8), 7, 2, 1, &[]),
        ("after one at the last remaining record", &[7], |w, _| tear(w, 8), 7, 0, 1, &[]),
        ("in a later segment", &[5], |w, _| tear(w, 25), 24, 19, 3, &[]),
        (
            "between a snapshot and a newer one that is damaged",
            &[5, 9],
            |w, _| {
                tear(w, 8);
                put_changed(w, &snapshot_name(Lsn(9)), |bytes| bytes[60] ^= 1);
            },
            7,
            2,
            1,
            &[9],
        ),
    ];
    for (what, snapshots, change, last, replayed, kept, put_aside) in &table {
        let world = sample(snapshots);
        change(&world, &names);
        let before: Vec<String> = world.names().into_iter().filter(|name| name.ends_with(".wal")).collect();
        let refused = Dir::open(world.clone(), tiny()).and_then(|dir| recover(&dir, false)).err();
        assert!(matches!(refused, Some(Error::Lost(_) | Error::Format { .. })), "{what}: {refused:?}");

        let dir = Dir::open(world.clone(), tiny()).expect("open");
        let numbers: Vec<u64> = segments(&world).expect("a log").iter().filter_map(number).collect();
        let (found, recovered) = recover(&dir, true).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(found.last().is_none_or(|fact| fact.0.0 == *last), "{what}: {:?}", found.last());
        let outcome = (recovered.last_lsn.0, recovered.records, recovered.segments as usize, recovered.loss.is_some());
        assert_eq!(outcome, (*last, *replayed, *kept, true), "{what}");
        assert!(numbers.iter().all(|number| *number < recovered.next_number), "{what}: {numbers:?}");
        // Exactly the files that are not kept are set aside.
        let lost = before[*kept..].iter().cloned().chain(put_aside.iter().map(|lsn| snapshot_name(Lsn(*lsn))));
        let mut lost: Vec<String> = lost.map(|name| format!("{name}.lost")).collect();
        lost.sort();
        let aside: Vec<String> = world.names().into_iter().filter(|name| name.ends_with(".lost")).collect();
        assert_eq!(aside, lost, "{what}");

        let mut running = dir.start(recovered, 1, Box::new(|_| {})).expect("room");
        let more = append(&mut running, b"more");
        running.syncer.turn().expect("no failure");
        drop(running);
        world.kill();
        let (_, again) = start(&world, false).unwrap_or_else(|error| panic!("{what}, the next start: {error}"));
        assert_eq!(
            (again.last(), again.len()),
            (Some(&more), found.len() + 3),
            "{what}: the start, the loss, and more"
        );
    }
    println!("losses that were accepted: {} cases", table.len());
}

fn number(segment: &crate::SegmentFile) -> Option<u64> {
    segment.header.as_ref().ok().map(|header| header.number)
}

/// The epoch file is written after the first segment. Without it, files that were certainly never written to are
/// created again.
#[test]
fn an_interrupted_first_start_begins_again() {
    type Make = fn(&Faults);
    fn segment(world: &Faults, lsn: u64, change: impl FnOnce(&mut Vec<u8>)) {
        let (number, first_lsn) = (1, Lsn(lsn));
        let header = SegmentHeader { directory_id: [7; 16], number, first_lsn, previous_crc: 0, bytes: 4_096 };
        let mut bytes = vec![0; 4_096];
        bytes[..64].copy_from_slice(&header.encode());
        change(&mut bytes);
        world.put(&segment_name(first_lsn), &bytes);
    }
    // The files that exist, and whether they may be removed.
    let table: [(&str, Make, bool); 7] = [
        ("nothing", |_| {}, true),
        ("an empty first segment", |w| segment(w, 1, |_| {}), true),
        ("one with a record", |w| segment(w, 1, |bytes| bytes[64] = 1), false),
        ("an empty later segment", |w| segment(w, 2, |_| {}), false),
        ("a spare of zeros", |w| w.put("00000001.spare", &[0; 4_096]), true),
        ("a spare of something", |w| w.put("00000001.spare", &[1; 4_096]), false),
        ("a snapshot", |w| w.put(&snapshot_name(Lsn(3)), &[]), false),
    ];
    for (what, make, begins) in &table {
        let world = Faults::new(1);
        make(&world);
        let before = world.names();
        let dir = Dir::open(world.clone(), tiny()).expect("open");
        let recovered = dir.recover(None, false).and_then(|recovery| recovery.finish());
        match recovered {
            Ok(recovered) => {
                assert!(*begins, "{what}: removed");
                let left = read_contents(&world, None).expect("readable");
                assert!(left.segments.is_empty() && left.spares.is_empty(), "{what}: {:?}", world.names());
                drop(dir.start(recovered, 1, Box::new(|_| {})).expect("start"));
            }
            Err(Error::Format { file, fault: Fault::Missing }) => {
                assert!(!begins && file == "epoch", "{what}: {file} is missing");
                assert_eq!(world.names(), before, "{what}: nothing was changed");
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    println!("interrupted first starts: {} cases", table.len());
}
