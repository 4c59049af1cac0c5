//! `serve`: the server.

use crate::Failure;
use crate::settings::{Settings, log_events};
use clap::Args;
use venue::origin::choices;

#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    settings: Settings,
    /// Address and port of the server.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    #[arg(
        long,
        value_name = "VENUE",
        help = format!("Source of market data: synthetic, replay, or live: {}", choices(""))
    )]
    venue: Option<String>,
    /// The recording to replay: a file or a folder, of lines or of hours of an archive.
    #[arg(long, value_name = "PATH")]
    tape: Option<String>,
    /// Replay only these markets of an archive: a file with one condition id a line.
    #[arg(long, value_name = "FILE")]
    markets: Option<String>,
    /// First hour of an archive to replay, like 2026-09-30T17 (UTC).
    #[arg(long, value_name = "HOUR")]
    from: Option<String>,
    /// Last hour of an archive to replay.
    #[arg(long, value_name = "HOUR")]
    to: Option<String>,
    /// Speed of the replay: a number (optionally followed by x), or max. Other venues accept only the default.
    #[arg(long, value_name = "N|max", allow_hyphen_values = true)]
    speed: Option<String>,
    /// Follow the recording as it grows.
    #[arg(long)]
    follow: bool,
    /// Record what a live venue sends, into this folder (default: tape in the data directory).
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "")]
    record: Option<String>,
    /// Allow markets of another venue in this data directory. Without it, a start on another venue than before is
    /// refused.
    #[arg(long)]
    mix_venues: bool,
    /// When an order is answered: process (it survives a crash of the process) or power (it survives a power loss).
    #[arg(long, value_name = "PROMISE")]
    durability: Option<String>,
    /// Never let the core thread sleep: answers come sooner, and one processor is always busy.
    #[arg(long)]
    busy_poll: bool,
    /// The lowest level of the log: off, error, warn, info, debug (refused requests, too) or trace; default: RUST_LOG.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Format of log lines on standard error: text, json, or auto (text on a terminal).
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
            markets,
            from,
            to,
            speed,
            follow,
            record,
            mix_venues,
            durability,
            busy_poll,
            log_level,
            log_format,
        } = self;
        // Only a replay has a tape, so --tape implies --venue replay.
        let venue = venue.or_else(|| tape.is_some().then(|| "replay".to_owned()));
        let mut flags = vec![
            ("server.listen", listen),
            ("venue.kind", venue),
            ("venue.tape", tape),
            ("venue.markets", markets),
            ("venue.from", from),
            ("venue.to", to),
            ("venue.speed", speed),
            ("venue.follow", follow.then(|| "true".to_owned())),
            ("venue.mix", mix_venues.then(|| "true".to_owned())),
            ("journal.durability", durability),
            ("server.busy_poll", busy_poll.then(|| "true".to_owned())),
            ("log.level", log_level),
            ("log.format", log_format),
        ];
        if let Some(folder) = record {
            // Any layer of the configuration may set the data directory.
            let folder = match folder.is_empty() {
                true => settings.load(flags.clone())?.data.dir.join("tape").to_string_lossy().into_owned(),
                false => folder,
            };
            flags.push(("venue.record", Some(folder)));
        }
        let mut config = settings.load(flags)?;
        config.check_of_a_start()?;
        // Set by the build script.
        config.built_from = option_env!("PAPERTAPE_GIT_SHA").filter(|sha| !sha.is_empty());
        log_events(config.log)?;
        Ok(gateway::boot::serve(config)?)
    }
}
