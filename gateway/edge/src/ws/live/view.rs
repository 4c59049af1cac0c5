//! Spot prices as records, and the parameters of their routes.

use crate::api::updown::view::{AssetName, SpotSource};
use crate::http::record::{ByName, record};
use crate::http::scalar::{self, Number, StreamTime, words};
use crate::http::schema::{BOOLEAN, Param, Schema, TEXT};
use engine::market::spot::{self, SOURCE};
use engine::market::terms::{Asset, UpDown};
use engine::time::{MILLISECOND, Timestamp};
use rust_decimal::Decimal;
use serde_json::value::RawValue;

const FAMILY: Schema = Schema::Word(&["chainlink", "chainlink_rtds", "binance", "polymarket_rtds", "relay_binance"]);

pub const SOURCE_PARAM: Param = Param::query("source", FAMILY, "The family of sources; any if absent.");
pub const STREAM_PARAMS: &[Param] = &[
    Param::query("crypto", TEXT, "Symbols, separated by commas: BTC, BTCUSDT or btc/usd."),
    Param::query("crypto_source", FAMILY, "The family of sources; any if absent."),
    Param::query("condition_ids", TEXT, "At most 50 markets, separated by commas."),
    Param::query("background", BOOLEAN, "One batch a second instead of single events."),
];
pub const STREAM_EXAMPLE: &str = concat!(
    "event: crypto_price\n",
    r#"data: {"symbol":"BTC","price":64310.22,"source":"chainlink","timestamp":"2026-11-05T09:33:22.000Z"}"#,
    "\n\n"
);

words! {
    pub Symbol = "BTC", "ETH", "SOL", "XRP";
    DecidingSource = "chainlink";
}

record! {
    // A price without its symbol.
    pub struct SpotFigures {
        price: Number = Number::of("64310.22"), "US dollars.";
        source: SpotSource = SOURCE.into(),
            "`chainlink`: computed by the synthetic venue; `chainlink_rtds`, `polymarket_rtds`: sources of a live venue.";
        timestamp: StreamTime = StreamTime::of("2026-11-05T09:33:22Z"), "Time of the price.";
    }

    // `crypto_price` of the stream.
    pub struct SpotEvent {
        symbol: Symbol = "BTC".into(), "The asset.";
        #[serde(flatten)]
        figures: SpotFigures = SpotFigures::example();
    }

    /// The newest spot price of a symbol.
    pub struct SpotPrice {
        #[serde(flatten)]
        spot: SpotEvent = SpotEvent::example();
        age_seconds: Number = Number::of("0.417"), "Its age in venue time.";
        stale: bool = false, "The source is silent.";
    }

    /// The newest spot prices.
    pub struct SpotPrices {
        pub prices: ByName<Symbol, SpotPrice> = ByName(vec![("BTC".into(), SpotPrice::example())]), "By symbol.";
        pub supported_symbols: Vec<Symbol> = Symbol::ALL.iter().map(|word| (*word).into()).collect(),
            "Symbols with a source.";
        pub timestamp: StreamTime = StreamTime::of("2026-11-05T09:33:22.417Z"), "The present time.";
    }

    /// What the price must beat for Up.
    pub struct PriceToBeat {
        // With all digits of the venue.
        #[schemars(with = "Number")]
        price: Box<RawValue> = digits(Decimal::new(642_881, 1)), "US dollars.";
        asset: AssetName = "BTC".into(), "The asset.";
        start_date: scalar::Timestamp = scalar::Timestamp::of("2026-11-05T09:30:00Z"), "Start of the window.";
        source: DecidingSource = SOURCE.into(), "The source that decides the window.";
    }
}

impl From<Asset> for Symbol {
    fn from(asset: Asset) -> Symbol {
        asset.name().into()
    }
}

impl From<spot::SpotPrice> for SpotFigures {
    fn from(price: spot::SpotPrice) -> SpotFigures {
        SpotFigures {
            price: Number(price.micros.cast_signed()),
            source: price.source.into(),
            timestamp: StreamTime(price.at),
        }
    }
}

impl SpotEvent {
    pub fn new(asset: Asset, price: spot::SpotPrice) -> SpotEvent {
        SpotEvent { symbol: asset.into(), figures: price.into() }
    }
}

impl SpotPrice {
    pub fn new(asset: Asset, price: spot::SpotPrice, venue_now: Timestamp) -> SpotPrice {
        let age = venue_now.since(price.at);
        SpotPrice {
            spot: SpotEvent::new(asset, price),
            age_seconds: Number((age - age % MILLISECOND).cast_signed()),
            stale: price.is_stale(venue_now),
        }
    }
}

impl PriceToBeat {
    pub fn new(window: &UpDown, price: Decimal) -> PriceToBeat {
        PriceToBeat {
            price: digits(price),
            asset: window.asset.name().into(),
            start_date: scalar::Timestamp(window.start),
            source: SOURCE.into(),
        }
    }
}

/// A number without trailing zeros.
fn digits(number: Decimal) -> Box<RawValue> {
    RawValue::from_string(number.normalize().to_string()).expect("digits and a point")
}
