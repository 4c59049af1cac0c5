//! Files that are read from the device again before a log is believed, beside the replay that does not need them yet.
//!
//! After a failed sync the kernel may still show pages that never reached the device. Where a sync may have failed, the
//! device is asked: in the last segment that has its name, and in all that have none yet. Segments before were synced
//! without a failure, or the one behind them would not have got its name. These are the files that will be written to.
//!
//! Headers are needed first, and read from the device first. What is dirty in memory is no file's doubt: the sync of every
//! segment that recovery keeps is the one that tells of a failure nobody has seen.

use crate::behind::is_zero_from;
use crate::dir::{Name, parse_name};
use crate::error::Error;
use crate::segment::PAGE_BYTES;
use crate::storage::{Beside, Storage, StoredFile};
use crate::sys;
use std::collections::BTreeSet;

/// Bytes at the front of a file that are forgotten at once, so that its header is the device's: where a page of the system
/// has 4 KiB, it keeps no more in one piece.
const HEAD_BYTES: u64 = 2 << 20;

/// Names of the files that may hold what never reached the device. Their headers may be read from here on.
pub(crate) struct Doubtful {
    /// At most one: the last that has its name.
    segments: Vec<String>,
    spares: Vec<String>,
}

impl Doubtful {
    /// # Errors
    /// [`Error::Io`].
    pub fn find<S: Storage>(storage: &S) -> Result<Doubtful, Error> {
        let listed = storage.list().map_err(Error::io("list", &storage.place()))?;
        let named = |name: &&(String, u64)| matches!(parse_name(&name.0), Name::Segment(_));
        let segments: Vec<_> = listed.iter().filter(named).max().map(|(name, _)| name.clone()).into_iter().collect();
        let spare = |name: &&(String, u64)| matches!(parse_name(&name.0), Name::Spare(_));
        let spares: Vec<_> = listed.iter().filter(spare).map(|(name, _)| name.clone()).collect();
        let head_bytes = if sys::page_bytes() == PAGE_BYTES { HEAD_BYTES } else { u64::MAX };
        for name in segments.iter().chain(&spares) {
            let file = storage.open_to_read(name).map_err(Error::io("open", name))?;
            file.forget(head_bytes);
        }
        Ok(Doubtful { segments, spares })
    }
}

/// Files that are being read again: the segment, and beside it the spares one after the other. Whoever reads one waits for
/// it first.
#[derive(Default)]
pub(crate) struct Reloads {
    under_way: Vec<Reload>,
    zero: BTreeSet<String>,
}

struct Reload {
    names: Vec<String>,
    /// Says which are known to be all zeros.
    of: Beside<Vec<String>>,
}

impl Reloads {
    /// Starts to read them.
    pub fn start<S: Storage>(storage: &S, doubtful: Doubtful) -> Reloads {
        let Doubtful { segments, spares } = doubtful;
        let start = |names: Vec<String>| {
            let (storage_of, of) = (storage.clone(), names.clone());
            let work = move || of.into_iter().filter(|name| reload(&storage_of, name)).collect();
            Reload { names, of: storage.beside(work) }
        };
        let under_way = [segments, spares].into_iter().filter(|names| !names.is_empty()).map(start).collect();
        Reloads { under_way, zero: BTreeSet::new() }
    }

    /// Waits for one file, if it is read again at all.
    pub fn wait_for(&mut self, name: &str) {
        if let Some(at) = self.under_way.iter().position(|reload| reload.names.iter().any(|of| of == name)) {
            self.zero.extend(self.under_way.swap_remove(at).of.wait());
        }
    }

    /// Waits for all of them. Says which are all zeros; of others nothing is known.
    pub fn wait(&mut self) -> &BTreeSet<String> {
        while let Some(reload) = self.under_way.pop() {
            self.zero.extend(reload.of.wait());
        }
        &self.zero
    }
}

impl Drop for Reloads {
    /// Nobody reads on for a log that is given up.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.wait();
        }
    }
}

/// Reads a file from the device and looks whether it is all zeros. What fails here fails for whoever needs the file, too,
/// and is told then.
fn reload<S: Storage>(storage: &S, name: &str) -> bool {
    let Ok(file) = storage.open_to_read(name) else { return false };
    file.reload();
    is_zero_from(storage, name, 0).unwrap_or(false)
}
