//! `/v1/ws/user` (gateway/docs/streams.md §4.1, §4.3): the user's trades and orders in the venue's form.

use super::{
    DIALECT, ERROR_EVENT, ERRORS, FROM_SEQ, GAP, KEY, OrderWord, PING, PING_JSON, PONG, PONG_JSON, SideName,
    SubscriptionChange, TOKEN,
};
use crate::api::clob::rows::{Execution, MakerOrder, OrderTerms, PlainTradeStatus};
use crate::api::clob::words::VenueOrderType;
use crate::api::orders::words::LiquidityName;
use crate::http::record::record;
use crate::http::scalar::{
    ConditionId, Decimal, Digits, OrderHexId, Quantity, Seconds, TokenId, TransactionHash, words,
};
use crate::ws::asyncapi::{Channel, Credential, Message};
use schemars::JsonSchema;

pub const CHANNEL: Channel = Channel {
    path: "/v1/ws/user",
    at_root: true,
    name: "user",
    about: "The user's fills in the venue's form, of chosen markets or of all. The key is in the first frame, unless \
        the handshake had one. A strict socket has the venue's own types and `order` frames: one whose key is a UUID, \
        whose handshake has a `POLY_*` header or the `User-Agent` of a venue client, or that has `dialect=strict`.",
    params: &[TOKEN, KEY, FROM_SEQ, ERRORS, DIALECT],
    credentials: &[Credential::FirstFrame, Credential::Key, Credential::Ticket],
    takes: &[
        Message::of::<SubscribeUser>("subscribe", "The first frame, within 10 s."),
        Message::of::<ChangeUser>("change", "A later frame: more markets, or fewer."),
        PING,
        PING_JSON,
    ],
    sends: &[
        GAP,
        Message::of::<UserTradeEvent>("trade", "One fill of the user."),
        Message::of::<UserOrderEvent>(
            "order",
            "To strict sockets, to those that set `order_events`, or to all, by `streams.order_events`: an order rests \
             (`PLACEMENT`), was filled (`UPDATE`), or ended unfilled or in part (`CANCELLATION`).",
        ),
        PONG,
        PONG_JSON,
        ERROR_EVENT,
    ],
};

const MARKET: &str = "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4";
const ORDER: &str = "0x0000000000000000000000000000000000000000000000000000000010000003";
const TOKEN_ID: &str = "721503";
const ADDRESS: &str = "0x4c00000000000000000000000000000000000001";

words! {
    pub TradeEventWord = "trade";
    pub TradeWord = "TRADE";
    pub OrderEventType = "PLACEMENT", "UPDATE", "CANCELLATION";
    pub OrderStatus = "LIVE", "MATCHED", "CANCELED";
}

