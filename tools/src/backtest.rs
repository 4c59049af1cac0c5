//! `backtest --bot`: an unmodified bot against a recording (gateway/docs/backtest-bot.md).

mod bot;
mod outcome;

pub use bot::Failed;

use crate::Failure;
use clap::Args;

#[derive(Args)]
pub struct BacktestVerb {
    /// Run a bot against a recording, on one clock.
    #[arg(long, required = true)]
    bot: bool,
    #[command(flatten)]
    of_bot: bot::BotVerb,
}

impl BacktestVerb {
    pub fn run(self) -> Result<(), Failure> {
        self.of_bot.run()
    }
}
