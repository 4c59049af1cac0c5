//! One execution as a fact: ids, and amounts that depend on the holdings of the wallet.

use crate::amount::{Bps, Cash, Price, Qty, share_half_up};
use crate::decide::numbers::Numbers;
use crate::decide::take::Ground;
use crate::fact;
use crate::fee::{self, FeeRounding};
use crate::id::{InstrumentId, OrderId, PositionId, TradeId, WalletId};
use crate::market::terms::FeeSchedule;
use crate::mutation::Mutation;
use crate::order::reservation::Reservation;
use crate::order::{Liquidity, PriceSource, Side, Taken};
use crate::rules::{CASH_MAX, Fees, HOLDING_MAX};
use crate::user::User;

/// An execution before it is posted.
#[derive(Clone, Debug)]
pub struct Execution {
    pub qty: Qty,
    pub notional: Cash,
    pub fee: Cash,
    /// 0 for a maker that pays nothing.
    pub fee_rate: Bps,
    pub by_schedule: BySchedule,
    pub liquidity: Liquidity,
    pub source: PriceSource,
    pub quote_age_ms: Option<u32>,
    pub levels: Vec<Taken>,
}

impl Execution {
    /// The cash that it and the order's reservation after it require. A sale pays for itself, unless the configured
    /// rate makes its fee exceed its proceeds.
    pub fn required(&self, side: Side, rest: Reservation) -> Cash {
        match side {
            Side::Buy => self.notional + self.fee + rest.cash,
            Side::Sell => (self.fee - self.notional).max(Cash::ZERO),
        }
    }
}

/// What the schedule of the market decided about an execution.
#[derive(Clone, Copy, Debug, Default)]
pub struct BySchedule {
    /// It decided the fee.
    charged: Option<(FeeSchedule, FeeRounding)>,
    /// What the maker has earned.
    rebate: Cash,
}

impl BySchedule {
    /// For a taker.
    pub fn of_taker(fees: &Fees) -> BySchedule {
        BySchedule { charged: fees.schedule, rebate: Cash::ZERO }
    }

    /// For a maker at its own limit.
    pub fn of_maker(fees: &Fees, accrues: bool, qty: Qty, limit: Price) -> BySchedule {
        BySchedule {
            charged: fees.schedule.filter(|(schedule, _)| !schedule.taker_only),
            rebate: match fees.schedule {
                Some((schedule, _)) if accrues => fee::rebate(&schedule, qty, limit),
                _ => Cash::ZERO,
            },
        }
    }

    /// The facts after the fill.
    pub fn note(self, trade: TradeId, wallet: WalletId, ground: &Ground<'_>, facts: &mut Vec<Mutation>) {
        let at = ground.now;
        if let Some((schedule, rounding)) = self.charged {
            facts.push(Mutation::FillCharged(fact::FillCharged { trade, schedule, rounding, at }));
        }
        if self.rebate > Cash::ZERO {
            let amount = self.rebate;
            facts.push(Mutation::RebateAccrued(fact::RebateAccrued { trade, wallet, amount, at }));
        }
    }
}

/// The order of an execution.
#[derive(Clone, Copy, Debug)]
pub struct Booking {
    pub order: OrderId,
    pub wallet: WalletId,
    pub instrument: InstrumentId,
    pub side: Side,
    /// The order's reservations after this fill.
    pub rest: Reservation,
}

/// The fill as a fact, and its id. `None`: holding or cash would exceed its bound, or there is nothing to sell.
pub fn filled(
    ground: &Ground<'_>,
    user: &User,
    booking: Booking,
    execution: Execution,
    numbers: &mut Numbers,
) -> Option<(Mutation, TradeId)> {
    let held = user.open_position(booking.wallet, booking.instrument);
    let trade = TradeId(numbers.take());
    let (position, cost_out) = match booking.side {
        Side::Buy => {
            let before = held.map_or(Qty::ZERO, |held| held.qty);
            if before.0.checked_add(execution.qty.0)? > HOLDING_MAX.0 {
                return None;
            }
            (held.map_or_else(|| PositionId(numbers.take()), |held| held.id), Cash::ZERO)
        }
        Side::Sell => {
            let held = held.filter(|held| held.qty >= execution.qty)?;
            let cash = user.wallet(booking.wallet)?.cash;
            if cash.0.checked_add(execution.notional.0)? > CASH_MAX.0 {
                return None;
            }
            (held.id, share_half_up(held.cost, execution.qty, held.qty))
        }
    };
    let fill = Mutation::OrderFilled(fact::OrderFilled {
        order: booking.order,
        trade,
        position,
        qty: execution.qty,
        notional: execution.notional,
        fee: execution.fee,
        fee_rate: execution.fee_rate,
        liquidity: execution.liquidity,
        source: execution.source,
        quote_age_ms: execution.quote_age_ms,
        cost_out,
        reserved_cash: booking.rest.cash,
        reserved_qty: booking.rest.qty,
        levels: execution.levels,
        at: ground.now,
        venue_at: ground.venue_at(),
    });
    Some((fill, trade))
}
