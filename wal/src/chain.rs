//! The checksum of one record. It covers the checksum of the record before it, so two logs with the same beginning have
//! different ones from where they part.

use crate::Lsn;
use crate::contents::segments;
use crate::error::Error;
use crate::scan::Scan;
use crate::snapshot::Snapshots;
use crate::storage::Storage;

/// The checksum of the record `lsn`: from a snapshot of that LSN, from the segment that begins after it, or else from the
/// record. `None` if the directory does not have the record any more, or not yet.
///
/// Reads one segment at most, up to that record, and needs no lock: the log may be running.
///
/// # Errors
/// [`Error::Format`] when the directory has no log; as [`Scan::next`] if records before it in its segment are damaged.
pub fn record_crc<S: Storage>(storage: &S, lsn: Lsn) -> Result<Option<u32>, Error> {
    let snapshots = Snapshots::of(storage)?;
    // One with a damaged header does not say it; the log may.
    if snapshots.list()?.contains(&lsn)
        && let Ok(snapshot) = snapshots.open(lsn)
    {
        return Ok(Some(snapshot.record_crc()));
    }
    let segments = segments(storage)?;
    let next = segments.iter().find(|segment| segment.first_lsn == lsn.next());
    if let Some(header) = next.and_then(|segment| segment.header.as_ref().ok()) {
        // Before the first record of a log there is none.
        return Ok((lsn != Lsn::ZERO).then_some(header.previous_crc));
    }
    let Some(segment) = segments.iter().rev().find(|segment| segment.first_lsn <= lsn) else { return Ok(None) };
    // From the start of its segment: the log may end before the record.
    let mut scan = Scan::open(storage, segment.first_lsn.before())?;
    while let Some(entry) = scan.next()? {
        if entry.lsn >= lsn {
            return Ok((entry.lsn == lsn).then_some(entry.crc));
        }
    }
    Ok(None)
}
