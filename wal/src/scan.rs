//! Reading a log back. `scan/judgement.rs` decides what its end means.
//!
//! Everything is read with plain reads, never through a mapping: a failing device is then an error and not a signal.

use crate::Lsn;
use crate::contents::read_contents;
use crate::contents::{Contents, SegmentFile, SpareFile};
use crate::epoch::read_identity;
use crate::epoch::{EPOCH_NAME, Identity};
use crate::error::{Error, Fault, Loss};
use crate::files::Files;
use crate::names::segment_name;
use crate::planted;
use crate::record::{self, Damage, HEADER_BYTES, Header, Kind};
use crate::reload::{KnownSpares, Reloads};
use crate::snapshot::check_head;
use crate::storage::Storage;

mod block;
mod judgement;
#[cfg(test)]
mod tests;

/// A record and where it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its LSN.
    pub lsn: Lsn,
    /// Highest LSN that was synced when it was appended.
    pub synced: Lsn,
    /// µs since 1970.
    pub time: u64,
    /// The entity it belongs to; opaque.
    pub owner: u64,
    /// The start of the process that wrote it.
    pub epoch: u32,
    /// What it is for.
    pub kind: Kind,
    /// Format of the payload; opaque.
    pub version: u16,
    /// What was appended.
    pub payload: &'a [u8],
    /// Its checksum. A snapshot that covers it repeats it.
    pub crc: u32,
    /// The file that holds it.
    pub file: &'a str,
    /// Its offset in the file, bytes.
    pub offset: u64,
}

/// How the readable part of a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// With zeros, or at the LSN that was requested.
    Clean,
    /// With bytes that are not a record: written, but never promised.
    Torn {
        /// From the first bad byte to the last one that is not zero, later segments included. Spares do not count: no
        /// end of the log is in one.
        bytes: u64,
    },
}

/// Reads the records of a log in order and verifies each. Never writes and needs no lock: for tools, for checkpoints of
/// a running log, and as the reading half of [`crate::Recovery`].
pub struct Scan<S: Storage = Files> {
    storage: S,
    identity: Identity,
    segments: Vec<SegmentFile>,
    /// Records in them may still prove a sync.
    spares: Vec<SpareFile>,
    /// Files that must be read from the device before they are read here.
    reloads: Reloads,
    /// The segment that is being read.
    index: usize,
    file: Option<S::File>,
    file_bytes: u64,
    block: Vec<u8>,
    /// Offset of the block's first byte in the file.
    block_at: u64,
    /// Next record in the block.
    at: usize,
    filled: usize,
    /// The offset whose bytes were read again because nothing verified there.
    looked_again_at: Option<u64>,
    /// Records up to here are verified but not returned.
    after: Lsn,
    after_crc: Option<u32>,
    until: Option<Lsn>,
    last: Last,
    /// Proof from outside the segments that records up to here were synced: floor and snapshots.
    proven: Lsn,
    /// A file with the name of a newer snapshot, and why its header is not one of this log's. It proves nothing, but a
    /// log must not end below it without a refusal.
    doubtful: Option<(Lsn, Fault)>,
    accepts_loss: bool,
    /// Segments before this one are not read and do not fit to it: refused unless the operator accepts a loss.
    first_in_order: usize,
    /// Sealed segments with bytes after their last record, and where those begin: likewise.
    trailing: Vec<(usize, u64)>,
    end: Option<End>,
}

/// The last record that verified.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Last {
    pub lsn: Lsn,
    pub crc: u32,
    pub epoch: u32,
    pub time: u64,
    pub kind: Option<Kind>,
}

/// Where and why reading ended.
#[derive(Debug, Clone)]
pub(crate) struct End {
    /// The segment in which the next record would be, and where.
    pub index: usize,
    pub offset: u64,
    pub tail: Tail,
    pub loss: Option<Loss>,
}

/// What a finished scan passes on to recovery.
pub(crate) struct ScanParts {
    pub segments: Vec<SegmentFile>,
    pub first_in_order: usize,
    pub trailing: Vec<(usize, u64)>,
    pub spares: Vec<SpareFile>,
    pub known_spares: KnownSpares,
    pub last: Last,
    pub end: End,
}

/// A verified record in the block.
struct InBlock {
    header: Header,
    crc: u32,
    /// Start in the block.
    at: usize,
    payload_bytes: usize,
}

