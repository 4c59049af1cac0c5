//! A storage that rests between calls: for background work of many seconds on a machine whose cores are needed for
//! orders.
//!
//! A lower priority alone is not enough: the scheduler still gives such a thread a core for whole seconds, while the
//! threads that serve orders share the other.

use host::thread::Stop;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wal::storage::Background;
use wal::{Lsn, Marks, Storage, StoredFile};

/// Processor time between two rests, and the length of a rest as a multiple of it: a fifth of a core, in small steps.
const WORK: Duration = Duration::from_millis(1);
const REST_TIMES: u32 = 4;
/// The multiple for work that decides itself when there is time, so that nothing is delayed by it: a twentieth of a
/// core. Together with a checkpoint that uses a fifth, and orders that use two thirds, a second fifth would be more
/// than a core.
const LONG_REST_TIMES: u32 = 19;
/// Processor time at the beginning of a checkpoint without rests: a small checkpoint disturbs no client, and a server
/// that lives for a second still makes one.
const AT_ONCE: Duration = Duration::from_millis(50);
/// The longest rest: work without a call of a file may take as long before it, and a stop must not wait longer.
const REST_MAX: Duration = Duration::from_millis(100);

/// Decides when to rest. Clones share their state; one thread works and rests.
#[derive(Clone)]
pub struct Rests(Arc<Inner>);

struct Inner {
    /// The thread's processor time at its last rest, in nanoseconds; in the future at the beginning.
    rested: AtomicU64,
    /// There are no rests once the log has passed this record.
    until: AtomicU64,
    /// The length of a rest as a multiple of the work before it.
    times: u32,
    marks: Marks,
    stop: Stop,
    /// Until then work continues after the stop, too.
    over_at: OnceLock<Instant>,
    /// Checked before each call of a file, instead of the stop.
    question: Option<Question>,
}

/// Whether work continues; the error is the reason if not.
pub type Question = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

impl Rests {
    /// Never rests before [`Rests::begin`].
    pub fn new(marks: Marks, stop: Stop) -> Rests {
        Rests::with(Lsn(0), REST_TIMES, marks, stop, None)
    }

    /// Long rests from the beginning: for work that decides itself when there is time.
    pub fn long(marks: Marks, stop: Stop) -> Rests {
        Rests::with(Lsn(u64::MAX), LONG_REST_TIMES, marks, stop, None)
    }

    /// Rests from the beginning, for work that ends as soon as the question returns an error.
    pub fn asking(marks: Marks, stop: Stop, question: Question) -> Rests {
        Rests::with(Lsn(u64::MAX), REST_TIMES, marks, stop, Some(question))
    }

    fn with(until: Lsn, times: u32, marks: Marks, stop: Stop, question: Option<Question>) -> Rests {
        let (rested, until) = (AtomicU64::new(0), AtomicU64::new(until.0));
        Rests(Arc::new(Inner { rested, until, times, marks, stop, over_at: OnceLock::new(), question }))
    }

    /// Begins a piece of work, on the thread that does it. There is time for rests as long as the log's last record is
    /// at most `until`.
    pub fn begin(&self, until: Lsn) {
        self.0.until.store(until.0, Ordering::Relaxed);
        self.0.rested.store((own_time() + AT_ONCE).as_nanos() as u64, Ordering::Relaxed);
    }

