use super::*;
use crate::backtest::book::tests::book;
use crate::fee::FeeRounding;
use crate::market::terms::Category;

type Levels = &'static [(u16, u64)];

const BIDS: Levels = &[(3_100, 100), (3_000, 50)];
const ASKS: Levels = &[(3_200, 60), (3_300, 40), (3_600, 200)];

fn request(side: Side, shares: u64, model: FillModel) -> FillRequest {
    FillRequest {
        side,
        shares: Qty::from_shares(shares),
        model,
        limit: None,
        tariff: Tariff::of_category(Category::Weather.default_taker_rate(), FeeRounding::HalfUp),
    }
}

fn pair(bids: Levels, asks: Levels) -> ArchivedPair {
    ArchivedPair { own: book(bids, asks), complement: None }
}

/// The example of the reference: 40 shares at 0.32 of a book of 0.31 to 0.32 in a category of 500 bps.
#[test]
fn the_example_to_the_last_digit() {
    let result = fill(&request(Side::Buy, 40, FillModel::DepthWalk), &pair(BIDS, ASKS));
    let expected = FillResult {
        filled: Qty::from_shares(40),
        remaining: Qty::ZERO,
        vwap: Some(Cash(320_000)),
        fee: Cash(435_200),
        levels: 1,
        slippage_bps: Some(159),
        impact_bps: Some(0),
    };
    assert_eq!(result, expected);
}

#[test]
fn each_model_fills_by_its_own_rule() {
    use FillModel::{DepthWalk, DepthWalkDepletion, Midpoint, TopOfBook};
    use Side::{Buy, Sell};
    // side, shares, model, limit; shares filled, average, fee, levels, slippage, impact
    let rows = [
        (Buy, 40, Midpoint, None, 40, Some(315_000), 431_550, 1, Some(0), Some(0)),
        (Sell, 40, Midpoint, None, 40, Some(315_000), 431_550, 1, Some(0), Some(0)),
        // The whole size, at any depth.
        (Buy, 1_000_000, Midpoint, None, 1_000_000, Some(315_000), 10_788_750_000, 1, Some(0), Some(0)),
        (Buy, 40, Midpoint, Some(3_150), 40, Some(315_000), 431_550, 1, Some(0), Some(0)),
        (Buy, 40, Midpoint, Some(3_149), 0, None, 0, 0, None, None),
        (Sell, 40, Midpoint, Some(3_151), 0, None, 0, 0, None, None),
        (Buy, 40, TopOfBook, None, 40, Some(320_000), 435_200, 1, Some(159), Some(0)),
        (Buy, 90, TopOfBook, None, 60, Some(320_000), 652_800, 1, Some(159), Some(0)),
        (Sell, 120, TopOfBook, None, 100, Some(310_000), 1_069_500, 1, Some(159), Some(0)),
        (Buy, 90, TopOfBook, Some(3_199), 0, None, 0, 0, None, None),
        (Buy, 60, DepthWalk, None, 60, Some(320_000), 652_800, 1, Some(159), Some(0)),
        // 60 at 0.32 and 30 at 0.33: 0.6528 and 0.33165.
        (Buy, 90, DepthWalk, None, 90, Some(323_333), 984_450, 2, Some(265), Some(104)),
        (Buy, 90, DepthWalk, Some(3_299), 60, Some(320_000), 652_800, 1, Some(159), Some(0)),
        (Buy, 90, DepthWalk, Some(3_300), 90, Some(323_333), 984_450, 2, Some(265), Some(104)),
        (Sell, 120, DepthWalk, None, 120, Some(308_333), 1_279_500, 2, Some(212), Some(54)),
        (Sell, 120, DepthWalk, Some(3_001), 100, Some(310_000), 1_069_500, 1, Some(159), Some(0)),
        // More than the book has.
        (Buy, 1_000, DepthWalk, None, 300, Some(348_000), 3_399_000, 3, Some(1_048), Some(875)),
        (Buy, 40, DepthWalk, Some(1), 0, None, 0, 0, None, None),
        (Sell, 40, DepthWalk, Some(9_999), 0, None, 0, 0, None, None),
        (Buy, 90, DepthWalkDepletion, None, 90, Some(323_333), 984_450, 2, Some(265), Some(104)),
        (Sell, 120, DepthWalkDepletion, None, 120, Some(308_333), 1_279_500, 2, Some(212), Some(54)),
    ];
    for (side, shares, model, limit, filled, vwap, fee, levels, slippage_bps, impact_bps) in rows {
        let request = FillRequest { limit: limit.map(Price), ..request(side, shares, model) };
        let expected = FillResult {
            filled: Qty::from_shares(filled),
            remaining: Qty::from_shares(shares - filled),
            vwap: vwap.map(Cash),
            fee: Cash(fee),
            levels,
            slippage_bps,
            impact_bps,
        };
        assert_eq!(fill(&request, &pair(BIDS, ASKS)), expected, "{request:?}");
    }
    println!("fills: {} rows", rows.len());
}

