use super::*;
use crate::prices::{Prices, set_back};
use crate::row::write_candle;
use crate::testing::{contents, copy, damage};
use engine::book::candles::{Bucket, Grid, fold};
use std::fmt::Write as _;
use std::path::Path;

const CACHE_BYTES: u64 = 1 << 20;
/// Files that the last program of the earlier format wrote, and what it answered from them: for each market by minute
/// and by hour the start, open, high, low, close, and the shares filled of either outcome.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/files");
const ANSWERS: &str = include_str!("../../golden/answers");

fn golden() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    copy(Path::new(GOLDEN), place.path());
    place
}

fn rows(prices: &Prices, market: u32, step: u64) -> Vec<Bucket> {
    let found = prices.find(market, 0..=u64::MAX, step);
    assert!(!found.broken);
    found.buckets
}

/// What the folder answers, as [`ANSWERS`].
fn answers(folder: &Path) -> String {
    let prices = Prices::open(Some(folder), CACHE_BYTES);
    let mut text = String::new();
    for market in 0..8 {
        for step in [60, 3_600] {
            for Bucket { start, candle } in rows(&prices, market, step) {
                let Candle { open, high, low, close, volume: [first, second] } = candle;
                let (open, high, low, close) = (open.0, high.0, low.0, close.0);
                let line = format_args!("{market} {step} {start} {open} {high} {low} {close} {} {}", first.0, second.0);
                writeln!(text, "{line}").expect("text");
            }
        }
    }
    text
}

fn earlier_files(folder: &Path) -> Vec<String> {
    contents(folder).into_keys().filter(|name| is_earlier(name)).collect()
}

#[test]
fn a_directory_of_an_earlier_program_answers_the_same() {
    let place = golden();
    assert_eq!(earlier_files(place.path()).len(), std::fs::read_dir(GOLDEN).expect("a folder").count());
    assert_eq!(answers(place.path()), ANSWERS);
    assert_eq!(earlier_files(place.path()), Vec::<String>::new());
    assert_eq!(answers(place.path()), ANSWERS, "at the next start");
    println!("an earlier directory: {} answers", ANSWERS.lines().count());
}

/// The move is interrupted anywhere: it is repeated, and gives the same.
#[test]
fn an_interrupted_move_is_repeated() {
    let whole = golden();
    assert_eq!(answers(whole.path()), ANSWERS);
    let store = Store::open(whole.path(), CACHE_BYTES).expect("a sound store");
    let all: Vec<_> = Table::PRICES
        .into_iter()
        .flat_map(|table| store.scan(table, [0; 8]..=[0xff; 8]).map(move |row| (table, row.expect("readable"))))
        .collect();
    let mut cases = 0;
    for count in 0..=all.len() {
        let place = golden();
        let mut half = Store::open(place.path(), CACHE_BYTES).expect("a new store");
        let mut batch = Batch::default();
        for (table, (market, time, value)) in &all[..count] {
            batch.put(*table, key(*market, *time), value.to_vec());
        }
        half.write(batch, About::default()).expect("written");
        drop(half);
        assert_eq!(answers(place.path()), ANSWERS, "after {count} rows");
        assert!(earlier_files(place.path()).is_empty());
        cases += 1;
    }
    // Everything is in the store, and some files are still there.
    let names: Vec<String> = contents(Path::new(GOLDEN)).into_keys().collect();
    for left in (0..1u32 << names.len()).step_by(11) {
        let place = tempfile::tempdir().expect("a temporary directory");
        copy(whole.path(), place.path());
        for (_, name) in names.iter().enumerate().filter(|(at, _)| left >> at & 1 == 1) {
            fs::copy(Path::new(GOLDEN).join(name), place.path().join(name)).expect("copied");
        }
        assert_eq!(answers(place.path()), ANSWERS, "files left: {left:b}");
        assert!(earlier_files(place.path()).is_empty());
        cases += 1;
    }
    println!("interrupted moves: {cases} cases");
}

