//! One hour in order of time.

use super::Settings;
use crate::FeedUpdate;
use crate::archive::hours::{hour_text, origin_of_name};
use crate::archive::markets::{Finder, Found};
use crate::archive::room::Room;
use crate::archive::seal::SealError;
use crate::tape::Origin;
use archive::fold::View;
use archive::index::TimeIndex;
use archive::read::HourFile;
use archive::row::{Condition, Event, Row};
use archive::sidecar::{Gap, Sidecar};
use archive::sort::{Kept, Order, Sorted, Sorter, keep};
use archive::store::{index_path, sidecar_path};
use engine::amount::TickSize;
use engine::time::Timestamp;
use host::thread::Stop;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Rows, with their levels, of one line: a longer moment has several lines, so that memory is bounded.
const LINE_WEIGHT_MAX: usize = 65_536;

/// How hours are brought into order.
pub(super) struct Making {
    /// The markets to keep; `None`: all.
    pub(super) wanted: Option<HashSet<Condition>>,
    /// Where hours in order are kept.
    pub(super) cache: PathBuf,
    /// Bytes of all of them.
    pub(super) cache_bytes: u64,
    /// What stays free on its disk.
    pub(super) room: Room,
    /// Where they may be, too.
    pub(super) own_cache: Option<PathBuf>,
    pub(super) memory_bytes: u64,
}

/// The rows of a file in order of time.
struct Ordered {
    rows: Sorted,
    /// What they show of their markets.
    markets: BTreeMap<Condition, Found>,
}

/// The rows of all files of an hour in order of time. A market is in one of them.
struct Merged(Vec<(Option<Row>, Sorted)>);

/// An hour in order of time.
pub(super) struct Hour {
    rows: Option<Merged>,
    /// The row after the next line.
    ahead: Option<Row>,
    /// The rows of the next line.
    group: Vec<Row>,
    breaks: VecDeque<Break>,
    indexes: Vec<(Origin, TimeIndex)>,
    /// Books at its begin, by venue: they are handed out before the first line.
    openings: VecDeque<(Origin, Vec<FeedUpdate>)>,
    /// What its rows show of its markets.
    pub(super) markets: BTreeMap<Condition, Found>,
    origins: BTreeMap<Condition, Origin>,
    /// Only some markets are replayed.
    is_selection: bool,
    /// Why the whole hour cannot be read, and why its rest cannot.
    pub(super) unreadable: Option<String>,
    pub(super) failed: Option<String>,
}

/// Books of these tokens are unknown from this moment on; without tokens, all books of the venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Break {
    pub(super) at: Timestamp,
    pub(super) origin: Origin,
    pub(super) tokens: Vec<String>,
    pub(super) reason: String,
}

/// What is handed out together.
pub(super) enum Line {
    /// `goes_on`: the next line has more rows of this moment.
    Rows {
        origin: Origin,
        rows: Vec<Row>,
        goes_on: bool,
    },
    Break(Break),
    Opening {
        origin: Origin,
        books: Vec<FeedUpdate>,
    },
}

/// What a replay needs of a sidecar.
pub(super) struct Facts {
    pub(super) digest: [u8; 32],
    /// Of the Parquet file, and its bytes.
    parquet: [u8; 32],
    bytes: u64,
    gaps: Vec<(Timestamp, Vec<String>, String)>,
}

impl Making {
    /// Settings that replay all markets, without a selection.
    pub(super) fn of(settings: &Settings) -> Making {
        Making {
            wanted: None,
            cache: settings.cache.clone(),
            cache_bytes: settings.cache_bytes,
            room: Room::of(settings.free_bytes_min),
            own_cache: None,
            // An hour is merged while the next one is sorted.
            memory_bytes: settings.memory_bytes / 2,
        }
    }

