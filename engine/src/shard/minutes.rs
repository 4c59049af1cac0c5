//! The points of equity at each full minute of server time, for the last 24 hours (ext `fidelity=minute`, engine/docs/account.md §5).
//!
//! They are kept in memory alone and journaled nowhere: a new process begins anew, and what stands before a curve are the
//! points of the full hours. Only few wallets are followed, [`FOLLOWED_MAX`] of a shard: those that traded, and those whose
//! points were asked for, until neither happens for 24 hours. When all places are taken, whoever asks gets the place of the
//! wallet that is unused for longest; a trade gets it only if that is an hour or more.
//!
//! A wallet that holds nothing and has not moved since its last full hour is worth what it was then: it needs no curve, and
//! gets that one before its first trade. So the first session of a wallet is a curve from its creation on.
//!
//! ```text
//! fill ─► noticed ──┐ each minute, a page a turn
//!                   ├─► followed ─► one point, where the worth changed ─► rows
//! asked for ────────┘
//! ```

use super::Shard;
use crate::amount::Cash;
use crate::command::Wallets;
use crate::id::{OBJECT_BITS, UserId, WalletId};
use crate::mark::Marks;
use crate::rules::POSITIONS_VALUED_PER_TURN_MAX;
use crate::time::Timestamp;
use crate::user::equity::{self, EquityRow, Sums};
use crate::user::{User, Wallet};
use std::collections::{BTreeMap, VecDeque};

/// Minutes that a curve goes back, and minutes after which an unused wallet is no longer followed.
const MINUTES_KEPT: u32 = 24 * 60;
/// Wallets that a shard follows at most: with all points 24 MB.
const FOLLOWED_MAX: usize = 512;
/// A trade takes the place of a wallet only if that is unused for so many minutes: else many traders would take each
/// other's places, and nobody had a curve.
const KEPT_FROM_TRADES: u32 = 60;
/// Places for wallets that traded since the last pass; a power of two.
const NOTICED_BITS: u32 = 10;
/// No wallet has this id: wallets are of users, who are numbered from 1.
const NOBODY: WalletId = WalletId(0);

/// A wallet at a full minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    /// Minutes since 1970.
    minute: u32,
    /// Cash, what is set aside included.
    cash: Cash,
    /// What its open positions were worth; at cost where there was no mark.
    value: Cash,
    baseline: Cash,
}

impl Point {
    fn of_hour(point: &equity::Point) -> Point {
        let equity::Point { hour, cash, value, baseline } = *point;
        Point { minute: hour * 60, cash, value, baseline }
    }

    /// The same worth, whatever the minute.
    fn same_as(&self, other: &Point) -> bool {
        (self.cash, self.value, self.baseline) == (other.cash, other.value, other.baseline)
    }
}

/// The points of a wallet that is followed, in time order, where its worth changed. A minute without one is worth what the
/// last point before it says.
#[derive(Debug)]
struct Curve {
    /// When it was used last: asked for, or found to have traded.
    used: u32,
    /// The minute that was looked at last.
    noted: u32,
    points: VecDeque<Point>,
}

impl Curve {
    /// All room at once, so that a point never allocates.
    fn new(used: u32) -> Curve {
        Curve { used, noted: 0, points: VecDeque::with_capacity(MINUTES_KEPT as usize) }
    }

    /// Takes in what the wallet is worth at a later minute; drops what no row goes back to.
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

/// Where a pass over the followed wallets stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// Wallets that traded are taken up, from this place on.
    TakingUp(usize),
    /// Points are made, from this wallet on.
    Noting(WalletId),
}

/// Who is followed, and how far the points are.
#[derive(Debug)]
pub(super) struct Minutes {
    curves: BTreeMap<WalletId, Curve>,
    /// Wallets that traded since the last pass, each at the place that its id says. Where two have the same, the later one
    /// is kept: the other is noticed at one of its next trades.
    noticed: Box<[WalletId; 1 << NOTICED_BITS]>,
    has_noticed: bool,
    stage: Stage,
    /// The first moment of the minute behind the last pass.
    next: Timestamp,
}

