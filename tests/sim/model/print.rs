//! A trade of the venue through the limits of resting orders, in the model: user by user, since users never compete.

use super::book::{Walk, four_decimals};
use super::cycle::made;
use super::{Fill, Model, Order};
use engine::market::terms::MarketState;
use engine::order::{CloseReason, Side};
use engine::print::Print;

impl Model {
    /// Fills every order of this shard's users that the trade passed by a tick, with what is left to its user of the
    /// trade. Returns their number.
    pub fn print(&mut self, of_shard: impl Fn(u64) -> bool, print: &Print, now: u64) -> u64 {
        let owners: Vec<u64> = self.users.keys().copied().filter(|id| of_shard(*id)).collect();
        let mut met = 0;
        for owner in owners {
            let mut orders: Vec<(u16, u64)> = self.users[&owner]
                .open_orders()
                .filter(|order| self.is_through(order, print, now))
                .map(|order| (if order.side == Side::Buy { 10_000 - order.limit } else { order.limit }, order.id))
                .collect();
            orders.sort_unstable();
            let mut left = four_decimals(print.size.0.into());
            let mut changed = false;
            for (_, id) in orders {
                let order = self.users[&owner].orders[&id].clone();
                let filled = four_decimals(order.rest().min(left));
                if filled == 0 {
                    continue;
                }
                changed = true;
                let fill = made(&order, &Walk { filled, ..Walk::default() }, now);
                let user = self.users.get_mut(&owner).expect("it is known");
                let free = user.available(order.wallet) + order.reserved_cash();
                if order.side == Side::Buy && fill.notional + order.would_reserve(order.rest() - filled, false) > free {
                    user.close(id, CloseReason::AutoCancelled, now);
                    continue;
                }
                let fill = Fill { id: user.take_id(), ..fill };
                user.fill(id, fill, true);
                left -= filled;
                met += 1;
            }
            if changed {
                self.record(owner);
            }
        }
        met
    }

    fn is_through(&self, order: &Order, print: &Print, now: u64) -> bool {
        let market = &self.markets[order.token as usize / 2];
        let open = market.state == MarketState::Active && !market.ended && self.live(order.token, now);
        let alive = order.expiration.is_none_or(|at| at > now);
        if order.token / 2 != print.instrument.0 / 2 || !open || !alive || order.awaiting {
            return false;
        }
        // In terms of the order's token: selling one outcome is buying the other.
        let own = order.token == print.instrument.0;
        let price = if own { print.price.0 } else { 10_000 - print.price.0 };
        let bought = (print.taker == Side::Buy) == own;
        let through = match order.side {
            Side::Buy => !bought && order.limit >= price + market.tick,
            Side::Sell => bought && order.limit + market.tick <= price,
        };
        through && order.created_at <= print.taken_at.0
    }
}
