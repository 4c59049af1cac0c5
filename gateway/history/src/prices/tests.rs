use super::*;
use crate::row::{HOURS_KEPT_DAYS, MINUTES_KEPT_HOURS};
use crate::store::FOLDER;
use crate::testing::{copy_running, damage};
use engine::book::candles::{MINUTES_MAX, fold};

const CACHE_BYTES: u64 = 1 << 20;

const DAY: u32 = 20_728;
const FIRST_HOUR: u32 = DAY * 24;

/// xorshift64*: the same seed gives the same cases.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(bound)) >> 64) as u64
    }
}

fn minute_at(market: u32, minute: u32, price: u16) -> MinuteCandle {
    MinuteCandle { market, minute, candle: Candle::at(Mid(price)) }
}

fn open(folder: &Path) -> Prices {
    Prices::open(Some(folder), CACHE_BYTES)
}

fn all(store: &Prices, market: u32, step: u64) -> Vec<Bucket> {
    let found = store.find(market, 0..=u64::MAX, step);
    assert_eq!(found.broken, store.tables.is_none());
    found.buckets
}

/// A naive model: every minute of every market.
type Model = BTreeMap<(u32, u32), Candle>;

fn model_of(model: &Model, market: u32) -> Vec<Bucket> {
    let own = model.range((market, 0)..=(market, u32::MAX));
    own.map(|((_, minute), candle)| Bucket { start: u64::from(*minute) * 60, candle: *candle }).collect()
}

#[test]
fn the_prices_agree_with_a_naive_model_across_restarts_and_kills() {
    let seed = 0x5eed_0017;
    let (mut chance, mut cases) = (Chance(seed), 0);
    for _ in 0..4 {
        let mut dir = tempfile::tempdir().unwrap();
        let (mut prices, mut model) = (open(dir.path()), Model::new());
        let mut last: BTreeMap<u32, Mid> = BTreeMap::new();
        let mut waiting: BTreeMap<u32, u64> = BTreeMap::new();
        let mut minute = FIRST_HOUR * 60;
        for _ in 0..300 {
            minute += [0, 0, 1, 2, 30, 61][chance.below(6) as usize];
            // Sometimes a price comes late.
            let minute = minute - if chance.below(20) == 0 { chance.below(200) as u32 } else { 0 };
            let (market, price) = (chance.below(4) as u32, chance.below(20_001) as u16);
            if chance.below(4) == 0 {
                prices.fill(market, Outcome::Second, Qty(5), minute);
                if let Some(last) = last.get(&market) {
                    model.entry((market, minute)).or_insert(Candle::at(*last)).volume[1].0 += 5;
                } else {
                    *waiting.entry(market).or_default() += 5;
                }
            } else {
                prices.add(&[minute_at(market, minute, price)]);
                last.insert(market, Mid(price));
                let volume = [Qty(0), Qty(waiting.remove(&market).unwrap_or_default())];
                let fresh = Candle { volume, ..Candle::at(Mid(price)) };
                model.entry((market, minute)).and_modify(|candle| candle.join(&fresh)).or_insert(fresh);
            }
            prices.write();
            let ends = chance.below(40);
            if ends < 2 {
                if ends == 0 {
                    // The files as a kill leaves them: nothing was closed.
                    let left = tempfile::tempdir().unwrap();
                    copy_running(dir.path(), left.path());
                    prices = open(left.path());
                    dir = left;
                } else {
                    prices.end();
                    drop(prices);
                    prices = open(dir.path());
                }
                // The last prices are now those of the newest rows.
                last.clear();
                for ((market, _), candle) in &model {
                    last.insert(*market, candle.close);
                }
                waiting.clear();
                cases += 1;
            }
            if chance.below(10) == 0 {
                let market = chance.below(4) as u32;
                assert_eq!(all(&prices, market, 60), model_of(&model, market), "seed {seed:#x}");
                for grid in [Grid::HOUR, Grid::DAY, Grid::WEEK, Grid::minutes(360)] {
                    let coarse = fold(all(&prices, market, grid.secs()), grid);
                    assert_eq!(coarse, fold(model_of(&model, market), grid), "seed {seed:#x}");
                }
                cases += 5;
            }
        }
        assert!(prices.open.len() <= OPEN_HOURS);
    }
    println!("price history: {cases} cases, seed {seed:#x}");
    assert!(cases > 200);
}

