//! Refusals: before the run by the command line, during the run by the server.

use crate::{Running, Site, keys_file, output_text, url};
use std::fs;
use std::time::Duration;
use tests::cases::Cases;
use tests::eventually;
use tests::json::{at, int};
use tests::server::signal;

#[test]
fn a_wrong_option_is_one_sentence() {
    let cases = Cases::of("command lines");
    let site = Site::new(1);
    for (name, text) in [("empty", ""), ("broken", "\n{\"user_id\":1}\n"), ("folder/run.json", "")] {
        let path = site.file(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(path, text).expect("room for a file");
    }
    let rows: [(&[&str], &str); 22] = [
        (&["--rate", "0"], "from 1 to 10000000"),
        (&["--rate", "-1"], "from 1 to 10000000"),
        (&["--rate", "fast"], "a rate is max or"),
        (&["--duration", "0"], "from 0.1 to 86400"),
        (&["--duration", "-3"], "from 0.1 to 86400"),
        (&["--connections", "x"], "an integer from 1 to 10000"),
        (&["--connections", "-1"], "an integer from 1 to 10000"),
        (&["--connections", "0"], "an integer from 1 to 10000"),
        (&["--connections", "10001"], "an integer from 1 to 10000"),
        (&["--pipeline", "0"], "an integer from 1 to 512"),
        (&["--pipeline", "513"], "an integer from 1 to 512"),
        (&["--mix", ""], "not kind=percent"),
        (&["--mix", "rest=60,cross=25"], "these are percentages, and they sum to 85 instead of 100"),
        (&["--mix", "rest=60,take=40"], "the kinds are rest, cross and cancel"),
        (&["--url", "https://127.0.0.1:1"], "TLS is not supported"),
        (&["--url", "127.0.0.1:1"], "http://host:port"),
        (&["--url", "http://127.0.0.1:1/v1"], "without a path"),
        (&["--transport", "tcp"], "[possible values: rest, ws]"),
        (&["--keys", "absent"], "cannot be read"),
        (&["--keys", "empty"], "it is empty"),
        (&["--keys", "broken"], "line 2 is not"),
        (&["--check=empty"], "--json FILE"),
    ];
    for (args, expected) in rows {
        // A later option does not replace an earlier one: each is given once.
        let mut load = tests::binary::command();
        load.arg("load").current_dir(site.place.root()).args(args);
        if args[0] != "--keys" {
            load.arg("--keys").arg(&site.keys);
        }
        let output = load.output().expect("papertape can be run");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", output_text(&output));
        let first = output_text(&output).lines().next().unwrap_or_default().to_owned();
        let whole = output_text(&output);
        assert!(first.contains(expected) || whole.contains(expected), "{args:?}: {whole}");
        cases.one();
    }
    let nobody: [(&[&str], &str); 3] = [
        (&["--report", "absent/report.html"], "absent/report.html: "),
        (&["--json", "folder"], "folder: "),
        (&[], "no server answers at http://127.0.0.1:1: "),
    ];
    for (args, expected) in nobody {
        let output = site.load("http://127.0.0.1:1", args).output().expect("papertape can be run");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", output_text(&output));
        let whole = output_text(&output);
        assert!(whole.contains(expected) && whole.lines().count() == 1, "{args:?}: {whole}");
        cases.one();
    }
}

#[test]
fn refusals_are_counted_and_only_their_whole_is_a_failure() {
    let cases = Cases::of("refusals");
    let mut site = Site::new(2);
    site.place.set("limits.tiers.pro", "requests_per_second", "50").set(
        "limits.tiers.pro",
        "requests_per_minute",
        "60",
    );
    let metered = site.place.seed(1, "pro", "100000");
    let poor = site.place.seed(1, "enterprise", "0");
    let server = site.place.start();
    let good = site.users[0].clone();
    let run = ["--rate", "200", "--duration", "1", "--connections", "2"];
    // (users, what happens to the second half, code, whether anything succeeds)
    let unknown = "svc_live_0000000000000000000000000000000000000000000000000000000000000000";
    let rows = [
        (vec![(good.id, good.key.as_str()), (7, unknown)], "INVALID_KEY", "401", true),
        (vec![(metered[0].id, metered[0].key.as_str())], "RATE_LIMIT_EXCEEDED", "429", true),
        (vec![(poor[0].id, poor[0].key.as_str())], "INSUFFICIENT_BALANCE", "400", false),
    ];
    for (users, code, status, some_succeed) in rows {
        site.keys = keys_file(&site.place, "some.jsonl", users.into_iter());
        let mut load = site.load(&url(&server), &run);
        let output = load.arg("--json").arg(site.file("run.json")).output().expect("papertape can be run");
        assert_eq!(output.status.success(), some_succeed, "{code}: {}", output_text(&output));
        let figures = site.figures();
        let refused = int(&figures, "/operations/all/refused");
        assert!(refused > 0, "{}", output_text(&output));
        assert_eq!(int(&figures, &format!("/codes/{code}")), refused, "{}", output_text(&output));
        assert_eq!(int(&figures, &format!("/statuses/{status}")), refused, "{}", output_text(&output));
        assert_eq!(int(&figures, "/operations/all/answered"), 200, "{}", output_text(&output));
        assert!(at(&figures, "/warnings").to_string().contains(code), "{}", output_text(&output));
        if !some_succeed {
            assert!(
                output_text(&output).contains("not one operation succeeded; the most frequent answer is"),
                "{}",
                output_text(&output)
            );
        }
        cases.one();
    }
    // Without an accepted key the client learns nothing about the venue.
    for transport in ["rest", "ws"] {
        site.keys = keys_file(&site.place, "some.jsonl", [(7, unknown)].into_iter());
        let output = site.load(&url(&server), &["--transport", transport]).output().expect("papertape can be run");
        assert_eq!(output.status.code(), Some(1), "{}", output_text(&output));
        assert!(output_text(&output).contains("lets in none of the first 1 keys: 401"), "{}", output_text(&output));
        assert!(!output_text(&output).contains(unknown), "a key is shown");
        cases.one();
    }
}

/// A run that does not start leaves the files of the one before unchanged: a later check needs them.
#[test]
fn what_an_earlier_run_wrote_stays_until_there_is_more() {
    let cases = Cases::of("files");
    let site = Site::new(1);
    let (old, kept) = (site.file("run.json"), "of an earlier run, and longer than that of the next one\n".repeat(999));
    for name in ["run.json", "report.html"] {
        fs::write(site.file(name), &kept).expect("room for a file");
    }
    let written = ["--json", "run.json", "--report", "report.html"];
    let output = site.load("http://127.0.0.1:1", &written).output().expect("papertape can be run");
    assert!(!output.status.success(), "{}", output_text(&output));
    for name in ["run.json", "report.html"] {
        assert_eq!(fs::read_to_string(site.file(name)).expect("it exists"), kept, "{name}");
        cases.one();
    }
    let server = site.place.start();
    let run = ["--rate", "50", "--duration", "0.2", "--mix", "rest=100"];
    let output = site.load(&url(&server), &run).args(written).output().expect("papertape can be run");
    assert!(output.status.success(), "{}", output_text(&output));
    assert_eq!(int(&site.figures(), "/operations/all/answered"), 10, "a shorter file replaces the whole");
    let page = fs::read_to_string(site.file("report.html")).expect("it exists");
    assert!(page.ends_with("</html>\n"));
    cases.add(2);
    // A file name from the shell may be a pipe.
    let output = site.load(&url(&server), &run).args(["--json", "/dev/stdout"]).output().expect("papertape can be run");
    assert!(output.status.success() && output_text(&output).contains("\"offered\": 10"), "{}", output_text(&output));
    // A check of an earlier run makes no run, so there is nothing to write.
    let earlier = format!("--check={}", old.display());
    for more in [&["--json", "new.json"][..], &["--report", "new.html"], &["--clean"]] {
        let output = site.load(&url(&server), more).arg(&earlier).output().expect("papertape can be run");
        assert!(
            !output.status.success() && output_text(&output).contains("makes no run"),
            "{more:?}: {}",
            output_text(&output)
        );
        cases.one();
    }
    assert!(!site.file("new.json").exists() && !site.file("new.html").exists());
    cases.add(2);
    // One file cannot hold both.
    let same = ["--json", "new.json", "--report", "new.json"];
    let output = site.load(&url(&server), &same).output().expect("papertape can be run");
    assert!(
        !output.status.success() && output_text(&output).contains("name the same file"),
        "{}",
        output_text(&output)
    );
    cases.one();
    // A page that cannot be written prevents neither the figures nor the verdict.
    let full = ["--json", "run.json", "--report", "/dev/full", "--check"];
    let output = site.load(&url(&server), &run).args(full).output().expect("papertape can be run");
    assert_eq!(output.status.code(), Some(1), "{}", output_text(&output));
    assert!(
        output_text(&output).contains("/dev/full: ") && output_text(&output).contains("equal: 10 orders"),
        "{}",
        output_text(&output)
    );
    assert_eq!(int(&site.figures(), "/operations/all/answered"), 10);
    cases.one();
    // Figures that cannot be written leave those of the run before, and no temporary file.
    let files = || {
        let names = fs::read_dir(site.place.root()).expect("a folder");
        let mut names: Vec<String> =
            names.map(|name| name.expect("a name").file_name().to_string_lossy().into()).collect();
        names.sort();
        names
    };
    let before = files();
    fs::create_dir(site.file("whole")).expect("room for a folder");
    for args in [["--json", "whole"], ["--report", "whole"], ["--json", "whole/absent/run.json"]] {
        let output = site.load(&url(&server), &run).args(args).output().expect("papertape can be run");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", output_text(&output));
        cases.one();
    }
    fs::remove_dir(site.file("whole")).expect("it is empty");
    let output = site.load("http://127.0.0.1:1", &["--json", "new.json"]).output().expect("papertape can be run");
    assert!(!output.status.success());
    assert_eq!(files(), before, "the temporary file is removed");
    cases.add(2);
}

/// With too few descriptors the report names the number of connections.
#[test]
fn connections_that_cannot_be_opened_are_reported() {
    let cases = Cases::of("connections");
    let mut site = Site::new(1);
    site.place.set("http", "connections_max", "8");
    let server = site.place.start();
    let run = ["--rate", "50", "--duration", "0.5", "--connections", "20", "--transport", "ws", "--json", "run.json"];
    let output = site.load(&url(&server), &run).output().expect("papertape can be run");
    let warnings = at(&site.figures(), "/warnings").to_string();
    assert!(warnings.contains(" of 20 connections were not open when the run began: "), "{}", output_text(&output));
    cases.one();
}

/// The first signal ends the run, in any phase, and a second one all waiting; the figures so far are printed.
#[test]
fn a_signal_ends_what_is_being_done() {
    let cases = Cases::of("signals");
    // (options, the signal, whether the server is stopped, how often the signal is sent, exit code)
    let rows = [
        ("100", "INT", false, 1, 130),
        ("100", "TERM", false, 1, 143),
        ("max", "TERM", false, 1, 143),
        // Answers are missing: they are waited for briefly, or not at all.
        ("100", "TERM", true, 1, 143),
        ("100", "INT", true, 2, 130),
    ];
    for (rate, name, is_silent, times, code) in rows {
        let site = Site::new(1);
        let server = site.place.start();
        let run = ["--rate", rate, "--duration", "60", "--check", "--json", "run.json", "--report", "report.html"];
        let load = Running::start(site.load(&url(&server), &run));
        site.wait_for_orders(&server, 10);
        if is_silent {
            signal(server.pid(), "STOP");
            std::thread::sleep(Duration::from_millis(300));
        }
        for _ in 0..times {
            signal(load.pid(), name);
            std::thread::sleep(Duration::from_millis(100));
        }
        let output = load.ended();
        signal(server.pid(), "CONT");
        let text = output_text(&output);
        assert_eq!(output.status.code(), Some(code), "{rate} {name}: {text}");
        assert!(text.contains(&format!("interrupted by SIG{name}; the check failed")), "{text}");
        let run = site.figures();
        assert!(
            at(&run, "/interrupted") == true && at(&run, "/warnings").to_string().contains("interrupted"),
            "{text}"
        );
        assert!(int(&run, "/operations/all/succeeded") >= 1, "{text}");
        assert_eq!(int(&run, "/operations/all/unanswered") > 0, is_silent, "{text}");
        let (equal, checked) = site.check(&server, &site.file("run.json"));
        assert!(equal, "{checked}");
        let left = fs::read_dir(site.place.root()).expect("a folder").map(|entry| entry.expect("a name").file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("run.json")).collect();
        assert_eq!(left, ["run.json"], "no temporary file is left");
        cases.one();
    }
}

/// Before a run there is nothing to report, and no file is left.
#[test]
fn a_signal_before_the_run_leaves_no_files() {
    let cases = Cases::of("early signals");
    let site = Site::new(1);
    let server = site.place.start();
    signal(server.pid(), "STOP");
    let load = Running::start(site.load(&url(&server), &["--json", "run.json"]));
    let files = || {
        let names = fs::read_dir(site.place.root()).expect("a folder").map(|entry| entry.expect("a name").file_name());
        names.filter(|name| name.to_string_lossy().starts_with("run.json")).count()
    };
    eventually("the load to make room for its figures", || (files() == 1).then_some(()));
    signal(load.pid(), "TERM");
    let output = load.ended();
    signal(server.pid(), "CONT");
    assert_eq!((output.status.code(), files()), (Some(143), 0), "{}", output_text(&output));
    cases.one();
}
