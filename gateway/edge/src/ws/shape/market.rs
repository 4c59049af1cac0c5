//! `/v1/ws/market` (gateway/docs/streams.md §4.1, §4.2): events in the form of the venue, with numbers as strings.

use super::{ERROR_EVENT, ERRORS, KEY, PING, PING_JSON, PONG, PONG_JSON, SideName, SubscriptionChange, TOKEN};
use crate::api::books::records::LastTradePrice;
use crate::http::record::{Example, List, Record as _, forms, record, value};
use crate::http::scalar::{Blank, ConditionId, Decimal, Milliseconds, TokenId, words};
use crate::ws::asyncapi::{Channel, Credential, Message};
use engine::amount::TickSize;
use engine::id::Outcome;
use engine::market::catalog::MarketCell;
use engine::market::terms::{MarketState, Resolution};
use engine::time::Timestamp;
use wire::decimal;

pub const CHANNEL: Channel = Channel {
    path: "/v1/ws/market",
    at_root: true,
    name: "market",
    about: "Books of chosen tokens: a `book` each, then every change of it in order.",
    params: &[TOKEN, KEY, ERRORS],
    credentials: &[Credential::Anonymous, Credential::Key, Credential::Ticket],
    takes: &[
        Message::of::<SubscribeMarket>("subscribe", "The first frame. Unknown ids are ignored."),
        Message::of::<ChangeMarket>("change", "A later frame: more tokens, or fewer."),
        PING,
        PING_JSON,
    ],
    sends: &[
        Message::of::<List<BookEvent, 0, 50>>(
            "books",
            "The books of a subscription, at most 50 in one frame; empty if no token is known.",
        ),
        Message {
            example: Example::Of(|| value(&BookEvent::empty_example())),
            ..Message::of::<BookEvent>(
                "book",
                "The full book: after the venue sent one, or in place of skipped changes.",
            )
        },
        Message::of::<PriceChangeEvent>(
            "price_change",
            "Changed levels of the tokens of one market, as far as they are subscribed to.",
        ),
        Message::of::<TickSizeChangeEvent>("tick_size_change", "A new price grid; a `book` follows."),
        Message::of::<LastTradePriceEvent>("last_trade_price", "A trade at the venue. Paper fills are not reported."),
        Message::of::<BestBidAskEvent>("best_bid_ask", "With custom events: the best prices changed."),
        Message::of::<NewMarketEvent>("new_market", "With custom events: a market was listed."),
        Message::of::<MarketResolvedEvent>(
            "market_resolved",
            "With custom events: a market with a subscription was resolved.",
        ),
        PONG,
        PONG_JSON,
        ERROR_EVENT,
    ],
};

const MARKET: &str = "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4";
const NOW: Milliseconds = Milliseconds(1_793_871_202_417);
const TOKENS: [&str; 2] = ["721503", "883490"];

words! {
    BookWord = "book";
    PriceChangeWord = "price_change";
    TickSizeChangeWord = "tick_size_change";
    LastTradePriceWord = "last_trade_price";
    BestBidAskWord = "best_bid_ask";
    NewMarketWord = "new_market";
    MarketResolvedWord = "market_resolved";
}

