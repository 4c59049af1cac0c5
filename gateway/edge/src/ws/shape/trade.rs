//! `/v1/ws/trade`: order entry (gateway/docs/streams.md §6).

use super::{KEY, PING, PING_JSON, PONG, PONG_JSON, TOKEN};
use crate::api::keys::view::TierName;
use crate::api::orders::shape as orders;
use crate::http::record::record;
use crate::http::scalar::words;
use crate::http::schema::{Schema, Shape, field};
use crate::ws::asyncapi::{Channel, Credential, Message};
use crate::ws::trade::ID_CHARS_MAX;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub const CHANNEL: Channel = Channel {
    path: "/v1/ws/trade",
    at_root: false,
    name: "trade",
    about: "Order entry: an operation is `{\"id\",\"op\",\"params\"}` and gets one answer with its id. Each runs its \
        REST twin, with the same checks, windows, caps and idempotency, and counts as that request; a batch counts as \
        one. Operations start in the order in which they were sent, many may be in flight, and their answers may \
        overtake each other. A refusal is an answer: the socket stays open. Other frames are answered too, and count \
        for 4008: one with an id as any frame, one without as a bad one. Needs a key, or a token that was minted with a \
        key: one that was minted with a session token closes with 4003. `GET /v1/openapi.json` describes the twins: order.place is \
        `POST /v1/orders`, order.batch `POST /v1/orders/batch`, order.cancel `DELETE /v1/orders/{order_id}` or \
        `/v1/orders/by-client-id/{client_order_id}`, order.status the GET of both, cancel_all `POST /v1/cancel-all`.",
    params: &[TOKEN, KEY],
    credentials: &[Credential::Key, Credential::Ticket],
    takes: &[
        PLACE,
        BATCH,
        Message::of::<CancelOperation>("order.cancel", "Cancel what remains of an order.").correlated(),
        Message::of::<CancelAllOperation>("cancel_all", "Cancel every open order.").correlated(),
        Message::of::<StatusOperation>("order.status", "One order with its fills.").correlated(),
        PING,
        PING_JSON,
    ],
    sends: &[
        PLACED,
        BATCHED,
        SWEPT,
        DETAILED,
        Message::of::<Refused>(
            "refused",
            "The operation was refused, or the frame is not an operation: then `id` is null.",
        )
        .correlated(),
        PONG,
        PONG_JSON,
    ],
};

