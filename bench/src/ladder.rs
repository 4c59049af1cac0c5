//! Reading a book while one writer changes it 100,000 times a second: the best level of both sides, 50 levels of each,
//! and the levels that an order needs. The reference is a book that is replaced as a whole at each change and read in
//! place, alternating under the same writer. Where the two are compared, ours is also read as a copy.

use crate::chance::Chance;
use crate::floor::Floor;
use crate::peers::{self, LEVELS, SharedBook};
use crate::report::{Report, Size, timed};
use engine::amount::{Price, Qty, TickSize};
use engine::book::{Book, BookSide, BookWriter, Books, Depth, DepthSide, Effective, Reach, Top};
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::time::Timestamp;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
/// Changes a second that the writer makes.
const WRITES_PER_SECOND: u64 = 100_000;
/// With fewer changes the result would answer another question.
const WRITES_FLOOR: Floor = Floor { of: "changes of the book", least: 90_000.0 };
/// The writer sleeps this long between bursts: it shares two cores with the reader.
const BURST_EVERY: Duration = Duration::from_millis(1);
/// Levels of a side, a tenth of a cent apart: a grid of cents has fewer.
const SIDE_LEVELS: usize = LEVELS / 2;
const TICK: TickSize = TickSize(10);
/// Best bid and ask in ticks.
const BEST: (u16, u16) = (499, 501);
/// The writer's book: ours, or the peer with that number minus one.
const OURS: usize = 0;

pub fn run(size: Size, report: &mut Report) {
    let books = Arc::new(Books::new());
    let instrument = MarketId(0).instrument(Outcome::First);
    let mut writer = books.writer().expect("the first writer");
    writer.tick(MarketId(0), TICK);
    let level = |ticks: u16| (Price(ticks * TICK.0), Qty::from_shares(10 + u64::from(ticks)));
    let bids: Vec<_> = (0..SIDE_LEVELS as u16).map(|place| level(BEST.0 - place)).collect();
    let asks: Vec<_> = (0..SIDE_LEVELS as u16).map(|place| level(BEST.1 + place)).collect();
    writer.frame(0, Timestamp(1), |frame| frame.snapshot(instrument, &bids, &asks, Timestamp(1), None));
    let book = books.book(instrument).expect("just written");
    let (mut depth, mut effective, mut ten) = (Depth::default(), Effective::default(), Effective::default());
    book.copy(usize::MAX, &mut depth).expect("no writer runs yet");
    for level in depth.bids.iter().chain(depth.asks.iter()) {
        report.computed(level.price.0.to_le_bytes());
        report.computed(level.size.0.to_le_bytes());
    }
    let pairs: Vec<(u64, u64)> = bids.iter().chain(&asks).map(|(price, size)| (u64::from(price.0), size.0)).collect();
    let peers = if report.with_peers() { peers::LADDER } else { &[] };
    let others: Vec<Box<dyn SharedBook>> =
        peers.iter().map(|peer| (peer.make)(pairs.as_slice().try_into().expect("the same number of levels"))).collect();
    for other in &others {
        assert_eq!(other.sum(1), sum(&depth), "the same book");
        assert_eq!(other.top(1), top(book.best().expect("known")), "the same book");
    }

    let (stop, target, counts) = (AtomicBool::new(false), AtomicUsize::new(OURS), AtomicU64::new(0));
    let mut ours = Reads::default();
    let mut theirs = vec![Reads::default(); others.len()];
    let copies = size.pick(500, 200_000);
    std::thread::scope(|threads| {
        let change = Change { books: &mut writer, instrument, others: &others, target: &target, counts: &counts };
        threads.spawn(|| change.until(&stop));
        let under = |whose: usize, reads: &mut Reads, read: &mut dyn FnMut(&mut Reads)| {
            target.store(whose, Relaxed);
            let before = counts.load(Relaxed);
            let (seconds, ()) = timed(|| read(reads));
            reads.changes.push((counts.load(Relaxed) - before) as f64 / seconds);
        };
        for _ in 0..size.pick(1, ROUNDS) {
            under(OURS, &mut ours, &mut |reads| {
                let of_book = |_| book.best().map_or(0, top);
                reads.add("top of a book", each(8 * copies, of_book));
                let looked_up = |_| books.best(black_box(instrument)).map_or(0, top);
                reads.add("top of a book, found by its number", each(8 * copies, looked_up));
                for levels in [SIDE_LEVELS, SIDE_LEVELS / 2] {
                    let copy = |_| u64::from(black_box(book.copy(levels, black_box(&mut depth))).is_ok());
                    reads.add(&format!("{levels} levels of each side"), each(copies, copy));
                }
                reads.add(SUMMED, each(copies, |_| copied_sum(book, &mut depth)));
                let whole = |_| u64::from(book.effective(Reach::ALL, &mut effective).is_ok());
                reads.add("effective book, whole", each(copies / 4, whole));
                let some = |_| u64::from(book.effective(Reach::of(BookSide::Ask, 10), &mut ten).is_ok());
                reads.add("effective book, ten asks", each(copies / 2, some));
            });
            for (number, (other, reads)) in others.iter().zip(&mut theirs).enumerate() {
                under(number + 1, reads, &mut |reads| {
                    reads.add("top of a book", timed(|| black_box(other.top(8 * copies))).0 / (8 * copies) as f64);
                    reads.add(SUMMED, timed(|| black_box(other.sum(copies))).0 / copies as f64);
                });
            }
        }
        stop.store(true, Relaxed);
    });
    for (what, seconds) in &ours.rows {
        report.middle(what, &nanos(seconds), "ns");
    }
    report.middle("level changes meanwhile", &ours.changes, "a second");
    for (peer, reads) in peers.iter().zip(&theirs) {
        for (what, seconds) in &reads.rows {
            report.middle(&format!("{}: {what}", peer.name), &nanos(seconds), "ns");
            let own = ours.row(what);
            let ratios = seconds.iter().zip(own).map(|(theirs, ours)| theirs / ours).collect();
            let changes = [(&WRITES_FLOOR, &ours.changes[..]), (&WRITES_FLOOR, &reads.changes[..])];
            report.ratio_above(&changes, &format!("rate beside {}: {what}", peer.name), ratios);
        }
    }
    report.rate_note("100,000 changes a second beside reads one after the other, as fast as they go");
    report.not_included("any walk, any request");
}

