//! Pages of one user's history, newest first by id, for answers that are longer than a turn: exports, analyses,
//! settlements. Each page visits a bounded count of rows, so a page may be empty without being the last one.

use super::elsewhere::{Asked, Gone, Rest};
use super::lists::{fill_key, fill_view, fills_within};
use super::pages::{Key, Keys, Paged, Stretch, newest_first, walk};
use super::query::{Chosen, in_market, position_view};
use crate::command::{Answer, EpisodeSpan, Episodes, FillSpan};
use crate::departed::Departed;
use crate::id::{PositionId, TradeId};
use crate::order::Order;
use crate::time::Timestamp;
use crate::user::{Position, User};
use crate::view::{FillView, PositionView};

/// Rows that one page visits, matching or not: tens of nanoseconds each.
const ROWS_LOOKED_AT_MAX: usize = 4_096;

/// A page of fills that goes on with those that have left memory.
#[derive(Clone, Debug)]
pub(super) struct Fills {
    span: FillSpan,
    wallets: Chosen,
    page: Paged<Stretch<FillView>>,
}

/// Fills of one page. Times of a user's fills ascend with their ids, so the span is found by search.
pub(super) fn fills(user: &User, span: FillSpan) -> Asked {
    let wallets = Chosen::of(user, span.wallets);
    let after = span.to.0.checked_add(1).map(|end| (Timestamp(end), 0));
    let keys = Keys { from: span.from, ..Keys::ALL }.below(after).before(span.before.map(|id| id.0));
    let gone = Gone::of(user).fill_within(keys);
    let fits = |order: &Order| fill_fits(&span, &wallets, order);
    let (rows, page) = (fills_within(user, keys), Stretch::new(span.limit, ROWS_LOOKED_AT_MAX));
    let page = walk(page, keys, gone, rows, |row| fill_key(row.0), |row| fits(row.1), fill_view);
    match page.whole() {
        Ok(page) => Ok(Answer::FillSpan(page.into_page())),
        Err(page) => {
            let page = page.widened(span.limit_elsewhere);
            Err(Rest::FillSpan(Fills { span, wallets, page }).into())
        }
    }
}

impl Fills {
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let Fills { span, wallets, page } = self;
        let page = page.complete(
            |before| departed.fills(Some(TradeId(before))),
            |row| fill_key(&row.0),
            |row| fill_fits(&span, &wallets, &row.1),
            |(fill, order)| FillView { fill, order },
        )?;
        Ok(Answer::FillSpan(page.into_page()))
    }
}

fn fill_fits(span: &FillSpan, wallets: &Chosen, order: &Order) -> bool {
    in_market(span.market, order.terms.instrument) && wallets.contains(order.terms.wallet)
}

/// A page of episodes that goes on with those that have left memory.
#[derive(Clone, Debug)]
pub(super) struct EpisodeRows {
    span: EpisodeSpan,
    wallets: Chosen,
    page: Paged<Stretch<PositionView>>,
}

/// Episodes of one page.
pub(super) fn episodes(user: &User, span: EpisodeSpan) -> Asked {
    let wallets = Chosen::of(user, span.wallets);
    let keys = Keys::ALL.before(span.before.map(|id| id.0));
    let gone = Gone::of(user).position_within(keys);
    let fits = |position: &Position| episode_fits(&span, &wallets, position);
    let rows = newest_first(user.positions(), keys, episode_key);
    let page = Stretch::new(span.limit, ROWS_LOOKED_AT_MAX);
    let page = walk(page, keys, gone, rows, |row| episode_key(row), |row| fits(row), position_view);
    match page.whole() {
        Ok(page) => Ok(Answer::EpisodeSpan(page.into_page())),
        Err(page) => {
            let page = page.widened(span.limit_elsewhere);
            Err(Rest::EpisodeSpan(EpisodeRows { span, wallets, page }).into())
        }
    }
}

impl EpisodeRows {
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let EpisodeRows { span, wallets, page } = self;
        let page = page.complete(
            |before| departed.positions(Some(PositionId(before))),
            episode_key,
            |position| episode_fits(&span, &wallets, position),
            |position| position_view(&position),
        )?;
        Ok(Answer::EpisodeSpan(page.into_page()))
    }
}

fn episode_key(position: &Position) -> Key {
    (position.opened_at, position.id.0)
}

fn episode_fits(span: &EpisodeSpan, wallets: &Chosen, position: &Position) -> bool {
    let is_wanted = match span.which {
        Episodes::All => true,
        Episodes::Closed => !position.is_open(),
        Episodes::Settled { from, to } => {
            position.settlement.as_ref().is_some_and(|settled| (from..=to).contains(&settled.at))
        }
    };
    is_wanted && wallets.contains(position.wallet) && in_market(span.market, position.instrument)
}
