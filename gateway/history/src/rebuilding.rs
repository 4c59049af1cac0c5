//! A new history in place of a damaged one: rows that have left memory from what is still there, and the prices if the old
//! store can be opened.

use crate::ended::{Rebuilt, Sources, Upto, rebuild as rebuild_ended};
use crate::row::BATCH_ROWS;
use crate::store::{Batch, Store, StoreError, Table};
use engine::time::UtcDay;
use engine::user::Users;
use std::path::Path;

/// Memory for what is read meanwhile.
const CACHE_BYTES: u64 = 8 << 20;

/// Makes a store in `folder`, the new folder of a history, with the rows that have left the memory of `state`, all users,
/// up to the record `upto` of this log, without those that ended before the day `kept_from`. The directory must be stopped and locked by the caller.
///
/// # Errors
/// [`StoreError`] if the new store cannot be written.
pub fn rebuild(
    folder: &Path,
    log: u128,
    upto: impl Into<Upto>,
    kept_from: UtcDay,
    state: &Users,
    sources: &Sources<'_>,
) -> Result<Rebuilt, StoreError> {
    let store = Store::open(folder, CACHE_BYTES)?;
    rebuild_ended(&store.spaces()?, (log, upto.into(), kept_from), state, sources)
}

/// Copies the prices of the store in the folder of the old history into that of the new one. Returns how many rows.
///
/// # Errors
/// [`StoreError`] if either cannot be opened, or a row cannot be read: what was copied before it stays, and prices begin
/// again.
pub fn copy_prices(from: &Path, to: &Path) -> Result<u64, StoreError> {
    let old = Store::open_existing(from, CACHE_BYTES)?;
    let mut store = Store::open(to, CACHE_BYTES)?;
    let (mut batch, mut rows) = (Batch::default(), 0);
    for table in Table::PRICES {
        for row in old.scan(table, [0; 8]..=[0xff; 8]) {
            let (market, time, value) = row?;
            batch.put(table, crate::row::key(market, time), value.to_vec());
            rows += 1;
            if batch.len() >= BATCH_ROWS {
                store.wait()?;
                store.write(std::mem::take(&mut batch), old.known.clone())?;
            }
        }
    }
    store.wait()?;
    store.write(batch, old.known.clone())?;
    store.sync()?;
    Ok(rows)
}
