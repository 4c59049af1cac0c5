//! Scenarios run one after the other. Each result is written as soon as its scenario ends, and a failed scenario is
//! reported without affecting the others.

use crate::machine;
use crate::report::{Report, Size};
use serde_json::{Map, Value, json};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// The runs so far.
pub struct Runs {
    size: Size,
    with_peers: bool,
    /// Where the results are also written.
    file: Option<PathBuf>,
    facts: Map<String, Value>,
    results: Vec<Value>,
    is_well: bool,
}

impl Runs {
    pub fn new(size: Size, with_peers: bool, file: Option<PathBuf>) -> Runs {
        let facts = machine::facts();
        println!("{}\n", machine::text(&facts));
        Runs { size, with_peers, file, facts, results: Vec::new(), is_well: true }
    }

    /// Runs one more scenario, prints its result and writes all results so far.
    ///
    /// # Errors
    /// One sentence, when the file cannot be written.
    pub fn run(
        &mut self,
        name: &'static str,
        question: &'static str,
        scenario: impl FnOnce(Size, &mut Report),
    ) -> Result<(), String> {
        let mut report = Report::new(name, question, self.size, self.with_peers);
        // A panic drops everything but the report, to which rows are only ever added.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| scenario(self.size, &mut report))) {
            report.failed(format!("it ended in the middle: {}", panic_message(&*panic)));
        }
        println!("{report}");
        self.is_well &= report.is_well();
        self.results.push(report.json());
        let Some(path) = &self.file else { return Ok(()) };
        let all = json!({ "machine": self.facts, "load_at_end": machine::load(), "results": self.results });
        std::fs::write(path, format!("{all:#}\n")).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whether none of them failed.
    pub fn are_well(&self) -> bool {
        self.is_well
    }
}

/// The message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_scenario_does_not_affect_the_others() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join("results.json");
        let written = || -> Value { serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON") };
        let mut runs = Runs::new(Size::Small, false, Some(path.clone()));
        let mut run = |scenario: fn(&mut Report)| {
            runs.run("any", "why?", |_, report| scenario(report)).expect("room for a file");
            let all = written();
            let results = all["results"].as_array().expect("a list").clone();
            (runs.are_well(), results.len(), results.last().expect("one").clone())
        };
        let (is_well, count, result) = run(|report| report.figure("before", 1.0, "s"));
        assert_eq!((is_well, count, &result["failed"]), (true, 1, &json!([])));
        let (is_well, count, result) = run(|report| {
            report.figure("before", 2.0, "s");
            assert_eq!(1 + 1, 3, "numbers are {}", "numbers");
        });
        assert_eq!((is_well, count, &result["figures"]["before [s]"]), (false, 2, &json!(2.0)));
        assert!(result["failed"][0].as_str().is_some_and(|why| why.contains("numbers are numbers")), "{result}");
        let (is_well, count, result) = run(|report| report.failed("not as it should be"));
        assert_eq!((is_well, count, &result["failed"]), (false, 3, &json!(["not as it should be"])));
        let (is_well, count, result) = run(|report| report.figure("late", 4.0, "s"));
        assert_eq!((is_well, count, &result["figures"]["late [s]"]), (false, 4, &json!(4.0)));
        println!("runs: {count} cases");
    }
}
