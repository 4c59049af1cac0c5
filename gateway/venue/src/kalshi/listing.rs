//! The lasting fields of a Kalshi market as a listing, with its ids (gateway/docs/live-venues.md §6).

use super::book::{Grid, Range};
use super::dto;
use crate::ids;
use crate::loose::{Loose, scaled};
use crate::skips::Skip;
use engine::amount::TickSize;
use engine::id::Outcome;
use engine::market::terms::{Category, EventTerms, Listing, MarketState, Resolution, Venue};
use engine::time::Timestamp;

/// Fields of an event, for its markets that arrive without it.
#[derive(Clone, Debug, Default)]
pub(super) struct EventFacts {
    pub(super) title: Option<String>,
    pub(super) category: Option<Category>,
    /// Latest close time of its known markets.
    pub(super) end: Option<Timestamp>,
    /// Its series, which has the fees.
    pub(super) series: Option<String>,
}

/// A market's listing and price grid, or the reason why it is skipped.
pub(super) fn listing(market: &dto::Market<'_>, event: Option<&EventFacts>) -> Result<(Listing, Grid), Skip> {
    let ticker = market.ticker.owned().ok_or(Skip::MissingField)?;
    if market.market_type.filled().is_some_and(|kind| kind != "binary") {
        return Err(Skip::NotBinary);
    }
    let grid = grid(market);
    let title = event.and_then(|event| event.title.clone()).or_else(|| market.title.owned());
    let title = title.unwrap_or_else(|| ticker.clone());
    let label = market.yes_sub_title.owned();
    let question = match &label {
        Some(label) if *label != title => format!("{title}: {label}"),
        _ => title.clone(),
    };
    let end = market.close_time.instant();
    let category = event.and_then(|event| event.category).unwrap_or(Category::Other);
    let group = market.event_ticker.owned().map(|event_ticker| EventTerms {
        id: format!("kalshi:{event_ticker}"),
        slug: event_ticker.to_lowercase(),
        title,
        image: None,
        end: event.and_then(|event| event.end).max(end),
    });
    let listing = Listing {
        venue: Venue::Kalshi,
        condition: ids::condition(&format!("kalshi:{ticker}")),
        tokens: [ids::token(&format!("kalshi:{ticker}:yes")), ids::token(&format!("kalshi:{ticker}:no"))],
        outcomes: ["Yes".into(), "No".into()],
        slug: ticker.to_lowercase(),
        question,
        description: market.rules_primary.owned(),
        image: None,
        label,
        category,
        tags: Vec::new(),
        event: group,
        tick: grid.finest(),
        min_order_size: None,
        neg_risk: false,
        start: market.open_time.instant(),
        end,
        updown: None,
        sports: category == Category::Sports,
        venue_market_id: ticker,
    };
    Ok((listing, grid))
}

/// The grid from `price_ranges`, else from the structure's name, else whole cents.
pub(super) fn grid(market: &dto::Market<'_>) -> Grid {
    let ranges = market.price_ranges.elements().unwrap_or_default();
    let ranges = ranges.into_iter().filter_map(|range| {
        let range: dto::Range<'_> = range.object()?;
        let bound = |edge: Loose<'_>| Some(scaled(&edge.text()?, 4).ok()?.min(10_000) as u16);
        let (tick, rounded) = step(range.step);
        Some(Range { start: bound(range.start)?, end: bound(range.end)?, tick, rounded })
    });
    let mut ranges: Vec<Range> = ranges.filter(|range| range.start < range.end).collect();
    if ranges.is_empty() {
        let named = |start, end, tick| Range { start, end, tick: TickSize(tick), rounded: false };
        match market.price_level_structure.text().as_deref() {
            Some("deci_cent") => ranges.push(named(0, 10_000, 10)),
            Some("tapered_deci_cent") => {
                ranges.extend([named(0, 1_000, 10), named(1_000, 9_000, 100), named(9_000, 10_000, 10)]);
            }
            _ => {}
        }
    }
    Grid::new(ranges)
}

/// The tick for a venue's step, and whether its levels must be rounded to it.
fn step(step: Loose<'_>) -> (TickSize, bool) {
    match step.tick() {
        Ok(tick @ TickSize(100 | 50 | 25 | 10 | 1)) => (tick, false),
        // Levels of a coarser grid are on whole cents anyway.
        Ok(TickSize(coarser)) if coarser.is_multiple_of(100) => (TickSize(100), false),
        _ => (TickSize(100), true),
    }
}

/// The state of a status; `None` for a final status, where the result decides. An unknown status halts trading.
pub(super) fn state(status: &str) -> Option<MarketState> {
    match status {
        "initialized" | "unopened" => Some(MarketState::Upcoming),
        "active" | "open" => Some(MarketState::Active),
        "closed" | "determined" | "disputed" | "amended" => Some(MarketState::Closed),
        "finalized" | "settled" => None,
        _ => Some(MarketState::Halted),
    }
}

/// The payout of a result, if it is supported: Yes, No, or half each.
pub(super) fn resolution(result: Loose<'_>, value: Loose<'_>) -> Option<Resolution> {
    let result = result.filled()?;
    let value = match value.filled() {
        Some(text) => Some(scaled(&text, 4).ok()?),
        None => None,
    };
    match (&*result, value) {
        ("yes", None | Some(10_000)) | ("scalar", Some(10_000)) => Some(Resolution::Winner(Outcome::First)),
        ("no", None | Some(0)) | ("scalar", Some(0)) => Some(Resolution::Winner(Outcome::Second)),
        ("yes" | "no" | "scalar", Some(5_000)) => Some(Resolution::Split),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_payouts_of_zero_half_and_one_are_supported() {
        use Outcome::*;
        for (result, value, expected) in [
            ("\"yes\"", "\"1.0000\"", Some(Resolution::Winner(First))),
            ("\"no\"", "\"0.0000\"", Some(Resolution::Winner(Second))),
            ("\"yes\"", "", Some(Resolution::Winner(First))),
            ("\"scalar\"", "\"0.5000\"", Some(Resolution::Split)),
            ("\"scalar\"", "1", Some(Resolution::Winner(First))),
            ("\"scalar\"", "\"0.3000\"", None),
            ("\"scalar\"", "", None),
            ("\"yes\"", "\"0.0000\"", None),
            ("\"yes\"", "\"0.99999\"", None),
            ("\"\"", "\"1.0000\"", None),
            ("", "\"1.0000\"", None),
        ] {
            assert_eq!(resolution(Loose::of(result), Loose::of(value)), expected, "{result} {value}");
        }
    }

    #[test]
    fn steps_become_engine_ticks() {
        for (raw, expected) in [
            ("\"0.0100\"", (100, false)),
            ("\"0.0010\"", (10, false)),
            ("\"0.0001\"", (1, false)),
            ("\"0.1000\"", (100, false)),
            ("\"0.0050\"", (50, false)),
            ("\"0.0025\"", (25, false)),
            ("\"0.0020\"", (100, true)),
            ("\"0.00001\"", (100, true)),
            ("null", (100, true)),
        ] {
            let (tick, rounded) = step(Loose::of(raw));
            assert_eq!((tick.0, rounded), expected, "{raw}");
        }
    }
}
