//! Back-tests on an archive of one market, with a shard that keeps them and a runner that runs none.

use super::super::jobs::{JobProgress, JobRows, JobTrade, Jobs};
use super::{CONDITION, HOUR, ON, Shelf};
use crate::api::simulation::archive::{Reading, Unreachable};
use crate::api::simulation::summary::BacktestSummary;
use crate::api::testing::{Answered, Text as _, Town};
use crate::engine_client::AskError;
use crate::groups::tables;
use crate::http::record::{Record as _, value};
use crate::http::testing::{NOW, World};
use crate::testing::ShardHere;
use engine::amount::{Cash, Qty};
use engine::backtest::{EquityPoint, Reason, Trade, Verdict};
use engine::command::{Answer, BacktestResult, Command, NewBacktest};
use engine::id::{KeyId, UserId};
use engine::order::Side;
use engine::time::{MINUTE, SECOND};
use engine::user::backtests::{BACKTEST_REQUESTS_BYTES_MAX, BacktestFigures};
use engine::user::{Backtest, Permissions, Tier};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const PATH: &str = "/v1/simulation/backtests";

/// Notes what it is asked to do, and has rows of every result.
#[derive(Default)]
struct Runner {
    /// It has no thread.
    is_idle: AtomicBool,
    asked: Mutex<Vec<(&'static str, [u8; 16])>>,
    progress: Mutex<Option<JobProgress>>,
    /// The page of every result.
    page: Mutex<Option<String>>,
}

/// Rows of a result.
const TRADES: usize = 250;

impl Jobs for Runner {
    fn runs(&self) -> bool {
        !self.is_idle.load(Relaxed)
    }

    fn created(&self, _: UserId, job: [u8; 16]) {
        self.asked.lock().expect("no panic").push(("created", job));
    }

    fn cancelled(&self, _: UserId, job: [u8; 16]) {
        self.asked.lock().expect("no panic").push(("cancelled", job));
    }

    fn progress(&self, _: UserId, _: [u8; 16]) -> Option<JobProgress> {
        *self.progress.lock().expect("no panic")
    }

    fn trades<'a>(&'a self, _: UserId, _: &'a Backtest, from: usize, limit: usize) -> Reading<'a, Vec<JobTrade>> {
        let trade = |row: usize| JobTrade {
            trade: Trade {
                at: HOUR.start().plus((22 + row as u64) * MINUTE),
                market: 0,
                side: if row.is_multiple_of(2) { Side::Buy } else { Side::Sell },
                shares: Qty::from_shares(25),
                price: Cash(310_000),
                notional: Cash(7_750_000),
                fee: Cash(267_380),
                reason: if row.is_multiple_of(2) { Reason::Entry } else { Reason::Exit },
            },
            outcome: "Yes".into(),
        };
        let rows = (from..TRADES).take(limit).map(trade).collect();
        Box::pin(std::future::ready(Ok(rows)))
    }

    fn points<'a>(&'a self, _: UserId, _: &'a Backtest, from: usize, limit: usize) -> Reading<'a, Vec<EquityPoint>> {
        let point = EquityPoint {
            at: HOUR.start().plus(22 * MINUTE),
            cash: Cash(491_982_620),
            position_value: Cash(7_500_000),
        };
        let rows = (from..1).take(limit).map(|_| point).collect();
        Box::pin(std::future::ready(Ok(rows)))
    }

    fn file<'a>(&'a self, _: UserId, _: &'a Backtest, rows: JobRows) -> Reading<'a, Vec<u8>> {
        Box::pin(std::future::ready(Ok(format!("PAR1 {rows:?}").into_bytes())))
    }

    fn report<'a>(&'a self, _: UserId, _: &'a Backtest) -> Reading<'a, String> {
        Box::pin(std::future::ready(self.page.lock().expect("no panic").clone().ok_or(Unreachable)))
    }
}

struct Lab {
    town: Town,
    runner: Arc<Runner>,
    shard: ShardHere,
    /// The key of a free plan.
    free: String,
    pro: String,
}

impl Lab {
    fn new(hours: &[Verdict]) -> Lab {
        Lab::with(hours, true)
    }

    fn with(hours: &[Verdict], has_runner: bool) -> Lab {
        Lab::of(Shelf::new(hours), has_runner)
    }

