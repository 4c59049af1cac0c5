//! The tables on disk, `store/` in the folder of the history. Only this file knows the engine that keeps them, `fjall`:
//! another one would be put in its place here.
//!
//! A write reaches the kernel, and survives a kill; [`Store::sync`] makes everything written before it durable. A batch
//! is whole or absent after a crash. The engine has one thread, which sleeps until a memory table is full.
//!
//! The engine trusts its folder, and this file does not:
//!
//! - The tables are made under another name, so that a kill during their creation leaves no half of them.
//! - The engine cuts a journal after its last whole batch without a word; here that is logged. A power cut may leave
//!   a hole in the journal, which the engine refuses: the journal is then cut before the hole ([`cut_journal`]).
//! - The engine removes tables that nothing names, also if what names them is lost. It panics at names
//!   that it does not expect. Both are checked before.
//! - A panic of the engine while it opens damaged files counts as damage.
//! - The engine blocks writers for as long as its thread does not keep up, which may be for ever: after a crash there
//!   are reports of that. Here such a write is refused with [`StoreError::Busy`].
//! - Memory tables are written to disk together. Otherwise a table that is seldom written to would keep old journals.

mod error;
mod head;
mod journal;
mod loose;
mod spaces;

pub use error::{StoreError, is_full};
pub use head::{Head, day_of, put_head, take_head, take_shortest};
pub use journal::{JOURNAL, end_of_batches};
pub use loose::{Loose, Opener, Rows, loose_files};
pub use spaces::{Space, Spaces};

use crate::row::{About, Key, read_key};
use engine::time::UtcDay;
use fjall::compaction::Leveled;
use fjall::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};
use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use journal::{cut_journal, is_journal, newest_journal, put_back};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::DirBuilderExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The folder of the tables in that of the history.
pub const FOLDER: &str = "store";
/// The folder while it is made.
const MAKING: &str = "store.making";
/// A file that a complete folder has.
pub const MARKER: &str = "version";
/// What it has: a name and a format.
const ENGINE: &[u8] = b"FJL";
const FORMAT: u8 = 3;
/// The folders of tables, and their files.
pub const KEYSPACES: &str = "keyspaces";
pub const CURRENT: &str = "current";
pub const TABLES: &str = "tables";
/// Name of the row in [`Table::About`].
const ABOUT: &[u8] = b"prices";

/// Bytes of memory tables from which they are written to disk.
const MEMORY_BYTES: u64 = 8 << 20;
/// The engine's own bound, which is not reached.
const MEMORY_BYTES_MAX: u64 = 64 << 20;
/// Bytes of journals from which the engine writes memory tables to disk by itself.
const JOURNALS_BYTES: u64 = 192 << 20;
/// Files that are open at a time.
const FILES_MAX: usize = 64;
/// Sorted files beside each other before they are merged: each merge rewrites a part of what is there.
const LEVEL_FILES: u8 = 16;
const BLOCK_BYTES: u32 = 8 << 10;
/// A writer is refused from these numbers on. The engine blocks it from 4 memory tables and 30 files on.
const MEMORY_TABLES_MAX: usize = 3;
const LEVEL_FILES_MAX: usize = 26;
/// How long [`Store::wait`] waits, and looks.
const WAIT_MAX: Duration = Duration::from_secs(60);
const WAIT_STEP: Duration = Duration::from_millis(5);

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Minutes,
    Hours,
    About,
}

impl Table {
    pub const PRICES: [Table; 2] = [Table::Minutes, Table::Hours];

    pub fn name(self) -> &'static str {
        match self {
            Table::Minutes => "prices",
            Table::Hours => "price_hours",
            Table::About => "about",
        }
    }
}

/// The first minute and the first hour of prices that are kept, and the first day of ended rows. Rows before them are
/// removed when tables are merged.
#[derive(Debug, Default)]
struct Kept {
    minute: AtomicU32,
    hour: AtomicU32,
    day: AtomicU32,
    /// Merges of ended rows wait for it, in a test.
    #[cfg(test)]
    gate: std::sync::Mutex<()>,
}

