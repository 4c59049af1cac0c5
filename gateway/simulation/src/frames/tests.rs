use super::*;
use crate::testing::{Chance, FIRST, Making, Shelf, at, book, change, condition, row, spec, token};
use archive::fold::Folded;
use archive::row::Event;
use archive::sidecar::Gap;
use engine::amount::{Price, Qty};
use engine::book::BookSide;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;

const MEMORY: u64 = 32 << 20;

fn plan_of(shelf: &Shelf, markets: &[u64], hours: u32, changes: &Value) -> Plan {
    Plan::of(&spec(markets, hours, changes), &shelf.past(), &|| true).expect("a plan")
}

fn frames_of(shelf: &Shelf, plan: &Plan) -> Vec<BookFrame> {
    read(Frames::open(plan, &shelf.store, MEMORY, &|| true)).expect("frames")
}

/// All frames, or why they end before.
fn read(opened: Result<Frames<'_>, FramesError>) -> Result<Vec<BookFrame>, FramesError> {
    let (mut frames, mut all) = (opened?, Vec::new());
    while let Some(frame) = frames.next_frame()? {
        all.push(frame.clone());
    }
    assert!(frames.next_frame()?.is_none(), "the end is the end");
    Ok(all)
}

/// A book as frames make it.
#[derive(Default)]
struct Shown {
    sides: [BTreeMap<Price, Qty>; 2],
    is_known: bool,
    is_broken: bool,
}

impl Shown {
    fn apply(&mut self, change: &BookChange) {
        match change {
            BookChange::Book { bids, asks, .. } => {
                self.sides = [bids, asks].map(|side| side.iter().copied().collect());
                (self.is_known, self.is_broken) = (true, false);
            }
            BookChange::Level { side, price, size, .. } => {
                let levels = &mut self.sides[usize::from(*side == BookSide::Ask)];
                match size.is_zero() {
                    true => drop(levels.remove(price)),
                    false => drop(levels.insert(*price, *size)),
                }
            }
            BookChange::Gap(_) => self.is_broken = true,
            BookChange::Tick(_) => {}
        }
    }

    /// Best first.
    fn levels(&self) -> [Vec<(Price, Qty)>; 2] {
        let pair = |(price, size): (&Price, &Qty)| (*price, *size);
        [self.sides[0].iter().rev().map(pair).collect(), self.sides[1].iter().map(pair).collect()]
    }
}

fn outcome_of(change: &BookChange) -> Option<Outcome> {
    match change {
        BookChange::Book { outcome, .. } | BookChange::Level { outcome, .. } | BookChange::Gap(outcome) => {
            Some(*outcome)
        }
        BookChange::Tick(_) => None,
    }
}

/// Random rows of a token in an hour, beginning with a whole book. Bids are below 0.5 and asks above, so that no book is
/// crossed; the venue's times go back now and then.
fn random_rows(chance: &mut Chance, hour: u64, market: u64, outcome: u64, count: u64, begins: bool) -> Vec<Row> {
    let side = |chance: &mut Chance, base: u64| -> Vec<(u16, u64)> {
        (0..chance.below(6)).map(|_| ((base + chance.below(60)) as u16, chance.below(50))).collect()
    };
    let mut rows = Vec::new();
    for number in 0..count {
        // Few different moments, so that many rows share one.
        let millis = hour * 3_600_000 + if number == 0 { 500 } else { 1_000 + chance.below(3_590) * 1_000 };
        let event = match chance.below(8) {
            _ if number == 0 && begins => book(&side(chance, 4_900), &side(chance, 5_001)),
            0 => book(&side(chance, 4_900), &side(chance, 5_001)),
            1 => Event::LastTradePrice {
                price: Price(5_000),
                size: Qty::from_shares(1),
                taker_buys: true,
                fee_rate_bps: None,
                transaction_hash: None,
            },
            2..5 => change(BookSide::Bid, (4_900 + chance.below(60)) as u16, chance.below(3)),
            _ => change(BookSide::Ask, (5_001 + chance.below(60)) as u16, chance.below(3)),
        };
        let mut row = row(millis, market, outcome, event);
        if number > 0 {
            row.source = Timestamp::from_millis(row.received.millis() - chance.below(4) * 700 % 1_900);
        }
        rows.push(row);
    }
    rows
}

