//! The interface to the file system: one flat directory of files, and mappings of them.
//!
//! Two implementations: [`crate::Files`] (a real directory, in `files.rs`) and [`crate::fault::Faults`] (in memory, with
//! crashes and failing calls). The rest of the package works on names inside the directory and never on paths.

use std::io;
use std::thread::JoinHandle;

use crate::error::{Error, PlaceFault};

/// A directory that holds a log. Clones are the same directory.
pub trait Storage: Clone + Send + 'static {
    /// An open file.
    type File: StoredFile;
    /// A shared, writable mapping of a whole file.
    type Map: SegmentMap;
    /// Ownership of the directory, released on drop.
    type Lock: DirectoryLock;

    /// Takes the directory for this process, or fails with its owner ([`Error::Locked`]). Never blocks.
    fn lock(&self) -> Result<Self::Lock, Error>;
    /// Names and lengths in bytes of all files, in any order.
    fn list(&self) -> io::Result<Vec<(String, u64)>>;
    /// Opens an existing file for reading and writing. Anything but a plain file is refused with a [`PlaceFault`]
    /// inside the error and never waited for; so do the two calls below.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Opens an existing file for reading only.
    fn open_to_read(&self, name: &str) -> io::Result<Self::File>;
    /// Creates an empty file, which must not exist.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// Renames a file, replacing a file of the new name. Durable after [`Storage::sync_directory`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Durable after [`Storage::sync_directory`].
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals so far durable. Like every call that resolves a name, it fails with
    /// [`PlaceFault::DirectoryRemoved`] inside the error when the directory was removed.
    fn sync_directory(&self) -> io::Result<()>;
    /// Maps the first `bytes` of the file.
    fn map(&self, file: &Self::File, bytes: u64) -> io::Result<Self::Map>;
    /// Bytes that are still free.
    fn free_bytes(&self) -> io::Result<u64>;
    /// Sixteen unpredictable bytes.
    fn random_id(&self) -> io::Result<[u8; 16]>;
    /// The directory's path, for messages.
    fn place(&self) -> String;
    /// Runs `work` concurrently with the caller, or immediately where that is not possible. A storage whose calls must
    /// have a fixed order runs it when the caller waits for it.
    fn in_background<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Background<T>;
}

/// Work that runs concurrently with its caller.
pub enum Background<T> {
    Done(T),
    UnderWay(JoinHandle<T>),
    Later(Box<dyn FnOnce() -> T + Send>),
}

impl<T> Background<T> {
    /// The result of the work.
    ///
    /// # Panics
    /// If the work panicked.
    pub fn wait(self) -> T {
        match self {
            Background::Done(done) => done,
            Background::UnderWay(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Background::Later(work) => work(),
        }
    }
}

/// An open file. All calls give their offset; there is no file pointer.
pub trait StoredFile: Send + 'static {
    /// Reads until the buffer is full or the file ends. Returns the number of bytes.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes contents and length durable, whether written or stored through a mapping.
    fn sync(&self) -> io::Result<()>;
    /// Makes the bytes `from..to` durable, and nothing else: other pages stay warm, and only those of the range may
    /// cool. The length must be durable already.
    fn sync_range(&self, from: u64, to: u64) -> io::Result<()>;
    /// Length in bytes.
    fn bytes(&self) -> io::Result<u64>;
    /// Whether the file still has a name. Without one it takes writes and syncs like any other file, and is gone when
    /// closed.
    fn has_name(&self) -> io::Result<bool>;
    /// Reserves room for the first `bytes`, so that a full disk is reported now.
    fn reserve(&self, bytes: u64) -> io::Result<()>;
    /// Advice: forget cached pages of the first `bytes` bytes that are not dirty, so that the next read goes to the
    /// device.
    fn forget(&self, bytes: u64);
    /// Forgets all cached pages like [`StoredFile::forget`] and reads the file again, in single pages: a sync writes
    /// whole pages of the cache, and reading in sequence makes them large. Stops at a page that cannot be read; the
    /// file's reader reports it.
    fn reload(&self);
    /// Advice: start to read the whole file into the cache.
    fn prefetch(&self);
    /// Starts to write the bytes `from..to` to the device, and returns when writes that were started for bytes before
    /// them are done. Makes nothing durable, but [`StoredFile::sync`] has less to do.
    ///
    /// # Errors
    /// The failure of a write that was started earlier; no later call reports it again.
    fn write_back(&self, from: u64, to: u64) -> io::Result<()>;
}

/// A mapping of a segment. It has one owner, which writes; it is never used for reading.
pub trait SegmentMap: Send + 'static {
    /// Passes `bytes` bytes from offset `at` on to `write`.
    ///
    /// # Panics
    /// When the range reaches beyond the mapping.
    fn write<R>(&mut self, at: usize, bytes: usize, write: impl FnOnce(&mut [u8]) -> R) -> R;
    /// Advice: `bytes` bytes from offset `at` on will be stored soon. Does nothing past the end of the mapping.
    fn expect(&mut self, at: usize, bytes: usize);
    /// Writes to each page of `from..to` without changing its content, so that later stores cause no page fault.
    fn touch(&mut self, from: usize, to: usize);
}

/// Ownership of a directory.
pub trait DirectoryLock: Send + Sync + 'static {
    /// Writes a line for a process that finds the directory locked.
    fn describe(&self, text: &str) -> io::Result<()>;
}

/// Name of the lock file.
pub const LOCK_NAME: &str = "lock";

/// An I/O error that becomes [`Error::Place`].
pub(crate) fn refused(fault: PlaceFault) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, fault)
}
