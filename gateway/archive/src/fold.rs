//! The book of one token, folded from its events (gateway/docs/archive.md §4): absolute sizes, older books ignored.

use crate::row::{Event, is_price};
use crate::varint::{Reader, put, put_signed};
use engine::amount::{Price, Qty};
use engine::book::BookSide;
use engine::time::Timestamp;

/// Levels of one side, worst first: changes are mostly near the best price, which is the end.
type Levels = Vec<(Price, Qty)>;

/// The state of a token after some of its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    bids: Levels,
    asks: Levels,
    /// Best bid and ask as the venue stated them last, since the last whole book.
    stated: [Option<Price>; 2],
    /// Whether a whole book has been applied.
    is_known: bool,
    /// Times in milliseconds: of the venue, of the last whole book and of any event; receipt of the same.
    snapshot_source: u64,
    last_source: u64,
    snapshot_received: u64,
    last_received: u64,
    /// The last change, to recognise its repetition.
    last_change: Option<(u64, BookSide, Price, Qty)>,
    deduped: u32,
}

/// What an event does to the book.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The whole book, in any order; of levels with the same price the last one counts.
    Book { bids: &'a [(Price, Qty)], asks: &'a [(Price, Qty)] },
    /// One level, and the best bid and ask that the venue states after it.
    Level { side: BookSide, price: Price, size: Qty, stated: [Option<Price>; 2] },
    /// A trade: a message about the token that changes no level.
    Trade,
}

/// A folded book as orders meet it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Best first.
    pub bids: Vec<(Price, Qty)>,
    pub asks: Vec<(Price, Qty)>,
    /// Levels that were left out because they cross the other side.
    pub crossed_dropped: u32,
}

impl<'a> Change<'a> {
    /// The change of an event; `None` for one that is not about the book.
    pub fn of(event: &'a Event) -> Option<Change<'a>> {
        Some(match event {
            Event::Book { bids, asks } => Change::Book { bids, asks },
            Event::PriceChange { price, size, side, best_bid, best_ask } => {
                Change::Level { side: *side, price: *price, size: *size, stated: [*best_bid, *best_ask] }
            }
            Event::LastTradePrice { .. } => Change::Trade,
            Event::TickSizeChange { .. } => return None,
        })
    }
}

impl Folded {
    /// Applies an event of the token. Events come in the order of receipt.
    pub fn apply(&mut self, received: Timestamp, source: Timestamp, event: &Event) {
        if let Some(change) = Change::of(event) {
            self.apply_change(received, source, change);
        }
    }

    /// Applies the change of an event.
    pub fn apply_change(&mut self, received: Timestamp, source: Timestamp, change: Change<'_>) {
        self.change(received.millis(), source.millis(), change);
    }

    /// The same with times in milliseconds. A book that is older than the last event is ignored, so is a change
    /// that is older than the last book, and a change before the first book.
    pub(crate) fn change(&mut self, received: u64, source: u64, change: Change<'_>) {
        match change {
            Change::Book { bids, asks } => {
                if source < self.last_source {
                    return;
                }
                let is_repeated = self.is_known && source == self.snapshot_source && self.is_same(bids, asks);
                self.deduped = self.deduped.saturating_add(is_repeated.into());
                replace(&mut self.bids, BookSide::Bid, bids);
                replace(&mut self.asks, BookSide::Ask, asks);
                self.is_known = true;
                self.stated = [None; 2];
                self.last_change = None;
                self.snapshot_source = source;
                self.snapshot_received = received;
                self.last_source = source;
            }
            Change::Level { side, price, size, stated } => {
                if source < self.snapshot_source {
                    return;
                }
                self.last_source = self.last_source.max(source);
                if !self.is_known {
                    return;
                }
                let this = Some((source, side, price, size));
                self.deduped = self.deduped.saturating_add((self.last_change == this).into());
                self.last_change = this;
                self.stated = stated;
                match side {
                    BookSide::Bid => set(&mut self.bids, side, price, size),
                    BookSide::Ask => set(&mut self.asks, side, price, size),
                }
            }
            Change::Trade => {}
        }
        self.last_received = received;
    }

    fn is_same(&self, bids: &[(Price, Qty)], asks: &[(Price, Qty)]) -> bool {
        let (mut of_bids, mut of_asks) = (Levels::new(), Levels::new());
        replace(&mut of_bids, BookSide::Bid, bids);
        replace(&mut of_asks, BookSide::Ask, asks);
        of_bids == self.bids && of_asks == self.asks
    }

