//! Lines of a recording become hours of an archive (gateway/docs/archive-tools.md §2).
//!
//! One pass over the lines, by the translators of the live venues. The rows of an hour are sorted in bounded memory and
//! written when the hour is over. What an hour needs of the hours before it (listings, books, open gaps) comes from the
//! same pass, so it begins with the first line of the recording even if only later hours are wanted.

use super::catalogue::Catalogue;
use super::hours::hour_text;
use super::rows::RowMaker;
use super::seal::{Facts, Place, SealError, Sealed, SourceFile, hash_file, keyed};
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
use std::path::Path;
use std::sync::Arc;

/// Lines between two checks of the stop flag.
const LINES_BETWEEN_CHECKS: u64 = 1_024;

/// Which hours to make, and where.
#[derive(Clone)]
pub struct Options {
    pub place: Place,
    /// The markets to keep; `None`: all.
    pub markets: Option<HashSet<Condition>>,
    /// First and last hour to make.
    pub from: Option<u32>,
    pub to: Option<u32>,
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
    /// The stop flag was set. Hours that were complete stay.
    Stopped,
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BuildError::Tape(error) => error.fmt(f),
            BuildError::Seal(error) => error.fmt(f),
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
/// already is handed out without being written.
///
/// # Errors
/// The recording cannot be read, an hour cannot be written, or is there with another content and may not be replaced.
pub fn from_lines(
    path: &Path,
    options: &Options,
    names: &Names,
    stop: &Stop,
    sealed: &mut dyn FnMut(Sealed),
) -> Result<(), BuildError> {
    let skips = Arc::new(Skips::default());
    let lines = Lines::open(path, false, names, &skips).map_err(BuildError::Tape)?;
    Pass { options, stop, sealed, skips, rows: RowMaker::default(), venues: Vec::new(), is_kalshi_layout: false }
        .run(lines)
}

/// One pass over a recording.
struct Pass<'a> {
    options: &'a Options,
    stop: &'a Stop,
    sealed: &'a mut dyn FnMut(Sealed),
    skips: Arc<Skips>,
    rows: RowMaker,
    venues: Vec<Venue>,
    /// A recording of another recorder: it cannot say what it dropped.
    is_kalshi_layout: bool,
}

/// What a pass holds of one venue.
struct Venue {
    origin: Origin,
    gaps: Gaps,
    catalogue: Catalogue,
    open: Option<Open>,
    /// Time of the recording's first line of the venue.
    first: Timestamp,
}

/// An hour of one venue whose lines are being read.
struct Open {
    hour: u32,
    sorter: Sorter,
    tally: Tally,
    hash: Sha256,
}

impl Pass<'_> {
    fn run(mut self, mut lines: Lines) -> Result<(), BuildError> {
        let Some(first) = lines.line_at() else { return Ok(()) };
        let (mut updates, mut rows) = (Vec::new(), Vec::new());
        let mut now = first;
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
        let mut before = Counted::default();
        let mut count = 0_u64;
        while let Some(line_at) = lines.line_at() {
            count += 1;
            if count.is_multiple_of(LINES_BETWEEN_CHECKS) && self.stop.is_set() {
                return Err(BuildError::Stopped);
            }
            now = now.max(lines.change_at().map_or(line_at, |change| change.min(line_at)));
            if self.venues.iter().any(|venue| venue.open.as_ref().is_some_and(|open| open.hour < now.hour())) {
                self.end_hours(&lines, now.hour(), false)?;
            }
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
            let Some((origin, file, stated_at)) = stepped else { continue };
            // The tape reads ahead: what was skipped since the last line counts for this one.
            let after = Counted::of(&self.skips);
            let Some(open) = self.venue(origin, now).open.as_mut() else { continue };
            open.tally.line(file, stated_at, now, [before, after]);
            open.tally.updates(&updates, now);
            open.tally.unfit += unfit;
            before = after;
            if self.options.wants(now.hour()) {
                self.push(origin, &rows)?;
            }
        }
        self.end_hours(&lines, u32::MAX, true)
    }

    fn push(&mut self, origin: Origin, rows: &[Row]) -> Result<(), BuildError> {
        let wanted = self.options.markets.as_ref();
        let Some(open) =
            self.venues.iter_mut().find(|venue| venue.origin == origin).and_then(|venue| venue.open.as_mut())
        else {
            return Ok(());
        };
        for row in rows.iter().filter(|row| wanted.is_none_or(|wanted| wanted.contains(&row.market))) {
            open.sorter.push(row).map_err(SealError::Archive)?;
        }
        Ok(())
    }

    fn venue(&mut self, origin: Origin, now: Timestamp) -> &mut Venue {
        venue(&mut self.venues, self.options, origin, now)
    }

    /// Writes the hours before this one.
    fn end_hours(&mut self, lines: &Lines, before: u32, is_last: bool) -> Result<(), BuildError> {
        for number in 0..self.venues.len() {
            let Some(open) = self.venues[number].open.take_if(|open| open.hour < before) else { continue };
            let venue = &mut self.venues[number];
            let [begins, ends] = [open.hour, open.hour + 1].map(Timestamp::of_hour);
            let gaps = venue.gaps.end_hour(begins, ends);
            venue.catalogue.save().map_err(|error| SealError::Io(venue.catalogue.folder().to_path_buf(), error))?;
            if !self.options.wants(open.hour) {
                continue;
            }
            let counted = open.tally.counted();
            // The recording began or ended within the hour.
            let begins_late = venue.first.hour() == open.hour && venue.first.since(begins) > MINUTE;
            let ends_early = is_last && open.tally.last.is_some_and(|last| ends.since(last) > MINUTE);
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
                is_partial: begins_late || ends_early,
                ..Facts::of(venue.origin, open.hour, layout)
            };
            let rows = open.sorter.finish().map_err(SealError::Archive)?;
            tracing::debug!(hour = hour_text(open.hour), venue = venue.origin.name(), "an hour is read");
            (self.sealed)(self.options.place.seal_rows(&facts, rows, self.stop)?);
        }
        Ok(())
    }
}

fn venue<'v>(venues: &'v mut Vec<Venue>, options: &Options, origin: Origin, now: Timestamp) -> &'v mut Venue {
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
        tally: Tally::of_hour(hour),
        hash: Sha256::new_with_prefix(origin.name()),
    }
}

/// The files of the recording that an hour came from.
fn source_files(lines: &Lines, tally: &Tally) -> Result<Vec<SourceFile>, SealError> {
    let file = |(number, count): (&usize, &u64)| {
        let path = lines.tape().file(*number);
        let (bytes, sha256) = hash_file(path).map_err(|error| SealError::Io(path.to_path_buf(), error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(SourceFile { name, bytes, sha256, lines: Some(*count) })
    };
    tally.files.iter().map(file).collect()
}

#[cfg(test)]
mod tests;
