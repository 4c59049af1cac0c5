//! The private world of one seed: a shard with one user, whose orders meet archived books.
//!
//! Orders are placed as those of a client: the shard decides, walks, charges and settles. What a lane adds is when it
//! asks and which book its shard sees.

use super::chance::{Chance, Haircut, Latency};
use super::fill::FillModel;
use super::job::{BookChange, BookFrame, Extent, Job, ORDERS_MAX, ROWS_MAX, TickMode, TickPlan};
use super::quotes::Quotes;
use super::report::{EquityPoint, Reason, Trade};
use super::strategy::Move;
use crate::amount::{Cash, Price, Qty, average_half_up, nearest};
use crate::book::{BookSide, BookWriter, Books, Effective, Reach};
use crate::command::{Answer, Command, CreateUser, Envelope, Placement, PlacementTerms, RequestedPrice, Size};
use crate::decide::take::taken_side;
use crate::directory::Directory;
use crate::id::{InstrumentId, KeyId, MARKETS, MarketId, Outcome, UserId};
use crate::market::catalog::Catalog;
use crate::market::terms::Resolution;
use crate::notice::Notice;
use crate::order::{EntryRoute, OrderType, Side, TimeInForce};
use crate::ring::Ring;
use crate::rules::Rules;
use crate::shard::{Outbox, Room, Shard};
use crate::time::Timestamp;
use crate::user::{Tier, User, Users, Wallet, WalletKind};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The user of a lane.
const OWNER: UserId = UserId(1);
/// No tick is due.
const NEVER: Timestamp = Timestamp(u64::MAX);

/// Why a lane ends before its window does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Cancelled,
    OutputLimit,
}

/// What all lanes of a run share.
pub(super) struct Ground<'a> {
    pub job: &'a Job,
    pub plan: TickPlan,
    /// The archived books as they are.
    pub books: Arc<Books>,
    pub catalog: Arc<Catalog>,
    pub quotes: Quotes,
    /// Markets that changed at the moment of the last frame, in event mode.
    pub changed: Vec<usize>,
    pub changed_at: Timestamp,
    /// False ends the run.
    pub proceed: &'a mut dyn FnMut(Timestamp) -> bool,
    pub orders: u64,
}

/// How a lane trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conduct {
    pub model: FillModel,
    pub latency: Latency,
    pub haircut: Haircut,
    /// Fees are charged.
    pub pays: bool,
    /// Trades and points are kept.
    pub keeps: bool,
}

pub(super) struct Lane {
    conduct: Conduct,
    chance: Chance,
    shard: Shard<u64>,
    inbox: Ring<Envelope<u64>>,
    answers: Answers,
    /// The books of its shard, if they are not the archived ones.
    own: Option<(Arc<Books>, BookWriter)>,
    holdings: Vec<Holding>,
    /// Orders on their way.
    due: BinaryHeap<Reverse<(Timestamp, usize)>>,
    next_tick: Timestamp,
    /// Changed markets of the last frame that had their tick.
    ticked: usize,
    effective: Effective,
    /// The strategy looks at the time, so each tick may decide otherwise than the one before.
    needs_time: bool,
    peak: Cash,
    /// [`Lane::worth`], while nothing that it depends on changes.
    valued: Option<(Cash, Cash)>,
    pub trades: Vec<Trade>,
    pub points: Vec<EquityPoint>,
    pub outcome: LaneOutcome,
}

/// The lanes of a part of a run.
pub(super) struct Lanes {
    pub seeds: Vec<Lane>,
    /// The lane without costs, in the part of the first seed.
    pub naive: Option<Lane>,
}

impl Lanes {
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Lane> {
        self.seeds.iter_mut().chain(&mut self.naive)
    }
}

/// The figures of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LaneOutcome {
    pub ticks: u64,
    /// Entries and exits.
    pub fills: u64,
    /// Positions that were closed, and those of them that gained.
    pub closed: u64,
    pub won: u64,
    /// Deepest fall below the running peak, 10⁻⁴ of the peak.
    pub drawdown: u64,
    pub is_scored: bool,
}

/// What a lane knows of one market.
#[derive(Clone, Debug, Default)]
struct Holding {
    /// An order is on its way.
    pending: Option<Move>,
    /// The version of the books at the last order that took nothing: until they change, none takes anything.
    killed_at: Option<u64>,
    /// The number of the quote at which the strategy did not want to move: until the quote or the position changes, it
    /// does not.
    declined: Option<u64>,
    last_mid: Option<Cash>,
    /// Cash out and in since the position was opened.
    spent: Cash,
    received: Cash,
    is_settled: bool,
}

