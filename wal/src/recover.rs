//! Makes a directory, as a crash left it, fit for appending: replay, cut, drop, name, sync.
//!
//! [`crate::Scan`] reads and decides where the log ends. Changes start only after that, in an order that may be
//! interrupted anywhere: done again, it has the same result.
//!
//! 1. drop segments after the end 2. sync and name those before it 3. zero the rest of the last one 4. clear the rest

use crate::beginning::Beginning;
use crate::contents::{SegmentFile, SpareFile};
use crate::dir::Dir;
use crate::error::{Error, Loss};
use crate::files::Files;
use crate::log::OpenSegment;
use crate::names::{lost_name, segment_name, snapshot_name};
use crate::planted;
use crate::record::Kind;
use crate::reload::SpareNeeds;
use crate::scan::{End, Entry, Scan, ScanParts, Tail};
use crate::segment::{PAGE_BYTES, SegmentHeader, ZEROS};
use crate::snapshot::Snapshot;
use crate::storage::{SegmentMap, Storage, StoredFile};
use crate::trailing::is_zero;
use crate::{Lsn, Point, Points};

/// Reads a log for replay and then makes it fit for appending. Returned by [`Dir::recover`].
pub struct Recovery<S: Storage = Files> {
    scan: Option<Scan<S>>,
    storage: S,
    contents_making: Vec<String>,
    records: u64,
    points: Points,
    /// The snapshot that the replay started from.
    after: Lsn,
    after_crc: u32,
    snapshots: Vec<Lsn>,
}

/// What recovery found. [`Dir::start`] takes it.
pub struct Recovered<S: Storage = Files> {
    /// The last record of the log, or the snapshot's where nothing follows it.
    pub last_lsn: Lsn,
    /// Its checksum.
    pub last_crc: u32,
    /// Its time, µs since 1970; 0 in a new log.
    pub last_time: u64,
    /// Its epoch; 0 in a new log.
    pub last_epoch: u32,
    /// Records that were returned for replay.
    pub records: u64,
    /// Bytes of a torn tail that were cut off; 0 for a clean end.
    pub bytes_cut: u64,
    /// Spares that were removed because they were not all zeros. They held no promised record; new ones are made.
    pub spares_dirty: u32,
    /// Segments of the log, the open one included.
    pub segments: u32,
    /// Whether the last process stopped cleanly.
    pub clean_stop: bool,
    /// What was given up under the operator's override.
    pub loss: Option<Loss>,
    pub(crate) tail: Option<TailSegment>,
    pub(crate) next_number: u64,
    /// Zeroed spares that may be used again.
    pub(crate) spares: Vec<String>,
    pub(crate) _storage: std::marker::PhantomData<S>,
}

/// The segment that will take the next record.
pub(crate) struct TailSegment {
    name: String,
    at: u64,
    header: SegmentHeader,
}

impl TailSegment {
    pub(crate) fn open<S: Storage>(self, storage: &S) -> Result<OpenSegment<S>, Error> {
        let file = storage.open(&self.name).map_err(Error::io("open", &self.name))?;
        let mut map = storage.map(&file, self.header.bytes).map_err(Error::io("map", &self.name))?;
        map.touch(self.at as usize, self.header.bytes as usize);
        Ok(OpenSegment { file, map, at: self.at as usize, header: self.header })
    }
}

impl<S: Storage> Dir<S> {
    /// Starts to read the log after a snapshot (or from its beginning), for replay. `accept_loss` is the operator's
    /// override to continue although promised records are gone; it is `false` unless a person decided otherwise.
    ///
    /// # Errors
    /// [`Error::Format`] if the files are not one log, [`Error::Place`] if one is not a plain file.
    pub fn recover(&self, snapshot: Option<&Snapshot>, accept_loss: bool) -> Result<Recovery<S>, Error> {
        Recovery::begin(self, snapshot, accept_loss)
    }
}

