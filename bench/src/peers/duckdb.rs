//! DuckDB from PyPI with the recipe for a book at a moment: what a reader of the files would use without ours.

use super::python::Program;
use serde_json::json;
use std::path::Path;

pub const NAME: &str = "DuckDB 2.0.1";
/// It wants the second one for moments with a time zone.
const PACKAGES: [&str; 2] = ["duckdb==2.0.1", "pytz"];
const SOURCE: &str = include_str!("duckdb.py");
const RECIPE: &str = include_str!("../../../tests/clients/sql/book_at.sql");

/// Ready to be asked. Killed when dropped.
pub struct DuckDb(Program);

/// Which book.
pub struct Question<'a> {
    /// A pattern of the files.
    pub files: &'a Path,
    pub market: &'a str,
    pub token: &'a str,
    /// Milliseconds since 1970.
    pub at_ms: u64,
}

/// What a connection that had read nothing found.
pub struct Answer {
    pub seconds: f64,
    /// Count of levels of both sides.
    pub levels: usize,
}

impl DuckDb {
    /// Installs it below `place` and starts it.
    ///
    /// # Errors
    /// One sentence, without Python with `venv` or without a registry.
    pub fn install(place: &Path) -> Result<DuckDb, String> {
        Program::install(NAME, &PACKAGES, SOURCE, place).map(DuckDb)
    }

    /// Asks in a new connection, which is not part of its time.
    pub fn ask(&mut self, Question { files, market, token, at_ms }: &Question<'_>) -> Answer {
        let question = json!({ "recipe": RECIPE, "files": files, "market": market, "token": token, "at_ms": at_ms });
        let line = self.0.ask(&question.to_string());
        let words: Vec<&str> = line.split(' ').collect();
        let [seconds, levels] = words[..] else { panic!("{NAME} answers with two words: {line:?}") };
        Answer { seconds: seconds.parse().expect("seconds"), levels: levels.parse().expect("a count") }
    }
}
