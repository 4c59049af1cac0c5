//! `/v1/ws/market` (streams.md §4.1, §4.2): events in the shapes of the venue, which are texts throughout.

use super::{CONDITION_IDS, ERROR_EVENT, ERRORS, KEY, PING, PING_JSON, PONG, PONG_JSON, SIDE, TEXTS, TOKEN};
use crate::http::schema::{BOOLEAN, CONDITION_ID, DECIMAL, MILLIS, Schema, Shape, TEXT, TOKEN_ID, field, optional};
use crate::ws::asyncapi::{Channel, Credential, Message};

pub const CHANNEL: Channel = Channel {
    path: "/v1/ws/market",
    at_root: true,
    name: "market",
    about: "Books of chosen tokens: a `book` each, then every change of it in order.",
    params: &[TOKEN, KEY, ERRORS],
    credentials: &[Credential::Nobody, Credential::Key, Credential::Ticket],
    takes: &[SUBSCRIBE, CHANGE, PING, PING_JSON],
    sends: &[
        BOOKS,
        BOOK,
        PRICE_CHANGE,
        TICK_SIZE_CHANGE,
        LAST_TRADE_PRICE,
        BEST_BID_ASK,
        NEW_MARKET,
        MARKET_RESOLVED,
        PONG,
        PONG_JSON,
        ERROR_EVENT,
    ],
};

const TOKEN_IDS: Schema = Schema::Array(&TOKEN_ID);

const SUBSCRIBE: Message = Message::json(
    "subscribe",
    "The first frame; unknown ids are skipped.",
    &Schema::Object(&Shape::new(
        "SubscribeMarket",
        "Tokens by their ids, or both tokens of markets by theirs.",
        &[
            optional("type", TEXT, "`market` in any case, or `subscribe`."),
            optional("assets_ids", TOKEN_IDS, ""),
            optional("asset_ids", TOKEN_IDS, "The same."),
            optional("markets", CONDITION_IDS, ""),
            optional("initial_dump", BOOLEAN, "Send the books of the new tokens. Default true."),
            optional("custom_feature_enabled", BOOLEAN, "Send the custom events too. Stays on for the socket."),
            optional("level", Schema::Any, "Not looked at."),
        ],
    )),
    r#"{"type":"market","assets_ids":["721503"],"custom_feature_enabled":true}"#,
);
const CHANGE: Message = Message::json(
    "change",
    "A later frame: more tokens, or fewer.",
    &Schema::Object(&Shape::new(
        "ChangeMarket",
        "As the first frame, and what to do.",
        &[
            optional("operation", Schema::Word(&["subscribe", "unsubscribe"]), "Default `subscribe`."),
            optional("action", Schema::Word(&["subscribe", "unsubscribe"]), "The same."),
            optional("assets_ids", TOKEN_IDS, ""),
            optional("asset_ids", TOKEN_IDS, "The same."),
            optional("markets", CONDITION_IDS, ""),
            optional("initial_dump", BOOLEAN, "Send the books of the new tokens. Default true."),
            optional("custom_feature_enabled", BOOLEAN, "Send the custom events too. Stays on for the socket."),
        ],
    )),
    r#"{"operation":"unsubscribe","assets_ids":["721503"]}"#,
);

