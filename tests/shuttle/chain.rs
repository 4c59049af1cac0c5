//! The hand-offs of the threaded layout with durability `power`, end to end: shards put records and answers into the
//! committer's ring, the committer appends, the sync thread syncs, the committer releases. Ring, marks, both loops and
//! the queue of held answers are the program's own files; a turn is modelled here without its payload. No sleep has a
//! timeout, so a lost wake-up is a deadlock.

use papertape_shuttle::atomic::{Arc, AtomicBool, Ordering};
use papertape_shuttle::held::HeldBack;
use papertape_shuttle::loops::{self, CommitTurns, SyncTurns};
use papertape_shuttle::ring::Ring;
use papertape_shuttle::{Lsn, log, marks::Marks};
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::thread;
use std::convert::Infallible;
use std::time::Duration;

const SHARDS: u64 = 3;
const RECORDS: u64 = 3;
/// Fewer than there are records, so that shards meet a full ring.
const SLOTS: usize = 4;
const SCHEDULES: usize = 20_000;

enum Item {
    Record,
    Answer { shard: u64, number: u64 },
}

/// What a plan omits or reorders, for the controls.
#[derive(Clone, Copy, PartialEq)]
enum Plant {
    Nothing,
    /// The committer sleeps without a last look at the mark.
    SleepsAtOnce,
    /// The committer releases what is appended and not synced.
    ReleasesEarly,
    /// A stop without a wake-up.
    SilentStop,
}

/// A released answer: its number, and the synced mark.
type Released = (u64, Lsn);

struct Committer {
    marks: Marks,
    last: u64,
    held: HeldBack<(u64, u64)>,
    users: Vec<Sender<Released>>,
    plant: Plant,
}

impl CommitTurns for Committer {
    type Item = Item;

    fn turn(&mut self, ring: &Ring<Item>) -> bool {
        let mut worked = false;
        while let Some(item) = ring.pop() {
            worked = true;
            match item {
                Item::Record => {
                    self.last += 1;
                    log::append(&self.marks, Lsn(self.last), 8 * self.last);
                }
                Item::Answer { shard, number } => self.hold(shard, number),
            }
        }
        self.release() || worked
    }

    fn can_release(&self) -> bool {
        self.plant != Plant::SleepsAtOnce && self.held.can_release(self.mark())
    }
}

impl Committer {
    fn hold(&mut self, shard: u64, number: u64) {
        let depends_on = Lsn(self.last);
        if self.held.lets_pass(depends_on, self.mark()) {
            return self.fill(shard, number);
        }
        self.held.push(depends_on, (shard, number));
    }

    fn release(&mut self) -> bool {
        let mark = self.mark();
        let mut worked = false;
        while let Some((shard, number)) = self.held.pop(mark) {
            self.fill(shard, number);
            worked = true;
        }
        worked
    }

    fn mark(&self) -> Lsn {
        match self.plant {
            Plant::ReleasesEarly => self.marks.appended(),
            _ => self.marks.synced(),
        }
    }

    fn fill(&self, shard: u64, number: u64) {
        self.users[shard as usize].send((number, self.marks.synced())).expect("the user waits");
    }
}

struct Syncing {
    marks: Marks,
    ring: Arc<Ring<Item>>,
}

impl SyncTurns for Syncing {
    type Error = Infallible;

    fn turn(&mut self) -> Result<(), Infallible> {
        let target = self.marks.appended();
        if target != self.marks.synced() {
            log::set_synced(&self.marks, target, log::position(&self.marks));
            self.ring.wake();
        }
        Ok(())
    }

    fn rest(&mut self) {
        log::sleep(&self.marks);
    }
}

fn shard(ring: &Ring<Item>, shard: u64, answers: &Receiver<Released>) {
    let push = |item| {
        let mut item = item;
        while let Err(back) = ring.push(item) {
            item = back;
            thread::yield_now();
        }
    };
    for number in 0..RECORDS {
        push(Item::Record);
        push(Item::Answer { shard, number });
    }
    let mut before = Lsn(0);
    for number in 0..RECORDS {
        let (answered, synced) = answers.recv().expect("an answer");
        assert_eq!(answered, number, "answers of a shard come in its order");
        assert!(synced > before, "the answer to a record left before its sync");
        before = Lsn(before.0 + 1);
    }
    // No shard waits for this one: only the committer's last turn, after the stop, is certain to take it.
    push(Item::Record);
}

fn chain(plant: Plant) {
    let ring = Arc::new(Ring::new(SLOTS));
    let marks = log::marks();
    let [commit_stop, commit_ended, sync_stop, sync_ended] = [(); 4].map(|()| Arc::new(AtomicBool::new(false)));
    let (users, answers): (Vec<_>, Vec<_>) = (0..SHARDS).map(|_| channel()).unzip();
    let shards: Vec<_> = (0..)
        .zip(answers)
        .map(|(index, answers)| {
            let ring = ring.clone();
            thread::spawn(move || shard(&ring, index, &answers))
        })
        .collect();
    let syncing = {
        let mut syncing = Syncing { marks: marks.clone(), ring: ring.clone() };
        let (stop, ended) = (sync_stop.clone(), sync_ended.clone());
        thread::spawn(move || {
            let Ok(()) = loops::sync(&mut syncing, || stop.load(Ordering::Relaxed));
            ended.store(true, Ordering::Relaxed);
        })
    };
    let committing = {
        let (ring, stop, ended) = (ring.clone(), commit_stop.clone(), commit_ended.clone());
        let mut committer = Committer { marks: marks.clone(), last: 0, held: HeldBack::default(), users, plant };
        thread::spawn(move || {
            loops::commit(&mut committer, &ring, Duration::MAX, || stop.load(Ordering::Relaxed));
            assert!(committer.held.is_empty(), "a stop after all answers leaves none");
            ended.store(true, Ordering::Relaxed);
            committer.last
        })
    };
    shards.into_iter().for_each(|shard| shard.join().expect("a shard"));
    // A thread that was about to sleep when it was woken would sleep until its timeout; here it is woken until it has
    // ended.
    commit_stop.store(true, Ordering::Relaxed);
    let wakes = if plant == Plant::SilentStop { 0 } else { usize::MAX };
    for _ in (0..wakes).take_while(|_| !commit_ended.load(Ordering::Relaxed)) {
        ring.wake();
        thread::yield_now();
    }
    assert_eq!(committing.join().expect("the committer"), SHARDS * (RECORDS + 1), "a stop leaves no record");
    sync_stop.store(true, Ordering::Relaxed);
    while !sync_ended.load(Ordering::Relaxed) {
        marks.wake();
        thread::yield_now();
    }
    syncing.join().expect("the sync thread");
}

#[test]
fn every_answer_leaves_after_its_sync() {
    shuttle::check_random(|| chain(Plant::Nothing), SCHEDULES);
    shuttle::check_pct(|| chain(Plant::Nothing), SCHEDULES, 3);
    println!("{} schedules, {} records each", 2 * SCHEDULES, SHARDS * (RECORDS + 1));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_committer_that_sleeps_without_a_look_hangs() {
    shuttle::check_random(|| chain(Plant::SleepsAtOnce), SCHEDULES);
}

#[test]
#[should_panic(expected = "left before its sync")]
fn an_early_release_is_seen() {
    shuttle::check_random(|| chain(Plant::ReleasesEarly), SCHEDULES);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_stop_without_a_wake_up_hangs() {
    shuttle::check_random(|| chain(Plant::SilentStop), SCHEDULES);
}
