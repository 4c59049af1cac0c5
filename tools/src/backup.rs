//! `backup` and `restore`: a data directory into a backup, and a backup into a new data directory.

use crate::Failure;
use crate::settings::say;
use clap::Args;
use gateway::backup::{Folder, Source, Stream, TarFile};
use gateway::clock::Clock;
use gateway::restore::{self, Input, RestoreError};
use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A command line that asks for what cannot be, beyond what its parser sees.
#[derive(Debug)]
pub struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

#[derive(Args)]
#[command(after_help = "Example:\n  papertape backup papertape-data --out monday.tar")]
pub struct Backup {
    /// The data directory of a stopped server.
    dir: PathBuf,
    /// Where the backup goes: a new folder, a new file whose name ends in .tar, or - for a tar stream on standard output.
    #[arg(long, value_name = "DIR|FILE.tar|-")]
    out: PathBuf,
    /// Copy the server's own secrets, too: who has such a backup can sign identity tokens and derive keys of addresses.
    #[arg(long)]
    with_secrets: bool,
}

impl Backup {
    pub fn run(self) -> Result<(), Failure> {
        let Backup { dir, out, with_secrets } = self;
        let source = Source::stopped(&dir, with_secrets, Clock::wall().now())?;
        let at = |error| format!("{}: {error}", out.display());
        let is_stream = out.as_os_str() == "-";
        let manifest = if is_stream {
            source.copy(Stream::begin(BufWriter::new(std::io::stdout().lock())))?
        } else if is_tar(&out) {
            source.copy(TarFile::begin(&out).map_err(at)?)?
        } else {
            source.copy(Folder::begin(&out).map_err(at)?)?
        };
        let line = format!("{}  LSN {}, {} files", manifest.digest, manifest.lsn, manifest.files.len());
        if is_stream {
            let _ = writeln!(std::io::stderr(), "{line}");
        } else {
            say(line);
        }
        Ok(())
    }
}

fn is_tar(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tar")
}

#[derive(Args)]
#[command(after_help = "Example:\n  papertape restore monday.tar --out papertape-data")]
pub struct Restore {
    /// The backup: a folder, a tar file, or - for a tar stream on standard input.
    from: PathBuf,
    /// The data directory to make; it must be new or empty.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Restore {
    pub fn run(self) -> Result<(), Failure> {
        let Restore { from, out } = self;
        let source = if from.as_os_str() == "-" {
            Input::Stream(Box::new(std::io::stdin().lock()))
        } else if from.is_dir() {
            Input::Folder(from)
        } else {
            let file = File::open(&from).map_err(|error| Usage(format!("{}: {error}", from.display())))?;
            Input::Stream(Box::new(BufReader::new(file)))
        };
        let restored = restore::restore(source, &out, Clock::wall().now()).map_err(|error| match error {
            RestoreError::Target(_) => Failure::from(Usage(error.to_string())),
            error => error.into(),
        })?;
        say(format_args!("{}  LSN {}, instance {}", restored.digest, restored.lsn, restored.instance));
        Ok(())
    }
}
