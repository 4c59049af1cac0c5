//! Orders and fills as canonical bytes (engine/docs/digest.md).

use super::{Fill, HIGH_SLIPPAGE, Order, Rarest, STALE_QUOTE, Terms};
use crate::amount::Cash;
use crate::canonical::RowBytes;
use crate::id::TradeId;
use crate::mutation::packed::{bits, has};
use crate::realism::FillTerms;

impl Order {
    /// Appends its fields; `fills` are the ids of its fills in their order.
    pub(crate) fn put_canonical(&self, fills: &[TradeId], row: &mut RowBytes<'_>) {
        const NO_RAREST: &Rarest = &Rarest { rounded_from: None, order_hash: None, fill: None };
        // The patterns name every field, so that none can be missed.
        let Order {
            id,
            terms,
            created_at,
            filled,
            notional,
            fee,
            filled_at: _,
            closed_at: _,
            reserved,
            // A place in a list; `fills` has the ids.
            last_fill: _,
            closed: _,
            awaiting_book,
            held,
            resting,
        } = self;
        let Terms {
            wallet,
            key,
            quantity,
            amount,
            expiration: _,
            rare_block: _,
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
            rare_at: _,
        } = terms;
        for number in [id.0, wallet.0, key.0, instrument.0.into(), limit.0.into(), quantity.0, fee_rate.0.into()] {
            row.number(number);
        }
        for number in [created_at.0, filled.0, notional.0 as u64, fee.0 as u64] {
            row.number(number);
        }
        for word in [*side as u8, *order_type as u8, *time_in_force as u8, *route as u8] {
            row.byte(word);
        }
        let (high_slippage, stale_quote) = (has(*warnings, HIGH_SLIPPAGE), has(*warnings, STALE_QUOTE));
        row.byte(bits([*post_only, *marketable, high_slippage, stale_quote, *awaiting_book, *held, *resting]));
        row.optional(1, (*amount != Cash::ZERO).then_some(amount.0 as u64));
        row.optional(2, terms.expiration().map(|at| at.0));
        let figures = [displayed, quote_age_ms, spread_bps, slippage_bps, impact_bps];
        for (field, figure) in (3..).zip(figures) {
            row.optional(field, figure.get().map(u64::from));
        }
        row.optional(8, (*book_walk_levels != u16::MAX).then_some((*book_walk_levels).into()));
        let rare = terms.rare();
        row.optional(9, rare.and_then(|rare| rare.fillable.get()).map(|qty| qty.0));
        let Rarest { rounded_from, order_hash, fill } =
            rare.and_then(|rare| rare.rarest.as_deref()).unwrap_or(NO_RAREST);
        let client_order_id = rare.and_then(|rare| rare.client_order_id.as_ref());
        for (field, text) in [(10, client_order_id), (11, rounded_from.as_ref())] {
            if let Some(text) = text {
                row.byte(field);
                row.text(text.as_bytes());
            }
        }
        if let Some(hash) = order_hash {
            row.byte(12);
            row.hash(hash);
        }
        row.optional(13, self.filled_at().map(|at| at.0));
        if let Some((reason, at)) = self.closed() {
            row.byte(14);
            row.byte(reason as u8);
            row.number(at.0);
        }
        row.optional(15, (*reserved != 0).then_some(*reserved));
        if !fills.is_empty() {
            row.byte(16);
            row.number(fills.len() as u64);
            fills.iter().for_each(|fill| row.number(fill.0));
        }
        if let Some(FillTerms { model, n, cancel_share, depth_share, match_window_ms, half_life_s }) = fill {
            row.byte(17);
            row.byte(*model as u8);
            for number in [(*n).into(), cancel_share.0, depth_share.0, *match_window_ms, *half_life_s] {
                row.number(number.into());
            }
        }
    }
}

