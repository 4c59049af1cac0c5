//! Figures of runs: every due operation is counted once, and the server has the acknowledged orders.

use crate::{Running, Site, keys_file, output_text, url};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use tests::cases::Cases;
use tests::json::{at, int, list};
use tests::server::signal;
use tests::world::World;

const PAUSE: Duration = Duration::from_secs(2);

#[test]
fn every_operation_is_counted_and_every_order_is_there() {
    let cases = Cases::of("runs");
    let site = Site::new(2);
    let server = site.place.start();
    let runs = [
        "--rate 200 --connections 3",
        "--rate 200 --connections 3 --transport ws",
        "--rate 200 --connections 1 --pipeline 8 --mix rest=30,cross=40,cancel=30",
        "--rate 200 --connections 2 --pipeline 4 --mix cross=100 --transport ws",
        "--rate max --connections 2 --pipeline 4",
        "--rate max --connections 3 --pipeline 4 --transport ws --clean",
    ];
    for args in runs {
        let args: Vec<&str> = args.split(' ').collect();
        let report = site.file("report.html");
        let asked = [&args[..], &["--duration", "1", "--check", "--report", "report.html"]].concat();
        let (text, run) = site.load_well(&server, &asked);
        let total = at(&run, "/operations/all");
        let answered = int(total, "/answered");
        if args[1] == "200" {
            assert_eq!((int(&run, "/offered"), answered), (200, 200), "{text}");
        }
        assert!(answered > 0 && answered == int(&run, "/offered"), "{text}");
        assert_eq!((int(total, "/unanswered"), int(&run, "/unsent")), (0, 0), "{text}");
        let (succeeded, refused) = (int(total, "/succeeded"), int(total, "/refused"));
        assert_eq!((answered, sum(&run["statuses"])), (succeeded + refused, answered), "{text}");
        assert_eq!((run["statuses"]["200"].as_i64(), sum(&run["codes"])), (Some(succeeded), refused), "{text}");
        // A taker that is faster than the venue's replenishment finds too little, and leaves a killed order. A
        // placement that is faster than the disk, whose segments are small here, is told to retry.
        let mut codes = at(&run, "/codes").as_object().expect("an object").keys();
        assert!(codes.all(|code| ["FOK_ORDER_NOT_FILLED_ERROR", "SERVER_BUSY"].contains(&code.as_str())), "{text}");
        assert_eq!(at(&run, "/transport_errors"), &json!({}), "{text}");
        assert_eq!(at(&run, "/server_started_anew_at"), &Value::Null, "{text}");
        let kinds =
            |name: &str| ["rest", "cross", "cancel"].map(|kind| run["operations"][kind][name].as_i64().unwrap_or(0));
        let ([rests, crosses, cancels], [rested, _, cancelled]) = (kinds("answered"), kinds("succeeded"));
        assert_eq!(rests + crosses + cancels, answered, "{text}");
        let check = at(&run, "/check");
        assert_eq!(int(check, "/acknowledged") + int(check, "/refused"), rests + crosses, "{text}");
        // The check counts like the table: a killed order is a refused one in both.
        let [rests_refused, crosses_refused, _] = kinds("refused");
        assert_eq!(int(check, "/refused"), rests_refused + crosses_refused, "{text}");
        let killed = run["codes"]["FOK_ORDER_NOT_FILLED_ERROR"].as_i64().unwrap_or(0);
        assert_eq!((int(check, "/killed"), int(check, "/cancelled_otherwise")), (killed, 0), "{text}");
        let cleaned = args.contains(&"--clean");
        let (left, gone) = if cleaned { (0, rested) } else { (rested - cancelled, cancelled) };
        let counts = (int(&run, "/resting_afterwards"), int(check, "/cancels_acknowledged"));
        assert_eq!(counts, (left, gone), "a resting order rests until its cancel: {text}");
        check_series(&run, succeeded, refused);
        let page = fs::read_to_string(&report).expect("the run has written it");
        assert!(
            page.starts_with("<!DOCTYPE html>") && page.matches("<svg ").count() == 2 && page.ends_with("</html>\n")
        );
        assert!(page.contains("1.0.0-beta") && text.contains("1.0.0-beta"), "the server's version is a fact");
        assert!(text.contains("check: equal"), "{text}");
        cases.one();
    }
}

