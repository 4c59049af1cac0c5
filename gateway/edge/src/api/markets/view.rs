//! Records of markets (gateway/docs/market-data.md §2): the summary of lists, and the detail, which has the venue's own
//! fields too (gateway/docs/venue-clients.md §2).

use super::quote::{OUTCOMES, Quote, QuoteSource, QuotedOutcome};
use crate::api::account::valuation::Marks;
use crate::api::books::view as book;
use crate::api::prices::base_fee;
use crate::http::record::{forms, record};
use crate::http::scalar::{self, ConditionId, Number, Price, Quantity, TokenId, Volume, words};
use crate::reads::Reads;
use engine::amount::Qty;
use engine::id::Outcome;
use engine::market::catalog::MarketCell;
use engine::market::terms::{Listing, MarketState, Resolution, Venue};
use engine::time::{DAY, Timestamp};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use wire::cursor;

/// A market with more traded than this is hot (10⁻⁶ of the venue's unit).
const HOT_VOLUME_ABOVE: u64 = 5_000_000_000;
/// A resolved market is archived after this long.
const ARCHIVED_AFTER_US: u64 = 30 * DAY;
/// 10⁻⁴ in 10⁻⁶.
const MICROS_PER_TICK: u64 = 100;

/// The state of a market, as the booleans of its records show it.
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

/// Whether a traded volume (10⁻⁶ of the venue's unit) makes a market or an event hot.
pub fn is_hot_volume(volume: u64) -> bool {
    volume > HOT_VOLUME_ABOVE
}

words! {
    pub CategoryName = "sports", "finance", "politics", "mentions", "tech", "economics", "culture", "weather", "other",
        "crypto", "geopolitics";
}

words! {
    VenueName in Venue::NAMES;
}

