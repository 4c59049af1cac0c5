//! The points of equity at each full hour of server time (engine/docs/account.md §5).
//!
//! A point has the value of a wallet when the hour began, so it is made before anything changes after that moment: page
//! by page in the shard's turns, and for a user with a command before that is done. Only users with an open position,
//! or whose cash moved since their last point, are visited, and a wallet with an unchanged value gets no point.
//!
//! A new process makes no points before its first matching cycle: until then its books are empty. Hours that ended
//! without a turn get one point at the first turn, because nothing changed after them. It is unknown whether the points
//! of the last hour before them are complete, because the process may have ended during that pass: users without such a
//! point get it again, unless one of their wallets has changed since.
//!
//! Pages wait for ample room. When only the reserve is left, a user gets the points before a command that moves money;
//! this costs at most one small record per user and hour.

use super::{Outbox, Room, Shard};
use crate::amount::{Cash, nearest};
use crate::fact;
use crate::id::{UserId, WalletId};
use crate::mark::Marks;
use crate::mutation::Mutation;
use crate::rules::POSITIONS_VALUED_PER_TURN_MAX;
use crate::time::Timestamp;
use crate::user::User;
use crate::user::equity::Point;
use ahash::AHashMap;

/// The progress of the points.
#[derive(Debug, Default)]
pub(super) struct Hourly {
    /// The hour up to which all points are made or in progress. `None` before the first moment.
    reached: Option<u32>,
    /// The next user to visit; `None`: all have their points.
    next: Option<UserId>,
    /// The hour of the points in progress; above `reached` when only `again` is made.
    hour: u32,
    /// The hour of the newest record before a recovery, until its points are made again.
    unsure: Option<u32>,
    /// The hour whose points are made again for users without one.
    again: Option<u32>,
    /// Users that were visited early, and the hour up to which they have points.
    early: AHashMap<UserId, u32>,
    /// A matching cycle has run, so there are books.
    has_books: bool,
}

impl Hourly {
    /// Earlier hours have their points; this moment's hour may lack some.
    pub fn resume(&mut self, newest: Timestamp) {
        self.reached = (newest > Timestamp(0)).then(|| newest.hour());
        self.unsure = self.reached;
    }

    /// The first moment: earlier hours have no points.
    pub fn reach(&mut self, now: Timestamp) {
        self.reached.get_or_insert(now.hour());
    }

    pub fn books_are_there(&mut self) {
        self.has_books = true;
    }

    pub fn has_books(&self) -> bool {
        self.has_books
    }

    /// Whether points are in progress or due.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let is_time = || self.unsure.is_some() || self.reached.is_some_and(|reached| reached < now.hour());
        self.next.is_some() || (self.has_books && is_time())
    }

    /// Starts a pass if it is due and none is running.
    fn begin(&mut self, now: Timestamp) {
        match self.next {
            None => {
                self.hour = self.reached.map_or(now.hour(), |reached| reached + 1);
                self.again = self.unsure.take();
                self.next = Some(UserId(0));
            }
            // Only early users were visited yet: values of the hours since are equal.
            Some(UserId(0)) => {}
            Some(_) => return,
        }
        self.reached = self.reached.max(Some(now.hour()));
    }

    /// The hours up to `last` without a point of this user: the one that is made again, and the first of the others.
    fn missing(&self, owner: UserId, last: u32) -> (Option<u32>, Option<u32>) {
        let (is_to_come, early) = (self.next.is_some_and(|next| next <= owner), self.early.get(&owner));
        let first = if is_to_come { self.hour } else { self.reached.map_or(last, |reached| reached + 1) };
        let first = early.map_or(first, |had| first.max(had + 1));
        (self.again.filter(|_| is_to_come && early.is_none()), (first <= last).then_some(first))
    }

    /// All users were visited.
    fn finish(&mut self) {
        (self.next, self.again) = (None, None);
        self.early.retain(|_, had| Some(*had) > self.reached);
    }
}

impl<R> Shard<R> {
    /// One page of points, if any are due and the log has ample room. True when more are to be made.
    pub(super) fn note_hour(&mut self, outbox: &mut impl Outbox<R>) -> bool {
        if !self.hourly.is_due(self.now) || outbox.room() != Room::Ample {
            return false;
        }
        self.hourly.begin(self.now);
        let mut budget = POSITIONS_VALUED_PER_TURN_MAX;
        while budget > 0 && outbox.room() == Room::Ample {
            let next = self.hourly.next.and_then(|from| self.users.watched_from(from));
            let Some(owner) = next else {
                self.hourly.finish();
                return self.hourly.is_due(self.now);
            };
            let last = self.hourly.reached.unwrap_or(self.hourly.hour);
            budget = budget.saturating_sub(self.note_user(owner, last, outbox));
            self.hourly.next = Some(UserId(owner.0 + 1));
        }
        true
    }

    /// Makes the due points of a user before a command of that user runs.
    pub(super) fn note_early(&mut self, owner: UserId, outbox: &mut impl Outbox<R>) {
        if !self.hourly.is_due(self.now) || outbox.room() == Room::None {
            return;
        }
        self.hourly.begin(self.now);
        let last = self.now.hour();
        if self.hourly.early.get(&owner) != Some(&last) {
            self.note_user(owner, last, outbox);
            self.hourly.early.insert(owner, last);
        }
    }

    /// Returns its cost in units of a page.
    fn note_user(&mut self, owner: UserId, last: u32, outbox: &mut impl Outbox<R>) -> usize {
        let (again, first) = self.hourly.missing(owner, last);
        let mut cost = 1;
        for (hour, is_again) in [(again, true), (first, false)] {
            let (Some(hour), Some(user)) = (hour, self.users.get(owner).filter(|user| user.watched)) else { continue };
            let marks = Marks { catalog: &self.catalog, books: &self.books };
            let hour = Timestamp::of_hour(hour);
            cost += points(user, hour, is_again, marks, self.now, &mut self.facts);
            self.commit(owner, outbox);
            if !is_again {
                self.users.unwatch(owner);
            }
        }
        cost
    }
}

/// The points of a user's wallets at a full hour; returns the count of wallets and positions visited. `is_again`: only
/// if nothing moved since; a changed baseline alone makes none.
fn points(
    user: &User,
    hour: Timestamp,
    is_again: bool,
    marks: Marks<'_>,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> usize {
    let mut values: Vec<(WalletId, Cash)> =
        user.open_positions().map(|held| (held.wallet, marks.value(held))).collect();
    let mut looked_at = values.len() + user.wallets.len();
    values.sort_unstable_by_key(|(wallet, _)| *wallet);
    let before = facts.len();
    for wallet in user.wallets.iter().filter(|wallet| wallet.created_at.hour() < hour.hour()) {
        let mine = &values[values.partition_point(|(of, _)| *of < wallet.id)..];
        let mine = mine.iter().take_while(|(of, _)| *of == wallet.id);
        let value = nearest(mine.map(|(_, value)| i128::from(value.0)).sum());
        let point = Point { hour: hour.hour(), cash: wallet.cash, value, baseline: wallet.starting() };
        let last = user.last_point(wallet);
        let is_news = if is_again { (last.cash, last.value) != (point.cash, value) } else { !last.same_as(&point) };
        if last.hour < point.hour && is_news {
            facts.push(Mutation::EquityNoted(fact::EquityNoted { wallet: wallet.id, hour, value, at: now }));
        }
    }
    if is_again && facts.len() > before {
        looked_at += user.positions().len();
        if user.moved_since(hour) {
            facts.truncate(before);
        }
    }
    looked_at
}