const LEVEL: Schema = Schema::Object(&Shape::new(
    "StreamLevel",
    "All orders at one price.",
    &[field("price", DECIMAL, "US dollars per share."), field("size", DECIMAL, "Shares.")],
));
const BOOK_EVENT: Schema = Schema::Object(&Shape::new(
    "BookEvent",
    "The whole book of one token.",
    &[
        field("event_type", Schema::Word(&["book"]), ""),
        field("asset_id", TOKEN_ID, ""),
        field("market", CONDITION_ID, ""),
        field("timestamp", MILLIS, ""),
        field("hash", TEXT, "As `GET /v1/book` shows it."),
        field("bids", Schema::Array(&LEVEL), "Ascending: the best is last."),
        field("asks", Schema::Array(&LEVEL), "Descending: the best is last."),
        field("tick_size", DECIMAL, ""),
        field("last_trade_price", Schema::OneOf(&[DECIMAL, Schema::Word(&[""])]), "Empty before the first trade."),
        field("min_order_size", DECIMAL, ""),
        field("neg_risk", BOOLEAN, ""),
    ],
));
const BOOKS: Message = Message::json(
    "books",
    "The books of a subscription, at most 50 in one frame; empty when no token is known.",
    &Schema::List { of: &BOOK_EVENT, min: 0, max: 50 },
    r#"[{"event_type":"book","asset_id":"721503","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","timestamp":"1793871202417","hash":"9ae1","bids":[{"price":"0.38","size":"55"}],"asks":[{"price":"0.41","size":"20"}],"tick_size":"0.01","last_trade_price":"0.39","min_order_size":"5","neg_risk":false}]"#,
);
const BOOK: Message = Message::json(
    "book",
    "A fresh book: after the venue sent one, or in place of changes that were left out.",
    &BOOK_EVENT,
    r#"{"event_type":"book","asset_id":"721503","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","timestamp":"1793871202417","hash":"9ae1","bids":[],"asks":[],"tick_size":"0.01","last_trade_price":"","min_order_size":"5","neg_risk":false}"#,
);
const PRICE_CHANGE: Message = Message::json(
    "price_change",
    "Levels that changed, of both tokens of a market as far as they are subscribed to.",
    &Schema::Object(&Shape::new(
        "PriceChangeEvent",
        "Levels as they now are.",
        &[
            field("event_type", Schema::Word(&["price_change"]), ""),
            field("market", CONDITION_ID, ""),
            field("timestamp", MILLIS, ""),
            field(
                "price_changes",
                Schema::Array(&Schema::Object(&Shape::new(
                    "LevelChange",
                    "One level.",
                    &[
                        field("asset_id", TOKEN_ID, ""),
                        field("price", DECIMAL, ""),
                        field("size", DECIMAL, "All there is now; `0`: the level is gone."),
                        field("side", SIDE, "BUY: a bid."),
                        field("hash", TEXT, "Of the book after the frame."),
                        field("best_bid", DECIMAL, "`0` when there is none."),
                        field("best_ask", DECIMAL, "`1` when there is none."),
                    ],
                ))),
                "",
            ),
        ],
    )),
    r#"{"event_type":"price_change","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","timestamp":"1793871202417","price_changes":[{"asset_id":"721503","price":"0.38","size":"55","side":"BUY","hash":"1f","best_bid":"0.38","best_ask":"0.41"}]}"#,
);
const TICK_SIZE_CHANGE: Message = Message::json(
    "tick_size_change",
    "The grid of prices changed; a `book` follows.",
    &Schema::Object(&Shape::new(
        "TickSizeChangeEvent",
        "",
        &[
            field("event_type", Schema::Word(&["tick_size_change"]), ""),
            field("market", CONDITION_ID, ""),
            field("asset_id", TOKEN_ID, ""),
            field("old_tick_size", DECIMAL, ""),
            field("new_tick_size", DECIMAL, ""),
            field("timestamp", MILLIS, ""),
        ],
    )),
    r#"{"event_type":"tick_size_change","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","asset_id":"721503","old_tick_size":"0.01","new_tick_size":"0.001","timestamp":"1793871202417"}"#,
);
const LAST_TRADE_PRICE: Message = Message::json(
    "last_trade_price",
    "A trade at the venue; paper fills are not among them.",
    &Schema::Object(&Shape::new(
        "LastTradePriceEvent",
        "",
        &[
            field("event_type", Schema::Word(&["last_trade_price"]), ""),
            field("market", CONDITION_ID, ""),
            field("asset_id", TOKEN_ID, ""),
            field("price", DECIMAL, ""),
            field("size", DECIMAL, ""),
            field("side", SIDE, "Of the taker."),
            field("fee_rate_bps", DECIMAL, ""),
            field("timestamp", MILLIS, ""),
            optional("hash", TEXT, "Of the token's book after the venue's frame, as `GET /v1/book` shows it."),
        ],
    )),
    r#"{"event_type":"last_trade_price","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","asset_id":"721503","price":"0.39","size":"12","side":"SELL","fee_rate_bps":"0","timestamp":"1793871202417","hash":"9ae1"}"#,
);
const BEST_BID_ASK: Message = Message::json(
    "best_bid_ask",
    "With custom events: the best prices changed.",
    &Schema::Object(&Shape::new(
        "BestBidAskEvent",
        "What has no depth is left out.",
        &[
            field("event_type", Schema::Word(&["best_bid_ask"]), ""),
            field("market", CONDITION_ID, ""),
            field("asset_id", TOKEN_ID, ""),
            optional("best_bid", DECIMAL, ""),
            optional("best_ask", DECIMAL, ""),
            optional("spread", DECIMAL, ""),
            field("timestamp", MILLIS, ""),
        ],
    )),
    r#"{"event_type":"best_bid_ask","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","asset_id":"721503","best_bid":"0.38","best_ask":"0.41","spread":"0.03","timestamp":"1793871202417"}"#,
);

