use super::server::{Asked, FileServer, Reply};
use super::sums::parse_digest;
use super::*;
use crate::archive::import::foreign::{Row, id, write};
use crate::archive::testing::options;
use archive::sidecar::Sidecar;
use archive::store::sidecar_path;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;

/// 2026-08-11T00.
const HOUR: u32 = 496_224;

/// A short pace: failures are tried again immediately.
const PACE: Pace = Pace {
    head: Duration::from_secs(20),
    window: Duration::from_secs(20),
    window_bytes: 1,
    sync_bytes: 1 << 20,
    sync_after: Duration::from_millis(5),
    tries: 3,
    retry_first: Duration::from_millis(1),
};

/// The bytes of an hour; `kind` makes them different.
fn file(hour: u32, kind: i64) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    let begins = i64::from(hour) * 3_600_000;
    let rows: Vec<Row> = (0..200)
        .map(|number| Row {
            received: begins + number * 10 + kind,
            market: 1,
            token: "11",
            levels: (number == 0).then_some([r#"[["0.3","5"]]"#, r#"[["0.5","7"]]"#]),
            price: 3_000,
            size: number,
        })
        .collect();
    write(&path, &rows, None);
    fs::read(&path).expect("a file")
}

fn name(hour: u32) -> String {
    format!("polymarket_orderbook_{}.parquet", Hour(hour))
}

fn sums_of(files: &[(u32, &[u8])]) -> String {
    files.iter().map(|(hour, bytes)| format!("{}  {}\n", archive::hex(&Sha256::digest(bytes)), name(*hour))).collect()
}

/// What a run reported: of each hour what became of it, other messages, and how it ended.
#[derive(Debug, Default)]
struct Run {
    hours: BTreeMap<u32, Result<Sealed, String>>,
    notes: Vec<String>,
    end: Option<String>,
}

impl Run {
    fn hour(&self) -> &Sealed {
        self.hours[&HOUR].as_ref().unwrap_or_else(|reason| panic!("{reason}: {self:?}"))
    }

    fn reason(&self) -> &str {
        self.hours[&HOUR].as_ref().map_or_else(String::as_str, |hour| panic!("{hour:?}"))
    }
}

/// An archive.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> World {
        World { folder: tempfile::tempdir().expect("a folder") }
    }

    fn cache(&self) -> std::path::PathBuf {
        self.folder.path().join("archive/cache")
    }

    fn fetch(&self, url: &str) -> Run {
        self.fetch_with(url, PACE, HOUR..=HOUR, |_| None, false)
    }

    fn fetch_with(
        &self,
        url: &str,
        pace: Pace,
        hours: RangeInclusive<u32>,
        sums: impl Fn(u32) -> Option<Sums>,
        is_replacing: bool,
    ) -> Run {
        let mut options = options(&self.folder.path().join("archive"));
        options.place.replace = is_replacing;
        let import = Import { options, is_linked: false, catalogue: None, settlements: None };
        let source = Source::new(url, &import.options.place.cache(), pace).expect("an address");
        let origin = Origin::named("polymarket").expect("a live venue");
        let sums = sums(*hours.start());
        let fetch = Fetch { import: &import, source: &source, origin, hours, sums };
        let mut run = Run::default();
        let end = fetch.run(&Stop::new(), &mut |told| match told {
            Told::Hour(sealed) => drop(run.hours.insert(sealed.hour, Ok(*sealed))),
            Told::There(hour) => drop(run.hours.insert(hour, Err("there".into()))),
            Told::Missing(hour) => drop(run.hours.insert(hour, Err("missing".into()))),
            Told::Refused(hour, reason) => drop(run.hours.insert(hour, Err(reason))),
            Told::NoSums(reason) => run.notes.push(reason),
        });
        run.end = end.err().map(|error| error.to_string());
        run
    }

    /// Names of what is left of downloads.
    fn left(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.cache()) else { return Vec::new() };
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

fn is_sums(asked: &Asked) -> bool {
    asked.path == "/v2/SHA256SUMS.txt"
}

/// A server of one file: digests, then the answers to requests of it in turn; the last one stays.
fn serve(sums: Reply, replies: Vec<Reply>) -> FileServer {
    let count = std::sync::atomic::AtomicUsize::new(0);
    FileServer::start(move |asked, _| match is_sums(asked) {
        true => sums.clone(),
        false => {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            replies[number.min(replies.len() - 1)].clone()
        }
    })
}

