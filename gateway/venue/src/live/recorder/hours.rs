//! The files of a recording, one for each hour in UTC: `tape-2026-08-11T06.ndjson`. The order of names is the order of
//! time. The file of the current hour is plain text, so that it can be followed; closed files are packed
//! (`.ndjson.gz`). Both forms of a file exist only while it is being packed.
//!
//! An hour has further files (`tape-2026-08-11T06_02.ndjson`) if its first file was already packed: the wall clock was
//! set back.

use crate::tape::{Origin, Record};
use engine::backtest::Hour;
use engine::time::Timestamp;
use flate2::Compression;
use flate2::write::GzEncoder;
use host::thread::{self, Stop};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

const PREFIX: &str = "tape-";
const PLAIN: &str = ".ndjson";
const PACKED: &str = ".ndjson.gz";
const UNFINISHED: &str = ".ndjson.gz.tmp";
/// Locked while a recorder uses the folder: two recorders would mix their lines in one file.
const LOCK: &str = "recording.lock";
/// Bytes that are packed between two checks of the stop flag.
const PIECE_BYTES: usize = 256 << 10;

/// Connections by venue and name, and whether each sent something since its last gap.
pub type Connections = BTreeMap<&'static str, BTreeMap<String, bool>>;

/// The folder of a recording.
pub struct Folder {
    path: PathBuf,
    _lock: File,
    /// The folder already contained a recording.
    pub continues: bool,
}

impl Folder {
    /// Creates the folder if it is missing, and locks it.
    ///
    /// # Errors
    /// The folder cannot be created or written, or another recorder has locked it.
    pub fn take(path: &Path) -> io::Result<Folder> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        fs::create_dir_all(path).map_err(named)?;
        let lock = OpenOptions::new().create(true).append(true).open(path.join(LOCK)).map_err(named)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(named(error)),
            Err(TryLockError::WouldBlock) => {
                return Err(named(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    "another recorder uses this folder; stop it or choose another folder",
                )));
            }
        }
        let mut folder = Folder { path: path.to_owned(), _lock: lock, continues: false };
        for name in folder.stems(UNFINISHED).map_err(named)? {
            fs::remove_file(path.join(name + UNFINISHED)).map_err(named)?;
        }
        let files = |ending| folder.stems(ending).map_err(named);
        folder.continues = !(files(PLAIN)?.is_empty() && files(PACKED)?.is_empty());
        Ok(folder)
    }

    /// Names of the recording's files with this ending, without the ending, in order of time.
    fn stems(&self, ending: &str) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            found.extend(
                name.to_str()
                    .and_then(|name| name.strip_suffix(ending))
                    .filter(|stem| is_stem(stem))
                    .map(str::to_owned),
            );
        }
        found.sort();
        Ok(found)
    }

    /// Files that are not packed, in order of time.
    pub fn open_files(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self.stems(PLAIN)?.into_iter().map(|stem| self.path.join(stem + PLAIN)).collect())
    }

    /// Opens the file for an hour; an incomplete last line gets a line end.
    pub fn open(&self, hour: u32) -> io::Result<(PathBuf, File)> {
        let first = stem(hour);
        let further = (2..).map(|part| format!("{first}_{part:02}"));
        let is_closed = |stem: &String| self.path.join(format!("{stem}{PACKED}")).exists();
        let mut names = std::iter::once(first.clone()).chain(further).filter(|stem| !is_closed(stem));
        let path = self.path.join(names.next().expect("the sequence of names is endless") + PLAIN);
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path)?;
        if is_torn(&mut file)? {
            file.write_all(b"\n")?;
        }
        Ok((path, file))
    }
}

/// A file of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFile {
    /// Its name without `.gz`: the same before and after it is packed.
    pub name: String,
    pub hour: u32,
    pub path: PathBuf,
}

/// The files of a recording, in order of time. Of a file that is being packed, the plain form.
///
/// # Errors
/// The folder cannot be read.
pub fn recorded_files(folder: &Path) -> io::Result<Vec<RecordedFile>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some((name, hour)) = name_of(&path).and_then(|name| Some((name.clone(), hour_of(&name)?))) else {
            continue;
        };
        let is_plain = path.extension().is_some_and(|ending| ending == "ndjson");
        if is_plain || !found.contains_key(&name) {
            found.insert(name.clone(), RecordedFile { name, hour, path });
        }
    }
    Ok(found.into_values().collect())
}

/// The name of a recording's file without `.gz`; `None` for other files.
pub fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    hour_of(plain).map(|_| plain.to_owned())
}

/// The hour of a name of [`name_of`].
pub fn hour_of(name: &str) -> Option<u32> {
    const HOUR: std::ops::Range<usize> = PREFIX.len()..PREFIX.len() + "0000-00-00T00".len();
    let stem = name.strip_suffix(PLAIN).filter(|stem| is_stem(stem))?;
    stem.get(HOUR)?.parse::<Hour>().ok().map(|hour| hour.0)
}

/// Name of an hour's file without its ending.
fn stem(hour: u32) -> String {
    let begins = i64::try_from(Timestamp::of_hour(hour).secs()).unwrap_or(i64::MAX);
    let begins = jiff::Timestamp::from_second(begins).unwrap_or(jiff::Timestamp::MAX);
    format!("{PREFIX}{}", begins.strftime("%Y-%m-%dT%H"))
}

