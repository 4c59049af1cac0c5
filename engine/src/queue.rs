//! The places of resting orders in the queue of one level (engine/docs/execution.md §17): how many of the venue's shares
//! are before an order, and how sure that is.
//!
//! A venue shows the size of a level, not its queue. What is known: shares that arrive later come after it; a trade takes
//! from the front. A level that becomes smaller without a trade was cancelled somewhere in the queue, and where is a
//! guess, which the order's terms make. A trade and the smaller level that it causes may come in either order, so a
//! smaller level waits for trades that explain it, for the window of the terms.
//!
//! Pure: events in, places out. All roundings leave more before an order.

use crate::amount::{Bps, Qty};
use crate::id::OrderId;
use crate::realism::{FillModel, FillTerms, WHOLE};
use crate::time::{MILLISECOND, SECOND, Timestamp};
use std::collections::VecDeque;

/// Confidence of a place that is known exactly.
pub const SURE: u32 = 1 << 30;
/// Trades, and smaller levels, that a level remembers; later ones are added to the last.
const REMEMBERED_MAX: usize = 256;
/// The binary point of ratios.
const RATIO_BITS: u32 = 32;
/// 2^(−1/2), 2^(−1/4) … 2^(−1/64), in 2⁻³².
const ROOTS: [u64; 6] = [3_037_000_499, 3_611_622_602, 3_938_502_375, 4_112_874_773, 4_202_935_003, 4_248_701_964];

/// The place of one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Shares of the venue before the order.
    pub ahead: Qty,
    /// At `since`, of [`SURE`].
    confidence: u32,
    since: Timestamp,
    /// The version of the book that `ahead` was read from: earlier changes are in it.
    version: u64,
    terms: FillTerms,
}

/// One price of one side of one token, with the orders there that have one window.
#[derive(Clone, Debug)]
pub struct Level {
    window_us: u64,
    /// Earlier trades are not its own.
    since: Timestamp,
    size: Qty,
    version: u64,
    /// The size is not known: nothing moves or fills until a snapshot.
    is_frozen: bool,
    printed: VecDeque<Printed>,
    shrunk: VecDeque<Shrunk>,
    /// In id order: first come, first served.
    places: Vec<(OrderId, Place)>,
}

/// Shares of a trade that explain no smaller level yet.
#[derive(Clone, Copy, Debug)]
struct Printed {
    at: Timestamp,
    left: Qty,
    /// The venue stated the taker's side.
    is_stated: bool,
}

/// A smaller level that waits for its explanation.
#[derive(Clone, Copy, Debug)]
struct Shrunk {
    at: Timestamp,
    version: u64,
    /// The size before.
    level: Qty,
    /// Unexplained shares.
    left: Qty,
}

/// What a change of a level is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Only the rule has changed by which the books of both tokens are merged: the size says nothing about the queue.
    pub is_rebased: bool,
    /// The whole book was sent: it repairs a gap.
    pub is_snapshot: bool,
}

impl Place {
    /// A place read from a book of this version at venue time `since`.
    pub fn new(terms: FillTerms, ahead: Qty, confidence: u32, since: Timestamp, version: u64) -> Place {
        Place { ahead, confidence, since, version, terms }
    }

    /// The confidence at a later venue time, of [`SURE`].
    pub fn confidence_at(&self, now: Timestamp) -> u32 {
        decayed(self.confidence, now.since(self.since), self.terms.half_life_s)
    }

    fn guess(&mut self) {
        self.confidence = (u64::from(self.confidence) * 17 / 20) as u32;
    }

    fn halve(&mut self) {
        self.confidence /= 2;
    }
}

impl Level {
    /// A level that shows this size at venue time `since`, in a book of this version; `None`: the book is not known.
    pub fn new(window_ms: u32, shown: Option<(Qty, u64)>, since: Timestamp) -> Level {
        let (size, version) = shown.unwrap_or_default();
        Level {
            window_us: u64::from(window_ms) * MILLISECOND,
            since,
            size,
            version,
            is_frozen: shown.is_none(),
            printed: VecDeque::new(),
            shrunk: VecDeque::new(),
            places: Vec::new(),
        }
    }

    /// The window of its orders in ms.
    pub fn window_ms(&self) -> u32 {
        (self.window_us / MILLISECOND) as u32
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds an order.
    pub fn enter(&mut self, order: OrderId, place: Place) {
        match self.places.binary_search_by_key(&order, |(id, _)| *id) {
            Ok(at) => self.places[at].1 = place,
            Err(at) => self.places.insert(at, (order, place)),
        }
    }

    /// Removes an order.
    pub fn leave(&mut self, order: OrderId) {
        if let Ok(at) = self.places.binary_search_by_key(&order, |(id, _)| *id) {
            self.places.remove(at);
        }
    }

    /// The place of an order.
    pub fn place(&self, order: OrderId) -> Option<&Place> {
        self.places.binary_search_by_key(&order, |(id, _)| *id).ok().map(|at| &self.places[at].1)
    }

    /// The orders, oldest first.
    pub fn orders(&self) -> impl Iterator<Item = OrderId> + '_ {
        self.places.iter().map(|(order, _)| *order)
    }

