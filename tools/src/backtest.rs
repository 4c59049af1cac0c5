//! `backtest`: of a specification on an archive, or of an unmodified bot against a recording
//! (gateway/docs/simulation.md §6.4, gateway/docs/backtest-bot.md).

mod bot;
mod outcome;
mod spec;

use crate::Failure;
use clap::Args;
use std::fmt;
use std::path::PathBuf;

/// Exit codes besides 0: completed.
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const OTHER_RESULT: u8 = 3;

#[derive(Args)]
pub struct BacktestVerb {
    /// Run a bot against a recording, on one clock, instead of a specification.
    #[arg(long)]
    bot: bool,
    /// Write the summary, or the report about a bot, as JSON; - is standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    of_spec: spec::SpecVerb,
    #[command(flatten)]
    of_bot: bot::BotVerb,
}

impl BacktestVerb {
    pub fn run(self) -> Result<(), Failure> {
        let BacktestVerb { bot: is_bot, json, mut of_spec, mut of_bot } = self;
        if is_bot {
            of_bot.json = json;
            of_bot.run()
        } else {
            of_spec.json = json;
            of_spec.run()
        }
    }
}

/// A run that did not complete, or not with the expected result.
#[derive(Debug)]
pub struct Failed {
    code: u8,
    why: String,
}

impl Failed {
    /// Exit code of the program.
    pub fn exit_code(&self) -> u8 {
        self.code
    }

    fn usage(why: impl fmt::Display) -> Failure {
        Failed { code: USAGE, why: why.to_string() }.into()
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Failed {}
