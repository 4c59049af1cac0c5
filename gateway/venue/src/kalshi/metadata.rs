//! Market metadata beside a recording. It was written after the recording, so only lasting fields may be used before
//! their time.

use super::dto;
use super::listing::resolution;
use super::translate::Translate;
use crate::FeedUpdate;
use crate::loose::Loose;
use crate::skips::Skip;
use crate::translators::{Change, Dated};
use engine::market::terms::MarketState;
use engine::time::Timestamp;
use serde::Deserialize;

#[derive(Default, Deserialize)]
struct File<'a> {
    #[serde(borrow, default)]
    response: Loose<'a>,
}

impl Translate {
    /// Lists the markets of one metadata file. Its status, volumes and prices are those of the day when it was fetched,
    /// so they are ignored; the result is handed out at its time only.
    pub fn metadata(&mut self, text: &str) -> Vec<Dated> {
        let answer = serde_json::from_str::<File<'_>>(text).ok().and_then(|file| file.response.object());
        let Some(answer) = answer else {
            self.skips().count(Skip::BadJson, || text.into());
            return Vec::new();
        };
        let answer: dto::Answer<'_> = answer;
        let event: dto::Event<'_> = answer.event.object().unwrap_or_default();
        let markets = answer.markets.elements().or_else(|| event.markets.elements()).unwrap_or_default();
        self.learn_event(&event);
        let mut dated = Vec::new();
        for row in markets {
            let Some(market) = row.object::<dto::Market<'_>>() else {
                self.skips().count(Skip::BadJson, || row.raw().into());
                continue;
            };
            let Some(listing) = self.list(&market, event.event_ticker, MarketState::Upcoming) else { continue };
            let mut changes: Vec<(Timestamp, Change)> = Vec::new();
            changes.extend(market.open_time.instant().map(|at| (at, Change::Open)));
            changes.extend(market.close_time.instant().map(|at| (at, Change::Close)));
            let result = resolution(market.result, market.settlement_value_dollars);
            changes.extend(market.settlement_ts.instant().zip(result).map(|(at, result)| (at, Change::Settle(result))));
            dated.push(Dated { id: listing.venue_market_id.clone(), listing, changes });
        }
        dated
    }

    /// Applies a change of a market.
    pub fn change(&mut self, ticker: &str, change: Change, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        match change {
            Change::Open => self.set_state(ticker, MarketState::Active, updates),
            Change::Close => self.set_state(ticker, MarketState::Closed, updates),
            Change::Settle(resolution) => self.settle(ticker, resolution, at, updates),
        }
    }
}
