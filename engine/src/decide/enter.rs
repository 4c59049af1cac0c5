//! An order meets the book: it fills, rests, or is killed (engine/docs/orders.md §2, steps 16 to 20, and §3).

use crate::amount::{Bps, Cash, Price, Qty, share_half_up};
use crate::book::walk::{deviation_bps, spread_bps};
use crate::command::RequestIdentity;
use crate::decide::cancel::closed;
use crate::decide::cascade::{self, Cascade};
use crate::decide::fill::{Booking, BySchedule, Execution, filled};
use crate::decide::numbers::Numbers;
use crate::decide::place::Placed;
use crate::decide::quality::{self, per_share};
use crate::decide::queued::queue_noted;
use crate::decide::take::{Desk, Ground, Sight, Taking, Walked, Want};
use crate::fact;
use crate::id::OrderId;
use crate::mutation::Mutation;
use crate::order::reservation::{Reservation, reservation};
use crate::order::{CloseReason, Liquidity, OrderTerms, OrderType, PriceSource, Side, TimeInForce};
use crate::realism::WHOLE;
use crate::reject::Reject;
use crate::rules::Fees;
use crate::user::User;

/// A placement that passed every check that needs no book.
pub(super) struct Entry<'a> {
    pub ground: &'a Ground<'a>,
    pub user: &'a User,
    pub order: OrderId,
    pub numbers: Numbers,
    pub terms: OrderTerms,
    /// What its fills are charged: one reading, as the market may state other fees meanwhile.
    pub fees: Fees,
    pub request: Option<RequestIdentity>,
}

