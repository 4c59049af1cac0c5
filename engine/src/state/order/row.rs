//! Rows of orders and fills: 160 bytes and 72 for each fill. Fields that few orders have (mostly the client's id) take
//! 64 bytes more, in blocks of the shard.
//!
//! Optional moments and amounts are stored as zero if absent (no moment is the start of 1970, no budget is zero), small
//! figures as the largest number; their accessors return `Option`.

use super::text::Text;
use super::{
    CloseReason, EntryRoute, Liquidity, OrderTerms, OrderType, PriceSource, Quality, Side, Status, TimeInForce,
};
use crate::amount::{Bps, Cash, Price, Qty};
use crate::fact;
use crate::fee::FeeSource;
use crate::id::{InstrumentId, KeyId, OrderId, TradeId, WalletId};
use crate::mutation::packed::{bits, has};
use crate::realism::{FillModel, FillTerms};
use crate::time::Timestamp;
use crate::user::shared_rows::{Block, SharedRow, SharedRows};
use std::sync::Arc;

mod canonical;
mod packed;

/// The terms of an order in compact form: see [`OrderTerms`] for the meaning of each field.
#[derive(Clone)]
pub struct Terms {
    pub wallet: WalletId,
    pub key: KeyId,
    pub quantity: Qty,
    amount: Cash,
    expiration: Timestamp,
    /// The block with the rare fields of this order, at `rare_at`. Copies of the order in answers share it.
    rare_block: Option<Arc<Block<Rare>>>,
    pub instrument: InstrumentId,
    pub fee_rate: Bps,
    displayed: Figure,
    quote_age_ms: Figure,
    spread_bps: Figure,
    slippage_bps: Figure,
    impact_bps: Figure,
    book_walk_levels: u16,
    pub limit: Price,
    pub side: Side,
    pub order_type: OrderType,
    pub time_in_force: TimeInForce,
    pub route: EntryRoute,
    pub post_only: bool,
    pub marketable: bool,
    /// [`HIGH_SLIPPAGE`], [`STALE_QUOTE`].
    warnings: u8,
    rare_at: u8,
}

/// Bits of the warnings of an order.
const HIGH_SLIPPAGE: u32 = 0;
const STALE_QUOTE: u32 = 1;

/// Fields that few orders have, in 56 bytes: with the block's mark of a used slot, 64.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rare {
    fillable: Fillable,
    client_order_id: Option<Text>,
    /// Boxed, to keep the row short.
    rarest: Option<Box<Rarest>>,
}

/// Fields that very few orders have.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rarest {
    rounded_from: Option<Text>,
    order_hash: Option<[u8; 32]>,
    fill: Option<FillTerms>,
}

/// Optional shares in eight bytes; the largest number stands for no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fillable(u64);

/// An optional figure in four bytes; values above 4 294 967 294 become none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Figure(u32);

impl Rare {
    const NONE: Rare = Rare { fillable: Fillable::NONE, client_order_id: None, rarest: None };
}

impl Rarest {
    /// `None` without any field.
    fn boxed(self) -> Option<Box<Rarest>> {
        (self != Rarest::default()).then(|| Box::new(self))
    }
}

impl Fillable {
    const NONE: Fillable = Fillable(u64::MAX);

    fn of(fillable: Option<Qty>) -> Fillable {
        fillable.map_or(Fillable::NONE, |qty| Fillable(qty.0.min(u64::MAX - 1)))
    }

    fn get(self) -> Option<Qty> {
        (self != Fillable::NONE).then_some(Qty(self.0))
    }
}

impl Figure {
    const NONE: u32 = u32::MAX;

    fn of(figure: Option<u32>) -> Figure {
        Figure(figure.map_or(Figure::NONE, |figure| figure.min(Figure::NONE - 1)))
    }

    fn get(self) -> Option<u32> {
        (self.0 != Figure::NONE).then_some(self.0)
    }
}

