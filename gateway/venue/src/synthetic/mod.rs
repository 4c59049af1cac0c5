//! A seeded venue without external input: about two hundred markets in all categories and rolling up-or-down windows,
//! with books that look and move like recorded ones.
//!
//! Everything is a function of the seed and the time (`noise.rs`): which markets exist, when and how they end, and
//! every level of every book at every moment. So the venue stores nothing, and a restart continues the same world.
//! Memory holds only the state that was handed out.

mod books;
mod noise;
mod prices;
mod side;
mod subjects;
#[cfg(test)]
mod work;
mod world;

pub use prices::Underlying;

use super::category::Names;
use super::{BookSide, Changes, FeedUpdate, Figures, Frame, Level, Polled, Venue};
use ahash::AHashMap;
use books::Book;
use engine::amount::{Price, Qty, TickSize};
use engine::market::terms::{Asset, MarketState};
use engine::time::{DAY, HOUR, MILLISECOND, SECOND, Timestamp};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;
use world::{Key, Series, Spec, World};

/// Markets that ended less than this before the start are listed too, with their results.
const RECENT: u64 = HOUR;
/// Steps are collected for this long, so that an idle server wakes up rarely.
const GATHERED: u64 = 100 * MILLISECOND;
/// Most frames that one poll hands out.
const FRAMES_PER_POLL_MAX: usize = 4_096;
/// Interval at which the figures of a market are reported.
const FIGURES_EVERY: u64 = 300 * SECOND;
/// Steps that are later than this are skipped: after a pause the server continues with the current books. Listings and
/// results are never skipped.
const STEPS_LATE_MAX: u64 = 600 * SECOND;
/// Largest liveliness: the busiest books then take a step every 2.5 ms.
pub const LIVELINESS_MAX: u64 = 100;
/// Connection number of all markets.
const CONNECTION: u8 = 0;

/// The synthetic venue.
pub struct Synthetic {
    world: World,
    /// From the configuration: a market's tag that is among them decides its category.
    names: Names,
    now: Timestamp,
    has_begun: bool,
    markets: AHashMap<Key, Market>,
    agenda: BinaryHeap<Reverse<(Timestamp, Due)>>,
    /// Results of recalled markets, for the next poll.
    recalled: Vec<FeedUpdate>,
    updates: Vec<FeedUpdate>,
    /// The changes of the first token's levels in the current step.
    changes: Vec<(BookSide, Price, Qty)>,
}

/// An event of the agenda. Events of the same time are handled in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Resolve(Key),
    Close(Key),
    List(Series),
    Open(Key),
    Strike(Key),
    Step(Key),
}

/// A listed market that is not resolved.
struct Market {
    spec: Spec,
    condition: String,
    tokens: [Arc<str>; 2],
    /// The last reported tick.
    tick: TickSize,
    book: Book,
    figures_at: Timestamp,
}

