//! `serve`: the server.

use crate::Failure;
use crate::settings::Settings;
use clap::Args;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    settings: Settings,
    /// Address and port to listen on.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where market data comes from: synthetic or replay.
    #[arg(long, value_name = "VENUE")]
    venue: Option<String>,
    /// The recording to replay: a file or a folder.
    #[arg(long, value_name = "PATH")]
    tape: Option<String>,
    /// Speed of the replay: a number, or max.
    #[arg(long, value_name = "N|max", allow_hyphen_values = true)]
    speed: Option<String>,
    /// Read the recording as it grows.
    #[arg(long)]
    follow: bool,
    /// What an answer waits for: process or power.
    #[arg(long, value_name = "PROMISE")]
    durability: Option<String>,
    /// Never let the core thread sleep: answers come sooner, and one processor is always busy.
    #[arg(long)]
    busy_poll: bool,
}

impl Serve {
    pub fn run(self) -> Result<(), Failure> {
        let Serve { settings, listen, venue, tape, speed, follow, durability, busy_poll } = self;
        // A tape is for a replay; whoever names one need not say so twice.
        let venue = venue.or_else(|| tape.is_some().then(|| "replay".to_owned()));
        let config = settings.load(vec![
            ("server.listen", listen),
            ("venue.kind", venue),
            ("venue.tape", tape),
            ("venue.speed", speed),
            ("venue.follow", follow.then(|| "true".to_owned())),
            ("journal.durability", durability),
            ("server.busy_poll", busy_poll.then(|| "true".to_owned())),
        ])?;
        // Events go to standard error: text for people, JSON lines for collectors. `RUST_LOG` chooses what.
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
        if std::io::stderr().is_terminal() {
            log.init();
        } else {
            log.json().init();
        }
        Ok(gateway::boot::serve(config)?)
    }
}
