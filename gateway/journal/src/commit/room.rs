//! The room of a log: how much of it is prepared, and what may still be written into it.

use engine::shard::Room;
use wal::segment::SEGMENT_HEADER_BYTES;

/// Longest record that one command makes, header and padding included: a walk over every level of both books, which the
/// finest grid keeps near 200 KB. In small segments it is a quarter of one; the smallest that can be set still holds that
/// walk, those of tests hold small books.
const RECORD_BYTES_MAX: usize = 512 << 10;
/// Prepared log reserved for cancels and revocations on a full disk (gateway/docs/operations.md §4): this much, or a
/// quarter of a segment if that is less. Below it placements are refused; below one record per writer all writes are.
const RESERVE_BYTES: u64 = 8 << 20;

/// The sizes that the room of a log depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSize {
    pub segment_bytes: u64,
    pub spares_count: u32,
    /// Number of writers that check for room and then write: every shard, and the feed. Between the check and the
    /// record of one, all others may write one, too.
    pub writers_count: u32,
}

impl LogSize {
    /// A log to which `shards_count` shards and the feed write.
    pub fn of(segment_bytes: u64, spares_count: u32, shards_count: usize) -> LogSize {
        LogSize { segment_bytes, spares_count, writers_count: shards_count as u32 + 1 }
    }

    /// Prepared log in bytes, headers and unusable ends of segments included, below which the next spare is urgent: what
    /// placements need, and a quarter of a segment.
    pub fn urgent_bytes(self) -> u64 {
        let marks = RoomMarks::of(self);
        let ends = u64::from(self.spares_count + 1) * (marks.record_bytes_max + SEGMENT_HEADER_BYTES) as u64;
        marks.low_bytes + ends
    }

    /// Whether all spares together hold the longest record of every writer, and a reserve.
    pub fn is_enough(self) -> bool {
        let marks = RoomMarks::of(self);
        marks.ample_bytes > marks.none_bytes
    }
}

/// Bounds of prepared log, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoomMarks {
    /// Longest record of one command.
    pub(super) record_bytes_max: usize,
    /// Below it nothing is written: one record per writer.
    pub(super) none_bytes: u64,
    /// What all wanted spares certainly hold, however full the open segment is. Below it spares are missing.
    pub(super) full_bytes: u64,
    /// Below it placements are refused. Never above `full_bytes`: with all spares ready there is always enough.
    pub(super) ample_bytes: u64,
    /// Below it placements are soon refused: the next spare is urgent. Never above `full_bytes`.
    pub(super) low_bytes: u64,
}

impl RoomMarks {
    pub(super) fn of(size: LogSize) -> RoomMarks {
        let LogSize { segment_bytes, spares_count, writers_count } = size;
        let record_bytes_max = RECORD_BYTES_MAX.min(segment_bytes as usize / 4);
        let record = record_bytes_max as u64;
        let none_bytes = u64::from(writers_count) * record;
        let spare = segment_bytes.saturating_sub(SEGMENT_HEADER_BYTES as u64 + record);
        let full_bytes = u64::from(spares_count) * spare;
        let ample_bytes = full_bytes.min(none_bytes + RESERVE_BYTES.min(segment_bytes / 4));
        let low_bytes = full_bytes.min(ample_bytes + segment_bytes / 4);
        RoomMarks { record_bytes_max, none_bytes, full_bytes, ample_bytes, low_bytes }
    }

    /// The bounds of a log in use.
    pub(super) fn checked(size: LogSize) -> RoomMarks {
        assert!(size.is_enough(), "no room for the longest record of every writer and a reserve: {size:?}");
        RoomMarks::of(size)
    }

    pub(super) fn room(&self, bytes: u64) -> Room {
        match bytes {
            bytes if bytes < self.none_bytes => Room::None,
            bytes if bytes < self.ample_bytes => Room::ReserveOnly,
            _ => Room::Ample,
        }
    }
}
