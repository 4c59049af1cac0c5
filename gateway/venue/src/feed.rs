//! The feed: the single writer of books and markets, on one thread for all venues.
//!
//! It turns venue time into facts (state, end date, resolution, due matching cycle), so that no shard compares a
//! market's dates with its own clock (engine/docs/execution.md §15). Facts about markets are journaled before any
//! reader sees them: they are published only after their release, so that every record comes after the listing of its
//! instrument.
//!
//! When the log is short of room, the books of listed markets are still updated. New markets and their books wait until
//! room is ample; changes of listed markets and settlements use the reserve; matching cycles are skipped when there is
//! no room at all.
//!
//! In a back-test with a bot, the feed sets the clock from moment to moment and waits in each for the bot
//! (`feed/moment.rs`).

mod decide;
mod doubts;
mod log;
mod moment;
mod pending;
mod prints;
pub mod publish;
mod quiet;
pub mod reports;
mod shards;
mod watch;

use super::live::Pace;
use super::{FeedUpdate, Frame, NO_CONNECTION, Outages, Venue};
use ahash::AHashMap;
use doubts::Doubts;
use engine::amount::Price;
use engine::book::candles::Mid;
use engine::book::listener::{BookListener, PriceListener};
use engine::book::{self, BookWriter, MarkSource, publish_all};
use engine::command::{Answer, Envelope, Sweeps};
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::market::Markets;
use engine::market::catalog::Catalog;
use engine::market::spot::Spot;
use engine::market::terms::Resolution;
use engine::print::{Evidence, PrintLane};
use engine::realism::FillModel;
use engine::ring::Ring;
use engine::shard::{Outbox, Room};
use engine::time::{MILLISECOND, SECOND, Timestamp};
use host::clock::Clock;
use host::leap::Leap;
use host::moments::{Moments, Passed};
use host::thread::Stop;
use pending::{Held, Pending};
use prints::Prints;
use publish::Publisher;
use quiet::Quiet;
use shards::{Broadcast, Cycling};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Interval at which a wait for the core checks the stop flag and the room of the log.
const STOP_CHECK: Duration = Duration::from_millis(100);
/// Interval at which the venue is notified of newly traded markets: the first order in a market waits for its book.
const STAKES_EVERY_US: u64 = SECOND / 20;
/// Longest sleep between two polls, and so the longest delay of a stop.
const SLEEP_MAX_US: u64 = SECOND / 4;
pub const SLEEP_MAX: Duration = Duration::from_micros(SLEEP_MAX_US);
/// Shortest interval between journaled positions of a tape (gateway/docs/live-venues.md §7).
const TAPE_MARK_EVERY_US: u64 = SECOND;
/// Streams are woken once per poll, or at this interval during a long poll.
const GATHERED_MAX_US: u64 = MILLISECOND / 5;

/// Counters of the feed, for health responses; no other memory access is ordered by them.
#[derive(Debug, Default)]
pub struct FeedFigures {
    /// Server time of the last frame and of the last matching cycle, and how long that cycle took.
    pub last_frame_at: AtomicU64,
    pub last_cycle_at: AtomicU64,
    pub last_cycle_us: AtomicU64,
    /// Resting orders after the last cycle.
    pub pending_orders: AtomicU64,
    pub frames: AtomicU64,
    /// Updates of tokens and conditions that are not listed.
    pub unlisted: AtomicU64,
    /// Levels that were clamped or refused because a ladder cannot hold them.
    pub clamped: AtomicU64,
    /// Trades that no resting order was matched with, since a shard or the log was full.
    pub prints_lost: AtomicU64,
    /// Other events at levels with orders in queues that a shard lost: the places there are unknown until the next book.
    pub queue_events_lost: AtomicU64,
    /// Levels at which orders wait in queues, counted per shard.
    pub watched_levels: AtomicU64,
    /// Fills by the model of the order and by what filled it.
    pub fills: [[AtomicU64; Evidence::ALL.len()]; FillModel::ALL.len()],
    /// Trades without a taker side: they fill nothing.
    pub sideless_prints: AtomicU64,
}

