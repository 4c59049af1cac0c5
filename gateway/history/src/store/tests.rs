use super::*;
use engine::book::candles::MINUTES_MAX;

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

fn all(store: &Store, market: u32, step: u64) -> Vec<Bucket> {
    let found = store.find(market, 0..=u64::MAX, step);
    assert_eq!(found.broken, store.directory.is_none());
    found.buckets
}

/// A naive model: every minute of every market.
type Model = BTreeMap<(u32, u32), Candle>;

fn model_of(model: &Model, market: u32) -> Vec<Bucket> {
    let own = model.range((market, 0)..=(market, u32::MAX));
    own.map(|((_, minute), candle)| Bucket { start: u64::from(*minute) * 60, candle: *candle }).collect()
}

#[test]
fn the_store_agrees_with_a_naive_model_across_restarts_and_kills() {
    let seed = 0x5eed_0017;
    let (mut chance, mut cases) = (Chance(seed), 0);
    for _ in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, mut model) = (Store::open(Some(dir.path())), Model::new());
        let mut last: BTreeMap<u32, Mid> = BTreeMap::new();
        let mut waiting: BTreeMap<u32, u64> = BTreeMap::new();
        let mut minute = FIRST_HOUR * 60;
        for _ in 0..300 {
            minute += [0, 0, 1, 2, 30, 61][chance.below(6) as usize];
            // Sometimes a price comes late.
            let minute = minute - if chance.below(20) == 0 { chance.below(200) as u32 } else { 0 };
            let (market, price) = (chance.below(4) as u32, chance.below(20_001) as u16);
            if chance.below(4) == 0 {
                store.fill(market, Outcome::Second, Qty(5), minute);
                if let Some(last) = last.get(&market) {
                    model.entry((market, minute)).or_insert(Candle::at(*last)).volume[1].0 += 5;
                } else {
                    *waiting.entry(market).or_default() += 5;
                }
            } else {
                store.add(&[minute_at(market, minute, price)]);
                last.insert(market, Mid(price));
                let volume = [Qty(0), Qty(waiting.remove(&market).unwrap_or_default())];
                let fresh = Candle { volume, ..Candle::at(Mid(price)) };
                model.entry((market, minute)).and_modify(|candle| candle.join(&fresh)).or_insert(fresh);
            }
            store.write();
            if chance.below(40) == 0 {
                // As after a kill: the store is dropped without a write.
                store = Store::open(Some(dir.path()));
                // The last prices are now those of the open hours.
                last = store.last.clone();
                waiting.clear();
                cases += 1;
            }
            if chance.below(10) == 0 {
                let market = chance.below(4) as u32;
                assert_eq!(all(&store, market, 60), model_of(&model, market), "seed {seed:#x}");
                for grid in [Grid::HOUR, Grid::DAY, Grid::WEEK, Grid::minutes(360)] {
                    let coarse = fold(all(&store, market, grid.secs()), grid);
                    assert_eq!(coarse, fold(model_of(&model, market), grid), "seed {seed:#x}");
                }
                cases += 5;
            }
        }
        assert!(store.open.len() <= OPEN_HOURS);
    }
    println!("price history: {cases} cases, seed {seed:#x}");
    assert!(cases > 200);
}

#[test]
fn minutes_become_hours_and_the_oldest_go() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(Some(dir.path()));
    for day in 0..9 {
        for hour in 0..24 {
            for minute in [0, 30] {
                let at = (FIRST_HOUR + day * 24 + hour) * 60 + minute;
                store.add(&[minute_at(1, at, (day * 100 + hour) as u16), minute_at(2, at, 7)]);
            }
        }
        store.write();
    }
    let newest = FIRST_HOUR + 9 * 24 - 1;
    let directory = store.directory.as_ref().expect("a directory");
    let kept = newest - MINUTES_KEPT_HOURS..=newest - 2;
    assert_eq!(directory.minutes.iter().copied().collect::<Vec<_>>(), kept.collect::<Vec<_>>());
    assert_eq!(directory.hours.len(), 8, "{:?}", directory.hours);
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(files, directory.minutes.len() + directory.hours.len() + 1);
    let rows = all(&store, 1, 60);
    assert_eq!((rows[0].start, rows[0].candle.open), (u64::from(FIRST_HOUR) * 3_600, Mid(0)));
    let folded = fold(rows, Grid::HOUR);
    assert_eq!(folded.len(), 9 * 24);
    assert!(folded.windows(2).all(|pair| pair[0].candle.close < pair[1].candle.open));
    assert_eq!(fold(all(&store, 1, 3_600), Grid::HOUR), folded);
    let again = Store::open(Some(dir.path()));
    assert_eq!(fold(all(&again, 1, 3_600), Grid::HOUR), folded);
    assert_eq!((again.newest(), Store::open(None).newest()), (Some(newest * 60 + 30), None));
    // Without its last hours, data is known to the end of the block before them.
    std::fs::remove_file(dir.path().join("trail")).unwrap();
    assert_eq!(Store::open(Some(dir.path())).newest(), Some((newest - 2) * 60 + 59));
}

