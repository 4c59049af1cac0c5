//! The books of all instruments, and the age of each by the venue's connections.
//!
//! The two tokens of a market are one *pair* under one version, because one frame of the venue changes both and an
//! order meets both (engine/docs/execution.md §3): a reader sees all changes of a frame to a pair, or none. A pair is
//! created by its first message, so a market without a book costs eight bytes.

use crate::amount::{Cash, Price, Qty};
use crate::book::depth::{Depth, HashCell, PackedQuote, SnapshotHash, Top, TopCell};
use crate::book::effective::{
    Compared, Effective, EffectiveTop, Faces, Mirrors, Part, Reach, Rule, Sides, compare, is_first_bids,
};
use crate::book::ladder::Ladder;
use crate::book::sequence::{Sequence, Torn};
use crate::book::stated::{LastPrice, StatedCell};
use crate::book::watched::LevelWatch;
use crate::book::writer::BookWriter;
use crate::book::{BookSide, Unavailable};
use crate::id::{InstrumentId, MarketId, Outcome};
use crate::index::Table;
use crate::time::{SECOND, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, Ordering::Relaxed};

/// The default of `[book] stale_after_s` (engine/docs/execution.md §10).
pub const STALE_AFTER_US: u64 = 30 * SECOND;
/// Widest spread, in 10⁻⁴ USD, whose midpoint is a mark (engine/docs/account.md §2).
pub const MARK_SPREAD_MAX: u16 = 1_000;
/// Connections that can carry subscriptions.
const CONNECTIONS: usize = 256;

/// All books, shared by all threads; written through the one [`BookWriter`].
pub struct Books {
    pub(super) pairs: Table<Box<Pair>>,
    /// Prices that the venue states outside of its books, by market.
    pub(super) stated: Table<StatedCell>,
    /// By market: count of (instrument, shard) with a resting order.
    watched: Table<AtomicU32>,
    /// By market: levels at which orders wait in a queue.
    pub(super) watched_levels: Table<Box<LevelWatch>>,
    /// Venue time of the last sign of life, by connection; 0 = none.
    pub(super) alive: [AtomicU64; CONNECTIONS],
    /// Venue time of the recording in replay; 0 = no recording.
    pub(super) recording: AtomicU64,
    /// Venue time where a recording drives the age of quotes; 0 = quotes age by server time.
    pub(super) clock: AtomicU64,
    pub(super) outage: AtomicBool,
    pub(super) no_contact: AtomicBool,
    /// Frames applied.
    pub(super) frames: AtomicU64,
    stale_after_us: u64,
    writer_given: AtomicBool,
}

/// The books of both tokens of a market under one version.
pub(super) struct Pair {
    pub sequence: Sequence,
    /// Part of the sequence: [`Mirrors`] as `first_asks << 1 | first_bids`.
    pub mirrors: AtomicU8,
    /// Of the writer alone.
    bounds: [Bounds; 2],
    pub halves: [Half; 2],
}

/// The ranks up to which a change of the first and of the second token's ladder counts for what [`Pair::settle`] derives;
/// one for the first token's bids, one for its asks.
struct Bounds([AtomicU16; 2]);

/// One token's book. The first group belongs to the pair's sequence; the other fields do not.
#[derive(Default)]
pub(super) struct Half {
    pub bids: Ladder,
    pub asks: Ladder,
    pub top_bid: TopCell,
    pub top_ask: TopCell,
    /// A snapshot or a change has arrived.
    pub known: AtomicBool,
    pub changed_at: AtomicU64,
    pub hash: HashCell,

    pub trade: TradeCell,

    /// Venue time of the last message; 0 = none.
    pub last_message_at: AtomicU64,
    pub connection: AtomicU16,
    /// The book is unreliable until the next snapshot.
    pub gap: AtomicBool,
}

/// A last trade or none: four atomics under their own version.
#[derive(Default)]
pub(super) struct TradeCell {
    pub sequence: Sequence,
    /// `known << 17 | taker buys << 16 | price`.
    pub what: AtomicU64,
    pub size: AtomicU64,
    pub at: AtomicU64,
}

/// The last trade that the venue reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastTrade {
    pub price: Price,
    pub size: Qty,
    pub taker_buys: bool,
    /// The venue's time.
    pub at: Timestamp,
}

/// The value of a share while its market is open (engine/docs/account.md §2, rules 2 to 4; rule 1, the payout, is in
/// [`crate::mark`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// 10⁻⁶ USD a share.
    pub price: Cash,
    pub source: MarkSource,
}

