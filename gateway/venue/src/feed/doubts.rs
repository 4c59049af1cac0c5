//! Finds wrong books (gateway/docs/live-venues.md §5): crossed for too long, with other best prices than the venue
//! states, or not the mirror of their complement. The venue is asked for their books first; a book that is still
//! crossed after that is not traded on until it is right.

use crate::live::Pace;
use ahash::AHashMap;
use engine::amount::Price;
use engine::book::{Books, Quote, Top};
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::time::{SECOND, Timestamp};

/// This many differences of the best prices within this time are not a matter of message order.
const DIFFERING_MAX: u32 = 3;
const DIFFERING_WITHIN: u64 = 10 * SECOND;

/// An action for a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Request its books from the venue.
    Resync(InstrumentId),
    /// Treat its books as too old to trade on until new snapshots come.
    Distrust(MarketId),
    /// Publish its books again: they are right, or were withheld long enough.
    Release(MarketId),
}

/// Books under suspicion; times are venue time.
pub(super) struct Doubts {
    /// Streams do not see a crossed book at first. Off in a recording, whose books are published as recorded.
    holds_back: bool,
    crossed_max_us: u64,
    mirror_max_us: u64,
    crossed: AHashMap<InstrumentId, Crossed>,
    differing: AHashMap<InstrumentId, Differing>,
    unmirrored: AHashMap<MarketId, Timestamp>,
}

struct Crossed {
    /// Start of the current step.
    since: Timestamp,
    step: Step,
}

#[derive(PartialEq, Eq)]
enum Step {
    /// It may become right with the next changes.
    Waiting,
    /// It was requested from the venue.
    Requested,
    /// It is not traded on until its next snapshot.
    Distrusted,
}

struct Differing {
    since: Timestamp,
    count: u32,
    requested_at: Option<Timestamp>,
}

impl Doubts {
    pub(super) fn new(pace: &Pace, holds_back: bool) -> Doubts {
        Doubts {
            holds_back,
            crossed_max_us: pace.crossed_max.as_micros() as u64,
            mirror_max_us: pace.mirror_max.as_micros() as u64,
            crossed: AHashMap::new(),
            differing: AHashMap::new(),
            unmirrored: AHashMap::new(),
        }
    }

    /// Notes that the token's own book is crossed or locked after a frame. True: the book is distrusted, and a snapshot
    /// in that frame does not change that. `is_answer`: the frame is the response to a request.
    pub(super) fn crossed(&mut self, instrument: InstrumentId, is_answer: bool, now: Timestamp) -> bool {
        let crossed = self.crossed.entry(instrument).or_insert(Crossed { since: now, step: Step::Waiting });
        if is_answer && crossed.step == Step::Requested {
            *crossed = Crossed { since: now, step: Step::Distrusted };
        }
        crossed.step == Step::Distrusted
    }

    /// Whether a book of this market became crossed a moment ago; streams do not see it meanwhile.
    pub(super) fn holds(&self, market: MarketId) -> bool {
        let is_waiting = |(instrument, crossed): (&InstrumentId, &Crossed)| {
            instrument.market() == market && crossed.step == Step::Waiting
        };
        self.holds_back && !self.crossed.is_empty() && self.crossed.iter().any(is_waiting)
    }

    /// Compares the best prices that a frame states (`stated`) with those after it (`current`). True: there were too
    /// many differences, so that the book must be requested.
    pub(super) fn top(
        &mut self,
        instrument: InstrumentId,
        stated: [Option<Price>; 2],
        current: Top,
        now: Timestamp,
    ) -> bool {
        let price = |quote: Option<Quote>| quote.map(|quote| quote.price);
        if stated == [price(current.bid), price(current.ask)] {
            return false;
        }
        let fresh = Differing { since: now, count: 0, requested_at: None };
        let differing = self.differing.entry(instrument).or_insert(fresh);
        if now.since(differing.since) > DIFFERING_WITHIN {
            (differing.since, differing.count) = (now, 0);
        }
        differing.count += 1;
        // A request that did not help is not repeated with every change.
        let may_request = differing.requested_at.is_none_or(|at| now.since(at) > DIFFERING_WITHIN);
        let too_many = differing.count >= DIFFERING_MAX && may_request;
        if too_many {
            *differing = Differing { since: now, count: 0, requested_at: Some(now) };
        }
        too_many
    }

    /// Notes that a book of this market has changed.
    pub(super) fn changed(&mut self, market: MarketId, books: &Books, now: Timestamp) {
        match books.mirrored(market) {
            Some(false) => {
                self.unmirrored.entry(market).or_insert(now);
            }
            _ if self.unmirrored.is_empty() => {}
            _ => drop(self.unmirrored.remove(&market)),
        }
    }

    /// The actions that are due.
    pub(super) fn turn(&mut self, books: &Books, now: Timestamp) -> Vec<Verdict> {
        let (mut verdicts, mut released) = (Vec::new(), Vec::new());
        let (crossed_max_us, mirror_max_us) = (self.crossed_max_us, self.mirror_max_us);
        self.crossed.retain(|&instrument, crossed| {
            if !books.book(instrument).and_then(|book| book.best().ok()).is_some_and(is_crossed) {
                if crossed.step == Step::Distrusted {
                    // Changes alone may have made it right, but they do not restore trust.
                    verdicts.push(Verdict::Resync(instrument));
                }
                released.push(instrument.market());
                return false;
            }
            if now.since(crossed.since) > crossed_max_us {
                crossed.since = now;
                match crossed.step {
                    Step::Waiting => {
                        crossed.step = Step::Requested;
                        released.push(instrument.market());
                        verdicts.push(Verdict::Resync(instrument));
                    }
                    Step::Requested | Step::Distrusted => {
                        crossed.step = Step::Distrusted;
                        verdicts.push(Verdict::Distrust(instrument.market()));
                        verdicts.push(Verdict::Resync(instrument));
                    }
                }
            }
            true
        });
        released.retain(|market| self.holds_back && !self.holds(*market));
        released.dedup();
        verdicts.extend(released.into_iter().map(Verdict::Release));
        for (market, since) in &mut self.unmirrored {
            if now.since(*since) > mirror_max_us {
                // Requested again if this request does not help in time.
                *since = now;
                verdicts.push(Verdict::Resync(market.instrument(Outcome::First)));
            }
        }
        verdicts
    }
}

fn is_crossed(top: Top) -> bool {
    top.bid.zip(top.ask).is_some_and(|(bid, ask)| bid.price >= ask.price)
}

#[cfg(test)]
mod tests;
