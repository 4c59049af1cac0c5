//! The markets that a venue described (gateway/docs/archive-tools.md §2): the lines of its folder, folded.
//!
//! A server that records adds lines to the file of the day after each hour; the files of the days before stay. So a
//! [`Reader`] remembers what all files but the last say, and what the lines after them depend on. It reads the last
//! file, and everything again if another one is not the file that it was.

use super::catalogue;
use crate::FeedUpdate;
use crate::category::Names;
use crate::replay::{Lines, Recording as _, Saved};
use crate::skips::{Skip, Skips};
use crate::tape::{self, Part, TapeError};
use engine::backtest::Ends;
use engine::market::terms::{Listing, MarketState, Resolution};
use engine::time::Timestamp;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A market that the venue described.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub listing: Listing,
    /// Its end, as the venue stated it over time.
    pub ends: Ends,
    /// Its last state, apart from a result.
    pub state: MarketState,
    /// Its result, and since when the venue reports it.
    pub resolution: Option<(Resolution, Timestamp)>,
}

/// Markets by condition.
pub type KnownMarkets = BTreeMap<Arc<str>, Arc<Known>>;

/// No moment after which lines do not count.
const ALWAYS: Timestamp = Timestamp(u64::MAX);

/// The markets of a venue's folder, by its lines before a moment; empty if it has none.
///
/// # Errors
/// The folder cannot be read.
pub fn known_before(venue_folder: &Path, names: &Names, until: Timestamp) -> Result<KnownMarkets, TapeError> {
    let folder = catalogue::folder(venue_folder);
    let files = files(&folder).map_err(|error| TapeError::Io { path: folder, error })?;
    let stated = Stated::default().with(&files, names, None, until, &Arc::default());
    Ok(stated.map(|(stated, _)| stated).unwrap_or_default().markets)
}

/// Reads the markets of one venue's folder, with the same names each time.
#[derive(Default)]
pub struct Reader {
    before: Before,
}

/// All files but the last, as they were read.
#[derive(Default)]
struct Before {
    files: Vec<FileState>,
    stated: Stated,
    /// What the lines after them depend on; `None`: there are no files.
    lines: Option<Saved>,
}

/// What lines say.
#[derive(Clone, Default)]
struct Stated {
    markets: KnownMarkets,
    /// Time of the last line.
    at: Timestamp,
}

/// A file, and what its content is recognised by: inode, bytes, time of change.
#[derive(Clone, PartialEq, Eq)]
struct FileState {
    path: PathBuf,
    inode: u64,
    bytes: u64,
    changed: SystemTime,
}

impl Reader {
    /// The markets of a venue's folder; empty if it has no lines about markets.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn read(&mut self, venue_folder: &Path, names: &Names) -> Result<KnownMarkets, TapeError> {
        let folder = catalogue::folder(venue_folder);
        let files = files(&folder).map_err(|error| TapeError::Io { path: folder, error })?;
        let before = std::mem::take(&mut self.before);
        let Some((last, others)) = files.split_last() else { return Ok(KnownMarkets::new()) };
        let known = if others.starts_with(&before.files) { before } else { Before::default() };
        let read = known.with(others, names).and_then(|before| {
            let stated = before
                .stated
                .with(std::slice::from_ref(last), names, before.lines.as_ref(), ALWAYS, &Arc::default())?
                .0;
            self.before = before;
            Some(stated)
        });
        // The days overlap, a file cannot be read, or what later lines depend on is too large: there is nothing to go on
        // from.
        let all = || Stated::default().with(&files, names, None, ALWAYS, &Arc::default()).map(|(stated, _)| stated);
        Ok(read.or_else(all).unwrap_or_default().markets)
    }
}

impl Before {
    /// The same with the files after them that these are; `None`: lines after these cannot be read alone.
    fn with(self, files: &[FileState], names: &Names) -> Option<Before> {
        let new = &files[self.files.len()..];
        if new.is_empty() {
            return Some(self);
        }
        let skips = Arc::<Skips>::default();
        let (stated, lines) = self.stated.with(new, names, self.lines.as_ref(), ALWAYS, &skips)?;
        // What could not be read may be readable the next time.
        if skips.get(Skip::UnreadableFile) > 0 {
            return None;
        }
        Some(Before { files: files.to_vec(), stated, lines: Some(lines.save()?) })
    }
}

