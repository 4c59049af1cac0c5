//! The check of an archive: digests, chain, and on demand every row.

use super::{CACHE, HourEntry, Store, index_path};
use crate::error::Error;
use crate::files;
use crate::index::{self, Made, TimeIndex};
use crate::read::HourFile;
use crate::row::Kind;
use crate::sidecar::Sidecar;
use engine::backtest::Hour;
use std::fs;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A problem with an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub venue: String,
    pub hour: Hour,
    pub problem: String,
}

/// Compares the rows of an hour with what they were made of.
pub trait RawCheck {
    /// Problems, each as one sentence.
    ///
    /// # Errors
    /// A file cannot be read.
    fn check(&mut self, entry: &HourEntry, sidecar: &Sidecar, file: &HourFile) -> Result<Vec<String>, Error>;
}

impl Store {
    /// Checks the hours of a range: sidecar, digests of Parquet and index, the chain. `deep`: also every row, the index
    /// made again from them, and the caller's comparison with the source.
    ///
    /// # Errors
    /// The system's; damaged files are findings.
    pub fn verify(&self, range: Range<Hour>, mut deep: Option<&mut dyn RawCheck>) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for venue in self.venues() {
            for entry in self.entries(&venue, range.clone()) {
                let mut problems = Vec::new();
                match entry.stated() {
                    Err(refusal) => problems.push(refusal.to_string()),
                    Ok(sidecar) => {
                        self.check(&entry, &sidecar, &mut problems)?;
                        if let (true, Some(deep)) = (problems.is_empty(), &mut deep) {
                            self.check_rows(&entry, &sidecar, &mut problems, *deep)?;
                        }
                    }
                }
                findings.extend(problems.into_iter().map(|problem| {
                    let (venue, hour) = (venue.clone(), entry.hour);
                    Finding { venue, hour, problem }
                }));
            }
        }
        Ok(findings)
    }

    /// Whether an hour has a good sidecar, and Parquet file and index have the digests that it states. Reads both.
    ///
    /// # Errors
    /// The system's; a file that is missing or is not a plain one is not intact.
    pub fn is_intact(&self, entry: &HourEntry) -> Result<bool, Error> {
        let Ok(sidecar) = entry.sidecar() else { return Ok(false) };
        for (path, piece) in [(&entry.path, &sidecar.parquet), (&index_path(&entry.path), &sidecar.index)] {
            match files::digest(path) {
                Ok((digest, bytes)) if (crate::hex(&digest), bytes) == (piece.sha256.clone(), piece.bytes) => {}
                Ok(_) | Err(Error::Refused(..)) => return Ok(false),
                Err(Error::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn check(&self, entry: &HourEntry, sidecar: &Sidecar, problems: &mut Vec<String>) -> Result<(), Error> {
        let (digest, bytes) = files::digest(&entry.path)?;
        if (crate::hex(&digest), bytes) != (sidecar.parquet.sha256.clone(), sidecar.parquet.bytes) {
            problems.push("the Parquet file has another digest than its sidecar states".to_owned());
        }
        match files::digest(&index_path(&entry.path)) {
            Ok(found) => {
                if (crate::hex(&found.0), found.1) != (sidecar.index.sha256.clone(), sidecar.index.bytes) {
                    problems.push("the index has another digest than its sidecar states".to_owned());
                }
                if let Err(error) = TimeIndex::open(&index_path(&entry.path)).and_then(|index| index.verify()) {
                    problems.push(error.to_string());
                }
            }
            // Its blocks cannot be read either.
            Err(error) => problems.push(format!("the index cannot be read: {error}")),
        }
        let previous = self.previous_digest(&entry.venue, entry.hour);
        if previous.is_some() && sidecar.previous != previous {
            problems.push("the chain is broken: the hour before has another digest".to_owned());
        }
        Ok(())
    }

    fn check_rows(
        &self,
        entry: &HourEntry,
        sidecar: &Sidecar,
        problems: &mut Vec<String>,
        raw: &mut dyn RawCheck,
    ) -> Result<(), Error> {
        match self.folds_alike(entry, sidecar, problems) {
            Err(Error::Refused(path, refusal)) => problems.push(format!("{}: {refusal}", path.display())),
            checked => checked?,
        }
        if problems.is_empty() {
            let file = HourFile::open(&entry.path)?;
            problems.extend(raw.check(entry, sidecar, &file)?);
        }
        Ok(())
    }

    /// Counts the rows, and folds them again into an index that must be the same.
    fn folds_alike(&self, entry: &HourEntry, sidecar: &Sidecar, problems: &mut Vec<String>) -> Result<(), Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = self.root.join(CACHE);
        fs::create_dir_all(&folder).map_err(|error| Error::Io(folder.clone(), error))?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("verify-{}-{number}", std::process::id()));
        let old = TimeIndex::open(&index_path(&entry.path))?;
        let carry = self.carry_of(entry);
        let file = HourFile::open(&entry.path)?;
        let made = match index::prepare(&path, entry.hour.0, &file, old.parquet(), &carry, &|| false) {
            Err(Error::Refused(_, refusal)) if refusal.is_of_order() => {
                problems.push(format!("its rows are out of order: {refusal}"));
                return Ok(());
            }
            made => made?,
        };
        let Some(Made { built, checks, .. }) = made else { return Ok(()) };
        for (kind, count) in Kind::ALL.into_iter().zip(checks.rows) {
            let stated = sidecar.rows.get(kind.name()).copied().unwrap_or(0);
            if stated != count {
                problems.push(format!("it has {count} rows of {}, not {stated}", kind.name()));
            }
        }
        if crate::hex(&built.sha256) != sidecar.index.sha256 {
            problems.push("the rows fold to other books than the index has".to_owned());
        }
        Ok(())
    }
}
