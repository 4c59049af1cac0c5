//! The archive's folder: its hours, their state, and the books in them.
//!
//! | File | Holds |
//! |---|---|
//! | `names.rs` | names and folders of files |
//! | `cache.rs` | open hours and decoded rows in memory |
//! | `at.rs` | the book of a token at a moment; coverage of a market |
//! | `checker.rs` | digests of files that are read, compared in the background |
//! | `complete.rs` | the end of making an hour: index, sidecar, chain |
//! | `keep.rs` | recovery, pins, retention |
//! | `verify.rs` | the check of all files |
//!
//! An hour is complete when its sidecar is there, which is written last and names the other files' digests. An hour
//! whose files turn out to be damaged is quarantined until they change.
//!
//! Damage is that of the files as they were listed. Of several findings the first one stays. A finding about files that
//! were replaced or removed since they were listed says nothing about those that are there now: a read that makes one
//! lists the hour again, the comparison of digests drops it.

mod at;
mod cache;
mod checker;
mod complete;
mod keep;
mod names;
mod verify;

pub use at::BookError;
pub(crate) use at::CARRY_HOURS_MAX;
pub use complete::Files;
pub use keep::{Hold, Retention};
pub use names::{hour_name, hour_of_name, index_path, parquet_path, sidecar_path};
pub use verify::{Finding, RawCheck};

use crate::error::{Error, Named, Refusal};
use crate::sidecar::{Gaps, Sidecar};
use ahash::AHashMap;
use cache::Cache;
use checker::Checker;
use engine::backtest::Hour;
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// The folder of runs that are sorted by time.
pub(crate) const CACHE: &str = "cache";
/// Held by the process that makes and removes hours.
const LOCK: &str = "archive.lock";
/// What to do while another process holds it.
const LOCKED: &str = "another process makes or removes hours in this archive (it holds archive.lock); run the command \
                      again when that has ended, or give another archive";

/// Bounds of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of books and decoded rows in memory.
    pub books_bytes: u64,
    /// Days after which an hour is removed; 0: never.
    pub keep_days: u32,
    /// Bytes of all hours; 0: no bound.
    pub bytes_max: u64,
    /// Bytes of the cache folder.
    pub cache_bytes: u64,
}

/// An archive on disk. Reading is possible from any number of threads and processes; one process at a time makes and
/// removes hours ([`Store::lock`]).
pub struct Store {
    root: PathBuf,
    settings: Settings,
    venues: RwLock<BTreeMap<String, BTreeMap<Hour, Arc<HourEntry>>>>,
    /// Held while the disk is listed, so that no older list replaces a newer one.
    listing: Mutex<()>,
    cache: Cache,
    checker: Checker,
    readers: Readers,
    /// Hours in use, by number of users. Locked while the sidecar of an hour is removed, so that no use begins then.
    held: Mutex<AHashMap<(String, Hour), u32>>,
    next_number: AtomicU64,
    /// Grows with every change of the list of hours, and of the state of one.
    version: Arc<AtomicU64>,
}

/// The files of an hour.
pub struct HourEntry {
    /// New whenever the files change.
    number: u64,
    pub venue: String,
    pub hour: Hour,
    /// The Parquet file.
    pub path: PathBuf,
    /// Bytes of Parquet, index and sidecar.
    pub bytes: u64,
    pub is_pinned: bool,
    stamps: [Stamp; 3],
    sidecar: Mutex<Option<Result<Arc<Sidecar>, Refusal>>>,
    /// The gaps of its sidecar by token.
    gaps: OnceLock<Gaps>,
    found: Arc<Found>,
}

/// What reading showed about the files of an hour.
#[derive(Default)]
struct Found {
    /// The first damage.
    damage: OnceLock<Refusal>,
    /// Whether the comparison of digests was asked for.
    is_asked: AtomicBool,
    /// Whether the index was opened without a failure.
    has_index: AtomicBool,
}

/// Identity of a file's content: inode, bytes, time of change.
type Stamp = Option<(u64, u64, SystemTime)>;

/// The right to make and remove hours. Released when it is dropped.
pub struct Lock {
    _file: File,
}

/// Bounds how many books are read at a time.
#[derive(Default)]
struct Readers {
    busy: Mutex<u32>,
    free: Condvar,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { books_bytes: 256 << 20, keep_days: 0, bytes_max: 0, cache_bytes: 4 << 30 }
    }
}

