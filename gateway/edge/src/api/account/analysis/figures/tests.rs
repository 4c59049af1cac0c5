//! Each formula with figures worked out by hand.

use super::*;
use crate::api::testing::{Filled, Town, Trader};
use crate::http::testing::{NOW, run};
use engine::amount::Qty;
use engine::id::{InstrumentId, Outcome, PositionId, WalletId};
use engine::order::{Liquidity, PriceSource};

fn number(text: &str) -> Decimal {
    text.parse().expect("a number")
}

/// Rounded to `places`, as it is written.
fn rounded(figure: Figure, places: u32) -> Option<Decimal> {
    figure
        .expect("small")
        .map(|figure| figure.round_dp_with_strategy(places, RoundingStrategy::MidpointAwayFromZero).normalize())
}

/// Fills with these notionals in whole cents, each this many days ago, sold where negative.
fn fills(rows: &[(i64, u64)]) -> Trades {
    let town = Town::new();
    let mut trader = Trader::new(1_000_000_000, town.market.instrument(Outcome::First));
    trader.place(90_412, trader.terms(4_200, 50), NOW);
    let how = Filled { liquidity: Liquidity::Taker, source: PriceSource::BookWalk, quote_age_ms: None, at: NOW };
    trader.fill(90_412, 141_233, (1_000_000, 420_000, 2_000), how);
    let view = trader.view(90_412);
    let mut trades = Trades::default();
    for (market, (cents, days_ago)) in (0..).zip(rows) {
        let mut row = FillView { fill: view.fills[0].clone(), order: view.order.clone() };
        row.fill.notional = Cash(cents.abs() * 10_000);
        row.fill.at = Timestamp(NOW.0 - days_ago * DAY);
        row.order.terms.side = if *cents < 0 { Side::Sell } else { Side::Buy };
        row.order.terms.instrument = InstrumentId(market % 3);
        trades.add(&row);
    }
    trades
}

#[test]
fn trades_are_counted_and_measured() {
    // (rows, buys, sells, volume, days, markets, median, largest, smallest) in cents.
    type Cents = Option<i64>;
    type Row<'a> = (&'a [(i64, u64)], u64, u64, i128, u64, usize, Cents, Cents, Cents);
    let rows: [Row<'_>; 6] = [
        (&[], 0, 0, 0, 0, 0, None, None, None),
        (&[(500, 0)], 1, 0, 500, 1, 1, Some(500), Some(500), Some(500)),
        (&[(500, 0), (-300, 0)], 1, 1, 800, 1, 1, Some(400), Some(500), Some(300)),
        (&[(500, 0), (-300, 1), (100, 1)], 2, 1, 900, 2, 2, Some(300), Some(500), Some(100)),
        (&[(1, 0), (9, 5), (2, 5), (8, 9)], 4, 0, 20, 3, 2, Some(5), Some(9), Some(1)),
        (&[(7, 0), (7, 1), (7, 2), (1, 3), (2, 4)], 5, 0, 24, 5, 2, Some(7), Some(7), Some(1)),
    ];
    for (given, buys, sells, volume, days, markets, median, largest, smallest) in rows {
        let trades = fills(given);
        let cents = |amount: Option<i64>| amount.map(|cents| Cash(cents * 10_000));
        assert_eq!((trades.buys, trades.sells, trades.volume), (buys, sells, volume * 10_000), "{given:?}");
        assert_eq!((trades.days, trades.markets_count()), (days, markets), "{given:?}");
        assert_eq!(run(trades.median()), cents(median), "{given:?}");
        assert_eq!((trades.largest(), trades.smallest()), (cents(largest), cents(smallest)), "{given:?}");
        assert_eq!(trades.fees, 2_000 * i128::from(trades.count()));
        let ago = |days: u64| Timestamp(NOW.0 - days * DAY);
        assert_eq!(trades.last_at, given.first().map(|row| ago(row.1)));
        assert_eq!(trades.first_at, given.last().map(|row| ago(row.1)));
    }
    // Halfway between two odd figures is rounded up.
    let mut odd = fills(&[]);
    (odd.buys, odd.sizes) = (2, BTreeMap::from([(1, 1), (4, 1)]));
    assert_eq!(run(odd.median()), Some(Cash(3)));
    println!("trades: {} cases", rows.len() + 1);
}

