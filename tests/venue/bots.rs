//! Bots against a recording on one clock (gateway/docs/backtest-bot.md): the command with each gate, and bots that do
//! not behave.
//!
//! The bots are functions of this file. The command runs this test program once more with the name of one of them
//! ([`bot`]), so each is a process of its own; the other tests are the bot themselves, by the first line of the output.

use serde_json::{Value, json};
use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tests::binary::{command, run};
use tests::cases::Cases;
use tests::http::{Client, Request, Response};
use tests::json::{int, list, text};
use tests::socket::{Got, Socket};
use tests::tape::{Market, Tape};

/// Changes of the first market, one each half second.
const CHANGES: u64 = 24;
/// Changes of the second market after them.
const REST: u64 = 12;

/// A recording of two markets, and its folder.
fn recording() -> (TempDir, PathBuf, Market) {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("tape.ndjson");
    let (rain, coin) = (Market::new(1, "rain", "weather", 0.01), Market::new(2, "coin", "crypto", 0.01));
    let mut tape = Tape::create(&path);
    tape.list(&[&rain, &coin]);
    tape.books(&rain, &[("0.41", "100")], &[("0.43", "100")]);
    tape.books(&coin, &[("0.50", "100")], &[("0.52", "100")]);
    for change in 0..CHANGES {
        tape.wait(499);
        // The asks come down to 0.40 and return.
        let ask = if change % 8 < 4 { "0.43" } else { "0.40" };
        let bid = if change % 8 < 4 { "0.41" } else { "0.38" };
        let size = (100 + change).to_string();
        tape.books(&rain, &[(bid, &size)], &[(ask, &size)]);
        if change % 5 == 0 {
            tape.trade(&rain, 0, "SELL", bid, "7");
        }
    }
    for change in 0..REST {
        tape.wait(499);
        tape.books(&coin, &[("0.50", &(100 + change).to_string())], &[("0.52", "100")]);
    }
    (dir, path, rain)
}

/// The command with these arguments.
fn backtest(tape: &Path, gate: &str, more: &[&str]) -> std::process::Command {
    let mut verb = command();
    verb.args(["backtest", "--bot", "--tape"]).arg(tape).args(["--gate", gate, "--json", "-"]).args(more);
    verb
}

/// The report of a command that must succeed, with the bot of that name.
fn run_bot(tape: &Path, gate: &str, name: &str, more: &[&str]) -> Value {
    let output = output_of_bot(tape, gate, name, more);
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    report(&output)
}

fn output_of_bot(tape: &Path, gate: &str, name: &str, more: &[&str]) -> Output {
    let this = env::current_exe().expect("a running test has a path");
    let run = format!("BOT={name} exec {} --exact bots::bot --nocapture", this.display());
    backtest(tape, gate, more).args(["--run", &run]).output().expect("papertape can be run")
}

