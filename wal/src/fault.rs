//! A directory in memory that crashes and fails, for tests of this crate and of everything built on it.
//!
//! ```text
//!   store, write ──► cache ──(sync, or write-back at any moment, page by page, in any order)──► disk
//!                      │                                                                          │
//!                 kill() keeps it                                       crash() keeps this, and of every unsynced page
//!                                                                       nothing, all, or some of its 512-byte sectors
//! ```
//!
//! - Names have their own cache: after [`Faults::crash`] any subset of the unsynced creations, renames and removals has
//!   happened.
//! - After a failed sync its pages count as clean, as on Linux: a second sync succeeds although the disk still lacks them.
//! - Everything is drawn from one seed, and nothing here waits or starts a thread: the same calls give the same result.
//!
//! Not modelled: latency, and several processes (a second lock is only refused).

mod world;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::Error;
use crate::segment::PAGE_BYTES;
use crate::storage::{Background, DirectoryLock, SegmentMap, Storage, StoredFile};
use world::{Failure, Inode, NameChange, World, apply};

/// Seeded random numbers (SplitMix64): the same seed gives the same numbers on every machine and in every version.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Starts from a seed, which the test prints.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)] // Never ends; an Option would be pointless.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// True `parts` times in 1 024.
    pub fn happens(&mut self, parts: u64) -> bool {
        self.below(1024) < parts
    }
}

/// A kind of call that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Open an existing file.
    Open,
    /// Make a file.
    Create,
    /// Read from a file.
    Read,
    /// Write to a file.
    Write,
    /// Reserve room for a file.
    Reserve,
    /// Sync a file.
    Sync,
    /// Sync names.
    SyncDirectory,
    /// Rename a file.
    Rename,
    /// Remove a file.
    Remove,
    /// Map a file.
    Map,
    /// List the directory.
    List,
}

/// The directory. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Faults(Arc<Mutex<World>>);

impl Faults {
    /// An empty directory whose failures are drawn from `seed`.
    pub fn new(seed: u64) -> Faults {
        Faults(Arc::new(Mutex::new(World::new(seed))))
    }

    /// Loss of power: a random part of everything unsynced remains. Earlier files, mappings and locks are dead.
    pub fn crash(&self) {
        let world = &mut *self.world();
        world.lose_names();
        for inode in &mut world.inodes {
            inode.lose_pages(&mut world.rng);
        }
        world.die();
    }

    /// Death of the process: everything written remains, synced or not. Earlier files, mappings and locks are dead.
    pub fn kill(&self) {
        self.world().die();
    }

    /// Unsynced pages of the newest mapped file, by number.
    #[cfg(test)]
    pub(crate) fn dirty_pages(&self) -> Vec<usize> {
        let world = self.world();
        let open = world.inodes.iter().rfind(|inode| !inode.dirty.is_empty());
        open.map_or_else(Vec::new, |inode| inode.dirty.iter().copied().collect())
    }

    /// Makes one call of this kind fail: the next one, or the one after `after` others. `errno` is the error's number,
    /// for instance `libc::EIO`.
    pub fn fail(&self, call: Call, after: u64, errno: i32) {
        self.world().failures.push(Failure { call, after, errno });
    }

    /// Cancels failures that have not happened yet.
    pub fn fail_no_more(&self) {
        self.world().failures.clear();
    }

