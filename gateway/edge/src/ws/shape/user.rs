//! `/v1/ws/user` (gateway/docs/streams.md §4.1, §4.3): the user's trades and orders in the venue's form.

use super::{DIALECT, ERROR_EVENT, ERRORS, FROM_SEQ, GAP, KEY, PING, PING_JSON, PONG, PONG_JSON, SideName, TOKEN};
use crate::http::record::record;
use crate::http::scalar::{ConditionId, Decimal, OrderHexId, Seconds, TokenId, TransactionHash, words};
use crate::ws::asyncapi::{Channel, Credential, Message};

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
const ADDRESS: &str = "0x4c00000000000000000000000000000000000001";

words! {
    SubscriptionChange = "subscribe", "unsubscribe";
    TradeEventWord = "trade";
    TradeWord = "TRADE";
    TradeStatus = "MATCHED";
    TraderSide = "TAKER", "MAKER";
    OrderEventWord = "order";
    OrderEventType = "PLACEMENT", "UPDATE", "CANCELLATION";
    OrderTypeWord = "GTC", "GTD", "FOK", "FAK";
    OrderStatus = "LIVE", "MATCHED", "CANCELED";
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

    /// The own order of a MAKER trade.
    struct MakerOrder<'a> {
        order_id: OrderHexId<'a> = ORDER.into();
        owner: &'a str = "", "As of the trade.";
        maker_address: &'a str = ADDRESS, "As of the trade.";
        matched_amount: Decimal<'a> = "6".into();
        price: Decimal<'a> = "0.41".into();
        fee_rate_bps: Decimal<'a> = "0".into();
        asset_id: TokenId<'a> = "721503".into();
        outcome: &'a str = "Yes";
        side: SideName = "BUY".into(), "Of the own order.";
    }

    /// One fill of the user.
    struct UserTradeEvent<'a> {
        event_type: TradeEventWord = "trade".into();
        r#type: TradeWord = "TRADE".into();
        status: TradeStatus = "MATCHED".into();
        id: &'a str = "268435460";
        taker_order_id: OrderHexId<'a> = ORDER.into(), "The user's order.";
        market: ConditionId<'a> = MARKET.into();
        asset_id: TokenId<'a> = "721503".into();
        side: SideName = "BUY".into(),
            "The user's; of a MAKER trade in the strict dialect the taker's, as at the venue.";
        size: Decimal<'a> = "6".into();
        price: Decimal<'a> = "0.41".into();
        outcome: &'a str = "Yes";
        timestamp: Seconds = Seconds(1_793_871_204);
        last_update: Seconds = Seconds(1_793_871_204);
        match_time: Seconds = Seconds(1_793_871_204);
        maker_orders: Vec<MakerOrder<'a>> = Vec::new(),
            "The own order of a MAKER trade in the strict dialect, or where `order` frames are sent; else empty.";
        owner: &'a str = "",
            "Empty; in the strict dialect the UUID of the key if the client sent that, else of the account.";
        trade_owner: &'a str = "", "The same.";
        fee_rate_bps: Decimal<'a> = "0".into();
        trader_side: TraderSide = "MAKER".into();
        #[schemars(range(max = 0))]
        bucket_index: u8 = 0;
        maker_address: &'a str = ADDRESS;
        transaction_hash: Option<TransactionHash<'a>> = None, "Null in the plain dialect.";
        user_seq: Option<u64> = None, "Number of the order fact among those of the user, from 1.",
            skip_serializing_if;
    }

    /// A change of an order.
    struct UserOrderEvent<'a> {
        event_type: OrderEventWord = "order".into();
        r#type: OrderEventType = "PLACEMENT".into();
        id: OrderHexId<'a> = ORDER.into();
        market: ConditionId<'a> = MARKET.into();
        asset_id: TokenId<'a> = "721503".into();
        side: SideName = "BUY".into();
        original_size: Decimal<'a> = "6".into();
        size_matched: Decimal<'a> = "0".into();
        price: Decimal<'a> = "0.41".into();
        outcome: &'a str = "Yes";
        order_type: OrderTypeWord = "GTC".into();
        owner: &'a str = "", "As of a trade.";
        order_owner: &'a str = "", "The same.";
        expiration: &'a str = "0", "Unix seconds; `0` without one.";
        created_at: &'a str = "1793871204", "Unix seconds.";
        timestamp: &'a str = "1793871204024", "Unix milliseconds: when it happened.";
        associate_trades: Vec<&'a str> = Vec::new(), "The trade of an `UPDATE`.";
        status: OrderStatus = "LIVE".into();
        maker_address: &'a str = ADDRESS;
        user_seq: Option<u64> = None, "Number of the order fact among those of the user, from 1.",
            skip_serializing_if;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::clob::ids;
    use crate::api::testing::{Filled, Town, Trader};
    use crate::http::dialect::Dialect;
    use crate::http::record::{Record as _, write_record};
    use crate::http::testing::NOW;
    use crate::ws::user_frames::FrameStyle;
    use crate::ws::user_text::Texts;
    use engine::id::{Outcome, UserId};
    use engine::order::{Liquidity, PriceSource};
    use engine::view::{FactView, Happened};
    use serde::Serialize;

    const OWNER: &str = "4f0c9d2a-0011-8233-9455-66778899aabb";

    fn text(record: &impl Serialize) -> String {
        let mut out = Vec::new();
        write_record(&mut out, record);
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    /// Sockets of one style share frames, which are written by hand.
    #[test]
    fn frames_are_written_as_their_records() {
        let town = Town::new();
        let cell = town.catalog.market(town.market).expect("listed");
        let mut trader = Trader::new(100_000_000, cell.instrument(Outcome::First));
        trader.place(90_415, trader.terms(4_100, 10), NOW);
        let how = Filled {
            liquidity: Liquidity::Maker,
            source: PriceSource::MatchingEngine,
            quote_age_ms: None,
            at: NOW.plus(1_250_000),
        };
        trader.fill(90_415, 90_416, (6_000_000, 2_460_000, 0), how);
        let view = trader.view(90_415);
        let (order, fill) = (view.order, view.fills[0].clone());
        let fact = FactView { seq: 7, order, what: Happened::Filled { fill, resting: true } };
        let (address, hash) = (ids::address(UserId(0)), ids::paper_transaction_hash("90416"));
        let (market, asset) = (cell.listing.condition.as_str(), cell.token(Outcome::First));
        let seconds = Seconds(NOW.secs() + 1);
        let mut cases = 0;
        for (dialect, owner, numbered) in [(Dialect::Plain, "", false), (Dialect::Strict, OWNER, true)] {
            let (strict, salt) = (dialect.is_strict(), town.edge.app.front.settings.auth.server_secret.expose());
            let id = ids::OrderIds::new(salt, UserId(0), dialect).text(fact.order.id, None);
            let user_seq = numbered.then_some(7);
            let style = FrameStyle { user: UserId(0), dialect, owner: owner.into(), numbered, sends_orders: true };
            let own = MakerOrder {
                order_id: id.as_str().into(),
                owner,
                maker_address: &address,
                asset_id: asset.into(),
                ..MakerOrder::example()
            };
            let trade = UserTradeEvent {
                id: "90416",
                taker_order_id: id.as_str().into(),
                market: market.into(),
                asset_id: asset.into(),
                side: if strict { "SELL" } else { "BUY" }.into(),
                timestamp: seconds,
                last_update: seconds,
                match_time: seconds,
                maker_orders: vec![own],
                owner,
                trade_owner: owner,
                maker_address: &address,
                transaction_hash: strict.then(|| hash.as_str().into()),
                user_seq,
                ..UserTradeEvent::example()
            };
            let (created_at, timestamp) = (NOW.secs().to_string(), NOW.plus(1_250_000).millis().to_string());
            let update = UserOrderEvent {
                r#type: "UPDATE".into(),
                id: id.as_str().into(),
                market: market.into(),
                asset_id: asset.into(),
                original_size: "10".into(),
                size_matched: "6".into(),
                owner,
                order_owner: owner,
                created_at: &created_at,
                timestamp: &timestamp,
                associate_trades: vec!["90416"],
                maker_address: &address,
                user_seq,
                ..UserOrderEvent::example()
            };
            let texts = Texts::new(&town.edge.app, &style);
            let frames = texts.frames(&fact);
            for (frame, expected) in frames.into_iter().zip([text(&trade), text(&update)]) {
                let frame = frame.expect("a fill has both");
                assert_eq!(str::from_utf8(frame.payload()), Ok(expected.as_str()), "{dialect:?}");
                cases += 1;
            }
        }
        println!("frames of the user channel: {cases}");
    }
}
