//! Records of up-or-down markets (gateway/docs/market-data.md §5).

use crate::api::markets::quote::{OUTCOMES, Quote};
use crate::api::markets::view::Phase;
use crate::http::record::{ByName, record};
use crate::http::scalar::{self, ConditionId, Decimal, Number, words};
use crate::reads::Reads;
use engine::market::catalog::MarketCell;
use engine::market::spot::{self, SpotPrice};
use engine::market::terms::{Asset, UpDown};
use engine::time::Timestamp;
use serde::Serialize;
use wire::decimal;
use wire::updown;

words! {
    pub AssetName = "BTC", "ETH", "SOL", "XRP", "SPX", "NDX";
    pub IntervalName = "5M", "15M", "1H", "4H", "daily";
    /// Labels of `engine::market::spot`: computed prices, and the two sources of a live venue.
    pub SpotSource = "chainlink", "chainlink_rtds", "polymarket_rtds";
}

record! {
    /// The market itself; its last three fields are JSON inside texts.
    struct UpDownMarket<'a> {
        id: &'a str = "55871";
        condition_id: ConditionId<'a> = CONDITION.into();
        question: &'a str = "ETH up or down?";
        outcomes: String = json(&["Up", "Down"]);
        outcome_prices: String = json(&["0.53", "0.47"]), "Displayed prices; `[]` while nothing was ever quoted.";
        token_ids: String = json(&["901244", "330781"]);
    }

    /// Best prices of the first outcome.
    struct UpDownPrice {
        buy: Option<Number> = Some(Number::of("0.52"));
        sell: Option<Number> = Some(Number::of("0.54"));
        updated_at: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-02T10:12:00Z"));
    }

    /// An up-or-down market with its window.
    pub struct UpDownRow<'a> {
        event_id: Option<&'a str> = Some("e-9001");
        condition_id: ConditionId<'a> = CONDITION.into();
        slug: &'a str = "eth-updown-1h-1790935200";
        title: &'a str = "ETH up or down, 6–7 AM ET";
        description: Option<&'a str> = None;
        asset: AssetName = "ETH".into();
        interval: IntervalName = "1H".into();
        time_range: String = "6:00 AM-7:00 AM ET".to_owned(), "US Eastern.";
        date_display: String = "October 2".to_owned(), "US Eastern.";
        start_date: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T10:00:00Z");
        end_date: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T11:00:00Z");
        active: bool = true;
        closed: bool = false;
        resolved: bool = false;
        tags: Vec<&'a str> = vec!["up-or-down", "ethereum", "1h"];
        markets: [UpDownMarket<'a>; 1] = [UpDownMarket::example()];
        live_price: Option<UpDownPrice> = Some(UpDownPrice::example()), "Null while nothing was ever quoted.";
        group_item_threshold: Option<&'a str> = Some("2511.40"),
            "The strike; null until the window opens, and where unknown.";
        event_metadata_ptb: Option<&'a str> = Some("2511.40"), "The price to beat as the event has it.";
        image: Option<&'a str> = None;
        icon: Option<&'a str> = None;
    }

    /// The newest spot price of an asset.
    pub struct UpDownSpot<'a> {
        symbol: AssetName = "ETH".into(), "The asset.";
        price: Decimal<'a> = "2511.4".into(), "US dollars.";
        source: SpotSource = spot::SOURCE.into(),
            "`chainlink`: computed by the synthetic venue; `chainlink_rtds`, `polymarket_rtds`: sources of a live venue.";
        change_24h: Option<&'a str> = None, "Null: the source does not report it.";
    }

    /// The up-or-down markets of the near-term window, soonest-resolving first.
    pub struct UpDownList<'a> {
        pub markets: Vec<UpDownRow<'a>> = Vec::example();
        pub total: u64 = 1, "That match, regardless of the limit.";
        pub interval_counts: ByName<IntervalName, u64> = ByName(vec![("1H".into(), 1)]),
            "Of the whole window, as are the next three.";
        pub asset_counts: ByName<AssetName, u64> = ByName(vec![("ETH".into(), 1)]);
        pub available_intervals: Vec<IntervalName> = vec!["1H".into()];
        pub available_assets: Vec<AssetName> = vec!["ETH".into()];
        pub crypto_prices: ByName<AssetName, UpDownSpot<'a>> = ByName(Vec::new()),
            "By symbol. Empty without a source of spot prices.";
        pub timestamp: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T10:12:00Z");
        pub cache_hit: bool = true;
    }

    /// How many markets of an interval the window has.
    pub struct UpDownCount {
        pub interval: IntervalName = "1H".into();
        pub count: u64 = 4;
    }

    /// Intervals that the window has markets of.
    pub struct UpDownIntervals {
        pub asset: Option<AssetName> = Some("BTC".into()), "Null when none was named.";
        pub intervals: Vec<UpDownCount> = Vec::example();
    }
}

