//! The markets of an archive: what the venue said about them, as lines of a tape in one file a day
//! (gateway/docs/archive-tools.md §2).
//!
//! Only what changed a market is kept, with the time of its receipt. So a replay of an archive reads these lines with
//! the translators of the venue, and lists, closes and resolves a market when the recording did, never earlier.

use crate::FeedUpdate;
use crate::kalshi::metadata::lasting;
use crate::tape::{Record, UNNAMED};
use ahash::{AHashMap, AHashSet};
use engine::time::Timestamp;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Largest file of a day, unpacked, in bytes.
const DAY_BYTES_MAX: u64 = 1 << 30;
const ENDING: &str = ".ndjson.gz";

/// Lines that are not saved yet.
pub struct Catalogue {
    folder: PathBuf,
    /// By day, then by time.
    lines: BTreeMap<String, BTreeSet<(u64, String)>>,
    /// The venue's own ids by condition: messages of Kalshi have only these.
    ids: AHashMap<String, String>,
}

impl Catalogue {
    /// Of the venue whose hours are in this folder.
    pub fn of(venue_folder: &Path) -> Catalogue {
        Catalogue { folder: folder(venue_folder), lines: BTreeMap::new(), ids: AHashMap::new() }
    }

    /// Folder of its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The venue's own ids of the markets that were listed so far, by condition.
    pub(super) fn ids(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ids.iter().map(|(condition, id)| (condition.as_str(), id.as_str()))
    }

    /// Notes the venue's own id of a market that was listed before.
    pub(super) fn learn(&mut self, condition: String, id: String) {
        self.ids.insert(condition, id);
    }

    /// Notes what a line changed.
    pub fn note(&mut self, at: Timestamp, record: &Record<'_>, updates: &[FeedUpdate]) {
        let mut changed: AHashSet<&str> = AHashSet::new();
        for update in updates {
            match update {
                FeedUpdate::Listed { listing, .. } => {
                    self.ids.insert(listing.condition.clone(), listing.venue_market_id.clone());
                    changed.insert(&listing.condition);
                }
                FeedUpdate::StateChanged { condition, .. }
                | FeedUpdate::EndChanged { condition, .. }
                | FeedUpdate::Strike { condition, .. }
                | FeedUpdate::Fees { condition, .. }
                | FeedUpdate::Resolved { condition, .. } => {
                    changed.insert(condition);
                }
                _ => {}
            }
        }
        if changed.is_empty() {
            return;
        }
        let (r, v) = (at.millis(), record.origin().name());
        let line = match record {
            Record::Frame { connection, body, .. } => {
                let Ok(body) = serde_json::from_str::<Value>(body) else { return };
                json!({"r": r, "v": v, "c": connection, "m": body})
            }
            Record::Answer { url, body, .. } => {
                let Ok(mut body) = serde_json::from_str::<Value>(body) else { return };
                let own = changed.iter().filter_map(|condition| self.ids.get(*condition)).map(String::as_str);
                let wanted: AHashSet<&str> = changed.iter().copied().chain(own).collect();
                if !narrow(&mut body, &wanted) {
                    return;
                }
                let path = url.split(['?', '#']).next().unwrap_or_default();
                json!({"r": r, "v": v, "u": path, "s": 200, "b": body})
            }
            Record::Gap { .. } => return,
        };
        self.add(at, &line);
    }

    /// Notes the markets of a metadata file of the Kalshi layout, whose first line has this time: their lasting fields,
    /// and their states from the times of these on. Text of another form is left out.
    pub fn metadata(&mut self, text: &str, first: Timestamp) {
        for (at, url, body) in lasting(text, first) {
            let line = json!({"r": at.millis(), "v": UNNAMED.name(), "u": url, "s": 200, "b": body});
            self.add(at, &line);
        }
    }

    /// Adds a line of a tape.
    pub fn add(&mut self, at: Timestamp, line: &Value) {
        let line = line.to_string();
        self.lines.entry(day(at)).or_default().insert((at.millis(), line));
    }

    /// Merges the lines into the files of their days. A file is replaced as a whole.
    ///
    /// # Errors
    /// A file cannot be read or written, or is too large.
    pub fn save(&mut self) -> Result<(), archive::Error> {
        if self.lines.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(&self.folder).map_err(|error| archive::Error::Io(self.folder.clone(), error))?;
        while let Some((day, mut lines)) = self.lines.pop_first() {
            let path = self.folder.join(format!("{day}{ENDING}"));
            let io = |error| archive::Error::Io(path.clone(), error);
            let count = read_day(&path, &mut lines).map_err(io)?;
            if lines.len() > count {
                archive::write_file(&path, &packed(&lines).map_err(io)?)?;
            }
        }
        Ok(())
    }
}

/// The folder of the markets of a venue.
pub fn folder(venue_folder: &Path) -> PathBuf {
    venue_folder.join("markets")
}