/// The open tables.
pub struct Store {
    db: Database,
    minutes: Keyspace,
    hours: Keyspace,
    about: Keyspace,
    kept: Arc<Kept>,
    /// What the last whole state of the prices was.
    pub known: About,
    /// Bytes of whole batches that were cut off the journals when they were opened.
    pub cut_bytes: u64,
    /// Busy, in a test.
    #[cfg(test)]
    pub is_held: bool,
    /// Syncs fail, in a test.
    #[cfg(test)]
    pub fails_sync: bool,
}

/// Rows that are written together.
#[derive(Default)]
pub struct Batch(Vec<(Table, Vec<u8>, Option<Vec<u8>>)>);

impl Batch {
    pub fn put(&mut self, table: Table, key: Key, value: Vec<u8>) {
        self.0.push((table, key.to_vec(), Some(value)));
    }

    pub fn remove(&mut self, table: Table, key: Key) {
        self.0.push((table, key.to_vec(), None));
    }

    pub fn put_about(&mut self, about: &About) {
        self.0.push((Table::About, ABOUT.to_vec(), Some(about.write())));
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The bytes of a value.
pub type Value = fjall::UserValue;

/// What one table takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub bytes: u64,
    pub files: usize,
}

impl Store {
    /// Opens the tables in `folder`, the folder of the history, and creates them if they are missing. `cache_bytes` of
    /// what was read stay in memory.
    ///
    /// # Errors
    /// [`StoreError`]. The files are then as they were, but for a torn end of the journal.
    pub fn open(folder: &Path, cache_bytes: u64) -> Result<Store, StoreError> {
        // Not the folders above it: a data directory that was removed under a running process must not come back.
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        let place = folder.join(FOLDER);
        if !place.try_exists()? {
            create(folder, cache_bytes)?;
        }
        Store::open_existing(folder, cache_bytes)
    }

    /// As [`Store::open`], but fails if there are no tables.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open_existing(folder: &Path, cache_bytes: u64) -> Result<Store, StoreError> {
        let place = folder.join(FOLDER);
        check_marker(&place)?;
        check_layout(&place)?;
        put_back(&place)?;
        // Without one the engine would number new rows from zero, before the old ones.
        let no_journal = || StoreError::Damaged(format!("{} has no journal", place.display()));
        let journal = newest_journal(&place)?.ok_or_else(no_journal)?;
        // The engine cuts sealed ones, too. They stay open here, since it may remove them meanwhile.
        let mut journals = Vec::new();
        for path in entries(&place)?.iter().filter(|path| is_journal(path)) {
            let file = File::open(path)?;
            journals.push((end_of_batches(&file)?, file));
        }
        let (mut store, cut_bytes) = match Store::open_at(&place, cache_bytes) {
            // Cutting a journal that is sound would only lose rows.
            Err(StoreError::Journal(why)) => cut_journal(&journal, &place, cache_bytes)
                .map_err(|error| if let StoreError::Io(_) = error { error } else { StoreError::Damaged(why) })?,
            opened => (opened?, 0),
        };
        store.cut_bytes = cut_bytes;
        for (whole, file) in journals {
            store.cut_bytes += whole.saturating_sub(file.metadata()?.len());
        }
        if store.cut_bytes > 0 {
            tracing::warn!(
                bytes = store.cut_bytes,
                "a journal of the price history was damaged; its last bytes are removed, and with \
                them prices of the last hours"
            );
        }
        Ok(store)
    }

    fn open_at(place: &Path, cache_bytes: u64) -> Result<Store, StoreError> {
        let opened = catch_unwind(AssertUnwindSafe(|| Store::open_unguarded(place, cache_bytes)));
        // The engine panics at some damage of a journal, and at some of other files. A cut shows which it is.
        opened.unwrap_or_else(|_| Err(StoreError::Journal("its files do not fit together".to_owned())))
    }

