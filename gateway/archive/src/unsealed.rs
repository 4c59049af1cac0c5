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
    /// Bytes of anchors at which some are dropped.
    thin_at: usize,
}

#[derive(Default)]
struct HourRows {
    tokens: AHashMap<(Condition, Arc<str>), TokenRows>,
    gaps: Vec<Gap>,
    spool: Spool,
}

/// Blocks of rows and some anchors in a file without a name, which the system removes when it is closed.
#[derive(Default)]
struct Spool {
    file: Option<File>,
    bytes: u64,
}

/// The rows of a token in an hour. Times are in milliseconds.
struct TokenRows {
    first: u64,
    last: u64,
    /// The book after the last row, and the repetitions that it had counted at the begin of the hour.
    folded: Folded,
    deduped_before: u32,
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
    anchor: Anchor,
}

enum Anchor {
    Memory(Box<[u8]>),
    /// Place and bytes in the file.
    Spool(u64, u32),
    Dropped,
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
        let thin_at = bounds.anchors_bytes;
        Ok(Unsealed { store, venue, bounds, hours, folder, blocks_bytes: 0, anchors_bytes: 0, thin_at })
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
        if self.anchors_bytes > self.thin_at {
            self.thin()?;
        }
        Ok(())
    }

    /// Puts the first anchor of each token into the file, and drops every second one of the others. What is left are
    /// few, and the books before the rows that are in no block yet. It is done again at twice their bytes: otherwise many
    /// large books would have it done for each row.
    fn thin(&mut self) -> Result<(), Error> {
        for HourRows { tokens, spool, .. } in self.hours.values_mut() {
            for of in tokens.values_mut() {
                for (number, block) in of.blocks.iter_mut().enumerate() {
                    if number == 0
                        && let Anchor::Memory(anchor) = &block.anchor
                    {
                        block.anchor = Anchor::Spool(spool.append(anchor, &self.folder)?, anchor.len() as u32);
                    }
                }
                let in_memory = of.blocks.iter_mut().filter(|block| matches!(block.anchor, Anchor::Memory(_)));
                in_memory.step_by(2).for_each(|block| block.anchor = Anchor::Dropped);
            }
        }
        self.count_anchors();
        Ok(())
    }

    fn count_anchors(&mut self) {
        let tokens = self.hours.values().flat_map(|hour| hour.tokens.values());
        self.anchors_bytes = tokens.map(TokenRows::anchors_bytes).sum();
        self.thin_at = self.bounds.anchors_bytes.max(self.anchors_bytes.saturating_mul(2));
    }

    /// Replaces the gaps of an hour.
    pub fn set_gaps(&mut self, hour: u32, gaps: Vec<Gap>) {
        self.hours.entry(hour).or_default().gaps = gaps;
    }

    /// Drops the hours before this one: they are made.
    pub fn forget_before(&mut self, hour: u32) {
        self.hours = self.hours.split_off(&hour);
        let tokens = self.hours.values().flat_map(|hour| hour.tokens.values());
        self.blocks_bytes = tokens.map(|of| of.rows.len()).sum();
        self.count_anchors();
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
        // Repetitions are those of the hour.
        let (folded, deduped) = match self.folded(hour.0, &key, at.millis())? {
            Some(folded) => {
                let of = self.hours.get(&hour.0).and_then(|rows| rows.tokens.get(&key));
                let before = of.map_or(0, |of| of.deduped_before);
                let deduped = folded.deduped().saturating_sub(before);
                (Some(folded), deduped)
            }
            None => (self.carried(hour.0, &key, at.millis())?, 0),
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
            deduped,
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
            deduped_before: folded.deduped(),
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
        let anchor = Anchor::Memory(std::mem::take(&mut self.before));
        self.blocks.push(Block { at, bytes, first: self.rows_first, anchor });
        self.rows = Vec::new();
        Ok(())
    }

    fn anchors_bytes(&self) -> usize {
        let bytes = |block: &Block| match &block.anchor {
            Anchor::Memory(anchor) => anchor.len(),
            Anchor::Spool(..) | Anchor::Dropped => 0,
        };
        self.blocks.iter().map(bytes).sum::<usize>() + self.before.len()
    }

    /// The book after the last row until a moment that is not before the first one.
    fn at(&self, at: u64, spool: &Spool) -> io::Result<Folded> {
        let is_last = !self.rows.is_empty() && self.rows_first <= at;
        let end = self.blocks.partition_point(|block| block.first <= at);
        let from = match is_last {
            true => end,
            false => {
                let has_anchor = |block: &Block| !matches!(block.anchor, Anchor::Dropped);
                self.blocks[..end].iter().rposition(has_anchor).unwrap_or(0)
            }
        };
        let mut bytes = Vec::new();
        let anchor = match self.blocks.get(from).map(|block| &block.anchor) {
            _ if is_last => &self.before[..],
            Some(Anchor::Memory(anchor)) => &anchor[..],
            Some(Anchor::Spool(place, len)) => {
                bytes.resize(*len as usize, 0);
                spool.read(&mut bytes, *place)?;
                &bytes[..]
            }
            Some(Anchor::Dropped) | None => &[],
        };
        let mut folded = Folded::read(anchor).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Event;
    use crate::store::Settings;
    use crate::testing::{Chance, HOUR, condition, row, token};
    use engine::amount::{Price, Qty};

    /// The first anchors of many tokens are larger than the bound: the others are dropped now and then, not for each row.
    #[test]
    fn many_large_first_books() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Arc::new(Store::open(folder.path(), Settings::default()).expect("opened"));
        let bounds = Bounds { block_bytes: 400, blocks_bytes: 1 << 20, anchors_bytes: 1_000 };
        let mut unsealed = Unsealed::new(store, "polymarket", bounds).expect("opened");
        let (mut chance, mut folds) = (Chance::seeded(90), BTreeMap::new());
        let (mut thinned, mut last) = (0, 0);
        let mut moments = Vec::new();
        for number in 0..4_000u64 {
            let mut row = row(&mut chance, 1, 1);
            row.market = condition(number % 40);
            row.token = token(number % 40, 0);
            row.received = Timestamp::of_hour(HOUR).plus(number * 1_000);
            row.source = row.received;
            if number < 40 {
                let level = |price: u16| (Price(price), Qty(9));
                row.event = Event::Book { bids: (1..50).map(level).collect(), asks: (60..90).map(level).collect() };
            }
            unsealed.push(&row).expect("pushed");
            let folded: &mut Folded = folds.entry(row.market).or_default();
            folded.apply(row.received, row.source, &row.event);
            if number % 7 == 0 {
                moments.push((row.market, row.token.clone(), row.received, folded.view()));
            }
            // After the dropping less is left than before the row.
            thinned += usize::from(unsealed.anchors_bytes < last);
            last = unsealed.anchors_bytes;
            assert!(unsealed.anchors_bytes <= unsealed.thin_at);
        }
        assert!((1..200).contains(&thinned), "{thinned}");
        let blocks = unsealed.hours.values().flat_map(|hour| hour.tokens.values()).flat_map(|of| of.blocks.first());
        assert!(blocks.clone().any(|block| matches!(block.anchor, Anchor::Spool(..))));
        assert!(blocks.into_iter().all(|block| !matches!(block.anchor, Anchor::Dropped)));
        for (market, token, at, expected) in &moments {
            let found = unsealed.book_at(market, token, *at).expect("read").expect("a book");
            assert_eq!((&found.bids, &found.asks), (&expected.bids, &expected.asks));
        }
        println!("large first books: {} cases, dropped {thinned} times", moments.len());
    }
}
