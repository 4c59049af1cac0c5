//! The files of a recording, one for each hour in UTC: `tape-2026-08-11T06.ndjson`. In order of names they are in order
//! of time. The hour being written is plain, so that it can be followed; what is closed lies there packed
//! (`.ndjson.gz`), never both for longer than the packing takes.
//!
//! An hour has further files (`tape-2026-08-11T06_02.ndjson`) where the one of its plain name was closed already: the
//! wall clock was set back.

use crate::tape::{Origin, Record};
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
/// Held while somebody records here: two recorders in one file would tear each other's lines.
const LOCK: &str = "recording.lock";
/// How much is packed between two looks at whether the process ends.
const PIECE_BYTES: usize = 256 << 10;

/// Connections by venue and name, and whether something was heard on each since its last gap.
pub type Connections = BTreeMap<&'static str, BTreeMap<String, bool>>;

/// The folder of a recording.
pub struct Folder {
    path: PathBuf,
    _lock: File,
    /// It held a recording before this one.
    pub continues: bool,
}

impl Folder {
    /// Makes the folder where it is missing, and takes it.
    ///
    /// # Errors
    /// It cannot be made or written, or somebody else records there.
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
                    "another recording runs in this folder",
                )));
            }
        }
        let mut folder = Folder { path: path.to_owned(), _lock: lock, continues: false };
        for name in folder.ours(UNFINISHED).map_err(named)? {
            fs::remove_file(path.join(name + UNFINISHED)).map_err(named)?;
        }
        let files = |ending| folder.ours(ending).map_err(named);
        folder.continues = !(files(PLAIN)?.is_empty() && files(PACKED)?.is_empty());
        Ok(folder)
    }

    /// Names of our files of one ending, without it, in order of time.
    fn ours(&self, ending: &str) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            found.extend(
                name.to_str()
                    .and_then(|name| name.strip_suffix(ending))
                    .filter(|stem| is_ours(stem))
                    .map(str::to_owned),
            );
        }
        found.sort();
        Ok(found)
    }

    /// Plain files that were not closed, in order of time.
    pub fn open_files(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self.ours(PLAIN)?.into_iter().map(|stem| self.path.join(stem + PLAIN)).collect())
    }

    /// The file that an hour is written to from now on, with a torn last line ended.
    pub fn open(&self, hour: u32) -> io::Result<(PathBuf, File)> {
        let first = stem(hour);
        let further = (2..).map(|part| format!("{first}_{part:02}"));
        let is_closed = |stem: &String| self.path.join(format!("{stem}{PACKED}")).exists();
        let mut names = std::iter::once(first.clone()).chain(further).filter(|stem| !is_closed(stem));
        let path = self.path.join(names.next().expect("an hour has names without end") + PLAIN);
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path)?;
        if is_torn(&mut file)? {
            file.write_all(b"\n")?;
        }
        Ok((path, file))
    }
}

/// Name of an hour's file without its ending.
fn stem(hour: u32) -> String {
    let begins = i64::try_from(Timestamp::of_hour(hour).secs()).unwrap_or(i64::MAX);
    let begins = jiff::Timestamp::from_second(begins).unwrap_or(jiff::Timestamp::MAX);
    format!("{PREFIX}{}", begins.strftime("%Y-%m-%dT%H"))
}

fn is_ours(stem: &str) -> bool {
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

/// Goes through a file of lines and notes which connections spoke, and which are broken off.
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

/// Venue, name and whether it is a gap. Our own lines have their fields in a fixed order: what is long in them needs no
/// look.
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

/// Packs what is closed and syncs what is open, on a thread of its own: neither makes the writing wait.
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
            || tracing::error!("closed files of the recording stay as they are: the thread that packs them died");
        let thread = thread::spawn_spare("tape closer", move || work(&wanted, &synced, &stopping), lost)?;
        Ok(Closer { jobs: Some(jobs), is_syncing, stop, thread: Some(thread) })
    }

    /// Packs a file that nobody writes any more. One that cannot be packed stays, and the next start tries again.
    pub fn pack(&self, path: PathBuf) {
        self.ask(Job::Pack(path));
    }

    /// Makes safe against power loss what was written so far, unless that is still being done.
    pub fn sync(&self, file: &File) {
        if !self.is_syncing.swap(true, Ordering::Relaxed) {
            match file.try_clone() {
                Ok(file) => self.ask(Job::Sync(file)),
                Err(_) => self.is_syncing.store(false, Ordering::Relaxed),
            }
        }
    }

    fn ask(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // Who is gone has told so.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Closer {
    /// Ends a packing where it stands: the plain file is whole, and the next start packs it.
    fn drop(&mut self) {
        self.stop.set();
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been told already.
            let _ = thread.join();
        }
    }
}

fn work(jobs: &Receiver<Job>, is_syncing: &AtomicBool, stop: &Stop) {
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Sync(file) => {
                if let Err(error) = file.sync_data() {
                    tracing::warn!(%error, "the recording could not be synced");
                }
                is_syncing.store(false, Ordering::Relaxed);
            }
            Job::Pack(_) if stop.is_set() => {}
            Job::Pack(path) => {
                if let Err(error) = pack(&path, stop) {
                    tracing::warn!(file = %path.display(), %error, "an hour of the recording stays unpacked");
                }
            }
        }
    }
}

/// Writes `x.ndjson.gz` beside `x.ndjson` and then removes the plain one. At every moment one of them is whole: the
/// packed one gets its name when it is safe on the disk, and the plain one goes when that name is.
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
        // It may not exist; the next start removes it otherwise.
        let _ = fs::remove_file(&unfinished);
    }
    done.map(|_| ())
}

/// False: it is packed already, or the process ends, and the packing with it.
fn pack_into(plain: &Path, unfinished: &Path, stop: &Stop) -> io::Result<bool> {
    let mut from = match File::open(plain) {
        // Asked for twice.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    // The fastest level: an hour is packed while the venue goes on, and lines of one shape pack well at any.
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