    /// Rests, if the work since the last rest was long enough and there is time.
    pub fn breathe(&self) {
        let now = own_time();
        let worked = now.saturating_sub(Duration::from_nanos(self.0.rested.load(Ordering::Relaxed)));
        if worked >= WORK {
            std::thread::sleep(self.rest_after(worked));
            self.0.rested.store(now.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// The length of a rest after this much work.
    fn rest_after(&self, worked: Duration) -> Duration {
        let Inner { until, times, marks, stop, .. } = &*self.0;
        let has_time = marks.appended().0 <= until.load(Ordering::Relaxed) && !stop.is_set();
        if has_time { (worked * *times).min(REST_MAX) } else { Duration::ZERO }
    }

    /// The server has stopped, and the present work may take this long. Has an effect once.
    pub fn end_within(&self, time: Duration) {
        let _ = self.0.over_at.set(Instant::now() + time);
    }

    /// As [`Rests::breathe`], but fails if the server stops: it does not wait for work that the next start repeats, or
    /// not for long. If there is a question, only that decides.
    ///
    /// # Errors
    /// Why work must end.
    pub fn go_on(&self) -> io::Result<()> {
        if let Some(question) = &self.0.question {
            question()?;
        } else if self.0.stop.is_set() {
            return match self.0.over_at.get() {
                Some(over_at) if Instant::now() < *over_at => Ok(()),
                _ => Err(io::Error::other("the server stops")),
            };
        }
        self.breathe();
        Ok(())
    }
}

/// Processor time of this thread so far.
fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The same directory, with files that rest during reads and writes.
#[derive(Clone)]
pub struct Paced<S> {
    pub storage: S,
    pub rests: Rests,
}

/// A file of [`Paced`].
pub struct PacedFile<F> {
    file: F,
    rests: Rests,
}

impl<S: Storage> Paced<S> {
    fn paced(&self, file: S::File) -> PacedFile<S::File> {
        PacedFile { file, rests: self.rests.clone() }
    }
}

impl<S: Storage> Storage for Paced<S> {
    type File = PacedFile<S::File>;
    type Map = S::Map;
    type Lock = S::Lock;

    fn lock(&self) -> Result<S::Lock, wal::Error> {
        self.storage.lock()
    }

    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        self.storage.list()
    }

    fn open(&self, name: &str) -> io::Result<Self::File> {
        self.storage.open(name).map(|file| self.paced(file))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Self::File> {
        self.storage.open_to_read(name).map(|file| self.paced(file))
    }

    fn create(&self, name: &str) -> io::Result<Self::File> {
        self.storage.create(name).map(|file| self.paced(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.storage.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.storage.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.storage.sync_directory()
    }

    fn map(&self, file: &Self::File, bytes: u64) -> io::Result<S::Map> {
        self.storage.map(&file.file, bytes)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.storage.free_bytes()
    }

    fn random_id(&self) -> io::Result<[u8; 16]> {
        self.storage.random_id()
    }

    fn place(&self) -> String {
        self.storage.place()
    }

    fn in_background<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Background<T> {
        self.storage.in_background(work)
    }
}

impl<F: StoredFile> StoredFile for PacedFile<F> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.rests.go_on()?;
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.rests.go_on()?;
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn sync_range(&self, from: u64, to: u64) -> io::Result<()> {
        self.file.sync_range(from, to)
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn has_name(&self) -> io::Result<bool> {
        self.file.has_name()
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.file.reserve(bytes)
    }

    fn forget(&self, bytes: u64) {
        self.file.forget(bytes);
    }

    fn reload(&self) {
        self.file.reload();
    }

    fn prefetch(&self) {
        self.file.prefetch();
    }

    fn write_back(&self, from: u64, to: u64) -> io::Result<()> {
        self.rests.go_on()?;
        self.file.write_back(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recover::recover;
    use wal::{Files, Kind, Options};

    #[test]
    fn it_rests_as_long_as_there_is_time() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let options = Options { segment_bytes: 1 << 20, spares_count: 1, reserve_bytes: 0, ..Options::default() };
        let recovery = recover(&place.path().join("log"), options, 1).expect("a new directory");
        let running = recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
        let (mut log, marks) = (running.log, running.marks);
        for _ in 0..5 {
            log.append(Kind::Mutations, 1, 1, 1, b"x").expect("there is room");
        }
        let last = marks.appended();
        let none = Duration::ZERO;
        let rows = [
            ("before the beginning", None, WORK, false, none),
            ("there is time", Some(last), WORK, false, WORK * REST_TIMES),
            ("there is more time", Some(Lsn(u64::MAX)), WORK * 2, false, WORK * 2 * REST_TIMES),
            ("after long work", Some(last), REST_MAX, false, REST_MAX),
            ("the log has passed it", Some(last.before()), WORK, false, none),
            ("it is to stop", Some(last), WORK, true, none),
        ];
        for (name, until, worked, stopping, expected) in rows {
            let stop = Stop::new();
            if stopping {
                stop.set();
            }
            let rests = Rests::new(marks.clone(), stop);
            if let Some(until) = until {
                rests.begin(until);
            }
            assert_eq!(rests.rest_after(worked), expected, "{name}");
        }
        let long = Rests::long(marks, Stop::new());
        assert_eq!(long.rest_after(WORK), WORK * LONG_REST_TIMES, "long rests");
        println!("rests: {} cases", rows.len() + 1);
    }

    #[test]
    fn a_server_that_stops_waits_for_no_file_for_long() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let files = Files::open(place.path().join("log")).expect("a new directory");
        let options = Options { segment_bytes: 1 << 20, spares_count: 1, reserve_bytes: 0, ..Options::default() };
        let recovery = recover(&place.path().join("log"), options, 1).expect("a new directory");
        let running = recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
        let (none, long) = (Duration::ZERO, Duration::from_secs(3_600));
        let rows = [
            (false, None, true),
            (true, None, false),
            (true, Some(long), true),
            (true, Some(none), false),
            (false, Some(none), true),
        ];
        for (number, (is_set, within, goes_on)) in rows.into_iter().enumerate() {
            let stop = Stop::new();
            let rests = Rests::new(running.marks.clone(), stop.clone());
            if is_set {
                stop.set();
            }
            if let Some(within) = within {
                rests.end_within(within);
            }
            let paced = Paced { storage: files.clone(), rests };
            let file = paced.create(&format!("any {number}")).expect("a file");
            let calls = [file.write_at(b"x", 0).is_ok(), file.read_at(&mut [0], 0).is_ok()];
            assert_eq!(calls, [goes_on; 2], "stopped: {is_set}, ends within {within:?}");
        }
        println!("stops: {} cases", rows.len());
    }
}
