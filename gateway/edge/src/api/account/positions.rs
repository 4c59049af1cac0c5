//! The list of positions. It has no pages, so a long one is streamed: its closed positions are read while it is sent, and
//! it never is in memory as a whole.
//!
//! The list is that of one moment: the first answer has the open positions and the newest closed ones, and an open one
//! that closes while the list is sent is passed over later. Prices are those of the moment at which a part is made.

use super::valuation::Marks;
use super::view::{ListOrPage, Position, PositionPage};
use super::{NO_MARKET, market, marks};
use crate::api::refuse::unexpected;
use crate::api::wallets;
use crate::app::Edge;
use crate::http::body::{Pages, Sink, Truncated};
use crate::http::call::{Call, unanswered};
use crate::http::record::write_record;
use crate::http::reply::{Outcome, Refusal, Reply};
use engine::command::{Answer, Command, EpisodeSpan, Episodes, MarketFilter, Query, Wallets};
use engine::id::{MarketId, PositionId, UserId};
use engine::time::{Timestamp, UtcDay};
use engine::view::{HistoryPage, PositionView};
use std::rc::Rc;
use wire::fields::Params;

/// Closed positions of the first answer at most. A list without more of them is sent as a whole.
pub(super) const CLOSED_FIRST: usize = 512;
/// Closed positions of a later page; the second where some of them have left memory.
const PAGE_ROWS: usize = 512;
const PAGE_ROWS_ELSEWHERE: usize = 2_030;
/// Positions of one piece of a body: some 60 KiB, made in well under a millisecond.
const PIECE_ROWS: usize = 128;

pub async fn positions(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let open = params.choice("status", &[("OPEN", true), ("CLOSED", false)]);
    let envelope = params.boolean("envelope").unwrap_or(false);
    let wallets = wallets::in_query(&query, &mut params.problems).unwrap_or(Wallets::Api);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let market = market(&call, &query).map(|filter| match filter {
        MarketFilter::Only(market) => market,
        MarketFilter::Unknown => NO_MARKET,
    });
    // Open ones are asked for in any case: which they are is needed if the list is long.
    let asked = Query::Positions { wallets, market, open: open.filter(|open| *open), closed_max: CLOSED_FIRST };
    let mut held = match call.ask(Command::Query(asked)).await? {
        Answer::Positions(rows) => rows,
        other => return Err(unexpected(&other, call.now)),
    };
    let closed = held.split_off(held.partition_point(|row| row.position.is_open()));
    let held_ids = ids(&held);
    if open == Some(false) {
        held.clear();
    }
    let next = closed.last().map(|row| row.position.id).filter(|_| closed.len() >= CLOSED_FIRST);
    let rows = [held, closed].concat();
    let Some(next) = next else {
        let rows = rows.iter().map(|row| Position::new(row, marks(&call))).collect();
        return Ok(Reply::json(&if envelope {
            ListOrPage::Page(PositionPage::new(rows))
        } else {
            ListOrPage::List(rows)
        }));
    };
    let user = call.caller().user;
    let mut rest = Rest { edge: Rc::clone(&call.edge), user, wallets, market, held: held_ids, shown_from: None };
    // An envelope begins with the count.
    let count = match envelope {
        true => Some(rows.len() as u64 + rest.count(next, call.now).await?),
        false => None,
    };
    rest.shown_from = rest.edge.app.reads.history_from(user);
    Ok(Reply::streamed("application/json", Pages::new(|sink| rest.send(rows, next, count, sink))))
}

/// The ids of open positions, ascending.
fn ids(held: &[PositionView]) -> Vec<PositionId> {
    let mut ids: Vec<PositionId> = held.iter().map(|row| row.position.id).collect();
    ids.sort_unstable();
    ids
}