impl Fill {
    /// Appends its fields.
    pub(crate) fn put_canonical(&self, row: &mut RowBytes<'_>) {
        let Fill {
            id,
            order,
            qty,
            notional,
            fee,
            at,
            venue_at: _,
            fee_rate,
            quote_age_ms,
            // A place in a list: the order has the ids of its fills.
            before: _,
            liquidity,
            source,
            by_schedule,
        } = self;
        for number in [id.0, order.0, qty.0, notional.0 as u64, fee.0 as u64, at.0, fee_rate.0.into()] {
            row.number(number);
        }
        row.byte(*liquidity as u8);
        row.byte(*source as u8);
        row.optional(1, quote_age_ms.get().map(u64::from));
        row.optional(2, self.venue_at().map(|at| at.0));
        row.optional(3, by_schedule.then_some(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::{Bps, Price, Qty};
    use crate::canonical::Kind;
    use crate::canonical::tests::hex_of;
    use crate::fact;
    use crate::id::{InstrumentId, KeyId, OrderId, PositionId, WalletId};
    use crate::order::{CloseReason, Liquidity, OrderTerms, PriceSource, Quality, Side, TimeInForce};
    use crate::realism::FillModel;
    use crate::time::Timestamp;
    use crate::user::shared_rows::SharedRows;

    /// Numbers as eight bytes each.
    fn numbers(numbers: &[u64]) -> String {
        numbers.iter().flat_map(|number| number.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_bytes_of_orders_are_golden() {
        let limit = OrderTerms {
            fee_rate: Bps(40),
            ..OrderTerms::limit(WalletId(1), KeyId(2), InstrumentId(7), Side::Sell, Price(4_000), Qty(9))
        };
        let full = OrderTerms {
            amount: Some(Cash(-3)),
            expiration: Some(Timestamp(11)),
            time_in_force: TimeInForce::Gtd,
            post_only: true,
            client_order_id: Some("é".to_owned()),
            marketable: true,
            quality: Quality {
                displayed: Some(Cash(21)),
                quote_age_ms: Some(22),
                spread_bps: Some(23),
                slippage_bps: Some(24),
                impact_bps: Some(25),
                book_walk_levels: Some(26),
                fillable: Some(Qty(27)),
                high_slippage: true,
                stale_quote: true,
            },
            rounded_from: Some("1.5".to_owned()),
            order_hash: Some([0xab; 32]),
            fill: Some(FillTerms { model: FillModel::QueueProb, n: 3, cancel_share: Bps(31), ..FillTerms::KIND }),
            ..limit.clone()
        };
        let mut rares = SharedRows::new();
        let plain = Order::new(OrderId(5), &limit, Timestamp(6), &mut rares);
        let mut filled = Order::new(OrderId(5), &full, Timestamp(6), &mut rares);
        filled.fill(Qty(3), Cash(4), Cash(1), 0, Timestamp(8));
        filled.reserve(Cash::ZERO, Qty(2));
        (filled.awaiting_book, filled.held, filled.resting) = (true, true, true);
        let mut closed = filled.clone();
        closed.close(CloseReason::CancelAll, Timestamp(12));
        closed.resting = false;
        let head = "01".to_owned() + &numbers(&[5, 1, 2, 7, 4_000, 9, 40, 6]);
        let optional = |field: u64, number: u64| format!("{field:02x}{}", numbers(&[number]));
        let figures: String = (3..=9).map(|field| optional(field, field + 18)).collect();
        let common = format!(
            "{}{}{figures}0a{}c3a90b{}312e350c{}{}",
            optional(1, -3_i64 as u64),
            optional(2, 11),
            numbers(&[2]),
            numbers(&[3]),
            "ab".repeat(32),
            optional(13, 8),
        );
        let of_fills = format!("10{}", numbers(&[2, 70, 71]));
        let of_model = format!("1104{}", numbers(&[3, 31, 10_000, 1_000, 60]));
        // (order, its fills, bytes)
        let rows = [
            (&plain, &[][..], format!("{head}{}0101000000", numbers(&[0, 0, 0]))),
            (
                &filled,
                &[TradeId(70), TradeId(71)][..],
                format!("{head}{}010101007f{common}{}{of_fills}{of_model}", numbers(&[3, 4, 1]), optional(15, 2)),
            ),
            (
                &closed,
                &[TradeId(70), TradeId(71)][..],
                format!("{head}{}010101002f{common}0e05{}{of_fills}{of_model}", numbers(&[3, 4, 1]), numbers(&[12])),
            ),
        ];
        for (order, fills, expected) in &rows {
            assert_eq!(hex_of(Kind::Order, |row| order.put_canonical(fills, row)), *expected, "{order:?}");
        }
        println!("bytes of orders: {} cases", rows.len());
    }

    #[test]
    fn the_bytes_of_fills_are_golden() {
        let fact = fact::OrderFilled {
            order: OrderId(5),
            trade: TradeId(70),
            position: PositionId(9),
            qty: Qty(3),
            notional: Cash(4),
            fee: Cash(-1),
            fee_rate: Bps(40),
            liquidity: Liquidity::Maker,
            source: PriceSource::MatchingEngine,
            quote_age_ms: None,
            cost_out: Cash::ZERO,
            reserved_cash: Cash::ZERO,
            reserved_qty: Qty::ZERO,
            levels: Vec::new(),
            at: Timestamp(8),
            venue_at: None,
        };
        let head = "02".to_owned() + &numbers(&[70, 5, 3, 4, -1_i64 as u64, 8, 40]) + "0101";
        let later = fact::OrderFilled { quote_age_ms: Some(12), venue_at: Some(Timestamp(13)), ..fact.clone() };
        let optional = format!("01{}02{}", numbers(&[12]), numbers(&[13]));
        let rows = [(fact, head.clone()), (later, head + &optional)];
        for (fact, expected) in &rows {
            // The place of the fill before it does not count.
            for before in [super::super::NO_FILL, 3] {
                let fill = Fill::of(fact, before);
                assert_eq!(hex_of(Kind::Fill, |row| fill.put_canonical(row)), *expected, "{fact:?}");
                let charged = Fill { by_schedule: true, ..fill };
                let expected = format!("{expected}03{}", numbers(&[1]));
                assert_eq!(hex_of(Kind::Fill, |row| charged.put_canonical(row)), expected, "{fact:?} by a schedule");
            }
        }
        println!("bytes of fills: {} cases", 4 * rows.len());
    }
}
