//! The venue of a world and its feed: facts go through the log before they are published, books go directly to the
//! ladders; the model receives the same.

use crate::model::Market;
use crate::model::book::Levels;
use crate::workload::Feed;
use crate::world::World;
use engine::amount::{Cash, Price, Qty, TickSize};
use engine::book::{BookSide, LastTrade, Stated};
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::market::mutation::MarketMutation;
use engine::market::terms::{Category, Listing, MarketState, Resolution, Venue};
use engine::order::Side;
use engine::print::Print;
use engine::time::Timestamp;
use tests::chance::Chance;

const DAY: u64 = 86_400_000_000;
const TICKS: [u16; 5] = [100, 10, 100, 1, 1_000];

/// A market by its number: the same in every world.
fn listing(number: u64, beginning: u64) -> Listing {
    Listing {
        venue: Venue::Synthetic,
        venue_market_id: number.to_string(),
        condition: format!("0x{number:064x}"),
        tokens: [format!("{}1", 100 + number), format!("{}2", 100 + number)],
        outcomes: ["Yes".to_owned(), "No".to_owned()],
        slug: format!("market-{number}"),
        question: format!("Does market {number} end well?"),
        description: None,
        image: None,
        label: None,
        category: Category::ALL[(number as usize * 5 + 9) % Category::ALL.len()],
        tags: Vec::new(),
        event: None,
        tick: TickSize(TICKS[number as usize % TICKS.len()]),
        min_order_size: None,
        neg_risk: false,
        start: None,
        end: (!number.is_multiple_of(3)).then(|| Timestamp(beginning + (1 + number % 4) * DAY)),
        updown: None,
        sports: false,
    }
}

/// engine/docs/execution.md §5, from the table of the document and not of the engine.
fn rate(category: Category) -> u32 {
    match category {
        Category::Sports => 300,
        Category::Finance | Category::Politics | Category::Mentions | Category::Tech => 400,
        Category::Crypto => 700,
        Category::Geopolitics => 0,
        Category::Economics | Category::Culture | Category::Weather | Category::Other | Category::Unknown => 500,
    }
}

/// The middle of a token's prices.
pub fn middle(token: u32) -> u16 {
    let middle = 1_500 + (token / 2 * 617 % 7_000) as u16;
    if token.is_multiple_of(2) { middle } else { 10_000 - middle }
}

type Sides = (Levels, Levels);

/// A book around the middle of its token; now and then crossed, thin, or off the grid.
fn draw_book(token: u32, tick: u16, chance: &mut Chance) -> Sides {
    let tick = i32::from(tick);
    let middle = i32::from(middle(token)) + tick * (chance.below(7) as i32 - 3);
    let (mut bids, mut asks) = (Levels::new(), Levels::new());
    let spread = chance.below(5) as i32;
    let mut draw = |levels: &mut Levels, from: i32, towards: i32| {
        for _ in 0..chance.below(9) {
            let step = tick * chance.below(14) as i32 + if chance.percent(4) { 1 } else { 0 };
            let price = from + towards * step;
            if (1..10_000).contains(&price) {
                levels.insert(price as u16, draw_size(chance));
            }
        }
    };
    let half = tick * spread / 2;
    draw(&mut bids, (middle - half) / tick * tick, -1);
    draw(&mut asks, (middle + half) / tick * tick + if spread == 0 { 0 } else { tick }, 1);
    (bids, asks)
}

/// Shares, not always whole ones.
fn draw_size(chance: &mut Chance) -> i128 {
    let whole = 1_000_000 * (1 + chance.below(60) as i128);
    match chance.below(4) {
        0 => whole + chance.below(1_000_000) as i128,
        1 => chance.below(300) as i128 + 1,
        _ => whole,
    }
}

fn mirror(levels: &Levels) -> Levels {
    levels.iter().map(|(price, size)| (10_000 - price, *size)).collect()
}

fn rows(levels: &Levels) -> Vec<(Price, Qty)> {
    levels.iter().map(|(price, size)| (Price(*price), Qty(*size as u64))).collect()
}

