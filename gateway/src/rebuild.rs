//! A new history store in place of a damaged one: from its sound rows, from backups of the same log, and from what older
//! snapshots and the log still have in memory. The state says of each user how many rows have left, so what is missing is
//! known. The directory is stopped and locked by the caller.
//!
//! ```text
//! DIR/history.rebuilding/   the new store while it is made; removed by the next attempt
//! DIR/history.rebuilt/      the same when it is complete, until it gets its name
//! DIR/history.backup-N/     a backup, restored to be read; removed
//! DIR/history.damaged-N/    the old one
//! ```

use crate::backup::{manifest, sync_folders};
use crate::moving::FILTERS_LACK;
use crate::restore::{Input, restore};
use engine::shard::replay::State;
use engine::time::Timestamp;
use engine::user::Users;
use history::filters::{FILTER_BYTES_MAX, FILTERS_FOLDER, FilterWriter, OpenFilters};
use history::{FOLDER, Rebuilt, Sources, StoreError, Upto};
use journal::recover::{self, RecoverError};
use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use wal::{Files, Lsn};

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
    /// A source is of another log.
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
            RebuildError::Foreign(path) => write!(f, "{} is of another log", path.display()),
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

/// Directories that are read beside the own one.
#[derive(Default)]
struct Beside {
    /// Folders of stores, and states.
    stores: Vec<PathBuf>,
    states: Vec<State>,
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
    fn add(&mut self, directory: &Path, log: u128, from: &Path, now: Timestamp) -> Result<(), RebuildError> {
        let mut place = from.to_owned();
        if from.join(manifest::MANIFEST).is_file() {
            let target = directory.join(format!("{BACKUP}{}", self.made.len()));
            self.made.push(target.clone());
            match restore(Input::Folder(from.to_owned()), &target, now) {
                Ok(_) => place = target,
                Err(error) => {
                    self.notes.push(format!("{}: {error}; its sorted files are read all the same", from.display()))
                }
            }
        }
        match identity(&place) {
            Ok(Some(other)) if other != log => return Err(RebuildError::Foreign(from.to_owned())),
            Ok(Some(_)) => match recover::look_before(&place) {
                Ok(before) => self.states.extend(before),
                Err(error) => self.notes.push(format!("{}: {error}", from.display())),
            },
            // Sorted files alone: rows of another log are of no user, or of orders that have not left.
            _ => self.notes.push(format!("{}: its log is not read", from.display())),
        }
        if let Ok((state, _)) = recover::look(&place, false) {
            self.states.push(state);
        }
        self.stores.push(place.join(HISTORY).join(FOLDER));
        Ok(())
    }
}

/// Makes the history store of a directory again; `from` are backups, or data directories, of the same log.
///
/// # Errors
/// [`RebuildError`]; the old store is then where it was.
pub fn rebuild(directory: &Path, from: &[PathBuf], now: Timestamp) -> Result<Outcome, RebuildError> {
    let (old, making, made) = (directory.join(HISTORY), directory.join(REBUILDING), directory.join(REBUILT));
    // A kill between two renames.
    if made.is_dir() && !old.exists() {
        fs::rename(&made, &old).map_err(of(&old))?;
    }
    for left in [&making, &made] {
        remove(left)?;
    }
    for entry in fs::read_dir(directory).map_err(of(directory))? {
        let entry = entry.map_err(of(directory))?;
        if entry.file_name().to_string_lossy().starts_with(BACKUP) {
            remove(&entry.path())?;
        }
    }
    let log = identity(directory)?.ok_or(RebuildError::Nothing)?;
    let (state, _) = recover::look(directory, false)?;
    let upto = state.users.iter().map(Users::departed_upto).max().unwrap_or(0);
    if upto == 0 {
        return Err(RebuildError::Nothing);
    }
    let mut beside = Beside::default();
    beside.stores.push(old.join(FOLDER));
    match recover::look_before(directory) {
        Ok(before) => beside.states.extend(before),
        Err(error) => beside.notes.push(format!("older snapshots: {error}")),
    }
    for from in from {
        beside.add(directory, log, from, now)?;
    }
    DirBuilder::new().mode(0o700).create(&making).map_err(of(&making))?;
    copy_filters(&old, &making, log, upto)?;
    let states = beside.states.iter().map(|state| &state.users[0]).collect();
    let sources = Sources { stores: beside.stores.clone(), states, counted_by: Some(old.clone()) };
    // If that record has been released, or cannot be read, starts compare LSNs alone until a move comes.
    let storage = Files::open_existing(directory).map_err(RecoverError::from)?;
    let upto = Upto { lsn: upto, crc: wal::record_crc(&storage, Lsn(upto)).unwrap_or(None) };
    let rebuilt = history::rebuild(&making, log, upto, state.markets.history_from(), &state.users[0], &sources)?;
    drop(sources);
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
    let mut kept = None;
    if old.exists() {
        let damaged = (1_u32..).map(|number| directory.join(format!("{DAMAGED}{number}")));
        let damaged = damaged.into_iter().find(|path| !path.exists()).expect("there are fewer folders than numbers");
        fs::rename(&old, &damaged).map_err(of(&damaged))?;
        kept = Some(damaged);
    }
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
