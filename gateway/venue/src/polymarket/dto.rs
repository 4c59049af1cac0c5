//! Shapes of Polymarket's messages (gateway/docs/live-venues.md §2, §3), borrowed from the message text.
//!
//! Every leaf is [`Loose`]: JSON inside strings, numbers or strings, missing and empty fields are accepted.

use crate::loose::Loose;
use serde::Deserialize;

/// A market of Gamma's catalogue. Fields that are not listed are not used.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GammaMarket<'a> {
    #[serde(borrow, default)]
    pub id: Loose<'a>,
    #[serde(borrow, default)]
    pub condition_id: Loose<'a>,
    #[serde(borrow, default)]
    pub slug: Loose<'a>,
    #[serde(borrow, default)]
    pub question: Loose<'a>,
    #[serde(borrow, default)]
    pub description: Loose<'a>,
    #[serde(borrow, default)]
    pub image: Loose<'a>,
    #[serde(borrow, default)]
    pub icon: Loose<'a>,
    /// This field, the tokens and the prices are arrays, often inside a string.
    #[serde(borrow, default)]
    pub outcomes: Loose<'a>,
    #[serde(borrow, default)]
    pub clob_token_ids: Loose<'a>,
    #[serde(borrow, default)]
    pub outcome_prices: Loose<'a>,
    /// Of the first token.
    #[serde(borrow, default)]
    pub last_trade_price: Loose<'a>,
    #[serde(borrow, default)]
    pub uma_resolution_status: Loose<'a>,
    #[serde(borrow, default)]
    pub automatically_resolved: Loose<'a>,
    #[serde(borrow, default)]
    pub active: Loose<'a>,
    #[serde(borrow, default)]
    pub closed: Loose<'a>,
    #[serde(borrow, default)]
    pub accepting_orders: Loose<'a>,
    #[serde(borrow, default)]
    pub enable_order_book: Loose<'a>,
    #[serde(borrow, default)]
    pub start_date: Loose<'a>,
    #[serde(borrow, default)]
    pub end_date: Loose<'a>,
    #[serde(borrow, default)]
    pub event_start_time: Loose<'a>,
    /// When the venue last changed this row.
    #[serde(borrow, default)]
    pub updated_at: Loose<'a>,
    #[serde(borrow, default)]
    pub order_price_min_tick_size: Loose<'a>,
    #[serde(borrow, default)]
    pub order_min_size: Loose<'a>,
    #[serde(borrow, default)]
    pub neg_risk: Loose<'a>,
    #[serde(borrow, default)]
    pub fee_type: Loose<'a>,
    /// False: the market has no fees.
    #[serde(borrow, default)]
    pub fees_enabled: Loose<'a>,
    /// A [`FeeSchedule`].
    #[serde(borrow, default)]
    pub fee_schedule: Loose<'a>,
    #[serde(borrow, default)]
    pub category: Loose<'a>,
    #[serde(borrow, default)]
    pub group_item_title: Loose<'a>,
    #[serde(borrow, default)]
    pub group_item_threshold: Loose<'a>,
    #[serde(borrow, default)]
    pub sports_market_type: Loose<'a>,
    #[serde(borrow, default)]
    pub game_id: Loose<'a>,
    #[serde(borrow, default)]
    pub line: Loose<'a>,
    #[serde(borrow, default)]
    pub volume: Loose<'a>,
    #[serde(borrow, default)]
    pub volume_num: Loose<'a>,
    #[serde(borrow, default, rename = "volume24hr")]
    pub volume_24hr: Loose<'a>,
    #[serde(borrow, default)]
    pub liquidity: Loose<'a>,
    #[serde(borrow, default)]
    pub liquidity_num: Loose<'a>,
    #[serde(borrow, default)]
    pub best_bid: Loose<'a>,
    #[serde(borrow, default)]
    pub best_ask: Loose<'a>,
    #[serde(borrow, default)]
    pub events: Loose<'a>,
    #[serde(borrow, default)]
    pub tags: Loose<'a>,
}

/// An event of Gamma's catalogue; its markets may be included.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GammaEvent<'a> {
    #[serde(borrow, default)]
    pub id: Loose<'a>,
    #[serde(borrow, default)]
    pub slug: Loose<'a>,
    #[serde(borrow, default)]
    pub title: Loose<'a>,
    #[serde(borrow, default)]
    pub image: Loose<'a>,
    #[serde(borrow, default)]
    pub icon: Loose<'a>,
    #[serde(borrow, default)]
    pub end_date: Loose<'a>,
    #[serde(borrow, default)]
    pub category: Loose<'a>,
    #[serde(borrow, default)]
    pub game_id: Loose<'a>,
    /// For up-or-down events: an [`EventMetadata`].
    #[serde(borrow, default)]
    pub event_metadata: Loose<'a>,
    #[serde(borrow, default)]
    pub tags: Loose<'a>,
    #[serde(borrow, default)]
    pub markets: Loose<'a>,
}

