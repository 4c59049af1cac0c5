//! Rows that press against their bound while nothing can move, and snapshots that cannot be written.

use super::*;
use crate::paced::{Paced, Rests};
use std::io;
use std::sync::atomic::AtomicUsize;
use wal::Snapshots;

/// What a store answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Sound,
    NotReady,
    Fails,
    Stops,
}

struct Fickle {
    rows: InMemory,
    answers: Answers,
    writes: Arc<AtomicUsize>,
}

impl EndedStore for Fickle {
    fn ready(&mut self) -> Result<(), Box<dyn Error>> {
        if self.answers == Answers::NotReady { Err("no room on the disk".into()) } else { Ok(()) }
    }

    fn write(&mut self, users: &Users, leaving: &[Leaving], upto: Lsn, record_crc: u32) -> Result<(), Box<dyn Error>> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        match self.answers {
            Answers::Sound => self.rows.write(users, leaving, upto, record_crc),
            Answers::NotReady | Answers::Fails => Err("no room on the disk".into()),
            Answers::Stops => Err(GivenUp.into()),
        }
    }
}

fn snapshots(place: &Place) -> usize {
    let storage = Files::open_existing(&place.data).expect("it was made");
    Snapshots::of(&storage).expect("a log").list().expect("it can be read").len()
}

/// Without a row that leaves, the pressure writes no snapshot; a usual checkpoint does.
#[test]
fn nothing_is_written_while_nothing_can_move() {
    let window = Window { hot_us: 1_000 * SECOND, rows_max: 4_096, orders_max: usize::MAX };
    let mut cases = 0;
    // (what the store answers, whether the clock is in doubt, orders that ended, calls to write, whether it is failing)
    for (answers, is_in_doubt, ended, writes, is_failing) in [
        (Answers::Sound, false, 3, 1, false),
        (Answers::NotReady, false, 3, 0, true),
        (Answers::Fails, false, 3, 1, true),
        (Answers::Stops, false, 3, 1, false),
        (Answers::Sound, true, 3, 0, false),
        // The one that ended with the last record stays.
        (Answers::Sound, false, 1, 0, false),
    ] {
        let (mut place, keeper) = place();
        let (calls, figures) = (Arc::new(AtomicUsize::new(0)), Arc::new(MoverFigures::default()));
        let (store, shards) = (InMemory::default(), Shards::default());
        let bound = Arc::new(EndedBound::new(1_000, 1));
        bound.note(0, 1_000);
        let fickle = Fickle { rows: store.clone(), answers, writes: calls.clone() };
        let mover = Mover::new(Box::new(fickle), window, shards.drop_rows());
        let doubt = Leap::of(Some(START), START.plus(2 * DAY), Duration::from_secs(3_600));
        let leap = if is_in_doubt { doubt } else { Leap::none() };
        let mut keeper = keeper.moving(mover.bounded(bound).noting(figures.clone())).doubting(Arc::new(leap));
        let seconds: Vec<u64> = (0..ended).collect();
        let last = place.ended(&seconds);
        let moves = answers == Answers::Sound && !is_in_doubt && ended > 1;
        let name = format!("{answers:?}, {is_in_doubt}, {ended}");
        assert_eq!(keeper.relieve(last).expect("a sound log"), moves, "{name}");
        assert_eq!((snapshots(&place), shards.orders() > 0), (usize::from(moves), moves), "{name}");
        assert_eq!(calls.load(Ordering::Relaxed), writes, "{name}");
        assert_eq!(figures.is_failing.load(Ordering::Relaxed), is_failing, "{name}");
        keeper.checkpoint(Lsn::ZERO, last).expect("room on the disk");
        assert_eq!(snapshots(&place), 1, "{name}: a usual checkpoint");
        cases += 1;
    }
    println!("pressure without a move: {cases} cases");
}

