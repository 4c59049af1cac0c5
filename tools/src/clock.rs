//! `clock`: repairs a stopped data directory that was written under a wrong clock.

use crate::Failure;
use crate::settings::{DirectoryArgument, print_line};
use clap::{Args, Subcommand};
use gateway::set_back::{SetBack, set_back};
use host::clock::Clock;
use std::io::Write as _;
use wire::instant::ts_text;

#[derive(Subcommand)]
pub enum ClockVerb {
    /// Let server time continue from now although the newest record has a later time: the clock was ahead when the
    /// record was written. Events with a time after now get the time now; ended orders stay ended.
    SetBack(SetBackOptions),
}

#[derive(Args)]
#[command(after_help = "Example:\n  papertape clock set-back papertape-data --dry-run")]
pub struct SetBackOptions {
    #[command(flatten)]
    dir: DirectoryArgument,
    /// Only print what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl ClockVerb {
    pub fn run(self) -> Result<(), Failure> {
        let ClockVerb::SetBack(SetBackOptions { dir, dry_run }) = self;
        let SetBack { from, to, lsn, history_left } = set_back(dir.path(), Clock::wall().wall_now(), dry_run)?;
        let (from, to) = (ts_text(from), ts_text(to));
        if let Some(why) = history_left {
            let _ = writeln!(
                std::io::stderr(),
                "warning: the price history could not be set back, and may have prices of the future: {why}\n\
                 To begin again without old prices, move the folder history/ away."
            );
        }
        match lsn {
            Some(lsn) => print_line(format_args!("set back from {from} to {to}: record {lsn}")),
            None => print_line(format_args!("would be set back from {from} to {to}; nothing was written")),
        }
        Ok(())
    }
}