    fn open_unguarded(place: &Path, cache_bytes: u64) -> Result<Store, StoreError> {
        let kept = Arc::new(Kept::default());
        let filters = Arc::clone(&kept);
        let db = Database::builder(place)
            .cache_size(cache_bytes)
            .max_cached_files(Some(FILES_MAX))
            .max_journaling_size(JOURNALS_BYTES)
            // One is enough, and a lost insert was seen with several only.
            .worker_threads(1)
            .with_compaction_filter_factories(Arc::new(move |name: &str| filter(name, &filters)))
            .open()?;
        let [minutes, hours, about] =
            [Table::Minutes, Table::Hours, Table::About].map(|table| db.keyspace(table.name(), options));
        let (minutes, hours, about) = (minutes?, hours?, about?);
        let known = match about.get(ABOUT)? {
            None => About::default(),
            Some(bytes) => About::read(&bytes).ok_or_else(|| match About::later_version(&bytes) {
                Some(version) => StoreError::Later(format!("version {version} of its prices")),
                None => StoreError::Damaged("what is known of its prices cannot be read".to_owned()),
            })?,
        };
        let store = Store {
            db,
            minutes,
            hours,
            about,
            kept,
            known,
            cut_bytes: 0,
            #[cfg(test)]
            is_held: false,
            #[cfg(test)]
            fails_sync: false,
        };
        store.keep();
        Ok(store)
    }

    /// From now on merges remove what is not kept.
    fn keep(&self) {
        self.kept.minute.store(self.known.first_minute(), Ordering::Relaxed);
        self.kept.hour.store(self.known.hours_from, Ordering::Relaxed);
    }

    fn table(&self, table: Table) -> &Keyspace {
        match table {
            Table::Minutes => &self.minutes,
            Table::Hours => &self.hours,
            Table::About => &self.about,
        }
    }

    /// Market, time and value of the rows whose keys are in the range, in their order.
    ///
    /// # Errors
    /// Each row may be an error; the rows after it may be missing.
    pub fn scan(
        &self,
        table: Table,
        keys: RangeInclusive<Key>,
    ) -> impl DoubleEndedIterator<Item = Result<(u32, u32, Value), StoreError>> + use<> {
        let rows = self.table(table).range(keys);
        rows.map(|row| {
            let (key, value) = row.into_inner()?;
            let (market, time) =
                read_key(&key).ok_or_else(|| StoreError::Damaged(format!("a key of {} bytes", key.len())))?;
            Ok((market, time, value))
        })
    }

