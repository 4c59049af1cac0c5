//! Markets on the wire (market-data.md §2): the summary of lists, and the detail, which carries the venue's own fields
//! too (venue.md §2).

use super::quote::{OUTCOMES, Quote};
use crate::api::account::valuation::Marks;
use crate::api::books::view as book;
use crate::api::prices::base_fee;
use crate::reads::Reads;
use engine::id::Outcome;
use engine::market::catalog::MarketCell;
use engine::market::terms::{Listing, MarketState, Resolution, Venue};
use engine::time::{DAY, Timestamp};
use sha2::{Digest as _, Sha256};
use wire::decimal;
use wire::write::{Object, object, string};

/// A market with more traded than this is hot (10⁻⁶ of the venue's unit).
const HOT_VOLUME_ABOVE: u64 = 5_000_000_000;
/// A resolved market is archived after this long.
const ARCHIVED_AFTER_US: u64 = 30 * DAY;

/// How far a market has come, as the wire's booleans say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    pub active: bool,
    pub closed: bool,
    pub resolved: bool,
    pub archived_at: Option<Timestamp>,
    pub accepting_orders: bool,
}

impl Phase {
    pub fn of(cell: &MarketCell, now: Timestamp) -> Phase {
        let status = cell.status();
        let archived_at = cell.resolved_at().map(|at| at.plus(ARCHIVED_AFTER_US));
        Phase {
            active: status.state == MarketState::Active,
            closed: matches!(status.state, MarketState::Closed | MarketState::Resolved),
            resolved: status.resolution.is_some(),
            archived_at: archived_at.filter(|at| *at <= now),
            accepting_orders: status.tradable(),
        }
    }
}

pub fn is_hot(cell: &MarketCell) -> bool {
    cell.figures().volume_total.is_some_and(is_hot_volume)
}

/// Whether so much traded (10⁻⁶ of the venue's unit) makes a market or an event hot.
pub fn is_hot_volume(volume: u64) -> bool {
    volume > HOT_VOLUME_ABOVE
}

/// One row of a list.
pub fn summary(out: &mut Vec<u8>, cell: &MarketCell, reads: &Reads, now: Timestamp) {
    object(out, |o| summary_fields(o, cell, reads, now));
}

/// One market by itself; with the book of its first outcome where that is asked for.
pub fn detail(out: &mut Vec<u8>, cell: &MarketCell, reads: &Reads, now: Timestamp, with_book: bool) {
    object(out, |o| {
        summary_fields(o, cell, reads, now);
        detail_fields(o, cell, reads, now);
        venue_fields(o, cell, reads, now);
        if with_book {
            let out = o.name("order_book");
            let asked = book::BookRequest {
                cell,
                instrument: cell.instrument(Outcome::First),
                levels_max: None,
                is_strict: false,
            };
            if book::book(out, asked, reads, now).is_err() {
                out.extend_from_slice(b"null");
            }
        }
    });
}