    /// The book of this version is not reliable: nothing moves or fills until a snapshot.
    pub fn freeze(&mut self, version: u64) {
        if version >= self.version {
            self.is_frozen = true;
            self.printed.clear();
            self.shrunk.clear();
        }
    }

    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// When the oldest smaller level no longer waits: the first moment after its window.
    pub fn due(&self) -> Option<Timestamp> {
        self.shrunk.front().map(|shrunk| shrunk.at.plus(self.window_us + 1))
    }

    /// The venue shows this size from `at` on, in a book of this version.
    pub fn change(&mut self, size: Qty, version: u64, at: Timestamp, news: News) {
        if version <= self.version {
            return;
        }
        let before = std::mem::replace(&mut self.size, size);
        self.version = version;
        if self.is_frozen {
            if news.is_snapshot {
                self.is_frozen = false;
                for (_, place) in self.places.iter_mut().filter(|(_, place)| place.version < version) {
                    place.ahead = place.ahead.min(size);
                    place.halve();
                }
            }
            return;
        }
        if size >= before {
            return;
        }
        let shrunk =
            Shrunk { at, version, level: before, left: if news.is_rebased { Qty::ZERO } else { before - size } };
        let left = self.explained_before(shrunk);
        let is_full = self.shrunk.len() >= REMEMBERED_MAX;
        match self.shrunk.back_mut() {
            Some(last) if is_full => {
                let level = last.level.max(shrunk.level);
                *last = Shrunk { level, left: last.left + left, ..shrunk };
            }
            _ => self.shrunk.push_back(Shrunk { left, ..shrunk }),
        }
    }

    /// Uses up trades that came before a smaller level, and returns the shares that they do not explain.
    fn explained_before(&mut self, shrunk: Shrunk) -> Qty {
        let (mut left, mut is_guessed) = (shrunk.left, false);
        for printed in self.printed.iter_mut().filter(|printed| shrunk.at.since(printed.at) <= self.window_us) {
            let explained = left.min(printed.left);
            printed.left -= explained;
            left -= explained;
            is_guessed |= !explained.is_zero() && !printed.is_stated;
        }
        self.printed.retain(|printed| !printed.left.is_zero());
        if is_guessed {
            self.guess(shrunk.version);
        }
        left
    }

    /// The venue traded this size at this price. `is_stated`: it said which side took. The places of orders move by
    /// [`Level::take`].
    pub fn print(&mut self, size: Qty, at: Timestamp, is_stated: bool) {
        if self.is_frozen || at < self.since {
            return;
        }
        let (mut left, mut guessed) = (size, None::<u64>);
        for shrunk in self.shrunk.iter_mut().filter(|shrunk| at.since(shrunk.at) <= self.window_us) {
            let explained = left.min(shrunk.left);
            shrunk.left -= explained;
            left -= explained;
            if !explained.is_zero() && !is_stated {
                guessed = Some(shrunk.version);
            }
        }
        if let Some(version) = guessed {
            self.guess(version);
        }
        let window = self.window_us;
        self.printed.retain(|printed| at.since(printed.at) <= window);
        if left.is_zero() {
            return;
        }
        let is_full = self.printed.len() >= REMEMBERED_MAX;
        match self.printed.back_mut() {
            Some(last) if is_full => {
                *last = Printed { at, left: last.left + left, is_stated: is_stated && last.is_stated };
            }
            _ => self.printed.push_back(Printed { at, left, is_stated }),
        }
    }

    /// A trade of this size takes from what is before an order. Returns the shares that pass it; `None`: there is no
    /// such order, or nothing moves.
    pub fn take(&mut self, order: OrderId, size: Qty) -> Option<Qty> {
        if self.is_frozen {
            return None;
        }
        let at = self.places.binary_search_by_key(&order, |(id, _)| *id).ok()?;
        let place = &mut self.places[at].1;
        let taken = place.ahead.min(size);
        place.ahead -= taken;
        Some(size - taken)
    }

    /// What [`Level::take`] would return; nothing moves.
    pub fn beyond(&self, order: OrderId, size: Qty) -> Option<Qty> {
        let place = self.place(order).filter(|_| !self.is_frozen)?;
        Some(size - place.ahead.min(size))
    }

