//! A backup of a data directory: the newest snapshot, the segments of the log up to a record, the price history, and a
//! manifest with the hash of each file. Every record is read and verified. Files are copied, never linked: a released
//! segment is overwritten in place.
//!
//! A stopped directory is locked meanwhile ([`Source::stopped`]); in a running one the segments are pinned
//! ([`Source::live`]). A plain copy of a running directory is not a backup: its files are of different moments, and
//! most such copies do not start.

pub mod manifest;
mod sink;

pub use sink::{Folder, Sink, Stream, TarFile};
pub(crate) use sink::{sync_folders, sync_parent};

use crate::check;
use crate::fitting::checksums;
use ::history::{EndedStore, StoreError, StoreFile};
use engine::shard::digest;
use engine::time::Timestamp;
use engine::user::Users;
use host::thread::Stop;
use journal::digests::{Digested, Digests};
use journal::paced::{Paced, Rests};
use journal::recover::{self, RecoverError};
use journal::spares::{Covered, Pin};
use manifest::{FORMAT, FileEntry, KEPT, MANIFEST, MANIFEST_BYTES_MAX, Manifest, Part, SECRETS, hex};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wal::segment::SEGMENT_HEADER_BYTES;
use wal::{Dir, Files, Lsn, Marks, Options, Origin, Scan, Snapshots, Storage};
use wire::instant::ts_text;

/// How long the sync of the last records may take before a backup of a running directory is cancelled.
const SYNCED_WITHIN: Duration = Duration::from_secs(10);
const SYNCED_CHECK_EVERY: Duration = Duration::from_millis(1);
/// How long the history store may take to be opened before a backup of a running directory fails.
const OPENS_WITHIN: Duration = Duration::from_secs(10);
const OPEN_CHECK_EVERY: Duration = Duration::from_millis(10);
/// If the newest snapshot is gone when it is opened, there are newer ones.
const SNAPSHOT_TRIES: u32 = 8;
/// Bytes of the history store that the check of a stopped directory keeps in memory.
const CACHE_BYTES: u64 = 1 << 20;

/// Why there is no backup.
#[derive(Debug)]
pub enum BackupError {
    /// The directory is in use, damaged, or has no log.
    Source(RecoverError),
    /// There is no log to take a backup of.
    Empty,
    /// The server stops, or its last records do not reach the device.
    Ending,
    /// The backup of a running server was cancelled while it was planned: the peer has left, or orders need the room.
    GivenUp(io::Error),
    /// What was received as a backup does not match its manifest.
    Damaged { file: String, why: String },
    /// The history store cannot be read, and the state needs rows of it.
    History(String),
    /// A file could not be read or written.
    Io { file: String, error: io::Error },
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Source(error @ RecoverError::Log(wal::Error::Locked { .. })) => {
                write!(f, "{error}: stop it first (a copy of a running directory is not a backup)")
            }
            BackupError::Source(error) => error.fmt(f),
            BackupError::Empty => f.write_str("there is no log in this directory"),
            BackupError::Ending => f.write_str("the server stops, or its disk does not respond"),
            BackupError::GivenUp(why) => why.fmt(f),
            BackupError::Damaged { file, why } => write!(f, "the backup is damaged: {file}: {why}"),
            BackupError::History(why) => write!(
                f,
                "the history store has the only copy of orders that have left memory, and cannot be read: {why}; \
                 see papertape history verify"
            ),
            BackupError::Io { file, error } => write!(f, "{file}: {error}"),
        }
    }
}

impl std::error::Error for BackupError {}

impl From<RecoverError> for BackupError {
    fn from(error: RecoverError) -> BackupError {
        BackupError::Source(error)
    }
}

impl From<wal::Error> for BackupError {
    fn from(error: wal::Error) -> BackupError {
        BackupError::Source(error.into())
    }
}

/// An error of the system with the file that it concerns.
fn of_file(file: impl fmt::Display) -> impl FnOnce(io::Error) -> BackupError {
    let file = file.to_string();
    |error| BackupError::Io { file, error }
}

/// A directory that is backed up.
pub struct Source {
    held: Held,
    files: Vec<Planned>,
    manifest: Manifest,
}

/// What keeps the files unchanged meanwhile.
enum Held {
    /// The directory is locked.
    Locked { _dir: Dir },
    /// No segment is released.
    Pinned { _pin: Arc<Pin>, rests: Rests },
}