/// Receiver of an answer of a shard or of the log.
pub type Reply = host::slot::Slot<Answer>;

/// The types that a feed is connected to.
pub trait Links: 'static {
    /// The queue into the log.
    type Log: Outbox<Reply> + Send;
    /// Notified when books change.
    type Books: BookListener + Send;
    /// Notified of prices, for the price history.
    type Prices: PriceListener + Send;
}

/// The queues to the shards and to the log.
pub struct FeedLane<O> {
    pub commits: O,
    /// Longest payload of one record, in bytes.
    pub payload_bytes_max: usize,
    /// Wakes the owner of the log, so that it updates the room.
    pub wake_log: Arc<dyn Fn() + Send + Sync>,
    pub inboxes: Vec<Arc<Ring<Envelope<Reply>>>>,
    /// The queues on which shards take trades of the venue; empty when such trades fill no orders.
    pub prints: Vec<Arc<PrintLane>>,
}

/// The process is stopping, or its core has ended.
#[derive(Debug)]
pub struct Stopped;

/// The feed with its venue.
pub struct Feed<L: Links> {
    venue: Box<dyn Venue>,
    desk: Desk<L>,
    /// Venue time of the next due matching cycle.
    next_cycle: Timestamp,
    match_interval_us: u64,
    /// Venue time of the last cycle. A restart continues here, so that it meets every crossing that this run met.
    matched_to: Timestamp,
    /// Server time of the last journaled position of the tape.
    tape_marked: Timestamp,
    /// Server time of the last report to the venue of the markets that users have traded.
    stakes_sent: Timestamp,
    /// One clock for server, recording and bot.
    moments: Option<Arc<Moments>>,
}

/// The state of the feed without the venue, so that frames can be applied while the venue is polled.
struct Desk<L: Links> {
    markets: Markets,
    catalog: Arc<Catalog>,
    writer: BookWriter,
    lane: FeedLane<L::Log>,
    clock: Clock,
    stop: Stop,
    figures: Arc<FeedFigures>,
    /// Decided and applied to `markets`, but not yet journaled and published.
    pending: Pending,
    /// Books by token, of markets whose listing is pending.
    held: AHashMap<Arc<str>, Held>,
    /// Stores prices for the history.
    recorder: L::Prices,
    /// Notifies the streams; `rung_at` is when it last woke them during this poll.
    publisher: Publisher<L::Books>,
    rung_at: Timestamp,
    /// Publishes prices of the underlyings of up-or-down markets.
    spot: Spot,
    /// Instruments of the current frame, with the price of their trade, if any.
    touched: Vec<(InstrumentId, Option<Price>)>,
    /// Checks for wrong books, and the books to request because of the current frame.
    doubts: Doubts,
    resyncs: Vec<InstrumentId>,
    /// Checks for silent books, and the markets whose subscription turned out to be lost.
    quiet: Quiet,
    lost: Vec<MarketId>,
    prints: Prints,
    /// Commands that are sent to the shards and not answered yet, because the log lacks room.
    settling: Option<(MarketId, Broadcast)>,
    cycling: Option<Cycling>,
    outages: Outages,
    ages_on_server_time: bool,
    /// The judgement of the clock at the start, and whether ends of markets still wait for it.
    leap: Arc<Leap>,
    waits: bool,
    /// Venue time is not server time, so that a wrong clock does not affect it.
    drives_clock: bool,
    /// Results of a venue that derives them from server time, until the wait is over.
    deferred: Option<Vec<(String, Resolution)>>,
    /// Books are stamped with server time when they are taken: a followed recording has the clock of its recorder.
    stamps_when_taken: bool,
    /// Venue time of the first frame, and of the last one.
    begun_at: Option<Timestamp>,
    venue_now: Timestamp,
    /// The fees that markets state are journaled.
    follows_fees: bool,
    /// What the frames and cycles since the last report to `moments` consisted of.
    passed: Passed,
    stopped: bool,
}

