//! Venue-shaped rows of orders and trades, in both dialects (gateway/docs/venue-clients.md §0.2, §7.2, §7.4).

use super::ids::{self, ORDER_EXAMPLE, OrderIds};
use super::words::{self, PlainStatus, StrictStatus, VenueOrderType};
use crate::api::orders::records::RestingFillModel;
use crate::api::orders::view::{Texts, confidence, fill_price};
use crate::api::orders::words::{self as native, FeeSourceName, LiquidityName, SideName};
use crate::http::call::Call;
use crate::http::dialect::Dialect;
use crate::http::record::{EmptyList, List, forms, record};
use crate::http::scalar::{
    self, ConditionId, Digits, Money, OrderHexId, Price, Quantity, TokenId, TransactionHash, Uuid, words,
};
use engine::market::catalog::Catalog;
use engine::order::{Fill, Liquidity, Order, Side};
use engine::time::Timestamp;
use engine::view::{FillView, OrderView};

const MARKET: &str = "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4";
const TOKEN: &str = "71321045679252212594626385532706912750332728571942532289631379312455583992563";
const OWNER: &str = "5d4c0f6e-8f6b-8d1e-9f3c-2b1a09f8e7d6";
const ADDRESS: &str = "0x0000000000000000000000000000000000000001";

words! {
    pub PlainTradeStatus = "MATCHED";
    pub StrictTradeStatus = "MATCHED", "CONFIRMED";
}

