//! What a start reads before the first record.

use std::io;

use crate::Lsn;
use crate::contents::{SpareFile, read_contents};
use crate::epoch::{EPOCH_NAME, Identity, read_identity};
use crate::error::{Error, Fault};
use crate::reload::{Reloads, SpareNeeds, forget_heads};
use crate::scan::Scan;
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::snapshot::Snapshot;
use crate::storage::{LOCK_NAME, Storage};
use crate::trailing::is_zero_from;

/// What a start reads before the first record. Changes nothing, so tools use it as well.
pub(crate) struct Beginning<S: Storage> {
    /// `None` if there is no log yet.
    pub scan: Option<Scan<S>>,
    pub making: Vec<String>,
    pub snapshots: Vec<Lsn>,
    /// If there is no log yet: empty files of a first start that was interrupted.
    pub unfinished: Vec<String>,
}

impl<S: Storage> Beginning<S> {
    /// Lists the directory and judges its files. With `wanted` they are read from the device again during the replay;
    /// only a process that is going to write to them needs that.
    pub(crate) fn of(
        storage: &S,
        identity: Option<Identity>,
        snapshot: Option<&Snapshot>,
        wanted: Option<SpareNeeds>,
        accept_loss: bool,
    ) -> Result<Beginning<S>, Error> {
        forget_heads(storage)?;
        let mut contents = read_contents(storage, identity.as_ref().map(|identity| &identity.id))?;
        // Whole, and not to be discarded as a dirty spare: the segment of a newer program or of another directory.
        let is_kept = |spare: &&SpareFile| matches!(spare.fault, Fault::Version { .. } | Fault::Foreign);
        if let Some(SpareFile { name, fault, .. }) = contents.spares.iter().find(is_kept) {
            return Err(Error::format(name, fault.clone()));
        }
        let making = std::mem::take(&mut contents.making);
        let snapshots = contents.snapshots.clone();
        let mut reloads = wanted.map_or_else(Reloads::default, |wanted| Reloads::start(storage, &contents, wanted));
        let after = snapshot.map_or(Lsn::ZERO, |snapshot| snapshot.lsn);
        let after_crc = snapshot.map_or(0, |snapshot| snapshot.record_crc);
        let mut unfinished = Vec::new();
        let scan = match identity {
            Some(identity) => {
                let scan = Scan::over(storage.clone(), identity, contents, after, Some(after_crc), accept_loss)?;
                Some(scan.with_reloads(reloads))
            }
            None => {
                reloads.wait();
                // The first start was interrupted before it could write a record; with anything more, the epoch file
                // was removed.
                let only_first = contents.segments.iter().all(|segment| segment.first_lsn == Lsn(1));
                let missing = || Error::format(EPOCH_NAME, Fault::Missing);
                if !contents.snapshots.is_empty() || !only_first {
                    return Err(missing());
                }
                let spares = contents.spares.iter().map(|spare| &spare.name);
                for name in contents.segments.iter().map(|segment| &segment.name).chain(spares) {
                    if !is_zero_from(storage, name, SEGMENT_HEADER_BYTES as u64)? {
                        return Err(missing());
                    }
                    unfinished.push(name.clone());
                }
                None
            }
        };
        Ok(Beginning { scan, making, snapshots, unfinished })
    }
}

impl<S: Storage> Scan<S> {
    /// Reads what a start after this snapshot reads, with all of its refusals and without changing anything: for tools.
    /// `None` if there is no log yet. The lock file is checked as by a start.
    ///
    /// # Errors
    /// As [`crate::Dir::open`] and [`crate::Dir::recover`], except that another process may own the directory.
    pub fn of_start(storage: &S, snapshot: Option<&Snapshot>) -> Result<Option<Scan<S>>, Error> {
        match storage.open_to_read(LOCK_NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => drop(opened.map_err(Error::io("open", LOCK_NAME))?),
        }
        let identity = read_identity(storage)?;
        Beginning::of(storage, identity, snapshot, None, false).map(|beginning| beginning.scan)
    }
}