impl World {
    /// One message of the venue.
    pub(crate) fn feed(&mut self, feed: &Feed) -> Result<(), String> {
        match *feed {
            Feed::Book { token, seed, pair } => self.book(token, seed, pair),
            Feed::Change { token, seed } => self.change(token, seed),
            Feed::Trade { token, seed } if self.is_published(token) => {
                let mut chance = Chance::seeded(seed);
                let span = usize::from(middle(token).min(10_000 - middle(token)));
                let price = middle(token) - (span / 2) as u16 + chance.below(span) as u16;
                let (at, size) = (Timestamp(self.now), draw_size(&mut chance));
                let taker = *chance.pick(&[Side::Buy, Side::Sell]);
                let (price_at, size_of) = (Price(price), Qty(size as u64));
                let trade = LastTrade { price: price_at, size: size_of, taker_buys: taker == Side::Buy, at };
                self.life.writer.frame(1, at, |frame| frame.trade(InstrumentId(token), trade));
                self.model.books.trade(token, price, 1, self.now);
                let instrument = InstrumentId(token);
                let print = Print { instrument, price: price_at, size: size_of, taker, taken_at: at, at };
                self.hand_print(print);
            }
            Feed::Gap { token } => {
                self.life.writer.gap(InstrumentId(token));
                // Only of a token that has a book.
                if self.model.books.tokens.contains_key(&token) || self.model.books.tokens.contains_key(&(token ^ 1)) {
                    self.model.books.tokens.entry(token).or_default().gap = true;
                }
            }
            Feed::Alive { connection } => {
                self.life.writer.alive(connection, Timestamp(self.now));
                self.model.books.alive(connection, self.now);
            }
            Feed::Outage(outage) => {
                self.life.writer.outage(outage);
                self.model.books.outage = outage;
            }
            Feed::Display { token, price } if self.is_published(token) => {
                let (instrument, mut stated) = (InstrumentId(token), Stated::default());
                stated.shown[instrument.outcome() as usize] = Some(Cash(i64::from(price) * 100));
                self.life.writer.stated(instrument.market(), &stated);
                self.model.books.tokens.entry(token).or_default().display = Some(price);
            }
            Feed::Trade { .. } | Feed::Display { .. } => {}
            _ => self.decide(feed),
        }
        self.advance();
        self.flush()
    }

    fn is_published(&self, token: u32) -> bool {
        (token as usize / 2) < self.model.markets.len()
    }

    fn book(&mut self, token: u32, seed: u64, pair: bool) {
        if !self.is_published(token) {
            return;
        }
        let mut chance = Chance::seeded(seed);
        let tick = self.model.markets[token as usize / 2].tick;
        let (bids, asks) = draw_book(token, tick, &mut chance);
        let connection = chance.below(3) as u8;
        let at = Timestamp(self.now);
        let (own_bids, own_asks) = (rows(&bids), rows(&asks));
        let (other_bids, other_asks) = (mirror(&asks), mirror(&bids));
        self.life.writer.frame(connection, at, |frame| {
            frame.snapshot(InstrumentId(token), &own_bids, &own_asks, at, None);
            if pair {
                frame.snapshot(InstrumentId(token ^ 1), &rows(&other_bids), &rows(&other_asks), at, None);
            }
        });
        self.model.books.snapshot(token, bids, asks, connection, self.now);
        if pair {
            self.model.books.snapshot(token ^ 1, other_bids, other_asks, connection, self.now);
        }
    }

    fn change(&mut self, token: u32, seed: u64) {
        if !self.is_published(token) {
            return;
        }
        let mut chance = Chance::seeded(seed);
        let tick = self.model.markets[token as usize / 2].tick;
        let connection = chance.below(3) as u8;
        let mut levels = Vec::new();
        for _ in 0..1 + chance.below(4) {
            let (bids, asks) = draw_book(token, tick, &mut chance);
            let known = self.model.books.tokens.get(&token).cloned().unwrap_or_default();
            let gone = chance.percent(30);
            let side = *chance.pick(&[BookSide::Bid, BookSide::Ask]);
            let (drawn, there) = if side == BookSide::Bid { (bids, known.bids) } else { (asks, known.asks) };
            // An existing level, or a new one.
            let from = if gone || chance.percent(40) { there } else { drawn };
            if let Some(price) = (!from.is_empty()).then(|| *chance.pick(&from.keys().copied().collect::<Vec<u16>>())) {
                levels.push((side, price, if gone { 0 } else { draw_size(&mut chance) }));
            }
        }
        if levels.is_empty() {
            return;
        }
        let at = Timestamp(self.now);
        let written: Vec<(BookSide, Price, Qty)> =
            levels.iter().map(|(side, price, size)| (*side, Price(*price), Qty(*size as u64))).collect();
        self.life.writer.frame(connection, at, |frame| frame.delta(InstrumentId(token), &written, at));
        for (side, price, size) in levels {
            self.model.books.level(token, side, price, size, connection, self.now);
        }
    }

