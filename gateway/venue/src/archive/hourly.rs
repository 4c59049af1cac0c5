//! A recording that grows becomes hours, one after the other (gateway/docs/archive.md §8).
//!
//! What an hour needs of those before it (listings, books, open gaps, duplicates) is kept as bytes between two hours, so
//! that making an hour costs what its own lines cost, and gives the files that one pass over the whole recording gives.
//! Without these bytes the recording is read from its oldest file; what the venue said about its markets before is then
//! read from the archive.

use super::build::{BuildError, Options, Pass, venue};
use super::catalogue;
use super::rows::{RowMaker, SavedRows};
use super::seal::{SealError, Sealed};
use super::tally::{Counted, Gaps, SavedGaps};
use crate::FeedUpdate;
use crate::category::Names;
use crate::live::recorder::hours::{self, RecordedFile};
use crate::replay::{Lines, Recording as _, Saved};
use crate::saved;
use crate::skips::Skips;
use crate::tape::{Origin, Part, TapeError};
use archive::store::Store;
use engine::backtest::Hour;
use engine::time::Timestamp;
use host::thread::Stop;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wincode::{SchemaRead, SchemaWrite};

/// The file of the state in the folder of an archive.
const NAME: &str = "recording.state";
const MAGIC: [u8; 8] = *b"PTAPEST\x01";
const DIGEST_BYTES: usize = 32;
/// Largest file of a state.
const BYTES_MAX: u64 = 1 << 30;
/// How long a file is known by name after its hour. A file that appears later (the clock was set back by more) is left
/// out.
const KNOWN_HOURS: u32 = 24;

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Lines of hours that were made before.
    pub late: u64,
    /// Hours that are there and were not recorded by this server; they stay.
    pub foreign: Vec<PathBuf>,
    /// Hours before this one are made.
    pub hour: u32,
}

/// How far a recording was made into hours.
#[derive(SchemaWrite, SchemaRead)]
struct State {
    /// Hours before this one are made.
    hour: u32,
    /// Time of the last line.
    now: Timestamp,
    /// Files by name without `.gz`, and the count of their lines that were read; `None`: all.
    files: Vec<(String, Option<u64>)>,
    lines: Saved,
    rows: SavedRows,
    venues: Vec<SavedVenue>,
    skipped: Counted,
}

#[derive(SchemaWrite, SchemaRead)]
struct SavedVenue {
    name: String,
    gaps: SavedGaps,
    /// Markets by condition, with the venue's own ids.
    ids: Vec<(String, String)>,
    first: Timestamp,
}

/// What a pass over a growing recording has besides.
pub(super) struct Progress {
    root: PathBuf,
    /// Files that were read completely before.
    whole: Vec<String>,
    /// The first hour of the pass.
    pub(super) begun: u32,
    pub(super) late: u64,
    pub(super) foreign: Vec<PathBuf>,
}

/// The first hour that is not made yet, as the archive in this folder remembers it.
pub fn reached(root: &Path) -> Option<Hour> {
    Some(Hour(State::read(root)?.hour))
}

/// Makes the hours of a recording before `until`, except those that are made already. Hours are handed out when they are
/// complete.
///
/// # Errors
/// The recording cannot be read, or an hour cannot be written. Hours that were complete stay.
pub fn make_due(
    folder: &Path,
    until: Hour,
    options: &Options,
    names: &Names,
    stop: &Stop,
    sealed: &mut dyn FnMut(Sealed),
) -> Result<Done, BuildError> {
    let root = options.place.store.root().to_owned();
    let skips = Arc::new(Skips::default());
    let files = hours::recorded_files(folder)
        .map_err(|error| BuildError::Tape(TapeError::Io { path: folder.to_owned(), error }))?;
    let state = State::read(&root);
    if state.as_ref().is_some_and(|state| until.0 <= state.hour) {
        return Ok(Done { hour: until.0, ..Done::default() });
    }
    let parts = parts(&files, state.as_ref(), until);
    let saved = state.as_ref().map(|state| &state.lines);
    let (mut lines, state) = match Lines::of_parts(parts, names, &skips, saved) {
        Some(lines) => (lines, state),
        None => {
            let parts = self::parts(&files, None, until);
            let lines = Lines::of_parts(parts, names, &skips, None);
            (lines.expect("nothing is restored"), None)
        }
    };
    let Some(first) = state.as_ref().map(|state| state.now).or(lines.line_at()) else {
        return Ok(Done { hour: until.0, ..Done::default() });
    };
    let mut pass = Pass::new(options, stop, sealed, skips, first);
    let begun = state.as_ref().map_or(0, |state| state.hour);
    let mut progress = Progress { root, whole: Vec::new(), begun, late: 0, foreign: Vec::new() };
    match state {
        Some(State { hour, files, rows, venues, skipped, .. }) => {
            progress.whole = files.into_iter().filter(|(_, read)| read.is_none()).map(|(name, _)| name).collect();
            pass.hour = hour;
            // A line of an hour that is made counts for the next one.
            pass.now = first.max(Timestamp::of_hour(hour));
            pass.rows = RowMaker::restored(rows);
            pass.skipped = skipped;
            for SavedVenue { name, gaps, ids, first } in venues {
                let Some(origin) = Origin::named(&name) else { continue };
                let venue = venue(&mut pass.venues, options, origin, first);
                venue.gaps = Gaps::restored(gaps);
                ids.into_iter().for_each(|(condition, id)| venue.catalogue.learn(condition, id));
            }
        }
        None => recall(&mut pass, &mut lines, first)?,
    }
    pass.progress = Some(progress);
    pass.read(&mut lines, Some(until.0))?;
    let Progress { late, foreign, .. } = pass.progress.take().unwrap_or_else(|| unreachable!("it was set above"));
    Ok(Done { late, foreign, hour: until.0 })
}

