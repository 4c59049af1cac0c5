//! The README as a newcomer follows it: the first start, the command in its banner, every line of the tour, and the
//! kill at its end. The lines are read from README.md.

mod first_steps;
#[cfg(target_arch = "x86_64")]
mod processors;

use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tests::binary::{command, papertape, workspace};
use tests::cases::Cases;
use tests::server::{Server, Starting, digest_of};

#[test]
fn a_newcomer_follows_the_readme() {
    let cases = Cases::of("lines of the tour");
    let readme = fs::read_to_string(workspace().join("README.md")).expect("README.md can be read");
    let home = TempDir::with_prefix("papertape-tour-").expect("a temporary directory can be made");
    let mut server = start(home.path());
    let output = server.output();
    for wanted in ["papertape-data", "durability  process", "synthetic", "markets", "demo key    svc_live_"] {
        assert!(output.contains(wanted), "the banner has {wanted}: {output}");
    }
    // A test of the venue computes the range of the README (`gateway/venue/src/synthetic/tests/listing.rs`).
    let (lowest, highest) = markets_stated(&readme);
    let listed = output.split_once("  markets ").expect("as above").1.split_whitespace().next();
    let listed: usize = listed.and_then(|word| word.parse().ok()).expect("a number of markets");
    assert!((lowest..=highest).contains(&listed), "README.md states {lowest} to {highest}, the banner {listed}");
    cases.one();
    // The command in the banner.
    let offered = output.split_once("  try\n").expect("the banner has a command").1;
    assert!(bash(home.path(), offered).contains(r#""status":"FILLED""#), "the order of the command is filled");
    cases.one();

    let key = server.demo_key().expect("a first start shows a key");
    let tour = section(&readme, "## Tour");
    let blocks = shell_blocks(tour);
    assert!(blocks.len() >= 5, "the tour has its blocks: {blocks:?}");
    let (offline, online): (Vec<&str>, Vec<&str>) =
        blocks.into_iter().partition(|block| block.starts_with("cargo run"));
    let script = online
        .concat()
        .replace("svc_live_...", &key)
        .replace("http://127.0.0.1:8080", &format!("http://{}", server.address()));
    cases.add(script.lines().count());
    let shown = bash(home.path(), &script);
    for (wanted, count) in [
        (r#""status":"FILLED""#, 2),
        (r#""is_replay":true"#, 1),
        (r#""client_order_id":"tour-2""#, 2),
        (r#""reserved":"1.00""#, 1),
        (r#""tier":"enterprise""#, 1),
        // A refusal begins like this.
        (r#"{"error":"#, 0),
    ] {
        assert_eq!(shown.lines().filter(|line| line.contains(wanted)).count(), count, "{wanted} in:\n{shown}");
    }
    let before = state(&server, &key);
    server.kill();
    for line in offline.concat().lines() {
        let line = line.replace("cargo run --release --", &papertape().display().to_string());
        assert!(!bash(home.path(), &line).is_empty(), "{line} prints something");
        cases.one();
    }
    let digest = digest_of(&home.path().join("papertape-data"));
    let server = start(home.path());
    assert!(server.recovered().is_some_and(|line| line.contains(" records up to LSN ")), "{}", server.output());
    assert!(server.demo_key().is_none(), "the key is shown once");
    assert_eq!(state(&server, &key), before);
    println!("digest at the kill {digest}; the same orders, balances and positions afterwards");
}

/// Only the port is configured, since the default may be in use.
fn start(home: &Path) -> Server {
    let mut serve = command();
    serve.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(home);
    // `cargo run`, the README's command, passes the environment of the build script on.
    serve.env("PAPERTAPE_GIT_SHA", "0123456789ab");
    Starting::spawn(serve).ready().unwrap_or_else(|output| panic!("papertape did not start; the output:\n{output}"))
}

/// State that must be the same after the kill. Marks move with the market, so they are left out.
fn state(server: &Server, key: &str) -> [String; 3] {
    let mut client = server.with_key(key);
    let orders = client.get("/v1/orders").expect(200);
    let balance = client.get("/v1/account/balance").expect(200)["balance"].to_string();
    let positions = client.get("/v1/account/positions").expect(200);
    let positions = positions.as_array().expect("positions are a list").iter();
    let held: Vec<String> =
        positions.map(|row| format!("{} {} {}", row["token_id"], row["quantity"], row["avg_entry_price"])).collect();
    [orders.to_string(), balance, held.join("; ")]
}

/// The least and the most markets of a first start.
fn markets_stated(readme: &str) -> (usize, usize) {
    let stated = readme.split_once("a synthetic venue of ").and_then(|(_, rest)| rest.split_once(" markets"));
    let (lowest, highest) = stated.and_then(|(range, _)| range.split_once(" to ")).expect("a range of markets");
    let number = |text: &str| text.parse().expect("a number of markets");
    (number(lowest), number(highest))
}

/// From a heading to the next of its rank.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("README.md has {heading}"));
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

fn shell_blocks(text: &str) -> Vec<&str> {
    text.split("```sh\n").skip(1).map(|rest| rest.split_once("```").expect("a block ends").0).collect()
}

/// Runs a script that must succeed; returns its output.
fn bash(home: &Path, script: &str) -> String {
    let script = format!("set -euo pipefail\n{script}");
    let output = Command::new("bash").args(["-c", &script]).current_dir(home).output().expect("bash can be run");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script}\n{shown}\n{}", String::from_utf8_lossy(&output.stderr));
    shown
}