fn no_sums() -> Reply {
    Reply::status("404 Not Found")
}

#[test]
fn a_published_hour_is_fetched_and_imported() {
    let bytes = file(HOUR, 0);
    let sums = Reply::whole(sums_of(&[(HOUR, &bytes)]).as_bytes());
    let server = serve(sums, vec![Reply::whole(&bytes).with("ETag: \"a\"")]);
    let world = World::new();
    let run = world.fetch(&server.url());
    let hour = run.hour();
    assert_eq!((hour.rows, hour.is_new, hour.is_unverified, &run.end), (200, true, false, &None), "{run:?}");
    assert_eq!(fs::read(&hour.path).expect("an hour"), bytes);
    let sidecar = Sidecar::read(&sidecar_path(&hour.path)).expect("a sidecar");
    assert_eq!(sidecar.source.url, Some(format!("{}/{}", server.url(), name(HOUR))));
    assert_eq!((sidecar.source.files[0].name.as_str(), sidecar.source.unverified), (name(HOUR).as_str(), false));
    assert_eq!(world.left(), Vec::<String>::new());
    let asked = server.asked();
    let [of_sums, of_file] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((of_sums.path.as_str(), of_file.path.as_str()), ("/v2/SHA256SUMS.txt", &*format!("/v2/{}", name(HOUR))));
    for one in &asked {
        assert_eq!(one.header("user-agent"), Some(concat!("papertape/", env!("CARGO_PKG_VERSION"))));
        assert_eq!((one.method.as_str(), one.header("range")), ("GET", None));
    }
    // It is there now, and is not asked for.
    let run = world.fetch(&server.url());
    assert_eq!((run.reason(), server.asked_for_files().len()), ("there", 1));
    println!("a published hour: 2 runs");
}