/// The parts of a feed.
pub struct FeedParts<L: Links> {
    pub venue: Box<dyn Venue>,
    pub markets: Markets,
    pub catalog: Arc<Catalog>,
    pub writer: BookWriter,
    pub lane: FeedLane<L::Log>,
    pub clock: Clock,
    pub stop: Stop,
    pub figures: Arc<FeedFigures>,
    pub match_interval_us: u64,
    pub recorder: L::Prices,
    /// Notified when books change.
    pub listener: L::Books,
    /// Timeouts for wrong and silent books.
    pub pace: Pace,
    /// Markets in which a user has a position or an order.
    pub stakes: Vec<MarketId>,
    pub spot: Spot,
    /// What the start found about the clock: whether it leapt.
    pub leap: Arc<Leap>,
    /// One clock for server, recording and bot: a back-test. The venue is then a recording that never waits.
    pub moments: Option<Arc<Moments>>,
    /// Fees that markets state are journaled, because fills are charged by them.
    pub follows_fees: bool,
}

impl<L: Links> Feed<L> {
    /// Publishes the recovered markets; reads nothing from the venue yet.
    pub fn new(parts: FeedParts<L>) -> Feed<L> {
        let FeedParts { venue, markets, catalog, mut writer, lane, clock, stop, figures, .. } = parts;
        let (match_interval_us, recorder, spot) = (parts.match_interval_us, parts.recorder, parts.spot);
        let publisher = Publisher::new(parts.listener, catalog.clone());
        writer.report_levels();
        publish_all(&markets, &catalog, &mut writer);
        let is_live = !venue.upstream().venues.is_empty();
        let desk = Desk {
            ages_on_server_time: venue.ages_on_server_time(),
            waits: parts.leap.waits(clock.now()),
            drives_clock: venue.drives_clock(),
            deferred: (!venue.drives_clock() && !is_live).then(Vec::new),
            leap: parts.leap,
            stamps_when_taken: venue.ages_on_server_time() && venue.drives_clock(),
            pending: Pending::new(markets.len()),
            held: AHashMap::new(),
            recorder,
            publisher,
            rung_at: Timestamp(0),
            spot,
            touched: Vec::new(),
            doubts: Doubts::new(&parts.pace, is_live),
            resyncs: Vec::new(),
            quiet: Quiet::new(&parts.pace, is_live),
            lost: Vec::new(),
            prints: Prints::new(lane.prints.clone(), venue.drives_clock()),
            settling: None,
            cycling: None,
            outages: Outages::default(),
            markets,
            catalog,
            writer,
            lane,
            clock,
            stop,
            figures,
            begun_at: None,
            venue_now: Timestamp(0),
            passed: Passed::default(),
            follows_fees: parts.follows_fees,
            stopped: false,
        };
        for market in parts.stakes {
            if let Some(cell) = desk.catalog.market(market) {
                desk.catalog.stake(cell);
            }
        }
        Feed {
            venue,
            desk,
            stakes_sent: Timestamp(0),
            next_cycle: Timestamp(0),
            match_interval_us,
            matched_to: Timestamp(0),
            tape_marked: Timestamp(0),
            moments: parts.moments,
        }
    }

