//! The venue-shaped lists: orders and trades of one user, newest first, from any position in a long history.
//!
//! A page is found by its key, not by counting, and one query visits at most [`ROWS_PER_QUERY_MAX`] rows: for a page of
//! rare rows the caller queries again from where this one stopped.

use super::elsewhere::{Around, Asked, Gone, Rest};
use super::lists::{fill_key, fill_view, fills_within, order_key};
use super::pages::{Keys, Paged, VenueList, newest_first, walk};
use super::query::{Chosen, order_view};
use crate::command::{Answer, Statuses, VenueFilter};
use crate::departed::Departed;
use crate::id::{OrderId, TradeId};
use crate::order::Order;
use crate::user::{Position, User};
use crate::view::{FillView, OrderView};

/// Maximum count of rows that one query visits: some 0.1 ms.
const ROWS_PER_QUERY_MAX: usize = 10_000;

/// A page of orders that goes on with those that have left memory.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    filter: VenueFilter,
    wallets: Chosen,
    page: Paged<VenueList<OrderView>>,
    around: Around,
}

/// A page of orders.
pub(super) fn orders(user: &User, filter: VenueFilter) -> Asked {
    let wallets = Chosen::of(user, filter.wallets);
    let keys = keys(&filter);
    let (fits, view) = (|order: &Order| order_fits(&filter, &wallets, order), |order: &Order| order_view(user, order));
    let page = VenueList::new(filter.limit, ROWS_PER_QUERY_MAX);
    // Open orders have an index, so the length of the history does not matter.
    let page = if filter.statuses == Statuses::OPEN {
        let open = user.open_orders().rev().skip_while(|order| !keys.is_below(order_key(order)));
        let open = open.take_while(|order| keys.is_from(order_key(order)));
        walk(page, keys, None, open, |order| order_key(order), |order| fits(order), view)
    } else {
        let (gone, rows) = (Gone::of(user).order_within(keys), newest_first(user.orders(), keys, order_key));
        walk(page, keys, gone, rows, |order| order_key(order), |order| fits(order), view)
    };
    match page.whole() {
        Ok(page) => Ok(Answer::VenueOrders(page.into_page())),
        Err(page) => {
            let around = Around::of(user, |held| is_about(&filter, &wallets, held));
            Err(Rest::VenueOrders(Orders { filter, wallets, page, around }).into())
        }
    }
}

impl Orders {
    /// Passes each row of memory to `change`.
    pub fn each_order(&mut self, change: impl FnMut(&mut OrderView)) {
        self.page.rows_mut().for_each(change);
    }

    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let Orders { filter, wallets, page, around } = self;
        let page = page.complete(
            |before| departed.orders(None, Some(OrderId(before))),
            |row| order_key(&row.order),
            |row| order_fits(&filter, &wallets, &row.order),
            |row| around.view(row),
        )?;
        Ok(Answer::VenueOrders(page.into_page()))
    }
}

/// A page of trades that goes on with those that have left memory.
#[derive(Clone, Debug)]
pub(super) struct Trades {
    filter: VenueFilter,
    wallets: Chosen,
    page: Paged<VenueList<FillView>>,
}

/// A page of trades.
pub(super) fn trades(user: &User, filter: VenueFilter) -> Asked {
    let wallets = Chosen::of(user, filter.wallets);
    let keys = keys(&filter);
    let fits = |order: &Order| covers(&filter, &wallets, order);
    let (gone, rows) = (Gone::of(user).fill_within(keys), fills_within(user, keys));
    let page = VenueList::new(filter.limit, ROWS_PER_QUERY_MAX);
    let page = walk(page, keys, gone, rows, |row| fill_key(row.0), |row| fits(row.1), fill_view);
    match page.whole() {
        Ok(page) => Ok(Answer::VenueTrades(page.into_page())),
        Err(page) => Err(Rest::VenueTrades(Trades { filter, wallets, page }).into()),
    }
}

impl Trades {
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let Trades { filter, wallets, page } = self;
        let page = page.complete(
            |before| departed.fills(Some(TradeId(before))),
            |row| fill_key(&row.0),
            |row| covers(&filter, &wallets, &row.1),
            |(fill, order)| FillView { fill, order },
        )?;
        Ok(Answer::VenueTrades(page.into_page()))
    }
}

/// The rows within the filter's times and after its cursor; only one if it names one.
fn keys(filter: &VenueFilter) -> Keys {
    let from = filter.since.unwrap_or(Keys::ALL.from);
    let keys = Keys { from, first: filter.only.unwrap_or(0), ..Keys::ALL };
    let after_only = filter.only.and_then(|only| only.checked_add(1));
    keys.below(filter.until.map(|until| (until, 0))).below(filter.after).before(after_only)
}

fn order_fits(filter: &VenueFilter, wallets: &Chosen, order: &Order) -> bool {
    filter.statuses.contains(order.status()) && covers(filter, wallets, order)
}

fn covers(filter: &VenueFilter, wallets: &Chosen, order: &Order) -> bool {
    let instrument = order.terms.instrument;
    filter.market.is_none_or(|market| market == instrument.market())
        && filter.instrument.is_none_or(|only| only == instrument)
        && wallets.contains(order.terms.wallet)
}

/// Whether an order that fits may show this position.
fn is_about(filter: &VenueFilter, wallets: &Chosen, held: &Position) -> bool {
    filter.market.is_none_or(|market| market == held.instrument.market()) && wallets.contains(held.wallet)
}