/// The move waits for a store that does not keep up, and writes a bounded batch in each step.
#[test]
fn a_move_is_done_in_steps() {
    let place = golden();
    let mut store = Store::open(place.path(), CACHE_BYTES).expect("a new store");
    let mut moving = Move::begin(place.path(), &store).expect("readable").expect("there are files");
    let (mut steps, mut before) = (0, 0);
    let count = |store: &Store| Table::PRICES.map(|table| store.scan(table, [0; 8]..=[0xff; 8]).count()).iter().sum();
    loop {
        store.is_held = true;
        assert_eq!(moving.step(&mut store).expect("it waits"), Step::Wait);
        assert_eq!(count(&store), before, "step {steps}");
        store.is_held = false;
        let step = moving.step(&mut store).expect("it is written");
        let rows: usize = count(&store);
        assert!(rows <= before + BATCH_ROWS, "step {steps}");
        (steps, before) = (steps + 1, rows);
        if step == Step::Over {
            break;
        }
        assert_eq!((step, store.known.newest), (Step::Again, None), "a crash repeats everything");
    }
    drop(store);
    assert_eq!(answers(place.path()), ANSWERS);
    println!("steps of a move: {steps} cases");
}

/// A row that the store has wins, and what an earlier program recorded after a return to it is added.
#[test]
fn rows_of_the_store_win() {
    let place = golden();
    let lines: Vec<Vec<u64>> =
        ANSWERS.lines().map(|line| line.split(' ').map(|word| word.parse().expect("a number")).collect()).collect();
    let minute = (lines[0][2] / 60) as u32;
    let own = Candle::at(Mid(77));
    let mut store = Store::open(place.path(), CACHE_BYTES).expect("a new store");
    let mut batch = Batch::default();
    batch.put(Table::Minutes, key(0, minute), write_candle(&own));
    batch.put(Table::Minutes, key(5, minute), write_candle(&own));
    store.write(batch, About { newest: Some(minute), ..About::default() }).expect("written");
    drop(store);
    let prices = Prices::open(Some(place.path()), CACHE_BYTES);
    assert_eq!(rows(&prices, 0, 60)[0].candle, own);
    assert_eq!(rows(&prices, 0, 60).len(), lines.iter().filter(|line| line[0] == 0 && line[1] == 60).count());
    assert_eq!(rows(&prices, 5, 60).len(), 1);
}

/// What is damaged is left out and stays; the rest is taken over, and is never wrong.
#[test]
fn damaged_files_are_left_out_and_stay() {
    let (mut cases, mut stayed) = (0, 0);
    damage(Path::new(GOLDEN), |folder, what| {
        let name = what.split(':').next().expect("a name");
        let found = answers(folder);
        let known: Vec<&str> = ANSWERS.lines().collect();
        // A folded hour may lack what was in a damaged file of minutes, or be that of the day's file.
        let wrong = found.lines().filter(|line| line.split(' ').nth(1) == Some("60") && !known.contains(line));
        // An hour that was opened again is in two files; the rows of a damaged trail are older there.
        let wrong = wrong.count();
        assert!(wrong == 0 || name == TRAIL, "{what}: {wrong} wrong rows");
        let left = earlier_files(folder);
        assert!(left.is_empty() || folder.join(name).is_dir(), "{what}: {left:?}");
        let damaged = folder.join(format!("{name}{DAMAGED}"));
        stayed += u32::from(damaged.exists());
        // It is not taken over again: a row that is gone from the store stays away.
        let mut store = Store::open(folder, CACHE_BYTES).expect("a sound store");
        let first = store.scan(Table::Minutes, [0; 8]..=[0xff; 8]).next().map(|row| row.expect("sound"));
        let mut batch = Batch::default();
        first.iter().for_each(|(market, minute, _)| batch.remove(Table::Minutes, key(*market, *minute)));
        let about = store.known.clone();
        store.write(batch, about).expect("written");
        drop(store);
        answers(folder);
        let store = Store::open(folder, CACHE_BYTES).expect("a sound store");
        let gone = first.map(|(market, minute, _)| store.has(Table::Minutes, key(market, minute)).expect("readable"));
        assert_ne!(gone, Some(true), "{what}: at the next start");
        cases += 1;
    });
    println!("damaged earlier files: {cases} cases, {stayed} stayed");
    assert!(stayed > cases / 2);
}

