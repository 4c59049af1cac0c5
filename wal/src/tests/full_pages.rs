//! Syncs of full pages only: what they publish is durable, and the page that is appended to is left alone.

use crate::fault::{Faults, Rng};
use crate::record::slot_bytes;
use crate::segment::{PAGE_BYTES, SEGMENT_HEADER_BYTES};
use crate::sync::LEFT_TURNS_MAX;
use crate::tests::{append, recover, tiny};
use crate::{Dir, Lsn, Options, Progress, Running};

/// Segments of eight pages.
fn options() -> Options {
    Options { segment_bytes: 8 * PAGE_BYTES as u64, ..tiny() }
}

fn start(world: &Faults) -> Running<Faults> {
    let dir = Dir::open(world.clone(), options()).expect("open");
    let (_, recovered) = recover(&dir, false).expect("a sound log");
    dir.start(recovered, 1, Box::new(|_| {})).expect("room")
}

/// With appends between turns, across the ends of segments: loss of power takes nothing that was published.
#[test]
fn what_is_published_survives_the_loss_of_power() {
    let (mut published, mut left) = (0, 0);
    let cases = 2_000;
    for seed in 0..cases {
        let world = Faults::new(seed);
        let mut running = start(&world);
        let mut rng = Rng::new(seed);
        // Many small records, or few of some size.
        let (records, bytes) = if rng.happens(512) { (3, 300) } else { (12, 900) };
        for _ in 0..1 + rng.below(25) {
            for _ in 0..rng.below(records) {
                append(&mut running, &vec![7; rng.below(bytes) as usize]);
            }
            match running.syncer.turn_of_full_pages().expect("no failure") {
                Progress::Synced(lsn) => {
                    assert_eq!(lsn, running.marks.synced());
                    published += 1;
                }
                Progress::Left => left += 1,
                Progress::Idle => assert_eq!(running.marks.synced(), running.log.last_lsn()),
            }
        }
        let synced = running.marks.synced();
        drop(running);
        world.crash();
        let dir = Dir::open(world, options()).expect("open");
        let (facts, _) = recover(&dir, false).expect("nothing that was promised is lost");
        let found = facts.last().map_or(Lsn::ZERO, |fact| fact.0);
        assert!(found >= synced, "seed {seed}: {found} of {synced}");
    }
    assert!(published > 1_000 && left > 1_000, "{published} {left}");
    println!("power lost after turns of full pages: {cases} cases");
}

/// As long as records come, the page that they are written to is in no sync.
#[test]
fn the_page_that_is_appended_to_is_left_alone() {
    let world = Faults::new(1);
    let mut running = start(&world);
    running.syncer.turn().expect("the start's own record");
    let mut end = SEGMENT_HEADER_BYTES + slot_bytes(0) + slot_bytes(8);
    let mut cases = 0;
    for _ in 0..20 {
        append(&mut running, &[9; 600]);
        end += slot_bytes(600);
        let before = world.dirty_pages();
        running.syncer.turn_of_full_pages().expect("no failure");
        let after = world.dirty_pages();
        assert!(after.contains(&((end - 1) / PAGE_BYTES)), "{before:?} {after:?} {end}");
        cases += 1;
    }
    println!("pages left alone: {cases} cases");
}

/// An idle log is synced to its end by the next turn, and a trickle of records waits for a bounded number of turns.
#[test]
fn a_page_that_is_not_full_is_synced_in_the_end() {
    let world = Faults::new(2);
    let mut running = start(&world);
    running.syncer.turn().expect("no failure");
    append(&mut running, &[1; 8]);
    assert_eq!(running.syncer.turn_of_full_pages().expect("no failure"), Progress::Left);
    let last = running.log.last_lsn();
    assert_eq!(running.syncer.turn_of_full_pages().expect("no failure"), Progress::Synced(last));
    assert_eq!(running.syncer.turn_of_full_pages().expect("no failure"), Progress::Idle);
    let mut turns = 0;
    while running.marks.synced() == last {
        append(&mut running, &[1; 8]);
        running.syncer.turn_of_full_pages().expect("no failure");
        turns += 1;
        assert!(turns <= LEFT_TURNS_MAX + 2, "a trickle is never published");
    }
    assert_eq!(running.marks.synced(), running.log.last_lsn());
    println!("pages synced in the end: {} cases", turns + 3);
}
