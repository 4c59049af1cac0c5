//! Keeps spare segments ready, and releases segments that the snapshots cover.
//!
//! A job of its own: a checkpoint of a large state takes seconds, and orders must not wait for room meanwhile.

use host::job::{JobWaker, Next, Work};
use host::thread::Stop;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wal::{Files, Lsn, Prepared, Preparer, Storage};

/// Up to where the snapshots cover the log: segments at or below it may be released, unless they are pinned. Only
/// grows.
#[derive(Clone, Debug, Default)]
pub struct Covered(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    lsn: AtomicU64,
    /// Number of pins. Locked while segments are released.
    pins: Mutex<usize>,
    /// The disk is full, and releasing pinned segments would make room.
    is_wanted: AtomicBool,
}

/// Keeps all segments of the log until it is dropped: a released segment is overwritten in place.
#[derive(Debug)]
pub struct Pin(Arc<Shared>);

impl Covered {
    pub fn note(&self, lsn: Lsn) {
        // Pairs with the acquiring load in `get`: the snapshots are in place before their number is seen.
        self.0.lsn.fetch_max(lsn.0, Ordering::Release);
    }

    pub fn get(&self) -> Lsn {
        Lsn(self.0.lsn.load(Ordering::Acquire))
    }

    /// Keeps all segments while the pin exists. Waits until no segment is being released.
    pub fn pin(&self) -> Pin {
        *self.0.pins.lock() += 1;
        Pin(Arc::clone(&self.0))
    }

    /// Acts as on a full disk.
    #[cfg(any(test, feature = "testing"))]
    pub fn want_room(&self) {
        self.0.is_wanted.store(true, Ordering::Relaxed);
    }
}

impl Pin {
    /// The disk is full: orders will need the room of the pinned segments.
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted.load(Ordering::Relaxed)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.0.pins.lock();
        *pins -= 1;
        if *pins == 0 {
            self.0.is_wanted.store(false, Ordering::Relaxed);
        }
    }
}

/// The job that makes spares.
pub struct Spares<S: Storage = Files> {
    preparer: Preparer<S>,
    covered: Covered,
    released: Lsn,
    disk_full: bool,
    /// The log wakes the job when it uses a spare.
    waker: JobWaker,
}

impl<S: Storage> Spares<S> {
    pub fn new(preparer: Preparer<S>, covered: Covered) -> Spares<S> {
        Spares { preparer, covered, released: Lsn::ZERO, disk_full: false, waker: JobWaker::default() }
    }

    /// The job is woken with `waker`.
    pub fn woken_by(self, waker: JobWaker) -> Spares<S> {
        Spares { waker, ..self }
    }

    /// Makes one spare, or releases covered segments. Returns false if there was nothing to do.
    ///
    /// # Errors
    /// [`wal::Error`]. The next turn continues with spares; releasing is tried again when more is covered.
    pub fn turn(&mut self) -> Result<bool, wal::Error> {
        let covered = self.covered.get();
        if covered > self.released {
            let pins = self.covered.0.pins.lock();
            if *pins == 0 {
                // Before a spare is made: a released segment becomes one. Only once, or a file that cannot be read
                // would prevent spares.
                self.released = covered;
                self.preparer.recycle(covered)?;
                return Ok(true);
            }
        }
        match self.preparer.turn()? {
            Prepared::One => {
                self.disk_full = false;
                return Ok(true);
            }
            Prepared::DiskFull { free_bytes } => {
                if covered > self.released {
                    let pins = self.covered.0.pins.lock();
                    self.covered.0.is_wanted.store(*pins > 0, Ordering::Relaxed);
                }
                if !std::mem::replace(&mut self.disk_full, true) {
                    tracing::error!(
                        free_bytes,
                        "the disk is full: orders are refused when the prepared log is used up; free some space"
                    );
                }
            }
            Prepared::Enough => self.disk_full = false,
        }
        Ok(false)
    }
}

/// After a failed turn serving continues with the spares that exist. When they are used up, writes are refused with a
/// code, until a turn after the pause succeeds.
impl<S: Storage> Work for Spares<S> {
    type Error = wal::Error;

    const FAILED: &'static str =
        "spare segments could not be made or released; writes are refused when the prepared log is full";

