//! `/v1/ws/trade`: order entry (gateway/docs/streams.md §6).

use super::{KEY, PING, PING_JSON, PONG, PONG_JSON, TOKEN};
use crate::api::keys::view::TierName;
use crate::api::orders::records::{
    BatchResults, Cancelled, OrderDetail, OrderResponse, PlaceBatch, PlaceOrder, PlaceOrders,
};
use crate::api::wallets::SentWallet;
use crate::http::record::{List, Record as _, forms, record};
use crate::http::scalar::words;
use crate::ws::asyncapi::{Channel, Credential, Message};
use crate::ws::trade::ID_CHARS_MAX;
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
        Message::of::<PlaceOperation>("order.place", "Place one native order.").correlated(),
        Message::of::<BatchOperation>("order.batch", "Place several orders; each entry succeeds or fails by itself.")
            .correlated(),
        Message::of::<CancelOperation>("order.cancel", "Cancel what remains of an order.").correlated(),
        Message::of::<CancelAllOperation>("cancel_all", "Cancel every open order.").correlated(),
        Message::of::<StatusOperation>("order.status", "One order with its fills.").correlated(),
        PING,
        PING_JSON,
    ],
    sends: &[
        Message::of::<OrderAnswer>("order", "The answer to order.place and order.cancel.").correlated(),
        Message::of::<BatchAnswer>("batch", "The answer to order.batch.").correlated(),
        Message::of::<CancelAllAnswer>("cancelled", "The answer to cancel_all.").correlated(),
        Message::of::<StatusAnswer>("detail", "The answer to order.status.").correlated(),
        Message::of::<Refused>(
            "refused",
            "The operation was refused, or the frame is not an operation: then `id` is null.",
        )
        .correlated(),
        PONG,
        PONG_JSON,
    ],
};

words! {
    PlaceOp = "order.place";
    BatchOp = "order.batch";
    CancelOp = "order.cancel";
    StatusOp = "order.status";
    CancelAllOp = "cancel_all";
    LookupSource = "pending", "filled";
}

forms! {
    // The client's id of an operation.
    pub OperationId<'a> = Text(#[schemars(length(max = ID_CHARS_MAX))] &'a str),
        Number(#[schemars(range(min = i64::MIN, max = i64::MAX))] i64);
        OperationId::Number(1);
    // An order in a request.
    pub SentOrderId<'a> = Number(u64), Text(#[schemars(length(max = 64))] &'a str); SentOrderId::Number(268_435_459);
}

record! {
    /// Place one native order.
    struct PlaceOperation<'a> {
        id: OperationId<'a> = OperationId::Number(1),
            "A text of at most 64 characters, or an integer of 64 bits; the answer repeats it.";
        op: PlaceOp = "order.place".into();
        params: PlaceOrder<'a> = placement();
    }

    /// Place several orders.
    struct BatchOperation<'a> {
        id: OperationId<'a> = OperationId::Number(2),
            "A text of at most 64 characters, or an integer of 64 bits; the answer repeats it.";
        op: BatchOp = "order.batch".into();
        params: PlaceBatch<'a> = batch();
    }

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
        wallet_id: Option<SentWallet> = None,
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
        wallet_id: Option<SentWallet> = Some(SentWallet::Word("all".into())),
            "Default: the API wallet.", skip_serializing_if;
    }

    /// The windows of the key after this operation, as in the rate headers of REST.
    pub struct Rate {
        pub limit: u32 = 120, "Requests in a minute.";
        pub remaining: u32 = 118, "Those left in this minute.";
        pub reset: u64 = 1_793_871_240, "Unix second at which the minute ends.";
        pub limit_per_second: u32 = 10;
        pub remaining_per_second: u32 = 9;
        pub tier: TierName = "free".into();
    }

    /// The operation succeeded.
    pub struct OrderAnswer<'a> {
        pub id: OperationId<'a> = OperationId::Number(1), "Of the operation.";
        #[schemars(range(min = 200, max = 200))]
        pub status: u16 = 200;
        pub result: OrderResponse<'a> = OrderResponse::example(), "The answer of the REST twin.";
        pub rate: Rate = Rate::example();
    }

    /// The operation succeeded.
    pub struct BatchAnswer<'a> {
        pub id: OperationId<'a> = OperationId::Number(2), "Of the operation.";
        #[schemars(range(min = 200, max = 200))]
        pub status: u16 = 200;
        pub result: BatchResults<'a> = BatchResults::example(), "The answer of the REST twin.";
        pub rate: Rate = Rate::example();
    }

    /// The operation succeeded.
    pub struct CancelAllAnswer<'a> {
        pub id: OperationId<'a> = OperationId::Number(5), "Of the operation.";
        #[schemars(range(min = 200, max = 200))]
        pub status: u16 = 200;
        pub result: Cancelled = Cancelled::example(), "The answer of the REST twin.";
        pub rate: Rate = Rate::example();
    }

    /// The operation succeeded.
    pub struct StatusAnswer<'a> {
        pub id: OperationId<'a> = OperationId::Text("s-4"), "Of the operation.";
        #[schemars(range(min = 200, max = 200))]
        pub status: u16 = 200;
        pub result: OrderDetail<'a> = OrderDetail::example(), "The answer of the REST twin.";
        pub rate: Rate = Rate::example();
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

/// The example of a placement.
fn placement() -> PlaceOrder<'static> {
    let mut order = PlaceOrder::example();
    order.token_id = Some("721503");
    order
}

/// The example of a batch.
fn batch() -> PlaceBatch<'static> {
    let mut order = placement();
    order.client_order_id = None;
    PlaceBatch::Object(PlaceOrders { orders: List(vec![order]) })
}
