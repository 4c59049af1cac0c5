//! An hour's rows become its files (gateway/docs/archive-tools.md §2).
//!
//! The files get their names when all are on disk. A stop or a crash before that leaves the hour as it was.

use super::room::Room;
use super::tally::Gap;
use crate::tape::Origin;
use archive::checks::Findings;
use archive::index::Made;
use archive::read::HourFile;
use archive::row::{Condition, Row};
use archive::sidecar::{self, Frames, HourFacts, Sidecar, SourceOf};
use archive::store::{Files, Lock, Store, parquet_path};
use archive::write::{HourWriter, Prepared};
use engine::backtest::{Hour, HourState, Verdict};
use engine::time::Timestamp;
use host::thread::Stop;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Rows between two checks of the stop flag.
const ROWS_BETWEEN_CHECKS: u64 = 4_096;

/// Where hours are made, and how.
#[derive(Clone)]
pub struct Place {
    pub store: Arc<Store>,
    /// Nothing else makes hours in the archive meanwhile.
    pub lock: Arc<Lock>,
    /// What stays free on the disk: asked before each hour, and whenever rows are spilled.
    pub room: Room,
    /// Memory of the sorting, in bytes.
    pub memory_bytes: u64,
    /// Whether an hour with another content is replaced.
    pub replace: bool,
    /// Whether one is replaced that was made of this server's recording, such as a part of it.
    pub replaces_recorded: bool,
    /// Whether this server recorded the lines; else they are imported.
    pub is_recorded: bool,
    /// When the hours are made, by the server's clock.
    pub now: Timestamp,
    /// The program that makes them.
    pub built_by: String,
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
    /// The source was not in order.
    pub is_resorted: bool,
    pub gaps: Vec<Gap>,
    /// Columns of the source that are left out.
    pub extra_columns: Vec<String>,
    /// Minutes without a line; `None`: minutes without a row count.
    pub minutes_empty: Option<u32>,
    pub steps_back: u64,
    /// Median and maximum.
    pub lag_ms: Option<(u64, u64)>,
    /// The recording began or ended in this hour.
    pub is_partial: bool,
    /// It was fetched, and no digest of it was published.
    pub is_unverified: bool,
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
    /// It was fetched, and no digest of it was published.
    pub is_unverified: bool,
    pub verdict: String,
    /// Stated best prices that were compared with the fold, and those that differ.
    pub compared: u64,
    pub differs: u64,
}

