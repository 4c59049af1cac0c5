//! `serve`: the server.

use crate::Failure;
use crate::settings::{Settings, log_events};
use clap::Args;

#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    settings: Settings,
    /// Address and port to listen on.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where market data comes from: synthetic, replay, or live: polymarket, kalshi, or polymarket,kalshi.
    #[arg(long, value_name = "VENUE")]
    venue: Option<String>,
    /// The recording to replay: a file or a folder.
    #[arg(long, value_name = "PATH")]
    tape: Option<String>,
    /// Speed of the replay: a number (with an x behind it or not), or max. Other venues take the default alone.
    #[arg(long, value_name = "N|max", allow_hyphen_values = true)]
    speed: Option<String>,
    /// Read the recording as it grows.
    #[arg(long)]
    follow: bool,
    /// Record what a live venue sends, into this folder (default: tape in the data directory).
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "")]
    record: Option<String>,
    /// Trade several venues in one data directory. Without it, a start on another venue than before is refused.
    #[arg(long)]
    mix_venues: bool,
    /// What an answer waits for: process or power.
    #[arg(long, value_name = "PROMISE")]
    durability: Option<String>,
    /// Never let the core thread sleep: answers come sooner, and one processor is always busy.
    #[arg(long)]
    busy_poll: bool,
    /// The least important lines of the log: off, error, warn, info, debug (refused requests, too) or trace; RUST_LOG where
    /// this is absent.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// How log lines are written to standard error: text, json, or auto (text on a terminal).
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

impl Serve {
    pub fn run(self) -> Result<(), Failure> {
        let Serve {
            settings,
            listen,
            venue,
            tape,
            speed,
            follow,
            record,
            mix_venues,
            durability,
            busy_poll,
            log_level,
            log_format,
        } = self;
        // A tape is for a replay; whoever names one need not say so twice.
        let venue = venue.or_else(|| tape.is_some().then(|| "replay".to_owned()));
        let mut flags = vec![
            ("server.listen", listen),
            ("venue.kind", venue),
            ("venue.tape", tape),
            ("venue.speed", speed),
            ("venue.follow", follow.then(|| "true".to_owned())),
            ("venue.mix", mix_venues.then(|| "true".to_owned())),
            ("journal.durability", durability),
            ("server.busy_poll", busy_poll.then(|| "true".to_owned())),
            ("log.level", log_level),
            ("log.format", log_format),
        ];
        if let Some(folder) = record {
            // Which data directory it is may stand in any layer.
            let folder = match folder.is_empty() {
                true => settings.load(flags.clone())?.data.dir.join("tape").to_string_lossy().into_owned(),
                false => folder,
            };
            flags.push(("venue.record", Some(folder)));
        }
        let mut config = settings.load(flags)?;
        config.check_of_a_start()?;
        // By the build script.
        config.built_from = option_env!("PAPERTAPE_GIT_SHA").filter(|sha| !sha.is_empty());
        log_events(config.log)?;
        Ok(gateway::boot::serve(config)?)
    }
}