/// The rule that gave a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkSource {
    /// Midpoint of the effective book, spread at most 0.10.
    Midpoint,
    /// A trade that was received, or the price that the venue states for the last one.
    LastTrade,
    /// The price that the venue's catalogue shows.
    Display,
}

/// The book of one instrument.
#[derive(Clone, Copy)]
pub struct Book<'a> {
    books: &'a Books,
    pair: &'a Pair,
    instrument: InstrumentId,
}

impl Books {
    /// No books; a book is stale after [`STALE_AFTER_US`].
    pub fn new() -> Books {
        Books::with_stale_after(STALE_AFTER_US)
    }

    /// No books; a book is stale when its quote is older than `stale_after_us`.
    pub fn with_stale_after(stale_after_us: u64) -> Books {
        Books {
            pairs: Table::new(),
            stated: Table::new(),
            watched: Table::new(),
            watched_levels: Table::new(),
            alive: [const { AtomicU64::new(0) }; CONNECTIONS],
            recording: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            outage: AtomicBool::new(false),
            no_contact: AtomicBool::new(false),
            frames: AtomicU64::new(0),
            stale_after_us,
            writer_given: AtomicBool::new(false),
        }
    }

    /// The writing half. There is one: later calls return `None`.
    pub fn writer(self: &Arc<Self>) -> Option<BookWriter> {
        (!self.writer_given.swap(true, Ordering::Relaxed)).then(|| BookWriter::new(self.clone()))
    }

