//! Lines of a recording become hours of an archive (gateway/docs/archive-tools.md §2).
//!
//! One pass over the lines, by the translators of the live venues. The rows of an hour are sorted in bounded memory and
//! written when the hour is over. What an hour needs of the hours before it (listings, books, open gaps) comes from the
//! same pass, so it begins with the first line of the recording even if only later hours are wanted.

use super::catalogue::Catalogue;
use super::hourly::Progress;
use super::hours::hour_text;
use super::rows::RowMaker;
use super::seal::{Facts, Place, SealError, Sealed, SourceFile, keyed};
use super::tally::{Counted, Gaps, Tally};
use crate::category::Names;
use crate::replay::{Lines, Recording as _, Stepped};
use crate::skips::Skips;
use crate::tape::{Origin, TapeError, UNNAMED};
use archive::row::{Condition, Row};
use archive::sort::{Order, Sorter};
use engine::time::{MINUTE, Timestamp};
use host::thread::Stop;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lines between two checks of the stop flag.
const LINES_BETWEEN_CHECKS: u64 = 1_024;
/// What a recording or a file is refused for, of which a selection keeps nothing.
pub(super) const NOT_WANTED: &str = "no row is of a market that --markets names";

/// Which hours to make, and where.
#[derive(Clone)]
pub struct Options {
    pub place: Place,
    /// The markets to keep; `None`: all.
    pub markets: Option<HashSet<Condition>>,
    /// First and last hour to make.
    pub from: Option<u32>,
    pub to: Option<u32>,
    /// Venues whose hours are written at the same time, at most.
    pub threads: usize,
}

impl Options {
    /// Whether this hour is to be made.
    pub fn wants(&self, hour: u32) -> bool {
        self.from.is_none_or(|from| from <= hour) && self.to.is_none_or(|to| hour <= to)
    }
}

/// Why a recording cannot be made into hours.
#[derive(Debug)]
pub enum BuildError {
    Tape(TapeError),
    Seal(SealError),
    /// These hours are there with another content; all others are made.
    Exists(Vec<PathBuf>),
    /// The recording has no row of the wanted markets; no hour is made.
    NoRows(PathBuf),
    /// The stop flag was set. Hours that were complete stay.
    Stopped,
}

impl BuildError {
    /// A text for each hour that was refused, or the one of the error.
    pub fn texts(&self) -> Vec<String> {
        match self {
            BuildError::Exists(paths) => paths.iter().map(|path| SealError::Exists(path.clone()).to_string()).collect(),
            error => vec![error.to_string()],
        }
    }
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BuildError::Tape(error) => error.fmt(f),
            BuildError::Seal(error) => error.fmt(f),
            BuildError::Exists(_) => f.write_str(&self.texts().join("; ")),
            BuildError::NoRows(path) => write!(f, "{}: {NOT_WANTED}", path.display()),
            BuildError::Stopped => f.write_str("stopped; complete hours stay"),
        }
    }
}

impl std::error::Error for BuildError {}

impl From<SealError> for BuildError {
    fn from(error: SealError) -> BuildError {
        match error {
            SealError::Stopped => BuildError::Stopped,
            error => BuildError::Seal(error),
        }
    }
}

/// Makes the hours of a recording, and hands out each when it is complete. An hour whose files hold the same lines
/// already is handed out without being written. With a selection of markets, an hour without their rows is left out, unless
/// the archive knows them from the hour before. Returns how many hours were left out for that.
///
/// # Errors
/// The recording cannot be read, or an hour cannot be written. All hours were made but those that are there with another
/// content and may not be replaced. No row is of the wanted markets.
pub fn from_lines(
    path: &Path,
    options: &Options,
    names: &Names,
    stop: &Stop,
    sealed: &mut dyn FnMut(Sealed),
) -> Result<u64, BuildError> {
    let mut left_out = 0;
    from_lines_counted(path, options, names, stop, sealed, &mut left_out)?;
    Ok(left_out)
}

/// The same; `left_out` has the count also after an error.
pub(super) fn from_lines_counted(
    path: &Path,
    options: &Options,
    names: &Names,
    stop: &Stop,
    sealed: &mut dyn FnMut(Sealed),
    left_out: &mut u64,
) -> Result<(), BuildError> {
    let skips = Arc::new(Skips::default());
    let mut lines = Lines::open(path, false, names, &skips).map_err(BuildError::Tape)?;
    let Some(first) = lines.line_at() else { return Ok(()) };
    let mut pass = Pass::new(options, stop, sealed, skips, first);
    pass.begin(&mut lines, first);
    let read = pass.read(&mut lines, None);
    let Pass { exists, hours_kept, hours_left_out, .. } = pass;
    *left_out = hours_left_out;
    read?;
    match exists.is_empty() {
        false => Err(BuildError::Exists(exists)),
        true if hours_kept == 0 && hours_left_out > 0 => Err(BuildError::NoRows(path.to_path_buf())),
        true => Ok(()),
    }
}

