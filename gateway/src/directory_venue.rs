//! The venues of a data directory.
//!
//! Users, orders and markets of one directory belong together. A start on another venue would list that venue's markets
//! beside the old ones and leave the old positions without prices, so it is refused unless mixing is allowed. The names
//! are kept in the file `venue_kinds`, one line, separated by commas. A directory without the file, of an earlier
//! version, is judged by its markets.

use engine::market::Market;
use engine::market::terms::Venue;
use host::small_file;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use venue::VenueKind;

pub const FILE: &str = "venue_kinds";
/// Longest content that is accepted: a short name for each venue.
const BYTES_MAX: u64 = 256;

/// A start on a venue that the directory was not used with.
#[derive(Debug, PartialEq, Eq)]
pub struct OtherVenue {
    /// The venues of the directory.
    known: String,
    /// The venue that this start is configured for.
    wanted: String,
}

impl fmt::Display for OtherVenue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtherVenue { known, wanted } = self;
        write!(
            f,
            "this data directory was used with venue {known}, not with {wanted}: name another directory with \
             --data-dir, or \
             trade both in one directory with --mix-venues"
        )
    }
}

/// Checks that the directory was used with `kind` or with nothing, and records `kind`.
///
/// # Errors
/// The inner error: the directory was used with another venue, and `mix` is false. The outer one: the file cannot be
/// read or written.
pub fn claim(
    dir: &Path,
    kind: VenueKind,
    mix: bool,
    markets: impl Iterator<Item = impl std::borrow::Borrow<Market>>,
) -> io::Result<Result<(), OtherVenue>> {
    let wanted = names(kind);
    let mut known = match noted(dir)? {
        Some(known) => known,
        None => of_markets(kind, markets),
    };
    if !known.is_empty() && !mix && !wanted.is_subset(&known) {
        let text = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        return Ok(Err(OtherVenue { known: text(&known), wanted: text(&wanted) }));
    }
    let before = known.len();
    known.extend(wanted);
    if known.len() > before {
        note(dir, &known)?;
    }
    Ok(Ok(()))
}

/// Whether venue time was never server time in this directory: it was used only with recordings.
///
/// # Errors
/// The file cannot be read.
pub fn is_of_recordings(dir: &Path) -> io::Result<bool> {
    Ok(noted(dir)?.is_some_and(|kinds| kinds == names(VenueKind::Replay)))
}

fn names(kind: VenueKind) -> BTreeSet<String> {
    kind.to_string().split(',').map(str::to_owned).collect()
}

/// The venues that an earlier start recorded.
///
/// # Errors
/// The file cannot be read, or is not a list of venues.
pub fn noted(dir: &Path) -> io::Result<Option<BTreeSet<String>>> {
    let text = match small_file::text(&dir.join(FILE), BYTES_MAX + 1) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let names: BTreeSet<String> = text.trim().split(',').map(str::to_owned).collect();
    let sound = |name: &String| name.parse::<VenueKind>().is_ok_and(|kind| kind.to_string() == *name);
    if text.len() as u64 > BYTES_MAX || !names.iter().all(sound) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "not a list of venues; remove the file, and the next start creates it again",
        ));
    }
    Ok(Some(names))
}

/// The venues of the markets. A recording's markets are those of the recorded venue, so a replay accepts all but
/// synthetic ones.
fn of_markets(kind: VenueKind, markets: impl Iterator<Item = impl std::borrow::Borrow<Market>>) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for market in markets {
        let name = match market.borrow().listing.venue {
            Venue::Synthetic => Venue::Synthetic.name(),
            _ if kind == VenueKind::Replay => "replay",
            live => live.name(),
        };
        known.insert(name.to_owned());
    }
    known
}

fn note(dir: &Path, names: &BTreeSet<String>) -> io::Result<()> {
    let text = names.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    let mut file = tempfile(dir)?;
    writeln!(file.1, "{text}")?;
    file.1.sync_all()?;
    fs::rename(&file.0, dir.join(FILE))
}

fn tempfile(dir: &Path) -> io::Result<(std::path::PathBuf, fs::File)> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = dir.join("venue_kinds.part");
    let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    Ok((path, file))
}
