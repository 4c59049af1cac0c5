//! `/v1/ws/executions` (gateway/docs/streams.md §3).

use super::{ConnectedWord, FROM_SEQ, GAP, KEY, OrderWord, PING, PING_JSON, PONG, PONG_JSON, SideName, TOKEN};
use crate::api::orders::view::{Texts, fill_price};
use crate::api::orders::words::{self, FeeSourceName};
use crate::api::wallets;
use crate::http::record::record;
use crate::http::scalar::{self, ConditionId, Money, Price, Quantity, TokenId, words};
use crate::http::schema::{Param, Schema};
use crate::ws::asyncapi::{Channel, Credential, Message};
use engine::id::UserId;
use engine::order::Fill;
use engine::time::Timestamp;
use engine::view::FactView;

pub const CHANNEL: Channel = Channel {
    path: "/v1/ws/executions",
    at_root: false,
    name: "executions",
    about: "Fills of the user's resting orders, and with `events=all` every change of their state. There are no \
        subscriptions; frames other than heartbeats are ignored.",
    params: &[
        TOKEN,
        KEY,
        Param::query("wallet_id", wallets::WALLET_ID.schema, "Only this wallet; every wallet if absent or `all`."),
        Param::query("events", Schema::Word(&["all"]), "Also changes of state."),
        FROM_SEQ,
    ],
    credentials: &[Credential::Ticket, Credential::Key],
    takes: &[PING, PING_JSON],
    sends: &[
        Message::of::<ExecutionsConnected>("connected", "The first frame."),
        GAP,
        Message::of::<FillFrame>("fill", "One fill of a resting order."),
        Message::of::<OrderFrame>("order", "With `events=all`: the state of an order."),
        PONG,
        PONG_JSON,
    ],
};

words! {
    FillWord = "fill";
    FilledStatus = "PENDING", "FILLED";
    OtherStatus = "PENDING", "CANCELLED", "EXPIRED";
}

record! {
    /// The socket is open.
    pub struct ExecutionsConnected {
        r#type: ConnectedWord = "connected".into();
        connection_id: String = "c-72".to_owned();
        ts: u64 = 1_793_871_202_417, "Unix milliseconds.";
        max_subscriptions: usize = 50, "Without a meaning on this channel.";
        user_id: u64 = 42;
    }

    /// One fill of a resting order; figures of the order are those right after it.
    pub struct FillFrame<'a> {
        r#type: FillWord = "fill".into();
        order_id: u64 = 268_435_459;
        market_id: ConditionId<'a> = "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4".into();
        side: SideName = "BUY".into();
        outcome: &'a str = "Yes";
        price: Price = Price::of("0.41");
        quantity: Quantity = Quantity::of("6");
        filled_at: scalar::Timestamp = scalar::Timestamp::of("2026-11-05T09:33:24.020000Z");
        client_order_id: Option<&'a str> = Some("g-0017");
        token_id: TokenId<'a> = "721503".into();
        status: FilledStatus = "FILLED".into(), "PENDING: in part.";
        remaining_quantity: Quantity = Quantity::of("0");
        fee: Money = Money::of("0.00");
        wallet_id: u64 = 268_435_457;
        trade_id: u64 = 268_435_460;
        venue_time: Option<scalar::Timestamp> = None,
            "Time of the recording that the fill was made against; null where the venue's time is server time.";
        fee_source: FeeSourceName = "none".into(),
            "What decided the fee: the schedule that the market states, the rate of its category, or nothing.";
        seq: u64 = 2, "Number among the frames of this socket that carry one, from 1.";
        user_seq: u64 = 2, "Number of the order fact among those of the user, from 1.";
    }

    /// The new state of an order.
    pub struct OrderFrame {
        r#type: OrderWord = "order".into();
        order_id: u64 = 268_435_459;
        status: OtherStatus = "CANCELLED".into();
        cancelled_reason: Option<&'static str> = Some("user_cancelled");
        ts: u64 = 1_793_871_202_417, "Unix milliseconds.";
        seq: u64 = 3, "Number among the frames of this socket that carry one, from 1.";
        user_seq: u64 = 3, "Number of the order fact among those of the user, from 1.";
    }
}

impl ExecutionsConnected {
    /// `id`: number of the socket.
    pub fn new(id: u64, now: Timestamp, subscriptions_max: usize, user: UserId) -> ExecutionsConnected {
        ExecutionsConnected {
            r#type: "connected".into(),
            connection_id: format!("c-{id}"),
            ts: now.millis(),
            max_subscriptions: subscriptions_max,
            user_id: user.0,
        }
    }
}

impl<'a> FillFrame<'a> {
    /// `seq`: number of the frame on its socket.
    pub fn new(fact: &'a FactView, fill: &Fill, texts: &Texts<'a>, seq: u64) -> FillFrame<'a> {
        let (order, terms) = (&fact.order, &fact.order.terms);
        FillFrame {
            r#type: "fill".into(),
            order_id: order.id.0,
            market_id: texts.market().into(),
            side: words::side(terms.side).into(),
            outcome: texts.outcome(),
            price: Price(fill_price(order, fill)),
            quantity: fill.qty.into(),
            filled_at: scalar::Timestamp(fill.at),
            client_order_id: terms.client_order_id(),
            token_id: texts.token().into(),
            status: words::status(order.status()).into(),
            remaining_quantity: order.unfilled().into(),
            fee: Money(fill.fee),
            wallet_id: terms.wallet.0,
            trade_id: fill.id.0,
            venue_time: fill.venue_at().map(scalar::Timestamp),
            fee_source: fill.fee_source().name().into(),
            seq,
            user_seq: fact.seq,
        }
    }
}

impl OrderFrame {
    /// `seq`: number of the frame on its socket.
    pub fn new(fact: &FactView, seq: u64) -> OrderFrame {
        let (order, closed) = (&fact.order, fact.order.closed());
        OrderFrame {
            r#type: "order".into(),
            order_id: order.id.0,
            status: words::status(order.status()).into(),
            cancelled_reason: closed.and_then(|(reason, _)| words::cancelled_reason(reason)),
            ts: closed.map_or(order.created_at, |(_, at)| at).millis(),
            seq,
            user_seq: fact.seq,
        }
    }
}
