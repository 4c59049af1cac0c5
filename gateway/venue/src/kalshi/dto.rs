//! Shapes of Kalshi's messages (gateway/docs/live-venues.md §4), borrowed from the message text.
//!
//! Every leaf is [`Loose`]: current `_dollars` and `_fp` strings, older numbers in cents, and missing sides are
//! accepted.

use crate::loose::Loose;
use serde::Deserialize;

/// A WebSocket message. `seq` counts by `sid`, over all markets of that subscription.
#[derive(Debug, Deserialize)]
pub struct Frame<'a> {
    #[serde(borrow, default, rename = "type")]
    pub kind: Loose<'a>,
    #[serde(borrow, default)]
    pub sid: Loose<'a>,
    #[serde(borrow, default)]
    pub seq: Loose<'a>,
    #[serde(borrow, default)]
    pub msg: Message<'a>,
}

/// The fields of all message types: one pass over the text suffices.
#[derive(Debug, Default, Deserialize)]
pub struct Message<'a> {
    #[serde(borrow, default)]
    pub market_ticker: Loose<'a>,
    #[serde(borrow, default)]
    pub price_dollars: Loose<'a>,
    #[serde(borrow, default)]
    pub delta_fp: Loose<'a>,
    #[serde(borrow, default)]
    pub side: Loose<'a>,
    #[serde(borrow, default)]
    pub ts_ms: Loose<'a>,

    // Snapshot: `[["0.4100","183.00"]]`; the key of an empty side is missing. Older form: `[[41,183]]` in cents.
    #[serde(borrow, default)]
    pub yes_dollars_fp: Loose<'a>,
    #[serde(borrow, default)]
    pub no_dollars_fp: Loose<'a>,
    #[serde(borrow, default)]
    pub yes: Loose<'a>,
    #[serde(borrow, default)]
    pub no: Loose<'a>,

    // Older form of a delta, in cents and whole contracts.
    #[serde(borrow, default)]
    pub price: Loose<'a>,
    #[serde(borrow, default)]
    pub delta: Loose<'a>,

    // Trade.
    #[serde(borrow, default)]
    pub yes_price_dollars: Loose<'a>,
    #[serde(borrow, default)]
    pub no_price_dollars: Loose<'a>,
    #[serde(borrow, default)]
    pub yes_price: Loose<'a>,
    #[serde(borrow, default)]
    pub no_price: Loose<'a>,
    #[serde(borrow, default)]
    pub count_fp: Loose<'a>,
    #[serde(borrow, default)]
    pub count: Loose<'a>,
    #[serde(borrow, default)]
    pub taker_side: Loose<'a>,
    #[serde(borrow, default)]
    pub trade_id: Loose<'a>,

    // Lifecycle.
    #[serde(borrow, default)]
    pub event_type: Loose<'a>,
    #[serde(borrow, default)]
    pub result: Loose<'a>,
    #[serde(borrow, default)]
    pub settlement_value: Loose<'a>,
    #[serde(borrow, default)]
    pub open_ts: Loose<'a>,
    #[serde(borrow, default)]
    pub close_ts: Loose<'a>,
    #[serde(borrow, default)]
    pub additional_metadata: Loose<'a>,
}

/// The market in a `created` lifecycle message.
#[derive(Debug, Default, Deserialize)]
pub struct Created<'a> {
    #[serde(borrow, default)]
    pub event_ticker: Loose<'a>,
    #[serde(borrow, default)]
    pub title: Loose<'a>,
    #[serde(borrow, default)]
    pub name: Loose<'a>,
    #[serde(borrow, default)]
    pub yes_sub_title: Loose<'a>,
    #[serde(borrow, default)]
    pub rules_primary: Loose<'a>,
}

/// Any REST response of the catalogue: lists and single objects.
#[derive(Debug, Default, Deserialize)]
pub struct Answer<'a> {
    #[serde(borrow, default)]
    pub events: Loose<'a>,
    #[serde(borrow, default)]
    pub event: Loose<'a>,
    #[serde(borrow, default)]
    pub markets: Loose<'a>,
    #[serde(borrow, default)]
    pub market: Loose<'a>,
    #[serde(borrow, default)]
    pub series: Loose<'a>,
    #[serde(borrow, default)]
    pub orderbook_fp: Loose<'a>,
    #[serde(borrow, default)]
    pub orderbook: Loose<'a>,
}

