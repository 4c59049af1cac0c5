//! The walk of an order: the effective book less the user's depletion.
//!
//! [`Ground`] is the input of a decision besides the user; [`Desk`] is its scratch space: copies of books, and the
//! depletion overlays of all users. Neither is journaled; a restart drops the overlays (engine/docs/execution.md §9).

use crate::amount::{Bps, Cash, Price, Qty, exact_notional, notional_half_up};
use crate::book::walk::{self, Walk};
use crate::book::{BookSide, Books, Effective, EffectiveLevel, EffectiveTop, Offer, Reach, Unavailable};
use crate::decide::depletion::Depletion;
use crate::fact;
use crate::fee::{Charge, Tariff};
use crate::id::{InstrumentId, UserId};
use crate::market::catalog::Catalog;
use crate::mutation::Mutation;
use crate::order::{Side, Taken};
use crate::realism::WHOLE;
use crate::reject::Reject;
use crate::rules::{Fees, OVERLAYS_PER_GENERATION, Rules};
use crate::time::{MILLISECOND, Timestamp};
use ahash::AHashMap;

pub use crate::book::walk::Want;

/// Levels in the first copy; few orders need more.
const NEAR_LEVELS: usize = 8;
/// Maximum count of lists and texts that are kept for reuse; a batch has fifteen orders.
const SPARES_MAX: usize = 64;
/// Longest text that is kept for reuse.
const SPARE_TEXT_BYTES_MAX: usize = 256;

/// The input of a decision besides its user.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    pub rules: &'a Rules,
    pub books: &'a Books,
    pub catalog: &'a Catalog,
    /// Server time.
    pub now: Timestamp,
    /// The venue is out.
    pub outage: bool,
    /// Venue time, if a recording drives it.
    pub recording: Option<Timestamp>,
}

/// The age of a quote, with its consequences (engine/docs/execution.md §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// `None`: no message about the token.
    pub age_us: Option<u64>,
    /// There was a message about the token, or about its complement, whose mirror it is.
    pub known: bool,
    /// Too old, and refused.
    pub refused: Option<Reject>,
    /// Too old, and only warned of.
    pub warned: bool,
}

/// Best prices of the effective book before depletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    pub bid: Option<Price>,
    pub ask: Option<Price>,
}

/// A request to the book.
#[derive(Clone, Copy, Debug)]
pub struct Taking {
    pub instrument: InstrumentId,
    pub side: Side,
    pub want: Want,
    /// Worst price; touching counts.
    pub bound: Price,
    /// What each level is charged.
    pub tariff: Tariff,
    /// A market order, which `DEPLETION_SCOPE` may exempt.
    pub market: bool,
    /// Whether the rest is priced at the last level when the levels run out: `fok_depth_aware` is off.
    pub beyond_depth: bool,
    /// Part of each shown level that it may take.
    pub depth_share: Bps,
}

/// The result of a walk, before it is posted.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    pub filled: Qty,
    pub notional: Cash,
    pub fee: Cash,
    pub levels: u16,
    /// The first level's price; meaningless when nothing was filled.
    pub best: Price,
    /// Whether the whole size was available.
    pub complete: bool,
    pub taken: Vec<Taken>,
    /// The book of the walk.
    pub sight: Sight,
}

/// Scratch space of one shard's decisions.
#[derive(Debug, Default)]
pub struct Desk {
    effective: Effective,
    /// The book of the copy, and whether it has every level of the side.
    copied: Option<(InstrumentId, Side, bool)>,
    /// The last walk feeds the overlay.
    feeds: bool,
    /// Overlays of users that traded recently, and of those before them: two generations bound the memory.
    young: AHashMap<UserId, Depletion>,
    old: AHashMap<UserId, Depletion>,
    spare: Vec<Vec<Taken>>,
    spare_texts: Vec<String>,
    /// The shard has as many orders in queues as it may have.
    pub queues_are_full: bool,
}

