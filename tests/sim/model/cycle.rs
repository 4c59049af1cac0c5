//! The matching cycle and the settlement in the model (engine/docs/execution.md §7, §10, §12): user by user, since
//! users never compete; every open order is visited every time.

use super::book::{Walk, Want, notional, within};
use super::place::needed;
use super::wallets::Hours;
use super::{Expected, Fill, Model, Moment, Order, half_up};
use engine::market::terms::MarketState;
use engine::order::{CloseReason, Liquidity, PriceSource, Side};
use engine::shard::Room;

/// An unresolved market's orders expire a day after its end.
const GRACE: u64 = 86_400_000_000;

/// The result of a cycle.
#[derive(Default)]
struct Tally {
    fills: u64,
    closed: u64,
}

impl Model {
    /// One cycle for the users of one shard.
    pub fn cycle(&mut self, of_shard: impl Fn(u64) -> bool, venue_now: u64, moment: Moment) -> Expected {
        let owners: Vec<u64> = self.users.keys().copied().filter(|id| of_shard(*id)).collect();
        let mut tally = Tally::default();
        for owner in &owners {
            self.cycle_of(*owner, venue_now, moment, &mut tally);
        }
        let resting = owners.iter().map(|owner| self.users[owner].open_orders().count() as u64).sum();
        Expected::Cycled { fills: tally.fills, closed: tally.closed, resting }
    }

    fn cycle_of(&mut self, owner: u64, venue_now: u64, Moment { now, room }: Moment, tally: &mut Tally) {
        // A lapsed heartbeat ends all orders.
        if self.users[&owner].beats.iter().any(|beat| beat.lapses_at <= now) {
            tally.closed += self.end_where(owner, CloseReason::HeartbeatLapsed, now, |_| true);
            self.users.get_mut(&owner).expect("it is known").beats.retain(|beat| beat.lapses_at > now);
            self.record(owner);
        }
        let expired = |order: &Order| order.expiration.is_some_and(|at| at <= now);
        let count = self.end_where(owner, CloseReason::GtdExpired, now, expired);
        tally.closed += count;
        if count > 0 {
            self.record(owner);
        }
        for token in self.tokens_with_orders(owner) {
            self.show_outage(owner, token);
        }
        for token in self.tokens_with_orders(owner) {
            let market = &self.markets[token as usize / 2];
            let tradable = market.state == MarketState::Active && !market.ended;
            let over = market.end.is_some_and(|end| end + GRACE <= venue_now);
            if !tradable && market.resolution.is_none() && over {
                tally.closed += self.end_where(owner, CloseReason::MarketClosed, now, |order| order.token == token);
                self.record(owner);
            }
        }
        if self.books.outage || room != Room::Ample {
            return;
        }
        for token in self.tokens_with_orders(owner) {
            let market = &self.markets[token as usize / 2];
            if market.state == MarketState::Active && !market.ended && self.live(token, now) {
                self.match_side(owner, token, Side::Buy, now, tally);
                self.match_side(owner, token, Side::Sell, now, tally);
            }
        }
    }