impl Store {
    /// Opens the archive in a folder, which is created if it is absent, and lists its hours.
    ///
    /// # Errors
    /// The system's.
    pub fn open(root: &Path, settings: Settings) -> Result<Store, Error> {
        fs::create_dir_all(root).of(root)?;
        let books_bytes = usize::try_from(settings.books_bytes).unwrap_or(usize::MAX);
        let version = Arc::<AtomicU64>::default();
        let store = Store {
            root: root.to_owned(),
            settings,
            venues: RwLock::default(),
            listing: Mutex::default(),
            cache: Cache::new(books_bytes),
            checker: Checker::new(version.clone()),
            readers: Readers::default(),
            held: Mutex::default(),
            next_number: AtomicU64::new(1),
            version,
        };
        store.refresh()?;
        Ok(store)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes the right to make and remove hours.
    ///
    /// # Errors
    /// Another process has it ([`io::ErrorKind::WouldBlock`]; the text names the folder), or the system's.
    pub fn lock(&self) -> Result<Lock, Error> {
        let path = self.root.join(LOCK);
        let file = File::options().create(true).append(true).open(&path).of(&path)?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from) {
            Ok(()) => Ok(Lock { _file: file }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::Error::new(error.kind(), LOCKED)).of(&self.root)
            }
            Err(error) => Err(error).of(&path),
        }
    }

    /// Lists the hours on disk again. Entries of files that did not change stay.
    ///
    /// # Errors
    /// The system's.
    pub fn refresh(&self) -> Result<(), Error> {
        let _listing = self.listing.lock();
        let mut venues = BTreeMap::new();
        for entry in entries(&self.root)? {
            let name = entry.file_name();
            let Some(venue) = name.to_str().filter(|name| names::is_venue(name)) else { continue };
            if entry.file_type().of(&entry.path())?.is_dir() {
                venues.insert(venue.to_owned(), self.scan(venue)?);
            }
        }
        let old = std::mem::replace(&mut *self.venues.write(), venues.clone());
        let count = |venues: &BTreeMap<String, BTreeMap<Hour, _>>| venues.values().map(BTreeMap::len).sum::<usize>();
        let mut is_changed = count(&old) != count(&venues);
        for (venue, hours) in old {
            for (hour, entry) in hours {
                let stays =
                    venues.get(&venue).and_then(|hours| hours.get(&hour)).is_some_and(|now| now.number == entry.number);
                if !stays {
                    self.cache.forget(entry.number);
                    is_changed = true;
                }
            }
        }
        if is_changed {
            self.version.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    fn scan(&self, venue: &str) -> Result<BTreeMap<Hour, Arc<HourEntry>>, Error> {
        let mut hours = BTreeMap::new();
        for year in folders(&self.root.join(venue))? {
            for month in folders(&year)? {
                for day in folders(&month)? {
                    for entry in entries(&day)? {
                        let name = entry.file_name();
                        let hour = name.to_str().and_then(|name| hour_of_name(venue, name));
                        let Some(hour) = hour else { continue };
                        // Elsewhere than in the folder of its day it is not an hour of the archive.
                        if names::folder(&self.root, venue, hour) == day && entry.file_type().of(&day)?.is_file() {
                            hours.extend(self.entry(venue, hour)?.map(|entry| (hour, entry)));
                        }
                    }
                }
            }
        }
        Ok(hours)
    }

    /// The entry of an hour on disk: the known one if its files are the same.
    fn entry(&self, venue: &str, hour: Hour) -> Result<Option<Arc<HourEntry>>, Error> {
        let path = parquet_path(&self.root, venue, hour);
        let stamps = stamps(&path)?;
        if stamps[0].is_none() {
            return Ok(None);
        }
        let is_pinned = names::pin_path(&path).exists();
        let known = self.hour(venue, hour).filter(|known| known.stamps == stamps);
        let found = known.as_ref().map(|known| known.found.clone()).unwrap_or_default();
        Ok(Some(known.filter(|known| known.is_pinned == is_pinned).unwrap_or_else(|| {
            Arc::new(HourEntry {
                number: self.next_number.fetch_add(1, Ordering::Relaxed),
                venue: venue.to_owned(),
                hour,
                path,
                bytes: stamps.iter().flatten().map(|(_, bytes, _)| bytes).sum(),
                is_pinned,
                stamps,
                sidecar: Mutex::new(None),
                gaps: OnceLock::new(),
                found,
            })
        })))
    }

    /// Lists one hour again.
    fn refresh_hour(&self, venue: &str, hour: Hour) -> Result<Option<Arc<HourEntry>>, Error> {
        let _listing = self.listing.lock();
        let now = self.entry(venue, hour)?;
        let mut venues = self.venues.write();
        let hours = venues.entry(venue.to_owned()).or_default();
        let old = match &now {
            Some(now) => hours.insert(hour, now.clone()),
            None => hours.remove(&hour),
        };
        drop(venues);
        let number = |entry: &Option<Arc<HourEntry>>| entry.as_ref().map(|entry| entry.number);
        if number(&old) != number(&now) {
            self.version.fetch_add(1, Ordering::Release);
        }
        if let Some(old) = old.filter(|old| now.as_ref().is_none_or(|now| now.number != old.number)) {
            self.cache.forget(old.number);
        }
        Ok(now)
    }

    /// Whether an hour was listed with other files since this entry of it was taken, or is gone.
    fn is_replaced(&self, entry: &HourEntry) -> bool {
        self.hour(&entry.venue, entry.hour).is_none_or(|now| now.number != entry.number)
    }

    /// A number that is another one after every change of the hours.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Names of the venues that have hours.
    pub fn venues(&self) -> Vec<String> {
        self.venues.read().keys().cloned().collect()
    }

    /// An hour of a venue.
    pub fn hour(&self, venue: &str, hour: Hour) -> Option<Arc<HourEntry>> {
        self.venues.read().get(venue)?.get(&hour).cloned()
    }

    /// The hours of a venue in a range, ascending.
    pub fn entries(&self, venue: &str, range: Range<Hour>) -> Vec<Arc<HourEntry>> {
        let venues = self.venues.read();
        if range.is_empty() {
            return Vec::new();
        }
        venues.get(venue).map_or(Vec::new(), |hours| hours.range(range).map(|(_, entry)| entry.clone()).collect())
    }

    /// All hours of a venue, ascending.
    pub fn all(&self, venue: &str) -> Vec<Arc<HourEntry>> {
        self.entries(venue, Hour(0)..Hour(u32::MAX))
    }

    /// Bytes of all hours.
    pub fn bytes(&self) -> u64 {
        self.venues.read().values().flat_map(|hours| hours.values()).map(|entry| entry.bytes).sum()
    }

    /// Bytes of books and decoded rows in memory.
    pub fn memory(&self) -> usize {
        self.cache.bytes()
    }
}

impl HourEntry {
    /// The sidecar, read once.
    ///
    /// # Errors
    /// It is missing, damaged, or of another hour, or a file of the hour turned out to be damaged: the hour is
    /// quarantined.
    pub fn sidecar(&self) -> Result<Arc<Sidecar>, Refusal> {
        match self.found.damage.get() {
            Some(damage) => Err(damage.clone()),
            None => self.stated(),
        }
    }

    /// The sidecar, without regard to the other files.
    fn stated(&self) -> Result<Arc<Sidecar>, Refusal> {
        let mut known = self.sidecar.lock();
        known.get_or_insert_with(|| self.read_sidecar()).clone()
    }

    /// Whether its files are still those that were listed. Files that cannot be looked at count as such.
    fn is_as_listed(&self) -> bool {
        stamps(&self.path).map_or(true, |now| now == self.stamps)
    }

    /// Notes that a file is damaged: the hour is quarantined. Returns whether that is new.
    fn note_damage(&self, path: &Path, refusal: &Refusal) -> bool {
        let name = path.file_name().unwrap_or_default().display();
        let reason = format!("{name}: {}", refusal.reason);
        self.found.damage.set(Refusal::new(reason).at_byte_of(refusal.offset)).is_ok()
    }

    /// Whether a gap of a token begins after a moment and not after another, in milliseconds: its book is unknown then
    /// if it had no whole book since.
    fn has_gap(&self, token: &str, since: u64, until: u64) -> bool {
        let gaps = || self.stated().map(|sidecar| sidecar.gaps_by_token()).unwrap_or_default();
        self.gaps.get_or_init(gaps).has(token, since, until)
    }

    fn read_sidecar(&self) -> Result<Arc<Sidecar>, Refusal> {
        let path = sidecar_path(&self.path);
        let sidecar = Sidecar::read(&path).map_err(|error| match error {
            Error::Io(_, error) if error.kind() == io::ErrorKind::NotFound => Refusal::new("the sidecar is missing"),
            Error::Io(_, error) => Refusal::new(format!("the sidecar cannot be read: {error}")),
            Error::Refused(_, refusal) => refusal,
        })?;
        if sidecar.hour != self.hour.to_string() || sidecar.venue != self.venue {
            return Err(Refusal::new(format!("the sidecar is of {} {}", sidecar.venue, sidecar.hour)));
        }
        let bytes = self.stamps[0].map_or(0, |(_, bytes, _)| bytes);
        if sidecar.parquet.bytes != bytes {
            return Err(Refusal::new(format!("the Parquet file has {bytes} bytes, not {}", sidecar.parquet.bytes)));
        }
        Ok(Arc::new(sidecar))
    }
}

/// Of the three files of an hour, whose Parquet file has this path.
fn stamps(parquet: &Path) -> Result<[Stamp; 3], Error> {
    Ok([stamp(parquet)?, stamp(&index_path(parquet))?, stamp(&sidecar_path(parquet))?])
}

fn stamp(path: &Path) -> Result<Stamp, Error> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_file() => Ok(Some((there.ino(), there.len(), there.modified().of(path)?))),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::Io(path.to_owned(), error)),
    }
}

/// What is in a folder, by name. A folder that is gone has nothing.
fn entries(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.of(folder)?,
    };
    let mut entries = listed.collect::<io::Result<Vec<DirEntry>>>().of(folder)?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// Folders with digits for names.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let is_number = |entry: &DirEntry| {
        let is_digits = entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        is_digits && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    Ok(entries(folder)?.into_iter().filter(is_number).map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod tests;