    /// Brings an hour into order. `follows`: the next hour of the recording.
    pub(super) fn hour(&self, hour: u32, files: &[PathBuf], follows: Option<u32>, stop: &Stop) -> Result<Hour, String> {
        let mut made = Hour { is_selection: self.wanted.is_some(), ..Hour::empty() };
        let (mut breaks, mut parts) = (Vec::new(), Vec::new());
        for path in files {
            let (origin, facts) = (origin_of_name(path), sidecar(path));
            let Ordered { rows, markets } = self.ordered(path, facts.as_ref(), files.len(), stop)?;
            parts.push((None, rows));
            made.origins.extend(markets.keys().map(|market| (*market, origin)));
            made.markets.extend(markets);
            let index = TimeIndex::open(&index_path(path)).ok();
            let is_own = |index: &TimeIndex| facts.as_ref().is_some_and(|facts| facts.parquet == index.parquet());
            made.indexes.extend(index.filter(is_own).map(|index| (origin, index)));
            let gaps = facts.map(|facts| facts.gaps).unwrap_or_default();
            breaks.extend(gaps.into_iter().map(|(at, tokens, reason)| Break { at, origin, tokens, reason }));
        }
        if let Some(follows) = follows.filter(|follows| *follows != hour + 1) {
            let reason = format!("no hour from {} to {}", hour_text(hour + 1), hour_text(follows - 1));
            breaks.extend(files.iter().map(|path| Break {
                at: Timestamp::of_hour(hour + 1),
                origin: origin_of_name(path),
                tokens: Vec::new(),
                reason: reason.clone(),
            }));
        }
        breaks.sort_by_key(|gap| gap.at);
        made.breaks = breaks.into();
        made.rows = Some(Merged::of(parts).map_err(|error| error.to_string())?);
        made.fill();
        Ok(made)
    }

    /// The rows of a file in order: those that are kept, or else sorted now and kept.
    fn ordered(&self, path: &Path, facts: Option<&Facts>, files: usize, stop: &Stop) -> Result<Ordered, String> {
        let origin = origin_of_name(path);
        // Without a sidecar the digest is not known.
        let parquet = facts.filter(|facts| facts.is_of(path)).map(|facts| facts.parquet);
        if let Some(parquet) = parquet {
            if let Some(kept) = self.kept(parquet) {
                return Ok(self.of_kept(kept, origin));
            }
            // Only a whole hour is kept, and only if there is room.
            let has_room =
                || self.has_room().inspect_err(|error| tracing::debug!(%error, "an hour is not kept")).is_ok();
            if self.wanted.is_none() && has_room() {
                let sorted = self.sorted(path, files, stop)?;
                match self.keep(parquet, sorted) {
                    Ok(Some(kept)) => return Ok(self.of_kept(kept, origin)),
                    Ok(None) => {}
                    Err(error) => tracing::debug!(%error, "an hour in order of time is not kept"),
                }
            }
        }
        self.sorted(path, files, stop)
    }

    fn sorted(&self, path: &Path, files: usize, stop: &Stop) -> Result<Ordered, String> {
        const ROWS_BETWEEN_CHECKS: u64 = 4_096;
        let text = |error: archive::Error| error.to_string();
        let (origin, mut finder) = (origin_of_name(path), Finder::default());
        let mut sorter = Sorter::new(Order::Time, &self.cache, self.memory_bytes / files.max(1) as u64);
        let file = HourFile::open(path).map_err(text)?;
        for row in file.rows(0..file.row_count()) {
            let (number, row) = row.map_err(text)?;
            if number % ROWS_BETWEEN_CHECKS == 0 && stop.is_set() {
                return Err("the replay was ended".into());
            }
            if self.is_wanted(&row.market) {
                finder.note(&row, origin);
                sorter.push(&row).map_err(text)?;
            }
        }
        Ok(Ordered { rows: sorter.finish().map_err(text)?, markets: finder.markets })
    }

    /// The rows that are kept of a file; a damaged one is removed.
    fn kept(&self, parquet: [u8; 32]) -> Option<Kept> {
        [Some(&self.cache), self.own_cache.as_ref()].into_iter().flatten().find_map(|folder| {
            Kept::open(folder, parquet).unwrap_or_else(|error| {
                tracing::warn!(%error, "an hour is brought into order of time again");
                if let Err(error) = Kept::remove(folder, parquet) {
                    tracing::debug!(%error, "a damaged file of the cache stays");
                }
                None
            })
        })
    }

    /// Keeps rows, and opens them again.
    fn keep(&self, parquet: [u8; 32], Ordered { rows, markets }: Ordered) -> Result<Option<Kept>, SealError> {
        let coarsest = TickSize(100);
        keep(&self.cache, parquet, rows, |market| markets.get(market).map_or(coarsest, |found| found.tick))?;
        let kept = Kept::open(&self.cache, parquet);
        // One that is open can be read even if it is removed.
        Kept::trim(&self.cache, self.cache_bytes)?;
        Ok(kept?)
    }

    /// Whether another hour may be kept.
    fn has_room(&self) -> Result<(), SealError> {
        fs::create_dir_all(&self.cache).map_err(|error| SealError::Io(self.cache.clone(), error))?;
        self.room.check(&self.cache)
    }

