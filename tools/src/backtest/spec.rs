//! One back-test of a specification on an archive, without a server (gateway/docs/simulation.md §6.4). The result, and its
//! hash, are those of a server with the same rules.

use super::{Failed, Files, Form, OTHER_RESULT, text_of, write};
use crate::Failure;
use crate::settings::{self, Settings, hex, log_events, print_line};
use ::simulation::past::Past;
use ::simulation::plan::{Plan, PlanError};
use ::simulation::results::Rows;
use ::simulation::run::{self, Progress, RunError};
use ::simulation::runner;
use archive::store::{self, Store};
use clap::Args;
use edge::api::simulation::jobs::JobTrade;
use edge::api::simulation::spec::{self, Spec};
use edge::api::simulation::summary::{BacktestPoint, BacktestSummary, BacktestTrade};
use edge::http::record::{Record, value};
use engine::amount::Cash;
use engine::backtest::{Report, SEEDS_MAX};
use engine::rules::Rules;
use engine::time::Timestamp;
use engine::user::Backtest;
use engine::user::backtests::{BacktestEnd, BacktestEnded};
use host::clock::Clock;
use serde_json::Value;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use tools::signals::{Interrupted, Signals};

/// Longest specification, in bytes: the body of a request.
const SPEC_BYTES_MAX: u64 = 1 << 20;

#[derive(Args)]
pub struct SpecVerb {
    #[command(flatten)]
    settings: Settings,
    /// The specification: a JSON file with the body of POST /v1/simulation/backtests; - is standard input.
    #[arg(required_unless_present = "bot", conflicts_with = "bot")]
    spec: Option<PathBuf>,
    /// The archive (default: archive in the data directory).
    #[arg(long, value_name = "DIR", conflicts_with = "bot")]
    archive: Option<PathBuf>,
    /// Count of seeds, instead of that of the specification.
    #[arg(long, value_name = "N", value_parser = settings::integer(1..=SEEDS_MAX.into()), allow_hyphen_values = true, conflicts_with = "bot")]
    seeds: Option<u64>,
    /// Threads that share the seeds and `simulation.job_memory_bytes`; each reads all hours. The result is the same.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = settings::integer(1..=64), allow_hyphen_values = true, conflicts_with = "bot")]
    threads: u64,
    /// End with exit code 3 unless the result has this hash.
    #[arg(long, value_name = "HASH", value_parser = hash, conflicts_with = "bot")]
    expect: Option<String>,
}

fn hash(text: &str) -> Result<String, String> {
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_ascii_lowercase()).ok_or_else(|| "allowed are 64 hex digits".to_owned())
}

impl SpecVerb {
    pub fn run(self, files: &Files) -> Result<(), Failure> {
        let config = self.settings.load(Vec::new())?;
        log_events(config.log)?;
        let (clock, signals) = (Clock::wall(), Signals::catch()?);
        let begun = clock.now();
        let spec = self.spec(begun)?;
        let root = self.archive.clone().unwrap_or_else(|| config.archive.dir.clone());
        if !root.is_dir() {
            return Err(format!("{}: there is no archive", root.display()).into());
        }
        let past = Past::new(Arc::new(Store::open(&root, store::Settings::default())?), config.venue.categories);
        let goes_on = || signals.received().is_none();
        let plan = Plan::of(&spec, &past, &goes_on).map_err(|error| refused(error, &signals))?;
        let (memory_bytes, progress) = (config.simulation.job_memory_bytes, Progress::default());
        let (store, threads) = (past.store(), self.threads as u16);
        let ran = run::run_on_threads(&plan, store, &config.rules, memory_bytes, threads, &progress, &goes_on);
        let at = clock.now();
        match ran {
            Ok(report) => self.finish(files, &spec, &plan, &report, &config.rules, (begun, at)),
            Err(RunError::Ended) => Err(interrupted(&signals)),
            Err(error) => {
                let end = BacktestEnd::Failed;
                let failed = BacktestEnded { end, error: Some(error.name().into()), figures: None, refunded: 0, at };
                write_summary(files, &spec, begun, failed)?;
                Err(error.into())
            }
        }
    }

    /// Reads the specification.
    fn spec(&self, now: Timestamp) -> Result<Spec, Failure> {
        let path = self.spec.clone().unwrap_or_default();
        let named = |error: &dyn fmt::Display| Failed::usage(format_args!("{}: {error}", path.display()));
        let mut text = Vec::new();
        let read = match path.as_os_str() == "-" {
            true => std::io::stdin().lock().take(SPEC_BYTES_MAX + 1).read_to_end(&mut text),
            false => std::fs::File::open(&path).and_then(|file| file.take(SPEC_BYTES_MAX + 1).read_to_end(&mut text)),
        };
        read.map_err(|error| named(&error))?;
        if text.len() as u64 > SPEC_BYTES_MAX {
            return Err(named(&format_args!("longer than {SPEC_BYTES_MAX} bytes")));
        }
        let value = wire::read::json(&text).map_err(|error| named(&error))?;
        if let Some(name) = spec::unknown_field(&value) {
            return Err(named(&format_args!("unknown field {name:?}")));
        }
        let spec = Spec::read(&value, now)
            .map_err(|refusal| named(&format_args!("{}: {}", refusal.code().text(), refusal.message())))?;
        let seeds = self.seeds.map_or(spec.seeds, |seeds| seeds as u16);
        Ok(Spec { seeds, ..spec })
    }