fn position(realized: i64, open: bool) -> Position {
    Position {
        id: PositionId(1),
        wallet: WalletId(3),
        instrument: InstrumentId(0),
        qty: if open { Qty::SHARE } else { Qty::ZERO },
        reserved: Qty::ZERO,
        cost: Cash::ZERO,
        last_open: (Qty::SHARE, Cash(1)),
        realized: Cash(realized),
        opened_at: Timestamp(1),
        closed_at: (!open).then_some(Timestamp(2)),
        settlement: None,
        is_reset: false,
    }
}

#[test]
fn positions_are_won_lost_or_neither() {
    let rows: [(&[(i64, bool)], Outcomes); 5] = [
        (&[], Outcomes::default()),
        (&[(5, true)], Outcomes { realized: 5, ..Outcomes::default() }),
        (&[(0, false)], Outcomes { closed: 1, best: Some(Cash(0)), worst: Some(Cash(0)), ..Outcomes::default() }),
        (
            &[(30, false), (-10, false), (10, false), (-4, true), (0, false)],
            Outcomes {
                realized: 26,
                closed: 4,
                wins: 2,
                losses: 1,
                profit: 40,
                loss: 10,
                best: Some(Cash(30)),
                worst: Some(Cash(-10)),
            },
        ),
        (
            &[(-7, false), (-3, false)],
            Outcomes {
                realized: -10,
                closed: 2,
                losses: 2,
                loss: 10,
                best: Some(Cash(-3)),
                worst: Some(Cash(-7)),
                ..Outcomes::default()
            },
        ),
    ];
    for (given, expected) in &rows {
        let mut found = Outcomes::default();
        given.iter().for_each(|(realized, open)| found.add(&position(*realized, *open)));
        assert_eq!(found, *expected, "{given:?}");
    }
    // A position that a reset closed has no known exit; its earlier results count.
    let mut found = Outcomes::default();
    found.add(&Position { is_reset: true, ..position(-8, false) });
    assert_eq!(found, Outcomes { realized: -8, ..Outcomes::default() });
    println!("outcomes: {} cases", rows.len() + 1);
}

#[test]
fn ratios_and_averages_are_those_of_a_pencil() {
    let rows: [(i128, i128, Option<&str>, Option<&str>); 7] = [
        // part, whole, ratio to 6 places, percent to 2 places
        (40, 10, Some("4"), Some("400")),
        (1, 3, Some("0.333333"), Some("33.33")),
        (2, 3, Some("0.666667"), Some("66.67")),
        (-1, 8, Some("-0.125"), Some("-12.5")),
        (1, 20_000, Some("0.00005"), Some("0.01")),
        (0, 5, Some("0"), Some("0")),
        (5, 0, None, None),
    ];
    for (part, whole, as_ratio, as_percent) in rows {
        assert_eq!(rounded(ratio(part, whole), 6), as_ratio.map(number), "{part} ÷ {whole}");
        assert_eq!(rounded(percent(part, whole), 2), as_percent.map(number), "{part} ÷ {whole}");
    }
    let averages: [(i128, u64, Option<i64>); 5] =
        [(10, 4, Some(3)), (10, 3, Some(3)), (-10, 4, Some(-3)), (0, 1, Some(0)), (5, 0, None)];
    for (total, count, expected) in averages {
        assert_eq!(average(total, count), Ok(expected.map(Cash)), "{total} by {count}");
    }
    assert_eq!(exact(i128::MAX), Err(TooLarge));
    assert_eq!(ratio(i128::MAX, 1), Err(TooLarge));
    assert_eq!(percent(i128::from(i64::MAX) * 1_000_000_000, 1), Err(TooLarge));
    assert_eq!(cash(Decimal::MAX), Err(TooLarge));
    println!("ratios: {} cases", rows.len() + averages.len() + 4);
}