impl Held {
    /// The pin for a backup of a running server, as long as `stays` returns true: the requester still waits.
    fn pinned(running: &Running, stays: impl Fn() -> bool + Send + Sync + 'static) -> Held {
        let Running { marks, covered, stop, .. } = running;
        let (pin, stopping) = (Arc::new(covered.pin()), stop.clone());
        let held = Arc::clone(&pin);
        let question = move || {
            if stopping.is_set() {
                return Err(io::Error::other("the server stops"));
            }
            if held.is_wanted() {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "the disk is full, and orders need the room"));
            }
            match stays() {
                true => Ok(()),
                false => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the peer has left")),
            }
        };
        Held::Pinned { _pin: pin, rests: Rests::asking(marks.clone(), stop.clone(), Box::new(question)) }
    }

    /// Called between two reads: yields the core to others, and fails if the files must not be held any more.
    fn go_on(&self) -> io::Result<()> {
        match self {
            Held::Locked { .. } => Ok(()),
            Held::Pinned { rests, .. } => rests.go_on(),
        }
    }
}

struct Planned {
    name: String,
    from: Opening,
    extent: Extent,
}

/// Where a file is read from.
enum Opening {
    Place(PathBuf),
    /// A running server may remove or replace it.
    Opened(File),
    /// It may have been removed by then as too old.
    MayBeGone(PathBuf),
}

/// How much of a file is copied.
#[derive(Clone, Copy)]
enum Extent {
    /// The first `bytes` bytes of a file that has `length` bytes when it is restored.
    Part { bytes: u64, length: u64 },
    /// All bytes that it has when it is opened.
    Whole,
}

/// The parts of a running server that a backup needs.
#[derive(Clone)]
pub struct Running {
    pub directory: PathBuf,
    pub marks: Marks,
    pub covered: Covered,
    pub digests: Digests,
    /// Where rows that have left memory are.
    pub ended: EndedStore,
    /// Set when the server stops.
    pub stop: Stop,
}

impl Source {
    /// Locks a directory, reads its log from end to end, and decides which files belong to its backup. Only the text of
    /// its lock file changes; a torn tail is left out of the backup and left in place.
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn stopped(directory: &Path, with_secrets: bool, now: Timestamp) -> Result<Source, BackupError> {
        let storage = Files::open_existing(directory)?;
        let Some(origin) = wal::origin(&storage)? else { return Err(BackupError::Empty) };
        let dir = Dir::open(storage.clone(), Options::default())?;
        let (state, report) = check::check(directory)?;
        if report.lsn == Lsn::ZERO {
            return Err(BackupError::Empty);
        }
        let mut files = segments(directory, &storage, report.lsn)?;
        if let Some(newest) = Snapshots::of(&storage)?.newest()? {
            let name = wal::snapshot_name(newest.lsn);
            files.push(Planned { from: Opening::Place(directory.join(&name)), name, extent: Extent::Whole });
        }
        let departed_upto = state.users.iter().map(Users::departed_upto).max().unwrap_or(0);
        if departed_upto > 0 {
            let ended = EndedStore::open(&directory.join("history"), CACHE_BYTES).and_then(|ended| {
                ended.continues(checksums(storage.clone(), report.lsn.0))?;
                Ok(ended)
            });
            fits(ended, &origin, departed_upto, report.lsn)?;
        }
        let history_left_out = may_be_left_out(history(directory, &mut files), departed_upto > 0)?;
        files.extend(kept(directory));
        files.extend(secrets(directory, with_secrets));
        let manifest = manifest(origin, report.lsn, recover::digest(&state), with_secrets, now);
        let manifest = Manifest { history_left_out, ..manifest };
        Ok(Source { held: Held::Locked { _dir: dir }, files, manifest })
    }