impl<S: Storage> Scan<S> {
    /// Reads the records after LSN `after`; [`Lsn::ZERO`] for all that are there. Reading starts with the segment that holds
    /// the first of them.
    ///
    /// # Errors
    /// [`Error::Format`] when the directory has no log, or does not hold all records after `after`.
    pub fn open(storage: &S, after: Lsn) -> Result<Scan<S>, Error> {
        let (identity, contents) = read_log(storage)?;
        Scan::over(storage.clone(), identity, contents, after, None, false)
    }

    /// Reads every record that the directory still has, regardless of snapshots.
    ///
    /// # Errors
    /// [`Error::Format`] when the directory has no log.
    pub fn open_all(storage: &S) -> Result<Scan<S>, Error> {
        let (identity, contents) = read_log(storage)?;
        let first = contents.segments.first().map_or(Lsn::ZERO, |segment| segment.first_lsn.before());
        Scan::over(storage.clone(), identity, contents, first, None, false)
    }

    /// Stops after this LSN without judging what follows; for reading a running log up to its synced mark. Not reaching
    /// it is a loss.
    pub fn until(mut self, lsn: Lsn) -> Scan<S> {
        self.until = Some(lsn);
        self.proven = self.proven.max(lsn);
        self
    }

    /// Requires that the record `after` has this checksum, so that the scan continues the caller's records.
    pub fn after_crc(mut self, crc: u32) -> Scan<S> {
        self.after_crc = Some(crc);
        self
    }

    /// Makes the scan wait for files that are being reloaded before it reads them.
    pub(crate) fn with_reloads(mut self, reloads: Reloads) -> Scan<S> {
        self.reloads = reloads;
        self
    }

    pub(crate) fn over(
        storage: S,
        identity: Identity,
        contents: Contents,
        after: Lsn,
        after_crc: Option<u32>,
        accepts_loss: bool,
    ) -> Result<Scan<S>, Error> {
        let Contents { segments, spares, snapshots, .. } = contents;
        if let (Some((copy, of)), false) = (copied(&segments), accepts_loss) {
            return Err(Error::format(&copy.name, Fault::Copy { of: of.name.clone() }));
        }
        // The last segment that starts at or before the first wanted record.
        let index = segments.partition_point(|segment| segment.first_lsn <= after.next()).saturating_sub(1);
        let (snapshot, doubtful) = newest_head(&storage, &identity, &snapshots)?;
        let first_in_order = first_in_order(&segments, index);
        if let (Some(before), false) = (segments[..first_in_order].last(), accepts_loss) {
            let expected = segments[first_in_order].first_lsn;
            let disorder = Fault::Order { expected, found: before.first_lsn };
            return Err(Error::format(&before.name, before.header.clone().err().unwrap_or(disorder)));
        }
        Ok(Scan {
            storage,
            segments,
            spares,
            reloads: Reloads::default(),
            index,
            file: None,
            file_bytes: 0,
            block: Vec::new(),
            block_at: 0,
            at: 0,
            filled: 0,
            looked_again_at: None,
            after,
            after_crc,
            until: None,
            last: Last::default(),
            proven: identity.floor.max(snapshot).max(after),
            doubtful,
            identity,
            accepts_loss,
            first_in_order,
            trailing: Vec::new(),
            end: None,
        })
    }

