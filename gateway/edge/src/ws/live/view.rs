//! Spot prices on the wire.

pub use crate::ws::price_text::moment;
use engine::market::spot::{SOURCE, SpotPrice};
use engine::market::terms::{Asset, UpDown};
use engine::time::Timestamp;
use rust_decimal::Decimal;
use wire::decimal;
use wire::write::Object;

/// Fields of `crypto_price`.
pub fn spot(o: &mut Object<'_>, asset: Asset, price: SpotPrice) {
    o.word("symbol", asset.name());
    figures(o, price);
}

/// `price`, `source` and `timestamp`.
pub fn figures(o: &mut Object<'_>, price: SpotPrice) {
    decimal::vol(o.name("price"), price.micros);
    o.word("source", price.source);
    moment(o, "timestamp", price.at);
}

/// The newest price of a symbol, with its age in venue time.
pub fn live(o: &mut Object<'_>, asset: Asset, price: SpotPrice, venue_now: Timestamp) {
    spot(o, asset, price);
    let millis = venue_now.since(price.at) / 1_000;
    decimal::vol(o.name("age_seconds"), millis * 1_000);
    o.boolean("stale", price.is_stale(venue_now));
}

pub fn to_beat(o: &mut Object<'_>, window: &UpDown, price: Decimal) {
    o.name("price").extend_from_slice(price.normalize().to_string().as_bytes());
    o.word("asset", window.asset.name());
    o.ts("start_date", window.start);
    o.word("source", SOURCE);
}
