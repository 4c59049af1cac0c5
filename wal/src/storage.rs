//! The seam to the file system: one flat directory of files, and mappings of them.
//!
//! Two implementations: [`Files`] (a real directory) and [`crate::fault::Faults`] (in memory, with crashes and failing
//! calls). Everything above it works on names inside the directory and never on paths.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, JoinHandle};

use crate::error::{Error, PlaceFault};
use crate::segment::{FileMap, FileView};
use crate::sys;

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
    /// Makes names durable: creations, renames and removals so far.
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

/// A real directory: 0700, its files 0600, owned by this user, on a local file system, without symbolic links.
#[derive(Debug, Clone)]
pub struct Files {
    path: Arc<PathBuf>,
    /// Kept open: directory syncs go to the directory that was checked.
    directory: Arc<File>,
}

impl Files {
    /// Opens the directory, making it (0700, not its parents) when it is not there.
    ///
    /// # Errors
    /// [`Error::Place`] when it is a symbolic link, another user's, open to others, or on a network file system.
    pub fn open(path: impl AsRef<Path>) -> Result<Files, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {
                // The new name must survive a power loss as well: sync the parent.
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                File::open(parent).and_then(|parent| parent.sync_all()).map_err(Error::io("sync parent of", &name))?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("create", &name)(error)),
        }
        Files::open_existing(path)
    }

    /// Opens the directory and makes nothing: for tools that look and do not write.
    ///
    /// # Errors
    /// As [`Files::open`], and when it does not exist.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Files, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let place = |fault| Error::Place { file: name.clone(), fault };
        let seen = fs::symlink_metadata(path).map_err(Error::io("look at", &name))?;
        if seen.is_symlink() {
            return Err(place(PlaceFault::SymbolicLink));
        }
        if !seen.is_dir() {
            return Err(place(PlaceFault::Type));
        }
        let directory = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY)
            .open(path)
            .map_err(Error::io("open", &name))?;
        let seen = directory.metadata().map_err(Error::io("look at", &name))?;
        if seen.uid() != sys::effective_user() {
            return Err(place(PlaceFault::Owner));
        }
        if seen.mode() & 0o077 != 0 {
            return Err(place(PlaceFault::Mode(seen.mode() & 0o777)));
        }
        let (kind, _) = sys::file_system(&directory).map_err(Error::io("look at the file system of", &name))?;
        if NETWORK_FILE_SYSTEMS.contains(&kind) {
            return Err(place(PlaceFault::Network(kind)));
        }
        Ok(Files { path: Arc::new(path.to_owned()), directory: Arc::new(directory) })
    }

    fn options(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        // No link is followed, and a device or a pipe in place of a file does not make the open wait.
        options.read(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options
    }

    fn checked(&self, file: File) -> io::Result<RealFile> {
        refuse_foreign(&file.metadata()?)?;
        Ok(RealFile { file, view: OnceLock::new() })
    }

    /// Opens what is there, or says what stands in place of a file.
    fn opened(&self, options: &OpenOptions, name: &str) -> io::Result<RealFile> {
        let opened = options.open(self.path.join(name)).map_err(|error| self.explained(error, name));
        opened.and_then(|file| self.checked(file))
    }

    /// The system's words for a directory, a link or a socket in place of a file depend on the call. Where it is one, that
    /// is the error.
    fn explained(&self, error: io::Error, name: &str) -> io::Error {
        let fault = match fs::symlink_metadata(self.path.join(name)) {
            Ok(seen) if seen.is_symlink() => PlaceFault::SymbolicLink,
            Ok(seen) if !seen.is_file() => PlaceFault::NotPlain,
            _ => return error,
        };
        refused(fault)
    }
}

/// Types of fstatfs(2) whose locks or syncs cross a network: NFS, SMB (three), 9P, Ceph, AFS (two), Coda, Lustre, OCFS2,
/// GFS2, NetWare.
const NETWORK_FILE_SYSTEMS: [u64; 13] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x0102_1997,
    0x00c3_6400,
    0x5346_414f,
    0x6b41_4653,
    0x7375_7245,
    0x0bd0_0bd0,
    0x7461_636f,
    0x0116_1970,
    0x564c,
];

/// Becomes [`Error::Place`] where it is told.
pub(crate) fn refused(fault: PlaceFault) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, fault)
}

fn refuse_foreign(seen: &Metadata) -> io::Result<()> {
    let refuse = |fault| Err(refused(fault));
    if !seen.is_file() {
        return refuse(PlaceFault::NotPlain);
    }
    if seen.uid() != sys::effective_user() {
        return refuse(PlaceFault::Owner);
    }
    if seen.mode() & 0o077 != 0 {
        return refuse(PlaceFault::Mode(seen.mode() & 0o777));
    }
    Ok(())
}

