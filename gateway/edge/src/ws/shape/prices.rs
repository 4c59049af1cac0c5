//! `/v1/ws/prices` (streams.md §2).

use super::{CONDITION_IDS, ERROR, INSTANT, KEY, PING, PING_JSON, PONG, PONG_JSON, SIDE, TEXTS, TOKEN};
use crate::http::schema::{
    BOOLEAN, CONDITION_ID, INTEGER, PRICE, PRICE_OR_NULL, QTY_OR_NULL, Schema, Shape, TEXT, TEXT_OR_NULL, TOKEN_ID,
    TOKEN_ID_OR_NULL, VOL_OR_NULL, field, optional,
};
use crate::ws::asyncapi::{Channel, Credential, Message};

pub const CHANNEL: Channel = Channel {
    path: "/v1/ws/prices",
    at_root: false,
    name: "prices",
    about: "Prices of chosen markets: one frame at once for each, then on change, at most one per market in 250 ms.",
    params: &[TOKEN, KEY],
    credentials: &[Credential::Key, Credential::Ticket],
    takes: &[SUBSCRIBE, UNSUBSCRIBE, PING, PING_JSON],
    sends: &[CONNECTED, SUBSCRIBED, UNSUBSCRIBED, PRICE_FRAME, RESOLVED, PONG, PONG_JSON, ERROR],
};

const SUBSCRIBE: Message = Message::json(
    "subscribe",
    "Begins prices of these markets.",
    &Schema::Object(&Shape::new(
        "SubscribePrices",
        "`markets` and `conditions` mean the same; both together are one list. Other fields are not looked at.",
        &[
            field("action", Schema::Word(&["subscribe"]), ""),
            optional("markets", CONDITION_IDS, ""),
            optional("conditions", CONDITION_IDS, ""),
        ],
    )),
    r#"{"action":"subscribe","markets":["0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4"]}"#,
);
const UNSUBSCRIBE: Message = Message::json(
    "unsubscribe",
    "Ends prices of these markets.",
    &Schema::Object(&Shape::new(
        "UnsubscribePrices",
        "As `subscribe`.",
        &[
            field("action", Schema::Word(&["unsubscribe"]), ""),
            optional("markets", CONDITION_IDS, ""),
            optional("conditions", CONDITION_IDS, ""),
        ],
    )),
    r#"{"action":"unsubscribe","markets":["0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4"]}"#,
);

const CONNECTED: Message = Message::json(
    "connected",
    "The first frame.",
    &Schema::Object(&Shape::new(
        "Connected",
        "The socket is open.",
        &[
            field("type", Schema::Word(&["connected"]), ""),
            field("connection_id", TEXT, ""),
            field("ts", INTEGER, "Unix milliseconds."),
            field("max_subscriptions", INTEGER, "Markets at once."),
        ],
    )),
    r#"{"type":"connected","connection_id":"c-71","ts":1793871202417,"max_subscriptions":50}"#,
);
const SUBSCRIBED: Message = Message::json(
    "subscribed",
    "What a `subscribe` began.",
    &Schema::Object(&Shape::new(
        "Subscribed",
        "",
        &[
            field("type", Schema::Word(&["subscribed"]), ""),
            field("markets", TEXTS, "The ids of the frame that were accepted."),
            field("count", INTEGER, "Markets subscribed to now."),
        ],
    )),
    r#"{"type":"subscribed","markets":["0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4"],"count":1}"#,
);
const UNSUBSCRIBED: Message = Message::json(
    "unsubscribed",
    "What an `unsubscribe` ended.",
    &Schema::Object(&Shape::new(
        "Unsubscribed",
        "",
        &[
            field("type", Schema::Word(&["unsubscribed"]), ""),
            field("markets", TEXTS, "The ids of the frame that were accepted."),
            field("count", INTEGER, "Markets subscribed to now."),
        ],
    )),
    r#"{"type":"unsubscribed","markets":[],"count":1}"#,
);

