//! The end of making an hour: its Parquet file is written; index and sidecar follow, all get their names, and the hours
//! after it are chained to it.

use super::at::{CARRY_HOURS_MAX, StoreCarry};
use super::{HourEntry, Lock, Store, index_path, parquet_path, sidecar_path};
use crate::checks;
use crate::error::{Error, Named, Refusal};
use crate::files::{self, Making};
use crate::fold::Folded;
use crate::index::{self, Built, Carried, Made, TimeIndex};
use crate::read::HourFile;
use crate::row::Condition;
use crate::sidecar::{GAPS_MAX, HourFacts, MarketFacts, Piece, Sidecar, VERSION};
use crate::write::Prepared;
use ahash::AHashMap;
use engine::backtest::Hour;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// The files of an hour, under their names for the time being.
pub struct Files {
    pub parquet: Prepared,
    pub index: Made,
}

impl Store {
    /// The Parquet file of an hour to be written; its folder is created.
    ///
    /// # Errors
    /// The system's.
    pub fn begin(&self, _lock: &Lock, venue: &str, hour: Hour) -> Result<PathBuf, Error> {
        if !super::names::is_venue(venue) {
            return Err(Refusal::new(format!("{venue:?} is not the name of a venue"))).of(&self.root);
        }
        let path = parquet_path(&self.root, venue, hour);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).of(folder)?;
        Ok(path)
    }

    /// Makes the index of an hour from its Parquet file, wherever that is, and compares the rows with each other. The
    /// digest is that of the file. `None`: `is_stopped` became true. The index gets its name by [`Store::complete`].
    ///
    /// # Errors
    /// Refused: the file is damaged, or its rows are out of order ([`Refusal::is_of_order`]) or outside of the hour. The
    /// system's.
    pub fn index(
        &self,
        _lock: &Lock,
        venue: &str,
        hour: Hour,
        file: &HourFile,
        sha256: [u8; 32],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Made>, Error> {
        let path = index_path(&parquet_path(&self.root, venue, hour));
        index::prepare(&path, hour.0, file, sha256, &self.carry(venue, hour, None), is_stopped)
    }

    /// Completes an hour whose Parquet file and index are made: makes its sidecar, gives all three files their names, then
    /// chains the hours after it. Of `sidecar`, these fields are set here: venue, hour, version, parquet, index, markets,
    /// tokens, what the fold says of the checks, previous, verdict, exceptions, digest. An hour that is there stays until
    /// the new one is on disk. Returns the sidecar.
    ///
    /// # Errors
    /// Refused: the index is of another file. The system's. What was there before stays.
    pub fn complete(
        &self,
        lock: &Lock,
        venue: &str,
        hour: Hour,
        mut sidecar: Sidecar,
        facts: HourFacts,
        Files { parquet, index: made }: Files,
    ) -> Result<Sidecar, Error> {
        let path = parquet_path(&self.root, venue, hour);
        let written = parquet.written();
        made.making.sync()?;
        venue.clone_into(&mut sidecar.venue);
        sidecar.hour = hour.to_string();
        sidecar.version = VERSION;
        sidecar.parquet = Piece {
            bytes: written.bytes,
            row_groups: written.row_groups.into(),
            rows: written.rows,
            sha256: crate::hex(&written.sha256),
        };
        sidecar.previous = self.previous_digest(venue, hour);
        sidecar.set_index(&made.built);
        sidecar.set_checks(&made.checks);
        let index = TimeIndex::open(made.making.making())?;
        if index.parquet() != written.sha256 {
            return Err(Refusal::new("the file changed while its index was made")).of(&path);
        }
        sidecar.judge(facts, markets(&sidecar, &index, made.checks.prices()));
        let of_sidecar = sidecar.prepare(&sidecar_path(&path))?;
        self.rename(venue, hour, Some(parquet.making), Some(made.making), of_sidecar)?;
        self.relink(lock, venue, hour)?;
        Ok(sidecar)
    }

    /// Gives the files of an hour their names; `None`: the file that is there stays. A sidecar under its name for the
    /// time being states that all is on disk: after a kill in here, recovery ends the work.
    pub(super) fn rename(
        &self,
        venue: &str,
        hour: Hour,
        parquet: Option<Making>,
        index: Option<Making>,
        sidecar: Making,
    ) -> Result<(), Error> {
        if parquet.is_some() {
            // An old sidecar never belongs to another file. It goes when the new one is in the folder.
            files::sync_folder_of(sidecar.path())?;
            files::remove(sidecar.path())?;
        }
        for making in parquet.into_iter().chain(index).chain([sidecar]) {
            making.finish()?;
        }
        self.refresh_hour(venue, hour).map(drop)
    }

    /// The books that the hours before this one ended with.
    pub fn books_before<'a>(&'a self, venue: &'a str, hour: Hour) -> impl Carried + 'a {
        self.carry(venue, hour, None)
    }

    /// The books before an hour of the archive.
    pub(super) fn carry_of<'a>(&'a self, entry: &'a HourEntry) -> StoreCarry<'a> {
        self.carry(&entry.venue, entry.hour, TimeIndex::open(&index_path(&entry.path)).ok())
    }

    fn carry<'a>(&'a self, venue: &'a str, hour: Hour, old: Option<TimeIndex>) -> StoreCarry<'a> {
        let before = hour.0.checked_sub(1).and_then(|hour| self.hour(venue, Hour(hour)));
        let sidecar = before.and_then(|entry| entry.stated().ok());
        let previous = sidecar.and_then(|sidecar| files::unhex(&sidecar.parquet.sha256));
        StoreCarry { store: self, venue, hour, previous, old }
    }

    pub(super) fn previous_digest(&self, venue: &str, hour: Hour) -> Option<String> {
        let before = self.hour(venue, Hour(hour.0.checked_sub(1)?))?;
        before.stated().ok().map(|sidecar| sidecar.digest.clone())
    }

    /// Chains the hours after a changed one to it, and carries its books into them.
    pub(super) fn relink(&self, lock: &Lock, venue: &str, changed: Hour) -> Result<(), Error> {
        let mut hour = changed.next();
        while let Some(entry) = self.hour(venue, hour) {
            let is_near = hour.0 - changed.0 <= CARRY_HOURS_MAX;
            // A damaged hour ends the chain; it is made again.
            if entry.sidecar().is_err() {
                break;
            }
            match self.noting(&entry, self.repair(lock, &entry, is_near)) {
                Ok(is_changed) if is_changed || is_near => {}
                Ok(_) => break,
                Err(_) if entry.sidecar().is_err() => break,
                // Its files are others than those that were listed.
                Err(_) if self.is_replaced(&entry) => continue,
                Err(error) => return Err(error),
            }
            hour = hour.next();
        }
        Ok(())
    }

    /// Makes index and sidecar of an hour agree with its Parquet file and with the hour before. Returns whether anything
    /// changed. `is_deep`: the books at its begin are compared as well.
    ///
    /// # Errors
    /// The Parquet file is damaged; the hour has no good sidecar; the system's.
    pub fn repair(&self, _lock: &Lock, entry: &HourEntry, is_deep: bool) -> Result<bool, Error> {
        let sidecar_path = sidecar_path(&entry.path);
        let mut sidecar = Sidecar::clone(&*entry.stated().of(&sidecar_path)?);
        let index_path = index_path(&entry.path);
        let refusal = || Refusal::new("the digest of the Parquet file is not one");
        let parquet = files::unhex(&sidecar.parquet.sha256).ok_or_else(refusal).of(&sidecar_path)?;
        let carry = self.carry_of(entry);
        let is_good = match &carry.old {
            Some(index) if index.parquet() == parquet && index.hour() == entry.hour.0 => {
                let is_named = || {
                    let (sha256, bytes) = files::digest(&index_path)?;
                    Ok::<_, Error>((crate::hex(&sha256), bytes) == (sidecar.index.sha256.clone(), sidecar.index.bytes))
                };
                !is_deep || (is_named()? && index.previous() == carry.previous() && is_carried(index, &carry)?)
            }
            _ => false,
        };
        let mut making = None;
        if !is_good {
            // The pages of some writers have no checksums.
            if files::digest(&entry.path)?.0 != parquet {
                return Err(Refusal::new("the file has another digest than its sidecar states")).of(&entry.path);
            }
            let file = HourFile::open(&entry.path)?;
            let made = index::prepare(&index_path, entry.hour.0, &file, parquet, &carry, &|| false)?;
            if let Some(Made { built, checks, making: of, .. }) = made {
                of.sync()?;
                sidecar.set_index(&built);
                sidecar.set_checks(&checks);
                // Prices decide only where the source cannot say what it dropped, and the gaps are all known.
                if sidecar.frames.dropped.is_none() && sidecar.gaps.len() < GAPS_MAX {
                    let markets = markets(&sidecar, &TimeIndex::open(of.making())?, checks.prices());
                    sidecar.except(markets);
                }
                making = Some(of);
            }
        }
        // That of an hour that was removed stays.
        if let Some(previous) = self.previous_digest(&entry.venue, entry.hour) {
            sidecar.previous = Some(previous);
        }
        if making.is_none() && sidecar == *entry.stated().of(&sidecar_path)? {
            return Ok(false);
        }
        let new_sidecar = sidecar.prepare(&sidecar_path)?;
        self.rename(&entry.venue, entry.hour, None, making, new_sidecar)?;
        Ok(true)
    }
}