impl Storage for Files {
    type File = RealFile;
    type Map = FileMap;
    type Lock = RealLock;

    fn lock(&self) -> Result<RealLock, Error> {
        let mut options = self.options();
        options.write(true).create(true).truncate(false);
        let file = self.opened(&options, LOCK_NAME).map_err(Error::io("open", LOCK_NAME))?;
        match file.file.try_lock() {
            Ok(()) => Ok(RealLock(file.file)),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The owner may be about to write it; then the id is simply not known.
                let _ = (&file.file).take(64).read_to_string(&mut text);
                let pid = text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
                Err(Error::Locked { pid })
            }
            Err(TryLockError::Error(error)) => Err(Error::io("lock", LOCK_NAME)(error)),
        }
    }

    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&*self.path)? {
            let entry = entry?;
            // Names that are not text are none of the log's.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let seen = match fs::symlink_metadata(entry.path()) {
                Ok(seen) => seen,
                // Recycled by a running process while this one looks.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            names.push((name, seen.len()));
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        self.opened(self.options().write(true), name)
    }

    fn open_to_read(&self, name: &str) -> io::Result<RealFile> {
        self.opened(&self.options(), name)
    }

    fn create(&self, name: &str) -> io::Result<RealFile> {
        self.options().write(true).create_new(true).open(self.path.join(name)).and_then(|file| self.checked(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name)).map_err(|error| self.explained(error, name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn map(&self, file: &RealFile, bytes: u64) -> io::Result<FileMap> {
        let map = FileMap::new(&file.file, bytes)?;
        file.view.get_or_init(|| map.view());
        Ok(map)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        sys::file_system(&self.directory).map(|(_, free_bytes)| free_bytes)
    }

    fn random_id(&self) -> io::Result<[u8; 16]> {
        let mut id = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut id)?;
        Ok(id)
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn beside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Beside<T> {
        // Handed over once there is a thread, so that it is still here where there is none.
        let (sender, receiver) = mpsc::sync_channel(1);
        let body = move || {
            let work: Box<dyn FnOnce() -> T + Send> = receiver.recv().expect("it is sent below");
            work()
        };
        match thread::Builder::new().name("log reader".to_owned()).spawn(body) {
            Ok(thread) => {
                sender.send(Box::new(work)).expect("it waits for it");
                Beside::UnderWay(thread)
            }
            Err(_) => Beside::Done(work()),
        }
    }
}

/// A file of a real directory.
#[derive(Debug)]
pub struct RealFile {
    file: File,
    /// The system call that syncs a range wants addresses: the log's own mapping, or one for it alone. Each further mapping
    /// of a page is one more that write-back has to look at.
    view: OnceLock<FileView>,
}

impl StoredFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_range(&self, from: u64, to: u64) -> io::Result<()> {
        let view = match self.view.get() {
            Some(view) => view,
            None => {
                let view = FileView::of(&self.file)?;
                self.view.get_or_init(|| view)
            }
        };
        view.sync(from as usize, to as usize)
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.metadata().map(|seen| seen.len())
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        sys::reserve(&self.file, bytes)
    }

    fn forget(&self, bytes: u64) {
        sys::advise(&self.file, bytes, libc::POSIX_FADV_DONTNEED);
    }

    fn prefetch(&self) {
        sys::advise(&self.file, u64::MAX, libc::POSIX_FADV_WILLNEED);
    }

    fn write_back(&self, from: u64, to: u64) -> io::Result<()> {
        sys::write_back(&self.file, from, to)
    }

    fn reload(&self) {
        const PIECE_BYTES: usize = 256 << 10;
        self.forget(u64::MAX);
        // Where reads are said to be anywhere, the kernel brings in exactly what each asks for, in single pages.
        sys::advise(&self.file, u64::MAX, libc::POSIX_FADV_RANDOM);
        let (mut piece, mut at) = (vec![0; PIECE_BYTES], 0);
        while let Ok(read) = self.read_at(&mut piece, at)
            && read > 0
        {
            at += read as u64;
        }
    }
}

/// The lock of a real directory: `flock` on its lock file, given back by the system when the process ends in any way.
#[derive(Debug)]
pub struct RealLock(File);

impl DirectoryLock for RealLock {
    fn describe(&self, text: &str) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.write_all_at(text.as_bytes(), 0)
    }
}
