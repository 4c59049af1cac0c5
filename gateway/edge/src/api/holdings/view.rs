//! The records of positions and trades of the venue's service. All figures are JSON numbers.

use crate::api::account::view::{CONDITION, OpenStatus, QUESTION};
use crate::api::clob::ids;
use crate::api::orders::view::fill_price;
use crate::api::orders::words::{self, SideName};
use crate::http::record::record;
use crate::http::scalar::{Blank, ConditionId, Number, TokenId, TransactionHash};
use engine::amount::{Cash, Qty};
use engine::id::Outcome;
use engine::mark::{Marks, market_value};
use engine::market::catalog::{Catalog, MarketCell};
use engine::time::Timestamp;
use engine::view::{FillView, PositionView};
use schemars::JsonSchema;
use serde::Serialize;
use wire::cursor::OffsetCursor;
use wire::instant;

/// One hundred percent, in 10⁻⁶ of a percent.
const WHOLE_PERCENT: i128 = 100_000_000;
/// Characters of a date.
const DATE_CHARS: usize = 10;

/// An address: 0x and 40 hexadecimal digits.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Address<'a>(#[schemars(regex(pattern = r"^0x[0-9a-fA-F]{40}$"))] &'a str);

const ADDRESS: &str = "0x56687bf447db6ffa42ffe2204a05edaa20f55839";

