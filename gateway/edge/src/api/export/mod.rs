//! CSV exports (gateway/docs/accounts.md §5): trades and settlements, streamed in pages through the history.
//!
//! All checks run before the first byte. Each page after it is one query and at most `PAGE_ROWS` lines, made when the peer
//! has taken the previous page (`http::body`).

mod lines;

use super::account::{market, settlements};
use super::refuse::unexpected;
use super::wallets;
use crate::app::Edge;
use crate::engine_client::AskError;
use crate::http::body::{Pages, Sink, Truncated};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::schema::{Kind, Param, TEXT};
use engine::command::{Answer, Command, EpisodeSpan, Episodes, FillSpan, MarketFilter, Query, Wallets};
use engine::id::{PositionId, TradeId, UserId};
use engine::time::Timestamp;
use engine::user::Tier;
use engine::user::key::entitlement;
use hyper::header::{self, HeaderValue};
use lines::Lines;
use std::rc::Rc;
use wire::fields::Params;

/// Rows of one page: some 40 KiB, made in well under a millisecond.
const PAGE_ROWS: u64 = 128;
const FAILS: &[Code] = &[Code::ValidationFailed, Code::UpgradeRequired, Code::WalletNotFound];

const PARAMS: &[Param] = &[
    Param::query(
        "wallet_id",
        TEXT,
        "`api`, `all` (the active ones), or the number of a wallet; without it all wallets, archived ones too.",
    ),
    settlements::MARKET,
    settlements::FROM,
    settlements::TO,
];

pub const ROUTES: &[Route] = &[
    Route::get("/v1/export/trades.csv", "export_trades")
        .shows_history()
        .about("Every trade as CSV, newest first; a paid plan's.")
        .params(PARAMS)
        .gives_kind(200, Kind::Csv, lines::TRADES_EXAMPLE)
        .auth(Auth::KeyOrJwt)
        .needs(Permission::Read)
        .fails(FAILS)
        .run(|call| Box::pin(export(call, ExportKind::Trades))),
    Route::get("/v1/export/settlements.csv", "export_settlements")
        .shows_history()
        .about("Every payout of a resolution as CSV, the newest position first; a paid plan's.")
        .params(PARAMS)
        .gives_kind(200, Kind::Csv, lines::SETTLEMENTS_EXAMPLE)
        .auth(Auth::KeyOrJwt)
        .needs(Permission::Read)
        .fails(FAILS)
        .run(|call| Box::pin(export(call, ExportKind::Settlements))),
];

/// The rows of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExportKind {
    Trades,
    Settlements,
}

/// An export in progress.
struct Export {
    edge: Rc<Edge>,
    user: UserId,
    kind: ExportKind,
    wallets: Wallets,
    market: Option<MarketFilter>,
    from: Timestamp,
    to: Timestamp,
    /// Rows that may still be written.
    left: u64,
}

async fn export(call: Call, kind: ExportKind) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    // By default all wallets, archived ones too: an export is a record.
    let wallets = wallets::in_query(&query, &mut params.problems).unwrap_or(Wallets::Any);
    let (from, to) = settlements::span(&query, &mut params.problems);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    if entitlement(call.caller().grant, call.now) == Tier::Free {
        return Err(Refusal::upgrade("export.csv", &call.front().settings.http.upgrade_url));
    }
    let export = Export {
        edge: Rc::clone(&call.edge),
        user: call.caller().user,
        kind,
        wallets,
        market: market(&call, &query),
        from,
        to,
        left: call.front().settings.export.max_rows,
    };
    // The first page refuses a wallet that is not the caller's, while the status is not sent yet.
    let first = export.page(None, call.now).await?;
    let attachment = HeaderValue::from_static(match kind {
        ExportKind::Trades => "attachment; filename=\"trades.csv\"",
        ExportKind::Settlements => "attachment; filename=\"settlements.csv\"",
    });
    let pages = Pages::new(|sink| export.run(first, sink));
    Ok(Reply::streamed("text/csv; charset=utf-8", pages).with_header(header::CONTENT_DISPOSITION, attachment))
}

/// Lines of a page, the number of its rows, and the id below which the next page begins.
struct Page {
    lines: Lines,
    rows: u64,
    next: Option<u64>,
}

impl Export {
    /// Sends the header line, then page after page.
    async fn run(mut self, first: Page, mut sink: Sink) -> Result<(), Truncated> {
        sink.send(match self.kind {
            ExportKind::Trades => Lines::header(lines::TRADES_EXAMPLE),
            ExportKind::Settlements => Lines::header(lines::SETTLEMENTS_EXAMPLE),
        })
        .await;
        let max_rows = self.left;
        let mut page = first;
        loop {
            // A page may hold one row more than may be written, which shows that there are more.
            let truncated = page.rows > self.left;
            self.left -= page.rows.min(self.left);
            sink.send(page.lines.text()).await;
            if truncated {
                let line = format!("# truncated: an export holds {max_rows} rows and there are more\r\n");
                sink.send(line.into_bytes()).await;
                return Ok(());
            }
            let Some(next) = page.next else { return Ok(()) };
            let now = self.edge.app.reads.clock.now();
            page = self.page(Some(next), now).await.map_err(|refusal| {
                tracing::warn!(user = %self.user, code = refusal.code().text(), "an export ended early: a page could not be read, and its connection is closed");
                Truncated
            })?;
        }
    }

    /// The next page below `before`.
    async fn page(&self, before: Option<u64>, now: Timestamp) -> Result<Page, Refusal> {
        let limit = PAGE_ROWS.min(self.left + 1) as usize;
        let Export { wallets, market, from, to, .. } = *self;
        let query = match self.kind {
            ExportKind::Trades => {
                Query::FillSpan(FillSpan { wallets, market, from, to, before: before.map(TradeId), limit })
            }
            ExportKind::Settlements => {
                let which = Episodes::Settled { from, to };
                Query::EpisodeSpan(EpisodeSpan { wallets, market, which, before: before.map(PositionId), limit })
            }
        };
        let answer = self.edge.engine.ask(self.user, Command::Query(query), now).await;
        let answer = answer.map_err(|late| match late {
            AskError::Busy => Code::ServerBusy,
            AskError::Unknown | AskError::Overshot(_) => Code::PersistenceUnknown,
        })?;
        let catalog = &self.edge.app.reads.catalog;
        let mut lines = Lines::default();
        let shown = usize::try_from(self.left).unwrap_or(usize::MAX);
        let (rows, next) = match answer {
            Answer::FillSpan(page) => {
                page.rows.iter().take(shown).for_each(|view| lines.trade(view, catalog));
                (page.rows.len(), page.next)
            }
            Answer::EpisodeSpan(page) => {
                page.rows.iter().take(shown).for_each(|view| lines.settlement(&view.position, catalog));
                (page.rows.len(), page.next)
            }
            other => return Err(unexpected(&other, now)),
        };
        Ok(Page { lines, rows: rows as u64, next })
    }
}

#[cfg(test)]
mod tests;
