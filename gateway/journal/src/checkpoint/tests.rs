use super::*;
use crate::digests::Digests;
use crate::recover::recover;
use engine::amount::Cash;
use engine::fact;
use engine::id::{UserId, WalletId};
use engine::mutation::{Mutation, codec};
use engine::order::CloseReason;
use engine::time::DAY;
use engine::user::{Tier, WalletKind};
use host::job::Job;
use std::sync::mpsc::sync_channel;
use wal::{Kind, Options, Running};

fn options() -> Options {
    Options { segment_bytes: 1 << 20, spares_count: 1, reserve_bytes: 0, ..Options::default() }
}

/// Facts that `apply` accepts one by one; the unsound state breaks an invariant: an order is open and does not
/// rest.
fn records(is_sound: bool) -> Vec<Mutation> {
    let (owner, at) = (UserId(1), Timestamp(1_790_932_500_000_000));
    let (wallet, baseline) = (WalletId(owner.object(1)), Cash::from_dollars(100));
    let (kind, label, parent) = (WalletKind::Api, None, None);
    let mut facts = vec![
        Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at }),
        Mutation::WalletOpened(fact::WalletOpened { wallet, kind, label, baseline, generation: 1, parent, at }),
    ];
    if !is_sound {
        facts.push(crate::testing::placed(owner, 2));
    }
    facts
}

#[test]
fn a_state_that_breaks_an_invariant_is_not_snapshotted_and_ends_the_log() {
    let mut cases = 0;
    for is_sound in [true, false] {
        let place = tempfile::tempdir().expect("a temporary folder");
        let recovery = recover(&place.path().join("log"), options(), 1).expect("a new directory");
        let running = recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
        let Running { mut log, mut syncer, snapshots, marks, .. } = running;
        let mut payload = Vec::new();
        codec::encode(codec::VERSION, &records(is_sound), &mut payload);
        let lsn = log.append(Kind::Mutations, codec::VERSION, 1, 2, &payload).expect("there is room");
        syncer.turn().expect("the disk is there");
        let storage = Files::open_existing(place.path().join("log")).expect("it was made");
        let mut keeper = Keeper::new(storage, snapshots, marks.clone(), 1, Covered::default());
        let written = keeper.checkpoint(Lsn::ZERO, lsn);
        let listed = keeper.snapshots.list().expect("it can be read").len();
        assert_eq!((listed, marks.is_poisoned()), (usize::from(is_sound), !is_sound), "{written:?}");
        match written {
            Ok(()) => assert!(is_sound),
            Err(RecoverError::Broken { lsn: at, why }) => {
                assert!(!is_sound && at == lsn, "{at}");
                assert!(why.contains("an order is open as long as it rests"), "{why}");
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(syncer.turn().is_err(), !is_sound, "the sync thread sees it");
        cases += 1;
    }
    println!("states before a snapshot: {cases} cases");
}

/// What a clean stop writes, by the length of the log.
#[test]
fn a_last_checkpoint_is_made_of_a_long_log() {
    let least = LAST_RECORDS_LEAST;
    // (records of users, whether all of them were synced, a last checkpoint, further records, another checkpoint)
    let rows = [
        (least - 3, true, false, 3, true),
        (least, true, true, 10, false),
        (least + 5, true, true, least, true),
        (least + 5, false, false, 0, true),
    ];
    for (records, synced, first, more, second) in rows {
        let place = tempfile::tempdir().expect("a temporary folder");
        let data = place.path().join("log");
        let options = Options { segment_bytes: 16 << 20, spares_count: 1, reserve_bytes: 0, ..Options::default() };
        let recovery = recover(&data, options.clone(), 1).expect("a new directory");
        let Running { mut log, mut syncer, preparer, snapshots, marks, .. } =
            recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
        let mut users = 0;
        let mut append = |log: &mut wal::Log<Files>, count: u64| {
            for _ in 0..count {
                users += 1;
                let mut payload = Vec::new();
                let made = Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at: Timestamp(2) });
                codec::encode(codec::VERSION, &[made], &mut payload);
                log.append(Kind::Mutations, codec::VERSION, users, 2, &payload).expect("there is room");
            }
        };
        let storage = Files::open_existing(&data).expect("it was made");
        let mut keeper = Keeper::new(storage, snapshots, marks.clone(), 1, Covered::default());
        append(&mut log, records);
        if synced {
            syncer.turn().expect("the disk is there");
        }
        assert_eq!(keeper.last().expect("a sound log"), first, "{records} records");
        append(&mut log, more);
        log.append_clean_stop(3).expect("there is room");
        syncer.finish().expect("the disk is there");
        assert_eq!(keeper.last().expect("a sound log"), second, "{records} and {more} records");
        drop((keeper, log, preparer));
        let recovery = recover(&data, options, 1).expect("a sound log");
        assert!(recovery.report.clean_stop, "the mark of the clean stop is after every snapshot");
        assert_eq!(recovery.report.records == 1, second, "{:?}", recovery.report);
        assert_eq!(recovery.report.users as u64, records + more);
    }
    println!("last checkpoints: {} cases", 2 * rows.len());
}