fn known(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn summary_fields(o: &mut Object<'_>, cell: &MarketCell, reads: &Reads, now: Timestamp) {
    let (listing, figures, phase) = (&cell.listing, cell.figures(), Phase::of(cell, now));
    o.text("condition_id", &listing.condition);
    o.text_or_null("slug", known(&listing.slug));
    o.text_or_null("question", known(&listing.question));
    o.array("outcomes", &listing.outcomes, |out, label| string(out, label));
    o.boolean("active", phase.active);
    o.boolean("closed", phase.closed);
    o.boolean("is_hot", is_hot(cell));
    o.text_or_null("image_url", listing.image.as_deref());
    o.word_or_null("category", listing.category.name());
    o.text_or_null("display_label", listing.label.as_deref());
    o.array("clob_token_ids", &listing.tokens, |out, token| string(out, token));
    o.vol_or_null("volume_24h", figures.volume_24h);
    o.vol_or_null("volume_total", figures.volume_total);
    let last = reads.books.last_price(cell.instrument(Outcome::First));
    o.or_null("last_price", last.map(|last| last.price), Object::price);
    live_price(o, cell, reads);
    o.integer("id", number(&cell.listing));
}

/// Largest number that every reader of JSON holds exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The market's number: the venue's own where it has one, else the first 53 bits of SHA-256 of the condition id. Part of
/// the listing alone, so it never changes.
pub fn number(listing: &Listing) -> u64 {
    let own = listing.venue_market_id.parse().ok().filter(|number| *number <= NUMBER_MAX);
    own.unwrap_or_else(|| {
        let digest = Sha256::digest(listing.condition.as_bytes());
        let (first, _) = digest.split_first_chunk().expect("a digest is longer than eight bytes");
        u64::from_be_bytes(*first) >> 11
    })
}

/// `"live_price"`: null while nothing was ever quoted.
fn live_price(o: &mut Object<'_>, cell: &MarketCell, reads: &Reads) {
    let Some(quote) = Quote::of(cell, reads) else { return o.null("live_price") };
    let figures = cell.figures();
    o.object("live_price", |o| {
        quote.write_sides(o);
        o.vol_or_null("volume", figures.volume_total);
        o.ts_or_null("updated_at", quote.changed_at);
        o.word("source", quote.source());
        quote.write_outcomes(o, cell);
        o.ts_or_null("synced_at", cell.figures_at());
    });
}

fn detail_fields(o: &mut Object<'_>, cell: &MarketCell, reads: &Reads, now: Timestamp) {
    let (listing, phase) = (&cell.listing, Phase::of(cell, now));
    let event = cell.event();
    o.text_or_null("event_group_id", event.map(|event| event.id.as_str()));
    o.text_or_null("event_title", event.map(|event| event.title.as_str()));
    o.ts_or_null("end_date", cell.end());
    let winner = match cell.resolution() {
        Some(Resolution::Winner(outcome)) => Some(outcome),
        Some(Resolution::Split) | None => None,
    };
    o.text_or_null("resolved_outcome", winner.map(|outcome| cell.outcome(outcome)));
    o.boolean("archived", phase.archived_at.is_some());
    o.ts_or_null("archived_at", phase.archived_at);
    let marks = Marks { catalog: &reads.catalog, books: &reads.books };
    o.array("tokens", OUTCOMES, |out, outcome| {
        object(out, |o| {
            o.text("token_id", cell.token(outcome));
            o.text("outcome", cell.outcome(outcome));
            match marks.mark(cell.instrument(outcome)) {
                Some(mark) => super::quote::number(o, "price", mark),
                None => o.null("price"),
            }
            o.boolean("winner", winner == Some(outcome));
        });
    });
    o.text("question_id", &listing.condition);
    o.text_or_null("market_slug", known(&listing.slug));
    o.boolean("neg_risk", listing.neg_risk);
    book::tick(o, "tick_size", cell);
    book::size(o, "min_order_size", book::min_order_size(cell));
    o.integer("fee_rate_bps", reads.rules.fees.rate(listing.category).0.into());
    o.text_or_null("description", listing.description.as_deref());
    o.word("venue", venue(listing.venue));
}

fn venue(venue: Venue) -> &'static str {
    match venue {
        Venue::Synthetic => "synthetic",
        Venue::Polymarket => "polymarket",
        Venue::Kalshi => "kalshi",
    }
}

/// Fields of the venue's own market object whose names are not taken (venue.md §2).
pub fn venue_fields(o: &mut Object<'_>, cell: &MarketCell, reads: &Reads, now: Timestamp) {
    let (listing, phase) = (&cell.listing, Phase::of(cell, now));
    let bps = reads.rules.fees.rate(listing.category).0;
    o.boolean("enable_order_book", true);
    o.boolean("accepting_orders", phase.accepting_orders);
    o.ts_or_null("accepting_order_timestamp", listing.start);
    decimal::size(o.name("minimum_order_size"), book::min_order_size(cell));
    decimal::tick(o.name("minimum_tick_size"), cell.tick());
    o.ts_or_null("end_date_iso", cell.end());
    o.null("game_start_time");
    o.integer("seconds_delay", 0);
    o.integer("maker_base_fee", 0);
    o.integer("taker_base_fee", base_fee(bps));
    o.boolean("notifications_enabled", false);
    o.boolean("is_50_50_outcome", cell.resolution() == Some(Resolution::Split));
    for name in ["neg_risk_market_id", "neg_risk_request_id", "fpmm"] {
        o.word(name, "");
    }
    let image = listing.image.as_deref().unwrap_or_default();
    o.text("icon", image);
    o.text("image", image);
    o.name("rewards").extend_from_slice(br#"{"rates":null,"min_size":0,"max_spread":0}"#);
    o.array("tags", &listing.tags, |out, tag| string(out, tag));
}

#[cfg(test)]
mod tests;
