//! The stand-in's answers to REST calls, and their faults.

use super::Fault;
use super::state::{Event, State};
use super::words::{levels, seconds_of};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl State {
    pub(super) fn fault_for(&mut self, path: &str) -> Option<Fault> {
        let (_, times, fault) = self.faults.iter_mut().find(|(part, times, _)| *times > 0 && path.contains(&**part))?;
        *times -= 1;
        Some(fault.clone())
    }

    /// The answer to a REST call; `None`: 404.
    pub(super) fn answer(&self, path: &str, query: &BTreeMap<String, String>) -> Option<Value> {
        let of = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        let at: usize = of("cursor").parse().unwrap_or_default();
        let limit = of("limit").parse().unwrap_or(100_usize);
        let rows = |markets: &[String]| -> Vec<Value> {
            markets.iter().map(|ticker| self.markets[ticker].row.clone()).collect()
        };
        let nested = |event: &Event| {
            let mut row = event.row.clone();
            row["markets"] = rows(&event.markets).into();
            row
        };
        let page = |name: &str, all: Vec<Value>, size: usize| {
            let cursor = if at + size < all.len() { (at + size).to_string() } else { String::new() };
            let rows: Vec<Value> = all.into_iter().skip(at).take(size).collect();
            json!({ name: rows, "cursor": cursor })
        };
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        Some(match segments.as_slice() {
            ["events"] => {
                assert!(limit <= 200 && of("status") == "open", "{query:?}");
                let open = self.events.values().filter(|event| !event.hidden).map(nested).collect();
                page("events", open, limit.min(self.page_size))
            }
            ["events", ticker] => json!({ "event": nested(self.events.get(*ticker)?) }),
            ["series", ticker] => json!({ "series": self.series.get(*ticker)? }),
            ["markets"] => {
                assert!(limit <= 1_000, "{query:?}");
                let seconds = |name: &str| of(name).parse::<i64>().ok();
                let named: Vec<&str> = of("tickers").split(',').filter(|ticker| !ticker.is_empty()).collect();
                let closes = |row: &Value| seconds_of(row["close_time"].as_str().unwrap_or_default());
                let matches = |ticker: &str, row: &Value| {
                    (named.is_empty() || named.contains(&ticker))
                        && seconds("min_close_ts").is_none_or(|min| closes(row) >= min)
                        && seconds("max_close_ts").is_none_or(|max| closes(row) <= max)
                };
                let found = self.markets.iter().filter(|(ticker, market)| matches(ticker, &market.row));
                page("markets", found.map(|(_, market)| market.row.clone()).collect(), limit)
            }
            ["markets", ticker, "orderbook"] => {
                let bids = &self.markets.get(*ticker)?.bids;
                let side = |bids: &BTreeMap<i64, i64>| if bids.is_empty() { Value::Null } else { levels(bids) };
                json!({"orderbook_fp": {"yes_dollars": side(&bids[0]), "no_dollars": side(&bids[1])}})
            }
            _ => return None,
        })
    }
}
