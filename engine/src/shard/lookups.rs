//! Orders by their ids: the server's, the client's, and the hash of a signed order.

use super::elsewhere::{Around, Asked, Gone, Rest};
use super::query::order_view;
use crate::command::Answer;
use crate::departed::Departed;
use crate::id::OrderId;
use crate::reject::Reject;
use crate::time::Timestamp;
use crate::user::User;
use crate::user::placement_cash::{AtPlacement, Undone};
use crate::view::OrderView;

/// An order of memory whose available cash depends on rows that have left.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    view: OrderView,
    undone: Undone,
}

/// An order with the available cash of its first answer, if that is known.
pub(super) fn order(user: &User, id: OrderId, ids_since: Timestamp) -> Asked {
    let Some(order) = user.order(id) else {
        return match Gone::of(user).may_be_order(id) {
            true => Err(Rest::OrderById(ById::new(user, id, ids_since)).into()),
            false => Ok(Answer::Refused(Reject::OrderNotFound)),
        };
    };
    let mut view = order_view(user, order);
    match user.available_at_placement(order, ids_since) {
        AtPlacement::Known(available) => {
            view.available = available.unwrap_or(view.available);
            Ok(Answer::Order(view))
        }
        AtPlacement::Part(undone) => Err(Rest::Order(Balance { view, undone }).into()),
    }
}

impl Balance {
    pub fn each_order(&mut self, mut change: impl FnMut(&mut OrderView)) {
        change(&mut self.view);
    }

    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let Balance { mut view, undone } = self;
        view.available = undone.complete(&view.order, departed)?.unwrap_or(view.available);
        Ok(Answer::Order(view))
    }
}

/// An order that is not in memory.
#[derive(Clone, Debug)]
pub(super) struct ById {
    id: OrderId,
    ids_since: Timestamp,
    undone: Undone,
    around: Around,
}

impl ById {
    fn new(user: &User, id: OrderId, ids_since: Timestamp) -> ById {
        ById { id, ids_since, undone: user.undone_since(id), around: Around::of(user, |_| true) }
    }

    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let Some(ended) = departed.order(self.id)? else { return Ok(Answer::Refused(Reject::OrderNotFound)) };
        let mut view = self.around.view(ended);
        let counts = view.order.created_at >= self.ids_since;
        let request = if counts { departed.request_of(&view.order)? } else { None };
        let available = match request {
            Some(known) => Some(known.first.available),
            None => self.undone.complete(&view.order, departed)?,
        };
        view.available = available.unwrap_or(view.available);
        Ok(Answer::Order(view))
    }
}

/// An order by a client's id that is not in memory, or does not count there.
#[derive(Clone, Debug)]
pub(super) struct ByClientId {
    id: String,
    ids_since: Timestamp,
    around: Around,
}

/// The order of the newest request with this id, if the id counts.
pub(super) fn by_client_id(user: &User, id: String, ids_since: Timestamp) -> Asked {
    match user.remembered(&id, ids_since) {
        // An id that counts has no newer request.
        Some(known) => order(user, known.order, ids_since),
        None if Gone::of(user).orders.is_some() => {
            Err(Rest::OrderByClientId(ByClientId { id, ids_since, around: Around::of(user, |_| true) }).into())
        }
        None => Ok(Answer::Refused(Reject::OrderNotFound)),
    }
}

impl ByClientId {
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let known = departed.request(&self.id)?.filter(|known| known.order.order.created_at >= self.ids_since);
        let Some(known) = known else { return Ok(Answer::Refused(Reject::OrderNotFound)) };
        let mut view = self.around.view(known.order);
        view.available = known.request.first.available;
        Ok(Answer::Order(view))
    }
}

/// Signed orders, some of which are not in memory.
#[derive(Clone, Debug)]
pub(super) struct Signed {
    hashes: Vec<[u8; 32]>,
    found: Vec<Option<OrderId>>,
}

/// The orders with these hashes.
pub(super) fn signed(user: &User, hashes: Vec<[u8; 32]>) -> Asked {
    let found: Vec<_> = hashes.iter().map(|hash| user.signed_order(hash).map(|order| order.id)).collect();
    match Gone::of(user).orders.is_some() && found.contains(&None) {
        true => Err(Rest::SignedOrders(Signed { hashes, found }).into()),
        false => Ok(Answer::SignedOrders(found)),
    }
}

impl Signed {
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let found = self.hashes.iter().zip(self.found).map(|(hash, found)| match found {
            Some(order) => Ok(Some(order)),
            None => departed.signed_order(hash),
        });
        found.collect::<Result<_, _>>().map(Answer::SignedOrders)
    }
}

/// Hashes of orders, some of which are not in memory.
#[derive(Clone, Debug)]
pub(super) struct Hashes {
    found: Vec<Hash>,
}

#[derive(Clone, Debug)]
enum Hash {
    /// `None`: there is no such order, or it has no hash.
    Known(Option<[u8; 32]>),
    Of(OrderId),
}

/// The hashes of these orders.
pub(super) fn hashes(user: &User, orders: Vec<OrderId>) -> Asked {
    let gone = Gone::of(user);
    let found = orders.into_iter().map(|id| match user.order(id) {
        None if gone.may_be_order(id) => Hash::Of(id),
        order => Hash::Known(order.and_then(|order| order.terms.order_hash().copied())),
    });
    let found: Vec<Hash> = found.collect();
    let known = found.iter().map(|hash| match hash {
        Hash::Known(hash) => Some(*hash),
        Hash::Of(_) => None,
    });
    match known.collect() {
        Some(hashes) => Ok(Answer::OrderHashes(hashes)),
        None => Err(Rest::OrderHashes(Hashes { found }).into()),
    }
}

impl Hashes {
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let found = self.found.into_iter().map(|hash| match hash {
            Hash::Known(hash) => Ok(hash),
            Hash::Of(id) => Ok(departed.order(id)?.and_then(|ended| ended.order.terms.order_hash().copied())),
        });
        found.collect::<Result<_, _>>().map(Answer::OrderHashes)
    }
}
