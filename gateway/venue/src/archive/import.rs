//! Import of files into an archive (gateway/docs/archive-tools.md §2): recordings of lines, and Parquet hours of others.

use super::build::{self, BuildError, NOT_WANTED, Options};
use super::catalogue::Catalogue;
use super::given;
use super::hours::{Unplaced, hours_of, origin_of_name, parquet_files};
use super::replay::is_archive;
use super::seal::{Facts, Place, SealError, Sealed, SourceFile, keyed};
use super::settled::{self, Settlement};
use crate::category::Names;
use crate::tape::{LINE_BYTES_MAX, Origin, is_tape};
use archive::read::HourFile;
use archive::row::Condition;
use archive::sort::{Order, Sorter};
use engine::market::terms::Venue;
use engine::time::Timestamp;
use host::thread::Stop;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Rows between two checks of the stop flag.
const ROWS_BETWEEN_CHECKS: u64 = 4_096;
/// The time from which a given catalogue is true: before every recording.
const ALWAYS: Timestamp = Timestamp(1_000);

/// What to import.
#[derive(Clone)]
pub struct Import {
    pub options: Options,
    /// A file that needs no change is linked instead of copied.
    pub is_linked: bool,
    /// Market objects, one a line.
    pub catalogue: Option<PathBuf>,
    /// Results ([`settled::read`]).
    pub settlements: Option<BTreeMap<Condition, Settlement>>,
}

/// A downloaded hour.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub path: PathBuf,
    /// Its published name.
    pub name: String,
    pub origin: Origin,
    pub hour: u32,
    pub url: String,
    /// The published digest, if there is one.
    pub sha256: Option<[u8; 32]>,
}

/// A Parquet hour to import.
struct Given<'a> {
    name: &'a str,
    origin: Origin,
    hour: u32,
    is_unverified: bool,
    is_linked: bool,
}

