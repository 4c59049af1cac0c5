//! Pages of one user's history, newest first by id, for answers that are longer than a turn: exports, analyses,
//! settlements. Each page visits a bounded count of rows, so a page may be empty without being the last one.

use crate::command::{EpisodeSpan, Episodes, FillSpan};
use crate::shard::query::{Chosen, in_market, position_view};
use crate::user::rows::Rows;
use crate::user::{Position, User};
use crate::view::{FillView, HistoryPage, PositionView};

/// Rows that one page visits, matching or not: tens of nanoseconds each.
const ROWS_LOOKED_AT_MAX: usize = 4_096;

/// Fills of one page. Times of a user's fills ascend with their ids, so the span is found by search.
pub(super) fn fills(user: &User, span: &FillSpan) -> HistoryPage<FillView> {
    let wallets = Chosen::of(user, span.wallets);
    let rows = user.fills();
    let end = rows.partition_point(|fill| fill.at <= span.to && span.before.is_none_or(|before| fill.id < before));
    let first = rows.partition_point(|fill| fill.at < span.from);
    page(rows, first..end, span.limit, |fill| {
        let order = user.order(fill.order)?;
        let fits = in_market(span.market, order.terms.instrument) && wallets.contains(order.terms.wallet);
        fits.then(|| FillView { fill: fill.clone(), order: order.clone() })
    })
    .with_next(|fill| fill.id.0)
}

/// Episodes of one page.
pub(super) fn episodes(user: &User, span: &EpisodeSpan) -> HistoryPage<PositionView> {
    let wallets = Chosen::of(user, span.wallets);
    let rows = user.positions();
    let end = rows.partition_point(|position| span.before.is_none_or(|before| position.id < before));
    let wanted = |position: &Position| match span.which {
        Episodes::All => true,
        Episodes::Settled { from, to } => {
            position.settlement.as_ref().is_some_and(|settled| (from..=to).contains(&settled.at))
        }
    };
    page(rows, 0..end, span.limit, |position| {
        let fits = wallets.contains(position.wallet) && in_market(span.market, position.instrument);
        (fits && wanted(position)).then(|| position_view(position))
    })
    .with_next(|position| position.id.0)
}

/// The rows of a page, and the last row visited if there are more: the upper bound of the next page.
struct Page<'a, R, T> {
    rows: Vec<T>,
    next: Option<&'a R>,
}

impl<R, T> Page<'_, R, T> {
    fn with_next(self, id: impl Fn(&R) -> u64) -> HistoryPage<T> {
        HistoryPage { rows: self.rows, next: self.next.map(id) }
    }
}

fn page<R, T>(
    rows: &Rows<R>,
    span: std::ops::Range<usize>,
    limit: usize,
    shown: impl Fn(&R) -> Option<T>,
) -> Page<'_, R, T> {
    let mut page = Page { rows: Vec::with_capacity(limit.min(span.len())), next: None };
    let mut last = None;
    for (looked_at, (_, row)) in rows.range(span).rev().enumerate() {
        if page.rows.len() == limit || looked_at == ROWS_LOOKED_AT_MAX {
            page.next = last;
            break;
        }
        page.rows.extend(shown(row));
        last = Some(row);
    }
    page
}
