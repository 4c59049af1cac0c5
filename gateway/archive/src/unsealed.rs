//! Hours that are still being written, or that are over and not made yet: the book of a token at a moment, and which
//! markets they have (gateway/docs/archive.md §9).
//!
//! The rows of each token are in blocks, most of them in a file without a name. Before a block is an anchor, the folded
//! book at its begin; if the anchors take too much memory, every second one is dropped. A moment then needs one block, or
//! a few.

use crate::error::{Error, Named};
use crate::files;
use crate::fold::Folded;
use crate::index::Carried as _;
use crate::row::{Condition, Row};
use crate::sidecar::Gap;
use crate::sort::record;
use crate::store::{CACHE, CARRY_HOURS_MAX, Store};
use crate::varint::{Reader, put};
use ahash::AHashMap;
use engine::backtest::{ArchivedBook, Confidence, Hour, HourState, Verdict};
use engine::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bounds of memory. Beside them each token has its last book.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of rows of one token that are not in the file yet, and of all tokens.
    pub block_bytes: usize,
    pub blocks_bytes: usize,
    /// Bytes of anchors.
    pub anchors_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { block_bytes: 64 << 10, blocks_bytes: 32 << 20, anchors_bytes: 64 << 20 }
    }
}

/// The hours of a venue that are not made yet.
pub struct Unsealed {
    store: Arc<Store>,
    venue: String,
    bounds: Bounds,
    hours: BTreeMap<u32, HourRows>,
    /// Folder of the files of blocks.
    folder: PathBuf,
    blocks_bytes: usize,
    anchors_bytes: usize,
}

#[derive(Default)]
struct HourRows {
    tokens: AHashMap<(Condition, Arc<str>), TokenRows>,
    gaps: Vec<Gap>,
    spool: Spool,
}

/// Blocks of rows in a file without a name, which the system removes when it is closed.
#[derive(Default)]
struct Spool {
    file: Option<File>,
    bytes: u64,
}

/// The rows of a token in an hour. Times are in milliseconds.
struct TokenRows {
    first: u64,
    last: u64,
    /// The book after the last row.
    folded: Folded,
    blocks: Vec<Block>,
    /// Rows after the last block, and the book before them.
    rows: Vec<u8>,
    rows_first: u64,
    before: Box<[u8]>,
}

struct Block {
    at: u64,
    bytes: u32,
    /// Receipt of its first row.
    first: u64,
    /// The folded book before it. The first block always has one.
    anchor: Option<Box<[u8]>>,
}

impl Unsealed {
    /// Without hours.
    ///
    /// # Errors
    /// The system's.
    pub fn new(store: Arc<Store>, venue: &str, bounds: Bounds) -> Result<Unsealed, Error> {
        let folder = store.root().join(CACHE);
        fs::create_dir_all(&folder).of(&folder)?;
        let (hours, venue) = (BTreeMap::new(), venue.to_owned());
        Ok(Unsealed { store, venue, bounds, hours, folder, blocks_bytes: 0, anchors_bytes: 0 })
    }

