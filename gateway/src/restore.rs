//! Makes a data directory from a backup: every file is checked against its hash, every record against its chain, and
//! the state against the digest of the manifest, before the directory counts. It gets a new instance and begins with
//! the fact that it was restored.
//!
//! ```text
//! DIR/epoch       a line of text while the restore is in progress: no start accepts it as a log
//! DIR/restoring/  where all files are made and checked; they move up, `epoch` last
//! ```

use crate::backup::manifest::{FORMAT, FORMAT_FIRST, MANIFEST, MANIFEST_BYTES_MAX, Manifest, Part, hex, sixteen};
use crate::backup::{Hashing, sync_folders, sync_parent};
use crate::check::check_kept;
use crate::config;
use edge::http::auth::uuid_text;
use engine::fact;
use engine::id::MARKETS;
use engine::market::mutation::MarketMutation;
use engine::mutation::codec;
use engine::time::Timestamp;
use host::leap;
use journal::recover::{self, RESTORING, RecoverError, Recovery};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use wal::segment::{MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES, SEGMENT_HEADER_BYTES};
use wal::{Files, Kind, Lsn, Options, Origin, Running};

/// The text of the target's epoch file meanwhile.
const GUARD: &[u8] =
    b"A restore into this directory is in progress or was interrupted. This is not a data directory.\n";
const ZEROS: [u8; 4096] = [0; 4096];

/// Why nothing was restored.
#[derive(Debug)]
pub enum RestoreError {
    /// The target is not empty.
    Target(PathBuf),
    /// The backup does not match its manifest, or is not a backup.
    Damaged { file: String, why: String },
    /// What was unpacked is not a sound directory.
    Log(RecoverError),
    /// A file could not be read or written.
    Io { file: String, error: io::Error },
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Target(path) => write!(f, "{} is not empty: restore into a new directory", path.display()),
            RestoreError::Damaged { file, why } => write!(f, "the backup is damaged: {file}: {why}"),
            RestoreError::Log(error) => write!(f, "the backup is damaged: {error}"),
            RestoreError::Io { file, error } => write!(f, "{file}: {error}"),
        }
    }
}

impl std::error::Error for RestoreError {}

impl From<RecoverError> for RestoreError {
    fn from(error: RecoverError) -> RestoreError {
        RestoreError::Log(error)
    }
}

impl From<wal::Error> for RestoreError {
    fn from(error: wal::Error) -> RestoreError {
        RestoreError::Log(error.into())
    }
}

fn of_file(file: impl fmt::Display) -> impl FnOnce(io::Error) -> RestoreError {
    let file = file.to_string();
    |error| RestoreError::Io { file, error }
}

fn damaged(file: impl Into<String>, why: impl fmt::Display) -> RestoreError {
    RestoreError::Damaged { file: file.into(), why: why.to_string() }
}

/// The source of a backup.
pub enum Input {
    Folder(PathBuf),
    Stream(Box<dyn Read>),
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The digest of the state, in the present encoding. It was compared with that of the manifest.
    pub digest: String,
    /// The last record of the backup.
    pub lsn: Lsn,
    /// The instance of the new directory: a UUID, as in health.
    pub instance: String,
}

/// Makes a data directory from a backup. If it fails, nothing is left; if it is killed, what is left does not start.
///
/// # Errors
/// [`RestoreError`].
pub fn restore(from: Input, target: &Path, now: Timestamp) -> Result<Restored, RestoreError> {
    let target_io = || of_file(target.display());
    let made = match DirBuilder::new().mode(0o700).create(target) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(target_io()(error)),
    };
    if !made && fs::read_dir(target).map_err(target_io())?.next().is_some() {
        return Err(RestoreError::Target(target.to_owned()));
    }
    let restored = restore_into(from, target, now);
    if restored.is_err() {
        // Files that cannot be removed do not start: `epoch` goes last.
        let _ = clear(target);
        if made {
            let _ = fs::remove_dir(target);
        }
    }
    restored
}

/// Removes everything that a restore put into its target, which was empty before.
fn clear(target: &Path) -> io::Result<()> {
    for entry in fs::read_dir(target)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false if entry.file_name() == "epoch" => {}
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_file(target.join("epoch"))
}

