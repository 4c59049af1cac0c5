//! Markets of an earlier run, added before the venue sends anything, so that its socket can be translated while its
//! catalogue cannot be read.
//!
//! The journal holds everything lasting about a market except irregular price grids: several ranges, or a step that is
//! not an engine tick. [`Translate::odd_grids`] returns them as rows for [`Translate::recall`].

use super::book::Range;
use super::dto;
use super::translate::Translate;
use crate::loose::Loose;
use engine::amount::TickSize;
use engine::market::Market;
use serde::Serialize;

impl Translate {
    /// Adds a market of the journal, with its row of [`Translate::odd_grids`], if any. Later rows of the venue are
    /// changes of it.
    pub fn recall(&mut self, market: &Market, odd_grid: Option<&str>) {
        let ticker = &market.listing.venue_market_id;
        let plain = row(ticker, [&Range { start: 0, end: 10_000, tick: market.listing.tick, rounded: false }]);
        let mut row = Loose::of(&plain).object::<dto::Market<'_>>().unwrap_or_default();
        if let Some(odd) = odd_grid.and_then(|odd| Loose::of(odd).object::<dto::Market<'_>>())
            && odd.ticker.text().as_deref() == Some(ticker)
        {
            row.price_ranges = odd.price_ranges;
        }
        // The market is listed already, so that no update is needed.
        let listed = self.list(&row, Loose::default(), market.state);
        if listed.is_some_and(|listing| listing.condition == market.listing.condition)
            && let Some(known) = self.markets.get_mut(ticker)
        {
            (known.tick, known.end) = (market.tick, market.end);
        }
    }

    /// Irregular price grids as catalogue rows, sorted by ticker.
    pub fn odd_grids(&self) -> Vec<(&str, String)> {
        let odd = |ranges: &[Range]| ranges.len() > 1 || ranges.iter().any(|range| range.rounded);
        let open = self.markets.iter().filter(|(_, market)| market.resolved.is_none() && odd(market.grid.ranges()));
        let mut rows: Vec<_> =
            open.map(|(ticker, market)| (ticker.as_str(), row(ticker, market.grid.ranges()))).collect();
        rows.sort();
        rows
    }
}

/// A catalogue row with a price grid only.
fn row<'r>(ticker: &str, ranges: impl IntoIterator<Item = &'r Range>) -> String {
    #[derive(Serialize)]
    struct Row<'t> {
        ticker: &'t str,
        price_ranges: Vec<RangeRow>,
    }
    #[derive(Serialize)]
    struct RangeRow {
        start: String,
        end: String,
        step: String,
    }
    let dollars = |units: u16| format!("{}.{:04}", units / 10_000, units % 10_000);
    let range_row = |range: &Range| {
        // A step that is read back as an irregular one.
        const ODD: TickSize = TickSize(20);
        let step = if range.rounded { ODD } else { range.tick };
        RangeRow { start: dollars(range.start), end: dollars(range.end), step: dollars(step.0) }
    };
    let row = Row { ticker, price_ranges: ranges.into_iter().map(range_row).collect() };
    serde_json::to_string(&row).expect("texts can be written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FeedUpdate;
    use crate::category::Names;
    use crate::kalshi::Sequence;
    use engine::market::terms::{Listing, MarketState};
    use engine::time::Timestamp;
    use std::sync::Arc;

    fn journaled(listing: &Listing, state: MarketState) -> Market {
        Market::listed(listing.clone(), state, Timestamp(1))
    }

    fn translate() -> Translate {
        Translate::new(Sequence::Ignored, Arc::default(), Names::default())
    }

    #[test]
    fn a_recalled_market_translates_like_a_listed_one() {
        const AT: Timestamp = Timestamp(1_786_406_405_000_000);
        let cases = [
            // price ranges of the venue, whether the grid is irregular
            ("[]", false),
            (r#"[{"start":"0","end":"1","step":"0.01"}]"#, false),
            (r#"[{"start":"0","end":"1","step":"0.001"}]"#, false),
            (r#"[{"start":"0","end":"1","step":"0.0001"}]"#, false),
            (r#"[{"start":"0","end":"1","step":"0.005"}]"#, false),
            (r#"[{"start":"0","end":"1","step":"0.0025"}]"#, false),
            (r#"[{"start":"0","end":"1","step":"0.002"}]"#, true),
            (
                r#"[{"start":"0","end":"0.1","step":"0.001"},{"start":"0.1","end":"0.9","step":"0.01"},{"start":"0.9","end":"1","step":"0.001"}]"#,
                true,
            ),
        ];
        let frames = [
            r#"{"type":"orderbook_snapshot","sid":1,"seq":1,"msg":{"market_ticker":"KX-1","yes_dollars_fp":[["0.0450","5.00"],["0.9250","7.00"]],"no_dollars_fp":[["0.0150","9.00"]]}}"#,
            r#"{"type":"orderbook_delta","sid":1,"seq":2,"msg":{"market_ticker":"KX-1","price_dollars":"0.9250","delta_fp":"-7.00","side":"yes","ts_ms":1786406405000}}"#,
            r#"{"type":"orderbook_delta","sid":1,"seq":3,"msg":{"market_ticker":"KX-1","price_dollars":"0.4050","delta_fp":"3.00","side":"yes","ts_ms":1786406405001}}"#,
        ];
        for (ranges, is_odd) in cases {
            let (mut first, mut updates) = (translate(), Vec::new());
            let answer = format!(
                r#"{{"markets":[{{"ticker":"KX-1","title":"t","status":"active","close_time":"2026-11-03T00:00:00Z","price_ranges":{ranges}}}]}}"#
            );
            first.rest("/markets", 200, &answer, AT, &mut updates);
            let [FeedUpdate::Listed { listing, state }] = updates.as_slice() else { panic!("{updates:?}") };
            let odd: Vec<(String, String)> =
                first.odd_grids().into_iter().map(|(ticker, row)| (ticker.to_owned(), row)).collect();
            assert_eq!(odd.len(), usize::from(is_odd), "{ranges}");
            let mut second = translate();
            second.recall(&journaled(listing, *state), odd.first().map(|(_, row)| row.as_str()));
            let again: Vec<(String, String)> =
                second.odd_grids().into_iter().map(|(ticker, row)| (ticker.to_owned(), row)).collect();
            assert_eq!(again, odd, "{ranges}");
            let mut translated = [Vec::new(), Vec::new()];
            for frame in frames {
                first.frame(frame, 0, AT, &mut translated[0]);
                second.frame(frame, 0, AT, &mut translated[1]);
            }
            assert!(translated[0].len() >= 6, "{ranges}: {:?}", translated[0]);
            assert_eq!(translated[0], translated[1], "{ranges}");
            // The same row changes nothing; a closed one is a change.
            let mut changes = Vec::new();
            second.rest("/markets", 200, &answer, AT, &mut changes);
            assert_eq!(changes, [], "{ranges}");
            second.rest("/markets", 200, &answer.replace("active", "closed"), AT, &mut changes);
            let closed = FeedUpdate::StateChanged { condition: listing.condition.clone(), state: MarketState::Closed };
            assert_eq!(changes, [closed], "{ranges}");
        }
        println!("recalled grids: {} cases", cases.len());
    }

    #[test]
    fn a_row_of_another_market_is_ignored() {
        let (mut first, mut updates) = (translate(), Vec::new());
        first.rest(
            "/markets",
            200,
            r#"{"markets":[{"ticker":"KX-1","title":"t","status":"active"}]}"#,
            Timestamp(1),
            &mut updates,
        );
        let [FeedUpdate::Listed { listing, state }] = updates.as_slice() else { panic!("{updates:?}") };
        for row in ["", "7", "{}", r#"{"ticker":"KX-2"}"#, r#"{"ticker":"KX-1","market_type":"scalar"}"#] {
            let mut second = translate();
            second.recall(&journaled(listing, *state), Some(row));
            assert!(second.odd_grids().is_empty(), "{row}");
            assert_eq!(second.markets.keys().collect::<Vec<_>>(), ["KX-1"], "{row}");
        }
        println!("ignored rows: 5 cases");
    }
}