macro_rules! operation {
    ($shape:literal, $op:literal, $params:expr, $about:literal) => {
        Schema::Object(&Shape::new(
            $shape,
            $about,
            &[
                field("id", ID, "A text of at most 64 characters, or an integer of 64 bits; the answer repeats it."),
                field("op", Schema::Word(&[$op]), ""),
                field("params", $params, ""),
            ],
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

const ID: Schema = Schema::of::<OperationId>();
const RATE: Schema = Schema::of::<Rate>();

words! {
    CancelOp = "order.cancel";
    StatusOp = "order.status";
    CancelAllOp = "cancel_all";
    LookupSource = "pending", "filled";
    WalletWord = "api", "all";
}

// The client's id of an operation.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum OperationId<'a> {
    Text(#[schemars(length(max = ID_CHARS_MAX))] &'a str),
    Number(#[schemars(range(min = i64::MIN, max = i64::MAX))] i64),
}

// An order in a request.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum SentOrderId<'a> {
    Number(u64),
    #[expect(dead_code, reason = "clients may send it")]
    Text(#[schemars(length(max = 64))] &'a str),
}

// Wallets in a request.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum WalletChoice {
    #[expect(dead_code, reason = "clients may send it")]
    Id(u64),
    Word(WalletWord),
}

record! {
    /// Cancel one order.
    struct CancelOperation<'a> {
        id: OperationId<'a> = OperationId::Text("c-3"),
            "A text of at most 64 characters, or an integer of 64 bits; the answer repeats it.";
        op: CancelOp = "order.cancel".into();
        params: CancelParams<'a> = CancelParams::example();
    }

    /// One of the two.
    struct CancelParams<'a> {
        order_id: Option<SentOrderId<'a>> = Some(SentOrderId::Number(268_435_459)), "Either this", skip_serializing_if;
        #[schemars(length(max = 256))]
        client_order_id: Option<&'a str> = None, "or this.", skip_serializing_if;
    }

    /// Look one order up.
    struct StatusOperation<'a> {
        id: OperationId<'a> = OperationId::Text("s-4"),
            "A text of at most 64 characters, or an integer of 64 bits; the answer repeats it.";
        op: StatusOp = "order.status".into();
        params: StatusParams<'a> = StatusParams::example();
    }

    /// One of the two ids.
    struct StatusParams<'a> {
        order_id: Option<SentOrderId<'a>> = None, "Either this", skip_serializing_if;
        #[schemars(length(max = 256))]
        client_order_id: Option<&'a str> = Some("g-0017"), "or this.", skip_serializing_if;
        source: Option<LookupSource> = None, "Only if it is not FILLED, or is.", skip_serializing_if;
        wallet_id: Option<WalletChoice> = None,
            "Only in this wallet; by default in every wallet of the user.", skip_serializing_if;
    }

    /// Cancel every open order.
    struct CancelAllOperation<'a> {
        id: OperationId<'a> = OperationId::Number(5),
            "A text of at most 64 characters, or an integer of 64 bits; the answer repeats it.";
        op: CancelAllOp = "cancel_all".into();
        params: CancelAllParams = CancelAllParams::example();
    }

    /// The confirmation, and the wallets.
    struct CancelAllParams {
        confirm: Option<bool> = Some(true), "`true`, or it is refused.", skip_serializing_if;
        wallet_id: Option<WalletChoice> = Some(WalletChoice::Word("all".into())),
            "Default: the API wallet.", skip_serializing_if;
    }

    /// The windows of the key after this operation, as in the rate headers of REST.
    struct Rate {
        limit: u32 = 120, "Requests in a minute.";
        remaining: u32 = 118, "Those left in this minute.";
        reset: u64 = 1_793_871_240, "Unix second at which the minute ends.";
        limit_per_second: u32 = 10;
        remaining_per_second: u32 = 9;
        tier: TierName = "free".into();
    }

    /// The error envelope of REST.
    struct OperationError<'a> {
        error: &'a str = "RATE_LIMIT_EXCEEDED", "A stable machine code: branch on this.";
        message: &'a str = "Too many requests.", "For people; its wording may change.";
        retry_after_ms: Option<u64> = None, "RATE_LIMITED: wait this long.", skip_serializing_if;
        retry_after: Option<u64> = None, "VENUE_UNAVAILABLE: wait this many seconds.", skip_serializing_if;
        source: Option<LookupSource> = None, "DEADLINE_OVERSHOT_BUT_PERSISTED.", skip_serializing_if;
        details: Option<Value> = None, "If the handshake has the verbose header.", skip_serializing_if;
        request_id: Option<&'a str> = None, "The same.", skip_serializing_if;
    }

    /// The refusal of the REST twin; the headers of that answer are fields here.
    pub struct Refused<'a> {
        id: Option<OperationId<'a>> = Some(OperationId::Number(1)), "Of the operation; null if it has none.";
        #[schemars(range(min = 400, max = 503))]
        status: u16 = 429, "The HTTP status of the twin.";
        error: OperationError<'a> = OperationError::example();
        code: &'a str = "RATE_LIMIT_EXCEEDED", "As in the code header: it differs from `error.error` for two codes.";
        retry_after: Option<u64> = Some(1), "Seconds to wait, where REST sends Retry-After.", skip_serializing_if;
        order_id: Option<u64> = None, "The order that exists in spite of the refusal.", skip_serializing_if;
        rate: Option<Rate> = Some(Rate { remaining: 117, remaining_per_second: 0, ..Rate::example() }),
            "Where REST sends the rate headers.", skip_serializing_if;
    }
}

const OK: Schema = Schema::Integer { min: 200, max: 200 };

macro_rules! answer {
    ($shape:literal, $result:expr) => {
        Schema::Object(&Shape::new(
            $shape,
            "The operation succeeded.",
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

/// An answer with the example of its REST twin.
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

/// The parts in sequence; `LENGTH` is that of all.
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
