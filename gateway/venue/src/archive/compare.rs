//! Hours of an archive compared with the lines that they were made of: the hours are made again from the recording, and
//! both have the same rows (gateway/docs/archive-tools.md §1).

use super::build::{self, BuildError, Options};
use crate::category::Names;
use crate::replay::{Lines, Recording as _};
use crate::tape::TapeError;
use archive::read::HourFile;
use archive::sidecar::Sidecar;
use archive::store::{HourEntry, RawCheck, Store};
use engine::backtest::Hour;
use host::thread::Stop;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Rows between two checks of the stop flag.
const ROWS_BETWEEN_CHECKS: u64 = 4_096;
/// The kind of an hour's source if the server recorded it.
const RECORDED: &str = "recorded";

/// Which hours are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// All: the recording was named for them.
    All,
    /// Those that the server recorded, as far as the recording still has their lines.
    Recorded,
}

/// Hours that were made again from a recording.
pub struct Comparison {
    of: Compared,
    made: BTreeMap<(&'static str, u32), PathBuf>,
    stop: Stop,
    /// Hours that were compared, and those that were not.
    pub compared: u64,
    pub left_out: u64,
    /// Why hours are not compared although there is a recording.
    pub note: Option<&'static str>,
}

impl Comparison {
    /// Compares nothing; counts the hours.
    pub fn without_lines() -> Comparison {
        let (made, stop) = (BTreeMap::new(), Stop::new());
        Comparison { of: Compared::Recorded, made, stop, compared: 0, left_out: 0, note: None }
    }

    /// Makes the hours of a range again, in the place of `options`, which is not that of the archive.
    ///
    /// # Errors
    /// The recording cannot be read, an hour cannot be written, or the stop flag is set.
    pub fn with_lines(
        tape: &Path,
        (store, range): (&Store, Range<Hour>),
        of: Compared,
        options: Options,
        names: &Names,
        stop: &Stop,
    ) -> Result<Comparison, BuildError> {
        let mut comparison = Comparison { of, stop: stop.clone(), ..Comparison::without_lines() };
        let wanted = |entry: &HourEntry| of == Compared::All || is_recorded(entry);
        let venues = store.venues();
        let hours = venues.iter().flat_map(|venue| store.entries(venue, range.clone()));
        let hours: Vec<u32> = hours.filter(|entry| wanted(entry)).map(|entry| entry.hour.0).collect();
        let (Some(from), Some(to)) = (hours.iter().min(), hours.iter().max()) else { return Ok(comparison) };
        if of == Compared::Recorded && !reaches_back(tape, store, names)? {
            comparison.note = Some("the recording does not have the lines of the first recorded hour");
            return Ok(comparison);
        }
        let options = Options { from: Some(*from), to: Some(*to), ..options };
        let made = &mut comparison.made;
        build::from_lines(tape, &options, names, stop, &mut |hour| {
            made.insert((hour.origin.name(), hour.hour), hour.path);
        })?;
        Ok(comparison)
    }

    /// The file of an hour that was made again; `None`: the hour is not compared.
    fn made_again(&self, entry: &HourEntry) -> Option<PathBuf> {
        let is_meant = self.of == Compared::All || is_recorded(entry);
        self.made.get(&(entry.venue.as_str(), entry.hour.0)).filter(|_| is_meant).cloned()
    }
}

fn is_recorded(entry: &HourEntry) -> bool {
    entry.sidecar().is_ok_and(|sidecar| sidecar.source.kind == RECORDED)
}

/// Whether a recording has the lines of the first recorded hour of an archive. Without them, later hours cannot be made
/// again: listings and books come from before.
fn reaches_back(tape: &Path, store: &Store, names: &Names) -> Result<bool, BuildError> {
    let lines = match Lines::open(tape, false, names, &Default::default()) {
        Err(TapeError::Empty { .. }) => return Ok(false),
        lines => lines.map_err(BuildError::Tape)?,
    };
    let first = |venue: &String| store.all(venue).iter().find(|entry| is_recorded(entry)).map(|entry| entry.hour);
    let first = store.venues().iter().filter_map(first).min();
    Ok(lines.line_at().is_some_and(|at| first.is_none_or(|first| Hour::of(at) <= first)))
}

impl RawCheck for Comparison {
    fn check(&mut self, entry: &HourEntry, _: &Sidecar, file: &HourFile) -> Result<Vec<String>, archive::Error> {
        let Some(path) = self.made_again(entry) else {
            self.left_out += 1;
            return Ok(match self.of {
                Compared::All => vec!["the recording does not have this hour".to_owned()],
                Compared::Recorded => Vec::new(),
            });
        };
        let other = HourFile::open(&path)?;
        self.compared += 1;
        let (mut rows, mut others) = (file.all_rows(), other.all_rows());
        for number in 0.. {
            if number % ROWS_BETWEEN_CHECKS == 0 && self.stop.is_set() {
                return Err(archive::Error::Io(entry.path.clone(), io::Error::other("the check was stopped")));
            }
            match (rows.next().transpose()?, others.next().transpose()?) {
                (None, None) => break,
                (row, other) if row == other => {}
                (row, other) => {
                    let number = row.or(other).map_or(0, |(number, _)| number);
                    return Ok(vec![format!("row {number} differs from the recording")]);
                }
            }
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