    fn take_turn(&mut self, _: &Stop) -> Result<Next, wal::Error> {
        Ok(if self.turn()? { Next::Again } else { Next::Sleep })
    }

    fn waker(&self) -> Option<&JobWaker> {
        Some(&self.waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::write_snapshot;
    use crate::recover::recover;
    use engine::shard::replay::State;
    use std::path::PathBuf;
    use wal::{Kind, Log, Options, Running, Snapshots, Syncer};

    const SEGMENT_BYTES: u64 = 1 << 20;
    const RECORD_BYTES: usize = 64 << 10;

    /// A log whose spares are made by calls.
    struct Place {
        spares: Spares,
        log: Log<Files>,
        syncer: Syncer<Files>,
        snapshots: Snapshots<Files>,
        covered: Covered,
        time: u64,
        directory: PathBuf,
        _place: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Place {
            Place::resting(|| {})
        }

        /// `rest` is called between steps of a spare for which there is time.
        fn resting(rest: impl FnMut() + Send + 'static) -> Place {
            let place = tempfile::tempdir().expect("a temporary folder");
            let directory = place.path().join("log");
            let options =
                Options { segment_bytes: SEGMENT_BYTES, spares_count: 2, reserve_bytes: 0, ..Options::default() };
            let recovery = recover(&directory, options, 1).expect("a new directory");
            let running = recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
            let Running { log, syncer, preparer, snapshots, .. } = running;
            let covered = Covered::default();
            let spares = Spares::new(preparer.resting(SEGMENT_BYTES / 4, rest), covered.clone());
            Place { spares, log, syncer, snapshots, covered, time: 1, directory, _place: place }
        }

        /// Appends `records` records, each synced, with spares as needed.
        fn append(&mut self, records: usize) -> Lsn {
            let payload = vec![0; RECORD_BYTES];
            let mut last = Lsn::ZERO;
            for _ in 0..records {
                while self.spares.turn().expect("room on the disk") {}
                self.time += 1;
                last = self.log.append(Kind::Mutations, 1, 1, self.time, &payload).expect("there is room");
                self.syncer.turn().expect("the disk is there");
            }
            last
        }

        fn snapshot(&mut self, lsn: Lsn) {
            write_snapshot(engine::format::Formats::Newest, &mut self.snapshots, &State::new(1), lsn, 0)
                .expect("room on the disk");
        }

        /// First records of the segments.
        fn segments(&self) -> Vec<Lsn> {
            let storage = Files::open_existing(&self.directory).expect("it was made");
            wal::segments(&storage).expect("it can be read").iter().map(|segment| segment.first_lsn).collect()
        }
    }

    #[test]
    fn segments_covered_by_the_older_snapshot_are_released_once() {
        let mut place = Place::new();
        let older = place.append(60);
        let newer = place.append(40);
        let before = place.segments();
        assert!(before.len() >= 6, "{before:?}");
        place.snapshot(older);
        assert_eq!(place.snapshots.covered().expect("it can be read"), None, "one snapshot covers nothing");
        place.snapshot(newer);
        let covered = place.snapshots.covered().expect("it can be read").expect("there are two");
        assert_eq!(covered, older);
        place.covered.note(covered);
        place.covered.note(Lsn(1));
        assert!(place.spares.turn().expect("room on the disk"), "there is something to release");
        // The segment that holds the record after the covered ones is the first that stays.
        let first =
            before.iter().rposition(|first| *first <= covered.next()).expect("the log begins at its first record");
        assert!(first > 0 && first + 1 < before.len(), "{first} of {before:?}");
        assert_eq!(place.segments(), before[first..]);
        assert!(!place.spares.turn().expect("room on the disk"), "it is released once");
        println!("segments: {} of {} released", first, before.len());
    }

    /// A pin keeps all segments; they are released after the last one is dropped. Spares are made meanwhile.
    #[test]
    fn pinned_segments_are_released_with_the_last_pin() {
        let mut place = Place::new();
        let older = place.append(60);
        let newer = place.append(40);
        place.snapshot(older);
        place.snapshot(newer);
        let before = place.segments();
        let (first, second) = (place.covered.pin(), place.covered.pin());
        place.covered.note(older);
        let last = place.append(20);
        assert_eq!(place.segments()[..before.len()], before, "two pins");
        drop(first);
        place.append(20);
        assert_eq!(place.segments()[..before.len()], before, "one pin");
        assert!(!second.is_wanted(), "there is room on the disk");
        let storage = Files::open_existing(&place.directory).expect("it was made");
        let mut scan = wal::Scan::open_all(&storage).expect("all of it is there").until(last);
        let mut read = 0;
        while scan.next().expect("whole records").is_some() {
            read += 1;
        }
        assert_eq!(read, last.0, "a reader of the log finds each record");
        drop(second);
        assert!(place.spares.turn().expect("room on the disk"), "there is something to release");
        assert!(place.segments()[0] > before[0], "it is not pinned any more");
        println!("records read under a pin: {read}");
    }

    /// Pinned segments are requested when the disk is full, and not before; the request ends with the pin.
    #[test]
    fn a_full_disk_requests_pinned_segments() {
        let rows = [(true, true, true), (true, false, false), (false, true, false)];
        for (is_full, is_covered, expected) in rows {
            let place = tempfile::tempdir().expect("a temporary folder");
            let reserve_bytes = if is_full { u64::MAX } else { 0 };
            let options =
                Options { segment_bytes: SEGMENT_BYTES, spares_count: 2, reserve_bytes, ..Options::default() };
            let recovery = recover(&place.path().join("log"), options, 1).expect("a new directory");
            let running = recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
            let (mut log, mut syncer) = (running.log, running.syncer);
            let last = log.append(Kind::Mutations, 1, 1, 2, b"x").expect("there is room");
            syncer.turn().expect("the disk is there");
            let covered = Covered::default();
            let mut spares = Spares::new(running.preparer, covered.clone());
            let pin = covered.pin();
            if is_covered {
                covered.note(last);
            }
            while spares.turn().expect("a full disk is not an error") {}
            assert_eq!(pin.is_wanted(), expected, "full: {is_full}, covered: {is_covered}");
            drop(pin);
            assert!(!covered.pin().is_wanted(), "the next pin is not requested");
        }
        println!("full disks: {} cases", rows.len());
    }

    #[test]
    fn a_spare_is_made_with_rests_as_long_as_the_log_leaves_time() {
        let rests = Arc::new(AtomicU64::new(0));
        let counter = rests.clone();
        let mut place = Place::resting(move || _ = counter.fetch_add(1, Ordering::Relaxed));
        while place.spares.turn().expect("room on the disk") {}
        // Two spares, zeroed and touched, in steps of 64 KiB.
        let expected = 2 * 2 * SEGMENT_BYTES / (64 << 10);
        assert_eq!(rests.load(Ordering::Relaxed), expected, "no appends");
        // The log uses all of its room before a spare is made: then there is no time.
        let payload = vec![0; RECORD_BYTES];
        while place.log.room(RECORD_BYTES) > 2 * RECORD_BYTES as u64 {
            place.time += 1;
            place.log.append(Kind::Mutations, 1, 1, place.time, &payload).expect("there is room");
            place.syncer.turn().expect("the disk is there");
        }
        assert!(place.spares.turn().expect("room on the disk"), "one is wanted");
        assert_eq!(rests.load(Ordering::Relaxed), expected, "the log is at its end");
        println!("rests: {expected}");
    }

    /// Segments that cannot be read cannot be released; orders still get room.
    #[test]
    fn spares_are_made_although_nothing_can_be_released() {
        let mut place = Place::new();
        let last = place.append(60);
        place.snapshot(Lsn(1));
        place.snapshot(last);
        // Other users may write to the first segment: a start would refuse it, too.
        let first = std::fs::read_dir(&place.directory).expect("it was made").flatten().map(|entry| entry.path());
        let first = first.filter(|path| path.extension().is_some_and(|end| end == "wal")).min().expect("a segment");
        std::fs::set_permissions(&first, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("it is ours");
        place.covered.note(last);
        let refused = place.spares.turn();
        assert!(refused.is_err(), "a file that other users may write to is not trusted: {refused:?}");
        place.append(60);
        println!("records although nothing can be released: 60");
    }
}
