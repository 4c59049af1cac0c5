//! Every order of the threads, and every value that a load may return. Each model has a control that must fail: the
//! same without the fences.

use loom::sync::Arc;
use loom::sync::Notify;
use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::thread;
use papertape_loom::atomic::{with_swapping_stores, without_fences};
use papertape_loom::ring::Ring;
use papertape_loom::sequence::Sequence;
use papertape_loom::waiting::Waiting;
use papertape_loom::{Lsn, log};
use std::time::Duration;

fn model(preemptions: Option<usize>, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(run);
}

/// A consumer that sleeps whenever it finds nothing receives the values of all producers. Loom reports a deadlock if no
/// producer wakes it.
fn no_wake_up_is_lost(producers: u64) {
    model(Some(3), move || {
        let ring = Arc::new(Ring::new(producers as usize));
        let woken = Arc::new(Notify::new());
        let waker = woken.clone();
        ring.set_waker(Box::new(move || waker.notify()));
        let producing: Vec<_> = (1..=producers)
            .map(|value| {
                let ring = ring.clone();
                thread::spawn(move || ring.push(value).expect("room"))
            })
            .collect();
        let mut sum = 0;
        let mut left = producers;
        while left > 0 {
            match ring.pop() {
                Some(value) => {
                    sum += value;
                    left -= 1;
                }
                None if ring.arm() => woken.wait(),
                // Claimed and not filled yet.
                None => thread::yield_now(),
            }
        }
        assert_eq!(sum, (1..=producers).sum());
        producing.into_iter().for_each(|producer| producer.join().expect("a producer"));
    });
}

#[test]
fn the_ring_loses_no_wake_up() {
    no_wake_up_is_lost(1);
}

#[test]
fn the_ring_loses_no_wake_up_of_two_producers() {
    with_swapping_stores(|| no_wake_up_is_lost(2));
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_its_fences_the_ring_loses_one() {
    without_fences(|| no_wake_up_is_lost(1));
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_its_fences_the_ring_loses_one_of_two_producers() {
    with_swapping_stores(|| without_fences(|| no_wake_up_is_lost(2)));
}

/// As above, with a consumer that parks its thread.
fn no_unpark_is_lost() {
    model(Some(3), || {
        let ring = Arc::new(Ring::new(1));
        let producer = ring.clone();
        let producing = thread::spawn(move || producer.push(7).expect("room"));
        let value = loop {
            match ring.pop() {
                Some(value) => break value,
                None => {
                    ring.wait(Duration::MAX);
                    // Claimed and not filled yet.
                    thread::yield_now();
                }
            }
        };
        assert_eq!(value, 7);
        producing.join().expect("the producer");
    });
}

#[test]
fn the_ring_loses_no_unpark() {
    no_unpark_is_lost();
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_its_fences_the_ring_loses_an_unpark() {
    without_fences(no_unpark_is_lost);
}

/// The log appends; the sync thread sleeps whenever it has synced all that it sees. It syncs all records, and a thread
/// that sees an LSN sees at least that record's position.
fn no_append_is_slept_over(records: u64) {
    model(Some(3), move || {
        let marks = log::marks();
        let appended = marks.clone();
        let appending = thread::spawn(move || (1..=records).for_each(|lsn| log::append(&appended, Lsn(lsn), 10 * lsn)));
        while marks.synced() < Lsn(records) {
            let target = marks.appended();
            if target == marks.synced() {
                log::sleep(&marks);
                continue;
            }
            let position = log::position(&marks);
            assert!(position >= 10 * target.0, "a position before its record");
            log::set_synced(&marks, target, position);
        }
        appending.join().expect("the log");
    });
}

#[test]
fn the_sync_thread_sleeps_over_no_append() {
    no_append_is_slept_over(2);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_its_fences_the_sync_thread_sleeps_over_one() {
    without_fences(|| no_append_is_slept_over(1));
}

/// The committer holds answers until the mark has passed them; the sync thread moves the mark and wakes the committer
/// if something waits. Loom reports a deadlock if an answer waits for a mark that has moved.
fn no_answer_is_forgotten(records: u64) {
    model(Some(3), move || {
        let (synced, waiting, woken) = (Arc::new(AtomicU64::new(0)), Waiting::default(), Arc::new(Notify::new()));
        let sync = (synced.clone(), waiting.clone(), woken.clone());
        let syncing = thread::spawn(move || {
            let (synced, waiting, woken) = sync;
            for lsn in 1..=records {
                synced.store(lsn, Release);
                if waiting.any() {
                    woken.notify();
                }
            }
        });
        for lsn in 1..=records {
            waiting.begin();
            while synced.load(Acquire) < lsn {
                woken.wait();
            }
            waiting.end();
        }
        syncing.join().expect("the sync thread");
    });
}

#[test]
fn no_answer_waits_for_a_mark_that_has_moved() {
    no_answer_is_forgotten(2);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_its_fences_an_answer_waits() {
    without_fences(|| no_answer_is_forgotten(1));
}

/// The writer keeps two values equal; values that a reader accepts are equal, and no older than its last ones.
fn nothing_is_torn(writes: u64) {
    model(None, move || {
        let shared = Arc::new((Sequence::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let writer = shared.clone();
        let writing = thread::spawn(move || {
            let (sequence, first, second) = &*writer;
            for value in 1..=writes {
                sequence.write(|| {
                    first.store(value, Relaxed);
                    second.store(value, Relaxed);
                });
            }
        });
        let (sequence, first, second) = &*shared;
        let mut before = 0;
        for _ in 0..2 {
            let version = sequence.version();
            if let Some((one, two)) = sequence.attempt(&mut || (second.load(Relaxed), first.load(Relaxed))) {
                assert_eq!(one, two, "torn");
                assert!(one >= before, "older than before");
                assert!(2 * one >= version, "older than its version");
                before = one;
            }
        }
        writing.join().expect("the writer");
        assert_eq!(sequence.attempt(&mut || (first.load(Relaxed), second.load(Relaxed))), Some((writes, writes)));
        assert_eq!(sequence.version(), 2 * writes);
    });
}

#[test]
fn a_sequence_is_never_read_torn() {
    nothing_is_torn(1);
}

#[test]
#[should_panic(expected = "torn")]
fn without_its_fences_a_sequence_is_torn() {
    without_fences(|| nothing_is_torn(1));
}