    fn of(shelf: Shelf, has_runner: bool) -> Lab {
        let (shelf, runner) = (Arc::new(shelf), Arc::new(Runner::default()));
        let jobs = has_runner.then(|| runner.clone() as Arc<dyn Jobs>);
        let town = Town::of(World::with_archive(ON, &tables(), shelf, jobs));
        let shard = ShardHere::new(NOW, Arc::default(), Arc::default());
        let asked = shard.clone();
        town.world.shard(move |owner, command| Ok(asked.ask(owner, None, command)));
        let free = town.key.clone();
        let pro = town.world.key(Tier::Pro, Permissions::Read);
        Lab { town, runner, shard, free, pro }
    }

    /// The example with these fields changed.
    fn body(changes: &Value) -> Value {
        let mut body = json!({
            "condition_ids": [CONDITION], "start": "2026-09-30T17:00:00Z", "end": "2026-09-30T19:00:00Z",
            "initial_bankroll": "500", "strategy": {"size": "25"},
        });
        for (name, value) in changes.as_object().expect("fields") {
            body[name] = value.clone();
        }
        body
    }

    fn create(&self, changes: &Value) -> Answered {
        self.create_as(&self.free, changes, None)
    }

    fn create_as(&self, key: &str, changes: &Value, request: Option<&str>) -> Answered {
        let body = Lab::body(changes).to_string();
        let headers: Vec<_> =
            [("x-api-key", key)].into_iter().chain(request.map(|id| ("idempotency-key", id))).collect();
        self.town.world.send("POST", PATH, &headers, &body)
    }

    /// A created one: its id.
    fn created(&self) -> String {
        let answer = self.create(&json!({}));
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["job_id"].as_str().expect("an id").to_owned()
    }

    fn get(&self, target: &str) -> Answered {
        self.town.send("GET", target, "")
    }

    fn one(&self, job: &str) -> Value {
        self.get(&format!("{PATH}/{job}")).json()
    }

    /// A command of the runner about the last created back-test of the free user.
    fn run(&self, command: impl FnOnce([u8; 16]) -> Command) {
        let (_, job) = *self.runner.asked.lock().expect("no panic").last().expect("one was created");
        let owner = self.shard.users(|users| users.iter().next().expect("a user").id);
        let answer = self.shard.ask(owner, None, command(job));
        assert!(matches!(answer, Answer::Backtest { .. }), "{answer:?}");
    }

    fn used(&self) -> (Value, Value) {
        let quota = self.get("/v1/simulation/quota").json();
        (quota["backtests_used"].clone(), quota["market_hours_used"].clone())
    }
}

fn figures() -> Box<BacktestFigures> {
    Box::new(BacktestFigures {
        total_pnl: Cash(2_923_240),
        closed: 1,
        won: 1,
        max_drawdown: 40,
        trades: 2,
        points: 4,
        ticks: 120,
        event_ticks: false,
        step: MINUTE,
        degraded: false,
        settlement_scored: false,
        naive_pnl: Cash(4_000_000),
        fills_naive: 2,
        fills_honest: 2,
        percentiles: Vec::new(),
        hash: [0xab; 32],
    })
}

const HOURS: [Verdict; 2] = [Verdict::Valid, Verdict::Degraded];

#[test]
fn a_back_test_is_created_run_and_read() {
    let lab = Lab::new(&HOURS);
    let job = lab.created();
    let pending = lab.one(&job);
    for (name, expected) in [
        ("status", json!("pending")),
        ("condition_ids", json!([CONDITION])),
        ("start", json!("2026-09-30T17:00:00Z")),
        ("fill_model", json!("depth_walk")),
        ("created_at", json!("2026-10-02T09:14:05Z")),
        ("started_at", Value::Null),
        ("total_pnl", Value::Null),
        ("initial_bankroll", json!("500.00")),
        ("market_hours_charged", json!("2.000")),
        ("is_replay", json!(false)),
        ("universe_eligible", json!(true)),
        ("token_ids", Value::Null),
        ("progress", json!("0.000")),
        ("comparison", Value::Null),
    ] {
        assert_eq!(pending[name], expected, "{name}");
    }
    assert_eq!(lab.runner.asked.lock().expect("no panic")[0].0, "created");
    assert_eq!(lab.used(), (json!(1), json!("2.000")));
    // Rows exist with the result.
    for rows in ["trades", "equity"] {
        let page = lab.get(&format!("{PATH}/{job}/{rows}")).json();
        assert_eq!(page, json!({"data": [], "next_cursor": null}));
    }
    lab.run(|job| Command::StartBacktest { job });
    *lab.runner.progress.lock().expect("no panic") = Some(JobProgress { done: 250, hours_done: 1, hours_total: 2 });
    let running = lab.one(&job);
    let shown = ["status", "progress", "hours_done", "hours_total"].map(|name| running[name].clone());
    assert_eq!(shown, [json!("running"), json!("0.250"), json!(1), json!(2)]);
    lab.run(|job| Command::EndBacktest { job, result: BacktestResult::Completed(figures()) });
    let done = lab.one(&job);
    let expected = [
        ("status", "completed"),
        ("total_pnl", "2.92"),
        ("total_return_pct", "0.58"),
        ("win_rate", "100.0%"),
        ("max_drawdown", "0.40"),
        ("progress", "1.000"),
        ("tick_mode", "grid"),
        ("market_hours_charged", "2.000"),
    ];
    for (name, expected) in expected {
        assert_eq!(done[name], expected, "{name}");
    }
    assert_eq!((&done["num_trades"], &done["ticks_evaluated"]), (&json!(2), &json!(120)));
    assert_eq!(done["comparison"]["gap"], "1.08");
    assert_eq!(done["result_hash"], "ab".repeat(32));
    // The fields of the example are those of an answer.
    let names = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&done), names(&value(&BacktestSummary::example())));
}

