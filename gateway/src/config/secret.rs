//! Secrets: shown nowhere; one of them is kept in the data directory.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A value that is shown nowhere and wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(zeroize::Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Secret {
        Secret(zeroize::Zeroizing::new(text))
    }

    /// A new one of 64 random hex digits.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn random() -> Result<Secret, getrandom::Error> {
        let mut random = zeroize::Zeroizing::new([0u8; 32]);
        getrandom::fill(&mut random[..])?;
        Ok(Secret::new(random.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The secret itself; for the code that signs and verifies with it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The secret in that file; a new one of 64 hex digits when there is no such file.
///
/// # Errors
/// The system's, each with the path; something that is no plain file, which may never be read to its end; and a file that
/// holds less than 32 bytes: it is not ours to overwrite.
pub(super) fn kept(path: &Path) -> io::Result<Secret> {
    read_or_make(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn read_or_make(path: &Path) -> io::Result<Secret> {
    // A link may lead to one.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::other("is no plain file; the server did not make it"));
    }
    match File::open(path) {
        Ok(file) => {
            let mut text = String::new();
            file.take(4_096).read_to_string(&mut text)?;
            let text = text.trim_end().to_owned();
            if text.len() < 32 {
                return Err(io::Error::other("holds no secret of at least 32 bytes"));
            }
            Ok(Secret::new(text))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path),
        Err(error) => Err(error),
    }
}

/// Makes it beside its place and moves it there whole: a death in between leaves no half secret behind.
fn make(path: &Path) -> io::Result<Secret> {
    let secret = Secret::random().map_err(io::Error::other)?;
    let making = path.with_extension("making");
    match fs::remove_file(&making) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&making)?;
    file.write_all(secret.expose().as_bytes())?;
    file.sync_all()?;
    fs::rename(&making, path)?;
    Ok(secret)
}
