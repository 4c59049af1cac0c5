//! `Users`: the state of one shard.

use super::indexes::Indexes;
use super::{RowCounts, User, Wallet, safeguard};
use crate::amount::Cash;
use crate::book::Books;
use crate::command::{Ahead, Placement, RequestedPrice};
use crate::fact;
use crate::id::{InstrumentId, MarketId, OrderId, Outcome, PositionId, UserId};
use crate::mutation::Mutation;
use crate::order::Order;
use crate::order::resting::{Resting, Standing};
use crate::time::{Timestamp, UtcDay};
use ahash::AHashMap;
use std::sync::Arc;

/// Maximum count of users and orders that are prefetched together.
pub(crate) const AHEAD_MAX: usize = 32;

/// All users of one shard, and the indexes over them.
#[derive(Debug, Default)]
pub struct Users {
    users: AHashMap<UserId, Box<User>>,
    pub(super) indexes: Indexes,
    departed_upto: u64,
}

impl Users {
    /// A user of this shard.
    pub fn get(&self, id: UserId) -> Option<&User> {
        self.users.get(&id).map(|user| &**user)
    }

    /// The user of this shard that an object belongs to, if it belongs to any.
    #[inline]
    pub fn owner_of(&self, object: u64) -> UserId {
        self.indexes.owner_of(object)
    }

    pub fn len(&self) -> usize {
        self.users.len()
    }

    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Applies one fact about `owner`: the only change of this state.
    ///
    /// # Panics
    /// When the fact violates an invariant of money, shares or ids; the message names it.
    pub fn apply(&mut self, owner: UserId, fact: &Mutation) {
        if let Some(user) = self.users.get_mut(&owner) {
            return user.apply(fact, &mut self.indexes);
        }
        let Mutation::UserCreated(fact::UserCreated { sub, email, at }) = fact else {
            panic!("facts are about created users: user {owner}, {fact:?}");
        };
        self.users.insert(owner, Box::new(User::new(owner, sub.as_deref(), email.as_deref(), *at)));
    }

    /// The LSN up to which rows have left memory; 0: none has.
    pub fn departed_upto(&self) -> u64 {
        self.departed_upto
    }

    /// Rows have left memory up to this LSN. Part of a snapshot, and not of the digest.
    pub fn set_departed_upto(&mut self, lsn: u64) {
        self.departed_upto = lsn;
    }

    /// The user whose rows that have left memory have the newest time, and that time.
    pub fn newest_departed(&self) -> Option<(UserId, Timestamp)> {
        let of_users = self.unordered().filter_map(|user| Some((user.id, user.departed()?.newest())));
        of_users.max_by_key(|(user, at)| (*at, *user))
    }

    /// Users of whom orders or positions have left memory that ended before a day, ascending. O(users).
    pub fn with_ends_before(&self, day: UtcDay) -> Vec<UserId> {
        let has_ends = |user: &&User| user.departed().is_some_and(|departed| departed.has_ended_before(day));
        let mut users: Vec<UserId> = self.unordered().filter(has_ends).map(|user| user.id).collect();
        users.sort_unstable();
        users
    }

    /// A user, to change its rows in memory.
    pub(super) fn get_mut(&mut self, id: UserId) -> Option<&mut User> {
        self.users.get_mut(&id).map(|user| &mut **user)
    }

    /// A user and the indexes that its facts update: to apply several facts.
    pub(crate) fn get_with_indexes(&mut self, id: UserId) -> Option<(&mut User, &mut Indexes)> {
        Some((self.users.get_mut(&id)?, &mut self.indexes))
    }

