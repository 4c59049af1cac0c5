//! Rows that have left the memory of a world, in maps.

use super::property::Dice;
use super::world::World;
use crate::command::Envelope;
use crate::departed::{Departed, EndedOrder, EndedRequest, Leaving};
use crate::id::{MarketId, OrderId, PositionId, TradeId, UserId};
use crate::look_up::LookUp;
use crate::look_up::filters::{FilterKey, Filters, Kind, May, keys_of};
use crate::order::{Fill, Order};
use crate::time::Timestamp;
use crate::user::{Position, Users};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// A fault of the store, to see that a test finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Requests are not found.
    Requests,
    /// Positions are not found.
    Positions,
    /// Orders are not found.
    Orders,
    /// Hashes are not found.
    Hashes,
    /// Fills are in another order.
    Fills,
    /// The older of two requests with one id is found.
    OldestRequest,
    /// A filter says no.
    Filter,
}

/// Rows that have left memory.
pub struct Store {
    rows: BTreeMap<UserId, Rows>,
    filter: Arc<TestFilter>,
    dice: Dice,
    pub fault: Option<Fault>,
    /// The state's number of the log.
    upto: u64,
    /// Look-ups, and those that were asked for again because more rows had left.
    pub look_ups: usize,
    pub again: usize,
    /// What was found.
    pub found: usize,
    /// The look-up before was for the same command.
    is_same: bool,
}

#[derive(Default)]
struct Rows {
    orders: BTreeMap<OrderId, EndedOrder>,
    requests: Vec<EndedRequest>,
    positions: BTreeMap<PositionId, Position>,
}

/// An exact filter with some false answers.
#[derive(Debug)]
struct TestFilter {
    keys: Mutex<BTreeSet<FilterKey>>,
    /// Of a hundred names that are not there, this many may be; 100: nothing is known.
    false_percent: u64,
    fault: bool,
}

impl Filters for TestFilter {
    fn may_have(&self, user: UserId, kind: Kind, hash: u64, since: Timestamp) -> May {
        if self.false_percent == 100 && !self.fault {
            return May::Unknown;
        }
        let from = FilterKey { user, kind, hash, hour: since.hour() };
        let to = FilterKey { hour: u32::MAX, ..from };
        let is_there = self.keys.lock().expect("no panic").range(from..=to).next().is_some();
        let is_said = if self.fault { false } else { is_there || hash % 100 < self.false_percent };
        if is_said { May::Perhaps } else { May::No }
    }
}

impl Store {
    /// Without rows.
    pub fn new(seed: u64, fault: Option<Fault>) -> Store {
        let mut dice = Dice(seed);
        let false_percent = [0, 10, 100][dice.roll(3) as usize];
        Store {
            rows: BTreeMap::new(),
            filter: Arc::new(TestFilter { keys: Mutex::default(), false_percent, fault: fault == Some(Fault::Filter) }),
            dice,
            fault,
            upto: 0,
            look_ups: 0,
            again: 0,
            found: 0,
            is_same: false,
        }
    }

    /// With a filter that has no false answers.
    pub fn exact() -> Store {
        let filter = Arc::new(TestFilter { keys: Mutex::default(), false_percent: 0, fault: false });
        Store { filter, ..Store::new(0, None) }
    }

    /// Reads what a command needs.
    pub fn look_up(&mut self, look_up: LookUp) -> Envelope<()> {
        assert_eq!(look_up.upto(), self.upto, "the rows of the state are wanted");
        self.look_ups += 1;
        self.again += usize::from(std::mem::replace(&mut self.is_same, true));
        let rows = self.rows.entry(look_up.owner()).or_default();
        let reading = Reading { rows, fault: self.fault, found: (&mut self.found).into() };
        look_up.found(&reading).expect("maps are read")
    }

    /// Rows leave memory; `upto` is the number of the log.
    fn let_go(&mut self, users: &mut Users, leaving: &Leaving, upto: u64) {
        self.upto = upto.max(self.upto + 1);
        users.set_departed_upto(self.upto);
        self.keep(users, leaving);
        users.depart(leaving);
    }

    /// Keeps rows that are about to leave memory.
    fn keep(&mut self, users: &Users, leaving: &Leaving) {
        let user = users.get(leaving.user).expect("a user");
        let rows = self.rows.entry(leaving.user).or_default();
        for id in &leaving.orders {
            let order = user.order(*id).expect("in memory").clone();
            let ended = EndedOrder { fills: user.fills_of(&order).to_vec(), order };
            if let Some(request) = user.request_of(*id) {
                rows.requests.push(EndedRequest { request: request.clone(), order: ended.clone() });
            }
            self.filter.keys.lock().expect("no panic").extend(keys_of(user.id, &ended.order, user.request_of(*id)));
            rows.orders.insert(*id, ended);
        }
        for id in &leaving.positions {
            rows.positions.insert(*id, user.position(*id).expect("in memory").clone());
        }
    }
}

