//! What a strategy sees of the books of its markets, for all lanes of a run. A book is read again only after it changed,
//! and a quote has a number that shows whether it changed with it: most changes of a book leave its best prices.

use super::job::Job;
use super::strategy::Quote;
use crate::book::{BookSide, Books, Effective};
use crate::id::InstrumentId;

/// The quotes of a job's traded tokens.
pub(super) struct Quotes {
    needs_depth: bool,
    /// By market.
    seen: Vec<Seen>,
    effective: Effective,
}

/// The quote of a book as it was read last.
struct Seen {
    instrument: InstrumentId,
    quote: Quote,
    /// Count of its changes; 0 before the first read.
    number: u64,
    /// The book changed since.
    is_stale: bool,
}

impl Quotes {
    pub fn new(job: &Job) -> Quotes {
        let seen =
            |market| Seen { instrument: job.instrument(market), quote: Quote::default(), number: 0, is_stale: true };
        let seen = (0..job.markets.len()).map(seen).collect();
        Quotes { needs_depth: job.strategy.needs_depth(), seen, effective: Effective::default() }
    }

    /// The books of a market changed. Without a new top the best prices are the same.
    pub fn changed(&mut self, market: usize, has_new_top: bool) {
        if has_new_top || self.needs_depth {
            self.seen[market].is_stale = true;
        }
    }

    /// The present quote of a market in these books, without the time to its end, and its number: as long as the number
    /// stays, the quote does.
    #[inline]
    pub fn of(&mut self, market: usize, books: &Books) -> (&Quote, u64) {
        if self.seen[market].is_stale {
            self.read(market, books);
        }
        let Seen { quote, number, .. } = &self.seen[market];
        (quote, *number)
    }

    fn read(&mut self, market: usize, books: &Books) {
        let Quotes { needs_depth, seen, effective } = self;
        let seen = &mut seen[market];
        let quote = match needs_depth {
            false => {
                let top = books.effective_top(seen.instrument).unwrap_or_default();
                Quote { bid: top.bid, ask: top.ask, ..Quote::default() }
            }
            true => with_depth(seen.instrument, books, effective),
        };
        if seen.number == 0 || seen.quote != quote {
            seen.number += 1;
        }
        (seen.quote, seen.is_stale) = (quote, false);
    }
}

fn with_depth(instrument: InstrumentId, books: &Books, effective: &mut Effective) -> Quote {
    if books.effective(instrument, effective).is_err() {
        return Quote::default();
    }
    let top = effective.top();
    let depth = |side| Some(effective.side(side).iter().map(|level| level.size()).sum());
    Quote {
        bid: top.bid,
        ask: top.ask,
        bid_depth: depth(BookSide::Bid),
        ask_depth: depth(BookSide::Ask),
        to_resolution: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::{Price, Qty};
    use crate::backtest::run::tests::{job, when};
    use crate::backtest::strategy::{Field, Operator};
    use crate::id::{MarketId, Outcome};
    use crate::time::Timestamp;
    use std::sync::Arc;

    /// A quote has a new number exactly when it differs, and is read again only when it may.
    #[test]
    fn a_number_stands_for_a_quote() {
        let mut deep = job();
        deep.strategy.entry = vec![when(Field::Depth, Operator::Greater, "5")];
        // side, price, shares; whether the top differs, whether the depth does
        let rows = [
            (BookSide::Bid, 2_800, 7, false, true),
            (BookSide::Bid, 2_900, 7, false, true),
            (BookSide::Bid, 3_000, 1, true, true),
            (BookSide::Ask, 3_100, 9, false, false),
            (BookSide::Bid, 3_000, 0, true, true),
            (BookSide::Ask, 3_300, 2, false, true),
            (BookSide::Ask, 3_100, 0, true, true),
        ];
        let mut cases = 0;
        for (job, is_deep) in [(job(), false), (deep, true)] {
            let books = Arc::new(Books::new());
            let mut writer = books.writer().expect("the books are new");
            let instrument = MarketId(0).instrument(Outcome::First);
            let mut quotes = Quotes::new(&job);
            assert_eq!(quotes.of(0, &books), (&Quote::default(), 1), "an unknown book has an empty quote");
            let shares = Qty::from_shares;
            let opening = writer.frame(0, Timestamp(1), |frame| {
                let (bids, asks) =
                    ([(Price(2_900), shares(9))], [(Price(3_100), shares(9)), (Price(3_200), shares(1))]);
                frame.snapshot(instrument, &bids, &asks, Timestamp(1), None);
            });
            quotes.changed(0, opening.settled > 0);
            let (quote, mut number) = quotes.of(0, &books);
            assert_eq!((quote.bid, quote.ask, number), (Some(Price(2_900)), Some(Price(3_100)), 2));
            for (side, price, size, new_top, new_depth) in rows {
                let level = (side, Price(price), shares(size));
                let report = writer.frame(0, Timestamp(2), |frame| frame.delta(instrument, &[level], Timestamp(2)));
                quotes.changed(0, report.settled > 0);
                let (quote, now) = quotes.of(0, &books);
                let top = books.effective_top(instrument).expect("known");
                assert_eq!((quote.bid, quote.ask), (top.bid, top.ask), "{side:?} {price} {size}");
                assert_eq!(quote.bid_depth.is_some(), is_deep);
                assert_eq!(now > number, new_top || (is_deep && new_depth), "{side:?} {price} {size} {is_deep}");
                number = now;
                cases += 1;
            }
        }
        println!("numbers of quotes: {cases} cases");
    }
}