/// Keeps the answers of a shard; nothing else of it is needed.
#[derive(Default)]
pub(super) struct Answers {
    answers: Vec<(u64, Answer)>,
    asked: u64,
    #[cfg(test)]
    pub records: Vec<Vec<u8>>,
}

impl Outbox<u64> for Answers {
    fn room(&self) -> Room {
        Room::Ample
    }

    fn record(&mut self, _owner: UserId, _now: Timestamp, _payload: &[u8]) {
        #[cfg(test)]
        self.records.push(_payload.to_vec());
    }

    fn notice(&mut self, _notice: Notice) {}

    fn answer(&mut self, reply: u64, answer: Answer) {
        self.answers.push((reply, answer));
    }
}

impl Lane {
    /// A lane at the start of the window, with the markets of the catalogue.
    pub fn new(ground: &Ground<'_>, rules: &Rules, chance: Chance, conduct: Conduct) -> Lane {
        let mut rules = rules.clone();
        rules.flags.book_impact_depletion = conduct.model == FillModel::DepthWalkDepletion;
        rules.depletion_covers_market_orders = true;
        if !conduct.pays {
            crate::market::terms::Category::ALL.into_iter().for_each(|of| rules.fees.set(of, crate::amount::Bps(0)));
        }
        let own = (!conduct.model.walks_the_book() || !conduct.haircut.is_zero()).then(|| {
            let books = Arc::new(Books::new());
            let mut writer = books.writer().expect("the books are new");
            for (market, of) in ground.job.markets.iter().enumerate() {
                writer.tick(MarketId(market as u32), of.market.tick);
            }
            (books, writer)
        });
        let books = own.as_ref().map_or(&ground.books, |(books, _)| books).clone();
        let directory = Arc::new(Directory::default());
        let shard = Shard::new(0, 1, Users::default(), Arc::new(rules), books, ground.catalog.clone(), directory);
        let next_tick = match ground.plan.mode {
            TickMode::Grid => ground.job.start.plus(chance.phase(ground.plan.step)),
            TickMode::Event => NEVER,
        };
        let mut lane = Lane {
            conduct,
            chance,
            shard,
            inbox: Ring::new(1),
            answers: Answers::default(),
            own,
            holdings: vec![Holding::default(); ground.job.markets.len()],
            due: BinaryHeap::new(),
            next_tick,
            ticked: 0,
            effective: Effective::default(),
            needs_time: ground.job.strategy.needs_time(),
            peak: ground.job.bankroll,
            valued: None,
            trades: Vec::new(),
            points: Vec::new(),
            outcome: LaneOutcome::default(),
        };
        let api_balance = Some(ground.job.bankroll);
        // An enterprise account has no daily limit of orders.
        let user = CreateUser { sub: None, email: None, grant: Some(Tier::Enterprise), api_balance };
        lane.ask(OWNER, Command::CreateUser(user), ground.job.start);
        if conduct.keeps {
            lane.point(ground, ground.job.start);
        }
        lane
    }

    fn user(&self) -> &User {
        self.shard.users().get(OWNER).expect("it was created first")
    }

    fn wallet(&self) -> &Wallet {
        self.user().wallet_of(WalletKind::Api).expect("a user has an API wallet")
    }

    fn held(&self, instrument: InstrumentId) -> Qty {
        self.user().open_position(self.wallet().id, instrument).map_or(Qty::ZERO, |held| held.qty)
    }

    /// Sends a command to the shard and runs it until it answers.
    fn ask(&mut self, owner: UserId, command: Command, now: Timestamp) -> Answer {
        self.valued = None;
        let Lane { shard, answers, inbox, .. } = self;
        answers.asked += 1;
        let reply = answers.asked;
        shard.take(Envelope { owner, command, received_at: now, reply }, now, answers);
        while answers.answers.last().is_none_or(|(to, _)| *to != reply) {
            shard.turn(inbox, now, answers);
        }
        let (_, answer) = answers.answers.pop().expect("it was there");
        answer
    }

    /// Applies a frame to the books of its own, with the haircut of this seed.
    pub fn frame(&mut self, frame: &BookFrame, extent: Extent, at: Timestamp) {
        let (chance, haircut) = (self.chance, self.conduct.haircut);
        let Some((_, writer)) = self.own.as_mut().filter(|_| self.conduct.model.walks_the_book()) else { return };
        write(writer, frame, extent, at, |outcome, side, price, size| {
            chance.cut(haircut, frame.market, place(outcome, side, price), size)
        });
    }

    /// The connection of the books of its own is alive until `at`.
    pub fn alive(&mut self, at: Timestamp) {
        if let Some((_, writer)) = &mut self.own {
            writer.alive(0, at);
        }
    }

