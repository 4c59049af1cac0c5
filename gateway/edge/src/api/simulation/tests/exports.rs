//! Exports whose files are in memory.

use super::super::exports::{ExportFile, ExportId, ExportLayout, Exports, Making, NotMade, WantedExport};
use super::{CONDITION, HOUR, ON, Shelf};
use crate::api::simulation::archive::{Reading, Unreachable};
use crate::api::testing::{Answered, Text as _, Town};
use crate::groups::tables;
use crate::http::testing::{NOW, Ports, SECRET, World, run};
use engine::backtest::Verdict;
use engine::time::{HOUR as AN_HOUR, SECOND, Timestamp};
use engine::user::{Permissions, Tier};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http_body_util::{BodyExt as _, Empty};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

const PATH: &str = "/v1/simulation/exports";
const EXPORT: ExportId = ExportId([0x5b; 32]);
/// Several pieces.
const BYTES: usize = 700_001;

/// Makes any export as one file.
struct Shop {
    asked: Mutex<Vec<WantedExport>>,
    makes: Mutex<Result<ExportId, NotMade>>,
    files: Mutex<HashMap<ExportId, Arc<Vec<u8>>>>,
    /// Reads from here on fail.
    fails_at: Mutex<u64>,
    is_broken: Mutex<bool>,
}

struct InMemory {
    bytes: Arc<Vec<u8>>,
    fails_at: u64,
}

impl Exports for Shop {
    fn make<'a>(&'a self, wanted: &'a WantedExport) -> Making<'a> {
        self.asked.lock().expect("no panic").push(wanted.clone());
        Box::pin(std::future::ready(*self.makes.lock().expect("no panic")))
    }

    fn open<'a>(&'a self, id: ExportId) -> Reading<'a, Option<Box<dyn ExportFile>>> {
        let fails_at = *self.fails_at.lock().expect("no panic");
        let file =
            self.files.lock().expect("no panic").get(&id).map(|bytes| InMemory { bytes: bytes.clone(), fails_at });
        let is_broken = *self.is_broken.lock().expect("no panic");
        let opened = file.map(|file| Box::new(file) as Box<dyn ExportFile>);
        Box::pin(std::future::ready(if is_broken { Err(Unreachable) } else { Ok(opened) }))
    }
}

impl ExportFile for InMemory {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, at: u64, len: usize) -> Reading<'_, Vec<u8>> {
        let is_read = at + len as u64 <= self.fails_at;
        let piece = || self.bytes[at as usize..at as usize + len].to_vec();
        Box::pin(std::future::ready(if is_read { Ok(piece()) } else { Err(Unreachable) }))
    }
}

struct Lab {
    town: Town,
    shop: Arc<Shop>,
    /// The key of a plan with the whole archive.
    full: String,
}

/// The settings of all labs, with more of them.
fn with(more: &str) -> String {
    format!("{ON}[limits.tiers.pro_plus]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n{more}")
}

impl Lab {
    fn new() -> Lab {
        Lab::of("", &[Verdict::Valid, Verdict::Degraded])
    }

    fn of(more: &str, hours: &[Verdict]) -> Lab {
        Lab::on(more, Shelf::new(hours))
    }

    fn on(more: &str, shelf: Shelf) -> Lab {
        let bytes = (0..BYTES).map(|at| (at % 251) as u8).collect();
        let shop = Arc::new(Shop {
            asked: Mutex::default(),
            makes: Mutex::new(Ok(EXPORT)),
            files: Mutex::new(HashMap::from([(EXPORT, Arc::new(bytes))])),
            fails_at: Mutex::new(u64::MAX),
            is_broken: Mutex::new(false),
        });
        let simulation = Ports { archive: Some(Arc::new(shelf)), exports: Some(shop.clone()), ..Ports::default() };
        let town = Town::of(World::with_ports(&with(more), &tables(), simulation));
        let full = town.world.key(Tier::ProPlus, Permissions::Read);
        Lab { town, shop, full }
    }

    /// The example with these fields changed; null removes one.
    fn make_as(&self, key: &str, changes: &Value) -> Answered {
        let mut body =
            json!({"condition_id": CONDITION, "start": "2026-09-30T17:00:00Z", "end": "2026-09-30T19:00:00Z"});
        for (name, value) in changes.as_object().expect("fields") {
            body[name] = value.clone();
        }
        self.town.send_as(key, "POST", PATH, &body.to_string())
    }