#[test]
fn pauses_grow_while_nothing_moves() {
    let bound = Arc::new(EndedBound::new(1_000, 1));
    bound.note(0, 1_000);
    let window = Window { hot_us: 0, rows_max: 16, orders_max: usize::MAX };
    let store = Box::new(InMemory::default());
    let mut mover = Mover::new(store, window, Shards::default().drop_rows()).bounded(bound);
    assert!(mover.presses());
    let (nothing, not_ready, moved) = (Relief::Nothing, Relief::NotReady, Relief::Moved);
    let rows = [
        (nothing, 10),
        (nothing, 20),
        (not_ready, 5),
        (not_ready, 5),
        (nothing, 10),
        (moved, 5),
        (nothing, 10),
        (nothing, 20),
        (nothing, 40),
        (nothing, 80),
        (nothing, 160),
        (nothing, 160),
        (moved, 5),
    ];
    for (nth, (relief, seconds)) in rows.into_iter().enumerate() {
        mover.relieved(relief);
        assert_eq!((mover.pause, mover.pressed_at.is_some()), (Duration::from_secs(seconds), true), "{nth}");
    }
    println!("pauses: {} cases", rows.len());
}

/// Wherever the writing of a snapshot fails, nothing of it keeps room on the disk, and the next one succeeds.
#[test]
fn a_snapshot_that_fails_leaves_nothing() {
    let (mut place, keeper) = place();
    drop(keeper);
    let last = place.ended(&[0, 1, 2]);
    let files = Files::open_existing(&place.data).expect("it was made");
    let (mut cases, mut begun) = (0, 0);
    loop {
        let calls = AtomicUsize::new(0);
        let most = cases;
        let question = move || match calls.fetch_add(1, Ordering::Relaxed) >= most {
            true => Err(io::Error::other("planted")),
            false => Ok(()),
        };
        let rests = Rests::asking(place.marks.clone(), Stop::new(), Box::new(question));
        let storage = Paced { storage: files.clone(), rests };
        let snapshots = Snapshots::of(&files).expect("a log").through(storage.clone());
        let mut keeper = Keeper::new(storage, snapshots, place.marks.clone(), 1, Covered::default());
        let written = keeper.checkpoint(Lsn::ZERO, last);
        assert!(!place.data.join("snapshot.making").exists(), "after {cases} calls: {written:?}");
        cases += 1;
        match written {
            Ok(()) => break,
            Err(error) => begun += usize::from(error.to_string().contains("snapshot")),
        }
    }
    assert_eq!(self::snapshots(&place), 1);
    println!("snapshots that fail: {cases} cases, {begun} of them begun");
    assert!(begun > 2, "{begun}");
}

/// Days become old although there is no checkpoint: while the store takes nothing, and while there is no record.
#[test]
fn history_is_cut_without_a_checkpoint() {
    let mut cases = 0;
    let (wanted, stop) = (UtcDay(START.day().0 + 1), Stop::default());
    // (whether rows press, and the store does not take them; whether the hour is over; whether it is asked to cut)
    for (presses, is_over, is_asked) in
        [(false, false, false), (false, true, true), (true, false, true), (true, true, true)]
    {
        let (mut place, keeper) = place();
        let (store, core) = (super::Cutting::default(), Core::default());
        let window = Window { hot_us: 0, rows_max: 16, orders_max: usize::MAX };
        let bound = Arc::new(EndedBound::new(1_000, 1));
        let mover = Mover::new(Box::new(store.clone()), window, Shards::default().drop_rows()).cutting(core.ask());
        let mut mover = mover.bounded(bound.clone());
        let cutter = mover.cutter.as_mut().expect("it cuts");
        cutter.every = if is_over { Duration::ZERO } else { Duration::MAX };
        let mut keeper = keeper.moving(mover);
        let last = place.ended(&[0, 100]);
        keeper.checkpoint(Lsn::ZERO, last).expect("room on the disk");
        assert_eq!(core.asked.lock().len(), 0, "nothing is wanted");
        *store.wanted.lock() = Some(wanted);
        *store.is_full.lock() = presses;
        bound.note(0, if presses { 1_000 } else { 0 });
        keeper.take_turn(&stop).expect("a sound log");
        let asked = core.asked.lock().iter().map(|(day, _)| *day).collect::<Vec<_>>();
        assert_eq!(asked, if is_asked { vec![wanted] } else { vec![] }, "{presses}, {is_over}");
        assert_eq!(snapshots(&place), 1, "{presses}, {is_over}");
        cases += 1;
    }
    println!("cuts without a checkpoint: {cases} cases");
}
