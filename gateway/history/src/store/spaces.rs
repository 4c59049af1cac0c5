//! The keyspaces of ended rows, in the same database as the prices. They are written by sorted ingestion alone, which
//! does not go through the journal: one ingestion is whole or absent after a crash, and durable when it is over.

use super::{Kept, LEVEL_FILES, LEVEL_FILES_MAX, MEMORY_TABLES_MAX, Size, StoreError, Value};
use engine::id::UserId;
use engine::time::UtcDay;
use fjall::compaction::Leveled;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PartitioningPolicy,
};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use lsm_tree::{AbstractTree as _, Table};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Name of the row in the table `about`.
const ABOUT: &[u8] = b"ended";
/// Names of the rows about users with missing rows begin with this.
const HOLE: &[u8] = b"hole";
const BLOCK_BYTES: u32 = 8 << 10;
/// Bits of a filter for each row.
const FILTER_BITS: f32 = 10.0;
/// An ingestion is refused from this number of sorted files on that are not merged yet.
const FILES_MAX: usize = 48;
/// The same while a keyspace is merged as a whole, for which the engine's thread waits with all other merges, and until it has
/// caught up. Each ingestion sends that thread a message: six keyspaces do not fill its queue of 1,000, where senders wait.
const FILES_MAX_MEANWHILE: usize = 128;

/// A keyspace of ended rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Orders,
    Fills,
    Positions,
    Requests,
    ByHash,
    ByMarket,
}

impl Space {
    /// In the order in which they are written: a row of the others that belongs to an order is there only if the order
    /// is.
    pub const ALL: [Space; 6] =
        [Space::Orders, Space::Fills, Space::Positions, Space::Requests, Space::ByHash, Space::ByMarket];

    pub fn name(self) -> &'static str {
        match self {
            Space::Orders => "orders",
            Space::Fills => "fills",
            Space::Positions => "positions",
            Space::Requests => "requests",
            Space::ByHash => "by_hash",
            Space::ByMarket => "by_market",
        }
    }

    /// Whether rows of days before a cut are removed. A signed order's hash stays: it never places another order.
    pub fn is_cut(self) -> bool {
        self != Space::ByHash
    }

    fn options(self) -> KeyspaceCreateOptions {
        let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(FILTER_BITS));
        let filters = match self {
            // Read by ranges, but for what was just written.
            Space::Fills | Space::ByMarket => FilterPolicy::new([filter, filter, FilterPolicyEntry::None]),
            _ => FilterPolicy::all(filter),
        };
        KeyspaceCreateOptions::default()
            .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
            .filter_policy(filters)
            // In pieces: a look-up reads 4 KiB of a filter or an index. Whole ones are read and checked with each look-up,
            // because the cache takes nothing that is larger than its shards.
            .filter_block_partitioning_policy(PartitioningPolicy::all(true))
            .index_block_partitioning_policy(PartitioningPolicy::all(true))
            .compaction_strategy(Arc::new(Leveled::default().with_l0_threshold(LEVEL_FILES)))
    }
}

/// The open keyspaces. Copies are handles of the same ones.
#[derive(Clone)]
pub struct Spaces {
    db: Database,
    about: Keyspace,
    kept: Arc<Kept>,
    /// As in [`Space::ALL`]; they are made by the first write.
    made: Arc<[OnceLock<Keyspace>; Space::ALL.len()]>,
    /// Merges of whole keyspaces that go on.
    merging: Arc<AtomicUsize>,
    /// The engine has to catch up with files that waited for such a merge, or from before the opening.
    is_late: Arc<AtomicBool>,
    /// Busy, in a test.
    #[cfg(test)]
    pub is_held: Arc<std::sync::atomic::AtomicBool>,
    /// The next merges that are passed over, in a test.
    #[cfg(test)]
    pub skipped: Arc<AtomicUsize>,
    /// The next merges that find no room, in a test.
    #[cfg(test)]
    pub full: Arc<AtomicUsize>,
}

/// A merge of a whole keyspace that goes on.
struct Merging<'a>(&'a Spaces);

