//! The feed's half of the books: reads whole frames of the venue and publishes them pair by pair.
//!
//! The updates of a frame are collected first and then applied. So the work of a decoder between updates (token
//! lookups, parsing of prices) never delays readers, and updates of one pair are published together even if they are
//! apart in the frame. A pair's version is odd only while its own slots are stored.

use crate::amount::{Price, Qty, TickSize};
use crate::book::BookSide;
use crate::book::depth::SnapshotHash;
use crate::book::effective::{Faces, is_first_bids};
use crate::book::ladder::RANK_MAX;
use crate::book::registry::{Books, Half, LastTrade, Pair};
use crate::book::stated::{Stated, StatedCell};
use crate::book::watched::{LevelChange, LevelNews, LevelWatch};
use crate::id::{InstrumentId, MarketId, Outcome};
use crate::time::Timestamp;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The one writer of all books.
pub struct BookWriter {
    books: Arc<Books>,
    /// By market; the ladders of a pair contain every price of its tick.
    ticks: Vec<TickSize>,
    updates: Vec<Update>,
    levels: Vec<Written>,
    report: FrameReport,
    /// Tokens of the last frame whose own book is crossed or locked.
    crossed: Vec<InstrumentId>,
    /// Of watched levels, oldest first, until they are taken.
    news: Vec<LevelNews>,
    /// News are taken; without a taker there are none.
    reports: bool,
}

/// Connection number of updates from single requests without a lasting connection: a message about one token is not a
/// sign of life for the others, so each of them is as old as its own last response.
pub const SINGLE_ANSWERS: u8 = u8::MAX - 1;

/// The collected updates of one frame.
pub struct Frame<'a> {
    writer: &'a mut BookWriter,
}

/// Levels of a frame that could not be shown as received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameReport {
    /// Sizes clamped to [`SIZE_MAX`](crate::book::ladder::SIZE_MAX).
    pub clamped: u32,
    /// Levels dropped: price not in 1..=9 999.
    pub refused: u32,
    /// Pairs of which best prices, or the comparison of the two books, may have changed: most changed levels are
    /// worse than all that decide these.
    pub settled: u32,
}

/// A collected level: rank on its side, absolute size.
type Written = (BookSide, u16, Qty);

/// The tick of a market before its tick is known: the usual one of the venues.
const TICK_DEFAULT: TickSize = TickSize(100);

struct Update {
    instrument: InstrumentId,
    what: Change,
}

enum Change {
    Snapshot {
        bids: Range<usize>,
        asks: Range<usize>,
        at: Timestamp,
        hash: Option<SnapshotHash>,
    },
    Delta {
        levels: Range<usize>,
        at: Timestamp,
    },
    Trade(LastTrade),
    /// The price of the last trade, as a book of the time `at` states it, and the number of decimals in its text.
    LastPrice {
        price: Price,
        decimals: Option<u8>,
        at: Timestamp,
    },
}

impl BookWriter {
    pub(super) fn new(books: Arc<Books>) -> BookWriter {
        BookWriter {
            books,
            ticks: Vec::new(),
            updates: Vec::new(),
            levels: Vec::new(),
            report: FrameReport::default(),
            crossed: Vec::new(),
            news: Vec::new(),
            reports: false,
        }
    }

    /// From now on it reports changes of watched levels: [`BookWriter::take_news`] takes the news after each frame.
    pub fn report_levels(&mut self) {
        self.reports = true;
    }