#[test]
fn nothing_in_the_directory_stops_a_start() {
    let whole = tempfile::tempdir().unwrap();
    let mut store = Store::open(Some(whole.path()));
    for hour in 0..30 {
        store.add(&[minute_at(1, (FIRST_HOUR + hour) * 60, 100)]);
    }
    store.write();
    drop(store);
    let names: Vec<_> = std::fs::read_dir(whole.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let copy = |into: &Path| {
        for name in &names {
            std::fs::copy(whole.path().join(name), into.join(name)).unwrap();
        }
    };
    let mut cases = 0;
    for name in &names {
        for damage in ["empty", "cut", "noise", "folder", "gone"] {
            let dir = tempfile::tempdir().unwrap();
            copy(dir.path());
            let path = dir.path().join(name);
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            match damage {
                "empty" => std::fs::write(&path, b"").unwrap(),
                "cut" => std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap(),
                "noise" => std::fs::write(&path, bytes.iter().map(|byte| byte ^ 0x55).collect::<Vec<_>>()).unwrap(),
                "folder" => std::fs::create_dir(&path).unwrap(),
                _ => {}
            }
            std::fs::write(dir.path().join("minutes-7.new"), b"half").unwrap();
            std::fs::write(dir.path().join("minutes-x"), b"?").unwrap();
            let mut store = Store::open(Some(dir.path()));
            let found = store.find(1, 0..=u64::MAX, 60).buckets.len();
            let in_memory = store.directory.is_none();
            assert!(found >= 28 || in_memory, "{name:?} {damage}: {found}");
            store.add(&[minute_at(1, (FIRST_HOUR + 40) * 60, 200)]);
            store.write();
            let last = store.find(1, 0..=u64::MAX, 60).buckets.pop();
            assert_eq!(last.map(|bucket| bucket.candle.close), Some(Mid(200)), "{name:?} {damage}");
            cases += 1;
        }
    }
    println!("damaged histories: {cases} cases");
    assert!(cases > 100);
}

#[test]
fn without_a_directory_memory_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    for directory in [None, Some(file.as_path())] {
        let mut store = Store::open(directory);
        assert!(store.directory.is_none());
        for hour in 0..100 {
            store.add(&[minute_at(1, (FIRST_HOUR + hour) * 60, 100), minute_at(u32::MAX, 0, 1)]);
            store.write();
        }
        assert_eq!((all(&store, 1, 60).len(), store.unwritten()), (OPEN_HOURS, 0));
    }
    // The limits of time.
    let mut store = Store::open(None);
    store.add(&[minute_at(1, 0, 1), minute_at(1, u32::MAX, 2)]);
    store.fill(1, Outcome::First, Qty(u64::MAX), u32::MAX);
    store.fill(1, Outcome::First, Qty(u64::MAX), u32::MAX);
    assert_eq!(fold(all(&store, 1, MINUTES_MAX), Grid::minutes(MINUTES_MAX)).len(), 2);
}

#[test]
fn without_writes_little_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(Some(dir.path()));
    store.add(&[minute_at(1, FIRST_HOUR * 60, 1)]);
    // The blocks cannot be written: a folder has their name.
    for hour in 0..50 {
        std::fs::create_dir_all(dir.path().join(format!("minutes-{}/x", FIRST_HOUR + hour))).unwrap();
    }
    for hour in 1..50 {
        store.add(&[minute_at(1, (FIRST_HOUR + hour) * 60, 1)]);
        store.write();
    }
    assert_eq!(all(&store, 1, 60).len(), OPEN_HOURS_MAX);
}

