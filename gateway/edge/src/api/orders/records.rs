//! Records of native trading. The answer to a placement, a cancel and a lookup is written by hand in [`super::view`], since
//! it is the hottest of all; a test compares it with [`OrderResponse`] and [`OrderDetail`].

use super::words::{
    FeeSourceName, LiquidityName, OrderTypeInAnyCase, OrderTypeName, RequestedTimeInForce, SideInAnyCase, SideName,
    StatusName, TimeInForceName,
};
use crate::api::account::view::StatusAfterTrade;
use crate::api::clob::place::PlacedOrFailed;
use crate::api::clob::requests::PlaceSignedOrder;
use crate::api::wallets::SentWallet;
use crate::http::record::{ByName, List, forms, record};
use crate::http::scalar::{ConditionId, Digits, Money, Number, Price, Quantity, Timestamp, TokenId, Uuid, Zero, words};
use std::borrow::Cow;
use wire::cursor;

const MARKET: &str = "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4";
const TOKEN: &str = "71321045679252212594626385532706912750332728571942532289631379312455583992563";
const SHORT_TOKEN: &str = "71321045679252212594";

words! {
    pub FillSource = "synchronous", "matching_engine";
    pub PriceSourceName = "book_walk", "matching_engine", "best_ask", "best_bid", "clob_midpoint_cached", "last_trade",
        "display", "emergency_exit_entry_price", "emergency_exit_entry_price_postexpiry";
    pub CancelledReason = "fok_not_filled", "fak_no_fill", "execution_failed", "user_cancelled", "cancel_all",
        "cancel_market", "gtd_expired", "heartbeat_lapsed", "auto_cancelled", "balance_reset", "wallet_archived",
        "market_resolved", "market_closed";
    pub HoldReason = "venue_outage";
    pub RestingFillModel = "touch", "cross", "through", "queue", "queue_prob";
    pub AmountUnit = "usd";
    pub FillsLiquidity = "TAKER", "MAKER", "MIXED";
    pub RefusedStatus = "REJECTED", "ERROR";
    pub OkWord = "ok";
}

forms! {
    // A decimal: text or number.
    pub SentDecimal<'a> = Text(#[schemars(length(max = 32))] &'a str), Number(Number); SentDecimal::Text("0.37");
    // Unix seconds.
    pub SentExpiration<'a> = Number(u64), Text(&'a str), Null(()); SentExpiration::Number(1_791_000_000);
}