    /// Prefetches state of these users, their orders and placements, step by step for all of them, so that the waits
    /// for memory overlap. Changes nothing. Reads at most the first [`AHEAD_MAX`].
    pub(crate) fn warm<'a>(&self, ahead: impl Iterator<Item = (UserId, Ahead<'a>)>) {
        let mut users = [None; AHEAD_MAX];
        let mut rows = [None; AHEAD_MAX];
        for (user, (owner, what)) in users.iter_mut().zip(ahead) {
            *user = self.get(owner).map(|user| (user, what));
        }
        let mut read = 0;
        for (user, _) in users.iter().flatten() {
            read ^= user.wallets.len() ^ user.keys.len() ^ user.trading().orders.len();
        }
        for (user, row) in users.iter().zip(&mut rows) {
            let Some((user, what)) = user else { continue };
            read ^= first_read(user);
            if let Ahead::Order(order) = what {
                *row = user.trading().order_row_hint(*order);
            }
        }
        let mut orders = [None; AHEAD_MAX];
        for ((user, row), order) in users.iter().zip(&rows).zip(&mut orders) {
            let Some((user, what)) = user else { continue };
            match (what, row) {
                (Ahead::Placement(Placement { request, terms: Ok(terms), .. }), _) => {
                    read ^= request.as_ref().map_or(0, |request| user.trading().warm_request(&request.client_order_id));
                    if let (Some(instrument), RequestedPrice::At(limit)) = (terms.instrument, terms.price) {
                        // The newest of its user, wherever it is stored.
                        let id = OrderId(user.next_object_id());
                        read ^= self.indexes.resting.warm(instrument, terms.side, limit, id);
                    }
                }
                (Ahead::Request(id), _) => read ^= user.trading().warm_request(id),
                (_, Some(row)) => {
                    *order = user.orders().get(*row);
                    read ^= order.map_or(0, |order| order.filled.0 as usize ^ order.terms.limit.0 as usize);
                }
                _ => {}
            }
        }
        for order in orders.into_iter().flatten() {
            let terms = &order.terms;
            read ^= self.indexes.resting.warm(terms.instrument, terms.side, terms.limit, order.id);
        }
        std::hint::black_box(read);
    }

    /// Prefetches what most commands of this user read, so that the waits for memory overlap. Changes nothing.
    pub(crate) fn warm_one(&self, id: UserId) {
        std::hint::black_box(self.get(id).map(first_read));
    }

    /// Ids in order.
    pub fn ids(&self) -> Vec<UserId> {
        let mut ids: Vec<UserId> = self.users.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn unordered(&self) -> impl Iterator<Item = &User> + '_ {
        self.users.values().map(|user| &**user)
    }

    /// Users in id order.
    pub fn iter(&self) -> impl Iterator<Item = &User> + '_ {
        let mut users: Vec<&User> = self.unordered().collect();
        users.sort_unstable_by_key(|user| user.id);
        users.into_iter()
    }

    /// Reserves space for `coming` more users.
    pub(crate) fn expect(&mut self, coming: usize) {
        self.users.reserve(coming);
    }

    /// Adds a user from another shard or a snapshot.
    pub fn insert(&mut self, user: User) {
        self.indexes.enter(&user);
        let other = self.users.insert(user.id, Box::new(user));
        assert!(other.is_none(), "a user is in one shard");
    }

    /// The same for one of many: [`Users::list`] lists their orders together.
    pub(crate) fn insert_unlisted(&mut self, user: User, standing: &mut Vec<Standing>) {
        self.indexes.enter_unlisted(&user, standing);
        let other = self.users.insert(user.id, Box::new(user));
        assert!(other.is_none(), "a user is in one shard");
    }

    /// Lists the orders of all users that were inserted unlisted.
    pub(crate) fn list(&mut self, standing: Vec<Standing>) {
        self.indexes.resting.list(standing);
    }

    /// Lists no order from here on, for folding many records: without the index folding takes a quarter less. To serve,
    /// list them again ([`Users::list_again`]).
    pub(crate) fn unlist(&mut self) {
        self.indexes.resting.unlist();
    }

    /// Lists all orders if they are unlisted.
    pub(crate) fn list_again(&mut self) {
        if !self.resting().is_unlisted() {
            return;
        }
        let mut standing = Vec::with_capacity(self.users.values().map(|user| user.open_orders_count()).sum());
        for order in self.users.values().flat_map(|user| user.open_orders()) {
            self.indexes.resting.put_unlisted(order, &mut standing);
        }
        self.list(standing);
    }

    /// Removes a user, for another shard.
    pub fn take(&mut self, id: UserId) -> Option<User> {
        let user = self.users.remove(&id)?;
        self.indexes.leave(&user);
        Some(*user)
    }

    /// An order of any user.
    pub fn order(&self, id: OrderId) -> Option<&Order> {
        self.get(self.owner_of(id.0))?.order(id)
    }

    /// Count of orders in memory: those that rest, and those that have ended and not left it.
    pub fn orders_count(&self) -> usize {
        self.indexes.rows.orders
    }

    /// Resting orders of the shard.
    pub fn resting(&self) -> &Resting {
        &self.indexes.resting
    }

    /// From now on markets with a resting order are marked in these books.
    pub(crate) fn watch(&mut self, books: &Arc<Books>) {
        self.indexes.resting.watch(books);
    }

    /// Open episodes of an instrument, in id order.
    pub fn holders(&self, instrument: InstrumentId) -> impl Iterator<Item = PositionId> + '_ {
        self.indexes.holders.get(&instrument).into_iter().flat_map(|holders| holders.iter())
    }

    /// Users with an open episode or a resting order in a market, in id order: those of its settlement.
    pub fn concerned(&self, market: MarketId) -> Vec<UserId> {
        let outcomes = [Outcome::First, Outcome::Second];
        let mut users: Vec<UserId> = outcomes
            .iter()
            .flat_map(|outcome| self.holders(market.instrument(*outcome)))
            .map(|position| self.owner_of(position.0))
            .chain(self.resting().orders_of_market(market).map(|order| self.owner_of(order.0)))
            .collect();
        users.sort_unstable();
        users.dedup();
        users
    }

    /// The next user from `from` on that may need a point at a full hour: with an open position, or with cash that
    /// moved since the last point.
    pub fn watched_from(&self, from: UserId) -> Option<UserId> {
        self.indexes.watched.range(from..).next().copied()
    }

    /// The user has its points; with an open position it may need one at the next hour too.
    pub(crate) fn unwatch(&mut self, id: UserId) {
        if let Some(user) = self.users.get_mut(&id).filter(|user| user.trading().held.is_empty()) {
            user.watched = false;
            self.indexes.watched.remove(&id);
        }
    }

    /// A user that is to be paid rebates on a day.
    pub(crate) fn rebated_on(&self, day: UtcDay) -> Option<UserId> {
        self.indexes.rebates.first().filter(|(due, _)| *due <= day).map(|(_, owner)| *owner)
    }

    /// Heartbeats that have lapsed at `now`, earliest first.
    pub fn lapsed(&self, now: Timestamp) -> impl Iterator<Item = (UserId, &str)> + '_ {
        let due = self.indexes.lapses.iter().take_while(move |(at, ..)| *at <= now);
        due.map(|(_, owner, label)| (*owner, &**label))
    }

    /// When the next heartbeat lapses.
    pub fn next_lapse(&self) -> Option<Timestamp> {
        self.indexes.lapses.first().map(|(at, ..)| *at)
    }

    /// A beat: the registration lapses one interval after `now`. Nothing is journaled. `None`: there is no such
    /// registration.
    pub fn beat(&mut self, owner: UserId, label: &str, now: Timestamp) -> Option<Timestamp> {
        let trading = self.users.get_mut(&owner)?.trading.as_mut()?;
        let beating = trading.safeguards.iter_mut().find(|known| &*known.label == label)?;
        self.indexes.ended(owner, beating, None);
        beating.lapses_at = safeguard::lapses_at(beating.interval_ms, now);
        self.indexes.armed(owner, beating);
        Some(beating.lapses_at)
    }

    /// Stores the name of the last beat of a registration. Nothing is journaled.
    pub fn name_beat(&mut self, owner: UserId, label: &str, name: [u8; 16]) {
        let trading = self.users.get_mut(&owner).and_then(|user| user.trading.as_mut());
        let safeguards = trading.into_iter().flat_map(|trading| &mut trading.safeguards);
        for known in safeguards.filter(|known| &*known.label == label) {
            known.beat = Some(name);
        }
    }

    /// After a restart: every registration lapses one interval after `now`.
    pub fn refresh_safeguards(&mut self, now: Timestamp) {
        self.indexes.lapses.clear();
        for user in self.users.values_mut() {
            let id = user.id;
            for safeguard in user.trading.as_mut().into_iter().flat_map(|trading| &mut trading.safeguards) {
                safeguard.lapses_at = safeguard::lapses_at(safeguard.interval_ms, now);
                self.indexes.armed(id, safeguard);
            }
        }
    }

    /// Drops up to `most` remembered requests whose orders were placed before `since`, of all users, oldest first. True
    /// if there are more. Only memory changes: the digest of the state stays, and so does every answer to a request
    /// whose ids count from `since` or later on.
    pub fn forget_requests(&mut self, since: Timestamp, most: usize) -> bool {
        let mut left = most;
        while let Some((at, owner)) = self.indexes.remembering.first().copied().filter(|(at, _)| *at < since) {
            if left == 0 {
                return true;
            }
            let user = self.users.get_mut(&owner).expect("an indexed user is in its shard");
            let forgotten = user.trading_mut().forget_requests(since, left);
            left -= forgotten;
            self.indexes.rows.requests -= forgotten;
            self.indexes.remembering.remove(&(at, owner));
            self.indexes.remembering.extend(user.trading().oldest_request().map(|at| (at, owner)));
        }
        false
    }

    /// Limits the times of all users to at most `at`.
    pub(crate) fn set_back(&mut self, at: Timestamp) {
        for user in self.users.values_mut() {
            user.set_back(at);
            let is_watched = user.needs_watching();
            if std::mem::replace(&mut user.watched, is_watched) != is_watched {
                match is_watched {
                    true => self.indexes.watched.insert(user.id),
                    false => self.indexes.watched.remove(&user.id),
                };
            }
        }
        // The only indexes that are ordered by these times.
        let oldest = |user: &User| user.trading().oldest_request().map(|at| (at, user.id));
        self.indexes.remembering = self.users.values().filter_map(|user| oldest(user)).collect();
        let due = |user: &User| user.rebates_due_day().map(|day| (day, user.id));
        self.indexes.rebates = self.users.values().filter_map(|user| due(user)).collect();
    }

    /// Checks all invariants of money, shares and indexes over all users: for snapshots and the simulator. Returns the
    /// first violation.
    pub fn check_all(&self) -> Result<(), String> {
        self.check_each(|| {})
    }

    /// The same, with a call before each user, for callers with other work.
    ///
    /// # Errors
    /// As [`Users::check_all`].
    pub fn check_each(&self, mut between: impl FnMut()) -> Result<(), String> {
        let (mut resting, mut held) = (0, 0);
        for user in self.users.values() {
            between();
            user.check().map_err(|broken| format!("user {}: {broken}", user.id))?;
            resting += user.open_orders_count();
            held += user.open_positions().count();
            for position in user.open_positions() {
                let holders = self.indexes.holders.get(&position.instrument);
                if !holders.is_some_and(|holders| holders.contains(position.id)) {
                    return Err(format!("an open episode is indexed under its instrument: position {}", position.id));
                }
            }
        }
        let mut rows = RowCounts::default();
        self.users.values().for_each(|user| rows.add(RowCounts::of(user)));
        if (rows, held) != (self.rows(), self.indexes.open_positions) {
            return Err(format!("rows in memory are counted: {rows:?}, {held} open, not {:?}", self.rows()));
        }
        // All together, in the order of the lists: single lookups would wait for memory each time. An unlisted index is
        // correct.
        let open = || self.users.values().flat_map(|user| user.open_orders());
        let is_unlisted = self.resting().is_unlisted();
        let listed = is_unlisted || self.resting().lists(open().map(Standing::of).collect());
        if !listed && let Some(order) = open().find(|order| !self.resting().holds(order)) {
            return Err(format!("a resting order is indexed under its price: order {}", order.id));
        }
        if !is_unlisted && !self.resting().counts_held(open()) {
            return Err("orders with a hold_reason are counted under their instruments".to_owned());
        }
        let mut prefixes = self.users.values().flat_map(|user| user.prefixes().map(move |prefix| (user.id, prefix)));
        if let Some((user, prefix)) = prefixes.find(|(user, prefix)| self.owner_of(prefix.object(0)) != *user) {
            return Err(format!("a prefix is of one user: {prefix} of user {user}"));
        }
        if let Some(user) = self.users.values().find(|user| user.watched != self.indexes.watched.contains(&user.id)) {
            return Err(format!("a user that may need a point is watched: user {}", user.id));
        }
        let oldest = || self.users.values().filter_map(|user| Some((user.trading().oldest_request()?, user.id)));
        let remembering = &self.indexes.remembering;
        if oldest().count() != remembering.len() || !oldest().all(|entry| remembering.contains(&entry)) {
            return Err("users are indexed by their oldest remembered requests".to_owned());
        }
        let due = || self.users.values().filter_map(|user| Some((user.rebates_due_day()?, user.id)));
        if due().count() != self.indexes.rebates.len() || !due().all(|entry| self.indexes.rebates.contains(&entry)) {
            return Err("users are indexed by the day on which they are paid rebates".to_owned());
        }
        let indexed = self.indexes.holders.values().map(|holders| holders.len()).sum::<usize>();
        if !listed || (!is_unlisted && resting != self.resting().len()) || held != indexed {
            return Err("the indexes contain all open objects and no others".to_owned());
        }
        Ok(())
    }
}

