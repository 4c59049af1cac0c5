//! A new history store in place of a damaged one: from its sound rows, from backups of the same log, and from what older
//! snapshots and the log still have in memory. The state says of each user how many rows have left, so what is missing is
//! known. The directory is stopped and locked by the caller.
//!
//! A start, and each verb, ends an attempt that was interrupted between its renames ([`finish`]): otherwise it would make an
//! empty store in the place of the new one.
//!
//! ```text
//! DIR/history.rebuilding/   the new store while it is made; removed by the next attempt
//! DIR/history.rebuilt/      the same when it is complete, until it gets its name
//! DIR/history.backup-N/     a backup, restored to be read; removed
//! DIR/history.damaged-N/    the old one; read by later attempts
//! ```

use crate::backup::{manifest, sync_folders};
use crate::fitting::checksums;
use crate::moving::FILTERS_LACK;
use crate::restore::{Input, restore};
use engine::shard::replay::State;
use engine::time::Timestamp;
use engine::user::Users;
use history::filters::{FILTER_BYTES_MAX, FILTERS_FOLDER, FilterWriter, OpenFilters};
use history::{EndedStore, FOLDER, Rebuilt, Sources, StoreError, Upto};
use journal::recover::{self, RecoverError};
use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use wal::{Files, Lsn};

/// Memory for what is read of a store.
const CACHE_BYTES: u64 = 1 << 20;

const HISTORY: &str = "history";
const REBUILDING: &str = "history.rebuilding";
const REBUILT: &str = "history.rebuilt";
const BACKUP: &str = "history.backup-";
const DAMAGED: &str = "history.damaged-";

/// Why nothing was rebuilt; the directory is as it was.
#[derive(Debug)]
pub enum RebuildError {
    /// The state of the directory cannot be read.
    Log(RecoverError),
    /// No row has left memory.
    Nothing,
    /// A source is of another log, or of a copy of this one that went on by itself.
    Foreign(PathBuf),
    /// The new store cannot be written.
    Store(StoreError),
    Io {
        path: PathBuf,
        error: io::Error,
    },
}

impl fmt::Display for RebuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RebuildError::Log(error) => write!(f, "the state cannot be read: {error}"),
            RebuildError::Nothing => {
                f.write_str("no row has left memory: to begin again without old prices, move the folder history away")
            }
            RebuildError::Foreign(path) => {
                write!(f, "{} is of another log, or of another copy of this one", path.display())
            }
            RebuildError::Store(error) => write!(f, "the new store cannot be written: {error}"),
            RebuildError::Io { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for RebuildError {}

impl From<RecoverError> for RebuildError {
    fn from(error: RecoverError) -> RebuildError {
        RebuildError::Log(error)
    }
}

impl From<wal::Error> for RebuildError {
    fn from(error: wal::Error) -> RebuildError {
        RebuildError::Log(error.into())
    }
}

impl From<StoreError> for RebuildError {
    fn from(error: StoreError) -> RebuildError {
        RebuildError::Store(error)
    }
}

fn of(path: &Path) -> impl FnOnce(io::Error) -> RebuildError {
    let path = path.to_owned();
    move |error| RebuildError::Io { path, error }
}

/// What was done.
#[derive(Debug)]
pub struct Outcome {
    pub rebuilt: Rebuilt,
    /// Sources that could not be used, or not as a whole.
    pub notes: Vec<String>,
    /// Rows of prices that were taken over; `None`: charts begin again.
    pub prices: Option<u64>,
    /// Where the old store is now; `None`: there was none.
    pub kept: Option<PathBuf>,
}

impl Outcome {
    /// Whether every row that has left memory is there.
    pub fn is_whole(&self) -> bool {
        self.rebuilt.users.iter().all(|user| !user.has_holes())
    }
}

/// The identity of the log in a directory.
fn identity(directory: &Path) -> Result<Option<u128>, RebuildError> {
    let storage = Files::open_existing(directory).map_err(RecoverError::from)?;
    Ok(wal::origin(&storage)?.map(|origin| u128::from_be_bytes(origin.directory)))
}

/// Whether the logs of two directories, whose last records these are, have the same records. `None`: they have none in
/// common.
fn is_same_course(one: (&Path, Lsn), other: (&Path, Lsn)) -> Result<Option<bool>, RebuildError> {
    let last = one.1.min(other.1);
    let crc = |directory: &Path| -> Result<Option<u32>, RebuildError> {
        let storage = Files::open_existing(directory).map_err(RecoverError::from)?;
        Ok(wal::record_crc(&storage, last)?)
    };
    // The checksum of a record covers those of all records before it.
    Ok(crc(one.0)?.zip(crc(other.0)?).map(|(one, other)| one == other))
}

/// The directory whose store is rebuilt.
struct Own<'a> {
    directory: &'a Path,
    log: u128,
    /// Its last record.
    end: Lsn,
}

