//! Books of the past, as an archive gives them.

use super::hours::{Confidence, Hour, Verdict};
use crate::amount::{Price, Qty, TickSize};
use crate::book::{Books, Effective};
use crate::id::{InstrumentId, Outcome};
use crate::market::terms::{Category, Resolution};
use crate::time::Timestamp;
use std::ops::Range;
use std::sync::Arc;

/// A market of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedMarket {
    /// `0x` and 64 lower-case hex digits.
    pub condition: Arc<str>,
    /// Decimal texts, in outcome order.
    pub tokens: [Arc<str>; 2],
    /// Labels, in outcome order.
    pub outcomes: [Arc<str>; 2],
    /// [`Category::Unknown`] for a market that is known by its messages alone.
    pub category: Category,
    /// The finest grid of prices seen.
    pub tick: TickSize,
    /// When the venue ends it.
    pub end: Ends,
    pub settlement: Option<Settled>,
    /// From its first hour to the one after its last.
    pub hours: Range<Hour>,
}

/// The end of a market as the venue stated it over time: a moment of the past knows what was stated by then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Stated first. It counts from the beginning: when the venue stated it is not known.
    first: Option<Timestamp>,
    /// Later statements and the times of their receipt, ascending.
    changes: Vec<(Timestamp, Option<Timestamp>)>,
}

/// A known result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    pub resolution: Resolution,
    pub at: Timestamp,
    pub source: SettlementSource,
}

/// Where a result is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettlementSource {
    /// The venue.
    Upstream,
    /// A file of results.
    Import,
}

/// The book of one token at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedBook {
    /// Best first: descending prices.
    pub bids: Vec<(Price, Qty)>,
    /// Best first: ascending prices.
    pub asks: Vec<(Price, Qty)>,
    /// Receipt of the last message about the token.
    pub last_message: Timestamp,
    /// The hour that it was read from.
    pub hour: Hour,
    pub verdict: Verdict,
    pub confidence: Confidence,
    /// The moment is in a gap of the recording.
    pub is_stale: bool,
    /// Crossed levels that were dropped.
    pub crossed_dropped: u32,
    /// Events that came twice and were counted once.
    pub deduped: u32,
}

/// The books of both tokens of a market at one moment, from the view of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedPair {
    /// The book of the token.
    pub own: ArchivedBook,
    /// That of the other token, if the archive has it.
    pub complement: Option<ArchivedBook>,
}

impl SettlementSource {
    /// The word in answers.
    pub fn name(self) -> &'static str {
        match self {
            SettlementSource::Upstream => "upstream",
            SettlementSource::Import => "import",
        }
    }
}

impl Ends {
    /// An end that never changed.
    pub fn of(first: Option<Timestamp>) -> Ends {
        Ends { first, changes: Vec::new() }
    }

    /// Adds what the venue stated at a time, which is not before that of an earlier statement.
    pub fn state(&mut self, at: Timestamp, end: Option<Timestamp>) {
        let latest = self.changes.last().map_or(self.first, |(_, end)| *end);
        if end != latest {
            self.changes.push((at, end));
        }
    }

    /// The end as it was known at this moment.
    pub fn known_at(&self, moment: Timestamp) -> Option<Timestamp> {
        let known = self.changes.partition_point(|(at, _)| *at <= moment);
        known.checked_sub(1).map_or(self.first, |latest| self.changes[latest].1)
    }

    /// Statements up to this moment, the first one with time 0.
    pub fn until(&self, moment: Timestamp) -> impl Iterator<Item = (Timestamp, Option<Timestamp>)> {
        let changes = self.changes.iter().copied().take_while(move |(at, _)| *at <= moment);
        [(Timestamp(0), self.first)].into_iter().chain(changes)
    }