impl Default for Minutes {
    fn default() -> Minutes {
        Minutes {
            curves: BTreeMap::new(),
            noticed: Box::new([NOBODY; 1 << NOTICED_BITS]),
            has_noticed: false,
            stage: Stage::Waiting,
            next: Timestamp(0),
        }
    }
}

impl Minutes {
    /// A fill of this wallet. On the way of every order: two stores.
    #[inline]
    pub fn notice(&mut self, wallet: WalletId) {
        let spread = wallet.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.noticed[(spread >> (u64::BITS - NOTICED_BITS)) as usize] = wallet;
        self.has_noticed = true;
    }

    /// Points are being made, or somebody is followed and it is time to begin.
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

    /// Follows one more wallet, if there is a place or one that is unused for `unused_min` minutes.
    fn follow(&mut self, rest: &Rest, minute: u32, unused_min: u32) {
        let mut curve = Curve::new(minute);
        if self.curves.len() >= FOLLOWED_MAX {
            let unused = self.curves.iter().min_by_key(|(wallet, curve)| (curve.used, **wallet));
            let place = unused.filter(|(_, unused)| unused.used + unused_min <= minute).map(|(wallet, _)| *wallet);
            let Some(place) = place else { return };
            self.curves.remove(&place);
        }
        // Nothing is known between its first move and now, unless that is this minute or the one before.
        let moved = rest.moved.map_or(minute, Timestamp::minute);
        if moved + 1 >= minute {
            curve.points.push_back(rest.point);
            // It moved behind the beginning of this minute, at which it was worth that.
            curve.noted = if moved == minute { minute } else { 0 };
        }
        self.curves.insert(rest.wallet, curve);
    }

    /// Wallets of a user, from which to which.
    fn of(owner: UserId) -> std::ops::Range<WalletId> {
        WalletId(owner.0 << OBJECT_BITS)..WalletId((owner.0 + 1) << OBJECT_BITS)
    }

    /// The points of a user's followed wallets at this minute, as far as they are not made; answers how many things were
    /// looked at.
    fn note(&mut self, user: &User, marks: Marks<'_>, minute: u32) -> usize {
        let mut looked_at = 1;
        for (id, curve) in self.curves.range_mut(Minutes::of(user.id)).filter(|(_, curve)| curve.noted < minute) {
            let Some(wallet) = user.wallet(*id) else { continue };
            let value = marks.value_of(user, *id);
            curve.note(Point { minute, cash: wallet.cash, value, baseline: wallet.baseline });
            looked_at += 1 + user.open_positions().count();
        }
        looked_at
    }

