//! The output of a scenario: rows of figures, percentiles, ratios, goals, the promise of an acknowledgement, what is
//! left out, and a hash of the deterministic results. The facts about machine and run are in `machine.rs`. A ratio
//! carries the load of the machine before and after, and is withheld when its reference fell below its floor
//! (`floor.rs`).

use crate::floor::Floor;
use crate::goals::{self, Goal};
use crate::machine;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::Instant;

/// Columns of a row's name.
const WIDTH: usize = 48;

/// The rate of sequential operations.
pub const ONE_BY_ONE: &str = "none: one after the other, as fast as it goes";

/// Source of the memory of code in this process.
pub const PREFAULTED: &str =
    "made ahead of its use by a thread that yields, like a server's; what a round took is not given back to the next";

/// Amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Milliseconds, for the tests.
    Small,
    /// The published size.
    Full,
}

impl Size {
    /// The first number or the second, by size.
    pub fn pick<T>(self, small: T, full: T) -> T {
        match self {
            Size::Small => small,
            Size::Full => full,
        }
    }
}

/// The answer to a scenario's question.
pub struct Report {
    name: &'static str,
    question: &'static str,
    size: Size,
    with_peers: bool,
    /// When the scenario began.
    load_before: String,
    rows: Vec<(String, String)>,
    figures: serde_json::Map<String, Value>,
    /// The promise of an acknowledgement during the measurement.
    durability: String,
    /// The offered rate.
    rate: String,
    not_included: String,
    /// Assignment of cores.
    cores: String,
    /// `None` = nothing deterministic.
    computed: Option<Sha256>,
    /// Failures.
    failures: Vec<String>,
}

impl Report {
    pub fn new(name: &'static str, question: &'static str, size: Size, with_peers: bool) -> Report {
        Report {
            name,
            question,
            size,
            with_peers,
            load_before: machine::load(),
            rows: Vec::new(),
            figures: serde_json::Map::new(),
            durability: "none: nothing is kept".into(),
            rate: String::new(),
            not_included: String::new(),
            cores: "chosen by the system".into(),
            computed: None,
            failures: Vec::new(),
        }
    }

    /// Whether libraries of other projects run the same work.
    pub fn with_peers(&self) -> bool {
        self.with_peers
    }

    /// A result that was computed or read back, not a constant: part of the hash.
    pub fn computed(&mut self, bytes: impl AsRef<[u8]>) {
        self.computed.get_or_insert_default().update(bytes);
    }

    /// A figure with its unit.
    pub fn figure(&mut self, what: &str, value: f64, unit: &str) {
        self.row(what, format!("{} {unit}", short(value)));
        self.figures.insert(format!("{what} [{unit}]"), json!(value));
    }

    /// A figure of each round; the median counts.
    pub fn middle(&mut self, what: &str, rounds: &[f64], unit: &str) {
        self.figure(what, median(rounds), unit);
    }

    /// A condition of the run.
    pub fn note(&mut self, what: &str, text: impl Into<String>) {
        let text = text.into();
        self.figures.insert(what.into(), json!(text));
        self.row(what, text);
    }

    /// A failure: the program exits with an error after all scenarios.
    pub fn failed(&mut self, why: impl Into<String>) {
        self.failures.push(why.into());
    }

    /// Whether nothing failed.
    pub fn is_well(&self) -> bool {
        self.failures.is_empty()
    }

    /// The promise of an acknowledgement.
    pub fn durability(&mut self, text: impl Into<String>) {
        self.durability = text.into();
    }

    /// Assignment of cores, unless the system chooses.
    pub fn cores(&mut self, text: impl Into<String>) {
        self.cores = text.into();
    }

    /// What the figures leave out. Every scenario states it.
    pub fn not_included(&mut self, text: impl Into<String>) {
        self.not_included = text.into();
    }

    /// How the load was driven. Every scenario states it.
    pub fn rate_note(&mut self, text: impl Into<String>) {
        self.rate = text.into();
    }

    /// An open loop: the offered rate and the achieved one.
    pub fn rate(&mut self, what: &str, asked: f64, reached: f64) {
        self.row(what, format!("offered {} a second, achieved {}", short(asked), short(reached)));
        self.figures.insert(format!("{what} [a second]"), json!({ "asked": asked, "reached": reached }));
    }

    /// Ratios of our code to itself under another condition, one per round; the median counts. Ratios to other code go
    /// through [`Report::ratio_above`].
    pub fn ratio_to_itself(&mut self, what: &str, ratios: Vec<f64>) {
        self.ratio(what, ratios);
    }