impl Ground<'_> {
    /// The recording's time for a fill of this moment; `None` without a recording, or if the format has no field for
    /// it.
    pub fn venue_at(&self) -> Option<Timestamp> {
        self.recording.filter(|_| self.rules.formats.is_newest())
    }

    /// What fills of an order now are charged that was placed at this rate of the table.
    #[inline]
    pub fn fees(&self, instrument: InstrumentId, rate: Bps) -> Fees {
        let table = &self.rules.fees;
        let market = if self.rules.follows_schedules() { self.catalog.of_instrument(instrument) } else { None };
        market.map_or_else(|| table.by_table(rate), |market| table.of_order(market, rate))
    }

    /// The present age of the instrument's quote.
    pub fn quote(&self, instrument: InstrumentId) -> Quote {
        let age_us = self.books.quote_age(instrument, self.now);
        let too_old = age_us.is_some_and(|age| age > self.rules.quote_age_max_us);
        let enforced = self.rules.quote_age_enforced;
        Quote {
            age_us,
            known: age_us.is_some() || self.books.effective_top(instrument).is_ok(),
            refused: (too_old && enforced).then(|| self.stale(age_us.unwrap_or(0))),
            warned: too_old && !enforced,
        }
    }

    /// The displayed price, and the best prices of the effective book (none if it is unknown), of one read.
    #[inline]
    pub fn shown(&self, instrument: InstrumentId) -> (Option<Cash>, Result<Sight, Reject>) {
        let (mark, top) = self.books.mark_and_top(instrument);
        (mark.map(|mark| mark.price), seen(top))
    }

    /// The best prices of the effective book; none if it is unknown.
    #[inline]
    pub fn sight(&self, instrument: InstrumentId) -> Result<Sight, Reject> {
        seen(self.books.effective_top(instrument))
    }

    /// The refusal of a quote of this age.
    pub fn stale(&self, age_us: u64) -> Reject {
        Reject::StaleQuote { age_ms: age_us / MILLISECOND, max_age_ms: self.rules.quote_age_max_us / MILLISECOND }
    }

    /// Whether resting orders may be matched with this book: no outage, known, not too old.
    pub fn live(&self, quote: &Quote) -> bool {
        !self.outage && quote.known && quote.refused.is_none()
    }
}

#[inline]
fn seen(top: Result<EffectiveTop, Unavailable>) -> Result<Sight, Reject> {
    match top {
        Ok(top) => Ok(Sight { bid: top.bid, ask: top.ask }),
        Err(Unavailable::Unknown) => Ok(Sight::default()),
        Err(Unavailable::Contended) => Err(Reject::Busy),
    }
}

impl Quote {
    /// Whole milliseconds, as in responses.
    pub fn age_ms(&self) -> Option<u32> {
        self.age_us.map(|age| u32::try_from(age / MILLISECOND).unwrap_or(u32::MAX))
    }
}

impl Sight {
    /// Best price of the side that an order takes from.
    pub fn needed(&self, side: Side) -> Option<Price> {
        match side {
            Side::Buy => self.ask,
            Side::Sell => self.bid,
        }
    }

    /// Whether a limit touches the other side.
    pub fn crossed_by(&self, side: Side, limit: Price) -> bool {
        self.needed(side).is_some_and(|best| taken_side(side).within(best, limit))
    }
}

/// The side of the book on which an order rests.
pub fn own_side(side: Side) -> BookSide {
    taken_side(side).opposite()
}

/// The side of the book that an order takes from.
pub fn taken_side(side: Side) -> BookSide {
    match side {
        Side::Buy => BookSide::Ask,
        Side::Sell => BookSide::Bid,
    }
}

impl Desk {
    /// Copies the nearest levels of the book that an order on `side` would take from.
    pub fn look(&mut self, ground: &Ground<'_>, instrument: InstrumentId, side: Side) -> Result<Sight, Reject> {
        self.copy(ground, instrument, side, NEAR_LEVELS)
    }

    /// Copies all levels: for many orders in a row.
    pub fn look_deep(&mut self, ground: &Ground<'_>, instrument: InstrumentId, side: Side) -> Result<Sight, Reject> {
        self.copy(ground, instrument, side, usize::MAX)
    }