record! {
    /// An open position. Money in USD, without fees.
    #[serde(rename_all = "camelCase")]
    #[schemars(rename = "DataPosition")]
    pub struct PositionRow<'a> {
        proxy_wallet: Address<'a> = Address(ADDRESS), "As asked for.";
        asset: TokenId<'a> = "81140002".into();
        condition_id: ConditionId<'a> = CONDITION.into();
        size: Number = Number::of("215"), "Shares.";
        avg_price: Number = Number::of("0.385");
        initial_value: Number = Number::of("82.775"), "What the held shares cost.";
        current_value: Number = Number::of("90.3"), "At the mark; at cost where there is none.";
        cash_pnl: Number = Number::of("7.525"), "Current less initial value.";
        percent_pnl: Number = Number::of("9.090909"), "The same, in percent of the initial value.";
        total_bought: Number = Number::of("215"), "The shares that are held.";
        realized_pnl: Number = Number::of("0");
        percent_realized_pnl: Number = Number::of("0");
        cur_price: Number = Number::of("0.42"), "The mark; the average price where there is none.";
        redeemable: bool = false, "Always false.";
        mergeable: bool = false, "Always false.";
        title: &'a str = QUESTION;
        slug: &'a str = "rain-in-lisbon-on-3-october";
        icon: &'a str = "";
        event_slug: &'a str = "rain-in-lisbon";
        event_id: Option<&'a str> = Some("7714"), skip_serializing_if;
        outcome: &'a str = "Yes";
        outcome_index: u64 = 0;
        opposite_outcome: &'a str = "No";
        opposite_asset: TokenId<'a> = "81140003".into();
        end_date: String = "2026-10-03".to_owned(), "A day; empty where no end is known.";
        negative_risk: bool = false;
    }

    /// An open position. Money in USD, without fees.
    #[schemars(rename = "DataPositionOfPage")]
    pub struct PositionOfPage<'a> {
        proxy_wallet: Address<'a> = Address(ADDRESS), "As asked for.";
        token_id: TokenId<'a> = "81140002".into();
        condition_id: ConditionId<'a> = CONDITION.into();
        current_size: Number = Number::of("215"), "Shares.";
        avg_price: Number = Number::of("0.385");
        entry_cost_usdc: Number = Number::of("82.775"), "What the held shares cost.";
        entry_fees_usdc: Number = Number::of("0"), "0";
        total_cost_usdc: Number = Number::of("82.775"), "The same as `entry_cost_usdc`.";
        current_price: Number = Number::of("0.42"), "The mark; the average price where there is none.";
        current_value: Number = Number::of("90.3"), "At the mark; at cost where there is none.";
        total_size: Number = Number::of("215"), "The shares that are held.";
        realized_pnl: Number = Number::of("0");
        unrealized_pnl: Number = Number::of("7.525"), "Current value less cost.";
        total_pnl: Number = Number::of("7.525"), "Realised and unrealised.";
        percent_pnl: Number = Number::of("9.090909"), "Unrealised, in percent of the cost.";
        percent_realized_pnl: Number = Number::of("0");
        status: OpenStatus = "OPEN".into();
        redeemable: bool = false, "Always false.";
        mergeable: bool = false, "Always false.";
        archived: bool = false, "Always false.";
        verified: bool = false, "Always false.";
        negative_risk: bool = false;
        title: &'a str = QUESTION;
        slug: &'a str = "rain-in-lisbon-on-3-october";
        icon: &'a str = "";
        event_slug: &'a str = "rain-in-lisbon";
        outcome: &'a str = "Yes";
        outcome_index: u64 = 0;
        opposite_outcome: &'a str = "No";
        opposite_token_id: TokenId<'a> = "81140003".into();
        end_date: String = "2026-10-03".to_owned(), "A day; empty where no end is known.";
        first_entry_at: u64 = 1_790_932_500, "Unix seconds.";
    }

    /// A trade.
    #[serde(rename_all = "camelCase")]
    #[schemars(rename = "DataTrade")]
    pub struct TradeRow<'a> {
        proxy_wallet: Address<'a> = Address(ADDRESS), "As asked for.";
        asset: TokenId<'a> = "81140002".into();
        condition_id: ConditionId<'a> = CONDITION.into();
        side: SideName = "BUY".into();
        size: Number = Number::of("50"), "Shares.";
        price: Number = Number::of("0.42");
        timestamp: u64 = 1_790_932_500, "Unix seconds.";
        outcome: &'a str = "Yes";
        transaction_hash: TransactionHash<'static> = ids::paper_transaction_hash("51233").into();
        title: &'a str = QUESTION;
        slug: &'a str = "rain-in-lisbon-on-3-october";
        icon: &'a str = "";
        event_slug: &'a str = "rain-in-lisbon";
        outcome_index: u64 = 0;
        // What the venue knows of a user and this server does not.
        name: Blank = "".into();
        pseudonym: Blank = "".into();
        bio: Blank = "".into();
        profile_image: Blank = "".into();
        profile_image_optimized: Blank = "".into();
    }

    /// A trade.
    #[schemars(rename = "DataTradeOfPage")]
    pub struct TradeOfPage<'a> {
        proxy_wallet: Address<'a> = Address(ADDRESS), "As asked for.";
        token_id: TokenId<'a> = "81140002".into();
        condition_id: ConditionId<'a> = CONDITION.into();
        side: SideName = "BUY".into();
        size: Number = Number::of("50"), "Shares.";
        price: Number = Number::of("0.42");
        timestamp: u64 = 1_790_932_500, "Unix seconds.";
        outcome: &'a str = "Yes";
        transaction_hash: TransactionHash<'static> = ids::paper_transaction_hash("51233").into();
        title: &'a str = QUESTION;
        slug: &'a str = "rain-in-lisbon-on-3-october";
        icon: &'a str = "";
        event_slug: &'a str = "rain-in-lisbon";
        outcome_index: u64 = 0;
    }

    /// What open positions are worth.
    #[schemars(rename = "DataValue")]
    pub struct ValueRow<'a> {
        user: Address<'a> = Address(ADDRESS), "As asked for.";
        value: Number = Number::of("90.3"), "USD, at the marks; at cost where there is none.";
    }

    /// What open positions are worth.
    #[schemars(rename = "DataValueOfPage")]
    pub struct ValueOfPage<'a> {
        proxy_wallet: &'a str = ADDRESS, "As asked for.";
        value: Number = Number::of("90.3"), "USD; 0 for an address that is not the caller's.";
    }

    /// What open positions are worth, in an envelope.
    #[schemars(rename = "DataValueEnvelope")]
    pub struct ValueEnvelope<'a> {
        data: ValueOfPage<'a> = ValueOfPage::example();
    }

    /// Whether another page follows.
    #[schemars(rename = "DataPagination")]
    pub struct Pagination {
        has_more: bool = false;
        next_cursor: Option<String> = None, "Null on the last page.";
    }

    /// One page of positions.
    #[schemars(rename = "DataPositionPage")]
    pub struct PositionPage<'a> {
        pub data: Vec<PositionOfPage<'a>> = Vec::new();
        pub pagination: Pagination = Pagination::example();
    }

    /// One page of trades.
    #[schemars(rename = "DataTradePage")]
    pub struct TradePage<'a> {
        pub data: Vec<TradeOfPage<'a>> = Vec::new();
        pub pagination: Pagination = Pagination::example();
    }
}

