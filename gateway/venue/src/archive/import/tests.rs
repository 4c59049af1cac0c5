use super::foreign::{Row, id, write};
use super::*;
use crate::archive::replay;
use crate::archive::testing::options;
use crate::replay::Speed;
use crate::suite::Witness;
use engine::backtest::Hour;
use engine::time::{HOUR, SECOND};
use std::fs;

const NAME: &str = "polymarket_orderbook_2026-08-11T00.parquet";
/// 2026-08-11T00:00:00Z.
const BEGIN: i64 = 1_786_406_400_000;

fn book(received: i64, market: u8, token: &'static str, levels: [&'static str; 2]) -> Row {
    Row { received: BEGIN + received, market, token, levels: Some(levels), price: 0, size: 0 }
}

fn change(received: i64, market: u8, token: &'static str, price: i32, size: i64) -> Row {
    Row { received: BEGIN + received, market, token, levels: None, price, size }
}

/// Two markets; the second one has one token.
fn rows() -> Vec<Row> {
    vec![
        book(0, 1, "11", [r#"[["0.3","5"],["0.4","6"]]"#, r#"[["0.5","7"]]"#]),
        change(1_000, 1, "11", 4_100, 3),
        book(0, 1, "12", [r#"[["0.5","7"]]"#, r#"[["0.6","6"]]"#]),
        change(500, 2, "21", 9_000, 1),
        book(2_000, 2, "21", ["[]", r#"[["0.015","1"]]"#]),
        change(3_000, 2, "21", 100, 2),
    ]
}

fn import(root: &Path) -> Import {
    Import { options: options(root), is_linked: false, catalogue: None, settlements: None }
}

fn run(import: &Import, path: &Path) -> Result<Vec<Sealed>, String> {
    let (hours, refused) = run_all(import, path);
    if refused.is_empty() { Ok(hours) } else { Err(refused.join("; ")) }
}

/// The hours that were imported, and what was refused.
fn run_all(import: &Import, path: &Path) -> (Vec<Sealed>, Vec<String>) {
    let mut hours = Vec::new();
    let done = import.run(path, &Names::default(), &Stop::new(), &mut |hour| hours.push(hour));
    (hours, done.refused.iter().map(ToString::to_string).collect())
}

fn sidecar_of(hour: &Sealed) -> archive::sidecar::Sidecar {
    archive::sidecar::Sidecar::read(&archive::store::sidecar_path(&hour.path)).expect("a sidecar")
}

/// The names of an hour's files in an archive.
fn names(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.map(|entry| entry.expect("an entry")) {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.file_name().into_string().expect("a name")),
            }
        }
    }
    found.retain(|name| name.contains("2026-08-11T00"));
    found.sort();
    found
}

#[test]
fn files_of_others() {
    let unsorted = || rows().into_iter().rev().collect::<Vec<_>>();
    let with = |row: Row| rows().into_iter().chain([row]).collect::<Vec<_>>();
    let mut many: Vec<Row> = (0..300).map(|number| change(number, 1, "11", 4_000, 1)).collect();
    many.push(change(301, 1, "11", 10_000, 1));
    let mut bad = many.clone();
    (0..10).for_each(|number| bad.push(change(302 + number, 1, "11", 0, 1)));
    let mut between = many.clone();
    between.insert(150, change(150, 1, "eleven", 4_000, 1));
    between.pop();
    let mut late = rows();
    late.swap(0, 5);
    late.insert(2, change(3_610_000, 2, "21", 100, 1));
    // rows, a further column, what the hour has (rows, unreadable rows, resorted), or a part of the refusal
    type Case = (&'static str, Vec<Row>, Option<&'static str>, Result<(u64, u64, bool), &'static str>);
    let cases: Vec<Case> = vec![
        ("sorted", rows(), None, Ok((6, 0, false))),
        ("not sorted", unsorted(), None, Ok((6, 0, true))),
        ("a further column", rows(), Some("sequence_number"), Ok((6, 0, false))),
        ("three seconds late", with(change(3_603_000, 2, "21", 100, 1)), None, Ok((7, 0, false))),
        ("ten seconds late", with(change(3_610_000, 2, "21", 100, 1)), None, Err("outside of the hour")),
        // The number is that of the file as it was given.
        ("ten seconds late, not sorted", late, None, Err("row 2 was received 3610000 ms")),
        ("an unreadable row", many, None, Ok((301, 1, false))),
        ("one without a token among those of a token", between, None, Ok((300, 1, true))),
        ("too many of them", bad, None, Err("unreadable")),
        ("no digits", with(change(5, 3, "twelve", 100, 1)), None, Err("unreadable")),
        ("no rows", Vec::new(), None, Err("the file has no rows")),
    ];
    for (name, rows, more, expected) in &cases {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, root) = (folder.path().join(NAME), folder.path().join("archive"));
        write(&file, rows, *more);
        match (run(&import(&root), &file), expected) {
            (Ok(hours), Ok(expected)) => {
                let [hour] = hours.as_slice() else { panic!("{name}: {hours:?}") };
                assert_eq!((hour.rows, hour.unreadable, hour.is_resorted), *expected, "{name}");
                let is_same = fs::read(&hour.path).expect("an hour") == fs::read(&file).expect("a file");
                assert_eq!(is_same, !hour.is_resorted, "{name}");
                assert_eq!(names(&root).len(), 3, "{name}: {:?}", names(&root));
            }
            (Err(error), Err(part)) => {
                assert!(error.contains(part), "{name}: {error}");
                assert_eq!(names(&root), Vec::<String>::new(), "{name}");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
    println!("files of others: {} cases", cases.len());
}

/// Why a file cannot be replayed.
fn replay_error(path: &Path) -> Option<String> {
    let cache = path.with_extension("cache");
    let settings = replay::Settings { cache, memory_bytes: 64 << 20, ..Default::default() };
    replay::open(path, Speed::Max, &settings, &Names::default()).err().map(|error| error.to_string())
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = folder.path().join(NAME);
    write(&good, &rows(), None);
    let bytes = fs::read(&good).expect("a file");
    let source = folder.path().join("source");
    fs::create_dir(&source).expect("a folder");
    let target = source.join(NAME);
    let mut torn = bytes.clone();
    torn[60] ^= 0x55;
    type Prepare<'a> = Box<dyn Fn() + 'a>;
    let put = |name: &'static str, bytes: Vec<u8>| -> Prepare<'_> {
        let path = source.join(name);
        Box::new(move || fs::write(&path, &bytes).expect("a file"))
    };
    let cases: Vec<(&str, Prepare<'_>, &str)> = vec![
        ("truncated", put(NAME, bytes[..bytes.len() - 9].to_vec()), NAME),
        ("half of it", put(NAME, bytes[..bytes.len() / 2].to_vec()), NAME),
        ("a damaged page", put(NAME, torn), NAME),
        ("empty", put(NAME, Vec::new()), NAME),
        ("no hour in its name", put("prices.parquet", bytes.clone()), "YYYY-MM-DDTHH"),
        ("a link", Box::new(|| std::os::unix::fs::symlink(&good, &target).expect("a link")), "no recorded line"),
        (
            "lines beside it",
            Box::new(|| {
                fs::write(&target, &bytes).expect("a file");
                fs::write(source.join("tape.ndjson"), "{}").expect("a file");
            }),
            "lines and Parquet",
        ),
        (
            "one hour twice",
            Box::new(|| {
                fs::create_dir(source.join("more")).expect("a folder");
                fs::write(&target, &bytes).expect("a file");
                fs::write(source.join("more").join(NAME), &bytes).expect("a file");
            }),
            "two files of one hour",
        ),
    ];
    for (name, prepare, part) in &cases {
        fs::remove_dir_all(&source).expect("a folder");
        fs::create_dir(&source).expect("a folder");
        prepare();
        let root = folder.path().join("archive");
        let error = run(&import(&root), &source).expect_err(name);
        assert!(error.contains(part), "{name}: {error}");
        assert_eq!(names(&root), Vec::<String>::new(), "{name}");
        // A file that is given alone is named once.
        for file in parquet_files(&source).expect("files").iter().filter(|file| file.parent() == Some(source.as_path()))
        {
            let errors = [run(&import(&folder.path().join("alone")), file).err(), replay_error(file)];
            for error in errors.into_iter().flatten() {
                assert_eq!(error.matches(&*file.to_string_lossy()).count(), 1, "{name}: {error}");
            }
        }
    }
    // A link to a file that is named itself.
    let link = folder.path().join("link_2026-08-11T00.parquet");
    std::os::unix::fs::symlink(&good, &link).expect("a link");
    assert!(run(&import(&folder.path().join("archive")), &link).is_err());
    println!("damaged files: {} cases", cases.len() + 1);
}

#[test]
fn an_hour_that_is_there_is_kept_or_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, root) = (folder.path().join(NAME), folder.path().join("archive"));
    write(&file, &rows(), None);
    let first = run(&import(&root), &file).expect("an hour").remove(0);
    let again = run(&import(&root), &file).expect("an hour").remove(0);
    assert!(first.is_new && !again.is_new && again.rows == 6, "{again:?}");
    write(&file, &rows()[..3], None);
    let error = run(&import(&root), &file).expect_err("another content");
    assert!(error.contains("--replace"), "{error}");
    let mut replacing = Import { is_linked: true, ..import(&root) };
    replacing.options.place.replace = true;
    let replaced = run(&replacing, &file).expect("an hour").remove(0);
    assert!(replaced.is_new && replaced.rows == 3);
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(fs::metadata(&replaced.path).expect("a file").ino(), fs::metadata(&file).expect("a file").ino());
    // Only one market: rewritten, and another content.
    let mut one = import(&root.join("one"));
    one.options.markets = Some([Condition([2; 32])].into());
    write(&file, &rows(), None);
    let hour = run(&one, &file).expect("an hour").remove(0);
    assert_eq!((hour.rows, hour.is_resorted), (3, false));
    assert!(!run(&one, &file).expect("an hour")[0].is_new);
    one.options.markets = None;
    assert!(run(&one, &file).is_err(), "all markets are another content");
    one.options.from = Some(Timestamp::from_millis(BEGIN as u64).hour() + 1);
    assert_eq!(run(&one, &file).expect("no hour").len(), 0);
}

/// A damaged hour of the same content is made again, also without `replace`.
#[test]
fn a_damaged_hour_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, root) = (folder.path().join(NAME), folder.path().join("archive"));
    let mut unsorted = rows();
    unsorted.reverse();
    let mut cases = 0;
    for rows in [rows(), unsorted] {
        write(&file, &rows, None);
        let _ = fs::remove_dir_all(&root);
        let path = run(&import(&root), &file).expect("an hour").remove(0).path;
        let files = [path.clone(), archive::store::index_path(&path), archive::store::sidecar_path(&path)];
        let good = files.each_ref().map(|path| fs::read(path).expect("a file"));
        for (damaged, bytes) in files.iter().zip(&good) {
            for replace in [false, true] {
                let mut bytes = bytes.clone();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x55;
                fs::write(damaged, &bytes).expect("written");
                let mut again = import(&root);
                again.options.place.replace = replace;
                // A server or another command may have made the index again already.
                run(&again, &file).expect("an hour");
                let now = files.each_ref().map(|path| fs::read(path).expect("a file"));
                assert!(now == good, "{}, {replace}", damaged.display());
                let store = &again.options.place.store;
                assert_eq!(store.verify(Hour(0)..Hour(u32::MAX), None).expect("verified"), []);
                // Whole, it is left alone.
                assert!(!run(&again, &file).expect("an hour")[0].is_new, "{}, {replace}", damaged.display());
                cases += 1;
            }
        }
    }
    println!("damaged hours: {cases} cases");
}

/// Minutes are empty if the whole file has no row in them, also where a selection keeps few of its rows.
#[test]
fn a_selection_does_not_empty_an_hour() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(NAME);
    // The minutes that have rows of market 1; those of market 2; empty minutes; the verdict.
    type Case = (std::ops::Range<i64>, std::ops::Range<i64>, u64, &'static str);
    let cases: [Case; 4] = [
        (0..60, 10..11, 0, "valid"),
        (0..55, 10..11, 5, "degraded"),
        (0..30, 25..40, 20, "quarantined"),
        (0..0, 0..60, 0, "valid"),
    ];
    for (ones, twos, empty, verdict) in cases.clone() {
        let book = |minute: i64, market, token| book(minute * 60_000, market, token, [r#"[["0.3","5"]]"#, "[]"]);
        let rows: Vec<Row> =
            ones.map(|minute| book(minute, 1, "11")).chain(twos.map(|minute| book(minute, 2, "21"))).collect();
        write(&file, &rows, None);
        for wanted in [None, Some(2)] {
            let root = folder.path().join("archive");
            let _ = fs::remove_dir_all(&root);
            let mut import = import(&root);
            import.options.markets = wanted.map(|market| [Condition([market; 32])].into());
            let hour = run(&import, &file).expect("an hour").remove(0);
            let found = (sidecar_of(&hour).minutes_empty, hour.verdict.as_str());
            assert_eq!(found, (empty, verdict), "{} rows, {wanted:?}", rows.len());
        }
    }
    println!("empty minutes: {} cases", 2 * cases.len());
}

/// An hour of which a selection keeps nothing is refused, unless the archive knows the market from the hour before.
#[test]
fn an_hour_without_the_wanted_markets_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, root) = (folder.path().join("files"), folder.path().join("archive"));
    fs::create_dir(&files).expect("a folder");
    // Which hours have rows of market 2; market 1 has some in all of them.
    let has_two = [false, true, false, false, true];
    for (hour, has_two) in (0..).zip(has_two) {
        let begin = i64::from(hour) * 3_600_000;
        let rows = (0..60).map(|minute| book(begin + minute * 60_000, 1, "11", [r#"[["0.3","5"]]"#, "[]"]));
        let twos = has_two.then(|| book(begin, 2, "21", [r#"[["0.3","5"]]"#, "[]"]));
        let rows: Vec<Row> = rows.chain(twos).collect();
        write(&files.join(format!("polymarket_orderbook_2026-08-11T0{hour}.parquet")), &rows, None);
    }
    // The market; the hours that are kept.
    for (market, kept) in [(2, vec![1, 2, 3, 4]), (1, vec![0, 1, 2, 3, 4]), (9, vec![])] {
        let _ = fs::remove_dir_all(&root);
        let mut import = import(&root);
        import.options.markets = Some([Condition([market; 32])].into());
        let (hours, refused) = run_all(&import, &files);
        let first = Timestamp::from_millis(BEGIN as u64).hour();
        assert_eq!(hours.iter().map(|hour| hour.hour - first).collect::<Vec<_>>(), kept, "{refused:?}");
        assert!(hours.iter().all(|hour| hour.verdict == "valid"), "{hours:?}");
        assert_eq!(refused.len(), has_two.len() - kept.len(), "{refused:?}");
        for refusal in &refused {
            assert!(refusal.contains(".parquet: ") && refusal.contains("--markets"), "{refusal}");
        }
        assert_eq!(parquet_files(&root).expect("files").len(), kept.len());
    }
    println!("hours without the wanted markets: {} files, 3 markets", has_two.len());
}

/// Lines of hours with one market each, at this price.
fn record(path: &Path, price: &str, markets: &[u64]) {
    let mut text = String::new();
    for (hour, market) in (0..).zip(markets) {
        let begin = 1_788_001_200_000_u64 + hour * 3_600_000;
        text += &format!(
            "{{\"r\":{begin},\"v\":\"polymarket\",\"u\":\"/markets\",\"s\":200,\"b\":[{{\"id\":\"{market}\",\
             \"conditionId\":\"0x{market:064x}\",\"slug\":\"s\",\"clobTokenIds\":\"[\\\"{market}1\\\",\\\"{market}2\\\"]\",\
             \"active\":true,\"closed\":false,\"acceptingOrders\":true,\"endDate\":\"2030-11-03T00:00:00Z\"}}]}}\n"
        );
        for minute in 0..60 {
            let at = begin + minute * 60_000 + 1;
            text += &format!(
                "{{\"r\":{at},\"v\":\"polymarket\",\"c\":\"ws-1\",\"m\":{{\"event_type\":\"book\",\"asset_id\":\"{market}1\",\
                 \"timestamp\":\"{at}\",\"bids\":[{{\"price\":\"{price}\",\"size\":\"5\"}}],\"asks\":[]}}}}\n"
            );
        }
    }
    fs::write(path, text).expect("a file");
}

/// Hours that are left out are counted also by an import that refuses others, or that keeps none.
#[test]
fn hours_that_are_left_out_are_counted_beside_refused_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tape, root) = (folder.path().join("tape.ndjson"), folder.path().join("archive"));
    let mut import = import(&root);
    let mut condition = [0; 32];
    condition[31] = 7;
    import.options.markets = Some([Condition(condition)].into());
    // (price, the market of each hour; hours handed out, left out, refused)
    let rows: [(&str, &[u64], usize, u64, usize); 4] = [
        ("0.3", &[8, 8, 7], 1, 2, 0),
        ("0.3", &[8, 8, 7], 1, 2, 0),
        ("0.4", &[8, 8, 7], 0, 2, 1),
        ("0.4", &[8, 8], 0, 2, 1),
    ];
    for (row, (price, markets, kept, left_out, refused)) in rows.iter().enumerate() {
        record(&tape, price, markets);
        let mut hours = 0;
        let done = import.run(&tape, &Names::default(), &Stop::new(), &mut |_| hours += 1);
        assert_eq!((hours, done.left_out, done.refused.len()), (*kept, *left_out, *refused), "row {row}: {done:?}");
    }
    println!("imports with hours left out: {} cases", rows.len());
}

/// A file or an hour of a folder that is refused does not keep the others out.
#[test]
fn the_rest_of_a_folder_is_imported() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, root) = (folder.path().join("files"), folder.path().join("archive"));
    let name = |hour: u32| files.join(format!("polymarket_orderbook_2026-08-11T0{hour}.parquet"));
    let of_hour = |hour: u32, size: i64| {
        write(&name(hour), &[change(i64::from(hour) * 3_600_000, 1, "11", 4_000, size)], None);
    };
    type Prepare<'a> = (&'a str, &'a dyn Fn(), &'a str);
    let cases: [Prepare<'_>; 5] = [
        ("another content", &|| of_hour(1, 2), "--replace"),
        (
            "half a file",
            &|| {
                let bytes = fs::read(name(1)).expect("a file");
                fs::write(name(1), &bytes[..bytes.len() / 2]).expect("written");
            },
            "T01.parquet",
        ),
        (
            "rows of another hour",
            &|| {
                fs::copy(name(3), name(1)).expect("a copy");
            },
            "outside of the hour",
        ),
        (
            "no hour in its name",
            &|| fs::rename(name(1), files.join("prices.parquet")).expect("renamed"),
            "YYYY-MM-DDTHH",
        ),
        (
            "two files",
            &|| {
                fs::create_dir(files.join("more")).expect("a folder");
                fs::copy(name(1), files.join("more/polymarket_orderbook_2026-08-11T01.parquet")).expect("a copy");
            },
            "two files of one hour",
        ),
    ];
    for (what, prepare, part) in &cases {
        for path in [&files, &root] {
            let _ = fs::remove_dir_all(path);
        }
        fs::create_dir(&files).expect("a folder");
        of_hour(1, 1);
        if *what == "another content" {
            run(&import(&root), &files).expect("an hour");
        }
        (0..4).for_each(|hour| of_hour(hour, 1));
        prepare();
        let (hours, refused) = run_all(&import(&root), &files);
        let first = Timestamp::from_millis(BEGIN as u64).hour();
        assert_eq!(hours.iter().map(|hour| hour.hour - first).collect::<Vec<_>>(), [0, 2, 3], "{what}: {refused:?}");
        assert!(refused.len() == 1 && refused[0].contains(part), "{what}: {refused:?}");
    }
    // Several hours of lines.
    let tape = folder.path().join("tape.ndjson");
    let line = |hour: u64, text: &str| {
        format!(r#"{{"r":{},"v":"polymarket","c":"a","gap":"{text}"}}"#, BEGIN as u64 + hour * 3_600_000) + "\n"
    };
    let text = |texts: [&str; 4]| (0..).zip(texts).map(|(hour, text)| line(hour, text)).collect::<String>();
    fs::write(&tape, text(["a", "b", "c", "d"])).expect("a tape");
    let root = folder.path().join("of-lines");
    run(&import(&root), &tape).expect("hours");
    fs::write(&tape, text(["a", "B", "C", "d"])).expect("a tape");
    let (hours, refused) = run_all(&import(&root), &tape);
    assert!(hours.len() == 2 && refused.len() == 2, "{hours:?} {refused:?}");
    assert!(refused.iter().all(|refusal| refusal.contains("--replace")), "{refused:?}");
    println!("refused files of folders: {} cases", cases.len() + 1);
}

/// An hour that is to be replaced stays until the new one is whole.
#[test]
fn a_refused_replacement_leaves_the_hour() {
    let with = |row: Row| rows().into_iter().chain([row]).collect::<Vec<_>>();
    let mut bad: Vec<Row> = (0..300).map(|number| change(number, 1, "11", 4_000, 1)).collect();
    (0..10).for_each(|number| bad.push(change(302 + number, 1, "11", 0, 1)));
    // rows of the new file, whether its end is missing, a part of the refusal
    type Case = (&'static str, Vec<Row>, bool, Option<&'static str>);
    let cases: Vec<Case> = vec![
        ("unreadable rows", bad, false, Some("unreadable")),
        ("rows of another hour", with(change(9_000_000, 2, "21", 100, 1)), false, Some("outside of the hour")),
        ("half a file", with(change(9, 3, "31", 100, 1)), true, Some(NAME)),
        ("a good one", with(change(9, 3, "31", 100, 1)), false, None),
    ];
    for (name, new, is_half, reason) in &cases {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, root) = (folder.path().join(NAME), folder.path().join("archive"));
        write(&file, &rows(), None);
        let path = run(&import(&root), &file).expect("an hour").remove(0).path;
        let contents = || -> Vec<(String, Vec<u8>)> {
            let of = path.parent().expect("a folder");
            names(&root).into_iter().map(|name| (name.clone(), fs::read(of.join(name)).expect("a file"))).collect()
        };
        let before = contents();
        write(&file, new, None);
        if *is_half {
            let bytes = fs::read(&file).expect("a file");
            fs::write(&file, &bytes[..bytes.len() - 9]).expect("a file");
        }
        let mut replacing = import(&root);
        replacing.options.place.replace = true;
        match (run(&replacing, &file), reason) {
            (Err(error), Some(part)) => {
                assert!(error.contains(part), "{name}: {error}");
                assert_eq!(contents(), before, "{name}");
            }
            (Ok(hours), None) => assert!(hours[0].is_new && contents() != before, "{name}"),
            (found, _) => panic!("{name}: {found:?}"),
        }
        let store = &replacing.options.place.store;
        assert_eq!(store.verify(Hour(0)..Hour(u32::MAX), None).expect("verified"), [], "{name}");
    }
    println!("replaced hours: {} cases", cases.len());
}

/// A market that only rows name, one that was described, and their results.
#[test]
fn imported_hours_replay_with_what_is_known_of_their_markets() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, root) = (folder.path().join(NAME), folder.path().join("archive"));
    write(&file, &rows(), None);
    let catalogue = folder.path().join("markets.ndjson");
    let market = format!(
        r#"{{"id":"7","conditionId":"{}","slug":"s","question":"Q?","outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"12\",\"11\"]","closed":true,"outcomePrices":"[\"1\",\"0\"]","umaResolutionStatus":"resolved","endDate":"2026-12-01T00:00:00Z"}}"#,
        id(1)
    );
    // Objects of other venues are passed over.
    fs::write(&catalogue, market + "\n{\"event_ticker\":\"KX-1\"}\n\n").expect("a file");
    let settlements = folder.path().join("results.csv");
    let at = |second: i64| (BEGIN / 1_000 + second).to_string();
    fs::write(
        &settlements,
        format!("condition_id,winner,at\n{},1,{}\n{},split,{}\n{},0,1\n", id(1), at(2), id(2), at(5_000), id(9)),
    )
    .expect("a file");
    check_objects(&catalogue).expect("objects");
    let settlements = Some(settled::read(&settlements).expect("results"));
    let with = Import { catalogue: Some(catalogue), settlements, ..import(&root) };
    run(&with, &file).expect("an hour");
    drop(with);
    let settings = replay::Settings { cache: root.join("cache"), memory_bytes: 64 << 20, ..Default::default() };
    let mut replay = replay::open(&root, Speed::Max, &settings, &Names::default()).expect("an archive");
    let mut witness = Witness::default();
    let (wall, begin) = (Timestamp::from_secs(1_900_000_000), Timestamp::from_millis(BEGIN as u64));
    witness.run(&mut replay, wall, begin.plus(SECOND), HOUR);
    let (described, alone) = (&witness.listings[&id(1)], &witness.listings[&id(2)]);
    assert_eq!((described.question.as_str(), described.tokens[0].as_str()), ("Q?", "12"));
    assert_eq!((alone.question.as_str(), alone.tokens[0].as_str(), alone.tick.0), (id(2).as_str(), "21", 10));
    assert!(witness.resolutions.is_empty(), "{:?}", witness.resolutions);
    let price = |price: u16| Some(engine::amount::Price(price));
    assert_eq!(witness.touch("11"), (price(4_100), price(5_000)));
    // The change before the first book counts for nothing.
    assert!(!witness.known_books().contains_key("21"));
    witness.run(&mut replay, wall, begin.plus(3 * SECOND), HOUR);
    assert_eq!(witness.touch("21"), (price(100), price(150)));
    assert_eq!(witness.resolutions.keys().collect::<Vec<_>>(), [&id(1)]);
    witness.run(&mut replay, wall, begin.plus(2 * HOUR), HOUR);
    assert_eq!(witness.resolutions.keys().collect::<Vec<_>>(), [&id(1), &id(2)]);

    // One market alone.
    let ids = folder.path().join("ids.txt");
    fs::write(&ids, id(2)).expect("a file");
    let settings = replay::Settings { markets: ids, ..settings };
    let mut replay = replay::open(&root, Speed::Max, &settings, &Names::default()).expect("an archive");
    let mut witness = Witness::default();
    witness.run(&mut replay, wall, begin.plus(HOUR), HOUR);
    assert_eq!(witness.known_books().keys().collect::<Vec<_>>(), [&"21"]);

    let wrong = folder.path().join("wrong.ndjson");
    let cases = [("{\"slug\":1}", "line 1: no conditionId"), ("\n[1]", "line 2"), ("{", "line 1")];
    for (text, part) in cases {
        fs::write(&wrong, text).expect("a file");
        let error = run(&Import { catalogue: Some(wrong.clone()), ..import(&root) }, &file).expect_err("a wrong file");
        assert!(error.contains(part), "{error}");
        let error = check_objects(&wrong).expect_err("a wrong file");
        assert!(error.contains(part), "{error}");
    }
    println!("catalogues: {} wrong files", cases.len());
}

/// Links, devices, pipes and long files are refused before anything of them is read.
#[test]
fn only_plain_files_are_read() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let good = at(NAME);
    write(&good, &rows(), None);
    let pipe = |path: &Path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    };
    pipe(&at("pipe_2026-08-11T00.parquet"));
    symlink(&good, at("link_2026-08-11T00.parquet")).expect("a link");
    symlink("/dev/zero", at("zero_2026-08-11T00.parquet")).expect("a link");
    fs::create_dir(at("a_folder_2026-08-11T00.parquet")).expect("a folder");
    symlink(folder.path(), at("link")).expect("a link");
    let long = fs::File::create(at("long_2026-08-11T00.parquet")).expect("a file");
    std::os::unix::fs::FileExt::write_all_at(&long, b"PAR1", 0).expect("written");
    long.set_len(archive::read::FILE_BYTES_MAX + 1).expect("a length");
    let line = r#"{"r":1786406400000,"v":"polymarket","c":"a","gap":"g"}"#;
    fs::write(at("lines"), line).expect("a file");
    for part in ["of_link", "of_events/events"] {
        fs::create_dir_all(at(part)).expect("a folder");
        symlink(at("lines"), at(part).join("tape.ndjson")).expect("a link");
    }
    fs::create_dir_all(at("of_pipe")).expect("a folder");
    pipe(&at("of_pipe/tape.ndjson"));
    let cases = [
        ("pipe_2026-08-11T00.parquet", "is neither a file nor a folder"),
        ("link_2026-08-11T00.parquet", "is a link"),
        ("zero_2026-08-11T00.parquet", "is a link"),
        ("/dev/zero", "is neither a file nor a folder"),
        ("a_folder_2026-08-11T00.parquet", "no recorded line"),
        ("link", "is a link"),
        ("long_2026-08-11T00.parquet", "at most"),
        ("of_link", "tape.ndjson: is a link"),
        ("of_events", "tape.ndjson: is a link"),
        ("of_pipe", "no recorded line"),
    ];
    let root = at("archive");
    for (name, part) in cases {
        let error = run(&import(&root), &at(name)).expect_err(name);
        assert!(error.contains(part), "{name}: {error}");
        assert_eq!(names(&root), Vec::<String>::new(), "{name}");
    }
    // A replay follows a link to an hour no further than its length.
    for (name, part) in [("pipe_2026-08-11T00.parquet", "not a plain file"), ("/dev/zero", "not a plain file")] {
        let error = replay::is_archive(&at(name)).expect_err(name).to_string();
        assert!(error.contains(part), "{name}: {error}");
    }
    for (name, part) in [("link_2026-08-11T00.parquet", "is a link"), ("long_2026-08-11T00.parquet", "at most")] {
        let opened = replay::open(&at(name), Speed::Max, &Default::default(), &Names::default());
        let error = opened.err().expect(name).to_string();
        assert!(error.contains(part), "{name}: {error}");
    }
    // Lists.
    pipe(&at("pipe"));
    fs::create_dir(at("a_folder")).expect("a folder");
    fs::write(at("list"), id(1)).expect("a file");
    symlink(at("list"), at("linked_list")).expect("a link");
    let lists = [
        ("pipe", "not a plain file"),
        ("/dev/zero", "not a plain file"),
        ("linked_list", "is a link"),
        ("a_folder", "not a plain file"),
        ("absent", "No such file"),
    ];
    for (name, part) in lists {
        let found = [
            given::ids(&at(name)).map(drop),
            settled::read(&at(name)).map(drop),
            check_objects(&at(name)),
            run(&Import { catalogue: Some(at(name)), ..import(&root) }, &good).map(drop),
        ];
        for (number, found) in found.into_iter().enumerate() {
            let error = found.expect_err(name);
            assert!(error.contains(part), "{name}, list {number}: {error}");
        }
    }
    let results = fs::File::create(at("results")).expect("a file");
    results.set_len((256 << 20) + 1).expect("a length");
    let error = settled::read(&at("results")).expect_err("a long list");
    assert!(error.contains("larger than"), "{error}");
    println!("files that are not plain: {} cases", cases.len() + 4 + 4 * lists.len() + 1);
}

