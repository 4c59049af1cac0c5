//! One fill model: a shard with one user, who places the compared orders under that model.
//!
//! A SELL is placed as a BUY of the complement at 1 − price: it meets the same levels and the same trades, and needs no
//! shares. Its fills are turned back into sales of the token.

use super::Model;
use super::orders::{Kind, LiveOrder};
use ahash::AHashMap;
use edge::http::code::Code;
use engine::amount::{Cash, Qty};
use engine::book::Books;
use engine::command::{Answer, Command, CreateUser, Envelope, Placement, PlacementTerms, RequestedPrice, Size, Sweeps};
use engine::directory::Directory;
use engine::format::Formats;
use engine::id::{InstrumentId, KeyId, MARKETS, MarketId, OrderId, UserId};
use engine::market::catalog::Catalog;
use engine::mutation::{Mutation, codec};
use engine::notice::Notice;
use engine::order::{EntryRoute, Liquidity, OrderType, Side, TimeInForce};
use engine::print::PrintLane;
use engine::realism::{RealismSet, RealismSets};
use engine::ring::Ring;
use engine::rules::{CASH_MAX, Rules, SHARES_PER_ORDER_CEILING};
use engine::shard::{Outbox, Room, Shard};
use engine::time::Timestamp;
use engine::user::{Tier, Users};
use std::sync::Arc;

/// The user of a lane.
const OWNER: UserId = UserId(1);
/// The set of the lane's only model.
const SET: &str = "compared";

/// A fill under a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFill {
    pub at: Timestamp,
    pub size: Qty,
    /// What was paid or received, without the fee.
    pub notional: Cash,
    pub fee: Cash,
    pub is_maker: bool,
}

/// What became of an order under a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelOrder {
    /// The code of the refusal, if it was refused or killed.
    pub refused: Option<&'static str>,
    /// Oldest first.
    pub fills: Vec<ModelFill>,
}

/// Keeps answers and the facts about fills.
#[derive(Default)]
struct Out {
    answers: Vec<(u64, Answer)>,
    asked: u64,
    filled: Vec<(OrderId, ModelFill)>,
}

impl Outbox<u64> for Out {
    fn room(&self) -> Room {
        Room::Ample
    }

    fn record(&mut self, _owner: UserId, _now: Timestamp, payload: &[u8]) {
        let read = codec::each::<Mutation>(codec::VERSION, payload, |fact| {
            if let Mutation::OrderFilled(fact) = fact {
                let (size, notional, fee) = (fact.qty, fact.notional, fact.fee);
                let is_maker = fact.liquidity == Liquidity::Maker;
                self.filled.push((fact.order, ModelFill { at: fact.at, size, notional, fee, is_maker }));
            }
        });
        assert!(read.is_ok(), "a shard writes records that can be read: {read:?}");
    }

    fn notice(&mut self, _notice: Notice) {}

    fn answer(&mut self, reply: u64, answer: Answer) {
        self.answers.push((reply, answer));
    }
}

/// A fill model and what its orders did.
pub(super) struct Lane {
    shard: Shard<u64>,
    inbox: Ring<Envelope<u64>>,
    out: Out,
    prints: Arc<PrintLane>,
    /// Orders of the file by their ids here.
    numbers: AHashMap<OrderId, usize>,
    /// Ids here by orders of the file.
    placed: AHashMap<usize, OrderId>,
    pub orders: Vec<ModelOrder>,
}

impl Lane {
    /// A lane without orders, whose user has more cash than these can use. `rules` are those of the server; what a live
    /// venue has accepted is not refused for its size.
    pub fn new(
        model: &Model,
        rules: &Rules,
        books: Arc<Books>,
        catalog: Arc<Catalog>,
        orders_count: usize,
        now: Timestamp,
    ) -> Lane {
        let mut sets = RealismSets::default();
        let is_chosen = sets.add(RealismSet { name: SET.into(), fill: model.fill }) && sets.choose_by_default(SET);
        assert!(is_chosen, "terms within their bounds: {:?}", model.fill);
        let mut rules = Rules { realism: sets, formats: Formats::Newest, ..rules.clone() };
        rules.max_shares_per_order = SHARES_PER_ORDER_CEILING;
        rules.flags.min_order_size_enforced = false;
        rules.flags.post_only_enforced = true;
        let shard = Shard::new(0, 1, Users::default(), Arc::new(rules), books, catalog, Arc::new(Directory::default()));
        let prints = shard.print_lane();
        let mut lane = Lane {
            shard,
            inbox: Ring::new(1),
            out: Out::default(),
            prints,
            numbers: AHashMap::new(),
            placed: AHashMap::new(),
            orders: vec![ModelOrder::default(); orders_count],
        };
        // An enterprise account has no daily limit of orders.
        let api_balance = Some(Cash(CASH_MAX.0 / 2));
        let user = CreateUser { sub: None, email: None, grant: Some(Tier::Enterprise), api_balance };
        lane.ask(OWNER, Command::CreateUser(user), now);
        lane
    }

