//! Sorting of rows in bounded memory: rows are kept as bytes, sorted runs of them are spilled to files, and the runs are
//! merged.
//!
//! A row takes about 30 bytes in memory, with 24 for its key, and some 10 bytes in a spilled run (blocks of ZSTD). Token
//! texts are kept once. An hour in order of time may be kept in a file (`kept.rs`).

mod kept;
mod record;
mod run;

pub use kept::{Kept, keep};

use crate::error::Error;
use crate::read::MILLIS_MAX;
use crate::row::{Condition, Row};
use ahash::AHashMap;
use engine::time::Timestamp;
use run::{Run, Runs};
use std::cmp::{Ordering, Reverse};
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// (market, token, receipt), as in the file of an hour. Ties stay in the order of arrival.
    Hour,
    /// (receipt, market), as a replay sends them. Ties stay in the order of arrival.
    Time,
}

/// Runs that are merged together; more are merged into one first.
const RUNS_MAX: usize = 48;

/// Collects rows, then yields them in order.
pub struct Sorter {
    order: Order,
    folder: PathBuf,
    memory_bytes: usize,
    names: Names,
    /// Rows as bytes, one after another, and the key and place of each.
    records: Vec<u8>,
    keys: Vec<Key>,
    rows: u64,
    runs: Vec<Run>,
    spilled_bytes: u64,
}

/// Rows in order. Spilled runs have no name in the file system, so that nothing stays after a kill.
pub struct Sorted {
    order: Order,
    names: Names,
    ranks: Vec<u32>,
    source: Source,
}

/// Receipt in milliseconds, name and bytes of a row.
type Record<'a> = (u64, u32, &'a [u8]);

/// Where sorted rows come from.
enum Source {
    Memory {
        records: Vec<u8>,
        keys: std::vec::IntoIter<Key>,
    },
    Runs {
        runs: Runs,
        next: BinaryHeap<Reverse<Next>>,
    },
    /// One run of a file that was kept, and the rows that are left in it.
    Kept {
        run: Runs,
        left: u64,
    },
}

/// The next row of a run.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    key: (u64, u64),
    run: usize,
}

/// Key and place of a row in memory.
#[derive(Clone, Copy)]
struct Key {
    received: u64,
    name: u32,
    at: usize,
}

/// The tokens of all rows, each with its market.
#[derive(Default)]
struct Names {
    all: Vec<(Condition, Arc<str>)>,
    numbers: AHashMap<(Condition, Arc<str>), u32>,
    last: u32,
    bytes: usize,
}

impl Names {
    fn number(&mut self, row: &Row) -> u32 {
        if let Some((market, token)) = self.all.get(self.last as usize)
            && *market == row.market
            && (Arc::ptr_eq(token, &row.token) || **token == *row.token)
        {
            return self.last;
        }
        let name = (row.market, row.token.clone());
        let next = self.all.len() as u32;
        let bytes = name.1.len() + 160;
        self.last = *self.numbers.entry(name.clone()).or_insert(next);
        if self.last == next {
            self.all.push(name);
            self.bytes += bytes;
        }
        self.last
    }

    /// The rank of each name: of (market, token) in the order of an hour, of the market in that of time.
    fn ranks(&self, order: Order) -> Vec<u32> {
        let mut sorted: Vec<u32> = (0..self.all.len() as u32).collect();
        sorted.sort_unstable_by(|one, other| self.all[*one as usize].cmp(&self.all[*other as usize]));
        let mut ranks = vec![0; sorted.len()];
        let (mut rank, mut last) = (0, None);
        for (place, name) in sorted.into_iter().enumerate() {
            let market = self.all[name as usize].0;
            match order {
                Order::Hour => rank = place as u32,
                Order::Time if last.is_some_and(|last| last != market) => rank += 1,
                Order::Time => {}
            }
            last = Some(market);
            ranks[name as usize] = rank;
        }
        ranks
    }
}

impl Order {
    /// A number pair with the order of the rows.
    fn key(self, received: u64, rank: u32) -> (u64, u64) {
        match self {
            Order::Hour => (rank.into(), received),
            Order::Time => (received, rank.into()),
        }
    }
}

impl Sorter {
    /// Least memory that a sorter works with.
    pub const MEMORY_MIN: u64 = 16 << 20;

