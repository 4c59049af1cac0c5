use super::*;
use std::io::Write;

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

fn read(path: &Path) -> (Vec<String>, Arc<Skips>) {
    let skips = Arc::new(Skips::default());
    let mut tape = Tape::open(path, false, skips.clone()).expect("a tape");
    let mut lines = Vec::new();
    while let Some(line) = tape.next_line() {
        lines.push(line.text.to_string());
    }
    (lines, skips)
}

#[test]
fn files_are_merged_by_time_and_then_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let line = |r: u64, name: &str| format!("{{\"r\":{r},\"n\":\"{name}\"}}\n");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("c.ndjson", (line(1, "c1") + &line(5, "c5")).as_bytes());
    write("a.jsonl.gz", &gzip(&(line(1, "a1") + &line(4, "a4") + "\r\n" + &line(3, "a3"))));
    // Two gzip members in one file with a plain name.
    write("b.ndjson", &[gzip(&line(2, "b2")), gzip(&line(9, "b9"))].concat());
    // A partly packed file beside its plain form: read once.
    write("c.ndjson.gz", &gzip(&line(1, "again"))[..10]);
    write("notes.txt", b"not a tape");
    let (lines, skips) = read(folder.path());
    let names: Vec<&str> = lines.iter().map(|line| line.split('"').nth(5).unwrap()).collect();
    assert_eq!(names, ["a1", "c1", "b2", "a4", "a3", "c5", "b9"]);
    assert_eq!(skips.total(), 0);
}

#[test]
fn more_files_than_may_be_open_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let files = FILES_OPEN_MAX + 20;
    for file in 0..files {
        let line = |round: usize| format!("\n{{\"r\":{}}}\n", round * files + file);
        std::fs::write(folder.path().join(format!("{file:03}.ndjson")), line(0) + &line(1)).unwrap();
    }
    let (lines, _) = read(folder.path());
    let expected: Vec<String> = (0..2 * files).map(|r| format!("{{\"r\":{r}}}")).collect();
    assert_eq!(lines, expected);
}

#[test]
fn broken_lines_are_counted_and_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape");
    let mut bytes = b"{\"r\":1}\nnonsense\n{\"x\":1}\n{\"r\":-5}\n{\"r\":99999999999999999}\n\xff\xfe\n".to_vec();
    bytes.extend(std::iter::repeat_n(b'x', LINE_BYTES_MAX + 10));
    bytes.extend(b"\n{\"z\":0,\"r\":\"2\"}\n{\"r\":3}");
    std::fs::write(&path, gzip(std::str::from_utf8(&bytes[..8]).unwrap())).unwrap();
    assert_eq!(read(&path).0, ["{\"r\":1}"]);
    std::fs::write(&path, &bytes).unwrap();
    let (lines, skips) = read(&path);
    assert_eq!(lines, ["{\"r\":1}", "{\"z\":0,\"r\":\"2\"}", "{\"r\":3}"]);
    assert_eq!((skips.get(Skip::UnknownLine), skips.get(Skip::LineTooLong)), (5, 1));

    // A truncated packed file yields the lines that it has.
    let packed = gzip(&"{\"r\":1}\n".repeat(100_000));
    std::fs::write(&path, &packed[..packed.len() / 2]).unwrap();
    let (lines, skips) = read(&path);
    assert!(lines.len() > 1_000, "{}", lines.len());
    assert_eq!(skips.get(Skip::UnreadableFile), 1);
}

#[test]
fn a_tape_without_a_line_is_refused_unless_it_may_grow() {
    let folder = tempfile::tempdir().unwrap();
    let skips = || Arc::new(Skips::default());
    assert!(matches!(Tape::open(folder.path(), false, skips()), Err(TapeError::Empty { .. })));
    assert!(Tape::open(folder.path(), true, skips()).unwrap().first_line().is_none());
    std::fs::write(folder.path().join("a.ndjson"), "nothing here\n").unwrap();
    assert!(matches!(Tape::open(folder.path(), false, skips()), Err(TapeError::Empty { .. })));
}