/// One pass over a recording, or over a part of one that is read hour by hour (`hourly.rs`).
pub(super) struct Pass<'a> {
    pub(super) options: &'a Options,
    stop: &'a Stop,
    sealed: &'a mut dyn FnMut(Sealed),
    skips: Arc<Skips>,
    pub(super) rows: RowMaker,
    pub(super) venues: Vec<Venue>,
    /// A recording of another recorder: it cannot say what it dropped.
    is_kalshi_layout: bool,
    /// The time of the last line; never goes back.
    pub(super) now: Timestamp,
    /// The hour that is read.
    pub(super) hour: u32,
    /// Skips that no line counts yet, and all so far.
    pub(super) skipped: Counted,
    counted: Counted,
    /// Of a recording that is read hour by hour.
    pub(super) progress: Option<Progress>,
    /// Hours that are there with another content.
    exists: Vec<PathBuf>,
    /// Wanted hours, and those of them that have no row of the wanted markets.
    hours_kept: u64,
    hours_left_out: u64,
}

/// What a pass holds of one venue.
pub(super) struct Venue {
    pub(super) origin: Origin,
    pub(super) gaps: Gaps,
    pub(super) catalogue: Catalogue,
    open: Option<Open>,
    /// Time of the recording's first line of the venue.
    pub(super) first: Timestamp,
}

/// An hour of one venue whose lines are being read.
struct Open {
    hour: u32,
    sorter: Sorter,
    /// Rows that are kept.
    rows: u64,
    tally: Tally,
    hash: Sha256,
}