    /// Smaller levels whose window is over at `now` are explained or guessed by now. Calls `moved` with each order that
    /// has moved.
    pub fn settle(&mut self, now: Timestamp, mut moved: impl FnMut(OrderId)) {
        while let Some(shrunk) = self.shrunk.front().copied().filter(|shrunk| now.since(shrunk.at) > self.window_us) {
            self.shrunk.pop_front();
            // What later smaller levels took may still be explained.
            let level = self.size + self.shrunk.iter().map(|later| later.left).sum();
            let is_guess = !shrunk.left.is_zero();
            // A later order has read a later book.
            for (order, place) in self.places.iter_mut().filter(|(_, place)| place.version < shrunk.version) {
                let before = place.ahead;
                if is_guess {
                    place.ahead -= cancelled_before(&place.terms, shrunk.left, before, shrunk.level);
                    place.guess();
                }
                place.ahead = place.ahead.min(level);
                if place.ahead != before {
                    moved(*order);
                }
            }
        }
    }

    #[cfg(test)]
    pub fn put_first(&mut self) {
        self.places.iter_mut().for_each(|(_, place)| place.ahead = Qty::ZERO);
    }

    fn guess(&mut self, version: u64) {
        let older = self.places.iter_mut().filter(|(_, place)| place.version < version);
        older.for_each(|(_, place)| place.guess());
    }
}

/// How many of `cancelled` shares were before an order that has `ahead` before it, in a level that showed `level`.
pub fn cancelled_before(terms: &FillTerms, cancelled: Qty, ahead: Qty, level: Qty) -> Qty {
    let ratio = match terms.model {
        FillModel::Queue => part_before(terms.cancel_share, ahead, level),
        FillModel::QueueProb => odds_before(terms.n.into(), ahead, level),
        FillModel::Touch | FillModel::Cross | FillModel::Through => 0,
    };
    let moved = (u128::from(cancelled.0) * u128::from(ratio)) >> RATIO_BITS;
    Qty(u64::try_from(moved).unwrap_or(u64::MAX)).min(ahead)
}

/// `share × ahead ÷ level` in 2⁻³², down.
fn part_before(share: Bps, ahead: Qty, level: Qty) -> u64 {
    let (ahead, level) = (u128::from(ahead.min(level).0), u128::from(level.0.max(1)));
    // At most 14 + 64 + 32 bits.
    let ratio = ((u128::from(share.0.min(WHOLE.0)) * ahead) << RATIO_BITS) / (u128::from(WHOLE.0) * level);
    ratio as u64
}

/// `aheadⁿ ÷ (aheadⁿ + behindⁿ)` in 2⁻³², down.
fn odds_before(n: u32, ahead: Qty, level: Qty) -> u64 {
    let (ahead, behind) = (u128::from(ahead.0), u128::from(level.0.saturating_sub(ahead.0)));
    if behind == 0 {
        return if ahead == 0 { 0 } else { 1 << RATIO_BITS };
    }
    // The part before in 2⁻³², less than 2³²: its third power, shifted by 32 bits more, has 128 bits.
    let before = (ahead << RATIO_BITS) / (ahead + behind);
    let after = (1_u128 << RATIO_BITS) - before;
    let (before, after) = (before.pow(n), after.pow(n));
    ((before << RATIO_BITS) / (before + after)) as u64
}

/// A confidence after some time: halved each half-life.
pub fn decayed(confidence: u32, elapsed_us: u64, half_life_s: u32) -> u32 {
    let half_life = u64::from(half_life_s.max(1)) * SECOND;
    let halvings = elapsed_us / half_life;
    if halvings >= u64::from(u32::BITS) {
        return 0;
    }
    // The rest in 64ths of a half-life, bit by bit.
    let steps = u128::from(elapsed_us % half_life) * 64 / u128::from(half_life);
    let mut left = u64::from(confidence >> halvings);
    for (bit, root) in ROOTS.iter().enumerate() {
        if (steps >> (ROOTS.len() - 1 - bit)) & 1 == 1 {
            left = ((u128::from(left) * u128::from(*root)) >> RATIO_BITS) as u64;
        }
    }
    left as u32
}

/// Hundredths of [`SURE`], half up: as answers show a confidence.
pub fn hundredths(confidence: u32) -> u8 {
    ((u64::from(confidence.min(SURE)) * 100 + u64::from(SURE / 2)) / u64::from(SURE)) as u8
}

/// A confidence in 10⁻⁴, half up, as it is journaled, and back.
pub fn to_bps(confidence: u32) -> Bps {
    Bps(((u64::from(confidence.min(SURE)) * 10_000 + u64::from(SURE / 2)) / u64::from(SURE)) as u32)
}

/// See [`to_bps`].
pub fn of_bps(confidence: Bps) -> u32 {
    (u64::from(confidence.0.min(WHOLE.0)) * u64::from(SURE) / u64::from(WHOLE.0)) as u32
}

#[cfg(test)]
mod tests;