    /// A sorter that spills into `folder`, which is created when needed, once it uses about `memory_bytes` (at least
    /// [`Sorter::MEMORY_MIN`]).
    pub fn new(order: Order, folder: &Path, memory_bytes: u64) -> Sorter {
        let memory_bytes = usize::try_from(memory_bytes.max(Sorter::MEMORY_MIN)).unwrap_or(usize::MAX);
        Sorter {
            order,
            folder: folder.to_owned(),
            memory_bytes,
            names: Names::default(),
            records: Vec::new(),
            keys: Vec::new(),
            rows: 0,
            runs: Vec::new(),
            spilled_bytes: 0,
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A run cannot be written.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        let name = self.names.number(row);
        self.keys.push(Key { received: row.received.millis(), name, at: self.records.len() });
        record::write(row, &mut self.records);
        self.rows += 1;
        // Vectors that grow are copied: room for that is left.
        let used = self.records.len() + self.keys.len() * size_of::<Key>();
        if used * 2 > self.memory_bytes.saturating_sub(self.names.bytes).max(self.memory_bytes / 4) {
            self.spill()?;
        }
        Ok(())
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of runs on disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled_bytes
    }

    /// All rows in order.
    ///
    /// # Errors
    /// A run cannot be written or read.
    pub fn finish(mut self) -> Result<Sorted, Error> {
        let ranks = self.names.ranks(self.order);
        if self.runs.is_empty() {
            self.sort(&ranks);
            let source = Source::Memory { records: self.records, keys: self.keys.into_iter() };
            return Ok(Sorted { order: self.order, names: self.names, ranks, source });
        }
        self.spill()?;
        self.records = Vec::new();
        self.keys = Vec::new();
        let Sorter { order, names, runs, .. } = self;
        let source = open(order, runs, &ranks)?;
        Ok(Sorted { order, names, ranks, source })
    }

    fn sort(&mut self, ranks: &[u32]) {
        let order = self.order;
        // The place makes the sort stable.
        self.keys.sort_unstable_by_key(|key| (order.key(key.received, ranks[key.name as usize]), key.at));
    }

    /// Writes the rows in memory as one run.
    fn spill(&mut self) -> Result<(), Error> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let ranks = self.names.ranks(self.order);
        self.sort(&ranks);
        let mut writer = run::Writer::create(&self.folder)?;
        for key in &self.keys {
            writer.push(key.received, key.name, record::at(&self.records, key.at))?;
        }
        self.add(writer.finish()?);
        self.keys.clear();
        self.records.clear();
        if self.runs.len() == RUNS_MAX {
            self.merge(&ranks)?;
        }
        Ok(())
    }

    fn add(&mut self, run: Run) {
        self.spilled_bytes += run.bytes();
        self.runs.push(run);
    }

    /// Merges all runs into one, which stays the first: ties keep their order.
    fn merge(&mut self, ranks: &[u32]) -> Result<(), Error> {
        let mut source = open(self.order, std::mem::take(&mut self.runs), ranks)?;
        let mut writer = run::Writer::create(&self.folder)?;
        while let Some((received, name, record)) = source.next(self.order, ranks)? {
            writer.push(received, name, record)?;
        }
        drop(source);
        let run = writer.finish()?;
        self.add(run);
        Ok(())
    }
}

fn open(order: Order, runs: Vec<Run>, ranks: &[u32]) -> Result<Source, Error> {
    let runs = Runs::open(runs)?;
    let mut next = BinaryHeap::with_capacity(runs.len());
    for run in 0..runs.len() {
        next.extend(runs.peek(run).map(|(received, name)| Reverse(Next::new(order, ranks, run, received, name))));
    }
    Ok(Source::Runs { runs, next })
}

impl Next {
    fn new(order: Order, ranks: &[u32], run: usize, received: u64, name: u32) -> Next {
        Next { key: order.key(received, ranks[name as usize]), run }
    }
}