impl World {
    /// Some ended rows leave memory.
    pub(super) fn leave(&mut self) {
        let now = self.now;
        let upto = self.out.records.len() as u64 + 1;
        self.shard();
        let (Some(store), Some(shard)) = (&mut self.store, &mut self.shard) else { return };
        let filter = store.filter.clone();
        shard.filter_with(filter);
        let users = shard.users_mut();
        let scale = store.dice.roll(38);
        let window = store.dice.roll(1 << scale);
        let rows_max = store.dice.roll(30) as usize;
        for mut leaving in users.leaving(Timestamp(now.0.saturating_sub(window)), rows_max) {
            match store.dice.roll(4) {
                0 => continue,
                // Any orders; positions may be shown by those that stay.
                1 => {
                    leaving.positions.clear();
                    leaving.orders.retain(|_| store.dice.roll(2) == 0);
                }
                2 => leaving.positions.retain(|_| store.dice.roll(2) == 0),
                _ => {}
            }
            store.let_go(users, &leaving, upto);
        }
    }

    /// These rows leave memory.
    pub(super) fn leave_these(&mut self, leaving: &Leaving) {
        let upto = self.out.records.len() as u64 + 1;
        let store = self.store.as_mut().expect("a store");
        let shard = self.shard.as_mut().expect("a shard");
        shard.filter_with(store.filter.clone());
        store.let_go(shard.users_mut(), leaving, upto);
    }

    /// Between a look-up and its command.
    pub(super) fn leave_meanwhile(&mut self) {
        if self.store.as_mut().is_some_and(|store| store.dice.roll(4) == 0) {
            self.leave();
        }
    }

    /// The next look-up is for another command.
    pub(super) fn begin_command(&mut self) {
        if let Some(store) = &mut self.store {
            store.is_same = false;
        }
    }
}

/// One search.
struct Reading<'a> {
    rows: &'a Rows,
    fault: Option<Fault>,
    found: std::cell::RefCell<&'a mut usize>,
}

impl Reading<'_> {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn count<T>(&self, found: Option<T>) -> Option<T> {
        **self.found.borrow_mut() += usize::from(found.is_some());
        found
    }
}

impl Departed for Reading<'_> {
    type Error = std::convert::Infallible;

    fn order(&self, id: OrderId) -> Result<Option<EndedOrder>, Self::Error> {
        let found = self.rows.orders.get(&id).filter(|_| !self.has(Fault::Orders)).cloned();
        Ok(self.count(found))
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, Self::Error> {
        Ok(self.rows.positions.get(&id).cloned())
    }

    fn orders(
        &self,
        market: Option<MarketId>,
        before: Option<OrderId>,
    ) -> impl Iterator<Item = Result<EndedOrder, Self::Error>> {
        let below = self.rows.orders.values().rev().filter(move |ended| before.is_none_or(|id| ended.order.id < id));
        below.filter(move |ended| market.is_none_or(|of| ended.order.terms.instrument.market() == of)).cloned().map(Ok)
    }

    fn fills(&self, before: Option<TradeId>) -> impl Iterator<Item = Result<(Fill, Order), Self::Error>> {
        let of = |ended: &EndedOrder| -> Vec<(Fill, Order)> {
            ended.fills.iter().map(|fill| (fill.clone(), ended.order.clone())).collect()
        };
        let mut fills: Vec<(Fill, Order)> = self.rows.orders.values().flat_map(of).collect();
        fills.sort_by_key(|(fill, _)| std::cmp::Reverse(fill.id));
        fills.into_iter().filter(move |(fill, _)| before.is_none_or(|id| fill.id < id)).map(Ok)
    }

    fn positions(&self, before: Option<PositionId>) -> impl Iterator<Item = Result<Position, Self::Error>> {
        let below = self.rows.positions.values().rev().filter(move |held| before.is_none_or(|id| held.id < id));
        below.filter(|_| !self.has(Fault::Positions)).cloned().map(Ok)
    }

    fn request(&self, client_order_id: &str) -> Result<Option<EndedRequest>, Self::Error> {
        let mut known: Vec<&EndedRequest> = self.rows.requests.iter().collect();
        known.retain(|known| known.request.has_id(&known.order.order, client_order_id));
        known.sort_by_key(|known| known.request.order);
        let found = if self.has(Fault::OldestRequest) { known.first() } else { known.last() };
        let mut found = found.filter(|_| !self.has(Fault::Requests)).map(|found| EndedRequest::clone(found));
        if self.has(Fault::Fills)
            && let Some(found) = &mut found
        {
            found.order.fills.reverse();
        }
        Ok(self.count(found))
    }

    fn signed_order(&self, hash: &[u8; 32]) -> Result<Option<OrderId>, Self::Error> {
        let found = self.rows.orders.values().find(|ended| ended.order.terms.order_hash() == Some(hash));
        Ok(self.count(found.filter(|_| !self.has(Fault::Hashes)).map(|ended| ended.order.id)))
    }
}
