//! With `trade_require_book_depth` off (engine/docs/execution.md §2): without a book an immediate order fills whole at
//! the first known price (midpoint, last trade, catalogue), if that is inside its limit and near enough to the
//! displayed price.

use crate::amount::{Cash, Qty, floored_shares_for};
use crate::book::MarkSource;
use crate::decide::fill::{BySchedule, Execution};
use crate::decide::quality::per_share;
use crate::decide::take::Ground;
use crate::id::InstrumentId;
use crate::market::terms::Interval;
use crate::order::{Liquidity, OrderTerms, PriceSource, Side};
use crate::rules::Fees;

/// The result of the search for a price.
pub enum Cascade {
    /// No price, or an amount too small for one step of shares.
    Nothing,
    /// Outside the limit or the band.
    Unbelievable,
    Found(Execution),
}

/// Finds the price of an immediate order without a book. The order fills completely at that price.
pub fn find(ground: &Ground<'_>, terms: &OrderTerms, fees: &Fees) -> Cascade {
    let Some(mark) = ground.books.mark(terms.instrument) else { return Cascade::Nothing };
    let limit = per_share(terms.limit);
    let inside_limit = match terms.side {
        Side::Buy => mark.price <= limit,
        Side::Sell => mark.price >= limit,
    };
    let shown = ground.books.display(terms.instrument);
    let in_band = shown.is_none_or(|shown| within(mark.price, shown, band_percent(ground, terms.instrument)));
    if !inside_limit || !in_band {
        return Cascade::Unbelievable;
    }
    let qty = match terms.amount {
        None => terms.quantity,
        Some(amount) => floored_shares_for(amount, mark.price).unwrap_or(Qty::ZERO),
    };
    if qty.is_zero() {
        return Cascade::Nothing;
    }
    Cascade::Found(Execution {
        qty,
        notional: notional_half_up(mark.price, qty),
        fee: fees.taker.fee_at(qty, mark.price),
        fee_rate: fees.taker.bps(),
        by_schedule: BySchedule::of_taker(fees),
        liquidity: Liquidity::Taker,
        source: match mark.source {
            MarkSource::Midpoint => PriceSource::ClobMidpointCached,
            MarkSource::LastTrade => PriceSource::LastTrade,
            MarkSource::Display => PriceSource::Display,
        },
        quote_age_ms: terms.quality.quote_age_ms,
        levels: Vec::new(),
    })
}

/// Maximum distance of a price from the displayed one.
fn band_percent(ground: &Ground<'_>, instrument: InstrumentId) -> i64 {
    let market = ground.catalog.market(instrument.market());
    match market.and_then(|market| market.listing.updown).map(|window| window.interval) {
        None => 15,
        Some(Interval::Hour | Interval::FourHours | Interval::Daily) => 25,
        Some(Interval::FifteenMinutes) => 30,
        Some(Interval::FiveMinutes) => 50,
    }
}

fn within(price: Cash, shown: Cash, percent: i64) -> bool {
    100 * (price.0 - shown.0).abs() <= percent * shown.0
}

/// price (10⁻⁶ USD a share) × quantity, half up.
fn notional_half_up(price: Cash, qty: Qty) -> Cash {
    let exact = i128::from(price.0) * i128::from(qty.0);
    Cash(i64::try_from((exact + 500_000) / 1_000_000).expect("shares of an order and prices are bounded"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::{Bps, Price};
    use crate::fee::{FeeRounding, Tariff, taker_fee};

    #[test]
    fn the_fee_is_the_same_on_the_grid_and_exact_between() {
        for (qty, price, rate) in
            [(13_000_000, 5_000, 700), (1_000_000, 101, 300), (50_000_000, 4_200, 500), (100, 1, 1)]
        {
            let fine = Tariff::of_category(Bps(rate), FeeRounding::HalfUp).fee_at(Qty(qty), per_share(Price(price)));
            assert_eq!(fine, taker_fee(Qty(qty), Price(price), Bps(rate)));
        }
        let five = Tariff::of_category(Bps(500), FeeRounding::HalfUp);
        assert_eq!(five.fee_at(Qty::from_shares(1_000), Cash(415_050)), Cash(12_139_170));
        assert_eq!(notional_half_up(Cash(415_050), Qty(10)), Cash(4));
        assert!(within(Cash(575_000), Cash(500_000), 15) && !within(Cash(575_001), Cash(500_000), 15));
    }
}
