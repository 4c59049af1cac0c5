//! Records of live venues: recordings that replay the venue, markets that are known without it, and the output of
//! `papertape doctor`.

use crate::fake_kalshi;
use crate::fake_polymarket::{Fake, RestFault};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use tests::binary::command;
use tests::cases::Cases;
use tests::http::Client;
use tests::json::{at, list, text};
use tests::server::ServerDir;

/// Runs a verb of papertape with the settings of a place, while `meanwhile` runs.
fn run(place: &ServerDir, args: &[&str], mut meanwhile: impl FnMut()) -> Output {
    let mut verb = command();
    verb.args(args).arg("--config").arg(place.config()).current_dir(place.root());
    let mut child = verb.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("papertape can be run");
    while child.try_wait().expect("a child").is_none() {
        meanwhile();
        std::thread::sleep(Duration::from_millis(50));
    }
    child.wait_with_output().expect("it has ended")
}

fn status_and_output(output: &Output) -> (bool, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// Lines of the recordings in a folder.
fn lines(folder: &Path) -> Vec<Value> {
    let mut files: Vec<_> = fs::read_dir(folder).expect("a folder").flatten().map(|file| file.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "ndjson"));
    files.sort();
    let texts = files.iter().map(|path| fs::read_to_string(path).expect("a plain file"));
    texts
        .flat_map(|text| text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<_>>())
        .collect()
}

fn levels(client: &mut Client, token: &str) -> Option<Value> {
    let answer = client.get(&format!("/v1/book?token_id={token}"));
    (answer.status == 200).then(|| {
        let book = answer.json();
        json!([at(&book, "/bids"), at(&book, "/asks")])
    })
}

#[test]
fn a_recording_plays_the_books_that_the_venue_had() {
    let cases = Cases::of("recordings");
    let fake = Fake::start();
    let market = fake.list(7);
    let mut place = ServerDir::new();
    fake.configure(&mut place);
    let key = place.seed(1, "enterprise", "10000").remove(0).key;
    let folder = place.root().join("out");

    // Recorded without a server.
    let mut changes = 0;
    let out = folder.to_str().expect("a path of ours").to_owned();
    let recorded = run(&place, &["record", "--venue", "polymarket", "--out", &out, "--duration", "4"], || {
        // The first book comes immediately; changes follow it.
        changes += 1;
        if changes > 20 {
            fake.level(&market, "BUY", "0.45", &(100 + changes).to_string());
        }
    });
    let (well, stdout, events) = status_and_output(&recorded);
    assert!(well && stdout.contains("of 1 markets") && stdout.contains("0 dropped"), "{stdout}\n{events}");
    let kept = lines(&folder);
    assert!(kept.iter().any(|line| line["u"].as_str().is_some_and(|url| url.contains("/events"))), "{kept:?}");
    assert_eq!(kept.last().map(|line| line["gap"].clone()), Some(json!("the recording ended")), "{kept:?}");
    cases.add(3);

    // Recorded while serving, into its own folder, from its own view of the venue.
    let server = place.start_with(&["--record"], &[]);
    let mut client = server.with_key(&key);
    let shown = tests::eventually("the book of the live market", || {
        levels(&mut client, &market.tokens[0]).filter(|book| book.to_string().contains("0.45"))
    });
    fake.level(&market, "BUY", "0.47", "33");
    let shown =
        tests::eventually("a change of it", || levels(&mut client, &market.tokens[0]).filter(|book| *book != shown));
    server.stop();
    let beside = lines(&place.data().join("tape"));
    assert_eq!(beside.last().map(|line| line["gap"].clone()), Some(json!("the recording ended")));
    cases.add(2);

    // A replay shows the same book.
    let tape = place.data().join("tape");
    let mut other = ServerDir::new();
    let key = other.set("venue", "kind", "\"replay\"").seed(1, "enterprise", "10000").remove(0).key;
    let replayed = other.start_with(&["--tape", tape.to_str().expect("a path of ours"), "--speed", "max"], &[]);
    let mut client = replayed.with_key(&key);
    tests::eventually("the same book", || levels(&mut client, &market.tokens[0]).filter(|book| *book == shown));
    cases.one();
}

