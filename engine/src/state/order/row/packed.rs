//! Orders and fills in the packed form of a snapshot.

use super::{Figure, Fill, Fillable, HIGH_SLIPPAGE, NO_FILL, Order, Rare, Rarest, STALE_QUOTE, Terms, parts};
use crate::amount::{Bps, Cash, Price, Qty};
use crate::bytes::CodecError;
use crate::describe::Words;
use crate::id::{InstrumentId, KeyId, OrderId, TradeId, WalletId};
use crate::mutation::packed::{
    Numbered, Packed, Packer, bits, has, take_byte, take_bytes, take_figure, take_number, take_signed, take_small,
    take_step, take_text,
};
use crate::order::text::Text;
use crate::order::{CloseReason, EntryRoute, Liquidity, OrderType, PriceSource, Side, TimeInForce};
use crate::realism::{FillModel, FillTerms};
use crate::time::Timestamp;
use crate::user::shared_rows::SharedRows;

/// Optional parts of an order; the bits of its first byte.
const AMOUNT: u32 = 0;
const EXPIRATION: u32 = 1;
const RARE: u32 = 2;
const FIGURES: u32 = 3;
const FILLED: u32 = 4;
const ENDED: u32 = 5;
const RESERVED: u32 = 6;
/// Another wallet or key than the previous order.
const MOVED: u32 = 7;

impl Packed for Order {
    type Shared = SharedRows<Rare>;

    fn pack(&self, before: Option<&Order>, packer: &mut Packer) {
        // The patterns name every field, so that none can be missed.
        let Order {
            id,
            terms,
            created_at,
            filled,
            notional,
            fee,
            filled_at,
            closed_at,
            reserved,
            last_fill,
            closed,
            awaiting_book,
            held,
            resting,
        } = self;
        let Terms {
            wallet,
            key,
            quantity,
            amount,
            expiration,
            instrument,
            fee_rate,
            displayed,
            quote_age_ms,
            spread_bps,
            slippage_bps,
            impact_bps,
            book_walk_levels,
            limit,
            side,
            order_type,
            time_in_force,
            route,
            post_only,
            marketable,
            warnings,
            // Where `rare` is.
            rare_block: _,
            rare_at: _,
        } = terms;
        let rare = terms.rare();
        let figures = [displayed, quote_age_ms, spread_bps, slippage_bps, impact_bps];
        let has_figures = figures.iter().any(|figure| figure.0 != Figure::NONE) || *book_walk_levels != u16::MAX;
        let no_fill = (Qty::ZERO, Cash::ZERO, Cash::ZERO, Timestamp(0), NO_FILL);
        let has_filled = (*filled, *notional, *fee, *filled_at, *last_fill) != no_fill;
        let has_ended = closed.is_some() || *closed_at != Timestamp(0);
        let of_before = before.map_or((WalletId(0), KeyId(0)), |before| (before.terms.wallet, before.terms.key));
        let has_moved = (*wallet, *key) != of_before;
        packer.byte(bits([
            *amount != Cash::ZERO,
            *expiration != Timestamp(0),
            rare.is_some(),
            has_figures,
            has_filled,
            has_ended,
            *reserved != 0,
            has_moved,
        ]));
        packer.byte(*side as u8 | (*order_type as u8) << 1 | (*time_in_force as u8) << 2 | (*route as u8) << 5);
        let (high_slippage, stale_quote) = (has(*warnings, HIGH_SLIPPAGE), has(*warnings, STALE_QUOTE));
        packer.byte(bits([*post_only, *marketable, high_slippage, stale_quote, *awaiting_book, *held, *resting]));
        packer.step(before.map_or(0, |before| before.id.0), id.0);
        packer.step(before.map_or(0, |before| before.created_at.0), created_at.0);
        packer.number(quantity.0);
        packer.number(instrument.0.into());
        packer.number(fee_rate.0.into());
        packer.number(limit.0.into());
        if has_moved {
            packer.step(id.0, wallet.0);
            packer.step(id.0, key.0);
        }
        if *amount != Cash::ZERO {
            packer.signed(amount.0);
        }
        if *expiration != Timestamp(0) {
            packer.step(created_at.0, expiration.0);
        }
        if has_figures {
            figures.iter().for_each(|figure| packer.figure(figure.0));
            packer.number(book_walk_levels.wrapping_add(1).into());
        }
        if has_filled {
            packer.number(filled.0);
            packer.signed(notional.0);
            packer.signed(fee.0);
            packer.step(created_at.0, filled_at.0);
            packer.figure(*last_fill);
        }
        if has_ended {
            packer.number(closed.map_or(0, |reason| reason as u64 + 1));
            packer.step(created_at.0, closed_at.0);
        }
        if *reserved != 0 {
            packer.number(*reserved);
        }
        if let Some(rare) = rare {
            rare.pack(packer);
        }
    }