/// The books at random moments equal the fold of all rows received until then, the hour before the window included.
#[test]
fn frames_fold_to_the_books_of_all_rows() {
    let shelf = Shelf::new();
    let mut chance = Chance::seeded(11);
    let mut all: BTreeMap<(u64, u64), Vec<Row>> = BTreeMap::new();
    for hour in 0..3 {
        let mut rows = Vec::new();
        for market in 1..=3 {
            for outcome in 0..2 {
                // One token is silent in the first hour of the window, one in its second.
                let is_silent = (hour, market, outcome) == (1, 2, 0) || (hour, market, outcome) == (2, 3, 1);
                let count = if is_silent { 0 } else { 300 + chance.below(900) };
                rows.extend(random_rows(&mut chance, hour, market, outcome, count, hour == 0));
            }
        }
        // Of a market that the job does not have.
        rows.extend(random_rows(&mut chance, hour, 9, 0, 500, true));
        for row in &rows {
            if let Some(market) = (1..=3).find(|market| condition(*market) == row.market) {
                let outcome = u64::from(*row.token == *token(market, 1));
                all.entry((market, outcome)).or_default().push(row.clone());
            }
        }
        shelf.hour(hour as u32, rows);
    }
    all.values_mut().for_each(|rows| rows.sort_by_key(|row| row.received));
    let markets = [2, 3, 1];
    let start = wire::instant::ts_text(at(3_600_000));
    let plan = plan_of(&shelf, &markets, 3, &json!({"start": start}));
    assert_eq!(plan.hours, Hour(FIRST.0 + 1)..Hour(FIRST.0 + 3));
    let frames = frames_of(&shelf, &plan);

    // Openings come before the window, then everything in the order of receipt and market.
    let openings = frames.iter().take_while(|frame| frame.at < plan.job.start).count();
    assert_eq!(openings, 6, "each token has a book from the hour before");
    let key = |frame: &BookFrame| (frame.at, plan.places[frame.market].condition);
    assert!(frames[openings..].is_sorted_by(|one, next| key(one) < key(next)), "one frame for a moment of a market");

    let mut moments: Vec<u64> = (0..4_000).map(|_| 3_600_000 + chance.below(7_200_000)).collect();
    moments.extend(all.values().flatten().map(|row| row.received.since(FIRST.start()) / MILLISECOND).step_by(7));
    moments.retain(|millis| *millis >= 3_600_000);
    moments.sort_unstable();
    let mut shown: BTreeMap<(u64, u64), Shown> = BTreeMap::new();
    let mut folded: BTreeMap<(u64, u64), (Folded, usize)> = BTreeMap::new();
    let (mut next, mut cases) = (0, 0);
    for millis in moments {
        let moment = at(millis);
        while let Some(frame) = frames.get(next).filter(|frame| frame.at <= moment) {
            for change in &frame.changes {
                let outcome = outcome_of(change).expect("there is no change of the grid here");
                shown.entry((markets[frame.market], outcome as u64)).or_default().apply(change);
            }
            next += 1;
        }
        for (key, rows) in &all {
            let (folded, done) = folded.entry(*key).or_default();
            while let Some(row) = rows.get(*done).filter(|row| row.received <= moment) {
                folded.apply(row.received, row.source, &row.event);
                *done += 1;
            }
            let view = folded.view();
            let shown = &shown[key];
            assert_eq!(shown.levels(), [view.bids, view.asks], "{key:?} at {millis}");
            assert!(shown.is_known && !shown.is_broken, "{key:?} at {millis}");
            cases += 1;
        }
    }
    println!("frames: {} frames, {cases} books", frames.len());
    assert!(cases > 20_000);
}

/// Receipt in milliseconds, market, and what breaks or comes.
fn shown(frames: &[BookFrame]) -> Vec<(u64, usize, String)> {
    let word = |change: &BookChange| match change {
        BookChange::Book { outcome, .. } => format!("book {}", *outcome as u8),
        BookChange::Level { outcome, .. } => format!("level {}", *outcome as u8),
        BookChange::Tick(tick) => format!("tick {}", tick.0),
        BookChange::Gap(outcome) => format!("gap {}", *outcome as u8),
    };
    let row = |frame: &BookFrame| {
        let words: Vec<String> = frame.changes.iter().map(word).collect();
        (frame.at.since(FIRST.start()) / MILLISECOND, frame.market, words.join(", "))
    };
    frames.iter().map(row).collect()
}