/// What is read beside the state of the directory.
#[derive(Default)]
struct Beside {
    /// Folders of stores, and states.
    stores: Vec<PathBuf>,
    states: Vec<State>,
    /// The same of logs that have no record in common with this one.
    doubted_stores: Vec<PathBuf>,
    doubted_states: Vec<State>,
    notes: Vec<String>,
    /// Restored backups.
    made: Vec<PathBuf>,
}

impl Drop for Beside {
    fn drop(&mut self) {
        // One that cannot be removed is removed by the next attempt.
        self.made.iter().for_each(|made| _ = fs::remove_dir_all(made));
    }
}

impl Beside {
    /// Adds a backup, or another data directory of the same log.
    fn add(&mut self, own: &Own<'_>, from: &Path, now: Timestamp) -> Result<(), RebuildError> {
        let (mut place, mut backed_up) = (from.to_owned(), None);
        if from.join(manifest::MANIFEST).is_file() {
            let target = own.directory.join(format!("{BACKUP}{}", self.made.len()));
            self.made.push(target.clone());
            match restore(Input::Folder(from.to_owned()), &target, now) {
                Ok(restored) => {
                    backed_up = Some(restored.lsn);
                    place = target;
                }
                Err(error) => {
                    self.notes.push(format!("{}: {error}; its sorted files are read all the same", from.display()))
                }
            }
        }
        let store = place.join(HISTORY).join(FOLDER);
        match identity(&place) {
            Ok(Some(other)) if other != own.log => return Err(RebuildError::Foreign(from.to_owned())),
            Ok(Some(_)) => {}
            // Sorted files alone: rows of another log are of no user, or of orders that have not left.
            _ => {
                self.notes.push(format!("{}: its log is not read", from.display()));
                self.doubted_stores.push(store);
                return Ok(());
            }
        }
        let mut states = match recover::look_before(&place) {
            Ok(before) => before,
            Err(error) => {
                self.notes.push(format!("{}: {error}", from.display()));
                Vec::new()
            }
        };
        let mut is_same = None;
        if let Ok((state, report)) = recover::look(&place, false) {
            // What follows was written by its restore.
            let end = backed_up.unwrap_or(report.lsn);
            is_same = is_same_course((own.directory, own.end), (&place, end)).unwrap_or(None);
            states.push(state);
        }
        match is_same {
            Some(true) => {
                self.stores.push(store);
                self.states.extend(states);
            }
            Some(false) => return Err(RebuildError::Foreign(from.to_owned())),
            None => {
                self.notes.push(format!(
                    "{}: its log has no record in common with this one, so it may be of another copy that went on by \
                     itself: users with rows of it count as whole only by their hashes",
                    from.display()
                ));
                self.doubted_stores.push(store);
                self.doubted_states.extend(states);
            }
        }
        Ok(())
    }
}

/// Ends a rebuild that was interrupted when the new store was complete and the old one had been moved away. Returns whether it
/// did. The directory must be locked by the caller, and nothing may use its history.
///
/// # Errors
/// The system's.
pub fn finish(directory: &Path) -> io::Result<bool> {
    let (store, made) = (directory.join(HISTORY), directory.join(REBUILT));
    if store.try_exists()? || !made.is_dir() {
        return Ok(false);
    }
    fs::rename(&made, &store)?;
    File::open(directory)?.sync_all()?;
    Ok(true)
}

/// The folders of old stores with their numbers, the newest first.
fn damaged(directory: &Path) -> Result<Vec<(u32, PathBuf)>, RebuildError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(of(directory))? {
        let entry = entry.map_err(of(directory))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(DAMAGED)?.parse().ok());
        found.extend(number.map(|number: u32| (number, entry.path())));
    }
    found.sort_by(|one, other| other.cmp(one));
    Ok(found)
}

/// Moves a folder to those of old stores.
fn put_away(directory: &Path, folder: &Path) -> Result<PathBuf, RebuildError> {
    let number = damaged(directory)?.first().map_or(1, |(number, _)| number.saturating_add(1));
    let place = directory.join(format!("{DAMAGED}{number}"));
    fs::rename(folder, &place).map_err(of(&place))?;
    Ok(place)
}

/// All users of states, each of which has one shard.
fn users(states: &[State]) -> Vec<&Users> {
    states.iter().map(|state| &state.users[0]).collect()
}

/// Whether the rows of a store are those of another log, or of another copy of this one. If the store cannot be opened, that
/// is not known.
fn is_foreign(folder: &Path, own: &Own<'_>) -> Result<bool, RebuildError> {
    let storage = Files::open_existing(own.directory).map_err(RecoverError::from)?;
    let compared = EndedStore::open(folder, CACHE_BYTES).and_then(|ended| {
        ended.fits(own.log, 0, u64::MAX)?;
        ended.continues(checksums(storage, own.end.0))
    });
    Ok(matches!(compared, Err(StoreError::Foreign)))
}

