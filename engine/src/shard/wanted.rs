//! Which commands need rows that left memory ([`crate::look_up`]), and in which order they run.
//!
//! Filters spare most placements a look-up: only ids and hashes that may have left memory are wanted. A cancel of an
//! order that is not in memory needs to know whether there was one.

use super::{Outbox, Shard, line};
use crate::command::{Answer, Command, IdSource, Placement, RequestIdentity};
use crate::id::{OrderId, UserId};
use crate::look_up::filters::{Filters, Kind, May, id_hash, order_hash};
use crate::look_up::{Findings, Found, LookUp, Wanted};
use crate::rules::IMPLICIT_ID_US;
use crate::time::Timestamp;
use crate::user::{DepartedRows, User};
use std::sync::Arc;

impl<R> Shard<R> {
    /// Asks these filters about names that are not in memory. Without filters every such name is looked up.
    pub fn filter_with(&mut self, filters: Arc<dyn Filters>) {
        self.filters = Some(filters);
    }

    /// The rows that a command needs and that are neither in memory nor found. Rows that left memory after the search
    /// count as not found.
    #[inline]
    pub(super) fn wanted(&self, owner: UserId, command: &Command, found: Option<&Findings>) -> Option<Wanted> {
        // Until rows have left memory this is one comparison.
        let upto = self.users.departed_upto();
        if upto == 0 {
            return None;
        }
        let user = self.users.get(owner)?;
        self.wanted_of(user, user.departed()?, command, found.filter(|found| found.upto == upto))
    }

    fn wanted_of(
        &self,
        user: &User,
        departed: &DepartedRows,
        command: &Command,
        found: Option<&Findings>,
    ) -> Option<Wanted> {
        let mut wanted = Wanted::default();
        match command {
            Command::Place(placement) => self.want_names(user, departed, placement, found, &mut wanted),
            Command::PlaceBatch(placements) => {
                placements.iter().for_each(|entry| self.want_names(user, departed, entry, found, &mut wanted));
            }
            Command::Cancel { order } => want_order(user, departed, *order, found, &mut wanted),
            Command::CancelOrders { orders } => {
                orders.iter().for_each(|order| want_order(user, departed, *order, found, &mut wanted));
                wanted.orders.sort_unstable();
                wanted.orders.dedup();
            }
            _ => return None,
        }
        (!wanted.is_empty()).then_some(wanted)
    }

    /// Adds the id and the hash of a placement.
    fn want_names(
        &self,
        user: &User,
        departed: &DepartedRows,
        placement: &Placement,
        found: Option<&Findings>,
        wanted: &mut Wanted,
    ) {
        if let Some(request) = &placement.request
            && !found.is_some_and(|found| found.requests.contains_key(&request.client_order_id))
            && !wanted.requests.contains(&request.client_order_id)
            && self.may_have_departed(user, departed, request)
        {
            wanted.requests.push(request.client_order_id.clone());
        }
        if let Some(hash) = &placement.order_hash
            && user.signed_order(hash).is_none()
            && !found.is_some_and(|found| found.signed.contains_key(hash))
            && !wanted.signed.contains(hash)
            && self.may_have(user.id, Kind::OrderHash, order_hash(hash), Timestamp(0))
        {
            wanted.signed.push(*hash);
        }
    }

    /// Whether a departed request with this id may be the newest one, and count.
    fn may_have_departed(&self, user: &User, departed: &DepartedRows, request: &RequestIdentity) -> bool {
        let id = &request.client_order_id;
        let counts_since = self.rules.ids_since(self.now);
        let since = match request.source {
            IdSource::Body | IdSource::Header => counts_since,
            // An earlier one changes nothing.
            IdSource::Implicit => counts_since.max(Timestamp(self.now.0.saturating_sub(IMPLICIT_ID_US))),
        };
        if departed.requests == 0
            || departed.newest() < since
            || !self.may_have(user.id, Kind::ClientOrderId, id_hash(id), since)
        {
            return false;
        }
        let newest_here = user.remembered(id, Timestamp(0));
        newest_here.is_none_or(|known| Some(known.order) <= departed.newest_order())
    }

    fn may_have(&self, user: UserId, kind: Kind, hash: u64, since: Timestamp) -> bool {
        self.filters.as_ref().is_none_or(|filters| filters.may_have(user, kind, hash, since) != May::No)
    }

    /// Hands a command back, to be looked up. Later commands of its user wait for it.
    #[cold]
    pub(super) fn hand_back(
        &mut self,
        (owner, command): (UserId, Command),
        received_at: Timestamp,
        wanted: Wanted,
        reply: R,
        outbox: &mut impl Outbox<R>,
    ) {
        let ids = line::shown_ids(&command);
        let answer = match self.line.begin_look_up(owner, received_at, ids, self.now) {
            Err(reject) => Answer::Refused(reject),
            Ok(ticket) => {
                let upto = self.users.departed_upto();
                Answer::LookUp(Box::new(LookUp { owner, command, received_at, ticket, upto, wanted }))
            }
        };
        outbox.answer_at_once(reply, answer);
    }

    /// Replaces a [`Command::Found`] by the command that was looked up, and returns what was found. `None`: that look-up
    /// is over, and nothing waits for it.
    #[cold]
    pub(super) fn take_back(&mut self, owner: UserId, command: &mut Command) -> Option<Box<Findings>> {
        let Command::Found(found) = std::mem::replace(command, Command::EndBeats) else { return None };
        let Found { ticket, command: looked_up, findings } = *found;
        *command = looked_up;
        self.line.end_look_up(owner, ticket, self.now).then_some(findings)
    }
}

/// Adds an order that is not in memory and may have left it.
fn want_order(user: &User, departed: &DepartedRows, order: OrderId, found: Option<&Findings>, wanted: &mut Wanted) {
    let is_known = || user.order(order).is_some() || found.is_some_and(|found| found.orders.contains_key(&order));
    if Some(order) <= departed.newest_order() && user.has_object(order.0) && !is_known() {
        wanted.orders.push(order);
    }
}
