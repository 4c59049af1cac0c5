//! Index of the resting orders of a shard: by instrument, side and price, by expiration, and those that await their
//! first live book.
//!
//! Derived from the orders by `apply`, never part of a snapshot or digest. Users never compete, so the order id only
//! decides the sequence of a cycle's records.

use super::{Order, Side};
use crate::amount::Price;
use crate::book::Books;
use crate::id::{InstrumentId, MarketId, OrderId, Outcome};
use crate::time::Timestamp;
use crate::user::sorted::Sorted;
use ahash::AHashMap;
use std::collections::BTreeSet;
use std::iter::Rev;
use std::sync::Arc;

/// Empty prices or instruments that stay for reuse before they are removed.
const EMPTY_KEPT: usize = 64;

/// Index of the resting orders of one shard.
#[derive(Debug, Default)]
pub struct Resting {
    books: AHashMap<InstrumentId, Box<Sides>>,
    /// Those with an order.
    instruments: Sorted<InstrumentId>,
    by_expiration: BTreeSet<(Timestamp, OrderId)>,
    awaiting: BTreeSet<(InstrumentId, OrderId)>,
    len: usize,
    /// Count of orders with a `hold_reason`.
    held_count: usize,
    /// Marks markets with a resting order, once there are books.
    books_watched: Watched,
    /// No order is listed until all are: while records are folded, the lists are not read.
    is_unlisted: bool,
}

/// The books in which this index marks its markets.
#[derive(Default)]
struct Watched(Option<Arc<Books>>);

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Watched").field(&self.0.is_some()).finish()
    }
}

impl Watched {
    fn mark(&self, instrument: InstrumentId, rests: bool) {
        if let Some(books) = &self.0 {
            books.watch(instrument.market(), rests);
        }
    }
}

/// Both sides of one instrument.
#[derive(Debug, Default)]
struct Sides {
    buys: Levels,
    sells: Levels,
    len: usize,
    held_count: usize,
}

/// The prices of one side.
#[derive(Debug, Default)]
struct Levels {
    /// Ascending. An empty one may stay for the next order at its price.
    levels: Vec<Level>,
    empty_count: usize,
}

/// The orders at one price.
#[derive(Debug)]
pub struct Level {
    pub price: Price,
    /// In id order.
    pub orders: Sorted<OrderId>,
}

/// A sortable entry of the index: instrument, side and price in one number, and the order id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Standing {
    place: u64,
    order: OrderId,
}

impl Standing {
    pub fn of(order: &Order) -> Standing {
        Standing { place: place(order.terms.instrument, order.terms.side, order.terms.limit), order: order.id }
    }

    fn instrument(self) -> InstrumentId {
        InstrumentId((self.place >> 32) as u32)
    }

    fn side(self) -> Side {
        if self.place >> 16 & 1 == Side::Buy as u64 { Side::Buy } else { Side::Sell }
    }

    fn price(self) -> Price {
        Price(self.place as u16)
    }
}

fn place(instrument: InstrumentId, side: Side, price: Price) -> u64 {
    u64::from(instrument.0) << 32 | (side as u64) << 16 | u64::from(price.0)
}