const OUTCOME: Schema = Schema::Object(&Shape::new(
    "OutcomePrice",
    "One outcome of a market.",
    &[
        field("label", TEXT, ""),
        field("price", PRICE_OR_NULL, "Half way between the best prices, else the last trade."),
        field("token_id", TOKEN_ID, ""),
        optional("best_bid", PRICE, "Left out where the outcome has no own depth."),
        optional("best_ask", PRICE, "Left out where the outcome has no own depth."),
        optional("last_trade", PRICE, ""),
        optional("last_trade_at", INSTANT, ""),
    ],
));
const TOKEN_PRICE: Schema = Schema::Object(&Shape::new(
    "TokenPrice",
    "The price of one outcome.",
    &[field("label", TEXT, ""), field("price", PRICE_OR_NULL, "")],
));
const PRICE_FRAME: Message = Message::json(
    "price",
    "The prices of one market.",
    &Schema::Object(&Shape::new(
        "PriceFrame",
        "The prices of one market; the figures at the top level are those of its first outcome.",
        &[
            field("type", Schema::Word(&["price"]), ""),
            field("market_id", CONDITION_ID, ""),
            field("condition_id", CONDITION_ID, "The same."),
            field("emit_ts_ms", INTEGER, "When the frame was made, unix milliseconds."),
            field("source", TEXT, "An opaque label."),
            field("updated_at", INSTANT, "The last change of a price."),
            field("ws_updated_at", INSTANT, "The last word of the venue."),
            field("outcomes", Schema::Array(&OUTCOME), "In the market's order."),
            field("tokens", Schema::Map(&TOKEN_PRICE), "By token."),
            field("buy", PRICE_OR_NULL, "The best bid."),
            field("sell", PRICE_OR_NULL, "The best ask."),
            field("best_bid", PRICE_OR_NULL, ""),
            field("best_ask", PRICE_OR_NULL, ""),
            field("last_trade", PRICE_OR_NULL, ""),
            field("last_trade_side", Schema::Nullable(&SIDE), ""),
            field("last_trade_size", QTY_OR_NULL, ""),
            field("volume", VOL_OR_NULL, "Of all time."),
            field("active", BOOLEAN, ""),
            field("closed", BOOLEAN, ""),
            field("stale", BOOLEAN, "Nothing was heard of it for 30 s."),
            field(
                "seq",
                INTEGER,
                "Prices made for this socket, from 1. A number that is missing is a price that a newer one replaced in the queue.",
            ),
        ],
    )),
    r#"{"type":"price","market_id":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","condition_id":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","emit_ts_ms":1793871202420,"source":"websocket","updated_at":"2026-11-05T09:33:22.417Z","ws_updated_at":"2026-11-05T09:33:22.417Z","outcomes":[{"label":"Yes","price":"0.395","token_id":"721503","best_bid":"0.38","best_ask":"0.41","last_trade":"0.39"},{"label":"No","price":"0.605","token_id":"883490"}],"tokens":{"721503":{"label":"Yes","price":"0.395"},"883490":{"label":"No","price":"0.605"}},"buy":"0.38","sell":"0.41","best_bid":"0.38","best_ask":"0.41","last_trade":"0.39","last_trade_side":"SELL","last_trade_size":"12","volume":"48210.75","active":true,"closed":false,"stale":false,"seq":4}"#,
);
const RESOLVED: Message = Message::json(
    "resolved",
    "The market was resolved: no more prices of it.",
    &Schema::Object(&Shape::new(
        "ResolvedFrame",
        "A market that ended.",
        &[
            field("type", Schema::Word(&["resolved"]), ""),
            field("condition_id", CONDITION_ID, ""),
            field("winning_outcome", TEXT_OR_NULL, "Null when the shares of both outcomes pay half."),
            field("winning_token_id", TOKEN_ID_OR_NULL, "As null."),
            field("ts", INTEGER, "Unix milliseconds."),
        ],
    )),
    r#"{"type":"resolved","condition_id":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","winning_outcome":"Yes","winning_token_id":"721503","ts":1793871202417}"#,
);