record! {
    // The terms of an order and its progress: the first fields of every row and event of an order.
    pub struct OrderTerms<'a> {
        pub id: OrderHexId<'a> = ORDER_EXAMPLE.into();
        pub market: ConditionId<'a> = MARKET.into();
        pub asset_id: TokenId<'a> = TOKEN.into();
        pub side: SideName = "BUY".into();
        pub original_size: Quantity = Quantity::of("10"),
            "Shares asked for; of a budget the shares it was expected to buy.";
        pub size_matched: Quantity = Quantity::of("4");
        pub price: Price = Price::of("0.41"), "The limit.";
        pub outcome: &'a str = "Yes";
        pub order_type: VenueOrderType = "GTC".into();
    }

    /// An order row in the plain dialect.
    pub struct VenueOrder<'a> {
        #[serde(flatten)]
        terms: OrderTerms<'a> = OrderTerms::example();
        status: PlainStatus = "ORDER_STATUS_LIVE".into();
        owner: () = ();
        maker_address: () = ();
        expiration: u64 = 0, "0: none.";
        created_at: u64 = 1_793_871_202;
        associate_trades: Vec<Digits> = Vec::new(), "Ids of its trades, oldest first; in a list the newest 100 at most.";
        maker_orders: () = ();
        transaction_hash: () = ();
        trader_side: () = ();
        fee_rate_bps: () = ();
        fill_model: Option<RestingFillModel> = None, "With `queue`: as in native reads.", skip_serializing_if;
        queue_ahead: Option<Quantity> = None, "With `queue`, of an order in a queue.", skip_serializing_if;
        queue_total: Option<Quantity> = None, "With `queue`, of an order in a queue.", skip_serializing_if;
        queue_confidence: Option<String> = None, "With `queue`, of an order in a queue.", skip_serializing_if;
    }

    /// An order row in the strict dialect.
    pub struct StrictVenueOrder<'a> {
        #[serde(flatten)]
        terms: OrderTerms<'a> = OrderTerms::example();
        status: StrictStatus = "LIVE".into();
        owner: Uuid<'a> = OWNER.into(), "The credential of the request if that is a UUID, else the account's.";
        maker_address: &'a str = ADDRESS, "The account's address.";
        expiration: Digits = Digits(0), "Unix seconds; 0: none.";
        created_at: u64 = 1_793_871_202;
        associate_trades: Vec<Digits> = Vec::new(), "Ids of its trades, oldest first; in a list the newest 100 at most.";
        fill_model: Option<RestingFillModel> = None, "With `queue`: as in native reads.", skip_serializing_if;
        queue_ahead: Option<Quantity> = None, "With `queue`, of an order in a queue.", skip_serializing_if;
        queue_total: Option<Quantity> = None, "With `queue`, of an order in a queue.", skip_serializing_if;
        queue_confidence: Option<String> = None, "With `queue`, of an order in a queue.", skip_serializing_if;
    }

    // A fill: the first fields of every row and event of a trade.
    pub struct Execution<'a> {
        pub id: Digits = Digits(268_435_461);
        pub taker_order_id: OrderHexId<'a> = ORDER_EXAMPLE.into(), "The caller's own order, also where it was the maker.";
        pub market: ConditionId<'a> = MARKET.into();
        pub asset_id: TokenId<'a> = TOKEN.into();
        pub side: SideName = "BUY".into(), "Of the caller's order; in the strict dialect of the taker's, as at the venue.";
        pub size: Quantity = Quantity::of("4");
        pub price: Price = Price::of("0.41"), "Average of the fill.";
        pub outcome: &'a str = "Yes";
    }

    /// A trade row in the plain dialect: one fill.
    pub struct VenueTrade<'a> {
        #[serde(flatten)]
        execution: Execution<'a> = Execution::example();
        fee_rate_bps: u64 = 500, "0 for a maker, unless the market charges makers.";
        status: PlainTradeStatus = "MATCHED".into();
        match_time: u64 = 1_793_871_202, "Unix seconds.";
        last_update: u64 = 1_793_871_202, "Unix seconds.";
        #[schemars(range(max = 0))]
        bucket_index: u8 = 0;
        owner: () = ();
        maker_address: () = ();
        transaction_hash: () = ();
        trader_side: () = ();
        maker_orders: EmptyList = EmptyList;
        fee: Money = Money::of("0.05"), "USD charged.";
        venue_time: Option<scalar::Timestamp> = None,
            "Time of the recording that the fill was made against; null where the venue's time is server time.";
        fee_source: FeeSourceName = "category_table".into(),
            "What decided the fee: the schedule that the market states, the rate of its category, or nothing.";
    }

    /// A trade row in the strict dialect.
    pub struct StrictVenueTrade<'a> {
        #[serde(flatten)]
        execution: Execution<'a> = Execution::example();
        fee_rate_bps: Digits = Digits(500), "0 for a maker, unless the market charges makers.";
        status: StrictTradeStatus = "MATCHED".into(), "By `[venue] confirmed_trades`.";
        match_time: Digits = Digits(1_793_871_202), "Unix seconds.";
        last_update: Digits = Digits(1_793_871_202), "Unix seconds.";
        #[schemars(range(max = 0))]
        bucket_index: u8 = 0;
        owner: Uuid<'a> = OWNER.into(), "The credential of the request if that is a UUID, else the account's.";
        maker_address: &'a str = ADDRESS, "The account's address.";
        transaction_hash: TransactionHash<'a> = MARKET.into(), "Made of the trade's id: there is no transaction.";
        trader_side: LiquidityName = "TAKER".into();
        maker_orders: List<MakerOrder<'a>, 0, 1> = List(Vec::new()),
            "Of a MAKER row the caller's own order; else empty.";
        fee: Money = Money::of("0.05"), "USD charged.";
        venue_time: Option<scalar::Timestamp> = None,
            "Time of the recording that the fill was made against; null where the venue's time is server time.";
        fee_source: FeeSourceName = "category_table".into(),
            "What decided the fee: the schedule that the market states, the rate of its category, or nothing.";
    }

    /// The order that a trade was made with.
    pub struct MakerOrder<'a> {
        order_id: OrderHexId<'a> = ORDER_EXAMPLE.into();
        owner: Uuid<'a> = OWNER.into(), "As of the row.";
        maker_address: &'a str = ADDRESS, "As of the row.";
        matched_amount: Quantity = Quantity::of("4"), "Shares of this trade.";
        price: Price = Price::of("0.41"), "Average of the fill.";
        fee_rate_bps: Digits = Digits(0), "0, unless the market charges makers.";
        asset_id: TokenId<'a> = TOKEN.into();
        outcome: &'a str = "Yes";
        side: SideName = "BUY".into(), "Of the caller's order.";
    }
}