/// The bound of what a user's kept back-tests asked for.
#[test]
fn the_requests_of_a_user_are_bounded() {
    /// The largest request of the route.
    const LARGE: usize = 64 << 10;
    let lab = Lab::new(&HOURS);
    // A plan whose jobs and hours of a month are not the bound.
    let key = lab.town.world.key(Tier::Enterprise, Permissions::Read);
    let create = || lab.create_as(&key, &json!({}), None);
    let first = create().json()["job_id"].as_str().expect("an id").to_owned();
    let (owner, own) = lab.shard.users(|users| {
        let user = users.iter().next().expect("a user");
        (user.id, user.backtests_kept(NOW).map(|job| job.spec.len()).sum::<usize>())
    });
    let stored = |number: u64, bytes: usize| {
        let mut id = [7; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        let new = NewBacktest {
            id,
            spec: "x".repeat(bytes),
            digest: [0; 32],
            request: None,
            charged: 0,
            jobs_max: u64::MAX,
            hours_max: u64::MAX,
            by: KeyId(0),
        };
        let answer = lab.shard.ask(owner, None, Command::CreateBacktest(Box::new(new)));
        assert!(matches!(answer, Answer::Backtest { .. }), "{number}: {answer:?}");
    };
    let many = (BACKTEST_REQUESTS_BYTES_MAX / LARGE) as u64 - 1;
    (0..many).for_each(|number| stored(number, LARGE));
    // One more of the same size as the first fits exactly, and then none.
    stored(many, BACKTEST_REQUESTS_BYTES_MAX - many as usize * LARGE - 2 * own);
    assert_eq!(create().status, 202);
    let after = |answer: &Answered| answer.header("retry-after").and_then(|secs| secs.parse::<u64>().ok());
    let refused = create();
    assert_eq!(refused.code(), (429, "BACKTEST_MONTHLY_CAP"));
    assert!(refused.text().contains(&BACKTEST_REQUESTS_BYTES_MAX.to_string()), "{}", refused.text());
    assert_eq!(after(&refused), Some(NOW.next_month().since(NOW).div_ceil(SECOND)), "none has ended");
    let other = lab.create_as(&lab.pro, &json!({}), None);
    assert_eq!(other.status, 202, "another user has its own: {}", other.text());
    // One that has ended is kept for 90 days.
    let cancelled = lab.town.world.send("DELETE", &format!("{PATH}/{first}"), &[("x-api-key", &key)], "");
    assert_eq!(cancelled.json()["status"], "cancelled");
    let refused = create();
    assert_eq!((refused.code(), after(&refused)), ((429, "BACKTEST_MONTHLY_CAP"), Some(90 * 86_400)));
    println!("bounds of requests: 4 cases");
}

#[test]
fn rows_have_pages() {
    let lab = Lab::new(&HOURS);
    let job = lab.created();
    lab.run(|job| Command::EndBacktest { job, result: BacktestResult::Completed(figures()) });
    let trades = format!("{PATH}/{job}/trades");
    let first = lab.get(&trades).json();
    let trade = json!({"ts": "2026-09-30T17:22:00Z", "condition_id": CONDITION, "side": "BUY", "outcome": "Yes",
        "shares": "25.0000", "price": "0.3100", "fee": "0.2674", "fill_model": "depth_walk", "reason": "entry"});
    assert_eq!(first["data"][0], trade);
    let (mut cursor, mut counts) = (String::new(), Vec::new());
    loop {
        let page = lab.get(&format!("{trades}?limit=100&cursor={cursor}")).json();
        counts.push(page["data"].as_array().expect("rows").len());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.replace('=', "%3D"),
            None => break,
        }
    }
    assert_eq!(counts, [100, 100, 50]);
    let point = json!({"ts": "2026-09-30T17:22:00Z", "equity": "499.48", "cash": "491.98", "position_value": "7.50"});
    let equity = lab.get(&format!("{PATH}/{job}/equity")).json();
    assert_eq!(equity, json!({"data": [point], "next_cursor": null}));
    let cases = [
        ("limit=0", 422, "VALIDATION_FAILED"),
        ("limit=1001", 422, "VALIDATION_FAILED"),
        ("cursor=x", 400, "INVALID_CURSOR"),
        ("cursor=-1", 400, "INVALID_CURSOR"),
        ("format=csv", 422, "VALIDATION_FAILED"),
    ];
    for (query, status, code) in cases {
        for rows in ["trades", "equity"] {
            let answer = lab.get(&format!("{PATH}/{job}/{rows}?{query}"));
            assert_eq!(answer.code(), (status, code), "{rows} {query}");
        }
    }
    assert_eq!(lab.get(&format!("{trades}?cursor=LTE%3D")).json()["data"], json!([]), "after the last page");
    println!("pages: {} cases", 2 * cases.len());
}