    fn make(&self, changes: &Value) -> Answered {
        self.make_as(&self.full, changes)
    }

    /// Path and query of a new link.
    fn link(&self) -> String {
        let answer = self.make(&json!({}));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let url = answer.json()["url"].as_str().expect("a link").to_owned();
        url.strip_prefix("http://test").expect("the host of the request").to_owned()
    }

    /// A read of a file. The key only lifts the limit of the address.
    fn get(&self, target: &str, headers: &[(&str, &str)]) -> Answered {
        self.town.send_as_with(&self.full, "GET", target, headers)
    }

    fn bytes(&self) -> Arc<Vec<u8>> {
        self.shop.files.lock().expect("no panic")[&EXPORT].clone()
    }
}

fn is_refused(answer: &Answered) {
    let expected = r#"{"error":"HTTP_403","message":"The link is not valid, or has ended."}"#;
    assert_eq!((answer.code(), answer.text()), ((403, "HTTP_403"), expected));
}

#[test]
fn an_export_has_a_link() {
    let lab = Lab::new();
    let answer = lab.make(&json!({}));
    let ends = NOW.secs() + 3_600;
    // The signature by hand.
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length");
    mac.update(&[b"export-link:".as_slice(), &[0x5b; 32], &ends.to_be_bytes()].concat());
    let signature: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let id = "5b".repeat(32);
    let expected = format!(
        r#"{{"url":"http://test/v1/simulation/exports/files/{id}?exp={ends}&sig={signature}","expires_in":3600,"format":"parquet"}}"#
    );
    assert_eq!((answer.status, answer.text()), (200, &*expected));
    // What the port was asked for.
    let window = HOUR.start()..Timestamp(HOUR.start().0 + 2 * AN_HOUR);
    let of = |layout| WantedExport { market: Shelf::new(&[Verdict::Valid; 2]).market, window: window.clone(), layout };
    let cases = [
        (json!({}), of(ExportLayout::Events)),
        (json!({"format": "parquet", "layout": "events"}), of(ExportLayout::Events)),
        (json!({"layout": "v2", "format": null}), of(ExportLayout::V2)),
        (json!({"layout": null, "further": [1]}), of(ExportLayout::Events)),
        (
            json!({"start": "2026-09-30T17:00:00.000001Z", "end": "2026-09-30T17:00:00.000002Z"}),
            WantedExport {
                window: Timestamp(HOUR.start().0 + 1)..Timestamp(HOUR.start().0 + 2),
                ..of(ExportLayout::Events)
            },
        ),
    ];
    for (changes, wanted) in &cases {
        assert_eq!(lab.make(changes).status, 200, "{changes}");
        assert_eq!(lab.shop.asked.lock().expect("no panic").last(), Some(wanted), "{changes}");
    }
    // How clients reach the server: as it is set, as the request did, or where it listens.
    type Headers = &'static [(&'static str, &'static str)];
    let hosts: [(&str, Headers, &str); 5] = [
        ("", &[("host", "127.0.0.1:9000")], "http://127.0.0.1:9000/v1/"),
        ("", &[("host", "[::1]:9000")], "http://[::1]:9000/v1/"),
        ("", &[("host", "a/b?c")], "http://127.0.0.1:8080/v1/"),
        ("", &[("host", "user@evil")], "http://127.0.0.1:8080/v1/"),
        ("public_url = \"https://paper.example/api\"\n", &[("host", "x")], "https://paper.example/api/v1/"),
    ];
    for (setting, headers, expected) in hosts {
        let lab = Lab::of(&format!("[server]\n{setting}"), &[Verdict::Valid]);
        let body = json!({"condition_id": CONDITION, "start": "2026-09-30T17:00:00Z", "end": "2026-09-30T18:00:00Z"});
        let request = hyper::Request::builder().method("POST").uri(PATH).header("x-api-key", &lab.full);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let body = http_body_util::Full::new(bytes::Bytes::from(body.to_string()));
        let answer = lab.town.world.respond(request.body(body).expect("a request"));
        let url = answer.json()["url"].as_str().expect("a link").to_owned();
        assert!(url.starts_with(expected), "{url} of {headers:?} {setting}");
    }
    println!("links: {} cases", cases.len() + hosts.len() + 1);
}

