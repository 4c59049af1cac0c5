//! A recording with known truth: a market whose levels are queues, in which one order at a time waits its turn. The file
//! of orders and their fills is exact, so what a model gets wrong is its own.
//!
//! Two things must be seen. A model of queues is right more often than one that ignores them. And orders that were sent
//! an hour later than they were fill no better than by chance: a comparison that still finds its fills would find them in
//! anything.

use super::orders::{Kind, LiveFill, LiveOrder};
use super::table::{Part, Row};
use super::{Comparison, Ended, Model, Report};
use engine::amount::{Cash, Price, Qty, TickSize};
use engine::book::BookSide;
use engine::chance::{Chance, between};
use engine::market::terms::{self, Category, Listing, MarketState};
use engine::order::Side;
use engine::realism::{FillModel, FillTerms};
use engine::rules::Rules;
use engine::time::{HOUR, MILLISECOND, MINUTE, SECOND, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use venue::{FeedUpdate, Frame, Polled, Venue};

/// By how much later the second run sends the orders; those that would be after the end, as much before.
pub const SHIFT: u64 = HOUR;
/// The length of the recording.
const SPAN: u64 = 2 * HOUR + 5 * MINUTE;
/// Its first moment: 2026-09-01T00:00:00Z.
const FIRST: Timestamp = Timestamp(1_788_220_800 * SECOND);
const TOKENS: [&str; 2] = ["1", "2"];
const TICK: u16 = 100;
/// Prices in ticks between which it walks freely.
const LOWEST: u16 = 25;
const HIGHEST: u16 = 75;
/// A level with this size has as many leaving as coming.
const CROWDED: Qty = Qty::from_shares(160);
/// Levels that a side has at least.
const LEVELS_MIN: usize = 4;

/// What a control is made of.
#[derive(Clone, Debug)]
pub struct Control {
    pub seed: u64,
    /// The model of queues.
    pub queue_prob: Model,
    /// The model without queues.
    pub touch: Model,
    pub shift: u64,
}

/// The result of a control.
#[derive(Clone, Debug)]
pub struct Controlled {
    pub models: Vec<Model>,
    pub report: Report,
    /// Of the model of queues, with shifted orders.
    pub shifted: Row,
    pub checks: Vec<Check>,
}

/// Something that must be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub what: &'static str,
    pub is_seen: bool,
    pub figures: String,
}

impl Control {
    /// The control of the program.
    pub fn new(seed: u64) -> Control {
        let of =
            |model: FillModel| Model { name: model.name().to_owned(), fill: FillTerms { model, ..FillTerms::KIND } };
        Control { seed, queue_prob: of(FillModel::QueueProb), touch: of(FillModel::Touch), shift: SHIFT }
    }

    /// Makes the recording, and compares both models with its truth.
    ///
    /// # Errors
    /// [`Ended`].
    pub fn run(self, rules: &Rules, goes_on: &dyn Fn() -> bool) -> Result<Controlled, Ended> {
        let Made { frames, orders } = Made::of(self.seed);
        let models = vec![self.queue_prob, self.touch];
        let compared = Comparison::new(&orders, &models, rules, true, self.seed);
        let report = compared.run(&mut Recorded::new(&frames), goes_on)?;
        let shifted: Vec<LiveOrder> = orders.iter().map(|order| shifted(order, self.shift)).collect();
        // The traces stay where they are: nothing of the shifted orders is there.
        let compared = Comparison::new(&shifted, &models[..1], rules, false, self.seed);
        let shifted = compared.run(&mut Recorded::new(&frames), goes_on)?.rows.swap_remove(0);
        let checks = checks(&report.rows, &shifted);
        Ok(Controlled { models, report, shifted, checks })
    }
}

impl Controlled {
    pub fn is_passed(&self) -> bool {
        self.checks.iter().all(|check| check.is_seen)
    }
}

fn checks(rows: &[Row], shifted: &Row) -> Vec<Check> {
    let (queue_prob, touch) = (&rows[0], &rows[1]);
    let text = |part: Part| format!("{} of {}", part.part, part.of);
    // What the model fills of orders that did not fill live is chance.
    let by_chance = Part { part: shifted.only_model, of: shifted.only_model + shifted.neither };
    let figures = |recall: Part| format!("{} against {} by chance", text(recall), text(by_chance));
    vec![
        Check {
            what: "queue_prob is right more often than touch",
            is_seen: queue_prob.right().is_above(touch.right()),
            figures: format!("{} against {}", text(queue_prob.right()), text(touch.right())),
        },
        Check {
            what: "queue_prob finds more live fills than chance",
            is_seen: is_beyond_chance(queue_prob.recall(), by_chance) == Some(true),
            figures: figures(queue_prob.recall()),
        },
        Check {
            what: "of orders sent at other times it finds as many as chance",
            is_seen: is_beyond_chance(shifted.recall(), by_chance) == Some(false),
            figures: figures(shifted.recall()),
        },
    ]
}