    /// The book of `instrument`; `None` until a message about its market has arrived.
    #[inline]
    pub fn book(&self, instrument: InstrumentId) -> Option<Book<'_>> {
        let pair = self.pairs.get(instrument.market().0 as usize)?;
        Some(Book { books: self, pair, instrument })
    }

    /// [`Book::copy`] of the instrument's book.
    pub fn copy(&self, instrument: InstrumentId, levels_max: usize, depth: &mut Depth) -> Result<(), Unavailable> {
        self.book(instrument).ok_or(Unavailable::Unknown)?.copy(levels_max, depth)
    }

    /// [`Book::best`] of the instrument's book.
    #[inline]
    pub fn best(&self, instrument: InstrumentId) -> Result<Top, Unavailable> {
        self.book(instrument).ok_or(Unavailable::Unknown)?.best()
    }

    /// The whole effective book of the instrument ([`Book::effective`]).
    pub fn effective(&self, instrument: InstrumentId, effective: &mut Effective) -> Result<(), Unavailable> {
        self.effective_within(instrument, Reach::ALL, effective)
    }

    /// [`Book::effective`] of the instrument's book.
    #[inline]
    pub fn effective_within(
        &self,
        instrument: InstrumentId,
        reach: Reach,
        effective: &mut Effective,
    ) -> Result<(), Unavailable> {
        self.book(instrument).ok_or(Unavailable::Unknown)?.effective(reach, effective)
    }

    /// [`Book::mirror`] of the instrument's book.
    pub fn mirror(&self, instrument: InstrumentId, side: BookSide, price: Price) -> Option<Part> {
        self.book(instrument)?.mirror(side, price)
    }

    /// [`Book::effective_top`] of the instrument's book.
    #[inline]
    pub fn effective_top(&self, instrument: InstrumentId) -> Result<EffectiveTop, Unavailable> {
        self.book(instrument).ok_or(Unavailable::Unknown)?.effective_top()
    }

    /// Changes with every change of the instrument's effective book; 0 before the first. A reader that reads the
    /// version first and the book second misses no change if it reads again when the version differs.
    #[inline]
    pub fn version(&self, instrument: InstrumentId) -> u64 {
        self.book(instrument).map_or(0, |book| book.version())
    }

    /// Whether an order rests in this market, so shards need its prints.
    #[inline]
    pub fn is_watched(&self, market: MarketId) -> bool {
        self.watched.get(market.0 as usize).is_some_and(|count| count.load(Relaxed) > 0)
    }

    /// An instrument of this market got its first resting order in a shard (`rests`), or lost its last one.
    pub(crate) fn watch(&self, market: MarketId, rests: bool) {
        let count = self.watched.get_or_set(market.0 as usize, || AtomicU32::new(0));
        match rests {
            true => count.fetch_add(1, Relaxed),
            false => count.fetch_sub(1, Relaxed),
        };
    }

    /// A level got its first order with a place in its queue in a shard (`rests`), or lost its last one.
    pub(crate) fn watch_level(&self, instrument: InstrumentId, side: BookSide, price: Price, rests: bool) {
        let watch = self.watched_levels.get_or_set(instrument.market().0 as usize, || Box::new(LevelWatch::new()));
        watch.watch(instrument.outcome(), side, price, rests);
    }

    /// The shown size at a price of one side of the effective book, and the version of the book.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn shown_at(&self, instrument: InstrumentId, side: BookSide, price: Price) -> Result<(Qty, u64), Unavailable> {
        self.book(instrument).ok_or(Unavailable::Unknown)?.shown_at(side, price)
    }

    /// Frames applied so far.
    pub fn frames(&self) -> u64 {
        self.frames.load(Relaxed)
    }

    /// The last trade that was received.
    pub fn last_trade(&self, instrument: InstrumentId) -> Option<LastTrade> {
        self.book(instrument)?.last_trade()
    }

    /// The price of the last trade: of the last one received, unless the venue has stated another since.
    pub fn last_price(&self, instrument: InstrumentId) -> Option<LastPrice> {
        let trade = self.last_trade(instrument);
        let stated = self.stated.get(instrument.market().0 as usize).and_then(|cell| cell.last(instrument.outcome()));
        match stated {
            Some((price, decimals)) => {
                Some(LastPrice { price, decimals, trade: trade.filter(|trade| trade.price == price) })
            }
            None => trade.map(|trade| LastPrice { price: trade.price, decimals: None, trade: Some(trade) }),
        }
    }

    /// [`Book::mark`] of the instrument; without a book, by the prices that the venue states.
    pub fn mark(&self, instrument: InstrumentId) -> Option<Mark> {
        self.book(instrument).map_or_else(|| self.mark_without_midpoint(instrument), |book| book.mark())
    }

    /// [`Books::mark`] and [`Book::effective_top`] of the instrument, of one read.
    #[inline]
    pub fn mark_and_top(&self, instrument: InstrumentId) -> (Option<Mark>, Result<EffectiveTop, Unavailable>) {
        let Some(book) = self.book(instrument) else {
            return (self.mark_without_midpoint(instrument), Err(Unavailable::Unknown));
        };
        let top = book.effective_top();
        (book.mark_at(top), top)
    }

    /// The displayed price: the mark in 10⁻⁶ USD a share (engine/docs/execution.md §2).
    pub fn displayed(&self, instrument: InstrumentId) -> Option<Cash> {
        Some(self.mark(instrument)?.price)
    }

    /// The price in the venue's catalogue, 10⁻⁶ USD a share.
    pub fn display(&self, instrument: InstrumentId) -> Option<Cash> {
        self.stated.get(instrument.market().0 as usize)?.shown(instrument.outcome())
    }

    /// The price of the last trade, else the one in the catalogue.
    fn mark_without_midpoint(&self, instrument: InstrumentId) -> Option<Mark> {
        match self.last_price(instrument) {
            Some(last) => Some(Mark { price: Cash(i64::from(last.price.0) * 100), source: MarkSource::LastTrade }),
            None => Some(Mark { price: self.display(instrument)?, source: MarkSource::Display }),
        }
    }

    /// The venue's hash of the last snapshot, while the book equals it.
    pub fn snapshot_hash(&self, instrument: InstrumentId) -> Option<SnapshotHash> {
        self.book(instrument)?.snapshot_hash()
    }

    /// Whether the books of both tokens mirror each other (engine/docs/execution.md §3), on both sides. `None`: at
    /// least one is unknown.
    pub fn mirrored(&self, market: MarketId) -> Option<bool> {
        let pair = self.pairs.get(market.0 as usize)?;
        if !pair.halves.iter().all(|half| half.known.load(Relaxed)) {
            return None;
        }
        let mirrors = pair.mirrors();
        Some(mirrors.first_bids && mirrors.first_asks)
    }

    /// The clock of quote ages: server time, unless a recording drives it.
    #[inline]
    pub fn venue_now(&self, server_now: Timestamp) -> Timestamp {
        match self.clock.load(Relaxed) {
            0 => server_now,
            driven => Timestamp(driven),
        }
    }

    /// The venue time that a recording has reached; `None` for live venues.
    pub fn recording_now(&self) -> Option<Timestamp> {
        Some(Timestamp(self.recording.load(Relaxed))).filter(|driven| *driven != Timestamp(0))
    }

    /// Whether the venue is out (engine/docs/execution.md §10); the feed decides it.
    pub fn outage(&self) -> bool {
        self.outage.load(Relaxed)
    }

    /// Whether no venue has sent a message since the start. Books are then missing rather than empty, and an outage from
    /// before the start may still go on.
    pub fn no_contact(&self) -> bool {
        self.no_contact.load(Relaxed)
    }

    /// `quote_age_ms` in µs: venue time since the later of the last message about the token and the last sign of life
    /// of its connection. After a gap neither counts until the next snapshot. A token without own messages is
    /// as old as its complement, whose mirror it shows. `None`: no message about either yet (engine/docs/execution.md
    /// §10).
    pub fn quote_age(&self, instrument: InstrumentId, server_now: Timestamp) -> Option<u64> {
        let half = self.book(instrument)?.quoted_by()?;
        let alive = &self.alive[usize::from(half.connection.load(Relaxed)) % CONNECTIONS];
        let proof = if half.gap.load(Relaxed) { 0 } else { alive.load(Relaxed) };
        let last = half.last_message_at.load(Relaxed).max(proof);
        Some(self.venue_now(server_now).since(Timestamp(last)))
    }

    /// Whether the book is stale: a gap, an outage, a quote older than the limit, or no message.
    pub fn stale(&self, instrument: InstrumentId, server_now: Timestamp) -> bool {
        self.outage()
            || self.gap(instrument)
            || self.quote_age(instrument, server_now).is_none_or(|age| age > self.stale_after_us)
    }

    /// [`Book::gap`] of the instrument.
    pub fn gap(&self, instrument: InstrumentId) -> bool {
        self.book(instrument).is_some_and(|book| book.gap())
    }
}