impl Entry<'_> {
    /// Market, FOK, FAK, IOC. `may_exit`: without a bid it exits at its entry price instead of being killed.
    pub fn take_at_once(
        &mut self,
        may_exit: bool,
        desk: &mut Desk,
        facts: &mut Vec<Mutation>,
    ) -> Result<Placed, Reject> {
        let rules = self.ground.rules;
        let sight = desk.look(self.ground, self.terms.instrument, self.terms.side)?;
        if sight.needed(self.terms.side).is_none() {
            return match (may_exit, rules.require_book_depth) {
                (true, _) => self.exit(facts),
                (false, true) => Ok(self.kill(Qty::ZERO, facts)),
                (false, false) => self.cascade(facts),
            };
        }
        let fok = self.terms.time_in_force == TimeInForce::Fok;
        let want = self.terms.amount.map_or(Want::Shares(self.terms.quantity), Want::Budget);
        let by_best_price = fok && !rules.flags.fok_depth_aware;
        let walked = desk.take(self.ground, self.user.id, &self.taking(want, by_best_price))?;
        let short = self.terms.quantity.0.saturating_sub(walked.filled.0);
        let tolerated = fok && self.terms.amount.is_none() && short <= rules.fok_shortfall.0;
        let complete = walked.complete || tolerated;
        if walked.filled.is_zero() || (!complete && (fok || !rules.flags.fak_partial_fills)) {
            let fillable = walked.filled;
            desk.leave(walked);
            return Ok(self.kill(fillable, facts));
        }
        let source = match (by_best_price, self.terms.side) {
            (false, _) => PriceSource::BookWalk,
            (true, Side::Buy) => PriceSource::BestAsk,
            (true, Side::Sell) => PriceSource::BestBid,
        };
        self.fill(walked, source, Reservation::default(), facts)?;
        if !complete {
            facts.push(closed(self.order, CloseReason::FakRest, self.ground.now));
        }
        Ok(self.accepted(facts))
    }

    /// GTC and GTD on a live book with the best prices `top`: takes the available size, the rest rests as maker.
    pub fn take_then_rest(
        &mut self,
        top: Result<Sight, Reject>,
        desk: &mut Desk,
        facts: &mut Vec<Mutation>,
    ) -> Result<Placed, Reject> {
        // Most limits are away from the book: the best prices alone show that there is nothing to take.
        if !top?.crossed_by(self.terms.side, self.terms.limit) {
            return self.rest(false, facts);
        }
        let sight = desk.look(self.ground, self.terms.instrument, self.terms.side)?;
        // Judged before depletion, as the client sees the book (engine/docs/execution.md §4).
        if self.terms.post_only && sight.crossed_by(self.terms.side, self.terms.limit) {
            return Err(Reject::PostOnlyWouldCross);
        }
        if self.terms.post_only {
            return self.rest(false, facts);
        }
        let walked = desk.take(self.ground, self.user.id, &self.taking(Want::Shares(self.terms.quantity), false))?;
        self.terms.marketable = !walked.filled.is_zero();
        if !self.terms.marketable || !self.ground.rules.sync_gtc_match {
            desk.leave(walked);
            // Without synchronous matching a marketable order waits for the next cycle, where it is still a taker.
            let awaiting = self.terms.marketable;
            return self.rest(awaiting, facts);
        }
        let rest = self.terms.quantity - walked.filled;
        let queued = if rest.is_zero() { None } else { self.queued()? };
        let set_aside = reservation(self.terms.side, self.terms.limit, rest, self.fees.maker);
        self.fill(walked, PriceSource::BookWalk, set_aside, facts)?;
        if !rest.is_zero() {
            facts.push(self.rested(set_aside, false));
            facts.extend(queued);
        }
        Ok(self.accepted(facts))
    }

    /// GTC and GTD without a live book: the first cycle with one decides taker or maker (engine/docs/execution.md §10).
    pub fn rest_untouched(&mut self, facts: &mut Vec<Mutation>) -> Result<Placed, Reject> {
        self.rest(true, facts)
    }

    /// A held position of an ended market without a live bid exits at its average entry price (engine/docs/execution.md
    /// §11).
    pub fn exit(&mut self, facts: &mut Vec<Mutation>) -> Result<Placed, Reject> {
        let held = self.user.open_position(self.terms.wallet, self.terms.instrument).ok_or(Reject::ExecutionError)?;
        let execution = Execution {
            qty: self.terms.quantity,
            notional: share_half_up(held.cost, self.terms.quantity, held.qty),
            fee: Cash::ZERO,
            fee_rate: Bps(0),
            by_schedule: BySchedule::default(),
            liquidity: Liquidity::Taker,
            source: PriceSource::EmergencyExitEntryPricePostExpiry,
            quote_age_ms: self.terms.quality.quote_age_ms,
            levels: Vec::new(),
        };
        self.execute(execution, Reservation::default(), facts)?;
        Ok(self.accepted(facts))
    }

    /// `trade_require_book_depth` off: without a book, any size at a price within bounds (engine/docs/execution.md §2).
    fn cascade(&mut self, facts: &mut Vec<Mutation>) -> Result<Placed, Reject> {
        let execution = match cascade::find(self.ground, &self.terms, &self.fees) {
            Cascade::Nothing => return Ok(self.kill(Qty::ZERO, facts)),
            Cascade::Unbelievable => {
                let age_us = self.ground.quote(self.terms.instrument).age_us.unwrap_or(0);
                return Err(self.ground.stale(age_us));
            }
            Cascade::Found(execution) => execution,
        };
        let average = quality::average(execution.notional, execution.qty);
        self.terms.quality = quality::slipped(
            self.terms.quality,
            average,
            self.terms.order_type == OrderType::Market,
            self.ground.rules.warn_slippage_bps,
        );
        self.execute(execution, Reservation::default(), facts)?;
        Ok(self.accepted(facts))
    }

    /// Leaves a row that is placed and closed in one record, and returns the refusal.
    fn kill(&mut self, fillable: Qty, facts: &mut Vec<Mutation>) -> Placed {
        let reason = match self.terms.time_in_force {
            TimeInForce::Fok => CloseReason::FokNotFilled,
            _ => CloseReason::FakNoFill,
        };
        self.terms.quality.fillable = Some(fillable);
        let (order, reject) =
            (self.order, refusal(self.order, reason, fillable, self.terms.quantity, self.terms.limit));
        self.placed(false, facts);
        facts.push(closed(order, reason, self.ground.now));
        self.remember(facts);
        Placed::Killed { order, reject }
    }

    /// Rests whole. `awaiting`: its first cycle may make it a taker, so the taker fee is reserved too. A maker that pays
    /// reserves its own.
    fn rest(&mut self, awaiting: bool, facts: &mut Vec<Mutation>) -> Result<Placed, Reject> {
        let terms = &self.terms;
        let may_take = awaiting && !terms.post_only;
        let charge = if may_take { self.fees.taker } else { self.fees.maker };
        let set_aside = reservation(terms.side, terms.limit, terms.quantity, charge);
        self.affords(set_aside.cash)?;
        let queued = if awaiting { None } else { self.queued()? };
        self.placed(true, facts);
        facts.push(self.rested(set_aside, awaiting));
        facts.extend(queued);
        Ok(self.accepted(facts))
    }

    fn fill(
        &mut self,
        walked: Walked,
        source: PriceSource,
        rest: Reservation,
        facts: &mut Vec<Mutation>,
    ) -> Result<(), Reject> {
        self.terms.marketable = true;
        self.terms.quality.spread_bps = spread_bps(walked.sight.bid, walked.sight.ask);
        let average = quality::average(walked.notional, walked.filled);
        self.terms.quality.impact_bps = deviation_bps(average, per_share(walked.best));
        self.terms.quality.book_walk_levels = Some(walked.levels);
        self.terms.quality = quality::slipped(
            self.terms.quality,
            average,
            self.terms.order_type == OrderType::Market,
            self.ground.rules.warn_slippage_bps,
        );
        let execution = Execution {
            qty: walked.filled,
            notional: walked.notional,
            fee: walked.fee,
            fee_rate: self.fees.taker.bps(),
            by_schedule: BySchedule::of_taker(&self.fees),
            liquidity: Liquidity::Taker,
            source,
            quote_age_ms: self.terms.quality.quote_age_ms,
            levels: walked.taken,
        };
        self.execute(execution, rest, facts)
    }

    /// 19: the cost and the reservation of the rest must be covered; then the order and its fill.
    fn execute(&mut self, execution: Execution, rest: Reservation, facts: &mut Vec<Mutation>) -> Result<(), Reject> {
        self.affords(execution.required(self.terms.side, rest))?;
        let booking = Booking {
            order: self.order,
            wallet: self.terms.wallet,
            instrument: self.terms.instrument,
            side: self.terms.side,
            rest,
        };
        let by_schedule = execution.by_schedule;
        let fill = filled(self.ground, self.user, booking, execution, &mut self.numbers);
        let (fill, trade) = fill.ok_or(Reject::ExecutionError)?;
        let wallet = self.terms.wallet;
        self.placed(true, facts);
        facts.push(fill);
        by_schedule.note(trade, wallet, self.ground, facts);
        Ok(())
    }

    fn affords(&self, required: Cash) -> Result<(), Reject> {
        let wallet = self.user.wallet(self.terms.wallet).ok_or(Reject::WalletNotFound)?;
        let available = wallet.available();
        if required > available { Err(Reject::InsufficientBalance { available, required }) } else { Ok(()) }
    }

    /// Its place in the queue of its level when it comes to rest.
    fn queued(&self) -> Result<Option<Mutation>, Reject> {
        let OrderTerms { instrument, side, limit, fill, .. } = self.terms;
        queue_noted(self.ground, self.order, (instrument, side, limit), fill.unwrap_or_default())
    }

    fn taking(&self, want: Want, beyond_depth: bool) -> Taking {
        Taking {
            instrument: self.terms.instrument,
            side: self.terms.side,
            want,
            bound: self.terms.limit,
            tariff: self.fees.taker,
            market: self.terms.order_type == OrderType::Market,
            beyond_depth,
            depth_share: self.terms.fill.map_or(WHOLE, |fill| fill.depth_share),
        }
    }

    fn placed(&mut self, counted: bool, facts: &mut Vec<Mutation>) {
        // The texts move, so that the copy of the other fields does not allocate.
        let (client_order_id, rounded_from) = (self.terms.client_order_id.take(), self.terms.rounded_from.take());
        let terms = OrderTerms { client_order_id, rounded_from, ..self.terms.clone() };
        facts.push(Mutation::OrderPlaced(fact::OrderPlaced { order: self.order, terms, counted, at: self.ground.now }));
    }

    fn rested(&self, set_aside: Reservation, awaiting_book: bool) -> Mutation {
        Mutation::OrderRested(fact::OrderRested {
            order: self.order,
            reserved_cash: set_aside.cash,
            reserved_qty: set_aside.qty,
            awaiting_book,
            held: self.ground.outage,
            at: self.ground.now,
        })
    }

    fn accepted(&mut self, facts: &mut Vec<Mutation>) -> Placed {
        let order = self.order;
        self.remember(facts);
        Placed::Accepted(order)
    }

    /// The last fact: it remembers the state after all others.
    fn remember(&mut self, facts: &mut Vec<Mutation>) {
        if let Some(request) = self.request.take() {
            facts.push(Mutation::RequestRemembered(fact::RequestRemembered {
                order: self.order,
                client_order_id: request.client_order_id,
                digest: request.digest,
            }));
        }
    }
}

/// The refusal of a killed order, equal in every replay.
pub fn refusal(order: OrderId, reason: CloseReason, fillable: Qty, requested: Qty, limit: Price) -> Reject {
    match reason {
        CloseReason::FokNotFilled => Reject::FokNotFilled { order, fillable, requested, limit },
        // There was some depth, but atomic mode needs all of it.
        _ if !fillable.is_zero() => Reject::InsufficientLiquidity { order: Some(order) },
        _ => Reject::NoExecutableDepth { order: Some(order) },
    }
}