forms! {
    pub OrderRow<'a> = Plain(VenueOrder<'a>), Strict(StrictVenueOrder<'a>); OrderRow::Plain(VenueOrder::example());
    pub TradeRow<'a> = Plain(VenueTrade<'a>), Strict(StrictVenueTrade<'a>); TradeRow::Plain(VenueTrade::example());
}

/// What all rows of one answer share.
pub struct Rows<'a> {
    catalog: &'a Catalog,
    ids: OrderIds,
    dialect: Dialect,
    /// Owner and address: strict rows only.
    account: Option<(String, String)>,
    /// Strict trades are `CONFIRMED`.
    confirmed: bool,
    /// Orders show their fill model and their places in queues.
    shows_queue: bool,
}

impl<'a> Rows<'a> {
    /// Rows for the caller.
    pub fn of(call: &'a Call) -> Rows<'a> {
        let dialect = call.dialect();
        Rows {
            catalog: &call.reads().catalog,
            ids: OrderIds::of(call),
            dialect,
            account: dialect.is_strict().then(|| (ids::owner(call), ids::address(call.caller().user))),
            confirmed: call.front().settings.compat.confirmed_trades,
            shows_queue: call.query().get("queue") == Some("1"),
        }
    }

    /// One order with its newest trades, up to this count.
    pub fn order(&self, view: &OrderView, trades_max: usize) -> OrderRow<'_> {
        let (order, terms_of) = (&view.order, &view.order.terms);
        let terms = OrderTerms::new(&self.ids, order, &Texts::of(self.catalog, order.terms.instrument));
        let status = words::status(order, self.dialect);
        let expiration = order.terms.expiration().map_or(0, Timestamp::secs);
        let created_at = order.created_at.secs();
        let trades = &view.fills[view.fills.len().saturating_sub(trades_max)..];
        let associate_trades = trades.iter().map(|fill| Digits(fill.id.0)).collect();
        let fill_model = self.shows_queue.then(|| terms_of.fill_model().name().into());
        let queue = view.queue.filter(|_| self.shows_queue);
        let queue_ahead = queue.map(|queue| queue.ahead.into());
        let queue_total = queue.and_then(|queue| queue.total).map(Into::into);
        let queue_confidence = queue.map(confidence);
        match &self.account {
            None => OrderRow::Plain(VenueOrder {
                terms,
                status: status.into(),
                owner: (),
                maker_address: (),
                expiration,
                created_at,
                associate_trades,
                maker_orders: (),
                transaction_hash: (),
                trader_side: (),
                fee_rate_bps: (),
                fill_model,
                queue_ahead,
                queue_total,
                queue_confidence,
            }),
            Some((owner, address)) => OrderRow::Strict(StrictVenueOrder {
                terms,
                status: status.into(),
                owner: owner.as_str().into(),
                maker_address: address,
                expiration: Digits(expiration),
                created_at,
                associate_trades,
                fill_model,
                queue_ahead,
                queue_total,
                queue_confidence,
            }),
        }
    }