/// The row in which both books are read as a whole.
const SUMMED: &str = "50 levels of each side, and their sum";

/// Seconds of each kind of read, one number a round.
#[derive(Clone, Default)]
struct Reads {
    rows: Vec<(String, Vec<f64>)>,
    /// Changes a second meanwhile.
    changes: Vec<f64>,
}

impl Reads {
    fn add(&mut self, what: &str, seconds: f64) {
        match self.rows.iter_mut().find(|(row, _)| row == what) {
            Some((_, rounds)) => rounds.push(seconds),
            None => self.rows.push((what.to_owned(), vec![seconds])),
        }
    }

    fn row(&self, what: &str) -> &[f64] {
        self.rows.iter().find(|(row, _)| row == what).map_or(&[], |(_, rounds)| rounds)
    }
}

/// Seconds of one read, from `count` of them. Most must return a value.
fn each(count: u64, mut once: impl FnMut(u64) -> u64) -> f64 {
    let (seconds, read) = timed(|| (0..count).map(|number| u64::from(once(number) != 0)).sum::<u64>());
    assert!(read > count / 2, "most reads gave up");
    seconds / count as f64
}

fn nanos(seconds: &[f64]) -> Vec<f64> {
    seconds.iter().map(|seconds| seconds * 1e9).collect()
}

fn top(top: Top) -> u64 {
    [top.bid, top.ask].into_iter().flatten().map(|quote| u64::from(quote.price.0).wrapping_add(quote.size.0)).sum()
}

fn copied_sum(book: Book<'_>, depth: &mut Depth) -> u64 {
    book.copy(SIDE_LEVELS, depth).map_or(0, |()| sum(depth))
}

fn sum(depth: &Depth) -> u64 {
    let of = |side: &DepthSide| side.iter().map(|level| u64::from(level.price.0) + level.size.0).sum::<u64>();
    of(&depth.bids) + of(&depth.asks)
}

/// The writer of the books.
struct Change<'a> {
    books: &'a mut BookWriter,
    instrument: InstrumentId,
    others: &'a [Box<dyn SharedBook>],
    /// The book that is changed.
    target: &'a AtomicUsize,
    /// Changes so far.
    counts: &'a AtomicU64,
}

impl Change<'_> {
    fn until(self, stop: &AtomicBool) {
        let mut chance = Chance::seeded(7);
        let begun = Instant::now();
        let mut done = 0;
        while !stop.load(Relaxed) {
            let due = begun.elapsed().as_micros() as u64 * WRITES_PER_SECOND / 1_000_000;
            while done < due {
                let place = chance.below(SIDE_LEVELS as u64) as u16;
                let size = Qty::from_shares(1 + chance.below(500));
                match self.target.load(Relaxed) {
                    OURS => {
                        let (price, at) = (Price((BEST.0 - place) * TICK.0), Timestamp(done + 2));
                        let levels = [(BookSide::Bid, price, size)];
                        self.books.frame(0, at, |frame| frame.delta(self.instrument, &levels, at));
                    }
                    other => self.others[other - 1].change(usize::from(place), size.0),
                }
                done += 1;
            }
            self.counts.store(done, Relaxed);
            std::thread::sleep(BURST_EVERY);
        }
    }
}
