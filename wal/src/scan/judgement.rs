//! What the end of a log means: nothing more was written, an unpromised tail was torn, or promised records are gone.
//!
//! ```text
//!   … 41 42 43 │ L: does not verify │ ??? good ??? good ??? │ zeros
//!              │                    └ anything here that says `synced ≥ L`, or a snapshot or the floor at or above L,
//!              │                      or a later segment that has its name:   promised records are gone → refuse
//!              └ else: a torn tail. Zero from here to the end, drop later segments, sync, go on with L.
//! ```
//!
//! A file that has the name of a snapshot at or above L, but not the header of one, proves nothing: its origin is
//! unknown. Nothing before it is cut either. The start refuses with the name of the file, which must be moved away or
//! repaired.
//!
//! Bytes in spares are also searched for proof. They are not a tail of the log and do not count as cut bytes.
//!
//! Pages of an unsynced range reach the device in any order, so good records after a bad one are normal in the last
//! unsynced window and damage anywhere before it. Zeroing matters: a stale record after the new end must never look
//! valid.

use std::collections::BTreeSet;

use super::{End, Scan, Tail};
use crate::Lsn;
use crate::contents::SegmentFile;
use crate::error::{Error, Fault, Loss};
use crate::names::snapshot_name;
use crate::record::{self, Damage};
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::storage::Storage;
use crate::trailing::{Trailing, read_trailing};

impl<S: Storage> Scan<S> {
    /// Nothing verifies at the next LSN and no segment continues there. Decides between a torn tail and a loss.
    pub(super) fn judge(&mut self, damage: Damage) -> Result<(), Error> {
        let known = self.reloads.wait().clone();
        let lost = self.last.lsn.next();
        let offset = self.offset();
        let mut proven = self.proven;
        let mut written = 0;
        let here = self.read_trailing(self.index, offset)?;
        proven = proven.max(here.synced);
        written += here.last_byte.map_or(0, |last| last + 1 - offset);
        for index in self.index + 1..self.segments.len() {
            let later = self.read_trailing(index, SEGMENT_HEADER_BYTES as u64)?;
            proven = proven.max(later.synced);
            written += later.last_byte.map_or(0, |last| last + 1);
            match &self.segments[index] {
                // Its name was given after a sync of everything before it.
                segment if segment.is_named && segment.header.is_ok() => {
                    proven = proven.max(segment.first_lsn.before());
                }
                SegmentFile { name, header: Err(fault), .. } => {
                    let (name, fault) = (name.clone(), fault.clone());
                    return self.refuse_or_lose(&name, fault);
                }
                _ => {}
            }
        }
        let mut is_torn = written > 0 || proven >= lost;
        let names = || self.spares.iter().map(|spare| &spare.name);
        for name in names().filter(|name| !known.zero.contains(*name) && !known.unread.contains(*name)) {
            let spare = read_trailing(&self.storage, name, 0, lost)?;
            proven = proven.max(spare.synced);
            is_torn |= spare.first_byte.is_some();
        }
        // See `reload`: if nothing is torn, these spares prove nothing.
        let unread = if is_torn { known.unread } else { BTreeSet::new() };
        for name in &unread {
            let spare = read_trailing(&self.storage, name, 0, lost)?;
            proven = proven.max(spare.synced);
            if spare.first_byte.is_some() {
                self.reloads.wait().unread.remove(name);
            }
        }
        let loss = (proven >= lost)
            .then(|| self.loss_at(lost, self.segments[self.index].name.clone(), offset, damage, proven));
        if let Some(loss) = &loss {
            // In a running log the record may have been appended, and a later one synced, in the meantime.
            self.refill()?;
            if let Ok(record) = record::decode(&self.block[..self.filled])
                && record.header.lsn == lost
                && record.header.previous_crc == self.last.crc
            {
                return Ok(());
            }
            if !self.accepts_loss {
                return Err(Error::Lost(loss.clone()));
            }
        }
        if let (None, Some((lsn, fault))) = (&loss, self.doubtful.clone().filter(|(lsn, _)| *lsn >= lost)) {
            return self.refuse_or_lose(&snapshot_name(lsn), fault);
        }
        self.end(if written == 0 { Tail::Clean } else { Tail::Torn { bytes: written } }, loss);
        Ok(())
    }

    pub(super) fn loss_at(&self, lsn: Lsn, file: String, offset: u64, damage: Damage, synced: Lsn) -> Loss {
        let (expected_crc, found_crc) = match damage {
            Damage::Checksum { stored, computed } => (stored, computed),
            _ => (0, 0),
        };
        Loss { lsn, file, offset, expected_crc, found_crc, synced }
    }

    /// A file that cannot be part of this log ends the scan: with an error, or as a loss if the operator accepts one.
    pub(super) fn refuse_or_lose(&mut self, name: &str, fault: Fault) -> Result<(), Error> {
        // A newer format is not damage: nothing may be discarded for it.
        if !self.accepts_loss || matches!(fault, Fault::Version { .. }) {
            return Err(Error::format(name, fault));
        }
        let loss = self.loss_at(self.last.lsn.next(), name.to_owned(), 0, Damage::Empty, self.proven);
        self.end(Tail::Clean, Some(loss));
        Ok(())
    }

    pub(super) fn end(&mut self, tail: Tail, loss: Option<Loss>) {
        // What was skipped on the way here under the operator's override is a loss too, if only of certainty.
        let loss_in = |index: usize, offset| {
            let segment: &SegmentFile = &self.segments[index];
            self.loss_at(segment.first_lsn, segment.name.clone(), offset, Damage::Empty, self.proven)
        };
        let disordered = self.first_in_order.checked_sub(1).map(|index| loss_in(index, 0));
        let trailing = self.trailing.first().map(|(index, offset)| loss_in(*index, *offset));
        let loss = loss.or(disordered).or(trailing);
        self.end = Some(End { index: self.index, offset: self.offset(), tail, loss });
    }

    pub(super) fn read_trailing(&self, index: usize, offset: u64) -> Result<Trailing, Error> {
        read_trailing(&self.storage, &self.segments[index].name, offset, self.last.lsn.next())
    }
}