    /// Everything that is due before `until`, in the order of time; at one moment orders first, then decisions.
    pub fn advance(&mut self, ground: &mut Ground<'_>, until: Timestamp) -> Result<(), Stop> {
        loop {
            let order = self.due.peek().map_or(NEVER, |Reverse((at, _))| *at);
            let change = if self.ticked < ground.changed.len() { ground.changed_at } else { NEVER };
            let next = order.min(change).min(self.next_tick);
            if next >= until {
                return Ok(());
            }
            if !(ground.proceed)(next) {
                return Err(Stop::Cancelled);
            }
            if order == next {
                let Some(Reverse((at, market))) = self.due.pop() else { continue };
                if let Some(next) = self.holdings[market].pending.take() {
                    self.order(ground, market, next, at)?;
                }
            } else if change == next {
                let market = ground.changed[self.ticked];
                self.ticked += 1;
                self.tick(ground, market, next)?;
                self.value(ground, next)?;
            } else {
                self.next_tick = next.plus(ground.plan.step);
                for market in 0..ground.job.markets.len() {
                    self.tick(ground, market, next)?;
                }
                self.value(ground, next)?;
            }
        }
    }

    /// A new frame: its changed markets had no tick yet.
    pub fn new_moment(&mut self) {
        self.ticked = 0;
    }

    /// One decision.
    fn tick(&mut self, ground: &mut Ground<'_>, market: usize, at: Timestamp) -> Result<(), Stop> {
        let job = ground.job;
        if at < job.start || self.holdings[market].is_settled || !job.is_covered(market, at) {
            return Ok(());
        }
        self.outcome.ticks += 1;
        let (quote, number) = ground.quotes.of(market, &ground.books);
        let holding = &mut self.holdings[market];
        if holding.declined == Some(number) {
            return Ok(());
        }
        let mid = quote.mid().or(holding.last_mid);
        if mid != holding.last_mid {
            (holding.last_mid, self.valued) = (mid, None);
        }
        if holding.pending.is_some() {
            return Ok(());
        }
        let mut quote = *quote;
        if self.needs_time {
            let end = job.markets[market].market.end.known_at(at);
            quote.to_resolution = end.map(|end| end.0 as i64 - at.0 as i64);
        }
        let next = if self.held(job.instrument(market)).is_zero() { Move::Enter } else { Move::Leave };
        if !job.strategy.wants(next, &quote) {
            self.holdings[market].declined = (!self.needs_time).then_some(number);
            return Ok(());
        }
        match self.chance.latency(self.conduct.latency, market, at) {
            0 => self.order(ground, market, next, at),
            delay => {
                self.holdings[market].pending = Some(next);
                self.due.push(Reverse((at.plus(delay), market)));
                Ok(())
            }
        }
    }

    /// Places an order: whole for an entry, the whole position for an exit; both take what the book has.
    fn order(&mut self, ground: &mut Ground<'_>, market: usize, next: Move, at: Timestamp) -> Result<(), Stop> {
        let (job, instrument) = (ground.job, ground.job.instrument(market));
        if self.holdings[market].is_settled || !job.is_covered(market, at) {
            return Ok(());
        }
        let (side, qty, worst, reason) = match next {
            Move::Enter => (Side::Buy, job.strategy.size, Price::ONE, Reason::Entry),
            Move::Leave => (Side::Sell, self.held(instrument), Price::LOWEST, Reason::Exit),
        };
        let qty = qty.floored_to_order_step();
        self.show(ground, market, side, qty, at);
        let books = self.own.as_ref().map_or(&ground.books, |(books, _)| books);
        let needed = books.effective_top(instrument).ok().and_then(|top| top.price(taken_side(side)));
        let version = books.version(instrument);
        if qty.is_zero() || needed.is_none() || self.holdings[market].killed_at == Some(version) {
            return Ok(());
        }
        ground.orders += 1;
        if ground.orders > ORDERS_MAX {
            return Err(Stop::OutputLimit);
        }
        let terms = PlacementTerms {
            wallet: None,
            instrument: Some(instrument),
            side,
            order_type: OrderType::Market,
            time_in_force: TimeInForce::Fak,
            size: Size::Shares { qty, rounded_from: None },
            price: RequestedPrice::At(worst),
            expiration: None,
            post_only: false,
        };
        let placement = Placement::new(KeyId(0), Tier::Enterprise, EntryRoute::Native, Ok(terms));
        let view = match self.ask(OWNER, Command::Place(Box::new(placement)), at) {
            Answer::Order(view) => view,
            Answer::Killed { .. } => {
                self.holdings[market].killed_at = Some(version);
                return Ok(());
            }
            // It cannot be paid, is too small, or its quote is too old: skipped.
            _ => return Ok(()),
        };
        self.holdings[market].declined = None;
        for fill in view.fills.iter() {
            let row = Executed { market, side, qty: fill.qty, notional: fill.notional, fee: fill.fee, reason };
            self.note(ground, row, at)?;
        }
        Ok(())
    }

