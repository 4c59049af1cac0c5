//! Whether the ended rows of a history store are those of the log beside it.

use engine::user::Users;
use history::{CrcOf, EndedStore, StoreError};
use journal::recover;
use std::path::Path;
use wal::{Files, Lsn};

/// Memory for what is read of the store.
const CACHE_BYTES: u64 = 8 << 20;

/// The checksums of the records that the log in this directory has, up to LSN `end`. A record that cannot be read counts as
/// released.
pub fn checksums(storage: Files, end: u64) -> CrcOf {
    Box::new(move |lsn| {
        let found = if lsn <= end { wal::record_crc(&storage, Lsn(lsn)) } else { Ok(None) };
        found.unwrap_or_else(|error| {
            tracing::warn!(%error, lsn, "a record of the log cannot be compared with the history store");
            None
        })
    })
}

/// The result of a comparison of a store with the log of its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The log has the record up to which rows moved; or no row has moved yet.
    Same,
    /// The log has released that record: only LSNs were compared.
    Released,
    /// The rows are not those of this log, or not all that left its state.
    Unfit(String),
    /// The log, or the store, cannot be read.
    Unread(String),
}

/// Compares the history store of a directory with its log and its state. The directory must be stopped and locked by the
/// caller.
pub fn compare(directory: &Path) -> Fit {
    let unread = |error: &dyn std::fmt::Display| Fit::Unread(error.to_string());
    let storage = match Files::open_existing(directory) {
        Ok(storage) => storage,
        Err(error) => return unread(&error),
    };
    let log = match wal::origin(&storage) {
        Ok(Some(origin)) => u128::from_be_bytes(origin.directory),
        Ok(None) => return Fit::Unread("there is no log".to_owned()),
        Err(error) => return unread(&error),
    };
    let (state, report) = match recover::look(directory, false) {
        Ok(looked) => looked,
        Err(error) => return unread(&error),
    };
    let needed = state.users.iter().map(Users::departed_upto).max().unwrap_or(0);
    let end = report.lsn.0;
    drop(state);
    let opened = EndedStore::open(&directory.join("history"), CACHE_BYTES);
    let upto = opened.as_ref().map_or(0, |ended| ended.upto().unwrap_or(0));
    let compared = opened.and_then(|ended| {
        ended.fits(log, needed, end)?;
        ended.continues(checksums(storage, end))
    });
    match compared {
        Ok(is_compared) if is_compared || upto == 0 => Fit::Same,
        Ok(_) => Fit::Released,
        Err(
            error @ (StoreError::Missing | StoreError::Foreign | StoreError::Behind { .. } | StoreError::Ahead { .. }),
        ) => Fit::Unfit(error.to_string()),
        Err(error) => unread(&error),
    }
}