    /// Runs before the listener opens: settles markets that an earlier run left unsettled, folds the past of the venue
    /// without matching, and takes its first frames (listings, snapshots).
    ///
    /// # Errors
    /// [`Stopped`] when the process stops meanwhile.
    pub fn begin(&mut self) -> Result<(), Stopped> {
        if let Some(tape) = self.venue.first_line()
            && let Some(reached) = self.desk.markets.tape_reached(&tape)
        {
            self.venue.resume(tape, reached);
            self.desk.recorder.begin_replay();
        }
        self.desk.wait_for_room()?;
        let now = self.desk.clock.now();
        let desk = &mut self.desk;
        let reached = self.venue.catch_up(now, &mut |frame| desk.take(&frame));
        desk.advance(reached, self.venue.drives_clock());
        desk.flush()?;
        desk.settle_all()?;
        self.next_cycle = self.first_cycle(reached);
        self.desk.prints.is_matching = true;
        // What the past did to levels with orders was not reported.
        self.desk.writer.report_all(reached);
        self.desk.hand_levels(reached);
        // The venue may no longer list markets that ended while the process was down.
        self.desk.recall(self.venue.as_mut());
        match self.moments {
            None => drop(self.turn()?),
            Some(_) => self.hand_out()?,
        }
        while !self.desk.pending.is_empty() && self.desk.wait_for_room()? {
            self.desk.flush()?;
        }
        Ok(())
    }

    /// The time of the first cycle. In a recording cycles are multiples of the interval after its first line,
    /// independent of where an earlier run stopped.
    fn first_cycle(&self, reached: Timestamp) -> Timestamp {
        let begun_at = self.desk.begun_at.filter(|at| self.venue.drives_clock() && *at <= reached).unwrap_or(reached);
        let passed = reached.since(begun_at) / self.match_interval_us;
        begun_at.plus((passed + 1) * self.match_interval_us)
    }

    /// One poll, and the matching cycle if it is due. Returns how long the feed may sleep. In a back-test with a bot: one
    /// moment, as soon as the bot allows it.
    ///
    /// # Errors
    /// [`Stopped`] when the process stops meanwhile.
    pub fn turn(&mut self) -> Result<Duration, Stopped> {
        match self.moments {
            None => self.poll(self.next_cycle),
            Some(_) => self.next_moment().map(|()| Duration::ZERO),
        }
    }

    /// One poll up to a venue time.
    fn poll(&mut self, until: Timestamp) -> Result<Duration, Stopped> {
        let now = self.desk.clock.now();
        let desk = &mut self.desk;
        desk.end_wait(now);
        desk.publisher.gather();
        desk.rung_at = now;
        desk.prints.tape = self.venue.first_line();
        let polled = self.venue.poll(now, until, &mut |frame| desk.take(&frame));
        desk.publisher.ring(false);
        desk.advance(polled.venue_now, self.venue.drives_clock());
        desk.flush()?;
        desk.settle_all()?;
        desk.doubt(polled.venue_now, self.venue.as_mut());
        desk.watch_outages(self.venue.outages(now));
        if now.since(self.stakes_sent) >= STAKES_EVERY_US {
            self.stakes_sent = now;
            desk.send_stakes(self.venue.as_mut());
        }
        desk.catalog.sort();
        desk.prints.report(&desk.figures);
        desk.recorder.turn(now);
        // A poll may end within a moment, whose other frames come before its cycle.
        let is_within = self.moments.is_some() && self.venue.next_at().is_some_and(|at| at <= now);
        let due = (polled.venue_now >= self.next_cycle && !is_within).then_some(polled.venue_now);
        if let Some(due) = due {
            // Cycles that were missed in a pause are not repeated: one cycle covers all changes.
            self.next_cycle = due.plus(self.match_interval_us);
        }
        if let Some(matched) = desk.cycle(due)? {
            self.matched_to = matched;
        }
        self.mark_tape(now, false)?;
        // The venue may have woken this thread while it waited for the core.
        if self.venue.has_news() {
            return Ok(Duration::ZERO);
        }
        let wake_at = polled.wake_at.unwrap_or(now.plus(SLEEP_MAX_US));
        Ok(Duration::from_micros(wake_at.since(self.desk.clock.now()).min(SLEEP_MAX_US)))
    }

    /// Ends the feed after its last turn: journals the position of the tape.
    pub fn end(mut self) {
        let now = self.desk.clock.now();
        self.desk.recorder.hand_over();
        // If the core has ended already, the last mark stays valid and one second is replayed twice.
        let _ = self.mark_tape(now, true);
    }

