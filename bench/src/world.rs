//! A small world on one thread: markets with constant books, one shard, users with money, and a seeded stream of
//! orders. Time is a number that the caller advances, so two runs are the same to the last byte.

use crate::chance::Chance;
use engine::amount::{Cash, Price, Qty, TickSize};
use engine::book::{BookSide, BookWriter, Books, publish};
use engine::command::{
    Answer, Command, CreateUser, Envelope, IdSource, IssueKey, Placement, PlacementTerms, RequestIdentity,
    RequestedPrice, Secret, Size, Sweeps,
};
use engine::departed::Departures;
use engine::directory::Directory;
use engine::id::{InstrumentId, KeyId, MARKETS, MarketId, OrderId, Outcome, UserId};
use engine::look_up::LookUp;
use engine::look_up::filters::Filters;
use engine::market::Markets;
use engine::market::catalog::Catalog;
use engine::market::mutation::MarketMutation;
use engine::market::terms::{Category, Listing, MarketState, Venue};
use engine::mutation::codec;
use engine::notice::Notice;
use engine::order::{EntryRoute, OrderType, Side, TimeInForce};
use engine::ring::Ring;
use engine::rules::Rules;
use engine::shard::{Outbox, Room, Shard, digest};
use engine::time::{SECOND, Timestamp};
use engine::user::{Tier, Users};
use std::sync::Arc;

/// 2026-10-02T09:15:00Z.
const START: Timestamp = Timestamp(1_790_932_500 * SECOND);
/// Best bid and best ask in cents; nine more levels on each side.
pub const BEST_BID: u16 = 49;
const BEST_ASK: u16 = 51;
const LEVELS: u16 = 10;
/// Shares of each level: a typical take reaches the second one.
pub const LEVEL_SHARES: u64 = 40;
const SHARES_PER_ORDER: u64 = 5;
const SHARES_PER_TAKE: u64 = 45;

/// A user who trades.
#[derive(Clone, Copy, Debug)]
pub struct Trader {
    pub user: UserId,
    pub key: KeyId,
}

impl Trader {
    /// A placeholder for a user that does not exist yet.
    pub const NOBODY: Trader = Trader { user: UserId(0), key: KeyId(0) };
}

/// One action of a trader.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A bid below the book.
    Rest { trader: usize, market: u32, cents: u16 },
    /// Of the order of that step.
    Cancel { trader: usize, of: usize },
    /// A limit order that is filled immediately, over two levels.
    Take { trader: usize, market: u32, side: Side },
}

/// Half of the steps rest, four in ten cancel a random earlier order, one in ten takes: a buy, and the next time the
/// sale of the same shares.
pub fn steps(count: usize, traders: usize, markets: u32) -> Vec<Step> {
    let mut chance = Chance::seeded(17);
    let (mut open, mut bought) = (Vec::<(usize, usize)>::new(), None);
    let mut made = Vec::with_capacity(count);
    for index in 0..count {
        let trader = chance.below(traders as u64) as usize;
        let market = chance.below(markets.into()) as u32;
        made.push(match chance.below(10) {
            0 => match bought.take() {
                Some((trader, market)) => Step::Take { trader, market, side: Side::Sell },
                None => {
                    bought = Some((trader, market));
                    Step::Take { trader, market, side: Side::Buy }
                }
            },
            1..=4 if !open.is_empty() => {
                let (trader, of) = open.swap_remove(chance.below(open.len() as u64) as usize);
                Step::Cancel { trader, of }
            }
            _ => {
                open.push((trader, index));
                Step::Rest { trader, market, cents: 1 + chance.below(u64::from(BEST_BID) - 1) as u16 }
            }
        });
    }
    made
}

/// The shard's output: records go to `record`, answers are counted and dropped.
pub struct Out<F> {
    pub record: F,
    /// By step: the id of its order.
    pub orders: Vec<OrderId>,
    pub refused: u64,
    /// The answer to the last of them.
    pub refusal: Option<Answer>,
    /// Completed matching cycles.
    pub cycles: u64,
    pub record_bytes: u64,
    /// Commands that need rows which have left memory, by step. Later commands of their users wait.
    pub look_ups: Vec<(usize, LookUp)>,
    key: Option<KeyId>,
}

