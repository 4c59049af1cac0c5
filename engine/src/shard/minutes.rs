//! The points of equity at each full minute of server time, for the last 24 hours (engine/docs/account.md §5).
//!
//! They are in memory only, never journaled: a new process starts without them, and before a curve there are the points
//! of the full hours. Only a few wallets are followed, [`FOLLOWED_MAX`] per shard: those that traded, and those whose
//! points were requested, until neither happens for 24 hours. When all places are taken, a request replaces the wallet
//! that is unused for longest; a trade does so only if that is an hour or more.
//!
//! A wallet without holdings that has not moved since its last full hour still has the value of that hour: it needs no
//! curve until its first trade, and then gets one from that hour on. So the curve of a new wallet starts at its
//! creation.
//!
//! ```text
//! fill ─► noticed ──┐ each minute, a page a turn
//!                   ├─► followed ─► one point, where the value changed ─► rows
//! requested ────────┘
//! ```

use super::Shard;
use crate::amount::Cash;
use crate::command::Wallets;
use crate::id::{UserId, WalletId};
use crate::mark::Marks;
use crate::rules::POSITIONS_VALUED_PER_TURN_MAX;
use crate::time::Timestamp;
use crate::user::equity::{self, EquityRow, Sums};
use crate::user::{User, Wallet};
use std::collections::{BTreeMap, VecDeque};

/// Length of a curve in minutes; an unused wallet is followed for as long.
const MINUTES_KEPT: u32 = 24 * 60;
/// Maximum count of followed wallets per shard: 24 MB with all points.
const FOLLOWED_MAX: usize = 512;
/// A trade replaces a followed wallet only if that is unused for this many minutes: otherwise many traders would
/// replace each other, and none would have a curve.
const UNUSED_FOR_TRADE: u32 = 60;
/// Slots for wallets that traded since the last pass; a power of two.
const NOTICED_BITS: u32 = 10;
/// No wallet has this id: users are numbered from 1.
const NO_WALLET: WalletId = WalletId(0);

/// A wallet at a full minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    /// Minutes since 1970.
    minute: u32,
    /// Cash, reserved cash included.
    cash: Cash,
    /// Value of its open positions; at cost without a mark.
    value: Cash,
    baseline: Cash,
}

impl Point {
    fn of_hour(point: &equity::Point) -> Point {
        let equity::Point { hour, cash, value, baseline } = *point;
        Point { minute: hour * 60, cash, value, baseline }
    }

    /// Whether the values are equal, without the minute.
    fn same_as(&self, other: &Point) -> bool {
        (self.cash, self.value, self.baseline) == (other.cash, other.value, other.baseline)
    }
}

/// The points of a followed wallet, in time order, where its value changed. A minute without a point has the value of
/// the last point before it.
#[derive(Debug)]
struct Curve {
    /// Minute of its last use: requested, or found to have traded.
    used: u32,
    /// The last minute recorded.
    noted: u32,
    points: VecDeque<Point>,
}

impl Curve {
    /// Allocates all its space, so that a point never allocates.
    fn new(used: u32) -> Curve {
        Curve { used, noted: 0, points: VecDeque::with_capacity(MINUTES_KEPT as usize) }
    }

    /// Adds the value at a later minute; drops points that are too old for any row.
    fn note(&mut self, point: Point) {
        self.noted = point.minute;
        while self.points.get(1).is_some_and(|second| second.minute <= earliest(point.minute)) {
            self.points.pop_front();
        }
        if self.points.back().is_none_or(|last| !last.same_as(&point)) {
            self.points.push_back(point);
        }
    }

    fn is_unused(&self, minute: u32) -> bool {
        self.used + MINUTES_KEPT <= minute
    }
}

/// The position of a pass over the followed wallets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// Wallets that traded are added, from this slot on.
    TakingUp(usize),
    /// Points are made, from this wallet on.
    Noting(WalletId),
}

/// The followed wallets, and the progress of their points.
#[derive(Debug)]
pub(super) struct Minutes {
    curves: BTreeMap<WalletId, Curve>,
    /// Wallets that traded since the last pass, in a slot by their id. Of two in the same slot the later one stays: the
    /// other is noticed at one of its next trades.
    noticed: Box<[WalletId; 1 << NOTICED_BITS]>,
    has_noticed: bool,
    stage: Stage,
    /// Start of the minute after the last pass.
    next: Timestamp,
}

