//! The folder of the filters.
//!
//! ```text
//! filters/about       log, numbers, and which files count; replaced as a whole
//! filters/<n>.span    the bits of one filter; never changes
//! filters/<n>.names   names since those files were written, in batches
//! ```
//!
//! All numbers are little-endian; each file has checksums. A file that `about` does not name does not count. What is not
//! a whole batch ends the names: its rows were not dropped, or the caller sees by the number of the last whole batch that
//! names are missing. Filters are made again from the store, so damage is never repaired here.

use super::span::{BLOCK_BYTES, Span};
use crate::store::is_full;
use engine::look_up::filters::Kind;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

const ABOUT: &str = "about";
const MAKING: &str = "about.making";
const SPAN: &str = "span";
const NAMES: &str = "names";

/// The first bytes of `about`; the last is its version.
const MAGIC: [u8; 8] = *b"ptfilt\0\x01";
/// Bytes of `about` before its spans, and of each of them, without the checksum.
const HEAD_BYTES: usize = 8 + 16 + 8 + 8 + 2 * 4 + 4;
const SPAN_BYTES: usize = 1 + 8 + 8 + 8 + 8 + 4 + 4 + 4;
/// Bound of the count of spans, for reading.
const SPANS_MAX: usize = 1 << 16;
/// Bytes of the head of a batch: count, number in the log, checksum.
const BATCH_BYTES: usize = 4 + 8 + 4;
/// Bytes of a name: kind, place, hour.
const NAME_BYTES: usize = 1 + 8 + 4;
/// Names of one batch at most; more are written as several.
const BATCH_NAMES_MAX: usize = 1 << 16;

/// Why filters cannot be read or written.
#[derive(Debug)]
pub enum FilterError {
    /// There are none.
    Missing,
    /// They belong to another log.
    Foreign,
    /// They were written by a later program.
    Later,
    /// They lack names of rows that have left memory.
    Behind,
    /// A file is damaged.
    Damaged(PathBuf),
    /// The system refused.
    Io(io::Error),
    /// What was written could not be made durable.
    Unsynced(io::Error),
    /// An earlier write has failed.
    Failed,
}

impl std::fmt::Display for FilterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FilterError::Missing => f.write_str("there are no filters"),
            FilterError::Foreign => f.write_str("the filters belong to another log"),
            FilterError::Later => f.write_str("the filters were written by a later program"),
            FilterError::Behind => f.write_str("the filters lack names of rows that have left memory"),
            FilterError::Damaged(path) => write!(f, "{} is damaged", path.display()),
            FilterError::Io(error) | FilterError::Unsynced(error) => error.fmt(f),
            FilterError::Failed => f.write_str("an earlier write of the filters has failed"),
        }
    }
}

impl std::error::Error for FilterError {}

impl FilterError {
    /// Whether there was no room on the disk: what was written in part is cut off when the filters are opened again.
    pub fn is_full(&self) -> bool {
        matches!(self, FilterError::Io(error) if is_full(error))
    }
}

/// What was to be made durable.
fn synced(synced: io::Result<()>) -> Result<(), FilterError> {
    synced.map_err(FilterError::Unsynced)
}

impl From<io::Error> for FilterError {
    fn from(error: io::Error) -> FilterError {
        FilterError::Io(error)
    }
}

/// A name as filters hold it: its kind, its place in a span, the hour of its placement.
pub type Name = (Kind, u64, u32);

/// The file of one span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanFile {
    pub number: u64,
    pub bytes: u64,
    pub names: u64,
    pub names_max: u64,
    pub first_hour: u32,
    pub last_hour: u32,
    pub checksum: u32,
}

/// What `about` has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub upto: u64,
    pub covers_from: [u32; Kind::ALL.len()],
    /// By kind, the oldest first.
    pub spans: Vec<(Kind, SpanFile)>,
}

/// The folder.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    log: u128,
    next: u64,
    /// Where names are appended.
    names: Option<(u64, File)>,
    names_bytes: u64,
}

