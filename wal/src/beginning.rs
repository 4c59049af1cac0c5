//! What a start looks at before it reads a record.

use std::io;

use crate::Lsn;
use crate::behind::is_zero_from;
use crate::contents::{SpareFile, read_contents};
use crate::epoch::{EPOCH_NAME, Identity, read_identity};
use crate::error::{Error, Fault};
use crate::reload::{Reloads, Wanted, forget_heads};
use crate::scan::Scan;
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::snapshot::Snapshot;
use crate::storage::{LOCK_NAME, Storage};

/// What a start looks at before it reads a record. Nothing is changed by it, so tools look the same way.
pub(crate) struct Beginning<S: Storage> {
    /// `None` where there is no log yet.
    pub scan: Option<Scan<S>>,
    pub making: Vec<String>,
    pub snapshots: Vec<Lsn>,
    /// Where there is no log yet: files of a first start that was interrupted, with nothing in them.
    pub unfinished: Vec<String>,
}

impl<S: Storage> Beginning<S> {
    /// Lists the directory and judges its files. With `wanted` they are read from the device again beside the replay, as
    /// only a process needs that is going to write to them.
    pub(crate) fn of(
        storage: &S,
        identity: Option<Identity>,
        snapshot: Option<&Snapshot>,
        wanted: Option<Wanted>,
        accept_loss: bool,
    ) -> Result<Beginning<S>, Error> {
        forget_heads(storage)?;
        let mut contents = read_contents(storage, identity.as_ref().map(|identity| &identity.id))?;
        // Whole, and not ours to throw away as a dirty spare: a newer program's segment, or another directory's.
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
                Some(scan.behind_reloads(reloads))
            }
            None => {
                reloads.wait();
                // The first start was interrupted before it could write a record; anything more is a robbed directory.
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
    /// What a start behind this snapshot reads, with all that it refuses and without changing anything: for tools. `None`
    /// where there is no log yet. The lock file, too, is what a start would take.
    ///
    /// # Errors
    /// As [`crate::Dir::open`] and [`crate::Dir::recover`], but that another process may own the directory.
    pub fn of_start(storage: &S, snapshot: Option<&Snapshot>) -> Result<Option<Scan<S>>, Error> {
        match storage.open_to_read(LOCK_NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => drop(opened.map_err(Error::io("open", LOCK_NAME))?),
        }
        let identity = read_identity(storage)?;
        Beginning::of(storage, identity, snapshot, None, false).map(|beginning| beginning.scan)
    }
}
