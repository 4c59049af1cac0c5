use super::*;
use crate::skips::{Skip, Skips};
use crate::tape::{Record, Tape};
use std::fs;
use std::io::Read;
use std::time::Instant;

/// 2026-08-11T06:00:00Z.
const SIX: Timestamp = Timestamp(1_786_428_000 * SECOND);

fn capture(at: Timestamp, name: &str, text: &str) -> Capture {
    let source = Source { origin: crate::testing::POLYMARKET, number: 0, name: name.into() };
    Capture { received: at, source: Arc::new(source), payload: Payload::Frame(text.to_owned().into()) }
}

fn frame(number: u64) -> String {
    format!("{{\"n\":{number}}}")
}

/// Connection and body of each line of a folder, as a replay reads them; gaps are `gap: reason`.
fn played(folder: &Path) -> (Vec<(String, String)>, Arc<Skips>) {
    let skips = Arc::new(Skips::default());
    let mut tape = Tape::open(folder, false, skips.clone()).expect("a tape");
    (lines(&mut tape, &skips), skips)
}

fn lines(tape: &mut Tape, skips: &Skips) -> Vec<(String, String)> {
    let (mut rows, mut last) = (Vec::new(), Timestamp::default());
    while let Some(line) = tape.next_line() {
        assert!(line.received >= last, "a recording never goes backwards: {}", line.text);
        last = line.received;
        match Record::parse(line.text) {
            Some(Record::Gap { connection, reason, .. }) => rows.push((connection.into(), format!("gap: {reason}"))),
            Some(Record::Frame { connection, body, .. }) => rows.push((connection.into(), body.into())),
            Some(Record::Answer { url, body, .. }) => rows.push((url.into(), body.into())),
            None => skips.count(Skip::UnknownLine, || line.text.into()),
        }
    }
    rows
}

fn expected_rows(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(connection, body)| ((*connection).into(), (*body).into())).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().expect("a name of ours")).collect();
    names.retain(|name| name != "recording.lock");
    names.sort();
    names
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn hours_are_closed_and_packed_and_a_follower_reads_each_line_once() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::fake(SIX.plus(3_500 * SECOND));
    let (recorder, sender) = Recorder::start(folder.path(), clock.clone()).expect("a recorder");
    let skips = Arc::new(Skips::default());
    let mut follower = Tape::open(folder.path(), true, skips.clone()).expect("a tape");
    let mut followed = Vec::new();
    let mut follow = |count: usize| {
        wait_for("the follower", || {
            follower.look_again();
            followed.extend(lines(&mut follower, &skips));
            followed.len() >= count
        });
    };
    for number in 0..400 {
        clock.set(SIX.plus((3_500 + number) * SECOND));
        sender.send(&capture(clock.now(), "a", &frame(number)));
        if number == 50 || number == 250 {
            follow(number as usize + 1);
        }
    }
    follow(400);
    // The next hour begins without a capture.
    clock.set(SIX.plus(2 * 3_600 * SECOND + 2 * HOUR_GRACE));
    let packed = ["tape-2026-08-11T06.ndjson.gz", "tape-2026-08-11T07.ndjson.gz", "tape-2026-08-11T08.ndjson"];
    wait_for("two packed hours", || names(folder.path()) == packed);
    sender.send(&capture(clock.now(), "a", &frame(400)));
    follow(401);
    drop((sender, recorder));
    follow(402);
    let mut expected: Vec<_> = (0..=400).map(|number| ("a".to_owned(), frame(number))).collect();
    expected.push(("a".into(), "gap: the recording ended".into()));
    assert_eq!(followed, expected);
    assert_eq!(played(folder.path()).0, expected);
    assert_eq!(skips.total(), 0);
    println!("hours: {} cases", expected.len());
}