#[test]
fn minutes_become_hours_and_the_oldest_go() {
    let dir = tempfile::tempdir().unwrap();
    let mut prices = open(dir.path());
    for day in 0..9 {
        for hour in 0..24 {
            for minute in [0, 30] {
                let at = (FIRST_HOUR + day * 24 + hour) * 60 + minute;
                prices.add(&[minute_at(1, at, (day * 100 + hour) as u16), minute_at(2, at, 7)]);
            }
        }
        prices.write();
    }
    let newest = FIRST_HOUR + 9 * 24 - 1;
    let starts = |prices: &Prices| all(prices, 1, 60).iter().map(|bucket| bucket.start / 60).collect::<Vec<_>>();
    // Of the oldest days only hours are left.
    let mut expected: Vec<u64> = (FIRST_HOUR..newest - MINUTES_KEPT_HOURS).map(|hour| u64::from(hour) * 60).collect();
    let kept = newest - MINUTES_KEPT_HOURS..=newest;
    expected.extend(kept.flat_map(|hour| [hour * 60, hour * 60 + 30]).map(u64::from));
    assert_eq!(starts(&prices), expected);
    let rows = all(&prices, 1, 60);
    assert_eq!((rows[0].start, rows[0].candle.open), (u64::from(FIRST_HOUR) * 3_600, Mid(0)));
    let folded = fold(rows, Grid::HOUR);
    assert_eq!(folded.len(), 9 * 24);
    assert!(folded.windows(2).all(|pair| pair[0].candle.close < pair[1].candle.open));
    assert_eq!(fold(all(&prices, 1, 3_600), Grid::HOUR), folded);
    // A query that begins within an hour of today has the rest of that hour; on an earlier day hours are whole.
    for (hour, count) in [(newest - 3, 4), (newest - 30, 30)] {
        let from = u64::from(hour) * 3_600 + 60;
        assert_eq!(fold(prices.find(1, from..=u64::MAX, 3_600).buckets, Grid::HOUR).len(), count, "{hour}");
    }
    drop(prices);
    let again = open(dir.path());
    assert_eq!((starts(&again), fold(all(&again, 1, 3_600), Grid::HOUR)), (expected, folded));
    assert_eq!((again.newest(), Prices::open(None, CACHE_BYTES).newest()), (Some(newest * 60 + 30), None));
}

/// What is too old is gone from the disk after a merge, and nothing else is.
#[test]
fn a_merge_removes_what_is_too_old() {
    let dir = tempfile::tempdir().unwrap();
    let mut prices = open(dir.path());
    let days = 10;
    for hour in 0..days * 24 {
        prices.add(&[minute_at(1, (FIRST_HOUR + hour) * 60, 5), minute_at(9, (FIRST_HOUR + hour) * 60 + 1, 6)]);
        prices.write();
    }
    // Two years later.
    let later = FIRST_HOUR + (HOURS_KEPT_DAYS + 3) * 24;
    for hour in 0..3 {
        prices.add(&[minute_at(1, (later + hour) * 60, 7)]);
        prices.write();
    }
    let before = all(&prices, 1, 60);
    let hours = (days - 3) * 24;
    assert_eq!(before.len() as u32, hours + 3, "hours of the last days, and the new ones");
    let tables = prices.tables.as_mut().expect("a directory");
    let store = tables.store.as_ref().expect("it is open");
    store.merge().unwrap();
    let left = |table| store.scan(table, [0; 8]..=[0xff; 8]).map(Result::unwrap).collect::<Vec<_>>();
    // The last hours before the jump were still open: the second of them is sealed by the third new one.
    let minutes: Vec<(u32, u32)> = left(Table::Minutes).iter().map(|(market, minute, _)| (*market, *minute)).collect();
    assert_eq!(minutes, [0, 1, 2].map(|hour| (1, (later + hour) * 60)), "minutes");
    let by_hour = left(Table::Hours);
    assert!(by_hour.iter().all(|(_, hour, _)| *hour >= FIRST_HOUR + 3 * 24), "{} hours", by_hour.len());
    assert_eq!(by_hour.iter().filter(|(market, ..)| *market == 9).count() as u32, hours);
    assert_eq!(all(&prices, 1, 60), before);
    println!("merge: {} rows by hour are left of {}", by_hour.len(), 2 * days * 24);
}

