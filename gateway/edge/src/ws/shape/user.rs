//! `/v1/ws/user` (streams.md §4.1, §4.3): the user's trades and orders in the venue's shape.

use super::{
    CONDITION_IDS, DIALECT, ERROR_EVENT, ERRORS, FROM_SEQ, GAP, KEY, PING, PING_JSON, PONG, PONG_JSON, SECONDS, SIDE,
    TEXTS, TOKEN, USER_SEQ,
};
use crate::http::schema::{
    BOOLEAN, CONDITION_ID, DECIMAL, Format, INTEGER, ORDER_HEX, Schema, Shape, TEXT, TOKEN_ID, field, optional,
};
use crate::ws::asyncapi::{Channel, Credential, Message};

pub const CHANNEL: Channel = Channel {
    path: "/v1/ws/user",
    at_root: true,
    name: "user",
    about: "The user's fills in the venue's shape, of chosen markets or of all. The key is in the first frame, unless \
        the handshake had one. A strict socket has the venue's own types and `order` frames: one whose key is a UUID, \
        whose handshake has a `POLY_*` header or the `User-Agent` of a venue client, or that asks by `dialect=strict`.",
    params: &[TOKEN, KEY, FROM_SEQ, ERRORS, DIALECT],
    credentials: &[Credential::FirstFrame, Credential::Key, Credential::Ticket],
    takes: &[SUBSCRIBE, CHANGE, PING, PING_JSON],
    sends: &[GAP, TRADE, ORDER, PONG, PONG_JSON, ERROR_EVENT],
};

const AUTH: Schema = Schema::Object(&Shape::new(
    "UserAuth",
    "A key of the server.",
    &[
        field("apiKey", TEXT, "The key, or its UUID."),
        optional("secret", TEXT, "Not looked at."),
        optional("passphrase", TEXT, "Not looked at."),
        optional(
            "order_events",
            BOOLEAN,
            "Send `order` frames to a plain socket too, unless `streams.order_events` is `off`.",
        ),
    ],
));
const SUBSCRIBE: Message = Message::json(
    "subscribe",
    "The first frame, within 10 s.",
    &Schema::Object(&Shape::new(
        "SubscribeUser",
        "No market means all.",
        &[
            optional("type", TEXT, "`user` in any case, or `subscribe`."),
            optional("auth", AUTH, "Unless the handshake had a credential."),
            optional("markets", CONDITION_IDS, ""),
            optional("assets_ids", TEXTS, "The markets of these tokens."),
            optional("asset_ids", TEXTS, "The same."),
        ],
    )),
    r#"{"type":"user","auth":{"apiKey":"4f0c9d2a-0011-8233-9455-66778899aabb","secret":"","passphrase":""},"markets":[]}"#,
);
const CHANGE: Message = Message::json(
    "change",
    "A later frame: more markets, or fewer.",
    &Schema::Object(&Shape::new(
        "ChangeUser",
        "As the first frame, and what to do.",
        &[
            optional("operation", Schema::Word(&["subscribe", "unsubscribe"]), "Default `subscribe`."),
            optional("action", Schema::Word(&["subscribe", "unsubscribe"]), "The same."),
            optional("markets", CONDITION_IDS, ""),
            optional("assets_ids", TEXTS, "The markets of these tokens."),
            optional("asset_ids", TEXTS, "The same."),
        ],
    )),
    r#"{"operation":"subscribe","markets":["0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4"]}"#,
);