    /// Makes the book of a model of one level, for the order that follows.
    fn show(&mut self, ground: &Ground<'_>, market: usize, side: Side, qty: Qty, at: Timestamp) {
        let Conduct { model, haircut, .. } = self.conduct;
        let Some((_, writer)) = self.own.as_mut().filter(|_| !model.walks_the_book()) else { return };
        let (instrument, taken) = (ground.job.instrument(market), taken_side(side));
        let reach = Reach { bids: 1, asks: 1 };
        let known = ground.books.effective_within(instrument, reach, &mut self.effective).is_ok();
        // A book in a gap has no best price to rely on.
        let is_broken = ground.books.gap(instrument);
        let level = model.level(side, qty, self.effective.top(), self.effective.side(taken).first());
        let level = level.filter(|_| known && !is_broken).map(|(price, size)| {
            let of = (instrument.outcome(), taken, price);
            (price, self.chance.cut(haircut, market, place(of.0, of.1, of.2), size))
        });
        let level = level.as_slice();
        writer.frame(0, at, |frame| match taken {
            BookSide::Bid => frame.snapshot(instrument, level, &[], at, None),
            BookSide::Ask => frame.snapshot(instrument, &[], level, at, None),
        });
    }

    /// Pays out a market whose result is published.
    pub fn settle(
        &mut self,
        ground: &mut Ground<'_>,
        market: usize,
        resolution: Resolution,
        at: Timestamp,
    ) -> Result<(), Stop> {
        let instrument = ground.job.instrument(market);
        let (qty, before) = (self.held(instrument), self.wallet().cash);
        self.ask(MARKETS, Command::Settle { market: MarketId(market as u32) }, at);
        let holding = &mut self.holdings[market];
        (holding.is_settled, holding.pending) = (true, None);
        holding.last_mid = Some(Cash(i64::from(resolution.payout(instrument.outcome()).0) * 100));
        if qty.is_zero() {
            return Ok(());
        }
        self.outcome.is_scored = true;
        let notional = self.wallet().cash - before;
        let row = Executed { market, side: Side::Sell, qty, notional, fee: Cash::ZERO, reason: Reason::Settlement };
        self.note(ground, row, at)?;
        self.value(ground, at)
    }

    /// Books an executed order in the figures.
    fn note(&mut self, ground: &Ground<'_>, row: Executed, at: Timestamp) -> Result<(), Stop> {
        let Executed { market, side, qty, notional, fee, reason } = row;
        let left = self.held(ground.job.instrument(market));
        let holding = &mut self.holdings[market];
        match side {
            Side::Buy => holding.spent += notional + fee,
            Side::Sell => holding.received += notional - fee,
        }
        if left.is_zero() {
            self.outcome.closed += 1;
            self.outcome.won += u64::from(holding.received > holding.spent);
            (holding.spent, holding.received) = (Cash::ZERO, Cash::ZERO);
        }
        self.outcome.fills += u64::from(reason != Reason::Settlement);
        if self.conduct.keeps {
            if self.trades.len() == ROWS_MAX {
                return Err(Stop::OutputLimit);
            }
            let price = average_half_up(notional, qty).unwrap_or_default();
            self.trades.push(Trade { at, market, side, shares: qty, price, notional, fee, reason });
        }
        Ok(())
    }

    /// Cash, and the value of the positions at their last midpoints; without one, at their cost.
    pub fn worth(&self, job: &Job) -> (Cash, Cash) {
        let value = |market: usize| {
            let Some(held) = self.user().open_position(self.wallet().id, job.instrument(market)) else { return 0 };
            match self.holdings[market].last_mid {
                Some(mid) => (i128::from(mid.0) * i128::from(held.qty.0) + 500_000) / 1_000_000,
                None => i128::from(held.cost.0),
            }
        };
        let positions = (0..self.holdings.len()).map(value).sum();
        (self.wallet().cash, nearest(positions))
    }