    /// What has happened at watched levels, oldest first.
    pub fn take_news(&mut self) -> std::vec::Drain<'_, LevelNews> {
        self.news.drain(..)
    }

    /// Reports every watched level as after a snapshot at this venue time: what happened before was not reported.
    pub fn report_all(&mut self, at: Timestamp) {
        let BookWriter { books, ticks, news, reports, .. } = self;
        if !*reports {
            return;
        }
        for market in (0..ticks.len() as u32).map(MarketId) {
            let (pair, watch) = (books.pairs.get(market.0 as usize), books.watched_levels.get(market.0 as usize));
            let (Some(pair), Some(watch)) = (pair, watch.filter(|watch| watch.is_any())) else { continue };
            let is_known = |of: Outcome| pair.halves[of as usize].known.load(Relaxed);
            let is_snapshot = [Outcome::First, Outcome::Second].map(|of| is_known(of) || is_known(of.other()));
            let reporting = Reporting { market, pair, at, is_rebased: false, is_snapshot };
            news.extend(watch.levels().map(|(face, rank)| reporting.of(face, rank)));
        }
    }

    /// The books of this writer.
    pub fn books(&self) -> &Arc<Books> {
        &self.books
    }

    /// Applies one frame: `fill` collects its updates, then each pair is changed as one. `received` is venue time; it
    /// is the time of the last message of every token named, and a sign of life of `connection`.
    pub fn frame(&mut self, connection: u8, received: Timestamp, fill: impl FnOnce(&mut Frame<'_>)) -> FrameReport {
        self.alive(connection, received);
        self.answer(connection, received, fill)
    }

    /// Applies the response to a request on behalf of `connection`. It shows that the venue responds, not that the
    /// connection is alive, so it is not a sign of life for tokens that it does not name.
    pub fn answer(&mut self, connection: u8, received: Timestamp, fill: impl FnOnce(&mut Frame<'_>)) -> FrameReport {
        self.updates.clear();
        self.levels.clear();
        self.crossed.clear();
        self.report = FrameReport::default();
        fill(&mut Frame { writer: self });
        let mut updates = std::mem::take(&mut self.updates);
        // Stable: updates of one pair keep their order.
        let market = |update: &Update| update.instrument.market();
        if !updates.is_sorted_by_key(market) {
            updates.sort_by_key(market);
        }
        match &updates[..] {
            // Most frames.
            [one] => self.apply(connection, received, std::slice::from_ref(one)),
            many => many
                .chunk_by(|one, next| market(one) == market(next))
                .for_each(|updates| self.apply(connection, received, updates)),
        }
        self.updates = updates;
        self.books.frames.store(self.books.frames.load(Relaxed) + 1, Relaxed);
        self.report
    }

    /// Tokens of the last frame whose own book is crossed or locked after it.
    pub fn crossed(&self) -> &[InstrumentId] {
        &self.crossed
    }

    /// Sets the tick of a market: its ladders will contain every price of it. Existing levels stay.
    pub fn tick(&mut self, market: MarketId, tick: TickSize) {
        let index = market.0 as usize;
        if self.ticks.len() <= index {
            self.ticks.resize(index + 1, TICK_DEFAULT);
        }
        self.ticks[index] = tick;
        if let Some(pair) = self.books.pairs.get(index) {
            pair.sequence.write(|| {
                for half in &pair.halves {
                    half.bids.fit_tick(tick);
                    half.asks.fit_tick(tick);
                }
            });
        }
    }

    /// The book of a token is unreliable: stale, and ageing from its last message on, until its next snapshot.
    pub fn gap(&mut self, instrument: InstrumentId) {
        if let Some(pair) = self.books.pairs.get(instrument.market().0 as usize) {
            pair.halves[instrument.outcome() as usize].gap.store(true, Relaxed);
            self.report_gap(instrument);
        }
    }

    /// Reports the gap where a level is watched: of both tokens, if the other one is quoted by this one's book.
    fn report_gap(&mut self, instrument: InstrumentId) {
        let market = instrument.market().0 as usize;
        if !self.reports || !self.books.watched_levels.get(market).is_some_and(|watch| watch.is_any()) {
            return;
        }
        let Some(pair) = self.books.pairs.get(market) else { return };
        let version = pair.sequence.version();
        let gap = |of| LevelNews::Gap { instrument: instrument.market().instrument(of), version };
        self.news.extend(pair.quoted(instrument.outcome()).map(gap));
    }

    /// The books of this market are wrong: until their next snapshots both have the maximum age, so that no order is
    /// judged by them.
    pub fn distrust(&mut self, market: MarketId) {
        if let Some(pair) = self.books.pairs.get(market.0 as usize) {
            for half in pair.halves.iter().filter(|half| half.last_message_at.load(Relaxed) != 0) {
                half.gap.store(true, Relaxed);
                half.last_message_at.store(1, Relaxed);
            }
            [Outcome::First, Outcome::Second].into_iter().for_each(|of| self.report_gap(market.instrument(of)));
        }
    }

    /// The books of all tokens whose last message came on `connection` are unreliable.
    pub fn gap_connection(&mut self, connection: u8) {
        for market in (0..self.ticks.len() as u32).map(MarketId) {
            for of in [Outcome::First, Outcome::Second] {
                let Some(half) = self.books.pairs.get(market.0 as usize).map(|pair| &pair.halves[of as usize]) else {
                    continue;
                };
                if half.last_message_at.load(Relaxed) != 0 && half.connection.load(Relaxed) == u16::from(connection) {
                    half.gap.store(true, Relaxed);
                    self.report_gap(market.instrument(of));
                }
            }
        }
    }

    /// Stores what the venue's catalogue states of a market. Returns whether it is new.
    pub fn stated(&mut self, market: MarketId, stated: &Stated) -> bool {
        let traded = [Outcome::First, Outcome::Second].map(|of| self.books.last_trade(market.instrument(of)).is_some());
        stated_cell(&self.books, market).by_catalogue(stated, traded)
    }

    /// A message or a pong came on `connection` at this venue time.
    pub fn alive(&mut self, connection: u8, at: Timestamp) {
        if connection == SINGLE_ANSWERS {
            return;
        }
        raise(&self.books.alive[usize::from(connection)], at.0);
    }

    /// The books come from a recording that has reached `venue_now`. Never goes back.
    pub fn recording(&mut self, venue_now: Timestamp) {
        raise(&self.books.recording, venue_now.0);
    }

    /// From now on quotes age by venue time, which is `venue_now`, instead of the server's clock. Never goes back.
    pub fn clock(&mut self, venue_now: Timestamp) {
        raise(&self.books.clock, venue_now.0);
    }

    /// The start or end of an outage of the venue.
    pub fn outage(&mut self, outage: bool) {
        self.books.outage.store(outage, Relaxed);
    }

    /// Sets whether no venue has sent a message since the start.
    pub fn no_contact(&mut self, no_contact: bool) {
        self.books.no_contact.store(no_contact, Relaxed);
    }

    fn tick_of(&self, market: MarketId) -> TickSize {
        self.ticks.get(market.0 as usize).copied().unwrap_or(TICK_DEFAULT)
    }

    /// Applies all updates of one pair as one change.
    fn apply(&mut self, connection: u8, received: Timestamp, updates: &[Update]) {
        let market = updates[0].instrument.market();
        if self.ticks.len() <= market.0 as usize {
            self.tick(market, TICK_DEFAULT);
        }
        let (tick, mut clamped) = (self.tick_of(market), 0);
        let BookWriter { books, levels, report, crossed, news, reports, .. } = self;
        let pair = pair_of(books, market);
        let watch = books.watched_levels.get(market.0 as usize).filter(|watch| *reports && watch.is_any());
        let rules = watch.map(|_| pair.rules());
        let (mut changed, mut faces) = ([false; 2], Faces::default());
        for Update { instrument, what } in updates {
            let outcome = instrument.outcome();
            let half = &pair.halves[outcome as usize];
            half.connection.store(u16::from(connection), Relaxed);
            // A change does not reduce the age of an unreliable book: only a snapshot repairs it.
            let broken = half.gap.load(Relaxed) && half.last_message_at.load(Relaxed) != 0;
            if matches!(what, Change::Snapshot { .. }) || !broken {
                raise(&half.last_message_at, received.0);
            }
            match what {
                Change::Trade(trade) => {
                    half.trade.store(trade);
                    if let Some(stated) = books.stated.get(market.0 as usize) {
                        stated.traded(outcome);
                    }
                    continue;
                }
                Change::LastPrice { price, decimals, at } => {
                    // A book that is older than a received trade does not include it.
                    if books.last_trade(*instrument).is_none_or(|trade| trade.at <= *at) {
                        stated_cell(books, market).with_book(outcome, *price, *decimals);
                    }
                    continue;
                }
                Change::Snapshot { .. } => faces = Faces::ALL,
                Change::Delta { levels: range, .. } => {
                    let counted =
                        levels[range.clone()].iter().filter(|(side, rank, _)| pair.counts(outcome, *side, *rank));
                    counted.for_each(|(side, ..)| faces.add(outcome, *side));
                }
            }
            changed[outcome as usize] = true;
        }
        if changed == [false, false] {
            return;
        }
        pair.sequence.write(|| {
            for Update { instrument, what } in updates {
                clamped += pair.halves[instrument.outcome() as usize].change(what, tick, levels);
            }
            if faces != Faces::default() {
                pair.settle(faces);
            }
        });
        if let (Some(watch), Some(rules)) = (watch, rules) {
            report_changes(pair, watch, market, received, updates, levels, rules != pair.rules(), news);
        }
        report.clamped += clamped;
        report.settled += u32::from(faces != Faces::default());
        for (outcome, half) in [Outcome::First, Outcome::Second].into_iter().zip(&pair.halves) {
            if changed[outcome as usize] && half.crossed() {
                crossed.push(market.instrument(outcome));
            }
        }
    }
}

/// The news of a pair after a change.
#[derive(Clone, Copy)]
struct Reporting<'a> {
    market: MarketId,
    pair: &'a Pair,
    at: Timestamp,
    is_rebased: bool,
    is_snapshot: [bool; 2],
}