    fn tokens_with_orders(&self, owner: u64) -> Vec<u32> {
        let mut tokens: Vec<u32> = self.users[&owner].open_orders().map(|order| order.token).collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    /// `hold_reason` follows the outage.
    fn show_outage(&mut self, owner: u64, token: u32) {
        let held = self.books.outage;
        let user = self.users.get_mut(&owner).expect("it is known");
        let mut changed = false;
        for order in user.orders.values_mut().filter(|order| order.token == token && order.is_open()) {
            changed |= order.held != held;
            order.held = held;
        }
        if changed {
            self.record(owner);
        }
    }

    fn end_where(&mut self, owner: u64, reason: CloseReason, now: u64, ends: impl Fn(&Order) -> bool) -> u64 {
        let user = self.users.get_mut(&owner).expect("it is known");
        let mut ending: Vec<&Order> = user.open_orders().filter(|order| ends(order)).collect();
        // Order facts are numbered, so the order within a sweep is visible: earliest first, best price first, else by
        // id.
        ending.sort_by_key(|order| {
            let limit = i64::from(order.limit);
            match reason {
                CloseReason::GtdExpired => (false, order.expiration.map_or(0, |at| at as i64), order.id),
                CloseReason::MarketClosed if order.side == Side::Buy => (false, -limit, order.id),
                CloseReason::MarketClosed => (true, limit, order.id),
                _ => (false, 0, order.id),
            }
        });
        let ending: Vec<u64> = ending.into_iter().map(|order| order.id).collect();
        ending.iter().for_each(|order| user.close(*order, reason, now));
        ending.len() as u64
    }

    /// Orders on one side of one token, best price first, then those that wait for their first book.
    fn match_side(&mut self, owner: u64, token: u32, side: Side, now: u64, tally: &mut Tally) {
        let best = self.books.effective(token).best(needed(side));
        let touches = |limit: u16| best.is_some_and(|best| within(needed(side), best, limit));
        let here = |order: &&Order| (order.token, order.side) == (token, side);
        let mut orders: Vec<&Order> = self.users[&owner].open_orders().filter(here).collect();
        orders.retain(|order| touches(order.limit) || order.awaiting);
        let rank = |order: &&Order| {
            let limit = i32::from(order.limit);
            let price = if side == Side::Buy { -limit } else { limit };
            (!touches(order.limit), if touches(order.limit) { price } else { 0 }, order.id)
        };
        orders.sort_by_key(rank);
        let ids: Vec<u64> = orders.into_iter().map(|order| order.id).collect();
        let mut changed = false;
        for id in ids {
            changed |= self.meet(owner, id, now, tally);
        }
        if changed {
            self.record(owner);
        }
    }

    /// Matches one order with its book; true if anything changed.
    fn meet(&mut self, owner: u64, id: u64, now: u64, tally: &mut Tally) -> bool {
        let user = &self.users[&owner];
        let order = user.orders[&id].clone();
        let (rest, side) = (order.rest(), needed(order.side));
        let taker = order.awaiting && !order.post_only;
        let rate = if taker { order.rate } else { 0 };
        let walk = self.books.walk(owner, order.token, side, Want::Shares(rest), order.limit, rate);
        if walk.filled == 0 {
            let user = self.users.get_mut(&owner).expect("it is known");
            let known = user.orders.get_mut(&id).expect("it is known");
            if known.awaiting {
                (known.awaiting, known.held) = (false, false);
            }
            return order.awaiting;
        }
        let left = rest - walk.filled;
        let fill = if taker { taken(&order, &walk, now) } else { made(&order, &walk, now) };
        let free = user.available(order.wallet) + order.reserved_cash();
        let covered = fill.notional + fill.fee + order.would_reserve(left, false) <= free;
        let user = self.users.get_mut(&owner).expect("it is known");
        if order.side == Side::Buy && !covered {
            user.close(id, CloseReason::AutoCancelled, now);
            tally.closed += 1;
            return true;
        }
        let fill = Fill { id: user.take_id(), ..fill };
        user.fill(id, fill, true);
        let known = user.orders.get_mut(&id).expect("it is known");
        if known.awaiting {
            known.awaiting = false;
            known.held &= left == 0;
        }
        self.books.deplete(owner, order.token, side, &walk);
        tally.fills += 1;
        true
    }

    /// A resolved market for the users of one shard: orders expire, positions are paid out.
    pub fn settle(&mut self, of_shard: impl Fn(u64) -> bool, market: u32, hours: &mut Hours, now: u64) -> Expected {
        let owners: Vec<u64> = self.users.keys().copied().filter(|id| of_shard(*id)).collect();
        let (mut positions, mut orders) = (0, 0);
        let Some(resolution) = self.markets.get(market as usize).and_then(|market| market.resolution) else {
            return Expected::Settled { positions, orders };
        };
        for owner in owners {
            let user = &self.users[&owner];
            let holds = user.positions.iter().any(|held| held.closed_at.is_none() && held.token / 2 == market);
            if holds || user.open_orders().any(|order| order.token / 2 == market) {
                self.note_early(owner, hours, now);
            }
            let expired = self.end_where(owner, CloseReason::MarketResolved, now, |order| order.token / 2 == market);
            let user = self.users.get_mut(&owner).expect("it is known");
            let mut paid = 0;
            for held in user.positions.iter_mut().filter(|held| held.closed_at.is_none() && held.token / 2 == market) {
                let outcome = engine::id::InstrumentId(held.token).outcome();
                let per_share = resolution.payout(outcome).0;
                let payout = notional(per_share, held.qty);
                held.realized += payout - held.cost;
                (held.qty, held.cost, held.closed_at) = (0, 0, Some(now));
                held.paid_out = Some((per_share, payout));
                let wallet = user.wallets.iter_mut().find(|wallet| wallet.id == held.wallet);
                wallet.expect("a position belongs to a wallet").cash += payout;
                paid += 1;
            }
            if expired + paid > 0 {
                self.record(owner);
            }
            positions += paid;
            orders += expired;
        }
        Expected::Settled { positions, orders }
    }
}

/// At walked prices, with the fee.
fn taken(order: &Order, walk: &Walk, now: u64) -> Fill {
    Fill {
        id: 0,
        qty: walk.filled,
        notional: walk.notional,
        fee: walk.fee,
        rate: order.rate,
        liquidity: Liquidity::Taker,
        source: PriceSource::BookWalk,
        at: now,
    }
}

/// At the own limit, without a fee: a BUY costs what its reservation loses, a SELL brings limit × shares half up.
pub(super) fn made(order: &Order, walk: &Walk, now: u64) -> Fill {
    let rest = order.rest();
    let notional = match order.side {
        Side::Buy => order.would_reserve(rest, false) - order.would_reserve(rest - walk.filled, false),
        Side::Sell => half_up(i128::from(order.limit) * walk.filled, 10_000),
    };
    Fill {
        id: 0,
        qty: walk.filled,
        notional,
        fee: 0,
        rate: 0,
        liquidity: Liquidity::Maker,
        source: PriceSource::MatchingEngine,
        at: now,
    }
}