impl Default for Books {
    fn default() -> Self {
        Books::new()
    }
}

impl<'a> Book<'a> {
    #[inline]
    fn half(&self) -> &'a Half {
        &self.pair.halves[self.instrument.outcome() as usize]
    }

    #[inline]
    fn complement(&self) -> &'a Half {
        &self.pair.halves[1 - self.instrument.outcome() as usize]
    }

    /// Copies the book as the venue shows it, at most `levels_max` levels a side, best first. On failure the content of
    /// `depth` is meaningless.
    #[inline]
    pub fn copy(&self, levels_max: usize, depth: &mut Depth) -> Result<(), Unavailable> {
        let half = self.half();
        let known = self.pair.sequence.read(|| {
            depth.fill(BookSide::Bid, &half.bids, levels_max);
            depth.fill(BookSide::Ask, &half.asks, levels_max);
            let (bid, ask) = half.packed();
            depth.top = Top { bid: bid.quote(), ask: ask.quote() };
            depth.changed_at = Timestamp(half.changed_at.load(Relaxed));
            depth.hash = half.hash.load();
            depth.version = self.pair.sequence.version();
            half.known.load(Relaxed)
        })?;
        if known { Ok(()) } else { Err(Unavailable::Unknown) }
    }

    /// The best level of both sides as the venue shows them.
    #[inline]
    pub fn best(&self) -> Result<Top, Unavailable> {
        let half = self.half();
        let (bid, ask, known) =
            self.pair.sequence.read(|| (half.top_bid.load(), half.top_ask.load(), half.known.load(Relaxed)))?;
        if known { Ok(Top { bid: bid.quote(), ask: ask.quote() }) } else { Err(Unavailable::Unknown) }
    }

    /// Copies the effective book: own levels merged with the complement's, before depletion (engine/docs/execution.md
    /// §3). Unknown only if both tokens' books are unknown.
    #[inline]
    pub fn effective(&self, reach: Reach, effective: &mut Effective) -> Result<(), Unavailable> {
        let (own, complement) = (self.half(), self.complement());
        let known = self.pair.sequence.read(|| {
            effective.version = self.pair.sequence.version();
            let rule = Rule::of(self.pair.mirrors(), self.instrument.outcome(), own.prices(), complement.prices());
            effective.fill(own.sides(), complement.sides(), rule, reach);
            own.known.load(Relaxed) || complement.known.load(Relaxed)
        })?;
        if known { Ok(()) } else { Err(Unavailable::Unknown) }
    }

    /// The complement's entry of the level at `price`, if this side and the complement's are mirrors.
    pub fn mirror(&self, side: BookSide, price: Price) -> Option<Part> {
        let complement = self.complement().sides();
        let ladder = if side == BookSide::Bid { complement.asks } else { complement.bids };
        let read = || self.pair.mirrors().on(self.instrument.outcome(), side).then(|| ladder.part(side.rank(price)));
        self.pair.sequence.read(read).ok().flatten()
    }

    /// See [`Books::shown_at`].
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn shown_at(&self, side: BookSide, price: Price) -> Result<(Qty, u64), Unavailable> {
        let (own, complement) = (self.half(), self.complement());
        let (size, version, known) = self.pair.sequence.read(|| {
            let size = self.pair.shown(self.instrument.outcome(), side, side.rank(price));
            let known = own.known.load(Relaxed) | complement.known.load(Relaxed);
            (size, self.pair.sequence.version(), known)
        })?;
        if known { Ok((size, version)) } else { Err(Unavailable::Unknown) }
    }

    /// The best prices of the effective book: the triggers of resting orders, the spread of a mark.
    #[inline]
    pub fn effective_top(&self) -> Result<EffectiveTop, Unavailable> {
        let (own, complement) = (self.half(), self.complement());
        let (packed, known) = self.pair.sequence.read(|| {
            let known = own.known.load(Relaxed) | complement.known.load(Relaxed);
            ((own.packed(), complement.packed()), known)
        })?;
        let (own, complement) = (prices(packed.0), prices(packed.1));
        if known { Ok(EffectiveTop::merged(own, complement).unwrap_or(own)) } else { Err(Unavailable::Unknown) }
    }

    /// See [`Books::version`].
    #[inline]
    pub fn version(&self) -> u64 {
        self.pair.sequence.version()
    }

    /// The last trade that the venue reported for this token.
    pub fn last_trade(&self) -> Option<LastTrade> {
        let cell = &self.half().trade;
        let read = || (cell.what.load(Relaxed), cell.size.load(Relaxed), cell.at.load(Relaxed));
        // A trade is three stores, so a second round of failed tries means that the writer has lost its core. The
        // reader then returns no trade, as before the first one.
        let (what, size, at) = cell.sequence.read(read).ok()?;
        (what >> 17 & 1 == 1).then_some(LastTrade {
            price: Price(what as u16),
            size: Qty(size),
            taker_buys: what >> 16 & 1 == 1,
            at: Timestamp(at),
        })
    }

    /// Midpoint of the effective book if both sides exist and are at most 0.10 apart, else the price of the last trade,
    /// else the one in the catalogue (engine/docs/account.md §2, rules 2 to 4). Never fails: if the feed is writing at
    /// every try, it uses the present best prices, each of which is whole.
    pub fn mark(&self) -> Option<Mark> {
        self.mark_at(self.effective_top())
    }

    /// The mark for best prices that were just read.
    #[inline]
    fn mark_at(&self, top: Result<EffectiveTop, Unavailable>) -> Option<Mark> {
        let top = match top {
            Err(Unavailable::Contended) => {
                let own = self.half().prices();
                EffectiveTop::merged(own, self.complement().prices()).unwrap_or(own)
            }
            top => top.unwrap_or_default(),
        };
        if top.spread().is_some_and(|spread| spread <= MARK_SPREAD_MAX)
            && let Some(price) = top.midpoint()
        {
            return Some(Mark { price, source: MarkSource::Midpoint });
        }
        self.books.mark_without_midpoint(self.instrument)
    }

    /// The venue's hash of the last snapshot, while the book equals it.
    pub fn snapshot_hash(&self) -> Option<SnapshotHash> {
        let half = self.half();
        self.pair.sequence.read(|| half.hash.load()).ok().flatten()
    }

    /// A message of this token was lost or invalid; the next snapshot repairs the book.
    pub fn gap(&self) -> bool {
        self.quoted_by().is_some_and(|half| half.gap.load(Relaxed))
    }

    /// The book whose messages determine the age of this token's quote: its own, else the complement's.
    fn quoted_by(&self) -> Option<&'a Half> {
        [self.half(), self.complement()].into_iter().find(|half| half.last_message_at.load(Relaxed) != 0)
    }

    /// Time and connection of the last message about this token; `None` before the first one.
    pub fn last_message(&self) -> Option<(Timestamp, u16)> {
        let half = self.half();
        let at = half.last_message_at.load(Relaxed);
        (at != 0).then(|| (Timestamp(at), half.connection.load(Relaxed)))
    }

    /// A snapshot or a change of this token's own book has arrived. If only the complement's has, the book is its
    /// mirror (streams call it derived).
    pub fn known(&self) -> bool {
        self.half().known.load(Relaxed)
    }
}