record! {
    /// Tokens by their ids, or both tokens of markets by theirs.
    struct SubscribeMarket<'a> {
        r#type: Option<&'a str> = Some("market"), "`market` in any case, or `subscribe`.", skip_serializing_if;
        assets_ids: Option<Vec<TokenId<'a>>> = Some(vec![TOKENS[0].into()]), skip_serializing_if;
        asset_ids: Option<Vec<TokenId<'a>>> = None, "The same.", skip_serializing_if;
        markets: Option<Vec<ConditionId<'a>>> = None, skip_serializing_if;
        initial_dump: Option<bool> = None, "Send the books of the new tokens. Default true.", skip_serializing_if;
        custom_feature_enabled: Option<bool> = Some(true),
            "Send the custom events too. Remains on for the socket.", skip_serializing_if;
        level: Option<serde_json::Value> = None, "Ignored.", skip_serializing_if;
    }

    /// As the first frame, with the operation.
    struct ChangeMarket<'a> {
        operation: Option<SubscriptionChange> = Some("unsubscribe".into()), "Default `subscribe`.", skip_serializing_if;
        action: Option<SubscriptionChange> = None, "The same.", skip_serializing_if;
        assets_ids: Option<Vec<TokenId<'a>>> = Some(vec![TOKENS[0].into()]), skip_serializing_if;
        asset_ids: Option<Vec<TokenId<'a>>> = None, "The same.", skip_serializing_if;
        markets: Option<Vec<ConditionId<'a>>> = None, skip_serializing_if;
        initial_dump: Option<bool> = None, "Send the books of the new tokens. Default true.", skip_serializing_if;
        custom_feature_enabled: Option<bool> = None,
            "Send the custom events too. Remains on for the socket.", skip_serializing_if;
    }

    /// All orders at one price.
    struct StreamLevel<'a> {
        price: Decimal<'a> = "0.38".into(), "US dollars per share.";
        size: Decimal<'a> = "55".into(), "Shares.";
    }

    /// The whole book of one token.
    struct BookEvent<'a> {
        event_type: BookWord = "book".into();
        asset_id: TokenId<'a> = TOKENS[0].into();
        market: ConditionId<'a> = MARKET.into();
        timestamp: Milliseconds = NOW;
        hash: &'a str = "9ae1", "That of `GET /v1/book`.";
        bids: Vec<StreamLevel<'a>> = Vec::example(), "Ascending: the best is last.";
        asks: Vec<StreamLevel<'a>> = vec![StreamLevel { price: "0.41".into(), size: "20".into() }],
            "Descending: the best is last.";
        min_order_size: Decimal<'a> = "5".into();
        tick_size: Decimal<'a> = "0.01".into();
        neg_risk: bool = false;
        last_trade_price: LastTradePrice<'a> = LastTradePrice::Price("0.39".into()), "Empty before the first trade.";
    }

    /// Levels with their new sizes.
    struct PriceChangeEvent<'a> {
        event_type: PriceChangeWord = "price_change".into();
        market: ConditionId<'a> = MARKET.into();
        timestamp: Milliseconds = NOW;
        price_changes: Vec<LevelChange<'a>> = Vec::example();
    }

    /// One level.
    struct LevelChange<'a> {
        asset_id: TokenId<'a> = TOKENS[0].into();
        price: Decimal<'a> = "0.38".into();
        size: Decimal<'a> = "55".into(), "The new size; `0`: the level is gone.";
        side: SideName = "BUY".into(), "BUY: a bid.";
        hash: &'a str = "1f", "Of the book after the frame.";
        best_bid: Decimal<'a> = "0.38".into(), "`0` if there is none.";
        best_ask: Decimal<'a> = "0.41".into(), "`1` if there is none.";
    }

    /// A new price grid.
    pub struct TickSizeChangeEvent<'a> {
        event_type: TickSizeChangeWord = "tick_size_change".into();
        market: ConditionId<'a> = MARKET.into();
        asset_id: TokenId<'a> = TOKENS[0].into();
        old_tick_size: Decimal<'a> = "0.01".into();
        new_tick_size: Decimal<'a> = "0.001".into();
        timestamp: Milliseconds = NOW;
    }

    /// A trade at the venue.
    struct LastTradePriceEvent<'a> {
        event_type: LastTradePriceWord = "last_trade_price".into();
        market: ConditionId<'a> = MARKET.into();
        asset_id: TokenId<'a> = TOKENS[0].into();
        price: Decimal<'a> = "0.39".into();
        size: Decimal<'a> = "12".into();
        side: SideName = "SELL".into(), "Of the taker.";
        fee_rate_bps: Decimal<'a> = "0".into();
        timestamp: Milliseconds = NOW;
        hash: Option<&'a str> = Some("9ae1"),
            "Of the token's book after the venue's frame; that of `GET /v1/book`.", skip_serializing_if;
    }

    /// The best prices of a token; an empty side has none.
    struct BestBidAskEvent<'a> {
        event_type: BestBidAskWord = "best_bid_ask".into();
        market: ConditionId<'a> = MARKET.into();
        asset_id: TokenId<'a> = TOKENS[0].into();
        best_bid: Option<Decimal<'a>> = Some("0.38".into()), skip_serializing_if;
        best_ask: Option<Decimal<'a>> = Some("0.41".into()), skip_serializing_if;
        spread: Option<Decimal<'a>> = Some("0.03".into()), skip_serializing_if;
        timestamp: Milliseconds = NOW;
    }

    /// The group that the market belongs to.
    struct EventMessage<'a> {
        id: &'a str = "3";
        ticker: &'a str = "rain";
        slug: &'a str = "rain";
        title: &'a str = "Rain";
        description: &'a str = "";
    }

    // The fields that both events of a market begin with.
    struct MarketIdentity<'a> {
        id: &'a str = "7";
        question: &'a str = "Rain in Lisbon?";
        market: ConditionId<'a> = MARKET.into();
        slug: &'a str = "rain-in-lisbon";
        description: &'a str = "";
        assets_ids: Vec<TokenId<'a>> = TOKENS.map(TokenId::from).into();
        outcomes: Vec<&'a str> = vec!["Yes", "No"];
        event_message: EventMessage<'a> = EventMessage::example();
    }

    /// A market that was listed.
    pub struct NewMarketEvent<'a> {
        event_type: NewMarketWord = "new_market".into();
        #[serde(flatten)]
        identity: MarketIdentity<'a> = MarketIdentity::example();
        timestamp: Milliseconds = NOW;
        tags: &'a [String] = &[];
        condition_id: ConditionId<'a> = MARKET.into();
        active: bool = true;
        clob_token_ids: Vec<TokenId<'a>> = TOKENS.map(TokenId::from).into();
        order_price_min_tick_size: Decimal<'a> = "0.01".into();
        group_item_title: &'a str = "";
    }

    /// A market that was resolved.
    pub struct MarketResolvedEvent<'a> {
        event_type: MarketResolvedWord = "market_resolved".into();
        #[serde(flatten)]
        identity: MarketIdentity<'a> = MarketIdentity::example();
        winning_asset_id: Winner<'a> = Winner::example(),
            "Empty if the shares of both outcomes pay half.";
        winning_outcome: &'a str = "Yes", "Empty in the same case.";
        timestamp: Milliseconds = NOW;
        tags: &'a [String] = &[];
    }
}

