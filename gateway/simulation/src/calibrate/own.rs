//! The traces of the compared orders in the recording. The venue's books show what rested of them, and the venue's
//! trades are partly their fills; a model that met both would compete with itself.
//!
//! - What rested of an order comes off its level, in the books of both tokens, from its placement to its end. The clocks
//!   of the file and of the recording differ, so the change of the level itself says when: one that is as large, in the
//!   right direction, within [`NEAR`]. Without one, the time of the file counts, plus `NEAR`.
//! - A trade that is a fill of an order, once each: by the hash of the transaction or the id of the trade, else by token,
//!   price and size within `NEAR`. It is handed over as [`Event::Own`](engine::print::Event::Own).

use super::orders::{LiveFill, LiveOrder};
use ahash::AHashMap;
use engine::amount::{Price, Qty};
use engine::book::BookSide;
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::order::Side;
use engine::time::{SECOND, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use venue::{FeedUpdate, Level};

/// How far two times of one event may be apart.
pub const NEAR: u64 = 2 * SECOND;

/// A level of a market: bids of the first token and asks of the second, or the reverse, at one price of the first. A
/// venue may show it in the book of either token, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    pub market: MarketId,
    first_bids: bool,
    price: Price,
}

/// What is known of a level with compared orders.
#[derive(Debug, Default)]
struct Face {
    /// The sizes in the books of both tokens, as the venue shows them; `None`: no book yet.
    shown: [Option<Qty>; 2],
    rests: Vec<usize>,
    /// Changes that are expected, by their times in the file.
    changes: Vec<usize>,
}

/// What rests of an order.
#[derive(Debug)]
struct Rest {
    initial: Qty,
    removed: Qty,
    has_entered: bool,
}

/// A change of a level that an order causes.
#[derive(Clone, Copy, Debug)]
struct Change {
    rest: usize,
    spot: Spot,
    from: Timestamp,
    until: Timestamp,
    what: What,
    is_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Enters,
    /// Filled or cancelled shares.
    Leaves(Qty),
}

/// A fill that is looked for among the trades.
#[derive(Debug)]
struct Fill {
    left: Qty,
    at: Timestamp,
    id: String,
    hash: Option<String>,
}

/// The traces of all compared orders.
#[derive(Debug, Default)]
pub struct Own {
    faces: BTreeMap<Spot, Face>,
    rests: Vec<Rest>,
    changes: Vec<Change>,
    /// Changes that wait for the venue, by the end of the wait.
    due: BTreeSet<(Timestamp, usize)>,
    /// By market and price of the first token; those off the grid of prices are in no trade.
    fills: AHashMap<(MarketId, Price), Vec<Fill>>,
    /// Faces that the present frame has touched, with their sizes before it.
    touched: Vec<(Spot, [Option<Qty>; 2])>,
    /// Faces of which own shares have changed with the present frame.
    moved: BTreeSet<Spot>,
}

/// A level of a token's book with the size that is left of it.
pub type Left = (InstrumentId, BookSide, Price, Qty);

impl Spot {
    /// The level of this side of a token's book.
    pub fn of(instrument: InstrumentId, side: BookSide, price: Price) -> Spot {
        let market = instrument.market();
        match instrument.outcome() {
            Outcome::First => Spot { market, first_bids: side == BookSide::Bid, price },
            Outcome::Second => Spot { market, first_bids: side == BookSide::Ask, price: price.complement() },
        }
    }

    /// Its side and price in the book of a token.
    fn in_book_of(self, outcome: Outcome) -> (BookSide, Price) {
        let side = |is_bid: bool| if is_bid { BookSide::Bid } else { BookSide::Ask };
        match outcome {
            Outcome::First => (side(self.first_bids), self.price),
            Outcome::Second => (side(!self.first_bids), self.price.complement()),
        }
    }

    fn first_of(market: MarketId) -> Spot {
        Spot { market, first_bids: false, price: Price(0) }
    }
}

const OUTCOMES: [Outcome; 2] = [Outcome::First, Outcome::Second];

