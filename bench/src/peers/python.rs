//! A Python program from PyPI in a process of its own. It is installed into a temporary directory without the
//! installer's cache, prints `ready`, and answers each line with a line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Killed when dropped.
pub struct Program {
    name: &'static str,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    /// Installs `packages` below `place` and starts `source` with them.
    ///
    /// # Errors
    /// One sentence, without Python with `venv` or without a registry.
    pub fn install(name: &'static str, packages: &[&str], source: &str, place: &Path) -> Result<Program, String> {
        let (venv, program) = (place.join("venv"), place.join("program.py"));
        std::fs::write(&program, source).map_err(|error| format!("{}: {error}", program.display()))?;
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let python = venv.join("bin").join("python");
        let pip = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-cache-dir"];
        run(Command::new(&python).args(pip).args(packages))?;
        let mut command = Command::new(&python);
        command.arg(&program).env("HOME", place).env("TMPDIR", place).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", python.display()))?;
        let stdin = child.stdin.take().expect("a pipe was requested");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe was requested"));
        let mut program = Program { name, child, stdin, stdout };
        match program.line() {
            word if word == "ready" => Ok(program),
            word => Err(format!("{name} is not ready: {word:?}")),
        }
    }

    /// Its answer to a line.
    pub fn ask(&mut self, line: &str) -> String {
        writeln!(self.stdin, "{line}").and_then(|()| self.stdin.flush()).expect("it listens");
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap_or_else(|error| panic!("{} prints text: {error}", self.name));
        line.trim().to_owned()
    }
}

impl Drop for Program {
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
