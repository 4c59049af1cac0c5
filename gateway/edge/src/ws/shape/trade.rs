//! `/v1/ws/trade`: order entry.

use super::{KEY, PING, PING_JSON, PONG, PONG_JSON, TOKEN};
use crate::api::orders::shape as orders;
use crate::http::schema::{BOOLEAN, Field, INTEGER, Schema, Shape, TEXT, field, optional};
use crate::ws::asyncapi::{Channel, Credential, Message};

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
    &operation!("PlaceOperation", "order.place", orders::PLACE, "Place one native order."),
    r#"{"id":1,"op":"order.place","params":{"token_id":"721503","side":"BUY","order_type":"limit","price":"0.37","quantity":"20","client_order_id":"g-0017"}}"#,
)
.correlated();
const BATCH: Message = Message::json(
    "order.batch",
    "Place several orders; each entry succeeds or fails by itself.",
    &operation!("BatchOperation", "order.batch", orders::BATCH, "Place several orders."),
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

const EXAMPLE_RATE: &str = r#""rate":{"limit":120,"remaining":118,"reset":1793871240,"limit_per_second":10,"remaining_per_second":9,"tier":"free"}}"#;

/// An answer around the example of its REST twin.
macro_rules! example {
    ($id:literal, $result:expr) => {{
        const PARTS: [&str; 4] = [concat!(r#"{"id":"#, $id, r#","status":200,"result":"#), $result, ",", EXAMPLE_RATE];
        const LENGTH: usize = PARTS[0].len() + PARTS[1].len() + PARTS[2].len() + PARTS[3].len();
        const BYTES: [u8; LENGTH] = joined(PARTS);
        match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("texts joined are a text"),
        }
    }};
}

/// The parts one after another; `LENGTH` is that of all.
const fn joined<const LENGTH: usize>(parts: [&str; 4]) -> [u8; LENGTH] {
    let mut whole = [0; LENGTH];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let bytes = parts[part].as_bytes();
        let mut taken = 0;
        while taken < bytes.len() {
            whole[at] = bytes[taken];
            (at, taken) = (at + 1, taken + 1);
        }
        part += 1;
    }
    whole
}

const PLACED: Message = Message::json(
    "order",
    "The answer to order.place and order.cancel.",
    &answer!("OrderAnswer", orders::ORDER),
    example!("1", orders::ORDER_EXAMPLE),
)
.correlated();
const BATCHED: Message = Message::json(
    "batch",
    "The answer to order.batch.",
    &answer!("BatchAnswer", orders::RESULTS),
    example!("2", orders::RESULTS_EXAMPLE),
)
.correlated();
const SWEPT: Message = Message::json(
    "cancelled",
    "The answer to cancel_all.",
    &answer!("CancelAllAnswer", orders::SWEPT),
    example!("5", orders::SWEPT_EXAMPLE),
)
.correlated();
const DETAILED: Message = Message::json(
    "detail",
    "The answer to order.status.",
    &answer!("StatusAnswer", orders::DETAIL),
    example!("\"s-4\"", orders::DETAIL_EXAMPLE),
)
.correlated();

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
