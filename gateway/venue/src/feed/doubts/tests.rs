use super::*;
use engine::amount::Qty;
use engine::book::{BookSide, BookWriter};
use std::sync::Arc;

const MARKET: MarketId = MarketId(3);
const SECOND_US: u64 = SECOND;

/// The books of a market, the checks of them, and a clock.
struct World {
    writer: BookWriter,
    doubts: Doubts,
    now: Timestamp,
}

impl World {
    fn new() -> World {
        let books = Arc::new(Books::new());
        let writer = books.writer().expect("the first one");
        World { writer, doubts: Doubts::new(&Pace::default(), true), now: Timestamp(1_000 * SECOND_US) }
    }

    fn levels(levels: &str) -> Vec<(Price, Qty)> {
        levels.split_whitespace().map(|price| (Price(price.parse().expect("a price")), Qty(5_000_000))).collect()
    }

    /// `4000 / 4200`: the bids and asks of the first (or second) outcome.
    fn book(&mut self, outcome: Outcome, book: &str) {
        let (bids, asks) = book.split_once('/').expect("two sides");
        let (instrument, at) = (MARKET.instrument(outcome), self.now);
        self.writer.frame(0, at, |frame| {
            frame.snapshot(instrument, &World::levels(bids), &World::levels(asks), at, None);
        });
        self.check();
    }

    /// A snapshot in the response to a request.
    fn answer(&mut self, book: &str) {
        let (bids, asks) = book.split_once('/').expect("two sides");
        let (instrument, at) = (MARKET.instrument(Outcome::First), self.now);
        self.writer.answer(0, at, |frame| {
            frame.snapshot(instrument, &World::levels(bids), &World::levels(asks), at, None);
        });
        self.judge(true);
    }

    fn check(&mut self) {
        self.judge(false);
    }

    fn judge(&mut self, is_answer: bool) {
        let crossed = self.writer.crossed().to_vec();
        for book in crossed {
            if self.doubts.crossed(book, is_answer, self.now) {
                self.writer.distrust(book.market());
            }
        }
        self.doubts.changed(MARKET, self.writer.books(), self.now);
    }

