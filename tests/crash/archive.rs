//! `archive import` killed at random times, many times over: sources stay, hours are whole, the chain is whole, and an
//! hour that is replaced is there at every moment.
//!
//! `CRASH_ARCHIVE_KILLS` sets the number of kills (60), `CRASH_SEED` repeats the choices of a run.

use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tests::binary::{command, run, run_well};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::hours;
use tests::server::ServerDir;

const HOURS: u64 = 4;
/// A range of hours that no source has: an import of it only recovers.
const NEVER: [&str; 4] = ["--from", "2020-01-01T00", "--to", "2020-01-01T00"];

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// The files of a folder and of those in it, with their content.
fn files_of(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert(path.clone(), fs::read(path).expect("a file"))),
            }
        }
    }
    found
}

/// The words of an import of all sources, which are lines or Parquet hours.
fn import(source: &Path, root: &Path) -> Vec<String> {
    ["archive", "import", text(source), "--archive", text(root), "--replace", "--json"].map(str::to_owned).into()
}

/// The digest of each Parquet hour, by name.
fn digests(root: &Path) -> BTreeMap<String, String> {
    let said = run_well(["archive", "ls", "--archive", text(root), "--json"]);
    let hours = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    hours
        .map(|hour| {
            let path = hour["path"].as_str().expect("a path");
            assert!(hour["reason"].is_null(), "{hour}");
            let sidecar: Value =
                serde_json::from_slice(&fs::read(path.replace(".parquet", ".json")).expect("a sidecar")).expect("JSON");
            (hour["hour"].to_string(), sidecar["parquet"]["sha256"].to_string())
        })
        .collect()
}

#[test]
fn imports_that_are_killed_leave_whole_hours() {
    let cases = Cases::of("kills of imports");
    let kills: usize =
        env::var("CRASH_ARCHIVE_KILLS").map_or(60, |text| text.parse().expect("CRASH_ARCHIVE_KILLS is a number"));
    let mut chance = Chance::from_env("CRASH_SEED");
    let place = ServerDir::new();
    // Two contents of the same hours, each as lines and as Parquet.
    let mut sources = Vec::new();
    for number in 0..2 {
        let source = place.root().join(format!("source-{number}"));
        fs::create_dir(&source).expect("a folder");
        hours::record(&source.join("tape.ndjson"), &mut chance, HOURS, 3_000);
        let root = place.root().join(format!("whole-{number}"));
        run_well(import(&source, &root));
        let files = place.root().join(format!("files-{number}"));
        fs::create_dir(&files).expect("a folder");
        for path in files_of(&root).into_keys().filter(|path| path.extension().is_some_and(|end| end == "parquet")) {
            fs::copy(&path, files.join(path.file_name().expect("a name"))).expect("a copy");
        }
        sources.push((digests(&root), [source, files]));
    }
    let originals: Vec<_> = sources.iter().flat_map(|(_, of)| of.iter().map(|path| files_of(path))).collect();
    let (mut ended, mut hit) = (0, 0);
    while cases.count() < kills {
        let root = place.root().join("archive");
        // What is there before: nothing, or the other content.
        let had = chance.percent(70);
        if had {
            run_well(import(&sources[0].1[1], &root));
        }
        let (expected, of) = &sources[1];
        let words = import(&of[chance.below(2)], &root);
        // How long it takes is only the range of the random moments.
        let begun = Instant::now();
        run_well(import(&of[1], &place.root().join("other")));
        let longest = begun.elapsed().as_micros() as usize;
        fs::remove_dir_all(place.root().join("other")).expect("removed");
        for _ in 0..4 {
            let mut child = command()
                .args(&words)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the program can be started");
            std::thread::sleep(Duration::from_micros(chance.between(0, longest) as u64));
            let has_ended = child.try_wait().expect("a state").is_some();
            child.kill().expect("killed");
            child.wait().expect("ended");
            cases.one();
            if has_ended {
                ended += 1;
                break;
            }
            hit += 1;
            // The next import only recovers: every hour is whole, old or new.
            run_well(import(&of[1], &root).into_iter().chain(NEVER.map(str::to_owned)));
            let verified = run(["archive", "verify", "--deep", "--archive", text(&root)]);
            assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
            let found = digests(&root);
            for (hour, digest) in &found {
                let is_known = sources.iter().any(|(all, _)| all.get(hour) == Some(digest));
                assert!(is_known, "{hour} has a content of neither source");
            }
            assert!(!had || found.len() == HOURS as usize, "an hour is lost: {found:?}");
            let stray = files_of(&root).into_keys().filter(|path| text(path).ends_with(".making")).count();
            assert_eq!(stray, 0, "files that are being made are left");
        }
        run_well(&words);
        run_well(["archive", "verify", "--deep", "--archive", text(&root)]);
        assert_eq!(digests(&root), *expected);
        fs::remove_dir_all(root).expect("removed");
    }
    let now: Vec<_> = sources.iter().flat_map(|(_, of)| of.iter().map(|path| files_of(path))).collect();
    assert!(now == originals, "a source was changed");
    println!("{hit} kills hit an import, {ended} came after its end");
    assert!(hit > ended, "most kills come in the middle");
}