    /// Sets the size of the disk in bytes; `None` for one that never fills.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.world().capacity_bytes = bytes;
    }

    /// A disk that drops syncs: they succeed and do nothing. A test that does not detect it checks nothing.
    pub fn drop_syncs(&self, drops: bool) {
        self.world().drops_syncs = drops;
    }

    /// How often, in 1 024 stores, the kernel writes an unsynced page back on its own.
    pub fn set_writeback(&self, parts: u64) {
        self.world().writeback_parts = parts;
    }

    /// How often a kind of call was made.
    pub fn calls(&self, call: Call) -> u64 {
        self.world().calls.get(&call).copied().unwrap_or(0)
    }

    /// Names in order.
    pub fn names(&self) -> Vec<String> {
        self.world().names.keys().cloned().collect()
    }

    /// The contents of a file.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let world = self.world();
        world.names.get(name).map(|inode| world.inodes[*inode].cache.clone())
    }

    /// Creates or replaces a file, on the disk as well.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        self.put_inode(name, Inode { cache: bytes.to_vec(), disk: bytes.to_vec(), ..Inode::default() });
    }

    /// Creates or replaces a file by an empty directory, on the disk as well.
    pub fn put_directory(&self, name: &str) {
        self.put_inode(name, Inode { is_directory: true, ..Inode::default() });
    }

    fn put_inode(&self, name: &str, inode: Inode) {
        let world = &mut *self.world();
        world.inodes.push(inode);
        let inode = world.inodes.len() - 1;
        world.names.insert(name.to_owned(), inode);
        world.names_on_disk.insert(name.to_owned(), inode);
    }

    /// Removes a file, from the disk as well.
    pub fn take(&self, name: &str) -> Option<Vec<u8>> {
        let world = &mut *self.world();
        world.names_on_disk.remove(name);
        world.names.remove(name).map(|inode| world.inodes[inode].cache.clone())
    }

    /// Removes the whole directory, from the disk as well. What is open stays open, as files without a name.
    pub fn take_directory(&self) {
        let world = &mut *self.world();
        world.names.clear();
        world.names_on_disk.clear();
        world.unsynced_names.clear();
        world.is_removed = true;
    }

    /// A directory with the same files, all of them on the disk, and its own random failures.
    pub fn copy(&self, seed: u64) -> Faults {
        let copy = Faults::new(seed);
        let world = self.world();
        for (name, inode) in &world.names {
            let Inode { cache, is_directory, .. } = &world.inodes[*inode];
            let (cache, disk) = (cache.clone(), cache.clone());
            copy.put_inode(name, Inode { cache, disk, is_directory: *is_directory, ..Inode::default() });
        }
        copy
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn file(&self, world: &World, inode: usize) -> FaultFile {
        FaultFile { faults: self.clone(), inode, life: world.life }
    }
}

impl Storage for Faults {
    type File = FaultFile;
    type Map = FaultMap;
    type Lock = FaultLock;

    fn lock(&self) -> Result<FaultLock, Error> {
        let mut world = self.world();
        if world.is_locked {
            return Err(Error::Locked { pid: std::process::id() });
        }
        world.is_locked = true;
        Ok(FaultLock { faults: self.clone(), life: world.life })
    }

    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let mut world = self.world();
        world.call(Call::List)?;
        Ok(world.names.iter().map(|(name, inode)| (name.clone(), world.inodes[*inode].cache.len() as u64)).collect())
    }

    fn open(&self, name: &str) -> io::Result<FaultFile> {
        let mut world = self.world();
        world.call(Call::Open)?;
        let inode = world.plain(name)?;
        Ok(self.file(&world, inode))
    }

    fn open_to_read(&self, name: &str) -> io::Result<FaultFile> {
        self.open(name)
    }

    fn create(&self, name: &str) -> io::Result<FaultFile> {
        let mut world = self.world();
        world.call(Call::Create)?;
        if world.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        world.inodes.push(Inode::default());
        let inode = world.inodes.len() - 1;
        world.names.insert(name.to_owned(), inode);
        world.unsynced_names.push(NameChange::Create(name.to_owned(), inode));
        Ok(self.file(&world, inode))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let world = &mut *self.world();
        world.call(Call::Rename)?;
        let change = NameChange::Rename(from.to_owned(), to.to_owned(), world.inode(from)?);
        apply(&mut world.names, change.clone());
        world.unsynced_names.push(change);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let world = &mut *self.world();
        world.call(Call::Remove)?;
        world.plain(name)?;
        let change = NameChange::Remove(name.to_owned());
        apply(&mut world.names, change.clone());
        world.unsynced_names.push(change);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let world = &mut *self.world();
        world.call(Call::SyncDirectory)?;
        if !world.drops_syncs {
            world.unsynced_names.clear();
            world.names_on_disk = world.names.clone();
        }
        Ok(())
    }

    fn map(&self, file: &FaultFile, bytes: u64) -> io::Result<FaultMap> {
        let mut world = self.world();
        world.call(Call::Map)?;
        let length = world.inodes[file.inode].cache.len() as u64;
        assert!(bytes <= length, "{bytes} bytes of a file of {length} are mapped: the rest would raise SIGBUS");
        Ok(FaultMap { faults: self.clone(), inode: file.inode, life: world.life, bytes: bytes as usize })
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let world = self.world();
        Ok(world.capacity_bytes.map_or(u64::MAX, |capacity| capacity.saturating_sub(world.used_bytes())))
    }

    fn random_id(&self) -> io::Result<[u8; 16]> {
        let world = &mut *self.world();
        let mut id = [0; 16];
        id[..8].copy_from_slice(&world.rng.next().to_le_bytes());
        id[8..].copy_from_slice(&world.rng.next().to_le_bytes());
        Ok(id)
    }

    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn in_background<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Background<T> {
        Background::Later(Box::new(work))
    }
}

