//! Files changed behind the server's back (reliability.md §A 4–7, §G Damage): a torn tail is cut and said, anything
//! that was promised and is gone stops the start with its place.

use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::json::{int, text};
use tests::server::{Place, User, log_of};
use tests::world::{World, limit};

use crate::kills::copy_dir;

/// A data directory with history in it, its server killed.
struct Wreck {
    place: Place,
    user: User,
    /// The answer to the last order before the end.
    last: Value,
}

fn wreck(segment_bytes: &str, orders: usize) -> Wreck {
    let World { place, mut server, users, markets, .. } =
        World::start_with(1, |place| _ = place.set("journal", "segment_bytes", segment_bytes));
    let user = users.into_iter().next().expect("one user");
    let mut client = server.with_key(&user.key);
    let mut last = Value::Null;
    for _ in 0..orders {
        last = client.post("/v1/orders", &limit(&markets.rain, "BUY", "0.01", "5")).expect(200);
    }
    server.kill();
    Wreck { place, user, last }
}

/// Segments of the log, oldest first.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .expect("a data directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wal"))
        .collect();
    found.sort();
    found
}

/// Where the written part of a segment ends.
fn end_of(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1)
}

#[test]
fn a_torn_tail_is_cut_and_said() {
    let cases = Cases::of("torn tails");
    let mut chance = Chance::from_env("DAMAGE_SEED");
    for round in 0..8 {
        let Wreck { place, user, last } = wreck("1048576", 20);
        let newest = segments(&place.data()).pop().expect("a segment");
        let mut bytes = fs::read(&newest).expect("a segment can be read");
        let end = end_of(&bytes);
        // The last record was appended and not synced when it was torn: as a power cut would leave it.
        let lost = match round % 2 {
            0 => {
                // Garbage where the next record would begin.
                let at = end.next_multiple_of(8);
                let garbage: Vec<u8> = (0..chance.between(1, 300)).map(|_| chance.draw() as u8 | 1).collect();
                bytes[at..at + garbage.len()].copy_from_slice(&garbage);
                false
            }
            _ => {
                let cut = chance.between(1, 60);
                bytes[end - cut..end].fill(0);
                true
            }
        };
        fs::write(&newest, &bytes).expect("a segment can be written");
        let server = place.start();
        let line = server.recovered().expect("the banner says what was recovered");
        let cut =
            line.split("bytes cut").next().and_then(|before| before.split_whitespace().last()?.parse::<u64>().ok());
        assert!(cut.is_some_and(|cut| cut > 0), "bytes cut are said: {line}");
        let answer = server.with_key(&user.key).get(&format!("/v1/orders/{}", int(&last, "/order_id")));
        if lost {
            // It was the torn one, or the clean part reached beyond it.
            assert!([200, 404].contains(&answer.status), "{}", answer.lossy());
        } else {
            assert_eq!(text(&answer.expect(200), "/status"), "PENDING");
        }
        drop(server);
        let server = place.start();
        let again = server.recovered().expect("the banner says what was recovered");
        assert!(again.contains(" 0 bytes cut"), "the cut is for good: {again}");
        cases.one();
    }
}