    /// Adds a row. Those of a token come in the order of receipt.
    ///
    /// # Errors
    /// The hour before cannot be read, or the file cannot be written.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        let (hour, received) = (row.received.hour(), row.received.millis());
        let key = (row.market, row.token.clone());
        let is_known = self.hours.get(&hour).is_some_and(|rows| rows.tokens.contains_key(&key));
        let begins = if is_known { None } else { Some(self.carried(hour, &key, u64::MAX)?.unwrap_or_default()) };
        let HourRows { tokens, spool, .. } = self.hours.entry(hour).or_default();
        let of = tokens.entry(key.clone()).or_insert_with(|| TokenRows::new(received, begins.unwrap_or_default()));
        if of.rows.is_empty() {
            let mut before = Vec::new();
            of.folded.write(&mut before);
            (of.before, of.rows_first) = (before.into(), received);
            self.anchors_bytes += of.before.len();
        }
        let len = of.rows.len();
        put(&mut of.rows, received);
        record::write(row, &mut of.rows);
        of.folded.apply(row.received, row.source, &row.event);
        of.last = received;
        self.blocks_bytes += of.rows.len() - len;
        if of.rows.len() >= self.bounds.block_bytes {
            self.blocks_bytes -= of.rows.len();
            of.end_block(spool, &self.folder)?;
        }
        if self.blocks_bytes >= self.bounds.blocks_bytes {
            self.blocks_bytes = 0;
            for HourRows { tokens, spool, .. } in self.hours.values_mut() {
                for of in tokens.values_mut().filter(|of| !of.rows.is_empty()) {
                    of.end_block(spool, &self.folder)?;
                }
            }
        }
        if self.anchors_bytes > self.bounds.anchors_bytes {
            self.thin();
        }
        Ok(())
    }

    /// Drops every second anchor, but the first of each token.
    fn thin(&mut self) {
        for of in self.hours.values_mut().flat_map(|hour| hour.tokens.values_mut()) {
            let anchors = of.blocks.iter_mut().filter(|block| block.anchor.is_some());
            for block in anchors.skip(1).step_by(2) {
                self.anchors_bytes -= block.anchor.take().map_or(0, |anchor| anchor.len());
            }
        }
    }

    /// Replaces the gaps of an hour.
    pub fn set_gaps(&mut self, hour: u32, gaps: Vec<Gap>) {
        self.hours.entry(hour).or_default().gaps = gaps;
    }

    /// Drops the hours before this one: they are made.
    pub fn forget_before(&mut self, hour: u32) {
        self.hours = self.hours.split_off(&hour);
        let tokens = || self.hours.values().flat_map(|hour| hour.tokens.values());
        self.blocks_bytes = tokens().map(|of| of.rows.len()).sum();
        self.anchors_bytes = tokens().map(TokenRows::anchors_bytes).sum();
    }

    /// The hours that have rows or gaps.
    pub fn range(&self) -> Range<Hour> {
        let first = self.hours.first_key_value().map_or(0, |(hour, _)| *hour);
        let end = self.hours.last_key_value().map_or(0, |(hour, _)| hour + 1);
        Hour(first)..Hour(end)
    }

    /// Bytes of anchors and of rows in memory.
    pub fn memory(&self) -> usize {
        self.anchors_bytes + self.blocks_bytes
    }

    /// The book of a token at a moment of these hours; `None`: it is not known.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn book_at(&self, market: &Condition, token: &str, at: Timestamp) -> Result<Option<ArchivedBook>, Error> {
        let hour = Hour::of(at);
        if !self.range().contains(&hour) {
            return Ok(None);
        }
        let key = (*market, Arc::<str>::from(token));
        let folded = match self.folded(hour.0, &key, at.millis())? {
            Some(folded) => Some(folded),
            None => self.carried(hour.0, &key, at.millis())?,
        };
        let Some(folded) = folded.filter(Folded::is_known) else { return Ok(None) };
        let view = folded.view();
        let since = folded.snapshot_received().millis();
        let is_stale = self.hours.range(..=hour.0).any(|(_, of)| of.has_gap(token, since, at.millis()));
        Ok(Some(ArchivedBook {
            bids: view.bids,
            asks: view.asks,
            last_message: folded.last_received(),
            hour,
            verdict: Verdict::Partial,
            confidence: Confidence::of(Verdict::Partial, false),
            is_stale,
            crossed_dropped: view.crossed_dropped,
            deduped: folded.deduped(),
        }))
    }

    /// The states of a market in a range of hours.
    pub fn hours(&self, market: &Condition, range: Range<Hour>) -> Vec<HourState> {
        let has_rows = |rows: &HourRows| rows.tokens.keys().any(|(of, _)| of == market);
        let within = self.hours.iter().filter(|(hour, _)| range.contains(&Hour(**hour)));
        let state = |hour: u32| HourState::new(Hour(hour), Verdict::Partial, false);
        within.filter(|(_, rows)| has_rows(rows)).map(|(hour, _)| state(*hour)).collect()
    }

    /// The tokens of a market in these hours.
    pub fn tokens(&self, market: &Condition) -> BTreeSet<Arc<str>> {
        let all = self.hours.values().flat_map(|rows| rows.tokens.keys());
        all.filter(|(of, _)| of == market).map(|(_, token)| token.clone()).collect()
    }

    /// The book of a token after its last row of an hour until a moment; `None`: it has none until then.
    fn folded(&self, hour: u32, key: &(Condition, Arc<str>), at: u64) -> Result<Option<Folded>, Error> {
        let Some(rows) = self.hours.get(&hour) else { return Ok(None) };
        let Some(of) = rows.tokens.get(key) else { return Ok(None) };
        if at < of.first {
            return Ok(None);
        }
        if of.last <= at {
            return Ok(Some(of.folded.clone()));
        }
        of.at(at, &rows.spool).of(&self.folder).map(Some)
    }

    /// The book that the hours before this one ended with, as that of hours that are made (`Store`): of the latest hour
    /// with rows of the token, if there was no gap since.
    fn carried(&self, hour: u32, key: &(Condition, Arc<str>), at: u64) -> Result<Option<Folded>, Error> {
        let (market, token) = key;
        for back in 1..=CARRY_HOURS_MAX {
            let Some(before) = hour.checked_sub(back) else { return Ok(None) };
            let Some(rows) = self.hours.get(&before) else {
                // Made, or not there.
                return self.store.books_before(&self.venue, Hour(before + 1)).carried(market, token);
            };
            match self.folded(before, key, at)? {
                Some(folded) => {
                    let is_sound =
                        folded.is_known() && !rows.has_gap(token, folded.snapshot_received().millis(), u64::MAX);
                    return Ok(is_sound.then_some(folded));
                }
                None if rows.has_gap(token, 0, u64::MAX) => return Ok(None),
                None => {}
            }
        }
        Ok(None)
    }
}