    /// The drawdown and the point of a moment, on the lane that keeps them.
    fn value(&mut self, ground: &Ground<'_>, at: Timestamp) -> Result<(), Stop> {
        if !self.conduct.keeps || at < ground.job.start {
            return Ok(());
        }
        let (cash, position_value) = match self.valued {
            Some(worth) => worth,
            None => self.revalue(ground.job),
        };
        let last = self.points.last().expect("the first one is made at the start");
        if (last.cash, last.position_value) != (cash, position_value) {
            let is_time = ground.plan.mode == TickMode::Grid || last.at.minute() < at.minute();
            if is_time {
                return self.add_point(EquityPoint { at, cash, position_value });
            }
        }
        Ok(())
    }

    /// The worth of the account after a change of it, with its peak and its drawdown.
    fn revalue(&mut self, job: &Job) -> (Cash, Cash) {
        let (cash, positions) = self.worth(job);
        let equity = cash + positions;
        self.peak = self.peak.max(equity);
        let (fall, peak) = ((self.peak - equity).0 as u128, self.peak.0.max(1) as u128);
        self.outcome.drawdown = self.outcome.drawdown.max(((fall * 20_000 + peak) / (2 * peak)) as u64);
        self.valued = Some((cash, positions));
        (cash, positions)
    }

    fn point(&mut self, ground: &Ground<'_>, at: Timestamp) {
        let (cash, position_value) = self.worth(ground.job);
        self.points.push(EquityPoint { at, cash, position_value });
    }

    fn add_point(&mut self, point: EquityPoint) -> Result<(), Stop> {
        if self.points.len() == ROWS_MAX {
            return Err(Stop::OutputLimit);
        }
        self.points.push(point);
        Ok(())
    }

    /// The end of the window: open positions are valued at their last midpoints.
    pub fn finish(&mut self, ground: &mut Ground<'_>) -> Result<(), Stop> {
        for market in 0..self.holdings.len() {
            if !self.holdings[market].is_settled {
                let top = ground.books.effective_top(ground.job.instrument(market)).unwrap_or_default();
                let holding = &mut self.holdings[market];
                holding.last_mid = top.midpoint().or(holding.last_mid);
            }
        }
        self.valued = None;
        self.value(ground, ground.job.end)?;
        let is_over = self.points.last().is_some_and(|last| last.at >= ground.job.end);
        if self.conduct.keeps && !is_over {
            let (cash, position_value) = self.worth(ground.job);
            self.add_point(EquityPoint { at: ground.job.end, cash, position_value })?;
        }
        Ok(())
    }

    #[cfg(test)]
    pub fn records(&self) -> &[Vec<u8>] {
        &self.answers.records
    }
}

/// One executed order.
struct Executed {
    market: usize,
    side: Side,
    qty: Qty,
    notional: Cash,
    fee: Cash,
    reason: Reason,
}

/// The name of a level, which its mirror in the other token's book shares.
fn place(outcome: Outcome, side: BookSide, price: Price) -> u64 {
    let (side, price) = match outcome {
        Outcome::First => (side, price),
        Outcome::Second => (side.opposite(), price.complement()),
    };
    (side as u64) << 16 | u64::from(price.0)
}

/// Writes a frame as of `at`, with the size that `size` leaves of each level. Returns whether best prices may have changed.
pub(super) fn write(
    writer: &mut BookWriter,
    frame: &BookFrame,
    extent: Extent,
    at: Timestamp,
    size: impl Fn(Outcome, BookSide, Price, Qty) -> Qty,
) -> bool {
    let market = MarketId(frame.market as u32);
    if let Some(tick) = extent.tick {
        writer.tick(market, tick);
    }
    let report = writer.frame(0, at, |to| {
        for change in &frame.changes {
            match change {
                BookChange::Book { outcome, bids, asks } => {
                    let left = |(price, shown): &(Price, Qty), side| (*price, size(*outcome, side, *price, *shown));
                    let bids = bids.iter().map(|level| left(level, BookSide::Bid));
                    let asks = asks.iter().map(|level| left(level, BookSide::Ask));
                    to.snapshot_of(market.instrument(*outcome), bids, asks, at, None);
                }
                BookChange::Level { outcome, side, price, size: shown } => {
                    let left = size(*outcome, *side, *price, *shown);
                    to.delta(market.instrument(*outcome), &[(*side, *price, left)], at);
                }
                BookChange::Tick(_) | BookChange::Gap(_) => {}
            }
        }
    });
    let gaps = if extent.has_gaps { &frame.changes[..] } else { &[] };
    for (number, change) in gaps.iter().enumerate() {
        let BookChange::Gap(of) = change else { continue };
        let repairs = |later: &BookChange| matches!(later, BookChange::Book { outcome, .. } if outcome == of);
        if !frame.changes[number..].iter().any(repairs) {
            writer.gap(market.instrument(*of));
        }
    }
    report.settled > 0
}