impl<'a> Pass<'a> {
    /// Before the first line, which has this time.
    pub(super) fn new(
        options: &'a Options,
        stop: &'a Stop,
        sealed: &'a mut dyn FnMut(Sealed),
        skips: Arc<Skips>,
        first: Timestamp,
    ) -> Pass<'a> {
        Pass {
            options,
            stop,
            sealed,
            skips,
            rows: RowMaker::default(),
            venues: Vec::new(),
            is_kalshi_layout: false,
            now: first,
            hour: first.hour(),
            skipped: Counted::default(),
            counted: Counted::default(),
            progress: None,
            exists: Vec::new(),
            hours_kept: 0,
            hours_left_out: 0,
        }
    }

    /// Lists the markets that are known before the first line.
    fn begin(&mut self, lines: &mut Lines, first: Timestamp) {
        let (mut updates, mut rows) = (Vec::new(), Vec::new());
        lines.begin(first, &mut updates);
        self.is_kalshi_layout = !lines.tape().metadata().is_empty();
        for path in lines.tape().metadata() {
            // A file that cannot be read was counted when the lines were opened.
            if let Ok(text) = std::fs::read_to_string(path) {
                self.venue(UNNAMED, first).catalogue.metadata(&text, first);
            }
        }
        // What lists markets makes no row.
        self.rows.frame(&updates, first, &mut rows);
    }

    /// Reads the lines of the hours before `until`, and makes these hours. Without `until` the recording ends with its
    /// last line.
    ///
    /// # Errors
    /// An hour cannot be written, or is there with another content and may not be replaced; the stop flag is set.
    pub(super) fn read(&mut self, lines: &mut Lines, until: Option<u32>) -> Result<(), BuildError> {
        let (mut updates, mut rows) = (Vec::new(), Vec::new());
        let mut count = 0_u64;
        while let Some(line_at) = lines.line_at() {
            count += 1;
            if count.is_multiple_of(LINES_BETWEEN_CHECKS) && self.stop.is_set() {
                return Err(BuildError::Stopped);
            }
            let now = self.now.max(lines.change_at().map_or(line_at, |change| change.min(line_at)));
            if until.is_some_and(|until| until <= now.hour()) {
                break;
            }
            if self.hour < now.hour() {
                self.end_hours(lines, now.hour(), false)?;
            }
            self.now = now;
            updates.clear();
            rows.clear();
            let stepped = match lines.advance(now, &mut updates) {
                Stepped::Line { connection, record, file, stated_at, text } => {
                    let origin = record.origin();
                    let venue = venue(&mut self.venues, self.options, origin, now);
                    venue.catalogue.note(now, &record, &updates);
                    venue.gaps.note(connection, record.connection(), &updates, now);
                    let open = venue.open.get_or_insert_with(|| open(self.options, origin, now.hour()));
                    open.hash.update(text);
                    open.hash.update(b"\n");
                    Some((origin, file, stated_at))
                }
                Stepped::Change | Stepped::Unknown => None,
            };
            let unfit = self.rows.frame(&updates, now, &mut rows);
            self.count_skips();
            let Some((origin, file, stated_at)) = stepped else { continue };
            // What was skipped since the last line counts for this one.
            let skipped = std::mem::take(&mut self.skipped);
            if let Some(progress) = &mut self.progress {
                progress.late += u64::from(stated_at.hour() < progress.begun);
            }
            let Some(open) = self.venue(origin, now).open.as_mut() else { continue };
            open.tally.line(file, stated_at, now, skipped);
            open.tally.updates(&updates, now);
            open.tally.unfit += unfit;
            if self.options.wants(now.hour()) {
                self.push(origin, &rows)?;
            }
        }
        self.end_hours(lines, until.unwrap_or(u32::MAX), until.is_none())
    }

    fn count_skips(&mut self) {
        let all = Counted::of(&self.skips);
        self.skipped = self.skipped.plus(all.since(self.counted));
        self.counted = all;
    }

    /// What was skipped so far counts for no line.
    pub(super) fn forget_skips(&mut self) {
        self.counted = Counted::of(&self.skips);
    }

    fn push(&mut self, origin: Origin, rows: &[Row]) -> Result<(), BuildError> {
        let wanted = self.options.markets.as_ref();
        let Some(open) =
            self.venues.iter_mut().find(|venue| venue.origin == origin).and_then(|venue| venue.open.as_mut())
        else {
            return Ok(());
        };
        let spilled = open.sorter.spilled_bytes();
        for row in rows.iter().filter(|row| wanted.is_none_or(|wanted| wanted.contains(&row.market))) {
            open.sorter.push(row).map_err(SealError::Archive)?;
            open.rows += 1;
        }
        if open.sorter.spilled_bytes() > spilled {
            self.options.place.has_room()?;
        }
        Ok(())
    }

    /// Whether an hour has no row of the wanted markets, and nothing is known of them before it: an empty hour would look
    /// like one in which they were silent.
    fn is_left_out(&self, origin: Origin, open: &Open) -> bool {
        let Some(markets) = self.options.markets.as_ref().filter(|_| open.rows == 0) else { return false };
        !self.options.place.is_known_before(origin, open.hour, markets)
    }

    fn venue(&mut self, origin: Origin, now: Timestamp) -> &mut Venue {
        venue(&mut self.venues, self.options, origin, now)
    }

    /// Writes the hours before this one.
    fn end_hours(&mut self, lines: &Lines, before: u32, is_last: bool) -> Result<(), BuildError> {
        let mut ended = Vec::new();
        for number in 0..self.venues.len() {
            let Some(open) = self.venues[number].open.take_if(|open| open.hour < before) else { continue };
            let venue = &mut self.venues[number];
            let [begins, ends] = [open.hour, open.hour + 1].map(Timestamp::of_hour);
            let gaps = venue.gaps.end_hour(begins, ends);
            venue.catalogue.save().map_err(SealError::Archive)?;
            if !self.options.wants(open.hour) {
                continue;
            }
            if self.is_left_out(self.venues[number].origin, &open) {
                self.hours_left_out += 1;
                continue;
            }
            self.hours_kept += 1;
            let venue = &self.venues[number];
            let counted = open.tally.counted();
            // The recording began or ended within the hour.
            let begins_late = venue.first.hour() == open.hour && venue.first.since(begins) > MINUTE;
            let ends_early = is_last && open.tally.last.is_some_and(|last| ends.since(last) > MINUTE);
            // This server may still be writing it, up to its last minute.
            let place = &self.options.place;
            let is_open = place.is_recorded && place.now < ends;
            let layout = if self.is_kalshi_layout { "kalshi-recording" } else { "raw" };
            let facts = Facts {
                source: keyed(open.hash.finalize().into(), self.options.markets.as_ref()),
                files: source_files(lines, &open.tally)?,
                received: open.tally.received,
                dropped: (!self.is_kalshi_layout).then_some(open.tally.losses),
                unreadable: counted.unreadable,
                unlisted: counted.unlisted,
                unfit: counted.unfit + open.tally.unfit,
                deduped: counted.deduped,
                gaps,
                minutes_empty: Some(open.tally.minutes_empty()),
                steps_back: open.tally.steps_back,
                lag_ms: open.tally.lag_ms(),
                is_partial: begins_late || ends_early || is_open,
                ..Facts::of(venue.origin, open.hour, layout)
            };
            let rows = open.sorter.finish().map_err(SealError::Archive)?;
            tracing::debug!(hour = hour_text(open.hour), venue = venue.origin.name(), "an hour is read");
            ended.push((facts, rows));
        }
        for sealed in seal_all(self.options, self.stop, ended) {
            match (sealed, &mut self.progress) {
                (Err(SealError::Exists(path)), Some(progress)) => progress.foreign.push(path),
                (Err(SealError::Exists(path)), None) => self.exists.push(path),
                (sealed, _) => (self.sealed)(sealed?),
            }
        }
        self.hour = before;
        match &self.progress {
            Some(_) => self.save(lines),
            None => Ok(()),
        }
    }
}

