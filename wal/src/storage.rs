//! The seam to the file system: one flat directory of files, and mappings of them.
//!
//! Two implementations: [`crate::Files`] (a real directory, in `files.rs`) and [`crate::fault::Faults`] (in memory, with
//! crashes and failing calls). Everything above it works on names inside the directory and never on paths.

use std::io;
use std::thread::JoinHandle;

use crate::error::{Error, PlaceFault};

/// A directory that holds a log. Clones are the same directory.
pub trait Storage: Clone + Send + 'static {
    /// An open file.
    type File: StoredFile;
    /// A shared, writable mapping of a whole file.
    type Map: SegmentMap;
    /// Ownership of the directory, given back when dropped.
    type Lock: DirectoryLock;

    /// Takes the directory for this process, or says who has it ([`Error::Locked`]). Never waits.
    fn lock(&self) -> Result<Self::Lock, Error>;
    /// Names and lengths in bytes of all files, in any order.
    fn list(&self) -> io::Result<Vec<(String, u64)>>;
    /// Opens an existing file for reading and writing. What is no plain file is refused with a [`PlaceFault`] inside of the
    /// error, here and by the two calls below, and never waited for.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Opens an existing file for reading only.
    fn open_to_read(&self, name: &str) -> io::Result<Self::File>;
    /// Makes an empty file, which must not exist.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// Renames a file over whatever has the new name. Durable after [`Storage::sync_directory`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Durable after [`Storage::sync_directory`].
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes names durable: creations, renames and removals so far. Like every call that looks for a name it fails with
    /// [`PlaceFault::DirectoryRemoved`] inside of the error where somebody removed the directory.
    fn sync_directory(&self) -> io::Result<()>;
    /// Maps the first `bytes` of the file.
    fn map(&self, file: &Self::File, bytes: u64) -> io::Result<Self::Map>;
    /// Bytes that may still be taken.
    fn free_bytes(&self) -> io::Result<u64>;
    /// Sixteen bytes that nobody can guess.
    fn random_id(&self) -> io::Result<[u8; 16]>;
    /// For messages.
    fn place(&self) -> String;
    /// Has `work` done beside the caller, or at once where that cannot be had. Where the order of all calls is to be the same
    /// each time it is done when somebody waits for it.
    fn beside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Beside<T>;
}

/// Work that is done beside its caller.
pub enum Beside<T> {
    Done(T),
    UnderWay(JoinHandle<T>),
    Later(Box<dyn FnOnce() -> T + Send>),
}

impl<T> Beside<T> {
    /// What came of it.
    ///
    /// # Panics
    /// As the work did.
    pub fn wait(self) -> T {
        match self {
            Beside::Done(done) => done,
            Beside::UnderWay(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Beside::Later(work) => work(),
        }
    }
}

/// An open file. All calls give their offset; there is no file pointer.
pub trait StoredFile: Send + 'static {
    /// Reads until the buffer is full or the file ends; how many bytes it were.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes contents and length durable, whether written or stored through a mapping.
    fn sync(&self) -> io::Result<()>;
    /// Makes the bytes `from..to` durable, and nothing else: other pages stay as warm as they are, and only those of the
    /// range may cool. The length must be durable already.
    fn sync_range(&self, from: u64, to: u64) -> io::Result<()>;
    /// Length in bytes.
    fn bytes(&self) -> io::Result<u64>;
    /// Whether the file still has a name. Without one it takes writes and syncs like any other, and is gone when it is closed.
    fn has_name(&self) -> io::Result<bool>;
    /// Reserves room for the first `bytes`, so that a full disk shows now.
    fn reserve(&self, bytes: u64) -> io::Result<()>;
    /// Advice: forget cached pages of the first `bytes` bytes that are not waiting to be written, so that the next read asks
    /// the device.
    fn forget(&self, bytes: u64);
    /// Forgets all cached pages like [`StoredFile::forget`] and reads the file again, in single pages: a sync writes whole pages
    /// of the cache, and reading in order makes them large. What stands behind a page that cannot be read is left to its reader.
    fn reload(&self);
    /// Advice: start to read all of the file into the cache.
    fn prefetch(&self);
    /// Starts to write the bytes `from..to` to the device, and returns when those before them that were started are there.
    /// Nothing is durable by it; [`StoredFile::sync`] finds less to do.
    ///
    /// # Errors
    /// What went wrong with bytes that were started before: no later call tells of it again.
    fn write_back(&self, from: u64, to: u64) -> io::Result<()>;
}

/// A mapping of a segment. One owner, which writes; nobody reads through it.
pub trait SegmentMap: Send + 'static {
    /// Gives `bytes` bytes from offset `at` to `write`.
    ///
    /// # Panics
    /// When the range reaches beyond the mapping.
    fn write<R>(&mut self, at: usize, bytes: usize, write: impl FnOnce(&mut [u8]) -> R) -> R;
    /// Advice: `bytes` bytes from offset `at` on will soon be stored. Beyond the mapping it does nothing.
    fn expect(&mut self, at: usize, bytes: usize);
    /// Has each page of `from..to` stored to once without changing it, so that later stores find warm pages.
    fn touch(&mut self, from: usize, to: usize);
}

/// Ownership of a directory.
pub trait DirectoryLock: Send + Sync + 'static {
    /// Writes a line for the one who finds the directory locked.
    fn describe(&self, text: &str) -> io::Result<()>;
}

/// Name of the lock file.
pub const LOCK_NAME: &str = "lock";

/// Becomes [`Error::Place`] where it is told.
pub(crate) fn refused(fault: PlaceFault) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, fault)
}
