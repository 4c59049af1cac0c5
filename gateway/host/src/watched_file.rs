//! Files that an operator edits while the server runs: read again when they change.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file that is looked at now and then.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    bytes_max: u64,
    seen: Seen,
}

/// What the last look found.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    Gone,
    Read(Stamp),
    /// With this message.
    Failed(String),
}

/// Identifies the content of a file without reading it: device, number, length, times of the content and of the entry.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

/// What a look finds.
#[derive(Debug)]
pub enum Look {
    /// As at the last look.
    Same,
    /// There is no such file.
    Gone,
    /// The content, which is new.
    New(Vec<u8>),
    /// It cannot be read, for another reason than at the last look.
    Failed(io::Error),
}

impl WatchedFile {
    /// A file of at most this many bytes; a longer one is not read.
    pub fn new(path: impl Into<PathBuf>, bytes_max: u64) -> WatchedFile {
        WatchedFile { path: path.into(), bytes_max, seen: Seen::Nothing }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at the file, and reads it if it has changed since the last look.
    pub fn look(&mut self) -> Look {
        match self.read() {
            Ok(None) => Look::Same,
            Ok(Some((stamp, content))) => {
                self.seen = Seen::Read(stamp);
                Look::New(content)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.saw(Seen::Gone, Look::Gone),
            Err(error) => self.saw(Seen::Failed(error.to_string()), Look::Failed(error)),
        }
    }

    fn saw(&mut self, seen: Seen, look: Look) -> Look {
        if self.seen == seen {
            return Look::Same;
        }
        self.seen = seen;
        look
    }

    /// The content with its stamp; `None` if it is the one that was read last.
    fn read(&self) -> io::Result<Option<(Stamp, Vec<u8>)>> {
        let found = fs::metadata(&self.path)?;
        // Opening a pipe may never end, and reading a device neither.
        if !found.is_file() {
            return Err(io::Error::other("is not a plain file"));
        }
        if self.seen == Seen::Read(stamp(&found)) {
            return Ok(None);
        }
        let mut file = File::open(&self.path)?;
        // Of the file that is read: another one may have its name by now.
        let stamp = stamp(&file.metadata()?);
        let mut content = Vec::new();
        (&mut file).take(self.bytes_max + 1).read_to_end(&mut content)?;
        if content.len() as u64 > self.bytes_max {
            return Err(io::Error::other(format!("has more than {} bytes", self.bytes_max)));
        }
        Ok(Some((stamp, content)))
    }
}

fn stamp(of: &Metadata) -> Stamp {
    (of.dev(), of.ino(), of.size(), (of.mtime(), of.mtime_nsec()), (of.ctime(), of.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a look found, in a word and the content.
    fn look(file: &mut WatchedFile) -> (&'static str, String) {
        match file.look() {
            Look::Same => ("same", String::new()),
            Look::Gone => ("gone", String::new()),
            Look::New(content) => ("new", String::from_utf8(content).expect("a text")),
            Look::Failed(error) => ("failed", error.to_string()),
        }
    }

    #[test]
    fn a_file_is_read_once_for_each_change() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        let mut file = WatchedFile::new(&path, 8);
        let replace = |text: &str| {
            let other = dir.path().join("other");
            fs::write(&other, text).expect("written");
            fs::rename(other, &path).expect("renamed");
        };
        let mut cases = 0;
        let mut expect = |file: &mut WatchedFile, word: &str, text: &str| {
            assert_eq!(look(file), (word, text.to_owned()));
            assert_eq!(look(file).0, "same", "after {word}");
            cases += 2;
        };
        expect(&mut file, "gone", "");
        fs::write(&path, "one").expect("written");
        expect(&mut file, "new", "one");
        // Of the same length and time: another file.
        let before = fs::metadata(&path).expect("it is there").modified().expect("a time");
        replace("two");
        File::options().write(true).open(&path).expect("it opens").set_modified(before).expect("a time");
        expect(&mut file, "new", "two");
        fs::write(&path, "12345678").expect("written");
        expect(&mut file, "new", "12345678");
        fs::write(&path, "123456789").expect("written");
        expect(&mut file, "failed", "has more than 8 bytes");
        replace("");
        expect(&mut file, "new", "");
        fs::remove_file(&path).expect("removed");
        expect(&mut file, "gone", "");
        fs::create_dir(&path).expect("a folder");
        expect(&mut file, "failed", "is not a plain file");
        fs::remove_dir(&path).expect("removed");
        std::os::unix::fs::symlink("/dev/zero", &path).expect("a link");
        assert_eq!(look(&mut file).0, "same", "for the same reason");
        fs::remove_file(&path).expect("removed");
        replace("three");
        expect(&mut file, "new", "three");
        println!("looks at a file: {} cases", cases + 1);
    }
}
