//! `clock`: puts right what a wrong clock of this machine did to a stopped data directory.

use crate::Failure;
use crate::settings::{DirectoryArgument, say};
use clap::{Args, Subcommand};
use gateway::set_back::{SetBack, set_back};
use host::clock::Clock;
use wire::instant::ts_text;

#[derive(Subcommand)]
pub enum ClockVerb {
    /// Let server time go on from now where the newest record is of the future: the clock was ahead when it was written.
    /// What happened later than now by that clock happened now; orders that ended stay ended.
    SetBack(SetBackOptions),
}

#[derive(Args)]
#[command(after_help = "Example:\n  papertape clock set-back papertape-data --dry-run")]
pub struct SetBackOptions {
    #[command(flatten)]
    dir: DirectoryArgument,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl ClockVerb {
    pub fn run(self) -> Result<(), Failure> {
        let ClockVerb::SetBack(SetBackOptions { dir, dry_run }) = self;
        let SetBack { from, to, lsn } = set_back(dir.path(), Clock::wall().wall_now(), dry_run)?;
        let (from, to) = (ts_text(from), ts_text(to));
        match lsn {
            Some(lsn) => say(format_args!("set back from {from} to {to}: record {lsn}")),
            None => say(format_args!("would be set back from {from} to {to}; nothing was written")),
        }
        Ok(())
    }
}