/// Hours that are not kept any more are not put back.
#[test]
fn hours_that_are_too_old_are_left_out() {
    let mut hours: Vec<u32> = ANSWERS
        .lines()
        .filter(|line| line.split(' ').nth(1) == Some("3600"))
        .filter_map(|line| line.split(' ').nth(2)?.parse::<u32>().ok())
        .map(|start| start / 3_600)
        .collect();
    hours.sort_unstable();
    hours.dedup();
    let (mut cases, newest) = (0, hours[hours.len() - 1]);
    for hours_from in hours {
        let place = golden();
        let mut store = Store::open(place.path(), CACHE_BYTES).expect("a new store");
        let about = About { newest: Some(newest * 60), hours_from, ..About::default() };
        store.write(Batch::default(), about).expect("written");
        take_over(place.path(), &mut store).expect("moved");
        let mut rows = store.scan(Table::Hours, [0; 8]..=[0xff; 8]).map(|row| row.expect("sound").1);
        assert!(rows.all(|hour| hour >= hours_from), "{hours_from}");
        cases += 1;
    }
    println!("hours that are too old: {cases} cases");
    assert!(cases > 2);
}

/// Any bytes: no panic, and no candle that the store could not read again.
#[test]
fn hostile_blocks_and_trails_are_refused() {
    let mut cases = 0;
    for (name, bytes) in contents(Path::new(GOLDEN)) {
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                if name == TRAIL {
                    let mut next = 0;
                    while let Some((_, entries, end)) = frame(&bytes, next) {
                        assert!(end > next && entries.len() % ENTRY_BYTES == 0);
                        next = end;
                    }
                    assert!(next < bytes.len(), "byte {at} ^ {flip}: its checksum is wrong");
                } else if let Some(block) = read_block(&bytes) {
                    assert!(block.damaged > 0, "{name}, byte {at} ^ {flip}");
                }
                cases += 1;
            }
            assert!(read_block(&bytes[..at]).is_none(), "{name}: {at} bytes");
        }
    }
    // Prices outside of their bounds.
    let mut row = [0xff; ROW_BYTES];
    for (high, low) in [(0u16, 0u16), (20_001, 20_000), (5, 9), (u16::MAX, u16::MAX)] {
        row[4..6].copy_from_slice(&high.to_le_bytes());
        row[6..8].copy_from_slice(&low.to_le_bytes());
        let candle = read_row(&row).candle;
        assert_eq!(crate::row::read_candle(&write_candle(&candle)), Some(candle));
        cases += 1;
    }
    // A head with more markets and rows than any file has.
    for (markets, rows) in [(u32::MAX, u32::MAX), (u32::MAX, 0), (0, u32::MAX)] {
        let mut bytes = [MAGIC, &[0; 16], &markets.to_le_bytes(), &rows.to_le_bytes()].concat();
        bytes.extend_from_slice(&crc(&[&bytes]).to_le_bytes());
        bytes.extend_from_slice(&[0; 64]);
        assert!(read_block(&bytes).is_none());
        cases += 1;
    }
    println!("hostile files: {cases} cases");
}

/// A clock that was ahead is set back in a directory that was never opened by this program.
#[test]
fn an_earlier_directory_can_be_set_back() {
    let starts: Vec<u64> = ANSWERS
        .lines()
        .filter(|line| line.starts_with("2 60 "))
        .map(|line| line.split(' ').nth(2).and_then(|start| start.parse().ok()).expect("a start"))
        .collect();
    let mut cases = 0;
    for (at, start) in starts.iter().enumerate() {
        let place = golden();
        set_back(place.path(), *start).expect("set back");
        let prices = Prices::open(Some(place.path()), CACHE_BYTES);
        let left = rows(&prices, 2, 60);
        assert_eq!(left.iter().map(|bucket| bucket.start).collect::<Vec<_>>(), starts[..=at]);
        assert_eq!(fold(rows(&prices, 2, 3_600), Grid::DAY), fold(left, Grid::DAY));
        cases += 1;
    }
    println!("earlier directories set back: {cases} cases");
}