/// Answers that are not taken, and what is asked for afterwards.
#[test]
fn answers_that_are_not_believed() {
    let bytes = file(HOUR, 0);
    let half = bytes.len() / 2;
    let whole = || Reply::whole(&bytes).with("ETag: \"a\"");
    let html = b"<html><body>There is no such file here, but this page.</body></html>".repeat(20);
    let page = Reply::whole(&html).with("Content-Type: text/html");
    let mut open_end = bytes.clone();
    open_end[half..].fill(0);
    let length = |length: Option<u64>| Reply { length, ..whole() };
    let cut = || whole().cut_after(half);
    let rest = |from: usize| Reply::rest(&bytes, from).with("ETag: \"a\"");
    let rest_with = |range: &str, len: usize| {
        let reply = Reply { body: bytes[half..].to_vec(), length: Some(len as u64), ..Reply::status("206 Partial") };
        reply.with("ETag: \"a\"").with(&format!("Content-Range: {range}"))
    };
    let len = bytes.len();
    let new = file(HOUR, 1);
    // name, answers, a part of the reason (`None`: imported), where requests began
    type Case<'a> = (&'a str, Vec<Reply>, Option<&'a str>, Vec<Option<usize>>);
    let cases: Vec<Case<'_>> = vec![
        ("a page instead of a file", vec![page.clone()], Some("PAR1 (text/html)"), vec![None]),
        ("403", vec![Reply::status("403 Forbidden")], Some("status 403"), vec![None]),
        ("410", vec![Reply::status("410 Gone")], Some("status 410"), vec![None]),
        ("401", vec![Reply::status("401 Unauthorized")], Some("status 401"), vec![None]),
        ("500 each time", vec![Reply::status("500 Oops")], Some("status 500"), vec![None; 3]),
        ("503 once", vec![Reply::status("503 Busy"), whole()], None, vec![None; 2]),
        ("429 once", vec![Reply::status("429 Slow").with("Retry-After: 0"), whole()], None, vec![None; 2]),
        ("404", vec![Reply::status("404 Not Found")], Some("missing"), vec![None]),
        ("204", vec![Reply::status("204 No Content")], Some("status 204"), vec![None]),
        ("304", vec![Reply::status("304 Not Modified")], Some("status 304"), vec![None]),
        ("no length", vec![length(None)], Some("does not state its length"), vec![None]),
        ("9 GiB", vec![length(Some(9 << 30))], Some("at most"), vec![None]),
        ("11 bytes", vec![Reply::whole(&bytes[..11])], Some("it has 11 bytes"), vec![None]),
        ("no end", vec![Reply::whole(&open_end)], Some("does not end with PAR1"), vec![None]),
        ("half a file", vec![Reply::whole(&bytes[..half])], Some("does not end with PAR1"), vec![None]),
        ("no footer", vec![Reply::whole(&[&b"PAR1"[..], &[0; 40], b"PAR1"].concat())], Some("footer"), vec![None]),
        ("a length above the file's", vec![length(Some(len as u64 + 1))], Some("before message length"), {
            vec![None, Some(len), Some(len)]
        }),
        ("a length below the file's", vec![length(Some(len as u64 - 1))], Some("end with PAR1"), vec![None]),
        ("packed for the way", vec![whole().with("Content-Encoding: gzip")], Some("encoding"), vec![None]),
        ("a part that was not asked for", vec![rest(half)], Some("not asked for"), vec![None]),
        ("a cut", vec![cut(), rest(half)], None, vec![None, Some(half)]),
        (
            "two cuts",
            vec![cut(), rest(half).cut_after(10), rest(half + 10)],
            None,
            vec![None, Some(half), Some(half + 10)],
        ),
        ("a cut in the first bytes", vec![whole().cut_after(3), rest(3)], None, vec![None, Some(3)]),
        ("a cut before the first byte", vec![whole().cut_after(0), whole()], None, vec![None; 2]),
        ("cuts without end", vec![cut(), Reply::status("503 Busy")], Some("503"), vec![None, Some(half), Some(half)]),
        ("a cut, and no ranges", vec![cut(), whole()], None, vec![None, Some(half)]),
        ("a cut, and another file", vec![cut(), Reply::whole(&new).with("ETag: \"b\"")], None, vec![None, Some(half)]),
        ("another file's rest", vec![cut(), Reply::rest(&bytes, half).with("ETag: \"b\""), whole()], None, {
            vec![None, Some(half), None]
        }),
        ("no ETag", vec![Reply::whole(&bytes).cut_after(half), whole()], None, vec![None; 2]),
        ("a weak ETag", vec![Reply::whole(&bytes).with("ETag: W/\"a\"").cut_after(half), whole()], None, vec![None; 2]),
        ("another range", vec![cut(), rest_with(&format!("bytes 0-{}/{len}", len - 1), len - half), whole()], None, {
            vec![None, Some(half), None]
        }),
        ("an open range", vec![cut(), rest_with(&format!("bytes {half}-{}/*", len - 1), len - half), whole()], None, {
            vec![None, Some(half), None]
        }),
        ("another length", vec![cut(), rest_with(&format!("bytes {half}-{}/{len}", len - 1), 7), whole()], None, {
            vec![None, Some(half), None]
        }),
        (
            "a range of a longer file",
            vec![cut(), rest_with(&format!("bytes {half}-{len}/{}", len + 1), len - half), whole()],
            None,
            { vec![None, Some(half), None] },
        ),
        ("416", vec![cut(), Reply::status("416 Range"), whole()], None, vec![None, Some(half), None]),
        ("404 after a cut", vec![cut(), Reply::status("404 Not Found")], Some("missing"), vec![None, Some(half)]),
        ("a page after a cut", vec![cut(), page], Some("PAR1 (text/html)"), vec![None, Some(half)]),
    ];
    for (name, replies, reason, began) in &cases {
        let server = serve(no_sums(), replies.clone());
        let world = World::new();
        let run = world.fetch(&server.url());
        match reason {
            None => assert!(run.hour().is_unverified, "{name}: {run:?}"),
            Some(part) => assert!(run.reason().contains(part), "{name}: {run:?}"),
        }
        let asked = server.asked_for_files();
        assert_eq!(asked.iter().map(Asked::from).collect::<Vec<_>>(), *began, "{name}");
        assert!(asked.iter().all(|asked| asked.header("range").is_some() == asked.header("if-range").is_some()));
        // Only what may be continued stays.
        let stays = matches!(*name, "cuts without end" | "a length above the file's");
        assert_eq!(world.left().len(), if stays { 2 } else { 0 }, "{name}: {:?}", world.left());
    }
    println!("answers: {} cases", cases.len());
}

