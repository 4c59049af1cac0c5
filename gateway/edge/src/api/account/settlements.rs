//! Positions that a resolution paid out (account.md §4, settlements).

use super::market;
use crate::api::orders::view::Texts;
use crate::api::refuse::unexpected;
use crate::api::wallets;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::schema::{
    CONDITION_ID, INTEGER, MONEY, PRICE, Param, QTY, Schema, Shape, TEXT, TEXT_OR_NULL, TOKEN_ID, TS, field,
};
use engine::amount::{Cash, Price};
use engine::command::{Answer, Command, EpisodeSpan, Episodes, Query, Wallets};
use engine::id::PositionId;
use engine::market::catalog::Catalog;
use engine::market::terms::Resolution;
use engine::time::Timestamp;
use engine::user::{Position, Settlement};
use engine::view::PositionView;
use wire::cursor::IdCursor;
use wire::fields::{Params, Problems};
use wire::instant;
use wire::query::Query as QueryText;
use wire::write::object;

const LIMIT_MAX: u64 = 500;
const LIMIT_DEFAULT: u64 = 100;
const ROW_BYTES: usize = 512;

pub const ROUTES: &[Route] = &[Route::get("/v1/account/settlements", "list_settlements")
    .about("Positions that a resolution paid out, the newest position first.")
    .params(&[
        Param::query("limit", Schema::Integer { min: 1, max: LIMIT_MAX as i64 }, "Rows of a page; 100 without it."),
        Param::query("cursor", TEXT, "The `next_cursor` of the page before."),
        WALLET,
        MARKET,
        FROM,
        TO,
    ])
    .gives_shape(200, &Schema::Object(&PAGE), EXAMPLE)
    .auth(Auth::Key)
    .needs(Permission::Read)
    .fails(&[Code::ValidationFailed, Code::InvalidCursor, Code::WalletNotFound])
    .run(|call| Box::pin(list(call)))];

/// Parameters that the exports have too.
pub const MARKET: Param =
    Param::query("market_id", Schema::Text(256), "A condition id; an unknown one matches nothing.");
pub const FROM: Param = Param::query("from", TEXT, "Not before this time, or this day in UTC.");
pub const TO: Param = Param::query("to", TEXT, "Not after this time, or the end of this day in UTC.");
const WALLET: Param =
    Param::query("wallet_id", TEXT, "`api`, `all`, or the number of a wallet; without it the API wallet.");

const SETTLEMENT: Shape = Shape::new(
    "Settlement",
    "A position that a resolution paid out.",
    &[
        field("position_id", INTEGER, ""),
        field("wallet_id", INTEGER, ""),
        field("market_id", CONDITION_ID, ""),
        field("market_question", TEXT_OR_NULL, ""),
        field("outcome", TEXT, "Label of what was held."),
        field("token_id", TOKEN_ID, ""),
        field("quantity", QTY, "Shares that were held."),
        field("avg_entry_price", PRICE, "Cost per share, fees excluded."),
        field("cost_basis", MONEY, ""),
        field("payout", MONEY, ""),
        field("payout_per_share", PRICE, ""),
        field("realized_pnl", MONEY, "Payout less cost."),
        field("result", Schema::Word(&RESULTS), ""),
        field("resolved_outcome", TEXT_OR_NULL, "Label of the winner; null for a split."),
        field("settled_at", TS, ""),
    ],
);
const PAGE: Shape = Shape::new(
    "SettlementPage",
    "One page of settlements.",
    &[
        field("data", Schema::Array(&Schema::Object(&SETTLEMENT)), ""),
        field("next_cursor", TEXT, "Empty behind the last page."),
    ],
);
const EXAMPLE: &str = r#"{"data":[{"position_id":7001,"wallet_id":3,
"market_id":"0x5151515151515151515151515151515151515151515151515151515151515151",
"market_question":"Rain in Lisbon on 3 October?","outcome":"Yes","token_id":"81140002","quantity":"50",
"avg_entry_price":"0.42","cost_basis":"21.00","payout":"50.00","payout_per_share":"1.00","realized_pnl":"29.00",
"result":"won","resolved_outcome":"Yes","settled_at":"2026-10-04T00:10:31Z"}],"next_cursor":""}"#;

/// The moments that `from` and `to` bound, both inclusive; without them all there are.
pub fn span(query: &QueryText<'_>, problems: &mut Problems) -> (Timestamp, Timestamp) {
    let mut one = |name, read: fn(&str) -> Option<Timestamp>, default| match query.get(name) {
        None => default,
        Some(text) => read(text).unwrap_or_else(|| {
            problems.add("query", name, "datetime_parsing", "is neither a time nor a date");
            default
        }),
    };
    (one("from", instant::read, Timestamp(0)), one("to", instant::read_end, Timestamp(u64::MAX)))
}

