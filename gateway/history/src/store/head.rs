//! The front of the values of ended rows. Merges read it, too: the day says whether a row is kept.

use super::StoreError;
use crate::row::{read_leb, write_leb};
use engine::time::UtcDay;

/// Version of every row.
const VERSION: u8 = 1;
/// Index of the lineage to which all rows belong today.
const LINEAGE: u64 = 0;

/// The front of every value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// LSN of the move that stored the row.
    pub lsn: u64,
    /// When the order or position of the row ended, UTC.
    pub day: UtcDay,
}

/// Appends a head.
pub fn put_head(head: Head, out: &mut Vec<u8>) {
    out.push(VERSION);
    write_leb(LINEAGE, out);
    write_leb(head.lsn, out);
    write_leb(head.day.0.into(), out);
}

/// The day of a row; `None` for bytes without a head that this build knows.
pub fn day_of(value: &[u8]) -> Option<UtcDay> {
    let (&version, mut rest) = value.split_first()?;
    let lineage = read_leb(&mut rest)?;
    read_leb(&mut rest)?;
    let day = u32::try_from(read_leb(&mut rest)?).ok()?;
    (version == VERSION && lineage == LINEAGE).then_some(UtcDay(day))
}

/// Takes a head from the front.
///
/// # Errors
/// [`StoreError::Later`] for a later version or another lineage, [`StoreError::Damaged`] for bytes that are no head.
pub fn take_head(value: &mut &[u8]) -> Result<Head, StoreError> {
    let bytes = *value;
    let damaged = || StoreError::Damaged("a row without a head".to_owned());
    let (&version, mut rest) = bytes.split_first().ok_or_else(damaged)?;
    if version > VERSION {
        return Err(StoreError::Later(format!("version {version} of a row")));
    }
    let lineage = take_shortest(&mut rest).filter(|_| version == VERSION).ok_or_else(damaged)?;
    if lineage != LINEAGE {
        return Err(StoreError::Later("a row of another lineage".to_owned()));
    }
    let lsn = take_shortest(&mut rest).ok_or_else(damaged)?;
    let day = take_shortest(&mut rest).and_then(|day| u32::try_from(day).ok()).ok_or_else(damaged)?;
    let head = Head { lsn, day: UtcDay(day) };
    *value = rest;
    Ok(head)
}

/// Reads a number in LEB128. `None` also for one in more bytes than it needs: a row has one encoding.
pub fn take_shortest(bytes: &mut &[u8]) -> Option<u64> {
    let before = *bytes;
    let number = read_leb(bytes)?;
    let taken = &before[..before.len() - bytes.len()];
    (taken.len() == 1 || taken.last() != Some(&0)).then_some(number)
}