record! {
    /// A key of the server.
    struct UserAuth<'a> {
        #[serde(rename = "apiKey")]
        api_key: &'a str = "4f0c9d2a-0011-8233-9455-66778899aabb", "The key, or its UUID.";
        secret: Option<&'a str> = Some(""), "Ignored.", skip_serializing_if;
        passphrase: Option<&'a str> = Some(""), "Ignored.", skip_serializing_if;
        order_events: Option<bool> = None,
            "Send `order` frames to a plain socket too, unless `streams.order_events` is `off`.", skip_serializing_if;
    }

    /// Without ids it means all markets.
    struct SubscribeUser<'a> {
        r#type: Option<&'a str> = Some("user"), "`user` in any case, or `subscribe`.", skip_serializing_if;
        auth: Option<UserAuth<'a>> = Some(UserAuth::example()), "Unless the handshake had a credential.",
            skip_serializing_if;
        markets: Option<Vec<ConditionId<'a>>> = Some(Vec::new()), skip_serializing_if;
        assets_ids: Option<Vec<&'a str>> = None, "The markets of these tokens.", skip_serializing_if;
        asset_ids: Option<Vec<&'a str>> = None, "The same.", skip_serializing_if;
    }

    /// As the first frame, with the operation.
    struct ChangeUser<'a> {
        operation: Option<SubscriptionChange> = Some("subscribe".into()), "Default `subscribe`.", skip_serializing_if;
        action: Option<SubscriptionChange> = None, "The same.", skip_serializing_if;
        markets: Option<Vec<ConditionId<'a>>> = Some(vec![MARKET.into()]), skip_serializing_if;
        assets_ids: Option<Vec<&'a str>> = None, "The markets of these tokens.", skip_serializing_if;
        asset_ids: Option<Vec<&'a str>> = None, "The same.", skip_serializing_if;
    }

    /// One fill of the user.
    pub struct UserTradeEvent<'a> {
        pub event_type: TradeEventWord = "trade".into();
        pub r#type: TradeWord = "TRADE".into();
        pub status: PlainTradeStatus = "MATCHED".into();
        #[serde(flatten)]
        #[schemars(with = "ExecutionSchema")]
        pub execution: Execution<'a> = Execution {
            id: Digits(268_435_460),
            taker_order_id: ORDER.into(),
            asset_id: TOKEN_ID.into(),
            size: Quantity::of("6"),
            ..Execution::example()
        };
        pub timestamp: Seconds = Seconds(1_793_871_204);
        pub last_update: Seconds = Seconds(1_793_871_204);
        pub match_time: Seconds = Seconds(1_793_871_204);
        #[schemars(with = "Vec<MakerOrderSchema>")]
        pub maker_orders: Vec<MakerOrder<'a>> = Vec::new(),
            "The own order of a MAKER trade in the strict dialect, or where `order` frames are sent; else empty.";
        pub owner: &'a str = "",
            "Empty; in the strict dialect the UUID of the key if the client sent that, else of the account.";
        pub trade_owner: &'a str = "", "The same.";
        #[schemars(with = "Decimal<'_>")]
        pub fee_rate_bps: Digits = Digits(0);
        pub trader_side: LiquidityName = "MAKER".into();
        #[schemars(range(max = 0))]
        pub bucket_index: u8 = 0;
        pub maker_address: &'a str = ADDRESS;
        pub transaction_hash: Option<TransactionHash<'a>> = None, "Null in the plain dialect.";
        pub user_seq: Option<u64> = None, "Number of the order fact among those of the user, from 1.",
            skip_serializing_if;
    }

    /// A change of an order.
    pub struct UserOrderEvent<'a> {
        pub event_type: OrderWord = "order".into();
        pub r#type: OrderEventType = "PLACEMENT".into();
        #[serde(flatten)]
        #[schemars(with = "OrderTermsSchema")]
        pub terms: OrderTerms<'a> = OrderTerms {
            id: ORDER.into(),
            asset_id: TOKEN_ID.into(),
            original_size: Quantity::of("6"),
            size_matched: Quantity::of("0"),
            ..OrderTerms::example()
        };
        pub owner: &'a str = "", "As of a trade.";
        pub order_owner: &'a str = "", "The same.";
        #[schemars(with = "String")]
        pub expiration: Digits = Digits(0), "Unix seconds; `0` without one.";
        #[schemars(with = "String")]
        pub created_at: Digits = Digits(1_793_871_204), "Unix seconds.";
        #[schemars(with = "String")]
        pub timestamp: Digits = Digits(1_793_871_204_024), "Unix milliseconds: when it happened.";
        #[schemars(with = "Vec<String>")]
        pub associate_trades: Vec<Digits> = Vec::new(), "The trade of an `UPDATE`.";
        pub status: OrderStatus = "LIVE".into();
        pub maker_address: &'a str = ADDRESS;
        pub user_seq: Option<u64> = None, "Number of the order fact among those of the user, from 1.",
            skip_serializing_if;
    }
}

// How this channel describes `Execution`: it promises less than the rows do.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct ExecutionSchema {
    id: String,
    /// The user's order.
    taker_order_id: OrderHexId<'static>,
    market: ConditionId<'static>,
    asset_id: TokenId<'static>,
    /// The user's; of a MAKER trade in the strict dialect the taker's, as at the venue.
    side: SideName,
    size: Decimal<'static>,
    price: Decimal<'static>,
    outcome: String,
}

// The same of `OrderTerms`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct OrderTermsSchema {
    id: OrderHexId<'static>,
    market: ConditionId<'static>,
    asset_id: TokenId<'static>,
    side: SideName,
    original_size: Decimal<'static>,
    size_matched: Decimal<'static>,
    price: Decimal<'static>,
    outcome: String,
    order_type: VenueOrderType,
}

/// The own order of a MAKER trade.
#[derive(JsonSchema)]
#[schemars(rename = "MakerOrder")]
#[expect(dead_code, reason = "only the schema is used")]
struct MakerOrderSchema {
    order_id: OrderHexId<'static>,
    /// As of the trade.
    owner: String,
    /// As of the trade.
    maker_address: String,
    matched_amount: Decimal<'static>,
    price: Decimal<'static>,
    fee_rate_bps: Decimal<'static>,
    asset_id: TokenId<'static>,
    outcome: String,
    /// Of the own order.
    side: SideName,
}
