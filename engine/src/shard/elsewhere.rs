//! Answers that need rows which have left memory. The shard does not read them: it answers with [`Elsewhere`], which has
//! its part of the answer and all of the moment's state that the rest depends on. The holder of the rows completes it,
//! on another thread and later, to the answer that the shard would have given with all rows in memory.

use super::pages::Keys;
use super::{alerts, facts, history, lists, lookups, venue};
use crate::amount::Cash;
use crate::command::Answer;
use crate::departed::{Departed, EndedOrder};
use crate::id::{InstrumentId, OrderId, PositionId, TradeId, UserId, WalletId};
use crate::time::Timestamp;
use crate::user::{Position, User};
use crate::view::OrderView;

/// A query that is answered in part.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    owner: UserId,
    departed_upto: u64,
    rest: Box<Rest>,
}

impl Elsewhere {
    pub(super) fn new(owner: UserId, departed_upto: u64, rest: Box<Rest>) -> Elsewhere {
        Elsewhere { owner, departed_upto, rest }
    }

    /// The user whose rows it needs.
    pub fn owner(&self) -> UserId {
        self.owner
    }

    /// The LSN up to which rows have left memory: it needs those that left by then, and no others.
    pub fn departed_upto(&self) -> u64 {
        self.departed_upto
    }

    /// The answer. Reads at most as many rows as the shard visits for a query of this kind.
    ///
    /// # Errors
    /// Those of `departed`.
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        match *self.rest {
            Rest::Order(order) => order.complete(departed),
            Rest::OrderById(order) => order.complete(departed),
            Rest::OrderByClientId(order) => order.complete(departed),
            Rest::SignedOrders(orders) => orders.complete(departed),
            Rest::OrderHashes(hashes) => hashes.complete(departed),
            Rest::Orders(orders) => orders.complete(departed),
            Rest::Positions(positions) => positions.complete(departed),
            Rest::Fills(fills) => fills.complete(departed),
            Rest::FillSpan(fills) => fills.complete(departed),
            Rest::EpisodeSpan(episodes) => episodes.complete(departed),
            Rest::VenueOrders(orders) => orders.complete(departed),
            Rest::VenueTrades(trades) => trades.complete(departed),
            Rest::Facts(facts) => facts.complete(departed),
            Rest::OwedAlert(alert) => alert.complete(departed),
        }
    }
}

/// An answer, or the rest of it that needs rows which have left memory.
pub(super) type Asked = Result<Answer, Box<Rest>>;

/// What is missing of an answer, by its kind.
#[derive(Clone, Debug)]
pub(super) enum Rest {
    Order(lookups::Balance),
    OrderById(lookups::ById),
    OrderByClientId(lookups::ByClientId),
    SignedOrders(lookups::Signed),
    OrderHashes(lookups::Hashes),
    Orders(lists::Orders),
    Positions(lists::Positions),
    Fills(lists::Fills),
    FillSpan(history::Fills),
    EpisodeSpan(history::EpisodeRows),
    VenueOrders(venue::Orders),
    VenueTrades(venue::Trades),
    Facts(facts::Gapped),
    OwedAlert(alerts::Owed),
}

impl Rest {
    /// Passes each order of the part of an answer to `change`.
    pub fn each_order(&mut self, change: impl FnMut(&mut OrderView)) {
        match self {
            Rest::Order(order) => order.each_order(change),
            Rest::Orders(orders) => orders.each_order(change),
            Rest::VenueOrders(orders) => orders.each_order(change),
            _ => {}
        }
    }
}

/// The rows of a user that have left memory, as far as memory knows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gone {
    /// The highest ids; `None`: none of them has left.
    pub orders: Option<OrderId>,
    pub fills: Option<TradeId>,
    pub positions: Option<PositionId>,
    pub orders_count: usize,
    /// The newest moment in them.
    newest: Timestamp,
}

impl Gone {
    pub fn of(user: &User) -> Gone {
        let Some(departed) = user.departed() else { return Gone::default() };
        Gone {
            orders: departed.newest_order(),
            fills: departed.newest_fill(),
            positions: departed.newest_position(),
            orders_count: departed.orders as usize,
            newest: departed.newest(),
        }
    }

    /// Whether an order with this id may have left.
    pub fn may_be_order(&self, id: OrderId) -> bool {
        self.orders.is_some_and(|highest| id <= highest)
    }

    /// The highest id of an order that left, if it may be within these keys.
    pub fn order_within(&self, keys: Keys) -> Option<u64> {
        self.within(self.orders.map(|id| id.0), keys)
    }

    pub fn fill_within(&self, keys: Keys) -> Option<u64> {
        self.within(self.fills.map(|id| id.0), keys)
    }

    pub fn position_within(&self, keys: Keys) -> Option<u64> {
        self.within(self.positions.map(|id| id.0), keys)
    }

    fn within(&self, highest: Option<u64>, keys: Keys) -> Option<u64> {
        highest.filter(|highest| keys.is_from((self.newest, *highest)))
    }
}

/// What answers show beside an order: the present state of its wallet.
#[derive(Clone, Debug)]
pub(super) struct Around {
    /// Available cash of the wallets, in id order.
    available: Vec<(WalletId, Cash)>,
    /// Open positions, by instrument, then wallet.
    held: Vec<Position>,
}

impl Around {
    /// The wallets of a user, and those of its open positions that answers may show.
    pub fn of(user: &User, may_show: impl Fn(&Position) -> bool) -> Around {
        Around {
            available: user.wallets.iter().map(|wallet| (wallet.id, wallet.available())).collect(),
            held: user.open_positions().filter(|held| may_show(held)).cloned().collect(),
        }
    }

    fn available(&self, wallet: WalletId) -> Cash {
        let at = self.available.binary_search_by_key(&wallet, |(of, _)| *of);
        at.map_or_else(|_| Cash::default(), |at| self.available[at].1)
    }

    fn held(&self, wallet: WalletId, instrument: InstrumentId) -> Option<&Position> {
        let at = self.held.binary_search_by_key(&(instrument, wallet), |held| (held.instrument, held.wallet));
        at.ok().map(|at| &self.held[at])
    }

    /// An order that has left memory.
    pub fn view(&self, ended: EndedOrder) -> OrderView {
        let EndedOrder { order, fills } = ended;
        let (wallet, instrument) = (order.terms.wallet, order.terms.instrument);
        OrderView {
            order,
            fills: fills.into_iter().collect(),
            available: self.available(wallet),
            position: self.held(wallet, instrument).cloned(),
            is_replay: false,
            queue: None,
        }
    }
}

#[cfg(test)]
mod tests;