impl Reporting<'_> {
    /// The news of one level.
    fn of(self, is_first_bids: bool, rank: u16) -> LevelNews {
        let Reporting { market, pair, at, is_rebased, is_snapshot } = self;
        let sizes = [Outcome::First, Outcome::Second].map(|of| {
            let side = if (of == Outcome::First) == is_first_bids { BookSide::Bid } else { BookSide::Ask };
            pair.shown(of, side, rank)
        });
        let version = pair.sequence.version();
        LevelNews::Changed(LevelChange { market, is_first_bids, rank, sizes, version, at, is_rebased, is_snapshot })
    }
}

/// Reports the watched levels that a change of a pair has touched: of all of them after a snapshot, or if the rule has
/// changed by which both books are merged.
#[expect(clippy::too_many_arguments, reason = "the parts of one change, of one caller")]
fn report_changes(
    pair: &Pair,
    watch: &LevelWatch,
    market: MarketId,
    at: Timestamp,
    updates: &[Update],
    levels: &[Written],
    is_rebased: bool,
    news: &mut Vec<LevelNews>,
) {
    let mut is_snapshot = [false; 2];
    for update in updates.iter().filter(|update| matches!(update.what, Change::Snapshot { .. })) {
        pair.quoted(update.instrument.outcome()).for_each(|of| is_snapshot[of as usize] = true);
    }
    let reporting = Reporting { market, pair, at, is_rebased, is_snapshot };
    if is_rebased || is_snapshot != [false; 2] {
        return news.extend(watch.levels().map(|(face, rank)| reporting.of(face, rank)));
    }
    for Update { instrument, what } in updates {
        let Change::Delta { levels: range, .. } = what else { continue };
        let faces =
            levels[range.clone()].iter().map(|(side, rank, _)| (is_first_bids(instrument.outcome(), *side), *rank));
        news.extend(faces.filter(|(face, rank)| watch.has(*face, *rank)).map(|(face, rank)| reporting.of(face, rank)));
    }
}

