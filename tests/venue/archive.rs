//! A recording and the hours that are made of it: the server shows the same books and markets from both.

use serde_json::{Value, json};
use std::path::Path;
use tests::binary::{run, run_well};
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::server::ServerDir;
use tests::tape::{Market, Tape};

const PRICES: [&str; 6] = ["0.30", "0.31", "0.32", "0.33", "0.34", "0.35"];

fn recorded(path: &Path) -> Vec<Market> {
    let markets = vec![Market::new(1, "rain", "weather", 0.01), Market::new(2, "snow", "weather", 0.001)];
    let mut tape = Tape::create(path);
    tape.list(&markets.iter().collect::<Vec<_>>());
    for market in &markets {
        tape.books(market, &[("0.30", "100"), ("0.29", "50")], &[("0.40", "70")]);
    }
    for (number, price) in PRICES.iter().enumerate() {
        tape.level(&markets[number % 2], 0, "BUY", price, "12.5");
        tape.trade(&markets[number % 2], 0, "BUY", "0.40", "3");
    }
    tape.tick(&markets[0], "0.01", "0.001");
    tape.gap();
    tape.books(&markets[0], &[("0.355", "8")], &[("0.36", "9"), ("0.41", "1")]);
    tape.resolve(&markets[1], ["1", "0"]);
    markets
}

/// What a server shows of the markets; `None` until it has the last line.
fn shown(client: &mut Client, markets: &[Market]) -> Option<Value> {
    let mut all = Vec::new();
    for market in markets {
        let answer = client.get(&format!("/v1/markets/by-slug/{}", market.slug));
        if answer.status == 404 {
            return None;
        }
        let detail = answer.expect(200);
        let mut books = Vec::new();
        for token in &market.tokens {
            let book = client.get(&format!("/v1/book?token_id={token}"));
            books.push(match book.status {
                200 => json!({"bids": book.json()["bids"], "asks": book.json()["asks"]}),
                status => json!(status),
            });
        }
        let fields = ["question", "category", "closed", "resolved_outcome", "tick_size"].map(|name| &detail[name]);
        all.push(json!([fields, books]));
    }
    Some(Value::Array(all))
}

#[test]
fn hours_show_what_their_lines_show() {
    let cases = Cases::of("an archive and its lines");
    let place = ServerDir::new();
    let lines = place.root().join("tape.ndjson");
    let markets = recorded(&lines);
    let archive = place.root().join("archive");
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let import = |more: &[&str]| {
        let mut words =
            vec!["archive".to_owned(), "import".to_owned(), text(&lines), "--archive".to_owned(), text(&archive)];
        words.extend(more.iter().map(|word| (*word).to_owned()));
        words
    };
    let said = run_well(import(&[]));
    assert!(said.contains("polymarket") && said.contains("rows"), "{said}");
    let said = run_well(import(&["--json"]));
    let last: Value = serde_json::from_str(said.lines().last().expect("a line")).expect("JSON");
    assert_eq!((&last["new"], &last["refused"]), (&json!(0), &json!([])), "{said}");
    cases.add(2);

    let mut views = Vec::new();
    for tape in [text(&lines), text(&archive)] {
        let mut place = ServerDir::new();
        place.set("venue", "kind", "\"replay\"");
        let key = place.seed(1, "enterprise", "1").remove(0).key;
        for start in 0..2 {
            let server = place.start_with(&["--tape", &tape, "--speed", "max"], &[]);
            let mut client = server.with_key(&key);
            let ended = |client: &mut Client| {
                let has_ended = client.get("/v1/status").text().contains("\"ended\":true");
                // The result is known a moment after the last row.
                shown(client, &markets).filter(|view| has_ended && view[1][0][3] == "Yes")
            };
            let view = eventually(&format!("{tape}, start {start}"), || ended(&mut client));
            views.push(view);
            server.stop();
            cases.one();
        }
    }
    assert!(views.iter().all(|view| *view == views[0]), "{views:#?}");
    assert!(views[0].to_string().contains("0.355"), "{}", views[0]);
}

#[test]
fn wrong_imports_end_with_their_code() {
    let cases = Cases::of("wrong imports");
    let place = ServerDir::new();
    let garbage = place.root().join("x_2026-08-11T00.parquet");
    std::fs::write(&garbage, "PAR1 and nothing else").expect("a file");
    let archive = place.root().join("archive");
    let (garbage, archive) = (garbage.to_str().expect("a path"), archive.to_str().expect("a path"));
    let cases_of: [(&[&str], i32, &str); 5] = [
        (&["import", garbage, "--archive", archive], 1, "x_2026-08-11T00.parquet"),
        (&["import", "/nowhere/at/all", "--archive", archive], 1, "/nowhere/at/all"),
        (&["import"], 2, "PATHS"),
        (&["import", garbage, "--from", "yesterday"], 2, "2026-09-30T17"),
        (&["import", garbage, "--archive", archive, "--from", "2026-09-30T18", "--to", "2026-09-30T17"], 2, "is after"),
    ];
    for (words, code, part) in cases_of {
        let output = run(["archive"].iter().chain(words));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
        cases.one();
    }
}
