//! Reports of trades. A venue may report a trade once for each token of its market, and again when sockets overlap. A
//! repeated report is recognised by the venue's id of the trade or its transaction, or, without an id, by equal time and
//! size and mirrored price and side.

use crate::FeedUpdate;
use engine::amount::{Price, Qty};
use engine::id::InstrumentId;
use engine::order::Side;
use engine::time::Timestamp;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};

/// Number of recent trades, over all markets, that repeated reports are compared with.
const RECENT_MAX: usize = 256;

/// A trade as reported for one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub instrument: InstrumentId,
    pub price: Price,
    pub size: Qty,
    /// The taker's side, as the venue states it.
    pub taker: Side,
    /// The venue's time.
    pub at: Timestamp,
    /// A hash of the venue's id.
    id: Option<u64>,
}

/// The trades that were reported last, over all markets.
#[derive(Debug, Default)]
pub struct Reports {
    recent: VecDeque<Report>,
}

/// A hash of the venue's id of a trade or of its transaction. It identifies two reports of the same trade.
fn hash_of(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(id.as_bytes());
    hasher.finish()
}

impl Report {
    /// The trade in an update about this token, if it is one whose taker has a side.
    pub fn of(update: &FeedUpdate, instrument: InstrumentId) -> Option<Report> {
        let FeedUpdate::LastTrade { price, size, taker_buys, venue_ts, id, .. } = update else { return None };
        let taker = if *taker_buys { Side::Buy } else { Side::Sell };
        Some(Report { instrument, price: *price, size: *size, taker, at: *venue_ts, id: id.as_deref().map(hash_of) })
    }

    /// The same trade in terms of the complement.
    fn mirrored(self) -> Report {
        let (instrument, price) = (self.instrument.complement(), self.price.complement());
        Report { instrument, price, taker: self.taker.opposite(), ..self }
    }

    /// Whether both report the same trade, apart from its time.
    fn is_same_trade(&self, other: &Report) -> bool {
        let terms = |report: &Report| (report.instrument, report.price, report.size, report.taker);
        terms(self) == terms(other)
    }
}

impl Reports {
    /// Whether this trade was reported before, for the complement or for the same token.
    pub fn is_repeated(&mut self, report: Report) -> bool {
        let mirrored = report.mirrored();
        let is_same = |before: &Report| match (before.id, report.id) {
            // A transaction may have several prices; each of its trades is reported for one token first.
            (Some(before_id), Some(id)) => {
                before_id == id && (before.instrument == mirrored.instrument || before.is_same_trade(&report))
            }
            _ => before.at == report.at && before.is_same_trade(&mirrored),
        };
        if let Some(at) = self.recent.iter().position(is_same) {
            // Without an id, a third report is another trade: each report is matched once.
            if report.id.is_none() {
                self.recent.remove(at);
            }
            return true;
        }
        self.remember(report);
        false
    }

    /// Remembers a trade that no report is compared with.
    pub fn remember(&mut self, report: Report) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trade_reported_for_both_tokens_is_one() {
        let report = |instrument, price, size, taker, at, id| Report {
            instrument: InstrumentId(instrument),
            price: Price(price),
            size: Qty(size),
            taker,
            at: Timestamp(at),
            id,
        };
        let (buy, sell) = (Side::Buy, Side::Sell);
        let mut prints = Reports::default();
        for (row, (report, repeated)) in [
            (report(4, 4_000, 7, sell, 1, None), false),
            (report(5, 6_000, 7, buy, 1, None), true),
            // The same once more is another trade.
            (report(5, 6_000, 7, buy, 1, None), false),
            (report(4, 4_000, 7, sell, 1, None), true),
            // Another token's, price, size, side or time.
            (report(4, 4_000, 7, sell, 2, None), false),
            (report(4, 4_000, 7, sell, 2, None), false),
            (report(5, 6_100, 7, buy, 2, None), false),
            (report(5, 6_000, 8, buy, 2, None), false),
            (report(5, 6_000, 7, sell, 2, None), false),
            (report(5, 6_000, 7, buy, 3, None), false),
            (report(7, 6_000, 7, buy, 2, None), false),
            (report(5, 6_000, 7, buy, 2, None), true),
            // One id with different times: for the complement, for the complement again, and for the same token again.
            (report(4, 4_000, 7, sell, 20, Some(9)), false),
            (report(5, 6_000, 7, buy, 21, Some(9)), true),
            (report(5, 6_000, 7, buy, 20, Some(9)), true),
            (report(4, 4_000, 7, sell, 22, Some(9)), true),
            // Another price of the transaction, and another transaction at the same price.
            (report(4, 3_900, 7, sell, 20, Some(9)), false),
            (report(5, 6_100, 7, buy, 20, Some(9)), true),
            (report(4, 4_000, 7, sell, 20, Some(8)), false),
            (report(5, 6_000, 7, buy, 20, Some(10)), false),
            // Only one of the two reports has an id.
            (report(5, 6_000, 7, buy, 20, None), true),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(prints.is_repeated(report), repeated, "row {row}");
        }
        (0..2 * RECENT_MAX as u64)
            .for_each(|at| assert!(!prints.is_repeated(report(4, 4_000, 7, sell, 30 + at, None))));
        assert_eq!(prints.recent.len(), RECENT_MAX);
    }
}