#[test]
fn rows_of_a_completed_back_test_are_a_file() {
    let lab = Lab::new(&HOURS);
    let job = lab.created();
    let file = |rows: &str| lab.get(&format!("{PATH}/{job}/{rows}?format=parquet"));
    for rows in ["trades", "equity"] {
        assert_eq!(file(rows).code(), (404, "NOT_FOUND"), "{rows} of one that waits");
    }
    lab.run(|job| Command::EndBacktest { job, result: BacktestResult::Completed(figures()) });
    for (rows, text) in [("trades", "PAR1 Trades"), ("equity", "PAR1 Equity")] {
        let answer = file(rows);
        assert_eq!((answer.status, answer.text()), (200, text));
        assert_eq!(answer.header("content-type"), Some("application/vnd.apache.parquet"));
        let page = lab.get(&format!("{PATH}/{job}/{rows}?format=JSON")).json();
        assert!(page["data"].is_array(), "{rows}");
    }
    println!("files: 6 cases");
}

#[test]
fn a_completed_back_test_has_a_report() {
    let lab = Lab::new(&HOURS);
    let job = lab.created();
    let path = format!("{PATH}/{job}/report");
    let none = "A back-test has a report when it is completed.";
    let pending = lab.get(&path);
    assert_eq!((pending.code(), &pending.json()["message"]), ((404, "NOT_FOUND"), &json!(none)));
    lab.run(|job| Command::StartBacktest { job });
    assert_eq!(lab.get(&path).code(), (404, "NOT_FOUND"), "it runs");
    lab.run(|job| Command::EndBacktest { job, result: BacktestResult::Completed(figures()) });
    assert_eq!(lab.get(&path).code(), (503, "JOB_STORE_UNAVAILABLE"), "its rows cannot be read");
    *lab.runner.page.lock().expect("no panic") = Some("<!DOCTYPE html><p>é</p>".to_owned());
    let page = lab.get(&path);
    assert_eq!((page.status, page.text()), (200, "<!DOCTYPE html><p>é</p>"));
    for (name, expected) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "private, no-store"),
    ] {
        assert_eq!(page.header(name), Some(expected), "{name}");
    }
    let other = lab.town.send_as(&lab.pro, "GET", &path, "");
    assert_eq!(other.code(), (404, "NOT_FOUND"), "it is that of another user");
    for wrong in ["1", "0d0b7a1e-5f0e-4c55-9a51-2f1f6f2c9d11"] {
        assert_eq!(lab.get(&format!("{PATH}/{wrong}/report")).code(), (404, "NOT_FOUND"), "{wrong}");
    }
    // One that failed has none.
    let failed = lab.created();
    let result = BacktestResult::Failed { error: "time_limit".to_owned(), left: 0 };
    lab.run(|job| Command::EndBacktest { job, result });
    assert_eq!(lab.get(&format!("{PATH}/{failed}/report")).code(), (404, "NOT_FOUND"));
    println!("reports: 8 cases");
}