impl Default for Minutes {
    fn default() -> Minutes {
        Minutes {
            curves: BTreeMap::new(),
            noticed: Box::new([NO_WALLET; 1 << NOTICED_BITS]),
            has_noticed: false,
            stage: Stage::Waiting,
            next: Timestamp(0),
        }
    }
}

impl Minutes {
    /// Records a fill of this wallet. Executed for every order: two stores.
    #[inline]
    pub fn notice(&mut self, wallet: WalletId) {
        let spread = wallet.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.noticed[(spread >> (u64::BITS - NOTICED_BITS)) as usize] = wallet;
        self.has_noticed = true;
    }

    /// Whether a pass is running, or wallets are followed and the next one is due.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.stage != Stage::Waiting || (now >= self.next && (self.has_noticed || !self.curves.is_empty()))
    }

    fn begin(&mut self, now: Timestamp) {
        if self.stage == Stage::Waiting {
            self.stage = Stage::TakingUp(0);
            self.has_noticed = false;
            self.next = Timestamp::of_minute(now.minute() + 1);
        }
    }

    fn finish(&mut self, minute: u32) {
        self.stage = Stage::Waiting;
        self.curves.retain(|_, curve| !curve.is_unused(minute));
    }

    /// Marks a wallet as used. False: it is not followed.
    fn touch(&mut self, wallet: WalletId, minute: u32) -> bool {
        self.curves.get_mut(&wallet).map(|curve| curve.used = minute).is_some()
    }

    /// Follows one more wallet, if there is a free place or one that is unused for `unused_min` minutes.
    fn follow(&mut self, rest: &Rest, minute: u32, unused_min: u32) {
        let mut curve = Curve::new(minute);
        if self.curves.len() >= FOLLOWED_MAX {
            let unused = self.curves.iter().min_by_key(|(wallet, curve)| (curve.used, **wallet));
            let place = unused.filter(|(_, unused)| unused.used + unused_min <= minute).map(|(wallet, _)| *wallet);
            let Some(place) = place else { return };
            self.curves.remove(&place);
        }
        // Its value is unknown between its first move and now, unless that was in this minute or the one before.
        let moved = rest.moved.map_or(minute, Timestamp::minute);
        if moved + 1 >= minute {
            curve.points.push_back(rest.point);
            // It moved after the start of this minute, when it had that value.
            curve.noted = if moved == minute { minute } else { 0 };
        }
        self.curves.insert(rest.wallet, curve);
    }

    /// The ids of wallets with a prefix.
    fn of(prefix: UserId) -> std::ops::Range<WalletId> {
        WalletId(prefix.object(0))..WalletId(UserId(prefix.0 + 1).object(0))
    }

    /// Records the missing points of a user's followed wallets at this minute; returns the count of wallets and
    /// positions visited.
    fn note(&mut self, user: &User, marks: Marks<'_>, minute: u32) -> usize {
        let mut looked_at = 1;
        for prefix in user.prefixes() {
            let due = self.curves.range_mut(Minutes::of(prefix)).filter(|(_, curve)| curve.noted < minute);
            for (id, curve) in due {
                let Some(wallet) = user.wallet(*id) else { continue };
                let value = marks.value_of(user, *id);
                curve.note(Point { minute, cash: wallet.cash, value, baseline: wallet.starting() });
                looked_at += 1 + user.open_positions().count();
            }
        }
        looked_at
    }

    /// The total of these wallets at each full minute of the last 24 hours, as far back as all of them are followed;
    /// before that at each full hour. Minutes before the first of them was opened are left out.
    pub fn rows<'a>(
        &self,
        user: &'a User,
        wallets: impl Iterator<Item = &'a Wallet> + Clone,
        now: Timestamp,
    ) -> Vec<EquityRow> {
        let (first, last) = (earliest(now.minute()), now.minute());
        let resting: Vec<Point> = wallets.clone().map(|wallet| Point::of_hour(&user.last_point(wallet))).collect();
        let curves = wallets.clone().zip(&resting).map(|(wallet, resting)| {
            let followed = self.curves.get(&wallet.id);
            let points = followed.map(|curve| &curve.points).into_iter().flatten();
            (wallet, points.chain(followed.is_none().then_some(resting)))
        });
        let known_from = curves.clone().map(|(wallet, mut points)| {
            let begins = points.next().map_or(u32::MAX, |point| point.minute);
            if begins <= wallet.created_at.minute() { 0 } else { begins }
        });
        let known_from = known_from.max().unwrap_or(0).max(first);

        let before = known_from.saturating_sub(1) / 60;
        let mut rows = user.equity_rows(wallets, first.div_ceil(60), before.min(now.hour()));
        let mut sums = Sums::new((last + 1).saturating_sub(known_from) as usize);
        for (wallet, points) in curves {
            let mut points = points.peekable();
            let mut standing = None;
            for minute in known_from.max(wallet.created_at.minute() + 1)..=last {
                while let Some(point) = points.next_if(|point| point.minute <= minute) {
                    standing = Some(point);
                }
                if let Some(Point { cash, value, baseline, .. }) = standing {
                    sums.add((minute - known_from) as usize, *cash, *value, *baseline);
                }
            }
        }
        rows.extend(sums.rows(|nth| Timestamp::of_minute(known_from + nth as u32)));
        rows
    }
}