async fn list(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let limit = params.integer("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT) as usize;
    let wallets = wallets::in_query(&query, &mut params.problems).unwrap_or(Wallets::Api);
    let (from, to) = span(&query, &mut params.problems);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let cursor = IdCursor::read(query.get("cursor").unwrap_or_default()).map_err(|_| Code::InvalidCursor)?;
    let market = market(&call, &query);
    let mut next = match cursor {
        IdCursor::First => None,
        IdCursor::Below(id) => Some(id),
        // No position has it, so the page is empty and the last one.
        IdCursor::End => Some(0),
    };
    let mut rows: Vec<PositionView> = Vec::new();
    // One row more than asked for says whether there is another page.
    while rows.len() <= limit {
        let span = EpisodeSpan {
            wallets,
            market,
            which: Episodes::Settled { from, to },
            before: next.map(PositionId),
            limit: limit + 1 - rows.len(),
        };
        let page = match call.ask(Command::Query(Query::EpisodeSpan(span))).await? {
            Answer::EpisodeSpan(page) => page,
            other => return Err(unexpected(&other, call.now)),
        };
        rows.extend(page.rows);
        next = page.next;
        if next.is_none() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let catalog = &call.reads().catalog;
    let mut out = Vec::with_capacity(64 + ROW_BYTES * rows.len());
    object(&mut out, |o| {
        o.array("data", rows.iter().filter_map(|view| Row::of(&view.position, catalog)), row);
        match rows.last().filter(|_| has_more) {
            Some(last) => o.text("next_cursor", &IdCursor::write(last.position.id.0)),
            None => o.word("next_cursor", ""),
        }
    });
    Ok(Reply::json(out))
}

/// One settlement with what is known of its market.
pub struct Row<'a> {
    pub position: &'a Position,
    pub settled: &'a Settlement,
    pub texts: Texts<'a>,
    /// Cost per share, 10⁻⁶ USD.
    pub average: Cash,
    pub realized: Cash,
    pub result: &'static str,
    /// Label of the winner; `None` where there is no single one.
    pub resolved_outcome: Option<&'a str>,
}

impl<'a> Row<'a> {
    /// `None` for a position that was not paid out.
    pub fn of(position: &'a Position, catalog: &'a Catalog) -> Option<Row<'a>> {
        let settled = position.settlement.as_deref()?;
        let cell = catalog.of_instrument(position.instrument);
        let resolution = cell.and_then(|cell| cell.resolution());
        let resolved_outcome = cell.zip(resolution).and_then(|(cell, resolution)| match resolution {
            Resolution::Winner(winner) => Some(cell.outcome(winner)),
            Resolution::Split => None,
        });
        Some(Row {
            position,
            settled,
            texts: Texts::of(catalog, position.instrument),
            average: position.average().unwrap_or_default(),
            realized: settled.payout - settled.cost,
            result: result(settled, resolution),
            resolved_outcome,
        })
    }
}

/// Every word of `result`.
pub const RESULTS: [&str; 6] = ["won", "lost", "split", "partial", "expired", "unknown"];

/// What a payout was: the word of `result`.
fn result(settled: &Settlement, resolution: Option<Resolution>) -> &'static str {
    match settled.payout_per_share {
        Price::ONE => "won",
        Price(0) => "lost",
        Price(5_000) if resolution.is_some() => "split",
        per_share if per_share > Price::ONE => "unknown",
        _ if resolution.is_none() && settled.payout == settled.cost => "expired",
        Price(5_000) => "split",
        _ => "partial",
    }
}

fn row(out: &mut Vec<u8>, row: Row<'_>) {
    let Row { position, settled, texts, .. } = &row;
    object(out, |o| {
        o.integer("position_id", position.id.0);
        o.integer("wallet_id", position.wallet.0);
        o.text("market_id", texts.market());
        o.text_or_null("market_question", texts.question());
        o.text("outcome", texts.outcome());
        o.text("token_id", texts.token());
        o.qty("quantity", settled.qty);
        o.average("avg_entry_price", row.average);
        o.money("cost_basis", settled.cost);
        o.money("payout", settled.payout);
        o.price("payout_per_share", settled.payout_per_share);
        o.money("realized_pnl", row.realized);
        o.word("result", row.result);
        o.text_or_null("resolved_outcome", row.resolved_outcome);
        o.ts("settled_at", settled.at);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::amount::Qty;
    use engine::id::Outcome;

    #[test]
    fn every_payout_has_its_word() {
        let winner = Some(Resolution::Winner(Outcome::First));
        let rows = [
            // (per share, payout, cost, resolution, word)
            (10_000, 10, 4, winner, "won"),
            (0, 0, 4, winner, "lost"),
            (5_000, 5, 4, Some(Resolution::Split), "split"),
            (5_000, 5, 5, Some(Resolution::Split), "split"),
            (5_000, 5, 4, None, "split"),
            (2_500, 2, 4, None, "partial"),
            (2_500, 2, 4, winner, "partial"),
            (4_200, 4, 4, None, "expired"),
            (5_000, 5, 5, None, "expired"),
            (10_001, 11, 4, None, "unknown"),
        ];
        for (per_share, payout, cost, resolution, word) in rows {
            let settled = Settlement {
                qty: Qty::SHARE,
                cost: Cash(cost),
                payout_per_share: Price(per_share),
                payout: Cash(payout),
                at: Timestamp(1),
            };
            assert_eq!(result(&settled, resolution), word, "{per_share} {payout} {cost} {resolution:?}");
            assert!(RESULTS.contains(&word));
        }
        println!("results: {} cases", rows.len());
    }
}