    /// Where trades and changes of levels are handed over.
    pub fn prints(&self) -> &PrintLane {
        &self.prints
    }

    /// Whether an order rests.
    pub fn has_open(&self) -> bool {
        self.shard.users().get(OWNER).is_some_and(|user| user.open_orders_count() > 0)
    }

    /// Places an order of the file, of this token.
    pub fn enter(&mut self, number: usize, order: &LiveOrder, instrument: InstrumentId, now: Timestamp) {
        let (instrument, price) = match order.side {
            Side::Buy => (instrument, order.price),
            Side::Sell => (instrument.complement(), order.price.complement()),
        };
        let time_in_force = match order.kind {
            // The file says when it ends.
            Kind::Gtc | Kind::Gtd => TimeInForce::Gtc,
            Kind::Fok => TimeInForce::Fok,
            Kind::Fak => TimeInForce::Fak,
        };
        let terms = PlacementTerms {
            wallet: None,
            instrument: Some(instrument),
            side: Side::Buy,
            order_type: OrderType::Limit,
            time_in_force,
            size: Size::Shares { qty: order.size.floored_to_order_step(), rounded_from: None },
            price: RequestedPrice::At(price),
            expiration: None,
            post_only: order.post_only,
        };
        let placement = Placement::new(KeyId(0), Tier::Enterprise, EntryRoute::Native, Ok(terms));
        match self.ask(OWNER, Command::Place(Box::new(placement)), now) {
            Answer::Order(view) => {
                self.numbers.insert(view.order.id, number);
                self.placed.insert(number, view.order.id);
            }
            Answer::Killed { reject, .. } | Answer::Refused(reject) => {
                self.orders[number].refused = Some(Code::of(&reject).text());
            }
            other => unreachable!("a placement is answered by an order or a refusal, not by {other:?}"),
        }
        self.take_fills();
    }

    /// Cancels what rests of an order of the file.
    pub fn leave(&mut self, number: usize, now: Timestamp) {
        if let Some(order) = self.placed.get(&number).copied() {
            // One that has ended is refused.
            self.ask(OWNER, Command::Cancel { order }, now);
            self.take_fills();
        }
    }

    /// Matches resting orders with the trades that were handed over.
    pub fn meet_prints(&mut self, now: Timestamp) {
        self.ask(MARKETS, Command::MeetPrints, now);
        self.take_fills();
    }

    /// One matching cycle.
    pub fn cycle(&mut self, now: Timestamp) {
        self.ask(MARKETS, Command::Cycle { venue_now: now, sweeps: Sweeps::All }, now);
        self.take_fills();
    }

    /// Pays out a market, which ends its orders.
    pub fn settle(&mut self, market: MarketId, now: Timestamp) {
        self.ask(MARKETS, Command::Settle { market }, now);
        self.take_fills();
    }

    fn take_fills(&mut self) {
        for (order, fill) in self.out.filled.drain(..) {
            if let Some(number) = self.numbers.get(&order) {
                self.orders[*number].fills.push(fill);
            }
        }
    }

    /// Sends a command to the shard and runs it until it answers.
    fn ask(&mut self, owner: UserId, command: Command, now: Timestamp) -> Answer {
        let Lane { shard, inbox, out, .. } = self;
        out.asked += 1;
        let reply = out.asked;
        shard.take(Envelope { owner, command, received_at: now, reply }, now, out);
        while out.answers.last().is_none_or(|(to, _)| *to != reply) {
            shard.turn(inbox, now, out);
        }
        let (_, answer) = out.answers.pop().expect("it was there");
        answer
    }
}

/// What a sale of the token brought that was placed as a BUY of the complement.
pub(super) fn as_sale(fill: ModelFill) -> ModelFill {
    // A share of both tokens is worth a dollar.
    ModelFill { notional: Cash(fill.size.0 as i64 - fill.notional.0), ..fill }
}
