//! The points of equity at each full hour of server time (account.md §4).
//!
//! A point says what a wallet was worth when the hour began, so it is made before anything changes behind that moment:
//! page by page in the shard's turns, and for whoever asks something meanwhile before that is done. Only users with an
//! open position, or whose cash moved since their last point, are looked at, and a wallet that is worth the same gets
//! no point.
//!
//! A new process makes none before its first matching cycle: until then its books are empty. The hours that ended while
//! no turn was taken get one point at the first of them, since nothing changed after it.

use super::{Outbox, Room, Shard};
use crate::id::UserId;
use crate::mark::{Marks, nearest};
use crate::mutation::Mutation;
use crate::rules::POSITIONS_VALUED_PER_TURN_MAX;
use crate::time::Timestamp;
use crate::user::User;
use crate::user::equity::Point;
use ahash::AHashSet;

/// How far the points are.
#[derive(Debug, Default)]
pub(super) struct Hourly {
    /// The hour up to which all points are made, or are being made. `None` before the first moment.
    reached: Option<u32>,
    /// The first user who is still to be looked at; `None`: all have their points.
    next: Option<UserId>,
    /// The hour of the points that are being made.
    hour: u32,
    /// Who asked for something meanwhile, and so had his turn before.
    early: AHashSet<UserId>,
    /// A matching cycle was asked for, so there are books.
    has_books: bool,
}

impl Hourly {
    /// Hours up to this moment have their points already.
    pub fn resume(&mut self, newest: Timestamp) {
        self.reached = (newest > Timestamp(0)).then(|| newest.hour());
    }

    /// The first moment of all: hours before it are nobody's.
    pub fn reach(&mut self, now: Timestamp) {
        self.reached.get_or_insert(now.hour());
    }

    pub fn books_are_there(&mut self) {
        self.has_books = true;
    }

    /// Points are being made, or it is time to begin.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next.is_some() || (self.has_books && self.reached.is_some_and(|reached| reached < now.hour()))
    }

    /// Begins where it is due and nothing is under way.
    fn begin(&mut self, now: Timestamp) {
        if self.next.is_none() {
            self.hour = self.reached.map_or(now.hour(), |reached| reached + 1);
            self.reached = Some(now.hour());
            self.next = Some(UserId(0));
            self.early.clear();
        }
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
                self.hourly.next = None;
                self.hourly.early.clear();
                return false;
            };
            self.hourly.next = Some(UserId(owner.0 + 1));
            if !self.hourly.early.contains(&owner) {
                budget = budget.saturating_sub(self.note_user(owner, outbox));
            }
        }
        true
    }

    /// The points of whoever asks for something while they are due: before it is done.
    pub(super) fn note_early(&mut self, owner: UserId, outbox: &mut impl Outbox<R>) {
        if outbox.room() != Room::Ample {
            return;
        }
        self.hourly.begin(self.now);
        if self.hourly.next.is_some_and(|next| next <= owner) && self.hourly.early.insert(owner) {
            self.note_user(owner, outbox);
        }
    }

    /// Answers how much of a page it cost.
    fn note_user(&mut self, owner: UserId, outbox: &mut impl Outbox<R>) -> usize {
        let Some(user) = self.users.get(owner).filter(|user| user.watched) else { return 0 };
        let marks = Marks { catalog: &self.catalog, books: &self.books };
        let cost = points(user, Timestamp::of_hour(self.hourly.hour), marks, self.now, &mut self.facts);
        self.commit(owner, outbox);
        self.users.unwatch(owner);
        cost
    }
}

/// The points of a user's wallets at a full hour; answers how many things were looked at.
fn points(user: &User, hour: Timestamp, marks: Marks<'_>, now: Timestamp, facts: &mut Vec<Mutation>) -> usize {
    let mut values: Vec<(_, i128)> = Vec::new();
    let mut looked_at = 1;
    for held in user.open_positions() {
        looked_at += 1;
        let value = i128::from(marks.value(held).0);
        match values.iter_mut().find(|(wallet, _)| *wallet == held.wallet) {
            Some((_, sum)) => *sum += value,
            None => values.push((held.wallet, value)),
        }
    }
    for wallet in user.wallets.iter().filter(|wallet| wallet.created_at.hour() < hour.hour()) {
        let value = values.iter().find(|(of, _)| *of == wallet.id).map_or(0, |(_, value)| *value);
        let point = Point { hour: hour.hour(), cash: wallet.cash, value: nearest(value), baseline: wallet.baseline };
        let last = user.last_point(wallet);
        if last.hour < point.hour && !last.same_as(&point) {
            facts.push(Mutation::EquityNoted { wallet: wallet.id, hour, value: point.value, at: now });
        }
    }
    looked_at
}
