//! Sizes of a stopped store, and the check of every row in it.

use crate::earlier::is_earlier;
use crate::ended::{Check, Counted, Manifest, count};
use crate::prices::candle;
use crate::row::{MARKETS_MAX, key};
use crate::store::{Size, Space, Store, StoreError, Table};
use engine::time::UtcDay;
use std::fs;
use std::path::Path;

/// The journals, in a list of damage.
const JOURNAL: &str = "journal";
/// Memory for what is read meanwhile.
const CACHE_BYTES: u64 = 8 << 20;

/// One table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSize {
    pub name: &'static str,
    pub rows: u64,
    pub markets: u64,
    /// Unix seconds of the first row and of the last one.
    pub span: Option<(u64, u64)>,
    /// Sorted files on disk; rows of the last hours are in the journal.
    pub files: usize,
    pub bytes: u64,
}

/// One table of ended rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSize {
    pub name: &'static str,
    pub rows: u64,
    pub users: u64,
    /// Rows of days that were cut and are still there.
    pub cut_rows: u64,
    pub files: usize,
    pub bytes: u64,
}

/// What a store takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub tables: Vec<TableSize>,
    /// Empty if nothing was moved yet.
    pub ended: Vec<EndedSize>,
    /// LSN up to which ended rows are there.
    pub ended_upto: Option<u64>,
    /// The first day that is kept, if earlier ones were cut.
    pub ended_from: Option<UtcDay>,
    pub journal_bytes: u64,
    /// Files of the earlier format that were not taken over.
    pub earlier_files: u64,
}

/// A defect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Or the journals, through which all tables are written.
    pub table: &'static str,
    /// The market or user whose rows are concerned; `None`: those of several.
    pub market: Option<u32>,
    pub user: Option<u64>,
    pub problem: String,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Rows that were checked. Those of days that were cut are not.
    pub rows: u64,
    /// The first day that is kept of ended rows, if earlier ones were cut.
    pub ended_from: Option<UtcDay>,
    pub damages: Vec<Damage>,
}

/// The sizes of the store in the folder of a history. The directory must be stopped and locked by the caller: the engine
/// cannot open tables without writing to them, as at a start.
///
/// # Errors
/// [`StoreError`].
pub fn sizes(folder: &Path) -> Result<Sizes, StoreError> {
    let store = Store::open_existing(folder, CACHE_BYTES)?;
    let mut tables = Vec::new();
    for table in Table::PRICES {
        let (mut rows, mut markets, mut last, mut span) = (0, 0, None, None);
        let unit = secs_of(table);
        for row in store.scan(table, [0; 8]..=[0xff; 8]) {
            let (market, time, _) = row?;
            rows += 1;
            markets += u64::from(last.replace(market) != Some(market));
            let secs = u64::from(time) * unit;
            let (from, to) = span.unwrap_or((secs, secs));
            span = Some((secs.min(from), secs.max(to)));
        }
        let Size { files, bytes } = store.size(table);
        tables.push(TableSize { name: table.name(), rows, markets, span, files, bytes });
    }
    let spaces = store.spaces()?;
    let manifest = Manifest::of(&spaces)?;
    let ended_upto = manifest.as_ref().map(|manifest| manifest.upto);
    let ended_from = manifest.as_ref().map(|manifest| manifest.kept_from).filter(|day| *day != UtcDay(0));
    let mut ended = Vec::new();
    for space in Space::ALL.into_iter().filter(|_| ended_upto.is_some()) {
        let Counted { rows, users, cut_rows } = count(&spaces, space, manifest.as_ref())?;
        let Size { files, bytes } = spaces.size(space);
        ended.push(EndedSize { name: space.name(), rows, users, cut_rows, files, bytes });
    }
    let mut earlier_files = 0;
    for entry in fs::read_dir(folder)? {
        earlier_files += u64::from(entry?.file_name().to_str().is_some_and(is_earlier));
    }
    Ok(Sizes { tables, ended, ended_upto, ended_from, journal_bytes: store.journal_bytes()?, earlier_files })
}

/// Merges the files of ended rows in the folder of a history until each table has the fewest bytes. Rewrites all of them.
/// The directory must be stopped and locked by the caller.
///
/// # Errors
/// [`StoreError`].
pub fn merge(folder: &Path) -> Result<(), StoreError> {
    Store::open_existing(folder, CACHE_BYTES)?.spaces()?.merge()
}

fn secs_of(table: Table) -> u64 {
    if table == Table::Minutes { 60 } else { 3_600 }
}

