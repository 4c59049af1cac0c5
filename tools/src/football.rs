//! `football`: checks a folder of facts before a server reads it.

use crate::Failure;
use crate::settings::print_line;
use clap::{Args, Subcommand};
use football::check::check;
use football::kinds::Kind;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum FootballVerb {
    /// Print each defect with its file and place.
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
        let names: Vec<_> = checked.found.iter().copied().map(Kind::name).collect();
        match (checked.defects.len(), names.as_slice()) {
            (0, []) => Err(format!("{}: there is no file of a kind", dir.display()).into()),
            (0, names) => {
                print_line(format_args!("sound: {}", names.join(", ")));
                Ok(())
            }
            (1, _) => Err(format!("{}: 1 defect", dir.display()).into()),
            (count, _) => Err(format!("{}: {count} defects", dir.display()).into()),
        }
    }
}
