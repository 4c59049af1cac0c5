//! A backup of a data directory: the newest snapshot, the segments of the log up to a record, the price history, and a
//! manifest with the hash of each. Every record is read and verified on the way. Files are copied, never linked: a segment
//! that is given up is overwritten in place.
//!
//! A plain copy of a running directory is no backup: its files are not of one moment, and most such copies do not start.

pub mod manifest;

use crate::recover::{self, RecoverError};
use crate::wire::instant::ts_text;
use engine::time::Timestamp;
use manifest::{FORMAT, FileEntry, MANIFEST, Manifest, SECRETS, hex, is_history};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use wal::segment::SEGMENT_HEADER_BYTES;
use wal::{Dir, Files, Lsn, Options, Scan, Snapshots};

/// Why there is no backup.
#[derive(Debug)]
pub enum BackupError {
    /// The directory is in use, damaged, or has no log.
    Source(RecoverError),
    /// There is no log to take a backup of.
    Empty,
    /// A file could not be read or written.
    Io { file: String, error: io::Error },
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Source(error @ RecoverError::Log(wal::Error::Locked { .. })) => {
                write!(f, "{error}: stop it first (a copy of a running directory would be no backup)")
            }
            BackupError::Source(error) => error.fmt(f),
            BackupError::Empty => f.write_str("there is no log in this directory"),
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

/// An error of the system with the file it is about.
fn of_file(file: impl fmt::Display) -> impl FnOnce(io::Error) -> BackupError {
    let file = file.to_string();
    |error| BackupError::Io { file, error }
}

/// Where the files of a backup go, in their order.
pub trait Sink {
    /// Takes one file of exactly `bytes` bytes.
    ///
    /// # Errors
    /// The system's, of either side.
    fn file(&mut self, name: &str, bytes: u64, from: &mut dyn Read) -> io::Result<()>;

    /// Makes durable what was taken.
    ///
    /// # Errors
    /// The system's.
    fn end(self) -> io::Result<()>;
}

/// A stopped directory of which a backup is taken. It is locked meanwhile.
pub struct Source {
    _dir: Dir,
    files: Vec<Planned>,
    manifest: Manifest,
}

struct Planned {
    name: String,
    from: PathBuf,
    bytes: u64,
    length: u64,
}

impl Source {
    /// Locks a directory, reads its log from end to end, and decides what belongs to its backup. Nothing in it is changed but
    /// the text of its lock file; a torn tail is left out of the backup and left where it is.
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn stopped(directory: &Path, with_secrets: bool, now: Timestamp) -> Result<Source, BackupError> {
        let storage = Files::open_existing(directory)?;
        let Some(origin) = wal::origin(&storage)? else { return Err(BackupError::Empty) };
        let dir = Dir::open(storage.clone(), Options::default())?;
        let (state, report) = recover::check(directory)?;
        if report.lsn == Lsn::ZERO {
            return Err(BackupError::Empty);
        }
        let mut files = segments(directory, &storage, report.lsn)?;
        if let Some(newest) = Snapshots::of(&storage)?.newest()? {
            files.push(whole(directory, &wal::snapshot_name(newest.lsn))?);
        }
        let history = directory.join("history");
        if history.is_dir() {
            for name in names(&history)?.iter().filter(|name| is_history(name)) {
                files.push(whole(directory, &format!("history/{name}"))?);
            }
        }
        for secret in SECRETS.iter().filter(|name| with_secrets && directory.join(name).is_file()) {
            files.push(whole(directory, secret)?);
        }
        let manifest = Manifest {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            taken_at: ts_text(now),
            instance: hex(&origin.instance),
            directory: hex(&origin.directory),
            epoch: origin.epoch,
            lsn: report.lsn.0,
            digest: hex(&recover::digest(&state)),
            with_secrets,
            files: Vec::new(),
        };
        Ok(Source { _dir: dir, files, manifest })
    }

    /// Copies everything into the sink, the manifest last.
    ///
    /// # Errors
    /// [`BackupError::Io`]; the sink then has no whole backup.
    pub fn copy(self, mut sink: impl Sink) -> Result<Manifest, BackupError> {
        let Source { _dir, files, mut manifest } = self;
        for Planned { name, from, bytes, length } in files {
            let file = File::open(&from).map_err(of_file(from.display()))?;
            let mut read = Hashing { from: file.take(bytes), hash: Sha256::new(), bytes: 0 };
            sink.file(&name, bytes, &mut read).map_err(of_file(&name))?;
            if read.bytes != bytes {
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter");
                return Err(BackupError::Io { file: name, error });
            }
            let sha256 = hex(&read.hash.finalize());
            manifest.files.push(FileEntry { name, bytes, length, sha256 });
        }
        let text = serde_json::to_vec_pretty(&manifest).expect("a manifest is JSON");
        sink.file(MANIFEST, text.len() as u64, &mut &text[..]).map_err(of_file(MANIFEST))?;
        sink.end().map_err(of_file("the backup"))?;
        Ok(manifest)
    }
}

/// The segments that hold the records up to `lsn`, each as far as they go. Every record is verified.
fn segments(directory: &Path, storage: &Files, lsn: Lsn) -> Result<Vec<Planned>, BackupError> {
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
            from: directory.join(&segment.name),
            bytes: bytes.max(SEGMENT_HEADER_BYTES as u64),
            length: segment.bytes,
        });
    }
    Ok(planned)
}