    /// Walks the last copied book, which must be of this instrument and side. Records no depletion: see
    /// [`Desk::deplete`].
    pub fn take(&mut self, ground: &Ground<'_>, user: UserId, taking: &Taking) -> Result<Walked, Reject> {
        let (copied, side) = (self.copied, taken_side(taking.side));
        assert_eq!(
            copied.map(|(of, on, _)| (of, on)),
            Some((taking.instrument, taking.side)),
            "the copied book is that of the order"
        );
        let rules = ground.rules;
        self.feeds = rules.flags.book_impact_depletion && (rules.depletion_covers_market_orders || !taking.market);
        let mut taken = self.spare.pop().unwrap_or_default();
        let mut walk = self.walk(ground.books, user, taking, side, &mut taken);
        let ended_inside = self.effective.side(side).last().is_some_and(|last| side.within(last.price, taking.bound));
        let more_beyond = !walk.complete && ended_inside && copied.is_some_and(|(_, _, all)| !all);
        if more_beyond {
            self.copy(ground, taking.instrument, taking.side, usize::MAX)?;
            walk = self.walk(ground.books, user, taking, side, &mut taken);
        }
        if taking.beyond_depth {
            stretch(&mut walk, taking, &mut taken);
        }
        let top = self.effective.top();
        Ok(Walked {
            filled: walk.filled,
            notional: walk.notional,
            fee: walk.fee,
            levels: walk.levels,
            best: walk.best.unwrap_or_default(),
            complete: walk.complete,
            taken,
            sight: Sight { bid: top.bid, ask: top.ask },
        })
    }

    /// Returns a walk that was not used, for reuse of its space.
    pub fn leave(&mut self, walked: Walked) {
        self.recycle(walked.taken);
    }

    /// Takes back the rows of a fill after it is encoded, so that the next walk does not allocate.
    fn recycle(&mut self, mut taken: Vec<Taken>) {
        if taken.capacity() > 0 && self.spare.len() < SPARES_MAX {
            taken.clear();
            self.spare.push(taken);
        }
    }

    /// A copy of a text, in reused space.
    pub fn text(&mut self, text: &str) -> String {
        let mut copy = self.spare_texts.pop().unwrap_or_default();
        copy.clear();
        copy.push_str(text);
        copy
    }

    /// Takes back the space of a fact after it is encoded, so that the next one does not allocate.
    pub fn recycle_fact(&mut self, fact: &mut Mutation) {
        let text = match fact {
            Mutation::OrderFilled(fact::OrderFilled { levels, .. }) => return self.recycle(std::mem::take(levels)),
            Mutation::OrderPlaced(fact::OrderPlaced { terms, .. }) => terms.client_order_id.take(),
            Mutation::RequestRemembered(fact::RequestRemembered { client_order_id, .. }) => {
                Some(std::mem::take(client_order_id))
            }
            _ => None,
        };
        // A rare long text is not worth keeping.
        if let Some(text) = text.filter(|text| (1..=SPARE_TEXT_BYTES_MAX).contains(&text.capacity()))
            && self.spare_texts.len() < SPARES_MAX
        {
            self.spare_texts.push(text);
        }
    }

    /// Records the depletion of the last walk for `user`, after it is posted.
    pub fn deplete(&mut self, books: &Books, user: UserId, taken: &[Taken]) {
        let Some((instrument, side, _)) = self.copied.filter(|_| self.feeds && !taken.is_empty()) else { return };
        if !self.young.contains_key(&user) {
            let overlay = self.old.remove(&user).unwrap_or_default();
            if self.young.len() >= OVERLAYS_PER_GENERATION {
                self.old = std::mem::take(&mut self.young);
            }
            self.young.insert(user, overlay);
        }
        let overlay = self.young.get_mut(&user).expect("inserted above");
        let side = taken_side(side);
        let mirror = |price| books.mirror(instrument, side, price);
        overlay.take(instrument, side, self.effective.side(side), taken, mirror);
    }

