//! Records of the venue's catalogue service: markets, events and tags. Figures are JSON numbers, some lists are texts
//! that hold JSON, and an unknown figure has no field.

use super::filter::was_active;
use super::number;
use crate::api::books::view::min_order_size;
use crate::api::markets::quote::Quote;
use crate::api::markets::view::{CONDITION, Phase, number as market_number};
use crate::api::prices::{base_fee, top_of};
use crate::http::record::{EmptyList, record};
use crate::http::scalar::{self, Blank, ConditionId, Number, Price, Volume, words};
use crate::reads::Reads;
use engine::amount::Cash;
use engine::book::BookSide;
use engine::id::{MarketId, Outcome};
use engine::market::catalog::MarketCell;
use engine::market::terms::EventTerms;
use engine::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use wire::instant;

/// Characters of a date.
const DATE_CHARS: usize = 10;

/// A list of texts, as a text that holds JSON.
#[derive(Serialize, JsonSchema)]
pub struct JsonList(#[schemars(regex(pattern = r"^\[.*\]$"))] String);

impl JsonList {
    fn new(list: &impl Serialize) -> JsonList {
        JsonList(serde_json::to_string(list).expect("texts can be serialised"))
    }
}

/// A whole number as a text.
#[derive(Serialize, JsonSchema)]
pub struct NumberText(#[schemars(regex(pattern = "^(0|[1-9][0-9]*)$"))] String);

impl From<u64> for NumberText {
    fn from(number: u64) -> NumberText {
        NumberText(number.to_string())
    }
}

/// A day in UTC.
#[derive(Serialize, JsonSchema)]
pub struct Date(#[schemars(regex(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))] String);

impl Date {
    /// The day of a time.
    fn of(at: Timestamp) -> Date {
        let mut text = instant::ts_text(at);
        text.truncate(DATE_CHARS);
        Date(text)
    }
}

words! {
    ResolvedStatus = "resolved";
}

record! {
    /// What a taker pays: rate × shares × (price × (1 − price)) ^ exponent.
    struct GammaFeeSchedule {
        exponent: u32 = 1;
        rate: Number = Number::of("0.05");
        #[serde(rename = "takerOnly")]
        taker_only: bool = true;
        #[serde(rename = "rebateRate")]
        rebate_rate: Number = Number(0);
    }

    /// A tag.
    pub struct GammaTag<'a> {
        id: NumberText = 1_557_558.into();
        label: &'a str = "weather";
        slug: &'a str = "weather";
    }

    /// The event of a market.
    #[serde(rename_all = "camelCase")]
    struct GammaEventReference<'a> {
        id: &'a str = "260654";
        ticker: &'a str = "lisbon-weather";
        slug: &'a str = "lisbon-weather";
        title: &'a str = "Lisbon weather";
        active: bool = true;
        closed: bool = false;
        neg_risk: bool = false;
    }

    /// A market. Figures that are not known have no field.
    #[serde(rename_all = "camelCase")]
    pub struct GammaMarket<'a> {
        id: NumberText = 1_557_558.into(),
            "The venue's own number, else 53 bits of the SHA-256 of the condition id.";
        question: &'a str = "Rain in Lisbon on 3 October?";
        condition_id: ConditionId<'a> = CONDITION.into();
        #[serde(rename = "questionID")]
        question_id: ConditionId<'a> = CONDITION.into(), "The condition id.";
        slug: &'a str = "rain-in-lisbon-oct-3";
        resolution_source: Blank = "".into();
        description: &'a str = "";
        image: &'a str = "";
        icon: &'a str = "", "The same as `image`.";
        category: Option<&'a str> = Some("weather"), skip_serializing_if;
        group_item_title: Option<&'a str> = None, "Label inside the event.", skip_serializing_if;
        outcomes: JsonList = JsonList::new(&["Yes", "No"]);
        clob_token_ids: JsonList = JsonList::new(&["81140002", "55200077"]), "Tokens, in the order of the outcomes.";
        volume: Option<Volume> = Some(Volume::of("9310")), skip_serializing_if;
        volume_num: Option<Number> = Some(Number::of("9310")), "The same.", skip_serializing_if;
        volume24hr: Option<Number> = None, skip_serializing_if;
        volume24hr_clob: Option<Number> = None, "The same.", skip_serializing_if;
        liquidity: Option<Volume> = None, skip_serializing_if;
        liquidity_num: Option<Number> = None, "The same.", skip_serializing_if;
        outcome_prices: Option<JsonList> = Some(JsonList::new(&["0.415", "0.585"])),
            "Displayed prices, in the order of the outcomes.", skip_serializing_if;
        best_bid: Option<Number> = Some(Number::of("0.41")), "Of the first outcome.", skip_serializing_if;
        best_ask: Option<Number> = Some(Number::of("0.42")), "Of the first outcome.", skip_serializing_if;
        spread: Option<Number> = Some(Number::of("0.01")), "Best ask less best bid.", skip_serializing_if;
        last_trade_price: Option<Number> = None, "Of the first outcome.", skip_serializing_if;
        start_date: Option<scalar::Timestamp> = None, skip_serializing_if;
        start_date_iso: Option<Date> = None, skip_serializing_if;
        end_date: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-04T00:00:00Z")), skip_serializing_if;
        end_date_iso: Option<Date> = Some(Date("2026-10-04".to_owned())), skip_serializing_if;
        event_start_time: Option<scalar::Timestamp> = None,
            "Up-or-down markets: when the window begins.", skip_serializing_if;
        accepting_orders_timestamp: Option<scalar::Timestamp> = None, "The same as `startDate`.", skip_serializing_if;
        created_at: scalar::Timestamp = scalar::Timestamp::of("2026-09-01T00:00:00Z"), "When it was listed here.";
        updated_at: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:14:05Z"), "When its figures last came.";
        active: bool = true, "Whether it has opened; stays true after it is closed.";
        closed: bool = false;
        archived: bool = false;
        accepting_orders: bool = true;
        enable_order_book: bool = true, "Always true.";
        ready: bool = false, "Always false.";
        funded: bool = false, "Always false.";
        new: bool = false, "Always false.";
        featured: bool = false, "Always false.";
        restricted: bool = false, "Always false.";
        neg_risk_other: bool = false, "Always false.";
        approved: bool = true, "Always true.";
        neg_risk: bool = false;
        market_maker_address: Blank = "".into();
        order_price_min_tick_size: Number = Number::of("0.01");
        order_min_size: Number = Number::of("5");
        seconds_delay: u32 = 0, "0";
        maker_base_fee: u64 = 1_000, "What an order carries, not what is paid.";
        taker_base_fee: u64 = 1_000, "What an order carries, not what is paid.";
        fees_enabled: bool = true;
        fee_schedule: GammaFeeSchedule = GammaFeeSchedule::example();
        rewards_min_size: u32 = 0, "0";
        rewards_max_spread: u32 = 0, "0";
        automatically_resolved: bool = false, "It is resolved.";
        uma_resolution_statuses: JsonList = JsonList::new(&EmptyList), "Empty.";
        uma_resolution_status: Option<ResolvedStatus> = None, skip_serializing_if;
        closed_time: Option<scalar::Timestamp> = None, "When it was resolved.", skip_serializing_if;
        events: Option<Vec<GammaEventReference<'a>>> = Some(Vec::new()),
            "Its event; not inside one.", skip_serializing_if;
        tags: Option<Vec<GammaTag<'a>>> = Some(Vec::new()), "Not inside an event.", skip_serializing_if;
    }

    /// An event with all of its markets. Its figures are the sums of theirs.
    #[serde(rename_all = "camelCase")]
    pub struct GammaEvent<'a> {
        id: &'a str = "260654";
        ticker: &'a str = "lisbon-weather";
        slug: &'a str = "lisbon-weather";
        title: &'a str = "Lisbon weather";
        description: &'a str = "", "That of its first market.";
        resolution_source: Blank = "".into();
        start_date: Option<scalar::Timestamp> = None, "The earliest start of its markets.", skip_serializing_if;
        start_date_iso: Option<Date> = None, skip_serializing_if;
        end_date: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-04T00:00:00Z")),
            "The latest end of its markets.", skip_serializing_if;
        end_date_iso: Option<Date> = Some(Date("2026-10-04".to_owned())), skip_serializing_if;
        image: &'a str = "";
        icon: &'a str = "", "The same as `image`.";
        active: bool = true, "Whether at least one of its markets has opened.";
        closed: bool = false, "Whether all its markets are closed.";
        archived: bool = false, "Whether all its markets are archived.";
        new: bool = false, "Always false.";
        featured: bool = false, "Always false.";
        restricted: bool = false, "Always false.";
        liquidity: Number = Number(0);
        volume: Number = Number::of("9310");
        volume24hr: Number = Number::of("1822.5");
        enable_order_book: bool = true, "Always true.";
        neg_risk: bool = false;
        enable_neg_risk: bool = false, "The same as `negRisk`.";
        neg_risk_augmented: bool = false, "Always false.";
        category: Option<&'a str> = Some("weather"), skip_serializing_if;
        tags: Vec<GammaTag<'a>> = Vec::new();
        markets: Vec<GammaMarket<'a>> = Vec::new();
    }

    /// One page of markets.
    pub struct GammaMarketPage<'a> {
        pub markets: Vec<GammaMarket<'a>> = Vec::new();
        pub next_cursor: Option<String> = Some("MjA=".to_owned()), "The last page has none.", skip_serializing_if;
    }

    /// One page of events.
    pub struct GammaEventPage<'a> {
        pub events: Vec<GammaEvent<'a>> = Vec::new();
        pub next_cursor: Option<String> = None, "The last page has none.", skip_serializing_if;
    }

    /// The position in a search.
    #[serde(rename_all = "camelCase")]
    pub struct GammaPagination {
        pub has_more: bool = false;
        pub total_results: usize = 0;
    }

    /// One page of a search.
    pub struct GammaSearchPage<'a> {
        pub events: Vec<GammaEvent<'a>> = Vec::new(), "Most traded first.";
        pub tags: EmptyList = EmptyList, "Always empty.";
        pub profiles: EmptyList = EmptyList, "Always empty.";
        pub pagination: GammaPagination = GammaPagination::example();
    }
}

