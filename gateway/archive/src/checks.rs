//! Checks of an hour's rows against themselves, in file order: a change states the best prices after it, so the fold can
//! be compared with them (gateway/docs/archive.md §3).

use crate::fold::{Change, Folded};
use crate::row::{Condition, Kind};
use engine::amount::Price;
use engine::time::{HOUR, MILLISECOND, Timestamp};
use std::collections::BTreeMap;

const HOUR_MS: i64 = (HOUR / MILLISECOND) as i64;

/// Findings about an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub bbo_compared: u64,
    pub bbo_differs: u64,
    /// Time for which books were crossed or locked, summed over tokens.
    pub crossed_ms: u64,
    /// Tokens with changes before their first book.
    pub unanchored_tokens: u64,
    /// Tokens whose book at the begin is that of an earlier hour.
    pub carried_tokens: u64,
    pub tokens: u64,
    /// Comparisons and differences of the markets that have differences.
    pub by_market: BTreeMap<Condition, (u64, u64)>,
    pub markets: u64,
    /// Rows by event type, in the order of [`Kind::ALL`].
    pub rows: [u64; Kind::ALL.len()],
    /// Rows that were received before or after the hour.
    pub outside: u64,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    /// A bit for each minute with a row.
    minutes: u64,
}

impl Findings {
    /// Minutes of the hour without a row.
    pub fn minutes_empty(&self) -> u32 {
        60 - self.minutes.count_ones()
    }

    /// Markets with differences: how many best prices were compared, and how many differ.
    pub fn prices(&self) -> impl Iterator<Item = (Condition, u64, u64)> {
        self.by_market.iter().map(|(market, (compared, differs))| (*market, *compared, *differs))
    }

    /// Counts a row that was received this many milliseconds after the start of the hour.
    fn count(&mut self, at: i64, kind: Kind) {
        self.rows[kind as usize] += 1;
        self.outside += u64::from(!(0..HOUR_MS).contains(&at));
    }
}

/// Compares the rows of an hour with each other, as they are folded in file order.
pub(crate) struct Checks {
    begins: Timestamp,
    market: Option<Condition>,
    /// The token has no row yet, and no book at the begin of the hour.
    is_unanchored: bool,
    /// The stated best prices of the last millisecond, until it is over.
    stated: Option<[Option<Price>; 2]>,
    last_at: Option<Timestamp>,
    compared: (u64, u64),
    findings: Findings,
}

impl Checks {
    /// Of the hour with this number.
    pub(crate) fn new(hour: u32) -> Checks {
        Checks {
            begins: Timestamp::of_hour(hour),
            market: None,
            is_unanchored: false,
            stated: None,
            last_at: None,
            compared: (0, 0),
            findings: Findings::default(),
        }
    }

    /// Begins a token. The one before has ended. `is_carried`: its book at the begin of the hour is known.
    pub(crate) fn begin_token(&mut self, market: &Condition, is_carried: bool) {
        if self.market.as_ref() != Some(market) {
            self.end_market();
            self.market = Some(*market);
            self.findings.markets += 1;
        }
        self.findings.tokens += 1;
        self.findings.carried_tokens += u64::from(is_carried);
        self.is_unanchored = !is_carried;
    }

    /// Called before a row of the token is folded, with the book before it.
    #[inline]
    pub(crate) fn before(&mut self, received: Timestamp, book: &Folded) {
        if self.last_at == Some(received) {
            return;
        }
        self.end_moment(book, Some(received));
        self.last_at = Some(received);
        let first = self.findings.first.get_or_insert(received);
        *first = received.min(*first);
        self.findings.last = self.findings.last.max(Some(received));
        if received.hour() == self.begins.hour() {
            self.findings.minutes |= 1 << (received.minute() % 60);
        }
    }

    /// Notes a row; `None`: it changes the price grid.
    #[inline]
    pub(crate) fn note(&mut self, received: Timestamp, change: Option<&Change<'_>>) {
        let kind = match change {
            Some(Change::Book { .. }) => {
                self.stated = None;
                Kind::Book
            }
            Some(Change::Level { stated, .. }) => {
                self.stated = (*stated != [None; 2]).then_some(*stated);
                self.findings.unanchored_tokens += u64::from(self.is_unanchored);
                Kind::PriceChange
            }
            Some(Change::Trade) => Kind::LastTradePrice,
            None => Kind::TickSizeChange,
        };
        self.is_unanchored = false;
        self.findings.count(received.millis() as i64 - self.begins.millis() as i64, kind);
    }

    /// Ends the token; `book` is its last one.
    pub(crate) fn end_token(&mut self, book: &Folded) {
        self.end_moment(book, None);
        self.last_at = None;
    }

