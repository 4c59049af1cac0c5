//! Files changed without the server: a torn tail is cut and reported; any acknowledged data that is missing stops the
//! start with its location (wal/docs/recovery.md §2).

use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tests::binary::run_well;
use tests::cases::Cases;
use tests::chance::Chance;
use tests::eventually;
use tests::json::{int, list, text};
use tests::server::{ServerDir, User, log_of};
use tests::world::{World, limit};
use wal::segment::SEGMENT_HEADER_BYTES;

use crate::kills::copy_dir;

/// Orders that fill several segments of the smallest size, but too few for the oldest to be recycled.
const SEVERAL_SEGMENTS: usize = 12_000;

/// A data directory with a history, its server gone.
struct Wreck {
    place: ServerDir,
    user: User,
    /// The answer to the last order before the end.
    last: Value,
}

/// How the server of a [`Wreck`] ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Killed,
    /// Cleanly: everything is synced and marked as such.
    Stopped,
}

fn wreck(orders: usize, ended: Ended) -> Wreck {
    let World { place, mut server, users, markets, .. } =
        World::start_with(1, |place| _ = place.set("journal", "segment_bytes", "1048576"));
    let user = users.into_iter().next().expect("one user");
    let mut client = server.with_key(&user.key);
    let order = limit(&markets.rain, "BUY", "0.01", "5");
    let mut left = orders - 1;
    while left > 0 {
        // Segments this small may be used up faster than the disk takes new ones; then the server reports that it is
        // busy.
        let made = client.post("/v1/orders/batch", &json!(vec![&order; left.min(25)]));
        match made.status {
            503 => std::thread::sleep(Duration::from_millis(2)),
            _ => left -= list(&made.expect(200), "/results").iter().filter(|row| int(row, "/order_id") > 0).count(),
        }
    }
    let last = eventually("room for one more", || {
        let answer = client.post("/v1/orders", &order);
        (answer.status != 503).then(|| answer.expect(200))
    });
    match ended {
        Ended::Killed => server.kill(),
        Ended::Stopped => _ = server.stop(),
    }
    Wreck { place, user, last }
}

/// Segments of the log, oldest first.
fn segments(dir: &Path) -> Vec<PathBuf> {
    with_extension(dir, "wal")
}

/// The end of the last record of a segment. It may end in zeros.
fn end_of(bytes: &[u8]) -> usize {
    written(bytes).last().expect("a segment has a header").end
}

#[test]
fn a_torn_tail_is_cut_and_reported() {
    let cases = Cases::of("torn tails");
    let mut chance = Chance::from_env("DAMAGE_SEED");
    for round in 0..8 {
        let Wreck { place, user, last } = wreck(20, Ended::Killed);
        let newest = segments(&place.data()).pop().expect("a segment");
        let mut bytes = fs::read(&newest).expect("a segment can be read");
        let end = end_of(&bytes);
        // The last record was appended and not synced when it was torn: the state after a power cut.
        let lost = match round % 2 {
            0 => {
                // Garbage after the last record.
                let at = end.next_multiple_of(8);
                let garbage: Vec<u8> = (0..chance.between(1, 300)).map(|_| chance.draw() as u8 | 1).collect();
                bytes[at..at + garbage.len()].copy_from_slice(&garbage);
                false
            }
            _ => {
                let cut = chance.between(1, 60);
                let last = bytes.iter().rposition(|byte| *byte != 0).expect("a segment has a header");
                bytes[last + 1 - cut..end].fill(0);
                true
            }
        };
        fs::write(&newest, &bytes).expect("a segment can be written");
        let server = place.start();
        let line = server.recovered().expect("the banner reports the recovery");
        let cut =
            line.split("bytes cut").next().and_then(|before| before.split_whitespace().last()?.parse::<u64>().ok());
        assert!(cut.is_some_and(|cut| cut > 0), "bytes cut are reported: {line}");
        let answer = server.with_key(&user.key).get(&format!("/v1/orders/{}", int(&last, "/order_id")));
        if lost {
            // It was the torn record, or the synced part reached beyond it.
            assert!([200, 404].contains(&answer.status), "{}", answer.lossy());
        } else {
            assert_eq!(text(&answer.expect(200), "/status"), "PENDING");
        }
        drop(server);
        let server = place.start();
        let again = server.recovered().expect("the banner reports the recovery");
        assert!(again.contains(" 0 bytes cut"), "the cut is permanent: {again}");
        cases.one();
    }
}