/// Reads every row of the store in the folder of a history, as [`sizes`]; the checksum of each block is checked by
/// that.
///
/// # Errors
/// [`StoreError`] if the store cannot be opened; what is wrong inside is among the damages.
pub fn check(folder: &Path) -> Result<Checked, StoreError> {
    let store = Store::open_existing(folder, CACHE_BYTES)?;
    let mut checked = Checked { rows: 0, ended_from: None, damages: Vec::new() };
    if store.cut_bytes > 0 {
        let problem = format!("{} damaged bytes were removed, and with them prices of the last hours", store.cut_bytes);
        checked.note(Damage { table: JOURNAL, market: None, user: None, problem });
    }
    let newest = store.known.newest;
    for table in Table::PRICES {
        let (mut from, mut step) = (Some(0), 1u32);
        while let Some(market) = from {
            let rows = checked.rows;
            from = checked.markets(&store, table, market, newest).and_then(|last| last.checked_add(step));
            // What is damaged may hold many markets, whose numbers are unknown.
            step = if checked.rows > rows { 1 } else { step.saturating_mul(2) };
        }
    }
    let spaces = store.spaces()?;
    let mut ended = Check::new(&spaces, |table, user, problem| {
        checked.note(Damage { table, market: None, user: user.map(|user| user.0), problem });
    });
    ended.run();
    let (rows, from) = (ended.rows, ended.from());
    checked.rows += rows;
    checked.ended_from = from;
    Ok(checked)
}

impl Checked {
    /// Checks the rows from a market on, up to an error. Returns the last market before it.
    fn markets(&mut self, store: &Store, table: Table, from: u32, newest: Option<u32>) -> Option<u32> {
        let mut last = from;
        for row in store.scan(table, key(from, 0)..=[0xff; 8]) {
            let (market, time, value) = match row {
                Ok(row) => row,
                Err(error) => {
                    self.note(Damage { table: table.name(), market: None, user: None, problem: error.to_string() });
                    return Some(last);
                }
            };
            (last, self.rows) = (market, self.rows + 1);
            let is_known = newest.is_some_and(|newest| u64::from(time) * secs_of(table) <= u64::from(newest) * 60);
            let problem = match candle(&value) {
                Err(error) => error.to_string(),
                Ok(_) if market >= MARKETS_MAX => "no market has this number".to_owned(),
                Ok(_) if !is_known => "a row is newer than the newest that is known".to_owned(),
                Ok(_) => continue,
            };
            self.note(Damage { table: table.name(), market: Some(market), user: None, problem });
        }
        None
    }

    /// Adds a defect, once for neighbours.
    fn note(&mut self, damage: Damage) {
        if self.damages.last() != Some(&damage) {
            self.damages.push(damage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{About, write_candle};
    use crate::store::{Batch, FOLDER};
    use crate::testing::copy_running;
    use engine::book::candles::{Candle, Mid};

    /// The check opens the tables, and the engine cuts a damaged journal by that: it is a problem all the same.
    #[test]
    fn a_journal_that_is_cut_is_a_problem() {
        let running = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(running.path(), CACHE_BYTES).expect("a new store");
        for minute in 0..4 {
            let mut batch = Batch::default();
            (0..50).for_each(|of| batch.put(Table::Minutes, key(of, minute), write_candle(&Candle::at(Mid(1)))));
            store.write(batch, About { newest: Some(minute), ..About::default() }).expect("written");
        }
        let journal = std::path::Path::new(FOLDER).join("0.jnl");
        let mut cases = 0;
        // Nothing, a torn end as a kill leaves it, a tag that the engine does not know, a checksum that is wrong.
        let harm = |bytes: &mut Vec<u8>, which: u32| match which {
            1 => bytes.extend_from_slice(&[1, 0, 0]),
            2 => bytes[0] = 0xee,
            3 => bytes[60] ^= 0x04,
            _ => {}
        };
        for (which, rows, is_damaged) in [(0, 200, false), (1, 200, false), (2, 0, true), (3, 0, true)] {
            let place = tempfile::tempdir().expect("a folder");
            copy_running(running.path(), place.path());
            let mut bytes = fs::read(place.path().join(&journal)).expect("a journal");
            bytes.truncate(bytes.len() - 5_000);
            harm(&mut bytes, which);
            fs::write(place.path().join(&journal), bytes).expect("written");
            let checked = check(place.path()).expect("it can be opened");
            let of: Vec<_> = checked.damages.iter().map(|damage| damage.table).collect();
            assert_eq!((checked.rows, of), (rows, if is_damaged { vec![JOURNAL] } else { Vec::new() }), "{which}");
            // It is whole from then on.
            let whole = Checked { rows, ended_from: None, damages: Vec::new() };
            assert_eq!(check(place.path()).expect("it can be opened"), whole);
            cases += 1;
        }
        println!("checks of a damaged journal: {cases} cases");
    }
}
