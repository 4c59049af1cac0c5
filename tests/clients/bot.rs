//! An unmodified bot of a foreign client against a recording (gateway/docs/backtest-bot.md).

use crate::programs::{Clients, run_well};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::binary::command;
use tests::cases::Cases;
use tests::json::int;
use tests::tape::{Market, Tape};

/// Changes of the book, one each half second.
const CHANGES: u64 = 24;

#[test]
fn a_foreign_bot_has_one_result() {
    let cases = Cases::of("back-tests of a foreign bot");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("tape.ndjson");
    let rain = Market::new(1, "rain", "weather", 0.01);
    let mut tape = Tape::create(&path);
    tape.list(&[&rain]);
    for change in 0..CHANGES {
        let (bid, ask) = if change % 8 < 4 { ("0.41", "0.43") } else { ("0.38", "0.40") };
        tape.books(&rain, &[(bid, "100")], &[(ask, "100")]);
        tape.wait(499);
    }
    let report = dir.path().join("report.json");
    let python = clients.script("bot.py");
    let script = python.get_args().next().expect("the script").to_string_lossy().into_owned();
    let run = format!("exec {} {script} 0", python.get_program().to_string_lossy());
    let mut backtest = command();
    backtest.args(["backtest", "--bot", "--gate", "round:get_book:1s", "--repeat", "2", "--run", &run]);
    // Orders of an address have the limits of the free plan, by the clock of the recording.
    backtest.args(["--set", "limits.tiers.free.requests_per_second=1000"]);
    backtest.arg("--tape").arg(&path).arg("--json").arg(&report);
    run_well(backtest, dir.path());
    let report: Value = serde_json::from_slice(&std::fs::read(&report).expect("the report")).expect("JSON");
    assert_eq!(report["deterministic"], json!(true), "{report}");
    assert_eq!((int(&report, "/late"), int(&report, "/num_orders") >= 8), (0, true), "{report}");
    assert!(int(&report, "/num_trades") >= 3, "{report}");
    cases.add(2);
}
