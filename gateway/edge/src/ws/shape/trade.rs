//! `/v1/ws/trade`: order entry.

use super::{KEY, PING, PING_JSON, PONG, PONG_JSON, TOKEN};
use crate::api::orders::records::{BatchResults, Cancelled, OrderDetail, OrderResponse, PlaceBatch, PlaceOrder};
use crate::http::record::{Example, Record, value};
use crate::http::schema::{BOOLEAN, Field, INTEGER, Schema, Shape, TEXT, field, optional};
use crate::ws::asyncapi::{Channel, Credential, Kind, Message};
use serde_json::{Value, json};

pub const CHANNEL: Channel = Channel {
    path: "/v1/ws/trade",
    at_root: false,
    name: "trade",
    about: "Order entry: an operation is `{\"id\",\"op\",\"params\"}` and gets one answer with its id. Each runs its \
        REST twin, with the same checks, windows, caps and idempotency, and counts as that request; a batch counts as \
        one. Operations begin in the order in which they were sent, many may be in flight, and their answers may \
        overtake each other. A refusal is an answer: the socket stays open. What is no operation is answered too, and \
        counts for 4008: one with an id as any frame, one without as a bad one. Needs a key, or a token that a key minted: \
        one minted by a session token closes with 4003. `GET /v1/openapi.json` describes the twins: order.place is \
        `POST /v1/orders`, order.batch `POST /v1/orders/batch`, order.cancel `DELETE /v1/orders/{order_id}` or \
        `/v1/orders/by-client-id/{client_order_id}`, order.status the GET of both, cancel_all `POST /v1/cancel-all`.",
    params: &[TOKEN, KEY],
    credentials: &[Credential::Key, Credential::Ticket],
    takes: &[PLACE, BATCH, CANCEL, CANCEL_ALL, STATUS, PING, PING_JSON],
    sends: &[PLACED, BATCHED, SWEPT, DETAILED, REFUSED, PONG, PONG_JSON],
};

/// The client's own name of an operation.
const ID: Schema = Schema::OneOf(&[Schema::Text(64), Schema::Integer { min: i64::MIN, max: i64::MAX }]);
const ID_ABOUT: &str = "A text of at most 64 characters, or an integer of 64 bits; it comes back as it was sent.";

macro_rules! operation {
    ($shape:literal, $op:literal, $params:expr, $about:literal) => {
        Schema::Object(&Shape::new(
            $shape,
            $about,
            &[field("id", ID, ID_ABOUT), field("op", Schema::Word(&[$op]), ""), field("params", $params, "")],
        ))
    };
}