/// The meaningful bytes of a segment: its header and its records, without the padding after each.
fn written(bytes: &[u8]) -> Vec<Range<usize>> {
    let header = 0..SEGMENT_HEADER_BYTES;
    let mut at = header.end;
    let mut ranges = vec![header];
    while let Some(length) = bytes.get(at..at + 4) {
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        if length == 0 {
            break;
        }
        ranges.push(at..at + length);
        at = (at + length).next_multiple_of(8);
    }
    ranges
}

#[test]
fn a_flipped_byte_of_a_promised_record_stops_the_start() {
    let cases = Cases::of("flipped bytes");
    let mut chance = Chance::from_env("DAMAGE_SEED");
    let Wreck { place, .. } = wreck(400, Ended::Stopped);
    let data = place.data();
    let first = segments(&data).into_iter().next().expect("a segment");
    let whole = fs::read(&first).expect("a segment can be read");
    let written = written(&whole);
    assert!(written.len() > 400, "every order is a record");
    let untouched = place.root().join("untouched");
    copy_dir(&data, &untouched);
    for round in 0..24 {
        // In every second round the header of the segment or of a record, which are a small part of it.
        let range = if round % 6 == 0 { &written[0] } else { chance.pick(&written) };
        let length = if round % 2 == 0 { range.len().min(64) } else { range.len() };
        let at = range.start + chance.below(length);
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << chance.below(8);
        fs::write(&first, &bytes).expect("a segment can be written");
        let verified = log_of(&data, "verify");
        assert!(!verified.status.success(), "verify finds byte {at} of {}", first.display());
        let output = match place.spawn_with(&[], &[]).ready() {
            Err(output) => output,
            Ok(server) => panic!("byte {at}: it started and printed\n{}", server.output()),
        };
        let name = first.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(output.contains(&name), "the file is named: {output}");
        if at >= SEGMENT_HEADER_BYTES {
            let begins = range.start.to_string();
            assert!(output.contains("LSN") && output.contains(&begins), "LSN and offset {begins} are named: {output}");
        }
        assert!(!output.contains("panicked"), "{output}");
        cases.one();
        fs::remove_dir_all(&data).expect("the damaged copy can be removed");
        copy_dir(&untouched, &data);
    }
    place.start();
}

#[test]
fn missing_and_foreign_files_stop_the_start() {
    let cases = Cases::of("wrong files");
    let Wreck { place, .. } = wreck(SEVERAL_SEGMENTS, Ended::Stopped);
    let data = place.data();
    let untouched = place.root().join("untouched");
    copy_dir(&data, &untouched);
    let Wreck { place: other, .. } = wreck(50, Ended::Stopped);
    let names: Vec<String> =
        segments(&data).iter().map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect();
    assert!(names.len() > 2, "a segment between two others: {names:?}");
    let (middle, newest) = (names[names.len() - 2].clone(), names[names.len() - 1].clone());
    let foreign = segments(&other.data()).pop().expect("a segment");
    type Damage<'a> = (&'a str, Box<dyn Fn(&Path) + 'a>);
    let damages: Vec<Damage> = vec![
        (
            "a segment between others is gone",
            Box::new(|dir: &Path| fs::remove_file(dir.join(&middle)).expect("removed")),
        ),
        (
            "two segments changed places",
            Box::new(|dir: &Path| {
                fs::rename(dir.join(&newest), dir.join("aside")).expect("renamed");
                fs::rename(dir.join(&middle), dir.join(&newest)).expect("renamed");
                fs::rename(dir.join("aside"), dir.join(&middle)).expect("renamed");
            }),
        ),
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
        assert!(!log_of(&data, "verify").status.success(), "{name}: verify accepts what does not start");
        let output = match place.spawn_with(&[], &[]).ready() {
            Err(output) => output,
            Ok(server) => panic!("{name}: it started and printed\n{}", server.output()),
        };
        assert!(!output.contains("panicked"), "{name}: {output}");
        assert!(output.contains(".wal") || output.contains("epoch") || output.contains("segment"), "{name}: {output}");
        fs::remove_dir_all(&data).expect("the damaged copy can be removed");
        copy_dir(&untouched, &data);
        cases.one();
    }
    place.start();
}