/// The order of the checks too: a case has every later mistake that it can have.
#[test]
fn wrong_exports_have_their_codes() {
    let hours = [Verdict::Valid, Verdict::Quarantined, Verdict::Missing, Verdict::Partial];
    let lab = Lab::on("", Shelf::with_unmade(&hours, 2));
    let long = "x".repeat(257);
    let invalid = (422, "VALIDATION_FAILED");
    let window = (400, "INVALID_WINDOW");
    let hour = |from: &str, to: &str| json!({"start": format!("2026-09-30T{from}:00Z"), "end": format!("2026-09-30T{to}:00Z")});
    let cases = [
        (json!({"condition_id": null, "start": "x"}), invalid),
        (json!({"condition_id": "", "start": "x"}), invalid),
        (json!({"condition_id": 5}), invalid),
        (json!({"condition_id": long}), invalid),
        (json!({"start": null}), invalid),
        (json!({"end": null}), invalid),
        (json!({"start": 1_790_000_000}), invalid),
        (json!({"end": long}), invalid),
        (json!({"format": "csv", "start": "x"}), invalid),
        (json!({"format": "PARQUET"}), invalid),
        (json!({"format": 1}), invalid),
        (json!({"layout": "v3", "start": "x"}), invalid),
        (json!({"layout": ""}), invalid),
        (json!({"layout": {}}), invalid),
        (json!({"start": "x", "condition_id": "0x1"}), window),
        (json!({"end": ""}), window),
        (json!({"start": "2026-09-31T00:00:00Z"}), window),
        (json!({"start": "2026-09-30T19:00:00Z"}), window),
        (json!({"start": "2026-09-30T19:00:00.000001Z"}), window),
        (json!({"end": "2026-10-02T09:14:05.000001Z"}), window),
        (json!({"start": "2026-06-01"}), window),
        // 2,160 hours are the most.
        (json!({"start": "2026-07-02T18:59:59Z"}), window),
        (json!({"start": "2026-07-02T19:00:00Z"}), (200, "")),
        (json!({"condition_id": "0x1"}), (404, "ARCHIVE_NOT_FOUND")),
        (json!({"condition_id": CONDITION.to_uppercase()}), (404, "ARCHIVE_NOT_FOUND")),
        (json!({"condition_id": "../../etc/passwd"}), (404, "ARCHIVE_NOT_FOUND")),
        // An hour that is not usable, alone and beside one that is.
        (hour("18:00", "19:00"), (404, "CONDITION_HOUR_NOT_COVERED")),
        (hour("18:00", "20:00"), (404, "CONDITION_HOUR_NOT_COVERED")),
        (hour("23:00", "23:30"), (404, "CONDITION_HOUR_NOT_COVERED")),
        // Hours that are not made yet, alone and after one that is.
        (hour("21:00", "22:00"), (404, "CONDITION_HOUR_NOT_COVERED")),
        (hour("21:10", "23:00"), (404, "CONDITION_HOUR_NOT_COVERED")),
        (hour("20:30", "23:00"), (200, "")),
        (hour("17:59", "19:00"), (200, "")),
        (hour("19:00", "20:01"), (200, "")),
        (json!({"end": "2026-10-02T09:14:05Z"}), (200, "")),
    ];
    for (changes, (status, code)) in &cases {
        let answer = lab.make(changes);
        assert_eq!((answer.status, answer.code().1), (*status, *code), "{changes}: {}", answer.text());
    }
    // The plan is looked at after the window, and before the market.
    for tier in [Tier::Free, Tier::Pro] {
        let key = lab.town.world.key(tier, Permissions::ReadTrade);
        assert_eq!(lab.make_as(&key, &json!({"end": "x"})).code(), window);
        let answer = lab.make_as(&key, &json!({"condition_id": "0x1"}));
        assert_eq!(answer.code(), (402, "UPGRADE_REQUIRED"));
        assert!(answer.text().contains(r#""feature_key":"dataset.historical_full","upgrade_url":"/pricing""#));
    }
    for body in ["", "[]", "{", "5"] {
        let headers = [("x-api-key", lab.full.as_str()), ("content-type", "application/json")];
        assert_eq!(lab.town.world.send("POST", PATH, &headers, body).code(), (400, "INVALID_BODY"), "{body:?}");
    }
    assert_eq!(lab.town.world.send("POST", PATH, &[], "{}").code(), (401, "MISSING_API_KEY"));
    println!("wrong exports: {} cases", cases.len() + 9);
}

#[test]
fn what_cannot_be_made_has_its_code() {
    let lab = Lab::new();
    let cases = [
        (
            NotMade::TooLarge(2_147_483_648),
            422,
            "VALIDATION_FAILED",
            "The export has more than 2147483648 bytes: ask for a shorter window.",
        ),
        (NotMade::NotYet, 503, "ARCHIVE_UNAVAILABLE", "The export is still being made: repeat the request."),
        (NotMade::Unreachable, 503, "ARCHIVE_UNAVAILABLE", "The archive cannot be reached."),
    ];
    for (why, status, code, message) in cases {
        *lab.shop.makes.lock().expect("no panic") = Err(why);
        let answer = lab.make(&json!({}));
        assert_eq!(answer.code(), (status, code));
        assert_eq!(answer.json()["message"], message);
        assert_eq!(answer.header("retry-after"), (status == 503).then_some("30"));
    }
    let link = {
        *lab.shop.makes.lock().expect("no panic") = Ok(EXPORT);
        lab.link()
    };
    *lab.shop.is_broken.lock().expect("no panic") = true;
    assert_eq!(lab.get(&link, &[]).code(), (503, "ARCHIVE_UNAVAILABLE"));
    *lab.shop.is_broken.lock().expect("no panic") = false;
    lab.shop.files.lock().expect("no panic").clear();
    let answer = lab.get(&link, &[]);
    assert_eq!(answer.code(), (404, "NOT_FOUND"));
    assert_eq!(answer.json()["message"], "The file was removed: make the export again.");
    // A server without a folder for exports, and one without the routes.
    let town = Town::of(World::with_archive(&with(""), &tables(), Arc::new(Shelf::new(&[Verdict::Valid])), None));
    let key = town.world.key(Tier::ProPlus, Permissions::Read);
    let body =
        json!({"condition_id": "0x1", "start": "2026-09-30T17:00:00Z", "end": "2026-09-30T18:00:00Z"}).to_string();
    assert_eq!(town.send_as(&key, "POST", PATH, &body).code(), (503, "ARCHIVE_UNAVAILABLE"));
    assert_eq!(town.send("GET", &link, "").code(), (503, "ARCHIVE_UNAVAILABLE"));
    is_refused(&town.send("GET", &link[..link.len() - 1], ""));
    let town = Town::new();
    assert_eq!(town.send("POST", PATH, &body).code(), (404, "NOT_FOUND"));
    assert_eq!(town.world.send("POST", PATH, &[], &body).code(), (401, "MISSING_API_KEY"));
    assert_eq!(town.world.send("GET", &link, &[], "").code(), (404, "NOT_FOUND"));
    println!("refusals: {} cases", cases.len() + 8);
}

#[test]
fn only_an_unchanged_link_is_served() {
    let lab = Lab::new();
    let link = lab.link();
    let (path, query) = link.split_once('?').expect("a query");
    let (folder, id) = path.rsplit_once('/').expect("a path");
    let (ends, signature) = query.strip_prefix("exp=").and_then(|rest| rest.split_once("&sig=")).expect("both");
    let whole = lab.bytes();
    // Without a key, in another order, and with further parameters.
    let accepted = [
        link.clone(),
        format!("{path}?sig={signature}&exp={ends}"),
        format!("{link}&download=1"),
        format!("{folder}/%35{}?{query}", &id[1..]),
    ];
    for link in &accepted {
        let answer = lab.get(link, &[]);
        assert_eq!((answer.status, answer.body == *whole), (200, true), "{link}");
    }
    assert_eq!(lab.town.world.send("GET", &link, &[], "").status, 200, "it is public");
    // Another export, and another end of this one, with their own signatures.
    *lab.shop.makes.lock().expect("no panic") = Ok(ExportId([0x5c; 32]));
    let other = lab.link();
    let other_signature = other.rsplit_once('=').expect("a signature").1;
    *lab.shop.makes.lock().expect("no panic") = Ok(EXPORT);
    lab.town.world.clock.set(NOW.plus(SECOND));
    let later = lab.link();
    let later_signature = later.rsplit_once('=').expect("a signature").1;
    assert_ne!(later_signature, signature);
    let last = |text: &str, digit: char| format!("{}{digit}", &text[..text.len() - 1]);
    let flipped = last(signature, if signature.ends_with('0') { '1' } else { '0' });
    let refused = [
        path.to_owned(),
        format!("{path}?exp={ends}"),
        format!("{path}?sig={signature}"),
        format!("{path}?exp=&sig={signature}"),
        format!("{path}?exp={ends}&sig="),
        format!("{path}?exp={ends}&sig={flipped}"),
        format!("{path}?exp={ends}&sig={}", last(signature, 'g')),
        format!("{path}?exp={ends}&sig={}", &signature[1..]),
        format!("{path}?exp={ends}&sig={signature}0"),
        format!("{path}?exp={ends}&sig={}", signature.to_uppercase()),
        format!("{path}?exp={ends}&sig={other_signature}"),
        format!("{path}?exp={ends}&sig={later_signature}"),
        format!("{path}?exp={ends}&sig={}", "0".repeat(64)),
        format!("{path}?exp={ends}&sig={}", "%C3%A9".repeat(32)),
        format!("{path}?exp={}&sig={signature}", ends.parse::<u64>().expect("a number") + 1),
        format!("{path}?exp=0{ends}&sig={signature}"),
        format!("{path}?exp=+{ends}&sig={signature}"),
        format!("{path}?exp=-1&sig={signature}"),
        format!("{path}?exp={ends}.0&sig={signature}"),
        format!("{path}?exp=99999999999999999999&sig={signature}"),
        format!("{path}?exp=18446744073709551615&sig={signature}"),
        format!("{folder}/{}?{query}", "5c".repeat(32)),
        format!("{folder}/{}?{query}", id.to_uppercase()),
        format!("{folder}/{}?{query}", &id[1..]),
        format!("{folder}/{id}0?{query}"),
        format!("{folder}/{id}.parquet?{query}"),
        format!("{folder}/{id}%00?{query}"),
        format!("{folder}/%2e%2e?{query}"),
        format!("{folder}/..%2f..%2f{id}?{query}"),
        format!("{folder}/%2fetc%2fpasswd?{query}"),
        format!("{folder}/.?{query}"),
        format!("{folder}/..?{query}"),
        format!("{folder}/{}?{query}", "5".repeat(4_000)),
    ];
    for link in &refused {
        is_refused(&lab.get(link, &[]));
    }
    // Paths that no server has: there is no list of files.
    for path in
        [folder.to_owned(), format!("{folder}/?{query}"), format!("{path}/?{query}"), format!("{path}/..?{query}")]
    {
        assert_eq!(lab.get(&path, &[]).code(), (404, "NOT_FOUND"), "{path}");
    }
    for method in ["POST", "DELETE", "PATCH"] {
        assert_eq!(lab.town.send(method, &link, "").code(), (405, "HTTP_405"), "{method}");
    }
    // To its last second.
    for (secs, is_served) in [(3_599, true), (3_600, false), (1_000_000, false)] {
        lab.town.world.clock.set(NOW.plus(secs * SECOND));
        let answer = lab.get(&link, &[]);
        match is_served {
            true => assert_eq!(answer.status, 200, "{secs}"),
            false => is_refused(&answer),
        }
    }
    println!("links: {} cases", accepted.len() + refused.len() + 11);
}

#[test]
fn parts_of_a_file() {
    let lab = Lab::new();
    let (link, whole) = (lab.link(), lab.bytes());
    let len = BYTES;
    let cases: [(&str, Option<(usize, usize)>); 12] = [
        ("bytes=0-0", Some((0, 1))),
        ("bytes=0-99", Some((0, 100))),
        ("bytes=262143-262144", Some((262_143, 262_145))),
        ("bytes=100-", Some((100, len))),
        ("bytes=700000-", Some((len - 1, len))),
        ("bytes=-1", Some((len - 1, len))),
        ("bytes=-300000", Some((len - 300_000, len))),
        ("bytes=-9999999", Some((0, len))),
        ("bytes=0-9999999", Some((0, len))),
        ("bytes=0-1,5-6", None),
        ("bytes=5-1", None),
        ("lines=0-1", None),
    ];
    for (range, expected) in cases {
        let answer = lab.get(&link, &[("range", range)]);
        let (from, to) = expected.unwrap_or((0, len));
        assert!(answer.body == whole[from..to], "{range}");
        let shown = expected.map(|(from, to)| format!("bytes {from}-{}/{len}", to - 1));
        assert_eq!(answer.header("content-range").map(str::to_owned), shown, "{range}");
        assert_eq!(answer.status, if expected.is_some() { 206 } else { 200 }, "{range}");
    }
    for range in ["bytes=700001-", "bytes=700001-700002", "bytes=-0"] {
        let answer = lab.get(&link, &[("range", range)]);
        assert_eq!(answer.code(), (416, "HTTP_416"), "{range}");
        assert_eq!(answer.header("content-range"), Some("bytes */700001"), "{range}");
    }
    // The head is that of the file, in any encoding that the client takes.
    let id = EXPORT.to_string();
    for encoding in ["identity", "gzip"] {
        let answer = lab.get(&link, &[("accept-encoding", encoding)]);
        for (name, expected) in [
            ("content-type", Some("application/vnd.apache.parquet")),
            ("etag", Some(&*format!("\"{id}\""))),
            ("accept-ranges", Some("bytes")),
            ("content-disposition", Some(&*format!("attachment; filename=\"{id}.parquet\""))),
            ("cache-control", Some("no-store")),
            ("content-encoding", None),
            ("vary", None),
        ] {
            assert_eq!(answer.header(name), expected, "{name}");
        }
        assert!(answer.body == *whole, "{encoding}");
    }
    let head = lab.town.send_as_with(&lab.full, "HEAD", &link, &[]);
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("700001"), 0));
    println!("parts: {} cases", cases.len() + 6);
}