impl Synthetic {
    /// The world of a seed, from `now` on; the first poll lists it.
    pub fn new(seed: u64, now: Timestamp, names: Names) -> Synthetic {
        Synthetic {
            world: World { seed, liveliness: 1 },
            names,
            now,
            has_begun: false,
            markets: AHashMap::new(),
            agenda: BinaryHeap::new(),
            recalled: Vec::new(),
            updates: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// The same world, with `times` as many book changes and trades; from 1 to 100.
    pub fn with_liveliness(mut self, times: u64) -> Synthetic {
        self.world.liveliness = times.clamp(1, LIVELINESS_MAX);
        self
    }

    /// The underlying of an asset in this world; its price decides the windows.
    pub fn underlying(&self, asset: Asset) -> Underlying {
        Underlying::new(self.world.seed, asset)
    }

    /// Lists the markets at `now` and those that ended shortly before, with a snapshot of every open book.
    fn begin(&mut self, frame: &mut dyn FnMut(Frame<'_>)) {
        self.has_begun = true;
        let now = self.now;
        for series in World::series() {
            for key in self.world.listed(series, now, RECENT) {
                self.list(key, now);
                self.hand_out(now, frame);
            }
            self.agenda.push(Reverse((self.world.next_listed(series, now).0, Due::List(series))));
        }
    }

    /// Lists a market in its state at `now`, and adds its events to the agenda.
    fn list(&mut self, key: Key, now: Timestamp) {
        let Some(spec) = self.world.spec(key) else { return };
        let mut listing = self.world.listing(&spec);
        if listing.updown.is_none()
            && let Some(category) = self.names.among(listing.tags.iter().map(String::as_str))
        {
            listing.category = category;
        }
        let open = spec.opens() <= now && now < spec.end;
        let at = if open { books::last_step(&spec, now) } else { now };
        let mut book = Book::default();
        if open {
            listing.tick = book.tick(&spec, at);
        }
        let state = match () {
            _ if now >= spec.end => MarketState::Closed,
            _ if open => MarketState::Active,
            _ => MarketState::Upcoming,
        };
        let mut market = Market {
            condition: listing.condition.clone(),
            tokens: listing.tokens.each_ref().map(|token| token.as_str().into()),
            tick: listing.tick,
            book,
            figures_at: now,
            spec,
        };
        self.updates.push(FeedUpdate::Listed { listing: Box::new(listing), state });
        if now >= market.spec.start {
            self.updates.extend(market.strike());
        }
        if now >= market.spec.resolved {
            return self.updates.push(market.resolved());
        }
        let due = [
            (market.spec.resolved, Due::Resolve(key)),
            (market.spec.end, Due::Close(key)),
            (market.spec.opens(), Due::Open(key)),
            (market.spec.start, Due::Strike(key)),
        ];
        self.agenda.extend(due.into_iter().filter(|(at, _)| *at > now).map(Reverse));
        if open {
            market.book.follow(&market.spec, at, |_, _| {});
            market.snapshot(at, &mut self.updates);
            market.figures(now, &mut self.updates);
            self.agenda.extend(books::next_step(&market.spec, now).map(|at| Reverse((at, Due::Step(key)))));
        }
        self.markets.insert(key, market);
    }

    /// Handles the first event of the agenda, at time `at`; `now` is the end of this poll.
    fn step(&mut self, at: Timestamp, due: Due, now: Timestamp) {
        if !matches!(due, Due::Step(_)) {
            self.agenda.pop();
        }
        match due {
            Due::List(series) => {
                let before = Timestamp(at.0 - 1);
                let (_, keys) = self.world.next_listed(series, before);
                keys.into_iter().for_each(|key| self.list(key, at));
                self.agenda.push(Reverse((self.world.next_listed(series, at).0, Due::List(series))));
            }
            Due::Open(key) => {
                let Some(market) = self.markets.get_mut(&key) else { return };
                let (condition, state) = (market.condition.clone(), MarketState::Active);
                self.updates.push(FeedUpdate::StateChanged { condition, state });
                market.open(at, &mut self.updates);
                self.agenda.extend(market.next_step(at, now).map(|at| Reverse((at, Due::Step(key)))));
            }
            Due::Strike(key) => {
                let strike = self.markets.get(&key).and_then(|market| market.strike());
                self.updates.extend(strike);
            }
            Due::Close(key) => {
                let Some(market) = self.markets.get_mut(&key) else { return };
                let (condition, state) = (market.condition.clone(), MarketState::Closed);
                self.updates.push(FeedUpdate::StateChanged { condition, state });
                market.book = Book::default();
                market.snapshot(at, &mut self.updates);
            }
            Due::Resolve(key) => self.updates.extend(self.markets.remove(&key).map(|market| market.resolved())),
            Due::Step(key) => {
                let next = self.markets.get_mut(&key).and_then(|market| {
                    market.step(at, &mut self.updates, &mut self.changes);
                    market.next_step(at, now)
                });
                // Nearly all events are steps: the next step replaces this one.
                match (self.agenda.peek_mut(), next) {
                    (Some(mut first), Some(next)) => *first = Reverse((next, Due::Step(key))),
                    (first, _) => drop(first.map(PeekMut::pop)),
                }
            }
        }
    }

    fn hand_out(&mut self, received: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) {
        if !self.updates.is_empty() {
            frame(Frame { connection: CONNECTION, received, is_answer: false, updates: &self.updates });
            self.updates.clear();
        }
    }
}

impl Market {
    /// Emits the first book.
    fn open(&mut self, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        self.retick(at, updates);
        self.book.follow(&self.spec, at, |_, _| {});
        self.snapshot(at, updates);
        self.figures(at, updates);
    }

    /// Emits the changes of the book, or a snapshot, and sometimes a trade.
    fn step(&mut self, at: Timestamp, updates: &mut Vec<FeedUpdate>, changes: &mut Vec<(BookSide, Price, Qty)>) {
        let incident = books::incident(&self.spec, at);
        let reticked = self.retick(at, updates);
        changes.clear();
        self.book.follow(&self.spec, at, |side, (price, size)| changes.push((side, price, size)));
        if reticked || incident.snapshot {
            self.snapshot(at, updates);
        } else if !changes.is_empty() {
            let first = Changes::from_slice(changes);
            let second = changes.iter().map(|(side, price, size)| (side.opposite(), price.complement(), *size));
            for (token, levels) in self.tokens.iter().zip([first, second.collect()]) {
                updates.push(FeedUpdate::BookDelta { token: token.clone(), levels, venue_ts: at });
            }
        }
        if let Some(trade) = incident.trade {
            // The asks of the second token are the bids of the first, mirrored.
            let meets_asks = trade.taker_buys != trade.second_token;
            let met = if meets_asks { self.book.asks.levels().next() } else { self.book.bids.levels().next() };
            if let Some((price, there)) = met {
                updates.push(FeedUpdate::LastTrade {
                    token: self.tokens[usize::from(trade.second_token)].clone(),
                    price: if trade.second_token { price.complement() } else { price },
                    size: trade.size.min(there),
                    taker_buys: trade.taker_buys,
                    venue_ts: at,
                    id: None,
                    fee_rate_bps: None,
                });
            }
        }
        if at.since(self.figures_at) >= FIGURES_EVERY {
            self.figures(at, updates);
        }
    }

    /// Its first step after `at` in a poll up to `now`.
    fn next_step(&self, at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        books::next_step(&self.spec, at.max(Timestamp(now.0.saturating_sub(STEPS_LATE_MAX))))
    }

    /// Updates the tick; returns whether it changed.
    fn retick(&mut self, at: Timestamp, updates: &mut Vec<FeedUpdate>) -> bool {
        let tick = self.book.tick(&self.spec, at);
        let changed = tick != self.tick;
        if changed {
            self.tick = tick;
            updates.push(FeedUpdate::TickChanged { condition: self.condition.clone(), tick });
        }
        changed
    }

    fn snapshot(&self, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let [bids, asks] = self.book.levels();
        let mirror = |side: &[Level]| side.iter().map(|(price, size)| (price.complement(), *size)).collect();
        let second = (mirror(&asks), mirror(&bids));
        for (token, (bids, asks)) in self.tokens.iter().zip([(bids, asks), second]) {
            updates.push(FeedUpdate::BookSnapshot { token: token.clone(), bids, asks, venue_ts: at, hash: None });
        }
    }

    fn figures(&mut self, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        /// Dollars traded per second in quiet and busy markets; the recorded 5-minute windows traded 80.
        const QUIET: f64 = 0.02;
        const BUSY: f64 = 80.0;
        let share = match self.spec.key {
            Key::Window { .. } => 1.0,
            Key::Plain { .. } => noise::fraction(noise::mix(self.spec.seed, 0xf19)).powi(4),
        };
        let per_second = (QUIET + (BUSY - QUIET) * share) * 1_000_000.0;
        let traded = |micros: u64| (micros as f64 / SECOND as f64 * per_second) as u64;
        let open = at.since(self.spec.opens());
        let figures = Figures {
            volume_24h: Some(traded(open.min(DAY))),
            volume_total: Some(traded(open)),
            liquidity: Some(self.book.liquidity()),
        };
        self.figures_at = at;
        updates.push(FeedUpdate::Figures { condition: self.condition.clone(), figures });
    }

    /// The threshold of a window; known from its start on.
    fn strike(&self) -> Option<FeedUpdate> {
        let dollars = self.spec.to_beat()?;
        // Two decimals, or four for cheap assets.
        let decimals = if dollars < 100.0 { 4 } else { 2 };
        let text = format!("{dollars:.decimals$}");
        let condition = self.condition.clone();
        Some(FeedUpdate::Strike { condition, strike: Some(text.clone()), price_to_beat: Some(text) })
    }

    fn resolved(&self) -> FeedUpdate {
        FeedUpdate::Resolved {
            condition: self.condition.clone(),
            resolution: self.spec.resolution(),
            venue_ts: self.spec.resolved,
        }
    }
}

impl Venue for Synthetic {
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled {
        if !self.has_begun {
            self.begin(frame);
        }
        let due = server_now.min(until).max(self.now);
        if !self.recalled.is_empty() {
            self.updates.append(&mut self.recalled);
            self.hand_out(self.now, frame);
        }
        let mut handed = 0;
        while let Some(Reverse((at, due_event))) = self.agenda.peek().copied()
            && at <= due
        {
            if handed == FRAMES_PER_POLL_MAX {
                return Polled { venue_now: self.now, wake_at: Some(server_now) };
            }
            self.now = self.now.max(at);
            self.step(at, due_event, due);
            self.hand_out(self.now, frame);
            handed += 1;
        }
        self.now = due;
        let next = self.agenda.peek().map_or(until, |Reverse((at, _))| *at);
        let wake_at = if due < server_now { server_now } else { next.max(server_now.plus(GATHERED)).min(until) };
        Polled { venue_now: due, wake_at: Some(wake_at.max(server_now)) }
    }

    fn drives_clock(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        format!("synthetic venue, seed {}", self.world.seed)
    }

    fn recall(&mut self, market: &engine::market::Market) {
        let listing = &market.listing;
        let Some(spec) = listing.venue_market_id.parse().ok().and_then(|key| self.world.spec(key)) else { return };
        let ours = self.world.listing(&spec).condition == listing.condition;
        // Markets that ended recently are listed with their results by the first poll.
        if ours && spec.end.plus(RECENT) <= self.now {
            let condition = listing.condition.clone();
            self.recalled.push(FeedUpdate::Resolved {
                condition,
                resolution: spec.resolution(),
                venue_ts: spec.resolved,
            });
        }
    }
}

#[cfg(test)]
mod tests;