impl<'a> Merging<'a> {
    fn begin(spaces: &'a Spaces) -> Merging<'a> {
        spaces.merging.fetch_add(1, Ordering::Relaxed);
        Merging(spaces)
    }
}

impl Drop for Merging<'_> {
    fn drop(&mut self) {
        self.0.is_late.store(true, Ordering::Relaxed);
        self.0.merging.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Spaces {
    /// # Errors
    /// [`StoreError`] if one that exists cannot be opened.
    pub(super) fn of(db: &Database, about: &Keyspace, kept: &Arc<Kept>) -> Result<Spaces, StoreError> {
        let spaces = Spaces {
            db: db.clone(),
            about: about.clone(),
            kept: kept.clone(),
            made: Arc::default(),
            merging: Arc::default(),
            is_late: Arc::new(AtomicBool::new(true)),
            #[cfg(test)]
            is_held: Arc::default(),
            #[cfg(test)]
            skipped: Arc::default(),
            #[cfg(test)]
            full: Arc::default(),
        };
        for space in Space::ALL {
            if db.keyspace_exists(space.name()) {
                spaces.make(space)?;
            }
        }
        Ok(spaces)
    }

    fn make(&self, space: Space) -> Result<(), StoreError> {
        let made = self.db.keyspace(space.name(), || space.options())?;
        // The same keyspace, if it is there already.
        let _ = self.made[space as usize].set(made);
        Ok(())
    }

    /// Makes those that are missing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn make_all(&self) -> Result<(), StoreError> {
        Space::ALL.into_iter().filter(|space| self.space(*space).is_none()).try_for_each(|space| self.make(space))
    }

    fn space(&self, space: Space) -> Option<&Keyspace> {
        self.made[space as usize].get()
    }

    /// # Errors
    /// [`StoreError`].
    pub fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value>, StoreError> {
        Ok(self.space(space).map_or(Ok(None), |space| space.get(key))?)
    }

    /// Keys and values of the rows whose keys are in the range, in their order.
    ///
    /// # Errors
    /// Each row may be an error; the rows after it may be missing.
    pub fn scan(
        &self,
        space: Space,
        keys: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> impl DoubleEndedIterator<Item = Result<(Value, Value), StoreError>> + use<> {
        let rows = self.space(space).map(|space| space.range::<&[u8], _>(keys));
        rows.into_iter().flatten().map(|row| Ok(row.into_inner()?))
    }

    /// Adds rows with ascending keys, together and durably; `write` passes them on one by one. Its error leaves nothing.
    ///
    /// # Errors
    /// [`StoreError`]; it is unknown then whether the rows are there.
    pub fn ingest(
        &self,
        space: Space,
        write: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let space = self.space(space).ok_or(StoreError::Missing)?;
        let mut ingestion = space.start_ingestion()?;
        write(&mut |key, value| Ok(ingestion.write(key, value)?))?;
        Ok(ingestion.finish()?)
    }

    /// What is known of the ended rows as a whole.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn about(&self) -> Result<Option<Value>, StoreError> {
        Ok(self.about.get(ABOUT)?)
    }

    /// Replaces that. It is durable after [`Spaces::sync`].
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn put_about(&self, bytes: &[u8]) -> Result<(), StoreError> {
        Ok(self.about.insert(ABOUT, bytes)?)
    }

    /// Replaces that, durably.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn set_about(&self, bytes: &[u8]) -> Result<(), StoreError> {
        self.put_about(bytes)?;
        self.sync()
    }

    /// The rows about users with missing rows, by ascending users.
    ///
    /// # Errors
    /// Each row may be an error; the rows after it may be missing.
    pub fn holes(&self) -> impl Iterator<Item = Result<(UserId, Value), StoreError>> + use<> {
        self.about.prefix(HOLE).map(|row| {
            let (key, value) = row.into_inner()?;
            let user = key.strip_prefix(HOLE).and_then(|user| Some(u64::from_be_bytes(user.try_into().ok()?)));
            let damaged = || StoreError::Damaged(format!("about has a key of {} bytes", key.len()));
            Ok((UserId(user.ok_or_else(damaged)?), value))
        })
    }