const PLACE: Message = Message::json(
    "order.place",
    "Place one native order.",
    &operation!("PlaceOperation", "order.place", Schema::of::<PlaceOrder<'_>>(), "Place one native order."),
    r#"{"id":1,"op":"order.place","params":{"token_id":"721503","side":"BUY","order_type":"limit","price":"0.37","quantity":"20","client_order_id":"g-0017"}}"#,
)
.correlated();
const BATCH: Message = Message::json(
    "order.batch",
    "Place several orders; each entry succeeds or fails by itself.",
    &operation!("BatchOperation", "order.batch", Schema::of::<PlaceBatch<'_>>(), "Place several orders."),
    r#"{"id":2,"op":"order.batch","params":{"orders":[{"token_id":"721503","side":"BUY","order_type":"limit","price":"0.37","quantity":"20"}]}}"#,
)
.correlated();

/// The order that a cancel or a lookup is about.
const ORDER_ID: Field = optional("order_id", Schema::OneOf(&[INTEGER, Schema::Text(64)]), "Either this");
const CLIENT_ORDER_ID: Field = optional("client_order_id", Schema::Text(256), "or this.");
const CANCEL: Message = Message::json(
    "order.cancel",
    "Cancel what of an order still rests.",
    &operation!(
        "CancelOperation",
        "order.cancel",
        Schema::Object(&Shape::new("CancelParams", "One of the two.", &[ORDER_ID, CLIENT_ORDER_ID])),
        "Cancel one order."
    ),
    r#"{"id":"c-3","op":"order.cancel","params":{"order_id":268435459}}"#,
)
.correlated();
const STATUS: Message = Message::json(
    "order.status",
    "One order with its fills.",
    &operation!(
        "StatusOperation",
        "order.status",
        Schema::Object(&Shape::new(
            "StatusParams",
            "One of the two ids.",
            &[
                ORDER_ID,
                CLIENT_ORDER_ID,
                optional("source", Schema::Word(&["pending", "filled"]), "Only when it is not FILLED, or is."),
                optional(
                    "wallet_id",
                    Schema::OneOf(&[INTEGER, Schema::Word(&["api", "all"])]),
                    "Only in this wallet; by default in every wallet of the user.",
                ),
            ],
        )),
        "Look one order up."
    ),
    r#"{"id":"s-4","op":"order.status","params":{"client_order_id":"g-0017"}}"#,
)
.correlated();
const CANCEL_ALL: Message = Message::json(
    "cancel_all",
    "Cancel every open order.",
    &operation!(
        "CancelAllOperation",
        "cancel_all",
        Schema::Object(&Shape::new(
            "CancelAllParams",
            "",
            &[
                optional("confirm", BOOLEAN, "`true`, or it is refused."),
                optional(
                    "wallet_id",
                    Schema::OneOf(&[INTEGER, Schema::Word(&["api", "all"])]),
                    "Default: the API wallet.",
                ),
            ],
        )),
        "Cancel every open order."
    ),
    r#"{"id":5,"op":"cancel_all","params":{"confirm":true,"wallet_id":"all"}}"#,
)
.correlated();

const RATE: Schema = Schema::Object(&Shape::new(
    "Rate",
    "The windows of the key after this operation, as the rate headers of REST say them.",
    &[
        field("limit", INTEGER, "Requests in a minute."),
        field("remaining", INTEGER, "Of them in this minute."),
        field("reset", INTEGER, "Unix second at which the minute ends."),
        field("limit_per_second", INTEGER, ""),
        field("remaining_per_second", INTEGER, ""),
        field("tier", Schema::Word(&["free", "pro", "pro_plus", "enterprise"]), ""),
    ],
));
const OK: Schema = Schema::Integer { min: 200, max: 200 };

macro_rules! answer {
    ($shape:literal, $result:expr) => {
        Schema::Object(&Shape::new(
            $shape,
            "The operation was done.",
            &[
                field("id", ID, "Of the operation."),
                field("status", OK, ""),
                field("result", $result, "The answer of the REST twin."),
                field("rate", RATE, ""),
            ],
        ))
    };
}

/// An answer with the example of its REST twin.
fn answered<R: Record>(id: &str) -> Value {
    let id: Value = id.parse::<u64>().map_or_else(|_| id.into(), Value::from);
    let rate = json!({
        "limit": 120, "remaining": 118, "reset": 1_793_871_240, "limit_per_second": 10, "remaining_per_second": 9,
        "tier": "free",
    });
    json!({"id": id, "status": 200, "result": value(&R::example()), "rate": rate})
}

/// A message of an answer: its name, its shape, its record, the id of its example, and when it is sent.
macro_rules! answers {
    ($($constant:ident = $name:literal, $shape:literal, $record:ty, $id:literal, $about:literal;)*) => {$(
        const $constant: Message = Message {
            name: $name,
            about: $about,
            schema: answer!($shape, Schema::of::<$record>()),
            example: Example::Of(|| answered::<$record>($id)),
            kind: Kind::Correlated,
        };
    )*};
}

answers! {
    PLACED = "order", "OrderAnswer", OrderResponse<'_>, "1", "The answer to order.place and order.cancel.";
    BATCHED = "batch", "BatchAnswer", BatchResults<'_>, "2", "The answer to order.batch.";
    SWEPT = "cancelled", "CancelAllAnswer", Cancelled, "5", "The answer to cancel_all.";
    DETAILED = "detail", "StatusAnswer", OrderDetail<'_>, "s-4", "The answer to order.status.";
}

const ENVELOPE: Schema = Schema::Object(&Shape::new(
    "OperationError",
    "The error envelope of REST.",
    &[
        field("error", TEXT, "A stable machine code: branch on this."),
        field("message", TEXT, "For people; its wording may change."),
        optional("retry_after_ms", INTEGER, "RATE_LIMITED: wait this long."),
        optional("retry_after", INTEGER, "VENUE_UNAVAILABLE: wait this many seconds."),
        optional("source", Schema::Word(&["pending", "filled"]), "DEADLINE_OVERSHOT_BUT_PERSISTED."),
        optional("details", Schema::Any, "When the handshake asked with the verbose header."),
        optional("request_id", TEXT, "The same."),
    ],
));
const REFUSED: Message = Message::json(
    "refused",
    "The operation was refused, or what came is no operation: then `id` is null.",
    &Schema::Object(&Shape::new(
        "Refused",
        "What the REST twin answers with this status; the headers of that answer are fields here.",
        &[
            field("id", Schema::Nullable(&ID), "Of the operation; null when it has none."),
            field("status", Schema::Integer { min: 400, max: 503 }, "The HTTP status of the twin."),
            field("error", ENVELOPE, ""),
            field("code", TEXT, "As in the code header: it differs from `error.error` for two codes."),
            optional("retry_after", INTEGER, "Seconds to wait, where REST sends Retry-After."),
            optional("order_id", INTEGER, "The order that there is in spite of the refusal."),
            optional("rate", RATE, "Where REST sends the rate headers."),
        ],
    )),
    r#"{"id":1,"status":429,"error":{"error":"RATE_LIMIT_EXCEEDED","message":"Too many requests."},"code":"RATE_LIMIT_EXCEEDED","retry_after":1,"rate":{"limit":120,"remaining":117,"reset":1793871240,"limit_per_second":10,"remaining_per_second":0,"tier":"free"}}"#,
)
.correlated();
