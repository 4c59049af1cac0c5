//! Running the programs of this folder.

use crate::worlds::{self, Facts};
use serde_json::Value;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tests::binary::workspace;
use tests::cases::Cases;
use tests::eventually;
use tests::server::{Server, ServerDir};

/// Folder of the installed clients.
pub struct Clients {
    folder: PathBuf,
}

impl Clients {
    /// The installed clients, or `None` after reporting that they are missing.
    pub fn fetched() -> Option<Clients> {
        let folder = env::var_os("PAPERTAPE_CLIENTS").map_or_else(|| workspace().join("target/clients"), PathBuf::from);
        let parts = ["python/bin/python", "unified/bin/python", "node/node_modules/@polymarket"];
        if parts.iter().all(|part| folder.join(part).exists()) {
            return Some(Clients { folder });
        }
        let required = env::var_os("PAPERTAPE_REQUIRE_CLIENTS").is_some_and(|value| !value.is_empty() && value != "0");
        assert!(!required, "clients are required and not in {}", folder.display());
        tests::binary::skipped(&format!("no clients in {}; tests/clients/install fetches them", folder.display()));
        None
    }

    /// A program of the Python environment.
    pub fn python(&self, program: &str) -> Command {
        Command::new(self.folder.join("python/bin").join(program))
    }

    /// Node with a script of this folder: modules are resolved beside the script, so it is copied there.
    pub fn node(&self, script: &str) -> Command {
        let beside = self.folder.join("node").join(script);
        fs::copy(here().join(script), &beside).expect("the script can be copied beside its modules");
        let mut node = self.python("node");
        node.arg(beside);
        node
    }

    /// A Python script of this folder in an environment of its own; `None` if that is not installed.
    pub fn script_in(&self, environment: &str, script: &str) -> Option<Command> {
        let python = self.folder.join(environment).join("bin/python");
        python.exists().then(|| {
            let mut python = Command::new(python);
            python.arg(here().join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
            python
        })
    }

    /// The search path of programs that start others of the Python environment.
    pub fn path(&self) -> OsString {
        let rest = env::var_os("PATH").unwrap_or_default();
        env::join_paths([self.folder.join("python/bin")].into_iter().chain(env::split_paths(&rest))).expect("paths")
    }

    /// A file of an installed Node package.
    pub fn package_file(&self, path: &str) -> PathBuf {
        self.folder.join("node/node_modules").join(path)
    }

    /// A Python script of this folder; leaves no compiled files among the sources.
    pub fn script(&self, script: &str) -> Command {
        let mut python = self.python("python");
        python.arg(here().join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
        python
    }
}

/// The folder of the programs.
pub fn here() -> PathBuf {
    workspace().join("tests/clients")
}

/// Runs a program to its end and prints its output; fails if it failed.
pub fn run_well(mut program: Command, at: &Path) -> String {
    let Output { status, stdout, stderr } =
        program.current_dir(at).stdin(Stdio::null()).output().expect("the program can be started");
    let output = String::from_utf8_lossy(&stdout).into_owned();
    println!("{output}");
    assert!(status.success(), "{program:?} ended with {status}\n{}", String::from_utf8_lossy(&stderr));
    output
}

/// The count that a program prints at its end.
pub fn counted(output: &str) -> usize {
    let line = output.lines().last().unwrap_or_default();
    let count =
        line.strip_suffix(" cases").and_then(|line| line.rsplit(' ').next()).and_then(|count| count.parse().ok());
    count.unwrap_or_else(|| panic!("no count in {line:?}"))
}

/// Every client in turn on the same hosts, each with an address of its own: paper fills of one do not affect the books
/// of another.
fn run_all(clients: &Clients, place: &ServerDir, server: &Server, facts: &Facts) -> usize {
    // The documented host, and the bare one that some users enter (gateway/docs/venue-clients.md §0).
    let hosts = [format!("http://{}/v1", server.address()), format!("http://{}", server.address())];
    let mut cases = 0;
    for (round, host) in hosts.iter().enumerate() {
        let programs = [clients.script("python_v1.py"), clients.script("python_v2.py"), clients.node("typescript.mjs")];
        for (number, mut program) in programs.into_iter().enumerate() {
            let mut own = facts.value.clone();
            own["host"] = Value::from(host.clone());
            own["private_key"] = Value::from(format!("0x{:064x}", 0x5eed_0000 + round * 16 + number));
            let file = place.root().join("facts.json");
            fs::write(&file, own.to_string()).expect("facts can be written");
            println!("{host}");
            program.arg(&file);
            cases += counted(&run_well(program, place.root()));
        }
    }
    cases
}

#[test]
fn clients_trade_on_a_market_with_known_figures() {
    let cases = Cases::of("clients, known figures");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let (world, facts) = worlds::known();
    cases.add(run_all(&clients, &world.place, &world.server, &facts));
}

/// The newest client while its orders are rehearsed: what the venue would refuse are the orders that its program sends to be
/// refused, and nothing else. Its requests are signed with the secret of its key, and its owner is that key.
#[test]
fn orders_of_the_newest_client_pass_a_rehearsal() {
    let cases = Cases::of("clients, rehearsed");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let (mut world, facts) = worlds::known_with(|place| _ = place.set("venue", "rehearse", "\"warn\""));
    let mut own = facts.value.clone();
    own["host"] = Value::from(format!("http://{}/v1", world.server.address()));
    own["private_key"] = Value::from(format!("0x{:064x}", 0x5eed_1000));
    let file = world.place.root().join("facts.json");
    fs::write(&file, own.to_string()).expect("facts can be written");
    let mut program = clients.script("python_v2.py");
    program.arg(&file);
    cases.add(counted(&run_well(program, world.place.root())));
    world.server.terminate();
    eventually("the server ends", || world.server.is_over().then_some(()));
    let place = world.place.data();
    let output = tests::binary::run(["doctor", "--rehearse", "--json", "--data-dir", place.to_str().expect("UTF-8")]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("the doctor prints JSON");
    println!("{report}");
    let found = report["findings"].as_array().expect("a list").iter();
    let found: Vec<(&str, &str)> = found
        .map(|row| (row["rule"].as_str().unwrap_or_default(), row["class"].as_str().unwrap_or_default()))
        .collect();
    // Too few shares; the age of the account is not known.
    assert_eq!(found, [("S07", "depends"), ("S10", "refused")], "{report}");
    assert!(report["sent"].as_u64().is_some_and(|sent| sent > 200), "{report}");
    cases.add(3);
}

#[test]
fn clients_trade_on_recorded_depth() {
    let cases = Cases::of("clients, recorded depth");
    let (Some(clients), Some((place, server, facts))) = (Clients::fetched(), worlds::recorded()) else {
        return cases.one();
    };
    cases.add(run_all(&clients, &place, &server, &facts));
}