record! {
    /// A native order: the market and outcome, or the token; a quantity, or for a market BUY an amount of USD. The part of a
    /// GTC or GTD order that is not filled immediately rests. It then fills at its own limit, as maker, without a fee: in
    /// the next matching cycle when the book touches or crosses the limit, up to the size shown there; and immediately when
    /// the venue trades through the limit by a tick or more, up to the size of that trade. The set of realism of its key may
    /// say otherwise: `fill_model` of the order names the model.
    pub struct PlaceOrder<'a> {
        #[schemars(length(max = 256), extend("x-or-null" = true))]
        market_id: Option<&'a str> = None, "Condition id of the market.", skip_serializing_if;
        #[schemars(length(max = 200), extend("x-or-null" = true))]
        outcome: Option<&'a str> = None, "Label of the outcome, in any case.", skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        pub token_id: Option<&'a str> = Some(TOKEN), "Instead of `market_id` and `outcome`.", skip_serializing_if;
        side: SideInAnyCase = "BUY".into();
        order_type: Option<OrderTypeInAnyCase> = Some("limit".into()), "Default `market`.", skip_serializing_if;
        quantity: Option<SentDecimal<'a>> = Some(SentDecimal::Text("20")),
            "Shares, above 0, cut down to four decimals.", skip_serializing_if;
        amount: Option<SentDecimal<'a>> = None, "USD to spend, fees on top; market BUY only.", skip_serializing_if;
        price: Option<SentDecimal<'a>> = Some(SentDecimal::example()),
            "The limit price, a multiple of the market's tick. For a market order: the worst acceptable price.", skip_serializing_if;
        time_in_force: Option<RequestedTimeInForce> = None,
            "In any case. Default: GTC for limit orders, FOK for market orders. FAK and IOC are one.",
            skip_serializing_if;
        expiration: Option<SentExpiration<'a>> = None,
            "Unix seconds in the future, at most ten years ahead; needed for GTD, ignored otherwise.",
            skip_serializing_if;
        post_only: Option<bool> = None, "Refuse instead of taking liquidity. Default false.", skip_serializing_if;
        #[schemars(length(max = 256), extend("x-or-null" = true))]
        pub client_order_id: Option<&'a str> = Some("g-0017"), "The same id again answers the same order, for `limits.client_ids_hours` (default 72) from its placement; then it is free.",
            skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        wallet_id: Option<u64> = None, "Default: the API wallet.", skip_serializing_if;
    }

    /// Native orders, as many as the tier's batch size.
    pub struct PlaceOrders<'a> {
        pub orders: List<PlaceOrder<'a>, 1, 100> = List(vec![PlaceOrder { client_order_id: None, ..PlaceOrder::example() }]);
    }

    /// One order after a write.
    pub struct OrderResponse<'a> {
        pub order_id: u64 = 268_435_458;
        pub status: StatusName = "FILLED".into();
        pub order_type: OrderTypeName = "market".into();
        pub side: SideName = "BUY".into();
        pub outcome: &'a str = "Yes";
        pub price: Price = Price::of("0.42"), "Average of the fills so far; without one the limit.";
        pub quantity: Quantity = Quantity::of("50"), "Filled shares if there is a fill, else the requested ones.";
        pub notional: Money = Money::of("21.00");
        pub fee: Money = Money::of("0.609");
        pub filled_at: Option<Timestamp> = Some(Timestamp::of("2026-10-02T09:15:00.004211Z")), "The last fill.";
        pub cancelled_reason: Option<CancelledReason> = None;
        pub fill_source: Option<FillSource> = Some("synchronous".into()),
            "Whether the last fill came with the placement or from a matching cycle; null: no fill.";
        pub price_source: Option<PriceSourceName> = Some("book_walk".into()),
            "Where the price of the last fill came from; null: no fill.";
        pub slippage_bps: Option<u64> = Some(120),
            "Average fill price against the displayed one, in basis points; null: a limit order, or no fill.";
        pub quote_age_ms: Option<u64> = Some(310), "Age of the book at the last fill, in milliseconds; null: no fill.";
        pub spread_bps: Option<u64> = Some(241),
            "Best ask less best bid, in basis points of the midpoint; null: no walk, a replay, or an empty side.";
        pub impact_bps: Option<u64> = Some(0),
            "Average fill price against the best level walked, in basis points; null: no walk, or a replay.";
        pub book_walk_levels: Option<u64> = Some(1), "Levels that the walk touched; null: no walk, or a replay.";
        pub account_balance: Money = Money::of("78.391"),
            "Available cash of the wallet: after the order in the answer to a placement, in its replay and in a read of the order; after the cancel in the answer to that. A read of an order without a client order id has the present cash where the wallet was reset since, or where the user has had 4,096 newer changes of orders, or 4,096 positions.";
        pub position: Option<OrderPosition<'a>> = Some(OrderPosition::example()),
            "In its token after the order; null: none.";
        pub client_order_id: Option<&'a str> = Some("m-1");
        pub error: Option<&'a str> = None, "Batch entries only.";
        pub error_message: Option<&'a str> = None, "Batch entries only.";
        pub amount_interpreted_as: Option<AmountUnit> = None, "Null: no `amount` was sent.";
        pub is_replay: bool = false, "The stored answer of an earlier request with this id.";
        pub warnings: Vec<Cow<'a, str>> = Vec::new();
        pub requested_quantity: Quantity = Quantity::of("50");
        pub filled_quantity: Quantity = Quantity::of("50");
        pub remaining_quantity: Quantity = Quantity::of("0");
        pub token_id: TokenId<'a> = SHORT_TOKEN.into();
        pub market_id: ConditionId<'a> = MARKET.into();
        pub time_in_force: TimeInForceName = "FOK".into();
        pub requested_time_in_force: RequestedTimeInForce = "FOK".into();
        pub wallet_id: u64 = 268_435_457;
        pub created_at: Timestamp = Timestamp::of("2026-10-02T09:15:00.001100Z");
        pub hold_reason: Option<HoldReason> = None, "Why an open order is not matched now; null: nothing holds it.";
        pub fee_rate_bps: Option<u64> = Some(500), "The highest of its fills, in basis points; null: no fill.";
        pub liquidity: Option<FillsLiquidity> = Some("TAKER".into()), "Of all its fills; null: no fill.";
    }

    /// What the wallet holds of the order's token after it.
    pub struct OrderPosition<'a> {
        pub market_id: ConditionId<'a> = MARKET.into();
        pub outcome: &'a str = "Yes";
        pub quantity: Quantity = Quantity::of("50");
        pub avg_entry_price: Price = Price::of("0.42");
        pub status: StatusAfterTrade = "OPEN".into();
    }

    /// One order with its fills.
    pub struct OrderDetail<'a> {
        #[serde(flatten)]
        pub order: OrderResponse<'a> = OrderResponse::resting();
        pub limit_price: Price = Price::of("0.37");
        pub fill_price: Option<Price> = None, "Average of the fills.";
        pub cancelled_at: Option<Timestamp> = None;
        pub expiration: Option<u64> = Some(1_791_000_000), "Unix seconds.";
        pub post_only: bool = false;
        pub fills: Vec<OrderFill> = Vec::new(), "Oldest first.";
        pub fill_model: RestingFillModel = "cross".into(), "How it fills while it rests, fixed at its placement.";
        pub queue_ahead: Option<Quantity> = None,
            "Shares of the venue before it in its level; null: it does not rest, or its model has no queue.";
        pub queue_total: Option<Quantity> = None, "Shares that its level shows now.";
        pub queue_confidence: Option<String> = None, "How sure `queue_ahead` is: from 0.00 to 1.00.";
    }

    /// One execution of an order against the book.
    pub struct OrderFill {
        pub trade_id: u64 = 268_435_460;
        pub price: Price = Price::of("0.42"), "Average over the levels taken.";
        pub quantity: Quantity = Quantity::of("50");
        pub notional: Money = Money::of("21.00");
        pub fee: Money = Money::of("0.609");
        pub fee_rate_bps: u64 = 500;
        pub liquidity: LiquidityName = "TAKER".into();
        pub filled_at: Timestamp = Timestamp::of("2026-10-02T09:15:00.004211Z");
        pub price_source: PriceSourceName = "book_walk".into();
        pub venue_time: Option<Timestamp> = None,
            "Time of the recording that the fill was made against; null where the venue's time is server time.";
        pub fee_source: FeeSourceName = "category_table".into(),
            "What decided the fee: the schedule that the market states, the rate of its category, or nothing.";
    }

    /// One order of a list.
    pub struct OrderRow<'a> {
        pub order_id: u64 = 268_435_459;
        pub market_id: ConditionId<'a> = MARKET.into();
        pub side: SideName = "BUY".into();
        pub outcome: &'a str = "Yes";
        pub order_type: OrderTypeName = "limit".into();
        pub limit_price: Price = Price::of("0.37"), "Of a market order the worst price.";
        pub quantity: Quantity = Quantity::of("20"), "As requested.";
        pub time_in_force: TimeInForceName = "GTD".into();
        pub status: StatusName = "PENDING".into();
        pub client_order_id: Option<&'a str> = Some("g-0017");
        pub created_at: Timestamp = Timestamp::of("2026-10-02T09:20:00Z");
        pub filled_at: Option<Timestamp> = None;
        pub fill_price: Option<Price> = None;
        pub cancelled_at: Option<Timestamp> = None;
        pub cancelled_reason: Option<CancelledReason> = None;
        pub hold_reason: Option<HoldReason> = None;
        pub filled_quantity: Quantity = Quantity::of("0");
        pub token_id: TokenId<'a> = SHORT_TOKEN.into();
        pub wallet_id: u64 = 268_435_457;
        pub expiration: Option<u64> = Some(1_791_000_000), "Unix seconds.";
        pub post_only: bool = false;
        pub fill_model: RestingFillModel = "cross".into(), "How it fills while it rests, fixed at its placement.";
        pub queue_ahead: Option<Quantity> = None,
            "Shares of the venue before it in its level; null: it does not rest, or its model has no queue.";
        pub queue_total: Option<Quantity> = None, "Shares that its level shows now.";
        pub queue_confidence: Option<String> = None, "How sure `queue_ahead` is: from 0.00 to 1.00.";
    }

    /// Orders, newest first.
    pub struct OrderPage<'a> {
        pub orders: Vec<OrderRow<'a>> = Vec::new();
        pub next_cursor: String = cursor::END.to_owned(), "`LTE=` after the last page.";
        pub has_more: bool = false;
        pub total_hint: Option<usize> = Some(0), "Exact up to 10 000.";
    }

    /// An entry of a batch that left no order.
    pub struct RefusedEntry<'a> {
        #[schemars(range(max = 0))]
        pub order_id: u8 = 0;
        pub status: RefusedStatus = "REJECTED".into(), "ERROR: the server is at fault.";
        pub order_type: Option<OrderTypeName> = Some("limit".into());
        pub side: Option<SideName> = Some("SELL".into());
        pub outcome: Option<&'a str> = Some("Yes");
        pub price: Zero = "0".into();
        pub quantity: &'a str = "900", "As sent.";
        pub notional: Zero = "0".into();
        pub fee: Zero = "0".into();
        pub filled_at: () = ();
        pub cancelled_reason: () = ();
        pub fill_source: () = ();
        pub price_source: () = ();
        pub slippage_bps: () = ();
        pub quote_age_ms: () = ();
        pub spread_bps: () = ();
        pub impact_bps: () = ();
        pub book_walk_levels: () = ();
        pub account_balance: () = ();
        pub position: () = ();
        pub client_order_id: Option<&'a str> = None;
        pub error: &'a str = "INSUFFICIENT_POSITION", "The code.";
        pub error_message: &'a str = "Held position is smaller than the order.";
        pub amount_interpreted_as: () = ();
        pub is_replay: bool = false;
        pub warnings: Vec<&'a str> = Vec::new();
        pub requested_quantity: &'a str = "900", "As sent.";
        pub filled_quantity: Quantity = Quantity::of("0");
        pub remaining_quantity: Quantity = Quantity::of("0");
        pub token_id: Option<&'a str> = Some(SHORT_TOKEN);
        pub market_id: Option<&'a str> = Some(MARKET);
        pub time_in_force: Option<TimeInForceName> = Some("GTC".into());
        pub requested_time_in_force: Option<RequestedTimeInForce> = Some("GTC".into());
        pub wallet_id: () = ();
        pub created_at: () = ();
        pub hold_reason: () = ();
        pub fee_rate_bps: () = ();
        pub liquidity: () = ();
    }

    /// The result of each entry, in the order of the request.
    pub struct BatchResults<'a> {
        pub results: Vec<EntryResult<'a>> = Vec::new();
        pub succeeded: usize = 0, "FILLED and PENDING.";
        pub failed: usize = 0;
    }

    /// The result of a cancel: ids, and for those that were not cancelled the reason.
    pub struct Cancelled {
        #[schemars(with = "Vec<String>")]
        pub canceled: Vec<Digits> = vec![Digits(268_435_459)];
        pub not_canceled: ByName<Digits, &'static str> = ByName(Vec::new());
    }

    /// The wallets of a sweep.
    pub struct CancelAll {
        wallet_id: Option<SentWallet> = Some(SentWallet::example()), "Unless the query names it.", skip_serializing_if;
    }

    /// Either or both; an empty text is absent.
    pub struct CancelMarketOrders<'a> {
        #[schemars(length(max = 256))]
        market: Option<&'a str> = Some(MARKET), "Condition id.", skip_serializing_if;
        #[schemars(length(max = 256))]
        asset_id: Option<&'a str> = Some(""), "Token id.", skip_serializing_if;
        wallet_id: Option<SentWallet> = None, "Unless the query names it.", skip_serializing_if;
    }

    /// The native form.
    pub struct Heartbeat<'a> {
        #[schemars(range(min = 1_000, max = 60_000))]
        interval_ms: u64 = 5_000, "The next beat comes within this.";
        #[schemars(length(max = 64), extend("x-or-null" = true))]
        client_label: Option<&'a str> = Some("grid"), "Distinguishes several beating clients of one user.", skip_serializing_if;
    }

    /// The venue's form: a body without `interval_ms`.
    pub struct VenueHeartbeat<'a> {
        heartbeat_id: Option<&'a str> = None, "The `heartbeat_id` of the previous response. Empty or null arms the safeguard.";
    }

    /// The safeguard is armed.
    pub struct Beating {
        pub ok: bool = true;
        pub expires_at_ms: u64 = 1_790_932_451_250, "Unix milliseconds at which it lapses.";
    }

    /// The safeguard is armed for ten seconds.
    pub struct VenueBeating<'a> {
        pub heartbeat_id: Uuid<'a> = "5d4c0f6e-8f6b-8d1e-9f3c-2b1a09f8e7d6".into(), "For the next beat.";
    }

    /// The request had no body: nothing was armed.
    pub struct NoHeartbeat {
        pub status: OkWord = "ok".into();
    }

    /// No safeguard is armed.
    pub struct HeartbeatsEnded {
        pub ok: bool = true;
    }
}