    /// Adds such rows, by ascending users, to a store that has none, together and durably.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn add_holes(&self, rows: impl Iterator<Item = (UserId, Vec<u8>)>) -> Result<(), StoreError> {
        let mut ingestion = self.about.start_ingestion()?;
        for (user, value) in rows {
            ingestion.write([HOLE, &user.0.to_be_bytes()].concat(), value)?;
        }
        Ok(ingestion.finish()?)
    }

    /// Checks whether the database takes writes.
    ///
    /// # Errors
    /// [`StoreError::Closed`] if a write has failed since it was opened.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        // Hands the rest of a buffer to the kernel.
        Ok(self.db.persist(PersistMode::Buffer)?)
    }

    /// Makes everything durable that was written to the database.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn sync(&self) -> Result<(), StoreError> {
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }

    /// A bound of the number of rows, known without reading them: replaced rows count until they are merged.
    pub fn rows_at_most(&self, space: Space) -> u64 {
        self.space(space).map_or(0, |space| space.approximate_len() as u64)
    }

    /// Whether too many files wait to be merged, or the engine would block a write to the table `about`.
    pub fn is_busy(&self) -> bool {
        #[cfg(test)]
        if self.is_held.load(std::sync::atomic::Ordering::Relaxed) {
            return true;
        }
        let is_about_held =
            self.about.sealed_memtable_count() >= MEMORY_TABLES_MAX || self.about.l0_table_count() >= LEVEL_FILES_MAX;
        is_about_held || self.waiting_files() >= self.files_max()
    }

    /// The most sorted files of a keyspace that are not merged yet.
    fn waiting_files(&self) -> usize {
        Space::ALL.iter().filter_map(|space| self.space(*space)).map(|space| space.l0_table_count()).max().unwrap_or(0)
    }

    /// How many may wait. More do while other merges are held up: nothing but the files of moves stops these.
    fn files_max(&self) -> usize {
        if self.merging.load(Ordering::Relaxed) > 0 {
            return FILES_MAX_MEANWHILE;
        }
        let is_late = self.is_late.load(Ordering::Relaxed) && self.waiting_files() >= FILES_MAX;
        self.is_late.store(is_late, Ordering::Relaxed);
        if is_late { FILES_MAX_MEANWHILE } else { FILES_MAX }
    }

    /// Whether the engine has merges to catch up with, so that none of a whole keyspace should hold it up.
    pub fn is_behind(&self) -> bool {
        self.waiting_files() >= FILES_MAX
    }

    /// Bytes and number of the files of a keyspace.
    pub fn size(&self, space: Space) -> Size {
        self.space(space)
            .map_or(Size { bytes: 0, files: 0 }, |space| Size { bytes: space.disk_space(), files: space.table_count() })
    }

    /// Writes a row.
    #[cfg(test)]
    pub fn put(&self, space: Space, key: &[u8], value: &[u8]) {
        self.space(space).expect("it is made").insert(key, value).expect("written");
    }

    /// Whether a keyspace is merged as a whole now.
    #[cfg(test)]
    pub fn is_merging(&self) -> bool {
        self.merging.load(Ordering::Relaxed) > 0
    }

    /// Merges wait until this is dropped, in a test.
    #[cfg(test)]
    pub fn hold_merges(&self) -> std::sync::MutexGuard<'_, ()> {
        self.kept.gate.lock().expect("not poisoned")
    }

    /// From now on merges remove rows that ended before this day.
    pub fn remove_before(&self, day: UtcDay) {
        self.kept.day.fetch_max(day.0, Ordering::Relaxed);
    }

    /// Merges a keyspace into its last level, which removes what is not kept. Takes as long as reading and writing all of it,
    /// and as much more room on the disk meanwhile. Other merges of this keyspace wait. `false`: files that were there before
    /// are there still, because the engine passes over a merge, without an error, when another one has some of them. It must
    /// be called again then.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn merge_all_of(&self, space: Space) -> Result<bool, StoreError> {
        let Some(keyspace) = self.space(space) else { return Ok(true) };
        let files = || keyspace.tree.current_version().iter_tables().map(Table::id).collect::<BTreeSet<_>>();
        let before = files();
        let _merging = Merging::begin(self);
        #[cfg(test)]
        if self.full.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            // What it has written so far.
            std::fs::write(keyspace.path().join("tables").join("900000"), [7; 100])?;
            return Err(StoreError::Io(std::io::ErrorKind::StorageFull.into()));
        }
        #[cfg(test)]
        if self.skipped.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Ok(before.is_empty());
        }
        keyspace.major_compact()?;
        Ok(before.is_disjoint(&files()))
    }

    /// Removes a row.
    #[cfg(test)]
    pub fn remove(&self, space: Space, key: &[u8]) {
        self.space(space).expect("it is made").remove(key).expect("removed");
    }

    /// Merges the files of each keyspace.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn merge(&self) -> Result<(), StoreError> {
        Space::ALL.iter().filter_map(|space| self.space(*space)).try_for_each(|space| Ok(space.major_compact()?))
    }
}
