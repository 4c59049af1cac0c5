//! The checks of a data directory, for a start and for tools that only read.

use crate::{config, directory_venue};
use engine::shard::replay::State;
use host::leap;
use journal::recover::{RecoverError, Report, look};
use std::io;
use std::path::{Path, PathBuf};

/// The checks of a start, without owning or changing the directory: it refuses what a start would refuse, and only
/// that. (For a start without configured secrets, with a working disk, in a directory that no other process owns.)
///
/// # Errors
/// [`RecoverError`].
pub fn check(directory: &Path) -> Result<(State, Report), RecoverError> {
    let found = look(directory, false)?;
    check_kept(directory, &config::SECRETS)?;
    Ok(found)
}

/// The part of the checks that is about files beside the log: the venues of the directory, a doubt of the clock, and
/// those of the kept secrets that the start would use ([`config::SECRETS`] if none is configured). Missing files are
/// created by the start.
///
/// # Errors
/// [`RecoverError::Kept`], with the path.
pub fn check_kept(directory: &Path, secrets: &[&str]) -> Result<(), RecoverError> {
    let named = |path: PathBuf| {
        move |error: io::Error| RecoverError::Kept(io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    };
    directory_venue::noted(directory).map_err(named(directory.join(directory_venue::FILE)))?;
    leap::doubted(directory).map_err(named(directory.join(leap::DOUBT_FILE)))?;
    secrets.iter().try_for_each(|name| config::look_at_kept_secret(&directory.join(name))).map_err(RecoverError::Kept)
}