forms! {
    // The body of `POST /v1/orders`: an object is a native order, an array a batch of signed ones.
    pub PlaceAny<'a> = Order(Box<PlaceOrder<'a>>), Batch(List<PlaceSignedOrder<'a>, 1, 100>);
        PlaceAny::Order(Box::new(PlaceOrder::example()));
    pub OrderOrBatch<'a> = Order(Box<OrderResponse<'a>>), Batch(Vec<PlacedOrFailed<'a>>);
        OrderOrBatch::Order(Box::new(OrderResponse::example()));
    pub PlaceBatch<'a> = Object(PlaceOrders<'a>), List(List<PlaceOrder<'a>, 1, 100>);
        PlaceBatch::Object(PlaceOrders::example());
    pub EntryResult<'a> = Order(Box<OrderResponse<'a>>), Refused(Box<RefusedEntry<'a>>);
        EntryResult::Order(Box::new(OrderResponse::example()));
    pub HeartbeatBody<'a> = Native(Heartbeat<'a>), Venue(VenueHeartbeat<'a>); HeartbeatBody::Native(Heartbeat::example());
    pub HeartbeatAnswer<'a> = Native(Beating), Venue(VenueBeating<'a>), None(NoHeartbeat);
        HeartbeatAnswer::Native(Beating::example());
}

impl<'a> OrderResponse<'a> {
    /// The example of a lookup: an order that rests.
    pub fn resting() -> OrderResponse<'a> {
        use crate::http::record::Record;
        OrderResponse {
            order_id: 268_435_459,
            status: "PENDING".into(),
            order_type: "limit".into(),
            price: Price::of("0.37"),
            quantity: Quantity::of("20"),
            notional: Money::of("7.40"),
            fee: Money::of("0.00"),
            filled_at: None,
            fill_source: None,
            price_source: None,
            slippage_bps: None,
            quote_age_ms: None,
            spread_bps: None,
            impact_bps: None,
            book_walk_levels: None,
            account_balance: Money::of("92.60"),
            position: None,
            client_order_id: Some("g-0017"),
            requested_quantity: Quantity::of("20"),
            filled_quantity: Quantity::of("0"),
            remaining_quantity: Quantity::of("20"),
            time_in_force: "GTD".into(),
            requested_time_in_force: "GTD".into(),
            created_at: Timestamp::of("2026-10-02T09:20:00Z"),
            fee_rate_bps: None,
            liquidity: None,
            ..OrderResponse::example()
        }
    }
}