impl Terms {
    /// Stores the rare fields in `rares`.
    #[inline]
    pub(crate) fn new(terms: &OrderTerms, rares: &mut SharedRows<Rare>) -> Terms {
        let quality = terms.quality;
        let displayed = quality.displayed.map(|cash| u32::try_from(cash.0.max(0)).unwrap_or(u32::MAX));
        let rare = Rare {
            fillable: Fillable::of(quality.fillable),
            client_order_id: terms.client_order_id.as_deref().map(Text::new),
            rarest: Rarest {
                rounded_from: terms.rounded_from.as_deref().map(Text::new),
                order_hash: terms.order_hash,
                fill: terms.fill,
            }
            .boxed(),
        };
        let (rare_block, rare_at) = parts((rare != Rare::NONE).then(|| rares.push(rare)));
        Terms {
            wallet: terms.wallet,
            key: terms.key,
            quantity: terms.quantity,
            amount: terms.amount.unwrap_or_default(),
            expiration: terms.expiration.unwrap_or_default(),
            rare_block,
            instrument: terms.instrument,
            fee_rate: terms.fee_rate,
            displayed: Figure::of(displayed),
            quote_age_ms: Figure::of(quality.quote_age_ms),
            spread_bps: Figure::of(quality.spread_bps),
            slippage_bps: Figure::of(quality.slippage_bps),
            impact_bps: Figure::of(quality.impact_bps),
            book_walk_levels: quality.book_walk_levels.map_or(u16::MAX, |levels| levels.min(u16::MAX - 1)),
            limit: terms.limit,
            side: terms.side,
            order_type: terms.order_type,
            time_in_force: terms.time_in_force,
            route: terms.route,
            post_only: terms.post_only,
            marketable: terms.marketable,
            warnings: bits([quality.high_slippage, quality.stale_quote]),
            rare_at,
        }
    }

    fn rare(&self) -> Option<&Rare> {
        Some(self.rare_block.as_ref()?.row(self.rare_at))
    }

    /// USD to spend, market BUY only.
    pub fn amount(&self) -> Option<Cash> {
        (self.amount != Cash::ZERO).then_some(self.amount)
    }

    /// The expiration of a GTD order.
    pub fn expiration(&self) -> Option<Timestamp> {
        moment(self.expiration)
    }

    /// The client's id.
    pub fn client_order_id(&self) -> Option<&str> {
        self.rare()?.client_order_id.as_ref().map(Text::as_str)
    }

    /// Whether the client's id is `id`.
    pub(crate) fn is_client_order_id(&self, id: &str) -> bool {
        let own = self.rare().and_then(|rare| rare.client_order_id.as_ref());
        own.is_some_and(|own| own.as_bytes() == id.as_bytes())
    }

    /// The text of a requested quantity finer than 4 decimals.
    pub fn rounded_from(&self) -> Option<&str> {
        self.rare()?.rarest.as_ref()?.rounded_from.as_ref().map(Text::as_str)
    }

    /// The EIP-712 hash of a signed order.
    pub fn order_hash(&self) -> Option<&[u8; 32]> {
        self.rare()?.rarest.as_ref()?.order_hash.as_ref()
    }

    /// How it fills, where its terms say it ([`crate::rules::Rules::fill_of`]).
    pub fn fill(&self) -> Option<FillTerms> {
        self.rare()?.rarest.as_ref()?.fill
    }

    /// Its fill model.
    pub fn fill_model(&self) -> FillModel {
        self.fill().unwrap_or_default().model
    }

    /// Figures of the moment of placement.
    pub fn quality(&self) -> Quality {
        Quality {
            displayed: self.displayed.get().map(|cash| Cash(cash.into())),
            quote_age_ms: self.quote_age_ms.get(),
            spread_bps: self.spread_bps.get(),
            slippage_bps: self.slippage_bps.get(),
            impact_bps: self.impact_bps.get(),
            book_walk_levels: (self.book_walk_levels != u16::MAX).then_some(self.book_walk_levels),
            fillable: self.rare().and_then(|rare| rare.fillable.get()),
            high_slippage: has(self.warnings, HIGH_SLIPPAGE),
            stale_quote: has(self.warnings, STALE_QUOTE),
        }
    }

    /// The terms as in their fact.
    pub fn to_fact(&self) -> OrderTerms {
        OrderTerms {
            wallet: self.wallet,
            key: self.key,
            instrument: self.instrument,
            side: self.side,
            order_type: self.order_type,
            time_in_force: self.time_in_force,
            limit: self.limit,
            quantity: self.quantity,
            amount: self.amount(),
            expiration: self.expiration(),
            post_only: self.post_only,
            client_order_id: self.client_order_id().map(str::to_owned),
            route: self.route,
            fee_rate: self.fee_rate,
            marketable: self.marketable,
            quality: self.quality(),
            rounded_from: self.rounded_from().map(str::to_owned),
            order_hash: self.order_hash().copied(),
            fill: self.fill(),
        }
    }
}

/// Terms are equal if their fields are, in any blocks.
impl PartialEq for Terms {
    fn eq(&self, other: &Terms) -> bool {
        self.to_fact() == other.to_fact()
    }
}