/// A file of [`Faults`].
#[derive(Debug)]
pub struct FaultFile {
    faults: Faults,
    inode: usize,
    life: u64,
}

impl FaultFile {
    fn world(&self, call: Option<Call>) -> io::Result<MutexGuard<'_, World>> {
        let mut world = self.faults.world();
        world.check_life(self.life);
        if let Some(call) = call {
            world.call(call)?;
        }
        Ok(world)
    }

    fn sync_pages(&self, from: usize, to: usize) -> io::Result<()> {
        let mut world = self.world(None)?;
        let called = world.call(Call::Sync);
        let drops = world.drops_syncs;
        let inode = &mut world.inodes[self.inode];
        let pages: Vec<usize> = inode.dirty.range(from..to).copied().collect();
        if called.is_ok() && drops {
            return Ok(());
        }
        for page in pages {
            inode.dirty.remove(&page);
            if called.is_ok() {
                inode.write_back(page, u8::MAX);
            }
        }
        called
    }
}

impl StoredFile for FaultFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let world = self.world(Some(Call::Read))?;
        let cache = &world.inodes[self.inode].cache;
        let at = (offset as usize).min(cache.len());
        let bytes = buffer.len().min(cache.len() - at);
        buffer[..bytes].copy_from_slice(&cache[at..at + bytes]);
        Ok(bytes)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let world = &mut *self.world(Some(Call::Write))?;
        let at = offset as usize;
        world.grow(self.inode, at + bytes.len())?;
        world.inodes[self.inode].cache[at..at + bytes.len()].copy_from_slice(bytes);
        world.mark_dirty(self.inode, at, bytes.len());
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_pages(0, usize::MAX)?;
        let mut world = self.world(None)?;
        if !world.drops_syncs {
            let inode = &mut world.inodes[self.inode];
            inode.disk.resize(inode.cache.len(), 0);
        }
        Ok(())
    }

    fn sync_range(&self, from: u64, to: u64) -> io::Result<()> {
        self.sync_pages(from as usize / PAGE_BYTES, (to as usize).div_ceil(PAGE_BYTES))
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.world(None)?.inodes[self.inode].cache.len() as u64)
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(self.world(None)?.names.values().any(|inode| *inode == self.inode))
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.world(Some(Call::Reserve))?.grow(self.inode, bytes as usize)
    }

    fn prefetch(&self) {}

    /// The most that may be on the device then: all of it, unless the call fails.
    fn write_back(&self, from: u64, to: u64) -> io::Result<()> {
        self.sync_range(from, to)
    }

    fn reload(&self) {
        self.forget(u64::MAX);
    }

    fn forget(&self, bytes: u64) {
        let mut world = self.faults.world();
        world.check_life(self.life);
        let inode = &mut world.inodes[self.inode];
        let length = inode.cache.len();
        let forgotten = length.min(usize::try_from(bytes).unwrap_or(usize::MAX));
        for page in 0..forgotten.div_ceil(PAGE_BYTES) {
            if !inode.dirty.contains(&page) {
                let at = page * PAGE_BYTES;
                let end = (at + PAGE_BYTES).min(length);
                let on_disk = inode.disk.len().clamp(at, end);
                inode.cache[at..on_disk].copy_from_slice(&inode.disk[at..on_disk]);
                inode.cache[on_disk..end].fill(0);
            }
        }
    }
}

/// A mapping of a [`FaultFile`].
#[derive(Debug)]
pub struct FaultMap {
    faults: Faults,
    inode: usize,
    life: u64,
    bytes: usize,
}

impl SegmentMap for FaultMap {
    fn write<R>(&mut self, at: usize, bytes: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
        assert!(at + bytes <= self.bytes, "bytes {at} to {} are outside of a mapping of {}", at + bytes, self.bytes);
        let mut world = self.faults.world();
        world.check_life(self.life);
        let written = write(&mut world.inodes[self.inode].cache[at..at + bytes]);
        world.mark_dirty(self.inode, at, bytes);
        written
    }

    fn expect(&mut self, _at: usize, _bytes: usize) {}

    fn touch(&mut self, from: usize, to: usize) {
        let mut world = self.faults.world();
        world.check_life(self.life);
        world.mark_dirty(self.inode, from, to - from);
    }
}

/// The lock of [`Faults`].
#[derive(Debug)]
pub struct FaultLock {
    faults: Faults,
    life: u64,
}

impl DirectoryLock for FaultLock {
    fn describe(&self, _text: &str) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for FaultLock {
    fn drop(&mut self) {
        let mut world = self.faults.world();
        if world.life == self.life {
            world.is_locked = false;
        }
    }
}

#[cfg(test)]
mod tests;
