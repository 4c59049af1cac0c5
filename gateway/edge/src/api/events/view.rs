//! Records of events (gateway/docs/market-data.md §4).

use super::PageEvent;
use crate::api::markets::quote::Quote;
use crate::api::markets::view::{CONDITION, CategoryName, is_hot_volume, number, token_ids};
use crate::http::record::{EmptyList, record};
use crate::http::scalar::{ConditionId, Price, Timestamp, TokenId, Volume, words};
use crate::reads::Reads;
use engine::market::catalog::MarketCell;
use wire::fields::OFFSET_MAX;

words! {
    pub WarmingCode = "HTTP_503";
    pub WarmingSource = "warming";
}

record! {
    /// Best prices of the first outcome.
    struct EventPrice {
        buy: Option<Price> = Some(Price::of("0.41"));
        sell: Option<Price> = Some(Price::of("0.42"));
    }

    /// A market as its event shows it.
    struct EventMarket<'a> {
        condition_id: ConditionId<'a> = CONDITION.into();
        slug: &'a str = "rain-in-lisbon-oct-3";
        question: &'a str = "Rain in Lisbon on 3 October?";
        outcomes: [&'a str; 2] = ["Yes", "No"];
        live_price: Option<EventPrice> = Some(EventPrice::example()), "Null while nothing was ever quoted.";
        clob_token_ids: [TokenId<'a>; 2] = ["81140002", "55200077"].map(TokenId::from);
        display_label: Option<&'a str> = None, "Label inside the event; without one the question serves.";
        volume_24h: Option<Volume> = Some(Volume::of("1822.5"));
        volume_total: Option<Volume> = Some(Volume::of("9310"));
        id: u64 = 55_871, "The venue's own number of the market, else one made of its condition id; never changes.";
    }

    /// A group of markets.
    pub struct Event<'a> {
        id: &'a str = "e-771";
        slug: &'a str = "lisbon-weather";
        title: &'a str = "Lisbon weather";
        image: Option<&'a str> = None;
        end_date: Option<Timestamp> = Some(Timestamp::of("2026-10-04T00:00:00Z"));
        is_hot: bool = true, "More than 5000 USD traded on all its markets.";
        category: Option<CategoryName> = Some("weather".into());
        markets: Vec<EventMarket<'a>> = Vec::example(), "Those that are not closed, most traded first.";
    }

    /// One page of events.
    pub struct EventPage<'a> {
        pub events: Vec<Event<'a>> = Vec::example(), "By summed volume.";
        pub total: usize = 1, "Across all pages.";
        pub limit: usize = 50;
        #[schemars(range(min = 0, max = OFFSET_MAX))]
        pub offset: usize = 0;
        pub cache_source: &'a str = "memory", "For people: nothing to branch on.";
        pub has_sports: Option<bool> = None, "Whether `include_sports=false` left any out; null without that parameter.";
    }

    /// Nothing was listed yet.
    pub struct EventsWarming<'a> {
        pub error: WarmingCode = "HTTP_503".into();
        pub message: &'a str = super::WARMING;
        pub events: EmptyList = EmptyList;
        #[schemars(range(min = 0, max = 0))]
        pub total: u64 = 0;
        pub limit: usize = 50;
        #[schemars(range(min = 0, max = OFFSET_MAX))]
        pub offset: usize = 0;
        pub cache_source: WarmingSource = "warming".into();
        pub has_sports: () = ();
    }
}

impl<'a> Event<'a> {
    /// An event with those of its markets that the page shows.
    pub fn new(page_event: &PageEvent<'_>, reads: &'a Reads) -> Event<'a> {
        let row = page_event.row;
        let first = reads.catalog.market(row.first).expect("a list names markets of the catalogue");
        let terms = first.event().expect("an event row is made of markets with one");
        let cells = page_event.markets.iter().filter_map(|market| reads.catalog.market(*market));
        Event {
            id: &terms.id,
            slug: &terms.slug,
            title: &terms.title,
            image: terms.image.as_deref(),
            end_date: terms.end.map(Timestamp),
            is_hot: is_hot_volume(row.volume),
            category: first.listing.category.name().map(CategoryName::from),
            markets: cells.map(|cell| EventMarket::new(cell, reads)).collect(),
        }
    }
}

impl<'a> EventMarket<'a> {
    fn new(cell: &'a MarketCell, reads: &Reads) -> EventMarket<'a> {
        let (listing, figures) = (&cell.listing, cell.figures());
        let live_price =
            Quote::of(cell, reads).map(|quote| EventPrice { buy: quote.buy.map(Price), sell: quote.sell.map(Price) });
        EventMarket {
            condition_id: listing.condition.as_str().into(),
            slug: &listing.slug,
            question: &listing.question,
            outcomes: listing.outcomes.each_ref().map(String::as_str),
            live_price,
            clob_token_ids: token_ids(listing),
            display_label: listing.label.as_deref(),
            volume_24h: figures.volume_24h.map(Volume),
            volume_total: figures.volume_total.map(Volume),
            id: number(listing),
        }
    }
}