/// An event; its markets may be included.
#[derive(Debug, Default, Deserialize)]
pub struct Event<'a> {
    #[serde(borrow, default)]
    pub event_ticker: Loose<'a>,
    #[serde(borrow, default)]
    pub series_ticker: Loose<'a>,
    #[serde(borrow, default)]
    pub title: Loose<'a>,
    #[serde(borrow, default)]
    pub category: Loose<'a>,
    #[serde(borrow, default)]
    pub markets: Loose<'a>,
}

/// A series; it has the fees of its markets, and the category of events that have none.
#[derive(Debug, Default, Deserialize)]
pub struct Series<'a> {
    #[serde(borrow, default)]
    pub ticker: Loose<'a>,
    #[serde(borrow, default)]
    pub category: Loose<'a>,
    /// The form of the fee; the multiplier is a decimal.
    #[serde(borrow, default)]
    pub fee_type: Loose<'a>,
    #[serde(borrow, default)]
    pub fee_multiplier: Loose<'a>,
}

/// A market. Fields that are not listed are not used.
#[derive(Debug, Default, Deserialize)]
pub struct Market<'a> {
    #[serde(borrow, default)]
    pub ticker: Loose<'a>,
    #[serde(borrow, default)]
    pub event_ticker: Loose<'a>,
    #[serde(borrow, default)]
    pub market_type: Loose<'a>,
    #[serde(borrow, default)]
    pub title: Loose<'a>,
    #[serde(borrow, default)]
    pub yes_sub_title: Loose<'a>,
    #[serde(borrow, default)]
    pub rules_primary: Loose<'a>,
    #[serde(borrow, default)]
    pub open_time: Loose<'a>,
    #[serde(borrow, default)]
    pub close_time: Loose<'a>,
    #[serde(borrow, default)]
    pub price_ranges: Loose<'a>,
    /// Older form: the tick in cents.
    #[serde(borrow, default)]
    pub tick_size: Loose<'a>,
    #[serde(borrow, default)]
    pub price_level_structure: Loose<'a>,
    #[serde(borrow, default)]
    pub status: Loose<'a>,
    #[serde(borrow, default)]
    pub result: Loose<'a>,
    #[serde(borrow, default)]
    pub settlement_value_dollars: Loose<'a>,
    #[serde(borrow, default)]
    pub settlement_ts: Loose<'a>,
    #[serde(borrow, default)]
    pub volume_fp: Loose<'a>,
    #[serde(borrow, default)]
    pub volume: Loose<'a>,
    #[serde(borrow, default)]
    pub volume_24h_fp: Loose<'a>,
    #[serde(borrow, default)]
    pub volume_24h: Loose<'a>,
    #[serde(borrow, default)]
    pub liquidity_dollars: Loose<'a>,
    /// Price of the last Yes trade; 0 before the first one.
    #[serde(borrow, default)]
    pub last_price_dollars: Loose<'a>,
    /// Older form, in cents.
    #[serde(borrow, default)]
    pub last_price: Loose<'a>,
}

/// A range of prices and its step.
#[derive(Debug, Default, Deserialize)]
pub struct Range<'a> {
    #[serde(borrow, default)]
    pub start: Loose<'a>,
    #[serde(borrow, default)]
    pub end: Loose<'a>,
    #[serde(borrow, default)]
    pub step: Loose<'a>,
}

/// The bids of both sides, ascending; an empty side is `null`.
#[derive(Debug, Default, Deserialize)]
pub struct Orderbook<'a> {
    #[serde(borrow, default)]
    pub yes_dollars: Loose<'a>,
    #[serde(borrow, default)]
    pub no_dollars: Loose<'a>,
    #[serde(borrow, default)]
    pub yes: Loose<'a>,
    #[serde(borrow, default)]
    pub no: Loose<'a>,
}
