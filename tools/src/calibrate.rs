//! `calibrate`: live orders against the fill models, on a recording of the same time, without a server
//! (gateway/docs/calibrate.md).

mod json;

use crate::Failure;
use crate::settings::{self, Settings, hex, log_events, print_line};
use ::simulation::calibrate::control::{Control, Controlled};
use ::simulation::calibrate::orders::{self, LiveOrder};
use ::simulation::calibrate::{Calibration, Comparison, Ended, Model, Report, html};
use clap::Args;
use engine::amount::Bps;
use engine::realism::{EXPONENT_MAX, FillTerms, HALF_LIFE_S_MAX, MATCH_WINDOW_MS_MAX};
use engine::rules::Rules;
use gateway::config::Config;
use host::clock::Clock;
use serde_json::Value;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tools::signals::{Interrupted, Signals};
use venue::{Speed, Venue, VenueConfig, VenueKind};
use wire::decimal::Decimal;

/// Exit codes besides 0: compared.
const NOTHING: u8 = 1;
const BAD_INPUT: u8 = 2;

#[derive(Args)]
pub struct CalibrateVerb {
    #[command(flatten)]
    settings: Settings,
    /// The live orders: a CSV file with one line for each fill, and one for an order without any.
    #[arg(value_name = "ORDERS", required_unless_present = "control", conflicts_with = "control")]
    orders: Option<PathBuf>,
    /// The recording of the same time: a file or a folder, of lines or of hours of an archive.
    #[arg(long, value_name = "PATH", required_unless_present = "control", conflicts_with = "control")]
    tape: Option<PathBuf>,
    /// The models to compare: touch, cross, through, queue, queue_prob, and queue_prob:N with an exponent N from 1 to 3
    /// (default: all five).
    #[arg(long, value_name = "LIST", conflicts_with = "control")]
    models: Option<String>,
    /// The set of realism whose settings the models have (default: kind), or one setting: n, cancel_share, depth_share,
    /// match_window_ms, half_life_s. May be repeated; later ones come over earlier ones.
    #[arg(long, value_name = "NAME|SETTING=VALUE", conflicts_with = "control")]
    set: Vec<String>,
    /// Whether the traces of the orders are taken out of the recording.
    #[arg(long = "self", value_name = "on|off", value_parser = ["on", "off"], default_value = "on", conflicts_with = "control")]
    own: String,
    /// Seed of the resamples, and of the control (default: venue.seed).
    #[arg(long, value_name = "SEED", value_parser = settings::integer(0..=i64::MAX as u64), allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Write the result as JSON; - is standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the result as a page of HTML.
    #[arg(long, value_name = "FILE", conflicts_with = "control")]
    html: Option<PathBuf>,
    /// Compare with a made recording whose queues are known, instead of live orders. Fails unless queue_prob is better
    /// than touch, and orders at other times fill by chance only.
    #[arg(long)]
    control: bool,
}