#[test]
fn a_recording_marks_where_the_second_venue_skipped_a_message() {
    const TICKER: &str = "KXRAIN-1";
    let cases = Cases::of("skipped messages");
    let fake = fake_kalshi::Fake::start();
    fake.event("KXRAIN", "Rain", Some("Climate and Weather"));
    fake.market("KXRAIN", TICKER, json!({}));
    fake.book(TICKER, &[(4_000, 1_000)], &[(5_000, 1_000)]);
    let mut place = ServerDir::new();
    for (key, value) in [
        ("api", fake.api()),
        ("socket", fake.socket()),
        ("key_id", fake_kalshi::KEY_ID.into()),
        ("private_key_file", fake_kalshi::key_file(place.root()).to_string_lossy().into_owned()),
    ] {
        place.set("venue.kalshi", key, &format!("{value:?}"));
    }
    let mut stdout = 0;
    let recorded = run(&place, &["record", "--venue", "kalshi", "--out", "out", "--duration", "4"], || {
        stdout += usize::from(fake.is_followed(TICKER));
        match stdout {
            0 => {}
            10 => fake.change_lost(TICKER, 0, 3_900, 100),
            _ => fake.change(TICKER, 0, 3_800, 100),
        }
    });
    let (well, stdout, events) = status_and_output(&recorded);
    assert!(well, "{stdout}\n{events}");
    let kept = lines(&place.root().join("out"));
    let holes: Vec<usize> = (0..kept.len()).filter(|at| kept[*at]["gap"] == json!("sequence gap")).collect();
    let [hole] = holes[..] else { panic!("one hole: {kept:?}") };
    // Directly before the message that shows it.
    let number = |line: &Value| line["m"]["seq"].as_u64().filter(|_| line["m"]["type"] == json!("orderbook_delta"));
    let before = kept[..hole].iter().filter_map(number).next_back().expect("changes before it");
    assert_eq!(number(&kept[hole + 1]), Some(before + 2), "{kept:?}");
    assert_eq!(kept[hole]["c"], kept[hole + 1]["c"]);
    cases.add(3);
}

#[test]
fn an_impossible_recording_is_refused_with_its_reason() {
    let cases = Cases::of("refused recordings");
    let mut place = ServerDir::new();
    let nowhere = "\"http://127.0.0.1:9\"";
    for (section, key) in [("venue.polymarket", "gamma"), ("venue.polymarket", "clob"), ("venue.kalshi", "api")] {
        place.set(section, key, nowhere);
    }
    for (section, key) in
        [("venue.polymarket", "market_socket"), ("venue.polymarket", "spot_socket"), ("venue.kalshi", "socket")]
    {
        place.set(section, key, "\"ws://127.0.0.1:9\"");
    }
    fs::write(place.root().join("file"), "").expect("a file");
    for (args, why) in [
        (&["record", "--venue", "synthetic", "--out", "out"][..], "only live venues are recorded"),
        (&["record", "--venue", "replay", "--out", "out"], "venue.tape"),
        (&["record", "--venue", "binance", "--out", "out"], "venue.kind"),
        (&["record", "--venue", "kalshi", "--out", "file/out", "--duration", "1"], "file/out"),
        (&["record", "--venue", "polymarket,kalshi", "--out", "out", "--duration", "1"], "nothing was received"),
        (&["serve", "--record"], "only live venues are recorded"),
        (&["serve", "--record", "out", "--tape", "file"], "only live venues are recorded"),
        (&["doctor", "--venue", "synthetic"], "only live venues"),
    ] {
        let (well, stdout, events) = status_and_output(&run(&place, args, || {}));
        assert!(!well && events.contains(why), "{args:?}: {stdout}\n{events}");
        cases.one();
    }
}

#[test]
fn a_start_without_the_venue_knows_its_markets() {
    let cases = Cases::of("a start without the venue");
    let mut place = ServerDir::new();
    let fake = Fake::start();
    fake.configure(&mut place);
    let market = fake.list(3);
    let key = place.seed(1, "enterprise", "10000").remove(0).key;
    let server = place.start();
    let mut client = server.with_key(&key);
    tests::eventually("the live market", || levels(&mut client, &market.tokens[0]));
    let order = |kind: &str, tif: &str| json!({"token_id": market.tokens[0], "side": "BUY", "order_type": kind, "price": "0.35", "quantity": "10", "time_in_force": tif});
    client.post("/v1/orders", &order("limit", "GTC")).expect(200);
    drop(server);
    // The venue does not answer any more.
    drop(fake);
    let server = place.start();
    let mut client = server.with_key(&key);
    let listed = client.get("/v1/markets/by-slug/will-it-3").expect(200);
    assert_eq!(text(&listed, "/clob_token_ids/0"), market.tokens[0]);
    assert_eq!(at(&listed, "/closed"), &json!(false));
    assert_eq!(levels(&mut client, &market.tokens[0]), None, "no book without the venue");
    let refused = client.post("/v1/orders", &order("market", "FAK"));
    assert!(refused.status >= 400, "{}", refused.json());
    client.post("/v1/orders", &order("limit", "GTC")).expect(200);
    let open = client.get("/v1/orders?status=PENDING").expect(200);
    assert_eq!(list(&open, "/orders").len(), 2, "{open}");
    cases.add(6);
}