#[test]
fn a_later_run_continues_a_download() {
    let bytes = file(HOUR, 0);
    let half = bytes.len() / 2;
    let cut = Reply::whole(&bytes).with("ETag: \"a\"").cut_after(half);
    let busy = || Reply::status("503 Busy");
    let world = World::new();
    let server = serve(no_sums(), vec![cut, busy(), busy(), Reply::rest(&bytes, half).with("ETag: \"a\"")]);
    assert!(world.fetch(&server.url()).reason().contains("503"));
    assert_eq!(world.left(), [format!("{}.note", name(HOUR)), format!("{}.part", name(HOUR))]);
    let run = world.fetch(&server.url());
    assert_eq!(fs::read(&run.hour().path).expect("an hour"), bytes);
    let began: Vec<_> = server.asked_for_files().iter().map(Asked::from).collect();
    assert_eq!(began, [None, Some(half), Some(half), Some(half)]);
    // A download that is whole is not asked for again: its import was interrupted.
    let world = World::new();
    let note = format!(r#"{{"bytes":{0},"etag":null,"synced":{0}}}"#, bytes.len());
    fs::create_dir_all(world.cache()).expect("a folder");
    fs::write(world.cache().join(name(HOUR) + ".part"), &bytes).expect("a part");
    fs::write(world.cache().join(name(HOUR) + ".note"), note).expect("a note");
    let server = serve(no_sums(), vec![busy()]);
    assert_eq!(world.fetch(&server.url()).hour().rows, 200);
    assert_eq!(server.asked_for_files().len(), 0);
    println!("continued downloads: 2 cases");
}

#[test]
fn digests_decide() {
    let (bytes, other) = (file(HOUR, 0), file(HOUR, 1));
    let good = sums_of(&[(HOUR + 1, &other), (HOUR, &bytes)]);
    let wrong = sums_of(&[(HOUR, &other)]);
    let mut odd = Vec::new();
    for number in 0..20_000_u32 {
        let line: &[u8] = match number % 4 {
            0 => b"\xff\xfe\x00\n",
            1 => b"                                                                    \n",
            2 => b"../../../../etc/passwd\n",
            _ => b"0000000000000000000000000000000000000000000000000000000000000000\n",
        };
        odd.extend_from_slice(line);
    }
    let odd_and_good = [&odd[..], good.as_bytes()].concat();
    let large = vec![b'x'; 10 << 20];
    let page = b"<html>no such file</html>".to_vec();
    let ok = |text: &[u8]| Reply::whole(text);
    let given = |sums: Sums| Some(sums);
    let by_user = |bytes: &[u8]| given(Sums::one(name(HOUR), Sha256::digest(bytes).into()));
    // name, published digests, the user's, `Ok`: whether it is unverified, or a part of the reason; notes
    type Case<'a> = (&'a str, Reply, Option<Sums>, Result<bool, &'a str>, usize);
    let cases: Vec<Case<'_>> = vec![
        ("right", ok(good.as_bytes()), None, Ok(false), 0),
        ("wrong", ok(wrong.as_bytes()), None, Err("not the published one"), 0),
        ("none", no_sums(), None, Ok(true), 0),
        ("none, by a server that lists nothing", Reply::status("403 Forbidden"), None, Ok(true), 0),
        ("of other files", ok(sums_of(&[(HOUR + 1, &other)]).as_bytes()), None, Ok(true), 0),
        ("two of one file", ok((good.clone() + &wrong).as_bytes()), None, Err("two digests"), 0),
        ("malformed", ok(good.replace("  ", " ").as_bytes()), None, Ok(true), 1),
        ("a page", ok(&page), None, Ok(true), 1),
        ("empty", ok(b""), None, Ok(true), 1),
        ("odd lines before it", ok(&odd_and_good), None, Ok(false), 0),
        ("odd lines only", ok(&odd), None, Ok(true), 1),
        ("given, right", no_sums(), by_user(&bytes), Ok(false), 0),
        ("given, wrong", ok(good.as_bytes()), by_user(&other), Err("not the published one"), 0),
        ("given, of another file", ok(good.as_bytes()), given(Sums::one(name(1), [0; 32])), Ok(true), 0),
    ];
    for (name, sums, given, expected, notes) in &cases {
        let server = serve(sums.clone(), vec![Reply::whole(&bytes)]);
        let world = World::new();
        let run = world.fetch_with(&server.url(), PACE, HOUR..=HOUR, |_| given.clone(), false);
        match expected {
            Ok(is_unverified) => {
                assert_eq!(run.hour().is_unverified, *is_unverified, "{name}");
                let sidecar = Sidecar::read(&sidecar_path(&run.hour().path)).expect("a sidecar");
                assert_eq!(sidecar.source.unverified, *is_unverified, "{name}");
            }
            Err(part) => assert!(run.reason().contains(part), "{name}: {run:?}"),
        }
        assert_eq!((run.notes.len(), run.end, world.left()), (*notes, None, vec![]), "{name}");
        let asked = server.asked().iter().filter(|asked| is_sums(asked)).count();
        assert_eq!(asked, usize::from(given.is_none()), "{name}");
    }
    // Digests that may be there, and cannot be read: nothing is fetched.
    let unread = [
        ("10 MB", Reply::whole(&large), "more than"),
        ("500", Reply::status("500 Oops"), "status 500"),
        ("cut", Reply::whole(good.as_bytes()).cut_after(50), "SHA256SUMS.txt"),
        ("elsewhere", Reply::status("302 Found").with("Location: https://archive.example/sums"), "redirect"),
    ];
    for (name, sums, part) in &unread {
        let server = serve(sums.clone(), vec![Reply::whole(&bytes)]);
        let run = World::new().fetch(&server.url());
        assert!(run.end.as_deref().is_some_and(|end| end.contains(part)), "{name}: {run:?}");
        assert_eq!(server.asked_for_files().len(), 0, "{name}");
    }
    assert_eq!(parse_digest(&"aB".repeat(32)), Some([0xab; 32]));
    println!("digests: {} cases", cases.len() + unread.len() + 1);
}