    /// One fill.
    pub fn trade(&self, view: &FillView) -> TradeRow<'_> {
        let (order, fill) = (&view.order, &view.fill);
        let texts = Texts::of(self.catalog, order.terms.instrument);
        let execution = Execution::new(&self.ids, fill, order, &texts, self.dialect);
        let (rate, at) = (rate(fill), fill.at.secs());
        let fee = Money(fill.fee);
        let venue_time = fill.venue_at().map(scalar::Timestamp);
        let fee_source = fill.fee_source().name().into();
        match &self.account {
            None => TradeRow::Plain(VenueTrade {
                execution,
                fee_rate_bps: rate,
                status: "MATCHED".into(),
                match_time: at,
                last_update: at,
                bucket_index: 0,
                owner: (),
                maker_address: (),
                transaction_hash: (),
                trader_side: (),
                maker_orders: EmptyList,
                fee,
                venue_time,
                fee_source,
            }),
            Some((owner, address)) => TradeRow::Strict(StrictVenueTrade {
                execution,
                fee_rate_bps: Digits(rate),
                status: if self.confirmed { "CONFIRMED" } else { "MATCHED" }.into(),
                match_time: Digits(at),
                last_update: Digits(at),
                bucket_index: 0,
                owner: owner.as_str().into(),
                maker_address: address,
                transaction_hash: ids::paper_transaction_hash(&fill.id.0.to_string()).into(),
                trader_side: native::liquidity(fill.liquidity).into(),
                maker_orders: List(MakerOrder::of(&self.ids, fill, order, &texts, (owner, address))),
                fee,
                venue_time,
                fee_source,
            }),
        }
    }
}

impl<'a> OrderTerms<'a> {
    pub fn new(ids: &OrderIds, order: &Order, texts: &Texts<'a>) -> OrderTerms<'a> {
        let terms = &order.terms;
        OrderTerms {
            id: ids.shown(order),
            market: texts.market().into(),
            asset_id: texts.token().into(),
            side: native::side(terms.side).into(),
            original_size: terms.quantity.into(),
            size_matched: order.filled.into(),
            price: terms.limit.into(),
            outcome: texts.outcome(),
            order_type: words::order_type(terms.time_in_force).into(),
        }
    }
}

impl<'a> Execution<'a> {
    pub fn new(ids: &OrderIds, fill: &Fill, order: &Order, texts: &Texts<'a>, dialect: Dialect) -> Execution<'a> {
        Execution {
            id: Digits(fill.id.0),
            taker_order_id: ids.shown(order),
            market: texts.market().into(),
            asset_id: texts.token().into(),
            side: native::side(trade_side(fill, order, dialect)).into(),
            size: fill.qty.into(),
            price: Price(fill_price(order, fill)),
            outcome: texts.outcome(),
        }
    }
}

impl<'a> MakerOrder<'a> {
    /// The own order of a maker, empty for a taker. `owner` and `address` are those of the trade.
    pub fn of(
        ids: &OrderIds,
        fill: &Fill,
        order: &Order,
        texts: &Texts<'a>,
        (owner, address): (&'a str, &'a str),
    ) -> Vec<MakerOrder<'a>> {
        let maker = (fill.liquidity == Liquidity::Maker).then(|| MakerOrder {
            order_id: ids.shown(order),
            owner: owner.into(),
            maker_address: address,
            matched_amount: fill.qty.into(),
            price: Price(fill_price(order, fill)),
            fee_rate_bps: Digits(rate(fill)),
            asset_id: texts.token().into(),
            outcome: texts.outcome(),
            side: native::side(order.terms.side).into(),
        });
        maker.into_iter().collect()
    }
}

/// The side of a trade: the own order's, but in the strict dialect the taker's, as at the venue. Its clients take the side
/// of a maker's fill for that of the other party, and its own order from `maker_orders`.
fn trade_side(fill: &Fill, order: &Order, dialect: Dialect) -> Side {
    match (order.terms.side, fill.liquidity) {
        (Side::Buy, Liquidity::Maker) if dialect.is_strict() => Side::Sell,
        (Side::Sell, Liquidity::Maker) if dialect.is_strict() => Side::Buy,
        (side, _) => side,
    }
}

/// The rate that a fill was charged, in basis points: makers mostly pay nothing.
pub fn rate(fill: &Fill) -> u64 {
    fill.charged_rate().0.into()
}
