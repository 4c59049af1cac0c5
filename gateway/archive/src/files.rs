//! Files that appear whole: written under another name, synced, renamed, and the folder synced.

use crate::error::{Error, Named};
use crate::row::Condition;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// End of the name of a file that is being made.
pub const MAKING: &str = ".making";

/// A file that is being made. Dropped before [`Making::finish`], it is removed.
#[derive(Debug)]
pub struct Making {
    path: PathBuf,
    making: PathBuf,
    file: File,
    is_finished: bool,
}

impl Making {
    /// Creates the file under its name for the time being, in place of one that a kill left there.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path) -> Result<Making, Error> {
        let making = free_name(path)?;
        let file = File::options().read(true).write(true).create_new(true).open(&making).of(&making)?;
        Ok(Making { path: path.to_owned(), making, file, is_finished: false })
    }

    /// The same under a name that no other process uses: several may make the file.
    pub(crate) fn create_apart(path: &Path) -> Result<Making, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut name = OsString::from(path);
        name.push(format!(".{}-{}{MAKING}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        let making = PathBuf::from(name);
        let file = File::options().read(true).write(true).create_new(true).open(&making).of(&making)?;
        Ok(Making { path: path.to_owned(), making, file, is_finished: false })
    }

    /// A link to a file, or a copy of it, under the name for the time being; synced.
    pub(crate) fn of_file(from: &Path, path: &Path, is_linked: bool) -> Result<Making, Error> {
        let making = if is_linked {
            let making = free_name(path)?;
            fs::hard_link(from, &making).of(&making)?;
            Making::left(path)?
        } else {
            let making = Making::create(path)?;
            let mut source = crate::parquet_file::source::plain_file(from).of(from)?;
            io::copy(&mut source, &mut &making.file).of(&making.making)?;
            making
        };
        making.sync()?;
        Ok(making)
    }

    /// The file that a kill left under its name for the time being.
    pub(crate) fn left(path: &Path) -> Result<Making, Error> {
        let making = making_path(path);
        let file = File::open(&making).of(&making)?;
        Ok(Making { path: path.to_owned(), making, file, is_finished: false })
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its name once it is finished.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name for the time being.
    pub(crate) fn making(&self) -> &Path {
        &self.making
    }

    /// Syncs the file.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file.sync_all().of(&self.making)?;
        reached(Step::Synced)
    }

    /// Syncs the file, gives it its name, and syncs the folder.
    ///
    /// # Errors
    /// The system's.
    pub fn finish(mut self) -> Result<(), Error> {
        self.sync()?;
        fs::rename(&self.making, &self.path).of(&self.path)?;
        self.is_finished = true;
        reached(Step::Renamed)?;
        sync_folder_of(&self.path)?;
        reached(Step::FolderSynced)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if !self.is_finished && !crash::is_on() {
            let _ = fs::remove_file(&self.making);
        }
    }
}

/// Writes a small file whole: under another name, synced, renamed, and the folder synced.
///
/// # Errors
/// The system's.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    prepare(path, bytes)?.finish()
}

/// Writes a small file under its name for the time being, and syncs it.
pub(crate) fn prepare(path: &Path, bytes: &[u8]) -> Result<Making, Error> {
    let making = Making::create(path)?;
    (&mut making.file()).write_all(bytes).of(path)?;
    making.sync()?;
    Ok(making)
}

/// A file without a name, so that a kill leaves nothing: it has this one for a moment.
pub(crate) fn unnamed(path: &Path) -> Result<File, Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::Io(path.to_owned(), error)),
        _ => {}
    }
    let file = File::options().read(true).write(true).create_new(true).open(path).of(path)?;
    fs::remove_file(path).of(path)?;
    Ok(file)
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::Io(path.to_owned(), error)),
        _ => {}
    }
    reached(Step::Removed)
}

