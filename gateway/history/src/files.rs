//! The files of a store as they are at one moment, for a copy of them while the store is in use.
//!
//! ```text
//! store/version, store/lock              which format; empty
//! store/<n>.jnl                          journals, the newest of which grows
//! store/keyspaces/<n>/current            which version file counts
//! store/keyspaces/<n>/v<n>               the tables that count
//! store/keyspaces/<n>/tables/<n>         a sorted file, which never changes
//! ```
//!
//! Journals are opened before tables: rows that move from one to the other meanwhile are in both. Tables that count are
//! not removed while they count, so if the pointers are the same after everything was opened, everything that they name
//! is there. An open file remains readable when it is removed.

use crate::store::{CURRENT, FOLDER, JOURNAL, KEYSPACES, MARKER, TABLES, end_of_batches};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

const LOCK: &str = "lock";
/// How often the opening begins again because the store has changed meanwhile.
const TRIES: u32 = 64;
/// The pause before that.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// An open file of a store.
#[derive(Debug)]
pub struct StoreFile {
    /// Below the folder of the history.
    pub name: String,
    pub file: File,
    /// Bytes that belong to that moment.
    pub bytes: u64,
}

/// Whether a file below the folder of the history has the name of one of the store.
pub fn is_store_file(name: &str) -> bool {
    let is_number = |text: &str| text.parse::<u64>().is_ok_and(|number| number.to_string() == text);
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        [FOLDER, MARKER | LOCK] => true,
        [FOLDER, journal] => journal.strip_suffix(".jnl").is_some_and(is_number),
        [FOLDER, KEYSPACES, number, CURRENT] => is_number(number),
        [FOLDER, KEYSPACES, number, version] => is_number(number) && version.strip_prefix('v').is_some_and(is_number),
        [FOLDER, KEYSPACES, number, TABLES, table] => is_number(number) && is_number(table),
        _ => false,
    }
}

/// Opens the files of the store in the folder of a history; none if there is no store.
///
/// # Errors
/// The system's.
pub fn store_files(folder: &Path) -> io::Result<Vec<StoreFile>> {
    let place = folder.join(FOLDER);
    if !place.join(MARKER).is_file() {
        return Ok(Vec::new());
    }
    let mut tries_left = TRIES;
    loop {
        tries_left -= 1;
        let why = match pointers(&place).and_then(|before| Ok((open_all(folder)?, before == pointers(&place)?))) {
            Ok((files, true)) => return Ok(files),
            Ok((_, false)) => io::Error::other("its tables change all the time"),
            Err(error) => error,
        };
        let may_repeat = matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::Other);
        if !may_repeat || tries_left == 0 {
            return Err(why);
        }
        std::thread::sleep(TRY_AGAIN_AFTER);
    }
}

/// What the pointer of each keyspace has.
fn pointers(place: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let folders = names(&place.join(KEYSPACES))?;
    let pointer = |name: String| Ok((name.clone(), fs::read(place.join(KEYSPACES).join(name).join(CURRENT))?));
    folders.into_iter().map(pointer).collect()
}

fn open_all(folder: &Path) -> io::Result<Vec<StoreFile>> {
    let place = folder.join(FOLDER);
    let mut files = Vec::new();
    let mut open = |name: String| -> io::Result<()> {
        let file = File::open(folder.join(&name))?;
        // A journal is longer than what was written to it.
        let bytes = if name.ends_with(JOURNAL) { end_of_batches(&file)? } else { file.metadata()?.len() };
        files.push(StoreFile { name, file, bytes });
        Ok(())
    };
    for name in names(&place)? {
        let name = format!("{FOLDER}/{name}");
        if is_store_file(&name) {
            open(name)?;
        }
    }
    for keyspace in names(&place.join(KEYSPACES))? {
        let below = format!("{FOLDER}/{KEYSPACES}/{keyspace}");
        let own = names(&folder.join(&below))?.into_iter().map(|name| format!("{below}/{name}"));
        let tables = names(&folder.join(&below).join(TABLES))?;
        let tables = tables.into_iter().map(|name| format!("{below}/{TABLES}/{name}"));
        own.chain(tables).filter(|name| is_store_file(name)).try_for_each(&mut open)?;
    }
    Ok(files)
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_store_have_their_names() {
        let cases = [
            ("store/version", true),
            ("store/lock", true),
            ("store/0.jnl", true),
            ("store/keyspaces/0/current", true),
            ("store/keyspaces/12/v3", true),
            ("store/keyspaces/12/tables/18446744073709551615", true),
            ("store", false),
            ("store/", false),
            ("store/01.jnl", false),
            ("store/.jnl", false),
            ("store/0.damaged", false),
            ("store/keyspaces", false),
            ("store/keyspaces/x/current", false),
            ("store/keyspaces/../current", false),
            ("store/keyspaces/1/v", false),
            ("store/keyspaces/1/v-1", false),
            ("store/keyspaces/1/tables/..", false),
            ("store/keyspaces/1/tables/1/2", false),
            ("store/keyspaces/1/blobs/1", false),
            ("store.making/version", false),
            ("/store/version", false),
            ("version", false),
            ("", false),
        ];
        for (name, expected) in cases {
            assert_eq!(is_store_file(name), expected, "{name:?}");
        }
        println!("names of a store: {} cases", cases.len());
    }
}
