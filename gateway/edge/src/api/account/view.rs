//! The records of balances, positions and fills (gateway/docs/accounts.md §3).

use super::valuation::{Marks, Valuation, market_value};
use crate::api::orders::view::{Texts, fill_price};
use crate::api::orders::words::{self, FeeSourceName, LiquidityName, SideName};
use crate::http::record::{Record, record};
use crate::http::scalar::{Blank, Money, Price, Quantity, Rate, Timestamp, TokenId, words};
use engine::amount::Qty;
use engine::user;
use engine::view::{FillView, PositionView};
use schemars::JsonSchema;
use serde::Serialize;
use wire::decimal;

words! {
    pub CurrencyName = "USD";
    /// A position at any time of its life.
    pub PositionStatus = "OPEN", "CLOSED", "CLOSED_BY_RESET";
    /// A position in a list of open ones.
    pub OpenStatus = "OPEN";
    /// A position after a trade.
    pub StatusAfterTrade = "OPEN", "CLOSED";
    pub FillStatus = "FILLED";
}

/// The market of examples, and its question.
pub const CONDITION: &str = "0x5151515151515151515151515151515151515151515151515151515151515151";
pub const QUESTION: &str = "Rain in Lisbon on 3 October?";

record! {
    /// What wallets have and are worth.
    pub struct Balance {
        balance: Money = Money::of("81.40"), "Available cash, after reservations.";
        currency: CurrencyName = "USD".into();
        unrealized_pnl: Money = Money::of("-1.10"),
            "`total_value` less `starting_balance`: profit or loss since the start, realised or not, after fees.";
        total_value: Money = Money::of("98.90"), "Cash and open positions at their marks.";
        starting_balance: Money = Money::of("100"), "Baselines of the present generations, and their deposits.";
        reserved: Money = Money::of("0"), "Cash set aside for open orders.";
    }

    /// An outcome held, from first buy to its end.
    pub struct Position<'a> {
        id: u64 = 7_001;
        market_id: &'a str = CONDITION, "Condition id of the market.";
        outcome: &'a str = "Yes";
        quantity: Quantity = Quantity::of("50"), "Shares held, those reserved included; 0 when closed.";
        avg_entry_price: Price = Price::of("0.42"), "Of the last open state.";
        current_price: Option<Price> = Some(Price::of("0.415")), "The mark; null where there is none.";
        unrealized_pnl: Option<Money> = Some(Money::of("-0.25")),
            "Market value less cost of what is held, without fees; null without a mark, and when closed.";
        market_value: Option<Money> = Some(Money::of("20.75")),
            "Mark times quantity; null without a mark, and when closed.";
        status: PositionStatus = "OPEN".into();
        market_question: Option<&'a str> = Some(QUESTION);
        token_id: TokenId<'a> = "81140002".into();
        wallet_id: u64 = 3;
        reserved_quantity: Quantity = Quantity::of("0"), "Shares set aside for open orders.";
        realized_pnl: Money = Money::of("0");
        opened_at: Timestamp = Timestamp::of("2026-10-02T09:15:00Z");
        closed_at: Option<Timestamp> = None;
    }

    /// Positions with `envelope`.
    pub struct PositionPage<'a> {
        limit: u64 = 1;
        count: u64 = 1;
        next_cursor: Blank = "".into(), "All are in one page.";
        data: Vec<Position<'a>> = Vec::example();
    }

    /// Balance and open positions.
    pub struct Portfolio<'a> {
        pub balance: Balance = Balance {
            balance: Money::of("100"),
            unrealized_pnl: Money::of("0"),
            total_value: Money::of("100"),
            ..Balance::example()
        };
        pub positions: Vec<Position<'a>> = Vec::new(), "Open ones.";
        pub total_trades: u64 = 0, "Fills.";
        pub win_rate: Option<Rate<'a>> = None,
            "Wins of the positions that closed at a known price; null when none did.";
    }

    /// One fill of an order.
    pub struct Fill<'a> {
        order_id: u64 = 90_412;
        market_id: &'a str = CONDITION, "Condition id of the market.";
        side: SideName = "BUY".into();
        outcome: &'a str = "Yes";
        price: Price = Price::of("0.42"), "Average over the levels taken.";
        quantity: Quantity = Quantity::of("50");
        notional: Money = Money::of("21");
        fee: Money = Money::of("0.609");
        status: FillStatus = "FILLED".into();
        price_source: &'a str = "book_walk";
        price_age_ms: Option<u32> = Some(310), "Age of the quote at the fill.";
        filled_at: Timestamp = Timestamp::of("2026-10-02T09:15:00.004211Z");
        created_at: Timestamp = Timestamp::of("2026-10-02T09:15:00.001100Z"), "Of the order.";
        trade_id: u64 = 51_233;
        token_id: TokenId<'a> = "81140002".into();
        liquidity: LiquidityName = "TAKER".into();
        fee_rate_bps: u64 = 500;
        wallet_id: u64 = 3;
        client_order_id: Option<&'a str> = Some("m-1");
        venue_time: Option<Timestamp> = None,
            "Time of the recording that the fill was made against; null where the venue's time is server time.";
        fee_source: FeeSourceName = "category_table".into(),
            "What decided the fee: the schedule that the market states, the rate of its category, or nothing.";
    }

    /// Fills with `envelope`.
    pub struct HistoryPage<'a> {
        pub data: Vec<Fill<'a>> = Vec::example();
        pub next_cursor: String = String::new(), "The next offset, or empty.";
    }
}