/// Why a file cannot be imported.
#[derive(Debug)]
pub enum ImportError {
    Build(BuildError),
    /// The file, and what is wrong with it.
    Refused(PathBuf, String),
    /// The files of markets or results.
    Given(String),
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ImportError::Build(error) => error.fmt(f),
            ImportError::Refused(path, reason) => write!(f, "{}: {reason}", path.display()),
            ImportError::Given(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ImportError {}

impl ImportError {
    /// Whether only this file is refused, or its hour: others may be imported.
    fn is_about(&self, file: &Path) -> bool {
        let ImportError::Build(BuildError::Seal(error)) = self else { return matches!(self, ImportError::Refused(..)) };
        match error {
            SealError::Exists(_) | SealError::Archive(archive::Error::Refused(..)) => true,
            SealError::Io(path, _) | SealError::Archive(archive::Error::Io(path, _)) => path == file,
            SealError::NoRoom { .. } | SealError::Stopped => false,
        }
    }
}

impl<E: Into<SealError>> From<E> for ImportError {
    fn from(error: E) -> ImportError {
        ImportError::Build(error.into().into())
    }
}

/// What became of an import.
#[derive(Debug, Default)]
#[must_use]
pub struct Imported {
    /// Hours of a recording that have no row of the wanted markets.
    pub left_out: u64,
    /// The last one may have ended the import: a stop, no room, an archive that cannot be written.
    pub refused: Vec<ImportError>,
}

impl Import {
    /// Imports a file or a folder, and hands out each hour when it is complete. Hours are independent: a file or an hour
    /// that is refused does not keep the others out.
    pub fn run(&self, path: &Path, names: &Names, stop: &Stop, sealed: &mut dyn FnMut(Sealed)) -> Imported {
        let (mut origins, mut imported) = (HashSet::new(), Imported::default());
        let mut note = |hour: Sealed| {
            origins.insert(hour.origin);
            sealed(hour);
        };
        let done = self.import(path, names, stop, &mut note, &mut imported);
        let done = done.and_then(|()| origins.into_iter().try_for_each(|origin| self.give(origin)));
        imported.refused.extend(done.err());
        imported
    }

    /// The same, without the given markets and results.
    ///
    /// # Errors
    /// What ended the import.
    fn import(
        &self,
        path: &Path,
        names: &Names,
        stop: &Stop,
        sealed: &mut dyn FnMut(Sealed),
        Imported { left_out, refused }: &mut Imported,
    ) -> Result<(), ImportError> {
        refuse_links(path)?;
        if !is_archive(path).map_err(|error| ImportError::Build(BuildError::Tape(error)))? {
            return match build::from_lines_counted(path, &self.options, names, stop, sealed, left_out) {
                Err(BuildError::Exists(paths)) => {
                    refused.extend(paths.into_iter().map(|path| SealError::Exists(path).into()));
                    Ok(())
                }
                done => done.map_err(ImportError::Build),
            };
        }
        let io = |error| SealError::Io(path.to_path_buf(), error);
        let files = if path.is_dir() { parquet_files(path).map_err(io)? } else { vec![path.to_path_buf()] };
        let (hours, without_hour) = hours_of(files);
        let is_asked_for = |hour: Option<u32>| hour.is_none_or(|hour| self.options.wants(hour));
        let without_hour = without_hour.into_iter().filter(|file| is_asked_for(file.hour));
        refused.extend(without_hour.map(|Unplaced { path, reason, .. }| ImportError::Refused(path, reason)));
        for (hour, files) in hours.into_iter().filter(|(hour, _)| self.options.wants(*hour)) {
            for path in files {
                match self.file(&path, hour, stop) {
                    Ok(hour) => sealed(hour),
                    Err(error) if error.is_about(&path) => refused.push(error),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Imports a Parquet file of this hour.
    fn file(&self, path: &Path, hour: u32, stop: &Stop) -> Result<Sealed, ImportError> {
        let (name, origin) = (path.file_name().unwrap_or_default().to_string_lossy(), origin_of_name(path));
        let given = Given { name: &name, origin, hour, is_unverified: false, is_linked: self.is_linked };
        // Its length is checked before its bytes are read.
        let file = HourFile::open(path)?;
        self.parquet(&self.options.place, &given, &file, archive::digest(path)?, stop)
    }

    /// Imports a downloaded hour; its file is linked.
    ///
    /// # Errors
    /// It is refused, or has another digest than the published one.
    pub fn fetched(&self, fetched: &Fetched, stop: &Stop) -> Result<Sealed, ImportError> {
        let Fetched { path, name, origin, hour, url, sha256 } = fetched;
        let place = Place { url: Some(url.clone()), ..self.options.place.clone() };
        let digest = archive::digest(path)?;
        if sha256.is_some_and(|expected| expected != digest.0) {
            let reason = format!("its digest is {}, not the published one", archive::hex(&digest.0));
            return Err(ImportError::Refused(path.clone(), reason));
        }
        let file = Given { name, origin: *origin, hour: *hour, is_unverified: sha256.is_none(), is_linked: true };
        self.parquet(&place, &file, &HourFile::open(path)?, digest, stop)
    }

    /// Imports one Parquet hour, of this digest and these bytes.
    fn parquet(
        &self,
        place: &Place,
        given: &Given<'_>,
        file: &HourFile,
        (sha256, bytes): ([u8; 32], u64),
        stop: &Stop,
    ) -> Result<Sealed, ImportError> {
        let refused = |reason: &str| ImportError::Refused(file.path().to_path_buf(), reason.to_owned());
        if file.row_count() == 0 {
            return Err(refused("the file has no rows"));
        }
        let wanted = self.options.markets.as_ref();
        let mut facts = Facts {
            files: vec![SourceFile { name: given.name.to_owned(), bytes, sha256, lines: None }],
            source: keyed(sha256, wanted),
            received: file.row_count(),
            extra_columns: file.extra_columns().to_vec(),
            is_unverified: given.is_unverified,
            ..Facts::of(given.origin, given.hour, "v2")
        };
        if let Some(there) = place.present(&facts)? {
            return Ok(there);
        }
        if wanted.is_none()
            && let Some(sealed) = place.seal_file(&mut facts, file, given.is_linked, stop)?
        {
            return Ok(sealed);
        }
        facts.is_resorted = wanted.is_none();
        // A bit for each minute of the hour with a row, of any market.
        let (mut minutes, mut kept) = (0_u64, 0_u64);
        let mut sorter = Sorter::new(Order::Hour, &place.cache(), place.memory_bytes);
        let mut rows = file.all_rows();
        let mut spilled = 0;
        place.has_room()?;
        for row in rows.by_ref() {
            let (number, row) = row?;
            if sorter.spilled_bytes() > spilled {
                spilled = sorter.spilled_bytes();
                place.has_room()?;
            }
            if number.is_multiple_of(ROWS_BETWEEN_CHECKS) && stop.is_set() {
                return Err(SealError::Stopped.into());
            }
            archive::index::check_received(given.hour, number, row.received)
                .map_err(|refusal| archive::Error::Refused(file.path().to_path_buf(), refusal))?;
            if row.received.hour() == given.hour {
                minutes |= 1 << (row.received.minute() % 60);
            }
            if wanted.is_none_or(|wanted| wanted.contains(&row.market)) {
                sorter.push(&row)?;
                kept += 1;
            }
        }
        if let Some(wanted) = wanted.filter(|_| kept == 0)
            && !place.is_known_before(given.origin, given.hour, wanted)
        {
            return Err(refused(NOT_WANTED));
        }
        facts.minutes_empty = Some(60 - minutes.count_ones());
        let read = rows.findings();
        facts.is_resorted |= read.unsorted;
        facts.unreadable = read.unreadable;
        facts.unfit = read.levels_dropped;
        Ok(place.seal_rows(&facts, sorter.finish()?, stop)?)
    }

    /// Adds the given markets and results of a venue.
    fn give(&self, origin: Origin) -> Result<(), ImportError> {
        let folder = self.options.place.venue_folder(origin);
        if let Some(given) = &self.settlements {
            settled::save(&folder, given).map_err(ImportError::Given)?;
        }
        if let Some(path) = &self.catalogue {
            let mut catalogue = Catalogue::of(&folder);
            read_objects(path, origin, &mut catalogue).map_err(ImportError::Given)?;
            catalogue.save()?;
        }
        Ok(())
    }
}

/// Refuses a link, and what is neither a file nor a folder. Of a folder of lines also each file of lines that is a link;
/// other links in folders are passed over.
fn refuse_links(path: &Path) -> Result<(), ImportError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| SealError::Io(path, error)
    };
    let refused = |path: &Path, reason: &str| Err(ImportError::Refused(path.to_owned(), reason.to_owned()));
    let kind = fs::symlink_metadata(path).map_err(io(path))?.file_type();
    if kind.is_symlink() {
        return refused(path, "is a link; give the path that it leads to");
    }
    if !kind.is_file() && !kind.is_dir() {
        return refused(path, "is neither a file nor a folder");
    }
    let folders = [path.to_owned(), path.join("events"), path.join("metadata")];
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        if folder.is_symlink() {
            return refused(folder, "is a link");
        }
        for entry in fs::read_dir(folder).map_err(io(folder))? {
            let entry = entry.map_err(io(folder))?;
            let name = entry.file_name();
            let is_read = name.to_str().is_some_and(|name| is_tape(name) || name.ends_with(".json"));
            if is_read && entry.file_type().map_err(io(folder))?.is_symlink() {
                return refused(&entry.path(), "is a link");
            }
        }
    }
    Ok(())
}

/// Fields of Polymarket's objects that change in the life of a market.
const PASSING: [&str; 20] = [
    "closed",
    "closedTime",
    "active",
    "archived",
    "acceptingOrders",
    "outcomePrices",
    "umaResolutionStatus",
    "umaResolutionStatuses",
    "automaticallyResolved",
    "resolvedBy",
    "updatedAt",
    "bestBid",
    "bestAsk",
    "spread",
    "lastTradePrice",
    "volume",
    "volumeNum",
    "volume24hr",
    "liquidity",
    "liquidityNum",
];

/// Checks a file of market objects before an import: each line is the object of a market, of any venue.
///
/// # Errors
/// It is not a plain file, or a line is none of these; the text names it.
pub fn check_objects(path: &Path) -> Result<(), String> {
    each_object(path, |object| check_object(&object))
}

fn check_object(object: &Map<String, Value>) -> Result<(), String> {
    let is_market = ["conditionId", "event_ticker"].iter().any(|name| object.contains_key(*name));
    if is_market { Ok(()) } else { Err("no conditionId and no event_ticker".into()) }
}

/// Reads the market objects of a venue, and passes over those of others: what they say about a result or about prices is left out, since it has no time.
fn read_objects(path: &Path, origin: Origin, catalogue: &mut Catalogue) -> Result<(), String> {
    each_object(path, |mut object| {
        check_object(&object)?;
        match origin.registration().venue {
            Venue::Polymarket => {
                if !object.contains_key("conditionId") {
                    return Ok(());
                }
                PASSING.iter().for_each(|name| drop(object.remove(*name)));
                object.extend([("active".to_owned(), true.into()), ("acceptingOrders".to_owned(), true.into())]);
                let line = json!({"r": ALWAYS.millis(), "v": origin.name(), "u": "/markets", "s": 200, "b": [object]});
                catalogue.add(ALWAYS, &line);
            }
            Venue::Kalshi => {
                let Some(event) = object.get("event_ticker").cloned() else { return Ok(()) };
                // Its states follow its own dates.
                let file = json!({"response": {"event": {"event_ticker": event}, "markets": [object]}});
                catalogue.metadata(&file.to_string(), ALWAYS);
            }
            other => return Err(format!("market objects of {} are not read", other.name())),
        }
        Ok(())
    })
}

/// Takes the objects of a file, one a line; blank lines are left out.
fn each_object(path: &Path, mut each: impl FnMut(Map<String, Value>) -> Result<(), String>) -> Result<(), String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut lines = BufReader::new(given::open(path, u64::MAX).map_err(|error| named(&error))?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = lines.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        if read.map_err(|error| named(&error))? == 0 {
            break;
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(named(&format!("line {number} is too long")));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let object = serde_json::from_slice(&line).map_err(|error| error.to_string());
        object.and_then(&mut each).map_err(|error| named(&format!("line {number}: {error}")))?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod foreign;
#[cfg(test)]
mod tests;
