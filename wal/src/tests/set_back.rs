//! Journal time never goes back unless an operator says so; then it continues from there, however the process ends.

use super::*;
use crate::Scan;

fn times(world: &Faults) -> Vec<u64> {
    let mut scan = Scan::open_all(world).expect("a log");
    let mut times = Vec::new();
    while let Some(entry) = scan.next().expect("whole") {
        times.push(entry.time);
    }
    assert_eq!(times.last().copied(), Some(scan.last_time()), "the scan has the newest");
    times
}

fn started(world: &Faults, time: u64) -> Running<Faults> {
    let dir = Dir::open(world.clone(), tiny()).expect("not locked");
    let (_, recovered) = recover(&dir, false).expect("whole");
    dir.start(recovered, time, Box::new(|_| {})).expect("room")
}

fn end(running: Running<Faults>) {
    let Running { log, syncer, .. } = running;
    drop(log);
    syncer.finish().expect("a sync");
}

#[test]
fn time_continues_from_where_it_was_set_back_to() {
    let mut cases = 0;
    // With a snapshot before the record, at it, after it, or none; and with segments that end around it.
    for (snapshot_at, records) in
        [None, Some(0), Some(1), Some(2)].into_iter().flat_map(|at| (0..24).map(move |n| (at, n)))
    {
        let world = Faults::new(1);
        let mut running = started(&world, 1_000);
        let log = |running: &mut Running<Faults>, time: u64, is_set_back: bool| {
            let append = |running: &mut Running<Faults>| match is_set_back {
                true => running.log.append_set_back(3, 0, time, &[7; 24]),
                false => running.log.append(Kind::Mutations, 1, 2, time, &[7; 200]),
            };
            if append(running).is_err() {
                assert!(running.log.last_time() >= 1_000, "nothing was written, and time is unchanged");
                running.syncer.turn().expect("a sync");
                running.preparer.turn().expect("room on the disk");
                append(running).expect("a spare is ready");
            }
        };
        (0..=records).for_each(|_| log(&mut running, 9_000, false));
        // Without it, an earlier time is stored as that of the record before.
        log(&mut running, 500, false);
        let mut expected = vec![1_000];
        expected.resize(records + 3, 9_000);
        let take = |running: &mut Running<Faults>, at: usize| {
            if snapshot_at == Some(at) {
                running.syncer.turn().expect("a sync");
                snapshot(running, 0);
            }
        };
        take(&mut running, 0);
        log(&mut running, 2_000, true);
        assert_eq!(running.log.last_time(), 2_000);
        take(&mut running, 1);
        log(&mut running, 2_500, false);
        log(&mut running, 2_400, false);
        take(&mut running, 2);
        expected.extend([2_000, 2_500, 2_500]);
        end(running);
        assert_eq!(times(&world), expected);
        let mut running = started(&world, 2_600);
        assert_eq!(running.log.last_time(), 2_600, "the next life continues from there");
        log(&mut running, 100, false);
        end(running);
        expected.extend([2_600, 2_600]);
        assert_eq!(times(&world), expected);
        cases += 1;
    }
    println!("times that were set back: {cases} cases");
}
