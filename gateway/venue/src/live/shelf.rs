//! A file with what the translator of a venue needs beyond the journal after a start without the venue, such as
//! irregular price grids.
//!
//! The journal is the catalogue of such a start: it holds each market's listing, state, tick and end. This file holds
//! no states, so it cannot undo a resolution.

use crate::skips::{Skip, Skips};
use ahash::AHashMap;
use engine::time::{SECOND, Timestamp};
use host::thread;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// Size limit for reading and writing, in bytes: enough for more markets than any venue has.
const SHELF_BYTES_MAX: u64 = 64 << 20;
/// How often changes are looked for.
const LOOK_EVERY: u64 = 60 * SECOND;

/// Catalogue rows by ticker; the file has one row per line.
pub(crate) struct Shelf {
    /// The file.
    path: PathBuf,
    rows: AHashMap<String, String>,
    /// The content of the file.
    written: String,
    looked_at: Timestamp,
    writing: Option<JoinHandle<()>>,
}

impl Shelf {
    /// Reads the file of an earlier run. A damaged file is renamed and counted; its valid rows are used.
    pub(crate) fn open(path: PathBuf, skips: &Skips) -> Shelf {
        let mut shelf = Shelf {
            path,
            rows: AHashMap::new(),
            written: String::new(),
            looked_at: Timestamp::default(),
            writing: None,
        };
        let path = &shelf.path;
        let text = match read(path) {
            Ok(text) => text,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    set_aside(path, &error.to_string(), skips);
                }
                return shelf;
            }
        };
        let text = String::from_utf8_lossy(&text);
        let mut broken = None;
        for line in text.lines() {
            match ticker(line) {
                Some(ticker) => drop(shelf.rows.insert(ticker, line.to_owned())),
                None => broken = Some(line),
            }
        }
        match broken {
            Some(line) => set_aside(&shelf.path, line, skips),
            None => shelf.written = text.into_owned(),
        }
        shelf
    }

    /// The row of a market, if any.
    pub(crate) fn row(&self, ticker: &str) -> Option<&str> {
        self.rows.get(ticker).map(String::as_str)
    }

    /// Called regularly: writes changed rows to the file, on a thread of its own.
    pub(crate) fn turn<'r>(&mut self, now: Timestamp, rows: impl FnOnce() -> Vec<(&'r str, String)>) {
        let is_writing = self.writing.as_ref().is_some_and(|writing| !writing.is_finished());
        if now.since(self.looked_at) < LOOK_EVERY || is_writing {
            return;
        }
        self.looked_at = now;
        // Markets are recalled only before the first poll.
        self.rows = AHashMap::new();
        if let Some(text) = self.changed(rows()) {
            let path = self.path.clone();
            let write = move || store(&path, &text);
            self.writing = thread::spawn_spare("shelf", write, || {}).ok();
        }
    }

    /// Writes the last changes before it returns.
    pub(crate) fn end(&mut self, rows: Vec<(&str, String)>) {
        if let Some(writing) = self.writing.take() {
            // A panic of the thread has been logged already.
            let _ = writing.join();
        }
        if let Some(text) = self.changed(rows) {
            store(&self.path, &text);
        }
    }

    /// The new content of the file, if it changed.
    fn changed(&mut self, rows: Vec<(&str, String)>) -> Option<String> {
        let text: String = rows.into_iter().flat_map(|(_, row)| [row, "\n".to_owned()]).collect();
        if text == self.written || text.len() as u64 > SHELF_BYTES_MAX {
            return None;
        }
        self.written.clone_from(&text);
        Some(text)
    }
}

/// The key of a row.
fn ticker(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Row {
        ticker: String,
    }
    serde_json::from_str::<Row>(line).ok().map(|row| row.ticker)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(SHELF_BYTES_MAX + 1).read_to_end(&mut text)?;
    match text.len() as u64 > SHELF_BYTES_MAX {
        true => Err(io::Error::other(format!("more than {SHELF_BYTES_MAX} bytes"))),
        false => Ok(text),
    }
}

fn set_aside(path: &Path, why: &str, skips: &Skips) {
    skips.count(Skip::UnreadableFile, || format!("{}: {why}", path.display()));
    let mut aside = path.as_os_str().to_owned();
    aside.push(".damaged");
    if let Err(error) = fs::rename(path, &aside) {
        tracing::warn!(file = %path.display(), %error, "a damaged file cannot be renamed; move it away");
    }
}

/// Replaces the file atomically. If that fails, the next start without the venue lacks the rows; nothing else is lost.
fn store(path: &Path, text: &str) {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".tmp");
    let write = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut file = File::create(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        File::open(folder)?.sync_all()
    };
    if let Err(error) = write() {
        tracing::warn!(folder = %folder.display(), %error, "rows of the venue cannot be stored; a start without the venue lacks them");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "grids.ndjson";

    fn row(ticker: &str) -> (&str, String) {
        (ticker, format!("{{\"ticker\":\"{ticker}\",\"price_ranges\":[]}}"))
    }

    #[test]
    fn rows_survive_a_restart_and_a_damaged_file_is_renamed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("venue");
        let skips = Skips::default();
        let open = || Shelf::open(folder.join(FILE), &skips);
        let mut shelf = open();
        shelf.turn(Timestamp(LOOK_EVERY), || vec![row("A"), row("B")]);
        // Too early to look again.
        shelf.turn(Timestamp(LOOK_EVERY + 1), || panic!("the interval has not passed"));
        shelf.end(vec![row("A"), row("B")]);
        let shelf = open();
        assert_eq!((shelf.row("A"), shelf.row("C")), (Some(row("A").1.as_str()), None));
        // Removed rows are dropped, and an unchanged file is not written.
        let mut shelf = open();
        fs::remove_file(folder.join(FILE)).unwrap();
        shelf.end(vec![row("A"), row("B")]);
        assert!(!folder.join(FILE).exists());
        shelf.end(vec![row("B")]);
        assert_eq!(open().row("A"), None);
        assert_eq!(skips.total(), 0);
        let cases: [&[u8]; 5] =
            [b"nonsense\n", b"{\"ticker\":7}\n", b"{\"ticker\":\"B\",\"pr", b"\0\0\0", b"\xff\xfe{\n"];
        for (number, damage) in cases.iter().enumerate() {
            let whole = format!("{}\n", row("B").1);
            fs::write(folder.join(FILE), [whole.as_bytes(), damage].concat()).unwrap();
            assert!(open().row("B").is_some(), "{damage:?}");
            assert_eq!(skips.get(Skip::UnreadableFile), number as u64 + 1, "{damage:?}");
            assert!(!folder.join(FILE).exists() && folder.join(format!("{FILE}.damaged")).exists(), "{damage:?}");
        }
        fs::remove_file(folder.join(format!("{FILE}.damaged"))).unwrap();
        fs::create_dir(folder.join(FILE)).unwrap();
        let mut shelf = open();
        shelf.end(vec![row("C")]);
        assert_eq!(open().row("C"), Some(row("C").1.as_str()));
        println!("a shelf: {} cases", cases.len() + 5);
    }
}