#[test]
fn nothing_in_the_directory_stops_a_start() {
    let whole = tempfile::tempdir().unwrap();
    let mut prices = open(whole.path());
    for hour in 0..30 {
        if hour == 28 {
            // As after some hours: only the last two are in the journal.
            let store = prices.tables.as_ref().and_then(|tables| tables.store.as_ref());
            store.expect("it is open").rest().unwrap();
        }
        prices.add(&[minute_at(1, (FIRST_HOUR + hour) * 60, 100)]);
        prices.write();
    }
    prices.end();
    drop(prices);
    let expected: Vec<u64> = (0..30).map(|hour| u64::from(FIRST_HOUR + hour) * 3_600).collect();
    let (mut cases, mut whole_answers) = (0, 0);
    damage(whole.path(), |folder, what| {
        let mut prices = open(folder);
        let found = prices.find(1, 0..=u64::MAX, 60);
        let starts: Vec<u64> = found.buckets.iter().map(|bucket| bucket.start).collect();
        // Damage is never an answer that looks whole, but for the last hours, which the journal had.
        let is_whole = expected.starts_with(&starts) && starts.len() >= 28;
        assert!(is_whole || found.broken, "{what}: {} rows", starts.len());
        assert!(found.buckets.iter().all(|bucket| bucket.candle == Candle::at(Mid(100))), "{what}");
        whole_answers += u32::from(is_whole);
        prices.add(&[minute_at(1, (FIRST_HOUR + 40) * 60, 200)]);
        prices.write();
        let last = prices.find(1, 0..=u64::MAX, 60).buckets.pop();
        assert_eq!(last.map(|bucket| bucket.candle.close), Some(Mid(200)), "{what}");
        cases += 1;
    });
    println!("damaged histories: {cases} cases, {whole_answers} with a whole answer");
    assert!(cases > 60 && whole_answers > 10);
}

#[test]
fn a_foreign_or_later_store_stays_as_it_is() {
    let mut cases = 0;
    let later = |folder: &Path| {
        let mut store = Store::open(folder, CACHE_BYTES).unwrap();
        store.write(Batch::default(), About { newest: Some(5), ..About::default() }).unwrap();
        store.put_raw_about(&[2, 0, 0, 0, 0]);
    };
    let foreign = |folder: &Path| {
        std::fs::create_dir_all(folder.join(FOLDER)).unwrap();
        std::fs::write(folder.join(FOLDER).join("notes.txt"), b"mine").unwrap();
    };
    let of_later_engine = |folder: &Path| {
        drop(Store::open(folder, CACHE_BYTES).unwrap());
        std::fs::write(folder.join(FOLDER).join("version"), b"FJL\x04").unwrap();
    };
    type Maker<'a> = (&'a str, &'a dyn Fn(&Path));
    let makers: [Maker<'_>; 3] = [("later", &later), ("foreign", &foreign), ("a later engine", &of_later_engine)];
    for (name, make) in makers {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path());
        let files = crate::testing::contents(dir.path());
        let error = Store::open(dir.path(), CACHE_BYTES).err();
        let is_refused = match name {
            "foreign" => matches!(error, Some(StoreError::Damaged(_))),
            _ => matches!(error, Some(StoreError::Later(_))),
        };
        assert!(is_refused, "{name}: {error:?}");
        let mut prices = open(dir.path());
        prices.add(&[minute_at(1, FIRST_HOUR * 60, 7)]);
        prices.end();
        let found = prices.find(1, 0..=u64::MAX, 60);
        assert_eq!((found.buckets.len(), found.broken), (1, true), "{name}: in memory");
        drop(prices);
        assert_eq!(crate::testing::contents(dir.path()), files, "{name}: nothing has changed");
        cases += 1;
    }
    println!("stores that are not ours: {cases} cases");
}

