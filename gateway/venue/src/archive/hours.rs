//! Files of hours: which file is of which hour and venue.

use crate::tape::Origin;
use engine::backtest::Hour;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The ending of an hour's file.
const PARQUET: &str = ".parquet";
/// How deep folders are searched: `<venue>/YYYY/MM/DD/` and one more.
const DEPTH_MAX: usize = 6;
/// Most files in one folder tree: a century of hours.
const FILES_MAX: usize = 1_000_000;

/// A file of an hour.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HourPath {
    /// Full hours since 1970, from the name.
    pub hour: u32,
    pub path: PathBuf,
}

/// Parses `YYYY-MM-DDTHH`, an hour in UTC.
pub fn parse_hour(text: &str) -> Option<u32> {
    text.parse::<Hour>().ok().map(|hour| hour.0)
}

/// `YYYY-MM-DDTHH` of an hour.
pub fn hour_text(hour: u32) -> String {
    Hour(hour).to_string()
}

/// The hour in a file's name: `…YYYY-MM-DDTHH.parquet`.
pub fn hour_of_name(path: &Path) -> Option<u32> {
    const HOUR_LEN: usize = "2026-08-11T06".len();
    let stem = path.file_name()?.to_str()?.strip_suffix(PARQUET)?;
    parse_hour(stem.get(stem.len().checked_sub(HOUR_LEN)?..)?)
}

/// The venue of a file: the one whose name it contains; files of the public archives that name none are Polymarket's.
pub fn origin_of_name(path: &Path) -> Origin {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let named = Origin::all().find(|origin| name.contains(origin.name()));
    named.or(Origin::of(engine::market::terms::Venue::Polymarket)).expect("a live venue")
}

