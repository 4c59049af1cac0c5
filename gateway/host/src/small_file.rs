//! Small files that the server keeps beside the log. Another file may have replaced one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The text of a file, or the first `bytes_max` bytes of a longer one.
///
/// # Errors
/// Those of the system, and one if the path is not a regular file: reading a device or a pipe may never end.
pub fn text(path: &Path, bytes_max: u64) -> io::Result<String> {
    // A symbolic link may point to one.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::other("is not a plain file; the server did not create it: move it away"));
    }
    let mut text = String::new();
    File::open(path)?.take(bytes_max).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_the_bound() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "0123456789").expect("written");
        std::os::unix::fs::symlink("file", at("link")).expect("a link");
        std::os::unix::fs::symlink("/dev/zero", at("endless")).expect("a link");
        for (name, bytes_max, expected) in [
            ("file", 99, Ok("0123456789")),
            ("file", 4, Ok("0123")),
            ("link", 10, Ok("0123456789")),
            ("nothing", 9, Err(io::ErrorKind::NotFound)),
            ("endless", 9, Err(io::ErrorKind::Other)),
            (".", 9, Err(io::ErrorKind::Other)),
        ] {
            let found = text(&at(name), bytes_max).map_err(|error| error.kind());
            assert_eq!(found.as_deref(), expected.as_ref().copied(), "{name}");
        }
        println!("small files: 6 cases");
    }
}