/// `papertape log verify` and a start agree about a directory, also about one whose log begins after its snapshots.
#[test]
fn verify_agrees_with_a_start() {
    let cases = Cases::of("verdicts");
    let Wreck { place, .. } = wreck(SEVERAL_SEGMENTS, Ended::Stopped);
    let data = place.data();
    for _ in 0..2 {
        run_well([OsString::from("snapshot"), "create".into(), data.clone().into()]);
    }
    // Segments that a running server removes once two snapshots cover them.
    let mut covered = segments(&data);
    let newest = covered.pop().expect("a segment");
    assert!(covered.len() > 1, "several segments: {covered:?}");
    covered.iter().for_each(|path| fs::remove_file(path).expect("removed"));
    let snapshots = with_extension(&data, "snapshot");
    let [older, newer] = &snapshots[..] else { panic!("two snapshots, not {snapshots:?}") };
    let untouched = place.root().join("untouched");
    copy_dir(&data, &untouched);
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).expect("it can be read");
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        fs::write(path, bytes).expect("it can be written");
    };
    let remove = |path: &Path| fs::remove_file(path).expect("removed");
    let write = |name: &str, text: &str| fs::write(data.join(name), text).expect("written");
    let named = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let place_of_end = || end_of(&fs::read(&newest).expect("a segment can be read")).next_multiple_of(8);
    // The change, whether a start accepts it, and the file that the refusal names.
    type Row<'a> = (&'a str, Box<dyn Fn() + 'a>, bool, Vec<String>);
    let rows: Vec<Row<'_>> = vec![
        ("nothing", Box::new(|| {}), true, vec![]),
        ("the newer snapshot is damaged", Box::new(|| flip(newer)), true, vec![]),
        ("the older snapshot is damaged", Box::new(|| flip(older)), true, vec![]),
        ("the older snapshot is missing", Box::new(|| remove(older)), true, vec![]),
        (
            "both snapshots are damaged",
            Box::new(|| [older, newer].into_iter().for_each(|path| flip(path))),
            false,
            vec![named(older), named(newer)],
        ),
        (
            "one snapshot is damaged, the other one missing",
            Box::new(|| {
                flip(newer);
                remove(older);
            }),
            false,
            vec![named(newer)],
        ),
        (
            "both snapshots are missing",
            Box::new(|| [older, newer].into_iter().for_each(|path| remove(path))),
            false,
            vec!["snapshot".into()],
        ),
        (
            "bytes after the end of the log",
            Box::new(|| {
                let file = OpenOptions::new().write(true).open(&newest).expect("it can be opened");
                file.write_at(&[7; 40], place_of_end() as u64).expect("written");
            }),
            true,
            vec![],
        ),
        (
            "a prepared segment that is not empty",
            Box::new(|| {
                let spare = data.join("00000007.spare");
                fs::write(&spare, vec![7; 1 << 20]).expect("written");
                fs::set_permissions(spare, Permissions::from_mode(0o600)).expect("a mode");
            }),
            true,
            vec![],
        ),
        ("the newest segment is missing", Box::new(|| remove(&newest)), false, vec![]),
        ("no epoch", Box::new(|| remove(&data.join("epoch"))), false, vec!["epoch".into()]),
        ("the lock is missing", Box::new(|| remove(&data.join("lock"))), true, vec![]),
        (
            "others may read the lock",
            Box::new(|| {
                fs::set_permissions(data.join("lock"), Permissions::from_mode(0o644)).expect("a mode");
            }),
            false,
            vec!["lock".into()],
        ),
        (
            "the server's secret is too short",
            Box::new(|| fs::write(data.join("server_secret"), "short").expect("written")),
            false,
            vec!["server_secret".into()],
        ),
        ("the server's secret is missing", Box::new(|| remove(&data.join("server_secret"))), true, vec![]),
        ("the list of venues is empty", Box::new(|| write("venue_kinds", "")), false, vec!["venue_kinds".into()]),
        ("no list of venues", Box::new(|| write("venue_kinds", "\u{1}x,,")), false, vec!["venue_kinds".into()]),
        ("the list of venues is missing", Box::new(|| remove(&data.join("venue_kinds"))), true, vec![]),
        ("the admin token is empty", Box::new(|| write("admin_token", "")), false, vec!["admin_token".into()]),
        ("the admin token is too short", Box::new(|| write("admin_token", "short")), false, vec!["admin_token".into()]),
        ("an admin token", Box::new(|| write("admin_token", &"x".repeat(32))), true, vec![]),
        (
            "a doubt of the clock is not a time",
            Box::new(|| write("clock_doubted", "x")),
            false,
            vec!["clock_doubted".into()],
        ),
        (
            "the price history is missing",
            Box::new(|| fs::remove_dir_all(data.join("history")).expect("removed")),
            true,
            vec![],
        ),
    ];
    for (name, damage, starts, names) in &rows {
        damage();
        let verified = log_of(&data, "verify");
        let verify_said = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert_eq!(verified.status.success(), *starts, "{name}: verify output {verify_said}");
        // With an admin listener and without one.
        for env in [&[][..], &[("PAPERTAPE_ADMIN_LISTEN", "127.0.0.1:0")]] {
            match place.spawn_with(&[], env).ready() {
                Ok(server) => assert!(starts, "{name}: it started and printed\n{}", server.output()),
                Err(output) => {
                    assert!(!starts && !output.contains("panicked"), "{name}: {output}");
                    for word in names {
                        assert!(
                            output.contains(word) && verify_said.contains(word),
                            "{name}: {word} in {output}\n{verify_said}"
                        );
                    }
                }
            }
            fs::remove_dir_all(&data).expect("the damaged copy can be removed");
            copy_dir(&untouched, &data);
            damage();
            cases.one();
        }
        fs::remove_dir_all(&data).expect("the damaged copy can be removed");
        copy_dir(&untouched, &data);
    }
}