/// Adds the lines of a file, if there is one; returns how many it has.
fn read_day(path: &Path, lines: &mut BTreeSet<(u64, String)>) -> io::Result<usize> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    MultiGzDecoder::new(file).take(DAY_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > DAY_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too large"));
    }
    let mut count = 0;
    for line in text.lines() {
        if let Some(at) = crate::tape::received_ms(line) {
            count += 1;
            lines.insert((at, line.to_owned()));
        }
    }
    Ok(count)
}

/// The file of these lines.
fn packed(lines: &BTreeSet<(u64, String)>) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    for (_, line) in lines {
        packed.write_all(line.as_bytes())?;
        packed.write_all(b"\n")?;
    }
    packed.finish()
}

/// The UTC day of a moment, as in names of files.
fn day(at: Timestamp) -> String {
    let second = i64::try_from(at.secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX).strftime("%Y-%m-%d").to_string()
}

/// Leaves only the wanted markets of a response; false if it has none.
fn narrow(value: &mut Value, wanted: &AHashSet<&str>) -> bool {
    match value {
        Value::Array(rows) => {
            rows.retain_mut(|row| narrow(row, wanted));
            !rows.is_empty()
        }
        Value::Object(fields) => {
            let is_id = |name: &str| {
                let text = fields.get(name).and_then(Value::as_str);
                text.is_some_and(|text| wanted.contains(text) || wanted.contains(text.to_ascii_lowercase().as_str()))
            };
            if ["conditionId", "condition_id", "ticker"].into_iter().any(is_id) {
                return true;
            }
            let mut any = false;
            for name in ["markets", "events", "market", "data"] {
                any |= fields.get_mut(name).is_some_and(|inner| narrow(inner, wanted));
            }
            // The event of Kalshi's `/events/{ticker}` is beside its markets, or around them.
            any | fields.get_mut("event").is_some_and(|event| narrow(event, wanted))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_narrowed_to_the_markets_that_changed() {
        let wanted: AHashSet<&str> = ["0xab", "KX-2"].into_iter().collect();
        let cases = [
            // response, what is left
            (
                r#"[{"conditionId":"0xAB","events":[{"id":"1"}]},{"conditionId":"0xcd"}]"#,
                r#"[{"conditionId":"0xAB","events":[{"id":"1"}]}]"#,
            ),
            (
                r#"[{"id":"9","title":"t","markets":[{"conditionId":"0xcd"},{"conditionId":"0xab"}]},{"id":"8","markets":[]}]"#,
                r#"[{"id":"9","title":"t","markets":[{"conditionId":"0xab"}]}]"#,
            ),
            (
                r#"{"data":[{"condition_id":"0xab"}],"next_cursor":"x"}"#,
                r#"{"data":[{"condition_id":"0xab"}],"next_cursor":"x"}"#,
            ),
            (
                r#"{"event":{"event_ticker":"KX"},"markets":[{"ticker":"KX-1"},{"ticker":"KX-2"}]}"#,
                r#"{"event":{"event_ticker":"KX"},"markets":[{"ticker":"KX-2"}]}"#,
            ),
            (
                r#"{"event":{"event_ticker":"KX","markets":[{"ticker":"KX-1"},{"ticker":"KX-2"}]}}"#,
                r#"{"event":{"event_ticker":"KX","markets":[{"ticker":"KX-2"}]}}"#,
            ),
            (r#"{"market":{"ticker":"KX-2"}}"#, r#"{"market":{"ticker":"KX-2"}}"#),
            (r#"{"market":{"ticker":"KX-1"}}"#, ""),
            (r#"[1,"0xab",null,[[]]]"#, ""),
        ];
        for (text, expected) in cases {
            let mut value: Value = serde_json::from_str(text).expect("JSON");
            let has_any = narrow(&mut value, &wanted);
            assert_eq!(if has_any { value.to_string() } else { String::new() }, expected, "{text}");
        }
        println!("responses: {} cases", cases.len());
    }

    #[test]
    fn lines_are_merged_into_their_days_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = Timestamp::from_secs(1_786_406_399);
        for _ in 0..2 {
            let mut catalogue = Catalogue::of(folder.path());
            catalogue.add(at.plus(1_000_000), &json!({"r": at.millis() + 1_000, "u": "/b"}));
            catalogue.add(at, &json!({"r": at.millis(), "u": "/a"}));
            catalogue.save().expect("it is saved");
        }
        let mut catalogue = Catalogue::of(folder.path());
        catalogue.add(at, &json!({"r": at.millis(), "u": "/c"}));
        catalogue.save().expect("it is saved");
        let mut names: Vec<_> = fs::read_dir(folder.path().join("markets"))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        names.sort();
        assert_eq!(names, ["2026-08-10.ndjson.gz", "2026-08-11.ndjson.gz"]);
        let mut lines = BTreeSet::new();
        read_day(&folder.path().join("markets").join(&names[0]), &mut lines).expect("a file");
        let urls: Vec<&str> = lines.iter().map(|(_, line)| &line[line.len() - 3..line.len() - 2]).collect();
        assert_eq!(urls, ["a", "c"]);
        println!("days: {} files", names.len());
    }
}