#[test]
fn without_a_directory_memory_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    for folder in [None, Some(file.as_path())] {
        let mut prices = Prices::open(folder, CACHE_BYTES);
        assert!(prices.tables.is_none());
        for hour in 0..100 {
            prices.add(&[minute_at(1, (FIRST_HOUR + hour) * 60, 100), minute_at(u32::MAX, 0, 1)]);
            prices.write();
        }
        assert_eq!((all(&prices, 1, 60).len(), prices.unwritten()), (OPEN_HOURS, 0));
    }
    // The limits of time.
    let mut prices = Prices::open(None, CACHE_BYTES);
    prices.add(&[minute_at(1, 0, 1), minute_at(1, u32::MAX, 2)]);
    prices.fill(1, Outcome::First, Qty(u64::MAX), u32::MAX);
    prices.fill(1, Outcome::First, Qty(u64::MAX), u32::MAX);
    assert_eq!(fold(all(&prices, 1, MINUTES_MAX), Grid::minutes(MINUTES_MAX)).len(), 2);
}

/// Lets the pause after a failed write be over.
fn end_pause(prices: &mut Prices) {
    let failed = &mut prices.tables.as_mut().expect("a directory").failed;
    *failed = failed.and_then(|failed| failed.checked_sub(OPEN_AGAIN_AFTER));
}

/// A store that cannot be written is opened again later; meanwhile little is kept, and nothing is written twice.
#[test]
fn a_store_that_fails_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut prices = open(dir.path());
    prices.add(&[minute_at(1, FIRST_HOUR * 60, 1), minute_at(2, FIRST_HOUR * 60, 1)]);
    prices.write();
    let old = all(&prices, 1, 60);
    // A full disk: the store fails, is opened again after the pause, and fails again.
    for time in 0..2 {
        let tables = prices.tables.as_mut().expect("a directory");
        let failed = tables.attempt(|_| Err(StoreError::Io(std::io::Error::other("as planned"))));
        assert!(matches!(failed, Err(StoreError::Io(_))), "time {time}");
        // No write is tried during the pause.
        let refused = tables.attempt(|_| panic!("the store is not written to"));
        assert!(matches!(refused, Err(StoreError::Busy)), "time {time}");
        assert_eq!(all(&prices, 1, 60), old, "time {time}: what was written before can be read");
        end_pause(&mut prices);
    }
    let tables = prices.tables.as_mut().expect("a directory");
    tables.failed = Some(Instant::now());
    for hour in 0..50 {
        prices.add(&[minute_at(1, (FIRST_HOUR + hour) * 60 + 1, 2)]);
        prices.write();
    }
    let found = prices.find(1, 0..=u64::MAX, 60);
    assert_eq!((found.buckets.len(), found.broken), (old.len() + OPEN_HOURS_MAX, false));
    assert!(prices.failing && prices.unwritten() <= OPEN_HOURS_MAX + 1);
    end_pause(&mut prices);
    prices.add(&[minute_at(1, (FIRST_HOUR + 50) * 60, 3)]);
    prices.write();
    assert!(!prices.failing && prices.unwritten() == 0);
    let starts: Vec<u64> = all(&prices, 1, 60).iter().map(|bucket| bucket.start / 60).collect();
    assert_eq!(starts[0], u64::from(FIRST_HOUR) * 60, "what was written before");
    assert_eq!(starts.last(), Some(&(u64::from(FIRST_HOUR + 50) * 60)));
    // The first hour is sealed for both markets, although one of them has no rows in memory.
    let hours = |market| prices.tables.as_ref().and_then(|tables| tables.read(Table::Hours, market, 0..=u32::MAX));
    assert_eq!(hours(2).map(|rows| rows.len()), Some(1));
    assert!(hours(1).is_some_and(|rows| rows[0] == (FIRST_HOUR, Candle::at(Mid(1)))), "its late row was dropped");
}