impl Resting {
    /// Orders in the index.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Instruments with a resting order, in id order.
    pub fn instruments(&self) -> impl DoubleEndedIterator<Item = InstrumentId> + '_ {
        self.instruments.iter()
    }

    /// Instruments with a resting order from `from` on, in id order: to continue a cycle.
    pub fn instruments_from(&self, from: InstrumentId) -> impl Iterator<Item = InstrumentId> + '_ {
        self.instruments.iter_from(from)
    }

    /// With `held`: whether every order has a `hold_reason`. Without: whether no order has one.
    pub fn is_held(&self, held: bool) -> bool {
        self.held_count == if held { self.len } else { 0 }
    }

    /// The same for the orders of one instrument.
    pub fn is_held_in(&self, instrument: InstrumentId, held: bool) -> bool {
        self.books.get(&instrument).is_none_or(|sides| sides.held_count == if held { sides.len } else { 0 })
    }

    /// The prices of one side that have orders, best first: highest for BUY, lowest for SELL.
    pub fn side(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = &Level> + '_ {
        self.levels(instrument, side).filter(|level| !level.orders.is_empty())
    }

    /// The best price of one side.
    pub fn best(&self, instrument: InstrumentId, side: Side) -> Option<Price> {
        self.side(instrument, side).next().map(|level| level.price)
    }

    /// Orders whose limit reaches `bound`, the best price of the other side of the book: best price first, then id. BUY
    /// at or above a best ask, SELL at or below a best bid.
    pub fn crossing(&self, instrument: InstrumentId, side: Side, bound: Price) -> impl Iterator<Item = OrderId> + '_ {
        self.crossing_at(instrument, side, bound).map(|(_, order)| order)
    }

    /// The same with their limits.
    pub fn crossing_at(
        &self,
        instrument: InstrumentId,
        side: Side,
        bound: Price,
    ) -> impl Iterator<Item = (Price, OrderId)> + '_ {
        let touched = move |level: &&Level| match side {
            Side::Buy => level.price >= bound,
            Side::Sell => level.price <= bound,
        };
        let levels = self.levels(instrument, side).take_while(touched);
        levels.flat_map(|level| level.orders.iter().map(|order| (level.price, order)))
    }

    /// All orders of one instrument: BUY then SELL, each best price first, then id.
    pub fn orders(&self, instrument: InstrumentId) -> impl Iterator<Item = OrderId> + '_ {
        [Side::Buy, Side::Sell]
            .into_iter()
            .flat_map(move |side| self.levels(instrument, side).flat_map(|level| level.orders.iter()))
    }

    /// All orders of a market, outcome by outcome.
    pub fn orders_of_market(&self, market: MarketId) -> impl Iterator<Item = OrderId> + '_ {
        [Outcome::First, Outcome::Second].into_iter().flat_map(move |outcome| self.orders(market.instrument(outcome)))
    }

    /// Orders that await their first live book, by instrument, then id.
    pub fn awaiting(&self) -> impl Iterator<Item = (InstrumentId, OrderId)> + '_ {
        self.awaiting.iter().copied()
    }

    /// Orders of one instrument that await their first live book, in id order.
    pub fn awaiting_in(&self, instrument: InstrumentId) -> impl Iterator<Item = OrderId> + '_ {
        self.awaiting.range((instrument, OrderId(0))..=(instrument, OrderId(u64::MAX))).map(|(_, order)| *order)
    }

    /// GTD orders that have expired at `now`, earliest first.
    pub fn expired(&self, now: Timestamp) -> impl Iterator<Item = OrderId> + '_ {
        self.by_expiration.range(..=(now, OrderId(u64::MAX))).map(|(_, order)| *order)
    }

    /// The next expiration of a GTD order.
    pub fn next_expiration(&self) -> Option<Timestamp> {
        self.by_expiration.first().map(|(at, _)| *at)
    }

    /// From now on markets with a resting order are marked in these books.
    pub(crate) fn watch(&mut self, books: &Arc<Books>) {
        self.books_watched = Watched(Some(books.clone()));
        self.instruments.iter().for_each(|instrument| self.books_watched.mark(instrument, true));
    }

    /// Drops all orders, and ignores changes until [`Resting::list`].
    pub(crate) fn unlist(&mut self) {
        *self = Resting { is_unlisted: true, ..Resting::default() };
    }

    pub(crate) fn is_unlisted(&self) -> bool {
        self.is_unlisted
    }

    /// Whether exactly these orders are listed, each in its place.
    pub(crate) fn lists(&self, mut standing: Vec<Standing>) -> bool {
        standing.sort_unstable();
        let books = self.instruments.iter().filter_map(|instrument| Some((instrument, self.books.get(&instrument)?)));
        let levels = books.flat_map(|(instrument, sides)| {
            let sides = [(Side::Buy, &sides.buys.levels), (Side::Sell, &sides.sells.levels)];
            sides.into_iter().flat_map(move |(side, levels)| levels.iter().map(move |level| (instrument, side, level)))
        });
        let listed = levels.flat_map(|(instrument, side, level)| {
            let place = place(instrument, side, level.price);
            level.orders.iter().map(move |order| Standing { place, order })
        });
        listed.eq(standing)
    }

    /// Whether the counts of orders with a `hold_reason` are correct for each instrument.
    pub(crate) fn counts_held<'a>(&self, open: impl Iterator<Item = &'a Order>) -> bool {
        let mut held = AHashMap::<InstrumentId, usize>::new();
        open.filter(|order| order.held).for_each(|order| *held.entry(order.terms.instrument).or_default() += 1);
        let counted = self.books.iter().filter(|(_, sides)| sides.held_count > 0);
        self.held_count == held.values().sum::<usize>()
            && held == counted.map(|(instrument, sides)| (*instrument, sides.held_count)).collect()
    }

    /// Adds the order to every index except the price levels, and appends to `standing` its entry for
    /// [`Resting::list`], which fills those in bulk.
    pub(crate) fn put_unlisted(&mut self, order: &Order, standing: &mut Vec<Standing>) {
        standing.push(Standing::of(order));
        if order.awaiting_book {
            self.awaiting.insert((order.terms.instrument, order.id));
        }
        if let Some(at) = order.terms.expiration() {
            self.by_expiration.insert((at, order.id));
        }
        if order.held {
            self.books.entry(order.terms.instrument).or_default().held_count += 1;
            self.held_count += 1;
        }
    }

    /// Lists all orders that were put unlisted into an empty index: in sorted order, because random inserts would each
    /// wait for memory.
    pub(crate) fn list(&mut self, mut standing: Vec<Standing>) {
        assert!(self.is_empty(), "orders are listed in bulk before any other");
        self.is_unlisted = false;
        standing.sort_unstable();
        for level in standing.chunk_by(|order, next| order.place == next.place) {
            let (instrument, side, price) = (level[0].instrument(), level[0].side(), level[0].price());
            let sides = self.books.entry(instrument).or_default();
            if sides.len == 0 {
                self.instruments.insert(instrument);
                self.books_watched.mark(instrument, true);
            }
            sides.len += level.len();
            self.len += level.len();
            let orders = Sorted::of_ascending(level.iter().map(|standing| standing.order).collect());
            sides.of_mut(side).levels.push(Level { price, orders });
        }
    }

    /// Adds an order or, if it is `known`, updates whether it awaits a book.
    pub(crate) fn put(&mut self, order: &Order, known: bool) {
        if self.is_unlisted {
            return;
        }
        let (id, instrument) = (order.id, order.terms.instrument);
        if order.awaiting_book {
            self.awaiting.insert((instrument, id));
        } else if known && !self.awaiting.is_empty() {
            self.awaiting.remove(&(instrument, id));
        }
        if known {
            return;
        }
        let sides = self.books.entry(instrument).or_default();
        if sides.len == 0 {
            self.instruments.insert(instrument);
            self.books_watched.mark(instrument, true);
        }
        let new = sides.of_mut(order.terms.side).level(order.terms.limit).insert(id);
        assert!(new, "an order rests once: order {id}");
        sides.len += 1;
        self.len += 1;
        if order.held {
            sides.held_count += 1;
            self.held_count += 1;
        }
        if let Some(at) = order.terms.expiration() {
            self.by_expiration.insert((at, id));
        }
    }

    /// The `hold_reason` of a listed order has changed.
    pub(crate) fn hold(&mut self, order: &Order) {
        if self.is_unlisted {
            return;
        }
        let sides = self.books.get_mut(&order.terms.instrument);
        let sides = sides.expect("a resting order is indexed under its instrument");
        for count in [&mut sides.held_count, &mut self.held_count] {
            assert!(order.held || *count > 0, "an order that is no longer held was counted: order {}", order.id);
            *count = if order.held { *count + 1 } else { *count - 1 };
        }
    }

    /// Prefetches the place of an order that is about to end or to be added.
    pub(crate) fn warm(&self, instrument: InstrumentId, side: Side, limit: Price, order: OrderId) -> usize {
        usize::from(self.is_listed(instrument, side, limit, order))
    }

    /// Whether an order is listed under its instrument and price.
    pub(crate) fn holds(&self, order: &Order) -> bool {
        self.is_listed(order.terms.instrument, order.terms.side, order.terms.limit, order.id)
    }

    fn is_listed(&self, instrument: InstrumentId, side: Side, limit: Price, order: OrderId) -> bool {
        let Some(sides) = self.books.get(&instrument) else { return false };
        let levels = match side {
            Side::Buy => &sides.buys.levels,
            Side::Sell => &sides.sells.levels,
        };
        let at = levels.binary_search_by_key(&limit, |level| level.price);
        at.is_ok_and(|at| levels[at].orders.contains(order))
    }

    /// Removes an order.
    pub(crate) fn remove(&mut self, order: &Order) {
        if self.is_unlisted {
            return;
        }
        let (id, instrument) = (order.id, order.terms.instrument);
        let sides = self.books.get_mut(&instrument).expect("a resting order is indexed under its instrument");
        let found = sides.of_mut(order.terms.side).remove(order.terms.limit, id);
        assert!(found, "a resting order is indexed under its price: order {id}");
        sides.len -= 1;
        self.len -= 1;
        if order.held {
            assert!(sides.held_count > 0, "an order that is held was counted: order {id}");
            sides.held_count -= 1;
            self.held_count -= 1;
        }
        if sides.len == 0 {
            self.instruments.remove(instrument);
            self.books_watched.mark(instrument, false);
            if self.books.len() > 2 * self.instruments.len() + EMPTY_KEPT {
                self.books.retain(|_, sides| sides.len > 0);
            }
        }
        if let Some(at) = order.terms.expiration() {
            self.by_expiration.remove(&(at, id));
        }
        if !self.awaiting.is_empty() {
            self.awaiting.remove(&(instrument, id));
        }
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> BestFirst<'_> {
        let levels = self.books.get(&instrument).map_or(&[][..], |sides| match side {
            Side::Buy => &sides.buys.levels,
            Side::Sell => &sides.sells.levels,
        });
        match side {
            Side::Buy => BestFirst::Descending(levels.iter().rev()),
            Side::Sell => BestFirst::Ascending(levels.iter()),
        }
    }
}