    /// The actions that are due after this many tenths of a second.
    fn after(&mut self, tenths: u64) -> String {
        self.now = self.now.plus(tenths * SECOND_US / 10);
        let words = self.doubts.turn(self.writer.books(), self.now).into_iter().map(|verdict| match verdict {
            Verdict::Resync(instrument) => format!("resync {}", instrument.outcome() as usize),
            Verdict::Distrust(_) => "distrust".into(),
            Verdict::Release(_) => "release".into(),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    fn is_held(&self) -> bool {
        self.doubts.holds(MARKET)
    }
}

#[test]
fn a_crossed_book_is_held_then_requested_then_distrusted_and_released_when_it_is_right() {
    // The first token's book, tenths of a second until the check, the actions, whether streams are held.
    let rows: [(&str, u64, &str, bool); 9] = [
        ("4000 / 4200", 30, "", false),
        ("4200 / 4200", 10, "", true),
        ("", 11, "resync 0, release", false),
        ("4300 / 4200", 19, "", false),
        ("", 2, "distrust, resync 0", false),
        ("4300 / 4100", 21, "distrust, resync 0", false),
        ("4000 / 4100", 0, "resync 0, release", false),
        ("4100 / 4100", 5, "", true),
        ("/ 4100", 1, "release", false),
    ];
    let mut world = World::new();
    for (number, (book, tenths, expected, held)) in rows.iter().enumerate() {
        if !book.is_empty() {
            world.book(Outcome::First, book);
        }
        assert_eq!(world.after(*tenths), *expected, "row {number}");
        assert_eq!(world.is_held(), *held, "row {number}");
    }
    println!("crossed books: {} cases", rows.len());
}

#[test]
fn a_crossed_snapshot_restores_no_trust() {
    let mut world = World::new();
    let first = MARKET.instrument(Outcome::First);
    // The snapshot, tenths of a second until the check, whether orders are judged by the book then.
    let rows = [
        ("4000 / 4200", 1, true),
        ("4300 / 4200", 21, true),
        // The requested book is crossed too.
        ("4300 / 4200", 21, false),
        ("4300 / 4200", 1, false),
        ("4400 / 4200", 25, false),
        ("4400 / 4100", 1, false),
        ("4000 / 4100", 1, true),
        // A new suspicion starts from the beginning.
        ("4200 / 4100", 1, true),
    ];
    for (number, (book, tenths, is_trusted)) in rows.iter().enumerate() {
        world.book(Outcome::First, book);
        for verdict in {
            world.now = world.now.plus(tenths * SECOND_US / 10);
            world.doubts.turn(world.writer.books(), world.now)
        } {
            if let Verdict::Distrust(market) = verdict {
                world.writer.distrust(market);
            }
        }
        let age = world.writer.books().quote_age(first, world.now).expect("it has a quote");
        assert_eq!(age < 10 * SECOND_US, *is_trusted, "row {number}");
    }
    // A crossed response is distrusted immediately.
    let mut world = World::new();
    world.book(Outcome::First, "4300 / 4200");
    assert_eq!(world.after(21), "resync 0, release");
    world.answer("4300 / 4200");
    assert!(world.writer.books().stale(first, world.now));
    assert_eq!((world.after(19).as_str(), world.after(2).as_str()), ("", "distrust, resync 0"));
    world.answer("4000 / 4200");
    assert!(!world.writer.books().stale(first, world.now));
    println!("crossed whole books: {} cases", rows.len() + 2);
}

#[test]
fn a_market_is_released_when_neither_of_its_books_is_crossed() {
    let mut world = World::new();
    world.book(Outcome::First, "4200 / 4100");
    world.book(Outcome::Second, "5900 / 5800");
    assert!(world.is_held());
    world.book(Outcome::First, "4000 / 4100");
    assert_eq!((world.after(1).as_str(), world.is_held()), ("", true));
    world.book(Outcome::Second, "5900 / 6000");
    assert_eq!((world.after(1).as_str(), world.is_held()), ("release", false));
    println!("crossed pairs: 3 cases");
}

#[test]
fn three_differing_best_prices_within_ten_seconds_are_too_many() {
    let mut world = World::new();
    world.book(Outcome::First, "4000 / 4200");
    let first = MARKET.instrument(Outcome::First);
    let current = world.writer.books().book(first).expect("known").best().expect("known");
    let none = [None, None];
    let right = [Some(Price(4_000)), Some(Price(4_200))];
    // Seconds until the frame, the stated best prices, whether the book must be requested.
    let rows = [
        (0, right, false),
        (1, none, false),
        (1, [Some(Price(4_000)), None], false),
        (1, right, false),
        (1, [Some(Price(3_999)), Some(Price(4_200))], true),
        (0, none, false),
        (9, none, false),
        (2, none, false),
        (1, none, false),
        (1, none, true),
        // The request is too recent.
        (0, none, false),
        (0, none, false),
        (0, none, false),
        (11, none, false),
        (0, none, false),
        (0, none, true),
    ];
    for (number, (seconds, stated, expected)) in rows.iter().enumerate() {
        world.now = world.now.plus(seconds * SECOND_US);
        assert_eq!(world.doubts.top(first, *stated, current, world.now), *expected, "row {number}");
    }
    println!("best prices: {} cases", rows.len());
}

#[test]
fn books_that_do_not_mirror_each_other_are_requested() {
    let mut world = World::new();
    world.book(Outcome::First, "4000 / 4200");
    assert_eq!(world.after(100), "", "a single book has no mirror");
    world.book(Outcome::Second, "5800 / 6000");
    assert_eq!(world.after(100), "");
    world.book(Outcome::Second, "5800 / 6100");
    let rows = [(49, ""), (2, "resync 0"), (49, ""), (2, "resync 0")];
    for (number, (tenths, expected)) in rows.iter().enumerate() {
        assert_eq!(world.after(*tenths), *expected, "row {number}");
    }
    world.book(Outcome::Second, "5800 / 6000");
    assert_eq!(world.after(100), "");
    println!("mirrors: {} cases", rows.len() + 3);
}

#[test]
fn a_distrusted_book_is_too_old_to_trade_on_until_a_snapshot() {
    let mut world = World::new();
    let first = MARKET.instrument(Outcome::First);
    world.book(Outcome::First, "4000 / 4200");
    world.writer.distrust(MARKET);
    let books = world.writer.books().clone();
    let old = |now| books.quote_age(first, now).is_some_and(|age| age >= 900 * SECOND_US);
    assert!(old(world.now) && books.stale(first, world.now));
    let at = world.now;
    world.writer.frame(0, at, |frame| frame.delta(first, &[(BookSide::Bid, Price(3_900), Qty(1))], at));
    assert!(old(world.now), "a change restores no trust");
    world.book(Outcome::First, "4000 / 4200");
    assert!(!old(world.now) && !books.stale(first, world.now));
    println!("distrusted books: 3 cases");
}

#[test]
fn a_recording_is_published_as_it_was() {
    let mut world = World::new();
    world.doubts = Doubts::new(&Pace::default(), false);
    world.book(Outcome::First, "4200 / 4100");
    assert!(!world.is_held());
    let rows = [(21, "resync 0"), (21, "distrust, resync 0")];
    for (number, (tenths, expected)) in rows.iter().enumerate() {
        assert_eq!(world.after(*tenths), *expected, "row {number}");
    }
    world.book(Outcome::First, "4000 / 4100");
    assert_eq!(world.after(1), "resync 0");
    println!("recorded crossings: {} cases", rows.len() + 1);
}
