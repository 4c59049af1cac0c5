//! Prices, sizes and times in the venue's notation.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn merge(row: &mut Value, changes: &Value) {
    for (key, value) in changes.as_object().into_iter().flatten() {
        row[key] = value.clone();
    }
}

pub fn delta(ticker: &str, side: usize, price: i64, change: i64) -> Value {
    json!({"type": "orderbook_delta", "msg": {"market_ticker": ticker, "price_dollars": dollars(price),
        "delta_fp": contracts(change), "side": (["yes", "no"][side]), "ts": "2026-01-01T00:00:00Z", "ts_ms": now_ms()}})
}

pub(super) fn levels(bids: &BTreeMap<i64, i64>) -> Value {
    bids.iter().map(|(price, size)| json!([dollars(*price), contracts(*size)])).collect()
}

pub(super) fn dollars(price: i64) -> String {
    format!("{}.{:04}", price / 10_000, price % 10_000)
}

pub(super) fn contracts(size: i64) -> String {
    format!("{}{}.{:02}", if size < 0 { "-" } else { "" }, size.abs() / 100, size.abs() % 100)
}

/// A decimal as an integer with this many decimals.
pub fn scaled(text: &str, places: usize) -> i64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    assert!(fraction.trim_end_matches('0').len() <= places, "{text}");
    let digits = format!("{whole}{:0<places$.places$}", fraction);
    digits.parse().unwrap_or_else(|_| panic!("{text} is not a decimal"))
}

pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

pub fn now_s() -> i64 {
    (now_ms() / 1_000) as i64
}

/// Unix seconds in the venue's notation.
pub fn iso(seconds: i64) -> String {
    let moment = jiff::Timestamp::from_second(seconds).expect("a moment");
    format!("{moment:.0}")
}

pub(super) fn seconds_of(iso: &str) -> i64 {
    iso.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second)
}