fn whole(directory: &Path, name: &str) -> Result<Planned, BackupError> {
    let from = directory.join(name);
    let bytes = fs::metadata(&from).map_err(of_file(from.display()))?.len();
    Ok(Planned { name: name.to_owned(), from, bytes, length: bytes })
}

/// Names in a folder, in order.
fn names(folder: &Path) -> Result<Vec<String>, BackupError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(of_file(folder.display()))? {
        names.extend(entry.map_err(of_file(folder.display()))?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Counts and hashes what is read through it.
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

/// A backup as a folder of files. It is written beside its place and moved there when it is whole and on the device.
pub struct Folder {
    making: PathBuf,
    place: PathBuf,
}

impl Folder {
    /// # Errors
    /// The system's; and when there is something at the place already.
    pub fn begin(place: &Path) -> io::Result<Folder> {
        let making = beside(place)?;
        DirBuilder::new().mode(0o700).create(&making)?;
        Ok(Folder { making, place: place.to_owned() })
    }
}

impl Sink for Folder {
    fn file(&mut self, name: &str, _: u64, from: &mut dyn Read) -> io::Result<()> {
        let path = self.making.join(name);
        let folder = path.parent().expect("it lies in the folder");
        DirBuilder::new().mode(0o700).recursive(true).create(folder)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        io::copy(from, &mut file)?;
        file.sync_all()
    }

    fn end(self) -> io::Result<()> {
        let history = self.making.join("history");
        if history.is_dir() {
            File::open(history)?.sync_all()?;
        }
        File::open(&self.making)?.sync_all()?;
        fs::rename(&self.making, &self.place)?;
        sync_parent(&self.place)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It has another name by now, unless the copy failed.
        let _ = fs::remove_dir_all(&self.making);
    }
}

/// A backup as a tar stream.
pub struct Stream<W: Write>(tar::Builder<W>);

impl<W: Write> Stream<W> {
    pub fn begin(out: W) -> Stream<W> {
        Stream(tar::Builder::new(out))
    }

    /// Ends the stream and gives back where it went.
    fn out(self) -> io::Result<W> {
        let mut out = self.0.into_inner()?;
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> Sink for Stream<W> {
    fn file(&mut self, name: &str, bytes: u64, from: &mut dyn Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(0o600);
        header.set_entry_type(tar::EntryType::Regular);
        self.0.append_data(&mut header, name, from)
    }

    fn end(self) -> io::Result<()> {
        self.out().map(drop)
    }
}

/// A backup as a tar file, written beside its place likewise.
pub struct TarFile {
    stream: Option<Stream<File>>,
    making: PathBuf,
    place: PathBuf,
}

impl TarFile {
    /// # Errors
    /// As [`Folder::begin`].
    pub fn begin(place: &Path) -> io::Result<TarFile> {
        let making = beside(place)?;
        let file = File::options().write(true).create_new(true).mode(0o600).open(&making)?;
        Ok(TarFile { stream: Some(Stream::begin(file)), making, place: place.to_owned() })
    }
}

impl Sink for TarFile {
    fn file(&mut self, name: &str, bytes: u64, from: &mut dyn Read) -> io::Result<()> {
        self.stream.as_mut().expect("it has not ended").file(name, bytes, from)
    }

    fn end(mut self) -> io::Result<()> {
        self.stream.take().expect("it ends once").out()?.sync_all()?;
        fs::rename(&self.making, &self.place)?;
        sync_parent(&self.place)
    }
}

impl Drop for TarFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.making);
    }
}

/// The name under which something is made that is going to be `place`. What an interrupted attempt left there goes.
fn beside(place: &Path) -> io::Result<PathBuf> {
    if place.symlink_metadata().is_ok() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "is there already"));
    }
    let mut name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(".making");
    let making = place.with_file_name(name);
    match making.symlink_metadata() {
        Ok(left) if left.is_dir() => fs::remove_dir_all(&making)?,
        Ok(_) => fs::remove_file(&making)?,
        Err(_) => {}
    }
    Ok(making)
}

pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}
