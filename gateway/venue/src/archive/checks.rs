//! Checks of an hour's rows against themselves, in file order: a change states the best prices after it, so the fold can
//! be compared with them (gateway/docs/archive.md §3).

use archive::row::{Condition, Event, Row};
use engine::amount::{Price, Qty};
use engine::book::BookSide;
use engine::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A book as both of its sides, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    pub bids: BTreeMap<Price, Qty>,
    pub asks: BTreeMap<Price, Qty>,
}

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
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    /// A bit for each minute with a row.
    pub minutes: u64,
}

/// Takes the rows of an hour in file order.
pub struct Checks<'a> {
    /// The book of a token at the begin of the hour, if an earlier hour has it.
    opening: &'a mut dyn FnMut(&str) -> Option<Sides>,
    token: Option<(Condition, Arc<str>)>,
    /// The book of the token; `None` while it is unknown.
    book: Option<Sides>,
    /// The stated best prices of the last millisecond, until it is over.
    stated: Option<(Option<Price>, Option<Price>)>,
    last_at: Timestamp,
    compared: (u64, u64),
    findings: Findings,
}

impl<'a> Checks<'a> {
    pub fn new(opening: &'a mut dyn FnMut(&str) -> Option<Sides>) -> Checks<'a> {
        Checks {
            opening,
            token: None,
            book: None,
            stated: None,
            last_at: Timestamp::default(),
            compared: (0, 0),
            findings: Findings::default(),
        }
    }

    /// Notes a row.
    pub fn note(&mut self, row: &Row) {
        let is_same = self.token.as_ref().is_some_and(|(market, token)| *market == row.market && *token == row.token);
        if !is_same || row.received != self.last_at {
            self.end_moment(is_same.then_some(row.received));
        }
        if !is_same {
            self.begin_token(row);
        }
        self.last_at = row.received;
        let findings = &mut self.findings;
        findings.first = Some(findings.first.map_or(row.received, |first| first.min(row.received)));
        findings.last = findings.last.max(Some(row.received));
        findings.minutes |= 1 << (row.received.minute() % 60);
        match &row.event {
            Event::Book { bids, asks } => {
                let side = |levels: &[(Price, Qty)]| {
                    levels.iter().copied().filter(|(_, size)| !size.is_zero()).collect::<BTreeMap<_, _>>()
                };
                self.book = Some(Sides { bids: side(bids), asks: side(asks) });
                self.stated = None;
            }
            Event::PriceChange { price, size, side, best_bid, best_ask } => {
                let Some(book) = &mut self.book else { return };
                let levels = match side {
                    BookSide::Bid => &mut book.bids,
                    BookSide::Ask => &mut book.asks,
                };
                match size.is_zero() {
                    true => drop(levels.remove(price)),
                    false => drop(levels.insert(*price, *size)),
                }
                let is_stated = best_bid.is_some() || best_ask.is_some();
                self.stated = is_stated.then_some((*best_bid, *best_ask));
            }
            Event::LastTradePrice { .. } | Event::TickSizeChange { .. } => {}
        }
    }

    /// The findings, after the last row.
    pub fn finish(mut self) -> Findings {
        self.end_moment(None);
        self.end_market();
        self.findings
    }

    fn begin_token(&mut self, row: &Row) {
        if self.token.as_ref().is_none_or(|(market, _)| *market != row.market) {
            self.end_market();
            self.findings.markets += 1;
        }
        self.token = Some((row.market, row.token.clone()));
        self.findings.tokens += 1;
        self.book = (self.opening)(&row.token);
        self.findings.carried_tokens += u64::from(self.book.is_some());
        let is_change = matches!(row.event, Event::PriceChange { .. });
        self.findings.unanchored_tokens += u64::from(self.book.is_none() && is_change);
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
        let (Some(book), stated) = (&self.book, self.stated.take()) else { return };
        let best = (book.bids.keys().next_back().copied(), book.asks.keys().next().copied());
        if let Some(stated) = stated {
            let differs = u64::from(stated != best);
            self.findings.bbo_compared += 1;
            self.findings.bbo_differs += differs;
            self.compared = (self.compared.0 + 1, self.compared.1 + differs);
        }
        if let (Some(next), (Some(bid), Some(ask))) = (next, best)
            && bid >= ask
        {
            self.findings.crossed_ms += next.since(self.last_at) / engine::time::MILLISECOND;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: u64 = 1_786_406_400_000;

    fn row(market: u8, token: &str, millis: u64, event: Event) -> Row {
        let received = Timestamp::from_millis(BEGIN + millis);
        Row { received, source: received, market: Condition([market; 32]), token: token.into(), event }
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
        let mut opening = |token: &str| {
            let sides = || Sides { bids: [(Price(60), Qty(1))].into(), asks: [(Price(70), Qty(1))].into() };
            (token == "3").then(sides)
        };
        let mut checks = Checks::new(&mut opening);
        rows.iter().for_each(|row| checks.note(row));
        let expected = Findings {
            bbo_compared: 8,
            bbo_differs: 2,
            crossed_ms: 10,
            unanchored_tokens: 1,
            carried_tokens: 1,
            tokens: 3,
            by_market: [(Condition([1; 32]), (6, 1)), (Condition([2; 32]), (2, 1))].into(),
            markets: 2,
            first: Some(Timestamp::from_millis(BEGIN)),
            last: Some(Timestamp::from_millis(BEGIN + 60_001)),
            minutes: 0b11,
        };
        assert_eq!(checks.finish(), expected);
        println!("checks: {} rows", rows.len());
    }
}
