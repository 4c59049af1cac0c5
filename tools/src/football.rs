//! `football`: checks a folder of facts before a server reads it.

use crate::Failure;
use crate::settings::print_line;
use clap::{Args, Subcommand};
use football::check::check;
use football::kinds::Kind;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum FootballVerb {
    /// Print each defect with its file and place, and each stray: an entry about a match that fixtures.json does not
    /// have, or another JSON file. Exit code 1 when there is one, and for a folder without a file of a kind, which is
    /// most likely a wrong path.
    Check(CheckOptions),
}

#[derive(Args)]
#[command(after_help = "Example:\n  papertape football check facts/")]
pub struct CheckOptions {
    /// The folder, as in the setting `football.provider`.
    dir: PathBuf,
}

impl FootballVerb {
    pub fn run(self) -> Result<(), Failure> {
        let FootballVerb::Check(CheckOptions { dir }) = self;
        let checked = check(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        for (file, defect) in &checked.defects {
            print_line(format_args!("{file}: {defect}"));
        }
        for (file, stray) in &checked.strays {
            print_line(format_args!("{file}: {stray}"));
        }
        let counts = [counted(checked.defects.len(), "defect"), counted(checked.strays.len(), "stray")];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        let names: Vec<_> = checked.found.iter().copied().map(Kind::name).collect();
        match names.as_slice() {
            _ if !counts.is_empty() => Err(format!("{}: {}", dir.display(), counts.join(", ")).into()),
            [] => Err(format!("{}: there is no file of a kind; is it the right folder?", dir.display()).into()),
            names => {
                print_line(format_args!("sound: {}", names.join(", ")));
                Ok(())
            }
        }
    }
}

/// A count with its word; `None` for 0.
fn counted(count: usize, word: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        _ => Some(format!("{count} {word}s")),
    }
}