/// The first minute of an answer at this one.
fn earliest(minute: u32) -> u32 {
    (minute + 1).saturating_sub(MINUTES_KEPT)
}

/// The value of an unfollowed wallet at its last full hour, and the time of its first move since; `None`: none yet.
struct Rest {
    wallet: WalletId,
    point: Point,
    from: Timestamp,
    moved: Option<Timestamp>,
}

impl Rest {
    /// For some wallets of a user, in id order. When the last position of each wallet was opened is known. If that is after
    /// its last full hour, it may have moved before, too: positions are in the order of their opening, so only the newest in
    /// memory are read, one page at most, and a wallet with others since then counts as moved from that hour on.
    fn of<'a>(user: &User, wallets: impl Iterator<Item = &'a Wallet>, now: Timestamp) -> Vec<Rest> {
        let rest = |wallet: &Wallet| {
            let last = user.last_point(wallet);
            let from = Timestamp::of_hour(last.hour).max(wallet.created_at);
            let reset = user.resets(wallet.id).chain(user.bought_resets(wallet.id)).filter(|at| *at >= from).min();
            // A better plan or a deposit changes what the result is measured from; the time of that change is not stored.
            let other = (last.cash, last.baseline) != (wallet.cash, wallet.starting());
            let held = (last.value != Cash::ZERO).then_some(from);
            Rest {
                wallet: wallet.id,
                point: Point::of_hour(&last),
                from,
                moved: held.or(reset).or(other.then_some(now)),
            }
        };
        let mut rests: Vec<Rest> = wallets.map(rest).collect();
        let row_of = |rests: &[Rest], wallet| rests.binary_search_by_key(&wallet, |rest| rest.wallet).ok();
        for held in user.open_positions() {
            if let Some(row) = row_of(&rests, held.wallet) {
                rests[row].note_move(held.opened_at);
            }
        }
        let tally = |rest: &Rest| user.trading().tally(rest.wallet);
        let has_opened = |rest: &Rest| tally(rest).fills > 0 && tally(rest).opened_at >= rest.from;
        let opened = rests.iter().filter(|rest| has_opened(rest));
        let Some(earliest) = opened.map(|rest| rest.from).min() else { return rests };
        let mut newest = user.positions().iter().rev().take_while(|held| held.opened_at >= earliest);
        for held in newest.by_ref().take(POSITIONS_VALUED_PER_TURN_MAX) {
            if let Some(row) = row_of(&rests, held.wallet).filter(|row| rests[*row].from <= held.opened_at) {
                rests[row].note_move(held.opened_at);
            }
        }
        let unseen = newest.next().map(|unseen| unseen.opened_at).unwrap_or_default();
        for rest in rests.iter_mut().filter(|rest| has_opened(rest)) {
            let departed = user.departed().map(|departed| departed.tally(rest.wallet).opened_at);
            if unseen.max(departed.unwrap_or_default()) >= rest.from {
                rest.note_move(rest.from);
            }
        }
        rests
    }

    fn note_move(&mut self, at: Timestamp) {
        let at = at.max(self.from);
        self.moved = Some(self.moved.map_or(at, |before| before.min(at)));
    }
}