#[test]
fn conditions_of_a_read() {
    let lab = Lab::new();
    let link = lab.link();
    let tag = format!("\"{EXPORT}\"");
    let other = format!("\"{}\"", "5c".repeat(32));
    let weak = format!("W/{tag}");
    let list = format!("{other}, {tag}");
    let part = ("range", "bytes=1-2");
    let cases: [(&[(&str, &str)], u16); 12] = [
        (&[("if-none-match", &tag)], 304),
        (&[("if-none-match", &weak)], 304),
        (&[("if-none-match", &list)], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", &other)], 200),
        (&[("if-none-match", &tag), part], 304),
        (&[("if-none-match", &other), part], 206),
        (&[("if-range", &tag), part], 206),
        (&[("if-range", &other), part], 200),
        (&[("if-range", &weak), part], 200),
        (&[("if-range", "Wed, 21 Oct 2026 07:28:00 GMT"), part], 200),
        (&[("if-range", &other), ("range", "bytes=700001-")], 200),
    ];
    for (headers, status) in cases {
        let answer = lab.get(&link, headers);
        let len = [(304, 0), (206, 2), (200, BYTES)].into_iter().find(|(of, _)| *of == status).expect("a status").1;
        assert_eq!((answer.status, answer.body.len()), (status, len), "{headers:?}");
        assert_eq!(answer.header("etag"), Some(&*tag), "{headers:?}");
    }
    println!("conditions: {} cases", cases.len());
}

#[test]
fn a_file_that_cannot_be_read_to_its_end_is_cut() {
    let lab = Lab::new();
    let link = lab.link();
    *lab.shop.fails_at.lock().expect("no panic") = 300_000;
    let request = || hyper::Request::builder().uri(&link).header("host", "test").header("x-api-key", &lab.full);
    let mut cases = 0;
    for (range, is_cut) in [("bytes=0-", true), ("bytes=0-262143", false), ("bytes=299999-300000", true)] {
        let request = request().header("range", range).body(Empty::<bytes::Bytes>::new()).expect("a request");
        let edge = Rc::clone(&lab.town.world.edge);
        let peer = IpAddr::from([1, 2, 3, 4]);
        let ended = run(async move {
            crate::http::pipeline::respond(edge, peer, request, None).await.into_body().collect().await.map(drop)
        });
        assert_eq!(ended.is_err(), is_cut, "{range}");
        cases += 1;
    }
    println!("cuts: {cases} cases");
}
