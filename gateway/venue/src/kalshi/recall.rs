//! Markets that an earlier run listed: known before the venue says a word, so that its socket can be understood while its
//! catalogue cannot be read.
//!
//! The journal holds all that is lasting about a market but one thing: a price grid of several steps, or of a step that
//! is none of ours. Those are told here as rows ([`Translate::odd_grids`]) that [`Translate::recall`] takes back.

use super::book::Range;
use super::dto;
use super::translate::Translate;
use crate::loose::Loose;
use engine::amount::TickSize;
use engine::market::Market;
use serde::Serialize;

impl Translate {
    /// Takes in a market as the journal knows it, with its row of [`Translate::odd_grids`] where there was one. What the
    /// venue then says of it is a change, or no news.
    pub fn recall(&mut self, market: &Market, odd_grid: Option<&str>) {
        let ticker = &market.listing.venue_market_id;
        let plain = row(ticker, [&Range { start: 0, end: 10_000, tick: market.listing.tick, rounded: false }]);
        let mut row = Loose::of(&plain).object::<dto::Market<'_>>().unwrap_or_default();
        if let Some(odd) = odd_grid.and_then(|odd| Loose::of(odd).object::<dto::Market<'_>>())
            && odd.ticker.text().as_deref() == Some(ticker)
        {
            row.price_ranges = odd.price_ranges;
        }
        // It is listed already: nobody needs to be told.
        let listed = self.list(&row, Loose::default(), market.state);
        if listed.is_some_and(|listing| listing.condition == market.listing.condition)
            && let Some(known) = self.markets.get_mut(ticker)
        {
            (known.tick, known.end) = (market.tick, market.end);
        }
    }

    /// Price grids of markets that the listing's tick alone does not tell, as rows of a catalogue, in order of tickers.
    pub fn odd_grids(&self) -> Vec<(&str, String)> {
        let odd = |ranges: &[Range]| ranges.len() > 1 || ranges.iter().any(|range| range.rounded);
        let open = self.markets.iter().filter(|(_, market)| market.resolved.is_none() && odd(market.grid.ranges()));
        let mut rows: Vec<_> =
            open.map(|(ticker, market)| (ticker.as_str(), row(ticker, market.grid.ranges()))).collect();
        rows.sort();
        rows
    }
}

/// A row of the venue's catalogue with nothing but a price grid.
fn row<'r>(ticker: &str, ranges: impl IntoIterator<Item = &'r Range>) -> String {
    #[derive(Serialize)]
    struct Row<'t> {
        ticker: &'t str,
        price_ranges: Vec<Stretch>,
    }
    #[derive(Serialize)]
    struct Stretch {
        start: String,
        end: String,
        step: String,
    }
    let dollars = |units: u16| format!("{}.{:04}", units / 10_000, units % 10_000);
    let stretch = |range: &Range| {
        // A step that is none of ours is read as one again.
        const ODD: TickSize = TickSize(20);
        let step = if range.rounded { ODD } else { range.tick };
        Stretch { start: dollars(range.start), end: dollars(range.end), step: dollars(step.0) }
    };
    let row = Row { ticker, price_ranges: ranges.into_iter().map(stretch).collect() };
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
    fn a_recalled_market_is_understood_as_if_it_had_been_listed() {
        const AT: Timestamp = Timestamp(1_786_406_405_000_000);
        let cases = [
            // price ranges as the venue writes them, whether the grid is odd
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
            let mut told = [Vec::new(), Vec::new()];
            for frame in frames {
                first.frame(frame, 0, AT, &mut told[0]);
                second.frame(frame, 0, AT, &mut told[1]);
            }
            assert!(told[0].len() >= 6, "{ranges}: {:?}", told[0]);
            assert_eq!(told[0], told[1], "{ranges}");
            // Told again by the venue it is no news; closed is a change.
            let mut news = Vec::new();
            second.rest("/markets", 200, &answer, AT, &mut news);
            assert_eq!(news, [], "{ranges}");
            second.rest("/markets", 200, &answer.replace("active", "closed"), AT, &mut news);
            let closed = FeedUpdate::StateChanged { condition: listing.condition.clone(), state: MarketState::Closed };
            assert_eq!(news, [closed], "{ranges}");
        }
        println!("recalled grids: {} cases", cases.len());
    }

    #[test]
    fn a_row_of_another_market_is_not_believed() {
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
        println!("rows that are not believed: 5 cases");
    }
}