    /// Journals the position up to which the tape was matched; not further, because a restart folds up to it without
    /// matching.
    fn mark_tape(&mut self, now: Timestamp, last: bool) -> Result<(), Stopped> {
        let due = last || now.since(self.tape_marked) >= TAPE_MARK_EVERY_US;
        if !due || self.matched_to == Timestamp(0) || self.desk.room() != Room::Ample || !self.desk.pending.is_empty() {
            return Ok(());
        }
        self.tape_marked = now;
        if let Some(tape) = self.venue.first_line() {
            let fact = self.desk.markets.tape(tape, self.matched_to);
            self.desk.decided(fact);
            self.desk.flush()?;
        }
        Ok(())
    }
}

impl<L: Links> Desk<L> {
    /// Ends the wait for a doubted clock, and applies the results that were deferred.
    fn end_wait(&mut self, now: Timestamp) {
        if !self.waits || self.leap.waits(now) {
            return;
        }
        self.waits = false;
        let deferred = self.deferred.as_mut().map(std::mem::take).unwrap_or_default();
        for (condition, resolution) in deferred {
            self.resolved(&condition, resolution, now);
        }
    }

    /// The kinds of ends that a cycle may decide now.
    fn sweeps(&self) -> Sweeps {
        match (self.waits, self.drives_clock) {
            (false, _) => Sweeps::All,
            (true, true) => Sweeps::ByVenueTime,
            (true, false) => Sweeps::None,
        }
    }

    /// The venue time by which markets have ended. While server time is used and doubted, it is bounded by the newest
    /// record of the journal.
    fn ends_by(&self, venue_now: Timestamp) -> Timestamp {
        match self.leap.newest {
            Some(newest) if self.sweeps() == Sweeps::None => venue_now.min(newest),
            _ => venue_now,
        }
    }

    /// Applies one frame: decides facts, then writes both books of a market together.
    fn take(&mut self, frame: &Frame<'_>) {
        let now = self.clock.now();
        if now.since(self.rung_at) > GATHERED_MAX_US {
            self.publisher.ring(true);
            self.rung_at = now;
        }
        self.venue_now = frame.received;
        if self.drives_clock {
            // Before the books: the place of an order that finds a frame in its book is not older than the frame.
            self.writer.recording(frame.received);
        }
        self.passed.events += 1;
        self.begun_at.get_or_insert(frame.received);
        for update in frame.updates {
            self.decide(update, frame, now);
        }
        if meets_markets(frame) {
            // The flush may wait for the core.
            self.publisher.ring(true);
            if self.flush().is_err() {
                self.stopped = true;
                return;
            }
        }
        self.find_lost(frame);
        let received = if self.stamps_when_taken { now } else { frame.received };
        // A market whose listing is still pending is known only here.
        let waits = !self.pending.is_empty();
        let (catalog, figures) = (&self.catalog, &self.figures);
        let is_held = |update: &FeedUpdate| {
            waits && pending::token(update).is_some_and(|token| catalog.by_token(token).is_none())
        };
        if frame.connection != NO_CONNECTION {
            for update in frame.updates.iter().filter(|update| is_held(update)) {
                pending::hold(&mut self.held, update, frame.connection, received);
            }
            let touched = &mut self.touched;
            let fill = |books: &mut book::Frame<'_>| {
                for update in frame.updates.iter().filter(|update| !is_held(update)) {
                    touched.extend(write(books, catalog, figures, update));
                }
            };
            let report = match frame.is_answer {
                true => self.writer.answer(frame.connection, received, fill),
                false => self.writer.frame(frame.connection, received, fill),
            };
            let doubts = &mut self.doubts;
            let crossed = self.writer.crossed().iter();
            let is_still = |book: &&InstrumentId| doubts.crossed(**book, frame.is_answer, frame.received);
            let still: Vec<_> = crossed.filter(is_still).copied().collect();
            still.iter().for_each(|book| self.writer.distrust(book.market()));
            self.publisher.frame(frame.updates, self.writer.books(), now, |market| self.doubts.holds(market));
            figures.clamped.fetch_add(u64::from(report.clamped + report.refused), Ordering::Relaxed);
            figures.last_frame_at.store(now.0, Ordering::Relaxed);
            figures.frames.fetch_add(1, Ordering::Relaxed);
            self.doubt_frame(frame);
            self.hand_levels(frame.received);
            if self.hand_prints(frame).is_err() {
                self.stopped = true;
                return;
            }
            self.note_prices(frame.received);
            self.recorder.turn(now);
        }
        for update in frame.updates {
            self.apply_unjournaled(update, frame.connection, now);
        }
    }

    /// Reports the prices of the frame to the price history.
    fn note_prices(&mut self, venue_now: Timestamp) {
        let mut before = None;
        for (instrument, traded) in self.touched.drain(..) {
            let market = instrument.market();
            // Both books of a market change together.
            if before.replace(market) == Some(market) && traded.is_none() {
                continue;
            }
            let mark = self.writer.books().mark(market.instrument(Outcome::First));
            let midpoint = mark.filter(|mark| mark.source == MarkSource::Midpoint).and_then(|mark| Mid::of(mark.price));
            let traded = || {
                let mid = Mid(traded?.0 * 2);
                Some(if instrument.outcome() == Outcome::First { mid } else { mid.complement() })
            };
            if let Some(mid) = midpoint.or_else(traded) {
                self.recorder.note(market, venue_now, mid);
            }
        }
    }
}

