//! Lines of the CSV exports: RFC 4180 with CRLF, numbers and times as in JSON, nothing for null.

use crate::api::account::settlements::Row;
use crate::api::orders::view::{Texts, fill_price};
use crate::api::orders::words;
use csv::{Terminator, Writer, WriterBuilder};
use engine::amount::Cash;
use engine::market::catalog::Catalog;
use engine::order::Liquidity;
use engine::user::Position;
use engine::view::FillView;
use wire::{decimal, instant};

pub(super) const TRADE_COLUMNS: [&str; 20] = [
    "trade_id",
    "order_id",
    "client_order_id",
    "wallet_id",
    "filled_at",
    "market_id",
    "market_question",
    "token_id",
    "outcome",
    "side",
    "order_type",
    "time_in_force",
    "liquidity",
    "price",
    "quantity",
    "notional",
    "fee",
    "fee_rate_bps",
    "price_source",
    "venue_time",
];

/// The fields of a settlement row, in its order.
pub(super) const SETTLEMENT_COLUMNS: [&str; 15] = [
    "position_id",
    "wallet_id",
    "market_id",
    "market_question",
    "outcome",
    "token_id",
    "quantity",
    "avg_entry_price",
    "cost_basis",
    "payout",
    "payout_per_share",
    "realized_pnl",
    "result",
    "resolved_outcome",
    "settled_at",
];

pub(super) const TRADES_EXAMPLE: &str = concat!(
    "trade_id,order_id,client_order_id,wallet_id,filled_at,market_id,market_question,token_id,outcome,side,order_type,",
    "time_in_force,liquidity,price,quantity,notional,fee,fee_rate_bps,price_source,venue_time\r\n",
    "51233,90412,m-1,3,2026-10-02T09:15:00.004211Z,",
    "0x5151515151515151515151515151515151515151515151515151515151515151,Rain in Lisbon on 3 October?,81140002,Yes,",
    "BUY,limit,GTC,TAKER,0.42,50,21.00,0.609,500,book_walk,\r\n",
);
pub(super) const SETTLEMENTS_EXAMPLE: &str = concat!(
    "position_id,wallet_id,market_id,market_question,outcome,token_id,quantity,avg_entry_price,cost_basis,payout,",
    "payout_per_share,realized_pnl,result,resolved_outcome,settled_at\r\n",
    "7001,3,0x5151515151515151515151515151515151515151515151515151515151515151,Rain in Lisbon on 3 October?,Yes,",
    "81140002,50,0.42,21.00,50.00,1.00,29.00,won,Yes,2026-10-04T00:10:31Z\r\n",
);

/// Why writing a line cannot fail.
const IN_MEMORY: &str = "lines go into memory, and all of a file have the same columns";

/// Lines being written.
pub(super) struct Lines {
    writer: Writer<Vec<u8>>,
    cell: Vec<u8>,
}

impl Default for Lines {
    fn default() -> Lines {
        let writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
        Lines { writer, cell: Vec::with_capacity(64) }
    }
}

impl Lines {
    /// The line of the column names.
    pub(super) fn header(columns: &[&str]) -> Vec<u8> {
        let mut lines = Lines::default();
        lines.writer.write_record(columns).expect(IN_MEMORY);
        lines.text()
    }

    /// All lines.
    pub(super) fn text(self) -> Vec<u8> {
        self.writer.into_inner().expect(IN_MEMORY)
    }

    /// One fill with its order.
    pub(super) fn trade(&mut self, view: &FillView, catalog: &Catalog) {
        let FillView { fill, order } = view;
        let terms = &order.terms;
        let texts = Texts::of(catalog, terms.instrument);
        self.number(fill.id.0);
        self.number(order.id.0);
        self.text_of(terms.client_order_id());
        self.number(terms.wallet.0);
        self.written(|out| instant::ts(out, fill.at));
        self.word(texts.market());
        self.text_of(texts.question());
        self.word(texts.token());
        self.text_of(Some(texts.outcome()));
        self.word(words::side(terms.side));
        self.word(words::order_type(terms.order_type));
        self.word(words::time_in_force(terms.time_in_force.normalised()));
        self.word(words::liquidity(fill.liquidity));
        self.money(fill_price(order, fill));
        self.written(|out| decimal::qty(out, fill.qty));
        self.money(fill.notional);
        self.money(fill.fee);
        self.number(if fill.liquidity == Liquidity::Maker { 0 } else { fill.fee_rate.0.into() });
        self.word(words::price_source(fill.source));
        self.written(|out| fill.venue_at().into_iter().for_each(|at| instant::ts(out, at)));
        self.end();
    }

    /// One position that was paid out; nothing for another one.
    pub(super) fn settlement(&mut self, position: &Position, catalog: &Catalog) {
        let Some(row) = Row::of(position, catalog) else { return };
        self.number(position.id.0);
        self.number(position.wallet.0);
        self.word(row.texts.market());
        self.text_of(row.texts.question());
        self.text_of(Some(row.texts.outcome()));
        self.word(row.texts.token());
        self.written(|out| decimal::qty(out, row.settled.qty));
        self.money(row.average);
        self.money(row.settled.cost);
        self.money(row.settled.payout);
        self.written(|out| decimal::price(out, row.settled.payout_per_share));
        self.money(row.realized);
        self.word(row.result);
        self.text_of(row.resolved_outcome);
        self.written(|out| instant::ts(out, row.settled.at));
        self.end();
    }

    /// A text of others. One that a spreadsheet would take for a formula gets an apostrophe in front.
    fn text_of(&mut self, text: Option<&str>) {
        let text = text.unwrap_or_default();
        if text.starts_with(['=', '+', '-', '@']) {
            self.written(|out| {
                out.push(b'\'');
                out.extend_from_slice(text.as_bytes());
            });
        } else {
            self.word(text);
        }
    }

    fn word(&mut self, word: &str) {
        self.writer.write_field(word).expect(IN_MEMORY);
    }

    fn number(&mut self, number: u64) {
        self.written(|out| decimal::integer(out, number));
    }

    fn money(&mut self, cash: Cash) {
        self.written(|out| decimal::money(out, cash));
    }

    fn written(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.cell.clear();
        write(&mut self.cell);
        self.writer.write_field(&self.cell).expect(IN_MEMORY);
    }

    fn end(&mut self) {
        self.writer.write_record(None::<&[u8]>).expect(IN_MEMORY);
    }
}