impl<F: FnMut(UserId, Timestamp, &[u8])> Out<F> {
    pub fn new(record: F) -> Out<F> {
        Out {
            record,
            orders: Vec::new(),
            refused: 0,
            refusal: None,
            cycles: 0,
            record_bytes: 0,
            look_ups: Vec::new(),
            key: None,
        }
    }
}

impl<F: FnMut(UserId, Timestamp, &[u8])> Outbox<usize> for Out<F> {
    fn room(&self) -> Room {
        Room::Ample
    }

    fn record(&mut self, owner: UserId, now: Timestamp, payload: &[u8]) {
        self.record_bytes += payload.len() as u64;
        (self.record)(owner, now, payload);
    }

    fn notice(&mut self, _: Notice) {}

    fn answer(&mut self, step: usize, answer: Answer) {
        match &answer {
            Answer::Order(view) => {
                if let Some(order) = self.orders.get_mut(step) {
                    *order = view.order.id;
                }
            }
            Answer::Key(view) => self.key = Some(view.id),
            Answer::Created(_) | Answer::Done => {}
            Answer::Cycled { .. } => self.cycles += 1,
            Answer::LookUp(look_up) => self.look_ups.push((step, LookUp::clone(look_up))),
            _ => {
                self.refused += 1;
                self.refusal = Some(answer);
            }
        }
    }
}

/// The world.
pub struct World {
    shard: Shard<usize>,
    /// Nothing is queued: a turn of the shard only continues a command that is larger than a turn.
    nothing: Ring<Envelope<usize>>,
    markets: Markets,
    pub traders: Vec<Trader>,
    pub now: Timestamp,
    writer: BookWriter,
    books: Vec<Book>,
}

/// The venue's constant book of one outcome, best first.
pub struct Book {
    pub outcome: Outcome,
    pub bids: Vec<(Price, Qty)>,
    pub asks: Vec<(Price, Qty)>,
}

/// A trader's request for an order: a limit order that rests or fills.
pub struct Terms {
    pub trader: usize,
    pub instrument: InstrumentId,
    pub side: Side,
    pub price: Price,
    pub shares: u64,
    pub request: Option<RequestIdentity>,
}

impl World {
    /// `markets` markets with constant books. `record` receives the records of a log.
    pub fn new(markets_count: u32, record: &mut impl FnMut(UserId, Timestamp, &[u8])) -> World {
        let size = Qty::from_shares(LEVEL_SHARES);
        let book = Book {
            outcome: Outcome::First,
            bids: (0..LEVELS).map(|level| (Price(100 * (BEST_BID - level)), size)).collect(),
            asks: (0..LEVELS).map(|level| (Price(100 * (BEST_ASK + level)), size)).collect(),
        };
        World::with_books(markets_count, TickSize(100), vec![book], record)
    }

    /// The same with these books in each market.
    pub fn with_books(
        markets_count: u32,
        tick: TickSize,
        shown: Vec<Book>,
        record: &mut impl FnMut(UserId, Timestamp, &[u8]),
    ) -> World {
        let (books, catalog) = (Arc::new(Books::new()), Arc::new(Catalog::new()));
        let mut writer = books.writer().expect("the first writer");
        let mut markets = Markets::new();
        for number in 0..markets_count {
            let facts = markets.list(&listing(number, tick), MarketState::Active, START, START);
            let mut payload = Vec::new();
            codec::encode::<MarketMutation>(codec::VERSION, &facts, &mut payload);
            record(MARKETS, START, &payload);
            for fact in &facts {
                markets.apply(fact);
                publish(fact, &catalog, &mut writer);
            }
        }
        let (rules, directory) = (Arc::new(Rules::default()), Arc::new(Directory::new()));
        let shard = Shard::new(0, 1, Users::default(), rules, books, catalog, directory);
        let nothing = Ring::new(1);
        let mut world = World { shard, nothing, markets, traders: Vec::new(), now: START, writer, books: shown };
        for number in 0..markets_count {
            world.show_books(MarketId(number));
        }
        world
    }