/// A digest covers all that was synced when it was requested, and no snapshot of an earlier moment is made after
/// it.
#[test]
fn a_digest_covers_the_state_that_a_start_would_read() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let data = place.path().join("log");
    let recovery = recover(&data, options(), 1).expect("a new directory");
    let Running { mut log, mut syncer, mut preparer, snapshots, marks, .. } =
        recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
    let stop = Stop::new();
    let storage = Files::open_existing(&data).expect("it was made");
    let ((digests, requests), (handover, kept)) = (Digests::channel(), sync_channel(1));
    let keeper = Keeper::new(storage, snapshots, marks.clone(), 1, Covered::default());
    let keeper = keeper.answering(requests).handed_to(handover);
    let running = Job::new("keeper", Duration::from_millis(250), move || keeper).start(&stop).expect("a thread");
    let mut cases = 0;
    for user in 1..=6_u64 {
        while preparer.turn().expect("room on the disk") == wal::Prepared::One {}
        let (sub, email, at) = (Some("x".repeat(400_000)), None, Timestamp(2));
        let mut payload = Vec::new();
        codec::encode(codec::VERSION, &[Mutation::UserCreated(fact::UserCreated { sub, email, at })], &mut payload);
        let last = log.append(Kind::Mutations, codec::VERSION, user, 2, &payload).expect("there is room");
        syncer.turn().expect("the disk is there");
        let Digested { lsn, digest, .. } = digests.ask(|| true).expect("the keeper runs").expect("a sound log");
        assert_eq!(lsn, last);
        let (state, report) = crate::recover::look(&data, false).expect("a sound log");
        assert_eq!((report.lsn, crate::recover::digest(&state)), (last, digest));
        cases += 1;
    }
    running.stop();
    let mut keeper = kept.recv().expect("a sound state");
    running.join();
    assert!(digests.ask(|| true).is_none(), "a keeper that has ended is not waited for");
    let folded = keeper.state.as_ref().map(|(_, lsn, _)| *lsn).expect("a copy");
    keeper.checkpoint(Lsn::ZERO, folded.before()).expect("room on the disk");
    let newest = keeper.snapshots.newest().expect("it can be read").expect("there is one");
    assert_eq!(newest.lsn, folded, "the state that is written is that of its name");
    let mut none = Keeper::new(keeper.storage, keeper.snapshots, marks, 1, Covered::default());
    assert!(none.digest(&stop).is_err(), "a server that stops digests nothing");
    println!("digests: {cases} cases");
}