record! {
    /// What a market is quoted at.
    struct LivePrice<'a> {
        buy: Option<Price> = Some(Price::of("0.41")), "Best bid of the first outcome, else its displayed price.";
        sell: Option<Price> = Some(Price::of("0.42")), "Best ask of the first outcome, else its displayed price.";
        volume: Option<Volume> = Some(Volume::of("9310")), "All-time.";
        updated_at: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-02T09:14:59Z")),
            "When the book last changed.";
        source: QuoteSource = "clob".into();
        outcomes: [QuotedOutcome<'a>; 2] = [
            QuotedOutcome::example(),
            QuotedOutcome { label: "No", price: Some(Price::of("0.585")), token_id: "55200077".into() },
        ];
        synced_at: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-02T09:14:10Z")),
            "When the venue last reported figures.";
    }

    /// A market as lists show it.
    pub struct MarketSummary<'a> {
        condition_id: ConditionId<'a> = CONDITION.into();
        slug: Option<&'a str> = Some("rain-in-lisbon-oct-3");
        question: Option<&'a str> = Some("Rain in Lisbon on 3 October?");
        outcomes: [&'a str; 2] = ["Yes", "No"], "In the order of the tokens.";
        active: bool = true;
        closed: bool = false;
        is_hot: bool = true, "More than 5000 USD traded.";
        image_url: Option<&'a str> = None;
        category: Option<CategoryName> = Some("weather".into());
        display_label: Option<&'a str> = None, "Label inside its event; without one the question serves.";
        clob_token_ids: [TokenId<'a>; 2] = ["81140002", "55200077"].map(TokenId::from);
        volume_24h: Option<Volume> = Some(Volume::of("1822.5")), "Trailing 24 hours; null when not reported.";
        volume_total: Option<Volume> = Some(Volume::of("9310")), "All-time; null when not reported.";
        last_price: Option<Price> = Some(Price::of("0.42")),
            "Price of the first outcome's last trade: of the last trade received, or as the venue reported it since.";
        live_price: Option<LivePrice<'a>> = Some(LivePrice::example()), "Null while nothing was ever quoted.";
        id: u64 = 55_871, "The venue's own number of the market, else one made of its condition id; never changes.";
    }

    /// One page of markets.
    pub struct MarketPage<'a> {
        pub limit: usize = 50;
        pub count: usize = 1, "Markets of this page.";
        pub next_cursor: Cow<'a, str> = cursor::END.into(), "`LTE=` after the last page.";
        pub data: Vec<MarketSummary<'a>> = Vec::example();
    }

    /// An outcome's token.
    struct MarketToken<'a> {
        token_id: TokenId<'a> = "81140002".into();
        outcome: &'a str = "Yes";
        price: Option<Number> = Some(Number::of("0.415")), "Displayed price.";
        winner: bool = false, "Only after the resolution.";
    }

    // Rewards of makers, which do not exist here.
    struct NoRewards {
        rates: () = ();
        min_size: u8 = 0;
        max_spread: u8 = 0;
    }

    /// A market by itself, with the venue's own fields.
    pub struct MarketDetail<'a> {
        #[serde(flatten)]
        summary: MarketSummary<'a> = MarketSummary { live_price: None, ..MarketSummary::example() };
        event_group_id: Option<&'a str> = Some("e-771");
        event_title: Option<&'a str> = Some("Lisbon weather");
        end_date: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-04T00:00:00Z"));
        resolved_outcome: Option<&'a str> = None;
        archived: bool = false, "Resolved for more than 30 days.";
        archived_at: Option<scalar::Timestamp> = None;
        tokens: [MarketToken<'a>; 2] = [
            MarketToken::example(),
            MarketToken {
                token_id: "55200077".into(),
                outcome: "No",
                price: Some(Number::of("0.585")),
                winner: false,
            },
        ];
        question_id: ConditionId<'a> = CONDITION.into(), "The condition id again.";
        market_slug: Option<&'a str> = Some("rain-in-lisbon-oct-3"), "The slug again.";
        neg_risk: bool = false;
        tick_size: Quantity = Quantity::of("0.01");
        min_order_size: Quantity = Quantity::of("5");
        fee_rate_bps: u32 = 500;
        description: Option<&'a str> = None;
        venue: VenueName = "synthetic".into();
        enable_order_book: bool = true;
        accepting_orders: bool = true;
        accepting_order_timestamp: Option<scalar::Timestamp> = None;
        minimum_order_size: Number = Number::of("5");
        minimum_tick_size: Number = Number::of("0.01");
        end_date_iso: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-04T00:00:00Z"));
        game_start_time: () = ();
        seconds_delay: u32 = 0;
        maker_base_fee: u32 = 0;
        taker_base_fee: u64 = 1_000;
        notifications_enabled: bool = false;
        is_50_50_outcome: bool = false;
        neg_risk_market_id: &'a str = "", "Always empty, as are the next two.";
        neg_risk_request_id: &'a str = "";
        fpmm: &'a str = "";
        icon: &'a str = "";
        image: &'a str = "";
        #[schemars(with = "Value")]
        rewards: NoRewards = NoRewards::example(), "There are none here.";
        tags: &'a [String] = &[];
        #[schemars(with = "Option<Value>")]
        order_book: Option<Box<RawValue>> = None,
            "With `include_book`: the first outcome's book as `/v1/book` has it, or null.", skip_serializing_if;
    }
}

/// A market of the examples.
pub const CONDITION: &str = "0x51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de519e";

forms! {
    // The answer of a list.
    pub MarketList<'a> = Rows(Vec<MarketSummary<'a>>), Page(MarketPage<'a>); MarketList::Rows(Vec::example());
}