const EVENT_MESSAGE: Schema = Schema::Object(&Shape::new(
    "EventMessage",
    "The group that the market belongs to.",
    &[
        field("id", TEXT, ""),
        field("ticker", TEXT, ""),
        field("slug", TEXT, ""),
        field("title", TEXT, ""),
        field("description", TEXT, ""),
    ],
));
const NEW_MARKET: Message = Message::json(
    "new_market",
    "With custom events: a market was listed.",
    &Schema::Object(&Shape::new(
        "NewMarketEvent",
        "",
        &[
            field("event_type", Schema::Word(&["new_market"]), ""),
            field("id", TEXT, ""),
            field("question", TEXT, ""),
            field("market", CONDITION_ID, ""),
            field("slug", TEXT, ""),
            field("description", TEXT, ""),
            field("assets_ids", TOKEN_IDS, ""),
            field("outcomes", TEXTS, ""),
            field("event_message", EVENT_MESSAGE, ""),
            field("timestamp", MILLIS, ""),
            field("tags", TEXTS, ""),
            field("condition_id", CONDITION_ID, ""),
            field("active", BOOLEAN, ""),
            field("clob_token_ids", TOKEN_IDS, ""),
            field("order_price_min_tick_size", DECIMAL, ""),
            field("group_item_title", TEXT, ""),
        ],
    )),
    r#"{"event_type":"new_market","id":"7","question":"Rain in Lisbon?","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","slug":"rain-in-lisbon","description":"","assets_ids":["721503","883490"],"outcomes":["Yes","No"],"event_message":{"id":"3","ticker":"rain","slug":"rain","title":"Rain","description":""},"timestamp":"1793871202417","tags":[],"condition_id":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","active":true,"clob_token_ids":["721503","883490"],"order_price_min_tick_size":"0.01","group_item_title":""}"#,
);
const WINNER: Schema = Schema::OneOf(&[TOKEN_ID, Schema::Word(&[""])]);
const MARKET_RESOLVED: Message = Message::json(
    "market_resolved",
    "With custom events: a subscribed market was resolved.",
    &Schema::Object(&Shape::new(
        "MarketResolvedEvent",
        "",
        &[
            field("event_type", Schema::Word(&["market_resolved"]), ""),
            field("id", TEXT, ""),
            field("market", CONDITION_ID, ""),
            field("question", TEXT, ""),
            field("slug", TEXT, ""),
            field("description", TEXT, ""),
            field("assets_ids", TOKEN_IDS, ""),
            field("outcomes", TEXTS, ""),
            field("winning_asset_id", WINNER, "Empty when the shares of both outcomes pay half."),
            field("winning_outcome", TEXT, "As empty."),
            field("event_message", EVENT_MESSAGE, ""),
            field("timestamp", MILLIS, ""),
            field("tags", TEXTS, ""),
        ],
    )),
    r#"{"event_type":"market_resolved","id":"7","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","question":"Rain in Lisbon?","slug":"rain-in-lisbon","description":"","assets_ids":["721503","883490"],"outcomes":["Yes","No"],"winning_asset_id":"721503","winning_outcome":"Yes","event_message":{"id":"3","ticker":"rain","slug":"rain","title":"Rain","description":""},"timestamp":"1793871202417","tags":[]}"#,
);
