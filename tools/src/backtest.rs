//! `backtest`: of a specification on an archive, or of an unmodified bot against a recording
//! (gateway/docs/simulation.md §6.4, gateway/docs/backtest-bot.md).

mod bot;
mod outcome;
mod spec;

use crate::Failure;
use clap::Args;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};

/// Exit codes besides 0: completed.
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const OTHER_RESULT: u8 = 3;

#[derive(Args)]
pub struct BacktestVerb {
    /// Run a bot against a recording, on one clock, instead of a specification.
    #[arg(long)]
    bot: bool,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    of_spec: spec::SpecVerb,
    #[command(flatten)]
    of_bot: bot::BotVerb,
}

/// What is written of a result.
#[derive(Args)]
struct Files {
    /// Write the summary, or the report about a bot, as JSON; - is standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the trades: .ndjson, .csv, or of a specification .parquet.
    #[arg(long, value_name = "FILE", value_parser = file_of_rows)]
    trades: Option<PathBuf>,
    /// Write the points of equity: .ndjson, .csv, or of a specification .parquet.
    #[arg(long, value_name = "FILE", value_parser = file_of_rows)]
    equity: Option<PathBuf>,
    /// Write the report as a page of HTML.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Ndjson,
    Csv,
    Parquet,
}

impl Form {
    fn of(path: &Path) -> Option<Form> {
        match path.extension()?.to_str()? {
            "ndjson" => Some(Form::Ndjson),
            "csv" => Some(Form::Csv),
            "parquet" => Some(Form::Parquet),
            _ => None,
        }
    }
}

fn file_of_rows(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    Form::of(&path).ok_or("allowed is a name that ends in .ndjson, .csv or .parquet")?;
    Ok(path)
}

impl BacktestVerb {
    pub fn run(self) -> Result<(), Failure> {
        let BacktestVerb { bot: is_bot, files, of_spec, of_bot } = self;
        if is_bot { of_bot.run(&files) } else { of_spec.run(&files) }
    }
}

impl Files {
    /// Whether standard output has the JSON, and nothing else.
    fn prints_json(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }
}

/// Writes a file.
fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    Ok(std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))?)
}

/// Records as lines of JSON, or as CSV with these fields.
fn text_of(fields: &[&str], records: &[Value], is_csv: bool) -> Result<Vec<u8>, Failure> {
    if !is_csv {
        return Ok(records.iter().flat_map(|record| format!("{record}\n").into_bytes()).collect());
    }
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(fields)?;
    for record in records {
        let text = |name: &&str| match &record[*name] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        out.write_record(fields.iter().map(text))?;
    }
    Ok(out.into_inner().map_err(|error| error.to_string())?)
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