impl Own {
    /// An order of this token, whose market is listed now. `entered_at`: when it came to rest by the file.
    pub fn add(&mut self, order: &LiveOrder, instrument: InstrumentId, entered_at: Timestamp) {
        for fill in &order.fills {
            if let Some(price) = price_of_first(fill, instrument) {
                let LiveFill { at, size, .. } = *fill;
                let fill = Fill { left: size, at, id: fill.id.to_ascii_lowercase(), hash: fill.hash.clone() };
                self.fills.entry((instrument.market(), price)).or_default().push(fill);
            }
        }
        // Shares that it took at its placement never rested.
        let taken: Qty = order.fills.iter().filter(|fill| fill.at <= entered_at).map(|fill| fill.size).sum();
        let initial = Qty(order.size.0.saturating_sub(taken.0));
        if order.kind.is_immediate() || initial.is_zero() {
            return;
        }
        let side = if order.side == Side::Buy { BookSide::Bid } else { BookSide::Ask };
        let (spot, rest) = (Spot::of(instrument, side, order.price), self.rests.len());
        self.rests.push(Rest { initial, removed: Qty::ZERO, has_entered: false });
        self.expect(rest, spot, (order.sent_at, entered_at), What::Enters);
        let mut left = initial;
        for fill in order.fills.iter().filter(|fill| fill.at > entered_at) {
            let size = fill.size.min(left);
            left -= size;
            self.expect(rest, spot, (earlier(fill.at), fill.at), What::Leaves(size));
        }
        if let Some(at) = order.cancelled_at.filter(|_| !left.is_zero()) {
            self.expect(rest, spot, (earlier(at), at), What::Leaves(left));
        }
        self.faces.entry(spot).or_default().rests.push(rest);
    }

    fn expect(&mut self, rest: usize, spot: Spot, (from, at): (Timestamp, Timestamp), what: What) {
        let (until, number) = (at.plus(NEAR), self.changes.len());
        self.changes.push(Change { rest, spot, from, until, what, is_done: false });
        self.due.insert((until, number));
        let changes = &self.changes;
        let face = self.faces.entry(spot).or_default();
        let place = face.changes.partition_point(|other| changes[*other].from <= from);
        face.changes.insert(place, number);
    }

