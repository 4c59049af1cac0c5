//! Reads recordings line by line, in the order of receive times (gateway/docs/live-venues.md §7).
//!
//! A tape is a file or a folder of files, plain or gzip (detected by content). Files are merged by `r`, ties by file
//! name, with one line of each file in memory. [`Record::parse`] reads a line; the translators interpret it.

mod record;

pub use crate::origin::Origin;
pub use record::Record;
pub(crate) use record::UNNAMED;

use crate::loose::Loose;
use crate::skips::{Skip, Skips};
use engine::time::Timestamp;
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::sync::Arc;

/// Longest line that is read, in bytes; a longer one is skipped and counted.
pub const LINE_BYTES_MAX: usize = 64 << 20;
/// Most files that stay open before their first line is due; further files are opened again then.
const FILES_OPEN_MAX: usize = 64;
/// Latest receive time that a line may have: the end of the year 9999.
const RECEIVED_MS_MAX: u64 = 253_402_300_799_999;

/// Why a tape cannot be replayed.
#[derive(Debug)]
pub enum TapeError {
    Io {
        path: PathBuf,
        error: io::Error,
    },
    /// No file, or no line with a time.
    Empty {
        path: PathBuf,
    },
    /// Hours of an archive cannot be used, or a setting does not fit them.
    Archive {
        path: PathBuf,
        reason: String,
    },
}

impl std::fmt::Display for TapeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TapeError::Io { path, error } => write!(f, "cannot read the tape {}: {error}", path.display()),
            TapeError::Empty { path } => write!(f, "no recorded line or hour in {}", path.display()),
            TapeError::Archive { path, reason } => write!(f, "cannot replay {}: {reason}", path.display()),
        }
    }
}

impl std::error::Error for TapeError {}

/// A recording: the merged lines of its files.
pub struct Tape {
    /// The folder of the files, if the tape is a folder; new files in it are followed.
    folder: Option<PathBuf>,
    /// Metadata files beside the lines (Kalshi layout), sorted by name.
    metadata: Vec<PathBuf>,
    follow: bool,
    sources: Vec<Source>,
    /// Names without `.gz`: a file stays the same file when it is packed.
    known: HashSet<String>,
    /// The next line of each source that has one.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    current: String,
    first_line: Option<[u8; 32]>,
    skips: Arc<Skips>,
}

/// A line and its receive time.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub received: Timestamp,
    pub text: &'a str,
    /// Number of its file, for [`Tape::file`].
    pub file: usize,
}

struct Source {
    path: PathBuf,
    reader: Reader,
    /// Lines read from the file so far, so that a file that is opened again continues after them.
    lines_count: u64,
    /// Lines of the file until the last one that was handed out, included.
    taken_count: u64,
    head: String,
    /// What is read of the file before it is known to be a line with a time.
    read: Vec<u8>,
    /// What was skipped before the head. It counts when the head is handed out: so it belongs to the line after it,
    /// and not to one of another file that is open.
    passed: Passed,
    /// The file may grow: an unfinished last line is waited for.
    grows: bool,
}

/// A file of a recording, and where to begin in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub path: PathBuf,
    /// Lines that are left out.
    pub skip: u64,
    /// The file may grow: only its whole lines are read.
    pub grows: bool,
}

/// Skipped lines that do not count yet: kind, count, and the beginning of the first one.
#[derive(Default)]
struct Passed(Vec<(Skip, u64, String)>);

impl Passed {
    fn note(&mut self, kind: Skip, line: &[u8]) {
        const SHOWN_BYTES: usize = 200;
        match self.0.iter_mut().find(|(of, ..)| *of == kind) {
            Some((_, count, _)) => *count += 1,
            None => {
                let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]).into_owned();
                self.0.push((kind, 1, shown));
            }
        }
    }

    fn count(&mut self, skips: &Skips) {
        for (kind, count, seen) in self.0.drain(..) {
            skips.count_more(kind, count, || seen);
        }
    }
}