/// The fees of a market; a message names the fields in its own way.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeeSchedule<'a> {
    #[serde(borrow, default)]
    pub rate: Loose<'a>,
    #[serde(borrow, default)]
    pub exponent: Loose<'a>,
    #[serde(borrow, default, alias = "taker_only")]
    pub taker_only: Loose<'a>,
    #[serde(borrow, default, alias = "rebate_rate")]
    pub rebate_rate: Loose<'a>,
}

/// Terms of a market in the order book's service, in its short form: only the fees are used.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct ClobTerms<'a> {
    /// The condition id.
    #[serde(borrow, default)]
    pub c: Loose<'a>,
    /// A [`ClobFees`].
    #[serde(borrow, default)]
    pub fd: Loose<'a>,
}

/// Rate, exponent, and whether only takers pay.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct ClobFees<'a> {
    #[serde(borrow, default)]
    pub r: Loose<'a>,
    #[serde(borrow, default)]
    pub e: Loose<'a>,
    #[serde(borrow, default)]
    pub to: Loose<'a>,
}

/// Prices of an up-or-down event.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventMetadata<'a> {
    #[serde(borrow, default)]
    pub price_to_beat: Loose<'a>,
}

/// A tag; older rows have only its text.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Tag<'a> {
    #[serde(borrow, default)]
    pub slug: Loose<'a>,
    #[serde(borrow, default)]
    pub label: Loose<'a>,
}

/// A market in the order book's service.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct ClobMarket<'a> {
    #[serde(borrow, default)]
    pub condition_id: Loose<'a>,
    #[serde(borrow, default)]
    pub question: Loose<'a>,
    #[serde(borrow, default)]
    pub description: Loose<'a>,
    #[serde(borrow, default)]
    pub market_slug: Loose<'a>,
    #[serde(borrow, default)]
    pub image: Loose<'a>,
    #[serde(borrow, default)]
    pub icon: Loose<'a>,
    #[serde(borrow, default)]
    pub end_date_iso: Loose<'a>,
    #[serde(borrow, default)]
    pub minimum_tick_size: Loose<'a>,
    #[serde(borrow, default)]
    pub minimum_order_size: Loose<'a>,
    #[serde(borrow, default)]
    pub neg_risk: Loose<'a>,
    #[serde(borrow, default)]
    pub active: Loose<'a>,
    #[serde(borrow, default)]
    pub closed: Loose<'a>,
    #[serde(borrow, default)]
    pub accepting_orders: Loose<'a>,
    #[serde(borrow, default)]
    pub enable_order_book: Loose<'a>,
    #[serde(borrow, default)]
    pub tags: Loose<'a>,
    #[serde(borrow, default)]
    pub tokens: Loose<'a>,
}

/// A token of a [`ClobMarket`].
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct ClobToken<'a> {
    #[serde(borrow, default)]
    pub token_id: Loose<'a>,
    #[serde(borrow, default)]
    pub outcome: Loose<'a>,
    #[serde(borrow, default)]
    pub price: Loose<'a>,
    #[serde(borrow, default)]
    pub winner: Loose<'a>,
}

/// A page of a list; the key of the rows depends on the service.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Page<'a> {
    #[serde(borrow, default)]
    pub events: Loose<'a>,
    #[serde(borrow, default)]
    pub markets: Loose<'a>,
    #[serde(borrow, default)]
    pub data: Loose<'a>,
    /// Cursor of the next page; missing on the last one.
    #[serde(borrow, default)]
    pub next_cursor: Loose<'a>,
}

/// Which token or market a message is about, for messages that cannot be read otherwise.
#[derive(Debug, Deserialize)]
pub struct About<'a> {
    #[serde(borrow, default)]
    pub event_type: Loose<'a>,
    #[serde(borrow, default)]
    pub asset_id: Loose<'a>,
    #[serde(borrow, default)]
    pub market: Loose<'a>,
}

