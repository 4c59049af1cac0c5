//! `archive verify`: the check of an archive, and the comparison of its hours with their recording.

use super::{VerbOptions, hours, hours_text, place_in, recording_of};
use crate::Failure;
use crate::record::stop_on_signals;
use archive::store::{Finding, Store};
use clap::Args;
use engine::backtest::Hour;
use gateway::config::Config;
use serde_json::json;
use std::ops::Range;
use std::path::PathBuf;
use tempfile::TempDir;
use venue::archive::build::Options;
use venue::archive::compare::{Compared, Comparison};
use venue::archive::seal::Place;

#[derive(Args)]
pub struct VerifyVerb {
    #[command(flatten)]
    of_verb: VerbOptions,
    /// Also check every row, the index by making it again, and recorded hours by making them again from their lines.
    #[arg(long)]
    deep: bool,
    /// The recording that all the hours were made of (default: for recorded hours the one of `build`, if it is there).
    #[arg(long, value_name = "PATH", requires = "deep")]
    tape: Option<PathBuf>,
    /// Only these hours, like 2026-09-30T17..2026-09-30T20, both included.
    #[arg(long, value_name = "A..B", value_parser = hours)]
    hours: Option<(u32, u32)>,
}

impl VerifyVerb {
    pub(super) fn run(self) -> Result<(), Failure> {
        let VerifyVerb { of_verb, deep, tape, hours } = self;
        let store = of_verb.store()?;
        let range = hours.map_or(Hour(0)..Hour(u32::MAX), |(from, to)| Hour(from)..Hour(to + 1));
        if !deep {
            let findings = store.verify(range, None)?;
            return report(&of_verb, &findings, None);
        }
        let config = of_verb.settings.load(Vec::new())?;
        let (mut comparison, _folder) = compare_with(tape, &config, &store, range.clone())?;
        let findings = store.verify(range, Some(&mut comparison))?;
        report(&of_verb, &findings, Some(&comparison))
    }
}

/// Makes the hours of a range again from a recording, or from that of a server if it is there. They are in a folder that
/// is removed when it is dropped.
fn compare_with(
    tape: Option<PathBuf>,
    config: &Config,
    store: &Store,
    range: Range<Hour>,
) -> Result<(Comparison, Option<TempDir>), Failure> {
    let of = if tape.is_some() { Compared::All } else { Compared::Recorded };
    let Some(tape) = tape.or_else(|| Some(recording_of(config)).filter(|tape| tape.exists())) else {
        return Ok((Comparison::without_lines(), None));
    };
    let stop = stop_on_signals()?;
    let cache = store.root().join("cache");
    std::fs::create_dir_all(&cache)?;
    let folder = tempfile::Builder::new().prefix("verify-").tempdir_in(cache)?;
    let place = Place { is_recorded: true, ..place_in(folder.path(), config)? };
    let options = Options { place, markets: None, from: None, to: None, threads: config.archive.threads };
    let comparison = Comparison::with_lines(&tape, (store, range), of, options, &config.venue.categories, &stop)?;
    Ok((comparison, Some(folder)))
}

/// Prints what a check found; fails if anything is wrong.
fn report(of_verb: &VerbOptions, findings: &[Finding], comparison: Option<&Comparison>) -> Result<(), Failure> {
    for Finding { venue, hour, problem } in findings {
        let value = json!({"venue": venue, "hour": hour.to_string(), "problem": problem});
        of_verb.show(format_args!("{venue} {hour}  {problem}"), &value);
    }
    let mut value = json!({"problems": findings.len()});
    let mut compared = String::new();
    if let Some(Comparison { compared: count, left_out, note, .. }) = comparison {
        compared = format!("compared with raw lines: {}, not compared: {left_out}", hours_text(*count));
        value["compared"] = (*count).into();
        value["not_compared"] = (*left_out).into();
        if let Some(note) = note {
            compared += &format!(" ({note})");
            value["note"] = (*note).into();
        }
    }
    let what = match findings.len() {
        0 => "all hours are sound".to_owned(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    };
    let separator = if compared.is_empty() { "" } else { "; " };
    let text = format!("{what}{separator}{compared}");
    if of_verb.json || findings.is_empty() {
        of_verb.show(&text, &value);
    }
    if findings.is_empty() { Ok(()) } else { Err(text.into()) }
}