#[test]
fn a_book_without_a_side_fills_what_it_has() {
    use FillModel::{DepthWalk, Midpoint, TopOfBook};
    // model, side, bids, asks; shares filled, slippage
    let rows: [(FillModel, Side, Levels, Levels, u64, Option<u32>); 9] = [
        (Midpoint, Side::Buy, &[], ASKS, 0, None),
        (Midpoint, Side::Buy, BIDS, &[], 0, None),
        (Midpoint, Side::Sell, BIDS, &[], 0, None),
        (TopOfBook, Side::Buy, &[], ASKS, 10, None),
        (TopOfBook, Side::Sell, &[], ASKS, 0, None),
        (DepthWalk, Side::Buy, &[], ASKS, 10, None),
        (DepthWalk, Side::Buy, BIDS, &[], 0, None),
        (DepthWalk, Side::Sell, BIDS, &[], 10, None),
        (DepthWalk, Side::Buy, &[], &[], 0, None),
    ];
    for (model, side, bids, asks, filled, slippage) in rows {
        let result = fill(&request(side, 10, model), &pair(bids, asks));
        assert_eq!((result.filled, result.slippage_bps), (Qty::from_shares(filled), slippage), "{model:?} {side:?}");
        assert_eq!(result.remaining, Qty::from_shares(10 - filled));
        assert_eq!(result.vwap.is_some(), filled > 0);
    }
    println!("one-sided books: {} rows", rows.len());
}

#[test]
fn half_a_unit_of_the_midpoint_is_against_the_taker() {
    for (bid, ask, buys, sells) in [(3_100, 3_200, 3_150, 3_150), (1, 2, 2, 1), (1_233, 1_234, 1_234, 1_233)] {
        let prices = [Side::Buy, Side::Sell].map(|side| midpoint(Price(bid), Price(ask), side));
        assert_eq!(prices, [Price(buys), Price(sells)], "{bid} {ask}");
    }
}

#[test]
fn the_complement_adds_depth_that_is_not_its_mirror() {
    let other = book(&[(6_750, 30)], &[]);
    let merged = ArchivedPair { own: book(BIDS, ASKS), complement: Some(other) };
    // 60 at 0.32, then 30 at 0.325 of the other token's bids.
    let result = fill(&request(Side::Buy, 90, FillModel::DepthWalk), &merged);
    assert_eq!((result.vwap, result.levels), (Some(Cash(321_667)), 2));
    let mirrored: Vec<(u16, u64)> = ASKS.iter().map(|(price, shares)| (10_000 - price, *shares)).collect();
    let others: Vec<(u16, u64)> = BIDS.iter().map(|(price, shares)| (10_000 - price, *shares)).collect();
    let twice = ArchivedPair { own: book(BIDS, ASKS), complement: Some(book(&mirrored, &others)) };
    let all = request(Side::Buy, 1_000, FillModel::DepthWalk);
    assert_eq!(fill(&all, &twice), fill(&all, &pair(BIDS, ASKS)), "mirrors count once");
}

#[test]
fn each_level_has_its_own_rounded_fee() {
    // 0.00029994, 0.00030288 and 0.00030582: each is rounded to five decimals.
    const SMALL: Levels = &[(101, 1), (102, 1), (103, 1)];
    let rate = Category::Sports.default_taker_rate();
    let tariff = Tariff::of_category(rate, FeeRounding::HalfUp);
    let three = FillRequest { tariff, ..request(Side::Buy, 3, FillModel::DepthWalk) };
    let each = |price| crate::fee::taker_fee(Qty::SHARE, Price(price), rate);
    assert_eq!(fill(&three, &pair(&[], SMALL)).fee, each(101) + each(102) + each(103));
    assert_eq!(fill(&three, &pair(&[], SMALL)).fee, Cash(910));
}

#[test]
fn models_have_ids_and_flags() {
    // The list of the reference: id, label, realistic, free.
    let rows = [
        ("midpoint", "Midpoint", false, true),
        ("top_of_book", "Top of book", false, true),
        ("depth_walk", "Depth walk", true, true),
        ("depth_walk_depletion", "Depth walk with depletion", true, false),
    ];
    let shown = FillModel::ALL.map(|model| (model.name(), model.label(), model.is_realistic(), model.is_free()));
    assert_eq!(shown, rows);
    for model in FillModel::ALL {
        assert_eq!(FillModel::named(model.name()), Some(model));
        assert!(!model.description().is_empty());
    }
    for name in ["", "Midpoint", "cross", "depth_walk "] {
        assert_eq!(FillModel::named(name), None, "{name:?}");
    }
    assert_eq!(FillModel::default(), FillModel::DepthWalk);
}
