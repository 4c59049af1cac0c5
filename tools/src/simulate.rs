//! `simulate`: the reads of the simulation routes on an archive, without a server (gateway/docs/simulation.md).

use crate::Failure;
use crate::settings::{Settings, log_events, print_line};
use archive::store::{self, Store};
use clap::{Args, Subcommand};
use edge::api::simulation::offline::{self, Question};
use host::clock::Clock;
use serde_json::{Map, Value};
use simulation::past::Past;
use simulation::reads::Reads;
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use wire::query::Query;
use wire::read;

/// Reads of recorded markets. Each prints the JSON of the route of that name.
#[derive(Subcommand)]
pub enum SimulateVerb {
    /// What an order of a past moment would have taken.
    Fill(FillVerb),
    /// The book of a token at a past moment.
    Book(BookVerb),
    /// Which hours of a market the archive has.
    Coverage(CoverageVerb),
}

impl SimulateVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            SimulateVerb::Fill(verb) => verb.run(),
            SimulateVerb::Book(verb) => verb.run(),
            SimulateVerb::Coverage(verb) => verb.run(),
        }
    }
}

/// The archive refuses the question: the code and the message of the route's answer.
#[derive(Debug)]
pub struct Refused {
    code: String,
    message: String,
    /// The question is wrong in itself.
    pub is_usage: bool,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refused {}

#[derive(Args)]
struct OfArchive {
    #[command(flatten)]
    settings: Settings,
    /// The archive (default: archive in the data directory).
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
}

impl OfArchive {
    /// Prints the answer to a question.
    fn answer(&self, question: Question<'_>) -> Result<(), Failure> {
        let config = self.settings.load(Vec::new())?;
        log_events(config.log)?;
        let root = self.archive.clone().unwrap_or_else(|| config.archive.dir.clone());
        if !root.is_dir() {
            return Err(format!("{}: there is no archive", root.display()).into());
        }
        let store = Arc::new(Store::open(&root, store::Settings::default())?);
        let reads = Reads::new(Arc::new(Past::new(store, config.venue.categories)));
        let now = Clock::wall().now();
        let answered = host::runtime::runtime()?.block_on(offline::answer(&reads, &config.rules.fees, question, now));
        let body = answered.map_err(|refusal| Refused {
            code: refusal.code().text().to_owned(),
            message: refusal.message().to_owned(),
            // The others are about the archive, not about the fields.
            is_usage: matches!(refusal.status().as_u16(), 400 | 422),
        })?;
        print_line(String::from_utf8_lossy(&body));
        Ok(())
    }
}

#[derive(Args)]
pub struct FillVerb {
    #[command(flatten)]
    of: OfArchive,
    /// The market.
    #[arg(long, value_name = "ID")]
    condition_id: String,
    /// Shares to trade, above 0 and at most 1000000.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    shares: String,
    /// The moment of the decision.
    #[arg(long, value_name = "TIME")]
    at: String,
    /// A token of the market, in place of the outcome.
    #[arg(long, value_name = "ID")]
    token_id: Option<String>,
    /// Label of the outcome, in any case (default: Yes).
    #[arg(long, value_name = "LABEL")]
    outcome: Option<String>,
    /// BUY (default) or SELL.
    #[arg(long, value_name = "SIDE")]
    side: Option<String>,
    /// midpoint, top_of_book, depth_walk (default) or depth_walk_depletion.
    #[arg(long, value_name = "MODEL")]
    fill_model: Option<String>,
    /// Worst price, between 0 and 1.
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true)]
    limit_price: Option<String>,
    /// Delay between the decision and the book, 0 to 60000 milliseconds.
    #[arg(long, value_name = "MS", allow_hyphen_values = true)]
    latency_ms: Option<String>,
    /// Place in the queue, 0 to 1; echoed in the answer, without effect on the fill.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    queue_position: Option<String>,
}

impl FillVerb {
    fn run(self) -> Result<(), Failure> {
        let FillVerb { of, condition_id, shares, at, token_id, outcome, side, fill_model, .. } = self;
        let mut body = Map::new();
        let texts = [
            ("condition_id", Some(condition_id)),
            ("shares", Some(shares)),
            ("at", Some(at)),
            ("token_id", token_id),
            ("outcome", outcome),
            ("side", side),
            ("fill_model", fill_model),
            ("limit_price", self.limit_price),
            ("queue_position", self.queue_position),
        ];
        let given = texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::String(text?))));
        body.extend(given);
        // The route refuses what is not an integer of its range.
        let number = |text: String| text.parse().map_or(Value::String(text), Value::Number);
        body.extend(self.latency_ms.map(|text| ("latency_ms".to_owned(), number(text))));
        let body = Value::Object(body).to_string();
        of.answer(Question::Fill(&read::json(body.as_bytes()).map_err(|error| error.to_string())?))
    }
}

#[derive(Args)]
pub struct BookVerb {
    #[command(flatten)]
    of: OfArchive,
    /// The market.
    #[arg(long, value_name = "ID")]
    condition_id: String,
    /// The moment.
    #[arg(long, value_name = "TIME")]
    at: String,
    /// A token of the market, in place of the outcome.
    #[arg(long, value_name = "ID")]
    token_id: Option<String>,
    /// Label of the outcome, in any case (default: Yes).
    #[arg(long, value_name = "LABEL")]
    outcome: Option<String>,
    /// Levels of each side, 1 to 500 (default: 10).
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true)]
    depth: Option<String>,
}

impl BookVerb {
    fn run(self) -> Result<(), Failure> {
        let BookVerb { of, condition_id, at, token_id, outcome, depth } = self;
        let fields = [
            ("condition_id", Some(condition_id)),
            ("at", Some(at)),
            ("token_id", token_id),
            ("outcome", outcome),
            ("depth", depth),
        ];
        of.answer(Question::Book(&query(fields)))
    }
}

#[derive(Args)]
pub struct CoverageVerb {
    #[command(flatten)]
    of: OfArchive,
    /// The market.
    #[arg(long, value_name = "ID")]
    condition_id: String,
    /// Begin of the window (default: the first hour of the market).
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// End of the window, not included (default: after the last hour of the market).
    #[arg(long, value_name = "TIME")]
    end: Option<String>,
}

impl CoverageVerb {
    fn run(self) -> Result<(), Failure> {
        let CoverageVerb { of, condition_id, start, end } = self;
        of.answer(Question::Coverage(&query([("condition_id", Some(condition_id)), ("start", start), ("end", end)])))
    }
}

/// The query with the fields that are given.
fn query<const N: usize>(fields: [(&'static str, Option<String>); N]) -> Query<'static> {
    Query::of(fields.into_iter().filter_map(|(name, text)| Some((name, Cow::Owned(text?)))))
}