#[test]
fn lists_have_pages_newest_first() {
    let lab = Lab::new(&HOURS);
    let jobs: Vec<String> = (0..5).map(|_| lab.created()).collect();
    let (mut cursor, mut seen) = (String::new(), Vec::new());
    loop {
        let page = lab.get(&format!("{PATH}?limit=2{cursor}")).json();
        seen.extend(page["data"].as_array().expect("rows").iter().map(|row| row["job_id"].clone()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, jobs.iter().rev().map(|job| json!(job)).collect::<Vec<_>>());
    // Another user has none, and does not see these.
    let others = lab.town.send_as(&lab.pro, "GET", PATH, "").json();
    assert_eq!(others, json!({"data": [], "next_cursor": null}));
    let other = lab.town.send_as(&lab.pro, "GET", &format!("{PATH}/{}", jobs[0]), "");
    assert_eq!(other.code(), (404, "NOT_FOUND"));
    for (target, status, code) in [
        (format!("{PATH}?limit=101"), 422, "VALIDATION_FAILED"),
        (format!("{PATH}?cursor=xx"), 400, "INVALID_CURSOR"),
        (format!("{PATH}?cursor={}", "A".repeat(23)), 400, "INVALID_CURSOR"),
        (format!("{PATH}/1"), 404, "NOT_FOUND"),
        (format!("{PATH}/0d0b7a1e-5f0e-4c55-9a51-2f1f6f2c9d11"), 404, "NOT_FOUND"),
        (format!("{PATH}/1/trades"), 404, "NOT_FOUND"),
        (format!("{PATH}/1/equity"), 404, "NOT_FOUND"),
    ] {
        assert_eq!(lab.get(&target).code(), (status, code), "{target}");
    }
    assert_eq!(lab.town.send("DELETE", &format!("{PATH}/1"), "").code(), (404, "NOT_FOUND"));
}

#[test]
fn a_repeated_request_is_answered_once() {
    let lab = Lab::new(&HOURS);
    let first = lab.create_as(&lab.free, &json!({}), Some("k-1"));
    // Other words for the same.
    let same = json!({"initial_bankroll": 500.00, "strategy": {"size": 25, "side": "BUY", "entry": []}, "seed": 0});
    let again = lab.create_as(&lab.free, &same, Some("k-1"));
    assert_eq!((first.status, again.status), (202, 202), "{}", again.text());
    let (first, again) = (first.json(), again.json());
    assert_eq!((&again["job_id"], &again["is_replay"]), (&first["job_id"], &json!(true)));
    assert_eq!(lab.used(), (json!(1), json!("2.000")), "it is charged once");
    let other = lab.create_as(&lab.free, &json!({"seed": 1}), Some("k-1"));
    assert_eq!(other.code(), (409, "IDEMPOTENCY_KEY_REUSE"));
    // Keys are those of their user; without one, every request is new.
    assert_eq!(lab.create_as(&lab.pro, &json!({"seed": 1}), Some("k-1")).status, 202);
    assert_ne!(lab.created(), lab.created());
    assert_eq!(lab.runner.asked.lock().expect("no panic").len(), 4, "a repeat wakes no runner");
}

#[test]
fn the_key_of_a_request_is_any_printable_text() {
    let send = |lab: &Lab, id: &[u8]| {
        let request = hyper::Request::builder().method("POST").uri(PATH).header("host", "test");
        let id = hyper::header::HeaderValue::from_bytes(id).expect("a value");
        let request = request.header("x-api-key", &lab.free).header("idempotency-key", id);
        let body = http_body_util::Full::new(bytes::Bytes::from(Lab::body(&json!({})).to_string()));
        lab.town.world.respond(request.body(body).expect("a request"))
    };
    let (longest, long) = ("é".repeat(256), "é".repeat(257));
    // The id; the status of the first and of the second request; the back-tests that are created.
    let cases: [(&[u8], u16, usize); 7] = [
        (b"k 1", 202, 1),
        ("clé-é".as_bytes(), 202, 1),
        (longest.as_bytes(), 202, 1),
        // It names nothing.
        (b"", 202, 2),
        (b"a\tb", 422, 0),
        (b"a\xff", 422, 0),
        (long.as_bytes(), 422, 0),
    ];
    for (id, status, created) in cases {
        let lab = Lab::new(&HOURS);
        let answers = [send(&lab, id), send(&lab, id)];
        let shown = String::from_utf8_lossy(id);
        assert_eq!(answers.each_ref().map(|answer| answer.status), [status; 2], "{shown:?}: {}", answers[0].text());
        assert_eq!(lab.runner.asked.lock().expect("no panic").len(), created, "{shown:?}");
        if status == 422 {
            assert_eq!(answers[0].code().1, "VALIDATION_FAILED", "{shown:?}");
            assert!(answers[0].text().contains("Idempotency-Key"), "{}", answers[0].text());
        }
    }
    println!("keys of requests: {} cases", cases.len());
}

#[test]
fn checks_of_a_creation_come_in_their_order() {
    let lab = Lab::new(&[Verdict::Valid, Verdict::Quarantined]);
    let markets: Vec<String> = (0..6).map(|number| format!("0x{number}")).collect();
    let depletion = json!({"size": "25", "fill_model": "depth_walk_depletion"});
    let first_hour = "2026-09-30T18:00:00Z";
    // Every case has the later mistakes of the next ones.
    let cases = [
        (
            json!({"condition_ids": markets, "start": "2026-09-01", "end": "x", "strategy": {}}),
            422,
            "VALIDATION_FAILED",
        ),
        (
            json!({"condition_ids": markets, "start": "2026-09-01", "end": "x", "strategy": depletion}),
            400,
            "INVALID_WINDOW",
        ),
        (json!({"condition_ids": markets, "start": "2026-09-01", "strategy": depletion}), 403, "BACKTEST_MARKET_CAP"),
        (json!({"condition_ids": ["0x1"], "start": "2026-09-01", "strategy": depletion}), 403, "BACKTEST_WINDOW_CAP"),
        (json!({"condition_ids": ["0x1"], "strategy": depletion}), 402, "UPGRADE_REQUIRED"),
        (json!({"condition_ids": ["0x1"]}), 404, "ARCHIVE_NOT_FOUND"),
        (json!({"strategy": {"size": "25", "outcome": "Maybe"}}), 400, "INVALID_REQUEST"),
        (json!({"token_ids": {CONDITION: "1"}}), 400, "INVALID_REQUEST"),
        (json!({"token_ids": {"0x1": "1"}}), 400, "INVALID_REQUEST"),
        (json!({}), 422, "UNUNIVERSE_EXCLUDED"),
        (json!({"end": first_hour}), 202, ""),
        (
            json!({"end": first_hour, "token_ids": {CONDITION: "55200077"}, "strategy": {"size": "5", "outcome": "x"}}),
            202,
            "",
        ),
    ];
    for (changes, status, code) in &cases {
        let answer = lab.create(changes);
        assert_eq!((answer.status, answer.code().1), (*status, *code), "{changes}: {}", answer.text());
    }
    assert_eq!(lab.used(), (json!(2), json!("2.000")), "a refusal is not charged");
    let verbose = [("x-api-key", lab.free.as_str()), ("x-svc-verbose", "true")];
    let excluded = lab.town.world.send("POST", PATH, &verbose, &Lab::body(&json!({})).to_string()).json();
    let expected = json!([{"condition_id": CONDITION, "hours_available": 1, "hours_asked": 2, "hours_quarantined": 1}]);
    assert_eq!(excluded["details"]["excluded"], expected);
    println!("creations: {} cases", cases.len());
}

/// An hour that is not made yet is missing, though a book can be read in it.
#[test]
fn hours_that_are_not_made_do_not_count() {
    // Hours that are made, hours that are not; hours of the window; the answer, or how many are excluded as available.
    let cases = [
        (1, 1, 1, Ok("1.000")),
        (1, 1, 2, Err(1)),
        (4, 1, 5, Ok("5.000")),
        (3, 1, 4, Err(3)),
        (3, 2, 5, Err(3)),
        (0, 2, 2, Err(0)),
    ];
    for (made, unmade, window, expected) in cases {
        let lab = Lab::of(Shelf::with_unmade(&vec![Verdict::Valid; made], unmade), true);
        let end = wire::instant::ts_text(engine::backtest::Hour(HOUR.0 + window).start());
        let verbose = [("x-api-key", lab.free.as_str()), ("x-svc-verbose", "true")];
        let body = Lab::body(&json!({ "end": end })).to_string();
        let answer = lab.town.world.send("POST", PATH, &verbose, &body);
        let coverage = lab.get(&format!("/v1/simulation/coverage?condition_id={CONDITION}")).json();
        assert_eq!(coverage["hours_available"], json!(made as u32 + unmade), "the coverage shows both");
        match expected {
            Ok(charged) => {
                assert_eq!(answer.status, 202, "{made} {unmade} {window}: {}", answer.text());
                assert_eq!(answer.json()["market_hours_charged"], charged, "a missing hour is charged as another one");
            }
            Err(available) => {
                assert_eq!(answer.code(), (422, "UNUNIVERSE_EXCLUDED"), "{made} {unmade} {window}");
                let excluded = &answer.json()["details"]["excluded"][0];
                assert_eq!(
                    (&excluded["hours_available"], &excluded["hours_asked"]),
                    (&json!(available), &json!(window))
                );
                assert_eq!(lab.used(), (json!(0), json!("0.000")), "a refusal is not charged");
            }
        }
    }
    println!("hours that are not made: {} cases", cases.len());
}

#[test]
fn the_month_has_its_limits() {
    // 24 market hours of the free plan: the last one does not fit.
    let lab = Lab::new(&[Verdict::Valid; 25]);
    let day = json!({"end": "2026-10-01T16:00:00.001Z"});
    assert_eq!(lab.create(&day).status, 202);
    let over = lab.create(&json!({}));
    assert_eq!(over.code(), (429, "SIMULATION_HOURS_EXCEEDED"));
    // 30 days less nine hours, 14 minutes and 5 seconds.
    assert_eq!(over.header("retry-after"), Some("2558755"));
    assert_eq!(lab.used(), (json!(1), json!("23.001")));
    assert_eq!(lab.create(&json!({"end": "2026-09-30T17:59:56.4Z"})).status, 202, "the last 0.999 hours");
    // Ten back-tests of the free plan, of the shortest window.
    let lab = Lab::new(&HOURS);
    let short = json!({"end": "2026-09-30T17:00:00.000001Z"});
    for number in 0..10 {
        assert_eq!(lab.create(&short).status, 202, "{number}");
    }
    assert_eq!(lab.create(&short).code(), (429, "BACKTEST_MONTHLY_CAP"));
    assert_eq!(lab.create_as(&lab.pro, &short, None).status, 202, "another user, and a larger plan");
    let quota = lab.get("/v1/simulation/quota");
    let expected = r#"{"month":"202610","backtests_used":10,"backtests_limit":10,"market_hours_used":"0.010","market_hours_limit":24,"max_days":7,"max_markets":5}"#;
    assert_eq!((quota.status, quota.text()), (200, expected));
}

#[test]
fn a_cancelled_back_test_gives_back_its_unprocessed_part() {
    let lab = Lab::new(&HOURS);
    let cancel = |job: &str| lab.town.send("DELETE", &format!("{PATH}/{job}"), "");
    let pending = lab.created();
    let answer = cancel(&pending).json();
    assert_eq!((&answer["status"], &answer["market_hours_charged"]), (&json!("cancelled"), &json!("0.000")));
    assert_eq!(lab.used(), (json!(1), json!("0.000")));
    let asked = lab.runner.asked.lock().expect("no panic").clone();
    assert_eq!(asked.iter().map(|(what, _)| *what).collect::<Vec<_>>(), ["created", "cancelled"]);
    // It stays as it is.
    assert_eq!(cancel(&pending).json(), answer);
    let running = lab.created();
    lab.run(|job| Command::StartBacktest { job });
    *lab.runner.progress.lock().expect("no panic") = Some(JobProgress { done: 750, hours_done: 1, hours_total: 2 });
    let answer = cancel(&running).json();
    assert_eq!((&answer["status"], &answer["market_hours_charged"]), (&json!("cancelled"), &json!("1.500")));
    assert_eq!(lab.used(), (json!(2), json!("1.500")));
    // A failed one says why; a completed one is not cancelled.
    let failed = lab.created();
    let result = BacktestResult::Failed { error: "time_limit".to_owned(), left: 0 };
    lab.run(|job| Command::StartBacktest { job });
    lab.run(|job| Command::EndBacktest { job, result });
    let shown = cancel(&failed).json();
    assert_eq!((&shown["status"], &shown["error_message"]), (&json!("failed"), &json!("time_limit")));
    let done = lab.created();
    lab.run(|job| Command::EndBacktest { job, result: BacktestResult::Completed(figures()) });
    assert_eq!(cancel(&done).json()["status"], "completed");
}

#[test]
fn without_a_runner_or_a_core_nothing_is_created() {
    let lab = Lab::with(&HOURS, false);
    assert_eq!(lab.create(&json!({})).code(), (503, "JOB_STORE_UNAVAILABLE"));
    assert_eq!(lab.used(), (json!(0), json!("0.000")));
    let lab = Lab::new(&HOURS);
    lab.town.world.shard(|_, _| Err(AskError::Busy));
    assert_eq!(lab.create(&json!({})).code(), (503, "METERING_UNAVAILABLE"));
    assert_eq!(lab.get("/v1/simulation/quota").code(), (503, "SERVER_BUSY"));
    // A runner without threads takes no new one; what is complete stays readable, and what waits can be cancelled.
    let lab = Lab::new(&HOURS);
    let done = lab.created();
    lab.run(|job| Command::StartBacktest { job });
    lab.run(|job| Command::EndBacktest { job, result: BacktestResult::Completed(figures()) });
    let waiting = lab.created();
    let before = lab.used();
    *lab.runner.page.lock().expect("no panic") = Some("<html/>".to_owned());
    lab.runner.is_idle.store(true, Relaxed);
    assert_eq!(lab.create(&json!({})).code(), (503, "JOB_STORE_UNAVAILABLE"));
    assert_eq!(lab.used(), before);
    let reads = ["", "/trades", "/equity", "/trades?format=parquet", "/equity?format=parquet", "/report"];
    for read in reads {
        assert_eq!(lab.get(&format!("{PATH}/{done}{read}")).status, 200, "{read}");
    }
    assert_eq!(lab.town.send("DELETE", &format!("{PATH}/{waiting}"), "").json()["status"], "cancelled");
    println!("a runner without threads: {} reads", reads.len());
    // A core that writes the format of the build before has no back-tests.
    let lab = Lab::new(&HOURS);
    let waiting = lab.created();
    let asked = lab.runner.asked.lock().expect("no panic").len();
    let shard = lab.shard.clone();
    lab.town.world.shard(move |owner, command| match command {
        Command::CreateBacktest(_) | Command::EndBacktest { .. } => {
            Ok(Answer::Refused(engine::reject::Reject::NoBacktestStore))
        }
        command => Ok(shard.ask(owner, None, command)),
    });
    assert_eq!(lab.create(&json!({})).code(), (503, "JOB_STORE_UNAVAILABLE"));
    assert_eq!(lab.town.send("DELETE", &format!("{PATH}/{waiting}"), "").code(), (503, "JOB_STORE_UNAVAILABLE"));
    assert_eq!(lab.get(&format!("{PATH}/{waiting}")).json()["status"], "pending");
    assert_eq!(lab.runner.asked.lock().expect("no panic").len(), asked);
}