/// Whether the opening anchors of an index are the books that the hours before end with.
fn is_carried(index: &TimeIndex, carry: &StoreCarry<'_>) -> Result<bool, Error> {
    for token in index.tokens() {
        let carried = carry.carried(&token.market, &token.token)?.filter(Folded::is_known);
        if carried != index.opening_state(&token.market, &token.token)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What each market's verdict depends on: its best prices, and the gaps that name its tokens.
fn markets(
    sidecar: &Sidecar,
    index: &TimeIndex,
    prices: impl Iterator<Item = (Condition, u64, u64)>,
) -> Vec<(Condition, MarketFacts)> {
    let mut facts: AHashMap<Condition, MarketFacts> = AHashMap::new();
    for (condition, compared, differs) in prices {
        let of = facts.entry(condition).or_default();
        (of.compared, of.differs) = (compared, differs);
    }
    let named = sidecar.gaps.iter().filter_map(|gap| Some((gap, gap.tokens.as_ref()?)));
    let mut gaps: AHashMap<&str, u64> = AHashMap::new();
    for (gap, tokens) in named {
        let len = gap.to.saturating_sub(gap.from);
        for token in tokens {
            let longest = gaps.entry(token).or_default();
            *longest = len.max(*longest);
        }
    }
    if !gaps.is_empty() {
        for token in index.tokens() {
            if let Some(len) = gaps.get(token.token.as_str()) {
                let of = facts.entry(token.market).or_default();
                of.gap_ms_max = of.gap_ms_max.max(Some(*len));
            }
        }
    }
    facts.into_iter().collect()
}

impl Sidecar {
    /// Sets what depends on the books at the begin of the hour.
    fn set_checks(&mut self, findings: &checks::Findings) {
        self.checks.bbo_compared = findings.bbo_compared;
        self.checks.bbo_differs = findings.bbo_differs;
        self.checks.crossed_ms = findings.crossed_ms;
        self.checks.unanchored_tokens = findings.unanchored_tokens;
    }

    fn set_index(&mut self, built: &Built) {
        self.tokens = built.tokens;
        self.markets = built.markets;
        self.checks.carried_tokens = built.carried_tokens;
        self.index = Piece {
            bytes: built.bytes,
            row_groups: self.parquet.row_groups,
            rows: self.parquet.rows,
            sha256: crate::hex(&built.sha256),
        };
    }
}

impl HourEntry {
    /// The state of its sidecar, for lists: the sidecar, or why the hour is quarantined.
    pub fn state(&self) -> Result<Arc<Sidecar>, String> {
        self.sidecar().map_err(|refusal| refusal.to_string())
    }
}