    /// Replaces the books of a market, as a venue does: levels that orders have taken are full again.
    pub fn show_books(&mut self, market: MarketId) {
        let now = self.now;
        for Book { outcome, bids, asks } in &self.books {
            let instrument = market.instrument(*outcome);
            self.writer.frame(0, now, |frame| frame.snapshot(instrument, bids, asks, now, None));
        }
    }

    /// Changes the size of one bid of the first outcome of the first market, as a venue does.
    pub fn show_bid(&mut self, cents: u16, shares: u64) {
        let (now, instrument) = (self.now, MarketId(0).instrument(Outcome::First));
        let level = (BookSide::Bid, Price(100 * cents), Qty::from_shares(shares));
        self.writer.frame(0, now, |frame| frame.delta(instrument, &[level], now));
    }

    /// One more user, with a key, the highest tier and ten million dollars.
    pub fn add_trader<F: FnMut(UserId, Timestamp, &[u8])>(&mut self, secret: Secret, out: &mut Out<F>) -> Trader {
        let user = UserId(self.traders.len() as u64 + 1);
        let create = CreateUser {
            sub: None,
            email: None,
            grant: Some(Tier::Enterprise),
            api_balance: Some(Cash::from_dollars(10_000_000)),
        };
        let issue = IssueKey { secret, name: None, tier: None, permissions: None, bootstrap: true, by: None };
        for command in [Command::CreateUser(create), Command::IssueKey(issue)] {
            self.take(Envelope { owner: user, command, received_at: self.now, reply: usize::MAX }, out);
        }
        let trader = Trader { user, key: out.key.take().expect("a new user gets its key") };
        self.traders.push(trader);
        trader
    }

    /// Users of a stream of orders, with secrets that are the same in each run.
    pub fn add_traders<F: FnMut(UserId, Timestamp, &[u8])>(&mut self, count: usize, out: &mut Out<F>) {
        for number in 0..count {
            // Spread like real hashes: the directory uses them unchanged.
            let mut chance = Chance::seeded(number as u64);
            let mut hash = [0; 32];
            hash.chunks_mut(8).for_each(|part| part.copy_from_slice(&chance.next().to_le_bytes()));
            let alias_hash = hash.map(|byte| !byte);
            self.add_trader(Secret { hash, alias_hash, prefix: format!("bench_{number:010}") }, out);
        }
    }

    /// The command of one step; `orders` has the ids of the earlier ones.
    pub fn envelope(&self, index: usize, step: Step, orders: &[OrderId]) -> Envelope<usize> {
        let (trader, command) = match step {
            Step::Rest { trader, market, cents } => {
                (trader, self.placement(trader, market, Side::Buy, cents, SHARES_PER_ORDER))
            }
            Step::Take { trader, market, side } => {
                let worst = if side == Side::Buy { BEST_ASK + LEVELS - 1 } else { BEST_BID + 1 - LEVELS };
                (trader, self.placement(trader, market, side, worst, SHARES_PER_TAKE))
            }
            Step::Cancel { trader, of } => (trader, Command::Cancel { order: orders[of] }),
        };
        Envelope { owner: self.traders[trader].user, command, received_at: self.now, reply: index }
    }