impl<'a> GammaTag<'a> {
    /// The venue's word for a tag is its slug.
    pub fn new(slug: &'a str) -> GammaTag<'a> {
        GammaTag { id: number::of_text(slug).into(), label: slug, slug }
    }

    fn all(cell: &'a MarketCell) -> Vec<GammaTag<'a>> {
        cell.listing.tags.iter().map(|slug| GammaTag::new(slug)).collect()
    }
}

impl<'a> GammaMarket<'a> {
    /// A market by itself: with its event and its tags.
    pub fn new(cell: &'a MarketCell, reads: &Reads, now: Timestamp) -> GammaMarket<'a> {
        let market = GammaMarket::in_event(cell, reads, now);
        let event = cell.event().map(|event| GammaEventReference {
            id: &event.id,
            ticker: &event.slug,
            slug: &event.slug,
            title: &event.title,
            active: market.active,
            closed: market.closed,
            neg_risk: market.neg_risk,
        });
        GammaMarket { events: Some(event.into_iter().collect()), tags: Some(GammaTag::all(cell)), ..market }
    }

    /// A market of an event, which has the tags.
    fn in_event(cell: &'a MarketCell, reads: &Reads, now: Timestamp) -> GammaMarket<'a> {
        let (listing, figures, phase) = (&cell.listing, cell.figures(), Phase::of(cell, now));
        let first = cell.instrument(Outcome::First);
        let quoted = Quote::of(cell, reads).map(|quote| quote.outcomes);
        let top = top_of(reads, first, cell);
        let best = |side| top.and_then(|top| top.price(side)).map(|price| Price::from(price).0);
        let (bid, ask) = (best(BookSide::Bid), best(BookSide::Ask));
        let resolved_at = cell.resolved_at().filter(|_| phase.resolved);
        let fees = reads.rules.fees.shown(cell);
        let bps = fees.bps().0;
        let image = listing.image.as_deref().unwrap_or_default();
        GammaMarket {
            id: market_number(listing).into(),
            question: &listing.question,
            condition_id: listing.condition.as_str().into(),
            question_id: listing.condition.as_str().into(),
            slug: &listing.slug,
            resolution_source: "".into(),
            description: listing.description.as_deref().unwrap_or_default(),
            image,
            icon: image,
            category: listing.category.name(),
            group_item_title: listing.label.as_deref(),
            outcomes: JsonList::new(&listing.outcomes),
            clob_token_ids: JsonList::new(&listing.tokens),
            volume: figures.volume_total.map(Volume),
            volume_num: figures.volume_total.map(json_number),
            volume24hr: figures.volume_24h.map(json_number),
            volume24hr_clob: figures.volume_24h.map(json_number),
            liquidity: figures.liquidity.map(Volume),
            liquidity_num: figures.liquidity.map(json_number),
            outcome_prices: match quoted {
                Some([Some(first), Some(second)]) => {
                    Some(JsonList::new(&[first, second].map(|price| Volume(price.0.unsigned_abs()))))
                }
                _ => None,
            },
            best_bid: bid.map(Number::from),
            best_ask: ask.map(Number::from),
            spread: bid.zip(ask).map(|(bid, ask)| Cash((ask.0 - bid.0).max(0)).into()),
            last_trade_price: reads.books.last_price(first).map(|last| Price::from(last.price).0.into()),
            start_date: listing.start.map(scalar::Timestamp),
            start_date_iso: listing.start.map(Date::of),
            end_date: cell.end().map(scalar::Timestamp),
            end_date_iso: cell.end().map(Date::of),
            event_start_time: listing.updown.map(|window| scalar::Timestamp(window.start)),
            accepting_orders_timestamp: listing.start.map(scalar::Timestamp),
            created_at: scalar::Timestamp(cell.listed_at),
            updated_at: scalar::Timestamp(cell.figures_at().unwrap_or(cell.listed_at)),
            active: was_active(cell),
            closed: phase.closed,
            archived: phase.archived_at.is_some(),
            accepting_orders: phase.accepting_orders,
            enable_order_book: true,
            ready: false,
            funded: false,
            new: false,
            featured: false,
            restricted: false,
            neg_risk_other: false,
            approved: true,
            neg_risk: listing.neg_risk,
            market_maker_address: "".into(),
            order_price_min_tick_size: cell.tick().into(),
            order_min_size: min_order_size(cell).into(),
            seconds_delay: 0,
            maker_base_fee: base_fee(bps),
            taker_base_fee: base_fee(bps),
            fees_enabled: fees.rate > 0,
            fee_schedule: GammaFeeSchedule {
                exponent: fees.exponent.into(),
                rate: Number(fees.rate.into()),
                taker_only: fees.taker_only,
                rebate_rate: Number(fees.rebate_rate.into()),
            },
            rewards_min_size: 0,
            rewards_max_spread: 0,
            automatically_resolved: phase.resolved,
            uma_resolution_statuses: JsonList::new(&EmptyList),
            uma_resolution_status: resolved_at.map(|_| "resolved".into()),
            closed_time: resolved_at.map(scalar::Timestamp),
            events: None,
            tags: None,
        }
    }
}

impl<'a> GammaEvent<'a> {
    /// An event with its markets; `None` when no market of the group names one.
    pub fn new(group: &Group<'_>, reads: &'a Reads, now: Timestamp) -> Option<GammaEvent<'a>> {
        let (first, terms) = group.event(reads)?;
        let (listing, sums) = (&first.listing, group.sums(reads, now));
        let image = terms.image.as_deref().unwrap_or_default();
        Some(GammaEvent {
            id: &terms.id,
            ticker: &terms.slug,
            slug: &terms.slug,
            title: &terms.title,
            description: listing.description.as_deref().unwrap_or_default(),
            resolution_source: "".into(),
            start_date: sums.start.map(scalar::Timestamp),
            start_date_iso: sums.start.map(Date::of),
            end_date: sums.end.map(scalar::Timestamp),
            end_date_iso: sums.end.map(Date::of),
            image,
            icon: image,
            active: sums.active,
            closed: sums.closed,
            archived: sums.archived,
            new: false,
            featured: false,
            restricted: false,
            liquidity: json_number(sums.liquidity),
            volume: json_number(sums.volume),
            volume24hr: json_number(sums.volume_24h),
            enable_order_book: true,
            neg_risk: listing.neg_risk,
            enable_neg_risk: listing.neg_risk,
            neg_risk_augmented: false,
            category: listing.category.name(),
            tags: GammaTag::all(first),
            markets: group.cells(reads).map(|cell| GammaMarket::in_event(cell, reads, now)).collect(),
        })
    }
}

/// A figure in 10⁻⁶ as a JSON number.
fn json_number(micros: u64) -> Number {
    Number(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// The markets of an event.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    pub markets: &'a [MarketId],
}

/// The sums of the markets of an event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub volume: u64,
    pub volume_24h: u64,
    pub liquidity: u64,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    /// One of them opened.
    pub active: bool,
    /// All of them are closed.
    pub closed: bool,
    /// All of them are archived.
    pub archived: bool,
}

impl<'a> Group<'a> {
    /// The event's own terms, with the market that has them.
    pub fn event<'b>(&self, reads: &'b Reads) -> Option<(&'b MarketCell, &'b EventTerms)> {
        self.cells(reads).find_map(|cell| Some((cell, cell.event()?)))
    }

    pub fn cells<'b>(&self, reads: &'b Reads) -> impl Iterator<Item = &'b MarketCell> + use<'a, 'b> {
        self.markets.iter().filter_map(|market| reads.catalog.market(*market))
    }

    pub fn sums(&self, reads: &Reads, now: Timestamp) -> Sums {
        let mut sums = Sums { closed: true, archived: true, ..Sums::default() };
        for cell in self.cells(reads) {
            let (figures, phase) = (cell.figures(), Phase::of(cell, now));
            sums.volume = sums.volume.saturating_add(figures.volume_total.unwrap_or_default());
            sums.volume_24h = sums.volume_24h.saturating_add(figures.volume_24h.unwrap_or_default());
            sums.liquidity = sums.liquidity.saturating_add(figures.liquidity.unwrap_or_default());
            sums.start = [sums.start, cell.listing.start].into_iter().flatten().min();
            sums.end = [sums.end, cell.end()].into_iter().flatten().max();
            sums.active |= was_active(cell);
            sums.closed &= phase.closed;
            sums.archived &= phase.archived_at.is_some();
        }
        sums
    }
}
