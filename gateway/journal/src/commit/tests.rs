use super::*;

/// With all spares ready there is room for everything; otherwise an idle server would refuse orders for ever.
#[test]
fn all_spares_ready_is_ample_for_every_setting() {
    let mut cases = 0;
    for segment_bytes in [1 << 20, (1 << 20) + 4_096, 2 << 20, 4 << 20, 16 << 20, 64 << 20, 1 << 30] {
        for (spares_count, shards_count) in (2..=8).flat_map(|spares| [1, 2, 4, 16, 64].map(|shards| (spares, shards)))
        {
            let size = LogSize::of(segment_bytes, spares_count, shards_count);
            let refused = shards_count > 4 && segment_bytes < 64 << 20;
            assert!(size.is_enough() || refused, "{size:?}");
            if !size.is_enough() {
                continue;
            }
            let marks = RoomMarks::of(size);
            let seen = [marks.full_bytes, marks.ample_bytes, marks.ample_bytes - 1, marks.none_bytes - 1];
            assert_eq!(
                seen.map(|bytes| marks.room(bytes)),
                [Room::Ample, Room::Ample, Room::ReserveOnly, Room::None],
                "{size:?}: {marks:?}"
            );
            // A spare gets urgent before placements are refused, also where only the open segment's end is left.
            let open_bytes = (marks.ample_bytes + marks.record_bytes_max as u64).next_multiple_of(8);
            assert!(size.urgent_bytes() > open_bytes, "{size:?}: {marks:?}");
            assert!((marks.ample_bytes..=marks.full_bytes).contains(&marks.low_bytes), "{size:?}: {marks:?}");
            cases += 1;
        }
    }
    println!("room: {cases} cases");
}

/// While the committer is held up, shards must not be promised more room than the log has.
#[test]
fn records_in_flight_take_room() {
    let size = LogSize::of(1 << 20, 2, 1);
    let figures = Arc::new(CommitFigures::<()>::default());
    let mut lane = CommitLane::new(size, figures.clone());
    let marks = RoomMarks::of(size);
    assert_eq!(lane.room(), Room::None, "nothing was published yet");
    figures.room_bytes.store(marks.full_bytes, Ordering::Relaxed);
    let mut rooms = vec![lane.room()];
    for _ in 0..200 {
        lane.record(UserId(1), Timestamp(1), &[0; 8_000]);
        let room = lane.room();
        if rooms.last() != Some(&room) {
            rooms.push(room);
        }
    }
    assert_eq!(rooms, [Room::Ample, Room::ReserveOnly, Room::None]);
    println!("room of a lane: {} cases", rooms.len());
}

/// A writer that was promised room may write the longest record, even if all others were promised it at the same time.
#[test]
fn all_writers_together_find_the_promised_room() {
    let mut cases = 0;
    for (segment_bytes, shards_count) in [(1 << 20, 1), (1 << 20, 2), (1 << 20, 4), (2 << 20, 4), (64 << 20, 64)] {
        let size = LogSize::of(segment_bytes, 2, shards_count);
        let marks = RoomMarks::of(size);
        let figures = Arc::new(CommitFigures::<()>::default());
        let lane = CommitLane::new(size, figures.clone());
        let payload = vec![0; lane.payload_bytes_max()];
        for published in [marks.none_bytes, marks.none_bytes + 8, marks.ample_bytes, marks.full_bytes] {
            figures.in_flight_bytes.store(0, Ordering::Relaxed);
            figures.room_bytes.store(published, Ordering::Relaxed);
            // The ring is not drained meanwhile: all check, then all write, until no writer is promised room.
            let mut lanes = vec![lane.clone(); size.writers_count as usize];
            while lanes[0].room() != Room::None {
                let has_room: Vec<bool> = lanes.iter().map(|lane| lane.room() != Room::None).collect();
                for (lane, _) in lanes.iter_mut().zip(has_room).filter(|(_, has_room)| *has_room) {
                    lane.record(UserId(1), Timestamp(1), &payload);
                }
                let in_flight = figures.in_flight_bytes.load(Ordering::Relaxed);
                assert!(in_flight <= published, "{in_flight} bytes into {published}: {size:?}");
            }
            while lane.ring().pop().is_some() {}
            cases += 1;
        }
    }
    println!("promises to several writers: {cases} cases");
}

/// A sync that ends between the last check of a turn and the sleep wakes no thread: the check before the sleep detects
/// it.
#[test]
fn answers_released_by_a_sync_are_detected_before_a_sleep() {
    let mut cases = 0;
    for durability in [Durability::Process, Durability::Power] {
        let options = wal::Options { segment_bytes: 1 << 20, ..wal::Options::default() };
        let dir = wal::Dir::open(wal::fault::Faults::new(1), options).expect("an empty directory");
        let recovered = dir.recover(None, false).and_then(wal::Recovery::finish).expect("nothing to recover");
        let wal::Running { log, mut syncer, mut preparer, .. } =
            dir.start(recovered, 1, Box::new(|_| {})).expect("a log");
        preparer.turn().expect("spares");
        let size = LogSize::of(1 << 20, 2, 1);
        let mut committer = Committer::new(log, durability, 1, size, Arc::new(CommitFigures::<()>::default()));
        assert!(!committer.can_release(), "nothing waits");
        let (sender, mut answers) = oneshot::channel();
        committer.record(UserId(1), Timestamp(2), b"fact");
        committer.answer(Reply::Request(sender), Answer::Done);
        assert!(!committer.can_release(), "{durability:?}: nothing has changed");
        let waits = durability == Durability::Power;
        assert_eq!(answers.try_recv().is_err(), waits, "{durability:?}");
        syncer.turn().expect("a sync");
        assert_eq!(committer.can_release(), waits, "{durability:?}: the mark has passed it");
        assert_eq!(committer.release(), waits);
        assert!(!committer.can_release(), "{durability:?}: released");
        assert!(!waits || answers.try_recv().is_ok(), "{durability:?}");
        cases += 1;
    }
    println!("{cases} durabilities");
}
