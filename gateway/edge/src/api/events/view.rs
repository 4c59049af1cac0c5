//! Events on the wire (market-data.md §4).

use super::PageEvent;
use crate::api::markets::quote::Quote;
use crate::api::markets::view::{is_hot_volume, number};
use crate::reads::Reads;
use engine::market::catalog::MarketCell;
use wire::write::{Object, object, string};

/// One event with the markets of it that are shown.
pub fn event(out: &mut Vec<u8>, shown: &PageEvent<'_>, reads: &Reads) {
    let first = reads.catalog.market(shown.row.first).expect("a list names markets of the catalogue");
    let terms = first.event().expect("an event row is made of markets with one");
    object(out, |o| {
        o.text("id", &terms.id);
        o.text("slug", &terms.slug);
        o.text("title", &terms.title);
        o.text_or_null("image", terms.image.as_deref());
        o.ts_or_null("end_date", terms.end);
        o.boolean("is_hot", is_hot_volume(shown.row.volume));
        o.word_or_null("category", first.listing.category.name());
        let cells = shown.markets.iter().filter_map(|market| reads.catalog.market(*market));
        o.array("markets", cells, |out, cell| object(out, |o| child(o, cell, reads)));
    });
}

fn child(o: &mut Object<'_>, cell: &MarketCell, reads: &Reads) {
    let (listing, figures) = (&cell.listing, cell.figures());
    o.text("condition_id", &listing.condition);
    o.text("slug", &listing.slug);
    o.text("question", &listing.question);
    o.array("outcomes", &listing.outcomes, |out, label| string(out, label));
    match Quote::of(cell, reads) {
        Some(quote) => o.object("live_price", |o| quote.write_sides(o)),
        None => o.null("live_price"),
    }
    o.array("clob_token_ids", &listing.tokens, |out, token| string(out, token));
    o.text_or_null("display_label", listing.label.as_deref());
    o.vol_or_null("volume_24h", figures.volume_24h);
    o.vol_or_null("volume_total", figures.volume_total);
    o.integer("id", number(listing));
}