impl HourRows {
    fn has_gap(&self, token: &str, since: u64, until: u64) -> bool {
        self.gaps.iter().any(|gap| gap.begins_within(token, since, until))
    }
}

impl TokenRows {
    fn new(first: u64, folded: Folded) -> TokenRows {
        TokenRows {
            first,
            last: first,
            folded,
            blocks: Vec::new(),
            rows: Vec::new(),
            rows_first: first,
            before: Box::default(),
        }
    }

    /// Writes the rows as a block.
    fn end_block(&mut self, spool: &mut Spool, folder: &Path) -> Result<(), Error> {
        let at = spool.append(&self.rows, folder)?;
        let bytes = self.rows.len() as u32;
        let anchor = Some(std::mem::take(&mut self.before));
        self.blocks.push(Block { at, bytes, first: self.rows_first, anchor });
        self.rows = Vec::new();
        Ok(())
    }

    fn anchors_bytes(&self) -> usize {
        let anchors = self.blocks.iter().filter_map(|block| block.anchor.as_ref());
        anchors.map(|anchor| anchor.len()).sum::<usize>() + self.before.len()
    }

    /// The book after the last row until a moment that is not before the first one.
    fn at(&self, at: u64, spool: &Spool) -> io::Result<Folded> {
        let is_last = !self.rows.is_empty() && self.rows_first <= at;
        let end = self.blocks.partition_point(|block| block.first <= at);
        let from = match is_last {
            true => end,
            false => self.blocks[..end].iter().rposition(|block| block.anchor.is_some()).unwrap_or(0),
        };
        let anchor = if is_last { Some(&self.before) } else { self.blocks.get(from).and_then(|of| of.anchor.as_ref()) };
        let mut folded = anchor.and_then(|anchor| Folded::read(anchor)).unwrap_or_default();
        let mut bytes = Vec::new();
        for block in &self.blocks[from..end] {
            bytes.resize(block.bytes as usize, 0);
            spool.read(&mut bytes, block.at)?;
            fold(&mut folded, &bytes, at);
        }
        if is_last {
            fold(&mut folded, &self.rows, at);
        }
        Ok(folded)
    }
}

/// Applies the rows until a moment.
fn fold(folded: &mut Folded, rows: &[u8], at: u64) {
    let mut left = rows;
    while !left.is_empty() {
        let mut reader = Reader::new(left);
        let Some(received) = reader.number().filter(|received| *received <= at) else { return };
        let rest = reader.rest();
        let row = record::at(rest, 0);
        let received = Timestamp::from_millis(received);
        let (source, event) = record::read(row, received);
        folded.apply(received, source, &event);
        left = &rest[record::HEAD_BYTES + row.len()..];
    }
}

/// A name that no other spool has at the moment.
fn spool_path(folder: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    files::making_path(&folder.join(format!("unsealed-{}-{number}", std::process::id())))
}

impl Spool {
    /// Appends a block; returns its place.
    fn append(&mut self, block: &[u8], folder: &Path) -> Result<u64, Error> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(files::unnamed(&spool_path(folder))?),
        };
        file.write_all_at(block, self.bytes).of(folder)?;
        let at = self.bytes;
        self.bytes += block.len() as u64;
        Ok(at)
    }

    fn read(&self, block: &mut [u8], at: u64) -> io::Result<()> {
        match &self.file {
            Some(file) => file.read_exact_at(block, at),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}
