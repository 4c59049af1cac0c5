//! Where the files of an hour are: `VENUE/YYYY/MM/DD/NAME.parquet`, with `.json`, `.idx` and `.pin` beside it.

use engine::backtest::Hour;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The venue whose files have the names of public archives.
const PUBLIC_VENUE: &str = "polymarket";
pub(crate) const PARQUET: &str = "parquet";
const SIDECAR: &str = "json";
const INDEX: &str = "idx";
pub(crate) const PIN: &str = "pin";

/// The name of an hour's files without their end.
pub fn hour_name(venue: &str, hour: Hour) -> String {
    match venue {
        PUBLIC_VENUE => format!("polymarket_orderbook_{hour}"),
        other => format!("papertape_{other}_{hour}"),
    }
}

/// The hour of a file name of a venue; `None` for other names.
pub fn hour_of_name(venue: &str, name: &str) -> Option<Hour> {
    let (stem, end) = name.rsplit_once('.')?;
    let hour = stem.get(stem.len().checked_sub(13)?..)?.parse().ok()?;
    (end == PARQUET && stem == hour_name(venue, hour)).then_some(hour)
}

/// The folder of an hour, from the root of the archive.
pub(crate) fn folder(root: &Path, venue: &str, hour: Hour) -> PathBuf {
    let text = hour.to_string();
    let mut day = String::new();
    // `YYYY-MM-DD` as folders.
    text[..10].split('-').for_each(|part| {
        let _ = write!(day, "{part}/");
    });
    root.join(venue).join(day.trim_end_matches('/'))
}

/// The Parquet file of an hour.
pub fn parquet_path(root: &Path, venue: &str, hour: Hour) -> PathBuf {
    folder(root, venue, hour).join(format!("{}.{PARQUET}", hour_name(venue, hour)))
}

/// The sidecar beside a Parquet file.
pub fn sidecar_path(parquet: &Path) -> PathBuf {
    parquet.with_extension(SIDECAR)
}

/// The time index beside a Parquet file.
pub fn index_path(parquet: &Path) -> PathBuf {
    parquet.with_extension(INDEX)
}

pub(crate) fn pin_path(parquet: &Path) -> PathBuf {
    parquet.with_extension(PIN)
}

/// Whether a folder can be that of a venue: lower-case letters and digits, and not one of the archive's own.
pub(crate) fn is_venue(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    !name.is_empty() && name.len() <= 32 && is_plain && name != super::CACHE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hours() {
        let hour = "2026-09-30T07".parse().expect("an hour");
        let cases = [
            ("polymarket", "/a/polymarket/2026/09/30/polymarket_orderbook_2026-09-30T07.parquet"),
            ("kalshi", "/a/kalshi/2026/09/30/papertape_kalshi_2026-09-30T07.parquet"),
        ];
        for (venue, expected) in cases {
            let path = parquet_path(Path::new("/a"), venue, hour);
            assert_eq!(path, Path::new(expected));
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            assert_eq!(hour_of_name(venue, name), Some(hour));
            assert_eq!(hour_of_name("other", name), None);
        }
        let wrong = [
            "",
            ".parquet",
            "polymarket_orderbook_2026-09-30T07.json",
            "polymarket_orderbook_2026-09-30T24.parquet",
            "polymarket_orderbook_2026-09-30T07.parquet.making",
            "x_polymarket_orderbook_2026-09-30T07.parquet",
            "polymarket_orderbook_２026-09-30T07.parquet",
        ];
        for name in wrong {
            assert_eq!(hour_of_name("polymarket", name), None, "{name}");
        }
        println!("names: {} cases", cases.len() + wrong.len());
    }
}
