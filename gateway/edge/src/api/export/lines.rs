//! Lines of the CSV exports: RFC 4180 with CRLF, numbers and times as in JSON, an empty cell for null.

use crate::api::account::settlements::Settlement;
use crate::api::account::view::{CONDITION, QUESTION};
use crate::api::orders::view::{Texts, fill_price};
use crate::api::orders::words;
use crate::http::record::record;
use crate::http::scalar::{Money, Price, Quantity, Timestamp};
use csv::{Terminator, Writer, WriterBuilder};
use engine::market::catalog::Catalog;
use engine::user::Position;
use engine::view::FillView;
use serde::Serialize;
use std::borrow::Cow;

pub(super) const TRADES_EXAMPLE: &str = concat!(
    "trade_id,order_id,client_order_id,wallet_id,filled_at,market_id,market_question,token_id,outcome,side,order_type,",
    "time_in_force,liquidity,price,quantity,notional,fee,fee_rate_bps,price_source,venue_time,fee_source\r\n",
    "51233,90412,m-1,3,2026-10-02T09:15:00.004211Z,",
    "0x5151515151515151515151515151515151515151515151515151515151515151,Rain in Lisbon on 3 October?,81140002,Yes,",
    "BUY,limit,GTC,TAKER,0.42,50,21.00,0.609,500,book_walk,,category_table\r\n",
);
pub(super) const SETTLEMENTS_EXAMPLE: &str = concat!(
    "position_id,wallet_id,market_id,market_question,outcome,token_id,quantity,avg_entry_price,cost_basis,payout,",
    "payout_per_share,realized_pnl,result,resolved_outcome,settled_at\r\n",
    "7001,3,0x5151515151515151515151515151515151515151515151515151515151515151,Rain in Lisbon on 3 October?,Yes,",
    "81140002,50,0.42,21.00,50.00,1.00,29.00,won,Yes,2026-10-04T00:10:31Z\r\n",
);

record! {
    /// A fill with its order.
    struct TradeLine<'a> {
        trade_id: u64 = 51_233;
        order_id: u64 = 90_412;
        client_order_id: Option<Cow<'a, str>> = Some("m-1".into());
        wallet_id: u64 = 3;
        filled_at: Timestamp = Timestamp::of("2026-10-02T09:15:00.004211Z");
        market_id: &'a str = CONDITION;
        market_question: Option<Cow<'a, str>> = Some(QUESTION.into());
        token_id: &'a str = "81140002";
        outcome: Cow<'a, str> = "Yes".into();
        side: &'a str = "BUY";
        order_type: &'a str = "limit";
        time_in_force: &'a str = "GTC";
        liquidity: &'a str = "TAKER";
        price: Price = Price::of("0.42");
        quantity: Quantity = Quantity::of("50");
        notional: Money = Money::of("21");
        fee: Money = Money::of("0.609");
        fee_rate_bps: u64 = 500;
        price_source: &'a str = "book_walk";
        venue_time: Option<Timestamp> = None;
        fee_source: &'a str = "category_table";
    }
}

/// Why writing a line cannot fail.
const IN_MEMORY: &str = "lines go into memory, and all lines of a file have the same columns";

/// Lines that are being written.
pub(super) struct Lines(Writer<Vec<u8>>);

impl Default for Lines {
    fn default() -> Lines {
        Lines(WriterBuilder::new().has_headers(false).terminator(Terminator::CRLF).from_writer(Vec::new()))
    }
}

impl Lines {
    /// The line of the column names: the first one of the example.
    pub(super) fn header(example: &str) -> Vec<u8> {
        example.split_inclusive('\n').next().unwrap_or_default().into()
    }

    /// All lines.
    pub(super) fn text(self) -> Vec<u8> {
        self.0.into_inner().expect(IN_MEMORY)
    }

    /// Adds one fill with its order.
    pub(super) fn trade(&mut self, view: &FillView, catalog: &Catalog) {
        self.line(&TradeLine::new(view, catalog));
    }

    /// Adds one position, if it was paid out.
    pub(super) fn settlement(&mut self, position: &Position, catalog: &Catalog) {
        if let Some(settlement) = Settlement::new(position, catalog) {
            self.line(&settlement.with_texts(inert));
        }
    }

    fn line(&mut self, line: &impl Serialize) {
        self.0.serialize(line).expect(IN_MEMORY);
    }
}

impl<'a> TradeLine<'a> {
    fn new(view: &'a FillView, catalog: &'a Catalog) -> TradeLine<'a> {
        let FillView { fill, order } = view;
        let terms = &order.terms;
        let texts = Texts::of(catalog, terms.instrument);
        TradeLine {
            trade_id: fill.id.0,
            order_id: order.id.0,
            client_order_id: terms.client_order_id().map(inert),
            wallet_id: terms.wallet.0,
            filled_at: Timestamp(fill.at),
            market_id: texts.market(),
            market_question: texts.question().map(inert),
            token_id: texts.token(),
            outcome: inert(texts.outcome()),
            side: words::side(terms.side),
            order_type: words::order_type(terms.order_type),
            time_in_force: words::time_in_force(terms.time_in_force.normalised()),
            liquidity: words::liquidity(fill.liquidity),
            price: Price(fill_price(order, fill)),
            quantity: fill.qty.into(),
            notional: Money(fill.notional),
            fee: Money(fill.fee),
            fee_rate_bps: fill.charged_rate().0.into(),
            price_source: words::price_source(fill.source),
            venue_time: fill.venue_at().map(Timestamp),
            fee_source: fill.fee_source().name(),
        }
    }
}

/// A text from outside. One that a spreadsheet would compute as a formula gets an apostrophe in front.
fn inert<'a>(text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let text = text.into();
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}").into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::record::Record;

    fn file<R: Record>() -> String {
        let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
        writer.serialize(R::example()).expect(IN_MEMORY);
        String::from_utf8(writer.into_inner().expect(IN_MEMORY)).expect("UTF-8")
    }

    #[test]
    fn examples_have_the_columns_and_the_values_of_the_records() {
        assert_eq!(file::<TradeLine<'_>>(), TRADES_EXAMPLE);
        assert_eq!(file::<Settlement<'_>>(), SETTLEMENTS_EXAMPLE);
    }
}
