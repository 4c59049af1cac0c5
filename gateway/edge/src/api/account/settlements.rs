//! Positions that a resolution paid out (gateway/docs/accounts.md §3).

use super::market;
use super::view::{CONDITION, QUESTION};
use crate::api::orders::view::Texts;
use crate::api::refuse::unexpected;
use crate::api::wallets;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::scalar::{self, ConditionId, Money, Quantity, TokenId, words};
use crate::http::schema::{Param, Schema, TEXT};
use engine::amount::Price;
use engine::command::{Answer, Command, EpisodeSpan, Episodes, Query, Wallets};
use engine::id::PositionId;
use engine::market::catalog::Catalog;
use engine::market::terms::Resolution;
use engine::time::Timestamp;
use engine::user::{self, Position};
use engine::view::PositionView;
use std::borrow::Cow;
use wire::cursor::IdCursor;
use wire::fields::{Params, Problems};
use wire::instant;
use wire::query::Query as QueryText;

const LIMIT_MAX: u64 = 500;
const LIMIT_DEFAULT: u64 = 100;

pub const ROUTES: &[Route] = &[Route::get("/v1/account/settlements", "list_settlements")
    .shows_history()
    .about("Positions that a resolution paid out, the newest position first.")
    .params(&[
        Param::query("limit", Schema::Integer { min: 1, max: LIMIT_MAX as i64 }, "Rows of a page; default: 100."),
        Param::query("cursor", TEXT, "The `next_cursor` of the page before."),
        WALLET,
        MARKET,
        FROM,
        TO,
    ])
    .gives::<SettlementPage<'_>>(200)
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

words! {
    pub SettlementResult = "won", "lost", "split", "partial", "expired", "unknown";
}

record! {
    /// A position that a resolution paid out.
    pub struct Settlement<'a> {
        position_id: u64 = 7_001;
        wallet_id: u64 = 3;
        market_id: ConditionId<'a> = CONDITION.into();
        market_question: Option<Cow<'a, str>> = Some(QUESTION.into());
        outcome: Cow<'a, str> = "Yes".into(), "Label of what was held.";
        token_id: TokenId<'a> = "81140002".into();
        quantity: Quantity = Quantity::of("50"), "Shares that were held.";
        avg_entry_price: scalar::Price = scalar::Price::of("0.42"), "Cost per share, fees excluded.";
        cost_basis: Money = Money::of("21");
        payout: Money = Money::of("50");
        payout_per_share: scalar::Price = scalar::Price::of("1");
        realized_pnl: Money = Money::of("29"), "Payout less cost.";
        result: SettlementResult = "won".into();
        resolved_outcome: Option<Cow<'a, str>> = Some("Yes".into()), "Label of the winner; null for a split.";
        settled_at: scalar::Timestamp = scalar::Timestamp::of("2026-10-04T00:10:31Z");
    }

    /// One page of settlements.
    pub struct SettlementPage<'a> {
        data: Vec<Settlement<'a>> = Vec::example();
        next_cursor: String = String::new(), "Empty after the last page.";
    }
}

/// The first and the last moment that `from` and `to` allow; without them all moments.
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
        // No position has the id 0, so the page is empty and the last one.
        IdCursor::End => Some(0),
    };
    let mut rows: Vec<PositionView> = Vec::new();
    // One row more than the limit shows whether there is another page.
    while rows.len() <= limit {
        let span = EpisodeSpan {
            wallets,
            market,
            which: Episodes::Settled { from, to },
            before: next.map(PositionId),
            limit: limit + 1 - rows.len(),
            limit_elsewhere: 0,
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
    let last = rows.last().filter(|_| has_more);
    let next_cursor = last.map(|last| IdCursor::write(last.position.id.0)).unwrap_or_default();
    let catalog = &call.reads().catalog;
    let data = rows.iter().filter_map(|view| Settlement::new(&view.position, catalog)).collect();
    Ok(Reply::json(&SettlementPage { data, next_cursor }))
}

impl<'a> Settlement<'a> {
    /// `None` for a position that was not paid out.
    pub fn new(position: &Position, catalog: &'a Catalog) -> Option<Settlement<'a>> {
        let settled = position.settlement.as_deref()?;
        let texts = Texts::of(catalog, position.instrument);
        let cell = catalog.of_instrument(position.instrument);
        let resolution = cell.and_then(|cell| cell.resolution());
        let resolved_outcome = cell.zip(resolution).and_then(|(cell, resolution)| match resolution {
            Resolution::Winner(winner) => Some(cell.outcome(winner).into()),
            Resolution::Split => None,
        });
        Some(Settlement {
            position_id: position.id.0,
            wallet_id: position.wallet.0,
            market_id: texts.market().into(),
            market_question: texts.question().map(Into::into),
            outcome: texts.outcome().into(),
            token_id: texts.token().into(),
            quantity: settled.qty.into(),
            avg_entry_price: scalar::Price(position.average().unwrap_or_default()),
            cost_basis: Money(settled.cost),
            payout: Money(settled.payout),
            payout_per_share: settled.payout_per_share.into(),
            realized_pnl: Money(settled.payout - settled.cost),
            result: result(settled, resolution).into(),
            resolved_outcome,
            settled_at: scalar::Timestamp(settled.at),
        })
    }

    /// The same, with `change` made to the texts from outside.
    pub fn with_texts(self, change: impl Fn(Cow<'a, str>) -> Cow<'a, str>) -> Settlement<'a> {
        Settlement {
            market_question: self.market_question.map(&change),
            outcome: change(self.outcome),
            resolved_outcome: self.resolved_outcome.map(&change),
            ..self
        }
    }
}

/// The kind of a payout: a word of [`SettlementResult`].
fn result(settled: &user::Settlement, resolution: Option<Resolution>) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;
    use engine::amount::{Cash, Qty};
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
            let settled = user::Settlement {
                qty: Qty::SHARE,
                cost: Cash(cost),
                payout_per_share: Price(per_share),
                payout: Cash(payout),
                at: Timestamp(1),
            };
            assert_eq!(
                SettlementResult::from(result(&settled, resolution)),
                word.into(),
                "{per_share} {payout} {cost} {resolution:?}"
            );
        }
        println!("results: {} cases", rows.len());
    }
}