impl<R> Shard<R> {
    pub(super) fn is_minute_due(&self) -> bool {
        self.minutes.is_due(self.now) && self.hourly.has_books()
    }

    /// One page of points by the minute, if any are due. True when more are to be made.
    pub(super) fn note_minute(&mut self) -> bool {
        if !self.is_minute_due() {
            return false;
        }
        self.minutes.begin(self.now);
        let minute = self.now.minute();
        let mut budget = POSITIONS_VALUED_PER_TURN_MAX;
        while budget > 0 {
            let cost = match self.minutes.stage {
                Stage::TakingUp(place) if place < self.minutes.noticed.len() => {
                    self.minutes.stage = Stage::TakingUp(place + 1);
                    self.take_up(place, minute)
                }
                Stage::TakingUp(_) => {
                    self.minutes.stage = Stage::Noting(NO_WALLET);
                    0
                }
                Stage::Noting(from) => {
                    let Some((wallet, _)) = self.minutes.curves.range(from..).next() else {
                        self.minutes.finish(minute);
                        return false;
                    };
                    // Of a user with several prefixes those after the first find nothing to record.
                    let (prefix, owner) = (UserId::of_object(wallet.0), self.users.owner_of(wallet.0));
                    self.minutes.stage = Stage::Noting(Minutes::of(prefix).end);
                    self.note_minute_of(owner)
                }
                Stage::Waiting => return false,
            };
            budget = budget.saturating_sub(cost);
        }
        true
    }

    /// Follows the wallet in this slot, if any; returns the count of wallets and positions visited.
    fn take_up(&mut self, place: usize, minute: u32) -> usize {
        let wallet = std::mem::replace(&mut self.minutes.noticed[place], NO_WALLET);
        if wallet == NO_WALLET || self.minutes.touch(wallet, minute) {
            return 0;
        }
        let Some(user) = self.users.get(self.users.owner_of(wallet.0)) else { return 1 };
        for rest in Rest::of(user, user.wallet(wallet).into_iter(), self.now) {
            self.minutes.follow(&rest, minute, UNUSED_FOR_TRADE);
        }
        1 + user.positions().len().min(POSITIONS_VALUED_PER_TURN_MAX)
    }

    /// Records the due points of a user before a command of that user runs.
    #[inline]
    pub(super) fn note_minute_early(&mut self, owner: UserId) {
        if self.is_minute_due() {
            self.note_minute_of(owner);
        }
    }

    fn note_minute_of(&mut self, owner: UserId) -> usize {
        let Some(user) = self.users.get(owner) else { return 1 };
        let marks = Marks { catalog: &self.catalog, books: &self.books };
        self.minutes.note(user, marks, self.now.minute())
    }