// A list, or a page of it for `envelope`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum ListOrPage<R, P> {
    List(Vec<R>),
    Page(P),
}

impl<R: Record, P: Record> Record for ListOrPage<R, P> {
    fn example() -> ListOrPage<R, P> {
        ListOrPage::List(Vec::example())
    }
}

impl From<Valuation> for Balance {
    fn from(valuation: Valuation) -> Balance {
        Balance {
            balance: Money(valuation.available),
            currency: "USD".into(),
            unrealized_pnl: Money(valuation.unrealized),
            total_value: Money(valuation.total),
            starting_balance: Money(valuation.starting),
            reserved: Money(valuation.reserved),
        }
    }
}

impl<'a> Position<'a> {
    pub fn new(view: &PositionView, marks: Marks<'a>) -> Position<'a> {
        let held = &view.position;
        let texts = Texts::of(marks.catalog, held.instrument);
        let mark = marks.mark(held.instrument);
        let value = mark.filter(|_| held.is_open()).map(|mark| market_value(mark, held.qty));
        Position {
            id: held.id.0,
            market_id: texts.market(),
            outcome: texts.outcome(),
            quantity: if held.is_open() { held.qty } else { Qty::ZERO }.into(),
            avg_entry_price: Price(view.average.unwrap_or_default()),
            current_price: mark.map(Price),
            unrealized_pnl: value.map(|value| Money(value - held.cost)),
            market_value: value.map(Money),
            status: status(held).into(),
            market_question: texts.question(),
            token_id: texts.token().into(),
            wallet_id: held.wallet.0,
            reserved_quantity: held.reserved.into(),
            realized_pnl: Money(held.realized),
            opened_at: Timestamp(held.opened_at),
            closed_at: held.closed_at.map(Timestamp),
        }
    }
}

fn status(held: &user::Position) -> &'static str {
    match held.is_open() {
        true => "OPEN",
        false if held.is_reset => "CLOSED_BY_RESET",
        false => "CLOSED",
    }
}

impl<'a> PositionPage<'a> {
    /// All of the positions: the only page.
    pub fn new(data: Vec<Position<'a>>) -> PositionPage<'a> {
        let page = PositionPage::without_rows(data.len() as u64);
        PositionPage { data, ..page }
    }

    /// The page of this many positions, which are written apart.
    pub fn without_rows(count: u64) -> PositionPage<'a> {
        PositionPage { limit: count, count, next_cursor: "".into(), data: Vec::new() }
    }
}

impl<'a> Fill<'a> {
    pub fn new(view: &'a FillView, marks: Marks<'a>) -> Fill<'a> {
        let FillView { fill, order } = view;
        let terms = &order.terms;
        let texts = Texts::of(marks.catalog, terms.instrument);
        Fill {
            order_id: order.id.0,
            market_id: texts.market(),
            side: words::side(terms.side).into(),
            outcome: texts.outcome(),
            price: Price(fill_price(order, fill)),
            quantity: fill.qty.into(),
            notional: Money(fill.notional),
            fee: Money(fill.fee),
            status: "FILLED".into(),
            price_source: words::price_source(fill.source),
            price_age_ms: fill.quote_age_ms(),
            filled_at: Timestamp(fill.at),
            created_at: Timestamp(order.created_at),
            trade_id: fill.id.0,
            token_id: texts.token().into(),
            liquidity: words::liquidity(fill.liquidity).into(),
            fee_rate_bps: fill.charged_rate().0.into(),
            wallet_id: terms.wallet.0,
            client_order_id: terms.client_order_id(),
            venue_time: fill.venue_at().map(Timestamp),
            fee_source: fill.fee_source().name().into(),
        }
    }
}

/// The rate of wins; `None` when no position closed at a known price.
pub fn win_rate(won: u64, closed: u64) -> Option<Rate<'static>> {
    (closed > 0).then(|| decimal::text(|out| decimal::win_rate(out, won, closed)).into())
}
