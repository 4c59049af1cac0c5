//! Whether the recording shows the book that an order met, and the last price of a market.

use super::orders::LiveOrder;
use ahash::AHashMap;
use engine::amount::Cash;
use engine::book::Books;
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::time::{SECOND, Timestamp};

/// How long an order may be without a reliable book.
pub const UNSEEN_MAX: u64 = 5 * SECOND;

/// Why an order is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// The recording does not list its token.
    UnknownToken,
    /// It is neither filled whole nor cancelled.
    NoEnd,
    /// There is no reliable book within five seconds of its placement.
    NoBook,
    /// While it was alive, there was no reliable book for more than five seconds.
    Gap,
}

impl LeftOut {
    pub const ALL: [LeftOut; 4] = [LeftOut::UnknownToken, LeftOut::NoEnd, LeftOut::NoBook, LeftOut::Gap];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            LeftOut::UnknownToken => "unknown_token",
            LeftOut::NoEnd => "no_end",
            LeftOut::NoBook => "no_book",
            LeftOut::Gap => "gap",
        }
    }

    /// What the file alone says.
    pub(super) fn of_file(order: &LiveOrder) -> Option<LeftOut> {
        order.ended_at().is_none().then_some(LeftOut::NoEnd)
    }
}

/// What the recording shows of the markets of the file.
#[derive(Debug)]
pub(super) struct Sights {
    quote_age_max: u64,
    markets: AHashMap<MarketId, Sight>,
}

#[derive(Debug)]
struct Sight {
    /// The book is not reliable since then.
    lost_at: Option<Timestamp>,
    /// Earlier spans without a reliable book, in the order of time.
    lost: Vec<(Timestamp, Timestamp)>,
    /// Of the first token.
    last_mid: Option<Cash>,
}

impl Sights {
    pub fn new(quote_age_max: u64) -> Sights {
        Sights { quote_age_max, markets: AHashMap::new() }
    }

    /// A market is listed; it has no book yet.
    pub fn add(&mut self, market: MarketId) {
        let sight = Sight { lost_at: Some(Timestamp(0)), lost: Vec::new(), last_mid: None };
        self.markets.insert(market, sight);
    }

    /// Looks at all markets.
    pub fn look(&mut self, books: &Books, now: Timestamp) {
        for (market, sight) in &mut self.markets {
            sight.look(*market, books, now, self.quote_age_max);
        }
    }

    /// Looks at one market whose book may have changed.
    pub fn look_at(&mut self, market: MarketId, books: &Books, now: Timestamp) {
        if let Some(sight) = self.markets.get_mut(&market) {
            sight.look(market, books, now, self.quote_age_max);
        }
    }

    /// The recording ends: no book is reliable any more.
    pub fn end(&mut self, now: Timestamp) {
        for sight in self.markets.values_mut() {
            let lost_at = sight.lost_at.take().unwrap_or(now);
            sight.lost.push((lost_at, Timestamp(u64::MAX)));
        }
    }

    /// The last midpoint of a token, 10⁻⁶ USD.
    pub fn last_mid(&self, instrument: InstrumentId) -> Option<Cash> {
        let mid = self.markets.get(&instrument.market())?.last_mid?;
        Some(if instrument.outcome() == Outcome::First { mid } else { Cash(1_000_000 - mid.0) })
    }

    /// Why an order of this market is not compared, at the end of the recording.
    pub fn left_out(&self, market: MarketId, order: &LiveOrder, entered_at: Timestamp) -> Option<LeftOut> {
        let Some(sight) = self.markets.get(&market) else { return Some(LeftOut::UnknownToken) };
        // An immediate order meets the book of one moment.
        let patience = if order.kind.is_immediate() { 0 } else { UNSEEN_MAX };
        let is_missing = |(from, to): &(Timestamp, Timestamp)| *from <= entered_at && *to > entered_at.plus(patience);
        if sight.lost.iter().any(is_missing) {
            return Some(LeftOut::NoBook);
        }
        let ended_at = order.ended_at().unwrap_or(entered_at);
        let within = |(from, to): &(Timestamp, Timestamp)| {
            let (from, to) = ((*from).max(entered_at), (*to).min(ended_at));
            to.since(from) > UNSEEN_MAX
        };
        sight.lost.iter().any(within).then_some(LeftOut::Gap)
    }
}

impl Sight {
    fn look(&mut self, market: MarketId, books: &Books, now: Timestamp, quote_age_max: u64) {
        let first = market.instrument(Outcome::First);
        let top = books.effective_top(first);
        if let Some(mid) = top.as_ref().ok().and_then(|top| top.midpoint()) {
            self.last_mid = Some(mid);
        }
        let age = |outcome| books.quote_age(market.instrument(outcome), now);
        let is_whole = |outcome| !books.gap(market.instrument(outcome));
        let oldest = age(Outcome::First).into_iter().chain(age(Outcome::Second)).max();
        let is_reliable = top.is_ok() && is_whole(Outcome::First) && is_whole(Outcome::Second);
        match oldest.filter(|_| is_reliable) {
            Some(age) if age <= quote_age_max => {
                if let Some(lost_at) = self.lost_at.take() {
                    self.lost.push((lost_at, now));
                }
            }
            Some(age) => {
                // It was too old before anything showed it.
                let since = Timestamp(now.0.saturating_sub(age - quote_age_max));
                self.lost_at.get_or_insert(since);
            }
            None => {
                self.lost_at.get_or_insert(now);
            }
        }
    }
}
