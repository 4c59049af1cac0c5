//! What is refused: before the run by the command line, in the run by the server.

use crate::{Site, keys_file, said, url};
use std::fs;
use tests::cases::Cases;
use tests::json::{at, int};

#[test]
fn a_wrong_word_is_one_sentence() {
    let cases = Cases::of("command lines");
    let site = Site::new(1);
    for (name, text) in [("empty", ""), ("broken", "\n{\"user_id\":1}\n"), ("folder/run.json", "")] {
        let path = site.file(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(path, text).expect("room for a file");
    }
    let rows: [(&[&str], &str); 20] = [
        (&["--rate", "0"], "from 1 to 10000000"),
        (&["--rate", "-1"], "from 1 to 10000000"),
        (&["--rate", "fast"], "a rate is max or"),
        (&["--duration", "0"], "from 0.1 to 86400"),
        (&["--duration", "-3"], "from 0.1 to 86400"),
        (&["--connections", "0"], "1..=10000"),
        (&["--connections", "10001"], "1..=10000"),
        (&["--pipeline", "0"], "1..=512"),
        (&["--pipeline", "513"], "1..=512"),
        (&["--mix", ""], "no kind=percent"),
        (&["--mix", "rest=60,cross=25"], "these are percentages, and they sum to 85 instead of 100"),
        (&["--mix", "rest=60,take=40"], "there are rest, cross and cancel"),
        (&["--url", "https://127.0.0.1:1"], "TLS is not spoken"),
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
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        let first = said(&output).lines().next().unwrap_or_default().to_owned();
        let whole = said(&output);
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
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", said(&output));
        let whole = said(&output);
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
        assert_eq!(output.status.success(), some_succeed, "{code}: {}", said(&output));
        let figures = site.figures();
        let refused = int(&figures, "/operations/all/refused");
        assert!(refused > 0, "{}", said(&output));
        assert_eq!(int(&figures, &format!("/codes/{code}")), refused, "{}", said(&output));
        assert_eq!(int(&figures, &format!("/statuses/{status}")), refused, "{}", said(&output));
        assert_eq!(int(&figures, "/operations/all/answered"), 200, "{}", said(&output));
        assert!(at(&figures, "/warnings").to_string().contains(code), "{}", said(&output));
        if !some_succeed {
            assert!(
                said(&output).contains("not one operation succeeded; the most frequent answer is"),
                "{}",
                said(&output)
            );
        }
        cases.one();
    }
    // Without any key that is let in there is nothing to be learnt of the venue.
    for transport in ["rest", "ws"] {
        site.keys = keys_file(&site.place, "some.jsonl", [(7, unknown)].into_iter());
        let output = site.load(&url(&server), &["--transport", transport]).output().expect("papertape can be run");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("lets in none of the first 1 keys: 401"), "{}", said(&output));
        assert!(!said(&output).contains(unknown), "a key is shown");
        cases.one();
    }
}