    /// Pins the log of a running server, waits until everything acknowledged so far is on the device, reads the log
    /// from end to end up to there, and decides which files belong to the backup. Uses a fifth of a core. `stays` is
    /// called between two reads, here and during the copy: whether the requester still waits.
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn live(
        running: &Running,
        with_secrets: bool,
        now: Timestamp,
        stays: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Source, BackupError> {
        let answered = running.marks.appended();
        let held = Held::pinned(running, stays);
        match planned(running, &held, answered, with_secrets, now) {
            Ok((files, manifest)) => Ok(Source { held, files, manifest }),
            Err(BackupError::Ending) => Err(BackupError::Ending),
            // The reason that stopped a read is the cause, not the file that was read.
            Err(error) => Err(held.go_on().err().map_or(error, BackupError::GivenUp)),
        }
    }

    /// Copies everything into the sink, the manifest last.
    ///
    /// # Errors
    /// [`BackupError::Io`]; the sink then has no complete backup.
    pub fn copy(self, mut sink: impl Sink) -> Result<Manifest, BackupError> {
        let Source { held, files, mut manifest } = self;
        for Planned { name, from, extent } in files {
            let file = match from {
                Opening::Opened(file) => file,
                Opening::Place(path) => File::open(&path).map_err(of_file(path.display()))?,
                Opening::MayBeGone(path) => match File::open(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    opened => opened.map_err(of_file(path.display()))?,
                },
            };
            let (bytes, length) = match extent {
                Extent::Part { bytes, length } => (bytes, length),
                Extent::Whole => {
                    let bytes = file.metadata().map_err(of_file(&name))?.len();
                    (bytes, bytes)
                }
            };
            let from = Reading { held: &held, from: file.take(bytes) };
            let mut read = Hashing { from, hash: Sha256::new(), bytes: 0 };
            sink.file(&name, bytes, &mut read).map_err(of_file(&name))?;
            if read.bytes != bytes {
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter");
                return Err(BackupError::Io { file: name, error });
            }
            let sha256 = hex(&read.hash.finalize());
            manifest.files.push(FileEntry { name, bytes, length, sha256 });
        }
        end(&manifest, sink)?;
        Ok(manifest)
    }
}

/// The files of a backup of a running server, with everything acknowledged up to `answered`.
fn planned(
    running: &Running,
    held: &Held,
    answered: Lsn,
    with_secrets: bool,
    now: Timestamp,
) -> Result<(Vec<Planned>, Manifest), BackupError> {
    let Running { directory, marks, digests, ended, .. } = running;
    let Held::Pinned { rests, .. } = held else { return Err(BackupError::Ending) };
    wait_for(marks, answered, held)?;
    rests.begin(Lsn(u64::MAX));
    let storage = Paced { storage: Files::open_existing(directory)?, rests: rests.clone() };
    let Some(origin) = wal::origin(&storage)? else { return Err(BackupError::Empty) };
    // Before the digest: a snapshot covers records on the device, and the digest covers all that are there then. The store
    // between them has what has left the snapshot, and nothing of later records than the digest's.
    let snapshot = newest_snapshot(directory, &storage)?;
    let mut beside = Vec::new();
    let history_left_out = history(directory, &mut beside);
    let digested = digests.ask(|| held.go_on().is_ok());
    held.go_on().map_err(BackupError::GivenUp)?;
    let Digested { lsn, digest, departed_upto } = digested.ok_or(BackupError::Ending)??;
    if departed_upto > 0 {
        wait_until_open(ended, held)?;
        // Also one that was lost, in whose place a start has made an empty one.
        fits(Ok(ended.clone()), &origin, departed_upto, lsn)?;
    }
    let history_left_out = may_be_left_out(history_left_out, departed_upto > 0)?;
    let mut files = segments(directory, &storage, lsn)?;
    files.extend(snapshot);
    files.extend(beside);
    files.extend(kept(directory));
    files.extend(secrets(directory, with_secrets));
    let manifest = manifest(origin, lsn, digest, with_secrets, now);
    Ok((files, Manifest { history_left_out, ..manifest }))
}

/// A reader that fails when the files must not be held any more.
struct Reading<'a, R> {
    held: &'a Held,
    from: R,
}

impl<R: Read> Read for Reading<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.held.go_on()?;
        self.from.read(into)
    }
}

/// Writes the manifest after the files of a backup.
fn end(manifest: &Manifest, mut sink: impl Sink) -> Result<(), BackupError> {
    let text = serde_json::to_vec_pretty(manifest).expect("a manifest is JSON");
    sink.file(MANIFEST, text.len() as u64, &mut &text[..]).map_err(of_file(MANIFEST))?;
    sink.end().map_err(of_file("the backup"))
}