    /// Whether a whole book has been applied: otherwise there is no book.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Receipt of the last event that counted.
    pub fn last_received(&self) -> Timestamp {
        Timestamp::from_millis(self.last_received)
    }

    /// Receipt of the last whole book, which ends a gap.
    pub fn snapshot_received(&self) -> Timestamp {
        Timestamp::from_millis(self.snapshot_received)
    }

    /// Repeated events so far.
    pub fn deduped(&self) -> u32 {
        self.deduped
    }

    /// The folded best bid and ask.
    pub fn best(&self) -> [Option<Price>; 2] {
        [self.bids.last(), self.asks.last()].map(|level| level.map(|(price, _)| *price))
    }

    /// Bytes that a copy of it takes in memory.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Folded>() + (self.bids.len() + self.asks.len()) * size_of::<(Price, Qty)>()
    }

    /// The book without crossed levels. If it is crossed, levels better than the stated best prices are left out; if it
    /// still is, all levels that cross the best price of the other side.
    pub fn view(&self) -> View {
        let mut view = View {
            bids: self.bids.iter().rev().copied().collect(),
            asks: self.asks.iter().rev().copied().collect(),
            crossed_dropped: 0,
        };
        if let (true, [Some(bid), Some(ask)]) = (view.is_crossed(), self.stated)
            && bid < ask
        {
            view.keep(|price| price <= bid, |price| price >= ask);
        }
        if view.is_crossed() {
            let (bid, ask) = (view.bids[0].0, view.asks[0].0);
            view.keep(|price| price < ask, |price| price > bid);
        }
        view
    }

    /// Appends the state as bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let [bid, ask] = self.stated;
        let is_bid = self.last_change.is_some_and(|(_, side, ..)| side == BookSide::Bid);
        let flags = [self.is_known, bid.is_some(), ask.is_some(), self.last_change.is_some(), is_bid];
        out.push(flags.into_iter().enumerate().map(|(bit, is_set)| u8::from(is_set) << bit).sum());
        put(out, self.last_received);
        for time in [self.last_source, self.snapshot_source, self.snapshot_received] {
            put_signed(out, time.wrapping_sub(self.last_received) as i64);
        }
        put(out, self.deduped.into());
        bid.iter().chain(&ask).for_each(|price| put(out, price.0.into()));
        if let Some((source, _, price, size)) = self.last_change {
            put_signed(out, source.wrapping_sub(self.last_received) as i64);
            put(out, price.0.into());
            put(out, size.0);
        }
        for side in [&self.bids, &self.asks] {
            put(out, side.len() as u64);
            let mut last = 0;
            for (price, size) in side {
                put(out, u64::from(price.0.abs_diff(last)));
                put(out, size.0);
                last = price.0;
            }
        }
    }

    /// Reads a whole state; `None` for other bytes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Folded> {
        let mut reader = Reader::new(bytes);
        let flags = reader.byte()?;
        let has = |bit: u8| flags & 1 << bit != 0;
        let last_received = reader.number()?;
        let mut time = || Some(last_received.wrapping_add(reader.signed()? as u64));
        let (last_source, snapshot_source, snapshot_received) = (time()?, time()?, time()?);
        let deduped = u32::try_from(reader.number()?).ok()?;
        let bid = if has(1) { Some(price(&mut reader)?) } else { None };
        let ask = if has(2) { Some(price(&mut reader)?) } else { None };
        let last_change = if has(3) {
            let source = last_received.wrapping_add(reader.signed()? as u64);
            let side = if has(4) { BookSide::Bid } else { BookSide::Ask };
            Some((source, side, price(&mut reader)?, Qty(reader.number()?)))
        } else {
            None
        };
        let bids = levels(&mut reader, BookSide::Bid)?;
        let asks = levels(&mut reader, BookSide::Ask)?;
        (reader.is_empty() && flags < 32).then_some(Folded {
            bids,
            asks,
            stated: [bid, ask],
            is_known: has(0),
            snapshot_source,
            last_source,
            snapshot_received,
            last_received,
            last_change,
            deduped,
        })
    }
}

impl View {
    fn is_crossed(&self) -> bool {
        matches!((self.bids.first(), self.asks.first()), (Some((bid, _)), Some((ask, _))) if bid >= ask)
    }