    /// These wallets together at each full minute of the last 24 hours, as far back as all of them are known by the minute;
    /// before that at each full hour. Minutes before any of them was opened are left out.
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

/// The first minute of which an answer at this one tells.
fn earliest(minute: u32) -> u32 {
    (minute + 1).saturating_sub(MINUTES_KEPT)
}

/// What a wallet that is not followed was worth at its last full hour, and when it first moved since; `None`: not yet.
struct Rest {
    wallet: WalletId,
    point: Point,
    from: Timestamp,
    moved: Option<Timestamp>,
}

impl Rest {
    /// Of some wallets of a user, which come in id order. Positions are in the order in which they were opened, so only the
    /// newest are looked through, a page of them at most: a wallet that may have moved before counts as one that did.
    fn of<'a>(user: &User, wallets: impl Iterator<Item = &'a Wallet>, now: Timestamp) -> Vec<Rest> {
        let rest = |wallet: &Wallet| {
            let last = user.last_point(wallet);
            let from = Timestamp::of_hour(last.hour).max(wallet.created_at);
            let reset = user.resets(wallet.id).filter(|at| *at >= from).min();
            // Another baseline comes with a better plan; when it came is not kept.
            let other = (last.cash, last.baseline) != (wallet.cash, wallet.baseline);
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
        let has_traded = |rest: &Rest| user.trading().tally(rest.wallet).fills > 0;
        let traded = rests.iter().filter(|rest| has_traded(rest));
        let Some(earliest) = traded.map(|rest| rest.from).min() else { return rests };
        let mut newest = user.positions().iter().rev().take_while(|held| held.opened_at >= earliest);
        for held in newest.by_ref().take(POSITIONS_VALUED_PER_TURN_MAX) {
            if let Some(row) = row_of(&rests, held.wallet).filter(|row| rests[*row].from <= held.opened_at) {
                rests[row].note_move(held.opened_at);
            }
        }
        if let Some(unseen) = newest.next() {
            let may_have_moved = |rest: &&mut Rest| rest.from <= unseen.opened_at && has_traded(rest);
            rests.iter_mut().filter(may_have_moved).for_each(|rest| rest.note_move(rest.from));
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
                    self.minutes.stage = Stage::Noting(NOBODY);
                    0
                }
                Stage::Noting(from) => {
                    let Some((wallet, _)) = self.minutes.curves.range(from..).next() else {
                        self.minutes.finish(minute);
                        return false;
                    };
                    let owner = UserId::of_object(wallet.0);
                    self.minutes.stage = Stage::Noting(Minutes::of(owner).end);
                    self.note_minute_of(owner)
                }
                Stage::Waiting => return false,
            };
            budget = budget.saturating_sub(cost);
        }
        true
    }

    /// Follows the wallet that was noticed at this place, if any; answers how many things were looked at.
    fn take_up(&mut self, place: usize, minute: u32) -> usize {
        let wallet = std::mem::replace(&mut self.minutes.noticed[place], NOBODY);
        if wallet == NOBODY || self.minutes.touch(wallet, minute) {
            return 0;
        }
        let Some(user) = self.users.get(UserId::of_object(wallet.0)) else { return 1 };
        for rest in Rest::of(user, user.wallet(wallet).into_iter(), self.now) {
            self.minutes.follow(&rest, minute, KEPT_FROM_TRADES);
        }
        1 + user.positions().len().min(POSITIONS_VALUED_PER_TURN_MAX)
    }

    /// The points of a user for whom something is about to be done while they are due.
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

    /// Somebody asks for the minutes of these wallets: those that hold something, or moved, are followed from here on.
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
            // What stood at the first minute of an answer is there, and nothing older.
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
        // However long nothing changes, the last point stands; those before it go.
        curve.note(point(9_000, 10));
        assert_eq!(curve.points, [point(5, 10)]);
    }

    #[test]
    fn a_curve_begins_before_its_first_move_where_nothing_is_missing() {
        // (moved at minute, now), points, the minute that is looked at already
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
            minutes.follow(&rest(wallet, moved), 100, KEPT_FROM_TRADES);
        }
        assert!(minutes.touch(WalletId(1), 101));
        // A trade takes no place that is used; asking takes the one that is unused for longest.
        minutes.follow(&rest(1_000, moved), 100 + KEPT_FROM_TRADES - 1, KEPT_FROM_TRADES);
        assert!(!minutes.curves.contains_key(&WalletId(1_000)));
        minutes.follow(&rest(1_001, moved), 101, 0);
        minutes.follow(&rest(1_002, moved), 100 + KEPT_FROM_TRADES, KEPT_FROM_TRADES);
        assert_eq!(minutes.curves.len(), FOLLOWED_MAX);
        let there = [1, 2, 3, 4, 1_001, 1_002].map(|wallet| minutes.curves.contains_key(&WalletId(wallet)));
        assert_eq!(there, [true, false, false, true, true, true]);
        // A day later nobody is followed who was not used meanwhile.
        minutes.finish(100 + MINUTES_KEPT);
        let left: Vec<u64> = minutes.curves.keys().map(|wallet| wallet.0).collect();
        assert_eq!(left, [1, 1_001, 1_002]);
        minutes.finish(u32::MAX);
        assert!(!minutes.is_due(Timestamp(u64::MAX)), "nobody is followed");
    }

    #[test]
    fn what_traded_is_noticed_at_places_that_spread() {
        for shards_count in [1, 2, 8] {
            let mut minutes = Minutes::default();
            assert!(!minutes.is_due(Timestamp(5)));
            for user in 1..=200 {
                (0..3).for_each(|_| minutes.notice(WalletId(UserId(user * shards_count).object(2))));
            }
            assert!(minutes.is_due(Timestamp(5)));
            let noticed = minutes.noticed.iter().filter(|wallet| **wallet != NOBODY).count();
            println!("{noticed} of 200 with {shards_count} shards");
            assert!(noticed > 160, "{noticed} with {shards_count} shards");
        }
    }
}