    /// The next record, or `None` at the end; then [`Scan::tail`] returns how the log ends.
    ///
    /// # Errors
    /// [`Error::Lost`] when promised records are damaged or missing; [`Error::Format`] when the segments are not one log,
    /// or a newer program wrote them; [`Error::Io`].
    #[allow(clippy::should_implement_trait)] // Each record borrows the buffer, which an Iterator cannot express.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        let Some(found) = self.step()? else {
            return Ok(None);
        };
        let InBlock { header, crc, at, payload_bytes } = found;
        let payload_at = at + HEADER_BYTES;
        Ok(Some(Entry {
            lsn: header.lsn,
            synced: header.synced,
            time: header.time,
            owner: header.owner,
            epoch: header.epoch,
            kind: header.kind,
            version: header.version,
            payload: &self.block[payload_at..payload_at + payload_bytes],
            crc,
            file: &self.segments[self.index].name,
            offset: self.block_at + at as u64,
        }))
    }

    /// LSN of the last record that was read and verified; before the first one, the LSN before it.
    pub fn last_lsn(&self) -> Lsn {
        self.last.lsn
    }

    /// Checksum of the last record.
    pub fn last_crc(&self) -> u32 {
        self.last.crc
    }

    /// Time of the last record, µs since 1970; 0 before the first one, and after a snapshot if no record was read.
    pub fn last_time(&self) -> u64 {
        self.last.time
    }

    /// What recovery continues with after the end.
    pub(crate) fn into_parts(mut self) -> ScanParts {
        // The spares are changed from here on.
        let known_spares = std::mem::take(self.reloads.wait());
        let Scan { segments, spares, last, end, first_in_order, trailing, .. } = self;
        let end = end.expect("the scan has ended");
        ScanParts { segments, first_in_order, trailing, spares, known_spares, last, end }
    }

    /// How the log ends, once [`Scan::next`] has returned `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.end.as_ref().map(|end| end.tail)
    }

    #[inline]
    fn step(&mut self) -> Result<Option<InBlock>, Error> {
        if self.file.is_none() && !self.begin()? {
            return Ok(None);
        }
        loop {
            if self.end.is_some() {
                return Ok(None);
            }
            let damage = match record::decode(&self.block[self.at..self.filled]) {
                Ok(record) => {
                    let header = record.header;
                    let follows = header.lsn == self.last.lsn.next()
                        && ((header.previous_crc == self.last.crc && header.epoch >= self.last.epoch)
                            || planted::skips_chain());
                    if follows && self.until.is_none_or(|until| header.lsn <= until) {
                        if header.epoch > self.identity.epoch {
                            return Err(self.fault(Fault::Epoch { found: header.epoch, offset: self.offset() }));
                        }
                        let found =
                            InBlock { header, crc: record.crc, at: self.at, payload_bytes: record.payload.len() };
                        self.at += record::slot_bytes(found.payload_bytes);
                        self.last = Last {
                            lsn: header.lsn,
                            crc: found.crc,
                            epoch: header.epoch,
                            time: header.time,
                            kind: Some(header.kind),
                        };
                        if header.lsn > self.after {
                            return Ok(Some(found));
                        }
                        if header.lsn == self.after {
                            self.check_after(found.crc)?;
                        }
                        continue;
                    }
                    Damage::Checksum { stored: header.previous_crc, computed: self.last.crc }
                }
                Err(damage) => damage,
            };
            self.pause(damage)?;
        }
    }

    /// No record of this log follows in the block: read on, continue in the next segment, or end.
    #[cold]
    fn pause(&mut self, damage: Damage) -> Result<(), Error> {
        if self.until.is_some_and(|until| self.last.lsn >= until) {
            self.end(Tail::Clean, None);
            return Ok(());
        }
        // The block may end here, or be older than what a running log has appended since: read it again.
        let offset = self.offset();
        if self.looked_again_at != Some(offset) {
            self.looked_again_at = Some(offset);
            return self.refill();
        }
        match damage {
            Damage::Kind(found) => Err(self.fault(Fault::Kind { found, offset })),
            Damage::Reserved(_) => Err(self.fault(Fault::Reserved { offset })),
            _ if self.go_on_in_next_segment()? => Ok(()),
            _ => self.judge(damage),
        }
    }

    /// Opens the segment to start with. Returns `false` if there is none and nothing is missing.
    #[cold]
    fn begin(&mut self) -> Result<bool, Error> {
        if self.end.is_some() {
            return Ok(false);
        }
        let Some(first) = self.segments.get(self.index) else {
            // An epoch file is written only after a segment.
            return if self.accepts_loss {
                self.last.lsn = self.after;
                self.last.crc = self.after_crc.unwrap_or(0);
                let loss =
                    self.loss_at(self.after.next(), segment_name(self.after.next()), 0, Damage::Empty, self.proven);
                self.end(Tail::Clean, Some(loss));
                Ok(false)
            } else {
                Err(Error::format(&segment_name(self.after.next()), Fault::Missing))
            };
        };
        let (expected, found) = (self.after.next(), first.first_lsn);
        if found > expected {
            if !self.accepts_loss {
                return Err(Error::format(&first.name.clone(), Fault::Order { expected, found }));
            }
            self.last.lsn = self.after;
            self.last.crc = self.after_crc.unwrap_or(0);
            let loss = self.loss_at(expected, first.name.clone(), 0, Damage::Empty, self.proven);
            self.end(Tail::Clean, Some(loss));
            return Ok(false);
        }
        self.last.lsn = found.before();
        match first.header.clone() {
            Ok(header) => self.last.crc = header.previous_crc,
            Err(fault) => {
                let name = first.name.clone();
                self.refuse_or_lose(&name, fault)?;
                return Ok(false);
            }
        }
        if self.last.lsn == self.after {
            self.check_after(self.last.crc)?;
        }
        self.open_segment(self.index)?;
        Ok(true)
    }

    /// Checks that the record before the scan is the one that the caller continues from.
    fn check_after(&self, found: u32) -> Result<(), Error> {
        match self.after_crc {
            Some(expected) if expected != found => Err(self.fault(Fault::Chain { expected, found })),
            _ => Ok(()),
        }
    }

    /// Continues in the next segment if that continues exactly here. Returns `true` if it does, or if it cannot belong
    /// to this log and the operator accepts that as the end.
    fn go_on_in_next_segment(&mut self) -> Result<bool, Error> {
        let expected = self.last.lsn.next();
        // A segment that starts later is left to `judge`: records are missing before it.
        let Some(next) = self.segments.get(self.index + 1).filter(|next| next.first_lsn <= expected) else {
            return Ok(false);
        };
        let number = self.segments[self.index].header.as_ref().map_or(0, |header| header.number);
        let fault = match &next.header {
            Err(fault) => Some(fault.clone()),
            Ok(header) if header.first_lsn != expected || header.number != number + 1 => {
                Some(Fault::Order { expected, found: header.first_lsn })
            }
            Ok(header) if header.previous_crc != self.last.crc => {
                Some(Fault::Chain { expected: header.previous_crc, found: self.last.crc })
            }
            Ok(_) => None,
        };
        if let Some(fault) = fault {
            let name = next.name.clone();
            self.refuse_or_lose(&name, fault)?;
            return Ok(true);
        }
        // Nothing is ever stored after the last record of a sealed segment, not even by a crash.
        let trailing = self.read_trailing(self.index, self.offset())?;
        if let Some(offset) = trailing.first_byte {
            if !self.accepts_loss {
                return Err(self.fault(Fault::Trailing { offset }));
            }
            self.trailing.push((self.index, self.offset()));
        }
        self.open_segment(self.index + 1)?;
        Ok(true)
    }

    /// Place of the next record in the file.
    fn offset(&self) -> u64 {
        self.block_at + self.at as u64
    }

    fn fault(&self, fault: Fault) -> Error {
        Error::format(&self.segments[self.index].name, fault)
    }
}

