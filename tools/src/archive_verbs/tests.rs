use super::*;
use clap::Parser;
use std::fs::{self, File};
use tempfile::TempDir;

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    verb: ArchiveVerb,
}

/// A folder with settings, a data directory, and an archive.
struct Place(TempDir);

impl Place {
    fn new(settings: &str) -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        fs::create_dir_all(place.0.path().join("archive/cache")).expect("a folder");
        place.set(settings);
        place
    }

    fn set(&self, settings: &str) {
        fs::write(self.0.path().join("papertape.toml"), settings).expect("a file");
    }

    fn run(&self, words: &[&str]) -> Result<(), String> {
        let at = |name: &str| self.0.path().join(name).to_string_lossy().into_owned();
        let words = ["archive"].into_iter().chain(words.iter().copied()).map(str::to_owned);
        let places = ["--config", "papertape.toml", "--data-dir", "data", "--archive", "archive"].into_iter();
        let places = places.map(|word| if word.starts_with("--") { word.to_owned() } else { at(word) });
        Line::try_parse_from(words.chain(places)).expect("a command").verb.run().map_err(|error| error.to_string())
    }
}

/// Two hours of one market.
fn record(folder: &Path) {
    const BEGIN: u64 = 1_788_001_200_000 - 3_600_000;
    fs::create_dir_all(folder).expect("a folder");
    for hour in 0..2 {
        let begin = BEGIN + hour * 3_600_000;
        let mut text = format!(
            "{{\"r\":{begin},\"v\":\"polymarket\",\"u\":\"/markets\",\"s\":200,\"b\":[{{\"id\":\"7\",\"conditionId\":\"0x{:064x}\",\
             \"slug\":\"s\",\"clobTokenIds\":\"[\\\"71\\\",\\\"72\\\"]\",\"active\":true,\"closed\":false,\"acceptingOrders\":true,\
             \"endDate\":\"2030-11-03T00:00:00Z\"}}]}}\n",
            7
        );
        for minute in 0..60 {
            let at = begin + minute * 60_000 + 1;
            let levels = format!("[{{\"price\":\"0.3\",\"size\":\"{}\"}}]", minute + 1);
            text += &format!(
                "{{\"r\":{at},\"v\":\"polymarket\",\"c\":\"ws-1\",\"m\":{{\"event_type\":\"book\",\"asset_id\":\"71\",\
                 \"timestamp\":\"{at}\",\"bids\":{levels},\"asks\":[]}}}}\n"
            );
        }
        let name = hour_text((begin / 3_600_000) as u32);
        fs::write(folder.join(format!("tape-{name}.ndjson")), text).expect("a file");
    }
}

/// The recording of the settings is built, and compared by a deep check; the bound of the cache is that of the settings.
#[test]
fn verbs_take_their_settings() {
    let place = Place::new("[archive]\ncache_bytes = 16777216\n");
    let cache = place.0.path().join("archive/cache");
    for name in ["time-a.rows", "time-b.rows"] {
        File::create(cache.join(name)).expect("a file").set_len(12 << 20).expect("a length");
    }
    let left = || fs::read_dir(&cache).expect("a folder").count();
    assert_eq!(place.run(&["build", "--time-ordered"]), Ok(()));
    assert_eq!(left(), 1, "the default would keep both");
    // Nothing was recorded yet.
    assert_eq!(place.run(&["verify", "--deep"]), Ok(()));
    record(&place.0.path().join("data/tape"));
    assert_eq!(place.run(&["build"]), Ok(()));
    assert_eq!(place.run(&["verify", "--deep", "--json"]), Ok(()));
    assert_eq!(left(), 1, "what was made again is removed");
    // Other lines than those of the archive.
    let tape = place.0.path().join("data/tape");
    for file in fs::read_dir(&tape).expect("files").map(|file| file.expect("a file").path()) {
        let text = fs::read_to_string(&file).expect("lines").replace("\"0.3\"", "\"0.4\"");
        fs::write(file, text).expect("a file");
    }
    let error = place.run(&["verify", "--deep"]).expect_err("other lines");
    assert!(error.starts_with("2 problems; compared with raw lines: 2 hours, not compared: 0"), "{error}");
    assert_eq!(place.run(&["verify"]), Ok(()));
    // A recording elsewhere.
    let other = place.0.path().join("other");
    record(&other);
    place.set(&format!("[venue]\nkind = \"polymarket\"\nrecord = {:?}\n", other.to_string_lossy()));
    assert_eq!(place.run(&["verify", "--deep"]), Ok(()));
    println!("settings of verbs: 7 commands");
}