    fn unpack(before: Option<&Order>, rares: &mut SharedRows<Rare>, input: &mut &[u8]) -> Result<Order, CodecError> {
        let [shown, shape, flags] = [take_byte(input)?, take_byte(input)?, take_byte(input)?];
        let id = take_step(before.map_or(0, |before| before.id.0), input)?;
        let created_at = take_step(before.map_or(0, |before| before.created_at.0), input)?;
        let quantity = Qty(take_number(input)?);
        let instrument = InstrumentId(take_small(input)?);
        let fee_rate = Bps(take_small(input)?);
        let limit = Price(take_small(input)?);
        let (wallet, key) = match before {
            _ if has(shown, MOVED) => (WalletId(take_step(id, input)?), KeyId(take_step(id, input)?)),
            Some(before) => (before.terms.wallet, before.terms.key),
            None => (WalletId(0), KeyId(0)),
        };
        let amount = if has(shown, AMOUNT) { Cash(take_signed(input)?) } else { Cash::ZERO };
        let expiration = if has(shown, EXPIRATION) { take_step(created_at, input)? } else { 0 };
        let mut figures = [Figure(Figure::NONE); 5];
        let mut book_walk_levels = u16::MAX;
        if has(shown, FIGURES) {
            for figure in &mut figures {
                *figure = Figure(take_figure(input)?);
            }
            book_walk_levels = take_small::<u16>(input)?.wrapping_sub(1);
        }
        let [displayed, quote_age_ms, spread_bps, slippage_bps, impact_bps] = figures;
        let (mut filled, mut notional, mut fee, mut filled_at, mut last_fill) = (0, 0, 0, 0, NO_FILL);
        if has(shown, FILLED) {
            (filled, notional, fee) = (take_number(input)?, take_signed(input)?, take_signed(input)?);
            (filled_at, last_fill) = (take_step(created_at, input)?, take_figure(input)?);
        }
        let (mut closed, mut closed_at) = (None, 0);
        if has(shown, ENDED) {
            let reason = take_byte(input)?;
            closed = reason.checked_sub(1).map(CloseReason::of_number).transpose()?;
            closed_at = take_step(created_at, input)?;
        }
        let reserved = if has(shown, RESERVED) { take_number(input)? } else { 0 };
        let rare = if has(shown, RARE) { Some(rares.push(Rare::unpack(input)?)) } else { None };
        let (rare_block, rare_at) = parts(rare);
        let terms = Terms {
            wallet,
            key,
            quantity,
            amount,
            expiration: Timestamp(expiration),
            rare_block,
            instrument,
            fee_rate,
            displayed,
            quote_age_ms,
            spread_bps,
            slippage_bps,
            impact_bps,
            book_walk_levels,
            limit,
            side: Side::of_number(shape & 1)?,
            order_type: OrderType::of_number(shape >> 1 & 1)?,
            time_in_force: TimeInForce::of_number(shape >> 2 & 7)?,
            route: EntryRoute::of_number(shape >> 5)?,
            post_only: has(flags, 0),
            marketable: has(flags, 1),
            warnings: bits([has(flags, 2), has(flags, 3)]),
            rare_at,
        };
        Ok(Order {
            id: OrderId(id),
            terms,
            created_at: Timestamp(created_at),
            filled: Qty(filled),
            notional: Cash(notional),
            fee: Cash(fee),
            filled_at: Timestamp(filled_at),
            closed_at: Timestamp(closed_at),
            reserved,
            last_fill,
            closed,
            awaiting_book: has(flags, 4),
            held: has(flags, 5),
            resting: has(flags, 6),
        })
    }
}

impl Rare {
    fn pack(&self, packer: &mut Packer) {
        const NONE: &Rarest = &Rarest { rounded_from: None, order_hash: None, fill: None };
        let Rare { fillable, client_order_id, rarest } = self;
        let Rarest { rounded_from, order_hash, fill } = rarest.as_deref().unwrap_or(NONE);
        let fillable = fillable.get();
        packer.byte(bits([
            fillable.is_some(),
            client_order_id.is_some(),
            rounded_from.is_some(),
            order_hash.is_some(),
            fill.is_some(),
        ]));
        if let Some(qty) = fillable {
            packer.number(qty.0);
        }
        for text in [client_order_id, rounded_from].into_iter().flatten() {
            packer.text(text.as_bytes());
        }
        if let Some(hash) = order_hash {
            packer.output().extend_from_slice(hash);
        }
        if let Some(FillTerms { model, n, cancel_share, depth_share, match_window_ms, half_life_s }) = fill {
            packer.byte(*model as u8);
            for number in [(*n).into(), cancel_share.0, depth_share.0, *match_window_ms, *half_life_s] {
                packer.number(number.into());
            }
        }
    }