/// One open position with its figures, in 10⁻⁶ USD.
pub struct Held<'a> {
    view: &'a PositionView,
    cell: &'a MarketCell,
    pub cost: Cash,
    pub average: Cash,
    /// The average price of a position without a mark.
    pub mark: Cash,
    pub value: Cash,
}

impl<'a> Held<'a> {
    /// `None` for an instrument without a market.
    pub fn of(view: &'a PositionView, marks: Marks<'a>) -> Option<Held<'a>> {
        let held = &view.position;
        let average = view.average.unwrap_or_default();
        let mark = marks.mark(held.instrument);
        Some(Held {
            view,
            cell: marks.catalog.of_instrument(held.instrument)?,
            cost: held.cost,
            average,
            mark: mark.unwrap_or(average),
            value: mark.map_or(held.cost, |mark| market_value(mark, held.qty)),
        })
    }

    pub fn size(&self) -> Number {
        shares(self.view.position.qty)
    }

    pub fn pnl(&self) -> Cash {
        Cash(self.value.0.saturating_sub(self.cost.0))
    }

    /// In percent of the cost.
    pub fn pnl_percent(&self) -> Number {
        percent(self.pnl(), self.cost)
    }

    pub fn title(&self) -> &'a str {
        &self.cell.listing.question
    }

    pub fn end(&self) -> Option<Timestamp> {
        self.cell.end()
    }

    fn outcome(&self) -> Outcome {
        self.view.position.instrument.outcome()
    }
}

impl<'a> PositionRow<'a> {
    pub fn new(held: &Held<'a>, user: &'a str) -> PositionRow<'a> {
        let (cell, outcome, realized) = (held.cell, held.outcome(), held.view.position.realized);
        PositionRow {
            proxy_wallet: Address(user),
            asset: cell.token(outcome).into(),
            condition_id: cell.listing.condition.as_str().into(),
            size: held.size(),
            avg_price: held.average.into(),
            initial_value: held.cost.into(),
            current_value: held.value.into(),
            cash_pnl: held.pnl().into(),
            percent_pnl: held.pnl_percent(),
            total_bought: held.size(),
            realized_pnl: realized.into(),
            percent_realized_pnl: percent(realized, held.cost),
            cur_price: held.mark.into(),
            redeemable: false,
            mergeable: false,
            title: held.title(),
            slug: &cell.listing.slug,
            icon: icon(cell),
            event_slug: event_slug(cell),
            event_id: cell.event().map(|event| event.id.as_str()),
            outcome: cell.outcome(outcome),
            outcome_index: outcome as u64,
            opposite_outcome: cell.outcome(other(outcome)),
            opposite_asset: cell.token(other(outcome)).into(),
            end_date: day(cell),
            negative_risk: cell.listing.neg_risk,
        }
    }
}

impl<'a> PositionOfPage<'a> {
    pub fn new(held: &Held<'a>, user: &'a str) -> PositionOfPage<'a> {
        let (cell, outcome, realized) = (held.cell, held.outcome(), held.view.position.realized);
        PositionOfPage {
            proxy_wallet: Address(user),
            token_id: cell.token(outcome).into(),
            condition_id: cell.listing.condition.as_str().into(),
            current_size: held.size(),
            avg_price: held.average.into(),
            entry_cost_usdc: held.cost.into(),
            entry_fees_usdc: Number(0),
            total_cost_usdc: held.cost.into(),
            current_price: held.mark.into(),
            current_value: held.value.into(),
            total_size: held.size(),
            realized_pnl: realized.into(),
            unrealized_pnl: held.pnl().into(),
            total_pnl: Number(held.pnl().0.saturating_add(realized.0)),
            percent_pnl: held.pnl_percent(),
            percent_realized_pnl: percent(realized, held.cost),
            status: "OPEN".into(),
            redeemable: false,
            mergeable: false,
            archived: false,
            verified: false,
            negative_risk: cell.listing.neg_risk,
            title: held.title(),
            slug: &cell.listing.slug,
            icon: icon(cell),
            event_slug: event_slug(cell),
            outcome: cell.outcome(outcome),
            outcome_index: outcome as u64,
            opposite_outcome: cell.outcome(other(outcome)),
            opposite_token_id: cell.token(other(outcome)).into(),
            end_date: day(cell),
            first_entry_at: held.view.position.opened_at.secs(),
        }
    }
}

