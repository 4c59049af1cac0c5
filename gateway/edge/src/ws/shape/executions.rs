//! `/v1/ws/executions` (streams.md §3).

use super::{FROM_SEQ, GAP, KEY, PING, PING_JSON, PONG, PONG_JSON, SEQ, SIDE, TOKEN, USER_SEQ};
use crate::api::wallets;
use crate::http::schema::{
    CONDITION_ID, INTEGER, MONEY, PRICE, Param, QTY, Schema, Shape, TEXT, TEXT_OR_NULL, TOKEN_ID, TS, TS_OR_NULL,
    VENUE_TIME, field,
};
use crate::ws::asyncapi::{Channel, Credential, Message};

pub const CHANNEL: Channel = Channel {
    path: "/v1/ws/executions",
    at_root: false,
    name: "executions",
    about: "Fills of the user's resting orders, and with `events=all` every change of their state. Nothing is \
        subscribed to; frames but heartbeats are ignored.",
    params: &[
        TOKEN,
        KEY,
        Param::query("wallet_id", wallets::WALLET_ID.schema, "Only this wallet; every wallet where absent or `all`."),
        Param::query("events", Schema::Word(&["all"]), "Changes of state too."),
        FROM_SEQ,
    ],
    credentials: &[Credential::Ticket, Credential::Key],
    takes: &[PING, PING_JSON],
    sends: &[CONNECTED, GAP, FILL, ORDER, PONG, PONG_JSON],
};

const CONNECTED: Message = Message::json(
    "connected",
    "The first frame.",
    &Schema::Object(&Shape::new(
        "ExecutionsConnected",
        "The socket is open.",
        &[
            field("type", Schema::Word(&["connected"]), ""),
            field("connection_id", TEXT, ""),
            field("ts", INTEGER, "Unix milliseconds."),
            field("max_subscriptions", INTEGER, "Means nothing here."),
            field("user_id", INTEGER, ""),
        ],
    )),
    r#"{"type":"connected","connection_id":"c-72","ts":1793871202417,"max_subscriptions":50,"user_id":42}"#,
);
const FILL: Message = Message::json(
    "fill",
    "One fill of a resting order.",
    &Schema::Object(&Shape::new(
        "FillFrame",
        "One fill of a resting order; figures of the order are those right after it.",
        &[
            field("type", Schema::Word(&["fill"]), ""),
            field("order_id", INTEGER, ""),
            field("market_id", CONDITION_ID, ""),
            field("side", SIDE, ""),
            field("outcome", TEXT, ""),
            field("price", PRICE, ""),
            field("quantity", QTY, ""),
            field("filled_at", TS, ""),
            field("client_order_id", TEXT_OR_NULL, ""),
            field("token_id", TOKEN_ID, ""),
            field("status", Schema::Word(&["PENDING", "FILLED"]), "PENDING: in part."),
            field("remaining_quantity", QTY, ""),
            field("fee", MONEY, ""),
            field("wallet_id", INTEGER, ""),
            field("trade_id", INTEGER, ""),
            field("venue_time", TS_OR_NULL, VENUE_TIME),
            field("seq", INTEGER, SEQ),
            field("user_seq", INTEGER, USER_SEQ),
        ],
    )),
    r#"{"type":"fill","order_id":268435459,"market_id":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","side":"BUY","outcome":"Yes","price":"0.41","quantity":"6","filled_at":"2026-11-05T09:33:24.020000Z","client_order_id":"g-0017","token_id":"721503","status":"FILLED","remaining_quantity":"0","fee":"0.00","wallet_id":268435457,"trade_id":268435460,"venue_time":null,"seq":2,"user_seq":2}"#,
);
const ORDER: Message = Message::json(
    "order",
    "With `events=all`: the state of an order.",
    &Schema::Object(&Shape::new(
        "OrderFrame",
        "The state that an order came into.",
        &[
            field("type", Schema::Word(&["order"]), ""),
            field("order_id", INTEGER, ""),
            field("status", Schema::Word(&["PENDING", "CANCELLED", "EXPIRED"]), ""),
            field("cancelled_reason", TEXT_OR_NULL, ""),
            field("ts", INTEGER, "Unix milliseconds."),
            field("seq", INTEGER, SEQ),
            field("user_seq", INTEGER, USER_SEQ),
        ],
    )),
    r#"{"type":"order","order_id":268435459,"status":"CANCELLED","cancelled_reason":"user_cancelled","ts":1793871202417,"seq":3,"user_seq":3}"#,
);