    fn of_kept(&self, kept: Kept, origin: Origin) -> Ordered {
        let mut markets: BTreeMap<Condition, Found> = BTreeMap::new();
        for (market, token, tick) in kept.tokens.into_iter().filter(|(market, ..)| self.is_wanted(market)) {
            let found = markets.entry(market).or_insert_with(|| Found::of(origin));
            found.tokens.insert(token);
            found.tick = tick;
        }
        Ordered { rows: kept.rows, markets }
    }

    /// Keeps the rows of a file in order of time, if they are not kept yet. Returns whether they were not.
    pub(super) fn fill_cache(&self, path: &Path, stop: &Stop) -> Result<bool, String> {
        let facts = sidecar(path).filter(|facts| facts.is_of(path));
        let parquet = facts.ok_or_else(|| format!("{}: it has no good sidecar", path.display()))?.parquet;
        if self.kept(parquet).is_some() {
            return Ok(false);
        }
        self.has_room().map_err(|error| error.to_string())?;
        let sorted = self.sorted(path, 1, stop)?;
        self.keep(parquet, sorted).map(|_| true).map_err(|error| error.to_string())
    }

    fn is_wanted(&self, market: &Condition) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.contains(market))
    }
}

impl Merged {
    fn of(parts: Vec<(Option<Row>, Sorted)>) -> Result<Merged, archive::Error> {
        let mut merged = Merged(parts);
        for (ahead, rows) in &mut merged.0 {
            *ahead = rows.next().transpose()?;
        }
        Ok(merged)
    }

    /// The next row: the earliest one, of several the one of the first market.
    fn next(&mut self) -> Result<Option<Row>, archive::Error> {
        let key = |ahead: &Option<Row>| ahead.as_ref().map(|row| (row.received, row.market));
        let part = self.0.iter_mut().filter(|(ahead, _)| ahead.is_some()).min_by_key(|(ahead, _)| key(ahead));
        let Some((ahead, rows)) = part else { return Ok(None) };
        let row = ahead.take();
        *ahead = rows.next().transpose()?;
        Ok(row)
    }
}

impl Hour {
    fn empty() -> Hour {
        Hour {
            rows: None,
            ahead: None,
            group: Vec::new(),
            breaks: VecDeque::new(),
            indexes: Vec::new(),
            openings: VecDeque::new(),
            markets: BTreeMap::new(),
            origins: BTreeMap::new(),
            is_selection: false,
            unreadable: None,
            failed: None,
        }
    }

    /// An hour that cannot be read: the books of its venues are unknown from its begin.
    fn unreadable(hour: u32, files: &[PathBuf], reason: String) -> Hour {
        let mut made = Hour::empty();
        let origins: BTreeSet<_> = files.iter().map(|path| origin_of_name(path).name()).collect();
        made.breaks = origins
            .into_iter()
            .filter_map(Origin::named)
            .map(|origin| Break {
                at: Timestamp::of_hour(hour),
                origin,
                tokens: Vec::new(),
                reason: "the hour cannot be read".into(),
            })
            .collect();
        made.unreadable = Some(reason);
        made
    }

    /// Prepares the books at its begin that a replay does not have: it begins with this hour, or a token was silent.
    pub(super) fn open(&mut self, wanted: Option<&HashSet<Condition>>, is_known: impl Fn(&str) -> bool) {
        let mut openings = VecDeque::new();
        for (origin, index) in std::mem::take(&mut self.indexes) {
            let mut books = Vec::new();
            let tokens = index.tokens().filter(|rows| wanted.is_none_or(|wanted| wanted.contains(&rows.market)));
            for rows in tokens.filter(|rows| !is_known(&rows.token)) {
                // An index that is damaged has no book to offer.
                let Some(book) = index.opening_state(&rows.market, &rows.token).ok().flatten() else { continue };
                let View { bids, asks, .. } = book.view();
                let venue_ts = book.snapshot_received();
                books.push(FeedUpdate::BookSnapshot {
                    token: rows.token.as_str().into(),
                    bids,
                    asks,
                    venue_ts,
                    hash: None,
                });
            }
            if !books.is_empty() {
                openings.push_back((origin, books));
            }
        }
        self.openings = openings;
    }

    /// Time of the next line.
    pub(super) fn at(&self) -> Option<Timestamp> {
        let rows = self.group.first().map(|row| row.received);
        let gap = self.breaks.front().map(|gap| gap.at);
        rows.into_iter().chain(gap).min()
    }