    fn keep(&mut self, bids: impl Fn(Price) -> bool, asks: impl Fn(Price) -> bool) {
        let before = self.bids.len() + self.asks.len();
        self.bids.retain(|(price, _)| bids(*price));
        self.asks.retain(|(price, _)| asks(*price));
        self.crossed_dropped += (before - self.bids.len() - self.asks.len()) as u32;
    }
}

fn price(reader: &mut Reader<'_>) -> Option<Price> {
    u16::try_from(reader.number()?).ok().map(Price).filter(|price| is_price(*price))
}

/// Levels in their order, each price once.
fn levels(reader: &mut Reader<'_>, side: BookSide) -> Option<Levels> {
    // A level takes at least two bytes, and there are fewer than 10 000 prices.
    let count = usize::try_from(reader.number()?).ok().filter(|count| *count < 10_000)?;
    let mut levels: Levels = Vec::with_capacity(count);
    for _ in 0..count {
        let step = u16::try_from(reader.number()?).ok()?;
        let price = match (levels.last(), side) {
            (None, _) => step,
            (Some((last, _)), BookSide::Bid) => last.0.checked_add(step)?,
            (Some((last, _)), BookSide::Ask) => last.0.checked_sub(step)?,
        };
        let size = Qty(reader.number()?);
        let is_new = levels.last().is_none_or(|(last, _)| last.0 != price);
        levels.push((Some(Price(price)).filter(|price| is_new && is_price(*price))?, size));
    }
    Some(levels)
}

/// Replaces a side.
fn replace(levels: &mut Levels, side: BookSide, by: &[(Price, Qty)]) {
    levels.clear();
    levels.extend_from_slice(by);
    // Worst first: the highest rank. The sort is stable, so of equal prices the last one is the last.
    let is_sorted = levels.is_sorted_by(|one, next| side.rank(one.0) > side.rank(next.0));
    if !is_sorted {
        levels.sort_by_key(|(price, _)| std::cmp::Reverse(side.rank(*price)));
        levels.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 = next.1;
            }
            is_same
        });
    }
    levels.retain(|(_, size)| !size.is_zero());
}