impl Eq for Terms {}

impl std::fmt::Debug for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_fact().fmt(f)
    }
}

/// An order. A copy does not allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub id: OrderId,
    pub terms: Terms,
    pub created_at: Timestamp,
    pub filled: Qty,
    /// Σ of fill notionals and of fees.
    pub notional: Cash,
    pub fee: Cash,
    filled_at: Timestamp,
    closed_at: Timestamp,
    /// Cash of a BUY, shares of a SELL.
    reserved: u64,
    /// Row of its latest fill, [`NO_FILL`] before the first.
    pub(crate) last_fill: u32,
    closed: Option<CloseReason>,
    /// Resting without having met a live book (outage or an old quote at placement): its first cycle with one decides
    /// taker or maker (engine/docs/execution.md §6, §10).
    pub awaiting_book: bool,
    /// `hold_reason` is `venue_outage`.
    pub held: bool,
    /// Is in the index of resting orders.
    pub(crate) resting: bool,
}

/// In place of a fill's row: there is no fill.
pub(crate) const NO_FILL: u32 = u32::MAX;

impl Order {
    /// A new order; its rare fields are stored in `rares`.
    #[inline]
    pub(crate) fn new(id: OrderId, terms: &OrderTerms, at: Timestamp, rares: &mut SharedRows<Rare>) -> Order {
        Order {
            id,
            terms: Terms::new(terms, rares),
            created_at: at,
            filled: Qty::ZERO,
            notional: Cash::ZERO,
            fee: Cash::ZERO,
            filled_at: Timestamp(0),
            closed_at: Timestamp(0),
            reserved: 0,
            last_fill: NO_FILL,
            closed: None,
            awaiting_book: false,
            held: false,
            resting: false,
        }
    }

    /// Time of its last fill.
    pub fn filled_at(&self) -> Option<Timestamp> {
        moment(self.filled_at)
    }

    /// Reason and time of an end before it was filled whole.
    pub fn closed(&self) -> Option<(CloseReason, Timestamp)> {
        self.closed.map(|reason| (reason, self.closed_at))
    }

    /// Time of its end; `None` while it is open.
    pub fn ended_at(&self) -> Option<Timestamp> {
        let ended_at = || self.closed().map(|(_, at)| at).or(self.filled_at()).unwrap_or(self.created_at);
        (!self.is_open()).then(ended_at)
    }

    /// Cash reserved in the wallet for the unfilled rest of a BUY.
    pub fn reserved_cash(&self) -> Cash {
        match self.terms.side {
            Side::Buy => Cash(self.reserved as i64),
            Side::Sell => Cash::ZERO,
        }
    }

    /// Shares reserved for the unfilled rest of a SELL.
    pub fn reserved_qty(&self) -> Qty {
        match self.terms.side {
            Side::Buy => Qty::ZERO,
            Side::Sell => Qty(self.reserved),
        }
    }

    /// Unfilled shares.
    pub fn unfilled(&self) -> Qty {
        Qty(self.terms.quantity.0.saturating_sub(self.filled.0))
    }

    /// Whether it rests: neither filled whole nor closed.
    pub fn is_open(&self) -> bool {
        self.status() == Status::Pending
    }

    /// The status, derived from fills and closing reason (engine/docs/orders.md §3).
    pub fn status(&self) -> Status {
        match self.closed {
            Some(CloseReason::FakRest) => Status::Filled,
            Some(CloseReason::MarketResolved | CloseReason::MarketClosed) => Status::Expired,
            Some(_) => Status::Cancelled,
            // An immediate order that was not closed is filled as far as requested (a budget, a tolerated shortfall).
            None if self.filled >= self.terms.quantity || self.terms.time_in_force.immediate() => Status::Filled,
            None => Status::Pending,
        }
    }

    /// Sets its reservation.
    pub(crate) fn reserve(&mut self, cash: Cash, qty: Qty) {
        assert!(cash >= Cash::ZERO, "a reservation is positive: {cash:?} of order {}", self.id);
        self.reserved = match self.terms.side {
            Side::Buy => {
                assert!(qty.is_zero(), "a BUY reserves cash, not shares: {qty:?} of order {}", self.id);
                cash.0 as u64
            }
            Side::Sell => {
                assert!(cash == Cash::ZERO, "a SELL reserves shares, not cash: {cash:?} of order {}", self.id);
                qty.0
            }
        };
    }

