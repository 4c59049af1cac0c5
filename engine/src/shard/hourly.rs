//! The points of equity at each full hour of server time (engine/docs/account.md §5).
//!
//! A point says what a wallet was worth when the hour began, so it is made before anything changes behind that moment:
//! page by page in the shard's turns, and for whoever asks something meanwhile before that is done. Only users with an
//! open position, or whose cash moved since their last point, are looked at, and a wallet that is worth the same gets
//! no point.
//!
//! A new process makes none before its first matching cycle: until then its books are empty. The hours that ended while
//! no turn was taken get one point at the first of them, since nothing changed after it. Whether the points of the last
//! hour before them were all made is not known, for the process may have ended among them: users who have none of it
//! get theirs again, unless something of theirs has moved since.
//!
//! Pages wait for ample room. Where only the reserve is left, those whose money is about to move get their points
//! before, so that it costs one small record a user and hour at most.

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

/// How far the points are.
#[derive(Debug, Default)]
pub(super) struct Hourly {
    /// The hour up to which all points are made, or are being made. `None` before the first moment.
    reached: Option<u32>,
    /// The first user who is still to be looked at; `None`: all have their points.
    next: Option<UserId>,
    /// The hour of the points that are being made; above `reached` when only `again` is.
    hour: u32,
    /// The hour of the newest record before a recovery, until its points are being made again.
    unsure: Option<u32>,
    /// The hour whose points are being made again for those who have none of it.
    again: Option<u32>,
    /// Who had his turn before the others, and up to which hour he has his points.
    early: AHashMap<UserId, u32>,
    /// A matching cycle was asked for, so there are books.
    has_books: bool,
}

impl Hourly {
    /// Hours before this moment's have their points; its own may lack some.
    pub fn resume(&mut self, newest: Timestamp) {
        self.reached = (newest > Timestamp(0)).then(|| newest.hour());
        self.unsure = self.reached;
    }

    /// The first moment of all: hours before it are nobody's.
    pub fn reach(&mut self, now: Timestamp) {
        self.reached.get_or_insert(now.hour());
    }

    pub fn books_are_there(&mut self) {
        self.has_books = true;
    }

    pub fn has_books(&self) -> bool {
        self.has_books
    }

    /// Points are being made, or it is time to begin.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let is_time = || self.unsure.is_some() || self.reached.is_some_and(|reached| reached < now.hour());
        self.next.is_some() || (self.has_books && is_time())
    }

    /// Begins where it is due and nothing is under way.
    fn begin(&mut self, now: Timestamp) {
        match self.next {
            None => {
                self.hour = self.reached.map_or(now.hour(), |reached| reached + 1);
                self.again = self.unsure.take();
                self.next = Some(UserId(0));
            }
            // Nobody had his turn yet but those who came early: what ended meanwhile is worth the same.
            Some(UserId(0)) => {}
            Some(_) => return,
        }
        self.reached = self.reached.max(Some(now.hour()));
    }

    /// The hours up to `last` of which a user lacks a point: the one that is made again, and the first of the others.
    fn missing(&self, owner: UserId, last: u32) -> (Option<u32>, Option<u32>) {
        let (is_to_come, early) = (self.next.is_some_and(|next| next <= owner), self.early.get(&owner));
        let first = if is_to_come { self.hour } else { self.reached.map_or(last, |reached| reached + 1) };
        let first = early.map_or(first, |had| first.max(had + 1));
        (self.again.filter(|_| is_to_come && early.is_none()), (first <= last).then_some(first))
    }

    /// Everybody had his turn.
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

    /// The points of a user for whom something is about to be done while they are due.
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

    /// Answers how much of a page it cost.
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

/// The points of a user's wallets at a full hour; answers how many things were looked at. `is_again`: only where nothing
/// moved since, and a baseline alone is none.
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
        let point = Point { hour: hour.hour(), cash: wallet.cash, value, baseline: wallet.baseline };
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
