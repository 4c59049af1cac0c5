//! Output files. A file is replaced as a whole or stays as it was: a later check may need the data of an earlier run.

use crate::Failure;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A destination that was writable before the run.
pub struct Destination {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
    /// Written beside the file, and renamed to it at the end; removed if there is no end.
    Temporary(NamedTempFile),
    /// A destination that is not a regular file, like a pipe, cannot be replaced.
    Direct(File),
}

impl Destination {
    /// # Errors
    /// The path with the reason when the destination is not writable.
    pub fn open(path: &Path) -> Result<Destination, String> {
        let sink = match fs::metadata(path) {
            Ok(there) if !there.is_file() => File::options().write(true).open(path).map(Sink::Direct),
            // A symbolic link keeps its target.
            Ok(_) => fs::canonicalize(path).and_then(|place| beside(&place)),
            Err(_) => beside(path),
        };
        sink.map(|sink| Destination { path: path.to_owned(), sink })
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// # Errors
    /// The path with the reason; the earlier content is unchanged.
    pub fn write(self, text: &str) -> Result<(), Failure> {
        let Destination { path, sink } = self;
        let written = match sink {
            Sink::Temporary(mut file) => file.write_all(text.as_bytes()).and_then(|()| {
                let place = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                file.persist(place).map(drop).map_err(|error| error.error)
            }),
            Sink::Direct(mut file) => file.write_all(text.as_bytes()),
        };
        written.map_err(|error| format!("{}: {error}", path.display()).into())
    }
}

/// The canonical path, so that two can be compared; of a file that does not exist yet, its future path.
pub fn place(path: &Path) -> PathBuf {
    let of_folder = || Some(fs::canonicalize(folder(path)).ok()?.join(path.file_name()?));
    fs::canonicalize(path).ok().or_else(of_folder).unwrap_or_else(|| path.to_owned())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn beside(path: &Path) -> std::io::Result<Sink> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut prefix = name.to_owned();
    prefix.push(".");
    // The usual mode of a new file; the process's umask still applies.
    let mode = Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(&prefix).permissions(mode).tempfile_in(folder(path)).map(Sink::Temporary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_of_a_file_are_one_place() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("keys"), "k").expect("room");
        std::os::unix::fs::symlink(at("keys"), at("link")).expect("a link");
        fs::create_dir(at("inner")).expect("a folder");
        let rows = [
            ("keys", "keys", true),
            ("keys", "link", true),
            ("keys", "inner/../keys", true),
            ("new", "inner/../new", true),
            ("keys", "new", false),
            ("inner/keys", "keys", false),
            ("nowhere/new", "new", false),
        ];
        for (one, other, is_same) in rows {
            assert_eq!(place(&at(one)) == place(&at(other)), is_same, "{one} and {other}");
        }
        println!("places: {} cases", rows.len());
    }
}
