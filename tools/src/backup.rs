//! `backup` and `restore`: copy a data directory, stopped or in use by a server, into a backup, and a backup into a new
//! data directory.

mod remote;

use crate::Failure;
use crate::admin_client::Usage;
use crate::settings::print_line;
use clap::Args;
use engine::shard::digest::ENCODING;
use gateway::backup::manifest::Manifest;
use gateway::backup::{self, BackupError, Folder, Sink, Source, Stream, TarFile};
use gateway::restore::{self, Input, RestoreError, Restored};
use host::clock::Clock;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Backup {
    /// The data directory of a stopped server.
    #[arg(required_unless_present = "admin", conflicts_with = "admin")]
    dir: Option<PathBuf>,
    /// The admin listener of a running server, like http://127.0.0.1:9464 (its admin.listen).
    #[arg(long, value_name = "URL", requires = "token_file")]
    admin: Option<String>,
    /// The file with the admin token (its admin.token_file, by default admin_token in its data directory).
    #[arg(long, value_name = "FILE", requires = "admin", conflicts_with = "dir")]
    token_file: Option<PathBuf>,
    /// Where to write the backup: a new folder, a new file whose name ends in .tar, or - for a tar stream on standard
    /// output.
    #[arg(long, value_name = "DIR|FILE.tar|-")]
    out: PathBuf,
    /// Copy the server's own secrets, too. Such a backup allows its holder to sign identity tokens and to derive the
    /// keys of addresses.
    #[arg(long)]
    with_secrets: bool,
}

impl Backup {
    pub fn run(self) -> Result<(), Failure> {
        let Backup { dir, admin, token_file, out, with_secrets } = self;
        if let Some(dir) = &dir {
            apart(dir, &out)?;
        }
        let from = match (dir, admin, token_file) {
            (Some(dir), ..) => Taken::Here(Box::new(Source::stopped(&dir, with_secrets, Clock::wall().now())?)),
            (None, Some(url), Some(file)) => Taken::There(remote::begin(&url, &file, with_secrets)?),
            _ => return Err(Usage("a directory, or --admin with --token-file".to_owned()).into()),
        };
        let at = |error| format!("{}: {error}", out.display());
        let is_stream = out.as_os_str() == "-";
        let manifest = if is_stream {
            from.into_sink(Stream::begin(BufWriter::new(std::io::stdout().lock())))?
        } else if is_tar(&out) {
            from.into_sink(TarFile::begin(&out).map_err(at)?)?
        } else {
            from.into_sink(Folder::begin(&out).map_err(at)?)?
        };
        if let Some(why) = &manifest.history_left_out {
            let _ = writeln!(std::io::stderr(), "warning: the price history is not in this backup: {why}");
        }
        let line = format!(
            "{}  LSN {}, encoding {}, {} files",
            manifest.digest,
            manifest.lsn,
            manifest.digest_encoding,
            manifest.files.len()
        );
        if is_stream {
            let _ = writeln!(std::io::stderr(), "{line}");
        } else {
            print_line(line);
        }
        Ok(())
    }
}

/// The source of a backup.
enum Taken {
    Here(Box<Source>),
    There(remote::Answer),
}

impl Taken {
    fn into_sink(self, sink: impl Sink) -> Result<Manifest, BackupError> {
        match self {
            Taken::Here(source) => source.copy(sink),
            Taken::There(answer) => backup::receive(answer, sink),
        }
    }
}

/// Refuses a backup inside the directory that it copies, or around it: it would be lost together with that directory.
fn apart(dir: &Path, out: &Path) -> Result<(), Usage> {
    // A path that does not resolve is reported by the code that opens it.
    let Ok(dir) = dir.canonicalize() else { return Ok(()) };
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Ok(parent), Some(name)) = (parent.canonicalize(), out.file_name()) else { return Ok(()) };
    let place = parent.join(name);
    if out.as_os_str() != "-" && (place.starts_with(&dir) || dir.starts_with(&place)) {
        let (out, dir) = (out.display(), dir.display());
        return Err(Usage(format!(
            "{out}: is inside {dir}, or around it: write the backup elsewhere, best to another disk"
        )));
    }
    Ok(())
}

fn is_tar(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tar")
}

#[derive(Args)]
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
        let Restored { digest, lsn, instance } = restored;
        print_line(format_args!("{digest}  LSN {lsn}, encoding {ENCODING}, instance {instance}"));
        Ok(())
    }
}