    /// Notes what the venue shows in a frame.
    pub fn observe(&mut self, instrument: InstrumentId, update: &FeedUpdate) {
        match update {
            FeedUpdate::BookSnapshot { bids, asks, .. } => {
                let first = Spot::first_of(instrument.market());
                let spots: Vec<Spot> = self.faces.range(first..).map(|(spot, _)| *spot).collect();
                for spot in spots.into_iter().take_while(|spot| spot.market == instrument.market()) {
                    let (side, price) = spot.in_book_of(instrument.outcome());
                    let levels = if side == BookSide::Bid { bids } else { asks };
                    let size = levels.iter().find(|(at, _)| *at == price).map_or(Qty::ZERO, |(_, size)| *size);
                    self.note(spot, instrument.outcome(), size);
                }
            }
            FeedUpdate::BookDelta { levels, .. } => {
                for (side, price, size) in levels {
                    if Price::LOWEST <= *price && *price <= Price::HIGHEST {
                        self.note(Spot::of(instrument, *side, *price), instrument.outcome(), *size);
                    }
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, spot: Spot, outcome: Outcome, size: Qty) {
        let Some(face) = self.faces.get_mut(&spot) else { return };
        if self.touched.iter().all(|(touched, _)| *touched != spot) {
            self.touched.push((spot, face.shown));
        }
        face.shown[outcome as usize] = Some(size);
    }

    /// All updates of a frame that is received now are noted: the changes among them that orders caused count from here
    /// on.
    pub fn recognise(&mut self, now: Timestamp) {
        self.moved.clear();
        for (spot, before) in std::mem::take(&mut self.touched) {
            let Some(face) = self.faces.get(&spot) else { continue };
            let (mut grown, mut shrunk) = (0, 0);
            for (before, after) in before.iter().zip(&face.shown) {
                if let (Some(before), Some(after)) = (before, after) {
                    grown = grown.max(after.0.saturating_sub(before.0));
                    shrunk = shrunk.max(before.0.saturating_sub(after.0));
                }
            }
            for number in face.changes.clone() {
                let Change { from, until, what, is_done, .. } = self.changes[number];
                if from > now {
                    break;
                }
                let (room, size) = match what {
                    What::Enters => (&mut grown, self.rests[self.changes[number].rest].initial),
                    What::Leaves(size) => (&mut shrunk, size),
                };
                if !is_done && now <= until && size.0 <= *room {
                    *room -= size.0;
                    self.apply(number);
                }
            }
        }
    }

    /// When the next change counts that the venue has not shown.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The changes that are due count now. Their levels are in [`Own::moved`].
    pub fn pass(&mut self, now: Timestamp) {
        self.moved.clear();
        while let Some((_, number)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.apply(number);
        }
    }

    fn apply(&mut self, number: usize) {
        let Change { rest, spot, until, what, .. } = self.changes[number];
        self.changes[number].is_done = true;
        self.due.remove(&(until, number));
        let rest = &mut self.rests[rest];
        match what {
            What::Enters => rest.has_entered = true,
            What::Leaves(size) => rest.removed += size,
        }
        self.moved.insert(spot);
        if let Some(face) = self.faces.get_mut(&spot) {
            face.changes.retain(|other| *other != number);
        }
    }

    /// The shares of compared orders in a level.
    fn resting(&self, face: &Face) -> u64 {
        let of = |rest: &usize| {
            let Rest { initial, removed, has_entered } = &self.rests[*rest];
            if *has_entered { initial.0.saturating_sub(removed.0) } else { 0 }
        };
        face.rests.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The size of a level in a token's book without compared orders.
    pub fn without(&self, instrument: InstrumentId, side: BookSide, price: Price, size: Qty) -> Qty {
        if self.faces.is_empty() || !(Price::LOWEST..=Price::HIGHEST).contains(&price) {
            return size;
        }
        match self.faces.get(&Spot::of(instrument, side, price)) {
            Some(face) => Qty(size.0.saturating_sub(self.resting(face))),
            None => size,
        }
    }

    /// A side of a token's book without compared orders.
    pub fn side_without<'a>(
        &'a self,
        instrument: InstrumentId,
        side: BookSide,
        levels: &'a [Level],
    ) -> impl Iterator<Item = Level> + 'a {
        let left = levels.iter().map(move |(price, size)| (*price, self.without(instrument, side, *price, *size)));
        left.filter(|(_, size)| !size.is_zero())
    }

    /// The levels in the books of both tokens whose own shares have changed last.
    pub fn moved(&self) -> Vec<Left> {
        let mut left = Vec::new();
        for spot in &self.moved {
            let Some(face) = self.faces.get(spot) else { continue };
            for outcome in OUTCOMES {
                if let Some(size) = face.shown[outcome as usize] {
                    let ((side, price), instrument) = (spot.in_book_of(outcome), spot.market.instrument(outcome));
                    left.push((instrument, side, price, Qty(size.0.saturating_sub(self.resting(face)))));
                }
            }
        }
        left
    }

    /// The part of a trade that is fills of compared orders. Each fill is found once. `times`: of the venue, and of the
    /// receipt.
    pub fn part_of(
        &mut self,
        instrument: InstrumentId,
        price: Price,
        size: Qty,
        id: Option<&str>,
        times: [Timestamp; 2],
    ) -> Qty {
        let price = if instrument.outcome() == Outcome::First { price } else { price.complement() };
        let Some(fills) = self.fills.get_mut(&(instrument.market(), price)) else { return Qty::ZERO };
        let id = id.map(str::to_ascii_lowercase);
        let (mut own, mut by_terms) = (Qty::ZERO, None);
        for (number, fill) in fills.iter_mut().enumerate() {
            let is_named = id.as_ref().is_some_and(|id| *id == fill.id || fill.hash.as_ref() == Some(id));
            if is_named {
                let part = fill.left.min(size - own);
                fill.left -= part;
                own += part;
                continue;
            }
            // Two names that differ are two trades.
            let may_be = id.is_none() || fill.hash.is_none();
            let is_near = times.iter().any(|at| at.since(fill.at).max(fill.at.since(*at)) <= NEAR);
            if may_be && is_near && fill.left == size && by_terms.is_none() {
                by_terms = Some(number);
            }
        }
        if let Some(number) = by_terms.filter(|_| own.is_zero()) {
            fills[number].left = Qty::ZERO;
            own = size;
        }
        fills.retain(|fill| !fill.left.is_zero());
        own
    }
}

/// The price of a fill in terms of the first token, if it is on the grid.
fn price_of_first(fill: &LiveFill, instrument: InstrumentId) -> Option<Price> {
    let price = u16::try_from(fill.price.0 / 100).ok().filter(|_| fill.price.0 % 100 == 0).map(Price)?;
    Some(if instrument.outcome() == Outcome::First { price } else { price.complement() })
}

fn earlier(at: Timestamp) -> Timestamp {
    Timestamp(at.0.saturating_sub(NEAR))
}

#[cfg(test)]
mod tests;