/// The levels of a side from its best price on.
enum BestFirst<'a> {
    Descending(Rev<std::slice::Iter<'a, Level>>),
    Ascending(std::slice::Iter<'a, Level>),
}

impl<'a> Iterator for BestFirst<'a> {
    type Item = &'a Level;
    fn next(&mut self) -> Option<&'a Level> {
        match self {
            BestFirst::Descending(levels) => levels.next(),
            BestFirst::Ascending(levels) => levels.next(),
        }
    }
}

impl Sides {
    fn of_mut(&mut self, side: Side) -> &mut Levels {
        match side {
            Side::Buy => &mut self.buys,
            Side::Sell => &mut self.sells,
        }
    }
}

impl Levels {
    /// The orders at `price`, to which one is about to be added.
    fn level(&mut self, price: Price) -> &mut Sorted<OrderId> {
        let at = match self.levels.binary_search_by_key(&price, |level| level.price) {
            Ok(at) => {
                if self.levels[at].orders.is_empty() {
                    self.empty_count -= 1;
                }
                at
            }
            Err(at) => {
                self.levels.insert(at, Level { price, orders: Sorted::new() });
                at
            }
        };
        &mut self.levels[at].orders
    }

    /// Removes an order; false if it was absent.
    fn remove(&mut self, price: Price, order: OrderId) -> bool {
        let Ok(at) = self.levels.binary_search_by_key(&price, |level| level.price) else { return false };
        let orders = &mut self.levels[at].orders;
        let found = orders.remove(order);
        if orders.is_empty() {
            self.empty_count += 1;
            if self.empty_count > EMPTY_KEPT && 2 * self.empty_count > self.levels.len() {
                self.levels.retain(|level| !level.orders.is_empty());
                self.empty_count = 0;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