    /// A bid of a trader with a client id.
    pub fn named_envelope(&self, index: usize, step: Step, client_order_id: String) -> Envelope<usize> {
        let mut envelope = self.envelope(index, step, &[]);
        if let Command::Place(placement) = &mut envelope.command {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&(client_order_id.len() as u64).to_le_bytes());
            placement.request = Some(RequestIdentity { client_order_id, digest, source: IdSource::Body });
        }
        envelope
    }

    fn placement(&self, trader: usize, market: u32, side: Side, cents: u16, shares: u64) -> Command {
        let instrument: InstrumentId = MarketId(market).instrument(Outcome::First);
        self.order(Terms { trader, instrument, side, price: Price(100 * cents), shares, request: None })
    }

    /// The command of a limit order.
    pub fn order(&self, terms: Terms) -> Command {
        let key = self.traders[terms.trader].key;
        let placed = PlacementTerms {
            wallet: None,
            instrument: Some(terms.instrument),
            side: terms.side,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Gtc,
            size: Size::Shares { qty: Qty::from_shares(terms.shares), rounded_from: None },
            price: RequestedPrice::At(terms.price),
            expiration: None,
            post_only: false,
        };
        let placement = Placement::new(key, Tier::Enterprise, EntryRoute::Native, Ok(placed));
        Command::Place(Box::new(Placement { request: terms.request, ..placement }))
    }

    /// Runs one command; the clock advances by a microsecond.
    #[inline]
    pub fn take<F: FnMut(UserId, Timestamp, &[u8])>(&mut self, envelope: Envelope<usize>, out: &mut Out<F>) {
        self.now = self.now.plus(1);
        self.shard.take(envelope, self.now, out);
    }

    /// Runs a matching cycle to its end, as the feed requests it: resting orders are matched with the changed books.
    pub fn cycle<F: FnMut(UserId, Timestamp, &[u8])>(&mut self, out: &mut Out<F>) {
        let command = Command::Cycle { venue_now: self.now, sweeps: Sweeps::All };
        self.take(Envelope { owner: MARKETS, command, received_at: self.now, reply: usize::MAX }, out);
        while self.shard.has_work() {
            self.shard.turn(&self.nothing, self.now, out);
        }
    }

    /// Asks these filters about names that are not in memory.
    pub fn filter_with(&mut self, filters: Arc<dyn Filters>) {
        self.shard.filter_with(filters);
    }

    /// Drops rows that are in a history store.
    pub fn depart<F: FnMut(UserId, Timestamp, &[u8])>(&mut self, departures: Arc<Departures>, out: &mut Out<F>) {
        let command = Command::Depart(departures);
        self.take(Envelope { owner: MARKETS, command, received_at: self.now, reply: usize::MAX }, out);
        self.go_on(out);
    }

    /// Continues what waits and what is larger than a turn.
    pub fn go_on<F: FnMut(UserId, Timestamp, &[u8])>(&mut self, out: &mut Out<F>) {
        while self.shard.turn(&self.nothing, self.now, out) {}
    }

    /// Markets and users.
    pub fn state(&self) -> (&Markets, &Users) {
        (&self.markets, self.shard.users())
    }

    /// Runs all commands, passed through a ring as from another thread; the clock advances by a microsecond a turn.
    pub fn turn<F: FnMut(UserId, Timestamp, &[u8])>(
        &mut self,
        ring: &Ring<Envelope<usize>>,
        envelopes: Vec<Envelope<usize>>,
        out: &mut Out<F>,
    ) {
        let mut envelopes = envelopes.into_iter().peekable();
        while envelopes.peek().is_some() {
            let mut pushed = 0;
            while pushed < ring.slots()
                && let Some(envelope) = envelopes.next()
            {
                ring.push(envelope).expect("there is room for the counted commands");
                pushed += 1;
            }
            self.now = self.now.plus(1);
            while self.shard.turn(ring, self.now, out) {}
        }
    }

    /// Digest of the whole state.
    pub fn digest(&self) -> [u8; 32] {
        digest::digest(&self.markets, &[self.shard.users()])
    }

    /// Fills of all users.
    pub fn fills_count(&self) -> usize {
        self.shard.users().iter().map(|user| user.fills().len()).sum()
    }
}

/// A market without a venue; only its number matters.
pub fn listing(number: u32, tick: TickSize) -> Listing {
    Listing {
        venue: Venue::Synthetic,
        venue_market_id: number.to_string(),
        // Unlike the number of any recording or pulse, which may exist beside it.
        condition: format!("0xbe{number:062x}"),
        tokens: [format!("{number}01"), format!("{number}02")],
        outcomes: ["Yes".to_owned(), "No".to_owned()],
        slug: format!("market-{number}"),
        question: format!("Market {number}?"),
        description: None,
        image: None,
        label: None,
        category: Category::Politics,
        tags: Vec::new(),
        event: None,
        tick,
        min_order_size: None,
        neg_risk: false,
        start: None,
        end: None,
        updown: None,
        sports: false,
    }
}