    /// The moments up to `until` at which the market ends, or runs again because its end was moved: as a server decides
    /// that reads the same statements.
    pub(super) fn turns(&self, until: Timestamp) -> Vec<(Timestamp, bool)> {
        let statements: Vec<_> = self.until(until).collect();
        let mut turns: Vec<(Timestamp, bool)> = Vec::new();
        for (number, (from, end)) in statements.iter().enumerate() {
            let to = statements.get(number + 1).map_or(Timestamp(until.0 + 1), |(at, _)| *at);
            let passes = end.map(|end| end.max(*from)).filter(|passes| *passes < to);
            let was_over = turns.last().is_some_and(|(_, is_over)| *is_over);
            if was_over && passes != Some(*from) {
                turns.push((*from, false));
            }
            if let Some(passes) = passes.filter(|passes| !was_over || *passes != *from) {
                turns.push((passes, true));
            }
        }
        turns
    }
}

impl ArchivedMarket {
    /// The outcome of exactly this token id.
    pub fn of_token(&self, token: &str) -> Option<Outcome> {
        let is_it = |outcome: &Outcome| *self.tokens[*outcome as usize] == *token;
        [Outcome::First, Outcome::Second].into_iter().find(is_it)
    }

    /// The outcome with this label, in any case.
    pub fn labelled(&self, label: &str) -> Option<Outcome> {
        let is_it = |outcome: &Outcome| {
            let own = &*self.outcomes[*outcome as usize];
            own.eq_ignore_ascii_case(label) || (!label.is_ascii() && own.to_lowercase() == label.to_lowercase())
        };
        [Outcome::First, Outcome::Second].into_iter().find(is_it)
    }
}

impl ArchivedBook {
    pub fn best_bid(&self) -> Option<Price> {
        self.bids.first().map(|(price, _)| *price)
    }

    pub fn best_ask(&self) -> Option<Price> {
        self.asks.first().map(|(price, _)| *price)
    }

    /// Whether it has no level.
    pub fn is_empty(&self) -> bool {
        self.bids.is_empty() && self.asks.is_empty()
    }
}