    /// Whether there is a row.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn has(&self, table: Table, key: Key) -> Result<bool, StoreError> {
        Ok(self.table(table).contains_key(key)?)
    }

    /// Writes the rows and what is known after them, together, to the kernel.
    ///
    /// # Errors
    /// [`StoreError::Busy`]: nothing was written, and a later call may write it. After another error the store must be
    /// opened again.
    pub fn write(&mut self, mut batch: Batch, about: About) -> Result<(), StoreError> {
        if self.is_busy() {
            return Err(StoreError::Busy);
        }
        batch.put_about(&about);
        let mut writes: OwnedWriteBatch = self.db.batch();
        for (table, key, value) in batch.0 {
            match value {
                Some(value) => writes.insert(self.table(table), key, value),
                None => writes.remove(self.table(table), key),
            }
        }
        writes.commit()?;
        // More may be kept from now on. What is not kept any more stays until this is durable: a merge is, and a power
        // cut could bring back the earlier state, in which minutes count that have no row by hour.
        self.kept.minute.fetch_min(about.first_minute(), Ordering::Relaxed);
        self.kept.hour.fetch_min(about.hours_from, Ordering::Relaxed);
        self.known = about;
        if self.db.write_buffer_size() > MEMORY_BYTES {
            self.settle()?;
        }
        Ok(())
    }

    /// Waits until a write is not refused with [`StoreError::Busy`].
    ///
    /// # Errors
    /// [`StoreError::Busy`] if that takes too long.
    pub fn wait(&self) -> Result<(), StoreError> {
        let started = Instant::now();
        while self.is_busy() {
            if started.elapsed() >= WAIT_MAX {
                return Err(StoreError::Busy);
            }
            std::thread::sleep(WAIT_STEP);
        }
        Ok(())
    }

    /// Whether a write would be refused with [`StoreError::Busy`].
    pub fn is_busy(&self) -> bool {
        #[cfg(test)]
        if self.is_held {
            return true;
        }
        Table::PRICES.map(|table| self.table(table)).iter().any(|table| {
            table.sealed_memtable_count() >= MEMORY_TABLES_MAX || table.l0_table_count() >= LEVEL_FILES_MAX
        })
    }

    /// Lets the engine write its memory tables to disk, unless it does so already.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn settle(&self) -> Result<(), StoreError> {
        for table in [&self.minutes, &self.hours, &self.about] {
            if table.sealed_memtable_count() == 0 {
                table.rotate_memtable()?;
            }
        }
        Ok(())
    }

    /// Makes everything that was written durable. From then on merges remove what is not kept.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn sync(&self) -> Result<(), StoreError> {
        #[cfg(test)]
        if self.fails_sync {
            return Err(StoreError::Io(io::Error::other("as planned")));
        }
        self.db.persist(PersistMode::SyncAll)?;
        self.keep();
        Ok(())
    }

    /// Writes everything into sorted files, and merges them.
    #[cfg(test)]
    pub fn merge(&self) -> Result<(), StoreError> {
        for table in [&self.minutes, &self.hours, &self.about] {
            table.rotate_memtable_and_wait()?;
            table.major_compact()?;
        }
        Ok(())
    }

    /// Waits until everything is in sorted files.
    #[cfg(test)]
    pub fn rest(&self) -> Result<(), StoreError> {
        [&self.minutes, &self.hours, &self.about].iter().try_for_each(|table| Ok(table.rotate_memtable_and_wait()?))
    }

    /// Replaces what is known by bytes.
    #[cfg(test)]
    pub fn put_raw_about(&self, bytes: &[u8]) {
        self.about.insert(ABOUT, bytes).expect("written");
    }

    /// Handles of the keyspaces of ended rows, which keep the database open.
    ///
    /// # Errors
    /// [`StoreError`] if one of them cannot be opened.
    pub fn spaces(&self) -> Result<Spaces, StoreError> {
        Spaces::of(&self.db, &self.about, &self.kept)
    }

    pub fn size(&self, table: Table) -> Size {
        let table = self.table(table);
        Size { bytes: table.disk_space(), files: table.table_count() }
    }

    /// Bytes of the journals.
    ///
    /// # Errors
    /// The system's.
    pub fn journal_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.db.journal_disk_space()?)
    }
}

fn options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMORY_BYTES_MAX)
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
        // Prices are read by ranges, for which filters do nothing.
        .filter_policy(FilterPolicy::disabled())
        .compaction_strategy(Arc::new(Leveled::default().with_l0_threshold(LEVEL_FILES)))
}

/// Makes empty tables, which have their name only when they are complete.
fn create(folder: &Path, cache_bytes: u64) -> Result<(), StoreError> {
    let making = folder.join(MAKING);
    match fs::remove_dir_all(&making) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    DirBuilder::new().mode(0o700).create(&making)?;
    Store::open_at(&making, cache_bytes)?.sync()?;
    fs::rename(&making, folder.join(FOLDER))?;
    File::open(folder)?.sync_all()?;
    Ok(())
}

/// Checks which engine the tables are of, before anything is opened.
fn check_marker(place: &Path) -> Result<(), StoreError> {
    let marker = match fs::read(place.join(MARKER)) {
        Ok(marker) => marker,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(StoreError::Damaged(format!("{} has no file {MARKER}", place.display())));
        }
        Err(error) => return Err(error.into()),
    };
    match marker.strip_prefix(ENGINE) {
        Some([FORMAT]) => Ok(()),
        Some([format]) if *format > FORMAT => Err(StoreError::Later(format!("format {format} of its tables"))),
        _ => Err(StoreError::Damaged(format!("the file {MARKER} is not that of a store"))),
    }
}