fn restore_into(from: Input, target: &Path, now: Timestamp) -> Result<Restored, RestoreError> {
    let target_io = || of_file(target.display());
    sync_parent(target).map_err(target_io())?;
    let guard = target.join("epoch");
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&guard).map_err(target_io())?;
    file.write_all(GUARD).and_then(|()| file.sync_all()).map_err(target_io())?;
    let work = target.join(RESTORING);
    DirBuilder::new().mode(0o700).create(&work).map_err(target_io())?;
    File::open(target).and_then(|target| target.sync_all()).map_err(target_io())?;

    let mut unpacking = Unpacking { work: work.clone(), found: BTreeMap::new(), manifest: None };
    match from {
        Input::Folder(folder) => unpacking.folder(&folder)?,
        Input::Stream(stream) => unpacking.stream(stream)?,
    }
    let manifest = unpacking.end()?;
    let restored = settle(&work, &manifest, now)?;

    let history = work.join("history");
    if history.is_dir() {
        sync_folders(&history).map_err(of_file(history.display()))?;
    }
    // `epoch` of the checked directory replaces the guard last: with it the directory can start.
    let mut names = Vec::new();
    for entry in fs::read_dir(&work).map_err(target_io())? {
        names.push(entry.map_err(target_io())?.file_name());
    }
    for name in names.iter().filter(|name| *name != "epoch") {
        fs::rename(work.join(name), target.join(name)).map_err(target_io())?;
    }
    let directory = File::open(target).map_err(target_io())?;
    directory.sync_all().map_err(target_io())?;
    fs::rename(work.join("epoch"), &guard).map_err(target_io())?;
    directory.sync_all().map_err(target_io())?;
    let _ = fs::remove_dir(&work);
    Ok(restored)
}

/// Files as they are unpacked from a backup.
struct Unpacking {
    work: PathBuf,
    /// Bytes and hash of each file.
    found: BTreeMap<String, (u64, String)>,
    manifest: Option<Manifest>,
}

impl Unpacking {
    fn folder(&mut self, folder: &Path) -> Result<(), RestoreError> {
        let mut folders = vec![String::new()];
        while let Some(inside) = folders.pop() {
            let path = folder.join(&inside);
            for entry in fs::read_dir(&path).map_err(of_file(path.display()))? {
                let entry = entry.map_err(of_file(path.display()))?;
                let name = format!("{inside}{}", entry.file_name().to_string_lossy());
                let kind = entry.file_type().map_err(of_file(&name))?;
                let is_nested = inside.is_empty() || name.starts_with("history/store");
                if kind.is_dir() && is_nested {
                    folders.push(format!("{name}/"));
                } else if kind.is_file() {
                    let file = File::open(entry.path()).map_err(of_file(&name))?;
                    self.take(&name, file)?;
                } else {
                    return Err(damaged(name, "is not a file of a backup"));
                }
            }
        }
        Ok(())
    }

    fn stream(&mut self, stream: Box<dyn Read>) -> Result<(), RestoreError> {
        let mut archive = tar::Archive::new(stream);
        let broken = |error: io::Error| damaged("the stream", error);
        for entry in archive.entries().map_err(broken)? {
            let entry = entry.map_err(broken)?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if !entry.header().entry_type().is_file() {
                return Err(damaged(name, "is not a file of a backup"));
            }
            self.take(&name, entry)?;
        }
        Ok(())
    }