enum Reader {
    Closed,
    Open(Box<LineReader>),
    Finished,
}

impl Tape {
    /// Opens a tape and reads its first line. With `follow` the tape may be empty and may grow.
    pub fn open(path: &Path, follow: bool, skips: Arc<Skips>) -> Result<Tape, TapeError> {
        let io = |error| TapeError::Io { path: path.to_path_buf(), error };
        let is_folder = std::fs::metadata(path).map_err(io)?.is_dir();
        let events = path.join("events");
        let kalshi_layout = is_folder && events.is_dir();
        let folder = is_folder.then(|| if kalshi_layout { events } else { path.to_path_buf() });
        let metadata = path.join("metadata");
        let mut tape = Tape::empty(follow, skips);
        if kalshi_layout && metadata.is_dir() {
            tape.metadata = listed(&metadata, |name| name.ends_with(".json")).map_err(io)?;
        }
        tape.folder = folder;
        match tape.folder.clone() {
            Some(folder) => tape.add_new_files(&folder).map_err(io)?,
            None => tape.add(Part { path: path.to_path_buf(), skip: 0, grows: follow }),
        }
        if tape.heads.is_empty() && !follow {
            return Err(TapeError::Empty { path: path.to_path_buf() });
        }
        tape.note_first_line();
        Ok(tape)
    }

    /// Opens these files, in the order of their names. They may have no line.
    pub fn of_parts(parts: Vec<Part>, skips: Arc<Skips>) -> Tape {
        let mut tape = Tape::empty(false, skips);
        parts.into_iter().for_each(|part| tape.add(part));
        tape.note_first_line();
        tape
    }

    /// Follows a folder from here on, but for these files.
    pub fn follow(&mut self, folder: &Path, known: Vec<PathBuf>) {
        self.known.extend(known.iter().map(|path| stem_of(path)));
        self.folder = Some(folder.to_owned());
        self.follow = true;
    }

    fn empty(follow: bool, skips: Arc<Skips>) -> Tape {
        Tape {
            folder: None,
            metadata: Vec::new(),
            follow,
            sources: Vec::new(),
            known: HashSet::new(),
            heads: BinaryHeap::new(),
            current: String::new(),
            first_line: None,
            skips,
        }
    }

    /// How far each file was read: its path, and the number of its lines until the last one that was handed out; `None`:
    /// all of it.
    pub fn taken(&self) -> impl Iterator<Item = (&Path, Option<u64>)> {
        self.sources.iter().map(|source| {
            let is_whole = source.head.is_empty() && matches!(source.reader, Reader::Finished);
            (source.path.as_path(), (!is_whole).then_some(source.taken_count))
        })
    }

    /// SHA-256 of the first line, which identifies the tape. `None` while a followed tape has no line.
    pub fn first_line(&self) -> Option<[u8; 32]> {
        self.first_line
    }

    /// Paths of the metadata files of the Kalshi layout.
    pub fn metadata(&self) -> &[PathBuf] {
        &self.metadata
    }

    /// Number of files of lines, read ones included.
    pub fn files_count(&self) -> usize {
        self.sources.len()
    }

    /// Path of a file, by its number.
    pub fn file(&self, number: usize) -> &Path {
        &self.sources[number].path
    }

    /// Receive time of the next line; `None` at the end, or at the current end of a followed tape.
    pub fn next_at(&self) -> Option<Timestamp> {
        self.heads.peek().map(|Reverse((received_ms, _))| Timestamp::from_millis(*received_ms))
    }

