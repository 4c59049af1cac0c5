//! Secrets: never shown; some are kept in the data directory.

use host::secret::Secret;
use host::small_file;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The secret in that file; a new one of 64 hex digits if there is no such file.
///
/// # Errors
/// The system's, each with the path; anything but a plain file, which may have no end; and a file with less than 32
/// bytes, which must not be overwritten.
pub(super) fn kept(path: &Path) -> io::Result<Secret> {
    read_or_make(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Longer ones are cut off.
const SECRET_BYTES_MAX: u64 = 4_096;

/// The secret in a file that an operator made, for use in a header.
///
/// # Errors
/// As [`kept`]; also a missing file, and a character that is not allowed in a header.
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

/// Writes it under a temporary name and renames it: a crash leaves no partial secret.
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

/// What happened to a kept secret since the last start that checked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is the same, or no start has checked it before.
    Same,
    /// It was missing, so a new one was created.
    Missing,
    /// It was replaced by another one.
    Changed,
}

/// As [`kept`], and returns what happened to the secret. For that, a fingerprint is stored beside it (`NAME.check`): a
/// hash, useless to its readers. `is_expected`: this directory must have the secret, even without a fingerprint.
///
/// # Errors
/// As [`kept`]. A fingerprint that cannot be read or written is not an error.
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
        tracing::warn!(%error, file = %check.display(), "the fingerprint of a secret could not be written: a later \
            change of the secret will not be reported");
    }
    Ok((secret, became))
}

/// Checks whether a start could use the file, if it exists.
pub(super) fn look(path: &Path) -> io::Result<()> {
    if path.try_exists()? { kept(path).map(drop) } else { Ok(()) }
}

fn fingerprint(secret: &Secret) -> String {
    let hash = Sha256::new().chain_update(b"papertape kept secret\0").chain_update(secret.expose()).finalize();
    hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}
