//! Rows of up-or-down markets on the wire (market-data.md §5).

use crate::api::markets::quote::{OUTCOMES, Quote, number};
use crate::api::markets::view::Phase;
use crate::reads::Reads;
use engine::market::catalog::MarketCell;
use engine::market::spot::SpotPrice;
use engine::market::terms::Asset;
use engine::time::Timestamp;
use wire::decimal;
use wire::updown;
use wire::write::{Object, array, object, string};

/// One row. An empty object for a market without a window.
pub fn row(out: &mut Vec<u8>, cell: &MarketCell, reads: &Reads, now: Timestamp, venue_now: Timestamp) {
    let listing = &cell.listing;
    let Some(window) = listing.updown else { return object(out, |_| {}) };
    let (phase, quote) = (Phase::of(cell, now), Quote::of(cell, reads));
    object(out, |o| {
        o.text_or_null("event_id", cell.event().map(|event| event.id.as_str()));
        o.text("condition_id", &listing.condition);
        o.text("slug", &listing.slug);
        o.text("title", cell.event().map_or(&listing.question, |event| &event.title));
        o.text_or_null("description", listing.description.as_deref());
        o.word("asset", window.asset.name());
        o.word("interval", window.interval.name());
        o.text("time_range", &updown::time_range(window.start, window.end));
        o.text("date_display", &updown::date(window.start));
        o.ts("start_date", window.start);
        o.ts("end_date", window.end);
        o.boolean("active", phase.active);
        o.boolean("closed", phase.closed);
        o.boolean("resolved", phase.resolved);
        o.array("tags", &listing.tags, |out, tag| string(out, tag));
        o.array("markets", [()], |out, ()| object(out, |o| market(o, cell, quote.as_ref())));
        live_price(o, quote.as_ref());
        // Nobody knows what is to be beaten before the window opens.
        let open = window.start <= venue_now;
        o.text_or_null("group_item_threshold", cell.strike().filter(|_| open));
        o.text_or_null("event_metadata_ptb", cell.price_to_beat().filter(|_| open));
        o.text_or_null("image", listing.image.as_deref());
        o.text_or_null("icon", listing.image.as_deref());
    });
}

/// The market inside the row; its last three fields are JSON inside texts. Without any price the prices are empty.
fn market(o: &mut Object<'_>, cell: &MarketCell, quote: Option<&Quote>) {
    o.text("id", &cell.listing.venue_market_id);
    o.text("condition_id", &cell.listing.condition);
    o.text("question", &cell.listing.question);
    o.text("outcomes", &json(OUTCOMES.map(|outcome| cell.outcome(outcome).to_owned())));
    let prices = quote.map(|quote| quote.outcomes).unwrap_or_default();
    let prices = prices.into_iter().flatten().map(|price| decimal::text(|out| decimal::money(out, price)));
    o.text("outcome_prices", &json(prices));
    o.text("token_ids", &json(OUTCOMES.map(|outcome| cell.token(outcome).to_owned())));
}

/// JSON text of a list of strings.
fn json(texts: impl IntoIterator<Item = String>) -> String {
    decimal::text(|out| array(out, texts, |out, text| string(out, &text)))
}

fn live_price(o: &mut Object<'_>, quote: Option<&Quote>) {
    let Some(quote) = quote else { return o.null("live_price") };
    o.object("live_price", |o| {
        o.or_null("buy", quote.buy, number);
        o.or_null("sell", quote.sell, number);
        o.ts_or_null("updated_at", quote.changed_at);
    });
}

/// One of `crypto_prices`. The source tells no change over a day.
pub fn spot(o: &mut Object<'_>, asset: Asset, price: SpotPrice) {
    o.word("symbol", asset.name());
    o.text("price", &decimal::text(|out| decimal::vol(out, price.micros)));
    o.word("source", price.source);
    o.null("change_24h");
}