    /// A request for the minutes of these wallets: those with holdings or moves are followed from here on.
    pub(super) fn follow(&mut self, owner: UserId, wallets: Wallets) {
        let Some(user) = self.users.get(owner) else { return };
        let minute = self.now.minute();
        let minutes = &mut self.minutes;
        let unknown = user.wallets_in(wallets).filter(|wallet| !minutes.touch(wallet.id, minute));
        let rests = Rest::of(user, unknown, self.now);
        for rest in rests.iter().filter(|rest| rest.moved.is_some()) {
            self.minutes.follow(rest, minute, 0);
        }
        if self.hourly.has_books() {
            self.note_minute_of(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(minute: u32, cash: i64) -> Point {
        Point { minute, cash: Cash(cash), value: Cash(1), baseline: Cash(5) }
    }

    fn rest(wallet: u64, moved: Option<Timestamp>) -> Rest {
        Rest { wallet: WalletId(wallet), point: point(7, 0), from: Timestamp::of_minute(7), moved }
    }

    #[test]
    fn a_curve_keeps_a_day_of_changes() {
        let mut curve = Curve::new(0);
        let capacity = curve.points.capacity();
        for minute in 1..=5_000 {
            curve.note(point(minute, i64::from(minute)));
            let first = curve.points[0].minute;
            // The point of the first minute of an answer is kept, and no older one.
            assert!(first <= earliest(minute).max(1), "{first} at {minute}");
            assert_eq!(curve.points.len() as u32, minute.min(MINUTES_KEPT));
        }
        assert_eq!((curve.points.capacity(), curve.points[0].minute), (capacity, 5_001 - MINUTES_KEPT));
        assert!(capacity * size_of::<Point>() <= 48 << 10, "{capacity} points of {} bytes", size_of::<Point>());
    }

    #[test]
    fn a_curve_keeps_only_changes() {
        let mut curve = Curve::new(0);
        for (minute, cash) in [(1, 10), (2, 10), (3, 10), (4, 11), (5, 10), (9, 10)] {
            curve.note(point(minute, cash));
            assert_eq!(curve.noted, minute);
        }
        assert_eq!(curve.points, [point(1, 10), point(4, 11), point(5, 10)]);
        // Without changes the last point stays; earlier ones are dropped.
        curve.note(point(9_000, 10));
        assert_eq!(curve.points, [point(5, 10)]);
    }

    #[test]
    fn a_curve_starts_before_its_first_move_if_no_value_is_missing() {
        // (moved at minute, now), points, the minute already recorded
        for (moved, now, is_whole, noted) in
            [(20, 20, true, 20), (19, 20, true, 0), (18, 20, false, 0), (7, 20, false, 0)]
        {
            let mut minutes = Minutes::default();
            minutes.follow(&rest(9, Some(Timestamp::of_minute(moved).plus(3))), now, 0);
            let curve = &minutes.curves[&WalletId(9)];
            assert_eq!((curve.points.len() == 1, curve.noted), (is_whole, noted), "{moved} {now}");
        }
    }

    #[test]
    fn followed_wallets_are_bounded() {
        let mut minutes = Minutes::default();
        let moved = Some(Timestamp::of_minute(100));
        for wallet in 1..=FOLLOWED_MAX as u64 {
            minutes.follow(&rest(wallet, moved), 100, UNUSED_FOR_TRADE);
        }
        assert!(minutes.touch(WalletId(1), 101));
        // A trade replaces no wallet in use; a request replaces the one that is unused for longest.
        minutes.follow(&rest(1_000, moved), 100 + UNUSED_FOR_TRADE - 1, UNUSED_FOR_TRADE);
        assert!(!minutes.curves.contains_key(&WalletId(1_000)));
        minutes.follow(&rest(1_001, moved), 101, 0);
        minutes.follow(&rest(1_002, moved), 100 + UNUSED_FOR_TRADE, UNUSED_FOR_TRADE);
        assert_eq!(minutes.curves.len(), FOLLOWED_MAX);
        let there = [1, 2, 3, 4, 1_001, 1_002].map(|wallet| minutes.curves.contains_key(&WalletId(wallet)));
        assert_eq!(there, [true, false, false, true, true, true]);
        // A day later only wallets used meanwhile are followed.
        minutes.finish(100 + MINUTES_KEPT);
        let left: Vec<u64> = minutes.curves.keys().map(|wallet| wallet.0).collect();
        assert_eq!(left, [1, 1_001, 1_002]);
        minutes.finish(u32::MAX);
        assert!(!minutes.is_due(Timestamp(u64::MAX)), "no wallet is followed");
    }

    #[test]
    fn wallets_that_traded_spread_over_the_slots() {
        for shards_count in [1, 2, 8] {
            let mut minutes = Minutes::default();
            assert!(!minutes.is_due(Timestamp(5)));
            for user in 1..=200 {
                (0..3).for_each(|_| minutes.notice(WalletId(UserId(user * shards_count).object(2))));
            }
            assert!(minutes.is_due(Timestamp(5)));
            let noticed = minutes.noticed.iter().filter(|wallet| **wallet != NO_WALLET).count();
            println!("{noticed} of 200 with {shards_count} shards");
            assert!(noticed > 160, "{noticed} with {shards_count} shards");
        }
    }
}