#[test]
fn gaps_missing_hours_and_borders_of_a_recording_break_books() {
    const H: u64 = 3_600_000;
    let both = |millis: u64| {
        [0, 1]
            .map(|outcome| row(millis, 1, outcome, book(&[(3_000, 5)], &[(4_000, 5)])))
            .into_iter()
            .collect::<Vec<_>>()
    };
    let gap = |from: u64, tokens: Option<Vec<String>>| Gap {
        connection: None,
        from: at(from).millis(),
        reason: "a test".to_owned(),
        to: at(from + 1_000).millis(),
        tokens,
    };
    let level = |millis| row(millis, 1, 0, change(BookSide::Bid, 2_900, 7));
    let cover = |hour: u64| [both(hour * H), both(hour * H + H - 1_000)].concat();
    let pair = |word: &str| format!("{word} 0, {word} 1");
    type Case<'a> = (&'a str, Vec<Making>, u32, Vec<(u64, String)>);
    let whole = |hour: u32, rows: Vec<Row>| Making { hour, rows, gaps: Vec::new(), is_partial: false };
    let cases: Vec<Case<'_>> = vec![
        (
            "a gap of one token: its changes are dropped until its next book",
            vec![Making {
                hour: 0,
                rows: [both(0), vec![level(2_000), level(6_000)], both(H - 1_000)].concat(),
                gaps: vec![gap(5_000, Some(vec![token(1, 0).to_string()]))],
                is_partial: false,
            }],
            1,
            vec![(0, pair("book")), (2_000, "level 0".into()), (5_000, "gap 0".into()), (H - 1_000, pair("book"))],
        ),
        (
            "a gap at the moment of a book comes before it; tokens of others do not matter",
            vec![Making {
                hour: 0,
                rows: [both(0), both(5_000), both(H - 1_000)].concat(),
                gaps: vec![gap(5_000, None), gap(6_000, Some(vec!["77".to_owned()]))],
                is_partial: false,
            }],
            1,
            vec![(0, pair("book")), (5_000, pair("gap")), (5_000, pair("book")), (H - 1_000, pair("book"))],
        ),
        (
            "a recording that begins and ends within an hour",
            vec![Making {
                hour: 0,
                rows: [both(600_000), both(1_200_000)].concat(),
                gaps: Vec::new(),
                is_partial: true,
            }],
            1,
            vec![(0, pair("gap")), (600_000, pair("book")), (1_200_000, pair("book")), (1_200_001, pair("gap"))],
        ),
        (
            "a missing hour",
            (0..6).filter(|hour| *hour != 4).map(|hour| whole(hour, cover(hour.into()))).collect(),
            6,
            (0..6)
                .flat_map(|hour| match hour {
                    4 => vec![(4 * H, pair("gap"))],
                    hour => vec![(hour * H, pair("book")), (hour * H + H - 1_000, pair("book"))],
                })
                .collect(),
        ),
    ];
    let count = cases.len();
    for (name, hours, window, expected) in cases {
        let shelf = Shelf::new();
        hours.into_iter().for_each(|hour| shelf.make(hour));
        let plan = plan_of(&shelf, &[1], window, &json!({}));
        let found: Vec<(u64, String)> =
            shown(&frames_of(&shelf, &plan)).into_iter().map(|(at, _, what)| (at, what)).collect();
        assert_eq!(found, expected, "{name}");
    }
    println!("breaks: {count} cases");
}

#[test]
fn nothing_after_the_window_is_read_and_ticks_are_given_once() {
    let shelf = Shelf::new();
    let tick = |outcome| {
        let event = Event::TickSizeChange { old: None, new: engine::amount::TickSize(10) };
        row(4_000, 1, outcome, event)
    };
    let rows = vec![
        row(1_000, 1, 0, book(&[(3_000, 5)], &[(4_000, 5)])),
        row(1_000, 1, 1, book(&[(6_000, 5)], &[(7_000, 5)])),
        tick(0),
        tick(1),
        row(60_000, 1, 0, change(BookSide::Bid, 2_900, 7)),
        row(3_599_000, 1, 1, change(BookSide::Bid, 5_900, 7)),
    ];
    shelf.hour(0, rows);
    let end = wire::instant::ts_text(at(60_000));
    let plan = plan_of(&shelf, &[1], 1, &json!({"end": end}));
    let found = shown(&frames_of(&shelf, &plan));
    let expected = [(1_000, 0, "book 0, book 1".to_owned()), (4_000, 0, "tick 10".to_owned())];
    assert_eq!(found, expected);
}