/// Writes hours of different venues, some at a time.
fn seal_all<R>(options: &Options, stop: &Stop, ended: Vec<(Facts, R)>) -> Vec<Result<Sealed, SealError>>
where
    R: Iterator<Item = Result<Row, archive::Error>> + Send,
{
    let seal = |(facts, rows): (Facts, R)| options.place.seal_rows(&facts, rows, stop);
    let mut done = Vec::new();
    let mut left = ended.into_iter().peekable();
    while left.peek().is_some() {
        let some: Vec<(Facts, R)> = left.by_ref().take(options.threads.max(1)).collect();
        if some.len() == 1 {
            done.extend(some.into_iter().map(seal));
            continue;
        }
        done.extend(std::thread::scope(|scope| {
            let threads: Vec<_> = some.into_iter().map(|one| scope.spawn(move || seal(one))).collect();
            let joined = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(joined).collect::<Vec<_>>()
        }));
    }
    done
}

pub(super) fn venue<'v>(
    venues: &'v mut Vec<Venue>,
    options: &Options,
    origin: Origin,
    now: Timestamp,
) -> &'v mut Venue {
    let known = venues.iter().position(|venue| venue.origin == origin);
    let number = known.unwrap_or_else(|| {
        venues.push(Venue {
            origin,
            gaps: Gaps::default(),
            catalogue: Catalogue::of(&options.place.venue_folder(origin)),
            open: None,
            first: now,
        });
        venues.len() - 1
    });
    &mut venues[number]
}

fn open(options: &Options, origin: Origin, hour: u32) -> Open {
    let place = &options.place;
    // The sorter of one venue is finished before that of the next one.
    let memory_bytes = place.memory_bytes / crate::adapters::ADAPTERS.len() as u64;
    Open {
        hour,
        sorter: Sorter::new(Order::Hour, &place.cache(), memory_bytes),
        rows: 0,
        tally: Tally::of_hour(hour),
        hash: Sha256::new_with_prefix(origin.name()),
    }
}

/// The files of the recording that an hour came from.
fn source_files(lines: &Lines, tally: &Tally) -> Result<Vec<SourceFile>, SealError> {
    let file = |(number, count): (&usize, &u64)| {
        let plain = lines.tape().file(*number);
        let (path, (sha256, bytes)) = digest_of(plain)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(SourceFile { name, bytes, sha256, lines: Some(*count) })
    };
    tally.files.iter().map(file).collect()
}

/// The digest of a file, or of its packed form if it was packed since it was read.
fn digest_of(plain: &Path) -> Result<(PathBuf, ([u8; 32], u64)), archive::Error> {
    match digest_of_target(plain) {
        Err(archive::Error::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {
            let mut packed = plain.as_os_str().to_owned();
            packed.push(".gz");
            let digest = digest_of_target(Path::new(&packed))?;
            Ok((packed.into(), digest))
        }
        digest => Ok((plain.to_owned(), digest?)),
    }
}

/// The digest of a file or of what a link leads to: its lines were read in the same way.
fn digest_of_target(path: &Path) -> Result<([u8; 32], u64), archive::Error> {
    let target = path.canonicalize().map_err(|error| archive::Error::Io(path.to_owned(), error))?;
    archive::digest(&target)
}

#[cfg(test)]
mod tests;