/// The last line of the output.
fn report(output: &Output) -> Value {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let last = stdout.lines().last().unwrap_or_else(|| panic!("no line\n{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(last).expect("the report is JSON")
}

/// A run whose bot is the test.
struct Run {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    ready: Value,
}

impl Run {
    fn start(tape: &Path, gate: &str, more: &[&str]) -> Run {
        let mut verb = backtest(tape, gate, more);
        let mut child = verb.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("papertape can be started");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        Run { input: child.stdin.take(), child, output, ready }
    }

    fn address(&self, name: &str) -> SocketAddr {
        address(text(&self.ready, name))
    }

    fn client(&self) -> Client {
        Client::with_key(self.address("/url"), text(&self.ready, "/key"))
    }

    fn operator(&self) -> Client {
        Client::with_token(self.address("/admin"), text(&self.ready, "/admin_token"))
    }

    fn token(&self) -> &str {
        text(&self.ready, "/tokens/0")
    }

    /// Ends the run by the end of its input; returns its report.
    fn end(mut self) -> Value {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let status = self.child.wait().expect("a child can be waited for");
        assert!(status.success(), "{status}\n{rest}");
        serde_json::from_str(rest.lines().last().expect("the report")).expect("JSON")
    }
}

fn address(url: &str) -> SocketAddr {
    url.trim_start_matches("http://").parse().expect("an address")
}

fn order(token: &str, side: &str, price: &str, size: &str) -> Value {
    json!({"token_id": token, "side": side, "order_type": "limit", "price": price, "quantity": size})
}

/// The bots. Not a test: without a server in the environment it does nothing.
#[test]
fn bot() {
    let (Ok(name), Ok(url), Ok(key)) = (env::var("BOT"), env::var("PAPERTAPE_URL"), env::var("PAPERTAPE_KEY")) else {
        return;
    };
    let client = Client::with_key(address(&url), &key);
    let tokens = env::var("PAPERTAPE_TOKENS").expect("the tokens");
    let token = tokens.split(',').next().expect("a token");
    match name.as_str() {
        "polls" => polls(client, token),
        "streams" => streams(client, &key, token, Duration::ZERO),
        "is_late" => streams(client, &key, token, Duration::from_millis(400)),
        "never_reads" => never_reads(client.address()),
        "dies" => dies(client.address()),
        "fails" => panic!("as it should"),
        "far" => far(client, token),
        _ => panic!("no bot {name}"),
    }
}

/// Reads the book, then buys what is cheap and cancels what rests, as any polling bot does. It does not sleep.
fn polls(mut client: Client, token: &str) {
    let mut resting: Vec<i64> = Vec::new();
    let book = Request::get(&format!("/v1/book?token_id={token}"));
    loop {
        // The end of the recording ends its loop.
        let Some(book) = client.call(&book).ok().filter(|book| book.status == 200).map(|book| book.json()) else {
            return;
        };
        let ask = list(&book, "/asks").last().map(|level| text(level, "/price"));
        if let Some(id) = resting.pop() {
            let _ = client.delete(&format!("/v1/orders/{id}"));
        }
        let price = if ask == Some("0.40") { "0.40" } else { "0.39" };
        let placed = client.post("/v1/orders", &order(token, "BUY", price, "5"));
        if placed.status < 300 && text(&placed.json(), "/status") == "PENDING" {
            resting.push(int(&placed.json(), "/order_id"));
        }
    }
}

/// Buys each time the stream shows a cheap ask, after a sleep that passes no venue time.
fn streams(mut client: Client, key: &str, token: &str, sleep: Duration) {
    let mut socket = Socket::open(client.address(), "/v1/ws/market", &[("X-API-Key", key)]);
    socket.send(&json!({"type": "market", "assets_ids": [token]}));
    let mut frames = 0;
    while let Some(frame) = next_frame(&mut socket) {
        frames += 1;
        if !frame.contains("\"0.40\"") && sleep.is_zero() {
            continue;
        }
        std::thread::sleep(sleep);
        let placed = client.call(&Request::post("/v1/orders").json(&order(token, "BUY", "0.40", "5")));
        if !placed.is_ok_and(|placed| placed.status < 300) || frames > 200 {
            return;
        }
    }
}

/// `None` when the socket ends.
fn next_frame(socket: &mut Socket) -> Option<String> {
    match socket.receive() {
        Got::Text(text) => Some(text),
        _ => None,
    }
}

/// Sends requests, reads no response, and stays.
fn never_reads(server: SocketAddr) {
    let mut stream = TcpStream::connect(server).expect("it listens");
    let request = b"GET /v1/markets HTTP/1.1\r\nHost: x\r\n\r\n".repeat(64);
    stream.set_write_timeout(Some(Duration::from_millis(200))).expect("an open socket");
    while stream.write_all(&request).is_ok() {}
    // Until it is ended.
    loop {
        std::thread::park();
    }
}

/// Ends in the middle of a request.
fn dies(server: SocketAddr) {
    let mut stream = TcpStream::connect(server).expect("it listens");
    stream.write_all(b"POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{\"tok").expect("it is open");
    std::process::exit(0);
}

/// Uses the date of another year.
fn far(mut client: Client, token: &str) {
    let now = client.get("/v1/time").text().trim().parse::<u64>().expect("seconds");
    let mut gtd = order(token, "BUY", "0.10", "5");
    gtd["time_in_force"] = json!("GTD");
    gtd["expiration"] = json!(now + 90_000);
    assert!(client.post("/v1/orders", &gtd).status < 300);
}

#[test]
fn a_polling_bot_has_one_result() {
    let cases = Cases::of("runs of polling bots");
    let (_dir, tape, _) = recording();
    let gate = "round:get_book:1s";
    let report = run_bot(&tape, gate, "polls", &["--repeat", "3"]);
    assert_eq!(report["deterministic"], json!(true), "{report}");
    assert_eq!((int(&report, "/late"), text(&report, "/status")), (0, "completed"), "{report}");
    assert!(int(&report, "/num_orders") >= 10 && int(&report, "/num_trades") >= 3, "{report}");
    // Rounds of a second, half a second between two books: each round sees another one.
    let rounds = (CHANGES + REST) / 2;
    assert!((rounds as i64..).contains(&int(&report, "/operations")), "{report}");
    // The bot ends by itself when its requests are refused.
    assert_eq!(text(&report, "/exit"), "exit status: 0", "{report}");
    // The words of the API.
    for (list_of, name, words) in [
        ("/orders", "/side", &["BUY"][..]),
        ("/orders", "/type", &["limit"]),
        ("/orders", "/time_in_force", &["GTC"]),
        ("/orders", "/status", &["FILLED", "CANCELLED", "PENDING"]),
        ("/trades", "/side", &["BUY"]),
        ("/trades", "/liquidity", &["TAKER", "MAKER"]),
    ] {
        let found = list(&report, list_of);
        assert!(found.iter().all(|row| words.contains(&text(row, name))), "{list_of} {name}: {found:?}");
        cases.one();
    }
    // The settings are part of the result, and so is the gate.
    let other = run_bot(&tape, "round:get_book:2s", "polls", &[]);
    assert_ne!(report["hash"], other["hash"]);
    assert!(int(&other, "/num_orders") < int(&report, "/num_orders"), "fewer rounds");
    let slow = run_bot(&tape, gate, "polls", &["--set", "flags.match_interval_ms=5000"]);
    assert_ne!(report["hash"], slow["hash"]);
    cases.add(5);
}

#[test]
fn a_round_is_looked_at_after_its_time() {
    let cases = Cases::of("moments of rounds");
    let (_dir, tape, _) = recording();
    let run = Run::start(&tape, "round:get_time:750ms", &[]);
    let mut client = run.client();
    let seen = |client: &mut Client| {
        let book = client.get(&format!("/v1/book?token_id={}", run.token()));
        (book.status, book.header("date").map(str::to_owned), book.json())
    };
    let before = seen(&mut client);
    assert_eq!(seen(&mut client), before, "other operations pass no time");
    let mut times = Vec::new();
    loop {
        let time = client.get("/v1/time");
        if time.status == 503 {
            break;
        }
        assert_eq!(time.status, 200, "{}", time.text());
        times.push(time.text().trim().parse::<u64>().expect("seconds"));
    }
    // Every 750 ms, until the last cycle of the recording.
    let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(times.len() as u64 >= (CHANGES + REST) * 500 / 750, "{times:?}");
    assert!(steps.iter().all(|step| *step <= 1), "{steps:?}");
    // Each operation until the end of the input, of any connection.
    client.get("/v1/time").refused(503, "SERVER_BUSY");
    run.client().get("/v1/time").refused(503, "SERVER_BUSY");
    cases.add(times.len() + 4);
    let report = run.end();
    assert_eq!(int(&report, "/late"), 0, "{report}");
}

#[test]
fn a_harness_steps_the_clock() {
    let cases = Cases::of("steps of a harness");
    let (_dir, tape, _) = recording();
    let walk = || {
        let run = Run::start(&tape, "stepped", &[]);
        let (mut client, mut operator) = (run.client(), run.operator());
        let clock = |operator: &mut Client| operator.get("/v1/admin/clock").expect(200);
        let step = |operator: &mut Client, body: Value| operator.post("/v1/admin/clock/step", &body);
        let first = clock(&mut operator);
        assert_eq!((text(&first, "/mode"), text(&first, "/state")), ("venue", "gated"), "{first}");
        assert_eq!(first["server_at"], first["venue_at"]);
        assert_eq!(operator.get("/v1/admin/node").expect(200)["clock"], json!("venue"));
        assert_eq!(clock(&mut operator)["server_at"], first["server_at"], "it stays");
        let mut figures = Vec::new();
        // The first moment has no books yet.
        step(&mut operator, json!({"ms": 10})).expect(200);
        let bodies = [
            json!({"events": 1}),
            json!({"events": 3}),
            json!({"ms": 1}),
            json!({"ms": 1_234}),
            json!({"cycles": 1}),
            json!({"cycles": 2}),
        ];
        for body in bodies {
            let placed = client.post("/v1/orders", &order(run.token(), "BUY", "0.40", "5"));
            assert!(placed.status < 300, "{}", placed.text());
            let stepped = step(&mut operator, body.clone()).expect(200);
            assert_eq!(text(&stepped, "/reached"), "asked", "{body}: {stepped}");
            assert_eq!(clock(&mut operator)["server_at"], stepped["to"], "{body}");
            for name in ["events", "cycles"] {
                if let Some(least) = body[name].as_i64() {
                    assert!(int(&stepped, &format!("/{name}")) >= least, "{body}: {stepped}");
                }
            }
            figures.push([stepped["events"].clone(), stepped["cycles"].clone(), stepped["fills"].clone()]);
            cases.one();
        }
        let now = clock(&mut operator);
        step(&mut operator, json!({"until": first["server_at"]})).refused(400, "CLOCK_BACKWARDS");
        step(&mut operator, json!({"until": now["server_at"]})).expect(200);
        step(&mut operator, json!({"ms": 1, "events": 1})).refused(422, "VALIDATION_FAILED");
        step(&mut operator, json!({"ms": 1, "skip": true})).refused(422, "VALIDATION_FAILED");
        let last = step(&mut operator, json!({"ms": 2_592_000_000u64})).expect(200);
        assert_eq!(text(&last, "/reached"), "end", "{last}");
        let again = step(&mut operator, json!({"events": 1})).expect(200);
        assert_eq!((text(&again, "/reached"), int(&again, "/events")), ("end", 0), "{again}");
        assert_eq!(clock(&mut operator)["next"], Value::Null);
        // A harness reads what came of it.
        assert_eq!(client.get("/v1/orders").status, 200);
        cases.add(8);
        let report = run.end();
        assert_eq!(int(&report, "/late"), 0, "the steps were answered: {report}");
        assert!(int(&report, "/num_trades") > 0, "{report}");
        (text(&report, "/hash").to_owned(), figures)
    };
    assert_eq!(walk(), walk());
}

#[test]
fn a_bot_on_a_stream_has_one_result() {
    let cases = Cases::of("runs of bots on streams");
    let (_dir, tape, _) = recording();
    let report = run_bot(&tape, "quiet:2", "streams", &["--repeat", "2"]);
    assert_eq!(report["deterministic"], json!(true), "{report}");
    assert_eq!(int(&report, "/late"), 0, "{report}");
    // Four of eight changes show the cheap ask.
    assert!(int(&report, "/num_trades") >= (CHANGES / 2) as i64 - 4, "{report}");
    cases.add(2);
    // Planted: a bot that sleeps longer than the gate waits responds to a moment that is over.
    let late = run_bot(&tape, "quiet:0.1", "is_late", &[]);
    assert!(int(&late, "/late") >= 1, "{late}");
    assert!(late["warnings"].to_string().contains("after the clock had left"), "{late}");
    cases.one();
}

#[test]
fn bots_that_misbehave_end_their_run() {
    let cases = Cases::of("bots that misbehave");
    let (_dir, tape, _) = recording();
    // Name, gate, status, exit code of the command.
    let rows = [
        ("never_reads", "quiet:1", "completed", 0),
        ("dies", "quiet:1", "completed", 0),
        ("dies", "round:place_order:1s", "completed", 0),
        ("dies", "stepped", "completed", 0),
        ("fails", "quiet:1", "failed", 1),
    ];
    for (name, gate, status, code) in rows {
        // A peer that takes nothing is cut off after a second.
        let more = ["--set", "http.write_timeout_ms=1000"];
        let output = output_of_bot(&tape, gate, name, &more);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{name}, {gate}: {stderr}");
        let report = report(&output);
        assert_eq!((text(&report, "/status"), int(&report, "/num_orders")), (status, 0), "{name}, {gate}");
        cases.one();
    }
    let report = run_bot(&tape, "quiet", "far", &[]);
    assert!(report["warnings"].to_string().contains("GTD orders expire more than a day"), "{report}");
    cases.one();
}

/// The files of a run agree with its report.
/// What has ended stays in memory, and no bound of that ends the trading: the report has every order.
#[test]
fn a_long_run_keeps_every_order() {
    let cases = Cases::of("orders of a long run");
    let (_dir, tape, _) = recording();
    // A fourth of what these orders take.
    let settings = [
        "history.hot_bytes_max=1048576",
        "limits.tiers.enterprise.requests_per_second=1000000",
        "limits.tiers.enterprise.requests_per_minute=1000000",
    ];
    let more: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let run = Run::start(&tape, "stepped", &more);
    let (mut client, mut operator) = (run.client(), run.operator());
    operator.post("/v1/admin/clock/step", &json!({"ms": 10})).expect(200);
    let resting = order(run.token(), "BUY", "0.01", "5");
    let (batches, entries) = (400, 25);
    for _ in 0..batches {
        let placed = client.post("/v1/orders/batch", &json!({"orders": vec![&resting; entries]})).expect(200);
        let is_placed = |row: &&Value| int(row, "/order_id") > 0;
        assert_eq!(list(&placed, "/results").iter().filter(is_placed).count(), entries, "{placed}");
        client.send(&Request::new("DELETE", "/v1/cancel-all")).expect(200);
        cases.add(entries);
    }
    let report = run.end();
    assert_eq!(int(&report, "/num_orders"), batches * entries as i64, "every order is in the report");
}

#[test]
fn a_run_has_files() {
    let cases = Cases::of("files of a run of a bot");
    let (dir, tape, _) = recording();
    let file = |name: &str| dir.path().join(name);
    let [html, trades, equity] = ["run.html", "trades.ndjson", "equity.csv"].map(file);
    let texts = [&html, &trades, &equity].map(|path| path.to_str().expect("a path of ours"));
    let more = ["--html", texts[0], "--trades", texts[1], "--equity", texts[2], "--repeat", "2"];
    let report = run_bot(&tape, "round:get_book:1s", "polls", &more);
    let read = |path: &Path| std::fs::read_to_string(path).expect("the file is there");
    let lines: Vec<Value> = read(&trades).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(json!(lines), report["trades"]);
    let csv = read(&equity);
    let mut csv = csv.lines();
    let fields = ["ts", "equity", "cash", "position_value"];
    assert_eq!(csv.next(), Some("user,ts,equity,cash,position_value"));
    let points = list(&report, "/equity").iter();
    let expected = points
        .map(|point| format!("{},{}", point["user"], fields.map(|name| text(point, &format!("/{name}"))).join(",")));
    assert!(csv.map(str::to_owned).eq(expected));
    let page = read(&html);
    let trades = list(&report, "/trades").len();
    for part in [
        "<p class=\"kind\">Back-test with a bot</p>".to_owned(),
        format!(" in {trades} trades."),
        text(&report, "/hash").to_owned(),
        text(&report, "/spec/gate").to_owned(),
        "2, with equal results".to_owned(),
        "exit status: 0".to_owned(),
    ] {
        assert!(page.contains(&part), "{part}");
        cases.one();
    }
    assert_eq!(page.matches("<td class=\"time\">").count(), trades);
    assert!(!page.contains("http:") && !page.contains("<script"), "it loads nothing");
    cases.add(4);
}

#[test]
fn a_wrong_command_is_refused() {
    let cases = Cases::of("wrong commands of a back-test");
    let (dir, tape, _) = recording();
    let tape = tape.to_str().expect("a path of ours");
    let empty = dir.path().join("empty.ndjson");
    std::fs::write(&empty, "").expect("it can be written");
    let empty = empty.to_str().expect("a path of ours");
    // Arguments, and a part of the message.
    let rows: &[(&[&str], &str)] = &[
        (&["--tape", tape, "--gate", "stepped"], "--bot"),
        (&["--bot", "--gate", "stepped"], "--tape"),
        (&["--bot", "--tape", tape], "--gate"),
        (&["--bot", "--tape", tape, "--gate", "round"], "a gate is"),
        (&["--bot", "--tape", tape, "--gate", "quiet:0"], "0.1 to 1000"),
        (&["--bot", "--tape", tape, "--gate", "round:get_book:1"], "the time of a round"),
        (&["--bot", "--tape", tape, "--gate", "round:get_books_now:1s"], "is not an operation"),
        (&["--bot", "--tape", "nowhere", "--gate", "stepped"], "no such recording"),
        (&["--bot", "--tape", empty, "--gate", "stepped"], "no recorded line"),
        (&["--bot", "--tape", tape, "--gate", "stepped", "--set", "venue.kind=polymarket"], "set by the back-test"),
        (&["--bot", "--tape", tape, "--gate", "stepped", "--set", "no.such=1"], "no.such"),
        (&["--bot", "--tape", tape, "--gate", "stepped", "--set", "engine.shards=2"], "one shard"),
        (&["--bot", "--tape", tape, "--gate", "stepped", "--set", "server.busy_poll=true"], "sleep"),
        (&["--bot", "--tape", tape, "--gate", "stepped", "--from", "2026-09-30T17"], "select of an archive"),
        (&["--bot", "--tape", tape, "--gate", "stepped", "--repeat", "0"], "1 to 100"),
        (&["--bot", "--tape", tape, "--gate", "stepped", "--trades", "trades.xml"], ".ndjson"),
        (&["--bot", "--tape", tape, "--gate", "stepped", "--equity", "equity.parquet"], "are .ndjson or .csv"),
    ];
    for (args, part) in rows {
        let output = run([&["backtest"], *args].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(part), "{args:?}: {stderr}");
        cases.one();
    }
}

#[test]
fn the_clock_of_a_server_is_not_stepped() {
    let cases = Cases::of("the clock of a server");
    let mut place = tests::server::ServerDir::new();
    place.set("admin", "listen", "\"127.0.0.1:0\"");
    let server = place.start();
    let token = std::fs::read_to_string(place.data().join("admin_token")).expect("the server created one");
    let mut operator = Client::with_token(server.admin().expect("an admin listener"), &token);
    let clock = operator.get("/v1/admin/clock").expect(200);
    assert_eq!((text(&clock, "/mode"), text(&clock, "/state")), ("wall", "running"), "{clock}");
    let refused: Response = operator.post("/v1/admin/clock/step", &json!({"events": 1}));
    refused.refused(409, "CLOCK_NOT_CONTROLLED");
    operator.post("/v1/admin/clock", &json!({"state": "paused"})).refused(405, "HTTP_405");
    cases.add(3);
    // With another gate the clock moves by itself.
    let (_dir, tape, _) = recording();
    let run = Run::start(&tape, "round:get_book:1s", &[]);
    run.operator().post("/v1/admin/clock/step", &json!({"events": 1})).refused(409, "CLOCK_RUNNING");
    run.end();
    cases.one();
}
