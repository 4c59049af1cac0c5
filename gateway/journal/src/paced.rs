//! A storage whose reader and writer rests between its calls: for work of many seconds that nobody waits for, on a machine
//! whose cores the orders need.
//!
//! A lower priority alone is not enough: the scheduler still lets such a thread have a core to itself for whole seconds,
//! while those that answer orders share the other.

use host::thread::Stop;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wal::storage::Background;
use wal::{Lsn, Marks, Storage, StoredFile};

/// Processor time between two rests, and how many times as long as it each of them is: a fifth of a core, in small bites.
const WORK: Duration = Duration::from_millis(1);
const REST_TIMES: u32 = 4;
/// The same for who says by himself when there is time, so that nothing comes late for it: a twentieth of a core. Beside a
/// checkpoint that has its fifth, and orders that want two thirds, a second fifth is more than a core has.
const LONG_REST_TIMES: u32 = 19;
/// Processor time at the beginning of a checkpoint that is not rested from: nobody feels a small one, and a server that lives
/// for a second still makes it.
const AT_ONCE: Duration = Duration::from_millis(50);
/// The longest rest: a stretch of work without a call of a file is as long as it is, and a stop is not to wait for more.
const REST_MAX: Duration = Duration::from_millis(100);

/// When to rest. Clones are the same; one thread works and rests.
#[derive(Clone)]
pub struct Rests(Arc<Inner>);

struct Inner {
    /// The thread's processor time at its last rest, in nanoseconds; ahead of it at the beginning.
    rested: AtomicU64,
    /// There is no rest once the log reaches behind this record.
    until: AtomicU64,
    /// How many times as long as the work before it a rest is.
    times: u32,
    marks: Marks,
    stop: Stop,
    /// Until then there is work behind the stop, too.
    over_at: OnceLock<Instant>,
    /// Asked before each call of a file, instead of the stop.
    question: Option<Question>,
}

/// Whether work goes on; the error says why not.
pub type Question = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

impl Rests {
    /// Never rests before [`Rests::begin`].
    pub fn new(marks: Marks, stop: Stop) -> Rests {
        Rests::with(Lsn(0), REST_TIMES, marks, stop, None)
    }

    /// Rests long, from the first piece of work on: for who says by himself when there is time.
    pub fn long(marks: Marks, stop: Stop) -> Rests {
        Rests::with(Lsn(u64::MAX), LONG_REST_TIMES, marks, stop, None)
    }

    /// Rests from the first piece of work on, for work that ends as soon as the question has an error for an answer.
    pub fn asking(marks: Marks, stop: Stop, question: Question) -> Rests {
        Rests::with(Lsn(u64::MAX), REST_TIMES, marks, stop, Some(question))
    }

    fn with(until: Lsn, times: u32, marks: Marks, stop: Stop, question: Option<Question>) -> Rests {
        let (rested, until) = (AtomicU64::new(0), AtomicU64::new(until.0));
        Rests(Arc::new(Inner { rested, until, times, marks, stop, over_at: OnceLock::new(), question }))
    }

    /// Begins a piece of work, on the thread that does it. There is time as long as the log's last record is at most this
    /// one.
    pub fn begin(&self, until: Lsn) {
        self.0.until.store(until.0, Ordering::Relaxed);
        self.0.rested.store((own_time() + AT_ONCE).as_nanos() as u64, Ordering::Relaxed);
    }

    /// Rests, if there was work for long enough and there is time.
    pub fn breathe(&self) {
        let now = own_time();
        let worked = now.saturating_sub(Duration::from_nanos(self.0.rested.load(Ordering::Relaxed)));
        if worked >= WORK {
            std::thread::sleep(self.rest_behind(worked));
            self.0.rested.store(now.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// How long a rest is behind so much work.
    fn rest_behind(&self, worked: Duration) -> Duration {
        let Inner { until, times, marks, stop, .. } = &*self.0;
        let has_time = marks.appended().0 <= until.load(Ordering::Relaxed) && !stop.is_set();
        if has_time { (worked * *times).min(REST_MAX) } else { Duration::ZERO }
    }

    /// The server has stopped, and what is done now may take so long. Said once.
    pub fn end_within(&self, time: Duration) {
        let _ = self.0.over_at.set(Instant::now() + time);
    }

    /// As [`Rests::breathe`], unless the server is to stop: it does not wait for what a start makes again, or not for long.
    /// Where there is a question, that alone decides.
    ///
    /// # Errors
    /// Why work does not go on.
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

/// The same directory, whose files are read and written with rests.
#[derive(Clone)]
pub struct Paced<S> {
    pub storage: S,
    pub rests: Rests,
}

/// A file of it.
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
    fn it_rests_for_as_long_as_there_is_time() {
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
            ("nothing was told", None, WORK, false, none),
            ("there is time", Some(last), WORK, false, WORK * REST_TIMES),
            ("there is more time", Some(Lsn(u64::MAX)), WORK * 2, false, WORK * 2 * REST_TIMES),
            ("it worked for long", Some(last), REST_MAX, false, REST_MAX),
            ("the log is behind it", Some(last.before()), WORK, false, none),
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
            assert_eq!(rests.rest_behind(worked), expected, "{name}");
        }
        let long = Rests::long(marks, Stop::new());
        assert_eq!(long.rest_behind(WORK), WORK * LONG_REST_TIMES, "long rests");
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
