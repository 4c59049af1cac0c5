//! Appending: copies a record into the mapping of the open segment. One thread, no allocation, and no system call
//! except to wake a sleeping sync thread and to check a spare before it is used.
//!
//! ```text
//!   | header | 1 | 2 | 3 | … | 9 | 0 0 |  ──full──►  | header | 10 | 11 | 0 0 0 0 0 0 0 0 0 |      spare, spare
//!                                  a length of 0 ends a segment      ▲ next record
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};

use crate::Marks;
use crate::error::Full;
use crate::files::Files;
use crate::prepare::Spare;
use crate::record::{self, ALIGN_BYTES, HEADER_BYTES, Header, Kind, MAX_RECORD_BYTES};
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::storage::{SegmentMap, Storage, StoredFile};
use crate::sync::Opened;
use crate::{Lsn, Point, Points};

/// How far ahead of the next record the processor prefetches, bytes: a page, so that the address translation
/// of the next page is ready as well. Less gained less; more gained nothing.
const AHEAD_BYTES: usize = 4096;

/// The appending end of a log. Owned by one thread.
pub struct Log<S: Storage = Files> {
    map: S::Map,
    /// Where the next record goes, bytes from the start of the segment.
    at: usize,
    /// Length of the open segment.
    end: usize,
    /// Bytes of all segments before the open one, since this start.
    base: u64,
    last_lsn: Lsn,
    last_crc: u32,
    last_time: u64,
    epoch: u32,
    marks: Marks,
    points: Points,
    /// Header of the open segment.
    header: SegmentHeader,
    segment_bytes: u64,
    spares: Receiver<Spare<S>>,
    opened: SyncSender<Opened<S>>,
    _lock: Arc<S::Lock>,
}

/// The segment that takes the next record, when a log is started.
pub(crate) struct OpenSegment<S: Storage> {
    pub file: S::File,
    pub map: S::Map,
    pub at: usize,
    pub header: SegmentHeader,
}

pub(crate) struct LogStart<S: Storage> {
    pub map: S::Map,
    pub at: usize,
    pub header: SegmentHeader,
    pub last_lsn: Lsn,
    pub last_crc: u32,
    pub last_time: u64,
    pub epoch: u32,
    pub segment_bytes: u64,
    pub marks: Marks,
    pub spares: Receiver<Spare<S>>,
    pub opened: SyncSender<Opened<S>>,
    pub points: Points,
    pub lock: Arc<S::Lock>,
}

impl<S: Storage> Log<S> {
    pub(crate) fn new(start: LogStart<S>) -> Log<S> {
        start.marks.set_end(start.header.bytes);
        Log {
            end: start.header.bytes as usize,
            base: 0,
            map: start.map,
            at: start.at,
            last_lsn: start.last_lsn,
            last_crc: start.last_crc,
            last_time: start.last_time,
            epoch: start.epoch,
            marks: start.marks,
            points: start.points,
            header: start.header,
            segment_bytes: start.segment_bytes,
            spares: start.spares,
            opened: start.opened,
            _lock: start.lock,
        }
    }

    /// Appends one record, counts it as appended and wakes the sync thread if it sleeps.
    ///
    /// `version` is the payload's format and `owner` the entity it belongs to; both opaque. `time` is µs since 1970. A
    /// time before that of the last record is stored as that of the last record: journal time never goes back.
    ///
    /// # Errors
    /// [`Full`] when the record does not fit into the open segment and there is no spare. Nothing was written then, and
    /// the same append may succeed later.
    ///
    /// # Panics
    /// When the payload is longer than [`Log::payload_bytes_max`].
    #[inline]
    pub fn append(&mut self, kind: Kind, version: u16, owner: u64, time: u64, payload: &[u8]) -> Result<Lsn, Full> {
        self.points.pass(Point::BeforeAppend);
        let slot_bytes = record::slot_bytes(payload.len());
        if slot_bytes > self.end - self.at {
            self.roll(payload.len())?;
        }
        let header = Header {
            lsn: self.last_lsn.next(),
            synced: self.marks.synced(),
            time: time.max(self.last_time),
            owner,
            epoch: self.epoch,
            previous_crc: self.last_crc,
            version,
            kind,
        };
        self.last_crc = self.map.write(self.at, slot_bytes, |slot| record::encode(slot, &header, payload));
        self.at += slot_bytes;
        self.map.expect(self.at + AHEAD_BYTES, slot_bytes);
        self.last_lsn = header.lsn;
        self.last_time = header.time;
        self.marks.set_appended(header.lsn, self.base + self.at as u64);
        self.points.pass(Point::AfterAppend);
        Ok(header.lsn)
    }