fn is_stem(stem: &str) -> bool {
    const FORM: &str = "0000-00-00T00_00";
    let Some(moment) = stem.strip_prefix(PREFIX) else { return false };
    let fits = |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
    matches!(moment.len(), 13 | 16) && moment.bytes().zip(FORM.bytes()).all(fits)
}

fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Reads a file of lines and notes for each connection whether it sent something since its last gap.
pub fn note_connections(path: &Path, connections: &mut Connections) -> io::Result<()> {
    let mut lines = BufReader::with_capacity(PIECE_BYTES, File::open(path)?);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        if let Some((origin, name, gap)) = std::str::from_utf8(&line).ok().and_then(connection_of) {
            connections.entry(origin.name()).or_default().insert(name, !gap);
        }
        line.clear();
    }
    Ok(())
}

/// Venue, connection and whether the line is a gap. The recorder writes fields in a fixed order, so that the long ones
/// need not be parsed.
fn connection_of(line: &str) -> Option<(Origin, String, bool)> {
    let short = || {
        let (_, rest) = line.strip_prefix("{\"r\":")?.split_once(",\"v\":\"")?;
        let (venue, rest) = rest.split_once("\",\"c\":\"")?;
        let (name, rest) = rest.split_once("\",\"")?;
        let is_plain = !name.contains('\\') && rest.starts_with(['m', 'u', 'g']);
        is_plain.then_some((Origin::named(venue)?, name.to_owned(), rest.starts_with("gap\":")))
    };
    short().or_else(|| {
        let record = Record::parse(line.trim_end())?;
        Some((record.origin(), record.connection().to_owned(), matches!(record, Record::Gap { .. })))
    })
}

/// Packs closed files and syncs the open one, on a thread of its own, so that writing never waits for either.
pub struct Closer {
    jobs: Option<Sender<Job>>,
    is_syncing: Arc<AtomicBool>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

enum Job {
    Sync(File),
    Pack(PathBuf),
}

impl Closer {
    pub fn start() -> io::Result<Closer> {
        let (jobs, wanted) = channel();
        let (stop, is_syncing) = (Stop::new(), Arc::new(AtomicBool::new(false)));
        let (stopping, synced) = (stop.clone(), is_syncing.clone());
        let lost =
            || tracing::error!("the thread that packs recordings died: closed files stay plain until the next start");
        let thread = thread::spawn_spare("tape closer", move || work(&wanted, &synced, &stopping), lost)?;
        Ok(Closer { jobs: Some(jobs), is_syncing, stop, thread: Some(thread) })
    }

    /// Packs a closed file. If that fails, the file stays, and the next start tries again.
    pub fn pack(&self, path: PathBuf) {
        self.queue(Job::Pack(path));
    }

    /// Syncs what has been written so far, unless a sync is already running.
    pub fn sync(&self, file: &File) {
        if !self.is_syncing.swap(true, Ordering::Relaxed) {
            match file.try_clone() {
                Ok(file) => self.queue(Job::Sync(file)),
                Err(_) => self.is_syncing.store(false, Ordering::Relaxed),
            }
        }
    }

    fn queue(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // A thread that has died has logged it.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Closer {
    /// Cancels a running packing: the plain file is complete, and the next start packs it.
    fn drop(&mut self) {
        self.stop.set();
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been logged already.
            let _ = thread.join();
        }
    }
}

fn work(jobs: &Receiver<Job>, is_syncing: &AtomicBool, stop: &Stop) {
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Sync(file) => {
                if let Err(error) = file.sync_data() {
                    tracing::warn!(%error, "the recording cannot be synced: its last seconds may be lost in a power failure");
                }
                is_syncing.store(false, Ordering::Relaxed);
            }
            Job::Pack(_) if stop.is_set() => {}
            Job::Pack(path) => {
                if let Err(error) = pack(&path, stop) {
                    tracing::warn!(file = %path.display(), %error, "a file of the recording cannot be packed; the next start tries again");
                }
            }
        }
    }
}

/// Writes `x.ndjson.gz` beside `x.ndjson`, then removes the plain file. One of them is complete at every moment: the
/// packed file is renamed after it is synced, and the plain one is removed after the rename is synced.
pub fn pack(plain: &Path, stop: &Stop) -> io::Result<()> {
    let beside = |ending: &str| {
        let mut name = plain.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let (packed, unfinished) = (beside(".gz"), beside(".gz.tmp"));
    let done = pack_into(plain, &unfinished, stop).and_then(|whole| {
        if whole {
            fs::rename(&unfinished, &packed)?;
            File::open(plain.parent().unwrap_or(Path::new(".")))?.sync_all()?;
            fs::remove_file(plain)?;
        }
        Ok(whole)
    });
    if !matches!(done, Ok(true)) {
        // It may not exist. If it cannot be removed, the next start removes it.
        let _ = fs::remove_file(&unfinished);
    }
    done.map(|_| ())
}

/// False: the file is packed already, or the process is stopping.
fn pack_into(plain: &Path, unfinished: &Path, stop: &Stop) -> io::Result<bool> {
    let mut from = match File::open(plain) {
        // A second request for the same file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    // The fastest level: an hour is packed while the venue is recorded, and similar lines pack well at any level.
    let mut to = GzEncoder::new(File::create(unfinished)?, Compression::fast());
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece)? {
            _ if stop.is_set() => return Ok(false),
            0 => break,
            length => to.write_all(&piece[..length])?,
        }
    }
    to.finish()?.sync_all()?;
    Ok(true)
}
