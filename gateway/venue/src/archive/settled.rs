//! Results of markets that were given with an import (gateway/docs/archive-tools.md §2): `condition_id,winner,at`.

use super::{catalogue, given};
use archive::row::Condition;
use engine::id::Outcome;
use engine::market::terms::Resolution;
use engine::time::Timestamp;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Largest file, in bytes.
const BYTES_MAX: u64 = 256 << 20;
const HEADER: [&str; 3] = ["condition_id", "winner", "at"];

/// A result and since when it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub resolution: Resolution,
    pub at: Timestamp,
}

/// Reads a file of results: CSV with a header; `winner` is 0, 1 or `split`, `at` a time.
///
/// # Errors
/// The file cannot be read, is too large, or a row of it is wrong; the text names it.
pub fn read(path: &Path) -> Result<BTreeMap<Condition, Settlement>, String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = given::open(path, BYTES_MAX).map_err(|error| named(&error))?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(file);
    let header = reader.headers().map_err(|error| named(&error))?;
    if header.iter().ne(HEADER) {
        return Err(named(&format!("the header is not {}", HEADER.join(","))));
    }
    let mut settlements = BTreeMap::new();
    for (number, record) in reader.records().enumerate() {
        let wrong = |what: &str| named(&format!("row {}: {what}", number + 1));
        let record = record.map_err(|error| wrong(&error.to_string()))?;
        let [id, winner, at] = [0, 1, 2].map(|column| record.get(column).unwrap_or_default());
        let id = Condition::parse(&id.to_ascii_lowercase()).ok_or_else(|| wrong("condition_id is not an id"))?;
        let resolution = match winner {
            "0" => Resolution::Winner(Outcome::First),
            "1" => Resolution::Winner(Outcome::Second),
            "split" => Resolution::Split,
            _ => return Err(wrong("winner is not 0, 1 or split")),
        };
        let at = crate::loose::instant(at).ok_or_else(|| wrong("at is not a time"))?;
        if settlements.insert(id, Settlement { resolution, at }).is_some_and(|old| old.resolution != resolution) {
            return Err(wrong("another result of this market is above"));
        }
    }
    Ok(settlements)
}

/// The file of a venue's results.
pub fn file(venue_folder: &Path) -> PathBuf {
    catalogue::folder(venue_folder).join("settlements.csv")
}

/// Merges results into the file of a venue; a given result replaces that of its market.
///
/// # Errors
/// The file of an earlier import is wrong, or the new one cannot be written.
pub fn save(venue_folder: &Path, given: &BTreeMap<Condition, Settlement>) -> Result<(), String> {
    let path = file(venue_folder);
    let mut all = if path.exists() { read(&path)? } else { BTreeMap::new() };
    all.extend(given.iter().map(|(id, settlement)| (*id, *settlement)));
    let folder = catalogue::folder(venue_folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    archive::write_file(&path, text_of(&all).as_bytes()).map_err(|error| error.to_string())
}

fn text_of(settlements: &BTreeMap<Condition, Settlement>) -> String {
    let mut text = HEADER.join(",") + "\n";
    for (id, Settlement { resolution, at }) in settlements {
        let winner = match resolution {
            Resolution::Winner(Outcome::First) => "0",
            Resolution::Winner(Outcome::Second) => "1",
            Resolution::Split => "split",
        };
        // A moment of the file format has milliseconds; a result is never earlier than it was.
        let at = at.0.div_ceil(engine::time::MILLISECOND);
        text += &format!("{id},{winner},{at}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_merged_and_refused_by_row() {
        let folder = tempfile::tempdir().expect("a folder");
        let given = folder.path().join("given.csv");
        let [a, b] = ["0a", "0b"].map(|byte| format!("0x{}", byte.repeat(32)));
        let head = "condition_id,winner,at\n";
        fs::write(&given, format!("{head}{a},1,2026-08-11T06:00:00.0001Z\n{b}, split ,1786406400\n")).expect("a file");
        let read_once = read(&given).expect("results");
        assert_eq!(read_once[&Condition([10; 32])].resolution, Resolution::Winner(Outcome::Second));
        save(folder.path(), &read_once).expect("saved");
        fs::write(&given, format!("{head}{a},0,1786406400123\n")).expect("a file");
        save(folder.path(), &read(&given).expect("results")).expect("saved");
        let saved = read(&file(folder.path())).expect("results");
        let first = Resolution::Winner(Outcome::First);
        let at = Timestamp::from_millis(1_786_406_400_123);
        assert_eq!(saved[&Condition([10; 32])], Settlement { resolution: first, at });
        assert_eq!(saved[&Condition([11; 32])].resolution, Resolution::Split);
        let cases = [
            ("condition,winner,at\n".to_owned(), "the header is not condition_id,winner,at"),
            (format!("{head}0x12,0,1\n"), "row 1: condition_id"),
            (format!("{head}{a},2,1\n"), "row 1: winner"),
            (format!("{head}{a},0,soon\n"), "row 1: at"),
            (format!("{head}{a},0,1\n{a},1,1\n"), "row 2: another result"),
            (format!("{head}{a},0\n"), "row 1:"),
            (format!("{head}\u{0},\"0"), "row 1:"),
        ];
        for (text, part) in &cases {
            fs::write(&given, text).expect("a file");
            let error = read(&given).expect_err("a wrong file");
            assert!(error.contains(part), "{error}");
        }
        println!("results: {} wrong files", cases.len());
    }
}
