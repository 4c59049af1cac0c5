//! Files that are read from the device again before a log is believed, beside the replay that does not need them yet.
//!
//! After a failed sync the kernel may still show pages that never reached the device. Where a sync may have failed, the
//! device is asked: in the last segment that has its name, and in all that have none yet. Segments before were synced
//! without a failure, or the one behind them would not have got its name. These are the files that will be written to.

use crate::behind::is_zero_from;
use crate::dir::{Name, parse_name};
use crate::error::Error;
use crate::storage::{Beside, Storage, StoredFile};
use std::collections::BTreeSet;

/// Bytes at the front of a file that are forgotten at once, so that its header is the device's: what the kernel keeps in
/// one piece is not larger.
const HEAD_BYTES: u64 = 2 << 20;

/// Files that are being read again; whoever reads one waits for it first.
pub(crate) struct Reloads {
    /// Each says in the end whether all of it is known to be zeros.
    under_way: Vec<(String, Beside<bool>)>,
    zero: BTreeSet<String>,
}

impl Reloads {
    /// Nothing.
    pub fn none() -> Reloads {
        Reloads { under_way: Vec::new(), zero: BTreeSet::new() }
    }

    /// Names of the files that may hold what never reached the device, the segment first. Their headers may be read from
    /// here on.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of<S: Storage>(storage: &S) -> Result<Vec<String>, Error> {
        let listed = storage.list().map_err(Error::io("list", &storage.place()))?;
        let last = listed.iter().filter(|(name, _)| matches!(parse_name(name), Name::Segment(_))).max();
        let spares = listed.iter().filter(|(name, _)| matches!(parse_name(name), Name::Spare(_)));
        let names: Vec<String> = last.into_iter().chain(spares).map(|(name, _)| name.clone()).collect();
        for name in &names {
            let file = storage.open_to_read(name).map_err(Error::io("open", name))?;
            file.forget(HEAD_BYTES);
        }
        Ok(names)
    }

    /// Starts to read them.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn start<S: Storage>(storage: &S, names: Vec<String>) -> Result<Reloads, Error> {
        let mut reloads = Reloads::none();
        for name in names {
            let (storage_of, of) = (storage.clone(), name.clone());
            let reload = storage.beside(move || reload(&storage_of, &of)).map_err(Error::io("start to read", &name))?;
            reloads.under_way.push((name, reload));
        }
        Ok(reloads)
    }

    /// Waits for one file, if it is read again at all.
    pub fn wait_for(&mut self, name: &str) {
        if let Some(at) = self.under_way.iter().position(|(of, _)| of == name) {
            let (name, reload) = self.under_way.swap_remove(at);
            if reload.wait() {
                self.zero.insert(name);
            }
        }
    }

    /// Waits for all of them. Says which are all zeros; of others nothing is known.
    pub fn wait(&mut self) -> &BTreeSet<String> {
        while let Some((name, _)) = self.under_way.last() {
            self.wait_for(&name.clone());
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