fn pair_of(books: &Books, market: MarketId) -> &Pair {
    let index = market.0 as usize;
    match books.pairs.get(index) {
        Some(pair) => pair,
        None => books.pairs.get_or_set(index, || Box::new(Pair::new())),
    }
}

fn stated_cell(books: &Books, market: MarketId) -> &StatedCell {
    books.stated.get_or_set(market.0 as usize, StatedCell::default)
}

/// Raises a moment to `at` if that is later. There is one writer, so the two accesses need not be atomic.
#[inline]
fn raise(cell: &AtomicU64, at: u64) {
    if cell.load(Relaxed) < at {
        cell.store(at, Relaxed);
    }
}

impl Half {
    /// Applies one update to the ladders, inside the pair's sequence; returns the count of clamped sizes.
    fn change(&self, what: &Change, tick: TickSize, levels: &[Written]) -> u32 {
        let of = |range: &Range<usize>| levels[range.clone()].iter().map(|(_, rank, size)| (*rank, *size));
        let (clamped, at) = match what {
            Change::Snapshot { bids, asks, at, hash } => {
                let clamped = self.bids.replace(tick, of(bids)) + self.asks.replace(tick, of(asks));
                self.hash.store(hash.as_ref());
                self.gap.store(false, Relaxed);
                (clamped, at)
            }
            Change::Delta { levels: range, at } => {
                let set = |(side, rank, size): &Written| match side {
                    BookSide::Bid => self.bids.set(*rank, *size),
                    BookSide::Ask => self.asks.set(*rank, *size),
                };
                let clamped = levels[range.clone()].iter().map(|level| u32::from(set(level))).sum();
                self.hash.store(None);
                (clamped, at)
            }
            Change::Trade(_) | Change::LastPrice { .. } => return 0,
        };
        self.known.store(true, Relaxed);
        self.changed_at.store(at.0, Relaxed);
        clamped
    }

