//! An order and its fills as they are kept: 160 bytes and 72 for each fill. What not every order has (an id of its sender's
//! above all) takes 64 bytes more, in blocks of the shard.
//!
//! Moments and amounts that may be absent are kept as zero (no moment is 1970, no budget is nothing), small figures
//! as the largest number; their accessors say `Option`.

use super::text::Text;
use super::{
    CloseReason, EntryRoute, Liquidity, OrderTerms, OrderType, PriceSource, Quality, Side, Status, TimeInForce,
};
use crate::amount::{Bps, Cash, Price, Qty};
use crate::fact;
use crate::id::{InstrumentId, KeyId, OrderId, TradeId, WalletId};
use crate::mutation::packed::{bits, has};
use crate::time::Timestamp;
use crate::user::shared_rows::{Block, SharedRow, SharedRows};
use std::sync::Arc;

mod packed;

/// What was asked, compactly: see [`OrderTerms`] for the meaning of each field.
#[derive(Clone)]
pub struct Terms {
    pub wallet: WalletId,
    pub key: KeyId,
    pub quantity: Qty,
    amount: Cash,
    expiration: Timestamp,
    /// The block of the row with what not every order has; its place there is `rare_at`. The block is shared with the copies
    /// that leave in answers.
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

/// What not every order has, in 56 bytes: with the mark that it is there, 64.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rare {
    fillable: Fillable,
    client_order_id: Option<Text>,
    /// Elsewhere, so that the row stays that short.
    rarest: Option<Box<Rarest>>,
}

/// What hardly an order has.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rarest {
    rounded_from: Option<Text>,
    order_hash: Option<[u8; 32]>,
}

/// Shares that may be unknown, in eight bytes; the largest number is that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fillable(u64);

/// A figure that may be absent, in four bytes; beyond 4 294 967 294 it is that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Figure(u32);

impl Rare {
    const NONE: Rare = Rare { fillable: Fillable::NONE, client_order_id: None, rarest: None };
}

impl Rarest {
    /// `None` when it holds nothing.
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
    /// Keeps what not every order has in `rares`.
    #[inline]
    pub(crate) fn new(asked: &OrderTerms, rares: &mut SharedRows<Rare>) -> Terms {
        let quality = asked.quality;
        let displayed = quality.displayed.map(|cash| u32::try_from(cash.0.max(0)).unwrap_or(u32::MAX));
        let rare = Rare {
            fillable: Fillable::of(quality.fillable),
            client_order_id: asked.client_order_id.as_deref().map(Text::new),
            rarest: Rarest { rounded_from: asked.rounded_from.as_deref().map(Text::new), order_hash: asked.order_hash }
                .boxed(),
        };
        let (rare_block, rare_at) = parts((rare != Rare::NONE).then(|| rares.push(rare)));
        Terms {
            wallet: asked.wallet,
            key: asked.key,
            quantity: asked.quantity,
            amount: asked.amount.unwrap_or_default(),
            expiration: asked.expiration.unwrap_or_default(),
            rare_block,
            instrument: asked.instrument,
            fee_rate: asked.fee_rate,
            displayed: Figure::of(displayed),
            quote_age_ms: Figure::of(quality.quote_age_ms),
            spread_bps: Figure::of(quality.spread_bps),
            slippage_bps: Figure::of(quality.slippage_bps),
            impact_bps: Figure::of(quality.impact_bps),
            book_walk_levels: quality.book_walk_levels.map_or(u16::MAX, |levels| levels.min(u16::MAX - 1)),
            limit: asked.limit,
            side: asked.side,
            order_type: asked.order_type,
            time_in_force: asked.time_in_force,
            route: asked.route,
            post_only: asked.post_only,
            marketable: asked.marketable,
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

    /// When a GTD order is dead.
    pub fn expiration(&self) -> Option<Timestamp> {
        moment(self.expiration)
    }

    /// The sender's own id.
    pub fn client_order_id(&self) -> Option<&str> {
        self.rare()?.client_order_id.as_ref().map(Text::as_str)
    }

    /// Whether that is `id`.
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

    /// Figures about the moment of placement.
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

    /// The terms in the shape of their fact.
    pub fn to_asked(&self) -> OrderTerms {
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
        }
    }
}

/// Terms are equal when they say the same, in whatever block a part of it lies.
impl PartialEq for Terms {
    fn eq(&self, other: &Terms) -> bool {
        self.to_asked() == other.to_asked()
    }
}

impl Eq for Terms {}

impl std::fmt::Debug for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_asked().fmt(f)
    }
}

