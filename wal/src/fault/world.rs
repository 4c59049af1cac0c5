//! The state of [`super::Faults`]: what is in memory, what is on the disk, and what a crash leaves of the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::{Call, Rng};
use crate::error::PlaceFault;
use crate::segment::PAGE_BYTES;
use crate::storage::refused;

const SECTOR_BYTES: usize = 512;

#[derive(Debug)]
pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) inodes: Vec<Inode>,
    /// Names as a running process sees them.
    pub(super) names: BTreeMap<String, usize>,
    /// Names on the disk.
    pub(super) names_on_disk: BTreeMap<String, usize>,
    pub(super) unsynced_names: Vec<NameChange>,
    pub(super) is_locked: bool,
    /// Raised by crash and kill: what was opened before is dead.
    pub(super) life: u64,
    pub(super) capacity_bytes: Option<u64>,
    pub(super) failures: Vec<Failure>,
    pub(super) calls: BTreeMap<Call, u64>,
    pub(super) drops_syncs: bool,
    pub(super) writeback_parts: u64,
    /// The directory was removed.
    pub(super) is_removed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Inode {
    pub(super) cache: Vec<u8>,
    pub(super) disk: Vec<u8>,
    pub(super) dirty: BTreeSet<usize>,
    /// A directory: it cannot be opened or removed as a file.
    pub(super) is_directory: bool,
}

#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Create(String, usize),
    Rename(String, String, usize),
    Remove(String),
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) call: Call,
    /// Counts down; fails at 0.
    pub(super) after: u64,
    pub(super) errno: i32,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        World {
            rng: Rng::new(seed),
            inodes: Vec::new(),
            names: BTreeMap::new(),
            names_on_disk: BTreeMap::new(),
            unsynced_names: Vec::new(),
            is_locked: false,
            life: 0,
            capacity_bytes: None,
            failures: Vec::new(),
            calls: BTreeMap::new(),
            drops_syncs: false,
            writeback_parts: 0,
            is_removed: false,
        }
    }

    /// Counts a call, and fails it if a failure was requested.
    pub(super) fn call(&mut self, call: Call) -> io::Result<()> {
        *self.calls.entry(call).or_default() += 1;
        let mut failed = None;
        for (index, failure) in self.failures.iter_mut().enumerate() {
            if failure.call == call {
                if failure.after == 0 {
                    failed.get_or_insert(index);
                } else {
                    failure.after -= 1;
                }
            }
        }
        let is_of_names =
            matches!(call, Call::Open | Call::Create | Call::SyncDirectory | Call::Rename | Call::Remove | Call::List);
        match failed {
            None if self.is_removed && is_of_names => Err(refused(PlaceFault::DirectoryRemoved)),
            Some(index) => Err(io::Error::from_raw_os_error(self.failures.remove(index).errno)),
            None => Ok(()),
        }
    }

    pub(super) fn inode(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The inode with this name, if it is a file.
    pub(super) fn plain(&self, name: &str) -> io::Result<usize> {
        let inode = self.inode(name)?;
        if self.inodes[inode].is_directory { Err(refused(PlaceFault::NotPlain)) } else { Ok(inode) }
    }

    pub(super) fn check_life(&self, life: u64) {
        assert!(life == self.life, "a file that was opened before the last crash must not be used");
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.names.values().map(|inode| self.inodes[*inode].cache.len() as u64).sum()
    }

    pub(super) fn grow(&mut self, inode: usize, bytes: usize) -> io::Result<()> {
        let more = bytes.saturating_sub(self.inodes[inode].cache.len());
        if more == 0 {
            return Ok(());
        }
        if self.capacity_bytes.is_some_and(|capacity| self.used_bytes() + more as u64 > capacity) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.inodes[inode].cache.resize(bytes, 0);
        Ok(())
    }

    pub(super) fn mark_dirty(&mut self, inode: usize, at: usize, bytes: usize) {
        if bytes > 0 {
            self.inodes[inode].dirty.extend(at / PAGE_BYTES..=(at + bytes - 1) / PAGE_BYTES);
        }
        if self.writeback_parts > 0 && self.rng.happens(self.writeback_parts) {
            let count = self.inodes.len() as u64;
            let inode = self.rng.below(count) as usize;
            let pages = self.inodes[inode].dirty.len() as u64;
            let nth = self.rng.below(pages) as usize;
            if let Some(page) = self.inodes[inode].dirty.iter().nth(nth).copied() {
                self.inodes[inode].dirty.remove(&page);
                self.inodes[inode].write_back(page, u8::MAX);
            }
        }
    }

    pub(super) fn lose_names(&mut self) {
        // All, none, a prefix, or any part of the unsynced changes.
        let style = self.rng.below(4);
        let first = self.rng.below(self.unsynced_names.len() as u64 + 1) as usize;
        for (index, change) in std::mem::take(&mut self.unsynced_names).into_iter().enumerate() {
            let happened = match style {
                0 => true,
                1 => false,
                2 => index < first,
                _ => self.rng.below(2) == 0,
            };
            if happened {
                apply(&mut self.names_on_disk, change);
            }
        }
        self.names = self.names_on_disk.clone();
    }

    pub(super) fn die(&mut self) {
        self.life += 1;
        self.is_locked = false;
    }
}

pub(super) fn apply(names: &mut BTreeMap<String, usize>, change: NameChange) {
    match change {
        NameChange::Create(name, inode) => {
            names.insert(name, inode);
        }
        NameChange::Rename(from, to, inode) => {
            // One of the two names always leads to the file; the old one may be gone.
            if names.get(&from) == Some(&inode) {
                names.remove(&from);
            }
            names.insert(to, inode);
        }
        NameChange::Remove(name) => {
            names.remove(&name);
        }
    }
}

impl Inode {
    /// Copies some sectors of a page to the disk; one bit each.
    pub(super) fn write_back(&mut self, page: usize, sectors: u8) {
        let at = page * PAGE_BYTES;
        let end = (at + PAGE_BYTES).min(self.cache.len());
        if end > self.disk.len() {
            self.disk.resize(end, 0);
        }
        for (bit, start) in (at..end).step_by(SECTOR_BYTES).enumerate() {
            if sectors & (1 << bit) != 0 {
                let stop = (start + SECTOR_BYTES).min(end);
                self.disk[start..stop].copy_from_slice(&self.cache[start..stop]);
            }
        }
    }

    pub(super) fn lose_pages(&mut self, rng: &mut Rng) {
        let style = rng.below(4);
        for page in std::mem::take(&mut self.dirty) {
            let sectors = match style {
                0 => 0,
                1 => u8::MAX,
                2 => [0, u8::MAX][rng.below(2) as usize],
                _ => rng.next() as u8,
            };
            if sectors != 0 {
                self.write_back(page, sectors);
            }
        }
        self.cache = self.disk.clone();
    }
}
