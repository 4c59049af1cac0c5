//! One pass over a recording: its books and trades meet the orders of the file under every model.
//!
//! ```text
//! frames ─► facts about markets ─► catalogue
//!        ─► books without own rests ─┬─► lane of a model: places, cancels, cycles
//!        ─► trades, own ones marked ─┘
//! ```
//!
//! As in a server on the clock of a recording (engine/docs/execution.md §15): what is due before a frame happens before
//! it, at one moment frames come first, then orders, then the matching cycle.

use super::Comparison;
use super::lane::{Lane, ModelOrder, as_sale};
use super::orders::LiveOrder;
use super::own::Own;
use super::sights::{LeftOut, Sights};
use super::tape_digest::TapeDigest;
use ahash::AHashMap;
use engine::amount::{Cash, Price, Qty};
use engine::book::{BookSide, BookWriter, Books, LastTrade, publish};
use engine::id::{InstrumentId, MarketId};
use engine::market::Markets;
use engine::market::catalog::Catalog;
use engine::market::mutation::MarketMutation;
use engine::market::terms::Resolution;
use engine::order::Side;
use engine::print::{Event, Print, SidelessPrint};
use engine::time::Timestamp;
use std::ops::Range;
use std::sync::Arc;
use venue::feed::reports::{Report, Reports};
use venue::{FeedUpdate, Frame, NO_CONNECTION, Venue};

/// Nothing is due.
const NEVER: Timestamp = Timestamp(u64::MAX);

/// The result of a pass.
pub struct Walked {
    /// By model, then by order of the file.
    pub models: Vec<Vec<ModelOrder>>,
    /// By order: why it is not compared.
    pub left_out: Vec<Option<LeftOut>>,
    /// By order: the value of a share of its token, 10⁻⁶ USD: the payout, else the last midpoint.
    pub marks: Vec<Option<Cash>>,
    /// SHA-256 of what the recording has about these markets.
    pub digest: [u8; 32],
    /// From the first to the last moment of the recording.
    pub span: Range<Timestamp>,
}

/// The caller has ended the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended;

/// What happens to an order at its time, in the order of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Leave(usize),
    Enter(usize),
}

/// Plays a recording from its beginning to its end. `goes_on` is asked at every moment; false ends the pass.
///
/// # Errors
/// [`Ended`].
pub fn walk(venue: &mut dyn Venue, of: &Comparison<'_>, goes_on: &dyn Fn() -> bool) -> Result<Walked, Ended> {
    let Some(first) = venue.next_at() else {
        // Without a moment there is nothing to compare with.
        return Ok(World::new(of, Timestamp(0)).end());
    };
    let mut world = World::new(of, first);
    while let Some(at) = venue.next_at() {
        if !goes_on() {
            return Err(Ended);
        }
        world.pass(at);
        let at = at.max(world.now);
        // A recording that never waits has the time that it is asked for.
        venue.poll(at, at, &mut |frame| world.take(&frame));
    }
    world.pass(Timestamp(world.now.0 + 1));
    Ok(world.end())
}

struct World<'a> {
    of: &'a Comparison<'a>,
    markets: Markets,
    catalog: Arc<Catalog>,
    books: Arc<Books>,
    writer: BookWriter,
    lanes: Vec<Lane>,
    reports: Reports,
    own: Own,
    sights: Sights,
    digest: TapeDigest,
    /// Orders of the file by their tokens.
    by_token: AHashMap<&'a str, Vec<usize>>,
    steps: Vec<(Timestamp, Step)>,
    /// Count of them that are done.
    done: usize,
    first: Timestamp,
    now: Timestamp,
    /// When the last frame of a connection came.
    framed_at: Timestamp,
    /// When the next matching cycle is due, while an order rests.
    next_cycle: Timestamp,
}