#[test]
fn leftovers_of_an_earlier_run_get_gaps_and_are_packed() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let line = |r: u64, rest: &str| format!("{{\"r\":{},\"v\":\"polymarket\",{rest}}}\n", SIX.millis() + r);
    write("tape-2026-08-11T04.ndjson", "");
    write("tape-2026-08-11T05.ndjson", &line(1, r#""c":"old","m":{"n":0}"#));
    write("tape-2026-08-11T05.ndjson.gz.tmp", "half");
    let six = [
        line(2, r#""c":"b","m":{"n":1}"#),
        line(3, r#""c":"b","m":{"n":2}"#),
        line(4, r#""c":"lost","m":{"n":3}"#),
        line(5, r#""c":"lost","gap":"closed by the venue""#),
        line(6, r#""c":"a \"quoted\"","m":{"n":4}"#),
        line(7, r#""u":"/book?token_id=1","s":200,"b":{"n":5}"#),
        line(8, r#""c":"torn","m":{"n"#).trim_end_matches("}\n").to_owned(),
    ];
    write("tape-2026-08-11T06.ndjson", &six.concat());
    let clock = Clock::fake(SIX.plus(60 * SECOND));
    let (recorder, sender) = Recorder::start(folder.path(), clock.clone()).expect("a recorder");
    let figures = recorder.figures();
    // Known connections, an ended one, and a new one.
    sender.send(&capture(clock.now(), "b", &frame(6)));
    sender.send(&capture(clock.now(), "lost", &frame(7)));
    sender.send(&capture(clock.now(), "new", &frame(8)));
    wait_for("packed leftovers", || {
        names(folder.path())
            == ["tape-2026-08-11T04.ndjson.gz", "tape-2026-08-11T05.ndjson.gz", "tape-2026-08-11T06.ndjson"]
    });
    drop((sender, recorder));
    let interrupted = "gap: the recording was interrupted";
    let ended = "gap: the recording ended";
    let expected = expected_rows(&[
        ("old", "{\"n\":0}"),
        ("b", "{\"n\":1}"),
        ("b", "{\"n\":2}"),
        ("lost", "{\"n\":3}"),
        ("lost", "gap: closed by the venue"),
        ("a \"quoted\"", "{\"n\":4}"),
        ("/book?token_id=1", "{\"n\":5}"),
        ("", interrupted),
        ("a \"quoted\"", interrupted),
        ("b", interrupted),
        ("old", interrupted),
        ("torn", interrupted),
        ("b", "{\"n\":6}"),
        ("lost", "{\"n\":7}"),
        ("new", interrupted),
        ("new", "{\"n\":8}"),
        ("b", ended),
        ("lost", ended),
        ("new", ended),
    ]);
    let (rows, skips) = played(folder.path());
    assert_eq!(rows, expected);
    assert_eq!((skips.get(Skip::UnknownLine), skips.total()), (1, 1), "only the incomplete line");
    let read = |figure: &AtomicU64| figure.load(Relaxed);
    assert_eq!((read(&figures.lines), read(&figures.gaps), read(&figures.dropped)), (12, 9, 0));

    // A clock that was set back into a packed hour begins another file of that hour, sorted after the packed one.
    let (recorder, sender) = Recorder::start(folder.path(), Clock::fake(SIX.plus(3_000 * SECOND))).expect("a recorder");
    drop((sender, recorder));
    hours::pack(&folder.path().join("tape-2026-08-11T06.ndjson"), &Stop::new()).expect("it is packed");
    let (recorder, sender) = Recorder::start(folder.path(), Clock::fake(SIX.plus(3_100 * SECOND))).expect("a recorder");
    sender.send(&capture(SIX.plus(3_100 * SECOND), "b", &frame(9)));
    drop((sender, recorder));
    assert!(names(folder.path()).contains(&"tape-2026-08-11T06_02.ndjson".to_owned()), "{:?}", names(folder.path()));
    let rows = played(folder.path()).0;
    let more = expected_rows(&[("b", interrupted), ("b", "{\"n\":9}"), ("b", ended)]);
    assert_eq!(rows[rows.len() - 3..], more);
    println!("leftovers: {} cases", expected.len() + 3);
}

#[test]
fn gaps_follow_a_disk_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tape-2026-08-11T06.ndjson");
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    let clock = Clock::fake(SIX);
    let figures = Arc::<Figures>::default();
    let mut writer =
        Writer::open(Folder::take(folder.path()).expect("a folder"), clock.clone(), figures.clone()).expect("a writer");
    let keep = |writer: &mut Writer, name: &str, number: u64| {
        writer.take(&Queued { capture: capture(clock.now(), name, &frame(number)), losses: 0 });
        writer.turn();
    };
    keep(&mut writer, "a", 0);
    keep(&mut writer, "b", 1);
    // The next attempt fails too.
    clock.set(SIX.plus(RETRY_AFTER));
    keep(&mut writer, "a", 2);
    assert!(writer.open.is_none() && figures.lines.load(Relaxed) == 0);
    let lost = figures.dropped.load(Relaxed);
    assert!(lost >= 3, "{lost}");
    fs::remove_file(&file).unwrap();
    keep(&mut writer, "a", 3);
    assert_eq!(figures.dropped.load(Relaxed), lost + 1, "the retry is not due");
    clock.set(SIX.plus(2 * RETRY_AFTER));
    keep(&mut writer, "a", 4);
    keep(&mut writer, "c", 5);
    writer.end();
    let rows = played(folder.path()).0;
    let expected = expected_rows(&[
        ("a", "gap: the recording could not be written"),
        ("a", "{\"n\":4}"),
        ("c", "gap: the recording was interrupted"),
        ("c", "{\"n\":5}"),
        ("a", "gap: the recording ended"),
        ("c", "gap: the recording ended"),
    ]);
    assert_eq!(rows, expected);
    println!("a failing disk: {} cases", expected.len());
}

#[test]
fn captures_without_room_are_counted_and_leave_gaps_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let figures = Arc::<Figures>::default();
    let mut writer = Writer::open(Folder::take(folder.path()).unwrap(), Clock::fake(SIX), figures.clone()).unwrap();
    let (captures, receiver) = sync_channel(3);
    let sender = RecordSender { captures, shared: Arc::default(), figures: figures.clone() };
    let empty = |writer: &mut Writer| {
        while let Ok(queued) = receiver.try_recv() {
            sender.shared.waiting_bytes.fetch_sub(queued.capture.text_bytes() as u64, Relaxed);
            writer.take(&queued);
        }
    };
    for number in 0..5 {
        sender.send(&capture(SIX, ["a", "b"][number as usize % 2], &frame(number)));
    }
    sender.send(&Capture { payload: Payload::Alive, ..capture(SIX, "a", "") });
    assert_eq!(figures.dropped.load(Relaxed), 2, "a sign of life is not recorded and does not count as dropped");
    empty(&mut writer);
    sender.send(&capture(SIX, "b", &frame(5)));
    empty(&mut writer);
    // The bound of bytes drops captures too.
    sender.shared.waiting_bytes.store(WAITING_BYTES_MAX, Relaxed);
    sender.send(&capture(SIX, "a", &frame(6)));
    sender.shared.waiting_bytes.store(0, Relaxed);
    sender.send(&capture(SIX, "a", &frame(7)));
    empty(&mut writer);
    // Readers reject a line of this length.
    writer.take(&Queued { capture: capture(SIX, "b", &"\n".repeat(LINE_BYTES_MAX / 2)), losses: 2 });
    writer.end();
    let slow = "gap: the disk could not follow";
    let expected = expected_rows(&[
        ("a", "{\"n\":0}"),
        ("b", "{\"n\":1}"),
        ("a", "{\"n\":2}"),
        ("a", slow),
        ("b", slow),
        ("b", "{\"n\":5}"),
        ("a", slow),
        ("b", slow),
        ("a", "{\"n\":7}"),
        ("b", "gap: a message was too long to be recorded"),
        ("a", "gap: the recording ended"),
        ("b", "gap: the recording ended"),
    ]);
    assert_eq!(played(folder.path()).0, expected);
    assert_eq!((figures.dropped.load(Relaxed), figures.gaps.load(Relaxed)), (4, 7));
    println!("captures without room: {} cases", expected.len());
}

#[test]
fn a_folder_has_one_recorder_and_must_be_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::fake(SIX);
    let path = folder.path().join("deep/tape");
    let first = Recorder::start(&path, clock.clone()).expect("a recorder makes its folder");
    let again = Recorder::start(&path, clock.clone()).err().expect("the folder is locked").to_string();
    assert!(again.contains("another recorder") && again.contains("tape"), "{again}");
    drop(first);
    assert!(Recorder::start(&path, clock.clone()).is_ok(), "the folder is free again");
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(Recorder::start(&folder.path().join("file/tape"), clock).is_err());
    println!("folders: 4 cases");
}

#[test]
fn a_line_is_in_the_file_while_the_recording_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, sender) = Recorder::start(folder.path(), Clock::fake(SIX)).expect("a recorder");
    sender.send(&capture(SIX, "a", &frame(1)));
    wait_for("the line", || {
        let mut text = String::new();
        let read = File::open(folder.path().join("tape-2026-08-11T06.ndjson")).unwrap().read_to_string(&mut text);
        read.is_ok() && text.ends_with("\"m\":{\"n\":1}}\n")
    });
    let figures = recorder.figures();
    assert_eq!(figures.bytes.load(Relaxed), 57);
    drop((recorder, sender));
    println!("lines of a running recording: 1 case");
}