impl Files {
    /// An empty folder. Its files count after [`Files::begin`].
    pub fn create(folder: &Path, log: u128) -> Result<Files, FilterError> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // First what makes the others count.
        if folder.join(ABOUT).exists() {
            fs::remove_file(folder.join(ABOUT))?;
            File::open(folder)?.sync_all()?;
        }
        let files = Files { folder: folder.to_owned(), log, next: 0, names: None, names_bytes: 0 };
        files.remove_others(&[])?;
        Ok(files)
    }

    /// The folder of earlier filters, and what they have.
    pub fn open(folder: &Path, log: u128) -> Result<(Files, About), FilterError> {
        let path = folder.join(ABOUT);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(FilterError::Missing),
            other => other?,
        };
        let damaged = || FilterError::Damaged(path.clone());
        if bytes.len() >= MAGIC.len() && bytes[..7] == MAGIC[..7] && bytes[7] > MAGIC[7] {
            return Err(FilterError::Later);
        }
        let (of_log, names, about) = read_about(&bytes).ok_or_else(damaged)?;
        if of_log != log {
            return Err(FilterError::Foreign);
        }
        let numbers = about.spans.iter().map(|(_, file)| file.number).chain([names]);
        let next = numbers.max().unwrap_or(names).saturating_add(1);
        let file = File::options().read(true).append(true).open(folder.join(format!("{names}.{NAMES}")));
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(damaged()),
            other => other?,
        };
        let files = Files { folder: folder.to_owned(), log, next, names: Some((names, file)), names_bytes: 0 };
        files.remove_others(&about.spans)?;
        Ok((files, about))
    }

    /// Reads a filter.
    pub fn read_span(&self, file: &SpanFile) -> Result<Span, FilterError> {
        let path = self.path(file.number, SPAN);
        let damaged = || FilterError::Damaged(path.clone());
        let opened = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(damaged()),
            other => other?,
        };
        if opened.metadata()?.len() != file.bytes {
            return Err(damaged());
        }
        let mut bytes = Vec::with_capacity(file.bytes as usize);
        opened.take(file.bytes).read_to_end(&mut bytes)?;
        if crc32c::crc32c(&bytes) != file.checksum {
            return Err(damaged());
        }
        Span::of_bytes(&bytes, file.last_hour).ok_or_else(damaged)
    }

    /// Reads the names of whole batches, cuts off what follows, and returns the last number of the log.
    pub fn read_names(&mut self) -> Result<(Vec<Name>, u64), FilterError> {
        let Some((_, file)) = &mut self.names else { return Ok((Vec::new(), 0)) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (mut names, mut upto, mut rest) = (Vec::new(), 0, &bytes[..]);
        while let Some((batch, number, after)) = read_batch(rest) {
            names.extend(batch);
            (upto, rest) = (number.max(upto), after);
        }
        let whole = (bytes.len() - rest.len()) as u64;
        if !rest.is_empty() {
            file.set_len(whole)?;
            file.sync_all()?;
        }
        self.names_bytes = whole;
        Ok((names, upto))
    }

    /// Bytes of names that are in no span's file.
    pub fn names_bytes(&self) -> u64 {
        self.names_bytes
    }

    /// Appends names, up to a number of the log, and syncs.
    pub fn append(&mut self, names: &[Name], upto: u64) -> Result<(), FilterError> {
        let mut bytes = Vec::with_capacity(names.len() * NAME_BYTES + BATCH_BYTES);
        let (batches, last) = names.as_chunks::<BATCH_NAMES_MAX>();
        // Only the last batch says that all names are there.
        batches.iter().for_each(|batch| put_batch(batch, 0, &mut bytes));
        put_batch(last, upto, &mut bytes);
        let (_, file) = self.names.as_mut().expect("a file of names was begun");
        file.write_all(&bytes)?;
        synced(file.sync_data())?;
        self.names_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes a filter to a file of its own, and syncs it.
    pub fn write_span(
        &mut self,
        span: &Span,
        names: u64,
        names_max: u64,
        first_hour: u32,
    ) -> Result<SpanFile, FilterError> {
        let number = self.next();
        let last_hour = span.last_hour();
        let mut out = BufWriter::new(created(&self.path(number, SPAN))?);
        let mut checksum = 0;
        for block in span.chunks() {
            checksum = crc32c::crc32c_append(checksum, &block);
            out.write_all(&block)?;
        }
        synced(out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all())?;
        Ok(SpanFile { number, bytes: span.bytes(), names, names_max, first_hour, last_hour, checksum })
    }

    /// From now on these spans count, and names are appended to an empty file.
    pub fn begin(&mut self, about: &About) -> Result<(), FilterError> {
        let number = self.next();
        let file =
            File::options().read(true).append(true).create_new(true).mode(0o600).open(self.path(number, NAMES))?;
        synced(file.sync_all())?;
        let making = self.folder.join(MAKING);
        let mut out = created(&making)?;
        out.write_all(&about_bytes(self.log, number, about))?;
        synced(out.sync_all())?;
        synced(File::open(&self.folder)?.sync_all())?;
        fs::rename(&making, self.folder.join(ABOUT))?;
        synced(File::open(&self.folder)?.sync_all())?;
        (self.names, self.names_bytes) = (Some((number, file)), 0);
        self.remove_others(&about.spans)
    }

    /// Removes files that do not count.
    fn remove_others(&self, spans: &[(Kind, SpanFile)]) -> Result<(), FilterError> {
        let names = self.names.as_ref().map(|(number, _)| format!("{number}.{NAMES}"));
        let kept: Vec<String> = spans.iter().map(|(_, file)| format!("{}.{SPAN}", file.number)).chain(names).collect();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_ours = name.to_str().is_some_and(|name| {
                let number = name.strip_suffix(".span").or_else(|| name.strip_suffix(".names"));
                name == MAKING || number.is_some_and(|number| number.parse::<u64>().is_ok())
            });
            if is_ours && !kept.iter().any(|kept| name == **kept) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn next(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn path(&self, number: u64, extension: &str) -> PathBuf {
        self.folder.join(format!("{number}.{extension}"))
    }
}

/// An empty file that only its owner can read.
fn created(path: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn about_bytes(log: u128, names: u64, about: &About) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + about.spans.len() * SPAN_BYTES + 4);
    out.extend(MAGIC);
    out.extend(log.to_le_bytes());
    out.extend(names.to_le_bytes());
    out.extend(about.upto.to_le_bytes());
    about.covers_from.iter().for_each(|hour| out.extend(hour.to_le_bytes()));
    out.extend((about.spans.len() as u32).to_le_bytes());
    for (kind, file) in &about.spans {
        out.push(*kind as u8);
        [file.number, file.bytes, file.names, file.names_max].iter().for_each(|word| out.extend(word.to_le_bytes()));
        [file.first_hour, file.last_hour, file.checksum].iter().for_each(|word| out.extend(word.to_le_bytes()));
    }
    out.extend(crc32c::crc32c(&out).to_le_bytes());
    out
}

/// The log of an `about`, the number of its file of names, and the rest.
fn read_about(bytes: &[u8]) -> Option<(u128, u64, About)> {
    let (body, checksum) = bytes.split_last_chunk()?;
    let mut input = body.strip_prefix(&MAGIC)?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let log = take(&mut input).map(u128::from_le_bytes)?;
    let (names, upto) = (take_u64(&mut input)?, take_u64(&mut input)?);
    let covers_from = [take_u32(&mut input)?, take_u32(&mut input)?];
    let count = take_u32(&mut input)? as usize;
    if count > SPANS_MAX {
        return None;
    }
    let mut spans = Vec::new();
    for _ in 0..count {
        let [kind] = take(&mut input)?;
        let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind)?;
        let file = SpanFile {
            number: take_u64(&mut input)?,
            bytes: take_u64(&mut input)?,
            names: take_u64(&mut input)?,
            names_max: take_u64(&mut input)?,
            first_hour: take_u32(&mut input)?,
            last_hour: take_u32(&mut input)?,
            checksum: take_u32(&mut input)?,
        };
        spans.push((kind, file));
    }
    let about = About { upto, covers_from, spans };
    let is_ours = input.is_empty() && about.spans.iter().all(|(_, file)| file.bytes.is_multiple_of(BLOCK_BYTES as u64));
    is_ours.then_some((log, names, about))
}

fn put_batch(names: &[Name], upto: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend((names.len() as u32).to_le_bytes());
    out.extend(upto.to_le_bytes());
    out.extend([0; 4]);
    for (kind, place, hour) in names {
        out.push(*kind as u8);
        out.extend(place.to_le_bytes());
        out.extend(hour.to_le_bytes());
    }
    let checksum = batch_checksum(&out[start..]);
    out[start + BATCH_BYTES - 4..start + BATCH_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Over a batch without its checksum.
fn batch_checksum(batch: &[u8]) -> u32 {
    // Not zero for an empty batch of zeros, as at the end of a file that was made longer.
    let checksum = crc32c::crc32c_append(crc32c::crc32c(NAMES.as_bytes()), &batch[..BATCH_BYTES - 4]);
    crc32c::crc32c_append(checksum, &batch[BATCH_BYTES..])
}

type Batch<'a> = (Vec<Name>, u64, &'a [u8]);

/// The first batch with its number of the log, and what follows it; `None` if there is not a whole one.
fn read_batch(bytes: &[u8]) -> Option<Batch<'_>> {
    let mut input = bytes;
    let (count, upto, checksum) = (take_u32(&mut input)?, take_u64(&mut input)?, take_u32(&mut input)?);
    let length = (count as usize).checked_mul(NAME_BYTES).filter(|length| *length <= input.len())?;
    let (mut names, rest) = input.split_at(length);
    if batch_checksum(&bytes[..BATCH_BYTES + length]) != checksum {
        return None;
    }
    let mut batch = Vec::with_capacity(count as usize);
    while !names.is_empty() {
        let [kind] = take(&mut names)?;
        let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind)?;
        batch.push((kind, take_u64(&mut names)?, take_u32(&mut names)?));
    }
    Some((batch, upto, rest))
}

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*taken)
}

fn take_u64(input: &mut &[u8]) -> Option<u64> {
    take(input).map(u64::from_le_bytes)
}

fn take_u32(input: &mut &[u8]) -> Option<u32> {
    take(input).map(u32::from_le_bytes)
}