    /// Adds one fill.
    pub(crate) fn fill(&mut self, qty: Qty, notional: Cash, fee: Cash, row: u32, at: Timestamp) {
        assert!(self.closed.is_none(), "only an order that has not ended is filled: order {}", self.id);
        self.filled += qty;
        self.notional += notional;
        self.fee += fee;
        self.filled_at = at;
        self.last_fill = row;
        assert!(
            self.filled <= self.terms.quantity || self.terms.amount().is_some(),
            "filled ≤ ordered: {:?} of {:?}, order {}",
            self.filled,
            self.terms.quantity,
            self.id
        );
    }

    /// Closes it; nothing stays reserved.
    pub(crate) fn close(&mut self, reason: CloseReason, at: Timestamp) {
        assert!(self.closed.is_none(), "an order ends once: order {}", self.id);
        self.closed = Some(reason);
        self.closed_at = at;
        self.reserved = 0;
        self.awaiting_book = false;
    }

    /// Limits its times to at most `at`.
    pub(crate) fn set_back(&mut self, at: Timestamp) {
        for moment in [&mut self.created_at, &mut self.filled_at, &mut self.closed_at] {
            *moment = (*moment).min(at);
        }
    }

    /// The order with the figures of an earlier moment (an idempotent replay, which has no figures of a walk:
    /// gateway/docs/wire.md §11).
    pub(crate) fn as_of(
        &self,
        filled: (Qty, Cash, Cash, Option<Timestamp>),
        closed: Option<CloseReason>,
        held: bool,
    ) -> Order {
        let mut then = self.clone();
        (then.filled, then.notional, then.fee) = (filled.0, filled.1, filled.2);
        then.filled_at = filled.3.unwrap_or_default();
        then.closed = closed;
        then.closed_at = if closed.is_some() { self.closed_at } else { Timestamp(0) };
        then.held = held;
        let terms = &mut then.terms;
        (terms.spread_bps, terms.impact_bps, terms.book_walk_levels) = (Figure::of(None), Figure::of(None), u16::MAX);
        then
    }
}

/// One execution of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    pub id: TradeId,
    pub order: OrderId,
    pub qty: Qty,
    pub notional: Cash,
    pub fee: Cash,
    pub at: Timestamp,
    /// The recording's time; zero if server time is the venue's.
    venue_at: Timestamp,
    /// 0 for a maker that pays nothing.
    pub fee_rate: Bps,
    quote_age_ms: Figure,
    /// Row of the previous fill of the same order, or [`NO_FILL`].
    pub(crate) before: u32,
    pub liquidity: Liquidity,
    pub source: PriceSource,
    /// Its fee is by the schedule of its market.
    pub(crate) by_schedule: bool,
}

impl Fill {
    /// What decided its fee.
    pub fn fee_source(&self) -> FeeSource {
        if self.by_schedule { FeeSource::MarketSchedule } else { FeeSource::of_table(self.charged_rate()) }
    }

    /// The rate that it was charged: that of a maker counts only if a schedule charges makers.
    pub fn charged_rate(&self) -> Bps {
        let is_free = self.liquidity == Liquidity::Maker && !self.by_schedule;
        if is_free { Bps(0) } else { self.fee_rate }
    }

    /// The recording's time, if a recording drives the venue's clock.
    pub fn venue_at(&self) -> Option<Timestamp> {
        moment(self.venue_at)
    }

    /// Age of the quote used.
    pub fn quote_age_ms(&self) -> Option<u32> {
        self.quote_age_ms.get()
    }
}

impl Fill {
    /// The row of a fill that follows the one in row `before` of the same order.
    pub(crate) fn of(filled: &fact::OrderFilled, before: u32) -> Fill {
        Fill {
            id: filled.trade,
            order: filled.order,
            qty: filled.qty,
            notional: filled.notional,
            fee: filled.fee,
            at: filled.at,
            venue_at: filled.venue_at.unwrap_or_default(),
            fee_rate: filled.fee_rate,
            quote_age_ms: Figure::of(filled.quote_age_ms),
            before,
            liquidity: filled.liquidity,
            source: filled.source,
            by_schedule: false,
        }
    }
}

/// The reference to a rare row as [`Terms`] stores it.
fn parts(rare: Option<SharedRow<Rare>>) -> (Option<Arc<Block<Rare>>>, u8) {
    match rare.map(SharedRow::into_parts) {
        Some((block, at)) => (Some(block), at),
        None => (None, 0),
    }
}

fn moment(at: Timestamp) -> Option<Timestamp> {
    (at != Timestamp(0)).then_some(at)
}

#[cfg(test)]
pub(crate) mod tests;
