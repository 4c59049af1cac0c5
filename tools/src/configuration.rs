//! `papertape settings`: the settings in effect, or the reference of all settings. `gateway/docs/settings.md` is the
//! output of `--markdown`.

use crate::Failure;
use clap::Args;
use gateway::config;
use tools::settings::{Settings, print_line};

/// Print every setting with its value and where the value comes from; secrets are not shown.
#[derive(Args)]
pub struct Configuration {
    #[command(flatten)]
    settings: Settings,
    /// Print the reference of all settings instead: key, variable, type, default, bounds and meaning.
    #[arg(long)]
    markdown: bool,
}

impl Configuration {
    pub fn run(self) -> Result<(), Failure> {
        if self.markdown {
            return crate::openapi::print(config::markdown().as_bytes());
        }
        self.settings.load(Vec::new())?.lines.iter().for_each(print_line);
        Ok(())
    }
}