/// Whether a file, or what a link leads to, begins as Parquet does.
///
/// # Errors
/// It is a device or a pipe, which may have no end, or cannot be read.
pub fn is_parquet(path: &Path) -> io::Result<bool> {
    let mut magic = [0; 4];
    match archive::plain_file(&path.canonicalize()?)?.read_exact(&mut magic) {
        Ok(()) => Ok(magic == *b"PAR1"),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// All `.parquet` files of a folder and the folders in it, in order of path. Links are not followed.
///
/// # Errors
/// A folder cannot be read, or there are too many files.
pub fn parquet_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    search(folder, 0, &mut found)?;
    found.sort();
    Ok(found)
}

fn search(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if kind.is_dir() && !is_hidden && name != "cache" {
            if depth < DEPTH_MAX {
                search(&entry.path(), depth + 1, found)?;
            }
        } else if kind.is_file() && name.as_encoded_bytes().ends_with(PARQUET.as_bytes()) {
            if found.len() == FILES_MAX {
                return Err(io::Error::other(format!("more than {FILES_MAX} files")));
            }
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Parquet files by hour, in order of time.
pub type FilesByHour = BTreeMap<u32, Vec<PathBuf>>;

/// A file that is refused: its name has no hour, or another file is of the same venue and hour.
#[derive(Debug)]
pub struct Unplaced {
    pub path: PathBuf,
    /// The hour in its name.
    pub hour: Option<u32>,
    pub reason: String,
}

/// Files by hour, and those that are refused. Of several files of one venue and hour none is taken.
pub fn hours_of(files: Vec<PathBuf>) -> (FilesByHour, Vec<Unplaced>) {
    let mut hours = FilesByHour::new();
    let (mut refused, mut doubled) = (Vec::new(), Vec::new());
    for path in files {
        let Some(hour) = hour_of_name(&path) else {
            let reason = "the name does not end in YYYY-MM-DDTHH.parquet".to_owned();
            refused.push(Unplaced { path, hour: None, reason });
            continue;
        };
        let (origin, of_hour) = (origin_of_name(&path), hours.entry(hour).or_default());
        match of_hour.iter().find(|other| origin_of_name(other) == origin) {
            None => of_hour.push(path),
            Some(other) => {
                let reason = format!("two files of one hour of {}: this one and {}", origin.name(), other.display());
                refused.push(Unplaced { path, hour: Some(hour), reason });
                doubled.push((hour, origin));
            }
        }
    }
    for (hour, origin) in doubled {
        hours.entry(hour).or_default().retain(|path| origin_of_name(path) != origin);
    }
    hours.retain(|_, files| !files.is_empty());
    (hours, refused)
}

/// The same, where every file has to be of its own hour.
///
/// # Errors
/// The first file that is refused, and the reason.
pub fn by_hour(files: Vec<PathBuf>) -> Result<FilesByHour, (PathBuf, String)> {
    let (hours, refused) = hours_of(files);
    let first = refused.into_iter().next();
    first.map_or(Ok(hours), |Unplaced { path, reason, .. }| Err((path, reason)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_in_names() {
        let cases = [
            ("polymarket_orderbook_2026-08-11T06.parquet", Some("2026-08-11T06")),
            ("papertape_kalshi_2026-02-28T23.parquet", Some("2026-02-28T23")),
            ("2026-08-11T06.parquet", Some("2026-08-11T06")),
            ("x_2026-02-29T06.parquet", None),
            ("x_2026-08-11T24.parquet", None),
            ("x_2026-08-11 06.parquet", None),
            ("x_2026-08-11T06.parquet.making", None),
            ("é2026-08-11T0.parquet", None),
            ("x_1969-12-31T23.parquet", None),
            (".parquet", None),
        ];
        for (name, expected) in cases {
            let hour = hour_of_name(Path::new(name));
            assert_eq!(hour.map(hour_text).as_deref(), expected, "{name}");
        }
        println!("names: {} cases", cases.len());
    }

    #[test]
    fn a_venue_has_one_file_an_hour() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("polymarket/2026/08/11");
        fs::create_dir_all(&deep).expect("folders");
        fs::create_dir_all(folder.path().join("cache")).expect("a folder");
        let name = "polymarket_orderbook_2026-08-11T06.parquet";
        for path in [deep.join(name), folder.path().join("papertape_kalshi_2026-08-11T06.parquet")] {
            fs::write(path, "PAR1").expect("a file");
        }
        fs::write(folder.path().join("cache/x_2026-08-11T07.parquet"), "").expect("a file");
        let hours = by_hour(parquet_files(folder.path()).expect("files")).expect("hours");
        assert_eq!(hours.values().map(Vec::len).collect::<Vec<_>>(), [2]);
        assert!(is_parquet(&deep.join(name)).expect("a file"));
        fs::write(folder.path().join(name), "").expect("a file");
        assert!(!is_parquet(&folder.path().join(name)).expect("a file"));
        let files = parquet_files(folder.path()).expect("files");
        let (second, reason) = by_hour(files.clone()).expect_err("two files");
        assert_eq!(second, folder.path().join(name).max(deep.join(name)));
        assert!(reason.starts_with("two files of one hour of polymarket: this one and "), "{reason}");
        let (path, reason) = by_hour(vec!["a.parquet".into()]).expect_err("no hour");
        assert!(path == Path::new("a.parquet") && reason.contains("YYYY-MM-DDTHH"), "{reason}");
        // The others stay, and neither of two is taken.
        let (hours, refused) = hours_of(files.into_iter().chain(["a.parquet".into()]).collect());
        let taken: Vec<&PathBuf> = hours.values().flatten().collect();
        assert_eq!(taken, [&folder.path().join("papertape_kalshi_2026-08-11T06.parquet")]);
        let hours: Vec<Option<String>> = refused.iter().map(|file| file.hour.map(hour_text)).collect();
        assert_eq!(hours, [Some("2026-08-11T06".to_owned()), None], "{refused:?}");
        println!("files of hours: 6 cases");
    }
}
