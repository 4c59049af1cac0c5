//! What a scenario prints: rows of figures, percentiles, ratios, what was promised and what is left out, and a hash of
//! what was computed. The facts about machine and run are in `machine.rs`.

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::Instant;

/// Columns of what a row is about.
const WIDTH: usize = 48;

/// How much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Milliseconds, for the tests.
    Small,
    /// What is published.
    Full,
}

impl Size {
    /// One number or the other.
    pub fn pick<T>(self, small: T, full: T) -> T {
        match self {
            Size::Small => small,
            Size::Full => full,
        }
    }
}

/// The answer to one question.
pub struct Report {
    name: &'static str,
    question: &'static str,
    rows: Vec<(String, String)>,
    figures: serde_json::Map<String, Value>,
    /// What an acknowledgement promised while this was measured.
    durability: String,
    /// The rate that was asked for.
    rate: String,
    not_included: String,
    computed: Sha256,
}

impl Report {
    pub fn new(name: &'static str, question: &'static str) -> Report {
        Report {
            name,
            question,
            rows: Vec::new(),
            figures: serde_json::Map::new(),
            durability: "none: nothing is kept".into(),
            rate: "none: one after the other, as fast as it goes".into(),
            not_included: String::new(),
            computed: Sha256::new(),
        }
    }

    /// Something that was computed: part of the hash.
    pub fn computed(&mut self, bytes: impl AsRef<[u8]>) {
        self.computed.update(bytes);
    }

    /// A figure with its unit.
    pub fn figure(&mut self, what: &str, value: f64, unit: &str) {
        self.row(what, format!("{} {unit}", short(value)));
        self.figures.insert(format!("{what} [{unit}]"), json!(value));
    }

    /// A condition of the run.
    pub fn note(&mut self, what: &str, text: impl Into<String>) {
        let text = text.into();
        self.figures.insert(what.into(), json!(text));
        self.row(what, text);
    }

    /// What an acknowledgement promises here.
    pub fn durability(&mut self, text: impl Into<String>) {
        self.durability = text.into();
    }

    /// What the figures leave out. Every scenario says it.
    pub fn not_included(&mut self, text: impl Into<String>) {
        self.not_included = text.into();
    }

    /// How the load was driven, where it was no rate.
    pub fn rate_note(&mut self, text: impl Into<String>) {
        self.rate = text.into();
    }

    /// An open load: the rate that was asked for and the one that was reached.
    pub fn rate(&mut self, what: &str, asked: f64, reached: f64) {
        self.rate = "as each row of an open load says".into();
        self.row(what, format!("asked {} a second, reached {}", short(asked), short(reached)));
        self.figures.insert(format!("{what} [a second]"), json!({ "asked": asked, "reached": reached }));
    }

    /// Ratios of one run after the other; the median counts.
    pub fn ratio(&mut self, what: &str, mut ratios: Vec<f64>) {
        ratios.sort_by(f64::total_cmp);
        let (median, least, greatest) = (ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1]);
        self.row(what, format!("{median:.2} × [{least:.2}–{greatest:.2}]"));
        self.figures.insert(what.into(), json!({ "median": median, "min": least, "max": greatest }));
    }

    /// Percentiles of durations in nanoseconds.
    pub fn percentiles(&mut self, what: &str, nanos: &Histogram<u64>) {
        let at = |quantile| nanos.value_at_quantile(quantile);
        let points = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0)];
        let text: Vec<_> =
            points.iter().map(|(name, quantile)| format!("{name} {}", duration(at(*quantile)))).collect();
        self.row(what, text.join("  "));
        let figures: serde_json::Map<_, _> =
            points.iter().map(|(name, quantile)| ((*name).to_owned(), json!(at(*quantile)))).collect();
        self.figures.insert(format!("{what} [ns]"), Value::Object(figures));
    }

    /// First 16 hex digits of the SHA-256 over everything computed.
    pub fn hash(&self) -> String {
        self.computed.clone().finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    pub fn json(&self) -> Value {
        json!({
            "scenario": self.name,
            "question": self.question,
            "figures": self.figures,
            "durability": self.durability,
            "rate": self.rate,
            "not_included": self.not_included,
            "hash": self.hash(),
        })
    }

    fn row(&mut self, what: &str, text: String) {
        self.rows.push((what.to_owned(), text));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.question)?;
        for (what, text) in &self.rows {
            writeln!(f, "  {what:<WIDTH$} {text}")?;
        }
        writeln!(f, "  {:<WIDTH$} {}", "durability", self.durability)?;
        writeln!(f, "  {:<WIDTH$} {}", "rate asked", self.rate)?;
        writeln!(f, "  {:<WIDTH$} {}", "not included", self.not_included)?;
        writeln!(f, "  {:<WIDTH$} {}", "result hash", self.hash())
    }
}

/// Three significant digits, with the unit's prefix.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.2} G", value / 1e9),
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e4 => format!("{:.1} k", value / 1e3),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

fn duration(nanos: u64) -> String {
    match nanos {
        nanos if nanos >= 10_000_000 => format!("{:.1}ms", nanos as f64 / 1e6),
        nanos if nanos >= 10_000 => format!("{:.1}us", nanos as f64 / 1e3),
        nanos => format!("{nanos}ns"),
    }
}

/// A histogram of nanoseconds up to a minute.
pub fn nanoseconds() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are sound")
}

/// Seconds that `work` takes, and what it gives.
pub fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let made = work();
    (begun.elapsed().as_secs_f64(), made)
}
