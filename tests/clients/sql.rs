//! The files of an archive with the tools that analysts use: the recipes of `sql/` find what the rows say, and other
//! readers and writers of Parquet get along with them.

use crate::programs::{Clients, counted, run_well};
use archive::read::HourFile;
use archive::row::{Condition, Event, Row};
use archive::store::{Settings, Store};
use engine::amount::{Price, Qty};
use engine::time::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tests::binary::{run, run_well as papertape};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::hours::{self, FIRST_MS, HOUR_MS};
use tests::server::ServerDir;

const HOURS: u64 = 3;
const COLUMNS: [(&str, &str); 16] = [
    ("timestamp_received", "timestamp[ms, tz=UTC]"),
    ("timestamp", "timestamp[ms, tz=UTC]"),
    ("market", "fixed_size_binary[66]"),
    ("event_type", "string"),
    ("asset_id", "string"),
    ("bids", "string"),
    ("asks", "string"),
    ("price", "decimal128(9, 4)"),
    ("size", "decimal128(18, 6)"),
    ("side", "string"),
    ("best_bid", "decimal128(9, 4)"),
    ("best_ask", "decimal128(9, 4)"),
    ("fee_rate_bps", "uint16"),
    ("transaction_hash", "string"),
    ("old_tick_size", "decimal128(9, 4)"),
    ("new_tick_size", "decimal128(9, 4)"),
];

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// A number of units of 10⁻⁴ or 10⁻⁶ as a decimal.
fn decimal(value: u64, decimals: usize) -> String {
    let digits = format!("{value:0width$}", width = decimals + 1);
    let (whole, part) = digits.split_at(digits.len() - decimals);
    format!("{whole}.{part}")
}

fn price(price: Price) -> String {
    decimal(price.0.into(), 4)
}

fn size(size: Qty) -> String {
    decimal(size.0, 6)
}