/// Receives a backup as a tar stream, and checks each file against the manifest at its end.
///
/// # Errors
/// [`BackupError`]; the sink then has no complete backup.
pub fn receive(mut from: impl Read, mut sink: impl Sink) -> Result<Manifest, BackupError> {
    let damaged = |file: &str, why: String| BackupError::Damaged { file: file.to_owned(), why };
    let broken = |error: io::Error| damaged("the stream", error.to_string());
    let mut archive = tar::Archive::new(&mut from);
    let (mut found, mut manifest) = (Vec::new(), None);
    for entry in archive.entries().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if manifest.is_some() || !entry.header().entry_type().is_file() {
            return Err(damaged(&name, "is not a file of a backup".to_owned()));
        }
        let bytes = entry.size();
        if name == MANIFEST {
            let mut text = Vec::new();
            entry.take(MANIFEST_BYTES_MAX).read_to_end(&mut text).map_err(broken)?;
            let parsed = serde_json::from_slice::<Manifest>(&text);
            manifest = Some(parsed.map_err(|error| damaged(&name, error.to_string()))?);
            continue;
        }
        if Part::of(&name).is_none() {
            return Err(damaged(&name, "is not a file of a backup".to_owned()));
        }
        let mut read = Hashing { from: entry, hash: Sha256::new(), bytes: 0 };
        sink.file(&name, bytes, &mut read).map_err(of_file(&name))?;
        if read.bytes != bytes {
            return Err(damaged(&name, "the stream ends in it".to_owned()));
        }
        found.push((name, bytes, hex(&read.hash.finalize())));
    }
    // A complete end of the stream means that the sender finished.
    io::copy(&mut from, &mut io::sink()).map_err(broken)?;
    let manifest = manifest.ok_or_else(|| damaged(MANIFEST, "is missing: this is not a complete backup".to_owned()))?;
    let listed = manifest.files.iter().map(|file| (&file.name, file.bytes, &file.sha256));
    if !listed.eq(found.iter().map(|(name, bytes, sha256)| (name, *bytes, sha256))) {
        return Err(damaged(MANIFEST, "does not list the files that were received".to_owned()));
    }
    end(&manifest, sink)?;
    Ok(manifest)
}

/// Waits until the records up to `lsn` are on the device.
fn wait_for(marks: &Marks, lsn: Lsn, held: &Held) -> Result<(), BackupError> {
    let started = Instant::now();
    while marks.synced() < lsn {
        held.go_on().map_err(BackupError::GivenUp)?;
        if marks.is_poisoned() || started.elapsed() >= SYNCED_WITHIN {
            return Err(BackupError::Ending);
        }
        std::thread::sleep(SYNCED_CHECK_EVERY);
    }
    Ok(())
}

/// Waits while the history store is being opened, as after a start, or again after a failed write.
fn wait_until_open(ended: &EndedStore, held: &Held) -> Result<(), BackupError> {
    let started = Instant::now();
    while matches!(ended.upto(), Err(StoreError::Opening)) && started.elapsed() < OPENS_WITHIN {
        held.go_on().map_err(BackupError::GivenUp)?;
        std::thread::sleep(OPEN_CHECK_EVERY);
    }
    Ok(())
}

/// The newest whole snapshot, opened: it stays readable when it is removed, since snapshots are never written to.
fn newest_snapshot<S: Storage>(directory: &Path, storage: &S) -> Result<Option<Planned>, BackupError> {
    let mut tries_left = SNAPSHOT_TRIES;
    loop {
        tries_left -= 1;
        let gone = match Snapshots::of(storage)?.newest() {
            Ok(None) => return Ok(None),
            Ok(Some(newest)) => {
                let name = wal::snapshot_name(newest.lsn);
                match File::open(directory.join(&name)) {
                    Ok(file) => return Ok(Some(Planned { name, from: Opening::Opened(file), extent: Extent::Whole })),
                    Err(error) => BackupError::Io { file: name, error },
                }
            }
            Err(wal::Error::Io { file, source, .. }) => BackupError::Io { file, error: source },
            Err(error) => return Err(error.into()),
        };
        let BackupError::Io { error, .. } = &gone else { return Err(gone) };
        if error.kind() != io::ErrorKind::NotFound || tries_left == 0 {
            return Err(gone);
        }
    }
}

/// A manifest without files.
fn manifest(origin: Origin, lsn: Lsn, digest: [u8; 32], with_secrets: bool, now: Timestamp) -> Manifest {
    Manifest {
        format: FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        taken_at: ts_text(now),
        instance: hex(&origin.instance),
        directory: hex(&origin.directory),
        epoch: origin.epoch,
        lsn: lsn.0,
        digest: hex(&digest),
        digest_encoding: digest::ENCODING,
        with_secrets,
        history_left_out: None,
        files: Vec::new(),
    }
}