#[test]
fn shares_filled_before_any_price_wait_for_the_next_row() {
    let minute = FIRST_HOUR * 60;
    let fill = |store: &mut Store, outcome, shares, minute| store.fill(1, outcome, Qty(shares), minute);
    let mut store = Store::open(None);
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
        let mut store = Store::open(directory);
        for hour in 0..60 {
            store.add(&[minute_at(1, (FIRST_HOUR + hour) * 60, 1)]);
        }
        let now = u64::from(FIRST_HOUR + 60) * 3_600;
        for (start, end) in [(now, now - 1), (u64::MAX, now), (u64::MAX, 0), (1, 0), (99_999_999_999, now)] {
            let found = store.find(1, RangeInclusive::new(start, end), 60);
            assert_eq!(found, StoredPrices { buckets: Vec::new(), broken: directory.is_none() }, "{start} to {end}");
        }
    }
    println!("reversed stretches: 10 cases");
}

#[test]
fn a_damaged_block_is_logged_once_and_the_rest_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(Some(dir.path()));
    let fill = |store: &mut Store, hours: std::ops::Range<u32>| {
        for hour in hours {
            let minute = (FIRST_HOUR + hour) * 60;
            store.add(&[minute_at(1, minute, 100), minute_at(2, minute, 200)]);
        }
    };
    fill(&mut store, 0..20);
    // The last row of a block belongs to the last market; its first bytes are the header.
    let mut cases = 0;
    for (hour, at_end, lost) in [(5, true, [0, 1]), (6, false, [1, 2])] {
        let path = minutes_path(dir.path(), FIRST_HOUR + hour);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = if at_end { bytes.len() - 20 } else { 9 };
        bytes[at] ^= 0x01;
        std::fs::write(&path, &bytes).unwrap();
        for market in [1, 2, 1, 2] {
            let found = store.find(market, 0..=u64::MAX, 60);
            let lost = lost[market as usize - 1];
            assert_eq!((found.buckets.len(), found.broken), (20 - lost, lost > 0), "hour {hour}, market {market}");
            assert!(found.buckets.iter().all(|bucket| bucket.candle.close == Mid(market as u16 * 100)));
            cases += 1;
        }
    }
    assert_eq!(store.directory.as_ref().map(|directory| directory.damaged.0.borrow().len()), Some(2));
    // The day is folded from the undamaged data.
    fill(&mut store, 20..30);
    assert!(store.directory.as_ref().is_some_and(|directory| directory.hours.contains(&DAY)));
    for (market, hours) in [(1, 29), (2, 28)] {
        let found = store.find(market, 0..=u64::MAX, 3_600);
        assert_eq!((found.buckets.len(), found.broken), (hours, false), "market {market}");
        cases += 1;
    }
    println!("damaged blocks of a history: {cases} cases");
}

/// Data recorded by a clock that was ahead is removed, in blocks and in the trail; later data is kept as usual.
#[test]
fn data_of_the_future_is_removed_when_the_clock_is_set_back() {
    let mut cases = 0;
    let right = FIRST_HOUR * 60 + 90;
    // How far the clock was ahead, in minutes: less than the hour, over some hours, days, a year.
    for ahead in [20, 200, 3 * 24 * 60, 365 * 24 * 60] {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(Some(dir.path()));
        let noted = |store: &mut Store, minutes: std::ops::Range<u32>| {
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
        let mut store = Store::open(Some(dir.path()));
        let starts = |store: &Store| all(store, 1, 60).iter().map(|bucket| bucket.start / 60).collect::<Vec<_>>();
        let minutes = |from: u32, to: u32| (u64::from(from)..=u64::from(to)).collect::<Vec<_>>();
        // A clock that far ahead has folded earlier minutes into hours, which is final.
        let are_hours = ahead > MINUTES_KEPT_HOURS * 60;
        let left = if are_hours { minutes(FIRST_HOUR, FIRST_HOUR + 1) } else { minutes(FIRST_HOUR * 60, right) };
        let starts_then: Vec<u64> = starts(&store).iter().map(|at| if are_hours { at / 60 } else { *at }).collect();
        assert_eq!(starts_then, left, "{ahead} min");
        // It continues from there, over the hours that had blocks, and over a restart.
        noted(&mut store, right + 1..right + 400);
        drop(store);
        let again = starts(&Store::open(Some(dir.path())));
        let expected = if are_hours { minutes(right + 1, right + 399) } else { minutes(FIRST_HOUR * 60, right + 399) };
        assert!(again.ends_with(&expected) && again.is_sorted(), "{ahead} min: {again:?}");
        cases += 1;
    }
    let none = tempfile::tempdir().unwrap();
    set_back(&none.path().join("none"), 5).expect("a missing folder is not an error");
    println!("histories set back: {cases} cases");
}
