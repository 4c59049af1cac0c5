//! CSV exports (gateway/docs/accounts.md §5): trades and settlements, streamed in pages through the history.
//!
//! All checks run before the first byte. Each page after it is one query. A page from memory has at most `PAGE_ROWS`
//! lines, made when the peer has taken the previous page (`http::body`). One with rows that have left memory is longer; it
//! is sent in pieces of that size, and the next one is read meanwhile.

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
use engine::market::catalog::Catalog;
use engine::time::{Timestamp, UtcDay};
use engine::user::Tier;
use engine::user::key::entitlement;
use engine::view::{FillView, PositionView};
use hyper::header::{self, HeaderValue};
use lines::Lines;
use std::ops::Range;
use std::rc::Rc;
use wire::fields::Params;

/// Rows of one page from memory, and of one piece of a body: some 40 KiB, made in well under a millisecond.
const PAGE_ROWS: usize = 128;
/// Rows of one page with rows that have left memory: some 500 KiB, and two pages at most. The pieces that the store reads
/// double up to 1,024 rows, so this is what seven of them have, less the row that shows that there are more.
const PAGE_ROWS_ELSEWHERE: usize = 2_030;
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
    /// The first day of the history that is shown, as the head of the response says.
    shown_from: Option<UtcDay>,
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
    let mut export = Export {
        edge: Rc::clone(&call.edge),
        user: call.caller().user,
        kind,
        wallets,
        market: market(&call, &query),
        from,
        to,
        left: call.front().settings.export.max_rows,
        shown_from: None,
    };
    // The first page refuses a wallet that is not the caller's, while the status is not sent yet.
    let first = export.page(None, call.now).await?;
    export.shown_from = export.edge.app.reads.history_from(export.user);
    let attachment = HeaderValue::from_static(match kind {
        ExportKind::Trades => "attachment; filename=\"trades.csv\"",
        ExportKind::Settlements => "attachment; filename=\"settlements.csv\"",
    });
    let pages = Pages::new(|sink| export.run(first, sink));
    Ok(Reply::streamed("text/csv; charset=utf-8", pages).with_header(header::CONTENT_DISPOSITION, attachment))
}

/// Rows of a page, and the id below which the next page begins.
struct Page {
    rows: Rows,
    next: Option<u64>,
}

enum Rows {
    Trades(Vec<FillView>),
    Settlements(Vec<PositionView>),
}

impl Rows {
    fn len(&self) -> usize {
        match self {
            Rows::Trades(rows) => rows.len(),
            Rows::Settlements(rows) => rows.len(),
        }
    }

    /// The lines of some rows.
    fn lines(&self, rows: Range<usize>, catalog: &Catalog) -> Vec<u8> {
        let mut lines = Lines::default();
        match self {
            Rows::Trades(all) => all[rows].iter().for_each(|view| lines.trade(view, catalog)),
            Rows::Settlements(all) => all[rows].iter().for_each(|view| lines.settlement(&view.position, catalog)),
        }
        lines.text()
    }
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
            let rows = page.rows.len() as u64;
            let truncated = rows > self.left;
            let shown = rows.min(self.left);
            self.left -= shown;
            let next = page.next.filter(|_| !truncated);
            let ((), ahead) = tokio::join!(self.send(&page.rows, shown as usize, &mut sink), self.ahead(rows, next));
            if truncated {
                let line = format!("# truncated: an export holds {max_rows} rows and there are more\r\n");
                sink.send(line.into_bytes()).await;
                return Ok(());
            }
            let Some(next) = next else { return Ok(()) };
            page = match ahead {
                Some(page) => page,
                None => self.page(Some(next), self.edge.app.reads.clock.now()).await.map_err(|refusal| {
                    tracing::warn!(user = %self.user, code = refusal.code().text(), "an export ended early: a page could not be read, and its connection is closed");
                    Truncated
                })?,
            };
            // Later pages may lack what was cut since, which the head does not say.
            if self.edge.app.reads.history_from(self.user) != self.shown_from {
                tracing::warn!(user = %self.user, "an export ended early: the history was cut meanwhile, and its connection is closed");
                return Err(Truncated);
            }
        }
    }

    /// Sends the lines of the first `shown` rows, in pieces.
    async fn send(&self, rows: &Rows, shown: usize, sink: &mut Sink) {
        let mut begin = 0;
        loop {
            let end = shown.min(begin + PAGE_ROWS);
            sink.send(rows.lines(begin..end, &self.edge.app.reads.catalog)).await;
            begin = end;
            if begin == shown {
                return;
            }
        }
    }

    /// The page after one with this many rows, if that is sent in pieces. `None` also if it cannot be read now: a slow
    /// peer may have let its deadline pass.
    async fn ahead(&self, rows: u64, next: Option<u64>) -> Option<Page> {
        let next = next.filter(|_| rows > PAGE_ROWS as u64)?;
        self.page(Some(next), self.edge.app.reads.clock.now()).await.ok()
    }

    /// The next page below `before`.
    async fn page(&self, before: Option<u64>, now: Timestamp) -> Result<Page, Refusal> {
        let most = usize::try_from(self.left + 1).unwrap_or(usize::MAX);
        let (limit, limit_elsewhere) = (PAGE_ROWS.min(most), PAGE_ROWS_ELSEWHERE.min(most));
        let Export { wallets, market, from, to, .. } = *self;
        let query = match self.kind {
            ExportKind::Trades => {
                let before = before.map(TradeId);
                Query::FillSpan(FillSpan { wallets, market, from, to, before, limit, limit_elsewhere })
            }
            ExportKind::Settlements => {
                let (which, before) = (Episodes::Settled { from, to }, before.map(PositionId));
                Query::EpisodeSpan(EpisodeSpan { wallets, market, which, before, limit, limit_elsewhere })
            }
        };
        let answer = self.edge.engine.ask(self.user, Command::Query(query), now).await;
        let answer = answer.map_err(|late| match late {
            AskError::Busy => Code::ServerBusy,
            AskError::Unknown | AskError::Overshot(_) => Code::PersistenceUnknown,
        })?;
        Ok(match answer {
            Answer::FillSpan(page) => Page { rows: Rows::Trades(page.rows), next: page.next },
            Answer::EpisodeSpan(page) => Page { rows: Rows::Settlements(page.rows), next: page.next },
            other => return Err(unexpected(&other, now)),
        })
    }
}

#[cfg(test)]
mod tests;
