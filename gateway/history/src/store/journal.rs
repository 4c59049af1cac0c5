//! Journals of the store: where their batches end, and the cut of one that the engine refuses.

use super::{Store, StoreError, entries};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Extension of journals.
pub const JOURNAL: &str = "jnl";
/// Extension of a whole journal that is damaged, while parts of it are tried.
pub const DAMAGED: &str = "damaged";
/// The last bytes of each batch in a journal.
pub const BATCH_END: &[u8] = b"FJL\x03";
/// Bytes of a journal that are read at a time.
const PIECE_BYTES: usize = 256 << 10;

pub fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == JOURNAL)
}

/// The journal that is written to.
pub fn newest_journal(place: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest = None;
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        if let Some(number) = number.filter(|_| is_journal(&path)) {
            newest = newest.max(Some((number, path)));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

/// Undoes what a crash during [`cut_journal`] left: a whole journal under its other name counts again. It is removed if
/// the journal that counts has batches that it lacks: then it is not whole, or the store was written to since.
pub fn put_back(place: &Path) -> io::Result<()> {
    for whole in entries(place)? {
        if whole.extension().is_none_or(|extension| extension != DAMAGED) {
            continue;
        }
        let journal = whole.with_extension(JOURNAL);
        if journal.try_exists()? && has_more(&journal, &whole)? {
            fs::remove_file(&whole)?;
        } else {
            fs::rename(&whole, &journal)?;
        }
        sync_folder(place)?;
    }
    Ok(())
}

/// Whether a journal has batches where it differs from another one, or after the end of that one.
fn has_more(journal: &Path, other: &Path) -> io::Result<bool> {
    let (end, own, other) = (end_of_batches(&File::open(journal)?)?, fs::read(journal)?, fs::read(other)?);
    let same = own.iter().zip(&other).take_while(|(own, other)| own == other).count();
    Ok(end > same as u64)
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Where the last batch of a journal seems to end; zeros without meaning may follow.
///
/// # Errors
/// The system's.
pub fn end_of_batches(journal: &File) -> io::Result<u64> {
    let mut bytes = vec![0; PIECE_BYTES + BATCH_END.len() - 1];
    let mut piece_end = journal.metadata()?.len();
    while piece_end > 0 {
        let from = piece_end.saturating_sub(PIECE_BYTES as u64);
        // With the first bytes of the piece after it, which may have the rest of an end.
        let mut length = 0;
        while length < bytes.len()
            && let read @ 1.. = journal.read_at(&mut bytes[length..], from + length as u64)?
        {
            length += read;
        }
        if let Some(at) = memchr::memmem::rfind(&bytes[..length], BATCH_END) {
            return Ok(from + (at + BATCH_END.len()) as u64);
        }
        piece_end = from;
    }
    Ok(0)
}

/// Opens a store whose newest journal the engine refuses, with as much of it as the engine takes: a journal is taken up
/// to a place and refused beyond it, so that a binary search over the ends of its batches finds the place.
///
/// The whole journal has another name until the store is open, and copies of its first bytes are tried in its place. It
/// is never written to, and its names are durable before and after: so a crash at any point leaves it, or what was
/// taken of it. Returns how many bytes of batches were not.
pub fn cut_journal(journal: &Path, place: &Path, cache_bytes: u64) -> Result<(Store, u64), StoreError> {
    let whole = journal.with_extension(DAMAGED);
    let bytes = fs::read(journal)?;
    File::open(journal)?.sync_all()?;
    fs::rename(journal, &whole)?;
    sync_folder(place)?;
    let cut = cut_open(journal, &bytes, place, cache_bytes);
    match &cut {
        Ok((store, _)) => {
            store.sync()?;
            // The cut journal has its name before the whole one is gone, which it is before the next write: otherwise a
            // power cut could bring the whole one back.
            sync_folder(place)?;
            fs::remove_file(&whole)?;
        }
        Err(_) => fs::rename(&whole, journal)?,
    }
    sync_folder(place)?;
    cut
}

/// Opens a store with as many batches of its newest journal as the engine takes, and returns how many bytes of batches
/// it does not.
fn cut_open(journal: &Path, bytes: &[u8], place: &Path, cache_bytes: u64) -> Result<(Store, u64), StoreError> {
    let opens = |end: usize| -> Result<Store, StoreError> {
        fs::write(journal, &bytes[..end])?;
        Store::open_at(place, cache_bytes)
    };
    // If this is refused, the damage is elsewhere.
    drop(opens(0)?);
    let mut ends = vec![0];
    ends.extend(memchr::memmem::find_iter(bytes, BATCH_END).map(|at| at + BATCH_END.len()));
    let (mut taken, mut refused) = (0, ends.len());
    while refused - taken > 1 {
        let middle = taken + (refused - taken) / 2;
        match opens(ends[middle]) {
            Ok(_) => taken = middle,
            Err(StoreError::Journal(_)) => refused = middle,
            Err(error) => return Err(error),
        }
    }
    let store = opens(ends[taken])?;
    let left = fs::metadata(journal)?.len();
    Ok((store, (ends[ends.len() - 1] as u64).saturating_sub(left)))
}
