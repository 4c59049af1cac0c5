//! Reading a book while one writer changes it 100,000 times a second.

use crate::chance::Chance;
use crate::report::{Report, Size, timed};
use engine::amount::{Price, Qty};
use engine::book::{BookSide, Books, Depth, Effective, Reach};
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::time::Timestamp;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Changes a second that the writer makes.
const WRITES_PER_SECOND: u64 = 100_000;
/// The writer sleeps this long between bursts: it shares two cores with the reader.
const BURST_EVERY: Duration = Duration::from_millis(1);

pub fn run(size: Size, report: &mut Report) {
    let books = Arc::new(Books::new());
    let instrument = MarketId(0).instrument(Outcome::First);
    let mut writer = books.writer().expect("the first to ask");
    let level = |price: u64| (Price(price as u16 * 100), Qty::from_shares(10 + price));
    let bids: Vec<_> = (1..=49).rev().map(level).collect();
    let asks: Vec<_> = (51..=99).map(level).collect();
    writer.frame(0, Timestamp(1), |frame| frame.snapshot(instrument, &bids, &asks, Timestamp(1), None));
    let (mut depth, mut effective) = (Depth::default(), Effective::default());
    books.copy(instrument, usize::MAX, &mut depth).expect("nobody writes yet");
    for level in depth.bids.iter().chain(&depth.asks) {
        report.computed(level.price.0.to_le_bytes());
        report.computed(level.size.0.to_le_bytes());
    }

    let stop = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    let copies = size.pick(2_000, 2_000_000);
    std::thread::scope(|threads| {
        threads.spawn(|| write(&mut writer, instrument, &stop, &written));
        let begun = Instant::now();
        let mut read = |what: &str, count: u64, mut once: Box<dyn FnMut() -> bool + '_>| {
            let (seconds, done) = timed(|| (0..count).filter(|_| once()).count());
            report.figure(what, seconds * 1e9 / count as f64, "ns a read");
            assert!(done as u64 > count / 2, "{what}: most reads gave up");
        };
        read("top of book", copies, Box::new(|| black_box(books.best(instrument)).is_ok()));
        read("copy of 98 levels", copies / 4, Box::new(|| books.copy(instrument, usize::MAX, &mut depth).is_ok()));
        let whole = &mut effective;
        read("effective book, whole", copies / 8, Box::new(|| books.effective(instrument, whole).is_ok()));
        let reach = Reach::of(BookSide::Ask, 10);
        let mut ten = Effective::default();
        read(
            "effective book, ten asks",
            copies / 4,
            Box::new(move || books.effective_within(instrument, reach, &mut ten).is_ok()),
        );
        stop.store(true, Ordering::Relaxed);
        let rate = written.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
        report.figure("level changes meanwhile", rate, "a second");
    });
    report.rate_note("100,000 changes a second beside reads one after the other, as fast as they go");
    report.not_included("any walk, any request");
}

fn write(writer: &mut engine::book::BookWriter, instrument: InstrumentId, stop: &AtomicBool, written: &AtomicU64) {
    let mut chance = Chance::seeded(7);
    let begun = Instant::now();
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        let due = begun.elapsed().as_micros() as u64 * WRITES_PER_SECOND / 1_000_000;
        while done < due {
            let price = Price(100 * (1 + chance.below(49)) as u16);
            let size = Qty::from_shares(1 + chance.below(500));
            let at = Timestamp(done + 2);
            writer.frame(0, at, |frame| frame.delta(instrument, &[(BookSide::Bid, price, size)], at));
            done += 1;
        }
        written.store(done, Ordering::Relaxed);
        std::thread::sleep(BURST_EVERY);
    }
}