/// Whether this frame updates markets whose listing may be pending; their updates would be lost without a flush.
fn meets_markets(frame: &Frame<'_>) -> bool {
    frame.updates.iter().any(|update| {
        matches!(
            update,
            FeedUpdate::BookSnapshot { .. }
                | FeedUpdate::BookDelta { .. }
                | FeedUpdate::LastTrade { .. }
                | FeedUpdate::LastPrice { .. }
                | FeedUpdate::SidelessTrade { .. }
                | FeedUpdate::Figures { .. }
                | FeedUpdate::Stated { .. }
                | FeedUpdate::Strike { .. }
                | FeedUpdate::Gap { .. }
                | FeedUpdate::Left { .. }
        )
    })
}

/// Writes the book part of an update; returns the instrument, and the price of a trade.
pub fn write(
    books: &mut book::Frame<'_>,
    catalog: &Catalog,
    figures: &FeedFigures,
    update: &FeedUpdate,
) -> Option<(InstrumentId, Option<Price>)> {
    let listed = |token: &str| -> Option<InstrumentId> {
        let instrument = catalog.by_token(token);
        if instrument.is_none() {
            figures.unlisted.fetch_add(1, Ordering::Relaxed);
        }
        instrument
    };
    match update {
        FeedUpdate::BookSnapshot { token, bids, asks, venue_ts, hash } => {
            let instrument = listed(token)?;
            books.snapshot(instrument, bids, asks, *venue_ts, hash.as_deref());
            Some((instrument, None))
        }
        FeedUpdate::BookDelta { token, levels, venue_ts } => {
            let instrument = listed(token)?;
            books.delta(instrument, levels, *venue_ts);
            Some((instrument, None))
        }
        FeedUpdate::LastTrade { token, price, size, taker_buys, venue_ts, .. } => {
            let instrument = listed(token)?;
            let trade = book::LastTrade { price: *price, size: *size, taker_buys: *taker_buys, at: *venue_ts };
            books.trade(instrument, trade);
            Some((instrument, Some(*price)))
        }
        FeedUpdate::LastPrice { token, price, decimals, venue_ts } => {
            books.last_price(listed(token)?, *price, *decimals, *venue_ts);
            None
        }
        FeedUpdate::SidelessTrade { token, .. } => {
            let instrument = listed(token)?;
            figures.sideless_prints.fetch_add(1, Ordering::Relaxed);
            Some((instrument, None))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