    /// Writes what was asked for, and compares the hash.
    fn finish(
        &self,
        files: &Files,
        spec: &Spec,
        plan: &Plan,
        report: &Report,
        rules: &Rules,
        (begun, at): (Timestamp, Timestamp),
    ) -> Result<(), Failure> {
        let figures = Some(run::figures(report));
        let completed = BacktestEnded { end: BacktestEnd::Completed, error: None, figures, refunded: 0, at };
        for (path, rows) in [(&files.trades, Rows::Trades), (&files.equity, Rows::Equity)] {
            let Some(path) = path else { continue };
            match Form::of(path) {
                Some(Form::Parquet) => {
                    rows.write(path, plan, report).map_err(|error| format!("{}: {error}", path.display()))?;
                }
                form => write(path, rows_of(rows, form == Some(Form::Csv), spec, plan, report)?)?,
            }
        }
        if let Some(path) = &files.html {
            write(path, runner::page(plan, report, rules))?;
        }
        write_summary(files, spec, begun, completed)?;
        let found = hex(&report.hash);
        if !files.prints_json() {
            print_line(Summary { report, hash: &found });
        }
        match &self.expect {
            Some(expected) if *expected != found => {
                let why = format!("the result has the hash {found}, not {expected}");
                Err(Failed { code: OTHER_RESULT, why }.into())
            }
            _ => Ok(()),
        }
    }
}

/// Writes the summary as the route has it, with an id of zeros and without a charge.
fn write_summary(files: &Files, spec: &Spec, begun: Timestamp, ended: BacktestEnded) -> Result<(), Failure> {
    let Some(path) = &files.json else { return Ok(()) };
    let job = Backtest {
        id: [0; 16],
        spec: spec.to_json().into(),
        digest: [0; 32],
        request: None,
        charged: 0,
        created_at: begun,
        started_at: Some(begun).into(),
        ended: Some(ended),
    };
    let text = value(&BacktestSummary::new(&job, spec, None, false)).to_string();
    if files.prints_json() {
        print_line(text);
        return Ok(());
    }
    write(path, text + "\n")
}

/// Why there is no plan: what the create route would refuse is a bad specification.
fn refused(error: PlanError, signals: &Signals) -> Failure {
    match error {
        PlanError::UnknownMarket(_) | PlanError::UnknownOutcome { .. } | PlanError::HoursGone { .. } => {
            Failed::usage(error)
        }
        PlanError::Ended => interrupted(signals),
        PlanError::Past(error) => error.into(),
    }
}

fn interrupted(signals: &Signals) -> Failure {
    signals.received().map_or_else(|| RunError::Ended.into(), |by: Interrupted| by.into())
}

/// Rows as lines of JSON or CSV, with the fields of the route.
fn rows_of(rows: Rows, is_csv: bool, spec: &Spec, plan: &Plan, report: &Report) -> Result<Vec<u8>, Failure> {
    let (example, records): (Value, Vec<Value>) = match rows {
        Rows::Trades => {
            let record = |trade: &engine::backtest::Trade| {
                let of = JobTrade { trade: *trade, outcome: plan.label(trade.market).clone() };
                value(&BacktestTrade::new(&of, spec))
            };
            (value(&BacktestTrade::example()), report.trades.iter().map(record).collect())
        }
        Rows::Equity => {
            let record = |point| value(&BacktestPoint::new(point));
            (value(&BacktestPoint::example()), report.points.iter().map(record).collect())
        }
    };
    let fields: Vec<&str> =
        example.as_object().into_iter().flat_map(|fields| fields.keys().map(String::as_str)).collect();
    text_of(&fields, &records, is_csv)
}

/// A result for people.
struct Summary<'a> {
    report: &'a Report,
    hash: &'a str,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { report, hash } = self;
        let money = |cash: Cash| wire::decimal::text(|out| wire::decimal::exactly::<2>(out, cash.0));
        writeln!(
            f,
            "profit      {} USD, {} without costs",
            money(report.total_pnl),
            money(report.comparison.naive_pnl)
        )?;
        writeln!(f, "trades      {} at {} decisions", report.trades.len(), report.ticks_evaluated)?;
        if let Some([low, middle, high]) = report.comparison.percentiles {
            writeln!(f, "seeds       {} to {}, half of them below {}", money(low), money(high), money(middle))?;
        }
        if let Some(notice) = report.plan.notice() {
            writeln!(f, "notice      {notice}")?;
        }
        if !report.missing.is_empty() {
            writeln!(f, "not covered {} market hours", report.missing.len())?;
        }
        write!(f, "hash        {hash}")
    }
}