    /// A state of a market that the venue reports becomes a fact if it is new.
    fn decide(&mut self, feed: &Feed) {
        let (now, at) = (self.now, Timestamp(self.now));
        let known = self.life.markets.len();
        let facts: Vec<MarketMutation> = match *feed {
            Feed::List(number) => {
                let listing = listing(number, self.beginning());
                self.list(&listing);
                self.life.markets.list(&listing, MarketState::Active, at, at)
            }
            Feed::Tick { market, tick } => {
                self.change_open(market, |market| market.tick = tick);
                self.life.markets.tick(MarketId(market), TickSize(tick), at)
            }
            Feed::State { market, state } => {
                self.change_open(market, |market| market.state = state);
                self.life.markets.state(MarketId(market), state, at).into_iter().collect()
            }
            Feed::End { market, in_us } => {
                let end = now + in_us;
                self.change_open(market, |market| (market.end, market.ended) = (Some(end), end <= now));
                self.life.markets.end(MarketId(market), Some(Timestamp(end)), at, at)
            }
            Feed::Resolve { market, how } => {
                let ways = [Resolution::Winner(Outcome::First), Resolution::Winner(Outcome::Second), Resolution::Split];
                let resolution = ways[usize::from(how)];
                self.change_open(market, |market| {
                    (market.state, market.resolution) = (MarketState::Resolved, Some(resolution));
                });
                self.life.markets.resolve(MarketId(market), resolution, at).into_iter().collect()
            }
            _ => unreachable!("what is not a fact was taken before"),
        };
        assert!(known <= self.life.markets.len(), "markets are never taken back");
        self.take_facts(facts);
    }

    fn list(&mut self, listing: &Listing) {
        let (now, end) = (self.now, listing.end.map(|end| end.0));
        let ended = end.is_some_and(|end| end <= now);
        match self.life.markets.by_condition(&listing.condition) {
            Some(market) => self.change_open(market.0, |market| {
                (market.tick, market.end, market.ended) = (listing.tick.0, end, ended);
                market.state = MarketState::Active;
            }),
            None => self.decided.push(Market {
                tick: listing.tick.0,
                end,
                state: MarketState::Active,
                ended,
                resolution: None,
                settled: false,
                rate: rate(listing.category),
            }),
        }
    }

    /// A resolved market never changes again.
    fn change_open(&mut self, market: u32, change: impl FnOnce(&mut Market)) {
        if let Some(market) = self.decided.get_mut(market as usize).filter(|market| market.resolution.is_none()) {
            change(market);
        }
    }

    fn take_facts(&mut self, facts: Vec<MarketMutation>) {
        facts.iter().for_each(|fact| self.life.markets.apply(fact));
        if !facts.is_empty() {
            self.pending.push((facts, self.decided.clone()));
        }
    }

    /// Time reaches now: end dates pass.
    pub(crate) fn advance(&mut self) {
        let now = self.now;
        for market in self.decided.iter_mut().filter(|market| market.resolution.is_none()) {
            market.ended |= market.end.is_some_and(|end| end <= now);
        }
        let facts = self.life.markets.end_passed(Timestamp(now), Timestamp(now));
        self.take_facts(facts);
    }

    /// Every shard has paid a market out.
    pub(crate) fn settled(&mut self, market: MarketId) {
        self.decided[market.0 as usize].settled = true;
        let fact = self.life.markets.settle(market, Timestamp(self.now));
        self.take_facts(fact.into_iter().collect());
    }

    /// After a start the venue sends its books again, not all at the same time.
    pub(crate) fn bring_books_anew(&mut self) {
        for token in 0..2 * self.model.markets.len() as u32 {
            let seed = self.now ^ u64::from(token) << 50;
            let mut chance = Chance::seeded(seed);
            if chance.percent(75) {
                self.book(token, seed, chance.percent(15));
            }
        }
    }
}