/// A snapshot has no request whose id counts no longer; a replay of the whole log has the same digest.
#[test]
fn snapshots_leave_out_requests_whose_ids_count_no_longer() {
    let mut cases = 0;
    let ids_us = 2 * HOUR;
    let start = crate::testing::START;
    // (time from the placement to the last record, formats, whether the clock is in doubt, whether the request is
    // left out)
    let rows = [
        (ids_us, Formats::Newest, false, false),
        (ids_us + FORGOTTEN_LATER_US, Formats::Newest, false, false),
        (ids_us + FORGOTTEN_LATER_US + 1, Formats::Newest, false, true),
        (ids_us + FORGOTTEN_LATER_US + 1, Formats::Newest, true, false),
        (ids_us + FORGOTTEN_LATER_US + 1, Formats::Previous, false, false),
        (1_000 * HOUR, Formats::Newest, false, true),
        (1_000 * HOUR, Formats::Newest, true, false),
    ];
    for (after, formats, is_in_doubt, is_left_out) in rows {
        let place = tempfile::tempdir().expect("a temporary folder");
        let data = place.path().join("log");
        let recovery = recover(&data, options(), 1).expect("a new directory");
        let Running { mut log, mut syncer, snapshots, marks, .. } =
            recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
        let (owner, version) = (UserId(1), formats.record());
        let mut append = |facts: &[Mutation], at: Timestamp| {
            let mut payload = Vec::new();
            codec::encode(version, facts, &mut payload);
            log.append(Kind::Mutations, version, owner.0, at.0, &payload).expect("there is room")
        };
        append(&records(true), start);
        let mut placed = vec![crate::testing::placed(owner, 2)];
        let order = engine::id::OrderId(owner.object(2));
        placed.push(fact::OrderClosed { order, reason: CloseReason::UserCancelled, at: start }.into());
        let (client_order_id, digest) = ("a".to_owned(), [7; 32]);
        placed.push(fact::RequestRemembered { order, client_order_id, digest }.into());
        append(&placed, start);
        let grant = fact::GrantSet { tier: Tier::Pro, expires_at: None, at: start.plus(after) };
        let last = append(&[grant.into()], start.plus(after));
        syncer.turn().expect("the disk is there");
        let storage = Files::open_existing(&data).expect("it was made");
        let keeper = Keeper::new(storage, snapshots, marks, 1, Covered::default());
        let doubt = Leap::of(Some(start), start.plus(2 * DAY), Duration::from_secs(3_600));
        let leap = Arc::new(if is_in_doubt { doubt } else { Leap::none() });
        let mut keeper = keeper.writing(formats).forgetting(ids_us).doubting(leap);
        keeper.checkpoint(Lsn::ZERO, last).expect("room on the disk");
        let newest = keeper.snapshots.newest().expect("it can be read").expect("it was written");
        let kept = read_snapshot(&keeper.snapshots, &newest, 1).expect("it is whole");
        let known = kept.user(owner).expect("it was made").remembered("a", Timestamp(0));
        assert_eq!(known.is_none(), is_left_out, "{after} {formats:?}, in doubt: {is_in_doubt}");
        let (replayed, _) = crate::recover::look(&data, true).expect("a sound log");
        let known = replayed.user(owner).expect("it was made").remembered("a", Timestamp(0));
        assert!(known.is_some(), "a replay leaves nothing out");
        assert_eq!(crate::recover::digest(&kept), crate::recover::digest(&replayed), "{after} {formats:?}");
        let stop = Stop::new();
        let Digested { digest, .. } = keeper.digest(&stop).expect("a sound log");
        assert_eq!(digest, crate::recover::digest(&replayed), "of the keeper's copy");
        cases += 1;
    }
    println!("requests in snapshots: {cases} cases");
}

/// Segments that snapshots of clean stops cover are released by a server that writes no snapshot itself.
#[test]
fn segments_covered_by_clean_stops_are_released_by_the_next_start() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let recovery = recover(&place.path().join("log"), options(), 1).expect("a new directory");
    let Running { mut log, mut syncer, mut preparer, snapshots, marks, .. } =
        recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
    let mut append = |records: usize| {
        let mut last = Lsn::ZERO;
        for _ in 0..records {
            while preparer.turn().expect("room on the disk") == wal::Prepared::One {}
            last = log.append(Kind::Mutations, 1, 1, 2, &[0; 64 << 10]).expect("there is room");
            syncer.turn().expect("the disk is there");
        }
        last
    };
    let storage = Files::open_existing(place.path().join("log")).expect("it was made");
    let covered = Covered::default();
    let mut keeper = Keeper::new(storage, snapshots, marks.clone(), 2, covered.clone());
    let older = append(60);
    write_snapshot(Formats::Newest, &mut keeper.snapshots, &State::new(1), older, 0).expect("room on the disk");
    let newer = append(30);
    write_snapshot(Formats::Newest, &mut keeper.snapshots, &State::new(1), newer, 0).expect("room on the disk");
    assert_eq!(keeper.look().expect("a sound log"), CheckpointTurn::Enough);
    assert_eq!(covered.get(), older);
    println!("covered by ends: 1 case");
}