/// A recording from where its hours that are made end.
pub(super) struct Resumed {
    pub(super) lines: Lines,
    pub(super) rows: RowMaker,
    pub(super) venues: Vec<(Origin, Gaps)>,
    pub(super) now: Timestamp,
    pub(super) hour: u32,
}

/// Opens a recording that grows after the hours that are made, as the archive in `root` remembers them.
pub(super) fn resume(folder: &Path, root: &Path, names: &Names) -> Result<Resumed, TapeError> {
    let skips = Arc::new(Skips::default());
    let io = |error| TapeError::Io { path: folder.to_owned(), error };
    let files = hours::recorded_files(folder).map_err(io)?;
    let open = |state: Option<&State>| {
        let parts: Vec<Part> = parts(&files, state, Hour(0));
        let is_left_out = |file: &&RecordedFile| !parts.iter().any(|part| part.path == file.path);
        let known: Vec<PathBuf> = files.iter().filter(is_left_out).map(|file| file.path.clone()).collect();
        Some(Lines::of_parts(parts, names, &skips, state.map(|state| &state.lines))?.following(folder, known))
    };
    let state = State::read(root);
    let Some((lines, State { hour, now, rows, venues, .. })) =
        state.and_then(|state| Some((open(Some(&state))?, state)))
    else {
        let lines = open(None).expect("nothing is restored");
        let first = lines.line_at().unwrap_or_default();
        return Ok(Resumed { lines, rows: RowMaker::default(), venues: Vec::new(), now: first, hour: first.hour() });
    };
    let venue = |SavedVenue { name, gaps, .. }: SavedVenue| Some((Origin::named(&name)?, Gaps::restored(gaps)));
    Ok(Resumed {
        lines,
        rows: RowMaker::restored(rows),
        venues: venues.into_iter().filter_map(venue).collect(),
        now: now.max(Timestamp::of_hour(hour)),
        hour,
    })
}

/// The files to read: those that were not read completely.
fn parts(files: &[RecordedFile], state: Option<&State>, until: Hour) -> Vec<Part> {
    let read: BTreeMap<&str, Option<u64>> =
        state.iter().flat_map(|state| &state.files).map(|(name, read)| (name.as_str(), *read)).collect();
    let known_from = state.map_or(0, |state| state.hour.saturating_sub(KNOWN_HOURS));
    let part = |file: &RecordedFile| {
        let skip = match read.get(file.name.as_str()) {
            Some(read) => (*read)?,
            None if file.hour < known_from => return None,
            None => 0,
        };
        // The file of an hour that is over does not grow.
        Some(Part { path: file.path.clone(), skip, grows: until.0 <= file.hour })
    };
    files.iter().filter_map(part).collect()
}

