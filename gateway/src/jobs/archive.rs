//! The job `archive`: hours of this server's recording become hours of its archive, and old ones are removed
//! (gateway/docs/archive.md §8).
//!
//! It sleeps until an hour is due. Everything that it leaves is whole, so it may be killed at any point.

use crate::config::{Archive, ArchiveBuild, Config};
use ::archive::error::Error;
use ::archive::store::{self, Lock, Store};
use ::archive::unsealed::Bounds;
use engine::backtest::Hour;
use engine::time::Timestamp;
use host::clock::Clock;
use host::job::{Next, Work};
use host::thread::Stop;
use parking_lot::Mutex;
use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use venue::archive::build::Options;
use venue::archive::hourly::{self, Done};
use venue::archive::room::Room;
use venue::archive::seal::{Place, Sealed};
use venue::archive::tail::{Tail, TailError};
use venue::category::Names;
use venue::live::recorder::hours::{self, RecordedFile};
use venue::tape::Origin;

/// Longest sleep: the clock may have been moved.
pub const CHECK_EVERY: Duration = Duration::from_secs(10);
/// Wait after a failure, for room on the disk, or for another process.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
const HOURS_PER_DAY: u32 = 24;
/// How often what is recorded is read for readers of hours that are not made yet.
const TAIL_EVERY: Duration = Duration::from_secs(5);

/// Figures of the job since the start of the process.
#[derive(Debug, Default)]
pub struct Figures {
    /// Hours made, and the bytes of their Parquet files.
    pub hours: AtomicU64,
    pub bytes: AtomicU64,
    /// Begin of the newest hour made, in seconds since 1970; 0: none.
    pub newest: AtomicU64,
    pub is_building: AtomicBool,
    /// Attempts that were put off because the disk has too little room.
    pub refused: AtomicU64,
    /// Attempts that failed.
    pub failed: AtomicU64,
    /// Lines of the recording for hours that were made before.
    pub late: AtomicU64,
    /// Hours of the archive that were removed, and files of the recording.
    pub removed: AtomicU64,
    pub raw_removed: AtomicU64,
}

/// The folder of the archive, opened for jobs and readers.
///
/// # Errors
/// The system's.
pub fn open(settings: &Archive) -> Result<Store, Error> {
    let Archive { books_bytes, keep_days, bytes_max, cache_bytes, .. } = *settings;
    Store::open(&settings.dir, store::Settings { books_bytes, keep_days, bytes_max, cache_bytes })
}

/// Makes and removes hours.
pub struct Keeping {
    store: Arc<Store>,
    settings: Archive,
    /// The folder of the recording, if this server records.
    recording: Option<PathBuf>,
    names: Names,
    clock: Clock,
    /// Free bytes of the disk below which no hour is made.
    reserve_bytes: u64,
    /// For lack of them, hours that are not made are not read either.
    is_short: bool,
    figures: Arc<Figures>,
    /// Hours that are not made yet, for readers.
    tail: Option<Arc<Mutex<Tail>>>,
    /// When there is something to do.
    due_at: Timestamp,
    is_recovered: bool,
    /// What hinders the making of hours, as it was logged.
    hindered: Option<String>,
    /// What hinders the reading of hours that are not made, as it was logged, and when that is tried again.
    unread: Option<String>,
    read_again_at: Timestamp,
}

impl Keeping {
    /// Of a server that records into this folder, or not.
    pub fn new(
        config: &Config,
        store: Arc<Store>,
        recording: Option<PathBuf>,
        clock: Clock,
        figures: Arc<Figures>,
    ) -> Keeping {
        Keeping {
            store,
            settings: config.archive.clone(),
            recording,
            names: config.venue.categories.clone(),
            clock,
            reserve_bytes: Room::beside_log(config.journal.reserve_bytes).needed(),
            is_short: false,
            figures,
            tail: None,
            due_at: Timestamp::default(),
            is_recovered: false,
            hindered: None,
            unread: None,
            read_again_at: Timestamp::default(),
        }
    }