/// A store that does not keep up: nothing is encoded for it, memory is bounded, and a turn tries once.
#[test]
fn a_busy_store_is_not_bothered() {
    let dir = tempfile::tempdir().unwrap();
    let mut prices = open(dir.path());
    let hold = |prices: &mut Prices, is_held: bool| {
        let tables = prices.tables.as_mut().expect("a directory");
        tables.store.as_mut().expect("it is open").is_held = is_held;
    };
    let written = |prices: &Prices| {
        prices
            .tables
            .as_ref()
            .and_then(|tables| tables.store.as_ref())
            .map(|store| Table::PRICES.map(|table| store.scan(table, [0; 8]..=[0xff; 8]).count()))
    };
    hold(&mut prices, true);
    let refused = prices.tables.as_mut().expect("a directory").attempt(|_| panic!("rows are encoded"));
    assert!(matches!(refused, Err(StoreError::Busy)));
    for hour in 0..9 {
        prices.add(&[minute_at(1, (FIRST_HOUR + hour) * 60, 1)]);
        prices.fill(1, Outcome::First, Qty(5), (FIRST_HOUR + hour) * 60);
    }
    // Until the end of the turn hours are not sealed, and not dropped.
    assert!(prices.has_ended_hours() && !prices.failing && prices.open.len() == 9);
    prices.write();
    assert!(prices.has_ended_hours() && prices.failing && prices.open.len() == OPEN_HOURS_MAX);
    assert_eq!(written(&prices), Some([0, 0]));
    hold(&mut prices, false);
    assert!(prices.tables.as_ref().is_some_and(|tables| tables.failed.is_none()), "it needs no pause");
    prices.write();
    assert!(!prices.has_ended_hours() && !prices.failing && prices.open.len() == OPEN_HOURS);
    assert_eq!(written(&prices), Some([OPEN_HOURS_MAX, OPEN_HOURS_MAX - OPEN_HOURS]));
}

/// Hours that were open before a restart are sealed for all their markets, also for those that have no news after it.
#[test]
fn hours_are_sealed_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut prices = open(dir.path());
    for market in [0, 1, 7, 8, 4_000_000] {
        for minute in [3, 59, 61] {
            prices.add(&[minute_at(market, FIRST_HOUR * 60 + minute, 9)]);
        }
    }
    // Rows around the hour, of other markets.
    prices.add(&[minute_at(3, FIRST_HOUR * 60 + 60, 9), minute_at(5, FIRST_HOUR * 60 + 119, 9)]);
    prices.write();
    drop(prices);
    let mut prices = open(dir.path());
    for hour in 1..=3 {
        prices.add(&[minute_at(1, (FIRST_HOUR + hour) * 60 + 5, 11)]);
        prices.write();
    }
    let tables = prices.tables.as_ref().expect("a directory");
    let mut cases = 0;
    for (market, of_first, of_second) in
        [(0, true, true), (1, true, true), (3, false, true), (5, false, true), (8, true, true), (4_000_000, true, true)]
    {
        let rows = tables.read(Table::Hours, market, 0..=u32::MAX).expect("readable");
        let has = |hour: u32| rows.iter().any(|(of, _)| *of == hour);
        assert_eq!((has(FIRST_HOUR), has(FIRST_HOUR + 1)), (of_first, of_second), "market {market}");
        cases += 1;
    }
    let rows = tables.read(Table::Hours, 1, 0..=u32::MAX).expect("readable");
    assert_eq!(rows[1].1, Candle { close: Mid(11), high: Mid(11), ..Candle::at(Mid(9)) }, "of both runs");
    println!("sealed hours: {cases} cases");
}