    fn unpack(input: &mut &[u8]) -> Result<Rare, CodecError> {
        let shown = take_byte(input)?;
        let fillable = Fillable::of(if has(shown, 0) { Some(Qty(take_number(input)?)) } else { None });
        let client_order_id = if has(shown, 1) { Some(Text::new(take_text(input)?)) } else { None };
        let rounded_from = if has(shown, 2) { Some(Text::new(take_text(input)?)) } else { None };
        let order_hash = if has(shown, 3) { Some(take_bytes(input)?) } else { None };
        let fill = if has(shown, 4) { Some(take_fill(input)?) } else { None };
        Ok(Rare { fillable, client_order_id, rarest: Rarest { rounded_from, order_hash, fill }.boxed() })
    }
}

fn take_fill(input: &mut &[u8]) -> Result<FillTerms, CodecError> {
    Ok(FillTerms {
        model: FillModel::of_number(take_byte(input)?)?,
        n: take_small(input)?,
        cancel_share: Bps(take_small(input)?),
        depth_share: Bps(take_small(input)?),
        match_window_ms: take_small(input)?,
        half_life_s: take_small(input)?,
    })
}

/// Bit of a fill's first byte: it has the recording's time, as its last field.
const HAS_VENUE_AT: u8 = 1 << 7;
/// Its fee is by the schedule of its market.
const BY_SCHEDULE: u8 = 1 << 6;
const _: () = assert!(<PriceSource as Words>::ALL.len() <= 32);

impl Packed for Fill {
    type Shared = ();

    fn pack(&self, fill_before: Option<&Fill>, packer: &mut Packer) {
        let Fill {
            id,
            order,
            qty,
            notional,
            fee,
            at,
            venue_at,
            fee_rate,
            quote_age_ms,
            before,
            liquidity,
            source,
            by_schedule,
        } = self;
        let has_venue_at = *venue_at != Timestamp(0);
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        let shown = bit(has_venue_at, HAS_VENUE_AT) | bit(*by_schedule, BY_SCHEDULE);
        packer.byte(*liquidity as u8 | (*source as u8) << 1 | shown);
        packer.step(fill_before.map_or(0, |before| before.id.0), id.0);
        packer.step(id.0, order.0);
        packer.number(qty.0);
        packer.signed(notional.0);
        packer.signed(fee.0);
        packer.step(fill_before.map_or(0, |before| before.at.0), at.0);
        packer.number(fee_rate.0.into());
        packer.figure(quote_age_ms.0);
        packer.figure(*before);
        if has_venue_at {
            packer.step(fill_before.map_or(0, |before| before.venue_at.0), venue_at.0);
        }
    }

    fn unpack(fill_before: Option<&Fill>, (): &mut (), input: &mut &[u8]) -> Result<Fill, CodecError> {
        let shape = take_byte(input)?;
        let id = take_step(fill_before.map_or(0, |before| before.id.0), input)?;
        let mut fill = Fill {
            id: TradeId(id),
            order: OrderId(take_step(id, input)?),
            qty: Qty(take_number(input)?),
            notional: Cash(take_signed(input)?),
            fee: Cash(take_signed(input)?),
            at: Timestamp(take_step(fill_before.map_or(0, |before| before.at.0), input)?),
            venue_at: Timestamp(0),
            fee_rate: Bps(take_small(input)?),
            quote_age_ms: Figure(take_figure(input)?),
            before: take_figure(input)?,
            liquidity: Liquidity::of_number(shape & 1)?,
            source: PriceSource::of_number((shape & !(HAS_VENUE_AT | BY_SCHEDULE)) >> 1)?,
            by_schedule: shape & BY_SCHEDULE != 0,
        };
        if shape & HAS_VENUE_AT != 0 {
            fill.venue_at = Timestamp(take_step(fill_before.map_or(0, |before| before.venue_at.0), input)?);
        }
        Ok(fill)
    }
}