    fn ratio(&mut self, what: &str, ratios: Vec<f64>) {
        let median = median(&ratios);
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (before, after) = (self.load_before.clone(), machine::load());
        self.row(what, format!("{median:.2} × [{least:.2}–{greatest:.2}], load {before} to {after}"));
        let load = json!({ "before": before, "after": after });
        self.figures.insert(what.into(), json!({ "median": median, "min": least, "max": greatest, "load": load }));
    }

    /// The same relative to a reference with one or more floors: each comes with the reference's rates a second in the
    /// rounds. Below a floor the ratio is withheld, and the reason printed instead.
    pub fn ratio_above(&mut self, references: &[(&Floor, &[f64])], what: &str, ratios: Vec<f64>) {
        match references.iter().try_for_each(|(floor, reached)| floor.judge(self.size, reached)) {
            Ok(()) => self.ratio(what, ratios),
            Err(refused) => self.refused(what, refused.to_string()),
        }
    }

    /// A measured value that is withheld: the reason, from "refused" on, is printed instead.
    pub fn refused(&mut self, what: &str, why: impl Into<String>) {
        let (why, before, after) = (why.into(), self.load_before.clone(), machine::load());
        self.row(what, format!("{why}, load {before} to {after}"));
        let load = json!({ "before": before, "after": after });
        self.figures.insert(what.into(), json!({ "refused": why, "load": load }));
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

    /// First 16 hex digits of the SHA-256 over everything computed; `None` if nothing was computed, or not everything.
    fn hash(&self) -> Option<String> {
        let computed = self.computed.clone().filter(|_| self.is_well())?;
        Some(computed.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn json(&self) -> Value {
        json!({
            "scenario": self.name,
            "question": self.question,
            "figures": self.figures,
            "durability": self.durability,
            "rate": self.rate,
            "cores": self.cores,
            "goals": goals::of(self.name).map(Goal::to_string).collect::<Vec<_>>(),
            "not_included": self.not_included,
            "hash": self.hash(),
            "failed": self.failures,
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
        for goal in goals::of(self.name) {
            writeln!(f, "  {:<WIDTH$} {goal}", "goal")?;
        }
        writeln!(f, "  {:<WIDTH$} {}", "durability", self.durability)?;
        writeln!(f, "  {:<WIDTH$} {}", "rate asked", self.rate)?;
        writeln!(f, "  {:<WIDTH$} {}", "cores", self.cores)?;
        writeln!(f, "  {:<WIDTH$} {}", "not included", self.not_included)?;
        let hash = self.hash().unwrap_or_else(|| "none: nothing here is the same each time".to_owned());
        writeln!(f, "  {:<WIDTH$} {hash}", "result hash")?;
        self.failures.iter().try_for_each(|why| writeln!(f, "  {:<WIDTH$} {why}", "FAILED"))
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

/// The median of values in any order; of an even count the upper one.
///
/// # Panics
/// Without a value.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A histogram of nanoseconds up to a minute.
pub fn nanoseconds() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are valid")
}

/// Seconds that `work` takes, and its result.
pub fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let made = work();
    (begun.elapsed().as_secs_f64(), made)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Floor = Floor { of: "a loop", least: 5_000.0 };
    const QUIET: Floor = Floor { of: "another loop", least: 1.0 };

    fn ratio(size: Size, reached: f64) -> (String, Value) {
        let mut report = Report::new("any", "why?", size, false);
        let references: [(&Floor, &[f64]); 2] = [(&QUIET, &[1e6]), (&FLOOR, &[reached])];
        report.ratio_above(&references, "rate", vec![3.0, 1.0, 2.0]);
        (report.to_string(), report.json()["figures"]["rate"].clone())
    }

    #[test]
    fn a_ratio_is_published_with_its_load_or_kept_back_with_its_reason() {
        let cases = [(Size::Full, 5_000.0, true), (Size::Full, 4_000.0, false), (Size::Small, 4_000.0, true)];
        for (size, reached, is_published) in cases {
            let (text, figure) = ratio(size, reached);
            assert!(figure["load"]["before"].is_string() && figure["load"]["after"].is_string(), "{figure}");
            assert!(text.contains(", load "), "{text}");
            if is_published {
                assert!(text.contains("2.00 × [1.00–3.00]"), "{text}");
                assert_eq!(
                    (&figure["median"], &figure["min"], &figure["max"]),
                    (&json!(2.0), &json!(1.0), &json!(3.0))
                );
                assert!(figure["refused"].is_null(), "{figure}");
            } else {
                assert!(!text.contains('×') && text.contains("refused: a loop reached 4000 a second"), "{text}");
                assert!(figure["median"].is_null() && figure["min"].is_null() && figure["max"].is_null(), "{figure}");
                assert!(figure["refused"].as_str().is_some_and(|why| why.contains("floor of 5000")), "{figure}");
            }
        }
        println!("published or kept back: {} cases", cases.len());
    }
}