/// A message of the market channel: the fields of all types.
#[derive(Debug, Default, Deserialize)]
pub struct Message<'a> {
    #[serde(borrow, default)]
    pub event_type: Loose<'a>,
    #[serde(borrow, default)]
    pub asset_id: Loose<'a>,
    #[serde(borrow, default)]
    pub market: Loose<'a>,
    #[serde(borrow, default)]
    pub timestamp: Loose<'a>,
    #[serde(borrow, default)]
    pub hash: Loose<'a>,
    /// Book; older messages name the sides buys and sells.
    #[serde(borrow, default)]
    pub bids: Option<Vec<Level<'a>>>,
    #[serde(borrow, default)]
    pub asks: Option<Vec<Level<'a>>>,
    #[serde(borrow, default)]
    pub buys: Option<Vec<Level<'a>>>,
    #[serde(borrow, default)]
    pub sells: Option<Vec<Level<'a>>>,
    #[serde(borrow, default)]
    pub tick_size: Loose<'a>,
    #[serde(borrow, default)]
    pub last_trade_price: Loose<'a>,
    /// Changes with absolute sizes by token.
    #[serde(borrow, default)]
    pub price_changes: Option<Vec<Change<'a>>>,
    /// Older form: all changes are of the message's token. Oldest form: the message is a single change.
    #[serde(borrow, default)]
    pub changes: Option<Vec<Change<'a>>>,
    #[serde(borrow, default)]
    pub price: Loose<'a>,
    #[serde(borrow, default)]
    pub size: Loose<'a>,
    #[serde(borrow, default)]
    pub side: Loose<'a>,
    /// Trade.
    #[serde(borrow, default)]
    pub transaction_hash: Loose<'a>,
    #[serde(borrow, default)]
    pub fee_rate_bps: Loose<'a>,
    #[serde(borrow, default)]
    pub new_tick_size: Loose<'a>,
    #[serde(borrow, default)]
    pub winning_asset_id: Loose<'a>,
    /// New market.
    #[serde(borrow, default)]
    pub id: Loose<'a>,
    #[serde(borrow, default)]
    pub question: Loose<'a>,
    #[serde(borrow, default)]
    pub slug: Loose<'a>,
    #[serde(borrow, default)]
    pub description: Loose<'a>,
    #[serde(borrow, default)]
    pub assets_ids: Loose<'a>,
    #[serde(borrow, default)]
    pub clob_token_ids: Loose<'a>,
    #[serde(borrow, default)]
    pub condition_id: Loose<'a>,
    #[serde(borrow, default)]
    pub outcomes: Loose<'a>,
    #[serde(borrow, default)]
    pub event_message: Loose<'a>,
    #[serde(borrow, default)]
    pub tags: Loose<'a>,
    #[serde(borrow, default)]
    pub active: Loose<'a>,
    #[serde(borrow, default)]
    pub order_price_min_tick_size: Loose<'a>,
    #[serde(borrow, default)]
    pub fees_enabled: Loose<'a>,
    /// A [`FeeSchedule`].
    #[serde(borrow, default)]
    pub fee_schedule: Loose<'a>,
    #[serde(borrow, default)]
    pub group_item_title: Loose<'a>,
    #[serde(borrow, default)]
    pub sports_market_type: Loose<'a>,
    #[serde(borrow, default)]
    pub line: Loose<'a>,
    /// The socket with prices of underlyings.
    #[serde(borrow, default)]
    pub topic: Loose<'a>,
    #[serde(borrow, default)]
    pub payload: Loose<'a>,
}

/// One level of a book.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Level<'a> {
    #[serde(borrow, default)]
    pub price: Loose<'a>,
    #[serde(borrow, default)]
    pub size: Loose<'a>,
}

/// One change: `size` is the new size of the level; 0 deletes it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Change<'a> {
    #[serde(borrow, default)]
    pub asset_id: Loose<'a>,
    #[serde(borrow, default)]
    pub price: Loose<'a>,
    #[serde(borrow, default)]
    pub size: Loose<'a>,
    #[serde(borrow, default)]
    pub side: Loose<'a>,
    #[serde(borrow, default)]
    pub hash: Loose<'a>,
    /// The best prices after the change; 0, 1 and blank mean an empty side.
    #[serde(borrow, default)]
    pub best_bid: Loose<'a>,
    #[serde(borrow, default)]
    pub best_ask: Loose<'a>,
}

/// A price of an underlying, or a list of earlier ones.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct SpotPrice<'a> {
    #[serde(borrow, default)]
    pub symbol: Loose<'a>,
    #[serde(borrow, default)]
    pub timestamp: Loose<'a>,
    #[serde(borrow, default)]
    pub value: Loose<'a>,
    /// In 10⁻¹⁸ dollars, or, with a decimal point, in dollars.
    #[serde(borrow, default)]
    pub full_accuracy_value: Loose<'a>,
    /// In the response to a subscription: earlier prices, oldest first.
    #[serde(borrow, default)]
    pub data: Loose<'a>,
}

/// The fields of a book that its hash covers, in the order of the hashed text.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct HashedBook<'a> {
    #[serde(borrow, default)]
    pub market: Loose<'a>,
    #[serde(borrow, default)]
    pub asset_id: Loose<'a>,
    #[serde(borrow, default)]
    pub timestamp: Loose<'a>,
    #[serde(borrow, default)]
    pub hash: Loose<'a>,
    #[serde(borrow, default)]
    pub bids: Loose<'a>,
    #[serde(borrow, default)]
    pub asks: Loose<'a>,
    #[serde(borrow, default)]
    pub min_order_size: Loose<'a>,
    #[serde(borrow, default)]
    pub tick_size: Loose<'a>,
    #[serde(borrow, default)]
    pub neg_risk: Loose<'a>,
    #[serde(borrow, default)]
    pub last_trade_price: Loose<'a>,
}