/// The lines of a verb as objects.
fn lines(words: &[&str]) -> Vec<Value> {
    papertape(words).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// All values as texts, as the program writes them.
fn texts(row: &[(&str, Option<String>)]) -> Value {
    row.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
}

fn minute_of(row: &Row) -> u64 {
    row.received.millis() / 60_000 * 60_000
}

fn trades(rows: &[Row], market: Condition) -> Vec<Value> {
    let mut found: Vec<(u64, Value)> = Vec::new();
    for row in rows.iter().filter(|row| row.market == market) {
        if let Event::LastTradePrice { price: at, size: of, taker_buys, fee_rate_bps, transaction_hash } = &row.event {
            let received = row.received.millis();
            let fields = [
                ("received_ms", Some(received.to_string())),
                ("market", Some(market.to_string())),
                ("asset_id", Some(row.token.to_string())),
                ("side", Some(if *taker_buys { "BUY" } else { "SELL" }.to_owned())),
                ("price", Some(price(*at))),
                ("size", Some(size(*of))),
                ("fee_rate_bps", fee_rate_bps.map(|rate| rate.to_string())),
                ("transaction_hash", transaction_hash.as_ref().map(|hash| hash.to_string())),
            ];
            found.push((received, texts(&fields)));
        }
    }
    found.sort_by_key(|(received, _)| *received);
    found.into_iter().map(|(_, row)| row).collect()
}

fn bars(rows: &[Row], token: &str) -> Vec<Value> {
    let mut minutes: BTreeMap<u64, Vec<(Price, Qty)>> = BTreeMap::new();
    for row in rows.iter().filter(|row| *row.token == *token) {
        if let Event::LastTradePrice { price, size, .. } = &row.event {
            minutes.entry(minute_of(row)).or_default().push((*price, *size));
        }
    }
    let bar = |(minute, trades): (&u64, &Vec<(Price, Qty)>)| {
        let prices = || trades.iter().map(|(price, _)| *price);
        let volume = Qty(trades.iter().map(|(_, size)| size.0).sum());
        texts(&[
            ("minute_ms", Some(minute.to_string())),
            ("open", prices().next().map(price)),
            ("high", prices().max().map(price)),
            ("low", prices().min().map(price)),
            ("close", prices().next_back().map(price)),
            ("volume", Some(size(volume))),
            ("trades", Some(trades.len().to_string())),
        ])
    };
    minutes.iter().map(bar).collect()
}

fn spreads(rows: &[Row], token: &str) -> Vec<Value> {
    let mut minutes: BTreeMap<u64, Vec<[Price; 2]>> = BTreeMap::new();
    for row in rows.iter().filter(|row| *row.token == *token) {
        if let Event::PriceChange { best_bid: Some(bid), best_ask: Some(ask), .. } = &row.event {
            minutes.entry(minute_of(row)).or_default().push([*bid, *ask]);
        }
    }
    let spread = |(minute, stated): (&u64, &Vec<[Price; 2]>)| {
        let spreads = || stated.iter().map(|[bid, ask]| u64::from(ask.0 - bid.0));
        let four = |value: u64| Some(decimal(value, 4));
        texts(&[
            ("minute_ms", Some(minute.to_string())),
            ("best_bid", stated.last().map(|[bid, _]| price(*bid))),
            ("best_ask", stated.last().map(|[_, ask]| price(*ask))),
            ("spread_min", spreads().min().and_then(four)),
            ("spread_max", spreads().max().and_then(four)),
            ("spread_sum", four(spreads().sum())),
            ("statements", Some(stated.len().to_string())),
        ])
    };
    minutes.iter().map(spread).collect()
}

/// The book of our own fold, in the order of the recipe.
fn book(store: &Store, market: &Condition, token: &str, moment: u64) -> Vec<Value> {
    let found = store.book_at("polymarket", market, token, Timestamp::from_millis(moment)).expect("a book");
    let mut levels: Vec<(&str, Price, Qty)> = Vec::new();
    levels.extend(found.bids.iter().map(|(price, size)| ("BUY", *price, *size)));
    levels.extend(found.asks.iter().map(|(price, size)| ("SELL", *price, *size)));
    levels.sort();
    let row = |(side, at, of): &(&str, Price, Qty)| {
        texts(&[("side", Some((*side).to_owned())), ("price", Some(price(*at))), ("size", Some(size(*of)))])
    };
    levels.iter().map(row).collect()
}

#[test]
fn recipes_find_what_the_rows_say() {
    let cases = Cases::of("recipes and readers");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let place = ServerDir::new();
    let (tape, root) = (place.root().join("tape.ndjson"), place.root().join("archive"));
    let mut chance = Chance::seeded(77);
    let markets = hours::record(&tape, &mut chance, HOURS, 900);
    let made = lines(&["archive", "import", text(&tape), "--archive", text(&root), "--json"]);
    let files: Vec<String> = made.iter().filter_map(|hour| Some(hour["path"].as_str()?.to_owned())).collect();
    assert_eq!(files.len(), HOURS as usize);
    let (market, token) = (Condition::parse(&markets[0].condition).expect("an id"), markets[0].yes().to_owned());
    let moments: Vec<u64> =
        (0..40).map(|_| FIRST_MS + 10_000 + chance.below((HOURS * HOUR_MS) as usize - 20_000) as u64).collect();
    let folder = place.root().join("found");
    fs::create_dir(&folder).expect("a folder");
    let ls = lines(&["archive", "ls", "--archive", text(&root), "--json"]);
    let facts = json!({
        "folder": folder,
        "venue": root.join("polymarket"),
        "files": files,
        "hours": ls.iter().map(|hour| &hour["hour"]).collect::<Vec<_>>(),
        "rows": ls.iter().map(|hour| &hour["rows"]).collect::<Vec<_>>(),
        "glob": root.join("polymarket/*/*/*/*.parquet"),
        "sidecars": root.join("*/*/*/*/*.json"),
        "market": markets[0].condition,
        "token": token,
        "moments": moments,
        "columns": COLUMNS.map(|(name, _)| name),
        "types": COLUMNS.map(|(_, of)| of),
    });
    let file = place.root().join("facts.json");
    fs::write(&file, facts.to_string()).expect("facts can be written");
    let mut program = clients.script("sql.py");
    program.arg(&file);
    cases.add(counted(&run_well(program, place.root())));
    let found: Value =
        serde_json::from_slice(&fs::read(folder.join("found.json")).expect("what was found")).expect("JSON");

    // Our own reading of the same rows.
    let mut rows = Vec::new();
    for path in &files {
        let hour = HourFile::open(Path::new(path)).expect("an hour");
        rows.extend(hour.all_rows().map(|row| row.expect("a row").1));
    }
    let check = |name: &str, expected: &Value, least: usize| {
        assert_eq!(&found[name], expected, "{name}");
        let count = expected.as_array().expect("rows").len();
        assert!(count >= least, "{name}: {count} rows");
        cases.add(count);
    };
    check("trades", &json!(trades(&rows, market)), 100);
    check("minute_bars", &json!(bars(&rows, &token)), 60);
    check("spread", &json!(spreads(&rows, &token)), 60);
    let store = Store::open(&root, Settings::default()).expect("an archive");
    let books: Vec<_> = moments.iter().map(|moment| book(&store, &market, &token, *moment)).collect();
    check("books", &json!(books), moments.len());
    let number = |value: &Value| (!value.is_null()).then(|| value.to_string());
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let (mut coverage, mut gaps) = (Vec::new(), Vec::new());
    for hour in &ls {
        let path = hour["path"].as_str().expect("a path").replace(".parquet", ".json");
        let sidecar: Value = serde_json::from_slice(&fs::read(path).expect("a sidecar")).expect("JSON");
        coverage.push(texts(&[
            ("venue", word(&hour["venue"])),
            ("hour", word(&hour["hour"])),
            ("verdict", word(&hour["verdict"])),
            ("rows", number(&hour["rows"])),
            ("tokens", number(&sidecar["tokens"])),
            ("dropped", number(&sidecar["frames"]["dropped"])),
            ("minutes_empty", number(&sidecar["minutes_empty"])),
            ("gap_ms_total", number(&sidecar["gap_ms_total"])),
        ]));
        for gap in sidecar["gaps"].as_array().expect("gaps") {
            gaps.push(texts(&[
                ("venue", word(&hour["venue"])),
                ("hour", word(&hour["hour"])),
                ("from_ms", number(&gap["from"])),
                ("to_ms", number(&gap["to"])),
                ("reason", word(&gap["reason"])),
                ("tokens", gap["tokens"].as_array().map(|tokens| tokens.len().to_string())),
            ]));
        }
    }
    check("coverage", &json!(coverage), HOURS as usize);
    check("gaps", &json!(gaps), 1);
    let of_token = rows.iter().filter(|row| *row.token == *token);
    let folded = of_token.filter(|row| matches!(row.event, Event::Book { .. } | Event::PriceChange { .. })).count();
    assert_eq!(found["loaded"], folded);
    cases.one();

    // Files of other writers: three compressions are not read, since nothing bounds what their pages become.
    let import = |path: &str, root: &Path| run(["archive", "import", path, "--archive", text(root), "--json"]);
    for (kind, path) in found["rewritten"].as_object().expect("files") {
        let root = place.root().join(format!("of-{kind}"));
        let output = import(path.as_str().expect("a path"), &root);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if ["gzip", "brotli", "lz4"].contains(&kind.as_str()) {
            assert!(!output.status.success() && said.contains(&kind.to_uppercase()), "{kind}: {said}");
        } else {
            assert!(output.status.success(), "{kind}: {said}");
            let hour: Value =
                serde_json::from_slice(output.stdout.split(|byte| *byte == b'\n').next().expect("a line"))
                    .expect("JSON");
            assert_eq!(hour["rows"], ls[0]["rows"], "{kind}");
            let other = HourFile::open(Path::new(hour["path"].as_str().expect("a path"))).expect("an hour");
            let ours = HourFile::open(Path::new(&files[0])).expect("an hour");
            let [one, other] =
                [ours, other].map(|file| file.all_rows().map(|row| row.expect("a row").1).collect::<Vec<Row>>());
            assert!(one == other, "{kind}: other rows");
        }
        cases.one();
    }
}