#[test]
fn the_first_line_is_the_tapes_identity() {
    let folder = tempfile::tempdir().unwrap();
    let identity = || Tape::open(folder.path(), false, Arc::new(Skips::default())).unwrap().first_line().unwrap();
    std::fs::write(folder.path().join("b.ndjson"), "{\"r\":5,\"m\":1}\n").unwrap();
    let before = identity();
    assert_eq!(before, <[u8; 32]>::from(Sha256::digest("{\"r\":5,\"m\":1}")));
    std::fs::write(folder.path().join("c.ndjson"), "{\"r\":6}\n").unwrap();
    assert_eq!(identity(), before);
    std::fs::write(folder.path().join("a.ndjson"), "{\"r\":5}\n").unwrap();
    assert_ne!(identity(), before);
}

#[test]
fn lines_are_distinguished_by_their_fields() {
    use crate::testing::{KALSHI, POLYMARKET};
    let frame = |origin, connection: &str, body: &str| {
        Some(format!("{:?}", Record::Frame { origin, connection: connection.into(), body: body.into() }))
    };
    for (line, expected) in [
        (r#"{"recv_ms":1,"event":{"type":"t","msg":{"a":1}}}"#, frame(KALSHI, "", r#"{"type":"t","msg":{"a":1}}"#)),
        (
            r#"{"recv_ms":1,"event":{"type":"t","msg":{"a":1}},"x":{"y":{}}}"#,
            frame(KALSHI, "", r#"{"type":"t","msg":{"a":1}}"#),
        ),
        (r#"{"recv_ms":1,"event":{"msg":{"a":{"b":1}}}}"#, frame(KALSHI, "", r#"{"msg":{"a":{"b":1}}}"#)),
        (
            r#"{"r":1,"v":"polymarket","c":"a-1","m":{"a":[{},{"b":1}]}}"#,
            frame(POLYMARKET, "a-1", r#"{"a":[{},{"b":1}]}"#),
        ),
        (
            r#"{"r":1,"v":"kalshi","c":"a","m":{"a":{"b":1},"c":{"d":1}}}"#,
            frame(KALSHI, "a", r#"{"a":{"b":1},"c":{"d":1}}"#),
        ),
        // Text after the message is not part of it.
        (r#"{"r":1,"v":"kalshi","m":{"a":{"b":1}},"x":{"y":{}}}"#, frame(KALSHI, "", r#"{"a":{"b":1}}"#)),
        (r#"{"r":1,"v":"kalshi","m":{"a":1} ,"x":[{"y":{}}]}"#, frame(KALSHI, "", r#"{"a":1}"#)),
        (r#"{"r":1,"v":"kalshi","m":{"a":"},{"}}"#, frame(KALSHI, "", r#"{"a":"},{"}"#)),
        (r#"{"r":1,"v":"kalshi","c":"\u0041","m":{"a":1}}"#, frame(KALSHI, "A", r#"{"a":1}"#)),
        (r#"{"r":1,"v":"polymarket","c":"a","m":{"a":{"b":1}}"#, None),
        (r#"{"r":1,"v":"polymarket","m":[{"a":1}]}"#, frame(POLYMARKET, "", r#"[{"a":1}]"#)),
        (r#"{"m":{"a":1},"c":"x","v":"kalshi","r":1}"#, frame(KALSHI, "x", r#"{"a":1}"#)),
        (r#"{"r":1,"v":"kalshi","m":"{\"a\":1}"}"#, frame(KALSHI, "", r#"{"a":1}"#)),
        (r#"{"r":1,"v":"binance","m":{}}"#, None),
        (r#"{"r":1,"m":{}}"#, None),
        (r#"{"r":1,"v":"kalshi"}"#, None),
        (r#"{"r":1,"v":"kalshi","u":"/markets"}"#, None),
        (r#"{"r":1,"v":"kalshi","m":{}"#, None),
        ("{\"recv_ms\":1,\"event\":{\"msg\":{\"a\":1}}", None),
        ("", None),
    ] {
        assert_eq!(Record::parse(line).map(|record| format!("{record:?}")), expected, "{line}");
    }
    let answer = Record::parse(r#"{"r":1,"v":"polymarket","u":"/book","s":404,"b":null}"#);
    assert!(matches!(answer, Some(Record::Answer { status: 404, .. })), "{answer:?}");
    let gap = Record::parse(r#"{"r":1,"v":"polymarket","c":"7","gap":"reconnect"}"#);
    assert!(matches!(&gap, Some(Record::Gap { connection, reason, .. }) if connection == "7" && reason == "reconnect"));
}
