//! Which events the list shows (gateway/docs/market-data.md §4).

use crate::api::markets::filter::Needle;
use crate::api::markets::view::{Phase, is_hot_volume};
use crate::http::code::Code;
use crate::http::reply::Refusal;
use engine::id::MarketId;
use engine::market::catalog::{Catalog, EventRow, MarketCell};
use engine::market::terms::Venue;
use engine::time::Timestamp;
use wire::fields::Params;
use wire::query::Query;

const LIMIT_MAX: u64 = 200;
const LIMIT_DEFAULT: u64 = 50;
const MARKETS_PER_EVENT_MAX: u64 = 100;
const MARKETS_PER_EVENT_DEFAULT: u64 = 20;
/// Words of the venue filter: `all` in the place of the synthetic venue, then the live ones. A venue that is not open
/// has no events.
pub const VENUES: [&str; Venue::NAMES.len()] = {
    let mut words = ["all"; Venue::NAMES.len()];
    let (_, live) = words.split_at_mut(1);
    live.copy_from_slice(Venue::NAMES.split_at(1).1);
    words
};

/// The parameters of the list.
#[derive(Debug, PartialEq, Eq)]
pub struct ListFilter<'a> {
    hot_only: bool,
    markets_per_event: usize,
    category: Option<Needle<'a>>,
    search: Option<Needle<'a>>,
    venue: Option<Venue>,
    pub include_sports: bool,
    pub limit: usize,
    pub offset: usize,
}

impl<'a> ListFilter<'a> {
    /// Reads the query.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`, then `INVALID_SOURCE`.
    pub fn read(query: &'a Query<'_>) -> Result<ListFilter<'a>, Refusal> {
        let mut params = Params::new(query);
        let limit = params.integer("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT);
        let offset = params.offset();
        let per_event = params.integer("markets_per_event", 1..=MARKETS_PER_EVENT_MAX);
        let hot_only = params.boolean("hot_only").unwrap_or(false);
        let include_sports = params.boolean("include_sports").unwrap_or(true);
        if !params.problems.is_empty() {
            return Err(Refusal::validation(&params.problems));
        }
        let venue = match query.get("venue") {
            None => None,
            Some(name) => {
                let known = VENUES.iter().position(|word| name.eq_ignore_ascii_case(word));
                let known = known.ok_or_else(|| Refusal::new(Code::InvalidSource, "Unknown venue."))?;
                (known > 0).then(|| Venue::ALL[known])
            }
        };
        Ok(ListFilter {
            hot_only,
            markets_per_event: per_event.unwrap_or(MARKETS_PER_EVENT_DEFAULT) as usize,
            category: query.get("category").map(unquoted).and_then(Needle::new),
            search: query.get("search").and_then(Needle::new),
            venue,
            include_sports,
            limit: limit as usize,
            offset,
        })
    }

    /// The markets of this event that the list shows, `None` when it does not show the event. Does not consider
    /// `include_sports`.
    pub fn shows(&self, row: &EventRow, catalog: &Catalog, now: Timestamp) -> Option<Vec<MarketId>> {
        let first = catalog.market(row.first)?;
        let hot = !self.hot_only || is_hot_volume(row.volume);
        let venue = self.venue.is_none_or(|venue| venue == first.listing.venue);
        let category = || match &self.category {
            None => true,
            Some(needle) => first.listing.category.name().is_some_and(|name| needle.is_in(name)),
        };
        if !(hot && venue && category() && self.matches_search(row, first, catalog)) {
            return None;
        }
        let open = |market: &&MarketId| {
            catalog.market(**market).is_some_and(|cell| {
                let phase = Phase::of(cell, now);
                !phase.closed && !phase.resolved
            })
        };
        let markets: Vec<MarketId> = row.markets.iter().filter(open).take(self.markets_per_event).copied().collect();
        (!markets.is_empty()).then_some(markets)
    }

    /// Whether the title of the event or the question of one of its markets contains the text.
    fn matches_search(&self, row: &EventRow, first: &MarketCell, catalog: &Catalog) -> bool {
        let Some(needle) = &self.search else { return true };
        let asks = |market: &MarketId| catalog.market(*market).is_some_and(|cell| needle.is_in(&cell.listing.question));
        first.event().is_some_and(|event| needle.is_in(&event.title)) || row.markets.iter().any(asks)
    }
}

/// `text` without quotes around it.
fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_with_their_bounds() {
        let read = |text: &str| {
            let query = Query::read(text);
            let filter = ListFilter::read(&query);
            filter
                .map(|filter| (filter.limit, filter.offset, filter.markets_per_event, filter.venue))
                .map_err(|refusal| refusal.code())
        };
        let cases = [
            ("", Ok((50, 0, 20, None))),
            ("limit=200&offset=7&markets_per_event=100", Ok((200, 7, 100, None))),
            ("limit=1&markets_per_event=1&venue=ALL", Ok((1, 0, 1, None))),
            ("venue=polymarket", Ok((50, 0, 20, Some(Venue::Polymarket)))),
            ("venue=Kalshi", Ok((50, 0, 20, Some(Venue::Kalshi)))),
            ("venue=synthetic", Err(Code::InvalidSource)),
            ("venue=", Err(Code::InvalidSource)),
            ("limit=0&venue=x", Err(Code::ValidationFailed)),
            ("limit=201", Err(Code::ValidationFailed)),
            ("offset=-1", Err(Code::ValidationFailed)),
            ("offset=-0", Err(Code::ValidationFailed)),
            ("offset=9223372036854775808", Err(Code::ValidationFailed)),
            ("markets_per_event=0", Err(Code::ValidationFailed)),
            ("markets_per_event=101", Err(Code::ValidationFailed)),
            ("hot_only=x", Err(Code::ValidationFailed)),
            ("include_sports=", Err(Code::ValidationFailed)),
        ];
        for (query, expected) in cases {
            assert_eq!(read(query), expected, "{query}");
        }
        for (text, expected) in [("\"crypto\"", "crypto"), ("'crypto'", "crypto"), ("cry\"pto", "cry\"pto"), ("\"", "")]
        {
            assert_eq!(unquoted(text), expected);
        }
        println!("event queries: {} cases", cases.len());
    }
}