/// Whether a share is above another one by more than three standard errors; `None`: one is of nothing.
fn is_beyond_chance(share: Part, chance: Part) -> Option<bool> {
    let [x1, n1, x2, n2] = [share.part, share.of, chance.part, chance.of].map(i128::from);
    if n1 == 0 || n2 == 0 {
        return None;
    }
    let (x, n, above) = (x1 + x2, n1 + n2, x1 * n2 - x2 * n1);
    // (x1/n1 − x2/n2)² against 9 p (1 − p) (1/n1 + 1/n2), where p = x/n.
    Some(above > 0 && above * above * n > 9 * x * (n - x) * n1 * n2)
}

/// The same order at another time of the recording.
fn shifted(order: &LiveOrder, shift: u64) -> LiveOrder {
    let later = (order.sent_at.since(FIRST) + shift) % SPAN;
    let moved = |at: Timestamp| FIRST.plus(later + at.since(order.sent_at));
    let fill = |fill: &LiveFill| LiveFill { at: moved(fill.at), ..fill.clone() };
    LiveOrder {
        sent_at: moved(order.sent_at),
        acked_at: order.acked_at.map(moved),
        cancelled_at: order.cancelled_at.map(moved),
        fills: order.fills.iter().map(fill).collect(),
        ..order.clone()
    }
}

/// Frames in memory as a recording.
pub(super) struct Recorded<'a> {
    rest: &'a [(Timestamp, Vec<FeedUpdate>)],
}

impl<'a> Recorded<'a> {
    pub fn new(frames: &'a [(Timestamp, Vec<FeedUpdate>)]) -> Recorded<'a> {
        Recorded { rest: frames }
    }
}

impl Venue for Recorded<'_> {
    fn poll(&mut self, _server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled {
        while let Some(((at, updates), rest)) = self.rest.split_first().filter(|((at, _), _)| *at <= until) {
            self.rest = rest;
            frame(Frame { connection: 0, received: *at, is_answer: false, updates });
        }
        Polled { venue_now: until, wake_at: None }
    }

    fn next_at(&self) -> Option<Timestamp> {
        self.rest.first().map(|(at, _)| *at)
    }

    fn drives_clock(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "a made recording".to_owned()
    }
}

/// A recording and the orders in it.
struct Made {
    frames: Vec<(Timestamp, Vec<FeedUpdate>)>,
    orders: Vec<LiveOrder>,
}

impl Made {
    fn of(seed: u64) -> Made {
        let mut market = Market::new(seed);
        while market.now < FIRST.plus(SPAN) {
            market.step();
        }
        Made { frames: market.frames, orders: market.orders }
    }
}

/// Shares that rest.
#[derive(Clone, Copy, Debug)]
struct Resting {
    is_own: bool,
    shares: u64,
}

/// The compared order that is alive.
#[derive(Clone, Copy, Debug)]
struct Alive {
    side: usize,
    tick: u16,
    ends_at: Timestamp,
}

#[derive(Clone, Debug)]
struct Trade {
    tick: u16,
    shares: u64,
    taker_buys: bool,
    id: Arc<str>,
}

/// Bids and asks.
const BIDS: usize = 0;
const ASKS: usize = 1;

/// A market with queues, in prices of its first token.
struct Market {
    chance: Chance,
    draws: u64,
    now: Timestamp,
    /// Bids and asks by tick; the first in a queue is traded first.
    sides: [BTreeMap<u16, VecDeque<Resting>>; 2],
    /// Levels that have changed in this step.
    touched: BTreeSet<(usize, u16)>,
    trades: Vec<Trade>,
    trades_count: u64,
    alive: Option<Alive>,
    next_order_at: Timestamp,
    orders: Vec<LiveOrder>,
    frames: Vec<(Timestamp, Vec<FeedUpdate>)>,
}

impl Market {
    fn new(seed: u64) -> Market {
        let mut market = Market {
            chance: Chance::new(seed, "control", 0),
            draws: 0,
            now: FIRST,
            sides: [BTreeMap::new(), BTreeMap::new()],
            touched: BTreeSet::new(),
            trades: Vec::new(),
            trades_count: 0,
            alive: None,
            next_order_at: FIRST.plus(MINUTE),
            orders: Vec::new(),
            frames: Vec::new(),
        };
        for step in 0..6 {
            for side in [BIDS, ASKS] {
                let tick = if side == BIDS { 49 - step } else { 51 + step };
                let shares = market.draw(40, 160);
                market.arrive(side, tick, Resting { is_own: false, shares });
            }
        }
        let listed = FeedUpdate::Listed { listing: Box::new(listing()), state: MarketState::Active };
        market.frames.push((FIRST, vec![listed]));
        let books = [0, 1].map(|outcome| market.snapshot(outcome));
        market.frames.push((FIRST.plus(MILLISECOND), books.into()));
        market.touched.clear();
        market
    }