impl<S: Storage> Recovery<S> {
    pub(crate) fn begin(dir: &Dir<S>, snapshot: Option<&Snapshot>, accept_loss: bool) -> Result<Recovery<S>, Error> {
        let storage = dir.storage.clone();
        let wanted = SpareNeeds { count: dir.options.spares_count as usize, bytes: dir.options.segment_bytes };
        let beginning = Beginning::of(&storage, dir.identity, snapshot, Some(wanted), accept_loss)?;
        let Beginning { scan, making, snapshots, unfinished } = beginning;
        if scan.is_none() {
            for name in unfinished {
                storage.remove(&name).map_err(Error::io("remove", &name))?;
            }
            storage.sync_directory().map_err(Error::io("sync", &storage.place()))?;
        }
        let after = snapshot.map_or(Lsn::ZERO, |snapshot| snapshot.lsn);
        let after_crc = snapshot.map_or(0, |snapshot| snapshot.record_crc);
        let points = dir.options.points.clone();
        Ok(Recovery { scan, storage, contents_making: making, records: 0, points, after, after_crc, snapshots })
    }

    /// The next record to replay, or `None` after the last.
    ///
    /// # Errors
    /// As [`Scan::next`]. The directory is then unchanged.
    #[allow(clippy::should_implement_trait)] // As in Scan.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        let Some(scan) = &mut self.scan else {
            return Ok(None);
        };
        let entry = scan.next()?;
        self.records += u64::from(entry.is_some());
        Ok(entry)
    }

    /// Reads the remaining records, then cuts a torn tail, drops segments after it, names those without a name, and
    /// makes all of it durable. May be interrupted at any point and done again with the same result.
    ///
    /// # Errors
    /// As [`Scan::next`], and [`Error::Io`].
    pub fn finish(mut self) -> Result<Recovered<S>, Error> {
        while self.next()?.is_some() {}
        for name in &self.contents_making {
            self.storage.remove(name).map_err(Error::io("remove", name))?;
        }
        let Some(scan) = self.scan.take() else {
            return Ok(Recovered::new_log());
        };
        self.finish_scan(scan)
    }

    fn finish_scan(&self, scan: Scan<S>) -> Result<Recovered<S>, Error> {
        let ScanParts { segments, first_in_order, trailing, spares, known_spares, last, end } = scan.into_parts();
        let End { index, offset, tail, loss } = end;
        let storage = &self.storage;
        self.points.pass(Point::Recovery);
        let is_past_snapshot = last.lsn >= self.after;
        let hole = segments.get(index).filter(|segment| is_past_snapshot && segment.header.is_ok() && offset > 0);
        // What the log continues with: the segments up to the hole, or none if a snapshot covers more than they hold.
        let kept = if hole.is_some() { first_in_order..index + 1 } else { 0..0 };
        self.drop_files(&segments[kept.end..], loss.is_some())?;
        self.drop_files(&segments[..kept.start], loss.is_some())?;
        let mut names = Vec::new();
        for segment in &segments[kept.clone()] {
            names.push(self.settle(segment)?);
        }
        for (index, offset) in trailing {
            self.zero(&segments[index].name, offset, segments[index].bytes)?;
        }
        let tail_segment = match (hole, names.last()) {
            (Some(segment), Some(name)) => {
                if (matches!(tail, Tail::Torn { .. }) && !planted::skips_zeroing()) || loss.is_some() {
                    self.zero(name, offset, segment.header.as_ref().expect("checked above").bytes)?;
                }
                let header = segment.header.clone().expect("checked above");
                Some(TailSegment { name: name.clone(), at: offset, header })
            }
            _ => None,
        };
        if loss.is_some() {
            self.put_aside_snapshots(last.lsn.max(self.after))?;
        }
        let (mut clean_spares, mut spares_dirty) = (Vec::new(), 0);
        for SpareFile { name, .. } in spares {
            // The directory is locked: a spare that was all zeros when it was read still is.
            if known_spares.zero.contains(&name) {
                clean_spares.push(name);
            } else {
                spares_dirty += u32::from(!known_spares.unread.contains(&name));
                storage.remove(&name).map_err(Error::io("remove", &name))?;
            }
        }
        storage.sync_directory().map_err(Error::io("sync", &storage.place()))?;
        self.points.pass(Point::Recovery);
        let numbers = segments.iter().filter_map(|segment| segment.header.as_ref().ok()).map(|header| header.number);
        let is_covered = !is_past_snapshot || kept.is_empty();
        Ok(Recovered {
            last_lsn: last.lsn.max(self.after),
            last_crc: if is_covered { self.after_crc } else { last.crc },
            last_time: last.time,
            last_epoch: last.epoch,
            records: self.records,
            bytes_cut: if let Tail::Torn { bytes } = tail { bytes } else { 0 },
            spares_dirty,
            segments: kept.len() as u32,
            clean_stop: last.kind == Some(Kind::CleanStop) && tail == Tail::Clean,
            loss,
            tail: tail_segment,
            next_number: numbers.max().unwrap_or(0) + 1,
            spares: clean_spares,
            _storage: std::marker::PhantomData,
        })
    }

    /// Syncs a segment whose records all verified, and names it if it has no name.
    fn settle(&self, segment: &SegmentFile) -> Result<String, Error> {
        let file = self.storage.open(&segment.name).map_err(Error::io("open", &segment.name))?;
        file.sync().map_err(Error::io("sync", &segment.name))?;
        if segment.is_named {
            return Ok(segment.name.clone());
        }
        let name = segment_name(segment.first_lsn);
        self.points.pass(Point::Rename);
        self.storage.rename(&segment.name, &name).map_err(Error::io("rename", &segment.name))?;
        self.storage.sync_directory().map_err(Error::io("sync directory of", &name))?;
        Ok(name)
    }

    /// Removes segments after the hole; at a loss they are set aside instead, for inspection.
    fn drop_files(&self, segments: &[SegmentFile], is_loss: bool) -> Result<(), Error> {
        for segment in segments {
            self.points.pass(Point::Remove);
            let name = &segment.name;
            if is_loss {
                self.storage.rename(name, &lost_name(name)).map_err(Error::io("rename", name))?;
            } else {
                self.storage.remove(name).map_err(Error::io("remove", name))?;
            }
        }
        self.storage.sync_directory().map_err(Error::io("sync", &self.storage.place()))
    }

    /// After an accepted loss, snapshots that claim more than the log now holds would make every later start refuse.
    fn put_aside_snapshots(&self, last_lsn: Lsn) -> Result<(), Error> {
        for lsn in self.snapshots.iter().filter(|lsn| **lsn > last_lsn) {
            let name = snapshot_name(*lsn);
            self.storage.rename(&name, &lost_name(&name)).map_err(Error::io("rename", &name))?;
        }
        Ok(())
    }

    /// Overwrites with zeros from an offset to the end, page by page and only where other bytes are, and syncs.
    fn zero(&self, name: &str, offset: u64, end: u64) -> Result<(), Error> {
        self.points.pass(Point::Recovery);
        let file = self.storage.open(name).map_err(Error::io("open", name))?;
        let mut page = [0; PAGE_BYTES];
        let mut at = offset;
        while at < end {
            let step = (PAGE_BYTES as u64 - at % PAGE_BYTES as u64).min(end - at) as usize;
            let read = file.read_at(&mut page[..step], at).map_err(Error::io("read", name))?;
            if read < step || !is_zero(&page[..step]) {
                file.write_at(&ZEROS[..step], at).map_err(Error::io("zero", name))?;
            }
            at += step as u64;
        }
        file.sync().map_err(Error::io("sync", name))
    }
}

impl<S: Storage> Recovered<S> {
    fn new_log() -> Recovered<S> {
        Recovered {
            last_lsn: Lsn::ZERO,
            last_crc: 0,
            last_time: 0,
            last_epoch: 0,
            records: 0,
            bytes_cut: 0,
            spares_dirty: 0,
            segments: 0,
            clean_stop: false,
            loss: None,
            tail: None,
            next_number: 1,
            spares: Vec::new(),
            _storage: std::marker::PhantomData,
        }
    }
}

#[cfg(test)]
mod tests;