    /// The findings, after the last token has ended.
    pub(crate) fn finish(mut self) -> Findings {
        self.end_market();
        self.findings
    }

    fn end_market(&mut self) {
        let compared = std::mem::take(&mut self.compared);
        if let Some(market) = self.market
            && compared.1 > 0
        {
            self.findings.by_market.insert(market, compared);
        }
    }

    /// Ends a millisecond of a token: compares the best prices that its last row states. `next`: that of the token's
    /// next row.
    fn end_moment(&mut self, book: &Folded, next: Option<Timestamp>) {
        let stated = self.stated.take();
        let Some(last_at) = self.last_at.filter(|_| book.is_known()) else { return };
        let best = book.best();
        if let Some(stated) = stated {
            let differs = u64::from(stated != best);
            self.findings.bbo_compared += 1;
            self.findings.bbo_differs += differs;
            self.compared = (self.compared.0 + 1, self.compared.1 + differs);
        }
        if let (Some(next), [Some(bid), Some(ask)]) = (next, best)
            && bid >= ask
        {
            self.findings.crossed_ms += next.since(last_at) / MILLISECOND;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::index::{Builder, Carried};
    use crate::row::{Event, Row};
    use engine::amount::Qty;
    use engine::book::BookSide;

    const BEGIN: u64 = 1_786_406_400_000;

    fn row(market: u8, token: &str, millis: u64, event: Event) -> Row {
        let received = Timestamp::from_millis(BEGIN + millis);
        Row { received, source: received, market: Condition([market; 32]), token: token.into(), event }
    }

    /// The book of token 3.
    struct Opening;

    impl Carried for Opening {
        fn carried(&self, _: &Condition, token: &str) -> Result<Option<Folded>, Error> {
            let mut book = Folded::default();
            let at = Timestamp::from_millis(BEGIN - 1);
            let event = Event::Book { bids: vec![(Price(60), Qty(1))], asks: vec![(Price(70), Qty(1))] };
            book.apply(at, at, &event);
            Ok((token == "3").then_some(book))
        }
    }

    fn change(side: BookSide, price: u16, size: u64, best: (u16, u16)) -> Event {
        let best_of = |price: u16| Some(Price(price)).filter(|price| price.0 > 0);
        let (best_bid, best_ask) = (best_of(best.0), best_of(best.1));
        Event::PriceChange { price: Price(price), size: Qty(size), side, best_bid, best_ask }
    }

    #[test]
    fn stated_best_prices_are_compared_with_the_fold() {
        let book = Event::Book { bids: vec![(Price(40), Qty(1))], asks: vec![(Price(50), Qty(1))] };
        let (bid, ask) = (BookSide::Bid, BookSide::Ask);
        let rows = [
            row(1, "1", 0, book.clone()),
            row(1, "1", 5, change(bid, 41, 1, (41, 50))),
            // Only the last statement of a millisecond is about the state after it.
            row(1, "1", 6, change(bid, 42, 1, (41, 50))),
            row(1, "1", 6, change(bid, 43, 1, (43, 50))),
            row(1, "1", 7, change(bid, 43, 0, (43, 50))),
            // Crossed for 10 ms, and an empty side.
            row(1, "1", 10, change(ask, 42, 1, (42, 42))),
            row(1, "1", 20, change(ask, 42, 0, (42, 50))),
            row(1, "1", 30, change(ask, 50, 0, (42, 0))),
            row(1, "2", 0, change(bid, 1, 1, (1, 2))),
            row(2, "3", 60_000, change(bid, 60, 0, (0, 70))),
            row(2, "3", 60_001, change(bid, 61, 1, (9, 9))),
        ];
        let folder = tempfile::tempdir().expect("a folder");
        let hour = Timestamp::from_millis(BEGIN).hour();
        let mut builder = Builder::create(&folder.path().join("x.idx"), hour, &Opening).expect("created");
        rows.iter().zip(0..).for_each(|(row, number)| builder.push(number, false, row).expect("a row"));
        let checks = builder.prepare([9; 32], rows.len() as u64).expect("prepared").checks;
        let expected = Findings {
            bbo_compared: 8,
            bbo_differs: 2,
            crossed_ms: 10,
            unanchored_tokens: 1,
            carried_tokens: 1,
            tokens: 3,
            by_market: [(Condition([1; 32]), (6, 1)), (Condition([2; 32]), (2, 1))].into(),
            markets: 2,
            rows: [1, 0, 10, 0],
            outside: 0,
            first: Some(Timestamp::from_millis(BEGIN)),
            last: Some(Timestamp::from_millis(BEGIN + 60_001)),
            minutes: 0b11,
        };
        assert_eq!(checks, expected);
        println!("checks: {} rows", rows.len());
    }
}
