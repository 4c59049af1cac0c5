//! Amounts of a signed order → its price and size (gateway/docs/venue-clients.md §5.2). Exact integers throughout: 1.00 is
//! 1 000 000.
//!
//! | | shares | price |
//! |---|---|---|
//! | BUY | takerAmount | makerAmount ÷ takerAmount |
//! | SELL | makerAmount | takerAmount ÷ makerAmount |
//!
//! Clients round price, size and amount by the tick independently, so the quotient can miss the grid by a little.

use engine::amount::{Cash, Price, Qty, TickSize};
use engine::command::RequestedPrice;
use engine::order::Side;

/// Digits of an amount: below 10¹² shares or USD, so that every product here fits.
const DIGITS_MAX: usize = 18;

/// What a signed order gives and what it takes, in 10⁻⁶; neither is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amounts {
    side: Side,
    maker: u64,
    taker: u64,
}

/// The allowed distance of a quotient from the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tolerance {
    TenthOfATick,
    HalfATick,
}

/// An integer above zero of at most 18 digits; `None` for every other text.
pub fn amount(text: &str) -> Option<u64> {
    let digits = (1..=DIGITS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().filter(|amount| *amount > 0)
}

impl Amounts {
    /// `None` when one of them is zero.
    pub fn new(side: Side, maker: u64, taker: u64) -> Option<Amounts> {
        (maker > 0 && taker > 0).then_some(Amounts { side, maker, taker })
    }

    pub fn side(&self) -> Side {
        self.side
    }

    /// Shares, as sent.
    pub fn shares(&self) -> Qty {
        Qty(match self.side {
            Side::Buy => self.taker,
            Side::Sell => self.maker,
        })
    }

    /// What a BUY offers to spend.
    pub fn budget(&self) -> Cash {
        // At most 18 digits.
        Cash(self.maker as i64)
    }

    /// What the order gives, in 10⁻⁶ shares or USD.
    pub fn maker(&self) -> u64 {
        self.maker
    }

    /// What the order takes, in 10⁻⁶ USD or shares.
    pub fn taker(&self) -> u64 {
        self.taker
    }

    /// USD and shares whose quotient is the price.
    pub fn price(&self) -> (u128, u128) {
        match self.side {
            Side::Buy => (self.maker.into(), self.taker.into()),
            Side::Sell => (self.taker.into(), self.maker.into()),
        }
    }

    /// The price as it is shown to people: half up to 10⁻⁶.
    pub fn shown_price(&self) -> Cash {
        let (usd, shares) = self.price();
        Cash(i64::try_from((2 * usd * 1_000_000 + shares) / (2 * shares)).unwrap_or(i64::MAX))
    }

    /// The limit of an order that may rest: the nearest price of the grid, if it is within a tenth of a tick.
    pub fn limit(&self, tick: TickSize) -> RequestedPrice {
        self.nearest(tick, Tolerance::TenthOfATick).and_then(price).map_or(RequestedPrice::OffGrid, RequestedPrice::At)
    }

    /// The worst price of an order that takes immediately: the nearest price of the grid. A BUY's cap is brought into the
    /// tradable range; a SELL's floor outside it is off the grid.
    pub fn worst(&self, tick: TickSize) -> RequestedPrice {
        let nearest = self.nearest(tick, Tolerance::HalfATick).unwrap_or(u128::MAX);
        match self.side {
            Side::Buy => {
                let (lowest, highest) = (tick.0, 10_000 - tick.0);
                let cap = price(nearest).map_or(highest, |cap| cap.0.clamp(lowest, highest));
                RequestedPrice::At(Price(cap))
            }
            Side::Sell => {
                price(nearest).filter(|floor| tick.contains(*floor)).map_or(RequestedPrice::OffGrid, RequestedPrice::At)
            }
        }
    }

    /// The nearest multiple of the tick, in 10⁻⁴ USD. Halfway between two it is the one that favours the sender.
    fn nearest(&self, tick: TickSize, tolerance: Tolerance) -> Option<u128> {
        let (usd, shares) = self.price();
        let (numerator, whole) = (usd * 10_000, shares * u128::from(tick.0));
        let (ticks, rest) = (numerator / whole, numerator % whole);
        let up = match (2 * rest).cmp(&whole) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => self.side == Side::Sell,
        };
        let distance = if up { whole - rest } else { rest };
        let near = match tolerance {
            Tolerance::TenthOfATick => 10 * distance <= whole,
            Tolerance::HalfATick => true,
        };
        near.then(|| (ticks + u128::from(up)) * u128::from(tick.0))
    }
}

