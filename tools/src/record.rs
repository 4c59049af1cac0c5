//! `record`: writes what live venues send into files that `serve --tape` replays (gateway/docs/live-venues.md §7).

use crate::Failure;
use crate::settings::{self, Settings, log_events, print_line};
use clap::Args;
use engine::time::{SECOND, Timestamp};
use host::clock::Clock;
use host::thread::Stop;
use std::collections::HashSet;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use venue::live::recorder::Figures;
use venue::origin::choices;
use venue::{self, FeedUpdate, Upstream, Venue};

/// Interval of the progress line on a terminal.
const PROGRESS_EVERY: u64 = 10 * SECOND;
/// Longest sleep between two polls.
const SLEEP_MAX: u64 = SECOND;

#[derive(Args)]
pub struct Record {
    #[command(flatten)]
    settings: Settings,
    #[arg(long, value_name = "VENUE", help = format!("What to record: {}", choices("")))]
    venue: String,
    /// Folder of the recording; an earlier recording in it is continued.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// End after this many seconds.
    #[arg(long, value_name = "S", value_parser = settings::integer(1..=u64::MAX), allow_hyphen_values = true)]
    duration: Option<u64>,
}

impl Record {
    pub fn run(self) -> Result<(), Failure> {
        let Record { settings, venue, out, duration } = self;
        let folder = out.to_string_lossy().into_owned();
        let config = settings.load(vec![("venue.kind", Some(venue)), ("venue.record", Some(folder))])?;
        config.venue.check()?;
        log_events(config.log)?;
        let stop = stop_on_signals()?;
        let clock = Clock::wall();
        let begun = clock.now();
        let mut venue = venue::open(&config.venue, &clock)?;
        let Upstream { recording, skips, .. } = venue.upstream();
        let figures = recording.ok_or("this venue cannot be recorded")?;
        let ends = duration.map_or(Timestamp(u64::MAX), |seconds| begun.plus(seconds.saturating_mul(SECOND)));
        let markets = listen(&mut *venue, &clock, ends, &stop, &figures);
        // Its last messages are part of the recording.
        drop(venue);
        let skipped: Vec<String> =
            skips.iter().flat_map(|skips| skips.nonzero()).map(|(kind, count)| format!("{kind} {count}")).collect();
        let skipped = if skipped.is_empty() { "nothing".to_owned() } else { skipped.join(", ") };
        print_line(format_args!(
            "recorded {} in {} s into {}; not understood: {skipped}",
            Summary { figures: &figures, markets },
            clock.now().since(begun) / SECOND,
            out.display()
        ));
        let read = |figure: &AtomicU64| figure.load(Relaxed);
        match read(&figures.lines) > read(&figures.gaps) {
            true => Ok(()),
            false => Err("nothing was received from the venue".into()),
        }
    }
}

/// Polls the venue until the end; returns the number of listed markets.
fn listen(venue: &mut dyn Venue, clock: &Clock, ends: Timestamp, stop: &Stop, figures: &Arc<Figures>) -> usize {
    let mut markets = HashSet::new();
    let mut told_at = clock.now();
    let shows = std::io::stderr().is_terminal();
    while !stop.is_set() && clock.now() < ends {
        let now = clock.now();
        let polled = venue.poll(now, Timestamp(u64::MAX), &mut |frame| {
            for update in frame.updates {
                if let FeedUpdate::Listed { listing, .. } = update
                    && !markets.contains(&listing.condition)
                {
                    markets.insert(listing.condition.clone());
                }
            }
        });
        if shows && now.since(told_at) >= PROGRESS_EVERY {
            told_at = now;
            let _ = writeln!(std::io::stderr(), "{}", Summary { figures, markets: markets.len() });
        }
        let until = polled.wake_at.unwrap_or(ends).min(ends).min(now.plus(SLEEP_MAX));
        std::thread::park_timeout(Duration::from_micros(until.since(clock.now())));
    }
    markets.len()
}

/// Figures of a recording in one line.
struct Summary<'a> {
    figures: &'a Figures,
    markets: usize,
}

impl std::fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Figures { lines, bytes, dropped, gaps } = self.figures;
        let (lines, bytes, dropped, gaps) =
            (lines.load(Relaxed), bytes.load(Relaxed), dropped.load(Relaxed), gaps.load(Relaxed));
        let megabytes = bytes as f64 / 1e6;
        write!(f, "{lines} lines ({megabytes:.1} MB) of {} markets, {gaps} gaps, {dropped} dropped", self.markets)
    }
}

/// Set by SIGTERM and SIGINT, which wake the calling thread.
pub fn stop_on_signals() -> Result<Stop, Failure> {
    let (stop, main) = (Stop::new(), std::thread::current());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _entered = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let stopping = stop.clone();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        stopping.set();
        main.unpark();
    })?;
    Ok(stop)
}
