//! Balances, positions and fills on the wire (account.md §4).

use super::valuation::{Balance, Marks, market_value};
use crate::api::orders::view::{Texts, fill_price};
use crate::api::orders::words;
use engine::amount::Qty;
use engine::order::Liquidity;
use engine::user::Position;
use engine::view::{FillView, PositionView};
use wire::write::{Object, object};

/// `BalanceResponse`.
pub fn balance(o: &mut Object<'_>, balance: &Balance) {
    o.money("balance", balance.available);
    o.word("currency", "USD");
    o.money("unrealized_pnl", balance.unrealized);
    o.money("total_value", balance.total);
    o.money("starting_balance", balance.starting);
    o.money("reserved", balance.reserved);
}

/// One position row.
pub fn position(out: &mut Vec<u8>, view: &PositionView, marks: Marks<'_>) {
    let held = &view.position;
    let texts = Texts::of(marks.catalog, held.instrument);
    let mark = marks.mark(held.instrument);
    let value = mark.filter(|_| held.is_open()).map(|mark| market_value(mark, held.qty));
    object(out, |o| {
        o.integer("id", held.id.0);
        o.text("market_id", texts.market());
        o.text("outcome", texts.outcome());
        o.qty("quantity", if held.is_open() { held.qty } else { Qty::ZERO });
        o.average("avg_entry_price", view.average.unwrap_or_default());
        o.or_null("current_price", mark, Object::average);
        o.money_or_null("unrealized_pnl", value.map(|value| value - held.cost));
        o.money_or_null("market_value", value);
        o.word("status", status(held));
        o.text_or_null("market_question", texts.question());
        o.text("token_id", texts.token());
        o.integer("wallet_id", held.wallet.0);
        o.qty("reserved_quantity", held.reserved);
        o.money("realized_pnl", held.realized);
        o.ts("opened_at", held.opened_at);
        o.ts_or_null("closed_at", held.closed_at);
    });
}

fn status(held: &Position) -> &'static str {
    match held.is_open() {
        true => "OPEN",
        false if held.is_reset => "CLOSED_BY_RESET",
        false => "CLOSED",
    }
}

/// One row of the trade history: one fill.
pub fn fill(out: &mut Vec<u8>, view: &FillView, marks: Marks<'_>) {
    let FillView { fill, order } = view;
    let terms = &order.terms;
    let texts = Texts::of(marks.catalog, terms.instrument);
    object(out, |o| {
        o.integer("order_id", order.id.0);
        o.text("market_id", texts.market());
        o.word("side", words::side(terms.side));
        o.text("outcome", texts.outcome());
        o.average("price", fill_price(order, fill));
        o.qty("quantity", fill.qty);
        o.money("notional", fill.notional);
        o.money("fee", fill.fee);
        o.word("status", "FILLED");
        o.word("price_source", words::price_source(fill.source));
        o.integer_or_null("price_age_ms", fill.quote_age_ms().map(u64::from));
        o.ts("filled_at", fill.at);
        o.ts("created_at", order.created_at);
        o.integer("trade_id", fill.id.0);
        o.text("token_id", texts.token());
        o.word("liquidity", words::liquidity(fill.liquidity));
        o.integer("fee_rate_bps", if fill.liquidity == Liquidity::Maker { 0 } else { fill.fee_rate.0.into() });
        o.integer("wallet_id", terms.wallet.0);
        o.text_or_null("client_order_id", terms.client_order_id());
        o.ts_or_null("venue_time", fill.venue_at());
    });
}