/// The line of one check.
fn line(stdout: &str, what: &str) -> String {
    stdout.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what} in {stdout}")).to_owned()
}

#[test]
fn a_doctor_looks_at_the_second_venue_with_its_credentials() {
    let cases = Cases::of("checks of the second venue");
    let fake = fake_kalshi::Fake::start();
    fake.event("KXRAIN", "Rain", Some("Climate and Weather"));
    fake.market("KXRAIN", "KXRAIN-1", json!({}));
    fake.book("KXRAIN-1", &[(4_000, 1_000)], &[(5_000, 1_000)]);
    let mut place = ServerDir::new();
    for (key, value) in [("api", fake.api()), ("socket", fake.socket())] {
        place.set("venue.kalshi", key, &format!("{value:?}"));
    }
    let look = |place: &ServerDir| status_and_output(&run(place, &["doctor", "--venue", "kalshi"], || {}));
    let (well, stdout, events) = look(&place);
    assert!(well && line(&stdout, "a snapshot by socket").contains("not checked"), "{stdout}\n{events}");
    place.set("venue.kalshi", "key_id", &format!("{:?}", fake_kalshi::KEY_ID));
    place.set("venue.kalshi", "private_key_file", &format!("{:?}", fake_kalshi::key_file(place.root())));
    let (well, stdout, events) = look(&place);
    assert!(well, "{stdout}\n{events}");
    for what in ["resolve", "a page of events", "the names of categories", "one book", "a snapshot by", "a ping of"] {
        assert!(line(&stdout, what).starts_with("ok "), "{what}: {stdout}");
        cases.one();
    }
    let strange = fake_kalshi::strange_key_file(place.root());
    place.set("venue.kalshi", "private_key_file", &format!("{strange:?}"));
    let (well, stdout, _) = look(&place);
    assert!(!well && line(&stdout, "a snapshot by").starts_with("failed "), "{stdout}");
    fake.event("KXODD", "Odd", Some("Chess Boxing"));
    fake.market(
        "KXODD",
        "KXODD-1",
        json!({"price_level_structure": "quarter_cent", "status": "resting", "close_time": 7}),
    );
    let (_, stdout, _) = look(&place);
    for what in [
        "\"Chess Boxing\" is taken as other",
        "unknown words: quarter_cent",
        "unknown words: resting",
        "close_time: not a string",
    ] {
        line(&stdout, what);
        cases.one();
    }
}

#[test]
fn a_doctor_reports_answers_differences_and_failures() {
    let cases = Cases::of("checks of a venue");
    let fake = Fake::start();
    let market = fake.list(7);
    let mut place = ServerDir::new();
    fake.configure(&mut place);
    let look = |place: &ServerDir| {
        status_and_output(&run(place, &["doctor", "--venue", "polymarket"], || {
            fake.spot("crypto_prices", "btcusdt", "64000.5");
            fake.spot("crypto_prices_chainlink", "btc/usd", "64001.5");
        }))
    };
    let (well, stdout, events) = look(&place);
    assert!(well, "{stdout}\n{events}");
    for what in
        ["resolve", "the fields of a market", "one book", "a snapshot by socket", "a ping on it", "prices of assets"]
    {
        assert!(line(&stdout, what).starts_with("ok "), "{stdout}");
        cases.one();
    }
    // It lists no windows, which is not a failure.
    assert!(line(&stdout, "up-or-down windows").starts_with("differs "), "{stdout}");
    fake.change(&market, json!({"conditionId": null, "active": "yes", "orderPriceMinTickSize": 0.3, "new": [1]}));
    let (well, stdout, _) = look(&place);
    assert!(well && line(&stdout, "the fields of a market").starts_with("differs "), "{stdout}");
    for what in ["conditionId: missing in 1 of 1 rows", "active: not true or false", "unknown words: 0.3"] {
        line(&stdout, what);
        cases.one();
    }
    fake.fault(RestFault { status: 500, times: 1_000, ..RestFault::default() });
    let (well, stdout, events) = look(&place);
    assert!(!well && events.contains("some checks got no answer"), "{stdout}\n{events}");
    assert!(line(&stdout, "a page of events").starts_with("failed "), "{stdout}");
    cases.add(3);
}