/// The segments that hold the records up to `lsn`, each as far as they go. Every record is verified.
fn segments<S: Storage>(directory: &Path, storage: &S, lsn: Lsn) -> Result<Vec<Planned>, BackupError> {
    let mut scan = Scan::open_all(storage)?.until(lsn);
    let mut last = (String::new(), 0);
    while let Some(entry) = scan.next()? {
        let end = entry.offset + wal::record::slot_bytes(entry.payload.len()) as u64;
        if last.0 == entry.file {
            last.1 = end;
        } else {
            last = (entry.file.to_owned(), end);
        }
    }
    let mut planned = Vec::new();
    for segment in wal::segments(storage)?.into_iter().filter(|segment| segment.first_lsn <= lsn) {
        let bytes = if segment.name == last.0 { last.1 } else { segment.bytes };
        planned.push(Planned {
            name: wal::segment_name(segment.first_lsn),
            from: Opening::Place(directory.join(&segment.name)),
            extent: Extent::Part { bytes: bytes.max(SEGMENT_HEADER_BYTES as u64), length: segment.bytes },
        });
    }
    Ok(planned)
}

/// Why the history store is left out, if nothing in it is needed.
///
/// # Errors
/// [`BackupError::History`] if rows have left the state for it.
fn may_be_left_out(left_out: Option<String>, is_needed: bool) -> Result<Option<String>, BackupError> {
    match left_out {
        Some(why) if is_needed => Err(BackupError::History(why)),
        left_out => Ok(left_out),
    }
}

/// Whether the history store has the rows that have left the state, up to LSN `needed`, and none of records after `end`.
///
/// # Errors
/// [`BackupError::History`].
fn fits(ended: Result<EndedStore, StoreError>, origin: &Origin, needed: u64, end: Lsn) -> Result<(), BackupError> {
    let fits = ended.and_then(|ended| ended.fits(u128::from_be_bytes(origin.directory), needed, end.0));
    fits.map_err(|error| BackupError::History(error.to_string()))
}

/// Adds the history store, or returns why it cannot be read.
fn history(directory: &Path, files: &mut Vec<Planned>) -> Option<String> {
    match history_files(directory) {
        Ok(planned) => {
            files.extend(planned);
            None
        }
        Err(error) => {
            tracing::warn!(%error, "the history store cannot be read; a backup is taken without it, or not at all");
            Some(error.to_string())
        }
    }
}

/// The price history: the tables of its store as they are now, and files of the format before it that are still there.
fn history_files(directory: &Path) -> Result<Vec<Planned>, BackupError> {
    let folder = directory.join("history");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let earlier = names(&folder)?.into_iter().filter(|name| ::history::is_earlier(name));
    let place = |name: String| {
        let from = Opening::MayBeGone(folder.join(&name));
        Planned { name: format!("history/{name}"), from, extent: Extent::Whole }
    };
    let mut planned: Vec<_> = earlier.map(place).collect();
    let tables = ::history::store_files(&folder).map_err(of_file(folder.display()))?;
    planned.extend(tables.into_iter().map(|StoreFile { name, file, bytes }| Planned {
        name: format!("history/{name}"),
        from: Opening::Opened(file),
        extent: Extent::Part { bytes, length: bytes },
    }));
    Ok(planned)
}

/// The files beside the log, if they exist. A doubt of the clock is removed when its wait is over.
fn kept(directory: &Path) -> impl Iterator<Item = Planned> {
    let place = |name: &str| (name.to_owned(), directory.join(name));
    let planned = |(name, path)| Planned { name, from: Opening::MayBeGone(path), extent: Extent::Whole };
    KEPT.into_iter().map(place).map(planned)
}

/// The server's own secrets, if they are requested.
fn secrets(directory: &Path, with_secrets: bool) -> impl Iterator<Item = Planned> {
    let there = SECRETS
        .iter()
        .map(|name| (*name, directory.join(name)))
        .filter(move |(_, path)| with_secrets && path.is_file());
    there.map(|(name, path)| Planned { name: name.to_owned(), from: Opening::Place(path), extent: Extent::Whole })
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>, BackupError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(of_file(folder.display()))? {
        names.extend(entry.map_err(of_file(folder.display()))?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Counts and hashes the bytes read through it.
pub(crate) struct Hashing<R> {
    pub from: R,
    pub hash: Sha256,
    pub bytes: u64,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.hash.update(&into[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
