//! A server that is killed during a run: acknowledged orders survive, and a client with other records is detected.

use crate::{Running, Site, keys_file, output_text, url};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use tests::cases::Cases;
use tests::json::{at, int};

/// Runs a load and kills the server in the middle of it.
#[track_caller]
pub fn killed(site: &mut Site, args: &[&str], comes_back: bool) -> (tests::server::Server, Value, String) {
    let mut server = site.place.start();
    let address = server.address();
    let mut load = site.load(&url(&server), args);
    load.arg("--json").arg(site.file("run.json"));
    let load = Running::start(load);
    site.wait_for_orders(&server, 20);
    // A restart is detected by the server's age, in seconds.
    std::thread::sleep(Duration::from_secs(2));
    server.kill();
    site.place.set("server", "listen", &format!("\"{address}\""));
    let back = comes_back.then(|| site.place.start());
    let output = load.ended();
    assert_eq!(output.status.success(), comes_back, "{}", output_text(&output));
    (back.unwrap_or_else(|| site.place.start()), site.figures(), output_text(&output))
}

#[test]
fn acknowledged_orders_survive_the_server() {
    let cases = Cases::of("kills");
    let runs = [
        ("--rate 300 --duration 20 --connections 3 --pipeline 4 --check", true),
        ("--rate 2000 --duration 20 --connections 2 --transport ws --pipeline 8 --check", true),
        ("--rate max --duration 4 --connections 2 --pipeline 8", false),
        ("--rate 300 --duration 4 --connections 2 --transport ws --check", false),
    ];
    for (args, comes_back) in runs {
        let mut site = Site::new(2);
        let args: Vec<&str> = args.split(' ').collect();
        let (server, run, text) = killed(&mut site, &args, comes_back);
        assert!(at(&run, "/transport_errors").as_object().is_some_and(|errors| !errors.is_empty()), "{text}");
        assert_eq!(int(&run, "/reconnects") > 0, comes_back, "{text}");
        assert!(int(&run, "/operations/all/succeeded") > 0, "{text}");
        // A server that does not come back is not a restart.
        assert_eq!(at(&run, "/server_started_anew_at").is_string(), comes_back, "{text}");
        assert_eq!(text.contains("WARNING: the server restarted during the run"), comes_back, "{text}");
        if args.contains(&"--check") {
            assert_eq!(text.contains("check: equal"), comes_back, "{text}");
            assert_eq!(text.contains("the check failed"), !comes_back, "{text}");
        } else {
            assert_eq!(text.contains("the server was gone at the end of the run"), !comes_back, "{text}");
        }
        let (equal, verdict) = site.check(&server, &site.file("run.json"));
        assert!(equal && verdict.starts_with("equal: "), "{verdict}\n{text}");
        cases.one();
    }
}

#[test]
fn a_difference_is_found_and_named() {
    let cases = Cases::of("differences");
    let site = Site::new(2);
    let server = site.place.start();
    let args = ["--rate", "100", "--duration", "1", "--connections", "1", "--mix", "rest=50,cross=50"];
    let (_, run) = site.load_well(&server, &args);
    let (name, fates) = (at(&run, "/orders/run").as_str().expect("a name"), at(&run, "/orders/fates/0"));
    assert_eq!(fates, "p100");
    let (stranger, twice) = (json!([9_999_999]), json!([site.users[0].id, site.users[1].id, site.users[0].id]));
    let rows = [
        ("/orders/fates/0", json!("p100"), true, "equal: 100 orders and 0 cancels".to_owned()),
        ("/orders/fates/0", json!("u100"), true, "100 without an answer (100 happened, 0 did not)".to_owned()),
        ("/orders/fates/0", json!("p100u3"), true, "3 without an answer (0 happened, 3 did not)".to_owned()),
        (
            "/orders/fates/0",
            json!("p101"),
            false,
            format!("1 acknowledged or killed, and missing on the server: {name}-0-100"),
        ),
        ("/orders/fates/0", json!("r1p99"), false, format!("1 on the server without an acknowledgement: {name}-0-0")),
        ("/orders/fates/0", json!("p99"), false, format!("1 on the server without an acknowledgement: {name}-0-99")),
        (
            "/orders/fates/0",
            json!("c1p99"),
            false,
            format!("1 acknowledged as cancelled and not cancelled: {name}-0-0"),
        ),
        ("/orders/fates/0", json!("k1p99"), false, format!("1 refused as killed and not cancelled: {name}-0-0")),
        (
            "/orders/users",
            json!([site.users[0].id]),
            false,
            "acknowledged or killed, and missing on the server".to_owned(),
        ),
        // A user with two keys has its orders once.
        ("/orders/users", twice, true, "equal: 100 orders and 0 cancels".to_owned()),
        (
            "/orders/users",
            stranger,
            false,
            "the orders of 1 users could not be read, and 0 orders of their connections not be checked: user 9999999: not in"
                .to_owned(),
        ),
        ("/orders/fates/0", json!("p4294967295"), false, "name an unchanged file of `papertape load --json FILE`".to_owned()),
        ("/orders/fates/0", json!("x"), false, "name an unchanged file of `papertape load --json FILE`".to_owned()),
    ];
    for (place, value, equal, expected) in rows {
        let mut changed = run.clone();
        *changed.pointer_mut(place).expect(place) = value.clone();
        let file = site.file("changed.json");
        fs::write(&file, changed.to_string()).expect("room for a file");
        let (was_equal, verdict) = site.check(&server, &file);
        assert!(was_equal == equal && verdict.contains(&expected), "{place} = {value}: {verdict}");
        cases.one();
    }
}