impl<'a> LivePrice<'a> {
    /// `None` before the first quote.
    fn new(cell: &'a MarketCell, reads: &Reads) -> Option<LivePrice<'a>> {
        let quote = Quote::of(cell, reads)?;
        Some(LivePrice {
            buy: quote.buy.map(Price),
            sell: quote.sell.map(Price),
            volume: cell.figures().volume_total.map(Volume),
            updated_at: quote.changed_at.map(scalar::Timestamp),
            source: quote.source(),
            outcomes: quote.outcomes(cell),
            synced_at: cell.figures_at().map(scalar::Timestamp),
        })
    }
}

impl<'a> MarketSummary<'a> {
    pub fn new(cell: &'a MarketCell, reads: &Reads, now: Timestamp) -> MarketSummary<'a> {
        let (listing, figures, phase) = (&cell.listing, cell.figures(), Phase::of(cell, now));
        let last = reads.books.last_price(cell.instrument(Outcome::First));
        MarketSummary {
            condition_id: listing.condition.as_str().into(),
            slug: non_empty(&listing.slug),
            question: non_empty(&listing.question),
            outcomes: listing.outcomes.each_ref().map(String::as_str),
            active: phase.active,
            closed: phase.closed,
            is_hot: is_hot(cell),
            image_url: listing.image.as_deref(),
            category: listing.category.name().map(CategoryName::from),
            display_label: listing.label.as_deref(),
            clob_token_ids: token_ids(listing),
            volume_24h: figures.volume_24h.map(Volume),
            volume_total: figures.volume_total.map(Volume),
            last_price: last.map(|last| last.price.into()),
            live_price: LivePrice::new(cell, reads),
            id: number(listing),
        }
    }
}

impl<'a> MarketDetail<'a> {
    /// With the book of the first outcome if `with_book`.
    pub fn new(cell: &'a MarketCell, reads: &Reads, now: Timestamp, with_book: bool) -> MarketDetail<'a> {
        let (listing, phase, event) = (&cell.listing, Phase::of(cell, now), cell.event());
        let bps = reads.rules.fees.shown(cell).bps().0;
        let marks = Marks { catalog: &reads.catalog, books: &reads.books };
        let winner = match cell.resolution() {
            Some(Resolution::Winner(outcome)) => Some(outcome),
            Some(Resolution::Split) | None => None,
        };
        let min_order_size = book::min_order_size(cell);
        let image = listing.image.as_deref().unwrap_or_default();
        MarketDetail {
            summary: MarketSummary::new(cell, reads, now),
            event_group_id: event.map(|event| event.id.as_str()),
            event_title: event.map(|event| event.title.as_str()),
            end_date: cell.end().map(scalar::Timestamp),
            resolved_outcome: winner.map(|outcome| cell.outcome(outcome)),
            archived: phase.archived_at.is_some(),
            archived_at: phase.archived_at.map(scalar::Timestamp),
            tokens: OUTCOMES.map(|outcome| MarketToken {
                token_id: cell.token(outcome).into(),
                outcome: cell.outcome(outcome),
                price: marks.mark(cell.instrument(outcome)).map(Number::from),
                winner: winner == Some(outcome),
            }),
            question_id: listing.condition.as_str().into(),
            market_slug: non_empty(&listing.slug),
            neg_risk: listing.neg_risk,
            tick_size: Quantity::uncut(Qty(u64::from(cell.tick().0) * MICROS_PER_TICK)),
            min_order_size: Quantity::uncut(min_order_size),
            fee_rate_bps: bps,
            description: listing.description.as_deref(),
            venue: listing.venue.name().into(),
            enable_order_book: true,
            accepting_orders: phase.accepting_orders,
            accepting_order_timestamp: listing.start.map(scalar::Timestamp),
            minimum_order_size: min_order_size.into(),
            minimum_tick_size: cell.tick().into(),
            end_date_iso: cell.end().map(scalar::Timestamp),
            game_start_time: (),
            seconds_delay: 0,
            maker_base_fee: 0,
            taker_base_fee: base_fee(bps),
            notifications_enabled: false,
            is_50_50_outcome: cell.resolution() == Some(Resolution::Split),
            neg_risk_market_id: "",
            neg_risk_request_id: "",
            fpmm: "",
            icon: image,
            image,
            rewards: NoRewards { rates: (), min_size: 0, max_spread: 0 },
            tags: &listing.tags,
            order_book: with_book.then(|| order_book(cell, reads, now)),
        }
    }
}

/// The book of the first outcome, or null.
fn order_book(cell: &MarketCell, reads: &Reads, now: Timestamp) -> Box<RawValue> {
    let mut text = Vec::new();
    let instrument = cell.instrument(Outcome::First);
    let request = book::BookRequest { cell, instrument, levels_max: None, is_strict: false };
    if book::book(&mut text, request, reads, now).is_err() {
        text.extend_from_slice(b"null");
    }
    let text = String::from_utf8(text).expect("JSON is UTF-8");
    RawValue::from_string(text).expect("a book is JSON")
}

/// Both tokens of a market.
pub fn token_ids(listing: &Listing) -> [TokenId<'_>; 2] {
    listing.tokens.each_ref().map(|token| token.as_str().into())
}

fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Largest number that every reader of JSON holds exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The market's number: the venue's own where it has one, else the first 53 bits of SHA-256 of the condition id. It
/// depends on the listing alone, so it never changes.
pub fn number(listing: &Listing) -> u64 {
    let own = listing.venue_market_id.parse().ok().filter(|number| *number <= NUMBER_MAX);
    own.unwrap_or_else(|| {
        let digest = Sha256::digest(listing.condition.as_bytes());
        let (first, _) = digest.split_first_chunk().expect("a digest is longer than eight bytes");
        u64::from_be_bytes(*first) >> 11
    })
}

#[cfg(test)]
mod tests;