    fn take(&mut self, name: &str, from: impl Read) -> Result<(), RestoreError> {
        if self.manifest.is_some() && name == MANIFEST || self.found.contains_key(name) {
            return Err(damaged(name, "is in the backup twice"));
        }
        if name == MANIFEST {
            let mut text = Vec::new();
            from.take(MANIFEST_BYTES_MAX).read_to_end(&mut text).map_err(|error| damaged(name, error))?;
            let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| damaged(name, error))?;
            if !(FORMAT_FIRST..=FORMAT).contains(&manifest.format) {
                let why =
                    format!("format {} is unknown; this program reads {FORMAT_FIRST} to {FORMAT}", manifest.format);
                return Err(damaged(name, why));
            }
            self.manifest = Some(manifest);
            return Ok(());
        }
        if Part::of(name).is_none() {
            return Err(damaged(name, "is not a file of a backup"));
        }
        let path = self.work.join(name);
        let folder = path.parent().expect("it is in the folder");
        DirBuilder::new().mode(0o700).recursive(true).create(folder).map_err(of_file(folder.display()))?;
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.map_err(of_file(path.display()))?;
        let mut read = Hashing { from, hash: Sha256::new(), bytes: 0 };
        copy(&mut read, &mut file, name, &path)?;
        file.sync_all().map_err(of_file(path.display()))?;
        self.found.insert(name.to_owned(), (read.bytes, hex(&read.hash.finalize())));
        Ok(())
    }

    /// Checks the files against the manifest, and restores the length of the last segment.
    fn end(self) -> Result<Manifest, RestoreError> {
        let Unpacking { work, mut found, manifest } = self;
        let manifest = manifest.ok_or_else(|| damaged(MANIFEST, "is missing: this is not a complete backup"))?;
        for entry in &manifest.files {
            let name = &entry.name;
            let (bytes, sha256) = found.remove(name).ok_or_else(|| damaged(name, "is missing"))?;
            if bytes != entry.bytes {
                return Err(damaged(name, format_args!("has {bytes} bytes instead of {}", entry.bytes)));
            }
            if sha256 != entry.sha256 {
                let place = first_damage(&work.join(name), name).unwrap_or_default();
                return Err(damaged(name, format_args!("hash {} expected, {sha256} found{place}", entry.sha256)));
            }
            let is_segment = matches!(Part::of(name), Some(Part::Segment(_)));
            if entry.length < bytes || (entry.length > bytes && (!is_segment || entry.length > MAX_SEGMENT_BYTES)) {
                return Err(damaged(MANIFEST, format_args!("{name} cannot have {} bytes", entry.length)));
            }
            let path = work.join(name);
            fill(&path, bytes, entry.length).map_err(of_file(path.display()))?;
        }
        match found.into_keys().next() {
            Some(name) => Err(damaged(name, "is not in the manifest")),
            None => Ok(manifest),
        }
    }
}

/// Copies a file; a read error is damage of the backup, a write error is not.
fn copy(from: &mut impl Read, file: &mut File, name: &str, path: &Path) -> Result<(), RestoreError> {
    let mut block = vec![0; 256 << 10];
    loop {
        let bytes = match from.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(damaged(name, error)),
        };
        file.write_all(&block[..bytes]).map_err(of_file(path.display()))?;
    }
}

/// Writes zeros up to the length: a hole could find no room on the device when the log writes into it.
fn fill(path: &Path, mut bytes: u64, length: u64) -> io::Result<()> {
    if bytes == length {
        return Ok(());
    }
    let mut file = File::options().append(true).open(path)?;
    while bytes < length {
        let zeros = (length - bytes).min(ZEROS.len() as u64);
        file.write_all(&ZEROS[..zeros as usize])?;
        bytes += zeros;
    }
    file.sync_all()
}

/// Where the records of a segment end although they should not, for a message.
fn first_damage(path: &Path, name: &str) -> Option<String> {
    let Some(Part::Segment(first)) = Part::of(name) else { return None };
    let bytes = fs::read(path).ok()?;
    let (mut at, mut lsn) = (SEGMENT_HEADER_BYTES, first);
    while let Some(rest) = bytes.get(at..)
        && let Ok(record) = wal::record::decode(rest)
    {
        lsn = record.header.lsn.next();
        at += wal::record::slot_bytes(record.payload.len());
    }
    Some(format!(" (byte {at} at the latest, LSN {lsn})"))
}