#[test]
fn a_flipped_byte_before_a_synced_record_stops_the_start() {
    let cases = Cases::of("flipped bytes");
    let mut chance = Chance::from_env("DAMAGE_SEED");
    // Several segments: a roll makes what lies before it certain.
    let Wreck { place, .. } = wreck("1048576", 400);
    let data = place.data();
    let first = segments(&data).into_iter().next().expect("a segment");
    assert!(segments(&data).len() > 1 || data.join("epoch").exists());
    let whole = fs::read(&first).expect("a segment can be read");
    let end = end_of(&whole);
    // No snapshot may stand for what is damaged here.
    let untouched = place.root().join("untouched");
    copy_dir(&data, &untouched);
    let snapshots: Vec<PathBuf> = fs::read_dir(&data)
        .expect("a data directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "snapshot"))
        .collect();
    if !snapshots.is_empty() && !data.join(format!("{:020}.wal", 1)).exists() {
        println!("the log does not begin at its beginning; damage to the oldest kept segment is tried instead");
    }
    for _ in 0..12 {
        let at = chance.between(0, end / 2);
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << chance.below(8);
        fs::write(&first, &bytes).expect("a segment can be written");
        let verified = log_of(&data, "verify");
        assert!(!verified.status.success(), "verify sees byte {at} of {}", first.display());
        let (status, said) =
            place.spawn_with(&[], &[]).ready().map_or_else(|said| (Err(()), said), |server| (Ok(()), server.said()));
        // A snapshot may make the damaged part unnecessary for a start; verify has refused it all the same.
        if status.is_err() {
            let name = first.file_name().expect("a name").to_string_lossy().into_owned();
            assert!(said.contains(&name), "the file is named: {said}");
            assert!(said.to_lowercase().contains("lsn") || said.contains("header"), "the LSN is named: {said}");
            cases.one();
        }
        fs::remove_dir_all(&data).expect("the damaged copy can be removed");
        copy_dir(&untouched, &data);
    }
    place.start();
}

#[test]
fn missing_and_foreign_files_stop_the_start() {
    let cases = Cases::of("wrong files");
    let Wreck { place, .. } = wreck("1048576", 400);
    let data = place.data();
    let untouched = place.root().join("untouched");
    copy_dir(&data, &untouched);
    let Wreck { place: other, .. } = wreck("1048576", 50);
    let names: Vec<String> =
        segments(&data).iter().map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect();
    let newest = names.last().expect("a segment").clone();
    let foreign = segments(&other.data()).pop().expect("a segment");
    type Damage<'a> = (&'a str, Box<dyn Fn(&Path) + 'a>);
    let damages: Vec<Damage> = vec![
        ("the newest segment is gone", Box::new(|dir: &Path| fs::remove_file(dir.join(&newest)).expect("removed"))),
        ("the newest segment is empty", Box::new(|dir: &Path| fs::write(dir.join(&newest), b"").expect("emptied"))),
        (
            "the newest segment is another directory's",
            Box::new(|dir: &Path| _ = fs::copy(&foreign, dir.join(&newest)).expect("copied")),
        ),
        (
            "the newest segment has another name",
            Box::new(|dir: &Path| {
                fs::rename(dir.join(&newest), dir.join(format!("{:020}.wal", 999_999))).expect("renamed")
            }),
        ),
        ("the epoch file is gone", Box::new(|dir: &Path| fs::remove_file(dir.join("epoch")).expect("removed"))),
        ("the epoch file is empty", Box::new(|dir: &Path| fs::write(dir.join("epoch"), b"").expect("emptied"))),
        (
            "a segment twice",
            Box::new(|dir: &Path| {
                _ = fs::copy(dir.join(&newest), dir.join(format!("{:020}.wal", 999_999))).expect("copied")
            }),
        ),
    ];
    for (name, damage) in &damages {
        damage(&data);
        let said = match place.spawn_with(&[], &[]).ready() {
            Err(said) => said,
            Ok(server) => panic!("{name}: it started and said\n{}", server.said()),
        };
        assert!(!said.contains("panicked"), "{name}: {said}");
        assert!(said.contains(".wal") || said.contains("epoch") || said.contains("segment"), "{name}: {said}");
        fs::remove_dir_all(&data).expect("the damaged copy can be removed");
        copy_dir(&untouched, &data);
        cases.one();
    }
    place.start();
}

#[test]
fn a_newer_format_is_refused_by_version() {
    let cases = Cases::of("newer formats");
    let Wreck { place, .. } = wreck("1048576", 5);
    let data = place.data();
    let newest = segments(&data).pop().expect("a segment");
    let untouched = place.root().join("untouched");
    copy_dir(&data, &untouched);
    for path in [data.join("epoch"), newest] {
        // Every file of ours begins with its magic; the version stands behind it.
        let mut bytes = fs::read(&path).expect("a file can be read");
        let at = version_offset(&bytes);
        bytes[at] += 1;
        OpenOptions::new().write(true).open(&path).expect("a file can be opened").write_all(&bytes).expect("written");
        let said = match place.spawn_with(&[], &[]).ready() {
            Err(said) => said,
            Ok(server) => panic!("{} of a newer version was taken:\n{}", path.display(), server.said()),
        };
        assert!(!said.contains("panicked"), "{said}");
        assert!(said.contains("newer"), "{}: {said}", path.display());
        fs::remove_dir_all(&data).expect("the changed copy can be removed");
        copy_dir(&untouched, &data);
        cases.one();
    }
}

/// The first byte behind the eight of the magic.
fn version_offset(bytes: &[u8]) -> usize {
    assert!(bytes.len() > 12, "a header");
    8
}
