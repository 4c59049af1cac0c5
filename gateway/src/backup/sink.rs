//! Where a backup goes: a folder, a tar stream, or a tar file.

use super::manifest::{MANIFEST, Part};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The destination of the files of a backup, in order.
pub trait Sink {
    /// Takes one file of exactly `bytes` bytes.
    ///
    /// # Errors
    /// The system's, of either side.
    fn file(&mut self, name: &str, bytes: u64, from: &mut dyn Read) -> io::Result<()>;

    /// Makes the files durable.
    ///
    /// # Errors
    /// The system's.
    fn end(self) -> io::Result<()>;
}

/// A backup as a folder of files. It is written under a temporary name and renamed when it is complete and on the
/// device.
pub struct Folder {
    temporary: PathBuf,
    place: PathBuf,
}

impl Folder {
    /// # Errors
    /// The system's; also if the destination already exists.
    pub fn begin(place: &Path) -> io::Result<Folder> {
        let temporary = temporary_name(place)?;
        DirBuilder::new().mode(0o700).create(&temporary)?;
        Ok(Folder { temporary, place: place.to_owned() })
    }
}

impl Sink for Folder {
    fn file(&mut self, name: &str, _: u64, from: &mut dyn Read) -> io::Result<()> {
        let path = self.temporary.join(name);
        let folder = path.parent().expect("it is in the folder");
        DirBuilder::new().mode(0o700).recursive(true).create(folder)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        io::copy(from, &mut file)?;
        file.sync_all()
    }

    fn end(self) -> io::Result<()> {
        sync_folders(&self.temporary)?;
        fs::rename(&self.temporary, &self.place)?;
        sync_parent(&self.place)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It was renamed, unless the copy failed.
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

/// A backup as a tar stream.
pub struct Stream<W: Write>(tar::Builder<W>);

impl<W: Write> Stream<W> {
    pub fn begin(out: W) -> Stream<W> {
        Stream(tar::Builder::new(out))
    }

    /// Ends the stream and returns its destination.
    fn out(self) -> io::Result<W> {
        let mut out = self.0.into_inner()?;
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> Sink for Stream<W> {
    fn file(&mut self, name: &str, bytes: u64, from: &mut dyn Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(0o600);
        header.set_entry_type(tar::EntryType::Regular);
        self.0.append_data(&mut header, name, from)
    }

    fn end(self) -> io::Result<()> {
        self.out().map(drop)
    }
}

/// A backup as a tar file, also written under a temporary name.
pub struct TarFile {
    stream: Option<Stream<File>>,
    temporary: PathBuf,
    place: PathBuf,
}

impl TarFile {
    /// # Errors
    /// As [`Folder::begin`].
    pub fn begin(place: &Path) -> io::Result<TarFile> {
        let temporary = temporary_name(place)?;
        let file = File::options().write(true).create_new(true).mode(0o600).open(&temporary)?;
        Ok(TarFile { stream: Some(Stream::begin(file)), temporary, place: place.to_owned() })
    }
}

impl Sink for TarFile {
    fn file(&mut self, name: &str, bytes: u64, from: &mut dyn Read) -> io::Result<()> {
        self.stream.as_mut().expect("it has not ended").file(name, bytes, from)
    }

    fn end(mut self) -> io::Result<()> {
        self.stream.take().expect("it ends once").out()?.sync_all()?;
        fs::rename(&self.temporary, &self.place)?;
        sync_parent(&self.place)
    }
}

impl Drop for TarFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}

/// The temporary name under which `place` is written. Removes what an interrupted backup left under it, and nothing
/// else.
fn temporary_name(place: &Path) -> io::Result<PathBuf> {
    if place.symlink_metadata().is_ok() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "already exists"));
    }
    let mut name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(".making");
    let temporary = place.with_file_name(name);
    match temporary.symlink_metadata() {
        Ok(found) if !is_left_over(&temporary, &found)? => {
            let why = format!("{} exists and is not an interrupted backup: move it away", temporary.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Ok(found) if found.is_dir() => fs::remove_dir_all(&temporary)?,
        Ok(_) => fs::remove_file(&temporary)?,
        Err(_) => {}
    }
    Ok(temporary)
}

/// Whether something consists only of parts of a backup.
fn is_left_over(temporary: &Path, found: &fs::Metadata) -> io::Result<bool> {
    let is_part = |name: &str| name == MANIFEST || Part::of(name).is_some();
    if found.is_file() {
        // A stream begins with the name of its first file.
        let mut name = Vec::new();
        File::open(temporary)?.take(100).read_to_end(&mut name)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        return Ok(found.len() == 0 || std::str::from_utf8(name).is_ok_and(is_part));
    }
    let mut folders = vec![(temporary.to_owned(), String::new())];
    while let Some((folder, before)) = folders.pop().filter(|_| found.is_dir()) {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, entry.file_name());
            let name = format!("{before}{}", name.to_string_lossy());
            if kind.is_dir() && (name == "history" || name.starts_with("history/store")) {
                folders.push((entry.path(), format!("{name}/")));
            } else if !kind.is_file() || !is_part(&name) {
                return Ok(false);
            }
        }
    }
    Ok(found.is_dir())
}

/// Makes the names in a folder, and in all folders in it, durable.
pub(crate) fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}
