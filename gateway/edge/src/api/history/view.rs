//! Records of price histories.

use super::POINTS_MAX;
use crate::api::markets::view::CONDITION;
use crate::http::record::{List, forms, record};
use crate::http::scalar::{ConditionId, Number, Price, TokenId, words};
use engine::book::candles::Bucket;

words! {
    pub ArchiveSource = "archive";
}

record! {
    /// A price.
    pub struct PricePoint {
        t: u64 = 1_790_931_660, "Start of the stretch, unix seconds.";
        p: Number = Number::of("0.41"), "Price at its end.";
    }

    /// Prices, oldest first.
    pub struct PricesHistory {
        pub history: Points<PricePoint> = List(vec![
            PricePoint::example(),
            PricePoint { t: 1_790_931_720, p: Number::of("0.415") },
        ]);
    }

    /// How a price went within a stretch.
    pub struct PriceCandle {
        t: u64 = 1_790_931_600, "Start of the stretch, unix seconds.";
        o: Price = Price::of("0.40");
        h: Price = Price::of("0.43");
        l: Price = Price::of("0.39");
        c: Price = Price::of("0.415");
    }

    /// The prices of a closed market's outcome.
    pub struct PricesArchive<'a> {
        pub market: TokenId<'a> = "81140002".into();
        pub condition_id: ConditionId<'a> = CONDITION.into();
        pub outcome: &'a str = "Yes";
        pub resolved_outcome: Option<&'a str> = Some("Yes");
        pub fidelity: u64 = 60, "Minutes of a point.";
        pub source: ArchiveSource = "archive".into();
        pub history: Points<PriceCandle> = List::example();
    }
}

forms! {
    // A history in its usual form, or as candles with `format=ohlcv`.
    pub AnyHistory = Usual(PricesHistory), Candles(Points<PriceCandle>); AnyHistory::Usual(PricesHistory::example());
    pub AnyArchive<'a> = Usual(PricesArchive<'a>), Candles(Points<PriceCandle>);
        AnyArchive::Usual(PricesArchive::example());
}

/// The points of a history.
pub type Points<R> = List<R, 0, POINTS_MAX>;

impl PricePoint {
    pub fn new(point: &Bucket) -> PricePoint {
        PricePoint { t: point.start, p: point.candle.close.cash().into() }
    }
}

impl PriceCandle {
    pub fn new(point: &Bucket) -> PriceCandle {
        let candle = &point.candle;
        let [o, h, l, c] = [candle.open, candle.high, candle.low, candle.close].map(|mid| Price(mid.cash()));
        PriceCandle { t: point.start, o, h, l, c }
    }
}