    /// The next line in merge order. The lines of one file stay in order even if their times do not.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        let Reverse((received_ms, number)) = self.heads.pop()?;
        let source = &mut self.sources[number];
        std::mem::swap(&mut self.current, &mut source.head);
        source.taken_count = source.lines_count;
        source.passed.count(&self.skips);
        self.advance(number);
        Some(Line { received: Timestamp::from_millis(received_ms), text: &self.current, file: number })
    }

    /// Looks for new lines and files of a followed tape.
    pub fn look_again(&mut self) {
        if !self.follow {
            return;
        }
        for number in 0..self.sources.len() {
            let source = &self.sources[number];
            if source.head.is_empty() && matches!(source.reader, Reader::Open(_)) {
                let gone = !source.path.exists();
                self.advance(number);
                let source = &mut self.sources[number];
                if gone && source.head.is_empty() {
                    source.reader = Reader::Finished;
                }
            }
        }
        if let Some(folder) = self.folder.clone()
            && let Err(error) = self.add_new_files(&folder)
        {
            self.skips.count(Skip::UnreadableFile, || format!("{}: {error}", folder.display()));
        }
        self.note_first_line();
    }

    fn note_first_line(&mut self) {
        if let (None, Some(Reverse((_, number)))) = (self.first_line, self.heads.peek()) {
            self.first_line = Some(Sha256::digest(self.sources[*number].head.as_bytes()).into());
        }
    }

    fn add_new_files(&mut self, folder: &Path) -> io::Result<()> {
        // The plain file comes before the packed one: while a file is being packed both exist, and only the plain one
        // is complete.
        for path in listed(folder, is_tape)? {
            self.add(Part { path, skip: 0, grows: self.follow });
        }
        Ok(())
    }

    fn add(&mut self, Part { path, skip, grows }: Part) {
        if !self.known.insert(stem_of(&path)) {
            return;
        }
        let number = self.sources.len();
        self.sources.push(Source {
            path,
            reader: Reader::Closed,
            lines_count: skip,
            taken_count: skip,
            head: String::new(),
            read: Vec::new(),
            passed: Passed::default(),
            grows,
        });
        self.advance(number);
        if number >= FILES_OPEN_MAX
            && !self.sources[number].head.is_empty()
            && matches!(self.sources[number].reader, Reader::Open(_))
        {
            self.sources[number].reader = Reader::Closed;
        }
    }

    /// Reads the next line with a time into the head of a source.
    fn advance(&mut self, number: usize) {
        let source = &mut self.sources[number];
        source.head.clear();
        let read = source.read();
        match read {
            Ok(Some(received_ms)) => self.heads.push(Reverse((received_ms, number))),
            Ok(None) => {
                source.head.clear();
                source.passed.count(&self.skips);
            }
            Err(error) => {
                source.passed.count(&self.skips);
                let path = &source.path;
                self.skips.count(Skip::UnreadableFile, || format!("{}: {error}", path.display()));
                source.head.clear();
                source.reader = Reader::Finished;
            }
        }
    }
}

impl Source {
    /// Opens the file, or its packed form if it was packed in the meantime.
    fn open(&mut self) -> io::Result<LineReader> {
        match LineReader::open(&self.path, self.grows) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut packed = self.path.clone().into_os_string();
                packed.push(".gz");
                let reader = LineReader::open(Path::new(&packed), self.grows)?;
                self.path = packed.into();
                Ok(reader)
            }
            opened => opened,
        }
    }

    /// Reads the next line into `head` and returns its time; `None` at the (current) end of the file.
    fn read(&mut self) -> io::Result<Option<u64>> {
        if let Reader::Closed = self.reader {
            let mut reader = self.open()?;
            // They count already.
            let mut passed = Passed::default();
            for _ in 0..self.lines_count {
                reader.read(&mut self.read, &mut passed)?;
            }
            self.reader = Reader::Open(Box::new(reader));
        }
        let Reader::Open(reader) = &mut self.reader else { return Ok(None) };
        while reader.read(&mut self.read, &mut self.passed)? {
            self.lines_count += 1;
            if self.read.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let line = String::from_utf8(std::mem::take(&mut self.read)).map_err(FromUtf8Error::into_bytes);
            match line.as_deref().ok().and_then(received_ms) {
                Some(received) => {
                    let last = std::mem::replace(&mut self.head, line.unwrap_or_default());
                    self.read = last.into_bytes();
                    return Ok(Some(received));
                }
                None => {
                    self.read = line.map_or_else(|bytes| bytes, String::into_bytes);
                    self.passed.note(Skip::UnknownLine, &self.read);
                }
            }
        }
        if !reader.grows {
            self.reader = Reader::Finished;
        }
        Ok(None)
    }
}