forms! {
    // The token that pays.
    Winner<'a> = Token(TokenId<'a>), None(Blank); Winner::Token(TOKENS[0].into());
}

impl BookEvent<'_> {
    /// A book without orders that was never traded.
    fn empty_example() -> Self {
        let last_trade_price = LastTradePrice::Never("".into());
        BookEvent { bids: Vec::new(), asks: Vec::new(), last_trade_price, ..BookEvent::example() }
    }
}

impl<'a> TickSizeChangeEvent<'a> {
    pub fn new(
        cell: &'a MarketCell,
        outcome: Outcome,
        (old, new): (TickSize, TickSize),
        at: Timestamp,
    ) -> TickSizeChangeEvent<'a> {
        TickSizeChangeEvent {
            event_type: "tick_size_change".into(),
            market: cell.listing.condition.as_str().into(),
            asset_id: cell.token(outcome).into(),
            old_tick_size: tick(old),
            new_tick_size: tick(new),
            timestamp: Milliseconds(at.millis()),
        }
    }
}

impl<'a> MarketIdentity<'a> {
    /// A market without a group is its own event.
    fn new(cell: &'a MarketCell) -> MarketIdentity<'a> {
        let listing = &cell.listing;
        let description = listing.description.as_deref().unwrap_or_default();
        let (id, slug, title) = match cell.event() {
            Some(event) => (&event.id, &event.slug, &event.title),
            None => (&listing.venue_market_id, &listing.slug, &listing.question),
        };
        MarketIdentity {
            id: &listing.venue_market_id,
            question: &listing.question,
            market: listing.condition.as_str().into(),
            slug: &listing.slug,
            description,
            assets_ids: tokens(cell),
            outcomes: listing.outcomes.iter().map(String::as_str).collect(),
            event_message: EventMessage { id, ticker: slug, slug, title, description },
        }
    }
}

impl<'a> NewMarketEvent<'a> {
    pub fn new(cell: &'a MarketCell, at: Timestamp) -> NewMarketEvent<'a> {
        NewMarketEvent {
            event_type: "new_market".into(),
            identity: MarketIdentity::new(cell),
            timestamp: Milliseconds(at.millis()),
            tags: &cell.listing.tags,
            condition_id: cell.listing.condition.as_str().into(),
            active: cell.state() == MarketState::Active,
            clob_token_ids: tokens(cell),
            order_price_min_tick_size: tick(cell.tick()),
            group_item_title: cell.listing.label.as_deref().unwrap_or_default(),
        }
    }
}

impl<'a> MarketResolvedEvent<'a> {
    /// A split has no winner.
    pub fn new(cell: &'a MarketCell, resolution: Resolution, at: Timestamp) -> MarketResolvedEvent<'a> {
        let (winning_asset_id, winning_outcome) = match resolution {
            Resolution::Winner(outcome) => (Winner::Token(cell.token(outcome).into()), cell.outcome(outcome)),
            Resolution::Split => (Winner::None("".into()), ""),
        };
        MarketResolvedEvent {
            event_type: "market_resolved".into(),
            identity: MarketIdentity::new(cell),
            winning_asset_id,
            winning_outcome,
            timestamp: Milliseconds(at.millis()),
            tags: &cell.listing.tags,
        }
    }
}

fn tokens(cell: &MarketCell) -> Vec<TokenId<'_>> {
    cell.listing.tokens.iter().map(|token| token.as_str().into()).collect()
}

fn tick(tick: TickSize) -> Decimal<'static> {
    decimal::text(|out| decimal::tick(out, tick)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::books::view;
    use crate::api::testing::Town;
    use crate::http::record::write_record;
    use crate::http::testing::NOW;
    use crate::ws::change::Trade;
    use crate::ws::market_text::{self, LevelSize, TokenLevels};
    use engine::amount::{Bps, Price, Qty};
    use engine::book::{self, BookSide, Top};
    use serde::Serialize;

    /// The text of the record, and what `write` writes.
    fn texts(record: &impl Serialize, write: impl FnOnce(&mut Vec<u8>)) -> [String; 2] {
        let (mut expected, mut written) = (Vec::new(), Vec::new());
        write_record(&mut expected, record);
        write(&mut written);
        [expected, written].map(|text| String::from_utf8(text).expect("JSON is UTF-8"))
    }

    fn level(price: &'static str, size: &'static str) -> StreamLevel<'static> {
        StreamLevel { price: price.into(), size: size.into() }
    }