    /// The next line. A break comes before rows of the same time: a snapshot among them ends it.
    pub(super) fn take(&mut self) -> Option<Line> {
        if let Some((origin, books)) = self.openings.pop_front() {
            return Some(Line::Opening { origin, books });
        }
        let rows_at = self.group.first().map(|row| row.received);
        if self.breaks.front().is_some_and(|gap| rows_at.is_none_or(|rows| gap.at <= rows)) {
            return self.breaks.pop_front().map(Line::Break);
        }
        let rows = std::mem::take(&mut self.group);
        let first = rows.first()?;
        let is_same = |ahead: &Row| (ahead.received, ahead.market) == (first.received, first.market);
        let goes_on = self.ahead.as_ref().is_some_and(is_same);
        let origin = *self.origins.get(&first.market)?;
        Some(Line::Rows { origin, rows, goes_on })
    }

    /// Takes the vector of a line back, and reads the next line into it.
    pub(super) fn give_back(&mut self, mut rows: Vec<Row>) {
        rows.clear();
        self.group = rows;
        self.fill();
    }

    /// Reads the rows of the next line.
    fn fill(&mut self) {
        let Some(rows) = &mut self.rows else { return };
        self.group.extend(self.ahead.take());
        let mut weight = self.group.first().map_or(0, weight_of);
        loop {
            match rows.next() {
                // A kept file has all markets.
                Ok(Some(row)) if self.is_selection && !self.origins.contains_key(&row.market) => {}
                Ok(Some(row)) => {
                    weight += weight_of(&row);
                    let is_other = |first: &Row| (first.received, first.market) != (row.received, row.market);
                    if self.group.first().is_some_and(|first| is_other(first) || weight > LINE_WEIGHT_MAX) {
                        self.ahead = Some(row);
                        return;
                    }
                    self.group.push(row);
                }
                Err(error) => {
                    self.failed = Some(error.to_string());
                    // The rest is lost; the books stay as they are until the next hour, but are not trusted.
                    let at = self.group.last().map(|row| row.received).unwrap_or_default();
                    let origins: BTreeSet<_> = self.origins.values().map(|origin| origin.name()).collect();
                    let lost = origins.into_iter().filter_map(Origin::named).map(|origin| Break {
                        at,
                        origin,
                        tokens: Vec::new(),
                        reason: "the rest of the hour cannot be read".into(),
                    });
                    self.breaks = lost.collect();
                    self.rows = None;
                    return;
                }
                Ok(None) => {
                    self.rows = None;
                    return;
                }
            }
        }
    }
}

/// A row counts one, and one for each level of a book.
fn weight_of(row: &Row) -> usize {
    match &row.event {
        Event::Book { bids, asks } => 1 + bids.len() + asks.len(),
        _ => 1,
    }
}

/// An hour that another thread brings into order.
pub(super) struct Coming {
    stop: Stop,
    thread: Option<JoinHandle<Hour>>,
    hour: u32,
    files: Vec<PathBuf>,
}

impl Coming {
    pub(super) fn start(making: Arc<Making>, hour: u32, files: Vec<PathBuf>, follows: Option<u32>) -> Coming {
        let stop = Stop::new();
        let (stopping, of) = (stop.clone(), files.clone());
        let body = move || {
            let made = making.hour(hour, &of, follows, &stopping);
            made.unwrap_or_else(|reason| Hour::unreadable(hour, &of, reason))
        };
        let thread = std::thread::Builder::new().name("archive-hour".into()).spawn(body).ok();
        Coming { stop, thread, hour, files }
    }

    /// The hour; waits for it.
    pub(super) fn wait(mut self) -> Hour {
        let made = self.thread.take().and_then(|thread| thread.join().ok());
        made.unwrap_or_else(|| Hour::unreadable(self.hour, &self.files, "its thread failed".into()))
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // A panic was logged by its hook; the hour is not needed any more.
            let _ = thread.join();
        }
    }
}

impl Facts {
    /// Whether the file has the bytes that the sidecar states.
    fn is_of(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|file| file.len() == self.bytes)
    }
}

/// The facts of the sidecar beside a file; `None` without one, or if it is damaged.
pub(super) fn sidecar(path: &Path) -> Option<Facts> {
    let sidecar = Sidecar::read(&sidecar_path(path)).ok()?;
    let digest = |text: &str| Some(Condition::parse(&format!("0x{text}"))?.0);
    let (parquet, digest) = (digest(&sidecar.parquet.sha256)?, digest(&sidecar.digest)?);
    let gap = |gap: Gap| (Timestamp::from_millis(gap.from), gap.tokens.unwrap_or_default(), gap.reason);
    let bytes = sidecar.parquet.bytes;
    Some(Facts { digest, parquet, bytes, gaps: sidecar.gaps.into_iter().map(gap).collect() })
}
