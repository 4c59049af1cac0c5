//! Published hours are fetched by the real program, which is killed in the middle.

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tests::binary::{command, run, run_well};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::eventually;
use tests::hours::{self, FIRST_HOUR};
use tests::server::ServerDir;

/// An hour as it is published: its name and its bytes.
fn published(place: &ServerDir) -> (String, Vec<u8>) {
    let (lines, root) = (place.root().join("tape.ndjson"), place.root().join("published"));
    hours::record(&lines, &mut Chance::seeded(5), 1, 400);
    let said = run_well(["archive", "import", text(&lines), "--archive", text(&root), "--json"]);
    let hour: Value = serde_json::from_str(said.lines().next().expect("an hour")).expect("JSON");
    let path = PathBuf::from(hour["path"].as_str().expect("a path"));
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    (name, fs::read(path).expect("an hour"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// Serves one file. The first answer stops after half of it, and the connection stays. Returns the address, and where
/// requests of the file began.
fn serve(name: &str, bytes: Vec<u8>) -> (String, Arc<Mutex<Vec<usize>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let began = Arc::new(Mutex::new(Vec::new()));
    let (path, noted) = (format!("/{name}"), began.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (path, bytes, noted) = (path.clone(), bytes.clone(), noted.clone());
            // A client that goes away is what the test is about.
            std::thread::spawn(move || drop(answer(stream, &path, &bytes, &noted)));
        }
    });
    (url, began)
}

fn answer(mut stream: TcpStream, path: &str, bytes: &[u8], began: &Mutex<Vec<usize>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut from = None;
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().ok();
        }
    }
    if first.split(' ').nth(1) != Some(path) {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    }
    let is_first = {
        let mut began = began.lock().expect("the list");
        began.push(from.unwrap_or(0));
        began.len() == 1
    };
    let (status, rest) = match from {
        Some(from) => {
            let range = format!("Content-Range: bytes {from}-{}/{}\r\n", bytes.len() - 1, bytes.len());
            (format!("206 Partial Content\r\n{range}"), &bytes[from..])
        }
        None => ("200 OK\r\n".to_owned(), bytes),
    };
    write!(stream, "HTTP/1.1 {status}ETag: \"1\"\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", rest.len())?;
    match is_first {
        true => {
            stream.write_all(&rest[..rest.len() / 2])?;
            // Until the client is killed.
            stream.read_to_end(&mut Vec::new()).map(drop)
        }
        false => stream.write_all(rest),
    }
}

#[test]
fn a_killed_download_continues() {
    let cases = Cases::of("a killed download");
    let place = ServerDir::new();
    let (name, bytes) = published(&place);
    let (url, began) = serve(&name, bytes.clone());
    let root = place.root().join("archive");
    let words = ["archive", "fetch", "--from", FIRST_HOUR, "--to", FIRST_HOUR, "--url", &url];
    let words: Vec<&str> = words.into_iter().chain(["--archive", text(&root), "--json"]).collect();
    let mut first = command().args(&words).stdout(Stdio::null()).spawn().expect("the program");
    let note = root.join("cache").join(format!("{name}.note"));
    let half = bytes.len() / 2;
    eventually("half of the file on disk", || {
        let note: Value = serde_json::from_slice(&fs::read(&note).ok()?).ok()?;
        (note["synced"] == half).then_some(())
    });
    first.kill().expect("killed");
    first.wait().expect("ended");
    cases.one();
    let said = run_well(&words);
    let hour: Value = serde_json::from_str(said.lines().next().expect("an hour")).expect("JSON");
    assert_eq!((&hour["new"], &hour["unverified"]), (&Value::from(true), &Value::from(true)), "{said}");
    assert_eq!(fs::read(hour["path"].as_str().expect("a path")).expect("an hour"), bytes);
    assert_eq!(*began.lock().expect("the list"), [0, half]);
    let left = fs::read_dir(root.join("cache")).expect("the cache").count();
    assert_eq!(left, 0, "nothing of the download is left");
    run_well(["archive", "verify", "--deep", "--archive", text(&root)]);
    cases.one();
    // It is there.
    let said = run_well(&words);
    assert!(said.contains("is there already") && said.contains("\"there\":1"), "{said}");
    assert_eq!(began.lock().expect("the list").len(), 2);
    cases.one();
}

#[test]
fn wrong_fetches_end_with_their_code() {
    let cases = Cases::of("wrong fetches");
    let place = ServerDir::new();
    let (name, bytes) = published(&place);
    let (url, began) = serve(&name, bytes);
    // The next answers are whole.
    began.lock().expect("the list").push(0);
    let (root, digest) = (place.root().join("archive"), "1".repeat(64));
    let sums = place.root().join("sums.txt");
    fs::write(&sums, "no digest\n").expect("a file");
    let one = ["--from", FIRST_HOUR, "--to", FIRST_HOUR];
    let many = ["--from", FIRST_HOUR, "--to", "2026-08-11T05"];
    type Case<'a> = (Vec<&'a str>, i32, &'a str);
    let cases_of: Vec<Case<'_>> = vec![
        (one.to_vec(), 2, "--url"),
        (vec!["--url", &url], 2, "--from"),
        (["--from", "2026-08-11T05", "--to", FIRST_HOUR, "--url", &url].to_vec(), 2, "is after"),
        ([&one[..], &["--url", "http://archive.example"]].concat(), 2, "https"),
        ([&one[..], &["--url", "https://me:secret@archive.example"]].concat(), 2, "password"),
        ([&many[..], &["--url", &url, "--sha256", &digest]].concat(), 2, "one hour"),
        ([&one[..], &["--url", &url, "--sha256", text(&sums)]].concat(), 2, "no line of a digest"),
        ([&one[..], &["--url", &url, "--sha256", "no such file"]].concat(), 2, "no such file"),
        ([&one[..], &["--url", &url, "--venue", "nowhere"]].concat(), 2, "polymarket"),
        ([&one[..], &["--url", &url, "--sha256", &digest]].concat(), 1, "not the published one"),
        ([&many[..], &["--url", &url]].concat(), 1, "2026-08-11T05 is missing"),
    ];
    for (words, code, part) in &cases_of {
        let all = ["archive", "fetch", "--archive", text(&root)].into_iter().chain(words.iter().copied());
        let output = run(all);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(*code), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
        assert!(!said.contains("secret"), "{words:?}: {said}");
        cases.one();
    }
}