#[test]
fn redirects_stay_on_this_machine() {
    let bytes = file(HOUR, 0);
    let target = {
        let bytes = bytes.clone();
        FileServer::start(move |_, _| Reply::whole(&bytes))
    };
    let local = format!("http://{}/elsewhere/x", target.address);
    let cases = [
        (local.as_str(), None),
        ("/v2/other.parquet", None),
        ("https://archive.example/x.parquet", Some("https://archive.example is not followed")),
        ("http://archive.example/x.parquet", Some("not followed")),
        ("http://10.0.0.1/x.parquet", Some("not followed")),
        ("http://[fe80::1]/x.parquet", Some("not followed")),
        ("ftp://127.0.0.1/x.parquet", Some("")),
        ("//archive.example/x", Some("not followed")),
        ("/v2/again.parquet", Some("too many redirects")),
    ];
    for (location, reason) in cases {
        let (to, bytes) = (location.to_owned(), bytes.clone());
        let server = FileServer::start(move |asked, _| match asked.path.as_str() {
            "/v2/SHA256SUMS.txt" => no_sums(),
            "/v2/other.parquet" => Reply::whole(&bytes),
            _ => Reply::status("302 Found").with(&format!("Location: {to}")),
        });
        let run = World::new().fetch(&server.url());
        match reason {
            None => assert_eq!(run.hour().rows, 200, "{location}"),
            Some(part) => assert!(run.reason().contains(part), "{location}: {run:?}"),
        }
    }
    println!("redirects: {} cases", cases.len());
}

