//! A real directory. Its name is looked up once, when it is opened. From then on every name is resolved inside the
//! directory that was opened, checked and locked. If that directory is moved, the log moves with it; a new directory
//! under the old name is not touched.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use rustix::fs::{self as relative, AtFlags, FileType, Mode, OFlags};

use crate::error::{Error, PlaceFault};
use crate::segment::{FileMap, FileView};
use crate::storage::{Background, DirectoryLock, LOCK_NAME, Storage, StoredFile, refused};
use crate::sys;

/// A real directory: 0700, its files 0600, owned by this user, on a local file system, without symbolic links.
#[derive(Debug, Clone)]
pub struct Files {
    /// The path under which the directory was opened: for messages.
    path: Arc<PathBuf>,
    /// Kept open: names are looked up in the directory that was checked, even if its path changes.
    directory: Arc<File>,
}

impl Files {
    /// Opens the directory, or creates it (0700, not its parents) if it does not exist.
    ///
    /// # Errors
    /// [`Error::Place`] when it is a symbolic link, owned by another user, open to others, or on a network file system.
    pub fn open(path: impl AsRef<Path>) -> Result<Files, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {
                // The new name must also survive a power loss: sync the parent.
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                File::open(parent).and_then(|parent| parent.sync_all()).map_err(Error::io("sync parent of", &name))?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("create", &name)(error)),
        }
        Files::open_existing(path)
    }

    /// Opens the directory and creates nothing: for tools that only read.
    ///
    /// # Errors
    /// As [`Files::open`], and when it does not exist.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Files, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let place = |fault| Error::Place { file: name.clone(), fault };
        let seen = fs::symlink_metadata(path).map_err(Error::io("stat", &name))?;
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
        let seen = directory.metadata().map_err(Error::io("stat", &name))?;
        if seen.uid() != sys::effective_user() {
            return Err(place(PlaceFault::Owner));
        }
        if seen.mode() & 0o077 != 0 {
            return Err(place(PlaceFault::Mode(seen.mode() & 0o777)));
        }
        let (kind, _) = sys::file_system(&directory).map_err(Error::io("stat the file system of", &name))?;
        if NETWORK_FILE_SYSTEMS.contains(&kind) {
            return Err(place(PlaceFault::Network(kind)));
        }
        Ok(Files { path: Arc::new(path.to_owned()), directory: Arc::new(directory) })
    }

    /// Opens a name inside the directory, or reports what is there in place of a file.
    fn opened(&self, name: &str, how: OFlags) -> io::Result<RealFile> {
        // No link is followed, and a device or a pipe in place of a file does not block the open.
        let how = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let call = || relative::openat(&*self.directory, name, how, Mode::RUSR | Mode::WUSR);
        let file = rustix::io::retry_on_intr(call).map_err(|error| self.explained(error, name))?;
        let file = File::from(file);
        refuse_foreign(&file.metadata()?)?;
        Ok(RealFile { file, view: OnceLock::new() })
    }

    /// The system's error for a directory, a link or a socket in place of a file depends on the call. If the name
    /// belongs to one, that is the error.
    fn explained(&self, error: rustix::io::Errno, name: &str) -> io::Error {
        let fault = match relative::statat(&*self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(seen) => match FileType::from_raw_mode(seen.st_mode) {
                FileType::RegularFile => return error.into(),
                FileType::Symlink => PlaceFault::SymbolicLink,
                _ => PlaceFault::NotPlain,
            },
            Err(_) => return self.unless_removed(error),
        };
        refused(fault)
    }

    /// The error of a call that finds nothing: if the whole directory was removed, that is the error.
    fn unless_removed(&self, error: rustix::io::Errno) -> io::Error {
        let is_removed = error == rustix::io::Errno::NOENT && self.is_removed();
        if is_removed { refused(PlaceFault::DirectoryRemoved) } else { error.into() }
    }

    /// Whether the directory has no name any more. It still takes syncs, but no file can be created in it.
    fn is_removed(&self) -> bool {
        self.directory.metadata().is_ok_and(|seen| seen.nlink() == 0)
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
        let file = self.opened(LOCK_NAME, OFlags::RDWR | OFlags::CREATE).map_err(Error::io("open", LOCK_NAME))?;
        match file.file.try_lock() {
            Ok(()) => Ok(RealLock(file.file)),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The owner may not have written its process id yet; then the id is unknown.
                let _ = (&file.file).take(64).read_to_string(&mut text);
                let pid = text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
                Err(Error::Locked { pid })
            }
            Err(TryLockError::Error(error)) => Err(Error::io("lock", LOCK_NAME)(error)),
        }
    }

    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let mut names = Vec::new();
        let entries = relative::Dir::read_from(&*self.directory).map_err(|error| self.unless_removed(error))?;
        for entry in entries {
            let entry = entry?;
            // Names that are not UTF-8 do not belong to the log.
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | "..") {
                continue;
            }
            match relative::statat(&*self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(seen) => names.push((name.to_owned(), seen.st_size as u64)),
                // Recycled by a running process in the meantime.
                Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // A removed directory reads as an empty one.
        if names.is_empty() && self.is_removed() { Err(refused(PlaceFault::DirectoryRemoved)) } else { Ok(names) }
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        self.opened(name, OFlags::RDWR)
    }

    fn open_to_read(&self, name: &str) -> io::Result<RealFile> {
        self.opened(name, OFlags::RDONLY)
    }

    fn create(&self, name: &str) -> io::Result<RealFile> {
        self.opened(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        relative::renameat(&*self.directory, from, &*self.directory, to).map_err(|error| self.unless_removed(error))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        relative::unlinkat(&*self.directory, name, AtFlags::empty()).map_err(|error| self.explained(error, name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync_all()?;
        if self.is_removed() { Err(refused(PlaceFault::DirectoryRemoved)) } else { Ok(()) }
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

    fn in_background<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Background<T> {
        // Sent once the thread exists, so that it is still here if there is none.
        let (sender, receiver) = mpsc::sync_channel(1);
        let body = move || {
            let work: Box<dyn FnOnce() -> T + Send> = receiver.recv().expect("the sender lives until it has sent");
            work()
        };
        match thread::Builder::new().name("log reader".to_owned()).spawn(body) {
            Ok(thread) => {
                sender.send(Box::new(work)).expect("the thread receives it");
                Background::UnderWay(thread)
            }
            Err(_) => Background::Done(work()),
        }
    }
}

/// A file of a real directory.
#[derive(Debug)]
pub struct RealFile {
    file: File,
    /// Syncing a range takes addresses: those of the log's own mapping, or of one made for this. Each further mapping
    /// of a page is one more that write-back must visit.
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

    fn has_name(&self) -> io::Result<bool> {
        self.file.metadata().map(|seen| seen.nlink() > 0)
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
        // After the advice that reads are random, the kernel reads exactly what each call asks for, in single pages.
        sys::advise(&self.file, u64::MAX, libc::POSIX_FADV_RANDOM);
        let (mut piece, mut at) = (vec![0; PIECE_BYTES], 0);
        while let Ok(read) = self.read_at(&mut piece, at)
            && read > 0
        {
            at += read as u64;
        }
    }
}

/// The lock of a real directory: `flock` on its lock file, released by the system when the process ends in any way.
#[derive(Debug)]
pub struct RealLock(File);

impl DirectoryLock for RealLock {
    fn describe(&self, text: &str) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.write_all_at(text.as_bytes(), 0)
    }
}