    #[test]
    fn frames_are_written_as_their_records() {
        let town = Town::new();
        let cell = town.catalog.market(town.market).expect("listed");
        let (market, asset) = (cell.listing.condition.as_str(), cell.token(Outcome::First));
        let timestamp = Milliseconds(NOW.millis());
        let copied = view::copied(&town.books, cell, cell.instrument(Outcome::First), usize::MAX, |shown| {
            let hash = shown.hash();
            let book = BookEvent {
                asset_id: asset.into(),
                market: market.into(),
                timestamp,
                hash: hash.as_str(),
                bids: vec![level("0.40", "310"), level("0.41", "85")],
                asks: vec![level("0.44", "120"), level("0.42", "60.5")],
                last_trade_price: LastTradePrice::Price("0.42".into()),
                ..BookEvent::example()
            };
            let [expected, written] = texts(&book, |out| market_text::book(out, shown, &hash, NOW));
            assert_eq!(written, expected);
            (hash, shown.depth.top)
        });
        let (hash, top) = copied.expect("it is quoted");

        let change = |side: &'static str, size: &'static str, [best_bid, best_ask]: [&'static str; 2]| LevelChange {
            asset_id: asset.into(),
            size: size.into(),
            side: side.into(),
            hash: hash.as_str(),
            best_bid: best_bid.into(),
            best_ask: best_ask.into(),
            ..LevelChange::example()
        };
        let levels = [(BookSide::Bid, 55_500_000), (BookSide::Ask, 0)].map(|(side, size)| LevelSize {
            side,
            price: Price(3_800),
            size: Qty(size),
        });
        for (top, best) in [(top, ["0.41", "0.42"]), (Top { bid: None, ask: None }, ["0", "1"])] {
            let event = PriceChangeEvent {
                market: market.into(),
                timestamp,
                price_changes: vec![change("BUY", "55.5", best), change("SELL", "0", best)],
                ..PriceChangeEvent::example()
            };
            let token = TokenLevels { outcome: Outcome::First, levels: &levels, hash, top };
            let [expected, written] = texts(&event, |out| market_text::price_change(out, cell, [token], NOW));
            assert_eq!(written, expected);
        }

        for (top, [best_bid, best_ask, spread]) in
            [(top, [Some("0.41"), Some("0.42"), Some("0.01")]), (Top { ask: None, ..top }, [Some("0.41"), None, None])]
        {
            let event = BestBidAskEvent {
                market: market.into(),
                asset_id: asset.into(),
                best_bid: best_bid.map(Decimal::from),
                best_ask: best_ask.map(Decimal::from),
                spread: spread.map(Decimal::from),
                timestamp,
                ..BestBidAskEvent::example()
            };
            let write = |out: &mut Vec<u8>| market_text::best_bid_ask(out, cell, Outcome::First, top, NOW);
            let [expected, written] = texts(&event, write);
            assert_eq!(written, expected);
        }

        for (hash, shown) in [(Some(hash), Some(hash.as_str())), (None, None)] {
            let event = LastTradePriceEvent {
                market: market.into(),
                asset_id: asset.into(),
                size: "12.5".into(),
                fee_rate_bps: "500".into(),
                timestamp,
                hash: shown,
                ..LastTradePriceEvent::example()
            };
            let trade = book::LastTrade { price: Price(3_900), size: Qty(12_500_000), taker_buys: false, at: NOW };
            let trade = Trade::new(trade, NOW, hash);
            let write = |out: &mut Vec<u8>| market_text::last_trade_price(out, cell, Outcome::First, &trade, Bps(500));
            let [expected, written] = texts(&event, write);
            assert_eq!(written, expected);
        }
    }
}