impl ArchivedPair {
    /// The book that an order of the token meets (engine/docs/execution.md §3), by the rules of a live one.
    pub fn effective(&self) -> Effective {
        const OWN: InstrumentId = InstrumentId(0);
        let books = Arc::new(Books::new());
        let mut writer = books.writer().expect("the books are new");
        let at = self.own.last_message;
        writer.frame(0, at, |frame| {
            frame.snapshot(OWN, &self.own.bids, &self.own.asks, at, None);
            if let Some(other) = &self.complement {
                frame.snapshot(OWN.complement(), &other.bids, &other.asks, at, None);
            }
        });
        let mut effective = Effective::default();
        books.effective(OWN, &mut effective).expect("it has one writer, which has ended its frame");
        effective
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A book of cents and shares, received at 17:30 of 2026-09-30.
    pub fn book(bids: &[(u16, u64)], asks: &[(u16, u64)]) -> ArchivedBook {
        let levels = |levels: &[(u16, u64)]| {
            levels.iter().map(|(price, shares)| (Price(*price), Qty::from_shares(*shares))).collect()
        };
        let hour = Hour(497_441);
        ArchivedBook {
            bids: levels(bids),
            asks: levels(asks),
            last_message: hour.start().plus(1_800_000_000),
            hour,
            verdict: Verdict::Valid,
            confidence: Confidence::High,
            is_stale: false,
            crossed_dropped: 0,
            deduped: 0,
        }
    }

    #[test]
    fn an_end_is_what_was_stated_by_then() {
        let at = Timestamp;
        let mut moved = Ends::of(Some(at(20)));
        moved.state(at(10), Some(at(20)));
        moved.state(at(10), Some(at(40)));
        moved.state(at(30), Some(at(25)));
        moved.state(at(35), None);
        moved.state(at(36), Some(at(50)));
        let known =
            [(0, Some(20)), (9, Some(20)), (10, Some(40)), (29, Some(40)), (30, Some(25)), (35, None), (99, Some(50))];
        for (moment, end) in known {
            assert_eq!(moved.known_at(at(moment)), end.map(at), "{moment}");
        }
        // First statement, later ones, until when; when it ends or runs again.
        type Case<'a> = (Option<u64>, &'a [(u64, Option<u64>)], u64, &'a [(u64, bool)]);
        let cases: [Case<'_>; 9] = [
            (None, &[], 100, &[]),
            (Some(20), &[], 100, &[(20, true)]),
            (Some(20), &[], 20, &[(20, true)]),
            (Some(20), &[], 19, &[]),
            (Some(20), &[(10, Some(40))], 100, &[(40, true)]),
            (Some(20), &[(30, Some(40))], 100, &[(20, true), (30, false), (40, true)]),
            (Some(20), &[(30, Some(25))], 100, &[(20, true)]),
            (Some(50), &[(30, Some(25))], 100, &[(30, true)]),
            (Some(20), &[(30, None)], 100, &[(20, true), (30, false)]),
        ];
        for (first, changes, until, expected) in cases {
            let mut ends = Ends::of(first.map(at));
            changes.iter().for_each(|(moment, end)| ends.state(at(*moment), end.map(at)));
            let turns: Vec<_> =
                ends.turns(at(until)).into_iter().map(|(moment, is_over)| (moment.0, is_over)).collect();
            assert_eq!(turns, expected, "{first:?} {changes:?} {until}");
        }
        println!("ends of markets: {} cases", known.len() + cases.len());
    }

    #[test]
    fn outcomes_are_found_by_exact_tokens_and_by_labels_in_any_case() {
        let texts = |texts: [&str; 2]| texts.map(Arc::from);
        let market = ArchivedMarket {
            condition: "0x51".into(),
            tokens: texts(["8114", "5520"]),
            outcomes: texts(["Yes", "Größer"]),
            category: Category::Unknown,
            tick: TickSize(100),
            end: Ends::default(),
            settlement: None,
            hours: Hour(0)..Hour(1),
        };
        let (first, second) = (Some(Outcome::First), Some(Outcome::Second));
        let tokens = [("8114", first), ("5520", second), ("08114", None), ("yes", None), ("primary", None), ("", None)];
        for (token, outcome) in tokens {
            assert_eq!(market.of_token(token), outcome, "{token:?}");
        }
        let labels = [("Yes", first), ("YES", first), ("größer", second), ("GRÖSSER", None), ("no", None), ("", None)];
        for (label, outcome) in labels {
            assert_eq!(market.labelled(label), outcome, "{label:?}");
        }
        println!("archived markets: {} names", tokens.len() + labels.len());
    }

    #[test]
    fn an_archived_pair_is_met_by_the_rules_of_a_live_one() {
        // own bids and asks, those of the complement; the effective prices
        type Levels = &'static [(u16, u64)];
        type Row = (Levels, Levels, Option<(Levels, Levels)>, &'static [u16], &'static [u16]);
        let rows: [Row; 5] = [
            (&[(4_100, 8)], &[(4_200, 6)], None, &[4_100], &[4_200]),
            // Mirrors count once.
            (&[(4_100, 8)], &[(4_200, 6)], Some((&[(5_800, 6)], &[(5_900, 8)])), &[4_100], &[4_200]),
            // Otherwise both are merged.
            (&[(4_100, 8)], &[(4_200, 6)], Some((&[(5_700, 6)], &[(5_950, 8)])), &[4_100, 4_050], &[4_200, 4_300]),
            // A merged book that is crossed is not used.
            (&[(4_100, 8)], &[(4_200, 6)], Some((&[(5_950, 6)], &[])), &[4_100], &[4_200]),
            (&[], &[], Some((&[(5_800, 6)], &[])), &[], &[4_200]),
        ];
        for (bids, asks, complement, met_bids, met_asks) in rows {
            let pair =
                ArchivedPair { own: book(bids, asks), complement: complement.map(|(bids, asks)| book(bids, asks)) };
            let effective = pair.effective();
            let prices = |levels: &[crate::book::EffectiveLevel]| -> Vec<u16> {
                levels.iter().map(|level| level.price.0).collect()
            };
            assert_eq!((&*prices(&effective.bids), &*prices(&effective.asks)), (met_bids, met_asks), "{pair:?}");
        }
        println!("archived pairs: {} cases", rows.len());
    }
}
