//! Markets, events and tags as the venue's catalogue service shows them. Figures are JSON numbers, and some lists are
//! texts that hold JSON; what is not known has no field.

use super::filter::was_active;
use super::number;
use crate::api::books::view::min_order_size;
use crate::api::markets::quote::{Quote, number as dollars};
use crate::api::markets::view::{Phase, number as market_number};
use crate::api::prices::{base_fee, book_of};
use crate::reads::Reads;
use engine::amount::{Cash, Price};
use engine::book::BookSide;
use engine::id::{MarketId, Outcome};
use engine::market::catalog::MarketCell;
use engine::market::terms::EventTerms;
use engine::time::Timestamp;
use wire::decimal;
use wire::instant;
use wire::write::{Object, array, object, string};

/// 10⁻⁴ in 10⁻⁶.
const MICROS_PER_TICK: i64 = 100;
/// Basis points in 10⁻⁶.
const MICROS_PER_BPS: u64 = 100;
/// Characters of a date.
const DATE_CHARS: usize = 10;

/// A market by itself: with its events and tags.
pub fn market(out: &mut Vec<u8>, cell: &MarketCell, reads: &Reads, now: Timestamp) {
    object(out, |o| {
        fields(o, cell, reads, now);
        o.array("events", cell.event(), |out, event| {
            object(out, |o| {
                event_names(o, event);
                o.boolean("active", was_active(cell));
                o.boolean("closed", Phase::of(cell, now).closed);
                o.boolean("negRisk", cell.listing.neg_risk);
            });
        });
        tags(o, &cell.listing.tags);
    });
}

/// An event with its markets, which name no event and no tags.
pub fn event(out: &mut Vec<u8>, group: &Group<'_>, reads: &Reads, now: Timestamp) {
    let cells = || group.cells(reads);
    let Some((first, terms)) = cells().find_map(|cell| Some((cell, cell.event()?))) else { return };
    let sums = group.sums(reads, now);
    object(out, |o| {
        event_names(o, terms);
        o.text("description", first.listing.description.as_deref().unwrap_or_default());
        o.word("resolutionSource", "");
        date(o, "startDate", "startDateIso", sums.start);
        date(o, "endDate", "endDateIso", sums.end);
        o.text("image", terms.image.as_deref().unwrap_or_default());
        o.text("icon", terms.image.as_deref().unwrap_or_default());
        o.boolean("active", sums.active);
        o.boolean("closed", sums.closed);
        o.boolean("archived", sums.archived);
        for name in ["new", "featured", "restricted"] {
            o.boolean(name, false);
        }
        for (name, sum) in [("liquidity", sums.liquidity), ("volume", sums.volume), ("volume24hr", sums.volume_24h)] {
            decimal::vol(o.name(name), sum);
        }
        o.boolean("enableOrderBook", true);
        o.boolean("negRisk", first.listing.neg_risk);
        o.boolean("enableNegRisk", first.listing.neg_risk);
        o.boolean("negRiskAugmented", false);
        category(o, first);
        tags(o, &first.listing.tags);
        o.array("markets", cells(), |out, cell| object(out, |o| fields(o, cell, reads, now)));
    });
}

/// A tag: the venue's word for it is its slug.
pub fn tag(out: &mut Vec<u8>, slug: &str) {
    object(out, |o| {
        o.text("id", &number::of_text(slug).to_string());
        o.text("label", slug);
        o.text("slug", slug);
    });
}

/// The markets of an event.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    pub markets: &'a [MarketId],
}

/// What the markets of an event come to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub volume: u64,
    pub volume_24h: u64,
    pub liquidity: u64,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    /// One of them opened.
    pub active: bool,
    /// All of them are.
    pub closed: bool,
    pub archived: bool,
}