impl<'a> TradeRow<'a> {
    /// `None` for an instrument without a market.
    pub fn new(view: &'a FillView, user: &'a str, catalog: &'a Catalog) -> Option<TradeRow<'a>> {
        let trade = TradeOfPage::new(view, user, catalog)?;
        Some(TradeRow {
            proxy_wallet: trade.proxy_wallet,
            asset: trade.token_id,
            condition_id: trade.condition_id,
            side: trade.side,
            size: trade.size,
            price: trade.price,
            timestamp: trade.timestamp,
            outcome: trade.outcome,
            transaction_hash: trade.transaction_hash,
            title: trade.title,
            slug: trade.slug,
            icon: trade.icon,
            event_slug: trade.event_slug,
            outcome_index: trade.outcome_index,
            name: "".into(),
            pseudonym: "".into(),
            bio: "".into(),
            profile_image: "".into(),
            profile_image_optimized: "".into(),
        })
    }
}

impl<'a> TradeOfPage<'a> {
    /// `None` for an instrument without a market.
    pub fn new(view: &'a FillView, user: &'a str, catalog: &'a Catalog) -> Option<TradeOfPage<'a>> {
        let terms = &view.order.terms;
        let cell = catalog.of_instrument(terms.instrument)?;
        let outcome = terms.instrument.outcome();
        Some(TradeOfPage {
            proxy_wallet: Address(user),
            token_id: cell.token(outcome).into(),
            condition_id: cell.listing.condition.as_str().into(),
            side: words::side(terms.side).into(),
            size: shares(view.fill.qty),
            price: fill_price(&view.order, &view.fill).into(),
            timestamp: view.fill.at.secs(),
            outcome: cell.outcome(outcome),
            transaction_hash: ids::paper_transaction_hash(&view.fill.id.0.to_string()).into(),
            title: &cell.listing.question,
            slug: &cell.listing.slug,
            icon: icon(cell),
            event_slug: event_slug(cell),
            outcome_index: outcome as u64,
        })
    }
}

impl<'a> ValueRow<'a> {
    pub fn new(user: &'a str, value: Cash) -> ValueRow<'a> {
        ValueRow { user: Address(user), value: value.into() }
    }
}

impl<'a> ValueEnvelope<'a> {
    pub fn new(user: &'a str, value: Cash) -> ValueEnvelope<'a> {
        ValueEnvelope { data: ValueOfPage { proxy_wallet: user, value: value.into() } }
    }
}

impl Pagination {
    /// `next`: the offset of the next page, if there is one.
    pub fn new(next: Option<usize>) -> Pagination {
        Pagination { has_more: next.is_some(), next_cursor: next.map(OffsetCursor::write) }
    }
}

fn icon(cell: &MarketCell) -> &str {
    cell.listing.image.as_deref().unwrap_or_default()
}

fn event_slug(cell: &MarketCell) -> &str {
    cell.event().map_or("", |event| &event.slug)
}

/// The day a market ends on; empty without one.
fn day(cell: &MarketCell) -> String {
    cell.end().map_or_else(String::new, |end| instant::ts_text(end)[..DATE_CHARS].to_owned())
}

fn other(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::First => Outcome::Second,
        Outcome::Second => Outcome::First,
    }
}

/// A number of shares.
fn shares(qty: Qty) -> Number {
    Number(i64::try_from(qty.0).unwrap_or(i64::MAX))
}

/// `part` of `whole` in percent, cut to six decimals toward zero; 0 of nothing.
fn percent(part: Cash, whole: Cash) -> Number {
    if whole == Cash::ZERO {
        return Number(0);
    }
    let share = i128::from(part.0) * WHOLE_PERCENT / i128::from(whole.0);
    Number(i64::try_from(share).unwrap_or(if share > 0 { i64::MAX } else { i64::MIN }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_cost_are_percentages() {
        let cases = [(0, 0, 0), (5, 0, 0), (90_300_000, 82_775_000, 109_090_909), (-1, 3, -33_333_333)];
        for (part, whole, expected) in cases {
            assert_eq!(percent(Cash(part), Cash(whole)), Number(expected), "{part} of {whole}");
        }
        println!("percentages: {} cases", cases.len());
    }
}
