//! Secrets: shown nowhere; one of them is kept in the data directory.

use host::secret::Secret;
use host::small_file;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The secret in that file; a new one of 64 hex digits when there is no such file.
///
/// # Errors
/// The system's, each with the path; something that is no plain file, which may never be read to its end; and a file that
/// holds less than 32 bytes: it is not ours to overwrite.
pub(super) fn kept(path: &Path) -> io::Result<Secret> {
    read_or_make(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Longer ones are cut off.
const SECRET_BYTES_MAX: u64 = 4_096;

/// The secret in a file that somebody else has made, to be shown in a header.
///
/// # Errors
/// As [`kept`]; when there is no such file; and a character that no header may have.
pub(super) fn given(path: &Path) -> io::Result<Secret> {
    let printable = |secret: Secret| match secret.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(secret),
        false => Err(io::Error::other("holds a character that is not printable ASCII")),
    };
    read(path).and_then(printable).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn read_or_make(path: &Path) -> io::Result<Secret> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path),
        read => read,
    }
}

fn read(path: &Path) -> io::Result<Secret> {
    let text = small_file::text(path, SECRET_BYTES_MAX)?.trim_end().to_owned();
    if text.len() < 32 {
        return Err(io::Error::other("holds no secret of at least 32 bytes"));
    }
    Ok(Secret::new(text))
}

/// Makes it beside its place and moves it there whole: a death in between leaves no half secret behind.
fn make(path: &Path) -> io::Result<Secret> {
    let secret = Secret::random().map_err(io::Error::other)?;
    put(path, secret.expose().as_bytes())?;
    Ok(secret)
}

fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let making = path.with_extension("making");
    match fs::remove_file(&making) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&making)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&making, path)
}

/// What became of a kept secret since the last start that looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is the same, or no start has looked before.
    Same,
    /// It was gone, so another one was made.
    Missing,
    /// Another one stands in its place.
    Changed,
}

/// As [`kept`], and says what became of the secret. A fingerprint of it lies beside it for that (`NAME.check`): a hash, of
/// no use to who reads it. `is_expected`: this directory must have the secret, even without a fingerprint.
///
/// # Errors
/// As [`kept`]. A fingerprint that cannot be read or written is no error.
pub(super) fn watched(path: &Path, is_expected: bool) -> io::Result<(Secret, Kept)> {
    let check = path.with_extension("check");
    let last = small_file::text(&check, SECRET_BYTES_MAX).ok();
    let was_there = path.try_exists().unwrap_or(true);
    let secret = kept(path)?;
    let now = fingerprint(&secret);
    let became = match &last {
        _ if !was_there && (is_expected || last.is_some()) => Kept::Missing,
        Some(last) if last.trim_end() != now => Kept::Changed,
        _ => Kept::Same,
    };
    if last.as_deref() != Some(&now)
        && let Err(error) = put(&check, now.as_bytes())
    {
        tracing::warn!(%error, file = %check.display(), "a later change of this secret cannot be noticed");
    }
    Ok((secret, became))
}

/// Whether a start takes what lies there, if anything does.
pub(super) fn look(path: &Path) -> io::Result<()> {
    if path.try_exists()? { kept(path).map(drop) } else { Ok(()) }
}

fn fingerprint(secret: &Secret) -> String {
    let hash = Sha256::new().chain_update(b"papertape kept secret\0").chain_update(secret.expose()).finalize();
    hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}