/// The closed positions of a list after those of its first answer.
struct Rest {
    edge: Rc<Edge>,
    user: UserId,
    wallets: Wallets,
    market: Option<MarketId>,
    /// Positions that were open then.
    held: Vec<PositionId>,
    /// The first day of the history that is shown, as the head of the response says.
    shown_from: Option<UtcDay>,
}

impl Rest {
    /// How many there are below `next`. The deadline of the request limits how long this takes.
    async fn count(&self, next: PositionId, now: Timestamp) -> Result<u64, Refusal> {
        let (mut count, mut next) = (0, Some(next));
        while let Some(before) = next {
            let page = self.page(before, now).await?;
            count += page.rows.len() as u64;
            next = page.next.map(PositionId);
            tokio::task::yield_now().await;
        }
        Ok(count)
    }

    /// Sends the list: `rows`, then those below `next`. With a count, in an envelope.
    async fn send(
        self,
        mut rows: Vec<PositionView>,
        next: PositionId,
        count: Option<u64>,
        mut sink: Sink,
    ) -> Result<(), Truncated> {
        let (head, tail) = ends(count);
        let (mut piece, mut sent, mut next) = (head, 0, Some(next));
        loop {
            for some in rows.chunks(PIECE_ROWS) {
                let reads = &self.edge.app.reads;
                let marks = Marks { catalog: &reads.catalog, books: &reads.books };
                for row in some {
                    if sent > 0 {
                        piece.push(b',');
                    }
                    write_record(&mut piece, &Position::new(row, marks));
                    sent += 1;
                }
                sink.send(std::mem::take(&mut piece)).await;
            }
            if rows.is_empty() {
                // Other tasks run between pages.
                sink.send(Vec::new()).await;
            }
            let Some(before) = next else { break };
            let page = self.page(before, self.edge.app.reads.clock.now()).await.map_err(|refusal| {
                tracing::warn!(user = %self.user, code = refusal.code().text(), "a list of positions ended early: a part could not be read, and its connection is closed");
                Truncated
            })?;
            // It may lack what was cut since, which the head does not say.
            if self.edge.app.reads.history_from(self.user) != self.shown_from {
                tracing::warn!(user = %self.user, "a list of positions ended early: the history was cut meanwhile, and its connection is closed");
                return Err(Truncated);
            }
            (rows, next) = (page.rows, page.next.map(PositionId));
        }
        if count.is_some_and(|count| count != sent) {
            tracing::warn!(user = %self.user, ?count, sent, "a list of positions changed while it was sent, and its connection is closed");
            return Err(Truncated);
        }
        sink.send(tail).await;
        Ok(())
    }

    /// The closed positions below `before`, without those that were open at the first answer.
    async fn page(&self, before: PositionId, now: Timestamp) -> Result<HistoryPage<PositionView>, Refusal> {
        let span = EpisodeSpan {
            wallets: self.wallets,
            market: self.market.map(MarketFilter::Only),
            which: Episodes::Closed,
            before: Some(before),
            limit: PAGE_ROWS,
            limit_elsewhere: PAGE_ROWS_ELSEWHERE,
        };
        let asked = self.edge.engine.ask(self.user, Command::Query(Query::EpisodeSpan(span)), now).await;
        match asked.map_err(unanswered)? {
            Answer::EpisodeSpan(mut page) => {
                page.rows.retain(|row| self.held.binary_search(&row.position.id).is_err());
                Ok(page)
            }
            other => Err(unexpected(&other, now)),
        }
    }
}

/// What is before and after the rows.
fn ends(count: Option<u64>) -> (Vec<u8>, Vec<u8>) {
    let mut text = Vec::new();
    match count {
        None => write_record(&mut text, &Vec::<Position<'_>>::new()),
        Some(count) => write_record(&mut text, &PositionPage::without_rows(count)),
    }
    // The rows are the last part of it.
    let at = text.iter().rposition(|byte| *byte == b']').expect("a list of rows");
    let tail = text.split_off(at);
    (text, tail)
}

#[cfg(test)]
mod tests;
