//! Books that cannot be right (upstream.md §5): crossed for too long, with another best price than the venue names, or
//! not the mirror of their complement. First the venue is asked for them anew; what is still crossed then is not traded
//! on until it comes right.

use crate::live::Pace;
use ahash::AHashMap;
use engine::amount::Price;
use engine::book::{Books, Quote, Top};
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::time::{SECOND, Timestamp};

/// So many differing best prices within so long are no accident of order.
const DIFFERING_MAX: u32 = 3;
const DIFFERING_WITHIN: u64 = 10 * SECOND;

/// What is to be done about a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Ask the venue for its books.
    Resync(InstrumentId),
    /// Judge no order by them until they come anew.
    Distrust(MarketId),
    /// Its books have come right, or have been waited for long enough: streams hear of them again.
    LetGo(MarketId),
}

/// What is doubted, in venue time.
pub(super) struct Doubts {
    /// Streams wait for a crossed book to come right. Not in a recording: what was recorded is told.
    holds_back: bool,
    crossed_max_us: u64,
    mirror_max_us: u64,
    crossed: AHashMap<InstrumentId, Crossed>,
    differing: AHashMap<InstrumentId, Differing>,
    unmirrored: AHashMap<MarketId, Timestamp>,
}

struct Crossed {
    /// Of the current step.
    since: Timestamp,
    step: Step,
}

#[derive(PartialEq, Eq)]
enum Step {
    /// It may come right by itself.
    Waits,
    /// The venue was asked for it.
    Asked,
    /// No order is judged by it until its next snapshot.
    Distrusted,
}

struct Differing {
    since: Timestamp,
    count: u32,
    asked_at: Option<Timestamp>,
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

    /// The token's own book is crossed or locked behind a frame. True: it is not trusted, and what the frame brought,
    /// were it a whole book, is no reason to. `is_answer`: it is what the venue said when it was asked.
    pub(super) fn crossed(&mut self, instrument: InstrumentId, is_answer: bool, now: Timestamp) -> bool {
        let crossed = self.crossed.entry(instrument).or_insert(Crossed { since: now, step: Step::Waits });
        if is_answer && crossed.step == Step::Asked {
            *crossed = Crossed { since: now, step: Step::Distrusted };
        }
        crossed.step == Step::Distrusted
    }

    /// Whether a book of this market has been crossed for a moment: streams do not hear of it meanwhile.
    pub(super) fn holds(&self, market: MarketId) -> bool {
        let waits = |(instrument, crossed): (&InstrumentId, &Crossed)| {
            instrument.market() == market && crossed.step == Step::Waits
        };
        self.holds_back && !self.crossed.is_empty() && self.crossed.iter().any(waits)
    }

    /// The frame that was taken says what the best prices are behind it. True: that was one difference too many.
    pub(super) fn top(
        &mut self,
        instrument: InstrumentId,
        said: [Option<Price>; 2],
        stands: Top,
        now: Timestamp,
    ) -> bool {
        let price = |quote: Option<Quote>| quote.map(|quote| quote.price);
        if said == [price(stands.bid), price(stands.ask)] {
            return false;
        }
        let fresh = Differing { since: now, count: 0, asked_at: None };
        let differing = self.differing.entry(instrument).or_insert(fresh);
        if now.since(differing.since) > DIFFERING_WITHIN {
            (differing.since, differing.count) = (now, 0);
        }
        differing.count += 1;
        // Where asking does not help it is not asked with every change.
        let rested = differing.asked_at.is_none_or(|at| now.since(at) > DIFFERING_WITHIN);
        let too_many = differing.count >= DIFFERING_MAX && rested;
        if too_many {
            *differing = Differing { since: now, count: 0, asked_at: Some(now) };
        }
        too_many
    }

    /// A book of this market has changed.
    pub(super) fn changed(&mut self, market: MarketId, books: &Books, now: Timestamp) {
        match books.mirrored(market) {
            Some(false) => {
                self.unmirrored.entry(market).or_insert(now);
            }
            _ if self.unmirrored.is_empty() => {}
            _ => drop(self.unmirrored.remove(&market)),
        }
    }

    /// What time has made of the doubts.
    pub(super) fn turn(&mut self, books: &Books, now: Timestamp) -> Vec<Verdict> {
        let (mut verdicts, mut let_go) = (Vec::new(), Vec::new());
        let (crossed_max_us, mirror_max_us) = (self.crossed_max_us, self.mirror_max_us);
        self.crossed.retain(|&instrument, crossed| {
            if !books.book(instrument).and_then(|book| book.best().ok()).is_some_and(is_crossed) {
                if crossed.step == Step::Distrusted {
                    // It may have come right by changes alone, which do not restore trust.
                    verdicts.push(Verdict::Resync(instrument));
                }
                let_go.push(instrument.market());
                return false;
            }
            if now.since(crossed.since) > crossed_max_us {
                crossed.since = now;
                match crossed.step {
                    Step::Waits => {
                        crossed.step = Step::Asked;
                        let_go.push(instrument.market());
                        verdicts.push(Verdict::Resync(instrument));
                    }
                    Step::Asked | Step::Distrusted => {
                        crossed.step = Step::Distrusted;
                        verdicts.push(Verdict::Distrust(instrument.market()));
                        verdicts.push(Verdict::Resync(instrument));
                    }
                }
            }
            true
        });
        let_go.retain(|market| self.holds_back && !self.holds(*market));
        let_go.dedup();
        verdicts.extend(let_go.into_iter().map(Verdict::LetGo));
        for (market, since) in &mut self.unmirrored {
            if now.since(*since) > mirror_max_us {
                // Asked again when it has not helped by then.
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