    fn draw(&mut self, low: u64, high: u64) -> u64 {
        let draw = self.chance.draw(self.draws);
        self.draws += 1;
        between(draw, low, high)
    }

    fn best(&self, side: usize) -> u16 {
        let best = if side == BIDS { self.sides[BIDS].last_key_value() } else { self.sides[ASKS].first_key_value() };
        *best.expect("a side is never empty").0
    }

    fn worst(&self, side: usize) -> u16 {
        let worst = if side == BIDS { self.sides[BIDS].first_key_value() } else { self.sides[ASKS].last_key_value() };
        *worst.expect("a side is never empty").0
    }

    /// The tick that is this many ticks further from the other side.
    fn away(side: usize, tick: u16, ticks: u16) -> u16 {
        if side == BIDS { tick.saturating_sub(ticks).max(1) } else { (tick + ticks).min(99) }
    }

    /// One event: of the compared orders if one is due, else of other traders.
    fn step(&mut self) {
        self.now = self.now.plus(self.draw(100, 900) * MILLISECOND);
        if !self.place_or_cancel() {
            match self.draw(0, 99) {
                0..70 => self.add(),
                70..85 => self.cancel(),
                _ => self.trade(),
            }
        }
        for side in [BIDS, ASKS] {
            for _ in self.sides[side].len()..LEVELS_MIN {
                let tick = Market::away(side, self.worst(side), 1);
                let shares = self.draw(40, 160);
                self.arrive(side, tick, Resting { is_own: false, shares });
            }
        }
        self.show();
    }

    fn arrive(&mut self, side: usize, tick: u16, resting: Resting) {
        self.sides[side].entry(tick).or_default().push_back(resting);
        self.touched.insert((side, tick));
    }

    fn add(&mut self) {
        let side = self.draw(0, 1) as usize;
        let (best, other) = (self.best(side), self.best(1 - side));
        let between = best.abs_diff(other).saturating_sub(1);
        let tick = match self.draw(0, 99) {
            // The wider the spread, the more often there.
            chance if between > 0 && chance < 85.min(10 + 10 * u64::from(between)) => Market::away(1 - side, best, 1),
            0..60 => best,
            60..85 => Market::away(side, best, 1),
            _ => Market::away(side, best, 2),
        };
        let shares = self.draw(5, 60);
        match self.shown(side, tick) < CROWDED {
            true => self.arrive(side, tick, Resting { is_own: false, shares }),
            // There are others enough: one of them leaves.
            false => self.leave(side, tick),
        }
    }

    fn cancel(&mut self) {
        let (side, depth) = (self.draw(0, 1) as usize, self.draw(0, 3) as usize);
        let ticks: Vec<u16> = self.sides[side].keys().copied().collect();
        let place = if side == BIDS { ticks.len().checked_sub(depth + 1) } else { Some(depth) };
        if let Some(tick) = place.and_then(|place| ticks.get(place)).filter(|_| ticks.len() > 1) {
            self.leave(side, *tick);
        }
    }

    /// One of the others in a level is cancelled, wherever it waits.
    fn leave(&mut self, side: usize, tick: u16) {
        let last = self.sides[side].get(&tick).map_or(0, VecDeque::len).saturating_sub(1);
        let number = self.draw(0, last as u64) as usize;
        let resting = self.sides[side].get(&tick).and_then(|queue| queue.get(number));
        if resting.is_some_and(|resting| !resting.is_own) {
            self.remove(side, tick, number);
        }
    }

    fn remove(&mut self, side: usize, tick: u16, number: usize) {
        if let Some(queue) = self.sides[side].get_mut(&tick) {
            queue.remove(number);
            if queue.is_empty() {
                self.sides[side].remove(&tick);
            }
            self.touched.insert((side, tick));
        }
    }