impl Source {
    fn next(&mut self, order: Order, ranks: &[u32]) -> Result<Option<Record<'_>>, Error> {
        match self {
            Source::Memory { records, keys } => {
                Ok(keys.next().map(|key| (key.received, key.name, record::at(records, key.at))))
            }
            Source::Runs { runs, next } => {
                let Some(mut first) = next.peek_mut() else { return Ok(None) };
                let run = first.0.run;
                runs.advance(run)?;
                match runs.peek(run) {
                    Some((received, name)) => first.0 = Next::new(order, ranks, run, received, name),
                    None => drop(PeekMut::pop(first)),
                }
                Ok(Some(runs.current(run)))
            }
            Source::Kept { run, left } => match (run.peek(0), left.checked_sub(1)) {
                (None, None) => Ok(None),
                (Some(_), Some(rest)) => {
                    *left = rest;
                    run.advance(0)?;
                    Ok(Some(run.current(0)))
                }
                _ => Err(kept::damaged()),
            },
        }
    }
}

impl Iterator for Sorted {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let Sorted { order, names, ranks, source } = self;
        let is_own = !matches!(source, Source::Kept { .. });
        let (received, name, record) = match source.next(*order, ranks) {
            Ok(next) => next?,
            Err(error) => return Some(Err(error)),
        };
        let is_known = is_own || ((name as usize) < names.all.len() && received <= MILLIS_MAX as u64);
        if !is_known {
            return Some(Err(kept::damaged()));
        }
        let (market, token) = &names.all[name as usize];
        let received = Timestamp::from_millis(received);
        let (source, event) = record::read(record, received);
        if !is_own && !event.is_valid() {
            return Some(Err(kept::damaged()));
        }
        Some(Ok(Row { received, source, market: *market, token: token.clone(), event }))
    }
}

/// Whether rows have an order.
pub fn is_sorted<'a>(order: Order, rows: impl IntoIterator<Item = &'a Row>) -> bool {
    let key = |one: &Row, other: &Row| match order {
        Order::Hour => (one.market, &one.token, one.received).cmp(&(other.market, &other.token, other.received)),
        Order::Time => (one.received, one.market).cmp(&(other.received, other.market)),
    };
    let mut rows = rows.into_iter();
    let Some(mut last) = rows.next() else { return true };
    rows.all(|row| key(std::mem::replace(&mut last, row), row) != Ordering::Greater)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Chance, row};

    fn sorted(order: Order, rows: &[Row], memory: u64, runs_expected: bool) -> Vec<Row> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sorter = Sorter::new(order, &folder.path().join("cache"), memory);
        // Less memory than a sorter may have, for more runs.
        sorter.memory_bytes = memory as usize;
        rows.iter().for_each(|row| sorter.push(row).expect("pushed"));
        assert_eq!(sorter.rows(), rows.len() as u64);
        assert_eq!(sorter.spilled_bytes() > 0, runs_expected);
        let found = sorter.finish().expect("merged").collect::<Result<Vec<_>, _>>().expect("rows");
        let left = std::fs::read_dir(folder.path().join("cache")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "no file has a name");
        found
    }

    #[test]
    fn rows_are_sorted_with_ties_in_the_order_of_arrival() {
        let mut cases = 0;
        for (seed, count, memory, has_runs) in
            [(1, 0, 1 << 20, false), (2, 1, 1 << 20, false), (3, 5_000, 64 << 20, false), (4, 30_000, 1 << 19, true)]
        {
            let mut chance = Chance::seeded(seed);
            let rows: Vec<Row> = (0..count).map(|_| row(&mut chance, 5, 20)).collect();
            for order in [Order::Hour, Order::Time] {
                let mut expected = rows.clone();
                expected.sort_by(|one, other| match order {
                    Order::Hour => {
                        (one.market, &one.token, one.received).cmp(&(other.market, &other.token, other.received))
                    }
                    Order::Time => (one.received, one.market).cmp(&(other.received, other.market)),
                });
                assert!(is_sorted(order, &expected));
                assert_eq!(is_sorted(order, &rows), rows.len() < 2);
                let found = sorted(order, &rows, memory, has_runs);
                assert!(found == expected, "seed {seed}, {order:?}");
                cases += found.len().max(1);
            }
        }
        println!("sorted rows: {cases} cases");
    }

    /// More runs than are merged together: some are merged first.
    #[test]
    fn many_runs_are_merged_in_steps() {
        let mut chance = Chance::seeded(9);
        let rows: Vec<Row> = (0..40_000).map(|_| row(&mut chance, 3, 4)).collect();
        let found = sorted(Order::Time, &rows, 1 << 16, true);
        let mut expected = rows.clone();
        expected.sort_by_key(|row| (row.received, row.market));
        assert!(found == expected);
        println!("rows of many runs: {} cases", found.len());
    }
}