/// Makes the history store of a directory again; `from` are backups, or data directories, of the same log.
///
/// # Errors
/// [`RebuildError`]; the old store is then where it was.
pub fn rebuild(directory: &Path, from: &[PathBuf], now: Timestamp) -> Result<Outcome, RebuildError> {
    let (old, making, made) = (directory.join(HISTORY), directory.join(REBUILDING), directory.join(REBUILT));
    let mut beside = Beside::default();
    finish(directory).map_err(of(&old))?;
    if made.is_dir() {
        // Complete, and the one that has its place may be empty.
        let place = put_away(directory, &made)?;
        beside.notes.push(format!("{}: a new store of an attempt that was interrupted; it is read", place.display()));
    }
    remove(&making)?;
    for entry in fs::read_dir(directory).map_err(of(directory))? {
        let entry = entry.map_err(of(directory))?;
        if entry.file_name().to_string_lossy().starts_with(BACKUP) {
            remove(&entry.path())?;
        }
    }
    let log = identity(directory)?.ok_or(RebuildError::Nothing)?;
    let (state, report) = recover::look(directory, false)?;
    let upto = state.users.iter().map(Users::departed_upto).max().unwrap_or(0);
    if upto == 0 {
        return Err(RebuildError::Nothing);
    }
    let own = Own { directory, log, end: report.lsn };
    match recover::look_before(directory) {
        Ok(before) => beside.states.extend(before),
        Err(error) => beside.notes.push(format!("older snapshots: {error}")),
    }
    let mut folders = vec![old.clone()];
    folders.extend(damaged(directory)?.into_iter().map(|(_, folder)| folder));
    for from in from {
        beside.add(&own, from, now)?;
    }
    // If that record has been released, or cannot be read, starts compare LSNs alone until a move comes.
    let storage = Files::open_existing(directory).map_err(RecoverError::from)?;
    let upto = Upto { lsn: upto, crc: wal::record_crc(&storage, Lsn(upto)).unwrap_or(None) };
    let rebuilt = loop {
        DirBuilder::new().mode(0o700).create(&making).map_err(of(&making))?;
        // Those of a foreign store have other names.
        if folders.first() == Some(&old) {
            copy_filters(&old, &making, log, upto.lsn)?;
        }
        let stores = folders.iter().map(|folder| folder.join(FOLDER)).chain(beside.stores.iter().cloned()).collect();
        let doubted = (beside.doubted_stores.clone(), users(&beside.doubted_states));
        let sources = Sources { stores, states: users(&beside.states), doubted, counted_by: folders.clone() };
        let rebuilt = history::rebuild(&making, log, upto, state.markets.history_from(), &state.users[0], &sources)?;
        // Not before they were read: an opening removes files that nothing names.
        let mut foreign = Vec::new();
        for folder in &folders {
            if is_foreign(folder, &own)? {
                foreign.push(folder.clone());
            }
        }
        if foreign.is_empty() {
            break rebuilt;
        }
        remove(&making)?;
        folders.retain(|folder| !foreign.contains(folder));
        let note = |folder: &PathBuf| format!("{}: of another log, or another copy of this one", folder.display());
        beside.notes.extend(foreign.iter().map(note));
    };
    let prices = match history::copy_prices(&old, &making) {
        Ok(rows) => Some(rows),
        Err(error) => {
            beside.notes.push(format!("prices begin again: {error}"));
            None
        }
    };
    sync_folders(&making).map_err(of(&making))?;
    fs::rename(&making, &made).map_err(of(&made))?;
    let directory_file = File::open(directory).map_err(of(directory))?;
    directory_file.sync_all().map_err(of(directory))?;
    let kept = if old.exists() { Some(put_away(directory, &old)?) } else { None };
    fs::rename(&made, &old).map_err(of(&old))?;
    directory_file.sync_all().map_err(of(directory))?;
    Ok(Outcome { rebuilt, notes: std::mem::take(&mut beside.notes), prices, kept })
}

fn remove(folder: &Path) -> Result<(), RebuildError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(of(folder)(error)),
        _ => Ok(()),
    }
}

/// Copies the filters of a store if they have the names of all rows, also of those that are missing now. Otherwise a start
/// makes them of what is there.
fn copy_filters(old: &Path, new: &Path, log: u128, upto: u64) -> Result<(), RebuildError> {
    let (from, to) = (old.join(FILTERS_FOLDER), new.join(FILTERS_FOLDER));
    let is_whole = || FilterWriter::open(&from, log, FILTER_BYTES_MAX, &OpenFilters::default(), upto).is_ok();
    if old.join(FILTERS_LACK).exists() || !from.is_dir() || !is_whole() {
        return Ok(());
    }
    DirBuilder::new().mode(0o700).create(&to).map_err(of(&to))?;
    for entry in fs::read_dir(&from).map_err(of(&from))? {
        let path = entry.map_err(of(&from))?.path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            fs::copy(&path, to.join(name)).map_err(of(&path))?;
        }
    }
    Ok(())
}