    /// Appends a record of opaque facts ([`Kind::Mutations`]) whose time may be before that of the last record, and
    /// from which journal time continues: an operator declared that the clock had been wrong. Any other record is
    /// stored with a time not below that of the record before it.
    ///
    /// # Errors
    /// As [`Log::append`]; journal time is then unchanged.
    ///
    /// # Panics
    /// As [`Log::append`].
    pub fn append_set_back(&mut self, version: u16, owner: u64, time: u64, payload: &[u8]) -> Result<Lsn, Full> {
        let before = std::mem::replace(&mut self.last_time, time);
        let appended = self.append(Kind::Mutations, version, owner, time, payload);
        if appended.is_err() {
            self.last_time = before;
        }
        appended
    }

    /// Appends the last record of a clean stop. Sync it with [`crate::Syncer::finish`].
    ///
    /// # Errors
    /// [`Full`]; the stop then has no mark, and recovery treats it as a crash.
    pub fn append_clean_stop(&mut self, time: u64) -> Result<Lsn, Full> {
        self.append(Kind::CleanStop, 0, 0, time, &[])
    }

    /// Bytes that can certainly be appended in records of at most `record_bytes_max` each (header and padding included:
    /// [`record::slot_bytes`]), however they are split: the open segment and the spares, less what each may waste at
    /// its end. 0 when the log is poisoned. A removed spare counts until the [`crate::Preparer`] or the log detects
    /// that.
    ///
    /// Refuse work *before* deciding it when this falls below what it may take plus what is reserved for urgent
    /// records.
    pub fn room(&self, record_bytes_max: usize) -> u64 {
        if self.marks.is_poisoned() {
            return 0;
        }
        let left = (self.end - self.at) as u64;
        let waste = record_bytes_max.next_multiple_of(ALIGN_BYTES) as u64;
        let spare = (self.segment_bytes - SEGMENT_HEADER_BYTES as u64).saturating_sub(waste);
        let with_spares = left.saturating_sub(waste) + u64::from(self.marks.spares_ready()) * spare;
        left.max(with_spares)
    }

    /// Longest payload that fits, in bytes: one record of [`MAX_RECORD_BYTES`], or a whole segment if that is smaller.
    pub fn payload_bytes_max(&self) -> usize {
        let segment = self.segment_bytes as usize - SEGMENT_HEADER_BYTES;
        segment.min(MAX_RECORD_BYTES) - HEADER_BYTES
    }

    /// The last record appended.
    pub fn last_lsn(&self) -> Lsn {
        self.last_lsn
    }

    /// Checksum of the last record appended.
    pub fn last_crc(&self) -> u32 {
        self.last_crc
    }

    /// Time of the last record appended, µs since 1970. No later record is stored below it, except by
    /// [`Log::append_set_back`].
    pub fn last_time(&self) -> u64 {
        self.last_time
    }

    /// The epoch of this start.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The watermarks.
    pub fn marks(&self) -> Marks {
        self.marks.clone()
    }

    #[cold]
    #[inline(never)]
    fn roll(&mut self, payload_bytes: usize) -> Result<(), Full> {
        assert!(
            payload_bytes <= self.payload_bytes_max(),
            "a payload has at most {} bytes, this one {payload_bytes}",
            self.payload_bytes_max()
        );
        let Spare { file, mut map, name, .. } = self.take_spare().ok_or(Full)?;
        self.points.pass(Point::Roll);
        let header = SegmentHeader {
            number: self.header.number + 1,
            first_lsn: self.last_lsn.next(),
            previous_crc: self.last_crc,
            bytes: self.segment_bytes,
            ..self.header
        };
        map.write(0, SEGMENT_HEADER_BYTES, |bytes| bytes.copy_from_slice(&header.encode()));
        let sealed = std::mem::replace(&mut self.map, map);
        self.base += self.end as u64;
        (self.header, self.at, self.end) = (header, SEGMENT_HEADER_BYTES, self.segment_bytes as usize);
        // Before the first record in it counts as appended: the Syncer relies on that. The Preparer keeps spares and
        // queued segments together within the bound of the queue. If the Syncer is gone, no sync follows either.
        let SegmentHeader { first_lsn, bytes, .. } = header;
        self.marks.set_end(self.base + bytes);
        let _ = self.opened.try_send(Opened { file, name, first_lsn, base: self.base, bytes, sealed });
        Ok(())
    }

    /// Takes the next spare and counts it as opened. A spare that was removed is skipped: its records would count as
    /// appended and be lost with the process.
    fn take_spare(&mut self) -> Option<Spare<S>> {
        while self.marks.spares_ready() > 0 {
            let spare = self.spares.try_recv().ok()?;
            if spare.is_taken.swap(true, Ordering::AcqRel) {
                continue;
            }
            if spare.file.has_name().unwrap_or(false) {
                self.marks.spare_opened();
                return Some(spare);
            }
            self.marks.withdraw_spare();
        }
        None
    }
}