/// The lines of one file, plain or packed.
struct LineReader {
    input: Box<dyn BufRead + Send>,
    /// An unfinished last line, kept until the rest of it is written.
    partial: Vec<u8>,
    /// The line is too long: the rest of it is dropped.
    dropping: bool,
    /// The file may grow.
    grows: bool,
}

impl LineReader {
    fn open(path: &Path, grows: bool) -> io::Result<LineReader> {
        const BUFFER_BYTES: usize = 128 << 10;
        let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
        let packed = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let input: Box<dyn BufRead + Send> = match packed {
            true => Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file))),
            false => Box::new(file),
        };
        Ok(LineReader { input, partial: Vec::new(), dropping: false, grows: grows && !packed })
    }

    /// Reads the next line without its line end; `false` at the (current) end.
    fn read(&mut self, line: &mut Vec<u8>, passed: &mut Passed) -> io::Result<bool> {
        line.clear();
        loop {
            let available = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                if self.grows || self.partial.is_empty() {
                    return Ok(false);
                }
                std::mem::swap(line, &mut self.partial);
                return Ok(!std::mem::take(&mut self.dropping));
            }
            let end = memchr::memchr(b'\n', available);
            let taken = end.map_or(available.len(), |at| at + 1);
            if !self.dropping {
                self.partial.extend_from_slice(&available[..end.unwrap_or(available.len())]);
            }
            self.input.consume(taken);
            if self.partial.len() > LINE_BYTES_MAX {
                passed.note(Skip::LineTooLong, &self.partial);
                self.partial.clear();
                self.dropping = true;
            }
            if end.is_some() && !std::mem::take(&mut self.dropping) {
                std::mem::swap(line, &mut self.partial);
                self.partial.clear();
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(true);
            }
        }
    }
}

/// The path without `.gz`: a file stays the same file when it is packed.
fn stem_of(path: &Path) -> String {
    let name = path.to_string_lossy();
    name.strip_suffix(".gz").unwrap_or(&name).to_string()
}

/// Whether a folder has files of lines.
pub fn has_lines(folder: &Path) -> io::Result<bool> {
    Ok(!listed(folder, is_tape)?.is_empty())
}

/// The files of lines in a folder, in the order of their names. Of a plain file and its packed form, the plain one.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = listed(folder, is_tape)?;
    let mut seen = HashSet::new();
    paths.retain(|path| seen.insert(stem_of(path)));
    Ok(paths)
}

/// Whether a file of this name has lines.
pub(crate) fn is_tape(name: &str) -> bool {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.ends_with(".ndjson") || name.ends_with(".jsonl")
}

/// Files of a folder whose names match, sorted by name.
fn listed(folder: &Path, passes: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(&passes) && entry.path().is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// The receive time of a line, in milliseconds. Recorders write it first, so it is looked for there first.
pub(crate) fn received_ms(line: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Times<'a> {
        #[serde(borrow, default)]
        r: Loose<'a>,
        #[serde(borrow, default)]
        recv_ms: Loose<'a>,
    }
    let written_first = line.strip_prefix("{\"recv_ms\":").or_else(|| line.strip_prefix("{\"r\":")).and_then(|rest| {
        let (digits, _) = rest.split_once(',')?;
        digits.parse().ok()
    });
    let received: u64 = match written_first {
        Some(received) => received,
        None => {
            let times: Times<'_> = serde_json::from_str(line).ok()?;
            times.r.or(times.recv_ms).text()?.parse().ok()?
        }
    };
    (received <= RECEIVED_MS_MAX).then_some(received)
}

#[cfg(test)]
mod tests;
