//! The paper trader from PyPI, complete, in a process of its own: the alternative that a user could install.
//!
//! It is installed into a temporary directory without the installer's cache. It has no server: its engine is called in
//! its own process, and writes to a database file, as it does for its users.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub const NAME: &str = "polymarket-paper-trader 0.4.13";
const PACKAGE: &str = "polymarket-paper-trader==0.4.13";
const PROGRAM: &str = include_str!("paper_trader.py");

/// Its engine, ready to buy. Killed when dropped.
pub struct PaperTrader {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl PaperTrader {
    /// Installs it below `place` and starts it.
    ///
    /// # Errors
    /// One sentence, without Python with `venv` or without a registry.
    pub fn install(place: &Path) -> Result<PaperTrader, String> {
        let (venv, program) = (place.join("venv"), place.join("paper_trader.py"));
        std::fs::write(&program, PROGRAM).map_err(|error| format!("{}: {error}", program.display()))?;
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let python = venv.join("bin").join("python");
        let pip = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-cache-dir", PACKAGE];
        run(Command::new(&python).args(pip))?;
        let mut command = Command::new(&python);
        command.arg(&program).env("HOME", place).env("TMPDIR", place).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", python.display()))?;
        let stdin = child.stdin.take().expect("a pipe was requested");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe was requested"));
        let mut trader = PaperTrader { child, stdin, stdout };
        match trader.line() {
            word if word == "ready" => Ok(trader),
            word => Err(format!("{NAME} is not ready: {word:?}")),
        }
    }

    /// Buys for ten dollars `count` times; returns the seconds.
    pub fn buy(&mut self, count: usize) -> f64 {
        writeln!(self.stdin, "{count}").and_then(|()| self.stdin.flush()).expect("it listens");
        let line = self.line();
        line.parse().unwrap_or_else(|_| panic!("{NAME} says seconds: {line:?}"))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it prints text");
        line.trim().to_owned()
    }
}

impl Drop for PaperTrader {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().last().unwrap_or_default();
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {last}")) }
}