/// Turns the unpacked files into a log, replays it as a server start does, compares LSN and digest with the manifest, and
/// appends a `Restored` record.
fn settle(work: &Path, manifest: &Manifest, now: Timestamp) -> Result<Restored, RestoreError> {
    let id = |text: &str| sixteen(text).ok_or_else(|| damaged(MANIFEST, "an identity is not 16 bytes of hex"));
    let (directory, parent) = (id(&manifest.directory)?, id(&manifest.instance)?);
    let mut instance = [0; 16];
    getrandom::fill(&mut instance).map_err(|error| of_file("an instance")(io::Error::other(error)))?;
    let lsn = Lsn(manifest.lsn);
    wal::adopt(&Files::open_existing(work)?, Origin { directory, instance, epoch: manifest.epoch }, lsn)?;
    check_kept(work, &config::SECRETS)?;
    let options = Options { segment_bytes: MIN_SEGMENT_BYTES, spares_count: 1, reserve_bytes: 0, ..Options::default() };
    let Recovery { dir, log, state, report } = recover::recover(work, options, 1)?;
    let encoding = manifest.digest_encoding;
    let Some(known) = recover::digest_in(encoding, &state) else {
        return Err(damaged(MANIFEST, format!("encoding {encoding} of the digest is unknown")));
    };
    let known = hex(&known);
    if report.lsn != lsn || known != manifest.digest {
        let why = format!(
            "the records give LSN {} and digest {known}, the manifest says LSN {lsn} and digest {} (encoding {encoding})",
            report.lsn, manifest.digest
        );
        return Err(damaged(MANIFEST, why));
    }
    let digest = hex(&recover::digest(&state));
    let at = Timestamp(now.0.max(log.last_time));
    // The records that follow have the time of this machine, and the last ones that of a clock which may have been
    // doubted at the time of the backup. The first start must still doubt them.
    let last = Timestamp(log.last_time);
    let doubted = leap::doubted(work).map_err(of_file(leap::DOUBT_FILE))?;
    let known = doubted.map_or(last, |doubted| doubted.min(last));
    if at.since(known) > leap::AHEAD_MAX {
        leap::keep_doubt(work, known).map_err(of_file(leap::DOUBT_FILE))?;
    }
    let Running { mut log, mut syncer, mut preparer, .. } = dir.start(log, at.0, Box::new(|_| {}))?;
    let mut payload = Vec::new();
    codec::encode(
        codec::VERSION_RESTORED,
        &[MarketMutation::Restored(fact::Restored { instance, parent, lsn: lsn.0, at })],
        &mut payload,
    );
    let append = |log: &mut wal::Log| log.append(Kind::Mutations, codec::VERSION_RESTORED, MARKETS.0, at.0, &payload);
    if append(&mut log).is_err() {
        syncer.turn()?;
        preparer.turn()?;
        append(&mut log).map_err(wal::Error::from)?;
    }
    // Without room there is no mark of a clean stop, which is not an error.
    let _ = log.append_clean_stop(at.0);
    syncer.finish()?;
    Ok(Restored { digest, lsn, instance: uuid_text(&instance).to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that, while it is read, creates an obstacle for the last move.
    struct Meddling {
        target: PathBuf,
        rest: io::Cursor<Vec<u8>>,
    }

    impl Read for Meddling {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            fs::create_dir_all(self.target.join("history").join("in the way"))?;
            self.rest.read(into)
        }
    }

    #[test]
    fn a_restore_that_fails_at_its_end_leaves_nothing() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let source = place.path().join("source");
        let options =
            Options { segment_bytes: MIN_SEGMENT_BYTES, spares_count: 1, reserve_bytes: 0, ..Options::default() };
        let Recovery { dir, log, .. } = recover::recover(&source, options, 1).expect("a new directory");
        let Running { mut log, syncer, .. } = dir.start(log, 1, Box::new(|_| {})).expect("it starts");
        log.append_clean_stop(2).expect("there is room");
        syncer.finish().expect("the disk is there");
        drop(log);
        fs::create_dir(source.join("history")).expect("a folder");
        fs::write(source.join("history").join("trail"), "").expect("written");
        let tar = place.path().join("backup.tar");
        let backup = crate::backup::Source::stopped(&source, false, Timestamp(3)).expect("a sound directory");
        backup.copy(crate::backup::TarFile::begin(&tar).expect("a place")).expect("room on the disk");
        let bytes = fs::read(&tar).expect("it was written");
        for is_made in [false, true] {
            let target = place.path().join("target");
            if is_made {
                fs::create_dir(&target).expect("a folder");
            }
            let meddling = Meddling { target: target.clone(), rest: io::Cursor::new(bytes.clone()) };
            let failed = restore(Input::Stream(Box::new(meddling)), &target, Timestamp(4));
            assert!(matches!(&failed, Err(RestoreError::Io { .. })), "{failed:?}");
            assert_eq!(target.exists(), is_made);
            assert!(!is_made || fs::read_dir(&target).expect("a folder").next().is_none(), "something is left");
            let _ = fs::remove_dir(&target);
            let whole = restore(Input::Stream(Box::new(io::Cursor::new(bytes.clone()))), &target, Timestamp(5));
            assert!(whole.is_ok() && !target.join(RESTORING).exists(), "{whole:?}");
            fs::remove_dir_all(&target).expect("it is there");
        }
    }
}