/// A moment with very many levels has several frames, with the same changes.
#[test]
fn a_long_moment_is_divided() {
    let shelf = Shelf::new();
    let mut rows = vec![row(1_000, 1, 0, book(&[(3_000, 5)], &[])), row(1_000, 1, 1, book(&[], &[(7_000, 5)]))];
    let count = FRAME_WEIGHT_MAX + 1_000;
    rows.extend((0..count).map(|number| row(2_000, 1, 0, change(BookSide::Bid, 1 + (number % 2_999) as u16, 1))));
    rows.push(row(3_599_000, 1, 1, book(&[], &[(7_000, 5)])));
    shelf.hour(0, rows);
    let frames = frames_of(&shelf, &plan_of(&shelf, &[1], 1, &json!({})));
    let counts: Vec<(u64, usize)> =
        frames.iter().map(|frame| (frame.at.since(FIRST.start()) / MILLISECOND, frame.changes.len())).collect();
    assert_eq!(counts, [(1_000, 2), (2_000, FRAME_WEIGHT_MAX), (2_000, 1_000), (3_599_000, 1)]);
}

#[test]
fn frames_end_when_the_run_does_not_go_on() {
    let shelf = Shelf::new();
    let mut chance = Chance::seeded(3);
    let rows = (0..2).flat_map(|outcome| random_rows(&mut chance, 0, 1, outcome, 5_000, true)).collect();
    shelf.hour(0, rows);
    let plan = plan_of(&shelf, &[1], 1, &json!({}));
    let mut cases = 0;
    let all = Cell::new(0);
    let counting = || {
        all.set(all.get() + 1);
        true
    };
    read(Frames::open(&plan, &shelf.store, MEMORY, &counting)).expect("whole");
    for ends_after in 0..all.get() {
        let asked = Cell::new(0);
        let goes_on = || {
            asked.set(asked.get() + 1);
            asked.get() <= ends_after
        };
        let ended = read(Frames::open(&plan, &shelf.store, MEMORY, &goes_on));
        assert!(matches!(ended, Err(FramesError::Ended)), "after {ends_after}");
        cases += 1;
    }
    println!("ends: {cases} cases");
    assert!(cases >= 10, "it is asked every thousand rows");
}

#[test]
fn an_hour_that_was_replaced_or_removed_is_named() {
    let shelf = Shelf::new();
    let rows = |shares| {
        let market = |millis| [0, 1].map(|outcome| row(millis, 1, outcome, book(&[(3_000, shares)], &[(4_000, 5)])));
        [market(0), market(3_599_000)].concat()
    };
    shelf.hour(0, rows(5));
    let plan = plan_of(&shelf, &[1], 1, &json!({}));
    assert_eq!(frames_of(&shelf, &plan).len(), 2);
    shelf.hour(0, rows(6));
    let mut cases = 0;
    for removes in [false, true] {
        if removes {
            let entry = shelf.store.hour(crate::testing::VENUE, FIRST).expect("an hour");
            std::fs::remove_file(&entry.path).expect("removed");
            shelf.store.refresh().expect("listed");
        }
        let opened = Frames::open(&plan, &shelf.store, MEMORY, &|| true);
        assert!(matches!(opened.err(), Some(FramesError::HourChanged(FIRST))), "{removes}");
        cases += 1;
    }
    println!("changed hours: {cases} cases");
}

/// The rows of an hour that need several times the memory are spilled.
#[test]
fn memory_is_bounded() {
    const ROWS: u64 = 400_000;
    let shelf = Shelf::new();
    let mut chance = Chance::seeded(5);
    let mut rows = Vec::new();
    for market in 1..=2 {
        for outcome in 0..2 {
            rows.push(row(0, market, outcome, book(&[(3_000, 5)], &[(7_000, 5)])));
        }
    }
    rows.extend((0..ROWS).map(|number| {
        let price = 1 + chance.below(2_999) as u16;
        let event = change(BookSide::Bid, price, chance.below(9));
        row(1 + chance.below(3_590_000), 1 + number % 2, number / 2 % 2, event)
    }));
    shelf.hour(0, rows);
    let plan = plan_of(&shelf, &[1, 2], 1, &json!({}));
    let (mut changes, mut last) = (0, Timestamp(0));
    let used = allocation_counter::measure(|| {
        let mut frames = Frames::open(&plan, &shelf.store, MEMORY, &|| true).expect("opened");
        while let Some(frame) = frames.next_frame().expect("a frame") {
            assert!(frame.at >= last);
            (last, changes) = (frame.at, changes + frame.changes.len());
        }
    });
    println!("memory: {} rows, at most {} bytes of {MEMORY}", changes, used.bytes_max);
    assert_eq!(changes as u64, ROWS + 4);
    assert!(used.bytes_max < MEMORY, "{} bytes", used.bytes_max);
    let left = std::fs::read_dir(shelf.store.root().join(CACHE)).expect("runs were spilled").count();
    assert_eq!(left, 0, "runs have no name");
}
