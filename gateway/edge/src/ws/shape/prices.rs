//! `/v1/ws/prices` (gateway/docs/streams.md §2).

use super::{ConnectedWord, ERROR, KEY, PING, PING_JSON, PONG, PONG_JSON, SideName, TOKEN};
use crate::http::record::{ByName, Record as _, record};
use crate::http::scalar::{ConditionId, Instant, Price, Quantity, TokenId, Volume, words};
use crate::ws::asyncapi::{Channel, Credential, Message};
use engine::market::catalog::MarketCell;
use engine::market::terms::Resolution;
use engine::time::Timestamp;

pub const CHANNEL: Channel = Channel {
    path: "/v1/ws/prices",
    at_root: false,
    name: "prices",
    about: "Prices of chosen markets: one frame immediately for each, then on change, at most one per market in 250 ms.",
    params: &[TOKEN, KEY],
    credentials: &[Credential::Key, Credential::Ticket],
    takes: &[
        Message::of::<SubscribePrices>("subscribe", "Subscribes to prices of these markets."),
        Message::of::<UnsubscribePrices>("unsubscribe", "Ends subscriptions to these markets."),
        PING,
        PING_JSON,
    ],
    sends: &[
        Message::of::<Connected>("connected", "The first frame."),
        Message::of::<Subscribed>("subscribed", "The answer to `subscribe`."),
        Message::of::<Unsubscribed>("unsubscribed", "The answer to `unsubscribe`."),
        Message::of::<PriceFrame>("price", "The prices of one market."),
        Message::of::<ResolvedFrame>("resolved", "The market was resolved; it gets no more prices."),
        PONG,
        PONG_JSON,
        ERROR,
    ],
};

const MARKET: &str = "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4";

words! {
    SubscribeAction = "subscribe";
    UnsubscribeAction = "unsubscribe";
    SubscribedWord = "subscribed";
    UnsubscribedWord = "unsubscribed";
    PriceWord = "price";
    ResolvedWord = "resolved";
}

record! {
    /// `markets` and `conditions` mean the same; both together are one list. Other fields are ignored.
    struct SubscribePrices<'a> {
        action: SubscribeAction = "subscribe".into();
        markets: Option<Vec<ConditionId<'a>>> = Some(vec![MARKET.into()]), skip_serializing_if;
        conditions: Option<Vec<ConditionId<'a>>> = None, skip_serializing_if;
    }

    /// As `subscribe`.
    struct UnsubscribePrices<'a> {
        action: UnsubscribeAction = "unsubscribe".into();
        markets: Option<Vec<ConditionId<'a>>> = Some(vec![MARKET.into()]), skip_serializing_if;
        conditions: Option<Vec<ConditionId<'a>>> = None, skip_serializing_if;
    }

    /// The socket is open.
    pub struct Connected {
        r#type: ConnectedWord = "connected".into();
        connection_id: String = "c-71".to_owned();
        ts: u64 = 1_793_871_202_417, "Unix milliseconds.";
        max_subscriptions: usize = 50, "Most markets of the socket.";
    }

    /// The ids of the frame that were accepted.
    pub struct Subscribed<'a> {
        r#type: SubscribedWord = "subscribed".into();
        markets: &'a [&'a str] = &[MARKET], "The ids of the frame that were accepted.";
        count: usize = 1, "Current subscriptions.";
    }

    /// The ids of the frame that were accepted.
    pub struct Unsubscribed<'a> {
        r#type: UnsubscribedWord = "unsubscribed".into();
        markets: &'a [&'a str] = &[], "The ids of the frame that were accepted.";
        count: usize = 1, "Current subscriptions.";
    }

    // The prices of one market, equal for all sockets.
    pub struct PriceFields<'a> {
        pub market_id: ConditionId<'a> = MARKET.into();
        pub condition_id: ConditionId<'a> = MARKET.into(), "The same.";
        pub emit_ts_ms: u64 = 1_793_871_202_420, "When the frame was made, unix milliseconds.";
        pub source: &'a str = "websocket", "An opaque label.";
        pub updated_at: Instant = Instant::of("2026-11-05T09:33:22.417Z"), "The last change of a price.";
        pub ws_updated_at: Instant = Instant::of("2026-11-05T09:33:22.417Z"), "The last data from the venue.";
        pub outcomes: Vec<OutcomePrice<'a>> = OutcomePrice::examples(), "In the market's order.";
        pub tokens: ByName<TokenId<'a>, TokenPrice<'a>> = TokenPrice::examples(), "By token.";
        pub volume: Option<Volume> = Some(Volume::of("48210.75")), "Of all time.";
        pub buy: Option<Price> = Some(Price::of("0.38")), "The best bid.";
        pub sell: Option<Price> = Some(Price::of("0.41")), "The best ask.";
        pub best_bid: Option<Price> = Some(Price::of("0.38"));
        pub best_ask: Option<Price> = Some(Price::of("0.41"));
        pub last_trade: Option<Price> = Some(Price::of("0.39"));
        pub last_trade_side: Option<SideName> = Some("SELL".into());
        pub last_trade_size: Option<Quantity> = Some(Quantity::of("12"));
        pub active: bool = true;
        pub closed: bool = false;
        pub stale: bool = false, "No data for 30 s.";
    }

    // A price in a snapshot of the event stream.
    pub struct TypedPrice<'a> {
        r#type: PriceWord = "price".into();
        #[serde(flatten)]
        fields: PriceFields<'a> = PriceFields::example();
    }

    /// The prices of one market; the figures at the top level are those of its first outcome.
    struct PriceFrame<'a> {
        #[serde(flatten)]
        price: TypedPrice<'a> = TypedPrice::example();
        seq: u64 = 4, "Number of the price among those of this socket, from 1. A missing number is a price that a \
            newer one replaced in the queue.";
    }

    /// One outcome of a market.
    pub struct OutcomePrice<'a> {
        pub label: &'a str = "Yes";
        pub price: Option<Price> = Some(Price::of("0.395")), "Half way between the best prices, else the last trade.";
        pub token_id: TokenId<'a> = "721503".into();
        pub best_bid: Option<Price> = Some(Price::of("0.38")), "Absent if the outcome has no own depth.",
            skip_serializing_if;
        pub best_ask: Option<Price> = Some(Price::of("0.41")), "Absent if the outcome has no own depth.",
            skip_serializing_if;
        pub last_trade: Option<Price> = Some(Price::of("0.39")), skip_serializing_if;
        pub last_trade_at: Option<Instant> = None, skip_serializing_if;
    }

    /// The price of one outcome.
    pub struct TokenPrice<'a> {
        pub label: &'a str = "Yes";
        pub price: Option<Price> = Some(Price::of("0.395"));
    }

    /// A market that ended.
    pub struct ResolvedFrame<'a> {
        r#type: ResolvedWord = "resolved".into();
        condition_id: ConditionId<'a> = MARKET.into();
        winning_outcome: Option<&'a str> = Some("Yes"), "Null if the shares of both outcomes pay half.";
        winning_token_id: Option<TokenId<'a>> = Some("721503".into()), "Null in the same case.";
        ts: u64 = 1_793_871_202_417, "Unix milliseconds.";
    }
}