const CONDITION: &str = "0x77aade77aade77aade77aade77aade77aade77aade77aade77aade77aade7710";

impl<'a> UpDownRow<'a> {
    /// `now` is the server's time, `venue_now` that of the market data.
    pub fn new(
        (cell, window): (&'a MarketCell, UpDown),
        reads: &Reads,
        now: Timestamp,
        venue_now: Timestamp,
    ) -> UpDownRow<'a> {
        let (listing, phase, quote) = (&cell.listing, Phase::of(cell, now), Quote::of(cell, reads));
        // Before the window opens the price to beat is unknown.
        let is_open = window.start <= venue_now;
        let market = UpDownMarket::new(cell, quote.as_ref());
        UpDownRow {
            event_id: cell.event().map(|event| event.id.as_str()),
            condition_id: listing.condition.as_str().into(),
            slug: &listing.slug,
            title: cell.event().map_or(&listing.question, |event| &event.title),
            description: listing.description.as_deref(),
            asset: window.asset.name().into(),
            interval: window.interval.name().into(),
            time_range: updown::time_range(window.start, window.end),
            date_display: updown::date(window.start),
            start_date: scalar::Timestamp(window.start),
            end_date: scalar::Timestamp(window.end),
            active: phase.active,
            closed: phase.closed,
            resolved: phase.resolved,
            tags: listing.tags.iter().map(String::as_str).collect(),
            markets: [market],
            live_price: quote.map(|quote| UpDownPrice {
                buy: quote.buy.map(Number::from),
                sell: quote.sell.map(Number::from),
                updated_at: quote.changed_at.map(scalar::Timestamp),
            }),
            group_item_threshold: cell.strike().filter(|_| is_open),
            event_metadata_ptb: cell.price_to_beat().filter(|_| is_open),
            image: listing.image.as_deref(),
            icon: listing.image.as_deref(),
        }
    }
}

impl<'a> UpDownMarket<'a> {
    fn new(cell: &'a MarketCell, quote: Option<&Quote>) -> UpDownMarket<'a> {
        let prices = quote.map(|quote| quote.outcomes).unwrap_or_default();
        let prices: Vec<_> = prices.into_iter().flatten().map(scalar::Price).collect();
        UpDownMarket {
            id: &cell.listing.venue_market_id,
            condition_id: cell.listing.condition.as_str().into(),
            question: &cell.listing.question,
            outcomes: json(&OUTCOMES.map(|outcome| cell.outcome(outcome))),
            outcome_prices: json(&prices),
            token_ids: json(&OUTCOMES.map(|outcome| cell.token(outcome))),
        }
    }
}

impl UpDownSpot<'_> {
    pub fn new(asset: Asset, price: SpotPrice) -> Self {
        UpDownSpot {
            symbol: asset.name().into(),
            price: decimal::text(|out| decimal::vol(out, price.micros)).into(),
            source: price.source.into(),
            change_24h: None,
        }
    }
}

/// The JSON of a list as a text.
fn json(list: &impl Serialize) -> String {
    serde_json::to_string(list).expect("texts can be serialised")
}