/// An idle connection is not counted as a failure of the server: it was used when it was opened, and if the server
/// closes it, it is reopened before it is needed.
#[test]
fn a_connection_may_be_idle() {
    let cases = Cases::of("rests");
    // (timeout of the first head, idle timeout; each connection has an operation every two seconds)
    for (header_ms, idle_ms, are_closed) in [("300", "20000", false), ("300", "1200", true)] {
        let mut site = Site::new(2);
        site.place.set("http", "header_timeout_ms", header_ms).set("http", "idle_timeout_ms", idle_ms);
        let server = site.place.start();
        let (text, run) = site.load_well(&server, &["--rate", "4", "--connections", "8", "--duration", "4", "--check"]);
        assert_eq!((int(&run, "/operations/all/answered"), int(&run, "/operations/all/unanswered")), (16, 0), "{text}");
        assert_eq!(at(&run, "/transport_errors"), &json!({}), "{text}");
        assert_eq!(int(&run, "/rested_and_closed") > 0, are_closed, "{text}");
        assert_eq!(int(&run, "/reconnects"), int(&run, "/rested_and_closed"), "{text}");
        cases.one();
    }
}

/// If every book is thin, thin books are traded.
#[test]
fn a_small_venue_is_traded_as_it_is() {
    let cases = Cases::of("small venues");
    let World { place, server, users, .. } = World::start(2);
    let keys = keys_file(&place, "keys.jsonl", users.iter().map(|user| (user.id, user.key.as_str())));
    let site = Site { place, users, keys };
    let (text, run) = site.load_well(&server, &["--rate", "50", "--duration", "1", "--check"]);
    assert_eq!(int(&run, "/operations/all/answered"), 50, "{text}");
    assert_eq!(int(&run, "/operations/rest/refused"), 0, "{text}");
    assert!(int(&run, "/operations/cross/succeeded") > 0, "{text}");
    cases.one();
}

/// Sum of all values of an object.
fn sum(counts: &Value) -> i64 {
    counts.as_object().expect("an object").values().filter_map(Value::as_i64).sum()
}

#[track_caller]
fn check_series(run: &Value, succeeded: i64, refused: i64) {
    for (series, expected) in [("/series/succeeded", succeeded), ("/series/refused", refused)] {
        let sum: i64 = list(run, series).iter().filter_map(Value::as_i64).sum();
        assert_eq!(sum, expected, "{series}: {run}");
    }
    let points =
        ["p50", "p90", "p99", "p99.9", "max"].map(|name| int(run, &format!("/operations/all/latency_ns/{name}")));
    assert!(points[0] > 0 && points.is_sorted(), "{points:?}");
}

/// An operation that waits for a stopped server counts from its own due time, and not from the time when the server
/// continued.
#[test]
fn a_stall_of_two_seconds_is_in_the_tail() {
    let cases = Cases::of("percentiles");
    let site = Site::new(2);
    let server = site.place.start();
    let json = site.file("run.json");
    let mut load = site.load(&url(&server), &["--rate", "100", "--duration", "8", "--connections", "4", "--check"]);
    load.arg("--json").arg(&json);
    let load = Running::start(load);
    site.wait_for_orders(&server, 5);
    signal(server.pid(), "STOP");
    std::thread::sleep(PAUSE);
    signal(server.pid(), "CONT");
    let output = load.ended();
    assert!(output.status.success(), "{}", output_text(&output));
    let run = site.figures();
    assert_eq!(int(&run, "/operations/all/answered"), 800, "{}", output_text(&output));
    // Of 800 operations 200 were due during the stop, evenly spread: the last percent waited for almost all of it.
    let least = [("max", 1_900), ("p99.9", 1_900), ("p99", 1_800), ("p90", 1_000)];
    for (name, millis) in least {
        let nanos = int(&run, &format!("/operations/all/latency_ns/{name}"));
        assert!(nanos >= millis * 1_000_000, "{name} is {nanos} ns: {}", output_text(&output));
        cases.one();
    }
    let refused = int(&run, "/operations/all/refused");
    assert_eq!(refused, 0, "{}", output_text(&output));
}

/// A stopped client is late itself: it reports that, and its figures are in doubt.
#[test]
fn a_pause_of_the_client_is_its_own() {
    let cases = Cases::of("standstills");
    let rows = [
        ("100", "1", "the client itself was late"),
        ("100", "16", "the client itself was late"),
        ("max", "1", "the client itself was paused"),
    ];
    for (rate, connections, warning) in rows {
        let site = Site::new(2);
        let server = site.place.start();
        let args = ["--rate", rate, "--duration", "8", "--connections", connections];
        let mut load = site.load(&url(&server), &args);
        load.arg("--json").arg(site.file("run.json"));
        let load = Running::start(load);
        site.wait_for_orders(&server, 5);
        signal(load.pid(), "STOP");
        std::thread::sleep(PAUSE);
        signal(load.pid(), "CONT");
        let output = load.ended();
        assert!(output.status.success(), "{}", output_text(&output));
        let run = site.figures();
        // A quarter of all operations was due meanwhile, and of all looks at the own clock.
        assert!(int(&run, "/client/send_lag_p99_ns") >= 1_800_000_000, "{}", output_text(&output));
        assert!(output_text(&output).contains(&format!("WARNING: {warning}")), "{}", output_text(&output));
        cases.one();
    }
}