/// Sets one level; 0 removes it.
fn set(levels: &mut Levels, side: BookSide, price: Price, size: Qty) {
    // Worst first.
    let at = match side {
        BookSide::Bid => levels.partition_point(|(of, _)| *of < price),
        BookSide::Ask => levels.partition_point(|(of, _)| *of > price),
    };
    let is_there = levels.get(at).is_some_and(|(of, _)| *of == price);
    match (is_there, size.is_zero()) {
        (true, true) => drop(levels.remove(at)),
        (true, false) => levels[at].1 = size,
        (false, true) => {}
        (false, false) => levels.insert(at, (price, size)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Chance, row};
    use engine::amount::TickSize;
    use std::collections::BTreeMap;

    fn level(price: u16, size: u64) -> (Price, Qty) {
        (Price(price), Qty(size))
    }

    fn book(bids: &[(u16, u64)], asks: &[(u16, u64)]) -> Event {
        let of = |side: &[(u16, u64)]| side.iter().map(|(price, size)| level(*price, *size)).collect();
        Event::Book { bids: of(bids), asks: of(asks) }
    }

    fn change(side: BookSide, price: u16, size: u64, best: [u16; 2]) -> Event {
        let [best_bid, best_ask] = best.map(|price| (price > 0).then_some(Price(price)));
        Event::PriceChange { price: Price(price), size: Qty(size), side, best_bid, best_ask }
    }

    /// Folds events of (receipt, source, event), in milliseconds.
    fn fold(events: &[(u64, u64, Event)]) -> Folded {
        let mut folded = Folded::default();
        for (received, source, event) in events {
            folded.apply(Timestamp::from_millis(*received), Timestamp::from_millis(*source), event);
        }
        folded
    }

    /// Name, events of (receipt, source, event), and what they fold to.
    type Case = (&'static str, Vec<(u64, u64, Event)>, Expected);

    /// Bids, asks, and the number of dropped levels.
    type Expected = (&'static [(u16, u64)], &'static [(u16, u64)], u32);

    #[test]
    fn books_are_folded_by_the_rules() {
        use BookSide::{Ask, Bid};
        let start = || (10, 10, book(&[(40, 1), (41, 2)], &[(60, 3), (59, 4)]));
        let cases: Vec<Case> = vec![
            (
                "a book in any order",
                vec![(1, 1, book(&[(41, 2), (40, 1)], &[(59, 4), (60, 3)]))],
                (&[(41, 2), (40, 1)], &[(59, 4), (60, 3)], 0),
            ),
            (
                "of a repeated price the last size counts, and 0 is not a level",
                vec![(1, 1, book(&[(40, 1), (40, 7), (30, 0)], &[(60, 1), (59, 2), (60, 0)]))],
                (&[(40, 7)], &[(59, 2)], 0),
            ),
            (
                "a level is set, changed and removed",
                vec![
                    start(),
                    (11, 11, change(Bid, 42, 5, [0, 0])),
                    (12, 12, change(Bid, 42, 6, [0, 0])),
                    (13, 13, change(Ask, 59, 0, [0, 0])),
                    (14, 14, change(Ask, 58, 0, [0, 0])),
                ],
                (&[(42, 6), (41, 2), (40, 1)], &[(60, 3)], 0),
            ),
            (
                "an older book is ignored",
                vec![start(), (11, 12, change(Bid, 42, 5, [0, 0])), (12, 11, book(&[(1, 1)], &[]))],
                (&[(42, 5), (41, 2), (40, 1)], &[(59, 4), (60, 3)], 0),
            ),
            (
                "a change older than the book is ignored, one as old is not",
                vec![start(), (11, 9, change(Bid, 42, 5, [0, 0])), (12, 10, change(Bid, 43, 5, [0, 0]))],
                (&[(43, 5), (41, 2), (40, 1)], &[(59, 4), (60, 3)], 0),
            ),
            (
                "changes out of order among themselves are applied",
                vec![start(), (11, 14, change(Bid, 42, 5, [0, 0])), (12, 12, change(Bid, 42, 6, [0, 0]))],
                (&[(42, 6), (41, 2), (40, 1)], &[(59, 4), (60, 3)], 0),
            ),
            (
                "a change before the first book is ignored",
                vec![(9, 9, change(Bid, 42, 5, [0, 0])), start()],
                (&[(41, 2), (40, 1)], &[(59, 4), (60, 3)], 0),
            ),
            (
                "levels beyond the stated best prices are dropped from a crossed book",
                vec![start(), (11, 11, change(Bid, 59, 5, [59, 60]))],
                (&[(59, 5), (41, 2), (40, 1)], &[(60, 3)], 1),
            ),
            (
                "stated prices that cross as well help nothing",
                vec![start(), (11, 11, change(Bid, 59, 5, [59, 59]))],
                (&[(41, 2), (40, 1)], &[(60, 3)], 2),
            ),
            (
                "without stated prices both sides lose what crosses",
                vec![start(), (11, 11, change(Bid, 60, 5, [0, 0]))],
                (&[(41, 2), (40, 1)], &[], 3),
            ),
            (
                "a book that is not crossed is shown whole",
                vec![start(), (11, 11, change(Bid, 45, 5, [41, 59]))],
                (&[(45, 5), (41, 2), (40, 1)], &[(59, 4), (60, 3)], 0),
            ),
        ];
        for (name, events, (bids, asks, dropped)) in &cases {
            let folded = fold(events);
            let view = folded.view();
            let of = |side: &[(u16, u64)]| side.iter().map(|(price, size)| level(*price, *size)).collect::<Vec<_>>();
            assert_eq!(view, View { bids: of(bids), asks: of(asks), crossed_dropped: *dropped }, "{name}");
        }
        println!("folds: {} cases", cases.len());
    }

    #[test]
    fn times_and_repetitions() {
        let cases = [
            (vec![], (false, 0, 0, 0)),
            (vec![(9, 9, change(BookSide::Bid, 1, 1, [0, 0]))], (false, 0, 0, 0)),
            (vec![(10, 10, book(&[(1, 1)], &[])), (10, 10, book(&[(1, 1)], &[]))], (true, 10, 10, 1)),
            (vec![(10, 10, book(&[(1, 1)], &[])), (11, 11, book(&[(1, 1)], &[]))], (true, 11, 11, 0)),
            (
                vec![
                    (10, 10, book(&[(1, 1)], &[])),
                    (11, 11, change(BookSide::Bid, 1, 1, [0, 0])),
                    (12, 11, change(BookSide::Bid, 1, 1, [0, 0])),
                    (13, 11, change(BookSide::Bid, 1, 2, [0, 0])),
                ],
                (true, 13, 10, 1),
            ),
            (
                vec![
                    (10, 10, book(&[(1, 1)], &[])),
                    (
                        15,
                        15,
                        Event::LastTradePrice {
                            price: Price(1),
                            size: Qty(1),
                            taker_buys: true,
                            fee_rate_bps: None,
                            transaction_hash: None,
                        },
                    ),
                    (16, 16, Event::TickSizeChange { old: None, new: TickSize(1) }),
                    (17, 9, book(&[(1, 1)], &[])),
                ],
                (true, 15, 10, 0),
            ),
        ];
        for (events, (is_known, last, snapshot, deduped)) in &cases {
            let folded = fold(events);
            let found = (
                folded.is_known(),
                folded.last_received().millis(),
                folded.snapshot_received().millis(),
                folded.deduped(),
            );
            assert_eq!(found, (*is_known, *last, *snapshot, *deduped), "{events:?}");
        }
        println!("times: {} cases", cases.len());
    }

    /// Against maps, which keep no order by hand; and every state survives its bytes.
    #[test]
    fn folds_agree_with_a_slower_one() {
        let (mut cases, mut chance) = (0, Chance::seeded(21));
        for _ in 0..60 {
            let (mut folded, mut bids, mut asks) = (Folded::default(), BTreeMap::new(), BTreeMap::new());
            let (mut is_known, mut last, mut snapshot) = (false, 0, 0);
            for number in 0..400 {
                let mut row = row(&mut chance, 1, 1);
                row.source = Timestamp::from_millis(1_000 + number * 2 - chance.below(5));
                folded.apply(Timestamp::from_millis(2_000 + number), row.source, &row.event);
                let source = row.source.millis();
                match &row.event {
                    Event::Book { bids: of_bids, asks: of_asks } if source >= last => {
                        (bids, asks) = (of_bids.iter().copied().collect(), of_asks.iter().copied().collect());
                        (is_known, last, snapshot) = (true, source, source);
                    }
                    Event::PriceChange { price, size, side, .. } if source >= snapshot => {
                        last = last.max(source);
                        if is_known {
                            if *side == BookSide::Bid { &mut bids } else { &mut asks }.insert(*price, *size);
                        }
                    }
                    _ => {}
                }
                let there = |(_, size): &(&Price, &Qty)| size.0 > 0;
                let of_bids: Levels = bids.iter().filter(there).map(|(price, size)| (*price, *size)).collect();
                let of_asks: Levels = asks.iter().rev().filter(there).map(|(price, size)| (*price, *size)).collect();
                assert_eq!((&folded.bids, &folded.asks), (&of_bids, &of_asks));
                let view = folded.view();
                assert!(!view.is_crossed());
                assert_eq!(
                    view.bids.len() + view.asks.len() + view.crossed_dropped as usize,
                    of_bids.len() + of_asks.len()
                );
                let mut bytes = Vec::new();
                folded.write(&mut bytes);
                assert_eq!(Folded::read(&bytes).as_ref(), Some(&folded));
                assert_eq!(Folded::read(&bytes[..bytes.len() - 1]), None);
                cases += 1;
            }
        }
        println!("folded states: {cases} cases");
    }

    #[test]
    fn damaged_states_are_refused_or_sound() {
        let (mut chance, mut folded, mut bytes) = (Chance::seeded(22), Folded::default(), Vec::new());
        (0..500).for_each(|_| {
            let row = row(&mut chance, 1, 1);
            folded.apply(row.received, row.source, &row.event);
        });
        folded.write(&mut bytes);
        let (mut cases, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            let at = chance.below(damaged.len() as u64) as usize;
            damaged[at] = chance.draw() as u8;
            match Folded::read(&damaged) {
                None => refused += 1,
                Some(read) => {
                    let in_order = |side: BookSide, levels: &Levels| {
                        levels.is_sorted_by(|one, next| side.rank(one.0) > side.rank(next.0))
                    };
                    assert!(in_order(BookSide::Bid, &read.bids) && in_order(BookSide::Ask, &read.asks));
                    assert!(!read.view().is_crossed());
                }
            }
            cases += 1;
        }
        assert!(refused > 0 && refused < cases);
        println!("damaged states: {cases} cases, {refused} refused");
    }
}