/// The files of a directory with that extension, by name.
fn with_extension(dir: &Path, wanted: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a data directory").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == wanted)).collect();
    found.sort();
    found
}

#[test]
fn a_newer_format_is_refused_by_version() {
    let cases = Cases::of("newer formats");
    let Wreck { place, .. } = wreck(5, Ended::Killed);
    let data = place.data();
    let newest = segments(&data).pop().expect("a segment");
    let untouched = place.root().join("untouched");
    copy_dir(&data, &untouched);
    // (A snapshot's version counts only with a valid checksum: a damaged snapshot is skipped.)
    for path in [data.join("epoch"), newest] {
        // Every file begins with its magic; the version follows it.
        let mut bytes = fs::read(&path).expect("a file can be read");
        let at = version_offset(&bytes);
        bytes[at] += 1;
        OpenOptions::new().write(true).open(&path).expect("a file can be opened").write_all(&bytes).expect("written");
        let output = match place.spawn_with(&[], &[]).ready() {
            Err(output) => output,
            Ok(server) => panic!("{} of a newer version was accepted:\n{}", path.display(), server.output()),
        };
        assert!(!output.contains("panicked"), "{output}");
        assert!(output.contains("newer"), "{}: {output}", path.display());
        fs::remove_dir_all(&data).expect("the changed copy can be removed");
        copy_dir(&untouched, &data);
        cases.one();
    }
}

/// The first byte after the eight of the magic.
fn version_offset(bytes: &[u8]) -> usize {
    assert!(bytes.len() > 12, "a header");
    8
}

#[test]
fn what_others_could_change_is_refused() {
    let cases = Cases::of("wrong permissions");
    let Wreck { place, user, .. } = wreck(5, Ended::Stopped);
    let data = place.data();
    let newest = segments(&data).pop().expect("a segment");
    let mode = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    for (path, right, wrong) in [
        (&data, 0o700, 0o755),
        (&data, 0o700, 0o701),
        (&data, 0o700, 0o770),
        (&newest, 0o600, 0o644),
        (&newest, 0o600, 0o660),
        (&data.join("epoch"), 0o600, 0o606),
        (&data.join("lock"), 0o600, 0o640),
    ] {
        mode(path, wrong);
        let output = match place.spawn_with(&[], &[]).ready() {
            Err(output) => output,
            Ok(server) => panic!("{} of mode {wrong:o} was taken:\n{}", path.display(), server.output()),
        };
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(output.contains(&name) && output.contains(&format!("{wrong:o}")), "file and mode are named: {output}");
        mode(path, right);
        cases.one();
    }
    // A symbolic link instead of the directory or of a segment may change its target.
    let aside = place.root().join("aside");
    for path in [&data, &newest] {
        fs::rename(path, &aside).expect("renamed");
        std::os::unix::fs::symlink(&aside, path).expect("a link");
        let output = place.spawn_with(&[], &[]).ready().err().unwrap_or_else(|| panic!("{}: a link", path.display()));
        assert!(!output.contains("panicked"), "{output}");
        fs::remove_file(path).expect("the link is removed");
        fs::rename(&aside, path).expect("renamed");
        cases.one();
    }
    place.start().with_key(&user.key).get("/v1/account/balance").expect(200);
}