/// An order as it stands. A copy allocates nothing.
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
    /// Resting without having met a live book (outage or too old a quote at placement): its first cycle on one
    /// decides taker or maker (engine/docs/execution.md §6, §10).
    pub awaiting_book: bool,
    /// `hold_reason` is `venue_outage`.
    pub held: bool,
    /// Is in the indexes of resting orders.
    pub(crate) resting: bool,
}

/// In place of the row of a fill: there is none.
pub(crate) const NO_FILL: u32 = u32::MAX;

impl Order {
    /// A new order, which keeps in `rares` what not every one has.
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

    /// When it was last filled.
    pub fn filled_at(&self) -> Option<Timestamp> {
        moment(self.filled_at)
    }

    /// Why and when it ended without being filled whole.
    pub fn closed(&self) -> Option<(CloseReason, Timestamp)> {
        self.closed.map(|reason| (reason, self.closed_at))
    }

    /// Cash set aside in the wallet for the unfilled rest of a BUY.
    pub fn reserved_cash(&self) -> Cash {
        match self.terms.side {
            Side::Buy => Cash(self.reserved as i64),
            Side::Sell => Cash::ZERO,
        }
    }

    /// Shares set aside for the unfilled rest of a SELL.
    pub fn reserved_qty(&self) -> Qty {
        match self.terms.side {
            Side::Buy => Qty::ZERO,
            Side::Sell => Qty(self.reserved),
        }
    }

    /// Shares not filled yet.
    pub fn unfilled(&self) -> Qty {
        Qty(self.terms.quantity.0.saturating_sub(self.filled.0))
    }

    /// Resting in the book: neither filled whole nor closed.
    pub fn is_open(&self) -> bool {
        self.status() == Status::Pending
    }

    /// The status that follows from fills and closing reason (engine/docs/orders.md §3).
    pub fn status(&self) -> Status {
        match self.closed {
            Some(CloseReason::FakRest) => Status::Filled,
            Some(CloseReason::MarketResolved | CloseReason::MarketClosed) => Status::Expired,
            Some(_) => Status::Cancelled,
            // An immediate order that was not closed was filled as far as it asked (a budget, a tolerated shortfall).
            None if self.filled >= self.terms.quantity || self.terms.time_in_force.immediate() => Status::Filled,
            None => Status::Pending,
        }
    }

    /// Sets what is set aside for it.
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

    /// Ends it; nothing stays set aside.
    pub(crate) fn close(&mut self, reason: CloseReason, at: Timestamp) {
        assert!(self.closed.is_none(), "an order ends once: order {}", self.id);
        self.closed = Some(reason);
        self.closed_at = at;
        self.reserved = 0;
        self.awaiting_book = false;
    }

    /// Nothing happened to it later than `at`.
    pub(crate) fn set_back(&mut self, at: Timestamp) {
        for moment in [&mut self.created_at, &mut self.filled_at, &mut self.closed_at] {
            *moment = (*moment).min(at);
        }
    }

    /// The same order with the figures of an earlier moment (an idempotent replay, which tells no figures of a walk:
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
    /// The recording's time, zero where server time is the venue's.
    venue_at: Timestamp,
    /// 0 for a maker fill.
    pub fee_rate: Bps,
    quote_age_ms: Figure,
    /// Row of the fill before this one of the same order, or [`NO_FILL`].
    pub(crate) before: u32,
    pub liquidity: Liquidity,
    pub source: PriceSource,
}

impl Fill {
    /// The recording's time, where a recording drives the venue's clock.
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
        }
    }
}

/// What [`Terms`] keeps of a row.
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