impl CalibrateVerb {
    pub fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(Vec::new())?;
        log_events(config.log)?;
        let signals = Signals::catch()?;
        let goes_on = || signals.received().is_none();
        let seed = self.seed.unwrap_or(config.venue.seed);
        if self.control {
            let controlled = Control::new(seed).run(&config.rules, &goes_on);
            let controlled = controlled.map_err(|Ended| interrupted(&signals))?;
            return self.finish_control(seed, &controlled);
        }
        let base = base(&self.set, &config.rules).map_err(Failed::bad)?;
        let models = Model::list(self.models.as_deref(), base);
        let models = models.map_err(|error| Failed::bad(format_args!("--models: {error}")))?;
        let path = self.orders.as_deref().expect("the parser asks for it without --control");
        let live = read(path)?;
        let tape = self.tape.as_deref().expect("the parser asks for it without --control");
        let cache = tempfile::tempdir()?;
        let mut venue = open(tape, &config, cache.path())?;
        let compared = Comparison::new(&live, &models, &config.rules, self.own == "on", seed);
        let report = compared.run(venue.as_mut(), &goes_on).map_err(|Ended| interrupted(&signals))?;
        self.finish(&compared, &report)
    }

    fn finish(&self, compared: &Comparison<'_>, report: &Report) -> Result<(), Failure> {
        let json = json::of(compared, report);
        if let Some(path) = &self.html {
            let inputs = inputs(compared, report);
            let (orders, models) = (compared.orders, compared.models);
            write(path, html(&Calibration { orders, models, report, inputs: &inputs }))?;
        }
        self.write_json(&json)?;
        if !self.prints_json() {
            print_line(Table { models: compared.models, report });
        }
        match report.compared() {
            0 => Err(Failed { code: NOTHING, why: "no order could be compared".to_owned() }.into()),
            _ => Ok(()),
        }
    }

    fn finish_control(&self, seed: u64, controlled: &Controlled) -> Result<(), Failure> {
        self.write_json(&json::of_control(seed, controlled))?;
        if !self.prints_json() {
            print_line(Table { models: &controlled.models, report: &controlled.report });
            for check in &controlled.checks {
                let word = if check.is_seen { "ok" } else { "FAILED" };
                print_line(format_args!("{word:<8}{}: {}", check.what, check.figures));
            }
        }
        match controlled.is_passed() {
            true => Ok(()),
            false => Err(Failed { code: NOTHING, why: "the control failed".to_owned() }.into()),
        }
    }

    fn prints_json(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    fn write_json(&self, json: &Value) -> Result<(), Failure> {
        match &self.json {
            Some(_) if self.prints_json() => print_line(json),
            Some(path) => write(path, format!("{json}\n"))?,
            None => {}
        }
        Ok(())
    }
}

/// What models have that a list of them does not say: a set of realism, and settings over it.
fn base(set: &[String], rules: &Rules) -> Result<FillTerms, String> {
    let mut base = rules.realism.get("kind").map_or(FillTerms::KIND, |set| set.fill);
    for text in set {
        match text.split_once('=') {
            Some((name, value)) => setting(&mut base, name, value)?,
            None => {
                let known = rules.realism.get(text);
                let refused = || format!("--set: allowed are {}, not {text:?}", rules.realism.names());
                base = known.map(|set| set.fill).ok_or_else(refused)?;
            }
        }
    }
    Ok(base)
}

/// Sets one setting of the models.
fn setting(terms: &mut FillTerms, name: &str, value: &str) -> Result<(), String> {
    let share = || Decimal::parse(value).ok().and_then(Decimal::price_exact).map(|share| Bps(share.0.into()));
    let before = *terms;
    let read = match name {
        "n" => value.parse().ok().map(|n| terms.n = n),
        "cancel_share" => share().map(|share| terms.cancel_share = share),
        "depth_share" => share().map(|share| terms.depth_share = share),
        "match_window_ms" => value.parse().ok().map(|window| terms.match_window_ms = window),
        "half_life_s" => value.parse().ok().map(|life| terms.half_life_s = life),
        _ => {
            let names = "n, cancel_share, depth_share, match_window_ms, half_life_s";
            return Err(format!("--set: allowed are {names}, not {name:?}"));
        }
    };
    if read.is_none() || !terms.is_sound() {
        *terms = before;
        let allowed = match name {
            "n" => format!("1 to {EXPONENT_MAX}"),
            "cancel_share" => "0 to 1 with at most 4 decimals".to_owned(),
            "depth_share" => "0.01 to 1 with at most 4 decimals".to_owned(),
            "match_window_ms" => format!("0 to {MATCH_WINDOW_MS_MAX}"),
            _ => format!("1 to {HALF_LIFE_S_MAX}"),
        };
        return Err(format!("--set: {name} is {allowed}, not {value:?}"));
    }
    Ok(())
}

/// Reads the live orders.
fn read(path: &Path) -> Result<Vec<LiveOrder>, Failure> {
    let named = |error: &dyn fmt::Display| Failed::bad(format_args!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| named(&error))?;
    // One byte more than allowed is enough to refuse it.
    file.take(orders::BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| named(&error))?;
    Ok(orders::read(&bytes).map_err(|error| named(&error))?)
}

