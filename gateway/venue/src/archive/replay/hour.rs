//! One hour in order of time.

use crate::FeedUpdate;
use crate::archive::hours::{hour_text, origin_of_name};
use crate::archive::markets::{Finder, Found};
use crate::tape::Origin;
use archive::fold::View;
use archive::index::TimeIndex;
use archive::read::HourFile;
use archive::row::{Condition, Row};
use archive::sidecar::{Gap, Sidecar};
use archive::sort::{Order, Sorted, Sorter};
use archive::store::{index_path, sidecar_path};
use engine::time::Timestamp;
use host::thread::Stop;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// How hours are brought into order.
pub(super) struct Making {
    /// The markets to keep; `None`: all.
    pub(super) wanted: Option<HashSet<Condition>>,
    pub(super) cache: PathBuf,
    pub(super) memory_bytes: u64,
}

/// An hour in order of time.
pub(super) struct Hour {
    rows: Option<Sorted>,
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
    Rows { origin: Origin, rows: Vec<Row> },
    Break(Break),
    Opening { origin: Origin, books: Vec<FeedUpdate> },
}

/// What a replay needs of a sidecar.
pub(super) struct Facts {
    pub(super) digest: [u8; 32],
    parquet: [u8; 32],
    gaps: Vec<(Timestamp, Vec<String>, String)>,
}

impl Making {
    /// Brings an hour into order. `follows`: the next hour of the recording.
    pub(super) fn hour(&self, hour: u32, files: &[PathBuf], follows: Option<u32>, stop: &Stop) -> Result<Hour, String> {
        const ROWS_BETWEEN_CHECKS: u64 = 4_096;
        let mut sorter = Sorter::new(Order::Time, &self.cache, self.memory_bytes);
        let mut finders: Vec<(Origin, Finder)> = Vec::new();
        let (mut breaks, mut indexes) = (Vec::new(), Vec::new());
        for path in files {
            let (origin, mut finder) = (origin_of_name(path), Finder::default());
            let file = HourFile::open(path).map_err(|error| error.to_string())?;
            let rows = file.rows(0..file.row_count());
            for row in rows {
                let (number, row) = row.map_err(|error| error.to_string())?;
                if number % ROWS_BETWEEN_CHECKS == 0 && stop.is_set() {
                    return Err("the replay was ended".into());
                }
                if self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&row.market)) {
                    finder.note(&row, origin);
                    sorter.push(&row).map_err(|error| error.to_string())?;
                }
            }
            let facts = sidecar(path);
            let index = TimeIndex::open(&index_path(path)).ok();
            let is_own = |index: &TimeIndex| facts.as_ref().is_some_and(|facts| facts.parquet == index.parquet());
            indexes.extend(index.filter(is_own).map(|index| (origin, index)));
            let gaps = facts.map(|facts| facts.gaps).unwrap_or_default();
            breaks.extend(gaps.into_iter().map(|(at, tokens, reason)| Break { at, origin, tokens, reason }));
            finders.push((origin, finder));
        }
        let rows = sorter.finish().map_err(|error| error.to_string())?;
        if let Some(follows) = follows.filter(|follows| *follows != hour + 1) {
            let reason = format!("no hour from {} to {}", hour_text(hour + 1), hour_text(follows - 1));
            breaks.extend(finders.iter().map(|(origin, _)| Break {
                at: Timestamp::of_hour(hour + 1),
                origin: *origin,
                tokens: Vec::new(),
                reason: reason.clone(),
            }));
        }
        breaks.sort_by_key(|gap| gap.at);
        let mut made = Hour::empty();
        made.breaks = breaks.into();
        made.indexes = indexes;
        for (origin, finder) in finders {
            made.origins.extend(finder.markets.keys().map(|market| (*market, origin)));
            made.markets.extend(finder.markets);
        }
        made.rows = Some(rows);
        made.fill();
        Ok(made)
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
        let origin = *self.origins.get(&rows.first()?.market)?;
        Some(Line::Rows { origin, rows })
    }

    /// Takes the vector of a line back, and reads the next line into it.
    pub(super) fn give_back(&mut self, mut rows: Vec<Row>) {
        rows.clear();
        self.group = rows;
        self.fill();
    }

    /// Reads the rows of the next line.
    fn fill(&mut self) {
        let Some(sorted) = &mut self.rows else { return };
        self.group.extend(self.ahead.take());
        loop {
            match sorted.next() {
                Some(Ok(row)) => match self.group.first() {
                    Some(first) if (first.received, first.market) != (row.received, row.market) => {
                        self.ahead = Some(row);
                        return;
                    }
                    _ => self.group.push(row),
                },
                Some(Err(error)) => {
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
                None => {
                    self.rows = None;
                    return;
                }
            }
        }
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

/// The facts of the sidecar beside a file; `None` without one, or if it is damaged.
pub(super) fn sidecar(path: &Path) -> Option<Facts> {
    let sidecar = Sidecar::read(&sidecar_path(path)).ok()?;
    let digest = |text: &str| Some(Condition::parse(&format!("0x{text}"))?.0);
    let (parquet, digest) = (digest(&sidecar.parquet.sha256)?, digest(&sidecar.digest)?);
    let gap = |gap: Gap| (Timestamp::from_millis(gap.from), gap.tokens.unwrap_or_default(), gap.reason);
    Some(Facts { digest, parquet, gaps: sidecar.gaps.into_iter().map(gap).collect() })
}
