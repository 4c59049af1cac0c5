//! Back-tests (gateway/docs/simulation.md §6) on an archive of past hours: through the routes of a server, also of one
//! that is killed, and by the command.

use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use tests::binary::{command, run_well};
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::json::text;
use tests::server::{ServerDir, signal};
use tests::tape::{Market, Tape};
use tests::world::changed;

const PATH: &str = "/v1/simulation/backtests";
const HOUR_MS: u64 = 3_600_000;
const HOURS: u64 = 3;
/// Between two books.
const STEP_MS: u64 = 10_000;

/// A place with an archive of one market, whose price rises from 0.30 to 0.48 and falls back, again and again.
struct Lab {
    place: ServerDir,
    key: String,
    /// A request for all its hours.
    spec: Value,
}

impl Lab {
    fn new() -> Lab {
        let mut place = ServerDir::new();
        place.set("flags", "feature_simulation_api_enabled", "true");
        let key = place.seed(1, "enterprise", "1").remove(0).key;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis() as u64;
        let first = (now / HOUR_MS - HOURS - 1) * HOUR_MS;
        let lines = place.root().join("tape.ndjson");
        let rain = Market::new(1, "rain", "weather", 0.01);
        let mut tape = Tape::create(&lines);
        tape.go_to(first);
        tape.list(&[&rain]);
        for step in 0..HOURS * HOUR_MS / STEP_MS {
            tape.go_to(first + 100 + step * STEP_MS);
            let price = 30 + step / 20 % 10 * 2;
            let (bid, ask) = (format!("0.{price}"), format!("0.{}", price + 1));
            tape.books(&rain, &[(&bid, "40"), ("0.10", "500")], &[(&ask, "30"), ("0.90", "500")]);
        }
        // The last hour ends with its last minute.
        tape.go_to(first + HOURS * HOUR_MS);
        tape.books(&rain, &[("0.30", "40")], &[("0.31", "30")]);
        let archive = place.data().join("archive");
        run_well(["archive", "import", path(&lines), "--archive", path(&archive)]);
        let time = |millis: u64| wire::instant::ts_text(engine::time::Timestamp::from_millis(millis));
        let spec = json!({
            "condition_ids": [rain.condition], "start": time(first), "end": time(first + HOURS * HOUR_MS),
            "initial_bankroll": "500",
            "strategy": {
                "size": "25",
                "entry": [{"field": "price", "op": "lte", "value": "0.31"}],
                "exit": [{"field": "price", "op": "gte", "value": "0.45"}],
            },
        });
        Lab { place, key, spec }
    }

    /// Runs `papertape backtest` on this specification.
    fn backtest(&self, spec: &Value, more: &[&str]) -> Output {
        let file = self.place.root().join("spec.json");
        std::fs::write(&file, spec.to_string()).expect("written");
        self.backtest_of(&file, more)
    }

