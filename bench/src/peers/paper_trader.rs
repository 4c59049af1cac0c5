//! The paper trader from PyPI, complete, in a process of its own: the alternative that a user could install.
//!
//! It has no server: its engine is called in its own process, and writes to a database file, as it does for its users.

use super::python::Program;
use std::path::Path;

pub const NAME: &str = "polymarket-paper-trader 0.4.13";
const PACKAGE: &str = "polymarket-paper-trader==0.4.13";
const SOURCE: &str = include_str!("paper_trader.py");

/// Its engine, ready to buy. Killed when dropped.
pub struct PaperTrader(Program);

impl PaperTrader {
    /// Installs it below `place` and starts it.
    ///
    /// # Errors
    /// One sentence, without Python with `venv` or without a registry.
    pub fn install(place: &Path) -> Result<PaperTrader, String> {
        Program::install(NAME, &[PACKAGE], SOURCE, place).map(PaperTrader)
    }

    /// Buys for ten dollars `count` times; returns the seconds.
    pub fn buy(&mut self, count: usize) -> f64 {
        let line = self.0.ask(&count.to_string());
        line.parse().unwrap_or_else(|_| panic!("{NAME} says seconds: {line:?}"))
    }
}