    /// A taker, who takes at most all but the last level.
    fn trade(&mut self) {
        // A price that is drawn to its middle would say how orders of another hour fill.
        let sells = match self.best(BIDS) {
            ..LOWEST => 35,
            LOWEST..HIGHEST => 50,
            _ => 65,
        };
        let side = if self.draw(0, 99) < sells { BIDS } else { ASKS };
        let mut left = if self.draw(0, 9) == 0 { self.draw(200, 450) } else { self.draw(10, 90) };
        while left > 0 && self.sides[side].len() > 1 {
            let tick = self.best(side);
            left = self.take(side, tick, left);
        }
    }

    /// Takes from the front of a level; returns what is left to take.
    fn take(&mut self, side: usize, tick: u16, mut left: u64) -> u64 {
        // Before the compared order, of it, and after it.
        let mut parts = [0_u64; 3];
        let mut part = 0;
        if let Some(queue) = self.sides[side].get_mut(&tick) {
            while let Some(front) = queue.front_mut().filter(|_| left > 0) {
                part = match (front.is_own, part) {
                    (true, _) => 1,
                    (false, 0) => 0,
                    (false, _) => 2,
                };
                let taken = front.shares.min(left);
                front.shares -= taken;
                left -= taken;
                parts[part] += taken;
                if front.shares == 0 {
                    queue.pop_front();
                }
            }
            if queue.is_empty() {
                self.sides[side].remove(&tick);
            }
        }
        self.touched.insert((side, tick));
        for (part, shares) in parts.into_iter().enumerate().filter(|(_, shares)| *shares > 0) {
            self.trades_count += 1;
            let id: Arc<str> = format!("0x{:064x}", self.trades_count).into();
            if part == 1 {
                self.fill(tick, shares, &id);
            }
            self.trades.push(Trade { tick, shares, taker_buys: side == ASKS, id });
        }
        left
    }

    /// A fill of the compared order. Half of them are known by the transaction, half by their terms.
    fn fill(&mut self, tick: u16, shares: u64, id: &str) {
        let order = self.orders.last_mut().expect("an order is alive");
        let hash = self.trades_count.is_multiple_of(2).then(|| id.to_owned());
        let price = if order.token == TOKENS[0] { price(tick) } else { price(tick).complement() };
        order.fills.push(LiveFill {
            id: format!("f{}", self.trades_count),
            at: self.now.plus(5 * MILLISECOND),
            price: Cash(i64::from(price.0) * 100),
            size: Qty::from_shares(shares),
            fee: Some(Cash::ZERO),
            hash,
        });
        if order.filled() == order.size {
            self.alive = None;
        }
    }

    /// The compared order that is alive ends when its time is over; later another one comes. False: neither is due.
    fn place_or_cancel(&mut self) -> bool {
        if let Some(Alive { side, tick, .. }) = self.alive.filter(|alive| alive.ends_at <= self.now) {
            let number = self.sides[side].get(&tick).and_then(|queue| queue.iter().position(|resting| resting.is_own));
            if let Some(number) = number {
                // The market needs a best price without it.
                if self.sides[side].len() == 1 && self.sides[side][&tick].len() == 1 {
                    self.arrive(side, Market::away(side, tick, 1), Resting { is_own: false, shares: 50 });
                }
                self.remove(side, tick, number);
            }
            let order = self.orders.last_mut().expect("an order is alive");
            order.cancelled_at = Some(self.now.plus(10 * MILLISECOND));
            self.alive = None;
            return true;
        }
        if self.alive.is_some() || self.now < self.next_order_at {
            return false;
        }
        let side = self.draw(0, 1) as usize;
        let tick = Market::away(side, self.best(side), u16::from(self.draw(0, 3) == 0));
        let shares = self.draw(10, 40);
        let ends_at = self.now.plus(self.draw(4_000, 24_000) * MILLISECOND);
        self.next_order_at = ends_at.plus(self.draw(8_000, 20_000) * MILLISECOND);
        self.arrive(side, tick, Resting { is_own: true, shares });
        self.alive = Some(Alive { side, tick, ends_at });
        let bought = if side == BIDS { Side::Buy } else { Side::Sell };
        // Some trade the other token: its sale at 1 − price is the same.
        let is_first = self.draw(0, 3) > 0;
        self.orders.push(LiveOrder {
            id: format!("o{}", self.orders.len() + 1),
            token: TOKENS[usize::from(!is_first)].to_owned(),
            side: if is_first { bought } else { bought.opposite() },
            kind: Kind::Gtc,
            price: if is_first { price(tick) } else { price(tick).complement() },
            size: Qty::from_shares(shares),
            // At another time it waits or is refused: one that took would say where prices were, not what it met.
            post_only: true,
            sent_at: Timestamp(self.now.0 - 30 * MILLISECOND),
            acked_at: Some(self.now.plus(20 * MILLISECOND)),
            cancelled_at: Some(ends_at),
            fills: Vec::new(),
        });
        true
    }