/// Lists the markets of older hours whose lines were removed: what the venue said about them is in the archive.
fn recall(pass: &mut Pass<'_>, lines: &mut Lines, first: Timestamp) -> Result<(), BuildError> {
    let options = pass.options;
    for origin in Origin::all() {
        let folder = catalogue::folder(&options.place.venue_folder(origin));
        if !folder.is_dir() || !has_recorded_before(&options.place.store, origin, Hour::of(first)) {
            continue;
        }
        let mut unused = Vec::new();
        let Pass { rows, venues, .. } = pass;
        let mut each = |updates: &[FeedUpdate]| {
            for update in updates {
                if let FeedUpdate::Listed { listing, .. } = update {
                    let venue = venue(venues, options, origin, first);
                    venue.catalogue.learn(listing.condition.clone(), listing.venue_market_id.clone());
                }
            }
            rows.frame(updates, first, &mut unused);
            unused.clear();
        };
        lines.recall(&folder, Timestamp::of_hour(first.hour()), &mut each).map_err(BuildError::Tape)?;
    }
    pass.forget_skips();
    Ok(())
}

/// Whether an archive has recorded hours before this one.
fn has_recorded_before(store: &Store, origin: Origin, before: Hour) -> bool {
    let hours = store.entries(origin.name(), Hour(0)..before);
    hours.iter().rev().any(|entry| entry.sidecar().is_ok_and(|sidecar| sidecar.source.kind == "recorded"))
}

/// What a state's bytes without magic and digest say is not made yet, after everything in them was restored; `None`:
/// they are damaged. For the fuzz target: a file has its digest, which stops nearly all damage before.
pub fn restored(bytes: &[u8]) -> Option<Hour> {
    let State { hour, lines, rows, venues, .. } = saved::read(bytes)?;
    let skips = Arc::new(Skips::default());
    Lines::of_parts(Vec::new(), &Names::default(), &skips, Some(&lines))?;
    let rows = RowMaker::restored(rows);
    let gaps: Vec<Gaps> = venues.into_iter().map(|venue| Gaps::restored(venue.gaps)).collect();
    drop((rows, gaps));
    Some(Hour(hour))
}

/// The bytes of a state that [`restored`] reads, in the folder of an archive; `None`: it has none.
pub fn state_bytes(root: &Path) -> Option<Vec<u8>> {
    let file = std::fs::read(root.join(NAME)).ok()?;
    Some(file.strip_prefix(&MAGIC)?.split_at_checked(DIGEST_BYTES)?.1.to_vec())
}

impl Pass<'_> {
    /// Saves how far the recording was read: all lines before the hour of the pass.
    pub(super) fn save(&self, lines: &Lines) -> Result<(), BuildError> {
        let Some(progress) = &self.progress else { return Ok(()) };
        let read = lines.tape().taken().filter_map(|(path, read)| Some((hours::name_of(path)?, read)));
        let whole = progress.whole.iter().map(|name| (name.clone(), None));
        let known_from = self.hour.saturating_sub(KNOWN_HOURS);
        let files =
            whole.chain(read).filter(|(name, _)| hours::hour_of(name).is_some_and(|hour| known_from <= hour)).collect();
        let saved_venue = |venue: &super::build::Venue| SavedVenue {
            name: venue.origin.name().to_owned(),
            gaps: venue.gaps.save(),
            ids: venue.catalogue.ids().map(|(condition, id)| (condition.to_owned(), id.to_owned())).collect(),
            first: venue.first,
        };
        let bytes = lines.save().and_then(|lines| {
            saved::write(&State {
                hour: self.hour,
                now: self.now,
                files,
                lines,
                rows: self.rows.save(),
                venues: self.venues.iter().map(saved_venue).collect(),
                skipped: self.skipped,
            })
        });
        let path = progress.root.join(NAME);
        let Some(bytes) = bytes else {
            let error = io::Error::other("the state of the recording is too large");
            return Err(SealError::Io(path, error).into());
        };
        let digest = Sha256::digest(&bytes);
        let file = [&MAGIC[..], &digest[..], &bytes[..]].concat();
        Ok(archive::write_file(&path, &file).map_err(SealError::Archive)?)
    }
}

impl State {
    /// The state in the folder of an archive; `None`: there is none, or it is damaged.
    fn read(root: &Path) -> Option<State> {
        let path = root.join(NAME);
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "the state of the recording cannot be read; the recording is read from its oldest file");
                return None;
            }
        }
        let state = State::of(&bytes);
        if state.is_none() {
            tracing::warn!(file = %path.display(), "the state of the recording is damaged; the recording is read from its oldest file");
        }
        state
    }

    fn of(bytes: &[u8]) -> Option<State> {
        let (digest, bytes) = bytes.strip_prefix(&MAGIC)?.split_at_checked(DIGEST_BYTES)?;
        (Sha256::digest(bytes)[..] == *digest).then(|| saved::read(bytes)).flatten()
    }
}

#[cfg(test)]
pub(super) mod tests;
