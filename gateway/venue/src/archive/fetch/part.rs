//! The part of a file that is on disk: `NAME.part`, and `NAME.note` with what is known about the whole.
//!
//! The note is written after the bytes that it counts are synced, so that a kill or a loss of power costs bytes and never
//! leaves wrong ones.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Longest note.
const NOTE_BYTES_MAX: u64 = 4 << 10;
const MAGIC: [u8; 4] = *b"PAR1";

/// A file that is being downloaded.
#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    note_path: PathBuf,
    file: File,
    /// What the server said when the first byte came; `None` before.
    note: Option<Note>,
    /// Bytes so far.
    len: u64,
}

/// What is known about the whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    bytes: u64,
    /// By which the server says that the file is still the same; `null`: it cannot.
    etag: Option<String>,
    /// Bytes that are on disk.
    synced: u64,
}

impl Part {
    /// Opens the part of a file. What no note counts is dropped.
    pub(super) fn open(folder: &Path, name: &str) -> io::Result<Part> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{name}.part"));
        let note_path = folder.join(format!("{name}.note"));
        let mut file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
        let note = read_note(&note_path).filter(|note| file.metadata().is_ok_and(|of| of.len() >= note.synced));
        let len = note.as_ref().map_or(0, |note| note.synced);
        file.set_len(len)?;
        file.seek(SeekFrom::Start(len))?;
        Ok(Part { path, note_path, file, note, len })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of the whole file, once the server has said so.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.note.as_ref().map(|note| note.bytes)
    }

    /// By which the rest can be asked for; `None`: only the whole file can.
    pub(super) fn etag(&self) -> Option<&str> {
        self.note.as_ref()?.etag.as_deref().filter(|_| self.len > 0)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.note.as_ref().is_some_and(|note| note.bytes == note.synced)
    }

    /// Starts with a file of this length.
    pub(super) fn begin(&mut self, bytes: u64, etag: Option<String>) -> io::Result<()> {
        self.clear()?;
        self.note = Some(Note { bytes, etag, synced: 0 });
        Ok(())
    }

    /// Drops all bytes. The note goes first: it never counts bytes of another file.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        remove(&self.note_path)?;
        self.note = None;
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.len = 0;
        Ok(())
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Bytes that are not noted.
    pub(super) fn unsynced(&self) -> u64 {
        self.len - self.note.as_ref().map_or(0, |note| note.synced)
    }

    /// Syncs what came, then notes it.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.unsynced() == 0 {
            return Ok(());
        }
        self.file.sync_data()?;
        let Some(note) = &mut self.note else { return Ok(()) };
        note.synced = self.len;
        let text = serde_json::to_vec(note)?;
        archive::write_file(&self.note_path, &text).map_err(io::Error::other)
    }

    /// Whether the first bytes are those of a Parquet file; true before there are four.
    pub(super) fn begins_well(&self) -> io::Result<bool> {
        Ok(self.len < 4 || self.magic_at(0)? == MAGIC)
    }

    /// Whether the last bytes are those of a Parquet file.
    pub(super) fn ends_well(&self) -> io::Result<bool> {
        Ok(self.len >= 4 && self.magic_at(self.len - 4)? == MAGIC)
    }

    fn magic_at(&self, at: u64) -> io::Result<[u8; 4]> {
        let mut magic = [0; 4];
        self.file.read_exact_at(&mut magic, at)?;
        Ok(magic)
    }

    /// Removes both files. What stays is dropped or used by the next download.
    pub(super) fn remove(&self) {
        for path in [&self.note_path, &self.path] {
            if let Err(error) = remove(path) {
                tracing::debug!(%error, path = %path.display(), "a part of a download stays");
            }
        }
    }
}

fn read_note(path: &Path) -> Option<Note> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(NOTE_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice::<Note>(&text).ok().filter(|note| note.synced <= note.bytes)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part continues after its note, in each state that a kill leaves.
    #[test]
    fn parts_after_a_kill() {
        const NAME: &str = "x.parquet";
        // note, bytes on disk, bytes that count, whether it is whole
        let note = |bytes: u64, synced: u64| format!(r#"{{"bytes":{bytes},"etag":"\"a\"","synced":{synced}}}"#);
        let cases = [
            (None, 0, 0, false),
            (None, 10, 0, false),
            (Some(note(20, 10)), 10, 10, false),
            (Some(note(20, 10)), 15, 10, false),
            // Bytes that the note counts are gone.
            (Some(note(20, 10)), 9, 0, false),
            (Some(note(10, 10)), 10, 10, true),
            // Damaged notes.
            (Some(note(10, 11)), 11, 0, false),
            (Some(String::new()), 10, 0, false),
            (Some("{".into()), 10, 0, false),
            (Some(r#"{"bytes":-1,"etag":null,"synced":-1}"#.into()), 10, 0, false),
            (Some("[".repeat(100_000)), 10, 0, false),
            (Some(note(20, 10) + &" ".repeat(5_000)), 10, 10, false),
        ];
        for (number, (note, on_disk, counts, is_whole)) in cases.iter().enumerate() {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join("x.parquet.part"), vec![7; *on_disk]).expect("a part");
            if let Some(note) = note {
                fs::write(folder.path().join("x.parquet.note"), note).expect("a note");
            }
            let mut part = Part::open(folder.path(), NAME).expect("a part");
            assert_eq!((part.len(), part.is_whole()), (*counts, *is_whole), "case {number}");
            assert_eq!(part.etag().is_some(), *counts > 0, "case {number}");
            if part.bytes().is_none() {
                part.begin(13, None).expect("begun");
            }
            if !is_whole {
                part.append(b"abc").expect("written");
                part.sync().expect("synced");
                let again = Part::open(folder.path(), NAME).expect("a part");
                assert_eq!(again.len(), counts + 3, "case {number}");
            }
            part.remove();
            assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "case {number}");
        }
        println!("parts: {} cases", cases.len());
    }
}
