//! An hour's rows become its files: Parquet, time index, sidecar (gateway/docs/archive.md §1).
//!
//! The sidecar is written last. A stop or a crash before it leaves an hour that is not valid and is made again.

mod sidecar;

use super::checks::{Checks, Findings, Sides};
use super::hours::{hour_text, name_of};
use super::tally::Gap;
use crate::tape::Origin;
use archive::read::HourFile;
use archive::row::{Condition, Row};
use archive::write::{HourWriter, Written};
use engine::time::Timestamp;
use host::thread::Stop;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Rows between two checks of the stop flag.
const ROWS_BETWEEN_CHECKS: u64 = 4_096;

/// Where hours are made, and how.
#[derive(Clone, Debug)]
pub struct Place {
    /// The root of the archive.
    pub root: PathBuf,
    /// Memory of the sorting, in bytes.
    pub memory_bytes: u64,
    /// Whether an hour with another content is replaced.
    pub replace: bool,
    /// Whether this server recorded the lines; else they are imported.
    pub is_recorded: bool,
    /// When the hours are made, by the server's clock.
    pub now: Timestamp,
    pub url: Option<String>,
    pub attribution: Option<String>,
}

/// What is known about an hour besides its rows.
#[derive(Clone, Debug)]
pub struct Facts {
    pub origin: Origin,
    pub hour: u32,
    /// `raw`, `v2`, or `kalshi-recording`.
    pub layout: &'static str,
    /// SHA-256 of the content that the hour is made of.
    pub source: [u8; 32],
    pub files: Vec<SourceFile>,
    /// Lines or rows of the source.
    pub received: u64,
    /// Messages that the recorder dropped; `None` where the source cannot say.
    pub dropped: Option<u64>,
    pub unreadable: u64,
    pub unlisted: u64,
    pub unfit: u64,
    pub deduped: u64,
    /// Rows up to five seconds outside of the hour.
    pub outside: u64,
    /// The source was not in order.
    pub is_resorted: bool,
    pub gaps: Vec<Gap>,
    /// Minutes without a line; `None`: without a row.
    pub minutes_empty: Option<u32>,
    pub steps_back: u64,
    /// Median and maximum.
    pub lag_ms: Option<(u64, u64)>,
    /// The recording began or ended in this hour.
    pub is_partial: bool,
}

/// A file that an hour was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    pub name: String,
    pub bytes: u64,
    pub sha256: [u8; 32],
    /// Lines of the hour in it.
    pub lines: Option<u64>,
}

/// An hour that is complete.
#[derive(Clone, Debug)]
pub struct Sealed {
    pub origin: Origin,
    pub hour: u32,
    pub path: PathBuf,
    /// False: an hour with the same content was there.
    pub is_new: bool,
    pub rows: u64,
    pub bytes: u64,
    pub unreadable: u64,
    pub unfit: u64,
    pub gaps: usize,
    pub is_resorted: bool,
    pub verdict: String,
}

/// Why an hour cannot be completed.
#[derive(Debug)]
pub enum SealError {
    Archive(archive::Error),
    Io(PathBuf, io::Error),
    /// The hour is there with another content.
    Exists(PathBuf),
    /// The stop flag was set.
    Stopped,
}

impl std::fmt::Display for SealError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SealError::Archive(error) => error.fmt(f),
            SealError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            SealError::Exists(path) => {
                write!(f, "{}: the hour is there with another content; --replace replaces it", path.display())
            }
            SealError::Stopped => f.write_str("stopped; complete hours stay"),
        }
    }
}

impl std::error::Error for SealError {}

impl From<archive::Error> for SealError {
    fn from(error: archive::Error) -> SealError {
        SealError::Archive(error)
    }
}