impl User {
    /// Whether a wallet may need a point at the next full hour; computed for a user from a snapshot.
    pub(crate) fn needs_watching(&self) -> bool {
        let moved = |wallet: &Wallet| {
            let last = self.last_point(wallet);
            (last.cash, last.baseline) != (wallet.cash, wallet.starting()) || last.value != Cash::ZERO
        };
        !self.trading().held.is_empty() || self.wallets.iter().any(moved)
    }

    /// Checks all invariants of one user's money and shares.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.trading().check()?;
        for wallet in &self.wallets {
            let open = self.open_orders().filter(|order| order.terms.wallet == wallet.id);
            let reserved: Cash = open.map(Order::reserved_cash).sum();
            if reserved != wallet.reserved {
                return Err(format!(
                    "reserved cash = Σ open BUY orders: {:?}, not {reserved:?}, wallet {}",
                    wallet.reserved, wallet.id
                ));
            }
            let holds = self.open_positions().any(|held| held.wallet == wallet.id);
            if !wallet.is_active() && (holds || reserved != Cash::ZERO) {
                return Err(format!("an archived wallet is empty: wallet {}", wallet.id));
            }
            if wallet.available() < Cash::ZERO {
                return Err(format!("available cash ≥ 0: {:?}, wallet {}", wallet.available(), wallet.id));
            }
        }
        Ok(())
    }
}

/// Reads what most commands of a user read first.
fn first_read(user: &User) -> usize {
    let wallet = user.wallets.last().map_or(0, |wallet| wallet.cash.0 as usize);
    // Its dates are in another cache line than its id.
    let key = user.keys.last().map_or(0, |key| key.id.0 ^ u64::from(key.last_used_at.is_none()));
    wallet ^ key as usize ^ user.trading().warm()
}