impl Stated {
    /// The same with the lines of these files before a moment, which come after those of `saved`. `None`: one of them is
    /// earlier than a line before, or `saved` is not usable. Parts of files that cannot be read are counted in `skips`.
    fn with(
        &self,
        files: &[FileState],
        names: &Names,
        saved: Option<&Saved>,
        until: Timestamp,
        skips: &Arc<Skips>,
    ) -> Option<(Stated, Lines)> {
        let part = |file: &FileState| Part { path: file.path.clone(), skip: 0, grows: false };
        let mut lines = Lines::of_parts(files.iter().map(part).collect(), names, skips, saved)?;
        if lines.line_at().is_some_and(|first| first < self.at) {
            return None;
        }
        let mut stated = self.clone();
        let mut updates = Vec::new();
        while let Some(next) = lines.line_at().filter(|next| *next < until) {
            stated.at = stated.at.max(next);
            updates.clear();
            lines.step(stated.at, &mut updates);
            updates.drain(..).for_each(|update| stated.note(update));
        }
        Some((stated, lines))
    }

    fn note(&mut self, update: FeedUpdate) {
        let at = self.at;
        let mut change = |condition: String, change: &dyn Fn(&mut Known)| {
            self.markets.entry(condition.into()).and_modify(|market| change(Arc::make_mut(market)));
        };
        match update {
            FeedUpdate::Listed { listing, state } => {
                let (condition, end) = (Arc::<str>::from(&*listing.condition), listing.end);
                let (mut ends, resolution) = match self.markets.remove(&condition) {
                    Some(earlier) => (earlier.ends.clone(), earlier.resolution),
                    None => (Ends::of(end), None),
                };
                ends.state(at, end);
                let known = Known { listing: *listing, ends, state, resolution };
                self.markets.insert(condition, Arc::new(known));
            }
            FeedUpdate::StateChanged { condition, state } => change(condition, &|market| market.state = state),
            FeedUpdate::EndChanged { condition, end } => change(condition, &|market| {
                market.listing.end = end;
                market.ends.state(at, end);
            }),
            FeedUpdate::Resolved { condition, resolution, .. } => {
                change(condition, &|market| market.resolution = Some((resolution, at)));
            }
            _ => {}
        }
    }
}

/// The files of a folder as they are now, in the order of their names; none if there is no folder.
fn files(folder: &Path) -> io::Result<Vec<FileState>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let state = |path: PathBuf| {
        let metadata = fs::metadata(&path)?;
        Ok(FileState { path, inode: metadata.ino(), bytes: metadata.len(), changed: metadata.modified()? })
    };
    tape::files(folder)?.into_iter().map(state).collect()
}