/// Without room on the disk nothing is made, and each verb says so.
#[test]
fn verbs_need_room() {
    let place = Place::new("[journal]\nreserve_bytes = 1125899906842624\n");
    let tape = place.0.path().join("data/tape");
    record(&tape);
    let tape = tape.to_string_lossy();
    for words in [&["build"][..], &["import", &tape], &["build", "--tape", &tape, "--time-ordered"]] {
        let error = place.run(words).expect_err("no room");
        assert!(error.contains("free bytes, and no hour is made below 11259"), "{words:?}: {error}");
    }
    place.set("");
    assert_eq!(place.run(&["build"]), Ok(()));
    println!("verbs and room: 4 commands");
}

/// A wrong list costs no import, an hour that is refused does not keep the others out, and each is reported.
#[test]
fn imports_say_what_is_refused() {
    let place = Place::new("");
    let at = |name: &str| place.0.path().join(name);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let tape = at("given");
    record(&tape);
    let tape = text(&tape);
    let hours = || venue::archive::hours::parquet_files(&at("archive")).expect("files").len();
    fs::write(at("wrong"), "condition_id,winner,at\n0x12,0,1\n").expect("a file");
    fs::write(at("absent"), format!("0x{}", "ab".repeat(32))).expect("a file");
    let (wrong, absent) = (text(&at("wrong")), text(&at("absent")));
    let refused = [
        (["--settlements", wrong.as_str()], "row 1: condition_id is not an id"),
        (["--catalogue", &wrong], "line 1"),
        (["--markets", &wrong], "is not a condition id"),
        (["--markets", &absent], "given: no row is of a market that --markets names"),
    ];
    for (options, part) in &refused {
        let error = place.run(&[&["import", &tape][..], options].concat()).expect_err("a wrong list");
        assert!(error.contains(part), "{options:?}: {error}");
        assert_eq!(hours(), 0, "{options:?}");
    }
    // While another process makes hours.
    let store = Store::open(&at("archive"), store::Settings::default()).expect("an archive");
    let lock = store.lock().expect("the lock");
    let error = place.run(&["import", &tape]).expect_err("a lock");
    assert!(error.starts_with(&format!("{}: another process", at("archive").display())), "{error}");
    drop(lock);
    assert_eq!((place.run(&["import", &tape]), hours()), (Ok(()), 2));
    // Other lines in both hours, and a path that is not there.
    for file in fs::read_dir(&tape).expect("files").map(|file| file.expect("a file").path()) {
        let lines = fs::read_to_string(&file).expect("lines").replace("\"0.3\"", "\"0.4\"");
        fs::write(file, lines).expect("a file");
    }
    let error = place.run(&["import", &tape, &text(&at("nowhere"))]).expect_err("other lines");
    assert!(error.starts_with("3 were refused:\n  ") && error.lines().count() == 4, "{error}");
    assert_eq!(error.matches("--replace").count(), 2, "{error}");
    assert_eq!(place.run(&["import", &tape, "--replace"]), Ok(()));
    println!("refused imports: {} commands", refused.len() + 4);
}

/// One is not several.
#[test]
fn sums_are_in_words() {
    let rows = [
        ((0, 0, 0, 0), "0 hours are new, 0 were there, 0 rows"),
        ((1, 0, 1, 0), "1 hour is new, 0 were there, 1 row"),
        ((2, 1, 5, 1), "2 hours are new, 1 was there, 5 rows, 1 hour left out: no row of the wanted markets"),
        ((1, 2, 5, 3), "1 hour is new, 2 were there, 5 rows, 3 hours left out: no row of the wanted markets"),
    ];
    for ((new, there, rows, left_out), expected) in rows {
        assert_eq!(Hours { new, there, rows, left_out }.text(), expected);
    }
    println!("sums: {} cases", rows.len());
}
