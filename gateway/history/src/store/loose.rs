//! Sorted files read one by one, without the database that names them: what a damaged store still has. The engine checks
//! every block; one that is damaged, or makes the engine panic, is passed over.

use super::{KEYSPACES, StoreError, TABLES, Value, entries, is_numbered};
use lsm_tree::{Cache, Checksum, InternalValue, Table};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Memory for blocks that were read.
const CACHE_BYTES: u64 = 4 << 20;
/// Bytes of a key by which the end of a damaged block is searched.
const STEP_BYTES: usize = 16;

type Scan = Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>>>;

/// The sorted files below the folder of a store, whether or not anything names them.
///
/// # Errors
/// The system's.
pub fn loose_files(store: &Path) -> io::Result<Vec<PathBuf>> {
    let keyspaces = match entries(&store.join(KEYSPACES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        keyspaces => keyspaces?,
    };
    let mut files = Vec::new();
    for tables in keyspaces.iter().map(|keyspace| keyspace.join(TABLES)).filter(|tables| tables.is_dir()) {
        files.extend(entries(&tables)?.into_iter().filter(|path| is_numbered(path) && path.is_file()));
    }
    files.sort();
    Ok(files)
}

/// Opens sorted files.
pub struct Opener {
    cache: Arc<Cache>,
    opened: u64,
}

impl Opener {
    pub fn new() -> Opener {
        Opener { cache: Arc::new(Cache::with_capacity_bytes(CACHE_BYTES)), opened: 0 }
    }

    /// # Errors
    /// [`StoreError`] for a file whose end, where its index is, is damaged.
    pub fn open(&mut self, path: &Path) -> Result<Loose, StoreError> {
        // Blocks are cached by this number: files of several stores may have the same ones.
        self.opened += 1;
        let (tree, cache) = (self.opened, self.cache.clone());
        let opened = catch_unwind(AssertUnwindSafe(|| {
            Table::recover(path.to_owned(), Checksum::from_raw(0), 0, tree, cache, None, false, true)
        }));
        match opened {
            Ok(opened) => Ok(Loose(opened.map_err(fjall::Error::Storage)?)),
            Err(_) => Err(StoreError::Damaged("a sorted file without an end".to_owned())),
        }
    }
}

/// A sorted file.
#[derive(Clone)]
pub struct Loose(Table);

impl Loose {
    /// Its sound rows, by ascending keys.
    pub fn rows(&self) -> Rows {
        let scan = self.scan(None);
        Rows { file: self.clone(), scan, last: 0, damages: 0 }
    }

    /// The rows from a key on. `None`: the engine panics.
    fn scan(&self, from: Option<u128>) -> Option<Scan> {
        let opened = || match from {
            Some(from) => Box::new(self.0.range(lsm_tree::UserKey::from(from.to_be_bytes())..)) as Scan,
            None => Box::new(self.0.iter()),
        };
        catch_unwind(AssertUnwindSafe(opened)).ok()
    }

    /// Whether the first row from a key on can be read, or there is none.
    fn is_sound_from(&self, from: u128) -> bool {
        let first = self.scan(Some(from)).and_then(|mut scan| next(&mut scan));
        first.is_some_and(|row| row.is_none_or(|row| row.is_ok()))
    }

    /// The first key after a damage that follows `last`, as far as trying shows it; `None`: the damage goes on
    /// to the end. Of several damaged places close to each other, sound rows between them may be passed over.
    fn after_damage(&self, last: u128) -> Option<u128> {
        let (mut damaged, mut step) = (last, 1_u128);
        let mut sound = loop {
            let next = damaged.saturating_add(step);
            if self.is_sound_from(next) {
                break next;
            }
            if next == u128::MAX {
                return None;
            }
            (damaged, step) = (next, step.saturating_mul(2));
        };
        while sound - damaged > 1 {
            let middle = damaged + (sound - damaged) / 2;
            match self.is_sound_from(middle) {
                true => sound = middle,
                false => damaged = middle,
            }
        }
        Some(sound)
    }
}

/// The next row; `None`: the engine panics.
fn next(scan: &mut Scan) -> Option<Option<lsm_tree::Result<InternalValue>>> {
    catch_unwind(AssertUnwindSafe(|| scan.next())).ok()
}

/// The sound rows of a file.
pub struct Rows {
    file: Loose,
    /// `None`: there are no more.
    scan: Option<Scan>,
    /// The begin of the last key.
    last: u128,
    /// Damaged places so far.
    pub damages: u64,
}

impl Iterator for Rows {
    type Item = (Value, Value);

    fn next(&mut self) -> Option<(Value, Value)> {
        loop {
            match next(self.scan.as_mut()?) {
                Some(Some(Ok(row))) => {
                    self.last = begin_of(&row.key.user_key);
                    if !row.key.is_tombstone() {
                        return Some((row.key.user_key, row.value));
                    }
                }
                Some(None) => self.scan = None,
                Some(Some(Err(_))) | None => {
                    self.damages += 1;
                    let from = self.file.after_damage(self.last);
                    self.scan = from.and_then(|from| self.file.scan(Some(from)));
                }
            }
        }
    }
}

/// The first bytes of a key as a number; what is missing of them is zero.
fn begin_of(key: &[u8]) -> u128 {
    let mut bytes = [0; STEP_BYTES];
    let length = key.len().min(STEP_BYTES);
    bytes[..length].copy_from_slice(&key[..length]);
    u128::from_be_bytes(bytes)
}