fn read_log<S: Storage>(storage: &S) -> Result<(Identity, Contents), Error> {
    let identity = read_identity(storage)?.ok_or_else(|| Error::format(EPOCH_NAME, Fault::Missing))?;
    let contents = read_contents(storage, Some(&identity.id))?;
    Ok((identity, contents))
}

/// The newest snapshot whose header is one of this log, damaged further on or not; and the newest file with the name of
/// a snapshot, if that is a different one.
fn newest_head<S: Storage>(
    storage: &S,
    identity: &Identity,
    snapshots: &[Lsn],
) -> Result<(Lsn, Option<(Lsn, Fault)>), Error> {
    let mut doubtful = None;
    for lsn in snapshots.iter().rev() {
        match check_head(storage, &identity.id, *lsn) {
            Ok(()) => return Ok((*lsn, doubtful)),
            Err(Error::Format { fault, .. }) => {
                doubtful.get_or_insert((*lsn, fault));
            }
            // The older ones of a running log may be removed in the meantime.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok((Lsn::ZERO, doubtful))
}

/// A segment with a spare's name, and the properly named one that holds the same records. The log makes no second file
/// of a segment, and renames one that it has synced: a person copied it.
fn copied(segments: &[SegmentFile]) -> Option<(&SegmentFile, &SegmentFile)> {
    let original = |copy: &SegmentFile| {
        segments.iter().find(|of| of.is_named && of.header.is_ok() && of.first_lsn == copy.first_lsn)
    };
    segments.iter().filter(|copy| !copy.is_named).find_map(|copy| original(copy).map(|of| (copy, of)))
}

/// Segments that are not read must still exist, each once: numbers are dense and first LSNs rise. Returns the first
/// segment from which on that holds up to `index`.
fn first_in_order(segments: &[SegmentFile], index: usize) -> usize {
    let follows = |before: &SegmentFile, after: &SegmentFile| match (&before.header, &after.header) {
        (Ok(before), Ok(after)) => before.number + 1 == after.number && before.first_lsn < after.first_lsn,
        _ => false,
    };
    let mut first = index.min(segments.len().saturating_sub(1));
    while first > 0 && follows(&segments[first - 1], &segments[first]) {
        first -= 1;
    }
    first
}