#[test]
fn the_spread_of_what_is_invested() {
    type Text = Option<&'static str>;
    type Row<'a> = (&'a [i64], Text, Text, Text, Option<i64>);
    let rows: [Row<'_>; 6] = [
        // values, percent in the largest, in the three largest, diversity, average
        (&[], None, None, None, None),
        (&[5], Some("100"), Some("100"), Some("0"), Some(5)),
        (&[1, 1], Some("50"), Some("100"), Some("0.5"), Some(1)),
        (&[1, 2, 3, 4], Some("40"), Some("90"), Some("0.7"), Some(3)),
        (&[6, 2, 1, 1], Some("60"), Some("90"), Some("0.58"), Some(3)),
        (&[0, 0], None, None, None, Some(0)),
    ];
    for (values, largest, three, diversity, mean) in rows {
        let spread = Spread::of(values.iter().map(|value| Cash(*value)));
        assert_eq!(rounded(spread.concentration(1), 2), largest.map(number), "{values:?}");
        assert_eq!(rounded(spread.concentration(3), 2), three.map(number), "{values:?}");
        assert_eq!(rounded(spread.diversity(), 6), diversity.map(number), "{values:?}");
        assert_eq!(spread.average(), Ok(mean.map(Cash)), "{values:?}");
    }
    println!("spreads: {} cases", rows.len());
}

#[test]
fn returns_falls_and_extremes_of_a_curve() {
    let rows: [(&[i64], Option<&str>, Option<&str>); 9] = [
        // values by the hour, gain, deepest fall
        (&[], None, None),
        (&[100], None, None),
        (&[100, 110], Some("10"), Some("0")),
        (&[100, 90], Some("-10"), Some("10")),
        (&[100, 120, 90, 130], Some("30"), Some("25")),
        // The deepest in percent, not in money; it may lie before a higher peak.
        (&[10, 5, 100, 80], Some("700"), Some("50")),
        (&[100, 50, 200, 120], Some("20"), Some("50")),
        (&[0, 10], None, Some("0")),
        (&[3, 2, 3], Some("0"), Some("33.33")),
    ];
    for (values, expected, fall) in rows {
        let points: Vec<_> =
            values.iter().enumerate().map(|(hour, value)| (Timestamp(hour as u64), Cash(*value))).collect();
        assert_eq!(rounded(gain(&points), 2), expected.map(number), "{values:?}");
        assert_eq!(rounded(drawdown(&points), 2), fall.map(number), "{values:?}");
    }
    let points: Vec<_> =
        [5, 9, 2, 9, 2].into_iter().enumerate().map(|(at, v)| (Timestamp(at as u64), Cash(v))).collect();
    assert_eq!(extremes(&points), Some(((Timestamp(1), Cash(9)), (Timestamp(2), Cash(2)))));
    assert_eq!(extremes(&[]), None);
    for (from, left) in [(0, 5), (1, 4), (4, 1), (5, 0)] {
        assert_eq!(since(&points, Timestamp(from)).len(), left, "from {from}");
    }
    println!("curves: {} cases", rows.len() + 6);
}

#[test]
fn a_deposit_is_no_return_and_a_refund_no_fall() {
    // Values by the hour; deposits as hour and amount; the values that trading alone gives, and their gain.
    type Row<'a> = (&'a [i64], &'a [(u64, i64)], &'a [i64], Option<&'a str>);
    let rows: [Row<'_>; 7] = [
        (&[100, 100], &[], &[100, 100], Some("0")),
        (&[100, 600], &[(1, 500)], &[600, 600], Some("0")),
        (&[100, 600, 660], &[(1, 500)], &[600, 600, 660], Some("10")),
        (&[600, 100], &[(1, -500)], &[100, 100], Some("0")),
        (&[100, 600, 100], &[(1, 500), (2, -500)], &[100, 100, 100], Some("0")),
        // Before all points, and after them.
        (&[100, 110], &[(0, 50), (2, 70)], &[100, 110], Some("10")),
        (&[], &[(1, 5)], &[], None),
    ];
    println!("deposits in a curve: {} cases", rows.len());
    for (values, deposits, expected, growth) in rows {
        let mut points: Vec<_> = (0..).zip(values).map(|(hour, value)| (Timestamp(hour), Cash(*value))).collect();
        let deposits: Vec<_> = deposits.iter().map(|(hour, amount)| (Timestamp(*hour), Cash(*amount))).collect();
        level(&mut points, deposits);
        assert_eq!(points.iter().map(|(_, value)| value.0).collect::<Vec<_>>(), expected, "{values:?}");
        assert_eq!(rounded(gain(&points), 2), growth.map(number), "{values:?}");
    }
}