impl Connected {
    /// `id`: number of the socket.
    pub fn new(id: u64, now: Timestamp, subscriptions_max: usize) -> Connected {
        Connected {
            r#type: "connected".into(),
            connection_id: format!("c-{id}"),
            ts: now.millis(),
            max_subscriptions: subscriptions_max,
        }
    }
}

impl<'a> Subscribed<'a> {
    /// `count`: subscriptions of the socket.
    pub fn new(accepted: &'a [&'a str], count: usize) -> Subscribed<'a> {
        Subscribed { r#type: "subscribed".into(), markets: accepted, count }
    }
}

impl<'a> Unsubscribed<'a> {
    /// As [`Subscribed::new`].
    pub fn new(accepted: &'a [&'a str], count: usize) -> Unsubscribed<'a> {
        Unsubscribed { r#type: "unsubscribed".into(), markets: accepted, count }
    }
}

impl<'a> TypedPrice<'a> {
    pub fn new(fields: PriceFields<'a>) -> TypedPrice<'a> {
        TypedPrice { r#type: "price".into(), fields }
    }
}

impl OutcomePrice<'_> {
    fn examples() -> Vec<Self> {
        let second = OutcomePrice {
            label: "No",
            price: Some(Price::of("0.605")),
            token_id: "883490".into(),
            best_bid: None,
            best_ask: None,
            last_trade: None,
            last_trade_at: None,
        };
        vec![OutcomePrice::example(), second]
    }
}

impl<'a> TokenPrice<'a> {
    fn examples() -> ByName<TokenId<'a>, TokenPrice<'a>> {
        let second = TokenPrice { label: "No", price: Some(Price::of("0.605")) };
        ByName(vec![("721503".into(), TokenPrice::example()), ("883490".into(), second)])
    }
}

impl<'a> ResolvedFrame<'a> {
    /// A split has no winner.
    pub fn new(cell: &'a MarketCell, resolution: Resolution, now: Timestamp) -> ResolvedFrame<'a> {
        let winner = match resolution {
            Resolution::Winner(outcome) => Some(outcome),
            Resolution::Split => None,
        };
        ResolvedFrame {
            r#type: "resolved".into(),
            condition_id: cell.listing.condition.as_str().into(),
            winning_outcome: winner.map(|outcome| cell.outcome(outcome)),
            winning_token_id: winner.map(|outcome| cell.token(outcome).into()),
            ts: now.millis(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::record::write_record;
    use crate::ws::price_text::Price;

    /// Sockets share the text of the fields.
    #[test]
    fn price_frames_are_written_as_their_record() {
        let (mut written, mut expected) = (Vec::new(), Vec::new());
        Price::new(&PriceFields::example()).frame(&mut written, 4);
        write_record(&mut expected, &PriceFrame::example());
        assert_eq!(String::from_utf8(written), String::from_utf8(expected));
    }
}