    fn shown(&self, side: usize, tick: u16) -> Qty {
        let queue = self.sides[side].get(&tick).into_iter().flatten();
        Qty::from_shares(queue.map(|resting| resting.shares).sum())
    }

    /// The frames of a step: the venue sends books and trades in either order.
    fn show(&mut self) {
        let later = self.now.plus(10 * MILLISECOND);
        let books_first = self.draw(0, 1) == 0;
        let (books_at, trades_at) = if books_first { (self.now, later) } else { (later, self.now) };
        let touched = std::mem::take(&mut self.touched);
        let delta = |outcome: usize| FeedUpdate::BookDelta {
            token: TOKENS[outcome].into(),
            levels: touched
                .iter()
                .map(|(side, tick)| in_book(outcome, *side, *tick, self.shown(*side, *tick)))
                .collect(),
            venue_ts: self.now,
        };
        let books = (!touched.is_empty()).then(|| (books_at, vec![delta(0), delta(1)]));
        let mut reports = Vec::new();
        for trade in std::mem::take(&mut self.trades) {
            // Most are reported for one token, some for both.
            let outcomes: &[usize] = match self.draw(0, 9) {
                0 => &[1],
                1 => &[0, 1],
                _ => &[0],
            };
            reports.extend(outcomes.iter().map(|outcome| report(*outcome, &trade, self.now)));
        }
        let trades = (!reports.is_empty()).then_some((trades_at, reports));
        let frames = if books_first { [books, trades] } else { [trades, books] };
        self.frames.extend(frames.into_iter().flatten());
    }

    fn snapshot(&self, outcome: usize) -> FeedUpdate {
        let mut sides = [Vec::new(), Vec::new()];
        for side in [BIDS, ASKS] {
            for tick in self.sides[side].keys() {
                let (of, price, size) = in_book(outcome, side, *tick, self.shown(side, *tick));
                sides[usize::from(of == BookSide::Ask)].push((price, size));
            }
        }
        let [mut bids, mut asks] = sides;
        bids.sort_by_key(|(price, _)| std::cmp::Reverse(*price));
        asks.sort_by_key(|(price, _)| *price);
        FeedUpdate::BookSnapshot { token: TOKENS[outcome].into(), bids, asks, venue_ts: self.now, hash: None }
    }
}

fn price(tick: u16) -> Price {
    Price(tick * TICK)
}

/// A level as the book of a token shows it.
fn in_book(outcome: usize, side: usize, tick: u16, size: Qty) -> (BookSide, Price, Qty) {
    let of = if (side == BIDS) == (outcome == 0) { BookSide::Bid } else { BookSide::Ask };
    (of, if outcome == 0 { price(tick) } else { price(tick).complement() }, size)
}

/// A trade as it is reported for a token.
fn report(outcome: usize, trade: &Trade, at: Timestamp) -> FeedUpdate {
    let is_first = outcome == 0;
    FeedUpdate::LastTrade {
        token: TOKENS[outcome].into(),
        price: if is_first { price(trade.tick) } else { price(trade.tick).complement() },
        size: Qty::from_shares(trade.shares),
        taker_buys: trade.taker_buys == is_first,
        venue_ts: at,
        id: Some(trade.id.clone()),
        fee_rate_bps: None,
    }
}

/// The only market of a made recording.
pub(super) fn listing() -> Listing {
    Listing {
        venue: terms::Venue::Polymarket,
        venue_market_id: "1".to_owned(),
        condition: format!("0x{}", "01".repeat(32)),
        tokens: TOKENS.map(str::to_owned),
        outcomes: ["Yes", "No"].map(str::to_owned),
        slug: "control".to_owned(),
        question: "Control?".to_owned(),
        description: None,
        image: None,
        label: None,
        category: Category::Other,
        tags: Vec::new(),
        event: None,
        tick: TickSize(TICK),
        min_order_size: None,
        neg_risk: false,
        start: None,
        end: None,
        updown: None,
        sports: false,
    }
}