    fn backtest_of(&self, spec: &Path, more: &[&str]) -> Output {
        let mut backtest = command();
        backtest.arg("backtest").arg(spec).arg("--config").arg(self.place.config());
        backtest.arg("--data-dir").arg(self.place.data()).args(more);
        backtest.output().expect("papertape can be run")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.root().join(name)
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// The summary of a back-test that has ended.
fn ended(client: &mut Client, job: &str) -> Value {
    eventually("the back-test to end", || {
        let summary = client.get(&format!("{PATH}/{job}")).expect(200);
        summary["completed_at"].is_string().then_some(summary)
    })
}

/// All rows of a route, page by page.
fn rows(client: &mut Client, job: &str, what: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{PATH}/{job}/{what}?limit=2{cursor}")).expect(200);
        all.extend(page["data"].as_array().expect("rows").iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

#[test]
fn routes_and_the_command_find_the_same() {
    let cases = Cases::of("back-tests of a server and of the command");
    let lab = Lab::new();
    let server = lab.place.start();
    let mut client = server.with_key(&lab.key);
    let variants = [
        json!({}),
        json!({"tick_mode": "event"}),
        json!({"seeds": 5, "latency_ms": {"uniform": [100, 30_000 / 4]}, "haircut": "0.3"}),
        json!({"strategy": {"side": "SELL", "size": "30", "fill_model": "depth_walk_depletion"}}),
        json!({"strategy": {"size": "10", "fill_model": "midpoint"}}),
    ];
    for variant in &variants {
        let spec = changed(&lab.spec, variant);
        let created = client.post(PATH, &spec).expect(202);
        let job = text(&created, "/job_id").to_owned();
        let summary = ended(&mut client, &job);
        assert_eq!(summary["status"], "completed", "{summary}");
        assert_eq!((&summary["progress"], &summary["hours_done"]), (&json!("1.000"), &Value::Null));
        assert!(summary["num_trades"].as_u64() > Some(0), "{summary}");
        let hash = text(&summary, "/result_hash").to_owned();
        let (trades, equity) = (lab.file("trades.ndjson"), lab.file("equity.csv"));
        let more = ["--json", "-", "--expect", &hash, "--trades", path(&trades), "--equity", path(&equity)];
        let output = lab.backtest(&spec, &more);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let mut printed: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert_eq!(printed["job_id"], "00000000-0000-0000-0000-000000000000");
        assert_eq!(printed["market_hours_charged"], "0.000");
        for name in ["job_id", "created_at", "started_at", "completed_at", "market_hours_charged"] {
            printed[name] = summary[name].clone();
        }
        assert_eq!(printed, summary, "{variant}");

        let lines = std::fs::read_to_string(&trades).expect("trades");
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines, rows(&mut client, &job, "trades"), "{variant}");
        let points = rows(&mut client, &job, "equity");
        let csv = std::fs::read_to_string(&equity).expect("points");
        let mut csv = csv.lines();
        assert_eq!(csv.next(), Some("ts,equity,cash,position_value"));
        let texts = points.iter().map(|point| {
            ["ts", "equity", "cash", "position_value"].map(|name| point[name].as_str().expect("a text")).join(",")
        });
        assert!(csv.map(str::to_owned).eq(texts), "{variant}");
        cases.one();
    }
    let list = client.get(PATH).expect(200);
    assert_eq!(list["data"].as_array().map(Vec::len), Some(variants.len()));
    // Rows are in the data directory; those that are gone are made again.
    let job = text(&list["data"][0], "/job_id").to_owned();
    let before = rows(&mut client, &job, "equity");
    std::fs::remove_dir_all(lab.place.data().join("jobs")).expect("there are rows");
    assert_eq!(rows(&mut client, &job, "equity"), before);
    cases.one();
    for what in ["trades", "equity"] {
        let file = client.get(&format!("{PATH}/{job}/{what}?format=parquet"));
        assert_eq!((file.status, file.header("Content-Type")), (200, Some("application/vnd.apache.parquet")));
        let kept = lab.place.data().join("jobs").join(&job).join(format!("{what}.parquet"));
        assert_eq!(file.body, std::fs::read(kept).expect("a file"), "{what}");
        cases.one();
    }
    server.stop();
}

/// The server is killed while one back-test runs and others wait. All complete after the next start.
#[test]
fn a_kill_in_the_middle_changes_no_result() {
    let cases = Cases::of("back-tests over a kill");
    let lab = Lab::new();
    // Long enough to be met: each change of a book is a decision of 256 seeds.
    let long = changed(&lab.spec, &json!({"tick_mode": "event", "seeds": 256, "latency_ms": {"uniform": [0, 9_000]}}));
    let specs = [long, lab.spec.clone(), changed(&lab.spec, &json!({"seed": 7}))];
    let mut server = lab.place.start();
    let mut client = server.with_key(&lab.key);
    let jobs: Vec<String> =
        specs.iter().map(|spec| text(&client.post(PATH, spec).expect(202), "/job_id").to_owned()).collect();
    eventually("the first back-test to run", || {
        let summary = client.get(&format!("{PATH}/{}", jobs[0])).expect(200);
        (summary["status"] == "running").then_some(())
    });
    let waiting = client.get(&format!("{PATH}/{}", jobs[2])).expect(200);
    assert_eq!(waiting["status"], "pending", "one of a user runs");
    server.kill();
    let server = lab.place.start();
    let mut client = server.with_key(&lab.key);
    for (job, spec) in jobs.iter().zip(&specs) {
        let summary = ended(&mut client, job);
        assert_eq!(summary["status"], "completed", "{summary}");
        let output = lab.backtest(spec, &["--expect", text(&summary, "/result_hash")]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(rows(&mut client, job, "trades").len() as u64, summary["num_trades"].as_u64().expect("a count"));
        cases.one();
    }
    // The charge is that of the creation.
    let quota = client.get("/v1/simulation/quota").expect(200);
    assert_eq!((&quota["backtests_used"], &quota["market_hours_used"]), (&json!(3), &json!("9.000")));
    server.stop();
}

#[test]
fn a_cancelled_back_test_makes_room_for_the_next_one() {
    let cases = Cases::of("cancelled back-tests");
    let lab = Lab::new();
    let long = changed(&lab.spec, &json!({"tick_mode": "event", "seeds": 256, "latency_ms": {"uniform": [0, 9_000]}}));
    let server = lab.place.start();
    let mut client = server.with_key(&lab.key);
    let create = |client: &mut Client, spec: &Value| text(&client.post(PATH, spec).expect(202), "/job_id").to_owned();
    let (first, second) = (create(&mut client, &long), create(&mut client, &long));
    let short = create(&mut client, &lab.spec);
    eventually("the first back-test to run", || {
        let summary = client.get(&format!("{PATH}/{first}")).expect(200);
        (summary["status"] == "running").then_some(())
    });
    for job in [&first, &second] {
        let cancelled = client.delete(&format!("{PATH}/{job}")).expect(200);
        assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
        cases.one();
    }
    assert_eq!(ended(&mut client, &short)["status"], "completed");
    for job in [&first, &second] {
        assert_eq!(client.get(&format!("{PATH}/{job}")).expect(200)["status"], "cancelled");
        assert_eq!(rows(&mut client, job, "trades"), Vec::<Value>::new());
    }
    // What has ended stays as it is.
    assert_eq!(client.delete(&format!("{PATH}/{short}")).expect(200)["status"], "completed");
    cases.one();
    server.stop();
}

#[test]
fn without_a_thread_none_is_created() {
    let cases = Cases::of("back-tests without a thread");
    let mut lab = Lab::new();
    let server = lab.place.start();
    let mut client = server.with_key(&lab.key);
    // The route ignores unknown fields.
    let unknown = changed(&lab.spec, &json!({"seedz": 2}));
    let done = text(&client.post(PATH, &unknown).expect(202), "/job_id").to_owned();
    assert_eq!(ended(&mut client, &done)["status"], "completed");
    let before = (rows(&mut client, &done, "trades"), rows(&mut client, &done, "equity"));
    assert!(!before.0.is_empty() && !before.1.is_empty());
    server.stop();
    lab.place.set("simulation", "threads", "0");
    let server = lab.place.start();
    let mut client = server.with_key(&lab.key);
    client.post(PATH, &lab.spec).refused(503, "JOB_STORE_UNAVAILABLE");
    let condition = lab.spec["condition_ids"][0].as_str().expect("an id").to_owned();
    client.get(&format!("/v1/simulation/coverage?condition_id={condition}")).expect(200);
    cases.add(2);
    // What was completed before is readable.
    let (trades, equity) = (rows(&mut client, &done, "trades"), rows(&mut client, &done, "equity"));
    assert_eq!((trades, equity), before);
    for what in ["trades?format=parquet", "equity?format=parquet", "report"] {
        assert_eq!(client.get(&format!("{PATH}/{done}/{what}")).status, 200, "{what}");
        cases.one();
    }
    cases.add(2);
    server.stop();
}

/// The hash is of the result, however many threads made it.
#[test]
fn threads_do_not_change_the_result() {
    let cases = Cases::of("threads of the command");
    let lab = Lab::new();
    let spec = changed(&lab.spec, &json!({"seeds": 7, "latency_ms": {"uniform": [0, 5_000]}, "haircut": "0.5"}));
    let hash = |threads: &str| {
        let output = lab.backtest(&spec, &["--threads", threads, "--json", "-"]);
        assert!(output.status.success(), "{threads}: {}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(summary["comparison"]["p5"].is_string(), "{summary}");
        text(&summary, "/result_hash").to_owned()
    };
    let alone = hash("1");
    for threads in ["2", "3", "7", "64"] {
        assert_eq!(hash(threads), alone, "{threads} threads");
        cases.one();
    }
}

#[test]
fn the_command_ends_with_the_code_of_its_reason() {
    let cases = Cases::of("exit codes of the command");
    let lab = Lab::new();
    let other = "0".repeat(64);
    let unknown = format!("0x{:064x}", 99);
    let rows: Vec<(Value, Vec<&str>, i32, &str)> = vec![
        (lab.spec.clone(), vec![], 0, "hash "),
        (lab.spec.clone(), vec!["--seeds", "3"], 0, "seeds "),
        (lab.spec.clone(), vec!["--threads", "4"], 0, "hash "),
        (lab.spec.clone(), vec!["--expect", &other], 3, "not 0000"),
        (json!([]), vec![], 2, "spec.json"),
        (json!({}), vec![], 2, "condition_ids"),
        (changed(&lab.spec, &json!({"strategy": {}})), vec![], 2, "size"),
        (changed(&lab.spec, &json!({"strategy": {"size": "0"}})), vec![], 2, "size"),
        (changed(&lab.spec, &json!({"seeds": 257})), vec![], 2, "seeds"),
        (changed(&lab.spec, &json!({"seedz": 2})), vec![], 2, "unknown field \"seedz\""),
        (changed(&lab.spec, &json!({"strategy": {"size": "1", "sise": "1"}})), vec![], 2, "\"strategy.sise\""),
        (changed(&lab.spec, &json!({"end": "2999-01-01T00:00:00Z"})), vec![], 2, "INVALID_WINDOW"),
        (changed(&lab.spec, &json!({"end": "never"})), vec![], 2, "INVALID_WINDOW"),
        (changed(&lab.spec, &json!({"end": lab.spec["start"]})), vec![], 2, "INVALID_WINDOW"),
        (changed(&lab.spec, &json!({"token_ids": {"0x1": "1"}})), vec![], 2, "INVALID_REQUEST"),
        (changed(&lab.spec, &json!({"condition_ids": [unknown]})), vec![], 2, "no hour of the market"),
        (changed(&lab.spec, &json!({"condition_ids": ["0x1"]})), vec![], 2, "no hour of the market"),
        (changed(&lab.spec, &json!({"strategy": {"size": "5", "outcome": "Maybe"}})), vec![], 2, "Maybe"),
        (changed(&lab.spec, &json!({"start": "2026-01-01T00:00:00Z"})), vec![], 2, "not covered"),
        (lab.spec.clone(), vec!["--seeds", "0"], 2, "seeds"),
        (lab.spec.clone(), vec!["--seeds", "257"], 2, "seeds"),
        (lab.spec.clone(), vec!["--threads", "0"], 2, "threads"),
        (lab.spec.clone(), vec!["--threads", "65"], 2, "threads"),
        (lab.spec.clone(), vec!["--expect", "abc"], 2, "64 hex digits"),
        (lab.spec.clone(), vec!["--trades", "trades.xml"], 2, ".parquet"),
        (lab.spec.clone(), vec!["--archive", "/nowhere/at/all"], 1, "there is no archive"),
        (lab.spec.clone(), vec!["--json", "/nowhere/at/all"], 1, "/nowhere/at/all"),
    ];
    for (spec, more, code, part) in &rows {
        let output = lab.backtest(spec, more);
        let both = [&output.stdout[..], &output.stderr].concat();
        let said = String::from_utf8_lossy(&both);
        assert_eq!(output.status.code(), Some(*code), "{spec} {more:?}: {said}");
        assert!(said.contains(part), "{spec} {more:?}: {said}");
        cases.one();
    }
    // A bare name is a file of the current folder.
    let mut bare = command();
    bare.current_dir(lab.place.root())
        .arg("backtest")
        .arg(lab.file("spec.json"))
        .arg("--data-dir")
        .arg(lab.place.data());
    std::fs::write(lab.file("spec.json"), lab.spec.to_string()).expect("written");
    let files = ["t.parquet", "e.parquet", "t.html", "s.json"];
    bare.args(["--trades", files[0], "--equity", files[1], "--html", files[2], "--json", files[3]]);
    let output = bare.output().expect("papertape can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(files.iter().all(|file| lab.file(file).is_file()), "every file is there");
    cases.one();
    for (file, bytes) in
        [("absent.json", None), ("bytes.json", Some(vec![0xff; 9])), ("long.json", Some(vec![b' '; 2 << 20]))]
    {
        let file = lab.file(file);
        if let Some(bytes) = bytes {
            std::fs::write(&file, bytes).expect("written");
        }
        let output = lab.backtest_of(&file, &[]);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        cases.one();
    }
    // Trades as Parquet.
    let trades = lab.file("trades.parquet");
    assert_eq!(lab.backtest(&lab.spec, &["--trades", path(&trades)]).status.code(), Some(0));
    assert!(std::fs::read(trades).expect("a file").starts_with(b"PAR1"));
    cases.one();
}

/// SIGINT before the command has its specification: it does not complete.
#[test]
fn an_interrupted_command_ends_with_130() {
    let cases = Cases::of("interrupted command");
    let lab = Lab::new();
    let mut backtest = command();
    backtest.args(["backtest", "-", "--config"]).arg(lab.place.config()).arg("--data-dir").arg(lab.place.data());
    let piped = backtest.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("papertape can be run");
    let status = format!("/proc/{}/status", child.id());
    eventually("the handler of SIGINT", || {
        let status = std::fs::read_to_string(&status).expect("the process is there");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask").trim().to_owned();
        (u64::from_str_radix(&caught, 16).expect("a mask") & 1 << (2 - 1) != 0).then_some(())
    });
    signal(child.id(), "INT");
    // A run that takes seconds: it ends as soon as the thread for signals has read this one.
    let long = changed(&lab.spec, &json!({"tick_mode": "event", "seeds": 256, "latency_ms": {"uniform": [0, 9_000]}}));
    let mut stdin = child.stdin.take().expect("a pipe was requested");
    stdin.write_all(long.to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    cases.one();
}