/// A price in 10⁻⁴ USD; `None` above 1.
fn price(units: u128) -> Option<Price> {
    u16::try_from(units).ok().map(Price).filter(|price| *price <= Price::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS: [u16; 6] = [1_000, 100, 50, 25, 10, 1];

    fn amounts(side: Side, maker: u64, taker: u64) -> Amounts {
        Amounts::new(side, maker, taker).expect("not zero")
    }

    fn at(units: u16) -> RequestedPrice {
        RequestedPrice::At(Price(units))
    }

    #[test]
    fn an_amount_is_a_whole_number_above_zero() {
        let rows = [
            ("1", Some(1)),
            ("4100000", Some(4_100_000)),
            ("007", Some(7)),
            ("999999999999999999", Some(999_999_999_999_999_999)),
            ("1000000000000000000", None),
            ("9223372036854775807", None),
            ("9223372036854775808", None),
            ("18446744073709551616", None),
            ("0", None),
            ("000", None),
            ("-0", None),
            ("-1", None),
            ("+1", None),
            ("1e6", None),
            ("1E5", None),
            ("1e400", None),
            ("1.0", None),
            (".5", None),
            ("5.", None),
            ("0x10", None),
            ("1_000", None),
            ("NaN", None),
            ("Infinity", None),
            ("", None),
            (" 1", None),
            ("1 ", None),
            ("1\u{0}", None),
            ("１２", None),
            ("٣", None),
            ("true", None),
        ];
        for (text, expected) in rows {
            assert_eq!(amount(text), expected, "{text:?}");
        }
        assert_eq!(Amounts::new(Side::Buy, 0, 1), None);
        assert_eq!(Amounts::new(Side::Sell, 1, 0), None);
        println!("{} cases", rows.len() + 2);
    }

    /// Every price of every grid, for sizes that clients send: what the amounts say is the price they were made of.
    #[test]
    fn every_price_of_every_tick_comes_back() {
        let mut cases = 0;
        for tick in TICKS {
            for ticks in 1..10_000 / u64::from(tick) {
                let units = ticks * u64::from(tick);
                for shares in [1_000_000, 5_000_000, 10_000_000, 33_330_000, 999_990_000, 1_000_000_000_000] {
                    // Exact: the price has at most 4 decimals, the size 2.
                    let usd = units * shares / 10_000;
                    for (side, maker, taker) in [(Side::Buy, usd, shares), (Side::Sell, shares, usd)] {
                        let order = amounts(side, maker, taker);
                        let expected = at(units as u16);
                        assert_eq!(order.limit(TickSize(tick)), expected, "{side:?} {units} × {shares} at {tick}");
                        assert_eq!(order.worst(TickSize(tick)), expected, "{side:?} {units} × {shares} at {tick}");
                        assert_eq!(order.shares(), Qty(shares));
                        assert_eq!(order.shown_price(), Cash(units as i64 * 100));
                        cases += 1;
                    }
                }
            }
        }
        println!("{cases} cases");
    }

    /// What clients make of a budget: shares cut down to their decimals, so that the quotient is above the grid.
    #[test]
    fn what_clients_round_is_put_back_on_the_grid() {
        let rows = [
            // 5 USD, 1.37 and 0.50 at 0.41.
            (Side::Buy, 5_000_000, 12_195_100, 100, at(4_100)),
            (Side::Buy, 1_370_000, 3_341_400, 100, at(4_100)),
            (Side::Buy, 500_000, 1_219_500, 100, at(4_100)),
            (Side::Sell, 12_340_000, 5_059_400, 100, at(4_100)),
            (Side::Buy, 4_100_000, 10_000_000, 100, at(4_100)),
            (Side::Buy, 1_000_000, 3_333_300, 1_000, at(3_000)),
            (Side::Buy, 10_000_000, 15_503_800, 10, at(6_450)),
            (Side::Sell, 7_770_000, 958_818, 1, at(1_234)),
            (Side::Buy, 5_000_000, 12_048_192, 50, at(4_150)),
            (Side::Sell, 12_340_000, 5_121_100, 50, at(4_150)),
            (Side::Buy, 5_000_000, 12_121_212, 25, at(4_125)),
            (Side::Sell, 12_340_000, 5_090_250, 25, at(4_125)),
        ];
        for (side, maker, taker, tick, expected) in rows {
            let order = amounts(side, maker, taker);
            assert_eq!(order.worst(TickSize(tick)), expected, "{side:?} {maker} {taker}");
            assert_eq!(order.limit(TickSize(tick)), expected, "{side:?} {maker} {taker}");
        }
        println!("{} cases", 2 * rows.len());
    }

    /// At and around the two tolerances, for every tick: `price` is in 10⁻⁹ USD, for a million shares.
    #[test]
    fn tolerances_end_where_they_should() {
        let mut cases = 0;
        for tick in TICKS {
            let (tick_nano, middle) = (u64::from(tick) * 100_000, 5_000);
            let nano = u64::from(middle) * 100_000;
            let (tenth, half) = (tick_nano / 10, tick_nano / 2);
            let rest_only = [
                (nano + tenth, at(middle)),
                (nano - tenth, at(middle)),
                (nano + tenth + 1, RequestedPrice::OffGrid),
                (nano - tenth - 1, RequestedPrice::OffGrid),
                (nano + half, RequestedPrice::OffGrid),
            ];
            for side in [Side::Buy, Side::Sell] {
                let order = |price_nano: u64| {
                    let (usd, shares) = (price_nano * 1_000, 1_000_000_000_000);
                    if side == Side::Buy { amounts(side, usd, shares) } else { amounts(side, shares, usd) }
                };
                for (price_nano, expected) in rest_only {
                    assert_eq!(order(price_nano).limit(TickSize(tick)), expected, "{side:?} {price_nano} at {tick}");
                    cases += 1;
                }
                // Halfway the sender is favoured: a BUY pays less, a SELL asks for more.
                let tie = if side == Side::Buy { middle } else { middle + tick };
                for (price_nano, expected) in
                    [(nano + half - 1, middle), (nano + half, tie), (nano + half + 1, middle + tick)]
                {
                    assert_eq!(order(price_nano).worst(TickSize(tick)), at(expected), "{side:?} {price_nano}");
                    cases += 1;
                }
            }
        }
        println!("{cases} cases");
    }

    #[test]
    fn what_lies_outside_the_range_is_clamped_for_a_buy_and_refused_for_a_sell() {
        let most = 999_999_999_999_999_999;
        let mut cases = 0;
        for tick in TICKS {
            let (lowest, highest) = (at(tick), at(10_000 - tick));
            for (usd, shares, cap) in [
                (1, most, lowest),
                (1, 1_000_000_000, lowest),
                (1_000_000, 1_000_000, highest),
                (5_000_000, 1_000_000, highest),
                (most, 1, highest),
                (most, most, highest),
            ] {
                assert_eq!(amounts(Side::Buy, usd, shares).worst(TickSize(tick)), cap, "{usd} for {shares}");
                assert_eq!(amounts(Side::Sell, shares, usd).worst(TickSize(tick)), RequestedPrice::OffGrid);
                // A limit outside the range is not tradable: zero, one, or off the grid.
                for order in [amounts(Side::Buy, usd, shares), amounts(Side::Sell, shares, usd)] {
                    let limit = order.limit(TickSize(tick));
                    let tradable = matches!(limit, RequestedPrice::At(price) if TickSize(tick).contains(price));
                    assert!(!tradable, "{order:?} at {tick}: {limit:?}");
                    assert!(order.shown_price() >= Cash::ZERO);
                }
                cases += 4;
            }
        }
        println!("{cases} cases");
    }
}