/// Without room on the disk nothing is imported: neither at the begin nor when rows are spilled.
#[test]
fn an_import_needs_room() {
    use crate::archive::room::Room;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    let folder = tempfile::tempdir().expect("a folder");
    let (few, many) = (folder.path().join(NAME), folder.path().join("many_2026-08-11T00.parquet"));
    write(&few, &rows(), None);
    let rows: Vec<Row> = (0..250_000).map(|number| change(number / 100, 1, "11", 4_000, number)).collect();
    write(&many, &rows, None);
    // file, whether it is rewritten, times at which there is room, whether it is imported
    let cases = [
        (&few, false, 0, false),
        (&few, false, 1, true),
        (&few, true, 0, false),
        (&few, true, 1, false),
        (&few, true, 2, true),
        // Spilled once.
        (&many, true, 1, false),
        (&many, true, 2, false),
        (&many, true, 3, true),
    ];
    for (number, (file, is_rewritten, times, is_made)) in cases.into_iter().enumerate() {
        let root = folder.path().join(format!("archive-{number}"));
        let asked = Arc::new(AtomicU64::new(0));
        let count = asked.clone();
        let mut import = import(&root);
        import.options.markets = is_rewritten.then(|| [Condition([1; 32])].into());
        import.options.place.memory_bytes = Sorter::MEMORY_MIN;
        let measure = move |_: &Path| Ok(if count.fetch_add(1, Relaxed) < times { 100 } else { 99 });
        import.options.place.room = Room::measured(100, measure);
        match run(&import, file) {
            Ok(hours) => assert!(is_made && hours.len() == 1 && names(&root).len() == 3, "case {number}: {hours:?}"),
            Err(error) => {
                assert!(!is_made && error.contains("the disk has 99 free bytes"), "case {number}: {error}");
                assert_eq!(names(&root), Vec::<String>::new(), "case {number}");
            }
        }
        assert_eq!(asked.load(Relaxed), if is_made { times } else { times + 1 }, "case {number}");
    }
    println!("imports and room: {} cases", cases.len());
}