impl Half {
    #[inline]
    fn packed(&self) -> (PackedQuote, PackedQuote) {
        (self.top_bid.load(), self.top_ask.load())
    }

    #[inline]
    pub fn prices(&self) -> EffectiveTop {
        prices(self.packed())
    }

    fn sides(&self) -> Sides<'_> {
        Sides { bids: &self.bids, asks: &self.asks }
    }
}

#[inline]
fn prices((bid, ask): (PackedQuote, PackedQuote)) -> EffectiveTop {
    EffectiveTop { bid: bid.price(), ask: ask.price() }
}

impl Pair {
    pub fn new() -> Pair {
        Pair {
            sequence: Sequence::new(),
            // Two empty books mirror each other.
            mirrors: AtomicU8::new(0b11),
            bounds: [const { Bounds([const { AtomicU16::new(u16::MAX) }; 2]) }; 2],
            halves: [Half::default(), Half::default()],
        }
    }

    #[inline]
    fn mirrors(&self) -> Mirrors {
        let bits = self.mirrors.load(Relaxed);
        Mirrors { first_bids: bits & 1 != 0, first_asks: bits & 2 != 0 }
    }

    /// The tokens whose quote is this one's book: its own, and the complement's if that has none.
    pub fn quoted(&self, outcome: Outcome) -> impl Iterator<Item = Outcome> + '_ {
        let has_own = move |of: Outcome| self.halves[of as usize].last_message_at.load(Relaxed) != 0;
        let is_quoted = move |of: &Outcome| if *of == outcome { has_own(*of) } else { !has_own(*of) };
        [Outcome::First, Outcome::Second].into_iter().filter(is_quoted)
    }

    /// How the sides of both tokens are merged.
    pub fn rules(&self) -> [Rule; 2] {
        [Outcome::First, Outcome::Second].map(|of| self.rule(of))
    }

    /// How the sides of a token are merged with the complement's.
    pub fn rule(&self, outcome: Outcome) -> Rule {
        let [own, complement] = [outcome, outcome.other()].map(|of| self.halves[of as usize].prices());
        Rule::of(self.mirrors(), outcome, own, complement)
    }

    /// The shown size at a rank of one side of the effective book of a token, inside a read of the sequence or by the
    /// writer.
    pub fn shown(&self, outcome: Outcome, side: BookSide, rank: u16) -> Qty {
        let ladder = |of: Outcome, side: BookSide| {
            let half = &self.halves[of as usize];
            let ladder = if side == BookSide::Bid { &half.bids } else { &half.asks };
            ladder.part(rank).size
        };
        let own = ladder(outcome, side);
        if self.rule(outcome).merges(side) { own + ladder(outcome.other(), side.opposite()) } else { own }
    }

    /// Whether a change of the level of this rank may change what [`Pair::settle`] derives: most levels are worse
    /// than all that it reads.
    #[inline]
    pub fn counts(&self, outcome: Outcome, side: BookSide, rank: u16) -> bool {
        let Bounds(bounds) = &self.bounds[usize::from(!is_first_bids(outcome, side))];
        rank <= bounds[outcome as usize].load(Relaxed)
    }

    /// Updates what is derived from the changed ladders, inside a write of the sequence.
    pub fn settle(&self, changed: Faces) {
        let [first, second] = &self.halves;
        let Mirrors { mut first_bids, mut first_asks } = self.mirrors();
        if changed.first_bids {
            first.top_bid.store(BookSide::Bid, first.bids.best());
            second.top_ask.store(BookSide::Ask, second.asks.best());
            first_bids = self.bounds[0].note(compare(&first.bids, &second.asks));
        }
        if changed.first_asks {
            first.top_ask.store(BookSide::Ask, first.asks.best());
            second.top_bid.store(BookSide::Bid, second.bids.best());
            first_asks = self.bounds[1].note(compare(&first.asks, &second.bids));
        }
        self.mirrors.store(u8::from(first_asks) << 1 | u8::from(first_bids), Relaxed);
    }
}

impl Bounds {
    /// Keeps the ranks of a comparison of the first token's ladder with the second's, and passes on its result.
    fn note(&self, compared: Compared) -> bool {
        self.0[0].store(compared.own, Relaxed);
        self.0[1].store(compared.mirror, Relaxed);
        compared.are_mirrors
    }
}

impl From<Torn> for Unavailable {
    fn from(_: Torn) -> Unavailable {
        Unavailable::Contended
    }
}