/// The lines about a venue's markets; `None` if there are none.
pub(super) fn lines_of(venue_folder: &Path, names: &Names, skips: &Arc<Skips>) -> Result<Option<Lines>, TapeError> {
    let folder = catalogue::folder(venue_folder);
    if !folder.is_dir() {
        return Ok(None);
    }
    match Lines::open(&folder, false, names, skips) {
        Ok(lines) => Ok(Some(lines)),
        Err(TapeError::Empty { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the lines of a venue say about an end, and from when on.
    #[test]
    fn a_moved_end_keeps_the_time_of_its_statement() {
        let folder = tempfile::tempdir().expect("a folder");
        let condition = format!("0x{:064x}", 1);
        let line = |at: u64, end: &str| {
            format!(
                r#"{{"r":{at},"v":"polymarket","u":"/markets","s":200,"b":[{{"id":"1","conditionId":"{condition}","slug":"rain","question":"Rain?","outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"1001\",\"1002\"]","orderPriceMinTickSize":0.01,"active":true,"acceptingOrders":true,"endDate":"{end}"}}]}}"#
            )
        };
        let (first, moved) = ("2026-11-03T00:00:00Z", "2026-11-05T00:00:00Z");
        let lines = [line(1_790_000_000_000, first), line(1_790_000_060_000, first), line(1_790_000_120_000, moved)];
        let markets = catalogue::folder(folder.path());
        fs::create_dir_all(&markets).expect("a folder");
        fs::write(markets.join("2026-09-21.ndjson"), lines.join("\n") + "\n").expect("written");
        let known = Reader::default().read(folder.path(), &Names::default()).expect("read");
        let ends = &known[condition.as_str()].ends;
        let secs = |secs: u64| Some(Timestamp::from_secs(secs));
        let cases = [
            (1_780_000_000, secs(1_793_664_000)),
            (1_790_000_119, secs(1_793_664_000)),
            (1_790_000_120, secs(1_793_836_800)),
        ];
        for (moment, expected) in cases {
            assert_eq!(ends.known_at(Timestamp::from_secs(moment)), expected, "{moment}");
        }
        println!("moved ends: {} cases", cases.len());
    }

    /// A response that lists a market, which ends at this hour of 2026-11-05.
    fn line(at: u64, number: u64, end_hour: u64) -> String {
        let condition = condition(number);
        let tokens = format!(r#"[\"{number}001\",\"{number}002\"]"#);
        format!(
            r#"{{"r":{at},"v":"polymarket","u":"/markets","s":200,"b":[{{"id":"{number}","conditionId":"{condition}","slug":"s{number}","question":"Rain?","outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"{tokens}","orderPriceMinTickSize":0.01,"active":true,"acceptingOrders":true,"endDate":"2026-11-05T{end_hour:02}:00:00Z"}}]}}"#
        )
    }

    fn condition(number: u64) -> String {
        format!("0x{number:064x}")
    }

    /// 2026-09-21T00 and the days after it, in milliseconds.
    fn day(number: u64) -> u64 {
        1_789_951_200_000 + number * 86_400_000
    }

    /// A reader that has read before finds what a new one finds, and reads no file again that did not change.
    #[test]
    fn files_that_did_not_change_are_not_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let markets = catalogue::folder(folder.path());
        fs::create_dir_all(&markets).expect("a folder");
        let path = |name: u64| markets.join(format!("2026-09-{}.ndjson", 21 + name));
        let write = |name: u64, lines: &[String]| fs::write(path(name), lines.join("\n") + "\n").expect("written");
        let names = Names::default();
        let mut reader = Reader::default();
        let mut both = |what: &str| {
            let found = reader.read(folder.path(), &names).expect("read");
            assert_eq!(found, Reader::default().read(folder.path(), &names).expect("read"), "{what}");
            found.len()
        };
        assert_eq!(both("no file"), 0);
        write(0, &[line(day(0), 1, 1)]);
        assert_eq!(both("one day"), 1);
        // An end that moves on a later day is one of a market of an earlier one.
        let second = [line(day(1), 2, 1), line(day(1) + 5, 1, 7)];
        write(1, &second[..1]);
        assert_eq!(both("two days"), 2);
        write(1, &second);
        assert_eq!(both("the last day grows"), 2);
        write(2, &[line(day(2), 3, 1)]);
        write(3, &[line(day(3), 4, 1), line(day(3) + 1, 1, 9)]);
        assert_eq!(both("two days more"), 4);
        // Another content that has the same inode, length and time is not seen: the file is not read.
        let other = fs::read_to_string(path(0)).expect("read").replace("Rain?", "Snow?");
        let changed = fs::metadata(path(0)).and_then(|of| of.modified()).expect("a time");
        fs::write(path(0), other).expect("written");
        let set = |time| fs::File::options().write(true).open(path(0)).and_then(|of| of.set_modified(time));
        set(changed).expect("a time");
        write(3, &[line(day(3), 4, 1), line(day(3) + 1, 1, 9), line(day(3) + 2, 5, 1)]);
        let question = |found: &KnownMarkets| found[condition(1).as_str()].listing.question.clone();
        let ends = |found: &KnownMarkets| found[condition(1).as_str()].ends.clone();
        let known = reader.read(folder.path(), &names).expect("read");
        let fresh = Reader::default().read(folder.path(), &names).expect("read");
        assert_eq!((known.len(), question(&known).as_str(), question(&fresh).as_str()), (5, "Rain?", "Snow?"));
        assert_eq!(ends(&known), ends(&fresh), "what was stated on all days");
        // With another time it is another file, and a day that comes between is one that was not there.
        set(changed + std::time::Duration::from_secs(1)).expect("a time");
        let mut both = |what: &str| {
            let found = reader.read(folder.path(), &names).expect("read");
            assert_eq!(found, Reader::default().read(folder.path(), &names).expect("read"), "{what}");
            found.len()
        };
        assert_eq!(both("an earlier day has changed"), 5);
        write(4, &[line(day(2) + 9, 6, 1)]);
        assert_eq!(both("days that overlap"), 6);
        fs::remove_file(path(4)).expect("removed");
        fs::remove_file(path(3)).expect("removed");
        assert_eq!(both("days are gone"), 3);
        fs::remove_file(path(0)).expect("removed");
        assert_eq!(both("the first day is gone"), 3);
        fs::write(path(1), "no line").expect("written");
        assert_eq!(both("a file without lines"), 1);
        println!("files of markets: 11 cases");
    }
}