    /// Hours that are not made yet, for readers; `None`: no hours are made. The job reads what is recorded.
    pub fn tail(&mut self) -> Option<Arc<Mutex<Tail>>> {
        let folder = self.source()?;
        let tail = Tail::new(self.store.clone(), folder, self.names.clone(), Bounds::default());
        Some(self.tail.insert(Arc::new(Mutex::new(tail))).clone())
    }

    /// Whether a server with these settings has something to make or to remove.
    pub fn is_needed(config: &Config, is_recording: bool) -> bool {
        let Archive { build, keep_days, raw_keep_days, bytes_max, .. } = config.archive;
        let removes = keep_days > 0 || bytes_max > 0 || (is_recording && raw_keep_days > 0);
        removes || (is_recording && build == ArchiveBuild::Auto)
    }

    /// The folder of the recording whose hours are made.
    fn source(&self) -> Option<&PathBuf> {
        self.recording.as_ref().filter(|_| self.settings.build == ArchiveBuild::Auto)
    }

    fn wait(&self, now: Timestamp) -> Next {
        Next::SleepFor(Duration::from_micros(self.due_at.since(now)))
    }

    /// Reads what was recorded since the last turn, a piece at a time, so that readers come in between. Without room on the
    /// disk it is forgotten.
    fn read_tail(&mut self, stop: &Stop) -> Result<(), TailError> {
        let Some(tail) = self.tail.clone() else { return Ok(()) };
        let is_short = self.free_bytes()? < self.reserve_bytes;
        let was_short = std::mem::replace(&mut self.is_short, is_short);
        if is_short {
            if !was_short {
                let needed = self.reserve_bytes;
                tracing::warn!(needed, "the disk has too few free bytes: hours that are not made yet cannot be read");
            }
            tail.lock().end();
            return Ok(());
        }
        let begun = tail.lock().begin();
        begun?;
        tail.lock().look_again();
        while !stop.is_set() && tail.lock().read_some()? {}
        Ok(())
    }

    /// No hour can be made now: that is tried again later.
    fn hinder(&mut self, now: Timestamp, cause: impl Display, says: &'static str) -> Next {
        note(&mut self.hindered, cause, says);
        self.due_at = again(now);
        Next::SleepFor(AGAIN_AFTER)
    }

    /// Reads the end of the recording, unless that failed within the last minute. What hinders this does not hinder the
    /// making of hours, which may be due much later.
    fn follow(&mut self, now: Timestamp, stop: &Stop) {
        if now < self.read_again_at {
            return;
        }
        match self.read_tail(stop) {
            Ok(()) => {
                if self.unread.take().is_some() {
                    tracing::info!("the end of the recording is read again");
                }
            }
            Err(error) => {
                self.figures.failed.fetch_add(1, Relaxed);
                let says = "the end of the recording cannot be read; tried again every minute";
                note(&mut self.unread, error, says);
                self.read_again_at = again(now);
            }
        }
    }

    /// The right to make and remove hours; `None`: another process has it.
    fn lock(&mut self) -> Result<Option<Lock>, Error> {
        let lock = match self.store.lock() {
            Err(Error::Io(_, error)) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            lock => lock?,
        };
        if !self.is_recovered {
            self.store.recover(&lock)?;
            self.is_recovered = true;
        }
        // Other processes may have pinned hours, and reads may have found damaged indexes.
        self.store.refresh()?;
        self.store.mend(&lock)?;
        Ok(Some(lock))
    }