impl<'a> Group<'a> {
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

fn event_names(o: &mut Object<'_>, event: &EventTerms) {
    o.text("id", &event.id);
    o.text("ticker", &event.slug);
    o.text("slug", &event.slug);
    o.text("title", &event.title);
}

fn tags(o: &mut Object<'_>, tags: &[String]) {
    o.array("tags", tags, |out, slug| tag(out, slug));
}

fn category(o: &mut Object<'_>, cell: &MarketCell) {
    if let Some(name) = cell.listing.category.name() {
        o.word("category", name);
    }
}

fn fields(o: &mut Object<'_>, cell: &MarketCell, reads: &Reads, now: Timestamp) {
    let (listing, phase) = (&cell.listing, Phase::of(cell, now));
    o.text("id", &market_number(listing).to_string());
    o.text("question", &listing.question);
    o.text("conditionId", &listing.condition);
    o.text("questionID", &listing.condition);
    o.text("slug", &listing.slug);
    o.word("resolutionSource", "");
    o.text("description", listing.description.as_deref().unwrap_or_default());
    o.text("image", listing.image.as_deref().unwrap_or_default());
    o.text("icon", listing.image.as_deref().unwrap_or_default());
    category(o, cell);
    if let Some(label) = &listing.label {
        o.text("groupItemTitle", label);
    }
    texts(o, "outcomes", listing.outcomes.iter().cloned());
    texts(o, "clobTokenIds", listing.tokens.iter().cloned());
    figures(o, cell);
    prices(o, cell, reads);
    dates(o, cell);
    o.boolean("active", was_active(cell));
    o.boolean("closed", phase.closed);
    o.boolean("archived", phase.archived_at.is_some());
    o.boolean("acceptingOrders", phase.accepting_orders);
    o.boolean("enableOrderBook", true);
    for name in ["ready", "funded", "new", "featured", "restricted", "negRiskOther"] {
        o.boolean(name, false);
    }
    o.boolean("approved", true);
    o.boolean("negRisk", listing.neg_risk);
    o.word("marketMakerAddress", "");
    decimal::tick(o.name("orderPriceMinTickSize"), cell.tick());
    decimal::size(o.name("orderMinSize"), min_order_size(cell));
    o.integer("secondsDelay", 0);
    fees(o, cell, reads);
    o.integer("rewardsMinSize", 0);
    o.integer("rewardsMaxSpread", 0);
    o.boolean("automaticallyResolved", phase.resolved);
    o.word("umaResolutionStatuses", "[]");
    if let Some(at) = cell.resolved_at().filter(|_| phase.resolved) {
        o.word("umaResolutionStatus", "resolved");
        o.ts("closedTime", at);
    }
}

fn figures(o: &mut Object<'_>, cell: &MarketCell) {
    let figures = cell.figures();
    if let Some(volume) = figures.volume_total {
        o.vol_or_null("volume", Some(volume));
        decimal::vol(o.name("volumeNum"), volume);
    }
    if let Some(volume) = figures.volume_24h {
        decimal::vol(o.name("volume24hr"), volume);
        decimal::vol(o.name("volume24hrClob"), volume);
    }
    if let Some(liquidity) = figures.liquidity {
        o.vol_or_null("liquidity", Some(liquidity));
        decimal::vol(o.name("liquidityNum"), liquidity);
    }
}

fn prices(o: &mut Object<'_>, cell: &MarketCell, reads: &Reads) {
    let first = cell.instrument(Outcome::First);
    let outcomes = Quote::of(cell, reads).map(|quote| quote.outcomes);
    if let Some([Some(first), Some(second)]) = outcomes {
        let text = |price: Cash| decimal::text(|out| decimal::vol(out, price.0.unsigned_abs()));
        texts(o, "outcomePrices", [text(first), text(second)].into_iter());
    }
    let top = book_of(reads, first, cell);
    let best = |side| top.and_then(|top| top.price(side)).map(per_share);
    let (bid, ask) = (best(BookSide::Bid), best(BookSide::Ask));
    for (name, price) in [("bestBid", bid), ("bestAsk", ask)] {
        if let Some(price) = price {
            dollars(o, name, price);
        }
    }
    if let (Some(bid), Some(ask)) = (bid, ask) {
        dollars(o, "spread", Cash((ask.0 - bid.0).max(0)));
    }
    if let Some(trade) = reads.books.last_price(first) {
        dollars(o, "lastTradePrice", per_share(trade.price));
    }
}

fn per_share(price: Price) -> Cash {
    Cash(i64::from(price.0) * MICROS_PER_TICK)
}

fn dates(o: &mut Object<'_>, cell: &MarketCell) {
    let listing = &cell.listing;
    date(o, "startDate", "startDateIso", listing.start);
    date(o, "endDate", "endDateIso", cell.end());
    if let Some(updown) = &listing.updown {
        o.ts("eventStartTime", updown.start);
    }
    if let Some(start) = listing.start {
        o.ts("acceptingOrdersTimestamp", start);
    }
    o.ts("createdAt", cell.listed_at);
    o.ts("updatedAt", cell.figures_at().unwrap_or(cell.listed_at));
}

/// A time, and its day.
fn date(o: &mut Object<'_>, name: &str, iso: &str, at: Option<Timestamp>) {
    if let Some(at) = at {
        o.ts(name, at);
        o.text(iso, &instant::ts_text(at)[..DATE_CHARS]);
    }
}

fn fees(o: &mut Object<'_>, cell: &MarketCell, reads: &Reads) {
    let bps = reads.rules.fees.rate(cell.listing.category).0;
    o.integer("makerBaseFee", base_fee(bps));
    o.integer("takerBaseFee", base_fee(bps));
    o.boolean("feesEnabled", bps > 0);
    o.object("feeSchedule", |o| {
        o.integer("exponent", 1);
        decimal::vol(o.name("rate"), u64::from(bps) * MICROS_PER_BPS);
        o.boolean("takerOnly", true);
        o.integer("rebateRate", 0);
    });
}

/// A list as a text that holds JSON.
fn texts(o: &mut Object<'_>, name: &str, items: impl Iterator<Item = String>) {
    let mut list = Vec::new();
    array(&mut list, items, |out, item| string(out, &item));
    o.text(name, &String::from_utf8_lossy(&list));
}
