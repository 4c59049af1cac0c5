//! Spot prices and the price stream (gateway/docs/streams.md §5). Prices exist only if the venue has a source of spot
//! prices.

mod view;

#[cfg(test)]
mod tests;

use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::ByName;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::Route;
use crate::http::scalar::StreamTime;
use crate::http::schema::Kind;
use crate::ws::sse;
use engine::id::InstrumentId;
use engine::market::catalog::MarketCell;
use engine::market::spot::{self, Family};
use engine::market::terms::Asset;
use rust_decimal::Decimal;
use view::{PriceToBeat, SpotPrice, SpotPrices};
pub use view::{SpotEvent, SpotFigures, Symbol};

pub const ROUTES: &[Route] = &[
    Route::get("/v1/prices/stream", "stream_prices")
        .about("Prices of markets and symbols as server-sent events.")
        .always_at_root()
        .streamed()
        .params(view::STREAM_PARAMS)
        .gives_kind(200, Kind::Events, view::STREAM_EXAMPLE)
        .fails(&[Code::InvalidRequest, Code::RateLimitExceeded])
        .run(|call| Box::pin(sse::open(call))),
    Route::get("/v1/prices/live", "get_live_prices")
        .about("The newest spot price of every symbol that has one.")
        .always_at_root()
        .no_store()
        .gives::<SpotPrices>(200)
        .run(|call| Box::pin(all(call))),
    Route::get("/v1/prices/live/{symbol}", "get_live_price")
        .about("The newest spot price of one symbol.")
        .always_at_root()
        .no_store()
        .params(&[view::SOURCE_PARAM])
        .gives::<SpotPrice>(200)
        .fails(&[Code::NotFound, Code::InvalidRequest])
        .run(|call| Box::pin(one(call))),
    Route::get("/v1/prices/ptb/{market_or_token}", "get_price_to_beat")
        .about("What the price must beat in an up-or-down market, named by condition or token.")
        .always_at_root()
        .no_store()
        .gives::<PriceToBeat>(200)
        .fails(&[Code::NotFound])
        .run(|call| Box::pin(to_beat(call))),
];

/// Parses the name of a family of sources.
///
/// # Errors
/// `INVALID_REQUEST` for an unknown one.
pub fn family(name: Option<&str>) -> Result<Option<Family>, Refusal> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let known = Family::named(&name.to_ascii_lowercase());
    known.map(Some).ok_or_else(|| Refusal::new(Code::InvalidRequest, "The source must be chainlink or binance."))
}

async fn all(call: Call) -> Outcome {
    let (source, now, venue_now) = (&call.reads().spot, call.now, call.reads().books.venue_now(call.now));
    let assets = source.assets();
    let newest = |asset: &Asset| {
        let price = source.price(*asset, None, now)?;
        Some(((*asset).into(), SpotPrice::new(*asset, price, venue_now)))
    };
    Ok(Reply::json(&SpotPrices {
        prices: ByName(assets.iter().filter_map(newest).collect()),
        supported_symbols: assets.iter().map(|asset| (*asset).into()).collect(),
        timestamp: StreamTime(now),
    }))
}

async fn one(call: Call) -> Outcome {
    let family = family(call.query().get("source"))?;
    let asset = spot::asset(&call.variable(0));
    let price = asset.and_then(|asset| Some((asset, call.reads().spot.price(asset, family, call.now)?)));
    let (asset, price) = price.ok_or_else(|| Refusal::new(Code::NotFound, "No source has a price of this symbol."))?;
    let venue_now = call.reads().books.venue_now(call.now);
    Ok(Reply::json(&SpotPrice::new(asset, price, venue_now)))
}

async fn to_beat(call: Call) -> Outcome {
    let catalog = &call.reads().catalog;
    let id = call.variable(0);
    let market = catalog.by_condition(&id).or_else(|| catalog.by_token(&id).map(InstrumentId::market));
    let venue_now = call.reads().books.venue_now(call.now);
    let known = |cell: &MarketCell| {
        // The price to beat is known only when the window opens.
        let window = cell.listing.updown.filter(|window| window.start <= venue_now)?;
        let price = Decimal::from_str_exact(cell.price_to_beat().or(cell.strike())?).ok()?;
        Some((window, price))
    };
    let found = market.and_then(|market| catalog.market(market)).and_then(known);
    let (window, price) = found.ok_or_else(|| Refusal::new(Code::NotFound, "The price to beat is not known yet."))?;
    Ok(Reply::json(&PriceToBeat::new(&window, price)))
}