#[test]
fn shares_filled_before_any_price_wait_for_the_next_row() {
    let minute = FIRST_HOUR * 60;
    let fill = |store: &mut Prices, outcome, shares, minute| store.fill(1, outcome, Qty(shares), minute);
    let mut store = Prices::open(None, CACHE_BYTES);
    fill(&mut store, Outcome::First, 7, minute);
    fill(&mut store, Outcome::Second, u64::MAX, minute);
    fill(&mut store, Outcome::Second, 1, minute);
    store.fill(u32::MAX, Outcome::First, Qty(1), minute);
    assert_eq!((all(&store, 1, 60), store.waiting.len()), (Vec::new(), 1), "no row is created");
    // Another market's row does not take them.
    let cases: [(u32, u32, [u64; 2]); 3] = [(2, 1, [0, 0]), (1, 1, [7, u64::MAX]), (1, 2, [0, 0])];
    for (market, later, volume) in cases {
        store.add(&[minute_at(market, minute + later, 100)]);
        let row = all(&store, market, 60).pop().expect("a row");
        assert_eq!((row.candle.volume, row.candle.open), (volume.map(Qty), Mid(100)), "market {market}, {later}");
    }
    // With a price they go into the row of their own minute.
    fill(&mut store, Outcome::First, 3, minute + 3);
    assert_eq!(all(&store, 1, 60).pop().map(|row| row.candle.volume), Some([Qty(3), Qty(0)]));
    assert!(store.waiting.is_empty());
    println!("waiting shares: {} cases", cases.len() + 2);
}

#[test]
fn a_reversed_stretch_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    for directory in [None, Some(dir.path())] {
        let mut store = Prices::open(directory, CACHE_BYTES);
        for hour in 0..60 {
            store.add(&[minute_at(1, (FIRST_HOUR + hour) * 60, 1)]);
        }
        let now = u64::from(FIRST_HOUR + 60) * 3_600;
        for (start, end) in [(now, now - 1), (u64::MAX, now), (u64::MAX, 0), (1, 0), (99_999_999_999, now)] {
            let found = store.find(1, RangeInclusive::new(start, end), 60);
            assert_eq!(found, StoredPrices { buckets: Vec::new(), broken: store.tables.is_none() }, "{start} to {end}");
        }
    }
    println!("reversed stretches: 10 cases");
}

/// Data recorded by a clock that was ahead is removed; later data is kept as usual.
#[test]
fn data_of_the_future_is_removed_when_the_clock_is_set_back() {
    let mut cases = 0;
    let right = FIRST_HOUR * 60 + 90;
    // How far the clock was ahead, in minutes: less than the hour, over some hours, days, a year.
    for ahead in [20, 200, 3 * 24 * 60, 365 * 24 * 60] {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(dir.path());
        let noted = |store: &mut Prices, minutes: std::ops::Range<u32>| {
            for minute in minutes {
                store.add(&[minute_at(1, minute, 7), minute_at(2, minute, 9)]);
            }
            store.write();
        };
        noted(&mut store, FIRST_HOUR * 60..right + 1);
        noted(&mut store, right + ahead..right + ahead + 300);
        drop(store);
        let secs = u64::from(right) * 60 + 30;
        set_back(dir.path(), secs).unwrap();
        set_back(dir.path(), secs).expect("a repeated call continues");
        let mut store = open(dir.path());
        let starts = |store: &Prices| all(store, 1, 60).iter().map(|bucket| bucket.start / 60).collect::<Vec<_>>();
        let minutes = |from: u32, to: u32| (u64::from(from)..=u64::from(to)).collect::<Vec<_>>();
        // A clock that far ahead has folded earlier minutes into hours, which is final.
        let are_hours = ahead > MINUTES_KEPT_HOURS * 60;
        let left = if are_hours { minutes(FIRST_HOUR, FIRST_HOUR + 1) } else { minutes(FIRST_HOUR * 60, right) };
        let starts_then: Vec<u64> = starts(&store).iter().map(|at| if are_hours { at / 60 } else { *at }).collect();
        assert_eq!(starts_then, left, "{ahead} min");
        // It continues from there, over the hours that had blocks, and over a restart.
        noted(&mut store, right + 1..right + 400);
        drop(store);
        let again = starts(&open(dir.path()));
        // Of the hour that goes on there is then one row.
        let expected =
            if are_hours { minutes(FIRST_HOUR * 60 + 120, right + 399) } else { minutes(FIRST_HOUR * 60, right + 399) };
        assert!(again.ends_with(&expected) && again.is_sorted(), "{ahead} min: {again:?}");
        cases += 1;
    }
    let none = tempfile::tempdir().unwrap();
    set_back(&none.path().join("none"), 5).expect("a missing folder is not an error");
    println!("histories set back: {cases} cases");
}