/// A server that sends next to nothing does not hold a download for ever.
#[test]
fn a_drip_is_given_up() {
    let bytes = file(HOUR, 0);
    let drip = Some(Duration::from_millis(1));
    let head = Reply { drip, ..Reply::whole(&bytes).cut_after(0) };
    let cases = [
        ("a byte now and then", Reply { drip, ..Reply::whole(&bytes) }),
        ("a head and nothing more", head),
        ("a few bytes and nothing more", Reply { drip, ..Reply::whole(&bytes).cut_after(5) }),
    ];
    let pace = Pace { window: Duration::from_millis(40), window_bytes: 1_000, tries: 2, ..PACE };
    for (name, reply) in &cases {
        let server = serve(no_sums(), vec![reply.clone()]);
        let run = World::new().fetch_with(&server.url(), pace, HOUR..=HOUR, |_| None, false);
        assert!(run.reason().contains("bytes came in"), "{name}: {run:?}");
        assert_eq!(server.asked_for_files().len(), 2, "{name}");
    }
    // Digests that drip.
    let server = serve(cases[0].1.clone(), vec![Reply::whole(&bytes)]);
    let run = World::new().fetch_with(&server.url(), pace, HOUR..=HOUR, |_| None, false);
    assert!(run.end.as_deref().is_some_and(|end| end.contains("in time")), "{run:?}");
    // No head at all: the listener accepts, and no answer comes.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let pace = Pace { head: Duration::from_millis(40), ..pace };
    let given = |_| Some(Sums::default());
    let run = World::new().fetch_with(&url, pace, HOUR..=HOUR, given, false);
    assert!(run.reason().contains("no answer in time"), "{run:?}");
    println!("drips: {} cases", cases.len() + 2);
}

#[test]
fn missing_and_refused_hours() {
    /// Answers by hour.
    fn run(answer: impl Fn(u32) -> Reply + Send + Sync + 'static, hours: u32) -> (Run, Vec<Asked>) {
        let server = FileServer::start(move |asked, _| {
            let hour = asked.path.strip_suffix(".parquet").and_then(|path| path.get(path.len() - 13..)?.parse().ok());
            hour.map_or_else(no_sums, |hour: Hour| answer(hour.0))
        });
        let run = World::new().fetch_with(&server.url(), PACE, HOUR..=HOUR + hours - 1, |_| None, false);
        (run, server.asked_for_files())
    }
    let got = |run: &Run| run.hours.values().filter(|hour| hour.is_ok()).count();
    let missing = || Reply::status("404 Not Found");
    // All are missing: the 24th ends it.
    let (all, asked) = run(move |_| missing(), 200);
    assert_eq!((all.hours.len(), got(&all)), (24, 0));
    assert!(all.end.as_deref().is_some_and(|end| end.contains("24 hours in a row are missing")), "{all:?}");
    assert!((24..=24 + AHEAD_MAX).contains(&asked.len()), "{}", asked.len());
    // 23 in a row do not, nor do 403 and 500 count as missing.
    let (some, _) = run(
        move |hour| match hour - HOUR {
            23 | 47 => Reply::whole(&file(hour, 0)),
            30 => Reply::status("403 Forbidden"),
            31 => Reply::status("500 Oops"),
            _ => missing(),
        },
        60,
    );
    assert_eq!((some.hours.len(), got(&some), &some.end), (60, 2, &None));
    assert!(some.hours[&(HOUR + 30)].as_ref().is_err_and(|reason| reason.contains("403")));
    // A file that is refused ends nothing; a server that refuses does.
    let (bad, _) = run(|_| Reply::whole(b"PAR1 and no more of it PAR1"), 5);
    assert_eq!((bad.hours.len(), got(&bad), &bad.end), (5, 0, &None));
    let (closed, asked) = run(|_| Reply::status("403 Forbidden"), 50);
    assert_eq!((closed.hours.len(), got(&closed)), (3, 0));
    assert!(closed.end.as_deref().is_some_and(|end| end.contains("3 hours in a row")), "{closed:?}");
    assert!(asked.len() <= 3 + AHEAD_MAX, "{}", asked.len());
    println!("missing and refused hours: 4 runs");
}

