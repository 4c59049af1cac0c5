//! A history: trades, payouts and times of the test's choice, written directly into the log of a stopped server.
//!
//! So a test has three hundred thousand trades within a second, each with a known time.

use crate::server::ServerDir;
use crate::tape::Market;
use engine::amount::{Bps, Cash, Price, Qty};
use engine::fact;
use engine::id::{InstrumentId, KeyId, MarketId, OrderId, Outcome, PositionId, TradeId, UserId, WalletId};
use engine::mutation::{Mutation, codec};
use engine::order::{Liquidity, OrderTerms, PriceSource, Side};
use engine::shard::replay::{State, fold};
use engine::shard::{Outbox, Room};
use engine::time::Timestamp;
use engine::user::{Tier, User, WalletKind};
use host::clock::Clock;
use journal::commit::Durability;
use journal::commit::{CommitFigures, Committer, LogSize};
use journal::recover::{Recovery, recover};
use std::sync::Arc;
use wal::{Options, Preparer, Running, Syncer};

/// As the places of the tests configure it.
const SEGMENT_BYTES: u64 = 4 << 20;
const SPARES_COUNT: u32 = 2;

/// The log of a stopped server, open for one user's history.
pub struct History {
    state: State,
    committer: Committer,
    preparer: Preparer,
    syncer: Syncer,
    user: UserId,
    facts: Vec<Mutation>,
}

/// One fill of an order of its own.
#[derive(Clone, Copy, Debug)]
pub struct Trade {
    pub instrument: InstrumentId,
    pub wallet: WalletKind,
    pub side: Side,
    /// 10⁻⁶ share.
    pub qty: u64,
    /// 10⁻⁶ USD.
    pub notional: i64,
    pub fee: i64,
    pub at: Timestamp,
}

impl History {
    /// Opens the directory of a stopped server whose segments have the length of a [`crate::world::World`]'s.
    pub fn open(place: &ServerDir, user: i64) -> History {
        let options = Options { segment_bytes: SEGMENT_BYTES, spares_count: SPARES_COUNT, ..Options::default() };
        let Recovery { dir, log, state, .. } = recover(&place.data(), options, 1).expect("an intact directory");
        let running = dir.start(log, Clock::wall().now().0, Box::new(|_| {})).expect("a log that can be written");
        let Running { log, syncer, preparer, .. } = running;
        let size = LogSize::of(SEGMENT_BYTES, SPARES_COUNT, 1);
        let committer =
            Committer::new(log, Durability::Process, codec::VERSION, size, Arc::new(CommitFigures::default()));
        History { state, committer, preparer, syncer, user: UserId(user as u64), facts: Vec::new() }
    }

    pub fn instrument(&self, market: &Market, outcome: usize) -> InstrumentId {
        self.market(market).instrument(if outcome == 0 { Outcome::First } else { Outcome::Second })
    }

    fn market(&self, market: &Market) -> MarketId {
        self.state.markets.by_condition(&market.condition).expect("the server has listed it")
    }

    pub fn user(&self) -> &User {
        self.state.user(self.user).expect("the server has created it")
    }

    pub fn wallet(&self, kind: WalletKind) -> WalletId {
        self.user().wallet_of(kind).expect("every user has it").id
    }

    /// A plan without an end; its record is written with the next ones.
    pub fn grant(&mut self, tier: Tier) {
        let at = Clock::wall().now();
        self.happened([Mutation::GrantSet(fact::GrantSet { tier, expires_at: None, at })]);
    }

    /// From now on ids of the user's objects have this prefix, as if its numbers were used up.
    pub fn extend(&mut self, prefix: UserId) {
        let at = Clock::wall().now();
        self.happened([Mutation::NumbersExtended(fact::NumbersExtended { prefix, at })]);
    }

    /// An order that is filled immediately and completely; its record is written with the next ones.
    pub fn trade(&mut self, trade: Trade) {
        let Trade { instrument, side, qty, notional, fee, at, .. } = trade;
        let user = self.user();
        let wallet = self.wallet(trade.wallet);
        let mut next = user.next_object;
        let mut id = || {
            next += 1;
            user.object(next - 1)
        };
        let (order, fill) = (OrderId(id()), TradeId(id()));
        let held = user.open_position(wallet, instrument);
        let position = held.map_or_else(|| PositionId(id()), |held| held.id);
        let cost_out = match (side, held) {
            (Side::Sell, Some(held)) if held.qty.0 == qty => held.cost,
            (Side::Sell, Some(held)) => {
                let (cost, sold, all) = (held.cost.0 as i128, i128::from(qty), i128::from(held.qty.0));
                Cash(((2 * cost * sold + all) / (2 * all)) as i64)
            }
            _ => Cash::ZERO,
        };
        let limit = Price((notional * 10_000 / qty as i64) as u16);
        let limit = OrderTerms::limit(wallet, KeyId(1), instrument, side, limit, Qty(qty));
        let terms = OrderTerms { marketable: true, ..limit };
        let filled = Mutation::OrderFilled(fact::OrderFilled {
            order,
            trade: fill,
            position,
            qty: Qty(qty),
            notional: Cash(notional),
            fee: Cash(fee),
            fee_rate: Bps(500),
            liquidity: Liquidity::Taker,
            source: PriceSource::BookWalk,
            quote_age_ms: None,
            cost_out,
            reserved_cash: Cash::ZERO,
            reserved_qty: Qty::ZERO,
            levels: Vec::new(),
            at,
            venue_at: None,
        });
        self.happened([Mutation::OrderPlaced(fact::OrderPlaced { order, terms, counted: false, at }), filled]);
    }

    /// Pays out the open episode of that instrument.
    pub fn settle(&mut self, wallet: WalletKind, instrument: InstrumentId, per_share: u16, at: Timestamp) {
        let held = self.user().open_position(self.wallet(wallet), instrument).expect("it is held");
        let payout = Cash((held.qty.0 as i128 * i128::from(per_share) / 10_000) as i64);
        let position = held.id;
        self.happened([Mutation::PositionSettled(fact::PositionSettled {
            position,
            payout_per_share: Price(per_share),
            payout,
            at,
        })]);
    }

    /// Any facts about the user: applied, and written at the latest by [`History::end`].
    pub fn happened(&mut self, facts: impl IntoIterator<Item = Mutation>) {
        let mut payload = Vec::new();
        let from = self.facts.len();
        self.facts.extend(facts);
        codec::encode(codec::VERSION, &self.facts[from..], &mut payload);
        fold(&mut self.state, self.user, codec::VERSION, &payload).expect("facts of the test");
        if self.facts.len() >= 200 {
            self.write();
        }
    }

    fn write(&mut self) {
        let mut payload = Vec::new();
        codec::encode(codec::VERSION, &self.facts, &mut payload);
        self.facts.clear();
        while self.committer.room() != Room::Ample {
            self.syncer.turn().expect("the disk takes it");
            self.preparer.turn().expect("the disk has room");
        }
        self.committer.record(self.user, Clock::wall().now(), &payload);
    }

    /// Writes the rest and closes the log.
    pub fn end(mut self) {
        if !self.facts.is_empty() {
            self.write();
        }
        self.state.check_all().expect("a possible history");
        self.committer.stop(Clock::wall().now());
        self.syncer.finish().expect("the disk takes it");
    }
}