/// Removes the oldest files of a folder while all have more than `bytes_max`: files that `is_meant` and that are not being
/// made. Returns the bytes of each.
pub(crate) fn trim(folder: &Path, bytes_max: u64, is_meant: impl Fn(&Path) -> bool) -> Result<Vec<u64>, Error> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.of(folder)?,
    };
    let mut found = Vec::new();
    for entry in listed {
        let path = entry.of(folder)?.path();
        let metadata = match fs::symlink_metadata(&path) {
            // Another process trims as well.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata.of(&path)?,
        };
        if metadata.is_file() && !is_making(&path) && is_meant(&path) {
            found.push((metadata.modified().of(&path)?, metadata.len(), path));
        }
    }
    found.sort();
    let mut bytes: u64 = found.iter().map(|(_, bytes, _)| bytes).sum();
    let mut removed = Vec::new();
    for (_, len, path) in found {
        if bytes <= bytes_max {
            break;
        }
        remove(&path)?;
        bytes -= len;
        removed.push(len);
    }
    Ok(removed)
}

/// Whether a file is being made.
pub(crate) fn is_making(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(MAKING))
}

/// SHA-256 of a plain file, and its bytes.
///
/// # Errors
/// The system's; the path is a link, a folder or a device.
pub fn digest(path: &Path) -> Result<([u8; 32], u64), Error> {
    // Nothing sets this flag.
    Ok(digest_until(path, &AtomicBool::new(false))?.unwrap_or_default())
}

/// The same, unless it is ended by the flag.
pub(crate) fn digest_until(path: &Path, is_ended: &AtomicBool) -> Result<Option<([u8; 32], u64)>, Error> {
    const PIECE_BYTES: usize = 256 << 10;
    let mut file = crate::parquet_file::source::plain_file(path).of(path)?;
    let (mut digest, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; PIECE_BYTES]);
    loop {
        if is_ended.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match file.read(&mut piece) {
            Ok(0) => return Ok(Some((digest.finalize().into(), bytes))),
            Ok(len) => {
                digest.update(&piece[..len]);
                bytes += len as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).of(path),
        }
    }
}

pub(crate) fn sync_folder_of(path: &Path) -> Result<(), Error> {
    // The parent of a bare name is empty.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).of(folder)
}

/// A name for the time being that no file has: a link with that name must not lead elsewhere.
fn free_name(path: &Path) -> Result<PathBuf, Error> {
    let making = making_path(path);
    match fs::remove_file(&making) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::Io(making, error)),
        _ => Ok(making),
    }
}

pub(crate) fn making_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(MAKING);
    name.into()
}

/// A digest as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// A digest of exactly 64 such digits.
pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    Condition::parse(&format!("0x{text}")).map(|digest| digest.0)
}

/// Steps until the process ends itself; 0: it does not.
static STEPS_LEFT: AtomicU64 = AtomicU64::new(0);

/// For crash tests of a running process: it ends itself at that step of the files of its archives, counted from 1.
pub fn crash_at(step: u64) {
    STEPS_LEFT.store(step, Ordering::Relaxed);
}

/// Points at which a test ends the process's work, as a kill does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Synced,
    Renamed,
    FolderSynced,
    /// A file was removed.
    Removed,
}

#[cfg(test)]
pub(crate) fn reached(step: Step) -> Result<(), Error> {
    if crash::step() {
        let error = io::Error::other(format!("killed at {step:?}"));
        return Err(Error::Io(PathBuf::new(), error));
    }
    Ok(())
}

#[cfg(not(test))]
pub(crate) fn reached(_: Step) -> Result<(), Error> {
    // Without a limit the counter stays at 0.
    let left = STEPS_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    if left == Ok(1) {
        std::process::abort();
    }
    Ok(())
}

#[cfg(not(test))]
mod crash {
    pub(super) fn is_on() -> bool {
        false
    }
}

/// A kill at the n-th step: this and all later steps fail, and nothing is cleaned up.
#[cfg(test)]
pub(crate) mod crash {
    use std::cell::Cell;

    thread_local! {
        /// Steps that are left until the kill; `None`: no kill.
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
        static KILLED: Cell<bool> = const { Cell::new(false) };
    }

    /// Sets the number of steps before the kill.
    pub(crate) fn after(steps: Option<u32>) {
        LEFT.set(steps);
        KILLED.set(false);
    }

    /// Whether the kill has happened.
    pub(crate) fn is_on() -> bool {
        KILLED.get()
    }

    pub(super) fn step() -> bool {
        match LEFT.get() {
            Some(0) => KILLED.set(true),
            Some(left) => LEFT.set(Some(left - 1)),
            None => {}
        }
        KILLED.get()
    }
}