    fn crossed(&self) -> bool {
        let top = self.prices();
        crate::book::crossed(top.bid, top.ask)
    }
}

impl Frame<'_> {
    /// The whole book of a token: replaces all levels of both sides, in any order. `at` is the venue's time; `hash` is
    /// its hash of this book.
    pub fn snapshot(
        &mut self,
        instrument: InstrumentId,
        bids: &[(Price, Qty)],
        asks: &[(Price, Qty)],
        at: Timestamp,
        hash: Option<&str>,
    ) {
        self.snapshot_of(instrument, bids.iter().copied(), asks.iter().copied(), at, hash);
    }

    /// The same with levels that are computed.
    pub fn snapshot_of(
        &mut self,
        instrument: InstrumentId,
        bids: impl Iterator<Item = (Price, Qty)>,
        asks: impl Iterator<Item = (Price, Qty)>,
        at: Timestamp,
        hash: Option<&str>,
    ) {
        let bids = self.write(bids.map(|(price, size)| (BookSide::Bid, price, size)));
        let asks = self.write(asks.map(|(price, size)| (BookSide::Ask, price, size)));
        let hash = hash.and_then(SnapshotHash::new);
        self.writer.updates.push(Update { instrument, what: Change::Snapshot { bids, asks, at, hash } });
    }

    /// Changed levels of a token: absolute sizes, 0 = removed.
    pub fn delta(&mut self, instrument: InstrumentId, levels: &[(BookSide, Price, Qty)], at: Timestamp) {
        let levels = self.write(levels.iter().copied());
        self.writer.updates.push(Update { instrument, what: Change::Delta { levels, at } });
    }

    /// A trade at the venue.
    pub fn trade(&mut self, instrument: InstrumentId, trade: LastTrade) {
        self.writer.updates.push(Update { instrument, what: Change::Trade(trade) });
    }

    /// The price of the last trade in a book of time `at`; `decimals` of its text.
    pub fn last_price(&mut self, instrument: InstrumentId, price: Price, decimals: Option<u8>, at: Timestamp) {
        self.writer.updates.push(Update { instrument, what: Change::LastPrice { price, decimals, at } });
    }

    fn write(&mut self, levels: impl Iterator<Item = (BookSide, Price, Qty)>) -> Range<usize> {
        let start = self.writer.levels.len();
        for (side, price, size) in levels {
            if (1..=RANK_MAX).contains(&price.0) {
                self.writer.levels.push((side, side.rank(price), size));
            } else {
                self.writer.report.refused += 1;
            }
        }
        start..self.writer.levels.len()
    }
}

impl crate::book::registry::TradeCell {
    fn store(&self, trade: &LastTrade) {
        self.sequence.write(|| {
            self.what.store(1 << 17 | u64::from(trade.taker_buys) << 16 | u64::from(trade.price.0), Relaxed);
            self.size.store(trade.size.0, Relaxed);
            self.at.store(trade.at.0, Relaxed);
        });
    }
}