/// A user whose key is refused is named, and the orders of the others are still checked.
#[test]
fn a_key_that_is_refused_is_named_and_the_others_are_checked() {
    let cases = Cases::of("refused keys");
    let mut site = Site::new(3);
    let server = site.place.start();
    let args = ["--rate", "100", "--duration", "0.6", "--connections", "3", "--mix", "rest=100"];
    let (_, run) = site.load_well(&server, &args);
    let (name, bad) = (at(&run, "/orders/run").as_str().expect("a name"), site.users[1].id);
    assert_eq!(at(&run, "/orders/fates"), &json!(["p20", "p20", "p20"]));
    let unknown = "svc_live_0000000000000000000000000000000000000000000000000000000000000000";
    let key = |place: usize| if place == 1 { unknown } else { site.users[place].key.as_str() };
    let without = [0, 2].map(|place| (site.users[place].id, key(place)));
    let with_unknown = [0, 1, 2].map(|place| (site.users[place].id, key(place)));
    // A user with several keys is read with one that the server accepts.
    let twice = [(bad, site.users[1].key.as_str()), (bad, unknown)];
    let asked = "the orders of 1 users could not be read, and 20 orders of their connections not be checked";
    // (keys, outcomes of the first connection, the first word, other parts of the text)
    let rows = [
        (with_unknown.to_vec(), "p20", "INCOMPLETE: 40 orders", format!("{asked}: user {bad}: 401")),
        (without.to_vec(), "p20", "INCOMPLETE: 40 orders", format!("{asked}: user {bad}: not in")),
        (with_unknown.to_vec(), "p21", "DIFFERENT: 41 orders", format!("missing on the server: {name}-0-20")),
        ([&without[..], &twice[..]].concat(), "p20", "equal: 60 orders", "0 orders refused".to_owned()),
    ];
    let files: Vec<_> = rows
        .iter()
        .enumerate()
        .map(|(number, (keys, ..))| keys_file(&site.place, &format!("keys-{number}.jsonl"), keys.iter().copied()))
        .collect();
    for ((keys, fates, word, expected), file) in rows.iter().zip(files) {
        let mut changed = run.clone();
        changed["orders"]["fates"][0] = json!(fates);
        fs::write(site.place.root().join("changed.json"), changed.to_string()).expect("room for a file");
        site.keys = file;
        let (equal, verdict) = site.check(&server, &site.file("changed.json"));
        assert!(verdict.starts_with(word) && verdict.contains(expected.as_str()), "{keys:?}: {verdict}");
        assert_eq!(equal, word.starts_with("equal"), "{verdict}");
        assert!(!verdict.contains(unknown), "a key is shown");
        cases.one();
    }
    // The same after a run of its own: the figures are complete, and the verdict names the unchecked users.
    site.keys = keys_file(
        &site.place,
        "again.jsonl",
        [(site.users[0].id, site.users[0].key.as_str()), (bad, unknown)].into_iter(),
    );
    let output =
        site.load(&url(&server), &args).args(["--check", "--json", "run.json"]).output().expect("it can be run");
    assert_eq!(output.status.code(), Some(1), "{}", crate::output_text(&output));
    assert!(crate::output_text(&output).contains(&format!("user {bad}: 401")), "{}", crate::output_text(&output));
    assert_eq!(int(&site.figures(), "/check/unread/count"), 1);
    cases.one();
}