    fn copy(
        &mut self,
        ground: &Ground<'_>,
        instrument: InstrumentId,
        side: Side,
        levels: usize,
    ) -> Result<Sight, Reject> {
        let book_side = taken_side(side);
        match ground.books.effective_within(instrument, Reach::of(book_side, levels), &mut self.effective) {
            Ok(()) => {}
            Err(Unavailable::Unknown) => {
                self.effective.bids.clear();
                self.effective.asks.clear();
            }
            Err(Unavailable::Contended) => {
                self.copied = None;
                return Err(Reject::Busy);
            }
        }
        let all = self.effective.side(book_side).len() < levels;
        self.copied = Some((instrument, side, all));
        let top = self.effective.top();
        Ok(Sight { bid: top.bid, ask: top.ask })
    }

    fn walk(&self, books: &Books, user: UserId, taking: &Taking, side: BookSide, taken: &mut Vec<Taken>) -> Walk {
        // The usual charge has a fast form.
        match taking.tariff.plain() {
            Some(rate) => self.walk_at(rate, books, user, taking, side, taken),
            None => self.walk_at(taking.tariff, books, user, taking, side, taken),
        }
    }

    fn walk_at(
        &self,
        charge: impl Charge,
        books: &Books,
        user: UserId,
        taking: &Taking,
        side: BookSide,
        taken: &mut Vec<Taken>,
    ) -> Walk {
        let (levels, bound) = (self.effective.side(side), Some(taking.bound));
        let overlay = if self.feeds { self.young.get(&user).or_else(|| self.old.get(&user)) } else { None };
        if taking.depth_share != WHOLE {
            let mirror = |price| books.mirror(taking.instrument, side, price);
            let offers = levels.iter().map(|level| {
                let left =
                    overlay.map_or_else(|| Offer::from(level), |of| of.left(taking.instrument, side, level, mirror));
                shared(left, level, taking.depth_share)
            });
            return walk::walk(offers, side, taking.want, bound, charge, taken);
        }
        match overlay {
            Some(overlay) => {
                let mirror = |price| books.mirror(taking.instrument, side, price);
                let offers = overlay.offers(taking.instrument, side, levels, mirror);
                walk::walk(offers, side, taking.want, bound, charge, taken)
            }
            None => walk::walk(levels, side, taking.want, bound, charge, taken),
        }
    }
}

/// What is left of the part of a level that a walk may take: as if the level showed only that part, rounded down.
fn shared(left: Offer, level: &EffectiveLevel, share: Bps) -> Offer {
    let withheld = |size: Qty| {
        let may = u128::from(size.0) * u128::from(share.0) / u128::from(WHOLE.0);
        size.0 - may as u64
    };
    let less = |left: Qty, size: Qty| Qty(left.0.saturating_sub(withheld(size)));
    Offer { own: less(left.own, level.own.size), mirrored: less(left.mirrored, level.mirrored.size), ..left }
}

/// `fok_depth_aware` off: the size beyond the levels is filled at the last level's price (engine/docs/execution.md §1).
fn stretch(walk: &mut Walk, taking: &Taking, taken: &mut Vec<Taken>) {
    let Some(last) = walk.worst.filter(|_| !walk.complete) else { return };
    let rest = match taking.want {
        Want::Shares(qty) => Qty(qty.0.saturating_sub(walk.filled.0)),
        Want::Budget(cash) => {
            let left = (u128::from(cash.0.unsigned_abs()) * 10_000).saturating_sub(walk.exact);
            let affordable = u64::try_from(left / u128::from(last.0)).unwrap_or(u64::MAX);
            Qty(affordable).floored_to_order_step()
        }
    };
    // One level, one rounding: its earlier part is computed again together with the rest.
    let (before, paid) = taken
        .iter()
        .filter(|row| row.price == last)
        .fold((Qty::ZERO, Cash::ZERO), |(qty, fee), row| (qty + row.qty, fee + row.fee));
    let fee = taking.tariff.fee(before + rest, last) - paid;
    taken.push(Taken { price: last, qty: rest, fee, mirrored: taken.last().is_some_and(|row| row.mirrored) });
    walk.filled += rest;
    walk.exact += exact_notional(last, rest);
    walk.notional = notional_half_up(walk.exact);
    walk.fee += fee;
    walk.complete = true;
}
