//! Checks of an hour's rows against themselves, in file order: a change states the best prices after it, so the fold can
//! be compared with them (gateway/docs/archive.md §3).

use crate::error::Error;
use crate::fold::Folded;
use crate::index::Carried;
use crate::row::{Condition, Event, Kind, Row};
use engine::amount::Price;
use engine::time::{HOUR, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// Rows that were received before or after the hour, and the longest time in between, in microseconds.
    pub outside: u64,
    pub farthest: u64,
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

    fn count(&mut self, row: &Row, begins: Timestamp) {
        let kind = row.event.kind();
        if let Some(count) =
            Kind::ALL.into_iter().zip(&mut self.rows).find_map(|(of, count)| (of == kind).then_some(count))
        {
            *count += 1;
        }
        self.first = Some(self.first.map_or(row.received, |first| first.min(row.received)));
        self.last = self.last.max(Some(row.received));
        if row.received.hour() == begins.hour() {
            self.minutes |= 1 << (row.received.minute() % 60);
        } else {
            self.outside += 1;
            let far = begins.since(row.received).max(row.received.since(begins.plus(HOUR)));
            self.farthest = self.farthest.max(far);
        }
    }
}

/// Takes the rows of an hour in file order.
pub struct Checks<'a> {
    /// The books at the begin of the hour.
    carried: &'a dyn Carried,
    begins: Timestamp,
    token: Option<(Condition, Arc<str>)>,
    /// The book of the token.
    book: Folded,
    /// The stated best prices of the last millisecond, until it is over.
    stated: Option<[Option<Price>; 2]>,
    last_at: Timestamp,
    compared: (u64, u64),
    findings: Findings,
}

impl<'a> Checks<'a> {
    /// Of the hour with this number.
    pub fn new(hour: u32, carried: &'a dyn Carried) -> Checks<'a> {
        Checks {
            carried,
            begins: Timestamp::of_hour(hour),
            token: None,
            book: Folded::default(),
            stated: None,
            last_at: Timestamp::default(),
            compared: (0, 0),
            findings: Findings::default(),
        }
    }

    /// Notes a row.
    ///
    /// # Errors
    /// The hour before cannot be read.
    pub fn note(&mut self, row: &Row) -> Result<(), Error> {
        let is_same = self.token.as_ref().is_some_and(|(market, token)| *market == row.market && *token == row.token);
        if !is_same || row.received != self.last_at {
            self.end_moment(is_same.then_some(row.received));
        }
        if !is_same {
            self.begin_token(row)?;
        }
        self.last_at = row.received;
        self.findings.count(row, self.begins);
        self.book.apply(row.received, row.source, &row.event);
        match &row.event {
            Event::Book { .. } => self.stated = None,
            Event::PriceChange { best_bid, best_ask, .. } => {
                let is_stated = best_bid.is_some() || best_ask.is_some();
                self.stated = is_stated.then_some([*best_bid, *best_ask]);
            }
            Event::LastTradePrice { .. } | Event::TickSizeChange { .. } => {}
        }
        Ok(())
    }

    /// The findings so far, about rows alone.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The findings, after the last row.
    pub fn finish(mut self) -> Findings {
        self.end_moment(None);
        self.end_market();
        self.findings
    }

    fn begin_token(&mut self, row: &Row) -> Result<(), Error> {
        if self.token.as_ref().is_none_or(|(market, _)| *market != row.market) {
            self.end_market();
            self.findings.markets += 1;
        }
        self.token = Some((row.market, row.token.clone()));
        self.findings.tokens += 1;
        let carried = self.carried.carried(&row.market, &row.token)?.filter(Folded::is_known);
        self.findings.carried_tokens += u64::from(carried.is_some());
        let is_change = matches!(row.event, Event::PriceChange { .. });
        self.findings.unanchored_tokens += u64::from(carried.is_none() && is_change);
        self.book = carried.unwrap_or_default();
        Ok(())
    }

    fn end_market(&mut self) {
        let compared = std::mem::take(&mut self.compared);
        if let Some((market, _)) = &self.token
            && compared.1 > 0
        {
            self.findings.by_market.insert(*market, compared);
        }
    }

    /// Ends a millisecond of a token: compares the best prices that its last row states. `next`: that of the token's
    /// next row.
    fn end_moment(&mut self, next: Option<Timestamp>) {
        let stated = self.stated.take();
        if !self.book.is_known() {
            return;
        }
        let best = self.book.best();
        if let Some(stated) = stated {
            let differs = u64::from(stated != best);
            self.findings.bbo_compared += 1;
            self.findings.bbo_differs += differs;
            self.compared = (self.compared.0 + 1, self.compared.1 + differs);
        }
        if let (Some(next), [Some(bid), Some(ask)]) = (next, best)
            && bid >= ask
        {
            self.findings.crossed_ms += next.since(self.last_at) / engine::time::MILLISECOND;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut checks = Checks::new(Timestamp::from_millis(BEGIN).hour(), &Opening);
        rows.iter().for_each(|row| checks.note(row).expect("a row"));
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
            farthest: 0,
            first: Some(Timestamp::from_millis(BEGIN)),
            last: Some(Timestamp::from_millis(BEGIN + 60_001)),
            minutes: 0b11,
        };
        assert_eq!(checks.finish(), expected);
        println!("checks: {} rows", rows.len());
    }
}