    fn free_bytes(&self) -> Result<u64, Error> {
        let root = self.store.root();
        let stat = rustix::fs::statvfs(root).map_err(|error| Error::Io(root.to_owned(), error.into()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Makes the hours before this one.
    fn make(&mut self, lock: Arc<Lock>, until: Hour, now: Timestamp, stop: &Stop) -> Result<Done, String> {
        let Some(folder) = self.source() else { return Ok(Done::default()) };
        let options = Options {
            place: Place {
                store: self.store.clone(),
                lock,
                room: Room::of(self.reserve_bytes),
                memory_bytes: self.settings.memory_bytes,
                replace: false,
                replaces_recorded: true,
                is_recorded: true,
                now,
                built_by: concat!("papertape ", env!("CARGO_PKG_VERSION")).into(),
                url: None,
                attribution: None,
            },
            markets: None,
            from: None,
            to: None,
            threads: self.settings.threads,
        };
        let figures = self.figures.clone();
        let mut sealed = |hour: Sealed| {
            figures.newest.fetch_max(Timestamp::of_hour(hour.hour).secs(), Relaxed);
            if hour.is_new {
                figures.hours.fetch_add(1, Relaxed);
                figures.bytes.fetch_add(hour.bytes, Relaxed);
                let Sealed { rows, bytes, gaps, ref verdict, .. } = hour;
                let (venue, hour) = (hour.origin.name(), Hour(hour.hour).to_string());
                tracing::info!(venue, hour, rows, bytes, gaps, verdict, "an hour of the archive is made");
            }
        };
        self.figures.is_building.store(true, Relaxed);
        let done = hourly::make_due(folder, until, &options, &self.names, stop, &mut sealed);
        self.figures.is_building.store(false, Relaxed);
        let done = done.map_err(|error| error.to_string())?;
        self.figures.late.fetch_add(done.late, Relaxed);
        for path in &done.foreign {
            tracing::warn!(file = %path.display(), "the hour is there from another source; that of the recording is not made");
        }
        Ok(done)
    }

    /// Removes old hours, and then old files of the recording.
    fn retain(&self, lock: &Lock, now: Timestamp, until: Hour) -> Result<(), Error> {
        let done = self.store.retain(lock, now)?;
        self.figures.removed.fetch_add(done.hours.len() as u64, Relaxed);
        if !done.hours.is_empty() {
            tracing::info!(hours = done.hours.len(), bytes = done.bytes, "old hours of the archive are removed");
        }
        let (Some(folder), days @ 1..) = (&self.recording, self.settings.raw_keep_days) else { return Ok(()) };
        let io = |error| Error::Io(folder.clone(), error);
        let first_kept = Hour::of(now).0.saturating_sub(days.saturating_mul(HOURS_PER_DAY));
        for file in hours::recorded_files(folder).map_err(io)? {
            if file.hour < first_kept && self.may_remove(&file, until) {
                std::fs::remove_file(&file.path).map_err(|error| Error::Io(file.path.clone(), error))?;
                self.figures.raw_removed.fetch_add(1, Relaxed);
                tracing::info!(file = %file.path.display(), "an old hour of the recording is removed");
            }
        }
        Ok(())
    }

    /// Whether a file of the recording is not needed: its hour is made, and neither pinned nor in use.
    fn may_remove(&self, file: &RecordedFile, until: Hour) -> bool {
        let hour = Hour(file.hour);
        let is_free = Origin::all().all(|origin| self.store.is_free(origin.name(), hour));
        let is_made = |origin: Origin| match self.store.hour(origin.name(), hour) {
            // The venue has no line in it, or it was removed.
            None => true,
            Some(entry) => entry.sidecar().is_ok_and(|sidecar| sidecar.source.kind == "recorded"),
        };
        is_free && (self.source().is_none() || (hour < until && Origin::all().all(is_made)))
    }

    /// All that is due now.
    fn work(&mut self, now: Timestamp, stop: &Stop) -> Result<Next, String> {
        let Some(lock) = self.lock().map_err(|error| error.to_string())? else {
            let cause = "another process makes hours in the archive";
            return Ok(self.hinder(now, cause, "no hour is made; tried again every minute"));
        };
        let lock = Arc::new(lock);
        let seal_after = self.settings.seal_after.as_micros() as u64;
        let until = Hour::of(Timestamp(now.0.saturating_sub(seal_after)));
        // First, since it makes room.
        let made = self.source().map_or(until, |_| hourly::reached(self.store.root()).unwrap_or_default());
        self.retain(&lock, now, made).map_err(|error| error.to_string())?;
        if self.source().is_some() {
            let free_bytes = self.free_bytes().map_err(|error| error.to_string())?;
            if free_bytes < self.reserve_bytes {
                self.figures.refused.fetch_add(1, Relaxed);
                let needed = self.reserve_bytes;
                return Ok(self.hinder(
                    now,
                    format!("the disk needs {needed} free bytes"),
                    "no hour is made; tried again every minute",
                ));
            }
            self.make(lock.clone(), until, now, stop)?;
            self.tail.iter().for_each(|tail| tail.lock().forget_before(until));
            self.retain(&lock, now, until).map_err(|error| error.to_string())?;
        }
        if self.hindered.take().is_some() {
            tracing::info!("hours are made again");
        }
        self.due_at = Timestamp::of_hour(until.next().0).plus(seal_after);
        Ok(self.wait(self.clock.now()))
    }
}

impl Work for Keeping {
    type Error = Infallible;

    fn take_turn(&mut self, stop: &Stop) -> Result<Next, Infallible> {
        let now = self.clock.now();
        let next = match now < self.due_at {
            true => self.wait(now),
            false => match self.work(now, stop) {
                Ok(next) => next,
                Err(_) if stop.is_set() => return Ok(Next::Over),
                Err(error) => {
                    self.figures.failed.fetch_add(1, Relaxed);
                    self.hinder(now, error, "hours of the recording cannot be made; tried again every minute")
                }
            },
        };
        let Some(tail) = self.tail.clone() else { return Ok(next) };
        // While no hour can be made, those that are not made would become too many.
        match self.hindered.is_some() {
            true => tail.lock().end(),
            false => self.follow(now, stop),
        }
        Ok(match next {
            Next::SleepFor(time) => Next::SleepFor(time.min(TAIL_EVERY)),
            next => next,
        })
    }
}

/// One line for each cause, when it begins.
fn note(known: &mut Option<String>, cause: impl Display, says: &'static str) {
    let cause = cause.to_string();
    if known.as_ref() != Some(&cause) {
        tracing::warn!(cause, "{says}");
        *known = Some(cause);
    }
}

/// When something that failed now is tried again.
fn again(now: Timestamp) -> Timestamp {
    now.plus(AGAIN_AFTER.as_micros() as u64)
}

/// The archive of this server, for the job that keeps it and for readers.
pub struct Kept {
    /// `None`: nothing needs it, or it cannot be opened.
    pub store: Option<Arc<Store>>,
    pub figures: Option<Arc<Figures>>,
}

impl Kept {
    /// Opens it, if this server keeps or reads one.
    pub fn open(config: &Config, is_recording: bool) -> Kept {
        let is_kept = Keeping::is_needed(config, is_recording);
        let store = (is_kept || config.flags.feature_simulation_api_enabled).then(|| open(&config.archive));
        let store = store.and_then(|opened| match opened {
            Ok(store) => Some(Arc::new(store)),
            Err(error) => {
                tracing::warn!(%error, "the archive cannot be opened: it is neither kept nor read until a restart");
                None
            }
        });
        Kept { figures: store.as_ref().filter(|_| is_kept).map(|_| Arc::default()), store }
    }

    /// The job, if there is something to keep.
    pub fn keeping(&self, config: &Config, is_recording: bool, clock: &Clock) -> Option<Keeping> {
        let (store, figures) = (self.store.clone()?, self.figures.clone()?);
        let recording = config.venue.live.recording.clone().filter(|_| is_recording);
        Some(Keeping::new(config, store, recording, clock.clone(), figures))
    }
}

#[cfg(test)]
mod tests;