/// How the Parquet file of an hour comes about.
pub enum Content<'a> {
    /// It is written from rows in file order.
    Rows(&'a mut dyn Iterator<Item = Result<Row, archive::Error>>),
    /// It is this file, which was read and is in order.
    File { from: &'a Path, is_linked: bool, findings: Findings },
}

impl Place {
    /// The folder of a venue.
    pub fn venue_folder(&self, origin: Origin) -> PathBuf {
        self.root.join(origin.name())
    }

    /// The folder of runs of the sorting.
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// The Parquet file of an hour.
    pub fn hour_path(&self, origin: Origin, hour: u32) -> PathBuf {
        let text = hour_text(hour);
        let date = text.get(..10).unwrap_or_default().split('-');
        date.fold(self.venue_folder(origin), |folder, part| folder.join(part)).join(name_of(origin, hour))
    }

    /// The hour, if it is complete with this content.
    ///
    /// # Errors
    /// It has another content and may not be replaced.
    pub fn present(&self, facts: &Facts) -> Result<Option<Sealed>, SealError> {
        let path = self.hour_path(facts.origin, facts.hour);
        if !path.exists() {
            return Ok(None);
        }
        // Without a sidecar it was not completed.
        let Some(known) = sidecar::read(&path) else { return Ok(None) };
        if known.source == facts.source {
            let file = HourFile::open(&path)?;
            let (rows, bytes) = (file.row_count(), file.bytes());
            return Ok(Some(Sealed { is_new: false, ..sealed(path, facts, (rows, bytes), known.verdict) }));
        }
        match self.replace {
            true => Ok(None),
            false => Err(SealError::Exists(path)),
        }
    }

    /// Makes the files of an hour.
    ///
    /// # Errors
    /// A file cannot be written, the content cannot be read, or the hour is there with another content and may not be
    /// replaced.
    pub fn seal(&self, facts: Facts, content: Content<'_>, stop: &Stop) -> Result<Sealed, SealError> {
        if let Some(there) = self.present(&facts)? {
            return Ok(there);
        }
        let path = self.hour_path(facts.origin, facts.hour);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(|error| SealError::Io(folder.to_path_buf(), error))?;
        let (written, findings) = match content {
            Content::Rows(rows) => self.write(&path, &facts, rows, stop)?,
            Content::File { from, is_linked, findings } => (take(from, &path, is_linked, &facts)?, findings),
        };
        let verdict = sidecar::write(self, &path, &facts, &written, &findings)?;
        Ok(sealed(path, &facts, (written.rows, written.bytes), verdict))
    }

    fn write(
        &self,
        path: &Path,
        facts: &Facts,
        rows: &mut dyn Iterator<Item = Result<Row, archive::Error>>,
        stop: &Stop,
    ) -> Result<(Written, Findings), SealError> {
        let mut opening = self.opening(facts.origin, facts.hour);
        let mut checks = Checks::new(&mut opening);
        let mut writer = HourWriter::create(path, Some(facts.source))?;
        for (number, row) in (0_u64..).zip(rows) {
            if number.is_multiple_of(ROWS_BETWEEN_CHECKS) && stop.is_set() {
                return Err(SealError::Stopped);
            }
            let row = row?;
            checks.note(&row);
            writer.push(&row)?;
        }
        Ok((writer.finish()?, checks.finish()))
    }

    /// The books at the begin of an hour: those at the end of the hour before.
    pub fn opening(&self, origin: Origin, hour: u32) -> impl FnMut(&str) -> Option<Sides> + use<> {
        let _ = (origin, hour);
        |_| None
    }
}

impl Facts {
    /// Of an hour about which nothing is known.
    pub fn of(origin: Origin, hour: u32, layout: &'static str) -> Facts {
        Facts {
            origin,
            hour,
            layout,
            source: [0; 32],
            files: Vec::new(),
            received: 0,
            dropped: None,
            unreadable: 0,
            unlisted: 0,
            unfit: 0,
            deduped: 0,
            outside: 0,
            is_resorted: false,
            gaps: Vec::new(),
            minutes_empty: None,
            steps_back: 0,
            lag_ms: None,
            is_partial: false,
        }
    }
}

fn sealed(path: PathBuf, facts: &Facts, (rows, bytes): (u64, u64), verdict: String) -> Sealed {
    Sealed {
        origin: facts.origin,
        hour: facts.hour,
        path,
        is_new: true,
        rows,
        bytes,
        unreadable: facts.unreadable,
        unfit: facts.unfit,
        gaps: facts.gaps.len(),
        is_resorted: facts.is_resorted,
        verdict,
    }
}

/// Makes a file that was read and is in order the file of an hour.
fn take(from: &Path, path: &Path, is_linked: bool, facts: &Facts) -> Result<Written, SealError> {
    let mut making = path.as_os_str().to_owned();
    making.push(".making");
    let making = PathBuf::from(making);
    let io = |error| SealError::Io(making.clone(), error);
    match fs::remove_file(&making) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    match is_linked {
        true => fs::hard_link(from, &making).map_err(io)?,
        false => {
            fs::copy(from, &making).map_err(io)?;
            File::open(&making).and_then(|file| file.sync_all()).map_err(io)?;
        }
    }
    // The file may have changed since it was read.
    let (bytes, sha256) = hash_file(&making).map_err(io)?;
    let read = facts.files.first().map(|file| file.sha256);
    if read != Some(sha256) {
        let _ = fs::remove_file(&making);
        return Err(io(io::Error::other("the file changed while it was imported")));
    }
    let (rows, row_groups) = {
        let file = HourFile::open(&making)?;
        (file.row_count(), file.row_groups().len() as u32)
    };
    fs::rename(&making, path).map_err(io)?;
    File::open(path.parent().unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()).map_err(io)?;
    Ok(Written { bytes, sha256, rows, row_groups })
}

/// Bytes and SHA-256 of a file.
///
/// # Errors
/// It cannot be read.
pub fn hash_file(path: &Path) -> io::Result<(u64, [u8; 32])> {
    const PIECE_BYTES: usize = 1 << 20;
    let (mut file, mut hash, mut bytes) = (File::open(path)?, Sha256::new(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok((bytes, hash.finalize().into())),
            Ok(read) => {
                hash.update(&piece[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The digest of a source of which only some markets are kept.
pub fn keyed(source: [u8; 32], markets: Option<&HashSet<Condition>>) -> [u8; 32] {
    let Some(markets) = markets else { return source };
    let mut hash = Sha256::new_with_prefix(source);
    let sorted: BTreeSet<&Condition> = markets.iter().collect();
    sorted.into_iter().for_each(|market| hash.update(market.0));
    hash.finalize().into()
}