/// Opens the recording, which never waits.
fn open(tape: &Path, config: &Config, cache: &Path) -> Result<Box<dyn Venue>, Failure> {
    let mut of = VenueConfig { kind: VenueKind::Replay, ..config.venue.clone() };
    (of.tape, of.speed, of.follow) = (tape.to_owned(), Speed::Max, false);
    of.live.recording = None;
    of.archive.cache = cache.to_owned();
    venue::open(&of, &Clock::wall()).map_err(|error| Failed::bad(error).into())
}

fn write(path: &Path, text: String) -> Result<(), Failure> {
    Ok(std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?)
}

fn interrupted(signals: &Signals) -> Failure {
    signals.received().map_or_else(|| "it was ended".into(), |by: Interrupted| by.into())
}

/// What decides the result, and the result.
fn inputs<'a>(compared: &Comparison<'_>, report: &Report) -> Vec<(&'a str, String)> {
    let FillTerms { cancel_share, depth_share, match_window_ms, half_life_s, .. } =
        compared.models.first().map_or(FillTerms::KIND, |model| model.fill);
    let names: Vec<&str> = compared.models.iter().map(|model| model.name.as_str()).collect();
    vec![
        ("Models", names.join(", ")),
        ("depth_share", json::share(depth_share)),
        ("cancel_share", json::share(cancel_share)),
        ("match_window_ms", match_window_ms.to_string()),
        ("half_life_s", half_life_s.to_string()),
        ("Own traces", if compared.removes_own { "taken out" } else { "left in" }.to_owned()),
        ("Placed after, where not acknowledged, µs", compared.ack_after.to_string()),
        ("Seed", compared.seed.to_string()),
        ("Program", concat!("papertape ", env!("CARGO_PKG_VERSION")).to_owned()),
        ("Recording", hex(&report.tape)),
        ("Result hash", hex(&report.hash)),
    ]
}

/// The figures for people: a line for each, a column for each model.
struct Table<'a> {
    models: &'a [Model],
    report: &'a Report,
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { models, report } = self;
        write!(f, "{} orders compared", report.compared())?;
        for (why, number) in report.counts_left_out().into_iter().filter(|(_, number)| *number > 0) {
            write!(f, ", {number} left out ({})", why.name())?;
        }
        writeln!(f)?;
        let columns: Vec<_> = report.rows.iter().map(|row| row.figures()).collect();
        let width = |text: &str| text.chars().count();
        let names = columns.first().map_or(0, |figures| figures.iter().map(|(name, _)| width(name)).max().unwrap_or(0));
        let of_column = |(model, figures): (&Model, &[(&str, String)])| {
            figures.iter().map(|(_, text)| width(text)).max().unwrap_or(0).max(width(&model.name))
        };
        let widths: Vec<usize> = models.iter().zip(columns.iter().map(|of| &of[..])).map(of_column).collect();
        let pad = |f: &mut fmt::Formatter<'_>, text: &str, to: usize| {
            write!(f, "  {}{text}", " ".repeat(to.saturating_sub(width(text))))
        };
        write!(f, "{}", " ".repeat(names))?;
        for (model, to) in models.iter().zip(&widths) {
            pad(f, &model.name, *to)?;
        }
        writeln!(f)?;
        for line in 0..columns.first().map_or(0, |figures| figures.len()) {
            let name = columns[0][line].0;
            write!(f, "{name}{}", " ".repeat(names - width(name)))?;
            for (figures, to) in columns.iter().zip(&widths) {
                pad(f, &figures[line].1, *to)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "recording  {}", hex(&report.tape))?;
        write!(f, "hash       {}", hex(&report.hash))
    }
}

/// Nothing was compared, or the input is wrong.
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

    fn bad(why: impl fmt::Display) -> Failed {
        Failed { code: BAD_INPUT, why: why.to_string() }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Failed {}

#[cfg(test)]
mod tests;