const MAKER_ORDER: Schema = Schema::Object(&Shape::new(
    "MakerOrder",
    "The own order of a MAKER trade.",
    &[
        field("order_id", ORDER_HEX, ""),
        field("owner", TEXT, "As of the trade."),
        field("maker_address", TEXT, "As of the trade."),
        field("matched_amount", DECIMAL, ""),
        field("price", DECIMAL, ""),
        field("fee_rate_bps", DECIMAL, ""),
        field("asset_id", TOKEN_ID, ""),
        field("outcome", TEXT, ""),
        field("side", SIDE, "Of the own order."),
    ],
));
const TRANSACTION_HASH: Schema = Schema::Format(&Format {
    name: "TransactionHash",
    about: "32 bytes that stand for the transaction of a paper trade, which has none.",
    pattern: "^0x[0-9a-f]{64}$",
});
const TRADE: Message = Message::json(
    "trade",
    "One fill of the user.",
    &Schema::Object(&Shape::new(
        "UserTradeEvent",
        "One fill of the user.",
        &[
            field("event_type", Schema::Word(&["trade"]), ""),
            field("type", Schema::Word(&["TRADE"]), ""),
            field("status", Schema::Word(&["MATCHED"]), ""),
            field("id", TEXT, ""),
            field("taker_order_id", ORDER_HEX, "The user's order."),
            field("market", CONDITION_ID, ""),
            field("asset_id", TOKEN_ID, ""),
            field("side", SIDE, "The user's; of a MAKER trade in the strict dialect the taker's, as at the venue."),
            field("size", DECIMAL, ""),
            field("price", DECIMAL, ""),
            field("outcome", TEXT, ""),
            field("timestamp", SECONDS, ""),
            field("last_update", SECONDS, ""),
            field("match_time", SECONDS, ""),
            field(
                "maker_orders",
                Schema::Array(&MAKER_ORDER),
                "The own order of a MAKER trade in the strict dialect, or where `order` frames are sent; else empty.",
            ),
            field(
                "owner",
                TEXT,
                "Empty; in the strict dialect the UUID of the key, where that was shown, or of the account.",
            ),
            field("trade_owner", TEXT, "The same."),
            field("fee_rate_bps", DECIMAL, ""),
            field("trader_side", Schema::Word(&["TAKER", "MAKER"]), ""),
            field("bucket_index", Schema::Integer { min: 0, max: 0 }, ""),
            field("maker_address", TEXT, ""),
            field("transaction_hash", Schema::OneOf(&[TRANSACTION_HASH, Schema::Null]), "Null in the plain dialect."),
            optional("user_seq", INTEGER, USER_SEQ),
        ],
    )),
    r#"{"event_type":"trade","type":"TRADE","status":"MATCHED","id":"268435460","taker_order_id":"0x0000000000000000000000000000000000000000000000000000000010000003","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","asset_id":"721503","side":"BUY","size":"6","price":"0.41","outcome":"Yes","timestamp":"1793871204","last_update":"1793871204","match_time":"1793871204","maker_orders":[],"owner":"","trade_owner":"","fee_rate_bps":"0","trader_side":"MAKER","bucket_index":0,"maker_address":"0x4c00000000000000000000000000000000000001","transaction_hash":null}"#,
);
const ORDER: Message = Message::json(
    "order",
    "To strict sockets, to those that ask by `order_events`, or to all, as `streams.order_events` says: an order rests \
        (`PLACEMENT`), was filled (`UPDATE`), or ended unfilled or in part (`CANCELLATION`).",
    &Schema::Object(&Shape::new(
        "UserOrderEvent",
        "",
        &[
            field("event_type", Schema::Word(&["order"]), ""),
            field("type", Schema::Word(&["PLACEMENT", "UPDATE", "CANCELLATION"]), ""),
            field("id", ORDER_HEX, ""),
            field("owner", TEXT, "As of a trade."),
            field("order_owner", TEXT, "The same."),
            field("market", CONDITION_ID, ""),
            field("asset_id", TOKEN_ID, ""),
            field("side", SIDE, ""),
            field("outcome", TEXT, ""),
            field("original_size", DECIMAL, ""),
            field("size_matched", DECIMAL, ""),
            field("price", DECIMAL, ""),
            field("order_type", Schema::Word(&["GTC", "GTD", "FOK", "FAK"]), ""),
            field("expiration", TEXT, "Unix seconds; `0` without one."),
            field("created_at", TEXT, "Unix seconds."),
            field("timestamp", TEXT, "Unix milliseconds: when it happened."),
            field("associate_trades", TEXTS, "The trade of an `UPDATE`."),
            field("status", Schema::Word(&["LIVE", "MATCHED", "CANCELED"]), ""),
            field("maker_address", TEXT, ""),
            optional("user_seq", INTEGER, USER_SEQ),
        ],
    )),
    r#"{"event_type":"order","type":"PLACEMENT","id":"0x0000000000000000000000000000000000000000000000000000000010000003","owner":"","order_owner":"","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","asset_id":"721503","side":"BUY","outcome":"Yes","original_size":"6","size_matched":"0","price":"0.41","order_type":"GTC","expiration":"0","created_at":"1793871204","timestamp":"1793871204024","associate_trades":[],"status":"LIVE","maker_address":"0x4c00000000000000000000000000000000000001"}"#,
);
