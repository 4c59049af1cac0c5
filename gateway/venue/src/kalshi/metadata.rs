//! Market metadata beside a recording. It was written after the recording, so only lasting fields may be used before
//! their time.

use super::dto;
use super::listing::resolution;
use super::translate::Translate;
use crate::FeedUpdate;
use crate::loose::{Loose, instant};
use crate::skips::Skip;
use crate::translators::{Change, Dated};
use engine::market::terms::MarketState;
use engine::time::{MILLISECOND, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Default, Deserialize)]
struct File<'a> {
    #[serde(borrow, default)]
    response: Loose<'a>,
}

/// The markets of a metadata file as REST responses with the times from which they are true: path and body. Only the
/// lasting fields of a market are in them, and its state at that time; `first` is the time of the first response. Empty
/// for a text of another form.
pub fn lasting(text: &str, first: Timestamp) -> Vec<(Timestamp, String, Value)> {
    /// Fields of [`dto::Market`] that describe the market for all its life.
    const LASTING: [&str; 11] = [
        "ticker",
        "event_ticker",
        "market_type",
        "title",
        "yes_sub_title",
        "rules_primary",
        "open_time",
        "close_time",
        "price_ranges",
        "tick_size",
        "price_level_structure",
    ];
    let Ok(file) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let response = &file["response"];
    let mut event = response["event"].clone();
    let inside = event.as_object_mut().and_then(|event| event.remove("markets"));
    let markets = response["markets"].as_array().or(inside.as_ref().and_then(Value::as_array));
    let Some(event_ticker) = event["event_ticker"].as_str() else { return Vec::new() };
    let mut responses = Vec::new();
    let mut listed = Vec::new();
    for market in markets.into_iter().flatten() {
        let Some(ticker) = market["ticker"].as_str() else { continue };
        let at = |name: &str| Some(ceil_ms(instant(market[name].as_str()?)?));
        let settled = json!({
            "ticker": ticker,
            "status": "finalized",
            "result": market["result"],
            "settlement_value_dollars": market["settlement_value_dollars"],
            "settlement_ts": market["settlement_ts"],
        });
        let states = [
            (at("open_time"), json!({"ticker": ticker, "status": "active"})),
            (at("close_time"), json!({"ticker": ticker, "status": "closed"})),
            (at("settlement_ts"), settled),
        ];
        let mut row: Map<String, Value> = LASTING
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), market.get(name).filter(|value| !value.is_null())?.clone())))
            .collect();
        row.insert("status".into(), "initialized".into());
        for (at, state) in states {
            let Some(at) = at else { continue };
            if at <= first {
                row.extend(state.as_object().cloned().unwrap_or_default());
            } else {
                responses.push((at, format!("/markets/{ticker}"), json!({"market": state})));
            }
        }
        listed.push(Value::Object(row));
    }
    responses.push((first, format!("/events/{event_ticker}"), json!({"event": event, "markets": listed})));
    responses.sort_by_key(|(at, ..)| *at);
    responses
}

/// A time in whole milliseconds, not earlier.
fn ceil_ms(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.0.div_ceil(MILLISECOND))
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