/// Checks the names in the folder, before the engine reads them: it panics at those that it does not expect, which may
/// end the process, and it removes folders of tables that do not say which of them count, as well as all folders that
/// the first one does not name.
fn check_layout(place: &Path) -> Result<(), StoreError> {
    let unfit = |path: &Path, what: &str| Err(StoreError::Damaged(format!("{} {what}", path.display())));
    for path in entries(place)? {
        if is_journal(&path) && !(is_numbered(&path) && path.is_file()) {
            return unfit(&path, "is not a journal");
        }
    }
    let keyspaces = place.join(KEYSPACES);
    let mut folders = entries(&keyspaces)?;
    if let Some(path) = folders.iter().find(|path| !(is_numbered(path) && path.is_dir())) {
        return unfit(path, "is not a folder of tables");
    }
    // The first one names the others.
    let first = keyspaces.join("0");
    folders.push(first.clone());
    for folder in folders {
        let tables = match entries(&folder.join(TABLES)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            tables => tables?,
        };
        if let Some(path) = tables.iter().find(|path| !(is_numbered(path) && path.is_file())) {
            return unfit(path, "is not a table");
        }
        if !(tables.is_empty() && folder != first || folder.join(CURRENT).is_file()) {
            return unfit(&folder, &format!("has no file {CURRENT}"));
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// Whether the name is a number, without its extension.
fn is_numbered(path: &Path) -> bool {
    path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.parse::<u64>().is_ok())
}

/// Removes rows before a time from a table of prices.
struct Filter {
    kept: Arc<Kept>,
    table: Table,
}

/// What removes rows of the table with that name, if anything does.
fn filter(name: &str, kept: &Arc<Kept>) -> Option<Arc<dyn Factory>> {
    if let Some(space) = Space::ALL.into_iter().find(|space| space.name() == name) {
        return space.is_cut().then(|| Arc::new(EndedFilter { kept: Arc::clone(kept), space }) as Arc<dyn Factory>);
    }
    let table = Table::PRICES.into_iter().find(|table| table.name() == name)?;
    Some(Arc::new(Filter { kept: Arc::clone(kept), table }))
}

impl Filter {
    fn first(&self) -> u32 {
        match self.table {
            Table::Minutes => self.kept.minute.load(Ordering::Relaxed),
            Table::Hours | Table::About => self.kept.hour.load(Ordering::Relaxed),
        }
    }
}

impl Factory for Filter {
    fn name(&self) -> &str {
        self.table.name()
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Before(self.first()))
    }
}

/// Removes rows before this time.
struct Before(u32);

impl CompactionFilter for Before {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        let is_before = read_key(item.key()).is_some_and(|(_, time)| time < self.0);
        // Older states of the row, which may come to light, are as old as the row: readers pass over them, too.
        Ok(if is_before { Verdict::Destroy } else { Verdict::Keep })
    }
}

/// Removes rows that ended before a day from a keyspace.
struct EndedFilter {
    kept: Arc<Kept>,
    space: Space,
}

impl Factory for EndedFilter {
    fn name(&self) -> &str {
        self.space.name()
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let day = UtcDay(self.kept.day.load(Ordering::Relaxed));
        Box::new(EndedBefore {
            day,
            #[cfg(test)]
            kept: Arc::clone(&self.kept),
        })
    }
}

/// Removes rows that ended before this day.
struct EndedBefore {
    day: UtcDay,
    #[cfg(test)]
    kept: Arc<Kept>,
}

impl CompactionFilter for EndedBefore {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        #[cfg(test)]
        drop(self.kept.gate.lock().expect("not poisoned"));
        // What cannot be read stays: the check finds it.
        let is_before = self.day != UtcDay(0) && day_of(&item.value()?).is_some_and(|day| day < self.day);
        // An earlier state of the row may be of a later day: it must not come to light.
        Ok(if is_before { Verdict::Remove } else { Verdict::Keep })
    }
}

#[cfg(test)]
mod tests;