/// Why an hour cannot be completed.
#[derive(Debug)]
pub enum SealError {
    Archive(archive::Error),
    Io(PathBuf, io::Error),
    /// The hour is there with another content.
    Exists(PathBuf),
    /// The disk of this folder has too few free bytes.
    NoRoom {
        folder: PathBuf,
        free: u64,
        needed: u64,
    },
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
            SealError::NoRoom { folder, free, needed } => {
                let folder = folder.display();
                write!(f, "{folder}: the disk has {free} free bytes, and no hour is made below {needed}")
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

impl Place {
    /// An archive in which this process may make hours.
    ///
    /// # Errors
    /// Another process makes hours in it, or what a kill interrupted cannot be ended.
    pub fn of(store: Store, room: Room, memory_bytes: u64, now: Timestamp) -> Result<Place, archive::Error> {
        let lock = store.lock()?;
        store.recover(&lock)?;
        Ok(Place {
            store: Arc::new(store),
            lock: Arc::new(lock),
            room,
            memory_bytes,
            replace: false,
            replaces_recorded: false,
            is_recorded: false,
            now,
            built_by: concat!("papertape ", env!("CARGO_PKG_VERSION")).into(),
            url: None,
            attribution: None,
        })
    }

    /// The folder of a venue.
    pub fn venue_folder(&self, origin: Origin) -> PathBuf {
        self.store.root().join(origin.name())
    }

    /// Whether there is room for more.
    ///
    /// # Errors
    /// There is none; the system's.
    pub fn has_room(&self) -> Result<(), SealError> {
        self.room.check(self.store.root())
    }

    /// The folder of runs of the sorting.
    pub fn cache(&self) -> PathBuf {
        self.store.root().join("cache")
    }

    /// The hour, if it is complete with this content and not damaged: its files are read for that.
    ///
    /// # Errors
    /// It has another content and may not be replaced; the system's.
    pub fn present(&self, facts: &Facts) -> Result<Option<Sealed>, SealError> {
        let Some(entry) = self.store.hour(facts.origin.name(), Hour(facts.hour)) else { return Ok(None) };
        // Without a good sidecar it is made again.
        let Ok(known) = entry.sidecar() else { return Ok(None) };
        if known.source.content == archive::hex(&facts.source) {
            // It was made while it was being written, and no line came after that.
            if known.verdict() == Verdict::Partial && !facts.is_partial {
                return Ok(None);
            }
            let is_intact = self.store.is_intact(&entry)?;
            return Ok(is_intact.then(|| Sealed { is_new: false, ..self.sealed(facts, &known) }));
        }
        match self.replace || (self.replaces_recorded && known.source.kind == "recorded") {
            true => Ok(None),
            false => Err(SealError::Exists(self.path(facts))),
        }
    }

    /// Whether the archive knows one of these markets of a venue at the end of the hour before: it has rows in that hour, or
    /// its books are carried through it. Then an hour without their rows is one in which they were silent.
    pub fn is_known_before(&self, origin: Origin, hour: u32, markets: &HashSet<Condition>) -> bool {
        let Some(before) = hour.checked_sub(1) else { return false };
        let is_usable = |state: &HourState| state.verdict.is_usable();
        let states = |market| self.store.hours(origin.name(), market, Hour(before)..Hour(hour));
        markets.iter().any(|market| states(market).iter().any(is_usable))
    }

    /// Makes the files of an hour from rows in file order.
    ///
    /// # Errors
    /// A file cannot be written, the rows cannot be read, or the hour is there with another content and may not be
    /// replaced.
    pub fn seal_rows(
        &self,
        facts: &Facts,
        rows: impl Iterator<Item = Result<Row, archive::Error>>,
        stop: &Stop,
    ) -> Result<Sealed, SealError> {
        if let Some(there) = self.present(facts)? {
            return Ok(there);
        }
        self.has_room()?;
        let (venue, hour) = (facts.origin.name(), Hour(facts.hour));
        let path = self.store.begin(&self.lock, venue, hour)?;
        let mut writer = HourWriter::create(&path, Some(facts.source))?;
        for (number, row) in (0_u64..).zip(rows) {
            if number.is_multiple_of(ROWS_BETWEEN_CHECKS) && stop.is_set() {
                return Err(SealError::Stopped);
            }
            writer.push(&row?)?;
        }
        let parquet = writer.prepare()?;
        let index = self.index(facts, &parquet.open()?, parquet.written().sha256, stop)?;
        self.complete(facts, Files { parquet, index })
    }

    /// Makes a file of rows in order the file of an hour: a link or a copy of it. `None`: it is not in order.
    ///
    /// # Errors
    /// As [`Place::seal_rows`], or the file has wrong rows.
    pub fn seal_file(
        &self,
        facts: &mut Facts,
        file: &HourFile,
        is_linked: bool,
        stop: &Stop,
    ) -> Result<Option<Sealed>, SealError> {
        self.has_room()?;
        let Some(digest) = facts.files.first().map(|file| file.sha256) else { return Ok(None) };
        let path = self.store.begin(&self.lock, facts.origin.name(), Hour(facts.hour))?;
        let index = match self.index(facts, file, digest, stop) {
            Err(SealError::Archive(archive::Error::Refused(_, refusal))) if refusal.is_of_order() => return Ok(None),
            index => index?,
        };
        (facts.unreadable, facts.unfit) = (index.read.unreadable, index.read.levels_dropped);
        let parquet = Prepared::of_file(file.path(), &path, is_linked)?;
        self.complete(facts, Files { parquet, index }).map(Some)
    }

    /// Makes the index of an hour from its Parquet file.
    fn index(&self, facts: &Facts, file: &HourFile, sha256: [u8; 32], stop: &Stop) -> Result<Made, SealError> {
        let (venue, hour) = (facts.origin.name(), Hour(facts.hour));
        let made = self.store.index(&self.lock, venue, hour, file, sha256, &|| stop.is_set())?;
        made.ok_or(SealError::Stopped)
    }

    /// Completes an hour whose Parquet file and index are made. If it is refused, the hour that was there stays.
    fn complete(&self, facts: &Facts, files: Files) -> Result<Sealed, SealError> {
        let (venue, hour) = (facts.origin.name(), Hour(facts.hour));
        let of_hour = HourFacts { is_partial: facts.is_partial, is_merged: false };
        let sidecar = self.sidecar(facts, &files.index.checks);
        let sidecar = self.store.complete(&self.lock, venue, hour, sidecar, of_hour, files)?;
        Ok(self.sealed(facts, &sidecar))
    }

    /// The sidecar of an hour, apart from what the store knows.
    fn sidecar(&self, facts: &Facts, findings: &Findings) -> Sidecar {
        let millis = |moment: Timestamp| moment.millis();
        let length = |gap: &Gap| gap.to.since(gap.from) / engine::time::MILLISECOND;
        let lag_ms = facts.lag_ms.unwrap_or_default();
        let mut sidecar = Sidecar {
            built_by: self.built_by.clone(),
            checks: sidecar::Checks {
                deduped: facts.deduped,
                outside_hour: findings.outside,
                ..sidecar::Checks::default()
            },
            clock: sidecar::Clock {
                lag_ms_p50: i64::try_from(lag_ms.0).unwrap_or(i64::MAX),
                lag_ms_max: i64::try_from(lag_ms.1).unwrap_or(i64::MAX),
                steps_back: facts.steps_back,
            },
            first_received: findings.first.map(millis),
            last_received: findings.last.map(millis),
            frames: Frames {
                dropped: facts.dropped,
                received: facts.received,
                // No recorder whose lines are read puts frames aside (gateway/docs/archive.md §3).
                spilled: 0,
                unfit: facts.unfit,
                unlisted: facts.unlisted,
                unreadable: facts.unreadable,
            },
            gap_ms_max: facts.gaps.iter().map(length).max().unwrap_or(0),
            gap_ms_total: facts.gaps.iter().map(length).sum(),
            gaps: facts.gaps.iter().map(gap).collect(),
            minutes_empty: facts.minutes_empty.unwrap_or_else(|| findings.minutes_empty()).into(),
            sealed_at: millis(self.now),
            source: SourceOf {
                attribution: self.attribution.clone(),
                content: archive::hex(&facts.source),
                extra_columns: facts.extra_columns.clone(),
                files: facts.files.iter().map(source_file).collect(),
                kind: if self.is_recorded { "recorded" } else { "imported" }.into(),
                layout: facts.layout.into(),
                resorted: facts.is_resorted,
                unverified: facts.is_unverified,
                url: self.url.clone(),
            },
            ..Sidecar::default()
        };
        sidecar.set_rows(findings.rows);
        sidecar
    }

    fn sealed(&self, facts: &Facts, sidecar: &Sidecar) -> Sealed {
        Sealed {
            origin: facts.origin,
            hour: facts.hour,
            path: self.path(facts),
            is_new: true,
            rows: sidecar.parquet.rows,
            bytes: sidecar.parquet.bytes,
            unreadable: sidecar.frames.unreadable,
            unfit: sidecar.frames.unfit,
            gaps: sidecar.gaps.len(),
            is_resorted: sidecar.source.resorted,
            is_unverified: sidecar.source.unverified,
            verdict: sidecar.verdict.clone(),
            compared: sidecar.checks.bbo_compared,
            differs: sidecar.checks.bbo_differs,
        }
    }

    fn path(&self, facts: &Facts) -> PathBuf {
        parquet_path(self.store.root(), facts.origin.name(), Hour(facts.hour))
    }
}

pub(super) fn gap(gap: &Gap) -> sidecar::Gap {
    sidecar::Gap {
        connection: Some(gap.connection.clone()),
        from: gap.from.millis(),
        reason: gap.reason.clone(),
        to: gap.to.millis(),
        tokens: (!gap.is_of_all).then(|| gap.tokens.iter().map(|token| token.to_string()).collect()),
    }
}

fn source_file(file: &SourceFile) -> sidecar::SourceFile {
    let SourceFile { name, bytes, sha256, lines } = file;
    sidecar::SourceFile { bytes: *bytes, lines: *lines, name: name.clone(), sha256: archive::hex(sha256) }
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
            is_resorted: false,
            gaps: Vec::new(),
            extra_columns: Vec::new(),
            minutes_empty: None,
            steps_back: 0,
            lag_ms: None,
            is_partial: false,
            is_unverified: false,
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