impl Fill {
    /// In place of a fill before the first one of an order, where each is packed after the one before it: they differ
    /// little.
    pub(crate) fn origin(order: &Order) -> Fill {
        Fill {
            id: TradeId(order.id.0),
            order: order.id,
            qty: Qty::ZERO,
            notional: Cash::ZERO,
            fee: Cash::ZERO,
            at: order.created_at,
            venue_at: order.created_at,
            fee_rate: Bps(0),
            quote_age_ms: Figure(Figure::NONE),
            before: NO_FILL,
            liquidity: Liquidity::Taker,
            source: PriceSource::BookWalk,
            by_schedule: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::row::tests::resting_order;

    fn packed<T: Packed>(before: Option<&T>, row: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut packer = Packer::onto(&mut bytes);
        row.pack(before, &mut packer);
        packer.end();
        bytes
    }

    #[test]
    fn bytes_are_golden() {
        let first = resting_order(5, InstrumentId(7), Side::Buy, 4_000, None);
        let second = resting_order(6, InstrumentId(7), Side::Buy, 4_000, None);
        // Shown, shape, flags, id, moment; quantity; instrument, rate, limit; wallet and key.
        let expected = [0x80, 2, 0, 10, 2, 0x80, 0xad, 0xe2, 4, 7, 0xf4, 3, 0xa0, 31, 7, 5];
        assert_eq!(packed(None, &first), expected);
        let expected = [0, 2, 0, 2, 0, 0x80, 0xad, 0xe2, 4, 7, 0xf4, 3, 0xa0, 31];
        assert_eq!(packed(Some(&first), &second), expected, "of the same wallet and key");
    }

    /// Every field at its limits, each order and fill after each other.
    #[test]
    fn every_row_is_restored() {
        let (mut orders, mut rares) = (Vec::new(), SharedRows::new());
        for at in [0, 1, u64::MAX] {
            let mut order = resting_order(at, InstrumentId(at as u32), Side::Sell, at as u16, None);
            (order.created_at, order.filled, order.notional) = (Timestamp(at), Qty(at), Cash(at as i64));
            (order.fee, order.filled_at, order.closed_at) = (Cash(i64::MIN), Timestamp(at), Timestamp(!at));
            (order.reserved, order.last_fill, order.held) = (at, at as u32, at == 1);
            (order.awaiting_book, order.resting) = (at == 0, at > 1);
            order.closed = (at > 0).then_some(CloseReason::MarketClosed);
            let terms = &mut order.terms;
            (terms.wallet, terms.key, terms.quantity) = (WalletId(!at), KeyId(at), Qty(at));
            (terms.amount, terms.expiration, terms.fee_rate) = (Cash(i64::MAX), Timestamp(at), Bps(at as u32));
            (terms.displayed, terms.impact_bps, terms.book_walk_levels) = (Figure(at as u32), Figure(9), at as u16);
            (terms.time_in_force, terms.route) = (TimeInForce::Ioc, EntryRoute::Clob);
            (terms.post_only, terms.marketable, terms.warnings) = (at == 0, at == 1, bits([at > 1, at == 1]));
            let client_order_id = (at > 0).then(|| Text::new("é雨"));
            let rounded_from = (at > 0).then(|| Text::new(""));
            let fill = (at > 0).then_some(FillTerms {
                model: FillModel::QueueProb,
                n: at as u16,
                cancel_share: Bps(at as u32),
                depth_share: Bps(u32::MAX),
                match_window_ms: 0,
                half_life_s: at as u32,
            });
            let rarest = Rarest { rounded_from, order_hash: (at > 1).then_some([0x5a; 32]), fill }.boxed();
            let rare = Rare { fillable: Fillable(at), client_order_id, rarest };
            (terms.rare_block, terms.rare_at) = parts((at != 1).then(|| rares.push(rare)));
            orders.push(order);
        }
        let fills = [0, 7, u64::MAX].map(|at| Fill {
            id: TradeId(at),
            order: OrderId(!at),
            qty: Qty(at),
            notional: Cash(at as i64),
            fee: Cash(i64::MIN),
            at: Timestamp(at),
            venue_at: Timestamp(!at),
            fee_rate: Bps(at as u32),
            quote_age_ms: Figure(at as u32),
            before: at as u32,
            liquidity: Liquidity::Maker,
            source: PriceSource::EmergencyExitEntryPricePostExpiry,
            by_schedule: at != 7,
        });
        let count = come_back(&orders) + come_back(&fills);
        println!("rows after rows: {count} cases");
    }

    fn come_back<T: Packed + PartialEq + std::fmt::Debug>(rows: &[T]) -> usize {
        let mut shared = T::Shared::default();
        let befores = || rows.iter().map(Some).chain([None]);
        for (row, before) in rows.iter().flat_map(|row| befores().map(move |before| (row, before))) {
            let bytes = packed(before, row);
            let mut input = &bytes[..];
            let again = T::unpack(before, &mut shared, &mut input).expect("just packed");
            assert_eq!((&again, packed(before, &again)), (row, bytes.clone()), "and has the same bytes");
            assert!(input.is_empty());
            for end in 0..bytes.len() {
                assert!(T::unpack(before, &mut shared, &mut &bytes[..end]).is_err(), "{row:?} cut at {end}");
            }
        }
        rows.len() * befores().count()
    }
}