impl<'a> World<'a> {
    fn new(of: &'a Comparison<'a>, first: Timestamp) -> World<'a> {
        let (books, catalog) = (Arc::new(Books::new()), Arc::new(Catalog::new()));
        let mut writer = books.writer().expect("the books are new");
        writer.report_levels();
        let lane = |model| Lane::new(model, of.rules, books.clone(), catalog.clone(), of.orders.len(), first);
        let mut by_token: AHashMap<&str, Vec<usize>> = AHashMap::new();
        let mut steps = Vec::new();
        for (number, order) in of.orders.iter().enumerate() {
            by_token.entry(&order.token).or_default().push(number);
            if LeftOut::of_file(order).is_some() {
                continue;
            }
            let entered_at = of.entered_at(order);
            steps.push((entered_at, Step::Enter(number)));
            if let Some(at) = order.cancelled_at.filter(|_| !order.kind.is_immediate()) {
                steps.push((at.max(entered_at.plus(1)), Step::Leave(number)));
            }
        }
        steps.sort_unstable();
        World {
            lanes: of.models.iter().map(lane).collect(),
            of,
            markets: Markets::new(),
            catalog,
            books,
            writer,
            reports: Reports::default(),
            own: Own::default(),
            sights: Sights::new(of.rules.quote_age_max_us),
            digest: TapeDigest::default(),
            by_token,
            steps,
            done: 0,
            first,
            now: first,
            framed_at: first,
            next_cycle: first,
        }
    }

    /// The time has come to `at`.
    fn reach(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
        self.writer.recording(self.now);
        self.writer.clock(self.now);
        if self.markets.next_end().is_some_and(|end| end <= self.now) {
            let facts = self.markets.end_passed(self.now, self.now);
            self.decided(facts);
        }
    }

    /// Everything that is due before `until`.
    fn pass(&mut self, until: Timestamp) {
        loop {
            let step = self.steps.get(self.done).map_or(NEVER, |(at, _)| *at);
            let own = self.own.next_due().unwrap_or(NEVER);
            let cycle = self.cycle_at();
            let next = step.min(own).min(cycle);
            if next >= until {
                return;
            }
            self.reach(next);
            if own == next {
                self.own.pass(self.now);
                self.show_moved();
            } else if step == next {
                let (_, step) = self.steps[self.done];
                self.done += 1;
                self.step(step);
            } else {
                self.lanes.iter_mut().for_each(|lane| lane.cycle(self.now));
                self.sights.look(&self.books, self.now);
                self.next_cycle = self.now.plus(self.of.rules.match_interval_us);
            }
        }
    }

    /// Cycles are multiples of their interval after the first moment; there is none while no order rests.
    fn cycle_at(&self) -> Timestamp {
        if !self.lanes.iter().any(Lane::has_open) {
            return NEVER;
        }
        let interval = self.of.rules.match_interval_us;
        let next = self.first.plus(self.now.since(self.first).div_ceil(interval) * interval);
        self.next_cycle.max(next)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Leave(number) => self.lanes.iter_mut().for_each(|lane| lane.leave(number, self.now)),
            Step::Enter(number) => {
                let order = &self.of.orders[number];
                // A token that is not listed now has no book: the order is left out.
                if let Some(instrument) = self.catalog.by_token(&order.token) {
                    self.sights.look(&self.books, self.now);
                    self.lanes.iter_mut().for_each(|lane| lane.enter(number, order, instrument, self.now));
                }
            }
        }
    }

    /// Writes the levels of which own shares have come or gone without news of the venue.
    fn show_moved(&mut self) {
        for (instrument, side, price, size) in self.own.moved() {
            let connection = self.books.book(instrument).and_then(|book| book.last_message());
            let connection = connection.map_or(NO_CONNECTION, |(_, connection)| connection as u8);
            let now = self.now;
            self.writer.answer(connection, now, |books| books.delta(instrument, &[(side, price, size)], now));
        }
        self.hand_levels();
    }

    /// Applies a frame: facts about markets, then books, then trades.
    fn take(&mut self, frame: &Frame<'_>) {
        self.reach(frame.received);
        for update in frame.updates {
            self.decide(update);
        }
        if frame.connection == NO_CONNECTION {
            return;
        }
        if self.now.since(self.framed_at) > self.of.rules.quote_age_max_us {
            // After a silence, before this frame shows that the connection is alive.
            self.sights.look(&self.books, self.now);
        }
        self.framed_at = self.now;
        self.write(frame);
        self.hand_levels();
        self.hand_trades(frame);
        for update in frame.updates {
            match update {
                FeedUpdate::Gap { tokens, .. } if tokens.is_empty() => self.writer.gap_connection(frame.connection),
                FeedUpdate::Gap { tokens, .. } => tokens.iter().for_each(|token| self.distrust(token)),
                FeedUpdate::Left { tokens } => self.distrust(&tokens[0]),
                _ => continue,
            }
            self.digest.add(self.now, update);
            self.hand_levels();
            self.sights.look(&self.books, self.now);
        }
        let touched = frame.updates.iter().filter_map(|update| self.catalog.by_token(token(update)?));
        let mut touched: Vec<MarketId> = touched.map(InstrumentId::market).collect();
        touched.dedup();
        touched.into_iter().for_each(|market| self.sights.look_at(market, &self.books, self.now));
    }

    fn distrust(&mut self, token: &str) {
        if let Some(instrument) = self.catalog.by_token(token) {
            self.writer.distrust(instrument.market());
        }
    }

    /// Decides and publishes the facts of an update about a market of the file.
    fn decide(&mut self, update: &FeedUpdate) {
        let now = self.now;
        let facts: Vec<MarketMutation> = match update {
            FeedUpdate::Listed { listing, state } => {
                if !listing.tokens.iter().any(|token| self.by_token.contains_key(token.as_str())) {
                    return;
                }
                let is_new = self.markets.by_condition(&listing.condition).is_none();
                let facts = self.markets.list(listing, *state, now, now);
                self.decided(facts);
                if is_new && let Some(market) = self.markets.by_condition(&listing.condition) {
                    self.listed(market);
                }
                return self.digest.add(now, update);
            }
            FeedUpdate::StateChanged { condition, state } => {
                let market = self.markets.by_condition(condition);
                market.and_then(|market| self.markets.state(market, *state, now)).into_iter().collect()
            }
            FeedUpdate::EndChanged { condition, end } => {
                let market = self.markets.by_condition(condition);
                market.map(|market| self.markets.end(market, *end, now, now)).unwrap_or_default()
            }
            FeedUpdate::TickChanged { condition, tick } => {
                let market = self.markets.by_condition(condition);
                market.map(|market| self.markets.tick(market, *tick, now)).unwrap_or_default()
            }
            FeedUpdate::Fees { condition, schedule } if self.of.rules.follows_schedules() => {
                let market = self.markets.by_condition(condition);
                market.and_then(|market| self.markets.fees(market, *schedule, now)).into_iter().collect()
            }
            FeedUpdate::Resolved { condition, resolution, .. } => {
                if let Some(market) = self.markets.by_condition(condition) {
                    self.resolved(market, *resolution);
                    self.digest.add(now, update);
                }
                return;
            }
            _ => return,
        };
        if !facts.is_empty() {
            self.digest.add(now, update);
        }
        self.decided(facts);
    }

    fn decided(&mut self, facts: impl IntoIterator<Item = MarketMutation>) {
        for fact in facts {
            self.markets.apply(&fact);
            publish(&fact, &self.catalog, &mut self.writer);
        }
    }

    /// The traces of the orders in a market are looked for from its listing on.
    fn listed(&mut self, market: MarketId) {
        self.sights.add(market);
        if !self.of.removes_own {
            return;
        }
        let Some(cell) = self.catalog.market(market) else { return };
        for token in &cell.listing.tokens {
            let (Some(orders), Some(instrument)) = (self.by_token.get(token.as_str()), self.catalog.by_token(token))
            else {
                continue;
            };
            for number in orders {
                let order = &self.of.orders[*number];
                self.own.add(order, instrument, self.of.entered_at(order));
            }
        }
    }

    fn resolved(&mut self, market: MarketId, resolution: Resolution) {
        let fact = self.markets.resolve(market, resolution, self.now);
        self.decided(fact);
        self.lanes.iter_mut().for_each(|lane| lane.settle(market, self.now));
        let fact = self.markets.settle(market, self.now);
        self.decided(fact);
    }

    /// Writes the books of a frame, without what rests of own orders.
    fn write(&mut self, frame: &Frame<'_>) {
        let known = |update| Some((self.catalog.by_token(token(update)?)?, update));
        let updates: Vec<(InstrumentId, &FeedUpdate)> = frame.updates.iter().filter_map(known).collect();
        for (instrument, update) in &updates {
            self.own.observe(*instrument, update);
            self.digest.add(frame.received, update);
        }
        self.own.recognise(frame.received);
        let own = &self.own;
        self.writer.frame(frame.connection, frame.received, |books| {
            for (instrument, update) in updates {
                match update {
                    FeedUpdate::BookSnapshot { bids, asks, venue_ts, .. } => {
                        let bids = own.side_without(instrument, BookSide::Bid, bids);
                        let asks = own.side_without(instrument, BookSide::Ask, asks);
                        books.snapshot_of(instrument, bids, asks, *venue_ts, None);
                    }
                    FeedUpdate::BookDelta { levels, venue_ts, .. } => {
                        let left = |(side, price, size): &(BookSide, Price, Qty)| {
                            (*side, *price, own.without(instrument, *side, *price, *size))
                        };
                        let levels: Vec<_> = levels.iter().map(left).collect();
                        books.delta(instrument, &levels, *venue_ts);
                    }
                    FeedUpdate::LastTrade { price, size, taker_buys, venue_ts, .. } => {
                        let trade = LastTrade { price: *price, size: *size, taker_buys: *taker_buys, at: *venue_ts };
                        books.trade(instrument, trade);
                    }
                    _ => {}
                }
            }
            // In the book of the other token, too, which may not be in this frame.
            for (instrument, side, price, size) in own.moved() {
                books.delta(instrument, &[(side, price, size)], frame.received);
            }
        });
    }

    /// Hands over what has happened at watched levels.
    fn hand_levels(&mut self) {
        for news in self.writer.take_news() {
            for lane in &self.lanes {
                // What does not fit is a gap, which the lane counts.
                let _ = lane.prints().push(Event::Level(news));
            }
        }
    }

    /// Hands over the trades of a frame, and lets orders meet them.
    fn hand_trades(&mut self, frame: &Frame<'_>) {
        let (at, mut has_trades) = (frame.received, false);
        for update in frame.updates {
            let Some(instrument) = token(update).and_then(|token| self.catalog.by_token(token)) else { continue };
            let is_watched = self.books.is_watched(instrument.market());
            match update {
                FeedUpdate::SidelessTrade { price, size, .. } if is_watched => {
                    let print = SidelessPrint { instrument, price: *price, size: *size, at };
                    self.hand(Event::Sideless(print));
                }
                FeedUpdate::LastTrade { price, size, id, venue_ts, .. } => {
                    let Some(report) = Report::of(update, instrument) else { continue };
                    if self.reports.is_repeated(report) {
                        continue;
                    }
                    // A fill is found whether or not an order of a model rests.
                    let own = self.own.part_of(instrument, *price, *size, id.as_deref(), [*venue_ts, at]);
                    if !is_watched {
                        continue;
                    }
                    let taker: Side = report.taker;
                    let print = |size| Print { instrument, price: *price, size, taker, taken_at: at, at };
                    // What came before an own order in its queue was traded before it.
                    if own < *size {
                        self.hand(Event::Print(print(*size - own)));
                    }
                    if !own.is_zero() {
                        self.hand(Event::Own(print(own)));
                    }
                    has_trades = true;
                }
                _ => {}
            }
        }
        if has_trades {
            self.lanes.iter_mut().for_each(|lane| lane.meet_prints(at));
        }
    }

    fn hand(&self, event: Event) {
        for lane in &self.lanes {
            // As for levels.
            let _ = lane.prints().push(event);
        }
    }

    fn end(mut self) -> Walked {
        self.sights.end(self.now);
        let place = |order: &LiveOrder| self.catalog.by_token(&order.token);
        let mark = |order: &LiveOrder| {
            let instrument = place(order)?;
            let payout = self.catalog.of_instrument(instrument).and_then(|cell| cell.resolution());
            match payout {
                Some(resolution) => Some(Cash(i64::from(resolution.payout(instrument.outcome()).0) * 100)),
                None => self.sights.last_mid(instrument),
            }
        };
        let left_out = |order: &LiveOrder| {
            LeftOut::of_file(order).or_else(|| match place(order) {
                Some(instrument) => self.sights.left_out(instrument.market(), order, self.of.entered_at(order)),
                None => Some(LeftOut::UnknownToken),
            })
        };
        let orders = self.of.orders;
        let (marks, left_out) = (orders.iter().map(mark).collect(), orders.iter().map(left_out).collect());
        let sold = |mut ran: Vec<ModelOrder>| {
            for (ran, _) in ran.iter_mut().zip(orders).filter(|(_, order)| order.side == Side::Sell) {
                ran.fills.iter_mut().for_each(|fill| *fill = as_sale(*fill));
            }
            ran
        };
        let models = self.lanes.into_iter().map(|lane| sold(lane.orders)).collect();
        Walked { models, left_out, marks, digest: self.digest.end(), span: self.first..self.now }
    }
}

/// The token of an update about a book or a trade.
fn token(update: &FeedUpdate) -> Option<&str> {
    match update {
        FeedUpdate::BookSnapshot { token, .. }
        | FeedUpdate::BookDelta { token, .. }
        | FeedUpdate::LastTrade { token, .. }
        | FeedUpdate::SidelessTrade { token, .. } => Some(token),
        _ => None,
    }
}
