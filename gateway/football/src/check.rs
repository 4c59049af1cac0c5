//! The check of a folder: every defect of its files with its place, and what no route shows.

use crate::kinds::{BYTES_MAX, Kind, Known};
use crate::reader::Defect;
use host::watched_file::{Look, WatchedFile};
use std::fs;
use std::io;
use std::path::Path;

/// What a check found.
#[derive(Debug, Default)]
pub struct Checked {
    /// The kinds whose files are there.
    pub found: Vec<Kind>,
    /// Name of the file, and the defect. The server does not read a file with one.
    pub defects: Vec<(String, Defect)>,
    /// Name of the file, and what no route shows: an entry about an unknown match, or the whole file.
    pub strays: Vec<(String, String)>,
}

/// Checks the files of a folder as a server reads them, and entries that no route would show.
///
/// # Errors
/// The folder cannot be listed.
pub fn check(dir: &Path) -> io::Result<Checked> {
    let (mut checked, mut known) = (Checked::default(), Known::default());
    for kind in Kind::ALL {
        let problems = match WatchedFile::new(dir.join(kind.file()), BYTES_MAX).look() {
            Look::Gone | Look::Same => continue,
            Look::New(content) => known.read(kind, &content).err().unwrap_or_default(),
            Look::Failed(error) => vec![Defect::of_file(error.to_string())],
        };
        checked.found.push(kind);
        checked.defects.extend(problems.into_iter().map(|defect| (kind.file(), defect)));
    }
    // Matches of a broken file are not known.
    if !checked.defects.iter().any(|(file, _)| *file == Kind::Fixtures.file()) {
        let stray = |(kind, id): (Kind, u64)| {
            (kind.file(), format!("is about the match {id}, which fixtures.json does not have"))
        };
        checked.strays.extend(known.strays().into_iter().map(stray));
    }
    let mut others = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".json") && !Kind::ALL.iter().any(|kind| kind.file() == name) {
            others.push(name);
        }
    }
    others.sort();
    let names = Kind::ALL.map(Kind::name).join(", ");
    let unknown = |name| (name, format!("is not the file of a kind; these are {names}"));
    checked.strays.extend(others.into_iter().map(unknown));
    Ok(checked)
}