/// Two files at a time; hours come in order and are chained.
#[test]
fn two_files_at_a_time() {
    const HOURS: u32 = 7;
    /// Requests that are being answered, now and at most.
    static BUSY: Mutex<(u32, u32)> = Mutex::new((0, 0));
    let server = FileServer::start(|asked, _| {
        let hour = asked.path.strip_suffix(".parquet").and_then(|path| path.get(path.len() - 13..)?.parse().ok());
        let Some(hour): Option<Hour> = hour else { return no_sums() };
        {
            let mut busy = BUSY.lock();
            busy.0 += 1;
            busy.1 = busy.1.max(busy.0);
        }
        // Until the other one is asked for, or this is the last one.
        for _ in 0..200 {
            if BUSY.lock().0 >= 2 || hour.0 == HOUR + HOURS - 1 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let reply = Reply::whole(&file(hour.0, 0));
        BUSY.lock().0 -= 1;
        reply
    });
    let world = World::new();
    let run = world.fetch_with(&server.url(), PACE, HOUR..=HOUR + HOURS - 1, |_| None, false);
    assert_eq!((run.hours.len(), run.end), (HOURS as usize, None));
    assert_eq!(BUSY.lock().1, 2, "two at a time");
    let sidecars: Vec<Sidecar> = run
        .hours
        .values()
        .map(|hour| Sidecar::read(&sidecar_path(&hour.as_ref().expect("an hour").path)).expect("a sidecar"))
        .collect();
    for two in sidecars.windows(2) {
        assert_eq!(two[1].previous.as_deref(), Some(two[0].digest.as_str()));
    }
    println!("hours of one run: {HOURS} cases");
}

#[test]
fn replaced_hours_and_markets() {
    let (old, new) = (file(HOUR, 0), file(HOUR, 1));
    let world = World::new();
    let serving = |bytes: &[u8]| serve(no_sums(), vec![Reply::whole(bytes)]);
    let first = world.fetch(&serving(&old).url());
    let path = first.hour().path.clone();
    // Another content is not looked at without a word; with it, a refused file leaves what was there.
    assert_eq!(world.fetch(&serving(&new).url()).reason(), "there");
    let refused = b"PAR1 and no more of it PAR1";
    let run = world.fetch_with(&serving(refused).url(), PACE, HOUR..=HOUR, |_| None, true);
    assert!(run.reason().contains("footer"), "{run:?}");
    assert_eq!(fs::read(&path).expect("an hour"), old);
    let run = world.fetch_with(&serving(&new).url(), PACE, HOUR..=HOUR, |_| None, true);
    assert!(run.hour().is_new && fs::read(&path).expect("an hour") == new);
    // The same content: nothing is written.
    let run = world.fetch_with(&serving(&new).url(), PACE, HOUR..=HOUR, |_| None, true);
    assert!(!run.hour().is_new);
    // Only some markets: the hour is written again.
    let world = World::new();
    let server = serving(&old);
    let mut options = options(&world.folder.path().join("archive"));
    options.markets = Some([archive::row::Condition::parse(&id(1)).expect("an id")].into());
    let import = Import { options, is_linked: false, catalogue: None, settlements: None };
    let source = Source::new(&server.url(), &world.cache(), PACE).expect("an address");
    let origin = Origin::named("polymarket").expect("a live venue");
    let fetch = Fetch { import: &import, source: &source, origin, hours: HOUR..=HOUR, sums: None };
    let mut rows = 0;
    let done = fetch.run(&Stop::new(), &mut |told| match told {
        Told::Hour(sealed) => rows = sealed.rows,
        _ => panic!("the hour was not taken"),
    });
    assert!(done.is_ok() && rows == 200 && world.left().is_empty(), "{rows} rows, {:?}", world.left());
    // A stop.
    let stop = Stop::new();
    stop.set();
    assert!(matches!(fetch.run(&stop, &mut |_| {}), Err(FetchError::Stopped)));
    println!("replaced hours: 7 runs");
}

/// Without room on the disk no hour is asked for.
#[test]
fn nothing_is_fetched_without_room() {
    use crate::archive::room::Room;
    let world = World::new();
    let server = serve(no_sums(), vec![Reply::whole(&file(HOUR, 0))]);
    let mut options = options(&world.folder.path().join("archive"));
    options.place.room = Room::of(u64::MAX);
    let import = Import { options, is_linked: false, catalogue: None, settlements: None };
    let source = Source::new(&server.url(), &world.cache(), PACE).expect("an address");
    let origin = Origin::named("polymarket").expect("a live venue");
    let fetch = Fetch { import: &import, source: &source, origin, hours: HOUR..=HOUR, sums: None };
    let mut reasons = Vec::new();
    let done = fetch.run(&Stop::new(), &mut |told| match told {
        Told::Refused(_, reason) => reasons.push(reason),
        Told::NoSums(_) => {}
        _ => panic!("the hour was taken"),
    });
    assert!(done.is_ok() && reasons.len() == 1 && reasons[0].contains("free bytes"), "{reasons:?}");
    assert_eq!(server.asked().iter().filter(|asked| !is_sums(asked)).count(), 0);
    assert!(world.left().is_empty(), "{:?}", world.left());
}
